/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct shared {
    struct shared *next;
    pthread_mutex_t lock; /* held while MAKE runs */
    void *made;
    char key[];
};

/* The one exception to "no mutable file-scope state": these are facts about
 * the process, such as the one OpenBLAS that several runtimes must share. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *list;
static atomic_uint last_serial;
static atomic_uint forks;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static struct shared *find_or_add_locked(const char *key)
{
    struct shared *item;
    size_t size = strlen(key) + 1;

    for (item = list; item; item = item->next)
        if (!strcmp(item->key, key))
            return item;
    item = calloc(1, sizeof(*item) + size);
    if (!item)
        return NULL;
    memcpy(item->key, key, size);
    pthread_mutex_init(&item->lock, NULL);
    item->next = list;
    list = item;
    return item;
}

void *hob__process_shared(const char *key, void *(*make)(void))
{
    struct shared *item;
    void *made;

    pthread_mutex_lock(&list_lock);
    item = find_or_add_locked(key);
    pthread_mutex_unlock(&list_lock);
    if (!item)
        return NULL;
    pthread_mutex_lock(&item->lock);
    if (!item->made)
        item->made = make();
    made = item->made;
    pthread_mutex_unlock(&item->lock);
    return made;
}

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch(void)
{
    /* Without memory nothing is counted: calls in a child go unrefused. */
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void hob__process_watch_forks(void)
{
    (void)pthread_once(&watch_once, watch);
}

uint32_t hob__process_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

uint32_t hob__process_mark(void)
{
    return 1 + hob__process_forks() % UINT16_MAX;
}

uint32_t hob__process_serial(void)
{
    return atomic_fetch_add(&last_serial, 1) + 1;
}
