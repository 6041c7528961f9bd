/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements of type T moved; included by at.c. */
static void SUFFIX(take)(const struct flex_at *at, const int64_t *indices,
                         int64_t n, void *out)
{
    const T *from = (const T *)(const void *)at->data;
    T *to = out;

    if (at->step_bytes == 0 && at->dim_bytes == (int64_t)sizeof(T))
        for (int64_t i = 0; i < n; i++)
            to[i] = from[indices[i]];
    else
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

#undef T
#undef SUFFIX
