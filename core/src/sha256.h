/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), for hashes of libraries and pins.
 */
#ifndef HOB__SHA256_H
#define HOB__SHA256_H

#include "os.h"

#include <stddef.h>
#include <stdint.h>

struct hob__sha256 {
    uint32_t state[8];
    uint64_t length; /* in bytes, of all data so far */
    unsigned char block[64];
};

void hob__sha256_init(struct hob__sha256 *sha);
void hob__sha256_update(struct hob__sha256 *sha, const void *data, size_t size);
/* Write 64 lower-case hexadecimal digits and a NUL. */
void hob__sha256_hex(struct hob__sha256 *sha, char out_hex[65]);

/* Hash the open file FD; 0 or a negative errno value. */
int hob__sha256_file(const struct hob_os_ops *os, int fd, char out_hex[65]);

#endif
