/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - the header of a safetensors file, apart from tensors.
 *
 * Format: https://github.com/huggingface/safetensors (README, "Format"):
 * eight bytes with the length of the header, little-endian; the header, a
 * JSON object that may end in spaces; the elements, little-endian, which the
 * tensors cover without gaps and overlaps.
 */
#ifndef HOB__SAFETENSORS_H
#define HOB__SAFETENSORS_H

#include <hob/types.h>

/* What the format allows. */
enum { HOB__SAFETENSORS_HEADER_MAX = 100000000 };

struct hob__safetensors_entry {
    const char *name;      /* borrowed from the header */
    const char *type_name; /* "F32" */
    struct hob_meta meta;  /* dtype NONE if no tensor can hold it */
    uint64_t rank;         /* over HOB_MAX_RANK: no tensor can hold it */
    uint64_t offset;       /* in the file */
    uint64_t bytes;
};

struct hob__safetensors_header; /* opaque */

/*
 * Read and check the header of a file of SIZE bytes that begins at DATA. PATH
 * is for messages. Fails with HOB_ERR_FORMAT, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__safetensors_parse(
    const char *path, const void *data, uint64_t size,
    struct hob__safetensors_header **out_header, hob_error *error);
void hob__safetensors_free(struct hob__safetensors_header *header);

uint32_t hob__safetensors_count(const struct hob__safetensors_header *header);
/* Entry INDEX, in the order of the header's text. */
const struct hob__safetensors_entry *
hob__safetensors_entry(const struct hob__safetensors_header *header,
                       uint32_t index);
/* The entry called NAME, or NULL. */
const struct hob__safetensors_entry *
hob__safetensors_find(const struct hob__safetensors_header *header,
                      const char *name);
/* The value of KEY in __metadata__, or NULL. */
const char *hob__safetensors_value(const struct hob__safetensors_header *header,
                                   const char *key);

/* "F32" and so on; NULL for a dtype that the format has not. */
const char *hob__safetensors_type(uint32_t dtype);

#endif
