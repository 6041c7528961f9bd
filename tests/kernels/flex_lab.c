/* SPDX-License-Identifier: Apache-2.0 */
#include "flex_lab.h"

#include "flex/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const lab_isas[] = {"{\"isa\": \"base\"}", "{\"isa\": \"v2\"}",
                                "{\"isa\": \"v3\"}", "{\"isa\": \"v4\"}", NULL};

int lab_open(struct lab *lab, uint32_t workers, const char *options)
{
    struct flex_instance *instance = calloc(1, sizeof(*instance));
    void *device = NULL;
    char *message = NULL;
    hob_status st;

    fake_host_init(&lab->host, workers);
    lab->seed = 0x9e3779b97f4a7c15u;
    lab->device = NULL;
    ck_assert_ptr_nonnull(instance);
    instance->host = &lab->host.table;
    st = flex_device_open(instance, 0, options, &device, &message);
    if (message)
        lab->host.table.mem_free(&lab->host.table, message);
    lab->device = device;
    free(instance);
    return st == HOB_OK;
}

void lab_close(struct lab *lab)
{
    if (lab->device)
        flex_device_close(lab->device);
    ck_assert_uint_eq(lab->host.live_blocks, 0);
}

int64_t lab_random(struct lab *lab, int64_t low, int64_t high)
{
    lab->seed = lab->seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((lab->seed >> 33) % (uint64_t)(high - low + 1));
}

static int64_t offset_of(const struct hob_view *view, const int64_t *at)
{
    int64_t offset = 0;

    for (uint32_t i = 0; i < view->rank; i++)
        offset += at[i] * view->strides[i];
    return offset;
}

double lab_get(const struct hob_view *view, const int64_t *at)
{
    const char *p = (const char *)view->data +
                    offset_of(view, at) * (int64_t)hob_dtype_size(view->dtype);
    uint64_t bits = 0;
    double f64;
    float f32;

    memcpy(&bits, p, hob_dtype_size(view->dtype));
    switch (view->dtype) {
    case HOB_DTYPE_F64:
        memcpy(&f64, &bits, 8);
        return f64;
    case HOB_DTYPE_F32:
        memcpy(&f32, &bits, 4);
        return f32;
    case HOB_DTYPE_F16:
        return flex_f32_of_f16((uint16_t)bits);
    case HOB_DTYPE_BF16:
        return flex_f32_of_bf16((uint16_t)bits);
    case HOB_DTYPE_I64:
        return (double)(int64_t)bits;
    case HOB_DTYPE_I32:
        return (int32_t)bits;
    case HOB_DTYPE_I16:
        return (int16_t)bits;
    case HOB_DTYPE_I8:
        return (int8_t)bits;
    default:
        return (double)bits;
    }
}

static void set(const struct hob_view *view, const int64_t *at, double value)
{
    char *p = (char *)view->data +
              offset_of(view, at) * (int64_t)hob_dtype_size(view->dtype);
    uint64_t bits = 0;
    float f32 = (float)value;

    switch (view->dtype) {
    case HOB_DTYPE_F64:
        memcpy(&bits, &value, 8);
        break;
    case HOB_DTYPE_F32:
        memcpy(&bits, &f32, 4);
        break;
    case HOB_DTYPE_F16:
        bits = flex_f16_of_f64(value);
        break;
    case HOB_DTYPE_BF16:
        bits = flex_bf16_of_f64(value);
        break;
    default:
        bits = (uint64_t)(int64_t)value;
        break;
    }
    memcpy(p, &bits, hob_dtype_size(view->dtype));
}

void lab_position(uint32_t rank, const int64_t *shape, int64_t index,
                  int64_t *at)
{
    for (uint32_t i = rank; i-- > 0;) {
        at[i] = index % shape[i];
        index /= shape[i];
    }
}

double lab_get_at(const struct hob_view *view, int64_t index)
{
    int64_t at[HOB_MAX_RANK];

    lab_position(view->rank, view->shape, index, at);
    return lab_get(view, at);
}

void lab_set_at(const struct hob_view *view, int64_t index, double value)
{
    int64_t at[HOB_MAX_RANK];

    lab_position(view->rank, view->shape, index, at);
    set(view, at, value);
}

double *lab_dense(const struct hob_view *view)
{
    const int64_t count = hob_view_count(view);
    double *out = calloc((size_t)count + 1, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    for (int64_t i = 0; i < count; i++)
        out[i] = lab_get_at(view, i);
    return out;
}

double lab_round(uint32_t dtype, double value)
{
    struct hob_view view = {.dtype = (uint8_t)dtype};
    uint64_t bits = 0;

    view.data = &bits;
    set(&view, NULL, value);
    return lab_get(&view, NULL);
}

int lab_near(double got, double wanted, double tolerance)
{
    double scale = fabs(wanted) > 1 ? fabs(wanted) : 1;

    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return got == wanted;
    return fabs(got - wanted) <= tolerance * scale;
}

/* Lay VIEW over MEMORY, which is large enough, as LAYOUT says. */
static void lay_out(struct hob_view *view, enum lab_layout layout)
{
    const int64_t size = hob_dtype_size(view->dtype);
    int64_t stride = layout == LAB_GAPS ? 2 : 1;
    int64_t last = view->rank ? view->rank - 1 : 0;

    for (uint32_t i = view->rank; i-- > 0;) {
        view->strides[i] = stride;
        stride *= view->shape[i];
    }
    if (view->rank == 0)
        return;
    if (layout == LAB_REVERSED && hob_view_count(view) > 0)
        for (uint32_t i = 0; i < view->rank; i++) {
            view->data = (char *)view->data +
                         (view->shape[i] - 1) * view->strides[i] * size;
            view->strides[i] = -view->strides[i];
        }
    if (layout == LAB_TRANSPOSED) {
        stride = 1;
        for (uint32_t i = view->rank - 1; i-- > 0;) {
            view->strides[i] = stride;
            stride *= view->shape[i];
        }
        view->strides[last] = stride;
    }
    if (layout == LAB_EXPANDED)
        view->strides[0] = 0;
}

void lab_tensor_init(struct lab *lab, struct lab_tensor *tensor, uint32_t dtype,
                     uint32_t rank, const int64_t *shape,
                     enum lab_layout layout, int64_t low, int64_t high)
{
    int64_t whole[1] = {2};

    for (uint32_t i = 0; i < rank; i++)
        whole[0] *= shape[i];
    if (HOB_DTYPE_BIT(dtype) & (HOB_MASK_UNSIGNED | HOB_MASK_BOOL) && low < 0)
        low = 0;
    fake_tensor_init(&tensor->memory, dtype, 1, whole,
                     layout == LAB_MISALIGNED ? hob_dtype_size(dtype) : 0);
    tensor->view = tensor->memory.view;
    tensor->view.rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++)
        tensor->view.shape[i] = shape[i];
    for (int64_t i = 0; i < whole[0]; i++)
        lab_set_at(&tensor->memory.view, i, (double)lab_random(lab, low, high));
    lay_out(&tensor->view, layout);
    fake_view_flags(&tensor->view);
}

void lab_tensor_release(struct lab_tensor *tensor)
{
    ck_assert(fake_tensor_intact(&tensor->memory));
    fake_tensor_release(&tensor->memory);
}

hob_status lab_run(struct lab *lab, struct fake_call *call,
                   const struct flex_entries *entries)
{
    const struct hob_entry *entry =
        fake_entry_find(entries->entries, entries->count, call->call.op_name);
    hob_status st;

    ck_assert_msg(entry != NULL, "no entry %s", call->call.op_name);
    st = fake_call_run(call, entry, lab->device);
    for (uint32_t i = 0; i < call->call.ret_count; i++)
        if (call->results[i].block)
            ck_assert_msg(fake_tensor_intact(&call->results[i]),
                          "%s wrote outside of result %u", call->call.op_name,
                          (unsigned)i);
    return st;
}
