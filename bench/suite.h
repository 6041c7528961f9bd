/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h - what a case of the benchmark suite is.
 *
 * A case is one entry of a table in bench/cases/: what goes in, the ways of
 * doing the work, a reference in float64, what the machine could do at best,
 * and the target. Each way runs in a process of its own: Hob and what is
 * written in C in processes of this program, PyTorch and numexpr in ones of
 * peer.py. They take turns; who is not at turn is stopped. A way whose result
 * differs from the reference is not timed.
 *
 * To add a case: an entry, and a function of type bench_hob_fn. A family of
 * cases is a file, whose table is listed in registry.c.
 */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include <hob/hob.h>

#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_INPUTS = 8,
    BENCH_RANK = 5,
    BENCH_NUMBERS = 10, /* of a case, for its functions */
    BENCH_WAYS = 4,     /* of a case, beside those that all cases share */
    BENCH_PEERS = 3,    /* that a target names */
    BENCH_SETS = 8
};

struct bench_case;
struct bench_job;

/* Random elements, the same in every process. */
struct bench_input {
    hob_dtype dtype;
    int64_t shape[BENCH_RANK]; /* up to the first 0 */
    double low, high;          /* uniform; both 0 means -1 to 1 */
};

/* An input in host memory. */
struct bench_array {
    const struct bench_input *input;
    int64_t count;
    void *data; /* of the input's dtype */
};

/* The work with Hob: ops in SCOPE. Errors stay on the scope. */
typedef hob_tensor *(*bench_hob_fn)(hob_scope *scope, hob_tensor *const *in,
                                    const struct bench_case *c);
/* The work on host arrays, OUT being f32 of c->out_count elements. */
typedef void (*bench_loop_fn)(const struct bench_case *c,
                              const struct bench_array *in, float *out);
/* For the loops' definitions: as one would compile them for this machine, with
 * what vectors it has. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BENCH_LOOP                                                             \
    __attribute__((                                                            \
        optimize("O3"),                                                        \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define BENCH_LOOP
#endif
/* Element I of the result in float64. */
typedef double (*bench_at_fn)(const struct bench_case *c,
                              const struct bench_array *in, int64_t i);
/* All elements of it, where that is cheaper than one by one. What is left NAN
 * is not compared. */
typedef void (*bench_all_fn)(const struct bench_case *c,
                             const struct bench_array *in, double *out);

/* Change the inputs, where random elements are not what is wanted. */
typedef void (*bench_fill_fn)(const struct bench_case *c,
                              const struct bench_array *in);

/* What OpenBLAS offers, opened with dlopen; see cases/matmul.c. */
struct bench_blas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k,
                  float alpha, const float *a, int lda, const float *b, int ldb,
                  float beta, float *c, int ldc);
    void (*sgemv)(int order, int trans, int m, int n, float alpha,
                  const float *a, int lda, const float *x, int incx, float beta,
                  float *y, int incy);
};
typedef void (*bench_blas_fn)(const struct bench_case *c,
                              const struct bench_blas *blas,
                              const struct bench_array *in, float *out);

/*
 * A way beside those that follow from a case. Either hob is set: Hob's way
 * with that function, and another device or number of threads where these are
 * not 0; is_tracked: gradients flow to the first input. Or it is a program of
 * its own, for what is not "tensors in, one tensor out". All functions but run
 * may be NULL then. check computes the result that is compared with the
 * reference, before anything is timed: c->out_count numbers. open returns
 * HOB_ERR_UNSUPPORTED if the way is not there on this machine. The message of a
 * failure goes to job->error.
 */
struct bench_way {
    const char *who;
    hob_status (*open)(struct bench_job *job);
    hob_status (*check)(struct bench_job *job, double *out);
    void (*run)(struct bench_job *job, uint64_t repeats);
    void (*close)(struct bench_job *job);
    bench_hob_fn hob;
    const char *device;
    int threads;
    int is_tracked;
    /* Told beside, and no peer: see bench_target. Not compared with the
     * reference, for it may do something else. */
    int is_base;
};

/* 0: no such target. */
struct bench_target {
    double peer; /* times as fast as the best peer */
    struct {
        const char *who; /* "torch" is also "torch tuned" */
        double ratio;    /* times as fast as the best called so */
    } of[BENCH_PEERS];
    double limit;         /* of what the machine can do */
    double ns;            /* at most */
    double above_base_ns; /* at most, above the way that is the base */
    double base;          /* times as fast as the base */
    double peak_bytes;    /* at most */
};

struct bench_case {
    const char *id; /* "C6" */
    const char *name;
    struct bench_input in[BENCH_INPUTS]; /* up to the first without a shape */
    int64_t n[BENCH_NUMBERS];
    double x; /* a number that is no integer */
    bench_fill_fn fill;

    bench_hob_fn hob;         /* Hob's way; or */
    struct bench_way program; /* the same with what a way can say */
    const char *device;       /* for hob; NULL: "flex" */
    bench_loop_fn loop;       /* "C loop": plain C, on one thread */
    bench_blas_fn blas;       /* "OpenBLAS" with each of its kernel sets */
    const char *torch_setup;  /* statements of Python; a, b, c.. are inputs */
    const char *torch;        /* an expression, the work */
    const char *torch_check;  /* one for the result, if that is another */
    const char *numexpr;      /* an expression of numexpr */
    struct bench_way ways[BENCH_WAYS]; /* more; up to the first without who */

    int64_t out_count; /* elements of the result */
    bench_at_fn at;    /* the reference: one of these */
    bench_all_fn all;
    double tolerance; /* of the value and the mean magnitude; 0: 1e-5 */
    int is_exact;     /* the result must be the reference's */

    double flops;        /* multiplications and additions */
    double bytes;        /* read and written at least */
    double roots;        /* square roots of f32, each with a division: an
                          * optimizer's, which come after the multiplications */
    double floor_ns;     /* of a call, comes on top */
    int is_read;         /* hardly anything is written */
    int is_bf16;         /* flops may come at twice the rate of f32 */
    int is_serial;       /* threads cannot help: one thread only */
    int is_busy;         /* one thread of another process computes meanwhile,
                          * except beside a base */
    int is_threads_only; /* on all threads only */
    int is_smoke_only;   /* tiny, for the smoke test */
    int is_once;     /* a run is long or changes what follows: samples of 1 */
    int is_training; /* PyTorch must be free to record */
    double run_seconds; /* of the slowest way, if that is more than 0.1 */
    struct bench_target target;
    const char *note; /* one line under the table */
};

/* What a way in C works with. */
struct bench_job {
    const struct bench_case *c;
    const struct bench_way *way;
    int threads;
    const char *kernel_set; /* of OpenBLAS; NULL: its own choice */
    struct bench_array in[BENCH_INPUTS];
    int in_count;
    void *state; /* the way's own */
    hob_error error;
};

/* A family: the cases of one file. */
struct bench_family {
    const struct bench_case *cases;
    size_t count;
};
extern const struct bench_family *const bench_families[]; /* NULL ends it */

/* Cases have numbers, in the order of the families; NULL beyond the last. */
const struct bench_case *bench_case_at(size_t number);
size_t bench_case_number(const struct bench_case *c);

/* Nanoseconds of a clock that only goes forward. */
uint64_t bench_now_ns(void);

/* The number of inputs of C; the rank and elements of an input. */
int bench_input_count(const struct bench_case *c);
int32_t bench_rank(const struct bench_input *input);
int64_t bench_count(const struct bench_input *input);
/* Bytes of an element. */
size_t bench_size(hob_dtype dtype);

/* How many copies of the inputs take turns, so that caches do not hold them:
 * 1 where they may or cannot. */
int bench_sets(const struct bench_case *c);

/* Make the inputs of C; 0 without memory. */
int bench_make_inputs(const struct bench_case *c, struct bench_array *out);
void bench_free_inputs(struct bench_array *arrays, int count);

/* Element I of ARRAY as a double; as f32 data. */
double bench_get(const struct bench_array *array, int64_t i);
static inline const float *bench_f32(const struct bench_array *array)
{
    return array->data;
}

/* Open a runtime with job->threads, and device SPEC in it, which may be one of
 * null_plugin.h. */
hob_status bench_open(struct bench_job *job, const char *spec,
                      hob_runtime **out_runtime, hob_device **out_device);

/* Call an op by its name: for extensions, and what hob/ops.h may not have. */
hob_tensor *bench_call(hob_scope *scope, const char *name,
                       const hob_value *args, uint32_t count);

#endif
