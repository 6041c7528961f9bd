/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a device: refused with a reason, or taken apart into what it
 * says, and the options of each part into JSON that can be read.
 */
#include "device_spec.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char mode_name[] = "mode", first[] = "a", second[] = "b";
static const char *values[] = {first, second};

/* Options that are declared, or any. */
static void read_options(const struct hob__spec_part *part, int is_declared)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__manifest_option option = {.name = mode_name,
                                          .values = {values, 2}};
    struct hob__manifest manifest = {.id = "f"};
    struct hob__text json = HOB__TEXT_INIT, name = HOB__TEXT_INIT;
    struct hob__json_doc *doc = NULL;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;

    if (is_declared) {
        manifest.decorator.options = &option;
        manifest.decorator.option_count = 1;
    }
    if (hob__spec_options(part, NULL, &manifest, &json, &name, &error)) {
        if (error.status != HOB_ERR_ARGUMENT || !error.message)
            abort();
    } else if (hob__json_parse("f", (const uint8_t *)json.data, json.length,
                               &limits, &doc, &reason, NULL) &&
               reason != HOB__REASON_JSON_ENCODING) {
        abort();
    }
    hob__json_free(doc);
    hob_error_release(&error);
    hob__text_release(&json);
    hob__text_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hob_error error = HOB_ERROR_INIT;
    struct hob__spec spec;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (hob__spec_parse(text, &spec, &error)) {
        if (error.status != HOB_ERR_ARGUMENT || !error.message)
            abort();
        spec.count = 0;
    }
    for (uint32_t i = 0; i < spec.count; i++) {
        const struct hob__spec_part *part = &spec.parts[i];

        if (part->name < text || part->name + part->name_size > text + size)
            abort();
        read_options(part, 0);
        read_options(part, 1);
    }
    hob_error_release(&error);
    free(text);
    return 0;
}
