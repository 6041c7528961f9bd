/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cat.c - tensors one after the other along a dimension.
 */
#include "move.h"

/* Rows from which they are worth going to threads. */
enum { FEW_ROWS = 16 };

struct cat {
    struct flex_device *device;
    const struct hob_call *call;
    const struct hob_view *out;
    uint32_t dim;
    uint32_t split; /* the dimension before dim that is cut into rows */
};

/* The part of the result that is IN's, which begins AT along DIM. */
static struct hob_view place(const struct hob_view *out,
                             const struct hob_view *in, uint32_t dim,
                             int64_t at)
{
    struct hob_view part = *out;

    part.data = (char *)part.data +
                at * part.strides[dim] * (int64_t)hob_dtype_size(part.dtype);
    part.shape[dim] = in->shape[dim];
    return part;
}

/* Positions FIRST .. LAST - 1 of VIEW along DIM. */
static void narrow(struct hob_view *view, uint32_t dim, int64_t first,
                   int64_t last)
{
    view->data = (char *)view->data + first * view->strides[dim] *
                                          (int64_t)hob_dtype_size(view->dtype);
    view->shape[dim] = last - first;
}

/* Some rows of all tensors, so that lines of the result which more than one of
 * them writes are still in the cache. */
static void cat_rows(void *context, int64_t first, int64_t last,
                     uint32_t worker)
{
    enum { BAND_BYTES = 1 << 17 };
    const struct cat *cat = context;
    const int64_t size = hob_dtype_size(cat->out->dtype);
    const uint64_t bytes = (uint64_t)(hob_view_count(cat->out) * size);
    const int64_t row_bytes = (int64_t)bytes / cat->out->shape[cat->split];
    const int64_t band = row_bytes < BAND_BYTES ? BAND_BYTES / row_bytes : 1;

    (void)worker;
    for (; first < last; first += band) {
        const int64_t end = last - first < band ? last : first + band;
        int64_t at = 0;

        for (uint32_t i = 0; i < cat->call->args[0].count; i++) {
            struct hob_view in = *hob_arg_item(cat->call, 0, i);
            struct hob_view part = place(cat->out, &in, cat->dim, at);

            at += in.shape[cat->dim];
            narrow(&part, cat->split, first, end);
            narrow(&in, cat->split, first, end);
            flex_move_here(cat->device, &part, &in, bytes);
        }
    }
}

static hob_status cat(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct cat cat = {.device = device, .call = call, .out = out};
    int64_t rows, at = 0;

    cat.dim = flex_dim(flex_arg_i64(call, 1), out->rank);
    for (uint32_t i = 1; i < cat.dim; i++)
        if (out->shape[cat.split] < FEW_ROWS &&
            out->shape[i] > out->shape[cat.split])
            cat.split = i;
    rows = cat.dim ? out->shape[cat.split] : 1;
    if (hob_view_count(out) == 0)
        return HOB_OK;
    if (rows >= FEW_ROWS) {
        flex_parallel(device, rows,
                      1 + FLEX_GRAIN_CHEAP * rows / hob_view_count(out),
                      cat_rows, &cat);
        return HOB_OK;
    }
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        const struct hob_view *in = hob_arg_item(call, 0, i);
        const struct hob_view part = place(out, in, cat.dim, at);

        at += in->shape[cat.dim];
        flex_move(device, &part, in);
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
