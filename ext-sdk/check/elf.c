/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.c - what the library's file says, before anything of it runs.
 */
#include "check.h"

#include <elf.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
    const struct check_target *target;
    struct check_report *report;
    unsigned char *data;
    uint64_t size;
    const Elf64_Shdr *sections;
    uint32_t section_count;
    uint32_t findings;
};

static const char entry_symbol[] = "hob_plugin_entry";

static void found(struct image *image, enum check_code code,
                  const char *message)
{
    check_add(image->report, code, "", "", "file", "", message);
    image->findings++;
}

/* BYTES at OFFSET of the file; NULL if it is shorter. */
static const void *bytes_at(const struct image *image, uint64_t offset,
                            uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset
               ? image->data + offset
               : NULL;
}

/* The same for a table, whose place must be aligned. */
static const void *table_at(const struct image *image, uint64_t offset,
                            uint64_t bytes)
{
    return offset % 8 ? NULL : bytes_at(image, offset, bytes);
}

/* ---- symbols ---- */

/* Names in one line: "a, b and 3 more". */
struct names {
    struct hob__text text;
    uint32_t count;
};

static void add_name(struct names *names, const char *name)
{
    if (names->count++ < 5)
        hob__text_printf(&names->text, "%s%s", names->count > 1 ? ", " : "",
                         name);
}

static void tell_names(struct image *image, enum check_code code,
                       struct names *names)
{
    if (names->count > 5)
        hob__text_printf(&names->text, " and %u more", names->count - 5);
    if (names->count)
        found(image, code, names->text.data ? names->text.data : "");
    hob__text_release(&names->text);
}

static int is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

static void check_symbols(struct image *image, const Elf64_Shdr *section)
{
    static const char *const linker[] = {"_init",       "_fini", "_edata",
                                         "__bss_start", "_end",  NULL};
    static const char *const enders[] = {
        "exit",       "_exit",   "_Exit",    "quick_exit",
        "abort",      "longjmp", "_longjmp", "__longjmp_chk",
        "siglongjmp", "system",  "execv",    "execve",
        "execvp",     "fork",    "vfork",    NULL};
    static const char *const sanitizers[] = {"__asan_init",
                                             "__tsan_init",
                                             "__msan_init",
                                             "__hwasan_init",
                                             "__ubsan_handle_add_overflow",
                                             NULL};
    const Elf64_Sym *symbols =
        table_at(image, section->sh_offset, section->sh_size);
    const Elf64_Shdr *strings = section->sh_link < image->section_count
                                    ? &image->sections[section->sh_link]
                                    : NULL;
    const char *names =
        strings ? bytes_at(image, strings->sh_offset, strings->sh_size) : NULL;
    struct names exports = {HOB__TEXT_INIT, 0}, ends = {HOB__TEXT_INIT, 0};
    struct names hob = {HOB__TEXT_INIT, 0}, sanitizer = {HOB__TEXT_INIT, 0};

    if (!symbols || !names || !strings->sh_size || names[strings->sh_size - 1])
        return;
    for (uint64_t i = 1; i < section->sh_size / sizeof(*symbols); i++) {
        const Elf64_Sym *symbol = &symbols[i];
        const char *name =
            symbol->st_name < strings->sh_size ? names + symbol->st_name : "";
        int is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;

        if (symbol->st_shndx == SHN_UNDEF) {
            if (!strncmp(name, "hob_", 4))
                add_name(&hob, name);
            else if (is_one_of(name, enders))
                add_name(&ends, name);
            else if (is_one_of(name, sanitizers) && !dlsym(RTLD_DEFAULT, name))
                add_name(&sanitizer, name);
        } else if (!is_local && symbol->st_shndx != SHN_ABS &&
                   strcmp(name, entry_symbol) != 0 &&
                   !is_one_of(name, linker)) {
            add_name(&exports, name);
        }
    }
    tell_names(image, CHECK_EXPORTS, &exports);
    tell_names(image, CHECK_ENDS_PROCESS, &ends);
    tell_names(image, CHECK_HOB_SYMBOLS, &hob);
    tell_names(image, CHECK_SANITIZER, &sanitizer);
}

/* ---- relocations, flags, segments ---- */

static int is_static_tls(const Elf64_Rela *relocation, uint16_t machine)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);

    return machine == EM_AARCH64
               ? type == R_AARCH64_TLS_TPREL
               : type == R_X86_64_TPOFF64 || type == R_X86_64_TPOFF32;
}

static int relocations_use_tls(const struct image *image,
                               const Elf64_Shdr *section)
{
    const Elf64_Ehdr *header = bytes_at(image, 0, sizeof(*header));
    const Elf64_Rela *relocations =
        table_at(image, section->sh_offset, section->sh_size);

    for (uint64_t i = 0;
         relocations && i < section->sh_size / sizeof(*relocations); i++)
        if (is_static_tls(&relocations[i], header->e_machine))
            return 1;
    return 0;
}

static void check_dynamic(struct image *image, const Elf64_Shdr *section,
                          int *uses_tls)
{
    const Elf64_Dyn *entries =
        table_at(image, section->sh_offset, section->sh_size);
    const Elf64_Shdr *strings = section->sh_link < image->section_count
                                    ? &image->sections[section->sh_link]
                                    : NULL;
    const char *names =
        strings ? bytes_at(image, strings->sh_offset, strings->sh_size) : NULL;

    for (uint64_t i = 0; entries && i < section->sh_size / sizeof(*entries);
         i++) {
        uint64_t value = entries[i].d_un.d_val;

        if (entries[i].d_tag == DT_NULL)
            break;
        if (entries[i].d_tag == DT_FLAGS && (value & DF_STATIC_TLS))
            *uses_tls = 1;
        if (entries[i].d_tag == DT_NEEDED && names && strings->sh_size &&
            !names[strings->sh_size - 1] && value < strings->sh_size &&
            !strncmp(names + value, "libhob.", 7))
            found(image, CHECK_HOB_SYMBOLS, names + value);
    }
}

static void check_stack(struct image *image, const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = table_at(
        image, header->e_phoff, (uint64_t)header->e_phnum * sizeof(*segments));

    for (uint32_t i = 0; segments && i < header->e_phnum; i++)
        if (segments[i].p_type == PT_GNU_STACK && (segments[i].p_flags & PF_X))
            found(image, CHECK_EXEC_STACK, "PT_GNU_STACK is executable");
}

static void check_sections(struct image *image)
{
    int uses_tls = 0;

    for (uint32_t i = 0; i < image->section_count; i++) {
        const Elf64_Shdr *section = &image->sections[i];

        if (section->sh_type == SHT_DYNSYM)
            check_symbols(image, section);
        else if (section->sh_type == SHT_DYNAMIC)
            check_dynamic(image, section, &uses_tls);
        else if (section->sh_type == SHT_RELA)
            uses_tls |= relocations_use_tls(image, section);
    }
    if (uses_tls)
        found(image, CHECK_STATIC_TLS,
              "DF_STATIC_TLS is set, or a relocation is of type TPOFF");
}

/* ---- the file ---- */

static void load_file(struct image *image)
{
    FILE *file = fopen(image->target->library, "rbe");
    long size = -1;

    if (file && !fseek(file, 0, SEEK_END))
        size = ftell(file);
    if (size > 0 && !fseek(file, 0, SEEK_SET))
        image->data = malloc((size_t)size);
    if (image->data &&
        fread(image->data, 1, (size_t)size, file) == (size_t)size)
        image->size = (uint64_t)size;
    if (file)
        (void)fclose(file);
}

void check_elf(const struct check_target *target, struct check_report *report)
{
    struct image image = {.target = target, .report = report};
    const Elf64_Ehdr *header;

    load_file(&image);
    header = bytes_at(&image, 0, sizeof(*header));
    /* Anything else the loader refuses, with its own reason. */
    if (header && !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
        header->e_ident[EI_CLASS] == ELFCLASS64) {
        image.sections =
            table_at(&image, header->e_shoff,
                     (uint64_t)header->e_shnum * sizeof(*image.sections));
        image.section_count = image.sections ? header->e_shnum : 0;
        check_sections(&image);
        check_stack(&image, header);
        if (!image.section_count)
            check_add_note(report, "the library has no section headers: its "
                                   "symbols were not checked");
    }
    check_add_line(report, "", "", "file", 0, image.findings);
    free(image.data);
}
