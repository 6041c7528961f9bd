/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.c - runs the tests of the extension on flex and autodiff(flex).
 * HOB_TEST_DEVICE names another device, as cube-vulkan:0, for those of nms:
 * the other ops have kernels for flex alone, or none.
 */
#include "test.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t number(struct numbers *numbers, int64_t below)
{
    /* xorshift64*: a known generator, so that a failure can be had again. */
    numbers->state ^= numbers->state >> 12;
    numbers->state ^= numbers->state << 25;
    numbers->state ^= numbers->state >> 27;
    return (int64_t)((numbers->state * UINT64_C(0x2545f4914f6cdd1d) >> 11) %
                     (uint64_t)below);
}

void check(struct context *context, int holds, const char *format, ...)
{
    va_list args;

    if (holds) {
        context->passed++;
        return;
    }
    context->failed++;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void check_fails(struct context *context, hob_status status, const char *part)
{
    hob_error error = HOB_ERROR_INIT;
    hob_status got = hob_scope_error(context->scope, &error);

    check(context,
          got == status && error.message && strstr(error.message, part) != NULL,
          "wanted %s with \"%s\", got %s: %s", hob_status_name(status), part,
          hob_status_name(got), error.message ? error.message : "nothing");
    hob_error_release(&error);
    hob_scope_clear_error(context->scope);
}

hob_tensor *tensor(struct context *context, hob_device *device, hob_dtype dtype,
                   const double *values, const int64_t *shape, int32_t rank)
{
    return hob_cast(context->scope,
                    hob_from_f64(context->scope, device, values, shape, rank),
                    dtype);
}

static int is_near(double got, double wanted, double tolerance)
{
    if (isnan(wanted))
        return isnan(got);
    return got == wanted ||
           fabs(got - wanted) <= tolerance * (1 + fabs(wanted));
}

void fetch(struct context *context, hob_tensor *tensor, double *out,
           int64_t count)
{
    hob_error error = HOB_ERROR_INIT;

    if (hob_read_f64(tensor, out, count, &error)) {
        check(context, 0, "%s", error.message ? error.message : "unreadable");
        memset(out, 0, (size_t)count * sizeof(*out));
    }
    hob_error_release(&error);
}

void check_elements(struct context *context, const char *what,
                    hob_tensor *tensor, const double *wanted, int64_t count,
                    double tolerance)
{
    hob_error error = HOB_ERROR_INIT;
    double *got = (double *)malloc(((size_t)count + 1) * sizeof(*got));

    if (!got || hob_read_f64(tensor, got, count, &error)) {
        check(context, 0, "%s: %s", what,
              error.message ? error.message : "no memory");
    } else {
        int64_t i = 0;

        while (i < count && is_near(got[i], wanted[i], tolerance))
            i++;
        check(context, i == count, "%s[%lld] is %.17g, not %.17g", what,
              (long long)i, i < count ? got[i] : 0, i < count ? wanted[i] : 0);
    }
    hob_error_release(&error);
    free(got);
}

void check_gradient(struct context *context, const char *what,
                    hob_tensor *result, hob_tensor *leaf, const double *wanted,
                    int64_t count, double tolerance)
{
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *gradient = NULL;

    if (hob_backward(context->scope, result, HOB_BACKWARD_RETAIN, &grads,
                     &error) ||
        hob_grad(context->scope, leaf, grads, &gradient, &error))
        check(context, 0, "gradient of %s: %s", what, error.message);
    else if (!gradient || !wanted)
        check(context, !gradient && !wanted, "gradient of %s: there is %s",
              what, gradient ? "one" : "none");
    else
        check_elements(context, what, gradient, wanted, count, tolerance);
    hob_grads_free(grads);
    hob_error_release(&error);
}

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

int main(void)
{
    static void (*const tests[])(struct context *) = {test_detect, test_nms,
                                                      test_densify};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    const char *base = getenv("HOB_TEST_DEVICE");
    struct context context = {0};
    char tracking[200];
    uint32_t op;

    context.is_gpu = base != NULL;
    snprintf(tracking, sizeof(tracking), "autodiff(%s)", base ? base : "flex");

    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    options.debug = 1;
    if (!hob_runtime_open(&options, &runtime, &error) &&
        !hob_device_open(runtime, base ? base : "flex", &context.flex,
                         &error) &&
        !hob_device_open(runtime, tracking, &context.tracking, &error) &&
        !hob_op_find(runtime, "vision.nms", &op, &error)) {
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
            if (base && tests[i] != test_nms)
                continue;
            context.scope = hob_scope_open(runtime);
            tests[i](&context);
            if (hob_scope_error(context.scope, &error))
                check(&context, 0, "left over: %s", error.message);
            hob_error_release(&error);
            hob_scope_close(context.scope);
        }
    } else {
        check(&context, 0, "%s", error.message ? error.message : "not opened");
    }
    hob_device_unref(context.flex);
    hob_device_unref(context.tracking);
    hob_error_release(&error);
    if (hob_runtime_close(runtime, &error))
        check(&context, 0, "%s", error.message);
    hob_error_release(&error);
    printf("%d passed, %d failed\n", context.passed, context.failed);
    return context.failed != 0;
}
