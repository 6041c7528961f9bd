/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, PASSES = 64 / DIGIT_BITS };

uint64_t vision_key(double score)
{
    uint64_t bits;

    score += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof(bits));
    /* Doubles rise as their bits do; negative ones fall. */
    return bits >> 63 ? bits : ~bits & INT64_MAX;
}

static uint32_t digit(uint64_t key, int pass)
{
    return (uint32_t)(key >> pass * DIGIT_BITS) & (DIGITS - 1);
}

/* A radix sort from the last digit to the first. Where all keys have one digit
 * in common, as the low ones of floats widened to double, there is no pass. */
void vision_sort(struct vision_scored *items, struct vision_scored *spare,
                 int64_t count)
{
    struct vision_scored *from = items, *to = spare, *swap;
    int64_t starts[DIGITS], sum;

    for (int pass = 0; pass < PASSES && count; pass++) {
        memset(starts, 0, sizeof(starts));
        for (int64_t i = 0; i < count; i++)
            starts[digit(from[i].key, pass)]++;
        if (starts[digit(from[0].key, pass)] == count)
            continue;
        sum = 0;
        for (int d = 0; d < DIGITS; d++) {
            int64_t size = starts[d];

            starts[d] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < count; i++)
            to[starts[digit(from[i].key, pass)]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, (size_t)count * sizeof(*items));
}
