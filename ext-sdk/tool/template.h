/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - files with places to fill in and parts to leave out.
 *
 * "@NAME@" becomes the value of NAME. A line "@if NAME" keeps the lines up to
 * "@else" or "@end" only if NAME has a value that is not empty, "@if !NAME"
 * only if it is empty. Parts nest. NAME is of capitals, digits and "_".
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "text.h"

#include <hob/status.h>

#include <stddef.h>

struct template_value {
    const char *name;
    const char *value;
};

/*
 * Append what SIZE bytes at TEXT become to OUT. PATH is for messages. Fails
 * with HOB_ERR_FORMAT, naming PATH and line, if a name is unknown or parts do
 * not match, and with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status template_expand(const char *path, const char *text,
                                          size_t size,
                                          const struct template_value *values,
                                          size_t value_count,
                                          struct hob__text *out,
                                          hob_error *error);

#endif
