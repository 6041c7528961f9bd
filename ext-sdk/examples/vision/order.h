/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - a stable order of falling scores.
 */
#ifndef VISION_ORDER_H
#define VISION_ORDER_H

#include <stdint.h>

/* One thing to sort: its score as a key, and what it is the score of. */
struct vision_scored {
    uint64_t key;
    int64_t index;
};

/* The key of SCORE, which is no NaN: a greater score has a smaller key. -0
 * and 0 have the same. */
uint64_t vision_key(double score);

/* Sort COUNT ITEMS by rising key; equal keys stay in order. SPARE has room for
 * as many. The time is proportional to COUNT. */
void vision_sort(struct vision_scored *items, struct vision_scored *spare,
                 int64_t count);

#endif
