/* SPDX-License-Identifier: Apache-2.0 */
#include "fused.h"

#include "ops/map.h"

#include <hob/ops.h>

/* What the lists call them. */
#define X(op, operands, name, marks, link_name)                                \
    [HOB_OP_##op] = {.form = FUSED_##operands,                                 \
                     .kernel = FLEX_MAP_##name,                                \
                     .flags = marks,                                           \
                     .link = FLEX_LINK_##link_name},
#define FOLD(op, name, marks)                                                  \
    [HOB_OP_##op] = {FUSED_FOLD, FLEX_FOLD_##name, marks, 0},                  \
    [HOB_OP_##op##_DIM] = {FUSED_FOLD, FLEX_FOLD_##name, marks, 0},
#define FOLD_DIMS(op, name, marks)                                             \
    FOLD(op, name, marks)                                                      \
    [HOB_OP_##op##_DIMS] = {FUSED_FOLD, FLEX_FOLD_##name, marks, 0},
#define ALONG(op) [HOB_OP_##op] = {FUSED_ALONG, 0, FUSED_DEAR, 0},
#define EXACT FUSED_EXACT
#define DEAR FUSED_DEAR
#define FLOAT_ONLY FUSED_FLOAT_ONLY
#define INTEGER FUSED_INTEGER
static const struct fused_op ops[] = {
#include "fused_ops.def"
    FOLD_DIMS(SUM, SUM, 0)           /**/
    FOLD_DIMS(MEAN, SUM, FUSED_MEAN) /**/
    FOLD(PROD, PROD, 0)              /**/
    FOLD_DIMS(MAX, MAX, FUSED_EXACT) /**/
    FOLD_DIMS(MIN, MIN, FUSED_EXACT) /**/
    FOLD(ANY, ANY, FUSED_EXACT)      /**/
    FOLD(ALL, ALL, FUSED_EXACT)      /**/
    ALONG(SOFTMAX)                   /**/
    ALONG(LOG_SOFTMAX)               /**/
    ALONG(LAYER_NORM)                /**/
    ALONG(RMS_NORM)                  /**/
    ALONG(GROUP_NORM)                /**/
};
#undef X
#undef FOLD
#undef FOLD_DIMS
#undef ALONG
#undef EXACT
#undef DEAR
#undef FLOAT_ONLY
#undef INTEGER

const struct fused_op *fused_op_find(uint32_t op)
{
    return op < sizeof(ops) / sizeof(ops[0]) && ops[op].form ? &ops[op] : NULL;
}

flex_map_fn fused_op_map(const struct flex_kernels *kernels,
                         const struct hob_fused_step *step, uint32_t dtype)
{
    const struct fused_op *op = fused_op_find(step->op);
    uint32_t map = op->kernel;

    if (op->form == FUSED_BACKWARD) {
        if (step->variant >= FLEX_BACKWARD_COUNT)
            return NULL;
        map = flex_backward_maps[step->variant];
    }
    return kernels->map[map][dtype];
}

/* ---- ops along rows ---- */

static void along_softmax(const struct flex_row_kernels *kernels, void *out,
                          const void *a, const void *b, const void *c,
                          const double *number, int64_t n)
{
    (void)b;
    (void)c;
    (void)number;
    kernels->softmax(out, a, n);
}

static void along_log_softmax(const struct flex_row_kernels *kernels, void *out,
                              const void *a, const void *b, const void *c,
                              const double *number, int64_t n)
{
    (void)b;
    (void)c;
    (void)number;
    kernels->log_softmax(out, a, n);
}

static void along_layer_norm(const struct flex_row_kernels *kernels, void *out,
                             const void *a, const void *b, const void *c,
                             const double *number, int64_t n)
{
    kernels->layer_norm(out, a, b, c, *number, n);
}

static void along_rms_norm(const struct flex_row_kernels *kernels, void *out,
                           const void *a, const void *b, const void *c,
                           const double *number, int64_t n)
{
    (void)c;
    kernels->rms_norm(out, a, b, *number, n);
}

/* NULL: that of group_norm is in fused_channels.c. */
fused_along_fn fused_op_along(uint32_t number)
{
    switch (number) {
    case HOB_OP_GROUP_NORM:
        return NULL;
    case HOB_OP_SOFTMAX:
        return along_softmax;
    case HOB_OP_LOG_SOFTMAX:
        return along_log_softmax;
    case HOB_OP_LAYER_NORM:
        return along_layer_norm;
    default:
        return along_rms_norm;
    }
}

static int is_norm(uint32_t number)
{
    return number == HOB_OP_LAYER_NORM || number == HOB_OP_RMS_NORM ||
           number == HOB_OP_GROUP_NORM;
}

uint32_t fused_scalar_count(uint32_t number)
{
    const struct fused_op *op = fused_op_find(number);
    const uint32_t form = op ? op->form : 0;

    if (form == FUSED_CLAMP || number == HOB_OP_HARD_SIGMOID)
        return 2;
    return form == FUSED_SCALAR || form == FUSED_SCALAR_FIRST ||
           form == FUSED_POWER || form == FUSED_FILL || form == FUSED_WIDE ||
           form == FUSED_BACKWARD || is_norm(number);
}

/* ---- what is supported ---- */

static int is_float(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
}

static uint32_t arg_count(const struct hob_fused_step *step)
{
    uint32_t count = 0;

    while (count < 3 && step->args[count] != HOB_FUSED_NONE)
        count++;
    return count;
}

static int supports_fold(const struct flex_kernels *kernels,
                         const struct fused_op *op,
                         const struct hob_fused_step *step, uint32_t dtype)
{
    uint32_t out = op->kernel == FLEX_FOLD_ANY || op->kernel == FLEX_FOLD_ALL
                       ? (uint32_t)HOB_DTYPE_BOOL
                       : dtype;

    return step->is_reduction && arg_count(step) == 1 && step->dtype == out &&
           kernels->fold[op->kernel][fused_dtype(dtype)];
}

/* Weight and bias of norms may be absent, those of others are. */
static int supports_along(const struct hob_fused_step *step,
                          const uint8_t *dtypes)
{
    const uint32_t most = step->op == HOB_OP_RMS_NORM ? 2
                          : is_norm(step->op)         ? 3
                                                      : 1;

    for (uint32_t i = 0; i < 3; i++)
        if (step->args[i] != HOB_FUSED_NONE &&
            (i >= most || dtypes[i] != step->dtype))
            return 0;
    return !step->is_reduction && is_float(step->dtype);
}

int32_t fused_supports(void *device, const struct hob_fused_step *step,
                       const uint8_t *dtypes)
{
    static const uint8_t counts[] = {
        [FUSED_ONE] = 1,     [FUSED_TWO] = 2,          [FUSED_WHERE] = 3,
        [FUSED_SCALAR] = 1,  [FUSED_SCALAR_FIRST] = 1, [FUSED_POWER] = 1,
        [FUSED_CLAMP] = 1,   [FUSED_FILL] = 2,         [FUSED_WIDE] = 1,
        [FUSED_BACKWARD] = 2};
    const struct flex_kernels *kernels =
        ((struct flex_device *)device)->kernels;
    const struct fused_op *op = fused_op_find(step->op);
    const uint32_t count = arg_count(step);
    uint32_t dtype, out;

    for (uint32_t i = 0; i < count; i++)
        if (!hob_dtype_size(dtypes[i]))
            return 0;
    if (!op || count == 0)
        return 0;
    if (op->form == FUSED_FOLD)
        return supports_fold(kernels, op, step, dtypes[0]);
    if (op->form == FUSED_ALONG)
        return supports_along(step, dtypes);
    if (step->is_reduction)
        return 0;
    if (op->form == FUSED_CAST)
        return count == 1 && kernels->cast[step->dtype][dtypes[0]] != NULL;
    if (count != counts[op->form])
        return 0;
    dtype = dtypes[op->form == FUSED_WHERE ? 1 : 0];
    out = op->kernel >= FLEX_MAP_EQUAL && op->kernel <= FLEX_MAP_IS_INF
              ? (uint32_t)HOB_DTYPE_BOOL
              : dtype;
    if (step->dtype != out ||
        ((op->flags & FUSED_FLOAT_ONLY) && !is_float(dtype)) ||
        ((op->flags & FUSED_INTEGER) && dtype == HOB_DTYPE_BOOL))
        return 0;
    if (op->form == FUSED_WHERE &&
        (dtypes[0] != HOB_DTYPE_BOOL || dtypes[2] != dtype))
        return 0;
    if (op->form == FUSED_FILL && dtypes[1] != HOB_DTYPE_BOOL)
        return 0;
    if ((op->form == FUSED_TWO || op->form == FUSED_BACKWARD) &&
        dtypes[1] != dtype)
        return 0;
    return fused_op_map(kernels, step, fused_dtype(dtype)) != NULL;
}
