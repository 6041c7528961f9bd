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

struct hob__generator {
    atomic_uint_fast32_t refs;
    /* A lock, not two atomics: a draw that races with a new seed must not pair
     * the old seed with the new offset. */
    pthread_mutex_t lock;
    uint64_t seed; /* both under the lock */
    uint64_t next;
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
    return generator;
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
    (void)pthread_mutex_lock(&generator->lock);
    generator->seed = seed;
    generator->next = 0;
    (void)pthread_mutex_unlock(&generator->lock);
}

void hob__generator_reserve(struct hob__generator *generator, uint64_t blocks,
                            uint64_t *out_seed, uint64_t *out_offset)
{
    (void)pthread_mutex_lock(&generator->lock);
    *out_seed = generator->seed;
    *out_offset = generator->next;
    generator->next += blocks;
    (void)pthread_mutex_unlock(&generator->lock);
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
