/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const data_class_names[DATA_CLASSES] = {
    "T-shirt", "trousers", "pullover", "dress", "coat",
    "sandal",  "shirt",    "sneaker",  "bag",   "boot"};

/* "FOLDER/PART-WHAT-ubyte", with ".gz" unless only the plain file is there.
 * The caller frees it; NULL without memory. */
static char *file_path(const char *folder, const char *part, const char *what)
{
    size_t size = strlen(folder) + strlen(part) + strlen(what) + 16;
    char *path = malloc(size);

    if (!path)
        return NULL;
    snprintf(path, size, "%s/%s-%s-ubyte", folder, part, what);
    if (access(path, F_OK) != 0)
        snprintf(path, size, "%s/%s-%s-ubyte.gz", folder, part, what);
    return path;
}

static hob_status read_part(const char *folder, const char *part,
                            const char *what, int rank, struct idx *out,
                            hob_error *error)
{
    char *path = file_path(folder, part, what);
    hob_status st;

    if (!path)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a path");
    st = idx_read(path, rank, out, error);
    if (st == HOB_ERR_NOT_FOUND)
        hob_error_set(error, st,
                      "no data set: there is no %s; install it with "
                      "\"apt-get install dataset-fashion-mnist\" or name its "
                      "folder with --data",
                      path);
    free(path);
    return st;
}

static hob_status check(const struct data *data, const char *folder,
                        const char *part, hob_error *error)
{
    const struct idx *images = &data->images;

    if (images->shape[1] != DATA_SIDE || images->shape[2] != DATA_SIDE)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: the images of part %s are %" PRId64
                             " x %" PRId64 ", not 28 x 28",
                             folder, part, images->shape[1], images->shape[2]);
    if (images->shape[0] != data->labels.shape[0])
        return hob_error_set(
            error, HOB_ERR_FORMAT,
            "%s: part %s has %" PRId64 " images but %" PRId64 " labels", folder,
            part, images->shape[0], data->labels.shape[0]);
    for (int64_t i = 0; i < images->shape[0]; i++)
        if (data->labels.data[i] >= DATA_CLASSES)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "%s: label %" PRId64 " of part %s is %d, "
                                 "there are only classes 0 to 9",
                                 folder, i, part, data->labels.data[i]);
    return HOB_OK;
}

hob_status data_read(const char *folder, const char *part, struct data *out,
                     hob_error *error)
{
    hob_status st;

    memset(out, 0, sizeof(*out));
    st = read_part(folder, part, "images-idx3", 3, &out->images, error);
    if (!st)
        st = read_part(folder, part, "labels-idx1", 1, &out->labels, error);
    if (!st)
        st = check(out, folder, part, error);
    if (st)
        data_release(out);
    else
        out->count = out->images.shape[0];
    return st;
}

void data_release(struct data *data)
{
    idx_release(&data->images);
    idx_release(&data->labels);
    data->count = 0;
}
