/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of FIPS 180-4 and its validation suite. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "sha256.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>

static const struct vector {
    const char *text;
    const char *hex;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
     "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

START_TEST(test_sha256_vectors)
{
    struct hob__sha256 sha;
    char hex[65];

    hob__sha256_init(&sha);
    hob__sha256_update(&sha, vectors[_i].text, strlen(vectors[_i].text));
    hob__sha256_hex(&sha, hex);
    ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

/* A million "a", in pieces that do not divide the block. */
START_TEST(test_sha256_in_pieces)
{
    struct hob__sha256 sha;
    char piece[1000], hex[65];
    int i;

    memset(piece, 'a', sizeof(piece));
    hob__sha256_init(&sha);
    for (i = 0; i < 1000; i++)
        hob__sha256_update(&sha, piece, sizeof(piece));
    hob__sha256_hex(&sha, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e"
                          "046d39ccc7112cd0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sha256");
    TCase *tc = tcase_create("sha256");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, test_sha256_vectors, 0,
                        sizeof(vectors) / sizeof(vectors[0]));
    tcase_add_test(tc, test_sha256_in_pieces);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
