/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a device, from JSON. */
#ifndef FLEX_OPTIONS_H
#define FLEX_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum flex_gemm_choice {
    FLEX_GEMM_AUTO, /* OpenBLAS where own kernels are not as good */
    FLEX_GEMM_OWN,
    FLEX_GEMM_OPENBLAS
};

struct flex_options {
    char isa[8];   /* "": the best */
    uint32_t gemm; /* enum flex_gemm_choice */
    uint64_t cache_bytes;
    uint64_t threads; /* 0: all that the host has */
};

/* Read TEXT, a flat JSON object, over the defaults in OPTIONS. Returns 0 and
 * says why in REASON where it is malformed or a key is unknown. */
int flex_options_parse(const char *text, struct flex_options *options,
                       char *reason, size_t reason_size);

#endif
