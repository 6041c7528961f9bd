/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one size: used again, counted, and exchanged between threads.
 */
#include "process.h"
#include "slab.h"

#include "hob_check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 200, THREADS = 4, SLOTS = 64, STEPS = 50000 };

START_TEST(test_slab_objects_are_apart_and_used_again)
{
    enum { COUNT = 300 };
    struct hob__slab slab;
    char *objects[COUNT];

    hob__slab_init(&slab, SIZE, _i);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            objects[i] = hob__slab_take(&slab);
            ck_assert_ptr_nonnull(objects[i]);
            ck_assert_uint_eq((uintptr_t)objects[i] % 64, 0);
            memset(objects[i], i, SIZE);
        }
        ck_assert_int_eq(hob__slab_live(&slab), COUNT);
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < SIZE; k++)
                ck_assert_int_eq(objects[i][k], (char)i);
            hob__slab_give(&slab, objects[i]);
        }
        ck_assert_int_eq(hob__slab_live(&slab), 0);
    }
    if (!slab.plain) { /* what was given last is still in the cache */
        char *last = hob__slab_take(&slab);

        ck_assert_ptr_eq(last, objects[COUNT - 1]);
        hob__slab_give(&slab, last);
    }
    hob__slab_release(&slab);
}
END_TEST

/* A fork may come while another thread has a lock, which nobody gives back in
 * the child. */
START_TEST(test_slab_locks_are_free_in_a_fork)
{
    enum { COUNT = 10 * HOB__SLAB_BATCH };
    struct hob__slab slab;
    void *objects[COUNT];
    int status;
    pid_t child;

    hob__process_watch_forks();
    hob__slab_init(&slab, SIZE, 0);
    for (int i = 0; i < COUNT; i++)
        objects[i] = hob__slab_take(&slab);
    atomic_store(&slab.depot_lock, hob__process_mark());
    atomic_store(&slab.shared_lock, hob__process_mark());
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        alarm(10);
        for (int i = 0; i < COUNT; i++)
            hob__slab_give(&slab, objects[i]);
        for (int i = 0; i < COUNT; i++)
            objects[i] = hob__slab_take(&slab);
        _exit(hob__slab_live(&slab) != COUNT);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
    atomic_store(&slab.depot_lock, 0);
    atomic_store(&slab.shared_lock, 0);
    for (int i = 0; i < COUNT; i++)
        hob__slab_give(&slab, objects[i]);
    hob__slab_release(&slab);
}
END_TEST

struct exchange {
    struct hob__slab slab;
    _Atomic(uint32_t *) slots[SLOTS];
    atomic_int bad;
};

/* Mark an object, leave it for another thread, give back what that one left:
 * an object that was handed out twice loses its marks. */
static void *exchange_objects(void *context)
{
    struct exchange *exchange = context;
    uint32_t state = (uint32_t)(uintptr_t)&state;

    for (int i = 0; i < STEPS; i++) {
        uint32_t *object = hob__slab_take(&exchange->slab);
        uint32_t *other;

        state = state * 1664525u + 1013904223u;
        if (!object) {
            atomic_store(&exchange->bad, 1);
            return NULL;
        }
        object[0] = object[SIZE / 4 - 1] = state;
        other = atomic_exchange(&exchange->slots[state >> 26], object);
        if (other && other[0] != other[SIZE / 4 - 1])
            atomic_store(&exchange->bad, 1);
        if (other)
            hob__slab_give(&exchange->slab, other);
    }
    return NULL;
}

START_TEST(test_slab_serves_several_threads)
{
    static struct exchange exchange; /* aligned; zero */
    pthread_t threads[THREADS];
    int64_t left = 0;
    int chunks = 0;

    hob__slab_init(&exchange.slab, SIZE, _i);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, exchange_objects, &exchange), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&exchange.bad), 0);
    for (int i = 0; i < SLOTS; i++)
        left += exchange.slots[i] != NULL;
    ck_assert_int_eq(hob__slab_live(&exchange.slab), left);
    for (int i = 0; i < SLOTS; i++)
        if (exchange.slots[i])
            hob__slab_give(&exchange.slab, exchange.slots[i]);
    ck_assert_int_eq(hob__slab_live(&exchange.slab), 0);
    /* A thread that runs out lives on what others gave back. */
    for (void *chunk = exchange.slab.chunks; chunk; chunk = *(void **)chunk)
        chunks++;
    ck_assert_int_le(chunks, 2 * THREADS);
    hob__slab_release(&exchange.slab);
}
END_TEST

/* More than have a lane of their own: they share one. All are there at once,
 * so that no lane passes from one thread to the next. */
enum { MANY = HOB__SLAB_LANES + 8 };

struct crowd {
    struct hob__slab slab;
    pthread_barrier_t barrier;
    atomic_int bad;
};

static void *use_objects(void *context)
{
    enum { COUNT = 3 * HOB__SLAB_BATCH };
    struct crowd *crowd = context;
    uintptr_t *objects[COUNT];

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            objects[i] = hob__slab_take(&crowd->slab);
            *objects[i] = (uintptr_t)&objects[i];
        }
        if (!round)
            pthread_barrier_wait(&crowd->barrier);
        for (int i = 0; i < COUNT; i++) {
            if (*objects[i] != (uintptr_t)&objects[i])
                atomic_store(&crowd->bad, 1);
            hob__slab_give(&crowd->slab, objects[i]);
        }
    }
    return NULL;
}

START_TEST(test_slab_serves_more_threads_than_lanes)
{
    static struct crowd crowd; /* aligned; zero */
    pthread_t threads[MANY];

    hob__slab_init(&crowd.slab, SIZE, _i);
    ck_assert_int_eq(pthread_barrier_init(&crowd.barrier, NULL, MANY), 0);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_objects, &crowd),
                         0);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&crowd.bad), 0);
    ck_assert_int_eq(hob__slab_live(&crowd.slab), 0);
    for (int i = 0; i < HOB__SLAB_LANES; i++) /* none is left over */
        ck_assert_uint_ne(atomic_load(&crowd.slab.lanes[i].owner), 0);
    pthread_barrier_destroy(&crowd.barrier);
    hob__slab_release(&crowd.slab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slab");
    TCase *tc = tcase_create("slab");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_slab_objects_are_apart_and_used_again, 0, 2);
    tcase_add_test(tc, test_slab_locks_are_free_in_a_fork);
    tcase_add_loop_test(tc, test_slab_serves_several_threads, 0, 2);
    tcase_add_loop_test(tc, test_slab_serves_more_threads_than_lanes, 0, 2);
    suite_add_tcase(suite, tc);
    return hob_check_main_apart(suite);
}
