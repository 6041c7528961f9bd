/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_calls.c - a library to preload that counts the calls to malloc and its
 * like, and to mmap, of a whole process. Ways are not timed with it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__GLIBC__)
/* glibc's own names of what is replaced here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

/* For the whole process: that is what it is for. */
static int64_t calls;

int64_t bench_count_calls(void);

static void count(void)
{
    (void)__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

int64_t bench_count_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size)
{
    count();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    count();
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : 12; /* ENOMEM */
}

void *mmap(void *address, size_t length, int protection, int flags, int fd,
           off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    count();
    return next(address, length, protection, flags, fd, offset);
}
#endif
