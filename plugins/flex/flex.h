/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flex.h - what the parts of the CPU backend share.
 *
 *   plugin.c   the entry and the tables
 *   device.c   opening, ISA choice, the flex.compute interface
 *   memory.c   the caching allocator
 *   parallel.c work on fewer threads than the host has
 *   scalar.c   scalar arguments
 *   fold.c     accumulators of reductions
 *   fused*.c   many ops as one: the interface fused.compute
 *   loop.c     views as loops: collapsing, gathering, scattering
 *   move.c     whole copies from one layout to another
 *   at.c       runs of elements at indices
 *   kernels/   typed loops over contiguous elements, once for each ISA
 *   ops/       one file a family: entries of the plugin's table
 *
 * Kernels see contiguous elements only; loop.c brings whatever has strides
 * into blocks that fit the first-level cache. Work is split by size, never by
 * the number of threads, so results do not depend on it.
 */
#ifndef FLEX_H
#define FLEX_H

#include "kernels/kernels.h"
#include "loop.h"

#include <hob/ext/flex.h>
#include <hob/ext/plugin.h>

struct flex_memory; /* memory.c */
struct flex_blas;   /* the matmul family's own state; NULL until it opens */

/* What plugin open makes: one a runtime. */
struct flex_instance {
    const struct hob_host *host; /* borrowed, outlives the instance */
};

/* What device_open makes; every execute and prepare gets it. */
struct flex_device {
    const struct hob_host *host; /* borrowed, outlives the device */
    const struct flex_kernels *kernels;
    struct flex_memory *memory;
    struct flex_blas *blas;
    uint32_t isa;      /* enum flex_isa */
    uint32_t gemm;     /* enum flex_gemm_choice of options.h */
    uint32_t threads;  /* at most so many at work; 0: all that the host has */
    uint64_t l2_bytes; /* of one core */
    uint64_t l3_bytes; /* of the machine's last level */
};

struct flex_entries {
    const struct hob_entry *entries;
    uint32_t count;
};

/* One a family; plugin.c joins them to the backend's table. */
extern const struct flex_entries flex_elementwise_entries;
extern const struct flex_entries flex_cast_entries;
extern const struct flex_entries flex_create_entries;
extern const struct flex_entries flex_random_entries;
extern const struct flex_entries flex_copy_entries;
extern const struct flex_entries flex_reduce_entries;
extern const struct flex_entries flex_arg_entries;
extern const struct flex_entries flex_scan_entries;
extern const struct flex_entries flex_matmul_entries;
extern const struct flex_entries flex_conv_entries;
extern const struct flex_entries flex_pool_entries;
extern const struct flex_entries flex_softmax_entries;
extern const struct flex_entries flex_loss_entries;
extern const struct flex_entries flex_norm_entries;
extern const struct flex_entries flex_attention_entries;
extern const struct flex_entries flex_index_entries;
extern const struct flex_entries flex_scatter_entries;
extern const struct flex_entries flex_sort_entries;
extern const struct flex_entries flex_cat_entries;
extern const struct flex_entries flex_optim_entries;
extern const struct flex_entries flex_decompose_entries;
extern const struct flex_entries flex_fft_entries;
extern const struct flex_entries flex_quant_entries;
extern const struct flex_entries flex_activation_entries;
extern const struct flex_entries flex_resize_entries;
extern const struct flex_entries flex_arrange_entries;
extern const struct flex_entries flex_columns_entries;
extern const struct flex_entries flex_ctc_entries;
extern const struct flex_entries flex_deform_conv_entries;
extern const struct flex_entries flex_grid_sample_entries;

/* ---- device.c ---- */

/* Open and close a device; OPTIONS is a JSON object or NULL and knows
 * {"isa": "base" | "v2" | "v3" | "v4", "gemm": "auto" | "own" | "openblas",
 * "cache_bytes": N, "threads": N}. */
hob_status flex_device_open(void *instance, uint32_t ordinal,
                            const char *options, void **out_device,
                            char **out_message);
void flex_device_close(void *device);
hob_status flex_device_count(void *instance, uint32_t *out_count);
hob_status flex_device_info(void *instance, uint32_t ordinal,
                            struct hob_device_info *out);
const void *flex_device_interface(void *device, const char *name,
                                  uint32_t version);

/* fused.c: the interface "fused.compute" of hob/ext/fusion.h, whose instance is
 * the device. */
extern const struct hob_fused_compute flex_fused_compute;

/* ---- memory.c ---- */

enum { FLEX_ALIGN = 64 };

/*
 * About CACHE_BYTES of free blocks are kept for reuse: a little more where
 * several threads free at once. NULL: no memory.
 */
struct flex_memory *flex_memory_new(uint64_t cache_bytes);
void flex_memory_free(struct flex_memory *memory); /* accepts NULL */
/* 64-byte aligned; NULL without memory, after the free blocks were given back
 * to the system. 0 bytes give a valid block. */
void *flex_memory_take(struct flex_memory *memory, uint64_t bytes);
/* BYTES as asked for; accepts NULL. */
void flex_memory_give(struct flex_memory *memory, void *block, uint64_t bytes);
/* Give all free blocks back to the system. */
void flex_memory_trim(struct flex_memory *memory);
/* Fill in all of OUT but its head. */
void flex_memory_stats(struct flex_memory *memory,
                       struct hob_memory_stats *out);
/* From now on the peak is counted anew. */
void flex_memory_reset_peak(struct flex_memory *memory);

/* Scratch of a kernel, as flex_memory_take on the device's allocator. */
static inline void *flex_scratch_take(struct flex_device *device,
                                      uint64_t bytes)
{
    return flex_memory_take(device->memory, bytes);
}

static inline void flex_scratch_give(struct flex_device *device, void *block,
                                     uint64_t bytes)
{
    flex_memory_give(device->memory, block, bytes);
}

/* ---- the matmul family's part of the device (ops/matmul.c) ---- */

/* Open what the matrix products need, as OpenBLAS; on failure the family uses
 * its own kernels, so only HOB_ERR_MEMORY is an error. */
hob_status flex_blas_open(struct flex_device *device);
void flex_blas_close(struct flex_device *device);
/* The gemm of struct flex_compute, on the host's threads. */
hob_status flex_gemm(struct flex_device *device, const struct flex_gemm *gemm);

/* ---- arguments ---- */

/* DIM as a caller gives it, negative from the end; infer has checked it. */
static inline uint32_t flex_dim(int64_t dim, uint32_t rank)
{
    return (uint32_t)(dim < 0 ? dim + (int64_t)rank : dim);
}

static inline int64_t flex_arg_i64(const struct hob_call *call, uint32_t index)
{
    return call->args[index].u.i64;
}

static inline double flex_arg_f64(const struct hob_call *call, uint32_t index)
{
    return call->args[index].u.f64;
}

static inline int flex_arg_absent(const struct hob_call *call, uint32_t index)
{
    return index >= call->arg_count || call->args[index].tag == HOB_TAG_ABSENT;
}

/* Whether DTYPE is one that is computed in f32 and rounded at the end. */
static inline int flex_is_half(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16;
}

static inline int flex_is_contiguous(const struct hob_view *view)
{
    return (view->flags & HOB_VIEW_CONTIGUOUS) != 0;
}

/* ---- numbers ---- */

static inline int64_t flex_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t flex_round_up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

static inline int64_t flex_magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

static inline int64_t flex_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t flex_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The numeric value of a scalar argument as a double or an integer. */
static inline double flex_scalar_f64(const hob_value *value)
{
    return value->tag == HOB_TAG_F64   ? value->u.f64
           : value->tag == HOB_TAG_U64 ? (double)value->u.u64
                                       : (double)value->u.i64;
}

/* scalar.c: write SCALAR as one element of DTYPE to OUT (8 bytes are enough). A
 * float goes to an integer dtype as cast does. */
void flex_scalar_store(const hob_value *scalar, uint32_t dtype, void *out);

/* The bound of DTYPE that never acts: infinite, or the end of an integer's
 * range. */
hob_value flex_scalar_bound(uint32_t dtype, int upper);

/* ---- threads ---- */

/* Elements of a piece: of a cheap op (an add), and of one that costs some ns
 * an element. */
enum { FLEX_GRAIN_CHEAP = 1 << 17, FLEX_GRAIN_DEAR = 1 << 13 };

/* parallel.c: at least two pieces of GRAIN, on device->threads threads. */
void flex_parallel_limited(const struct flex_device *device, int64_t count,
                           int64_t grain, hob_range_fn fn, void *context);

/* host->parallel_for in pieces of GRAIN, but inline below two pieces, and on
 * no more threads than the device may use. */
static inline void flex_parallel(const struct flex_device *device,
                                 int64_t count, int64_t grain, hob_range_fn fn,
                                 void *context)
{
    if (count <= 0)
        return;
    if (count < 2 * grain)
        fn(context, 0, count, 0);
    else if (device->threads)
        flex_parallel_limited(device, count, grain, fn, context);
    else
        device->host->parallel_for(device->host, count, grain, fn, context);
}

#endif
