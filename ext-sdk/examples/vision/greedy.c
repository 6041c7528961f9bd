/* SPDX-License-Identifier: Apache-2.0 */
#include "greedy.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64,     /* comparisons between two looks at the answer */
    CELL_WORTH = 16 /* comparisons in the time that it takes to find a cell */
};

/* What a walk knows besides its memory. */
struct walk {
    int64_t cell_count;
    double slack;      /* the threshold with room for rounding; may be 0 */
    int64_t level_low; /* of the boxes that were kept */
    int64_t level_high;
};

/* Cells of one grid, both ends included. */
struct reach {
    int64_t x1, y1, x2, y2;
};

static uint64_t hash(const struct vision_cell *key)
{
    uint64_t mixed = (uint64_t)key->x * UINT64_C(0x9e3779b97f4a7c15) +
                     (uint64_t)key->y * UINT64_C(0xd1342543de82ef95) +
                     (uint64_t)key->level * UINT64_C(0xaf251af3b0f025b5);

    mixed ^= mixed >> 32;
    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 29;
}

/* Where KEY is in the table, or would be: the table is never full. */
static int64_t *entry_of(const struct vision_greedy *greedy,
                         const struct vision_cell *key)
{
    uint64_t mask = (uint64_t)greedy->table_size - 1;
    uint64_t at = hash(key) & mask;

    for (; greedy->table[at]; at = (at + 1) & mask) {
        const struct vision_cell *cell = &greedy->cells[greedy->table[at] - 1];

        if (cell->x == key->x && cell->y == key->y && cell->level == key->level)
            break;
    }
    return &greedy->table[at];
}

static const struct vision_cell *find_cell(const struct vision_greedy *greedy,
                                           const struct vision_cell *key)
{
    int64_t number = *entry_of(greedy, key);

    return number ? &greedy->cells[number - 1] : NULL;
}

/* The number of KEY's cell, made if there is none. */
static int64_t add_cell(struct vision_greedy *greedy, struct walk *walk,
                        const struct vision_cell *key)
{
    int64_t *entry = entry_of(greedy, key);

    if (!*entry) {
        struct vision_cell *cell = &greedy->cells[walk->cell_count++];

        *cell = *key;
        cell->start = cell->kept = 0;
        *entry = walk->cell_count;
    }
    return *entry - 1;
}

/* Number of the cell that has X; 0 where it is too large to be one. */
static int cell_of(double x, double scale, int64_t *out)
{
    double at = x * scale;

    if (!(at > -0x1p60 && at < 0x1p60))
        return 0;
    *out = (int64_t)at;
    *out -= at < (double)*out; /* down, not towards zero */
    return 1;
}

/* The level of a longer SIDE; the last or first one for what is beyond. */
static int64_t level_of(double side)
{
    int exponent;

    if (!(side < INFINITY))
        return VISION_LEVELS - 1;
    if (!(side > 0))
        return 0;
    (void)frexp(side, &exponent);
    exponent -= VISION_LEVEL_LEAST;
    return exponent > 0 ? exponent : 0;
}

static void begin(struct vision_greedy *greedy, struct walk *walk)
{
    memset(greedy->table, 0,
           (size_t)greedy->table_size * sizeof(*greedy->table));
    memset(greedy->levels, 0, VISION_LEVELS * sizeof(*greedy->levels));
    memset(walk, 0, sizeof(*walk));
    walk->level_low = VISION_LEVELS;
    walk->level_high = -1;
    /*
     * Rounding moves an IoU by a few units in the last place: a sixteenth is
     * room enough. Under a tiny threshold intersections may be subnormal and
     * rounding anything; 0 means no bounds on sizes and common sides.
     */
    if (greedy->threshold > 0x1p-20)
        walk->slack = greedy->threshold * 0.9375;
}

/*
 * Below LEAST_AREA boxes count as having none: far enough above the subnormal
 * numbers that the rounding of areas is as small as begin() takes it to be.
 */
#define REAL float
#define NAME(name) name##_f32
#define LEAST_AREA 0x1p-100f
#include "greedy_tmpl.h"

#define REAL double
#define NAME(name) name##_f64
#define LEAST_AREA 0x1p-1000
#include "greedy_tmpl.h"
