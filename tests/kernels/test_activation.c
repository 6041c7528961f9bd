/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The activations and activation_backward in every float dtype, layout and
 * instruction set, against formulas in long double.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

enum activation {
    SILU,
    MISH,
    SOFTPLUS,
    LOG_SIGMOID,
    SOFTSIGN,
    LEAKY_RELU,
    ELU,
    CELU,
    SELU,
    HARD_SWISH,
    HARD_SIGMOID, /* from here on no kind of activation_backward */
    ACTIVATIONS
};

static const char *const names[ACTIVATIONS] = {
    "silu", "mish", "softplus", "log_sigmoid", "softsign",    "leaky_relu",
    "elu",  "celu", "selu",     "hard_swish",  "hard_sigmoid"};

static const double alphas[ACTIVATIONS] = {[SOFTPLUS] = 1.75,
                                           [LEAKY_RELU] = 0.01,
                                           [ELU] = 1.3,
                                           [CELU] = 0.7,
                                           [HARD_SIGMOID] = 0.2};

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double clip(long double x, long double most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

static long double value(enum activation a, long double x)
{
    const long double alpha = alphas[a];
    const long double scale = 1.0507009873554804934L;

    switch (a) {
    case SILU:
        return x * sigmoid(x);
    case MISH:
        return x * tanhl(log1pl(expl(x)));
    case SOFTPLUS:
        return (fmaxl(x, 0) + log1pl(expl(-fabsl(alpha * x))) / alpha);
    case LOG_SIGMOID:
        return fminl(x, 0) - log1pl(expl(-fabsl(x)));
    case SOFTSIGN:
        return x / (1 + fabsl(x));
    case LEAKY_RELU:
        return x < 0 ? x * alpha : x;
    case ELU:
        return x < 0 ? alpha * expm1l(x) : x;
    case CELU:
        return x < 0 ? alpha * expm1l(x / alpha) : x;
    case SELU:
        return scale * (x < 0 ? 1.6732632423543772848L * expm1l(x) : x);
    case HARD_SWISH:
        return x * clip(x + 3, 6) / 6;
    default:
        return clip(alpha * x + 0.5L, 1);
    }
}

static long double slope(enum activation a, long double x)
{
    const long double alpha = alphas[a], s = sigmoid(x);
    const long double scale = 1.0507009873554804934L;
    const long double t = tanhl(log1pl(expl(x)));

    switch (a) {
    case SILU:
        return s * (1 + x * (1 - s));
    case MISH:
        return t + x * s * (1 - t * t);
    case SOFTPLUS:
        return sigmoid(alpha * x);
    case LOG_SIGMOID:
        return sigmoid(-x);
    case SOFTSIGN:
        return 1 / ((1 + fabsl(x)) * (1 + fabsl(x)));
    case LEAKY_RELU:
        return x < 0 ? alpha : 1;
    case ELU:
        return x < 0 ? alpha * expl(x) : 1;
    case CELU:
        return x < 0 ? expl(x / alpha) : 1;
    case SELU:
        return scale * (x < 0 ? 1.6732632423543772848L * expl(x) : 1);
    default:
        return x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5L;
    }
}

/* Of the results, which are at most some tens: for f16 and bf16 half a unit of
 * one rounding, for f32 and f64 some units. */
static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 4e-15
           : dtype == HOB_DTYPE_F32 ? 2e-6
           : dtype == HOB_DTYPE_F16 ? 0x1p-10
                                    : 0x1p-7;
}

static const int64_t shape[] = {3, 4, 350};

/* Tenths, so that both sides of every bend are met. */
static void tensor(struct lab *lab, struct lab_tensor *x, uint32_t dtype,
                   enum lab_layout layout)
{
    lab_tensor_init(lab, x, dtype, 3, shape, layout, -120, 120);
    if (layout == LAB_EXPANDED)
        return; /* elements share memory */
    for (int64_t i = 0; i < hob_view_count(&x->view); i++)
        lab_set_at(&x->view, i, lab_get_at(&x->view, i) / 10);
    lab_set_at(&x->view, 5, NAN);
    lab_set_at(&x->view, 7, -90);
    lab_set_at(&x->view, 8, 200);
    lab_set_at(&x->view, 9, 1e-5);
}

static void compare(const struct lab *lab, const struct fake_call *call,
                    int64_t i, long double wanted)
{
    const struct hob_view *out = &call->results[0].view;
    double got = lab_get_at(out, i);

    ck_assert_msg(lab_near(got, (double)wanted, tolerance_of(out->dtype)),
                  "%s %s %s element %d: %.9g, not %.9Lg",
                  lab->device->kernels->name, call->call.op_name,
                  hob_dtype_name(out->dtype), (int)i, got, wanted);
}

static void try_forward(struct lab *lab, enum activation a, uint32_t dtype,
                        enum lab_layout layout)
{
    struct lab_tensor x;
    struct fake_call call;

    tensor(lab, &x, dtype, layout);
    fake_call_init(&call, &lab->host, names[a]);
    fake_call_view(&call, &x.view);
    if (alphas[a] != 0)
        fake_call_value(&call, hob_f64(alphas[a]));
    if (a == HARD_SIGMOID)
        fake_call_value(&call, hob_f64(0.5));
    fake_call_result(&call, dtype, 3, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_activation_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&x.view); i++) {
        double at = lab_get_at(&x.view, i);

        compare(lab, &call, i, at != at ? NAN : value(a, at));
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
}

static void try_backward(struct lab *lab, enum activation a, uint32_t dtype,
                         enum lab_layout layout)
{
    struct lab_tensor x, grad;
    struct fake_call call;

    tensor(lab, &x, dtype, layout);
    lab_tensor_init(lab, &grad, dtype, 3, shape,
                    (enum lab_layout)((layout + 3) % LAB_LAYOUT_COUNT_), -3, 3);
    fake_call_init(&call, &lab->host, "activation_backward");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &grad.view);
    fake_call_value(&call, hob_i64(a));
    fake_call_value(&call, hob_f64(alphas[a]));
    fake_call_result(&call, dtype, 3, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_activation_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&x.view); i++) {
        long double at = lab_get_at(&x.view, i);

        if (at == at) /* a slope at NaN may be that of any piece */
            compare(lab, &call, i, slope(a, at) * lab_get_at(&grad.view, i));
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&grad);
}

START_TEST(test_activation_equals_formula)
{
    enum activation a = (enum activation)_i;

    for (const char *const *isa = lab_isas; *isa; isa++) {
        struct lab lab;

        if (lab_open(&lab, 2, *isa))
            for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                 dtype++)
                for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                    try_forward(&lab, a, dtype, (enum lab_layout)l);
                    if (a < HARD_SIGMOID)
                        try_backward(&lab, a, dtype, (enum lab_layout)l);
                }
        lab_close(&lab);
    }
}
END_TEST

/* Slopes for all, for each channel; halves along any dimension. */
static void try_pairs(struct lab *lab, uint32_t dtype, enum lab_layout layout)
{
    const int64_t channels[] = {1, shape[1]};

    for (int i = 0; i < 2; i++) {
        struct lab_tensor x, slopes;
        struct fake_call call;

        tensor(lab, &x, dtype, layout);
        lab_tensor_init(lab, &slopes, dtype, 1, &channels[i],
                        i ? layout : LAB_CONTIGUOUS, 2, 9);
        fake_call_init(&call, &lab->host, "prelu");
        fake_call_view(&call, &x.view);
        fake_call_view(&call, &slopes.view);
        fake_call_result(&call, dtype, 3, shape);
        ck_assert_int_eq(lab_run(lab, &call, &flex_activation_entries), HOB_OK);
        for (int64_t k = 0; k < hob_view_count(&x.view); k++) {
            double at = lab_get_at(&x.view, k);
            int64_t channel = i ? k / shape[2] % shape[1] : 0;

            compare(lab, &call, k,
                    at < 0 ? at * lab_get_at(&slopes.view, channel) : at);
        }
        fake_call_release(&call);
        lab_tensor_release(&slopes);
        lab_tensor_release(&x);
    }
    for (int64_t dim = 1; dim < 3; dim++) {
        struct lab_tensor x;
        struct fake_call call;
        int64_t half[] = {shape[0], shape[1], shape[2]};

        half[dim] /= 2;
        tensor(lab, &x, dtype, layout);
        fake_call_init(&call, &lab->host, "glu");
        fake_call_view(&call, &x.view);
        fake_call_value(&call, hob_i64(dim - 3));
        fake_call_result(&call, dtype, 3, half);
        ck_assert_int_eq(lab_run(lab, &call, &flex_activation_entries), HOB_OK);
        for (int64_t k = 0; k < hob_view_count(&call.results[0].view); k++) {
            int64_t at[3];
            double first;

            lab_position(3, half, k, at);
            first = lab_get(&x.view, at);
            at[dim] += half[dim];
            compare(lab, &call, k, first * sigmoid(lab_get(&x.view, at)));
        }
        fake_call_release(&call);
        lab_tensor_release(&x);
    }
}

START_TEST(test_activation_of_two_tensors)
{
    for (const char *const *isa = lab_isas; *isa; isa++) {
        struct lab lab;

        if (lab_open(&lab, 2, *isa))
            for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                 dtype++)
                for (int l = 0; l < LAB_LAYOUT_COUNT_; l++)
                    try_pairs(&lab, dtype, (enum lab_layout)l);
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("activation");
    TCase *tc = tcase_create("activation");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_activation_equals_formula, 0, ACTIVATIONS);
    tcase_add_test(tc, test_activation_of_two_tensors);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
