/* SPDX-License-Identifier: Apache-2.0 */
#include "io_fixture.h"

#include "dlpack_layout.h"
#include "tensor.h"

#include <pthread.h>

static struct io_fixture io;
static hob_error error;

static void setup(void)
{
    io_fixture_make(&io);
}

static void teardown(void)
{
    hob_error_release(&error);
    io_fixture_end(&io);
}

static hob_device *device_of(int i)
{
    return i ? io.apart : io.device;
}

static hob_tensor *six(hob_device *device)
{
    const float data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[2] = {2, 3};

    return hob_from_f32(io.scope, device, data, shape, 2);
}

START_TEST(test_dlpack_export_shares_host_memory)
{
    hob_tensor *tensor = six(io.device);
    const int64_t axes[2] = {1, 0};
    struct hob_dlpack_managed *managed;

    ck_assert_hob_ok(hob_dlpack_export(tensor, &managed, &error));
    ck_assert_uint_eq(managed->major, 1);
    ck_assert_ptr_eq(managed->tensor.data, tensor->view.data);
    ck_assert_int_eq(managed->tensor.device_type, HOB__DLPACK_CPU);
    ck_assert_int_eq(managed->tensor.ndim, 2);
    ck_assert_int_eq(managed->tensor.dtype_code, HOB__DLPACK_FLOAT);
    ck_assert_int_eq(managed->tensor.dtype_bits, 32);
    ck_assert_int_eq(managed->tensor.dtype_lanes, 1);
    ck_assert_int_eq(managed->tensor.shape[1], 3);
    ck_assert_int_eq(managed->tensor.strides[0], 3);
    ck_assert_uint_eq(managed->tensor.byte_offset, 0);
    ck_assert_uint_eq(managed->flags, HOB__DLPACK_READ_ONLY);
    managed->deleter(managed);

    tensor = hob_permute(io.scope, tensor, axes, 2);
    ck_assert_hob_ok(hob_dlpack_export(tensor, &managed, &error));
    ck_assert_int_eq(managed->tensor.strides[0], 1);
    ck_assert_int_eq(managed->tensor.strides[1], 3);
    managed->deleter(managed);
}
END_TEST

START_TEST(test_dlpack_export_copies_what_it_must)
{
    const int64_t axes[2] = {0, 1};
    hob_tensor *tensor = six(device_of(_i));
    struct hob_dlpack_managed *managed;

    tensor = hob_flip(io.scope, tensor, axes, 2);
    ck_assert_hob_ok(hob_dlpack_export(tensor, &managed, &error));
    ck_assert_uint_eq(managed->flags, HOB__DLPACK_COPIED);
    ck_assert_int_eq(managed->tensor.strides[0], 3);
    ck_assert_int_eq(managed->tensor.strides[1], 1);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(((float *)managed->tensor.data)[i], (float)(5 - i));
    managed->deleter(managed);
}
END_TEST

static void *delete_managed(void *argument)
{
    struct hob_dlpack_managed *managed = argument;

    managed->deleter(managed);
    return NULL;
}

/* The elements live on after every handle and the scope are gone, and the
 * runtime cannot be closed until another thread has given them back. */
START_TEST(test_dlpack_export_outlives_its_scope)
{
    hob_scope *scope = hob_scope_open(io.runtime);
    const float data[2] = {8, 9};
    const int64_t shape[1] = {2};
    struct hob_dlpack_managed *managed;
    pthread_t thread;

    ck_assert_hob_ok(hob_dlpack_export(
        hob_from_f32(scope, io.device, data, shape, 1), &managed, &error));
    hob_scope_close(scope);
    ck_assert_float_eq(((float *)managed->tensor.data)[1], 9.0f);
    ck_assert_int_eq(hob_runtime_close(io.runtime, &error), HOB_ERR_BUSY);
    hob_error_release(&error);
    ck_assert_int_eq(pthread_create(&thread, NULL, delete_managed, managed), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(test_dlpack_export_of_each_dtype)
{
    static const uint8_t codes[] = {0, 2, 2, 2, 4, 0, 0, 0, 0, 1, 1, 1, 1, 6};
    const uint64_t zero[2] = {0, 0};

    for (int dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++) {
        const int64_t shape[1] = {dtype == HOB_DTYPE_I8 ? 0 : 2};
        struct hob_dlpack_managed *managed;
        hob_tensor *back;
        hob_tensor *tensor = hob_from_data(io.scope, device_of(_i),
                                           (hob_dtype)dtype, zero, shape, 1);

        ck_assert_hob_ok(hob_dlpack_export(tensor, &managed, &error));
        ck_assert_int_eq(managed->tensor.dtype_code, codes[dtype]);
        ck_assert_int_eq(managed->tensor.dtype_bits,
                         8 * (int)hob_dtype_size((uint32_t)dtype));
        ck_assert_hob_ok(
            hob_dlpack_import(io.scope, device_of(_i), managed, &back, &error));
        ck_assert_int_eq(hob_tensor_dtype(back), dtype);
        ck_assert_int_eq(hob_tensor_count(back), shape[0]);
    }
}
END_TEST

/* With the built plugins, where the build names their folder. */
START_TEST(test_dlpack_export_refuses_tracked)
{
    const char *folder = getenv("HOB_TEST_PLUGIN_DIR");
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    struct hob_dlpack_managed *managed = (void *)1;
    const float data[2] = {1, 2};
    const int64_t shape[1] = {2};
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *scope;
    hob_tensor *leaf;

    if (!folder)
        return;
    options.policy = HOB_POLICY_REPORT;
    options.plugin_paths = &folder;
    options.plugin_path_count = 1;
    options.exclusive = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &device, &error));
    scope = hob_scope_open(runtime);
    leaf = hob_require_grad(scope, hob_from_f32(scope, device, data, shape, 1));
    ck_assert_hob_fails(hob_dlpack_export(leaf, &managed, &error),
                        HOB_ERR_STATE, "hob_detach()");
    ck_assert_ptr_null(managed);
    ck_assert_hob_ok(
        hob_dlpack_export(hob_detach(scope, leaf), &managed, &error));
    ck_assert_float_eq(((float *)managed->tensor.data)[1], 2.0f);
    managed->deleter(managed);
    hob_scope_close(scope);
    hob_device_unref(device);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}
END_TEST

/* ---- import ---- */

struct producer {
    struct hob_dlpack_managed managed;
    float data[12];
    int64_t shape[HOB_MAX_RANK + 1];
    int64_t strides[HOB_MAX_RANK];
    int deleted;
};

static void producer_delete(struct hob_dlpack_managed *managed)
{
    ((struct producer *)managed->context)->deleted++;
}

static void producer_init(struct producer *producer)
{
    memset(producer, 0, sizeof(*producer));
    for (int i = 0; i < 12; i++)
        producer->data[i] = (float)i;
    producer->shape[0] = 2;
    producer->shape[1] = 3;
    producer->managed.major = 1;
    producer->managed.context = producer;
    producer->managed.deleter = producer_delete;
    producer->managed.tensor.data = producer->data;
    producer->managed.tensor.device_type = HOB__DLPACK_CPU;
    producer->managed.tensor.ndim = 2;
    producer->managed.tensor.dtype_code = HOB__DLPACK_FLOAT;
    producer->managed.tensor.dtype_bits = 32;
    producer->managed.tensor.dtype_lanes = 1;
    producer->managed.tensor.shape = producer->shape;
}

START_TEST(test_dlpack_import_shares_or_copies)
{
    struct producer producer;
    hob_scope *scope = hob_scope_open(io.runtime);
    hob_tensor *tensor;
    float got[6];

    producer_init(&producer);
    producer.managed.flags = HOB__DLPACK_READ_ONLY;
    producer.managed.tensor.byte_offset = 4;
    ck_assert_hob_ok(hob_dlpack_import(scope, device_of(_i), &producer.managed,
                                       &tensor, &error));
    ck_assert_int_eq(producer.deleted, _i);
    ck_assert_hob_ok(hob_read_f32(tensor, got, 6, &error));
    ck_assert_float_eq(got[0], 1.0f);
    ck_assert_float_eq(got[5], 6.0f);
    if (!_i) {
        ck_assert_ptr_eq(tensor->view.data, producer.data + 1);
        ck_assert(tensor->view.flags & HOB_VIEW_READ_ONLY);
        ck_assert(tensor->view.flags & HOB_VIEW_CONTIGUOUS);
    }
    hob_scope_close(scope);
    ck_assert_int_eq(producer.deleted, 1);
}
END_TEST

START_TEST(test_dlpack_import_keeps_strides)
{
    struct producer producer;
    hob_scope *scope = hob_scope_open(io.runtime);
    hob_tensor *tensor;
    float got[6];

    producer_init(&producer);
    producer.strides[0] = -6;
    producer.strides[1] = 2;
    producer.managed.tensor.strides = producer.strides;
    producer.managed.tensor.data = producer.data + 6;
    ck_assert_hob_ok(hob_dlpack_import(scope, device_of(_i), &producer.managed,
                                       &tensor, &error));
    ck_assert_hob_ok(hob_read_f32(tensor, got, 6, &error));
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(got[i], (float)(6 - 6 * (i / 3) + 2 * (i % 3)));
    if (!_i)
        ck_assert(!(tensor->view.flags & HOB_VIEW_READ_ONLY));
    hob_scope_close(scope);
    ck_assert_int_eq(producer.deleted, 1);
}
END_TEST

/* An address that is no multiple of the element's size is copied. */
START_TEST(test_dlpack_import_copies_misaligned)
{
    struct producer producer;
    hob_tensor *tensor;
    float got[6];

    producer_init(&producer);
    memmove((char *)producer.data + 1, producer.data, 24);
    producer.managed.tensor.byte_offset = 1;
    ck_assert_hob_ok(hob_dlpack_import(io.scope, io.device, &producer.managed,
                                       &tensor, &error));
    ck_assert_int_eq(producer.deleted, 1);
    ck_assert_hob_ok(hob_read_f32(tensor, got, 6, &error));
    ck_assert_float_eq(got[5], 5.0f);
}
END_TEST

START_TEST(test_dlpack_import_cleans_bools)
{
    struct producer producer;
    hob_tensor *tensor;
    unsigned char got[6];

    producer_init(&producer);
    memset(producer.data, 3, sizeof(producer.data));
    producer.managed.tensor.dtype_code = HOB__DLPACK_BOOL;
    producer.managed.tensor.dtype_bits = 8;
    ck_assert_hob_ok(hob_dlpack_import(io.scope, io.device, &producer.managed,
                                       &tensor, &error));
    ck_assert_int_eq(producer.deleted, 1);
    ck_assert_hob_ok(hob_read(tensor, got, 6, &error));
    ck_assert_mem_eq(got, "\1\1\1\1\1\1", 6);
}
END_TEST

START_TEST(test_dlpack_import_of_empties_and_scalars)
{
    struct producer producer; /* the scope ends before it does */
    hob_scope *scope = hob_scope_open(io.runtime);
    hob_tensor *tensor;
    double got;

    producer_init(&producer);
    producer.shape[0] = 0;
    producer.managed.tensor.data = NULL;
    ck_assert_hob_ok(hob_dlpack_import(scope, io.device, &producer.managed,
                                       &tensor, &error));
    ck_assert_int_eq(hob_tensor_count(tensor), 0);
    ck_assert_int_eq(producer.deleted, 1);

    producer_init(&producer);
    producer.managed.tensor.ndim = 0;
    producer.managed.tensor.shape = NULL;
    producer.managed.deleter = NULL;
    producer.data[0] = 7;
    ck_assert_hob_ok(hob_dlpack_import(scope, io.device, &producer.managed,
                                       &tensor, &error));
    ck_assert_hob_ok(hob_item(tensor, &got, &error));
    ck_assert_double_eq(got, 7);
    hob_scope_close(scope);
}
END_TEST

/* Each breaks one thing of a good tensor. */
static const struct bad {
    int what;
    hob_status status;
    const char *message;
} bads[] = {
    {0, HOB_ERR_UNSUPPORTED, "version 2.0"},
    {1, HOB_ERR_DEVICE, "device type 2"},
    {2, HOB_ERR_UNSUPPORTED, "code 2, 8 bits"},
    {3, HOB_ERR_UNSUPPORTED, "4 lanes"},
    {4, HOB_ERR_SHAPE, "9 dimensions"},
    {5, HOB_ERR_SHAPE, "-1 dimensions"},
    {6, HOB_ERR_SHAPE, "size -2 of dimension 1"},
    {7, HOB_ERR_SHAPE, "of dimension 1"},
    {8, HOB_ERR_ARGUMENT, "no data"},
    {9, HOB_ERR_SHAPE, "leads out of memory"},
    {10, HOB_ERR_SHAPE, "leads out of memory"},
    {11, HOB_ERR_SHAPE, "without a shape"},
};

static void spoil(struct producer *producer, int what)
{
    struct hob__dlpack_tensor *tensor = &producer->managed.tensor;

    producer->strides[0] = 3;
    producer->strides[1] = what == 9 ? INT64_MAX / 2 : INT64_MIN;
    switch (what) {
    case 0:
        producer->managed.major = 2;
        break;
    case 1:
        tensor->device_type = 2;
        break;
    case 2:
        tensor->dtype_bits = 8;
        break;
    case 3:
        tensor->dtype_lanes = 4;
        break;
    case 4:
        tensor->ndim = 9;
        break;
    case 5:
        tensor->ndim = -1;
        break;
    case 6:
        producer->shape[1] = -2;
        break;
    case 7:
        producer->shape[1] = INT64_MAX;
        break;
    case 8:
        tensor->data = NULL;
        break;
    case 11:
        tensor->shape = NULL;
        break;
    default:
        tensor->strides = producer->strides;
        break;
    }
}

START_TEST(test_dlpack_import_rejects)
{
    struct producer producer;
    hob_tensor *tensor = (void *)1;

    producer_init(&producer);
    spoil(&producer, bads[_i].what);
    ck_assert_hob_fails(hob_dlpack_import(io.scope, io.device,
                                          &producer.managed, &tensor, &error),
                        bads[_i].status, bads[_i].message);
    ck_assert_ptr_null(tensor);
    ck_assert_int_eq(producer.deleted, 0); /* still the caller's */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dlpack");
    TCase *tc = tcase_create("dlpack");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_dlpack_export_shares_host_memory);
    tcase_add_loop_test(tc, test_dlpack_export_copies_what_it_must, 0, 2);
    tcase_add_test(tc, test_dlpack_export_outlives_its_scope);
    tcase_add_loop_test(tc, test_dlpack_export_of_each_dtype, 0, 2);
    tcase_add_test(tc, test_dlpack_export_refuses_tracked);
    tcase_add_loop_test(tc, test_dlpack_import_shares_or_copies, 0, 2);
    tcase_add_loop_test(tc, test_dlpack_import_keeps_strides, 0, 2);
    tcase_add_test(tc, test_dlpack_import_copies_misaligned);
    tcase_add_test(tc, test_dlpack_import_cleans_bools);
    tcase_add_test(tc, test_dlpack_import_of_empties_and_scalars);
    tcase_add_loop_test(tc, test_dlpack_import_rejects, 0,
                        sizeof(bads) / sizeof(bads[0]));
    return hob_check_main(suite);
}
