/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - sizes of the results of vision.detect and vision.nms. */
#define VISION_PROTOTYPES_ONLY
#include "vision_glue.h"

#include <string.h>

static void set(struct hob_meta *out, int dtype, int rank, int64_t a, int64_t b)
{
    out->dtype = (uint8_t)dtype;
    out->rank = (uint8_t)rank;
    out->shape[0] = a;
    out->shape[1] = b;
}

hob_status vision_detect_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *image = hob_arg_view(call, 0);
    int64_t n = call->args[2].u.i64;

    if (image->rank != 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "image must be [height, width]");
    if (n < 0)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "max_boxes must not be negative");
    set(&out[0], image->dtype, 2, n, 4);
    set(&out[1], image->dtype, 1, n, 0);
    set(&out[2], HOB_DTYPE_I64, 0, 0, 0);
    set(&out[3], HOB_DTYPE_I64, 2, image->shape[0], image->shape[1]);
    call->plains[0].u.i64 = n;
    return HOB_OK;
}

hob_status vision_nms_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *coords = hob_arg_view(call, 0);
    const struct hob_view *scores = hob_arg_view(call, 1);
    const struct hob_view *valid = hob_arg_view(call, 2);
    int64_t n = coords->shape[0];

    if (coords->rank != 2 || coords->shape[1] != 4)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "boxes.coords must be [count, 4]");
    if (scores->rank != 1 || scores->shape[0] != n)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "boxes.scores must be [count], a score for "
                                "each row of boxes.coords");
    if (valid->rank)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "boxes.valid must have rank 0");
    if (call->args[3].u.i64 != n)
        return call->host->fail(
            call, HOB_ERR_ARGUMENT,
            "boxes.count must be the number of rows of boxes.coords");
    set(&out[0], coords->dtype, 2, n, 4);
    set(&out[1], coords->dtype, 1, n, 0);
    set(&out[2], valid->dtype, 0, 0, 0);
    set(&out[3], HOB_DTYPE_I64, 1, n, 0);
    call->plains[0].u.i64 = n;
    return HOB_OK;
}
