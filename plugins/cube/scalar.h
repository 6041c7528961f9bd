/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.h - scalar arguments as parameters. */
#ifndef CUBE_SCALAR_H
#define CUBE_SCALAR_H

#include "launch.h"

/*
 * The next number of JOB, of type CUBE_VALUE_OF a buffer of DTYPE: SCALAR as
 * an element of DTYPE. Floats are rounded to it; a float goes to an integer
 * dtype as cast does.
 */
void cube_job_scalar(struct cube_job *job, const hob_value *scalar,
                     uint32_t dtype);

/* SCALAR as an element of integer dtype DTYPE. */
int64_t cube_scalar_i64(const hob_value *scalar, uint32_t dtype);

/* SCALAR as an element of DTYPE, as its bits. */
uint64_t cube_scalar_bits(const hob_value *scalar, uint32_t dtype);

/* X rounded to float dtype DTYPE. */
double cube_round(double x, uint32_t dtype);

#endif
