/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - C25: what a call costs beside its work.
 *
 * Adds of one element: through an idle autodiff and recorded by it, beside the
 * same on flex; an extension's op beside a built-in one with the same kernel;
 * and a call that fails.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"
#include "null_plugin.h"

static hob_tensor *add(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    (void)c;
    return hob_add(scope, in[0], in[1]);
}

static hob_tensor *add_extension(hob_scope *scope, hob_tensor *const *in,
                                 const struct bench_case *c)
{
    /* One a place of call, as in the header that hob-sdk writes. */
    static struct hob_op_ref ref = {"bench.add", 0};

    (void)c;
    return bench_add(scope, &ref, in[0], in[1]);
}

static double add_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return bench_get(&in[0], i) + bench_get(&in[1], i);
}

/* 2 elements and 3 do not go together: whoever asks gets an error, and goes on.
 * The result is the first input. */
static hob_tensor *fail(hob_scope *scope, hob_tensor *const *in,
                        const struct bench_case *c)
{
    (void)c;
    (void)hob_add(scope, in[0], in[1]);
    hob_scope_clear_error(scope);
    return in[0];
}

static double first_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t i)
{
    (void)c;
    return bench_get(&in[0], i);
}

#define F32 HOB_DTYPE_F32
#define ONE                                                                    \
    .in = {{F32, {1}, 0, 0}, {F32, {1}, 0, 0}}, .at = add_at, .out_count = 1,  \
    .is_serial = 1

static const struct bench_case cases[] = {
    {.id = "C25",
     .name = "add, flex",
     ONE,
     .hob = add,
     .ways = {{BENCH_TORCH_ADD}},
     .torch = "torch.add(a, b)",
     .target = {.ns = 100}},
    {.id = "C25",
     .name = "add, autodiff idle",
     ONE,
     .program = {.hob = add, .device = "autodiff(flex)"},
     .ways = {{.who = "flex alone", .hob = add, .is_base = 1}},
     .target = {.above_base_ns = 5}},
    {.id = "C25",
     .name = "add, autodiff records",
     ONE,
     .program = {.hob = add, .device = "autodiff(flex)", .is_tracked = 1},
     .ways = {{.who = "flex alone", .hob = add, .is_base = 1},
              {BENCH_TORCH_ADD, .is_tracked = 1}},
     .torch_setup = "a.requires_grad_()",
     .torch = "torch.add(a, b)",
     .is_training = 1,
     .target = {.above_base_ns = 100}},
    {.id = "C25",
     .name = "an extension's op, null kernel",
     ONE,
     .program = {.hob = add_extension, .device = "null"},
     .ways = {{.who = "built-in op, null kernel",
               .hob = add,
               .device = "null",
               .is_base = 1}},
     .target = {.above_base_ns = 10}},
    {.id = "C25",
     .name = "a call that fails",
     .in = {{F32, {2}, 0, 0}, {F32, {3}, 0, 0}},
     .hob = fail,
     .torch_setup = "def fail():\n"
                    "    try:\n"
                    "        torch.add(a, b)\n"
                    "    except RuntimeError:\n"
                    "        return a\n",
     .torch = "fail()",
     .at = first_at,
     .is_exact = 1,
     .out_count = 2,
     .is_serial = 1,
     .target = {.peer = 1},
     .note = "with its message"},
};

const struct bench_family bench_calls = {cases,
                                         sizeof(cases) / sizeof(cases[0])};
