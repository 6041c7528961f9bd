/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "safetensors.h"

#include "device.h"
#include "error.h"
#include "file_map.h"
#include "file_write.h"
#include "host_data.h"
#include "json_scan.h"
#include "runtime.h"
#include "scope.h"
#include "storage.h"
#include "tensor.h"
#include "text.h"

#include <hob/io.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Elements in files are little-endian, as every machine is that Hob runs on.
 *
 * A tensor of at least BORROW_BYTES is used where it lies in the mapped file;
 * below that a copy is cheaper than keeping the mapping alive.
 */
enum { BORROW_BYTES = 1 << 16, LENGTH_BYTES = 8, HEADER_ALIGNMENT = 8 };

struct hob_safetensors {
    char *path;
    struct hob__file_map *map;
    struct hob__safetensors_header *header;
};

hob_status hob_safetensors_open(const char *path, hob_safetensors **out_file,
                                hob_error *error)
{
    struct hob_safetensors *file = calloc(1, sizeof(*file));
    hob_status st = HOB_OK;

    *out_file = NULL;
    if (file)
        file->path = strdup(path);
    if (!file || !file->path)
        st = hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    if (!st)
        st = hob__file_map_open(path, &file->map, error);
    if (!st)
        st = hob__safetensors_parse(path, hob__file_map_data(file->map),
                                    hob__file_map_size(file->map),
                                    &file->header, error);
    if (st) {
        hob_safetensors_close(file);
        return st;
    }
    *out_file = file;
    return HOB_OK;
}

void hob_safetensors_close(hob_safetensors *file)
{
    if (!file)
        return;
    hob__safetensors_free(file->header);
    hob__file_map_unref(file->map);
    free(file->path);
    free(file);
}

uint32_t hob_safetensors_count(const hob_safetensors *file)
{
    return hob__safetensors_count(file->header);
}

const char *hob_safetensors_name(const hob_safetensors *file, uint32_t index)
{
    if (index >= hob__safetensors_count(file->header))
        return NULL;
    return hob__safetensors_entry(file->header, index)->name;
}

const char *hob_safetensors_metadata(const hob_safetensors *file,
                                     const char *key)
{
    return hob__safetensors_value(file->header, key);
}

/* ---- reading ---- */

static void map_deleter(void *context)
{
    hob__file_map_unref(context);
}

/* Make a tensor whose elements are the file's. */
static hob_status borrow(const hob_safetensors *file, hob_scope *scope,
                         hob_device *device,
                         const struct hob__safetensors_entry *entry,
                         hob_tensor **out_tensor)
{
    /* Written to by nobody: the storage is not the pool's and says so. */
    void *data =
        (void *)(uintptr_t)(hob__file_map_data(file->map) + entry->offset);
    hob_tensor *tensor = hob__tensor_blank(device, &entry->meta);
    hob_status st;

    if (!tensor)
        return HOB_ERR_MEMORY;
    hob__file_map_ref(file->map);
    hob__tensor_wrap(tensor, data, entry->bytes, HOB__STORAGE_READ_ONLY,
                     map_deleter, file->map);
    tensor->view.flags |= HOB_VIEW_READ_ONLY;
    st = hob__scope_adopt(scope, tensor);
    if (!st)
        *out_tensor = tensor;
    return st;
}

static bool can_borrow(const hob_safetensors *file, const hob_scope *scope,
                       const hob_device *device,
                       const struct hob__safetensors_entry *entry)
{
    const unsigned char *data = hob__file_map_data(file->map) + entry->offset;

    return entry->bytes >= BORROW_BYTES && device->runtime == scope->runtime &&
           (device->at[0]->backend->flags & HOB_BACKEND_HOST_MEMORY) &&
           (uintptr_t)data % hob_dtype_size(entry->meta.dtype) == 0 &&
           !(entry->meta.dtype == HOB_DTYPE_BOOL &&
             hob__bools_are_loose(data, entry->bytes));
}

hob_status hob_safetensors_read(hob_safetensors *file, hob_scope *scope,
                                hob_device *device, const char *name,
                                hob_tensor **out_tensor, hob_error *error)
{
    const struct hob__safetensors_entry *entry =
        hob__safetensors_find(file->header, name);
    hob_error cause = HOB_ERROR_INIT;
    hob_status st;

    *out_tensor = NULL;
    if (!entry)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "%s: there is no tensor \"%s\" among its %" PRIu32,
                             file->path, name,
                             hob__safetensors_count(file->header));
    if (entry->meta.dtype == HOB_DTYPE_NONE)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "%s: tensor \"%s\": dtype %s is not supported",
                             file->path, name, entry->type_name);
    if (entry->rank > HOB_MAX_RANK)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "%s: tensor \"%s\" has %" PRIu64
                             " dimensions; at most %d are supported",
                             file->path, name, entry->rank, HOB_MAX_RANK);
    if (can_borrow(file, scope, device, entry)) {
        st = borrow(file, scope, device, entry, out_tensor);
        if (st)
            return hob_error_set(error, st, "%s: out of memory", file->path);
        return HOB_OK;
    }
    st = hob__elements_put(scope, device, &entry->meta,
                           hob__file_map_data(file->map) + entry->offset,
                           out_tensor, &cause);
    if (st)
        (void)hob_error_set(error, st, "%s: tensor \"%s\": %s", file->path,
                            name, hob__error_text(&cause));
    hob_error_release(&cause);
    return st;
}

/* ---- writing ---- */

/* One tensor to save, in the order of the file. */
struct item {
    const char *name;
    hob_tensor *tensor;
    struct hob_meta meta;
    uint64_t bytes;
    uint32_t index; /* in the caller's order */
};

struct saver {
    const char *path;
    struct item *items;
    uint32_t count;
    hob_error *error;
};

static hob_status item_fail(const struct saver *saver, const char *name,
                            hob_status status, const char *message)
{
    return hob_error_set(saver->error, status, "%s: tensor \"%.200s\": %s",
                         saver->path, name, message);
}

static bool is_utf8(const char *text)
{
    const unsigned char *rest = (const unsigned char *)text;
    size_t size = strlen(text);

    while (size) {
        size_t length = hob__utf8_length(rest, size);

        if (!length)
            return false;
        rest += length;
        size -= length;
    }
    return true;
}

/* Wide elements first, so that each tensor is aligned to its elements. */
static int compare_widths(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    uint32_t width_x = hob_dtype_size(x->meta.dtype);
    uint32_t width_y = hob_dtype_size(y->meta.dtype);

    if (width_x != width_y)
        return width_x > width_y ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int compare_item_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static hob_status check_names(const struct saver *saver)
{
    const char **names = calloc((size_t)saver->count + 1, sizeof(*names));
    hob_status st = HOB_OK;

    if (!names)
        return hob_error_set(saver->error, HOB_ERR_MEMORY, "%s: out of memory",
                             saver->path);
    for (uint32_t i = 0; i < saver->count && !st; i++) {
        names[i] = saver->items[i].name;
        if (!is_utf8(names[i]))
            st = item_fail(saver, names[i], HOB_ERR_ARGUMENT,
                           "its name is not UTF-8");
        else if (strcmp(names[i], "__metadata__") == 0)
            st = item_fail(saver, names[i], HOB_ERR_ARGUMENT,
                           "the format reserves this name");
    }
    if (!st)
        qsort(names, saver->count, sizeof(*names), compare_item_names);
    for (uint32_t i = 1; i < saver->count && !st; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = item_fail(saver, names[i], HOB_ERR_ARGUMENT,
                           "two tensors have this name");
    free(names);
    return st;
}

static hob_status fill_items(struct saver *saver,
                             const struct hob_named_tensor *tensors)
{
    for (uint32_t i = 0; i < saver->count; i++) {
        struct item *item = &saver->items[i];
        hob_error cause = HOB_ERROR_INIT;
        hob_status st;

        item->name = tensors[i].name;
        item->tensor = tensors[i].tensor;
        item->index = i;
        st = hob__tensor_check(item->tensor, &cause);
        if (st) {
            (void)item_fail(saver, item->name, st, hob__error_text(&cause));
            hob_error_release(&cause);
            return st;
        }
        item->meta = hob__tensor_meta(item->tensor);
        if (!hob__safetensors_type(item->meta.dtype))
            return item_fail(saver, item->name, HOB_ERR_UNSUPPORTED,
                             "safetensors has no such dtype; dequantize it "
                             "first");
        st = hob__meta_bytes(&item->meta, &item->bytes);
        if (st)
            return item_fail(saver, item->name, st, "its size overflows");
    }
    qsort(saver->items, saver->count, sizeof(*saver->items), compare_widths);
    return check_names(saver);
}

static void append_metadata(struct hob__text *text, const char *const *metadata,
                            uint32_t count)
{
    hob__text_puts(text, "\"__metadata__\":{");
    for (uint32_t i = 0; i < count; i++) {
        hob__text_puts(text, i ? "," : "");
        hob__text_json(text, metadata[2 * i]);
        hob__text_puts(text, ":");
        hob__text_json(text, metadata[2 * i + 1]);
    }
    hob__text_puts(text, "}");
}

static void append_item(struct hob__text *text, const struct item *item,
                        uint64_t offset)
{
    hob__text_json(text, item->name);
    hob__text_printf(text, ":{\"dtype\":\"%s\",\"shape\":[",
                     hob__safetensors_type(item->meta.dtype));
    for (uint32_t i = 0; i < item->meta.rank; i++)
        hob__text_printf(text, "%s%" PRId64, i ? "," : "", item->meta.shape[i]);
    hob__text_printf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                     offset, offset + item->bytes);
}

/* Make the length and the JSON text, padded so that the data is aligned. */
static hob_status make_header(const struct saver *saver,
                              const char *const *metadata,
                              uint32_t metadata_count, char **out_header,
                              uint64_t *out_length)
{
    struct hob__text text = HOB__TEXT_INIT;
    uint64_t offset = 0;

    hob__text_puts(&text, "........{"); /* the length's place */
    if (metadata_count)
        append_metadata(&text, metadata, metadata_count);
    for (uint32_t i = 0; i < saver->count; i++) {
        hob__text_puts(&text, i || metadata_count ? "," : "");
        append_item(&text, &saver->items[i], offset);
        offset += saver->items[i].bytes;
    }
    hob__text_puts(&text, "}");
    while (!text.failed && text.length % HEADER_ALIGNMENT)
        hob__text_puts(&text, " ");
    *out_length = text.length;
    *out_header = hob__text_take(&text);
    if (!*out_header)
        return hob_error_set(saver->error, HOB_ERR_MEMORY, "%s: out of memory",
                             saver->path);
    if (*out_length - LENGTH_BYTES > HOB__SAFETENSORS_HEADER_MAX)
        return hob_error_set(saver->error, HOB_ERR_RANGE,
                             "%s: the header would have %" PRIu64
                             " bytes; safetensors allows %d",
                             saver->path, *out_length - LENGTH_BYTES,
                             HOB__SAFETENSORS_HEADER_MAX);
    for (int i = 0; i < LENGTH_BYTES; i++)
        (*out_header)[i] =
            (char)((*out_length - LENGTH_BYTES) >> (8 * i) & 0xff);
    return HOB_OK;
}

/* One tensor at a time, so that at most one is in memory twice. */
static hob_status write_items(const struct saver *saver,
                              struct hob__file_write *writer)
{
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < saver->count && !st; i++) {
        struct hob__elements elements;
        hob_error cause = HOB_ERROR_INIT;

        st = hob__elements_get(saver->items[i].tensor, &elements, &cause);
        if (st)
            (void)item_fail(saver, saver->items[i].name, st,
                            hob__error_text(&cause));
        else
            st = hob__file_write_put(writer, elements.data, elements.bytes,
                                     saver->error);
        hob_error_release(&cause);
        hob__elements_release(&elements);
    }
    return st;
}

static hob_status check_metadata(const struct saver *saver,
                                 const char *const *metadata, uint32_t count)
{
    for (uint32_t i = 0; i < 2 * count; i++)
        if (!metadata[i] || !is_utf8(metadata[i]))
            return hob_error_set(saver->error, HOB_ERR_ARGUMENT,
                                 "%s: metadata pair %" PRIu32
                                 " is missing or not UTF-8",
                                 saver->path, i / 2);
    return HOB_OK;
}

hob_status hob_safetensors_save(const char *path,
                                const struct hob_named_tensor *tensors,
                                uint32_t count, const char *const *metadata,
                                uint32_t metadata_count, hob_error *error)
{
    struct saver saver = {path, NULL, count, error};
    struct hob__file_write *writer = NULL;
    char *header = NULL;
    uint64_t length = 0;
    hob_status st;

    saver.items = calloc((size_t)count + 1, sizeof(*saver.items));
    if (!saver.items)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    st = fill_items(&saver, tensors);
    if (!st)
        st = check_metadata(&saver, metadata, metadata ? metadata_count : 0);
    if (!st)
        st = make_header(&saver, metadata, metadata ? metadata_count : 0,
                         &header, &length);
    if (!st)
        st = hob__file_write_open(path, &writer, error);
    if (!st)
        st = hob__file_write_put(writer, header, length, error);
    if (!st)
        st = write_items(&saver, writer);
    if (st)
        goto out;
    st = hob__file_write_commit(writer, error);
    writer = NULL;

out:
    hob__file_write_abort(writer);
    free(header);
    free(saver.items);
    return st;
}
