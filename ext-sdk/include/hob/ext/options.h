/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/options.h - the options of a device or a layer, as its open gets
 * them: a JSON object of texts, and of numbers where a configuration has some.
 * The core has parsed it, so this reads just enough.
 *
 *     struct hob_options options = hob_options_of(text);
 *     struct hob_option option;
 *
 *     while (hob_option_next(&options, &option))
 *         if (hob_option_is_named(&option, "loud"))
 *             is_loud = hob_option_is(&option, "yes");
 *     if (options.problem[0])
 *         return hob_say(host, out_message, HOB_ERR_ARGUMENT, "count: %s",
 *                        options.problem);
 */
#ifndef HOB_EXT_OPTIONS_H
#define HOB_EXT_OPTIONS_H

#include <hob/common.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

HOB_BEGIN_DECLS

/* Where the text is read, and what is wrong there; "": nothing. */
struct hob_options {
    const char *at;
    char problem[80];
};

/* One of them: its name and value where they stand in the text. */
struct hob_option {
    const char *name, *value;
    size_t name_size, value_size;
    int is_text; /* the value is, without its quotes, escapes as they are */
};

static inline const char *hob_options_skip(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The options in TEXT; of NULL and of "" there are none. */
static inline struct hob_options hob_options_of(const char *text)
{
    struct hob_options options = {"", ""};

    if (text)
        options.at = hob_options_skip(text);
    if (*options.at == '{')
        options.at = hob_options_skip(options.at + 1);
    else if (*options.at)
        (void)snprintf(options.problem, sizeof(options.problem),
                       "options are not a JSON object");
    return options;
}

/* Read a string at *AT, which is behind it then; 0 if there is none. */
static inline int hob_options_string(const char **at, const char **out_text,
                                     size_t *out_size)
{
    const char *p = *at;

    if (*p++ != '"')
        return 0;
    *out_text = p;
    while (*p && *p != '"')
        p += p[0] == '\\' && p[1] ? 2 : 1;
    *out_size = (size_t)(p - *out_text);
    *at = p + 1;
    return *p == '"';
}

static inline int hob_options_value(const char **at, struct hob_option *out)
{
    out->is_text = **at == '"';
    if (out->is_text)
        return hob_options_string(at, &out->value, &out->value_size);
    out->value = *at;
    out->value_size = strcspn(*at, ",} \t\r\n\"");
    *at += out->value_size;
    return out->value_size != 0;
}

static inline int hob_options_malformed(struct hob_options *options)
{
    (void)snprintf(options->problem, sizeof(options->problem),
                   "options are malformed at \"%.20s\"", options->at);
    return 0;
}

/* The next of OPTIONS to OUT; 0 at the end, and where there is a problem. */
static inline int hob_option_next(struct hob_options *options,
                                  struct hob_option *out)
{
    const char *at = options->at;

    if (options->problem[0] || !*at)
        return 0;
    if (*at == '}') {
        options->at = hob_options_skip(at + 1);
        return *options->at ? hob_options_malformed(options) : 0;
    }
    if (!hob_options_string(&at, &out->name, &out->name_size))
        return hob_options_malformed(options);
    at = hob_options_skip(at);
    if (*at++ != ':') {
        (void)snprintf(options->problem, sizeof(options->problem),
                       "no \":\" after option \"%.*s\"",
                       out->name_size < 32 ? (int)out->name_size : 32,
                       out->name);
        return 0;
    }
    options->at = at = hob_options_skip(at);
    if (!hob_options_value(&at, out))
        return hob_options_malformed(options);
    options->at = hob_options_skip(at);
    if (*options->at == ',')
        options->at = hob_options_skip(options->at + 1);
    else if (*options->at != '}')
        return hob_options_malformed(options);
    return 1;
}

static inline int hob_option_is_named(const struct hob_option *option,
                                      const char *name)
{
    return strlen(name) == option->name_size &&
           memcmp(name, option->name, option->name_size) == 0;
}

/* Whether the value is TEXT, which needs no escapes. */
static inline int hob_option_is(const struct hob_option *option,
                                const char *text)
{
    return option->is_text && strlen(text) == option->value_size &&
           memcmp(text, option->value, option->value_size) == 0;
}

/* The text that the value is to OUT, of SIZE bytes; 0 if it is none or does
 * not fit. Of escapes there are those of quotes, slashes and backslashes: what
 * has others is a control character, which is in no name of a file. */
static inline int hob_option_text(const struct hob_option *option, char *out,
                                  size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < option->value_size && option->is_text; i++) {
        if (option->value[i] == '\\' && !strchr("\"\\/", option->value[++i]))
            return 0;
        if (used + 1 >= size)
            return 0;
        out[used++] = option->value[i];
    }
    if (size)
        out[used] = '\0';
    return option->is_text && size != 0;
}

/* The whole number that the value is, as a text too; 0 if it is none, or is
 * above MOST. */
static inline int hob_option_count(const struct hob_option *option,
                                   uint64_t most, uint64_t *out)
{
    uint64_t count = 0;

    for (size_t i = 0; i < option->value_size; i++) {
        const uint64_t digit = (uint64_t)option->value[i] - '0';

        if (option->value[i] < '0' || option->value[i] > '9' || digit > most ||
            count > (most - digit) / 10)
            return 0;
        count = 10 * count + digit;
    }
    *out = count;
    return option->value_size != 0;
}

HOB_END_DECLS

#endif
