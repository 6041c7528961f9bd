/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of type T updated one after the other; included by at.c. Sums and
 * products are computed in W, which wraps where T is an integer; IS_NAN(x) is 0
 * there.
 */

/* As sums, products, minimum and maximum of two tensors: NaN if either is. */
static inline __attribute__((always_inline)) T
SUFFIX(combine)(T a, T b, const enum flex_at_update update)
{
    switch (update) {
    case FLEX_AT_ADD:
        return (T)((W)a + (W)b);
    case FLEX_AT_MUL:
        return (T)((W)a * (W)b);
    case FLEX_AT_MIN:
        return (a < b) | IS_NAN(a) ? a : b;
    default:
        return (a > b) | IS_NAN(a) ? a : b;
    }
}

static inline __attribute__((always_inline)) void
SUFFIX(each)(const struct flex_at *at, const int64_t *indices, int64_t n,
             const enum flex_at_update update, const char *in, int64_t in_step)
{
    for (int64_t i = 0; i < n; i++) {
        T *to = (T *)(void *)(at->data + i * at->step_bytes +
                              indices[i] * at->dim_bytes);

        *to = SUFFIX(combine)(*to, *(const T *)(const void *)(in + i * in_step),
                              update);
    }
}

static void SUFFIX(update)(const struct flex_at *at, const int64_t *indices,
                           int64_t n, enum flex_at_update update,
                           const char *in, int64_t in_step)
{
    if (update == FLEX_AT_ADD)
        SUFFIX(each)(at, indices, n, FLEX_AT_ADD, in, in_step);
    else if (update == FLEX_AT_MUL)
        SUFFIX(each)(at, indices, n, FLEX_AT_MUL, in, in_step);
    else if (update == FLEX_AT_MIN)
        SUFFIX(each)(at, indices, n, FLEX_AT_MIN, in, in_step);
    else
        SUFFIX(each)(at, indices, n, FLEX_AT_MAX, in, in_step);
}

#undef T
#undef W
#undef IS_NAN
#undef SUFFIX
