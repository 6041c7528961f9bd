/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a signature: the parser must refuse it with a place inside it,
 * or make a signature that is compatible with itself.
 */
#include "signature.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hob__signature signature;
    const char *message;
    int column;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (hob__signature_parse(text, &signature, &column, &message)) {
        if (!message || column < 1 || column > (int)strlen(text) + 1)
            abort();
    } else {
        if (!hob__signature_compatible(&signature, &signature))
            abort();
        hob__signature_release(&signature);
    }
    free(text);
    return 0;
}
