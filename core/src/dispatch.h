/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.h - from the outer boundary to the base.
 *
 *   boundary.c  fill, check, join, infer: once, for whoever calls
 *   dispatch.c  the walk down the layers
 *   base.c      views, kernels, allocation, reuse, the body as a fallback
 */
#ifndef HOB__DISPATCH_H
#define HOB__DISPATCH_H

#include "registry.h"
#include "scope.h"

/* What is said of a result before it is made, beside its metadata. */
struct hob__expected {
    uint64_t bytes;
    uint64_t form; /* see form.h; 0: it was not asked for */
};

/* The core's own part of a call. */
struct hob_call_state {
    const struct hob__op *op;
    hob_runtime *runtime;
    hob_error *error;           /* where host->fail puts the message */
    uint64_t index;             /* of the call in its scope */
    struct hob__failure *cause; /* borrowed from an error tensor argument */
    uint32_t moved;  /* bit i: argument i is used for the last time */
    uint32_t levels; /* bit k - 1: a tensor may carry a word of level k */
    struct hob__expected *expected; /* of the results */
    uint64_t kind;                  /* see struct hob_call_origin */
    const hob_value *given;         /* the arguments, before they were bound */
    uint32_t given_count;
    uint8_t may_reuse;    /* some argument's memory may take a result */
    uint8_t quantized;    /* a quantized argument must be dequantized first */
    uint8_t device_param; /* whose tensor the device of the call is from */
    uint8_t served;       /* enum hob__served: of the call as it came */
};

/*
 * The outer boundary: validate ARGS, infer, run, let SCOPE own the results.
 * On failure OUT is set to SCOPE's error tensor throughout, OUT_PLAINS to
 * zeros, the policy is told, and the status returned.
 */
hob_status hob__call(hob_scope *scope, uint32_t op, const hob_value *args,
                     uint32_t arg_count, hob_tensor **out,
                     uint32_t out_capacity, uint32_t *out_count,
                     hob_value *out_plains, uint32_t plain_capacity);

/*
 * Run CALL at LEVEL and below. On success call->rets hold one reference each;
 * on failure they are NULL and the message is on the call.
 */
hob_status hob__walk(struct hob_call *call, int32_t level);

/* Run CALL below its level, as the layer there leaves it. */
hob_status hob__walk_below(struct hob_call *call);

/* Run CALL at the base. */
hob_status hob__base(struct hob_call *call);

/* Run the op's BODY at LEVEL. */
hob_status hob__run_body(struct hob_call *call, hob_body_fn body,
                         int32_t level);

/* Put a message on CALL and return STATUS. */
hob_status hob__call_fail(struct hob_call *call, hob_status status,
                          const char *format, ...) HOB_PRINTF(3, 4);

/* What the signature says of result INDEX: of a list, all items are alike. */
static inline const struct hob__result *
hob__result_of(const struct hob_call *call, uint32_t index)
{
    const struct hob__signature *signature = &call->core->op->signature;

    return &signature->results[signature->results[0].is_list ? 0 : index];
}

/* Whether result INDEX must be there: inference has not left it out. */
static inline int hob__is_due(const struct hob_call *call, uint32_t index)
{
    return call->metas[index].dtype != HOB_DTYPE_NONE ||
           !(hob__result_of(call, index)->flags & HOB__PARAM_OPTIONAL);
}

/* Whether the arguments of CALL are those that it was given. */
static inline int hob__is_as_given(const struct hob_call *call)
{
    const hob_value *given = call->core->given;

    for (uint32_t i = 0; i < call->core->given_count; i++)
        if (call->args[i].tag != given[i].tag ||
            call->args[i].count != given[i].count ||
            call->args[i].u.u64 != given[i].u.u64)
            return 0;
    return call->core->given_count == call->arg_count;
}

/* Give back what call->rets hold. */
void hob__drop_rets(struct hob_call *call);

/*
 * A reference to TENSOR itself if it is row-major, else to a row-major copy
 * on its base. Outside any call; used when elements leave Hob.
 */
HOB_MUST_CHECK hob_status hob__contiguous(hob_tensor *tensor,
                                          hob_tensor **out_tensor,
                                          hob_error *error);

/* For host->result: allocate result INDEX of CALL. */
hob_status hob__call_result(struct hob_call *call, uint32_t index,
                            const struct hob_meta *meta);

/* The panic of an op that no listed backend supplies; see diagnose.c. */
hob_status hob__diagnose_unlisted(struct hob_call *call,
                                  const struct hob__route *route);

#endif
