/* SPDX-License-Identifier: Apache-2.0 */
/* COUNT elements of type T, each N times; included by fused_run.c. */
static void SUFFIX(expand)(void *out, const void *in, int64_t count, int64_t n)
{
    T *to = out;
    const T *from = in;

    for (int64_t r = 0; r < count; r++, to += n) {
        const T value = from[r];

        for (int64_t i = 0; i < n; i++)
            to[i] = value;
    }
}

#undef T
#undef SUFFIX
