/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - reading JSON files and writing results.
 */
#include "gen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A schema file or manifest is at most this long. */
#define SOURCE_MAX_BYTES ((size_t)1 << 20)

hob_status gen_no_memory(hob_error *error)
{
    return hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
}

/* The whole file, NUL-terminated; the caller frees it. */
static hob_status read_file(const char *path, char **out_text, size_t *out_size,
                            hob_error *error)
{
    FILE *file = NULL;
    char *text = NULL;
    hob_status st = HOB_OK;
    struct stat info;
    size_t size;

    file = fopen(path, "rbe");
    if (!file || fstat(fileno(file), &info)) {
        st = hob_error_set(error, HOB_ERR_IO, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(info.st_mode)) {
        st = hob_error_set(error, HOB_ERR_IO, "%s: not a regular file", path);
        goto out;
    }
    text = malloc(SOURCE_MAX_BYTES + 2);
    if (!text) {
        st = gen_no_memory(error);
        goto out;
    }
    size = fread(text, 1, SOURCE_MAX_BYTES + 1, file);
    if (ferror(file)) {
        st = hob_error_set(error, HOB_ERR_IO, "%s: %s", path, strerror(errno));
        goto out;
    }
    text[size] = '\0';
    *out_text = text;
    *out_size = size;
    text = NULL;
out:
    if (file)
        (void)fclose(file);
    free(text);
    return st;
}

static hob_status add_source(struct gen_schema *schema,
                             struct gen_source *source)
{
    struct gen_source **grown =
        realloc(schema->sources, (schema->source_count + 1) * sizeof(*grown));

    if (!grown)
        return HOB_ERR_MEMORY;
    schema->sources = grown;
    schema->sources[schema->source_count++] = source;
    return HOB_OK;
}

hob_status gen_source_open(struct gen_schema *schema, const char *path,
                           struct gen_source **out_source, hob_error *error)
{
    struct hob__json_limits limits = {SOURCE_MAX_BYTES, 16};
    struct gen_source *source;
    size_t size = 0;
    char *text = NULL;
    hob_status st = read_file(path, &text, &size, error);

    if (st)
        return st;
    source = calloc(1, sizeof(*source));
    if (!source || add_source(schema, source)) {
        free(source);
        free(text);
        return gen_no_memory(error);
    }
    source->path = strdup(path);
    st = source->path ? hob__json_parse(path, text, size, &limits, &source->doc,
                                        NULL, error)
                      : gen_no_memory(error);
    free(text);
    *out_source = source;
    return st;
}

hob_status gen_fail(const struct gen_source *source,
                    const struct hob__json_value *value, hob_error *error,
                    const char *format, ...)
{
    struct hob__text message = HOB__TEXT_INIT;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&message, format, args);
    va_end(args);
    (void)hob__json_fail(source->doc, value, error, HOB_ERR_FORMAT, "%s",
                         message.data ? message.data : "out of memory");
    hob__text_release(&message);
    return HOB_ERR_FORMAT;
}

hob_status gen_fail_inside(const struct gen_source *source,
                           const struct hob__json_value *value, int column,
                           hob_error *error, const char *message)
{
    const char *string = NULL;
    char *pointer;
    uint32_t line, start;
    size_t length;

    (void)hob__json_text(source->doc, value, &length);
    if (hob__json_string(source->doc, value, &string, NULL) ||
        length != strlen(string) + 2) /* escapes move the columns */
        return gen_fail(source, value, error, "character %d of the string: %s",
                        column, message);
    hob__json_place(source->doc, value, &line, &start);
    pointer = hob__json_pointer(source->doc, value);
    (void)hob_error_set(error, HOB_ERR_FORMAT,
                        "%s:%" PRIu32 ":%" PRIu32 ": %s: %s", source->path,
                        line, start + (uint32_t)column, pointer ? pointer : "",
                        message);
    free(pointer);
    return HOB_ERR_FORMAT;
}

hob_status gen_check_keys(const struct gen_source *source,
                          const struct hob__json_value *object,
                          const char *const *known, size_t known_count,
                          hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st =
        hob__json_expect(source->doc, object, HOB__JSON_OBJECT, error);

    if (st)
        return st;
    for (member = hob__json_first(source->doc, object); member;
         member = hob__json_next(source->doc, member)) {
        const char *key = hob__json_key(source->doc, member), *near;
        size_t i = 0;

        while (i < known_count && strcmp(known[i], key) != 0)
            i++;
        if (i < known_count || !strncmp(key, "x-", 2) ||
            !strcmp(key, "$schema"))
            continue;
        near = hob__nearest_name(key, known, known_count);
        return gen_fail(source, member, error, "unknown key \"%s\"%s%s%s", key,
                        near ? "; \"" : "", near ? near : "",
                        near ? "\" is meant?" : "");
    }
    return HOB_OK;
}

hob_status gen_get_member(const struct gen_source *source,
                          const struct hob__json_value *object, const char *key,
                          enum hob__json_type type, bool required,
                          const struct hob__json_value **out_value,
                          hob_error *error)
{
    const struct hob__json_value *value =
        hob__json_member(source->doc, object, key);
    hob_status st;

    if (!value)
        return required ? gen_fail(source, object, error,
                                   "field \"%s\" is missing", key)
                        : HOB_OK;
    st = hob__json_expect(source->doc, value, type, error);
    if (!st)
        *out_value = value;
    return st;
}

hob_status gen_get_string(const struct gen_source *source,
                          const struct hob__json_value *object, const char *key,
                          bool required, const char **out_string,
                          hob_error *error)
{
    const struct hob__json_value *value = NULL;
    hob_status st = gen_get_member(source, object, key, HOB__JSON_STRING,
                                   required, &value, error);

    if (!st && value)
        st = hob__json_string(source->doc, value, out_string, error);
    if (!st && value && !**out_string)
        st = gen_fail(source, value, error, "\"%s\" is empty", key);
    return st;
}

hob_status gen_get_bool(const struct gen_source *source,
                        const struct hob__json_value *object, const char *key,
                        bool *out_bool, hob_error *error)
{
    const struct hob__json_value *value = NULL;
    hob_status st = gen_get_member(source, object, key, HOB__JSON_BOOL, false,
                                   &value, error);

    if (!st && value)
        st = hob__json_bool(source->doc, value, out_bool, error);
    return st;
}

/* Whether the file PATH holds just these bytes: make need not see a change. */
static bool is_same(const char *path, const char *data, size_t length)
{
    FILE *file = fopen(path, "rbe");
    bool same = file != NULL;
    size_t at = 0, n;
    char block[4096];

    while (same && (n = fread(block, 1, sizeof(block), file)) > 0) {
        same = n <= length - at && !memcmp(block, data + at, n);
        at += n;
    }
    if (file)
        (void)fclose(file);
    return same && at == length;
}

hob_status gen_write(const char *path, struct hob__text *text, hob_error *error)
{
    hob_status st = HOB_OK;
    FILE *file = NULL;
    char *data = NULL, *aside = NULL;
    size_t length = text->length;

    data = hob__text_take(text);
    aside = malloc(strlen(path) + sizeof(".tmp"));
    if (!data || !aside) {
        st = gen_no_memory(error);
        goto out;
    }
    if (is_same(path, data, length))
        goto out;
    strcat(strcpy(aside, path), ".tmp");
    file = fopen(aside, "wbe");
    if (!file) {
        st = hob_error_set(error, HOB_ERR_IO, "%s: %s", aside, strerror(errno));
        goto out;
    }
    st = fwrite(data, 1, length, file) == length ? HOB_OK : HOB_ERR_IO;
    if (fclose(file))
        st = HOB_ERR_IO;
    if (!st && rename(aside, path))
        st = HOB_ERR_IO;
    if (st) {
        (void)hob_error_set(error, st, "%s: %s", path, strerror(errno));
        (void)unlink(aside);
    }
out:
    free(aside);
    free(data);
    return st;
}
