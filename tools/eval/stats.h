/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - what a run took of a device's memory.
 */
#ifndef TOOLS_EVAL_STATS_H
#define TOOLS_EVAL_STATS_H

#include <hob/hob.h>

#include <cjson/cJSON.h>

/* Begin to count on DEVICE; *BEFORE is for stats_end(). */
void stats_begin(hob_device *device, struct hob_memory_stats *before);

/* What was taken since: {"peak_bytes", "block_count", "system_count",
 * "reserved_bytes"}; null where the backend keeps no account. */
cJSON *stats_end(hob_device *device, const struct hob_memory_stats *before);

/* Print those of each device in ALL for people. */
void stats_print(const cJSON *all);

#endif
