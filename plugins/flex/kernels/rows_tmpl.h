/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_tmpl.h - the row kernels of one type. Included by rows_isa.h with
 * TYPE, NAME(x), EXP(x), LOG(x) and SQRT(x) defined.
 *
 * Reductions are written over arrays of LANES sums, which the compiler keeps
 * in vectors without being allowed to reorder anything.
 */

/* The sum of LANES numbers, pairwise: halves added to halves. */
static inline TYPE NAME(lane_sum)(TYPE *lanes)
{
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

static TYPE NAME(row_max)(const TYPE *x, int64_t n)
{
    TYPE lanes[LANES];
    TYPE best = -(TYPE)INFINITY;
    int64_t i = 0;

    for (int j = 0; j < LANES; j++)
        lanes[j] = best;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (; i < n; i++)
        lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
    for (int j = 0; j < LANES; j++)
        best = lanes[j] > best ? lanes[j] : best;
    return best; /* NaN is left out: the exponentials bring it in */
}

/* out[i] = exp(x[i] - shift), or nothing if OUT is NULL; returns the sum. */
static inline __attribute__((always_inline)) TYPE
NAME(exp_sum)(TYPE *out, const TYPE *x, TYPE shift, int64_t n)
{
    TYPE lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            TYPE e = EXP(x[i + j] - shift);
            if (out)
                out[i + j] = e;
            lanes[j] += e;
        }
    for (int j = 0; i < n; i++, j++) {
        TYPE e = EXP(x[i] - shift);
        if (out)
            out[i] = e;
        lanes[j] += e;
    }
    return NAME(lane_sum)(lanes);
}

static void NAME(scale)(TYPE *out, TYPE factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] *= factor;
}

static void NAME(softmax)(void *out, const void *in, int64_t n)
{
    TYPE shift = NAME(row_max)(in, n);
    TYPE sum = NAME(exp_sum)(out, in, shift, n);

    NAME(scale)(out, 1 / sum, n);
}

static void NAME(log_softmax)(void *out, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *o = out;
    TYPE shift = NAME(row_max)(x, n);
    TYPE log_sum = LOG(NAME(exp_sum)(NULL, x, shift, n));

    for (int64_t i = 0; i < n; i++)
        o[i] = (x[i] - shift) - log_sum;
}

static TYPE NAME(dot_sum)(const TYPE *a, const TYPE *b, int64_t n)
{
    TYPE lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += a[i + j] * b[i + j];
    for (int j = 0; i < n; i++, j++)
        lanes[j] += a[i] * b[i];
    return NAME(lane_sum)(lanes);
}

static TYPE NAME(sum)(const TYPE *a, int64_t n)
{
    TYPE lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += a[i + j];
    for (int j = 0; i < n; i++, j++)
        lanes[j] += a[i];
    return NAME(lane_sum)(lanes);
}

static void NAME(softmax_backward)(void *out, const void *y, const void *g,
                                   int64_t n)
{
    const TYPE *p = y;
    const TYPE *grad = g;
    TYPE *o = out;
    TYPE dot = NAME(dot_sum)(p, grad, n);

    for (int64_t i = 0; i < n; i++)
        o[i] = p[i] * (grad[i] - dot);
}

static void NAME(log_softmax_backward)(void *out, const void *y, const void *g,
                                       int64_t n)
{
    const TYPE *log_p = y;
    const TYPE *grad = g;
    TYPE *o = out;
    TYPE sum = NAME(sum)(grad, n);

    for (int64_t i = 0; i < n; i++)
        o[i] = grad[i] - EXP(log_p[i]) * sum;
}

static double NAME(cross_entropy)(const void *in, int64_t n, int64_t target)
{
    const TYPE *x = in;
    TYPE shift = NAME(row_max)(x, n);

    return (double)(LOG(NAME(exp_sum)(NULL, x, shift, n)) -
                    (x[target] - shift));
}

static void NAME(cross_entropy_backward)(void *out, const void *in, int64_t n,
                                         int64_t target, double scale)
{
    TYPE *o = out;
    TYPE shift = NAME(row_max)(in, n);
    TYPE sum = NAME(exp_sum)(o, in, shift, n);

    NAME(scale)(o, (TYPE)scale / sum, n);
    o[target] -= (TYPE)scale;
}

/* The sum of (x - mean)^2. */
static TYPE NAME(square_sum)(const TYPE *x, TYPE mean, int64_t n)
{
    TYPE lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += (x[i + j] - mean) * (x[i + j] - mean);
    for (int j = 0; i < n; i++, j++)
        lanes[j] += (x[i] - mean) * (x[i] - mean);
    return NAME(lane_sum)(lanes);
}

/* The sum of x - mean: what the rounding of the mean left. */
static TYPE NAME(rest_sum)(const TYPE *x, TYPE mean, int64_t n)
{
    TYPE lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += x[i + j] - mean;
    for (int j = 0; i < n; i++, j++)
        lanes[j] += x[i] - mean;
    return NAME(lane_sum)(lanes);
}

/*
 * Two passes. The mean of large numbers is rounded to their precision; the
 * rest is found from the differences, which are exact or nearly so, and taken
 * out of both the variance and the result.
 */
static void NAME(layer_norm)(void *out, const void *in, const void *weight,
                             const void *bias, double epsilon, int64_t n)
{
    const TYPE *x = in;
    const TYPE *w = weight;
    const TYPE *b = bias;
    TYPE *o = out;
    TYPE mean = NAME(sum)(x, n) / (TYPE)n;
    TYPE rest = NAME(rest_sum)(x, mean, n) / (TYPE)n;
    TYPE variance = NAME(square_sum)(x, mean, n) / (TYPE)n - rest * rest;
    TYPE factor;

    variance = variance < 0 ? 0 : variance;
    factor = 1 / SQRT(variance + (TYPE)epsilon);
    if (w && b)
        for (int64_t i = 0; i < n; i++)
            o[i] = ((x[i] - mean) - rest) * factor * w[i] + b[i];
    else if (w)
        for (int64_t i = 0; i < n; i++)
            o[i] = ((x[i] - mean) - rest) * factor * w[i];
    else
        for (int64_t i = 0; i < n; i++)
            o[i] = ((x[i] - mean) - rest) * factor + (b ? b[i] : 0);
}

static void NAME(affine)(void *out, const void *in, double mean, double scale,
                         double shift, int64_t n)
{
    const TYPE *x = in;
    const TYPE m = (TYPE)mean;
    const TYPE a = (TYPE)scale;
    const TYPE b = (TYPE)shift;
    TYPE *o = out;

    for (int64_t i = 0; i < n; i++)
        o[i] = (x[i] - m) * a + b;
}

/* Algorithm 1 of Kingma and Ba 2015; the decay is decoupled (Loshchilov and
 * Hutter 2019). One pass: seven streams, no temporaries. */
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
        TYPE step = rate * m1 / (SQRT(v1) * correction + epsilon);

        mo[i] = m1;
        vo[i] = v1;
        po[i] = p[i] * keep - step;
    }
}

static void NAME(add_scaled)(void *acc, const void *in, double factor,
                             int64_t n)
{
    const TYPE *x = in;
    const TYPE f = (TYPE)factor;
    TYPE *a = acc;

    for (int64_t i = 0; i < n; i++)
        a[i] += x[i] * f;
}

static void NAME(add)(void *acc, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *a = acc;

    for (int64_t i = 0; i < n; i++)
        a[i] += x[i];
}

static void NAME(max)(void *acc, const void *in, int64_t n)
{
    const TYPE *x = in;
    TYPE *a = acc;

    for (int64_t i = 0; i < n; i++)
        a[i] = a[i] >= x[i] || a[i] != a[i] ? a[i] : x[i];
}

static double NAME(dot)(const void *a, const void *b, int64_t n)
{
    return (double)NAME(dot_sum)(a, b, n);
}

#undef TYPE
#undef NAME
#undef EXP
#undef LOG
#undef SQRT
