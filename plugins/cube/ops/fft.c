/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - rfft and irfft. Rows that fit the shared memory of a group are done
 * in one launch, several short ones together; of longer ones each pass is a
 * launch. Lengths with other factors than 2, 3, 5 and 7 are the bodies'.
 */
#include "../cube.h"
#include "../lowest.h"
#include "../texts.h"

#include <inttypes.h>

enum {
    BUFFERS = 3,     /* x, re, im */
    CAPACITY = 2048, /* complex numbers of a half of the tiles; of f64 half */
    BITS_A_RADIX = 4,
    LONGEST = 1 << 26,   /* complex numbers of a row */
    WORK_BYTES = 1 << 28 /* of each buffer between passes, or one row's */
};

/* The place of "roots" among the buffers. */
enum { ROOTS = 3 };

/* As in fft.cube. */
enum step { STEP_ALL, STEP_FIRST, STEP_PASS, STEP_LAST };

#define PROGRAM(name_, x_flags, parts_flags)                                   \
    {                                                                          \
        .name = name_, .text = cube_text_fft,                                  \
        .buffers = {{"x", x_flags},      {"re", parts_flags},                  \
                    {"im", parts_flags}, {"roots", 0},                         \
                    {"work", 0},         {"next", CUBE_WRITTEN}},              \
        .params = {{"rows", CUBE_INDEX, 0},    CUBE_SPACE_PARAMS,              \
                   CUBE_OPERAND_PARAMS("x"),   CUBE_OPERAND_PARAMS("re"),      \
                   CUBE_OPERAND_PARAMS("im"),  {"x_step", CUBE_INDEX, 0},      \
                   {"re_step", CUBE_INDEX, 0}, {"im_step", CUBE_INDEX, 0},     \
                   {"n", CUBE_I32, 0},         {"length", CUBE_I32, 0},        \
                   {"given", CUBE_I32, 0},     {"together", CUBE_I32, 0},      \
                   {"radices", CUBE_I32, 0},   {"made", CUBE_I32, 0},          \
                   {"near_rows", CUBE_I32, 0}},                                \
        .shared = {{"tile_re", "ACCUM", "2 * CAPACITY"},                       \
                   {"tile_im", "ACCUM", "2 * CAPACITY"}},                      \
        .constants = {"RANK", "CAPACITY", "EVEN", "POWER", "INVERSE", "STEP"}, \
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
    struct cube_device *device;
    struct hob_call *call;
    const struct hob_view *views[BUFFERS];
    uint32_t dim, dtype; /* the latter is computed in */
    int64_t n, length;   /* real numbers, complex numbers of a row */
    int is_inverse;
    struct cube_space rows; /* all of them, with the views as operands */
    void *roots;
};

/* What differs from launch to launch. */
struct pass {
    enum step step;
    int64_t first, together; /* rows */
    int64_t radices, made;   /* the latter by the passes before */
    const void *work;
    void *next;
};

static int64_t capacity_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 ? CAPACITY / 2 : CAPACITY;
}

static int is_power_of_two(int64_t length)
{
    return (length & (length - 1)) == 0;
}

/* The radices whose product is LENGTH, 4 bits each; 0 for one of other factors.
 * Kernels have passes of eights for powers of two alone. */
static int64_t radices_of(int64_t length)
{
    static const int64_t factors[] = {8, 4, 2, 3, 5, 7};
    int64_t radices = 0;
    int shift = 0;

    for (uint32_t i = is_power_of_two(length) ? 0 : 1;
         i < sizeof(factors) / sizeof(factors[0]); i++)
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

static hob_status launch_roots(const struct fft *fft)
{
    struct cube_job job;

    cube_job_init(&job, fft->device, fft->call, &roots_program);
    cube_job_memory(&job, fft->roots, fft->dtype, 2 * fft->n);
    cube_job_i64(&job, fft->n);
    cube_job_reach(&job, 8 * fft->n);
    return cube_job_run(&job,
                        cube_groups(fft->device, fft->n, CUBE_GROUP_SIZE));
}

static void find_rows(struct fft *fft)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        struct hob_view rows = *fft->views[i];

        rows.shape[fft->dim] = 1;
        if (i == 0)
            cube_space_init(&fft->rows, rows.rank, rows.shape);
        cube_space_add(&fft->rows, &rows);
    }
    cube_space_collapse(&fft->rows);
}

/* Whether view INDEX is a buffer of a launch of STEP. */
static int has_view(const struct fft *fft, enum step step, uint32_t index)
{
    const int is_given = (index == 0) != fft->is_inverse;

    return step == STEP_ALL || (step == STEP_FIRST && is_given) ||
           (step == STEP_LAST && !is_given);
}

static void add_buffers(struct cube_job *job, const struct fft *fft,
                        const struct pass *pass)
{
    const int64_t numbers = 2 * pass->together * fft->length;

    for (uint32_t i = 0; i < BUFFERS; i++)
        if (has_view(fft, pass->step, i))
            cube_job_lowest(job, fft->views[i]);
        else
            cube_job_absent(job);
    cube_job_memory(job, fft->roots, fft->dtype, 2 * fft->n);
    if (pass->work)
        cube_job_memory(job, pass->work, fft->dtype, numbers);
    else
        cube_job_absent(job);
    if (pass->next)
        cube_job_memory(job, pass->next, fft->dtype, numbers);
    else
        cube_job_absent(job);
}

static hob_status launch(const struct fft *fft, const struct pass *pass,
                         int64_t groups)
{
    const struct hob_view *in = fft->views[fft->is_inverse];
    const struct cube_space *rows = &fft->rows;
    const int64_t wanted = fft->is_inverse ? fft->n / 2 + 1 : fft->n;
    const int is_all = pass->step == STEP_ALL;
    struct cube_job job;

    cube_job_init(&job, fft->device, fft->call,
                  fft->is_inverse ? &inverse_program : &forward_program);
    add_buffers(&job, fft, pass);
    cube_job_i64(&job, is_all ? rows->count : pass->first);
    cube_job_space(&job, rows);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        cube_job_i64(&job, cube_lowest(fft->views[i], NULL));
        cube_job_i64s(&job, rows->strides[i], rows->rank);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        cube_job_i64(&job, fft->views[i]->strides[fft->dim]);
    cube_job_i64(&job, fft->n);
    cube_job_i64(&job, fft->length);
    cube_job_i64(&job,
                 in->shape[fft->dim] < wanted ? in->shape[fft->dim] : wanted);
    cube_job_i64(&job, pass->together);
    cube_job_i64(&job, pass->radices);
    cube_job_i64(&job, pass->made);
    /* Rows lie next to each other rather than their elements. */
    cube_job_i64(&job, fft->dim + 1 < in->rank &&
                           cube_magnitude(in->strides[fft->dim]) != 1);
    cube_job_constant(&job, (int32_t)rows->rank);
    cube_job_constant(&job, is_all ? (int32_t)capacity_of(fft->dtype) : 1);
    cube_job_constant(&job, fft->n % 2 == 0);
    cube_job_constant(&job, is_power_of_two(fft->length));
    cube_job_constant(&job, fft->is_inverse);
    cube_job_constant(&job, pass->step);
    cube_job_symbol(&job, fft->dtype == HOB_DTYPE_F64 ? "double" : "float");
    job.variant.widths[ROOTS] = 2;
    if (is_all)
        cube_job_each(&job, (uint32_t)pass->together);
    return cube_job_run(&job, groups);
}

static hob_status run_short(const struct fft *fft)
{
    const int64_t rows = fft->rows.count;
    int64_t together = capacity_of(fft->dtype) / fft->length;
    struct pass pass = {.step = STEP_ALL, .radices = radices_of(fft->length)};

    together = together < rows ? together : rows;
    pass.together = together;
    return launch(fft, &pass, cube_divide_up(rows, together));
}

/* TOGETHER rows from FIRST on, between two BUFFERS. */
static hob_status run_rows(const struct fft *fft, int64_t first,
                           int64_t together, void *const buffers[2])
{
    const int64_t groups =
        cube_groups(fft->device, together * fft->n, CUBE_GROUP_SIZE);
    struct pass pass = {.step = STEP_FIRST,
                        .first = first,
                        .together = together,
                        .made = 1,
                        .next = buffers[0]};
    hob_status st = launch(fft, &pass, groups);
    int side = 0;

    pass.step = STEP_PASS;
    for (int64_t left = radices_of(fft->length); left && !st;
         left >>= BITS_A_RADIX) {
        pass.radices = left & ((1 << BITS_A_RADIX) - 1);
        pass.work = buffers[side];
        side = 1 - side;
        pass.next = buffers[side];
        st = launch(fft, &pass, groups);
        pass.made *= pass.radices;
    }
    pass.step = STEP_LAST;
    pass.work = buffers[side];
    pass.next = NULL;
    return st ? st : launch(fft, &pass, groups);
}

static hob_status run_long(const struct fft *fft)
{
    const struct cube_runtime *runtime = fft->device->runtime;
    const int64_t row_bytes =
        2 * fft->length * (int64_t)hob_dtype_size((hob_dtype)fft->dtype);
    int64_t together = WORK_BYTES / row_bytes;
    uint64_t bytes;
    char *memory = NULL;
    void *buffers[2];
    hob_status st;

    together = together < 1 ? 1 : together;
    together = together < fft->rows.count ? together : fft->rows.count;
    bytes = (uint64_t)(together * row_bytes + 255) / 256 * 256;
    st = runtime->alloc(fft->device, 2 * bytes, (void **)(void *)&memory);
    if (st)
        return fft->call->host->fail(
            fft->call, st, "%s: no memory for %" PRIu64 " bytes between passes",
            fft->call->op_name, 2 * bytes);
    buffers[0] = memory;
    buffers[1] = memory + bytes;
    for (int64_t first = 0; first < fft->rows.count && !st; first += together) {
        const int64_t left = fft->rows.count - first;

        st = run_rows(fft, first, left < together ? left : together, buffers);
    }
    runtime->free(fft->device, memory, 2 * bytes);
    return st;
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      struct fft *fft)
{
    const uint32_t dtype = fft->views[0]->dtype;
    uint64_t bytes;
    hob_status st;

    fft->device = device;
    fft->call = call;
    fft->dtype = dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    bytes = 2 * (uint64_t)fft->n * hob_dtype_size((hob_dtype)fft->dtype);
    if (hob_view_count(fft->views[fft->is_inverse ? 0 : 1]) == 0)
        return HOB_OK;
    fft->roots = NULL;
    st = device->runtime->alloc(device, bytes, &fft->roots);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for %" PRId64 " roots of unity",
                                call->op_name, fft->n);
    find_rows(fft);
    st = launch_roots(fft);
    if (!st)
        st = fft->length <= capacity_of(fft->dtype) ? run_short(fft)
                                                    : run_long(fft);
    device->runtime->free(device, fft->roots, bytes);
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
    if (fft.length < 1 || fft.length > LONGEST ||
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
