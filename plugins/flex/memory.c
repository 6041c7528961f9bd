/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the caching allocator.
 *
 * Sizes are rounded up to classes: multiples of 64 bytes up to 1 KiB, then
 * eight classes a doubling, so at most 1/8 is padding. A freed block waits in
 * its class's list; the link is in the block itself. Fresh pages are what
 * costs: an add of 1e7 floats takes five times as long into memory that the
 * system has just given, hence the cache, and huge pages for large blocks.
 *
 * Each thread uses one of a few sets of lists, its lane, so that threads
 * rarely wait for each other; a lane that has no block of a class takes one of
 * another lane. What is over the bound goes back to the system, beginning with
 * the classes that were of no use for the longest time.
 */
#include "flex.h"
#include "memory_system.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 64,          /* bytes; the alignment too */
    SMALL_UNITS = 16,   /* up to here each multiple of UNIT is a class */
    STEPS = 8,          /* classes a doubling above */
    LARGEST_POWER = 47, /* of two: bytes of the largest class */
    CLASS_COUNT = SMALL_UNITS + (LARGEST_POWER - 10) * STEPS,
    LANES = 16,
    SPINS = 100 /* then let the other thread run */
};

#define LARGEST_BYTES (UINT64_C(1) << LARGEST_POWER)

struct free_block {
    struct free_block *next;
};

struct lane {
    alignas(64) atomic_flag locked; /* spin: it is held for some ns */
    uint64_t taken_count;
    int64_t padding_bytes;       /* of what was taken here, less given here */
    uint64_t given_bytes;        /* since the bound was looked at */
    _Atomic uint64_t free_bytes; /* written under the lock */
    struct free_block *_Atomic free[CLASS_COUNT]; /* likewise */
    _Atomic uint32_t last_use[CLASS_COUNT];       /* an epoch; likewise */
};

struct flex_memory {
    struct lane lanes[LANES];
    alignas(64) _Atomic uint64_t in_use_bytes; /* as asked for */
    _Atomic uint64_t peak_bytes;
    alignas(64) _Atomic uint64_t reserved_bytes;
    _Atomic uint64_t system_count;
    _Atomic uint32_t epoch; /* moves on when a block comes from the system */
    uint64_t cache_bytes;   /* bound of the lanes' free_bytes */
    uint64_t check_bytes;   /* how much a lane frees between two looks at it */
};

/* ---- classes ---- */

/* The class of BYTES, and the bytes of its blocks. */
static uint32_t class_of(uint64_t bytes, uint64_t *out_bytes)
{
    uint64_t units = bytes ? (bytes + UNIT - 1) / UNIT : 1;
    uint32_t power, shift, step;

    if (units <= SMALL_UNITS) {
        *out_bytes = units * UNIT;
        return (uint32_t)units - 1;
    }
    power = 63 - (uint32_t)__builtin_clzll(units - 1);
    shift = power - 3; /* STEPS = 2^3 */
    step = (uint32_t)((units - 1) >> shift);
    *out_bytes = ((uint64_t)(step + 1) << shift) * UNIT;
    return SMALL_UNITS + (power - 4) * STEPS + (step - STEPS);
}

/* The bytes of the blocks of CLASS; inverse of class_of. */
static uint64_t class_bytes(uint32_t class)
{
    uint32_t power, step;

    if (class < SMALL_UNITS)
        return (class + UINT64_C(1)) * UNIT;
    power = (class - SMALL_UNITS) / STEPS + 4;
    step = (class - SMALL_UNITS) % STEPS + STEPS;
    return ((uint64_t)(step + 1) << (power - 3)) * UNIT;
}

static void *system_take(struct flex_memory *memory, uint64_t bytes)
{
    void *block = flex_system_take(bytes);

    if (!block)
        return NULL;
    atomic_fetch_add(&memory->reserved_bytes, bytes);
    atomic_fetch_add(&memory->system_count, 1);
    atomic_fetch_add(&memory->epoch, 1);
    return block;
}

static void system_give(struct flex_memory *memory, void *block, uint64_t bytes)
{
    flex_system_give(block, bytes);
    atomic_fetch_sub(&memory->reserved_bytes, bytes);
}

/* ---- lanes ---- */

static void lock(struct lane *lane)
{
    for (int spins = 0; atomic_flag_test_and_set_explicit(
             &lane->locked, memory_order_acquire);)
        if (++spins > SPINS)
            sched_yield();
}

static void unlock(struct lane *lane)
{
    atomic_flag_clear_explicit(&lane->locked, memory_order_release);
}

/* The lane of this thread: threads differ in the middle bits of their id. */
static struct lane *own_lane(struct flex_memory *memory)
{
    uint64_t hash =
        (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9e3779b97f4a7c15);

    return &memory->lanes[(hash >> 32) % LANES];
}

/* The lock is held by whoever changes these, so plain sums will do. */
static void add_free_locked(struct lane *lane, int64_t bytes)
{
    uint64_t now =
        atomic_load_explicit(&lane->free_bytes, memory_order_relaxed);

    atomic_store_explicit(&lane->free_bytes, now + (uint64_t)bytes,
                          memory_order_relaxed);
}

/* The block behind BLOCK. A block that waits is forbidden, its link too. */
static struct free_block *next_of(struct free_block *block)
{
    struct free_block *next;

    flex_allow(block, sizeof(*block));
    next = block->next;
    flex_forbid(block, 0, sizeof(*block));
    return next;
}

static struct free_block *pop_locked(struct lane *lane, uint32_t class,
                                     uint64_t bytes)
{
    struct free_block *block =
        atomic_load_explicit(&lane->free[class], memory_order_relaxed);

    if (!block)
        return NULL;
    atomic_store_explicit(&lane->free[class], next_of(block),
                          memory_order_relaxed);
    add_free_locked(lane, -(int64_t)bytes);
    return block;
}

/* A block of CLASS of some other lane than LANE; NULL if there is none. */
static struct free_block *take_elsewhere(struct flex_memory *memory,
                                         const struct lane *lane,
                                         uint32_t class, uint64_t bytes)
{
    struct free_block *block = NULL;

    for (uint32_t i = 0; i < LANES && !block; i++) {
        struct lane *other = &memory->lanes[i];

        if (other == lane ||
            !atomic_load_explicit(&other->free[class], memory_order_relaxed))
            continue;
        lock(other);
        block = pop_locked(other, class, bytes);
        unlock(other);
    }
    return block;
}

/* Give all free blocks of CLASS in LANE back to the system. */
static void give_class(struct flex_memory *memory, struct lane *lane,
                       uint32_t class)
{
    uint64_t bytes = class_bytes(class);
    struct free_block *block;
    int64_t sum = 0;

    /* The system is called outside of the lock. */
    lock(lane);
    block = atomic_load_explicit(&lane->free[class], memory_order_relaxed);
    atomic_store_explicit(&lane->free[class], NULL, memory_order_relaxed);
    for (struct free_block *b = block; b; b = next_of(b))
        sum += (int64_t)bytes;
    add_free_locked(lane, -sum);
    unlock(lane);
    while (block) {
        struct free_block *next = next_of(block);

        flex_allow(block, bytes);
        system_give(memory, block, bytes);
        block = next;
    }
}

static void give_all(struct flex_memory *memory)
{
    for (uint32_t i = 0; i < LANES; i++)
        for (uint32_t class = 0; class < CLASS_COUNT; class ++)
            if (atomic_load_explicit(&memory->lanes[i].free[class],
                                     memory_order_relaxed))
                give_class(memory, &memory->lanes[i], class);
}

/* ---- the bound ---- */

static uint64_t free_bytes(struct flex_memory *memory)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LANES; i++)
        sum += atomic_load_explicit(&memory->lanes[i].free_bytes,
                                    memory_order_relaxed);
    return sum;
}

/* Find the free blocks that were of no use for the longest time, the larger
 * ones first. 0 if there are none. */
static int find_oldest(struct flex_memory *memory, struct lane **out_lane,
                       uint32_t *out_class)
{
    uint32_t now = atomic_load(&memory->epoch);
    uint32_t oldest = 0;
    int found = 0;

    for (uint32_t i = 0; i < LANES; i++)
        for (uint32_t class = CLASS_COUNT; class --;) {
            struct lane *lane = &memory->lanes[i];
            uint32_t age;

            if (!atomic_load_explicit(&lane->free[class], memory_order_relaxed))
                continue;
            age = now - atomic_load_explicit(&lane->last_use[class],
                                             memory_order_relaxed);
            if (found && age <= oldest)
                continue;
            found = 1;
            oldest = age;
            *out_lane = lane;
            *out_class = class;
        }
    return found;
}

/* Over the bound: give back until an eighth of it is free again, so that the
 * next block does not begin this anew. */
static void keep_bound(struct flex_memory *memory)
{
    uint64_t goal = memory->cache_bytes - memory->cache_bytes / 8;
    struct lane *lane = NULL;
    uint32_t class = 0;

    if (free_bytes(memory) <= memory->cache_bytes)
        return;
    while (free_bytes(memory) > goal && find_oldest(memory, &lane, &class))
        give_class(memory, lane, class);
}

/* ---- public ---- */

struct flex_memory *flex_memory_new(uint64_t cache_bytes)
{
    const uint64_t step = UINT64_C(1) << 20; /* a lane's share beyond it */
    struct flex_memory *memory =
        aligned_alloc(alignof(struct flex_memory), sizeof(*memory));

    if (!memory)
        return NULL;
    memset(memory, 0, sizeof(*memory));
    for (uint32_t i = 0; i < LANES; i++)
        atomic_flag_clear(&memory->lanes[i].locked);
    memory->cache_bytes = cache_bytes;
    memory->check_bytes = cache_bytes / 64 < step ? cache_bytes / 64 : step;
    return memory;
}

void flex_memory_trim(struct flex_memory *memory)
{
    give_all(memory);
    flex_system_trim();
}

void flex_memory_free(struct flex_memory *memory)
{
    if (!memory)
        return;
    give_all(memory);
    free(memory);
}

/* BYTES more are in use. */
static void count(struct flex_memory *memory, uint64_t bytes)
{
    uint64_t now =
        bytes + atomic_fetch_add_explicit(&memory->in_use_bytes, bytes,
                                          memory_order_relaxed);
    uint64_t peak =
        atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);

    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &memory->peak_bytes, &peak, now,
                             memory_order_relaxed, memory_order_relaxed))
        ;
}

/* The lane has none: a block of another lane, or of the system. */
static void *take_new(struct flex_memory *memory, const struct lane *lane,
                      uint32_t class, uint64_t rounded)
{
    void *block = take_elsewhere(memory, lane, class, rounded);

    if (!block)
        block = system_take(memory, rounded);
    if (!block) {
        flex_memory_trim(memory);
        block = system_take(memory, rounded);
    }
    return block;
}

void *flex_memory_take(struct flex_memory *memory, uint64_t bytes)
{
    struct lane *lane = own_lane(memory);
    uint64_t rounded;
    void *block;
    uint32_t class;

    if (bytes > LARGEST_BYTES)
        return NULL;
    class = class_of(bytes, &rounded);
    lock(lane);
    block = pop_locked(lane, class, rounded);
    lane->padding_bytes += (int64_t)(rounded - bytes);
    lane->taken_count++;
    atomic_store_explicit(
        &lane->last_use[class],
        atomic_load_explicit(&memory->epoch, memory_order_relaxed),
        memory_order_relaxed);
    unlock(lane);
    if (!block)
        block = take_new(memory, lane, class, rounded);
    if (!block) {
        lock(lane);
        lane->padding_bytes -= (int64_t)(rounded - bytes);
        lane->taken_count--;
        unlock(lane);
        return NULL;
    }
    flex_allow(block, bytes);
    flex_forbid(block, bytes, rounded);
    count(memory, bytes);
    return block;
}

void flex_memory_give(struct flex_memory *memory, void *data, uint64_t bytes)
{
    struct lane *lane = own_lane(memory);
    struct free_block *block = data;
    uint64_t rounded;
    uint32_t class;
    int is_kept, is_due;

    if (!block)
        return;
    class = class_of(bytes, &rounded);
    is_kept = rounded <= memory->cache_bytes;
    /* Before others can take it: so the peak is never more than there was. */
    atomic_fetch_sub_explicit(&memory->in_use_bytes, bytes,
                              memory_order_relaxed);
    flex_allow(block, rounded);
    lock(lane);
    lane->padding_bytes -= (int64_t)(rounded - bytes);
    lane->given_bytes += rounded;
    is_due = lane->given_bytes > memory->check_bytes;
    if (is_due)
        lane->given_bytes = 0;
    if (is_kept) {
        block->next =
            atomic_load_explicit(&lane->free[class], memory_order_relaxed);
        flex_forbid(block, 0, rounded);
        atomic_store_explicit(&lane->free[class], block, memory_order_relaxed);
        add_free_locked(lane, (int64_t)rounded);
    }
    unlock(lane);
    if (!is_kept)
        system_give(memory, block, rounded);
    else if (is_due)
        keep_bound(memory);
}

void flex_memory_reset_peak(struct flex_memory *memory)
{
    atomic_store(&memory->peak_bytes, atomic_load(&memory->in_use_bytes));
}

void flex_memory_stats(struct flex_memory *memory, struct hob_memory_stats *out)
{
    int64_t padding = 0;

    out->block_count = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        lock(&memory->lanes[i]);
        padding += memory->lanes[i].padding_bytes;
        out->block_count += memory->lanes[i].taken_count;
        unlock(&memory->lanes[i]);
    }
    out->in_use_bytes = atomic_load(&memory->in_use_bytes);
    out->peak_bytes = atomic_load(&memory->peak_bytes);
    out->padding_bytes = padding > 0 ? (uint64_t)padding : 0;
    out->reserved_bytes = atomic_load(&memory->reserved_bytes);
    out->system_count = atomic_load(&memory->system_count);
}
