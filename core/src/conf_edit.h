/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_edit.h - changing one value in the text of a config file.
 */
#ifndef HOB__CONF_EDIT_H
#define HOB__CONF_EDIT_H

#include "text.h"

#include <hob/status.h>

/*
 * Append SIZE bytes of JSON at TEXT to OUT with plugins.ID.enabled set; every
 * other byte stays. TEXT is a config that could be merged, or NULL for a new
 * one. PATH is for messages. Fails with HOB_ERR_CONFIG, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__conf_edit_enabled(const char *path,
                                                 const char *text, size_t size,
                                                 const char *id, bool enabled,
                                                 struct hob__text *out,
                                                 hob_error *error);

#endif
