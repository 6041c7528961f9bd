/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <stdio.h>

static const char *const keys[] = {"peak_bytes", "block_count", "system_count",
                                   "reserved_bytes"};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

/* Devices without an account answer HOB_ERR_UNSUPPORTED; nothing else fails. */
void stats_begin(hob_device *device, struct hob_memory_stats *before)
{
    *before = (struct hob_memory_stats)HOB_MEMORY_STATS_INIT;
    (void)!hob_device_reset_peak(device, NULL);
    (void)!hob_device_memory(device, before, NULL);
}

cJSON *stats_end(hob_device *device, const struct hob_memory_stats *before)
{
    struct hob_memory_stats now = HOB_MEMORY_STATS_INIT;
    cJSON *json;

    if (hob_device_memory(device, &now, NULL))
        return cJSON_CreateNull();
    json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, keys[0],
                            (double)(now.peak_bytes - before->in_use_bytes));
    cJSON_AddNumberToObject(json, keys[1],
                            (double)(now.block_count - before->block_count));
    cJSON_AddNumberToObject(json, keys[2],
                            (double)(now.system_count - before->system_count));
    cJSON_AddNumberToObject(json, keys[3], (double)now.reserved_bytes);
    return json;
}

void stats_print(const cJSON *all)
{
    const cJSON *one;

    cJSON_ArrayForEach(one, all)
    {
        double values[KEY_COUNT];

        if (!cJSON_IsObject(one)) {
            printf("memory of %s: no account is kept\n", one->string);
            continue;
        }
        for (int i = 0; i < KEY_COUNT; i++)
            values[i] =
                cJSON_GetObjectItemCaseSensitive(one, keys[i])->valuedouble;
        printf("memory of %s: at most %.0f bytes, %.0f blocks, %.0f of them "
               "from the system; %.0f bytes are held now\n",
               one->string, values[0], values[1], values[2], values[3]);
    }
}
