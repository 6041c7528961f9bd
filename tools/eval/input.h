/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the tensors that a program begins with.
 */
#ifndef TOOLS_EVAL_INPUT_H
#define TOOLS_EVAL_INPUT_H

#include "run.h"

/*
 * The tensor that INPUT, one of the program's, describes: its elements from
 * "data" or a file, laid out as the program says, a leaf if a gradient is
 * wanted. RUN's scope owns it. NULL with ERROR set, as HOB_ERR_FORMAT for what
 * is written wrongly.
 */
hob_tensor *input_make(struct run *run, const cJSON *input, hob_error *error);

#endif
