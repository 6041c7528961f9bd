/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "elf_check.h"

#include <stdlib.h>
#include <string.h>

/* From the System V ABI; not <elf.h>, which other systems do not have. */
enum {
    EHDR_SIZE = 64,
    SHDR_SIZE = 64,
    SYM_SIZE = 24,
    ELFCLASS64 = 2,
    ELFDATA2LSB = 1,
    ET_DYN = 3,
    SHT_DYNSYM = 11,
    /* More than the largest real library has, less than memory. */
    TABLE_MAX = 64 << 20,
    SECTIONS_MAX = 65535
};

struct file {
    const struct hob_os_ops *os;
    int fd;
    uint64_t size;
    const char *path;
    enum hob__reason *out_reason;
    hob_error *error;
    const char *wanted; /* a symbol to look for, or NULL */
    bool *out_exports;
};

static uint64_t get(const unsigned char *p, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | p[bytes];
    return value;
}

static hob_status fail(const struct file *file, enum hob__reason reason,
                       const char *what)
{
    *file->out_reason = reason;
    return hob_error_set(file->error, HOB_ERR_PLUGIN, "%s: %s", file->path,
                         what);
}

static bool read_at(const struct file *file, uint64_t offset, void *buffer,
                    uint64_t size)
{
    if (offset > file->size || size > file->size - offset)
        return false;
    return file->os->read(file->os->self, file->fd, buffer, (size_t)size,
                          offset) == (int64_t)size;
}

/* Read SIZE bytes into fresh memory; NULL with *OUT_STATUS set or HOB_OK if
 * the file does not hold them. */
static unsigned char *read_table(const struct file *file, uint64_t offset,
                                 uint64_t size, hob_status *out_status)
{
    unsigned char *table;

    *out_status = HOB_OK;
    if (!size || size > TABLE_MAX || offset > file->size ||
        size > file->size - offset)
        return NULL;
    table = malloc((size_t)size);
    if (!table) {
        *out_status = hob_error_set(file->error, HOB_ERR_MEMORY,
                                    "%s: out of memory", file->path);
        return NULL;
    }
    if (!read_at(file, offset, table, size)) {
        free(table);
        return NULL;
    }
    return table;
}

/* The machine's number for the architecture in TRIPLE; 0 if unknown. */
static uint64_t machine_of(const char *triple)
{
    static const struct {
        const char *arch;
        uint64_t machine;
    } machines[] = {{"x86_64", 62}, {"aarch64", 183}, {"riscv64", 243}};
    size_t i;

    for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (strstr(triple, machines[i].arch))
            return machines[i].machine;
    }
    return 0;
}

static hob_status check_header(const struct file *file,
                               const unsigned char *header)
{
    uint64_t machine = machine_of(file->os->triple);

    if (memcmp(header, "\177ELF", 4) != 0)
        return fail(file, HOB__REASON_LIBRARY_FORMAT, "not an ELF file");
    if (header[4] != ELFCLASS64)
        return fail(file, HOB__REASON_LIBRARY_ARCH, "not a 64-bit library");
    if (header[5] != ELFDATA2LSB)
        return fail(file, HOB__REASON_LIBRARY_ARCH,
                    "not a little-endian library");
    if (machine && get(header + 18, 2) != machine) {
        *file->out_reason = HOB__REASON_LIBRARY_ARCH;
        return hob_error_set(file->error, HOB_ERR_PLUGIN,
                             "%s: ELF machine %u, this is %s", file->path,
                             (unsigned)get(header + 18, 2), file->os->triple);
    }
    if (get(header + 16, 2) != ET_DYN)
        return fail(file, HOB__REASON_LIBRARY_FORMAT,
                    "an object or program, not a shared library");
    return HOB_OK;
}

/* NAME is undefined in the library: would opening it end in trouble? */
static hob_status check_undefined(const struct file *file, const char *name)
{
    static const char *const runtimes[] = {"__asan_init", "__tsan_init",
                                           "__msan_init", "__hwasan_init"};
    size_t i;

    for (i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        if (!strcmp(name, runtimes[i]) &&
            !file->os->has_symbol(file->os->self, name)) {
            *file->out_reason = HOB__REASON_SANITIZER;
            return hob_error_set(file->error, HOB_ERR_PLUGIN,
                                 "%s: needs %s, which this process lacks",
                                 file->path, name);
        }
    }
    return HOB_OK;
}

static hob_status check_symbols(const struct file *file,
                                const unsigned char *symbols,
                                uint64_t symbol_size, const char *strings,
                                uint64_t string_size)
{
    uint64_t at;
    hob_status st = HOB_OK;

    for (at = 0; at + SYM_SIZE <= symbol_size && !st; at += SYM_SIZE) {
        uint64_t name = get(symbols + at, 4);
        bool is_undefined = get(symbols + at + 6, 2) == 0;

        if (name >= string_size)
            continue;
        if (is_undefined)
            st = check_undefined(file, strings + name);
        else if (file->wanted && !strcmp(strings + name, file->wanted))
            *file->out_exports = true;
    }
    return st;
}

/* SECTION is the dynamic symbol table's header, STRINGS that of its names. */
static hob_status check_section(const struct file *file,
                                const unsigned char *section,
                                const unsigned char *strings)
{
    uint64_t symbol_size = get(section + 32, 8);
    uint64_t string_size = get(strings + 32, 8);
    unsigned char *symbols, *names = NULL;
    hob_status st;

    symbols = read_table(file, get(section + 24, 8), symbol_size, &st);
    if (symbols)
        names = read_table(file, get(strings + 24, 8), string_size, &st);
    /* Without its last NUL the table is damaged: the system will say so. */
    if (names && !names[string_size - 1])
        st = check_symbols(file, symbols, symbol_size, (const char *)names,
                           string_size);
    free(symbols);
    free(names);
    return st;
}

static hob_status check_sections(const struct file *file,
                                 const unsigned char *header)
{
    uint64_t offset = get(header + 40, 8), count = get(header + 60, 2), i;
    unsigned char *sections;
    hob_status st;

    if (offset && get(header + 58, 2) != SHDR_SIZE)
        return fail(file, HOB__REASON_LIBRARY_FORMAT,
                    "damaged: wrong size of section headers");
    /* No section headers at all: stripped hard, but it can be opened. */
    if (!offset || !count || count > SECTIONS_MAX) {
        if (file->wanted)
            *file->out_exports = true;
        return HOB_OK;
    }
    sections = read_table(file, offset, count * SHDR_SIZE, &st);
    if (!sections)
        return st ? st
                  : fail(file, HOB__REASON_LIBRARY_FORMAT,
                         "damaged: its section headers lie outside the file");
    for (i = 0; i < count && !st; i++) {
        const unsigned char *section = sections + i * SHDR_SIZE;
        uint64_t link = get(section + 40, 4);

        if (get(section + 4, 4) == SHT_DYNSYM && link < count)
            st = check_section(file, section, sections + link * SHDR_SIZE);
    }
    free(sections);
    return st;
}

static hob_status check_elf(const struct file *file)
{
    unsigned char header[EHDR_SIZE];
    hob_status st;

    *file->out_reason = HOB__REASON_OK;
    if (!read_at(file, 0, header, sizeof(header)))
        return fail(file, HOB__REASON_LIBRARY_FORMAT,
                    "too short for a shared library");
    st = check_header(file, header);
    return st ? st : check_sections(file, header);
}

hob_status hob__elf_check(const struct hob_os_ops *os, int fd, uint64_t size,
                          const char *path, enum hob__reason *out_reason,
                          hob_error *error)
{
    const struct file file = {os,         fd,    size, path,
                              out_reason, error, NULL, NULL};

    return check_elf(&file);
}

static hob_status check_pe(const struct file *file)
{
    unsigned char dos[64], pe[24];
    uint64_t machine = strstr(file->os->triple, "aarch64") ? 0xaa64 : 0x8664;

    if (!read_at(file, 0, dos, sizeof(dos)) || memcmp(dos, "MZ", 2) != 0 ||
        !read_at(file, get(dos + 60, 4), pe, sizeof(pe)) ||
        memcmp(pe, "PE\0\0", 4) != 0)
        return fail(file, HOB__REASON_LIBRARY_FORMAT, "not a PE file");
    if (get(pe + 4, 2) != machine)
        return fail(file, HOB__REASON_LIBRARY_ARCH,
                    "a library for another machine");
    if (!(get(pe + 22, 2) & 0x2000)) /* IMAGE_FILE_DLL */
        return fail(file, HOB__REASON_LIBRARY_FORMAT,
                    "a program, not a library");
    return HOB_OK;
}

static hob_status check_mach_o(const struct file *file)
{
    unsigned char header[16];
    uint64_t cpu = strstr(file->os->triple, "aarch64") ? 0x100000c : 0x1000007;
    uint64_t type;

    if (!read_at(file, 0, header, sizeof(header)))
        return fail(file, HOB__REASON_LIBRARY_FORMAT, "not a Mach-O file");
    /* A universal file: the system picks its part. */
    if (!memcmp(header, "\xca\xfe\xba\xbe", 4))
        return HOB_OK;
    if (get(header, 4) != 0xfeedfacf)
        return fail(file, HOB__REASON_LIBRARY_FORMAT, "not a Mach-O file");
    if (get(header + 4, 4) != cpu)
        return fail(file, HOB__REASON_LIBRARY_ARCH,
                    "a library for another machine");
    type = get(header + 12, 4);
    if (type != 6 && type != 8) /* MH_DYLIB, MH_BUNDLE */
        return fail(file, HOB__REASON_LIBRARY_FORMAT,
                    "not a dynamic library or bundle");
    return HOB_OK;
}

hob_status hob__library_check(const struct hob_os_ops *os, int fd,
                              uint64_t size, const char *path,
                              enum hob__reason *out_reason, hob_error *error)
{
    const struct file file = {os,         fd,    size, path,
                              out_reason, error, NULL, NULL};

    *out_reason = HOB__REASON_OK;
    if (!strncmp(os->triple, "windows", 7))
        return check_pe(&file);
    if (!strncmp(os->triple, "macos", 5))
        return check_mach_o(&file);
    return hob__elf_check(os, fd, size, path, out_reason, error);
}

hob_status hob__library_exports(const struct hob_os_ops *os, int fd,
                                uint64_t size, const char *path,
                                const char *name, bool *out_exports,
                                hob_error *error)
{
    enum hob__reason reason;
    const struct file file = {os,      fd,    size, path,
                              &reason, error, name, out_exports};

    *out_exports =
        !strncmp(os->triple, "windows", 7) || !strncmp(os->triple, "macos", 5);
    return *out_exports ? HOB_OK : check_elf(&file);
}
