/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference backend as a plugin file, with two planted faults: tanh of
 * f32 adds 0.25 to element 1, and erf fails. For hob eval --bisect.
 */
#include "mock.h"
#include "reference_backend.h"

#include <string.h>

enum { MAX_ENTRIES = 64 };

/* Made by the entry; a mock may keep such a thing. */
static struct hob_entry entries[MAX_ENTRIES];
static struct hob_backend backend;
static struct hob_plugin table;

static hob_status wrong_tanh(void *device, struct hob_call *call)
{
    hob_status status = reference_elementwise(device, call);
    struct hob_view *out = hob_ret_view(call, 0);

    if (!status && out->dtype == HOB_DTYPE_F32 && hob_view_count(out) > 1)
        ((float *)out->data)[1] += 0.25f;
    return status;
}

static hob_status failing_erf(void *device, struct hob_call *call)
{
    (void)device;
    return call->host->fail(call, HOB_ERR_INTERNAL, "a planted failure");
}

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    table = *hob_plugin_entry_reference(host);
    backend = *table.backend;
    if (backend.entry_count > MAX_ENTRIES)
        return NULL;
    memcpy(entries, backend.entries, backend.entry_count * sizeof(*entries));
    for (uint32_t i = 0; i < backend.entry_count; i++)
        if (!strcmp(entries[i].op, "tanh"))
            entries[i].execute = wrong_tanh;
        else if (!strcmp(entries[i].op, "erf"))
            entries[i].execute = failing_erf;
    backend.entries = entries;
    table.id = "wrong";
    table.backend = &backend;
    return &table;
}
