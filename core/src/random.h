/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - generators: a seed and the next block that nobody has drawn.
 *
 * A random op reserves as many blocks as it needs when it is called and keeps
 * (seed, offset); whatever runs it later draws the same numbers. A generator
 * is counted, since the scopes of a tree share one. All functions may be
 * called from any thread.
 */
#ifndef HOB__RANDOM_H
#define HOB__RANDOM_H

#include <hob/random.h>

struct hob__generator;

/* NULL without memory. The caller has one reference. */
struct hob__generator *hob__generator_new(uint64_t seed);

void hob__generator_ref(struct hob__generator *generator);
void hob__generator_unref(struct hob__generator *generator); /* NULL is fine */

/* Start the stream SEED at its first block. */
void hob__generator_seed(struct hob__generator *generator, uint64_t seed);

/*
 * Take the next BLOCKS blocks: *OUT_OFFSET is the first of them, of the stream
 * *OUT_SEED. Concurrent calls get disjoint ranges. Offsets wrap after 2^64.
 */
void hob__generator_reserve(struct hob__generator *generator, uint64_t blocks,
                            uint64_t *out_seed, uint64_t *out_offset);

#endif
