/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_spec.h - the text that names a device, and the options in it.
 *
 *   spec    := base | layer '(' spec ')'
 *   base    := selector [ options ] [ ':' ordinal ]
 *   layer   := selector [ options ]
 *   options := '{' [ option { ',' option } ] '}'
 *   option  := name '=' value
 *
 * Spaces, tabs and ends of lines may stand between these, but not around ':'.
 */
#ifndef HOB__DEVICE_SPEC_H
#define HOB__DEVICE_SPEC_H

#include "conf.h"
#include "manifest.h"
#include "text.h"

#include <hob/types.h>

/* One layer of a parsed spec; the texts point into the spec. */
struct hob__spec_part {
    const char *name;
    size_t name_size;
    const char *options; /* between the braces; NULL if there are none */
    size_t options_size;
    uint32_t ordinal;
};

struct hob__spec {
    /* top first; the last is the base */
    struct hob__spec_part parts[HOB_MAX_LEVELS + 1];
    uint32_t count;
};

/* Parse TEXT. Fails with HOB_ERR_ARGUMENT, naming the character. */
HOB_MUST_CHECK hob_status hob__spec_parse(const char *text,
                                          struct hob__spec *out_spec,
                                          hob_error *error);

/*
 * Work out the options of PART: its own before CONF's (may be NULL) before
 * the defaults of MANIFEST. Append them to JSON as an object, and to NAME in
 * braces those that are not a default, in the manifest's order, so that equal
 * stacks have equal names. A manifest that declares no options takes any.
 * Fails with HOB_ERR_ARGUMENT for an option or a value that is not declared.
 */
HOB_MUST_CHECK hob_status hob__spec_options(
    const struct hob__spec_part *part, const struct hob__conf_plugin *conf,
    const struct hob__manifest *manifest, struct hob__text *json,
    struct hob__text *name, hob_error *error);

#endif
