/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc_tmpl.h - the kernels of ctc.h for one type. Included by ctc_isa.h with
 * TYPE, NAME(x), EXP(x) and LOG(x) defined.
 */

static void NAME(step)(double *restrict next, const double *now,
                       const double *skip, const void *emit, int64_t n)
{
    const TYPE *emitted = emit;

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double a = now[i], b = now[i - 1], c = now[i - 2] + skip[i];
        double most = a > b ? a : b;
        TYPE sum;

        most = most > c ? most : c;
        sum = EXP((TYPE)(a - most)) + EXP((TYPE)(b - most)) +
              EXP((TYPE)(c - most));
        next[i] = most + (double)LOG(sum) + (double)emitted[i];
    }
}

/* What of G goes to each of the three, then what each gets from all. */
static void NAME(back)(double *restrict g, const double *now,
                       const double *skip, double *restrict shares, int64_t n)
{
    double *restrict second = shares + n + 2;
    double *restrict third = shares + 2 * (n + 2);

#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double a = now[i], b = now[i - 1], c = now[i - 2] + skip[i];
        double most = a > b ? a : b, scale;
        TYPE ea, eb, ec;

        most = most > c ? most : c;
        ea = EXP((TYPE)(a - most));
        eb = EXP((TYPE)(b - most));
        ec = EXP((TYPE)(c - most));
        scale = g[i] / (double)(ea + eb + ec);
        shares[i] = (double)ea * scale;
        second[i] = (double)eb * scale;
        third[i] = (double)ec * scale;
    }
    for (int64_t i = n; i < n + 2; i++)
        shares[i] = second[i] = third[i] = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        g[i] = shares[i] + second[i + 1] + third[i + 2];
}
