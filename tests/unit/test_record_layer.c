/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the decorator record promises: hob eval runs its files again and gets
 * the very same numbers, whatever the program did.
 */
#include "runtime.h"
#include "tensor.h"

#include <hob/hob.h>

#include "hob_check.h"
#include "tmp_dir.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 50 };

static struct tmp_dir dir;
static hob_runtime *runtime;
static hob_device *device;
static hob_scope *scope;
static hob_error error;
static char last_message[1024]; /* of the panic handler */

static void on_panic(void *context, hob_status status, const char *op,
                     const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)snprintf(last_message, sizeof(last_message), "%s", message);
}

static void shell(const char *command, int want)
{
    int got = system(command);

    ck_assert_msg(WIFEXITED(got) && WEXITSTATUS(got) == want,
                  "exit status %d, not %d: %s", WEXITSTATUS(got), want,
                  command);
}

/* hob eval ARGUMENTS, in the folder, ends with WANT and prints PART. */
static void eval(const char *arguments, int want, const char *part)
{
    char command[2048];

    (void)snprintf(
        command, sizeof(command),
        "cd '%s' && HOB_ADD_PLUGIN_PATH='%s' '%s/../tools/hob' eval %s "
        ">eval.txt 2>&1; got=$?; [ $got -eq %d ] && grep -q -e '%s' eval.txt "
        "|| { head -c 2000 eval.txt; exit 1; }",
        dir.path, dir.path, getenv("HOB_TEST_BUILDDIR"), arguments, want, part);
    shell(command, 0);
}

static void open_runtime(uint32_t policy)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const char *paths[] = {getenv("HOB_TEST_PLUGIN_DIR"), dir.path};

    options.policy = policy;
    options.on_panic = on_panic;
    options.plugin_paths = paths;
    options.plugin_path_count = 2;
    options.exclusive = 1;
    options.threads = 2;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    scope = hob_scope_open(runtime);
}

/* FORMAT has one %s for the folder. */
static void open_device(const char *format)
{
    char spec[1024];

    (void)snprintf(spec, sizeof(spec), format, dir.path);
    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
}

static void close_all(void)
{
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(device);
    device = NULL;
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    runtime = NULL;
}

static void setup(void)
{
    char manifest[2048];
    char command[1024];

    tmp_dir_make(&dir);
    (void)snprintf(
        manifest, sizeof(manifest),
        "{\"manifest_version\": 1, \"id\": \"attributes\", \"version\": "
        "\"1.0.0\", \"kind\": \"extension\", \"abi\": {\"major\": %d, "
        "\"required_minor\": %d, \"built_minor\": %d}, \"library\": "
        "\"mock_attributes.so\", \"namespace\": \"demo\", \"types\": "
        "{\"Operand\": {\"enum\": {\"One\": \"Float\", \"Pair\": {\"a\": "
        "\"Float\", \"b\": \"Float\"}, \"Empty\": null}}}, \"ops\": "
        "[%s%s%s%s]}",
        HOB_ABI_MAJOR, HOB_ABI_MINOR, HOB_ABI_MINOR,
        "{\"op\": \"pick\", \"signature\": \"(first: [Float], x: Float, "
        "second: [Float], mode: enum(up, down, left), label: str, weights: "
        "[f64], big: i64, flag: bool?) -> x\", \"backends\": [\"flex\"], "
        "\"body\": true, \"infer\": \"function\"}, ",
        "{\"op\": \"parts\", \"signature\": \"(x: Float, count: i64) -> [x]\", "
        "\"backends\": [\"*\"], \"body\": true, \"infer\": \"function\"}, ",
        "{\"op\": \"fold\", \"signature\": \"(operand: Operand, like: Float) "
        "-> Float\", \"backends\": [\"*\"], \"body\": true, \"infer\": "
        "\"function\"}, ",
        "{\"op\": \"spread\", \"signature\": \"(x: Float, which: i64) -> "
        "Operand\", \"backends\": [\"*\"], \"body\": true, \"infer\": "
        "\"function\"}");
    ck_assert_int_eq(
        tmp_write(tmp_path(&dir, "a.json"), manifest, strlen(manifest)), 0);
    (void)snprintf(command, sizeof(command),
                   "cp '%s/mock/.libs/mock_attributes.so' '%s'",
                   getenv("HOB_TEST_BUILDDIR"), dir.path);
    shell(command, 0);
    open_runtime(HOB_POLICY_REPORT);
}

static void teardown(void)
{
    tmp_dir_remove(&dir);
}

/* The text of the recorded file, which the caller frees. */
static char *recorded(const char *name)
{
    FILE *file = fopen(tmp_path(&dir, name), "rb");
    char *text = calloc(1, 1 << 20);

    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, file), (1 << 20) - 1);
    (void)fclose(file);
    return text;
}

/* Of the steps in the recorded file: how many hold PART? */
static int count_parts(const char *name, const char *part)
{
    char *text = recorded(name);
    int count = 0;

    for (char *at = text; (at = strstr(at, part)); at += strlen(part))
        count++;
    free(text);
    return count;
}

static hob_tensor *vector(double first, int64_t count)
{
    double data[64];

    for (int64_t i = 0; i < count; i++)
        data[i] = first + 0.1 * (double)i;
    return hob_cast(scope, hob_from_f64(scope, device, data, &count, 1),
                    HOB_DTYPE_F32);
}

/* ---- replay ---- */

static void numbers(void)
{
    static const int64_t far[] = {INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1,
                                  -7};
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 5e-324, 0.1};
    static const float f32[] = {1.5f, -2.25f, NAN, 1e-42f, 0, -0.0f};
    hob_tensor *i64 = hob_from_i64(scope, device, far, (int64_t[]){2, 2}, 2);
    hob_tensor *f64 = hob_from_f64(scope, device, odd, (int64_t[]){6}, 1);
    hob_tensor *x = hob_from_f32(scope, device, f32, (int64_t[]){2, 3}, 2);
    hob_tensor *u64 = hob_full(scope, (int64_t[]){3}, 1, hob_u64(UINT64_MAX),
                               device, HOB_DTYPE_U64);

    hob_add_scalar(scope, i64, hob_i64((INT64_C(1) << 62) + 1));
    hob_add_scalar(scope, f64, hob_f64(-0.0));
    hob_mul_scalar(scope, f64, hob_f64(0.1));
    hob_mul_scalar(scope, f64, hob_f64(1e300));
    hob_add_scalar(scope, x, hob_f64(NAN));
    hob_mul_scalar(scope, x, hob_f64(2));
    hob_equal_scalar(scope, u64, hob_u64(UINT64_MAX));
    hob_clamp(scope, x, hob_none(), hob_f64(INFINITY));
    hob_full(scope, NULL, 0, hob_f64(-0.0), device, HOB_DTYPE_F16);
    hob_full(scope, (int64_t[]){0, 3}, 2, hob_bool(1), device, HOB_DTYPE_BOOL);
    hob_neg(scope, hob_cast(scope, x, HOB_DTYPE_F16));
    hob_neg(scope, hob_cast(scope, x, HOB_DTYPE_BF16));
    hob_where(scope, hob_greater(scope, x, hob_relu(scope, x)), x,
              hob_exp(scope, x));
    /* Inputs of these dtypes, not only results. */
    hob_neg(scope, hob_from_data(scope, device, HOB_DTYPE_BF16,
                                 (uint16_t[]){0x3f80, 0x7f80, 0x8001},
                                 (int64_t[]){3}, 1));
    hob_logical_not(scope,
                    hob_from_data(scope, device, HOB_DTYPE_BOOL,
                                  (uint8_t[]){1, 0, 7}, (int64_t[]){3}, 1));
    hob_relu(scope, hob_from_data(scope, device, HOB_DTYPE_F32, NULL,
                                  (int64_t[]){0, 4}, 2));
    hob_abs(scope, hob_from_data(scope, device, HOB_DTYPE_I8, (int8_t[]){-3, 4},
                                 (int64_t[]){1, 2, 1}, 3));
}

static void structure(void)
{
    hob_tensor *x = hob_reshape(scope, vector(-1, 24), (int64_t[]){4, 6}, 2);
    hob_tensor *t = hob_permute(scope, x, (int64_t[]){1, 0}, 2);
    hob_tensor *part = hob_slice(scope, x, (int64_t[]){1, 0}, 2,
                                 (int64_t[]){4, 6}, 2, (int64_t[]){2, 3}, 2);
    hob_tensor *image =
        hob_reshape(scope, vector(0, 16), (int64_t[]){1, 1, 4, 4}, 4);
    hob_tensor *kernel =
        hob_reshape(scope, vector(1, 4), (int64_t[]){1, 1, 2, 2}, 4);
    hob_tensor *top;
    hob_tensor *where;

    hob_matmul(scope, x, t);
    hob_flip(scope, part, (int64_t[]){1}, 1);
    hob_topk_with_indices(scope, t, 2, 0, HOB_DTYPE_I64, &top, &where);
    hob_gather(scope, t, where, 0);
    hob_cat(scope, (hob_tensor *[]){x, x, hob_neg(scope, x)}, 3, 1);
    hob_conv2d(scope, image, kernel, NULL, (int64_t[]){1, 1}, 2,
               (int64_t[]){1, 0}, 2, (int64_t[]){1, 1}, 2, 1);
    hob_random_normal(scope, (int64_t[]){2, 2}, 2, 0.1, 2, device, 0);
    hob_mask_select(
        scope, x,
        hob_random_bernoulli(scope, (int64_t[]){4, 6}, 2, 0.5, device, 0));
    hob_random_uniform(scope, (int64_t[]){3}, 1, -1, 1, device, HOB_DTYPE_F16);
    hob_arange(scope, 5, -5, -2, device, 0);
}

START_TEST(test_record_replays_to_the_bit)
{
    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    hob_seed(scope, UINT64_MAX - 3);
    numbers();
    structure();
    close_all();
    eval("p.json --device flex", 0, "^v");
    eval("p.json --device flex --device 'autodiff(flex)'", 0, "^v");
    eval("--bisect p.json --device flex --device 'autodiff(flex)'", 0,
         "no step differs");
    /* A record of the replay is the same program. */
    eval("p.json --device 'record{path=q.json,outputs=yes}(flex)'", 0, "^v");
    eval("q.json --device flex", 0, "^v");
    /* And the comparison sees a single bit. */
    {
        char command[1024];

        (void)snprintf(command, sizeof(command),
                       "cd '%s' && f=$(ls p.v*.npy | head -n 1) && s=$(wc -c "
                       "<$f) && printf '\\001' | dd of=$f bs=1 seek=$((s - 1)) "
                       "conv=notrunc 2>/dev/null",
                       dir.path);
        shell(command, 0);
    }
    eval("p.json --device flex", 1, "p.json: v[0-9]*\\[");
}
END_TEST

/* The file says what was given, in words that no reader changes. */
START_TEST(test_record_writes_exact_attributes)
{
    open_device("record{path=%s/p.json}(flex)");
    numbers();
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"scalar\": \"-0.0\""), 1);
    ck_assert_int_eq(count_parts("p.json", "\"scalar\": \"2.0\""), 1);
    ck_assert_int_eq(count_parts("p.json", "\"scalar\": \"nan\""), 1);
    ck_assert_int_eq(count_parts("p.json", "\"max\": \"inf\""), 1);
    ck_assert_int_eq(count_parts("p.json", "\"min\""), 0);
    ck_assert_int_eq(
        count_parts("p.json", "\"scalar\": \"4611686018427387905\""), 1);
    ck_assert_int_eq(
        count_parts("p.json", "\"scalar\": \"18446744073709551615\""), 1);
    ck_assert_int_eq(count_parts("p.json", "\"ns\""), 0);
}
END_TEST

START_TEST(test_record_times_each_step)
{
    open_device("record{path=%s/p.json,times=yes}(flex)");
    hob_exp(scope, vector(0, 3));
    close_all();
    ck_assert_int_eq(count_parts("p.json", "{\"ns\": "), 2);
    eval("p.json --device flex", 0, "^v2: f32");
}
END_TEST

START_TEST(test_record_extension_op)
{
    static struct hob_op_ref ref = {"demo.pick", 0};
    hob_tensor *x;
    hob_tensor *two[2];
    hob_tensor *out = NULL;
    uint32_t count;
    hob_value args[8];

    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    x = vector(1, 3);
    two[0] = two[1] = x;
    args[0] = hob_value_tensors(two, 2);
    args[1] = hob_value_tensor(x);
    args[2] = hob_value_tensors(two, 1);
    args[3] = hob_value_enum(2);
    args[4] = hob_value_str("\"a\\,\n(b");
    args[5] = hob_value_f64s((double[]){0.1, 1e-300, 3}, 3);
    args[6] = hob_i64(INT64_MAX - 5);
    args[7] = hob_none();
    hob_call_op(scope, hob_op_resolve(scope, &ref), args, 8, &out, 1, &count);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    args[0] = hob_value_tensors(two, 1);
    args[7] = hob_bool(0);
    args[4] = hob_value_str("\xc3\xa9\xe2\x82\xac"); /* valid UTF-8 */
    hob_call_op(scope, hob_op_resolve(scope, &ref), args, 8, &out, 1, &count);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"mode\": \"left\""), 2);
    ck_assert_int_eq(count_parts("p.json", "[[\"v1\", \"v1\"], \"v1\", "
                                           "[\"v1\"]]"),
                     1);
    eval("p.json --device flex", 0, "^v3");
}
END_TEST

/* A list of results may be longer than any signature. */
START_TEST(test_record_list_of_results)
{
    static struct hob_op_ref ref = {"demo.parts", 0};
    static const int64_t counts[] = {1, 3, 40};
    hob_tensor *out[40];
    hob_value args[2];
    uint32_t count = 0;

    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    args[0] = hob_value_tensor(vector(1, 3));
    args[1] = hob_i64(counts[_i]);
    hob_call_op(scope, hob_op_resolve(scope, &ref), args, 2, out, 40, &count);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_uint_eq(count, (uint32_t)counts[_i]);
    hob_neg(scope, out[count - 1]);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"value\": "), (int)counts[_i]);
    eval("p.json --device flex", 0, "^v");
}
END_TEST

/* An enum lies flat: its variant is a word, what others have is absent. */
START_TEST(test_record_enum_of_tensors)
{
    static struct hob_op_ref spread = {"demo.spread", 0};
    static struct hob_op_ref fold = {"demo.fold", 0};
    hob_value args[5];
    hob_tensor *x;
    hob_tensor *out[3];
    hob_value variant;
    uint32_t count;

    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    x = vector(1, 3);
    args[0] = hob_value_tensor(x);
    args[1] = hob_i64(_i);
    hob_scope_host(scope)->callv(scope, hob_op_resolve(scope, &spread), args, 2,
                                 out, 3, &count, &variant, 1);
    ck_assert_int_eq(variant.u.i64, _i);
    args[0] = hob_value_enum(_i);
    for (int i = 0; i < 3; i++)
        args[1 + i] = hob_value_tensor(out[i]);
    args[4] = hob_value_tensor(x);
    hob_call_op(scope, hob_op_resolve(scope, &fold), args, 5, out, 1, &count);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    close_all();
    ck_assert_int_eq(
        count_parts("p.json", _i == 0   ? "[\"v2\", null, null, \"v1\"], "
                                          "{\"operand\": \"One\"}"
                              : _i == 1 ? "[null, \"v3\", \"v4\", \"v1\"], "
                                          "{\"operand\": \"Pair\"}"
                                        : "[null, null, null, \"v1\"], "
                                          "{\"operand\": \"Empty\"}"),
        1);
    eval("p.json --device flex", 0, "^v5: f32");
}
END_TEST

/* ---- handles ---- */

START_TEST(test_record_shared_elements_are_one_input)
{
    hob_device *flex = NULL;
    hob_tensor *x, *y, *below;
    double data[] = {1, 2, 3};

    open_device("autodiff(record{path=%s/p.json,outputs=yes}(flex))");
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &flex, &error));
    x = hob_from_f64(scope, device, data, (int64_t[]){3}, 1);
    y = hob_require_grad(scope, x);
    below = hob_to_device(scope, x, flex);
    hob_mul(scope, x, y);
    hob_add(scope, hob_detach(scope, y), hob_inner(scope, y));
    hob_add(scope, x, below); /* a constant, twice */
    hob_add(scope, below, x);
    /* The same numbers in another shape are other elements. */
    hob_exp(scope, hob_from_f64(scope, device, data, (int64_t[]){3, 1}, 2));
    hob_device_unref(flex);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"name\": "), 2);
    ck_assert_int_eq(count_parts("p.json", "[\"x1\", \"x1\"]"), 4);
    eval("p.json --device flex", 0, "^v5");
}
END_TEST

START_TEST(test_record_costs_no_handles)
{
    hob_tensor *x;
    hob_tensor *y;
    int64_t before;

    open_device("record{path=%s/p.json}(flex)");
    x = vector(1, 3);
    y = hob_exp(scope, x);
    before = hob__slab_live(&runtime->tensors);
    for (int i = 0; i < 10; i++)
        hob_add(scope, x, y);
    ck_assert_int_eq(hob__slab_live(&runtime->tensors), before + 10);
    close_all();
}
END_TEST

/* With outputs the layer holds what nobody used yet: it lets go in time. */
START_TEST(test_record_leaves_reuse_alone)
{
    hob_tensor *x;
    hob_tensor *y;
    void *data;

    open_device(_i ? "record{path=%s/p.json,outputs=yes}(flex)"
                   : "record{path=%s/p.json}(flex)");
    {
        hob_scope *inner = hob_scope_child(scope);

        x = hob_exp(inner, vector(1, 40));
        data = hob_tensor_view(x)->data;
        y = hob_add_scalar(inner, hob_move(inner, x), hob_f64(1));
        ck_assert_ptr_eq(hob_tensor_view(y)->data, data);
        hob_scope_close(inner);
    }
    close_all();
    eval("p.json --device flex", 0, "^v3");
}
END_TEST

START_TEST(test_record_outputs_are_what_no_step_used)
{
    hob_tensor *x;
    hob_scope *inner;

    open_device("record{path=%s/p.json}(flex)");
    x = vector(1, 3);
    inner = hob_scope_child(scope);
    hob_exp(inner, x); /* v2 dies first */
    hob_scope_close(inner);
    hob_neg(scope, hob_sqrt(scope, x)); /* v3, v4 */
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"value\": "), 2);
    ck_assert_int_eq(count_parts("p.json", "\"value\": \"v2\", \"dtype\": "
                                           "\"f32\", \"shape\": [3]}"),
                     1);
    ck_assert_int_eq(count_parts("p.json", "\"value\": \"v4\""), 1);
    eval("p.json --device flex --json", 0, "v4");
}
END_TEST

/* ---- autodiff ---- */

/* One step of a small regression; W is replaced. */
static void train(hob_tensor **w)
{
    hob_tensor *x = hob_reshape(scope, vector(-1, 6), (int64_t[]){2, 3}, 2);
    hob_tensor *y = hob_reshape(scope, vector(2, 2), (int64_t[]){2, 1}, 2);
    hob_tensor *leaf = hob_require_grad(scope, *w);
    hob_tensor *loss = hob_mean(
        scope,
        hob_square(scope, hob_sub(scope, hob_matmul(scope, x, leaf), y)));
    hob_grads *grads = NULL;
    hob_tensor *grad = NULL;
    hob_scope *plain = hob_no_grad(scope, device);

    ck_assert_hob_ok(hob_backward(scope, loss, 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, leaf, grads, &grad, &error));
    grad = hob_mul_scalar(plain, grad, hob_f64(-0.1));
    hob_assign(scope, w,
               hob_to_device(plain,
                             hob_add(plain, hob_inner(scope, leaf), grad),
                             device));
    hob_grads_free(grads);
    hob_scope_close(plain);
}

START_TEST(test_record_under_autodiff_has_the_backward_pass)
{
    hob_tensor *w;

    open_device(_i == 0 ? "autodiff(record{path=%s/p.json,outputs=yes}(flex))"
                : _i == 1
                    ? "autodiff{checkpoint=balanced}(record{path=%s/p.json,"
                      "outputs=yes}(flex))"
                    : "record{path=%s/p.json,outputs=yes}(autodiff(flex))");
    w = hob_reshape(scope, vector(0.5, 3), (int64_t[]){3, 1}, 2);
    hob_tensor_ref(w);
    hob_scope_close(scope);
    scope = hob_scope_open(runtime);
    {
        hob_tensor *slot = NULL;

        hob_assign(scope, &slot, w);
        hob_tensor_unref(w);
        for (int i = 0; i < 3; i++)
            train(&slot);
    }
    close_all();
    /* The backward pass of matmul is two of them, forward one: x needs no
     * gradient, so one. */
    ck_assert_int_eq(count_parts("p.json", "\"matmul\""), _i == 2 ? 3 : 6);
    eval("p.json --device flex", 0, "^v");
    if (_i < 2) /* the weights stay in the program from step to step */
        ck_assert_int_eq(count_parts("p.json", "\"name\": "), 3);
}
END_TEST

/* ---- threads ---- */

static void *work(void *opaque)
{
    double start = *(const double *)opaque;
    hob_scope *own = hob_scope_open(runtime);
    double data[] = {start, 2, 3};
    hob_tensor *x = hob_from_f64(own, device, data, (int64_t[]){3}, 1);

    for (int i = 0; i < ROUNDS; i++) {
        x = hob_cos(own, hob_add(own, x, x));
        hob_topk(own, x, 2, 0); /* used by nobody */
    }
    hob_scope_close(own);
    return NULL;
}

START_TEST(test_record_on_threads)
{
    pthread_t threads[THREADS];
    double starts[THREADS];

    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    for (int i = 0; i < THREADS; i++) {
        starts[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &starts[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"cos\""), THREADS * ROUNDS);
    eval("p.json --device flex", 0, "^v");
}
END_TEST

/* Threads use one tensor that has no name yet. */
static void *share(void *opaque)
{
    hob_scope *own = hob_scope_open(runtime);

    for (int i = 0; i < ROUNDS; i++)
        hob_neg(own, (hob_tensor *)opaque);
    hob_scope_close(own);
    return NULL;
}

START_TEST(test_record_names_a_shared_tensor_once)
{
    pthread_t threads[THREADS];
    hob_tensor *x;

    open_device("record{path=%s/p.json}(flex)");
    x = hob_from_f64(scope, device, (double[]){1}, NULL, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, share, x), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"name\": "), 1);
    ck_assert_int_eq(count_parts("p.json", "\"neg\", [\"x1\"]"),
                     THREADS * ROUNDS);
}
END_TEST

/* ---- failures ---- */

/* A call that passes all checks and fails in its kernel. */
static hob_tensor *fail_below(void)
{
    hob_tensor *far =
        hob_from_i32(scope, device, (int32_t[]){9}, (int64_t[]){1}, 1);

    return hob_gather(scope, vector(1, 3), far, 0);
}

START_TEST(test_record_keeps_the_last_failure)
{
    open_device("record{path=%s/p.json}(flex)");
    fail_below();
    ck_assert_int_eq(hob_scope_error(scope, NULL), HOB_ERR_RANGE);
    hob_scope_clear_error(scope);
    if (_i) /* the program went on: so does the record */
        hob_exp(scope, vector(2, 2));
    close_all();
    ck_assert_int_eq(count_parts("p.json", "gather"), !_i);
    eval("p.json --device flex", 0, _i ? "^v" : "failed, as expected");
}
END_TEST

/* WHAT happens to a process that records: the file is good. */
static void die(int what)
{
    pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child)
        ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (child)
        return;
    (void)freopen("/dev/null", "w", stderr);
    open_runtime(HOB_POLICY_PANIC);
    open_device("record{path=%s/p.json,outputs=yes}(flex)");
    hob_exp(scope, vector(2, 2));
    if (what)
        raise(SIGKILL);
    fail_below();
    _exit(0);
}

START_TEST(test_record_survives_a_crash)
{
    close_all();
    die(_i);
    eval("p.json --device flex", 0, _i ? "^v2: f32" : "failed, as expected");
}
END_TEST

START_TEST(test_record_refuses_a_bad_path)
{
    hob_device *none = NULL;

    ck_assert_hob_fails(
        hob_device_open(runtime, "record{path=/nowhere/p.json}(flex)", &none,
                        &error),
        HOB_ERR_IO, "/nowhere/p.json cannot be written: No such file");
    ck_assert_hob_fails(
        hob_device_open(runtime, "record{path=}(flex)", &none, &error),
        HOB_ERR_ARGUMENT, "\"path\" is empty");
    ck_assert_hob_fails(
        hob_device_open(runtime, "record{times=1}(flex)", &none, &error),
        HOB_ERR_ARGUMENT, "it is one of no, yes");
    ck_assert_hob_fails(
        hob_device_open(runtime, "record{file=a}(flex)", &none, &error),
        HOB_ERR_ARGUMENT, "it has path, times, outputs");
    close_all();
}
END_TEST

/* A full disk stops the record and nothing else. */
START_TEST(test_record_full_disk)
{
    hob_tensor *x;
    double data[3];
    int64_t before;

    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_hob_ok(hob_device_open(runtime, "record{path=/dev/full}(flex)",
                                     &device, &error));
    x = hob_add_scalar(scope, hob_zeros(scope, (int64_t[]){3}, 1, device, 0),
                       hob_f64(4));
    ck_assert_hob_ok(hob_read_f64(x, data, 3, &error));
    ck_assert_double_eq(data[2], 4);
    before = hob__slab_live(&runtime->tensors);
    hob_exp(scope, x);
    ck_assert_int_eq(hob__slab_live(&runtime->tensors), before + 1);
    close_all();
}
END_TEST

/* Two layers that write to one file: the later one has it. */
START_TEST(test_record_file_of_another)
{
    hob_device *other = NULL;
    hob_tensor *x;
    char spec[1024];

    open_device("record{path=%s/p.json}(flex)");
    (void)snprintf(spec, sizeof(spec), "record{path=%s/p.json}(autodiff(flex))",
                   dir.path);
    ck_assert_hob_ok(hob_device_open(runtime, spec, &other, &error));
    x = hob_exp(scope, hob_zeros(scope, NULL, 0, device, 0));
    hob_square(scope, hob_zeros(scope, NULL, 0, other, 0));
    hob_exp(scope, x); /* stops */
    hob_abs(scope, hob_zeros(scope, NULL, 0, other, 0));
    hob_device_unref(other);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"exp\""), 0);
    ck_assert_int_eq(count_parts("p.json", "\"value\": "), 2);
    eval("p.json --device flex", 0, "^v4: f32");
}
END_TEST

START_TEST(test_record_on_record)
{
    char spec[1024];

    (void)snprintf(spec, sizeof(spec),
                   "record{path=%s/p.json}(record{path=%s/q.json}(flex))",
                   dir.path, dir.path);
    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    structure();
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"name\": "),
                     count_parts("q.json", "\"name\": "));
    eval("p.json --device flex", 0, "^v");
    eval("q.json --device flex", 0, "^v");
}
END_TEST

/* A child has the handles but not the file. */
START_TEST(test_record_in_a_forked_child)
{
    hob_tensor *x;
    pid_t child;
    int status = 0;

    open_device("record{path=%s/p.json}(flex)");
    x = hob_exp(scope, vector(0, 3));
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        hob_exp(scope, x); /* whether it works or not */
        hob_scope_close(scope);
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    hob_neg(scope, x);
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"exp\""), 1);
    eval("p.json --device flex", 0, "^v3: f32");
}
END_TEST

START_TEST(test_record_op_signature)
{
    ck_assert_str_eq(hob_op_signature(runtime, HOB_OP_RELU), "(x: Float) -> x");
    ck_assert_ptr_null(hob_op_signature(runtime, 0));
    ck_assert_ptr_null(hob_op_signature(runtime, UINT32_MAX));
    close_all();
}
END_TEST

/* The program goes elsewhere; its record stays where it was. */
START_TEST(test_record_path_is_of_the_start)
{
    ck_assert_int_eq(chdir(dir.path), 0);
    ck_assert_hob_ok(
        hob_device_open(runtime, "record{path=p.json}(flex)", &device, &error));
    ck_assert_int_eq(chdir("/"), 0);
    hob_exp(scope, vector(0, 3));
    close_all();
    eval("p.json --device flex", 0, "^v2: f32");
}
END_TEST

START_TEST(test_record_nothing_is_a_program)
{
    open_device("record{path=%s/p.json}(flex)");
    close_all();
    ck_assert_int_eq(count_parts("p.json", "\"program\": ["), 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("record");
    TCase *tc = tcase_create("record");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_record_replays_to_the_bit);
    tcase_add_test(tc, test_record_writes_exact_attributes);
    tcase_add_test(tc, test_record_times_each_step);
    tcase_add_test(tc, test_record_extension_op);
    tcase_add_loop_test(tc, test_record_list_of_results, 0, 3);
    tcase_add_loop_test(tc, test_record_enum_of_tensors, 0, 3);
    tcase_add_test(tc, test_record_shared_elements_are_one_input);
    tcase_add_test(tc, test_record_costs_no_handles);
    tcase_add_loop_test(tc, test_record_leaves_reuse_alone, 0, 2);
    tcase_add_test(tc, test_record_outputs_are_what_no_step_used);
    tcase_add_loop_test(tc, test_record_under_autodiff_has_the_backward_pass, 0,
                        3);
    tcase_add_test(tc, test_record_on_threads);
    tcase_add_test(tc, test_record_names_a_shared_tensor_once);
    tcase_add_loop_test(tc, test_record_keeps_the_last_failure, 0, 2);
    tcase_add_loop_test(tc, test_record_survives_a_crash, 0, 2);
    tcase_add_test(tc, test_record_refuses_a_bad_path);
    tcase_add_test(tc, test_record_full_disk);
    tcase_add_test(tc, test_record_file_of_another);
    tcase_add_test(tc, test_record_on_record);
    tcase_add_test(tc, test_record_in_a_forked_child);
    tcase_add_test(tc, test_record_op_signature);
    tcase_add_test(tc, test_record_path_is_of_the_start);
    tcase_add_test(tc, test_record_nothing_is_a_program);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return hob_check_main(suite());
}
