/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/types.h - the words that programs, plugins and the core share: dtypes,
 * metadata, values.
 *
 * Everything here is part of the ABI. struct hob_meta and struct hob_value
 * are fixed within an ABI major; numbers are never reused.
 */
#ifndef HOB_TYPES_H
#define HOB_TYPES_H

#include <hob/common.h>
#include <hob/status.h>

HOB_BEGIN_DECLS

typedef struct hob_runtime hob_runtime;
typedef struct hob_device hob_device;
typedef struct hob_scope hob_scope;
typedef struct hob_tensor hob_tensor;
typedef struct hob_grads hob_grads;

/* The largest rank of a tensor. */
enum { HOB_MAX_RANK = 8 };
/* The most decorators that can stand on one base. */
enum { HOB_MAX_LEVELS = 6 };
/* The most parameters and results that an op can have, the fields of its
 * structs and enums counted. */
enum { HOB_MAX_PARAMS = 32, HOB_MAX_RESULTS = 16 };

typedef enum hob_dtype {
    HOB_DTYPE_NONE = 0, /* absent; in an attribute: the op's default */
    HOB_DTYPE_F64 = 1,
    HOB_DTYPE_F32 = 2,
    HOB_DTYPE_F16 = 3, /* IEEE binary16 */
    HOB_DTYPE_BF16 = 4,
    HOB_DTYPE_I64 = 5,
    HOB_DTYPE_I32 = 6,
    HOB_DTYPE_I16 = 7,
    HOB_DTYPE_I8 = 8,
    HOB_DTYPE_U64 = 9,
    HOB_DTYPE_U32 = 10,
    HOB_DTYPE_U16 = 11,
    HOB_DTYPE_U8 = 12,
    HOB_DTYPE_BOOL = 13,  /* one byte, 0 or 1 */
    HOB_DTYPE_QUANT = 14, /* packed values with scales, by a scheme */
    HOB_DTYPE_COUNT_
} hob_dtype;

/* Sets of dtypes, as in the mask of a backend's entry. */
#define HOB_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))
enum {
    HOB_MASK_FLOAT = 0x1e,   /* f64 f32 f16 bf16 */
    HOB_MASK_SIGNED = 0x1e0, /* i64 i32 i16 i8 */
    HOB_MASK_UNSIGNED = 0x1e00,
    HOB_MASK_INT = 0x1fe0,
    HOB_MASK_NUM = 0x1ffe,
    HOB_MASK_BOOL = 0x2000,
    HOB_MASK_ANY = 0x3ffe
};

/* Return the bytes of one element; 0 for NONE and QUANT. */
static inline uint32_t hob_dtype_size(uint32_t dtype)
{
    static const uint8_t sizes[HOB_DTYPE_COUNT_] = {0, 8, 4, 2, 2, 8, 4, 2,
                                                    1, 8, 4, 2, 1, 1, 0};
    return dtype < HOB_DTYPE_COUNT_ ? sizes[dtype] : 0;
}

/* Return "f32" and so on; "none" and "?" for what is no dtype. */
static inline const char *hob_dtype_name(uint32_t dtype)
{
    static const char *const names[HOB_DTYPE_COUNT_] = {
        "none", "f64", "f32", "f16", "bf16", "i64",  "i32",  "i16",
        "i8",   "u64", "u32", "u16", "u8",   "bool", "quant"};
    return dtype < HOB_DTYPE_COUNT_ ? names[dtype] : "?";
}

/* What is known of a tensor before there are elements. */
struct hob_meta {
    uint8_t dtype; /* hob_dtype */
    uint8_t rank;
    uint16_t reserved0;
    uint32_t scheme; /* of a quantized tensor, see hob/ext/quant.h; else 0 */
    int64_t shape[HOB_MAX_RANK];
};

/*
 * The memory of a device. Blocks hold the elements of tensors and the
 * workspaces of calls; elements of a few bytes may be in their handles
 * instead, and are not counted.
 */
struct hob_memory_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t in_use_bytes;   /* of the blocks in use, as asked for */
    uint64_t peak_bytes;     /* the most that in_use_bytes has been */
    uint64_t padding_bytes;  /* of the blocks in use, beyond in_use_bytes */
    uint64_t reserved_bytes; /* held from the system, in use or free */
    uint64_t block_count;    /* blocks asked for so far */
    uint64_t system_count;   /* of them, those that the system had to give */
    uint64_t block_most;     /* the most bytes of one block; 0: not known */
};

#define HOB_MEMORY_STATS_INIT                                                  \
    {                                                                          \
        sizeof(struct hob_memory_stats), 0, 0, 0, 0, 0, 0, 0, 0                \
    }

/* The tag of a value: what its payload is. */
enum hob_tag {
    /* An optional argument that was not given. On its way down the layers
     * count says what is missing: 1 a tensor, 0 an attribute. */
    HOB_TAG_ABSENT = 0,
    HOB_TAG_TENSOR = 1,
    HOB_TAG_TENSORS = 2, /* count handles */
    HOB_TAG_I64 = 3,
    HOB_TAG_U64 = 4,
    HOB_TAG_F64 = 5,
    HOB_TAG_BOOL = 6,   /* u.i64 is 0 or 1 */
    HOB_TAG_STR = 7,    /* count bytes, NUL-terminated besides */
    HOB_TAG_DTYPE = 8,  /* u.i64 */
    HOB_TAG_DEVICE = 9, /* borrowed */
    HOB_TAG_I64S = 10,  /* count numbers; shapes too */
    HOB_TAG_F64S = 11,
    HOB_TAG_ENUM = 12 /* u.i64 is the index of the enumerator */
};

/* hob_value.flags: the callee takes the caller's reference (last use). */
enum { HOB_VALUE_MOVE = 1 };

/* One argument or result of the uniform call: 16 bytes, tagged. */
typedef struct hob_value {
    uint8_t tag;   /* enum hob_tag */
    uint8_t flags; /* HOB_VALUE_* */
    uint16_t reserved;
    uint32_t count; /* elements of a list, bytes of a string */
    union {
        hob_tensor *tensor;
        hob_tensor *const *tensors;
        hob_device *device;
        int64_t i64;
        uint64_t u64;
        double f64;
        const int64_t *i64s;
        const double *f64s;
        const char *str;
    } u;
} hob_value;

/*
 * A scalar argument: i64, u64, f64 or bool. An op converts it to the dtype of
 * its tensor and fails with HOB_ERR_RANGE where it does not fit.
 */
typedef hob_value hob_scalar;

static inline hob_value hob_value_make(uint8_t tag, uint32_t count)
{
    hob_value value;
    value.tag = tag;
    value.flags = 0;
    value.reserved = 0;
    value.count = count;
    value.u.u64 = 0;
    return value;
}

/* An optional argument that is not given. */
static inline hob_value hob_none(void)
{
    return hob_value_make(HOB_TAG_ABSENT, 0);
}

static inline hob_value hob_i64(int64_t number)
{
    hob_value value = hob_value_make(HOB_TAG_I64, 1);
    value.u.i64 = number;
    return value;
}

static inline hob_value hob_u64(uint64_t number)
{
    hob_value value = hob_value_make(HOB_TAG_U64, 1);
    value.u.u64 = number;
    return value;
}

static inline hob_value hob_f64(double number)
{
    hob_value value = hob_value_make(HOB_TAG_F64, 1);
    value.u.f64 = number;
    return value;
}

static inline hob_value hob_bool(int truth)
{
    hob_value value = hob_value_make(HOB_TAG_BOOL, 1);
    value.u.i64 = truth ? 1 : 0;
    return value;
}

static inline hob_value hob_value_tensor(hob_tensor *tensor)
{
    hob_value value =
        hob_value_make(tensor ? HOB_TAG_TENSOR : HOB_TAG_ABSENT, 1);
    value.u.tensor = tensor;
    return value;
}

static inline hob_value hob_value_tensors(hob_tensor *const *tensors,
                                          uint32_t count)
{
    hob_value value = hob_value_make(HOB_TAG_TENSORS, count);
    value.u.tensors = tensors;
    return value;
}

static inline hob_value hob_value_i64s(const int64_t *numbers, uint32_t count)
{
    hob_value value = hob_value_make(HOB_TAG_I64S, count);
    value.u.i64s = numbers;
    return value;
}

static inline hob_value hob_value_f64s(const double *numbers, uint32_t count)
{
    hob_value value = hob_value_make(HOB_TAG_F64S, count);
    value.u.f64s = numbers;
    return value;
}

/* Absent where DTYPE is HOB_DTYPE_NONE: the op's default then holds. */
static inline hob_value hob_value_dtype(uint32_t dtype)
{
    hob_value value = hob_value_make(dtype ? HOB_TAG_DTYPE : HOB_TAG_ABSENT, 1);
    value.u.i64 = (int64_t)dtype;
    return value;
}

static inline hob_value hob_value_device(hob_device *device)
{
    hob_value value =
        hob_value_make(device ? HOB_TAG_DEVICE : HOB_TAG_ABSENT, 1);
    value.u.device = device;
    return value;
}

static inline hob_value hob_value_enum(int64_t index)
{
    hob_value value = hob_value_make(HOB_TAG_ENUM, 1);
    value.u.i64 = index;
    return value;
}

/* TEXT is borrowed for the call. */
static inline hob_value hob_value_str(const char *text)
{
    hob_value value = hob_value_make(text ? HOB_TAG_STR : HOB_TAG_ABSENT, 0);
    value.u.str = text;
    while (text && text[value.count])
        value.count++;
    return value;
}

HOB_END_DECLS

#endif
