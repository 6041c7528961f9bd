/* SPDX-License-Identifier: Apache-2.0 */
#include "fusion_fixture.h"

#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void watch(void *context, const struct hob_fusion_event *event)
{
    struct fusion_seen *seen = context;
    const int at = seen->groups;

    if (!event->is_group) {
        seen->singles++;
        return;
    }
    if (at == 16) /* random programs look at none */
        return;
    snprintf(seen->name[at], sizeof(seen->name[at]), "%s", event->name);
    seen->ops[at] = event->op_count;
    seen->inputs[at] = event->input_count;
    seen->values[at] = event->value_count;
    seen->in_place[at] = event->in_place;
    seen->why[at] = event->values[0].why;
    seen->read[at] = event->read_bytes;
    seen->written[at] = event->written_bytes;
    seen->saved[at] = event->saved_bytes;
    seen->groups++;
}

void fusion_forget(struct fusion_fixture *fixture)
{
    memset(&fixture->seen, 0, sizeof(fixture->seen));
}

void fusion_open(struct fusion_fixture *fixture)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.threads = 2;
    ck_assert_hob_ok(hob_runtime_open(&options, &fixture->runtime, &error));
    ck_assert_hob_ok(
        test_device_open(fixture->runtime, "flex", &fixture->plain, &error));
    ck_assert_hob_ok(test_device_open(fixture->runtime, "fusion(flex)",
                                      &fixture->lazy, &error));
    ck_assert_hob_ok(
        hob_fusion_watch(fixture->lazy, watch, &fixture->seen, &error));
    fixture->scope = hob_scope_open(fixture->runtime);
    test_device_wait(fixture->scope, fixture->lazy);
    fusion_forget(fixture);
}

void fusion_close(struct fusion_fixture *fixture)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(fixture->scope, &error));
    hob_scope_close(fixture->scope);
    hob_device_unref(fixture->plain);
    hob_device_unref(fixture->lazy);
    ck_assert_hob_ok(hob_runtime_close(fixture->runtime, &error));
}

hob_tensor *fusion_numbers(hob_scope *scope, hob_device *device,
                           const int64_t *shape, int32_t rank, uint64_t seed)
{
    int64_t count = 1;
    float *data;
    hob_tensor *tensor;

    for (int32_t i = 0; i < rank; i++)
        count *= shape[i];
    data = malloc((size_t)count * sizeof(*data) + 1);
    ck_assert_ptr_nonnull(data);
    seed = seed * 2 + 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)op_random(&seed);
    tensor = hob_from_f32(scope, device, data, shape, rank);
    free(data);
    return tensor;
}
