/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - trying a plugin in a child process (LOAD-7).
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "loader_internal.h"
#include "paths.h"

#include <stdlib.h>
#include <string.h>

struct probe {
    struct hob__loader *loader;
    const struct hob__candidate *candidate;
    const struct hob_host *host;
};

/*
 * In the child. It loads past the check for forks, which is about plugins that
 * were loaded before. Another thread of the parent may have held the lock when
 * the process was copied and is not here to give it back, so it starts anew.
 */
static int run_probe(void *context, int fd)
{
    const struct probe *probe = context;
    struct hob__plugin *plugin = calloc(1, sizeof(*plugin));
    struct hob__text notes = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;
    const char *message;
    hob_status st;

    if (!plugin || pthread_mutex_init(&probe->loader->mutex, NULL))
        return HOB_ERR_MEMORY;
    st = hob__library_load(probe->loader, probe->candidate, probe->host, plugin,
                           &notes, &reason, &error);
    if (st) {
        message = hob__error_text(&error);
        (void)probe->loader->os->write(probe->loader->os->self, fd, message,
                                       strlen(message));
    }
    hob__text_release(&notes);
    hob_error_release(&error);
    free(plugin);
    return st;
}

static hob_status judge(const struct probe *probe, enum hob_os_end end,
                        int code, const char *text, uint32_t timeout_ms,
                        hob_error *error)
{
    enum hob__reason reason = end == HOB_OS_SIGNALLED
                                  ? HOB__REASON_PROBE_CRASH
                                  : HOB__REASON_PROBE_TIMEOUT;
    struct hob__text detail = HOB__TEXT_INIT;

    if (end == HOB_OS_EXITED && code == HOB_OK)
        return HOB_OK;
    if (end == HOB_OS_EXITED)
        return hob_error_set(error, HOB_ERR_PLUGIN, "plugin %s: %s",
                             probe->candidate->id, text);
    if (end == HOB_OS_SIGNALLED)
        hob__text_printf(&detail, "signal %d", code);
    else
        hob__text_printf(&detail, "after %u ms", (unsigned)timeout_ms);
    hob__loader_refuse(probe->loader, probe->candidate, HOB__STATE_REFUSED,
                       reason, detail.data);
    (void)hob_error_set(error, HOB_ERR_PLUGIN, "plugin %s: %s: %s. %s",
                        probe->candidate->id, hob__reason_text(reason),
                        detail.data ? detail.data : "",
                        hob__reason_hint(reason));
    hob__text_release(&detail);
    return HOB_ERR_PLUGIN;
}

hob_status hob__loader_probe(struct hob__loader *loader,
                             const struct hob__candidate *candidate,
                             const struct hob_host *host, uint32_t timeout_ms,
                             hob_error *error)
{
    struct probe probe = {loader, candidate, host};
    enum hob_os_end end = HOB_OS_EXITED;
    char *text = NULL, buffer[64];
    int code = 0, failed;
    hob_status st;

    if (!hob__candidate_usable(candidate)) {
        const struct hob__plugin *plugin;

        /* Refused before: it says so in the same words. */
        return hob__loader_load(loader, candidate, host, &plugin, error);
    }
    failed = loader->os->run_child(loader->os->self, run_probe, &probe,
                                   timeout_ms, &end, &code, &text);
    if (failed)
        return hob_error_set(error, HOB_ERR_IO,
                             "plugin %s: no child process: "
                             "%s",
                             candidate->id,
                             hob__os_error(failed, buffer, sizeof(buffer)));
    st = judge(&probe, end, code, text, timeout_ms, error);
    free(text);
    return st;
}
