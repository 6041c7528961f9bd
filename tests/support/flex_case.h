/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flex_case.h - what the tests of the CPU backend's kernels share: a device a
 * level of instruction set on a fake host, reproducible numbers, elements of
 * any dtype as numbers, and tensors in all sorts of layouts.
 */
#ifndef FLEX_CASE_H
#define FLEX_CASE_H

#include "fake_host.h"

#include <flex/flex.h>

/* Nonzero if this build and this CPU have LEVEL. */
int flex_case_has(uint32_t level);

/* A device at LEVEL (enum flex_isa) on HOST, without the matrix products'
 * part, which takes long to open. Closing it checks that no scratch is left. */
struct flex_device *flex_case_open(struct fake_host *host, uint32_t level);
void flex_case_close(struct flex_device *device);

/* A number that differs from run to run unless HOB_TEST_SEED is set; print it
 * in every failure. */
uint64_t flex_case_seed(void);
/* The next number of the generator STATE (SplitMix64). */
uint64_t flex_case_next(uint64_t *state);

/* Element at P of DTYPE as a number. Exact for every dtype where long double
 * has 64 bits. */
long double flex_case_get(uint32_t dtype, const void *p);
/* The integer at P, wrapped into 64 bits (sign-extended where signed). */
uint64_t flex_case_get_int(uint32_t dtype, const void *p);
/* Store X, which DTYPE holds or rounds. */
void flex_case_set(uint32_t dtype, void *p, double x);
void flex_case_set_int(uint32_t dtype, void *p, uint64_t x);

/* The address of the element of VIEW at row-major index INDEX. */
void *flex_case_at(const struct hob_view *view, int64_t index);

/* Layouts of one shape over memory that is large enough for any of them. */
enum flex_layout {
    FLEX_LAYOUT_DENSE,      /* row-major */
    FLEX_LAYOUT_MISALIGNED, /* row-major, off by one element */
    FLEX_LAYOUT_STEPS,      /* every second element of the last dimension */
    FLEX_LAYOUT_REVERSED,   /* all strides negative */
    FLEX_LAYOUT_TRANSPOSED, /* column-major */
    FLEX_LAYOUT_REPEATED,   /* the first dimension has stride 0 */
    FLEX_LAYOUT_GAPS,       /* rows apart */
    FLEX_LAYOUT_COUNT_
};

struct flex_case_tensor {
    struct hob_view view;
    char *memory; /* owned */
};

/* A tensor of LAYOUT; its memory is zero. */
void flex_case_tensor_init(struct flex_case_tensor *tensor, uint32_t dtype,
                           uint32_t rank, const int64_t *shape,
                           enum flex_layout layout);
void flex_case_tensor_release(struct flex_case_tensor *tensor);

/* The distance of X from WANTED in units of the last place of DTYPE at
 * WANTED; 0 if both are NaN or equal, a huge number if only one is special. */
double flex_case_ulps(uint32_t dtype, long double x, long double wanted);

#endif
