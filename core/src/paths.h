/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - paths, and reading a small file safely (MAN-1).
 *
 * "/" separates everywhere; on Windows "\" does too.
 */
#ifndef HOB__PATHS_H
#define HOB__PATHS_H

#include "arena.h"
#include "os.h"
#include "reasons.h"

#include <hob/status.h>

/* Say whether PATH is absolute on the system of OS. */
bool hob__path_is_absolute(const struct hob_os_ops *os, const char *path);

/* Return DIR/NAME without doubling the slash; NULL without memory. */
char *hob__path_join(struct hob__arena *arena, const char *dir,
                     const char *name);

/* Return PATH up to its last slash ("/" for "/x"; "." without a slash). */
char *hob__path_dir(struct hob__arena *arena, const char *path);

/* Say whether PATH is DIR or lies below it; both are real paths. */
bool hob__path_is_below(const char *path, const char *dir);

/* Return realpath of PATH in ARENA; NULL if it has none or without memory. */
const char *hob__path_real(const struct hob_os_ops *os,
                           struct hob__arena *arena, const char *path);

/* Describe a negative errno value; the text is constant or in BUFFER. */
const char *hob__os_error(int code, char *buffer, size_t size);

/* Fail with HOB_ERR_IO and a message that has PATH and the errno value. */
hob_status hob__path_fail(const char *path, int code, hob_error *error);

/*
 * Read the regular file PATH of 2 to MAX_SIZE bytes. *OUT_DATA is the
 * caller's, freed with free(). On failure *OUT_REASON is UNREADABLE,
 * NOT_REGULAR, TOO_SMALL, TOO_BIG or CHANGED_DURING_READ and nothing is open.
 * Fails with HOB_ERR_IO, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__file_read(const struct hob_os_ops *os,
                                         const char *path, size_t max_size,
                                         char **out_data, size_t *out_size,
                                         struct hob_os_stat *out_stat,
                                         enum hob__reason *out_reason,
                                         hob_error *error);

/*
 * Find the manifest (*.json) in folder PATH. Fails with HOB_ERR_NOT_FOUND
 * where there is none or more than one, HOB_ERR_IO, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__folder_manifest(const struct hob_os_ops *os,
                                               struct hob__arena *arena,
                                               const char *path,
                                               const char **out_path,
                                               hob_error *error);

/* Make DIR and all that it lies in; 0 or a negative errno value. */
int hob__make_dirs(const struct hob_os_ops *os, const char *dir);

/*
 * Make DIR and wait until nobody else holds the file ".lock" in it. *OUT_FD is
 * closed to give it back; the file stays. Fails with HOB_ERR_IO.
 */
HOB_MUST_CHECK hob_status hob__lock_dir(const struct hob_os_ops *os,
                                        struct hob__arena *arena,
                                        const char *dir, int *out_fd,
                                        hob_error *error);

#endif
