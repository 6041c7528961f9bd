/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>

void golden_compare(const char *name, const char *text)
{
    const char *root = getenv("srcdir");
    char path[4096];
    char want[8192];
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/golden/%s.txt", root ? root : ".", name);
    if (getenv("HOB_TEST_UPDATE")) {
        file = fopen(path, "w");
        ck_assert_msg(file != NULL, "%s cannot be written", path);
        fprintf(file, "%s\n", text);
        fclose(file);
    }
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing; the text is\n%s", path, text);
    size = fread(want, 1, sizeof(want) - 1, file);
    fclose(file);
    want[size] = '\0';
    if (size && want[size - 1] == '\n')
        want[size - 1] = '\0';
    ck_assert_str_eq(text, want);
}
