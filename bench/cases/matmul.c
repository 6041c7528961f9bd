/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c - matrix products: C1 large, C2 small, C3 few rows, C4 batches,
 * C5 bf16, C22 with bias and relu.
 *
 * n: 0 m, 1 n, 2 k, 3 whether A is transposed, 4 whether B is, 5 batch.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* of CBLAS */

/* ---- references ---- */

/* Element (I, J) of A @ B in batch BATCH. */
static double product_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t batch, int64_t i,
                         int64_t j)
{
    const int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    double sum = 0;

    for (int64_t p = 0; p < k; p++)
        sum += bench_get(&in[0],
                         batch * m * k + (c->n[3] ? p * m + i : i * k + p)) *
               bench_get(&in[1],
                         batch * k * n + (c->n[4] ? j * k + p : p * n + j));
    return sum;
}

static double matmul_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t at)
{
    const int64_t m = c->n[0], n = c->n[1];

    return product_at(c, in, at / (m * n), at / n % m, at % n);
}

/* One matrix B for all batches. */
static double broadcast_at(const struct bench_case *c,
                           const struct bench_array *in, int64_t at)
{
    struct bench_case flat = *c;

    flat.n[0] *= c->n[5];
    return product_at(&flat, in, 0, at / c->n[1], at % c->n[1]);
}

static double linear_relu_at(const struct bench_case *c,
                             const struct bench_array *in, int64_t at)
{
    const double sum = matmul_at(c, in, at) + bench_get(&in[2], at % c->n[1]);

    return sum > 0 ? sum : 0;
}

/* ---- Hob ---- */

static hob_tensor *matmul(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    hob_tensor *a = c->n[3] ? hob_swap_dims(scope, in[0], 0, 1) : in[0];
    hob_tensor *b = c->n[4] ? hob_swap_dims(scope, in[1], 0, 1) : in[1];

    return hob_matmul(scope, a, b);
}

static hob_tensor *linear_relu(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    const hob_value args[] = {hob_value_tensor(in[0]), hob_value_tensor(in[1]),
                              hob_value_tensor(in[2])};

    (void)c;
    return bench_call(scope, "nn.linear_relu", args, 3);
}

static hob_tensor *three_ops(hob_scope *scope, hob_tensor *const *in,
                             const struct bench_case *c)
{
    (void)c;
    return hob_relu(scope,
                    hob_add(scope, hob_matmul(scope, in[0], in[1]), in[2]));
}

/* ---- OpenBLAS ---- */

static void sgemm(const struct bench_case *c, const struct bench_blas *blas,
                  const struct bench_array *in, float *out)
{
    const int m = (int)c->n[0], n = (int)c->n[1], k = (int)c->n[2];
    const int64_t batches = c->n[5] ? c->n[5] : 1;

    for (int64_t i = 0; i < batches; i++)
        blas->sgemm(ROW_MAJOR, c->n[3] ? TRANSPOSED : PLAIN,
                    c->n[4] ? TRANSPOSED : PLAIN, m, n, k, 1,
                    bench_f32(&in[0]) + i * m * k, c->n[3] ? m : k,
                    bench_f32(&in[1]) +
                        (in[1].count > (int64_t)k * n ? i * k * n : 0),
                    c->n[4] ? k : n, 0, out + i * m * n, n);
}

/* A row times a matrix. */
static void sgemv(const struct bench_case *c, const struct bench_blas *blas,
                  const struct bench_array *in, float *out)
{
    blas->sgemv(ROW_MAJOR, TRANSPOSED, (int)c->n[2], (int)c->n[1], 1,
                bench_f32(&in[1]), (int)c->n[1], bench_f32(&in[0]), 1, 0, out,
                1);
}

#define F32 HOB_DTYPE_F32
#define PRODUCT(rows, columns, inner, trans_a, trans_b)                        \
    .in =                                                                      \
        {{F32, {trans_a ? inner : rows, trans_a ? rows : inner}, 0, 0},        \
         {F32, {trans_b ? columns : inner, trans_b ? inner : columns}, 0, 0}}, \
    .n = {rows, columns, inner, trans_a, trans_b}, .hob = matmul,              \
    .blas = sgemm, .at = matmul_at, .out_count = (int64_t)(rows) * (columns),  \
    .flops = 2.0 * (rows) * (columns) * (inner)
#define SQUARE(size, trans_a, trans_b, label, python)                          \
    {                                                                          \
        .id = "C1", .name = #size " " label,                                   \
        PRODUCT(size, size, size, trans_a, trans_b), .torch = python,          \
        .target = {                                                            \
            .peer = 0.99,                                                      \
            .limit = 0.93                                                      \
        }                                                                      \
    }
#define CUBE(size, ...)                                                        \
    {                                                                          \
        .id = "C2", .name = "cube of " #size, PRODUCT(size, size, size, 0, 0), \
        .torch = "torch.matmul(a, b)", .floor_ns = 50, .target = {             \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define ROWS(rows, function, label, peer_target, limit_target)                 \
    {                                                                          \
        .id = "C3", .name = #rows " x 4096 x 4096" label,                      \
        .in = {{F32, {rows, 4096}, 0, 0}, {F32, {4096, 4096}, 0, 0}},          \
        .n = {rows, 4096, 4096}, .hob = matmul, .blas = function,              \
        .torch = "torch.matmul(a, b)", .at = matmul_at,                        \
        .out_count = 4096 * (int64_t)rows, .bytes = 4.0 * 4096 * 4096,         \
        .is_read = 1, .target = {                                              \
            .peer = peer_target,                                               \
            .limit = limit_target                                              \
        }                                                                      \
    }
#define BIASED(size)                                                           \
    {                                                                          \
        .id = "C22", .name = #size ", nn.linear_relu",                         \
        .in = {{F32, {size, size}, 0, 0},                                      \
               {F32, {size, size}, 0, 0},                                      \
               {F32, {size}, 0, 0}},                                           \
        .n = {size, size, size}, .hob = linear_relu,                           \
        .torch = "F.relu(torch.addmm(c, a, b))",                               \
        .ways = {{.who = "the product alone", .hob = matmul, .is_base = 1}},   \
        .at = linear_relu_at, .out_count = (int64_t)size * size,               \
        .flops = 2.0 * size * size * size,                                     \
        .target = {.peer = 1, .base = 1 / 1.03},                               \
        .note = "an extension, which the product alone may beat by 3 %"        \
    }

static const struct bench_case cases[] = {
    SQUARE(256, 0, 0, "NN", "torch.matmul(a, b)"),
    SQUARE(256, 0, 1, "NT", "torch.matmul(a, b.t())"),
    SQUARE(256, 1, 0, "TN", "torch.matmul(a.t(), b)"),
    SQUARE(512, 0, 0, "NN", "torch.matmul(a, b)"),
    SQUARE(512, 0, 1, "NT", "torch.matmul(a, b.t())"),
    SQUARE(512, 1, 0, "TN", "torch.matmul(a.t(), b)"),
    SQUARE(1024, 0, 0, "NN", "torch.matmul(a, b)"),
    SQUARE(1024, 0, 1, "NT", "torch.matmul(a, b.t())"),
    SQUARE(1024, 1, 0, "TN", "torch.matmul(a.t(), b)"),
    SQUARE(2048, 0, 0, "NN", "torch.matmul(a, b)"),
    SQUARE(2048, 0, 1, "NT", "torch.matmul(a, b.t())"),
    SQUARE(2048, 1, 0, "TN", "torch.matmul(a.t(), b)"),

    {.id = "C1",
     .name = "96 x 33 x 64, TN",
     PRODUCT(96, 33, 64, 1, 0),
     .is_smoke_only = 1},
    {.id = "C1",
     .name = "64 x 40 x 96, NT",
     PRODUCT(64, 40, 96, 0, 1),
     .is_smoke_only = 1},

    CUBE(8, .of = {{"torch", 5}}),
    CUBE(16, .of = {{"torch", 5}}),
    CUBE(32, .of = {{"torch", 1}}),
    CUBE(64, .of = {{"OpenBLAS", 0.95}}),
    CUBE(96, .of = {{"OpenBLAS", 0.95}}),
    CUBE(128, .of = {{"OpenBLAS", 0.95}}),

    ROWS(1, sgemv, ", sgemv", 0.99, 0.85),
    ROWS(1, sgemm, "", 2, 0.85),
    ROWS(2, sgemm, "", 2, 0.85),
    ROWS(4, sgemm, "", 2, 0.85),
    ROWS(8, sgemm, "", 2, 0.85),
    ROWS(16, sgemm, "", 1.3, 0),
    {.id = "C3",
     .name = "3 x 200 x 100",
     PRODUCT(3, 200, 100, 0, 0),
     .is_smoke_only = 1},

    {.id = "C4",
     .name = "64 x (128 x 64 x 128)",
     .in = {{F32, {64, 128, 64}, 0, 0}, {F32, {64, 64, 128}, 0, 0}},
     .n = {128, 128, 64, 0, 0, 64},
     .hob = matmul,
     .blas = sgemm,
     .torch = "torch.bmm(a, b)",
     .at = matmul_at,
     .out_count = 64 * 128 * 128,
     .flops = 2.0 * 64 * 128 * 64 * 128,
     .target = {.peer = 1.3}},
    {.id = "C4",
     .name = "64 x (128 x 64) by one 64 x 128",
     .in = {{F32, {64, 128, 64}, 0, 0}, {F32, {64, 128}, 0, 0}},
     .n = {128, 128, 64, 0, 0, 64},
     .hob = matmul,
     .blas = sgemm,
     .torch = "torch.matmul(a, b)",
     .at = broadcast_at,
     .out_count = 64 * 128 * 128,
     .flops = 2.0 * 64 * 128 * 64 * 128,
     .target = {.peer = 1.3}},
    {.id = "C4",
     .name = "8 x (512 x 512 x 512)",
     .in = {{F32, {8, 512, 512}, 0, 0}, {F32, {8, 512, 512}, 0, 0}},
     .n = {512, 512, 512, 0, 0, 8},
     .hob = matmul,
     .blas = sgemm,
     .torch = "torch.bmm(a, b)",
     .at = matmul_at,
     .out_count = 8 * 512 * 512,
     .flops = 16.0 * 512 * 512 * 512,
     .target = {.peer = 1}},

    {.id = "C4",
     .name = "3 x (8 x 16) by one 16 x 24",
     .in = {{F32, {3, 8, 16}, 0, 0}, {F32, {16, 24}, 0, 0}},
     .n = {8, 24, 16, 0, 0, 3},
     .hob = matmul,
     .blas = sgemm,
     .at = broadcast_at,
     .out_count = 3 * 8 * 24,
     .is_smoke_only = 1},

    {.id = "C5",
     .name = "bf16 1024",
     .in = {{HOB_DTYPE_BF16, {1024, 1024}, 0, 0},
            {HOB_DTYPE_BF16, {1024, 1024}, 0, 0}},
     .n = {1024, 1024, 1024},
     .hob = matmul,
     .torch = "torch.matmul(a, b)",
     .at = matmul_at,
     .tolerance = 1.0 / 128, /* 8 bits of a result, and of its sum's parts */
     .out_count = 1024 * 1024,
     .flops = 2.0 * 1024 * 1024 * 1024,
     .is_bf16 = 1,
     .target = {.peer = 0.45},
     .note = "0.9 of the peer is wanted once AVX512_BF16 is used"},
    {.id = "C5",
     .name = "bf16 32",
     .in = {{HOB_DTYPE_BF16, {32, 32}, 0, 0}, {HOB_DTYPE_BF16, {32, 32}, 0, 0}},
     .n = {32, 32, 32},
     .hob = matmul,
     .at = matmul_at,
     .tolerance = 1.0 / 128,
     .out_count = 32 * 32,
     .is_smoke_only = 1},

    BIASED(256),
    BIASED(512),
    BIASED(1024),
    BIASED(2048),
    {.id = "C22",
     .name = "64, three ops",
     .in = {{F32, {64, 64}, 0, 0}, {F32, {64, 64}, 0, 0}, {F32, {64}, 0, 0}},
     .n = {64, 64, 64},
     .hob = three_ops,
     .torch = "F.relu(torch.addmm(c, a, b))",
     .at = linear_relu_at,
     .out_count = 64 * 64,
     .flops = 2.0 * 64 * 64 * 64},
    {.id = "C22",
     .name = "1024, three ops",
     .in = {{F32, {1024, 1024}, 0, 0},
            {F32, {1024, 1024}, 0, 0},
            {F32, {1024}, 0, 0}},
     .n = {1024, 1024, 1024},
     .hob = three_ops,
     .torch = "F.relu(torch.addmm(c, a, b))",
     .at = linear_relu_at,
     .out_count = 1024 * 1024,
     .flops = 2.0 * 1024 * 1024 * 1024,
     .target = {.peer = 1}},
};

const struct bench_family bench_matmul = {cases,
                                          sizeof(cases) / sizeof(cases[0])};
