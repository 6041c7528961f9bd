/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_fixture.h - one device to run ops on, and tensors from lists of doubles.
 *
 * Device 0 is the reference backend, which has the primitives only: there an
 * op with a body runs as its body. Device 1 is flex, or what test_device.h
 * says, if HOB_TEST_PLUGIN_DIR is set. So one test checks bodies and kernels
 * against one truth. Device 2 is fusion around that one, which puts all calls
 * off. Device OP_DEVICE_TRACKED is autodiff around device 1.
 */
#ifndef OP_FIXTURE_H
#define OP_FIXTURE_H

#include <hob/hob.h>

enum { OP_DEVICE_COUNT = 3, OP_DEVICE_TRACKED = 3 };

struct op_fixture {
    hob_runtime *runtime;
    hob_device *device; /* NULL: not there, the test has nothing to do */
    hob_scope *scope;
    hob_status told; /* the latest failure that the policy was told of */
    char message[512];
};

/* Open device WHICH in a runtime that reports. Fails the test otherwise. */
void op_fixture_open(struct op_fixture *fixture, int which);
/* Fails the test if anything is left. A fixture that is not open is passed over. */
void op_fixture_close(struct op_fixture *fixture);

/* A tensor of DTYPE with COUNT of DATA's numbers, which are as many as the
 * RANK sizes of SHAPE say. */
hob_tensor *op_tensor(struct op_fixture *fixture, hob_dtype dtype,
                      const double *data, const int64_t *shape, int32_t rank);
/* The same of rank 1. */
hob_tensor *op_vector(struct op_fixture *fixture, hob_dtype dtype,
                      const double *data, int64_t count);

/* TENSOR's elements; fails the test if it has not COUNT of them. */
void op_read(struct op_fixture *fixture, hob_tensor *tensor, double *out,
             int64_t count);

/*
 * TENSOR has COUNT elements that equal EXPECTED: within TOLERANCE times the
 * greater of 1 and the expected magnitude; NaN equals NaN. WHAT names it.
 */
void op_check(struct op_fixture *fixture, const char *what, hob_tensor *tensor,
              const double *expected, int64_t count, double tolerance);

/* What has failed since the last time: in the scope, or in what was put off and
 * is computed now. HOB_OK if nothing has; else ERROR, if given, says what. */
hob_status op_failure(struct op_fixture *fixture, hob_error *error);

/* That is STATUS. */
void op_check_fails(struct op_fixture *fixture, const char *what,
                    hob_status status);

/* Uniform in [-1, 1), the same everywhere. */
double op_random(uint64_t *state);

#endif
