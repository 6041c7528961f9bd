/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - cross entropy of rows that are worth several invocations each. */
#ifndef CUBE_OPS_ROWS_H
#define CUBE_OPS_ROWS_H

#include "../cube.h"

struct cube_entropy {
    const struct hob_view *logits, *targets; /* row-major */
    void *losses;                 /* one a row, of the logits' dtype; or NULL */
    const struct hob_view *out;   /* their gradient, if there are no losses, */
    const struct hob_view *slope; /* times this and by the number of rows */
    void *bad; /* a flag (flag.h): the first row without such a target */
};

hob_status cube_rows_entropy(struct cube_device *device, struct hob_call *call,
                             const struct cube_entropy *entropy);

#endif
