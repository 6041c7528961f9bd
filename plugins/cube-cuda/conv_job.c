/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_job.h"

#include <cube/cube.h>
#include <cube/launch.h>
#include <cube/splits.h>

#include <string.h>

enum {
    CHUNK = 64, /* channels */
    VECTOR = 8, /* elements of 16 bytes, to which places are aligned */
    /* Fewer rows fill too little of a tile. */
    ROWS_LEAST = 16,
    /* What copies by im2col take: strides, corners of the box, offsets. */
    STEP_MOST = 8,
    CORNER_MOST = 127,
    OFFSET_MOST = 255,
    /* Channels of a row of taps are together where there are no more. */
    WIDE_MOST = 32,
    TURNED_TILE = 64, /* as in conv_pack.cu */
    /* Parts of f32, with all their bits or as tf32 has them at least. */
    PARTS_WHOLE = 3,
    PARTS_ROUNDED = 2,
    /* So many processors without a tile for each that has one are too many. */
    FEW_TILES = 12,
    /* So few places are too short a sum for gradients of weights. */
    PLACES_LEAST = 256
};

/* Products of f32 that make up for packing their parts. */
#define WORK_LEAST (INT64_C(1) << 21)

/* More than anybody has, and little enough that no index overflows. */
#define COUNT_MOST (INT64_C(1) << 30)

static int64_t round_up(int64_t count, int64_t to)
{
    return cube_divide_up(count, to) * to;
}

/* ---- what is taken ---- */

/* Whether places from FIRST on, PLACES of them and STEP apart, and TAPS taps
 * that are PACE apart can be copied from SIZE places. */
static int axis_fits(int64_t first, int64_t places, int64_t step, int64_t taps,
                     int64_t pace, int64_t size)
{
    const int64_t last = first + (places - 1) * step + 1 - size;

    return step <= STEP_MOST && first >= -CORNER_MOST && first <= CORNER_MOST &&
           last >= -CORNER_MOST && last <= CORNER_MOST &&
           (taps - 1) * pace <= OFFSET_MOST;
}

static int x_fits(const struct ccu_conv *conv)
{
    for (uint32_t i = 0; i < 2; i++)
        if (!axis_fits(-conv->of.padding[i], conv->out[2 + i], conv->of.step[i],
                       conv->weight[2 + i], conv->of.dilation[i],
                       conv->x[2 + i]))
            return 0;
    return 1;
}

static int grad_fits(const struct ccu_conv *conv)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (conv->of.step[i] > STEP_MOST)
            return 0;
        for (int64_t rest = 0; rest < conv->of.step[i] && rest < conv->x[2 + i];
             rest++) {
            const struct cube_conv_phase phase = cube_conv_phase_of(
                &conv->of, i, rest, conv->x[2 + i], conv->weight[2 + i]);

            if (phase.count &&
                !axis_fits(phase.start + (phase.count - 1) * phase.pace,
                           phase.places, 1, phase.count, -phase.pace,
                           conv->out[2 + i]))
                return 0;
        }
    }
    return 1;
}

static int is_countable(const int64_t *shape)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < 4; i++) {
        if (shape[i] < 1 || shape[i] > COUNT_MOST)
            return 0;
        count *= i == 1 ? 1 : shape[i];
        if (count > COUNT_MOST)
            return 0;
    }
    return 1;
}

static const int64_t *shape_of(const struct hob_call *call, uint32_t index)
{
    const hob_value *value = &call->args[index];

    return value->tag == HOB_TAG_I64S ? value->u.i64s
                                      : hob_arg_view(call, index)->shape;
}

/* Whether products of f32 are enough, and enough at a time: sums over channels
 * are not split, and the portable kernels split them. */
static int is_worth_parts(const struct ccu_conv *conv,
                          const struct ccu_device *device,
                          const struct hob_meta *result, int is_weight)
{
    const int64_t *out = conv->out, *weight = conv->weight;
    const int64_t *shape = result->shape;
    const int64_t tiles = cube_divide_up(shape[1], 64) *
                          cube_divide_up(shape[0] * shape[2] * shape[3], 128);

    if ((double)(out[0] * out[2] * out[3]) *
            (double)(weight[0] * weight[1] * weight[2] * weight[3]) <
        (double)WORK_LEAST)
        return 0;
    if (is_weight)
        return out[0] * out[2] * out[3] >= PLACES_LEAST;
    return tiles >= cube_processors(&device->cube) / FEW_TILES;
}

/* Into how many parts numbers are taken; 0: they are not. */
static int32_t parts_of(const struct ccu_conv *conv,
                        const struct ccu_device *device,
                        const struct hob_meta *result, int is_weight)
{
    if (conv->dtype == HOB_DTYPE_F16 || conv->dtype == HOB_DTYPE_BF16)
        return 1;
    if (conv->dtype != HOB_DTYPE_F32 ||
        !is_worth_parts(conv, device, result, is_weight))
        return 0;
    return device->options.has_tf32 ? PARTS_ROUNDED : PARTS_WHOLE;
}

int ccu_conv_take(struct ccu_conv *conv, struct ccu_device *device,
                  const struct hob_call *call)
{
    const int is_grad_x = call->args[0].tag == HOB_TAG_I64S;
    const int is_forward = !is_grad_x && call->args[1].tag != HOB_TAG_I64S;

    memset(conv, 0, sizeof(*conv));
    cube_conv_init(&conv->of, call);
    conv->dtype = call->metas[0].dtype;
    conv->x = shape_of(call, 0);
    conv->weight = shape_of(call, 1);
    conv->out =
        is_forward ? call->metas[0].shape : hob_arg_view(call, 2)->shape;
    if (device->physical->major != 9 || device->physical->minor != 0 ||
        device->physical->shared_most < CONV_SHARED_BYTES ||
        !device->driver->tensor_map || !device->driver->tensor_map_im2col ||
        !ccu_compiler_is_from(device, 12))
        return 0;
    if (conv->of.groups != 1 || conv->weight[is_grad_x ? 1 : 0] < ROWS_LEAST ||
        !is_countable(conv->x) || !is_countable(conv->weight) ||
        !is_countable(conv->out) || conv->x[1] > COUNT_MOST / CHUNK ||
        conv->weight[1] * conv->weight[2] * conv->weight[3] >
            COUNT_MOST / CHUNK ||
        !(is_grad_x ? grad_fits(conv) : x_fits(conv)))
        return 0;
    conv->parts =
        parts_of(conv, device, &call->metas[0], !is_grad_x && !is_forward);
    return conv->parts != 0;
}

/* ---- operands ---- */

/* Whether VIEW, of planes, has channels last and nothing between places. */
static int has_channels_last(const struct hob_view *view)
{
    const int64_t place = view->strides[3];

    return view->strides[1] == 1 && place >= view->shape[1] &&
           place % VECTOR == 0 && (uintptr_t)view->data % 16 == 0 &&
           view->strides[2] == view->shape[3] * place &&
           view->strides[0] == view->shape[2] * view->strides[2];
}

/* How many places of VIEW can be read at once where planes are turned by
 * tiles; 0: they do not lie one after the other. */
static int vector_of(const struct hob_view *view)
{
    const int64_t plane = view->shape[2] * view->shape[3];
    const int size = (int)hob_dtype_size(view->dtype);
    int vector = 2 * VECTOR / size;

    if ((view->strides[3] != 1 && view->shape[3] != 1) ||
        (view->strides[2] != view->shape[3] && view->shape[2] != 1) ||
        view->strides[0] < 0 || view->strides[1] < 0)
        return 0;
    while (vector > 1 &&
           ((plane | view->strides[0] | view->strides[1]) % vector != 0 ||
            (uintptr_t)view->data % (uintptr_t)(vector * size) != 0))
        vector /= 2;
    return vector;
}

static void pack_init(struct conv_pack *pack, const struct hob_view *view,
                      uint32_t image, uint32_t channel)
{
    memset(pack, 0, sizeof(*pack));
    pack->from = view->data;
    pack->image = view->strides[image];
    pack->channel = view->strides[channel];
    pack->step[0] = view->strides[2];
    pack->step[1] = view->strides[3];
    pack->images = (int)view->shape[image];
    pack->channels = (int)view->shape[channel];
    pack->width = (int)view->shape[3];
    pack->sizes[0] = (int)view->shape[2];
    pack->sizes[1] = (int)view->shape[3];
}

/* What of PLANES follows from its pack. */
static void pack_finish(struct ccu_planes *planes)
{
    struct conv_pack *pack = &planes->pack;
    const int64_t plane = (int64_t)pack->sizes[0] * pack->sizes[1];
    const int64_t count = pack->images * plane * pack->pitch;

    planes->bytes = (uint64_t)(count * planes->parts) * 2;
    pack->part = count;
    if (pack->vector) {
        pack->tiles_channels = (int)cube_divide_up(pack->pitch, TURNED_TILE);
        pack->tiles_places = (int)cube_divide_up(plane, TURNED_TILE);
        pack->groups = pack->images * pack->tiles_channels * pack->tiles_places;
    } else {
        pack->groups = (int)cube_divide_up(count / VECTOR, CUBE_GROUP_SIZE);
    }
}

/* PLANES as they are, PITCH elements from place to place. */
static void set_sizes(struct ccu_planes *planes, const struct hob_view *view,
                      int64_t pitch)
{
    planes->chunks = (int32_t)cube_divide_up(view->shape[1], CHUNK);
    planes->sizes[0] = (uint64_t)view->shape[1];
    planes->sizes[1] = (uint64_t)view->shape[3];
    planes->sizes[2] = (uint64_t)view->shape[2];
    planes->sizes[3] = (uint64_t)view->shape[0];
    planes->strides[0] = (uint64_t)pitch * 2;
    planes->strides[1] = planes->strides[0] * planes->sizes[1];
    planes->strides[2] = planes->strides[1] * planes->sizes[2];
}

void ccu_planes_of_grad(struct ccu_planes *planes, const struct ccu_conv *conv,
                        const struct hob_view *view)
{
    struct conv_pack *pack = &planes->pack;

    memset(planes, 0, sizeof(*planes));
    planes->parts = conv->parts;
    if (conv->parts == 1 && has_channels_last(view)) {
        pack->to = view->data;
        set_sizes(planes, view, view->strides[3]);
        return;
    }
    pack_init(pack, view, 0, 1);
    pack->pitch = (int)round_up(view->shape[1], VECTOR);
    pack->vector = vector_of(view);
    set_sizes(planes, view, pack->pitch);
    pack_finish(planes);
}

int ccu_conv_is_point(const struct ccu_conv *conv)
{
    for (uint32_t i = 0; i < 2; i++)
        if (conv->weight[2 + i] != 1 || conv->of.step[i] != 1 ||
            conv->of.padding[i] != 0)
            return 0;
    return 1;
}

int ccu_planes_of_points(struct ccu_planes *planes, const struct hob_view *view)
{
    if (vector_of(view) != VECTOR || view->strides[1] < VECTOR)
        return 0;
    memset(planes, 0, sizeof(*planes));
    planes->parts = 1;
    planes->pack.to = view->data;
    planes->chunks = (int32_t)cube_divide_up(view->shape[1], CHUNK);
    planes->sizes[0] = (uint64_t)(view->shape[2] * view->shape[3]);
    planes->sizes[1] = (uint64_t)view->shape[1];
    planes->sizes[2] = (uint64_t)view->shape[0];
    planes->sizes[3] = 1;
    planes->strides[0] = (uint64_t)view->strides[1] * 2;
    planes->strides[1] = planes->strides[2] =
        (uint64_t)(view->shape[0] == 1 ? view->strides[1] : view->strides[0]) *
        2;
    return planes->strides[1] > 0;
}

/* The channels that a place needs for steps of it to be aligned. */
static int64_t wide_pitch(const struct ccu_conv *conv)
{
    int64_t pitch = 1;

    while (pitch < conv->x[1] || pitch * conv->of.step[1] % VECTOR != 0)
        pitch *= 2;
    return pitch;
}

void ccu_planes_of_x(struct ccu_planes *planes, const struct ccu_conv *conv,
                     const struct hob_view *view)
{
    struct conv_pack *pack = &planes->pack;
    const int64_t taps = conv->weight[3];
    int64_t pitch, width;

    ccu_planes_of_grad(planes, conv, view);
    if (conv->x[1] > WIDE_MOST || conv->of.dilation[1] != 1 || taps == 1)
        return;
    pitch = wide_pitch(conv);
    if (cube_divide_up(taps * pitch, CHUNK) >= taps)
        return;
    /* All that taps meet, from one place of the result to the next. */
    width = (conv->out[3] - 1) * conv->of.step[1] + taps;
    width = round_up(width, VECTOR);
    memset(planes, 0, sizeof(*planes));
    planes->parts = conv->parts;
    pack_init(pack, view, 0, 1);
    pack->pitch = (int)pitch;
    pack->sizes[1] = (int)width;
    pack->first = (int)-conv->of.padding[1];
    planes->is_wide = 1;
    planes->chunks = (int32_t)cube_divide_up(taps * pitch, CHUNK);
    planes->sizes[0] = (uint64_t)(taps * pitch);
    planes->sizes[1] = (uint64_t)conv->out[3];
    planes->sizes[2] = (uint64_t)view->shape[2];
    planes->sizes[3] = (uint64_t)view->shape[0];
    planes->strides[0] = (uint64_t)(conv->of.step[1] * pitch) * 2;
    planes->strides[1] = (uint64_t)(width * pitch) * 2;
    planes->strides[2] = planes->strides[1] * planes->sizes[2];
    pack_finish(planes);
}

void ccu_planes_of_weight(struct ccu_planes *weight,
                          const struct hob_view *view, uint32_t row,
                          const struct ccu_planes *planes)
{
    struct conv_pack *pack = &weight->pack;

    memset(weight, 0, sizeof(*weight));
    weight->parts = planes->parts;
    pack_init(pack, view, row, 1 - row);
    pack->pitch = planes->chunks * CHUNK;
    if (planes->is_wide) {
        pack->sizes[1] = pack->pitch / planes->pack.pitch;
        pack->pitch = planes->pack.pitch;
    }
    pack_finish(weight);
    weight->sizes[0] =
        (uint64_t)(pack->sizes[0] * (int64_t)pack->sizes[1] * pack->pitch);
    weight->sizes[1] = (uint64_t)pack->images;
    weight->sizes[2] = (uint64_t)weight->parts;
    weight->sizes[3] = 1;
    weight->strides[0] = weight->sizes[0] * 2;
    weight->strides[1] = weight->strides[2] =
        weight->strides[0] * weight->sizes[1];
}

/* ---- places ---- */

void ccu_conv_meet_x(struct conv_params *params, const struct ccu_conv *conv,
                     const struct ccu_planes *planes)
{
    params->images = (int)conv->x[0];
    params->chunks = planes->chunks;
    for (uint32_t i = 0; i < 2; i++) {
        params->sizes[i] = params->kept[i] = (int)conv->out[2 + i];
        params->first[i] = (int)-conv->of.padding[i];
        params->step[i] = (int)conv->of.step[i];
        params->taps[i] = (int)conv->weight[2 + i];
        params->pace[i] = (int)conv->of.dilation[i];
    }
    if (planes->is_wide) {
        params->first[1] = 0;
        params->step[1] = params->taps[1] = 1;
        params->pace[1] = 0;
    }
    params->tap_first = 0;
    params->tap_step[0] = params->taps[1];
    params->tap_step[1] = 1;
}

void ccu_conv_meet_grad(struct conv_params *params, const struct ccu_conv *conv,
                        const int64_t rest[2])
{
    const int row = (int)conv->weight[3];

    params->images = (int)conv->x[0];
    params->chunks = (int)cube_divide_up(conv->out[1], CHUNK);
    params->tap_first = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct cube_conv_phase phase = cube_conv_phase_of(
            &conv->of, i, rest[i], conv->x[2 + i], conv->weight[2 + i]);
        const int64_t last = phase.count ? phase.count - 1 : 0;
        const int unit = i ? 1 : row;

        /* From the last tap on, so that they go up. */
        params->sizes[i] = params->kept[i] = (int)phase.places;
        params->first[i] = (int)(phase.start + last * phase.pace);
        params->step[i] = 1;
        params->taps[i] = (int)phase.count;
        params->pace[i] = (int)-phase.pace;
        params->tap_first += (int)(phase.first + last * phase.step) * unit;
        params->tap_step[i] = (int)-phase.step * unit;
    }
}
