/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c - matmul and linear over flex_gemm().
 *
 * Views go to the product with their strides: a transposed operand costs
 * nothing. Batch dimensions are collapsed where that is right for all three
 * matrices; where one matrix B serves a whole batch of A's rows, the batch
 * becomes one taller product.
 */
#include "gemm.h"

#include <inttypes.h>
#include <string.h>

struct batch {
    struct flex_device *device;
    struct flex_gemm gemm; /* of the first item */
    uint32_t size;         /* of an element */
    uint32_t rank;
    int64_t shape[HOB_MAX_RANK];
    int64_t a[HOB_MAX_RANK], b[HOB_MAX_RANK], c[HOB_MAX_RANK]; /* strides */
    hob_status status; /* the same failure from any thread */
};

/* Products up to this many flops each are spread over threads as wholes. */
enum { WHOLE_FLOPS = 4 << 20 };

/* The stride of batch dimension DIM of RANK of VIEW, 0 where it repeats. */
static int64_t batch_stride(const struct hob_view *view, uint32_t dim,
                            uint32_t rank)
{
    int64_t at = (int64_t)dim - (int64_t)(rank - view->rank);

    return at < 0 || view->shape[at] == 1 ? 0 : view->strides[at];
}

/* Drop size-1 batch dimensions and merge neighbours that walk evenly. */
static void collapse(struct batch *batch)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < batch->rank; i++) {
        const int64_t size = batch->shape[i];
        uint32_t last = kept - 1;

        if (size == 1)
            continue;
        if (kept > 0 && batch->a[last] == batch->a[i] * size &&
            batch->b[last] == batch->b[i] * size &&
            batch->c[last] == batch->c[i] * size) {
            batch->shape[last] *= size;
        } else {
            last = kept++;
            batch->shape[last] = size;
        }
        batch->a[last] = batch->a[i];
        batch->b[last] = batch->b[i];
        batch->c[last] = batch->c[i];
    }
    batch->rank = kept;
}

/* Batches of A by one B whose rows follow each other: one tall product. */
static void fold_rows(struct batch *batch)
{
    struct flex_gemm *gemm = &batch->gemm;

    while (batch->rank > 0) {
        const uint32_t last = batch->rank - 1;
        if (batch->b[last] != 0 ||
            (batch->a[last] != gemm->m * gemm->a_row && gemm->m != 1) ||
            (batch->c[last] != gemm->m * gemm->ldc && gemm->m != 1))
            break;
        if (gemm->m == 1) {
            gemm->a_row = batch->a[last];
            gemm->ldc = batch->c[last];
            if (gemm->ldc < gemm->n)
                break;
        }
        gemm->m *= batch->shape[last];
        batch->rank--;
    }
}

static void batch_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    struct batch *batch = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        struct flex_gemm gemm = batch->gemm;
        int64_t rest = i, a = 0, b = 0, c = 0;
        hob_status st;

        for (uint32_t d = batch->rank; d-- > 0;) {
            int64_t index = rest % batch->shape[d];
            rest /= batch->shape[d];
            a += index * batch->a[d];
            b += index * batch->b[d];
            c += index * batch->c[d];
        }
        gemm.a = (const char *)gemm.a + a * batch->size;
        gemm.b = (const char *)gemm.b + b * batch->size;
        gemm.c = (char *)gemm.c + c * batch->size;
        st = flex_gemm(batch->device, &gemm);
        if (st)
            __atomic_store_n(&batch->status, st, __ATOMIC_RELAXED);
    }
}

static hob_status run_batch(struct hob_call *call, struct batch *batch)
{
    const double flops = 2.0 * (double)batch->gemm.m * (double)batch->gemm.n *
                         (double)batch->gemm.k;
    int64_t count = 1;

    collapse(batch);
    fold_rows(batch);
    for (uint32_t i = 0; i < batch->rank; i++)
        count *= batch->shape[i];
    if (batch->rank == 0)
        batch->status = flex_gemm(batch->device, &batch->gemm);
    else if (flops <= WHOLE_FLOPS)
        flex_parallel(batch->device, count, 1 + (int64_t)(1e6 / (flops + 1)),
                      batch_range, batch);
    else /* one after the other, each on all threads */
        batch_range(batch, 0, count, 0);
    if (batch->status)
        return call->host->fail(call, batch->status,
                                "%s: no memory to pack operands of %" PRId64
                                " x %" PRId64 " x %" PRId64,
                                call->op_name, batch->gemm.m, batch->gemm.k,
                                batch->gemm.n);
    return HOB_OK;
}

/* Fill BATCH for LHS @ RHS into OUT. Rank 1 never arrives here. */
static void batch_init(struct batch *batch, struct flex_device *device,
                       const struct hob_view *lhs, const struct hob_view *rhs,
                       const struct hob_view *out)
{
    const uint32_t l = lhs->rank, r = rhs->rank, o = out->rank;

    batch->device = device;
    batch->size = hob_dtype_size(out->dtype);
    batch->rank = o - 2;
    batch->status = HOB_OK;
    batch->gemm = (struct flex_gemm){
        .struct_size = sizeof(batch->gemm),
        .dtype = out->dtype,
        .m = out->shape[o - 2],
        .n = out->shape[o - 1],
        .k = lhs->shape[l - 1],
        .a = lhs->data,
        .a_row = lhs->strides[l - 2],
        .a_column = lhs->strides[l - 1],
        .b = rhs->data,
        .b_row = rhs->strides[r - 2],
        .b_column = rhs->strides[r - 1],
        .c = out->data,
        .ldc = out->shape[o - 1],
        .alpha = 1,
    };
    for (uint32_t i = 0; i < batch->rank; i++) {
        batch->shape[i] = out->shape[i];
        batch->a[i] = batch_stride(lhs, i, o);
        batch->b[i] = batch_stride(rhs, i, o);
        batch->c[i] = batch_stride(out, i, o);
    }
}

static hob_status matmul(void *device, struct hob_call *call)
{
    struct batch batch;

    batch_init(&batch, device, hob_arg_view(call, 0), hob_arg_view(call, 1),
               hob_ret_view(call, 0));
    if (hob_view_count(hob_ret_view(call, 0)) == 0)
        return HOB_OK;
    return run_batch(call, &batch);
}

/* x [.., in] @ weight [in, out] + bias [out]: x of rank 1 is one row. */
static hob_status linear(void *device, struct hob_call *call)
{
    struct hob_view x = *hob_arg_view(call, 0);
    struct hob_view out = *hob_ret_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *bias = hob_arg_view(call, 2);
    struct batch batch;

    if (hob_view_count(&out) == 0)
        return HOB_OK;
    if (x.rank == 1) {
        for (struct hob_view *view = &x;; view = &out) {
            view->rank = 2;
            view->shape[1] = view->shape[0];
            view->strides[1] = view->strides[0];
            view->shape[0] = 1;
            view->strides[0] = view->shape[1];
            if (view == &out)
                break;
        }
    }
    batch_init(&batch, device, &x, weight, &out);
    batch.gemm.bias = bias ? bias->data : NULL;
    return run_batch(call, &batch);
}

/* The product takes a contiguous bias; weights may have any strides. */
static hob_status linear_any(void *device, struct hob_call *call)
{
    struct hob_view *bias = hob_arg_view(call, 2);
    struct flex_loop loop;
    uint64_t bytes;
    void *given, *copy;
    hob_status st;

    if (!bias || bias->strides[0] == 1 || bias->shape[0] <= 1)
        return linear(device, call);
    flex_loop_init(&loop, bias);
    bytes = (uint64_t)loop.count * loop.size;
    given = bias->data;
    copy = flex_scratch_take(device, bytes);
    if (!copy)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "linear: no memory for a copy of bias");
    flex_loop_gather(&loop, 0, loop.count, copy);
    bias->data = copy;
    st = linear(device, call);
    bias->data = given;
    flex_scratch_give(device, copy, bytes);
    return st;
}

hob_status flex_product(struct flex_device *device, const struct hob_view *lhs,
                        const struct hob_view *rhs, const struct hob_view *bias,
                        const struct hob_view *out, struct flex_gemm *hooks)
{
    struct batch batch;

    if (lhs->rank < 2 || rhs->rank < 2 || (bias && bias->strides[0] != 1) ||
        (out->dtype != HOB_DTYPE_F32 && out->dtype != HOB_DTYPE_F64) ||
        hob_view_count(out) == 0)
        return HOB_ERR_UNSUPPORTED;
    batch_init(&batch, device, lhs, rhs, out);
    collapse(&batch);
    fold_rows(&batch);
    if (batch.rank)
        return HOB_ERR_UNSUPPORTED;
    batch.gemm.bias = bias ? bias->data : hooks->bias;
    batch.gemm.relu = hooks->relu;
    batch.gemm.epilogue = hooks->epilogue;
    batch.gemm.epilogue_context = hooks->epilogue_context;
    memcpy(batch.gemm.reads, hooks->reads, sizeof(batch.gemm.reads));
    return flex_gemm(device, &batch.gemm);
}

static const uint32_t num_masks[] = {HOB_MASK_NUM, HOB_MASK_NUM};
static const uint32_t float_masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                       HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "matmul",
        .signature = "(lhs: Num, rhs: Num) -> lhs",
        .dtypes = num_masks,
        .dtype_count = 2,
        .execute = matmul,
    },
    {
        .op = "linear",
        .signature = "(x: Float, weight: Float, bias: Float?) -> x",
        .dtypes = float_masks,
        .dtype_count = 3,
        .execute = linear_any,
    },
};

const struct flex_entries flex_matmul_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
