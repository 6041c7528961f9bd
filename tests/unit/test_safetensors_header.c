/* SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"

#include "hob_check.h"

#include <stdio.h>

static hob_error error;

/* A file in memory: the length, the text, DATA_BYTES zeros. malloc'ed. */
static unsigned char *make(const char *text, size_t data_bytes,
                           size_t *out_size)
{
    size_t length = strlen(text);
    unsigned char *file;

    *out_size = 8 + length + data_bytes;
    file = calloc(1, *out_size);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(length >> (8 * i));
    memcpy(file + 8, text, length);
    return file;
}

START_TEST(test_safetensors_parse_reads)
{
    static const char text[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"\\u00e9\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[4,20]},"
        "\"a\\n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]},"
        "\"empty\":{\"dtype\":\"BF16\",\"shape\":[3,0],"
        "\"data_offsets\":[20,20]},"
        "\"one\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[20,21]},"
        "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,1,1,1,1,1,1,1,1,3],"
        "\"data_offsets\":[21,24]}}   ";
    struct hob__safetensors_header *header;
    const struct hob__safetensors_entry *entry;
    size_t size;
    unsigned char *file = make(text, 24, &size);

    ck_assert_hob_ok(hob__safetensors_parse("x", file, size, &header, &error));
    ck_assert_uint_eq(hob__safetensors_count(header), 5);
    ck_assert_str_eq(hob__safetensors_entry(header, 0)->name, "b");
    ck_assert_str_eq(hob__safetensors_entry(header, 1)->name, "a\n");
    entry = hob__safetensors_find(header, "b");
    ck_assert_ptr_nonnull(entry);
    ck_assert_int_eq(entry->meta.dtype, HOB_DTYPE_F32);
    ck_assert_int_eq(entry->meta.rank, 2);
    ck_assert_int_eq(entry->meta.shape[1], 2);
    ck_assert_uint_eq(entry->bytes, 16);
    ck_assert_uint_eq(entry->offset, size - 20);
    entry = hob__safetensors_find(header, "f8");
    ck_assert_int_eq(entry->meta.dtype, HOB_DTYPE_NONE);
    ck_assert_uint_eq(entry->rank, 10);
    ck_assert_str_eq(entry->type_name, "F8_E4M3");
    ck_assert_uint_eq(hob__safetensors_find(header, "empty")->bytes, 0);
    ck_assert_ptr_null(hob__safetensors_find(header, "c"));
    ck_assert_ptr_null(hob__safetensors_find(header, "__metadata__"));
    ck_assert_str_eq(hob__safetensors_value(header, "format"), "pt");
    ck_assert_str_eq(hob__safetensors_value(header, "note"), "\xc3\xa9");
    ck_assert_ptr_null(hob__safetensors_value(header, "none"));
    hob__safetensors_free(header);
    hob__safetensors_free(NULL);
    free(file);
}
END_TEST

START_TEST(test_safetensors_parse_reads_no_tensors)
{
    struct hob__safetensors_header *header;
    size_t size;
    unsigned char *file = make("{}", 0, &size);

    ck_assert_hob_ok(hob__safetensors_parse("x", file, size, &header, &error));
    ck_assert_uint_eq(hob__safetensors_count(header), 0);
    ck_assert_ptr_null(hob__safetensors_find(header, "a"));
    ck_assert_ptr_null(hob__safetensors_value(header, "a"));
    hob__safetensors_free(header);
    free(file);
}
END_TEST

/* "a", with DTYPE, SHAPE and OFFSETS as given. */
#define TENSOR(dtype, shape, offsets)                                          \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape                             \
    ",\"data_offsets\":" offsets "}}"

static const struct bad {
    const char *text;
    size_t bytes;
    const char *message;
} bads[] = {
    {"", 8, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {" {}", 0, "does not begin with {"},
    {"{}", 1, "cover 0 of 1 bytes"},
    {"{", 8, "x:1:"},
    {"{}x", 0, "x:1:3"},
    {TENSOR("\"F32\"", "[1]", "[0,4]"), 3, "truncated"},
    {TENSOR("\"F32\"", "[1]", "[0,4]"), 5, "cover 4 of 5"},
    {TENSOR("\"F32\"", "[1]", "[1,5]"), 5, "leaves a gap"},
    {TENSOR("\"F32\"", "[1]", "[4,0]"), 4, "bytes 4 to 0"},
    {TENSOR("\"F32\"", "[1]", "[0,18446744073709551616]"), 4, "is not in"},
    {TENSOR("\"F32\"", "[1]", "[0]"), 4, "two offsets"},
    {TENSOR("\"F32\"", "[1]", "[0,2,4]"), 4, "two offsets"},
    {TENSOR("\"F32\"", "[1]", "4"), 4, "array expected"},
    {TENSOR("\"F32\"", "[1]", "[0,4.0]"), 4, "integer expected"},
    {TENSOR("\"F32\"", "[1]", "[0,-4]"), 4, "is not in"},
    {TENSOR("\"F32\"", "[2]", "[0,4]"), 4, "need 8 bytes"},
    {TENSOR("\"F32\"", "[0]", "[0,4]"), 4, "need 0 bytes"},
    {TENSOR("\"F32\"", "[1e0]", "[0,4]"), 4, "integer expected"},
    {TENSOR("\"F32\"", "[-1]", "[0,4]"), 4, "is not in"},
    {TENSOR("\"F32\"", "1", "[0,4]"), 4, "array expected"},
    {TENSOR("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4, "too many"},
    {TENSOR("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"), 0, "too many"},
    {TENSOR("\"F99\"", "[1]", "[0,4]"), 4, "\"F99\" is no dtype"},
    {TENSOR("7", "[1]", "[0,4]"), 4, "string expected"},
    {TENSOR("\"F4\"", "[3]", "[0,2]"), 2, "need 2 bytes"},
    {"{\"a\":7}", 0, "object expected"},
    {"{\"a\":{}}", 0, "no \"dtype\""},
    {"{\"a\":{\"dtype\":\"U8\"}}", 0, "no \"shape\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "no \"data_offsets\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
     "\"more\":1}}",
     1, "only"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
     2, "twice"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, "overlaps"},
    {"{\"__metadata__\":[]}", 0, "object expected"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "string expected"},
    {"{\"a\":[[[[[[[[1]]]]]]]]}", 0, "x:1:"},
};

START_TEST(test_safetensors_parse_rejects)
{
    const struct bad *bad = &bads[_i];
    struct hob__safetensors_header *header = (void *)1;
    size_t size;
    unsigned char *file = make(bad->text, bad->bytes, &size);

    ck_assert_hob_fails(
        hob__safetensors_parse("x", file, size, &header, &error),
        HOB_ERR_FORMAT, bad->message);
    ck_assert_ptr_null(header);
    ck_assert_int_eq(hob__safetensors_parse("x", file, size, &header, NULL),
                     HOB_ERR_FORMAT);
    free(file);
}
END_TEST

START_TEST(test_safetensors_parse_rejects_every_prefix)
{
    struct hob__safetensors_header *header;
    size_t size;
    unsigned char *file = make(TENSOR("\"F32\"", "[2]", "[0,8]"), 8, &size);

    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = malloc(cut + 1);

        memcpy(copy, file, cut);
        ck_assert_int_eq(
            hob__safetensors_parse("x", copy, cut, &header, &error),
            HOB_ERR_FORMAT);
        hob_error_release(&error);
        free(copy);
    }
    free(file);
}
END_TEST

static const struct length {
    uint64_t length;
    const char *message;
} lengths[] = {
    {0, "does not begin"},
    {1, "x:1:"},
    {93, "truncated"},
    {100000000, "truncated"},
    {100000001, "at most 100000000"},
    {UINT64_MAX, "at most 100000000"},
    {(uint64_t)1 << 63, "at most 100000000"},
    {UINT64_MAX - 7, "at most 100000000"},
};

START_TEST(test_safetensors_parse_rejects_lengths)
{
    struct hob__safetensors_header *header;
    unsigned char file[100] = {0};

    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(lengths[_i].length >> (8 * i));
    memcpy(file + 8, "{}", 2);
    ck_assert_hob_fails(
        hob__safetensors_parse("x", file, sizeof(file), &header, &error),
        HOB_ERR_FORMAT, lengths[_i].message);
}
END_TEST

/* The checks are n log n: a header of 20,000 tensors is quick. */
START_TEST(test_safetensors_parse_many)
{
    enum { COUNT = 20000, ROOM = 80 };
    struct hob__safetensors_header *header;
    char *text = malloc((size_t)COUNT * ROOM + 2);
    char name[16];
    size_t length = 0;
    size_t size;
    unsigned char *file;

    for (int i = 0; i < COUNT; i++)
        length += (size_t)sprintf(text + length,
                                  "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],"
                                  "\"data_offsets\":[%d,%d]}",
                                  i ? "," : "{", i, COUNT - 1 - i, COUNT - i);
    strcpy(text + length, "}");
    file = make(text, COUNT, &size);
    ck_assert_hob_ok(hob__safetensors_parse("x", file, size, &header, &error));
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof(name), "t%d", i);
        ck_assert_ptr_eq(hob__safetensors_find(header, name),
                         hob__safetensors_entry(header, (uint32_t)i));
    }
    hob__safetensors_free(header);
    free(file);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors_header");
    TCase *tc = tcase_create("safetensors_header");

    suite_add_tcase(suite, tc);
    tcase_add_test(tc, test_safetensors_parse_reads);
    tcase_add_test(tc, test_safetensors_parse_reads_no_tensors);
    tcase_add_loop_test(tc, test_safetensors_parse_rejects, 0,
                        sizeof(bads) / sizeof(bads[0]));
    tcase_add_test(tc, test_safetensors_parse_rejects_every_prefix);
    tcase_add_loop_test(tc, test_safetensors_parse_rejects_lengths, 0,
                        sizeof(lengths) / sizeof(lengths[0]));
    tcase_add_test(tc, test_safetensors_parse_many);
    return hob_check_main(suite);
}
