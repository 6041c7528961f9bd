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
}
