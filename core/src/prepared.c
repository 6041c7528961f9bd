/* SPDX-License-Identifier: Apache-2.0 */
#include "prepared.h"

#include "words.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Plans that one op keeps on one device: shapes of a program's call sites. */
enum { KEPT_MAX = 64 };

struct hob__prepared {
    struct hob__prepared *next;
    struct hob_prepare plan;
    atomic_uint refs; /* the list's, and one a call that uses it */
    size_t words;
    uint64_t key[]; /* what the plan depends on */
};

/* ---- the list ---- */

/* Give one reference back; the last one ends the plan. */
void hob__prepared_give(struct hob__prepared *kept)
{
    if (atomic_fetch_sub_explicit(&kept->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (kept->plan.prepared && kept->plan.release)
        kept->plan.release(kept->plan.prepared);
    free(kept);
}

const struct hob_prepare *hob__prepared_plan(const struct hob__prepared *kept)
{
    return &kept->plan;
}

/* The plan with KEY, moved to the front and held. */
static struct hob__prepared *find(struct hob__prepared_list *list,
                                  const uint64_t *key, size_t words)
{
    struct hob__prepared **link = &list->first, *kept;

    while (*link && ((*link)->words != words ||
                     memcmp((*link)->key, key, words * sizeof(*key)) != 0))
        link = &(*link)->next;
    kept = *link;
    if (!kept)
        return NULL;
    *link = kept->next;
    kept->next = list->first;
    list->first = kept;
    atomic_fetch_add_explicit(&kept->refs, 1, memory_order_relaxed);
    return kept;
}

struct hob__prepared *hob__prepared_find(struct hob__prepared_list *list,
                                         pthread_mutex_t *lock,
                                         const struct hob_call *call)
{
    uint64_t on_stack[256]; /* enough but for long lists */
    struct hob__words words = {0};
    struct hob__prepared *kept;
    uint64_t *key = on_stack;

    hob__words_put_call(&words, call);
    if (words.count > sizeof(on_stack) / sizeof(on_stack[0]))
        key = malloc(words.count * sizeof(*key));
    if (!key)
        return NULL;
    words = (struct hob__words){.to = key};
    hob__words_put_call(&words, call);
    pthread_mutex_lock(lock);
    kept = find(list, key, words.count);
    pthread_mutex_unlock(lock);
    if (key != on_stack)
        free(key);
    return kept;
}

/* Take the least recent plan out of LIST. */
static struct hob__prepared *take_last(struct hob__prepared_list *list)
{
    struct hob__prepared **link = &list->first, *last;

    while ((*link)->next)
        link = &(*link)->next;
    last = *link;
    *link = NULL;
    list->count--;
    return last;
}

struct hob__prepared *hob__prepared_keep(struct hob__prepared_list *list,
                                         pthread_mutex_t *lock,
                                         const struct hob_call *call,
                                         const struct hob_prepare *plan)
{
    struct hob__words words = {0};
    struct hob__prepared *kept, *other, *last = NULL;

    hob__words_put_call(&words, call);
    kept = calloc(1, sizeof(*kept) + words.count * sizeof(kept->key[0]));
    if (!kept)
        return NULL;
    kept->words = words.count;
    words = (struct hob__words){.to = kept->key};
    hob__words_put_call(&words, call);
    kept->plan = *plan;
    atomic_init(&kept->refs, 2); /* the list's and the caller's */
    pthread_mutex_lock(lock);
    other = find(list, kept->key, kept->words);
    if (!other) {
        if (list->count == KEPT_MAX)
            last = take_last(list);
        kept->next = list->first;
        list->first = kept;
        list->count++;
    }
    pthread_mutex_unlock(lock);
    /* Plugin code is called without the lock. */
    if (last)
        hob__prepared_give(last);
    if (!other)
        return kept;
    atomic_store(&kept->refs, 1);
    hob__prepared_give(kept);
    return other;
}

void hob__prepared_clear(struct hob__prepared_list *list)
{
    while (list->first) {
        struct hob__prepared *kept = list->first;

        list->first = kept->next;
        hob__prepared_give(kept);
    }
    list->count = 0;
}
