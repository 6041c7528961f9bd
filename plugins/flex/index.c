/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether all of N indices are 0 .. SIZE - 1: neither they nor what is left to
 * the last have the sign bit. */
static int all_inside(const int64_t *indices, int64_t n, int64_t size)
{
    const uint64_t last = (uint64_t)size - 1;
    uint64_t signs = size > 0 ? 0 : UINT64_MAX;

    for (int64_t i = 0; i < n; i++)
        signs |= (uint64_t)indices[i] | (last - (uint64_t)indices[i]);
    return n <= 0 || (int64_t)signs >= 0;
}

/* N <= FLEX_BLOCK elements of LOOP from FIRST on, where they lie or in OUT. */
static const int64_t *fetch(const struct flex_device *device,
                            const struct flex_loop *loop, uint32_t dtype,
                            int64_t first, int64_t n, int64_t *out)
{
    char block[FLEX_BLOCK * 8];

    if (dtype == HOB_DTYPE_I64 || dtype == HOB_DTYPE_U64)
        return flex_loop_fetch(loop, first, n, out);
    device->kernels->cast[HOB_DTYPE_I64][dtype](
        out, flex_loop_fetch(loop, first, n, block), n);
    return out;
}

int64_t flex_index_read(const struct flex_device *device,
                        const struct flex_loop *loop, uint32_t dtype,
                        int64_t first, int64_t count, int64_t size,
                        int64_t *out)
{
    for (int64_t i = 0; i < count; i += FLEX_BLOCK) {
        const int64_t n = count - i < FLEX_BLOCK ? count - i : FLEX_BLOCK;
        const int64_t *in = fetch(device, loop, dtype, first + i, n, out + i);

        if (in != out + i)
            memcpy(out + i, in, (size_t)n * 8);
        if (all_inside(in, n, size))
            continue;
        for (int64_t j = i; j < i + n; j++)
            if ((uint64_t)out[j] >= (uint64_t)size) /* negative ones are huge */
                return j;
    }
    return -1;
}

void flex_indices_open(struct flex_indices *out, struct flex_device *device,
                       const struct hob_view *view, int64_t size)
{
    out->device = device;
    out->view = view;
    out->size = size;
    out->outside = 0;
    flex_loop_init(&out->loop, view);
}

const int64_t *flex_indices_read(struct flex_indices *indices, int64_t first,
                                 int64_t count, int64_t *buffer)
{
    const int64_t *list = fetch(indices->device, &indices->loop,
                                indices->view->dtype, first, count, buffer);

    if (all_inside(list, count, indices->size))
        return list;
    __atomic_store_n(&indices->outside, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* "[3, 0]": logical element INDEX of VIEW as a position. */
static void position_text(const struct hob_view *view, int64_t index,
                          char *text, size_t text_size)
{
    int64_t at[HOB_MAX_RANK];
    size_t used = 0;

    for (uint32_t i = view->rank; i-- > 0;) {
        at[i] = index % view->shape[i];
        index /= view->shape[i];
    }
    text[0] = '\0';
    for (uint32_t i = 0; i < view->rank && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%" PRId64,
                                 i ? ", " : "", at[i]);
}

/* Say which of INDICES is outside, the first of them. */
static hob_status fail_outside(struct hob_call *call,
                               const struct flex_indices *indices)
{
    char text[HOB_MAX_RANK * 24];
    int64_t block[FLEX_BLOCK];

    for (int64_t i = 0; i < indices->loop.count; i += FLEX_BLOCK) {
        const int64_t left = indices->loop.count - i;
        const int64_t bad = flex_index_read(
            indices->device, &indices->loop, indices->view->dtype, i,
            left < FLEX_BLOCK ? left : FLEX_BLOCK, indices->size, block);

        if (bad < 0)
            continue;
        position_text(indices->view, i + bad, text, sizeof(text));
        return call->host->fail(
            call, HOB_ERR_RANGE,
            "%s: indices[%s] is %" PRId64 ", outside of 0..%" PRId64
            " (negative indices do not count from the end)",
            call->op_name, text, block[bad], indices->size - 1);
    }
    return HOB_OK;
}

hob_status flex_indices_close(struct hob_call *call,
                              struct flex_indices *indices)
{
    return indices->outside ? fail_outside(call, indices) : HOB_OK;
}

/* All of an index tensor to LIST; NULL: only checked. */
struct take {
    struct flex_indices indices;
    int64_t *list;
};

static void take_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct take *take = context;
    int64_t block[FLEX_BLOCK];

    (void)worker;
    for (int64_t i = first; i < last; i += FLEX_BLOCK) {
        const int64_t n = last - i < FLEX_BLOCK ? last - i : FLEX_BLOCK;
        int64_t *to = take->list ? take->list + i : block;
        const int64_t *from = flex_indices_read(&take->indices, i, n, to);

        if (from && from != to && take->list)
            memcpy(to, from, (size_t)n * 8);
    }
}

hob_status flex_index_take(struct hob_call *call, struct flex_device *device,
                           const struct hob_view *view, int64_t size,
                           const int64_t **out_indices, uint64_t *out_bytes)
{
    const int64_t count = hob_view_count(view);
    const int in_place =
        view->dtype == HOB_DTYPE_I64 && flex_is_contiguous(view) && count > 0;
    struct take take = {.list = NULL};
    hob_status st;

    *out_bytes = in_place ? 0 : ((uint64_t)count + 1) * 8;
    *out_indices = view->data;
    if (!in_place) {
        *out_indices = take.list = flex_scratch_take(device, *out_bytes);
        if (!take.list)
            return call->host->fail(call, HOB_ERR_MEMORY,
                                    "%s: no memory for %" PRId64 " indices",
                                    call->op_name, count);
    }
    flex_indices_open(&take.indices, device, view, size);
    flex_parallel(device, count, FLEX_GRAIN_CHEAP / 2, take_range, &take);
    st = flex_indices_close(call, &take.indices);
    if (st) {
        flex_index_give(device, *out_indices, *out_bytes);
        *out_indices = NULL;
    }
    return st;
}

void flex_index_give(struct flex_device *device, const int64_t *indices,
                     uint64_t bytes)
{
    if (bytes)
        flex_scratch_give(device, (void *)(uintptr_t)indices, bytes);
}

hob_status flex_index_take_rows(struct hob_call *call,
                                struct flex_device *device,
                                const struct hob_view *view,
                                const struct hob_view *x,
                                const int64_t *strides, int64_t **out_offsets,
                                uint64_t *out_bytes)
{
    const uint32_t last = view->rank - 1u;
    const int64_t k = view->shape[last];
    const int64_t count = hob_view_count(view) / k;
    struct hob_view column = *view;
    int64_t at[FLEX_BLOCK], *offsets;
    char text[HOB_MAX_RANK * 24];

    *out_bytes = (uint64_t)count * 8;
    *out_offsets = offsets = flex_scratch_take(device, *out_bytes);
    if (!offsets)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " positions",
                                call->op_name, count);
    memset(offsets, 0, (size_t)*out_bytes);
    column.shape[last] = 1;
    for (int64_t c = 0; c < k; c++) {
        struct flex_loop loop;

        column.data = (char *)view->data +
                      c * view->strides[last] * hob_dtype_size(view->dtype);
        flex_loop_init(&loop, &column);
        for (int64_t i = 0; i < count; i += FLEX_BLOCK) {
            int64_t n = count - i < FLEX_BLOCK ? count - i : FLEX_BLOCK;
            int64_t bad = flex_index_read(device, &loop, view->dtype, i, n,
                                          x->shape[c], at);

            for (int64_t j = 0; bad < 0 && j < n; j++)
                offsets[i + j] += at[j] * strides[c];
            if (bad < 0)
                continue;
            position_text(view, (i + bad) * k + c, text, sizeof(text));
            call->host->fail(call, HOB_ERR_RANGE,
                             "%s: indices[%s] is %" PRId64
                             ", outside of 0..%" PRId64 ", dimension %" PRId64
                             " of x (negative indices do not count from the "
                             "end)",
                             call->op_name, text, at[bad], x->shape[c] - 1, c);
            flex_scratch_give(device, offsets, *out_bytes);
            *out_offsets = NULL;
            return HOB_ERR_RANGE;
        }
    }
    return HOB_OK;
}
