/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceilings_tmpl.h - the loops of ceilings.c for one width of vectors.
 */

TARGET static void NAME(fma)(struct part *part)
{
    FLOATS sums[CHAINS];
    const FLOATS factor = SET(0.999f);
    const FLOATS term = SET(0.001f);

    for (int i = 0; i < CHAINS; i++)
        sums[i] = SET((float)i);
    /* clang-format off */
    for (int64_t round = 0; round < part->repeats * FMA_ROUNDS; round++)
        UNROLLED
        for (int i = 0; i < CHAINS; i++)
            sums[i] = FMA(sums[i], factor, term);
    /* clang-format on */
    for (int i = 1; i < CHAINS; i++)
        sums[0] = ADD(sums[0], sums[i]);
    STORE(part->sink, sums[0]);
}

/* Adam's quotients, of numbers in the first-level cache. */
TARGET static void NAME(root)(struct part *part)
{
    const FLOATS small = SET(1e-8f);

    for (int64_t r = 0; r < part->repeats; r++)
        for (int64_t i = 0; i + 2 * LANES <= part->count; i += 2 * LANES) {
            const FLOATS a = LOAD(part->from + i);
            const FLOATS b = LOAD(part->from + i + LANES);

            STORE(part->to + i, DIV(a, ADD(ROOT(a), small)));
            STORE(part->to + i + LANES, DIV(b, ADD(ROOT(b), small)));
        }
}

TARGET static void NAME(sum)(struct part *part)
{
    FLOATS a = SET(0), b = a, c = a, d = a;

    /* Four runs side by side, which is faster than one here and there. */
    for (int64_t r = 0; r < part->repeats; r++)
        for (int64_t i = 0; i + 4 * RUN <= part->count; i += 4 * RUN)
            for (const float *x = part->from + i; x < part->from + i + RUN;
                 x += LANES) {
                a = ADD(a, LOAD(x));
                b = ADD(b, LOAD(x + RUN));
                c = ADD(c, LOAD(x + 2 * RUN));
                d = ADD(d, LOAD(x + 3 * RUN));
            }
    STORE(part->sink, ADD(ADD(a, b), ADD(c, d)));
}

TARGET static void NAME(scale)(struct part *part)
{
    const FLOATS factor = SET(0.999f);

    for (int64_t r = 0; r < part->repeats; r++)
        for (int64_t i = 0; i + 2 * LANES <= part->count; i += 2 * LANES) {
            STORE(part->to + i, MUL(factor, LOAD(part->from + i)));
            STORE(part->to + i + LANES,
                  MUL(factor, LOAD(part->from + i + LANES)));
        }
}

TARGET static void NAME(stream)(struct part *part)
{
    const FLOATS factor = SET(0.999f);

    for (int64_t r = 0; r < part->repeats; r++)
        for (int64_t i = 0; i + 2 * LANES <= part->count; i += 2 * LANES) {
            STREAM(part->to + i, MUL(factor, LOAD(part->from + i)));
            STREAM(part->to + i + LANES,
                   MUL(factor, LOAD(part->from + i + LANES)));
        }
    _mm_sfence();
}

#undef TARGET
#undef NAME
#undef FLOATS
#undef LANES
#undef SET
#undef LOAD
#undef STORE
#undef STREAM
#undef ADD
#undef MUL
#undef DIV
#undef ROOT
#undef FMA
