/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hob-abi, run by the tests' Makefile on the building machine.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_BAD_INPUT = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: hob-abi [--output FILE] [--names FILE]... HEADER...\n"
    "\n"
    "Reads the structs of the ABI's headers and writes C for tests: asserts\n"
    "on offsets, the list of members, and later versions of growable tables.\n"
    "Errors are FILE:LINE:COLUMN: message.\n"
    "\n"
    "  --names FILE   take enumerators and names of types from FILE only\n"
    "  --output FILE  where to write; without it the input is only checked\n"
    "\n"
    "Exit status: 0 done, 1 an error in the input, 2 a wrong command line.\n";

static hob_status read_text(const char *path, struct hob__text *text,
                            hob_error *error)
{
    FILE *file = fopen(path, "r");
    char buffer[4096];
    size_t size;
    bool failed;

    if (!file)
        return hob_error_set(error, HOB_ERR_IO, "%s: %s", path,
                             strerror(errno));
    while ((size = fread(buffer, 1, sizeof(buffer), file)) > 0)
        hob__text_append(text, buffer, size);
    failed = ferror(file) != 0;
    (void)fclose(file);
    if (failed)
        return hob_error_set(error, HOB_ERR_IO, "%s: cannot be read", path);
    if (text->failed)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    return HOB_OK;
}

static hob_status read_header(struct abi_list *list, const char *path,
                              bool names_only, hob_error *error)
{
    struct hob__text text = HOB__TEXT_INIT;
    struct abi_file file = {path, NULL, NULL, 0};
    hob_status st = read_text(path, &text, error);

    file.text = text.data ? text.data : "";
    if (!st)
        st = abi_lex(&list->arena, &file, error);
    if (!st)
        st = abi_read(list, &file, names_only, error);
    hob__text_release(&text);
    return st;
}

static hob_status write_text(const char *path, const struct hob__text *text,
                             hob_error *error)
{
    FILE *file = text->failed ? NULL : fopen(path, "w");
    bool failed = !file;

    if (file) {
        failed = fwrite(text->data, 1, text->length, file) != text->length;
        failed |= fclose(file) != 0;
    }
    if (failed)
        return hob_error_set(error, HOB_ERR_IO, "%s: cannot be written", path);
    return HOB_OK;
}

static int usage_error(const char *what, const char *name)
{
    (void)fprintf(stderr, "hob-abi: %s%s\n%s", what, name, usage);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct abi_list list;
    struct hob__text text = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    const char *output = NULL;
    hob_status st = HOB_OK;
    int headers = 0;

    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) < 0 ? EXIT_BAD_INPUT : EXIT_SUCCESS;
    memset(&list, 0, sizeof(list));
    for (int i = 1; i < argc && !st; i++) {
        const bool names_only = !strcmp(argv[i], "--names");

        if (names_only || !strcmp(argv[i], "--output")) {
            if (++i == argc)
                return usage_error("no file after ", argv[i - 1]);
            if (!names_only) {
                output = argv[i];
                continue;
            }
        } else if (argv[i][0] == '-') {
            return usage_error("unknown option ", argv[i]);
        }
        headers++;
        st = read_header(&list, argv[i], names_only, &error);
    }
    if (!headers)
        return usage_error("which headers?", "");
    if (!st && output) {
        abi_write(&text, &list);
        st = write_text(output, &text, &error);
    }
    if (st)
        (void)fprintf(stderr, "%s\n",
                      error.message ? error.message : "out of memory");
    hob__text_release(&text);
    hob_error_release(&error);
    hob__arena_release(&list.arena);
    return st ? EXIT_BAD_INPUT : EXIT_SUCCESS;
}
