/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_check.h - is this file a shared library that can be opened here? (SEC-3)
 *
 * Looks into the file without running or mapping anything of it. Sizes and
 * offsets in it are not trusted.
 */
#ifndef HOB__ELF_CHECK_H
#define HOB__ELF_CHECK_H

#include "os.h"
#include "reasons.h"

#include <hob/status.h>

/*
 * Check the open file FD of SIZE bytes, called PATH in messages. On failure
 * *OUT_REASON is LIBRARY_FORMAT (no shared library), LIBRARY_ARCH (for another
 * machine) or SANITIZER (wants a sanitizer runtime that this process lacks;
 * opening it would end the process). Fails with HOB_ERR_PLUGIN,
 * HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__elf_check(const struct hob_os_ops *os, int fd,
                                         uint64_t size, const char *path,
                                         enum hob__reason *out_reason,
                                         hob_error *error);

/* The same for Windows libraries (PE), Mach-O for macOS: by OS's triple. */
HOB_MUST_CHECK hob_status hob__library_check(const struct hob_os_ops *os,
                                             int fd, uint64_t size,
                                             const char *path,
                                             enum hob__reason *out_reason,
                                             hob_error *error);

/*
 * Say in *OUT_EXPORTS whether library FD, which has passed the check, defines
 * symbol NAME for others. Yes where the file does not tell: one without
 * section headers, or of another format than ELF.
 */
HOB_MUST_CHECK hob_status hob__library_exports(
    const struct hob_os_ops *os, int fd, uint64_t size, const char *path,
    const char *name, bool *out_exports, hob_error *error);

#endif
