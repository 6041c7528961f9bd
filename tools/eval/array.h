/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h - elements that a program has in NPY files beside it.
 */
#ifndef TOOLS_EVAL_ARRAY_H
#define TOOLS_EVAL_ARRAY_H

#include "run.h"

/*
 * Load the file that the member "npy" of ITEM names, from the folder of RUN's
 * program, to RUN's device; RUN's scope owns *OUT_TENSOR. The file must have
 * the "dtype" and the "shape" of ITEM, where those are given; f32 stands for
 * bf16, which NPY lacks. Fails with HOB_ERR_FORMAT if it has others or lies
 * outside the folder, else as hob_npy_load().
 */
HOB_MUST_CHECK hob_status array_load(const struct run *run, const cJSON *item,
                                     hob_tensor **out_tensor, hob_error *error);

#endif
