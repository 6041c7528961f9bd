/* SPDX-License-Identifier: Apache-2.0 */
/*
 * philox.h - many blocks of random words at a time, those of hob/philox.h.
 * One function an instruction set.
 */
#ifndef FLEX_KERNELS_PHILOX_H
#define FLEX_KERNELS_PHILOX_H

#include <stdint.h>

/* Blocks FIRST .. FIRST + COUNT - 1 of stream SEED, four words each. */
typedef void (*flex_philox_fn)(uint64_t seed, uint64_t first, int64_t count,
                               uint32_t *words);

void flex_philox_base(uint64_t seed, uint64_t first, int64_t count,
                      uint32_t *words);
void flex_philox_v2(uint64_t seed, uint64_t first, int64_t count,
                    uint32_t *words);
void flex_philox_v3(uint64_t seed, uint64_t first, int64_t count,
                    uint32_t *words);
void flex_philox_v4(uint64_t seed, uint64_t first, int64_t count,
                    uint32_t *words);

#endif
