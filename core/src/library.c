/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c - from a chosen candidate to a checked table (SEC-3, LOAD, NEG).
 *
 * Everything that can be known is checked before the system maps the file,
 * because mapping it runs its constructors.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "elf_check.h"
#include "error.h"
#include "loader_internal.h"
#include "paths.h"
#include "sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char entry_symbol[] = "hob_plugin_entry";

/* One attempt. What it opens is undone on failure (LOAD-4). */
struct attempt {
    struct hob__loader *loader;
    const struct hob_os_ops *os;
    const struct hob__candidate *candidate;
    char *path; /* owned: the library's real path; NULL for system: names */
    struct hob_os_stat stat;
    enum hob__reason *out_reason;
    struct hob__text *notes;
    hob_error *error;
};

static hob_status refuse(const struct attempt *attempt, enum hob__reason reason,
                         const char *path, const char *what)
{
    *attempt->out_reason = reason;
    return hob_error_set(attempt->error, HOB_ERR_PLUGIN, "%s: %s", path, what);
}

static hob_status refuse_code(const struct attempt *attempt,
                              enum hob__reason reason, int code)
{
    char buffer[64];

    return refuse(attempt, reason, attempt->candidate->library,
                  hob__os_error(code, buffer, sizeof(buffer)));
}

/* Is PATH the file of the core or of the program? (SEC-5) */
static bool is_self(const struct attempt *attempt, const char *path)
{
    const struct hob_os_ops *os = attempt->os;
    char *own[2] = {NULL, NULL};
    struct hob_os_stat stat = {0}, other = {0};
    bool is_same = false;
    int i;

    if (os->path_stat(os->self, path, true, &stat))
        return false;
    (void)os->self_path(os->self, &own[0]);
    (void)os->program_path(os->self, &own[1]);
    for (i = 0; i < 2; i++) {
        if (own[i] && !os->path_stat(os->self, own[i], true, &other) &&
            other.device == stat.device && other.inode == stat.inode)
            is_same = true;
        free(own[i]);
    }
    return is_same;
}

static hob_status check_trust(const struct attempt *attempt)
{
    enum hob__trust_mode mode = attempt->loader->env.trust;
    const char *fault = NULL;
    hob_status st;

    if (mode == HOB__TRUST_OFF)
        return HOB_OK;
    st = hob__loader_trust(attempt->loader, attempt->candidate, attempt->path,
                           &fault);
    if (st)
        return hob_error_set(attempt->error, st, "%s: out of memory",
                             attempt->path);
    if (!fault)
        return HOB_OK;
    if (mode == HOB__TRUST_STRICT)
        return refuse(attempt, HOB__REASON_UNTRUSTED, attempt->path, fault);
    hob__log_write(attempt->loader->log, HOB__SEVERITY_WARN, "loader",
                   "%s: %s: %s", attempt->candidate->id,
                   hob__reason_text(HOB__REASON_UNTRUSTED), fault);
    return HOB_OK;
}

static hob_status check_hash(const struct attempt *attempt, int fd)
{
    const char *wanted = attempt->candidate->sha256;
    char hex[65];
    int code;

    if (!wanted)
        return HOB_OK;
    code = hob__sha256_file(attempt->os, fd, hex);
    if (code)
        return refuse_code(attempt, HOB__REASON_LIBRARY_MISSING, code);
    if (!strcmp(hex, wanted))
        return HOB_OK;
    *attempt->out_reason = HOB__REASON_HASH_MISMATCH;
    return hob_error_set(attempt->error, HOB_ERR_PLUGIN,
                         "%s: its SHA-256 is %s, it should be %s",
                         attempt->path, hex, wanted);
}

static hob_status check_open(struct attempt *attempt, int fd)
{
    int code = attempt->os->file_stat(attempt->os->self, fd, &attempt->stat);
    hob_status st;

    if (code)
        return refuse_code(attempt, HOB__REASON_LIBRARY_MISSING, code);
    if (attempt->stat.type != HOB_OS_REGULAR)
        return refuse(attempt, HOB__REASON_LIBRARY_NOT_REGULAR, attempt->path,
                      "not a regular file");
    if (is_self(attempt, attempt->path))
        return refuse(attempt, HOB__REASON_SELF, attempt->path,
                      "this is Hob or the program itself");
    st = check_trust(attempt);
    if (!st)
        st = hob__library_check(attempt->os, fd, attempt->stat.size,
                                attempt->path, attempt->out_reason,
                                attempt->error);
    return st ? st : check_hash(attempt, fd);
}

/* SEC-3: look into the file before the system maps it. */
static hob_status check_file(struct attempt *attempt)
{
    const struct hob_os_ops *os = attempt->os;
    const char *library = attempt->candidate->library;
    int code, fd;
    hob_status st;

    if (!strncmp(library, "system:", 7))
        return HOB_OK;
    code = os->real_path(os->self, library, &attempt->path);
    if (code == -ENOMEM)
        return hob_error_set(attempt->error, HOB_ERR_MEMORY,
                             "%s: out of memory", library);
    if (code)
        return refuse_code(attempt, HOB__REASON_LIBRARY_MISSING, code);
    fd = os->open_read(os->self, attempt->path);
    if (fd < 0)
        return refuse_code(attempt, HOB__REASON_LIBRARY_MISSING, fd);
    st = check_open(attempt, fd);
    os->close(os->self, fd);
    return st;
}

/* The system's words for "policy" differ from those for a broken library. */
static enum hob__reason reason_of(const char *message)
{
    static const char *const policies[] = {
        "code signature", "library validation", "Operation not permitted",
        "cannot enable executable stack", "failed to map segment"};
    size_t i;

    for (i = 0; message && i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strstr(message, policies[i]))
            return HOB__REASON_OS_POLICY;
    }
    return HOB__REASON_DLOPEN;
}

static hob_status open_library(struct attempt *attempt, void **out_handle)
{
    const struct hob_os_ops *os = attempt->os;
    const char *path =
        attempt->path ? attempt->path : attempt->candidate->library + 7;
    char *message = NULL;
    hob_status st;

    *out_handle = os->dl_open(os->self, path, &message);
    if (*out_handle)
        return HOB_OK;
    st = refuse(attempt, reason_of(message), path,
                message ? message : "cannot be loaded");
    free(message);
    return st;
}

/* Was what got mapped the file that was checked? */
static hob_status check_mapped(struct attempt *attempt, void *handle)
{
    const struct hob_os_ops *os = attempt->os;
    struct hob_os_stat stat = {0};
    char *mapped = NULL;
    hob_status st = HOB_OK;

    if (os->dl_path(os->self, handle, &mapped))
        mapped = NULL;
    if (mapped && is_self(attempt, mapped))
        st = refuse(attempt, HOB__REASON_SELF, mapped,
                    "this is Hob or the program itself");
    else if (attempt->path &&
             (os->path_stat(os->self, mapped ? mapped : attempt->path, true,
                            &stat) ||
              stat.device != attempt->stat.device ||
              stat.inode != attempt->stat.inode))
        st = refuse(attempt, HOB__REASON_LIBRARY_CHANGED, attempt->path,
                    "another file stands at this path now");
    free(mapped);
    return st;
}

/* An object pointer cannot be cast to a function's in ISO C; POSIX says that
 * the bytes are the same. */
static hob__entry_fn *as_entry(void *symbol)
{
    hob__entry_fn *entry = NULL;

    memcpy(&entry, &symbol, sizeof(entry));
    return entry;
}

static hob_status call_entry(struct attempt *attempt, hob__entry_fn *entry,
                             const struct hob_host *host,
                             struct hob__plugin *plugin)
{
    const struct hob__plugin_host self = hob__plugin_host_self(attempt->os);
    const struct hob_plugin *table;
    hob_status st;

    hob__loader_step(attempt->candidate, "entry");
    table = entry(host);
    hob__loader_step(attempt->candidate, "check");
    st = hob__plugin_check(table, plugin->path, &self, plugin, attempt->notes,
                           attempt->out_reason, attempt->error);
    if (!st && plugin->table.extension)
        st = hob__extension_check(attempt->loader, plugin, attempt->out_reason,
                                  attempt->error);
    return st;
}

static hob_status load_dynamic(struct attempt *attempt,
                               const struct hob_host *host,
                               struct hob__plugin *plugin)
{
    const struct hob_os_ops *os = attempt->os;
    void *handle = NULL, *symbol = NULL;
    hob_status st;

    hob__loader_step(attempt->candidate, "look");
    st = check_file(attempt);
    plugin->path = hob__loader_strdup(
        attempt->loader,
        attempt->path ? attempt->path : attempt->candidate->library);
    if (!st && !plugin->path)
        st = hob_error_set(attempt->error, HOB_ERR_MEMORY, "%s: out of memory",
                           attempt->candidate->library);
    if (st)
        return st;
    hob__loader_step(attempt->candidate, "dlopen");
    st = open_library(attempt, &handle);
    if (st)
        return st;
    st = check_mapped(attempt, handle);
    if (!st) {
        symbol = os->dl_symbol(os->self, handle, entry_symbol);
        if (!symbol)
            st = refuse(attempt, HOB__REASON_NO_ENTRY, plugin->path,
                        "no hob_plugin_entry");
    }
    if (!st)
        st = call_entry(attempt, as_entry(symbol), host, plugin);
    if (st)
        os->dl_close(os->self, handle);
    else
        plugin->handle = handle;
    return st;
}

hob_status hob__library_load(struct hob__loader *loader,
                             const struct hob__candidate *candidate,
                             const struct hob_host *host,
                             struct hob__plugin *plugin,
                             struct hob__text *notes,
                             enum hob__reason *out_reason, hob_error *error)
{
    struct attempt attempt;
    hob_status st;

    memset(&attempt, 0, sizeof(attempt));
    attempt.loader = loader;
    attempt.os = loader->os;
    attempt.candidate = candidate;
    attempt.out_reason = out_reason;
    attempt.notes = notes;
    attempt.error = error;
    *out_reason = HOB__REASON_OK;
    plugin->candidate = candidate;
    plugin->manifest = candidate->manifest;
    if (candidate->entry) {
        plugin->path = candidate->path;
        return call_entry(&attempt, candidate->entry, host, plugin);
    }
    st = load_dynamic(&attempt, host, plugin);
    free(attempt.path);
    return st;
}
