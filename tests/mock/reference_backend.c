/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_backend.h"

#include <stdlib.h>
#include <string.h>

const char *const reference_backend_manifest =
    "{\"manifest_version\": 1, \"id\": \"reference\", \"version\": \"0.1.0\","
    " \"kind\": \"backend\","
    " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
    " \"backend\": {\"selector\": \"reference\"}}";

static const uint32_t masks_num_num[] = {HOB_MASK_NUM, HOB_MASK_NUM};
static const uint32_t masks_float_float[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};
static const uint32_t masks_float[] = {HOB_MASK_FLOAT};
static const uint32_t masks_any[] = {HOB_MASK_ANY};
static const uint32_t masks_any_any[] = {HOB_MASK_ANY, HOB_MASK_ANY};
static const uint32_t masks_int_int[] = {HOB_MASK_INT, HOB_MASK_INT};
static const uint32_t masks_bool_any_any[] = {HOB_MASK_BOOL, HOB_MASK_ANY,
                                              HOB_MASK_ANY};
static const uint32_t masks_num[] = {HOB_MASK_NUM};
static const uint32_t masks_any_int[] = {HOB_MASK_ANY, HOB_MASK_INT};
static const uint32_t masks_num_int_num[] = {HOB_MASK_NUM, HOB_MASK_INT,
                                             HOB_MASK_NUM};
static const uint32_t masks_any_bool[] = {HOB_MASK_ANY, HOB_MASK_BOOL};

static const uint32_t masks_float_any_any[] = {HOB_MASK_FLOAT, HOB_MASK_ANY,
                                               HOB_MASK_ANY};
static const uint32_t masks_int_any_any[] = {HOB_MASK_INT, HOB_MASK_ANY,
                                             HOB_MASK_ANY};
static const uint32_t masks_quant[] = {HOB_DTYPE_BIT(HOB_DTYPE_QUANT)};

static const struct hob_entry entries[] = {
    {"add", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"sub", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"mul", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"div", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"remainder", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"pow", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"atan2", "(lhs: Float, rhs: Float) -> lhs", masks_float_float, 2, 0, NULL,
     reference_elementwise},
    {"sqrt", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"exp", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"log", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"erf", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"tanh", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"sin", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"cos", "(x: Float) -> x", masks_float, 1, 0, NULL, reference_elementwise},
    {"floor", "(x: Float) -> x", masks_float, 1, 0, NULL,
     reference_elementwise},
    {"cast", "(x: Any, dtype: dtype) -> dtype", masks_any, 1, 0, NULL,
     reference_copy},
    {"contiguous", "(x: Any) -> x", masks_any, 1, 0, NULL, reference_copy},
    {"equal", "(lhs: Any, rhs: Any) -> Bool", masks_any_any, 2, 0, NULL,
     reference_elementwise},
    {"greater", "(lhs: Num, rhs: Num) -> Bool", masks_num_num, 2, 0, NULL,
     reference_elementwise},
    {"bitwise_and", "(lhs: Int, rhs: Int) -> lhs", masks_int_int, 2, 0, NULL,
     reference_elementwise},
    {"bitwise_left_shift", "(lhs: Int, rhs: Int) -> lhs", masks_int_int, 2, 0,
     NULL, reference_elementwise},
    {"bitwise_right_shift", "(lhs: Int, rhs: Int) -> lhs", masks_int_int, 2, 0,
     NULL, reference_elementwise},
    {"where", "(condition: Bool, x: Any, y: Any) -> x", masks_bool_any_any, 3,
     0, NULL, reference_where},
    {"full",
     "(shape: shape, value: scalar, device: device, dtype: dtype = f32) -> "
     "dtype",
     NULL, 0, 0, NULL, reference_full},
    {"arange",
     "(start: i64, end: i64, step: i64 = 1, device: device, dtype: dtype = "
     "i32) -> dtype",
     NULL, 0, 0, NULL, reference_arange},
    {"random_uniform",
     "(shape: shape, low: f64 = 0, high: f64 = 1, device: device, dtype: dtype "
     "= f32, _seed: i64?, _offset: i64?) -> dtype",
     NULL, 0, 0, NULL, reference_random},
    {"random_normal",
     "(shape: shape, mean: f64 = 0, std: f64 = 1, device: device, dtype: dtype "
     "= f32, _seed: i64?, _offset: i64?) -> dtype",
     NULL, 0, 0, NULL, reference_random},
    {"random_bernoulli",
     "(shape: shape, probability: f64, device: device, dtype: dtype = bool, "
     "_seed: i64?, _offset: i64?) -> dtype",
     NULL, 0, 0, NULL, reference_random},
    {"sum_dim", "(x: Num, dim: i64) -> x", masks_num, 1, 0, NULL,
     reference_fold},
    {"prod_dim", "(x: Num, dim: i64) -> x", masks_num, 1, 0, NULL,
     reference_fold},
    {"argmax", "(x: Num, dim: i64, index_dtype: dtype = i32) -> index_dtype",
     masks_num, 1, 0, NULL, reference_argmax},
    {"cumsum", "(x: Num, dim: i64) -> x", masks_num, 1, 0, NULL,
     reference_fold},
    {"cumprod", "(x: Num, dim: i64) -> x", masks_num, 1, 0, NULL,
     reference_fold},
    {"matmul", "(lhs: Num, rhs: Num) -> lhs", masks_num_num, 2, 0, NULL,
     reference_matmul},
    {"slice_assign",
     "(x: Any, value: Any, starts: [i64], ends: [i64], steps: [i64]) -> x",
     masks_any_any, 2, 0, NULL, reference_slice_assign},
    {"gather", "(x: Any, indices: Int, dim: i64) -> x", masks_any_int, 2, 0,
     NULL, reference_gather},
    {"scatter_add", "(x: Num, indices: Int, value: Num, dim: i64) -> x",
     masks_num_int_num, 3, 0, NULL, reference_scatter_add},
    {"mask_select", "(x: Any, mask: Bool) -> x", masks_any_bool, 2,
     HOB_ENTRY_DYNAMIC, NULL, reference_mask_select},
    {"sort_with_indices",
     "(x: Num, dim: i64, descending: bool = false, index_dtype: dtype = i32) "
     "-> (x, index_dtype)",
     masks_num, 1, 0, NULL, reference_sort},
    {"quantize",
     "(x: Float, scales: Num, global_scale: Any?, value: enum(q8s, q8f, q4s, "
     "q4f, q2s, q2f, e4m3, e5m2, e2m1) = q8s, block: [i64] = [], propagation: "
     "enum(inhibit, propagate) = inhibit) -> Quantized",
     masks_float_any_any, 3, 0, NULL, reference_quantize},
    {"quantized_from",
     "(values: Int, scales: Num, global_scale: Any?, value: enum(q8s, q8f, "
     "q4s, q4f, q2s, q2f, e4m3, e5m2, e2m1) = q8s, block: [i64] = [], "
     "propagation: enum(inhibit, propagate) = inhibit) -> Quantized",
     masks_int_any_any, 3, 0, NULL, reference_quantize},
    {"dequantize", "(x: Quantized, dtype: dtype = f32) -> dtype", masks_quant,
     1, 0, NULL, reference_dequantize},
    {"quantized_values", "(x: Quantized) -> Int", masks_quant, 1, 0, NULL,
     reference_quantized_values},
    {"quantized_scales",
     "(x: Quantized) -> (scales: Float, global_scale: Float?)", masks_quant, 1,
     0, NULL, reference_quantized_scales},
};

static hob_status reference_open(const struct hob_host *host,
                                 const char *options, void **out_instance,
                                 char **out_message)
{
    (void)options;
    (void)out_message;
    /* The instance is the host table: only read, as all of it is. */
    memcpy(out_instance, &host, sizeof(host));
    return HOB_OK;
}

static void reference_close(void *instance)
{
    (void)instance;
}

static hob_status reference_device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = 1;
    return HOB_OK;
}

static hob_status reference_device_open(void *instance, uint32_t ordinal,
                                        const char *options, void **out_device,
                                        char **out_message)
{
    (void)ordinal;
    (void)options;
    (void)out_message;
    *out_device = instance;
    return HOB_OK;
}

static void reference_device_close(void *device)
{
    (void)device;
}

static hob_status reference_alloc(void *device, uint64_t bytes, void **out_data)
{
    /* aligned_alloc wants whole multiples. */
    uint64_t whole = (bytes + 63) / 64 * 64;

    (void)device;
    *out_data = aligned_alloc(64, whole ? whole : 64);
    return *out_data ? HOB_OK : HOB_ERR_MEMORY;
}

static void reference_free(void *device, void *data, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(data);
}

static hob_status reference_upload(void *device, void *data,
                                   const void *host_data, uint64_t bytes)
{
    (void)device;
    if (bytes)
        memcpy(data, host_data, bytes);
    return HOB_OK;
}

static hob_status reference_download(void *device, void *host_data,
                                     const void *data, uint64_t bytes)
{
    return reference_upload(device, host_data, data, bytes);
}

static const struct hob_backend backend = {
    HOB_BACKEND_INIT_HEAD,
    .entry_count = sizeof(entries) / sizeof(entries[0]),
    .entries = entries,
    .device_count = reference_device_count,
    .device_open = reference_device_open,
    .device_close = reference_device_close,
    .alloc = reference_alloc,
    .free = reference_free,
    .upload = reference_upload,
    .download = reference_download,
    .flags = HOB_BACKEND_HOST_MEMORY,
};

static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD,   .id = "reference",        .version = "0.1.0",
    .open = reference_open, .close = reference_close, .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry_reference(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
