/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_map.h - a whole file, mapped for reading.
 *
 * A map is counted: a tensor whose elements are the file's holds a reference.
 * It stays what it was when the file is replaced by renaming, as Hob itself
 * does it; a program that truncates a mapped file kills its readers.
 */
#ifndef HOB__FILE_MAP_H
#define HOB__FILE_MAP_H

#include <hob/status.h>

struct hob__file_map;

/*
 * Map the regular file PATH. On success *OUT_MAP holds one reference. Fails
 * with HOB_ERR_NOT_FOUND, HOB_ERR_IO.
 */
HOB_MUST_CHECK hob_status hob__file_map_open(const char *path,
                                             struct hob__file_map **out_map,
                                             hob_error *error);
void hob__file_map_ref(struct hob__file_map *map);
void hob__file_map_unref(struct hob__file_map *map); /* accepts NULL */

const unsigned char *hob__file_map_data(const struct hob__file_map *map);
uint64_t hob__file_map_size(const struct hob__file_map *map);

#endif
