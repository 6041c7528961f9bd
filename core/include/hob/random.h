/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/random.h - random numbers.
 *
 * Numbers are Philox 4x32-10 (Salmon et al. 2011): element i of a draw is a
 * pure function of (seed, offset, i), so threads, laziness and recomputation
 * change nothing. A runtime has one generator, seeded from its options, which
 * all its scopes share but those given their own; each random op reserves a
 * range of offsets when it is called. Threads that draw at the same time want
 * generators of their own, or the order of their calls decides who draws what.
 */
#ifndef HOB_RANDOM_H
#define HOB_RANDOM_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/* Restart the generator that SCOPE draws from, and all that share it. */
HOB_API void hob_seed(hob_scope *scope, uint64_t seed);

/* Give SCOPE a generator of its own, which its later children share. */
HOB_API HOB_MUST_CHECK hob_status hob_scope_generator(hob_scope *scope,
                                                      uint64_t seed);

/* Four 32-bit words: block COUNTER of the stream SEED. */
HOB_API void hob_philox(uint64_t seed, uint64_t counter, uint32_t out_words[4]);

HOB_END_DECLS

#endif
