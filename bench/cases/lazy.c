/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy.c - what it costs to put ops off: C25 recording an op, and a chain in
 * which nothing can be fused (G20 of the GPU suite, on flex); C28 the memory
 * of a fused chain.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>

/* A result that was put off, with its elements. */
static hob_tensor *evaluated(hob_scope *scope, hob_tensor *tensor)
{
    hob_error error = HOB_ERROR_INIT;
    hob_status st = hob_eval(&tensor, 1, &error);

    if (st)
        tensor =
            hob_scope_host(scope)->scope_fail(scope, st, "%s", error.message);
    hob_error_release(&error);
    return tensor;
}

/* ---- recording: nobody reads the results, so nothing is computed ---- */

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

/* ---- ops that do not fuse: n[0] products with a rotation ---- */

enum { SIDE = 8 };

static void fill_rotation(const struct bench_case *c,
                          const struct bench_array *in)
{
    float *matrix = in[1].data;

    (void)c;
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++)
            matrix[i * SIDE + k] = (float)(k == (i + 1) % SIDE);
}

static hob_tensor *rotate(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    hob_tensor *h = in[0];

    for (int64_t i = 0; i < c->n[0]; i++)
        h = hob_matmul(scope, h, in[1]);
    return evaluated(scope, h);
}

static double rotate_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t i)
{
    const int64_t column = i % SIDE;

    return bench_get(&in[0],
                     i - column + (column + SIDE - c->n[0] % SIDE) % SIDE);
}

/* ---- memory ---- */

static hob_tensor *chain(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    hob_tensor *h = in[0];

    for (int64_t i = 0; i < c->n[0]; i++) /* all handles stay meanwhile */
        h = hob_tanh(scope, hob_mul_scalar(scope, h, hob_f64(1.01)));
    return evaluated(scope, h);
}

static double chain_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t i)
{
    double h = bench_get(&in[0], i);

    for (int64_t k = 0; k < c->n[0]; k++)
        h = tanh(h * 1.01);
    return h;
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define CHAIN(label, size, ...)                                                \
    {                                                                          \
        .id = "C28", .name = label, .in = {{F32, {size}, 0, 0}}, .n = {4},     \
        .program = {.hob = chain, .device = "fusion(flex)"}, .at = chain_at,   \
        .tolerance = 1e-5, .out_count = size, __VA_ARGS__                      \
    }

static const struct bench_case cases[] = {
    {.id = "C25",
     .name = "add, fusion records",
     .in = {{F32, {1}, 0, 0}, {F32, {1}, 0, 0}},
     .program = {.hob = add, .device = "fusion(flex)"},
     .ways = {{.who = "flex at once", .hob = add, .is_base = 1}},
     .at = add_at,
     .out_count = 1,
     .is_serial = 1,
     .target = {.ns = 80},
     .note = "the whole call, and the end of its handle"},
    {.id = "C25",
     .name = "16 ops that do not fuse, fusion",
     .in = {{F32, {SIDE, SIDE}, 0, 0}, {F32, {SIDE, SIDE}, 0, 0}},
     .n = {16},
     .fill = fill_rotation,
     .program = {.hob = rotate, .device = "fusion(flex)"},
     .ways = {{.who = "flex at once", .hob = rotate, .is_base = 1}},
     .at = rotate_at,
     .out_count = SIDE * SIDE,
     .is_serial = 1,
     .target = {.above_base_ns = 16 * 200},
     .note = "200 ns an op: what recording and running it later may cost"},
    CHAIN("8 fused ops of 1e7, memory", 10000000, .bytes = 8e7,
          .run_seconds = 0.3, .target = {.peak_bytes = 1.05 * (20 << 21)},
          .note = "the target is for memory: 1.05 of the result, in pages "
                  "of 2 MiB"),
    CHAIN("8 fused ops of 1000", 1000, .is_smoke_only = 1),
};

const struct bench_family bench_lazy = {cases,
                                        sizeof(cases) / sizeof(cases[0])};
