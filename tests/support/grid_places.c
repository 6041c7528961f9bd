/* SPDX-License-Identifier: Apache-2.0 */
/* grid_places.c - see grid_places.h. */
#include "grid_places.h"

#include <math.h>

/* Where G lies in SIZE elements; *SLOPE how that changes with it. */
static long double place(const struct grid_ways *ways, long double g,
                         int64_t size, long double *slope)
{
    const long double last = (long double)size - 1;
    const long double low = ways->corners ? 0 : -0.5L;
    const long double span = ways->corners ? last : (long double)size;
    long double p = g * span / 2 + last / 2;

    *slope = span / 2;
    if (ways->padding == GRID_REFLECTION && span == 0) {
        p *= 0; /* NaN stays what it is */
        *slope = 0;
    } else if (ways->padding == GRID_REFLECTION) {
        const long double away = fabsl(p - low);
        const long double turns = floorl(away / span);

        *slope *= p < low ? -1 : 1;
        p = away - turns * span;
        if (fmodl(turns, 2) != 0) {
            p = span - p;
            *slope = -*slope;
        }
        p += low;
    }
    if (ways->padding != GRID_ZEROS) {
        *slope = p < 0 || p > last ? 0 : *slope;
        p = p > last ? last : p < 0 ? 0 : p;
    }
    return p;
}

int grid_corners(const struct grid_ways *ways, int64_t height, int64_t width,
                 double gx, double gy, struct grid_corner *out)
{
    long double slope_x, slope_y;
    long double x = place(ways, gx, width, &slope_x);
    long double y = place(ways, gy, height, &slope_y);
    int count = 0;

    if (!isfinite(x) || !isfinite(y))
        return 0;
    if (ways->is_nearest) {
        x = rintl(x);
        y = rintl(y);
        slope_x = slope_y = 0;
    }
    for (int i = 0; i < (ways->is_nearest ? 1 : 4); i++) {
        const long double column = floorl(x) + (i & 1);
        const long double row = floorl(y) + (i >> 1);
        const long double wx = i & 1 ? x - floorl(x) : 1 - (x - floorl(x));
        const long double wy = i >> 1 ? y - floorl(y) : 1 - (y - floorl(y));

        if (row < 0 || row >= (long double)height || column < 0 ||
            column >= (long double)width)
            continue;
        out[count].at = (int64_t)row * width + (int64_t)column;
        out[count].weight = wx * wy;
        out[count].by_x = (i & 1 ? wy : -wy) * slope_x;
        out[count].by_y = (i >> 1 ? wx : -wx) * slope_y;
        count++;
    }
    return count;
}

int grid_is_lost(const struct grid_ways *ways, int64_t height, int64_t width,
                 double x, double y)
{
    long double slope;

    return !ways->is_nearest && (!isfinite(place(ways, x, width, &slope)) ||
                                 !isfinite(place(ways, y, height, &slope)));
}
