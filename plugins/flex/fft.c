/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - complex Fourier transforms, as fft.h describes them.
 *
 * A transform of length n = a b reads element j1 b + j2 as row j1 of column
 * j2, and writes coefficient k2 a + k1: both sides in order. Columns are
 * worked on in tiles that fit the second-level cache.
 */
#include "fft.h"

#include <string.h>

/* Of a tile with the buffer it is transformed into. */
enum { TILE_BYTES = 1 << 18 };

uint64_t flex_planar_bytes(int64_t count, uint32_t size)
{
    const uint64_t plane =
        ((uint64_t)count * size + FLEX_ALIGN - 1) / FLEX_ALIGN * FLEX_ALIGN;

    /* One line between planes, or powers of 2 would share cache sets. */
    return 2 * (plane + FLEX_ALIGN);
}

struct flex_planar flex_planar_take(char **scratch, int64_t count,
                                    uint32_t size)
{
    const uint64_t bytes = flex_planar_bytes(count, size);
    struct flex_planar planar = {*scratch, *scratch + bytes / 2};

    *scratch += bytes;
    return planar;
}

static void copy_planar(int64_t rows, int64_t columns, uint32_t size,
                        const struct flex_planar *in, int64_t in_stride,
                        const struct flex_planar *out, int64_t out_stride)
{
    for (int64_t row = 0; row < rows; row++) {
        struct flex_planar from = flex_planar_at(in, row * in_stride, size);
        struct flex_planar to = flex_planar_at(out, row * out_stride, size);

        memcpy(to.re, from.re, (size_t)columns * size);
        memcpy(to.im, from.im, (size_t)columns * size);
    }
}

struct flex_planar flex_fft_passes(
    const struct flex_fft_kernels *kernels, const struct flex_fft_steps *steps,
    int64_t columns, const struct flex_planar *in, int64_t in_stride,
    const struct flex_planar buffers[2], const struct flex_planar *out,
    int64_t out_stride, int64_t *out_stride_of)
{
    struct flex_planar at = *in;

    for (uint32_t i = 0; i < steps->count; i++) {
        const int is_last = out && i + 1 == steps->count;
        const struct flex_planar *to = is_last                  ? out
                                       : at.re == buffers[0].re ? &buffers[1]
                                                                : &buffers[0];
        const int64_t to_stride = is_last ? out_stride : columns;

        kernels->pass(&steps->passes[i], columns, &at, in_stride, to,
                      to_stride);
        at = *to;
        in_stride = to_stride;
    }
    if (out && !steps->count) {
        copy_planar(steps->n, columns, kernels->size, in, in_stride, out,
                    out_stride);
        at = *out;
        in_stride = out_stride;
    }
    if (out_stride_of)
        *out_stride_of = in_stride;
    return at;
}

/* One transform as its pieces see it. */
struct run {
    struct flex_device *device;
    const struct flex_fft_plan *plan;
    enum flex_fft_source source;
    const struct flex_planar *in, *out;
    struct flex_planar middle; /* [second_padded][first_padded] */
    char *buffers;             /* NULL: each piece takes its own */
    int32_t failed;            /* set from any thread */
};

/* Columns of a tile of ROWS rows, of PADDED in all: whole vectors. */
static int64_t tile_columns(int64_t rows, int64_t padded, uint32_t size)
{
    const int64_t lanes = FLEX_FFT_BYTES / (int64_t)size;
    int64_t columns = TILE_BYTES / 4 / (int64_t)size / rows / lanes * lanes;

    columns = columns < lanes ? lanes : columns;
    return columns < padded ? columns : padded;
}

/* The twist reads whole vectors of rows, too. */
static int64_t buffer_count(const struct flex_fft_plan *plan)
{
    const uint32_t size = plan->kernels->size;
    const int64_t a = plan->first_padded, b = plan->second_padded;
    const int64_t first = a * tile_columns(plan->first.n, b, size);
    const int64_t second = b * tile_columns(plan->second.n, a, size);

    return first > second ? first : second;
}

static uint64_t buffers_bytes(const struct flex_fft_plan *plan)
{
    return 2 * flex_planar_bytes(buffer_count(plan), plan->kernels->size);
}

/* The two buffers of a piece; *OUT_OWN is to be given back. */
static int take_buffers(struct run *run, struct flex_planar buffers[2],
                        char **out_own)
{
    const int64_t count = buffer_count(run->plan);
    char *at = run->buffers;

    *out_own = NULL;
    if (!at)
        at = *out_own =
            flex_scratch_take(run->device, buffers_bytes(run->plan));
    if (!at) {
        __atomic_store_n(&run->failed, 1, __ATOMIC_RELAXED);
        return 0;
    }
    buffers[0] = flex_planar_take(&at, count, run->plan->kernels->size);
    buffers[1] = flex_planar_take(&at, count, run->plan->kernels->size);
    return 1;
}

/* Columns FIRST .. FIRST + VALID - 1 of the source into a tile of COLUMNS. */
static void load_tile(const struct run *run, int64_t first, int64_t valid,
                      int64_t columns, const struct flex_planar *tile)
{
    const struct flex_fft_kernels *kernels = run->plan->kernels;
    const uint32_t size = kernels->size;
    const int64_t a = run->plan->first.n, b = run->plan->second.n;
    const size_t tail = (size_t)(columns - valid) * size;

    if (run->source == FLEX_FFT_PAIRS)
        kernels->split(a, valid,
                       (const char *)run->in->re + 2 * first * (int64_t)size,
                       2 * b, tile, columns);
    for (int64_t row = 0; row < a; row++) {
        struct flex_planar to = flex_planar_at(tile, row * columns, size);
        struct flex_planar from =
            flex_planar_at(run->in, row * b + first, size);

        if (run->source != FLEX_FFT_PAIRS)
            memcpy(to.re, from.re, (size_t)valid * size);
        if (run->source == FLEX_FFT_PLANAR)
            memcpy(to.im, from.im, (size_t)valid * size);
        else if (run->source == FLEX_FFT_REAL)
            memset(to.im, 0, (size_t)valid * size);
        if (tail) {
            memset((char *)to.re + (size_t)valid * size, 0, tail);
            memset((char *)to.im + (size_t)valid * size, 0, tail);
        }
    }
}

static void first_piece(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    struct run *run = context;
    const struct flex_fft_plan *plan = run->plan;
    const struct flex_fft_kernels *kernels = plan->kernels;
    const int64_t b = plan->second.n, padded = plan->first_padded;
    const int64_t width =
        tile_columns(plan->first.n, plan->second_padded, kernels->size);
    struct flex_planar buffers[2];
    char *own;

    (void)worker;
    if (!take_buffers(run, buffers, &own))
        return;
    for (int64_t tile = first; tile < last; tile++) {
        const int64_t at = tile * width;
        const int64_t room = plan->second_padded - at;
        const int64_t columns = room < width ? room : width;
        const int64_t valid = b - at < columns ? b - at : columns;
        struct flex_planar in = flex_planar_at(run->in, at, kernels->size);
        struct flex_planar to =
            flex_planar_at(&run->middle, at * padded, kernels->size);
        struct flex_planar roots =
            flex_planar_at(&plan->twist, at * padded, kernels->size);
        int64_t stride = b;

        if (run->source != FLEX_FFT_PLANAR || valid < columns) {
            in = buffers[0];
            stride = columns;
            load_tile(run, at, valid, columns, &in);
        }
        in = flex_fft_passes(kernels, &plan->first, columns, &in, stride,
                             buffers, NULL, 0, &stride);
        /* Without a pass it is still the source, which has no more rows. */
        if (in.re != buffers[0].re && in.re != buffers[1].re) {
            copy_planar(plan->first.n, columns, kernels->size, &in, stride,
                        &buffers[0], columns);
            in = buffers[0];
            stride = columns;
        }
        kernels->twist(padded, columns, &in, stride, &roots, &to, padded);
    }
    if (own)
        flex_scratch_give(run->device, own, buffers_bytes(plan));
}

static void second_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct run *run = context;
    const struct flex_fft_plan *plan = run->plan;
    const struct flex_fft_kernels *kernels = plan->kernels;
    const uint32_t size = kernels->size;
    const int64_t a = plan->first.n, padded = plan->first_padded;
    const int64_t width = tile_columns(plan->second.n, padded, size);
    struct flex_planar buffers[2];
    char *own;

    (void)worker;
    if (!take_buffers(run, buffers, &own))
        return;
    for (int64_t tile = first; tile < last; tile++) {
        const int64_t at = tile * width;
        const int64_t room = padded - at;
        const int64_t columns = room < width ? room : width;
        const int64_t valid = a - at < columns ? a - at : columns;
        const int is_whole = valid == columns;
        struct flex_planar in = flex_planar_at(&run->middle, at, size);
        struct flex_planar out = flex_planar_at(run->out, at, size);
        int64_t stride;

        in = flex_fft_passes(kernels, &plan->second, columns, &in, padded,
                             buffers, is_whole ? &out : NULL, a, &stride);
        if (!is_whole)
            copy_planar(plan->second.n, valid, size, &in, stride, &out, a);
    }
    if (own)
        flex_scratch_give(run->device, own, buffers_bytes(plan));
}

static hob_status run_product(struct run *run, char *scratch)
{
    const struct flex_fft_plan *plan = run->plan;
    const uint32_t size = plan->kernels->size;
    const int64_t a = plan->first_padded, b = plan->second_padded;
    const int64_t first = tile_columns(plan->first.n, b, size);
    const int64_t second = tile_columns(plan->second.n, a, size);
    const int64_t first_tiles = (b + first - 1) / first;
    const int64_t second_tiles = (a + second - 1) / second;

    run->middle = flex_planar_take(&scratch, a * b, size);
    run->failed = 0;
    if (flex_fft_is_long(plan->n)) {
        run->buffers = NULL;
        flex_parallel(run->device, first_tiles, 1, first_piece, run);
        flex_parallel(run->device, second_tiles, 1, second_piece, run);
    } else {
        run->buffers = scratch;
        first_piece(run, 0, first_tiles, 0);
        second_piece(run, 0, second_tiles, 0);
    }
    return run->failed ? HOB_ERR_MEMORY : HOB_OK;
}

/*
 * Coefficient k = chirp k times the sum over j of (x j chirp j) conj(chirp
 * (k - j)), as j k = (j^2 + k^2 - (k - j)^2) / 2.
 */
static hob_status run_convolution(struct run *run, char *scratch)
{
    const struct flex_fft_plan *plan = run->plan;
    const struct flex_fft_plan *inner = plan->convolution;
    const struct flex_fft_kernels *kernels = plan->kernels;
    const uint32_t size = kernels->size;
    const int64_t n = plan->n;
    struct flex_planar x = flex_planar_take(&scratch, inner->n, size);
    struct flex_planar y = flex_planar_take(&scratch, inner->n, size);
    struct flex_planar rest = flex_planar_at(&x, n, size);
    struct flex_planar back;
    hob_status st;

    if (run->source == FLEX_FFT_PAIRS) {
        kernels->split(1, n, run->in->re, 0, &x, 0);
    } else {
        memcpy(x.re, run->in->re, (size_t)n * size);
        if (run->source == FLEX_FFT_REAL)
            memset(x.im, 0, (size_t)n * size);
        else
            memcpy(x.im, run->in->im, (size_t)n * size);
    }
    memset(rest.re, 0, (size_t)(inner->n - n) * size);
    memset(rest.im, 0, (size_t)(inner->n - n) * size);
    kernels->multiply(n, &x, &plan->chirp);
    st = flex_fft_run(run->device, inner, FLEX_FFT_PLANAR, &x, &y, scratch);
    if (st)
        return st;
    kernels->multiply(inner->n, &y, &plan->filter);
    y = flex_planar_swapped(&y);
    back = flex_planar_swapped(&x);
    st = flex_fft_run(run->device, inner, FLEX_FFT_PLANAR, &y, &back, scratch);
    kernels->multiply(n, &x, &plan->chirp);
    copy_planar(1, n, size, &x, 0, run->out, 0);
    return st;
}

uint64_t flex_fft_scratch_bytes(const struct flex_fft_plan *plan)
{
    const uint32_t size = plan->kernels->size;

    if (plan->convolution)
        return 2 * flex_planar_bytes(plan->convolution->n, size) +
               flex_fft_scratch_bytes(plan->convolution);
    return flex_planar_bytes(plan->first_padded * plan->second_padded, size) +
           buffers_bytes(plan);
}

hob_status flex_fft_run(struct flex_device *device,
                        const struct flex_fft_plan *plan,
                        enum flex_fft_source source,
                        const struct flex_planar *in,
                        const struct flex_planar *out, char *scratch)
{
    struct run run = {
        .device = device, .plan = plan, .source = source, .in = in, .out = out};

    return plan->convolution ? run_convolution(&run, scratch)
                             : run_product(&run, scratch);
}
