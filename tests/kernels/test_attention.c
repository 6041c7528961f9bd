/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention and attention_backward against plain loops in f64, in every
 * dtype, layout and instruction set. Numbers are sixteenths, so that f16 and
 * bf16 hold them; a tolerance is some units of the dtype's last place, as sums
 * of up to 300 products need.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-13
           : dtype == HOB_DTYPE_F32 ? 5e-6
           : dtype == HOB_DTYPE_F16 ? 2e-3
                                    : 1.6e-2;
}

/* Of lse and delta. */
static uint32_t wide_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 ? dtype : HOB_DTYPE_F32;
}

enum { MASK = 1, BIAS = 2, CAP = 4, CAUSAL = 8, OPTIONS = 16 };

/* Lead, queries, keys, width of keys, width of values. */
static const int64_t shapes[][5] = {
    {2, 5, 7, 3, 4},   {1, 1, 1, 1, 1}, {3, 33, 31, 8, 5}, {1, 130, 270, 16, 9},
    {2, 40, 3, 70, 1}, {2, 3, 0, 2, 2}, {0, 3, 3, 2, 2},   {2, 0, 4, 2, 3},
    {1, 7, 6, 0, 3},   {2, 6, 5, 4, 0}, {1, 600, 20, 4, 6}};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

struct trial {
    struct lab_tensor q, k, v, mask, bias, grad, lse, delta;
    int64_t lead, s, t, d, e;
    uint32_t options;
    double cap, scale;
    double *out, *sums;                 /* wanted: result and lse */
    double *d_q, *d_k, *d_v, *d_scores; /* wanted gradients */
};

static void fill(struct lab *lab, struct lab_tensor *tensor)
{
    for (int64_t i = 0; i < hob_view_count(&tensor->view); i++)
        lab_set_at(&tensor->view, i, (double)lab_random(lab, -32, 32) / 16);
}

static double at3(const struct hob_view *view, int64_t a, int64_t b, int64_t c)
{
    return lab_get(view, (int64_t[]){a, b, c});
}

/* In the first shape the mask and causal together hide whole rows; in those
 * with more queries than keys causal does. */
static int is_hidden(const struct trial *x, int64_t b, int64_t i, int64_t j)
{
    return ((x->options & CAUSAL) && j > i + x->t - x->s) ||
           ((x->options & MASK) && at3(&x->mask.view, b, 0, j) != 0);
}

/* The score, and in OUT_SLOPE the cap's slope. */
static double score_of(const struct trial *x, int64_t b, int64_t i, int64_t j,
                       double *out_slope)
{
    double sum = 0, t;

    for (int64_t c = 0; c < x->d; c++)
        sum += at3(&x->q.view, b, i, c) * at3(&x->k.view, b, j, c);
    sum *= x->scale;
    *out_slope = 1;
    if (x->options & CAP) {
        t = tanh(sum / x->cap);
        *out_slope = 1 - t * t;
        sum = x->cap * t;
    }
    if (x->options & BIAS)
        sum += lab_get(&x->bias.view, (int64_t[]){i, j});
    return sum;
}

/* Row I of batch entry B: weights into P. */
static void weigh(struct trial *x, int64_t b, int64_t i, double *p,
                  double *slopes)
{
    double max = -(double)INFINITY, sum = 0;

    for (int64_t j = 0; j < x->t; j++) {
        p[j] = is_hidden(x, b, i, j) ? -(double)INFINITY
                                     : score_of(x, b, i, j, &slopes[j]);
        max = p[j] > max ? p[j] : max;
    }
    for (int64_t j = 0; j < x->t; j++) {
        p[j] = isinf(p[j]) ? 0 : exp(p[j] - max);
        sum += p[j];
    }
    for (int64_t j = 0; j < x->t; j++)
        p[j] /= sum > 0 ? sum : 1;
    x->sums[b * x->s + i] = sum > 0 ? max + log(sum) : -(double)INFINITY;
}

static void reference_row(struct trial *x, int64_t b, int64_t i, double *p,
                          double *slopes)
{
    const int64_t row = b * x->s + i;
    double delta = 0;

    weigh(x, b, i, p, slopes);
    for (int64_t c = 0; c < x->e; c++) {
        double *to = &x->out[row * x->e + c];

        for (int64_t j = 0; j < x->t; j++)
            *to += p[j] * at3(&x->v.view, b, j, c);
        delta += *to * at3(&x->grad.view, b, i, c);
    }
    lab_set_at(&x->delta.view, row, delta);
    for (int64_t j = 0; j < x->t; j++) {
        double slope = -delta;

        for (int64_t c = 0; c < x->e; c++) {
            const double g = at3(&x->grad.view, b, i, c);

            slope += g * at3(&x->v.view, b, j, c);
            x->d_v[(b * x->t + j) * x->e + c] += p[j] * g;
        }
        slope *= p[j];
        x->d_scores[row * x->t + j] = slope;
        slope *= slopes[j] * x->scale;
        for (int64_t c = 0; p[j] != 0 && c < x->d; c++) {
            x->d_q[row * x->d + c] += slope * at3(&x->k.view, b, j, c);
            x->d_k[(b * x->t + j) * x->d + c] +=
                slope * at3(&x->q.view, b, i, c);
        }
    }
}

static double *room(int64_t count)
{
    double *out = calloc((size_t)count + 1, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    return out;
}

static void trial_init(struct lab *lab, struct trial *x, const int64_t *shape,
                       uint32_t dtype, uint32_t options, int layout)
{
    const int64_t lead = shape[0], s = shape[1], t = shape[2], d = shape[3],
                  e = shape[4];
    double *p = room(t), *slopes = room(t);

    *x = (struct trial){.lead = lead, .s = s, .t = t, .d = d, .e = e};
    x->options = options;
    x->cap = 1.5;
    x->scale = options & CAUSAL ? 0.375 : d ? 1 / sqrt((double)d) : 1;
#define TENSOR(name, type, rank, low, high, ...)                               \
    lab_tensor_init(lab, &x->name, type, rank, (int64_t[]){__VA_ARGS__},       \
                    (enum lab_layout)(layout++ % LAB_LAYOUT_COUNT_), low,      \
                    high)
    TENSOR(q, dtype, 3, 0, 0, lead, s, d);
    TENSOR(k, dtype, 3, 0, 0, lead, t, d);
    TENSOR(v, dtype, 3, 0, 0, lead, t, e);
    TENSOR(mask, HOB_DTYPE_BOOL, 3, 0, 1, lead, 1, t);
    TENSOR(bias, dtype, 2, 0, 0, s, t);
    TENSOR(grad, dtype, 3, 0, 0, lead, s, e);
#undef TENSOR
    lab_tensor_init(lab, &x->lse, wide_of(dtype), 3, (int64_t[]){lead, s, 1},
                    LAB_GAPS, 0, 0);
    lab_tensor_init(lab, &x->delta, wide_of(dtype), 3, (int64_t[]){lead, s, 1},
                    LAB_REVERSED, 0, 0);
    fill(lab, &x->q);
    fill(lab, &x->k);
    fill(lab, &x->v);
    fill(lab, &x->bias);
    fill(lab, &x->grad);
    x->out = room(lead * s * e);
    x->sums = room(lead * s);
    x->d_q = room(lead * s * d);
    x->d_k = room(lead * t * d);
    x->d_v = room(lead * t * e);
    x->d_scores = room(lead * s * t);
    for (int64_t b = 0; b < lead; b++)
        for (int64_t i = 0; i < s; i++)
            reference_row(x, b, i, p, slopes);
    for (int64_t i = 0; i < lead * s; i++)
        lab_set_at(&x->lse.view, i, x->sums[i]);
    free(p);
    free(slopes);
}

static void trial_release(struct trial *x)
{
    struct lab_tensor *const tensors[] = {
        &x->q, &x->k, &x->v, &x->mask, &x->bias, &x->grad, &x->lse, &x->delta};
    double *const numbers[] = {x->out, x->sums, x->d_q,
                               x->d_k, x->d_v,  x->d_scores};

    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++)
        lab_tensor_release(tensors[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        free(numbers[i]);
}

static void check(const struct trial *x, const struct fake_call *call,
                  uint32_t result, const double *wanted, double tolerance)
{
    const struct hob_view *view = &call->results[result].view;

    for (int64_t i = 0; i < hob_view_count(view); i++)
        ck_assert_msg(
            lab_near(lab_get_at(view, i), wanted[i], tolerance),
            "%s %s [%d,%d,%d,%d,%d] options %u result %u at %d: %.9g, "
            "not %.9g",
            call->call.op_name, hob_dtype_name(x->q.view.dtype), (int)x->lead,
            (int)x->s, (int)x->t, (int)x->d, (int)x->e, (unsigned)x->options,
            (unsigned)result, (int)i, lab_get_at(view, i), wanted[i]);
}

static void add_operands(struct fake_call *call, const struct trial *x)
{
    fake_call_view(call, &x->q.view);
    fake_call_view(call, &x->k.view);
    fake_call_view(call, &x->v.view);
    if (x->options & MASK)
        fake_call_view(call, &x->mask.view);
    else
        fake_call_value(call, hob_none());
    if (x->options & BIAS)
        fake_call_view(call, &x->bias.view);
    else
        fake_call_value(call, hob_none());
}

static void add_attributes(struct fake_call *call, const struct trial *x)
{
    fake_call_value(call, x->options & CAUSAL ? hob_f64(x->scale) : hob_none());
    fake_call_value(call, x->options & CAP ? hob_f64(x->cap) : hob_none());
    fake_call_value(call, hob_bool((x->options & CAUSAL) != 0));
}

static void run_forward(struct lab *lab, const struct trial *x)
{
    const uint32_t dtype = x->q.view.dtype;
    const uint32_t wide = wide_of(dtype);
    struct fake_call call;

    fake_call_init(&call, &lab->host, "attention");
    add_operands(&call, x);
    add_attributes(&call, x);
    fake_call_result(&call, dtype, 3, (int64_t[]){x->lead, x->s, x->e});
    fake_call_result(&call, wide, 3, (int64_t[]){x->lead, x->s, 1});
    ck_assert_int_eq(lab_run(lab, &call, &flex_attention_entries), HOB_OK);
    check(x, &call, 0, x->out, tolerance_of(dtype));
    check(x, &call, 1, x->sums, tolerance_of(wide));
    fake_call_release(&call);
}

static void run_backward(struct lab *lab, const struct trial *x)
{
    const uint32_t dtype = x->q.view.dtype;
    /* Sums of products of three numbers of up to 2. */
    const double tolerance = tolerance_of(dtype) * 10;
    const int wants_bias = (x->options & BIAS) != 0;
    struct fake_call call;

    fake_call_init(&call, &lab->host, "attention_backward");
    add_operands(&call, x);
    fake_call_view(&call, &x->lse.view);
    fake_call_view(&call, &x->delta.view);
    fake_call_view(&call, &x->grad.view);
    add_attributes(&call, x);
    fake_call_value(&call, hob_bool(wants_bias));
    fake_call_result(&call, dtype, 3, (int64_t[]){x->lead, x->s, x->d});
    fake_call_result(&call, dtype, 3, (int64_t[]){x->lead, x->t, x->d});
    fake_call_result(&call, dtype, 3, (int64_t[]){x->lead, x->t, x->e});
    if (wants_bias)
        fake_call_result(&call, dtype, 3, (int64_t[]){x->lead, x->s, x->t});
    ck_assert_int_eq(lab_run(lab, &call, &flex_attention_entries), HOB_OK);
    check(x, &call, 0, x->d_q, tolerance);
    check(x, &call, 1, x->d_k, tolerance);
    check(x, &call, 2, x->d_v, tolerance);
    if (wants_bias)
        check(x, &call, 3, x->d_scores, tolerance);
    fake_call_release(&call);
}

START_TEST(test_attention_equals_f64)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        /* The large shapes with every other combination only. */
        for (uint32_t options = 0; options < OPTIONS; options++)
            for (int d = 0; d < 4; d++) {
                struct trial x;

                if (shapes[_i][1] * shapes[_i][2] > 2000 &&
                    (options + (uint32_t)(isa + d)) % 4)
                    continue;
                trial_init(&lab, &x, shapes[_i], dtypes[d], options,
                           (int)options + d + isa);
                run_forward(&lab, &x);
                run_backward(&lab, &x);
                trial_release(&x);
            }
        lab_close(&lab);
    }
}
END_TEST

/* Without a mask a row of -inf is NaN, as in a softmax; with one it is 0. */
START_TEST(test_attention_of_infinite_scores)
{
    const float inf = (float)INFINITY;
    struct lab lab;
    struct trial x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 2, NULL));
    for (uint32_t options = BIAS; options <= (BIAS | MASK); options += MASK) {
        trial_init(&lab, &x, shapes[0], HOB_DTYPE_F32, options, LAB_TRANSPOSED);
        for (int64_t j = 0; j < x.t; j++) {
            lab_set_at(&x.bias.view, x.t + j, -inf); /* query 1 */
            lab_set_at(&x.mask.view, j, 0);
        }
        fake_call_init(&call, &lab.host, "attention");
        add_operands(&call, &x);
        add_attributes(&call, &x);
        fake_call_result(&call, HOB_DTYPE_F32, 3,
                         (int64_t[]){x.lead, x.s, x.e});
        fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){x.lead, x.s, 1});
        ck_assert_int_eq(lab_run(&lab, &call, &flex_attention_entries), HOB_OK);
        for (int64_t c = 0; c < x.e; c++) {
            const double got = lab_get_at(&call.results[0].view, x.e + c);

            ck_assert(options & MASK ? got == 0 : isnan(got));
            ck_assert(!isnan(lab_get_at(&call.results[0].view, c)));
        }
        fake_call_release(&call);
        trial_release(&x);
    }
    lab_close(&lab);
}
END_TEST

/* Scores of a thousand: shifted by their maximum; NaN stays in its row. */
START_TEST(test_attention_of_large_scores)
{
    struct lab lab;
    struct trial x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 2, NULL));
    trial_init(&lab, &x, shapes[0], HOB_DTYPE_F32, 0, LAB_CONTIGUOUS);
    for (int64_t i = 0; i < x.s * x.d; i++)
        lab_set_at(&x.q.view, i, i / x.d == 3 ? (double)NAN : 1000);
    for (int64_t i = 0; i < x.t * x.d; i++)
        lab_set_at(&x.k.view, i, i / x.d == 4 ? 1000 : -1000);
    fake_call_init(&call, &lab.host, "attention");
    add_operands(&call, &x);
    add_attributes(&call, &x);
    fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){x.lead, x.s, x.e});
    fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){x.lead, x.s, 1});
    ck_assert_int_eq(lab_run(&lab, &call, &flex_attention_entries), HOB_OK);
    for (int64_t i = 0; i < x.s * x.e; i++) {
        const double got = lab_get_at(&call.results[0].view, i);

        ck_assert(i / x.e == 3 ? isnan(got)
                               : got == at3(&x.v.view, 0, 4, i % x.e));
    }
    fake_call_release(&call);
    trial_release(&x);
    lab_close(&lab);
}
END_TEST

/* The same bits with one thread and with three. */
START_TEST(test_attention_does_not_depend_on_threads)
{
    static const int64_t shape[5] = {1, 600, 150, 8, 8};
    float *kept[5] = {NULL};

    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        struct lab lab;
        struct trial x;
        struct fake_call call;

        ck_assert(lab_open(&lab, workers, NULL));
        trial_init(&lab, &x, shape, HOB_DTYPE_F32, CAUSAL, LAB_CONTIGUOUS);
        fake_call_init(&call, &lab.host, "attention_backward");
        add_operands(&call, &x);
        fake_call_view(&call, &x.lse.view);
        fake_call_view(&call, &x.delta.view);
        fake_call_view(&call, &x.grad.view);
        add_attributes(&call, &x);
        fake_call_value(&call, hob_bool(0));
        fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){1, 600, 8});
        fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){1, 150, 8});
        fake_call_result(&call, HOB_DTYPE_F32, 3, (int64_t[]){1, 150, 8});
        ck_assert_int_eq(lab_run(&lab, &call, &flex_attention_entries), HOB_OK);
        for (uint32_t r = 0; r < 3; r++) {
            const struct hob_view *view = &call.results[r].view;
            const size_t bytes = (size_t)hob_view_count(view) * 4;

            if (!kept[r]) {
                kept[r] = malloc(bytes);
                ck_assert_ptr_nonnull(kept[r]);
                memcpy(kept[r], view->data, bytes);
            } else {
                ck_assert(!memcmp(kept[r], view->data, bytes));
            }
        }
        fake_call_release(&call);
        trial_release(&x);
        lab_close(&lab);
    }
    for (uint32_t r = 0; r < 3; r++)
        free(kept[r]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tc = tcase_create("attention");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_attention_equals_f64, 0, SHAPES);
    tcase_add_test(tc, test_attention_of_infinite_scores);
    tcase_add_test(tc, test_attention_of_large_scores);
    tcase_add_test(tc, test_attention_does_not_depend_on_threads);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
