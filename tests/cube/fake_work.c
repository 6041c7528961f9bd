/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cuda_parts.h"

#include <stdlib.h>
#include <string.h>

struct CUgraph_st {
    struct fake_work *items;
    int count;
};

/* Its own copy of what was written. */
struct CUgraphExec_st {
    struct CUgraph_st graph;
};

static void add(const struct fake_work *work)
{
    int *to = (int *)(uintptr_t)work->params.to;

    for (int i = 0; i < work->params.count; i++)
        to[i] += work->params.step;
}

/* A flag of the kernel's, as of a check that fails, is lowered by it. */
static void lower(const struct fake_work *work)
{
    unsigned int *flag = (unsigned int *)(uintptr_t)work->params.to;

    if ((unsigned int)-work->params.count - 1u < *flag)
        *flag = (unsigned int)-work->params.count - 1u;
}

static int now(const struct CUstream_st *stream, const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_ADD:
        if (work->crashes)
            /* Seen by the next call, as with a real device. */
            fake_cuda.lost[stream->device] = CCU_ILLEGAL_ADDRESS;
        else if (work->params.count < 0)
            lower(work);
        else
            add(work);
        break;
    case FAKE_COPY:
        memcpy(work->to, work->from, work->bytes);
        break;
    default:
        fake_multiply(&work->product);
    }
    return 0;
}

int fake_do(struct CUstream_st *stream, const struct fake_work *work)
{
    struct CUgraph_st *graph = stream->written;
    struct fake_work *items;

    if (!graph)
        return now(stream, work);
    items = realloc(graph->items,
                    (size_t)(graph->count + 1) * sizeof(*graph->items));
    if (!items)
        return CCU_OUT_OF_MEMORY;
    graph->items = items;
    graph->items[graph->count++] = *work;
    return 0;
}

int fake_copy(void *to, const void *from, size_t bytes,
              struct CUstream_st *stream)
{
    const struct fake_work work = {
        .kind = FAKE_COPY, .to = to, .from = from, .bytes = bytes};

    return fake_do(stream, &work);
}

/* ---- graphs ---- */

int fake_stream_begin_capture(struct CUstream_st *stream, int mode)
{
    IN_CONTEXT("cuStreamBeginCapture_v2");
    if (mode != CCU_CAPTURE_RELAXED || stream->written)
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    stream->written = calloc(1, sizeof(*stream->written));
    fake_cuda.graphs++;
    return 0;
}

int fake_stream_end_capture(struct CUstream_st *stream,
                            struct CUgraph_st **graph)
{
    const int result = fake_fault("cuStreamEndCapture");

    *graph = stream->written;
    stream->written = NULL;
    if (result) {
        (void)fake_graph_destroy(*graph);
        *graph = NULL;
    }
    return result;
}

int fake_graph_instantiate(struct CUgraphExec_st **exec,
                           struct CUgraph_st *graph, unsigned long long flags)
{
    const size_t bytes = (size_t)graph->count * sizeof(graph->items[0]);

    IN_CONTEXT("cuGraphInstantiateWithFlags");
    if (flags)
        return 1;
    *exec = calloc(1, sizeof(**exec));
    (*exec)->graph.count = graph->count;
    (*exec)->graph.items = malloc(bytes + 1);
    if (bytes)
        memcpy((*exec)->graph.items, graph->items, bytes);
    fake_cuda.graphs++;
    return 0;
}

int fake_graph_destroy(struct CUgraph_st *graph)
{
    free(graph->items);
    free(graph);
    fake_cuda.graphs--;
    return 0;
}

int fake_graph_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    IN_CONTEXT("cuGraphLaunch");
    fake_cuda.graph_launches++;
    for (int i = 0; i < exec->graph.count; i++)
        (void)fake_do(stream, &exec->graph.items[i]);
    return 0;
}

int fake_graph_exec_destroy(struct CUgraphExec_st *exec)
{
    free(exec->graph.items);
    free(exec);
    fake_cuda.graphs--;
    return 0;
}
