/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of everything that crosses the plugin ABI, compared with
 * tests/golden/abi.txt. What that is, hob-abi reads from the headers
 * themselves, so no member can be forgotten here. A change of the file is a
 * change of the ABI: while the major is 0 it raises the minor.
 * HOB_TEST_UPDATE=1 writes it anew.
 */
#include "../support/hob_check.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/capture.h>
#include <hob/ext/cube.h>
#include <hob/ext/flex.h>
#include <hob/ext/fusion.h>
#include <hob/ext/plugin.h>

#include "unit/abi_layout.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

_Static_assert(sizeof(hob_value) == 16, "a value is 16 bytes");
_Static_assert(offsetof(struct hob_view, data) == 0, "first for kernels");

static void dump_struct(FILE *stream, const struct abi_struct *one)
{
    fprintf(stream, "\nstruct %s: %u%s\n", one->name, one->size,
            one->is_table ? ", a table" : "");
    for (uint32_t i = one->first; i < one->first + one->count; i++) {
        const struct abi_member *member = &abi_members[i];

        fprintf(stream, "%s %u %u: %s", member->name, member->offset,
                member->size, member->type);
        if (member->since)
            fprintf(stream, ", since %u", member->since);
        fprintf(stream, "%s\n", member->is_required ? ", required" : "");
    }
}

static char *dump(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(stream);
    fprintf(stream, "ABI %d.%d: members with offset, size and type\n",
            HOB_ABI_MAJOR, HOB_ABI_MINOR);
    for (size_t i = 0; i < COUNT(abi_structs); i++)
        dump_struct(stream, &abi_structs[i]);
    fprintf(stream, "\nfunctions\n");
    for (size_t i = 0; i < COUNT(abi_functions); i++)
        fprintf(stream, "%s: %s\n", abi_functions[i].name,
                abi_functions[i].type);
    fprintf(stream, "\nnumbers\nHOB_PLUGIN_MAGIC 0x%" PRIx64 "\n",
            HOB_PLUGIN_MAGIC);
    for (size_t i = 0; i < COUNT(abi_constants); i++)
        fprintf(stream, "%s %" PRId64 "\n", abi_constants[i].name,
                abi_constants[i].value);
    fclose(stream);
    return text;
}

START_TEST(test_abi_is_as_recorded)
{
    const char *root = getenv("srcdir");
    char *is = dump();
    char path[4096];
    char want[65536];
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/golden/abi.txt", root ? root : ".");
    if (getenv("HOB_TEST_UPDATE")) {
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs(is, file);
        fclose(file);
    }
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size = fread(want, 1, sizeof(want) - 1, file);
    fclose(file);
    want[size] = '\0';
    ck_assert_str_eq(is, want);
    free(is);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *tc = tcase_create("abi");

    if (sizeof(void *) != 8) {
        printf("skipped: the record is of 64-bit machines\n");
        return 77;
    }
    tcase_add_test(tc, test_abi_is_as_recorded);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
