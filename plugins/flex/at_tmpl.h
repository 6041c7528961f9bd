/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements of type T; included by at.c. */
static void SUFFIX(take)(const struct flex_at *at, const int64_t *indices,
                         int64_t n, void *out)
{
    T *to = out;

    for (int64_t i = 0; i < n; i++)
        to[i] = *(const T *)(const void *)(at->data + i * at->step_bytes +
                                           indices[i] * at->dim_bytes);
}

static void SUFFIX(put)(const struct flex_at *at, const int64_t *indices,
                        int64_t n, const char *in, int64_t in_step)
{
    for (int64_t i = 0; i < n; i++)
        *(T *)(void *)(at->data + i * at->step_bytes +
                       indices[i] * at->dim_bytes) =
            *(const T *)(const void *)(in + i * in_step);
}

static void SUFFIX(add)(const struct flex_at *at, const int64_t *indices,
                        int64_t n, const char *in, int64_t in_step)
{
    for (int64_t i = 0; i < n; i++) {
        T *to = (T *)(void *)(at->data + i * at->step_bytes +
                              indices[i] * at->dim_bytes);

        *to = (T)(*to + *(const T *)(const void *)(in + i * in_step));
    }
}

#undef T
#undef SUFFIX
