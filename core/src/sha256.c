/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_CHUNK = 1 << 16 };

/* FIPS 180-4, 4.2.2. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* 6.2.2, step 1: the message schedule. */
static void schedule(const unsigned char *block, uint32_t w[64])
{
    unsigned t;

    for (t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];

        w[t] = w[t - 16] + w[t - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

/* 6.2.2, steps 2 to 4. The working variables a..h are v[0]..v[7]. */
static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], v[8];
    unsigned t, i;

    schedule(block, w);
    memcpy(v, state, sizeof(v));
    for (t = 0; t < 64; t++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + s1 + choose + round_constants[t] + w[t];

        for (i = 7; i > 0; i--)
            v[i] = v[i - 1];
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (i = 0; i < 8; i++)
        state[i] += v[i];
}

void hob__sha256_init(struct hob__sha256 *sha)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                        0xa54ff53a, 0x510e527f, 0x9b05688c,
                                        0x1f83d9ab, 0x5be0cd19};

    memcpy(sha->state, initial, sizeof(initial));
    sha->length = 0;
}

void hob__sha256_update(struct hob__sha256 *sha, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t used = sha->length % 64;

    sha->length += size;
    while (size) {
        size_t n = 64 - used < size ? 64 - used : size;

        memcpy(sha->block + used, bytes, n);
        bytes += n;
        size -= n;
        used = (used + n) % 64;
        if (!used)
            compress(sha->state, sha->block);
    }
}

void hob__sha256_hex(struct hob__sha256 *sha, char out_hex[65])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = sha->length * 8;
    unsigned char length[8];
    unsigned i;

    for (i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    hob__sha256_update(sha, padding, 1 + (119 - sha->length % 64) % 64);
    hob__sha256_update(sha, length, sizeof(length));
    for (i = 0; i < 64; i++)
        out_hex[i] = digits[sha->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out_hex[64] = '\0';
}

int hob__sha256_file(const struct hob_os_ops *os, int fd, char out_hex[65])
{
    unsigned char *chunk = malloc(FILE_CHUNK);
    struct hob__sha256 sha;
    uint64_t offset = 0;
    int64_t n;

    if (!chunk)
        return -ENOMEM;
    hob__sha256_init(&sha);
    while ((n = os->read(os->self, fd, chunk, FILE_CHUNK, offset)) > 0) {
        hob__sha256_update(&sha, chunk, (size_t)n);
        offset += (uint64_t)n;
    }
    free(chunk);
    hob__sha256_hex(&sha, out_hex);
    return n < 0 ? (int)n : 0;
}
