/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_backward.c - the gradients of attention; see attention.h.
 *
 * Weights and slopes of all scores at once would be memory that grows with the
 * square of the sequence. So what has too many is done in parts: entries of the
 * batch one after the other, and queries of one entry, of whose shares the
 * gradients of keys and values are the sum.
 */
#include "attention.h"

#include "../splits.h"
#include "matmul.h"

/* Bytes of weights and slopes of a part, on a device that has eight times as
 * much. */
#define PART_MOST (INT64_C(1) << 30)

/* The tensors of a call beside the operands. */
enum { LSE = OPERANDS, DELTA, D_QUERY, D_KEY, D_VALUE, D_BIAS, TENSORS };

/* A call, or a part of one. */
struct part {
    struct cube_device *device;
    struct hob_call *call;
    struct hob_view views[TENSORS];
    uint32_t present; /* a bit for each */
    struct attention_options options;
};

static int64_t size_of(const struct part *part, uint32_t index, uint32_t back)
{
    const struct hob_view *view = &part->views[index];

    return view->shape[view->rank - back];
}

static int64_t row_size(const struct part *part)
{
    return cube_divide_up(size_of(part, K, 2), 4) * 4;
}

/* Of weights or of slopes; kernels have them even where there are none. */
static int64_t score_bytes(const struct part *part)
{
    const struct hob_view *q = &part->views[Q];
    int64_t rows = 1;

    for (uint32_t i = 0; i + 1 < q->rank; i++)
        rows *= q->shape[i];
    return 4 * rows * row_size(part) + 16;
}

/* Let VIEW be its places FIRST .. FIRST + COUNT - 1 of the dimension that is
 * BACK from the end, unless it repeats there. */
static void cut_view(struct hob_view *view, uint32_t back, int64_t first,
                     int64_t count)
{
    const uint32_t at = view->rank - back;

    if (view->rank < back || view->shape[at] == 1)
        return;
    view->data = (char *)view->data +
                 first * view->strides[at] * hob_dtype_size(view->dtype);
    view->shape[at] = count;
}

/* Those places of the tensors of PART that TENSORS has a bit for. */
static struct part cut(const struct part *part, uint32_t tensors, uint32_t back,
                       int64_t first, int64_t count)
{
    struct part out = *part;

    for (uint32_t i = 0; i < TENSORS; i++)
        if (part->present & tensors & 1u << i)
            cut_view(&out.views[i], back, first, count);
    return out;
}

/* ---- a part that has few enough scores ---- */

/* SCORES, turned, by FACTOR to OUT. */
static hob_status multiply(const struct part *part, void *scores,
                           uint32_t factor, const struct hob_view *out)
{
    struct hob_view lhs = part->views[Q];
    const uint32_t rank = lhs.rank;
    int64_t stride = row_size(part) * size_of(part, Q, 2);

    lhs.data = scores;
    lhs.dtype = HOB_DTYPE_F32;
    lhs.shape[rank - 2] = size_of(part, K, 2);
    lhs.strides[rank - 2] = 1;
    lhs.shape[rank - 1] = size_of(part, Q, 2);
    lhs.strides[rank - 1] = row_size(part);
    for (uint32_t i = rank - 2; i-- > 0;) {
        lhs.strides[i] = stride;
        stride *= lhs.shape[i];
    }
    return cube_matmul(part->device, part->call, &lhs, &part->views[factor],
                       out);
}

/* D_KEY and D_VALUE are where those gradients go. */
static hob_status run(const struct part *part, const struct hob_view *d_key,
                      const struct hob_view *d_value)
{
    struct cube_device *device = part->device;
    const int64_t bytes = score_bytes(part);
    const struct hob_view *operands[OPERANDS];
    struct attention attention;
    void *memory;
    hob_status st =
        device->runtime->alloc(device, 2 * (uint64_t)bytes, &memory);

    if (st)
        return cube_fail(device, part->call, st, NULL);
    for (uint32_t i = 0; i < OPERANDS; i++)
        operands[i] = part->present >> i & 1 ? &part->views[i] : NULL;
    cube_attention_init(&attention, device, part->call, operands,
                        &part->options);
    attention.lse = &part->views[LSE];
    attention.delta = &part->views[DELTA];
    attention.slopes =
        part->present >> D_BIAS & 1 ? &part->views[D_BIAS] : NULL;
    attention.p = memory;
    attention.w = (char *)memory + bytes;
    attention.row_size = row_size(part);
    st = cube_attention_run(&attention, SLOPES, &part->views[D_QUERY]);
    if (!st)
        st = multiply(part, attention.w, Q, d_key);
    if (!st)
        st = multiply(part, attention.p, GRAD, d_value);
    device->runtime->free(device, memory, 2 * (uint64_t)bytes);
    return st;
}

/* ---- one that has more ---- */

/* SPLITS parts of the queries of PART, one entry of a batch. */
static hob_status run_queries(const struct part *part, int64_t splits)
{
    const uint32_t by_query = 1u << Q | 1u << GRAD | 1u << MASK | 1u << BIAS |
                              1u << LSE | 1u << DELTA | 1u << D_QUERY |
                              1u << D_BIAS;
    const int64_t queries = size_of(part, Q, 2);
    const int64_t each = cube_divide_up(queries, splits);
    struct hob_view share[2] = {part->views[D_KEY], part->views[D_VALUE]};
    struct cube_parts parts[2];
    hob_status st, other;

    splits = cube_divide_up(queries, each);
    st = cube_parts_take(&parts[0], part->device, part->call,
                         &part->views[D_KEY], HOB_DTYPE_F32, splits);
    if (st)
        return st;
    st = cube_parts_take(&parts[1], part->device, part->call,
                         &part->views[D_VALUE], HOB_DTYPE_F32, splits);
    if (st)
        return cube_parts_add(&parts[0], part->device, part->call, st);
    for (int64_t i = 0; i < splits && !st; i++) {
        const int64_t first = i * each;
        struct part few = cut(part, by_query, 2, first,
                              queries - first < each ? queries - first : each);

        few.options.ahead += first;
        for (uint32_t k = 0; k < 2; k++) {
            share[k].dtype = HOB_DTYPE_F32;
            share[k].data = (char *)parts[k].data + i * parts[k].count * 4;
        }
        st = run(&few, &share[0], &share[1]);
    }
    other = cube_parts_add(&parts[0], part->device, part->call, st);
    st = cube_parts_add(&parts[1], part->device, part->call, st);
    return st ? st : other;
}

static int64_t part_most(const struct cube_device *device)
{
    const int64_t few = (int64_t)(device->limits.memory_bytes / 8);

    return few && few < PART_MOST ? few : PART_MOST;
}

/* PART by halves of its batch, until there are few enough scores. */
static hob_status run_batch(const struct part *part)
{
    const uint32_t rank = part->views[Q].rank;
    const int64_t splits = cube_divide_up(2 * score_bytes(part), part_most(part->device));
    uint32_t back = rank;

    if (splits <= 1)
        return run(part, &part->views[D_KEY], &part->views[D_VALUE]);
    while (back > 2 && size_of(part, Q, back) == 1)
        back--;
    if (back == 2)
        return run_queries(part, splits);
    {
        const int64_t size = size_of(part, Q, back), half = size / 2;
        const struct part first = cut(part, ~0u, back, 0, half);
        const struct part second = cut(part, ~0u, back, half, size - half);
        hob_status st = run_batch(&first);

        return st ? st : run_batch(&second);
    }
}

static void add(struct part *part, uint32_t index, const struct hob_view *view)
{
    if (!view)
        return;
    part->views[index] = *view;
    part->present |= 1u << index;
}

hob_status cube_attention_backward(void *device, struct hob_call *call)
{
    const struct hob_view *operands[OPERANDS];
    struct part part = {.device = device, .call = call};

    cube_attention_operands(call, 1, operands);
    for (uint32_t i = 0; i < OPERANDS; i++)
        add(&part, i, operands[i]);
    add(&part, LSE, hob_arg_view(call, 5));
    add(&part, DELTA, hob_arg_view(call, 6));
    for (uint32_t i = 0; i < 3; i++)
        add(&part, D_QUERY + i, hob_ret_view(call, i));
    if (cube_arg_i64(call, 11))
        add(&part, D_BIAS, hob_ret_view(call, 3));
    part.options = cube_attention_options(call, 1);
    return run_batch(&part);
}
