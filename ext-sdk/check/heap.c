/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - what a plugin allocates with malloc, counted and made to fail.
 *
 * The dynamic linker has written the address of malloc into the plugin's
 * table of imports; ours takes its place there. Nothing else in the process
 * changes, so only the plugin's own requests are seen.
 */
#include "check.h"

#include <elf.h>
#include <link.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* malloc has no argument that could say what it serves. Set once. */
static struct check_memory *watched;

static void *count_in(void *memory)
{
    if (memory)
        atomic_fetch_add(&watched->live_heap, 1);
    return memory;
}

static void *watched_malloc(size_t size)
{
    return check_memory_fails(watched) ? NULL : count_in(malloc(size));
}

static void *watched_calloc(size_t count, size_t size)
{
    return check_memory_fails(watched) ? NULL : count_in(calloc(count, size));
}

static void *watched_realloc(void *memory, size_t size)
{
    void *more;

    if (check_memory_fails(watched))
        return NULL;
    more = realloc(memory, size);
    if (!memory && more)
        atomic_fetch_add(&watched->live_heap, 1);
    else if (memory && !more && !size)
        atomic_fetch_sub(&watched->live_heap, 1);
    return more;
}

static void *watched_aligned_alloc(size_t alignment, size_t size)
{
    return check_memory_fails(watched)
               ? NULL
               : count_in(aligned_alloc(alignment, size));
}

static int watched_posix_memalign(void **out, size_t alignment, size_t size)
{
    int failed;

    if (check_memory_fails(watched))
        return 12; /* ENOMEM */
    failed = posix_memalign(out, alignment, size);
    if (!failed)
        (void)count_in(*out);
    return failed;
}

static char *watched_strdup(const char *text)
{
    return check_memory_fails(watched) ? NULL : count_in(strdup(text));
}

static void watched_free(void *memory)
{
    if (memory)
        atomic_fetch_sub(&watched->live_heap, 1);
    free(memory);
}

/* A function's address as the linker writes it. */
static uintptr_t replacement(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } ours[] = {{"malloc", (void (*)(void))watched_malloc},
                {"calloc", (void (*)(void))watched_calloc},
                {"realloc", (void (*)(void))watched_realloc},
                {"aligned_alloc", (void (*)(void))watched_aligned_alloc},
                {"posix_memalign", (void (*)(void))watched_posix_memalign},
                {"strdup", (void (*)(void))watched_strdup},
                {"free", (void (*)(void))watched_free}};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (!strcmp(ours[i].name, name))
            return (uintptr_t)ours[i].function;
    return 0;
}

/* Relocations may lie in memory that was made read-only after loading. */
static void overwrite(uintptr_t slot, uintptr_t value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = slot & ~(page - 1);

    if (mprotect((void *)first, slot + sizeof(value) - first,
                 PROT_READ | PROT_WRITE))
        return;
    memcpy((void *)slot, &value, sizeof(value));
}

static int is_import(uint64_t info)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(info);

#if defined(__aarch64__)
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
           type == R_AARCH64_ABS64;
#else
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
           type == R_X86_64_64;
#endif
}

static void patch(const struct link_map *map, const Elf64_Rela *relocations,
                  uint64_t bytes, const Elf64_Sym *symbols, const char *names)
{
    for (uint64_t i = 0; i < bytes / sizeof(*relocations); i++) {
        uint64_t symbol = ELF64_R_SYM(relocations[i].r_info);
        uintptr_t ours = 0;

        if (symbol && is_import(relocations[i].r_info) &&
            symbols[symbol].st_shndx == SHN_UNDEF)
            ours = replacement(names + symbols[symbol].st_name);
        if (ours)
            overwrite(map->l_addr + relocations[i].r_offset, ours);
    }
}

void check_heap_install(struct check_memory *memory, void *handle)
{
    struct link_map *map = NULL;
    uint64_t at[DT_JMPREL + 1] = {0};

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
        return;
    for (const Elf64_Dyn *one = map->l_ld; one->d_tag != DT_NULL; one++)
        if (one->d_tag > 0 && one->d_tag <= DT_JMPREL)
            at[one->d_tag] = one->d_un.d_val;
    if (!at[DT_SYMTAB] || !at[DT_STRTAB])
        return;
    watched = memory;
    /* glibc has added the load address to these already. */
    patch(map, (const Elf64_Rela *)at[DT_RELA], at[DT_RELA] ? at[DT_RELASZ] : 0,
          (const Elf64_Sym *)at[DT_SYMTAB], (const char *)at[DT_STRTAB]);
    patch(map, (const Elf64_Rela *)at[DT_JMPREL],
          at[DT_JMPREL] ? at[DT_PLTRELSZ] : 0, (const Elf64_Sym *)at[DT_SYMTAB],
          (const char *)at[DT_STRTAB]);
}
