/* SPDX-License-Identifier: Apache-2.0 */
#include "io_fixture.h"

#include "tensor.h"

static struct io_fixture io;
static hob_error error;

enum { BIG = 40000 }; /* floats: large enough to be used where mapped */

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

static hob_tensor *bytes_tensor(hob_device *device, hob_dtype dtype,
                                int64_t count)
{
    unsigned char data[64];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(dtype == HOB_DTYPE_BOOL ? i % 2 : i * 3);
    return hob_from_data(io.scope, device, dtype, data, &count, 1);
}

START_TEST(test_safetensors_round_trip_of_each_dtype)
{
    const char *path = tmp_path(&io.dir, "a.safetensors");
    static const char *const metadata[] = {"format", "pt", "a \"key\"\n",
                                           "\xc3\xa9"};
    struct hob_named_tensor tensors[HOB_DTYPE_BOOL];
    char names[HOB_DTYPE_BOOL][32];
    hob_safetensors *file;

    for (int i = 0; i < HOB_DTYPE_BOOL; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "layer/%d.\"w\"", i);
        tensors[i].name = names[i];
        tensors[i].tensor =
            bytes_tensor(device_of(_i), (hob_dtype)(i + 1), i == 4 ? 0 : 3);
    }
    ck_assert_hob_ok(hob_safetensors_save(path, tensors, HOB_DTYPE_BOOL,
                                          metadata, 2, &error));
    ck_assert_int_eq(tmp_dir_count(&io.dir), 1);
    ck_assert_hob_ok(hob_safetensors_open(path, &file, &error));
    ck_assert_uint_eq(hob_safetensors_count(file), HOB_DTYPE_BOOL);
    ck_assert_str_eq(hob_safetensors_metadata(file, "a \"key\"\n"), "\xc3\xa9");
    ck_assert_ptr_null(hob_safetensors_metadata(file, "none"));
    ck_assert_ptr_null(hob_safetensors_name(file, HOB_DTYPE_BOOL));
    for (uint32_t i = 0; i < HOB_DTYPE_BOOL; i++) {
        hob_tensor *tensor;
        uint64_t bytes = (i == 4 ? 0 : 3) * hob_dtype_size(i + 1);
        unsigned char a[24];
        unsigned char b[24];

        ck_assert_hob_ok(hob_safetensors_read(file, io.scope, device_of(_i),
                                              names[i], &tensor, &error));
        ck_assert_int_eq(hob_tensor_dtype(tensor), (int)i + 1);
        ck_assert_hob_ok(hob_read(tensor, a, bytes, &error));
        ck_assert_hob_ok(hob_read(tensors[i].tensor, b, bytes, &error));
        ck_assert_mem_eq(a, b, bytes);
    }
    /* Wide elements come first, so that all are aligned. */
    ck_assert_str_eq(hob_safetensors_name(file, 0), names[0]);
    ck_assert_str_eq(hob_safetensors_name(file, 1), names[4]);
    hob_safetensors_close(file);
    hob_safetensors_close(NULL);
}
END_TEST

/* The elements of a big tensor are the file's, and outlive its handle. */
START_TEST(test_safetensors_big_tensor_needs_no_file)
{
    const char *path = tmp_path(&io.dir, "a.safetensors");
    const int64_t shape[2] = {200, BIG / 200};
    float *data = malloc(BIG * sizeof(*data));
    float *got = malloc(BIG * sizeof(*got));
    struct hob_named_tensor named = {"w", NULL};
    hob_safetensors *file;
    hob_tensor *tensor;

    for (int i = 0; i < BIG; i++)
        data[i] = (float)i;
    named.tensor = hob_from_f32(io.scope, io.device, data, shape, 2);
    ck_assert_hob_ok(hob_safetensors_save(path, &named, 1, NULL, 0, &error));
    ck_assert_hob_ok(hob_safetensors_open(path, &file, &error));
    ck_assert_hob_ok(hob_safetensors_read(file, io.scope, device_of(_i), "w",
                                          &tensor, &error));
    ck_assert_int_eq((tensor->view.flags & HOB_VIEW_READ_ONLY) != 0, !_i);
    hob_safetensors_close(file);
    ck_assert_hob_ok(
        hob_safetensors_save(path, NULL, 0, NULL, 0, &error)); /* replaced */
    ck_assert_hob_ok(hob_read_f32(tensor, got, BIG, &error));
    ck_assert_mem_eq(data, got, BIG * sizeof(*data));
    free(data);
    free(got);
}
END_TEST

START_TEST(test_safetensors_saves_nothing)
{
    const char *path = tmp_path(&io.dir, "a.safetensors");
    hob_safetensors *file;
    struct stat info;

    ck_assert_hob_ok(hob_safetensors_save(path, NULL, 0, NULL, 0, &error));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size % 8, 0);
    ck_assert_hob_ok(hob_safetensors_open(path, &file, &error));
    ck_assert_uint_eq(hob_safetensors_count(file), 0);
    hob_safetensors_close(file);
}
END_TEST

START_TEST(test_safetensors_save_rejects)
{
    const char *path = tmp_path(&io.dir, "a.safetensors");
    static const char *const bad_metadata[] = {"a", NULL};
    struct hob_named_tensor tensors[2] = {
        {"a", bytes_tensor(io.device, HOB_DTYPE_F32, 2)},
        {"a", bytes_tensor(io.device, HOB_DTYPE_F32, 2)},
    };

    ck_assert_hob_fails(hob_safetensors_save(path, tensors, 2, NULL, 0, &error),
                        HOB_ERR_ARGUMENT, "tensor \"a\": two tensors");
    tensors[1].name = "__metadata__";
    ck_assert_hob_fails(hob_safetensors_save(path, tensors, 2, NULL, 0, &error),
                        HOB_ERR_ARGUMENT, "reserves");
    tensors[1].name = "\xff";
    ck_assert_hob_fails(hob_safetensors_save(path, tensors, 2, NULL, 0, &error),
                        HOB_ERR_ARGUMENT, "not UTF-8");
    ck_assert_hob_fails(
        hob_safetensors_save(path, tensors, 1, bad_metadata, 1, &error),
        HOB_ERR_ARGUMENT, "metadata pair 0");
    tensors[1].name = "b";
    tensors[1].tensor = hob_from_f32(io.scope, io.device, NULL, NULL, -1);
    ck_assert_hob_fails(hob_safetensors_save(path, tensors, 2, NULL, 0, &error),
                        HOB_ERR_SHAPE, "tensor \"b\": from_data: rank -1");
    hob_scope_clear_error(io.scope);
    ck_assert_int_eq(tmp_dir_count(&io.dir), 0);
    ck_assert_hob_fails(hob_safetensors_save(tmp_path(&io.dir, "no/a"), tensors,
                                             1, NULL, 0, &error),
                        HOB_ERR_IO, "no/a: cannot write: No such file");
}
END_TEST

static void write_file(const char *path, const char *text, size_t data_bytes)
{
    size_t length = strlen(text);
    unsigned char *file = calloc(1, 8 + length + data_bytes);

    file[0] = (unsigned char)length;
    file[1] = (unsigned char)(length >> 8);
    memcpy(file + 8, text, length);
    memset(file + 8 + length, 7, data_bytes);
    ck_assert_int_eq(tmp_write(path, file, 8 + length + data_bytes), 0);
    free(file);
}

START_TEST(test_safetensors_read_rejects)
{
    const char *path = tmp_path(&io.dir, "a.safetensors");
    hob_safetensors *file = (void *)1;
    hob_tensor *tensor = (void *)1;
    unsigned char bools[2];

    ck_assert_hob_fails(hob_safetensors_open(path, &file, &error),
                        HOB_ERR_NOT_FOUND, "a.safetensors: cannot open");
    ck_assert_ptr_null(file);
    write_file(path, "{\"a\":1}", 0);
    ck_assert_hob_fails(hob_safetensors_open(path, &file, &error),
                        HOB_ERR_FORMAT, "a.safetensors:1:");
    write_file(path,
               "{\"f8\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],"
               "\"data_offsets\":[0,2]},"
               "\"deep\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],"
               "\"data_offsets\":[2,3]},"
               "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2],"
               "\"data_offsets\":[3,5]}}",
               5);
    ck_assert_hob_ok(hob_safetensors_open(path, &file, &error));
    ck_assert_hob_fails(
        hob_safetensors_read(file, io.scope, io.device, "f8", &tensor, &error),
        HOB_ERR_UNSUPPORTED, "F8_E5M2");
    ck_assert_hob_fails(hob_safetensors_read(file, io.scope, io.device, "deep",
                                             &tensor, &error),
                        HOB_ERR_UNSUPPORTED, "9 dimensions");
    ck_assert_hob_fails(
        hob_safetensors_read(file, io.scope, io.device, "x", &tensor, &error),
        HOB_ERR_NOT_FOUND, "no tensor \"x\" among its 3");
    ck_assert_ptr_null(tensor);
    ck_assert_hob_ok(
        hob_safetensors_read(file, io.scope, io.device, "b", &tensor, &error));
    ck_assert_hob_ok(hob_read(tensor, bools, 2, &error));
    ck_assert_mem_eq(bools, "\1\1", 2);
    hob_safetensors_close(file);
    ck_assert_hob_ok(hob_scope_error(io.scope, &error));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *tc = tcase_create("safetensors");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_safetensors_round_trip_of_each_dtype, 0, 2);
    tcase_add_loop_test(tc, test_safetensors_big_tensor_needs_no_file, 0, 2);
    tcase_add_test(tc, test_safetensors_saves_nothing);
    tcase_add_test(tc, test_safetensors_save_rejects);
    tcase_add_test(tc, test_safetensors_read_rejects);
    return hob_check_main(suite);
}
