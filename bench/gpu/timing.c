/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c - see timing.h. */
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UPS = 4, ROUNDS = 9 };

static const double round_seconds = 0.02;

double timing_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double timing_median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof(samples[0]), ascending);
    return samples[count / 2];
}

double timing_of(hob_scope *root, hob_device *device,
                 hob_status (*run)(hob_scope *scope, void *work), void *work,
                 double *out_host)
{
    double all[ROUNDS], host[ROUNDS];
    int times = 1;

    for (int i = -WARM_UPS; i < ROUNDS; i++) {
        const int at = i < 0 ? 0 : i;
        const double begin = timing_now();

        for (int k = 0; k < times; k++) {
            hob_scope *scope = hob_scope_child(root);
            const hob_status status = run(scope, work);
            const int is_bad = status || hob_scope_error(scope, NULL);

            hob_scope_close(scope);
            if (is_bad)
                return -1;
        }
        host[at] = (timing_now() - begin) / times;
        if (hob_device_sync(device, NULL))
            return -1;
        all[at] = (timing_now() - begin) / times;
        if (i == -1)
            times = (int)(round_seconds / all[at]) + 1;
    }
    if (out_host)
        *out_host = timing_median(host, ROUNDS);
    return timing_median(all, ROUNDS);
}

/* TENSOR's elements, or NULL. */
static double *values_of(hob_tensor *tensor)
{
    const int64_t count = hob_tensor_count(tensor);
    hob_error error = HOB_ERROR_INIT;
    double *values = malloc((size_t)count * sizeof(*values));

    if (values && hob_read_f64(tensor, values, count, &error)) {
        fprintf(stderr, "%s\n", error.message);
        free(values);
        values = NULL;
    }
    hob_error_release(&error);
    return values;
}

double timing_difference(hob_tensor *const results[2])
{
    const int64_t count = hob_tensor_count(results[0]);
    double *a = values_of(results[0]), *b = values_of(results[1]);
    const int is_there = a && b && hob_tensor_count(results[1]) == count;
    double up = 0, down = 0;

    for (int64_t k = 0; is_there && k < count; k++) {
        up += (a[k] - b[k]) * (a[k] - b[k]);
        down += b[k] * b[k];
    }
    free(a);
    free(b);
    return is_there ? sqrt(up) / (sqrt(down) + 1e-30) : -1;
}

int timing_is_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strstr(name, argv[i]))
            return 1;
    return argc < 3;
}

/* DEVICE, or fusion of it, below what AROUND says. */
static hob_status open_below(hob_runtime *runtime, const char *around,
                             const char *device, int is_fused,
                             hob_device **out_device, hob_error *error)
{
    const char *at = strstr(around, "%s");
    char spec[256];

    snprintf(spec, sizeof(spec), "%.*s%s%s%s%s", (int)(at - around), around,
             is_fused ? "fusion(" : "", device, is_fused ? ")" : "", at + 2);
    return hob_device_open(runtime, spec, out_device, error);
}

int timing_with_fusion(const char *usage, const char *around, int argc,
                       char **argv,
                       int (*run)(hob_scope *root, hob_device *const devices[2],
                                  int argc, char **argv))
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_device *devices[2] = {NULL, NULL};
    hob_runtime *runtime = NULL;
    hob_scope *root;
    int failed;

    if (argc < 2) {
        fprintf(stderr, "usage: %s\n", usage);
        return 2;
    }
    options.policy = HOB_POLICY_REPORT;
    if (hob_runtime_open(&options, &runtime, &error) ||
        open_below(runtime, around, argv[1], 0, &devices[0], &error) ||
        open_below(runtime, around, argv[1], 1, &devices[1], &error)) {
        fprintf(stderr, "%.*s: %s\n", (int)strcspn(usage, " "), usage,
                error.message);
        return 1;
    }
    root = hob_scope_open(runtime);
    failed = run(root, devices, argc, argv);
    hob_scope_close(root);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    return hob_runtime_close(runtime, NULL) != HOB_OK || failed;
}
