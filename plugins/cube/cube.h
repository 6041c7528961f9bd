/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cube.h - the ops of the GPU backends: one file a family in ops/, which take
 * kernels from kernels/ and know no runtime but runtime.h.
 *
 *   dialect.c, buffers.c   a kernel's text for GLSL and CUDA C
 *   kernels.c, cache.c     compiled kernels, in memory and on disk
 *   spirv.c                what GLSL cannot say
 *   launch.c, space.c, scalar.c   a call's arguments as a launch
 *   compute.c, described.c   kernels of extensions
 *   fuse/                  groups of ops as one kernel
 *   interface.c            what of this others find
 *   entries.c              all families as one table
 *
 * DEVICE in an entry's execute is a struct cube_device.
 */
#ifndef CUBE_H
#define CUBE_H

#include "launch.h"
#include "scalar.h"
#include "space.h"

struct cube_entries {
    const struct hob_entry *entries;
    uint32_t count;
};

/* One a family, listed in entries.c too. */
extern const struct cube_entries cube_arrange_entries;
extern const struct cube_entries cube_attention_entries;
extern const struct cube_entries cube_cat_entries;
extern const struct cube_entries cube_channels_entries;
extern const struct cube_entries cube_columns_entries;
extern const struct cube_entries cube_conv_entries;
extern const struct cube_entries cube_copy_entries;
extern const struct cube_entries cube_create_entries;
extern const struct cube_entries cube_elementwise_entries;
extern const struct cube_entries cube_fft_entries;
extern const struct cube_entries cube_loss_entries;
extern const struct cube_entries cube_mask_entries;
extern const struct cube_entries cube_matmul_entries;
extern const struct cube_entries cube_norm_backward_entries;
extern const struct cube_entries cube_optim_entries;
extern const struct cube_entries cube_pick_entries;
extern const struct cube_entries cube_pool_entries;
extern const struct cube_entries cube_quant_entries;
extern const struct cube_entries cube_random_entries;
extern const struct cube_entries cube_reduce_entries;
extern const struct cube_entries cube_resize_entries;
extern const struct cube_entries cube_rows_entries;
extern const struct cube_entries cube_sample_entries;
extern const struct cube_entries cube_scan_entries;
extern const struct cube_entries cube_scatter_entries;
extern const struct cube_entries cube_sort_entries;

/* The portable entry of OP; NULL: there is none. */
const struct hob_entry *cube_entry_find(const char *op);
/* How many entries there are, and all of them to OUT. */
uint32_t cube_entry_count(void);
void cube_entries_copy(struct hob_entry *out);

/* A runtime's tables as the core reads them. */
struct cube_tables {
    struct hob_plugin plugin;
    struct hob_backend backend;
    struct hob_entry entries[];
};

/* PLUGIN with BACKEND, and that with all entries; NULL without memory. C cannot
 * join the families' arrays at compile time, so a plugin's first entry does.
 * OWN are entries of this runtime alone, or NULL. Whoever made them may change
 * entries before others see them. */
struct cube_tables *cube_tables_new(const struct hob_plugin *plugin,
                                    const struct hob_backend *backend,
                                    const struct cube_entries *own);

/* ---- numbers ---- */

static inline int64_t cube_magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* The least power of two from VALUE on, at most MOST, one itself. */
static inline uint32_t cube_power_from(int64_t value, uint32_t most)
{
    uint32_t power = 1;

    while (power < most && power < value)
        power *= 2;
    return power;
}

/* ---- arguments ---- */

/* DIM as a caller gives it, negative from the end; infer has checked it. */
static inline uint32_t cube_dim(int64_t dim, uint32_t rank)
{
    return (uint32_t)(dim < 0 ? dim + (int64_t)rank : dim);
}

static inline int64_t cube_arg_i64(const struct hob_call *call, uint32_t index)
{
    return call->args[index].u.i64;
}

static inline double cube_arg_f64(const struct hob_call *call, uint32_t index)
{
    return call->args[index].u.f64;
}

static inline int cube_arg_absent(const struct hob_call *call, uint32_t index)
{
    return index >= call->arg_count || call->args[index].tag == HOB_TAG_ABSENT;
}

static inline int cube_is_contiguous(const struct hob_view *view)
{
    return (view->flags & HOB_VIEW_CONTIGUOUS) != 0;
}

#endif
