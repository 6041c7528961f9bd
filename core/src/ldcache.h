/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache.h - would the system find this library? Nothing is opened for it.
 *
 * Looks where ld.so looks: LD_LIBRARY_PATH (unless elevated), its cache, the
 * default folders. Used for a backend's "needs", so that a plugin whose driver
 * is not installed is NOT_APPLICABLE without dlopen.
 */
#ifndef HOB__LDCACHE_H
#define HOB__LDCACHE_H

#include "manifest.h"
#include "os.h"

#include <stdbool.h>
#include <stddef.h>

/* Used by one thread at a time. Start as all zero. */
struct hob__ldcache {
    char *data; /* owned: /etc/ld.so.cache; NULL: not read or not there */
    size_t size;
    bool is_read;
};

/* NAME is a bare name ("libcuda.so.1") or an absolute path. */
bool hob__ldcache_has(struct hob__ldcache *cache, const struct hob_os_ops *os,
                      const struct hob__strings *library_path,
                      const char *name);

void hob__ldcache_release(struct hob__ldcache *cache);

#endif
