/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include "hob_check.h"

#include <stdio.h>

static hob_error error;

/* A file in memory: version VERSION, the text TEXT, DATA_BYTES zeros. */
static size_t make(unsigned char *out, int version, const char *text,
                   size_t data_bytes)
{
    size_t length = strlen(text);
    size_t preamble = version == 1 ? 10 : 12;

    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (size_t i = 8; i < preamble; i++)
        out[i] = (unsigned char)(length >> (8 * (i - 8)));
    memcpy(out + preamble, text, length);
    memset(out + preamble + length, 0, data_bytes);
    return preamble + length + data_bytes;
}

static const struct good {
    const char *text;
    int version;
    size_t bytes;
    struct hob_meta meta;
    bool big;
    bool fortran;
    bool plain;
} goods[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
     1,
     24,
     {HOB_DTYPE_F32, 2, 0, 0, {2, 3}},
     false,
     false,
     true},
    {"{\"shape\":(5,),\"descr\":\">i8\",\"fortran_order\":True}",
     1,
     40,
     {HOB_DTYPE_I64, 1, 0, 0, {5}},
     true,
     true,
     false},
    {"{'descr':'|b1','fortran_order':True,'shape':()}",
     2,
     1,
     {HOB_DTYPE_BOOL, 0, 0, 0, {0}},
     false,
     true,
     true},
    {"{'descr':'<f2','fortran_order':False,'shape':(0, 4)}\n",
     3,
     0,
     {HOB_DTYPE_F16, 2, 0, 0, {0, 4}},
     false,
     false,
     true},
    {"{'descr':'>u1','fortran_order':False,'shape':(3L,)}",
     1,
     3,
     {HOB_DTYPE_U8, 1, 0, 0, {3}},
     false,
     false,
     true},
    {"{'descr':'<u2','fortran_order':True,'shape':(2,2)}",
     1,
     8,
     {HOB_DTYPE_U16, 2, 0, 0, {2, 2}},
     false,
     true,
     false},
    {"{'descr':'<u2','fortran_order':True,'shape':(1,4,1)}",
     1,
     8,
     {HOB_DTYPE_U16, 3, 0, 0, {1, 4, 1}},
     false,
     true,
     true},
    {"{'descr':'=f8','fortran_order':False,'shape':(1,1,1,1,1,1,1,1)}",
     1,
     8,
     {HOB_DTYPE_F64, 8, 0, 0, {1, 1, 1, 1, 1, 1, 1, 1}},
     false,
     false,
     true},
};

START_TEST(test_npy_parse_accepts)
{
    const struct good *good = &goods[_i];
    struct hob__npy_header header;
    unsigned char file[512];
    size_t size = make(file, good->version, good->text, good->bytes);

    ck_assert_hob_ok(hob__npy_parse("x.npy", file, size, &header, &error));
    ck_assert_mem_eq(&header.meta, &good->meta, sizeof(header.meta));
    ck_assert_int_eq(header.big_endian, good->big);
    ck_assert_int_eq(header.fortran, good->fortran);
    ck_assert_uint_eq(header.data_offset, size - good->bytes);
    ck_assert_uint_eq(header.data_bytes, good->bytes);
    ck_assert_int_eq(hob__npy_is_plain(&header), good->plain);
}
END_TEST

static const struct bad {
    const char *text;
    int version;
    size_t bytes;
    hob_status status;
    const char *message;
} bads[] = {
    {"", 1, 0, HOB_ERR_FORMAT, "braces"},
    {"{}", 1, 0, HOB_ERR_FORMAT, "is missing"},
    {"{'descr':'<f4','fortran_order':False}", 1, 0, HOB_ERR_FORMAT, "missing"},
    {"{'descr':'<f4','descr':'<f4'}", 1, 0, HOB_ERR_FORMAT, "stands twice"},
    {"{'color':'<f4'}", 1, 0, HOB_ERR_FORMAT, "only descr"},
    {"{'descr':'<f4','fortran_order':0,'shape':()}", 1, 4, HOB_ERR_FORMAT,
     "True or False"},
    {"{'descr':'<f4','fortran_order':False,'shape':(3)}", 1, 12, HOB_ERR_FORMAT,
     "\",)\""},
    {"{'descr':'<f4','fortran_order':False,'shape':(-3,)}", 1, 12,
     HOB_ERR_FORMAT, "a size is expected"},
    {"{'descr':'<f4','fortran_order':False,'shape':(2 3)}", 1, 24,
     HOB_ERR_FORMAT, "comma"},
    {"{'descr':'<f4','fortran_order':False,'shape':(3,)", 1, 12, HOB_ERR_FORMAT,
     "comma or }"},
    {"{'descr':'<f4','fortran_order':False,'shape':(3,)}x", 1, 12,
     HOB_ERR_FORMAT, "may follow"},
    {"{'descr':'<f4','fortran_order':False,'shape':(3,)}", 1, 11,
     HOB_ERR_FORMAT, "truncated"},
    {"{'descr':'<f4','fortran_order':False,'shape':(3,)}", 1, 13,
     HOB_ERR_FORMAT, "several arrays"},
    {"{'descr':'<f4','fortran_order':False,'shape':(0,)}", 1, 4, HOB_ERR_FORMAT,
     "several arrays"},
    {"{'descr':'<f4','fortran_order':False,"
     "'shape':(4294967296, 4294967296)}",
     1, 0, HOB_ERR_FORMAT, "2^63"},
    {"{'descr':'<f4','fortran_order':False,"
     "'shape':(0, 4294967296, 4294967296)}",
     1, 0, HOB_ERR_FORMAT, "2^63"},
    {"{'descr':'<f4','fortran_order':False,'shape':(9223372036854775808,)}", 1,
     0, HOB_ERR_FORMAT, "64 bits"},
    {"{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1)}", 1, 4,
     HOB_ERR_UNSUPPORTED, "more than 8 dimensions"},
    {"{'descr':'|f4','fortran_order':False,'shape':()}", 1, 4, HOB_ERR_FORMAT,
     "byte order"},
    {"{'descr':'f4','fortran_order':False,'shape':()}", 1, 4, HOB_ERR_FORMAT,
     "begins with"},
    {"{'descr':'','fortran_order':False,'shape':()}", 1, 4, HOB_ERR_FORMAT,
     "begins with"},
    {"{'descr':'<c8','fortran_order':False,'shape':()}", 1, 8,
     HOB_ERR_UNSUPPORTED, "complex"},
    {"{'descr':'|O','fortran_order':False,'shape':()}", 1, 8,
     HOB_ERR_UNSUPPORTED, "Python objects"},
    {"{'descr':'|V2','fortran_order':False,'shape':()}", 1, 2,
     HOB_ERR_UNSUPPORTED, "bf16"},
    {"{'descr':'<U4','fortran_order':False,'shape':()}", 1, 16,
     HOB_ERR_UNSUPPORTED, "strings"},
    {"{'descr':[('a','<f4')],'fortran_order':False,'shape':()}", 1, 4,
     HOB_ERR_UNSUPPORTED, "structured"},
    {"{'descr':'<f4", 1, 0, HOB_ERR_FORMAT, "does not end"},
    {"{'descr", 2, 0, HOB_ERR_FORMAT, "does not end"},
    {"{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"
     ":1}",
     1, 0, HOB_ERR_FORMAT, "does not end"},
    {"{'descr':'<f4','fortran_order':False,'shape':()}", 4, 4,
     HOB_ERR_UNSUPPORTED, "version 4.0"},
    {"{'descr':'<f4','fortran_order':False,'shape':()}", 0, 4,
     HOB_ERR_UNSUPPORTED, "version 0.0"},
};

START_TEST(test_npy_parse_rejects)
{
    const struct bad *bad = &bads[_i];
    struct hob__npy_header header;
    unsigned char file[512];
    size_t size = make(file, bad->version, bad->text, bad->bytes);

    ck_assert_hob_fails(hob__npy_parse("x.npy", file, size, &header, &error),
                        bad->status, bad->message);
    ck_assert_int_eq(hob__npy_parse("x.npy", file, size, &header, NULL),
                     bad->status);
}
END_TEST

/* Each length of a good file but the whole is refused; no byte past it is
 * read (the sanitizers watch). */
START_TEST(test_npy_parse_rejects_every_prefix)
{
    const struct good *good = &goods[_i];
    struct hob__npy_header header;
    unsigned char file[512];
    size_t size = make(file, good->version, good->text, good->bytes);

    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = malloc(cut + 1);

        memcpy(copy, file, cut);
        ck_assert_int_ne(hob__npy_parse("x.npy", copy, cut, &header, &error),
                         HOB_OK);
        hob_error_release(&error);
        free(copy);
    }
}
END_TEST

START_TEST(test_npy_parse_rejects_a_huge_header)
{
    unsigned char file[128] = "\x93NUMPY\x02\x00\xff\xff\xff\xff{}";
    struct hob__npy_header header;
    size_t big = 70000;
    unsigned char *large = malloc(big + 12);

    ck_assert_hob_fails(
        hob__npy_parse("x.npy", file, sizeof(file), &header, &error),
        HOB_ERR_FORMAT, "4294967295");
    memset(large, ' ', big + 12);
    memcpy(large, "\x93NUMPY\x02\x00\x70\x11\x01\x00", 12);
    ck_assert_hob_fails(
        hob__npy_parse("x.npy", large, big + 12, &header, &error),
        HOB_ERR_FORMAT, "at most");
    free(large);
}
END_TEST

/* What is written is what is read, and the data is aligned. */
START_TEST(test_npy_format_round_trip)
{
    unsigned char text[HOB__NPY_HEADER_MAX + 64] = {0};
    struct hob__npy_header header;
    struct hob_meta meta = {0};

    for (uint32_t dtype = 0; dtype < HOB_DTYPE_COUNT_; dtype++)
        for (uint8_t rank = 0; rank <= HOB_MAX_RANK; rank++) {
            uint64_t bytes = hob_dtype_size(dtype);
            uint32_t length;

            memset(&meta, 0, sizeof(meta));
            meta.dtype = (uint8_t)dtype;
            meta.rank = rank;
            for (uint32_t i = 0; i < rank; i++) {
                meta.shape[i] = i == 3 ? 3 : 1;
                bytes *= (uint64_t)meta.shape[i];
            }
            length = hob__npy_format(&meta, text);
            if (dtype == HOB_DTYPE_NONE || dtype == HOB_DTYPE_BF16 ||
                dtype == HOB_DTYPE_QUANT) {
                ck_assert_uint_eq(length, 0);
                continue;
            }
            ck_assert_uint_eq(length % 64, 0);
            ck_assert_hob_ok(
                hob__npy_parse("x.npy", text, length + bytes, &header, &error));
            ck_assert_mem_eq(&header.meta, &meta, sizeof(meta));
            ck_assert(hob__npy_is_plain(&header));
        }
    /* The longest header there can be. */
    meta.dtype = HOB_DTYPE_F64;
    for (uint32_t i = 0; i < HOB_MAX_RANK; i++)
        meta.shape[i] = INT64_MAX;
    ck_assert_uint_le(hob__npy_format(&meta, text), HOB__NPY_HEADER_MAX);
}
END_TEST

START_TEST(test_npy_reorder_fortran_big_endian)
{
    struct hob__npy_header header = {
        .meta = {HOB_DTYPE_I16, 3, 0, 0, {2, 3, 2}},
        .big_endian = true,
        .fortran = true,
        .data_bytes = 24,
    };
    unsigned char in[24];
    int16_t out[12];

    /* Element (i, j, k) is 100 i + 10 j + k; i runs fastest. */
    for (int at = 0; at < 12; at++) {
        int value = 100 * (at % 2) + 10 * (at / 2 % 3) + at / 6;

        in[2 * at] = (unsigned char)(value >> 8);
        in[2 * at + 1] = (unsigned char)value;
    }
    hob__npy_reorder(&header, in, out);
    for (int at = 0; at < 12; at++)
        ck_assert_int_eq(out[at], 100 * (at / 6) + 10 * (at / 2 % 3) + at % 2);
    header.data_bytes = 0;
    header.meta.shape[1] = 0;
    hob__npy_reorder(&header, NULL, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy_header");
    TCase *tc = tcase_create("npy_header");
    const int good_count = sizeof(goods) / sizeof(goods[0]);

    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, test_npy_parse_accepts, 0, good_count);
    tcase_add_loop_test(tc, test_npy_parse_rejects, 0,
                        sizeof(bads) / sizeof(bads[0]));
    tcase_add_loop_test(tc, test_npy_parse_rejects_every_prefix, 0, good_count);
    tcase_add_test(tc, test_npy_parse_rejects_a_huge_header);
    tcase_add_test(tc, test_npy_format_round_trip);
    tcase_add_test(tc, test_npy_reorder_fortran_big_endian);
    return hob_check_main(suite);
}
