/* SPDX-License-Identifier: Apache-2.0 */
#include "device_spec.h"

#include <string.h>

/* ---- parsing ---- */

static hob_status malformed(const char *spec, const char *at, const char *what,
                            hob_error *error)
{
    return hob_error_set(error, HOB_ERR_ARGUMENT,
                         "device \"%s\": %s at character %td: write it as in "
                         "\"autodiff{checkpoint=balanced}(flex)\" or "
                         "\"cube-cuda:1\"",
                         spec, what, at - spec + 1);
}

static int is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_spaces(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

/* Take the spaces around START..*END away. */
static const char *strip(const char *start, const char **end)
{
    while (start < *end && is_space(*start))
        start++;
    while (start < *end && is_space((*end)[-1]))
        --*end;
    return start;
}

/* One "name=value" in the braces, without the spaces around either; NULL names
 * end the walk, a NULL value has no "=". */
struct option {
    const char *name;
    size_t name_size;
    const char *value;
    size_t value_size;
};

static struct option next_option(const struct hob__spec_part *part,
                                 const char **at)
{
    struct option option = {0};
    const char *end, *comma, *equals, *stop, *name_end;

    if (!part->options || *at >= part->options + part->options_size)
        return option;
    end = part->options + part->options_size;
    comma = memchr(*at, ',', (size_t)(end - *at));
    stop = comma ? comma : end;
    equals = memchr(*at, '=', (size_t)(stop - *at));
    name_end = equals ? equals : stop;
    option.name = strip(*at, &name_end);
    option.name_size = (size_t)(name_end - option.name);
    *at = stop + 1;
    if (equals) {
        option.value = strip(equals + 1, &stop);
        option.value_size = (size_t)(stop - option.value);
    }
    return option;
}

/* What stands between the braces, from AT to END. */
static hob_status parse_options(const char *spec, const char *at,
                                const char *end, struct hob__spec_part *part,
                                hob_error *error)
{
    at = strip(at, &end);
    part->options = at;
    part->options_size = (size_t)(end - at);
    while (part->options_size && at <= end) {
        const char *start = at;
        struct option option = next_option(part, &at);

        if (!option.name_size || !option.value)
            return malformed(spec, start, "expected NAME=VALUE", error);
    }
    return HOB_OK;
}

static hob_status parse_ordinal(const char *spec, const char **at,
                                struct hob__spec_part *part, hob_error *error)
{
    uint64_t number = 0;
    const char *start = ++*at;

    for (; **at >= '0' && **at <= '9' && number <= UINT16_MAX; ++*at)
        number = number * 10 + (uint64_t)(**at - '0');
    if (*at == start || number > UINT16_MAX)
        return malformed(spec, start, "expected the number of a device", error);
    part->ordinal = (uint32_t)number;
    return HOB_OK;
}

static hob_status parse_part(const char *spec, const char **at,
                             struct hob__spec_part *part, hob_error *error)
{
    memset(part, 0, sizeof(*part));
    *at = skip_spaces(*at);
    part->name = *at;
    while (is_name_char(**at))
        ++*at;
    part->name_size = (size_t)(*at - part->name);
    if (!part->name_size)
        return malformed(spec, *at, "expected a name", error);
    if (*skip_spaces(*at) == '{') {
        const char *start = skip_spaces(*at) + 1;
        const char *end = strchr(start, '}');
        hob_status status;

        if (!end)
            return malformed(spec, start, "\"{\" is never closed", error);
        status = parse_options(spec, start, end, part, error);
        if (status)
            return status;
        *at = end + 1;
    }
    if (**at == ':')
        return parse_ordinal(spec, at, part, error);
    *at = skip_spaces(*at);
    return HOB_OK;
}

hob_status hob__spec_parse(const char *text, struct hob__spec *out,
                           hob_error *error)
{
    const char *at = text;
    uint32_t open = 0;
    hob_status status;

    out->count = 0;
    for (;;) {
        if (out->count > HOB_MAX_LEVELS)
            return malformed(text, at, "more layers than are allowed", error);
        status = parse_part(text, &at, &out->parts[out->count++], error);
        if (status)
            return status;
        at = skip_spaces(at);
        if (*at != '(')
            break;
        open++;
        at++;
    }
    for (; open; open--) {
        at = skip_spaces(at);
        if (*at != ')')
            return malformed(text, at, "expected \")\"", error);
        at++;
    }
    at = skip_spaces(at);
    return *at ? malformed(text, at, "unexpected text", error) : HOB_OK;
}

/* ---- options ---- */

static int same_text(const char *text, size_t size, const char *other)
{
    return other && strlen(other) == size && !memcmp(text, other, size);
}

/* The option called NAME in the braces of PART. */
static struct option find_option(const struct hob__spec_part *part,
                                 const char *name)
{
    const char *at = part->options;
    struct option option;

    do
        option = next_option(part, &at);
    while (option.name && !same_text(option.name, option.name_size, name));
    return option;
}

static const char *conf_option(const struct hob__conf_plugin *conf,
                               const char *name)
{
    for (uint32_t i = 0; conf && i < conf->option_count; i++)
        if (!strcmp(conf->options[i].name, name))
            return conf->options[i].value;
    return NULL;
}

static void put_option(const char *name, size_t name_size, const char *value,
                       size_t value_size, struct hob__text *json)
{
    struct hob__text copy = HOB__TEXT_INIT;

    hob__text_puts(json, json->length > 1 ? "," : "");
    hob__text_append(&copy, name, name_size);
    hob__text_json(json, copy.data ? copy.data : "");
    hob__text_release(&copy);
    hob__text_puts(json, ":");
    hob__text_append(&copy, value, value_size);
    hob__text_json(json, copy.data ? copy.data : "");
    hob__text_release(&copy);
}

static void put_name(const char *name, size_t name_size, const char *value,
                     size_t value_size, int *written, struct hob__text *text)
{
    hob__text_puts(text, (*written)++ ? "," : "{");
    hob__text_append(text, name, name_size);
    hob__text_puts(text, "=");
    hob__text_append(text, value, value_size);
}

static hob_status unknown_option(const struct hob__manifest *manifest,
                                 const struct option *option, hob_error *error)
{
    const struct hob__manifest_decorator *decorator = &manifest->decorator;
    struct hob__text known = HOB__TEXT_INIT;
    hob_status status;

    for (uint32_t i = 0; i < decorator->option_count; i++)
        hob__text_printf(&known, "%s%s", i ? ", " : "",
                         decorator->options[i].name);
    status = hob_error_set(error, HOB_ERR_ARGUMENT,
                           "%s has no option \"%.*s\": it has %s", manifest->id,
                           (int)option->name_size, option->name,
                           known.data ? known.data : "none");
    hob__text_release(&known);
    return status;
}

static hob_status check_value(const struct hob__manifest *manifest,
                              const struct hob__manifest_option *declared,
                              const char *value, size_t value_size,
                              hob_error *error)
{
    struct hob__text known = HOB__TEXT_INIT;
    hob_status status;

    if (!declared->values.count)
        return HOB_OK;
    for (uint32_t i = 0; i < declared->values.count; i++) {
        if (same_text(value, value_size, declared->values.items[i])) {
            hob__text_release(&known);
            return HOB_OK;
        }
        hob__text_printf(&known, "%s%s", i ? ", " : "",
                         declared->values.items[i]);
    }
    status = hob_error_set(error, HOB_ERR_ARGUMENT,
                           "%s: option %s cannot be \"%.*s\": it is one of %s",
                           manifest->id, declared->name, (int)value_size, value,
                           known.data ? known.data : "");
    hob__text_release(&known);
    return status;
}

/* What the manifest declares, in its order. */
static hob_status declared_options(const struct hob__spec_part *part,
                                   const struct hob__conf_plugin *conf,
                                   const struct hob__manifest *manifest,
                                   struct hob__text *json, int *written,
                                   struct hob__text *name, hob_error *error)
{
    for (uint32_t i = 0; i < manifest->decorator.option_count; i++) {
        const struct hob__manifest_option *declared =
            &manifest->decorator.options[i];
        struct option option = find_option(part, declared->name);
        const char *value =
            option.name ? option.value : conf_option(conf, declared->name);
        size_t size = option.name ? option.value_size
                      : value     ? strlen(value)
                                  : 0;
        hob_status status;

        if (!value)
            continue;
        status = check_value(manifest, declared, value, size, error);
        if (status)
            return status;
        put_option(declared->name, strlen(declared->name), value, size, json);
        if (!same_text(value, size, declared->initial))
            put_name(declared->name, strlen(declared->name), value, size,
                     written, name);
    }
    return HOB_OK;
}

/* Which of two values would count is nothing to guess. */
static hob_status check_once(const struct hob__spec_part *part,
                             const struct hob__manifest *manifest,
                             hob_error *error)
{
    const char *at = part->options;
    struct option option;

    while ((option = next_option(part, &at)).name) {
        const char *rest = at;
        struct option other;

        while ((other = next_option(part, &rest)).name)
            if (option.name_size == other.name_size &&
                !memcmp(option.name, other.name, other.name_size))
                return hob_error_set(
                    error, HOB_ERR_ARGUMENT,
                    "%s: option %.*s is given twice, as \"%.*s\" and "
                    "\"%.*s\": leave one of them out",
                    manifest->id, (int)option.name_size, option.name,
                    (int)option.value_size, option.value, (int)other.value_size,
                    other.value);
    }
    return HOB_OK;
}

static int is_declared(const struct hob__manifest *manifest,
                       const struct option *option)
{
    for (uint32_t i = 0; i < manifest->decorator.option_count; i++)
        if (same_text(option->name, option->name_size,
                      manifest->decorator.options[i].name))
            return 1;
    return 0;
}

hob_status hob__spec_options(const struct hob__spec_part *part,
                             const struct hob__conf_plugin *conf,
                             const struct hob__manifest *manifest,
                             struct hob__text *json, struct hob__text *name,
                             hob_error *error)
{
    const char *at = part->options;
    struct option option;
    int written = 0;
    hob_status status;

    hob__text_puts(json, "{");
    status = check_once(part, manifest, error);
    if (!status)
        status =
            declared_options(part, conf, manifest, json, &written, name, error);
    if (status)
        return status;
    while ((option = next_option(part, &at)).name) {
        if (is_declared(manifest, &option))
            continue;
        if (manifest->decorator.option_count)
            return unknown_option(manifest, &option, error);
        put_option(option.name, option.name_size, option.value,
                   option.value_size, json);
        put_name(option.name, option.name_size, option.value, option.value_size,
                 &written, name);
    }
    /* Without a declaration the config may still say anything. */
    for (uint32_t i = 0;
         conf && !manifest->decorator.option_count && i < conf->option_count;
         i++) {
        const struct hob__conf_setting *setting = &conf->options[i];

        if (find_option(part, setting->name).name)
            continue;
        put_option(setting->name, strlen(setting->name), setting->value,
                   strlen(setting->value), json);
    }
    hob__text_puts(json, "}");
    if (written)
        hob__text_puts(name, "}");
    return HOB_OK;
}
