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

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Skip spaces and take the character C. */
static int take(const char **at, char c)
{
    *at += strspn(*at, " \t\r\n");
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

/* Take a string. Its text, NUL-terminated, goes to OUT, which has room for
 * all of the options. Of escapes there are \" and \\ only: what the core
 * writes in other ways are control characters, which no file name needs. */
static int take_string(const char **at, char *out)
{
    if (!take(at, '"'))
        return 0;
    for (; **at && **at != '"'; ++*at) {
        if (**at == '\\' && *++*at != '"' && **at != '\\')
            return 0;
        *out++ = **at;
    }
    *out = '\0';
    return take(at, '"');
}

/* The core has compared NAME and VALUE with the manifest. */
static void set_option(struct rec_layer *layer, const char *name,
                       const char *value, char **path)
{
    uint8_t is_yes = !strcmp(value, "yes");

    if (!strcmp(name, "times")) {
        layer->with_times = is_yes;
    } else if (!strcmp(name, "outputs")) {
        layer->with_outputs = is_yes;
    } else {
        free(*path);
        *path = strdup(value);
    }
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

hob_status rec_options_read(struct rec_layer *layer, const char *options,
                            char **out_path, char **out_message)
{
    const char *at = options ? options : "{}";
    size_t room = strlen(at) + 1;
    char *name = malloc(room);
    char *value = malloc(room);
    char *path = strdup("record.json");
    hob_status status = HOB_OK;
    int more;

    *out_path = NULL;
    if (!name || !value || !path) {
        status = hob_say(layer->host, out_message, HOB_ERR_MEMORY,
                         "record: no memory for a layer");
        goto out;
    }
    more = take(&at, '{') && !take(&at, '}');
    while (more) {
        if (!take_string(&at, name) || !take(&at, ':') ||
            !take_string(&at, value)) {
            status = hob_say(layer->host, out_message, HOB_ERR_ARGUMENT,
                             "record: options must be texts without "
                             "control characters, not %s",
                             options);
            goto out;
        }
        set_option(layer, name, value, &path);
        more = take(&at, ',');
    }
    if (path && !*path) {
        status = hob_say(layer->host, out_message, HOB_ERR_ARGUMENT,
                         "record: \"path\" is empty: name the file to "
                         "write, as in record{path=bug.json}(flex)");
        goto out;
    }
    path = path ? make_absolute(path) : NULL;
    if (!path)
        status = hob_say(layer->host, out_message, HOB_ERR_IO,
                         "record: the current folder cannot be told: give "
                         "a path that begins with /");
out:
    free(name);
    free(value);
    if (status)
        free(path);
    else
        *out_path = path;
    return status;
}
