/* SPDX-License-Identifier: Apache-2.0 */
/* One cast: STORE(x) makes a TO of the stored element x of type FROM. */
static void CAST_NAME(TO_NAME, FROM_NAME)(void *out, const void *in, int64_t n)
{
    TO *o = out;
    const FROM *a = in;

#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = (TO)(STORE(a[i]));
}

#undef TO
#undef TO_NAME
#undef STORE
