/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob_check.h - what the unit tests add to check.
 */
#ifndef HOB_CHECK_H
#define HOB_CHECK_H

#include <hob/status.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

/*
 * check notes the place of each assertion that holds by a write to a file, for
 * the case that the process dies before the next. A test that compares
 * elements one by one then does little else; where a process died a debugger
 * tells, and check still tells in which test.
 */
#define _mark_point(file, line) ((void)0)

/*
 * EXPRESSION is HOB_OK. It fills the hob_error called "error" of the place
 * where this stands, whose message is shown otherwise.
 */
#define ck_assert_hob_ok(expression)                                           \
    do {                                                                       \
        hob_status ck_status = (expression);                                   \
        ck_assert_msg(ck_status == HOB_OK, "%s: %s: %s", #expression,          \
                      hob_status_name(ck_status),                              \
                      error.message ? error.message : "no message");           \
    } while (0)

/* EXPRESSION fails with STATUS and a message of which PART is a part. */
#define ck_assert_hob_fails(expression, expected, part)                        \
    do {                                                                       \
        hob_status ck_status = (expression);                                   \
        ck_assert_msg(ck_status == (expected), "%s: %s, not %s: %s",           \
                      #expression, hob_status_name(ck_status),                 \
                      hob_status_name(expected),                               \
                      error.message ? error.message : "no message");           \
        ck_assert_msg(error.message &&strstr(error.message, (part)),           \
                      "%s: \"%s\" is not in \"%s\"", #expression, (part),      \
                      error.message ? error.message : "");                     \
        hob_error_release(&error);                                             \
    } while (0)

/* Run SUITE as the whole program; the result is main's. */
static inline int hob_check_main_as(Suite *suite, enum fork_status fork_status)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_set_fork_status(runner, fork_status);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Each test is a process, or with CK_FORK=no all of them are one, as under
 * valgrind and sanitizers, where a process costs more than most tests. */
static inline int hob_check_main(Suite *suite)
{
    return hob_check_main_as(suite, CK_FORK_GETENV);
}

/* For a suite that has tests which end their process. */
static inline int hob_check_main_apart(Suite *suite)
{
    return hob_check_main_as(suite, CK_FORK);
}

#endif
