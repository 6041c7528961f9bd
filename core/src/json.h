/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - reading JSON with errors that name the place.
 *
 * A document is scanned strictly (json_scan.h), then cJSON builds the tree.
 * Values are pointers into the document and end with it. A document is
 * immutable. Errors read "PATH:LINE:COLUMN: POINTER: what is wrong".
 */
#ifndef HOB__JSON_H
#define HOB__JSON_H

#include "json_scan.h"

#include <hob/status.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hob__json_doc;   /* opaque */
struct hob__json_value; /* in json_scan.h; read TYPE and COUNT only */

struct hob__json_limits {
    size_t max_size;    /* in bytes, below 4 GiB */
    uint32_t max_depth; /* at most 1000: cJSON recurses */
};

/* Those of manifests and config files; data files have larger ones. */
#define HOB__JSON_MANIFEST_LIMITS                                              \
    {                                                                          \
        1u << 20, 16                                                           \
    }

/*
 * Parse SIZE bytes at TEXT, which is copied. PATH is for messages. On failure
 * *OUT_DOC is NULL and *OUT_REASON, if wanted, the code (OK if memory ran
 * out). Fails with HOB_ERR_FORMAT, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__json_parse(const char *path, const void *text,
                                          size_t size,
                                          const struct hob__json_limits *limits,
                                          struct hob__json_doc **out_doc,
                                          enum hob__reason *out_reason,
                                          hob_error *error);

/* Accepts NULL. */
void hob__json_free(struct hob__json_doc *doc);

const struct hob__json_value *hob__json_root(const struct hob__json_doc *doc);

/* Children in order: the first, then the next; NULL at the end. */
const struct hob__json_value *
hob__json_first(const struct hob__json_doc *doc,
                const struct hob__json_value *value);
const struct hob__json_value *
hob__json_next(const struct hob__json_doc *doc,
               const struct hob__json_value *value);

/* The key of a member, decoded; NULL for an element of an array. */
const char *hob__json_key(const struct hob__json_doc *doc,
                          const struct hob__json_value *value);

/* The member KEY of OBJECT; NULL if absent or if OBJECT is no object. */
const struct hob__json_value *
hob__json_member(const struct hob__json_doc *doc,
                 const struct hob__json_value *object, const char *key);

/* "object", "string", ... for messages. */
const char *hob__json_type_name(enum hob__json_type type);

/* The value's own text, not NUL-terminated. */
const char *hob__json_text(const struct hob__json_doc *doc,
                           const struct hob__json_value *value,
                           size_t *out_length);

void hob__json_place(const struct hob__json_doc *doc,
                     const struct hob__json_value *value, uint32_t *out_line,
                     uint32_t *out_column);

/* The JSON pointer ("/ops/0/name"; "" for the root); the caller frees it. */
char *hob__json_pointer(const struct hob__json_doc *doc,
                        const struct hob__json_value *value);

/* Put STATUS and "PATH:LINE:COLUMN: POINTER: message" into ERROR. */
hob_status hob__json_fail(const struct hob__json_doc *doc,
                          const struct hob__json_value *value, hob_error *error,
                          hob_status status, const char *format, ...)
    HOB_PRINTF(5, 6);

/*
 * Typed reads. They fail with HOB_ERR_FORMAT, saying what was expected and
 * what stands there. A string is borrowed from DOC.
 */
HOB_MUST_CHECK hob_status hob__json_expect(const struct hob__json_doc *doc,
                                           const struct hob__json_value *value,
                                           enum hob__json_type type,
                                           hob_error *error);
HOB_MUST_CHECK hob_status hob__json_string(const struct hob__json_doc *doc,
                                           const struct hob__json_value *value,
                                           const char **out_string,
                                           hob_error *error);
HOB_MUST_CHECK hob_status hob__json_int(const struct hob__json_doc *doc,
                                        const struct hob__json_value *value,
                                        int64_t low, int64_t high,
                                        int64_t *out_int, hob_error *error);
HOB_MUST_CHECK hob_status hob__json_uint(const struct hob__json_doc *doc,
                                         const struct hob__json_value *value,
                                         uint64_t high, uint64_t *out_uint,
                                         hob_error *error);
HOB_MUST_CHECK hob_status hob__json_double(const struct hob__json_doc *doc,
                                           const struct hob__json_value *value,
                                           double *out_double,
                                           hob_error *error);
HOB_MUST_CHECK hob_status hob__json_bool(const struct hob__json_doc *doc,
                                         const struct hob__json_value *value,
                                         bool *out_bool, hob_error *error);

#endif
