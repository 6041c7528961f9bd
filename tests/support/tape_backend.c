/* SPDX-License-Identifier: Apache-2.0 */
#include "tape_backend.h"

#include "mock/reference_backend.h"

#include <hob/ext/capture.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 64, MOST_ITEMS = 4096, MOST_BLOCKS = 4096 };

const char *const tape_backend_manifest =
    "{\"manifest_version\": 1, \"id\": \"tape\", \"version\": \"0.1.0\","
    " \"kind\": \"backend\","
    " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
    " \"backend\": {\"selector\": \"tape\"}}";

/* A call, or a copy where it has no entry. */
struct item {
    const struct hob_entry *entry;
    struct hob_call call;
    void *to;
    const void *from;
    size_t bytes;
};

struct block {
    void *data;
    uint64_t bytes;
    int is_taken;
};

struct graph {
    struct item items[MOST_ITEMS];
    struct block blocks[MOST_BLOCKS];
    int item_count, block_count;
};

struct tape {
    struct hob_host host; /* with a fail of our own, for replays */
    pthread_mutex_t lock; /* held by the thread that records */
    _Atomic uintptr_t thread;
    struct graph *graph;
    const char *refused;
    _Atomic int failed; /* the status of a replay, until somebody waits */
};

static atomic_int_fast64_t calls, replays, copies, recorded, graphs, blocks;

struct tape_counts tape_counts(void)
{
    return (struct tape_counts){atomic_load(&calls),  atomic_load(&replays),
                                atomic_load(&copies), atomic_load(&recorded),
                                atomic_load(&graphs), atomic_load(&blocks)};
}

static int is_recording(const struct tape *tape)
{
    return atomic_load(&tape->thread) == (uintptr_t)pthread_self();
}

static hob_status refuse(struct tape *tape, const char *why)
{
    if (!tape->refused)
        tape->refused = why;
    return HOB_ERR_STATE;
}

/* ---- memory ---- */

static hob_status take(void *device, uint64_t bytes, void **out_data)
{
    struct tape *tape = device;
    struct graph *graph = is_recording(tape) ? tape->graph : NULL;

    for (int i = 0; graph && i < graph->block_count; i++) {
        struct block *block = &graph->blocks[i];

        if (!block->is_taken && block->bytes == bytes) {
            block->is_taken = 1;
            *out_data = block->data;
            return HOB_OK;
        }
    }
    *out_data = aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64);
    if (!*out_data)
        return HOB_ERR_MEMORY;
    atomic_fetch_add(&blocks, 1);
    if (graph && graph->block_count == MOST_BLOCKS)
        return refuse(tape, "takes too many blocks");
    if (graph)
        graph->blocks[graph->block_count++] =
            (struct block){*out_data, bytes, 1};
    return HOB_OK;
}

static void give(void *device, void *data, uint64_t bytes)
{
    struct tape *tape = device;
    struct graph *graph = is_recording(tape) ? tape->graph : NULL;

    for (int i = 0; graph && i < graph->block_count; i++)
        if (graph->blocks[i].data == data) {
            graph->blocks[i].is_taken = 0;
            return;
        }
    if (data) {
        memset(data, 0xdd, (size_t)bytes); /* whoever reads it finds out */
        atomic_fetch_sub(&blocks, 1);
    }
    free(data);
}

static hob_status upload(void *device, void *data, const void *host_data,
                         uint64_t bytes)
{
    struct tape *tape = device;

    if (is_recording(tape))
        return refuse(tape, "tape cannot record an upload");
    memcpy(data, host_data, (size_t)bytes);
    return HOB_OK;
}

static hob_status sync_tape(void *device)
{
    struct tape *tape = device;

    if (is_recording(tape))
        return refuse(tape, "tape cannot record a wait");
    return (hob_status)atomic_exchange(&tape->failed, HOB_OK);
}

static hob_status download(void *device, void *host_data, const void *data,
                           uint64_t bytes)
{
    struct tape *tape = device;

    if (is_recording(tape))
        return refuse(tape, "tape cannot record a download");
    memcpy(host_data, data, (size_t)bytes);
    return sync_tape(device);
}

/* ---- calls as items ---- */

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);

    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

/* VALUE with all that it points to; tensors become their views alone. */
static void copy_value(hob_value *value)
{
    if (value->tag == HOB_TAG_TENSOR && value->u.tensor)
        value->u.tensor = copy_of(value->u.tensor, sizeof(struct hob_view));
    else if (value->tag == HOB_TAG_I64S || value->tag == HOB_TAG_F64S)
        value->u.i64s = copy_of(value->u.i64s, value->count * sizeof(int64_t));
    else if (value->tag == HOB_TAG_STR)
        value->u.str = strdup(value->u.str);
}

static void free_value(hob_value *value)
{
    void *data = NULL;

    if (value->tag == HOB_TAG_TENSOR)
        data = value->u.tensor;
    else if (value->tag == HOB_TAG_I64S || value->tag == HOB_TAG_F64S ||
             value->tag == HOB_TAG_STR)
        memcpy(&data, &value->u, sizeof(data));
    free(data);
}

static struct item *new_item(struct tape *tape)
{
    struct graph *graph = tape->graph;

    if (graph->item_count == MOST_ITEMS) {
        (void)refuse(tape, "tape is full");
        return NULL;
    }
    return &graph->items[graph->item_count++];
}

static hob_status write_down(struct tape *tape, const struct hob_entry *entry,
                             const struct hob_call *call)
{
    struct item *item = new_item(tape);

    if (!item)
        return HOB_ERR_STATE;
    item->entry = entry;
    item->call = *call;
    item->call.host = &tape->host;
    item->call.scope = NULL;
    item->call.core = NULL;
    item->call.args = copy_of(call->args, call->arg_count * sizeof(hob_value));
    item->call.rets = copy_of(call->rets, call->ret_count * sizeof(hob_value));
    item->call.metas =
        copy_of(call->metas, call->ret_count * sizeof(struct hob_meta));
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (call->args[i].tag == HOB_TAG_TENSORS)
            return refuse(tape, "tape cannot record lists");
        copy_value(&item->call.args[i]);
    }
    for (uint32_t i = 0; i < call->ret_count; i++)
        copy_value(&item->call.rets[i]);
    return HOB_OK;
}

static void free_item(struct item *item)
{
    if (!item->entry)
        return;
    for (uint32_t i = 0; i < item->call.arg_count; i++)
        free_value(&item->call.args[i]);
    for (uint32_t i = 0; i < item->call.ret_count; i++)
        free_value(&item->call.rets[i]);
    free(item->call.args);
    free(item->call.rets);
    free((void *)(uintptr_t)item->call.metas);
}

static const struct hob_backend *reference(void)
{
    return hob_plugin_entry_reference(NULL)->backend;
}

static hob_status execute(void *device, struct hob_call *call)
{
    struct tape *tape = device;

    for (uint32_t i = 0; i < reference()->entry_count; i++) {
        const struct hob_entry *entry = &reference()->entries[i];

        if (strcmp(entry->op, call->op_name))
            continue;
        if (is_recording(tape))
            return write_down(tape, entry, call);
        atomic_fetch_add(&calls, 1);
        return entry->execute(device, call);
    }
    return HOB_ERR_INTERNAL;
}

static hob_status copy(void *device, void *data, void *from_device,
                       const void *from_data, uint64_t bytes)
{
    struct tape *tape = device;
    struct item *item;

    if (device != from_device)
        return HOB_ERR_UNSUPPORTED;
    if (!is_recording(tape)) {
        atomic_fetch_add(&copies, 1);
        memmove(data, from_data, (size_t)bytes);
        return HOB_OK;
    }
    item = new_item(tape);
    if (!item)
        return HOB_ERR_STATE;
    item->to = data;
    item->from = from_data;
    item->bytes = (size_t)bytes;
    return HOB_OK;
}

/* ---- the interface ---- */

static void drop(struct graph *graph)
{
    for (int i = 0; i < graph->item_count; i++)
        free_item(&graph->items[i]);
    for (int i = 0; i < graph->block_count; i++) {
        free(graph->blocks[i].data);
        atomic_fetch_sub(&blocks, 1);
    }
    free(graph);
    atomic_fetch_sub(&graphs, 1);
}

static hob_status begin(void *device, char **out_message)
{
    struct tape *tape = device;

    *out_message = NULL;
    pthread_mutex_lock(&tape->lock);
    tape->refused = NULL;
    tape->graph = calloc(1, sizeof(*tape->graph));
    atomic_fetch_add(&graphs, 1);
    atomic_store(&tape->thread, (uintptr_t)pthread_self());
    return HOB_OK;
}

/* What is still taken belongs to its taker; returns whether there was any. */
static int leave_taken(struct graph *graph)
{
    const int count = graph->block_count;
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (!graph->blocks[i].is_taken)
            graph->blocks[kept++] = graph->blocks[i];
    graph->block_count = kept;
    return kept < count;
}

static hob_status end(void *device, int32_t keep, void **out_graph,
                      char **out_message)
{
    struct tape *tape = device;
    struct graph *graph = tape->graph;

    *out_graph = *out_message = NULL;
    if (leave_taken(graph) && keep && !tape->refused)
        tape->refused = "tensors are left behind";
    if (tape->refused) {
        *out_message = tape->host.mem_alloc(&tape->host, 64);
        snprintf(*out_message, 64, "%s", tape->refused);
    }
    atomic_store(&recorded, graph->item_count);
    if (keep && !tape->refused)
        *out_graph = graph;
    else
        drop(graph);
    atomic_store(&tape->thread, 0);
    pthread_mutex_unlock(&tape->lock);
    return tape->refused ? HOB_ERR_UNSUPPORTED : HOB_OK;
}

static hob_status replay(void *device, void *recorded_graph, char **out_message)
{
    struct tape *tape = device;
    struct graph *graph = recorded_graph;

    *out_message = NULL;
    atomic_fetch_add(&replays, 1);
    for (int i = 0; i < graph->item_count; i++) {
        struct item *item = &graph->items[i];
        hob_status status = HOB_OK;

        if (item->entry)
            status = item->entry->execute(device, &item->call);
        else
            memmove(item->to, item->from, item->bytes);
        if (status)
            atomic_store(&tape->failed, (int)status);
    }
    return HOB_OK;
}

static void graph_free(void *device, void *graph)
{
    (void)device;
    drop(graph);
}

static const struct hob_capture_interface capture = {
    .struct_size = sizeof(capture),
    .version = HOB_CAPTURE_INTERFACE_VERSION,
    .begin = begin,
    .end = end,
    .replay = replay,
    .graph_free = graph_free,
};

static const void *find_interface(void *device, const char *name,
                                  uint32_t version)
{
    (void)device;
    return !strcmp(name, HOB_CAPTURE_INTERFACE) &&
                   version == HOB_CAPTURE_INTERFACE_VERSION
               ? &capture
               : NULL;
}

/* ---- the plugin ---- */

static hob_status fail_later(struct hob_call *call, hob_status status,
                             const char *format, ...)
{
    (void)call;
    (void)format;
    return status;
}

static hob_status device_open(void *instance, uint32_t ordinal,
                              const char *options, void **out_device,
                              char **out_message)
{
    struct tape *tape = calloc(1, sizeof(*tape));

    (void)ordinal;
    (void)options;
    (void)out_message;
    *out_device = tape;
    if (!tape)
        return HOB_ERR_MEMORY;
    memcpy(&tape->host, instance, sizeof(tape->host));
    tape->host.fail = fail_later;
    pthread_mutex_init(&tape->lock, NULL);
    return HOB_OK;
}

static void device_close(void *device)
{
    struct tape *tape = device;

    pthread_mutex_destroy(&tape->lock);
    free(tape);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct hob_entry entries[MOST_ENTRIES];
static struct hob_backend backend;
static struct hob_plugin plugin;

static void make_tables(void)
{
    plugin = *hob_plugin_entry_reference(NULL);
    backend = *plugin.backend;
    memcpy(entries, backend.entries, backend.entry_count * sizeof(entries[0]));
    for (uint32_t i = 0; i < backend.entry_count; i++) {
        const char *op = entries[i].op;

        entries[i].execute = execute;
        if (!strcmp(op, "add") || !strcmp(op, "sub") || !strcmp(op, "mul"))
            entries[i].flags |= HOB_ENTRY_IN_PLACE;
    }
    backend.entries = entries;
    backend.flags = 0;
    backend.device_open = device_open;
    backend.device_close = device_close;
    backend.alloc = take;
    backend.free = give;
    backend.upload = upload;
    backend.download = download;
    backend.sync = sync_tape;
    backend.interface = find_interface;
    backend.copy = copy;
    plugin.id = "tape";
    plugin.backend = &backend;
}

const struct hob_plugin *hob_plugin_entry_tape(const struct hob_host *host)
{
    (void)host;
    pthread_once(&once, make_tables);
    return &plugin;
}
