/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a safetensors file: the parser must refuse them or describe
 * tensors that cover the data exactly.
 */
#include "safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hob__safetensors_header *header;
    hob_error error = HOB_ERROR_INIT;
    uint64_t bytes = 0;
    uint64_t first = size;

    if (hob__safetensors_parse("fuzz", data, size, &header, &error)) {
        hob_error_release(&error);
        return 0;
    }
    for (uint32_t i = 0; i < hob__safetensors_count(header); i++) {
        const struct hob__safetensors_entry *entry =
            hob__safetensors_entry(header, i);

        if (entry->offset > size || entry->bytes > size - entry->offset ||
            hob__safetensors_find(header, entry->name) != entry)
            abort();
        bytes += entry->bytes;
        if (entry->offset < first)
            first = entry->offset;
    }
    if (first + bytes != size)
        abort();
    hob__safetensors_free(header);
    return 0;
}
