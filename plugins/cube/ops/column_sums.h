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
};

hob_status cube_column_sums(struct cube_device *device, struct hob_call *call,
                            const struct cube_column_sums *sums);

#endif
