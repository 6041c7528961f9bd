/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_read.h - what the parts of the manifest's parser share.
 *
 * A reader carries document, arena and the reason of the first failure. Its
 * getters leave the output alone where a key is absent.
 */
#ifndef HOB__MANIFEST_READ_H
#define HOB__MANIFEST_READ_H

#include "json.h"
#include "manifest.h"

struct hob__reader {
    const struct hob__json_doc *doc;
    struct hob__manifest *manifest;
    struct hob__arena *arena; /* the manifest's */
    enum hob__reason reason;
    hob_error *error;
};

/* Fail at VALUE with REASON; the message gets place and pointer. */
hob_status hob__reader_fail(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            enum hob__reason reason, const char *format, ...)
    HOB_PRINTF(4, 5);

/* Fail because memory ran out. */
hob_status hob__reader_no_memory(struct hob__reader *reader);

/* Fail unless VALUE is of TYPE; absent (NULL) is fine. */
hob_status hob__reader_expect(struct hob__reader *reader,
                              const struct hob__json_value *value,
                              enum hob__json_type type);

/* As hob__json_member(), but a missing KEY is a failure. */
hob_status hob__reader_need(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            const char *key,
                            const struct hob__json_value **out_value);

/* Copy string VALUE, which is not empty. */
hob_status hob__reader_copy(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            const char **out_string);

hob_status hob__reader_string(struct hob__reader *reader,
                              const struct hob__json_value *object,
                              const char *key, bool is_needed,
                              const char **out_string);
hob_status hob__reader_strings(struct hob__reader *reader,
                               const struct hob__json_value *object,
                               const char *key,
                               struct hob__strings *out_strings);
hob_status hob__reader_bool(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            const char *key, bool *out_bool);
hob_status hob__reader_int(struct hob__reader *reader,
                           const struct hob__json_value *object,
                           const char *key, int64_t low, int64_t high,
                           int32_t *out_int);

/* Note keys of OBJECT that are not among KNOWN (NULL-terminated). */
hob_status hob__reader_note_unknown(struct hob__reader *reader,
                                    const struct hob__json_value *object,
                                    const char *const *known);

/* Copy a library path after the checks of MAN-4. */
hob_status hob__reader_path(struct hob__reader *reader,
                            const struct hob__json_value *value,
                            const char **out_path);

/* Copy a SHA-256 in lower-case hexadecimal digits. */
hob_status hob__reader_sha256(struct hob__reader *reader,
                              const struct hob__json_value *object,
                              const char **out_sha256);

/* [a-z][a-z0-9_]*: ops, namespaces, features, options. */
bool hob__is_word(const char *text);
/* [a-z0-9][a-z0-9._-]{1,63}: ids; LEAST is the least length. */
bool hob__is_id(const char *text, unsigned least);

/* The parts, in manifest_parts.c and manifest_ops.c. */
hob_status hob__reader_library(struct hob__reader *reader,
                               const struct hob__json_value *value);
hob_status hob__reader_backend(struct hob__reader *reader,
                               const struct hob__json_value *root);
hob_status hob__reader_decorator(struct hob__reader *reader,
                                 const struct hob__json_value *root);
hob_status hob__reader_requires(struct hob__reader *reader,
                                const struct hob__json_value *root);
hob_status hob__reader_extension(struct hob__reader *reader,
                                 const struct hob__json_value *root);
hob_status hob__reader_implements(struct hob__reader *reader,
                                  const struct hob__json_value *root);
hob_status hob__reader_patterns(struct hob__reader *reader,
                                const struct hob__json_value *root);

/* Check OP's signature and that its infer function fits, and lay it flat;
 * OBJECT declares it. In manifest_infer.c. */
hob_status hob__reader_signature(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op);

#endif
