/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "npy.h"

#include "error.h"
#include "file_map.h"
#include "file_write.h"
#include "host_data.h"

#include <hob/io.h>

#include <inttypes.h>
#include <stdlib.h>

/* Put PATH before the message of ERROR, which may be NULL. */
static hob_status with_path(const char *path, hob_status status,
                            hob_error *cause, hob_error *error)
{
    (void)hob_error_set(error, status, "%s: %s", path, hob__error_text(cause));
    hob_error_release(cause);
    return status;
}

hob_status hob_npy_load(hob_scope *scope, hob_device *device, const char *path,
                        hob_tensor **out_tensor, hob_error *error)
{
    struct hob__file_map *map = NULL;
    struct hob__npy_header header;
    hob_error cause = HOB_ERROR_INIT;
    const void *data;
    void *ordered = NULL;
    hob_status st;

    *out_tensor = NULL;
    st = hob__file_map_open(path, &map, error);
    if (st)
        return st;
    st = hob__npy_parse(path, hob__file_map_data(map), hob__file_map_size(map),
                        &header, error);
    if (st)
        goto out;
    data = hob__file_map_data(map) + header.data_offset;
    if (!hob__npy_is_plain(&header)) {
        ordered = malloc((size_t)header.data_bytes + 1);
        if (!ordered) {
            st = hob_error_set(error, HOB_ERR_MEMORY,
                               "%s: no memory for %" PRIu64 " bytes", path,
                               header.data_bytes);
            goto out;
        }
        hob__npy_reorder(&header, data, ordered);
        data = ordered;
    }
    st = hob__elements_put(scope, device, &header.meta, data, out_tensor,
                           &cause);
    if (st)
        st = with_path(path, st, &cause, error);

out:
    free(ordered);
    hob__file_map_unref(map);
    return st;
}

hob_status hob_npy_save(const char *path, hob_tensor *tensor, hob_error *error)
{
    unsigned char text[HOB__NPY_HEADER_MAX];
    struct hob__elements elements;
    struct hob__file_write *writer = NULL;
    hob_error cause = HOB_ERROR_INIT;
    uint32_t length;
    hob_status st = hob__elements_get(tensor, &elements, &cause);

    if (st) {
        st = with_path(path, st, &cause, error);
        goto out;
    }
    length = hob__npy_format(&elements.meta, text);
    if (!length) {
        st = hob_error_set(error, HOB_ERR_UNSUPPORTED,
                           "%s: NPY has no %s; cast the tensor to f32 first, "
                           "or save it as safetensors",
                           path, hob_dtype_name(elements.meta.dtype));
        goto out;
    }
    st = hob__file_write_open(path, &writer, error);
    if (!st)
        st = hob__file_write_put(writer, text, length, error);
    if (!st)
        st = hob__file_write_put(writer, elements.data, elements.bytes, error);
    if (st)
        goto out;
    st = hob__file_write_commit(writer, error);
    writer = NULL;

out:
    hob__file_write_abort(writer);
    hob__elements_release(&elements);
    return st;
}
