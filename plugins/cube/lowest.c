/* SPDX-License-Identifier: Apache-2.0 */
#include "lowest.h"

int64_t cube_lowest(const struct hob_view *view, int64_t *out_count)
{
    int64_t low = 0, high = 0;

    for (uint32_t i = 0; i < view->rank; i++) {
        const int64_t reach = (view->shape[i] - 1) * view->strides[i];

        if (view->shape[i] == 0) {
            if (out_count)
                *out_count = 0;
            return 0;
        }
        if (reach < 0)
            low -= reach;
        else
            high += reach;
    }
    if (out_count)
        *out_count = low + high + 1;
    return low;
}

void cube_job_lowest(struct cube_job *job, const struct hob_view *view)
{
    int64_t count;
    const int64_t low = cube_lowest(view, &count);

    cube_job_memory(job,
                    (const char *)view->data -
                        low * (int64_t)hob_dtype_size(view->dtype),
                    view->dtype, count);
}
