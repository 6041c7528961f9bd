/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - rfft and irfft.
 *
 * n real numbers, n even, are n / 2 complex ones, whose transform gives theirs
 * (Cooley, Lewis and Welch 1970); an odd n is transformed with imaginary parts
 * of 0. Many short rows go side by side, a vector of rows at a time; a long
 * row alone. f16 and bf16 are computed in f32.
 */
#include "../fft.h"
#include "../rows.h"

#include <string.h>

/* Complex lengths up to this go by groups of rows, if there are enough. */
enum { GROUP_LENGTH = 512, GROUP_ROWS_LEAST = 8 };
/* Rows of a group: of short ones more. In elements of a tile. */
enum { GROUP_ELEMENTS = 2048, GROUP_ROWS_MOST = 64 };

/* What prepare makes for a length. */
struct real_plan {
    const struct hob_host *host;
    const struct flex_fft_kernels *kernels;
    int64_t n;      /* real numbers */
    int64_t length; /* of the complex transform: n / 2, or n if odd */
    int64_t group;  /* rows that go together; 0: each alone */
    struct flex_planar halves;   /* of struct flex_fft_halves, owned */
    struct flex_fft_steps steps; /* of a group */
    struct flex_fft_plan *plan;  /* of a row alone, or NULL */
};

static void plan_free(void *prepared)
{
    struct real_plan *plan = prepared;
    const struct hob_host *host = plan->host;

    flex_planar_free(host, &plan->halves);
    host->mem_free(host, plan->steps.tables);
    flex_fft_plan_free(plan->plan);
    host->mem_free(host, plan);
}

static int64_t group_rows(int64_t length, int64_t rows, uint32_t size)
{
    const int64_t lanes = FLEX_FFT_BYTES / (int64_t)size;
    int64_t group = lanes;

    if (length > GROUP_LENGTH || rows < GROUP_ROWS_LEAST ||
        !flex_fft_is_smooth(length))
        return 0;
    while (2 * group <= GROUP_ROWS_MOST && 2 * group <= rows &&
           2 * group * length <= GROUP_ELEMENTS)
        group *= 2;
    return group;
}

/* A plan for rows of N numbers of VIEW along dimension DIM. */
static hob_status prepare(struct flex_device *device,
                          const struct hob_view *view, int64_t dim, int64_t n,
                          struct hob_prepare *out)
{
    const struct hob_host *host = device->host;
    const uint32_t axis = flex_dim(dim, view->rank);
    struct real_plan *plan = host->mem_alloc(host, sizeof(*plan));
    int64_t rows = 1;
    hob_status st;

    if (!plan)
        return HOB_ERR_MEMORY;
    memset(plan, 0, sizeof(*plan));
    for (uint32_t i = 0; i < view->rank; i++)
        rows *= i == axis ? 1 : view->shape[i];
    plan->host = host;
    plan->kernels = flex_fft_kernels_of(device, view->dtype);
    plan->n = n;
    plan->length = n % 2 ? n : n / 2;
    plan->group = group_rows(plan->length, rows, plan->kernels->size);
    st = n % 2 ? HOB_OK
               : flex_planar_alloc(host, plan->kernels->size, plan->length,
                                   &plan->halves);
    if (!st && n % 2 == 0)
        st = flex_fft_roots(host, plan->kernels->size, n, plan->length, 0.5,
                            &plan->halves);
    if (!st && plan->group)
        st = flex_fft_steps_init(host, plan->kernels->size, plan->length,
                                 &plan->steps);
    else if (!st)
        st =
            flex_fft_plan_new(device, plan->kernels, plan->length, &plan->plan);
    if (st) {
        plan_free(plan);
        return st;
    }
    out->prepared = plan;
    out->release = plan_free;
    return HOB_OK;
}

/* ---- a transform of rows ---- */

struct fft_run {
    struct flex_device *device;
    const struct real_plan *plan;
    struct flex_fft_halves halves;
    int is_inverse;
    struct flex_rows real;   /* of n, or what is given of them */
    struct flex_rows re, im; /* of n / 2 + 1, or what is given */
    int64_t rows;
    uint64_t bytes; /* of scratch a piece */
    int32_t failed; /* set from any thread */
};

static int64_t half_length(const struct fft_run *run)
{
    return run->plan->n / 2 + 1;
}

static uint32_t size_of(const struct fft_run *run)
{
    return run->plan->kernels->size;
}

/* The bytes of COUNT numbers, up to whole lines. */
static uint64_t line_bytes(int64_t count)
{
    return ((uint64_t)count * 8 + 2 * FLEX_ALIGN - 1) / FLEX_ALIGN * FLEX_ALIGN;
}

/* Room for a row of ROWS and for a row of N. */
static uint64_t row_bytes(const struct flex_rows *rows, int64_t n)
{
    return line_bytes(rows->n > n ? rows->n : n);
}

/* N numbers of row INDEX, cut or with zeros behind; maybe in BUFFER. */
static const void *read_row(const struct flex_rows *rows, int64_t index,
                            int64_t n, void *buffer)
{
    const int64_t given = flex_least(rows->n, n);
    const void *row = flex_rows_get(rows, index, buffer);

    if (given == n)
        return row;
    if (row != buffer && given)
        memcpy(buffer, row, (size_t)given * rows->size);
    memset((char *)buffer + given * (int64_t)rows->size, 0,
           (size_t)(n - given) * rows->size);
    return buffer;
}

/* ---- groups: a column is a row ---- */

/* The place of row INDEX if the elements of rows need no conversion. */
static char *row_place(const struct flex_rows *rows, int64_t index)
{
    return rows->outer.data +
           flex_loop_offset(&rows->outer, index) * (int64_t)rows->outer.size;
}

/* How COUNT rows from FIRST lie: the elements between two rows in *OUT_STEP,
 * or 0 if they must be converted or have no such step. */
static int even_step(const struct flex_rows *rows, int64_t first, int64_t count,
                     int64_t *out_step)
{
    const struct flex_loop *outer = &rows->outer;

    if (outer->size != rows->size)
        return 0;
    *out_step = outer->rank ? outer->strides[outer->rank - 1] : rows->n;
    return outer->rank <= 1 || first % outer->shape[outer->rank - 1] + count <=
                                   outer->shape[outer->rank - 1];
}

/* Rows FIRST .. FIRST + VALID - 1, N numbers each, as columns of TILE, whose
 * rows are STRIDE apart; the columns from VALID on hold zeros. STAGE has room
 * for a row of each. */
static void load_columns(const struct fft_run *run,
                         const struct flex_rows *rows, int64_t first,
                         int64_t valid, int64_t n, void *tile, int64_t stride,
                         char *stage)
{
    const struct flex_fft_kernels *kernels = run->plan->kernels;
    const int64_t size = kernels->size, columns = run->plan->group;
    const int64_t given = flex_least(rows->n, n);
    const uint64_t pitch = row_bytes(rows, n);
    char *out = tile;
    int64_t step;

    for (int64_t i = 0; i < n; i++) {
        const int64_t from = i < given ? valid : 0;

        if (from < columns)
            memset(out + (i * stride + from) * size, 0,
                   (size_t)((columns - from) * size));
    }
    if (even_step(rows, first, valid, &step)) {
        const char *in = row_place(rows, first);

        if (rows->stride == 1) {
            kernels->turn(valid, given, in, step, tile, stride);
            return;
        }
        if (step == 1) {
            for (int64_t i = 0; i < given; i++)
                memcpy(out + i * stride * size, in + i * rows->stride * size,
                       (size_t)(valid * size));
            return;
        }
    }
    for (int64_t row = 0; row < valid; row++) {
        char *buffer = stage + (uint64_t)row * pitch;
        const void *data = flex_rows_get(rows, first + row, buffer);

        if (data != buffer && given)
            memcpy(buffer, data, (size_t)(given * size));
    }
    kernels->turn(valid, given, stage, (int64_t)pitch / size, tile, stride);
}

/* The opposite: all of each row. */
static void store_columns(const struct fft_run *run,
                          const struct flex_rows *rows, int64_t first,
                          int64_t valid, const void *tile, int64_t stride,
                          char *stage)
{
    const struct flex_fft_kernels *kernels = run->plan->kernels;
    const int64_t size = kernels->size, n = rows->n;
    const uint64_t pitch = row_bytes(rows, n);
    const char *in = tile;
    int64_t step;

    if (even_step(rows, first, valid, &step)) {
        char *out = row_place(rows, first);

        if (rows->stride == 1) {
            kernels->turn(n, valid, tile, stride, out, step);
            return;
        }
        if (step == 1) {
            for (int64_t i = 0; i < n; i++)
                memcpy(out + i * rows->stride * size, in + i * stride * size,
                       (size_t)(valid * size));
            return;
        }
    }
    kernels->turn(n, valid, tile, stride, stage, (int64_t)pitch / size);
    for (int64_t row = 0; row < valid; row++) {
        char *from = stage + (uint64_t)row * pitch;
        void *target = flex_rows_target(rows, first + row, from);

        if (target != from)
            memcpy(target, from, (size_t)(n * size));
        flex_rows_put(rows, first + row, from);
    }
}

static uint64_t group_bytes(const struct fft_run *run)
{
    const struct real_plan *plan = run->plan;
    const int64_t tile = (plan->length + 1) * plan->group;
    const uint64_t real = row_bytes(&run->real, plan->n);
    const uint64_t half = row_bytes(&run->re, half_length(run));

    return 4 * flex_planar_bytes(tile, size_of(run)) +
           (uint64_t)plan->group * (real > half ? real : half);
}

static void forward_group(const struct fft_run *run, int64_t first,
                          int64_t valid, char *scratch)
{
    const struct real_plan *plan = run->plan;
    const struct flex_fft_kernels *kernels = plan->kernels;
    const uint32_t size = kernels->size;
    const int64_t columns = plan->group, count = (plan->length + 1) * columns;
    const int is_even = plan->n % 2 == 0;
    struct flex_planar in = flex_planar_take(&scratch, count, size);
    struct flex_planar buffers[2], out;
    int64_t stride = columns;

    buffers[0] = flex_planar_take(&scratch, count, size);
    buffers[1] = flex_planar_take(&scratch, count, size);
    out = flex_planar_take(&scratch, count, size);
    load_columns(run, &run->real, first, valid, plan->n, in.re, columns,
                 scratch);
    if (is_even) { /* every second row is imaginary */
        in.im = (char *)in.re + columns * (int64_t)size;
        stride = 2 * columns;
    } else {
        memset(in.im, 0, (size_t)(plan->n * columns) * size);
    }
    in = flex_fft_passes(kernels, &plan->steps, columns, &in, stride, buffers,
                         NULL, 0, &stride);
    if (is_even)
        kernels->unpack_columns(&run->halves, columns, &in, &out);
    else
        out = in;
    store_columns(run, &run->re, first, valid, out.re, columns, scratch);
    store_columns(run, &run->im, first, valid, out.im, columns, scratch);
}

static void inverse_group(const struct fft_run *run, int64_t first,
                          int64_t valid, char *scratch)
{
    const struct real_plan *plan = run->plan;
    const struct flex_fft_kernels *kernels = plan->kernels;
    const uint32_t size = kernels->size;
    const int64_t columns = plan->group, count = (plan->length + 1) * columns;
    const int64_t half = half_length(run);
    const int is_even = plan->n % 2 == 0;
    struct flex_planar in = flex_planar_take(&scratch, count, size);
    struct flex_planar buffers[2], out;

    buffers[0] = flex_planar_take(&scratch, count, size);
    buffers[1] = flex_planar_take(&scratch, count, size);
    out = flex_planar_take(&scratch, count, size);
    load_columns(run, &run->re, first, valid, half, in.re, columns, scratch);
    load_columns(run, &run->im, first, valid, half, in.im, columns, scratch);
    if (is_even) {
        kernels->pack_columns(&run->halves, columns, &in, &buffers[0]);
        in = flex_planar_swapped(&buffers[0]);
        buffers[0] = in;
        out.im = out.re; /* every second row is imaginary */
        out.re = (char *)out.im + columns * (int64_t)size;
        (void)flex_fft_passes(kernels, &plan->steps, columns, &in, columns,
                              buffers, &out, 2 * columns, NULL);
    } else {
        kernels->mirror(plan->n, columns, &in, &in);
        in = flex_planar_swapped(&in);
        (void)flex_fft_passes(kernels, &plan->steps, columns, &in, columns,
                              buffers, &out, columns, NULL);
    }
    store_columns(run, &run->real, first, valid, out.im, columns, scratch);
}

static void groups_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct fft_run *run = context;
    const int64_t group = run->plan->group;
    char *scratch = flex_scratch_take(run->device, run->bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&run->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        const int64_t at = i * group;
        const int64_t valid = flex_least(run->rows - at, group);

        if (run->is_inverse)
            inverse_group(run, at, valid, scratch);
        else
            forward_group(run, at, valid, scratch);
    }
    flex_scratch_give(run->device, scratch, run->bytes);
}

/* ---- one row ---- */

/* Between the halves and their transform, in pieces. */
struct halves_run {
    const struct fft_run *run;
    const struct flex_planar *in, *out;
};

static void halves_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct halves_run *halves = context;
    const struct flex_fft_kernels *kernels = halves->run->plan->kernels;

    (void)worker;
    if (halves->run->is_inverse)
        kernels->pack(&halves->run->halves, first, last, halves->in,
                      halves->out);
    else
        kernels->unpack(&halves->run->halves, first, last, halves->in,
                        halves->out);
}

static void run_halves(const struct fft_run *run, const struct flex_planar *in,
                       const struct flex_planar *out)
{
    struct halves_run halves = {run, in, out};

    flex_parallel(run->device, run->plan->length, FLEX_GRAIN_CHEAP / 4,
                  halves_piece, &halves);
}

static uint64_t row_scratch_bytes(const struct fft_run *run)
{
    const struct real_plan *plan = run->plan;

    return row_bytes(&run->real, plan->n) +
           2 * row_bytes(&run->re, half_length(run)) +
           flex_planar_bytes(plan->length, size_of(run)) +
           flex_fft_scratch_bytes(plan->plan);
}

static hob_status forward_row(const struct fft_run *run, int64_t row,
                              char *scratch)
{
    const struct real_plan *plan = run->plan;
    const int64_t half = half_length(run);
    const uint32_t size = size_of(run);
    char *real_buffer = scratch;
    char *re_buffer = real_buffer + row_bytes(&run->real, plan->n);
    char *im_buffer = re_buffer + row_bytes(&run->re, half);
    struct flex_planar z, out, in = {NULL, NULL};
    hob_status st;

    scratch = im_buffer + row_bytes(&run->re, half);
    z = flex_planar_take(&scratch, plan->length, size);
    /* Only read: the transform has no buffer of its own there. */
    in.re = (void *)(uintptr_t)read_row(&run->real, row, plan->n, real_buffer);
    in.im = in.re;
    out.re = flex_rows_target(&run->re, row, re_buffer);
    out.im = flex_rows_target(&run->im, row, im_buffer);
    st = flex_fft_run(run->device, plan->plan,
                      plan->n % 2 ? FLEX_FFT_REAL : FLEX_FFT_PAIRS, &in, &z,
                      scratch);
    if (st)
        return st;
    if (plan->n % 2) {
        memcpy(out.re, z.re, (size_t)half * size);
        memcpy(out.im, z.im, (size_t)half * size);
    } else {
        run_halves(run, &z, &out);
    }
    flex_rows_put(&run->re, row, out.re);
    flex_rows_put(&run->im, row, out.im);
    return HOB_OK;
}

static hob_status inverse_row(const struct fft_run *run, int64_t row,
                              char *scratch)
{
    const struct real_plan *plan = run->plan;
    const int64_t half = half_length(run);
    const uint32_t size = size_of(run);
    char *re_buffer = scratch;
    char *im_buffer = re_buffer + row_bytes(&run->re, half);
    char *real_buffer = im_buffer + row_bytes(&run->re, half);
    struct flex_planar in, z, spectrum, swapped;
    void *target = flex_rows_target(&run->real, row, real_buffer);
    hob_status st;

    scratch = real_buffer + row_bytes(&run->real, plan->n);
    z = flex_planar_take(&scratch, plan->length, size);
    spectrum = flex_planar_take(&scratch, plan->length, size);
    in.re = (void *)(uintptr_t)read_row(&run->re, row, half, re_buffer);
    in.im = (void *)(uintptr_t)read_row(&run->im, row, half, im_buffer);
    if (plan->n % 2)
        plan->kernels->mirror(plan->n, 1, &in, &spectrum);
    else
        run_halves(run, &in, &spectrum);
    spectrum = flex_planar_swapped(&spectrum);
    swapped = flex_planar_swapped(&z);
    st = flex_fft_run(run->device, plan->plan, FLEX_FFT_PLANAR, &spectrum,
                      &swapped, scratch);
    if (st)
        return st;
    if (plan->n % 2)
        memcpy(target, z.re, (size_t)plan->n * size);
    else
        plan->kernels->join(plan->length, &z, target);
    flex_rows_put(&run->real, row, target);
    return HOB_OK;
}

static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct fft_run *run = context;
    char *scratch = flex_scratch_take(run->device, run->bytes);
    hob_status st = scratch ? HOB_OK : HOB_ERR_MEMORY;

    (void)worker;
    for (int64_t row = first; row < last && !st; row++)
        st = run->is_inverse ? inverse_row(run, row, scratch)
                             : forward_row(run, row, scratch);
    if (st)
        __atomic_store_n(&run->failed, 1, __ATOMIC_RELAXED);
    if (scratch)
        flex_scratch_give(run->device, scratch, run->bytes);
}

/* ---- the entries ---- */

static hob_status run_rows(struct hob_call *call, struct fft_run *run)
{
    const struct real_plan *plan = run->plan;
    const int64_t group = plan->group;

    run->halves.h = plan->length;
    run->halves.cos = plan->halves.re;
    run->halves.sin = plan->halves.im;
    run->rows = run->re.outer.count;
    run->failed = 0;
    if (group) {
        run->bytes = group_bytes(run);
        flex_parallel(run->device, (run->rows + group - 1) / group,
                      1 + FLEX_GRAIN_DEAR / (group * plan->length),
                      groups_piece, run);
    } else {
        run->bytes = row_scratch_bytes(run) +
                     flex_planar_bytes(plan->length, size_of(run));
        if (flex_fft_is_long(plan->length))
            rows_piece(run, 0, run->rows, 0);
        else
            flex_parallel(run->device, run->rows,
                          1 + FLEX_GRAIN_DEAR / plan->length, rows_piece, run);
    }
    if (run->failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory to transform rows of %lld "
                                "elements",
                                call->op_name, (long long)plan->n);
    return HOB_OK;
}

static hob_status rfft_prepare(void *device, const struct hob_call *call,
                               struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t dim = flex_arg_i64(call, 1);

    return prepare(device, x, dim,
                   flex_arg_absent(call, 2) ? x->shape[flex_dim(dim, x->rank)]
                                            : flex_arg_i64(call, 2),
                   out);
}

static hob_status rfft(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 1), x->rank);
    struct fft_run run = {.device = device, .plan = call->prepared};

    flex_rows_init(&run.real, device, x, dim);
    flex_rows_init(&run.re, device, hob_ret_view(call, 0), dim);
    flex_rows_init(&run.im, device, hob_ret_view(call, 1), dim);
    return run_rows(call, &run);
}

static hob_status irfft_prepare(void *device, const struct hob_call *call,
                                struct hob_prepare *out)
{
    const struct hob_view *re = hob_arg_view(call, 0);
    const int64_t dim = flex_arg_i64(call, 2);

    return prepare(device, re, dim,
                   flex_arg_absent(call, 3)
                       ? 2 * (re->shape[flex_dim(dim, re->rank)] - 1)
                       : flex_arg_i64(call, 3),
                   out);
}

static hob_status irfft(void *device, struct hob_call *call)
{
    const struct hob_view *re = hob_arg_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 2), re->rank);
    struct fft_run run = {
        .device = device, .plan = call->prepared, .is_inverse = 1};

    flex_rows_init(&run.real, device, hob_ret_view(call, 0), dim);
    flex_rows_init(&run.re, device, re, dim);
    flex_rows_init(&run.im, device, hob_arg_view(call, 1), dim);
    return run_rows(call, &run);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "rfft",
        .signature = "(x: Float, dim: i64 = -1, n: i64?) -> (re: x, im: x)",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_KEEP,
        .prepare = rfft_prepare,
        .execute = rfft,
    },
    {
        .op = "irfft",
        .signature = "(re: Float, im: Float, dim: i64 = -1, n: i64?) -> re",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_KEEP,
        .prepare = irfft_prepare,
        .execute = irfft,
    },
};

const struct flex_entries flex_fft_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};
