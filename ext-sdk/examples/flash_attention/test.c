/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.c - flash.attention against its definition in double.
 */
#include "test.h"

#include "flash_attention.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct problem problems[] = {
    {"one", 1, 1, 1, 1, 1, NO_MASK, 0, 0, 0},
    {"small", 2, 5, 7, 3, 4, NO_MASK, 0, 0, 0},
    {"masked", 3, 17, 33, 19, 13, FULL_MASK, 0, 0, 0.3},
    {"turned mask", 2, 33, 17, 8, 16, TURNED_MASK, 0, 0, 0},
    {"keys hidden", 2, 40, 130, 64, 64, KEY_MASK, 0, 0, 0},
    {"queries hidden", 2, 40, 130, 24, 8, QUERY_MASK, 1, 0, 0},
    {"square, causal", 2, 200, 200, 16, 16, NO_MASK, 1, 0, 0},
    {"more keys, causal", 2, 150, 301, 19, 13, NO_MASK, 1, 0, 0},
    {"more queries, causal", 1, 301, 150, 8, 5, NO_MASK, 1, 0, 0},
    {"mask and causal", 2, 150, 140, 20, 24, FULL_MASK, 1, 0, -0.7},
    {"shared keys", 3, 9, 11, 5, 6, NO_MASK, 0, 1, 0},
    {"one query", 4, 1, 300, 32, 32, NO_MASK, 1, 0, 0},
    {"no keys", 2, 3, 0, 4, 5, NO_MASK, 0, 0, 0},
    {"no queries", 2, 0, 3, 4, 5, NO_MASK, 1, 0, 0},
    {"no batch", 0, 3, 3, 4, 5, NO_MASK, 0, 0, 0},
    {"no size", 2, 3, 4, 0, 5, NO_MASK, 0, 0, 0},
    {"no values", 2, 3, 4, 5, 0, NO_MASK, 1, 0, 0},
};
enum { PROBLEMS = sizeof(problems) / sizeof(problems[0]) };

void lab_count(struct lab *lab, int failed, const char *format, ...)
{
    va_list args;

    lab->passed += !failed;
    lab->failed += failed != 0;
    if (!failed)
        return;
    printf("FAIL: ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("%s\n", lab->has_kernels ? "" : " (the bodies)");
}

hob_device *lab_device(struct lab *lab, const char *spec)
{
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;

    if (hob_device_open(lab->runtime, spec, &device, &error))
        lab_count(lab, 1, "%s: %s", spec, error.message);
    hob_error_release(&error);
    return device;
}

int lab_has_isa(struct lab *lab, const char *isa)
{
    hob_device *device = NULL;
    char spec[32];
    int found;

    (void)snprintf(spec, sizeof(spec), "flex{isa=%s}", isa);
    found = !hob_device_open(lab->runtime, spec, &device, NULL);
    hob_device_unref(device);
    return found;
}

/* DATA [lead, ROWS, COLUMNS] of 8 or 1 bytes with the last two exchanged. */
static void turn(void *out, const void *data, int64_t lead, int64_t rows,
                 int64_t columns, size_t size)
{
    for (int64_t b = 0; b < lead; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                memcpy((char *)out +
                           (size_t)((b * columns + j) * rows + i) * size,
                       (const char *)data +
                           (size_t)((b * rows + i) * columns + j) * size,
                       size);
}

/* TENSOR [.., rows, columns] with its rows in the opposite order, a view. */
static hob_tensor *backwards(hob_scope *scope, hob_tensor *tensor)
{
    const uint32_t rank = (uint32_t)hob_tensor_rank(tensor);
    int64_t starts[3] = {0, 0, 0}, steps[3] = {1, 1, 1};

    steps[rank - 2] = -1;
    return hob_slice(scope, tensor, starts, rank, hob_tensor_shape(tensor),
                     rank, steps, rank);
}

static hob_tensor *make_mask(hob_scope *scope, hob_device *device,
                             const struct problem *p,
                             const struct values *values)
{
    const int64_t count = p->lead * p->s_q * p->s_k;
    const int64_t full[3] = {p->lead, p->s_q, p->s_k};
    const int64_t turned[3] = {p->lead, p->s_k, p->s_q};
    uint8_t *data = malloc((size_t)(count + p->s_q) + 1);
    hob_tensor *mask = NULL;

    if (p->mask == FULL_MASK || p->mask == KEY_MASK)
        mask = hob_from_data(scope, device, HOB_DTYPE_BOOL, values->mask,
                             p->mask == KEY_MASK ? &full[2] : full,
                             p->mask == KEY_MASK ? 1 : 3);
    if (p->mask == QUERY_MASK) {
        for (int64_t i = 0; i < p->s_q; i++)
            data[i] = values->mask[i * p->s_k];
        mask = hob_from_data(scope, device, HOB_DTYPE_BOOL, data,
                             (int64_t[]){p->s_q, 1}, 2);
    }
    if (p->mask == TURNED_MASK) {
        turn(data, values->mask, p->lead, p->s_q, p->s_k, 1);
        mask = hob_swap_dims(
            scope,
            hob_from_data(scope, device, HOB_DTYPE_BOOL, data, turned, 3), 1,
            2);
    }
    free(data);
    return mask;
}

void make_arguments(hob_scope *scope, hob_device *device, hob_dtype dtype,
                    const struct problem *p, const struct values *values,
                    int strided, hob_tensor *out[ARGUMENTS + 1])
{
    const int64_t columns[ARGUMENTS] = {p->d, p->d, p->d_v};
    const int64_t rows[ARGUMENTS] = {p->s_q, p->s_k, p->s_k};
    double *turned = malloc(((size_t)values->counts[Q] + 1) * sizeof(double));

    for (int a = 0; a < ARGUMENTS; a++) {
        const int shared = a != Q && p->shared;
        const int64_t shape[3] = {p->lead, rows[a], columns[a]};
        const int64_t turned_shape[3] = {p->lead, columns[a], rows[a]};
        const int is_turned = strided && a == Q;

        if (is_turned)
            turn(turned, values->at[a], p->lead, rows[a], columns[a],
                 sizeof(double));
        out[a] = hob_cast(
            scope,
            hob_from_f64(scope, device, is_turned ? turned : values->at[a],
                         (is_turned ? turned_shape : shape) + shared,
                         3 - shared),
            dtype);
        if (is_turned)
            out[a] = hob_swap_dims(scope, out[a], 1, 2);
        /* Twice backwards is forwards, with a copy in between. */
        if (strided && a == K)
            out[a] =
                backwards(scope, hob_mul_scalar(scope, backwards(scope, out[a]),
                                                hob_f64(1)));
        if (strided && a == V && shared)
            out[a] = hob_expand(scope, out[a], shape, 3);
    }
    out[ARGUMENTS] = p->mask ? make_mask(scope, device, p, values) : NULL;
    free(turned);
}

hob_tensor *call(hob_scope *scope, const struct problem *p,
                 hob_tensor *const args[ARGUMENTS + 1])
{
    return flash_attention(scope, args[Q], args[K], args[V], args[ARGUMENTS],
                           p->scale != 0 ? hob_f64(p->scale) : hob_none(),
                           p->causal);
}

int differs(const char *what, hob_tensor *tensor, const double *wanted,
            int64_t count, double tolerance)
{
    hob_error error = HOB_ERROR_INIT;
    double *got = malloc(((size_t)count + 1) * sizeof(*got));
    int failed = 0;

    if (!got || hob_read_f64(tensor, got, count, &error)) {
        printf("%s: %s\n", what, error.message ? error.message : "no memory");
        failed = 1;
    }
    for (int64_t i = 0; i < count && !failed; i++) {
        if (got[i] == wanted[i] || (isnan(wanted[i]) && isnan(got[i])) ||
            fabs(got[i] - wanted[i]) <= tolerance * (1 + fabs(wanted[i])))
            continue;
        printf("%s[%lld] is %.9g, not %.9g\n", what, (long long)i, got[i],
               wanted[i]);
        failed = 1;
    }
    free(got);
    hob_error_release(&error);
    return failed;
}

int has_rest(const struct problem *p, const struct values *values,
             hob_tensor *rows, int64_t columns)
{
    const int64_t count = p->lead * p->s_q * columns;
    double *got = malloc(((size_t)count + 1) * sizeof(*got));
    hob_error error = HOB_ERROR_INIT;
    int failed = !got || hob_read_f64(rows, got, count, &error);

    for (int64_t i = 0; i < count && !failed; i++) {
        const int64_t row = i / columns;

        failed = got[i] != 0 && is_dead(p, values, row / p->s_q, row % p->s_q);
    }
    free(got);
    hob_error_release(&error);
    return failed;
}

/* ---- values ---- */

static void test_values(struct lab *lab, const char *spec,
                        const struct problem *p, hob_dtype dtype,
                        double tolerance)
{
    hob_device *device = lab_device(lab, spec);
    struct values values;

    if (!device)
        return;
    if (values_make(p, &values)) {
        lab_count(lab, 1, "no memory");
        return;
    }
    attend(p, &values);
    for (int strided = 0; strided < 2; strided++) {
        hob_scope *scope = hob_scope_open(lab->runtime);
        hob_tensor *args[ARGUMENTS + 1], *out;

        make_arguments(scope, device, dtype, p, &values, strided, args);
        out = call(scope, p, args);
        lab_count(
            lab,
            hob_tensor_dtype(out) != dtype ||
                differs("out", out, values.out, values.out_count, tolerance) ||
                has_rest(p, &values, out, p->d_v),
            "%s on %s, %s%s", p->name, spec, hob_dtype_name(dtype),
            strided ? ", strided" : "");
        hob_scope_close(scope);
    }
    values_free(&values);
    hob_device_unref(device);
}

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

/* A GPU has f32 and halves in its kernel; weights come by way of exponents to
 * the base 2, which are rounded as all of a score is. */
static void run_on_gpu(struct lab *lab)
{
    for (int i = 0; i < PROBLEMS; i++) {
        test_values(lab, lab->gpu, &problems[i], HOB_DTYPE_F32, 3e-6);
        test_values(lab, lab->gpu, &problems[i], HOB_DTYPE_F16, 6e-4);
        test_values(lab, lab->gpu, &problems[i], HOB_DTYPE_BF16, 5e-3);
        test_gradients(lab, &problems[i]);
    }
    test_infinite(lab);
}

static void run_tests(struct lab *lab)
{
    const int has_v3 = lab_has_isa(lab, "v3");

    /* One rounding of the result, and in the kernels few more: weights and
     * values are at most 1. The rest of each bound is room. */
    for (int i = 0; i < PROBLEMS; i++) {
        const struct problem *p = &problems[i];

        test_values(lab, "flex", p, HOB_DTYPE_F64, 1e-14);
        test_values(lab, "flex", p, HOB_DTYPE_F32, 1e-6);
        test_values(lab, "flex", p, HOB_DTYPE_F16, 6e-4);
        test_values(lab, "flex", p, HOB_DTYPE_BF16, 5e-3);
        test_values(lab, "flex{isa=base}", p, HOB_DTYPE_F64, 1e-14);
        test_values(lab, "flex{isa=base}", p, HOB_DTYPE_F32, 1e-6);
        if (has_v3) {
            test_values(lab, "flex{isa=v3}", p, HOB_DTYPE_F64, 1e-14);
            test_values(lab, "flex{isa=v3}", p, HOB_DTYPE_F32, 1e-6);
        }
        test_gradients(lab, p);
    }
    test_second_gradients(lab);
    test_infinite(lab);
    test_edges(lab);
}

/* "bodies" as an argument: the extension has no kernels. */
int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    struct lab lab = {.has_kernels = argc < 2 || strcmp(argv[1], "bodies"),
                      .gpu = getenv("HOB_TEST_DEVICE")};

    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    options.debug = 1; /* poisons memory, compares metadata */
    if (hob_runtime_open(&options, &lab.runtime, &error)) {
        printf("%s\n", error.message);
        return 1;
    }
    if (lab.gpu)
        run_on_gpu(&lab);
    else
        run_tests(&lab);
    lab_count(&lab, hob_runtime_close(lab.runtime, &error) != 0, "close: %s",
              error.message ? error.message : "");
    hob_error_release(&error);
    printf("%s: %d passed, %d failed\n", lab.has_kernels ? "kernels" : "bodies",
           lab.passed, lab.failed);
    return lab.failed != 0;
}
