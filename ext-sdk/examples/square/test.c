/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.c - demo.square on flex, and its gradient on autodiff(flex).
 */
#include "square.h"

#include <hob/hob.h>

#include <stdio.h>

/* The first two have the gradient {4, 6}. */
static const float input[5] = {2, 3, -0.5f, 0, -1e3f};

static int compare(const char *what, const float *got, const float *wanted)
{
    for (int i = 0; i < 5; i++) {
        /* Products of floats as the compiler makes them: exact. */
        if (got[i] != wanted[i]) {
            printf("%s[%d] is %g, not %g\n", what, i, (double)got[i],
                   (double)wanted[i]);
            return 1;
        }
    }
    return 0;
}

static int test(hob_scope *scope, hob_device *device, hob_error *error)
{
    const int64_t shape = 5;
    float value[5], slope[5], values[5], slopes[5];
    hob_tensor *x =
        hob_require_grad(scope, hob_from_f32(scope, device, input, &shape, 1));
    hob_tensor *y = demo_square(scope, x), *gradient;
    hob_grads *grads = NULL;
    int failed = 1;

    for (int i = 0; i < 5; i++) {
        value[i] = input[i] * input[i];
        slope[i] = 2 * input[i];
    }
    if (!hob_read_f32(hob_detach(scope, y), values, 5, error) &&
        !hob_backward(scope, y, 0, &grads, error) &&
        !hob_grad(scope, x, grads, &gradient, error) &&
        !hob_read_f32(gradient, slopes, 5, error))
        failed = compare("value", values, value) |
                 compare("gradient", slopes, slope);
    hob_grads_free(grads);
    return failed;
}

int main(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    int failed = 1;

    options.policy = HOB_POLICY_REPORT;
    if (!hob_runtime_open(&options, &runtime, &error) &&
        !hob_device_open(runtime, "autodiff(flex)", &device, &error)) {
        hob_scope *scope = hob_scope_open(runtime);

        failed = test(scope, device, &error);
        hob_scope_close(scope);
    }
    hob_device_unref(device);
    if (hob_runtime_close(runtime, error.status ? NULL : &error))
        failed = 1;
    if (error.message)
        printf("%s\n", error.message);
    hob_error_release(&error);
    puts(failed ? "0 passed, 1 failed" : "1 passed, 0 failed");
    return failed;
}
