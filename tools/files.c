/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "json_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs are flat; this only bounds the recursion of cJSON. */
enum { MAX_DEPTH = 64 };

hob_status file_load(const char *path, char **out_text, size_t *out_size,
                     hob_error *error)
{
    FILE *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char *text = NULL;
    size_t size = 0;
    size_t capacity = 0;
    hob_status status = HOB_OK;

    *out_text = NULL;
    if (!stream)
        return hob_error_set(error, HOB_ERR_IO, "%s: %s", path,
                             strerror(errno));
    do { /* once at least: standard input may have been read to its end */
        if (capacity - size < 2) {
            char *grown = realloc(text, capacity ? capacity * 2 : 65536);

            if (!grown) {
                status = hob_error_set(error, HOB_ERR_MEMORY,
                                       "%s: no memory to read it", path);
                break;
            }
            text = grown;
            capacity = capacity ? capacity * 2 : 65536;
        }
        size += fread(text + size, 1, capacity - size - 1, stream);
        if (ferror(stream))
            status = hob_error_set(error, HOB_ERR_IO, "%s: %s", path,
                                   strerror(errno));
    } while (!feof(stream) && !status);
    if (stream != stdin)
        fclose(stream);
    if (status) {
        free(text);
        return status;
    }
    text[size] = '\0';
    *out_text = text;
    *out_size = size;
    return HOB_OK;
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
}

/* The strict scan of the core says what is wrong and where. */
static hob_status check_json(const char *where, uint32_t first_line,
                             const char *text, size_t size, hob_error *error)
{
    struct hob__json_scan scan;
    uint32_t line = 1;
    uint32_t column = 1;
    hob_status status = hob__json_scan(text, size, MAX_DEPTH, &scan);

    if (status == HOB_ERR_FORMAT) {
        hob__json_position((const unsigned char *)text, scan.error_offset,
                           &line, &column);
        hob_error_set(error, status,
                      "%s:%" PRIu32 ":%" PRIu32 ": this is not JSON: %s", where,
                      first_line + line - 1, column, scan.message);
    } else if (status) {
        hob_error_set(error, status, "%s: no memory to read it", where);
    }
    hob__json_scan_release(&scan);
    return status;
}

hob_status json_parse(const char *where, uint32_t first_line, const char *text,
                      size_t size, cJSON **out_json, hob_error *error)
{
    hob_status status = check_json(where, first_line, text, size, error);

    *out_json = NULL;
    if (status)
        return status;
    *out_json = cJSON_ParseWithLengthOpts(text, size, NULL, 0);
    return *out_json ? HOB_OK
                     : hob_error_set(error, HOB_ERR_MEMORY,
                                     "%s: no memory to read it", where);
}

hob_status json_load(const char *path, cJSON **out_json, hob_error *error)
{
    char *text = NULL;
    size_t size = 0;
    hob_status status = file_load(path, &text, &size, error);

    *out_json = NULL;
    if (!status)
        status = json_parse(path, 1, text, size, out_json, error);
    free(text);
    return status;
}

hob_status error_at(hob_error *error, const char *format, ...)
{
    hob_status status = error->status;
    hob_error inner = *error;
    char place[512];
    va_list args;

    va_start(args, format);
    vsnprintf(place, sizeof(place), format, args);
    va_end(args);
    error->message = NULL;
    hob_error_set(error, status, "%s: %s", place,
                  inner.message ? inner.message : hob_status_name(status));
    hob_error_release(&inner);
    return status;
}
