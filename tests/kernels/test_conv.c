/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 1 to 3 dimensions, transposed ones and the gradients of
 * conv2d on small integers: exact, so equal to the naive sums. Then random
 * geometries, infinities and NaNs, and bits that must not depend on the number
 * of threads.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

/* Of three dimensions; fewer are the last ones. */
struct geometry {
    int spatial;
    int64_t n, in, out, groups; /* in: of a group */
    int64_t size[3], kernel[3];
    int64_t stride[3], padding[3], dilation[3];
    int64_t more[3]; /* output padding of the transposed one */
    uint32_t list;   /* numbers in the attribute lists, if not SPATIAL */
};

#define D3(a, b, c)                                                            \
    {                                                                          \
        a, b, c                                                                \
    }
/* Sizes of fewer dimensions, and paddings. */
#define D2(a, b) D3(1, a, b)
#define P2(a, b) D3(0, a, b)
#define D1(a) D3(1, 1, a)
#define P1(a) D3(0, 0, a)
/* No output padding, full lists. */
#define NONE P2(0, 0), 0

static const struct geometry cases[] = {
    {2, 1, 1, 1, 1, D2(1, 1), D2(1, 1), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 2, 3, 4, 1, D2(7, 9), D2(3, 3), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 2, 3, 5, 1, D2(7, 9), D2(3, 2), D2(2, 2), P2(1, 1), D2(1, 1),
     .list = 1},
    {2, 1, 2, 3, 2, D2(9, 8), D2(3, 3), D2(2, 1), P2(1, 2), D2(1, 1), NONE},
    {2, 3, 2, 3, 1, D2(11, 10), D2(3, 2), D2(1, 3), P2(2, 3), D2(2, 3), NONE},
    {2, 2, 1, 1, 6, D2(8, 13), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1), NONE},
    {2, 2, 1, 2, 6, D2(8, 13), D2(3, 5), D2(2, 1), P2(0, 4), D2(1, 2), NONE},
    {2, 2, 1, 1, 6, D2(8, 13), D2(3, 3), D2(1, 2), P2(1, 1), D2(1, 1), NONE},
    {2, 2, 5, 8, 1, D2(6, 7), D2(1, 1), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 2, 3, 4, 2, D2(6, 7), D2(1, 1), D2(2, 2), P2(1, 1), D2(1, 1), NONE},
    {2, 1, 2, 2, 1, D2(3, 3), D2(5, 5), D2(1, 1), P2(2, 2), D2(1, 1), NONE},
    {2, 9, 2, 3, 1, D2(5, 5), D2(2, 2), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 1, 40, 16, 1, D2(30, 37), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1), NONE},
    {2, 2, 3, 2, 1, D2(9, 8), D2(3, 3), D2(3, 2), P2(1, 0), D2(2, 2), P2(2, 1),
     0},
    {2, 2, 16, 19, 1, D2(12, 14), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1), NONE},
    {2, 1, 17, 33, 1, D2(7, 9), D2(3, 3), D2(1, 1), P2(0, 2), D2(1, 1), NONE},
    {2, 2, 16, 18, 2, D2(9, 7), D2(3, 3), D2(1, 1), P2(2, 1), D2(1, 1), NONE},
    {2, 2, 1, 1, 3, D2(11, 37), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1), NONE},
    {2, 2, 1, 1, 3, D2(6, 33), D2(3, 3), D2(1, 1), P2(2, 0), D2(2, 1), NONE},
    {2, 1, 1, 1, 2, D2(23, 18), D2(9, 1), D2(3, 1), P2(2, 0), D2(1, 1), NONE},
    {2, 2, 5, 7, 1, D2(6, 31), D2(3, 2), D2(1, 2), P2(1, 1), D2(1, 1), NONE},
    {2, 1, 9, 3, 2, D2(5, 47), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1), NONE},
    {2, 5, 6, 7, 1, D2(1, 1), D2(1, 1), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 3, 4, 9, 1, D2(3, 4), D2(3, 4), D2(1, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 3, 4, 9, 1, D2(2, 1), D2(2, 1), D2(2, 1), P2(0, 0), D2(1, 1), NONE},
    {2, 1, 8, 17, 1, D2(1, 99), D2(3, 3), D2(1, 1), P2(1, 2), D2(1, 1), NONE},
    {2, 2, 2, 1, 1, D2(4, 5), D2(2, 2), D2(5, 4), P2(0, 0), D2(1, 1), NONE},
    {1, 2, 3, 4, 2, D1(37), D1(5), D1(2), P1(2), D1(1), NONE},
    {1, 1, 1, 1, 3, D1(50), D1(3), D1(1), P1(8), D1(8), NONE},
    {3, 2, 2, 3, 2, D3(4, 5, 6), D3(2, 3, 2), D3(1, 2, 1), D3(1, 0, 2),
     D3(2, 1, 1), NONE},
    {3, 1, 1, 1, 4, D3(5, 6, 7), D3(3, 3, 3), D3(1, 1, 1), D3(1, 1, 1),
     D3(1, 1, 1), NONE},
    {3, 1, 3, 2, 1, D3(5, 4, 9), D3(2, 2, 2), D3(2, 3, 2), D3(0, 1, 0),
     D3(1, 2, 1), D3(1, 0, 1), 0},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

enum { FORWARD, TRANSPOSED, TO_X, TO_WEIGHT, OPS };

static const char *const names[OPS][3] = {
    {"conv1d", "conv2d", "conv3d"},
    {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
    {NULL, "conv2d_x_backward", NULL},
    {NULL, "conv2d_weight_backward", NULL},
};

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

/* Tensors of a call. The transposed convolution takes what conv gives, and its
 * result may be larger than what conv needs. */
struct shapes {
    int64_t x[3], y[3]; /* sizes on the side of x, of the result */
    int64_t whole_x[5], whole_weight[5], whole_y[5];
};

static void measure(const struct geometry *g, int op, struct shapes *s)
{
    for (int i = 0; i < 3; i++) {
        const int64_t extent = g->dilation[i] * (g->kernel[i] - 1) + 1;

        s->x[i] = g->size[i];
        s->y[i] = (g->size[i] + 2 * g->padding[i] - extent) / g->stride[i] + 1;
        if (op == TRANSPOSED)
            s->x[i] = (s->y[i] - 1) * g->stride[i] + extent + g->more[i] -
                      2 * g->padding[i];
        s->whole_x[2 + i] = s->x[i];
        s->whole_y[2 + i] = s->y[i];
        s->whole_weight[2 + i] = g->kernel[i];
    }
    s->whole_x[0] = s->whole_y[0] = g->n;
    s->whole_x[1] = g->in * g->groups;
    s->whole_y[1] = s->whole_weight[0] = g->out * g->groups;
    s->whole_weight[1] = g->in;
}

/* [n, c, d, h, w] without the dimensions that G lacks. */
static const int64_t *short_shape(const struct geometry *g,
                                  const int64_t *whole, int64_t out[5])
{
    out[0] = whole[0];
    out[1] = whole[1];
    for (int i = 0; i < g->spatial; i++)
        out[2 + i] = whole[5 - g->spatial + i];
    return out;
}

/* Add all products: TO is the side that OP computes, the others are read. What
 * depends on the tap alone is found once for all channels. */
static void naive(const struct geometry *g, const struct shapes *s, int op,
                  double *x, double *w, double *y)
{
    const int64_t taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    const int64_t plane = s->x[0] * s->x[1] * s->x[2];
    int64_t results = g->n * g->out * g->groups * s->y[0] * s->y[1] * s->y[2];
    int64_t at[5];

    for (int64_t i = 0; i < results; i++) {
        lab_position(5, s->whole_y, i, at);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t tap[3] = {t / (g->kernel[1] * g->kernel[2]),
                                    t / g->kernel[2] % g->kernel[1],
                                    t % g->kernel[2]};
            int64_t from = 0, inside = 1, weight = at[1] * g->in * taps + t;
            for (int k = 0; k < 3; k++) {
                const int64_t p = at[2 + k] * g->stride[k] - g->padding[k] +
                                  tap[k] * g->dilation[k];
                inside &= p >= 0 && p < s->x[k];
                from = from * s->x[k] + p;
            }
            if (!inside)
                continue;
            from +=
                (at[0] * g->in * g->groups + at[1] / g->out * g->in) * plane;
            for (int64_t c = 0; c < g->in; c++, from += plane, weight += taps) {
                if (op == FORWARD)
                    y[i] += x[from] * w[weight];
                else if (op == TO_WEIGHT)
                    w[weight] += x[from] * y[i];
                else
                    x[from] += y[i] * w[weight];
            }
        }
    }
}

static void add_list(struct fake_call *call, const struct geometry *g,
                     const int64_t *list)
{
    fake_call_value(call,
                    hob_value_i64s(list + 3 - g->spatial,
                                   g->list ? g->list : (uint32_t)g->spatial));
}

/* One call of OP. */
struct trial {
    struct lab *lab;
    const struct geometry *g;
    struct shapes s;
    int op;
    struct lab_tensor x, w, y, bias; /* two of x, w, y are read */
    int with_bias;
    struct fake_call call;
};

static void open_trial(struct trial *t, struct lab *lab,
                       const struct geometry *g, int op, uint32_t dtype,
                       enum lab_layout layout)
{
    const uint32_t rank = (uint32_t)g->spatial + 2;
    const int64_t channels = (op == FORWARD ? g->out : g->in) * g->groups;
    int64_t shape[5];

    memset(t, 0, sizeof(*t));
    t->lab = lab;
    t->g = g;
    t->op = op;
    t->with_bias = op <= TRANSPOSED && layout != LAB_MISALIGNED;
    measure(g, op, &t->s);
    lab_tensor_init(lab, &t->x, dtype, rank,
                    short_shape(g, t->s.whole_x, shape), layout, -2, 2);
    lab_tensor_init(lab, &t->w, dtype, rank,
                    short_shape(g, t->s.whole_weight, shape), layout, -2, 2);
    lab_tensor_init(lab, &t->y, dtype, rank,
                    short_shape(g, t->s.whole_y, shape), layout, -1, 1);
    lab_tensor_init(lab, &t->bias, dtype, 1, &channels, LAB_GAPS, -9, 9);
}

static void run_trial(struct trial *t)
{
    const struct geometry *g = t->g;
    struct fake_call *call = &t->call;
    const uint32_t dtype = t->x.view.dtype;
    const struct hob_view *to = t->op == FORWARD     ? &t->y.view
                                : t->op == TO_WEIGHT ? &t->w.view
                                                     : &t->x.view;

    fake_call_init(call, &t->lab->host, names[t->op][g->spatial - 1]);
    if (t->op == TO_X)
        fake_call_value(call, hob_value_i64s(t->x.view.shape, 4));
    else
        fake_call_view(call, t->op == TRANSPOSED ? &t->y.view : &t->x.view);
    if (t->op == TO_WEIGHT)
        fake_call_value(call, hob_value_i64s(t->w.view.shape, 4));
    else
        fake_call_view(call, &t->w.view);
    if (t->op >= TO_X)
        fake_call_view(call, &t->y.view);
    else if (t->with_bias)
        fake_call_view(call, &t->bias.view);
    else
        fake_call_value(call, hob_none());
    add_list(call, g, g->stride);
    add_list(call, g, g->padding);
    if (t->op == TRANSPOSED)
        add_list(call, g, g->more);
    add_list(call, g, g->dilation);
    fake_call_value(call, hob_i64(g->groups));
    fake_call_result(call, dtype, to->rank, to->shape);
    ck_assert_int_eq(lab_run(t->lab, call, &flex_conv_entries), HOB_OK);
}

static void close_trial(struct trial *t)
{
    fake_call_release(&t->call);
    lab_tensor_release(&t->x);
    lab_tensor_release(&t->w);
    lab_tensor_release(&t->y);
    lab_tensor_release(&t->bias);
}

static void compare(struct trial *t, int number)
{
    const struct hob_view *out = &t->call.results[0].view;
    const int64_t count = hob_view_count(out);
    const int64_t plane = count / (out->shape[0] * out->shape[1]);
    double *side[3] = {lab_dense(&t->x.view), lab_dense(&t->w.view),
                       lab_dense(&t->y.view)};
    double *wanted = side[t->op == FORWARD ? 2 : t->op == TO_WEIGHT ? 1 : 0];

    for (int64_t i = 0; i < count; i++)
        wanted[i] = t->with_bias
                        ? lab_get_at(&t->bias.view, i / plane % out->shape[1])
                        : 0;
    naive(t->g, &t->s, t->op, side[0], side[1], side[2]);
    for (int64_t i = 0; i < count; i++) {
        const double want = lab_round(out->dtype, wanted[i]);
        const double got = lab_get_at(out, i);
        ck_assert_msg(lab_near(got, want, 0),
                      "%s, case %d, %s, element %d: %g, not %g",
                      t->call.call.op_name, number, hob_dtype_name(out->dtype),
                      (int)i, got, want);
    }
    for (int i = 0; i < 3; i++)
        free(side[i]);
}

static void try_all(struct lab *lab, const struct geometry *g, uint32_t dtype,
                    enum lab_layout layout, int number)
{
    for (int op = 0; op < OPS; op++) {
        struct trial t;

        if (!names[op][g->spatial - 1])
            continue;
        open_trial(&t, lab, g, op, dtype, layout);
        run_trial(&t);
        compare(&t, number);
        close_trial(&t);
    }
}

START_TEST(test_conv_equals_naive)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++) {
            if (cases[_i].in == 40 && (isa < 2 || d > 1))
                continue; /* large: once is enough */
            try_all(&lab, &cases[_i], dtypes[d],
                    (enum lab_layout)((_i + d + isa) % LAB_LAYOUT_COUNT_), _i);
        }
        lab_close(&lab);
    }
}
END_TEST

static void random_geometry(struct lab *lab, struct geometry *g)
{
    memset(g, 0, sizeof(*g));
    g->spatial = (int)lab_random(lab, 1, 3);
    g->n = lab_random(lab, 1, 3);
    g->groups = lab_random(lab, 1, 3);
    g->in = lab_random(lab, 1, 5);
    g->out = lab_random(lab, 1, lab_random(lab, 0, 3) ? 5 : 20);
    for (int i = 0; i < 3; i++) {
        g->size[i] = g->kernel[i] = g->stride[i] = g->dilation[i] = 1;
        if (i + g->spatial < 3)
            continue;
        g->kernel[i] = lab_random(lab, 1, 4);
        g->stride[i] = lab_random(lab, 1, 3);
        g->dilation[i] = lab_random(lab, 1, 3);
        g->padding[i] = lab_random(lab, 0, 4);
        g->size[i] = lab_random(lab, 1, g->spatial == 1 ? 90 : 12);
        if (g->size[i] + 2 * g->padding[i] <
            g->dilation[i] * (g->kernel[i] - 1) + 1)
            g->size[i] = g->dilation[i] * (g->kernel[i] - 1) + 1;
        g->more[i] = g->stride[i] > 1 || g->dilation[i] > 1;
    }
}

/* Geometries that nobody thought of. */
START_TEST(test_conv_random_geometry)
{
    struct lab lab;
    struct geometry g;

    for (int isa = 0; lab_isas[isa]; isa++) {
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        lab.seed ^= (uint64_t)(_i + 1) << 32;
        for (int i = 0; i < 40; i++) {
            struct shapes s;

            random_geometry(&lab, &g);
            measure(&g, TRANSPOSED, &s);
            if (s.x[0] < 1 || s.x[1] < 1 || s.x[2] < 1)
                continue;
            try_all(&lab, &g, dtypes[i % 2],
                    (enum lab_layout)(i % LAB_LAYOUT_COUNT_), 1000 * _i + i);
        }
        lab_close(&lab);
    }
}
END_TEST

/* One infinity or NaN reaches the results that take it, and no other. */
START_TEST(test_conv_not_finite)
{
    static const struct geometry shapes[] = {
        {2, 2, 8, 20, 1, D2(12, 21), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1),
         NONE},
        {2, 1, 24, 20, 1, D2(14, 12), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1),
         NONE},
        {2, 1, 1, 1, 5, D2(12, 21), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1),
         NONE},
        {2, 1, 3, 7, 1, D2(9, 12), D2(2, 4), D2(2, 3), P2(1, 0), D2(1, 1),
         NONE},
    };
    const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int op = 0; op < OPS; op++)
            for (int v = 0; v < 3; v++) {
                struct trial t;

                open_trial(&t, &lab, &shapes[_i], op, HOB_DTYPE_F32,
                           LAB_CONTIGUOUS);
                for (int64_t i = 0; i < hob_view_count(&t.w.view); i++)
                    lab_set_at(&t.w.view, i,
                               (double)lab_random(&lab, 1, 3)); /* no 0 * inf */
                for (int64_t i = 0; i < hob_view_count(&t.y.view); i++)
                    lab_set_at(&t.y.view, i, (double)lab_random(&lab, 1, 3));
                lab_set_at(op == FORWARD || op == TO_WEIGHT ? &t.x.view
                                                            : &t.y.view,
                           5, values[v]);
                run_trial(&t);
                compare(&t, 100 + _i);
                close_trial(&t);
            }
        lab_close(&lab);
    }
}
END_TEST

/* Uniform numbers in f32: the error of a result is bounded by the sum of the
 * magnitudes of its products. */
START_TEST(test_conv_rounding)
{
    static const struct geometry shapes[] = {
        {2, 1, 400, 24, 1, D2(10, 11), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1),
         NONE},
        {2, 1, 30, 24, 1, D2(10, 11), D2(2, 3), D2(2, 1), P2(1, 1), D2(1, 1),
         NONE},
        {2, 1, 140, 3, 1, D2(7, 33), D2(3, 3), D2(1, 1), P2(1, 1), D2(1, 1),
         NONE},
    };
    double *side[3], *sizes[3];
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    for (int op = 0; op < OPS; op++) {
        struct trial t;
        struct hob_view *view[3] = {&t.x.view, &t.w.view, &t.y.view};
        const int to = op == FORWARD ? 2 : op == TO_WEIGHT ? 1 : 0;

        open_trial(&t, &lab, &shapes[_i], op, HOB_DTYPE_F32, LAB_MISALIGNED);
        for (int i = 0; i < 3; i++) {
            for (int64_t k = 0; k < hob_view_count(view[i]); k++)
                lab_set_at(view[i], k,
                           (double)lab_random(&lab, -999999, 999999) / 1e6);
            side[i] = lab_dense(view[i]);
            sizes[i] = lab_dense(view[i]);
            for (int64_t k = 0; k < hob_view_count(view[i]); k++) {
                sizes[i][k] = i == to ? 0 : fabs(sizes[i][k]);
                side[i][k] = i == to ? 0 : side[i][k];
            }
        }
        run_trial(&t);
        naive(t.g, &t.s, op, side[0], side[1], side[2]);
        naive(t.g, &t.s, op, sizes[0], sizes[1], sizes[2]);
        for (int64_t k = 0; k < hob_view_count(view[to]); k++) {
            const double got = lab_get_at(&t.call.results[0].view, k);
            ck_assert_msg(fabs(got - side[to][k]) <= 5e-7 * sizes[to][k],
                          "%s, element %d: %.9g, not %.9g of %.9g",
                          t.call.call.op_name, (int)k, got, side[to][k],
                          sizes[to][k]);
        }
        for (int i = 0; i < 3; i++) {
            free(side[i]);
            free(sizes[i]);
        }
        close_trial(&t);
    }
    lab_close(&lab);
}
END_TEST

/* Fractions, whose sums depend on the order. */
START_TEST(test_conv_same_bits_on_any_threads)
{
    static const struct geometry g = {2,        9,          17,       24,
                                      1,        D2(26, 27), D2(3, 3), D2(1, 1),
                                      P2(1, 1), D2(1, 1),   .list = 1};
    double *first[OPS] = {NULL};

    for (uint32_t workers = 0; workers < 4; workers += 3) {
        struct lab lab;

        ck_assert(lab_open(&lab, workers, NULL));
        for (int op = 0; op < OPS; op++) {
            struct trial t;
            struct hob_view *out;

            open_trial(&t, &lab, &g, op, HOB_DTYPE_F32, LAB_CONTIGUOUS);
            for (int64_t i = 0; i < hob_view_count(&t.w.view); i++)
                lab_set_at(&t.w.view, i, 1 / (double)lab_random(&lab, 3, 99));
            for (int64_t i = 0; i < hob_view_count(&t.y.view); i++)
                lab_set_at(&t.y.view, i, 1 / (double)lab_random(&lab, 3, 99));
            run_trial(&t);
            out = &t.call.results[0].view;
            if (!first[op])
                first[op] = lab_dense(out);
            for (int64_t i = 0; i < hob_view_count(out); i++)
                ck_assert_msg(lab_get_at(out, i) == first[op][i],
                              "%s with %u threads, element %d",
                              t.call.call.op_name, workers, (int)i);
            close_trial(&t);
        }
        lab_close(&lab);
    }
    for (int op = 0; op < OPS; op++)
        free(first[op]);
}
END_TEST

/* A stride beyond all sizes has few phases; a strip out of all proportion is
 * an error, not a crash. */
START_TEST(test_conv_extremes)
{
    static const struct geometry wide = {2,        1,        1,        1,
                                         1,        D2(2, 2), D2(1, 1), D2(1, 1),
                                         P2(0, 0), D2(1, 1), P2(0, 0), 2};
    struct geometry g = wide;
    struct trial t;
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    g.stride[1] = g.stride[2] = INT32_MAX;
    try_all(&lab, &g, HOB_DTYPE_F32, LAB_CONTIGUOUS, 0);
    g.kernel[1] = g.kernel[2] = 2;
    g.dilation[1] = g.dilation[2] = 2000000000;
    g.padding[1] = g.padding[2] = 1000000000;
    g.size[1] = g.size[2] = 1;
    open_trial(&t, &lab, &g, FORWARD, HOB_DTYPE_F32, LAB_CONTIGUOUS);
    ck_assert_int_eq(t.s.y[1], 1);
    fake_call_init(&t.call, &lab.host, "conv2d");
    fake_call_view(&t.call, &t.x.view);
    fake_call_view(&t.call, &t.w.view);
    fake_call_value(&t.call, hob_none());
    add_list(&t.call, &g, g.stride);
    add_list(&t.call, &g, g.padding);
    add_list(&t.call, &g, g.dilation);
    fake_call_value(&t.call, hob_i64(1));
    fake_call_result(&t.call, HOB_DTYPE_F32, 4, t.y.view.shape);
    ck_assert_int_eq(lab_run(&lab, &t.call, &flex_conv_entries),
                     HOB_ERR_MEMORY);
    close_trial(&t);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv");
    TCase *tc = tcase_create("conv");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_conv_equals_naive, 0, CASES);
    tcase_add_loop_test(tc, test_conv_random_geometry, 0, 4);
    tcase_add_loop_test(tc, test_conv_not_finite, 0, 4);
    tcase_add_loop_test(tc, test_conv_rounding, 0, 3);
    tcase_add_test(tc, test_conv_same_bits_on_any_threads);
    tcase_add_test(tc, test_conv_extremes);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
