/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of earlier calls: it is used for what is alike, for nothing
 * else, and a wrong call is told of however often it comes.
 */
#include "known.h"

#include "process.h"
#include "runtime.h"
#include "tensor.h"

#include <hob/hob.h>

#include "hob_check.h"
#include "test_device.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SHAPES = 3000 };

static hob_runtime *runtime;
static hob_device *flex, *tracked;
static hob_scope *scope;
static hob_error error;

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    options.threads = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &flex, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &tracked, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(flex);
    hob_device_unref(tracked);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* ROWS x COLUMNS zeros. */
static hob_tensor *make(hob_scope *in, hob_device *device, hob_dtype dtype,
                        int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};

    return hob_zeros(in, shape, 2, device, dtype);
}

/* How many calls are known: what is written over counts again. */
static uint64_t count_known(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < HOB__KNOWN_SLOTS; i++)
        count += atomic_load(&runtime->known.slots[i].version);
    return count;
}

static void is_shape(hob_tensor *tensor, hob_dtype dtype, int64_t rows,
                     int64_t columns)
{
    ck_assert_hob_ok(hob_tensor_status(tensor, &error));
    ck_assert_int_eq(hob_tensor_dtype(tensor), dtype);
    ck_assert_int_eq(hob_tensor_rank(tensor), 2);
    ck_assert_int_eq(hob_tensor_shape(tensor)[0], rows);
    ck_assert_int_eq(hob_tensor_shape(tensor)[1], columns);
}

START_TEST(test_known_calls_are_found_again)
{
    hob_tensor *x = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_tensor *row = make(scope, flex, HOB_DTYPE_F32, 1, 3);
    uint64_t count;

    /* The first call makes the route that the second one finds. */
    is_shape(hob_add(scope, x, row), HOB_DTYPE_F32, 2, 3);
    is_shape(hob_add(scope, x, row), HOB_DTYPE_F32, 2, 3);
    count = count_known();
    ck_assert_uint_gt(count, 0);
    for (int i = 0; i < 5; i++)
        is_shape(hob_add(scope, x, row), HOB_DTYPE_F32, 2, 3);
    ck_assert_uint_eq(count_known(), count);
    is_shape(hob_add(scope, row, x), HOB_DTYPE_F32, 2, 3);
    ck_assert_uint_gt(count_known(), count);
}
END_TEST

/* Each of these differs from the one before in one thing alone. */
START_TEST(test_known_calls_are_told_apart)
{
    static const int64_t ends[][2] = {{2, 3}, {1, 3}, {2, 2}};
    static const int64_t zero[2];
    static const int64_t order[] = {1, 0};

    for (int round = 0; round < 3; round++) {
        hob_tensor *f32 = make(scope, flex, HOB_DTYPE_F32, 2, 3);
        hob_tensor *f64 = make(scope, flex, HOB_DTYPE_F64, 2, 3);
        hob_tensor *above = make(scope, tracked, HOB_DTYPE_F32, 2, 3);
        hob_tensor *result;

        is_shape(hob_add(scope, f32, f32), HOB_DTYPE_F32, 2, 3);
        is_shape(hob_add(scope, f64, f64), HOB_DTYPE_F64, 2, 3);
        result = hob_add(scope, above, above);
        is_shape(result, HOB_DTYPE_F32, 2, 3);
        ck_assert_ptr_eq(hob_tensor_device(result), tracked);
        result = hob_add(scope, above, f32); /* joined */
        is_shape(result, HOB_DTYPE_F32, 2, 3);
        ck_assert_ptr_eq(hob_tensor_device(result), tracked);
        is_shape(hob_cast(scope, f32, HOB_DTYPE_F64), HOB_DTYPE_F64, 2, 3);
        is_shape(hob_cast(scope, f32, HOB_DTYPE_I32), HOB_DTYPE_I32, 2, 3);
        for (int i = 0; i < 3; i++)
            is_shape(hob_slice(scope, f32, zero, 2, ends[i], 2, NULL, 0),
                     HOB_DTYPE_F32, ends[i][0], ends[i][1]);
        is_shape(hob_permute(scope, f32, order, 2), HOB_DTYPE_F32, 3, 2);
        is_shape(hob_cat(scope, (hob_tensor *[]){f32, f32}, 2, 0),
                 HOB_DTYPE_F32, 4, 3);
        is_shape(hob_cat(scope, (hob_tensor *[]){f32, f32}, 2, 1),
                 HOB_DTYPE_F32, 2, 6);
        is_shape(hob_cat(scope, (hob_tensor *[]){f32, f32, f32}, 3, 1),
                 HOB_DTYPE_F32, 2, 9);
    }
}
END_TEST

static uint64_t form_of(hob_tensor *tensor)
{
    return atomic_load(&tensor->form);
}

/* Whoever makes a tensor, and from whatever. */
START_TEST(test_known_forms_are_of_metadata)
{
    static const int64_t order[] = {1, 0};
    static const int64_t shape[] = {2, 3};
    hob_tensor *x = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_tensor *above = make(scope, tracked, HOB_DTYPE_F32, 2, 3);
    hob_tensor *y = make(scope, flex, HOB_DTYPE_F32, 3, 2);
    hob_tensor *d = make(scope, flex, HOB_DTYPE_F64, 2, 3);
    hob_tensor *like[5], *other[4];

    ck_assert_uint_eq(form_of(x), 0); /* nobody has asked */
    like[0] = hob_add(scope, x, x);
    like[1] = hob_add(scope, x, x); /* which is known */
    like[2] = hob_mul(scope, above, above);
    like[3] = hob_permute(scope, y, order, 2);
    like[4] = hob_reshape(scope, y, shape, 2);
    other[0] = y;
    other[1] = hob_neg(scope, d);
    other[2] = hob_permute(scope, x, order, 2);
    other[3] = hob_sum(scope, x);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(form_of(like[i]), form_of(x));
    for (int i = 0; i < 4; i++)
        ck_assert_uint_ne(form_of(other[i]), form_of(x));
    ck_assert_uint_eq(form_of(other[2]), form_of(y));
    ck_assert_uint_ne(form_of(x), 0);
    ck_assert_uint_eq(form_of(above), form_of(x));
}
END_TEST

/* What is forgotten gets another number, and is told apart no worse. */
START_TEST(test_known_forms_are_never_given_again)
{
    hob_tensor *x = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_tensor *y = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_tensor *other = make(scope, flex, HOB_DTYPE_F32, 2, 2);

    is_shape(hob_add(scope, x, x), HOB_DTYPE_F32, 2, 3);
    hob__known_forget(&runtime->known);
    is_shape(hob_add(scope, other, other), HOB_DTYPE_F32, 2, 2);
    is_shape(hob_add(scope, y, y), HOB_DTYPE_F32, 2, 3);
    ck_assert_uint_ne(form_of(x), form_of(other));
    ck_assert_uint_ne(form_of(y), form_of(other));
    ck_assert_uint_ne(form_of(x), form_of(y));
    is_shape(hob_add(scope, x, y), HOB_DTYPE_F32, 2, 3);
}
END_TEST

/* A number is one of a runtime. */
START_TEST(test_known_forms_are_not_given_by_another_runtime)
{
    struct hob_runtime_options options = test_options();
    hob_tensor *x = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_runtime *other;
    hob_scope *in;

    options.threads = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &other, &error));
    for (int i = 0; i < 2; i++) {
        in = hob_scope_open(other);
        (void)hob_neg(in, x);
        ck_assert_hob_fails(hob_scope_error(in, &error), HOB_ERR_DEVICE,
                            "belong to another runtime");
        hob_scope_close(in);
    }
    ck_assert_uint_eq(form_of(x), 0);
    ck_assert_hob_ok(hob_runtime_close(other, &error));
}
END_TEST

/* Whatever the caller puts behind a list that fills a key; keys are made before
 * anything is checked. */
START_TEST(test_known_calls_of_long_lists)
{
    enum { MOST = 60 };
    hob_tensor *list[MOST];

    for (uint32_t i = 0; i < MOST; i++)
        list[i] = make(scope, flex, HOB_DTYPE_F32, 1, 3);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 1; i < MOST; i++)
            is_shape(hob_cat(scope, list, i, 0), HOB_DTYPE_F32, i, 3);
    for (uint32_t i = 1; i < MOST; i++) {
        hob_value args[8] = {hob_value_tensors(list, i)};
        hob_scope *in = hob_scope_open(runtime);
        hob_tensor *out;
        uint32_t count;

        for (int k = 1; k < 8; k++)
            args[k] = hob_value_tensor(list[0]);
        ck_assert_int_eq(hob_call_op(in, HOB_OP_CAT, args, 8, &out, 1, &count),
                         HOB_ERR_ARGUMENT);
        hob_scope_close(in);
    }
}
END_TEST

/* MESSAGE is told of CALL, in a scope of its own. */
#define ck_assert_call_fails(call, status, message)                            \
    do {                                                                       \
        hob_scope *in = hob_scope_open(runtime);                               \
        (void)(call);                                                          \
        ck_assert_hob_fails(hob_scope_error(in, &error), status, message);     \
        hob_scope_close(in);                                                   \
    } while (0)

START_TEST(test_known_calls_hide_no_failure)
{
    hob_tensor *x = make(scope, flex, HOB_DTYPE_F32, 2, 3);
    hob_tensor *y = make(scope, flex, HOB_DTYPE_F32, 2, 4);
    hob_tensor *d = make(scope, flex, HOB_DTYPE_F64, 2, 3);
    hob_tensor *bytes = make(scope, flex, HOB_DTYPE_U8, 2, 3);

    for (int i = 0; i < 3; i++) {
        hob_tensor *moved = hob_add(scope, x, x);

        is_shape(hob_add_scalar(scope, bytes, hob_i64(200)), HOB_DTYPE_U8, 2,
                 3);
        ck_assert_call_fails(hob_add(in, x, y), HOB_ERR_SHAPE,
                             "do not broadcast: f32[2,3] and f32[2,4]");
        ck_assert_call_fails(hob_add(in, x, d), HOB_ERR_DTYPE,
                             "there is no implicit promotion");
        ck_assert_call_fails(hob_add_scalar(in, bytes, hob_i64(300)),
                             HOB_ERR_RANGE, "300 does not fit u8");
        is_shape(hob_relu(scope, hob_move(scope, moved)), HOB_DTYPE_F32, 2, 3);
        ck_assert_call_fails(hob_relu(in, moved), HOB_ERR_STATE,
                             "moved into relu");
        ck_assert_call_fails(hob_add(in, x, hob_add(in, x, y)), HOB_ERR_SHAPE,
                             "do not broadcast");
    }
}
END_TEST

/* Scalars take the dtype of their tensor each time. */
START_TEST(test_known_calls_bind_what_they_are_given)
{
    hob_tensor *x = hob_add_scalar(
        scope, make(scope, flex, HOB_DTYPE_F32, 2, 3), hob_f64(1.5));
    double data[6];

    for (int i = 0; i < 4; i++) {
        hob_tensor *y = hob_mul_scalar(scope, x, hob_i64(3));

        ck_assert_hob_ok(hob_read_f64(y, data, 6, &error));
        for (int k = 0; k < 6; k++)
            ck_assert_double_eq(data[k], 4.5);
    }
}
END_TEST

/* A thread that was writing when its process forked is not in the child. */
START_TEST(test_known_tables_outlive_forks)
{
    struct hob__known_slot *slots = runtime->known.slots;
    int status = 0;
    pid_t child;

    for (uint32_t i = 0; i < HOB__KNOWN_SLOTS; i += 7)
        atomic_fetch_or(&slots[i].version, (uint64_t)hob__process_mark()
                                               << HOB__KNOWN_MARK_AT);
    fflush(NULL);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        signal(SIGALRM, SIG_DFL); /* that of check kills its parent too */
        alarm(5);
        hob__known_forget(&runtime->known);
        for (uint32_t i = 0; i < HOB__KNOWN_SLOTS; i++)
            if (atomic_load(&slots[i].version) >> HOB__KNOWN_MARK_AT)
                _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    for (uint32_t i = 0; i < HOB__KNOWN_SLOTS; i += 7)
        atomic_store(&slots[i].version, 1);
}
END_TEST

/* Far more calls than there is room for. */
static void *call_many(void *context)
{
    static const int64_t order[] = {1, 0};
    const int64_t first = (int64_t)(uintptr_t)context;

    for (int64_t i = 0; i < SHAPES; i++) {
        hob_scope *in = hob_scope_open(runtime);
        const int64_t rows = 1 + (first + i * 7) % 61, columns = 1 + i % 53;
        hob_tensor *x = make(in, flex, HOB_DTYPE_I8, rows, columns);
        hob_tensor *y = hob_permute(in, hob_add(in, x, x), order, 2);
        int is_right = hob_tensor_rank(y) == 2 &&
                       hob_tensor_shape(y)[0] == columns &&
                       hob_tensor_shape(y)[1] == rows;

        hob_scope_close(in);
        if (!is_right)
            return NULL;
    }
    return runtime;
}

START_TEST(test_known_calls_of_several_threads)
{
    pthread_t threads[THREADS];
    void *is_right;

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, call_many, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &is_right), 0);
        ck_assert_ptr_nonnull(is_right);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("known");
    TCase *tc = tcase_create("known");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_known_calls_are_found_again);
    tcase_add_test(tc, test_known_calls_are_told_apart);
    tcase_add_test(tc, test_known_calls_hide_no_failure);
    tcase_add_test(tc, test_known_forms_are_of_metadata);
    tcase_add_test(tc, test_known_forms_are_never_given_again);
    tcase_add_test(tc, test_known_forms_are_not_given_by_another_runtime);
    tcase_add_test(tc, test_known_calls_of_long_lists);
    tcase_add_test(tc, test_known_calls_bind_what_they_are_given);
    tcase_add_test(tc, test_known_calls_of_several_threads);
    tcase_add_test(tc, test_known_tables_outlive_forks);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
