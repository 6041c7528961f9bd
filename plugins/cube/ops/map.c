/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include "../flag.h"
#include "../texts.h"

#include <inttypes.h>

enum { OPERANDS = 3 };

/* As in map.cube. */
enum how { HOW_NONE, HOW_DENSE, HOW_ROWS, HOW_FIXED, HOW_NUMBER };

enum { RANK, ARITY, WIDE, HOW_A, B_NUMBERS = HOW_A + OPERANDS, C_NUMBERS };

#define PROGRAM(name_, flags_)                                                 \
    {                                                                          \
        .name = name_, .text = cube_text_map,                                  \
        .buffers = {{"out", CUBE_WRITTEN},                                     \
                    {"a", 0},                                                  \
                    {"b", 0},                                                  \
                    {"c", 0},                                                  \
                    {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},                      \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   CUBE_SPACE_PARAMS,                                          \
                   CUBE_OPERAND_PARAMS("a"),                                   \
                   CUBE_OPERAND_PARAMS("b"),                                   \
                   CUBE_OPERAND_PARAMS("c"),                                   \
                   {"b_number", CUBE_VALUE_OF(1), CUBE_LENGTH(B_NUMBERS)},     \
                   {"c_number", CUBE_VALUE_OF(1), CUBE_LENGTH(C_NUMBERS)}},    \
        .constants = {"RANK",  "ARITY",     "WIDE",      "HOW_a",  "HOW_b",    \
                      "HOW_c", "B_NUMBERS", "C_NUMBERS", "VECTORS"},           \
        .symbols = {"MAP", "IS_BAD"},                                          \
        .flags = CUBE_SPACES | CUBE_FUNCTIONS | (flags_),                      \
    }

static const struct cube_program plain_program = PROGRAM("map", 0);
static const struct cube_program maths_program =
    PROGRAM("map_maths", CUBE_MATHS);
#undef PROGRAM

/* One launch on its way. */
struct run {
    const struct cube_operand *operands;
    uint32_t count;
    uint32_t size; /* of the largest element */
    struct cube_space space;
    uint32_t at[OPERANDS]; /* an operand's number in the space */
    enum how how[OPERANDS];
    uint32_t wide;
};

/* Whether operand K of the space can be moved in vectors of WIDE elements. */
static int takes_vectors(const struct cube_space *space, uint32_t k,
                         uint32_t wide)
{
    const uint32_t inner = space->rank - 1;
    const uint64_t bytes = wide * hob_dtype_size(space->dtypes[k]);

    if (cube_space_is_single(space, k))
        return 1;
    if (space->strides[k][inner] == 0)
        return space->sizes[inner] % wide == 0;
    if ((uintptr_t)space->data[k] % (bytes < 16 ? bytes : 16) != 0)
        return 0;
    if (cube_space_is_dense(space, k))
        return 1;
    if (space->strides[k][inner] != 1 || space->sizes[inner] % wide != 0)
        return 0;
    for (uint32_t d = 0; d < inner; d++)
        if (space->strides[k][d] % (int64_t)wide != 0)
            return 0;
    return 1;
}

/* Elements an invocation: as many as are 16 bytes of the largest. */
static void choose_width(struct run *run)
{
    const struct cube_space *space = &run->space;

    run->wide = 16 / run->size;
    for (uint32_t k = 0; k < space->operand_count && space->rank > 0; k++)
        if (!takes_vectors(space, k, run->wide))
            run->wide = 1;
    if (space->rank == 0)
        run->wide = 1;
}

static void choose_how(struct run *run)
{
    const struct cube_space *space = &run->space;

    for (uint32_t i = 0; i < OPERANDS; i++) {
        const uint32_t k = run->at[i];

        if (i >= run->count)
            run->how[i] = HOW_NONE;
        else if (!run->operands[i].view)
            run->how[i] = HOW_NUMBER;
        else if (cube_space_is_dense(space, k))
            run->how[i] = HOW_DENSE;
        else if (space->strides[k][space->rank - 1] == 0)
            run->how[i] = HOW_FIXED;
        else
            run->how[i] = HOW_ROWS;
    }
}

/* Whether some operand needs a place. */
static int is_strided(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (run->how[i] == HOW_ROWS || run->how[i] == HOW_FIXED)
            return 1;
    return 0;
}

static void run_init(struct run *run, const struct hob_view *out,
                     const struct cube_operand *operands, uint32_t count)
{
    run->operands = operands;
    run->count = count;
    run->size = hob_dtype_size(out->dtype);
    cube_space_init(&run->space, out->rank, out->shape);
    cube_space_add(&run->space, out);
    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *view = operands[i].view;

        if (!view)
            continue;
        run->at[i] = run->space.operand_count;
        cube_space_add(&run->space, view);
        if (hob_dtype_size(view->dtype) > run->size)
            run->size = hob_dtype_size(view->dtype);
    }
    cube_space_collapse(&run->space);
    choose_width(run);
    choose_how(run);
}

static void add_buffers(struct cube_job *job, const struct run *run,
                        const struct cube_flag *flag)
{
    cube_job_operand(job, &run->space, 0);
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (i < run->count && run->operands[i].view)
            cube_job_operand(job, &run->space, run->at[i]);
        else
            cube_job_absent(job);
        job->variant.widths[1 + i] = (uint8_t)run->wide;
    }
    job->variant.widths[0] = (uint8_t)run->wide;
    if (flag)
        cube_job_memory(job, flag->data, HOB_DTYPE_U32, 1);
    else
        cube_job_absent(job);
}

static void add_number(struct cube_job *job, const struct run *run,
                       uint32_t index)
{
    const struct cube_operand *operand = &run->operands[index];

    if (run->how[index] != HOW_NUMBER)
        return;
    if (operand->is_wide)
        cube_job_f64(job, operand->number.u.f64);
    else
        cube_job_scalar(job, &operand->number, run->operands[0].view->dtype);
}

/* Vectors of an invocation: two loads are under way before one is needed. There
 * are as many groups as it takes, which is 6 % faster on an H200 than to walk
 * on with as many as it holds. */
static int32_t vectors_of(const struct run *run)
{
    uint32_t tensors = 0;

    for (uint32_t i = 0; i < run->count; i++)
        tensors += run->operands[i].view != NULL;
    return tensors > 1 || run->wide == 1 ? 1 : 2;
}

static void add_numbers(struct cube_job *job, struct run *run)
{
    if (!is_strided(run))
        run->space.rank = 0;
    cube_job_i64(job, run->space.count);
    cube_job_space(job, &run->space);
    for (uint32_t i = 0; i < OPERANDS; i++)
        if (run->how[i] == HOW_ROWS || run->how[i] == HOW_FIXED)
            cube_job_strides(job, &run->space, run->at[i]);
        else
            for (uint32_t d = 0; d <= run->space.rank; d++)
                cube_job_i64(job, 0);
    add_number(job, run, 1);
    add_number(job, run, 2);
    cube_job_constant(job, (int32_t)run->space.rank);
    cube_job_constant(job, (int32_t)run->count);
    cube_job_constant(job, (int32_t)run->wide);
    for (uint32_t i = 0; i < OPERANDS; i++)
        cube_job_constant(job, (int32_t)run->how[i]);
    cube_job_constant(job, run->how[1] == HOW_NUMBER);
    cube_job_constant(job, run->how[2] == HOW_NUMBER);
    cube_job_constant(job, vectors_of(run));
}

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct cube_map *map, struct run *run,
                         const struct cube_flag *flag)
{
    static const char *const tests[] = {NULL, "IS_DIVISOR_BAD", "IS_POWER_BAD"};
    const int is_float =
        (HOB_DTYPE_BIT(run->operands[0].view->dtype) & HOB_MASK_FLOAT) != 0;
    struct cube_job job;

    cube_job_init(&job, device, call,
                  is_float && map->has_maths ? &maths_program : &plain_program);
    add_buffers(&job, run, flag);
    add_numbers(&job, run);
    cube_job_symbol(&job, map->function);
    cube_job_symbol(&job, flag ? tests[map->check] : NULL);
    return cube_job_run(
        &job,
        cube_divide_up(run->space.count,
                       (int64_t)run->wide * vectors_of(run) * CUBE_GROUP_SIZE));
}

/* ---- division by zero ---- */

static hob_status fail_zero(struct cube_device *device, struct hob_call *call,
                            uint32_t element)
{
    return device->host->fail(call, HOB_ERR_RANGE,
                              "%s: division by zero at element %" PRIu32
                              "; mask the zeros out of the divisor first",
                              call->op_name, element);
}

static hob_status launch_checked(struct cube_device *device,
                                 struct hob_call *call,
                                 const struct cube_map *map, struct run *run)
{
    struct cube_flag flag;
    uint32_t bad;
    hob_status st = cube_flag_begin(&flag, device, call);

    if (st)
        return st;
    st = launch(device, call, map, run, &flag);
    st = cube_flag_end(&flag, device, call, st, &bad);
    return st || bad == CUBE_FLAG_NONE ? st : fail_zero(device, call, bad);
}

/* What is known of the operands without looking at their elements. */
enum verdict { ALL_GOOD, ALL_BAD, UNKNOWN };

static enum verdict judge(const struct cube_map *map, const struct run *run)
{
    const struct cube_operand *second = &run->operands[1];
    const uint32_t bit = HOB_DTYPE_BIT(run->operands[0].view->dtype);
    int64_t number;

    if (map->check == CUBE_CHECK_NONE || !(bit & HOB_MASK_INT) ||
        (map->check == CUBE_CHECK_POWER && (bit & HOB_MASK_UNSIGNED)))
        return ALL_GOOD;
    if (second->view)
        return UNKNOWN;
    number = cube_scalar_i64(&second->number, run->operands[0].view->dtype);
    if (map->check == CUBE_CHECK_DIVISOR)
        return number == 0 ? ALL_BAD : ALL_GOOD;
    return number < 0 ? UNKNOWN : ALL_GOOD;
}

hob_status cube_map_run(struct cube_device *device, struct hob_call *call,
                        const struct cube_map *map, const struct hob_view *out,
                        const struct cube_operand *operands, uint32_t count)
{
    struct run run;

    run_init(&run, out, operands, count);
    if (run.space.count == 0)
        return HOB_OK;
    switch (judge(map, &run)) {
    case ALL_BAD:
        return fail_zero(device, call, 0);
    case UNKNOWN:
        return launch_checked(device, call, map, &run);
    default:
        return launch(device, call, map, &run, NULL);
    }
}
