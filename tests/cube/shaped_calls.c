/* SPDX-License-Identifier: Apache-2.0 */
#include "shaped_calls.h"

#include "hob_check.h"

#include <cube/cube.h>

#include <stdio.h>
#include <string.h>

enum { ARGUMENTS = 12 };

/* A tensor, which takes the dtype of the trial, or an attribute. */
struct argument {
    enum { NONE, FLOATS, SINGLES, INTS, LIST, NUMBER, REAL, BOOLS } kind;
    uint32_t count; /* rank, length */
    int64_t numbers[4];
};

#define X2(a, b) {FLOATS, 2, {a, b}}
#define X1(a) {FLOATS, 1, {a}}
#define X4(a, b, c, d) {FLOATS, 4, {a, b, c, d}}
#define I4(a, b, c, d) {INTS, 4, {a, b, c, d}}
#define I1(a) {INTS, 1, {a}}
#define L0 {LIST, 0, {0}}
#define L1(a) {LIST, 1, {a}}
#define L2(a, b) {LIST, 2, {a, b}}
#define L4(a, b, c, d) {LIST, 4, {a, b, c, d}}
#define N(a) {NUMBER, 1, {a}}
#define R(a) {REAL, 1, {a}}
#define X3(a, b, c) {FLOATS, 3, {a, b, c}}
#define S2(a, b) {SINGLES, 2, {a, b}}
#define S3(a, b, c) {SINGLES, 3, {a, b, c}}
#define B2(a, b) {BOOLS, 2, {a, b}}
#define ABSENT {NONE, 0, {0}}

static const struct shaped {
    const struct cube_entries *family;
    const char *op;
    struct argument arguments[ARGUMENTS];
    struct argument results[4];
} calls[] = {
    {&cube_arrange_entries,
     "pad",
     {X3(3, 5, 9), L4(1, 2, 0, 1), N(0), N(3)},
     {X3(3, 6, 12)}},
    {&cube_arrange_entries,
     "pad",
     {X3(3, 5, 16), L4(0, 0, 2, 1), N(0), N(3)},
     {X3(3, 8, 16)}},
    {&cube_arrange_entries,
     "pad",
     {X3(3, 5, 9), L4(1, 2, 0, 1), N(1), N(0)},
     {X3(3, 6, 12)}},
    {&cube_arrange_entries,
     "pad",
     {X3(3, 5, 9), L4(1, 2, 0, 1), N(2), N(0)},
     {X3(3, 6, 12)}},
    {&cube_arrange_entries,
     "roll",
     {X3(3, 5, 9), L2(2, 1), L2(0, 2)},
     {X3(3, 5, 9)}},
    {&cube_arrange_entries, "triu", {X3(3, 5, 16), N(1)}, {X3(3, 5, 16)}},
    {&cube_arrange_entries, "tril", {X3(3, 5, 9), N(-1)}, {X3(3, 5, 9)}},
    {&cube_columns_entries,
     "im2col",
     {X4(2, 3, 8, 9), L1(3), L1(2), L1(1), L0},
     {X3(2, 27, 20)}},
    {&cube_columns_entries,
     "col2im",
     {X3(2, 27, 20), L2(8, 9), L1(3), L1(2), L1(1), L0},
     {X4(2, 3, 8, 9)}},
    {&cube_sample_entries,
     "grid_sample",
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2), N(0), N(0), N(0)},
     {X4(2, 9, 3, 4)}},
    {&cube_sample_entries,
     "grid_sample",
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2), N(1), N(2), N(1)},
     {X4(2, 9, 3, 4)}},
    {&cube_sample_entries,
     "grid_sample_backward",
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2), X4(2, 9, 3, 4), N(0), N(2), N(0)},
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2)}},
    {&cube_sample_entries,
     "grid_sample_backward",
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2), X4(2, 9, 3, 4), N(1), N(1), N(0)},
     {X4(2, 9, 6, 7), X4(2, 3, 4, 2)}},
    {&cube_fft_entries,
     "rfft",
     {X2(5, 60), N(-1), ABSENT},
     {X2(5, 31), X2(5, 31)}},
    {&cube_fft_entries,
     "rfft",
     {X2(5, 60), N(0), ABSENT},
     {X2(3, 60), X2(3, 60)}},
    {&cube_fft_entries,
     "rfft",
     {X2(2, 5000), N(-1), ABSENT},
     {X2(2, 2501), X2(2, 2501)}},
    {&cube_fft_entries,
     "rfft",
     {X2(5, 64), N(-1), ABSENT},
     {X2(5, 33), X2(5, 33)}},
    {&cube_fft_entries,
     "irfft",
     {X2(2, 4097), X2(2, 4097), N(-1), ABSENT},
     {X2(2, 8192)}},
    {&cube_fft_entries,
     "irfft",
     {X2(2, 2501), X2(2, 2501), N(-1), N(2625)},
     {X2(2, 2625)}},
    {&cube_fft_entries,
     "irfft",
     {X2(2, 2501), X2(2, 2501), N(-1), N(5000)},
     {X2(2, 5000)}},
    {&cube_fft_entries,
     "irfft",
     {X2(5, 31), X2(5, 31), N(-1), N(60)},
     {X2(5, 60)}},
    {&cube_fft_entries,
     "irfft",
     {X2(5, 31), X2(5, 31), N(-1), N(49)},
     {X2(5, 49)}},
    {&cube_loss_entries,
     "cross_entropy",
     {X2(7, 10), I1(7)},
     {{FLOATS, 0, {0}}}},
    {&cube_loss_entries,
     "cross_entropy",
     {X2(7, 90), I1(7)},
     {{FLOATS, 0, {0}}}},
    {&cube_loss_entries,
     "cross_entropy_backward",
     {X2(7, 10), I1(7), {FLOATS, 0, {0}}},
     {X2(7, 10)}},
    {&cube_loss_entries,
     "cross_entropy_backward",
     {X2(7, 90), I1(7), {FLOATS, 0, {0}}},
     {X2(7, 90)}},
    {&cube_loss_entries,
     "cross_entropy",
     {X2(3, 131072), I1(3)},
     {{FLOATS, 0, {0}}}},
    {&cube_loss_entries,
     "cross_entropy_backward",
     {X2(3, 131072), I1(3), {FLOATS, 0, {0}}},
     {X2(3, 131072)}},
    {&cube_pool_entries,
     "max_pool2d",
     {X4(2, 3, 9, 11), L1(3), L1(2), L1(1), L0, N(0)},
     {X4(2, 3, 5, 6)}},
    {&cube_pool_entries,
     "max_pool2d_with_indices",
     {X4(2, 3, 9, 11), L1(3), L1(2), L1(1), L0, N(0), N(HOB_DTYPE_I32)},
     {X4(2, 3, 5, 6), I4(2, 3, 5, 6)}},
    {&cube_pool_entries,
     "max_pool2d_backward",
     {L4(2, 3, 9, 11), X4(2, 3, 5, 6), I4(2, 3, 5, 6)},
     {X4(2, 3, 9, 11)}},
    {&cube_pool_entries,
     "avg_pool2d",
     {X4(2, 3, 9, 11), L1(3), L1(2), L1(1), N(1), N(0)},
     {X4(2, 3, 5, 6)}},
    {&cube_pool_entries,
     "avg_pool2d_backward",
     {L4(2, 3, 9, 11), X4(2, 3, 5, 6), L1(3), L1(2), L1(1), N(0), N(0)},
     {X4(2, 3, 9, 11)}},
    {&cube_pool_entries,
     "adaptive_avg_pool",
     {X4(2, 3, 9, 11), L2(4, 3)},
     {X4(2, 3, 4, 3)}},
    {&cube_pool_entries,
     "adaptive_avg_pool_backward",
     {X4(2, 3, 4, 3), L2(9, 11)},
     {X4(2, 3, 9, 11)}},
    {&cube_conv_entries,
     "conv2d",
     {X4(32, 128, 40, 40), X4(256, 128, 3, 3), X1(256), L0, L1(1), L0, N(1)},
     {X4(32, 256, 40, 40)}},
    {&cube_conv_entries,
     "conv2d",
     {X4(32, 16, 40, 40), X4(64, 16, 3, 3), ABSENT, L0, L1(1), L0, N(1)},
     {X4(32, 64, 40, 40)}},
    {&cube_conv_entries,
     "conv2d",
     {X4(2, 8, 9, 11), X4(16, 8, 3, 3), ABSENT, L0, L1(1), L0, N(1)},
     {X4(2, 16, 9, 11)}},
    {&cube_conv_entries,
     "conv2d",
     {X4(2, 8, 9, 11), X4(8, 1, 3, 3), X1(8), L0, L1(1), L0, N(8)},
     {X4(2, 8, 9, 11)}},
    {&cube_conv_entries,
     "conv2d_x_backward",
     {L4(2, 8, 9, 11), X4(16, 8, 3, 3), X4(2, 16, 5, 6), L1(2), L1(1), L0,
      N(1)},
     {X4(2, 8, 9, 11)}},
    {&cube_conv_entries, "conv2d_x_backward",
     {L4(2, 3, 21, 23), X4(64, 3, 7, 7), X4(2, 64, 11, 12), L1(2), L1(3), L0,
      N(1)},
     {X4(2, 3, 21, 23)}},
    {&cube_conv_entries, "conv2d_x_backward",
     {L4(2, 1, 21, 23), X4(64, 1, 3, 3), X4(2, 64, 21, 23), L0, L1(1), L0,
      N(1)},
     {X4(2, 1, 21, 23)}},
    {&cube_conv_entries,
     "conv2d_weight_backward",
     {X4(32, 64, 40, 40), L4(64, 64, 3, 3), X4(32, 64, 40, 40), L0, L1(1), L0,
      N(1)},
     {X4(64, 64, 3, 3)}},
    {&cube_conv_entries,
     "conv2d_weight_backward",
     {X4(8, 8, 30, 30), L4(8, 1, 3, 3), X4(8, 8, 30, 30), L0, L1(1), L0, N(8)},
     {X4(8, 1, 3, 3)}},
    /* rows that no group keeps */
    {&cube_rows_entries, "softmax", {X2(3, 65536), N(1)}, {X2(3, 65536)}},
    {&cube_rows_entries, "softmax", {X2(3, 50001), N(1)}, {X2(3, 50001)}},
    {&cube_rows_entries,
     "layer_norm",
     {X2(2, 131072), X1(131072), X1(131072), R(1)},
     {X2(2, 131072)}},
    {&cube_rows_entries,
     "log_softmax_backward",
     {X2(2, 131072), X2(2, 131072), N(1)},
     {X2(2, 131072)}},
    {&cube_rows_entries, "layer_norm",
     {X2(3, 65536), ABSENT, ABSENT, R(1)}, {X2(3, 65536)}},
    /* large and small tiles, narrow and wide rows, all options */
    {&cube_attention_entries,
     "attention",
     {X3(64, 256, 64), X3(64, 256, 64), X3(64, 256, 64), ABSENT, ABSENT, ABSENT,
      ABSENT, N(0)},
     {X3(64, 256, 64), S3(64, 256, 1)}},
    {&cube_attention_entries,
     "attention",
     {X3(64, 256, 128), X3(64, 256, 128), X3(64, 256, 128), ABSENT, ABSENT,
      ABSENT, ABSENT, N(1)},
     {X3(64, 256, 128), S3(64, 256, 1)}},
    {&cube_attention_entries,
     "attention",
     {X3(128, 70, 130), X3(128, 70, 130), X3(128, 70, 130), ABSENT, ABSENT,
      R(1), ABSENT, N(0)},
     {X3(128, 70, 130), S3(128, 70, 1)}},
    {&cube_attention_entries,
     "attention",
     {X2(40, 63), X2(70, 63), X2(70, 100), B2(40, 70), X2(40, 70), ABSENT, R(3),
      N(1)},
     {X2(40, 100), S2(40, 1)}},
    {&cube_attention_entries,
     "attention_backward",
     {X3(64, 256, 64), X3(64, 256, 64), X3(64, 256, 64), ABSENT, ABSENT,
      S3(64, 256, 1), X3(64, 256, 1), X3(64, 256, 64), ABSENT, ABSENT, N(1),
      N(0)},
     {X3(64, 256, 64), X3(64, 256, 64), X3(64, 256, 64)}},
    {&cube_attention_entries,
     "attention_backward",
     {X2(40, 63), X2(70, 63), X2(70, 100), B2(40, 70), X2(40, 70), S2(40, 1),
      X2(40, 1), X2(40, 100), ABSENT, R(3), N(1), N(1)},
     {X2(40, 63), X2(70, 63), X2(70, 100), X2(40, 70)}},
    {&cube_attention_entries,
     "attention_delta",
     {X3(64, 256, 64), X3(64, 256, 64)},
     {S3(64, 256, 1)}},
    {&cube_attention_entries,
     "attention_delta",
     {X2(40, 63), X2(40, 63)},
     {S2(40, 1)}},
};

#undef X3
#undef S2
#undef S3
#undef B2
#undef R
#undef X2
#undef X1
#undef X4
#undef I4
#undef I1
#undef L0
#undef L1
#undef L2
#undef L4
#undef N
#undef ABSENT

static void add_argument(struct fake_call *fake, uint32_t index,
                         const struct argument *argument, uint32_t dtype)
{
    struct fake_tensor *tensor = &fake->arg_tensors[index];

    switch (argument->kind) {
    case NONE:
        fake_call_value(fake, hob_none());
        return;
    case LIST:
        fake_call_value(fake, hob_value_i64s(argument->numbers,
                                             argument->count));
        return;
    case NUMBER:
        fake_call_value(fake, hob_i64(argument->numbers[0]));
        return;
    case REAL:
        fake_call_value(fake, hob_f64((double)argument->numbers[0]));
        return;
    default:
        fake_tensor_init(tensor, dtype, argument->count, argument->numbers, 0);
        memset(tensor->view.data, 0, tensor->bytes);
        fake_call_view(fake, &tensor->view);
    }
}

static uint32_t dtype_of(const struct argument *argument, uint32_t dtype)
{
    return argument->kind == INTS      ? HOB_DTYPE_I32
           : argument->kind == BOOLS   ? HOB_DTYPE_BOOL
           : argument->kind == SINGLES ? HOB_DTYPE_F32
                                       : dtype;
}

static uint32_t length_of(const struct argument *list, uint32_t most)
{
    uint32_t count = most;

    while (count > 0 && list[count - 1].kind == NONE)
        count--;
    return count;
}

static void run(const struct shaped *shaped, struct fake_host *host,
                void *device, uint32_t dtype)
{
    const struct hob_entry *entry = fake_entry_find(
        shaped->family->entries, shaped->family->count, shaped->op);
    const uint32_t count = length_of(shaped->arguments, ARGUMENTS);
    struct fake_call fake;
    hob_status st;

    ck_assert_msg(entry != NULL, "no entry %s", shaped->op);
    /* The core runs the body for others. */
    if (!(entry->dtypes[0] >> dtype & 1) &&
        !(entry->dtypes[entry->dtype_count - 1] >> dtype & 1))
        return;
    fake_call_init(&fake, host, shaped->op);
    for (uint32_t i = 0; i < count; i++)
        add_argument(&fake, i, &shaped->arguments[i],
                     dtype_of(&shaped->arguments[i], dtype));
    for (uint32_t i = 0; i < length_of(shaped->results, 4); i++)
        fake_call_result(&fake, dtype_of(&shaped->results[i], dtype),
                         shaped->results[i].count, shaped->results[i].numbers);
    st = fake_call_run(&fake, entry, device);
    /* Some combinations are left to the op's body. */
    ck_assert_msg(st == HOB_OK || st == HOB_ERR_UNSUPPORTED, "%s: %s",
                  shaped->op, host->message);
    for (uint32_t i = 0; i < count; i++)
        fake_tensor_release(&fake.arg_tensors[i]);
    fake_call_release(&fake);
}

void shaped_calls_run(struct fake_host *host, void *device,
                      void (*before)(void *context, const char *name),
                      void *context)
{
    char name[64];

    for (uint32_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (uint32_t dtype = 1; dtype <= HOB_DTYPE_BOOL; dtype++) {
            if (!(HOB_MASK_FLOAT >> dtype & 1))
                continue;
            snprintf(name, sizeof(name), "%s-%u-%s", calls[i].op, i,
                     hob_dtype_name(dtype));
            before(context, name);
            run(&calls[i], host, device, dtype);
        }
}
