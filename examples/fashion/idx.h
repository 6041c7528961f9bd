/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.h - the files of MNIST and its relatives.
 *
 * An IDX file is two zero bytes, a type byte (8: unsigned bytes), the rank,
 * that many big-endian 32-bit sizes, then the elements, row-major; usually
 * gzipped. See yann.lecun.com/exdb/mnist.
 */
#ifndef FASHION_IDX_H
#define FASHION_IDX_H

#include <hob/hob.h>

/* The most dimensions that a file here may have. */
enum { IDX_MAX_RANK = 3 };

struct idx {
    int rank;
    int64_t shape[IDX_MAX_RANK];
    uint8_t *data; /* the product of SHAPE bytes, owned */
};

/*
 * Read the file PATH, gzipped or not, which must be of RANK. On failure OUT
 * is empty. Fails with HOB_ERR_NOT_FOUND if there is no such file,
 * HOB_ERR_FORMAT if it is malformed, truncated or longer than it says.
 */
HOB_MUST_CHECK hob_status idx_read(const char *path, int rank, struct idx *out,
                                   hob_error *error);

void idx_release(struct idx *idx);

#endif
