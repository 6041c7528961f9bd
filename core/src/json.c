/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "json.h"

#include "error.h"
#include "text.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hob__json_doc {
    char *path; /* owned; NULL only if memory ran out */
    char *text; /* owned, with a NUL behind it */
    struct hob__json_scan scan;
    cJSON *root;   /* owned */
    cJSON **items; /* owned: the item of each value */
};

static uint32_t index_of(const struct hob__json_doc *doc,
                         const struct hob__json_value *value)
{
    return (uint32_t)(value - doc->scan.values);
}

static const struct hob__json_value *at(const struct hob__json_doc *doc,
                                        uint32_t index)
{
    return index == HOB__JSON_NONE ? NULL : &doc->scan.values[index];
}

static const cJSON *item_of(const struct hob__json_doc *doc,
                            const struct hob__json_value *value)
{
    return doc->items[index_of(doc, value)];
}

/* The key as a reader would write it; undecoded if there is no tree yet. */
static void append_key(const struct hob__json_doc *doc,
                       const struct hob__json_value *value,
                       struct hob__text *text)
{
    const char *key = doc->text + value->key_offset + 1;
    size_t length = value->key_length - 2, i;

    if (doc->items && item_of(doc, value)) {
        key = item_of(doc, value)->string;
        length = strlen(key);
    }
    for (i = 0; i < length; i++) {
        if (key[i] == '~' || key[i] == '/')
            hob__text_puts(text, key[i] == '~' ? "~0" : "~1");
        else
            hob__text_append(text, key + i, 1);
    }
}

static uint32_t position_in(const struct hob__json_doc *doc,
                            const struct hob__json_value *parent,
                            uint32_t child)
{
    uint32_t position = 0, i = parent->first;

    for (; i != child; i = doc->scan.values[i].next)
        position++;
    return position;
}

/* Append the pointer of value INDEX: find each level from the root down. */
static void append_pointer(const struct hob__json_doc *doc, uint32_t index,
                           struct hob__text *text)
{
    const struct hob__json_value *values = doc->scan.values;
    uint32_t depth = 0, level, i;

    for (i = index; values[i].parent != HOB__JSON_NONE; i = values[i].parent)
        depth++;
    for (; depth > 0; depth--) {
        uint32_t up = index;

        for (level = 1; level < depth; level++)
            up = values[up].parent;
        hob__text_puts(text, "/");
        if (values[up].key_length)
            append_key(doc, &values[up], text);
        else
            hob__text_printf(text, "%" PRIu32,
                             position_in(doc, &values[values[up].parent], up));
    }
}

static hob_status fail_at(const struct hob__json_doc *doc, size_t offset,
                          uint32_t index, hob_error *error, hob_status status,
                          const char *message)
{
    struct hob__text pointer = HOB__TEXT_INIT;
    uint32_t line, column;

    if (index != HOB__JSON_NONE)
        append_pointer(doc, index, &pointer);
    hob__json_position((const unsigned char *)doc->text, offset, &line,
                       &column);
    (void)hob_error_set(error, status, "%s:%" PRIu32 ":%" PRIu32 ": %s%s%s",
                        doc->path, line, column,
                        pointer.length ? pointer.data : "",
                        pointer.length ? ": " : "", message);
    hob__text_release(&pointer);
    return status;
}

/* Give each value its item. The order of both is that of the text. */
static bool pair_items(struct hob__json_doc *doc)
{
    cJSON *item = doc->root;
    uint32_t i;

    for (i = 0; i < doc->scan.count; i++) {
        const struct hob__json_value *value = &doc->scan.values[i];

        if (!item)
            return false;
        doc->items[i] = item;
        if (value->first != HOB__JSON_NONE) {
            item = item->child;
            continue;
        }
        /* Go up to the first ancestor that has a sibling behind it. */
        while (value->next == HOB__JSON_NONE && value->parent != HOB__JSON_NONE)
            value = &doc->scan.values[value->parent];
        item = doc->items[index_of(doc, value)]->next;
    }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* Refuse a key that stands twice in object INDEX; sorted, so n log n. */
static hob_status check_keys(const struct hob__json_doc *doc, uint32_t index,
                             cJSON **scratch, hob_error *error)
{
    const struct hob__json_value *object = &doc->scan.values[index];
    uint32_t i = object->first, n = 0, twice = HOB__JSON_NONE;
    const char *key = NULL;

    for (; i != HOB__JSON_NONE; i = doc->scan.values[i].next)
        scratch[n++] = doc->items[i];
    qsort(scratch, n, sizeof(cJSON *), compare_keys);
    for (i = 1; i < n && !key; i++) {
        if (!strcmp(scratch[i - 1]->string, scratch[i]->string))
            key = scratch[i]->string;
    }
    if (!key)
        return HOB_OK;
    for (i = object->first; i != HOB__JSON_NONE; i = doc->scan.values[i].next) {
        if (!strcmp(doc->items[i]->string, key))
            twice = i;
    }
    return fail_at(doc, doc->scan.values[twice].key_offset, twice, error,
                   HOB_ERR_FORMAT, "this key stands twice in its object");
}

/* What only the decoded tree shows: equal keys, numbers that overflow. */
static hob_status check_tree(const struct hob__json_doc *doc,
                             enum hob__reason *out_reason, hob_error *error)
{
    cJSON **scratch = malloc((size_t)doc->scan.count * sizeof(*scratch));
    hob_status st = scratch ? HOB_OK : HOB_ERR_MEMORY;
    uint32_t i;

    for (i = 0; i < doc->scan.count && !st; i++) {
        const struct hob__json_value *value = &doc->scan.values[i];

        if (value->type == HOB__JSON_OBJECT && value->count > 1) {
            *out_reason = HOB__REASON_JSON_DUPLICATE_KEY;
            st = check_keys(doc, i, scratch, error);
        } else if (value->type == HOB__JSON_NUMBER &&
                   isinf(doc->items[i]->valuedouble)) {
            *out_reason = HOB__REASON_JSON_SYNTAX;
            st = fail_at(doc, value->offset, i, error, HOB_ERR_FORMAT,
                         "number out of range");
        }
    }
    free(scratch);
    return st;
}

static hob_status build_tree(struct hob__json_doc *doc)
{
    const char *end = NULL;

    doc->items = calloc(doc->scan.count, sizeof(cJSON *));
    if (!doc->items)
        return HOB_ERR_MEMORY;
    doc->root = cJSON_ParseWithLengthOpts(
        doc->text + doc->scan.start, doc->scan.size - doc->scan.start, &end, 0);
    /* The scan has accepted the text, so only memory can be the cause. */
    return doc->root && pair_items(doc) ? HOB_OK : HOB_ERR_MEMORY;
}

static hob_status copy_text(struct hob__json_doc *doc, const char *path,
                            const void *text, size_t size)
{
    doc->path = strdup(path);
    doc->text = malloc(size + 1);
    if (!doc->path || !doc->text)
        return HOB_ERR_MEMORY;
    memcpy(doc->text, text, size);
    doc->text[size] = '\0';
    return HOB_OK;
}

static hob_status parse(struct hob__json_doc *doc, size_t size,
                        uint32_t max_depth, enum hob__reason *out_reason,
                        hob_error *error)
{
    hob_status st = hob__json_scan(doc->text, size, max_depth, &doc->scan);

    if (st == HOB_ERR_FORMAT) {
        *out_reason = doc->scan.reason;
        return fail_at(doc, doc->scan.error_offset, doc->scan.error_parent,
                       error, st, doc->scan.message);
    }
    if (!st)
        st = build_tree(doc);
    if (!st)
        st = check_tree(doc, out_reason, error);
    return st;
}

hob_status hob__json_parse(const char *path, const void *text, size_t size,
                           const struct hob__json_limits *limits,
                           struct hob__json_doc **out_doc,
                           enum hob__reason *out_reason, hob_error *error)
{
    enum hob__reason reason = HOB__REASON_OK;
    struct hob__json_doc *doc;
    hob_status st;

    *out_doc = NULL;
    if (out_reason)
        *out_reason = HOB__REASON_OK;
    if (size > limits->max_size) {
        if (out_reason)
            *out_reason = HOB__REASON_TOO_BIG;
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: %zu bytes, at most %zu are allowed", path,
                             size, limits->max_size);
    }
    doc = calloc(1, sizeof(*doc));
    st = doc ? copy_text(doc, path, text, size) : HOB_ERR_MEMORY;
    if (!st)
        st = parse(doc, size, limits->max_depth, &reason, error);
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "%s: out of memory", path);
    if (st) {
        hob__json_free(doc);
        if (out_reason && st != HOB_ERR_MEMORY)
            *out_reason = reason;
        return st;
    }
    *out_doc = doc;
    return HOB_OK;
}

void hob__json_free(struct hob__json_doc *doc)
{
    if (!doc)
        return;
    cJSON_Delete(doc->root);
    free(doc->items);
    hob__json_scan_release(&doc->scan);
    free(doc->text);
    free(doc->path);
    free(doc);
}

const struct hob__json_value *hob__json_root(const struct hob__json_doc *doc)
{
    return doc->scan.values;
}

const struct hob__json_value *
hob__json_first(const struct hob__json_doc *doc,
                const struct hob__json_value *value)
{
    return at(doc, value->first);
}

const struct hob__json_value *
hob__json_next(const struct hob__json_doc *doc,
               const struct hob__json_value *value)
{
    return at(doc, value->next);
}

const char *hob__json_key(const struct hob__json_doc *doc,
                          const struct hob__json_value *value)
{
    return value->key_length ? item_of(doc, value)->string : NULL;
}

const struct hob__json_value *
hob__json_member(const struct hob__json_doc *doc,
                 const struct hob__json_value *object, const char *key)
{
    const struct hob__json_value *member = NULL;

    if (object && object->type == HOB__JSON_OBJECT)
        member = hob__json_first(doc, object);
    while (member && strcmp(hob__json_key(doc, member), key) != 0)
        member = hob__json_next(doc, member);
    return member;
}

const char *hob__json_type_name(enum hob__json_type type)
{
    static const char *const names[] = {"null",   "true or false", "number",
                                        "string", "array",         "object"};

    return names[type];
}

const char *hob__json_text(const struct hob__json_doc *doc,
                           const struct hob__json_value *value,
                           size_t *out_length)
{
    *out_length = value->length;
    return doc->text + value->offset;
}

void hob__json_place(const struct hob__json_doc *doc,
                     const struct hob__json_value *value, uint32_t *out_line,
                     uint32_t *out_column)
{
    hob__json_position((const unsigned char *)doc->text, value->offset,
                       out_line, out_column);
}

char *hob__json_pointer(const struct hob__json_doc *doc,
                        const struct hob__json_value *value)
{
    struct hob__text text = HOB__TEXT_INIT;

    append_pointer(doc, index_of(doc, value), &text);
    return hob__text_take(&text);
}

hob_status hob__json_fail(const struct hob__json_doc *doc,
                          const struct hob__json_value *value, hob_error *error,
                          hob_status status, const char *format, ...)
{
    struct hob__text message = HOB__TEXT_INIT;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&message, format, args);
    va_end(args);
    (void)fail_at(doc, value->offset, index_of(doc, value), error, status,
                  message.data ? message.data : "out of memory");
    hob__text_release(&message);
    return status;
}

hob_status hob__json_expect(const struct hob__json_doc *doc,
                            const struct hob__json_value *value,
                            enum hob__json_type type, hob_error *error)
{
    if (value->type == type)
        return HOB_OK;
    return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                          "%s expected, found %s", hob__json_type_name(type),
                          hob__json_type_name(value->type));
}

hob_status hob__json_string(const struct hob__json_doc *doc,
                            const struct hob__json_value *value,
                            const char **out_string, hob_error *error)
{
    hob_status st = hob__json_expect(doc, value, HOB__JSON_STRING, error);

    if (!st)
        *out_string = item_of(doc, value)->valuestring;
    return st;
}

/* Read the magnitude from the text: a double holds only 53 bits. */
static bool read_magnitude(const struct hob__json_doc *doc,
                           const struct hob__json_value *value,
                           bool *out_negative, uint64_t *out_magnitude)
{
    const char *p = doc->text + value->offset, *end = p + value->length;
    uint64_t magnitude = 0;

    *out_negative = *p == '-';
    for (p += *out_negative; p < end; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (magnitude > (UINT64_MAX - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    *out_magnitude = magnitude;
    return true;
}

static hob_status expect_integer(const struct hob__json_doc *doc,
                                 const struct hob__json_value *value,
                                 hob_error *error)
{
    hob_status st = hob__json_expect(doc, value, HOB__JSON_NUMBER, error);

    if (!st && !value->is_integer)
        st = hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                            "integer expected, found %.*s", (int)value->length,
                            doc->text + value->offset);
    return st;
}

hob_status hob__json_int(const struct hob__json_doc *doc,
                         const struct hob__json_value *value, int64_t low,
                         int64_t high, int64_t *out_int, hob_error *error)
{
    hob_status st = expect_integer(doc, value, error);
    uint64_t magnitude = 0;
    bool negative = false, fits;
    int64_t number = 0;

    if (st)
        return st;
    fits = read_magnitude(doc, value, &negative, &magnitude) &&
           magnitude <= (uint64_t)INT64_MAX + negative;
    if (fits)
        number = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (!fits || number < low || number > high)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "%.*s is not in %" PRId64 "..%" PRId64,
                              (int)value->length, doc->text + value->offset,
                              low, high);
    *out_int = number;
    return HOB_OK;
}

hob_status hob__json_uint(const struct hob__json_doc *doc,
                          const struct hob__json_value *value, uint64_t high,
                          uint64_t *out_uint, hob_error *error)
{
    hob_status st = expect_integer(doc, value, error);
    uint64_t magnitude = 0;
    bool negative = false;

    if (st)
        return st;
    if (!read_magnitude(doc, value, &negative, &magnitude) ||
        (negative && magnitude) || magnitude > high)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "%.*s is not in 0..%" PRIu64, (int)value->length,
                              doc->text + value->offset, high);
    *out_uint = magnitude;
    return HOB_OK;
}

hob_status hob__json_double(const struct hob__json_doc *doc,
                            const struct hob__json_value *value,
                            double *out_double, hob_error *error)
{
    hob_status st = hob__json_expect(doc, value, HOB__JSON_NUMBER, error);

    if (!st)
        *out_double = item_of(doc, value)->valuedouble;
    return st;
}

hob_status hob__json_bool(const struct hob__json_doc *doc,
                          const struct hob__json_value *value, bool *out_bool,
                          hob_error *error)
{
    hob_status st = hob__json_expect(doc, value, HOB__JSON_BOOL, error);

    if (!st)
        *out_bool = cJSON_IsTrue(item_of(doc, value));
    return st;
}
