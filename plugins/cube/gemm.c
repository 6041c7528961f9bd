/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - products of matrices of extensions: what they ask for is checked,
 * then it is the runtime's library's.
 */
#include "compute.h"

#include "cube.h"
#include "runtime.h"

#include <inttypes.h>

int cube_as_matrix(const struct hob_view *view, struct hob_view *out)
{
    const uint32_t last = view->rank - 1u;
    int64_t rows = 1;

    if (view->rank == 0 || (view->rank > 2 && !cube_is_contiguous(view)))
        return 0;
    for (uint32_t i = 0; i < last; i++)
        rows *= view->shape[i];
    *out = *view;
    out->rank = 2;
    out->shape[0] = rows;
    out->shape[1] = view->shape[last];
    out->strides[0] = view->rank == 2 ? view->strides[0] : view->shape[last];
    out->strides[1] = view->strides[last];
    return 1;
}

static int is_row_major(const struct hob_view *view)
{
    int64_t stride = 1;

    for (uint32_t i = view->rank; i-- > 0; stride *= view->shape[i])
        if (view->shape[i] != 1 && view->strides[i] != stride)
            return 0;
    return 1;
}

enum {
    SLOPES = HOB_CUBE_RELU_SLOPE | HOB_CUBE_GELU_TANH_SLOPE,
    KNOWN = HOB_CUBE_BIAS | HOB_CUBE_RELU | HOB_CUBE_GELU_TANH |
            HOB_CUBE_SUM_B | HOB_CUBE_KEEP | SLOPES | HOB_CUBE_SUM_C,
    WITH_BIAS = HOB_CUBE_BIAS | HOB_CUBE_SUM_B | HOB_CUBE_SUM_C,
    WITH_AUX = HOB_CUBE_KEEP | SLOPES
};

/* A function or none, with a bias or not and kept or not; a slope, with its sum
 * or not; the sum of b. */
static int go_together(uint32_t epilogue)
{
    const uint32_t function =
        epilogue & (HOB_CUBE_RELU | HOB_CUBE_GELU_TANH | SLOPES);

    if (function & (function - 1))
        return 0;
    if (epilogue & HOB_CUBE_SUM_B)
        return epilogue == HOB_CUBE_SUM_B;
    if (function & SLOPES)
        return !(epilogue & (HOB_CUBE_BIAS | HOB_CUBE_KEEP));
    return !(epilogue & HOB_CUBE_SUM_C) &&
           (function || !(epilogue & HOB_CUBE_KEEP));
}

/* Whether GEMM's aux is as its epilogue has it. */
static int aux_fits(const struct hob_cube_gemm *gemm)
{
    const struct hob_view *aux = gemm->aux, *c = gemm->c;
    const int is_bits =
        (gemm->epilogue & (HOB_CUBE_RELU | HOB_CUBE_RELU_SLOPE)) != 0;
    const int64_t columns =
        is_bits ? cube_divide_up(c->shape[1], 8) : c->shape[1];

    return aux->rank == 2 &&
           aux->dtype == (is_bits ? HOB_DTYPE_U8 : c->dtype) &&
           aux->shape[0] == c->shape[0] && aux->shape[1] == columns &&
           (aux->strides[1] == 1 || columns == 1) &&
           aux->strides[0] >= columns &&
           aux->strides[0] % (is_bits ? 16 : 8) == 0;
}

/* What is wrong with GEMM; NULL: nothing. */
static const char *problem_of(const struct hob_cube_gemm *gemm)
{
    const struct hob_view *a = gemm->a, *b = gemm->b, *c = gemm->c;

    if (gemm->epilogue & ~(uint32_t)KNOWN)
        return "an epilogue that is not known";
    if (!go_together(gemm->epilogue))
        return "epilogues that exclude each other";
    if (!a || !b || !c || a->rank != 2 || b->rank != 2 || c->rank != 2)
        return "operands that are not three matrices";
    if (a->dtype != b->dtype || a->dtype != c->dtype)
        return "operands of several dtypes";
    if (a->shape[1] != b->shape[0] || a->shape[0] != c->shape[0] ||
        b->shape[1] != c->shape[1])
        return "matrices whose sizes do not fit";
    if (a->shape[0] < 1 || a->shape[1] < 1 || b->shape[1] < 1)
        return "an empty matrix";
    if (!is_row_major(c))
        return "a result that is not row-major";
    if (!gemm->bias != !(gemm->epilogue & WITH_BIAS))
        return gemm->bias ? "a bias that its epilogue does not have"
                          : "no bias, which its epilogue has";
    if (gemm->bias &&
        (gemm->bias->rank != 1 || gemm->bias->dtype != c->dtype ||
         gemm->bias->shape[0] != c->shape[1] || !is_row_major(gemm->bias)))
        return "a bias that is not a row of the result";
    /* Who does not know of aux has no such epilogue. */
    if ((gemm->epilogue & WITH_AUX) && (!gemm->aux || !aux_fits(gemm)))
        return gemm->aux ? "an aux of the wrong dtype, sizes or strides"
                         : "no aux, which its epilogue has";
    return NULL;
}

hob_status cube_gemm(void *instance, struct hob_call *call,
                     const struct hob_cube_gemm *gemm)
{
    struct cube_device *device = instance;
    const char *problem = problem_of(gemm);
    char *message = NULL;
    hob_status status;

    if (problem)
        return device->host->fail(call, HOB_ERR_ARGUMENT,
                                  "%s: a product is asked for with %s",
                                  call->op_name, problem);
    if (!device->runtime->gemm)
        return HOB_ERR_UNSUPPORTED;
    status = device->runtime->gemm(device, call->op_name, gemm, &message);
    return status && status != HOB_ERR_UNSUPPORTED
               ? cube_fail(device, call, status, message)
               : status;
}
