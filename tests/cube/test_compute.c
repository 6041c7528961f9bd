/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compute.c - launches of kernels in CUDA C through cube.compute, on a
 * runtime that notes what it is asked for: where the function's parameters
 * lie, the text that is compiled, what belongs to the other runtime.
 */
#include "hob_check.h"
#include "fake_host.h"

#include <cube/compute.h>
#include <cube/cube.h>

#undef fail /* a macro of check.h */

#include <hob/ext/cube.h>

#include <stdlib.h>
#include <string.h>

static struct {
    struct cube_device device;
    struct fake_host host;
    unsigned char params[64];
    uint16_t places[8];
    uint32_t place_count, param_bytes, groups;
    char text[512];
} noting;

static const char *note_identity(struct cube_device *device)
{
    (void)device;
    return "noting 1";
}

static hob_status note_compile(struct cube_device *device,
                               const struct cube_source *source,
                               void **out_binary, uint64_t *out_bytes,
                               char **out_message)
{
    (void)out_message;
    ck_assert_uint_lt(source->bytes, sizeof(noting.text));
    memcpy(noting.text, source->text, source->bytes);
    *out_bytes = 1;
    *out_binary = device->host->mem_alloc(device->host, 1);
    memset(*out_binary, 0, 1);
    return HOB_OK;
}

static hob_status note_open(struct cube_device *device,
                            const struct cube_source *source,
                            const void *binary, uint64_t bytes,
                            void **out_kernel, char **out_message)
{
    (void)device;
    (void)source;
    (void)binary;
    (void)bytes;
    (void)out_message;
    *out_kernel = &noting;
    return HOB_OK;
}

static void note_close(struct cube_device *device, void *kernel)
{
    (void)device;
    (void)kernel;
}

static hob_status note_launch(struct cube_device *device, void *kernel,
                              const struct cube_launch *launch,
                              char **out_message)
{
    (void)device;
    (void)kernel;
    (void)out_message;
    noting.groups = launch->groups;
    noting.place_count = launch->place_count;
    noting.param_bytes = launch->param_bytes;
    memcpy(noting.params, launch->params, launch->param_bytes);
    memcpy(noting.places, launch->places,
           launch->place_count * sizeof(noting.places[0]));
    return HOB_OK;
}

static const struct cube_runtime runtime = {
    .selector = "test",
    .language = CUBE_CUDA,
    .identity = note_identity,
    .compile = note_compile,
    .kernel_open = note_open,
    .kernel_close = note_close,
    .launch = note_launch,
};

static const struct hob_cube_compute *compute;

static void setup(void)
{
    memset(&noting, 0, sizeof(noting));
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* no cache: all is compiled */
    fake_host_init(&noting.host, 1);
    noting.device.runtime = &runtime;
    noting.device.host = &noting.host.table;
    noting.device.name = "test:0";
    noting.device.limits.subgroup_size = 32;
    noting.device.limits.group_size = 1024;
    noting.device.limits.groups = 5;
    noting.device.limits.param_bytes = 4096;
    noting.device.kernels = cube_kernels_new(&noting.device);
    compute = cube_compute_find(&noting.device, HOB_CUBE_COMPUTE_NAME,
                                HOB_CUBE_COMPUTE_VERSION);
    ck_assert_ptr_nonnull(compute);
    ck_assert_ptr_null(
        cube_compute_find(&noting.device, HOB_CUBE_COMPUTE_NAME, 2));
}

static void teardown(void)
{
    cube_kernels_free(noting.device.kernels);
    ck_assert_uint_eq(noting.host.live_blocks, 0);
}

static struct hob_cube_kernel kernel = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .language = HOB_CUBE_CUDA,
    .name = "own",
    .code = "extern \"C\" __global__ void own() {}\n",
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_I32, 0},
               {"alpha", HOB_CUBE_F64, 0},
               {"last", HOB_CUBE_I32, 0}},
    .constants = {"ROOM"},
};

static hob_status launch(struct fake_call *fake)
{
    static float memory[4];
    static struct hob_view y;
    const struct hob_view *const views[] = {&y, NULL};
    const hob_value numbers[] = {hob_i64(7), hob_i64(-2), hob_i64(-1)};
    const int32_t room = 9;
    const struct hob_cube_launch one = {HOB_CUBE_LAUNCH_INIT_HEAD,
                                        .group_size = 96,
                                        .kernel = &kernel,
                                        .groups = 1000,
                                        .views = views,
                                        .numbers = numbers,
                                        .constants = &room,
                                        .view_count = 2,
                                        .number_count = 3,
                                        .constant_count = 1};

    y = hob_cube_view(memory, HOB_DTYPE_F32, 4);
    fake_call_init(fake, &noting.host, "test.own");
    return compute->launch(&noting.device, &fake->call, &one);
}

START_TEST(test_compute_parameters_are_the_functions_own)
{
    static const uint16_t places[] = {0, 8, 16, 24, 32};
    struct fake_call fake;
    uint64_t address;
    int32_t number;
    double alpha;

    ck_assert_int_eq(launch(&fake), HOB_OK);
    ck_assert_uint_eq(noting.groups, 5); /* as many as there can be */
    ck_assert_uint_eq(noting.place_count, 5);
    ck_assert_uint_eq(noting.param_bytes, 36);
    ck_assert_mem_eq(noting.places, places, sizeof(places));
    memcpy(&address, noting.params, sizeof(address));
    ck_assert_uint_ne(address, 0);
    memcpy(&address, noting.params + 8, sizeof(address));
    ck_assert_uint_eq(address, 0); /* the buffer that is left out */
    memcpy(&number, noting.params + 16, sizeof(number));
    ck_assert_int_eq(number, 7);
    memcpy(&alpha, noting.params + 24, sizeof(alpha));
    ck_assert_double_eq(alpha, -2);
    memcpy(&number, noting.params + 32, sizeof(number));
    ck_assert_int_eq(number, -1);
    ck_assert_str_eq(noting.text, "#define GROUP_SIZE 96\n"
                                  "#define SUBGROUP_SIZE 32\n"
                                  "#define ROOM (9)\n"
                                  "#line 1\n"
                                  "extern \"C\" __global__ void own() {}\n");
    fake_call_release(&fake);
}
END_TEST

START_TEST(test_compute_glsl_is_of_the_other_runtime)
{
    struct fake_call fake;

    kernel.language = HOB_CUBE_GLSL;
    ck_assert_int_eq(launch(&fake), HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(
        strstr(noting.host.message,
               "test.own: kernel own is GLSL, which only cube-vulkan runs; the "
               "tensors are on test:0"));
    fake_call_release(&fake);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compute");
    TCase *tc = tcase_create("CUDA C");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_compute_parameters_are_the_functions_own);
    tcase_add_test(tc, test_compute_glsl_is_of_the_other_runtime);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
