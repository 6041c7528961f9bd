/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "pool.h"

#include "platform_process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * A submitter owns a slot, fills it and opens it. A worker that sees an open
 * slot counts itself in (users), looks again, and only then reads the job: the
 * submitter closes the slot first and then waits for users to be 0, so nobody
 * reads a slot that is being reused. Both sides write one word and read the
 * other, hence sequential consistency.
 */

enum {
    SLOT_COUNT = 8,   /* jobs at once; more run inline */
    PIECES_MAX = 256, /* enough to balance, few enough to be cheap */
    RUNS_MAX = 8,
    THREADS_MAX = 1024,
    /* A wake-up costs 5 us, where a processor is virtual three times that, and
     * between two jobs a program often does some small things alone. */
    SPIN_NS = 100000,
    /* For the last worker. After the first part of that each look is also a
     * chance for whoever waits for this processor, as that worker may. */
    WAIT_NS = 30000,
    WAIT_ALONE_NS = 3000,
    SPINS_A_LOOK = 32, /* at the clock */
    KEEP_NS = 1000000, /* the workers are moved no more often, each */
    CACHE_LINE = 64
};

/*
 * The pieces are cut into as many runs as there are threads. A thread begins
 * with the run of its number, so job after job it meets the same part of the
 * data, which its own caches may still hold; then it helps with the others.
 */
struct run {
    _Alignas(CACHE_LINE) atomic_uint next; /* piece to claim */
};

struct slot {
    _Alignas(CACHE_LINE) atomic_uint open; /* has pieces left, perhaps */
    atomic_uint owned;                     /* by a submitter */
    atomic_uint waiting;                   /* the submitter sleeps */
    uint32_t pieces;
    uint32_t runs;
    int64_t count;
    int64_t grain;
    hob_range_fn fn;
    void *context;
    /* What the workers write is apart from what they only read. */
    _Alignas(CACHE_LINE) atomic_uint users; /* workers that may read the job */
    struct run run[RUNS_MAX];
};

struct worker {
    struct hob__pool *pool; /* borrowed, outlives the worker */
    pthread_t thread;
    uint32_t number; /* from 1 */
};

struct hob__pool {
    _Alignas(CACHE_LINE) atomic_uint epoch; /* changes with every job */
    atomic_uint sleepers;
    atomic_uint started; /* workers were started, or cannot be */
    atomic_uint stop;
    _Alignas(CACHE_LINE) atomic_uint callers; /* that submit just now */
    atomic_uint kept_off;     /* the processor that workers are kept off */
    _Atomic uint64_t kept_ns; /* since when */
    struct slot slots[SLOT_COUNT];

    pthread_mutex_t lock;
    pthread_cond_t wake;  /* for workers: epoch or stop changed */
    pthread_cond_t done;  /* for submitters: some slot has no users left */
    pthread_key_t inside; /* in a piece: the thread's number plus 1 */
    struct hob__fork_mark mark;
    struct worker *workers; /* threads - 1 of them */
    uint32_t threads;
    uint32_t running; /* workers that did start; under the lock */
    struct hob__cpus cpus; /* that they may use */
};

/* How many pieces a job has; grain is at least 1. */
static uint32_t piece_count(int64_t count, int64_t grain)
{
    int64_t units = count / grain;

    if (units < 1)
        return 1;
    return units < PIECES_MAX ? (uint32_t)units : PIECES_MAX;
}

/*
 * Run piece INDEX. Pieces consist of whole units of GRAIN items, the first
 * ones of one more where they do not divide; the last takes what is left.
 */
static void piece_run(const struct slot *job, uint32_t index, uint32_t worker)
{
    int64_t units = job->count / job->grain;
    int64_t each = units / job->pieces;
    int64_t more = units % job->pieces;
    int64_t first = index * each + (index < more ? index : more);
    int64_t last = first + each + (index < more);

    job->fn(job->context, first * job->grain,
            index + 1 == job->pieces ? job->count : last * job->grain, worker);
}

static void job_run_inline(const struct slot *job, uint32_t worker)
{
    for (uint32_t i = 0; i < job->pieces; i++)
        piece_run(job, i, worker);
}

/* The first piece of run INDEX. */
static uint32_t run_first(const struct slot *job, uint32_t index)
{
    return index * job->pieces / job->runs;
}

/* Claim pieces and run them until none is left; then close the slot. */
static void slot_work(struct slot *slot, uint32_t worker)
{
    for (uint32_t i = 0; i < slot->runs; i++) {
        uint32_t run = (worker + i) % slot->runs;
        uint32_t last = run_first(slot, run + 1);

        for (;;) {
            /* It passes LAST by at most one a thread, so it cannot wrap. */
            unsigned index = atomic_fetch_add_explicit(&slot->run[run].next, 1,
                                                       memory_order_relaxed);

            if (index >= last)
                break;
            piece_run(slot, index, worker);
        }
    }
    atomic_store(&slot->open, 0);
}

/* Work on SLOT as a worker; say whether there was something to do. */
static bool slot_help(struct hob__pool *pool, struct slot *slot,
                      uint32_t worker)
{
    bool open;

    if (!atomic_load_explicit(&slot->open, memory_order_relaxed))
        return false;
    (void)atomic_fetch_add(&slot->users, 1);
    open = atomic_load(&slot->open) != 0;
    if (open)
        slot_work(slot, worker);
    if (atomic_fetch_sub(&slot->users, 1) == 1 && atomic_load(&slot->waiting)) {
        (void)pthread_mutex_lock(&pool->lock);
        (void)pthread_cond_broadcast(&pool->done);
        (void)pthread_mutex_unlock(&pool->lock);
    }
    return open;
}

/* Spin until the epoch is not SEEN; false when that took too long. */
static bool spin_for_work(struct hob__pool *pool, unsigned seen)
{
    uint64_t end = hob__clock_ns() + SPIN_NS;

    do {
        for (int i = 0; i < SPINS_A_LOOK; i++) {
            if (atomic_load(&pool->epoch) != seen)
                return true;
            hob__cpu_relax();
        }
    } while (hob__clock_ns() < end);
    return false;
}

static void sleep_for_work(struct hob__pool *pool, unsigned seen)
{
    (void)pthread_mutex_lock(&pool->lock);
    (void)atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == seen)
        (void)pthread_cond_wait(&pool->wake, &pool->lock);
    (void)atomic_fetch_sub(&pool->sleepers, 1);
    (void)pthread_mutex_unlock(&pool->lock);
}

static void *worker_main(void *argument)
{
    const struct worker *worker = argument;
    struct hob__pool *pool = worker->pool;

    (void)pthread_setspecific(pool->inside,
                              (void *)(uintptr_t)(worker->number + 1));
    for (;;) {
        /* Before the slots are looked at: a job that comes after that look
         * changes it, and then there is no sleep. */
        unsigned seen = atomic_load(&pool->epoch);
        bool helped = false;

        for (uint32_t i = 0; i < SLOT_COUNT; i++)
            helped |= slot_help(pool, &pool->slots[i], worker->number);
        if (atomic_load(&pool->stop))
            return NULL;
        if (!helped && !spin_for_work(pool, seen))
            sleep_for_work(pool, seen);
    }
}

/* Start the workers, once. Those that do not start are done without. */
static void workers_start(struct hob__pool *pool)
{
    sigset_t all;
    sigset_t before;

    (void)pthread_mutex_lock(&pool->lock);
    if (atomic_load(&pool->started)) {
        (void)pthread_mutex_unlock(&pool->lock);
        return;
    }
    hob__cpus_init(&pool->cpus);
    /* Signals are the program's business, on the program's threads. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; i + 1 < pool->threads; i++) {
        struct worker *worker = &pool->workers[i];

        worker->pool = pool;
        worker->number = i + 1;
        if (pthread_create(&worker->thread, NULL, worker_main, worker))
            break;
        pool->running++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&pool->started, 1);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Take a slot that nobody owns; NULL if there is none. */
static struct slot *slot_take(struct hob__pool *pool)
{
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        unsigned expected = 0;

        if (atomic_compare_exchange_strong(&pool->slots[i].owned, &expected, 1))
            return &pool->slots[i];
    }
    return NULL;
}

/*
 * A submitter works too, so its processor is not for workers. Some systems do
 * put them there, to leave other processors asleep, and then two threads take
 * as long as one; a program's threads also move about. So workers are kept off
 * the processor of the last submitter, if there are processors enough.
 */
static void workers_keep_off(struct hob__pool *pool)
{
    uint32_t cpu = hob__cpu_current();
    uint64_t now;

    if (cpu == atomic_load_explicit(&pool->kept_off, memory_order_relaxed) ||
        pool->cpus.count < pool->threads)
        return;
    now = hob__clock_ns();
    if (now - atomic_load_explicit(&pool->kept_ns, memory_order_relaxed) <
            (uint64_t)KEEP_NS * pool->threads ||
        pthread_mutex_trylock(&pool->lock))
        return;
    atomic_store_explicit(&pool->kept_off, cpu, memory_order_relaxed);
    atomic_store_explicit(&pool->kept_ns, now, memory_order_relaxed);
    for (uint32_t i = 0; i < pool->running; i++)
        hob__thread_keep_off(pool->workers[i].thread, &pool->cpus, cpu);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Wake as many sleeping workers as a job of PIECES can use. */
static void workers_wake(struct hob__pool *pool, uint32_t pieces)
{
    (void)atomic_fetch_add(&pool->epoch, 1);
    if (!atomic_load(&pool->sleepers))
        return;
    (void)pthread_mutex_lock(&pool->lock);
    if (pieces - 1 >= atomic_load(&pool->sleepers))
        (void)pthread_cond_broadcast(&pool->wake);
    else
        for (uint32_t i = 0; i + 1 < pieces; i++)
            (void)pthread_cond_signal(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* The last worker is still busy, and was at BEGIN: say whether to spin on. */
static bool wait_on(uint64_t begin)
{
    uint64_t passed = hob__clock_ns() - begin;

    if (passed >= WAIT_NS)
        return false;
    if (passed >= WAIT_ALONE_NS)
        (void)sched_yield();
    return true;
}

/* Wait until no worker is in SLOT, which is closed. */
static void slot_wait(struct hob__pool *pool, struct slot *slot)
{
    uint64_t begin = 0;

    for (uint32_t i = 1; atomic_load(&slot->users); i++) {
        hob__cpu_relax();
        if (i % SPINS_A_LOOK)
            continue;
        if (!begin)
            begin = hob__clock_ns();
        if (wait_on(begin))
            continue;
        (void)pthread_mutex_lock(&pool->lock);
        atomic_store(&slot->waiting, 1);
        while (atomic_load(&slot->users))
            (void)pthread_cond_wait(&pool->done, &pool->lock);
        atomic_store(&slot->waiting, 0);
        (void)pthread_mutex_unlock(&pool->lock);
    }
}

static void job_share(struct hob__pool *pool, const struct slot *job)
{
    struct slot *slot = slot_take(pool);

    if (!slot) {
        job_run_inline(job, 0);
        return;
    }
    workers_keep_off(pool);
    slot->pieces = job->pieces;
    slot->count = job->count;
    slot->grain = job->grain;
    slot->fn = job->fn;
    slot->context = job->context;
    slot->runs = pool->threads < RUNS_MAX ? pool->threads : RUNS_MAX;
    if (slot->runs > job->pieces)
        slot->runs = job->pieces;
    for (uint32_t i = 0; i < slot->runs; i++)
        atomic_store_explicit(&slot->run[i].next, run_first(slot, i),
                              memory_order_relaxed);
    atomic_store(&slot->open, 1);
    workers_wake(pool, job->pieces);
    slot_work(slot, 0);
    slot_wait(pool, slot);
    atomic_store_explicit(&slot->owned, 0, memory_order_release);
}

/* As many submitters as the pool has threads need no workers: those would only
 * take processors from them. */
static void job_run(struct hob__pool *pool, const struct slot *job)
{
    unsigned others =
        atomic_fetch_add_explicit(&pool->callers, 1, memory_order_relaxed);

    if (others + 1 < pool->threads)
        job_share(pool, job);
    else
        job_run_inline(job, 0);
    (void)atomic_fetch_sub_explicit(&pool->callers, 1, memory_order_relaxed);
}

hob_status hob__pool_new(uint32_t threads, struct hob__pool **out_pool)
{
    struct hob__pool *pool;

    *out_pool = NULL;
    if (!threads)
        threads = hob__cpu_count();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    pool = aligned_alloc(CACHE_LINE, sizeof(*pool));
    if (!pool)
        return HOB_ERR_MEMORY;
    *pool = (struct hob__pool){.threads = threads, .kept_off = UINT32_MAX};
    pool->workers = calloc(threads, sizeof(*pool->workers));
    if (!pool->workers)
        goto fail;
    if (pthread_key_create(&pool->inside, NULL))
        goto fail;
    /* On Linux the rest cannot fail. */
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    (void)pthread_cond_init(&pool->done, NULL);
    hob__fork_mark_init(&pool->mark);
    *out_pool = pool;
    return HOB_OK;

fail:
    free(pool->workers);
    free(pool);
    return HOB_ERR_MEMORY;
}

void hob__pool_free(struct hob__pool *pool)
{
    if (!pool)
        return;
    /* In a forked child there is nobody to join, and the lock may be held by
     * a thread that does not exist here. */
    if (!hob__fork_mark_is_child(&pool->mark)) {
        (void)pthread_mutex_lock(&pool->lock);
        atomic_store(&pool->stop, 1);
        (void)atomic_fetch_add(&pool->epoch, 1);
        (void)pthread_cond_broadcast(&pool->wake);
        (void)pthread_mutex_unlock(&pool->lock);
        for (uint32_t i = 0; i < pool->running; i++)
            (void)pthread_join(pool->workers[i].thread, NULL);
        (void)pthread_cond_destroy(&pool->done);
        (void)pthread_cond_destroy(&pool->wake);
        (void)pthread_mutex_destroy(&pool->lock);
    }
    (void)pthread_key_delete(pool->inside);
    hob__fork_mark_release(&pool->mark);
    free(pool->workers);
    free(pool);
}

void hob__pool_for(struct hob__pool *pool, int64_t count, int64_t grain,
                   hob_range_fn fn, void *context)
{
    struct slot job = {.count = count, .fn = fn, .context = context};
    uintptr_t inside;

    if (count <= 0)
        return;
    job.grain = grain > 0 ? grain : 1;
    job.pieces = piece_count(count, job.grain);
    inside = (uintptr_t)pthread_getspecific(pool->inside);
    if (job.pieces == 1 || inside || pool->threads == 1 ||
        hob__fork_mark_is_child(&pool->mark)) {
        job_run_inline(&job, inside ? (uint32_t)(inside - 1) : 0);
        return;
    }
    if (!atomic_load_explicit(&pool->started, memory_order_acquire))
        workers_start(pool);
    (void)pthread_setspecific(pool->inside, (void *)(uintptr_t)1);
    job_run(pool, &job);
    (void)pthread_setspecific(pool->inside, NULL);
}

uint32_t hob__pool_threads(const struct hob__pool *pool)
{
    return pool->threads;
}
