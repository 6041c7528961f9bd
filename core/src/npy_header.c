/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "npy.h"

#include "size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NumPy pads data to 64 bytes; its own reader takes 10,000 bytes of text. */
enum { MAGIC_BYTES = 6, ALIGNMENT = 64, TEXT_MAX = 1 << 16, VALUE_MAX = 64 };
static const char magic[] = "\x93NUMPY";

enum key { KEY_DESCR, KEY_FORTRAN, KEY_SHAPE, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {"descr", "fortran_order",
                                                 "shape"};

static const struct dtype_code {
    char kind;
    char size;
    uint8_t dtype;
} dtype_codes[] = {
    {'f', '8', HOB_DTYPE_F64}, {'f', '4', HOB_DTYPE_F32},
    {'f', '2', HOB_DTYPE_F16}, {'i', '8', HOB_DTYPE_I64},
    {'i', '4', HOB_DTYPE_I32}, {'i', '2', HOB_DTYPE_I16},
    {'i', '1', HOB_DTYPE_I8},  {'u', '8', HOB_DTYPE_U64},
    {'u', '4', HOB_DTYPE_U32}, {'u', '2', HOB_DTYPE_U16},
    {'u', '1', HOB_DTYPE_U8},  {'b', '1', HOB_DTYPE_BOOL},
};

/* The text while it is read. */
struct cursor {
    const char *path;
    const char *text;
    uint64_t size;
    uint64_t at;
    hob_error *error;
};

static hob_status bad(const struct cursor *cursor, const char *message)
{
    return hob_error_set(cursor->error, HOB_ERR_FORMAT,
                         "%s: NPY header, character %" PRIu64 ": %s",
                         cursor->path, cursor->at + 1, message);
}

static int peek(const struct cursor *cursor)
{
    return cursor->at < cursor->size ? (unsigned char)cursor->text[cursor->at]
                                     : -1;
}

static void skip_space(struct cursor *cursor)
{
    while (peek(cursor) == ' ' || peek(cursor) == '\n' ||
           peek(cursor) == '\t' || peek(cursor) == '\r')
        cursor->at++;
}

/* Take CHARACTER, with space before it, if it is next. */
static bool take(struct cursor *cursor, int character)
{
    skip_space(cursor);
    if (peek(cursor) != character)
        return false;
    cursor->at++;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);

    skip_space(cursor);
    if (cursor->size - cursor->at < length ||
        memcmp(cursor->text + cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* A string in either kind of quotes, without escapes. */
static hob_status read_string(struct cursor *cursor, char value[VALUE_MAX])
{
    uint32_t length = 0;
    int quote;

    skip_space(cursor);
    quote = peek(cursor);
    if (quote != '\'' && quote != '"')
        return bad(cursor, "a string is expected");
    cursor->at++;
    while (peek(cursor) != quote) {
        int c = peek(cursor);

        if (c < ' ' || c == '\\' || length + 1 == VALUE_MAX)
            return bad(cursor, "this string does not end, or holds what no "
                               "key or dtype does");
        value[length++] = (char)c;
        cursor->at++;
    }
    cursor->at++;
    value[length] = '\0';
    return HOB_OK;
}

static hob_status unsupported_descr(const struct cursor *cursor,
                                    const char *descr)
{
    const char *what = "no tensor has this dtype";

    switch (descr[0] ? descr[1] : '\0') {
    case 'O':
        what = "arrays of Python objects are not read";
        break;
    case 'c':
        what = "complex numbers are not supported";
        break;
    case 'S':
    case 'U':
        what = "arrays of strings are not supported";
        break;
    case 'V':
        what = "raw bytes are not supported; bf16 is kept in safetensors";
        break;
    default:
        break;
    }
    return hob_error_set(cursor->error, HOB_ERR_UNSUPPORTED,
                         "%s: dtype \"%s\": %s", cursor->path, descr, what);
}

static hob_status read_descr(struct cursor *cursor,
                             struct hob__npy_header *header)
{
    char descr[VALUE_MAX];
    hob_status st;

    skip_space(cursor);
    if (peek(cursor) == '[' || peek(cursor) == '(')
        return hob_error_set(cursor->error, HOB_ERR_UNSUPPORTED,
                             "%s: structured arrays are not supported; save "
                             "each field as an array",
                             cursor->path);
    st = read_string(cursor, descr);
    if (st)
        return st;
    if (!descr[0] || !strchr("<>|=", descr[0]))
        return bad(cursor, "a dtype begins with <, > or |");
    for (size_t i = 0; i < sizeof(dtype_codes) / sizeof(*dtype_codes); i++) {
        const struct dtype_code *code = &dtype_codes[i];

        if (descr[1] != code->kind || descr[2] != code->size || descr[3])
            continue;
        if (descr[0] == '|' && code->size != '1')
            return bad(cursor, "this dtype needs a byte order, < or >");
        header->meta.dtype = code->dtype;
        header->big_endian = descr[0] == '>' && code->size != '1';
        return HOB_OK;
    }
    return unsupported_descr(cursor, descr);
}

static hob_status read_fortran(struct cursor *cursor,
                               struct hob__npy_header *header)
{
    if (take_word(cursor, "True"))
        header->fortran = true;
    else if (take_word(cursor, "False"))
        header->fortran = false;
    else
        return bad(cursor, "True or False is expected");
    return HOB_OK;
}

static hob_status read_size(struct cursor *cursor, int64_t *out_size)
{
    int64_t size = 0;

    skip_space(cursor);
    if (peek(cursor) < '0' || peek(cursor) > '9')
        return bad(cursor, "a size is expected");
    while (peek(cursor) >= '0' && peek(cursor) <= '9') {
        int64_t digit = peek(cursor) - '0';

        if (size > (INT64_MAX - digit) / 10)
            return bad(cursor, "this size does not fit into 64 bits");
        size = size * 10 + digit;
        cursor->at++;
    }
    if (peek(cursor) == 'L') /* as Python 2 wrote it */
        cursor->at++;
    *out_size = size;
    return HOB_OK;
}

static hob_status read_shape(struct cursor *cursor,
                             struct hob__npy_header *header)
{
    struct hob_meta *meta = &header->meta;
    bool comma = true;
    hob_status st;

    if (!take(cursor, '('))
        return bad(cursor, "a shape in parentheses is expected");
    meta->rank = 0;
    while (!take(cursor, ')')) {
        if (!comma)
            return bad(cursor, "a comma or ) is expected");
        if (meta->rank == HOB_MAX_RANK)
            return hob_error_set(cursor->error, HOB_ERR_UNSUPPORTED,
                                 "%s: the array has more than %d dimensions",
                                 cursor->path, HOB_MAX_RANK);
        st = read_size(cursor, &meta->shape[meta->rank]);
        if (st)
            return st;
        meta->rank++;
        comma = take(cursor, ',');
    }
    /* (3) is a number in Python, not a tuple. */
    if (meta->rank == 1 && !comma)
        return bad(cursor, "a shape of one dimension ends in \",)\"");
    return HOB_OK;
}

static hob_status read_value(struct cursor *cursor, enum key key,
                             struct hob__npy_header *header)
{
    switch (key) {
    case KEY_DESCR:
        return read_descr(cursor, header);
    case KEY_FORTRAN:
        return read_fortran(cursor, header);
    default:
        return read_shape(cursor, header);
    }
}

static hob_status read_member(struct cursor *cursor, unsigned *seen,
                              struct hob__npy_header *header)
{
    char name[VALUE_MAX];
    unsigned key = 0;
    hob_status st = read_string(cursor, name);

    if (st)
        return st;
    while (key < KEY_COUNT && strcmp(name, key_names[key]) != 0)
        key++;
    if (key == KEY_COUNT)
        return bad(cursor,
                   "only descr, fortran_order and shape can stand here");
    if (*seen & 1u << key)
        return bad(cursor, "this key stands twice");
    *seen |= 1u << key;
    if (!take(cursor, ':'))
        return bad(cursor, "a colon is expected");
    return read_value(cursor, (enum key)key, header);
}

static hob_status read_dictionary(struct cursor *cursor,
                                  struct hob__npy_header *header)
{
    unsigned seen = 0;
    bool comma = true;
    hob_status st;

    if (!take(cursor, '{'))
        return bad(cursor, "a dictionary in braces is expected");
    while (!take(cursor, '}')) {
        if (!comma)
            return bad(cursor, "a comma or } is expected");
        st = read_member(cursor, &seen, header);
        if (st)
            return st;
        comma = take(cursor, ',');
    }
    if (seen != (1u << KEY_COUNT) - 1)
        return bad(cursor, "descr, fortran_order or shape is missing");
    skip_space(cursor);
    if (cursor->at != cursor->size)
        return bad(cursor, "nothing but space may follow the dictionary");
    return HOB_OK;
}

/* Find the text: the length of the preamble is in CURSOR->at afterwards. */
static hob_status read_preamble(struct cursor *cursor)
{
    const unsigned char *bytes = (const unsigned char *)cursor->text;
    uint32_t length;
    uint32_t preamble;

    if (cursor->size < MAGIC_BYTES + 4 ||
        memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return hob_error_set(cursor->error, HOB_ERR_FORMAT,
                             "%s: not an NPY file: it does not begin with "
                             "\\x93NUMPY",
                             cursor->path);
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return hob_error_set(cursor->error, HOB_ERR_UNSUPPORTED,
                             "%s: NPY version %d.%d; 1.0, 2.0 and 3.0 are "
                             "known",
                             cursor->path, bytes[6], bytes[7]);
    preamble = bytes[6] == 1 ? 10 : 12;
    length = (uint32_t)bytes[8] | (uint32_t)bytes[9] << 8;
    if (bytes[6] > 1 && cursor->size >= preamble)
        length |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
    if (cursor->size < preamble || length > cursor->size - preamble)
        return hob_error_set(cursor->error, HOB_ERR_FORMAT,
                             "%s: the file ends in its NPY header (%" PRIu64
                             " bytes, the header says %" PRIu32 ")",
                             cursor->path, cursor->size, length);
    if (length > TEXT_MAX)
        return hob_error_set(cursor->error, HOB_ERR_FORMAT,
                             "%s: an NPY header of %" PRIu32
                             " bytes; at most %d are read",
                             cursor->path, length, TEXT_MAX);
    cursor->at = 0;
    cursor->text += preamble;
    cursor->size = length;
    return HOB_OK;
}

/* Compare what the shape needs with what the file has. */
static hob_status check_bytes(struct hob__npy_header *header, uint64_t size,
                              const char *path, hob_error *error)
{
    uint64_t bytes = hob_dtype_size(header->meta.dtype);
    bool empty = false;
    hob_status st = HOB_OK;

    /* Also an empty array's other sizes have a product that fits: strides
     * are made of them. */
    for (uint32_t i = 0; i < header->meta.rank && !st; i++) {
        uint64_t dim = (uint64_t)header->meta.shape[i];

        empty |= dim == 0;
        st = hob__size_mul(bytes, dim ? dim : 1, &bytes);
    }
    if (st || bytes > INT64_MAX)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: the shape in the NPY header needs more than "
                             "2^63 bytes",
                             path);
    header->data_bytes = empty ? 0 : bytes;
    if (header->data_bytes == size - header->data_offset)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_FORMAT,
                         "%s: %" PRIu64 " bytes follow the NPY header, its "
                         "shape needs %" PRIu64 "; is the file %s?",
                         path, size - header->data_offset, header->data_bytes,
                         header->data_bytes > size - header->data_offset
                             ? "truncated"
                             : "several arrays in one");
}

hob_status hob__npy_parse(const char *path, const void *data, uint64_t size,
                          struct hob__npy_header *out_header, hob_error *error)
{
    struct cursor cursor = {path, data, size, 0, error};
    hob_status st = read_preamble(&cursor);

    memset(out_header, 0, sizeof(*out_header));
    if (st)
        return st;
    st = read_dictionary(&cursor, out_header);
    if (st)
        return st;
    out_header->data_offset =
        (uint64_t)(cursor.text + cursor.size - (const char *)data);
    return check_bytes(out_header, size, path, error);
}

static bool machine_is_big(void)
{
    const uint16_t probe = 1;

    return *(const unsigned char *)&probe == 0;
}

uint32_t hob__npy_format(const struct hob_meta *meta, unsigned char *text)
{
    const struct dtype_code *code = NULL;
    char *out = (char *)text + 10;
    int length;
    int total;

    for (size_t i = 0; i < sizeof(dtype_codes) / sizeof(*dtype_codes); i++)
        if (dtype_codes[i].dtype == meta->dtype)
            code = &dtype_codes[i];
    if (!code)
        return 0;
    /* Nine numbers of 20 characters fit HOB__NPY_HEADER_MAX easily. */
    length = sprintf(out,
                     "{'descr': '%c%c%c', 'fortran_order': False, "
                     "'shape': (",
                     code->size == '1' ? '|' : (machine_is_big() ? '>' : '<'),
                     code->kind, code->size);
    for (uint32_t i = 0; i < meta->rank; i++)
        length += sprintf(out + length, "%" PRId64 "%s", meta->shape[i],
                          meta->rank == 1       ? ","
                          : i + 1u < meta->rank ? ", "
                                                : "");
    length += sprintf(out + length, "), }");
    total = (10 + length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(out + length, ' ', (size_t)(total - 10 - length));
    text[total - 1] = '\n';
    memcpy(text, magic, MAGIC_BYTES);
    text[6] = 1;
    text[7] = 0;
    text[8] = (unsigned char)(total - 10);
    text[9] = (unsigned char)((total - 10) >> 8);
    return (uint32_t)total;
}

bool hob__npy_is_plain(const struct hob__npy_header *header)
{
    uint32_t wide = 0; /* dimensions that matter for the order */
    bool ordered;

    for (uint32_t i = 0; i < header->meta.rank; i++)
        wide += header->meta.shape[i] != 1;
    ordered = !header->fortran || wide < 2;
    return ordered && (hob_dtype_size(header->meta.dtype) == 1 ||
                       header->big_endian == machine_is_big());
}

static void copy_element(unsigned char *out, const unsigned char *in,
                         uint32_t size, bool swap)
{
    for (uint32_t i = 0; i < size; i++)
        out[i] = in[swap ? size - 1 - i : i];
}

void hob__npy_reorder(const struct hob__npy_header *header, const void *in,
                      void *out)
{
    const struct hob_meta *meta = &header->meta;
    uint32_t size = hob_dtype_size(meta->dtype);
    uint64_t count = header->data_bytes / size;
    bool swap = size > 1 && header->big_endian != machine_is_big();
    int64_t index[HOB_MAX_RANK] = {0};
    int64_t strides[HOB_MAX_RANK];
    int64_t stride = 1;
    int64_t at = 0;

    for (uint32_t i = 0; i < meta->rank; i++) {
        uint32_t dim = header->fortran ? i : meta->rank - 1 - i;

        strides[dim] = stride;
        stride *= meta->shape[dim];
    }
    for (uint64_t done = 0; done < count; done++) {
        copy_element((unsigned char *)out + done * size,
                     (const unsigned char *)in + (uint64_t)at * size, size,
                     swap);
        /* The next index in row-major order. */
        for (uint32_t dim = meta->rank; dim-- > 0;) {
            at += strides[dim];
            if (++index[dim] < meta->shape[dim])
                break;
            at -= strides[dim] * meta->shape[dim];
            index[dim] = 0;
        }
    }
}
