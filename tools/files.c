/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    while (!feof(stream) && !status) {
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
    }
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

hob_status json_parse(const char *where, const char *text, size_t size,
                      cJSON **out_json, hob_error *error)
{
    const char *end = text;
    size_t line = 1;
    size_t column = 1;

    *out_json = cJSON_ParseWithLengthOpts(text, size, &end, 0);
    if (*out_json) {
        while (end < text + size && strchr(" \t\r\n", *end))
            end++;
        if (end == text + size)
            return HOB_OK;
        cJSON_Delete(*out_json);
        *out_json = NULL;
    }
    for (const char *at = text; at < end; at++) {
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
    }
    return hob_error_set(error, HOB_ERR_FORMAT,
                         "%s:%zu:%zu: this is not JSON", where, line, column);
}

hob_status json_load(const char *path, cJSON **out_json, hob_error *error)
{
    char *text = NULL;
    size_t size = 0;
    hob_status status = file_load(path, &text, &size, error);

    *out_json = NULL;
    if (!status)
        status = json_parse(path, text, size, out_json, error);
    free(text);
    return status;
}
