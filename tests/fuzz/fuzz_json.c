/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as JSON: the scan refuses them with a place, or cJSON reads what
 * the scan has accepted, and every value has a pointer.
 */
#include "json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__json_doc *doc = NULL;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;
    hob_status st =
        hob__json_parse("f", data, size, &limits, &doc, &reason, &error);

    if (st) {
        /* Memory does not run out here: cJSON would have refused. */
        if (st != HOB_ERR_FORMAT || !reason || !error.message)
            abort();
    } else {
        const struct hob__json_value *root = hob__json_root(doc);
        char *pointer = hob__json_pointer(doc, root);
        int64_t number;

        if (root->type == HOB__JSON_NUMBER)
            (void)!hob__json_int(doc, root, INT64_MIN, INT64_MAX, &number,
                                 NULL);
        free(pointer);
    }
    hob_error_release(&error);
    hob__json_free(doc);
    return 0;
}
