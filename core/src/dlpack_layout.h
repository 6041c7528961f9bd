/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlpack_layout.h - the memory layout of DLPack 1.x.
 *
 * From the specification, https://dmlc.github.io/dlpack/latest/c_api.html.
 * Declared here because the header of Debian 12 (0.6) has no versions, no
 * flags and no bool. Other libraries rely on every offset below.
 */
#ifndef HOB__DLPACK_LAYOUT_H
#define HOB__DLPACK_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* The version that Hob writes; it reads every one of this major. */
enum { HOB__DLPACK_MAJOR = 1, HOB__DLPACK_MINOR = 1 };

enum hob__dlpack_device {
    HOB__DLPACK_CPU = 1,
    HOB__DLPACK_CUDA_HOST = 3, /* pinned: readable by the CPU as it is */
    HOB__DLPACK_ROCM_HOST = 11
};

enum hob__dlpack_code {
    HOB__DLPACK_INT = 0,
    HOB__DLPACK_UINT = 1,
    HOB__DLPACK_FLOAT = 2,
    HOB__DLPACK_BFLOAT = 4,
    HOB__DLPACK_COMPLEX = 5,
    HOB__DLPACK_BOOL = 6
};

enum hob__dlpack_flags {
    HOB__DLPACK_READ_ONLY = 1,
    HOB__DLPACK_COPIED = 2 /* nobody else has this memory */
};

struct hob__dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t dtype_code;
    uint8_t dtype_bits;
    uint16_t dtype_lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major (before 1.2) */
    uint64_t byte_offset;
};

/* DLManagedTensorVersioned. */
struct hob_dlpack_managed {
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(struct hob_dlpack_managed *self); /* may be NULL */
    uint64_t flags;
    struct hob__dlpack_tensor tensor;
};

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(offsetof(struct hob__dlpack_tensor, ndim) == 16, "DLTensor");
_Static_assert(offsetof(struct hob__dlpack_tensor, shape) == 24, "DLTensor");
_Static_assert(offsetof(struct hob__dlpack_tensor, byte_offset) == 40,
               "DLTensor");
_Static_assert(offsetof(struct hob_dlpack_managed, deleter) == 16, "managed");
_Static_assert(offsetof(struct hob_dlpack_managed, tensor) == 32, "managed");
_Static_assert(sizeof(struct hob_dlpack_managed) == 80, "managed");
#endif

#endif
