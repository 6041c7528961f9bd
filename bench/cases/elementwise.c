/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise.c - C6 add of large arrays, C7 of all sizes, C8 and C9 a chain
 * of eight ops, C10 functions, C16 where, compare, cast, broadcast.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>

/* ---- C6, C7: add ---- */

static hob_tensor *add(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    (void)c;
    return hob_add(scope, in[0], in[1]);
}

static double add_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return bench_get(&in[0], i) + bench_get(&in[1], i);
}

BENCH_LOOP static void add_loop(const struct bench_case *c,
                                const struct bench_array *in,
                                float *restrict out)
{
    const float *a = bench_f32(&in[0]), *b = bench_f32(&in[1]);

    for (int64_t i = 0; i < c->out_count; i++)
        out[i] = a[i] + b[i];
}

/* ---- C8, C9: relu((x * 1.1 + 0.1) * (x - 0.5) / 1.7 + 0.25) * 2 ---- */

static hob_tensor *chain(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    hob_tensor *x = in[0];
    hob_tensor *h = hob_mul_scalar(scope, x, hob_f64(1.1));

    (void)c;
    h = hob_add_scalar(scope, hob_move(scope, h), hob_f64(0.1));
    h = hob_mul(scope, hob_move(scope, h),
                hob_sub_scalar(scope, x, hob_f64(0.5)));
    h = hob_div_scalar(scope, hob_move(scope, h), hob_f64(1.7));
    h = hob_add_scalar(scope, hob_move(scope, h), hob_f64(0.25));
    h = hob_relu(scope, hob_move(scope, h));
    return hob_mul_scalar(scope, hob_move(scope, h), hob_f64(2));
}

/* The same put off and then computed as one. */
static hob_tensor *chain_fused(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    hob_tensor *h = chain(scope, in, c);
    hob_error error = HOB_ERROR_INIT;
    hob_status st = hob_eval(&h, 1, &error);

    if (st)
        h = hob_scope_host(scope)->scope_fail(scope, st, "%s", error.message);
    hob_error_release(&error);
    return h;
}

static double chain_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t i)
{
    const double x = bench_get(&in[0], i);
    const double h = (x * 1.1 + 0.1) * (x - 0.5) / 1.7 + 0.25;

    (void)c;
    return h > 0 ? 2 * h : 0;
}

BENCH_LOOP static void chain_loop(const struct bench_case *c,
                                  const struct bench_array *in,
                                  float *restrict out)
{
    const float *x = bench_f32(&in[0]);

    for (int64_t i = 0; i < c->out_count; i++) {
        const float h = (x[i] * 1.1f + 0.1f) * (x[i] - 0.5f) / 1.7f + 0.25f;

        out[i] = h > 0 ? 2 * h : 0;
    }
}

#define CHAIN_TORCH "torch.relu((a * 1.1 + 0.1) * (a - 0.5) / 1.7 + 0.25) * 2"
#define CHAIN_NUMEXPR                                                          \
    "where((a * v1 + v2) * (a - v3) / v4 + v5 > z,"                            \
    " ((a * v1 + v2) * (a - v3) / v4 + v5) * v6, z)"

/* ---- C10: functions ---- */

static hob_tensor *gelu(hob_scope *scope, hob_tensor *const *in,
                        const struct bench_case *c)
{
    (void)c;
    return hob_gelu(scope, in[0]);
}

static double gelu_at(const struct bench_case *c, const struct bench_array *in,
                      int64_t i)
{
    const double x = bench_get(&in[0], i);

    (void)c;
    return 0.5 * x * (1 + erf(x * 0.70710678118654752));
}

static hob_tensor *exponential(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    (void)c;
    return hob_exp(scope, in[0]);
}

static double exp_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return exp(bench_get(&in[0], i));
}

static hob_tensor *tangent(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    (void)c;
    return hob_tanh(scope, in[0]);
}

static double tanh_at(const struct bench_case *c, const struct bench_array *in,
                      int64_t i)
{
    (void)c;
    return tanh(bench_get(&in[0], i));
}

static hob_tensor *sigmoid(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    (void)c;
    return hob_sigmoid(scope, in[0]);
}

static double sigmoid_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t i)
{
    (void)c;
    return 1 / (1 + exp(-bench_get(&in[0], i)));
}

static hob_tensor *error_function(hob_scope *scope, hob_tensor *const *in,
                                  const struct bench_case *c)
{
    (void)c;
    return hob_erf(scope, in[0]);
}

static double erf_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return erf(bench_get(&in[0], i));
}

/* ---- C16 ---- */

static hob_tensor *where(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    (void)c;
    return hob_where(scope, in[2], in[0], in[1]);
}

static double where_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t i)
{
    (void)c;
    return bench_get(&in[bench_get(&in[2], i) != 0 ? 0 : 1], i);
}

static hob_tensor *greater(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    (void)c;
    return hob_greater(scope, in[0], in[1]);
}

static double greater_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t i)
{
    (void)c;
    return bench_get(&in[0], i) > bench_get(&in[1], i);
}

static hob_tensor *to_bf16(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    (void)c;
    return hob_cast(scope, in[0], HOB_DTYPE_BF16);
}

static hob_tensor *to_i32(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    (void)c;
    return hob_cast(scope, in[0], HOB_DTYPE_I32);
}

static double same_at(const struct bench_case *c, const struct bench_array *in,
                      int64_t i)
{
    (void)c;
    return bench_get(&in[0], i);
}

static double trunc_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t i)
{
    (void)c;
    return trunc(bench_get(&in[0], i));
}

static double add_row_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t i)
{
    (void)c;
    return bench_get(&in[0], i) + bench_get(&in[1], i % in[1].count);
}

static double add_column_at(const struct bench_case *c,
                            const struct bench_array *in, int64_t i)
{
    return bench_get(&in[0], i) +
           bench_get(&in[1], i / (c->out_count / in[1].count));
}

#define F32 HOB_DTYPE_F32
#define LARGE 10000000
#define ADD(label, size, ...)                                                  \
    {                                                                          \
        .id = "C7", .name = label,                                             \
        .in = {{F32, {size}, 0, 0}, {F32, {size}, 0, 0}}, .hob = add,          \
        .loop = add_loop, .torch = "torch.add(a, b)", .at = add_at,            \
        .out_count = size, .bytes = 12.0 * size, .floor_ns = 100, .target = {  \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define CHAIN(case_id, label, size, ...)                                       \
    {                                                                          \
        .id = case_id, .name = label, .in = {{F32, {size}, 0, 0}},             \
        .program = {.hob = chain_fused, .device = "fusion(flex)"},             \
        .loop = chain_loop, .torch = CHAIN_TORCH,                              \
        .numexpr = CHAIN_NUMEXPR, .at = chain_at, .out_count = size,           \
        .bytes = 8.0 * size,                                                   \
        .ways = {{.who = "op by op", .hob = chain},                            \
                 {.who = "its program alone", BENCH_FUSED}},                   \
        .target = {__VA_ARGS__},                                               \
        .note = "the program alone is what flex makes of it, without the "     \
                "decorator that writes it"                                     \
    }
#define FUNCTION(label, function, python, reference)                           \
    {.id = "C10",                                                              \
     .name = label " 1e7, given output",                                       \
     .in = {{F32, {LARGE}, -4, 4}},                                            \
     .hob = function,                                                          \
     .torch_setup = "out = torch.empty_like(a)",                               \
     .torch = python,                                                          \
     .at = reference,                                                          \
     .tolerance = 1e-6,                                                        \
     .out_count = LARGE,                                                       \
     .bytes = 8.0 * LARGE,                                                     \
     .target = {.peer = 1.5}},                                                 \
    {                                                                          \
        .id = "C10", .name = label " 1000", .in = {{F32, {1000}, -4, 4}},      \
        .hob = function, .at = reference, .tolerance = 1e-6,                   \
        .out_count = 1000, .is_smoke_only = 1                                  \
    }

static const struct bench_case cases[] = {
    {.id = "C6",
     .name = "add 1e7, fresh output",
     .in = {{F32, {LARGE}, 0, 0}, {F32, {LARGE}, 0, 0}},
     .hob = add,
     .torch = "torch.add(a, b)",
     .at = add_at,
     .out_count = LARGE,
     .bytes = 12.0 * LARGE,
     .target = {.peer = 5}},
    {.id = "C6",
     .name = "add 1e7, given output",
     .in = {{F32, {LARGE}, 0, 0}, {F32, {LARGE}, 0, 0}},
     .hob = add,
     .loop = add_loop,
     .torch_setup = "out = torch.empty_like(a)",
     .torch = "torch.add(a, b, out=out)",
     .at = add_at,
     .out_count = LARGE,
     .bytes = 12.0 * LARGE,
     .target = {.of = {{"torch", 1.25}}}},

    {.id = "C6",
     .name = "add 999",
     .in = {{F32, {999}, 0, 0}, {F32, {999}, 0, 0}},
     .hob = add,
     .loop = add_loop,
     .at = add_at,
     .out_count = 999,
     .is_smoke_only = 1},

    {.id = "C7",
     .name = "add 1",
     .in = {{F32, {1}, 0, 0}, {F32, {1}, 0, 0}},
     .hob = add,
     .ways = {{BENCH_TORCH_ADD}},
     .torch = "torch.add(a, b)",
     .at = add_at,
     .out_count = 1,
     .bytes = 12,
     .floor_ns = 100,
     .is_serial = 1,
     .target = {.ns = 100, .of = {{"torch C++", 5}}}},
    ADD("add 1000", 1000, .of = {{"torch", 1}}),
    ADD("add 10000", 10000, .of = {{"torch", 1}}),
    ADD("add 100000", 100000, .of = {{"torch", 1}}),
    ADD("add 1000000", 1000000, .of = {{"torch", 1.5}}),

    CHAIN("C8", "chain of 8 ops, 1e7", LARGE,
          .of = {{"torch", 10}, {"C loop", 0.9}, {"numexpr", 3}}),
    {.id = "C8",
     .name = "chain of 8 ops, 1000",
     .in = {{F32, {1000}, 0, 0}},
     .program = {.hob = chain_fused, .device = "fusion(flex)"},
     .ways = {{.who = "op by op", .hob = chain},
              {.who = "its program alone", BENCH_FUSED}},
     .loop = chain_loop,
     .at = chain_at,
     .out_count = 1000,
     .is_smoke_only = 1},
    CHAIN("C9", "chain of 8 ops, 1e6", 1000000, .of = {{"C loop", 0.5}}),
    CHAIN("C9", "chain of 8 ops, 16384", 16384, .of = {{"C loop", 0.5}}),

    FUNCTION("gelu", gelu, "torch.ops.aten.gelu.out(a, out=out)", gelu_at),
    FUNCTION("exp", exponential, "torch.exp(a, out=out)", exp_at),
    FUNCTION("tanh", tangent, "torch.tanh(a, out=out)", tanh_at),
    FUNCTION("sigmoid", sigmoid, "torch.sigmoid(a, out=out)", sigmoid_at),
    FUNCTION("erf", error_function, "torch.erf(a, out=out)", erf_at),

    {.id = "C16",
     .name = "where 1e7",
     .in = {{F32, {LARGE}, 0, 0},
            {F32, {LARGE}, 0, 0},
            {HOB_DTYPE_BOOL, {LARGE}, 0, 0}},
     .hob = where,
     .torch = "torch.where(c, a, b)",
     .at = where_at,
     .out_count = LARGE,
     .bytes = 13.0 * LARGE,
     .target = {.peer = 5}},
    {.id = "C16",
     .name = "greater 1e7",
     .in = {{F32, {LARGE}, 0, 0}, {F32, {LARGE}, 0, 0}},
     .hob = greater,
     .torch = "torch.gt(a, b)",
     .at = greater_at,
     .is_exact = 1,
     .out_count = LARGE,
     .bytes = 9.0 * LARGE,
     .target = {.peer = 1.2}},
    {.id = "C16",
     .name = "cast f32 to bf16, 1e7",
     .in = {{F32, {LARGE}, 0, 0}},
     .hob = to_bf16,
     .torch = "a.to(torch.bfloat16)",
     .at = same_at,
     .tolerance = 1.0 / 256,
     .out_count = LARGE,
     .bytes = 6.0 * LARGE,
     .target = {.peer = 1}},
    {.id = "C16",
     .name = "cast f32 to i32, 1e7",
     .in = {{F32, {LARGE}, -1000, 1000}},
     .hob = to_i32,
     .torch = "a.to(torch.int32)",
     .at = trunc_at,
     .is_exact = 1,
     .out_count = LARGE,
     .bytes = 8.0 * LARGE,
     .target = {.peer = 1}},
    {.id = "C16",
     .name = "add a row to 4096 x 4096",
     .in = {{F32, {4096, 4096}, 0, 0}, {F32, {4096}, 0, 0}},
     .hob = add,
     .torch = "torch.add(a, b)",
     .at = add_row_at,
     .out_count = 4096 * 4096,
     .bytes = 8.0 * 4096 * 4096,
     .target = {.peer = 4}},
    {.id = "C16",
     .name = "add a column to 4096 x 4096",
     .in = {{F32, {4096, 4096}, 0, 0}, {F32, {4096, 1}, 0, 0}},
     .hob = add,
     .torch = "torch.add(a, b)",
     .at = add_column_at,
     .out_count = 4096 * 4096,
     .bytes = 8.0 * 4096 * 4096,
     .target = {.peer = 4}},
    {.id = "C16",
     .name = "where 1000",
     .in = {{F32, {1000}, 0, 0},
            {F32, {1000}, 0, 0},
            {HOB_DTYPE_BOOL, {1000}, 0, 0}},
     .hob = where,
     .at = where_at,
     .out_count = 1000,
     .is_smoke_only = 1},
    {.id = "C16",
     .name = "add a column to 33 x 7",
     .in = {{F32, {33, 7}, 0, 0}, {F32, {33, 1}, 0, 0}},
     .hob = add,
     .at = add_column_at,
     .out_count = 33 * 7,
     .is_smoke_only = 1},
};

const struct bench_family bench_elementwise = {cases, sizeof(cases) /
                                                          sizeof(cases[0])};
