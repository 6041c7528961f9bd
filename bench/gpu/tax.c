/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tax.c - what fusion costs where it has nothing to fuse: tax DEVICE. Each op
 * is asked of the device as it is and of fusion(DEVICE), where it is a group of
 * its own, evaluated by itself or with 15 like it that depend on each other.
 *
 * Results are compared at first. All and the host's part, in the order plain,
 * fusion, plain, fusion, so that a clock that moves is to be seen.
 */
#include "timing.h"

#include <hob/hob.h>
#include <hob/ops.h>

#include <stdio.h>

enum { ROW = 16, REPEATS = 2 };

struct op {
    const char *name;
    int64_t shape[2];
    int count; /* of ops before they are evaluated */
    hob_tensor *(*run)(hob_scope *scope, hob_tensor *x, hob_tensor *other);
};

struct work {
    const struct op *op;
    hob_tensor *x, *other;
    hob_tensor *out; /* of the last run */
};

static hob_tensor *neg(hob_scope *scope, hob_tensor *x, hob_tensor *other)
{
    (void)other;
    return hob_neg(scope, x);
}

static hob_tensor *product(hob_scope *scope, hob_tensor *x, hob_tensor *other)
{
    return hob_matmul(scope, x, other);
}

static hob_tensor *cumulate(hob_scope *scope, hob_tensor *x, hob_tensor *other)
{
    (void)other;
    return hob_cumsum(scope, x, 1);
}

static const struct op ops[] = {
    {"neg of 1", {1, 1}, 1, neg},
    {"neg of 1e6", {1000, 1000}, 1, neg},
    {"neg of 1e8", {10000, 10000}, 1, neg},
    {"product 8 x 8", {8, 8}, 1, product},
    {"16 products 8 x 8", {8, 8}, ROW, product},
    {"16 products 512 x 512", {512, 512}, ROW, product},
    {"16 cumsums 8 x 8", {8, 8}, ROW, cumulate},
};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static hob_status run(hob_scope *scope, void *context)
{
    struct work *work = context;
    hob_tensor *x = work->x;

    for (int i = 0; i < work->op->count; i++)
        x = work->op->run(scope, x, work->other);
    work->out = x;
    return hob_eval(&x, 1, NULL);
}

static void make_inputs(struct work *work, hob_scope *scope, hob_device *device)
{
    /* Products of them stay small. */
    const double most = 1.0 / (double)work->op->shape[0];

    work->x = hob_random_uniform(scope, work->op->shape, 2, -1, 1, device,
                                 HOB_DTYPE_F32);
    work->other = hob_random_uniform(scope, work->op->shape, 2, -most, most,
                                     device, HOB_DTYPE_F32);
    (void)!hob_eval(&work->x, 1, NULL);
    (void)!hob_eval(&work->other, 1, NULL);
}

/* How far the devices' results are from each other; negative: none. */
static double difference(hob_scope *root, hob_device *const *devices,
                         const struct op *op)
{
    hob_scope *scope = hob_scope_child(root);
    hob_tensor *results[2] = {NULL, NULL};
    double off = 0;

    for (int i = 0; i < 2; i++) {
        struct work work = {.op = op};

        hob_seed(root, 7);
        make_inputs(&work, scope, devices[i]);
        if (run(scope, &work))
            off = -1;
        results[i] = work.out;
    }
    if (off >= 0)
        off = timing_difference(results);
    hob_scope_close(scope);
    return off;
}

/* Nonzero if it failed. */
static int measure(hob_scope *root, hob_device *const *devices,
                   const struct op *op)
{
    const double off = difference(root, devices, op);

    printf("%-24s", op->name);
    for (int i = 0; i < 2 * REPEATS; i++) {
        hob_scope *scope = hob_scope_child(root);
        struct work work = {.op = op};
        double host = 0, all;

        make_inputs(&work, scope, devices[i % 2]);
        all = timing_of(scope, devices[i % 2], run, &work, &host);
        hob_scope_close(scope);
        if (!(off >= 0 && off < 1e-5) || all < 0) {
            printf(" failed, off by %g\n", off);
            return 1;
        }
        printf("  %s %.3f us, host %.3f", i % 2 ? "fusion" : "plain",
               1e6 * all / op->count, 1e6 * host / op->count);
    }
    printf("\n");
    fflush(stdout);
    return 0;
}

static int measure_all(hob_scope *root, hob_device *const devices[2], int argc,
                       char **argv)
{
    int failed = 0;

    for (int i = 0; i < OPS; i++)
        if (timing_is_asked_for(ops[i].name, argc, argv))
            failed |= measure(root, devices, &ops[i]);
    return failed;
}

int main(int argc, char **argv)
{
    return timing_with_fusion("tax DEVICE [PART-OF-AN-OP'S-NAME...]", "%s",
                              argc, argv, measure_all);
}
