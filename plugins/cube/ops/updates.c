/* SPDX-License-Identifier: Apache-2.0 */
/*
 * updates.c - an optimizer's steps of several parameters by one launch.
 *
 * A launch has as many of them as its parameters have room for. Where tensors
 * lie is told by what they are apart, which takes half of what addresses do.
 */
#include "optim.h"

#include "../texts.h"

#include <hob/ops.h>

enum {
    MOST = 24,
    MOST_ELEMENTS = 1 << 30,
    UNIT = 16 /* bytes, in which is told what tensors are apart */
};

static const struct cube_program adam_program = {
    .name = "adam_list",
    .text = cube_text_adam,
    .buffers = {{"out", CUBE_WRITTEN}, {"now", 0}},
    .params = {{"part_count", CUBE_I32, 0},
               {"keep_or_decay", CUBE_VALUE_OF(0), 0},
               {"rate_or_log1", CUBE_VALUE_OF(0), 0},
               {"beta1", CUBE_VALUE_OF(0), 0},
               {"new1", CUBE_VALUE_OF(0), 0},
               {"beta2", CUBE_VALUE_OF(0), 0},
               {"new2", CUBE_VALUE_OF(0), 0},
               {"correction_or_log2", CUBE_VALUE_OF(0), 0},
               {"epsilon", CUBE_VALUE_OF(0), 0},
               {"now_at", CUBE_INDEX, CUBE_LENGTH(2)},
               {"sizes", CUBE_U32, CUBE_LENGTH(3)},
               {"places", CUBE_U32, CUBE_LENGTH(4)}},
    .constants = {"PLACES", "WIDE", "NOW", "LIST", "TABLE"},
    .flags = CUBE_LISTS | CUBE_MATHS,
};

static const struct cube_program sgd_program = {
    .name = "sgd_list",
    .text = cube_text_sgd,
    .buffers = {{"out", CUBE_WRITTEN}},
    .params = {{"part_count", CUBE_I32, 0},
               {"keep", CUBE_VALUE_OF(0), 0},
               {"rate", CUBE_VALUE_OF(0), 0},
               {"sizes", CUBE_U32, CUBE_LENGTH(2)},
               {"places", CUBE_U32, CUBE_LENGTH(3)}},
    .constants = {"PLACES", "WIDE", "LIST", "TABLE"},
    .flags = CUBE_LISTS,
};

static const struct kind {
    const char *op_name;
    const struct cube_program *program;
    uint32_t op;
    uint8_t results;
    uint8_t args[4]; /* which lie over results, in their order; the gradient */
} kinds[] = {
    {"adam_step", &adam_program, HOB_OP_ADAM_STEP, 3, {0, 2, 3, 1}},
    {"sgd_step", &sgd_program, HOB_OP_SGD_STEP, 1, {0, 1}},
};

static const struct kind *kind_of(uint32_t op)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].op == op)
            return &kinds[i];
    return NULL;
}

/* Steps that go to the device together, none of no elements. */
struct list {
    const struct kind *kind;
    const struct hob_fused_update *steps[HOB_FUSED_MAX_UPDATES];
    uint32_t count;
    uint32_t dtype;
    uint32_t args;   /* tensors that are read */
    uint32_t places; /* tensors of a step, results over arguments but once */
    const char *low, *high; /* where the first one begins, the last one ends */
};

/* Tensor PLACE of STEP, in the kernel's order: arguments, results. */
static const char *data_at(const struct list *list,
                           const struct hob_fused_update *step, uint32_t place)
{
    return place < list->args ? step->views[list->kind->args[place]]->data
                              : step->outs[place - list->args]->data;
}

static int64_t size_of(const struct hob_fused_update *step)
{
    return hob_view_count(step->outs[0]);
}

static void add(struct list *list, const struct hob_fused_update *step)
{
    const int64_t bytes = size_of(step) * hob_dtype_size(list->dtype);
    const uint32_t all = list->args + list->kind->results;

    if (!bytes)
        return;
    for (uint32_t i = 0; i < all; i++) {
        const char *data = data_at(list, step, i);

        if (!list->low || data < list->low)
            list->low = data;
        if (!list->high || data + bytes > list->high)
            list->high = data + bytes;
        if (i >= list->args && data != data_at(list, step, i - list->args))
            list->places = all;
    }
    list->steps[list->count++] = step;
}

/* Whether the kernel can have all of LIST. */
static int fits(const struct list *list)
{
    if ((uint64_t)(list->high - list->low) / UNIT > UINT32_MAX)
        return 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (size_of(list->steps[i]) > MOST_ELEMENTS)
            return 0;
        for (uint32_t k = 0; k < list->places; k++)
            if ((uintptr_t)data_at(list, list->steps[i], k) % UNIT != 0)
                return 0;
    }
    return 1;
}

/* How many steps of PLACES tensors a launch of VARIANT, which has none yet, is
 * to have: as many as go along with it, unless these are fewer than two. */
static uint32_t room_for(const struct cube_device *device,
                         const struct cube_variant *variant, uint32_t places)
{
    const uint32_t each = (uint32_t)sizeof(uint32_t) * (1 + places);
    struct cube_layout layout;
    uint32_t room;

    cube_layout_init(&layout, variant);
    if (layout.bytes + 2 * each > device->limits.param_bytes)
        return MOST;
    room = (device->limits.param_bytes - layout.bytes) / each;
    return room < MOST ? room : MOST;
}

static int64_t count_parts(const struct cube_job *job, const struct list *list,
                           uint32_t first, uint32_t count)
{
    const int64_t part =
        (int64_t)job->variant.group_size * job->variant.widths[0];
    int64_t parts = 0;

    for (uint32_t i = 0; i < count; i++)
        parts += cube_divide_up(size_of(list->steps[first + i]), part);
    return parts;
}

/* Sizes and places of COUNT steps of LIST from FIRST on, and nothing for the
 * rest of ROOM. */
static void add_steps(struct cube_job *job, const struct list *list,
                      uint32_t first, uint32_t count, uint32_t room)
{
    for (uint32_t i = 0; i < room; i++)
        cube_job_i64(job, i < count ? size_of(list->steps[first + i]) : 0);
    for (uint32_t i = 0; i < room; i++)
        for (uint32_t k = 0; k < list->places; k++)
            cube_job_i64(job, i < count
                                  ? (data_at(list, list->steps[first + i], k) -
                                     list->low) /
                                        UNIT
                                  : 0);
}

/* The op's own numbers, from ARGS. */
static void add_numbers(struct cube_job *job, const hob_value *args,
                        const struct hob_view *now)
{
    if (job->variant.program == &adam_program) {
        cube_adam_rates(job, args, now);
    } else {
        cube_job_f64(job, 1 - args[2].u.f64 * args[3].u.f64);
        cube_job_f64(job, -args[2].u.f64);
    }
}

/* Launch some of LIST, from *FIRST on, which is behind them afterwards. */
static hob_status launch(struct cube_device *device, const struct list *list,
                         uint32_t *first, char **out_message)
{
    const struct hob_fused_update *one = list->steps[0];
    const struct hob_view *now = one->arg_count > 10 ? one->views[10] : NULL;
    const int is_adam = list->kind->program == &adam_program;
    const uint32_t size = hob_dtype_size(list->dtype);
    const struct cube_kernel *kernel;
    struct cube_job job;
    uint32_t room, count = list->count - *first;
    int64_t parts;
    hob_status status;

    cube_job_init(&job, device, NULL, list->kind->program);
    job.variant.is_wide = 1;
    job.variant.widths[0] = (uint8_t)(16 / size);
    cube_job_memory(&job, list->low, list->dtype,
                    (list->high - list->low) / size);
    cube_job_constant(&job, (int32_t)list->places);
    cube_job_constant(&job, job.variant.widths[0]);
    if (is_adam) {
        cube_adam_now(&job, now);
        cube_job_constant(&job, now ? 2 : 0);
    }
    room = room_for(device, &job.variant, list->places);
    count = count < room ? count : room;
    cube_job_constant(&job, (int32_t)room);
    cube_job_constant(&job, (int32_t)(room * list->places));
    status =
        cube_kernels_get(device->kernels, &job.variant, &kernel, out_message);
    if (status)
        return status;
    parts = count_parts(&job, list, *first, count);
    cube_job_i64(&job, parts);
    add_numbers(&job, one->args, now);
    add_steps(&job, list, *first, count, room);
    *first += count;
    return cube_job_launch(&job, kernel, cube_groups(device, parts, 1),
                           list->kind->op_name, out_message);
}

hob_status cube_updates_run(void *instance,
                            const struct hob_fused_update *const *updates,
                            uint32_t count)
{
    struct cube_device *device = instance;
    struct list list = {.kind = kind_of(updates[0]->op),
                        .dtype = updates[0]->outs[0]->dtype};
    hob_status status = HOB_OK;
    char *message = NULL;

    if (!list.kind)
        return HOB_ERR_UNSUPPORTED;
    list.args = list.places = list.kind->results + 1u;
    for (uint32_t i = 0; i < count; i++)
        add(&list, updates[i]);
    if (!fits(&list))
        return HOB_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < list.count && !status;)
        status = launch(device, &list, &i, &message);
    if (message) /* the ops, one by one, say what it is */
        device->host->mem_free(device->host, message);
    return status;
}
