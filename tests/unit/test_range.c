/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the integers of tensors: on the reference backend without
 * the flag that its memory is the host's, as a GPU's is not.
 */
#include "hob_check.h"
#include "mock/reference_backend.h"
#include "range.h"
#include "tensor.h"

#include <hob/hob.h>
#include <hob/ops.h>

#include <stdlib.h>
#include <string.h>

enum { POOL = 12, STEPS = 4000 };

static hob_runtime *runtime;
static hob_device *device;
static hob_scope *scope;
static hob_error error;

/* The reference backend as one whose elements only it can read. */
static const struct hob_plugin *entry_apart(const struct hob_host *host)
{
    static struct hob_backend backend;
    static struct hob_plugin plugin;

    plugin = *hob_plugin_entry_reference(host);
    backend = *plugin.backend;
    backend.flags = 0;
    plugin.backend = &backend;
    return &plugin;
}

static void setup(void)
{
    const struct hob_static_plugin apart = {reference_backend_manifest,
                                            entry_apart};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = &apart;
    options.static_plugin_count = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "reference", &device, &error));
    scope = hob_scope_open(runtime);
    hob_seed(scope, 7);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(device);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    hob_error_release(&error);
}

/* Nonzero if a kernel would be told OUT of TENSOR. */
static int ask(hob_tensor *tensor, int64_t out[2])
{
    hob_value arg = hob_value_tensor(tensor);
    struct hob_call call;

    memset(&call, 0, sizeof(call));
    call.args = &arg;
    call.arg_count = 1;
    return hob__arg_range(&call, 0, &out[0], &out[1]);
}

#define KNOWN(tensor, low, high)                                               \
    do {                                                                       \
        hob_tensor *asked_ = (tensor);                                         \
        int64_t range_[2] = {0, 0};                                            \
                                                                               \
        ck_assert_hob_ok(hob_scope_error(scope, &error));                      \
        ck_assert_msg(ask(asked_, range_), "nothing known of %s", #tensor);    \
        ck_assert_int_eq(range_[0], low);                                      \
        ck_assert_int_eq(range_[1], high);                                     \
    } while (0)

#define UNKNOWN(tensor)                                                        \
    do {                                                                       \
        hob_tensor *asked_ = (tensor);                                         \
        int64_t range_[2] = {0, 0};                                            \
                                                                               \
        ck_assert_hob_ok(hob_scope_error(scope, &error));                      \
        ck_assert_msg(!ask(asked_, range_), "%s is said to be known",          \
                      #tensor);                                                \
    } while (0)

static hob_tensor *integers(const int32_t *numbers, int64_t count)
{
    return hob_from_i32(scope, device, numbers, &count, 1);
}

START_TEST(test_range_of_what_is_uploaded)
{
    const int32_t few[] = {4, -2, 7};
    const int64_t wide[] = {0, INT64_C(1) << 40};
    const uint64_t huge[] = {UINT64_MAX, 3};
    const uint8_t bytes[] = {255, 1};
    const float floats[] = {1, 2};
    const int64_t two = 2, none = 0, many = INT64_C(1) << 20;
    int32_t *zeros = calloc((size_t)many, sizeof(*zeros));

    ck_assert_ptr_nonnull(zeros);
    KNOWN(integers(few, 3), -2, 7);
    KNOWN(hob_from_data(scope, device, HOB_DTYPE_U8, bytes, &two, 1), 1, 255);
    UNKNOWN(hob_from_data(scope, device, HOB_DTYPE_I64, wide, &two, 1));
    UNKNOWN(hob_from_data(scope, device, HOB_DTYPE_U64, huge, &two, 1));
    UNKNOWN(hob_from_data(scope, device, HOB_DTYPE_F32, floats, &two, 1));
    UNKNOWN(hob_from_i32(scope, device, few, &none, 1));
    UNKNOWN(integers(zeros, many)); /* too many to look at */
    KNOWN(integers(zeros, 60000), 0, 0);
    free(zeros);
}
END_TEST

START_TEST(test_range_of_the_ends_of_each_dtype)
{
    static const struct {
        hob_dtype dtype;
        int64_t low, high;
    } cases[] = {{HOB_DTYPE_I8, -128, 127},
                 {HOB_DTYPE_U8, 0, 255},
                 {HOB_DTYPE_I16, -32768, 32767},
                 {HOB_DTYPE_U16, 0, 65535}};
    const int32_t ends[] = {INT32_MIN, INT32_MAX - 1}, last[] = {INT32_MAX};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int32_t fits[] = {(int32_t)cases[i].low, (int32_t)cases[i].high};
        const int32_t below[] = {(int32_t)cases[i].low - 1, 0};
        const int32_t above[] = {0, (int32_t)cases[i].high + 1};

        KNOWN(hob_cast(scope, integers(fits, 2), cases[i].dtype), cases[i].low,
              cases[i].high);
        UNKNOWN(hob_cast(scope, integers(below, 2), cases[i].dtype));
        UNKNOWN(hob_cast(scope, integers(above, 2), cases[i].dtype));
    }
    KNOWN(integers(ends, 2), INT32_MIN, INT32_MAX - 1);
    UNKNOWN(integers(last, 1));
    UNKNOWN(hob_cast(scope, integers(ends, 2), HOB_DTYPE_U32));
}
END_TEST

START_TEST(test_range_of_what_is_picked_and_placed)
{
    const int32_t numbers[] = {3, 9, 5, 3}, at[] = {2, 0};
    const int64_t shape[] = {2, 2}, five = 5;
    hob_tensor *x = integers(numbers, 4), *square, *values, *places;
    hob_tensor *floats = hob_random_uniform(scope, (int64_t[]){3, 5}, 2, 0, 1,
                                            device, HOB_DTYPE_F32);

    square = hob_reshape(scope, x, shape, 2);
    KNOWN(square, 3, 9);
    KNOWN(hob_contiguous(scope, hob_swap_dims(scope, square, 0, 1)), 3, 9);
    KNOWN(hob_gather(scope, x, integers(at, 2), 0), 3, 9);
    KNOWN(hob_cast(scope, x, HOB_DTYPE_I64), 3, 9);
    KNOWN(hob_cast(scope, hob_equal(scope, x, x), HOB_DTYPE_I32), 0, 1);
    UNKNOWN(hob_cast(scope, floats, HOB_DTYPE_I32));
    UNKNOWN(hob_add(scope, x, x));
    KNOWN(hob_argmax(scope, floats, -1, HOB_DTYPE_I32), 0, 4);
    KNOWN(hob_argmax(scope, floats, 0, HOB_DTYPE_I64), 0, 2);
    ck_assert_hob_ok(hob_sort_with_indices(scope, floats, 1, 0, HOB_DTYPE_I32,
                                           &values, &places));
    UNKNOWN(values);
    KNOWN(places, 0, 4);
    ck_assert_hob_ok(
        hob_sort_with_indices(scope, x, 0, 1, HOB_DTYPE_I32, &values, &places));
    KNOWN(values, 3, 9);
    KNOWN(hob_full(scope, &five, 1, hob_f64(-6), device, HOB_DTYPE_I32), -6,
          -6);
    UNKNOWN(hob_full(scope, &five, 1, hob_i64(3), device, HOB_DTYPE_F32));
    KNOWN(hob_arange(scope, 3, 20, 4, device, HOB_DTYPE_I32), 3, 19);
    KNOWN(hob_arange(scope, 3, -6, -4, device, HOB_DTYPE_I32), -5, 3);
}
END_TEST

START_TEST(test_range_ends_where_others_may_write)
{
    const int32_t numbers[] = {3, 9};
    hob_tensor *x = integers(numbers, 2);

    KNOWN(x, 3, 9);
    atomic_fetch_or(&x->view.storage->flags, HOB__STORAGE_EXPORTED);
    UNKNOWN(x);
}
END_TEST

/* ---- what is said is true, whatever was done ---- */

static hob_tensor *fresh(void)
{
    int32_t numbers[12];
    const int64_t shape[] = {3, 4};
    const int32_t least = rand() % 40 - 10, span = rand() % 30 + 1;

    for (int i = 0; i < 12; i++)
        numbers[i] = least + rand() % span;
    return hob_from_i32(scope, device, numbers, shape, 2);
}

static hob_tensor *any_op(hob_tensor *x, hob_tensor *y)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_I8, HOB_DTYPE_U8,
                                       HOB_DTYPE_I64, HOB_DTYPE_U16};
    const int64_t shape[] = {3, 4};
    hob_tensor *both[] = {x, y};
    const int32_t dim = rand() % 2;

    switch (rand() % 14) {
    case 0:
        return hob_add(scope, hob_move(scope, x), y);
    case 1:
        return hob_mul_scalar(scope, hob_move(scope, x), hob_i64(-3));
    case 2:
        return hob_cast(scope, hob_cast(scope, x, dtypes[rand() % 4]),
                        HOB_DTYPE_I32);
    case 3:
        return hob_flip(scope, x, (const int64_t[]){dim}, 1);
    case 4:
        return hob_slice(scope, hob_cat(scope, both, 2, 0),
                         (const int64_t[]){2, 0}, 2, (const int64_t[]){5, 4}, 2,
                         (const int64_t[]){1, 1}, 2);
    case 5:
        return hob_sort(scope, x, dim, rand() % 2);
    case 6:
        return hob_argsort(scope, x, dim, 0, HOB_DTYPE_I32);
    case 7:
        return hob_gather(scope, x, hob_remainder_scalar(scope, y, hob_i64(3)),
                          dim);
    case 8:
        return hob_select(scope, x, integers((int32_t[]){2, 0, 2}, 3), 0);
    case 9:
        return hob_clamp(scope, x, hob_i64(rand() % 5), hob_i64(rand() % 9));
    case 10:
        return hob_expand(scope, hob_max_dim(scope, x, dim), shape, 2);
    case 11:
        return hob_remainder_scalar(scope, hob_move(scope, x),
                                    hob_i64(rand() % 9 - 4 ? 5 : -7));
    case 12:
        return hob_reshape(scope,
                           hob_slice(scope, hob_repeat_dim(scope, x, 0, 2),
                                     (const int64_t[]){1, 0}, 2,
                                     (const int64_t[]){4, 4}, 2,
                                     (const int64_t[]){1, 1}, 2),
                           shape, 2);
    default:
        return hob_where(scope, hob_greater(scope, x, y), x, y);
    }
}

static int check_one(hob_tensor *tensor)
{
    int32_t numbers[12];
    int64_t range[2];

    if (!ask(tensor, range))
        return 0;
    ck_assert_hob_ok(hob_read(tensor, numbers, sizeof(numbers), &error));
    for (int i = 0; i < 12; i++) {
        ck_assert_int_ge(numbers[i], range[0]);
        ck_assert_int_le(numbers[i], range[1]);
    }
    return 1;
}

START_TEST(test_range_is_true_of_random_programs)
{
    hob_tensor *pool[POOL];
    int known = 0;

    srand(11);
    for (int i = 0; i < POOL; i++)
        pool[i] = fresh();
    for (int step = 0; step < STEPS; step++) {
        const int to = rand() % POOL;
        int from = rand() % POOL;
        hob_tensor *made =
            any_op(pool[to], pool[from == to ? (to + 1) % POOL : from]);

        ck_assert_hob_ok(hob_scope_error(scope, &error));
        pool[to] = made;
        known += check_one(made);
        /* What was moved away is a tombstone: another takes its place. */
        if (rand() % 8 == 0)
            pool[rand() % POOL] = fresh();
    }
    /* Else nothing was tested. */
    ck_assert_int_gt(known, STEPS / 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *tcase = tcase_create("range");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_range_of_what_is_uploaded);
    tcase_add_test(tcase, test_range_of_the_ends_of_each_dtype);
    tcase_add_test(tcase, test_range_of_what_is_picked_and_placed);
    tcase_add_test(tcase, test_range_ends_where_others_may_write);
    tcase_add_test(tcase, test_range_is_true_of_random_programs);
    suite_add_tcase(suite, tcase);
    return hob_check_main(suite);
}
