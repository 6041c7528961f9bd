/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <hob/ops.h>

#include <string.h>

/* ---- reductions ---- */

int fuse_fold_find(uint32_t op, struct fuse_fold *out)
{
    static const struct {
        uint16_t op;
        uint8_t kind, is_mean;
    } folds[] = {
        {HOB_OP_SUM, CUBE_FOLD_SUM, 0},
        {HOB_OP_SUM_DIM, CUBE_FOLD_SUM, 0},
        {HOB_OP_SUM_DIMS, CUBE_FOLD_SUM, 0},
        {HOB_OP_MEAN, CUBE_FOLD_SUM, 1},
        {HOB_OP_MEAN_DIM, CUBE_FOLD_SUM, 1},
        {HOB_OP_MEAN_DIMS, CUBE_FOLD_SUM, 1},
        {HOB_OP_PROD, CUBE_FOLD_PRODUCT, 0},
        {HOB_OP_PROD_DIM, CUBE_FOLD_PRODUCT, 0},
        {HOB_OP_MAX, CUBE_FOLD_MAX, 0},
        {HOB_OP_MAX_DIM, CUBE_FOLD_MAX, 0},
        {HOB_OP_MAX_DIMS, CUBE_FOLD_MAX, 0},
        {HOB_OP_MIN, CUBE_FOLD_MIN, 0},
        {HOB_OP_MIN_DIM, CUBE_FOLD_MIN, 0},
        {HOB_OP_MIN_DIMS, CUBE_FOLD_MIN, 0},
        {HOB_OP_ANY, CUBE_FOLD_ANY, 0},
        {HOB_OP_ANY_DIM, CUBE_FOLD_ANY, 0},
        {HOB_OP_ALL, CUBE_FOLD_ALL, 0},
        {HOB_OP_ALL_DIM, CUBE_FOLD_ALL, 0},
    };

    for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
        if (folds[i].op == op) {
            out->kind = folds[i].kind;
            out->is_mean = folds[i].is_mean;
            return 1;
        }
    return 0;
}

/* ---- elementwise ops ---- */

uint32_t fuse_main_arg(enum cube_form form)
{
    return form == CUBE_FORM_WHERE ? 1 : 0;
}

uint32_t fuse_scalars(const struct cube_map_op *op)
{
    uint32_t count = 0;

    switch (op->form) {
    case CUBE_FORM_SCALAR:
    case CUBE_FORM_POW_SCALAR:
    case CUBE_FORM_MASK_FILL:
    case CUBE_FORM_ACTIVATION_BACKWARD:
        return 1;
    case CUBE_FORM_CLAMP:
        return 2;
    case CUBE_FORM_ATTRIBUTES:
        for (const char *at = op->signature; (at = strstr(at, ": f64")); at++)
            count++;
        return count;
    default:
        return 0;
    }
}

const struct cube_map *fuse_function(const struct cube_map_op *op,
                                     const struct hob_fused_step *step)
{
    return op->form == CUBE_FORM_ACTIVATION_BACKWARD
               ? &cube_activations[step->variant].map
               : &op->map;
}

int fuse_is_exact(const struct cube_map *map)
{
    static const char *const functions[] = {
        "map_neg",   "map_abs",     "map_sign",    "map_relu",
        "map_clamp", "map_maximum", "map_minimum", "map_relu_backward",
        "map_where", "map_floor",   "map_ceil",    "map_round",
        "map_trunc"};

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(map->function, functions[i]) == 0)
            return 1;
    return 0;
}
