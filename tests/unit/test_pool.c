/* SPDX-License-Identifier: Apache-2.0 */
#include "platform_process.h"
#include "pool.h"

#include "hob_check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 10007, THREADS = 4 };

/* What a job saw. */
struct trace {
    atomic_uchar seen[ITEMS];
    atomic_int_fast64_t sum_of_cuts; /* of first * last, over the pieces */
    atomic_uint pieces;
    atomic_uint worker_max;
    int64_t grain;
    struct hob__pool *pool; /* for jobs inside jobs */
};

static struct hob__pool *pool;

static void setup(void)
{
    ck_assert_int_eq(hob__pool_new(THREADS, &pool), HOB_OK);
}

static void teardown(void)
{
    hob__pool_free(pool);
}

static void note(void *context, int64_t first, int64_t last, uint32_t worker)
{
    struct trace *trace = context;
    unsigned max = atomic_load(&trace->worker_max);

    for (int64_t i = first; i < last; i++)
        atomic_fetch_add(&trace->seen[i], 1);
    atomic_fetch_add(&trace->pieces, 1);
    atomic_fetch_add(&trace->sum_of_cuts, (first + 1) * last);
    while (worker > max &&
           !atomic_compare_exchange_weak(&trace->worker_max, &max, worker))
        continue;
    if (first % trace->grain != 0 || last <= first)
        atomic_fetch_add(&trace->seen[0], 100); /* reported by all_once */
}

static void all_once(struct trace *trace, int64_t count)
{
    for (int64_t i = 0; i < ITEMS; i++)
        ck_assert_msg(atomic_load(&trace->seen[i]) == (i < count),
                      "item %d of %d ran %d times", (int)i, (int)count,
                      (int)atomic_load(&trace->seen[i]));
}

static const struct range {
    int64_t count;
    int64_t grain;
    unsigned pieces;
} ranges[] = {
    {0, 1, 0},        {-5, 1, 0},        {1, 1, 1},        {1, 1000, 1},
    {255, 1, 255},    {256, 1, 256},     {257, 1, 256},    {ITEMS, 1, 256},
    {ITEMS, 0, 256},  {ITEMS, -3, 256},  {ITEMS, 64, 156}, {ITEMS, 5004, 1},
    {ITEMS, 5003, 2}, {ITEMS, 10008, 1}, {ITEMS, 37, 256},
};

START_TEST(test_pool_runs_every_item_once)
{
    const struct range *range = &ranges[_i];
    struct trace *trace = calloc(1, sizeof(*trace));

    trace->grain = range->grain > 0 ? range->grain : 1;
    hob__pool_for(pool, range->count, range->grain, note, trace);
    all_once(trace, range->count);
    ck_assert_uint_eq(atomic_load(&trace->pieces), range->pieces);
    ck_assert_uint_lt(atomic_load(&trace->worker_max), hob__pool_threads(pool));
    free(trace);
}
END_TEST

/* The cuts are those of a pool of one thread. */
START_TEST(test_pool_cuts_do_not_depend_on_threads)
{
    const struct range *range = &ranges[_i];
    struct trace *many = calloc(1, sizeof(*many));
    struct trace *one = calloc(1, sizeof(*one));
    struct hob__pool *single;

    many->grain = one->grain = range->grain > 0 ? range->grain : 1;
    ck_assert_int_eq(hob__pool_new(1, &single), HOB_OK);
    ck_assert_uint_eq(hob__pool_threads(single), 1);
    hob__pool_for(pool, range->count, range->grain, note, many);
    hob__pool_for(single, range->count, range->grain, note, one);
    ck_assert_int_eq(atomic_load(&many->sum_of_cuts),
                     atomic_load(&one->sum_of_cuts));
    ck_assert_uint_eq(atomic_load(&one->worker_max), 0);
    hob__pool_free(single);
    free(many);
    free(one);
}
END_TEST

START_TEST(test_pool_runs_many_jobs_in_a_row)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    trace->grain = 1;
    for (int i = 0; i < 20000; i++) {
        atomic_store(&trace->pieces, 0);
        hob__pool_for(pool, 8, 1, note, trace);
        ck_assert_uint_eq(atomic_load(&trace->pieces), 8);
        if (i % 4000 == 0)
            (void)usleep(2000); /* let the workers sleep */
    }
    free(trace);
}
END_TEST

static void nested_outer(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct trace *trace = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        struct trace *inner = calloc(1, sizeof(*inner));

        inner->grain = 1;
        hob__pool_for(trace->pool, 100, 1, note, inner);
        /* One thread ran it all, under the number that it has outside. */
        if (atomic_load(&inner->pieces) == 100 &&
            atomic_load(&inner->worker_max) == worker)
            atomic_fetch_add(&trace->seen[i], 1);
        free(inner);
    }
}

START_TEST(test_pool_nested_job_runs_inline)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    trace->grain = 1;
    trace->pool = pool;
    hob__pool_for(pool, 500, 1, nested_outer, trace);
    all_once(trace, 500);
    free(trace);
}
END_TEST

enum { SUBMITTERS = 12, SUBMITTED = 300 }; /* more than there are slots */

/* Fewer threads than submitters, whose jobs then run inline, and more. */
static const uint32_t shared_threads[] = {2, 4, 16};

static void *submit(void *context)
{
    uintptr_t bad = 0;
    struct trace *trace = calloc(1, sizeof(*trace));

    trace->grain = 1;
    for (int i = 0; i < SUBMITTED; i++)
        hob__pool_for(context, 64, 1, note, trace);
    for (int i = 0; i < 64; i++)
        /* Counts are kept modulo 256. */
        bad += atomic_load(&trace->seen[i]) != SUBMITTED % 256;
    free(trace);
    return (void *)bad;
}

START_TEST(test_pool_takes_jobs_from_several_threads)
{
    pthread_t threads[SUBMITTERS];
    struct hob__pool *shared;

    ck_assert_int_eq(hob__pool_new(shared_threads[_i], &shared), HOB_OK);
    for (int i = 0; i < SUBMITTERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, submit, shared), 0);
    for (int i = 0; i < SUBMITTERS; i++) {
        void *bad;

        ck_assert_int_eq(pthread_join(threads[i], &bad), 0);
        ck_assert_ptr_null(bad);
    }
    hob__pool_free(shared);
}
END_TEST

/* Pieces that a worker ran, and how many of those on the processor AVOIDED. */
struct places {
    uint32_t avoided;
    atomic_uint pieces, misplaced;
};

static void note_place(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct places *places = context;

    (void)first;
    (void)last;
    if (!worker) {
        (void)usleep(100); /* so that the workers come by */
        return;
    }
    atomic_fetch_add(&places->pieces, 1);
    if (hob__cpu_current() == places->avoided)
        atomic_fetch_add(&places->misplaced, 1);
}

START_TEST(test_pool_leaves_its_processor_to_the_submitter)
{
    struct places places = {.avoided = hob__cpu_current()};
    struct hob__pool *two;
    cpu_set_t all, here;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    if (CPU_COUNT(&all) < 2)
        return;
    ck_assert_int_eq(hob__pool_new(2, &two), HOB_OK);
    hob__pool_for(two, 64, 1, note_place, &places); /* the worker exists */
    for (uint32_t cpu = 0, tried = 0; cpu < CPU_SETSIZE && tried < 4; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        tried++;
        CPU_ZERO(&here);
        CPU_SET(cpu, &here);
        ck_assert_int_eq(sched_setaffinity(0, sizeof(here), &here), 0);
        /* It is not done at each job, nor while the worker goes to sleep. */
        for (int i = 0; i < 10; i++) {
            (void)usleep(3000);
            hob__pool_for(two, 64, 1, note_place, &places);
        }
        places = (struct places){.avoided = cpu};
        for (int i = 0; i < 50 || !atomic_load(&places.pieces); i++)
            hob__pool_for(two, 64, 1, note_place, &places);
        ck_assert_uint_eq(atomic_load(&places.misplaced), 0);
    }
    hob__pool_free(two);
}
END_TEST

/* The submitter's own processors are its own business, and one that may use
 * fewer than the pool has threads gets the same work done. */
START_TEST(test_pool_leaves_the_submitter_where_it_may_be)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    cpu_set_t all, here, after;
    struct hob__pool *own;

    trace->grain = 1;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&here);
    CPU_SET(hob__cpu_current(), &here);
    ck_assert_int_eq(hob__pool_new(_i, &own), HOB_OK);
    /* Pinned when the workers come, or later. */
    for (int turn = 0; turn < 6; turn++) {
        const cpu_set_t *mine = (turn + _i) % 2 ? &here : &all;

        ck_assert_int_eq(sched_setaffinity(0, sizeof(*mine), mine), 0);
        memset(trace->seen, 0, sizeof(trace->seen));
        (void)usleep(3000);
        for (int i = 0; i < 20; i++)
            hob__pool_for(own, 64, 1, note, trace);
        for (int i = 0; i < 64; i++)
            ck_assert_int_eq(atomic_load(&trace->seen[i]), 20);
        ck_assert_int_eq(sched_getaffinity(0, sizeof(after), &after), 0);
        ck_assert(CPU_EQUAL(&after, mine));
    }
    hob__pool_free(own);
    free(trace);
}
END_TEST

/* A piece that sleeps makes the submitter wait on the condition. */
static void doze(void *context, int64_t first, int64_t last, uint32_t worker)
{
    if (worker)
        (void)usleep(3000);
    atomic_fetch_add((atomic_int *)context, (int)(last - first));
}

START_TEST(test_pool_waits_for_slow_workers)
{
    for (int i = 0; i < 20; i++) {
        atomic_int total = 0;

        hob__pool_for(pool, 64, 1, doze, &total);
        ck_assert_int_eq(atomic_load(&total), 64);
    }
}
END_TEST

START_TEST(test_pool_runs_inline_in_a_forked_child)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    int status;
    int bad;
    pid_t child;

    trace->grain = 1;
    hob__pool_for(pool, 64, 1, note, trace); /* the workers exist */
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct trace *mine = calloc(1, sizeof(*mine));

        mine->grain = 1;
        hob__pool_for(pool, 64, 1, note, mine);
        hob__pool_free(pool);
        bad = atomic_load(&mine->pieces) != 64 ||
              atomic_load(&mine->worker_max) != 0;
        free(mine);
        free(trace);
        _exit(bad);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    hob__pool_for(pool, 64, 1, note, trace);
    ck_assert_uint_eq(atomic_load(&trace->pieces), 128);
    free(trace);
}
END_TEST

START_TEST(test_pool_comes_and_goes)
{
    struct trace *trace = calloc(1, sizeof(*trace));

    trace->grain = 1;
    for (int i = 0; i < 50; i++) {
        struct hob__pool *brief;

        ck_assert_int_eq(hob__pool_new(3, &brief), HOB_OK);
        if (i % 2)
            hob__pool_for(brief, 16, 1, note, trace);
        hob__pool_free(brief);
    }
    ck_assert_uint_eq(atomic_load(&trace->pieces), 25 * 16);
    hob__pool_free(NULL);
    free(trace);
}
END_TEST

START_TEST(test_pool_default_is_one_thread_a_processor)
{
    struct hob__pool *own;

    ck_assert_uint_ge(hob__cpu_count(), 1);
    ck_assert_int_eq(hob__pool_new(0, &own), HOB_OK);
    ck_assert_uint_eq(hob__pool_threads(own), hob__cpu_count());
    hob__pool_free(own);
}
END_TEST

int main(void)
{
    const int range_count = sizeof(ranges) / sizeof(ranges[0]);
    Suite *suite = suite_create("pool");
    TCase *tc = tcase_create("pool");

    suite_add_tcase(suite, tc);
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_pool_runs_every_item_once, 0, range_count);
    tcase_add_loop_test(tc, test_pool_cuts_do_not_depend_on_threads, 0,
                        range_count);
    tcase_add_test(tc, test_pool_runs_many_jobs_in_a_row);
    tcase_add_test(tc, test_pool_nested_job_runs_inline);
    tcase_add_loop_test(tc, test_pool_takes_jobs_from_several_threads, 0,
                        sizeof(shared_threads) / sizeof(shared_threads[0]));
    tcase_add_test(tc, test_pool_leaves_its_processor_to_the_submitter);
    tcase_add_loop_test(tc, test_pool_leaves_the_submitter_where_it_may_be, 1,
                        9);
    tcase_add_test(tc, test_pool_waits_for_slow_workers);
    tcase_add_test(tc, test_pool_runs_inline_in_a_forked_child);
    tcase_add_test(tc, test_pool_comes_and_goes);
    tcase_add_test(tc, test_pool_default_is_one_thread_a_processor);
    return hob_check_main(suite);
}
