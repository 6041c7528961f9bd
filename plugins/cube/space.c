/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <assert.h>
#include <string.h>

void cube_space_init(struct cube_space *space, uint32_t rank,
                     const int64_t *shape)
{
    /* Operands are as they are added. */
    space->operand_count = 0;
    space->rank = rank;
    space->count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        space->sizes[i] = shape[i];
        space->count *= shape[i];
    }
}

void cube_space_add(struct cube_space *space, const struct hob_view *view)
{
    const uint32_t index = space->operand_count++;
    const uint32_t missing = space->rank - view->rank;

    assert(index < CUBE_MAX_OPERANDS && view->rank <= space->rank);
    space->data[index] = view->data;
    space->dtypes[index] = view->dtype;
    memset(space->strides[index], 0, sizeof(space->strides[index]));
    for (uint32_t i = 0; i < view->rank; i++)
        if (view->shape[i] != 1)
            space->strides[index][missing + i] = view->strides[i];
}

/* Whether dimensions OUTER and D, next to it, are one walk through memory for
 * all. */
static int is_mergeable(const struct cube_space *space, uint32_t outer,
                        uint32_t d)
{
    for (uint32_t k = 0; k < space->operand_count; k++)
        if (space->strides[k][outer] != space->strides[k][d] * space->sizes[d])
            return 0;
    return 1;
}

void cube_space_collapse(struct cube_space *space)
{
    uint32_t kept = 0;

    for (uint32_t d = 0; d < space->rank; d++) {
        int64_t outer = 1;

        if (space->sizes[d] == 1)
            continue;
        if (kept && is_mergeable(space, kept - 1, d))
            outer = space->sizes[--kept];
        space->sizes[kept] = outer * space->sizes[d];
        for (uint32_t k = 0; k < space->operand_count; k++)
            space->strides[k][kept] = space->strides[k][d];
        kept++;
    }
    space->rank = kept;
}

int cube_space_is_dense(const struct cube_space *space, uint32_t index)
{
    int64_t stride = 1;

    for (uint32_t d = space->rank; d-- > 0;) {
        if (space->strides[index][d] != stride)
            return 0;
        stride *= space->sizes[d];
    }
    return 1;
}

int cube_space_is_single(const struct cube_space *space, uint32_t index)
{
    for (uint32_t d = 0; d < space->rank; d++)
        if (space->strides[index][d] != 0)
            return 0;
    return 1;
}

void cube_space_reach(const struct cube_space *space, uint32_t index,
                      int64_t *out_low, int64_t *out_high)
{
    int64_t low = 0, high = 0;

    for (uint32_t d = 0; d < space->rank; d++) {
        const int64_t reach = (space->sizes[d] - 1) * space->strides[index][d];

        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    *out_low = low;
    *out_high = high;
}

void cube_job_operand(struct cube_job *job, const struct cube_space *space,
                      uint32_t index)
{
    const uint32_t dtype = space->dtypes[index];
    int64_t low, high;

    cube_space_reach(space, index, &low, &high);
    cube_job_memory(job,
                    (const char *)space->data[index] +
                        low * (int64_t)hob_dtype_size(dtype),
                    dtype, space->count ? high - low + 1 : 0);
}

void cube_job_strides(struct cube_job *job, const struct cube_space *space,
                      uint32_t index)
{
    int64_t low, high;

    cube_space_reach(space, index, &low, &high);
    cube_job_i64(job, -low);
    cube_job_i64s(job, space->strides[index], space->rank);
}

/*
 * n / size for n below 2^31 is (high word of n * magic + n) >> shift, with
 * shift the least s for which 2^s >= size (Granlund and Montgomery, "Division
 * by invariant integers using multiplication").
 */
static void magic_of(uint64_t size, uint32_t *magic, uint32_t *shift)
{
    *shift = 0;
    while ((UINT64_C(1) << *shift) < size)
        (*shift)++;
    *magic = (uint32_t)(((((UINT64_C(1) << *shift) - size) << 32) / size) + 1);
}

void cube_job_space(struct cube_job *job, const struct cube_space *space)
{
    uint32_t magics[HOB_MAX_RANK], shifts[HOB_MAX_RANK];

    cube_job_reach(job, space->count);
    cube_job_i64s(job, space->sizes, space->rank);
    for (uint32_t i = 0; i < space->rank; i++) {
        const int64_t size = space->sizes[i];

        /* Above, indices are wide and divided as they are. */
        magics[i] = shifts[i] = 0;
        if (size > 0 && size <= INT32_MAX)
            magic_of((uint64_t)size, &magics[i], &shifts[i]);
    }
    for (uint32_t i = 0; i < space->rank; i++)
        cube_job_i64(job, magics[i]);
    for (uint32_t i = 0; i < space->rank; i++)
        cube_job_i64(job, shifts[i]);
}
