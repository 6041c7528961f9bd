/* SPDX-License-Identifier: Apache-2.0 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/*
 * Convolution, pooling, losses and norms against direct loops in double. The
 * inputs are f64, so the bound is some rounding errors of sums of a few
 * hundred products.
 */
static const double bound = 1e-12;

enum { MOST = 4096 };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

static void fill(double *out, int64_t count, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(2654435761) + 1;

    for (int64_t i = 0; i < count; i++)
        out[i] = op_random(&state);
}

static int64_t product(const int64_t *sizes, int count)
{
    int64_t total = 1;

    for (int i = 0; i < count; i++)
        total *= sizes[i];
    return total;
}

/* ---- convolution ---- */

struct conv {
    int64_t x[4], weight[4], stride[2], padding[2], dilation[2], groups;
};

static const struct conv convs[] = {
    {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{2, 3, 5, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{2, 4, 6, 5}, {6, 2, 3, 2}, {2, 1}, {0, 1}, {1, 2}, 2},
    {{1, 4, 7, 7}, {4, 1, 3, 3}, {3, 2}, {2, 2}, {2, 1}, 4},
    /* The stride passes over the last rows and columns. */
    {{1, 2, 6, 8}, {3, 2, 1, 3}, {4, 3}, {0, 0}, {1, 1}, 1},
    {{0, 2, 4, 4}, {3, 2, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{2, 2, 4, 4}, {0, 2, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
};

static void conv_out(const struct conv *c, int64_t out[4])
{
    out[0] = c->x[0];
    out[1] = c->weight[0];
    for (int i = 0; i < 2; i++)
        out[2 + i] = (c->x[2 + i] + 2 * c->padding[i] -
                      c->dilation[i] * (c->weight[2 + i] - 1) - 1) /
                         c->stride[i] +
                     1;
}

/*
 * Visit every product x * weight of the convolution: with GRAD NULL add it to
 * Y, else add grad * weight to DX and grad * x to DW.
 */
static void conv_loop(const struct conv *c, const double *x, const double *w,
                      double *y, const double *grad, double *dx, double *dw)
{
    int64_t out[4], cg = c->weight[1], og = c->weight[0] / c->groups;

    conv_out(c, out);
    for (int64_t n = 0; n < out[0]; n++)
        for (int64_t o = 0; o < out[1]; o++)
            for (int64_t place = 0; place < out[2] * out[3]; place++)
                for (int64_t tap = 0; tap < product(c->weight + 1, 3); tap++) {
                    int64_t kw = tap % c->weight[3];
                    int64_t kh = tap / c->weight[3] % c->weight[2];
                    int64_t ci = tap / c->weight[3] / c->weight[2];
                    int64_t row = place / out[3] * c->stride[0] +
                                  kh * c->dilation[0] - c->padding[0];
                    int64_t column = place % out[3] * c->stride[1] +
                                     kw * c->dilation[1] - c->padding[1];
                    int64_t at = ((n * out[1] + o) * out[2] * out[3]) + place;
                    int64_t xi, wi = o * product(c->weight + 1, 3) + tap;
                    if (row < 0 || row >= c->x[2] || column < 0 ||
                        column >= c->x[3])
                        continue;
                    xi = ((n * c->x[1] + o / og * cg + ci) * c->x[2] + row) *
                             c->x[3] +
                         column;
                    if (!grad) {
                        y[at] += x[xi] * w[wi];
                    } else {
                        dx[xi] += grad[at] * w[wi];
                        dw[wi] += grad[at] * x[xi];
                    }
                }
}

static void check_conv(const struct conv *c)
{
    static double x[MOST], w[MOST], b[MOST], g[MOST], y[MOST], dx[MOST],
        dw[MOST];
    int64_t out[4], x_count = product(c->x, 4), y_count;
    int64_t w_count = product(c->weight, 4);
    hob_tensor *tx, *tw, *tb, *tg;

    conv_out(c, out);
    y_count = product(out, 4);
    fill(x, x_count, 1);
    fill(w, w_count, 2);
    fill(b, out[1], 3);
    fill(g, y_count, 4);
    memset(dx, 0, sizeof(dx));
    memset(dw, 0, sizeof(dw));
    for (int64_t i = 0; i < y_count; i++)
        y[i] = b[i / (out[2] * out[3]) % out[1]];
    conv_loop(c, x, w, y, NULL, NULL, NULL);
    conv_loop(c, x, w, NULL, g, dx, dw);
    tx = op_tensor(&f, HOB_DTYPE_F64, x, c->x, 4);
    tw = op_tensor(&f, HOB_DTYPE_F64, w, c->weight, 4);
    tb = op_vector(&f, HOB_DTYPE_F64, b, out[1]);
    tg = op_tensor(&f, HOB_DTYPE_F64, g, out, 4);
    op_check(&f, "conv2d",
             hob_conv2d(f.scope, tx, tw, tb, c->stride, 2, c->padding, 2,
                        c->dilation, 2, c->groups),
             y, y_count, bound);
    op_check(&f, "conv2d_x_backward",
             hob_conv2d_x_backward(f.scope, c->x, 4, tw, tg, c->stride, 2,
                                   c->padding, 2, c->dilation, 2, c->groups),
             dx, x_count, bound);
    op_check(&f, "conv2d_weight_backward",
             hob_conv2d_weight_backward(f.scope, tx, c->weight, 4, tg,
                                        c->stride, 2, c->padding, 2,
                                        c->dilation, 2, c->groups),
             dw, w_count, bound);
}

START_TEST(test_bodies_nn_convolution)
{
    if (!on_device(_i))
        return;
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++)
        check_conv(&convs[i]);
}
END_TEST

/* ---- pooling ---- */

struct pool {
    int64_t x[4], size[2], stride[2], padding[2], dilation[2];
    int ceil;
};

static const struct pool pools[] = {
    {{1, 1, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0},
    {{2, 3, 5, 6}, {3, 2}, {1, 2}, {1, 1}, {1, 1}, 0},
    {{2, 1, 6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
    /* The third window would hold padding only. */
    {{1, 2, 3, 3}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 1},
    {{1, 1, 7, 5}, {3, 2}, {3, 4}, {0, 0}, {1, 1}, 1},
    {{1, 2, 7, 7}, {3, 3}, {2, 1}, {1, 2}, {2, 2}, 0},
    {{1, 1, 2, 2}, {3, 3}, {2, 2}, {2, 2}, {1, 1}, 1},
    {{0, 1, 4, 4}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 0},
};

static void pool_out(const struct pool *p, int64_t out[4])
{
    out[0] = p->x[0];
    out[1] = p->x[1];
    for (int i = 0; i < 2; i++) {
        int64_t room = p->x[2 + i] + 2 * p->padding[i] -
                       p->dilation[i] * (p->size[i] - 1) - 1;
        out[2 + i] =
            (room + (p->ceil ? p->stride[i] - 1 : 0)) / p->stride[i] + 1;
        if ((out[2 + i] - 1) * p->stride[i] >= p->x[2 + i] + p->padding[i])
            out[2 + i]--;
    }
}

/* What each window holds. */
struct windows {
    double most[MOST], where[MOST], sum[MOST], with_pad[MOST], without[MOST];
};

static void pool_window(const struct pool *p, const double *plane, int64_t row,
                        int64_t column, struct windows *w, int64_t at)
{
    w->most[at] = -INFINITY;
    w->where[at] = -1;
    w->sum[at] = w->with_pad[at] = w->without[at] = 0;
    for (int64_t tap = 0; tap < p->size[0] * p->size[1]; tap++) {
        int64_t r = row + tap / p->size[1] * p->dilation[0];
        int64_t c = column + tap % p->size[1] * p->dilation[1];
        /* Behind the declared padding nothing counts. */
        if (r < p->x[2] + p->padding[0] && c < p->x[3] + p->padding[1])
            w->with_pad[at]++;
        if (r < 0 || r >= p->x[2] || c < 0 || c >= p->x[3])
            continue;
        w->without[at]++;
        w->sum[at] += plane[r * p->x[3] + c];
        if (plane[r * p->x[3] + c] > w->most[at]) {
            w->most[at] = plane[r * p->x[3] + c];
            w->where[at] = (double)(r * p->x[3] + c);
        }
    }
}

static void pool_loop(const struct pool *p, const double *x,
                      const int64_t out[4], struct windows *w)
{
    for (int64_t plane = 0; plane < out[0] * out[1]; plane++)
        for (int64_t place = 0; place < out[2] * out[3]; place++)
            pool_window(p, x + plane * p->x[2] * p->x[3],
                        place / out[3] * p->stride[0] - p->padding[0],
                        place % out[3] * p->stride[1] - p->padding[1], w,
                        plane * out[2] * out[3] + place);
}

static void check_max_pool(const struct pool *p, hob_tensor *x,
                           const int64_t out[4], const struct windows *w)
{
    static double g[MOST], dx[MOST];
    int64_t count = product(out, 4);
    hob_tensor *values = NULL, *indices = NULL;
    hob_tensor *alone = hob_max_pool2d(f.scope, x, p->size, 2, p->stride, 2,
                                       p->padding, 2, p->dilation, 2, p->ceil);

    (void)hob_max_pool2d_with_indices(f.scope, x, p->size, 2, p->stride, 2,
                                      p->padding, 2, p->dilation, 2, p->ceil,
                                      HOB_DTYPE_I64, &values, &indices);
    op_check(&f, "max_pool2d", alone, w->most, count, 0);
    op_check(&f, "max_pool2d values", values, w->most, count, 0);
    op_check(&f, "max_pool2d indices", indices, w->where, count, 0);
    fill(g, count, 5);
    memset(dx, 0, sizeof(dx));
    for (int64_t i = 0; i < count; i++)
        dx[i / (out[2] * out[3]) * p->x[2] * p->x[3] + (int64_t)w->where[i]] +=
            g[i];
    op_check(&f, "max_pool2d_backward",
             hob_max_pool2d_backward(f.scope, p->x, 4,
                                     op_tensor(&f, HOB_DTYPE_F64, g, out, 4),
                                     indices),
             dx, product(p->x, 4), bound);
    op_check(&f, "max_pool2d_x_backward",
             hob_max_pool2d_x_backward(
                 f.scope, x, op_tensor(&f, HOB_DTYPE_F64, g, out, 4), p->size,
                 2, p->stride, 2, p->padding, 2, p->dilation, 2, p->ceil),
             dx, product(p->x, 4), bound);
}

/* The gradient through the loops: of each x a unit step. */
static void avg_gradient(const struct pool *p, const int64_t out[4],
                         const double *g, int includes, double *dx)
{
    static struct windows w;
    static double unit[MOST];
    int64_t x_count = product(p->x, 4), count = product(out, 4);

    for (int64_t k = 0; k < x_count; k++) {
        memset(unit, 0, sizeof(unit));
        unit[k] = 1;
        pool_loop(p, unit, out, &w);
        dx[k] = 0;
        for (int64_t i = 0; i < count; i++)
            dx[k] +=
                g[i] * w.sum[i] / (includes ? w.with_pad[i] : w.without[i]);
    }
}

static void check_avg_pool(const struct pool *p, hob_tensor *x,
                           const int64_t out[4], const struct windows *w,
                           int includes)
{
    static double y[MOST], g[MOST], dx[MOST];
    int64_t count = product(out, 4);

    for (int64_t i = 0; i < count; i++)
        y[i] = w->sum[i] / (includes ? w->with_pad[i] : w->without[i]);
    op_check(&f, "avg_pool2d",
             hob_avg_pool2d(f.scope, x, p->size, 2, p->stride, 2, p->padding, 2,
                            includes, p->ceil),
             y, count, bound);
    fill(g, count, 6);
    avg_gradient(p, out, g, includes, dx);
    op_check(&f, "avg_pool2d_backward",
             hob_avg_pool2d_backward(
                 f.scope, p->x, 4, op_tensor(&f, HOB_DTYPE_F64, g, out, 4),
                 p->size, 2, p->stride, 2, p->padding, 2, includes, p->ceil),
             dx, product(p->x, 4), bound);
}

START_TEST(test_bodies_nn_pooling)
{
    static struct windows w;
    static double x[MOST];

    if (!on_device(_i))
        return;
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        const struct pool *p = &pools[i];
        int64_t out[4];
        hob_tensor *t;
        pool_out(p, out);
        fill(x, product(p->x, 4), 7);
        t = op_tensor(&f, HOB_DTYPE_F64, x, p->x, 4);
        pool_loop(p, x, out, &w);
        check_max_pool(p, t, out, &w);
        if (p->dilation[0] != 1)
            continue;
        check_avg_pool(p, t, out, &w, 0);
        check_avg_pool(p, t, out, &w, 1);
    }
}
END_TEST

/* ---- rows ---- */

enum { ROWS = 5, WIDTH = 7 };

static const int64_t rows_shape[] = {ROWS, WIDTH};

START_TEST(test_bodies_nn_softmax_and_its_loss)
{
    double x[ROWS * WIDTH], soft[ROWS * WIDTH], logs[ROWS * WIDTH];
    double loss = 0, dx[ROWS * WIDTH], classes[ROWS] = {0, 6, 3, 3, 1};
    hob_tensor *t, *targets, *one;

    if (!on_device(_i))
        return;
    fill(x, ROWS * WIDTH, 8);
    x[3] = 1000; /* overflows without the shift */
    for (int r = 0; r < ROWS; r++) {
        double most = -INFINITY, total = 0;
        for (int c = 0; c < WIDTH; c++)
            most = fmax(most, x[r * WIDTH + c]);
        for (int c = 0; c < WIDTH; c++)
            total += exp(x[r * WIDTH + c] - most);
        for (int c = 0; c < WIDTH; c++) {
            int i = r * WIDTH + c;
            logs[i] = x[i] - most - log(total);
            soft[i] = exp(x[i] - most) / total;
            dx[i] = (soft[i] - (c == (int)classes[r])) * 3 / ROWS;
        }
        loss -= logs[r * WIDTH + (int)classes[r]] / ROWS;
    }
    t = op_tensor(&f, HOB_DTYPE_F64, x, rows_shape, 2);
    targets = op_vector(&f, HOB_DTYPE_I64, classes, ROWS);
    one = hob_sum(f.scope, op_vector(&f, HOB_DTYPE_F64, (double[]){3}, 1));
    op_check(&f, "softmax", hob_softmax(f.scope, t, 1), soft, ROWS * WIDTH,
             bound);
    op_check(&f, "log_softmax", hob_log_softmax(f.scope, t, -1), logs,
             ROWS * WIDTH, bound);
    op_check(&f, "cross_entropy", hob_cross_entropy(f.scope, t, targets), &loss,
             1, bound);
    op_check(&f, "cross_entropy_backward",
             hob_cross_entropy_backward(f.scope, t, targets, one), dx,
             ROWS * WIDTH, bound);
    /* Nothing but -inf has no softmax. */
    t = op_vector(&f, HOB_DTYPE_F64, (double[]){-INFINITY, -INFINITY}, 2);
    op_check(&f, "softmax -inf", hob_softmax(f.scope, t, 0),
             (double[]){NAN, NAN}, 2, 0);
}
END_TEST

/* Rows of which the invocations of a group do not hold all: softmax and norm of
 * numbers that bf16 has, along both dimensions. */
START_TEST(test_bodies_nn_long_rows)
{
    enum { LONG = 40000, COUNT = 2, ALL = COUNT * LONG };
    static const struct {
        hob_dtype dtype;
        double within;
    } kinds[] = {{HOB_DTYPE_F32, 2e-5}, {HOB_DTYPE_BF16, 1e-2}};
    static double x[ALL], soft[ALL], logs[ALL], norm[ALL];

    if (!on_device(_i))
        return;
    fill(x, ALL, 31);
    for (int i = 0; i < ALL; i++)
        x[i] = i < 36000 && i % 9 ? -INFINITY : rint(64 * x[i]) / 8;
    for (int r = 0; r < COUNT; r++) {
        double *row = x + r * LONG, sum = 0, mean = 0, square = 0;

        for (int i = 0; i < LONG; i++) {
            sum += exp(row[i] - 8);
            mean += row[i] / LONG;
        }
        for (int i = 0; i < LONG; i++)
            square += (row[i] - mean) * (row[i] - mean) / LONG;
        for (int i = 0; i < LONG; i++) {
            soft[r * LONG + i] = exp(row[i] - 8) / sum * LONG;
            logs[r * LONG + i] = row[i] - 8 - log(sum);
            norm[r * LONG + i] = (row[i] - mean) / sqrt(square);
        }
    }
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        hob_tensor *t =
            op_tensor(&f, kinds[k].dtype, x, (int64_t[]){COUNT, LONG}, 2);
        hob_tensor *turned =
            hob_contiguous(f.scope, hob_swap_dims(f.scope, t, 0, 1));

        op_check(
            &f, "softmax of long rows",
            hob_mul_scalar(f.scope, hob_softmax(f.scope, t, 1), hob_f64(LONG)),
            soft, ALL, kinds[k].within);
        op_check(
            &f, "softmax of long columns",
            hob_mul_scalar(
                f.scope,
                hob_swap_dims(f.scope, hob_softmax(f.scope, turned, 0), 0, 1),
                hob_f64(LONG)),
            soft, ALL, kinds[k].within);
        op_check(&f, "log_softmax of long rows", hob_log_softmax(f.scope, t, 1),
                 logs, ALL, kinds[k].within);
        op_check(&f, "layer_norm of long rows",
                 hob_layer_norm(f.scope, t, NULL, NULL, 0), norm, ALL,
                 kinds[k].within);
    }
    x[0] = NAN;
    op_check(
        &f, "softmax of a long row with NaN",
        hob_sum(f.scope,
                hob_softmax(f.scope, op_vector(&f, HOB_DTYPE_F32, x, LONG), 0)),
        (double[]){NAN}, 1, 0);
}
END_TEST

/* Rows that a GPU gives a group each, and a target that is none of them. */
START_TEST(test_bodies_nn_cross_entropy_of_long_rows)
{
    enum { LONG = 131, COUNT = 3 };
    static const double targets[COUNT] = {0, LONG - 1, 64};
    double x[COUNT * LONG], dx[COUNT * LONG], loss = 0;
    hob_tensor *logits, *labels, *one;

    if (!on_device(_i))
        return;
    fill(x, COUNT * LONG, 21);
    for (int r = 0; r < COUNT; r++) {
        double sum = 0;

        for (int i = 0; i < LONG; i++)
            sum += exp(x[r * LONG + i]);
        for (int i = 0; i < LONG; i++)
            dx[r * LONG + i] =
                2 * (exp(x[r * LONG + i]) / sum - (i == (int)targets[r])) /
                COUNT;
        loss += (log(sum) - x[r * LONG + (int)targets[r]]) / COUNT;
    }
    for (int d = 0; d < 2; d++) {
        const hob_dtype dtype = d ? HOB_DTYPE_F32 : HOB_DTYPE_F64;
        const double within = d ? 1e-5 : 1e-12;

        logits = op_tensor(&f, dtype, x, (int64_t[]){COUNT, LONG}, 2);
        labels = op_vector(&f, HOB_DTYPE_I32, targets, COUNT);
        one = op_tensor(&f, dtype, (double[]){2}, NULL, 0);
        op_check(&f, "loss of long rows",
                 hob_cross_entropy(f.scope, logits, labels), &loss, 1, within);
        op_check(&f, "gradient of long rows",
                 hob_cross_entropy_backward(f.scope, logits, labels, one), dx,
                 COUNT * LONG, within);
        labels = op_vector(&f, HOB_DTYPE_I64, (double[]){0, LONG, 1}, COUNT);
        (void)!hob_item(hob_cross_entropy(f.scope, logits, labels),
                        (double[]){0}, NULL);
        op_check_fails(&f, "a target too large", HOB_ERR_RANGE);
        labels = op_vector(&f, HOB_DTYPE_I64, (double[]){0, 0, -1}, COUNT);
        (void)hob_cross_entropy_backward(f.scope, logits, labels, one);
        op_check_fails(&f, "a target below 0", HOB_ERR_RANGE);
    }
}
END_TEST

START_TEST(test_bodies_nn_softmax_gradients)
{
    double y[ROWS * WIDTH], g[ROWS * WIDTH], ds[ROWS * WIDTH];
    double dl[ROWS * WIDTH];
    hob_tensor *ty, *tg;

    if (!on_device(_i))
        return;
    fill(y, ROWS * WIDTH, 9);
    fill(g, ROWS * WIDTH, 10);
    for (int r = 0; r < ROWS; r++) {
        double inner = 0, total = 0;
        for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++) {
            inner += y[i] * g[i];
            total += g[i];
        }
        for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++) {
            ds[i] = y[i] * (g[i] - inner);
            dl[i] = g[i] - exp(y[i]) * total;
        }
    }
    ty = op_tensor(&f, HOB_DTYPE_F64, y, rows_shape, 2);
    tg = op_tensor(&f, HOB_DTYPE_F64, g, rows_shape, 2);
    op_check(&f, "softmax_backward", hob_softmax_backward(f.scope, ty, tg, 1),
             ds, ROWS * WIDTH, bound);
    op_check(&f, "log_softmax_backward",
             hob_log_softmax_backward(f.scope, ty, tg, 1), dl, ROWS * WIDTH,
             bound);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        ds[i] = y[i] <= 0 ? 0 : g[i];
        dl[i] = g[i] * y[i] * (1 - y[i]);
    }
    op_check(&f, "relu_backward", hob_relu_backward(f.scope, ty, tg), ds,
             ROWS * WIDTH, 0);
    op_check(&f, "sigmoid_backward", hob_sigmoid_backward(f.scope, ty, tg), dl,
             ROWS * WIDTH, bound);
    for (int i = 0; i < ROWS * WIDTH; i++)
        ds[i] = g[i] * (0.5 * (1 + erf(y[i] * M_SQRT1_2)) +
                        y[i] * exp(-y[i] * y[i] / 2) / sqrt(2 * M_PI));
    op_check(&f, "gelu_backward", hob_gelu_backward(f.scope, ty, tg), ds,
             ROWS * WIDTH, bound);
}
END_TEST

START_TEST(test_bodies_nn_norms)
{
    enum { C = 3, PLANE = 4 };
    double x[ROWS * C * PLANE], y[ROWS * C * PLANE], w[WIDTH], b[WIDTH];
    double mean[C], variance[C];
    int64_t shape[] = {ROWS, C, PLANE};
    hob_tensor *t;

    if (!on_device(_i))
        return;
    fill(x, ROWS * C * PLANE, 11);
    fill(w, WIDTH, 12);
    fill(b, WIDTH, 13);
    fill(mean, C, 14);
    for (int c = 0; c < C; c++)
        variance[c] = 0.5 + c;
    for (int r = 0; r < ROWS; r++) {
        double m = 0, v = 0;
        for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++)
            m += x[i] / WIDTH;
        for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++)
            v += (x[i] - m) * (x[i] - m) / WIDTH;
        for (int c = 0; c < WIDTH; c++)
            y[r * WIDTH + c] =
                (x[r * WIDTH + c] - m) / sqrt(v + 1e-3) * w[c] + b[c];
    }
    op_check(&f, "layer_norm",
             hob_layer_norm(f.scope,
                            op_tensor(&f, HOB_DTYPE_F64, x, rows_shape, 2),
                            op_vector(&f, HOB_DTYPE_F64, w, WIDTH),
                            op_vector(&f, HOB_DTYPE_F64, b, WIDTH), 1e-3),
             y, ROWS * WIDTH, bound);
    for (int i = 0; i < ROWS * C * PLANE; i++) {
        int c = i / PLANE % C;
        y[i] = (x[i] - mean[c]) / sqrt(variance[c] + 1e-5) * w[c];
    }
    t = op_tensor(&f, HOB_DTYPE_F64, x, shape, 3);
    op_check(&f, "batch_norm",
             hob_batch_norm(f.scope, t, op_vector(&f, HOB_DTYPE_F64, w, C),
                            NULL, op_vector(&f, HOB_DTYPE_F64, mean, C),
                            op_vector(&f, HOB_DTYPE_F64, variance, C), 1e-5),
             y, ROWS * C * PLANE, bound);
}
END_TEST

/* Rows of one number, the greatest there are too, kept whole and in pieces: as
 * many equal shares, and nothing beside the mean. */
START_TEST(test_bodies_nn_equal_numbers)
{
    static const struct {
        hob_dtype dtype;
        double number, within;
        int64_t length;
    } rows[] = {{HOB_DTYPE_BF16, -3.3895313892515355e38, 0.02, 1000},
                {HOB_DTYPE_BF16, -3.3895313892515355e38, 0.02, 50000},
                {HOB_DTYPE_BF16, 3.3895313892515355e38, 0.02, 1000},
                {HOB_DTYPE_BF16, 3.3895313892515355e38, 0.02, 50000},
                {HOB_DTYPE_F16, 60000, 0.002, 1000},
                {HOB_DTYPE_F32, -3.4028234663852886e38, 1e-5, 1000},
                {HOB_DTYPE_F32, 1000, 1e-5, 1000}};

    if (!on_device(_i))
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t length = rows[i].length, shape[] = {2, length};
        double *expected = malloc((size_t)(2 * length) * sizeof(double));
        hob_tensor *x = hob_cast(
            f.scope,
            hob_full(f.scope, shape, 2, hob_f64(rows[i].number), f.device,
                     HOB_DTYPE_F64),
            rows[i].dtype);

        ck_assert_ptr_nonnull(expected);
        for (int64_t k = 0; k < 2 * length; k++)
            expected[k] = 1;
        op_check(&f, "softmax",
                 hob_mul_scalar(f.scope,
                                hob_cast(f.scope, hob_softmax(f.scope, x, 1),
                                         HOB_DTYPE_F64),
                                hob_f64((double)length)),
                 expected, 2 * length, rows[i].within);
        for (int64_t k = 0; k < 2 * length; k++)
            expected[k] = -log((double)length);
        op_check(&f, "log_softmax", hob_log_softmax(f.scope, x, 1), expected,
                 2 * length, rows[i].within);
        if (fabs(rows[i].number) < 1e5) {
            for (int64_t k = 0; k < 2 * length; k++)
                expected[k] = 0;
            op_check(&f, "layer_norm",
                     hob_layer_norm(f.scope, x, NULL, NULL, 1e-5), expected,
                     2 * length, 0);
        }
        free(expected);
    }
}
END_TEST

/* Numbers of an image [images, channels, places], and for each channel. */
struct channels {
    int64_t images, channels, groups, places;
};

enum { CHANNELS_MOST = 3 * 2 * 4099 };

static double centred_of(const double *x, const double *mean, int64_t i,
                         const struct channels *n)
{
    return x[i] - mean[i / n->places % n->channels];
}

/* x normalized by group, times w, plus b. */
static void group_norm_of(const double *x, const double *w, const double *b,
                          const struct channels *n, double *out)
{
    const int64_t length = n->channels / n->groups * n->places;

    for (int64_t row = 0; row < n->images * n->groups; row++) {
        double mean = 0, square = 0;

        for (int64_t i = row * length; i < (row + 1) * length; i++)
            mean += x[i] / (double)length;
        for (int64_t i = row * length; i < (row + 1) * length; i++)
            square += (x[i] - mean) * (x[i] - mean) / (double)length;
        for (int64_t i = row * length; i < (row + 1) * length; i++) {
            const int64_t c = i / n->places % n->channels;

            out[i] = (x[i] - mean) / sqrt(square + 1e-3) * w[c] + b[c];
        }
    }
}

/* Vectors that end with a channel and do not, sums in parts and whole. */
START_TEST(test_bodies_nn_channels)
{
    static const struct channels sizes[] = {
        {1, 1, 1, 1}, {3, 4, 2, 7}, {2, 6, 3, 64}, {3, 2, 1, 4099}};
    static const struct {
        hob_dtype dtype;
        double within;
    } kinds[] = {
        {HOB_DTYPE_F64, 1e-11}, {HOB_DTYPE_F32, 2e-5}, {HOB_DTYPE_BF16, 0.02}};
    static double x[CHANNELS_MOST], g[CHANNELS_MOST], y[CHANNELS_MOST];
    double w[8], b[8], mean[8], variance[8], total[8], moment[8];

    if (!on_device(_i))
        return;
    for (size_t at = 0; at < 3 * sizeof(sizes) / sizeof(sizes[0]); at++) {
        const struct channels *n = &sizes[at / 3];
        const hob_dtype dtype = kinds[at % 3].dtype;
        const double within = kinds[at % 3].within;
        const int64_t shape[] = {n->images, n->channels, n->places};
        const int64_t count = n->images * n->channels * n->places;
        const int c_count = (int)n->channels;
        hob_tensor *tx, *tg, *tw, *tb, *tm, *d_x, *d_total, *d_moment;

        /* Numbers that every dtype has. */
        fill(x, (int)count, 31);
        fill(g, (int)count, 32);
        fill(w, c_count, 33);
        fill(b, c_count, 34);
        fill(mean, c_count, 35);
        for (int64_t i = 0; i < count; i++) {
            x[i] = round(x[i] * 64) / 64;
            g[i] = round(g[i] * 64) / 64;
        }
        for (int c = 0; c < c_count; c++) {
            w[c] = round(w[c] * 64) / 64;
            b[c] = round(b[c] * 64) / 64;
            mean[c] = round(mean[c] * 64) / 64;
            variance[c] = 0.5 + c;
            total[c] = moment[c] = 0;
        }
        tx = op_tensor(&f, dtype, x, shape, 3);
        tg = op_tensor(&f, dtype, g, shape, 3);
        tw = op_vector(&f, dtype, w, c_count);
        tb = op_vector(&f, dtype, b, c_count);
        tm = op_vector(&f, dtype, mean, c_count);
        for (int64_t i = 0; i < count; i++) {
            const int c = (int)(i / n->places % n->channels);

            y[i] = centred_of(x, mean, i, n) / sqrt(variance[c] + 1e-3) * w[c] +
                   b[c];
            total[c] += g[i];
            moment[c] += g[i] * centred_of(x, mean, i, n);
        }
        op_check(&f, "batch_norm",
                 hob_batch_norm(f.scope, tx, tw, tb, tm,
                                op_vector(&f, dtype, variance, c_count), 1e-3),
                 y, count, within);
        ck_assert_int_eq(hob_batch_norm_backward(f.scope, tx, tm, tw, tg, &d_x,
                                                 &d_total, &d_moment),
                         HOB_OK);
        for (int64_t i = 0; i < count; i++)
            y[i] = g[i] * w[i / n->places % n->channels];
        op_check(&f, "d_x", d_x, y, count, within);
        op_check(&f, "total", d_total, total, c_count, within);
        op_check(&f, "moment", d_moment, moment, c_count, within);
        group_norm_of(x, w, b, n, y);
        op_check(&f, "group_norm",
                 hob_group_norm(f.scope, tx, n->groups, tw, tb, 1e-3), y, count,
                 within);
    }
}
END_TEST

/* The gradients of a norm of ROWS rows: d_x, then d_weight, then d_bias. */
static void norm_gradients(const double *x, const double *w, const double *g,
                           int rows, int width, int is_centred, double *out[3])
{
    for (int c = 0; c < width; c++)
        out[1][c] = out[2][c] = 0;
    for (int r = 0; r < rows; r++, x += width, g += width) {
        double mean = 0, square = 0, plain = 0, turned = 0, scale;

        for (int c = 0; c < width && is_centred; c++)
            mean += x[c] / width;
        for (int c = 0; c < width; c++)
            square += (x[c] - mean) * (x[c] - mean) / width;
        scale = 1 / sqrt(square + 1e-3);
        for (int c = 0; c < width; c++) {
            const double y = (x[c] - mean) * scale, h = g[c] * w[c];

            out[1][c] += g[c] * y;
            out[2][c] += g[c];
            plain += is_centred ? h / width : 0;
            turned += h * y / width;
        }
        for (int c = 0; c < width; c++)
            out[0][r * width + c] =
                scale * (g[c] * w[c] - plain - (x[c] - mean) * scale * turned);
    }
}

/* Rows of one group's lanes, of several elements each, and long ones; many
 * rows, whose sums are made in parts. */
START_TEST(test_bodies_nn_norm_gradients)
{
    static const int sizes[][2] = {{ROWS, 1},    {ROWS, 7},  {ROWS, 300},
                                   {ROWS, 5000}, {9000, 64}, {300, 128}};
    static const struct {
        hob_dtype dtype;
        double within;
    } types[] = {
        {HOB_DTYPE_F64, 1e-11}, {HOB_DTYPE_F32, 1e-5}, {HOB_DTYPE_BF16, 2e-2}};
    enum { ELEMENTS = 9000 * 64, WIDEST = 5000, SIZES = 6, TYPES = 3 };
    static double x[ELEMENTS], g[ELEMENTS], w[WIDEST];
    static double d_x[ELEMENTS], d_w[WIDEST], d_b[WIDEST];
    double *out[3] = {d_x, d_w, d_b};

    if (!on_device(_i))
        return;
    for (int i = 0; i < SIZES * TYPES; i++) {
        const int rows = sizes[i / TYPES][0], width = sizes[i / TYPES][1];
        const int64_t shape[] = {rows, width};
        const hob_dtype dtype = types[i % TYPES].dtype;
        const double within = types[i % TYPES].within;
        hob_tensor *tx, *tw, *tg, *dx, *dw, *db;

        fill(x, rows * width, 21);
        fill(g, rows * width, 22);
        fill(w, width, 23);
        for (int k = 0; k < rows * width; k++) { /* what bf16 holds */
            x[k] = round(x[k] * 64) / 64;
            g[k] = round(g[k] * 64) / 64;
        }
        for (int c = 0; c < width; c++)
            w[c] = round(w[c] * 64) / 64;
        tx = op_tensor(&f, dtype, x, shape, 2);
        tg = op_tensor(&f, dtype, g, shape, 2);
        tw = op_vector(&f, dtype, w, width);
        norm_gradients(x, w, g, rows, width, 1, out);
        ck_assert_int_eq(
            hob_layer_norm_backward(f.scope, tx, tw, tg, 1e-3, &dx, &dw, &db),
            HOB_OK);
        op_check(&f, "layer_norm's d_x", dx, d_x, rows * width, within);
        op_check(&f, "layer_norm's d_weight", dw, d_w, width, within);
        op_check(&f, "layer_norm's d_bias", db, d_b, width, within);
        for (int c = 0; c < width; c++)
            w[c] = 1;
        norm_gradients(x, w, g, rows, width, 0, out);
        ck_assert_int_eq(
            hob_rms_norm_backward(f.scope, tx, NULL, tg, 1e-3, &dx, &dw),
            HOB_OK);
        op_check(&f, "rms_norm's d_x", dx, d_x, rows * width, within);
        op_check(&f, "rms_norm's d_weight", dw, d_w, width, within);
    }
}
END_TEST

START_TEST(test_bodies_nn_linear_and_embedding)
{
    enum { IN = 7, OUT = 3 };
    double x[ROWS * IN], w[IN * OUT], b[OUT], y[ROWS * OUT];
    double picks[] = {6, 0, 6, 2}, rows[4 * OUT], dw[IN * OUT] = {0};
    int64_t shape[] = {ROWS, 1, IN}, weight[] = {IN, OUT}, square[] = {2, 2};
    int64_t picked[] = {2, 2, OUT};
    hob_tensor *tw, *indices;

    if (!on_device(_i))
        return;
    fill(x, ROWS * IN, 15);
    fill(w, IN * OUT, 16);
    fill(b, OUT, 17);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < OUT; c++) {
            y[r * OUT + c] = b[c];
            for (int k = 0; k < IN; k++)
                y[r * OUT + c] += x[r * IN + k] * w[k * OUT + c];
        }
    tw = op_tensor(&f, HOB_DTYPE_F64, w, weight, 2);
    op_check(&f, "linear",
             hob_linear(f.scope, op_tensor(&f, HOB_DTYPE_F64, x, shape, 3), tw,
                        op_vector(&f, HOB_DTYPE_F64, b, OUT)),
             y, ROWS * OUT, bound);
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < OUT; c++) {
            rows[i * OUT + c] = w[(int)picks[i] * OUT + c];
            dw[(int)picks[i] * OUT + c] += y[i * OUT + c];
        }
    indices = op_tensor(&f, HOB_DTYPE_I32, picks, square, 2);
    op_check(&f, "embedding", hob_embedding(f.scope, tw, indices), rows,
             4 * OUT, 0);
    op_check(&f, "embedding_backward",
             hob_embedding_backward(f.scope, tw, indices,
                                    op_tensor(&f, HOB_DTYPE_F64, y, picked, 3)),
             dw, IN * OUT, bound);
}
END_TEST

START_TEST(test_bodies_nn_adam)
{
    enum { N = 5 };
    const double step_and_rate[2] = {3, 0.1};
    double p[N], g[N], m[N], v[N], p1[N], m1[N], v1[N];
    hob_tensor *out[3] = {NULL, NULL, NULL};

    if (!on_device(_i))
        return;
    fill(p, N, 18);
    fill(g, N, 19);
    fill(m, N, 20);
    fill(v, N, 21);
    for (int i = 0; i < N; i++) {
        v[i] *= v[i];
        m1[i] = 0.9 * m[i] + 0.1 * g[i];
        v1[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
        p1[i] = p[i] - 0.1 * 0.01 * p[i] -
                0.1 * (m1[i] / (1 - pow(0.9, 3))) /
                    (sqrt(v1[i] / (1 - pow(0.99, 3))) + 1e-8);
    }
    for (int from_tensor = 0; from_tensor < 2; from_tensor++) {
        hob_tensor *now =
            from_tensor ? op_vector(&f, HOB_DTYPE_F64, step_and_rate, 2) : NULL;

        (void)hob_adam_step(f.scope, op_vector(&f, HOB_DTYPE_F64, p, N),
                            op_vector(&f, HOB_DTYPE_F64, g, N),
                            op_vector(&f, HOB_DTYPE_F64, m, N),
                            op_vector(&f, HOB_DTYPE_F64, v, N), now ? 77 : 3,
                            now ? 5 : 0.1, 0.9, 0.99, 1e-8, 0.01, now, &out[0],
                            &out[1], &out[2]);
        op_check(&f, "adam param", out[0], p1, N, bound);
        op_check(&f, "adam m", out[1], m1, N, bound);
        op_check(&f, "adam v", out[2], v1, N, bound);
    }
    for (int i = 0; i < N; i++)
        p1[i] = p[i] - 0.1 * (g[i] + 0.01 * p[i]);
    op_check(&f, "sgd",
             hob_sgd_step(f.scope, op_vector(&f, HOB_DTYPE_F64, p, N),
                          op_vector(&f, HOB_DTYPE_F64, g, N), 0.1, 0.01),
             p1, N, bound);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bodies_nn");
    TCase *tc = tcase_create("devices");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_bodies_nn_convolution, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_pooling, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_softmax_and_its_loss, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_long_rows, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_cross_entropy_of_long_rows, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_softmax_gradients, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_norms, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_equal_numbers, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_channels, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_norm_gradients, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_linear_and_embedding, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_nn_adam, 0, OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
