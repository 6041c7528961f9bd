/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - elements as NPY files beside the program.
 *
 * NPY (numpy.lib.format, version 1.0): the magic, the length of a text, the
 * text, which is a Python dictionary, and the elements. It has no bf16: those
 * are written as f32, which holds them exactly.
 */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room for a name as in "v12". */
enum { NAME_SIZE = 24 };

struct hob_meta rec_meta_of(const hob_tensor *tensor)
{
    struct hob_meta meta;

    memset(&meta, 0, sizeof(meta));
    meta.dtype = (uint8_t)hob_tensor_dtype(tensor);
    meta.rank = (uint8_t)hob_tensor_rank(tensor);
    memcpy(meta.shape, hob_tensor_shape(tensor),
           (size_t)meta.rank * sizeof(meta.shape[0]));
    return meta;
}

/* ---- elements ---- */

/*
 * TENSOR's elements, which the caller frees, and their *OUT_BYTES; NULL, with
 * the recorder stopped, on failure. They are read one level down: a layer
 * above that is lazy would call this one to make them.
 */
static void *read_elements(struct rec_layer *layer, hob_tensor *tensor,
                           size_t *out_bytes)
{
    const struct hob_host *host = layer->host;
    hob_tensor *below = host->alias(tensor, layer->level - 1);
    size_t bytes = (size_t)hob_tensor_count(tensor) *
                   hob_dtype_size(hob_tensor_dtype(tensor));
    void *data = malloc(bytes ? bytes : 1);
    char *message = NULL;
    hob_status status = HOB_ERR_MEMORY;

    if (below && data)
        status = host->read(below, data, bytes, &message);
    if (status) {
        rec_stop_locked(layer, "the elements of a tensor cannot be read: %s",
                        message ? message : "no memory");
        free(data);
        data = NULL;
    }
    host->mem_free(host, message);
    host->tensor_unref(below);
    *out_bytes = bytes;
    return data;
}

/* The code of a dtype in NPY, after its byte order. */
static const char *npy_code(uint32_t dtype)
{
    static const char *const codes[HOB_DTYPE_COUNT_] = {
        [HOB_DTYPE_F64] = "f8",  [HOB_DTYPE_F32] = "f4", [HOB_DTYPE_F16] = "f2",
        [HOB_DTYPE_BF16] = "f4", [HOB_DTYPE_I64] = "i8", [HOB_DTYPE_I32] = "i4",
        [HOB_DTYPE_I16] = "i2",  [HOB_DTYPE_I8] = "i1",  [HOB_DTYPE_U64] = "u8",
        [HOB_DTYPE_U32] = "u4",  [HOB_DTYPE_U16] = "u2", [HOB_DTYPE_U8] = "u1",
        [HOB_DTYPE_BOOL] = "b1"};

    return dtype < HOB_DTYPE_COUNT_ ? codes[dtype] : NULL;
}

static void put_header(FILE *out, const struct hob_meta *meta)
{
    const uint16_t probe = 1;
    const char *code = npy_code(meta->dtype);
    char order = *(const unsigned char *)&probe ? '<' : '>';
    char text[320]; /* eight sizes of 20 digits and the words fit */
    int length = snprintf(text, sizeof(text),
                          "{'descr': '%c%s', 'fortran_order': False, "
                          "'shape': (",
                          code[1] == '1' ? '|' : order, code);
    int total;

    for (uint32_t i = 0; i < meta->rank; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "%" PRId64 ",", meta->shape[i]);
    length += snprintf(text + length, sizeof(text) - (size_t)length, "), }");
    total = (10 + length + 1 + 63) / 64 * 64; /* as NumPy aligns it */
    fprintf(out, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, (total - 10) & 255,
            (total - 10) >> 8, text, total - 10 - length - 1, "");
}

/* bf16 is the upper half of f32. */
static void put_bf16(FILE *out, const uint16_t *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t wide = (uint32_t)data[i] << 16;

        fwrite(&wide, sizeof(wide), 1, out);
    }
}

/* The file of the value called NAME: "dir/bug.json" gives "dir/bug.x1.npy".
 * The caller frees it. */
static char *file_name(const struct rec_layer *layer, const char *name)
{
    const char *path = layer->journal.path;
    size_t length = strlen(path);
    size_t size = length + NAME_SIZE + sizeof("..npy");
    char *file = malloc(size);

    if (length > 5 && !strcmp(path + length - 5, ".json"))
        length -= 5;
    if (file)
        snprintf(file, size, "%.*s.%s.npy", (int)length, path, name);
    return file;
}

/* Write DATA as the file of the value called NAME. */
static int save(struct rec_layer *layer, const char *name,
                const struct hob_meta *meta, const void *data, size_t bytes)
{
    char *path = file_name(layer, name);
    FILE *out = path ? fopen(path, "wb") : NULL;
    int failed = !out;

    if (out) {
        put_header(out, meta);
        if (meta->dtype == HOB_DTYPE_BF16)
            put_bf16(out, data, bytes / 2);
        else
            fwrite(data, 1, bytes, out);
        failed = ferror(out);
        failed |= fclose(out);
    }
    if (failed) {
        rec_stop_locked(layer, "%s: %s", path ? path : name, strerror(errno));
        if (out)
            remove(path);
    }
    free(path);
    return !failed;
}

void rec_array_save_locked(struct rec_layer *layer, const char *name,
                           hob_tensor *tensor)
{
    struct hob_meta meta = rec_meta_of(tensor);
    size_t bytes;
    void *data = read_elements(layer, tensor, &bytes);

    if (data)
        save(layer, name, &meta, data, bytes);
    free(data);
}

void rec_array_describe(const struct rec_layer *layer, FILE *out,
                        const char *name, const struct hob_meta *meta,
                        int has_file)
{
    char *path = has_file ? file_name(layer, name) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *base = slash ? slash + 1 : path;

    fprintf(out, ", \"dtype\": \"%s\", \"shape\": [",
            hob_dtype_name(meta->dtype));
    for (uint32_t i = 0; i < meta->rank; i++)
        fprintf(out, "%s%" PRId64, i ? ", " : "", meta->shape[i]);
    fputc(']', out);
    if (base) {
        fputs(", \"npy\": ", out);
        rec_put_string(out, base, strlen(base));
    }
    fputc('}', out);
    free(path);
}

/* ---- inputs ---- */

/* 128 bits of DATA in two lanes that mix differently: two inputs of a program
 * with equal hashes are not to be expected. */
static void hash_elements(const unsigned char *data, size_t bytes,
                          uint64_t out[2])
{
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t b = UINT64_C(0xc2b2ae3d27d4eb4f);

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;

        memcpy(&word, data + i, bytes - i < 8 ? bytes - i : 8);
        a = (a ^ word) * UINT64_C(0xff51afd7ed558ccd);
        a ^= a >> 29;
        b = (b + word) * UINT64_C(0xbf58476d1ce4e5b9);
        b ^= b >> 31;
    }
    out[0] = a;
    out[1] = b;
}

static int is_same(const struct rec_input *a, const struct rec_input *b)
{
    return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] &&
           !memcmp(&a->meta, &b->meta, sizeof(a->meta));
}

/* Room for one more input; 0 without memory. */
static int reserve(struct rec_layer *layer)
{
    uint64_t capacity = layer->input_capacity * 2 + 16;
    struct rec_input *grown;

    if (layer->input_count < layer->input_capacity)
        return 1;
    grown = realloc(layer->inputs, capacity * sizeof(*grown));
    if (!grown) {
        rec_stop_locked(layer, "no memory for an input");
        return 0;
    }
    layer->inputs = grown;
    layer->input_capacity = capacity;
    return 1;
}

/* Write the line that makes NAME of its file. */
static int put_line(struct rec_layer *layer, const char *name,
                    const struct hob_meta *meta)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int failed = ENOMEM;

    if (out) {
        fprintf(out, "{\"name\": \"%s\"", name);
        rec_array_describe(layer, out, name, meta, 1);
        failed = fclose(out) ? ENOMEM : rec_journal_put(&layer->journal, text);
    }
    if (failed)
        rec_stop_journal_locked(layer, failed);
    free(text);
    return !failed;
}

uint64_t rec_input_locked(struct rec_layer *layer, hob_tensor *tensor)
{
    struct rec_input input;
    char name[NAME_SIZE];
    uint64_t number = 0;
    size_t bytes;
    void *data = read_elements(layer, tensor, &bytes);

    if (!data)
        return 0;
    input.meta = rec_meta_of(tensor);
    hash_elements(data, bytes, input.hash);
    for (uint64_t i = 0; i < layer->input_count && !number; i++)
        if (is_same(&layer->inputs[i], &input))
            number = layer->inputs[i].number;
    if (!number && reserve(layer)) {
        input.number = layer->input_count + 1;
        snprintf(name, sizeof(name), "x%" PRIu64, input.number);
        if (save(layer, name, &input.meta, data, bytes) &&
            put_line(layer, name, &input.meta)) {
            number = input.number;
            layer->inputs[layer->input_count++] = input;
        }
    }
    free(data);
    return number;
}
