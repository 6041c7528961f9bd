/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - what the results of a case must be, in float64.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include "measure.h"

#include <stddef.h>
#include <stdint.h>

struct bench_array;

struct reference {
    int64_t *indices; /* NULL: all elements */
    double *values;   /* NAN: not compared */
    int64_t count;
    double scale; /* the mean magnitude */
};

/* Compute it; 0 without memory. Release it in either case. */
int reference_make(const struct bench_case *c, const struct bench_array *in,
                   struct reference *out);
void reference_free(struct reference *reference);

/*
 * Compare the raw doubles in the file PATH. *OUT_ERROR is the greatest error,
 * as a part of the value and the mean magnitude. MESSAGE is written if the
 * state is not OK.
 */
enum measure_state reference_compare(const struct bench_case *c,
                                     const struct reference *wanted,
                                     const char *path, double *out_error,
                                     char *message, size_t size);

#endif
