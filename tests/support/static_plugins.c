/* SPDX-License-Identifier: Apache-2.0 */
#include "static_plugins.h"

#include <hob/ext/plugin.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Counters of the tests, not of a library: they may be file-scope. */
static atomic_int_fast64_t live_blocks;
static atomic_int_fast64_t kernel_calls;

int64_t test_live_blocks(void)
{
    return atomic_load(&live_blocks);
}

int64_t test_kernel_calls(void)
{
    return atomic_load(&kernel_calls);
}

/* ---- calc and other ---- */

static hob_status device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = 1;
    return HOB_OK;
}

static hob_status device_open(void *instance, uint32_t ordinal,
                              const char *options, void **out_device,
                              char **out_message)
{
    (void)instance;
    (void)ordinal;
    (void)options;
    (void)out_message;
    *out_device = malloc(1);
    return *out_device ? HOB_OK : HOB_ERR_MEMORY;
}

static void device_close(void *device)
{
    free(device);
}

enum { BLOCK_MOST = 1 << 30 };

static hob_status calc_alloc(void *device, uint64_t bytes, void **out_data)
{
    (void)device;
    if (bytes > BLOCK_MOST)
        return HOB_ERR_MEMORY; /* a small machine, for the tests */
    *out_data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!*out_data)
        return HOB_ERR_MEMORY;
    atomic_fetch_add(&live_blocks, 1);
    return HOB_OK;
}

/* flat says what it gives at most, calc does not. */
static void flat_stats(void *device, struct hob_memory_stats *out)
{
    (void)device;
    out->block_most = BLOCK_MOST;
}

static void calc_free(void *device, void *data, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(data);
    atomic_fetch_sub(&live_blocks, 1);
}

static hob_status copy_in(void *device, void *data, const void *host_data,
                          uint64_t bytes)
{
    (void)device;
    memcpy(data, host_data, bytes);
    return HOB_OK;
}

static hob_status copy_out(void *device, void *host_data, const void *data,
                           uint64_t bytes)
{
    (void)device;
    memcpy(host_data, data, bytes);
    return HOB_OK;
}

/* Offset in elements of row-major position AT of OUT in VIEW, broadcast. */
static int64_t offset_of(const struct hob_view *view,
                         const struct hob_view *out, int64_t at)
{
    int64_t offset = 0;

    for (int32_t d = out->rank - 1, v = view->rank - 1; d >= 0; d--, v--) {
        if (v >= 0 && view->shape[v] != 1)
            offset += at % out->shape[d] * view->strides[v];
        at /= out->shape[d];
    }
    return offset;
}

static hob_status add_execute(void *device, struct hob_call *call)
{
    const struct hob_view *a = hob_arg_view(call, 0);
    const struct hob_view *b = hob_arg_view(call, 1);
    struct hob_view *out = hob_ret_view(call, 0);

    (void)device;
    atomic_fetch_add(&kernel_calls, 1);
    for (int64_t i = 0; i < hob_view_count(out); i++)
        ((float *)out->data)[i] =
            ((const float *)a->data)[offset_of(a, out, i)] +
            ((const float *)b->data)[offset_of(b, out, i)];
    return HOB_OK;
}

static hob_status full_execute(void *device, struct hob_call *call)
{
    struct hob_view *out = hob_ret_view(call, 0);
    const hob_value *value = &call->args[1];
    float number =
        value->tag == HOB_TAG_F64 ? (float)value->u.f64 : (float)value->u.i64;

    (void)device;
    atomic_fetch_add(&kernel_calls, 1);
    for (int64_t i = 0; i < hob_view_count(out); i++)
        ((float *)out->data)[i] = number;
    return HOB_OK;
}

static hob_status contiguous_execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct hob_view *out = hob_ret_view(call, 0);
    size_t size = hob_dtype_size(x->dtype);

    (void)device;
    for (int64_t i = 0; i < hob_view_count(out); i++)
        memcpy((char *)out->data + (size_t)i * size,
               (const char *)x->data + offset_of(x, out, i) * (int64_t)size,
               size);
    return HOB_OK;
}

static const uint32_t f32_f32[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32),
                                   HOB_DTYPE_BIT(HOB_DTYPE_F32)};

static const struct hob_entry calc_entries[] = {
    {.op = "add",
     .signature = "(lhs: Num, rhs: Num) -> lhs",
     .dtypes = f32_f32,
     .dtype_count = 2,
     .flags = HOB_ENTRY_IN_PLACE,
     .execute = add_execute},
    {.op = "full",
     .signature = "(shape: shape, value: scalar, device: device, dtype: dtype "
                  "= f32) -> dtype",
     .execute = full_execute},
    {.op = "contiguous",
     .signature = "(x: Any) -> x",
     .execute = contiguous_execute}};

/* A contiguous that wants what it is there to make. */
static const struct hob_entry flat_entries[] = {
    {.op = "contiguous",
     .signature = "(x: Any) -> x",
     .flags = HOB_ENTRY_CONTIGUOUS,
     .execute = contiguous_execute}};

static const struct hob_backend calc_backend = {
    HOB_BACKEND_INIT_HEAD,
    .entry_count = sizeof(calc_entries) / sizeof(calc_entries[0]),
    .entries = calc_entries,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .alloc = calc_alloc,
    .free = calc_free,
    .upload = copy_in,
    .download = copy_out,
    .flags = HOB_BACKEND_HOST_MEMORY};

static const struct hob_backend flat_backend = {
    HOB_BACKEND_INIT_HEAD,
    .entry_count = sizeof(flat_entries) / sizeof(flat_entries[0]),
    .entries = flat_entries,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .memory_stats = flat_stats,
    .alloc = calc_alloc,
    .free = calc_free,
    .upload = copy_in,
    .download = copy_out};

static const struct hob_plugin calc = {HOB_PLUGIN_INIT_HEAD, .id = "calc",
                                       .version = "1.0.0",
                                       .backend = &calc_backend};
static const struct hob_plugin other = {HOB_PLUGIN_INIT_HEAD, .id = "other",
                                        .version = "1.0.0",
                                        .backend = &calc_backend};

static const struct hob_plugin flat = {HOB_PLUGIN_INIT_HEAD, .id = "flat",
                                       .version = "1.0.0",
                                       .backend = &flat_backend};

static const struct hob_plugin *flat_entry(const struct hob_host *host)
{
    (void)host;
    return &flat;
}

static const struct hob_plugin *calc_entry(const struct hob_host *host)
{
    (void)host;
    return &calc;
}

static const struct hob_plugin *other_entry(const struct hob_host *host)
{
    (void)host;
    return &other;
}

/* ---- idle, greedy and sloppy ---- */

static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    (void)instance;
    (void)below;
    (void)level;
    (void)options;
    (void)out_message;
    *out_layer = malloc(1);
    return *out_layer ? HOB_OK : HOB_ERR_MEMORY;
}

static int32_t idle_call(void *layer, struct hob_call *call,
                         const struct hob_op_impl *impl, hob_status *out_status)
{
    (void)layer;
    (void)call;
    (void)impl;
    (void)out_status;
    return HOB_LAYER_PASS;
}

static int32_t greedy_call(void *layer, struct hob_call *call,
                           const struct hob_op_impl *impl,
                           hob_status *out_status)
{
    (void)layer;
    (void)impl;
    if (call->op != HOB_OP_ADD)
        return HOB_LAYER_NO_RULE;
    *out_status = call->host->next(call);
    return HOB_LAYER_DONE;
}

static int32_t sloppy_call(void *layer, struct hob_call *call,
                           const struct hob_op_impl *impl,
                           hob_status *out_status)
{
    (void)layer;
    (void)impl;
    if (call->op == HOB_OP_ADD)
        return HOB_LAYER_DONE;
    call->host->fail(call, HOB_ERR_UNSUPPORTED, "one way did not work");
    *out_status = call->host->next(call);
    return HOB_LAYER_DONE;
}

static const struct hob_decorator idle_decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = device_close,
    .call = idle_call};
static const struct hob_decorator greedy_decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = device_close,
    .call = greedy_call};

static const struct hob_decorator sloppy_decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = device_close,
    .call = sloppy_call};

static const struct hob_plugin idle = {HOB_PLUGIN_INIT_HEAD, .id = "idle",
                                       .version = "1.0.0",
                                       .decorator = &idle_decorator};
static const struct hob_plugin greedy = {HOB_PLUGIN_INIT_HEAD, .id = "greedy",
                                         .version = "1.0.0",
                                         .decorator = &greedy_decorator};

static const struct hob_plugin sloppy = {HOB_PLUGIN_INIT_HEAD, .id = "sloppy",
                                         .version = "1.0.0",
                                         .decorator = &sloppy_decorator};

static const struct hob_plugin *sloppy_entry(const struct hob_host *host)
{
    (void)host;
    return &sloppy;
}

static const struct hob_plugin *idle_entry(const struct hob_host *host)
{
    (void)host;
    return &idle;
}

static const struct hob_plugin *greedy_entry(const struct hob_host *host)
{
    (void)host;
    return &greedy;
}

/* ---- ext ---- */

static hob_status infer_same(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    out->rank = x ? x->rank : 0;
    for (uint32_t i = 0; i < out->rank; i++)
        out->shape[i] = x->shape[i];
    return HOB_OK;
}

static hob_status double_body(hob_scope *scope, const struct hob_call *call,
                              hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    out[0] = hob_add(scope, x, x);
    return hob_scope_host(scope)->scope_status(scope);
}

/* Its result is elsewhere than its argument. */
static hob_status astray_body(hob_scope *scope, const struct hob_call *call,
                              hob_tensor **out)
{
    hob_device *device = NULL;
    hob_status status =
        hob_device_open(call->host->runtime, "other", &device, NULL);

    if (status)
        return status;
    out[0] = hob_ones(scope, call->metas[0].shape, call->metas[0].rank, device,
                      HOB_DTYPE_F32);
    hob_device_unref(device);
    return hob_scope_host(scope)->scope_status(scope);
}

/* Without an end, were it not for the core. */
/* Says that the argument is used for the last time, which is not its to say
 * unless the caller has moved it. */
static hob_status take_body(hob_scope *scope, const struct hob_call *call,
                            hob_tensor **out)
{
    hob_tensor *one = hob_ones(scope, NULL, 0, call->device, HOB_DTYPE_F32);

    out[0] = hob_add(scope, hob_move(scope, call->args[0].u.tensor), one);
    return hob_scope_host(scope)->scope_status(scope);
}

static hob_status endless_body(hob_scope *scope, const struct hob_call *call,
                               hob_tensor **out)
{
    out[0] = call->host->call1(scope, call->op, call->args, call->arg_count);
    return hob_scope_host(scope)->scope_status(scope);
}

static hob_status infer_rank(struct hob_call *call, struct hob_meta *out)
{
    (void)call;
    out->rank = 200;
    return HOB_OK;
}

static hob_status infer_dtype(struct hob_call *call, struct hob_meta *out)
{
    (void)call;
    out->dtype = 77;
    return HOB_OK;
}

static hob_status infer_silent(struct hob_call *call, struct hob_meta *out)
{
    (void)call;
    (void)out;
    return (hob_status)999;
}

static hob_status prepare_silent(void *device, const struct hob_call *call,
                                 struct hob_prepare *out)
{
    (void)device;
    (void)call;
    (void)out;
    return HOB_ERR_STATE;
}

static hob_status result_of_rank(void *device, struct hob_call *call)
{
    struct hob_meta meta = {.dtype = HOB_DTYPE_F32, .rank = 99};

    (void)device;
    return call->host->result(call, 0, &meta);
}

static const struct hob_entry silent_entry = {.op = "t.silent_prepare",
                                              .signature = "(x: Float) -> x",
                                              .prepare = prepare_silent,
                                              .execute = contiguous_execute};
static const struct hob_op_impl silent_impls[] = {
    {.selector = "calc", .entry = &silent_entry}};

static const struct hob_entry result_entry = {.op = "t.bad_result",
                                              .signature = "(x: Float) -> x",
                                              .flags = HOB_ENTRY_DYNAMIC,
                                              .execute = result_of_rank};
static const struct hob_op_impl result_impls[] = {
    {.selector = "calc", .entry = &result_entry}};

static const struct hob_entry negate_entry = {.op = "t.only_other",
                                              .signature = "(x: Float) -> x",
                                              .execute = contiguous_execute};
static const struct hob_op_impl only_other_impls[] = {
    {.selector = "other", .entry = &negate_entry},
    {.selector = "absent", .entry = &negate_entry}};

static const struct hob_extension_op ext_ops[] = {
    {.name = "t.only_other",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .impls = only_other_impls,
     .impl_count = 2},
    {.name = "t.double",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .body = double_body},
    {.name = "t.make",
     .signature = "(x: Float?, n: i64) -> f32",
     .infer = infer_same,
     .body = double_body},
    {.name = "t.astray",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .body = astray_body},
    {.name = "t.take",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .body = take_body},
    {.name = "t.endless",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .body = endless_body},
    {.name = "t.bad_rank",
     .signature = "(x: Float) -> x",
     .infer = infer_rank,
     .body = double_body},
    {.name = "t.bad_dtype",
     .signature = "(x: Float) -> x",
     .infer = infer_dtype,
     .body = double_body},
    {.name = "t.silent_infer",
     .signature = "(x: Float) -> x",
     .infer = infer_silent,
     .body = double_body},
    {.name = "t.silent_prepare",
     .signature = "(x: Float) -> x",
     .infer = infer_same,
     .impls = silent_impls,
     .impl_count = 1},
    {.name = "t.bad_result",
     .signature = "(x: Float) -> x",
     .impls = result_impls,
     .impl_count = 1}};

static const struct hob_extension ext_table = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ext_ops) / sizeof(ext_ops[0]),
    .ops = ext_ops};

static const struct hob_plugin ext = {HOB_PLUGIN_INIT_HEAD, .id = "ext",
                                      .version = "1.2.3",
                                      .extension = &ext_table};

static const struct hob_plugin *ext_entry(const struct hob_host *host)
{
    (void)host;
    return &ext;
}

/* ---- broken and hollow ---- */

static const struct hob_plugin broken = {.magic = 1,
                                         .struct_size =
                                             sizeof(struct hob_plugin),
                                         .id = "broken",
                                         .version = "1.0.0"};

static const struct hob_plugin *broken_entry(const struct hob_host *host)
{
    (void)host;
    return &broken;
}

static const struct hob_extension_op hollow_ops[] = {
    {.name = "hollow.op", .signature = "(x: Float) -> x", .infer = infer_same}};
static const struct hob_extension hollow_table = {
    HOB_EXTENSION_INIT_HEAD, .op_count = 1, .ops = hollow_ops};
static const struct hob_plugin hollow = {HOB_PLUGIN_INIT_HEAD, .id = "hollow",
                                         .version = "1.0.0",
                                         .extension = &hollow_table};

static const struct hob_plugin *hollow_entry(const struct hob_host *host)
{
    (void)host;
    return &hollow;
}

/* ---- manifests ---- */

#define HEAD(id, kind)                                                         \
    "{\"manifest_version\":1,\"id\":\"" id "\",\"version\":\"1.0.0\","         \
    "\"kind\":\"" kind "\","                                                   \
    "\"abi\":{\"major\":0,\"required_minor\":2,\"built_minor\":2},"

const struct hob_static_plugin test_static_plugins[] = {
    {HEAD("calc", "backend") "\"backend\":{\"selector\":\"calc\"}}",
     calc_entry},
    {HEAD("broken", "backend") "\"backend\":{\"selector\":\"broken\"}}",
     broken_entry},
    {HEAD("hollow", "extension") "\"namespace\":\"hollow\",\"ops\":["
                                 "{\"op\":\"op\",\"infer\":\"same\","
                                 "\"signature\":\"(x: Float) -> x\","
                                 "\"backends\":[\"calc\"]}]}",
     hollow_entry},
    {HEAD("other", "backend") "\"backend\":{\"selector\":\"other\"}}",
     other_entry},
    {HEAD("flat", "backend") "\"backend\":{\"selector\":\"flat\"}}",
     flat_entry},
    {HEAD("sloppy", "decorator") "\"decorator\":{\"selector\":\"sloppy\"},"
                                 "\"unlisted\":\"refuse\"}",
     sloppy_entry},
    {HEAD("idle", "decorator") "\"decorator\":{\"selector\":\"idle\","
                               "\"options\":{\"mode\":[\"a\",\"b\"]}},"
                               "\"unlisted\":\"pass\"}",
     idle_entry},
    {HEAD("greedy", "decorator") "\"decorator\":{\"selector\":\"greedy\"},"
                                 "\"unlisted\":\"refuse\"}",
     greedy_entry},
    {"{\"manifest_version\":1,\"id\":\"ext\",\"version\":\"1.2.3\","
     "\"kind\":\"extension\","
     "\"abi\":{\"major\":0,\"required_minor\":2,\"built_minor\":2},"
     "\"namespace\":\"t\",\"features\":{\"fast\":false},\"ops\":["
     "{\"op\":\"only_other\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"backends\":[\"other\",\"absent\","
     "{\"selector\":\"calc\",\"when\":\"feature:fast\"}]},"
     "{\"op\":\"double\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"body\":true,\"backends\":[\"calc\",\"greedy\"]},"
     "{\"op\":\"make\",\"signature\":\"(x: Float?, n: i64) -> f32\","
     "\"body\":true,\"backends\":[\"calc\",\"other\"]},"
     "{\"op\":\"astray\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"take\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"endless\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"bad_rank\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"function\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"bad_dtype\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"function\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"silent_infer\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"function\",\"body\":true,\"backends\":[\"calc\"]},"
     "{\"op\":\"silent_prepare\",\"signature\":\"(x: Float) -> x\","
     "\"infer\":\"same\",\"backends\":[\"calc\"],"
     "\"implementations\":{\"calc\":{\"kernel\":true,"
     "\"prepare\":true}}},"
     "{\"op\":\"bad_result\",\"signature\":\"(x: Float) -> x\","
     "\"dynamic\":true,\"backends\":[\"calc\"],"
     "\"implementations\":{\"calc\":{\"kernel\":true}}}]}",
     ext_entry}};
#undef HEAD

const uint32_t test_static_plugin_count =
    sizeof(test_static_plugins) / sizeof(test_static_plugins[0]);
