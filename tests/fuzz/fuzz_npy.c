/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an NPY file: the parser must refuse them or describe elements
 * that lie inside, and reordering must stay inside too.
 */
#include "npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hob__npy_header header;
    hob_error error = HOB_ERROR_INIT;
    void *out;

    if (hob__npy_parse("fuzz", data, size, &header, &error)) {
        hob_error_release(&error);
        return 0;
    }
    if (header.data_offset + header.data_bytes != size)
        abort();
    out = malloc((size_t)header.data_bytes + 1);
    if (out)
        hob__npy_reorder(&header, data + header.data_offset, out);
    free(out);
    return 0;
}
