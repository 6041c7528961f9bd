/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gradients.c - first and second gradients of flash.attention against
 * central differences of its definition in double.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Elements of a gradient that are compared one by one, at most. */
enum { SLOPES = 13 };

/* The gradients of the sum of out times WEIGHTS; NULL in OUT where none. */
static int gradients(hob_scope *scope, hob_device *device, hob_dtype dtype,
                     const struct problem *p, const struct values *values,
                     const double *weights, int strided,
                     hob_tensor *out[ARGUMENTS])
{
    const int64_t shape[3] = {p->lead, p->s_q, p->d_v};
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *args[ARGUMENTS + 1], *y, *w;
    int failed;

    make_arguments(scope, device, dtype, p, values, strided, args);
    for (int a = 0; a < ARGUMENTS; a++)
        args[a] = hob_require_grad(scope, args[a]);
    y = call(scope, p, args);
    w = hob_cast(scope, hob_from_f64(scope, device, weights, shape, 3), dtype);
    failed = hob_backward(scope, hob_mul(scope, y, w), 0, &grads, &error) != 0;
    for (int a = 0; a < ARGUMENTS && !failed; a++)
        failed = hob_grad(scope, args[a], grads, &out[a], &error) || !out[a];
    if (failed)
        printf("%s\n", error.message ? error.message : "no gradient");
    hob_grads_free(grads);
    hob_error_release(&error);
    return failed;
}

/* What the reference says of the gradient of one argument: the slopes along
 * every STEPth element, and along a direction. */
struct slopes {
    double elements[SLOPES];
    double along;
    int64_t step;
    double *direction;
};

static int find_slopes(const struct problem *p, struct values *values,
                       const double *weights, int a, struct slopes *out)
{
    const int64_t count = values->counts[a];
    double *along[ARGUMENTS] = {NULL, NULL, NULL};
    uint32_t state = 99;

    out->step = count / SLOPES + 1;
    out->direction = calloc((size_t)count + 1, sizeof(double));
    if (!out->direction)
        return 1;
    along[a] = out->direction;
    for (int64_t i = 0; i < count; i += out->step) {
        out->direction[i] = 1;
        out->elements[i / out->step] =
            slope_along(p, values, weights, a, along, 1e-5);
        out->direction[i] = 0;
    }
    for (int64_t i = 0; i < count; i++)
        out->direction[i] = values_next(&state);
    out->along = slope_along(p, values, weights, a, along, 1e-5);
    return 0;
}

static int gradient_differs(const struct slopes *slopes, int a,
                            hob_tensor *gradient, int64_t count,
                            double tolerance)
{
    static const char *const names[ARGUMENTS] = {"dq", "dk", "dv"};
    double *got = calloc((size_t)count + 1, sizeof(*got));
    hob_error error = HOB_ERROR_INIT;
    double product = 0;
    int failed = !got || hob_read_f64(gradient, got, count, &error);

    for (int64_t i = 0; i < count && !failed; i += slopes->step) {
        const double wanted = slopes->elements[i / slopes->step];

        failed = !(fabs(got[i] - wanted) <= tolerance * (1 + fabs(wanted)));
        if (failed)
            printf("%s[%lld] is %.9g, not %.9g\n", names[a], (long long)i,
                   got[i], wanted);
    }
    for (int64_t i = 0; i < count && !failed; i++)
        product += slopes->direction[i] * got[i];
    if (!failed) {
        failed = !(fabs(product - slopes->along) <=
                   tolerance * sqrt((double)count) * (1 + fabs(slopes->along)));
        if (failed)
            printf("%s along a direction is %.9g, not %.9g\n", names[a],
                   product, slopes->along);
    }
    free(got);
    hob_error_release(&error);
    return failed;
}

static double *make_weights(const struct values *values)
{
    double *weights =
        malloc(((size_t)values->out_count + 1) * sizeof(*weights));
    uint32_t state = 77;

    for (int64_t i = 0; i < values->out_count && weights; i++)
        weights[i] = values_next(&state);
    return weights;
}

/* One device and dtype; STRIDED as in make_arguments(). */
static void test_one(struct lab *lab, const char *spec, hob_dtype dtype,
                     double tolerance, const struct problem *p,
                     const struct values *values, const double *weights,
                     const struct slopes *slopes, int strided)
{
    hob_device *device = lab_device(lab, spec);
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *grads[ARGUMENTS] = {NULL};
    int failed = !device || gradients(scope, device, dtype, p, values, weights,
                                      strided, grads);

    for (int a = 0; a < ARGUMENTS && !failed; a++)
        /* Where v was expanded, the leaf is the expanded one. */
        failed = !(strided && a == V && p->shared) &&
                 gradient_differs(&slopes[a], a, grads[a], values->counts[a],
                                  tolerance);
    if (!failed)
        failed = has_rest(p, values, grads[Q], p->d);
    lab_count(lab, failed, "gradients of %s on %s, %s%s", p->name, spec,
              hob_dtype_name(dtype), strided ? ", strided" : "");
    hob_scope_close(scope);
    hob_device_unref(device);
}

void test_gradients(struct lab *lab, const struct problem *p)
{
    static const struct {
        const char *spec;
        hob_dtype dtype;
        double tolerance;
    } rows[] = {
        {"autodiff(flex)", HOB_DTYPE_F64, 1e-8},
        {"autodiff(flex)", HOB_DTYPE_F32, 1e-5},
        {"autodiff(flex)", HOB_DTYPE_F16, 1e-2},
        {"autodiff{checkpoint=balanced}(flex{isa=base})", HOB_DTYPE_F64, 1e-8},
        {"autodiff{checkpoint=balanced}(flex{isa=base})", HOB_DTYPE_F32, 1e-5},
    };
    const size_t count = lab->gpu ? 0 : 2 * sizeof(rows) / sizeof(rows[0]);
    struct slopes slopes[ARGUMENTS] = {{.step = 0}};
    struct values values;
    double *weights = NULL;
    char spec[64];
    int failed = values_make(p, &values) || !(weights = make_weights(&values));

    for (int a = 0; a < ARGUMENTS && !failed; a++)
        failed = find_slopes(p, &values, weights, a, &slopes[a]);
    if (failed)
        lab_count(lab, 1, "no memory");
    if (!failed && lab->gpu) {
        (void)snprintf(spec, sizeof(spec), "autodiff(%s)", lab->gpu);
        test_one(lab, spec, HOB_DTYPE_F32, 1e-5, p, &values, weights, slopes,
                 0);
    }
    for (size_t i = 0; i < count && !failed; i++)
        test_one(lab, rows[i / 2].spec, rows[i / 2].dtype,
                 rows[i / 2].tolerance, p, &values, weights, slopes, i % 2);
    for (int a = 0; a < ARGUMENTS; a++)
        free(slopes[a].direction);
    free(weights);
    values_free(&values);
}

/* Second derivatives: the gradient of the sum of all first gradients times
 * DIRECTION is that of the slope along it. */
static int second_differs(hob_scope *scope, hob_device *once, hob_device *twice,
                          const struct problem *p, struct values *values,
                          const double *weights, double *const *direction)
{
    const int64_t shape[3] = {p->lead, p->s_q, p->d_v};
    hob_tensor *low[ARGUMENTS + 1], *high[ARGUMENTS + 1], *y, *w, *grad;
    hob_tensor *total = NULL;
    hob_grads *first = NULL, *second = NULL;
    hob_error error = HOB_ERROR_INIT;
    int failed;

    make_arguments(scope, once, HOB_DTYPE_F64, p, values, 0, low);
    for (int a = 0; a < ARGUMENTS; a++) {
        low[a] = hob_require_grad(scope, low[a]);
        high[a] = hob_require_grad(scope, hob_to_device(scope, low[a], twice));
    }
    high[ARGUMENTS] =
        low[ARGUMENTS] ? hob_to_device(scope, low[ARGUMENTS], twice) : NULL;
    y = call(scope, p, high);
    w = hob_from_f64(scope, twice, weights, shape, 3);
    failed = hob_backward(scope, hob_mul(scope, y, w), 0, &first, &error) != 0;
    for (int a = 0; a < ARGUMENTS && !failed; a++) {
        failed = hob_grad(scope, high[a], first, &grad, &error) || !grad;
        if (failed)
            break;
        grad = hob_mul(scope, grad,
                       hob_from_f64(scope, once, direction[a],
                                    hob_tensor_shape(low[a]),
                                    hob_tensor_rank(low[a])));
        grad = hob_sum(scope, grad);
        total = total ? hob_add(scope, total, grad) : grad;
    }
    failed = failed || hob_backward(scope, total, 0, &second, &error);
    for (int a = 0; a < ARGUMENTS && !failed; a++) {
        double *got = calloc((size_t)values->counts[a], sizeof(*got));

        failed = !got || hob_grad(scope, low[a], second, &grad, &error) ||
                 !grad || hob_read_f64(grad, got, values->counts[a], &error);
        for (int64_t i = 0; i < values->counts[a] && !failed; i++) {
            const double step = 1e-4, x = values->at[a][i];
            double up, down, wanted;

            values->at[a][i] = x + step;
            up = slope_along(p, values, weights, ARGUMENTS, direction, step);
            values->at[a][i] = x - step;
            down = slope_along(p, values, weights, ARGUMENTS, direction, step);
            values->at[a][i] = x;
            wanted = (up - down) / (2 * step);
            failed = !(fabs(got[i] - wanted) <= 1e-5 * (1 + fabs(wanted)));
            if (failed)
                printf("of %c[%lld] it is %.9g, not %.9g\n", "qkv"[a],
                       (long long)i, got[i], wanted);
        }
        free(got);
    }
    if (error.message)
        printf("%s\n", error.message);
    hob_grads_free(second);
    hob_grads_free(first);
    hob_error_release(&error);
    return failed;
}

static void test_second(struct lab *lab, const struct problem *p)
{
    hob_device *once = lab_device(lab, "autodiff(flex)");
    hob_device *twice = lab_device(lab, "autodiff(autodiff(flex))");
    hob_scope *scope = hob_scope_open(lab->runtime);
    struct values values;
    double *direction[ARGUMENTS], *weights;
    uint32_t state = 5;

    if (values_make(p, &values) || !(weights = make_weights(&values))) {
        lab_count(lab, 1, "no memory");
        return;
    }
    for (int a = 0; a < ARGUMENTS; a++) {
        direction[a] = malloc((size_t)values.counts[a] * sizeof(double));
        for (int64_t i = 0; i < values.counts[a]; i++)
            direction[a][i] = values_next(&state);
    }
    lab_count(
        lab, second_differs(scope, once, twice, p, &values, weights, direction),
        "second derivatives of %s", p->name);
    for (int a = 0; a < ARGUMENTS; a++)
        free(direction[a]);
    free(weights);
    values_free(&values);
    hob_scope_close(scope);
    hob_device_unref(once);
    hob_device_unref(twice);
}

void test_second_gradients(struct lab *lab)
{
    static const struct problem second[] = {
        {"small", 2, 3, 4, 2, 3, NO_MASK, 0, 0, 0},
        {"masked, causal", 1, 5, 4, 3, 2, FULL_MASK, 1, 0, 0.8},
        {"shared keys", 2, 3, 4, 2, 3, KEY_MASK, 0, 1, 0},
    };

    for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++)
        test_second(lab, &second[i]);
}
