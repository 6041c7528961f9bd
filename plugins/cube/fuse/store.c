/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include "../background.h"
#include "describe.h"
#include "emit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2, BUCKETS = 64 };

struct cube_fusion {
    struct cube_device *device; /* borrowed, outlives this */
    pthread_mutex_t lock;       /* of what follows */
    pthread_cond_t work;        /* there is some, or it is over */
    pthread_cond_t done;        /* a version is made */
    struct fuse_entry *entries[BUCKETS];
    struct fuse_version *first, **last; /* the queue */
    pthread_t threads[THREADS];
    uint32_t thread_count;
    uint32_t idle_count; /* threads that wait for work */
    int is_over;
    int32_t waits;
    struct hob_fused_stats stats;
};

/* ---- entries ---- */

static uint32_t bucket_of(const struct fuse_program *program)
{
    const unsigned char *at = (const unsigned char *)program;
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < sizeof(*program); i++)
        hash = (hash ^ at[i]) * UINT32_C(16777619);
    return (hash ^ hash >> 16) % BUCKETS;
}

static void version_free(struct cube_fusion *fusion,
                         struct fuse_version *version)
{
    cube_kernel_close(fusion->device->kernels, version->kernel);
    free(version->text);
    free(version);
}

static void entry_free(struct cube_fusion *fusion, struct fuse_entry *entry)
{
    while (entry->versions) {
        struct fuse_version *next = entry->versions->next;

        version_free(fusion, entry->versions);
        entry->versions = next;
    }
    free(entry);
}

static void unlink_locked(struct cube_fusion *fusion, struct fuse_entry *entry)
{
    struct fuse_entry **at = &fusion->entries[bucket_of(&entry->plan.program)];

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* What ENTRY's users have asked for and nobody has begun is not to be done. */
static void drop_work_locked(struct cube_fusion *fusion,
                             struct fuse_entry *entry)
{
    struct fuse_version **at = &fusion->first;
    struct fuse_version **own = &entry->versions;

    while (*at)
        if ((*at)->entry == entry)
            *at = (*at)->waiting;
        else
            at = &(*at)->waiting;
    fusion->last = at;
    while (*own) {
        struct fuse_version *version = *own;

        if (version->state != FUSE_QUEUED) {
            own = &version->next;
            continue;
        }
        *own = version->next;
        version_free(fusion, version);
    }
}

struct fuse_entry *fuse_store_take(struct cube_fusion *fusion,
                                   const struct fuse_plan *plan)
{
    const uint32_t bucket = bucket_of(&plan->program);
    struct fuse_entry *entry;

    pthread_mutex_lock(&fusion->lock);
    for (entry = fusion->entries[bucket];
         entry && memcmp(&entry->plan.program, &plan->program,
                         sizeof(plan->program)) != 0;)
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (entry) {
            entry->plan = *plan;
            entry->next = fusion->entries[bucket];
            fusion->entries[bucket] = entry;
        }
    }
    if (entry)
        entry->users++;
    pthread_mutex_unlock(&fusion->lock);
    return entry;
}

void fuse_store_give(struct cube_fusion *fusion, struct fuse_entry *entry)
{
    pthread_mutex_lock(&fusion->lock);
    if (--entry->users == 0) {
        drop_work_locked(fusion, entry);
        if (!entry->versions) {
            unlink_locked(fusion, entry);
            free(entry);
        }
    }
    pthread_mutex_unlock(&fusion->lock);
}

/* ---- compiling ---- */

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) +
           (uint64_t)time.tv_nsec;
}

/* Make VERSION's kernel; no lock is held, and nobody else touches it. */
static int make(struct cube_fusion *fusion, struct fuse_version *version,
                int *out_is_cached)
{
    struct cube_device *device = fusion->device;
    const struct hob_host *host = device->host;
    char *message = NULL;
    hob_status status = HOB_ERR_MEMORY;

    version->text = fuse_emit(&version->entry->plan, &version->class, device);
    version->program.text = version->text;
    if (version->text)
        status = cube_kernel_make(device->kernels, &version->variant,
                                  &version->kernel, out_is_cached, &message);
    /* Launches do not need it. */
    free(version->text);
    version->text = NULL;
    version->program.text = NULL;
    if (status && host->log_write)
        host->log_write(host, 2, "%s: a group of ops is run one by one: %s",
                        device->name, message ? message : "no memory is left");
    host->mem_free(host, message);
    return status == HOB_OK;
}

/* Make the first version of the queue. The lock is held, but not meanwhile. */
static void make_first_locked(struct cube_fusion *fusion)
{
    struct fuse_version *version = fusion->first;
    int is_good = 0, is_cached = 0;
    uint64_t begin;

    fusion->first = version->waiting;
    if (!fusion->first)
        fusion->last = &fusion->first;
    version->state = FUSE_COMPILING;
    pthread_mutex_unlock(&fusion->lock);
    begin = now_ns();
    if (cube_background_begin()) {
        is_good = make(fusion, version, &is_cached);
        cube_background_end();
    }
    begin = now_ns() - begin;
    pthread_mutex_lock(&fusion->lock);
    version->state = is_good ? FUSE_READY : FUSE_BAD;
    if (is_cached)
        fusion->stats.disk_hits++;
    else if (is_good) {
        fusion->stats.compiled++;
        fusion->stats.compile_ns += begin;
    }
    pthread_cond_broadcast(&fusion->done);
}

static void *run_thread(void *context)
{
    struct cube_fusion *fusion = context;

    pthread_mutex_lock(&fusion->lock);
    while (!fusion->is_over) {
        if (fusion->first) {
            make_first_locked(fusion);
            continue;
        }
        fusion->idle_count++;
        pthread_cond_wait(&fusion->work, &fusion->lock);
        fusion->idle_count--;
    }
    pthread_mutex_unlock(&fusion->lock);
    return NULL;
}

/* VERSION to the queue, and somebody to look at it: this thread, if there can
 * be no other. */
static void enqueue_locked(struct cube_fusion *fusion,
                           struct fuse_version *version)
{
    cube_background_watch();
    version->waiting = NULL;
    *fusion->last = version;
    fusion->last = &version->waiting;
    if (!fusion->idle_count && fusion->thread_count < THREADS &&
        !pthread_create(&fusion->threads[fusion->thread_count], NULL,
                        run_thread, fusion))
        fusion->thread_count++;
    if (fusion->thread_count)
        pthread_cond_signal(&fusion->work);
    else
        make_first_locked(fusion);
}

/* ---- versions ---- */

static struct fuse_version *version_new(struct cube_fusion *fusion,
                                        struct fuse_entry *entry,
                                        const struct fuse_class *class)
{
    struct fuse_version *version = calloc(1, sizeof(*version));

    if (!version)
        return NULL;
    version->class = *class;
    version->entry = entry;
    version->state = fuse_describe(&version->program, &version->variant,
                                   &entry->plan, class, &fusion->device->limits)
                         ? FUSE_QUEUED
                         : FUSE_BAD;
    version->next = entry->versions;
    entry->versions = version;
    return version;
}

hob_status fuse_store_get(struct cube_fusion *fusion, struct fuse_entry *entry,
                          const struct fuse_class *class,
                          const struct fuse_version **out_version)
{
    struct fuse_version *version;
    hob_status status;

    pthread_mutex_lock(&fusion->lock);
    for (version = entry->versions;
         version && memcmp(&version->class, class, sizeof(*class)) != 0;)
        version = version->next;
    if (!version) {
        version = version_new(fusion, entry, class);
        if (version && version->state == FUSE_QUEUED)
            enqueue_locked(fusion, version);
    }
    while (version && fusion->waits && version->state < FUSE_READY)
        pthread_cond_wait(&fusion->done, &fusion->lock);
    if (!version || version->state == FUSE_BAD)
        status = HOB_ERR_UNSUPPORTED;
    else
        status = version->state == FUSE_READY ? HOB_OK : HOB_ERR_BUSY;
    fusion->stats.not_ready += status == HOB_ERR_BUSY;
    pthread_mutex_unlock(&fusion->lock);
    *out_version = version;
    return status;
}

void fuse_store_wait(struct cube_fusion *fusion, int32_t waits)
{
    pthread_mutex_lock(&fusion->lock);
    fusion->waits = waits;
    pthread_cond_broadcast(&fusion->done);
    pthread_mutex_unlock(&fusion->lock);
}

void fuse_store_stats(struct cube_fusion *fusion, struct hob_fused_stats *out)
{
    struct hob_fused_stats stats;
    const uint32_t size = out->struct_size;

    pthread_mutex_lock(&fusion->lock);
    stats = fusion->stats;
    pthread_mutex_unlock(&fusion->lock);
    stats.struct_size = size;
    memcpy(out, &stats, size < sizeof(stats) ? size : sizeof(stats));
}

/* ---- life cycle ---- */

struct cube_fusion *cube_fusion_new(struct cube_device *device)
{
    struct cube_fusion *fusion = calloc(1, sizeof(*fusion));

    if (!fusion)
        return NULL;
    fusion->device = device;
    fusion->last = &fusion->first;
    if (pthread_mutex_init(&fusion->lock, NULL))
        goto no_lock;
    if (pthread_cond_init(&fusion->work, NULL))
        goto no_work;
    if (pthread_cond_init(&fusion->done, NULL))
        goto no_done;
    return fusion;
no_done:
    pthread_cond_destroy(&fusion->work);
no_work:
    pthread_mutex_destroy(&fusion->lock);
no_lock:
    free(fusion);
    return NULL;
}

void cube_fusion_free(struct cube_fusion *fusion)
{
    if (!fusion)
        return;
    pthread_mutex_lock(&fusion->lock);
    fusion->is_over = 1;
    pthread_cond_broadcast(&fusion->work);
    pthread_mutex_unlock(&fusion->lock);
    for (uint32_t i = 0; i < fusion->thread_count; i++)
        (void)pthread_join(fusion->threads[i], NULL);
    for (uint32_t i = 0; i < BUCKETS; i++)
        while (fusion->entries[i]) {
            struct fuse_entry *next = fusion->entries[i]->next;

            entry_free(fusion, fusion->entries[i]);
            fusion->entries[i] = next;
        }
    pthread_cond_destroy(&fusion->done);
    pthread_cond_destroy(&fusion->work);
    pthread_mutex_destroy(&fusion->lock);
    free(fusion);
}
