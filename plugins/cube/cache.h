/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - compiled kernels on disk.
 *
 * One file a kernel in $XDG_CACHE_HOME/hob/SELECTOR (0700), named by its key:
 * the SHA-256 of all that its binary depends on. A file is written aside and
 * renamed, and holds its key and a checksum; whatever does not match is not
 * there. A folder that cannot be made, belongs to somebody else or may be
 * written by others is not used. Any thread, any number of processes.
 *
 * A file's time is that of its last use, to the hour. Where the files of a
 * folder are more than its limit those that were used longest ago go, down to
 * three quarters of it. Another process that reads one of them has it open; one
 * that does not find it compiles.
 */
#ifndef CUBE_CACHE_H
#define CUBE_CACHE_H

#include "sha256.h"

#include <stdint.h>

struct cube_cache;

struct cube_cache_key {
    uint8_t bytes[CUBE_SHA256_BYTES];
};

/* SELECTOR as in "cube-vulkan", a folder in FOLDER, which is there, or in the
 * one above where FOLDER is NULL. Its files have at most LIMIT_BYTES; 0: any.
 * NULL, with errno: work without. */
struct cube_cache *cube_cache_open(const char *selector, const char *folder,
                                   uint64_t limit_bytes);
void cube_cache_close(struct cube_cache *cache); /* accepts NULL */

/* IDENTITY is that of compiler and machine, TEXT_BYTES are of TEXT. */
void cube_cache_key_init(struct cube_cache_key *key, const char *identity,
                         const char *name, const char *text,
                         uint64_t text_bytes);

/* The binary of KEY, which the caller frees with free(); NULL: not there.
 * CACHE may be NULL. */
void *cube_cache_read(struct cube_cache *cache,
                      const struct cube_cache_key *key, uint64_t *out_bytes);
/* 0 where it is not there after that, with errno. CACHE may be NULL. */
int cube_cache_write(struct cube_cache *cache, const struct cube_cache_key *key,
                     const void *data, uint64_t bytes);

#endif
