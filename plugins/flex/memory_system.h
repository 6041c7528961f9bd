/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_system.h - blocks from the system, and what a sanitizer is told.
 *
 * The address sanitizer knows malloc's blocks, not those that the allocator
 * keeps and hands out again. In a build with it the allocator forbids blocks
 * that wait, and what rounding adds behind those in use, so that an access of
 * a kernel outside of its tensors is found. Elsewhere that costs nothing.
 */
#ifndef FLEX_MEMORY_SYSTEM_H
#define FLEX_MEMORY_SYSTEM_H

#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define FLEX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FLEX_ASAN 1
#endif
#endif

#ifdef FLEX_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* BYTES, more than 0, 64-byte aligned, on huge pages if they are many; NULL
 * without memory. */
void *flex_system_take(uint64_t bytes);
void flex_system_give(void *block, uint64_t bytes);
/* The C library keeps small blocks that it got back; tell it not to. */
void flex_system_trim(void);

/* Whoever touches BLOCK from byte FROM up to TO makes an error. */
static inline void flex_forbid(void *block, uint64_t from, uint64_t to)
{
#ifdef FLEX_ASAN
    ASAN_POISON_MEMORY_REGION((char *)block + from, to - from);
#else
    (void)block;
    (void)from;
    (void)to;
#endif
}

/* The first BYTES of BLOCK may be touched. */
static inline void flex_allow(void *block, uint64_t bytes)
{
#ifdef FLEX_ASAN
    ASAN_UNPOISON_MEMORY_REGION(block, bytes);
#else
    (void)block;
    (void)bytes;
#endif
}

#endif
