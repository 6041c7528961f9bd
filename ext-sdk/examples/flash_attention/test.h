/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h - what the tests of flash.attention share. Everything runs twice:
 * with the kernels, and in an extension built without them, so that
 * the bodies are held to the same numbers.
 */
#ifndef FLASH_TEST_H
#define FLASH_TEST_H

#include "reference.h"

#include <hob/hob.h>

struct lab {
    hob_runtime *runtime;
    int has_kernels;
    const char *gpu; /* the device instead of flex; NULL: flex */
    int passed, failed;
};

/* Count a test that FAILED or did not; say which. */
void lab_count(struct lab *lab, int failed, const char *format, ...)
    HOB_PRINTF(3, 4);

/* SPEC as a device; NULL, with a failed test, if there is none. */
hob_device *lab_device(struct lab *lab, const char *spec);

/* Nonzero if flex has its level ISA on this processor. */
int lab_has_isa(struct lab *lab, const char *isa);

/* Tensors of a problem: q, k, v and the mask or NULL. With STRIDED none of
 * them is contiguous: turned, walked backwards, expanded. */
void make_arguments(hob_scope *scope, hob_device *device, hob_dtype dtype,
                    const struct problem *problem, const struct values *values,
                    int strided, hob_tensor *out[ARGUMENTS + 1]);

/* flash.attention of a problem's tensors. */
hob_tensor *call(hob_scope *scope, const struct problem *problem,
                 hob_tensor *const args[ARGUMENTS + 1]);

/* Nonzero, and a line that says where, unless TENSOR has the COUNT elements
 * WANTED within TOLERANCE, absolute and relative. NaN equals NaN. */
int differs(const char *what, hob_tensor *tensor, const double *wanted,
            int64_t count, double tolerance);

/* Nonzero if a row of ROWS, COLUMNS elements a query, is not 0 to the bit
 * though its query has no keys. */
int has_rest(const struct problem *problem, const struct values *values,
             hob_tensor *rows, int64_t columns);

/* ---- test_gradients.c ---- */

void test_gradients(struct lab *lab, const struct problem *problem);
void test_second_gradients(struct lab *lab);

/* ---- test_infinite.c, test_edges.c ---- */

void test_infinite(struct lab *lab);
void test_edges(struct lab *lab);

#endif
