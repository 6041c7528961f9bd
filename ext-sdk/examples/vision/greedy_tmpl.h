/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greedy_tmpl.h - greedy.c's walk in one precision: REAL is float or double,
 * NAME(x) a name of its own, LEAST_AREA what counts as one. Included once for
 * each; no include guard.
 */
#define BOX struct NAME(box)

struct NAME(box) {
    REAL x1, y1, x2, y2, area;
};

/*
 * Whether one of COUNT boxes from FIRST on overlaps BOX above THRESHOLD. The
 * order of these operations is part of the op's definition. Boxes have an area
 * above 0 that is no infinity, so no difference here is NaN.
 */
static int NAME(any_above)(void *const *boxes, int64_t first, int64_t count,
                           const BOX *box, REAL threshold)
{
    const REAL *x1 = (const REAL *)boxes[0] + first;
    const REAL *y1 = (const REAL *)boxes[1] + first;
    const REAL *x2 = (const REAL *)boxes[2] + first;
    const REAL *y2 = (const REAL *)boxes[3] + first;
    const REAL *area = (const REAL *)boxes[4] + first;
    const BOX b = *box;

    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t end = count - at < BLOCK ? count : at + BLOCK;
        int hit = 0;

        for (int64_t j = at; j < end; j++) {
            REAL left = x1[j] > b.x1 ? x1[j] : b.x1;
            REAL right = x2[j] < b.x2 ? x2[j] : b.x2;
            REAL top = y1[j] > b.y1 ? y1[j] : b.y1;
            REAL bottom = y2[j] < b.y2 ? y2[j] : b.y2;
            REAL width = right - left > 0 ? right - left : 0;
            REAL height = bottom - top > 0 ? bottom - top : 0;
            REAL both = width * height;

            hit |= both > threshold * ((area[j] + b.area) - both);
        }
        if (hit)
            return 1;
    }
    return 0;
}

static BOX NAME(get)(void *const *boxes, int64_t i)
{
    return (BOX){((const REAL *)boxes[0])[i], ((const REAL *)boxes[1])[i],
                 ((const REAL *)boxes[2])[i], ((const REAL *)boxes[3])[i],
                 ((const REAL *)boxes[4])[i]};
}

static void NAME(put)(void *const *boxes, int64_t i, const BOX *box)
{
    ((REAL *)boxes[0])[i] = box->x1;
    ((REAL *)boxes[1])[i] = box->y1;
    ((REAL *)boxes[2])[i] = box->x2;
    ((REAL *)boxes[3])[i] = box->y2;
    ((REAL *)boxes[4])[i] = box->area;
}

/* 0 for a box that takes part in no overlap. */
static REAL NAME(area_of)(const BOX *box)
{
    REAL width = box->x2 - box->x1, height = box->y2 - box->y1;
    REAL area = width * height;

    if (!(width > 0 && height > 0))
        return 0; /* the product of two negative ones is no area either */
    return area >= LEAST_AREA && area < (REAL)INFINITY ? area : 0;
}

static REAL NAME(side_of)(const BOX *box)
{
    REAL width = box->x2 - box->x1, height = box->y2 - box->y1;

    return width > height ? width : height;
}

/* Give each box its area and its cell, and each cell its place. */
static void NAME(place)(struct vision_greedy *greedy, struct walk *walk)
{
    int64_t start = 0;

    for (int64_t i = 0; i < greedy->count; i++) {
        BOX box = NAME(get)(greedy->boxes, i);
        struct vision_level *level;
        struct vision_cell key;

        box.area = NAME(area_of)(&box);
        ((REAL *)greedy->boxes[4])[i] = box.area;
        if (!(box.area > 0))
            continue;
        key.level = level_of((double)NAME(side_of)(&box));
        level = &greedy->levels[key.level];
        level->scale = ldexp(1.0, -(int)(key.level + VISION_LEVEL_LEAST));
        /* A side is at least a half unit in the last place of its ends, so
         * these are below 2^55. */
        (void)cell_of((double)box.x1, level->scale, &key.x);
        (void)cell_of((double)box.y1, level->scale, &key.y);
        greedy->cell_of[i] = add_cell(greedy, walk, &key);
        greedy->cells[greedy->cell_of[i]].kept++;
    }
    for (int64_t i = 0; i < walk->cell_count; i++) {
        greedy->cells[i].start = start;
        start += greedy->cells[i].kept;
        greedy->cells[i].kept = 0;
    }
}

/*
 * What a box above the threshold must reach into from all sides: IoU is at
 * most the common width over BOX's own, and so for the height. Its left side
 * is at or left of x2 here, its right one at or right of x1, which may well be
 * right of x2. Rounding keeps the order, and SLACK is more than its errors.
 */
static BOX NAME(core_of)(const BOX *box, double slack)
{
    REAL width = box->x2 - box->x1, height = box->y2 - box->y1;
    REAL inward = width * (REAL)slack, down = height * (REAL)slack;

    return (BOX){box->x1 + inward, box->y1 + down, box->x2 - inward,
                 box->y2 - down, 0};
}

/*
 * The cells of a grid where a box that reaches into CORE can have its corner:
 * it is at most a cell left of its right side. Nonzero if there are no more
 * than *BUDGET, which is reduced by them.
 */
static int NAME(reach)(const BOX *core, double scale, struct reach *out,
                       int64_t *budget)
{
    if (!cell_of((double)core->x1, scale, &out->x1) ||
        !cell_of((double)core->x2, scale, &out->x2) ||
        !cell_of((double)core->y1, scale, &out->y1) ||
        !cell_of((double)core->y2, scale, &out->y2))
        return 0;
    out->x1--;
    out->y1--;
    if (out->x2 < out->x1 || out->y2 < out->y1)
        return 1;
    if (out->x2 - out->x1 >= *budget || out->y2 - out->y1 >= *budget)
        return 0;
    *budget -= (out->x2 - out->x1 + 1) * (out->y2 - out->y1 + 1);
    return *budget >= 0;
}

/* Whether BOX overlaps one of the KEPT ones above the threshold. */
static int NAME(is_suppressed)(const struct vision_greedy *greedy,
                               const struct walk *walk, int64_t kept,
                               const BOX *box)
{
    REAL threshold = (REAL)greedy->threshold;
    double side = (double)NAME(side_of)(box);
    int64_t low = level_of(side * walk->slack);
    int64_t high = level_of(side / walk->slack);
    int64_t budget = kept / CELL_WORTH;
    BOX core = NAME(core_of)(box, walk->slack);

    if (low < walk->level_low)
        low = walk->level_low;
    if (high > walk->level_high)
        high = walk->level_high;
    for (int64_t level = low; level <= high; level++) {
        struct vision_cell key = {.level = level};
        struct reach reach;

        if (!greedy->levels[level].kept)
            continue;
        if (!NAME(reach)(&core, greedy->levels[level].scale, &reach, &budget))
            return NAME(any_above)(greedy->boxes, 0, kept, box, threshold);
        for (key.y = reach.y1; key.y <= reach.y2; key.y++)
            for (key.x = reach.x1; key.x <= reach.x2; key.x++) {
                const struct vision_cell *cell = find_cell(greedy, &key);

                if (cell && NAME(any_above)(greedy->cells_boxes, cell->start,
                                            cell->kept, box, threshold))
                    return 1;
            }
    }
    return 0;
}

int64_t NAME(vision_greedy)(struct vision_greedy *greedy)
{
    struct walk walk;
    int64_t kept = 0, out = 0;

    begin(greedy, &walk);
    NAME(place)(greedy, &walk);
    for (int64_t i = 0; i < greedy->count; i++) {
        BOX box = NAME(get)(greedy->boxes, i);
        struct vision_cell *cell;

        if (!(box.area > 0)) {
            greedy->out_kept[out++] = i;
            continue;
        }
        if (NAME(is_suppressed)(greedy, &walk, kept, &box))
            continue;
        cell = &greedy->cells[greedy->cell_of[i]];
        greedy->levels[cell->level].kept++;
        if (cell->level < walk.level_low)
            walk.level_low = cell->level;
        if (cell->level > walk.level_high)
            walk.level_high = cell->level;
        NAME(put)(greedy->cells_boxes, cell->start + cell->kept++, &box);
        /* Those before it have had their turn: their places are free. */
        NAME(put)(greedy->boxes, kept++, &box);
        greedy->out_kept[out++] = i;
    }
    return out;
}

#undef BOX
#undef LEAST_AREA
#undef NAME
#undef REAL
