/* SPDX-License-Identifier: Apache-2.0 */
#include "flex_case.h"
#include "hob_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <flex/convert.h>

int flex_case_has(uint32_t level)
{
    return flex_kernels_find(level) != NULL;
}

struct flex_device *flex_case_open(struct fake_host *host, uint32_t level)
{
    struct flex_device *device = calloc(1, sizeof(*device));

    ck_assert_ptr_nonnull(device);
    device->host = &host->table;
    device->kernels = flex_kernels_find(level);
    device->isa = level;
    device->memory = flex_memory_new(UINT64_C(1) << 26);
    device->l2_bytes = UINT64_C(1) << 20;
    device->l3_bytes = UINT64_C(8) << 20;
    ck_assert_ptr_nonnull(device->kernels);
    ck_assert_ptr_nonnull(device->memory);
    return device;
}

void flex_case_close(struct flex_device *device)
{
    struct hob_memory_stats stats;

    flex_memory_stats(device->memory, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 0);
    flex_memory_free(device->memory);
    free(device);
}

uint64_t flex_case_seed(void)
{
    const char *text = getenv("HOB_TEST_SEED");
    struct timespec now;

    if (text)
        return strtoull(text, NULL, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
}

/* G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
uint64_t flex_case_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t flex_case_get_int(uint32_t dtype, const void *p)
{
    const int is_signed = (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED) != 0;
    uint64_t x64;
    uint32_t x32;
    uint16_t x16;
    uint8_t x8;

    switch (hob_dtype_size(dtype)) {
    case 1:
        memcpy(&x8, p, sizeof(x8));
        return is_signed ? (uint64_t)(int8_t)x8 : x8;
    case 2:
        memcpy(&x16, p, sizeof(x16));
        return is_signed ? (uint64_t)(int16_t)x16 : x16;
    case 4:
        memcpy(&x32, p, sizeof(x32));
        return is_signed ? (uint64_t)(int32_t)x32 : x32;
    default:
        memcpy(&x64, p, sizeof(x64));
        return x64;
    }
}

long double flex_case_get(uint32_t dtype, const void *p)
{
    uint64_t bits;
    double number;
    float single;

    switch (dtype) {
    case HOB_DTYPE_F64:
        memcpy(&number, p, sizeof(number));
        return number;
    case HOB_DTYPE_F32:
        memcpy(&single, p, sizeof(single));
        return single;
    }
    bits = flex_case_get_int(dtype, p);
    switch (dtype) {
    case HOB_DTYPE_F16:
        return flex_f32_of_f16((uint16_t)bits);
    case HOB_DTYPE_BF16:
        return flex_f32_of_bf16((uint16_t)bits);
    default:
        return HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED ? (int64_t)bits
                                                      : (long double)bits;
    }
}

void flex_case_set_int(uint32_t dtype, void *p, uint64_t x)
{
    const uint32_t x32 = (uint32_t)x;
    const uint16_t x16 = (uint16_t)x;
    const uint8_t x8 = (uint8_t)x;

    switch (hob_dtype_size(dtype)) {
    case 1:
        memcpy(p, &x8, sizeof(x8));
        break;
    case 2:
        memcpy(p, &x16, sizeof(x16));
        break;
    case 4:
        memcpy(p, &x32, sizeof(x32));
        break;
    default:
        memcpy(p, &x, sizeof(x));
    }
}

void flex_case_set(uint32_t dtype, void *p, double x)
{
    float single = (float)x;

    switch (dtype) {
    case HOB_DTYPE_F64:
        memcpy(p, &x, sizeof(x));
        break;
    case HOB_DTYPE_F32:
        memcpy(p, &single, sizeof(single));
        break;
    case HOB_DTYPE_F16:
        flex_case_set_int(dtype, p, flex_f16_of_f64(x));
        break;
    case HOB_DTYPE_BF16:
        flex_case_set_int(dtype, p, flex_bf16_of_f64(x));
        break;
    default:
        flex_case_set_int(dtype, p, x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x);
        break;
    }
}

void *flex_case_at(const struct hob_view *view, int64_t index)
{
    int64_t offset = 0;

    /* Tests spend much of their time on these divisions. */
    for (uint32_t i = view->rank; i-- > 0 && index;) {
        const int64_t n = view->shape[i];
        const int64_t above = index < n ? 0 : index / n;

        offset += (index - above * n) * view->strides[i];
        index = above;
    }
    return (char *)view->data + offset * (int64_t)hob_dtype_size(view->dtype);
}

void flex_case_tensor_init(struct flex_case_tensor *tensor, uint32_t dtype,
                           uint32_t rank, const int64_t *shape,
                           enum flex_layout layout)
{
    struct hob_view *view = &tensor->view;
    int64_t size = hob_dtype_size(dtype), stride = 1, offset = 0;

    memset(tensor, 0, sizeof(*tensor));
    view->dtype = (uint8_t)dtype;
    view->rank = (uint8_t)rank;
    for (uint32_t j = 0; j < rank; j++) {
        uint32_t i = layout == FLEX_LAYOUT_TRANSPOSED ? j : rank - 1 - j;

        view->shape[i] = shape[i];
        if (layout == FLEX_LAYOUT_STEPS && i == rank - 1)
            stride = 2;
        if (layout == FLEX_LAYOUT_GAPS && rank > 1 && i == rank - 2)
            stride += 3;
        view->strides[i] = stride;
        stride *= shape[i] > 0 ? shape[i] : 1;
        if (layout == FLEX_LAYOUT_REPEATED && i == 0)
            view->strides[i] = 0;
    }
    if (layout == FLEX_LAYOUT_REVERSED)
        for (uint32_t i = 0; i < rank; i++) {
            offset += (view->shape[i] > 0 ? view->shape[i] - 1 : 0) *
                      view->strides[i];
            view->strides[i] = -view->strides[i];
        }
    if (layout == FLEX_LAYOUT_MISALIGNED)
        offset = 1;
    tensor->memory = calloc((size_t)stride + 2, (size_t)size);
    ck_assert_ptr_nonnull(tensor->memory);
    view->data = tensor->memory + offset * size;
    fake_view_flags(view);
}

void flex_case_tensor_release(struct flex_case_tensor *tensor)
{
    free(tensor->memory);
    tensor->memory = NULL;
}

double flex_case_ulps(uint32_t dtype, long double x, long double wanted)
{
    int digits = dtype == HOB_DTYPE_F64   ? DBL_MANT_DIG
                 : dtype == HOB_DTYPE_F32 ? FLT_MANT_DIG
                 : dtype == HOB_DTYPE_F16 ? 11
                                          : 8;
    int least = dtype == HOB_DTYPE_F64   ? -1074
                : dtype == HOB_DTYPE_F16 ? -24
                : dtype == HOB_DTYPE_F32 ? -149
                                         : -133;
    long double greatest = dtype == HOB_DTYPE_F64    ? (long double)DBL_MAX
                           : dtype == HOB_DTYPE_F16  ? 65504.0L
                           : dtype == HOB_DTYPE_BF16 ? 0x1.fep127L
                                                     : (long double)FLT_MAX;
    int exponent;

    if (x == wanted || (x != x && wanted != wanted))
        return 0;
    if (x != x || wanted != wanted)
        return HUGE_VAL;
    /* Beyond the range the bound itself and infinity are neighbours. */
    if (fabsl(wanted) > greatest && (isinf(x) || fabsl(x) >= greatest * 0.99L))
        return (x > 0) == (wanted > 0) ? 0 : HUGE_VAL;
    if (isinf(x))
        return fabsl(wanted) >= greatest * 0.999999L && (x > 0) == (wanted > 0)
                   ? 1
                   : HUGE_VAL;
    (void)frexpl(wanted, &exponent);
    exponent -= digits;
    if (exponent < least)
        exponent = least;
    return (double)(fabsl(x - wanted) / ldexpl(1, exponent));
}
