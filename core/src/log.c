/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "log.h"

#include "arena.h"
#include "paths.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_OFF = HOB__SEVERITY_ERROR + 1, STANDARD_ERROR = 2 };

struct filter {
    const char *module; /* not NUL-terminated */
    size_t length;
    int level; /* least severity that passes, or LEVEL_OFF */
};

struct hob__log {
    const struct hob_os_ops *os; /* borrowed, outlives this */
    hob__log_fn *sink;
    void *context;
    int fd;
    bool is_json;
    int level; /* for modules without a filter */
    struct filter *filters;
    size_t filter_count;
    struct hob__arena arena;
};

static bool read_level(const char *text, size_t length, int *out_level)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"debug", HOB__SEVERITY_DEBUG},
                  {"info", HOB__SEVERITY_INFO},
                  {"warn", HOB__SEVERITY_WARN},
                  {"error", HOB__SEVERITY_ERROR},
                  {"off", LEVEL_OFF}};
    size_t i;

    for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strlen(levels[i].name) == length &&
            !strncmp(levels[i].name, text, length)) {
            *out_level = levels[i].level;
            return true;
        }
    }
    return false;
}

/* Read one element of HOB_LOG, of LENGTH bytes. */
static bool read_filter(struct hob__log *log, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    struct filter *filter = &log->filters[log->filter_count];
    int level = 0;

    if (!equals)
        return read_level(text, length, &log->level);
    if (equals == text ||
        !read_level(equals + 1, length - (size_t)(equals + 1 - text), &level))
        return false;
    filter->module = text;
    filter->length = (size_t)(equals - text);
    filter->level = level;
    log->filter_count++;
    return true;
}

/* *OUT_BAD is the first element that cannot be read, or NULL. */
static hob_status read_filters(struct hob__log *log, const char *text,
                               const char **out_bad)
{
    const char *copy = hob__arena_strdup(&log->arena, text), *p;
    size_t most = 1;

    if (!copy)
        return HOB_ERR_MEMORY;
    for (p = copy; *p; p++)
        most += *p == ',';
    log->filters = hob__arena_array(&log->arena, most, sizeof(*log->filters));
    if (!log->filters)
        return HOB_ERR_MEMORY;
    for (p = copy;; p++) {
        size_t length = strcspn(p, ",");

        if (length && !read_filter(log, p, length) && !*out_bad)
            *out_bad = hob__arena_strndup(&log->arena, p, length);
        p += length;
        if (!*p)
            return HOB_OK;
    }
}

static void open_file(struct hob__log *log, const char *path)
{
    char buffer[64];
    int fd =
        hob__path_is_absolute(log->os, path)
            ? log->os->create(log->os->self, path, HOB_OS_CREATE_APPEND, 0600)
            : -1;

    if (fd >= 0)
        log->fd = fd;
    else
        hob__log_write(log, HOB__SEVERITY_ERROR, "log",
                       "HOB_LOG_FILE: %s: %s; writing to standard error", path,
                       fd == -1 ? "an absolute path that can be written is "
                                  "needed"
                                : hob__os_error(fd, buffer, sizeof(buffer)));
}

hob_status hob__log_new(const struct hob_os_ops *os,
                        const struct hob__log_options *options,
                        struct hob__log **out_log, hob_error *error)
{
    struct hob__log *log = calloc(1, sizeof(*log));
    const char *bad = NULL;
    hob_status st = log ? HOB_OK : HOB_ERR_MEMORY;

    *out_log = NULL;
    if (!st) {
        log->os = os;
        log->sink = options->sink;
        log->context = options->context;
        log->fd = STANDARD_ERROR;
        log->level = HOB__SEVERITY_ERROR;
        if (options->filter)
            st = read_filters(log, options->filter, &bad);
    }
    if (st) {
        hob__log_free(log);
        return hob_error_set(error, st, "log: out of memory");
    }
    log->is_json = options->format && !strcmp(options->format, "json");
    if (options->file && !log->sink)
        open_file(log, options->file);
    if (bad)
        hob__log_write(log, HOB__SEVERITY_ERROR, "log",
                       "%s: \"%s\" is not understood: write MODULE=LEVEL; "
                       "levels are off error warn info debug",
                       options->filter_name, bad);
    if (options->format && !log->is_json && strcmp(options->format, "text"))
        hob__log_write(log, HOB__SEVERITY_ERROR, "log",
                       "HOB_LOG_FORMAT: \"%s\" is neither text nor json",
                       options->format);
    *out_log = log;
    return HOB_OK;
}

void hob__log_free(struct hob__log *log)
{
    if (!log)
        return;
    if (log->fd != STANDARD_ERROR)
        log->os->close(log->os->self, log->fd);
    hob__arena_release(&log->arena);
    free(log);
}

bool hob__log_wants(const struct hob__log *log, enum hob__severity severity,
                    const char *module)
{
    int level = log->level;
    size_t i;

    for (i = 0; i < log->filter_count; i++) {
        const struct filter *filter = &log->filters[i];

        if (strlen(module) == filter->length &&
            !strncmp(module, filter->module, filter->length))
            level = filter->level;
    }
    return (int)severity >= level;
}

static void format_line(const struct hob__log *log, enum hob__severity severity,
                        const char *module, const char *message,
                        struct hob__text *line)
{
    if (!log->is_json) {
        hob__text_printf(line, "hob: %s: %s: %s\n",
                         hob__severity_name(severity), module, message);
        if (line->data)
            hob__text_plain(line->data);
        return;
    }
    hob__text_printf(line, "{\"time_ns\":%" PRIu64 ",\"level\":\"%s\"",
                     log->os->now_ns(log->os->self),
                     hob__severity_name(severity));
    hob__text_puts(line, ",\"module\":");
    hob__text_json(line, module);
    hob__text_puts(line, ",\"message\":");
    hob__text_json(line, message);
    hob__text_puts(line, "}\n");
}

void hob__log_write(struct hob__log *log, enum hob__severity severity,
                    const char *module, const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT, line = HOB__TEXT_INIT;
    va_list args;

    if (!hob__log_wants(log, severity, module))
        return;
    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    if (!text.failed && text.data) {
        if (log->sink)
            log->sink(log->context, severity, module, text.data);
        else
            format_line(log, severity, module, text.data, &line);
    }
    /* One write, so that lines of several threads do not mix. A log that
     * cannot be written has nowhere to say so. */
    if (line.data && !line.failed)
        (void)log->os->write(log->os->self, log->fd, line.data, line.length);
    hob__text_release(&text);
    hob__text_release(&line);
}
