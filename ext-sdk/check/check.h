/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what the files of hob-sdk check share.
 *
 * The parent reads files only. Whatever runs code of the plugin does so in a
 * child process: one child for the loading and one for each
 * pair of op and device and each check. So a crash is a finding, and no check
 * suffers from the one before.
 *
 *   main.c      the command line
 *   target.c    which library and manifest; hints.c the "x-check" in it
 *   elf.c       what the file says        load.c      what opening it does
 *   child.c     children, their findings  report.c    text and JSON
 *   lab.c       a runtime with one op on one device, one call in it
 *   memory.c    the device's memory, watched; heap.c the plugin's malloc
 *   plan.c      arguments, as a plan and as tensors
 *   search.c    which plans an op accepts
 *   check_*.c   the checks
 */
#ifndef HOB_CHECK_H
#define HOB_CHECK_H

#include "loader.h"
#include "runtime.h"
#include "text.h"

#include <hob/hob.h>

#include <signal.h>
#include <stdatomic.h>

/* ---- findings ---- */

struct check_lab;

enum check_code {
#define CHECK_CODE(code, meaning, hint) CHECK_##code,
#include "codes.def"
#undef CHECK_CODE
    CHECK_CODE_COUNT_
};

struct check_code_info {
    const char *name;
    const char *meaning;
    const char *hint;
};

const struct check_code_info *check_code_info(enum check_code code);

struct check_finding {
    enum check_code code;
    char *op;     /* "" where it is the library's */
    char *device; /* "" likewise */
    char *check;
    char *message;
    char *sample;  /* the generated case, or "" */
    char *program; /* the same for "hob eval"; NULL if there is none */
    uint32_t more; /* found again */
    int is_effect; /* of another finding */
};

/* One line of the report: a check of an op on a device. */
struct check_line {
    char *op, *device, *check;
    uint64_t runs;
    uint32_t findings;
};

struct check_report {
    struct check_finding *findings;
    uint32_t count, capacity;
    struct check_line *lines;
    uint32_t line_count, line_capacity;
    char **notes;
    uint32_t note_count, note_capacity;
    char **cases; /* that were accepted, with op and device in front */
    uint32_t case_count, case_capacity;
    uint32_t hidden; /* findings that follow from others */
    bool failed;     /* without memory */
    bool is_wrong;   /* a device that was asked for does not open */
};

/* Add a finding; one that is the same but for its case is counted there. */
void check_add(struct check_report *report, enum check_code code,
               const char *op, const char *device, const char *check,
               const char *sample, const char *message);
/* The program of the finding that was added last and is not counted. */
void check_add_program(struct check_report *report, const char *program);
void check_add_case(struct check_report *report, const char *text);
void check_add_line(struct check_report *report, const char *op,
                    const char *device, const char *check, uint64_t runs,
                    uint32_t findings);
void check_add_note(struct check_report *report, const char *text);
/* Take out what most likely follows from another finding of the same op. */
void check_report_settle(struct check_report *report);
void check_report_release(struct check_report *report);

/* ---- the target ---- */

enum { CHECK_LIST_MAX = 3, CHECK_VALUES_MAX = 8, CHECK_SHAPES_MAX = 8 };

/* An attribute's value, or the values that "x-check" gives for one. */
struct check_attr {
    uint8_t tag;
    uint8_t count;
    int64_t i64;
    double f64;
    int64_t i64s[HOB_MAX_RANK];
    double f64s[HOB_MAX_RANK];
    char str[32];
};

/* How one parameter is filled. Plain data: plans lie in shared memory. */
struct check_arg {
    uint8_t present;
    uint8_t count; /* items of a list; 1 for a tensor */
    uint8_t rank[CHECK_LIST_MAX];
    int64_t shape[CHECK_LIST_MAX][HOB_MAX_RANK];
    struct check_attr attr;
};

struct check_plan {
    uint8_t is_empty;    /* has a size of 0 */
    uint8_t is_positive; /* floats in 0.25..1.25, not -1..1 */
    struct check_arg args[HOB_MAX_PARAMS];
    /* HOB_DTYPE_NONE: the first that is served. */
    uint8_t dtype[HOB_MAX_PARAMS];
};

/* What "x-check" says of one parameter. */
struct check_hint {
    int has_range;
    double low, high;
    uint32_t value_count;
    struct check_attr values[CHECK_VALUES_MAX];
};

struct check_hints {
    struct check_hint params[HOB_MAX_PARAMS];
    struct check_plan shapes[CHECK_SHAPES_MAX];
    uint32_t shape_count;
    double tolerance[HOB_DTYPE_COUNT_]; /* 0: the default */
    int no_gradients;
};

struct check_op {
    char *name;     /* full */
    int is_foreign; /* from "implements" */
    int is_free;    /* "deterministic": false */
    struct check_hints hints;
};

struct check_target {
    char *manifest; /* absolute path */
    char *library;  /* absolute path; NULL if the manifest is refused */
    char *id, *version;
    char *layer; /* the selector of a decorator, which is proven by what
                    built-in ops do under it; else NULL */
    struct check_op *ops;
    uint32_t op_count;
};

/*
 * Find out what PATH, a library, manifest or folder, is about. What is wrong
 * with the manifest is a finding; HOB_ERR_ARGUMENT, with ERROR, if there is
 * nothing to check.
 */
hob_status check_target_open(const char *path, struct check_target *target,
                             struct check_report *report, hob_error *error);
void check_target_release(struct check_target *target);

/* Read the "x-check" members of manifest TEXT into TARGET's ops. */
void check_hints_read(struct check_target *target, const char *text,
                      size_t size, struct check_report *report);

/* Look into the file (elf.c). */
void check_elf(const struct check_target *target, struct check_report *report);

/* ---- calls ---- */

enum check_layout {
    CHECK_CONTIGUOUS,
    CHECK_PERMUTED, /* dimensions stored in the opposite order */
    CHECK_STEPPED,  /* every second element, from the second on */
    CHECK_FLIPPED,  /* negative strides */
    CHECK_EXPANDED, /* stride 0 in the first dimension */
    CHECK_LAYOUT_COUNT_
};

/* A plan with all that makes it a call. */
struct check_case {
    const struct check_plan *plan;
    uint8_t dtype[HOB_MAX_PARAMS];
    uint8_t layout[HOB_MAX_PARAMS];
    uint8_t repeat[HOB_MAX_PARAMS]; /* values equal along dimension 0 */
    uint8_t special;                /* 1, 2: NaN, infinities, extremes */
    uint8_t as_f64; /* floats widened after rounding to their dtype */
    uint8_t unmake; /* parameter to leave out, + 1 */
    uint8_t moved;  /* parameter whose tensors are ELSEWHERE, + 1 */
    hob_device *elsewhere;
    uint64_t seed;
    /* For differences: element BUMP_AT of parameter BUMP_PARAM. */
    int bump_param, bump_item;
    int64_t bump_at;
    double bump;
};

/* ---- children ---- */

enum { CHECK_PLANS_MAX = 32, CHECK_JOBS_MAX = 512, CHECK_NAME = 128 };

enum check_fault {
    CHECK_FAULT_NONE,
    CHECK_FAULT_OTHER,
    CHECK_FAULT_FENCE, /* just outside a buffer */
    CHECK_FAULT_SEAL   /* a write into an argument */
};

/* An op on a device that is worth checking. */
struct check_job {
    uint32_t op;
    char device[CHECK_NAME];
};

/* What parent and children share. */
struct check_shared {
    char sample[2048]; /* the case that runs now */
    int has_now;       /* the last call: */
    struct check_case now;
    struct check_plan now_plan;
    volatile sig_atomic_t fault;
    atomic_uint_fast64_t runs;
    atomic_uint_fast64_t steps; /* so that slow is not taken for hanging */
    uint32_t plan_count;
    struct check_plan plans[CHECK_PLANS_MAX];
    int device_failed; /* one that was asked for does not open */
    uint32_t job_count;
    struct check_job jobs[CHECK_JOBS_MAX];
};

struct check_options {
    const char *op; /* NULL: all */
    const char *const *devices;
    uint32_t device_count;
    uint64_t seed;
    uint32_t timeout_ms;
    const char *const *paths; /* more places with plugins */
    uint32_t path_count;
};

/* What a child needs. */
struct check_child {
    const struct check_options *options;
    const struct check_target *target;
    struct check_shared *shared;
    const struct check_op *op; /* NULL: the library */
    const char *device;
    const char *check;
    int fd;                /* findings go here */
    uint32_t findings;     /* of this check */
    struct check_lab *lab; /* NULL before there is one */
    int has_hung;
};

typedef void check_run_fn(struct check_child *child);

/*
 * Run RUN in a child; its findings, its end and what it printed go into
 * REPORT.
 */
void check_in_child(struct check_child *child, check_run_fn *run,
                    struct check_report *report);

/* In a child: report CODE with the case that runs now; once a code. */
void check_found(struct check_child *child, enum check_code code,
                 const char *format, ...) HOB_PRINTF(3, 4);
void check_note(struct check_child *child, const char *format, ...)
    HOB_PRINTF(2, 3);

/* Whether op NAME is to be checked. */
int check_is_wanted(const struct check_options *options, const char *name);

/* In a child: a case that the op accepts. */
void check_accepted(struct check_child *child, const char *text);

/* Open the library, look at what changes, list the jobs (load.c). */
void check_load(struct check_child *child);

/* Note what an op lists and no job tries, and why (selectors.c). */
void check_selectors(struct check_child *child, hob_runtime *runtime);

/* ---- memory ---- */

enum { CHECK_BLOCKS_MAX = 8192, CHECK_GUARD = 64 };

/* Blocks lie between inaccessible pages, one of which they touch. */
enum check_fence_side {
    CHECK_NO_FENCE,
    CHECK_FENCE_BEHIND,
    CHECK_FENCE_BEFORE
};

struct check_block {
    char *data; /* NULL: free slot */
    uint64_t bytes;
    char *map; /* fenced: the whole mapping */
    uint64_t map_bytes;
    int is_sealed;
};

struct check_memory {
    const struct hob_backend *real;
    void *device; /* the backend's own */
    int is_host;
    enum check_fence_side fence;
    uint8_t fill;
    atomic_int is_armed;           /* count requests and fail one */
    atomic_uint_fast64_t requests; /* since armed */
    uint64_t fail_at;              /* 0: none */
    atomic_int_fast64_t live_host; /* host->mem_alloc */
    atomic_int_fast64_t live_heap; /* the plugin's malloc */
    uint32_t live_blocks;
    char broken[160]; /* the first guard zone that was written to */
    pthread_mutex_t lock;
    uint32_t block_end;
    struct check_block blocks[CHECK_BLOCKS_MAX];
    struct check_shared *shared;
};

/* Whether the request of now is the one that fails. */
int check_memory_fails(struct check_memory *memory);

/* Stand between the core and DEVICE's memory. One at a time in a process. */
void check_memory_install(struct check_memory *memory, hob_device *device,
                          struct hob_backend *copy,
                          struct check_shared *shared);

/* Tell faults in MEMORY's fences from others. */
void check_memory_watch(struct check_memory *memory,
                        struct check_shared *shared);

/* Compare all guard zones. */
void check_memory_verify(struct check_memory *memory);
/* Make all live fenced blocks read-only, or writable again. */
void check_memory_seal(struct check_memory *memory, int sealed);

/* Count, and fail, what the library behind HANDLE allocates by itself. */
void check_heap_install(struct check_memory *memory, void *handle);

/* ---- the lab: one op on one device ---- */

enum check_force {
    CHECK_AS_ROUTED,
    CHECK_BODY,   /* the body, though there is a kernel */
    CHECK_KERNEL, /* no body to fall back to */
    CHECK_PROBE,  /* nothing runs but infer */
    CHECK_FORCE_COUNT_
};

struct check_lab {
    struct check_child *child;
    hob_runtime *runtime;
    hob_device *device; /* where calls are made: the base, or a stack on it */
    hob_device *base;   /* borrowed from DEVICE */
    const struct hob__op *op;
    const struct check_hints *hints;
    struct hob__route route; /* as the core would run it */
    /* What the device is given instead: one of each kind, as each keeps what
     * kernels prepared. */
    struct hob__route forced[CHECK_FORCE_COUNT_];
    struct hob_entry probe;
    struct check_memory *memory;
    struct hob_backend backend;
};

hob_status check_lab_open(struct check_child *child, struct check_lab *lab,
                          const char *device);
void check_lab_close(struct check_lab *lab);
/* Open DEVICE besides; NULL, with a note, if it does not open. */
hob_device *check_lab_device(struct check_lab *lab, const char *device);
void check_force(struct check_lab *lab, enum check_force force);

/* Options of a runtime that finds the target first. */
hob_status check_runtime_open(const struct check_child *child,
                              hob_runtime **out_runtime, hob_error *error);

/* CASE as PLAN has it, with the dtypes that come first. */
void check_case_init(const struct check_lab *lab, struct check_case *one,
                     const struct check_plan *plan);
/* Give PARAM, and all of its kind, DTYPE. */
void check_case_dtype(const struct check_lab *lab, struct check_case *one,
                      uint32_t param, uint32_t dtype);
/* Write CASE down for the report. */
void check_case_text(const struct check_lab *lab, const struct check_case *one,
                     char *text, size_t size);
int check_is_tensor(const struct hob__param *param);
/* The COUNT values of ITEM of PARAM, row-major. */
void check_case_values(const struct check_lab *lab,
                       const struct check_case *one, uint32_t param,
                       uint32_t item, double *values, int64_t count);

/* The arguments of a call. */
struct check_args {
    hob_value values[HOB_MAX_PARAMS];
    hob_tensor *tensors[HOB_MAX_PARAMS][CHECK_LIST_MAX];
};

hob_status check_args_make(const struct check_lab *lab, hob_scope *scope,
                           hob_device *device, const struct check_case *one,
                           struct check_args *args, hob_error *error);

/* What came of a call. */
struct check_outcome {
    hob_status status;
    char message[600];
    uint32_t count;
    struct hob_meta metas[HOB_MAX_RESULTS];
    void *data[HOB_MAX_RESULTS]; /* row-major bytes; NULL: empty or absent */
    uint64_t bytes[HOB_MAX_RESULTS];
    uint8_t present[HOB_MAX_RESULTS];
    uint32_t plain_count;
    hob_value plains[HOB_MAX_RESULTS]; /* results that are no tensors */
    int written; /* parameter whose bytes changed, or -1 */
};

enum check_how {
    CHECK_MOVE = 1,  /* arguments are used for the last time */
    CHECK_WATCH = 2, /* compare the bytes of arguments */
    CHECK_SEAL = 4,  /* arguments in read-only memory, if fenced */
    CHECK_ARM = 8,   /* count and fail allocations of the call */
    CHECK_QUIET = 16 /* from one of several threads: report nothing */
};

/* Append the last call as a program, unless it is long. */
void check_program(const struct check_lab *lab, struct hob__text *out);

/* Call the op with CASE on DEVICE; release the outcome in any case. */
void check_call(struct check_lab *lab, hob_device *device,
                const struct check_case *one, uint32_t how,
                struct check_outcome *outcome);
/* Read TENSOR, which may be NULL, as result INDEX of OUTCOME. */
void check_outcome_read(struct check_outcome *outcome, uint32_t index,
                        hob_tensor *tensor);
void check_outcome_release(struct check_outcome *outcome);
/* The same on an autodiff DEVICE with all float arguments tracked; the outcome
 * is their gradients of the sum of all results. */
void check_backward(struct check_lab *lab, hob_device *device,
                    const struct check_case *one, uint32_t how,
                    struct check_outcome *outcome);
typedef void check_call_fn(struct check_lab *lab, hob_device *device,
                           const struct check_case *one, uint32_t how,
                           struct check_outcome *outcome);
/* autodiff over the base, if the op lists it and it opens; else NULL. */
hob_device *check_autodiff_device(struct check_lab *lab);
int check_lists_autodiff(const struct check_lab *lab);

/* Call the op itself; PLAINS may be NULL. */
hob_status check_invoke(struct check_lab *lab, hob_scope *scope,
                        const struct check_args *args, hob_tensor **out,
                        uint32_t *out_count, hob_value *plains);
/* For those: say which case runs; count requests for memory from now on. */
void check_tell_case(struct check_lab *lab, const struct check_case *one,
                     uint32_t how);
void check_arm(struct check_lab *lab, uint32_t how);
void check_disarm(struct check_lab *lab);

/* Whether dtypes and shapes are the same; floats may be wider unless IS_STRICT.
 */
int check_same_metas(const struct check_outcome *a,
                     const struct check_outcome *b, int is_strict, char *why,
                     size_t size);
/* Whether A and B are the same bits, NaN being NaN. WHY gets the first
 * difference. */
int check_same(const struct check_outcome *a, const struct check_outcome *b,
               char *why, size_t size);
/* Whether GOT is near WANTED, which may be of a wider dtype. */
int check_near(const struct check_lab *lab, const struct check_outcome *got,
               const struct check_outcome *wanted, char *why, size_t size);
double check_tolerance(const struct check_lab *lab, uint32_t dtype);

/* Whether STATUS says that the arguments do not fit. */
int check_is_refusal(hob_status status);
/* Report what is odd about a failure: no message, results unlike inferred. */
void check_failure(struct check_lab *lab, const struct check_outcome *outcome,
                   const char *where);

double check_decode(uint32_t dtype, const void *element);
void check_encode(uint32_t dtype, double value, void *element);
uint64_t check_random(uint64_t *state);
double check_uniform(uint64_t *state); /* 0 up to 1 */

/* ---- the checks ---- */

struct check_entry {
    const char *name;
    void (*run)(struct check_lab *lab);
};

extern const struct check_entry check_table[];
extern const uint32_t check_table_count;

/* PLAN with larger, odd sizes into OUT; whether the op accepts them. */
int check_enlarge(struct check_lab *lab, const struct check_plan *plan,
                  struct check_plan *out);

/* The same with as many elements as several threads share. */
int check_enlarge_much(struct check_lab *lab, const struct check_plan *plan,
                       struct check_plan *out);

void check_search(struct check_lab *lab);      /* fills shared->plans */
void check_values(struct check_lab *lab);      /* kernel, body, again */
void check_layouts(struct check_lab *lab);     /* strides */
void check_layers(struct check_lab *lab);      /* decorators */
void check_replaces(struct check_lab *lab);    /* what it stands for */
void check_gradients(struct check_lab *lab);   /* finite differences */
void check_extremes(struct check_lab *lab);    /* NaN, infinities, indices */
void check_arguments(struct check_lab *lab);   /* written to, in place */
void check_buffers(struct check_lab *lab);     /* garbage, guards, fences */
void check_leaks(struct check_lab *lab);       /* what stays */
void check_allocations(struct check_lab *lab); /* the N-th fails */
void check_threads(struct check_lab *lab);     /* two at once */
void check_errors(struct check_lab *lab);      /* wrong arguments */

#endif
