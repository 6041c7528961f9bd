/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fashion.c - steps of examples/fashion on one device, op by op and under
 * fusion: fashion DEVICE [BATCH...].
 *
 * As the example makes them: the batch's places are uploaded, images and labels
 * picked by them, then forward, backward and Adam, and the loss is added to a
 * sum that nobody reads meanwhile. Both train in turns in one process, a
 * twentieth of a second each, who begins by turns too, so that a machine that
 * changes its pace changes it for both. Medians over the rounds, and of the
 * ratio in a round. Before, ten steps of both have to have the same losses.
 */
#include "net.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 60000, MOST_BATCH = 8192, ROUNDS = 31, CHECKED = 10 };

static const double round_seconds = 0.05;

/* One of the two. */
struct trainee {
    hob_device *device; /* autodiff over it */
    hob_scope *root;
    struct net net;
    hob_tensor *images, *labels, *loss_sum;
    int64_t batch;
    uint64_t drawn; /* places so far */
    double samples[ROUNDS];
};

/* Images of noise, and labels. */
static void make_data(struct trainee *one)
{
    const int64_t shape[2] = {IMAGES, NET_INPUT};
    hob_scope *root = one->root;
    uint8_t *pixels = malloc((size_t)IMAGES * NET_INPUT);
    uint32_t words[4];

    for (int64_t i = 0; pixels && i < IMAGES * NET_INPUT; i += 16) {
        hob_philox(3, (uint64_t)i, words);
        memcpy(pixels + i, words, sizeof(words));
    }
    if (!pixels)
        exit(1);
    one->images =
        hob_from_data(root, one->device, HOB_DTYPE_U8, pixels, shape, 2);
    for (int64_t i = 0; i < IMAGES; i++)
        pixels[i] %= NET_CLASSES;
    one->labels =
        hob_from_data(root, one->device, HOB_DTYPE_U8, pixels, shape, 1);
    one->labels = hob_cast(root, one->labels, HOB_DTYPE_I32);
    free(pixels);
}

/* A step; its loss to *OUT_LOSS if that is given, which waits. */
static hob_status step(struct trainee *one, double *out_loss)
{
    hob_scope *scope = hob_scope_child(one->root);
    int32_t places[MOST_BATCH];
    hob_tensor *rows, *loss;
    hob_status status = HOB_OK;

    for (int64_t i = 0; i < one->batch; i++) {
        uint32_t words[4];

        hob_philox(5, one->drawn++, words);
        places[i] = (int32_t)(words[0] % IMAGES);
    }
    rows = hob_from_i32(scope, one->device, places, &one->batch, 1);
    loss = net_train(&one->net, one->root, scope,
                     hob_select(scope, one->images, rows, 0),
                     hob_select(scope, one->labels, rows, 0), 1e-3);
    if (out_loss)
        status = hob_item(loss, out_loss, NULL);
    hob_assign(one->root, &one->loss_sum,
               one->loss_sum
                   ? hob_add(scope, hob_move(scope, one->loss_sum), loss)
                   : loss);
    if (!status)
        status = hob_scope_error(scope, NULL);
    hob_scope_close(scope);
    return status;
}

/* Seconds of one of COUNT steps, all of them waited for; negative: failed. */
static double time_steps(struct trainee *one, int count)
{
    const double begin = timing_now();

    for (int i = 0; i < count; i++)
        if (step(one, NULL))
            return -1;
    if (hob_device_sync(one->device, NULL))
        return -1;
    return (timing_now() - begin) / count;
}

static int begin(struct trainee *one, hob_scope *root, hob_device *device,
                 int64_t batch)
{
    memset(one, 0, sizeof(*one));
    one->device = device;
    one->root = hob_scope_child(root);
    one->batch = batch;
    make_data(one);
    return net_init(&one->net, one->root, device, 1, NULL) != HOB_OK;
}

/* Nonzero if the two do not train alike. */
static int differ(struct trainee *two)
{
    for (int i = 0; i < CHECKED; i++) {
        double losses[2] = {NAN, NAN};

        for (int k = 0; k < 2; k++)
            if (step(&two[k], &losses[k]))
                return 1;
        if (!(fabs(losses[0] - losses[1]) <= 1e-3 * losses[0])) {
            printf("WRONG: step %d has the losses %g and %g\n", i, losses[0],
                   losses[1]);
            return 1;
        }
    }
    return 0;
}

static int measure(hob_scope *root, hob_device *const devices[2], int64_t batch)
{
    struct trainee two[2];
    double ratios[ROUNDS];
    int counts[2] = {200, 200}; /* at first: kernels are compiled meanwhile */
    int failed = begin(&two[0], root, devices[0], batch);

    failed |= begin(&two[1], root, devices[1], batch);
    failed = failed || differ(two);
    for (int i = -3; i < ROUNDS && !failed; i++) {
        for (int k = 0; k < 2 && !failed; k++) {
            struct trainee *one = &two[(i + k) & 1];
            const int at = (i + k) & 1;
            const double each = time_steps(one, counts[at]);

            failed = each < 0;
            if (i < 0 && !failed)
                counts[at] = (int)(round_seconds / each) + 1;
            one->samples[i < 0 ? 0 : i] = each;
        }
        ratios[i < 0 ? 0 : i] =
            two[1].samples[i < 0 ? 0 : i] / two[0].samples[i < 0 ? 0 : i];
    }
    if (failed)
        printf("batch %d: failed\n", (int)batch);
    else
        printf("batch %-5d  op by op %7.1f us  fusion %7.1f us  ratio %.3f\n",
               (int)batch, 1e6 * timing_median(two[0].samples, ROUNDS),
               1e6 * timing_median(two[1].samples, ROUNDS),
               timing_median(ratios, ROUNDS));
    fflush(stdout);
    hob_scope_close(two[1].root);
    hob_scope_close(two[0].root);
    return failed;
}

static int measure_all(hob_scope *root, hob_device *const devices[2], int argc,
                       char **argv)
{
    static const int64_t batches[] = {2, 128, 1024, 8192};
    int failed = 0;

    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        int is_asked = argc < 3;

        for (int k = 2; k < argc; k++)
            is_asked |= strtol(argv[k], NULL, 10) == batches[i];
        if (is_asked)
            failed |= measure(root, devices, batches[i]);
    }
    return failed;
}

int main(int argc, char **argv)
{
    return timing_with_fusion("fashion DEVICE [BATCH...]", "autodiff(%s)", argc,
                              argv, measure_all);
}
