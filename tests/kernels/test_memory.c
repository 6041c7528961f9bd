/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU backend's allocator: classes, reuse, the bound, what is reported,
 * several threads, and accesses outside of a block in a sanitized build.
 */
#include "hob_check.h"

#include <flex/flex.h>
#include <flex/memory_system.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hob_memory_stats stats_of(struct flex_memory *memory)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;

    flex_memory_stats(memory, &stats);
    return stats;
}

/* Padding is at most an eighth, or what rounding to 64 bytes adds. */
START_TEST(test_memory_blocks_are_aligned_and_reused)
{
    struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 28);

    for (uint64_t bytes = 0; bytes < UINT64_C(20) << 20;
         bytes = bytes * 9 / 8 + 13) {
        char *first = flex_memory_take(memory, bytes);
        struct hob_memory_stats stats;

        ck_assert_ptr_nonnull(first);
        ck_assert_uint_eq((uintptr_t)first % FLEX_ALIGN, 0);
        memset(first, 0x5a, bytes);
        stats = stats_of(memory);
        ck_assert_uint_eq(stats.in_use_bytes, bytes);
        ck_assert_uint_eq(stats.peak_bytes, bytes);
        ck_assert_uint_le(stats.padding_bytes, bytes / 8 + 64);
        ck_assert_uint_eq((bytes + stats.padding_bytes) % FLEX_ALIGN, 0);
        flex_memory_give(memory, first, bytes);
        ck_assert_ptr_eq(flex_memory_take(memory, bytes), first);
        flex_memory_give(memory, first, bytes);
    }
    ck_assert_uint_eq(stats_of(memory).in_use_bytes, 0);
    ck_assert_uint_eq(stats_of(memory).padding_bytes, 0);
    ck_assert_uint_gt(stats_of(memory).reserved_bytes, 0);
    flex_memory_trim(memory);
    ck_assert_uint_eq(stats_of(memory).reserved_bytes, 0);
    flex_memory_free(memory);
    flex_memory_free(NULL);
}
END_TEST

#if defined(__linux__)
/* Else it could not lie on huge pages. */
START_TEST(test_memory_large_blocks_begin_at_huge_pages)
{
    const uint64_t huge = UINT64_C(2) << 20;
    struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 28);
    void *blocks[20];

    for (uint64_t i = 0; i < 20; i++) {
        blocks[i] = flex_memory_take(memory, huge + i * 777777);
        ck_assert_ptr_nonnull(blocks[i]);
        ck_assert_uint_eq((uintptr_t)blocks[i] % huge, 0);
        memset(blocks[i], 1, huge + i * 777777);
    }
    for (uint64_t i = 0; i < 20; i++)
        flex_memory_give(memory, blocks[i], huge + i * 777777);
    flex_memory_free(memory);
}
END_TEST
#endif

START_TEST(test_memory_counts_what_is_asked_for)
{
    struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 28);
    struct hob_memory_stats stats;
    void *a = flex_memory_take(memory, 1000);
    void *b = flex_memory_take(memory, 5000000);

    flex_memory_give(memory, a, 1000);
    stats = stats_of(memory);
    ck_assert_uint_eq(stats.in_use_bytes, 5000000);
    ck_assert_uint_eq(stats.peak_bytes, 5001000);
    ck_assert_uint_eq(stats.block_count, 2);
    ck_assert_uint_eq(stats.system_count, 2);
    ck_assert_uint_eq(stats.reserved_bytes,
                      stats.in_use_bytes + stats.padding_bytes + 1024);
    flex_memory_reset_peak(memory);
    ck_assert_uint_eq(stats_of(memory).peak_bytes, 5000000);
    a = flex_memory_take(memory, 990); /* of the same class as 1000 */
    stats = stats_of(memory);
    ck_assert_uint_eq(stats.block_count, 3);
    ck_assert_uint_eq(stats.system_count, 2);
    flex_memory_trim(memory); /* nothing is free */
    ck_assert_uint_eq(stats_of(memory).reserved_bytes, stats.reserved_bytes);
    flex_memory_give(memory, a, 990);
    flex_memory_give(memory, b, 5000000);
    flex_memory_give(memory, NULL, 7);
    ck_assert_uint_eq(stats_of(memory).in_use_bytes, 0);
    flex_memory_free(memory);
}
END_TEST

START_TEST(test_memory_keeps_to_its_bound)
{
    enum { BLOCKS = 8 };
    const uint64_t bytes = UINT64_C(1) << 20;
    struct flex_memory *memory = flex_memory_new(3 * bytes);
    struct hob_memory_stats stats;
    void *blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = flex_memory_take(memory, bytes);
    for (int i = 0; i < BLOCKS; i++) {
        flex_memory_give(memory, blocks[i], bytes);
        stats = stats_of(memory);
        ck_assert_uint_le(stats.reserved_bytes - stats.in_use_bytes, 3 * bytes);
    }
    /* Larger than all that may wait: goes back at once. */
    blocks[0] = flex_memory_take(memory, 4 * bytes);
    flex_memory_give(memory, blocks[0], 4 * bytes);
    ck_assert_uint_le(stats_of(memory).reserved_bytes, 3 * bytes);
    flex_memory_free(memory);
}
END_TEST

/* A program that goes on to other sizes gives up those it used before, and
 * keeps those in use. */
START_TEST(test_memory_gives_up_what_was_long_unused)
{
    const uint64_t unit = UINT64_C(1) << 20;
    struct flex_memory *memory = flex_memory_new(32 * unit);
    uint64_t before;
    void *block;

    for (uint64_t i = 1; i <= 7; i++) { /* 28 units wait */
        block = flex_memory_take(memory, i * unit);
        flex_memory_give(memory, block, i * unit);
    }
    for (int round = 0; round < 20; round++)
        for (uint64_t bytes = 8 * unit; bytes <= 10 * unit; bytes += 2 * unit) {
            block = flex_memory_take(memory, bytes);
            flex_memory_give(memory, block, bytes);
        }
    ck_assert_uint_le(stats_of(memory).reserved_bytes, 32 * unit);
    before = stats_of(memory).system_count;
    for (uint64_t bytes = 8 * unit; bytes <= 10 * unit; bytes += 2 * unit) {
        block = flex_memory_take(memory, bytes);
        flex_memory_give(memory, block, bytes);
    }
    ck_assert_uint_eq(stats_of(memory).system_count, before);
    ck_assert_uint_eq(before, 9);
    flex_memory_free(memory);
}
END_TEST

START_TEST(test_memory_refuses_absurd_sizes)
{
    struct flex_memory *memory = flex_memory_new(0);
    struct hob_memory_stats stats;

    ck_assert_ptr_null(flex_memory_take(memory, UINT64_MAX));
    ck_assert_ptr_null(flex_memory_take(memory, UINT64_C(1) << 62));
    ck_assert_ptr_null(flex_memory_take(memory, UINT64_C(1) << 59));
    stats = stats_of(memory);
    ck_assert_uint_eq(stats.in_use_bytes + stats.padding_bytes +
                          stats.peak_bytes + stats.block_count,
                      0);
    flex_memory_free(memory);
}
END_TEST

/* 4 GB under a limit of 1 GB: fails, after the cache has been given back, and
 * the allocator works on. In a child, because limits cannot be raised again.
 * The sanitizers' shadow memory does not fit under such a limit. */
START_TEST(test_memory_survives_a_limit)
{
    pid_t child;
    int status = 0;

    if (HOB_BUILD_SANITIZERS || getenv("ASAN_OPTIONS"))
        return;
    child = fork();
    if (child == 0) {
        struct rlimit limit = {UINT64_C(1) << 30, UINT64_C(1) << 30};
        struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 30);
        void *block = flex_memory_take(memory, UINT64_C(64) << 20);
        int good = block != NULL;

        flex_memory_give(memory, block, UINT64_C(64) << 20);
        good &= setrlimit(RLIMIT_AS, &limit) == 0;
        good &= !flex_memory_take(memory, UINT64_C(4) << 30);
        good &= stats_of(memory).reserved_bytes == 0;
        good &= flex_memory_take(memory, 1000) != NULL;
        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, HELD = 16, STEPS = 20000 };

struct hammer {
    struct flex_memory *memory;
    uint32_t seed;
    /* Blocks that wait to be given back by another thread. */
    pthread_mutex_t *lock;
    unsigned char **shared;
    uint64_t *shared_bytes;
    int bad; /* a block that another thread has written to */
};

static uint64_t some_bytes(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 28 ? (*state >> 8) % 3000 : (*state >> 8) % 300000;
}

/* Take a block, mark it, exchange it with one of another thread, look whether
 * that one still has its marks, and give it back. */
static void *hammer(void *context)
{
    struct hammer *own = context;
    uint32_t state = own->seed;

    for (int i = 0; i < STEPS; i++) {
        uint64_t bytes = some_bytes(&state);
        unsigned char mark = (unsigned char)bytes;
        unsigned char *block = flex_memory_take(own->memory, bytes);
        uint32_t at = (state >> 4) % HELD;
        unsigned char *other;
        uint64_t other_bytes;

        if (!block || (uintptr_t)block % FLEX_ALIGN) {
            own->bad = 1;
            return NULL;
        }
        if (bytes)
            block[0] = block[bytes / 2] = block[bytes - 1] = mark;
        pthread_mutex_lock(own->lock);
        other = own->shared[at];
        other_bytes = own->shared_bytes[at];
        own->shared[at] = block;
        own->shared_bytes[at] = bytes;
        pthread_mutex_unlock(own->lock);
        mark = (unsigned char)other_bytes;
        own->bad |= other && other_bytes &&
                    (other[0] != mark || other[other_bytes / 2] != mark ||
                     other[other_bytes - 1] != mark);
        flex_memory_give(own->memory, other, other_bytes);
        if (i % 5000 == 4999)
            flex_memory_trim(own->memory);
        if (i % 100 == 99)
            (void)stats_of(own->memory);
    }
    return NULL;
}

/* The bound is small, so that blocks go back to the system meanwhile. */
START_TEST(test_memory_serves_several_threads)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 20);
    unsigned char *shared[HELD] = {NULL};
    uint64_t shared_bytes[HELD] = {0};
    struct hammer hammers[THREADS];
    pthread_t threads[THREADS];
    struct hob_memory_stats stats;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        hammers[i] = (struct hammer){memory, i * 7919 + 1, &lock,
                                     shared, shared_bytes, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &hammers[i]),
                         0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(hammers[i].bad, 0);
    }
    for (int i = 0; i < HELD; i++)
        sum += shared_bytes[i];
    stats = stats_of(memory);
    ck_assert_uint_eq(stats.in_use_bytes, sum);
    ck_assert_uint_eq(stats.block_count, THREADS * STEPS);
    ck_assert_uint_lt(stats.system_count, THREADS * STEPS);
    ck_assert_uint_ge(stats.peak_bytes, sum);
    for (int i = 0; i < HELD; i++)
        flex_memory_give(memory, shared[i], shared_bytes[i]);
    flex_memory_trim(memory);
    stats = stats_of(memory);
    ck_assert_uint_eq(stats.in_use_bytes, 0);
    ck_assert_uint_eq(stats.padding_bytes, 0);
    ck_assert_uint_eq(stats.reserved_bytes, 0);
    flex_memory_free(memory);
}
END_TEST

/* ---- accesses outside, in a build with the address sanitizer ---- */

#ifdef FLEX_ASAN

/* What a broken kernel would do to a block of BYTES. */
static const struct misdeed {
    const char *what;
    uint64_t bytes;
    uint64_t at;
    int after_give;
} misdeeds[] = {
    {"one byte behind 1 byte", 1, 1, 0},
    {"one byte behind 13", 13, 13, 0},
    {"one byte behind 4096, a class of its own", 4100, 4100, 0},
    {"the last byte of the padding", 1025, 1151, 0},
    {"one byte behind 3 MB", 3000001, 3000001, 0},
    {"a block of 0 bytes", 0, 0, 0},
    {"the first byte of a block that was given back", 100, 0, 1},
    {"the last byte of one", 100, 99, 1},
    {"the middle of a large one", 3000001, 1500000, 1},
};

/* Does the access end the process? It happens in a child, after a block has
 * been used twice, so that the allocator's own marks are tested too. */
static int ends_process(const struct misdeed *misdeed)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct flex_memory *memory = flex_memory_new(UINT64_C(1) << 28);
        uint64_t larger = misdeed->bytes | 63;
        void *first = flex_memory_take(memory, larger);
        volatile char *block;

        flex_memory_give(memory, first, larger);
        block = flex_memory_take(memory, misdeed->bytes);
        for (uint64_t i = 0; i < misdeed->bytes; i++)
            block[i] = 1;
        if (misdeed->after_give)
            flex_memory_give(memory, (void *)block, misdeed->bytes);
        if (!freopen("/dev/null", "w", stderr)) /* a report is expected */
            _exit(0);
        block[misdeed->at] = 2;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

START_TEST(test_memory_misdeeds_end_the_process)
{
    ck_assert_msg(ends_process(&misdeeds[_i]), "not seen: %s",
                  misdeeds[_i].what);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("flex memory");
    TCase *tc = tcase_create("memory");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_memory_blocks_are_aligned_and_reused);
#if defined(__linux__)
    tcase_add_test(tc, test_memory_large_blocks_begin_at_huge_pages);
#endif
    tcase_add_test(tc, test_memory_counts_what_is_asked_for);
    tcase_add_test(tc, test_memory_keeps_to_its_bound);
    tcase_add_test(tc, test_memory_gives_up_what_was_long_unused);
    tcase_add_test(tc, test_memory_refuses_absurd_sizes);
    tcase_add_test(tc, test_memory_survives_a_limit);
    tcase_add_test(tc, test_memory_serves_several_threads);
#ifdef FLEX_ASAN
    tcase_add_loop_test(tc, test_memory_misdeeds_end_the_process, 0,
                        (int)(sizeof(misdeeds) / sizeof(misdeeds[0])));
#endif
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
