/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of JSON as "types" of a manifest, the rest as a signature that uses
 * them: refused with a place, or laid flat so that the flat text is the same
 * signature again.
 */
#include "json.h"
#include "type_defs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const char *text, const struct hob__types *types)
{
    struct hob__signature signature, again;
    const char *message;
    char *flat;
    int column;

    if (hob__signature_parse_with(text, types, &signature, &column, &message)) {
        if (!message || column < 1 || column > (int)strlen(text) + 1)
            abort();
        return;
    }
    flat = hob__signature_text(&signature);
    if (flat && (hob__signature_parse(flat, &again, &column, &message) ||
                 !hob__signature_compatible(&signature, &again)))
        abort();
    if (flat)
        hob__signature_release(&again);
    hob__signature_release(&signature);
    free(flat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hob__json_limits limits = {1u << 20, 16};
    struct hob__json_doc *doc = NULL;
    struct hob__types types;
    hob_error error = HOB_ERROR_INIT;
    char *text = malloc(size + 1), *rest;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    rest = strchr(text, '\n');
    if (rest && !hob__json_parse("f", text, (size_t)(rest - text), &limits,
                                 &doc, NULL, &error)) {
        if (!hob__types_read(doc, hob__json_root(doc), &types, &error))
            use(rest + 1, &types);
        else if (!error.message)
            abort();
        hob__types_release(&types);
    }
    hob__json_free(doc);
    hob_error_release(&error);
    free(text);
    return 0;
}
