/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft_plan.c - what a Fourier transform needs to know of its length.
 *
 * Roots of unity are computed in f64, from angles that integer arithmetic has
 * brought into the first octant, so that they are as good for a long transform
 * as for a short one.
 */
#include "fft.h"

#include <math.h>
#include <string.h>

const struct flex_fft_kernels *
flex_fft_kernels_of(const struct flex_device *device, uint32_t dtype)
{
    const struct flex_fft_kernels *table =
        FLEX_BY_ISA(device->isa, flex_fft_kernels);

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_FFT_F64 : FLEX_FFT_F32];
}

static void *take(const struct hob_host *host, int64_t count, uint32_t size)
{
    void *memory = NULL;

    if (count < INT64_MAX / 16)
        memory = host->mem_alloc(host, (uint64_t)(count + 1) * size);
    if (memory)
        memset(memory, 0, (size_t)(count + 1) * size);
    return memory;
}

hob_status flex_planar_alloc(const struct hob_host *host, uint32_t size,
                             int64_t count, struct flex_planar *out)
{
    out->re = take(host, count, size);
    out->im = take(host, count, size);
    return out->re && out->im ? HOB_OK : HOB_ERR_MEMORY;
}

void flex_planar_free(const struct hob_host *host, struct flex_planar *planar)
{
    host->mem_free(host, planar->re);
    host->mem_free(host, planar->im);
    planar->re = planar->im = NULL;
}

/* ---- roots of unity ---- */

/*
 * cos and sin of pi x / (4 n) for integers 0 <= x <= n: x is a coarse and a
 * fine part, each in a table of about sqrt(n). The fine cosines are kept less
 * 1, so that the sum rounds as a table of all would.
 */
struct circle {
    int64_t n;
    int shift; /* bits of the fine part */
    double *coarse, *fine;
};

/* cos - 1 and sin of pi x / (4 n), with what the angle loses in rounding. */
static void angle_at(int64_t x, int64_t n, double *cos_less_1, double *sine)
{
    const double turn = 0.78539816339744830962;      /* pi / 4 */
    const double turn_rest = 3.0616169978683830e-17; /* what f64 lacks */
    const double part = (double)x / (double)n;
    const double rest = fma(-part, (double)n, (double)x) / (double)n;
    const double angle = turn * part;
    const double low =
        fma(turn, part, -angle) + (turn * rest + turn_rest * part);
    const double s = sin(angle), half = sin(angle / 2);

    *cos_less_1 = -2 * half * half - low * s;
    *sine = s + low * cos(angle);
}

static void circle_free(const struct hob_host *host, struct circle *circle)
{
    host->mem_free(host, circle->coarse);
    host->mem_free(host, circle->fine);
}

static hob_status circle_init(const struct hob_host *host, int64_t n,
                              struct circle *circle)
{
    int64_t fine, coarse;

    circle->n = n;
    circle->shift = 0;
    while ((int64_t)1 << (2 * circle->shift + 2) <= n)
        circle->shift++;
    fine = (int64_t)1 << circle->shift;
    coarse = (n >> circle->shift) + 1;
    circle->coarse = take(host, 2 * coarse, sizeof(double));
    circle->fine = take(host, 2 * fine, sizeof(double));
    if (!circle->coarse || !circle->fine) {
        circle_free(host, circle);
        return HOB_ERR_MEMORY;
    }
    for (int64_t i = 0; i < coarse; i++) {
        double *at = circle->coarse + 2 * i;

        angle_at(i << circle->shift, n, &at[0], &at[1]);
        at[0] = 1 + at[0];
    }
    for (int64_t i = 0; i < fine; i++)
        angle_at(i, n, &circle->fine[2 * i], &circle->fine[2 * i + 1]);
    return HOB_OK;
}

/* cos and sin of 2 pi k / n for 0 <= k < n, by symmetry from the octant. */
static void circle_at(const struct circle *circle, int64_t k, double *cosine,
                      double *sine)
{
    const int64_t n = circle->n;
    int64_t x = 8 * k; /* eighths: the circle has 8 n */
    const int is_below = x > 4 * n;
    int is_left, is_steep;
    const double *coarse, *fine;
    double c, s;

    x = is_below ? 8 * n - x : x;
    is_left = x > 2 * n;
    x = is_left ? 4 * n - x : x;
    is_steep = x > n;
    x = is_steep ? 2 * n - x : x;
    coarse = circle->coarse + 2 * (x >> circle->shift);
    fine = circle->fine + 2 * (x & (((int64_t)1 << circle->shift) - 1));
    c = coarse[0] + (coarse[0] * fine[0] - coarse[1] * fine[1]);
    s = coarse[1] + (coarse[1] * fine[0] + coarse[0] * fine[1]);
    *cosine = is_steep ? s : c;
    *sine = is_steep ? c : s;
    *cosine = is_left ? -*cosine : *cosine;
    *sine = is_below ? -*sine : *sine;
}

static void put(void *table, uint32_t size, int64_t index, double value)
{
    if (size == sizeof(double))
        ((double *)table)[index] = value;
    else
        ((float *)table)[index] = (float)value;
}

hob_status flex_fft_roots(const struct hob_host *host, uint32_t size, int64_t n,
                          int64_t count, double factor,
                          const struct flex_planar *out)
{
    struct circle circle;
    hob_status st = circle_init(host, n, &circle);

    if (st)
        return st;
    for (int64_t k = 0; k < count; k++) {
        double c, s;

        circle_at(&circle, k, &c, &s);
        put(out->re, size, k, c * factor);
        put(out->im, size, k, s * factor);
    }
    circle_free(host, &circle);
    return HOB_OK;
}

/* ---- factors ---- */

/* N as a product of radices, and how many; 0 for 1, -1 if a prime is too
 * large. Powers of 2 go by 8 and by 4, the most work for a load and a store. */
static int factor(int64_t n, int64_t radices[FLEX_FFT_PASSES_MAX])
{
    int twos = 0, eights, count = 0;

    for (; n % 2 == 0; n /= 2)
        twos++;
    eights = twos / 3 - (twos % 3 == 1 && twos > 1);
    for (int left = twos - 3 * eights; left > 0; left -= 2)
        radices[count++] = left > 1 ? 4 : 2;
    for (; eights > 0; eights--)
        radices[count++] = 8;
    for (int64_t r = 3; r <= FLEX_FFT_RADIX_MAX; r += 2)
        for (; n % r == 0; n /= r)
            radices[count++] = r;
    return n == 1 ? count : -1;
}

int flex_fft_is_smooth(int64_t n)
{
    int64_t radices[FLEX_FFT_PASSES_MAX];

    return factor(n, radices) >= 0;
}

hob_status flex_fft_steps_init(const struct hob_host *host, uint32_t size,
                               int64_t n, struct flex_fft_steps *out)
{
    int64_t radices[FLEX_FFT_PASSES_MAX];
    struct circle circle;
    int64_t total = 0, rest = n;
    char *at;

    memset(out, 0, sizeof(*out));
    out->n = n;
    out->count = (uint32_t)factor(n, radices);
    if (circle_init(host, n, &circle))
        return HOB_ERR_MEMORY;
    for (uint32_t i = 0; i < out->count; i++) {
        rest /= radices[i];
        total += 2 * rest * (radices[i] - 1) + 2 * radices[i];
    }
    out->tables = take(host, total, size);
    at = out->tables;
    rest = n;
    for (uint32_t i = 0; i < out->count && at; i++) {
        struct flex_fft_pass *pass = &out->passes[i];
        double c, s;

        pass->radix = radices[i];
        pass->s = n / rest;
        pass->m = rest / pass->radix;
        pass->roots = at;
        for (int64_t p = 0; p < pass->m; p++)
            for (int64_t k = 1; k < pass->radix; k++, at += 2 * size) {
                circle_at(&circle, p * k * pass->s, &c, &s);
                put(at, size, 0, c);
                put(at, size, 1, s);
            }
        pass->circle = at;
        for (int64_t j = 0; j < pass->radix; j++, at += 2 * size) {
            circle_at(&circle, j * (n / pass->radix), &c, &s);
            put(at, size, 0, c);
            put(at, size, 1, s);
        }
        rest = pass->m;
    }
    circle_free(host, &circle);
    return out->tables ? HOB_OK : HOB_ERR_MEMORY;
}

/* ---- plans ---- */

static int64_t whole(int64_t n, uint32_t size)
{
    const int64_t lanes = FLEX_FFT_BYTES / (int64_t)size;

    return (n + lanes - 1) / lanes * lanes;
}

/*
 * The divisor of N that is the best first length: few columns that only fill
 * a vector, and two lengths that are near each other, so that tiles are small.
 */
static int64_t choose_first(int64_t n, uint32_t size)
{
    int64_t best = 1;
    double least = INFINITY;

    for (int64_t a = 1; a * a <= n; a++) {
        const int64_t b = n / a;
        double cost;

        if (n % a)
            continue;
        cost = (double)(whole(a, size) * b) + (double)(whole(b, size) * a);
        cost *= 1 + 0.02 * log2((double)b / (double)a);
        if (cost <= least) {
            least = cost;
            best = a;
        }
    }
    return best;
}

static hob_status init_product(struct flex_fft_plan *plan)
{
    const struct hob_host *host = plan->host;
    const uint32_t size = plan->kernels->size;
    const int64_t a = choose_first(plan->n, size), b = plan->n / a;
    struct circle circle;
    hob_status st;

    st = flex_fft_steps_init(host, size, a, &plan->first);
    if (!st)
        st = flex_fft_steps_init(host, size, b, &plan->second);
    plan->first_padded = whole(a, size);
    plan->second_padded = whole(b, size);
    if (!st)
        st = flex_planar_alloc(
            host, size, plan->first_padded * plan->second_padded, &plan->twist);
    if (!st)
        st = circle_init(host, plan->n, &circle);
    if (st)
        return st;
    for (int64_t j = 0; j < b; j++)
        for (int64_t k = 0; k < a; k++) {
            double c, s;

            circle_at(&circle, j * k, &c, &s); /* j k < n */
            put(plan->twist.re, size, j * plan->first_padded + k, c);
            put(plan->twist.im, size, j * plan->first_padded + k, s);
        }
    circle_free(host, &circle);
    return HOB_OK;
}

/* A length of at least LEAST, a small multiple of a power of 2. */
static int64_t convolution_length(int64_t least)
{
    int64_t best = 1;

    while (best < least)
        best *= 2;
    for (int64_t odd = 3; odd <= 15; odd += 2) {
        int64_t n = odd;

        if (odd == 11 || odd == 13)
            continue;
        while (n < least)
            n *= 2;
        best = n < best ? n : best;
    }
    return best;
}

/* Put exp(-i pi j^2 / n) into the chirp, and the transform of its conjugate,
 * wrapped around, into the filter. */
static hob_status init_chirp(struct flex_device *device,
                             struct flex_fft_plan *plan)
{
    const struct hob_host *host = plan->host;
    const uint32_t size = plan->kernels->size;
    const int64_t n = plan->n, m = plan->convolution->n;
    struct flex_planar wrapped = {NULL, NULL};
    struct circle circle;
    uint64_t bytes = flex_fft_scratch_bytes(plan->convolution);
    char *scratch = NULL;
    hob_status st = circle_init(host, 2 * n, &circle);

    if (st)
        return st;
    st = flex_planar_alloc(host, size, m, &wrapped);
    scratch = flex_scratch_take(device, bytes);
    if (!scratch)
        st = HOB_ERR_MEMORY;
    for (int64_t j = 0, square = 0; j < n && !st; j++) {
        double c, s;

        circle_at(&circle, square, &c, &s);
        put(plan->chirp.re, size, j, c);
        put(plan->chirp.im, size, j, -s);
        put(wrapped.re, size, j ? m - j : 0, c / (double)m);
        put(wrapped.im, size, j ? m - j : 0, s / (double)m);
        put(wrapped.re, size, j, c / (double)m);
        put(wrapped.im, size, j, s / (double)m);
        square = (square + 2 * j + 1) % (2 * n); /* (j + 1)^2 */
    }
    if (!st)
        st = flex_fft_run(device, plan->convolution, FLEX_FFT_PLANAR, &wrapped,
                          &plan->filter, scratch);
    if (scratch)
        flex_scratch_give(device, scratch, bytes);
    flex_planar_free(host, &wrapped);
    circle_free(host, &circle);
    return st;
}

static hob_status init_convolution(struct flex_device *device,
                                   struct flex_fft_plan *plan)
{
    const uint32_t size = plan->kernels->size;
    hob_status st = flex_fft_plan_new(device, plan->kernels,
                                      convolution_length(2 * plan->n - 1),
                                      &plan->convolution);

    if (!st)
        st = flex_planar_alloc(plan->host, size, plan->n, &plan->chirp);
    if (!st)
        st = flex_planar_alloc(plan->host, size, plan->convolution->n,
                               &plan->filter);
    if (!st)
        st = init_chirp(device, plan);
    return st;
}

hob_status flex_fft_plan_new(struct flex_device *device,
                             const struct flex_fft_kernels *kernels, int64_t n,
                             struct flex_fft_plan **out)
{
    const struct hob_host *host = device->host;
    struct flex_fft_plan *plan = take(host, 1, sizeof(*plan));
    hob_status st;

    *out = NULL;
    if (!plan)
        return HOB_ERR_MEMORY;
    plan->host = host;
    plan->kernels = kernels;
    plan->n = n;
    st = flex_fft_is_smooth(n) ? init_product(plan)
                               : init_convolution(device, plan);
    if (st)
        flex_fft_plan_free(plan);
    else
        *out = plan;
    return st;
}

void flex_fft_plan_free(struct flex_fft_plan *plan)
{
    const struct hob_host *host;

    if (!plan)
        return;
    host = plan->host;
    host->mem_free(host, plan->first.tables);
    host->mem_free(host, plan->second.tables);
    flex_planar_free(host, &plan->twist);
    flex_planar_free(host, &plan->chirp);
    flex_planar_free(host, &plan->filter);
    flex_fft_plan_free(plan->convolution);
    host->mem_free(host, plan);
}
