/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention by the kernels for compute capability 9.0 on a driver of the test's
 * own: which calls they take, what the driver and the kernels are told, and,
 * with a real NVRTC (HOB_TEST_NVRTC names it), that the kernels compile. Their
 * results are compared on real devices by test_attention_halves.
 */
#include "cuda_fixture.h"
#include "hob_check.h"
#include "real_nvrtc.h"

#include <cube-cuda/attention.h>
#include <cube-cuda/attention_job.h>
#include <cube/cube.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

enum { Q, K, V, MASK, BIAS, GRAD, VIEWS };

/* A call; what is not set is absent. */
struct trial {
    struct hob_view views[VIEWS];
    struct hob_view rows; /* lse and delta */
    hob_value scale, softcap;
    int is_causal, wants_bias;
};

/* Addresses only: no kernel runs here. */
static _Alignas(64) char elements[64];

/* A row-major view of [b, h, rows, columns]. */
static struct hob_view view_of(uint32_t dtype, int64_t b, int64_t h,
                               int64_t rows, int64_t columns)
{
    struct hob_view view = {
        .data = elements,
        .dtype = (uint8_t)dtype,
        .rank = 4,
        .shape = {b, h, rows, columns},
        .strides = {h * rows * columns, rows * columns, columns, 1}};

    fake_view_flags(&view);
    return view;
}

/* Two batches of three heads, 130 queries, 300 keys. */
static struct trial trial_of(uint32_t dtype, int64_t width)
{
    struct trial trial;

    memset(&trial, 0, sizeof(trial));
    trial.views[Q] = view_of(dtype, 2, 3, 130, width);
    trial.views[K] = view_of(dtype, 2, 3, 300, width);
    trial.views[V] = trial.views[K];
    trial.views[GRAD] = trial.views[Q];
    trial.rows = view_of(HOB_DTYPE_F32, 2, 3, 130, 1);
    trial.scale = trial.softcap = hob_none();
    return trial;
}

static void add_view(struct fake_call *fake, const struct hob_view *view)
{
    if (view->data)
        fake_call_view(fake, view);
    else
        fake_call_value(fake, hob_none());
}

static void call_init(struct fake_call *fake, const struct trial *trial,
                      int is_backward)
{
    const struct hob_view *q = &trial->views[Q];

    fake_call_init(fake, &cuda_host,
                   is_backward ? "attention_backward" : "attention");
    for (int i = Q; i <= BIAS; i++)
        add_view(fake, &trial->views[i]);
    if (is_backward) {
        fake_call_view(fake, &trial->rows);
        fake_call_view(fake, &trial->rows);
        fake_call_view(fake, &trial->views[GRAD]);
    }
    fake_call_value(fake, trial->scale);
    fake_call_value(fake, trial->softcap);
    fake_call_value(fake, hob_bool(trial->is_causal));
    if (is_backward)
        fake_call_value(fake, hob_bool(trial->wants_bias));
    for (int i = 0; i < (is_backward ? 3 : 1); i++)
        fake_call_result(fake, q->dtype, 4, trial->views[i].shape);
    if (!is_backward)
        fake_call_result(fake, HOB_DTYPE_F32, 4,
                         (int64_t[]){q->shape[0], q->shape[1], q->shape[2], 1});
}

static hob_status run(const struct trial *trial, int is_backward,
                      struct ccu_device *device)
{
    struct hob_entry entry = {.op = is_backward ? "attention_backward"
                                                : "attention"};
    struct fake_call fake;
    hob_status status;

    ccu_attention_install(&entry, 1);
    call_init(&fake, trial, is_backward);
    status = fake_call_run(&fake, &entry, device);
    fake_call_release(&fake);
    return status;
}

/* ---- what the kernels are told ---- */

static struct launched {
    struct fake_map maps[ATTENTION_MAPS];
    struct attention_params params;
    unsigned int groups, group_size;
} launches[5];

enum { LAUNCHES = sizeof(launches) / sizeof(launches[0]) };

static int launch_count, map_counts[LAUNCHES];

static void keep(void **parameters)
{
    const int map_count = map_counts[launch_count];
    struct launched *to = &launches[launch_count++];

    for (int i = 0; i < map_count; i++)
        memcpy(&to->maps[i], parameters[i], sizeof(to->maps[i]));
    memcpy(&to->params, parameters[map_count], sizeof(to->params));
    to->groups = fake_cuda.groups;
    to->group_size = fake_cuda.group_size;
}

/* A device whose launches are kept, each with MAPS maps. */
static struct ccu_device *open_kept(int maps)
{
    memset(launches, 0, sizeof(launches));
    launch_count = 0;
    for (int i = 0; i < LAUNCHES; i++)
        map_counts[i] = maps;
    fake_cuda.launching = keep;
    /* Nothing comes from a disk. */
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", "", 1), 0);
    ck_assert_int_eq(unsetenv("HOME"), 0);
    return cuda_open_device(0, NULL);
}

static void check_map(const struct fake_map *map, const uint32_t *sizes,
                      const uint64_t *strides, uint32_t rows)
{
    ck_assert_mem_eq(map->sizes, sizes, sizeof(map->sizes));
    ck_assert_mem_eq(map->strides, strides, sizeof(map->strides));
    ck_assert_uint_eq(map->box[0], 64);
    ck_assert_uint_eq(map->box[1], rows);
}

START_TEST(test_attention_tells_layouts)
{
    struct ccu_device *device = open_kept(3);
    struct trial trial = trial_of(HOB_DTYPE_BF16, 128);
    struct hob_view *view = &trial.views[K];
    const struct attention_params *params = &launches[0].params;

    /* Keys with heads between rows, values the same for all heads. */
    view->strides[1] = 128;
    view->strides[2] = 3 * 128;
    fake_view_flags(view);
    view = &trial.views[V];
    view->strides[0] = 300 * 128;
    view->strides[1] = 0;
    fake_view_flags(view);
    trial.scale = hob_f64(0.25);
    ck_assert_int_eq(run(&trial, 0, device), HOB_OK);
    ck_assert_int_eq(launch_count, 1);
    check_map(&launches[0].maps[0], (uint32_t[]){128, 130, 3, 2, 1},
              (uint64_t[]){2, 256, 130 * 256, 3 * 130 * 256, 256}, 128);
    check_map(&launches[0].maps[1], (uint32_t[]){128, 300, 3, 2, 1},
              (uint64_t[]){2, 3 * 256, 256, 3 * 300 * 256, 3 * 256}, 128);
    check_map(&launches[0].maps[2], (uint32_t[]){128, 300, 1, 2, 1},
              (uint64_t[]){2, 256, 256, 300 * 256, 256}, 128);
    ck_assert_int_eq(launches[0].maps[0].type, 9); /* bf16 */
    ck_assert_int_eq(params->queries, 130);
    ck_assert_int_eq(params->keys, 300);
    ck_assert_int_eq(params->offset, 170);
    ck_assert_int_eq(params->blocks, 2);
    ck_assert_int_eq(params->tasks, 12);
    ck_assert_mem_eq(params->lead, ((int[]){1, 2, 3}), sizeof(params->lead));
    /* Axes 1 and 2 of query and key, 1 of value. */
    ck_assert_int_eq(params->moves, 6 | 6 << 3 | 2 << 6);
    ck_assert_float_eq(params->scale, 0.25f);
    /* Two warpgroups and one for copies, on each of the processors. */
    ck_assert_uint_eq(launches[0].group_size, 384);
    ck_assert_uint_eq(launches[0].groups, FAKE_CUDA_PROCESSORS);
    ck_assert(fake_cuda.is_tied);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_attention_merges_the_batch)
{
    struct ccu_device *device = open_kept(3);
    struct trial trial = trial_of(HOB_DTYPE_F16, 64);
    const struct attention_params *params = &launches[0].params;

    trial.is_causal = 1;
    ck_assert_int_eq(run(&trial, 0, device), HOB_OK);
    check_map(&launches[0].maps[0], (uint32_t[]){64, 130, 6, 1, 1},
              (uint64_t[]){2, 128, 130 * 128, 128, 128}, 192);
    ck_assert_int_eq(launches[0].maps[0].type, 6); /* f16 */
    ck_assert_mem_eq(params->lead, ((int[]){1, 1, 6}), sizeof(params->lead));
    ck_assert_float_eq(params->scale, 0.125f);
    /* Three warpgroups and one; a group for each block. */
    ck_assert_uint_eq(launches[0].group_size, 512);
    ck_assert_uint_eq(launches[0].groups, 6);
    ccu_device_close(device);
}
END_TEST

/* As many blocks of 128 rows as of 192: the smaller ones end earlier. */
START_TEST(test_attention_cuts_by_what_fills_the_device)
{
    struct ccu_device *device = open_kept(3);
    struct trial trial = trial_of(HOB_DTYPE_BF16, 64);

    trial.views[Q] = view_of(HOB_DTYPE_BF16, 2, 2, 128, 64);
    trial.views[K] = trial.views[V] = view_of(HOB_DTYPE_BF16, 2, 2, 300, 64);
    ck_assert_int_eq(run(&trial, 0, device), HOB_OK);
    ck_assert_uint_eq(launches[0].maps[0].box[1], 128);
    ck_assert_uint_eq(launches[0].group_size, 384);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_attention_tells_the_mask)
{
    struct ccu_device *device = open_kept(3);
    struct trial trial = trial_of(HOB_DTYPE_F16, 64);
    struct hob_view *mask = &trial.views[MASK];
    const struct attention_params *params = &launches[0].params;

    *mask = view_of(HOB_DTYPE_BOOL, 2, 1, 1, 300);
    ck_assert_int_eq(run(&trial, 0, device), HOB_OK);
    ck_assert_ptr_eq(params->mask, elements);
    ck_assert_int_eq((int)params->mask_row, 0);
    ck_assert_int_eq((int)params->mask_column, 1);
    ck_assert_int_eq((int)params->mask_lead[1], 300);
    ck_assert_int_eq((int)params->mask_lead[2], 0);
    ccu_device_close(device);
}
END_TEST

/* A device for gradients, which are a launch for what is known of queries, then
 * by turns one for keys, with all maps, and one for queries. */
static struct ccu_device *open_backward(void)
{
    struct ccu_device *device = open_kept(0);

    for (int i = 1; i < LAUNCHES; i++)
        map_counts[i] = i % 2 ? ATTENTION_MAPS : 1;
    return device;
}

START_TEST(test_attention_backward_launches)
{
    struct ccu_device *device = open_backward();
    struct trial trial = trial_of(HOB_DTYPE_BF16, 64);
    const struct launched *keys = &launches[1], *queries = &launches[2];

    ck_assert_int_eq(run(&trial, 1, device), HOB_OK);
    ck_assert_int_eq(launch_count, 3);
    ck_assert_int_eq(launches[0].params.tasks, 6 * 3);
    for (int k = 0; k < ATTENTION_MAPS; k++) {
        const int is_key = k == ATTENTION_KEY || k == ATTENTION_VALUE;

        ck_assert_uint_eq(keys->maps[k].sizes[1], is_key ? 300 : 130);
        ck_assert_uint_eq(keys->maps[k].box[1], is_key ? 128 : 64);
    }
    ck_assert_int_eq(keys->params.tasks, 6 * 3);
    ck_assert_ptr_eq(launches[0].params.lse, elements);
    ck_assert_ptr_nonnull(keys->params.results[2]);
    ck_assert_uint_eq(queries->maps[0].sizes[1], 300);
    ck_assert_uint_eq(queries->maps[0].box[1], 64);
    ck_assert_int_eq(queries->params.tasks, 6);
    for (int i = 1; i < 3; i++) {
        ck_assert_int_eq(launches[i].params.key, 0);
        ck_assert_int_eq(launches[i].params.key_end, 300);
    }
    ccu_device_close(device);
}
END_TEST

/* Slopes of 40000 queries and 20000 keys are 1.6 GB: a part of the keys comes
 * after the other. */
START_TEST(test_attention_backward_bounds_its_memory)
{
    struct ccu_device *device = open_backward();
    struct trial trial = trial_of(HOB_DTYPE_BF16, 64);
    const int middle = (1 << 30) / (40000 * 128 * 2) * 128;

    trial.views[Q] = trial.views[GRAD] =
        view_of(HOB_DTYPE_BF16, 1, 1, 40000, 64);
    trial.views[K] = trial.views[V] = view_of(HOB_DTYPE_BF16, 1, 1, 20000, 64);
    trial.rows = view_of(HOB_DTYPE_F32, 1, 1, 40000, 1);
    ck_assert_int_eq(run(&trial, 1, device), HOB_OK);
    ck_assert_int_eq(launch_count, 5);
    for (int i = 1; i < 5; i++) {
        const struct attention_params *params = &launches[i].params;

        ck_assert_int_eq(params->key, i < 3 ? 0 : middle);
        ck_assert_int_eq(params->key_end, i < 3 ? middle : 20000);
        ck_assert_ptr_nonnull(params->sums);
    }
    ck_assert_int_eq(launches[1].params.blocks, middle / 128);
    ck_assert_int_eq(launches[3].params.blocks, (20000 - middle + 127) / 128);
    ccu_device_close(device);
}
END_TEST

/* ---- what they take ---- */

static void set_f32(struct trial *trial)
{
    *trial = trial_of(HOB_DTYPE_F32, 64);
}

static void set_narrow(struct trial *trial)
{
    *trial = trial_of(HOB_DTYPE_F16, 32);
}

static void set_values_apart(struct trial *trial)
{
    trial->views[V] = view_of(HOB_DTYPE_F16, 2, 3, 300, 128);
}

static void set_mixed(struct trial *trial)
{
    trial->views[V].dtype = HOB_DTYPE_BF16;
}

static void set_bias(struct trial *trial)
{
    trial->views[BIAS] = view_of(HOB_DTYPE_F16, 1, 1, 130, 300);
}

static void set_softcap(struct trial *trial)
{
    trial->softcap = hob_f64(30);
}

static void set_negative_scale(struct trial *trial)
{
    trial->scale = hob_f64(-1);
}

static void set_nan_scale(struct trial *trial)
{
    trial->scale = hob_f64((double)NAN);
}

static void set_odd_address(struct trial *trial)
{
    trial->views[Q].data = elements + 2;
}

static void set_odd_rows(struct trial *trial)
{
    trial->views[K].strides[2] = 65;
}

static void set_turned(struct trial *trial)
{
    trial->views[K].strides[2] = 1;
    trial->views[K].strides[3] = 300;
}

static void set_reversed(struct trial *trial)
{
    trial->views[V].strides[2] = -64;
}

static void set_repeated_rows(struct trial *trial)
{
    trial->views[K].strides[2] = 0;
}

static void set_empty(struct trial *trial)
{
    trial->views[Q].shape[0] = trial->views[K].shape[0] =
        trial->views[V].shape[0] = 0;
}

static void set_no_keys(struct trial *trial)
{
    trial->views[K].shape[2] = trial->views[V].shape[2] = 0;
}

static void set_thin(struct trial *trial)
{
    trial->views[Q] = view_of(HOB_DTYPE_F16, 1, 1, 1, 64);
    trial->views[K] = trial->views[V] = view_of(HOB_DTYPE_F16, 1, 1, 4096, 64);
}

static const struct {
    const char *what;
    void (*set)(struct trial *trial);
} portable[] = {
    {"f32", set_f32},
    {"rows of 32", set_narrow},
    {"values wider than keys", set_values_apart},
    {"f16 and bf16", set_mixed},
    {"bias", set_bias},
    {"softcap", set_softcap},
    {"scale -1", set_negative_scale},
    {"scale NaN", set_nan_scale},
    {"address", set_odd_address},
    {"rows 65 apart", set_odd_rows},
    {"columns before rows", set_turned},
    {"rows reversed", set_reversed},
    {"rows repeated", set_repeated_rows},
    {"empty batch", set_empty},
    {"no keys", set_no_keys},
    {"one query of many keys", set_thin},
};

enum { PORTABLE = sizeof(portable) / sizeof(portable[0]) };

static int takes(const struct trial *trial, struct ccu_device *device)
{
    struct ccu_attention job;
    struct fake_call fake;
    int is_taken;

    call_init(&fake, trial, 0);
    is_taken = ccu_attention_take(&job, device, &fake.call, NULL, 5);
    fake_call_release(&fake);
    return is_taken;
}

START_TEST(test_attention_leaves_the_rest)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct trial trial = trial_of(HOB_DTYPE_F16, 64);

    ck_assert(takes(&trial, device));
    portable[_i].set(&trial);
    for (int i = 0; i < VIEWS; i++)
        if (trial.views[i].data)
            fake_view_flags(&trial.views[i]);
    ck_assert_msg(!takes(&trial, device), "%s", portable[_i].what);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_attention_is_for_one_architecture)
{
    const struct trial trial = trial_of(HOB_DTYPE_F16, 64);
    struct ccu_device *device;

    fake_cuda.major = 8;
    device = cuda_open_device(0, NULL);
    ck_assert(!takes(&trial, device));
    ccu_device_close(device);
}
END_TEST

/* A driver of CUDA 11 does all the rest. */
START_TEST(test_attention_without_tensor_maps)
{
    const struct trial trial = trial_of(HOB_DTYPE_F16, 64);
    struct ccu_device *device;

    fake_cuda.missing = "cuTensorMapEncodeTiled";
    device = cuda_open_device(0, NULL);
    ck_assert(!takes(&trial, device));
    ccu_device_close(device);
}
END_TEST

/* ---- failures ---- */

static const char *const failing[] = {"cuTensorMapEncodeTiled",
                                      "nvrtcCompileProgram", "cuModuleLoadData",
                                      "cuFuncSetAttribute", "cuLaunchKernel"};

enum { FAILING = sizeof(failing) / sizeof(failing[0]) };

START_TEST(test_attention_says_what_failed)
{
    struct ccu_device *device = open_kept(3);
    const struct trial trial = trial_of(HOB_DTYPE_F16, 64);

    fake_cuda.failing = failing[_i];
    fake_cuda.result = 1;
    ck_assert_int_ne(run(&trial, 0, device), HOB_OK);
    ck_assert_int_eq(launch_count, 0);
    fake_cuda.failing = NULL;
    ck_assert_int_eq(run(&trial, 0, device), HOB_OK);
    ccu_device_close(device);
}
END_TEST

/* ---- compiling ---- */

static void ignore(void **parameters)
{
    (void)parameters;
}

/* Each feature of the kernels in one variant at least. */
static const struct {
    uint32_t dtype;
    int64_t width, mask_keys; /* 0: no mask */
    int is_causal, is_backward;
} variants[] = {
    {HOB_DTYPE_F16, 64, 0, 0, 0},   {HOB_DTYPE_BF16, 64, 300, 1, 0},
    {HOB_DTYPE_BF16, 128, 0, 1, 0}, {HOB_DTYPE_F16, 128, 1, 0, 0},
    {HOB_DTYPE_BF16, 64, 0, 0, 1},  {HOB_DTYPE_F16, 128, 300, 1, 1},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

START_TEST(test_attention_compiles)
{
    struct trial trial = trial_of(variants[_i].dtype, variants[_i].width);
    struct hob_view *mask = &trial.views[MASK];
    struct ccu_device *device;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: CUDA C is compiled without sanitizers\n");
        return;
    }
    fake_cuda.nvrtc = real_nvrtc_open();
    if (!fake_cuda.nvrtc) {
        printf("skipped: no libnvrtc (HOB_TEST_NVRTC)\n");
        return;
    }
    device = open_kept(0);
    fake_cuda.launching = ignore;
    trial.is_causal = variants[_i].is_causal;
    if (variants[_i].mask_keys)
        *mask = view_of(HOB_DTYPE_BOOL, 1, 1, 130, variants[_i].mask_keys);
    ck_assert_msg(run(&trial, variants[_i].is_backward, device) == HOB_OK, "%s",
                  cuda_host.message);
    ccu_device_close(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda attention");
    TCase *told = tcase_create("told");
    TCase *taken = tcase_create("taken");
    TCase *compiled = tcase_create("compiled");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(told, cuda_setup, cuda_teardown);
    tcase_add_test(told, test_attention_tells_layouts);
    tcase_add_test(told, test_attention_merges_the_batch);
    tcase_add_test(told, test_attention_cuts_by_what_fills_the_device);
    tcase_add_test(told, test_attention_tells_the_mask);
    tcase_add_test(told, test_attention_backward_launches);
    tcase_add_test(told, test_attention_backward_bounds_its_memory);
    tcase_add_loop_test(told, test_attention_says_what_failed, 0, FAILING);
    suite_add_tcase(suite, told);
    tcase_add_checked_fixture(taken, cuda_setup, cuda_teardown);
    tcase_add_loop_test(taken, test_attention_leaves_the_rest, 0, PORTABLE);
    tcase_add_test(taken, test_attention_is_for_one_architecture);
    tcase_add_test(taken, test_attention_without_tensor_maps);
    suite_add_tcase(suite, taken);
    tcase_add_checked_fixture(compiled, cuda_setup, cuda_teardown);
    tcase_set_timeout(compiled, 120);
    tcase_add_loop_test(compiled, test_attention_compiles, 0, VARIANTS);
    suite_add_tcase(suite, compiled);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
