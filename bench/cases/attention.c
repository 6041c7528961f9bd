/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - C20: attention by the extension flash.attention, beside the
 * built-in op, plain ops and PyTorch; also its gradient.
 *
 * The inputs are query, key and value [batch, heads, length, width]. n: 0
 * whether later keys are hidden. The result is what attention gives, or the
 * gradient of the sum of its squares to the query.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CAUSAL };

/* ---- Hob ---- */

/* By its name: no header of the extension is needed. */
static hob_tensor *flash(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    const hob_value args[] = {hob_value_tensor(in[0]),
                              hob_value_tensor(in[1]),
                              hob_value_tensor(in[2]),
                              hob_value_tensor(NULL),
                              hob_none(),
                              hob_bool(c->n[CAUSAL] != 0)};

    return bench_call(scope, "flash.attention", args, 6);
}

static hob_tensor *built_in(hob_scope *scope, hob_tensor *const *in,
                            const struct bench_case *c)
{
    return hob_attention(scope, in[0], in[1], in[2], NULL, NULL, hob_none(),
                         hob_none(), c->n[CAUSAL] != 0);
}

/* Which scores are those of later keys. */
static hob_tensor *later(hob_scope *scope, hob_tensor *like, int64_t length)
{
    const int64_t column[2] = {length, 1};
    hob_device *device = hob_tensor_device(like);
    hob_tensor *order = hob_arange(scope, 0, length, 1, device, HOB_DTYPE_I32);

    return hob_greater(scope, order, hob_reshape(scope, order, column, 2));
}

static hob_tensor *plain(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    const int64_t *shape = c->in[0].shape;
    const double scale = 1 / sqrt((double)shape[3]);
    hob_tensor *scores =
        hob_matmul(scope, hob_mul_scalar(scope, in[0], hob_f64(scale)),
                   hob_swap_dims(scope, in[1], 2, 3));

    if (c->n[CAUSAL])
        scores =
            hob_mask_fill(scope, hob_move(scope, scores),
                          later(scope, in[0], shape[2]), hob_f64(-INFINITY));
    scores = hob_softmax(scope, hob_move(scope, scores), 3);
    return hob_matmul(scope, hob_move(scope, scores), in[2]);
}

/* The gradient of the sum of OUT's squares to the first input. */
static hob_tensor *gradient_of(hob_scope *scope, hob_tensor *out,
                               hob_tensor *leaf)
{
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *grad = NULL;
    hob_status st =
        hob_backward(scope, hob_mul(scope, out, out), 0, &grads, &error);

    if (!st)
        st = hob_grad(scope, leaf, grads, &grad, &error);
    if (st)
        grad =
            hob_scope_host(scope)->scope_fail(scope, st, "%s", error.message);
    hob_grads_free(grads);
    hob_error_release(&error);
    return grad;
}

static hob_tensor *flash_gradient(hob_scope *scope, hob_tensor *const *in,
                                  const struct bench_case *c)
{
    return gradient_of(scope, flash(scope, in, c), in[0]);
}

static hob_tensor *plain_gradient(hob_scope *scope, hob_tensor *const *in,
                                  const struct bench_case *c)
{
    return gradient_of(scope, plain(scope, in, c), in[0]);
}

/* ---- the reference: the first and the last head ---- */

/* One head in float64. Keys and values are turned, so that what is innermost
 * goes along the keys. */
struct head {
    int64_t length, width;
    double *turned_key, *turned_value; /* [width, length] */
    double *scores, *slopes;           /* [length], of one query */
};

/* OUT += FACTOR * IN */
BENCH_LOOP static void add_scaled(double *restrict out,
                                  const double *restrict in, double factor,
                                  int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] += factor * in[i];
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Set head->scores to the weights of KEYS keys for QUERY. */
static void weigh(struct head *head, const float *query, int64_t keys)
{
    const double scale = 1 / sqrt((double)head->width);
    double *scores = head->scores;
    double most = -INFINITY, sum = 0;

    memset(scores, 0, (size_t)head->length * sizeof(*scores));
    for (int64_t d = 0; d < head->width; d++)
        add_scaled(scores, head->turned_key + d * head->length,
                   scale * (double)query[d], keys);
    for (int64_t j = 0; j < keys; j++)
        most = scores[j] > most ? scores[j] : most;
    for (int64_t j = 0; j < keys; j++)
        sum += scores[j] = exp(scores[j] - most);
    for (int64_t j = 0; j < keys; j++)
        scores[j] /= sum;
}

/* Rows of attention from QUERY, of head->width numbers. */
static void attend(const struct bench_case *c, struct head *head,
                   const float *query, double *out)
{
    for (int64_t i = 0; i < head->length; i++) {
        const int64_t keys = c->n[CAUSAL] ? i + 1 : head->length;

        weigh(head, query + i * head->width, keys);
        for (int64_t d = 0; d < head->width; d++)
            out[i * head->width + d] =
                dot(head->scores, head->turned_value + d * head->length, keys);
    }
}

/* The gradient to the query. */
static void attend_back(const struct bench_case *c, struct head *head,
                        const float *query, double *out)
{
    const double scale = 1 / sqrt((double)head->width);
    double *slopes = head->slopes;

    for (int64_t i = 0; i < head->length; i++) {
        const int64_t keys = c->n[CAUSAL] ? i + 1 : head->length;
        double all;

        weigh(head, query + i * head->width, keys);
        memset(slopes, 0, (size_t)head->length * sizeof(*slopes));
        for (int64_t d = 0; d < head->width; d++) {
            const double *value = head->turned_value + d * head->length;

            add_scaled(slopes, value, 2 * dot(head->scores, value, keys), keys);
        }
        all = dot(head->scores, slopes, keys);
        for (int64_t j = 0; j < keys; j++)
            slopes[j] = head->scores[j] * (slopes[j] - all);
        for (int64_t d = 0; d < head->width; d++)
            out[i * head->width + d] =
                scale * dot(slopes, head->turned_key + d * head->length, keys);
    }
}

static void turn(const struct head *head, const float *from, double *to)
{
    for (int64_t i = 0; i < head->length; i++)
        for (int64_t d = 0; d < head->width; d++)
            to[d * head->length + i] = (double)from[i * head->width + d];
}

static void heads_all(const struct bench_case *c, const struct bench_array *in,
                      double *out, int is_back)
{
    const int64_t *shape = c->in[0].shape;
    const int64_t heads = shape[0] * shape[1], size = shape[2] * shape[3];
    double *room = calloc((size_t)(2 * size + 2 * shape[2]), sizeof(*room));
    struct head head = {.length = shape[2], .width = shape[3]};

    for (int64_t i = 0; i < c->out_count; i++)
        out[i] = NAN;
    if (!room)
        return;
    head.turned_key = room;
    head.turned_value = room + size;
    head.scores = room + 2 * size;
    head.slopes = head.scores + shape[2];
    for (int64_t h = 0; h<heads; h += heads> 1 ? heads - 1 : 1) {
        const float *query = bench_f32(&in[0]) + h * size;

        turn(&head, bench_f32(&in[1]) + h * size, head.turned_key);
        turn(&head, bench_f32(&in[2]) + h * size, head.turned_value);
        (is_back ? attend_back : attend)(c, &head, query, out + h * size);
    }
    free(room);
}

static void forward_all(const struct bench_case *c,
                        const struct bench_array *in, double *out)
{
    heads_all(c, in, out, 0);
}

static void gradient_all(const struct bench_case *c,
                         const struct bench_array *in, double *out)
{
    heads_all(c, in, out, 1);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define SHAPE(batch, heads, length, width)                                     \
    .in = {{F32, {batch, heads, length, width}, -2, 2},                        \
           {F32, {batch, heads, length, width}, -2, 2},                        \
           {F32, {batch, heads, length, width}, -2, 2}},                       \
    .tolerance = 1e-4,                                                         \
    .out_count = (int64_t)(batch) * (heads) * (length) * (width)
/* Memory: the result, and what each thread needs whatever the length. The op
 * attention does the same work; 0.95 of its speed is as fast as it is. */
#define FORWARD(label, batch, heads, length, width, causal, python)            \
    {                                                                          \
        .id = "C20", .name = label, SHAPE(batch, heads, length, width),        \
        .n = {causal}, .hob = flash,                                           \
        .ways = {{.who = "hob, the op attention", .hob = built_in}},           \
        .torch = "nn.attention(a, b, c, " python ")", .all = forward_all,      \
        .run_seconds = (length) > 1000 ? 0.35 : 0,                             \
        .flops = 4.0 * (batch) * (heads) * (length) * (length) * (width) /     \
                 (causal ? 2 : 1),                                             \
        .target = {.of = {{"torch", 1.7}, {"hob", 0.95}},                      \
                   .peak_bytes =                                               \
                       4.0 * (batch) * (heads) * (length) * (width) + 8e6},    \
        .note = "an extension, whose memory must not grow with the square of " \
                "the length; the first and the last head are checked"          \
    }
#define BACKWARD(label, batch, heads, length, width)                           \
    {                                                                          \
        .id = "C20", .name = label, SHAPE(batch, heads, length, width),        \
        .program = {.hob = flash_gradient,                                     \
                    .device = "autodiff(flex)",                                \
                    .is_tracked = 1},                                          \
        .ways = {{.who = "hob, plain ops",                                     \
                  .hob = plain_gradient,                                       \
                  .device = "autodiff(flex)",                                  \
                  .is_tracked = 1}},                                           \
        .torch_setup = "run = nn.attention_gradient(a, b, c)",                 \
        .torch = "run()", .is_training = 1, .all = gradient_all,               \
        .run_seconds = (length) > 1000 ? 0.6 : 0,                                \
        .flops = 12.0 * (batch) * (heads) * (length) * (length) * (width),     \
        .target = {                                                            \
            .of = {{"torch", 1}, {"hob", 1}}                                   \
        }                                                                      \
    }

static const struct bench_case cases[] = {
    {.id = "C20",
     .name = "8 x 8 x 256 x 64, plain ops",
     SHAPE(8, 8, 256, 64),
     .hob = plain,
     .torch = "nn.attention(a, b, c, False)",
     .all = forward_all,
     .flops = 4.0 * 8 * 8 * 256 * 256 * 64,
     .target = {.of = {{"torch", 1}}}},
    FORWARD("8 x 8 x 256 x 64", 8, 8, 256, 64, 0, "False"),
    FORWARD("8 x 8 x 256 x 64, causal", 8, 8, 256, 64, 1, "True"),
    FORWARD("1 x 8 x 4096 x 64", 1, 8, 4096, 64, 0, "False"),
    FORWARD("1 x 8 x 4096 x 64, causal", 1, 8, 4096, 64, 1, "True"),
    BACKWARD("8 x 8 x 256 x 64, gradient to the query", 8, 8, 256, 64),
    BACKWARD("1 x 8 x 4096 x 64, gradient to the query", 1, 8, 4096, 64),
    {.id = "C20",
     .name = "2 x 2 x 33 x 16, causal",
     SHAPE(2, 2, 33, 16),
     .n = {1},
     .hob = flash,
     .ways = {{.who = "hob, plain ops", .hob = plain},
              {.who = "hob, the op attention", .hob = built_in}},
     .all = forward_all,
     .is_smoke_only = 1},
    {.id = "C20",
     .name = "2 x 2 x 33 x 16, gradient to the query",
     SHAPE(2, 2, 33, 16),
     .program = {.hob = flash_gradient,
                 .device = "autodiff(flex)",
                 .is_tracked = 1},
     .ways = {{.who = "hob, plain ops",
               .hob = plain_gradient,
               .device = "autodiff(flex)",
               .is_tracked = 1}},
     .all = gradient_all,
     .is_smoke_only = 1},
};

const struct bench_family bench_attention = {cases,
                                             sizeof(cases) / sizeof(cases[0])};
