/* SPDX-License-Identifier: Apache-2.0 */
#include "io_fixture.h"

#include <signal.h>
#include <sys/resource.h>

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

START_TEST(test_npy_round_trip_of_each_dtype)
{
    const int64_t shape[3] = {2, 1, 3};
    const char *path = tmp_path(&io.dir, "a.npy");

    for (int dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++) {
        uint32_t size = hob_dtype_size((uint32_t)dtype);
        unsigned char in[48];
        unsigned char out[48];
        hob_tensor *tensor;
        hob_tensor *back;

        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = (unsigned char)(dtype == HOB_DTYPE_BOOL ? i % 2 : i * 5);
        tensor = hob_from_data(io.scope, device_of(_i), (hob_dtype)dtype, in,
                               shape, 3);
        if (dtype == HOB_DTYPE_BF16) {
            ck_assert_hob_fails(hob_npy_save(path, tensor, &error),
                                HOB_ERR_UNSUPPORTED, "cast the tensor to f32");
            continue;
        }
        ck_assert_hob_ok(hob_npy_save(path, tensor, &error));
        ck_assert_hob_ok(
            hob_npy_load(io.scope, device_of(_i), path, &back, &error));
        ck_assert_int_eq(hob_tensor_dtype(back), dtype);
        ck_assert_int_eq(hob_tensor_rank(back), 3);
        ck_assert_mem_eq(hob_tensor_shape(back), shape, sizeof(shape));
        ck_assert_hob_ok(hob_read(back, out, 6 * size, &error));
        ck_assert_mem_eq(in, out, 6 * size);
    }
    ck_assert_int_eq(tmp_dir_count(&io.dir), 1);
}
END_TEST

START_TEST(test_npy_scalars_and_empties)
{
    const int64_t shape[2] = {0, 4};
    const double number = 2.5;
    const char *path = tmp_path(&io.dir, "a.npy");
    hob_tensor *tensor = hob_from_f64(io.scope, io.device, &number, NULL, 0);
    double got;

    ck_assert_hob_ok(hob_npy_save(path, tensor, &error));
    ck_assert_hob_ok(hob_npy_load(io.scope, io.device, path, &tensor, &error));
    ck_assert_int_eq(hob_tensor_rank(tensor), 0);
    ck_assert_hob_ok(hob_item(tensor, &got, &error));
    ck_assert_double_eq(got, 2.5);
    tensor = hob_from_f64(io.scope, io.device, NULL, shape, 2);
    ck_assert_hob_ok(hob_npy_save(path, tensor, &error));
    ck_assert_hob_ok(hob_npy_load(io.scope, io.device, path, &tensor, &error));
    ck_assert_int_eq(hob_tensor_count(tensor), 0);
    ck_assert_int_eq(hob_tensor_shape(tensor)[1], 4);
}
END_TEST

START_TEST(test_npy_saves_views_in_order)
{
    const float data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[2] = {2, 3};
    const int64_t axes[2] = {1, 0};
    const char *path = tmp_path(&io.dir, "a.npy");
    hob_tensor *tensor = hob_from_f32(io.scope, device_of(_i), data, shape, 2);
    float got[6];

    ck_assert_hob_ok(
        hob_npy_save(path, hob_permute(io.scope, tensor, axes, 2), &error));
    ck_assert_hob_ok(hob_npy_load(io.scope, io.device, path, &tensor, &error));
    ck_assert_int_eq(hob_tensor_shape(tensor)[0], 3);
    ck_assert_hob_ok(hob_read_f32(tensor, got, 6, &error));
    ck_assert_float_eq(got[1], 3.0f);
}
END_TEST

/* As numpy.save writes an array of the other byte order, column by column. */
START_TEST(test_npy_loads_fortran_big_endian)
{
    static const char header[] = "{'descr': '>i4', 'fortran_order': True, "
                                 "'shape': (2, 3), }";
    unsigned char file[10 + sizeof(header) - 1 + 24] = "\x93NUMPY\x01\x00";
    const char *path = tmp_path(&io.dir, "a.npy");
    hob_tensor *tensor;
    int64_t got[6];

    file[8] = sizeof(header) - 1;
    memcpy(file + 10, header, sizeof(header) - 1);
    for (int i = 0; i < 6; i++)
        file[10 + sizeof(header) - 1 + 4 * i + 3] = (unsigned char)i;
    ck_assert_int_eq(tmp_write(path, file, sizeof(file)), 0);
    ck_assert_hob_ok(
        hob_npy_load(io.scope, device_of(_i), path, &tensor, &error));
    ck_assert_hob_ok(hob_read_i64(tensor, got, 6, &error));
    /* (0,0) (0,1) (0,2) are the 0th, 2nd and 4th in the file. */
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(got[i], 2 * (i % 3) + i / 3);
}
END_TEST

START_TEST(test_npy_load_rejects)
{
    hob_tensor *tensor = (void *)1;
    const char *path = tmp_path(&io.dir, "none.npy");

    ck_assert_hob_fails(
        hob_npy_load(io.scope, io.device, path, &tensor, &error),
        HOB_ERR_NOT_FOUND, "none.npy: cannot open: No such file");
    ck_assert_ptr_null(tensor);
    ck_assert_int_eq(tmp_write(path, "", 0), 0);
    ck_assert_hob_fails(
        hob_npy_load(io.scope, io.device, path, &tensor, &error),
        HOB_ERR_FORMAT, "none.npy: not an NPY file");
    ck_assert_hob_fails(
        hob_npy_load(io.scope, io.device, io.dir.path, &tensor, &error),
        HOB_ERR_IO, "not a regular file");
    ck_assert_hob_ok(hob_scope_error(io.scope, &error));
}
END_TEST

/* Of an error tensor the first cause is told, and no file appears. */
START_TEST(test_npy_save_of_an_error_tensor)
{
    hob_tensor *tensor = hob_from_f32(io.scope, io.device, NULL, NULL, -1);

    ck_assert_hob_fails(
        hob_npy_save(tmp_path(&io.dir, "a.npy"), tensor, &error), HOB_ERR_SHAPE,
        "a.npy: from_data: rank -1");
    ck_assert_int_eq(tmp_dir_count(&io.dir), 0);
    hob_scope_clear_error(io.scope);
}
END_TEST

START_TEST(test_npy_save_without_room)
{
    struct rlimit before;
    struct rlimit limit;
    const int64_t shape[1] = {1000};
    static const float data[1000];
    hob_tensor *tensor = hob_from_f32(io.scope, io.device, data, shape, 1);
    hob_status st;

    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 500;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    st = hob_npy_save(tmp_path(&io.dir, "a.npy"), tensor, &error);
    /* check's own file for messages must be able to grow again. */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_hob_fails(st, HOB_ERR_IO, "a.npy: cannot write after 500 bytes");
    ck_assert_int_eq(tmp_dir_count(&io.dir), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tc = tcase_create("npy");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_npy_round_trip_of_each_dtype, 0, 2);
    tcase_add_test(tc, test_npy_scalars_and_empties);
    tcase_add_loop_test(tc, test_npy_saves_views_in_order, 0, 2);
    tcase_add_loop_test(tc, test_npy_loads_fortran_big_endian, 0, 2);
    tcase_add_test(tc, test_npy_load_rejects);
    tcase_add_test(tc, test_npy_save_of_an_error_tensor);
    tcase_add_test(tc, test_npy_save_without_room);
    return hob_check_main(suite);
}
