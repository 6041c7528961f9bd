/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cat.c - tensors one after the other along a dimension.
 */
#include "flex.h"

struct part {
    struct flex_loop in;
    char *out;         /* where the part begins in the first outer item */
    int64_t chunk;     /* elements of the part in one outer item */
    int64_t out_chunk; /* elements of the result in one outer item */
};

/* Chunks of fewer elements are not copied one by one. */
enum { CHUNK_SMALL = 16 };

/* Chunks FIRST .. LAST - 1 of few elements each: first elements of many
 * chunks, then second ones, and so on. */
static void chunk_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    const struct part *part = context;
    const int64_t size = part->in.size, chunk = part->chunk;
    const int64_t most = FLEX_BLOCK / chunk;
    _Alignas(FLEX_ALIGN) char block[FLEX_BLOCK * 8];

    (void)worker;
    for (int64_t i = first; i < last; i += most) {
        const int64_t count = last - i < most ? last - i : most;
        const char *in =
            flex_loop_fetch(&part->in, i * chunk, count * chunk, block);
        char *out = part->out + i * part->out_chunk * size;

        for (int64_t k = 0; k < chunk; k++)
            flex_copy_strided(out + k * size, part->out_chunk, in + k * size,
                              chunk, count, part->in.size);
    }
}

/* Elements FIRST .. LAST - 1 of a part: piece after piece of its chunks. */
static void part_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct part *part = context;

    (void)worker;
    while (first < last) {
        int64_t within = first % part->chunk;
        int64_t count = part->chunk - within;
        int64_t at = first / part->chunk * part->out_chunk + within;

        if (count > last - first)
            count = last - first;
        flex_loop_gather(&part->in, first, count,
                         part->out + at * (int64_t)part->in.size);
        first += count;
    }
}

static hob_status cat(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 1), out->rank);
    struct part part = {.out = out->data};
    int64_t inner = 1;

    for (uint32_t i = dim + 1; i < out->rank; i++)
        inner *= out->shape[i];
    part.out_chunk = out->shape[dim] * inner;
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        const struct hob_view *in = hob_arg_item(call, 0, i);

        flex_loop_init(&part.in, in);
        part.chunk = in->shape[dim] * inner;
        if (part.chunk && part.chunk < CHUNK_SMALL)
            flex_parallel(device, part.in.count / part.chunk,
                          FLEX_GRAIN_CHEAP / part.chunk, chunk_range, &part);
        else
            flex_parallel(device, part.in.count, FLEX_GRAIN_CHEAP, part_range,
                          &part);
        part.out += part.chunk * (int64_t)part.in.size;
    }
    return HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "cat",
        .signature = "(tensors: [Any], dim: i64) -> tensors",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = cat,
    },
};

const struct flex_entries flex_cat_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};
