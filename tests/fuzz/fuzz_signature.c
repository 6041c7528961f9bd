/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a signature: the parser must refuse it with a place inside it,
 * or make a signature that is compatible with itself and with its flat text.
 */
#include "signature.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What hob__signature_text() writes is the same signature again. */
static void check_text(const struct hob__signature *signature)
{
    struct hob__signature again;
    const char *message;
    char *text = hob__signature_text(signature);
    int column;

    if (!text)
        return;
    if (hob__signature_parse(text, &again, &column, &message) ||
        !hob__signature_compatible(signature, &again) ||
        !hob__signature_compatible(&again, signature))
        abort();
    hob__signature_release(&again);
    free(text);
}

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
        check_text(&signature);
        hob__signature_release(&signature);
    }
    free(text);
    return 0;
}
