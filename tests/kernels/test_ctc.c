/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc_loss and its gradient in every float dtype, layout and instruction set,
 * against the forward-backward algorithm in long double.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

/* Logarithms down to -LOWEST. */
static const struct ctc_case {
    int64_t steps, batch, classes, length, blank, lowest;
} cases[] = {
    {1, 1, 2, 0, 0, 3},  {1, 2, 3, 1, 2, 3},    {5, 3, 4, 2, 0, 4},
    {12, 5, 6, 5, 3, 9}, {40, 4, 30, 19, 0, 5}, {60, 2, 5, 17, 4, 200},
    {7, 3, 2, 5, 0, 3},  {4, 0, 3, 2, 1, 3},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]), STATES = 64, STEPS = 64 };

static long double log_add(long double a, long double b)
{
    long double most = a > b ? a : b, least = a > b ? b : a;

    return most == -(long double)INFINITY ? most
                                          : most + log1pl(expl(least - most));
}

/* One sample: LOGS [steps, classes] by STRIDE, its labels. */
struct sample {
    const double *logs;
    int64_t stride, steps, states, blank;
    int64_t labels[STATES];
    long double alpha[STEPS][STATES], beta[STEPS][STATES];
};

static int may_skip(const struct sample *s, int64_t i)
{
    return i > 1 && s->labels[i] != s->blank &&
           s->labels[i] != s->labels[i - 2];
}

static long double log_of(const struct sample *s, int64_t t, int64_t i)
{
    return s->logs[t * s->stride + s->labels[i]];
}

/* Fills alpha and beta, each with its own step's label; returns the loss. */
static long double walk(struct sample *s)
{
    const long double none = -(long double)INFINITY;
    const int64_t n = s->states, last = s->steps - 1;

    for (int64_t i = 0; i < n; i++) {
        s->alpha[0][i] = i < 2 ? log_of(s, 0, i) : none;
        s->beta[last][i] = i >= n - 2 ? log_of(s, last, i) : none;
    }
    for (int64_t t = 1; t <= last; t++)
        for (int64_t i = 0; i < n; i++) {
            const long double *a = s->alpha[t - 1], *b = s->beta[last - t + 1];
            long double from = a[i], to = b[i];

            from = i ? log_add(from, a[i - 1]) : from;
            from = may_skip(s, i) ? log_add(from, a[i - 2]) : from;
            to = i + 1 < n ? log_add(to, b[i + 1]) : to;
            to = i + 2 < n && may_skip(s, i + 2) ? log_add(to, b[i + 2]) : to;
            s->alpha[t][i] = from + log_of(s, t, i);
            s->beta[last - t][i] = to + log_of(s, last - t, i);
        }
    return -(n > 1 ? log_add(s->alpha[last][n - 1], s->alpha[last][n - 2])
                   : s->alpha[last][0]);
}

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-12
           : dtype == HOB_DTYPE_F32 ? 2e-6
           : dtype == HOB_DTYPE_F16 ? 0x1p-10
                                    : 0x1p-7;
}

struct trial {
    const struct ctc_case *c;
    uint32_t dtype;
    struct lab_tensor logs, targets, inputs, lengths, grad;
    double *dense;
    struct sample sample;
};

static void trial_open(struct lab *lab, struct trial *t, enum lab_layout layout)
{
    const struct ctc_case *c = t->c;
    const int64_t logs[3] = {c->steps, c->batch, c->classes};
    const int64_t targets[2] = {c->batch, c->length};
    const uint32_t index = layout % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_I32;

    lab_tensor_init(lab, &t->logs, t->dtype, 3, logs, layout, -c->lowest, 0);
    lab_tensor_init(lab, &t->targets, index, 2, targets,
                    (enum lab_layout)((layout + 1) % LAB_LAYOUT_COUNT_), 0,
                    c->classes - 1);
    lab_tensor_init(lab, &t->inputs, HOB_DTYPE_I32, 1, &c->batch, LAB_GAPS,
                    (c->steps + 1) / 2, c->steps);
    lab_tensor_init(lab, &t->lengths, HOB_DTYPE_U8, 1, &c->batch, LAB_REVERSED,
                    0, c->length);
    lab_tensor_init(lab, &t->grad, t->dtype, 1, &c->batch, LAB_GAPS, 1, 3);
    t->dense = lab_dense(&t->logs.view);
}

static void trial_close(struct trial *t)
{
    free(t->dense);
    lab_tensor_release(&t->logs);
    lab_tensor_release(&t->targets);
    lab_tensor_release(&t->inputs);
    lab_tensor_release(&t->lengths);
    lab_tensor_release(&t->grad);
}

static void trial_call(struct lab *lab, struct trial *t, struct fake_call *call,
                       int is_backward)
{
    fake_call_init(call, &lab->host,
                   is_backward ? "ctc_loss_backward" : "ctc_loss");
    fake_call_view(call, &t->logs.view);
    fake_call_view(call, &t->targets.view);
    fake_call_view(call, &t->inputs.view);
    fake_call_view(call, &t->lengths.view);
    if (is_backward)
        fake_call_view(call, &t->grad.view);
    fake_call_value(call, hob_i64(t->c->blank));
    if (is_backward)
        fake_call_result(call, t->dtype, 3, t->logs.view.shape);
    else
        fake_call_result(call, t->dtype, 1, &t->c->batch);
}

static long double sample_loss(struct trial *t, int64_t index)
{
    const struct ctc_case *c = t->c;
    struct sample *s = &t->sample;

    s->logs = t->dense + index * c->classes;
    s->stride = c->batch * c->classes;
    s->blank = c->blank;
    s->steps = (int64_t)lab_get_at(&t->inputs.view, index);
    s->states = 2 * (int64_t)lab_get_at(&t->lengths.view, index) + 1;
    for (int64_t i = 0; i < s->states; i++)
        s->labels[i] = i % 2 ? (int64_t)lab_get_at(&t->targets.view,
                                                   index * c->length + i / 2)
                             : c->blank;
    return walk(s);
}

/* OUT [steps, classes] of sample INDEX whose loss is LOSS. */
static void sample_gradient(struct trial *t, int64_t index, long double loss,
                            long double *out)
{
    struct sample *s = &t->sample;
    const double grad = lab_get_at(&t->grad.view, index);

    memset(out, 0, (size_t)(t->c->steps * t->c->classes) * sizeof(*out));
    for (int64_t k = 0; k < s->steps && !isinf(loss); k++)
        for (int64_t i = 0; i < s->states; i++)
            out[k * t->c->classes + s->labels[i]] -=
                grad *
                expl(s->alpha[k][i] + s->beta[k][i] - log_of(s, k, i) + loss);
}

static void try_case(struct lab *lab, struct trial *t)
{
    const struct ctc_case *c = t->c;
    long double *wanted = calloc((size_t)(c->steps * c->classes), 16);
    struct fake_call call, back;

    trial_call(lab, t, &call, 0);
    trial_call(lab, t, &back, 1);
    ck_assert_int_eq(lab_run(lab, &call, &flex_ctc_entries), HOB_OK);
    ck_assert_int_eq(lab_run(lab, &back, &flex_ctc_entries), HOB_OK);
    for (int64_t n = 0; n < c->batch; n++) {
        long double loss = sample_loss(t, n);
        double got = lab_get_at(&call.results[0].view, n);

        ck_assert_msg(lab_near(got, (double)loss, tolerance_of(t->dtype)),
                      "%s %s case %d sample %d: %.9g, not %.9Lg",
                      lab->device->kernels->name, hob_dtype_name(t->dtype),
                      (int)(c - cases), (int)n, got, loss);
        sample_gradient(t, n, loss, wanted);
        for (int64_t i = 0; i < c->steps * c->classes; i++) {
            const int64_t at[3] = {i / c->classes, n, i % c->classes};

            got = lab_get(&back.results[0].view, at);
            ck_assert_msg(
                lab_near(got, (double)wanted[i], 8 * tolerance_of(t->dtype)),
                "%s %s case %d sample %d gradient %d: %.9g, not "
                "%.9Lg",
                lab->device->kernels->name, hob_dtype_name(t->dtype),
                (int)(c - cases), (int)n, (int)i, got, wanted[i]);
        }
    }
    free(wanted);
    fake_call_release(&call);
    fake_call_release(&back);
}

START_TEST(test_ctc_equals_forward_backward)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        int turn = _i + isa;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (int round = 0; round < 3; round++)
                for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                     dtype++) {
                    struct trial t = {.c = &cases[_i], .dtype = dtype};

                    trial_open(&lab, &t,
                               (enum lab_layout)(turn++ % LAB_LAYOUT_COUNT_));
                    try_case(&lab, &t);
                    trial_close(&t);
                }
        lab_close(&lab);
    }
}
END_TEST

/* Probabilities of 0 leave an infinite loss, no NaN; NaN stays NaN. */
START_TEST(test_ctc_of_nothing_and_of_nan)
{
    static const struct ctc_case c = {4, 2, 3, 2, 0, 1};
    struct lab lab;
    struct trial t = {.c = &c, .dtype = HOB_DTYPE_F32};
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    trial_open(&lab, &t, LAB_CONTIGUOUS);
    for (int64_t i = 0; i < 24; i++) /* of the first sample */
        if (i / 3 % 2 == 0)
            lab_set_at(&t.logs.view, i, -(double)INFINITY);
    lab_set_at(&t.logs.view, 3, NAN); /* the second's blank */
    for (int is_backward = 0; is_backward < 2; is_backward++) {
        trial_call(&lab, &t, &call, is_backward);
        ck_assert_int_eq(lab_run(&lab, &call, &flex_ctc_entries), HOB_OK);
        if (is_backward) {
            const int64_t nan_at[3] = {0, 1, 0};

            for (int64_t i = 0; i < 24; i++)
                if (i / 3 % 2 == 0)
                    ck_assert(lab_get_at(&call.results[0].view, i) == 0);
            ck_assert(isnan(lab_get(&call.results[0].view, nan_at)));
        } else {
            ck_assert(isinf(lab_get_at(&call.results[0].view, 0)));
            ck_assert(isnan(lab_get_at(&call.results[0].view, 1)));
        }
        fake_call_release(&call);
    }
    trial_close(&t);
    lab_close(&lab);
}
END_TEST

START_TEST(test_ctc_names_what_is_out_of_range)
{
    static const struct ctc_case c = {4, 2, 3, 2, 0, 1};
    static const char *const parts[] = {
        "targets[1, 1] is 3", "target_lengths[1] is 3",
        "input_lengths[0] is 5, not 0 to the 4 steps",
        "input_lengths[0] is -1"};
    struct lab lab;
    struct trial t = {.c = &c, .dtype = HOB_DTYPE_F32};
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    trial_open(&lab, &t, LAB_CONTIGUOUS);
    if (_i == 0)
        lab_set_at(&t.targets.view, 3, 3);
    else if (_i == 1)
        lab_set_at(&t.lengths.view, 1, 3);
    else
        lab_set_at(&t.inputs.view, 0, _i == 2 ? 5 : -1);
    trial_call(&lab, &t, &call, 0);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_ctc_entries), HOB_ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(lab.host.message, parts[_i]));
    fake_call_release(&call);
    trial_close(&t);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctc");
    TCase *tc = tcase_create("ctc");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_ctc_equals_forward_backward, 0, CASES);
    tcase_add_test(tc, test_ctc_of_nothing_and_of_nan);
    tcase_add_loop_test(tc, test_ctc_names_what_is_out_of_range, 0, 4);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
