/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with an epilogue by cuBLASLt itself, where there is a GPU: a layer
 * forward, keeping what its slope is made of, and the gradient of what its
 * function was given, with that of its bias, against loops in double. What the
 * library has no kernel for is passed over, but f32 and halves must be there.
 */
#include "fake_host.h"
#include "hob_check.h"

#include <cube-cuda/device.h>
#include <cube-cuda/linear.h>
#include <cube/compute.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, BIAS, G, W, C, D, SUM, AUX, BUFFERS };

static struct fake_host host;
static struct ccu_instance *instance;
static struct ccu_device *device;

/* 0: there is no GPU. */
static int open_device(void)
{
    void *opened = NULL;
    char *message = NULL; /* as long as the process */
    uint32_t count = 0;

    fake_host_init(&host, 2);
    instance = ccu_instance_new(&host.table);
    if (instance && !ccu_device_count(instance, &count) && count > 0 &&
        !ccu_device_open(instance, 0, NULL, &opened, &message))
        device = opened;
    return device != NULL;
}

static void close_device(void)
{
    if (device)
        ccu_device_close(device);
    ccu_instance_free(instance);
}

/* ---- numbers ---- */

static uint16_t half_of(double x, uint32_t dtype)
{
    const float f = (float)x;
    uint32_t bits;
    int exponent;

    /* All numbers here are eighths below 4: exact, and never denormal. */
    memcpy(&bits, &f, sizeof(bits));
    if (dtype == HOB_DTYPE_BF16)
        return (uint16_t)(bits >> 16);
    if (x == 0)
        return 0;
    exponent = (int)(bits >> 23 & 255) - 127 + 15;
    return (uint16_t)((bits >> 16 & 0x8000) | (uint32_t)exponent << 10 |
                      (bits >> 13 & 1023));
}

static double of_half(uint16_t half, uint32_t dtype)
{
    const uint32_t wide = (uint32_t)half << 16;
    float f;

    if (dtype == HOB_DTYPE_BF16) {
        memcpy(&f, &wide, sizeof(f));
        return (double)f;
    }
    return (half & 0x8000 ? -1 : 1) *
           (half >> 10 & 31
                ? ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25)
                : ldexp(half & 1023, -24));
}

static void put(void *to, uint32_t dtype, int64_t at, double x)
{
    if (dtype == HOB_DTYPE_F32)
        ((float *)to)[at] = (float)x;
    else if (dtype == HOB_DTYPE_F64)
        ((double *)to)[at] = x;
    else
        ((uint16_t *)to)[at] = half_of(x, dtype);
}

static double get(const void *from, uint32_t dtype, int64_t at)
{
    return dtype == HOB_DTYPE_F32 ? (double)((const float *)from)[at]
           : dtype == HOB_DTYPE_F64
               ? ((const double *)from)[at]
               : of_half(((const uint16_t *)from)[at], dtype);
}

static double gelu(double x)
{
    return 0.5 * x *
           (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* Some of these sums are 0, where relu has none: the library's is 1. */
static double slope(int is_gelu, double x)
{
    return is_gelu ? (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5 : x >= 0;
}

/* ---- a layer of M rows, K inputs, N outputs and L gradients ---- */

struct layer {
    int64_t m, k, n, l;
    uint32_t dtype;
    int is_gelu;
    struct hob_view views[BUFFERS];
    char *host[BUFFERS];
    uint64_t bytes[BUFFERS];
};

static void add(struct layer *layer, int which, uint32_t dtype, int64_t rows,
                int64_t columns, int64_t step, uint64_t *state)
{
    struct hob_view *view = &layer->views[which];
    const uint64_t bytes = (uint64_t)(rows * step) * hob_dtype_size(dtype);
    void *data = NULL;

    view->dtype = (uint8_t)dtype;
    view->rank = rows == 1 ? 1 : 2;
    view->shape[view->rank - 1] = columns;
    view->strides[view->rank - 1] = 1;
    if (rows > 1) {
        view->shape[0] = rows;
        view->strides[0] = step;
    }
    layer->host[which] = calloc(1, bytes);
    layer->bytes[which] = bytes;
    ck_assert_ptr_nonnull(layer->host[which]);
    for (int64_t i = 0; i < rows * step && dtype != HOB_DTYPE_U8; i++) {
        *state = *state * UINT64_C(6364136223846793005) + 1;
        put(layer->host[which], dtype, i,
            (double)((int64_t)(*state >> 60) - 8) / 8);
    }
    ck_assert(!ccu_device_alloc(device, bytes, &data));
    view->data = data;
    ck_assert(!ccu_device_upload(device, data, layer->host[which], bytes));
}

static void fetch(struct layer *layer, int which)
{
    ck_assert(!ccu_device_download(device, layer->host[which],
                                   layer->views[which].data,
                                   layer->bytes[which]));
}

static double number(const struct layer *layer, int which, int64_t i, int64_t j)
{
    const struct hob_view *view = &layer->views[which];

    return get(layer->host[which], view->dtype,
               (view->rank > 1 ? i * view->strides[0] : 0) + j);
}

static hob_status multiply(const struct hob_cube_gemm *gemm)
{
    struct fake_call fake;

    fake_call_init(&fake, &host, "nn.layer");
    return cube_gemm(device, &fake.call, gemm);
}

/* What the library's results of numbers up to 20 may be off by, beside 1 plus
 * themselves. Its gelu is no better in f32 than 6.3e-5, in f64 than 4e-9, on an
 * H200 (cuBLASLt 13.0). */
static double limit_of(const struct layer *layer)
{
    switch (layer->dtype) {
    case HOB_DTYPE_F64:
        return layer->is_gelu ? 1e-8 : 1e-11;
    case HOB_DTYPE_F32:
        return layer->is_gelu ? 1e-4 : 1e-5;
    case HOB_DTYPE_F16:
        return 2e-3;
    default:
        return 1.6e-2;
    }
}

static void close_to(const struct layer *layer, const char *what, double got,
                     double want)
{
    const double off = fabs(got - want);

    ck_assert_msg(off <= limit_of(layer) * (1 + fabs(want)),
                  "%s of %s %s: %g, not %g, off by %g", what,
                  layer->is_gelu ? "gelu" : "relu",
                  hob_dtype_name((hob_dtype)layer->dtype), got, want, off);
}

static void check(struct layer *layer)
{
    fetch(layer, C);
    fetch(layer, D);
    fetch(layer, SUM);
    for (int64_t j = 0; j < layer->n; j++) {
        double total = 0;

        for (int64_t i = 0; i < layer->m; i++) {
            double x = number(layer, BIAS, 0, j), d = 0;

            for (int64_t k = 0; k < layer->k; k++)
                x += number(layer, A, i, k) * number(layer, B, k, j);
            for (int64_t l = 0; l < layer->l; l++)
                d += number(layer, G, i, l) * number(layer, W, j, l);
            d *= slope(layer->is_gelu, x);
            total += d;
            close_to(layer, "result", number(layer, C, i, j),
                     layer->is_gelu ? gelu(x) : fmax(x, 0));
            close_to(layer, "gradient", number(layer, D, i, j), d);
        }
        /* Of roundings of one sign, each of a unit, few are as large. */
        close_to(layer, "sum", number(layer, SUM, 0, j) / (double)layer->m,
                 total / (double)layer->m);
    }
}

/* 0: the library has no kernel for it. */
static int run(struct layer *layer)
{
    const uint32_t function =
        layer->is_gelu ? HOB_CUBE_GELU_TANH : HOB_CUBE_RELU;
    struct hob_view turned = layer->views[W];
    struct hob_cube_gemm gemm = {
        HOB_CUBE_GEMM_INIT_HEAD,
        .epilogue = function | HOB_CUBE_KEEP | HOB_CUBE_BIAS,
        .a = &layer->views[A],
        .b = &layer->views[B],
        .c = &layer->views[C],
        .bias = &layer->views[BIAS],
        .aux = &layer->views[AUX]};
    hob_status status = multiply(&gemm);

    ck_assert(!status || status == HOB_ERR_UNSUPPORTED);
    if (status)
        return 0;
    turned.shape[0] = layer->l;
    turned.shape[1] = layer->n;
    turned.strides[0] = 1;
    turned.strides[1] = layer->l;
    gemm.epilogue = HOB_CUBE_SUM_C | (layer->is_gelu ? HOB_CUBE_GELU_TANH_SLOPE
                                                     : HOB_CUBE_RELU_SLOPE);
    gemm.a = &layer->views[G];
    gemm.b = &turned;
    gemm.c = &layer->views[D];
    gemm.bias = &layer->views[SUM];
    status = multiply(&gemm);
    ck_assert(!status || status == HOB_ERR_UNSUPPORTED);
    return !status;
}

static const struct {
    uint32_t dtype;
    int must; /* be there */
} types[] = {{HOB_DTYPE_F32, 1},
             {HOB_DTYPE_F16, 1},
             {HOB_DTYPE_BF16, 1},
             {HOB_DTYPE_F64, 0}};
static const int64_t sizes[][4] = {
    {64, 32, 128, 48}, {33, 17, 72, 24}, {256, 512, 384, 256}};

START_TEST(test_gemm_slopes_on_a_gpu)
{
    for (int s = 0; s < 3; s++)
        for (int is_gelu = 0; is_gelu < 2; is_gelu++) {
            struct layer layer = {.m = sizes[s][0],
                                  .k = sizes[s][1],
                                  .n = sizes[s][2],
                                  .l = sizes[s][3],
                                  .dtype = types[_i].dtype,
                                  .is_gelu = is_gelu};
            const uint32_t dtype = layer.dtype;
            uint64_t state = 5;
            int is_there;

            add(&layer, A, dtype, layer.m, layer.k, layer.k, &state);
            add(&layer, B, dtype, layer.k, layer.n, layer.n, &state);
            add(&layer, BIAS, dtype, 1, layer.n, layer.n, &state);
            add(&layer, G, dtype, layer.m, layer.l, layer.l, &state);
            add(&layer, W, dtype, layer.n, layer.l, layer.l, &state);
            add(&layer, C, dtype, layer.m, layer.n, layer.n, &state);
            add(&layer, D, dtype, layer.m, layer.n, layer.n, &state);
            add(&layer, SUM, dtype, 1, layer.n, layer.n, &state);
            if (is_gelu)
                add(&layer, AUX, dtype, layer.m, layer.n, layer.n, &state);
            else
                add(&layer, AUX, HOB_DTYPE_U8, layer.m, (layer.n + 7) / 8,
                    (layer.n + 127) / 128 * 16, &state);
            is_there = run(&layer);
            ck_assert_msg(is_there || !types[_i].must || s == 1,
                          "no kernel for %s", hob_dtype_name((hob_dtype)dtype));
            if (is_there)
                check(&layer);
            for (int i = 0; i < BUFFERS; i++) {
                ccu_device_free(device, layer.views[i].data, layer.bytes[i]);
                free(layer.host[i]);
            }
        }
}
END_TEST

/* In one process: CUDA does not outlive a fork. */
int main(void)
{
    Suite *suite = suite_create("CUDA gemm");
    TCase *tc = tcase_create("gemm");
    int result = 77;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_gemm_slopes_on_a_gpu, 0, 4);
    suite_add_tcase(suite, tc);
    if (open_device()) {
        result = hob_check_main_as(suite, CK_NOFORK);
    } else {
        printf("skipped: no GPU of CUDA\n");
        srunner_free(srunner_create(suite)); /* and the suite */
    }
    close_device();
    return result;
}
