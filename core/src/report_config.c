/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_config.c - the merged configuration as JSON, and why a plugin is
 * where it is: texts that are handed to the program.
 */
#include "error.h"
#include "runtime.h"
#include "text.h"

#include <stdlib.h>

static void put_strings(struct hob__text *text, const char *key,
                        const char *const *items, uint32_t count)
{
    hob__text_json(text, key);
    hob__text_puts(text, ":[");
    for (uint32_t i = 0; i < count; i++) {
        hob__text_puts(text, i ? "," : "");
        hob__text_json(text, items[i]);
    }
    hob__text_puts(text, "]");
}

static void put_string(struct hob__text *text, const char *key,
                       const char *value)
{
    hob__text_json(text, key);
    hob__text_puts(text, ":");
    if (value)
        hob__text_json(text, value);
    else
        hob__text_puts(text, "null");
}

static void put_settings(struct hob__text *text, const char *key,
                         const struct hob__conf_setting *settings,
                         uint32_t count, int as_words)
{
    hob__text_json(text, key);
    hob__text_puts(text, ":{");
    for (uint32_t i = 0; i < count; i++) {
        hob__text_puts(text, i ? "," : "");
        if (as_words) { /* true and false, without quotes */
            hob__text_json(text, settings[i].name);
            hob__text_printf(text, ":%s", settings[i].value);
        } else {
            put_string(text, settings[i].name, settings[i].value);
        }
    }
    hob__text_puts(text, "}");
}

static const char *tristate_text(enum hob__tristate value)
{
    return value == HOB__YES ? "true" : value == HOB__NO ? "false" : "null";
}

static void put_plugin(struct hob__text *text,
                       const struct hob__conf_plugin *plugin)
{
    hob__text_json(text, plugin->id);
    hob__text_printf(text, ":{\"enabled\":%s,\"critical\":%s,",
                     tristate_text(plugin->enabled),
                     tristate_text(plugin->critical));
    if (plugin->has_priority)
        hob__text_printf(text, "\"priority\":%d,", plugin->priority);
    put_string(text, "pin", plugin->pin);
    hob__text_puts(text, ",");
    put_settings(text, "options", plugin->options, plugin->option_count, 0);
    hob__text_puts(text, ",");
    put_settings(text, "features", plugin->features, plugin->feature_count, 1);
    hob__text_printf(text, ",\"locked\":%s}",
                     plugin->locked ? "true" : "false");
}

static void put_plugins(struct hob__text *text, const struct hob__conf *conf)
{
    hob__text_puts(text, "\"plugins\":{");
    put_strings(text, "enabled", conf->enabled.items, conf->enabled.count);
    hob__text_puts(text, ",");
    put_strings(text, "disabled", conf->disabled.items, conf->disabled.count);
    hob__text_puts(text, ",");
    put_strings(text, "only", conf->only.items, conf->only.count);
    for (uint32_t i = 0; i < conf->plugin_count; i++) {
        hob__text_puts(text, ",");
        put_plugin(text, &conf->plugins[i]);
    }
    hob__text_puts(text, "}");
}

struct notes {
    struct hob__text *text;
    int is_later; /* there is one before it */
};

static bool put_note(void *context, const struct hob__note *note)
{
    struct notes *notes = context;
    struct hob__text *text = notes->text;

    hob__text_puts(text, notes->is_later ? ",{" : "{");
    notes->is_later = 1;
    put_string(text, "where", note->where);
    hob__text_puts(text, ",");
    put_string(text, "reason", hob__reason_name(note->reason));
    hob__text_puts(text, ",");
    put_string(text, "severity",
               hob__severity_name(hob__reason_severity(note->reason)));
    hob__text_puts(text, ",");
    put_string(text, "detail", note->detail);
    hob__text_puts(text, ",");
    put_string(text, "hint", hob__reason_hint(note->reason));
    hob__text_puts(text, "}");
    return true;
}

static void put_notes(struct hob__text *text, const struct hob__loader *loader)
{
    struct notes notes = {text, 0};

    hob__text_puts(text, "\"notes\":[");
    hob__loader_notes(loader, put_note, &notes);
    hob__text_puts(text, "]");
}

hob_status hob_runtime_config(hob_runtime *runtime, char **out_json,
                              hob_error *error)
{
    const struct hob__conf *conf = hob__loader_conf(runtime->loader);
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t device_count = 0;
    const char *const *devices =
        hob__loader_devices(runtime->loader, &device_count);

    hob__text_puts(&text, "{");
    put_strings(&text, "files", conf->files.items, conf->files.count);
    hob__text_puts(&text, ",");
    put_strings(&text, "device", devices, device_count);
    hob__text_puts(&text, ",");
    put_plugins(&text, conf);
    hob__text_puts(&text, ",");
    put_string(&text, "log", conf->log);
    hob__text_puts(&text, ",");
    put_string(&text, "cache_dir", conf->cache_dir);
    hob__text_puts(&text, ",");
    put_notes(&text, runtime->loader);
    hob__text_puts(&text, "}");
    *out_json = hob__text_take(&text);
    return *out_json ? HOB_OK
                     : hob_error_set(error, HOB_ERR_MEMORY,
                                     "no memory for the configuration");
}

hob_status hob_plugin_why(hob_runtime *runtime, const char *id, char **out_text,
                          hob_error *error)
{
    hob_status status = hob__loader_why(runtime->loader, id, out_text);

    if (status)
        hob_error_set(error, status, "no memory for the report");
    return status;
}

void hob_text_free(char *text)
{
    free(text);
}
