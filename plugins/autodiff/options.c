/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the layer's options: {"checkpoint": "none" | "balanced"}.
 *
 * The core passes a flat JSON object of strings; this reads no more than
 * that and names what it does not know.
 */
#include "layer.h"

#include <hob/ext/message.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

hob_status ad_message(const struct hob_host *host, char **out_message,
                      hob_status status, const char *format, ...)
{
    va_list args;

    if (!out_message || *out_message)
        return status;
    va_start(args, format);
    (void)hob_say_list(host, out_message, status, format, args);
    va_end(args);
    return status;
}

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* A string without escapes at AT; sets its place and returns what follows,
 * NULL if there is none. */
static const char *read_string(const char *at, const char **out_text,
                               size_t *out_size)
{
    size_t size;

    if (*at != '"')
        return NULL;
    size = strcspn(at + 1, "\"\\");
    *out_text = at + 1;
    *out_size = size;
    return at[size + 1] == '"' ? at + size + 2 : NULL;
}

static int equals(const char *text, size_t size, const char *want)
{
    return strlen(want) == size && memcmp(text, want, size) == 0;
}

static hob_status set_option(struct ad_layer *layer, const char *name,
                             size_t name_size, const char *value,
                             size_t value_size, char **out_message)
{
    if (!equals(name, name_size, "checkpoint"))
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "autodiff has no option \"%.*s\": there is "
                          "\"checkpoint\"",
                          (int)name_size, name);
    if (equals(value, value_size, "balanced"))
        layer->balanced = 1;
    else if (equals(value, value_size, "none"))
        layer->balanced = 0;
    else
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "autodiff: checkpoint is \"%.*s\": it must be "
                          "\"none\" or \"balanced\"",
                          (int)value_size, value);
    return HOB_OK;
}

hob_status ad_options_read(struct ad_layer *layer, const char *options,
                           char **out_message)
{
    const char *at = options ? skip_spaces(options) : NULL;
    const char *name, *value;
    size_t name_size, value_size;
    hob_status status = HOB_OK;

    if (!at || !*at)
        return HOB_OK;
    if (*at++ != '{')
        goto malformed;
    at = skip_spaces(at);
    while (*at != '}') {
        at = read_string(at, &name, &name_size);
        at = at ? skip_spaces(at) : NULL;
        if (!at || *at++ != ':')
            goto malformed;
        at = read_string(skip_spaces(at), &value, &value_size);
        if (!at)
            goto malformed;
        status =
            set_option(layer, name, name_size, value, value_size, out_message);
        if (status)
            return status;
        at = skip_spaces(at);
        if (*at == ',')
            at = skip_spaces(at + 1);
        else if (*at != '}')
            goto malformed;
    }
    return HOB_OK;
malformed:
    return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                      "autodiff: options must be like "
                      "{\"checkpoint\": \"balanced\"}, not %s",
                      options);
}
