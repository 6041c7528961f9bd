/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - record{path=FILE,times=yes,outputs=yes}.
 *
 * The core has read the braces and the config, compared the names with the
 * manifest, and passes a flat JSON object of strings: what the user gave.
 * Defaults are the layer's own; the manifest only tells them.
 */
#include "record.h"

#include <hob/ext/message.h>
#include <hob/ext/options.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The text that OPTION is, in memory of its own; NULL without memory, and
 * *OUT_STATUS says whether it is that or no text. */
static char *copy_text(const struct hob_option *option, hob_status *out_status)
{
    char *copy = malloc(option->value_size + 1);

    *out_status = copy ? HOB_ERR_ARGUMENT : HOB_ERR_MEMORY;
    if (copy && hob_option_text(option, copy, option->value_size + 1)) {
        *out_status = HOB_OK;
        return copy;
    }
    free(copy);
    return NULL;
}

/* The core has compared OPTION with the manifest. */
static hob_status set_option(struct rec_layer *layer,
                             const struct hob_option *option, char **path)
{
    const uint8_t is_yes = (uint8_t)hob_option_is(option, "yes");
    hob_status status = HOB_OK;

    if (hob_option_is_named(option, "times")) {
        layer->with_times = is_yes;
    } else if (hob_option_is_named(option, "outputs")) {
        layer->with_outputs = is_yes;
    } else {
        free(*path);
        *path = copy_text(option, &status);
    }
    return status;
}

/* PATH seen from the root, as the program may change its folder later. Takes
 * PATH; NULL without memory or without a current folder. */
static char *make_absolute(char *path)
{
    char *folder = *path == '/' ? NULL : getcwd(NULL, 0);
    size_t size = (folder ? strlen(folder) : 0) + strlen(path) + 2;
    char *whole;

    if (*path == '/')
        return path;
    whole = folder ? malloc(size) : NULL;
    if (whole)
        snprintf(whole, size, "%s/%s", folder, path);
    free(folder);
    free(path);
    return whole;
}

/* Read TEXT; *PATH, the caller's, is another one if TEXT has it. */
static hob_status read_options(struct rec_layer *layer, const char *text,
                               char **path, char **out_message)
{
    struct hob_options options = hob_options_of(text);
    struct hob_option option;
    hob_status status = *path ? HOB_OK : HOB_ERR_MEMORY;

    while (!status && hob_option_next(&options, &option))
        status = set_option(layer, &option, path);
    if (status == HOB_ERR_MEMORY)
        return hob_say(layer->host, out_message, status,
                       "record: no memory for a layer");
    if (status || options.problem[0])
        return hob_say(layer->host, out_message, HOB_ERR_ARGUMENT,
                       "record: options must be texts without control "
                       "characters, not %s",
                       text);
    if (!**path)
        return hob_say(layer->host, out_message, HOB_ERR_ARGUMENT,
                       "record: \"path\" is empty: name the file to write, as "
                       "in record{path=bug.json}(flex)");
    return HOB_OK;
}

hob_status rec_options_read(struct rec_layer *layer, const char *text,
                            char **out_path, char **out_message)
{
    char *path = strdup("record.json");
    hob_status status = read_options(layer, text, &path, out_message);

    *out_path = NULL;
    if (status) {
        free(path);
        return status;
    }
    *out_path = make_absolute(path);
    return *out_path
               ? HOB_OK
               : hob_say(layer->host, out_message, HOB_ERR_IO,
                         "record: the current folder cannot be told: give a "
                         "path that begins with /");
}
