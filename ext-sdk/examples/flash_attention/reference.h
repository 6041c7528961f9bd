/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - attention by its definition, in double, one number after the
 * other; and the arguments that the tests use.
 */
#ifndef FLASH_REFERENCE_H
#define FLASH_REFERENCE_H

#include <stdint.h>

enum mask_kind {
    NO_MASK,
    FULL_MASK,   /* [lead, s_q, s_k], some queries without any key */
    KEY_MASK,    /* [s_k] */
    QUERY_MASK,  /* [s_q, 1] */
    TURNED_MASK, /* as FULL_MASK, from a tensor [lead, s_k, s_q] */
    MASK_KIND_COUNT_
};

struct problem {
    const char *name;
    int64_t lead, s_q, s_k, d, d_v;
    enum mask_kind mask;
    int causal;
    int shared;   /* k and v are [s_k, ..], the same for all of lead */
    double scale; /* 0: the default */
};

enum { Q, K, V, ARGUMENTS };

/* Row-major. mask is the whole [lead, s_q, s_k] for every kind but NO_MASK. */
struct values {
    double *at[ARGUMENTS];
    int64_t counts[ARGUMENTS];
    uint8_t *mask;
    double *out;
    int64_t out_count;
};

/* Multiples of 1/64 in -1..1, exact in every dtype; random masks. Returns
 * nonzero without memory. */
int values_make(const struct problem *problem, struct values *out);
void values_free(struct values *values);

/* A number of the same kind; STATE goes on from call to call. */
double values_next(uint32_t *state);

/* Nonzero if key J is hidden from query I of batch entry B. */
int is_hidden(const struct problem *problem, const struct values *values,
              int64_t b, int64_t i, int64_t j);
/* Nonzero if all keys are. */
int is_dead(const struct problem *problem, const struct values *values,
            int64_t b, int64_t i);

/* Compute values->out. */
void attend(const struct problem *problem, struct values *values);

/* The sum of WEIGHTS times attention. */
double weighed(const struct problem *problem, struct values *values,
               const double *weights);

/* The slope of weighed() when argument ARGUMENT, or all of them if it is
 * ARGUMENTS, moves along DIRECTION[argument]. */
double slope_along(const struct problem *problem, struct values *values,
                   const double *weights, int argument,
                   double *const *direction, double step);

#endif
