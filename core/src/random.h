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

/* What was drawn in one run of a segment (checkpoint.c), in order. */
struct hob__draws {
    struct hob__draw {
        uint64_t seed;
        uint64_t offset;
        uint64_t blocks;
    } *items;
    size_t count;
    size_t capacity;
    int has_no_memory; /* some are missing */
};

void hob__draws_release(struct hob__draws *draws);

/* NULL without memory. The caller has one reference. */
struct hob__generator *hob__generator_new(uint64_t seed);

/* One that draws from SOURCE and notes in DRAWS what it drew. Both outlive it.
 * NULL without memory. */
struct hob__generator *hob__generator_noting(struct hob__generator *source,
                                             struct hob__draws *draws);

/* One that gives out what DRAWS has, once more; DRAWS outlives it. A new seed
 * is none of its business. NULL without memory. */
struct hob__generator *hob__generator_again(const struct hob__draws *draws);

/* Of the latter: whether just what DRAWS has was asked for. */
int hob__generator_is_same(struct hob__generator *generator);

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
