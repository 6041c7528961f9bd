/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flex_lab.h - a flex device on a fake host, and tensors of every dtype and
 * layout to try its entries on. Elements are read and written as doubles.
 */
#ifndef FLEX_LAB_H
#define FLEX_LAB_H

#include "fake_host.h"
#include "flex/flex.h"
#include "hob_check.h"

struct lab {
    struct fake_host host;
    struct flex_device *device;
    uint64_t seed; /* of lab_random */
};

/* How a tensor lies in memory. */
enum lab_layout {
    LAB_CONTIGUOUS,
    LAB_REVERSED,   /* all strides negative */
    LAB_TRANSPOSED, /* the last dimension is the outermost */
    LAB_GAPS,       /* every second element */
    LAB_EXPANDED,   /* the first dimension has stride 0 */
    LAB_MISALIGNED, /* contiguous, one element off */
    LAB_LAYOUT_COUNT_
};

struct lab_tensor {
    struct fake_tensor memory;
    struct hob_view view;
};

/* OPTIONS as of a device, as in "{\"isa\": \"v3\"}"; 0 if this machine lacks
 * that. */
int lab_open(struct lab *lab, uint32_t workers, const char *options);
void lab_close(struct lab *lab);

/* A number in LOW .. HIGH. */
int64_t lab_random(struct lab *lab, int64_t low, int64_t high);

/* Fill with random integers LOW .. HIGH, LOW raised to 0 if unsigned. */
void lab_tensor_init(struct lab *lab, struct lab_tensor *tensor, uint32_t dtype,
                     uint32_t rank, const int64_t *shape,
                     enum lab_layout layout, int64_t low, int64_t high);
void lab_tensor_release(struct lab_tensor *tensor);

/* Element at position AT, or at row-major INDEX, as a double. */
double lab_get(const struct hob_view *view, const int64_t *at);
double lab_get_at(const struct hob_view *view, int64_t index);
void lab_set_at(const struct hob_view *view, int64_t index, double value);
/* Row-major INDEX of SHAPE as a position. */
void lab_position(uint32_t rank, const int64_t *shape, int64_t index,
                  int64_t *at);
/* All elements in row-major order; the caller frees them. */
double *lab_dense(const struct hob_view *view);
/* VALUE as DTYPE would hold it; integers wrap. */
double lab_round(uint32_t dtype, double value);
/* NaN equals NaN; else within TOLERANCE of the larger magnitude (or of 1). */
int lab_near(double got, double wanted, double tolerance);

/* Prepare and run OP of ENTRIES; the call's results must be intact. */
hob_status lab_run(struct lab *lab, struct fake_call *call,
                   const struct flex_entries *entries);

/* The instruction sets to try, NULL at the end. */
extern const char *const lab_isas[];

#endif
