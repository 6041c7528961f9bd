/* SPDX-License-Identifier: Apache-2.0 */
#include "test_device.h"

#include <hob/ext/fusion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *test_device(void)
{
    const char *name = getenv("HOB_TEST_DEVICE");

    return name && *name ? name : "flex";
}

int test_device_is_flex(void)
{
    return strncmp(test_device(), "flex", 4) == 0;
}

int test_device_is_kept(void)
{
    const char *fork = getenv("CK_FORK");

    return fork && !strcmp(fork, "no") && !test_device_is_flex();
}

int test_device_is_slow(void)
{
    return getenv("HOB_TEST_FEW") != NULL;
}

int test_device_skips(hob_dtype dtype, int way, int ways)
{
    return test_device_is_slow() && dtype != HOB_DTYPE_F32 &&
           ((int)dtype + way) % ways != 0;
}

const char *const *test_device_paths(uint32_t *out_count)
{
    static const char *path;

    path = getenv("HOB_TEST_PLUGIN_DIR");
    *out_count = path != NULL;
    return &path;
}

struct hob_runtime_options test_options(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.exclusive = 1;
    options.threads = 2;
    return options;
}

hob_status test_device_open(hob_runtime *runtime, const char *spec,
                            hob_device **out_device, hob_error *error)
{
    char text[512];
    size_t used = 0;

    *out_device = NULL;
    while (*spec && used < sizeof(text)) {
        const char *flex = strstr(spec, "flex");
        int plain = flex ? (int)(flex - spec) : (int)strlen(spec);

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s%s",
                                 plain, spec, flex ? test_device() : "");
        spec += plain + (flex ? 4 : 0);
    }
    if (used >= sizeof(text))
        return HOB_ERR_ARGUMENT;
    return hob_device_open(runtime, text, out_device, error);
}

void test_device_wait(hob_scope *scope, hob_device *device)
{
    void *instance = NULL;
    const struct hob_fused_compute *fused = hob_scope_host(scope)->interface(
        device, HOB_FUSED_COMPUTE, HOB_FUSED_COMPUTE_VERSION, &instance);

    if (fused && fused->set_waits)
        fused->set_waits(instance, 1);
}

int test_device_offers(const char *interface, uint32_t version)
{
    struct hob_runtime_options options = test_options();
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    hob_scope *scope;
    void *instance;
    int is_there;

    if (hob_runtime_open(&options, &runtime, NULL))
        return 0;
    scope = hob_scope_open(runtime);
    is_there = !hob_device_open(runtime, test_device(), &device, NULL) &&
               hob_scope_host(scope)->interface(device, interface, version,
                                                &instance) != NULL;
    hob_scope_close(scope);
    hob_device_unref(device);
    return !hob_runtime_close(runtime, NULL) && is_there;
}
