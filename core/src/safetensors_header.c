/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "safetensors.h"

#include "json.h"
#include "size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, DEPTH_MAX = 3 };

struct hob__safetensors_header {
    struct hob__json_doc *doc;
    const struct hob__json_value *metadata;        /* NULL if there is none */
    struct hob__safetensors_entry *entries;        /* in order of the text */
    const struct hob__safetensors_entry **by_name; /* sorted */
    uint32_t count;
};

/* Types of the format; those without a dtype can be skipped, not read. */
static const struct type {
    const char *name;
    uint8_t dtype;
    uint8_t bits;
} types[] = {
    {"F64", HOB_DTYPE_F64, 64},     {"F32", HOB_DTYPE_F32, 32},
    {"F16", HOB_DTYPE_F16, 16},     {"BF16", HOB_DTYPE_BF16, 16},
    {"I64", HOB_DTYPE_I64, 64},     {"I32", HOB_DTYPE_I32, 32},
    {"I16", HOB_DTYPE_I16, 16},     {"I8", HOB_DTYPE_I8, 8},
    {"U64", HOB_DTYPE_U64, 64},     {"U32", HOB_DTYPE_U32, 32},
    {"U16", HOB_DTYPE_U16, 16},     {"U8", HOB_DTYPE_U8, 8},
    {"BOOL", HOB_DTYPE_BOOL, 8},    {"C64", HOB_DTYPE_NONE, 64},
    {"F8_E4M3", HOB_DTYPE_NONE, 8}, {"F8_E5M2", HOB_DTYPE_NONE, 8},
    {"F8_E8M0", HOB_DTYPE_NONE, 8}, {"F6_E2M3", HOB_DTYPE_NONE, 6},
    {"F6_E3M2", HOB_DTYPE_NONE, 6}, {"F4", HOB_DTYPE_NONE, 4},
};

static const struct type *type_find(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

/* What one tensor's object says, while it is checked. */
struct reader {
    const struct hob__json_doc *doc;
    uint64_t data_offset; /* in the file */
    uint64_t data_bytes;
    hob_error *error;
};

static hob_status missing(const struct reader *reader,
                          const struct hob__json_value *object, const char *key)
{
    return hob__json_fail(reader->doc, object, reader->error, HOB_ERR_FORMAT,
                          "this tensor has no \"%s\"", key);
}

static hob_status read_type(const struct reader *reader,
                            const struct hob__json_value *object,
                            const struct type **out_type)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, "dtype");
    const char *name = NULL;
    hob_status st;

    if (!value)
        return missing(reader, object, "dtype");
    st = hob__json_string(reader->doc, value, &name, reader->error);
    if (st)
        return st;
    *out_type = type_find(name);
    if (!*out_type)
        return hob__json_fail(reader->doc, value, reader->error, HOB_ERR_FORMAT,
                              "\"%.40s\" is no dtype of safetensors", name);
    return HOB_OK;
}

/* Read the shape; *OUT_BITS is what the elements need. */
static hob_status read_shape(const struct reader *reader,
                             const struct hob__json_value *object,
                             struct hob__safetensors_entry *entry,
                             uint64_t *out_bits)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, "shape");
    const struct hob__json_value *item;
    bool empty = false;
    hob_status st;

    if (!value)
        return missing(reader, object, "shape");
    st = hob__json_expect(reader->doc, value, HOB__JSON_ARRAY, reader->error);
    for (item = st ? NULL : hob__json_first(reader->doc, value); item && !st;
         item = hob__json_next(reader->doc, item)) {
        uint64_t size = 0;

        st = hob__json_uint(reader->doc, item, INT64_MAX, &size, reader->error);
        if (st)
            return st;
        empty |= size == 0;
        if (entry->rank < HOB_MAX_RANK)
            entry->meta.shape[entry->rank] = (int64_t)size;
        entry->rank++;
        /* Other sizes of an empty tensor must fit too: strides use them. */
        if (hob__size_mul(*out_bits, size ? size : 1, out_bits) ||
            *out_bits > INT64_MAX)
            return hob__json_fail(reader->doc, value, reader->error,
                                  HOB_ERR_FORMAT,
                                  "this shape has too many elements");
    }
    if (empty)
        *out_bits = 0;
    return st;
}

static hob_status read_offsets(const struct reader *reader,
                               const struct hob__json_value *object,
                               struct hob__safetensors_entry *entry)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, "data_offsets");
    const struct hob__json_value *item;
    uint64_t ends[2] = {0, 0};
    hob_status st;

    if (!value)
        return missing(reader, object, "data_offsets");
    st = hob__json_expect(reader->doc, value, HOB__JSON_ARRAY, reader->error);
    if (st)
        return st;
    if (value->count != 2)
        return hob__json_fail(reader->doc, value, reader->error, HOB_ERR_FORMAT,
                              "two offsets are expected, begin and end");
    item = hob__json_first(reader->doc, value);
    for (int i = 0; i < 2; i++) {
        st = hob__json_uint(reader->doc, item, INT64_MAX, &ends[i],
                            reader->error);
        if (st)
            return st;
        item = hob__json_next(reader->doc, item);
    }
    if (ends[0] > ends[1] || ends[1] > reader->data_bytes)
        return hob__json_fail(reader->doc, value, reader->error, HOB_ERR_FORMAT,
                              "bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64
                              "; is the file truncated?",
                              ends[0], ends[1], reader->data_bytes);
    entry->offset = reader->data_offset + ends[0];
    entry->bytes = ends[1] - ends[0];
    return HOB_OK;
}

static hob_status read_entry(const struct reader *reader,
                             const struct hob__json_value *object,
                             struct hob__safetensors_entry *entry)
{
    const struct type *type = NULL;
    uint64_t bits;
    hob_status st =
        hob__json_expect(reader->doc, object, HOB__JSON_OBJECT, reader->error);

    if (!st)
        st = read_type(reader, object, &type);
    if (st)
        return st;
    entry->name = hob__json_key(reader->doc, object);
    entry->type_name = type->name;
    entry->meta.dtype = type->dtype;
    bits = type->bits;
    st = read_shape(reader, object, entry, &bits);
    if (!st)
        st = read_offsets(reader, object, entry);
    if (st)
        return st;
    if (entry->rank <= HOB_MAX_RANK)
        entry->meta.rank = (uint8_t)entry->rank;
    if (object->count != 3) /* the three are there, and keys do not repeat */
        return hob__json_fail(reader->doc, object, reader->error,
                              HOB_ERR_FORMAT,
                              "a tensor has dtype, shape and data_offsets "
                              "only");
    if (bits % 8 || bits / 8 != entry->bytes)
        return hob__json_fail(reader->doc, object, reader->error,
                              HOB_ERR_FORMAT,
                              "dtype and shape need %" PRIu64
                              " bytes, data_offsets span %" PRIu64,
                              bits / 8 + (bits % 8 != 0), entry->bytes);
    return HOB_OK;
}

static hob_status read_metadata(const struct reader *reader,
                                const struct hob__json_value *object)
{
    const struct hob__json_value *item;
    hob_status st =
        hob__json_expect(reader->doc, object, HOB__JSON_OBJECT, reader->error);

    for (item = st ? NULL : hob__json_first(reader->doc, object); item && !st;
         item = hob__json_next(reader->doc, item))
        st = hob__json_expect(reader->doc, item, HOB__JSON_STRING,
                              reader->error);
    return st;
}

static hob_status read_entries(const struct reader *reader,
                               struct hob__safetensors_header *header)
{
    const struct hob__json_value *root = hob__json_root(reader->doc);
    const struct hob__json_value *item;
    hob_status st =
        hob__json_expect(reader->doc, root, HOB__JSON_OBJECT, reader->error);

    if (st)
        return st;
    header->entries = calloc((size_t)root->count + 1, sizeof(*header->entries));
    header->by_name = calloc((size_t)root->count + 1, sizeof(*header->by_name));
    if (!header->entries || !header->by_name)
        return HOB_ERR_MEMORY;
    for (item = hob__json_first(reader->doc, root); item && !st;
         item = hob__json_next(reader->doc, item)) {
        if (strcmp(hob__json_key(reader->doc, item), "__metadata__") == 0) {
            header->metadata = item;
            st = read_metadata(reader, item);
            continue;
        }
        st = read_entry(reader, item, &header->entries[header->count]);
        header->by_name[header->count] = &header->entries[header->count];
        header->count++;
    }
    return st;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct hob__safetensors_entry *x =
        *(const struct hob__safetensors_entry *const *)a;
    const struct hob__safetensors_entry *y =
        *(const struct hob__safetensors_entry *const *)b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct hob__safetensors_entry *const *)a)->name,
                  (*(const struct hob__safetensors_entry *const *)b)->name);
}

/* The tensors must cover the data, each byte once. Then sort by name. */
static hob_status check_cover(const char *path, const struct reader *reader,
                              struct hob__safetensors_header *header)
{
    uint64_t covered = reader->data_offset;

    qsort(header->by_name, header->count, sizeof(*header->by_name),
          compare_offsets);
    for (uint32_t i = 0; i < header->count; i++) {
        const struct hob__safetensors_entry *entry = header->by_name[i];

        if (entry->offset != covered)
            return hob_error_set(
                reader->error, HOB_ERR_FORMAT,
                "%s: tensor \"%.200s\" %s: it begins at byte %" PRIu64
                " of the data, the one before ends at %" PRIu64,
                path, entry->name,
                entry->offset < covered ? "overlaps another" : "leaves a gap",
                entry->offset - reader->data_offset,
                covered - reader->data_offset);
        covered += entry->bytes;
    }
    if (covered - reader->data_offset != reader->data_bytes)
        return hob_error_set(
            reader->error, HOB_ERR_FORMAT,
            "%s: the tensors cover %" PRIu64 " of %" PRIu64 " bytes of data",
            path, covered - reader->data_offset, reader->data_bytes);
    qsort(header->by_name, header->count, sizeof(*header->by_name),
          compare_names);
    return HOB_OK;
}

/* Check the length in front of the text, without trusting it. */
static hob_status check_length(const char *path, const unsigned char *data,
                               uint64_t size, uint64_t *out_length,
                               hob_error *error)
{
    uint64_t length = 0;

    if (size < LENGTH_BYTES + 2)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: not a safetensors file: %" PRIu64
                             " bytes are too few",
                             path, size);
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | data[i];
    if (length > HOB__SAFETENSORS_HEADER_MAX)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: a safetensors header of %" PRIu64
                             " bytes; at most %d are allowed: is this a "
                             "safetensors file?",
                             path, length, HOB__SAFETENSORS_HEADER_MAX);
    if (length > size - LENGTH_BYTES)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: the safetensors header needs %" PRIu64
                             " bytes, the file has %" PRIu64
                             " after its length: it is truncated",
                             path, length, size - LENGTH_BYTES);
    if (!length || data[LENGTH_BYTES] != '{')
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: the safetensors header does not begin with "
                             "{",
                             path);
    *out_length = length;
    return HOB_OK;
}

hob_status hob__safetensors_parse(const char *path, const void *data,
                                  uint64_t size,
                                  struct hob__safetensors_header **out_header,
                                  hob_error *error)
{
    static const struct hob__json_limits limits = {HOB__SAFETENSORS_HEADER_MAX,
                                                   DEPTH_MAX};
    const unsigned char *bytes = data;
    struct hob__safetensors_header *header = NULL;
    struct reader reader = {NULL, 0, 0, error};
    uint64_t length = 0;
    hob_status st = check_length(path, bytes, size, &length, error);

    *out_header = NULL;
    if (st)
        return st;
    header = calloc(1, sizeof(*header));
    if (!header) {
        st = HOB_ERR_MEMORY;
        goto out;
    }
    st = hob__json_parse(path, bytes + LENGTH_BYTES, (size_t)length, &limits,
                         &header->doc, NULL, error);
    if (st)
        goto out;
    reader.doc = header->doc;
    reader.data_offset = LENGTH_BYTES + length;
    reader.data_bytes = size - reader.data_offset;
    st = read_entries(&reader, header);
    if (!st)
        st = check_cover(path, &reader, header);
    if (st)
        goto out;
    *out_header = header;
    header = NULL;

out:
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "%s: out of memory", path);
    hob__safetensors_free(header);
    return st;
}

void hob__safetensors_free(struct hob__safetensors_header *header)
{
    if (!header)
        return;
    hob__json_free(header->doc);
    free(header->by_name);
    free(header->entries);
    free(header);
}

uint32_t hob__safetensors_count(const struct hob__safetensors_header *header)
{
    return header->count;
}

const struct hob__safetensors_entry *
hob__safetensors_entry(const struct hob__safetensors_header *header,
                       uint32_t index)
{
    return &header->entries[index];
}

const struct hob__safetensors_entry *
hob__safetensors_find(const struct hob__safetensors_header *header,
                      const char *name)
{
    const struct hob__safetensors_entry wanted = {.name = name};
    const struct hob__safetensors_entry *key = &wanted;
    const struct hob__safetensors_entry **found;

    found = bsearch(&key, header->by_name, header->count,
                    sizeof(*header->by_name), compare_names);
    return found ? *found : NULL;
}

const char *hob__safetensors_value(const struct hob__safetensors_header *header,
                                   const char *key)
{
    const struct hob__json_value *value =
        hob__json_member(header->doc, header->metadata, key);
    const char *text = NULL;

    if (!value || hob__json_string(header->doc, value, &text, NULL))
        return NULL;
    return text;
}

const char *hob__safetensors_type(uint32_t dtype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].dtype == dtype && dtype != HOB_DTYPE_NONE)
            return types[i].name;
    return NULL;
}
