/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256 (FIPS 180-4) of data that comes in pieces. */
#ifndef CUBE_SHA256_H
#define CUBE_SHA256_H

#include <stdint.h>

enum { CUBE_SHA256_BYTES = 32 };

struct cube_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void cube_sha256_init(struct cube_sha256 *sha);
void cube_sha256_add(struct cube_sha256 *sha, const void *data, uint64_t bytes);
void cube_sha256_end(struct cube_sha256 *sha, uint8_t out[CUBE_SHA256_BYTES]);

#endif
