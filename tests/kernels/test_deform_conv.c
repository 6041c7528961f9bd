/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deform_conv2d and its gradients in every float dtype, layout and instruction
 * set, against sums in long double. Offsets are eighths.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const struct deform_case {
    int64_t n, c, h, w, out, kh, kw;
    int64_t stride[2], padding[2], dilation[2];
    int64_t groups, offsets; /* groups of weight and of offset */
    int with_mask, with_bias;
} cases[] = {
    {1, 1, 1, 1, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, 1, 0, 0},
    {2, 4, 5, 6, 6, 3, 2, {1, 2}, {1, 0}, {1, 1}, 2, 1, 1, 1},
    {3, 6, 7, 5, 3, 2, 3, {2, 1}, {0, 2}, {2, 1}, 1, 3, 1, 0},
    {2, 2, 4, 4, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, 2, 0, 1},
    {1, 2, 30, 27, 2, 2, 2, {1, 1}, {1, 1}, {1, 1}, 2, 2, 1, 1},
    {0, 2, 4, 4, 2, 2, 2, {1, 1}, {0, 0}, {1, 1}, 1, 1, 1, 1},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };
enum { X, OFFSET, WEIGHT, MASK, LAST, ARGS }; /* LAST: bias or grad */

struct trial {
    const struct deform_case *c;
    uint32_t dtype;
    int64_t oh, ow;
    int64_t shapes[ARGS][4];
    struct lab_tensor args[ARGS];
    double *dense[ARGS];
    long double *wanted[ARGS]; /* gradients; of LAST the result */
};

static int64_t size_of(const int64_t *shape)
{
    return shape[0] * shape[1] * shape[2] * shape[3];
}

static int64_t windows(const struct deform_case *c, int axis)
{
    const int64_t in = axis ? c->w : c->h, k = axis ? c->kw : c->kh;

    return (in + 2 * c->padding[axis] - c->dilation[axis] * (k - 1) - 1) /
               c->stride[axis] +
           1;
}

static void trial_open(struct lab *lab, struct trial *t, enum lab_layout layout)
{
    const struct deform_case *c = t->c;
    const int64_t taps = c->kh * c->kw;
    const int64_t shapes[ARGS][4] = {
        {c->n, c->c, c->h, c->w},
        {c->n, 2 * c->offsets * taps, windows(c, 0), windows(c, 1)},
        {c->out, c->c / c->groups, c->kh, c->kw},
        {c->n, c->offsets * taps, windows(c, 0), windows(c, 1)},
        {c->n, c->out, windows(c, 0), windows(c, 1)}};

    memcpy(t->shapes, shapes, sizeof(shapes));
    t->oh = windows(c, 0);
    t->ow = windows(c, 1);
    for (int i = 0; i < ARGS; i++) {
        lab_tensor_init(lab, &t->args[i], t->dtype, 4, shapes[i],
                        (enum lab_layout)((layout + i) % LAB_LAYOUT_COUNT_),
                        i == OFFSET ? -20 : -3, i == OFFSET ? 20 : 3);
        if (i == OFFSET && t->args[i].view.strides[0])
            for (int64_t k = 0; k < size_of(shapes[i]); k++)
                lab_set_at(&t->args[i].view, k,
                           lab_get_at(&t->args[i].view, k) / 8);
        t->dense[i] = lab_dense(&t->args[i].view);
        t->wanted[i] = calloc((size_t)size_of(shapes[i]) + 1, 16);
    }
}

static void trial_close(struct trial *t)
{
    for (int i = 0; i < ARGS; i++) {
        free(t->dense[i]);
        free(t->wanted[i]);
        lab_tensor_release(&t->args[i]);
    }
}

/* What one tap reads of one channel in one window: numbers of elements in
 * x, offset (its y) and mask. */
struct reading {
    int64_t plane, offset, mask;
    long double y, x;
};

/* The element read, and by how much it changes with y and x. */
static long double read_at(const struct trial *t, const struct reading *r,
                           long double *by_y, long double *by_x,
                           long double grad)
{
    const struct deform_case *c = t->c;
    long double value = 0;

    *by_y = *by_x = 0;
    for (int i = 0; i < 4; i++) {
        const long double row = floorl(r->y) + (i >> 1);
        const long double column = floorl(r->x) + (i & 1);
        const long double wy = 1 - fabsl(r->y - row);
        const long double wx = 1 - fabsl(r->x - column);
        int64_t at;
        double x;

        if (row < 0 || row >= c->h || column < 0 || column >= c->w)
            continue;
        at = r->plane * c->h * c->w + (int64_t)row * c->w + (int64_t)column;
        x = t->dense[X][at];
        t->wanted[X][at] += grad * wy * wx;
        value += x * wy * wx;
        *by_y += i >> 1 ? x * wx : -x * wx;
        *by_x += i & 1 ? x * wy : -x * wy;
    }
    return value;
}

/* Adds what one tap of one channel does to one window of all outputs. */
static void add_reading(struct trial *t, const struct reading *r, int64_t n,
                        int64_t channel, int64_t tap, int64_t window)
{
    const struct deform_case *c = t->c;
    const int64_t per_group = c->c / c->groups, outs = c->out / c->groups;
    const int64_t taps = c->kh * c->kw, area = t->oh * t->ow;
    const double mask = c->with_mask ? t->dense[MASK][r->mask] : 1;
    long double grad = 0, by_y, by_x, value;

    for (int pass = 0; pass < 2; pass++) { /* grad is known in the second */
        if (pass)
            value = read_at(t, r, &by_y, &by_x, grad * mask);
        for (int64_t k = 0; k < outs; k++) {
            const int64_t out = channel / per_group * outs + k;
            const int64_t w =
                (out * per_group + channel % per_group) * taps + tap;
            const int64_t at = (n * c->out + out) * area + window;

            if (!pass) {
                grad += t->dense[LAST][at] * t->dense[WEIGHT][w];
                continue;
            }
            t->wanted[LAST][at] += value * mask * t->dense[WEIGHT][w];
            t->wanted[WEIGHT][w] += value * mask * t->dense[LAST][at];
        }
    }
    t->wanted[MASK][r->mask] += value * grad;
    t->wanted[OFFSET][r->offset] += by_y * grad * mask;
    t->wanted[OFFSET][r->offset + area] += by_x * grad * mask;
}

static void compute(struct trial *t)
{
    const struct deform_case *c = t->c;
    const int64_t taps = c->kh * c->kw, area = t->oh * t->ow;

    for (int64_t n = 0; n < c->n; n++)
        for (int64_t channel = 0; channel < c->c; channel++)
            for (int64_t tap = 0; tap < taps; tap++)
                for (int64_t i = 0; i < area; i++) {
                    const int64_t group = channel / (c->c / c->offsets);
                    const int64_t plane = (n * c->offsets + group) * taps + tap;
                    struct reading r = {.plane = n * c->c + channel,
                                        .offset = 2 * plane * area + i,
                                        .mask = plane * area + i};

                    r.y =
                        (long double)(i / t->ow * c->stride[0] - c->padding[0] +
                                      tap / c->kw * c->dilation[0]) +
                        t->dense[OFFSET][r.offset];
                    r.x =
                        (long double)(i % t->ow * c->stride[1] - c->padding[1] +
                                      tap % c->kw * c->dilation[1]) +
                        t->dense[OFFSET][r.offset + area];
                    add_reading(t, &r, n, channel, tap, i);
                }
}

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-13
           : dtype == HOB_DTYPE_F32 ? 1e-5
           : dtype == HOB_DTYPE_F16 ? 0x1p-9
                                    : 0x1p-6;
}

static void compare(const struct lab *lab, const struct trial *t,
                    const struct hob_view *view, int which, const double *shift)
{
    const int64_t area = t->oh * t->ow;

    for (int64_t i = 0; i < hob_view_count(view); i++) {
        long double wanted = t->wanted[which][i];
        double got = lab_get_at(view, i);

        if (shift)
            wanted += shift[i / area % t->c->out];
        ck_assert_msg(fabsl(got - wanted) <=
                          (64 + fabsl(wanted)) * tolerance_of(t->dtype),
                      "%s %s case %d result %d element %d: %.9g, not %.9Lg",
                      lab->device->kernels->name, hob_dtype_name(t->dtype),
                      (int)(t->c - cases), which, (int)i, got, wanted);
    }
}

static void begin_call(struct lab *lab, struct trial *t, struct fake_call *call,
                       const char *name)
{
    fake_call_init(call, &lab->host, name);
    for (int i = 0; i < MASK; i++)
        fake_call_view(call, &t->args[i].view);
    if (t->c->with_mask)
        fake_call_view(call, &t->args[MASK].view);
    else
        fake_call_value(call, hob_none());
}

static void end_call(struct trial *t, struct fake_call *call)
{
    fake_call_value(call, hob_value_i64s(t->c->stride, 2));
    fake_call_value(call, hob_value_i64s(t->c->padding, 2));
    fake_call_value(call, hob_value_i64s(t->c->dilation, 2));
    fake_call_value(call, hob_i64(t->c->groups));
    fake_call_value(call, hob_i64(t->c->offsets));
}

static void forward(struct lab *lab, struct trial *t)
{
    struct lab_tensor bias;
    struct fake_call call;
    double *shift = NULL;

    lab_tensor_init(lab, &bias, t->dtype, 1, &t->c->out, LAB_REVERSED, -3, 3);
    begin_call(lab, t, &call, "deform_conv2d");
    if (t->c->with_bias) {
        fake_call_view(&call, &bias.view);
        shift = lab_dense(&bias.view);
    } else {
        fake_call_value(&call, hob_none());
    }
    end_call(t, &call);
    fake_call_result(&call, t->dtype, 4, t->shapes[LAST]);
    ck_assert_int_eq(lab_run(lab, &call, &flex_deform_conv_entries), HOB_OK);
    compare(lab, t, &call.results[0].view, LAST, shift);
    fake_call_release(&call);
    free(shift);
    lab_tensor_release(&bias);
}

static void backward(struct lab *lab, struct trial *t)
{
    struct fake_call call;
    const int count = t->c->with_mask ? 4 : 3;

    begin_call(lab, t, &call, "deform_conv2d_backward");
    fake_call_view(&call, &t->args[LAST].view);
    end_call(t, &call);
    for (int i = 0; i < count; i++)
        fake_call_result(&call, t->dtype, 4, t->shapes[i]);
    ck_assert_int_eq(lab_run(lab, &call, &flex_deform_conv_entries), HOB_OK);
    for (int i = 0; i < count; i++)
        compare(lab, t, &call.results[i].view, i, NULL);
    fake_call_release(&call);
}

START_TEST(test_deform_conv_equals_sums)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        int turn = _i + isa;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (int round = 0; round < 2; round++)
                for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                     dtype++) {
                    struct trial t = {.c = &cases[_i], .dtype = dtype};

                    trial_open(&lab, &t,
                               (enum lab_layout)(turn++ % LAB_LAYOUT_COUNT_));
                    compute(&t);
                    forward(&lab, &t);
                    backward(&lab, &t);
                    trial_close(&t);
                }
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deform_conv");
    TCase *tc = tcase_create("deform_conv");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_deform_conv_equals_sums, 0, CASES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
