/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.h - hob/install.h with the operating system as an argument.
 */
#ifndef HOB__INSTALL_H
#define HOB__INSTALL_H

#include "os.h"

#include <hob/install.h>

#include <stdbool.h>

/*
 * As hob_install(). OS is NULL for the real one; DATA_DIR stands for the
 * compiled-in folder of --system, or is NULL. *OUT_JSON is from malloc().
 */
HOB_MUST_CHECK hob_status hob__install(const struct hob_os_ops *os,
                                       const char *data_dir, const char *path,
                                       uint32_t where, char **out_json,
                                       hob_error *error);

/* As hob_remove(). */
HOB_MUST_CHECK hob_status hob__remove(const struct hob_os_ops *os,
                                      const char *data_dir, const char *id,
                                      uint32_t where, char **out_json,
                                      hob_error *error);

/* As hob_enable() and hob_disable(); SYSCONF_DIR stands for the compiled-in
 * folder, or is NULL. */
HOB_MUST_CHECK hob_status hob__set_enabled(const struct hob_os_ops *os,
                                           const char *sysconf_dir,
                                           const char *id, uint32_t where,
                                           bool enabled, char **out_json,
                                           hob_error *error);

/*
 * The config file that switches plugin ID off, for all users or for this one;
 * *OUT_FILE is NULL if none does. The caller frees it.
 */
HOB_MUST_CHECK hob_status hob__disabled_by(const struct hob_os_ops *os,
                                           const char *sysconf_dir,
                                           const char *id, char **out_file,
                                           hob_error *error);

#endif
