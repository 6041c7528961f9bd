/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_state.h - what the files that read "infer" share: infer.c has the
 * object as a whole, infer_result.c a result of it.
 */
#ifndef GEN_INFER_STATE_H
#define GEN_INFER_STATE_H

#include "expression.h"

enum { GEN_MAX_LETS = 32 };

/* What is being read, and the C that comes of it. */
struct gen_infer_state {
    struct gen_op *op;
    struct gen_names names;
    struct gen_let lets[GEN_MAX_LETS];
    struct hob__text out;
    bool done_rets[HOB_MAX_RESULTS];
    bool done_plains[HOB_MAX_RESULTS];
};

/* Read VALUE, what is said of tensor or plain result INDEX, as statements. */
hob_status gen_infer_result(struct gen_infer_state *state, uint32_t index,
                            const struct hob__json_value *value,
                            hob_error *error);
hob_status gen_infer_plain(struct gen_infer_state *state, uint32_t index,
                           const struct hob__json_value *value,
                           hob_error *error);

#endif
