/* SPDX-License-Identifier: Apache-2.0 */
/* column_sums.h - sums of the columns of matrices whose rows lie apart. */
#ifndef CUBE_OPS_COLUMN_SUMS_H
#define CUBE_OPS_COLUMN_SUMS_H

#include "../cube.h"

/*
 * The sums of ROWS rows of COLUMNS floats of DTYPE at DATA, one STEP elements
 * after the other, to SUMS[0]; where there is SUMS[1], those of a second such
 * matrix APART elements further on to that. Both are row-major, of any dtype.
 * f16 and bf16 are added up in f32, and what sums round away is kept.
 */
struct cube_column_sums {
    const void *data;
    uint32_t dtype;
    uint32_t reserved;
    int64_t rows, columns, step, apart;
    const struct hob_view *sums[2];
    void *parts[2]; /* of cube_column_sums_open() */
};

hob_status cube_column_sums(struct cube_device *device, struct hob_call *call,
                            const struct cube_column_sums *sums);

/*
 * Take memory for two matrices of ROWS, COLUMNS and DTYPE, row-major, which a
 * kernel is going to write to PARTS; the other members but SUMS are set here.
 * On failure the call has a message.
 */
hob_status cube_column_sums_open(struct cube_device *device,
                                 struct hob_call *call,
                                 struct cube_column_sums *sums);
/* After the launch that wrote PARTS, which said STATUS: sum them up, unless
 * that failed, and give their memory back. */
hob_status cube_column_sums_close(struct cube_device *device,
                                  struct hob_call *call,
                                  const struct cube_column_sums *sums,
                                  hob_status status);

#endif
