/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t flex_index_read(const struct flex_device *device,
                        const struct flex_loop *loop, uint32_t dtype,
                        int64_t first, int64_t count, int64_t size,
                        int64_t *out)
{
    char block[FLEX_BLOCK * 8];

    for (int64_t i = 0; i < count; i += FLEX_BLOCK) {
        int64_t n = count - i < FLEX_BLOCK ? count - i : FLEX_BLOCK;
        const void *in = flex_loop_fetch(loop, first + i, n, block);
        uint64_t outside = 0;

        if (dtype == HOB_DTYPE_I64 || dtype == HOB_DTYPE_U64)
            memcpy(out + i, in, (size_t)n * 8);
        else
            device->kernels->cast[HOB_DTYPE_I64][dtype](out + i, in, n);
        for (int64_t j = 0; j < n; j++) /* negative ones are huge */
            outside |= (uint64_t)out[i + j] >= (uint64_t)size;
        for (int64_t j = 0; outside && j < n; j++)
            if ((uint64_t)out[i + j] >= (uint64_t)size)
                return i + j;
    }
    return -1;
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

/* The first of COUNT indices that is not in 0 .. SIZE - 1; -1 without one. */
static int64_t find_outside(const int64_t *indices, int64_t count, int64_t size)
{
    for (int64_t i = 0; i < count; i += FLEX_BLOCK) {
        const int64_t end = count - i < FLEX_BLOCK ? count : i + FLEX_BLOCK;
        uint64_t outside = 0;

        for (int64_t j = i; j < end; j++) /* negative ones are huge */
            outside |= (uint64_t)indices[j] >= (uint64_t)size;
        for (int64_t j = i; outside && j < end; j++)
            if ((uint64_t)indices[j] >= (uint64_t)size)
                return j;
    }
    return -1;
}

hob_status flex_index_take(struct hob_call *call, struct flex_device *device,
                           const struct hob_view *view, int64_t size,
                           const int64_t **out_indices, uint64_t *out_bytes)
{
    const int64_t count = hob_view_count(view);
    const int in_place =
        view->dtype == HOB_DTYPE_I64 && flex_is_contiguous(view) && count > 0;
    struct flex_loop loop;
    char text[HOB_MAX_RANK * 24];
    int64_t *copy = NULL;
    int64_t bad;

    *out_bytes = in_place ? 0 : ((uint64_t)count + 1) * 8;
    *out_indices = view->data;
    if (!in_place) {
        *out_indices = copy = flex_scratch_take(device, *out_bytes);
        if (!copy)
            return call->host->fail(call, HOB_ERR_MEMORY,
                                    "%s: no memory for %" PRId64 " indices",
                                    call->op_name, count);
        flex_loop_init(&loop, view);
    }
    bad = in_place ? find_outside(*out_indices, count, size)
                   : flex_index_read(device, &loop, view->dtype, 0, count, size,
                                     copy);
    if (bad < 0)
        return HOB_OK;
    position_text(view, bad, text, sizeof(text));
    call->host->fail(call, HOB_ERR_RANGE,
                     "%s: indices[%s] is %" PRId64 ", outside of 0..%" PRId64
                     " (negative indices do not count from the end)",
                     call->op_name, text, (*out_indices)[bad], size - 1);
    flex_index_give(device, *out_indices, *out_bytes);
    *out_indices = NULL;
    return HOB_ERR_RANGE;
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
