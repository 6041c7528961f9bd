/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "device.h"
#include "dlpack_layout.h"
#include "error.h"
#include "host_data.h"
#include "lazy.h"
#include "runtime.h"
#include "scope.h"
#include "size.h"
#include "storage.h"
#include "tensor.h"

#include <hob/io.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct type {
    uint8_t dtype;
    uint8_t code;
    uint8_t bits;
} types[] = {
    {HOB_DTYPE_F64, HOB__DLPACK_FLOAT, 64},
    {HOB_DTYPE_F32, HOB__DLPACK_FLOAT, 32},
    {HOB_DTYPE_F16, HOB__DLPACK_FLOAT, 16},
    {HOB_DTYPE_BF16, HOB__DLPACK_BFLOAT, 16},
    {HOB_DTYPE_I64, HOB__DLPACK_INT, 64},
    {HOB_DTYPE_I32, HOB__DLPACK_INT, 32},
    {HOB_DTYPE_I16, HOB__DLPACK_INT, 16},
    {HOB_DTYPE_I8, HOB__DLPACK_INT, 8},
    {HOB_DTYPE_U64, HOB__DLPACK_UINT, 64},
    {HOB_DTYPE_U32, HOB__DLPACK_UINT, 32},
    {HOB_DTYPE_U16, HOB__DLPACK_UINT, 16},
    {HOB_DTYPE_U8, HOB__DLPACK_UINT, 8},
    {HOB_DTYPE_BOOL, HOB__DLPACK_BOOL, 8},
};

/* ---- export ---- */

/* What the consumer holds; MANAGED is first, so its address is this one. */
struct exported {
    struct hob_dlpack_managed managed;
    int64_t shape[HOB_MAX_RANK];
    int64_t strides[HOB_MAX_RANK];
    hob_tensor *hold; /* a handle on the base; or NULL */
    void *buffer;     /* a copy; or NULL */
};

static void exported_delete(struct hob_dlpack_managed *managed)
{
    struct exported *exported = (struct exported *)(void *)managed;

    hob__tensor_unref(exported->hold);
    free(exported->buffer);
    free(exported);
}

static bool can_share(const hob_tensor *tensor)
{
    const struct hob_view *view = &tensor->view;

    if (!(tensor->device->at[0]->backend->flags & HOB_BACKEND_HOST_MEMORY) ||
        !view->data)
        return false;
    for (uint32_t i = 0; i < view->rank; i++)
        if (view->strides[i] < 0)
            return false;
    return true;
}

/* Let the consumer have TENSOR's own memory. */
static hob_status export_shared(hob_tensor *tensor, struct exported *exported,
                                hob_error *error)
{
    hob_device *base = tensor->device->at[0];
    hob_status st = HOB_OK;

    if (base->backend->sync)
        st = base->backend->sync(base->instance);
    if (st)
        return hob_error_set(error, st, "dlpack: earlier work on %s failed",
                             base->name);
    /* On the base: what the layers above keep must not live on with it. */
    exported->hold = hob__tensor_share(tensor, base, 0);
    if (!exported->hold)
        return hob_error_set(error, HOB_ERR_MEMORY, "dlpack: out of memory");
    atomic_fetch_or(&exported->hold->view.storage->flags,
                    HOB__STORAGE_EXPORTED);
    exported->managed.tensor.data = exported->hold->view.data;
    memcpy(exported->strides, exported->hold->view.strides,
           sizeof(exported->strides));
    /* Tensors do not change: the consumer must not change this one either. */
    exported->managed.flags = HOB__DLPACK_READ_ONLY;
    return HOB_OK;
}

static hob_status export_copied(hob_tensor *tensor, struct exported *exported,
                                hob_error *error)
{
    struct hob_meta meta = hob__tensor_meta(tensor);
    uint64_t bytes = 0;
    int64_t stride = 1;

    if (hob__meta_bytes(&meta, &bytes))
        return hob_error_set(error, HOB_ERR_SHAPE,
                             "dlpack: the tensor's size overflows");
    /* The specification recommends data aligned to a cache line, and
     * aligned_alloc() wants a multiple of that. */
    exported->buffer = aligned_alloc(64, (size_t)((bytes / 64 + 1) * 64));
    if (!exported->buffer)
        return hob_error_set(error, HOB_ERR_MEMORY,
                             "dlpack: no memory for %" PRIu64 " bytes", bytes);
    for (uint32_t i = meta.rank; i-- > 0;) {
        exported->strides[i] = stride;
        stride *= meta.shape[i];
    }
    exported->managed.tensor.data = bytes ? exported->buffer : NULL;
    exported->managed.flags = HOB__DLPACK_COPIED;
    return hob__tensor_download(tensor, exported->buffer, bytes, error);
}

hob_status hob_dlpack_export(hob_tensor *tensor,
                             struct hob_dlpack_managed **out_managed,
                             hob_error *error)
{
    struct exported *exported = NULL;
    const struct type *type = types;
    const struct type *end = types + sizeof(types) / sizeof(types[0]);
    hob_status st;

    *out_managed = NULL;
    st = hob__tensor_settle(tensor, 0, error);
    if (!st)
        st = hob__tensor_check(tensor, error);
    if (st)
        return st;
    if (hob__tensor_has_state(tensor))
        return hob_error_set(error, HOB_ERR_STATE,
                             "dlpack: gradients flow to this tensor, which "
                             "its consumer could not know; export "
                             "hob_detach() of it");
    while (type < end && type->dtype != tensor->view.dtype)
        type++;
    if (type == end)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "dlpack: no dtype for %s; dequantize it first",
                             hob_dtype_name(tensor->view.dtype));
    exported = calloc(1, sizeof(*exported));
    if (!exported)
        return hob_error_set(error, HOB_ERR_MEMORY, "dlpack: out of memory");
    exported->managed.major = HOB__DLPACK_MAJOR;
    exported->managed.minor = HOB__DLPACK_MINOR;
    exported->managed.deleter = exported_delete;
    exported->managed.tensor.device_type = HOB__DLPACK_CPU;
    exported->managed.tensor.ndim = tensor->view.rank;
    exported->managed.tensor.dtype_code = type->code;
    exported->managed.tensor.dtype_bits = type->bits;
    exported->managed.tensor.dtype_lanes = 1;
    exported->managed.tensor.shape = exported->shape;
    exported->managed.tensor.strides = exported->strides;
    memcpy(exported->shape, tensor->view.shape,
           tensor->view.rank * sizeof(int64_t));
    st = can_share(tensor) ? export_shared(tensor, exported, error)
                           : export_copied(tensor, exported, error);
    if (st) {
        exported_delete(&exported->managed);
        return st;
    }
    *out_managed = &exported->managed;
    return HOB_OK;
}

/* ---- import ---- */

/* A checked tensor of somebody else. */
struct foreign {
    struct hob_meta meta;
    int64_t strides[HOB_MAX_RANK];
    uint32_t size; /* of an element */
    uint64_t count;
    const unsigned char *data; /* of index 0, 0, ... */
    const unsigned char *low;  /* of the lowest address */
    uint64_t span;             /* bytes from there to the end */
    bool contiguous;
};

static hob_status read_type(const struct hob__dlpack_tensor *tensor,
                            struct foreign *foreign, hob_error *error)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].code == tensor->dtype_code &&
            types[i].bits == tensor->dtype_bits && tensor->dtype_lanes == 1) {
            foreign->meta.dtype = types[i].dtype;
            foreign->size = hob_dtype_size(types[i].dtype);
            return HOB_OK;
        }
    return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                         "dlpack: no tensor has the dtype code %d, %d bits, "
                         "%d lanes",
                         tensor->dtype_code, tensor->dtype_bits,
                         tensor->dtype_lanes);
}

static hob_status read_shape(const struct hob__dlpack_tensor *tensor,
                             struct foreign *foreign, hob_error *error)
{
    uint64_t bytes = foreign->size;

    if (tensor->ndim < 0 || tensor->ndim > HOB_MAX_RANK ||
        (tensor->ndim && !tensor->shape))
        return hob_error_set(
            error, HOB_ERR_SHAPE,
            "dlpack: %" PRId32 " dimensions%s; 0 to %d are supported",
            tensor->ndim,
            tensor->ndim && !tensor->shape ? " without a shape" : "",
            HOB_MAX_RANK);
    foreign->meta.rank = (uint8_t)tensor->ndim;
    foreign->count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        int64_t dim = tensor->shape[i];

        foreign->meta.shape[i] = dim;
        foreign->count *= dim > 0 ? (uint64_t)dim : 0;
        if (dim < 0 || hob__size_mul(bytes, dim ? (uint64_t)dim : 1, &bytes) ||
            bytes > INT64_MAX)
            return hob_error_set(error, HOB_ERR_SHAPE,
                                 "dlpack: size %" PRId64
                                 " of dimension %" PRId32 " is no size",
                                 dim, i);
    }
    return HOB_OK;
}

/* Find where the elements lie. Fails if they wrap around the address space. */
static hob_status read_strides(const struct hob__dlpack_tensor *tensor,
                               struct foreign *foreign, hob_error *error)
{
    uint64_t below = 0; /* bytes of the lowest element under index 0 */
    uint64_t above = foreign->size;
    int64_t plain = 1;

    foreign->contiguous = true;
    for (int32_t i = tensor->ndim; i-- > 0;) {
        int64_t stride = tensor->strides ? tensor->strides[i] : plain;
        uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
        uint64_t *end = stride < 0 ? &below : &above;
        uint64_t reach = 0;
        int64_t dim = foreign->meta.shape[i];

        if (dim > 1 && stride != plain)
            foreign->contiguous = false;
        foreign->strides[i] = stride;
        plain *= dim;
        if (dim < 2 || !foreign->count)
            continue;
        if (hob__size_mul(step, foreign->size, &reach) ||
            hob__size_mul(reach, (uint64_t)dim - 1, &reach) ||
            reach > INT64_MAX || *end > INT64_MAX - reach)
            return hob_error_set(error, HOB_ERR_SHAPE,
                                 "dlpack: stride %" PRId64
                                 " of dimension %" PRId32
                                 " leads out of memory",
                                 stride, i);
        *end += reach;
    }
    if (!foreign->count)
        return HOB_OK;
    if (!tensor->data)
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "dlpack: the tensor has elements but no data");
    foreign->data = (const unsigned char *)tensor->data + tensor->byte_offset;
    foreign->low = foreign->data - below;
    foreign->span = below + above;
    return HOB_OK;
}

static hob_status read_managed(const struct hob_dlpack_managed *managed,
                               struct foreign *foreign, hob_error *error)
{
    const struct hob__dlpack_tensor *tensor = &managed->tensor;
    hob_status st;

    memset(foreign, 0, sizeof(*foreign));
    /* With another major only the version and the deleter are where they
     * are. */
    if (managed->major != HOB__DLPACK_MAJOR)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "dlpack: version %" PRIu32 ".%" PRIu32
                             "; %d.x is known",
                             managed->major, managed->minor, HOB__DLPACK_MAJOR);
    if (tensor->device_type != HOB__DLPACK_CPU &&
        tensor->device_type != HOB__DLPACK_CUDA_HOST &&
        tensor->device_type != HOB__DLPACK_ROCM_HOST)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "dlpack: the tensor is on device type %" PRId32
                             ", not in host memory; copy it there first",
                             tensor->device_type);
    st = read_type(tensor, foreign, error);
    if (!st)
        st = read_shape(tensor, foreign, error);
    if (!st)
        st = read_strides(tensor, foreign, error);
    return st;
}

static void gather(const struct foreign *foreign, unsigned char *out)
{
    int64_t index[HOB_MAX_RANK] = {0};
    int64_t at = 0;

    for (uint64_t done = 0; done < foreign->count; done++) {
        memcpy(out + done * foreign->size,
               foreign->data + at * (int64_t)foreign->size, foreign->size);
        for (uint32_t dim = foreign->meta.rank; dim-- > 0;) {
            at += foreign->strides[dim];
            if (++index[dim] < foreign->meta.shape[dim])
                break;
            at -= foreign->strides[dim] * foreign->meta.shape[dim];
            index[dim] = 0;
        }
    }
}

static bool can_adopt(const struct foreign *foreign, const hob_device *device)
{
    if (!(device->at[0]->backend->flags & HOB_BACKEND_HOST_MEMORY) ||
        !foreign->count || (uintptr_t)foreign->data % foreign->size)
        return false;
    /* What lies between the elements must not be looked at. */
    return foreign->meta.dtype != HOB_DTYPE_BOOL ||
           (foreign->contiguous &&
            !hob__bools_are_loose(foreign->data, foreign->count));
}

static void managed_delete(void *context)
{
    struct hob_dlpack_managed *managed = context;

    if (managed->deleter)
        managed->deleter(managed);
}

/* Make a tensor of the foreign memory. */
static hob_status adopt(hob_scope *scope, hob_device *device,
                        struct hob_dlpack_managed *managed,
                        const struct foreign *foreign, hob_tensor **out_tensor)
{
    bool read_only = (managed->flags & HOB__DLPACK_READ_ONLY) != 0;
    hob_tensor *tensor = hob__tensor_blank(device, &foreign->meta);
    hob_status st;

    if (!tensor)
        return HOB_ERR_MEMORY;
    /* The scope first, for it is the last that can fail: MANAGED is then
     * still the caller's. */
    st = hob__scope_adopt(scope, tensor);
    if (st)
        return st;
    hob__tensor_wrap(tensor, (void *)(uintptr_t)foreign->low, foreign->span,
                     read_only ? HOB__STORAGE_READ_ONLY : 0, managed_delete,
                     managed);
    tensor->view.data = (void *)(uintptr_t)foreign->data;
    memcpy(tensor->view.strides, foreign->strides,
           sizeof(tensor->view.strides));
    tensor->view.flags = foreign->contiguous
                             ? HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE
                             : 0; /* not injective, for all we know */
    if (read_only)
        tensor->view.flags |= HOB_VIEW_READ_ONLY;
    *out_tensor = tensor;
    return HOB_OK;
}

/* Copy the elements to DEVICE, after which MANAGED is done with. */
static hob_status copy(hob_scope *scope, hob_device *device,
                       const struct foreign *foreign, hob_tensor **out_tensor,
                       hob_error *error)
{
    unsigned char *buffer = NULL;
    hob_status st;

    if (!foreign->contiguous) {
        buffer = malloc((size_t)(foreign->count * foreign->size) + 1);
        if (!buffer)
            return hob_error_set(error, HOB_ERR_MEMORY,
                                 "dlpack: no memory for %" PRIu64 " elements",
                                 foreign->count);
        gather(foreign, buffer);
    }
    st = hob__elements_put(scope, device, &foreign->meta,
                           buffer ? buffer : foreign->data, out_tensor, error);
    free(buffer);
    return st;
}

hob_status hob_dlpack_import(hob_scope *scope, hob_device *device,
                             struct hob_dlpack_managed *managed,
                             hob_tensor **out_tensor, hob_error *error)
{
    struct foreign foreign;
    hob_status st;

    *out_tensor = NULL;
    if (device->runtime != scope->runtime)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "dlpack: device %s belongs to another runtime "
                             "than the scope: open it in this one",
                             device->name);
    st = read_managed(managed, &foreign, error);
    if (st)
        return st;
    if (can_adopt(&foreign, device)) {
        st = adopt(scope, device, managed, &foreign, out_tensor);
        return st ? hob_error_set(error, st, "dlpack: out of memory") : HOB_OK;
    }
    st = copy(scope, device, &foreign, out_tensor, error);
    if (!st)
        managed_delete(managed);
    return st;
}
