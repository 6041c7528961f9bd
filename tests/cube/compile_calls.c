/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by a short text: an op, its arguments and results, each a letter and
 * what follows it.
 *
 *     x64,96    a tensor of the dtype in turn; t64,96 the same, transposed
 *     i3 l3     indices, i32 and i64; m3 a bool mask; f3 f32; c3 i8
 *     q64,96    a tensor quantized by the scheme in turn
 *     =2        an integer; ~0.5 a float; ?  an attribute that is not there
 *     >         results follow; *  one that the kernel allocates
 *     !         first: only where the op is asked for
 */
#include "compile_calls.h"
#include "hob_check.h"

#include <hob/ext/quant.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *op, *call;
    uint32_t dtypes; /* that take turns */
} calls[] = {
    /* tiles of three sizes, few rows both ways, splits, batches, transposed
     * operands */
    {"matmul", "x1280,1024 x1024,1280 > x1280,1280", HOB_MASK_NUM},
    {"matmul", "x600,64 x64,600 > x600,600", HOB_MASK_NUM},
    {"matmul", "x33,35 x35,37 > x33,37", HOB_MASK_NUM},
    {"matmul", "x40,4096 x4096,40 > x40,40", HOB_MASK_NUM},
    {"matmul", "x3,700 x700,64 > x3,64", HOB_MASK_NUM},
    {"matmul", "x3,700 t700,64 > x3,64", HOB_MASK_NUM},
    {"matmul", "x640,70 x70,3 > x640,3", HOB_MASK_NUM},
    {"matmul", "t1280,64 t64,1280 > x1280,1280", HOB_MASK_FLOAT},
    {"matmul", "t1280,63 t63,1280 > x1280,1280", HOB_MASK_FLOAT},
    {"matmul", "x4,1,40,64 x3,64,40 > x4,3,40,40", HOB_MASK_FLOAT},
    /* windows that are written out where subgroups multiply matrices */
    {"conv2d", "!x2,40,8,8 x48,40,3,3 x48 ? ? ? =1 > x2,48,6,6",
     HOB_MASK_FLOAT},
    {"full", "? =3 ? ? > x40,33", HOB_MASK_NUM},
    {"arange", "=0 =100 =1 ? ? > x100", HOB_MASK_NUM},
    {"arange", "=0 =9000000000 =90000000 ? ? > x100", HOB_MASK_NUM},
    {"random_uniform", "? ~0 ~1 ? ? =7 =9 > x101", HOB_MASK_NUM},
    {"random_normal", "? ~0 ~1 ? ? =7 =9 > x101", HOB_MASK_FLOAT},
    {"random_bernoulli", "? ~0.5 ? ? =7 =9 > x101", HOB_MASK_ANY},
    {"cumsum", "x40,100 =1 > x40,100", HOB_MASK_NUM},
    {"cumsum", "x40,100 =0 > x40,100", HOB_MASK_NUM},
    {"cumsum", "x100000 =0 > x100000", HOB_MASK_NUM},
    {"cumprod", "x3000,9 =0 > x3000,9", HOB_MASK_NUM},
    {"cummax", "x100001 =0 > x100001", HOB_MASK_NUM},
    {"cummin", "t100,40 =1 > x100,40", HOB_MASK_NUM},
    {"gather", "x8,6,40 i8,3,40 =1 > x8,3,40", HOB_MASK_ANY},
    {"select", "x50,64 l30 =0 > x30,64", HOB_MASK_ANY},
    {"select", "t50,64 i30 =1 > x50,30", HOB_MASK_ANY},
    {"embedding", "x97,64 l7,20 > x7,20,64", HOB_MASK_FLOAT},
    {"mask_select", "x50,64 m50,64 > *", HOB_MASK_ANY},
    {"mask_select", "t50,64 m64 > *", HOB_MASK_ANY},
    {"scatter_add", "x8,6,40 i8,3,40 x8,3,40 =1 > x8,6,40", HOB_MASK_NUM},
    {"select_add", "x50,64 l30 x30,64 =0 > x50,64", HOB_MASK_NUM},
    {"sort_with_indices", "x40,100 =1 =0 ? > x40,100 i40,100", HOB_MASK_NUM},
    {"sort_with_indices", "x40,100 =0 =1 ? > x40,100 i40,100", HOB_MASK_NUM},
    {"sort_with_indices", "x3,5000 =1 =1 ? > x3,5000 l3,5000", HOB_MASK_NUM},
    {"layer_norm_backward", "x40,300 x300 x40,300 ~0.1 > x40,300 x300 x300",
     HOB_MASK_FLOAT},
    {"layer_norm_backward", "x40,512 x512 x40,512 ~0.1 > x40,512 x512 x512",
     HOB_MASK_FLOAT},
    {"rms_norm_backward", "x9,5000 ? x9,5000 ~0.1 > x9,5000 x5000",
     HOB_MASK_FLOAT},
    {"batch_norm", "x4,6,8,8 x6 x6 x6 x6 ~0.1 > x4,6,8,8", HOB_MASK_FLOAT},
    {"batch_norm", "x4,6,5 ? ? x6 x6 ~0.1 > x4,6,5", HOB_MASK_FLOAT},
    {"batch_norm_backward", "x4,6,8,8 x6 x6 x4,6,8,8 > x4,6,8,8 x6 x6",
     HOB_MASK_FLOAT},
    {"group_norm", "x4,6,8,8 =3 x6 x6 ~0.1 > x4,6,8,8", HOB_MASK_FLOAT},
    {"interpolate", "x2,3,8,9 ? =0 =0 > x2,3,5,17", HOB_MASK_FLOAT},
    {"interpolate", "x2,3,8,9 ? =2 =0 > x2,3,5,17", HOB_MASK_FLOAT},
    {"interpolate", "x2,3,8,9 ? =3 =1 > x2,3,17,5", HOB_MASK_FLOAT},
    {"interpolate", "x2,3,8,9 ? =4 =1 > x2,3,17,5", HOB_MASK_FLOAT},
    {"interpolate_backward", "x2,3,8,9 ? =1 =0 > x2,3,17,5", HOB_MASK_FLOAT},
    {"interpolate_backward", "x2,3,8,9 ? =4 =1 > x2,3,5,17", HOB_MASK_FLOAT},
    {"quantize", "x64,96 f1 ? > q64,96", HOB_MASK_FLOAT},
    {"dequantize", "q64,96 ? > x64,96", HOB_MASK_FLOAT},
    {"quantized_values", "q64,96 > c64,96", HOB_DTYPE_BIT(HOB_DTYPE_I8)},
    {"quantized_from", "c64,96 f1 ? > q64,96", HOB_DTYPE_BIT(HOB_DTYPE_I8)},
};

/* One call on its way. */
struct turn {
    struct fake_call fake;
    uint32_t dtype, scheme;
    uint32_t tensors; /* of fake.arg_tensors, those in use */
};

static const char *read_shape(const char *at, uint32_t *out_rank,
                              int64_t shape[HOB_MAX_RANK])
{
    char *end;

    *out_rank = 0;
    do {
        shape[(*out_rank)++] = strtol(at, &end, 10);
        at = end + 1;
    } while (*end == ',');
    return end;
}

static uint32_t dtype_of(const struct turn *turn, char letter)
{
    switch (letter) {
    case 'i':
        return HOB_DTYPE_I32;
    case 'l':
        return HOB_DTYPE_I64;
    case 'm':
        return HOB_DTYPE_BOOL;
    case 'f':
        return HOB_DTYPE_F32;
    case 'c':
        return HOB_DTYPE_I8;
    case 'q': /* bytes enough for codes and scales */
        return HOB_DTYPE_F32;
    default:
        return turn->dtype;
    }
}

/* Elements are the zeros that all indices, scales and codes may be. */
static void add_tensor(struct turn *turn, char letter, uint32_t rank,
                       const int64_t *shape)
{
    struct fake_tensor *tensor = &turn->fake.arg_tensors[turn->tensors++];
    struct hob_view view;
    int64_t stride = 1;

    fake_tensor_init(tensor, dtype_of(turn, letter), rank, shape, 0);
    memset(tensor->view.data, 0, (size_t)tensor->bytes);
    view = tensor->view;
    for (uint32_t i = 0; i < rank && letter == 't'; i++) {
        view.strides[i] = stride;
        stride *= shape[i];
    }
    fake_view_flags(&view);
    if (letter == 'q') {
        view.dtype = HOB_DTYPE_QUANT;
        view.scheme = turn->scheme;
    }
    fake_call_view(&turn->fake, &view);
}

static void add_result(struct turn *turn, char letter, uint32_t rank,
                       const int64_t *shape)
{
    const uint32_t index = turn->fake.call.ret_count;

    fake_call_result(&turn->fake, dtype_of(turn, letter), rank, shape);
    if (letter == 'q') {
        turn->fake.results[index].view.dtype = HOB_DTYPE_QUANT;
        turn->fake.results[index].view.scheme = turn->scheme;
    }
}

static void fill(struct turn *turn, const char *at)
{
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank;
    int is_result = 0;

    while (*at) {
        const char letter = *at++;
        char *end;

        if (letter == '>')
            is_result = 1;
        else if (letter == '*')
            fake_call_result_dynamic(&turn->fake);
        else if (letter == '?') {
            /* Its place among the tensors goes too. */
            turn->tensors++;
            fake_call_value(&turn->fake, hob_none());
        } else if (letter == '=') {
            turn->tensors++;
            fake_call_value(&turn->fake, hob_i64(strtoll(at, &end, 10)));
            at = end;
        } else if (letter == '~') {
            turn->tensors++;
            fake_call_value(&turn->fake, hob_f64(strtod(at, &end)));
            at = end;
        } else if (letter != ' ' && letter != '!') {
            at = read_shape(at, &rank, shape);
            (is_result ? add_result : add_tensor)(turn, letter, rank, shape);
        }
    }
}

static void run_turn(struct cube_device *device, struct fake_host *host,
                     const struct hob_entry *entry, const char *call,
                     uint32_t dtype, uint32_t scheme)
{
    struct turn *turn = calloc(1, sizeof(*turn));

    ck_assert_ptr_nonnull(turn);
    turn->dtype = dtype;
    turn->scheme = scheme;
    fake_call_init(&turn->fake, host, entry->op);
    fill(turn, call);
    ck_assert_msg(fake_call_run(&turn->fake, entry, device) == HOB_OK,
                  "%s %s of %s: %s", entry->op, call, hob_dtype_name(dtype),
                  host->message);
    for (uint32_t i = 0; i < turn->tensors; i++)
        fake_tensor_release(&turn->fake.arg_tensors[i]);
    fake_call_release(&turn->fake);
    free(turn);
}

/* Each format; with one scale, and with blocks of two dimensions. */
static uint32_t scheme_of(uint32_t value, int is_blocked)
{
    uint32_t blocks = 0;

    if (is_blocked)
        ck_assert(hob_quant_blocks((const int64_t[]){8, 16}, NULL, 2, &blocks));
    return hob_quant_scheme(value, HOB_DTYPE_F32, 0, blocks);
}

void compile_calls_run(struct cube_device *device, struct fake_host *host,
                       const char *only, const char **asks)
{
    struct hob_entry *entries = calloc(cube_entry_count(), sizeof(*entries));
    char name[64];

    ck_assert_ptr_nonnull(entries);
    cube_entries_copy(entries);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const struct hob_entry *entry =
            fake_entry_find(entries, cube_entry_count(), calls[i].op);
        const uint32_t formats =
            strchr(calls[i].call, 'q') ? HOB_QUANT_VALUE_COUNT_ : 2;

        if (only ? strcmp(calls[i].op, only) != 0 : *calls[i].call == '!')
            continue;
        ck_assert_msg(entry != NULL, "no entry of %s", calls[i].op);
        *asks = name;
        for (uint32_t dtype = 1; dtype <= HOB_DTYPE_BOOL; dtype++) {
            if (!(calls[i].dtypes >> dtype & 1))
                continue;
            snprintf(name, sizeof(name), "%s-%s-%zu", calls[i].op,
                     hob_dtype_name(dtype), i);
            for (uint32_t value = 1; value < formats; value++)
                for (int is_blocked = 0; is_blocked < 2; is_blocked++)
                    run_turn(device, host, entry, calls[i].call, dtype,
                             scheme_of(value, is_blocked));
        }
    }
    free(entries);
}
