/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - which ops ran in which kernel on a device with fusion.
 */
#ifndef TOOLS_EVAL_EXPLAIN_H
#define TOOLS_EVAL_EXPLAIN_H

#include <hob/hob.h>

#include <cjson/cJSON.h>

/* Note into OUT, an object that stays until explain_end(), what DEVICE runs.
 * Fails with HOB_ERR_DEVICE if there is no fusion in it. */
HOB_MUST_CHECK hob_status explain_begin(hob_device *device, cJSON *out,
                                        hob_error *error);
/* The sums, and no more notes. */
void explain_end(hob_device *device, cJSON *out);

/* Print those of each device in ALL for people. */
void explain_print(const cJSON *all);

#endif
