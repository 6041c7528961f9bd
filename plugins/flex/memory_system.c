/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_system.h"

#include "flex.h"

#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#define HUGE_BYTES (UINT64_C(2) << 20) /* of a huge page */

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

void *flex_system_take(uint64_t bytes)
{
    void *memory = NULL;

#if defined(__linux__)
    if (bytes >= HUGE_BYTES)
        return map_huge(bytes);
#endif
    if (bytes > SIZE_MAX || posix_memalign(&memory, FLEX_ALIGN, (size_t)bytes))
        return NULL;
    return memory;
}

void flex_system_give(void *block, uint64_t bytes)
{
#if defined(__linux__)
    if (bytes >= HUGE_BYTES) {
        munmap(block, bytes);
        return;
    }
#endif
    (void)bytes;
    free(block);
}

void flex_system_trim(void)
{
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}
