/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy.h - which of the boxes, in order, greedy suppression keeps.
 *
 * Each box is compared with those that were kept before it. So that 1e5 boxes
 * all over a picture do not cost 5e9 comparisons, kept boxes stand in grids:
 * one for each size of box, whose cells are the least power of two above the
 * longer side, and a box is in the cell of its corner x1, y1. A box looks into
 * the cells where one above the threshold can have its corner, in the grids of
 * the sizes that can be: IoU is at most the ratio of the widths, and of the
 * heights. Where that would be more cells than it is worth, it is compared
 * with all that were kept, in one vectorised loop.
 *
 * Time: proportional to the boxes where few overlap or few are kept; at worst
 * boxes times kept ones. Which boxes are kept does not depend on any of this.
 */
#ifndef VISION_GREEDY_H
#define VISION_GREEDY_H

#include <stdint.h>

/* One cell of a grid, and its kept boxes among all, START..START+KEPT-1. */
struct vision_cell {
    int64_t level; /* that of the grid; below */
    int64_t x;
    int64_t y;
    int64_t start;
    int64_t kept;
};

/* Longer sides from 2^(LEAST-1) on, up to below 2^greatest, have a level each:
 * an area above 0 in f64 needs a side of 2^-537 or more. */
enum {
    VISION_LEVEL_LEAST = -540,
    VISION_LEVEL_GREATEST = 1024,
    VISION_LEVELS = VISION_LEVEL_GREATEST - VISION_LEVEL_LEAST + 1
};

struct vision_level {
    double scale; /* 1 / side of a cell; 0: no box has this size */
    int64_t kept;
};

/*
 * Memory of a run over COUNT boxes, which the caller provides: everything of
 * COUNT elements, but TABLE of TABLE_SIZE, a power of two above COUNT.
 * REALS are floats or doubles.
 */
struct vision_greedy {
    int64_t count;
    double threshold;
    void *boxes[5]; /* reals: x1, y1, x2, y2, area; overwritten */
    void *cells_boxes[5];
    int64_t *cell_of;
    struct vision_cell *cells;
    struct vision_level *levels; /* VISION_LEVELS */
    int64_t *table;
    int64_t table_size;
    int64_t *out_kept; /* the positions that are kept, in order */
};

/* How many are kept; boxes[0..3] are set. Two precisions, the same code. */
int64_t vision_greedy_f32(struct vision_greedy *greedy);
int64_t vision_greedy_f64(struct vision_greedy *greedy);

#endif
