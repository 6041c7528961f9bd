/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/fusion.h - what a backend offers so that the decorator fusion can
 * run many ops as one: the interface "fused.compute", version 1.
 *
 *   void *instance;
 *   const struct hob_fused_compute *fused = host->interface(
 *       below, HOB_FUSED_COMPUTE, HOB_FUSED_COMPUTE_VERSION, &instance);
 *
 * A backend without it is served op by op.
 *
 * A *program* is what a group of ops computes, told once for each element of
 * an iteration space: a straight line of steps over registers. It says dtypes
 * and which op follows which; sizes, strides, addresses and scalars come with
 * each run, so one program serves all shapes.
 *
 * The space has RANK dimensions. Its last ROW_RANK ones make up a row: what a
 * reduction goes over. Each register is one of
 *
 *   FULL  a value for each element of the space
 *   ROW   a value for each row; the same for all elements of it
 *
 * A step whose operands are all ROW is ROW, a reduction too; every other one
 * is FULL. Without reductions ROW_RANK is 0 and every register is FULL.
 * A ROW register used by a FULL step is the same for the whole row, so
 *
 *   r0 = x            FULL, input
 *   r1 = max  r0      ROW, reduction
 *   r2 = sub  r0 r1   FULL
 *   r3 = exp  r2      FULL
 *   r4 = sum  r3      ROW, reduction
 *   r5 = div  r3 r4   FULL, output
 *
 * is a softmax over the last ROW_RANK dimensions. An empty row gives what the
 * op gives: 0 for sum, 1 for prod; the caller sends no other one.
 *
 * An op that goes along a row and gives as many elements (softmax, layer_norm)
 * may be one step, FULL and no reduction, where the backend wants that, or the
 * steps of its body: see body_cost.
 *
 * What a step is worth: exactly what the built-in op of its number gives on
 * this backend for these values, rounded to its dtype; nothing is contracted
 * across steps. So a value is bit for bit what the ops give one by one, whether
 * it is stored or computed again. Only reductions may add in another order, and
 * accumulate as the op does (f16 and bf16 in f32).
 */
#ifndef HOB_EXT_FUSION_H
#define HOB_EXT_FUSION_H

#include <hob/ext/plugin.h>
#include <hob/fusion.h>
#include <hob/ops.h>

#include <string.h>

HOB_BEGIN_DECLS

#define HOB_FUSED_COMPUTE "fused.compute"
enum { HOB_FUSED_COMPUTE_VERSION = 1 };

/* The largest program. */
enum {
    HOB_FUSED_MAX_INPUTS = 16,
    HOB_FUSED_MAX_OUTPUTS = 8,
    HOB_FUSED_MAX_STEPS = 64,
    HOB_FUSED_MAX_SCALARS = 64
};

/* The most that run at once. */
enum { HOB_FUSED_MAX_UPDATES = 32 };

/* An operand that a step does without. */
enum { HOB_FUSED_NONE = 0xff };

/* See body_cost. */
#define HOB_FUSED_NEVER UINT32_MAX
#define HOB_FUSED_WHOLE (UINT32_MAX - 1)

enum hob_fused_kind { HOB_FUSED_FULL = 0, HOB_FUSED_ROW = 1 };

/*
 * Register INPUT_COUNT + k is what step k gives; the inputs come first.
 * Operands are earlier registers, in the order of the op's tensor parameters;
 * only ops along a row may do without one that is not the last.
 * The op's attributes, in the order of its signature, are scalars of the run:
 * SCALAR is where its first one lies, SCALAR_COUNT how many it has; an absent
 * one has the tag HOB_TAG_ABSENT. Those that choose what is computed (a dtype,
 * an enum) are in VARIANT instead, as there is at most one: the enum's index;
 * a dtype is the step's. The dimensions of a reduction are the row, and so is
 * that of an op along it; of group_norm it is a group of channels with all
 * their places, so how many there are is no scalar, and weight and bias are
 * operands over the space, or ROW ones.
 */
struct hob_fused_step {
    uint16_t op;          /* number of a built-in op, HOB_OP_... */
    uint8_t dtype;        /* of its value */
    uint8_t kind;         /* enum hob_fused_kind */
    uint8_t is_reduction; /* over the row: of HOB_OP_SUM_DIM and so on */
    uint8_t args[3];      /* registers, or HOB_FUSED_NONE */
    uint8_t scalar;
    uint8_t scalar_count;
    uint16_t variant;
};

struct hob_fused_input {
    uint8_t dtype;
    uint8_t kind; /* enum hob_fused_kind: a ROW one has no stride in a row */
    uint16_t reserved;
};

struct hob_fused_program {
    uint32_t struct_size;
    uint16_t step_size; /* bytes of one step */
    uint8_t rank;       /* of the space, at least row_rank */
    uint8_t row_rank;   /* 0: no reductions */
    uint8_t input_count;
    uint8_t output_count;
    uint8_t step_count;
    uint8_t scalar_count;
    uint32_t reserved;
    const struct hob_fused_input *inputs;
    const struct hob_fused_step *steps;
    const uint8_t *outputs; /* registers of steps, each at most once */
};

/* Where an operand's elements lie: of the element with index i of the space,
 * at data + sum of i[k] * strides[k] elements. A broadcast dimension has stride
 * 0, a ROW operand in all dimensions of the row; a flipped one is negative. */
struct hob_fused_operand {
    void *data; /* host pointer or device address */
    int64_t strides[HOB_MAX_RANK];
};

/*
 * One run. An output may lie exactly over a FULL input of as large a dtype and
 * the same strides: what an element reads, it reads before it is written. No
 * other memory is shared between outputs and anything else. The space has no
 * size 0, except in a row whose reductions are worth something then.
 */
struct hob_fused_run {
    uint32_t struct_size;
    uint32_t reserved;
    int64_t shape[HOB_MAX_RANK];             /* of the space */
    const struct hob_fused_operand *inputs;  /* input_count */
    const struct hob_fused_operand *outputs; /* output_count */
    const hob_value *scalars;                /* scalar_count */
    const char *name; /* for messages and profilers, as in "mul+add+relu" */
};

/*
 * A product that a run begins with: input INPUT of the program, which is FULL,
 * is not there yet. It is the result of matmul or linear, and goes to where RUN
 * says that the input lies, row-major: an output lies there too, and no other
 * input does. The product is rounded to its dtype before a step reads it, so
 * all is bit for bit what the op and the steps give one after the other, unless
 * a library adds up the product in another order with steps than without.
 */
struct hob_fused_product {
    uint32_t struct_size;
    uint32_t op; /* HOB_OP_MATMUL or HOB_OP_LINEAR */
    uint32_t input;
    uint32_t reserved;
    const struct hob_view *args[3]; /* the op's tensors; NULL: absent */
    /* The product, as it is to lie. Without memory where product_passes says
     * so: nor has INPUT then, and outputs may lie over other inputs. */
    const struct hob_view *out;
};

/*
 * A run of OP, an update of an optimizer (adam_step), of which
 * argument GRADIENT is a product that has no memory: LHS @ RHS, matrices of f32
 * or f64. The other tensors of its shape are of its dtype and row-major. Output
 * k may lie exactly over the argument that it is the new one of; no other
 * memory is shared between outputs and anything else.
 */
struct hob_fused_update {
    uint32_t struct_size;
    uint32_t op;
    uint32_t gradient;
    uint32_t arg_count;
    const hob_value *args;               /* of the op; of tensors VIEWS tells */
    const struct hob_view *const *views; /* as many; NULL: none, or a GRADIENT
                                            that is a product */
    const struct hob_view *lhs, *rhs;
    const struct hob_view *const *outs; /* the op's results */
};

struct hob_fused_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t compiled;   /* kernels made by a compiler in this process */
    uint64_t disk_hits;  /* kernels that were found on disk */
    uint64_t compile_ns; /* time that compilers took */
    uint64_t not_ready;  /* runs answered with HOB_ERR_BUSY */
};

/* INSTANCE comes with the table. All functions may be called from several
 * threads at once, also run and release of different programs. */
struct hob_fused_compute {
    uint32_t struct_size;
    uint32_t version;

    /*
     * Nonzero if STEP may be part of a program: its op with these dtypes.
     * ARG_DTYPES holds one for each of args that is there, at its place. The
     * answer depends on op, dtypes, is_reduction and variant only, so it may be
     * kept.
     */
    int32_t (*supports)(void *instance, const struct hob_fused_step *step,
                        const uint8_t *arg_dtypes);
    /*
     * PROGRAM, which is the caller's, as something that run takes. It is cheap:
     * compilers wait for the first run or work on threads of their own.
     * HOB_ERR_UNSUPPORTED, without a message, where the ops one by one are
     * better: too many registers, a layout that is never good.
     */
    hob_status (*compile)(void *instance,
                          const struct hob_fused_program *program,
                          void **out_kernel, char **out_message);
    void (*release)(void *instance, void *kernel);
    /*
     * Run it; work on a device is only asked for, in order with other calls.
     * HOB_ERR_BUSY, without a message and with nothing done, while a compiler
     * works on another thread: the caller runs the ops one by one meanwhile.
     * HOB_ERR_UNSUPPORTED likewise where these shapes and strides are better
     * off that way. Anything else is a failure of the whole group; then the
     * outputs are undefined, and an input that lies under one too.
     */
    hob_status (*run)(void *instance, void *kernel,
                      const struct hob_fused_run *run, char **out_message);
    /* Let run wait for compilers instead of answering BUSY, while WAITS is
     * nonzero: for tests and benchmarks. NULL: it never answers BUSY. */
    void (*set_waits)(void *instance, int32_t waits);
    /* struct_size is set. NULL: nothing is counted. */
    void (*stats)(void *instance, struct hob_fused_stats *out);
    /* As run, of a program without rows that finishes PRODUCT while a part of
     * it is near. HOB_ERR_UNSUPPORTED or HOB_ERR_BUSY, with nothing done: the
     * caller has the op run and then the program. NULL: always so. */
    hob_status (*run_product)(void *instance, void *kernel,
                              const struct hob_fused_run *run,
                              const struct hob_fused_product *product,
                              char **out_message);
    /*
     * How much dearer the steps of OP's body are to this backend in a program
     * than its own kernel for OP, which goes along rows of ROW elements of
     * DTYPE (of group_norm: all of a group): in per cent of the bytes that OP
     * reads and writes. A group takes the op where it saves more than that.
     * HOB_FUSED_WHOLE: OP is one step, which costs nothing. HOB_FUSED_NEVER: it
     * is left alone. NULL: always so.
     */
    uint32_t (*body_cost)(void *instance, uint32_t op, uint32_t dtype,
                          int64_t row);
    /*
     * The same of OP, a reduction over dimensions that are not the last ones:
     * in per cent of the bytes that it reads, elements of DTYPE. These are
     * row-major of sizes PARTS, [batches, outer, rows, inner], of which it goes
     * over outer and inner, and neither outer nor rows is 1: [1, n, columns, 1]
     * is a matrix whose columns are reduced. HOB_FUSED_NEVER: it is left alone.
     * NULL: always so.
     */
    uint32_t (*apart_cost)(void *instance, uint32_t op, uint32_t dtype,
                           const int64_t *parts);
    /* What the ops give one after the other, bit for bit, without the product
     * ever being written as a whole. Fails as run_product does; it may fail
     * otherwise only with nothing done. NULL: always HOB_ERR_UNSUPPORTED. */
    hob_status (*run_update)(void *instance,
                             const struct hob_fused_update *update);
    /* Nonzero: run_product needs no memory for the product. */
    uint32_t product_passes;
    uint32_t reserved;
    /*
     * COUNT UPDATES, at most HOB_FUSED_MAX_UPDATES, at once: of one op, with
     * elements of one dtype and the same numbers; a tensor that is not of the
     * parameter's shape is the same too. Their gradients are among VIEWS, LHS
     * and RHS NULL. None reads or writes what another one writes. What the ops
     * give one by one, bit for bit. Fails as run_update does, or where the
     * device does no more work. NULL: always HOB_ERR_UNSUPPORTED.
     */
    hob_status (*run_updates)(void *instance,
                              const struct hob_fused_update *const *updates,
                              uint32_t count);
};

/* Step INDEX of PROGRAM, whose steps may be larger than this header says. */
static inline const struct hob_fused_step *
hob_fused_step_at(const struct hob_fused_program *program, uint32_t index)
{
    return (const struct hob_fused_step
                *)(const void *)((const char *)program->steps +
                                 (size_t)index * program->step_size);
}

/* Nonzero if input REG of RUN is one row of COLUMNS elements for all rows. */
static inline int hob_fused_is_bias(const struct hob_fused_program *program,
                                    const struct hob_fused_run *run,
                                    uint32_t reg, int64_t columns)
{
    const uint32_t last = program->rank - 1u;

    if (reg >= program->input_count || program->rank < 2)
        return 0;
    for (uint32_t i = 0; i < last; i++)
        if (run->inputs[reg].strides[i] != 0)
            return 0;
    return run->shape[last] == columns && run->inputs[reg].strides[last] == 1;
}

/*
 * Nonzero if all that PROGRAM does to PRODUCT is [add a bias] [relu], which
 * libraries of products do on the way out. *OUT_BIAS is the input that is
 * added, one row for all rows, or HOB_FUSED_NONE: a product that has a bias of
 * its own takes no other. *OUT_RELU is nonzero if relu is the last step.
 */
static inline int hob_fused_is_epilogue(const struct hob_fused_program *program,
                                        const struct hob_fused_run *run,
                                        const struct hob_fused_product *product,
                                        uint32_t *out_bias, int *out_relu)
{
    const struct hob_view *out = product->out;
    const struct hob_fused_step *step = hob_fused_step_at(program, 0);
    uint32_t reg = product->input, count = 0;

    *out_bias = HOB_FUSED_NONE;
    *out_relu = 0;
    if (!product->args[2] && step->op == HOB_OP_ADD &&
        step->args[0] != step->args[1] &&
        (step->args[0] == reg || step->args[1] == reg)) {
        const uint32_t other = step->args[step->args[0] == reg];

        if (!hob_fused_is_bias(program, run, other, out->shape[out->rank - 1]))
            return 0;
        *out_bias = other;
        reg = program->input_count + count++;
    }
    step = hob_fused_step_at(program, count);
    if (count < program->step_count && step->op == HOB_OP_RELU &&
        step->args[0] == reg) {
        *out_relu = 1;
        reg = program->input_count + count++;
    }
    return count == program->step_count && program->output_count == 1 &&
           program->outputs[0] == reg;
}

/* ---- registered optimisations ---- */

/*
 * A manifest may say that an op takes the place of others:
 *
 *   "patterns": [{"replace": "relu(add(matmul(x, w), b))",
 *                 "with": "nn.linear_relu(x, w, b)"}]
 *
 * The core reads the texts, and host->pattern() tells of them as the tables
 * here, without any library of an extension being opened. Whether the results
 * are near enough is what hob-sdk check asks; all else is asked by who replaces
 * ops, each time: that nobody else reads what is inside of the pattern, that
 * attributes are those of the text, and that host->foresee() says for WITH
 * what it says for the ops.
 */
enum hob_pattern_kind {
    HOB_PATTERN_OP = 0,        /* a result of this op */
    HOB_PATTERN_TENSOR = 1,    /* any tensor: its name is NUMBER */
    HOB_PATTERN_ATTRIBUTE = 2, /* any value of an attribute, likewise */
    HOB_PATTERN_VALUE = 3      /* this value; ABSENT: an argument that is not */
};

/* Where a name stands twice the same tensor or value is meant. Names are
 * numbered from 0, those of tensors and those of attributes each. */
enum { HOB_PATTERN_MAX_OPS = 16, HOB_PATTERN_MAX_NAMES = 16 };

struct hob_pattern_node {
    uint32_t op;
    uint16_t kind; /* enum hob_pattern_kind */
    uint16_t number;
    uint16_t first; /* of its arguments among the nodes: after it */
    uint16_t count; /* of its arguments: as many as the op has parameters */
    uint32_t reserved;
    hob_value value;
};

struct hob_pattern {
    uint32_t struct_size;
    uint16_t node_size; /* bytes of one node */
    uint16_t node_count;
    const struct hob_pattern_node *nodes; /* 0 is the last op's */
    uint16_t with; /* node that is the op which takes their place; its arguments
                      are names and values */
    uint16_t op_count; /* of what it takes the place of */
    uint16_t tensors;  /* names of tensors */
    uint16_t attributes;
    const char *plugin; /* whose manifest it is from */
    const char *replace, *with_text;
};

static inline int hob_pattern_is_number(const hob_value *value)
{
    return value->tag == HOB_TAG_F64 || value->tag == HOB_TAG_I64 ||
           value->tag == HOB_TAG_U64;
}

static inline double hob_pattern_number(const hob_value *value)
{
    return value->tag == HOB_TAG_F64   ? value->u.f64
           : value->tag == HOB_TAG_I64 ? (double)value->u.i64
                                       : (double)value->u.u64;
}

/* Nonzero if a pattern's attribute A is met by B: all bits are equal, but that
 * a number may be written 2 and given as 2.0. */
static inline int hob_pattern_is_same_value(const hob_value *a,
                                            const hob_value *b)
{
    if (a->tag == b->tag && (a->tag == HOB_TAG_I64S || a->tag == HOB_TAG_F64S))
        return a->count == b->count &&
               !memcmp(a->u.i64s, b->u.i64s, a->count * sizeof(int64_t));
    if (a->tag == b->tag && a->tag == HOB_TAG_STR)
        return a->count == b->count && !memcmp(a->u.str, b->u.str, a->count);
    if (hob_pattern_is_number(a) && hob_pattern_is_number(b) &&
        a->tag != b->tag)
        return hob_pattern_number(a) == hob_pattern_number(b);
    return a->tag == b->tag &&
           (a->tag == HOB_TAG_ABSENT || a->u.u64 == b->u.u64);
}

/* ---- what the decorator tells of itself ---- */

#define HOB_FUSION_INSPECT "fusion.inspect"
enum { HOB_FUSION_INSPECT_VERSION = 1 };

/* See hob_fusion_report() and hob_fusion_watch(). */
struct hob_fusion_inspect {
    uint32_t struct_size;
    uint32_t version;
    void (*report)(void *layer, struct hob_fusion_stats *out);
    void (*watch)(void *layer,
                  void (*fn)(void *context,
                             const struct hob_fusion_event *event),
                  void *context);
};

HOB_END_DECLS

#endif
