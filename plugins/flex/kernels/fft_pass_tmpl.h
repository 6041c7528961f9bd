/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft_pass_tmpl.h - one type's steps of Stockham's algorithm. Included by
 * fft_isa.h with TYPE, NAME(x) and VECTOR_BYTES defined; fft_tmpl.h follows
 * and ends them.
 *
 * A butterfly works on arrays whose length is the radix, a constant, so that
 * the compiler keeps them in registers.
 */

typedef TYPE NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* The same at any address. */
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));

enum { NAME(lanes) = VECTOR_BYTES / sizeof(TYPE) };

static inline __attribute__((always_inline)) void NAME(fly_2)(NAME(vector) * a,
                                                              NAME(vector) * b)
{
    NAME(vector) sum = *a + *b;

    *b = *a - *b;
    *a = sum;
}

/* Four complex numbers, the first at index FIRST, STEP apart. */
static inline __attribute__((always_inline)) void
NAME(fly_4)(NAME(vector) * re, NAME(vector) * im, int first, int step)
{
    const int a = first, b = a + step, c = b + step, d = c + step;
    NAME(vector) turned;

    NAME(fly_2)(&re[a], &re[c]);
    NAME(fly_2)(&im[a], &im[c]);
    NAME(fly_2)(&re[b], &re[d]);
    NAME(fly_2)(&im[b], &im[d]);
    NAME(fly_2)(&re[a], &re[b]);
    NAME(fly_2)(&im[a], &im[b]);
    turned = re[d]; /* d times -i */
    re[d] = im[d];
    im[d] = -turned;
    NAME(fly_2)(&re[c], &re[d]);
    NAME(fly_2)(&im[c], &im[d]);
    /* b holds coefficient 2, c coefficient 1 */
    turned = re[b];
    re[b] = re[c];
    re[c] = turned;
    turned = im[b];
    im[b] = im[c];
    im[c] = turned;
}

static inline __attribute__((always_inline)) void NAME(fly_8)(NAME(vector) * re,
                                                              NAME(vector) * im)
{
    const TYPE half = (TYPE)0.70710678118654752440;
    NAME(vector) r[8], i[8], sum;

    NAME(fly_4)(re, im, 0, 2);
    NAME(fly_4)(re, im, 1, 2);
    sum = re[3]; /* (1 - i) / sqrt 2 */
    re[3] = (sum + im[3]) * half;
    im[3] = (im[3] - sum) * half;
    sum = re[5]; /* -i */
    re[5] = im[5];
    im[5] = -sum;
    sum = re[7]; /* (-1 - i) / sqrt 2 */
    re[7] = (im[7] - sum) * half;
    im[7] = -(sum + im[7]) * half;
    for (int k = 0; k < 4; k++) {
        r[k] = re[2 * k] + re[2 * k + 1];
        i[k] = im[2 * k] + im[2 * k + 1];
        r[k + 4] = re[2 * k] - re[2 * k + 1];
        i[k + 4] = im[2 * k] - im[2 * k + 1];
    }
    for (int k = 0; k < 8; k++) {
        re[k] = r[k];
        im[k] = i[k];
    }
}

/*
 * An odd number R of complex numbers, in pairs j and R - j: their sums meet
 * the cosines, their differences the sines, once for coefficients k and R - k.
 */
static inline __attribute__((always_inline)) void
NAME(fly_odd)(int r, const TYPE *circle, NAME(vector) * re, NAME(vector) * im)
{
    NAME(vector) ar[FLEX_FFT_RADIX_MAX], ai[FLEX_FFT_RADIX_MAX];
    NAME(vector) sum_re = re[0], sum_im = im[0];
    const int half = r / 2;

    for (int j = 1; j <= half; j++) {
        NAME(fly_2)(&re[j], &re[r - j]);
        NAME(fly_2)(&im[j], &im[r - j]);
        sum_re += re[j];
        sum_im += im[j];
    }
    for (int k = 1; k <= half; k++) {
        NAME(vector) even_re = re[0], even_im = im[0];
        NAME(vector) odd_re = {0}, odd_im = {0};

        for (int j = 1, at = k; j <= half; j++) {
            even_re += re[j] * circle[2 * at];
            even_im += im[j] * circle[2 * at];
            odd_re += im[r - j] * circle[2 * at + 1];
            odd_im += re[r - j] * circle[2 * at + 1];
            at = at + k >= r ? at + k - r : at + k;
        }
        ar[k] = even_re + odd_re;
        ai[k] = even_im - odd_im;
        ar[r - k] = even_re - odd_re;
        ai[r - k] = even_im + odd_im;
    }
    re[0] = sum_re;
    im[0] = sum_im;
    for (int k = 1; k < r; k++) {
        re[k] = ar[k];
        im[k] = ai[k];
    }
}

/* All rows q of index P. */
static inline __attribute__((always_inline)) void
NAME(pass_rows)(int r, const struct flex_fft_pass *pass, int64_t columns,
                int64_t p, const TYPE *in_re, const TYPE *in_im,
                int64_t in_stride, TYPE *out_re, TYPE *out_im,
                int64_t out_stride)
{
    const TYPE *roots = (const TYPE *)pass->roots + 2 * p * (r - 1);
    const int64_t s = pass->s;
    const int64_t in_step = s * pass->m * in_stride;
    const int64_t out_step = s * out_stride;

    for (int64_t q = 0; q < s; q++) {
        const int64_t from = (q + s * p) * in_stride;
        const int64_t to = (q + s * p * r) * out_stride;

        for (int64_t c = 0; c < columns; c += NAME(lanes)) {
            NAME(vector) re[FLEX_FFT_RADIX_MAX], im[FLEX_FFT_RADIX_MAX];

            for (int j = 0; j < r; j++) {
                const int64_t at = from + c + j * in_step;
                re[j] = *(const NAME(vector_at) *)(in_re + at);
                im[j] = *(const NAME(vector_at) *)(in_im + at);
            }
            if (r == 2) {
                NAME(fly_2)(&re[0], &re[1]);
                NAME(fly_2)(&im[0], &im[1]);
            } else if (r == 4) {
                NAME(fly_4)(re, im, 0, 1);
            } else if (r == 8) {
                NAME(fly_8)(re, im);
            } else {
                NAME(fly_odd)(r, pass->circle, re, im);
            }
            for (int k = 0; k < r; k++) {
                const int64_t at = to + c + k * out_step;
                NAME(vector) x = re[k], y = im[k];

                if (p && k) {
                    const TYPE cosine = roots[2 * k - 2];
                    const TYPE sine = roots[2 * k - 1];
                    x = re[k] * cosine + im[k] * sine;
                    y = im[k] * cosine - re[k] * sine;
                }
                *(NAME(vector_at) *)(out_re + at) = x;
                *(NAME(vector_at) *)(out_im + at) = y;
            }
        }
    }
}

static inline __attribute__((always_inline)) void
NAME(pass_of)(int r, const struct flex_fft_pass *pass, int64_t columns,
              const struct flex_planar *in, int64_t in_stride,
              const struct flex_planar *out, int64_t out_stride)
{
    /* Index 0 apart, as its roots are 1. */
    NAME(pass_rows)
    (r, pass, columns, 0, in->re, in->im, in_stride, out->re, out->im,
     out_stride);
    for (int64_t p = 1; p < pass->m; p++)
        NAME(pass_rows)
    (r, pass, columns, p, in->re, in->im, in_stride, out->re, out->im,
     out_stride);
}

/* One function a radix, as each needs its own registers. */
#define INSTANCE(name, r)                                                      \
    static __attribute__((noinline)) void NAME(pass_##name)(                   \
        const struct flex_fft_pass *pass, int64_t columns,                     \
        const struct flex_planar *in, int64_t in_stride,                       \
        const struct flex_planar *out, int64_t out_stride)                     \
    {                                                                          \
        NAME(pass_of)(r, pass, columns, in, in_stride, out, out_stride);       \
    }
INSTANCE(2, 2)
INSTANCE(3, 3)
INSTANCE(4, 4)
INSTANCE(5, 5)
INSTANCE(7, 7)
INSTANCE(8, 8)
INSTANCE(odd, (int)pass->radix)
#undef INSTANCE

static void NAME(pass)(const struct flex_fft_pass *pass, int64_t columns,
                       const struct flex_planar *in, int64_t in_stride,
                       const struct flex_planar *out, int64_t out_stride)
{
    switch (pass->radix) {
    case 2:
        NAME(pass_2)(pass, columns, in, in_stride, out, out_stride);
        break;
    case 3:
        NAME(pass_3)(pass, columns, in, in_stride, out, out_stride);
        break;
    case 4:
        NAME(pass_4)(pass, columns, in, in_stride, out, out_stride);
        break;
    case 5:
        NAME(pass_5)(pass, columns, in, in_stride, out, out_stride);
        break;
    case 7:
        NAME(pass_7)(pass, columns, in, in_stride, out, out_stride);
        break;
    case 8:
        NAME(pass_8)(pass, columns, in, in_stride, out, out_stride);
        break;
    default:
        NAME(pass_odd)(pass, columns, in, in_stride, out, out_stride);
        break;
    }
}
