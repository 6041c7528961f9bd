/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a manifest, and as a config: refused with a reason, or taken.
 */
#include "conf.h"
#include "manifest.h"
#include "os.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hob__manifest *manifest = NULL;
    struct hob__conf conf;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;

    if (hob__manifest_parse("f", data, size, size % 2, &manifest, &reason,
                            &error) &&
        (!reason || !error.message))
        abort();
    hob__manifest_free(manifest);
    hob_error_release(&error);
    hob__conf_init(&conf, hob__os());
    if (hob__conf_merge(&conf, "a", data, size, true, &error) &&
        error.status != HOB_ERR_CONFIG)
        abort();
    (void)!hob__conf_merge(&conf, "b", data, size, false, &error);
    hob__conf_release(&conf);
    hob_error_release(&error);
    return 0;
}
