/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c - see timing.h. */
#include "timing.h"

#include <stdlib.h>
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

static double median(double *all)
{
    qsort(all, ROUNDS, sizeof(all[0]), ascending);
    return all[ROUNDS / 2];
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
        *out_host = median(host);
    return median(all);
}
