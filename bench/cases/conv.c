/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - windows over images: C18 convolutions, C19 pooling.
 *
 * n: 0 stride, 1 padding, 2 groups, 3 the window of a pool, 4 and 5 the height
 * and width of the result.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>

enum { STRIDE, PADDING, GROUPS, WINDOW, HEIGHT, WIDTH };

/* Where an element of a result [batch, channel, row, column] is. */
struct place {
    int64_t batch, channel, row, column;
};

static struct place place_of(const struct bench_case *c, int64_t channels,
                             int64_t at)
{
    struct place p;

    p.column = at % c->n[WIDTH];
    at /= c->n[WIDTH];
    p.row = at % c->n[HEIGHT];
    at /= c->n[HEIGHT];
    p.channel = at % channels;
    p.batch = at / channels;
    return p;
}

/* Element of an image; OUTSIDE beyond its edges. */
static double pixel(const struct bench_array *in, int64_t batch,
                    int64_t channel, int64_t row, int64_t column,
                    double outside)
{
    const int64_t *shape = in->input->shape;

    if (row < 0 || row >= shape[2] || column < 0 || column >= shape[3])
        return outside;
    return bench_get(
        in,
        ((batch * shape[1] + channel) * shape[2] + row) * shape[3] + column);
}

/* ---- C18 ---- */

static hob_tensor *conv(hob_scope *scope, hob_tensor *const *in,
                        const struct bench_case *c)
{
    const int64_t stride[2] = {c->n[STRIDE], c->n[STRIDE]};
    const int64_t padding[2] = {c->n[PADDING], c->n[PADDING]};
    const int64_t dilation[2] = {1, 1};

    return hob_conv2d(scope, in[0], in[1], NULL, stride, 2, padding, 2,
                      dilation, 2, c->n[GROUPS]);
}

static double conv_at(const struct bench_case *c, const struct bench_array *in,
                      int64_t at)
{
    const int64_t *weight = in[1].input->shape; /* out, in, rows, columns */
    const struct place p = place_of(c, weight[0], at);
    const int64_t first = p.channel / (weight[0] / c->n[GROUPS]) * weight[1];
    double sum = 0;

    for (int64_t i = 0; i < weight[1]; i++)
        for (int64_t y = 0; y < weight[2]; y++)
            for (int64_t x = 0; x < weight[3]; x++)
                sum += pixel(&in[0], p.batch, first + i,
                             p.row * c->n[STRIDE] - c->n[PADDING] + y,
                             p.column * c->n[STRIDE] - c->n[PADDING] + x, 0) *
                       pixel(&in[1], p.channel, i, y, x, 0);
    return sum;
}

static hob_tensor *transposed(hob_scope *scope, hob_tensor *const *in,
                              const struct bench_case *c)
{
    const int64_t stride[2] = {c->n[STRIDE], c->n[STRIDE]};
    const int64_t padding[2] = {c->n[PADDING], c->n[PADDING]};
    const int64_t none[2] = {0, 0}, dilation[2] = {1, 1};

    return hob_conv_transpose2d(scope, in[0], in[1], NULL, stride, 2, padding,
                                2, none, 2, dilation, 2, 1);
}

static double transposed_at(const struct bench_case *c,
                            const struct bench_array *in, int64_t at)
{
    const int64_t *weight = in[1].input->shape; /* in, out, rows, columns */
    const struct place p = place_of(c, weight[1], at);
    double sum = 0;

    for (int64_t y = 0; y < weight[2]; y++)
        for (int64_t x = 0; x < weight[3]; x++) {
            const int64_t row = p.row + c->n[PADDING] - y;
            const int64_t column = p.column + c->n[PADDING] - x;

            if (row < 0 || column < 0 || row % c->n[STRIDE] ||
                column % c->n[STRIDE])
                continue;
            for (int64_t i = 0; i < weight[0]; i++)
                sum += pixel(&in[0], p.batch, i, row / c->n[STRIDE],
                             column / c->n[STRIDE], 0) *
                       pixel(&in[1], i, p.channel, y, x, 0);
        }
    return sum;
}

/* ---- C19 ---- */

static hob_tensor *max_pool(hob_scope *scope, hob_tensor *const *in,
                            const struct bench_case *c)
{
    const int64_t window[2] = {c->n[WINDOW], c->n[WINDOW]};
    const int64_t stride[2] = {c->n[STRIDE], c->n[STRIDE]};
    const int64_t padding[2] = {c->n[PADDING], c->n[PADDING]};
    const int64_t dilation[2] = {1, 1};

    return hob_max_pool2d(scope, in[0], window, 2, stride, 2, padding, 2,
                          dilation, 2, 0);
}

static double max_pool_at(const struct bench_case *c,
                          const struct bench_array *in, int64_t at)
{
    const struct place p = place_of(c, c->in[0].shape[1], at);
    double most = -INFINITY;

    for (int64_t y = 0; y < c->n[WINDOW]; y++)
        for (int64_t x = 0; x < c->n[WINDOW]; x++) {
            const double value =
                pixel(&in[0], p.batch, p.channel,
                      p.row * c->n[STRIDE] - c->n[PADDING] + y,
                      p.column * c->n[STRIDE] - c->n[PADDING] + x, -INFINITY);

            if (value > most)
                most = value;
        }
    return most;
}

static hob_tensor *avg_pool(hob_scope *scope, hob_tensor *const *in,
                            const struct bench_case *c)
{
    const int64_t window[2] = {c->n[WINDOW], c->n[WINDOW]};
    const int64_t stride[2] = {c->n[STRIDE], c->n[STRIDE]};
    const int64_t padding[2] = {c->n[PADDING], c->n[PADDING]};

    return hob_avg_pool2d(scope, in[0], window, 2, stride, 2, padding, 2, 1, 0);
}

static double avg_pool_at(const struct bench_case *c,
                          const struct bench_array *in, int64_t at)
{
    const struct place p = place_of(c, c->in[0].shape[1], at);
    double sum = 0;

    for (int64_t y = 0; y < c->n[WINDOW]; y++)
        for (int64_t x = 0; x < c->n[WINDOW]; x++)
            sum += pixel(&in[0], p.batch, p.channel,
                         p.row * c->n[STRIDE] - c->n[PADDING] + y,
                         p.column * c->n[STRIDE] - c->n[PADDING] + x, 0);
    return sum / (double)(c->n[WINDOW] * c->n[WINDOW]);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
/* BATCH images of IN channels and SIZE squared pixels to OUT channels of
 * TO squared, by squares of KERNEL; TORCH has stride, padding and groups. */
#define CONV(label, batch, from, size, out, to, kernel, stride, padding,       \
             groups, python, ...)                                              \
    {                                                                          \
        .id = "C18", .name = label,                                            \
        .in = {{F32, {batch, from, size, size}, 0, 0},                         \
               {F32, {out, (from) / (groups), kernel, kernel}, 0, 0}},         \
        .n = {stride, padding, groups, 0, to, to}, .hob = conv,                \
        .torch = "F.conv2d(a, b, None, " python ")", .at = conv_at,            \
        .out_count = (int64_t)(batch) * (out) * (to) * (to),                   \
        .flops = 2.0 * (batch) * (out) * (to) * (to) * (from) / (groups) *     \
                 (kernel) * (kernel),                                          \
        .bytes = 4.0 * ((double)(batch) * (from) * (size) * (size) +           \
                        (double)(batch) * (out) * (to) * (to)),                \
        .target = {                                                            \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define POOL(label, batch, channels, size, to, window, stride, padding,        \
             function, python, reference, exact)                               \
    {                                                                          \
        .id = "C19", .name = label,                                            \
        .in = {{F32, {batch, channels, size, size}, 0, 0}},                    \
        .n = {stride, padding, 1, window, to, to}, .hob = function,            \
        .torch = python, .at = reference, .is_exact = exact,                   \
        .out_count = (int64_t)(batch) * (channels) * (to) * (to),              \
        .bytes = 4.0 * (batch) * (channels) * ((size) * (size) + (to) * (to)), \
        .target = {                                                            \
            .peer = 10                                                         \
        }                                                                      \
    }

static const struct bench_case cases[] = {
    CONV("3x3, 1 x 64 x 56 x 56 to 64", 1, 64, 56, 64, 56, 3, 1, 1, 1,
         "1, 1, 1, 1", .peer = 0.9),
    CONV("3x3, 32 x 64 x 56 x 56 to 64", 32, 64, 56, 64, 56, 3, 1, 1, 1,
         "1, 1, 1, 1", .peer = 1.2),
    CONV("1x1, 8 x 256 x 28 x 28 to 512", 8, 256, 28, 512, 28, 1, 1, 0, 1,
         "1, 0, 1, 1", .peer = 0.9),
    CONV("7x7 by 2, 8 x 3 x 224 x 224 to 64", 8, 3, 224, 64, 112, 7, 2, 3, 1,
         "2, 3, 1, 1", .peer = 0.9),
    CONV("3x3 by 2, 8 x 64 x 56 x 56 to 128", 8, 64, 56, 128, 28, 3, 2, 1, 1,
         "2, 1, 1, 1", .peer = 0.9),
    CONV("3x3, 8 x 128 x 28 x 28 to 128", 8, 128, 28, 128, 28, 3, 1, 1, 1,
         "1, 1, 1, 1", .peer = 0.9),
    CONV("3x3, 8 x 512 x 7 x 7 to 512", 8, 512, 7, 512, 7, 3, 1, 1, 1,
         "1, 1, 1, 1", .peer = 0.9),
    CONV("depthwise 3x3, 8 x 128 x 56 x 56", 8, 128, 56, 128, 56, 3, 1, 1, 128,
         "1, 1, 1, 128", .peer = 2.5),
    {.id = "C18",
     .name = "transposed 4x4 by 2, 8 x 64 x 28 x 28 to 32",
     .in = {{F32, {8, 64, 28, 28}, 0, 0}, {F32, {64, 32, 4, 4}, 0, 0}},
     .n = {2, 1, 1, 0, 56, 56},
     .hob = transposed,
     .torch = "F.conv_transpose2d(a, b, None, 2, 1)",
     .at = transposed_at,
     .out_count = 8 * 32 * 56 * 56,
     .flops = 2.0 * 8 * 64 * 28 * 28 * 32 * 16,
     .bytes = 4.0 * 8 * (64 * 28 * 28 + 32 * 56 * 56),
     .target = {.peer = 0.9}},
    {.id = "C18",
     .name = "transposed 4x4 by 2, 2 x 3 x 7 x 7 to 5",
     .in = {{F32, {2, 3, 7, 7}, 0, 0}, {F32, {3, 5, 4, 4}, 0, 0}},
     .n = {2, 1, 1, 0, 14, 14},
     .hob = transposed,
     .at = transposed_at,
     .out_count = 2 * 5 * 14 * 14,
     .is_smoke_only = 1},
    {.id = "C18",
     .name = "3x3 by 2, 2 x 6 x 9 x 9 to 4, 2 groups",
     .in = {{F32, {2, 6, 9, 9}, 0, 0}, {F32, {4, 3, 3, 3}, 0, 0}},
     .n = {2, 1, 2, 0, 5, 5},
     .hob = conv,
     .at = conv_at,
     .out_count = 2 * 4 * 5 * 5,
     .is_smoke_only = 1},

    POOL("max 2x2, 32 x 64 x 56 x 56", 32, 64, 56, 28, 2, 2, 0, max_pool,
         "F.max_pool2d(a, 2)", max_pool_at, 1),
    POOL("max 3x3 by 2, 8 x 64 x 112 x 112", 8, 64, 112, 56, 3, 2, 1, max_pool,
         "F.max_pool2d(a, 3, 2, 1)", max_pool_at, 1),
    POOL("average 2x2, 32 x 64 x 56 x 56", 32, 64, 56, 28, 2, 2, 0, avg_pool,
         "F.avg_pool2d(a, 2)", avg_pool_at, 0),
    {.id = "C19",
     .name = "max 3x3 by 2, 2 x 3 x 9 x 9",
     .in = {{F32, {2, 3, 9, 9}, 0, 0}},
     .n = {2, 1, 1, 3, 5, 5},
     .hob = max_pool,
     .at = max_pool_at,
     .is_exact = 1,
     .out_count = 2 * 3 * 5 * 5,
     .is_smoke_only = 1},
};

const struct bench_family bench_conv = {cases,
                                        sizeof(cases) / sizeof(cases[0])};
