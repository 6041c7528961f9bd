/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft_tmpl.h - one type's loops around the steps of a Fourier transform:
 * transposing, and between real and complex. Included by fft_isa.h after
 * fft_pass_tmpl.h with TYPE, NAME(x), VECTOR_BYTES, LOW and HIGH defined,
 * which it undefines.
 */

/* Turn a square of vectors: perfect shuffles, as many as the logarithm of its
 * side. */
static inline __attribute__((always_inline)) void
NAME(turn_square)(NAME(vector) * square)
{
    NAME(vector) next[NAME(lanes)];

#pragma GCC unroll 4
    for (int width = 1; width < NAME(lanes); width *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < NAME(lanes) / 2; i++) {
            const NAME(vector) a = square[i];
            const NAME(vector) b = square[i + NAME(lanes) / 2];

            next[2 * i] = __builtin_shufflevector(a, b, LOW);
            next[2 * i + 1] = __builtin_shufflevector(a, b, HIGH);
        }
#pragma GCC unroll 16
        for (int i = 0; i < NAME(lanes); i++)
            square[i] = next[i];
    }
}

static inline __attribute__((always_inline)) void
NAME(load_turned)(const TYPE *in, int64_t in_stride, NAME(vector) * square)
{
#pragma GCC unroll 16
    for (int i = 0; i < NAME(lanes); i++)
        square[i] = *(const NAME(vector_at) *)(in + i * in_stride);
    NAME(turn_square)(square);
}

static void NAME(turn)(int64_t rows, int64_t columns, const void *in,
                       int64_t in_stride, void *out, int64_t out_stride)
{
    const int64_t rows_whole = rows / NAME(lanes) * NAME(lanes);
    const int64_t columns_whole = columns / NAME(lanes) * NAME(lanes);
    const TYPE *from = in;
    TYPE *to = out;

    for (int64_t j = 0; j < columns_whole; j += NAME(lanes))
        for (int64_t i = 0; i < rows_whole; i += NAME(lanes)) {
            NAME(vector) square[NAME(lanes)];

            NAME(load_turned)(from + i * in_stride + j, in_stride, square);
            for (int k = 0; k < NAME(lanes); k++)
                *(NAME(vector_at) *)(to + (j + k) * out_stride + i) = square[k];
        }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < rows_whole ? columns_whole : 0; j < columns; j++)
            to[j * out_stride + i] = from[i * in_stride + j];
}

static void NAME(twist)(int64_t rows, int64_t columns,
                        const struct flex_planar *in, int64_t in_stride,
                        const struct flex_planar *roots,
                        const struct flex_planar *out, int64_t out_stride)
{
    const TYPE *in_re = in->re, *in_im = in->im;
    const TYPE *cosine = roots->re, *sine = roots->im;
    TYPE *out_re = out->re, *out_im = out->im;

    for (int64_t j = 0; j < columns; j += NAME(lanes))
        for (int64_t i = 0; i < rows; i += NAME(lanes)) {
            NAME(vector) re[NAME(lanes)], im[NAME(lanes)];

            NAME(load_turned)(in_re + i * in_stride + j, in_stride, re);
            NAME(load_turned)(in_im + i * in_stride + j, in_stride, im);
#pragma GCC unroll 16
            for (int k = 0; k < NAME(lanes); k++) {
                const int64_t at = (j + k) * out_stride + i;
                const NAME(vector) c = *(const NAME(vector_at) *)(cosine + at);
                const NAME(vector) s = *(const NAME(vector_at) *)(sine + at);

                *(NAME(vector_at) *)(out_re + at) = re[k] * c + im[k] * s;
                *(NAME(vector_at) *)(out_im + at) = im[k] * c - re[k] * s;
            }
        }
}

static void NAME(split)(int64_t rows, int64_t n, const void *in,
                        int64_t in_stride, const struct flex_planar *out,
                        int64_t out_stride)
{
    for (int64_t row = 0; row < rows; row++) {
        const TYPE *restrict from = (const TYPE *)in + row * in_stride;
        TYPE *restrict re = (TYPE *)out->re + row * out_stride;
        TYPE *restrict im = (TYPE *)out->im + row * out_stride;

        for (int64_t i = 0; i < n; i++) {
            re[i] = from[2 * i];
            im[i] = from[2 * i + 1];
        }
    }
}

static void NAME(join)(int64_t n, const struct flex_planar *in, void *out)
{
    const TYPE *restrict re = in->re, *restrict im = in->im;
    TYPE *restrict to = out;

    for (int64_t i = 0; i < n; i++) {
        to[2 * i] = re[i];
        to[2 * i + 1] = im[i];
    }
}

static void NAME(multiply)(int64_t n, const struct flex_planar *x,
                           const struct flex_planar *w)
{
    TYPE *restrict re = x->re, *restrict im = x->im;
    const TYPE *restrict cosine = w->re, *restrict sine = w->im;

    for (int64_t i = 0; i < n; i++) {
        const TYPE a = re[i], b = im[i];

        re[i] = a * cosine[i] - b * sine[i];
        im[i] = b * cosine[i] + a * sine[i];
    }
}

/* Coefficient k from those of the halves, k and j = h - k, which are their own
 * and each other's conjugates; C and S are halved. */
static inline __attribute__((always_inline)) void
NAME(unpack_one)(TYPE re_k, TYPE im_k, TYPE re_j, TYPE im_j, TYPE c, TYPE s,
                 TYPE *out_re, TYPE *out_im)
{
    const TYPE dr = re_k - re_j, di = im_k + im_j;

    *out_re = (re_k + re_j) * (TYPE)0.5 + (di * c - dr * s);
    *out_im = (im_k - im_j) * (TYPE)0.5 - (dr * c + di * s);
}

static inline __attribute__((always_inline)) void
NAME(pack_one)(TYPE re_k, TYPE im_k, TYPE re_j, TYPE im_j, TYPE c, TYPE s,
               TYPE factor, TYPE *out_re, TYPE *out_im)
{
    const TYPE dr = re_k - re_j, di = im_k + im_j;

    *out_re = ((re_k + re_j) * (TYPE)0.5 - (di * c + dr * s)) * factor;
    *out_im = ((im_k - im_j) * (TYPE)0.5 + (dr * c - di * s)) * factor;
}

static void NAME(unpack)(const struct flex_fft_halves *halves, int64_t first,
                         int64_t last, const struct flex_planar *in,
                         const struct flex_planar *out)
{
    const TYPE *restrict re = in->re, *restrict im = in->im;
    const TYPE *restrict c = halves->cos, *restrict s = halves->sin;
    TYPE *restrict out_re = out->re, *restrict out_im = out->im;
    const int64_t h = halves->h;

    if (first == 0) {
        out_re[0] = re[0] + im[0];
        out_re[h] = re[0] - im[0];
        out_im[0] = out_im[h] = 0;
        first = 1;
    }
    for (int64_t k = first; k < last; k++)
        NAME(unpack_one)
    (re[k], im[k], re[h - k], im[h - k], c[k], s[k], &out_re[k], &out_im[k]);
}

static void NAME(pack)(const struct flex_fft_halves *halves, int64_t first,
                       int64_t last, const struct flex_planar *in,
                       const struct flex_planar *out)
{
    const TYPE *restrict re = in->re, *restrict im = in->im;
    const TYPE *restrict c = halves->cos, *restrict s = halves->sin;
    TYPE *restrict out_re = out->re, *restrict out_im = out->im;
    const int64_t h = halves->h;
    const TYPE factor = 1 / (TYPE)h;

    if (first == 0) {
        out_re[0] = (re[0] + re[h]) * (TYPE)0.5 * factor;
        out_im[0] = (re[0] - re[h]) * (TYPE)0.5 * factor;
        first = 1;
    }
    for (int64_t k = first; k < last; k++)
        NAME(pack_one)
    (re[k], im[k], re[h - k], im[h - k], c[k], s[k], factor, &out_re[k],
     &out_im[k]);
}

static void NAME(unpack_columns)(const struct flex_fft_halves *halves,
                                 int64_t columns, const struct flex_planar *in,
                                 const struct flex_planar *out)
{
    const TYPE *restrict re = in->re, *restrict im = in->im;
    const TYPE *cosine = halves->cos, *sine = halves->sin;
    TYPE *restrict out_re = out->re, *restrict out_im = out->im;
    const int64_t last = halves->h * columns;

    for (int64_t i = 0; i < columns; i++) {
        out_re[i] = re[i] + im[i];
        out_re[last + i] = re[i] - im[i];
        out_im[i] = out_im[last + i] = 0;
    }
    for (int64_t k = 1; k < halves->h; k++) {
        const int64_t at = k * columns, to = last - at;
        const TYPE c = cosine[k], s = sine[k];

        for (int64_t i = 0; i < columns; i++)
            NAME(unpack_one)
        (re[at + i], im[at + i], re[to + i], im[to + i], c, s, &out_re[at + i],
         &out_im[at + i]);
    }
}

static void NAME(pack_columns)(const struct flex_fft_halves *halves,
                               int64_t columns, const struct flex_planar *in,
                               const struct flex_planar *out)
{
    const TYPE *restrict re = in->re, *restrict im = in->im;
    const TYPE *cosine = halves->cos, *sine = halves->sin;
    TYPE *restrict out_re = out->re, *restrict out_im = out->im;
    const int64_t last = halves->h * columns;
    const TYPE factor = 1 / (TYPE)halves->h;

    for (int64_t i = 0; i < columns; i++) {
        out_re[i] = (re[i] + re[last + i]) * (TYPE)0.5 * factor;
        out_im[i] = (re[i] - re[last + i]) * (TYPE)0.5 * factor;
    }
    for (int64_t k = 1; k < halves->h; k++) {
        const int64_t at = k * columns, to = last - at;
        const TYPE c = cosine[k], s = sine[k];

        for (int64_t i = 0; i < columns; i++)
            NAME(pack_one)
        (re[at + i], im[at + i], re[to + i], im[to + i], c, s, factor,
         &out_re[at + i], &out_im[at + i]);
    }
}

static void NAME(mirror)(int64_t n, int64_t columns,
                         const struct flex_planar *in,
                         const struct flex_planar *out)
{
    const TYPE *re = in->re, *im = in->im;
    TYPE *out_re = out->re, *out_im = out->im;

    for (int64_t i = 0; i < columns; i++) {
        out_re[i] = re[i] / (TYPE)n;
        out_im[i] = 0;
    }
    for (int64_t k = 1; k <= n / 2; k++)
        for (int64_t i = 0; i < columns; i++) {
            const int64_t at = k * columns + i;
            const int64_t to = (n - k) * columns + i;
            const TYPE x = re[at] / (TYPE)n, y = im[at] / (TYPE)n;

            out_re[at] = out_re[to] = x;
            out_im[at] = y;
            out_im[to] = -y;
        }
}

#undef TYPE
#undef NAME
#undef LOW
#undef HIGH
