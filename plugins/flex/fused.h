/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.h - fused programs: the interface "fused.compute" of flex.
 *
 *   fused.c        the interface's functions
 *   fused_ops.c    what flex knows of an op: its kernel, its operands
 *   fused_plan.c   a program as passes over values
 *   fused_emit.c   the instructions of a pass
 *   fused_chain.c  cheap steps as one instruction
 *   fused_slots.c  where values lie in a thread's arena
 *   fused_order.c  one run: the order of its elements
 *   fused_job.c    operands as loops, scalars
 *   fused_cut.c    sizes of blocks
 *   fused_block.c  instructions run on one block
 *   fused_fold.c   of them reductions
 *   fused_channels.c group_norm, whose numbers are those of channels
 *   fused_rows.c   values of rows, before and after blocks
 *   fused_run.c    blocks, rows and columns on the host's threads
 *   fused_shared.c rows whose passes all threads share
 *   fused_product.c a product finished while its parts are in the cache
 *
 * A program is run a block of elements at a time: a *pass* goes through all
 * instructions of the block, each a kernel that also runs the op alone, so
 * results are the same bits; cheap steps that follow each other are one, whose
 * values do not leave the processor's registers. What an instruction gives
 * stays in a *slot* of the thread's arena, in the first-level cache, or goes to
 * the output where it lies. A reduction ends a pass: what depends on its result
 * is computed in the next one, from the inputs again, or from values that were
 * kept for the row. Short rows are computed some at a time, in one block. An op
 * that goes along a row (softmax, layer_norm) is an instruction that calls its
 * row kernel, on blocks that are whole rows.
 *
 * f16 and bf16 are f32 in slots, rounded after each step that is not exact.
 */
#ifndef FLEX_FUSED_H
#define FLEX_FUSED_H

#include "flex.h"
#include "fold.h"
#include "kernels/chain.h"
#include "kernels/rows.h"

#include <hob/ext/fusion.h>

enum {
    FUSED_REGISTERS = HOB_FUSED_MAX_INPUTS + HOB_FUSED_MAX_STEPS,
    FUSED_CELLS = 2 * HOB_FUSED_MAX_STEPS, /* scalars in a dtype */
    FUSED_VALUES = 2 * FUSED_REGISTERS + 2 * FUSED_CELLS,
    FUSED_INSTRUCTIONS = 256,
    FUSED_LINKS = 512, /* of all chains */
    FUSED_NO_VALUE = 0xffff,
    FUSED_NO_PASS = 0xff,
    /* Bytes of a thread's arena at most, if no row needs more; of them those
     * that lie on its stack, which may be as small as musl's, 128 KiB; and
     * those that blocks are cut for. */
    FUSED_ARENA = 1 << 17,
    FUSED_OWN = 1 << 15,
    FUSED_NEAR = 20 << 10,
    FUSED_BLOCK_LEAST = 64,
    FUSED_PIECE = 1 << 17, /* of a thread at least, in elements of an add */
    FUSED_GROUP = 128,     /* rows of a block at most */
    FUSED_COLUMNS = 2048   /* the same of columns */
};

/* ---- ops ---- */

/* What an op's tensor operands (a, b, c) and attributes are to its kernel. */
enum fused_form {
    FUSED_ONE = 1,      /* a */
    FUSED_TWO,          /* a, b */
    FUSED_WHERE,        /* a, b, c */
    FUSED_SCALAR,       /* a, attribute */
    FUSED_SCALAR_FIRST, /* attribute, a */
    FUSED_POWER,        /* as SCALAR; some exponents have their own kernels */
    FUSED_CLAMP,        /* a, lower bound, upper bound */
    FUSED_FILL,         /* b, attribute, a */
    FUSED_WIDE,         /* a, attributes that halves do not round */
    FUSED_BACKWARD,     /* a, b, such an attribute; the variant's kernel */
    FUSED_CAST,         /* a */
    FUSED_FOLD,         /* a, over the row */
    FUSED_ALONG         /* a, b, c along the row */
};

enum fused_flags {
    FUSED_EXACT = 1,      /* halves give a half: nothing to round */
    FUSED_DEAR = 2,       /* some ns an element */
    FUSED_FLOAT_ONLY = 4, /* integers may have no result */
    FUSED_INTEGER = 8,    /* not for bool, whose kernels are alike */
    FUSED_MEAN = 16
};

struct fused_op {
    uint8_t form;   /* enum fused_form; 0: not fused */
    uint8_t kernel; /* enum flex_map or enum flex_fold */
    uint8_t flags;  /* enum fused_flags */
    uint8_t link;   /* enum flex_link_kind, 0: none */
};

/* An op along a row of N elements; B, C and NUMBER as it has them. */
typedef void (*fused_along_fn)(const struct flex_row_kernels *kernels,
                               void *out, const void *a, const void *b,
                               const void *c, const double *number, int64_t n);

/* The op with number OP; NULL if no program has it. */
const struct fused_op *fused_op_find(uint32_t op);
/* The dtype that values of DTYPE are in slots. */
static inline uint32_t fused_dtype(uint32_t dtype)
{
    return flex_is_half(dtype) ? (uint32_t)HOB_DTYPE_F32 : dtype;
}
/* The map kernel of STEP on values of DTYPE, as in slots. NULL: none. */
flex_map_fn fused_op_map(const struct flex_kernels *kernels,
                         const struct hob_fused_step *step, uint32_t dtype);
/* The kernel of op NUMBER, which goes along rows; NULL of group_norm. */
fused_along_fn fused_op_along(uint32_t number);
/* How many attributes the op with number OP has. */
uint32_t fused_scalar_count(uint32_t op);
/* As supports of struct hob_fused_compute. */
int32_t fused_supports(void *device, const struct hob_fused_step *step,
                       const uint8_t *arg_dtypes);

/* ---- plans ---- */

enum fused_value_kind {
    FUSED_INPUT,    /* where it lies, or brought to a slot */
    FUSED_SLOT,     /* of a block */
    FUSED_KEPT,     /* of a block, or of the whole row: for later passes */
    FUSED_ROW,      /* one element a row */
    FUSED_EXPANDED, /* a ROW register for each element of a block */
    FUSED_FILLED,   /* a block of equal elements: a scalar */
    FUSED_CELL      /* a scalar */
};

struct fused_value {
    uint8_t kind;
    uint8_t dtype;   /* in the slot */
    uint8_t size;    /* bytes of that */
    uint8_t is_used; /* by map kernels, which need all of its elements */
    uint16_t of;     /* register or cell that it is made of */
    uint32_t offset; /* in its area: bytes for each element or row before it */
};

/* A scalar as an operand. */
struct fused_cell {
    uint8_t scalar; /* of the run */
    uint8_t dtype;  /* that it is rounded to */
    uint8_t bound;  /* what is absent: 0 an error, 1 no lower, 2 no upper */
};

enum fused_instruction_kind {
    FUSED_DO_MAP,
    FUSED_DO_CAST, /* a to out */
    FUSED_DO_FOLD, /* a to the cells of out */
    FUSED_DO_ALONG,
    FUSED_DO_CHAIN
};

struct fused_instruction {
    uint8_t kind;
    uint8_t round; /* the half that the result is rounded to, or 0 */
    uint8_t step;
    uint8_t fold; /* number of the fold */
    uint16_t out; /* values */
    uint16_t args[3];
    uint16_t first; /* of a chain: links */
    uint16_t count;
    uint16_t number;  /* of FUSED_ALONG: the value of its attribute, or none */
    uint8_t is_power; /* the kernel depends on the exponent */
    union {
        flex_map_fn map;
        flex_cast_fn cast;
        flex_chain_fn chain;
        fused_along_fn along;
    } fn;
};

/* What a pass begins with, and its instructions. */
struct fused_pass {
    uint16_t row_first, row_end; /* instructions on ROW values */
    uint16_t first, end;
    uint16_t inputs;                       /* bit i: input i is read */
    uint16_t outputs;                      /* bit i: output i is stored */
    uint16_t expanded_first, expanded_end; /* of plan->expanded */
};

struct fused_fold {
    struct flex_reduction is;
    uint16_t out;    /* the ROW value */
    uint8_t pass;    /* that it goes over */
    uint8_t half;    /* dtype to round to, or 0 */
    uint32_t offset; /* of its accumulators in the rows' area */
};

struct fused_output {
    uint16_t value;
    uint8_t dtype;
    uint8_t is_row;
    uint16_t later;     /* inputs that are read after it has been computed */
    uint8_t is_chained; /* a chain stores it and nothing reads it back */
};

struct fused_plan {
    uint16_t value_count, register_count, cell_count, pass_count, fold_count;
    uint16_t expanded_count, instruction_count, link_count;
    uint8_t narrow;   /* a block for rounding halves is needed */
    uint8_t is_along; /* blocks must be whole rows */
    uint8_t input_count, output_count;
    uint16_t vectors; /* bit i: input i is read by ops along rows alone, and not
                         as what they go along */
    uint16_t channels;   /* the same of group_norm */
    uint32_t slot_bytes; /* of an element in all slots */
    uint32_t kept_bytes;
    uint32_t row_bytes; /* of a row in all ROW values and accumulators */
    uint32_t narrow_offset;
    uint32_t cost; /* of an element, in that of an add */
    struct fused_value values[FUSED_VALUES];
    struct fused_cell cells[FUSED_CELLS];
    struct fused_pass passes[HOB_FUSED_MAX_STEPS + 1];
    struct fused_fold folds[HOB_FUSED_MAX_STEPS];
    struct fused_output outputs[HOB_FUSED_MAX_OUTPUTS];
    uint16_t expanded[FUSED_REGISTERS]; /* values */
    struct flex_link links[FUSED_LINKS];
    struct fused_instruction instructions[FUSED_INSTRUCTIONS];
};

enum fused_plan_flags {
    FUSED_AGAIN =
        1,          /* compute again what an earlier pass has, if it is cheap */
    FUSED_LATE = 2, /* store all outputs in the last pass */
    FUSED_PLANS = 4
};

/* PLAN from PROGRAM, which fused_supports has approved. */
hob_status fused_plan_build(struct fused_plan *plan,
                            const struct flex_kernels *kernels,
                            const struct hob_fused_program *program,
                            uint32_t flags);

/* What compile makes. */
struct fused_kernel {
    struct flex_device *device;
    struct hob_fused_program program; /* its lists are below */
    struct hob_fused_input inputs[HOB_FUSED_MAX_INPUTS];
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS];
    uint8_t outputs[HOB_FUSED_MAX_OUTPUTS];
    /* By flags; NULL where a plan would have too many instructions, or where
     * it is like that without the flags. */
    struct fused_plan *plans[FUSED_PLANS];
};

/* ---- runs ---- */

enum fused_way {
    FUSED_BY_ELEMENTS, /* without rows */
    FUSED_BY_ROWS,     /* some, one or a part of one in a block */
    FUSED_BY_COLUMNS,  /* the same place of some rows in a block, or such places
                        */
    FUSED_BY_ALL       /* all threads share each pass of all rows */
};

/* How a run goes through its elements: by what dimensions, the last one first.
 * Rows are BATCHES of some that lie side by side, and have OUTER parts that lie
 * further apart than these, each of INNER elements that do not: their order is
 * [batch, outer part, row of the batch, inner element]. */
struct fused_order {
    int64_t rows, n; /* of the space; without rows 1 */
    int64_t batches, outer, inner;
    uint8_t way; /* enum fused_way */
    uint8_t from[HOB_MAX_RANK];
    uint8_t flip[HOB_MAX_RANK]; /* gone through from its end */
    uint32_t rank;
    int64_t shape[HOB_MAX_RANK];
};

enum fused_walk {
    FUSED_DENSE,    /* one element after the other */
    FUSED_UNIFORM,  /* the same element everywhere */
    FUSED_VECTOR,   /* the same row everywhere */
    FUSED_CHANNELS, /* numbers that come one after the other, and again, each
                       for some elements of rows: group_norm's own */
    FUSED_STRIDED
};

struct fused_job_input {
    struct flex_loop loop; /* of a ROW one: over rows */
    uint8_t walk;
    uint8_t is_row;
    uint8_t is_single; /* a block reads one element of it */
    uint8_t skips;     /* brought together in parts first */
    uint8_t dtype;     /* as stored */
    flex_cast_fn load; /* of halves */
    void *vector;      /* of FUSED_VECTOR, FUSED_CHANNELS: all, as in slots */
    int64_t length;    /* numbers of that */
    int64_t places;    /* of FUSED_CHANNELS: elements that each is for */
    uint32_t offset;   /* of its slot, bytes for each element */
    uint32_t stored;   /* of a slot of halves as stored */
};

struct fused_job_output {
    struct flex_loop loop;
    uint8_t is_dense;
    uint8_t is_direct; /* computed where it lies, if that is contiguous */
    uint8_t is_past;   /* goes past the caches */
    uint8_t is_far;    /* nor is what it will lie over near */
    uint8_t dtype;
    flex_cast_fn store; /* of halves */
};

/* One run, shared by all threads. */
struct fused_job {
    struct flex_device *device;
    const struct fused_plan *plan;
    struct fused_job_input in[HOB_FUSED_MAX_INPUTS];
    struct fused_job_output out[HOB_FUSED_MAX_OUTPUTS];
    uint64_t cells[FUSED_CELLS];
    double powers[FUSED_CELLS];
    struct flex_link links[FUSED_LINKS];
    int64_t count;                 /* elements of the space */
    int64_t rows;                  /* without reductions 1 */
    int64_t n;                     /* elements of a row */
    int64_t batches, outer, inner; /* see struct fused_order */
    int64_t side;                  /* rows of a batch */
    int64_t lanes;  /* accumulators of a row by all threads: INNER, if few */
    int64_t block;  /* elements at most */
    int64_t group;  /* rows of a block; 0: a row has several blocks */
    int64_t places; /* parts of each row in a block, if that has all of GROUP */
    int64_t pitch;  /* rows that there is room for */
    int64_t limit;  /* elements of a filled slot */
    int64_t row;    /* blocks end at multiples of it; 0: anywhere */
    int64_t period; /* blocks are a multiple of it long; 0: of any length */
    int64_t part; /* elements that inputs that skip are brought together for */
    uint32_t slot_bytes; /* of an element in all slots, inputs' too */
    int64_t kept_pitch;  /* elements from one kept value to the next */
    uint64_t arena;      /* bytes of a thread's */
    uint64_t kept_at;    /* in the arena; beyond it: scratch of its own */
    uint64_t rows_at;    /* in the arena */
    uint64_t kept_bytes; /* of scratch */
    char *kept;          /* of all threads; or NULL: each has its own */
    int32_t failed;      /* set from any thread */
    struct {             /* of a run by all threads: what one thread adds up */
        int64_t outer, rows, inner;
    } piece;
    uint8_t way;   /* enum fused_way */
    uint8_t skips; /* an input does */
};

/* Bytes that a thread's arena has at most. */
static inline uint64_t fused_most_arena(const struct flex_device *device)
{
    return device->l2_bytes / 2 > FUSED_ARENA ? device->l2_bytes / 2
                                              : FUSED_ARENA;
}

/* The order of RUN. */
void fused_order_init(struct fused_order *order,
                      const struct fused_kernel *kernel,
                      const struct hob_fused_run *run);

/* Describe a run of PLAN, which must keep only what is dear if ORDER is by all
 * threads; HOB_ERR_UNSUPPORTED if its blocks would be too small. */
hob_status fused_job_init(struct fused_job *job,
                          const struct fused_kernel *kernel,
                          const struct fused_plan *plan,
                          const struct fused_order *order,
                          const struct hob_fused_run *run);

/* fused_cut.c: the blocks of JOB, all else of which is there but links. */
hob_status fused_job_cut(struct fused_job *job);

/* What a thread has of a run. */
struct fused_thread {
    const struct fused_job *job;
    char *rows; /* values and accumulators of rows */
    char *kept;
    union flex_cell *partials; /* of folds, where not at rows; or NULL: PITCH
                                  times LANES for each */
    uint64_t kept_bytes;       /* of scratch; 0: in the arena */
    int64_t keys[HOB_FUSED_MAX_INPUTS]; /* see fused_block.c */
    int64_t held[HOB_FUSED_MAX_INPUTS];
    char *part[HOB_FUSED_MAX_INPUTS]; /* what skips, from element part_at on */
    int64_t part_at;
    void *at[FUSED_VALUES]; /* each value's elements of this block */
    char *arena;            /* scratch, where JOB has one larger than OWN */
    _Alignas(FLEX_ALIGN) char own[FUSED_OWN];
};

/* Begin with room for values of rows at ROWS; NULL: in the arena. Without
 * memory for what is kept, the job has failed. */
hob_status fused_thread_begin(struct fused_thread *thread,
                              struct fused_job *job, char *rows);
void fused_thread_end(struct fused_thread *thread);

/* Bring N elements from FIRST on of INPUTS (by bit). */
void fused_fetch(struct fused_thread *thread, uint32_t inputs, int64_t first,
                 int64_t n);
/* Let what is kept be that of a block at element AT of the row. */
void fused_kept(struct fused_thread *thread, int64_t at);
/* What a block has of rows, for instructions that go along them: ROW elements
 * of each of ROWS ones, from number FIRST on where partials are kept of all;
 * and then again so many, as often as there are elements. AT is the first one's
 * number in the run, if there are whole rows. JOINS: more of what was before.
 */
struct fused_rows_part {
    int64_t row, rows, first, at;
    int joins;
};
/* The instructions FIRST .. END - 1 on N elements. */
void fused_instructions(struct fused_thread *thread, uint32_t first,
                        uint32_t end, int64_t n,
                        const struct fused_rows_part *part);
/* Where pass PASS is to write N elements from FIRST on, and storing them. */
void fused_targets(struct fused_thread *thread, const struct fused_pass *pass,
                   int64_t first, int64_t n);
void fused_store(struct fused_thread *thread, const struct fused_pass *pass,
                 int64_t first, int64_t n);

/* fused_fold.c: the fold of MADE on such a block. */
void fused_fold_block(struct fused_thread *thread,
                      const struct fused_instruction *made, int64_t n,
                      const struct fused_rows_part *part);

/* fused_channels.c: how group_norm's INPUT, which nothing else reads, walks. */
enum fused_walk fused_channels_walk(struct fused_job_input *input);
/* The step of MADE, a group_norm, on N elements. */
void fused_channels_run(struct fused_thread *thread,
                        const struct fused_instruction *made, int64_t n,
                        const struct fused_rows_part *part);

/* ---- fused_rows.c: values of rows ---- */

/* ROW operands of COUNT rows from FIRST on to their values, or back. */
void fused_rows_load(struct fused_thread *thread, int64_t first, int64_t count);
void fused_rows_store(struct fused_thread *thread, int64_t first,
                      int64_t count);
/* Values of COUNT rows, those FIRST .. END - 1 of plan->expanded, for each
 * element of a block of theirs, which begins at row AT of the thread's. */
void fused_rows_expand(struct fused_thread *thread, uint32_t first,
                       uint32_t end, int64_t at, int64_t count);
/* What pass P begins with: values of COUNT rows. */
void fused_pass_begin(struct fused_thread *thread, uint32_t p, int64_t count);
/* What the folds of pass P have of COUNT rows from AT on of the thread's, as
 * their results. */
void fused_pass_end(struct fused_thread *thread, uint32_t p, int64_t at,
                    int64_t count);

/* ---- runs as a whole ---- */

/* Elements FIRST .. LAST - 1 through one pass, by blocks: PART goes on. */
void fused_blocks(struct fused_thread *thread, const struct fused_pass *pass,
                  int64_t first, int64_t last, struct fused_rows_part *part);

hob_status fused_run(struct fused_job *job);
/* The same of a run by all threads. */
hob_status fused_run_shared(struct fused_job *job);

/* Elements FIRST .. LAST - 1 of a job without rows, by blocks. */
void fused_elements(struct fused_thread *thread, int64_t first, int64_t last);

/* As run_update of struct hob_fused_compute; in ops/optim.c. */
hob_status flex_run_update(void *device, const struct hob_fused_update *update);

/* PRODUCT, then JOB on it: see run_product of struct hob_fused_compute. */
hob_status fused_product(struct fused_job *job,
                         const struct fused_kernel *kernel,
                         const struct hob_fused_run *run,
                         const struct hob_fused_product *product);

#endif
