/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - pad, roll, triu and tril: elements in other places, or filled in.
 */
#include "../cube.h"
#include "../lowest.h"
#include "../move.h"
#include "../texts.h"

/* As in arrange.cube; the first ones as pad numbers them. */
enum how { CONSTANT, REFLECT, EDGE, ROLL, UPPER, LOWER };

enum { RANK, HOW, SHIFTS };

static const struct cube_program program = {
    .name = "arrange",
    .text = cube_text_arrange,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               {"before", CUBE_INDEX, CUBE_LENGTH(SHIFTS)},
               {"limits", CUBE_INDEX, CUBE_LENGTH(SHIFTS)},
               {"diagonal", CUBE_INDEX, 0},
               {"fill", CUBE_VALUE_OF(0), 0}},
    .constants = {"RANK", "HOW", "SHIFTS"},
    .flags = CUBE_SPACES,
};

/* The result's dimensions, with x's strides as operand 0. */
struct arrange {
    enum how how;
    struct cube_space space;
    int64_t before[HOB_MAX_RANK], limits[HOB_MAX_RANK];
    uint32_t moves[HOB_MAX_RANK]; /* elements change places along it */
    int64_t diagonal;
    uint64_t fill; /* the bits of an element */
};

/* Dimension D of X, SIZE long in the result, as the next one; or as part of the
 * last one, where elements stay together along both. */
static void add_dim(struct arrange *a, const struct hob_view *x, uint32_t d,
                    int64_t size, int64_t before, int moves)
{
    struct cube_space *space = &a->space;
    const uint32_t next = space->rank, last = next - 1;

    space->count *= size;
    if (!moves && size == 1)
        return;
    if (!moves && next && !a->moves[last] &&
        space->strides[0][last] == x->strides[d] * size) {
        space->strides[0][last] = x->strides[d];
        space->sizes[last] *= size;
        a->limits[last] *= size;
        return;
    }
    space->rank++;
    space->sizes[next] = size;
    space->strides[0][next] = x->strides[d];
    a->before[next] = before;
    a->limits[next] = x->shape[d];
    a->moves[next] = moves != 0;
}

static void arrange_init(struct arrange *a, const struct hob_view *x,
                         enum how how)
{
    a->how = how;
    cube_space_init(&a->space, 0, NULL);
    a->space.operand_count = 1;
    a->space.data[0] = x->data;
    a->space.dtypes[0] = cube_bits_dtype(hob_dtype_size(x->dtype));
    a->diagonal = 0;
    a->fill = 0;
}

/* Neighbours that are moved together: 16 bytes of them, where vectors do not
 * end within a row and lie in x as in the result. */
static uint32_t width_of(const struct arrange *a, const struct hob_view *out)
{
    const int is_shifted = a->how != UPPER && a->how != LOWER;
    uint32_t width = 16 / hob_dtype_size(out->dtype);

    if (is_shifted && a->moves[a->space.rank - 1])
        return 1;
    while (width > 1 &&
           (!cube_space_takes(&a->space, 0, width) ||
            (uintptr_t)out->data % (width * hob_dtype_size(out->dtype))))
        width /= 2;
    return width;
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      struct arrange *a)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct hob_view x = *hob_arg_view(call, 0);
    const int is_shifted = a->how != UPPER && a->how != LOWER;
    struct cube_space *space = &a->space;
    uint32_t width;
    struct cube_job job;

    if (space->rank == 0) { /* one element */
        x.shape[0] = x.strides[0] = 1;
        add_dim(a, &x, 0, 1, 0, 1);
    }
    width = width_of(a, out);
    x.dtype = (uint8_t)space->dtypes[0];
    cube_job_init(&job, device, call, &program);
    cube_job_memory(&job, out->data, x.dtype, space->count);
    cube_job_lowest(&job, &x);
    job.variant.widths[0] = job.variant.widths[1] = (uint8_t)width;
    cube_space_widen(space, width);
    cube_job_i64(&job, space->count);
    cube_job_space(&job, space);
    cube_job_i64(&job, cube_lowest(&x, NULL));
    cube_job_i64s(&job, space->strides[0], space->rank);
    for (uint32_t i = 0; i < space->rank && is_shifted; i++) {
        /* Twice as far as reflections go. */
        cube_job_reach(&job, 2 * (a->limits[i] + space->sizes[i]));
        cube_job_reach(&job, 2 * cube_magnitude(a->before[i]));
    }
    if (is_shifted) {
        cube_job_i64s(&job, a->before, space->rank);
        cube_job_i64s(&job, a->limits, space->rank);
    }
    cube_job_i64(&job, a->diagonal);
    cube_job_i64(&job, (int64_t)a->fill);
    cube_job_constant(&job, (int32_t)space->rank);
    cube_job_constant(&job, (int32_t)a->how);
    cube_job_constant(&job, is_shifted ? (int32_t)space->rank : 0);
    return cube_job_run(&job,
                        cube_groups(device, space->count, CUBE_GROUP_SIZE));
}

/* ---- pad ---- */

static hob_status pad(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const hob_value *padding = &call->args[1];
    struct arrange a;

    arrange_init(&a, x, (enum how)cube_arg_i64(call, 2));
    for (uint32_t d = 0; d < x->rank; d++) {
        const uint32_t pair = 2 * (x->rank - 1 - d);
        const int64_t before =
            pair < padding->count ? padding->u.i64s[pair] : 0;

        add_dim(&a, x, d, out->shape[d], before,
                before != 0 || x->shape[d] != out->shape[d]);
    }
    a.fill = cube_scalar_bits(&call->args[3], out->dtype);
    return run(device, call, &a);
}

/* ---- roll ---- */

/* All shifts of DIM, each brought below its size, so that none overflows. */
static int64_t shift_of(const struct hob_call *call, uint32_t dim)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t n = x->shape[dim];
    int64_t shift = 0;

    for (uint32_t i = 0; i < call->args[2].count && n; i++)
        if (cube_dim(call->args[2].u.i64s[i], x->rank) == dim)
            shift = (shift + call->args[1].u.i64s[i] % n) % n;
    return shift < 0 ? shift + n : shift;
}

static hob_status roll(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct arrange a;

    arrange_init(&a, x, ROLL);
    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t shift = shift_of(call, d);

        add_dim(&a, x, d, x->shape[d], shift, shift != 0);
    }
    return run(device, call, &a);
}

/* ---- triangles ---- */

static hob_status triangle(struct cube_device *device, struct hob_call *call,
                           enum how how)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    const int64_t diagonal = cube_arg_i64(call, 1);
    struct arrange a;

    arrange_init(&a, x, how);
    for (uint32_t d = 0; d < x->rank; d++)
        add_dim(&a, x, d, x->shape[d], 0, d + 2 >= x->rank);
    /* Past the corners all diagonals are alike. */
    a.diagonal = diagonal < -rows     ? -rows
                 : diagonal > columns ? columns
                                      : diagonal;
    return run(device, call, &a);
}

static hob_status triu(void *device, struct hob_call *call)
{
    return triangle(device, call, UPPER);
}

static hob_status tril(void *device, struct hob_call *call)
{
    return triangle(device, call, LOWER);
}

/* ---- entries ---- */

static const uint32_t masks[] = {HOB_MASK_ANY};

#define ENTRY(name, text)                                                      \
    {                                                                          \
        .op = #name, .signature = text, .dtypes = masks, .dtype_count = 1,     \
        .execute = name,                                                       \
    }

static const struct hob_entry entries[] = {
    ENTRY(pad, "(x: Any, padding: [i64], mode: enum(constant, reflect, edge) = "
               "constant, value: scalar = 0) -> x"),
    ENTRY(roll, "(x: Any, shifts: [i64], dims: [i64]) -> x"),
    ENTRY(triu, "(x: Any, diagonal: i64 = 0) -> x"),
    ENTRY(tril, "(x: Any, diagonal: i64 = 0) -> x"),
};
#undef ENTRY

const struct cube_entries cube_arrange_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
