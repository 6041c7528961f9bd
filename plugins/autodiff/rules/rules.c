/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <hob/ops.h>

#include <string.h>

static const struct ad_family *const families[] = {
    &ad_rules_activation, &ad_rules_arithmetic, &ad_rules_attention,
    &ad_rules_conv,       &ad_rules_fft,        &ad_rules_index,
    &ad_rules_linalg,     &ad_rules_norm,       &ad_rules_reduce,
    &ad_rules_sample,     &ad_rules_shape,      &ad_rules_sort,
    &ad_rules_unary,
};

void ad_rules_fill(const struct hob_backward *table[AD_OP_LIMIT])
{
    memset(table, 0, AD_OP_LIMIT * sizeof(table[0]));
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        for (uint32_t j = 0; j < families[i]->count; j++)
            if (families[i]->rules[j].op < AD_OP_LIMIT)
                table[families[i]->rules[j].op] =
                    &families[i]->rules[j].backward;
}

int ad_same_shape(const hob_tensor *tensor, const struct hob_meta *meta)
{
    return hob_tensor_rank(tensor) == meta->rank &&
           memcmp(hob_tensor_shape(tensor), meta->shape,
                  meta->rank * sizeof(int64_t)) == 0;
}

hob_tensor *ad_zeros(hob_scope *scope, const struct hob_meta *meta,
                     hob_tensor *like)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(like);

    return hob_zeros(scope, meta->shape, meta->rank, device,
                     (hob_dtype)meta->dtype);
}

hob_tensor *ad_reshape(hob_scope *scope, hob_tensor *tensor,
                       const struct hob_meta *meta)
{
    if (ad_same_shape(tensor, meta))
        return tensor;
    return hob_reshape(scope, tensor, meta->shape, meta->rank);
}

hob_tensor *ad_expand(hob_scope *scope, hob_tensor *tensor,
                      const struct hob_meta *meta)
{
    if (ad_same_shape(tensor, meta))
        return tensor;
    return hob_expand(scope, tensor, meta->shape, meta->rank);
}

hob_tensor *ad_narrow(hob_scope *scope, hob_tensor *tensor, int64_t dim,
                      int64_t first, int64_t last)
{
    int64_t starts[HOB_MAX_RANK] = {0};
    int64_t ends[HOB_MAX_RANK] = {0};

    for (int64_t i = 0; i < dim; i++)
        ends[i] = hob_tensor_shape(tensor)[i];
    starts[dim] = first;
    ends[dim] = last;
    return hob_slice(scope, tensor, starts, (uint32_t)dim + 1, ends,
                     (uint32_t)dim + 1, NULL, 0);
}

hob_tensor *ad_transpose(hob_scope *scope, hob_tensor *tensor)
{
    return hob_swap_dims(scope, tensor, -2, -1);
}

hob_tensor *ad_sum_to(hob_scope *scope, hob_tensor *grad,
                      const struct hob_meta *meta)
{
    const int64_t *shape = hob_tensor_shape(grad);
    int64_t rank = hob_tensor_rank(grad);
    int64_t extra = rank - meta->rank;
    int64_t leading = 1;
    int64_t folded[HOB_MAX_RANK];

    if (ad_same_shape(grad, meta))
        return grad;
    if (extra > 0) {
        /* New dimensions in front become one, which one pass sums. */
        for (int64_t i = 0; i < extra; i++)
            leading *= shape[i];
        folded[0] = leading;
        memcpy(folded + 1, shape + extra, meta->rank * sizeof(int64_t));
        if (extra > 1)
            grad = hob_reshape(scope, grad, folded, meta->rank + 1u);
        grad = hob_sum_dim(scope, grad, 0);
        grad = hob_reshape(scope, grad, folded + 1, meta->rank);
    }
    for (uint32_t i = 0; i < meta->rank; i++)
        if (meta->shape[i] == 1 && hob_tensor_rank(grad) == meta->rank &&
            hob_tensor_shape(grad)[i] != 1)
            grad = hob_sum_dim(scope, grad, i);
    return grad;
}
