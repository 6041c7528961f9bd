/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the caching allocator.
 *
 * Sizes are rounded up to classes: multiples of 64 bytes up to 1 KiB, then
 * eight classes a doubling, so at most 1/8 is padding. A freed block waits in
 * its class's list; the link is in the block itself. Fresh pages are what
 * costs: an add of 1e7 floats takes five times as long into memory that the
 * system has just given, hence the cache, and huge pages for large blocks.
 */
#include "flex.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

enum {
    UNIT = 64,        /* bytes; the alignment too */
    SMALL_UNITS = 16, /* up to here each multiple of UNIT is a class */
    STEPS = 8,        /* classes a doubling above */
    CLASS_COUNT = SMALL_UNITS + 54 * STEPS
};

#define HUGE_BYTES (UINT64_C(2) << 20) /* of a huge page */
#define LARGEST_BYTES (UINT64_C(1) << 60)

struct free_block {
    struct free_block *next;
};

struct flex_memory {
    uint32_t locked; /* spin: the lock is held for some ns */
    uint32_t reserved;
    uint64_t cache_bytes; /* bound of free_bytes */
    uint64_t free_bytes;
    uint64_t in_use_bytes;
    struct free_block *free[CLASS_COUNT];
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

/* ---- the system ---- */

#if defined(__linux__)
/* A mapping that begins at a huge page: cut out of one a page longer. */
static void *map_huge(uint64_t bytes)
{
    uint64_t total = bytes + HUGE_BYTES;
    char *memory = mmap(NULL, total, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t head;

    if (memory == MAP_FAILED)
        return NULL;
    head = -(uint64_t)(uintptr_t)memory & (HUGE_BYTES - 1);
    if (head)
        munmap(memory, head);
    munmap(memory + head + bytes, HUGE_BYTES - head);
#ifdef MADV_HUGEPAGE
    /* Advice only: without huge pages the memory is as good, but slower. */
    (void)madvise(memory + head, bytes, MADV_HUGEPAGE);
#endif
    return memory + head;
}
#endif

static void *system_take(uint64_t bytes)
{
    void *memory = NULL;

#if defined(__linux__)
    if (bytes >= HUGE_BYTES)
        return map_huge(bytes);
#endif
    if (bytes > SIZE_MAX || posix_memalign(&memory, UNIT, (size_t)bytes))
        return NULL;
    return memory;
}

static void system_give(void *memory, uint64_t bytes)
{
#if defined(__linux__)
    if (bytes >= HUGE_BYTES) {
        munmap(memory, bytes);
        return;
    }
#endif
    (void)bytes;
    free(memory);
}

/* ---- the lock ---- */

static void lock(struct flex_memory *memory)
{
    while (__atomic_exchange_n(&memory->locked, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&memory->locked, __ATOMIC_RELAXED)) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
}

static void unlock(struct flex_memory *memory)
{
    __atomic_store_n(&memory->locked, 0, __ATOMIC_RELEASE);
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

/* ---- public ---- */

struct flex_memory *flex_memory_new(uint64_t cache_bytes)
{
    struct flex_memory *memory = calloc(1, sizeof(*memory));

    if (memory)
        memory->cache_bytes = cache_bytes;
    return memory;
}

void flex_memory_trim(struct flex_memory *memory)
{
    for (uint32_t class = 0; class < CLASS_COUNT; class ++) {
        uint64_t bytes = class_bytes(class);
        struct free_block *block;

        /* The system is called outside of the spin lock. */
        lock(memory);
        block = memory->free[class];
        memory->free[class] = NULL;
        for (struct free_block *b = block; b; b = b->next)
            memory->free_bytes -= bytes;
        unlock(memory);
        while (block) {
            struct free_block *next = block->next;

            system_give(block, bytes);
            block = next;
        }
    }
}

void flex_memory_free(struct flex_memory *memory)
{
    if (!memory)
        return;
    flex_memory_trim(memory);
    free(memory);
}

void *flex_memory_take(struct flex_memory *memory, uint64_t bytes)
{
    uint64_t rounded;
    struct free_block *block;
    void *fresh;
    uint32_t class;

    if (bytes > LARGEST_BYTES)
        return NULL;
    class = class_of(bytes, &rounded);
    lock(memory);
    block = memory->free[class];
    if (block) {
        memory->free[class] = block->next;
        memory->free_bytes -= rounded;
        memory->in_use_bytes += rounded;
    }
    unlock(memory);
    if (block)
        return block;
    fresh = system_take(rounded);
    if (!fresh) {
        flex_memory_trim(memory);
        fresh = system_take(rounded);
    }
    if (fresh) {
        lock(memory);
        memory->in_use_bytes += rounded;
        unlock(memory);
    }
    return fresh;
}

void flex_memory_give(struct flex_memory *memory, void *data, uint64_t bytes)
{
    struct free_block *block = data;
    uint64_t rounded;
    uint32_t class;
    int cached;

    if (!block)
        return;
    class = class_of(bytes, &rounded);
    lock(memory);
    cached = memory->free_bytes + rounded <= memory->cache_bytes;
    memory->in_use_bytes -= rounded;
    if (cached) {
        block->next = memory->free[class];
        memory->free[class] = block;
        memory->free_bytes += rounded;
    }
    unlock(memory);
    if (cached)
        return;
    /* Over the bound: what waits is of other sizes than what is in use now,
     * so all of it goes, and the cache fills anew. */
    system_give(block, rounded);
    flex_memory_trim(memory);
}

void flex_memory_stats(struct flex_memory *memory,
                       struct flex_memory_stats *out)
{
    lock(memory);
    out->in_use_bytes = memory->in_use_bytes;
    out->reserved_bytes = memory->in_use_bytes + memory->free_bytes;
    unlock(memory);
}
