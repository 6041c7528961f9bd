/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - the lists as C, for tests.
 *
 * The numbers here are computed from the headers' text. The asserts compare
 * them with what the compiler of the moment makes of the same headers.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "abi.h"

#include <inttypes.h>

static const char types[] =
    "struct abi_member {\n"
    "    const char *table;\n"
    "    const char *name;\n"
    "    const char *type;\n"
    "    uint32_t offset; /* in bytes, as the size */\n"
    "    uint32_t size;\n"
    "    uint32_t since; /* minor; 0: from the first version on */\n"
    "    unsigned is_required : 1;\n"
    "    unsigned is_pointer : 1;\n"
    "};\n\n"
    "/* Members FIRST..FIRST+COUNT-1 of the list. */\n"
    "struct abi_struct {\n"
    "    const char *name;\n"
    "    uint32_t first;\n"
    "    uint32_t count;\n"
    "    uint32_t size;\n"
    "    uint32_t newer_size;   /* of a version with more members behind */\n"
    "    unsigned is_table : 1; /* it says its own size */\n"
    "};\n\n"
    "struct abi_constant {\n"
    "    const char *name;\n"
    "    int64_t value;\n"
    "};\n\n"
    "struct abi_function {\n"
    "    const char *name;\n"
    "    const char *type;\n"
    "};\n\n";

static void asserts(struct hob__text *out, const struct abi_list *list,
                    const struct abi_struct *one)
{
    for (uint32_t i = one->first; i < one->first + one->count; i++) {
        const struct abi_member *member = &list->members[i];

        hob__text_printf(out,
                         "ABI_IS(offsetof(struct %s, %s), %" PRIu32 ");\n"
                         "ABI_IS(sizeof(((struct %s *)0)->%s), %" PRIu32 ");\n",
                         one->name, member->name, member->offset, one->name,
                         member->name, member->size);
    }
    hob__text_printf(out, "ABI_IS(sizeof(struct %s), %" PRIu32 ");\n\n",
                     one->name, one->size);
}

/* A later version has a number and a pointer more. */
static void newer(struct hob__text *out, const struct abi_struct *one)
{
    hob__text_printf(out,
                     "struct abi_newer_%s {\n"
                     "    struct %s known;\n"
                     "    uint64_t later_number;\n"
                     "    const void *later_pointer;\n"
                     "};\n",
                     one->name, one->name);
}

static void structs(struct hob__text *out, const struct abi_list *list)
{
    hob__text_puts(out, "static const struct abi_struct abi_structs[] = {\n");
    for (uint32_t i = 0; i < list->struct_count; i++) {
        const struct abi_struct *one = &list->structs[i];

        hob__text_printf(out,
                         "    {\"%s\", %" PRIu32 ", %" PRIu32
                         ", sizeof(struct %s),\n"
                         "     sizeof(struct abi_newer_%s), %d},\n",
                         one->name, one->first, one->count, one->name,
                         one->name, one->is_table);
    }
    hob__text_puts(out, "};\n\n");
}

static void members(struct hob__text *out, const struct abi_list *list)
{
    hob__text_puts(out, "static const struct abi_member abi_members[] = {\n");
    for (uint32_t k = 0; k < list->struct_count; k++) {
        const struct abi_struct *one = &list->structs[k];

        for (uint32_t i = one->first; i < one->first + one->count; i++) {
            const struct abi_member *member = &list->members[i];

            hob__text_printf(
                out,
                "    {\"%s\", \"%s\", \"%s\",\n"
                "     offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s),\n"
                "     %" PRIu32 ", %d, %d},\n",
                one->name, member->name, member->type, one->name, member->name,
                one->name, member->name, member->since & 0xffff,
                member->is_required, member->is_pointer);
        }
    }
    hob__text_puts(out, "};\n\n");
}

void abi_write(struct hob__text *out, const struct abi_list *list)
{
    hob__text_puts(out,
                   "/* Made by hob-abi from the ABI's headers; do not edit. "
                   "*/\n"
                   "#ifndef ABI_LAYOUT_H\n"
                   "#define ABI_LAYOUT_H\n\n"
                   "#include <stddef.h>\n"
                   "#include <stdint.h>\n\n"
                   "/* Numbers are those of 64-bit machines. */\n"
                   "#define ABI_IS(what, number) \\\n"
                   "    _Static_assert(sizeof(void *) != 8 || (what) == "
                   "(number), #what)\n\n");
    for (uint32_t i = 0; i < list->struct_count; i++)
        asserts(out, list, &list->structs[i]);
    for (uint32_t i = 0; i < list->enum_count; i++)
        hob__text_printf(out, "ABI_IS(sizeof(%s), 4);\n", list->enums[i]);
    hob__text_puts(out, "\n#undef ABI_IS\n\n");
    hob__text_puts(out, types);
    for (uint32_t i = 0; i < list->struct_count; i++)
        newer(out, &list->structs[i]);
    hob__text_puts(out, "\n");
    structs(out, list);
    members(out, list);
    hob__text_puts(out,
                   "static const struct abi_constant abi_constants[] = {\n");
    for (uint32_t i = 0; i < list->constant_count; i++)
        hob__text_printf(out, "    {\"%s\", %s},\n", list->constants[i].name,
                         list->constants[i].name);
    hob__text_puts(out, "};\n\n"
                        "static const struct abi_function abi_functions[] = "
                        "{\n");
    for (uint32_t i = 0; i < list->function_count; i++)
        hob__text_printf(out, "    {\"%s\", \"%s\"},\n",
                         list->functions[i].name, list->functions[i].type);
    hob__text_puts(out, "};\n\n#endif\n");
}
