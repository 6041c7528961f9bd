/* SPDX-License-Identifier: Apache-2.0 */
#include "wide.h"

#include "move.h"

struct widen {
    const struct flex_device *device;
    struct flex_loop loop;
    uint32_t dtype;
    char *wide;
    char *narrow; /* of a result, else NULL */
};

static void widen_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    const struct widen *job = context;
    char block[FLEX_BLOCK * 2];

    (void)worker;
    for (int64_t i = first; i < last; i += FLEX_BLOCK) {
        int64_t n = last - i < FLEX_BLOCK ? last - i : FLEX_BLOCK;
        job->device->kernels->load_f32[job->dtype](
            job->wide + i * 4, flex_loop_fetch(&job->loop, i, n, block), n);
    }
}

static void narrow_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct widen *job = context;

    (void)worker;
    job->device->kernels->store_f32[job->dtype](
        job->narrow + first * 2, job->wide + first * 4, last - first);
}

static hob_status take(struct flex_device *device, const struct hob_view *view,
                       struct flex_wide *out)
{
    out->bytes = (uint64_t)hob_view_count(view) *
                     (view->dtype == HOB_DTYPE_F64 ? 8 : 4) +
                 FLEX_ALIGN;
    out->data = flex_scratch_take(device, out->bytes);
    if (out->data)
        return HOB_OK;
    out->bytes = 0;
    return HOB_ERR_MEMORY;
}

hob_status flex_wide_read(struct flex_device *device,
                          const struct hob_view *view, struct flex_wide *out)
{
    struct widen job = {.device = device, .dtype = view->dtype};
    hob_status st;

    if (!flex_is_half(view->dtype) && flex_is_contiguous(view)) {
        out->data = view->data;
        out->bytes = 0;
        return HOB_OK;
    }
    st = take(device, view, out);
    if (st)
        return st;
    if (!flex_is_half(view->dtype)) {
        flex_move_dense(device, out->data, view);
        return HOB_OK;
    }
    flex_loop_init(&job.loop, view);
    job.wide = out->data;
    flex_parallel(device, job.loop.count, FLEX_GRAIN_CHEAP, widen_range, &job);
    return HOB_OK;
}

hob_status flex_wide_begin(struct flex_device *device,
                           const struct hob_view *view, struct flex_wide *out)
{
    if (flex_is_half(view->dtype))
        return take(device, view, out);
    out->data = view->data;
    out->bytes = 0;
    return HOB_OK;
}

void flex_wide_finish(struct flex_device *device, const struct hob_view *view,
                      const struct flex_wide *wide)
{
    struct widen job = {.device = device,
                        .dtype = view->dtype,
                        .wide = wide->data,
                        .narrow = view->data};

    if (flex_is_half(view->dtype))
        flex_parallel(device, hob_view_count(view), FLEX_GRAIN_CHEAP,
                      narrow_range, &job);
}

void flex_wide_release(struct flex_device *device, struct flex_wide *wide)
{
    if (wide->bytes)
        flex_scratch_give(device, wide->data, wide->bytes);
    wide->data = NULL;
    wide->bytes = 0;
}
