/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fuse.c - fused programs on a runtime that notes what it is asked for and
 * whose compiler waits at a gate: what is compiled when, by how many threads,
 * and what is left behind. A build with ThreadSanitizer finds more here.
 */
#include "fake_host.h"
#include "hob_check.h"
#include "tmp_dir.h"

#include <cube/background.h>
#include <cube/cube.h>
#include <cube/fuse/fuse.h>

#undef fail /* a macro of check.h */

#include <hob/ops.h>

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NONE = HOB_FUSED_NONE };

static struct {
    struct cube_device device;
    struct fake_host host;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int is_open;  /* the gate */
    int inside;   /* compilers at it or behind it */
    int most;     /* that were at a time */
    int compiled; /* so far */
    int is_bad;   /* nothing compiles */
    int logged;
    char text[1 << 20]; /* the last one */
    atomic_int kernels, launches;
    atomic_uint groups;
} noting;

static const struct hob_fused_compute *const fused = &cube_fused_compute;

/* ---- the runtime ---- */

static const char *note_identity(struct cube_device *device)
{
    (void)device;
    return "noting 1";
}

static hob_status note_compile(struct cube_device *device,
                               const struct cube_source *source,
                               void **out_binary, uint64_t *out_bytes,
                               char **out_message)
{
    int is_bad;

    (void)out_message;
    pthread_mutex_lock(&noting.lock);
    noting.inside++;
    if (noting.inside > noting.most)
        noting.most = noting.inside;
    while (!noting.is_open)
        pthread_cond_wait(&noting.opened, &noting.lock);
    noting.inside--;
    noting.compiled++;
    is_bad = noting.is_bad;
    snprintf(noting.text, sizeof(noting.text), "%s", source->text);
    pthread_mutex_unlock(&noting.lock);
    if (is_bad)
        return HOB_ERR_INTERNAL;
    *out_bytes = 1;
    *out_binary = device->host->mem_alloc(device->host, 1);
    memset(*out_binary, 7, 1);
    return HOB_OK;
}

static hob_status note_open(struct cube_device *device,
                            const struct cube_source *source,
                            const void *binary, uint64_t bytes,
                            void **out_kernel, char **out_message)
{
    (void)device;
    (void)source;
    (void)binary;
    (void)bytes;
    (void)out_message;
    atomic_fetch_add(&noting.kernels, 1);
    *out_kernel = &noting;
    return HOB_OK;
}

static void note_close(struct cube_device *device, void *kernel)
{
    (void)device;
    (void)kernel;
    atomic_fetch_sub(&noting.kernels, 1);
}

static hob_status note_launch(struct cube_device *device, void *kernel,
                              const struct cube_launch *launch,
                              char **out_message)
{
    (void)device;
    (void)kernel;
    (void)out_message;
    atomic_fetch_add(&noting.launches, 1);
    atomic_store(&noting.groups, launch->groups);
    return HOB_OK;
}

static const struct cube_runtime runtime = {
    .selector = "test",
    .language = CUBE_CUDA,
    .identity = note_identity,
    .compile = note_compile,
    .kernel_open = note_open,
    .kernel_close = note_close,
    .launch = note_launch,
};

static void note_log(const struct hob_host *host, int32_t severity,
                     const char *format, ...)
{
    (void)host;
    (void)format;
    pthread_mutex_lock(&noting.lock);
    noting.logged += severity == 2; /* that nothing is kept on disk is none */
    pthread_mutex_unlock(&noting.lock);
}

static void open_gate(void)
{
    pthread_mutex_lock(&noting.lock);
    noting.is_open = 1;
    pthread_cond_broadcast(&noting.opened);
    pthread_mutex_unlock(&noting.lock);
}

/* Wait until COUNT compilers are at the gate. */
static void wait_inside(int count)
{
    int inside;

    do {
        usleep(1000);
        pthread_mutex_lock(&noting.lock);
        inside = noting.inside;
        pthread_mutex_unlock(&noting.lock);
    } while (inside < count);
}

static void open_device(void)
{
    struct cube_limits *limits = &noting.device.limits;

    noting.device.runtime = &runtime;
    noting.device.host = &noting.host.table;
    noting.device.name = "test:0";
    limits->subgroup_size = 32;
    limits->group_size = 1024;
    limits->groups = 1 << 30;
    limits->shared_bytes = 32768;
    limits->param_bytes = 4096;
    limits->processors = 132;
    limits->has_i64 = 1;
    noting.device.kernels = cube_kernels_new(&noting.device);
    ck_assert_ptr_nonnull(noting.device.kernels);
}

static void setup(void)
{
    memset(&noting, 0, sizeof(noting));
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* no cache: all is compiled */
    pthread_mutex_init(&noting.lock, NULL);
    pthread_cond_init(&noting.opened, NULL);
    fake_host_init(&noting.host, 1);
    noting.host.table.log_write = note_log;
    open_device();
}

static void teardown(void)
{
    open_gate();
    cube_kernels_free(noting.device.kernels);
    ck_assert_int_eq(noting.kernels, 0);
    ck_assert_uint_eq(noting.host.live_blocks, 0);
    ck_assert_int_le(noting.most, 2);
    pthread_cond_destroy(&noting.opened);
    pthread_mutex_destroy(&noting.lock);
}

/* ---- programs ---- */

/* x + y, then COUNT - 1 times x more: programs of their own structure. */
static void *compile_sum(uint32_t count, hob_status expected)
{
    struct hob_fused_input inputs[2] = {{HOB_DTYPE_F32, HOB_FUSED_FULL, 0},
                                        {HOB_DTYPE_F32, HOB_FUSED_FULL, 0}};
    struct hob_fused_step steps[HOB_FUSED_MAX_STEPS] = {{0}};
    uint8_t output = (uint8_t)(1 + count);
    const struct hob_fused_program program = {.struct_size = sizeof(program),
                                              .step_size = sizeof(steps[0]),
                                              .rank = 2,
                                              .input_count = 2,
                                              .output_count = 1,
                                              .step_count = (uint8_t)count,
                                              .inputs = inputs,
                                              .steps = steps,
                                              .outputs = &output};
    char *message = NULL;
    void *kernel = NULL;

    for (uint32_t i = 0; i < count; i++)
        steps[i] = (struct hob_fused_step){.op = HOB_OP_ADD,
                                           .dtype = HOB_DTYPE_F32,
                                           .args = {0, (uint8_t)(i + 1), NONE}};
    ck_assert_int_eq(
        fused->compile(&noting.device, &program, &kernel, &message), expected);
    ck_assert_ptr_null(message);
    return kernel;
}

static _Alignas(64) char memory[1 << 12];

/* [ROWS, COLUMNS] of dense x and out; y has STRIDES, and x begins SHIFT bytes
 * off a boundary. */
static hob_status run_at(void *kernel, int64_t rows, int64_t columns,
                         int64_t y_row, int64_t y_column, int shift)
{
    const struct hob_fused_operand inputs[2] = {{memory + shift, {columns, 1}},
                                                {memory, {y_row, y_column}}};
    const struct hob_fused_operand output = {memory, {columns, 1}};
    const struct hob_fused_run run = {.struct_size = sizeof(run),
                                      .shape = {rows, columns},
                                      .inputs = inputs,
                                      .outputs = &output};
    char *message = NULL;
    const hob_status st = fused->run(&noting.device, kernel, &run, &message);

    ck_assert_ptr_null(message);
    return st;
}

static hob_status run(void *kernel)
{
    return run_at(kernel, 4, 8, 8, 1, 0);
}

static struct hob_fused_stats stats(void)
{
    struct hob_fused_stats out = {.struct_size = sizeof(out)};

    fused->stats(&noting.device, &out);
    return out;
}

/* ---- when what is compiled ---- */

START_TEST(test_fuse_is_busy_first)
{
    void *kernel = compile_sum(1, HOB_OK);

    ck_assert_int_eq(run(kernel), HOB_ERR_BUSY);
    ck_assert_int_eq(run(kernel), HOB_ERR_BUSY);
    ck_assert_uint_eq(stats().not_ready, 2);
    ck_assert_uint_eq(stats().compiled, 0);
    open_gate();
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run(kernel), HOB_OK);
    fused->set_waits(&noting.device, 0);
    ck_assert_int_eq(run(kernel), HOB_OK);
    ck_assert_int_eq(noting.launches, 2);
    ck_assert_int_eq(noting.compiled, 1);
    ck_assert_uint_eq(stats().compiled, 1);
    ck_assert_uint_eq(stats().not_ready, 2);
    ck_assert_uint_gt(stats().compile_ns, 0);
    fused->release(&noting.device, kernel);
    /* The structure comes again. */
    kernel = compile_sum(1, HOB_OK);
    ck_assert_int_eq(run(kernel), HOB_OK);
    fused->release(&noting.device, kernel);
    ck_assert_int_eq(noting.compiled, 1);
    ck_assert_int_eq(noting.kernels, 1);
}
END_TEST

/* What a compiler's library does at exit(): no thread may be inside then. */
static void free_library(void)
{
    pthread_mutex_lock(&noting.lock);
    if (noting.inside)
        _exit(9);
    pthread_mutex_unlock(&noting.lock);
}

/* Before what a sanitizer has to say of memory that a thread holds that ended
 * with the process. */
static void leave(void)
{
    _exit(0);
}

static void *open_gate_soon(void *unused)
{
    (void)unused;
    usleep(50 * 1000);
    open_gate();
    return NULL;
}

/* Whether the library registered before the thread went in, or after. */
START_TEST(test_fuse_ends_before_the_process)
{
    pthread_t thread;
    int status = 0;
    pid_t child;
    void *kernel;

    fflush(NULL);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        if (atexit(leave) || (!_i && atexit(free_library)))
            _exit(2);
        kernel = compile_sum(1, HOB_OK);
        if (run(kernel) != HOB_ERR_BUSY)
            _exit(3);
        wait_inside(1);
        if (_i && atexit(free_library))
            _exit(5);
        if (pthread_create(&thread, NULL, open_gate_soon, NULL))
            _exit(4);
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* A forked child may use a compiler itself, and end, while threads that it does
 * not have are inside. */
START_TEST(test_fuse_children_wait_for_no_lost_threads)
{
    void *kernel = compile_sum(1, HOB_OK);
    int status = 0;
    pid_t child;

    ck_assert_int_eq(run(kernel), HOB_ERR_BUSY);
    wait_inside(1);
    fflush(NULL);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        signal(SIGALRM, SIG_DFL); /* that of check kills its parent too */
        alarm(5);
        if (atexit(leave) || !cube_background_begin())
            _exit(2);
        cube_background_end();
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    open_gate();
    fused->release(&noting.device, kernel);
}
END_TEST

/* One structure is compiled once, for all sizes that are whole vectors, and
 * once for the others; another class of layouts is another kernel. */
START_TEST(test_fuse_compiles_classes)
{
    void *kernels[2] = {compile_sum(2, HOB_OK), compile_sum(2, HOB_OK)};

    open_gate();
    fused->set_waits(&noting.device, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run(kernels[i]), HOB_OK);
        ck_assert_int_eq(run_at(kernels[i], 77, 13, 13, 1, 0), HOB_OK);
        ck_assert_int_eq(run_at(kernels[i], 1, 1000000, 1000000, 1, 0), HOB_OK);
    }
    ck_assert_int_eq(noting.compiled, 2);
    ck_assert_ptr_nonnull(strstr(noting.text, "LOAD_VECTOR(in1"));
    ck_assert_ptr_nonnull(strstr(noting.text, "FN void one("));
    ck_assert_int_eq(run_at(kernels[0], 4, 8, 0, 1, 0), HOB_OK); /* a row */
    ck_assert_int_eq(run_at(kernels[1], 64, 128, 0, 1, 0), HOB_OK);
    ck_assert_int_eq(noting.compiled, 3);
    ck_assert_ptr_null(strstr(noting.text, "FN void one("));
    ck_assert_int_eq(run_at(kernels[0], 4, 8, 1, 0, 0), HOB_OK); /* a column */
    ck_assert_int_eq(noting.compiled, 4);
    ck_assert_int_eq(run_at(kernels[0], 4, 8, 0, 0, 0), HOB_OK); /* a number */
    ck_assert_int_eq(noting.compiled, 5);
    ck_assert_int_eq(run_at(kernels[0], 4, 8, 8, 1, 4), HOB_OK);
    ck_assert_int_eq(noting.compiled, 6);
    ck_assert_ptr_nonnull(strstr(noting.text, "= LOAD(in0, i + INDEX(k)"));
    ck_assert_ptr_nonnull(strstr(noting.text, "LOAD_VECTOR(in1"));
    ck_assert_int_eq(noting.launches, 11);
    fused->release(&noting.device, kernels[0]);
    ck_assert_int_eq(run(kernels[1]), HOB_OK);
    fused->release(&noting.device, kernels[1]);
}
END_TEST

/* 32 bits count up to nearly 2^31, also where it is a broadcast that many. */
START_TEST(test_fuse_widens_indices)
{
    void *kernel = compile_sum(1, HOB_OK);

    open_gate();
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run_at(kernel, 1 << 10, 1 << 20, 1 << 20, 1, 0), HOB_OK);
    ck_assert_ptr_nonnull(strstr(noting.text, "#define CUBE_WIDE 0"));
    ck_assert_uint_eq(noting.groups, 1 << 20);
    ck_assert_int_eq(run_at(kernel, 3 << 10, 1 << 20, 0, 0, 0), HOB_OK);
    ck_assert_ptr_nonnull(strstr(noting.text, "#define CUBE_WIDE 1"));
    fused->release(&noting.device, kernel);
}
END_TEST

/* ---- releases ---- */

START_TEST(test_fuse_drops_what_is_queued)
{
    void *kernels[5];

    for (int i = 0; i < 5; i++) {
        kernels[i] = compile_sum(1 + (uint32_t)i, HOB_OK);
        ck_assert_int_eq(run(kernels[i]), HOB_ERR_BUSY);
    }
    wait_inside(2);
    for (int i = 0; i < 5; i++)
        fused->release(&noting.device, kernels[i]);
    open_gate();
    kernels[0] = compile_sum(9, HOB_OK);
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run(kernels[0]), HOB_OK);
    fused->release(&noting.device, kernels[0]);
    /* One that nobody waits for may still be at it. */
    ck_assert_int_ge(noting.compiled, 2);
    ck_assert_int_le(noting.compiled, 3);
    ck_assert_int_eq(noting.most, 2);
}
END_TEST

/* What is compiled when its last user goes is there for the next one. */
START_TEST(test_fuse_release_while_compiling)
{
    void *kernel = compile_sum(3, HOB_OK), *again;

    ck_assert_int_eq(run(kernel), HOB_ERR_BUSY);
    wait_inside(1);
    fused->release(&noting.device, kernel);
    again = compile_sum(3, HOB_OK);
    ck_assert_int_eq(run(again), HOB_ERR_BUSY);
    open_gate();
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run(again), HOB_OK);
    fused->release(&noting.device, again);
    ck_assert_int_eq(noting.compiled, 1);
}
END_TEST

static void *open_later(void *unused)
{
    (void)unused;
    usleep(20000);
    open_gate();
    return NULL;
}

/* Compilers are joined, what waits is not begun. */
START_TEST(test_fuse_closes_while_compiling)
{
    pthread_t thread;

    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(run(compile_sum(1 + i, HOB_OK)), HOB_ERR_BUSY);
    wait_inside(2);
    ck_assert(!pthread_create(&thread, NULL, open_later, NULL));
    cube_kernels_free(noting.device.kernels);
    pthread_join(thread, NULL);
    ck_assert_int_eq(noting.compiled, 2);
    ck_assert_int_eq(noting.kernels, 0);
    open_device();
}
END_TEST

/* ---- what fails ---- */

START_TEST(test_fuse_bad_kernels_are_not_tried_again)
{
    void *kernel = compile_sum(1, HOB_OK);

    open_gate();
    noting.is_bad = 1;
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run(kernel), HOB_ERR_UNSUPPORTED);
    ck_assert_int_eq(run(kernel), HOB_ERR_UNSUPPORTED);
    ck_assert_int_eq(noting.compiled, 1);
    ck_assert_int_eq(noting.logged, 1);
    ck_assert_uint_eq(stats().compiled, 0);
    fused->release(&noting.device, kernel);
}
END_TEST

/* A program of one step. */
static hob_status compile_one(const struct hob_fused_step *step,
                              uint32_t row_rank, void **out_kernel,
                              char **out_message)
{
    const uint8_t output = 2;
    const struct hob_fused_input inputs[2] = {
        {HOB_DTYPE_I32, HOB_FUSED_FULL, 0}, {HOB_DTYPE_I32, HOB_FUSED_FULL, 0}};
    const struct hob_fused_program program = {.struct_size = sizeof(program),
                                              .step_size = sizeof(*step),
                                              .rank = 2,
                                              .row_rank = (uint8_t)row_rank,
                                              .input_count = 2,
                                              .output_count = 1,
                                              .step_count = 1,
                                              .scalar_count = 1,
                                              .inputs = inputs,
                                              .steps = step,
                                              .outputs = &output};

    *out_message = NULL;
    return fused->compile(&noting.device, &program, out_kernel, out_message);
}

static const struct {
    struct hob_fused_step step;
    uint32_t row_rank;
    hob_status status;
    const char *message; /* NULL: there is none */
} bad_programs[] = {
    {{.op = HOB_OP_ADD, .dtype = HOB_DTYPE_I32, .args = {0, 2, NONE}},
     0,
     HOB_ERR_ARGUMENT,
     "a step needs a later one"},
    {{.op = HOB_OP_ADD, .dtype = HOB_DTYPE_I32, .args = {0, 250, NONE}},
     0,
     HOB_ERR_ARGUMENT,
     "a step needs a later one"},
    {{.op = HOB_OP_ADD,
      .dtype = HOB_DTYPE_I32,
      .kind = HOB_FUSED_ROW,
      .args = {0, 1, NONE}},
     1,
     HOB_ERR_ARGUMENT,
     "a step is of the other kind"},
    {{.op = HOB_OP_SUM_DIM,
      .dtype = HOB_DTYPE_I32,
      .kind = HOB_FUSED_ROW,
      .is_reduction = 1,
      .args = {0, NONE, NONE}},
     0,
     HOB_ERR_ARGUMENT,
     "a reduction needs a row"},
    {{.op = HOB_OP_ADD_SCALAR,
      .dtype = HOB_DTYPE_I32,
      .args = {0, NONE, NONE},
      .scalar = 1,
      .scalar_count = 1},
     0,
     HOB_ERR_ARGUMENT,
     "a step has scalars that are not there"},
    /* Not as a step: integers by zero, an op that is none, too few scalars. */
    {{.op = HOB_OP_DIV, .dtype = HOB_DTYPE_I32, .args = {0, 1, NONE}},
     0,
     HOB_ERR_UNSUPPORTED,
     NULL},
    {{.op = HOB_OP_MATMUL, .dtype = HOB_DTYPE_I32, .args = {0, 1, NONE}},
     0,
     HOB_ERR_UNSUPPORTED,
     NULL},
    {{.op = HOB_OP_ADD_SCALAR, .dtype = HOB_DTYPE_I32, .args = {0, NONE, NONE}},
     0,
     HOB_ERR_UNSUPPORTED,
     NULL},
};

START_TEST(test_fuse_refuses)
{
    char *message;
    void *kernel = &noting;

    ck_assert_int_eq(compile_one(&bad_programs[_i].step,
                                 bad_programs[_i].row_rank, &kernel, &message),
                     bad_programs[_i].status);
    ck_assert_ptr_null(kernel);
    if (bad_programs[_i].message) {
        ck_assert_ptr_nonnull(message);
        ck_assert_ptr_nonnull(strstr(message, bad_programs[_i].message));
    } else
        ck_assert_ptr_null(message);
    noting.host.table.mem_free(&noting.host.table, message);
}
END_TEST

/* x / 0 of integers has no result, which the op says. */
START_TEST(test_fuse_leaves_zero_to_the_op)
{
    const struct hob_fused_step step = {.op = HOB_OP_DIV_SCALAR,
                                        .dtype = HOB_DTYPE_I32,
                                        .args = {0, NONE, NONE},
                                        .scalar_count = 1};
    const struct hob_fused_operand inputs[2] = {{memory, {2, 1}},
                                                {memory, {2, 1}}};
    const struct hob_fused_operand output = {memory, {2, 1}};
    hob_value number = hob_i64(0);
    const struct hob_fused_run one = {.struct_size = sizeof(one),
                                      .shape = {2, 2},
                                      .inputs = inputs,
                                      .outputs = &output,
                                      .scalars = &number,
                                      .name = "div_scalar"};
    char *message = NULL;
    void *kernel;

    open_gate();
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(compile_one(&step, 0, &kernel, &message), HOB_OK);
    ck_assert_int_eq(fused->run(&noting.device, kernel, &one, &message),
                     HOB_ERR_UNSUPPORTED);
    ck_assert_ptr_null(message);
    number = hob_i64(3);
    ck_assert_int_eq(fused->run(&noting.device, kernel, &one, &message),
                     HOB_OK);
    fused->release(&noting.device, kernel);
}
END_TEST

static const struct {
    struct hob_fused_step step;
    uint8_t dtypes[3];
    int supported;
} supports[] = {
    {{.op = HOB_OP_ADD, .dtype = HOB_DTYPE_BF16, .args = {0, 0, NONE}},
     {HOB_DTYPE_BF16, HOB_DTYPE_BF16},
     1},
    {{.op = HOB_OP_ADD, .dtype = HOB_DTYPE_F32, .args = {0, 0, NONE}},
     {HOB_DTYPE_F32, HOB_DTYPE_BF16},
     0},
    {{.op = HOB_OP_ADD, .dtype = HOB_DTYPE_F32, .args = {0, NONE, NONE}},
     {HOB_DTYPE_F32},
     0},
    {{.op = HOB_OP_EXP, .dtype = HOB_DTYPE_I32, .args = {0, NONE, NONE}},
     {HOB_DTYPE_I32},
     0},
    /* The device has no f64. */
    {{.op = HOB_OP_NEG, .dtype = HOB_DTYPE_F64, .args = {0, NONE, NONE}},
     {HOB_DTYPE_F64},
     0},
    {{.op = HOB_OP_CAST, .dtype = HOB_DTYPE_F64, .args = {0, NONE, NONE}},
     {HOB_DTYPE_F32},
     0},
    {{.op = HOB_OP_NEG, .dtype = HOB_DTYPE_I64, .args = {0, NONE, NONE}},
     {HOB_DTYPE_I64},
     1},
    {{.op = HOB_OP_LESS, .dtype = HOB_DTYPE_BOOL, .args = {0, 0, NONE}},
     {HOB_DTYPE_U8, HOB_DTYPE_U8},
     1},
    {{.op = HOB_OP_LESS, .dtype = HOB_DTYPE_U8, .args = {0, 0, NONE}},
     {HOB_DTYPE_U8, HOB_DTYPE_U8},
     0},
    {{.op = HOB_OP_WHERE, .dtype = HOB_DTYPE_BOOL, .args = {0, 0, 0}},
     {HOB_DTYPE_BOOL, HOB_DTYPE_BOOL, HOB_DTYPE_BOOL},
     1},
    {{.op = HOB_OP_WHERE, .dtype = HOB_DTYPE_I8, .args = {0, 0, 0}},
     {HOB_DTYPE_I8, HOB_DTYPE_I8, HOB_DTYPE_I8},
     0},
    {{.op = HOB_OP_REMAINDER, .dtype = HOB_DTYPE_I32, .args = {0, 0, NONE}},
     {HOB_DTYPE_I32, HOB_DTYPE_I32},
     0},
    {{.op = HOB_OP_REMAINDER_SCALAR,
      .dtype = HOB_DTYPE_I32,
      .args = {0, NONE, NONE}},
     {HOB_DTYPE_I32},
     1},
    {{.op = HOB_OP_ACTIVATION_BACKWARD,
      .dtype = HOB_DTYPE_F32,
      .args = {0, 0, NONE},
      .variant = 9},
     {HOB_DTYPE_F32, HOB_DTYPE_F32},
     1},
    {{.op = HOB_OP_ACTIVATION_BACKWARD,
      .dtype = HOB_DTYPE_F32,
      .args = {0, 0, NONE},
      .variant = 10},
     {HOB_DTYPE_F32, HOB_DTYPE_F32},
     0},
    {{.op = HOB_OP_SUM_DIM,
      .dtype = HOB_DTYPE_F16,
      .is_reduction = 1,
      .args = {0, NONE, NONE}},
     {HOB_DTYPE_F16},
     1},
    {{.op = HOB_OP_ANY_DIM,
      .dtype = HOB_DTYPE_BOOL,
      .is_reduction = 1,
      .args = {0, NONE, NONE}},
     {HOB_DTYPE_F16},
     1},
    {{.op = HOB_OP_ARGMAX,
      .dtype = HOB_DTYPE_I32,
      .is_reduction = 1,
      .args = {0, NONE, NONE}},
     {HOB_DTYPE_F16},
     0},
    {{.op = HOB_OP_SUM_DIM, .dtype = HOB_DTYPE_F32, .args = {0, NONE, NONE}},
     {HOB_DTYPE_F32},
     0},
    {{.op = HOB_OP_SOFTMAX, .dtype = HOB_DTYPE_F32, .args = {0, NONE, NONE}},
     {HOB_DTYPE_F32},
     0},
    {{.op = HOB_OP_FULL, .dtype = HOB_DTYPE_F32, .args = {NONE, NONE, NONE}},
     {0},
     0},
};

START_TEST(test_fuse_supports)
{
    ck_assert_int_eq(fused->supports(&noting.device, &supports[_i].step,
                                     supports[_i].dtypes) != 0,
                     supports[_i].supported);
}
END_TEST

/* ---- rows ---- */

/* The sum of each row, of i32. */
static void *compile_rows(void)
{
    const struct hob_fused_step step = {.op = HOB_OP_SUM_DIM,
                                        .dtype = HOB_DTYPE_I32,
                                        .kind = HOB_FUSED_ROW,
                                        .is_reduction = 1,
                                        .args = {0, NONE, NONE}};
    char *message = NULL;
    void *kernel = NULL;

    ck_assert_int_eq(compile_one(&step, 1, &kernel, &message), HOB_OK);
    return kernel;
}

static hob_status run_rows(void *kernel, int64_t rows, int64_t columns)
{
    const struct hob_fused_operand inputs[2] = {{memory, {columns, 1}},
                                                {memory, {columns, 1}}};
    const struct hob_fused_operand output = {memory, {1, 0}};
    const struct hob_fused_run one = {.struct_size = sizeof(one),
                                      .shape = {rows, columns},
                                      .inputs = inputs,
                                      .outputs = &output,
                                      .name = "sum_dim"};
    char *message = NULL;
    const hob_status st = fused->run(&noting.device, kernel, &one, &message);

    ck_assert_ptr_null(message);
    return st;
}

/* Empty rows have a sum; rows that are not there have none, and few long ones
 * are split by the op. */
START_TEST(test_fuse_rows)
{
    void *kernel = compile_rows();

    open_gate();
    fused->set_waits(&noting.device, 1);
    ck_assert_int_eq(run_rows(kernel, 7, 0), HOB_OK);
    ck_assert_int_eq(noting.launches, 1);
    ck_assert_int_eq(run_rows(kernel, 0, 7), HOB_OK);
    ck_assert_int_eq(noting.launches, 1);
    ck_assert_int_eq(run_rows(kernel, 2, 1 << 20), HOB_ERR_UNSUPPORTED);
    ck_assert_int_eq(run_rows(kernel, 2000, 1 << 16), HOB_OK);
    ck_assert_int_eq(noting.launches, 2);
    ck_assert_uint_eq(noting.groups, 2000);
    fused->release(&noting.device, kernel);
}
END_TEST

/* ---- the disk ---- */

START_TEST(test_fuse_finds_kernels_on_disk)
{
    struct tmp_dir folder, inner;
    void *kernel;

    tmp_dir_make(&folder);
    setenv("XDG_CACHE_HOME", folder.path, 1);
    open_gate();
    for (int i = 0; i < 2; i++) {
        kernel = compile_sum(2, HOB_OK);
        fused->set_waits(&noting.device, 1);
        ck_assert_int_eq(run(kernel), HOB_OK);
        ck_assert_uint_eq(stats().compiled, i == 0);
        ck_assert_uint_eq(stats().disk_hits, i == 1);
        fused->release(&noting.device, kernel);
        /* As another process does. */
        cube_kernels_free(noting.device.kernels);
        open_device();
    }
    ck_assert_int_eq(noting.compiled, 1);
    snprintf(inner.path, sizeof(inner.path), "%.200s/hob/test", folder.path);
    tmp_dir_remove(&inner);
    snprintf(inner.path, sizeof(inner.path), "%.200s/hob", folder.path);
    tmp_dir_remove(&inner);
    tmp_dir_remove(&folder);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 60 };

static void *use(void *context)
{
    const uintptr_t number = (uintptr_t)context;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *kernel = compile_sum(1 + (i + (uint32_t)number) % 5, HOB_OK);
        const hob_status st = run_at(kernel, 4, 8, i % 3 ? 8 : 0, 1, 0);

        if (st && st != HOB_ERR_BUSY)
            return "a run failed";
        if (i % 7 == 0)
            fused->set_waits(&noting.device, i % 2);
        (void)stats();
        fused->release(&noting.device, kernel);
    }
    return NULL;
}

START_TEST(test_fuse_several_threads)
{
    pthread_t threads[THREADS];
    void *bad;

    open_gate();
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert(!pthread_create(&threads[i], NULL, use, (void *)i));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &bad);
        ck_assert_msg(!bad, "%s", (const char *)bad);
    }
}
END_TEST

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof((list)[0])))

int main(void)
{
    Suite *suite = suite_create("fuse");
    TCase *tc = tcase_create("kernels");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_fuse_is_busy_first);
    tcase_add_loop_test(tc, test_fuse_ends_before_the_process, 0, 2);
    tcase_add_test(tc, test_fuse_children_wait_for_no_lost_threads);
    tcase_add_test(tc, test_fuse_compiles_classes);
    tcase_add_test(tc, test_fuse_widens_indices);
    tcase_add_test(tc, test_fuse_drops_what_is_queued);
    tcase_add_test(tc, test_fuse_release_while_compiling);
    tcase_add_test(tc, test_fuse_closes_while_compiling);
    tcase_add_test(tc, test_fuse_bad_kernels_are_not_tried_again);
    tcase_add_loop_test(tc, test_fuse_refuses, 0, COUNT_OF(bad_programs));
    tcase_add_test(tc, test_fuse_leaves_zero_to_the_op);
    tcase_add_loop_test(tc, test_fuse_supports, 0, COUNT_OF(supports));
    tcase_add_test(tc, test_fuse_rows);
    tcase_add_test(tc, test_fuse_finds_kernels_on_disk);
    tcase_add_test(tc, test_fuse_several_threads);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
