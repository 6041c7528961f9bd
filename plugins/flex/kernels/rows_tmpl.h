/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_tmpl.h - the row kernels of one type. Included by rows_isa.h with
 * TYPE, NAME(x), EXP(x) and SQRT(x) defined.
 *
 * Reductions are written over CHAINS arrays of LANES sums, which the compiler
 * keeps in vectors without being allowed to reorder anything.
 */

/* The sum of LANES numbers, pairwise: halves added to halves. Each width is a
 * loop of its own, which becomes an instruction or two. */
static inline TYPE NAME(lane_sum)(TYPE *lanes)
{
    _Static_assert(LANES == 16, "or there are other widths");
#pragma omp simd
    for (int i = 0; i < 8; i++)
        lanes[i] += lanes[i + 8];
#pragma omp simd
    for (int i = 0; i < 4; i++)
        lanes[i] += lanes[i + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static inline TYPE NAME(greater)(TYPE a, TYPE b)
{
    return a > b ? a : b;
}

static inline TYPE NAME(lane_max)(TYPE *lanes)
{
#pragma omp simd
    for (int i = 0; i < 8; i++)
        lanes[i] = NAME(greater)(lanes[i], lanes[i + 8]);
#pragma omp simd
    for (int i = 0; i < 4; i++)
        lanes[i] = NAME(greater)(lanes[i], lanes[i + 4]);
    return NAME(greater)(NAME(greater)(lanes[0], lanes[2]),
                         NAME(greater)(lanes[1], lanes[3]));
}

static TYPE NAME(row_max)(const TYPE *x, int64_t n)
{
    TYPE lanes[CHAINS][LANES];
    TYPE best = -(TYPE)INFINITY;
    int64_t i = 0;

    for (int c = 0; c < CHAINS; c++)
        for (int j = 0; j < LANES; j++)
            lanes[c][j] = best;
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES)
#pragma GCC unroll 4
        for (int c = 0; c < CHAINS; c++)
#pragma omp simd
            for (int j = 0; j < LANES; j++) {
                TYPE v = x[i + c * LANES + j];

                lanes[c][j] = v > lanes[c][j] ? v : lanes[c][j];
            }
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            lanes[0][j] = NAME(greater)(x[i + j], lanes[0][j]);
    for (; i < n; i++)
        best = NAME(greater)(x[i], best);
    for (int c = 1; c < CHAINS && n >= SIDE; c++)
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            lanes[0][j] = NAME(greater)(lanes[c][j], lanes[0][j]);
    /* NaN is left out: the exponentials bring it in. */
    return NAME(greater)(NAME(lane_max)(lanes[0]), best);
}

/* Term I of a sum; TERM is a constant. */
static inline __attribute__((always_inline)) TYPE
NAME(term)(enum term term, const TYPE *x, const TYPE *y, TYPE shift, int64_t i)
{
    switch (term) {
    case TERM_PLAIN:
        return x[i];
    case TERM_PRODUCT:
        return x[i] * y[i];
    default:
        return (x[i] - shift) * y[i];
    }
}

/* The sum of N terms: CHAINS vectors side by side in each piece, and the sums
 * of pieces in f64, so that long rows lose nothing. */
static inline __attribute__((always_inline)) double
NAME(sum_of)(enum term term, const TYPE *x, const TYPE *y, TYPE shift,
             int64_t n)
{
    double total = 0;

    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t end = first + PIECE < n ? first + PIECE : n;
        TYPE lanes[CHAINS][LANES] = {{0}};
        int64_t i = first;

        for (; i + CHAINS * LANES <= end; i += CHAINS * LANES)
#pragma GCC unroll 4
            for (int c = 0; c < CHAINS; c++)
#pragma omp simd
                for (int j = 0; j < LANES; j++)
                    lanes[c][j] +=
                        NAME(term)(term, x, y, shift, i + c * LANES + j);
        for (; i + LANES <= end; i += LANES)
#pragma omp simd
            for (int j = 0; j < LANES; j++)
                lanes[0][j] += NAME(term)(term, x, y, shift, i + j);
        for (int j = 0; i < end; i++, j++)
            lanes[0][j] += NAME(term)(term, x, y, shift, i);
        for (int c = 1; c < CHAINS; c++)
#pragma omp simd
            for (int j = 0; j < LANES; j++)
                lanes[0][j] += lanes[c][j];
        total += (double)NAME(lane_sum)(lanes[0]);
    }
    return total;
}

static inline void NAME(exps)(TYPE *out, const TYPE *x, TYPE shift, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = EXP(x[i] - shift);
}

/* The same for N <= LANES of them, which come to LAST as well, with nothing in
 * the rest: the end of a row is done in vectors too. */
static inline void NAME(exp_last)(TYPE *out, const TYPE *x, TYPE shift,
                                  int64_t n, TYPE *restrict last)
{
    if (n >= LANES) {
        NAME(exps)(last, x, shift, LANES);
        if (out)
            memcpy(out, last, LANES * sizeof(TYPE));
        return;
    }
    for (int j = 0; j < LANES; j++)
        last[j] = j < n ? x[j] : shift;
    NAME(exps)(last, last, shift, LANES);
    for (int j = 0; out && j < n; j++)
        out[j] = last[j];
#pragma omp simd
    for (int j = 0; j < LANES; j++)
        last[j] = j < n ? last[j] : 0;
}

/* The sum below for a row of N < SIDE, added up in the same order. */
static inline double NAME(exp_sum_short)(TYPE *out, const TYPE *x, TYPE shift,
                                         int64_t n)
{
    TYPE parts[CHAINS][LANES];

    for (int c = 0; c < CHAINS; c++) {
        const int64_t at = c * LANES;

        if (at < n) {
            NAME(exp_last)
            (out ? out + at : NULL, x + at, shift, n - at, parts[c]);
            continue;
        }
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            parts[c][j] = 0;
    }
#pragma omp simd
    for (int j = 0; j < LANES; j++)
        parts[0][j] = (parts[0][j] + parts[2][j]) + (parts[1][j] + parts[3][j]);
    return (double)NAME(lane_sum)(parts[0]);
}

/*
 * The sum of exp(x[i] - shift), which go to OUT if it is given. They are
 * computed by themselves and added from memory, as they need all registers.
 */
static inline __attribute__((always_inline)) double
NAME(exp_sums)(TYPE *out, const TYPE *x, TYPE shift, int64_t n)
{
    double total = 0;

    if (n < SIDE)
        return NAME(exp_sum_short)(out, x, shift, n);
    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t end = first + PIECE < n ? first + PIECE : n;
        TYPE lanes[SIDE] = {0}, own[SIDE];
        int64_t i = first;

        for (; i + SIDE <= end; i += SIDE) {
            TYPE *e = out ? out + i : own;

            NAME(exps)(e, x + i, shift, SIDE);
#pragma omp simd
            for (int j = 0; j < SIDE; j++)
                lanes[j] += e[j];
        }
        for (int at = 0; i < end; i += LANES, at += LANES) {
            NAME(exp_last)(out ? out + i : NULL, x + i, shift, end - i, own);
#pragma omp simd
            for (int j = 0; j < LANES; j++)
                lanes[at + j] += own[j];
        }
        for (int width = SIDE / 2; width >= LANES; width /= 2)
#pragma omp simd
            for (int j = 0; j < width; j++)
                lanes[j] += lanes[j + width];
        total += (double)NAME(lane_sum)(lanes);
    }
    return total;
}

static double NAME(exp_sum)(TYPE *out, const TYPE *x, TYPE shift, int64_t n)
{
    return NAME(exp_sums)(out, x, shift, n);
}

/* The same without a result. */
static double NAME(exp_sum_only)(const TYPE *x, TYPE shift, int64_t n)
{
    return NAME(exp_sums)(NULL, x, shift, n);
}

static void NAME(scale)(TYPE *out, TYPE factor, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] *= factor;
}

static void NAME(softmax)(void *out, const void *in, int64_t n)
{
    TYPE shift = NAME(row_max)(in, n);
    double sum = NAME(exp_sum)(out, in, shift, n);

    NAME(scale)(out, (TYPE)(1 / sum), n);
}

static void NAME(log_softmax)(void *out, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *o = out;
    TYPE shift = NAME(row_max)(x, n);
    TYPE log_sum = (TYPE)log(NAME(exp_sum_only)(x, shift, n));

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = (x[i] - shift) - log_sum;
}

static void NAME(softmax_backward)(void *out, const void *y, const void *g,
                                   int64_t n)
{
    const TYPE *p = y;
    const TYPE *grad = g;
    TYPE *o = out;
    TYPE dot = (TYPE)NAME(sum_of)(TERM_PRODUCT, p, grad, 0, n);

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = p[i] * (grad[i] - dot);
}

static void NAME(log_softmax_backward)(void *out, const void *y, const void *g,
                                       int64_t n)
{
    const TYPE *log_p = y;
    const TYPE *grad = g;
    TYPE *o = out;
    TYPE sum = (TYPE)NAME(sum_of)(TERM_PLAIN, grad, NULL, 0, n);

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = grad[i] - EXP(log_p[i]) * sum;
}

static double NAME(cross_entropy)(const void *in, int64_t n, int64_t target)
{
    const TYPE *x = in;
    TYPE shift = NAME(row_max)(x, n);

    return log(NAME(exp_sum_only)(x, shift, n)) - (double)(x[target] - shift);
}

static void NAME(cross_entropy_backward)(void *out, const void *in, int64_t n,
                                         int64_t target, double scale)
{
    TYPE *o = out;
    TYPE shift = NAME(row_max)(in, n);
    double sum = NAME(exp_sum)(o, in, shift, n);

    NAME(scale)(o, (TYPE)(scale / sum), n);
    o[target] -= (TYPE)scale;
}

/* out = ((x - mean) - rest) * factor * weight + bias; the latter may be NULL.
 */
static void NAME(normalize)(TYPE *out, const TYPE *x, TYPE mean, TYPE rest,
                            TYPE factor, const TYPE *weight, const TYPE *bias,
                            int64_t n)
{
    if (weight && bias) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = ((x[i] - mean) - rest) * factor * weight[i] + bias[i];
    } else if (weight) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = ((x[i] - mean) - rest) * factor * weight[i];
    } else if (bias) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = ((x[i] - mean) - rest) * factor + bias[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = ((x[i] - mean) - rest) * factor;
    }
}

/* The sums of x[i] - shift and of their squares, in one pass. */
static void NAME(rest_sums)(const TYPE *x, TYPE shift, int64_t n,
                            double *out_rest, double *out_squares)
{
    enum { HALF = SIDE / 2 };

    *out_rest = *out_squares = 0;
    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t end = first + PIECE < n ? first + PIECE : n;
        TYPE rest[HALF] = {0}, squares[HALF] = {0};
        int64_t i = first;

        for (; i + HALF <= end; i += HALF)
#pragma omp simd
            for (int j = 0; j < HALF; j++) {
                const TYPE v = x[i + j] - shift;

                rest[j] += v;
                squares[j] += v * v;
            }
        for (int j = 0; i < end; i++, j++) {
            const TYPE v = x[i] - shift;

            rest[j] += v;
            squares[j] += v * v;
        }
#pragma omp simd
        for (int j = 0; j < LANES; j++) {
            rest[j] += rest[j + LANES];
            squares[j] += squares[j + LANES];
        }
        *out_rest += (double)NAME(lane_sum)(rest);
        *out_squares += (double)NAME(lane_sum)(squares);
    }
}

/*
 * The mean of large numbers is rounded to their precision; the rest is found
 * from the differences, which are exact or nearly so, and taken out of both
 * the variance and the result.
 */
static struct flex_moments NAME(moments)(const void *in, double epsilon,
                                         int64_t n)
{
    const TYPE *x = in;
    const double count = (double)n;
    TYPE mean = (TYPE)(NAME(sum_of)(TERM_PLAIN, x, NULL, 0, n) / count);
    double rest, variance;

    NAME(rest_sums)(x, mean, n, &rest, &variance);
    rest /= count;
    variance /= count;
    if (variance <= DBL_MAX) /* inf less inf would be no number */
        variance -= rest * rest;
    variance = variance < 0 ? 0 : variance;
    return (struct flex_moments){(double)mean, rest,
                                 1 / sqrt(variance + epsilon)};
}

static void NAME(layer_norm)(void *out, const void *in, const void *weight,
                             const void *bias, double epsilon, int64_t n)
{
    const struct flex_moments m = NAME(moments)(in, epsilon, n);

    NAME(normalize)
    (out, in, (TYPE)m.mean, (TYPE)m.rest, (TYPE)m.factor, weight, bias, n);
}

static void NAME(rms_norm)(void *out, const void *in, const void *weight,
                           double epsilon, int64_t n)
{
    const double squares = NAME(sum_of)(TERM_PRODUCT, in, in, 0, n) / (double)n;

    NAME(normalize)
    (out, in, 0, 0, (TYPE)(1 / sqrt(squares + epsilon)), weight, NULL, n);
}

/*
 * With n = (x - mean) factor and h = grad * weight:
 *     out = factor (h - mean(h) - n mean(h n))
 * in the three steps h, its sums, and the rest; OUT is neither X nor GRAD.
 */
static void NAME(norm_backward)(void *out, double *d_weight, double *d_bias,
                                const void *in, const void *gradient,
                                const void *weights, double epsilon,
                                int is_centred, int64_t n)
{
    const TYPE *x = in, *grad = gradient, *weight = weights;
    struct flex_moments m = {0, 0, 0};
    double h_mean = 0, hn_mean;
    TYPE *o = out, mean, rest, factor, first, slope;

    if (is_centred)
        m = NAME(moments)(in, epsilon, n);
    else
        m.factor = 1 / sqrt(NAME(sum_of)(TERM_PRODUCT, x, x, 0, n) / (double)n +
                            epsilon);
    mean = (TYPE)m.mean;
    rest = (TYPE)m.rest;
    factor = (TYPE)m.factor;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const TYPE normal = ((x[i] - mean) - rest) * factor;

        o[i] = grad[i] * weight[i];
        d_weight[i] += (double)(grad[i] * normal);
        d_bias[i] += (double)grad[i];
    }
    if (is_centred)
        h_mean = NAME(sum_of)(TERM_PLAIN, o, NULL, 0, n) / (double)n;
    hn_mean = NAME(sum_of)(TERM_MOMENT, x, o, mean, n) / (double)n;
    hn_mean = (hn_mean - m.rest * h_mean) * m.factor;
    first = (TYPE)h_mean;
    slope = (TYPE)(hn_mean * m.factor);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = factor * ((o[i] - first) - ((x[i] - mean) - rest) * slope);
}

static void NAME(affine)(void *out, const void *in, double mean, double scale,
                         double shift, int64_t n)
{
    const TYPE *x = in;
    const TYPE m = (TYPE)mean;
    const TYPE a = (TYPE)scale;
    const TYPE b = (TYPE)shift;
    TYPE *o = out;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = (x[i] - m) * a + b;
}

/* Algorithm 1 of Kingma and Ba 2015; the decay is decoupled (Loshchilov and
 * Hutter 2019). One pass: seven streams, no temporaries. Where the gradient
 * stays 0, m would decay to a denormal number and, rounded, stay one for good:
 * each takes a processor a hundred cycles. */
static void NAME(adam)(void *out_param, void *out_m, void *out_v,
                       const void *param, const void *grad, const void *in_m,
                       const void *in_v, int64_t n,
                       const struct flex_adam *adam)
{
    const TYPE keep = (TYPE)adam->keep;
    const TYPE rate = (TYPE)adam->rate;
    const TYPE beta1 = (TYPE)adam->beta1, new1 = (TYPE)(1 - adam->beta1);
    const TYPE beta2 = (TYPE)adam->beta2, new2 = (TYPE)(1 - adam->beta2);
    const TYPE correction = (TYPE)adam->correction;
    const TYPE epsilon = (TYPE)adam->epsilon;
    const TYPE least = (TYPE)adam->least;
    const TYPE *p = param;
    const TYPE *g = grad;
    const TYPE *m = in_m;
    const TYPE *v = in_v;
    TYPE *po = out_param;
    TYPE *mo = out_m;
    TYPE *vo = out_v;

    /* Outputs are inputs or nothing of them, so iterations are independent. */
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE m1 = beta1 * m[i] + new1 * g[i];
        TYPE v1 = beta2 * v[i] + new2 * (g[i] * g[i]);
        TYPE step;

        m1 = m1 < least && m1 > -least ? 0 : m1;
        v1 = v1 < least ? 0 : v1;
        step = rate * m1 / (SQRT(v1) * correction + epsilon);
        mo[i] = m1;
        vo[i] = v1;
        po[i] = p[i] * keep - step;
    }
}

static void NAME(sgd)(void *out_param, const void *param, const void *grad,
                      double keep_factor, double rate_factor, int64_t n)
{
    const TYPE keep = (TYPE)keep_factor, rate = (TYPE)rate_factor;
    const TYPE *p = param;
    const TYPE *g = grad;
    TYPE *out = out_param;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = p[i] * keep - g[i] * rate;
}

static void NAME(add_scaled)(void *acc, const void *in, double factor,
                             int64_t n)
{
    const TYPE *x = in;
    const TYPE f = (TYPE)factor;
    TYPE *a = acc;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        a[i] += x[i] * f;
}

static void NAME(add)(void *acc, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *a = acc;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        a[i] += x[i];
}

static void NAME(max)(void *acc, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *a = acc;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        a[i] = a[i] >= x[i] || a[i] != a[i] ? a[i] : x[i];
}

static double NAME(dot)(const void *a, const void *b, int64_t n)
{
    return NAME(sum_of)(TERM_PRODUCT, a, b, 0, n);
}

#undef TYPE
#undef NAME
#undef EXP
#undef SQRT
