/* SPDX-License-Identifier: Apache-2.0 */
#include "array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs come from others: they name no files elsewhere. */
static int stays_inside(const char *path)
{
    const char *at = path;

    if (!*path || *path == '/' || strpbrk(path, "\\:"))
        return 0;
    while ((at = strstr(at, ".."))) {
        if ((at == path || at[-1] == '/') && (!at[2] || at[2] == '/'))
            return 0;
        at += 2;
    }
    return 1;
}

static hob_status check_shape(const char *path, const cJSON *item,
                              const hob_tensor *tensor, hob_error *error)
{
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(item, "shape");
    int64_t shape[HOB_MAX_RANK];
    int32_t rank = 0;
    hob_status status;

    if (!json || cJSON_IsNull(json))
        return HOB_OK;
    status = shape_from_json(json, shape, &rank, error);
    if (!status && (rank != hob_tensor_rank(tensor) ||
                    memcmp(shape, hob_tensor_shape(tensor),
                           (size_t)rank * sizeof(shape[0]))))
        status =
            hob_error_set(error, HOB_ERR_FORMAT,
                          "%s has another shape than \"shape\" says", path);
    return status;
}

/* Cast what NPY has no dtype for; else the dtypes must agree. */
static hob_status settle_dtype(const struct run *run, const char *path,
                               const cJSON *item, hob_tensor **tensor,
                               hob_error *error)
{
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    uint32_t have = hob_tensor_dtype(*tensor);
    uint32_t want =
        cJSON_IsString(json) ? dtype_from_name(json->valuestring) : have;

    if (want == have)
        return HOB_OK;
    if (want != HOB_DTYPE_BF16 || have != HOB_DTYPE_F32)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s holds %s, \"dtype\" says %s", path,
                             hob_dtype_name(have),
                             cJSON_IsString(json) ? json->valuestring : "?");
    *tensor = hob_cast(run->scope, *tensor, HOB_DTYPE_BF16);
    return hob_scope_error(run->scope, error);
}

hob_status array_load(const struct run *run, const cJSON *item,
                      hob_tensor **out_tensor, hob_error *error)
{
    const cJSON *npy = cJSON_GetObjectItemCaseSensitive(item, "npy");
    const char *folder = run->program->folder ? run->program->folder : "";
    char *path;
    size_t size;
    hob_status status;

    *out_tensor = NULL;
    if (!cJSON_IsString(npy) || !stays_inside(npy->valuestring))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"npy\" must name a file in the folder of the "
                             "program or below, as in \"x1.npy\"%s%s",
                             cJSON_IsString(npy) ? ", not " : "",
                             cJSON_IsString(npy) ? npy->valuestring : "");
    size = strlen(folder) + strlen(npy->valuestring) + 1;
    path = malloc(size);
    if (!path)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a path");
    snprintf(path, size, "%s%s", folder, npy->valuestring);
    status = hob_npy_load(run->scope, run->device, path, out_tensor, error);
    if (!status)
        status = check_shape(path, item, *out_tensor, error);
    if (!status)
        status = settle_dtype(run, path, item, out_tensor, error);
    free(path);
    return status;
}
