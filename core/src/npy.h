/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - the header of an NPY file, apart from tensors.
 *
 * Format: NumPy enhancement proposal 1 and numpy.lib.format: the magic
 * "\x93NUMPY", a version, the length of a text, and the text: a Python
 * dictionary with the keys descr, fortran_order and shape. The elements follow.
 */
#ifndef HOB__NPY_H
#define HOB__NPY_H

#include <hob/types.h>

#include <stdbool.h>

struct hob__npy_header {
    struct hob_meta meta;
    bool big_endian;
    bool fortran; /* the first index runs fastest */
    uint64_t data_offset;
    uint64_t data_bytes;
};

/* Bytes that a header needs at most: see hob__npy_format. */
enum { HOB__NPY_HEADER_MAX = 512 };

/*
 * Read the header of a file of SIZE bytes that begins at DATA. PATH is for
 * messages. Fails with HOB_ERR_FORMAT if it is malformed or the file is too
 * short or too long for it, HOB_ERR_UNSUPPORTED for arrays that no tensor can
 * hold.
 */
HOB_MUST_CHECK hob_status hob__npy_parse(const char *path, const void *data,
                                         uint64_t size,
                                         struct hob__npy_header *out_header,
                                         hob_error *error);

/*
 * Write the header of a row-major array of META, in this machine's byte
 * order, to TEXT of HOB__NPY_HEADER_MAX bytes and return its length; 0 if
 * NPY has no such dtype.
 */
uint32_t hob__npy_format(const struct hob_meta *meta, unsigned char *text);

/*
 * Copy the elements from IN, as HEADER says they are there, to OUT in
 * row-major order and this machine's byte order.
 */
void hob__npy_reorder(const struct hob__npy_header *header, const void *in,
                      void *out);

/* Say whether hob__npy_reorder() would be a plain copy. */
bool hob__npy_is_plain(const struct hob__npy_header *header);

#endif
