/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the device's memory, watched.
 *
 * Blocks are filled with a chosen byte and lie between guard zones; fenced,
 * they end where an inaccessible page begins. A request can be made to fail.
 * Works on any backend whose addresses can be added to; fences need memory of
 * the host.
 */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    GUARD_BYTE = 0xa7,
    FENCE_PAGES = 16, /* on either side: what is just outside hits them */
    ALIGN = 64
};
/* What a case needs is far below; an absurd size must not be touched. */
static const uint64_t block_max = UINT64_C(64) << 20;

/* The backend's functions get the backend's device and a signal handler gets
 * nothing: this is how they find what they serve. Set once, in a child. */
static struct check_memory *installed;

int check_memory_fails(struct check_memory *memory)
{
    return atomic_load(&memory->is_armed) &&
           atomic_fetch_add(&memory->requests, 1) + 1 == memory->fail_at;
}

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- bytes of the device ---- */

static void put(struct check_memory *memory, char *data, uint8_t byte,
                uint64_t bytes)
{
    char *buffer;

    if (!bytes)
        return;
    if (memory->is_host) {
        memset(data, byte, bytes);
        return;
    }
    buffer = malloc(bytes);
    if (!buffer)
        return;
    memset(buffer, byte, bytes);
    (void)memory->real->upload(memory->device, data, buffer, bytes);
    free(buffer);
}

/* The place of the first of BYTES bytes that is no guard; -1 if none. */
static int64_t damage(struct check_memory *memory, const char *data,
                      uint64_t bytes)
{
    const unsigned char *seen = (const unsigned char *)data;
    unsigned char *buffer = NULL;
    int64_t found = -1;

    if (!memory->is_host) {
        buffer = malloc(bytes ? bytes : 1);
        if (!buffer ||
            memory->real->download(memory->device, buffer, data, bytes)) {
            free(buffer);
            return -1;
        }
        seen = buffer;
    }
    for (uint64_t i = 0; i < bytes && found < 0; i++)
        if (seen[i] != GUARD_BYTE)
            found = (int64_t)i;
    free(buffer);
    return found;
}

/* The guard zone behind BLOCK, which fills up its last piece of memory. */
static uint64_t tail_bytes(const struct check_block *block)
{
    uint64_t rounded = round_up(block->bytes, ALIGN);

    return rounded - block->bytes + (block->map ? 0 : CHECK_GUARD);
}

static void verify(struct check_memory *memory, const struct check_block *block)
{
    int64_t at;

    if (memory->broken[0])
        return;
    at = block->map ? -1
                    : damage(memory, block->data - CHECK_GUARD, CHECK_GUARD);
    if (at >= 0) {
        (void)snprintf(memory->broken, sizeof(memory->broken),
                       "%d bytes before a buffer of %llu bytes were written",
                       (int)(CHECK_GUARD - at),
                       (unsigned long long)block->bytes);
        return;
    }
    at = damage(memory, block->data + block->bytes, tail_bytes(block));
    if (at >= 0)
        (void)snprintf(memory->broken, sizeof(memory->broken),
                       "byte %lld behind a buffer of %llu bytes was written",
                       (long long)at + 1, (unsigned long long)block->bytes);
}

/* ---- blocks ---- */

static struct check_block *new_block_locked(struct check_memory *memory)
{
    uint32_t i = 0;

    while (i < memory->block_end && memory->blocks[i].data)
        i++;
    if (i == CHECK_BLOCKS_MAX)
        return NULL;
    if (i == memory->block_end)
        memory->block_end++;
    return &memory->blocks[i];
}

/* [fence][.. block][fence] or [fence][block ..][fence]. */
static hob_status map_fenced(struct check_block *block,
                             enum check_fence_side side)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t inner = round_up(block->bytes ? block->bytes : 1, page);
    uint64_t fence = FENCE_PAGES * page;
    char *map = mmap(NULL, inner + 2 * fence, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return HOB_ERR_MEMORY;
    if (mprotect(map + fence, inner, PROT_READ | PROT_WRITE)) {
        (void)munmap(map, inner + 2 * fence);
        return HOB_ERR_MEMORY;
    }
    block->map = map;
    block->map_bytes = inner + 2 * fence;
    block->data = map + fence;
    if (side == CHECK_FENCE_BEHIND)
        block->data += inner - round_up(block->bytes, ALIGN);
    return HOB_OK;
}

static hob_status take_plain(struct check_memory *memory,
                             struct check_block *block)
{
    void *data = NULL;
    hob_status status = memory->real->alloc(
        memory->device, round_up(block->bytes, ALIGN) + 2 * CHECK_GUARD, &data);

    block->map = NULL;
    block->data = data ? (char *)data + CHECK_GUARD : NULL;
    if (!status)
        put(memory, data, GUARD_BYTE, CHECK_GUARD);
    return status;
}

static hob_status watched_alloc(void *device, uint64_t bytes, void **out_data)
{
    struct check_memory *memory = installed;
    struct check_block *block;
    hob_status status = HOB_ERR_MEMORY;

    (void)device;
    *out_data = NULL;
    if (check_memory_fails(memory) || bytes > block_max)
        return HOB_ERR_MEMORY;
    pthread_mutex_lock(&memory->lock);
    block = new_block_locked(memory);
    if (block) {
        block->bytes = bytes;
        block->is_sealed = 0;
        status = memory->fence && memory->is_host
                     ? map_fenced(block, memory->fence)
                     : take_plain(memory, block);
        if (status)
            block->data = NULL;
    }
    if (!status) {
        put(memory, block->data, memory->fill, bytes);
        put(memory, block->data + bytes, GUARD_BYTE, tail_bytes(block));
        memory->live_blocks++;
        *out_data = block->data;
    }
    pthread_mutex_unlock(&memory->lock);
    return status;
}

static void watched_free(void *device, void *data, uint64_t bytes)
{
    struct check_memory *memory = installed;
    struct check_block *block = NULL;

    (void)device;
    (void)bytes;
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->block_end && !block; i++)
        if (memory->blocks[i].data && memory->blocks[i].data == data)
            block = &memory->blocks[i];
    if (block) {
        verify(memory, block);
        if (block->map)
            (void)munmap(block->map, block->map_bytes);
        else
            memory->real->free(memory->device, block->data - CHECK_GUARD,
                               round_up(block->bytes, ALIGN) + 2 * CHECK_GUARD);
        block->data = NULL;
        block->map = NULL;
        memory->live_blocks--;
    }
    pthread_mutex_unlock(&memory->lock);
}

void check_memory_verify(struct check_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->block_end; i++)
        if (memory->blocks[i].data)
            verify(memory, &memory->blocks[i]);
    pthread_mutex_unlock(&memory->lock);
}

void check_memory_seal(struct check_memory *memory, int sealed)
{
    uint64_t fence = FENCE_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);

    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->block_end; i++) {
        struct check_block *block = &memory->blocks[i];

        if (block->data && block->map && block->is_sealed != sealed &&
            !mprotect(block->map + fence, block->map_bytes - 2 * fence,
                      sealed ? PROT_READ : PROT_READ | PROT_WRITE))
            block->is_sealed = sealed;
    }
    pthread_mutex_unlock(&memory->lock);
}

/* ---- what a segmentation fault was about ---- */

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct check_memory *memory = installed;
    const char *at = info->si_addr;
    int fault = CHECK_FAULT_OTHER;

    (void)context;
    for (uint32_t i = 0; memory && i < memory->block_end; i++) {
        const struct check_block *block = &memory->blocks[i];

        if (!block->data || !block->map || at < block->map ||
            at >= block->map + block->map_bytes)
            continue;
        fault = block->is_sealed && at >= block->data &&
                        at < block->data + block->bytes
                    ? CHECK_FAULT_SEAL
                    : CHECK_FAULT_FENCE;
        break;
    }
    if (memory)
        memory->shared->fault = fault;
    /* The default action ends the process with this very signal. */
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void *watched_host_alloc(const struct hob_host *host, uint64_t bytes)
{
    struct check_memory *memory = installed;
    void *data = NULL;

    (void)host;
    if (check_memory_fails(memory) || bytes > block_max ||
        posix_memalign(&data, ALIGN, round_up(bytes ? bytes : 1, ALIGN)))
        return NULL;
    memset(data, memory->fill, bytes);
    atomic_fetch_add(&memory->live_host, 1);
    return data;
}

static void watched_host_free(const struct hob_host *host, void *data)
{
    (void)host;
    if (data)
        atomic_fetch_sub(&installed->live_host, 1);
    free(data);
}

void check_memory_watch(struct check_memory *memory,
                        struct check_shared *shared)
{
    struct sigaction action;

    memory->shared = shared;
    installed = memory;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

void check_memory_install(struct check_memory *memory, hob_device *device,
                          struct hob_backend *copy, struct check_shared *shared)
{
    struct hob_host *host = &device->runtime->host;

    memory->real = device->backend;
    memory->device = device->instance;
    memory->is_host = (device->backend->flags & HOB_BACKEND_HOST_MEMORY) != 0;
    memory->fill = 0x5a;
    pthread_mutex_init(&memory->lock, NULL);
    check_memory_watch(memory, shared);
    *copy = *device->backend;
    copy->alloc = watched_alloc;
    copy->free = watched_free;
    device->backend = copy;
    host->mem_alloc = watched_host_alloc;
    host->mem_free = watched_host_free;
}
