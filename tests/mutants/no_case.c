/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts nothing. */
#include "mutant.h"

static hob_status infer(struct hob_call *call, struct hob_meta *out)
{
    (void)out;
    return call->host->fail(call, HOB_ERR_SHAPE, "x must have 77 sizes of 77");
}

#define MUTANT_INFER infer
#include "mutant_table.h"
