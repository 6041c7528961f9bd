/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the decorator "record": it writes the calls of a program down as
 * a file that hob eval runs again. It is also the decorator to copy.
 *
 * The life of a decorator
 *
 * 1. The core reads the manifest (manifests/record.json.in): an id, a
 *    selector, options, and what to do with ops that do not list the
 *    decorator: "unlisted": "pass". No library is opened yet.
 * 2. Somebody opens the device "record{path=bug.json}(flex)". The core opens
 *    the library, takes the table from hob_plugin_entry() and calls open()
 *    once a runtime: what it makes is the instance. What a plugin remembers
 *    it remembers there; there are no global variables.
 * 3. layer_open() makes one layer for this device: it gets the options, the
 *    device below and its level, counted from 1 next to the base. Every
 *    device that has the same layer on the same device below shares it. Two
 *    threads may open the same device at once: one of the layers is closed
 *    again, unused, so a layer does nothing before its first call that
 *    another could suffer from.
 * 4. Each op on a tensor of the device comes to call(), from the top layer
 *    down; several threads may call at once. A layer looks at it and
 *      - returns HOB_LAYER_PASS: it has nothing to do. This costs nothing.
 *      - runs it one level down with host->next() and returns HOB_LAYER_DONE:
 *        around next() is the place for a behaviour.
 *      - returns HOB_LAYER_NO_RULE: the core takes the op apart, where that
 *        is allowed, and its parts come one by one.
 * 5. What a layer knows of a tensor hangs from the handle: one state word a
 *    level. state_retain() is called where another handle is made of the same
 *    elements, state_release() where a handle dies. No table of tensors is
 *    needed, and nothing can be forgotten. A layer that wants elements to
 *    live on keeps host->alias(tensor, level - 1), never the handle itself:
 *    that would keep its own state word alive in a circle.
 * 6. layer_close(), then close(), when the runtime is closed: no tensor is
 *    left by then, and every state word has been released.
 *
 * This layer: call() writes a line before next(), so that a crash leaves the
 * call that crashed at the end of the file, and writes it again after. A
 * state word points at a struct rec_value, which has the name in the program.
 * A value that dies and was no argument of any step is an output.
 */
#include "record.h"

#include <hob/ext/message.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of log_write: shown unless the user says otherwise. */
enum { SEVERITY_ERROR = 3 };

/* ---- the instance ---- */

static hob_status plugin_open(const struct hob_host *host, const char *options,
                              void **out_instance, char **out_message)
{
    struct rec_instance *instance = malloc(sizeof(*instance));

    (void)options; /* the layers read theirs */
    *out_instance = instance;
    if (!instance)
        return hob_say(host, out_message, HOB_ERR_MEMORY, "record: no memory");
    instance->host = host;
    atomic_init(&instance->is_forked, 0);
    return HOB_OK;
}

static void plugin_close(void *instance)
{
    free(instance);
}

/* The files are the parent's: in the child nothing is recorded. */
static void after_fork_child(void *instance)
{
    atomic_store(&((struct rec_instance *)instance)->is_forked, 1);
}

/* ---- layers ---- */

void rec_stop_locked(struct rec_layer *layer, const char *format, ...)
{
    char why[512];
    va_list args;

    if (atomic_exchange(&layer->is_off, 1))
        return;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    layer->host->log_write(layer->host, SEVERITY_ERROR,
                           "record stops here, the program goes on: %s", why);
}

void rec_stop_journal_locked(struct rec_layer *layer, int failed)
{
    rec_stop_locked(layer, "%s: %s", layer->journal.path,
                    failed == EBUSY
                        ? "something else writes to this file, too: give each "
                          "record{path=...} a file of its own"
                        : strerror(failed));
}

/* The memory of a layer, whose files are closed. */
static void layer_free(struct rec_layer *layer)
{
    free(layer->outputs);
    free(layer->inputs);
    pthread_mutex_destroy(&layer->lock);
    free(layer);
}

/* All handles are gone: the outputs are known. */
static void layer_close(void *instance)
{
    struct rec_layer *layer = (struct rec_layer *)instance;
    char *outputs = rec_is_off(layer) ? NULL : rec_outputs_text(layer);
    int failed = rec_journal_finish(&layer->journal, outputs);

    if (failed)
        rec_stop_journal_locked(layer, failed);
    free(outputs);
    rec_journal_close(&layer->journal);
    layer_free(layer);
}

static hob_status layer_open(void *opaque, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    const struct rec_instance *instance = (struct rec_instance *)opaque;
    struct rec_layer *layer = calloc(1, sizeof(*layer));
    hob_status status;
    char *path = NULL;
    int failed;

    (void)below; /* next() finds it */
    *out_layer = NULL;
    if (!layer)
        return hob_say(instance->host, out_message, HOB_ERR_MEMORY,
                       "record: no memory for a layer");
    layer->instance = instance;
    layer->host = instance->host;
    layer->level = level;
    atomic_init(&layer->is_off, 0);
    pthread_mutex_init(&layer->lock, NULL);
    status = rec_options_read(layer, options, &path, out_message);
    if (!status) {
        failed = rec_journal_open(&layer->journal, path, layer->host->version);
        if (failed)
            status = hob_say(layer->host, out_message, HOB_ERR_IO,
                             "record: %s cannot be written: %s: give "
                             "another one, as in "
                             "record{path=/tmp/bug.json}",
                             path, strerror(failed));
    }
    if (status) {
        free(path);
        layer_free(layer);
    } else {
        *out_layer = layer;
    }
    return status;
}

/* ---- calls ---- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t layer_call(void *instance, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    struct rec_layer *layer = (struct rec_layer *)instance;
    struct rec_step step;
    uint64_t start;
    int ok;

    (void)impl; /* an extension's own recording would be impl->layer */
    if (rec_is_off(layer))
        return HOB_LAYER_PASS;
    pthread_mutex_lock(&layer->lock);
    ok = rec_step_begin_locked(layer, call, &step);
    pthread_mutex_unlock(&layer->lock);
    if (!ok)
        return HOB_LAYER_PASS;
    start = now_ns();
    *out_status = layer->host->next(call); /* without the lock */
    start = now_ns() - start;
    pthread_mutex_lock(&layer->lock);
    rec_step_end_locked(layer, call, &step, *out_status, start);
    pthread_mutex_unlock(&layer->lock);
    return HOB_LAYER_DONE;
}

static void *state_retain(void *layer, void *state)
{
    (void)layer;
    atomic_fetch_add(&((struct rec_value *)state)->refs, 1);
    return state;
}

static void state_release(void *layer, void *state)
{
    struct rec_value *value = (struct rec_value *)state;

    if (atomic_fetch_sub(&value->refs, 1) == 1)
        rec_value_end((struct rec_layer *)layer, value);
}

/* A layer is found under this name by itself; see has_level() in step.c. */
static const void *interface(void *layer, const char *name, uint32_t version)
{
    (void)layer;
    return !strcmp(name, REC_INTERFACE) && version == 1 ? REC_INTERFACE : NULL;
}

/* ---- tables ---- */

static const struct hob_decorator decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = layer_call,
    .state_release = state_release,
    .state_retain = state_retain,
    .interface = interface,
};

static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD,    .id = "record",
    .version = "0.1.0",      .open = plugin_open,
    .close = plugin_close,   .after_fork_child = after_fork_child,
    .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
