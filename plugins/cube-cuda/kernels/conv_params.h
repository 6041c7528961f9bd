/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_params.h - what the kernels of convolutions for compute capability 9.0
 * are told beside the maps of their tensors. It is C for the host and text for
 * the kernels. Index 0 is the height, 1 the width.
 */
#ifndef CONV_PARAMS_H
#define CONV_PARAMS_H

enum {
    CONV_SHARED_BYTES = 227 * 1024, /* all that a group can have */
    CONV_PACK_WORDS = 64 * 33 + 4   /* of shared memory, in conv_pack.cu */
};

enum { CONV_OPERANDS = 2 };

/*
 * A product out[row, place] = the sum over taps and channels of
 * a[row, tap, channel] b[channel, that tap's place], or over places of
 * a[row, place] b[channel, tap's place] for the gradient of weights.
 */
struct conv_params {
    int rows;
    int images, sizes[2];       /* places: of a plane of each image */
    int kept[2];                /* those of the result, the first ones */
    int first[2], step[2];      /* place q is first + q step of b's plane */
    int taps[2], pace[2];       /* and tap t adds t pace to it */
    int chunks;                 /* of 64 channels */
    int tap_first, tap_step[2]; /* where a has a tap */
    int tiles_rows, tasks;
    /* Of a sum over places, 64 at a time; IMAGE_STEPS of an image where both
     * operands are planes as they are. */
    int steps, image_steps, splits, split_steps;
    void *result;     /* parts of f32 for the gradient of weights */
    const void *bias; /* one number a row; or NULL */
    long long bias_step;
    long long out_first, out_image, out_row, out_step[2];
};

/* The products for places of x that leave 0 or 1 along y and, in each, x. */
struct conv_pairs {
    struct conv_params of[4];
};

/*
 * Planes [image, channel, y, x], in any layout, to [image, y, x, channel] with
 * PITCH channels a place and planes of SIZES. What is not there becomes 0.
 */
struct conv_pack {
    const void *from;
    void *to;
    long long image, channel, step[2]; /* strides of FROM in elements */
    int channels, images, width;       /* of FROM */
    int pitch, sizes[2];               /* of TO */
    int first;                         /* x of FROM where that of TO is 0 */
    /* Elements that are read at once where planes are turned by tiles; 0: each
     * by itself. */
    int vector;
    int tiles_channels, tiles_places;
    int groups;
    long long part; /* elements of TO from one part of f32 to the next */
};

struct conv_packs {
    struct conv_pack pack[CONV_OPERANDS]; /* one after the other */
};

/* Parts [split, row, column] added up to weights [row, channel, y, x]. */
struct conv_finish_params {
    const float *parts;
    void *result;
    int splits, rows, channels, taps[2];
    int column[2]; /* columns from a tap to the next */
    long long columns, count;
};

#endif
