/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "random.h"

#include "scope.h"

#include <hob/philox.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct hob__generator {
    atomic_uint_fast32_t refs;
    /* A lock, not two atomics: a draw that races with a new seed must not pair
     * the old seed with the new offset. */
    pthread_mutex_t lock;
    uint64_t seed; /* all below under the lock */
    uint64_t next;
    struct hob__generator *source;  /* draws come from there; */
    struct hob__draws *noted;       /* and are written down here */
    const struct hob__draws *again; /* or they are those of another time */
    size_t again_count;             /* so many of them */
    int differs; /* what was asked for is not what was asked for then */
};

void hob_philox(uint64_t seed, uint64_t counter, uint32_t out_words[4])
{
    hob_philox_block(seed, counter, out_words);
}

struct hob__generator *hob__generator_new(uint64_t seed)
{
    struct hob__generator *generator = malloc(sizeof(*generator));

    if (!generator)
        return NULL;
    if (pthread_mutex_init(&generator->lock, NULL)) {
        free(generator);
        return NULL;
    }
    atomic_init(&generator->refs, 1);
    generator->seed = seed;
    generator->next = 0;
    generator->source = NULL;
    generator->noted = NULL;
    generator->again = NULL;
    generator->again_count = 0;
    generator->differs = 0;
    return generator;
}

struct hob__generator *hob__generator_noting(struct hob__generator *source,
                                             struct hob__draws *draws)
{
    struct hob__generator *generator = hob__generator_new(0);

    if (generator) {
        generator->source = source;
        generator->noted = draws;
    }
    return generator;
}

struct hob__generator *hob__generator_again(const struct hob__draws *draws)
{
    struct hob__generator *generator = hob__generator_new(0);

    if (generator)
        generator->again = draws;
    return generator;
}

int hob__generator_is_same(struct hob__generator *generator)
{
    int is_same;

    (void)pthread_mutex_lock(&generator->lock);
    is_same = !generator->differs &&
              generator->again_count == generator->again->count;
    (void)pthread_mutex_unlock(&generator->lock);
    return is_same;
}

void hob__draws_release(struct hob__draws *draws)
{
    free(draws->items);
    memset(draws, 0, sizeof(*draws));
}

void hob__generator_ref(struct hob__generator *generator)
{
    atomic_fetch_add_explicit(&generator->refs, 1, memory_order_relaxed);
}

void hob__generator_unref(struct hob__generator *generator)
{
    if (!generator || atomic_fetch_sub_explicit(&generator->refs, 1,
                                                memory_order_acq_rel) != 1)
        return;
    (void)pthread_mutex_destroy(&generator->lock);
    free(generator);
}

void hob__generator_seed(struct hob__generator *generator, uint64_t seed)
{
    while (generator->source) /* constant, as is what it points to */
        generator = generator->source;
    (void)pthread_mutex_lock(&generator->lock);
    generator->seed = seed;
    generator->next = 0;
    (void)pthread_mutex_unlock(&generator->lock);
}

static void note(struct hob__draws *draws, const struct hob__draw *draw)
{
    if (draws->count == draws->capacity) {
        size_t capacity = draws->capacity ? draws->capacity * 2 : 8;
        struct hob__draw *items =
            realloc(draws->items, capacity * sizeof(*items));

        if (!items) {
            draws->has_no_memory = 1;
            return;
        }
        draws->items = items;
        draws->capacity = capacity;
    }
    draws->items[draws->count++] = *draw;
}

/* What was drawn then; numbers of no worth beyond that, for a run that is
 * going to be refused. */
static void draw_again(struct hob__generator *generator, struct hob__draw *draw)
{
    const struct hob__draws *again = generator->again;
    const uint64_t blocks = draw->blocks;

    if (generator->again_count < again->count)
        *draw = again->items[generator->again_count++];
    else
        generator->differs = 1;
    if (draw->blocks != blocks)
        generator->differs = 1;
}

void hob__generator_reserve(struct hob__generator *generator, uint64_t blocks,
                            uint64_t *out_seed, uint64_t *out_offset)
{
    struct hob__draw draw = {0, 0, blocks};

    (void)pthread_mutex_lock(&generator->lock);
    if (generator->source) {
        hob__generator_reserve(generator->source, blocks, &draw.seed,
                               &draw.offset);
        note(generator->noted, &draw);
    } else if (generator->again) {
        draw_again(generator, &draw);
    } else {
        draw.seed = generator->seed;
        draw.offset = generator->next;
        generator->next += blocks;
    }
    (void)pthread_mutex_unlock(&generator->lock);
    *out_seed = draw.seed;
    *out_offset = draw.offset;
}

void hob_seed(hob_scope *scope, uint64_t seed)
{
    hob__generator_seed(scope->generator, seed);
}

hob_status hob_scope_generator(hob_scope *scope, uint64_t seed)
{
    struct hob__generator *generator;

    /* Its children borrow the one that it has, so that one stays. */
    if (scope->flags & HOB__SCOPE_GENERATOR) {
        hob__generator_seed(scope->generator, seed);
        return HOB_OK;
    }
    generator = hob__generator_new(seed);
    if (!generator)
        return HOB_ERR_MEMORY;
    scope->generator = generator;
    scope->flags |= HOB__SCOPE_GENERATOR;
    return HOB_OK;
}
