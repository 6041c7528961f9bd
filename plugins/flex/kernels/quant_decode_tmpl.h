/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_decode_tmpl.h - the numbers of codes in one type. Included by
 * quant_tmpl.h after unpack() with TYPE and NAME(x) defined, which it
 * undefines.
 */

/* N elements of a block. */
static inline void NAME(scale)(const int8_t *restrict in, int64_t n,
                               TYPE factor, TYPE *restrict out)
{
    enum { STEP = 32 }; /* a constant, for vectors without a remainder */
    int64_t i = 0;

    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < STEP; k++)
            out[i + k] = (TYPE)in[i + k] * factor;
    for (; i < n; i++)
        out[i] = (TYPE)in[i] * factor;
}

static void NAME(decode_integers)(const struct flex_quant_codes *codes,
                                  const int8_t *restrict in, TYPE *restrict out)
{
    const float *restrict factors = codes->factors;
    int64_t length = codes->head;

    if (codes->block == 1) {
        for (int64_t i = 0; i < codes->n; i++)
            out[i] = (TYPE)in[i] * (TYPE)factors[i];
        return;
    }
    for (int64_t i = 0; i < codes->n; i += length, length = codes->block) {
        const int64_t left = codes->n - i;

        NAME(scale)(in + i, length < left ? length : left, *factors++, out + i);
    }
}

static void NAME(decode_floats)(const struct flex_quant_codes *codes,
                                const uint8_t *restrict in, TYPE *restrict out)
{
    const float *restrict factors = codes->factors;
    const float *restrict numbers = codes->numbers;
    int64_t length = codes->head;

    for (int64_t i = 0; i < codes->n; i += length, length = codes->block) {
        const int64_t left = codes->n - i;
        const int64_t end = i + (length < left ? length : left);
        const TYPE factor = *factors++;

        for (int64_t k = i; k < end; k++)
            out[k] = (TYPE)numbers[in[k]] * factor;
    }
}

static void NAME(decode)(const struct flex_quant_codes *codes, TYPE *out)
{
    int8_t unpacked[FLEX_QUANT_RUN + 8];
    const int8_t *in = integers(codes, unpacked);

    if (codes->numbers)
        NAME(decode_floats)(codes, (const uint8_t *)in, out);
    else
        NAME(decode_integers)(codes, in, out);
}

#undef TYPE
#undef NAME
