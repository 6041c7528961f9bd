/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d and its gradients by the kernels for compute capability 9.0 on a
 * driver of the test's own: which calls they take, what the driver and the
 * kernels are told, and, with a real NVRTC (HOB_TEST_NVRTC names it), that the
 * kernels compile. Their results are compared on real devices by
 * test_conv_halves.
 */
#include "conv_kernels.h"
#include "cuda_fixture.h"
#include "real_nvrtc.h"

#include <cube-cuda/conv.h>
#include <cube-cuda/conv_job.h>
#include <cube/cube.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

enum which { FORWARD, X_BACKWARD, WEIGHT_BACKWARD };

/* A convolution; sizes of the result follow. */
struct trial {
    uint32_t dtype;
    int64_t x[4], weight[4];
    int64_t step[2], padding[2], dilation[2];
    int64_t groups;
    int has_bias;
    int is_turned; /* planes have channels last */
    int64_t out[4];
    void *data[4]; /* of x, weight, bias, the result; NULL: addresses only */
};

enum { X, WEIGHT, BIAS, OUT };

static struct trial trial_of(uint32_t dtype)
{
    return (struct trial){.dtype = dtype,
                          .x = {2, 24, 9, 12},
                          .weight = {40, 24, 3, 3},
                          .step = {1, 1},
                          .padding = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1};
}

static void infer(struct trial *trial)
{
    trial->out[0] = trial->x[0];
    trial->out[1] = trial->weight[0];
    for (int i = 0; i < 2; i++)
        trial->out[2 + i] =
            (trial->x[2 + i] + 2 * trial->padding[i] -
             trial->dilation[i] * (trial->weight[2 + i] - 1) - 1) /
                trial->step[i] +
            1;
}

/* Where no kernel reads them. */
static _Alignas(64) char elements[64];

static struct hob_view view_of(const struct trial *trial, int which,
                               const int64_t *shape)
{
    struct hob_view view = {.data = trial->data[which] ? trial->data[which]
                                                       : elements,
                            .dtype = (uint8_t)trial->dtype,
                            .rank = 4,
                            .strides = {0, 0, 0, 1}};

    memcpy(view.shape, shape, 4 * sizeof(shape[0]));
    for (int i = 3; i-- > 0;)
        view.strides[i] = view.strides[i + 1] * shape[i + 1];
    if (trial->is_turned && which != WEIGHT) {
        view.strides[1] = 1;
        view.strides[3] = shape[1];
        view.strides[2] = shape[1] * shape[3];
    }
    fake_view_flags(&view);
    return view;
}

static void add_tensor(struct fake_call *fake, const struct trial *trial,
                       int which, const int64_t *shape)
{
    const struct hob_view view = view_of(trial, which, shape);

    fake_call_view(fake, &view);
}

static void add_bias(struct fake_call *fake, const struct trial *trial)
{
    struct hob_view view = {.data = trial->data[BIAS] ? trial->data[BIAS]
                                                      : elements,
                            .dtype = (uint8_t)trial->dtype,
                            .rank = 1,
                            .shape = {trial->weight[0]},
                            .strides = {1}};

    fake_view_flags(&view);
    if (trial->has_bias)
        fake_call_view(fake, &view);
    else
        fake_call_value(fake, hob_none());
}

static void call_init(struct fake_call *fake, struct trial *trial,
                      enum which which)
{
    static const char *const ops[] = {"conv2d", "conv2d_x_backward",
                                      "conv2d_weight_backward"};

    infer(trial);
    fake_call_init(fake, &cuda_host, ops[which]);
    if (which == X_BACKWARD)
        fake_call_value(fake, hob_value_i64s(trial->x, 4));
    else
        add_tensor(fake, trial, X, trial->x);
    if (which == WEIGHT_BACKWARD)
        fake_call_value(fake, hob_value_i64s(trial->weight, 4));
    else
        add_tensor(fake, trial, WEIGHT, trial->weight);
    if (which == FORWARD)
        add_bias(fake, trial);
    else
        add_tensor(fake, trial, OUT, trial->out);
    fake_call_value(fake, hob_value_i64s(trial->step, 2));
    fake_call_value(fake, hob_value_i64s(trial->padding, 2));
    fake_call_value(fake, hob_value_i64s(trial->dilation, 2));
    fake_call_value(fake, hob_i64(trial->groups));
    fake_call_result(fake, trial->dtype, 4,
                     which == FORWARD      ? trial->out
                     : which == X_BACKWARD ? trial->x
                                           : trial->weight);
}

static hob_status execute(struct fake_call *fake, struct ccu_device *device)
{
    struct hob_entry entry = {.op = fake->call.op_name};

    ccu_conv_install(&entry, 1);
    return fake_call_run(fake, &entry, device);
}

static hob_status run(struct trial *trial, enum which which,
                      struct ccu_device *device)
{
    struct fake_call fake;
    hob_status status;

    call_init(&fake, trial, which);
    status = execute(&fake, device);
    fake_call_release(&fake);
    return status;
}

/* A device with OPTIONS whose launches LAUNCHING sees. */
static struct ccu_device *open_seen(void (*launching)(void **parameters),
                                    const char *options)
{
    fake_cuda.launching = launching;
    /* Nothing comes from a disk. */
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", "", 1), 0);
    ck_assert_int_eq(unsetenv("HOME"), 0);
    return cuda_open_device(0, options);
}

/* ---- what the kernels are told makes convolutions ---- */

static const struct trial computed[] = {
    {.x = {2, 24, 9, 12}, .weight = {40, 24, 3, 3}, .padding = {1, 1}},
    /* a tap of its own; strides apart from padding */
    {.x = {1, 16, 7, 9}, .weight = {16, 16, 1, 1}, .has_bias = 1},
    {.x = {3, 20, 5, 24}, .weight = {16, 20, 1, 1}, .has_bias = 1},
    {.x = {2, 70, 8, 11},
     .weight = {17, 70, 3, 5},
     .step = {2, 1},
     .padding = {0, 2},
     .has_bias = 1},
    {.x = {2, 33, 16, 13},
     .weight = {16, 33, 3, 2},
     .step = {2, 3},
     .padding = {2, 0},
     .dilation = {1, 2}},
    {.x = {1, 40, 15, 14},
     .weight = {20, 40, 4, 3},
     .step = {4, 2},
     .padding = {3, 5},
     .dilation = {2, 3}},
    /* rows of taps as channels */
    {.x = {2, 3, 17, 18},
     .weight = {16, 3, 7, 7},
     .step = {2, 2},
     .padding = {3, 3}},
    {.x = {2, 5, 9, 10},
     .weight = {16, 5, 3, 3},
     .step = {1, 3},
     .padding = {1, 0}},
    {.x = {1, 20, 6, 7}, .weight = {16, 20, 2, 3}, .padding = {0, 1}},
    /* channels last, taken as they lie or not */
    {.x = {2, 32, 5, 7}, .weight = {16, 32, 3, 3}, .is_turned = 1},
    {.x = {2, 36, 5, 7}, .weight = {20, 36, 3, 3}, .is_turned = 1},
    /* strides of 2 both ways: four products at once */
    {.x = {2, 20, 9, 12},
     .weight = {24, 20, 3, 3},
     .step = {2, 2},
     .padding = {1, 1}},
    {.x = {1, 17, 8, 11},
     .weight = {16, 17, 2, 3},
     .step = {2, 2},
     .padding = {0, 1},
     .dilation = {1, 2}},
    {.x = {2, 16, 6, 7}, .weight = {16, 16, 1, 1}, .step = {2, 2}},
    {.x = {2, 16, 1, 8},
     .weight = {130, 16, 1, 3},
     .step = {2, 2},
     .padding = {0, 1}},
    /* many places, which are split for the weights' sake */
    {.x = {9, 16, 15, 15}, .weight = {16, 16, 1, 3}, .padding = {0, 1}},
};

enum { COMPUTED = sizeof(computed) / sizeof(computed[0]) };

/* Of f32, with as many products as make it worth while. */
static const struct trial computed_f32[] = {
    {.x = {3, 24, 9, 12},
     .weight = {40, 24, 3, 3},
     .padding = {1, 1},
     .has_bias = 1},
    {.x = {8, 20, 8, 11},
     .weight = {40, 20, 3, 5},
     .step = {2, 1},
     .padding = {0, 2}},
    {.x = {2, 3, 33, 34}, .weight = {64, 3, 7, 7}, .step = {2, 2}},
    {.x = {3, 24, 18, 22},
     .weight = {40, 24, 3, 3},
     .step = {2, 2},
     .padding = {1, 1}},
    {.x = {4, 32, 9, 9},
     .weight = {30, 32, 3, 3},
     .padding = {1, 1},
     .is_turned = 1},
};

enum { COMPUTED_F32 = sizeof(computed_f32) / sizeof(computed_f32[0]) };

static void emulate(void **parameters)
{
    conv_kernel_run(fake_cuda.kernel, 1, parameters);
}

static void emulate_whole(void **parameters)
{
    conv_kernel_run(fake_cuda.kernel, 3, parameters);
}

static void emulate_rounded(void **parameters)
{
    conv_kernel_run(fake_cuda.kernel, 2, parameters);
}

static int64_t count_of(const int64_t *shape)
{
    return shape[0] * shape[1] * shape[2] * shape[3];
}

/* COUNT numbers of DTYPE, bf16 or f32, from -2 to 2; the latter with all their
 * bits. */
static void *numbers(uint32_t dtype, int64_t count, uint32_t *state)
{
    void *out = malloc((size_t)count * hob_dtype_size(dtype));

    ck_assert_ptr_nonnull(out);
    for (int64_t i = 0; i < count; i++) {
        float x;

        *state = *state * 1664525 + 1013904223;
        x = (float)(int)(*state >> 24) / 64.0f - 2;
        if (dtype == HOB_DTYPE_F32)
            ((float *)out)[i] = (float)(*state >> 8) / 4194304.0f - 2;
        else
            ((uint16_t *)out)[i] = bf16_of(x);
    }
    return out;
}

static double element(const struct hob_view *view, int64_t index)
{
    return (double)(view->dtype == HOB_DTYPE_F32
                        ? ((const float *)view->data)[index]
                        : of_bf16(((const uint16_t *)view->data)[index]));
}

static double at(const struct hob_view *view, int64_t n, int64_t c, int64_t y,
                 int64_t x)
{
    return element(view, n * view->strides[0] + c * view->strides[1] +
                             y * view->strides[2] + x * view->strides[3]);
}

/* What a convolution and its gradients read. */
struct read_views {
    struct hob_view x, weight, out;
};

/* Add up what WHICH is, in f64, to OUT. */
static void reference_place(const struct trial *t, const struct read_views *v,
                            enum which which, int64_t n, int64_t m, int64_t y,
                            int64_t x, double *out)
{
    const int64_t *s = t->weight;
    const int64_t to = ((n * t->out[1] + m) * t->out[2] + y) * t->out[3] + x;

    if (which == FORWARD && t->has_bias)
        out[to] = t->dtype == HOB_DTYPE_F32
                      ? (double)((const float *)t->data[BIAS])[m]
                      : (double)of_bf16(((const uint16_t *)t->data[BIAS])[m]);
    for (int64_t k = 0; k < count_of(s) / s[0]; k++) {
        const int64_t c = k / s[2] / s[3], ky = k / s[3] % s[2], kx = k % s[3];
        const int64_t iy = y * t->step[0] - t->padding[0] + ky * t->dilation[0];
        const int64_t ix = x * t->step[1] - t->padding[1] + kx * t->dilation[1];

        if (iy < 0 || ix < 0 || iy >= t->x[2] || ix >= t->x[3])
            continue;
        if (which == FORWARD)
            out[to] += at(&v->x, n, c, iy, ix) * at(&v->weight, m, c, ky, kx);
        else if (which == X_BACKWARD)
            out[((n * t->x[1] + c) * t->x[2] + iy) * t->x[3] + ix] +=
                at(&v->out, n, m, y, x) * at(&v->weight, m, c, ky, kx);
        else
            out[m * (count_of(s) / s[0]) + k] +=
                at(&v->out, n, m, y, x) * at(&v->x, n, c, iy, ix);
    }
}

static double *reference(const struct trial *t, enum which which, int64_t count)
{
    const struct read_views views = {view_of(t, X, t->x),
                                     view_of(t, WEIGHT, t->weight),
                                     view_of(t, OUT, t->out)};
    double *out = calloc((size_t)count, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    for (int64_t n = 0; n < t->out[0]; n++)
        for (int64_t m = 0; m < t->out[1]; m++)
            for (int64_t y = 0; y < t->out[2]; y++)
                for (int64_t x = 0; x < t->out[3]; x++)
                    reference_place(t, &views, which, n, m, y, x, out);
    return out;
}

/* Within OFF of a result and, since it may be near 0, of 2 more. */
static void check_near(struct trial *trial, enum which which,
                       struct ccu_device *device, double off)
{
    const struct hob_view *got;
    struct fake_call fake;
    double *expected;
    int64_t count;

    call_init(&fake, trial, which);
    got = &fake.results[0].view;
    count = hob_view_count(got);
    /* What is not written shows. */
    memset(got->data, 0xff, (size_t)count * hob_dtype_size(got->dtype));
    ck_assert_int_eq(execute(&fake, device), HOB_OK);
    expected = reference(trial, which, count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(element(got, i) - expected[i]) <=
              off * (fabs(expected[i]) + 2)))
            ck_abort_msg("%s: element %d is %.9g, not %.9g", fake.call.op_name,
                         (int)i, element(got, i), expected[i]);
    ck_assert(fake_tensor_intact(&fake.results[0]));
    free(expected);
    fake_call_release(&fake);
}

static void check_computed(struct trial *trial, enum which which,
                           struct ccu_device *device)
{
    check_near(trial, which, device, 0.005);
}

static void fill(struct trial *trial, uint32_t dtype)
{
    uint32_t state = 7;

    trial->dtype = dtype;
    trial->groups = 1;
    for (int i = 0; i < 2; i++) {
        trial->step[i] = trial->step[i] ? trial->step[i] : 1;
        trial->dilation[i] = trial->dilation[i] ? trial->dilation[i] : 1;
    }
    infer(trial);
    trial->data[X] = numbers(dtype, count_of(trial->x), &state);
    trial->data[WEIGHT] = numbers(dtype, count_of(trial->weight), &state);
    trial->data[BIAS] = numbers(dtype, trial->weight[0], &state);
    trial->data[OUT] = numbers(dtype, count_of(trial->out), &state);
}

static void release(struct trial *trial)
{
    for (int i = 0; i < 4; i++)
        free(trial->data[i]);
}

START_TEST(test_conv_is_told_what_makes_it)
{
    struct trial trial = computed[_i];
    struct ccu_device *device = open_seen(emulate, "{\"cublas\": \"no\"}");

    fill(&trial, HOB_DTYPE_BF16);
    check_computed(&trial, FORWARD, device);
    if (trial.x[1] >= 16)
        check_computed(&trial, X_BACKWARD, device);
    check_computed(&trial, WEIGHT_BACKWARD, device);
    release(&trial);
    ccu_device_close(device);
}
END_TEST

/* All bits of f32 count, or with tf32 at least those that tf32 has. */
START_TEST(test_conv_of_f32_is_told_what_makes_it)
{
    const int is_rounded = _i >= COMPUTED_F32;
    const double off = is_rounded ? 2e-3 : 2e-5;
    struct trial trial = computed_f32[_i % COMPUTED_F32];
    struct ccu_device *device =
        open_seen(is_rounded ? emulate_rounded : emulate_whole,
                  is_rounded ? "{\"tf32\": \"yes\"}" : NULL);

    fill(&trial, HOB_DTYPE_F32);
    check_near(&trial, FORWARD, device, off);
    if (trial.x[1] >= 16)
        check_near(&trial, X_BACKWARD, device, off);
    check_near(&trial, WEIGHT_BACKWARD, device, off);
    release(&trial);
    ccu_device_close(device);
}
END_TEST

/* ---- single taps are products of matrices ---- */

static int launches;

static void count_launches(void **parameters)
{
    (void)parameters;
    launches++;
}

/* A device whose launches are counted and do nothing. */
static struct ccu_device *open_counting(void)
{
    launches = 0;
    return open_seen(count_launches, NULL);
}

START_TEST(test_conv_of_points_multiplies_matrices)
{
    struct trial trial = {.x = {3, 5, 4, 7}, .weight = {6, 5, 1, 1}};
    struct ccu_device *device = open_counting();

    fill(&trial, HOB_DTYPE_F32);
    check_computed(&trial, FORWARD, device);
    check_computed(&trial, X_BACKWARD, device);
    ck_assert_int_eq(fake_cuda.products, 2);
    ck_assert_int_eq(launches, 0);
    /* A part for each image, which a kernel adds up. */
    ck_assert_int_eq(run(&trial, WEIGHT_BACKWARD, device), HOB_OK);
    ck_assert_int_eq(fake_cuda.products, 3);
    ck_assert_int_eq(launches, 1);
    release(&trial);
    trial = (struct trial){.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}};
    fill(&trial, HOB_DTYPE_F32);
    check_computed(&trial, WEIGHT_BACKWARD, device);
    ck_assert_int_eq(fake_cuda.products, 4);
    ck_assert_int_eq(launches, 1);
    release(&trial);
    ccu_device_close(device);
}
END_TEST

static const struct trial no_points[] = {
    {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}, .padding = {1, 0}},
    {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}, .step = {1, 2}},
    {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 2}},
    {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}, .has_bias = 1},
    {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}, .is_turned = 1},
};

enum { NO_POINTS = sizeof(no_points) / sizeof(no_points[0]) };

START_TEST(test_conv_of_more_than_points_does_not)
{
    struct trial trial = no_points[_i];
    struct ccu_device *device = open_counting();

    fill(&trial, HOB_DTYPE_F32);
    ck_assert_int_eq(run(&trial, FORWARD, device), HOB_OK);
    ck_assert_int_eq(fake_cuda.products, 0);
    ck_assert_int_eq(launches, 1);
    release(&trial);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_conv_of_points_without_library)
{
    struct trial trial = {.x = {1, 5, 4, 7}, .weight = {6, 5, 1, 1}};
    struct ccu_device *device;

    fake_cuda.missing = "cublasLtMatmul";
    device = open_counting();
    fill(&trial, HOB_DTYPE_F32);
    ck_assert_int_eq(run(&trial, FORWARD, device), HOB_OK);
    ck_assert_int_eq(launches, 1);
    release(&trial);
    ccu_device_close(device);
}
END_TEST

/* ---- what the kernels take ---- */

static int takes(struct trial *trial, enum which which,
                 struct ccu_device *device)
{
    struct ccu_conv conv;
    struct fake_call fake;
    int is_taken;

    call_init(&fake, trial, which);
    fake.call.rets = NULL; /* as when it is prepared */
    is_taken = ccu_conv_take(&conv, device, &fake.call);
    fake.call.rets = fake.rets;
    fake_call_release(&fake);
    return is_taken;
}

/* What differs from a call that is taken. */
static const struct {
    const char *what;
    struct trial by;
} portable[] = {
    {"f64", {.dtype = HOB_DTYPE_F64}},
    {"little of f32", {.dtype = HOB_DTYPE_F32}},
    {"two groups", {.groups = 2}},
    {"few rows", {.weight = {15, 24, 3, 3}}},
    {"no images", {.x = {0, 24, 9, 12}}},
    {"strides of 9", {.step = {9, 1}}},
    {"padding of 200", {.padding = {1, 200}}},
    {"taps 300 apart", {.x = {2, 24, 400, 12}, .dilation = {150, 1}}},
};

enum { PORTABLE = sizeof(portable) / sizeof(portable[0]) };

static void change(struct trial *trial, const struct trial *by)
{
    if (by->dtype)
        trial->dtype = by->dtype;
    if (by->groups) {
        trial->groups = by->groups;
        trial->weight[1] /= by->groups;
    }
    if (by->x[1])
        memcpy(trial->x, by->x, sizeof(trial->x));
    if (by->weight[0])
        memcpy(trial->weight, by->weight, sizeof(trial->weight));
    for (int i = 0; i < 2; i++) {
        trial->step[i] = by->step[i] ? by->step[i] : trial->step[i];
        trial->padding[i] = by->padding[i] ? by->padding[i] : trial->padding[i];
        trial->dilation[i] =
            by->dilation[i] ? by->dilation[i] : trial->dilation[i];
    }
}

START_TEST(test_conv_leaves_the_rest)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct trial trial = trial_of(HOB_DTYPE_F16);

    for (int which = FORWARD; which <= WEIGHT_BACKWARD; which++)
        ck_assert(takes(&trial, (enum which)which, device));
    change(&trial, &portable[_i].by);
    ck_assert_msg(!takes(&trial, FORWARD, device), "%s", portable[_i].what);
    ck_assert_msg(!takes(&trial, WEIGHT_BACKWARD, device), "%s",
                  portable[_i].what);
    ccu_device_close(device);
}
END_TEST

/* The rows of a product for x are its channels. */
START_TEST(test_conv_gradient_needs_channels)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct trial trial = trial_of(HOB_DTYPE_F16);

    trial.x[1] = trial.weight[1] = 15;
    ck_assert(takes(&trial, FORWARD, device));
    ck_assert(!takes(&trial, X_BACKWARD, device));
    trial.x[1] = trial.weight[1] = 16;
    trial.weight[0] = 3;
    ck_assert(!takes(&trial, FORWARD, device));
    ck_assert(takes(&trial, X_BACKWARD, device));
    ccu_device_close(device);
}
END_TEST

START_TEST(test_conv_is_for_one_architecture)
{
    struct trial trial = trial_of(HOB_DTYPE_F16);
    struct ccu_device *device;

    fake_cuda.major = 8;
    device = cuda_open_device(0, NULL);
    ck_assert(!takes(&trial, FORWARD, device));
    ccu_device_close(device);
}
END_TEST

/* A driver of CUDA 11 does all the rest. */
START_TEST(test_conv_without_tensor_maps)
{
    struct trial trial = trial_of(HOB_DTYPE_F16);
    struct ccu_device *device;

    fake_cuda.missing =
        _i ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
    device = cuda_open_device(0, NULL);
    ck_assert(!takes(&trial, FORWARD, device));
    ccu_device_close(device);
}
END_TEST

/* ---- failures ---- */

static const char *const failing[] = {
    "cuMemAllocFromPoolAsync", "cuTensorMapEncodeTiled",
    "cuTensorMapEncodeIm2col", "nvrtcCompileProgram", "cuLaunchKernel"};

enum { FAILING = sizeof(failing) / sizeof(failing[0]) };

START_TEST(test_conv_says_what_failed)
{
    struct trial trial = trial_of(HOB_DTYPE_F16);
    struct ccu_device *device = open_counting();
    /* What has been compiled is not compiled again. */
    const int last =
        strncmp(failing[_i], "nvrtc", 5) ? WEIGHT_BACKWARD : FORWARD;

    for (int which = FORWARD; which <= last; which++) {
        fake_cuda.failing = failing[_i];
        fake_cuda.result = 1;
        ck_assert_int_ne(run(&trial, (enum which)which, device), HOB_OK);
        fake_cuda.failing = NULL;
        ck_assert_int_eq(run(&trial, (enum which)which, device), HOB_OK);
        ccu_device_trim(device);
    }
    ccu_device_close(device);
}
END_TEST

/* ---- compiling ---- */

static void ignore(void **parameters)
{
    (void)parameters;
}

/* Each tiling, and each width of stores. */
static const struct {
    uint32_t dtype;
    int64_t channels, rows, height, width;
    enum which which;
    int is_point;
    int64_t step;
} variants[] = {
    {HOB_DTYPE_BF16, 64, 64, 8, 8, FORWARD, 0, 1},
    {HOB_DTYPE_F16, 24, 130, 6, 6, FORWARD, 0, 1},
    {HOB_DTYPE_BF16, 64, 512, 64, 66, FORWARD, 0, 1},
    {HOB_DTYPE_F16, 3, 16, 5, 7, FORWARD, 0, 1},
    {HOB_DTYPE_BF16, 130, 16, 5, 6, X_BACKWARD, 0, 1},
    {HOB_DTYPE_F16, 24, 64, 9, 9, WEIGHT_BACKWARD, 0, 1},
    {HOB_DTYPE_BF16, 24, 130, 9, 9, WEIGHT_BACKWARD, 0, 1},
    {HOB_DTYPE_BF16, 24, 64, 8, 9, WEIGHT_BACKWARD, 1, 1},
    {HOB_DTYPE_F16, 130, 64, 8, 8, X_BACKWARD, 0, 2},
    {HOB_DTYPE_F32, 130, 64, 31, 31, X_BACKWARD, 0, 2},
    {HOB_DTYPE_F32, 64, 64, 8, 8, FORWARD, 0, 1},
    {HOB_DTYPE_F32, 130, 70, 9, 9, X_BACKWARD, 0, 1},
    {HOB_DTYPE_F32, 64, 64, 16, 16, WEIGHT_BACKWARD, 0, 1},
    {HOB_DTYPE_F32, 64, 130, 16, 16, WEIGHT_BACKWARD, 0, 1},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

START_TEST(test_conv_compiles)
{
    struct trial trial = trial_of(variants[_i].dtype);
    struct ccu_device *device;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: CUDA C is compiled without sanitizers\n");
        return;
    }
    fake_cuda.nvrtc = real_nvrtc_open();
    if (!fake_cuda.nvrtc) {
        printf("skipped: no libnvrtc (HOB_TEST_NVRTC)\n");
        return;
    }
    trial.x[1] = trial.weight[1] = variants[_i].channels;
    trial.weight[0] = variants[_i].rows;
    trial.x[2] = variants[_i].height;
    trial.x[3] = variants[_i].width;
    if (variants[_i].is_point) {
        trial.weight[2] = trial.weight[3] = 1;
        trial.padding[0] = trial.padding[1] = 0;
    }
    trial.step[0] = trial.step[1] = variants[_i].step;
    device = open_seen(ignore, NULL);
    ck_assert_msg(run(&trial, variants[_i].which, device) == HOB_OK, "%s",
                  cuda_host.message);
    ccu_device_close(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda conv");
    TCase *told = tcase_create("told");
    TCase *taken = tcase_create("taken");
    TCase *compiled = tcase_create("compiled");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(told, cuda_setup, cuda_teardown);
    tcase_set_timeout(told, 60);
    tcase_add_loop_test(told, test_conv_is_told_what_makes_it, 0, COMPUTED);
    tcase_add_loop_test(told, test_conv_of_f32_is_told_what_makes_it, 0,
                        2 * COMPUTED_F32);
    tcase_add_test(told, test_conv_of_points_multiplies_matrices);
    tcase_add_loop_test(told, test_conv_of_more_than_points_does_not, 0,
                        NO_POINTS);
    tcase_add_test(told, test_conv_of_points_without_library);
    tcase_add_loop_test(told, test_conv_says_what_failed, 0, FAILING);
    suite_add_tcase(suite, told);
    tcase_add_checked_fixture(taken, cuda_setup, cuda_teardown);
    tcase_add_loop_test(taken, test_conv_leaves_the_rest, 0, PORTABLE);
    tcase_add_test(taken, test_conv_gradient_needs_channels);
    tcase_add_test(taken, test_conv_is_for_one_architecture);
    tcase_add_loop_test(taken, test_conv_without_tensor_maps, 0, 2);
    suite_add_tcase(suite, taken);
    tcase_add_checked_fixture(compiled, cuda_setup, cuda_teardown);
    tcase_set_timeout(compiled, 120);
    tcase_add_loop_test(compiled, test_conv_compiles, 0, VARIANTS);
    suite_add_tcase(suite, compiled);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
