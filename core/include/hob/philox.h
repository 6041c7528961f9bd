/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/philox.h - the random numbers of Hob, for kernels.
 *
 * Philox 4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011, section 4.3 with the multipliers and
 * Weyl constants of table 2. A block is a pure function of key and counter,
 * so any order and any number of threads give the same numbers.
 *
 * A stream in Hob is a 64-bit seed (the key) and a 64-bit block counter; the
 * upper half of the 128-bit counter is zero.
 */
#ifndef HOB_PHILOX_H
#define HOB_PHILOX_H

#include <stdint.h>

/* 32-bit words of a block. */
enum { HOB_PHILOX_WORDS = 4 };

/* The ten rounds over COUNTER under KEY, in place. */
static inline void hob_philox_rounds(uint32_t counter[4], const uint32_t key[2])
{
    uint32_t key0 = key[0];
    uint32_t key1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)counter[0] * UINT32_C(0xD2511F53);
        uint64_t product1 = (uint64_t)counter[2] * UINT32_C(0xCD9E8D57);
        uint32_t word0 = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0;
        uint32_t word2 = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;

        counter[0] = word0;
        counter[1] = (uint32_t)product1;
        counter[2] = word2;
        counter[3] = (uint32_t)product0;
        key0 += UINT32_C(0x9E3779B9); /* the golden ratio, 32 bits of it */
        key1 += UINT32_C(0xBB67AE85); /* sqrt(3) - 1 */
    }
}

/* Four 32-bit words: block BLOCK of the stream SEED. */
static inline void hob_philox_block(uint64_t seed, uint64_t block,
                                    uint32_t out_words[4])
{
    uint32_t key[2];

    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    out_words[0] = (uint32_t)block;
    out_words[1] = (uint32_t)(block >> 32);
    out_words[2] = 0;
    out_words[3] = 0;
    hob_philox_rounds(out_words, key);
}

/* Uniform in [0, 1) from the upper 24 bits of WORD: exact in f32. */
static inline float hob_philox_f32(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* Uniform in [0, 1) from 53 bits of two words, LOW first: exact in f64. */
static inline double hob_philox_f64(uint32_t low, uint32_t high)
{
    uint64_t bits = ((uint64_t)high << 32) | low;

    return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}

#endif
