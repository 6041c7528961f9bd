/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/install.h - put a plugin where every runtime finds it, and take it away.
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

/* For whom. */
enum hob_install_where {
    HOB_INSTALL_DEFAULT = 0, /* the user; root has to choose, and is refused */
    HOB_INSTALL_USER = 1,    /* below $XDG_DATA_HOME */
    HOB_INSTALL_SYSTEM = 2   /* below the prefix that Hob was built for */
};

/*
 * Install the plugin in folder PATH, which holds its manifest and its library;
 * PATH may also be the manifest, or a package of "hob-sdk pack". A version that
 * is there already is replaced.
 *
 * On success *OUT_JSON, if OUT_JSON is not NULL, is an object with "id",
 * "version", "kind", "manifest" and "library", the last two being the paths
 * that were written; the caller frees it with hob_text_free(). Fails with
 * HOB_ERR_ARGUMENT if root did not choose, HOB_ERR_FORMAT or HOB_ERR_PLUGIN if
 * the package is damaged or the plugin cannot work here, HOB_ERR_IO if it
 * cannot be written.
 */
HOB_API HOB_MUST_CHECK hob_status hob_install(const char *path, uint32_t where,
                                              char **out_json,
                                              hob_error *error);

/*
 * Remove plugin ID, its manifest first. Only what hob_install() puts there is
 * touched. *OUT_JSON is as above, with the paths that were removed. Fails with
 * HOB_ERR_NOT_FOUND if it is not installed there.
 */
HOB_API HOB_MUST_CHECK hob_status hob_remove(const char *id, uint32_t where,
                                             char **out_json, hob_error *error);

HOB_END_DECLS

#endif
