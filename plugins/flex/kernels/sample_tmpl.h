/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_tmpl.h - the kernels of sample.h for one type. Included by
 * sample_isa.h with TYPE, NAME(x), MADD(a, b, c), FLOOR(x), RINT(x)
 * and FABS(x) defined.
 */

/* OUT, or what it held and, the sum of M rows (1, 2 or 4) with weights W. */
static inline __attribute__((always_inline)) void
NAME(blend_few)(TYPE *restrict out, const void *const *rows, const TYPE *w,
                int m, int is_first, int64_t n)
{
    const TYPE *a = rows[0], *b = rows[m > 1], *c = rows[m > 2 ? 2 : 0];
    const TYPE *d = rows[m > 2 ? 3 : 0];
    const TYPE wa = w[0], wb = w[m > 1], wc = w[m > 2 ? 2 : 0];
    const TYPE wd = w[m > 2 ? 3 : 0];

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE sum = is_first ? a[i] * wa : MADD(a[i], wa, out[i]);

        if (m > 1)
            sum = MADD(b[i], wb, sum);
        if (m > 2)
            sum = MADD(d[i], wd, MADD(c[i], wc, sum));
        out[i] = sum;
    }
}

/* Four rows at a time in their own type, and the sums of those in f64. */
static void NAME(blend_many)(TYPE *out, const void *const *rows, const TYPE *w,
                             int64_t count, int64_t n)
{
    double sums[PIECE];
    TYPE four[PIECE];

    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t m = n - first < PIECE ? n - first : PIECE;
        int64_t k = 0;

        for (int64_t i = 0; i < m; i++)
            sums[i] = 0;
        for (; k + 4 <= count; k += 4) {
            const void *parts[4];

            for (int j = 0; j < 4; j++)
                parts[j] = (const TYPE *)rows[k + j] + first;
            NAME(blend_few)(four, parts, w + k, 4, 1, m);
#pragma omp simd
            for (int64_t i = 0; i < m; i++)
                sums[i] += (double)four[i];
        }
        for (; k < count; k++)
            for (int64_t i = 0; i < m; i++)
                sums[i] +=
                    (double)((const TYPE *)rows[k])[first + i] * (double)w[k];
        for (int64_t i = 0; i < m; i++)
            out[first + i] = (TYPE)sums[i];
    }
}

static void NAME(blend)(void *result, const void *const *rows,
                        const void *weights, int64_t count, int64_t n)
{
    const TYPE *w = weights;
    TYPE *out = result;
    int64_t k = 0;

    if (count > MANY) {
        NAME(blend_many)(out, rows, w, count, n);
        return;
    }
    if (count == 0)
        memset(out, 0, (size_t)n * sizeof(*out));
    if (count == 1 && w[0] == 1) {
        memcpy(out, rows[0], (size_t)n * sizeof(*out));
        return;
    }
    for (; k + 4 <= count; k += 4)
        if (k)
            NAME(blend_few)(out, rows + k, w + k, 4, 0, n);
        else
            NAME(blend_few)(out, rows, w, 4, 1, n);
    for (; k + 2 <= count; k += 2)
        if (k)
            NAME(blend_few)(out, rows + k, w + k, 2, 0, n);
        else
            NAME(blend_few)(out, rows, w, 2, 1, n);
    if (k < count && k)
        NAME(blend_few)(out, rows + k, w + k, 1, 0, n);
    else if (k < count)
        NAME(blend_few)(out, rows, w, 1, 1, n);
}

static inline __attribute__((always_inline)) TYPE
NAME(weighed)(TYPE x, TYPE weight, TYPE sum)
{
    return weight != 0 ? MADD(x, weight, sum) : sum;
}

/* The first of a sum: with 0 added, -0 would become 0. */
static inline __attribute__((always_inline)) TYPE
NAME(weighed_first)(TYPE x, TYPE weight)
{
    return weight != 0 ? x * weight : 0;
}

static inline __attribute__((always_inline)) void
NAME(pick_few)(TYPE *restrict out, const TYPE *x, const int32_t *at,
               const TYPE *w, int64_t stride, int m, int is_first, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE sum = is_first ? NAME(weighed_first)(x[at[i]], w[i])
                            : NAME(weighed)(x[at[i]], w[i], out[i]);

        if (m > 1)
            sum = NAME(weighed)(x[at[stride + i]], w[stride + i], sum);
        if (m > 2) {
            sum = NAME(weighed)(x[at[2 * stride + i]], w[2 * stride + i], sum);
            sum = NAME(weighed)(x[at[3 * stride + i]], w[3 * stride + i], sum);
        }
        out[i] = sum;
    }
}

static void NAME(pick_many)(TYPE *out, const TYPE *x, const int32_t *at,
                            const TYPE *w, int64_t stride, int64_t taps,
                            int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;

        for (int64_t k = 0; k < taps; k++)
            if (w[k * stride + i] != 0)
                sum +=
                    (double)x[at[k * stride + i]] * (double)w[k * stride + i];
        out[i] = (TYPE)sum;
    }
}

static void NAME(pick)(void *result, const void *in, const int32_t *at,
                       const void *weights, int64_t stride, int64_t taps,
                       int64_t n)
{
    const TYPE *x = in, *w = weights;
    TYPE *out = result;
    int64_t k = 0;

    if (taps > MANY) {
        NAME(pick_many)(out, x, at, w, stride, taps, n);
        return;
    }
    if (taps == 0)
        memset(out, 0, (size_t)n * sizeof(*out));
    for (; k + 4 <= taps; k += 4, at += 4 * stride, w += 4 * stride)
        if (k)
            NAME(pick_few)(out, x, at, w, stride, 4, 0, n);
        else
            NAME(pick_few)(out, x, at, w, stride, 4, 1, n);
    for (; k + 2 <= taps; k += 2, at += 2 * stride, w += 2 * stride)
        if (k)
            NAME(pick_few)(out, x, at, w, stride, 2, 0, n);
        else
            NAME(pick_few)(out, x, at, w, stride, 2, 1, n);
    if (k < taps && k)
        NAME(pick_few)(out, x, at, w, stride, 1, 0, n);
    else if (k < taps)
        NAME(pick_few)(out, x, at, w, stride, 1, 1, n);
}

static void NAME(put)(double *sums, const void *grad, const int32_t *at,
                      const void *weights, int64_t stride, int64_t taps,
                      int64_t n)
{
    const TYPE *g = grad;

    for (int64_t k = 0; k < taps; k++, at += stride) {
        const TYPE *w = (const TYPE *)weights + k * stride;

        for (int64_t i = 0; i < n; i++)
            if (w[i] != 0)
                sums[at[i]] += (double)g[i] * (double)w[i];
    }
}

static void NAME(add_products)(double *sums, const void *a, const void *b,
                               int64_t n)
{
    const TYPE *x = a, *y = b;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)x[i] * (double)y[i];
}

static void NAME(round)(void *out, int64_t step, const double *sums, int64_t n)
{
    TYPE *o = out;

    for (int64_t i = 0; i < n; i++)
        o[i * step] = (TYPE)sums[i];
}

/* ---- the places of a grid ---- */

/* P mirrored at LOW and LOW + SPAN until it lies between them; *SLOPE becomes
 * its derivative. */
static inline __attribute__((always_inline)) TYPE
NAME(mirrored)(TYPE p, TYPE low, TYPE span, TYPE *slope)
{
    TYPE away = FABS(p - low), turns = FLOOR(away / span);
    TYPE rest = away - turns * span;
    TYPE half = FLOOR(turns * (TYPE)0.5);
    int is_even = turns - 2 * half == 0;
    TYPE sign = p < low ? -1 : 1;

    *slope = is_even ? sign : -sign;
    return (is_even ? rest : span - rest) + low;
}

/* Place G of the grid as a number of elements from the first one's middle. */
static inline __attribute__((always_inline)) TYPE
NAME(place_in)(const struct flex_sample_plane *plane, uint32_t padding, TYPE g,
               int axis, TYPE *slope)
{
    const double size = (double)plane->size[axis];
    const TYPE last = (TYPE)(size - 1);
    const TYPE scale = (TYPE)((plane->align_corners ? size - 1 : size) / 2);
    const TYPE low = plane->align_corners ? 0 : (TYPE)-0.5;
    const TYPE span = (TYPE)(plane->align_corners ? size - 1 : size);
    TYPE p = g * scale, sign = 1;

    p += (TYPE)((size - 1) / 2);
    if (padding == FLEX_SAMPLE_REFLECTION) {
        if (span > 0) {
            p = NAME(mirrored)(p, low, span, &sign);
        } else {
            p = p * 0;
            sign = 0;
        }
    }
    *slope = sign * scale;
    if (padding != FLEX_SAMPLE_ZEROS) {
        *slope = p < 0 || p > last ? 0 : *slope;
        p = p > last ? last : p;
        p = p < 0 ? 0 : p; /* NaN stays */
    }
    return p;
}

/* Whole number P in 0 .. LAST, 0 for NaN. */
static inline __attribute__((always_inline)) int32_t NAME(within)(TYPE p,
                                                                  TYPE last)
{
    return (int32_t)(p >= 0 ? p <= last ? p : last : 0);
}

static inline __attribute__((always_inline)) void
NAME(find_nearest)(const struct flex_sample_places *out,
                   const struct flex_sample_plane *plane, uint32_t padding,
                   const TYPE *grid, int64_t n)
{
    const TYPE bottom = (TYPE)(plane->size[0] - 1);
    const TYPE right = (TYPE)(plane->size[1] - 1);
    const int32_t width = (int32_t)plane->size[1];
    TYPE *weights = out->weights;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE none;
        TYPE x = RINT(NAME(place_in)(plane, padding, grid[2 * i], 1, &none));
        TYPE y =
            RINT(NAME(place_in)(plane, padding, grid[2 * i + 1], 0, &none));

        out->at[i] = NAME(within)(y, bottom) * width + NAME(within)(x, right);
        weights[i] = x >= 0 && x <= right && y >= 0 && y <= bottom ? 1 : 0;
    }
}

/* The four elements around (Y, X) as place I of tables; the slopes' factors
 * are how x and y change with what they are asked by. */
static inline __attribute__((always_inline)) void
NAME(put_corners)(const struct flex_sample_places *out,
                  const struct flex_sample_plane *plane, int with_slopes,
                  int64_t i, TYPE y, TYPE x, TYPE slope_y, TYPE slope_x)
{
    const TYPE bottom = (TYPE)(plane->size[0] - 1);
    const TYPE right = (TYPE)(plane->size[1] - 1);
    const int32_t width = (int32_t)plane->size[1];
    const int64_t stride = out->stride;
    TYPE *weights = out->weights, *down = out->slopes[0];
    TYPE *across = out->slopes[1];
    TYPE left = FLOOR(x), top = FLOOR(y);
    TYPE tx = x - left, ty = y - top;
    TYPE zero = with_slopes ? 0 : tx * 0 + ty * 0; /* NaN at NaN */
    int in_left = left >= 0 && left <= right;
    int in_right = left + 1 >= 0 && left + 1 <= right;
    int in_top = top >= 0 && top <= bottom;
    int in_bottom = top + 1 >= 0 && top + 1 <= bottom;
    int32_t c0 = NAME(within)(left, right);
    int32_t c1 = NAME(within)(left + 1, right);
    int32_t r0 = NAME(within)(top, bottom) * width;
    int32_t r1 = NAME(within)(top + 1, bottom) * width;

    out->at[i] = r0 + c0;
    out->at[stride + i] = r0 + c1;
    out->at[2 * stride + i] = r1 + c0;
    out->at[3 * stride + i] = r1 + c1;
    weights[i] = in_top && in_left ? (1 - ty) * (1 - tx) : zero;
    weights[stride + i] = in_top && in_right ? (1 - ty) * tx : zero;
    weights[2 * stride + i] = in_bottom && in_left ? ty * (1 - tx) : zero;
    weights[3 * stride + i] = in_bottom && in_right ? ty * tx : zero;
    if (with_slopes) {
        TYPE by_top = (1 - ty) * slope_x, by_bottom = ty * slope_x;
        TYPE by_left = (1 - tx) * slope_y, by_right = tx * slope_y;

        across[i] = in_top && in_left ? -by_top : 0;
        across[stride + i] = in_top && in_right ? by_top : 0;
        across[2 * stride + i] = in_bottom && in_left ? -by_bottom : 0;
        across[3 * stride + i] = in_bottom && in_right ? by_bottom : 0;
        down[i] = in_top && in_left ? -by_left : 0;
        down[stride + i] = in_top && in_right ? -by_right : 0;
        down[2 * stride + i] = in_bottom && in_left ? by_left : 0;
        down[3 * stride + i] = in_bottom && in_right ? by_right : 0;
    }
}

static inline __attribute__((always_inline)) void
NAME(find_bilinear)(const struct flex_sample_places *out,
                    const struct flex_sample_plane *plane, uint32_t padding,
                    int with_slopes, const TYPE *grid, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE slope_x, slope_y;
        TYPE x = NAME(place_in)(plane, padding, grid[2 * i], 1, &slope_x);
        TYPE y = NAME(place_in)(plane, padding, grid[2 * i + 1], 0, &slope_y);

        NAME(put_corners)(out, plane, with_slopes, i, y, x, slope_y, slope_x);
    }
}

static void NAME(corners)(const struct flex_sample_places *out,
                          const struct flex_sample_plane *plane,
                          const void *rows, const void *columns, int64_t n)
{
    const TYPE *y = rows, *x = columns;

    if (out->slopes[0])
        for (int64_t i = 0; i < n; i++)
            NAME(put_corners)(out, plane, 1, i, y[i], x[i], 1, 1);
    else
        for (int64_t i = 0; i < n; i++)
            NAME(put_corners)(out, plane, 0, i, y[i], x[i], 1, 1);
}

/* With what is constant told to the compiler. */
static inline __attribute__((always_inline)) void
NAME(find)(const struct flex_sample_places *out,
           const struct flex_sample_plane *plane, uint32_t padding,
           const TYPE *grid, int64_t n)
{
    if (plane->is_nearest)
        NAME(find_nearest)(out, plane, padding, grid, n);
    else if (out->slopes[0])
        NAME(find_bilinear)(out, plane, padding, 1, grid, n);
    else
        NAME(find_bilinear)(out, plane, padding, 0, grid, n);
}

static void NAME(places)(const struct flex_sample_places *out,
                         const struct flex_sample_plane *plane,
                         const void *grid, int64_t n)
{
    if (plane->padding == FLEX_SAMPLE_ZEROS)
        NAME(find)(out, plane, FLEX_SAMPLE_ZEROS, grid, n);
    else if (plane->padding == FLEX_SAMPLE_BORDER)
        NAME(find)(out, plane, FLEX_SAMPLE_BORDER, grid, n);
    else
        NAME(find)(out, plane, FLEX_SAMPLE_REFLECTION, grid, n);
}

static void NAME(lines)(void *out, const void *places, const void *factors,
                        int64_t n)
{
    const TYPE *x = places, *f = factors;
    TYPE *o = out;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        o[2 * i] = MADD(x[i], f[0], f[2]);
        o[2 * i + 1] = MADD(x[i], f[1], f[3]);
    }
}

static void NAME(scale)(void *values, const void *factors, int64_t n)
{
    const TYPE *f = factors;
    TYPE *v = values;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        v[i] *= f[i];
}

static void NAME(add)(void *out, const void *a, const void *b, int64_t n)
{
    const TYPE *x = a, *y = b;
    TYPE *o = out;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = x[i] + y[i];
}
