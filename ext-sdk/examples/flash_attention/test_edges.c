/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_edges.c - wrong arguments, groups, threads and memory.
 */
#include "test.h"

#include "flash_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- wrong arguments ---- */

static void test_refusals(struct lab *lab, hob_device *device)
{
    static const struct {
        int64_t q[3], k[3], v[3], mask[3]; /* 0: no more dimensions */
        double scale;
        hob_status status;
        const char *message;
    } rows[] = {
        {{3}, {3}, {3}, {0}, 1, HOB_ERR_SHAPE, "q is [3]; it must have at "},
        {{2, 3}, {3}, {2, 3}, {0}, 1, HOB_ERR_SHAPE, "k is [3]; it must have"},
        {{2, 3},
         {2, 4},
         {2, 3},
         {0},
         1,
         HOB_ERR_SHAPE,
         "q is [2, 3], k is [2, 4]; their last dimensions must be equal"},
        {{2, 3},
         {2, 3},
         {4, 3},
         {0},
         1,
         HOB_ERR_SHAPE,
         "k is [2, 3], v is [4, 3]; their second last dimensions"},
        {{2, 2, 3},
         {3, 2, 3},
         {2, 2, 3},
         {0},
         1,
         HOB_ERR_SHAPE,
         "leading dimensions do not broadcast: q is [2, 2, 3], k is [3, 2, 3]"},
        {{5, 2, 3},
         {4, 3},
         {4, 3},
         {3, 4},
         1,
         HOB_ERR_SHAPE,
         "mask is [3, 4]; it must broadcast to the scores, [5, 2, 4]"},
        {{2, 3},
         {4, 3},
         {4, 3},
         {7, 2, 4},
         1,
         HOB_ERR_SHAPE,
         "mask is [7, 2, 4]; it must broadcast to the scores, [2, 4]"},
        {{2, 3},
         {4, 3},
         {4, 3},
         {0},
         NAN,
         HOB_ERR_ARGUMENT,
         "scale is nan; it must be finite"},
        {{2, 3},
         {4, 3},
         {4, 3},
         {0},
         INFINITY,
         HOB_ERR_ARGUMENT,
         "scale is inf; it must be finite"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t *shapes[4] = {rows[i].q, rows[i].k, rows[i].v,
                                    rows[i].mask};
        hob_scope *scope = hob_scope_open(lab->runtime);
        hob_error error = HOB_ERROR_INIT;
        hob_tensor *tensors[4] = {NULL};

        for (int a = 0; a < 4; a++) {
            uint32_t rank = 0;

            while (rank < 3 && shapes[a][rank])
                rank++;
            if (rank)
                tensors[a] = hob_zeros(scope, shapes[a], rank, device,
                                       a == 3 ? HOB_DTYPE_BOOL : HOB_DTYPE_F32);
        }
        (void)flash_attention(scope, tensors[0], tensors[1], tensors[2],
                              tensors[3], hob_f64(rows[i].scale), 0);
        lab_count(lab,
                  hob_scope_error(scope, &error) != rows[i].status ||
                      !strstr(error.message, rows[i].message) ||
                      !strstr(error.message, "flash.attention"),
                  "\"%s\" expected, not \"%s\"", rows[i].message,
                  error.message ? error.message : "");
        hob_error_release(&error);
        hob_scope_clear_error(scope);
        hob_scope_close(scope);
    }
}

/* The gradient's own arguments. */
static void test_gradient_refusals(struct lab *lab, hob_device *device)
{
    static const char *const messages[2] = {
        "out is [2, 3]; it must have the shape of flash.attention's result, "
        "[2, 5]",
        "grad is [2, 3]; it must have the shape"};

    for (int i = 0; i < 2; i++) {
        hob_scope *scope = hob_scope_open(lab->runtime);
        hob_error error = HOB_ERROR_INIT;
        hob_tensor *q =
            hob_zeros(scope, (int64_t[]){2, 3}, 2, device, HOB_DTYPE_F32);
        hob_tensor *v =
            hob_zeros(scope, (int64_t[]){2, 5}, 2, device, HOB_DTYPE_F32);
        hob_tensor *out[3];

        (void)flash_attention_grad(scope, q, q, v, i == 0 ? q : v,
                                   i == 1 ? q : v, NULL, hob_none(), 0, &out[0],
                                   &out[1], &out[2]);
        lab_count(lab,
                  hob_scope_error(scope, &error) != HOB_ERR_SHAPE ||
                      !strstr(error.message, messages[i]),
                  "\"%s\" expected, not \"%s\"", messages[i],
                  error.message ? error.message : "");
        hob_error_release(&error);
        hob_scope_clear_error(scope);
        hob_scope_close(scope);
    }
}

/* ---- groups, threads and memory ---- */

/* Queries in groups that share keys: as if those were repeated, and their
 * gradients are summed. */
static void test_groups(struct lab *lab)
{
    enum { QUERIES = 3 * 2 * 5 * 4, KEYS = 3 * 7 * 4 };
    static const int64_t q_shape[4] = {3, 2, 5, 4}, k_shape[4] = {3, 1, 7, 4};
    static const int64_t repeated[4] = {3, 2, 7, 4};
    hob_device *device = lab_device(lab, "autodiff(flex)");
    hob_scope *scope = hob_scope_open(lab->runtime);
    double data[2][ARGUMENTS][QUERIES] = {{{0}}}, numbers[QUERIES];
    hob_error error = HOB_ERROR_INIT;
    uint32_t state = 3;
    int failed = !device;

    for (int way = 0; way < 2 && !failed; way++) {
        hob_tensor *args[ARGUMENTS], *used[ARGUMENTS], *y, *grad;
        hob_grads *grads = NULL;

        for (int i = 0; i < QUERIES; i++)
            numbers[i] = values_next(&state);
        state = 3;
        for (int a = 0; a < ARGUMENTS; a++) {
            args[a] = hob_require_grad(
                scope, hob_from_f64(scope, device, numbers + a,
                                    a == Q ? q_shape : k_shape, 4));
            used[a] = way && a != Q ? hob_expand(scope, args[a], repeated, 4)
                                    : args[a];
        }
        y = flash_attention(scope, used[Q], used[K], used[V], NULL, hob_none(),
                            1);
        failed = hob_backward(scope, hob_mul(scope, y, y), 0, &grads, &error);
        for (int a = 0; a < ARGUMENTS && !failed; a++)
            failed = hob_grad(scope, args[a], grads, &grad, &error) || !grad ||
                     hob_read_f64(grad, data[way][a], a == Q ? QUERIES : KEYS,
                                  &error);
        hob_grads_free(grads);
    }
    lab_count(lab, failed || memcmp(data[0], data[1], sizeof(data[0])),
              "groups: %s", error.message ? error.message : "they differ");
    hob_error_release(&error);
    hob_scope_close(scope);
    hob_device_unref(device);
}

/* The result and gradients of a problem with so many threads, in BYTES bytes
 * of OUT one after the other. */
static int run_threads(uint32_t threads, const struct problem *p,
                       const struct values *values, char *out)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    int failed;

    options.policy = HOB_POLICY_REPORT;
    options.threads = threads;
    failed = hob_runtime_open(&options, &runtime, &error) ||
             hob_device_open(runtime, "autodiff(flex)", &device, &error);
    if (!failed) {
        hob_scope *scope = hob_scope_open(runtime);
        hob_tensor *args[ARGUMENTS + 1], *y, *grad;

        make_arguments(scope, device, HOB_DTYPE_F32, p, values, 0, args);
        for (int a = 0; a < ARGUMENTS; a++)
            args[a] = hob_require_grad(scope, args[a]);
        y = call(scope, p, args);
        failed = hob_read(y, out, (uint64_t)values->out_count * 4, &error) ||
                 hob_backward(scope, hob_mul(scope, y, y), 0, &grads, &error);
        out += values->out_count * 4;
        for (int a = 0; a < ARGUMENTS && !failed; a++) {
            failed =
                hob_grad(scope, args[a], grads, &grad, &error) ||
                hob_read(grad, out, (uint64_t)values->counts[a] * 4, &error);
            out += values->counts[a] * 4;
        }
        hob_grads_free(grads);
        hob_scope_close(scope);
    }
    if (failed)
        printf("%s\n", error.message ? error.message : "?");
    hob_device_unref(device);
    failed |= hob_runtime_close(runtime, NULL) != 0;
    hob_error_release(&error);
    return failed;
}

static void test_threads(struct lab *lab)
{
    const struct problem p = {"", 2, 300, 280, 16, 16, FULL_MASK, 1, 0, 0};
    struct values values;
    size_t bytes = 0;
    char *one, *many;
    int failed = values_make(&p, &values);

    for (int a = 0; a < ARGUMENTS; a++)
        bytes += (size_t)values.counts[a] * 4;
    bytes += (size_t)values.out_count * 4;
    one = calloc(1, bytes);
    many = calloc(1, bytes);
    failed = failed || !one || !many || run_threads(1, &p, &values, one) ||
             run_threads(5, &p, &values, many) || memcmp(one, many, bytes);
    lab_count(lab, failed, "the same bits with 1 and with 5 threads");
    free(one);
    free(many);
    values_free(&values);
}

/* 12,000 queries and keys: scores would be 576 MB, and are never there. */
static void test_memory(struct lab *lab)
{
    enum { LENGTH = 12000, SIZE = 4, LIMIT_KB = 100 << 10 };
    hob_device *device = lab_device(lab, "autodiff(flex)");
    hob_scope *scope = hob_scope_open(lab->runtime);
    const int64_t shape[2] = {LENGTH, SIZE};
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    struct rusage before, after;
    hob_tensor *args[ARGUMENTS], *y;
    int failed;

    for (int a = 0; a < ARGUMENTS; a++)
        args[a] =
            hob_require_grad(scope, hob_random_normal(scope, shape, 2, 0, 1,
                                                      device, HOB_DTYPE_F32));
    (void)getrusage(RUSAGE_SELF, &before);
    y = flash_attention(scope, args[Q], args[K], args[V], NULL, hob_none(), 1);
    failed = hob_backward(scope, y, 0, &grads, &error) != 0;
    (void)getrusage(RUSAGE_SELF, &after);
    failed |= after.ru_maxrss - before.ru_maxrss > LIMIT_KB;
    lab_count(lab, failed, "memory: %ld KB for %d queries, %s",
              after.ru_maxrss - before.ru_maxrss, LENGTH,
              error.message ? error.message : "no error");
    hob_grads_free(grads);
    hob_error_release(&error);
    hob_scope_close(scope);
    hob_device_unref(device);
}

void test_edges(struct lab *lab)
{
    hob_device *device = lab_device(lab, "flex");

    if (!device)
        return;
    test_refusals(lab, device);
    test_gradient_refusals(lab, device);
    hob_device_unref(device);
    test_groups(lab);
    test_threads(lab);
    if (lab->has_kernels)
        test_memory(lab);
}
