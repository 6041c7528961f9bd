/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include "device.h"

#include <cube/flag.h>

#include <hob/ext/capture.h>
#include <hob/ext/message.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block {
    ccu_address address;
    uint64_t bytes; /* as it was asked for */
    uint32_t is_taken;
    uint32_t reserved;
};

struct ccu_graph {
    struct ccu_graph *next; /* of those with checks */
    struct CUgraphExec_st *exec;
    struct block *blocks;
    uint32_t block_count, block_room;
    uint32_t *flags; /* pinned; kernels lower them there; NULL: no checks */
    char (*names)[CCU_OP_NAME]; /* whose check each flag is */
    uint32_t check_count, check_room;
};

/* ---- the thread that records ---- */

hob_status ccu_recorder_init(struct ccu_device *device)
{
    if (pthread_mutex_init(&device->recorder.lock, NULL))
        return HOB_ERR_MEMORY;
    device->recorder.has_lock = 1;
    return HOB_OK;
}

void ccu_recorder_release(struct ccu_device *device)
{
    struct ccu_recorder *recorder = &device->recorder;

    if (recorder->stream)
        (void)device->driver->stream_destroy(recorder->stream);
    if (recorder->has_lock)
        pthread_mutex_destroy(&recorder->lock);
}

int ccu_is_recording(const struct ccu_device *device)
{
    const uintptr_t thread =
        atomic_load_explicit(&device->recorder.thread, memory_order_relaxed);

    return thread && thread == (uintptr_t)pthread_self();
}

struct CUstream_st *ccu_stream(const struct ccu_device *device)
{
    return ccu_is_recording(device) ? device->recorder.stream : device->stream;
}

hob_status ccu_refuse(struct ccu_device *device, const char *why)
{
    struct ccu_recorder *recorder = &device->recorder;

    if (!recorder->refused[0])
        snprintf(recorder->refused, sizeof(recorder->refused),
                 "%s cannot record what %s", device->name, why);
    return HOB_ERR_STATE;
}

/* ---- memory ---- */

/* Room for one more in a list of COUNT elements of SIZE bytes. */
static int has_room(void **list, uint32_t *room, uint32_t count, size_t size)
{
    const uint32_t wanted = *room ? 2 * *room : 32;
    void *grown;

    if (count < *room)
        return 1;
    grown = realloc(*list, wanted * size);
    if (!grown)
        return 0;
    *list = grown;
    *room = wanted;
    return 1;
}

static int add_block(struct ccu_graph *graph, ccu_address address,
                     uint64_t bytes)
{
    void *list = graph->blocks;

    if (!has_room(&list, &graph->block_room, graph->block_count,
                  sizeof(*graph->blocks)))
        return 0;
    graph->blocks = list;
    graph->blocks[graph->block_count++] =
        (struct block){.address = address, .bytes = bytes, .is_taken = 1};
    return 1;
}

int ccu_graph_take(struct ccu_device *device, uint64_t bytes,
                   ccu_address *out_address)
{
    struct ccu_graph *graph = device->recorder.graph;
    uint32_t class;
    const uint64_t size = ccu_memory_size(bytes, &class);
    int result;

    for (uint32_t i = graph->block_count; i-- > 0;) {
        struct block *block = &graph->blocks[i];

        if (block->is_taken || ccu_memory_size(block->bytes, &class) != size)
            continue;
        block->is_taken = 1;
        *out_address = block->address;
        return CCU_OK;
    }
    result = ccu_take(device, bytes, out_address);
    if (!result && !add_block(graph, *out_address, bytes)) {
        ccu_memory_give(&device->memory, *out_address, bytes);
        *out_address = 0;
        result = CCU_OUT_OF_MEMORY;
    }
    return result;
}

int ccu_graph_give(struct ccu_device *device, ccu_address address)
{
    struct ccu_graph *graph = device->recorder.graph;

    for (uint32_t i = graph->block_count; i-- > 0;)
        if (graph->blocks[i].address == address) {
            graph->blocks[i].is_taken = 0;
            return 1;
        }
    return 0;
}

/* What is still taken is its taker's from now on; returns how many that are. */
static uint32_t leave_taken(struct ccu_graph *graph)
{
    uint32_t kept = 0;
    const uint32_t count = graph->block_count;

    for (uint32_t i = 0; i < count; i++)
        if (!graph->blocks[i].is_taken)
            graph->blocks[kept++] = graph->blocks[i];
    graph->block_count = kept;
    return count - kept;
}

/* ---- checks ---- */

/* Flags are written to when a check fails, which is seldom: memory of the host
 * is good enough, and nothing has to be copied. */
static hob_status begin_checks(struct ccu_device *device)
{
    struct ccu_graph *graph = device->recorder.graph;
    void *flags = NULL;
    const int result = device->driver->host_alloc(
        &flags, CCU_CHECKS * sizeof(uint32_t), 0);

    if (result)
        return ccu_check(device, "checks of a recording", result, NULL);
    graph->flags = flags;
    memset(flags, 0xff, CCU_CHECKS * sizeof(uint32_t));
    return HOB_OK;
}

hob_status ccu_flag_later(struct cube_device *opened, const char *op_name,
                          void **out_data)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    struct ccu_graph *graph = device->recorder.graph;
    hob_status status = HOB_OK;
    int is_pushed;
    void *list;

    *out_data = NULL;
    if (!ccu_is_recording(device))
        return HOB_OK;
    list = graph->names;
    if (graph->check_count == CCU_CHECKS)
        return ccu_refuse(device, "checks elements in so many places");
    if (!has_room(&list, &graph->check_room, graph->check_count,
                  sizeof(*graph->names)))
        return HOB_ERR_MEMORY;
    graph->names = list;
    if (!graph->flags) {
        is_pushed = ccu_enter(device);
        status = begin_checks(device);
        ccu_leave(device, is_pushed);
    }
    if (status)
        return status;
    snprintf(graph->names[graph->check_count], CCU_OP_NAME, "%s", op_name);
    *out_data = &graph->flags[graph->check_count++];
    return HOB_OK;
}

hob_status ccu_look_at_checks(struct ccu_device *device)
{
    const struct hob_host *host = device->cube.host;
    char text[CCU_REASON] = "";

    pthread_mutex_lock(&device->lock);
    for (struct ccu_graph *graph = device->checked; graph; graph = graph->next)
        for (uint32_t i = 0; i < graph->check_count; i++) {
            if (graph->flags[i] == CUBE_FLAG_NONE)
                continue;
            if (!text[0])
                snprintf(text, sizeof(text),
                         "%s: %s, in a step that was replayed, refused element "
                         "%u: an index out of range, or a division by zero; "
                         "the step's results are worth nothing",
                         device->name, graph->names[i], graph->flags[i]);
            graph->flags[i] = CUBE_FLAG_NONE;
        }
    pthread_mutex_unlock(&device->lock);
    if (!text[0])
        return HOB_OK;
    if (host->log_write)
        host->log_write(host, 3, "%s", text);
    return HOB_ERR_RANGE;
}

/* ---- graphs ---- */

static void unlink_checked(struct ccu_device *device,
                           const struct ccu_graph *graph)
{
    struct ccu_graph **link = &device->checked;

    pthread_mutex_lock(&device->lock);
    while (*link && *link != graph)
        link = &(*link)->next;
    if (*link)
        *link = graph->next;
    pthread_mutex_unlock(&device->lock);
}

/* End GRAPH, which nothing uses any more. */
static void drop(struct ccu_device *device, struct ccu_graph *graph)
{
    if (graph->exec)
        (void)device->driver->graph_exec_destroy(graph->exec);
    for (uint32_t i = 0; i < graph->block_count; i++)
        ccu_memory_give(&device->memory, graph->blocks[i].address,
                        graph->blocks[i].bytes);
    if (graph->flags)
        (void)device->driver->host_free(graph->flags);
    free(graph->blocks);
    free(graph->names);
    free(graph);
}

static int start(struct ccu_device *device)
{
    struct ccu_recorder *recorder = &device->recorder;
    int result = CCU_OK;

    if (!recorder->stream) {
        result = device->driver->stream_create(&recorder->stream,
                                               CCU_STREAM_NON_BLOCKING);
        if (result)
            recorder->stream = NULL;
    }
    return result ? result
                  : device->driver->stream_begin_capture(recorder->stream,
                                                         CCU_CAPTURE_RELAXED);
}

static hob_status begin(void *opened, char **out_message)
{
    struct ccu_device *device = opened;
    struct ccu_recorder *recorder = &device->recorder;
    hob_status status;
    int is_pushed;

    *out_message = NULL;
    pthread_mutex_lock(&recorder->lock);
    recorder->refused[0] = '\0';
    recorder->graph = calloc(1, sizeof(*recorder->graph));
    if (!recorder->graph) {
        pthread_mutex_unlock(&recorder->lock);
        return HOB_ERR_MEMORY;
    }
    is_pushed = ccu_enter(device);
    status = ccu_check_lost(device, out_message);
    if (!status)
        status = ccu_check(device, "cuStreamBeginCapture", start(device),
                           out_message);
    ccu_leave(device, is_pushed);
    if (status) {
        free(recorder->graph);
        recorder->graph = NULL;
        pthread_mutex_unlock(&recorder->lock);
        return status;
    }
    atomic_store_explicit(&recorder->thread, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
    return HOB_OK;
}

/* What was written down as GRAPH's, ready to be replayed. */
static hob_status finish(struct ccu_device *device, struct ccu_graph *graph,
                         int keep, char **out_message)
{
    const struct ccu_driver *driver = device->driver;
    struct CUstream_st *stream = device->recorder.stream;
    struct CUgraph_st *written = NULL;
    const uint32_t taken = leave_taken(graph);
    int result = driver->stream_end_capture(stream, &written);

    if (keep && !result && !taken && !device->recorder.refused[0])
        result = driver->graph_instantiate(&graph->exec, written, 0);
    if (written)
        (void)driver->graph_destroy(written);
    if (device->recorder.refused[0])
        return hob_say(device->cube.host, out_message, HOB_ERR_UNSUPPORTED,
                       "%s", device->recorder.refused);
    if (taken && keep)
        return hob_say(device->cube.host, out_message, HOB_ERR_UNSUPPORTED,
                       "the step leaves %u tensors behind on %s besides its "
                       "results: a replay would change them",
                       taken, device->name);
    return keep ? ccu_check(device, "a recording", result, out_message)
                : HOB_OK;
}

static hob_status end(void *opened, int32_t keep, void **out_graph,
                      char **out_message)
{
    struct ccu_device *device = opened;
    struct ccu_recorder *recorder = &device->recorder;
    struct ccu_graph *graph = recorder->graph;
    const int is_pushed = ccu_enter(device);
    hob_status status;

    *out_graph = NULL;
    *out_message = NULL;
    status = finish(device, graph, keep, out_message);
    atomic_store_explicit(&recorder->thread, 0, memory_order_relaxed);
    recorder->graph = NULL;
    if (!keep || status) {
        drop(device, graph);
    } else {
        *out_graph = graph;
        if (graph->check_count) {
            pthread_mutex_lock(&device->lock);
            graph->next = device->checked;
            device->checked = graph;
            pthread_mutex_unlock(&device->lock);
        }
    }
    ccu_leave(device, is_pushed);
    pthread_mutex_unlock(&recorder->lock);
    return status;
}

static hob_status replay(void *opened, void *graph, char **out_message)
{
    struct ccu_device *device = opened;
    const struct ccu_graph *recorded = graph;
    hob_status status;
    int is_pushed;

    *out_message = NULL;
    status = ccu_begin(device, "a recorded step", &is_pushed, out_message);
    if (status)
        return status;
    status = ccu_check(
        device, "cuGraphLaunch",
        device->driver->graph_launch(recorded->exec, ccu_stream(device)),
        out_message);
    return ccu_end(device, is_pushed, status, out_message);
}

static void graph_free(void *opened, void *graph)
{
    struct ccu_device *device = opened;
    const int is_pushed = ccu_enter(device);

    /* A replay may be on its way. */
    (void)device->driver->stream_wait(device->stream);
    unlink_checked(device, graph);
    drop(device, graph);
    ccu_leave(device, is_pushed);
}

const struct hob_capture_interface ccu_capture = {
    .struct_size = sizeof(ccu_capture),
    .version = HOB_CAPTURE_INTERFACE_VERSION,
    .begin = begin,
    .end = end,
    .replay = replay,
    .graph_free = graph_free,
};
