/* SPDX-License-Identifier: Apache-2.0 */
#include "cube.h"

#include <stdlib.h>
#include <string.h>

static const struct cube_entries *const families[] = {
    &cube_arrange_entries,     &cube_attention_entries,
    &cube_cat_entries,         &cube_channels_entries,
    &cube_columns_entries,     &cube_conv_entries,
    &cube_copy_entries,        &cube_create_entries,
    &cube_elementwise_entries, &cube_fft_entries,
    &cube_loss_entries,        &cube_mask_entries,
    &cube_matmul_entries,      &cube_norm_backward_entries,
    &cube_optim_entries,       &cube_pick_entries,
    &cube_pool_entries,        &cube_quant_entries,
    &cube_random_entries,      &cube_reduce_entries,
    &cube_resize_entries,      &cube_rows_entries,
    &cube_sample_entries,      &cube_scan_entries,
    &cube_scatter_entries,     &cube_sort_entries,
};

enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

uint32_t cube_entry_count(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FAMILIES; i++)
        count += families[i]->count;
    return count;
}

const struct hob_entry *cube_entry_find(const char *op)
{
    for (uint32_t i = 0; i < FAMILIES; i++)
        for (uint32_t k = 0; k < families[i]->count; k++)
            if (!strcmp(families[i]->entries[k].op, op))
                return &families[i]->entries[k];
    return NULL;
}

void cube_entries_copy(struct hob_entry *out)
{
    for (uint32_t i = 0; i < FAMILIES; i++) {
        memcpy(out, families[i]->entries, families[i]->count * sizeof(*out));
        out += families[i]->count;
    }
}

struct cube_tables *cube_tables_new(const struct hob_plugin *plugin,
                                    const struct hob_backend *backend,
                                    const struct cube_entries *own)
{
    const uint32_t shared = cube_entry_count();
    const uint32_t count = shared + (own ? own->count : 0);
    struct cube_tables *tables =
        malloc(sizeof(*tables) + count * sizeof(tables->entries[0]));

    if (!tables)
        return NULL;
    cube_entries_copy(tables->entries);
    if (own)
        memcpy(tables->entries + shared, own->entries,
               own->count * sizeof(own->entries[0]));
    tables->plugin = *plugin;
    tables->backend = *backend;
    tables->backend.entries = tables->entries;
    tables->backend.entry_count = count;
    tables->plugin.backend = &tables->backend;
    return tables;
}
