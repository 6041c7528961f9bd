/* SPDX-License-Identifier: Apache-2.0 */
#include "fused_calls.h"

#include "fused_case.h"
#include "hob_check.h"

#include <cube/fuse/fuse.h>

#include <stdio.h>
#include <stdlib.h>

static const struct kind {
    const char *name;
    int rounds;
    struct fused_wish wish;
} kinds[] = {
    {"map", 24, {.steps_most = 16}},
    {"long", 4, {.steps_most = HOB_FUSED_MAX_STEPS}},
    {"large", 4, {.steps_most = 8, .is_large = 1}},
    {"rows", 24, {.steps_most = 12, .has_rows = 1}},
    {"rows_large", 8, {.steps_most = 8, .has_rows = 1, .is_large = 1}},
};

/* Layer norms as fusion has them, of rows that are kept and
 * of others. */
static void run_norms(struct fused_case *c, const struct fused_side *side,
                      void (*set_asks)(void *context, const char *name),
                      void *context)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_BF16,
                                       HOB_DTYPE_F16};
    static const int64_t shapes[][2] = {{33, 768}, {5, 33}, {9, 20000}};

    for (int i = 0; i < 9; i++) {
        const hob_dtype dtype = dtypes[i / 3];
        uint32_t regs[3];
        char name[64];
        hob_status st;

        snprintf(name, sizeof(name), "norm-%d", i);
        set_asks(context, name);
        fused_case_begin(c, (uint64_t)i, 2, 1, shapes[i % 3]);
        for (int k = 0; k < 3; k++)
            regs[k] = fused_case_input(c, dtype, 0, 0);
        c->in[1].strides[0] = c->in[2].strides[0] = 0;
        fused_case_layer_norm(c, regs[0], regs[1], regs[2]);
        st = fused_case_run(c, side);
        ck_assert_msg(st == HOB_OK, "%s: %s", name, hob_status_name(st));
        fused_case_release(c);
    }
}

static struct hob_view vector_at(uintptr_t address, uint32_t dtype,
                                 int64_t count)
{
    struct hob_view view = {.dtype = (uint8_t)dtype,
                            .rank = 1,
                            .flags = HOB_VIEW_CONTIGUOUS,
                            .shape = {count},
                            .strides = {1}};

    view.data = (void *)address;
    return view;
}

/* Lists of steps, in place and not, of Adam also with NOW. */
static void run_updates(struct cube_device *device,
                        void (*set_asks)(void *context, const char *name),
                        void *context)
{
    enum { STEPS = 5, PLACES = 7, ARGS = 11 };
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                       HOB_DTYPE_F16, HOB_DTYPE_BF16};
    static const uint8_t news[2][2][3] = {{{0, 2, 3}, {4, 5, 6}}, {{0}, {4}}};

    for (int i = 0; i < 24; i++) {
        const int is_sgd = i >= 16, keeps = i / 4 % 2, has_now = i / 8 == 1;
        const struct hob_view now = vector_at(0x1000, HOB_DTYPE_F32, 2);
        const hob_value args[ARGS] = {
            [2] = hob_f64(0.1),  [3] = hob_f64(0),   [4] = hob_i64(1),
            [5] = hob_f64(0.1),  [6] = hob_f64(0.9), [7] = hob_f64(0.99),
            [8] = hob_f64(1e-8), [9] = hob_f64(0)};
        struct hob_view views[STEPS][PLACES];
        const struct hob_view *in[STEPS][ARGS] = {{NULL}}, *out[STEPS][3];
        struct hob_fused_update updates[STEPS];
        const struct hob_fused_update *list[STEPS];
        char name[64];

        snprintf(name, sizeof(name), "list-%d", i);
        set_asks(context, name);
        for (int k = 0; k < STEPS; k++) {
            for (int p = 0; p < PLACES; p++)
                views[k][p] =
                    vector_at(0x10000 * (uintptr_t)(1 + k * PLACES + p),
                              dtypes[i % 4], 1000 + k);
            for (int p = 0; p < (is_sgd ? 2 : 4); p++)
                in[k][p] = &views[k][p];
            in[k][10] = has_now ? &now : NULL;
            for (int p = 0; p < 3; p++)
                out[k][p] = &views[k][news[is_sgd][keeps][p]];
            updates[k] = (struct hob_fused_update){
                .struct_size = sizeof(updates[k]),
                .op = is_sgd ? HOB_OP_SGD_STEP : HOB_OP_ADAM_STEP,
                .gradient = 1,
                .arg_count = is_sgd ? 4 : ARGS,
                .args = args,
                .views = in[k],
                .outs = out[k]};
            list[k] = &updates[k];
        }
        ck_assert_int_eq(cube_fused_compute.run_updates(device, list, STEPS),
                         HOB_OK);
    }
}

void fused_calls_run(struct cube_device *device,
                     void (*set_asks)(void *context, const char *name),
                     void *context)
{
    const struct fused_side side = {
        .host = device->host, .fused = &cube_fused_compute, .instance = device};
    struct fused_case *c = malloc(sizeof(*c));
    char name[64];

    ck_assert_ptr_nonnull(c);
    side.fused->set_waits(side.instance, 1);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int round = 0; round < kinds[k].rounds; round++) {
            struct fused_wish wish = kinds[k].wish;
            hob_status st;

            snprintf(name, sizeof(name), "%s-%d", kinds[k].name, round);
            set_asks(context, name);
            wish.seed = 1000 * k + (uint64_t)round;
            fused_case_random(c, &side, &wish);
            st = fused_case_run(c, &side);
            ck_assert_msg(st == HOB_OK || st == HOB_ERR_UNSUPPORTED,
                          "%s: %s of\n%s", name, hob_status_name(st), c->text);
            fused_case_release(c);
        }
    run_norms(c, &side, set_asks, context);
    free(c);
    run_updates(device, set_asks, context);
}
