/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - rfft and irfft of rows that fit the shared memory of a group, several
 * short ones together. Longer ones, and lengths with other factors than 2, 3, 5
 * and 7, are the bodies'.
 */
#include "../cube.h"
#include "../lowest.h"
#include "../texts.h"

#include <inttypes.h>

enum {
    BUFFERS = 3,     /* x, re, im */
    CAPACITY = 2048, /* complex numbers of a half of the tiles; of f64 half */
    BITS_A_RADIX = 3
};

#define PROGRAM(name_, x_flags, parts_flags)                                   \
    {                                                                          \
        .name = name_, .text = cube_text_fft,                                  \
        .buffers = {{"x", x_flags},                                            \
                    {"re", parts_flags},                                       \
                    {"im", parts_flags},                                       \
                    {"roots", 0}},                                             \
        .params = {{"rows", CUBE_INDEX, 0},    CUBE_SPACE_PARAMS,              \
                   CUBE_OPERAND_PARAMS("x"),   CUBE_OPERAND_PARAMS("re"),      \
                   CUBE_OPERAND_PARAMS("im"),  {"x_step", CUBE_INDEX, 0},      \
                   {"re_step", CUBE_INDEX, 0}, {"im_step", CUBE_INDEX, 0},     \
                   {"n", CUBE_I32, 0},         {"length", CUBE_I32, 0},        \
                   {"given", CUBE_I32, 0},     {"together", CUBE_I32, 0},      \
                   {"radices", CUBE_I32, 0},   {"near_rows", CUBE_I32, 0}},    \
        .shared = {{"tile_re", "ACCUM", "2 * CAPACITY"},                       \
                   {"tile_im", "ACCUM", "2 * CAPACITY"}},                      \
        .constants = {"RANK", "CAPACITY", "EVEN", "INVERSE"},                  \
        .symbols = {"ACCUM"}, .flags = CUBE_SPACES | CUBE_MATHS,               \
    }

static const struct cube_program forward_program =
    PROGRAM("rfft", 0, CUBE_WRITTEN);
static const struct cube_program inverse_program =
    PROGRAM("irfft", CUBE_WRITTEN, 0);
#undef PROGRAM

static const struct cube_program roots_program = {
    .name = "fft_roots",
    .text = cube_text_fft_roots,
    .buffers = {{"roots", CUBE_WRITTEN}},
    .params = {{"n", CUBE_INDEX, 0}},
    .flags = CUBE_MATHS,
};

struct fft {
    const struct hob_view *views[BUFFERS];
    uint32_t dim;
    int64_t n, length; /* real numbers, complex numbers of a row */
    int is_inverse;
};

static int64_t capacity_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 ? CAPACITY / 2 : CAPACITY;
}

/* The radices whose product is LENGTH, fours first, 3 bits each; 0 for one of
 * other factors. */
static int32_t radices_of(int64_t length)
{
    static const int32_t factors[] = {4, 2, 3, 5, 7};
    int32_t radices = 0;
    int shift = 0;

    for (uint32_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
        for (; length % factors[i] == 0; shift += BITS_A_RADIX) {
            radices |= factors[i] << shift;
            length /= factors[i];
        }
    return length == 1 ? radices : 0;
}

/* CALL with the number of real elements at argument N, 1 behind the
 * dimension. */
static void fft_init(struct fft *fft, const struct hob_call *call, uint32_t n,
                     int is_inverse)
{
    const struct hob_view *first = hob_arg_view(call, 0);
    int64_t count;

    fft->is_inverse = is_inverse;
    fft->dim = cube_dim(cube_arg_i64(call, n - 1), first->rank);
    count = first->shape[fft->dim];
    if (!cube_arg_absent(call, n))
        fft->n = cube_arg_i64(call, n);
    else
        fft->n = is_inverse ? 2 * (count - 1) : count;
    fft->length = fft->n % 2 ? fft->n : fft->n / 2;
}

/* ---- launches ---- */

static hob_status launch_roots(struct cube_device *device,
                               struct hob_call *call, void *roots,
                               uint32_t dtype, int64_t n)
{
    struct cube_job job;

    cube_job_init(&job, device, call, &roots_program);
    cube_job_memory(&job, roots, dtype, 2 * n);
    cube_job_i64(&job, n);
    return cube_job_run(&job, cube_groups(device, n, CUBE_GROUP_SIZE));
}

/* All rows as a space, with the views as operands. */
static void rows_of(const struct fft *fft, struct cube_space *space)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        struct hob_view rows = *fft->views[i];

        rows.shape[fft->dim] = 1;
        if (i == 0)
            cube_space_init(space, rows.rank, rows.shape);
        cube_space_add(space, &rows);
    }
    cube_space_collapse(space);
}

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct fft *fft, void *roots, uint32_t dtype)
{
    const struct hob_view *in = fft->views[fft->is_inverse];
    const int64_t capacity = capacity_of(dtype);
    const int64_t half = fft->n / 2 + 1;
    const int64_t wanted = fft->is_inverse ? half : fft->n;
    struct cube_space space;
    struct cube_job job;
    int64_t together;

    rows_of(fft, &space);
    together = capacity / fft->length;
    if (together > space.count)
        together = space.count;
    cube_job_init(&job, device, call,
                  fft->is_inverse ? &inverse_program : &forward_program);
    for (uint32_t i = 0; i < BUFFERS; i++)
        cube_job_lowest(&job, fft->views[i]);
    cube_job_memory(&job, roots, dtype, 2 * fft->n);
    cube_job_i64(&job, space.count);
    cube_job_space(&job, &space);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        cube_job_i64(&job, cube_lowest(fft->views[i], NULL));
        cube_job_i64s(&job, space.strides[i], space.rank);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        cube_job_i64(&job, fft->views[i]->strides[fft->dim]);
    cube_job_i64(&job, fft->n);
    cube_job_i64(&job, fft->length);
    cube_job_i64(&job,
                 in->shape[fft->dim] < wanted ? in->shape[fft->dim] : wanted);
    cube_job_i64(&job, together);
    cube_job_i64(&job, radices_of(fft->length));
    /* Rows lie next to each other rather than their elements. */
    cube_job_i64(&job, fft->dim + 1 < in->rank &&
                           cube_magnitude(in->strides[fft->dim]) != 1);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, (int32_t)capacity);
    cube_job_constant(&job, fft->n % 2 == 0);
    cube_job_constant(&job, fft->is_inverse);
    cube_job_symbol(&job, dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, cube_divide_up(space.count, together));
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      const struct fft *fft)
{
    const uint32_t dtype =
        fft->views[0]->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const uint64_t bytes =
        2 * (uint64_t)fft->n * hob_dtype_size((hob_dtype)dtype);
    void *roots = NULL;
    hob_status st;

    if (hob_view_count(fft->views[fft->is_inverse ? 0 : 1]) == 0)
        return HOB_OK;
    st = device->runtime->alloc(device, bytes, &roots);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for %" PRId64 " roots of unity",
                                call->op_name, fft->n);
    st = launch_roots(device, call, roots, dtype, fft->n);
    if (!st)
        st = launch(device, call, fft, roots, dtype);
    device->runtime->free(device, roots, bytes);
    return st;
}

static hob_status rfft(void *device, struct hob_call *call)
{
    struct fft fft;

    fft_init(&fft, call, 2, 0);
    fft.views[0] = hob_arg_view(call, 0);
    fft.views[1] = hob_ret_view(call, 0);
    fft.views[2] = hob_ret_view(call, 1);
    return run(device, call, &fft);
}

static hob_status irfft(void *device, struct hob_call *call)
{
    struct fft fft;

    fft_init(&fft, call, 3, 1);
    fft.views[0] = hob_ret_view(call, 0);
    fft.views[1] = hob_arg_view(call, 0);
    fft.views[2] = hob_arg_view(call, 1);
    return run(device, call, &fft);
}

/* ---- entries ---- */

static hob_status check(const struct hob_call *call, uint32_t n, int is_inverse)
{
    struct fft fft;

    fft_init(&fft, call, n, is_inverse);
    if (fft.length < 1 ||
        fft.length > capacity_of(hob_arg_view(call, 0)->dtype) ||
        (fft.length > 1 && !radices_of(fft.length)))
        return HOB_ERR_UNSUPPORTED;
    return HOB_OK;
}

static hob_status rfft_prepare(void *device, const struct hob_call *call,
                               struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return check(call, 2, 0);
}

static hob_status irfft_prepare(void *device, const struct hob_call *call,
                                struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return check(call, 3, 1);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "rfft",
        .signature = "(x: Float, dim: i64 = -1, n: i64?) -> (re: x, im: x)",
        .dtypes = masks,
        .dtype_count = 1,
        .prepare = rfft_prepare,
        .execute = rfft,
    },
    {
        .op = "irfft",
        .signature = "(re: Float, im: Float, dim: i64 = -1, n: i64?) -> re",
        .dtypes = masks,
        .dtype_count = 2,
        .prepare = irfft_prepare,
        .execute = irfft,
    },
};

const struct cube_entries cube_fft_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};
