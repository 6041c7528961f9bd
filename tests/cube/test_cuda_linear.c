/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with an epilogue on a cuBLASLt of the test's own, against loops in
 * double: cube.compute's gemm and the op linear; and what is not for cuBLASLt.
 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <cube-cuda/linear.h>
#include <cube/compute.h>
#include <cube/fuse/fuse.h>
#include <cube/fuse/product.h>
#include <hob/ops.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 5, K = 4, N = 3, MOST = 64 };

static struct ccu_device *device;
static float memory[4][MOST]; /* a, b, c, bias */
static double doubles[4][MOST];

static void setup(void)
{
    cuda_setup();
    device = cuda_open_device(0, NULL);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < MOST; k++)
            memory[i][k] = (float)(doubles[i][k] =
                                       ((i * 31 + k * 17) % 23 - 11) / 8.0);
}

static void teardown(void)
{
    ccu_device_close(device);
    cuda_teardown();
}

/* Operand WHICH as ROWS by COLUMNS, or transposed as it lies. */
static struct hob_view matrix(int which, uint32_t dtype, int64_t rows,
                              int64_t columns, int is_turned)
{
    struct hob_view view = {.dtype = (uint8_t)dtype, .rank = 2};

    view.data = dtype == HOB_DTYPE_F64 ? (void *)doubles[which]
                                       : (void *)memory[which];
    view.shape[0] = rows;
    view.shape[1] = columns;
    view.strides[0] = is_turned ? 1 : columns;
    view.strides[1] = is_turned ? rows : 1;
    fake_view_flags(&view);
    return view;
}

static struct hob_view row(int which, uint32_t dtype, int64_t count)
{
    struct hob_view view = matrix(which, dtype, 1, count, 0);

    view.rank = 1;
    view.shape[0] = count;
    view.strides[0] = 1;
    fake_view_flags(&view);
    return view;
}

static double at(const struct hob_view *view, int64_t i, int64_t k)
{
    const int64_t offset = view->rank == 1
                               ? k * view->strides[0]
                               : i * view->strides[0] + k * view->strides[1];

    return view->dtype == HOB_DTYPE_F64 ? ((const double *)view->data)[offset]
                                        : ((const float *)view->data)[offset];
}

static double gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double expected(const struct hob_view *a, const struct hob_view *b,
                       const double *bias, uint32_t epilogue, int64_t i,
                       int64_t j)
{
    double sum = epilogue & HOB_CUBE_BIAS ? bias[j] : 0;

    for (int64_t k = 0; k < a->shape[1]; k++)
        sum += at(a, i, k) * at(b, k, j);
    if (epilogue & HOB_CUBE_RELU)
        return sum > 0 ? sum : 0;
    return epilogue & HOB_CUBE_GELU_TANH ? gelu(sum) : sum;
}

/* ---- cube.compute ---- */

static const uint32_t epilogues[] = {
    0,
    HOB_CUBE_BIAS,
    HOB_CUBE_RELU,
    HOB_CUBE_GELU_TANH,
    HOB_CUBE_BIAS | HOB_CUBE_RELU,
    HOB_CUBE_BIAS | HOB_CUBE_GELU_TANH,
    HOB_CUBE_SUM_B,
};
enum { EPILOGUES = sizeof(epilogues) / sizeof(epilogues[0]) };

static void check_gemm(uint32_t epilogue, uint32_t dtype, int a_turned,
                       int b_turned)
{
    const struct hob_view a = matrix(0, dtype, M, K, a_turned);
    const struct hob_view b = matrix(1, dtype, K, N, b_turned);
    const struct hob_view c = matrix(2, dtype, M, N, 0);
    const struct hob_view bias = row(3, dtype, N);
    const int has_bias = (epilogue & (HOB_CUBE_BIAS | HOB_CUBE_SUM_B)) != 0;
    const struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD,
                                       .epilogue = epilogue,
                                       .a = &a,
                                       .b = &b,
                                       .c = &c,
                                       .bias = has_bias ? &bias : NULL};
    double before[N];
    struct fake_call fake;

    for (int j = 0; j < N; j++)
        before[j] = at(&bias, 0, j);
    fake_call_init(&fake, &cuda_host, "nn.layer");
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm), HOB_OK);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++)
            ck_assert_double_eq_tol(at(&c, i, j),
                                    expected(&a, &b, before, epilogue, i, j),
                                    1e-5);
    for (int64_t j = 0; j < N; j++) {
        double sum = 0;

        for (int64_t k = 0; k < K; k++)
            sum += at(&b, k, j);
        ck_assert_double_eq_tol(at(&bias, 0, j),
                                epilogue & HOB_CUBE_SUM_B ? sum : before[j],
                                1e-5);
    }
}

START_TEST(test_gemm_has_epilogues)
{
    for (int turned = 0; turned < 4; turned++) {
        check_gemm(epilogues[_i], HOB_DTYPE_F32, turned & 1, turned >> 1);
        check_gemm(epilogues[_i], HOB_DTYPE_F64, turned & 1, turned >> 1);
    }
    ck_assert_int_eq(fake_cuda.products, 8);
    ck_assert_int_eq(fake_cuda.heuristics, 8);
    check_gemm(epilogues[_i], HOB_DTYPE_F32, 0, 0);
    ck_assert_int_eq(fake_cuda.heuristics, 8); /* it is kept */
}
END_TEST

/* A plan is of any bias: each product has its own. */
START_TEST(test_gemm_takes_each_bias)
{
    check_gemm(HOB_CUBE_BIAS, HOB_DTYPE_F32, 0, 0);
    for (int j = 0; j < MOST; j++)
        memory[3][j] = (float)j;
    check_gemm(HOB_CUBE_BIAS, HOB_DTYPE_F32, 0, 0);
    ck_assert_int_eq(fake_cuda.heuristics, 1);
}
END_TEST

/* ---- gradients ---- */

/* A layer's slope from what its forward product kept. ROW_BYTES and ROW_ITEMS:
 * rows of aux, as far apart as they must be. */
enum { ROW_BYTES = 16, ROW_ITEMS = 8 };

static const uint32_t functions[][2] = {
    {HOB_CUBE_RELU, HOB_CUBE_RELU_SLOPE},
    {HOB_CUBE_GELU_TANH, HOB_CUBE_GELU_TANH_SLOPE},
};

/* By differences, so that nothing of the slope's formula is in both places. */
static double slope_at(uint32_t function, double x)
{
    const double step = 1e-5;

    if (function == HOB_CUBE_RELU)
        return x >= 0;
    return (gelu(x + step) - gelu(x - step)) / (2 * step);
}

static struct hob_view aux_of(void *data, uint32_t function, uint32_t dtype)
{
    const int is_bits = function == HOB_CUBE_RELU;
    struct hob_view view = {.data = data,
                            .dtype = (uint8_t)(is_bits ? HOB_DTYPE_U8 : dtype),
                            .rank = 2};

    view.shape[0] = M;
    view.shape[1] = is_bits ? (N + 7) / 8 : N;
    view.strides[0] = is_bits ? ROW_BYTES : ROW_ITEMS;
    view.strides[1] = 1;
    return view;
}

/* c = f(a b + bias) keeps aux; then the gradient of what f was given, from one
 * of c: again a b, so that there is something to multiply, times the slope. */
static void check_slope(int which, uint32_t dtype, int has_bias, int has_sum)
{
    const uint32_t function = functions[which][0];
    const struct hob_view a = matrix(0, dtype, M, K, 1);
    const struct hob_view b = matrix(1, dtype, K, N, 0);
    const struct hob_view c = matrix(2, dtype, M, N, 0);
    const struct hob_view bias = row(3, dtype, N);
    double kept[M * ROW_ITEMS], before[N], x, want, sum;
    const struct hob_view aux = aux_of(kept, function, dtype);
    struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD,
                                 .epilogue = function | HOB_CUBE_KEEP,
                                 .a = &a,
                                 .b = &b,
                                 .c = &c,
                                 .aux = &aux};
    struct fake_call fake;

    if (has_bias) {
        gemm.epilogue |= HOB_CUBE_BIAS;
        gemm.bias = &bias;
    }
    for (int j = 0; j < N; j++)
        before[j] = has_bias ? at(&bias, 0, j) : 0;
    fake_call_init(&fake, &cuda_host, "nn.layer");
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm), HOB_OK);
    for (int64_t i = 0; i < M * N; i++)
        ck_assert_double_eq_tol(
            at(&c, i / N, i % N),
            expected(&a, &b, before, function | HOB_CUBE_BIAS, i / N, i % N),
            1e-5);
    gemm.epilogue = functions[which][1] | (has_sum ? HOB_CUBE_SUM_C : 0u);
    gemm.bias = has_sum ? &bias : NULL;
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm), HOB_OK);
    for (int64_t j = 0; j < N; j++) {
        sum = 0;
        for (int64_t i = 0; i < M; i++) {
            x = expected(&a, &b, before, 0, i, j);
            want = x * slope_at(function, x + before[j]);
            sum += want;
            ck_assert_double_eq_tol(at(&c, i, j), want, 1e-5);
        }
        if (has_sum)
            ck_assert_double_eq_tol(at(&bias, 0, j), sum, 1e-4);
    }
}

START_TEST(test_gemm_has_slopes)
{
    check_slope(_i & 1, HOB_DTYPE_F32, _i >> 1 & 1, _i >> 2);
    check_slope(_i & 1, HOB_DTYPE_F64, _i >> 1 & 1, _i >> 2);
    ck_assert_int_eq(fake_cuda.products, 4);
    ck_assert_int_eq(fake_cuda.heuristics, 4);
}
END_TEST

/* What aux must be, and what a slope goes with. */
START_TEST(test_gemm_checks_slopes)
{
    enum { NONE, DTYPE, ROWS, NARROW, APART, KEEP_ALONE, WITH_BIAS, SUM_ALONE };
    const struct hob_view a = matrix(0, HOB_DTYPE_F32, M, K, 0);
    const struct hob_view b = matrix(1, HOB_DTYPE_F32, K, N, 0);
    const struct hob_view c = matrix(2, HOB_DTYPE_F32, M, N, 0);
    const struct hob_view bias = row(3, HOB_DTYPE_F32, N);
    double kept[M * ROW_ITEMS];
    struct hob_view aux = aux_of(kept, HOB_CUBE_RELU, HOB_DTYPE_F32);
    struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD,
                                 .epilogue = HOB_CUBE_RELU_SLOPE,
                                 .a = &a,
                                 .b = &b,
                                 .c = &c,
                                 .aux = _i == NONE ? NULL : &aux};
    struct fake_call fake;

    if (_i == DTYPE)
        aux.dtype = HOB_DTYPE_F32;
    if (_i == ROWS)
        aux.shape[0]--;
    if (_i == NARROW)
        aux.shape[1]--;
    if (_i == APART)
        aux.strides[0] = 8;
    if (_i == KEEP_ALONE)
        gemm.epilogue = HOB_CUBE_KEEP;
    if (_i == WITH_BIAS)
        gemm.epilogue |= HOB_CUBE_BIAS;
    if (_i == SUM_ALONE)
        gemm.epilogue = HOB_CUBE_SUM_C;
    gemm.bias = _i >= WITH_BIAS ? &bias : NULL;
    fake_call_init(&fake, &cuda_host, "nn.layer");
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm), HOB_ERR_ARGUMENT);
    ck_assert_msg(strstr(cuda_host.message, _i == NONE ? "no aux"
                                            : _i < KEEP_ALONE
                                                ? "an aux of the wrong"
                                                : "exclude each other") != NULL,
                  "%s", cuda_host.message);
    ck_assert_int_eq(fake_cuda.products, 0);
}
END_TEST

/* ---- what is refused ---- */

enum wrong {
    UNKNOWN,
    BOTH,
    SUM_AND_BIAS,
    DTYPES,
    SIZES,
    EMPTY,
    STRIDED,
    NO_BIAS,
    TOO_MUCH_BIAS,
    SHORT_BIAS,
    WRONG
};
static const char *const words[WRONG] = {
    "not known",      "exclude each other", "exclude each other",
    "several dtypes", "do not fit",         "an empty matrix",
    "not row-major",  "no bias",            "does not have",
    "not a row"};

START_TEST(test_gemm_checks)
{
    struct hob_view a = matrix(0, HOB_DTYPE_F32, M, K, 0);
    struct hob_view b = matrix(1, HOB_DTYPE_F32, K, N, 0);
    struct hob_view c = matrix(2, HOB_DTYPE_F32, M, N, _i == STRIDED);
    struct hob_view bias = row(3, HOB_DTYPE_F32, _i == SHORT_BIAS ? N - 1 : N);
    struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD,
                                 .epilogue = HOB_CUBE_BIAS,
                                 .a = &a,
                                 .b = &b,
                                 .c = &c,
                                 .bias = &bias};
    struct fake_call fake;

    if (_i == UNKNOWN)
        gemm.epilogue |= 256;
    if (_i == BOTH)
        gemm.epilogue |= HOB_CUBE_RELU | HOB_CUBE_GELU_TANH;
    if (_i == SUM_AND_BIAS)
        gemm.epilogue |= HOB_CUBE_SUM_B;
    if (_i == DTYPES)
        b.dtype = HOB_DTYPE_F64;
    if (_i == SIZES)
        a.shape[1]--;
    if (_i == EMPTY)
        a.shape[1] = b.shape[0] = 0;
    if (_i == NO_BIAS)
        gemm.bias = NULL;
    if (_i == TOO_MUCH_BIAS)
        gemm.epilogue = HOB_CUBE_RELU;
    fake_call_init(&fake, &cuda_host, "nn.layer");
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm), HOB_ERR_ARGUMENT);
    ck_assert_msg(strstr(cuda_host.message, words[_i]) != NULL, "%s",
                  cuda_host.message);
    ck_assert_ptr_nonnull(strstr(cuda_host.message, "nn.layer"));
    ck_assert_int_eq(fake_cuda.products, 0);
}
END_TEST

/* Without the library, or a kernel in it, it is the caller's turn. */
START_TEST(test_gemm_is_not_always_there)
{
    const struct hob_view a = matrix(0, HOB_DTYPE_F32, M, K, 0);
    const struct hob_view b = matrix(1, HOB_DTYPE_F32, K, N, 0);
    const struct hob_view c = matrix(2, HOB_DTYPE_F32, M, N, 0);
    struct hob_view wide = a;
    struct hob_cube_gemm gemm = {
        HOB_CUBE_GEMM_INIT_HEAD, .a = &a, .b = &b, .c = &c};
    struct fake_call fake;

    if (_i == 0)
        fake_cuda.has_no_kernel = 1;
    if (_i == 1) {
        ccu_device_close(device);
        device = cuda_open_device(0, "{\"cublas\": \"no\"}");
    }
    if (_i == 2) { /* neither row-major nor transposed */
        wide.strides[1] = 2;
        gemm.a = &wide;
    }
    fake_call_init(&fake, &cuda_host, "nn.layer");
    ck_assert_int_eq(cube_gemm(device, &fake.call, &gemm),
                     HOB_ERR_UNSUPPORTED);
    ck_assert_str_eq(cuda_host.message, "");
}
END_TEST

/* ---- linear ---- */

static const struct {
    uint32_t rank; /* of x; the last one is turned */
    int64_t shape[3];
    int is_turned, has_bias;
    hob_status status;
} layers[] = {
    {2, {5, 4}, 0, 1, HOB_OK},
    {2, {5, 4}, 1, 1, HOB_OK},
    {2, {5, 4}, 0, 0, HOB_OK},
    {1, {4}, 0, 1, HOB_OK},
    {3, {2, 3, 4}, 0, 1, HOB_OK},
    {3, {2, 3, 4}, 1, 1, HOB_ERR_UNSUPPORTED}, /* rows at two distances */
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

static void run_linear(int index, uint32_t dtype, int w_turned)
{
    const struct hob_entry *entry = &ccu_linear_entries.entries[0];
    struct hob_view x = matrix(0, dtype, 5, 4, layers[index].is_turned);
    const struct hob_view w = matrix(1, dtype, K, N, w_turned);
    const struct hob_view bias = row(3, dtype, N);
    double numbers[N];
    int64_t shape[3], stride = 1, rows = 1;
    struct fake_call fake;

    x.rank = (uint8_t)layers[index].rank;
    for (uint32_t i = x.rank; i-- > 0;) {
        shape[i] = x.shape[i] = layers[index].shape[i];
        if (x.rank != 2) {
            x.strides[i] = stride;
            stride *= x.shape[i];
        }
        rows *= i + 1 < x.rank ? x.shape[i] : 1;
    }
    if (x.rank == 3 && layers[index].is_turned)
        x.strides[0] = 4, x.strides[1] = 8;
    fake_view_flags(&x);
    shape[x.rank - 1] = N;
    for (int j = 0; j < N; j++)
        numbers[j] = layers[index].has_bias ? at(&bias, 0, j) : 0;
    fake_call_init(&fake, &cuda_host, "linear");
    fake_call_view(&fake, &x);
    fake_call_view(&fake, &w);
    if (layers[index].has_bias)
        fake_call_view(&fake, &bias);
    else
        fake_call_value(&fake, hob_none());
    fake_call_result(&fake, dtype, x.rank, shape);
    ck_assert_int_eq(fake_call_run(&fake, entry, device), layers[index].status);
    x.strides[0] = x.rank == 2 ? x.strides[0] : 4;
    x.strides[1] = x.rank == 2 ? x.strides[1] : 1;
    x.rank = 2;
    x.shape[1] = K;
    ck_assert(fake_tensor_intact(&fake.results[0]));
    for (int64_t i = 0; i < rows * N && !layers[index].status; i++) {
        const struct hob_view out = {.data = fake.results[0].view.data,
                                     .dtype = (uint8_t)dtype,
                                     .rank = 1,
                                     .strides = {1}};

        ck_assert_double_eq_tol(
            at(&out, 0, i),
            expected(&x, &w, numbers, HOB_CUBE_BIAS, i / N, i % N), 1e-5);
    }
    fake_call_release(&fake);
}

START_TEST(test_linear)
{
    for (int turned = 0; turned < 2; turned++) {
        run_linear(_i, HOB_DTYPE_F32, turned);
        run_linear(_i, HOB_DTYPE_F64, turned);
    }
}
END_TEST

/* The core runs the body then. */
START_TEST(test_linear_without_a_kernel)
{
    const struct hob_view x = matrix(0, HOB_DTYPE_F32, M, K, 0);
    const struct hob_view w = matrix(1, HOB_DTYPE_F32, K, N, 0);
    struct fake_call fake;

    fake_cuda.has_no_kernel = 1;
    fake_call_init(&fake, &cuda_host, "linear");
    fake_call_view(&fake, &x);
    fake_call_view(&fake, &w);
    fake_call_value(&fake, hob_none());
    fake_call_result(&fake, HOB_DTYPE_F32, 2, (int64_t[]){M, N});
    ck_assert_int_eq(
        fake_call_run(&fake, &ccu_linear_entries.entries[0], device),
        HOB_ERR_UNSUPPORTED);
    ck_assert_str_eq(cuda_host.message, "");
    fake_call_release(&fake);
}
END_TEST

/* ---- products of fused programs ---- */

/* add of the bias, relu, and more than the library has; BIAS_OF_OP: linear's.
 */
enum { ADD = 1, RELU = 2, NEG = 4, BIAS_OF_OP = 8, COLUMN = 16 };
static const struct {
    int what;
    uint32_t dtype;
    hob_status status;
} programs[] = {
    {RELU, HOB_DTYPE_F32, HOB_OK},
    {ADD, HOB_DTYPE_F32, HOB_OK},
    {ADD | RELU, HOB_DTYPE_F32, HOB_OK},
    {BIAS_OF_OP | RELU, HOB_DTYPE_F32, HOB_OK},
    {BIAS_OF_OP | ADD | RELU, HOB_DTYPE_F32, HOB_ERR_UNSUPPORTED},
    {RELU | NEG, HOB_DTYPE_F32, HOB_ERR_UNSUPPORTED},
    {ADD | COLUMN, HOB_DTYPE_F32, HOB_ERR_UNSUPPORTED},
    {RELU, HOB_DTYPE_F64, HOB_ERR_UNSUPPORTED},
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

static void add_step(struct fuse_program *program, uint32_t op, uint8_t second)
{
    struct hob_fused_step *step = &program->steps[program->step_count];
    const uint8_t last =
        program->step_count
            ? (uint8_t)(program->input_count + program->step_count - 1)
            : 0;

    *step = (struct hob_fused_step){.op = (uint16_t)op,
                                    .args = {last, second, HOB_FUSED_NONE}};
    program->outputs[0] =
        (uint8_t)(program->input_count + program->step_count++);
}

START_TEST(test_product_with_steps)
{
    const int what = programs[_i].what;
    const uint32_t dtype = programs[_i].dtype;
    const struct hob_view a = matrix(0, dtype, M, K, 0);
    const struct hob_view b = matrix(1, dtype, K, N, 1);
    const struct hob_view c = matrix(2, dtype, M, N, 0);
    const struct hob_view bias = row(3, dtype, N);
    const struct hob_fused_product product = {
        .struct_size = sizeof(product),
        .op = HOB_OP_LINEAR,
        .args = {&a, &b, what & BIAS_OF_OP ? &bias : NULL},
        .out = &c};
    const struct hob_fused_operand inputs[2] = {
        {c.data, {N, 1}},
        {bias.data, {what & COLUMN ? 1 : 0, what & COLUMN ? 0 : 1}}};
    const struct hob_fused_operand output = {c.data, {N, 1}};
    const struct hob_fused_run run = {.struct_size = sizeof(run),
                                      .shape = {M, N},
                                      .inputs = inputs,
                                      .outputs = &output};
    struct fuse_program program = {
        .rank = 2, .input_count = 2, .output_count = 1};
    double before[N];
    char *message = NULL;

    if (what & ADD)
        add_step(&program, HOB_OP_ADD, 1);
    if (what & RELU)
        add_step(&program, HOB_OP_RELU, HOB_FUSED_NONE);
    if (what & NEG)
        add_step(&program, HOB_OP_NEG, HOB_FUSED_NONE);
    for (int j = 0; j < N; j++)
        before[j] = at(&bias, 0, j);
    ck_assert_int_eq(
        fuse_product_run(&device->cube, &program, &run, &product, &message),
        programs[_i].status);
    ck_assert_ptr_null(message);
    ck_assert_int_eq(fake_cuda.products, programs[_i].status ? 0 : 1);
    for (int64_t i = 0; i < M && !programs[_i].status; i++)
        for (int64_t j = 0; j < N; j++)
            ck_assert_double_eq_tol(
                at(&c, i, j),
                expected(&a, &b, before,
                         (what & (ADD | BIAS_OF_OP) ? HOB_CUBE_BIAS : 0u) |
                             (what & RELU ? HOB_CUBE_RELU : 0u),
                         i, j),
                1e-5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA linear");
    TCase *tc = tcase_create("linear");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_gemm_has_epilogues, 0, EPILOGUES);
    tcase_add_test(tc, test_gemm_takes_each_bias);
    tcase_add_loop_test(tc, test_gemm_has_slopes, 0, 8);
    tcase_add_loop_test(tc, test_gemm_checks_slopes, 0, 8);
    tcase_add_loop_test(tc, test_gemm_checks, 0, WRONG);
    tcase_add_loop_test(tc, test_gemm_is_not_always_there, 0, 3);
    tcase_add_loop_test(tc, test_linear, 0, LAYERS);
    tcase_add_test(tc, test_linear_without_a_kernel);
    tcase_add_loop_test(tc, test_product_with_steps, 0, PROGRAMS);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
