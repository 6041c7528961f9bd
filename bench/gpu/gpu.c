/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.c - the cases of the GPU suite on one device: gpu DEVICE [CASE...].
 *
 * Each case is first run at a small size there and on flex, and compared; what
 * differs is not timed. Then calls are made one after the other and waited for
 * together, as many as take a fiftieth of a second; the median of nine such
 * rounds is told. Inputs are random. peer.py prints the same table of PyTorch.
 */
#include "timing.h"

#include <hob/hob.h>
#include <hob/ops.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3 };

/* What a case is about: bytes moved, or multiplications and additions. */
enum unit { BYTES, FLOPS, CALLS };

struct gpu_case {
    const char *id;
    hob_dtype dtype;
    int64_t shapes[INPUTS][4]; /* of inputs; ended by 0 */
    int64_t small;             /* by what the first size is divided to check */
    enum unit unit;
    double work; /* bytes, flops or calls of one run */
    hob_tensor *(*run)(hob_scope *scope, hob_tensor **in);
};

/* ---- what is run ---- */

static hob_tensor *run_add(hob_scope *scope, hob_tensor **in)
{
    return hob_add(scope, in[0], in[1]);
}

static hob_tensor *run_add_row(hob_scope *scope, hob_tensor **in)
{
    return hob_add(scope, in[0], in[1]);
}

static hob_tensor *run_to_f32(hob_scope *scope, hob_tensor **in)
{
    return hob_cast(scope, in[0], HOB_DTYPE_F32);
}

static hob_tensor *run_to_bf16(hob_scope *scope, hob_tensor **in)
{
    return hob_cast(scope, in[0], HOB_DTYPE_BF16);
}

static hob_tensor *run_gelu(hob_scope *scope, hob_tensor **in)
{
    return hob_gelu(scope, in[0]);
}

static hob_tensor *run_chain(hob_scope *scope, hob_tensor **in)
{
    hob_tensor *x = hob_mul_scalar(scope, in[0], hob_f64(1.5));

    x = hob_add_scalar(scope, x, hob_f64(0.25));
    x = hob_mul(scope, x, in[0]);
    x = hob_sub_scalar(scope, x, hob_f64(0.5));
    x = hob_relu(scope, x);
    x = hob_mul_scalar(scope, x, hob_f64(0.75));
    x = hob_add(scope, x, in[0]);
    return hob_neg(scope, x);
}

static hob_tensor *run_sum(hob_scope *scope, hob_tensor **in)
{
    return hob_sum(scope, in[0]);
}

static hob_tensor *run_sum_rows(hob_scope *scope, hob_tensor **in)
{
    return hob_sum_dim(scope, in[0], 1);
}

static hob_tensor *run_sum_columns(hob_scope *scope, hob_tensor **in)
{
    return hob_sum_dim(scope, in[0], 0);
}

static hob_tensor *run_argmax(hob_scope *scope, hob_tensor **in)
{
    return hob_argmax(scope, in[0], 1, HOB_DTYPE_I32);
}

static hob_tensor *run_cumsum(hob_scope *scope, hob_tensor **in)
{
    return hob_cumsum(scope, in[0], 1);
}

static hob_tensor *run_softmax(hob_scope *scope, hob_tensor **in)
{
    return hob_softmax(scope, in[0], 1);
}

static hob_tensor *run_softmax_backward(hob_scope *scope, hob_tensor **in)
{
    return hob_softmax_backward(scope, in[0], in[0], 1);
}

/* In[1] is between -1 and 1, so that the first class is every row's: which one
 * it is costs nothing. */
static hob_tensor *targets_of(hob_scope *scope, hob_tensor **in)
{
    const int64_t rows = hob_tensor_shape(in[0])[0];

    return hob_cast(scope, hob_reshape(scope, in[1], &rows, 1), HOB_DTYPE_I32);
}

static hob_tensor *run_entropy(hob_scope *scope, hob_tensor **in)
{
    return hob_cross_entropy(scope, in[0], targets_of(scope, in));
}

static hob_tensor *run_entropy_backward(hob_scope *scope, hob_tensor **in)
{
    return hob_cross_entropy_backward(scope, in[0], targets_of(scope, in),
                                      hob_reshape(scope, in[2], NULL, 0));
}

static hob_tensor *run_layer_norm(hob_scope *scope, hob_tensor **in)
{
    return hob_layer_norm(scope, in[0], in[1], in[1], 1e-5);
}

static hob_tensor *run_rms_norm(hob_scope *scope, hob_tensor **in)
{
    return hob_rms_norm(scope, in[0], in[1], 1e-5);
}

static hob_tensor *run_layer_norm_backward(hob_scope *scope, hob_tensor **in)
{
    hob_tensor *out[3] = {NULL, NULL, NULL};

    (void)!hob_layer_norm_backward(scope, in[0], in[1], in[0], 1e-5, &out[0],
                                   &out[1], &out[2]);
    return out[0];
}

static hob_tensor *run_transpose(hob_scope *scope, hob_tensor **in)
{
    return hob_contiguous(scope, hob_swap_dims(scope, in[0], 0, 1));
}

static hob_tensor *run_matmul(hob_scope *scope, hob_tensor **in)
{
    return hob_matmul(scope, in[0], in[1]);
}

static hob_tensor *run_matmul_nt(hob_scope *scope, hob_tensor **in)
{
    return hob_matmul(scope, in[0], hob_swap_dims(scope, in[1], 0, 1));
}

static hob_tensor *run_matmul_tn(hob_scope *scope, hob_tensor **in)
{
    return hob_matmul(scope, hob_swap_dims(scope, in[0], 0, 1), in[1]);
}

static hob_tensor *run_conv(hob_scope *scope, hob_tensor **in)
{
    static const int64_t one[] = {1, 1};

    return hob_conv2d(scope, in[0], in[1], NULL, one, 2, one, 2, one, 2, 1);
}

static hob_tensor *run_attention(hob_scope *scope, hob_tensor **in)
{
    return hob_attention(scope, in[0], in[1], in[2], NULL, NULL, hob_none(),
                         hob_none(), 0);
}

static hob_tensor *run_causal(hob_scope *scope, hob_tensor **in)
{
    return hob_attention(scope, in[0], in[1], in[2], NULL, NULL, hob_none(),
                         hob_none(), 1);
}

/* Forward, and the gradients of half the sum of squares. */
static hob_tensor *attention_step(hob_scope *scope, hob_tensor **in, int causal)
{
    hob_value args[8] = {hob_value_tensor(in[0]), hob_value_tensor(in[1]),
                         hob_value_tensor(in[2]), hob_none(), hob_none(),
                         hob_none(), hob_none(), hob_bool(causal)};
    hob_tensor *out[2] = {NULL, NULL}, *wide, *grads[4];
    uint32_t count = 0;

    if (hob_scope_host(scope)->calln(scope, HOB_OP_ATTENTION, args, 8, out, 2,
                                     &count))
        return out[0];
    wide = hob_cast(scope, out[0], HOB_DTYPE_F32);
    if (hob_attention_backward(
            scope, in[0], in[1], in[2], NULL, NULL, out[1],
            hob_sum_dim(scope, hob_square(scope, wide), -1), out[0], hob_none(),
            hob_none(), causal, 0, &grads[0], &grads[1], &grads[2], &grads[3]))
        return out[0];
    return grads[0];
}

static hob_tensor *run_attention_step(hob_scope *scope, hob_tensor **in)
{
    return attention_step(scope, in, 0);
}

static hob_tensor *run_causal_step(hob_scope *scope, hob_tensor **in)
{
    return attention_step(scope, in, 1);
}

static hob_tensor *run_dependent(hob_scope *scope, hob_tensor **in)
{
    hob_tensor *x = in[0];

    for (int i = 0; i < 1000; i++)
        x = hob_add(scope, x, in[1]);
    return x;
}

/* ---- cases ---- */

#define F32 HOB_DTYPE_F32
#define BF16 HOB_DTYPE_BF16
#define ROWS(id, dtype, columns, bytes, run)                                   \
    {                                                                          \
        id, dtype, {{16384, columns}, {columns}}, 1024, BYTES,                 \
            2.0 * 16384 * (columns) * (bytes), run                             \
    }
#define ENTROPY(id, columns, passes, run)                                      \
    {                                                                          \
        id, F32, {{16384, columns}, {16384, 1}, {1}}, 1024, BYTES,             \
            (passes) * 4.0 * 16384 * (columns), run                            \
    }
#define SQUARE(id, dtype, n, run)                                              \
    {                                                                          \
        id, dtype, {{n, n}, {n, n}}, 64, FLOPS, 2.0 * (n) * (n) * (n), run     \
    }

/* By the products that are needed; a gradient makes the scores again. */
#define ATTENTION(id, dtype, heads, length, width, products, run)              \
    {                                                                          \
        id, dtype,                                                             \
            {{heads, length, width},                                           \
             {heads, length, width},                                           \
             {heads, length, width}},                                          \
            heads, FLOPS,                                                      \
            (double)(products) * (heads) * (length) * (length) * (width), run  \
    }

/* Of 128 heads, 4 of them side by side. */
#define HEADS(id, length, width, products, run)                                \
    {                                                                          \
        id, BF16,                                                              \
            {{32, 4, length, width},                                           \
             {32, 4, length, width},                                           \
             {32, 4, length, width}},                                          \
            32, FLOPS, (double)(products) * 128 * (length) * (length) * (width), \
            run                                                                \
    }

static const struct gpu_case cases[] = {
    {"G5 add f32 1e8",
     F32,
     {{100000000}, {100000000}},
     1000,
     BYTES,
     12e8,
     run_add},
    {"G5 add f32 1e8, row of 4096",
     F32,
     {{24576, 4096}, {4096}},
     1024,
     BYTES,
     8.0 * 24576 * 4096,
     run_add_row},
    {"G5 add bf16 1e9",
     BF16,
     {{1000000000}, {1000000000}},
     10000,
     BYTES,
     6e9,
     run_add},
    {"G5 cast bf16 to f32 1e8",
     BF16,
     {{100000000}},
     1000,
     BYTES,
     6e8,
     run_to_f32},
    {"G5 cast f32 to bf16 1e8",
     F32,
     {{100000000}},
     1000,
     BYTES,
     6e8,
     run_to_bf16},
    {"G5 gelu f32 1e8", F32, {{100000000}}, 1000, BYTES, 8e8, run_gelu},
    {"G6 chain of 8 ops f32 1e8",
     F32,
     {{100000000}},
     1000,
     BYTES,
     8e8,
     run_chain},
    {"G7 sum of all f32 1e9",
     F32,
     {{61036, 16384}},
     1024,
     BYTES,
     4.0 * 61036 * 16384,
     run_sum},
    {"G7 sum of rows",
     F32,
     {{61036, 16384}},
     1024,
     BYTES,
     4.0 * 61036 * 16384,
     run_sum_rows},
    {"G7 sum of columns",
     F32,
     {{61036, 16384}},
     1024,
     BYTES,
     4.0 * 61036 * 16384,
     run_sum_columns},
    {"G7 argmax of rows",
     F32,
     {{61036, 16384}},
     1024,
     BYTES,
     4.0 * 61036 * 16384,
     run_argmax},
    {"G7 cumsum along rows",
     F32,
     {{16384, 16384}},
     1024,
     BYTES,
     8.0 * 16384 * 16384,
     run_cumsum},
    ROWS("G8 softmax f32 16K x 1K", F32, 1024, 4, run_softmax),
    ROWS("G8 softmax f32 16K x 4K", F32, 4096, 4, run_softmax),
    ROWS("G8 softmax f32 16K x 16K", F32, 16384, 4, run_softmax),
    ROWS("G8 softmax f32 16K x 32K", F32, 32768, 4, run_softmax),
    ROWS("G8 softmax f32 16K x 64K", F32, 65536, 4, run_softmax),
    ROWS("G8 softmax f32 16K x 128K", F32, 131072, 4, run_softmax),
    ROWS("G8 softmax bf16 16K x 64K", BF16, 65536, 2, run_softmax),
    ROWS("G8 layer norm f32 16K x 64K", F32, 65536, 4, run_layer_norm),
    ROWS("G8 softmax bf16 16K x 4K", BF16, 4096, 2, run_softmax),
    ROWS("G8 layer norm f32 16K x 4K", F32, 4096, 4, run_layer_norm),
    ROWS("G8 layer norm bf16 16K x 4K", BF16, 4096, 2, run_layer_norm),
    ROWS("G8 layer norm's gradients f32 16K x 4K", F32, 4096, 6,
         run_layer_norm_backward),
    ROWS("G8 rms norm f32 16K x 4K", F32, 4096, 4, run_rms_norm),
    ROWS("G8 rms norm bf16 16K x 16K", BF16, 16384, 2, run_rms_norm),
    ROWS("G8 softmax's gradient f32 16K x 32K", F32, 32768, 4,
         run_softmax_backward),
    ENTROPY("G8 cross entropy f32 16K x 1K", 1024, 1, run_entropy),
    ENTROPY("G8 cross entropy f32 16K x 16K", 16384, 1, run_entropy),
    ENTROPY("G8 cross entropy f32 16K x 128K", 131072, 1, run_entropy),
    ENTROPY("G8 cross entropy's gradient f32 16K x 1K", 1024, 2,
            run_entropy_backward),
    ENTROPY("G8 cross entropy's gradient f32 16K x 16K", 16384, 2,
            run_entropy_backward),
    ENTROPY("G8 cross entropy's gradient f32 16K x 128K", 131072, 2,
            run_entropy_backward),
    {"transpose f32 16K",
     F32,
     {{16384, 16384}},
     64,
     BYTES,
     8.0 * 16384 * 16384,
     run_transpose},
    SQUARE("G2 matmul f32 4096", F32, 4096, run_matmul),
    SQUARE("G2 matmul f32 8192", F32, 8192, run_matmul),
    SQUARE("G2 matmul f32 8192, NT", F32, 8192, run_matmul_nt),
    SQUARE("G2 matmul f32 8192, TN", F32, 8192, run_matmul_tn),
    SQUARE("G1 matmul bf16 4096", BF16, 4096, run_matmul),
    SQUARE("G1 matmul bf16 8192", BF16, 8192, run_matmul),
    SQUARE("G1 matmul bf16 8192, NT", BF16, 8192, run_matmul_nt),
    SQUARE("G3 matmul f32 256", F32, 256, run_matmul),
    {"G18 conv 32x64x56x56 k3 f32",
     F32,
     {{32, 64, 56, 56}, {64, 64, 3, 3}},
     16,
     FLOPS,
     2.0 * 32 * 56 * 56 * 64 * 64 * 9,
     run_conv},
    {"attention f32 8x8x1024x64",
     F32,
     {{8, 8, 1024, 64}, {8, 8, 1024, 64}, {8, 8, 1024, 64}},
     8,
     FLOPS,
     4.0 * 64 * 1024 * 1024 * 64,
     run_attention},
    ATTENTION("attention f32 1x8x4096x64", F32, 8, 4096, 64, 4, run_attention),
    ATTENTION("attention f32 1x8x4096x64 causal", F32, 8, 4096, 64, 2,
              run_causal),
    ATTENTION("attention f32 4x8x2048x128", F32, 32, 2048, 128, 4,
              run_attention),
    ATTENTION("attention bf16 1x8x4096x64", BF16, 8, 4096, 64, 4,
              run_attention),
    ATTENTION("attention f32 4x8x2048x64 step", F32, 32, 2048, 64, 14,
              run_attention_step),
    HEADS("G9 attention bf16 4x32x4096x128", 4096, 128, 4, run_attention),
    HEADS("G9 attention bf16 4x32x4096x128 causal", 4096, 128, 2, run_causal),
    HEADS("G9 attention bf16 4x32x4096x64", 4096, 64, 4, run_attention),
    HEADS("G9 attention bf16 4x32x4096x64 causal", 4096, 64, 2, run_causal),
    ATTENTION("G9 attention bf16 1x32x16384x128", BF16, 32, 16384, 128, 4,
              run_attention),
    ATTENTION("G9 attention bf16 1x32x16384x128 causal", BF16, 32, 16384, 128,
              2, run_causal),
    HEADS("G10 step bf16 4x32x4096x128", 4096, 128, 14, run_attention_step),
    HEADS("G10 step bf16 4x32x4096x128 causal", 4096, 128, 7, run_causal_step),
    HEADS("G10 step bf16 4x32x4096x64", 4096, 64, 14, run_attention_step),
    {"G12 1000 dependent adds of 1",
     F32,
     {{1}, {1}},
     1,
     CALLS,
     1000,
     run_dependent},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* ---- inputs ---- */

static int32_t rank_of(const int64_t *shape)
{
    int32_t rank = 0;

    while (rank < 4 && shape[rank])
        rank++;
    return rank;
}

/* The inputs of a case, sizes that equal the first one divided by DIVISOR. */
static void make_inputs(hob_scope *scope, hob_device *device,
                        const struct gpu_case *one, int64_t divisor,
                        hob_tensor **out)
{
    const int64_t first = one->shapes[0][0];

    for (int i = 0; i < INPUTS && one->shapes[i][0]; i++) {
        int64_t shape[4];
        const int32_t rank = rank_of(one->shapes[i]);

        for (int32_t d = 0; d < rank; d++) {
            shape[d] = one->shapes[i][d];
            /* A row for all rows stays as it is. */
            if (divisor > 1 && (d == 0 || one->unit == FLOPS) &&
                shape[d] == first && rank == rank_of(one->shapes[0]))
                shape[d] = first / divisor > 0 ? first / divisor : 1;
        }
        out[i] = hob_random_uniform(scope, shape, (uint32_t)rank, -1, 1, device,
                                    one->dtype);
    }
}

/* ---- checking ---- */

/* The norm of the difference of two devices' results by that of one; both
 * draw the same inputs. Negative where there is none. */
static double difference(hob_runtime *runtime, hob_device *devices[2],
                         const struct gpu_case *one)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *results[2];
    double off;

    for (int i = 0; i < 2; i++) {
        hob_tensor *in[INPUTS];

        hob_seed(scope, 7);
        make_inputs(scope, devices[i], one, one->small, in);
        results[i] = one->run(scope, in);
    }
    off = timing_difference(results);
    hob_scope_close(scope);
    return off;
}

/* ---- timing ---- */

struct work {
    const struct gpu_case *of;
    hob_tensor *in[INPUTS];
};

static hob_status run_work(hob_scope *scope, void *data)
{
    struct work *work = data;
    hob_tensor *out = work->of->run(scope, work->in);

    return hob_eval(&out, 1, NULL); /* a layer may have put it off */
}

static void measure(hob_runtime *runtime, hob_device *device,
                    const struct gpu_case *one)
{
    hob_scope *root = hob_scope_open(runtime);
    hob_error error = HOB_ERROR_INIT;
    struct work work = {.of = one};
    double median;

    make_inputs(root, device, one, 1, work.in);
    median = timing_of(root, device, run_work, &work, NULL);
    if (hob_scope_error(root, &error) || median < 0)
        printf("%-34s failed: %s\n", one->id,
               error.message ? error.message : "it cannot be timed");
    else if (one->unit == CALLS)
        printf("%-34s %10.2f us a call\n", one->id,
               1e6 * median / one->work);
    else
        printf("%-34s %10.3f ms %9.2f %s\n", one->id, 1e3 * median,
               one->work / median * 1e-12,
               one->unit == BYTES ? "TB/s" : "TFLOP/s");
    fflush(stdout);
    hob_error_release(&error);
    hob_scope_close(root);
    (void)!hob_device_trim(device, NULL);
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *devices[2] = {NULL, NULL};
    int failed = 0;

    options.policy = HOB_POLICY_REPORT;
    if (argc < 2) {
        fprintf(stderr, "usage: gpu DEVICE [PART-OF-A-CASE'S-NAME...]\n");
        return 2;
    }
    if (hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, argv[1], &devices[0], &error) ||
        hob_device_open(runtime, "flex", &devices[1], &error)) {
        fprintf(stderr, "gpu: %s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    printf("%s\n", hob_device_name(devices[0]));
    for (int i = 0; i < CASES; i++) {
        double off;

        if (!timing_is_asked_for(cases[i].id, argc, argv))
            continue;
        off = difference(runtime, devices, &cases[i]);
        if (off >= 0 && off < (cases[i].dtype == BF16 ? 1e-2 : 1e-4)) {
            measure(runtime, devices[0], &cases[i]);
        } else {
            printf("%-34s WRONG: off by %g\n", cases[i].id, off);
            failed = 1;
        }
    }
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    (void)!hob_runtime_close(runtime, NULL);
    return failed;
}
