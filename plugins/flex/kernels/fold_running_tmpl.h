/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running sums or products: included by fold_tmpl.h for each, with
 * RUNNING(after) as the name and JOIN(a, b) as their sum or product.
 */
/* Each step waits for the one before: four rows are four that do not. */
static void RUNNING()(void *out, const void *in, void *carry, int64_t stride,
                      int64_t rows, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

    for (; rows >= 4; rows -= 4, acc += 4, o += 4 * stride, x += 4 * stride) {
        ACC a = acc[0], b = acc[1], c = acc[2], d = acc[3];

        for (int64_t i = 0; i < n; i++) {
            a = JOIN(a, (ACC)x[i]);
            o[i] = (T)a;
            b = JOIN(b, (ACC)x[stride + i]);
            o[stride + i] = (T)b;
            c = JOIN(c, (ACC)x[2 * stride + i]);
            o[2 * stride + i] = (T)c;
            d = JOIN(d, (ACC)x[3 * stride + i]);
            o[3 * stride + i] = (T)d;
        }
        acc[0] = a;
        acc[1] = b;
        acc[2] = c;
        acc[3] = d;
    }
    for (; rows > 0; rows--, acc++, o += stride, x += stride) {
        ACC a = *acc;

        for (int64_t i = 0; i < n; i++) {
            a = JOIN(a, (ACC)x[i]);
            o[i] = (T)a;
        }
        *acc = a;
    }
}

static void RUNNING(_rows)(void *out, const void *in, void *carry, int64_t n)
{
    T *o = out;
    const T *x = in;
    ACC *acc = carry;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        acc[i] = JOIN(acc[i], (ACC)x[i]);
        o[i] = (T)acc[i];
    }
}

#undef RUNNING
#undef JOIN
