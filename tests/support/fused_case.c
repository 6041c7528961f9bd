/* SPDX-License-Identifier: Apache-2.0 */
#include "fused_case.h"

#include "hob_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = HOB_FUSED_NONE };

static uint64_t next(struct fused_case *c)
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(struct fused_case *c, uint32_t limit)
{
    return (uint32_t)(next(c) % limit);
}

static int is_float(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
}

struct fused_side fused_side_of(hob_scope *scope, hob_device *device)
{
    struct fused_side side = {.host = hob_scope_host(scope), .device = device};

    side.fused = side.host->interface(
        device, HOB_FUSED_COMPUTE, HOB_FUSED_COMPUTE_VERSION, &side.instance);
    return side;
}

/* ---- elements ---- */

static uint16_t bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

/* Any half pattern is a number that f16 has. */
static void put(struct fused_case *c, uint32_t dtype, void *out)
{
    static const double special[] = {0.0,      -0.0,      1.0,  -1.0, 2.0,
                                     INFINITY, -INFINITY, NAN,  1e30, -1e30,
                                     1e-40,    0.5,       -2.5, 3.0,  3e38};
    const uint64_t bits = next(c);
    double x = (double)(int64_t)bits * 0x1p-61;
    float single;
    uint16_t half;

    if (below(c, 8) == 0)
        x = special[below(c, sizeof(special) / sizeof(special[0]))];
    single = (float)x;
    switch (dtype) {
    case HOB_DTYPE_F64:
        memcpy(out, &x, sizeof(x));
        break;
    case HOB_DTYPE_F32:
        memcpy(out, &single, sizeof(single));
        break;
    case HOB_DTYPE_F16:
        half = (uint16_t)(0x3000 + (bits & 0x8fff));
        if (below(c, 8) == 0)
            half = (uint16_t)bits;
        memcpy(out, &half, sizeof(half));
        break;
    case HOB_DTYPE_BF16:
        half = bf16_of(single);
        memcpy(out, &half, sizeof(half));
        break;
    case HOB_DTYPE_BOOL:
        *(uint8_t *)out = bits & 1;
        break;
    default: { /* small, or any */
        uint64_t number = below(c, 4) ? below(c, 7) : bits;

        memcpy(out, &number, hob_dtype_size(dtype));
        break;
    }
    }
}

static double get(uint32_t dtype, const void *p)
{
    double d;
    float f;
    uint16_t h;
    uint32_t bits;

    switch (dtype) {
    case HOB_DTYPE_F64:
        memcpy(&d, p, sizeof(d));
        return d;
    case HOB_DTYPE_F32:
        memcpy(&f, p, sizeof(f));
        return (double)f;
    case HOB_DTYPE_BF16:
        memcpy(&h, p, sizeof(h));
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, sizeof(f));
        return (double)f;
    default: { /* f16 */
        int exponent;

        memcpy(&h, p, sizeof(h));
        exponent = h >> 10 & 31;
        d = exponent == 31 ? (h & 0x3ff ? (double)NAN : (double)INFINITY)
            : exponent     ? ldexp(1024 + (h & 0x3ff), exponent - 25)
                           : ldexp(h & 0x3ff, -24);
        return h & 0x8000 ? -d : d;
    }
    }
}

/* ---- operands ---- */

/* Strides of a layout of C's space; 0 in dimensions of size 1 or repeated.
 * Returns the elements of the block and where the first one is. */
static int64_t lay_out(struct fused_case *c, int is_row, int layout,
                       int repeats, int64_t *strides, int64_t *out_at)
{
    const uint32_t rank = c->program.rank;
    const uint32_t used = is_row ? rank - c->program.row_rank : rank;
    uint32_t order[HOB_MAX_RANK];
    int64_t elements = 1;

    *out_at = 0;
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = i;
        strides[i] = 0;
    }
    for (uint32_t i = used; layout && i-- > 1;) {
        const uint32_t k = below(c, 2) ? i : below(c, i + 1);
        const uint32_t other = order[i];

        order[i] = order[k];
        order[k] = other;
    }
    if (layout && below(c, 4) == 0)
        elements = 2; /* every second element */
    for (uint32_t i = used; i-- > 0;) {
        const int64_t size = c->shape[order[i]];

        if (repeats && below(c, 5) == 0)
            continue;
        strides[order[i]] = elements;
        elements *= size;
        if (layout && size > 0 && below(c, 6) == 0) {
            strides[order[i]] = -strides[order[i]];
            *out_at -= (size - 1) * strides[order[i]];
        }
        if (layout && below(c, 6) == 0)
            elements += 3; /* a gap */
    }
    return elements + 1;
}

static void make_memory(struct fused_memory *memory, uint64_t bytes)
{
    memory->bytes = bytes;
    memory->block = calloc(1, bytes + 64);
    ck_assert_ptr_nonnull(memory->block);
}

void fused_case_begin(struct fused_case *c, uint64_t seed, uint32_t rank,
                      uint32_t row_rank, const int64_t *shape)
{
    memset(c, 0, sizeof(*c));
    c->state = seed;
    c->program.struct_size = sizeof(c->program);
    c->program.step_size = sizeof(c->steps[0]);
    c->program.rank = (uint8_t)rank;
    c->program.row_rank = (uint8_t)row_rank;
    c->program.inputs = c->inputs;
    c->program.steps = c->steps;
    c->program.outputs = c->outputs;
    c->rows = c->n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        c->shape[i] = shape[i];
        *(i < rank - row_rank ? &c->rows : &c->n) *= shape[i];
    }
    if (row_rank == 0) { /* all of it is one row */
        c->n = c->rows;
        c->rows = 1;
    }
}

uint32_t fused_case_input(struct fused_case *c, hob_dtype dtype, int is_row,
                          int layout)
{
    const uint32_t i = c->program.input_count++;
    struct fused_memory *memory = &c->in_memory[i];
    const uint32_t size = hob_dtype_size(dtype);
    int64_t at;
    int64_t elements =
        lay_out(c, is_row, layout, layout, c->in[i].strides, &at);

    c->inputs[i].dtype = (uint8_t)dtype;
    c->inputs[i].kind = is_row ? HOB_FUSED_ROW : HOB_FUSED_FULL;
    if (layout && below(c, 4) == 0) { /* off a boundary */
        elements++;
        at++;
    }
    make_memory(memory, (uint64_t)elements * size);
    memory->at = (uint64_t)at * size;
    for (int64_t k = 0; k < elements; k++)
        put(c, dtype, memory->block + k * size);
    memory->first = malloc(memory->bytes);
    ck_assert_ptr_nonnull(memory->first);
    memcpy(memory->first, memory->block, memory->bytes);
    c->in[i].data = memory->block + memory->at;
    return i;
}

static int is_row_reg(const struct fused_case *c, uint32_t reg)
{
    const uint32_t inputs = c->program.input_count;

    return (reg < inputs ? c->inputs[reg].kind : c->steps[reg - inputs].kind) ==
           HOB_FUSED_ROW;
}

static uint32_t dtype_of(const struct fused_case *c, uint32_t reg)
{
    const uint32_t inputs = c->program.input_count;

    return reg < inputs ? c->inputs[reg].dtype : c->steps[reg - inputs].dtype;
}

static int is_reduction(uint32_t op)
{
    return op >= HOB_OP_SUM && op <= HOB_OP_ALL_DIM;
}

static void describe(struct fused_case *c, uint32_t reg)
{
    const struct hob_fused_step *step = &c->steps[reg - c->program.input_count];
    const size_t used = strlen(c->text);

    snprintf(c->text + used, sizeof(c->text) - used, "r%u = op %u %s%s", reg,
             step->op, hob_dtype_name(step->dtype),
             step->kind == HOB_FUSED_ROW ? " row" : "");
    for (int i = 0; i < 3; i++) {
        const size_t end = strlen(c->text);

        if (step->args[i] != NONE)
            snprintf(c->text + end, sizeof(c->text) - end, " r%u(%s)",
                     step->args[i], hob_dtype_name(dtype_of(c, step->args[i])));
    }
    strncat(c->text, "\n", sizeof(c->text) - strlen(c->text) - 1);
}

uint32_t fused_case_step(struct fused_case *c, uint32_t op, hob_dtype dtype,
                         uint32_t a, uint32_t b, uint32_t x, uint32_t variant,
                         const hob_value *scalars, uint32_t scalar_count)
{
    struct hob_fused_step *step = &c->steps[c->program.step_count++];
    const uint32_t reg = c->program.input_count + c->program.step_count - 1u;
    const uint32_t args[3] = {a, b, x};

    step->op = (uint16_t)op;
    step->dtype = (uint8_t)dtype;
    step->kind = HOB_FUSED_ROW;
    step->is_reduction = is_reduction(op);
    for (int i = 0; i < 3; i++) {
        step->args[i] = (uint8_t)args[i];
        if (args[i] != NONE && !is_row_reg(c, args[i]) && !step->is_reduction)
            step->kind = HOB_FUSED_FULL;
    }
    step->scalar = c->program.scalar_count;
    step->scalar_count = (uint8_t)scalar_count;
    step->variant = (uint16_t)variant;
    for (uint32_t i = 0; i < scalar_count; i++)
        c->scalars[c->program.scalar_count++] = scalars[i];
    describe(c, reg);
    return reg;
}

void fused_case_output(struct fused_case *c, uint32_t reg, int layout, int over)
{
    const uint32_t i = c->program.output_count++;
    const uint32_t size = hob_dtype_size(dtype_of(c, reg));
    int64_t at, elements;

    c->outputs[i] = (uint8_t)reg;
    if (over >= 0) {
        c->out[i] = c->in[over];
        return;
    }
    elements =
        lay_out(c, is_row_reg(c, reg), layout, 0, c->out[i].strides, &at);
    make_memory(&c->out_memory[i], (uint64_t)elements * size);
    c->out_memory[i].at = (uint64_t)at * size;
    c->out[i].data = c->out_memory[i].block + c->out_memory[i].at;
}

void fused_case_layer_norm(struct fused_case *c, uint32_t x, uint32_t weight,
                           uint32_t bias)
{
    const hob_value epsilon = hob_f64(1e-3);
    const hob_dtype own = (hob_dtype)dtype_of(c, x);
    const hob_dtype wide = own == HOB_DTYPE_F64 ? own : HOB_DTYPE_F32;
    uint32_t wides[3] = {x, weight, bias}, r, mean, variance;

    for (int i = 0; i < 3 && own != wide; i++)
        wides[i] = fused_case_step(c, HOB_OP_CAST, wide, wides[i], NONE, NONE,
                                   0, NULL, 0);
    mean = fused_case_step(c, HOB_OP_MEAN_DIM, wide, wides[0], NONE, NONE, 0,
                           NULL, 0);
    x = fused_case_step(c, HOB_OP_SUB, wide, wides[0], mean, NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_SQUARE, wide, x, NONE, NONE, 0, NULL, 0);
    variance =
        fused_case_step(c, HOB_OP_MEAN_DIM, wide, r, NONE, NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_ADD_SCALAR, wide, variance, NONE, NONE, 0,
                        &epsilon, 1);
    r = fused_case_step(c, HOB_OP_SQRT, wide, r, NONE, NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_RECIP, wide, r, NONE, NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_MUL, wide, x, r, NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_MUL, wide, r, wides[1], NONE, 0, NULL, 0);
    r = fused_case_step(c, HOB_OP_ADD, wide, r, wides[2], NONE, 0, NULL, 0);
    if (own != wide)
        r = fused_case_step(c, HOB_OP_CAST, own, r, NONE, NONE, 0, NULL, 0);
    fused_case_output(c, mean, 0, -1);
    fused_case_output(c, variance, 0, -1);
    fused_case_output(c, r, 0, -1);
}

void fused_case_release(struct fused_case *c)
{
    for (int i = 0; i < HOB_FUSED_MAX_INPUTS; i++) {
        free(c->in_memory[i].block);
        free(c->in_memory[i].first);
    }
    for (int i = 0; i < HOB_FUSED_MAX_OUTPUTS; i++)
        free(c->out_memory[i].block);
}

/* ---- runs ---- */

/* MEMORY's block as a tensor of SIDE's device; *OUT_DATA is what was OPERAND's
 * data in it. */
static hob_tensor *to_device(const struct fused_side *side, hob_scope *scope,
                             const struct fused_memory *memory,
                             struct hob_fused_operand *operand)
{
    const int64_t bytes = (int64_t)memory->bytes;
    hob_tensor *tensor = hob_from_data(scope, side->device, HOB_DTYPE_U8,
                                       memory->block, &bytes, 1);

    operand->data = (char *)hob_tensor_view(tensor)->data + memory->at;
    return tensor;
}

/* Operands on the device in the place of C's; outputs come back. */
static hob_status run_there(struct fused_case *c, const struct fused_side *side,
                            void *kernel, struct hob_fused_run *run,
                            char **message)
{
    struct hob_fused_operand in[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_operand out[HOB_FUSED_MAX_OUTPUTS];
    hob_tensor *ins[HOB_FUSED_MAX_INPUTS], *outs[HOB_FUSED_MAX_OUTPUTS];
    hob_scope *scope = hob_scope_open(side->runtime);
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    memcpy(in, c->in, sizeof(in));
    memcpy(out, c->out, sizeof(out));
    for (uint32_t i = 0; i < c->program.input_count; i++)
        ins[i] = to_device(side, scope, &c->in_memory[i], &in[i]);
    for (uint32_t i = 0; i < c->program.output_count; i++) {
        outs[i] = NULL;
        if (c->out_memory[i].block)
            outs[i] = to_device(side, scope, &c->out_memory[i], &out[i]);
        for (uint32_t k = 0; k < c->program.input_count && !outs[i]; k++)
            if (c->out[i].data == c->in[k].data)
                out[i].data = in[k].data;
    }
    run->inputs = in;
    run->outputs = out;
    st = side->fused->run(side->instance, kernel, run, message);
    for (uint32_t i = 0; i < c->program.input_count && !st; i++)
        ck_assert_hob_ok(hob_read(ins[i], c->in_memory[i].block,
                                  c->in_memory[i].bytes, &error));
    for (uint32_t i = 0; i < c->program.output_count && !st; i++)
        if (outs[i])
            ck_assert_hob_ok(hob_read(outs[i], c->out_memory[i].block,
                                      c->out_memory[i].bytes, &error));
    hob_scope_close(scope);
    return st;
}

hob_status fused_case_run(struct fused_case *c, const struct fused_side *side)
{
    struct hob_fused_run run = {.struct_size = sizeof(run),
                                .inputs = c->in,
                                .outputs = c->out,
                                .scalars = c->scalars,
                                .name = "test"};
    char *message = NULL;
    void *kernel;
    hob_status st;

    memcpy(run.shape, c->shape, sizeof(run.shape));
    for (int i = 0; i < c->program.input_count; i++)
        memcpy(c->in_memory[i].block, c->in_memory[i].first,
               c->in_memory[i].bytes);
    for (int i = 0; i < c->program.output_count; i++)
        if (c->out_memory[i].block)
            memset(c->out_memory[i].block, 0xa5, c->out_memory[i].bytes);
    st = side->fused->compile(side->instance, &c->program, &kernel, &message);
    if (st)
        return st;
    st = side->runtime
             ? run_there(c, side, kernel, &run, &message)
             : side->fused->run(side->instance, kernel, &run, &message);
    ck_assert_msg(!message, "%s", message);
    side->fused->release(side->instance, kernel);
    return st;
}

static inline void copy_apart(char *to, const char *from, int64_t count,
                              int64_t stride, size_t size)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * (int64_t)size, from + i * stride * (int64_t)size, size);
}

/* COUNT elements, STRIDE apart. What is copied one by one has its size known
 * to the compiler: tests spent half their time in calls of memcpy. */
static void copy_run(char *to, const char *from, int64_t count, int64_t stride,
                     uint32_t size)
{
    if (stride == 1)
        memcpy(to, from, (size_t)count * size);
    else if (size == 1)
        copy_apart(to, from, count, stride, 1);
    else if (size == 2)
        copy_apart(to, from, count, stride, 2);
    else if (size == 4)
        copy_apart(to, from, count, stride, 4);
    else
        copy_apart(to, from, count, stride, 8);
}

/* The elements of OPERAND at DATA, row-major, one a row of a ROW one. */
static char *gather(const struct fused_case *c,
                    const struct hob_fused_operand *operand, const char *data,
                    int is_row, uint32_t size)
{
    const uint32_t rank = c->program.rank - (is_row ? c->program.row_rank : 0);
    const int64_t count = is_row ? c->rows : c->rows * c->n;
    const int64_t run = rank ? c->shape[rank - 1] : 1;
    const int64_t stride = rank ? operand->strides[rank - 1] : 1;
    int64_t at[HOB_MAX_RANK] = {0}, offset = 0;
    char *out = malloc((size_t)count * size + 1);

    ck_assert_ptr_nonnull(out);
    for (int64_t i = 0; i < count; i += run) {
        copy_run(out + i * size, data + offset * (int64_t)size, run, stride,
                 size);
        for (uint32_t d = rank ? rank - 1 : 0; d-- > 0;) {
            offset += operand->strides[d];
            if (++at[d] < c->shape[d])
                break;
            offset -= at[d] * operand->strides[d];
            at[d] = 0;
        }
    }
    return out;
}

static char *gather_output(const struct fused_case *c, uint32_t i)
{
    const uint32_t reg = c->outputs[i];

    return gather(c, &c->out[i], c->out[i].data, is_row_reg(c, reg),
                  hob_dtype_size(dtype_of(c, reg)));
}

char *fused_case_bytes(const struct fused_case *c, uint64_t *out_bytes)
{
    char *all = NULL;
    uint64_t used = 0;

    for (uint32_t i = 0; i < c->program.output_count; i++) {
        const uint32_t reg = c->outputs[i];
        const uint64_t bytes =
            (uint64_t)(is_row_reg(c, reg) ? c->rows : c->rows * c->n) *
            hob_dtype_size(dtype_of(c, reg));
        char *one = gather_output(c, i);

        all = realloc(all, used + bytes + 1);
        ck_assert_ptr_nonnull(all);
        memcpy(all + used, one, bytes);
        used += bytes;
        free(one);
    }
    *out_bytes = used;
    return all;
}

/* ---- the reference ---- */

static hob_tensor *tensor_of(struct fused_case *c, hob_scope *scope,
                             hob_device *device, uint32_t reg, const char *data)
{
    const int64_t shape[2] = {c->rows, is_row_reg(c, reg) ? 1 : c->n};

    return hob_from_data(scope, device, (hob_dtype)dtype_of(c, reg), data,
                         shape, 2);
}

uint32_t fused_case_along(uint32_t op)
{
    switch (op) {
    case HOB_OP_SOFTMAX:
    case HOB_OP_LOG_SOFTMAX:
        return 1;
    case HOB_OP_RMS_NORM:
        return 2;
    case HOB_OP_LAYER_NORM:
        return 3;
    default:
        return 0;
    }
}

/* Tensor K of an op along rows, REG: vectors are given for all rows. */
static hob_value along_arg(struct fused_case *c, hob_scope *scope, uint32_t k,
                           uint32_t reg, hob_tensor *const *regs)
{
    static const int64_t first[] = {0}, end[] = {1};
    hob_tensor *tensor = reg == NONE ? NULL : regs[reg];

    if (tensor && k)
        tensor = hob_reshape(
            scope, hob_slice(scope, tensor, first, 1, end, 1, NULL, 0), &c->n,
            1);
    return tensor ? hob_value_tensor(tensor) : hob_none();
}

/* Step S on the reference's tensors. */
static hob_tensor *call_step(struct fused_case *c, hob_scope *scope, uint32_t s,
                             hob_tensor *const *regs)
{
    const struct hob_fused_step *step = &c->steps[s];
    const uint32_t along = fused_case_along(step->op);
    hob_value args[8];
    uint32_t count = 0, op = step->op;

    for (; count < along; count++)
        args[count] = along_arg(c, scope, count, step->args[count], regs);
    for (; !along && count < 3 && step->args[count] != NONE; count++)
        args[count] = hob_value_tensor(regs[step->args[count]]);
    if (op == HOB_OP_SOFTMAX || op == HOB_OP_LOG_SOFTMAX)
        args[count++] = hob_i64(-1);
    if (step->is_reduction) {
        /* The whole one's number is one less. */
        op += (op - HOB_OP_SUM) % 2 == 0;
        args[count++] = hob_i64(1);
    }
    if (op == HOB_OP_CAST)
        args[count++] = hob_value_dtype(step->dtype);
    if (op == HOB_OP_ACTIVATION_BACKWARD)
        args[count++] = hob_value_enum(step->variant);
    for (uint32_t i = 0; i < step->scalar_count; i++)
        args[count++] = c->scalars[step->scalar + i];
    return hob_scope_host(scope)->call1(scope, op, args, count);
}

/* Element I of the sums of FROM, [rows, n], may differ by so much. */
static double tolerance_at(const struct fused_case *c, uint32_t dtype,
                           const char *from, int64_t i, double wanted)
{
    static const double units[] = {[HOB_DTYPE_F64] = 0x1p-50,
                                   [HOB_DTYPE_F32] = 0x1p-22,
                                   [HOB_DTYPE_F16] = 0x1p-9,
                                   [HOB_DTYPE_BF16] = 0x1p-6};
    double sum = 0;

    for (int64_t k = 0; k < c->n; k++)
        sum += fabs(get(dtype, from + (i * c->n + k) * hob_dtype_size(dtype)));
    return units[dtype] * fabs(wanted) + sum * 0x1p-48 + 0x1p-24;
}

static void check_elements(struct fused_case *c, uint32_t reg, const char *got,
                           const char *wanted, const char *summed)
{
    const uint32_t dtype = dtype_of(c, reg), size = hob_dtype_size(dtype);
    const int64_t count = is_row_reg(c, reg) ? c->rows : c->rows * c->n;

    for (int64_t i = 0; i < count; i++) {
        const char *a = got + i * size, *b = wanted + i * size;
        double x, y;

        if (memcmp(a, b, size) == 0)
            continue;
        ck_assert_msg(
            is_float(dtype), "r%u: element %lld of [%lld, %lld] differs in\n%s",
            reg, (long long)i, (long long)c->rows, (long long)c->n, c->text);
        x = get(dtype, a);
        y = get(dtype, b);
        if (isnan(x) && isnan(y))
            continue;
        ck_assert_msg(
            summed && (fabs(x - y) <= tolerance_at(c, dtype, summed, i, y)),
            "r%u: element %lld of [%lld, %lld] is %a, not %a in\n%s", reg,
            (long long)i, (long long)c->rows, (long long)c->n, x, y, c->text);
    }
}

static char *read_all(const struct fused_case *c, uint32_t reg,
                      hob_tensor *tensor)
{
    const uint64_t bytes =
        (uint64_t)(is_row_reg(c, reg) ? c->rows : c->rows * c->n) *
        hob_dtype_size(dtype_of(c, reg));
    char *out = malloc(bytes + 1);
    hob_error error = HOB_ERROR_INIT;

    ck_assert_ptr_nonnull(out);
    ck_assert_hob_ok(hob_tensor_status(tensor, &error));
    ck_assert_hob_ok(hob_read(tensor, out, bytes, &error));
    return out;
}

/* The output that register REG is, -1: none. */
static int output_of(const struct fused_case *c, uint32_t reg)
{
    for (int i = 0; i < c->program.output_count; i++)
        if (c->outputs[i] == reg)
            return i;
    return -1;
}

void fused_case_check(struct fused_case *c, const struct fused_side *side,
                      hob_runtime *runtime)
{
    const uint32_t inputs = c->program.input_count;
    hob_tensor *regs[HOB_FUSED_MAX_INPUTS + HOB_FUSED_MAX_STEPS];
    hob_scope *scope = hob_scope_open(runtime);

    for (uint32_t i = 0; i < inputs; i++) {
        char *data =
            gather(c, &c->in[i], c->in_memory[i].first + c->in_memory[i].at,
                   is_row_reg(c, i), hob_dtype_size(dtype_of(c, i)));

        regs[i] = tensor_of(c, scope, side->device, i, data);
        free(data);
    }
    for (uint32_t s = 0; s < c->program.step_count; s++) {
        const struct hob_fused_step *step = &c->steps[s];
        const uint32_t reg = inputs + s;
        const int output = output_of(c, reg);
        char *got, *wanted, *summed = NULL;

        regs[reg] = call_step(c, scope, s, regs);
        if (output < 0)
            continue;
        wanted = read_all(c, reg, regs[reg]);
        got = gather_output(c, (uint32_t)output);
        if (step->is_reduction && is_float(step->dtype) &&
            !is_row_reg(c, step->args[0]))
            summed = read_all(c, step->args[0], regs[step->args[0]]);
        check_elements(c, reg, got, wanted, summed);
        /* What follows a sum is compared for this sum. */
        if (step->is_reduction)
            regs[reg] = tensor_of(c, scope, side->device, reg, got);
        free(got);
        free(wanted);
        free(summed);
    }
    hob_scope_close(scope);
}
