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
    free(c);
}
