/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - could somebody else have changed this file? (SEC-1, SEC-2)
 *
 * A file is trusted if it and every folder up to the search root are owned by
 * root or the effective user and not writable by others; a folder may be
 * writable if it is sticky. Folders are looked at once and remembered.
 */
#ifndef HOB__TRUST_H
#define HOB__TRUST_H

#include "arena.h"
#include "os.h"

#include <hob/status.h>

struct hob__trust_dir;

/* Used by one thread at a time. All zero but OS and USER is a fresh one. */
struct hob__trust {
    const struct hob_os_ops *os; /* borrowed, outlives this */
    uint32_t user;
    struct hob__trust_dir *dirs;
    uint32_t dir_count;
    uint32_t dir_capacity;
    struct hob__arena arena;
};

void hob__trust_init(struct hob__trust *trust, const struct hob_os_ops *os);
void hob__trust_release(struct hob__trust *trust);

/*
 * Look at the file PATH, whose parents are looked at up to and with ROOT if it
 * lies below, else up to "/". Both are real paths; ROOT may be NULL.
 * *OUT_FAULT is NULL if it is trusted, else what is wrong with which file,
 * in TRUST's memory. Fails with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__trust_check(struct hob__trust *trust,
                                           const char *path, const char *root,
                                           const char **out_fault);

#endif
