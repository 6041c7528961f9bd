/* SPDX-License-Identifier: Apache-2.0 */
/*
 * philox_isa.h - random words on one instruction set. Included by
 * philox_base.c, philox_v2.c, philox_v3.c and philox_v4.c with PHILOX defined.
 */
#include "philox.h"

#include <hob/philox.h>

/* Blocks side by side: two AVX-512 vectors of words. */
enum { SIDE = 32 };

/* One round of SIDE blocks, as in hob_philox_rounds. */
static inline void round_of(uint32_t words[4][SIDE], uint32_t key0,
                            uint32_t key1)
{
#pragma omp simd
    for (int i = 0; i < SIDE; i++) {
        const uint64_t product0 = (uint64_t)words[0][i] * UINT32_C(0xD2511F53);
        const uint64_t product1 = (uint64_t)words[2][i] * UINT32_C(0xCD9E8D57);

        words[0][i] = (uint32_t)(product1 >> 32) ^ words[1][i] ^ key0;
        words[2][i] = (uint32_t)(product0 >> 32) ^ words[3][i] ^ key1;
        words[1][i] = (uint32_t)product1;
        words[3][i] = (uint32_t)product0;
    }
}

void PHILOX(uint64_t seed, uint64_t first, int64_t count, uint32_t *words)
{
    for (; count >= SIDE; count -= SIDE, first += SIDE, words += 4 * SIDE) {
        uint32_t side[4][SIDE];
        uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);

        for (uint32_t i = 0; i < SIDE; i++) {
            side[0][i] = (uint32_t)(first + i);
            side[1][i] = (uint32_t)((first + i) >> 32);
            side[2][i] = 0;
            side[3][i] = 0;
        }
        for (int round = 0; round < 10; round++) {
            round_of(side, key0, key1);
            key0 += UINT32_C(0x9E3779B9);
            key1 += UINT32_C(0xBB67AE85);
        }
#pragma omp simd
        for (int i = 0; i < SIDE; i++) {
            words[4 * i] = side[0][i];
            words[4 * i + 1] = side[1][i];
            words[4 * i + 2] = side[2][i];
            words[4 * i + 3] = side[3][i];
        }
    }
    for (; count > 0; count--, first++, words += 4)
        hob_philox_block(seed, first, words);
}
