/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - elements that go elsewhere: C15 copies in another order, C17
 * gather, scatter, embedding, select.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

/* ---- C15: n is the shape, then the permutation ---- */

enum { RANK = 4, ORDER = RANK }; /* of n: sizes first */

static int32_t rank_of(const struct bench_case *c)
{
    return bench_rank(&c->in[0]);
}

static hob_tensor *permute(hob_scope *scope, hob_tensor *const *in,
                           const struct bench_case *c)
{
    return hob_contiguous(
        scope, hob_permute(scope, in[0], &c->n[ORDER], (uint32_t)rank_of(c)));
}

static double permute_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t at)
{
    const int32_t rank = rank_of(c);
    int64_t strides[RANK], from = 0, stride = 1;

    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= c->n[d];
    }
    for (int32_t d = rank - 1; d >= 0; d--) {
        const int64_t of = c->n[ORDER + d];

        from += at % c->n[of] * strides[of];
        at /= c->n[of];
    }
    return bench_get(&in[0], from);
}

/* Every second row and column. */
static hob_tensor *every_second(hob_scope *scope, hob_tensor *const *in,
                                const struct bench_case *c)
{
    const int64_t starts[2] = {0, 0}, steps[2] = {2, 2};

    return hob_contiguous(
        scope, hob_slice(scope, in[0], starts, 2, c->n, 2, steps, 2));
}

static double every_second_at(const struct bench_case *c,
                              const struct bench_array *in, int64_t at)
{
    const int64_t columns = c->n[1] / 2;

    return bench_get(&in[0], 2 * (at / columns) * c->n[1] + 2 * (at % columns));
}

/* ---- C17: n is rows and columns of what is read or written ---- */

static hob_tensor *embedding(hob_scope *scope, hob_tensor *const *in,
                             const struct bench_case *c)
{
    (void)c;
    return hob_embedding(scope, in[0], in[1]);
}

static hob_tensor *select_rows(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    (void)c;
    return hob_select(scope, in[0], in[1], 0);
}

static double rows_at(const struct bench_case *c, const struct bench_array *in,
                      int64_t at)
{
    const int64_t row = (int64_t)bench_get(&in[1], at / c->n[1]);

    return bench_get(&in[0], row * c->n[1] + at % c->n[1]);
}

static hob_tensor *select_columns(hob_scope *scope, hob_tensor *const *in,
                                  const struct bench_case *c)
{
    (void)c;
    return hob_select(scope, in[0], in[1], 1);
}

static double columns_at(const struct bench_case *c,
                         const struct bench_array *in, int64_t at)
{
    const int64_t columns = in[1].count;

    return bench_get(&in[0], at / columns * c->n[1] +
                                 (int64_t)bench_get(&in[1], at % columns));
}

static hob_tensor *gather(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    (void)c;
    return hob_gather(scope, in[0], in[1], 1);
}

static double gather_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t at)
{
    return bench_get(&in[0],
                     at / c->n[1] * c->n[1] + (int64_t)bench_get(&in[1], at));
}

static hob_tensor *scatter_add(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    (void)c;
    return hob_scatter_add(scope, in[0], in[1], in[2], 1);
}

static void scatter_add_all(const struct bench_case *c,
                            const struct bench_array *in, double *out)
{
    for (int64_t i = 0; i < c->out_count; i++)
        out[i] = bench_get(&in[0], i);
    for (int64_t i = 0; i < in[1].count; i++)
        out[i / c->n[1] * c->n[1] + (int64_t)bench_get(&in[1], i)] +=
            bench_get(&in[2], i);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define I64 HOB_DTYPE_I64
#define LIST(...) __VA_ARGS__
#define PERMUTED(label, shape_list, n_list, count, python, wanted)             \
    {                                                                          \
        .id = "C15", .name = label, .in = {{F32, {shape_list}, 0, 0}},         \
        .n = {n_list}, .hob = permute, .torch = python, .at = permute_at,      \
        .is_exact = 1, .out_count = count, .bytes = 8.0 * (count), .target = { \
            .peer = wanted                                                     \
        }                                                                      \
    }

static const struct bench_case cases[] = {
    PERMUTED("transpose 4096 x 4096", LIST(4096, 4096),
             LIST(4096, 4096, 0, 0, 1, 0), 4096 * 4096, "a.t().contiguous()",
             10),
    PERMUTED("NCHW to NHWC, 32 x 64 x 56 x 56", LIST(32, 64, 56, 56),
             LIST(32, 64, 56, 56, 0, 2, 3, 1), 32 * 64 * 56 * 56,
             "a.permute(0, 2, 3, 1).contiguous()", 2),
    PERMUTED("NHWC to NCHW, 32 x 56 x 56 x 64", LIST(32, 56, 56, 64),
             LIST(32, 56, 56, 64, 0, 3, 1, 2), 32 * 64 * 56 * 56,
             "a.permute(0, 3, 1, 2).contiguous()", 2),
    PERMUTED("heads to the front, 8 x 256 x 8 x 64", LIST(8, 256, 8, 64),
             LIST(8, 256, 8, 64, 0, 2, 1, 3), 8 * 256 * 8 * 64,
             "a.permute(0, 2, 1, 3).contiguous()", 1.5),
    {.id = "C15",
     .name = "every second row and column of 4096 x 4096",
     .in = {{F32, {4096, 4096}, 0, 0}},
     .n = {4096, 4096},
     .hob = every_second,
     .torch = "a[::2, ::2].contiguous()",
     .at = every_second_at,
     .is_exact = 1,
     .out_count = 2048 * 2048,
     /* Lines of the cache are read whole. */
     .bytes = 4.0 * 2048 * (4096 + 2048),
     .target = {.peer = 1.5}},
    PERMUTED("transpose 65 x 33", LIST(65, 33), LIST(65, 33, 0, 0, 1, 0),
             65 * 33, "a.t().contiguous()", 0),

    {.id = "C17",
     .name = "embedding, 4096 of 50257 rows of 512",
     .in = {{F32, {50257, 512}, 0, 0}, {I64, {4096}, 0, 50257}},
     .n = {50257, 512},
     .hob = embedding,
     .torch = "F.embedding(b, a)",
     .at = rows_at,
     .is_exact = 1,
     .out_count = 4096 * 512,
     .bytes = 8.0 * 4096 * 512,
     .target = {.peer = 1.5}},
    {.id = "C17",
     .name = "select 4096 of 4096 rows of 1024",
     .in = {{F32, {4096, 1024}, 0, 0}, {I64, {4096}, 0, 4096}},
     .n = {4096, 1024},
     .hob = select_rows,
     .torch = "torch.index_select(a, 0, b)",
     .at = rows_at,
     .is_exact = 1,
     .out_count = 4096 * 1024,
     .bytes = 8.0 * 4096 * 1024,
     .target = {.peer = 1.5}},
    {.id = "C17",
     .name = "select 1024 columns of 4096 x 1024",
     .in = {{F32, {4096, 1024}, 0, 0}, {I64, {1024}, 0, 1024}},
     .n = {4096, 1024},
     .hob = select_columns,
     .torch = "torch.index_select(a, 1, b)",
     .at = columns_at,
     .is_exact = 1,
     .out_count = 4096 * 1024,
     .bytes = 8.0 * 4096 * 1024,
     .target = {.peer = 1.5}},
    {.id = "C17",
     .name = "gather in rows, 4096 x 1024",
     .in = {{F32, {4096, 1024}, 0, 0}, {I64, {4096, 1024}, 0, 1024}},
     .n = {4096, 1024},
     .hob = gather,
     .torch = "torch.gather(a, 1, b)",
     .at = gather_at,
     .is_exact = 1,
     .out_count = 4096 * 1024,
     .bytes = 16.0 * 4096 * 1024,
     .target = {.peer = 1.5}},
    {.id = "C17",
     .name = "scatter add in rows, 4096 x 1024",
     .in = {{F32, {4096, 1024}, 0, 0},
            {I64, {4096, 1024}, 0, 1024},
            {F32, {4096, 1024}, 0, 0}},
     .n = {4096, 1024},
     .hob = scatter_add,
     .torch = "torch.scatter_add(a, 1, b, c)",
     .all = scatter_add_all,
     .out_count = 4096 * 1024,
     .bytes = 20.0 * 4096 * 1024,
     .target = {.peer = 1.5}},
    {.id = "C17",
     .name = "embedding, 50 of 100 rows of 16",
     .in = {{F32, {100, 16}, 0, 0}, {I64, {50}, 0, 100}},
     .n = {100, 16},
     .hob = embedding,
     .at = rows_at,
     .is_exact = 1,
     .out_count = 50 * 16,
     .is_smoke_only = 1},
    {.id = "C17",
     .name = "scatter add in rows, 7 x 40",
     .in = {{F32, {7, 40}, 0, 0}, {I64, {7, 40}, 0, 40}, {F32, {7, 40}, 0, 0}},
     .n = {7, 40},
     .hob = scatter_add,
     .all = scatter_add_all,
     .out_count = 7 * 40,
     .is_smoke_only = 1},
};

const struct bench_family bench_layout = {cases,
                                          sizeof(cases) / sizeof(cases[0])};
