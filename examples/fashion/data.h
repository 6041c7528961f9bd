/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - Fashion-MNIST: images of ten kinds of clothes (Xiao et al. 2017).
 */
#ifndef FASHION_DATA_H
#define FASHION_DATA_H

#include "idx.h"

enum { DATA_SIDE = 28, DATA_CLASSES = 10 };

/* Where the Debian package dataset-fashion-mnist puts it. */
#define DATA_FOLDER "/usr/share/datasets/fashion-mnist"

struct data {
    struct idx images; /* [count, 28, 28] */
    struct idx labels; /* [count], each below DATA_CLASSES */
    int64_t count;
};

extern const char *const data_class_names[DATA_CLASSES];

/* Read the part called PART, "train" or "t10k", from FOLDER and check that
 * images and labels fit. On failure OUT is empty. */
HOB_MUST_CHECK hob_status data_read(const char *folder, const char *part,
                                    struct data *out, hob_error *error);

void data_release(struct data *data);

#endif
