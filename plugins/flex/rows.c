/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "convert.h"
#include "move.h"

#include <string.h>

/* Elements of a group of rows; fewer rows make a group if they are long. */
enum { GROUP_MOST = 1 << 22 };

/* Rows side by side, whose elements are STRIDE apart, and a buffer of theirs,
 * one row after the other; in elements. */
struct block {
    void *rows;
    int64_t stride;
    void *buffer;
    int64_t pitch;
    int64_t count; /* rows */
    int64_t n;     /* elements of a row */
};

#define T uint16_t
#define SUFFIX(name) name##_16
#include "rows_move_tmpl.h"
#define T uint32_t
#define SUFFIX(name) name##_32
#include "rows_move_tmpl.h"
#define T uint64_t
#define SUFFIX(name) name##_64
#include "rows_move_tmpl.h"

const struct flex_row_kernels *
flex_row_kernels(const struct flex_device *device, uint32_t dtype)
{
    const struct flex_row_kernels *table =
        FLEX_BY_ISA(device->isa, flex_row_kernels);

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_ROW_F64 : FLEX_ROW_F32];
}

void flex_rows_init(struct flex_rows *rows, const struct flex_device *device,
                    const struct hob_view *view, uint32_t dim)
{
    rows->device = device;
    rows->dtype = view->dtype;
    rows->size = flex_row_size(view->dtype);
    rows->n = view->rank ? view->shape[dim] : 1;
    rows->stride = view->rank ? view->strides[dim] : 1;
    if (rows->n == 1) /* a size-1 dimension may have any stride */
        rows->stride = 1;
    rows->group = 1;
    rows->past = NULL;
    rows->pitch = rows->n;
    rows->buffer = 0;
    if (view->rank)
        flex_loop_without(&rows->outer, view, dim);
    else
        flex_loop_init(&rows->outer, view);
}

/* Nonzero if rows are computed on where they lie. */
static int is_in_place(const struct flex_rows *rows)
{
    return !flex_is_half(rows->dtype) && rows->stride == 1 && !rows->past;
}

void flex_rows_past(struct flex_rows *rows, const struct hob_view *out,
                    const struct hob_view *const *in, uint32_t count)
{
    const struct flex_device *device = rows->device;
    const uint64_t row = (uint64_t)rows->n * rows->size;

    /* The buffer of a row is to stay near. */
    if (!is_in_place(rows) || row > device->l2_bytes / 2 ||
        !flex_goes_past(device, row * (uint64_t)rows->outer.count))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (in[i]->data == out->data)
            return;
    rows->past = flex_move_kernels(device);
}

void flex_rows_reserve(struct flex_rows_job *job, struct flex_rows *rows)
{
    const struct flex_loop *outer = &rows->outer;
    /* Beside what is converted lies what it is converted from. */
    const uint64_t size = flex_is_half(rows->dtype) ? 6 : rows->size;

    if (is_in_place(rows))
        return;
    if (rows->stride != 1 && outer->rank &&
        outer->strides[outer->rank - 1] == 1)
        rows->group = FLEX_ROWS_GROUP;
    while (rows->group > 1 && rows->n > GROUP_MOST / rows->group)
        rows->group /= 2;
    if (rows->group > job->group)
        job->group = rows->group;
    /* Not a power of two: the same places of all rows would share a few lines
     * of the cache. */
    if (rows->group > 1)
        rows->pitch += FLEX_ALIGN / 4;
    if (rows->past)
        job->past = rows->past;
    rows->buffer = job->buffer_bytes;
    job->buffer_bytes +=
        ((uint64_t)(rows->pitch * rows->group) * size + FLEX_ALIGN - 1) /
        FLEX_ALIGN * FLEX_ALIGN;
}

void flex_rows_broadcast(struct flex_rows *rows,
                         const struct flex_device *device,
                         const struct hob_view *view,
                         const struct hob_view *out, uint32_t dim)
{
    struct hob_view wide = *out;
    uint32_t missing = (uint32_t)(out->rank - view->rank);

    wide.data = view->data;
    wide.dtype = view->dtype;
    for (uint32_t i = 0; i < out->rank; i++)
        wide.strides[i] = i < missing || view->shape[i - missing] == 1
                              ? 0
                              : view->strides[i - missing];
    flex_rows_init(rows, device, &wide, dim);
}

/* Row INDEX where it lies. */
static char *row_at(const struct flex_rows *rows, int64_t index)
{
    return rows->outer.data +
           flex_loop_offset(&rows->outer, index) * (int64_t)rows->outer.size;
}

/* Elements as they are stored, in or out of the buffer at BUFFER. */
static char *stored_of(const struct flex_rows *rows, char *buffer)
{
    return flex_is_half(rows->dtype) ? buffer + rows->pitch * rows->group * 4
                                     : buffer;
}

/* Rows FIRST .. FIRST + COUNT - 1 to BUFFER, or back. */
static void move_group(const struct flex_rows *rows, int64_t first,
                       int64_t count, char *buffer, int is_back)
{
    const struct flex_loop *outer = &rows->outer;
    const int64_t inner = outer->rank ? outer->shape[outer->rank - 1] : 1;

    for (int64_t i = 0; i < count;) {
        const int64_t left = inner - (first + i) % inner;
        const int64_t side = left < count - i ? left : count - i;
        const struct block block = {row_at(rows, first + i),
                                    rows->stride,
                                    buffer + i * rows->pitch * outer->size,
                                    rows->pitch,
                                    side,
                                    rows->n};

        if (outer->size == 8)
            move_block_64(&block, is_back);
        else if (outer->size == 4)
            move_block_32(&block, is_back);
        else
            move_block_16(&block, is_back);
        i += side;
    }
}

const void *flex_rows_get(const struct flex_rows *rows, int64_t index,
                          char *buffers)
{
    const uint32_t size = rows->outer.size;
    char *buffer = buffers + rows->buffer;
    char *stored = stored_of(rows, buffer);
    const int64_t at = index % rows->group;

    if (is_in_place(rows))
        return row_at(rows, index);
    if (rows->group > 1) {
        const int64_t left = rows->outer.count - index;

        if (at == 0)
            move_group(rows, index, left < rows->group ? left : rows->group,
                       stored, 0);
        buffer += at * rows->pitch * rows->size;
        stored += at * rows->pitch * size;
    } else if (rows->stride != 1) {
        flex_copy_strided(stored, 1, row_at(rows, index), rows->stride, rows->n,
                          size);
    } else {
        stored = row_at(rows, index);
    }
    if (flex_is_half(rows->dtype))
        rows->device->kernels->load_f32[rows->dtype](buffer, stored, rows->n);
    return buffer;
}

void *flex_rows_target(const struct flex_rows *rows, int64_t index,
                       char *buffers)
{
    if (is_in_place(rows))
        return row_at(rows, index);
    return buffers + rows->buffer +
           index % rows->group * rows->pitch * rows->size;
}

void flex_rows_put(const struct flex_rows *rows, int64_t index, char *buffers)
{
    const uint32_t size = rows->outer.size;
    char *stored = stored_of(rows, buffers + rows->buffer);
    const int64_t at = index % rows->group;

    if (is_in_place(rows))
        return;
    if (rows->past) {
        rows->past->stream(row_at(rows, index), stored,
                           rows->n * (int64_t)size);
        return;
    }
    if (flex_is_half(rows->dtype))
        rows->device->kernels->store_f32[rows->dtype](
            stored + at * rows->pitch * size,
            flex_rows_target(rows, index, buffers), rows->n);
    if (rows->group == 1)
        flex_copy_strided(row_at(rows, index), rows->stride, stored, 1, rows->n,
                          size);
    else if (at == rows->group - 1 || index == rows->outer.count - 1)
        move_group(rows, index - at, at + 1, stored, 1);
}

void *flex_vector_take(struct flex_device *device, const struct hob_view *view,
                       uint64_t *out_bytes)
{
    struct flex_rows_job job = {.device = device};
    struct flex_rows rows;
    const void *row;
    void *copy;

    flex_rows_init(&rows, device, view, 0);
    flex_rows_reserve(&job, &rows);
    *out_bytes =
        is_in_place(&rows) ? (uint64_t)rows.n * rows.size : job.buffer_bytes;
    copy = flex_scratch_take(device, *out_bytes);
    if (!copy)
        return NULL;
    row = flex_rows_get(&rows, 0, copy);
    if (row != copy)
        memcpy(copy, row, (size_t)rows.n * rows.size);
    return copy;
}

double flex_float_load(const struct hob_view *view)
{
    switch (view->dtype) {
    case HOB_DTYPE_F64:
        return *(const double *)view->data;
    case HOB_DTYPE_F32:
        return (double)*(const float *)view->data;
    case HOB_DTYPE_F16:
        return (double)flex_f32_of_f16(*(const uint16_t *)view->data);
    default:
        return (double)flex_f32_of_bf16(*(const uint16_t *)view->data);
    }
}

void flex_float_store(const struct hob_view *view, double value)
{
    switch (view->dtype) {
    case HOB_DTYPE_F64:
        *(double *)view->data = value;
        break;
    case HOB_DTYPE_F32:
        *(float *)view->data = (float)value;
        break;
    case HOB_DTYPE_F16:
        *(uint16_t *)view->data = flex_f16_of_f64(value);
        break;
    default:
        *(uint16_t *)view->data = flex_bf16_of_f64(value);
        break;
    }
}

static void rows_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct flex_rows_job *job = context;
    _Alignas(FLEX_ALIGN) char stack[8192];
    char *buffers = stack;

    (void)worker;
    if (job->buffer_bytes > sizeof(stack)) {
        buffers = flex_scratch_take(job->device, job->buffer_bytes);
        if (!buffers) {
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    for (int64_t i = first; i < last; i++)
        job->fn(job, i, buffers);
    if (job->past)
        job->past->fence();
    if (buffers != stack)
        flex_scratch_give(job->device, buffers, job->buffer_bytes);
}

hob_status flex_rows_run(struct flex_rows_job *job, int64_t count,
                         int64_t row_elements)
{
    int64_t grain = 1 + FLEX_GRAIN_DEAR / (row_elements + 1);

    if (job->group > 1) /* pieces begin at multiples of the grain */
        grain = (grain + job->group - 1) / job->group * job->group;
    job->failed = 0;
    flex_parallel(job->device, count, grain, rows_range, job);
    return job->failed ? HOB_ERR_MEMORY : HOB_OK;
}
