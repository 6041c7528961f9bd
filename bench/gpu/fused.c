/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.c - fused programs of the GPU suite on one device, called through the
 * interface "fused.compute": fused DEVICE [CASE...].
 *
 * Each program is first run at a small size and compared with the ops one by
 * one on the same device: element by element where there are no sums. Then the
 * time until its kernel is there, which is that of the compiler or, in a second
 * run of this program, of the disk; then runs as in gpu.c. peer.py has the same
 * in PyTorch, also compiled.
 */
#include "timing.h"

#include <hob/ext/fusion.h>
#include <hob/hob.h>
#include <hob/ops.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, STEPS = 12, INPUTS = 3, NONE = HOB_FUSED_NONE };

/* How an input lies beside x [rows, columns]. */
enum kind { NO_INPUT, FULL, OF_COLUMNS, OF_ROWS };

/* A step: what it reads, and its scalar where the op has one. */
struct line {
    uint16_t op;
    uint8_t a, b;
    double scalar;
};

struct fused_bench {
    const char *id;
    hob_dtype dtype;
    int64_t rows, columns;
    uint8_t kinds[INPUTS]; /* enum kind */
    const struct line *lines;
    int has_rows; /* reductions along columns */
};

/* ---- programs ---- */

#define S(op, a, b, scalar)                                                    \
    {                                                                          \
        HOB_OP_##op, a, b, scalar                                              \
    }
#define END                                                                    \
    {                                                                          \
        0, 0, 0, 0                                                             \
    }

static const struct line negate[] = {S(NEG, 0, NONE, 0), END};
static const struct line chain[] = {S(MUL_SCALAR, 0, NONE, 1.5),
                                    S(ADD_SCALAR, 1, NONE, 0.25),
                                    S(MUL, 2, 0, 0),
                                    S(SUB_SCALAR, 3, NONE, 0.5),
                                    S(RELU, 4, NONE, 0),
                                    S(MUL_SCALAR, 5, NONE, 0.75),
                                    S(ADD, 6, 0, 0),
                                    S(NEG, 7, NONE, 0),
                                    END};
/* With another input in two places. */
static const struct line chain_of_two[] = {S(MUL_SCALAR, 0, NONE, 1.5),
                                           S(ADD_SCALAR, 2, NONE, 0.25),
                                           S(MUL, 3, 1, 0),
                                           S(SUB_SCALAR, 4, NONE, 0.5),
                                           S(RELU, 5, NONE, 0),
                                           S(MUL_SCALAR, 6, NONE, 0.75),
                                           S(ADD, 7, 1, 0),
                                           S(NEG, 8, NONE, 0),
                                           END};
static const struct line sum_of_chain[] = {
    S(MUL_SCALAR, 0, NONE, 1.5), S(ADD_SCALAR, 1, NONE, 0.25), S(MUL, 2, 0, 0),
    S(RELU, 3, NONE, 0),         S(SUM_DIM, 4, NONE, 0),       END};
static const struct line softmax[] = {
    S(MAX_DIM, 0, NONE, 0), S(SUB, 0, 1, 0), S(EXP, 2, NONE, 0),
    S(SUM_DIM, 3, NONE, 0), S(DIV, 3, 4, 0), END};
static const struct line layer_norm[] = {S(MEAN_DIM, 0, NONE, 0),
                                         S(SUB, 0, 3, 0),
                                         S(SQUARE, 4, NONE, 0),
                                         S(MEAN_DIM, 5, NONE, 0),
                                         S(ADD_SCALAR, 6, NONE, 1e-5),
                                         S(SQRT, 7, NONE, 0),
                                         S(RECIP, 8, NONE, 0),
                                         S(MUL, 4, 9, 0),
                                         S(MUL, 10, 1, 0),
                                         S(ADD, 11, 2, 0),
                                         END};
static const struct line rms_norm[] = {S(SQUARE, 0, NONE, 0),
                                       S(MEAN_DIM, 2, NONE, 0),
                                       S(ADD_SCALAR, 3, NONE, 1e-5),
                                       S(SQRT, 4, NONE, 0),
                                       S(RECIP, 5, NONE, 0),
                                       S(MUL, 0, 6, 0),
                                       S(MUL, 7, 1, 0),
                                       END};
#undef S
#undef END

#define F32 HOB_DTYPE_F32
#define BF16 HOB_DTYPE_BF16

static const struct fused_bench benches[] = {
    {"neg f32 1e9", F32, 1, 1000000000, {FULL}, negate, 0},
    {"G6 chain of 8 ops f32 1e8", F32, 1, 100000000, {FULL}, chain, 0},
    {"G6 chain of 8 ops bf16 1e8", BF16, 1, 100000000, {FULL}, chain, 0},
    {"G6 chain f32 1e8, row of 4096",
     F32,
     24576,
     4096,
     {FULL, OF_COLUMNS},
     chain_of_two,
     0},
    {"G6 chain f32 1e8, column of 24576",
     F32,
     24576,
     4096,
     {FULL, OF_ROWS},
     chain_of_two,
     0},
    {"G6 chain bf16 1e8, row of 4096",
     BF16,
     24576,
     4096,
     {FULL, OF_COLUMNS},
     chain_of_two,
     0},
    {"G7 sum of rows of a chain f32",
     F32,
     61036,
     16384,
     {FULL},
     sum_of_chain,
     1},
    {"G8 softmax f32 16K x 1K", F32, 16384, 1024, {FULL}, softmax, 1},
    {"G8 softmax f32 16K x 4K", F32, 16384, 4096, {FULL}, softmax, 1},
    {"G8 softmax f32 16K x 16K", F32, 16384, 16384, {FULL}, softmax, 1},
    {"G8 softmax f32 16K x 64K", F32, 16384, 65536, {FULL}, softmax, 1},
    {"G8 softmax bf16 16K x 4K", BF16, 16384, 4096, {FULL}, softmax, 1},
    {"G8 layer norm f32 16K x 4K",
     F32,
     16384,
     4096,
     {FULL, OF_COLUMNS, OF_COLUMNS},
     layer_norm,
     1},
    {"G8 layer norm bf16 16K x 4K",
     BF16,
     16384,
     4096,
     {FULL, OF_COLUMNS, OF_COLUMNS},
     layer_norm,
     1},
    {"G8 rms norm f32 16K x 4K",
     F32,
     16384,
     4096,
     {FULL, OF_COLUMNS},
     rms_norm,
     1},
    {"G8 rms norm bf16 16K x 16K",
     BF16,
     16384,
     16384,
     {FULL, OF_COLUMNS},
     rms_norm,
     1},
};
enum { BENCHES = sizeof(benches) / sizeof(benches[0]) };

/* ---- one program at one size ---- */

struct trial {
    const struct fused_bench *bench;
    hob_scope *scope;
    hob_device *device;
    const struct hob_fused_compute *fused;
    void *instance, *kernel;
    int64_t rows;
    int input_count, step_count;
    hob_tensor *in[INPUTS], *out;
    struct hob_fused_operand operands[INPUTS], result;
    hob_value scalars[STEPS];
};

static int is_reduction(uint16_t op)
{
    return op >= HOB_OP_SUM && op <= HOB_OP_ALL_DIM;
}

static int has_scalar(uint16_t op)
{
    return op >= HOB_OP_ADD_SCALAR && op <= HOB_OP_RSUB_SCALAR;
}

/* Whether the result is one element a row. */
static int ends_in_rows(const struct trial *trial)
{
    return is_reduction(trial->bench->lines[trial->step_count - 1].op);
}

static void make_tensors(struct trial *trial)
{
    const struct fused_bench *bench = trial->bench;

    for (int i = 0; i < INPUTS && bench->kinds[i]; i++) {
        const int is_columns = bench->kinds[i] == OF_COLUMNS;
        const int is_rows = bench->kinds[i] == OF_ROWS;
        const int64_t shape[] = {is_columns ? 1 : trial->rows,
                                 is_rows ? 1 : bench->columns};

        trial->in[i] = hob_random_uniform(trial->scope, shape, 2, -1, 1,
                                          trial->device, bench->dtype);
        trial->operands[i].data = hob_tensor_view(trial->in[i])->data;
        trial->operands[i].strides[0] = is_columns ? 0 : shape[1];
        trial->operands[i].strides[1] = is_rows ? 0 : 1;
        trial->input_count++;
    }
    while (bench->lines[trial->step_count].op)
        trial->step_count++;
    trial->out =
        hob_zeros(trial->scope,
                  (const int64_t[]){trial->rows,
                                    ends_in_rows(trial) ? 1 : bench->columns},
                  2, trial->device, bench->dtype);
    trial->result.data = hob_tensor_view(trial->out)->data;
    trial->result.strides[0] = ends_in_rows(trial) ? 1 : bench->columns;
    trial->result.strides[1] = !ends_in_rows(trial);
}

static hob_status compile(struct trial *trial)
{
    const struct fused_bench *bench = trial->bench;
    struct hob_fused_input inputs[INPUTS] = {{0}};
    struct hob_fused_step steps[STEPS] = {{0}};
    const uint8_t output =
        (uint8_t)(trial->input_count + trial->step_count - 1);
    const struct hob_fused_program program = {
        .struct_size = sizeof(program),
        .step_size = sizeof(steps[0]),
        .rank = 2,
        .row_rank = (uint8_t)bench->has_rows,
        .input_count = (uint8_t)trial->input_count,
        .output_count = 1,
        .step_count = (uint8_t)trial->step_count,
        .scalar_count = (uint8_t)trial->step_count,
        .inputs = inputs,
        .steps = steps,
        .outputs = &output};
    char *message = NULL;
    uint8_t kinds[INPUTS + STEPS] = {0};

    for (int i = 0; i < trial->input_count; i++)
        inputs[i].dtype = (uint8_t)bench->dtype;
    for (int i = 0; i < trial->step_count; i++) {
        const struct line *line = &bench->lines[i];
        struct hob_fused_step *step = &steps[i];

        step->op = line->op;
        step->dtype = (uint8_t)bench->dtype;
        step->is_reduction = (uint8_t)is_reduction(line->op);
        step->args[0] = line->a;
        step->args[1] = line->b;
        step->args[2] = NONE;
        step->scalar = (uint8_t)i;
        step->scalar_count = (uint8_t)has_scalar(line->op);
        step->kind = step->is_reduction ||
                     (kinds[line->a] && (line->b == NONE || kinds[line->b]));
        kinds[trial->input_count + i] = step->kind;
        trial->scalars[i] = hob_f64(line->scalar);
    }
    return trial->fused->compile(trial->instance, &program, &trial->kernel,
                                 &message);
}

static hob_status run(struct trial *trial)
{
    const struct hob_fused_run one = {
        .struct_size = sizeof(one),
        .shape = {trial->rows, trial->bench->columns},
        .inputs = trial->operands,
        .outputs = &trial->result,
        .scalars = trial->scalars,
        .name = trial->bench->id};
    char *message = NULL;
    const hob_status status =
        trial->fused->run(trial->instance, trial->kernel, &one, &message);

    if (message)
        printf("%s\n", message);
    return status;
}

/* Open a trial of BENCH with so many ROWS. */
static hob_status trial_open(struct trial *trial, hob_runtime *runtime,
                             hob_device *device,
                             const struct fused_bench *bench, int64_t rows)
{
    const struct hob_host *host;

    memset(trial, 0, sizeof(*trial));
    trial->bench = bench;
    trial->rows = rows;
    trial->device = device;
    trial->scope = hob_scope_open(runtime);
    host = hob_scope_host(trial->scope);
    trial->fused = host->interface(device, HOB_FUSED_COMPUTE,
                                   HOB_FUSED_COMPUTE_VERSION, &trial->instance);
    if (!trial->fused)
        return HOB_ERR_UNSUPPORTED;
    if (trial->fused->set_waits)
        trial->fused->set_waits(trial->instance, 1);
    make_tensors(trial);
    return compile(trial);
}

static void trial_close(struct trial *trial)
{
    if (trial->kernel)
        trial->fused->release(trial->instance, trial->kernel);
    hob_scope_close(trial->scope);
}

/* ---- checking ---- */

static hob_tensor *one_by_one(struct trial *trial)
{
    const struct hob_host *host = hob_scope_host(trial->scope);
    hob_tensor *values[INPUTS + STEPS];

    memcpy(values, trial->in, sizeof(trial->in));
    for (int i = 0; i < trial->step_count; i++) {
        const struct line *line = &trial->bench->lines[i];
        hob_value args[3] = {hob_value_tensor(values[line->a])};
        uint32_t count = 1;

        if (line->b != NONE)
            args[count++] = hob_value_tensor(values[line->b]);
        if (has_scalar(line->op))
            args[count++] = hob_f64(line->scalar);
        if (is_reduction(line->op))
            args[count++] = hob_i64(1);
        values[trial->input_count + i] =
            host->call1(trial->scope, line->op, args, count);
    }
    return values[trial->input_count + trial->step_count - 1];
}

/* The greatest difference by the greatest magnitude; negative: none. */
static double difference(struct trial *trial)
{
    const int64_t count = hob_tensor_count(trial->out);
    double *values[2], most = 0, off = 0;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *tensors[2];

    if (run(trial))
        return -1;
    tensors[0] = trial->out;
    tensors[1] = one_by_one(trial);
    for (int i = 0; i < 2; i++) {
        values[i] = malloc((size_t)count * sizeof(double));
        if (!values[i] || hob_read_f64(tensors[i], values[i], count, &error))
            return -1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (fabs(values[1][i]) > most)
            most = fabs(values[1][i]);
        if (!(fabs(values[0][i] - values[1][i]) <= off))
            off = fabs(values[0][i] - values[1][i]);
    }
    free(values[0]);
    free(values[1]);
    return off / (most > 0 ? most : 1);
}

/* ---- timing ---- */

static double seconds(struct trial *trial, int times)
{
    const double begin = timing_now();

    for (int i = 0; i < times; i++)
        if (run(trial))
            return -1;
    if (hob_device_sync(trial->device, NULL))
        return -1;
    return (timing_now() - begin) / times;
}

static double bytes_of(const struct trial *trial)
{
    double count = (double)hob_tensor_count(trial->out);

    for (int i = 0; i < trial->input_count; i++)
        count += (double)hob_tensor_count(trial->in[i]);
    return count * hob_dtype_size(trial->bench->dtype);
}

/* FIRST is how long the first run took, kernel and all. */
static void measure(struct trial *trial, double first, const char *from)
{
    double samples[ROUNDS], once;
    int times;

    seconds(trial, 1);
    once = seconds(trial, 3);
    times = once > 0 ? (int)(0.02 / once) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++)
        samples[i] = seconds(trial, times);
    once = timing_median(samples, ROUNDS);
    printf("%-34s %10.3f ms %9.2f TB/s, first %6.2f ms (%s)\n",
           trial->bench->id, 1e3 * once, bytes_of(trial) / once * 1e-12,
           1e3 * first, from);
    fflush(stdout);
}

static uint64_t disk_hits(struct trial *trial)
{
    struct hob_fused_stats stats = {.struct_size = sizeof(stats)};

    if (trial->fused->stats)
        trial->fused->stats(trial->instance, &stats);
    return stats.disk_hits;
}

static int run_bench(hob_runtime *runtime, hob_device *device,
                     const struct fused_bench *bench)
{
    const int64_t columns = bench->columns;
    struct fused_bench small = *bench;
    struct trial trial;
    double first, off;
    uint64_t hits;
    int failed = 1;

    if (bench->rows == 1)
        small.columns = columns / 1000 + 3;
    if (trial_open(&trial, runtime, device, &small,
                   bench->rows == 1 ? 1 : bench->rows / 256 + 1)) {
        printf("%-34s not supported\n", bench->id);
        trial_close(&trial);
        return 1;
    }
    hits = disk_hits(&trial);
    first = timing_now();
    if (!run(&trial)) {
        first = timing_now() - first;
        hits = disk_hits(&trial) - hits;
        off = difference(&trial);
        failed = bench->has_rows
                     ? !(off >= 0 && off < (bench->dtype == BF16 ? 1e-2 : 1e-5))
                     : off != 0;
    }
    trial_close(&trial);
    if (failed) {
        printf("%-34s WRONG\n", bench->id);
        return 1;
    }
    if (trial_open(&trial, runtime, device, bench, bench->rows) || run(&trial))
        printf("%-34s is better off one by one\n", bench->id);
    else
        measure(&trial, first, hits ? "disk" : "compiler");
    trial_close(&trial);
    (void)!hob_device_trim(device, NULL);
    return 0;
}

static int is_asked_for(const char *id, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strstr(id, argv[i]))
            return 1;
    return argc < 3;
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    int failed = 0;

    options.policy = HOB_POLICY_REPORT;
    if (argc < 2) {
        fprintf(stderr, "usage: fused DEVICE [PART-OF-A-CASE'S-NAME...]\n");
        return 2;
    }
    if (hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, argv[1], &device, &error)) {
        fprintf(stderr, "fused: %s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    printf("%s\n", hob_device_name(device));
    for (int i = 0; i < BENCHES; i++)
        if (is_asked_for(benches[i].id, argc, argv))
            failed |= run_bench(runtime, device, &benches[i]);
    hob_device_unref(device);
    (void)!hob_runtime_close(runtime, NULL);
    return failed;
}
