/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h - what the tests of the extension share.
 *
 * A check that does not hold prints a line and is counted in the context.
 */
#ifndef VISION_TEST_H
#define VISION_TEST_H

#include "vision.h"

#include <hob/hob.h>

struct context {
    hob_scope *scope; /* of the test that runs */
    hob_device *flex;
    hob_device *tracking; /* autodiff(flex) */
    int is_gpu;           /* flex stands for another device */
    int passed;
    int failed;
};

/* Numbers 0 .. BELOW-1, the same in every run. */
struct numbers {
    uint64_t state;
};
int64_t number(struct numbers *numbers, int64_t below);

/* Count one check; the text is printed if it does not hold. */
void check(struct context *context, int holds, const char *format, ...)
    HOB_PRINTF(3, 4);

/* The scope has an error of STATUS whose text has PART; it is cleared. */
void check_fails(struct context *context, hob_status status, const char *part);

/* VALUES in DTYPE on DEVICE. */
hob_tensor *tensor(struct context *context, hob_device *device, hob_dtype dtype,
                   const double *values, const int64_t *shape, int32_t rank);

/* Read TENSOR's COUNT elements to OUT; zeros, and a failed check, if it has
 * not so many. */
void fetch(struct context *context, hob_tensor *tensor, double *out,
           int64_t count);

/* TENSOR's COUNT elements are WANTED, exactly or within TOLERANCE; NaN is
 * equal to NaN. */
void check_elements(struct context *context, const char *what,
                    hob_tensor *tensor, const double *wanted, int64_t count,
                    double tolerance);

/* The gradient of LEAF is WANTED when that of RESULT is all ones; there is
 * none if that is NULL. */
void check_gradient(struct context *context, const char *what,
                    hob_tensor *result, hob_tensor *leaf, const double *wanted,
                    int64_t count, double tolerance);

void test_nms(struct context *context);
void test_detect(struct context *context);
void test_densify(struct context *context);

#endif
