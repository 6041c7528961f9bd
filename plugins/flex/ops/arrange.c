/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - pad, roll, triu, tril: elements in other places, or filled in.
 *
 * pad and roll are a table for each dimension: which position of x a position
 * of the result comes from. Along the last such dimension the table is cut into
 * runs, so that rows are copied, not elements.
 */
#include "flex.h"

#include <inttypes.h>
#include <string.h>

enum { NOWHERE = -1 }; /* filled in */

/* COUNT positions from AT on, which come from FROM, FROM + STEP, ... */
struct run {
    int64_t at, count, from, step;
};

struct arrange {
    const struct hob_view *x;
    char *out;
    int64_t *tables[HOB_MAX_RANK]; /* by dimension; NULL: all as they are */
    int64_t shape[HOB_MAX_RANK];   /* of the result */
    uint32_t axis;                 /* cut into runs; those before are outer */
    int64_t block;                 /* elements that stay together behind it */
    int64_t row;                   /* elements of the result along axis */
    struct run *runs;
    int64_t run_count;
    uint32_t size; /* of an element, in bytes */
    uint64_t fill; /* one element */
};

static void fill(const struct arrange *a, char *out, int64_t count)
{
    flex_copy_strided(out, 1, &a->fill, 0, count, a->size);
}

static void copy_run(const struct arrange *a, const struct run *run,
                     const char *in, char *out)
{
    const int64_t stride = a->x->strides[a->axis];
    const int64_t step = run->step * stride;
    const int64_t bytes = a->block * a->size;

    out += run->at * bytes;
    if (run->from == NOWHERE) {
        fill(a, out, run->count * a->block);
        return;
    }
    in += run->from * stride * a->size;
    if (step == a->block)
        memcpy(out, in, (size_t)(run->count * bytes));
    else if (a->block == 1)
        flex_copy_strided(out, 1, in, step, run->count, a->size);
    else
        for (int64_t i = 0; i < run->count; i++)
            memcpy(out + i * bytes, in + i * step * a->size, (size_t)bytes);
}

/* Where row INDEX of the result comes from in x; NULL: nowhere. */
static const char *source_of(const struct arrange *a, int64_t index)
{
    int64_t offset = 0;

    for (uint32_t i = a->axis; i-- > 0;) {
        int64_t at = index % a->shape[i];

        index /= a->shape[i];
        if (a->tables[i])
            at = a->tables[i][at];
        if (at == NOWHERE)
            return NULL;
        offset += at * a->x->strides[i];
    }
    return (const char *)a->x->data + offset * a->size;
}

static void arrange_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct arrange *a = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const char *in = source_of(a, i);
        char *out = a->out + i * a->row * a->size;

        if (!in)
            fill(a, out, a->row);
        else
            for (int64_t k = 0; k < a->run_count; k++)
                copy_run(a, &a->runs[k], in, out);
    }
}

/* The run that begins at position I of TABLE, which has N. */
static struct run run_at(const int64_t *table, int64_t i, int64_t n)
{
    struct run run = {i, 1, table[i], 1};
    const int is_fill = table[i] == NOWHERE;

    if (is_fill)
        run.step = 0;
    else if (i + 1 < n && table[i + 1] != NOWHERE)
        run.step = table[i + 1] - table[i];
    while (i + run.count < n &&
           table[i + run.count] == run.from + run.count * run.step &&
           (table[i + run.count] == NOWHERE) == is_fill)
        run.count++;
    return run;
}

/* RUNS has room for one a position. */
static void cut(struct arrange *a, struct run *runs)
{
    const int64_t *table = a->tables[a->axis];
    const int64_t n = a->shape[a->axis];

    a->runs = runs;
    if (!table) {
        a->runs[0] = (struct run){0, n, 0, 1};
        a->run_count = 1;
        return;
    }
    for (int64_t i = 0; i < n; i += a->runs[a->run_count - 1].count)
        a->runs[a->run_count++] = run_at(table, i, n);
}

/* What follows the last table as x has it in memory becomes one block. */
static void find_axis(struct arrange *a, uint32_t rank)
{
    a->block = 1;
    a->axis = rank - 1;
    while (a->axis > 0 && !a->tables[a->axis] &&
           (a->x->strides[a->axis] == a->block || a->shape[a->axis] == 1)) {
        a->block *= a->shape[a->axis];
        a->axis--;
    }
    a->row = a->block * a->shape[a->axis];
}

/* Tables for the dimensions of WANTED (bits), then runs, lie at MEMORY. */
static hob_status run_arrange(struct flex_device *device, struct hob_call *call,
                              struct arrange *a, uint32_t wanted,
                              void (*make)(const struct hob_call *call,
                                           uint32_t dim, int64_t *table))
{
    const struct hob_view *out = hob_ret_view(call, 0);
    int64_t positions = 1, most = 1, *memory, *next;
    uint64_t bytes;

    a->x = hob_arg_view(call, 0);
    a->out = out->data;
    a->size = hob_dtype_size(out->dtype);
    for (uint32_t i = 0; i < out->rank; i++) {
        a->shape[i] = out->shape[i];
        most = out->shape[i] > most ? out->shape[i] : most;
        if (wanted >> i & 1)
            positions += out->shape[i];
    }
    bytes = (uint64_t)positions * sizeof(*memory) +
            (uint64_t)most * sizeof(struct run);
    memory = next = flex_scratch_take(device, bytes);
    if (!memory)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " positions",
                                call->op_name, positions);
    for (uint32_t i = 0; i < out->rank; i++)
        if (wanted >> i & 1) {
            make(call, i, next);
            a->tables[i] = next;
            next += out->shape[i];
        }
    find_axis(a, out->rank);
    cut(a, (struct run *)(void *)(memory + positions));
    flex_parallel(device, hob_view_count(out) / a->row,
                  FLEX_GRAIN_CHEAP / a->row + 1, arrange_range, a);
    flex_scratch_give(device, memory, bytes);
    return HOB_OK;
}

/* ---- pad ---- */

enum { CONSTANT, REFLECT, EDGE };

static void pad_table(const struct hob_call *call, uint32_t dim, int64_t *table)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t n = x->shape[dim], out = hob_ret_view(call, 0)->shape[dim];
    const int64_t before = call->args[1].u.i64s[2 * (x->rank - 1 - dim)];
    const int64_t mode = flex_arg_i64(call, 2);

    for (int64_t i = 0; i < out; i++) {
        int64_t at = i - before;

        if (at < 0)
            at = mode == CONSTANT ? NOWHERE : mode == REFLECT ? -at : 0;
        else if (at >= n)
            at = mode == CONSTANT  ? NOWHERE
                 : mode == REFLECT ? 2 * (n - 1) - at
                                   : n - 1;
        table[i] = at;
    }
}

static hob_status pad(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const hob_value *padding = &call->args[1];
    struct arrange a = {0};
    uint32_t wanted = 0;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    flex_scalar_store(&call->args[3], out->dtype, &a.fill);
    for (uint32_t i = 0; i < padding->count; i++)
        if (padding->u.i64s[i])
            wanted |= 1u << (out->rank - 1 - i / 2);
    if (!out->rank) {
        memcpy(out->data, hob_arg_view(call, 0)->data,
               hob_dtype_size(out->dtype));
        return HOB_OK;
    }
    return run_arrange(device, call, &a, wanted, pad_table);
}

/* ---- roll ---- */

/* All shifts of DIM, each brought below its size, so that none overflows. */
static int64_t shift_of(const struct hob_call *call, uint32_t dim)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t n = x->shape[dim];
    int64_t shift = 0;

    for (uint32_t i = 0; i < call->args[2].count; i++)
        if (flex_dim(call->args[2].u.i64s[i], x->rank) == dim)
            shift = (shift + call->args[1].u.i64s[i] % n) % n;
    return shift < 0 ? shift + n : shift;
}

static void roll_table(const struct hob_call *call, uint32_t dim,
                       int64_t *table)
{
    const int64_t n = hob_arg_view(call, 0)->shape[dim];
    const int64_t shift = shift_of(call, dim);

    for (int64_t i = 0; i < n; i++)
        table[i] = i < shift ? i + n - shift : i - shift;
}

static hob_status roll(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct arrange a = {0};
    uint32_t wanted = 0;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    if (!out->rank) {
        memcpy(out->data, hob_arg_view(call, 0)->data,
               hob_dtype_size(out->dtype));
        return HOB_OK;
    }
    for (uint32_t i = 0; i < out->rank; i++)
        if (shift_of(call, i))
            wanted |= 1u << i;
    return run_arrange(device, call, &a, wanted, roll_table);
}

/* ---- triangles ---- */

struct triangle {
    struct flex_loop in;
    char *out;
    int64_t rows, columns; /* of a matrix */
    int64_t diagonal;
    int is_upper;
};

static void triangle_range(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    const struct triangle *t = context;
    const int64_t size = t->in.size, n = t->columns;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i % t->rows;
        char *out = t->out + i * n * size;
        /* The first column that is kept, or that is not. */
        int64_t edge = t->diagonal + !t->is_upper;
        int64_t from, to;

        edge = edge > n - row ? n : edge < -row ? 0 : row + edge;
        from = t->is_upper ? edge : 0;
        to = t->is_upper ? n : edge;
        memset(out, 0, (size_t)(from * size));
        if (from < to)
            flex_loop_gather(&t->in, i * n + from, to - from,
                             out + from * size);
        memset(out + to * size, 0, (size_t)((n - to) * size));
    }
}

static hob_status triangle(void *device, struct hob_call *call, int is_upper)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct triangle t = {.out = out->data,
                         .rows = out->shape[out->rank - 2],
                         .columns = out->shape[out->rank - 1],
                         .diagonal = flex_arg_i64(call, 1),
                         .is_upper = is_upper};

    if (hob_view_count(out) == 0)
        return HOB_OK;
    if (t.diagonal == INT64_MAX) /* one more would overflow */
        t.diagonal--;
    flex_loop_init(&t.in, hob_arg_view(call, 0));
    flex_parallel(device, t.in.count / t.columns,
                  FLEX_GRAIN_CHEAP / t.columns + 1, triangle_range, &t);
    return HOB_OK;
}

static hob_status triu(void *device, struct hob_call *call)
{
    return triangle(device, call, 1);
}

static hob_status tril(void *device, struct hob_call *call)
{
    return triangle(device, call, 0);
}

static const uint32_t masks[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "pad",
        .signature = "(x: Any, padding: [i64], mode: enum(constant, reflect, "
                     "edge) = constant, value: scalar = 0) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = pad,
    },
    {
        .op = "roll",
        .signature = "(x: Any, shifts: [i64], dims: [i64]) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = roll,
    },
    {
        .op = "triu",
        .signature = "(x: Any, diagonal: i64 = 0) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = triu,
    },
    {
        .op = "tril",
        .signature = "(x: Any, diagonal: i64 = 0) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = tril,
    },
};

const struct flex_entries flex_arrange_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
