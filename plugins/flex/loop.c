/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <string.h>

/* ---- describing ---- */

/* Append a dimension outside of none, inside of those already there: merge it
 * with the one before where the two walk memory as one. */
static void loop_append(struct flex_loop *loop, int64_t size, int64_t stride)
{
    uint32_t last = loop->rank - 1;

    loop->count *= size;
    if (size == 1)
        return;
    if (loop->rank && loop->strides[last] == stride * size) {
        loop->shape[last] *= size;
        loop->strides[last] = stride;
        return;
    }
    loop->shape[loop->rank] = size;
    loop->strides[loop->rank] = stride;
    loop->rank++;
}

static void loop_begin(struct flex_loop *loop, const struct hob_view *view)
{
    loop->data = view->data;
    loop->size = hob_dtype_size(view->dtype);
    loop->rank = 0;
    loop->count = 1;
}

void flex_loop_init(struct flex_loop *loop, const struct hob_view *view)
{
    loop_begin(loop, view);
    for (uint32_t i = 0; i < view->rank; i++)
        loop_append(loop, view->shape[i], view->strides[i]);
}

void flex_loop_broadcast(struct flex_loop *loop, const struct hob_view *view,
                         uint32_t rank, const int64_t *shape)
{
    uint32_t missing = rank - view->rank;

    loop_begin(loop, view);
    for (uint32_t i = 0; i < rank; i++) {
        int own = i >= missing && view->shape[i - missing] != 1;

        loop_append(loop, shape[i], own ? view->strides[i - missing] : 0);
    }
}

void flex_loop_unordered(struct flex_loop *loop, const struct hob_view *view)
{
    int64_t shape[HOB_MAX_RANK], strides[HOB_MAX_RANK];
    uint32_t rank = 0;

    loop_begin(loop, view);
    for (uint32_t i = 0; i < view->rank; i++) {
        int64_t size = view->shape[i], stride = view->strides[i];
        uint32_t at = rank++;

        if (stride < 0 && size > 0) {
            loop->data += (size - 1) * stride * (int64_t)loop->size;
            stride = -stride;
        }
        for (; at > 0 && strides[at - 1] < stride; at--) {
            shape[at] = shape[at - 1];
            strides[at] = strides[at - 1];
        }
        shape[at] = size;
        strides[at] = stride;
    }
    for (uint32_t i = 0; i < rank; i++)
        loop_append(loop, shape[i], strides[i]);
}

void flex_loop_without(struct flex_loop *loop, const struct hob_view *view,
                       uint32_t dim)
{
    loop_begin(loop, view);
    for (uint32_t i = 0; i < view->rank; i++)
        if (i != dim)
            loop_append(loop, view->shape[i], view->strides[i]);
}

/* ---- walking ---- */

/* Where a walk along the innermost dimension stands. */
struct cursor {
    int64_t index[HOB_MAX_RANK];
    int64_t offset; /* in elements */
};

static void cursor_set(struct cursor *cursor, const struct flex_loop *loop,
                       int64_t index)
{
    cursor->offset = 0;
    for (uint32_t i = loop->rank; i-- > 0;) {
        int64_t size = loop->shape[i];

        cursor->index[i] = index % size;
        index /= size;
        cursor->offset += cursor->index[i] * loop->strides[i];
    }
}

/* Go on by STEP elements, which end at most at the end of the innermost
 * dimension. */
static void cursor_advance(struct cursor *cursor, const struct flex_loop *loop,
                           int64_t step)
{
    uint32_t i = loop->rank - 1;

    cursor->index[i] += step;
    cursor->offset += step * loop->strides[i];
    while (cursor->index[i] == loop->shape[i] && i > 0) {
        cursor->offset -= loop->shape[i] * loop->strides[i];
        cursor->index[i] = 0;
        i--;
        cursor->index[i]++;
        cursor->offset += loop->strides[i];
    }
}

int64_t flex_loop_offset(const struct flex_loop *loop, int64_t index)
{
    struct cursor cursor;

    if (loop->rank == 1)
        return index * loop->strides[0];
    cursor_set(&cursor, loop, index);
    return cursor.offset;
}

/* ---- copying ---- */

#define T uint8_t
#define SUFFIX(name) name##_8
#include "loop_tmpl.h"
#define T uint16_t
#define SUFFIX(name) name##_16
#include "loop_tmpl.h"
#define T uint32_t
#define SUFFIX(name) name##_32
#include "loop_tmpl.h"
#define T uint64_t
#define SUFFIX(name) name##_64
#include "loop_tmpl.h"

void flex_copy_strided(void *out, int64_t out_stride, const void *in,
                       int64_t in_stride, int64_t count, uint32_t size)
{
    if (in_stride == 1 && out_stride == 1)
        memcpy(out, in, (size_t)count * size);
    else if (size == 1)
        copy_8(out, out_stride, in, in_stride, count);
    else if (size == 2)
        copy_16(out, out_stride, in, in_stride, count);
    else if (size == 4)
        copy_32(out, out_stride, in, in_stride, count);
    else
        copy_64(out, out_stride, in, in_stride, count);
}

/* The elements from CURSOR to the end of its row, LEFT at most. */
static int64_t run_length(const struct cursor *cursor,
                          const struct flex_loop *loop, int64_t left)
{
    uint32_t inner = loop->rank - 1;
    int64_t run = loop->shape[inner] - cursor->index[inner];

    return run < left ? run : left;
}

void flex_loop_gather(const struct flex_loop *loop, int64_t first,
                      int64_t count, void *out)
{
    struct cursor cursor;
    char *to = out;

    if (loop->rank == 0) {
        if (count > 0)
            memcpy(to, loop->data, loop->size);
        return;
    }
    cursor_set(&cursor, loop, first);
    while (count > 0) {
        int64_t run = run_length(&cursor, loop, count);

        flex_copy_strided(to, 1, loop->data + cursor.offset * loop->size,
                          loop->strides[loop->rank - 1], run, loop->size);
        to += run * loop->size;
        count -= run;
        cursor_advance(&cursor, loop, run);
    }
}

void flex_loop_scatter(const struct flex_loop *loop, int64_t first,
                       int64_t count, const void *from)
{
    struct cursor cursor;
    const char *in = from;

    if (loop->rank == 0) {
        if (count > 0)
            memcpy(loop->data, in, loop->size);
        return;
    }
    cursor_set(&cursor, loop, first);
    while (count > 0) {
        int64_t run = run_length(&cursor, loop, count);

        flex_copy_strided(loop->data + cursor.offset * loop->size,
                          loop->strides[loop->rank - 1], in, 1, run,
                          loop->size);
        in += run * loop->size;
        count -= run;
        cursor_advance(&cursor, loop, run);
    }
}

const void *flex_loop_fetch(const struct flex_loop *loop, int64_t first,
                            int64_t count, void *buffer)
{
    uint32_t inner = loop->rank - 1;

    if (loop->rank == 0)
        return loop->data;
    if (loop->strides[inner] == 1) {
        if (loop->rank == 1)
            return loop->data + first * loop->size;
        if (first % loop->shape[inner] + count <= loop->shape[inner])
            return loop->data + flex_loop_offset(loop, first) * loop->size;
    }
    flex_loop_gather(loop, first, count, buffer);
    return buffer;
}

int64_t flex_loop_repeat_key(const struct flex_loop *loop, int64_t first,
                             int64_t n)
{
    const uint32_t inner = loop->rank - 1;

    if (loop->rank == 0)
        return 0;
    if (loop->strides[inner] == 0 &&
        first % loop->shape[inner] + n <= loop->shape[inner])
        return first / loop->shape[inner];
    if (loop->rank == 2 && loop->strides[0] == 0)
        return first % loop->shape[1];
    return -1;
}
