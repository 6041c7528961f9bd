/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of any length, and one that is made from the one before.
 */
#include "hob_check.h"

#include <stdio.h>

START_TEST(test_error_keeps_whole_messages)
{
    hob_error error = HOB_ERROR_INIT;
    char text[1000];

    for (size_t length = 0; length < sizeof(text); length++) {
        memset(text, 'a' + (int)(length % 26), length);
        text[length] = '\0';
        ck_assert_int_eq(hob_error_set(&error, HOB_ERR_SHAPE, "%s", text),
                         HOB_ERR_SHAPE);
        ck_assert_int_eq(error.status, HOB_ERR_SHAPE);
        ck_assert_str_eq(error.message, text);
    }
    hob_error_release(&error);
    ck_assert_int_eq(error.status, HOB_OK);
    ck_assert_ptr_null(error.message);
}
END_TEST

START_TEST(test_error_grows_out_of_its_own_message)
{
    hob_error error = HOB_ERROR_INIT;
    char expected[2048] = "it failed";

    hob_error_set(&error, HOB_ERR_IO, "it failed");
    for (int i = 0; i < 100; i++) {
        char outer[sizeof(expected)];

        (void)snprintf(outer, sizeof(outer), "layer %d: %.1900s", i, expected);
        strcpy(expected, outer);
        hob_error_set(&error, HOB_ERR_IO, "layer %d: %s", i, error.message);
        ck_assert_str_eq(error.message, expected);
    }
    hob_error_release(&error);
}
END_TEST

/* A file's name may hold what a terminal obeys. */
START_TEST(test_error_steers_no_terminal)
{
    hob_error error = HOB_ERROR_INIT;

    hob_error_set(&error, HOB_ERR_IO, "%s",
                  "a\x1b[31mb\x7f\xc2\x9b"
                  "c\r\b\n\t\xc3\xa9\xc2\xa0.");
    ck_assert_str_eq(error.message, "a?[31mb???c??\n\t\xc3\xa9\xc2\xa0.");
    hob_error_release(&error);
}
END_TEST

START_TEST(test_error_is_optional)
{
    ck_assert_int_eq(hob_error_set(NULL, HOB_ERR_RANGE, "%d", 1),
                     HOB_ERR_RANGE);
    hob_error_release(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("error");
    TCase *tc = tcase_create("error");

    tcase_add_test(tc, test_error_keeps_whole_messages);
    tcase_add_test(tc, test_error_grows_out_of_its_own_message);
    tcase_add_test(tc, test_error_steers_no_terminal);
    tcase_add_test(tc, test_error_is_optional);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
