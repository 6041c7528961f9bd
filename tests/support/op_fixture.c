/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "error.h"
#include "hob_check.h"
#include "mock/reference_backend.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Devices that are kept; [which]. */
static struct op_fixture kept[OP_DEVICE_TRACKED + 1];

static void keep_told(void *context, hob_status status, const char *op,
                      const char *message)
{
    struct op_fixture *fixture = context;

    (void)op;
    fixture->told = status;
    snprintf(fixture->message, sizeof(fixture->message), "%s", message);
}

void op_fixture_open(struct op_fixture *fixture, int which)
{
    static const char *const devices[] = {
        "reference", "flex", "fusion(flex)", "autodiff(flex)"};
    struct hob_static_plugin reference = {reference_backend_manifest,
                                          hob_plugin_entry_reference};
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    if (kept[which].runtime) {
        *fixture = kept[which];
        fixture->scope = hob_scope_open(fixture->runtime);
        return;
    }
    options.on_panic = keep_told;
    options.on_panic_context = fixture;
    options.static_plugins = &reference;
    options.static_plugin_count = 1;
    fixture->device = NULL;
    fixture->told = HOB_OK;
    ck_assert_hob_ok(hob_runtime_open(&options, &fixture->runtime, &error));
    if (which == 0 || options.plugin_path_count)
        ck_assert_hob_ok(test_device_open(fixture->runtime, devices[which],
                                          &fixture->device, &error));
    if (test_device_is_kept())
        kept[which] = *fixture;
    fixture->scope = hob_scope_open(fixture->runtime);
}

void op_fixture_close(struct op_fixture *fixture)
{
    const struct op_fixture open = *fixture;
    hob_error error = HOB_ERROR_INIT;

    if (!open.runtime)
        return;
    /* The next test of this process may open another device or none. */
    memset(fixture, 0, sizeof(*fixture));
    ck_assert_hob_ok(hob_scope_error(open.scope, &error));
    hob_scope_close(open.scope);
    if (test_device_is_kept())
        return;
    hob_device_unref(open.device);
    ck_assert_hob_ok(hob_runtime_close(open.runtime, &error));
}

hob_tensor *op_tensor(struct op_fixture *fixture, hob_dtype dtype,
                      const double *data, const int64_t *shape, int32_t rank)
{
    hob_tensor *x =
        hob_from_f64(fixture->scope, fixture->device, data, shape, rank);

    return dtype == HOB_DTYPE_F64 ? x : hob_cast(fixture->scope, x, dtype);
}

hob_tensor *op_vector(struct op_fixture *fixture, hob_dtype dtype,
                      const double *data, int64_t count)
{
    return op_tensor(fixture, dtype, data, &count, 1);
}

void op_read(struct op_fixture *fixture, hob_tensor *tensor, double *out,
             int64_t count)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(fixture->scope, &error));
    ck_assert_hob_ok(hob_read_f64(tensor, out, count, &error));
}

void op_check(struct op_fixture *fixture, const char *what, hob_tensor *tensor,
              const double *expected, int64_t count, double tolerance)
{
    double *got = malloc((size_t)(count + 1) * sizeof(*got));

    ck_assert_ptr_nonnull(got);
    op_read(fixture, tensor, got, count);
    for (int64_t i = 0; i < count; i++) {
        double e = expected[i];
        int same = isnan(e)   ? isnan(got[i])
                   : isinf(e) ? got[i] == e
                              : fabs(got[i] - e) <=
                                    tolerance * (fabs(e) > 1 ? fabs(e) : 1);
        /* An assertion that holds is a system call too. */
        if (!same)
            ck_abort_msg("%s: element %lld is %.17g, not %.17g", what,
                         (long long)i, got[i], e);
    }
    mark_point();
    free(got);
}

hob_status op_failure(struct op_fixture *fixture, hob_error *error)
{
    hob_status status = hob_scope_error(fixture->scope, error);

    if (!status && !fixture->told)
        status = hob_device_sync(fixture->device, error);
    if (!status && fixture->told)
        status = hob_error_set(error, fixture->told, "%s", fixture->message);
    fixture->told = HOB_OK;
    hob_scope_clear_error(fixture->scope);
    return status;
}

void op_check_fails(struct op_fixture *fixture, const char *what,
                    hob_status status)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_msg(op_failure(fixture, &error) == status, "%s: %s", what,
                  error.message ? error.message : "no error");
    hob_error_release(&error);
}

double op_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(2685821657736338717)) >> 11) * 0x1p-52 -
           1;
}
