/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.c - flex_parallel() on fewer threads than the host has.
 *
 * The host is asked for as many pieces as threads may run; each of them takes
 * parts of the range until none is left. The parts are those that the host
 * itself would cut, so the option "threads" changes no result.
 */
#include "flex.h"

#include <stdatomic.h>

enum { PARTS_MAX = 256 }; /* of the host's pool */

struct parts {
    _Atomic int64_t next;
    int64_t parts, count, grain;
    hob_range_fn fn;
    void *context;
};

static void take_parts(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct parts *job = context;
    const int64_t units = job->count / job->grain;
    const int64_t each = units / job->parts;
    const int64_t more = units % job->parts; /* parts of one unit more */

    (void)first;
    (void)last;
    for (;;) {
        const int64_t i =
            atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        int64_t start, end;

        if (i >= job->parts)
            break;
        start = i * each + (i < more ? i : more);
        end = start + each + (i < more);
        job->fn(job->context, start * job->grain,
                i + 1 == job->parts ? job->count : end * job->grain, worker);
    }
}

void flex_parallel_limited(const struct flex_device *device, int64_t count,
                           int64_t grain, hob_range_fn fn, void *context)
{
    struct parts job = {
        .count = count, .grain = grain, .fn = fn, .context = context};

    job.parts = count / grain < PARTS_MAX ? count / grain : PARTS_MAX;
    device->host->parallel_for(device->host, device->threads, 1, take_parts,
                               &job);
}
