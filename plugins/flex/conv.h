/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h - the parts of convolution.
 *
 *   ops/conv.c       arguments; a call as one or more struct flex_conv
 *   conv_strip.c     boxes of positions, and the strips that they read
 *   conv_gemm.c      implicit matrix products: any convolution
 *   conv_winograd.c  F(2 x 2, 3 x 3), f32
 *   conv_direct.c    few channels, without columns
 *   conv_weight.c    the gradient of the weight
 *
 * One and two dimensions are three with sizes of 1: axis 0 is the depth, 1
 * the height, 2 the width. The gradient with respect to the input (which is a
 * transposed convolution) is a convolution too, or, where the stride is not
 * 1, one for each remainder of a position modulo the stride: hence the places
 * of results and the order of taps are part of the description.
 */
#ifndef FLEX_CONV_H
#define FLEX_CONV_H

#include "flex.h"
#include "gemm.h"
#include "kernels/conv.h"

/* Position p takes, by tap t, input element p * step + first + t * pace, 0
 * outside. Its result lies at place + p * spread. */
struct flex_conv_axis {
    int64_t in;        /* elements of the input */
    int64_t positions; /* whose results are computed */
    int64_t step;
    int64_t taps;
    int64_t first, pace;
    int64_t out; /* elements of the result */
    int64_t place, spread;
    int64_t weight_first, weight_pace; /* of the taps, in elements */
};

struct flex_conv {
    struct flex_device *device;
    const struct flex_gemm_kernels *gemm;
    const struct flex_conv_kernels *kernels;
    struct flex_conv_axis axis[3];
    int64_t size; /* of an element: 4 (f32) or 8 (f64) */
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* of one group */
    const char *in;                    /* [n, groups * in_channels, ...] */
    char *out;                         /* [n, groups * out_channels, ...] */
    const char *bias;                  /* one an output channel, or NULL */
    const char *weight;
    int64_t weight_group, weight_out, weight_in; /* steps, in elements */
};

static inline int64_t flex_conv_taps(const struct flex_conv *conv)
{
    return conv->axis[0].taps * conv->axis[1].taps * conv->axis[2].taps;
}

/* Elements of a plane (or volume) of the input and of the result, and
 * positions. */
static inline int64_t flex_conv_in_plane(const struct flex_conv *conv)
{
    return conv->axis[0].in * conv->axis[1].in * conv->axis[2].in;
}

static inline int64_t flex_conv_out_plane(const struct flex_conv *conv)
{
    return conv->axis[0].out * conv->axis[1].out * conv->axis[2].out;
}

static inline int64_t flex_conv_positions(const struct flex_conv *conv)
{
    return conv->axis[0].positions * conv->axis[1].positions *
           conv->axis[2].positions;
}

/* Nonzero if results lie where their positions are. */
static inline int flex_conv_in_order(const struct flex_conv *conv)
{
    return flex_conv_out_plane(conv) == flex_conv_positions(conv);
}

static inline int64_t flex_aligned(int64_t bytes)
{
    return flex_divide_up(bytes, FLEX_ALIGN) * FLEX_ALIGN;
}

/* ---- conv_strip.c ---- */

/* The loops of DEVICE's instruction set, by FLEX_CONV_F32 and _F64. */
const struct flex_conv_kernels *
flex_conv_kernels(const struct flex_device *device);

/* Positions of some samples: axis 0 is the sample, then as in flex_conv. */
struct flex_conv_box {
    int64_t first[4], count[4];
};

/* The positions of CONV, of all samples if SAMPLES is nonzero, else of one,
 * as equal boxes whose positions lie one after the other. */
struct flex_conv_boxes {
    int64_t grid[4];  /* positions */
    int64_t take[4];  /* of a box, at most */
    int64_t boxes[4]; /* along each axis */
    int64_t count;
    int64_t positions; /* of a box, at most */
};

/* Boxes of about WANT positions, in number that wastes little of panels WIDTH
 * wide. */
void flex_conv_cut(struct flex_conv_boxes *boxes, const struct flex_conv *conv,
                   int samples, int64_t want, int64_t width);
/* Box INDEX; sample SAMPLE is added to its first. */
void flex_conv_box(const struct flex_conv_boxes *boxes, int64_t index,
                   int64_t sample, struct flex_conv_box *out);
static inline int64_t flex_conv_box_positions(const struct flex_conv_box *box)
{
    return box->count[0] * box->count[1] * box->count[2] * box->count[3];
}

/* How a strip lies: elements between samples, channels, slices (axis 0), rows
 * and remainders modulo the step of axis 2. */
struct flex_conv_strip {
    int64_t low[3]; /* the first input element that position 0 takes */
    int64_t sample, channel, slice, row, remainder;
    int64_t elements; /* of all, with slack */
};

/* The strip of CHANNELS channels under a box of COUNT positions, or under any
 * no larger. HOB_ERR_MEMORY if it would be out of all proportion. */
hob_status flex_conv_strip_init(struct flex_conv_strip *strip,
                                const struct flex_conv *conv,
                                const int64_t count[4], int64_t channels);
/* Each tap's offset, taps in row-major order. */
void flex_conv_strip_taps(const struct flex_conv_strip *strip,
                          const struct flex_conv *conv, int64_t *offsets);
/* Each tap's place among a channel's weights, in elements, in the same order.
 */
void flex_conv_weight_taps(const struct flex_conv *conv, int64_t *offsets);
/* Where BOX's row Y of slice Z of its sample N begins in output channel CHANNEL
 * (of all groups), in elements. */
int64_t flex_conv_place(const struct flex_conv *conv,
                        const struct flex_conv_box *box, int64_t channel,
                        int64_t n, int64_t z, int64_t y);
/* Copy what BOX takes from channels FIRST .. LAST - 1 (of the whole input). */
void flex_conv_strip_fill(const struct flex_conv_strip *strip,
                          const struct flex_conv *conv,
                          const struct flex_conv_box *box, int64_t first,
                          int64_t last, char *out);
/* Positions FROM .. FROM + COUNT - 1 of BOX as pieces of the strip. */
void flex_conv_strip_pieces(const struct flex_conv_strip *strip,
                            const struct flex_conv *conv,
                            const struct flex_conv_box *box, int64_t from,
                            int64_t count, struct flex_conv_pieces *out);

/* ---- the ways; all answer HOB_ERR_MEMORY or HOB_OK ---- */

hob_status flex_conv_gemm(const struct flex_conv *conv);

/* Nonzero if CONV is one that Winograd's way serves, and is faster for. */
int flex_conv_is_winograd(const struct flex_conv *conv);
hob_status flex_conv_winograd(const struct flex_conv *conv);

/* Nonzero if CONV has so few channels on a side that sums row by row, without
 * columns, are best. */
int flex_conv_is_direct(const struct flex_conv *conv);
hob_status flex_conv_direct(const struct flex_conv *conv);
/* Nonzero if flex_conv_direct_weight is better than flex_conv_weight. */
int flex_conv_is_direct_weight(const struct flex_conv *conv);

/*
 * The gradient with respect to the weight, given GRAD, which has the shape of
 * the result: OUT is [groups * out_channels, in_channels, taps], contiguous.
 * Results must lie in order.
 */
hob_status flex_conv_weight(const struct flex_conv *conv, const char *grad,
                            char *out);
hob_status flex_conv_direct_weight(const struct flex_conv *conv,
                                   const char *grad, char *out);

/* Elements between the rows of a packed panel of DEPTH elements of SIZE bytes
 * each: an odd number of lines, so that rows share no sets of the caches. */
static inline int64_t flex_conv_row_stride(int64_t depth, int64_t size)
{
    return (flex_divide_up(depth * size, FLEX_ALIGN) | 1) * FLEX_ALIGN / size;
}

#endif
