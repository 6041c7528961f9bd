/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/install.h - put a plugin where every runtime finds it, take it away,
 * switch it off and on.
 *
 * - No runtime is needed, and one that is open does not notice: it keeps what
 *   it has found. The next one sees the change.
 * - All is checked first, by the loader's own rules, and no code of the plugin
 *   runs. Files are written aside and renamed, the library before the
 *   manifest, so that at no time is a half-installed plugin found; on failure
 *   nothing has changed.
 *
 * Every function may be called from any thread; two that install the same
 * plugin at once must not be.
 */
#ifndef HOB_INSTALL_H
#define HOB_INSTALL_H

#include <hob/status.h>

HOB_BEGIN_DECLS

/* For whom; in brackets where hob.json is. */
enum hob_install_where {
    HOB_INSTALL_DEFAULT = 0, /* the user; root has to choose, and is refused */
    HOB_INSTALL_USER = 1,    /* below $XDG_DATA_HOME ($XDG_CONFIG_HOME) */
    HOB_INSTALL_SYSTEM = 2   /* below the prefix that Hob was built for (its
                                sysconfdir) */
};

/*
 * Install the plugin in folder PATH, which holds its manifest and its library;
 * PATH may also be the manifest, or a package of "hob-sdk pack". A version that
 * is there already is replaced.
 *
 * On success *OUT_JSON, if OUT_JSON is not NULL, is an object with "id",
 * "version", "kind", "manifest" and "library", the last two being the paths
 * that were written, "disabled_by" if a config file switches the plugin off,
 * and "hidden_by" if HOB_PLUGIN_PATH names other folders to look in; the caller
 * frees it with hob_text_free(). Fails with
 * HOB_ERR_ARGUMENT if root did not choose, HOB_ERR_FORMAT or HOB_ERR_PLUGIN if
 * the package is damaged or the plugin cannot work here, HOB_ERR_IO if it
 * cannot be written.
 */
HOB_API HOB_MUST_CHECK hob_status hob_install(const char *path, uint32_t where,
                                              char **out_json,
                                              hob_error *error);

/*
 * Remove plugin ID, its manifest first. Only what hob_install() puts there is
 * touched. *OUT_JSON is as above, with the paths that were removed; "version"
 * and "kind" are null if the manifest cannot be read, which is no hindrance.
 * Fails with HOB_ERR_NOT_FOUND if it is not installed there.
 */
HOB_API HOB_MUST_CHECK hob_status hob_remove(const char *id, uint32_t where,
                                             char **out_json, hob_error *error);

/*
 * Switch plugin ID off or on: set "enabled" of that plugin in hob.json, which
 * is made if there is none. The rest of the file stays as it is, to the byte.
 * If it says so already, nothing is written and that is no failure.
 *
 * *OUT_JSON is an object with "id", "enabled", "changed", "file" (the one that
 * says so) and "overridden_by": null, or the file or environment variable
 * because of which it is the other way all the same. Fails with
 * HOB_ERR_NOT_FOUND if there is no such plugin, HOB_ERR_CONFIG if the file
 * cannot be parsed or a system file does not allow it, HOB_ERR_IO if it cannot
 * be written; then nothing has changed.
 */
HOB_API HOB_MUST_CHECK hob_status hob_disable(const char *id, uint32_t where,
                                              char **out_json,
                                              hob_error *error);
HOB_API HOB_MUST_CHECK hob_status hob_enable(const char *id, uint32_t where,
                                             char **out_json, hob_error *error);

HOB_END_DECLS

#endif
