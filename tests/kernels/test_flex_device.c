/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU backend's device: options, interface.
 */
#include "fake_host.h"
#include "hob_check.h"

#include <flex/flex.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;
static struct flex_instance instance;

static void setup(void)
{
    fake_host_init(&host, 1);
    instance.host = &host.table;
}

static const struct bad_options {
    const char *text;
    const char *message;
} bad_options[] = {
    {"[]", "not a JSON object"},
    {"{\"isa\": \"v9\"}", "option \"isa\" is \"v9\""},
    {"{\"isa\": 3}", "option \"isa\" must be"},
    {"{\"cache_bytes\": 1.5}", "must be a whole number"},
    {"{\"cache_bytes\": \"4k\"}", "must be a whole number"},
    {"{\"gemm\": \"mkl\"}", "option \"gemm\" must be"},
    {"{\"cores\": 2}", "unknown option \"cores\""},
    {"{\"threads\": \"many\"}", "option \"threads\" must be"},
    {"{\"threads\": -1}", "option \"threads\" must be"},
    {"{\"threads\": 18446744073709551616}", "option \"threads\" must be"},
    {"{\"threads\": \"\"}", "option \"threads\" must be"},
    {"{\"isa\" \"v2\"}", "no \":\" after option \"isa\""},
    {"{\"isa\": \"v2\"", "malformed at \"\""},
    {"{\"isa\": \"v2", "malformed at \"\"v2\""},
    {"{\"isa\": \"v2\\", "malformed at \"\"v2"},
    {"{\"isa\": \"v\\n\"}", "option \"isa\" must be"},
    {"{\"isa\": }", "malformed at \"}\""},
    {"{} {}", "malformed at \"{}\""},
};

START_TEST(test_bad_options_are_named)
{
    const struct bad_options *bad = &bad_options[_i];
    void *device = &instance;
    char *message = NULL;

    ck_assert_int_eq(
        flex_device_open(&instance, 0, bad->text, &device, &message),
        HOB_ERR_ARGUMENT);
    ck_assert_ptr_null(device);
    ck_assert_msg(message && strstr(message, bad->message), "got \"%s\"",
                  message);
    host.table.mem_free(&host.table, message);
    ck_assert_uint_eq(host.live_blocks, 0);
}
END_TEST

/* What flex_parallel() did: calls an item, and the highest worker. */
struct trace {
    unsigned char seen[1000];
    uint32_t worker_max;
    int64_t grain;
    int bad_cuts;
};

static void note(void *context, int64_t first, int64_t last, uint32_t worker)
{
    struct trace *trace = context;

    for (int64_t i = first; i < last; i++)
        trace->seen[i]++;
    trace->bad_cuts += first % trace->grain != 0 || last - first < trace->grain;
    if (worker > trace->worker_max)
        trace->worker_max = worker;
}

static const struct thread_option {
    const char *text;
    uint32_t workers; /* of the host */
    uint32_t threads; /* of the device; 0: all */
} thread_options[] = {
    {NULL, 3, 0},
    {"{\"threads\": 0}", 3, 0},
    {"{\"threads\": 1}", 3, 1},
    {"{\"threads\": \"2\"}", 3, 2},
    {"{\"threads\": 3}", 3, 0},
    {"{\"threads\": 64}", 3, 0},
    {"{\"threads\": 1}", 1, 0},
};

/* The option "threads" bounds the workers; each item still runs once. */
START_TEST(test_threads_are_limited)
{
    static const int64_t grains[] = {1, 7, 100, 499, 500};
    const struct thread_option *option = &thread_options[_i];
    const uint32_t most = option->threads ? option->threads : option->workers;
    void *opened = NULL;
    char *message = NULL;
    struct flex_device *device;

    fake_host_init(&host, option->workers);
    ck_assert_int_eq(
        flex_device_open(&instance, 0, option->text, &opened, &message),
        HOB_OK);
    device = opened;
    ck_assert_uint_eq(device->threads, option->threads);
    for (size_t i = 0; i < sizeof(grains) / sizeof(grains[0]); i++) {
        struct trace trace = {.grain = grains[i]};

        flex_parallel(device, 1000, grains[i], note, &trace);
        for (int j = 0; j < 1000; j++)
            ck_assert_int_eq(trace.seen[j], 1);
        ck_assert_uint_lt(trace.worker_max, most);
        if (option->threads)
            ck_assert_int_eq(trace.bad_cuts, 0);
    }
    flex_device_close(device);
    ck_assert_uint_eq(host.live_blocks, 0);
}
END_TEST

START_TEST(test_level_can_be_forced)
{
    void *device = NULL, *same = NULL;
    char *message = NULL;
    const struct flex_compute *compute;

    ck_assert_int_eq(flex_device_open(&instance, 0,
                                      " { \"isa\" : \"base\" , "
                                      "\"cache_bytes\": \"4096\", "
                                      "\"gemm\":\"own\"} ",
                                      &device, &message),
                     HOB_OK);
    ck_assert_uint_eq(((struct flex_device *)device)->isa, FLEX_ISA_BASE);
    compute =
        flex_device_interface(device, FLEX_COMPUTE_NAME, FLEX_COMPUTE_VERSION);
    ck_assert_ptr_nonnull(compute);
    ck_assert_str_eq(compute->isa(device), "base");
    same = compute->scratch_take(device, 1000);
    ck_assert_ptr_nonnull(same);
    ck_assert_uint_eq((uintptr_t)same % FLEX_ALIGN, 0);
    compute->scratch_give(device, same, 1000);
    ck_assert_ptr_null(flex_device_interface(device, "flex.other", 1));
    ck_assert_ptr_null(flex_device_interface(device, FLEX_COMPUTE_NAME, 99));
    flex_device_close(device);
    ck_assert_uint_eq(host.live_blocks, 0);
}
END_TEST

/* Who calls gemm may have been built with an older or a newer header. */
START_TEST(test_gemm_takes_other_sizes)
{
    const uint32_t sizes[] = {8,
                              offsetof(struct flex_gemm, beta),
                              offsetof(struct flex_gemm, bias),
                              offsetof(struct flex_gemm, epilogue),
                              sizeof(struct flex_gemm),
                              sizeof(struct flex_gemm) + 24};
    const uint32_t least = offsetof(struct flex_gemm, bias);
    const double a = 3, b = 4;
    double c;
    const struct flex_gemm full = {.dtype = HOB_DTYPE_F64,
                                   .m = 1,
                                   .n = 1,
                                   .k = 1,
                                   .a = &a,
                                   .a_row = 1,
                                   .a_column = 1,
                                   .b = &b,
                                   .b_row = 1,
                                   .b_column = 1,
                                   .c = &c,
                                   .ldc = 1,
                                   .alpha = 1};
    void *device = NULL;
    char *message = NULL;
    const struct flex_compute *compute;

    ck_assert_int_eq(flex_device_open(&instance, 0, NULL, &device, &message),
                     HOB_OK);
    compute =
        flex_device_interface(device, FLEX_COMPUTE_NAME, FLEX_COMPUTE_VERSION);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *gemm = malloc(sizes[i]);

        /* What a newer caller has behind is not zero. */
        memset(gemm, 0x5a, sizes[i]);
        memcpy(gemm, &full, sizes[i] < sizeof(full) ? sizes[i] : sizeof(full));
        memcpy(gemm, &sizes[i], sizeof(sizes[i]));
        c = -1;
        ck_assert_int_eq(compute->gemm(device, gemm),
                         sizes[i] < least ? HOB_ERR_ARGUMENT : HOB_OK);
        ck_assert_double_eq(c, sizes[i] < least ? -1 : 12);
        free(gemm);
    }
    flex_device_close(device);
}
END_TEST

START_TEST(test_other_ordinals_are_refused)
{
    struct hob_device_info info;
    void *device = NULL;
    char *message = NULL;
    uint32_t count = 0;

    ck_assert_int_eq(flex_device_count(&instance, &count), HOB_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(flex_device_info(&instance, 0, &info), HOB_OK);
    ck_assert_uint_gt(info.memory_bytes, 0);
    ck_assert(info.name[0] != '\0');
    ck_assert_int_eq(flex_device_open(&instance, 1, NULL, &device, &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(message, "no device 1"));
    host.table.mem_free(&host.table, message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flex device");
    TCase *cases = tcase_create("device");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(
        cases, test_threads_are_limited, 0,
        (int)(sizeof(thread_options) / sizeof(thread_options[0])));
    tcase_add_loop_test(cases, test_bad_options_are_named, 0,
                        (int)(sizeof(bad_options) / sizeof(bad_options[0])));
    tcase_add_test(cases, test_level_can_be_forced);
    tcase_add_test(cases, test_gemm_takes_other_sizes);
    tcase_add_test(cases, test_other_ordinals_are_refused);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
