/*
 * test.@SUFFIX@ - @NAME@ against loops in double, its gradient against the formula:
 * odd sizes, no elements, f32, f64 and f16 (which no kernel computes).
 */
#include "@OP@.h"

#include <hob/hob.h>

@if CXX
#include <cmath>
#include <cstdio>
@else
#include <math.h>
#include <stdio.h>
@end

enum { COUNT = 7 };

static const double input[COUNT] = {-2, -0.5, 0, 0.25, 1, 3, 16};
static const double factor = 0.5;

static int compare(const char *what, hob_tensor *tensor, const double *wanted,
                   double tolerance, hob_error *error)
{
    double got[COUNT];

    if (hob_read_f64(tensor, got, COUNT, error))
        return 1;
    for (int i = 0; i < COUNT; i++) {
        if (!(fabs(got[i] - wanted[i]) <= tolerance * fabs(wanted[i]))) {
            printf("%s[%d] is %.9g, not %.9g\n", what, i, got[i], wanted[i]);
            return 1;
        }
    }
    return 0;
}

static hob_tensor *make_x(hob_scope *scope, hob_device *device,
                          hob_dtype dtype)
{
    const int64_t shape = COUNT;

    return hob_cast(scope, hob_from_f64(scope, device, input, &shape, 1),
                    dtype);
}

static int test_values(hob_scope *scope, hob_device *device, hob_dtype dtype,
                       hob_error *error)
{
    /* The inputs are exact in f16, so half a unit of its last place. */
    const double tolerance = dtype == HOB_DTYPE_F16 ? 1e-3 : 1e-6;
    hob_tensor *x = hob_require_grad(scope, make_x(scope, device, dtype));
    hob_tensor *y = @NAMESPACE@_@OP@(scope, x, factor), *gradient = NULL;
    hob_grads *grads = NULL;
    double value[COUNT], slope[COUNT];
    int failed = 1;

    for (int i = 0; i < COUNT; i++) {
        value[i] = factor * input[i] * input[i];
        slope[i] = 2 * factor * input[i];
    }
    if (!compare("y", hob_detach(scope, y), value, tolerance, error) &&
        !hob_backward(scope, y, 0, &grads, error) &&
        !hob_grad(scope, x, grads, &gradient, error) && gradient)
        failed = compare("dy/dx", gradient, slope, tolerance, error);
    hob_grads_free(grads);
    return failed;
}

/* Nothing in, nothing out. */
static int test_empty(hob_scope *scope, hob_device *device)
{
    const int64_t shape[2] = {0, 3};
    hob_tensor *y = @NAMESPACE@_@OP@(
        scope, hob_from_f64(scope, device, input, shape, 2), factor);

    return hob_scope_error(scope, NULL) || hob_tensor_count(y) != 0;
}
@if TYPES

/* The same limit for all, once as a number and once as a tensor. */
static int test_split(hob_scope *scope, hob_device *device, int is_tensor,
                      hob_error *error)
{
    struct @NAMESPACE@_limit limit;
    struct @NAMESPACE@_pair pair;
    double low[COUNT], high[COUNT];
    const double value = 0.5;

    for (int i = 0; i < COUNT; i++) {
        low[i] = input[i] < value ? input[i] : value;
        high[i] = input[i] - low[i];
    }
    if (is_tensor) {
        limit.variant = @UPPER_NAMESPACE@_LIMIT_EACH;
        limit.u.each = hob_from_f64(scope, device, &value, NULL, 0);
    } else {
        limit.variant = @UPPER_NAMESPACE@_LIMIT_VALUE;
        limit.u.value = value;
    }
    return @NAMESPACE@_@OP@_split(scope, make_x(scope, device, HOB_DTYPE_F64),
                                  &limit, &pair) ||
           compare("low", pair.low, low, 0, error) ||
           compare("high", pair.high, high, 0, error);
}
@end

static int test(hob_scope *scope, hob_device *device, hob_error *error)
{
    int failed = test_values(scope, device, HOB_DTYPE_F32, error) +
                 test_values(scope, device, HOB_DTYPE_F64, error) +
                 test_values(scope, device, HOB_DTYPE_F16, error) +
                 test_empty(scope, device);

@if TYPES
    failed += test_split(scope, device, 0, error) +
              test_split(scope, device, 1, error);
@end
    /* Whatever failed first in a scope is kept there. */
    if (hob_scope_error(scope, error))
        failed += failed == 0;
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
        failed += failed == 0;
    if (error.message)
        printf("%s\n", error.message);
    hob_error_release(&error);
    puts(failed ? "@NAME@: FAILED" : "@NAME@: passed");
    return failed != 0;
}
