/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch on small plugins that are linked in: join, walk, base, bodies,
 * moves, reuse, errors. The texts of panics are in test_panic.c.
 */
#include "../support/hob_check.h"
#include "../support/static_plugins.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <pthread.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static hob_error error = HOB_ERROR_INIT;
static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *calc;

static hob_runtime *open_runtime(uint32_t policy)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_runtime *opened = NULL;

    options.policy = policy;
    options.exclusive = 1;
    options.static_plugins = test_static_plugins;
    options.static_plugin_count = test_static_plugin_count;
    options.threads = 1;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &opened, &error));
    return opened;
}

static void setup(void)
{
    runtime = open_runtime(HOB_POLICY_REPORT);
    ck_assert_hob_ok(hob_device_open(runtime, "calc", &calc, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(calc);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(test_live_blocks(), 0);
    hob_error_release(&error);
}

static hob_device *open_device(const char *spec)
{
    hob_device *device = NULL;

    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    hob_device_unref(device); /* lives as long as the runtime */
    return device;
}

static hob_tensor *vector(hob_device *device, float a, float b)
{
    float data[] = {a, b};
    int64_t shape[] = {2};

    return hob_from_f32(scope, device, data, shape, 1);
}

static void assert_vector(hob_tensor *tensor, float a, float b)
{
    float data[2] = {0, 0};

    ck_assert_hob_ok(hob_read(tensor, data, sizeof(data), &error));
    ck_assert_float_eq(data[0], a);
    ck_assert_float_eq(data[1], b);
}

START_TEST(test_dispatch_adds_on_the_base)
{
    assert_vector(hob_add(scope, vector(calc, 1, 2), vector(calc, 10, 20)), 11,
                  22);
}
END_TEST

START_TEST(test_dispatch_broadcasts_rank_zero)
{
    hob_tensor *one = hob_ones(scope, NULL, 0, calc, HOB_DTYPE_F32);

    assert_vector(hob_add(scope, vector(calc, 1, 2), one), 2, 3);
}
END_TEST

START_TEST(test_dispatch_equal_specs_are_one_device)
{
    ck_assert_ptr_eq(open_device("calc"), calc);
    ck_assert_ptr_eq(open_device(" idle ( calc ) "), open_device("idle(calc)"));
    ck_assert_ptr_ne(open_device("idle{mode=a}(calc)"),
                     open_device("idle{mode=b}(calc)"));
    /* A default that is spelt out changes nothing. */
    ck_assert_ptr_eq(open_device("idle{mode=a}(calc)"),
                     open_device("idle(calc)"));
    ck_assert_str_eq(hob_device_name(open_device("idle{mode=b}(calc)")),
                     "idle{mode=b}(calc)");
    /* Nor do spaces, of which none is part of a name or a value. */
    ck_assert_ptr_eq(open_device("\tidle { mode = b } (calc{ })\n"),
                     open_device("idle{mode=b}(calc)"));
    ck_assert_str_eq(hob_device_name(open_device("calc{ one = 1 2 , two= }")),
                     "calc{one=1 2,two=}");
    ck_assert_ptr_eq(hob_device_below(open_device("idle(calc)")), calc);
    ck_assert_ptr_null(hob_device_below(calc));
}
END_TEST

static const struct bad_spec {
    const char *spec;
    hob_status status;
    const char *message;
} bad_specs[] = {
    {"(", HOB_ERR_ARGUMENT, "expected a name at character 1"},
    {"calc)", HOB_ERR_ARGUMENT, "unexpected text at character 5"},
    {"idle(calc", HOB_ERR_ARGUMENT, "expected \")\" at character 10"},
    {"idle{mode=a(calc)", HOB_ERR_ARGUMENT, "\"{\" is never closed"},
    {"calc:x", HOB_ERR_ARGUMENT, "expected the number of a device"},
    {"calc:99999999999999999999", HOB_ERR_ARGUMENT, "expected the number"},
    {"calc:7", HOB_ERR_DEVICE, "calc has 1 (counted from 0)"},
    {"idle:1(calc)", HOB_ERR_ARGUMENT, "a number belongs to the base"},
    {"nothing", HOB_ERR_DEVICE, "no backend plugin serves \"nothing\""},
    {"calc(calc)", HOB_ERR_DEVICE,
     "no decorator plugin serves \"calc\": it is a backend and stands "
     "innermost, as in \"autodiff(calc)\""},
    {"idle", HOB_ERR_DEVICE,
     "no backend plugin serves \"idle\": it is a decorator and stands around "
     "a device, as in \"idle(flex)\""},
    {"idle(idle(idle(idle(idle(idle(idle(calc)))))))", HOB_ERR_ARGUMENT,
     "more layers than are allowed"},
    {"idle{mod=a}(calc)", HOB_ERR_ARGUMENT,
     "idle has no option \"mod\": it has mode"},
    {"idle{mode=c}(calc)", HOB_ERR_ARGUMENT,
     "option mode cannot be \"c\": it is one of a, b"},
    {"idle{mode=a,mode=b}(calc)", HOB_ERR_ARGUMENT,
     "idle: option mode is given twice, as \"a\" and \"b\": leave one of "
     "them out"},
    {"idle{mode=a,mode=a}(calc)", HOB_ERR_ARGUMENT, "mode is given twice"},
    {"idle{mode=a, mode =a}(calc)", HOB_ERR_ARGUMENT, "mode is given twice"},
    {"idle{ mode = a b }(calc)", HOB_ERR_ARGUMENT, "cannot be \"a b\""},
    {"idle{mode}(calc)", HOB_ERR_ARGUMENT,
     "expected NAME=VALUE at character 6"},
    {"idle{ =a}(calc)", HOB_ERR_ARGUMENT, "expected NAME=VALUE"},
    {"idle{mode=a,}(calc)", HOB_ERR_ARGUMENT,
     "expected NAME=VALUE at character 13"},
    {"idle{,mode=a}(calc)", HOB_ERR_ARGUMENT, "expected NAME=VALUE"},
    {"idle{mode=a}{mode=b}(calc)", HOB_ERR_ARGUMENT, "unexpected text"},
    {"Calc", HOB_ERR_ARGUMENT, "expected a name"},
};

START_TEST(test_device_refuses_bad_specs)
{
    const struct bad_spec *bad = &bad_specs[_i];
    hob_device *device = (hob_device *)(void *)&error;

    ck_assert_hob_fails(hob_device_open(runtime, bad->spec, &device, &error),
                        bad->status, bad->message);
    ck_assert_ptr_null(device);
}
END_TEST

START_TEST(test_dispatch_lifts_shorter_stacks)
{
    hob_device *idle = open_device("idle(calc)");
    hob_tensor *sum = hob_add(scope, vector(calc, 1, 2), vector(idle, 3, 4));

    ck_assert_ptr_eq(hob_tensor_device(sum), idle);
    assert_vector(sum, 4, 6);
}
END_TEST

START_TEST(test_dispatch_runs_a_body_at_a_layer_without_a_rule)
{
    hob_device *greedy = open_device("greedy(calc)");
    static struct hob_op_ref twice = {"t.double", 0};
    uint32_t op = hob_op_resolve(scope, &twice);
    hob_value arg = hob_value_tensor(vector(greedy, 1, 2));

    ck_assert_uint_ne(op, UINT32_MAX);
    assert_vector(hob_scope_host(scope)->call1(scope, op, &arg, 1), 2, 4);
    /* The second time the reference is cached. */
    ck_assert_uint_eq(hob_op_resolve(scope, &twice), op);
}
END_TEST

START_TEST(test_dispatch_refuses_where_a_layer_has_no_way)
{
    hob_device *greedy = open_device("greedy(calc)");
    hob_tensor *x = vector(greedy, 1, 2);

    ck_assert_hob_fails(hob_tensor_status(hob_exp(scope, x), &error),
                        HOB_ERR_UNSUPPORTED,
                        "greedy on greedy(calc) has no rule for it");
}
END_TEST

START_TEST(test_dispatch_copies_views_that_no_strides_express)
{
    float data[] = {1, 2, 3, 4, 5, 6};
    int64_t shape[] = {2, 3};
    float out[6];
    hob_tensor *x = hob_from_f32(scope, calc, data, shape, 2);
    hob_tensor *t = hob_swap_dims(scope, x, 0, 1);
    hob_tensor *flat = hob_reshape(scope, t, (int64_t[]){-1}, 1);
    static const float want[] = {1, 4, 2, 5, 3, 6};

    ck_assert_hob_ok(hob_read(flat, out, sizeof(out), &error));
    ck_assert_mem_eq(out, want, sizeof(want));
    /* The view itself is read in logical order too. */
    ck_assert_hob_ok(hob_read(t, out, sizeof(out), &error));
    ck_assert_mem_eq(out, want, sizeof(want));
}
END_TEST

/* ---- last use ---- */

START_TEST(test_move_writes_in_place)
{
    hob_tensor *x = vector(calc, 1, 2);
    void *memory = hob_tensor_view(x)->data;
    hob_tensor *sum = hob_add(scope, hob_move(scope, x), vector(calc, 10, 20));

    ck_assert_ptr_eq(hob_tensor_view(sum)->data, memory);
    assert_vector(sum, 11, 22);
}
END_TEST

START_TEST(test_move_leaves_a_tombstone)
{
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *gone = vector(calc, 1, 2);

    (void)hob_add(scope, x, x);
    (void)hob_add(scope, hob_move(scope, gone), x);
    ck_assert_hob_fails(hob_tensor_status(gone, &error), HOB_ERR_STATE,
                        "the tensor was moved into add, call 2");
    ck_assert_hob_fails(hob_tensor_status(hob_add(scope, x, gone), &error),
                        HOB_ERR_STATE, "argument rhs cannot be used");
}
END_TEST

START_TEST(test_move_is_a_borrow_where_others_hold_the_handle)
{
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *one = vector(calc, 1, 1);

    hob_tensor_ref(x);
    assert_vector(hob_add(scope, hob_move(scope, x), one), 2, 3);
    assert_vector(x, 1, 2);
    hob_tensor_unref(x);
    /* Twice in one call. */
    assert_vector(hob_add(scope, hob_move(scope, x), x), 2, 4);
    assert_vector(x, 1, 2);
}
END_TEST

START_TEST(test_move_never_clobbers_a_view_or_its_base)
{
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *view = hob_flip(scope, x, (int64_t[]){0}, 1);
    hob_tensor *one = vector(calc, 1, 1);

    assert_vector(hob_add(scope, hob_move(scope, x), one), 2, 3);
    assert_vector(view, 2, 1);
}
END_TEST

START_TEST(test_move_in_a_body_takes_nothing_borrowed)
{
    static struct hob_op_ref take = {"t.take", 0};
    uint32_t op = hob_op_resolve(scope, &take);
    hob_tensor *x = vector(calc, 1, 2);
    void *memory = hob_tensor_view(x)->data;
    hob_value arg = hob_value_tensor(x);
    hob_tensor *y;

    assert_vector(hob_scope_host(scope)->call1(scope, op, &arg, 1), 2, 3);
    assert_vector(x, 1, 2);
    /* What the caller has moved, the body may write over. */
    (void)hob_move(scope, x);
    y = hob_scope_host(scope)->call1(scope, op, &arg, 1);
    assert_vector(y, 2, 3);
    ck_assert_ptr_eq(hob_tensor_view(y)->data, memory);
    ck_assert_hob_fails(hob_tensor_status(x, &error), HOB_ERR_STATE,
                        "moved into t.take");
}
END_TEST

START_TEST(test_move_is_consumed_by_a_failing_call)
{
    hob_tensor *x = vector(calc, 1, 2);
    float three[] = {1, 2, 3};
    int64_t shape[] = {3};
    hob_tensor *y = hob_from_f32(scope, calc, three, shape, 1);

    ck_assert_hob_fails(
        hob_tensor_status(hob_add(scope, hob_move(scope, x), y), &error),
        HOB_ERR_SHAPE, "add");
    ck_assert_hob_fails(hob_tensor_status(x, &error), HOB_ERR_STATE, "moved");
}
END_TEST

START_TEST(test_move_is_consumed_whatever_the_other_arguments_are)
{
    hob_tensor *bad = hob_exp(scope, vector(calc, 1, 2));
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *y = vector(calc, 1, 2);

    (void)hob_add(scope, bad, hob_move(scope, x));
    ck_assert_hob_fails(hob_tensor_status(x, &error), HOB_ERR_STATE,
                        "moved into add, call 2");
    (void)hob_add(scope, NULL, hob_move(scope, y));
    ck_assert_hob_fails(hob_tensor_status(y, &error), HOB_ERR_STATE,
                        "moved into add, call 3");
}
END_TEST

START_TEST(test_move_in_a_list_is_consumed)
{
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *y = vector(calc, 1, 2);
    hob_tensor *list[] = {hob_move(scope, x), y, hob_move(scope, y)};

    (void)hob_cat(scope, list, 3, 0);
    ck_assert_hob_fails(hob_tensor_status(x, &error), HOB_ERR_STATE,
                        "moved into cat");
    /* Twice in the list: a borrow, and forgotten afterwards. */
    assert_vector(hob_add(scope, y, y), 2, 4);
    assert_vector(hob_add(scope, y, vector(calc, 0, 0)), 1, 2);
    assert_vector(y, 1, 2);
}
END_TEST

/* ---- plugins that break their contract ---- */

START_TEST(test_dispatch_refuses_a_layer_without_results)
{
    hob_tensor *x = vector(open_device("sloppy(calc)"), 1, 2);

    ck_assert_hob_fails(hob_tensor_status(hob_add(scope, x, x), &error),
                        HOB_ERR_PLUGIN,
                        "sloppy handled it but set no result 0");
}
END_TEST

START_TEST(test_dispatch_forgets_the_message_of_a_way_that_failed)
{
    hob_device *sloppy = open_device("sloppy(calc)");

    /* A leak here fails under the sanitizers. */
    assert_vector(hob_flip(scope, vector(sloppy, 1, 2), (int64_t[]){0}, 1), 2,
                  1);
}
END_TEST

START_TEST(test_dispatch_refuses_a_body_that_strays)
{
    static struct hob_op_ref astray = {"t.astray", 0};
    hob_value arg = hob_value_tensor(vector(calc, 1, 2));
    hob_tensor *y = hob_scope_host(scope)->call1(
        scope, hob_op_resolve(scope, &astray), &arg, 1);

    ck_assert_hob_fails(hob_tensor_status(y, &error), HOB_ERR_PLUGIN,
                        "its body made result 0 on other, the call is on calc");
}
END_TEST

/* What an author can get wrong, and how the op's users learn of it. */
static const struct bad_op {
    struct hob_op_ref ref;
    hob_status status;
    const char *message;
} bad_ops[] = {
    {{"t.endless", 0}, HOB_ERR_PLUGIN, "more than 64 calls within each other"},
    {{"t.bad_rank", 0}, HOB_ERR_PLUGIN, "result 0 the rank 200"},
    {{"t.bad_dtype", 0}, HOB_ERR_PLUGIN, "the dtype number 77"},
    {{"t.silent_infer", 0}, HOB_ERR_PLUGIN, "failed without a message"},
    {{"t.silent_prepare", 0}, HOB_ERR_STATE, "calc cannot be prepared"},
    {{"t.bad_result", 0}, HOB_ERR_PLUGIN, "result 0 with the rank 99"}};

START_TEST(test_dispatch_tells_what_an_author_did_wrong)
{
    struct hob_op_ref ref = bad_ops[_i].ref;
    hob_tensor *x = vector(calc, 1, 2);
    hob_value arg = hob_value_tensor(x);
    hob_tensor *y = hob_scope_host(scope)->call1(
        scope, hob_op_resolve(scope, &ref), &arg, 1);

    ck_assert_hob_fails(hob_tensor_status(y, &error), bad_ops[_i].status,
                        bad_ops[_i].message);
    hob_scope_clear_error(scope);
    assert_vector(hob_add(scope, x, x), 2, 4);
}
END_TEST

START_TEST(test_dispatch_refuses_a_copy_that_wants_a_copy)
{
    hob_device *flat = open_device("flat");
    hob_tensor *x = hob_flip(scope, vector(flat, 1, 2), (int64_t[]){0}, 1);
    float data[2];

    ck_assert_hob_fails(hob_read(x, data, sizeof(data), &error), HOB_ERR_PLUGIN,
                        "flat cannot copy strided tensors");
}
END_TEST

START_TEST(test_dispatch_refuses_values_without_content)
{
    int64_t shape[] = {2};
    hob_value args[] = {hob_value_i64s(shape, 1), hob_i64(1),
                        hob_value_make(HOB_TAG_DEVICE, 1)};
    hob_tensor *out = NULL;
    uint32_t count = 0;

    ck_assert_int_eq(hob_call_op(scope, HOB_OP_FULL, args, 3, &out, 1, &count),
                     HOB_ERR_ARGUMENT);
    ck_assert_hob_fails(hob_tensor_status(out, &error), HOB_ERR_ARGUMENT,
                        "argument device must be a device");
}
END_TEST

/* Alone or in a list, after calls that are alike but for that. */
START_TEST(test_dispatch_refuses_a_tensor_that_is_null)
{
    hob_tensor *x = vector(calc, 1, 2), *list[] = {x, NULL}, *out = NULL;
    hob_value both[] = {hob_value_tensor(x), hob_value_tensor(x)};
    hob_value cat[] = {hob_value_tensors(list, 2), hob_i64(0)};
    uint32_t count = 0;

    assert_vector(hob_add(scope, x, x), 2, 4);
    both[1].u.tensor = NULL;
    ck_assert_int_eq(hob_call_op(scope, HOB_OP_ADD, both, 2, &out, 1, &count),
                     HOB_ERR_ARGUMENT);
    ck_assert_hob_fails(hob_tensor_status(out, &error), HOB_ERR_ARGUMENT,
                        "argument rhs must be a tensor");
    ck_assert_int_eq(hob_call_op(scope, HOB_OP_CAT, cat, 2, &out, 1, &count),
                     HOB_ERR_ARGUMENT);
}
END_TEST

START_TEST(test_dispatch_names_the_devices_that_do_not_join)
{
    int64_t shape[] = {2};
    hob_tensor *mask =
        hob_from_data(scope, calc, HOB_DTYPE_BOOL, (uint8_t[]){1, 0}, shape, 1);
    hob_tensor *a = vector(open_device("idle(calc)"), 1, 2);
    hob_tensor *b = vector(open_device("greedy(calc)"), 1, 2);

    ck_assert_hob_fails(
        hob_tensor_status(hob_where(scope, mask, a, b), &error), HOB_ERR_DEVICE,
        "argument x is on idle(calc) and argument y on greedy(calc)");
}
END_TEST

/* ---- scalars ---- */

static const struct scalar_fit {
    hob_dtype dtype;
    double number;
    int fits;
} scalar_fits[] = {{HOB_DTYPE_F32, 3.4028235e38, 1},
                   {HOB_DTYPE_F32, 3.4028236e38, 0},
                   {HOB_DTYPE_F32, -1e39, 0},
                   {HOB_DTYPE_F32, INFINITY, 1},
                   {HOB_DTYPE_F32, NAN, 1},
                   {HOB_DTYPE_F32, 1e-60, 1},
                   {HOB_DTYPE_F16, 65504, 1},
                   {HOB_DTYPE_F16, 65519.99, 1},
                   {HOB_DTYPE_F16, 65520, 0},
                   {HOB_DTYPE_BF16, 3.38e38, 1},
                   {HOB_DTYPE_BF16, 3.4e38, 0},
                   {HOB_DTYPE_F64, 1e300, 1},
                   {HOB_DTYPE_I8, 127, 1},
                   {HOB_DTYPE_I8, 128, 0},
                   {HOB_DTYPE_I32, 2.5, 0},
                   {HOB_DTYPE_U8, -1, 0},
                   {HOB_DTYPE_U64, 18446744073709549568.0, 1},
                   {HOB_DTYPE_U64, 18446744073709551616.0, 0},
                   {HOB_DTYPE_I64, NAN, 0},
                   {HOB_DTYPE_BOOL, 2, 0}};

START_TEST(test_scalar_must_fit_the_dtype)
{
    const struct scalar_fit *fit = &scalar_fits[_i];
    hob_tensor *made = hob_full(scope, (int64_t[]){0}, 1, hob_f64(fit->number),
                                calc, fit->dtype);
    hob_status status = hob_tensor_status(made, &error);

    ck_assert_msg(status == (fit->fits ? HOB_OK : HOB_ERR_RANGE),
                  "%s %.17g: %s", hob_dtype_name(fit->dtype), fit->number,
                  hob_status_name(status));
}
END_TEST

START_TEST(test_assign_keeps_the_slot_on_an_error)
{
    hob_tensor *slot = NULL;

    hob_assign(scope, &slot, vector(calc, 1, 2));
    hob_assign(scope, &slot, hob_exp(scope, slot));
    assert_vector(slot, 1, 2);
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_UNSUPPORTED,
                        "exp");
}
END_TEST

/* ---- errors ---- */

START_TEST(test_error_tensor_has_no_device_and_that_is_safe)
{
    hob_tensor *bad = hob_exp(scope, vector(calc, 1, 2));
    hob_tensor *x = vector(calc, 1, 2);
    hob_device *none = hob_tensor_device(bad);
    hob_scope *child = hob_no_grad(scope, none);

    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(child);
    assert_vector(hob_add(child, x, x), 2, 4);
    hob_scope_close(child);
    ck_assert_int_ne(hob_tensor_status(vector(none, 1, 2), NULL), HOB_OK);
    ck_assert_int_ne(hob_tensor_status(hob_to_device(scope, x, none), NULL),
                     HOB_OK);
}
END_TEST

START_TEST(test_error_keeps_the_first_cause)
{
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *bad = hob_exp(scope, x);
    hob_tensor *later = hob_add(scope, bad, x);

    ck_assert_hob_fails(hob_tensor_status(later, &error), HOB_ERR_UNSUPPORTED,
                        "exp (call 1): calc supplies no kernel");
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_UNSUPPORTED,
                        "exp (call 1)");
    hob_scope_clear_error(scope);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    assert_vector(hob_add(scope, x, x), 2, 4); /* the runtime is usable */
    ck_assert_int_eq(hob_read(bad, NULL, 0, NULL), HOB_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(test_error_crosses_scopes_with_its_cause)
{
    hob_scope *child = hob_scope_child(scope);
    hob_tensor *bad = hob_exp(child, vector(calc, 1, 2));
    hob_tensor *sum = hob_add(scope, bad, bad);

    hob_scope_close(child);
    ck_assert_hob_fails(hob_tensor_status(sum, &error), HOB_ERR_UNSUPPORTED,
                        "exp (call 1)");
}
END_TEST

START_TEST(test_error_of_too_much_memory_is_clear)
{
    int64_t shape[] = {INT64_C(1) << 29};
    hob_device *flat = open_device("flat");
    hob_scope *child = hob_scope_child(scope);
    static const float one = 1; /* memory comes before the elements are read */

    ck_assert_hob_fails(
        hob_tensor_status(hob_from_f32(child, flat, &one, shape, 1), &error),
        HOB_ERR_MEMORY,
        "f32[536870912] has 2147483648 bytes, and the driver of flat gives at "
        "most 1073741824 at a time");
    hob_scope_close(child);
    ck_assert_hob_fails(
        hob_tensor_status(hob_ones(scope, shape, 1, calc, HOB_DTYPE_F32),
                          &error),
        HOB_ERR_MEMORY, "no memory on calc for the result f32[536870912]");
}
END_TEST

static void abort_on_failure(void)
{
    hob_runtime *strict = open_runtime(HOB_POLICY_PANIC);
    hob_device *device = NULL;
    hob_scope *own = hob_scope_open(strict);

    ck_assert_hob_ok(hob_device_open(strict, "calc", &device, &error));
    (void)hob_exp(own, hob_ones(own, NULL, 0, device, HOB_DTYPE_F32));
}

/* In a process of its own, so that the other tests can be one. */
START_TEST(test_panic_policy_aborts)
{
    pid_t child = fork();
    int code = 0;

    if (!child) {
        abort_on_failure();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert(WIFSIGNALED(code) && WTERMSIG(code) == SIGABRT);
}
END_TEST

static int told;

static void on_panic(void *context, hob_status status, const char *op,
                     const char *message)
{
    ck_assert_ptr_eq(context, &told);
    ck_assert_int_eq(status, HOB_ERR_UNSUPPORTED);
    ck_assert_str_eq(op, "exp");
    ck_assert_ptr_nonnull(strstr(message, "exp (call 2): "));
    told++;
}

START_TEST(test_report_policy_tells_the_handler_once)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_runtime *own = NULL;
    hob_device *device = NULL;
    hob_scope *s;
    hob_tensor *slot = NULL;
    hob_tensor *bad;

    told = 0;
    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = test_static_plugins;
    options.static_plugin_count = test_static_plugin_count;
    options.on_panic = on_panic;
    options.on_panic_context = &told;
    ck_assert_hob_ok(hob_runtime_open(&options, &own, &error));
    ck_assert_hob_ok(hob_device_open(own, "calc", &device, &error));
    s = hob_scope_open(own);
    bad = hob_exp(s, hob_ones(s, NULL, 0, device, HOB_DTYPE_F32));
    (void)hob_add(s, bad, bad);
    hob_assign(s, &slot, bad);
    (void)hob_to_device(s, bad, device);
    ck_assert_int_eq(told, 1);
    ck_assert_ptr_null(slot);
    hob_scope_close(s);
    hob_device_unref(device);
    ck_assert_hob_ok(hob_runtime_close(own, &error));
}
END_TEST

/* ---- life cycle ---- */

START_TEST(test_runtime_close_is_busy_with_live_objects)
{
    hob_tensor *x = vector(calc, 1, 2);

    hob_tensor_ref(x);
    ck_assert_hob_fails(hob_runtime_close(runtime, &error), HOB_ERR_BUSY,
                        "1 tensors, 1 scopes, 0 grads and 1 device");
    hob_tensor_unref(x);
}
END_TEST

START_TEST(test_assign_replaces_a_long_lived_tensor)
{
    hob_tensor *slot = NULL;

    hob_assign(scope, &slot, vector(calc, 0, 0));
    for (int i = 0; i < 10; i++) {
        hob_scope *step = hob_scope_child(scope);

        hob_assign(
            scope, &slot,
            hob_add(step, slot, hob_ones(step, NULL, 0, calc, HOB_DTYPE_F32)));
        hob_scope_close(step);
    }
    assert_vector(slot, 10, 10);
    /* The first slot's value is the scope's too; then only the last one. */
    ck_assert_int_le(test_live_blocks(), 2);
}
END_TEST

enum { THREADS = 4, ROUNDS = 2000 };

/* Keep and give up a tensor that other threads keep too, and move one's own
 * beside it; returns NULL if all was as it should be. */
static void *share_in_own_scope(void *argument)
{
    hob_tensor *shared = argument;
    hob_scope *own = hob_scope_open(runtime);
    hob_tensor *mine = NULL;
    hob_tensor *slot = NULL;
    double ones = 1;
    double sum = 2;

    for (int i = 0; i < ROUNDS && ones == 1 && sum == 2; i++) {
        hob_scope *step = hob_scope_child(own);
        hob_tensor *one = hob_ones(step, NULL, 0, calc, HOB_DTYPE_F32);

        hob_assign(own, &mine, hob_ones(step, NULL, 0, calc, HOB_DTYPE_F32));
        hob_assign(own, &slot, shared);
        hob_assign(own, &slot, hob_add(step, hob_move(step, one), shared));
        if (hob_item(mine, &ones, NULL) || hob_item(slot, &sum, NULL))
            sum = 0;
        hob_scope_close(step);
    }
    hob_scope_close(own);
    return ones == 1 && sum == 2 ? NULL : shared;
}

START_TEST(test_tensor_is_owned_by_scopes_of_several_threads)
{
    hob_scope *first = hob_scope_child(scope);
    hob_tensor *shared = hob_ones(first, NULL, 0, calc, HOB_DTYPE_F32);
    pthread_t threads[THREADS];
    void *wrong;

    hob_tensor_ref(shared);
    hob_scope_close(first);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, share_in_own_scope, shared), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    hob_tensor_unref(shared);
}
END_TEST

START_TEST(test_scope_close_closes_children)
{
    hob_scope *deep = scope;

    for (int i = 0; i < 100000; i++)
        deep = hob_scope_child(deep);
    (void)hob_ones(deep, NULL, 0, calc, HOB_DTYPE_F32);
}
END_TEST

START_TEST(test_keep_outlives_the_inner_scope)
{
    hob_scope *inner = hob_scope_child(scope);
    hob_tensor *x =
        hob_keep(scope, hob_add(inner, vector(calc, 1, 2), vector(calc, 1, 1)));

    hob_scope_close(inner);
    assert_vector(x, 2, 3);
}
END_TEST

START_TEST(test_to_device_shares_within_a_base)
{
    hob_device *idle = open_device("idle(calc)");
    hob_device *other = open_device("other");
    hob_tensor *x = vector(calc, 1, 2);
    hob_tensor *lifted = hob_to_device(scope, x, idle);
    hob_tensor *copied = hob_to_device(scope, x, other);

    ck_assert_ptr_eq(hob_tensor_view(lifted)->data, hob_tensor_view(x)->data);
    ck_assert_ptr_ne(hob_tensor_view(copied)->data, hob_tensor_view(x)->data);
    ck_assert_ptr_eq(hob_tensor_device(lifted), idle);
    ck_assert_ptr_eq(hob_tensor_device(hob_to_device(scope, lifted, calc)),
                     calc);
    assert_vector(copied, 1, 2);
}
END_TEST

START_TEST(test_fork_is_refused_in_the_child)
{
    hob_tensor *x = vector(calc, 1, 2);
    pid_t child = fork();
    int code = 0;

    if (!child) {
        hob_status status = hob_tensor_status(hob_add(scope, x, x), NULL);

        _exit(status == HOB_ERR_FORKED ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert(WIFEXITED(code) && !WEXITSTATUS(code));
    assert_vector(hob_add(scope, x, x), 2, 4); /* the parent goes on */
}
END_TEST

START_TEST(test_empty_tensors_launch_nothing)
{
    int64_t shape[] = {0, 3};
    int64_t before;
    hob_tensor *x = hob_ones(scope, shape, 2, calc, HOB_DTYPE_F32);

    before = test_kernel_calls();
    ck_assert_int_eq(hob_tensor_count(hob_add(scope, x, x)), 0);
    ck_assert_int_eq(test_kernel_calls(), before);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dispatch");
    TCase *tc = tcase_create("dispatch");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_dispatch_adds_on_the_base);
    tcase_add_test(tc, test_dispatch_broadcasts_rank_zero);
    tcase_add_test(tc, test_dispatch_equal_specs_are_one_device);
    tcase_add_loop_test(tc, test_device_refuses_bad_specs, 0,
                        sizeof(bad_specs) / sizeof(bad_specs[0]));
    tcase_add_test(tc, test_dispatch_lifts_shorter_stacks);
    tcase_add_test(tc, test_dispatch_runs_a_body_at_a_layer_without_a_rule);
    tcase_add_test(tc, test_dispatch_refuses_where_a_layer_has_no_way);
    tcase_add_test(tc, test_dispatch_copies_views_that_no_strides_express);
    tcase_add_test(tc, test_move_writes_in_place);
    tcase_add_test(tc, test_move_leaves_a_tombstone);
    tcase_add_test(tc, test_move_is_a_borrow_where_others_hold_the_handle);
    tcase_add_test(tc, test_move_never_clobbers_a_view_or_its_base);
    tcase_add_test(tc, test_move_in_a_body_takes_nothing_borrowed);
    tcase_add_test(tc, test_move_is_consumed_by_a_failing_call);
    tcase_add_test(tc, test_move_is_consumed_whatever_the_other_arguments_are);
    tcase_add_test(tc, test_move_in_a_list_is_consumed);
    tcase_add_test(tc, test_dispatch_refuses_a_layer_without_results);
    tcase_add_test(tc, test_dispatch_forgets_the_message_of_a_way_that_failed);
    tcase_add_test(tc, test_dispatch_refuses_a_body_that_strays);
    tcase_add_loop_test(tc, test_dispatch_tells_what_an_author_did_wrong, 0,
                        sizeof(bad_ops) / sizeof(bad_ops[0]));
    tcase_add_test(tc, test_dispatch_refuses_a_copy_that_wants_a_copy);
    tcase_add_test(tc, test_dispatch_refuses_values_without_content);
    tcase_add_test(tc, test_dispatch_refuses_a_tensor_that_is_null);
    tcase_add_test(tc, test_dispatch_names_the_devices_that_do_not_join);
    tcase_add_test(tc, test_error_tensor_has_no_device_and_that_is_safe);
    tcase_add_loop_test(tc, test_scalar_must_fit_the_dtype, 0,
                        sizeof(scalar_fits) / sizeof(scalar_fits[0]));
    tcase_add_test(tc, test_assign_keeps_the_slot_on_an_error);
    tcase_add_test(tc, test_error_keeps_the_first_cause);
    tcase_add_test(tc, test_error_crosses_scopes_with_its_cause);
    tcase_add_test(tc, test_error_of_too_much_memory_is_clear);
    tcase_add_test(tc, test_panic_policy_aborts);
    tcase_add_test(tc, test_report_policy_tells_the_handler_once);
    tcase_add_test(tc, test_runtime_close_is_busy_with_live_objects);
    tcase_add_test(tc, test_assign_replaces_a_long_lived_tensor);
    tcase_add_test(tc, test_tensor_is_owned_by_scopes_of_several_threads);
    tcase_add_test(tc, test_scope_close_closes_children);
    tcase_add_test(tc, test_keep_outlives_the_inner_scope);
    tcase_add_test(tc, test_to_device_shares_within_a_base);
    tcase_add_test(tc, test_fork_is_refused_in_the_child);
    tcase_add_test(tc, test_empty_tensors_launch_nothing);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
