/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_norm_backward.c - the sums over each channel that the gradients of
 * batch_norm are made of, and that of x, in one walk over x and grad.
 *
 * A task is some channels: each is summed by one thread, in f64 from blocks on,
 * so results do not depend on the number of threads.
 */
#include "norm_backward.h"

#include "rows.h"

#include <string.h>

/* Elements at a time, which stay in the first-level cache meanwhile; and the
 * least of a channel of a sample for which the walk pays. */
enum { BLOCK = 1024, PLANE_LEAST = 16 };

/* All of the computing type, which is x's. */
struct backward {
    const struct flex_row_kernels *kernels;
    const char *x, *grad;
    char *out;
    const char *mean, *scale;
    char *total, *moment;
    int64_t samples, channels, plane; /* elements of a channel of a sample */
    int64_t size;
};

static double get(const struct backward *run, const char *vector, int64_t i)
{
    return run->size == 8 ? ((const double *)(const void *)vector)[i]
                          : (double)((const float *)(const void *)vector)[i];
}

static void put(const struct backward *run, char *vector, int64_t i, double x)
{
    if (run->size == 8)
        ((double *)(void *)vector)[i] = x;
    else
        ((float *)(void *)vector)[i] = (float)x;
}

static void run_channel(const struct backward *run, int64_t channel,
                        const void *ones, char *centred)
{
    const double mean = get(run, run->mean, channel);
    const double scale = get(run, run->scale, channel);
    double total = 0, moment = 0;

    for (int64_t n = 0; n < run->samples; n++) {
        const int64_t first = (n * run->channels + channel) * run->plane;

        for (int64_t i = 0; i < run->plane; i += BLOCK) {
            const int64_t left = run->plane - i;
            const int64_t count = left < BLOCK ? left : BLOCK;
            const int64_t at = (first + i) * run->size;

            run->kernels->affine(centred, run->x + at, mean, 1, 0, count);
            moment += run->kernels->dot(centred, run->grad + at, count);
            total += run->kernels->dot(ones, run->grad + at, count);
            run->kernels->affine(run->out + at, run->grad + at, 0, scale, 0,
                                 count);
        }
    }
    put(run, run->total, channel, total);
    put(run, run->moment, channel, moment);
}

static void run_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    const struct backward *run = context;
    _Alignas(FLEX_ALIGN) char ones[BLOCK * 8], centred[BLOCK * 8];

    (void)worker;
    for (int64_t i = 0; i < BLOCK; i++)
        put(run, ones, i, 1);
    for (int64_t i = first; i < last; i++)
        run_channel(run, i, ones, centred);
}

static int64_t plane_of(const struct hob_view *x)
{
    int64_t plane = 1;

    for (uint32_t i = 2; i < x->rank; i++)
        plane *= x->shape[i];
    return plane;
}

hob_status flex_batch_norm_backward_prepare(void *device,
                                            const struct hob_call *call,
                                            struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return plane_of(hob_arg_view(call, 0)) < PLANE_LEAST ? HOB_ERR_UNSUPPORTED
                                                         : HOB_OK;
}

hob_status flex_batch_norm_backward(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct backward run = {.kernels = flex_row_kernels(device, x->dtype),
                           .x = x->data,
                           .grad = hob_arg_view(call, 3)->data,
                           .out = hob_ret_view(call, 0)->data,
                           .mean = hob_arg_view(call, 1)->data,
                           .scale = hob_arg_view(call, 2)->data,
                           .total = hob_ret_view(call, 1)->data,
                           .moment = hob_ret_view(call, 2)->data,
                           .samples = x->shape[0],
                           .channels = x->shape[1],
                           .plane = plane_of(x),
                           .size = hob_dtype_size(x->dtype)};
    const int64_t work = run.samples * run.plane;

    flex_parallel(device, run.channels, 1 + FLEX_GRAIN_CHEAP / 4 / (work + 1),
                  run_range, &run);
    return HOB_OK;
}
