/* SPDX-License-Identifier: Apache-2.0 */
/* hob/ext/kernel.h: elements of views in any layout; window.h and message.h. */
#include <hob/ext/kernel.h>
#include <hob/ext/message.h>
#include <hob/ext/window.h>

#include "fake_host.h"
#include "hob_check.h"

#include <string.h>

/* A view of rank RANK over DATA with the given sizes and strides. */
static struct hob_view view_of(void *data, uint8_t dtype, uint8_t rank,
                               const int64_t *shape, const int64_t *strides)
{
    struct hob_view view;

    memset(&view, 0, sizeof(view));
    view.data = data;
    view.dtype = dtype;
    view.rank = rank;
    for (int d = 0; d < rank; d++) {
        view.shape[d] = shape[d];
        view.strides[d] = strides[d];
    }
    return view;
}

static const struct layout {
    uint8_t rank;
    int64_t shape[4];
    int64_t strides[4];
} layouts[] = {
    {0, {0}, {0}},
    {1, {5}, {1}},
    {1, {5}, {-3}},
    {1, {4}, {0}},
    {1, {0}, {1}},
    {2, {3, 4}, {4, 1}},
    {2, {3, 4}, {1, 3}},
    {2, {3, 4}, {-4, 2}},
    {2, {0, 4}, {4, 1}},
    {2, {3, 0}, {1, 1}},
    {3, {2, 3, 5}, {15, 5, 1}},
    {3, {2, 3, 5}, {0, 1, -3}},
    {4, {2, 3, 1, 4}, {7, -2, 100, 11}},
};

/* All indices in row-major order, counted up one by one. */
START_TEST(test_kernel_offsets_follow_the_strides)
{
    const struct layout *layout = &layouts[_i];
    struct hob_view view = view_of(NULL, HOB_DTYPE_F32, layout->rank,
                                   layout->shape, layout->strides);
    int64_t index[4] = {0}, count = hob_view_count(&view);

    for (int64_t number = 0; number < count; number++) {
        int64_t expected = 0;
        int d = layout->rank;

        for (int k = 0; k < layout->rank; k++)
            expected += index[k] * layout->strides[k];
        ck_assert_int_eq(hob_offset_of(&view, layout->rank, number), expected);
        if (layout->rank == 1)
            ck_assert_int_eq(hob_offset1(&view, index[0]), expected);
        if (layout->rank == 2)
            ck_assert_int_eq(hob_offset2(&view, index[0], index[1]), expected);
        if (layout->rank == 3)
            ck_assert_int_eq(hob_offset3(&view, index[0], index[1], index[2]),
                             expected);
        if (layout->rank == 4)
            ck_assert_int_eq(
                hob_offset4(&view, index[0], index[1], index[2], index[3]),
                expected);
        /* The same element by its row. */
        ck_assert_int_eq(hob_row_offset(&view, number / hob_row_length(&view)) +
                             number % hob_row_length(&view) *
                                 hob_row_stride(&view),
                         expected);
        while (d-- > 0 && ++index[d] == layout->shape[d])
            index[d] = 0;
    }
    ck_assert_int_eq(hob_row_count(&view) * hob_row_length(&view), count);
}
END_TEST

START_TEST(test_kernel_pointers_know_their_dtype)
{
    static const int64_t one = 1;
    int64_t data[2] = {0, 0};
    struct hob_view view;

    for (uint32_t dtype = HOB_DTYPE_NONE; dtype < HOB_DTYPE_COUNT_; dtype++) {
        view = view_of(data, (uint8_t)dtype, 1, &one, &one);
        ck_assert(!!hob_view_f64(&view) == (dtype == HOB_DTYPE_F64));
        ck_assert(!!hob_view_f32(&view) == (dtype == HOB_DTYPE_F32));
        ck_assert(!!hob_view_f16(&view) == (dtype == HOB_DTYPE_F16));
        ck_assert(!!hob_view_bf16(&view) == (dtype == HOB_DTYPE_BF16));
        ck_assert(!!hob_view_i64(&view) == (dtype == HOB_DTYPE_I64));
        ck_assert(!!hob_view_i32(&view) == (dtype == HOB_DTYPE_I32));
        ck_assert(!!hob_view_i16(&view) == (dtype == HOB_DTYPE_I16));
        ck_assert(!!hob_view_i8(&view) == (dtype == HOB_DTYPE_I8));
        ck_assert(!!hob_view_u64(&view) == (dtype == HOB_DTYPE_U64));
        ck_assert(!!hob_view_u32(&view) == (dtype == HOB_DTYPE_U32));
        ck_assert(!!hob_view_u16(&view) == (dtype == HOB_DTYPE_U16));
        ck_assert(!!hob_view_u8(&view) == (dtype == HOB_DTYPE_U8));
        ck_assert(!!hob_view_bool(&view) == (dtype == HOB_DTYPE_BOOL));
    }
    ck_assert_ptr_null(hob_view_f32(NULL));
}
END_TEST

START_TEST(test_kernel_reads_elements)
{
    static const int64_t shape[2] = {2, 3}, strides[2] = {-3, 1};
    float f32[6] = {0, 1, 2, 3, 4, 5};
    double f64[6] = {0, -1, -2, -3, -4, -5};
    int8_t i8[2] = {-128, 127};
    int16_t i16[2] = {-32768, 1};
    int32_t i32[2] = {INT32_MIN, 2};
    int64_t i64[2] = {INT64_MIN, 3};
    uint8_t u8[2] = {255, 4};
    uint16_t u16[2] = {65535, 5};
    uint32_t u32[2] = {UINT32_MAX, 6};
    uint64_t u64[2] = {7, UINT64_C(1) << 40};
    struct hob_view view = view_of(f32 + 3, HOB_DTYPE_F32, 2, shape, strides);

    ck_assert_float_eq(hob_f32_at2(&view, 1, 2), 2);
    ck_assert_float_eq(hob_f32_at(&view, 1), 0);
    view = view_of(f64 + 3, HOB_DTYPE_F64, 2, shape, strides);
    ck_assert_double_eq(hob_f64_at2(&view, 0, 1), -4);
    ck_assert_double_eq(hob_f64_at(&view, 1), 0);
    {
        const struct {
            uint8_t dtype;
            void *data;
            int64_t first;
        } cases[] = {
            {HOB_DTYPE_I8, i8, -128},        {HOB_DTYPE_I16, i16, -32768},
            {HOB_DTYPE_I32, i32, INT32_MIN}, {HOB_DTYPE_I64, i64, INT64_MIN},
            {HOB_DTYPE_U8, u8, 255},         {HOB_DTYPE_BOOL, u8, 255},
            {HOB_DTYPE_U16, u16, 65535},     {HOB_DTYPE_U32, u32, UINT32_MAX},
            {HOB_DTYPE_U64, u64, 7}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            view = view_of(cases[i].data, cases[i].dtype, 1, shape, strides);
            ck_assert_int_eq(hob_int_at(&view, 0), cases[i].first);
        }
        view = view_of(u64, HOB_DTYPE_U64, 1, shape, strides);
        ck_assert_int_eq(hob_int_at(&view, 1), INT64_C(1) << 40);
    }
}
END_TEST

/* Windows are laid down one by one until one would leave the padding. */
START_TEST(test_window_counts_what_fits)
{
    for (int64_t in = 0; in < 9; in++)
        for (int64_t size = 1; size < 5; size++)
            for (int64_t dilation = 1; dilation < 4; dilation++)
                for (int64_t stride = 1; stride < 4; stride++)
                    for (int64_t padding = 0; padding < 3; padding++) {
                        const int64_t end = in + 2 * padding;
                        int64_t last = 0, count = 0;

                        for (int64_t tap = 1; tap < size; tap++)
                            last += dilation;
                        while (count * stride + last < end)
                            count++;
                        if (hob_window_extent(size, dilation) != last + 1 ||
                            hob_window_count(in, last + 1, stride, padding) !=
                                count)
                            ck_abort_msg("in %d size %d dilation %d stride %d "
                                         "padding %d",
                                         (int)in, (int)size, (int)dilation,
                                         (int)stride, (int)padding);
                    }
    ck_assert_int_eq(hob_window_extent(INT64_MAX, 2), INT64_MAX / 4);
    ck_assert_int_eq(hob_window_extent(3, INT64_MAX), INT64_MAX / 4);
    ck_assert_int_eq(hob_window_count(5, INT64_MAX / 4, 1, 2), 0);
}
END_TEST

START_TEST(test_message_is_the_core_s_to_free)
{
    struct fake_host fake;
    const struct hob_host *host = &fake.table;
    char *message = NULL, text[600];

    fake_host_init(&fake, 1);
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ck_assert_int_eq(hob_say(host, NULL, HOB_ERR_DEVICE, "%s", text),
                     HOB_ERR_DEVICE);
    ck_assert_uint_eq(fake.live_blocks, 0);
    ck_assert_int_eq(hob_say(host, &message, HOB_ERR_SHAPE, "%d: %s", 7, text),
                     HOB_ERR_SHAPE);
    ck_assert(!strncmp(message, "7: ", 3) && !strcmp(message + 3, text));
    ck_assert_uint_eq(fake.live_blocks, 1);
    host->mem_free(host, message);
}
END_TEST

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("ext_kernel");
    TCase *tc = tcase_create("ext_kernel");

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, test_kernel_offsets_follow_the_strides, 0,
                        COUNT_OF(layouts));
    tcase_add_test(tc, test_kernel_pointers_know_their_dtype);
    tcase_add_test(tc, test_kernel_reads_elements);
    tcase_add_test(tc, test_window_counts_what_fits);
    tcase_add_test(tc, test_message_is_the_core_s_to_free);
    return hob_check_main(suite);
}
