/* SPDX-License-Identifier: Apache-2.0 */
/*
 * at.h - runs of elements at indices: read, written, added to.
 *
 * Element i of a run is at DATA + i * step_bytes + indices[i] * dim_bytes.
 * Indices have been checked.
 */
#ifndef FLEX_AT_H
#define FLEX_AT_H

#include <stdint.h>

struct flex_at {
    char *data;
    int64_t step_bytes;
    int64_t dim_bytes;
};

/* As the ops number them. */
enum flex_at_update {
    FLEX_AT_ASSIGN,
    FLEX_AT_ADD,
    FLEX_AT_MUL,
    FLEX_AT_MIN,
    FLEX_AT_MAX
};

/* Read N elements of SIZE bytes to contiguous OUT. */
void flex_at_take(const struct flex_at *at, const int64_t *indices, int64_t n,
                  uint32_t size, void *out);
/* Write N elements of SIZE bytes from IN, IN_STEP bytes apart. */
void flex_at_put(const struct flex_at *at, const int64_t *indices, int64_t n,
                 uint32_t size, const void *in, int64_t in_step);
/* Update N elements of DTYPE, one after the other; not of f16 or bf16. Of bool
 * sums are "or", products "and". */
void flex_at_update(const struct flex_at *at, const int64_t *indices, int64_t n,
                    uint32_t dtype, enum flex_at_update update, const void *in,
                    int64_t in_step);

/*
 * Elements of a run to go through at a time, where runs of N follow that reach
 * into the same EXTENT slices each N elements of SIZE long: few enough for
 * those of all slices to stay in CACHE_BYTES, whole cache lines of them.
 */
int64_t flex_at_strip(int64_t n, int64_t extent, uint32_t size,
                      uint64_t cache_bytes);

#endif
