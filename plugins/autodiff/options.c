/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the layer's options: {"checkpoint": "none" | "balanced"}. */
#include "layer.h"

#include <hob/ext/message.h>
#include <hob/ext/options.h>

#include <stdarg.h>

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

static hob_status set_option(struct ad_layer *layer,
                             const struct hob_option *option,
                             char **out_message)
{
    if (!hob_option_is_named(option, "checkpoint"))
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "autodiff has no option \"%.*s\": there is "
                          "\"checkpoint\"",
                          (int)option->name_size, option->name);
    layer->balanced = hob_option_is(option, "balanced");
    if (!layer->balanced && !hob_option_is(option, "none"))
        return ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                          "autodiff: checkpoint is \"%.*s\": it must be "
                          "\"none\" or \"balanced\"",
                          (int)option->value_size, option->value);
    return HOB_OK;
}

hob_status ad_options_read(struct ad_layer *layer, const char *text,
                           char **out_message)
{
    struct hob_options options = hob_options_of(text);
    struct hob_option option;
    hob_status status = HOB_OK;

    while (!status && hob_option_next(&options, &option))
        status = set_option(layer, &option, out_message);
    if (!status && options.problem[0])
        status = ad_message(layer->host, out_message, HOB_ERR_ARGUMENT,
                            "autodiff: %s: they must be like "
                            "{\"checkpoint\": \"balanced\"}",
                            options.problem);
    return status;
}
