/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - an extension that keeps every rule: m.twice(x) = 2 x.
 *
 * Each mutant spoils one thing: it defines that member as a macro, say
 * MUTANT_EXECUTE, before it includes mutant_table.h, which makes the tables
 * from these and the good functions here.
 */
#ifndef HOB_TEST_MUTANT_H
#define HOB_TEST_MUTANT_H

#include <hob/ext/plugin.h>
#include <hob/ops.h>

/* The place in VIEW of row-major element AT. */
static inline int64_t mutant_place(const struct hob_view *view, int64_t at)
{
    int64_t place = 0;

    for (uint32_t d = view->rank; d--;) {
        place += at % view->shape[d] * view->strides[d];
        at /= view->shape[d];
    }
    return place;
}

static inline double mutant_get(const struct hob_view *view, int64_t at)
{
    int64_t place = mutant_place(view, at);

    return view->dtype == HOB_DTYPE_F64 ? ((const double *)view->data)[place]
                                        : ((const float *)view->data)[place];
}

static inline void mutant_put(const struct hob_view *view, int64_t at,
                              double value)
{
    int64_t place = mutant_place(view, at);

    if (view->dtype == HOB_DTYPE_F64)
        ((double *)view->data)[place] = value;
    else
        ((float *)view->data)[place] = (float)value;
}

static inline hob_status mutant_execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i < hob_view_count(y); i++)
        mutant_put(y, i, 2 * mutant_get(x, i));
    return HOB_OK;
}

static inline hob_status mutant_infer(struct hob_call *call,
                                      struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    out->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++)
        out->shape[d] = x->shape[d];
    return HOB_OK;
}

static inline hob_status
mutant_body(hob_scope *scope, const struct hob_call *call, hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    out[0] = hob_add(scope, x, x);
    return hob_scope_host(scope)->scope_status(scope);
}

static inline hob_status mutant_backward(hob_scope *scope,
                                         const struct hob_grad_call *call)
{
    if (call->grads[0] && call->needs_grad[0])
        call->out_grads[0] = hob_add(scope, call->grads[0], call->grads[0]);
    return hob_scope_host(scope)->scope_status(scope);
}

#endif
