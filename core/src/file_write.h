/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_write.h - writing a file whole or not at all.
 *
 * Bytes go to a temporary file beside the target; commit syncs it and renames
 * it over the target. Whatever fails, the target is what it was before and
 * the temporary file is gone. A target that is a symbolic link stays one: the
 * file it points to is replaced. An existing file's permissions are kept.
 */
#ifndef HOB__FILE_WRITE_H
#define HOB__FILE_WRITE_H

#include <hob/status.h>

struct hob__file_write;

/*
 * Start to write file PATH. *OUT_WRITE ends with commit or abort. Fails with
 * HOB_ERR_IO; the message names PATH and the system's reason.
 */
HOB_MUST_CHECK hob_status hob__file_write_open(
    const char *path, struct hob__file_write **out_write, hob_error *error);

/* Append BYTES bytes. After a failure only abort is left to call. */
HOB_MUST_CHECK hob_status hob__file_write_put(struct hob__file_write *writer,
                                              const void *data, uint64_t bytes,
                                              hob_error *error);

/* Put the file in its place and free WRITER, also on failure. */
HOB_MUST_CHECK hob_status hob__file_write_commit(struct hob__file_write *writer,
                                                 hob_error *error);

/* Remove what was written and free WRITER. Accepts NULL. */
void hob__file_write_abort(struct hob__file_write *writer);

#endif
