/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantized tensors and the ops of extensions: those that declare the kind get
 * such a tensor as it is, the others get it dequantized.
 */
#include "hob_check.h"

#include <hob/ext/plugin.h>
#include <hob/ext/quant.h>
#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>

static hob_runtime *runtime;
static hob_device *flex, *tracking;
static hob_scope *scope;
static hob_error error;

/* ---- the extension ---- */

static hob_status infer_first(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof(out->shape));
    return HOB_OK;
}

/* q4s, which only the body of qx.pack4 makes. */
static hob_status infer_q4s(struct hob_call *call, struct hob_meta *out)
{
    out->dtype = HOB_DTYPE_QUANT;
    out->scheme = hob_quant_scheme(HOB_QUANT_Q4S, HOB_DTYPE_F32, 0, 0);
    return infer_first(call, out);
}

static hob_status infer_no_scheme(struct hob_call *call, struct hob_meta *out)
{
    out->dtype = HOB_DTYPE_QUANT;
    return infer_first(call, out);
}

/* The same codes with half the scales: what no other op can do. */
static hob_status halve(hob_scope *s, const struct hob_call *call,
                        hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;
    hob_tensor *scales = NULL, *global = NULL;
    hob_status status = hob_quantized_scales(s, x, &scales, &global);

    if (status)
        return status;
    out[0] = hob_quantized_from(
        s, hob_quantized_values(s, x), hob_mul_scalar(s, scales, hob_f64(0.5)),
        global, HOB_QUANTIZED_FROM_VALUE_Q8S, (const int64_t[]){3}, 1,
        HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
    return HOB_OK;
}

static hob_status twice(hob_scope *s, const struct hob_call *call,
                        hob_tensor **out)
{
    out[0] = hob_add(s, call->args[0].u.tensor, call->args[0].u.tensor);
    return HOB_OK;
}

/* It only moves elements. */
static hob_status mirror(hob_scope *s, const struct hob_call *call,
                         hob_tensor **out)
{
    out[0] = hob_flip(s, call->args[0].u.tensor, (const int64_t[]){0}, 1);
    return HOB_OK;
}

static hob_tensor *quantize(hob_scope *s, hob_tensor *x,
                            enum hob_quantize_dynamic_value value,
                            int64_t block, int propagate)
{
    return hob_quantize_dynamic(
        s, x, value, &block, block != 0, HOB_DTYPE_F32, 0,
        propagate ? HOB_QUANTIZE_DYNAMIC_PROPAGATION_PROPAGATE
                  : HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
        HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
}

static hob_status pack4(hob_scope *s, const struct hob_call *call,
                        hob_tensor **out)
{
    out[0] = quantize(s, call->args[0].u.tensor, HOB_QUANTIZE_DYNAMIC_VALUE_Q4S,
                      0, 0);
    return HOB_OK;
}

static hob_status pack8(hob_scope *s, const struct hob_call *call,
                        hob_tensor **out)
{
    out[0] = quantize(s, call->args[0].u.tensor, HOB_QUANTIZE_DYNAMIC_VALUE_Q8S,
                      0, 0);
    return HOB_OK;
}

static hob_status weigh(hob_scope *s, const struct hob_call *call,
                        hob_tensor **out)
{
    out[0] = hob_mul(s, call->args[0].u.tensor,
                     hob_dequantize(s, call->args[1].u.tensor, HOB_DTYPE_F32));
    return HOB_OK;
}

/* The quantized input was saved, and its metadata too, scheme and all. */
static hob_status weigh_backward(hob_scope *s, const struct hob_grad_call *call)
{
    hob_tensor *w = call->inputs[1];

    if (call->input_metas[1].scheme != hob_tensor_view(w)->scheme)
        return HOB_ERR_STATE;
    call->out_grads[0] =
        hob_mul(s, call->grads[0], hob_dequantize(s, w, HOB_DTYPE_F32));
    return HOB_OK;
}

static const struct hob_backward weigh_rule = {.struct_size =
                                                   sizeof(struct hob_backward),
                                               .save_args = 2,
                                               .backward = weigh_backward};
static const struct hob_op_impl weigh_impls[] = {
    {.selector = "autodiff", .backward = &weigh_rule}};

static const struct hob_extension_op ops[] = {
    {.name = "qx.halve",
     .signature = "(x: Quantized) -> x",
     .infer = infer_first,
     .body = halve},
    {.name = "qx.twice",
     .signature = "(x: Float) -> x",
     .infer = infer_first,
     .body = twice},
    {.name = "qx.keep",
     .signature = "(x: Float) -> x",
     .infer = infer_first,
     .body = twice},
    {.name = "qx.never",
     .signature = "(x: Float) -> x",
     .infer = infer_first,
     .body = twice},
    {.name = "qx.mirror",
     .signature = "(x: Num) -> x",
     .infer = infer_first,
     .body = mirror},
    {.name = "qx.pack4",
     .signature = "(x: Float) -> Quantized",
     .infer = infer_q4s,
     .body = pack4},
    {.name = "qx.liar",
     .signature = "(x: Float) -> Quantized",
     .infer = infer_q4s,
     .body = pack8},
    {.name = "qx.vague",
     .signature = "(x: Float) -> Quantized",
     .infer = infer_no_scheme,
     .body = pack8},
    {.name = "qx.weigh",
     .signature = "(x: Float, w: Quantized) -> x",
     .infer = infer_first,
     .body = weigh,
     .impls = weigh_impls,
     .impl_count = 1}};

static const struct hob_extension table = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ops) / sizeof(ops[0]),
    .ops = ops};
static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD, .id = "qx", .version = "1.0.0", .extension = &table};

static const struct hob_plugin *entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}

#define OP(name, signature, more)                                              \
    "{\"op\":\"" name "\",\"signature\":\"" signature "\",\"infer\":"          \
    "\"function\",\"body\":true,\"backends\":[\"autodiff\",\"*\"]" more "}"

static const struct hob_static_plugin statics = {
    "{\"manifest_version\":1,\"id\":\"qx\",\"version\":\"1.0.0\","
    "\"kind\":\"extension\","
    "\"abi\":{\"major\":0,\"required_minor\":2,\"built_minor\":2},"
    "\"namespace\":\"qx\",\"ops\":[" OP("halve", "(x: Quantized) -> x", "") "," OP("twice", "(x: Float) -> x", "") "," OP("keep", "(x: Float) -> x", ",\"quantized\":\"keep\"") "," OP(
        "never", "(x: Float) -> x",
        ",\"quantized\":"
        "\"never\"") "," OP("mirr"
                            "or",
                            "(x: "
                            "Num)"
                            " -> "
                            "x",
                            ",\"q"
                            "uant"
                            "ized"
                            "\":"
                            "\"vi"
                            "ew"
                            "\"") "," OP("pack4", "(x: Float) -> Quantized",
                                         "") "," OP("liar",
                                                    "(x: Float) -> Quantized",
                                                    "") "," OP("vague",
                                                               "(x: Float) -> "
                                                               "Quantized",
                                                               "") "," OP("weig"
                                                                          "h",
                                                                          "(x: "
                                                                          "Floa"
                                                                          "t, "
                                                                          "w: "
                                                                          "Quan"
                                                                          "tize"
                                                                          "d) "
                                                                          "-> "
                                                                          "x",
                                                                          ",\"i"
                                                                          "mple"
                                                                          "ment"
                                                                          "ati"
                                                                          "ons"
                                                                          "\":{"
                                                                          "\"au"
                                                                          "todi"
                                                                          "ff\""
                                                                          ":{"
                                                                          "\"ba"
                                                                          "ckwa"
                                                                          "rd\""
                                                                          ":{"
                                                                          "\"sa"
                                                                          "ve\""
                                                                          ":["
                                                                          "\"w"
                                                                          "\"]}"
                                                                          "}}") "]"
                                                                                "}",
    entry};

/* ---- the tests ---- */

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const char *folder = getenv("HOB_TEST_PLUGIN_DIR");

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = &statics;
    options.static_plugin_count = 1;
    options.plugin_paths = &folder;
    options.plugin_path_count = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &flex, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &tracking, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_error_release(&error);
    hob_scope_close(scope);
    hob_device_unref(flex);
    hob_device_unref(tracking);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

static hob_tensor *call(const char *name, hob_tensor *x, hob_tensor *w)
{
    struct hob_op_ref ref = {name, 0};
    hob_value args[2];
    uint32_t id = hob_op_resolve(scope, &ref);

    args[0] = hob_value_tensor(x);
    args[1] = hob_value_tensor(w);
    return hob_scope_host(scope)->call1(scope, id, args, w ? 2 : 1);
}

static const float data[5] = {1, -2, 3, 0.5f, -4};
static const int64_t five[1] = {5};

static hob_tensor *make(hob_device *device)
{
    return hob_from_f32(scope, device, data, five, 1);
}

static void check(hob_tensor *tensor, double factor, double tolerance)
{
    float got[5];

    ck_assert_hob_ok(hob_read_f32(tensor, got, 5, &error));
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq_tol((double)got[i], factor * (double)data[i],
                                tolerance);
}

static void check_fails(hob_status status, const char *part)
{
    ck_assert_hob_fails(hob_scope_error(scope, &error), status, part);
    hob_scope_clear_error(scope);
}

START_TEST(test_quant_extension_takes_and_gives_them)
{
    hob_tensor *q =
        quantize(scope, make(flex), HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, 3, 0);
    hob_tensor *half = call("qx.halve", q, NULL);

    check(half, 0.5, 0.02);
    ck_assert_uint_eq(hob_tensor_view(half)->scheme,
                      hob_tensor_view(q)->scheme);
    check(call("qx.pack4", make(flex), NULL), 1, 0.5);
    call("qx.halve", make(flex), NULL);
    check_fails(HOB_ERR_DTYPE, "x is f32[5], it must be Quantized");
    call("qx.liar", make(flex), NULL);
    check_fails(HOB_ERR_PLUGIN, "as q8s[5], inferred was q4s[5]");
    call("qx.vague", make(flex), NULL);
    check_fails(HOB_ERR_PLUGIN, "dtype number 14");
}
END_TEST

START_TEST(test_quant_extension_of_floats_gets_floats)
{
    hob_tensor *x = make(tracking);
    hob_tensor *y =
        call("qx.twice",
             quantize(scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, 0, 0), NULL);

    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_F32);
    check(y, 2, 0.05);
    y = call("qx.twice",
             quantize(scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, 0, 1), NULL);
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    check(y, 2, 0.1);
}
END_TEST

START_TEST(test_quant_extension_says_what_becomes_of_results)
{
    const float backwards[5] = {-4, 0.5f, 3, -2, 1};
    hob_tensor *x = make(flex);
    hob_tensor *q = quantize(scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q4S, 0, 0);
    hob_tensor *propagating =
        quantize(scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, 0, 1);
    hob_tensor *y = call("qx.keep", q, NULL);
    float left[5], right[5];

    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(q)->scheme);
    y = call("qx.never", propagating, NULL);
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_F32);
    check(y, 2, 0.1);
    y = call("qx.mirror", q, NULL);
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(q)->scheme);
    ck_assert_hob_ok(hob_read_f32(q, left, 5, &error));
    ck_assert_hob_ok(hob_read_f32(y, right, 5, &error));
    for (int i = 0; i < 5; i++) {
        ck_assert(left[i] == right[4 - i]);
        ck_assert_double_eq_tol((double)right[i], (double)backwards[i], 0.5);
    }
}
END_TEST

START_TEST(test_quant_extension_saves_them_for_its_gradient)
{
    hob_tensor *x = hob_require_grad(scope, make(tracking));
    hob_tensor *w =
        quantize(scope, make(tracking), HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, 2, 0);
    hob_tensor *y = call("qx.weigh", x, w);
    hob_tensor *dx = NULL;
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_backward(scope, y, 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    check(dx, 1, 0.02);
    hob_grads_free(grads);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant_extension");
    TCase *tc = tcase_create("quant_extension");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not name the plugins");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_quant_extension_takes_and_gives_them);
    tcase_add_test(tc, test_quant_extension_of_floats_gets_floats);
    tcase_add_test(tc, test_quant_extension_says_what_becomes_of_results);
    tcase_add_test(tc, test_quant_extension_saves_them_for_its_gradient);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
