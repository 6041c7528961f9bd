/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the windows of 2-d convolution and pooling: their attributes,
 * completed and checked, and how many there are. The bodies use it too.
 */
#ifndef HOB__INFER_WINDOW_H
#define HOB__INFER_WINDOW_H

#include <stdint.h>

/* Index 0 is the height, 1 the width. */
struct hob__window {
    int64_t size[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
};

/* Where FALLBACK stands for an empty list; 0 if there are over two numbers. */
int hob__window_pair(const int64_t *list, uint32_t count,
                     const int64_t fallback[2], int64_t out[2]);

/* Elements from a window's first tap to its last, as hob_window_extent(). */
int64_t hob__window_extent(const struct hob__window *window, int axis);

/*
 * How many windows fit IN elements along AXIS; 0 if none does. With CEIL the
 * last one may hang over, unless it would lie wholly in the padding, as
 * PyTorch has it.
 */
int64_t hob__window_count(const struct hob__window *window, int axis,
                          int64_t in, int ceil);

/*
 * Whether one of the windows has no element at all: its taps lie on both sides
 * of the IN elements along AXIS, as those of a dilated window can.
 */
int hob__window_misses(const struct hob__window *window, int axis, int64_t in,
                       int64_t windows);

#endif
