/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core does with structs, enums and plain results, and with what an
 * extension may say of a kernel: kept plans, consumed and aliased arguments,
 * random numbers. The extension's table is written by hand here: what the
 * generator makes of a manifest is tested in tests/gen.
 */
#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include "hob_check.h"
#include "test_device.h"

#undef fail /* a macro of check.h */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the extension ---- */

static const char manifest[] =
    "{\"manifest_version\": 1, \"id\": \"t.types\", \"version\": \"1.0.0\","
    " \"kind\": \"extension\", \"abi\": {\"major\": 0, \"required_minor\": 2},"
    " \"namespace\": \"t\","
    " \"types\": {"
    "  \"Pair\": {\"struct\": {\"x\": \"Float\", \"y\": \"Float\","
    "             \"n\": \"i64\"}, \"doc\": \"Two and a number.\"},"
    "  \"Operand\": {\"enum\": {\"Dense\": \"Float\","
    "    \"Sparse\": {\"values\": \"Float\", \"indices\": \"Int\","
    "                 \"bias\": \"Float?\"},"
    "    \"Empty\": null}},"
    "  \"Nest\": {\"struct\": {\"pair\": \"Pair\", \"operand\": \"Operand\","
    "             \"all\": \"[Float]\"}}},"
    " \"ops\": ["
    "  {\"op\": \"mul_pair\", \"signature\": \"(pair: Pair) -> Float\","
    "   \"infer\": \"function\", \"body\": true,"
    "   \"backends\": [\"autodiff\", \"flex\"]},"
    "  {\"op\": \"densify\","
    "   \"signature\": \"(operand: Operand, like: Float?) -> Float\","
    "   \"infer\": {\"shape\": \"like\"}, \"body\": true,"
    "   \"backends\": [\"autodiff\", \"flex\"]},"
    "  {\"op\": \"classify\", \"signature\": \"(x: Float) -> Operand\","
    "   \"infer\": \"function\", \"body\": true,"
    "   \"backends\": [\"autodiff\", \"flex\"]},"
    "  {\"op\": \"measure\","
    "   \"signature\": \"(nest: Nest) -> (sum: Float, n: value(i64))\","
    "   \"infer\": \"function\", \"backends\": [\"flex\"]},"
    "  {\"op\": \"spend\", \"signature\": \"(x: Float, y: Float) -> x\","
    "   \"infer\": \"function\", \"backends\": [\"flex\"]},"
    "  {\"op\": \"first\", \"signature\": \"(xs: [Float]) -> xs\","
    "   \"infer\": \"function\", \"body\": true,"
    "   \"backends\": [\"autodiff\", \"flex\"]},"
    "  {\"op\": \"older\", \"infer\": \"same\", \"body\": true,"
    "   \"signature\": \"(x: Float, factor: f64 = 2, more: [i64] = [1]) "
    "-> x\","
    "   \"backends\": [\"flex\"]},"
    "  {\"op\": \"stuck\", \"infer\": \"same\","
    "   \"signature\": \"(x: Float, factor: f64 = 2) -> x\","
    "   \"backends\": [\"flex\"]},"
    "  {\"op\": \"pieces\", \"signature\": \"(x: Float, n: i64) -> [x]\","
    "   \"infer\": \"function\", \"body\": true,"
    "   \"backends\": [\"autodiff\", \"flex\"]},"
    "  {\"op\": \"noise\", \"random\": true, \"infer\": \"same\","
    "   \"signature\": \"(x: Float, _seed: i64?, _offset: i64?) -> x\","
    "   \"backends\": [\"flex\"]}]}";

#define OPERAND                                                                \
    "operand: enum(Dense, Sparse, Empty), operand.Dense: Float?, "             \
    "operand.Sparse.values: Float?, operand.Sparse.indices: Int?, "            \
    "operand.Sparse.bias: Float?"
#define PAIR_FIELDS(name) name ".x: Float, " name ".y: Float, " name ".n: i64"

/* Where the flat parameters are. */
enum { PAIR_X, PAIR_Y, PAIR_N };
enum { TAG, DENSE, VALUES, INDICES, BIAS, LIKE };

static hob_status mul_pair_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, PAIR_X);

    out->dtype = x->dtype;
    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof(out->shape));
    return HOB_OK;
}

static hob_status mul_pair_body(hob_scope *scope, const struct hob_call *call,
                                hob_tensor **out)
{
    out[0] = hob_mul(scope, call->args[PAIR_X].u.tensor,
                     call->args[PAIR_Y].u.tensor);
    return HOB_OK;
}

static hob_status mul_pair_backward(hob_scope *scope,
                                    const struct hob_grad_call *call)
{
    ck_assert_int_eq(call->input_count, 2);
    ck_assert_int_eq(call->args[PAIR_N].u.i64, 7);
    if (call->needs_grad[0])
        call->out_grads[0] = hob_mul(scope, call->grads[0], call->inputs[1]);
    if (call->needs_grad[1])
        call->out_grads[1] = hob_mul(scope, call->grads[0], call->inputs[0]);
    return HOB_OK;
}

static const struct hob_backward mul_pair_rule = {
    .struct_size = sizeof(struct hob_backward),
    .save_args = 3,
    .backward = mul_pair_backward};

static const struct hob_op_impl mul_pair_impls[] = {
    {.selector = "autodiff", .backward = &mul_pair_rule}};

static hob_status densify_infer(struct hob_call *call, struct hob_meta *out)
{
    static const int from[] = {DENSE, VALUES, LIKE};
    const struct hob_view *view =
        hob_arg_view(call, (uint32_t)from[call->args[TAG].u.i64]);

    if (!view)
        return call->host->fail(call, HOB_ERR_ARGUMENT, "give like");
    out->dtype = view->dtype;
    out->rank = view->rank;
    memcpy(out->shape, view->shape, sizeof(out->shape));
    return HOB_OK;
}

static hob_status densify_body(hob_scope *scope, const struct hob_call *call,
                               hob_tensor **out)
{
    const hob_value *args = call->args;

    if (args[TAG].u.i64 == 0)
        out[0] = args[DENSE].u.tensor;
    else if (args[TAG].u.i64 == 1)
        out[0] = hob_scatter_add(
            scope, hob_sub(scope, args[VALUES].u.tensor, args[VALUES].u.tensor),
            args[INDICES].u.tensor, args[VALUES].u.tensor, 0);
    else
        out[0] = hob_mul_scalar(scope, args[LIKE].u.tensor, hob_f64(0));
    return HOB_OK;
}

/* Rank 1 is dense, rank 2 sparse, all else empty. */
static hob_status classify_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    ck_assert_int_eq(call->ret_count, 4);
    ck_assert_int_eq(call->plain_count, 1);
    call->plains[0].u.i64 = x->rank == 1 ? 0 : x->rank == 2 ? 1 : 2;
    if (x->rank == 3) /* a bug: a field of another variant */
        out[0].dtype = x->dtype;
    if (x->rank == 4) /* another: no such variant */
        call->plains[0].u.i64 = 3;
    if (x->rank != 1 && x->rank != 2)
        return HOB_OK;
    for (int i = x->rank == 1 ? 0 : 1; i < (x->rank == 1 ? 1 : 3); i++) {
        out[i].dtype = i == 2 ? HOB_DTYPE_I64 : x->dtype;
        out[i].rank = x->rank;
        memcpy(out[i].shape, x->shape, sizeof(out[i].shape));
    }
    return HOB_OK;
}

static hob_status classify_body(hob_scope *scope, const struct hob_call *call,
                                hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    if (call->plains[0].u.i64 == 0)
        out[0] = hob_neg(scope, x);
    if (call->plains[0].u.i64 == 1) {
        out[1] = hob_mul(scope, x, x);
        out[2] = hob_cast(scope, x, HOB_DTYPE_I64);
    }
    return HOB_OK;
}

static atomic_int prepared_count, released_count;

static void measure_release(void *prepared)
{
    atomic_fetch_add(&released_count, 1);
    free(prepared);
}

static hob_status measure_prepare(void *device, const struct hob_call *call,
                                  struct hob_prepare *out)
{
    int64_t *n = malloc(sizeof(*n));

    (void)device;
    if (!n)
        return HOB_ERR_MEMORY;
    *n = hob_view_count(hob_arg_view(call, 0));
    atomic_fetch_add(&prepared_count, 1);
    out->prepared = n;
    out->release = measure_release;
    out->workspace_bytes = 8;
    return HOB_OK;
}

static hob_status measure_infer(struct hob_call *call, struct hob_meta *out)
{
    out->dtype = hob_arg_view(call, 0)->dtype;
    call->plains[0].u.i64 = call->args[2].u.i64 + 1;
    return HOB_OK;
}

/* The sum of pair.x, f32, and of the first elements of all. */
static hob_status measure_execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    float sum = 0;

    (void)device;
    ck_assert_int_eq(*(const int64_t *)call->prepared, hob_view_count(x));
    ck_assert_ptr_nonnull(call->workspace);
    for (int64_t i = 0; i < hob_view_count(x); i++)
        sum += ((const float *)x->data)[i];
    for (uint32_t i = 0; i < call->args[8].count; i++)
        sum += *(const float *)hob_arg_item(call, 8, i)->data;
    *(float *)hob_ret_view(call, 0)->data = sum;
    return HOB_OK;
}

static const struct hob_entry measure_entry = {
    .op = "t.measure",
    .signature = "(" PAIR_FIELDS(
        "nest.pair") ", nest.operand: enum(Dense, "
                     "Sparse, Empty), nest.operand.Dense: Float?, "
                     "nest.operand.Sparse.values: Float?, "
                     "nest.operand.Sparse.indices: Int?, "
                     "nest.operand.Sparse.bias: Float?, nest.all: [Float]) -> "
                     "(sum: Float, n: value(i64))",
    .flags = HOB_ENTRY_KEEP | HOB_ENTRY_CONTIGUOUS,
    .prepare = measure_prepare,
    .execute = measure_execute};

static const struct hob_op_impl measure_impls[] = {
    {.selector = "flex", .entry = &measure_entry}};

/* x + y in x's own way: y is used up where it may be. */
static hob_status spend_execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_arg_view(call, 1);
    float *out = (float *)hob_ret_view(call, 0)->data;

    (void)device;
    for (int64_t i = 0; i < hob_view_count(x); i++)
        out[i] = ((const float *)x->data)[i] + ((const float *)y->data)[i];
    if (hob_arg_is_consumed(call, 0))
        return HOB_ERR_INTERNAL; /* it is not declared */
    if (hob_arg_is_consumed(call, 1))
        for (int64_t i = 0; i < hob_view_count(y); i++) {
            ((float *)y->data)[i] = -1;
            out[i] += 100;
        }
    return HOB_OK;
}

static hob_status spend_infer(struct hob_call *call, struct hob_meta *out)
{
    return mul_pair_infer(call, out);
}

static const struct hob_entry spend_entry = {
    .op = "t.spend",
    .signature = "(x: Float, y: Float) -> x",
    .flags = HOB_ENTRY_CONTIGUOUS | HOB_ENTRY_IN_PLACE,
    .execute = spend_execute};

static const struct hob_op_impl spend_impls[] = {
    {.selector = "flex", .entry = &spend_entry}};

static const uint8_t spend_aliases[][2] = {{0, 0}};

static hob_status first_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_item(call, 0, 0);

    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof(out->shape));
    return HOB_OK;
}

static hob_status first_body(hob_scope *scope, const struct hob_call *call,
                             hob_tensor **out)
{
    (void)scope;
    out[0] = call->args[0].u.tensors[0];
    return HOB_OK;
}

/* x times 2: written before there was a factor. */
static hob_status older_execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    float *y = (float *)hob_ret_view(call, 0)->data;

    (void)device;
    for (int64_t i = 0; i < hob_view_count(x); i++)
        y[i] = 2 * ((const float *)x->data)[i];
    return HOB_OK;
}

static hob_status older_body(hob_scope *scope, const struct hob_call *call,
                             hob_tensor **out)
{
    /* 1000 tells it from the kernel. */
    out[0] = hob_add_scalar(
        scope, hob_mul_scalar(scope, call->args[0].u.tensor, call->args[1]),
        hob_i64(1000 * call->args[2].u.i64s[0]));
    return HOB_OK;
}

static const struct hob_entry older_entry = {.op = "t.older",
                                             .signature = "(x: Float) -> x",
                                             .flags = HOB_ENTRY_CONTIGUOUS,
                                             .execute = older_execute};
static const struct hob_op_impl older_impls[] = {
    {.selector = "flex", .entry = &older_entry}};
static const struct hob_entry stuck_entry = {.op = "t.stuck",
                                             .signature = "(x: Float) -> x",
                                             .flags = HOB_ENTRY_CONTIGUOUS,
                                             .execute = older_execute};
static const struct hob_op_impl stuck_impls[] = {
    {.selector = "flex", .entry = &stuck_entry}};

static hob_status pieces_infer(struct hob_call *call, struct hob_meta *out)
{
    int64_t n = call->args[1].u.i64;

    if (!out) {
        if (n < 0 || n > hob_view_count(hob_arg_view(call, 0)))
            return call->host->fail(call, HOB_ERR_RANGE, "n is not 0..%d",
                                    (int)hob_view_count(hob_arg_view(call, 0)));
        call->ret_count = (uint16_t)n;
        return HOB_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i].rank = 1;
        out[i].shape[0] = 1;
    }
    return HOB_OK;
}

static hob_status pieces_body(hob_scope *scope, const struct hob_call *call,
                              hob_tensor **out)
{
    const int64_t step = 1;

    for (int64_t i = 0; i < call->ret_count; i++) {
        const int64_t end = i + 1;

        out[i] =
            hob_slice(scope, call->args[0].u.tensor, &i, 1, &end, 1, &step, 1);
    }
    return HOB_OK;
}

static hob_status noise_execute(void *device, struct hob_call *call)
{
    (void)device;
    *(float *)hob_ret_view(call, 0)->data =
        (float)(call->args[2].u.i64 % 1000 + (call->args[1].u.i64 == 5) * 1000);
    return HOB_OK;
}

static const struct hob_entry noise_entry = {
    .op = "t.noise",
    .signature = "(x: Float, _seed: i64?, _offset: i64?) -> x",
    .execute = noise_execute};

static const struct hob_op_impl noise_impls[] = {
    {.selector = "flex", .entry = &noise_entry}};

static const struct hob_extension_op ops[] = {
    {.name = "t.mul_pair",
     .signature = "(" PAIR_FIELDS("pair") ") -> Float",
     .infer = mul_pair_infer,
     .body = mul_pair_body,
     .impls = mul_pair_impls,
     .impl_count = 1},
    {.name = "t.densify",
     .signature = "(" OPERAND ", like: Float?) -> Float",
     .infer = densify_infer,
     .body = densify_body},
    {.name = "t.classify",
     .signature = "(x: Float) -> (Dense: Float?, Sparse.values: Float?, "
                  "Sparse.indices: Int?, Sparse.bias: Float?, variant: "
                  "value(enum(Dense, Sparse, Empty)))",
     .infer = classify_infer,
     .body = classify_body},
    {.name = "t.measure",
     .signature = "(" PAIR_FIELDS(
         "nest.pair") ", nest.operand: enum(Dense, "
                      "Sparse, Empty), nest.operand.Dense: Float?, "
                      "nest.operand.Sparse.values: Float?, "
                      "nest.operand.Sparse.indices: Int?, "
                      "nest.operand.Sparse.bias: Float?, nest.all: [Float]) -> "
                      "(sum: Float, n: value(i64))",
     .infer = measure_infer,
     .impls = measure_impls,
     .impl_count = 1},
    {.name = "t.spend",
     .signature = "(x: Float, y: Float) -> x",
     .infer = spend_infer,
     .impls = spend_impls,
     .impl_count = 1,
     .consumes = 2,
     .aliases = spend_aliases,
     .alias_count = 1},
    {.name = "t.first",
     .signature = "(xs: [Float]) -> xs",
     .infer = first_infer,
     .body = first_body},
    {.name = "t.older",
     .signature = "(x: Float, factor: f64 = 2, more: [i64] = [1]) -> x",
     .body = older_body,
     .impls = older_impls,
     .impl_count = 1},
    {.name = "t.stuck",
     .signature = "(x: Float, factor: f64 = 2) -> x",
     .impls = stuck_impls,
     .impl_count = 1},
    {.name = "t.pieces",
     .signature = "(x: Float, n: i64) -> [x]",
     .infer = pieces_infer,
     .body = pieces_body},
    {.name = "t.noise",
     .signature = "(x: Float, _seed: i64?, _offset: i64?) -> x",
     .impls = noise_impls,
     .impl_count = 1}};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ops) / sizeof(ops[0]),
    .ops = ops};

static const struct hob_plugin plugin = {HOB_PLUGIN_INIT_HEAD, .id = "t.types",
                                         .version = "1.0.0",
                                         .extension = &extension};

static const struct hob_plugin *entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}

/* ---- the fixture ---- */

static hob_runtime *runtime;
static hob_device *flex;
static hob_device *tracking;
static hob_scope *scope;
static hob_error error;

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

static void setup(void)
{
    static const struct hob_static_plugin plugins[] = {{manifest, entry}};
    struct hob_runtime_options options = test_options();

    options.on_panic = stay_silent;
    options.static_plugins = plugins;
    options.static_plugin_count = 1;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &flex, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &tracking, &error));
    scope = hob_scope_open(runtime);
    atomic_store(&prepared_count, 0);
    atomic_store(&released_count, 0);
}

/* Also that nothing is left: closing fails while a tensor lives. */
static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(flex);
    hob_device_unref(tracking);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(atomic_load(&prepared_count),
                     atomic_load(&released_count));
}

static hob_tensor *vector(hob_device *device, float a, float b)
{
    return hob_from_f32(scope, device, (float[]){a, b}, (int64_t[]){2}, 1);
}

static void check_vector(hob_tensor *tensor, float a, float b)
{
    float out[2] = {0, 0};

    ck_assert_hob_ok(hob_read_f32(tensor, out, 2, &error));
    ck_assert_float_eq(out[0], a);
    ck_assert_float_eq(out[1], b);
}

static uint32_t op(const char *name)
{
    struct hob_op_ref ref = {name, 0};
    uint32_t id = hob_op_resolve(scope, &ref);

    ck_assert_uint_ne(id, UINT32_MAX);
    return id;
}

static void check_fails(hob_status status, const char *text)
{
    hob_error why = HOB_ERROR_INIT;

    ck_assert_int_eq(hob_scope_error(scope, &why), status);
    ck_assert_msg(strstr(why.message, text) != NULL, "\"%s\" lacks \"%s\"",
                  why.message, text);
    hob_error_release(&why);
    hob_scope_clear_error(scope);
}

/* ---- tests ---- */

START_TEST(test_types_struct_with_gradients)
{
    hob_tensor *x = hob_require_grad(scope, vector(tracking, 2, 3));
    hob_tensor *y = hob_require_grad(scope, vector(tracking, 4, 5));
    hob_value args[3] = {hob_value_tensor(x), hob_value_tensor(y), hob_i64(7)};
    hob_tensor *out =
        hob_scope_host(scope)->call1(scope, op("t.mul_pair"), args, 3);
    hob_grads *grads = NULL;
    hob_tensor *dx, *dy;

    check_vector(out, 8, 15);
    ck_assert_hob_ok(hob_backward(scope, out, 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    ck_assert_hob_ok(hob_grad(scope, y, grads, &dy, &error));
    check_vector(dx, 4, 5);
    check_vector(dy, 2, 3);
    hob_grads_free(grads);
}
END_TEST

/* A plain field beside tracked ones is a constant. */
START_TEST(test_types_struct_with_a_constant)
{
    hob_tensor *x = vector(flex, 2, 3);
    hob_tensor *y = hob_require_grad(scope, vector(tracking, 4, 5));
    hob_value args[3] = {hob_value_tensor(x), hob_value_tensor(y), hob_i64(7)};
    hob_tensor *out =
        hob_scope_host(scope)->call1(scope, op("t.mul_pair"), args, 3);
    hob_grads *grads = NULL;
    hob_tensor *dy;

    ck_assert_hob_ok(hob_backward(scope, out, 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, y, grads, &dy, &error));
    check_vector(dy, 2, 3);
    hob_grads_free(grads);
}
END_TEST

static hob_tensor *densify(int variant, hob_tensor *dense, hob_tensor *values,
                           hob_tensor *indices, hob_tensor *like)
{
    hob_value args[6] = {hob_value_enum(variant),  hob_value_tensor(dense),
                         hob_value_tensor(values), hob_value_tensor(indices),
                         hob_value_tensor(NULL),   hob_value_tensor(like)};

    return hob_scope_host(scope)->call1(scope, op("t.densify"), args, 6);
}

START_TEST(test_types_enum_routes_by_its_tensor)
{
    hob_tensor *x = vector(flex, 2, 3);
    hob_tensor *at =
        hob_from_i64(scope, flex, (int64_t[]){1, 1}, (int64_t[]){2}, 1);

    check_vector(densify(0, x, NULL, NULL, NULL), 2, 3);
    check_vector(densify(1, NULL, x, at, NULL), 0, 5);
    /* Without a tensor it defers to the next argument. */
    check_vector(densify(2, NULL, NULL, NULL, x), 0, 0);
}
END_TEST

START_TEST(test_types_enum_without_any_tensor)
{
    (void)densify(2, NULL, NULL, NULL, NULL);
    check_fails(HOB_ERR_ARGUMENT, "no tensor input to select a backend from");
}
END_TEST

START_TEST(test_types_enum_with_wrong_fields)
{
    hob_tensor *x = vector(flex, 2, 3);

    (void)densify(2, x, NULL, NULL, x);
    check_fails(HOB_ERR_ARGUMENT,
                "argument operand.Dense is given, but operand is Empty");
    (void)densify(1, NULL, x, NULL, NULL);
    check_fails(HOB_ERR_ARGUMENT,
                "argument operand.Sparse.indices is missing: operand is "
                "Sparse, so give a tensor");
    (void)densify(3, NULL, x, NULL, NULL);
    check_fails(HOB_ERR_ARGUMENT, "argument operand must be an enumerator");
}
END_TEST

/* Tensors of one kind share the dtype, also where the first is absent. */
START_TEST(test_types_dtypes_across_variants)
{
    hob_tensor *x = vector(flex, 2, 3);
    hob_tensor *at =
        hob_from_i64(scope, flex, (int64_t[]){1, 1}, (int64_t[]){2}, 1);

    (void)densify(1, NULL, x, at, hob_cast(scope, x, HOB_DTYPE_F64));
    check_fails(HOB_ERR_DTYPE, "argument operand.Sparse.values is f32[2]");
}
END_TEST

static void classify(hob_tensor *x, hob_status expected, hob_tensor **out,
                     hob_value *variant)
{
    hob_value arg = hob_value_tensor(x);
    uint32_t count;

    ck_assert_int_eq(hob_scope_host(scope)->callv(scope, op("t.classify"), &arg,
                                                  1, out, 4, &count, variant,
                                                  1),
                     expected);
}

START_TEST(test_types_enum_results)
{
    static const int64_t sizes[4] = {1, 2, 1, 1};
    hob_device *device = _i ? tracking : flex;
    hob_tensor *x = vector(device, 2, 3), *out[4];
    hob_value variant;

    if (_i)
        x = hob_require_grad(scope, x);
    classify(x, HOB_OK, out, &variant);
    ck_assert_int_eq(variant.u.i64, 0);
    ck_assert(out[0] && !out[1] && !out[2] && !out[3]);
    check_vector(out[0], -2, -3);
    classify(hob_reshape(scope, x, sizes, 2), HOB_OK, out, &variant);
    ck_assert_int_eq(variant.u.i64, 1);
    ck_assert(!out[0] && out[1] && out[2] && !out[3]);
    check_vector(out[1], 4, 9);
    classify(hob_sum(scope, x), HOB_OK, out, &variant);
    ck_assert_int_eq(variant.u.i64, 2);
    ck_assert(!out[0] && !out[1] && !out[2] && !out[3]);
    /* What inference must not say; and after a failure all is an error. */
    classify(hob_reshape(scope, x, sizes, 3), HOB_ERR_PLUGIN, out, &variant);
    check_fails(HOB_ERR_PLUGIN, "result Dense is there");
    ck_assert_int_eq(variant.u.i64, 0);
    for (int i = 0; i < 4; i++)
        ck_assert(hob_scope_host(scope)->tensor_is_error(out[i]));
    classify(hob_reshape(scope, x, sizes, 4), HOB_ERR_PLUGIN, out, &variant);
    check_fails(HOB_ERR_PLUGIN, "gave variant the enumerator 3, there are 3");
}
END_TEST

START_TEST(test_types_enum_results_have_gradients)
{
    hob_tensor *x = hob_require_grad(scope, vector(tracking, 2, 3)), *out[4];
    hob_grads *grads = NULL;
    hob_tensor *dx;
    hob_value variant;

    classify(hob_reshape(scope, x, (int64_t[]){1, 2}, 2), HOB_OK, out,
             &variant);
    ck_assert_hob_ok(hob_backward(scope, out[1], 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    check_vector(dx, 4, 6);
    hob_grads_free(grads);
}
END_TEST

static float measure(hob_tensor *x, int64_t n, int64_t *out_n)
{
    hob_tensor *all[2] = {x, x}, *out;
    hob_value args[9] = {hob_value_tensor(x),
                         hob_value_tensor(x),
                         hob_i64(n),
                         hob_value_enum(2),
                         hob_value_tensor(NULL),
                         hob_value_tensor(NULL),
                         hob_value_tensor(NULL),
                         hob_value_tensor(NULL),
                         hob_value_tensors(all, 2)};
    hob_value plain;
    uint32_t count;
    float sum = 0;

    ck_assert_int_eq(hob_scope_host(scope)->callv(scope, op("t.measure"), args,
                                                  9, &out, 1, &count, &plain,
                                                  1),
                     HOB_OK);
    *out_n = plain.u.i64;
    ck_assert_hob_ok(hob_read_f32(out, &sum, 1, &error));
    return sum;
}

START_TEST(test_types_plans_are_kept)
{
    int64_t n;

    ck_assert_float_eq(measure(vector(flex, 2, 3), 4, &n), 9);
    ck_assert_int_eq(n, 5);
    ck_assert_int_eq(atomic_load(&prepared_count), 1);
    /* The same again; another attribute, another shape. */
    ck_assert_float_eq(measure(vector(flex, 1, 1), 4, &n), 4);
    ck_assert_int_eq(atomic_load(&prepared_count), 1);
    ck_assert_float_eq(measure(vector(flex, 1, 1), 5, &n), 4);
    ck_assert_int_eq(atomic_load(&prepared_count), 2);
    for (int64_t i = 1; i <= 100; i++)
        ck_assert_float_eq(
            measure(hob_ones(scope, &i, 1, flex, HOB_DTYPE_F32), 0, &n),
            (float)i + 2);
    ck_assert_int_eq(atomic_load(&prepared_count), 102);
    /* No more than 64 are kept; the device's end releases the rest. */
    ck_assert_int_eq(atomic_load(&released_count), 102 - 64);
}
END_TEST

START_TEST(test_types_consumed_arguments)
{
    hob_tensor *x = vector(flex, 1, 2), *y = vector(flex, 3, 4), *out;
    hob_value args[2] = {hob_value_tensor(x), hob_value_tensor(y)};
    const struct hob_host *host = hob_scope_host(scope);
    const void *data;

    out = host->call1(scope, op("t.spend"), args, 2);
    check_vector(out, 4, 6);
    check_vector(x, 1, 2);
    check_vector(y, 3, 4);
    /* Said to be the last use, but somebody else has it. */
    host->tensor_ref(y);
    hob_move(scope, y);
    out = host->call1(scope, op("t.spend"), args, 2);
    check_vector(out, 4, 6);
    check_vector(y, 3, 4);
    host->tensor_unref(y);
    /* Moved: y is the kernel's, and the result takes x's memory. */
    data = hob_tensor_view(x)->data;
    hob_move(scope, x);
    hob_move(scope, y);
    out = host->call1(scope, op("t.spend"), args, 2);
    check_vector(out, 104, 106);
    ck_assert_ptr_eq(hob_tensor_view(out)->data, data);
}
END_TEST

/* 40 are more than any signature could name. */
START_TEST(test_types_lists_of_results)
{
    static float data[40];
    const int64_t size = 40;
    const struct hob_host *host = hob_scope_host(scope);
    hob_tensor *out[40], *x, *dx;
    hob_grads *grads = NULL;
    uint32_t count;
    float got[40];

    for (int i = 0; i < 40; i++)
        data[i] = (float)i;
    x = hob_require_grad(scope, hob_from_f32(scope, tracking, data, &size, 1));
    for (int64_t n = 0; n <= 40; n += 20) {
        hob_value args[2] = {hob_value_tensor(x), hob_i64(n)};

        ck_assert_int_eq(host->calln(scope, op("t.pieces"), args, 2, out,
                                     (uint32_t)n, &count),
                         HOB_OK);
        ck_assert_uint_eq(count, (uint32_t)n);
        for (uint32_t i = 0; i < count; i++) {
            ck_assert_hob_ok(hob_read_f32(out[i], got, 1, &error));
            ck_assert_float_eq(got[0], (float)i);
        }
    }
    ck_assert_hob_ok(hob_backward(scope, out[33], 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    ck_assert_hob_ok(hob_read_f32(dx, got, 40, &error));
    for (int i = 0; i < 40; i++)
        ck_assert_float_eq(got[i], i == 33 ? 1 : 0);
    hob_grads_free(grads);
    /* Too little room, and what the list's length check says. */
    ck_assert_int_ne(host->calln(scope, op("t.pieces"),
                                 (hob_value[]){hob_value_tensor(x), hob_i64(9)},
                                 2, out, 8, &count),
                     HOB_OK);
    check_fails(HOB_ERR_ARGUMENT,
                "it has 9 results, the caller has room for 8");
    ck_assert_int_ne(
        host->calln(scope, op("t.pieces"),
                    (hob_value[]){hob_value_tensor(x), hob_i64(41)}, 2, out, 40,
                    &count),
        HOB_OK);
    check_fails(HOB_ERR_RANGE, "n is not 0..40");
}
END_TEST

/* A body may return what it was given, moved or not, also out of a list. */
START_TEST(test_types_list_item_as_result)
{
    hob_tensor *x = vector(flex, 2, 3), *xs[2] = {x, vector(flex, 4, 5)};
    const struct hob_host *host = hob_scope_host(scope);
    hob_value arg = hob_value_tensors(xs, 2);

    check_vector(host->call1(scope, op("t.first"), &arg, 1), 2, 3);
    check_vector(x, 2, 3);
    hob_move(scope, x);
    check_vector(host->call1(scope, op("t.first"), &arg, 1), 2, 3);
}
END_TEST

/* A kernel that knows fewer parameters than there are now is not used where
 * one of the others says something. */
START_TEST(test_types_kernel_of_an_older_signature)
{
    const int64_t one = 1, three = 3;
    hob_tensor *x = vector(flex, 2, 3);
    const struct hob_host *host = hob_scope_host(scope);
    hob_value args[3] = {hob_value_tensor(x), hob_none(), hob_none()};

    check_vector(host->call1(scope, op("t.older"), args, 1), 4, 6);
    args[1] = hob_f64(2);
    args[2] = hob_value_i64s(&one, 1);
    check_vector(host->call1(scope, op("t.older"), args, 3), 4, 6);
    args[1] = hob_f64(5);
    check_vector(host->call1(scope, op("t.older"), args, 3), 1010, 1015);
    args[1] = hob_none();
    args[2] = hob_value_i64s(&three, 1);
    check_vector(host->call1(scope, op("t.older"), args, 3), 3004, 3006);
    check_vector(host->call1(scope, op("t.stuck"), args, 1), 4, 6);
    args[1] = hob_f64(5);
    (void)host->call1(scope, op("t.stuck"), args, 2);
    check_fails(HOB_ERR_UNSUPPORTED, "the kernel on flex does not know factor");
}
END_TEST

START_TEST(test_types_random_extension)
{
    hob_tensor *x = hob_ones(scope, NULL, 0, flex, HOB_DTYPE_F32);
    hob_value args[3] = {hob_value_tensor(x), hob_i64(5), hob_i64(17)};
    const struct hob_host *host = hob_scope_host(scope);
    float a, b;

    /* The core draws; each call gets other numbers, given ones stay. */
    ck_assert_hob_ok(hob_read_f32(host->call1(scope, op("t.noise"), args, 1),
                                  &a, 1, &error));
    ck_assert_hob_ok(hob_read_f32(host->call1(scope, op("t.noise"), args, 1),
                                  &b, 1, &error));
    ck_assert_float_ne(a, b);
    ck_assert_hob_ok(hob_read_f32(host->call1(scope, op("t.noise"), args, 3),
                                  &a, 1, &error));
    ck_assert_float_eq(a, 1017);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types");
    TCase *tcase = tcase_create("types");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not say where flex is");
        return 77;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_types_struct_with_gradients);
    tcase_add_test(tcase, test_types_struct_with_a_constant);
    tcase_add_test(tcase, test_types_enum_routes_by_its_tensor);
    tcase_add_test(tcase, test_types_enum_without_any_tensor);
    tcase_add_test(tcase, test_types_enum_with_wrong_fields);
    tcase_add_test(tcase, test_types_dtypes_across_variants);
    tcase_add_loop_test(tcase, test_types_enum_results, 0, 2);
    tcase_add_test(tcase, test_types_enum_results_have_gradients);
    tcase_add_test(tcase, test_types_plans_are_kept);
    tcase_add_test(tcase, test_types_consumed_arguments);
    tcase_add_test(tcase, test_types_lists_of_results);
    tcase_add_test(tcase, test_types_list_item_as_result);
    tcase_add_test(tcase, test_types_kernel_of_an_older_signature);
    tcase_add_test(tcase, test_types_random_extension);
    suite_add_tcase(suite, tcase);
    return hob_check_main(suite);
}
