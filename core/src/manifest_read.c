/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest_read.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

hob_status hob__reader_no_memory(struct hob__reader *reader)
{
    reader->reason = HOB__REASON_OK;
    return hob_error_set(reader->error, HOB_ERR_MEMORY, "out of memory");
}

hob_status hob__reader_fail(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            enum hob__reason reason, const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *message;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    message = hob__text_take(&text);
    if (!message)
        return hob__reader_no_memory(reader);
    reader->reason = reason;
    (void)hob__json_fail(reader->doc, value, reader->error, HOB_ERR_FORMAT,
                         "%s", message);
    free(message);
    return HOB_ERR_FORMAT;
}

/* The typed getters of json.h do not know reasons. */
static hob_status as_field(struct hob__reader *reader, hob_status st)
{
    if (st == HOB_ERR_FORMAT)
        reader->reason = HOB__REASON_MANIFEST_FIELD;
    return st;
}

hob_status hob__reader_expect(struct hob__reader *reader,
                              const struct hob__json_value *value,
                              enum hob__json_type type)
{
    if (!value)
        return HOB_OK;
    return as_field(reader,
                    hob__json_expect(reader->doc, value, type, reader->error));
}

hob_status hob__reader_need(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            const char *key,
                            const struct hob__json_value **out_value)
{
    *out_value = hob__json_member(reader->doc, object, key);
    if (*out_value)
        return HOB_OK;
    return hob__reader_fail(reader, object, HOB__REASON_MANIFEST_FIELD,
                            "\"%s\" is missing", key);
}

hob_status hob__reader_copy(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            const char **out_string)
{
    const char *string = NULL;
    hob_status st = as_field(
        reader, hob__json_string(reader->doc, value, &string, reader->error));

    if (st)
        return st;
    if (!*string)
        return hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                                "the string is empty");
    *out_string = hob__arena_strdup(reader->arena, string);
    return *out_string ? HOB_OK : hob__reader_no_memory(reader);
}

hob_status hob__reader_string(struct hob__reader *reader,
                              const struct hob__json_value *object,
                              const char *key, bool is_needed,
                              const char **out_string)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, key);

    if (!value && is_needed)
        return hob__reader_need(reader, object, key, &value);
    return value ? hob__reader_copy(reader, value, out_string) : HOB_OK;
}

hob_status hob__reader_strings(struct hob__reader *reader,
                               const struct hob__json_value *object,
                               const char *key,
                               struct hob__strings *out_strings)
{
    const struct hob__json_value *list =
        hob__json_member(reader->doc, object, key);
    const struct hob__json_value *item;
    hob_status st = hob__reader_expect(reader, list, HOB__JSON_ARRAY);

    if (st || !list)
        return st;
    out_strings->items =
        hob__arena_array(reader->arena, list->count, sizeof(char *));
    if (!out_strings->items)
        return hob__reader_no_memory(reader);
    for (item = hob__json_first(reader->doc, list); item && !st;
         item = hob__json_next(reader->doc, item))
        st = hob__reader_copy(reader, item,
                              &out_strings->items[out_strings->count++]);
    return st;
}

hob_status hob__reader_bool(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            const char *key, bool *out_bool)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, key);

    if (!value)
        return HOB_OK;
    return as_field(
        reader, hob__json_bool(reader->doc, value, out_bool, reader->error));
}

hob_status hob__reader_int(struct hob__reader *reader,
                           const struct hob__json_value *object,
                           const char *key, int64_t low, int64_t high,
                           int32_t *out_int)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, key);
    int64_t number = 0;
    hob_status st;

    if (!value)
        return HOB_OK;
    st = as_field(reader, hob__json_int(reader->doc, value, low, high, &number,
                                        reader->error));
    if (!st)
        *out_int = (int32_t)number;
    return st;
}

static bool is_known(const char *key, const char *const *known)
{
    if (!strncmp(key, "x-", 2))
        return true;
    while (*known && strcmp(*known, key) != 0)
        known++;
    return *known != NULL;
}

static hob_status add_note(struct hob__reader *reader, const char *note)
{
    struct hob__strings *notes = &reader->manifest->notes;
    const char **items;

    if (!note)
        return hob__reader_no_memory(reader);
    /* Room doubles at powers of two; the arena keeps the old pieces. */
    if (!(notes->count & (notes->count - 1))) {
        items = hob__arena_array(reader->arena,
                                 notes->count ? 2 * (size_t)notes->count : 1,
                                 sizeof(char *));
        if (!items)
            return hob__reader_no_memory(reader);
        if (notes->count)
            memcpy(items, notes->items, notes->count * sizeof(char *));
        notes->items = items;
    }
    notes->items[notes->count++] = note;
    return HOB_OK;
}

hob_status hob__reader_note_unknown(struct hob__reader *reader,
                                    const struct hob__json_value *object,
                                    const char *const *known)
{
    const struct hob__json_value *member;
    hob_status st = HOB_OK;

    for (member = hob__json_first(reader->doc, object); member && !st;
         member = hob__json_next(reader->doc, member)) {
        const char *key = hob__json_key(reader->doc, member);
        uint32_t line, column;

        if (is_known(key, known))
            continue;
        hob__json_place(reader->doc, member, &line, &column);
        st = add_note(reader,
                      hob__arena_printf(reader->arena,
                                        "%u:%u: unknown key "
                                        "\"%s\"",
                                        (unsigned)line, (unsigned)column, key));
    }
    return st;
}

/* Why PATH cannot be used, or NULL if it can (MAN-4). */
static const char *path_fault(const char *path)
{
    const char *last = strrchr(path, '/');

    if (!strncmp(path, "system:", 7)) {
        if (!path[7] || strpbrk(path + 7, "/\\"))
            return "system: takes the bare name of a library";
        return NULL;
    }
    last = last ? last + 1 : path;
    if (!*last)
        return "the path ends with a slash: a library is a file";
    if (!strcmp(last, ".") || !strcmp(last, ".."))
        return "the path names a folder: a library is a file";
    if (path[0] == '\\' && path[1] != '\\')
        return "the path is rooted but names no drive: write C:/...";
    return NULL;
}

hob_status hob__reader_path(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            const char **out_path)
{
    const char *path = NULL, *fault;
    hob_status st = as_field(
        reader, hob__json_string(reader->doc, value, &path, reader->error));

    if (st)
        return st;
    fault = *path ? path_fault(path) : "the path is empty";
    if (fault)
        return hob__reader_fail(reader, value, HOB__REASON_BAD_PATH, "%s",
                                fault);
    return hob__reader_copy(reader, value, out_path);
}

hob_status hob__reader_sha256(struct hob__reader *reader,
                              const struct hob__json_value *object,
                              const char **out_sha256)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, "sha256");
    hob_status st =
        value ? hob__reader_copy(reader, value, out_sha256) : HOB_OK;

    if (st || !value)
        return st;
    if (strlen(*out_sha256) != 64 ||
        strspn(*out_sha256, "0123456789abcdef") != 64)
        st = hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                              "64 lower-case hexadecimal digits expected");
    return st;
}

bool hob__is_word(const char *text)
{
    if (*text < 'a' || *text > 'z')
        return false;
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

bool hob__is_id(const char *text, unsigned least)
{
    size_t length = strlen(text);

    if (length < least || length > 64 || strchr("._-", *text))
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}
