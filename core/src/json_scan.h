/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h - the strict scan that comes before cJSON (MAN-2).
 *
 * cJSON lets through what RFC 8259 forbids, recurses and keeps no positions.
 * The scan is iterative, refuses what must be refused and notes every value's
 * place. It decodes nothing: json.h does, on top of it.
 */
#ifndef HOB__JSON_SCAN_H
#define HOB__JSON_SCAN_H

#include "reasons.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOB__JSON_NONE UINT32_MAX

enum hob__json_type {
    HOB__JSON_NULL,
    HOB__JSON_BOOL,
    HOB__JSON_NUMBER,
    HOB__JSON_STRING,
    HOB__JSON_ARRAY,
    HOB__JSON_OBJECT
};

/* A value's place in the text. Values are numbered in order of the text. */
struct hob__json_value {
    uint32_t parent; /* HOB__JSON_NONE for the root */
    uint32_t next;   /* sibling, or HOB__JSON_NONE */
    uint32_t first;  /* child, or HOB__JSON_NONE */
    uint32_t last;
    uint32_t count;  /* of children */
    uint32_t offset; /* in bytes; a string's includes its quotes */
    uint32_t length;
    uint32_t key_offset; /* of the key's opening quote */
    uint32_t key_length; /* with both quotes; 0: not a member */
    enum hob__json_type type;
    bool is_integer; /* a number without fraction and exponent */
};

struct hob__json_scan {
    const unsigned char *text; /* borrowed */
    size_t size;
    size_t start; /* 3 after a byte order mark, else 0 */
    uint32_t max_depth;
    struct hob__json_value *values; /* owned */
    uint32_t count;
    uint32_t capacity;
    /* On failure: */
    size_t error_offset;
    uint32_t error_parent; /* the container that was open, or NONE */
    enum hob__reason reason;
    const char *message; /* a constant */
};

/*
 * Scan SIZE bytes at TEXT into OUT_SCAN, which the caller always ends with
 * hob__json_scan_release(). Containers may nest MAX_DEPTH deep. Fails with
 * HOB_ERR_FORMAT (the error members are set) and HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__json_scan(const void *text, size_t size,
                                         uint32_t max_depth,
                                         struct hob__json_scan *out_scan);

void hob__json_scan_release(struct hob__json_scan *scan);

/* Line and column of OFFSET, from 1, the column in characters. */
void hob__json_position(const unsigned char *text, size_t offset,
                        uint32_t *out_line, uint32_t *out_column);

/*
 * Length of the well-formed UTF-8 sequence at TEXT, of which SIZE bytes are
 * left; 0 if it is not well-formed.
 */
size_t hob__utf8_length(const unsigned char *text, size_t size);

#endif
