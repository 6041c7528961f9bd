/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid_places.h - what grid_sample reads, by its definition: the truth of its
 * tests.
 */
#ifndef GRID_PLACES_H
#define GRID_PLACES_H

#include <stdint.h>

/* As grid_sample numbers them. */
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

struct grid_ways {
    int is_nearest, padding, corners;
};

/* An element of a plane, and how its weight changes with the grid's numbers. */
struct grid_corner {
    int64_t at;
    long double weight, by_x, by_y;
};

/* The elements of a plane of HEIGHT by WIDTH that place (X, Y) reads, to OUT,
 * which has room for four. Returns how many: none where it is no number. */
int grid_corners(const struct grid_ways *ways, int64_t height, int64_t width,
                 double x, double y, struct grid_corner *out);

/* Whether that place reads NaN: it is no number, and lies between elements. */
int grid_is_lost(const struct grid_ways *ways, int64_t height, int64_t width,
                 double x, double y);

#endif
