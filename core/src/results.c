/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.c - what a call will give: inference, and what it must keep to.
 */
#include "boundary.h"

#include "error.h"

#include <inttypes.h>
#include <stdlib.h>

static void preset_dtypes(const struct hob_call *call, struct hob_meta *metas)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob__result *result = hob__result_of(call, i);

        call->core->expected[i].form = 0;
        metas[i].rank = 0;
        metas[i].reserved0 = 0;
        metas[i].scheme = 0;
        if (result->flags & HOB__PARAM_OPTIONAL) /* absent, unless inferred */
            metas[i].dtype = HOB_DTYPE_NONE;
        else if (result->source == HOB__RESULT_DTYPE)
            metas[i].dtype = result->dtype;
        else if (result->source == HOB__RESULT_INFERRED)
            metas[i].dtype = HOB_DTYPE_NONE;
        else
            metas[i].dtype =
                (uint8_t)hob__value_dtype(&call->args[result->param]);
        if (metas[i].dtype == HOB_DTYPE_QUANT &&
            call->args[result->param].tag == HOB_TAG_TENSOR)
            metas[i].scheme = call->args[result->param].u.tensor->view.scheme;
    }
}

/* The results that are no tensors, as zeros of their types. */
static void preset_plains(const struct hob_call *call)
{
    static const uint8_t tags[] = {[HOB__TYPE_F64] = HOB_TAG_F64,
                                   [HOB__TYPE_I64] = HOB_TAG_I64,
                                   [HOB__TYPE_BOOL] = HOB_TAG_BOOL,
                                   [HOB__TYPE_DTYPE] = HOB_TAG_DTYPE,
                                   [HOB__TYPE_ENUM] = HOB_TAG_ENUM};
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = 0; i < call->plain_count; i++)
        call->plains[i] = hob_value_make(tags[signature->plains[i].type], 1);
}

/* Where the results belong to variants, they must be those of one variant. */
static hob_status check_result_variants(struct hob_call *call)
{
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = 0; i < call->plain_count; i++)
        if (signature->plains[i].type == HOB__TYPE_ENUM &&
            (call->plains[i].u.i64 < 0 ||
             call->plains[i].u.i64 >= signature->plains[i].enumerator_count))
            return hob__call_fail(
                call, HOB_ERR_PLUGIN,
                "its inference gave %s the enumerator %" PRId64
                ", there are %u: a bug of whoever declares the op",
                signature->plains[i].name ? signature->plains[i].name : "it",
                call->plains[i].u.i64,
                (unsigned)signature->plains[i].enumerator_count);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob__result *result = &signature->results[i];
        int there = call->metas[i].dtype != HOB_DTYPE_NONE;
        int chosen = result->tag_plain == HOB__NO_TAG ||
                     call->plains[result->tag_plain].u.i64 == result->variant;

        if ((there && !chosen) ||
            (!there && chosen &&
             (result->flags &
              (result->tag_plain == HOB__NO_TAG ? 0 : HOB__PARAM_NEEDED))))
            return hob__call_fail(
                call, HOB_ERR_PLUGIN,
                "its inference says that result %s is %s, which is not what "
                "the variant that it chose has: a bug of whoever declares the "
                "op",
                result->name, there ? "there" : "absent");
    }
    return HOB_OK;
}

static hob_infer_fn find_infer(struct hob_call *call, hob_status *out_status)
{
    const struct hob__op *op = call->core->op;
    hob_error why = HOB_ERROR_INIT;
    const struct hob_extension_op *table;

    *out_status = HOB_OK;
    if (op->decl->infer)
        return op->decl->infer;
    *out_status = hob__op_load(call->core->runtime, op, &why);
    if (*out_status)
        hob__call_fail(call, *out_status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    table = atomic_load(&op->table);
    return table ? table->infer : NULL;
}

static hob_status infer_failed(struct hob_call *call, hob_status status)
{
    return call->core->error->status
               ? status
               : hob__call_fail(
                     call, status,
                     "its inference of shapes failed without a message");
}

/* Ask how long the list of results is, and make room for it. */
static hob_status size_list(struct hob_call *call, hob_infer_fn fn,
                            struct hob__results *results)
{
    size_t count;
    hob_status status;

    call->ret_count = 0;
    status = fn(call, NULL);
    if (status)
        return status;
    count = call->ret_count;
    if (count > HOB_MAX_RESULTS) {
        results->heap =
            malloc(count * (sizeof(hob_value) + sizeof(struct hob_meta) +
                            sizeof(struct hob__expected)));
        if (!results->heap) {
            call->ret_count = 0;
            return hob__call_fail(call, HOB_ERR_MEMORY,
                                  "no memory for a list of %zu results", count);
        }
        call->rets = results->heap;
        call->metas = (struct hob_meta *)(void *)(call->rets + count);
        call->core->expected =
            (struct hob__expected *)(uintptr_t)(call->metas + count);
    }
    hob__blank_rets(call);
    return HOB_OK;
}

hob_status hob__infer(struct hob_call *call, struct hob__results *results)
{
    const struct hob__op *op = call->core->op;
    char text[HOB__META_TEXT];
    hob_status status = HOB_OK;
    hob_infer_fn fn = op->decl->infer;
    struct hob_meta *metas;

    if (!fn)
        fn = find_infer(call, &status);
    if (fn && op->signature.results[0].is_list) {
        status = size_list(call, fn, results);
        if (status)
            return infer_failed(call, status);
    }
    metas = (struct hob_meta *)(uintptr_t)call->metas; /* ours */
    preset_dtypes(call, metas);
    if (call->plain_count)
        preset_plains(call);
    if (!fn && (op->flags & HOB__OP_DYNAMIC))
        return HOB_OK;
    if (!fn)
        return status ? status
                      : hob__call_fail(call, HOB_ERR_PLUGIN,
                                       "its extension supplies no inference "
                                       "of shapes");
    status = fn(call, metas);
    if (status)
        return infer_failed(call, status);
    if (call->plain_count) {
        status = check_result_variants(call);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < call->ret_count; i++) {
        if (!hob__is_due(call, i))
            continue;
        if (metas[i].dtype == HOB_DTYPE_NONE)
            return hob__call_fail(call, HOB_ERR_PLUGIN,
                                  "its inference did not set out[%" PRIu32
                                  "].dtype, and the signature gives only a "
                                  "kind: a bug of whoever declares the op",
                                  i);
        if (!hob__meta_is_sound(&metas[i]))
            return hob__call_fail(call, HOB_ERR_PLUGIN,
                                  "its inference of shapes gave result %" PRIu32
                                  " the rank %u and the dtype number %u: a bug "
                                  "of whoever declares the op",
                                  i, (unsigned)metas[i].rank,
                                  (unsigned)metas[i].dtype);
        if (hob__meta_bytes(&metas[i], &call->core->expected[i].bytes))
            return hob__call_fail(
                call, HOB_ERR_SHAPE,
                "result %" PRIu32 " would be %s, larger than any memory", i,
                hob__meta_text(&metas[i], text, sizeof(text)));
    }
    return HOB_OK;
}
