/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sized.h - structs that a caller is given, who may know less of them than we
 * do, or more: each begins with struct_size, which the caller has set.
 */
#ifndef HOB_SIZED_H
#define HOB_SIZED_H

#include <stdint.h>
#include <string.h>

/* Bring FROM, of which we know KNOWN bytes, to OUT; what OUT has more is 0. */
static inline void hob__give_sized(void *out, const void *from, size_t known)
{
    uint32_t size;

    memcpy(&size, out, sizeof(size));
    memset(out, 0, size);
    memcpy(out, from, size < known ? size : known);
    memcpy(out, &size, sizeof(size));
}

#endif
