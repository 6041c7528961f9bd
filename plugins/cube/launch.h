/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - one launch of a program: its variant, its arguments, its size.
 *
 * A job is filled in the order of the program's lists and then run:
 *
 *     struct cube_job job;
 *     cube_job_init(&job, device, call, &program);
 *     cube_job_view(&job, out);        buffers
 *     cube_job_view(&job, x);
 *     cube_job_constant(&job, 4);      constants
 *     cube_job_i64(&job, count);       parameters
 *     return cube_job_run(&job, groups);
 */
#ifndef CUBE_LAUNCH_H
#define CUBE_LAUNCH_H

#include "kernels.h"

#include <assert.h>
#include <string.h>

/* Numbers that all parameters of a launch have, arrays laid flat. */
enum { CUBE_MAX_NUMBERS = 384 };

/* The group size of kernels that have no reason for another one. */
enum { CUBE_GROUP_SIZE = 256 };

/* By so much a kernel steps over the end of what it counts at most: by one step
 * of all groups. */
enum { CUBE_OVER = 1 << 24 };

struct cube_job {
    struct cube_device *device;
    struct hob_call *call; /* for messages; NULL where cube_job_launch tells */
    struct cube_variant variant;
    const void *data[CUBE_MAX_BUFFERS];
    struct cube_range ranges[CUBE_MAX_BUFFERS];
    uint64_t numbers[CUBE_MAX_NUMBERS]; /* i64, u64, or the bits of an f64 */
    uint32_t buffer_count;
    uint32_t range_count;
    uint32_t number_count;
    uint32_t constant_count;
    uint32_t symbol_count;
    uint32_t each; /* numbers that a group goes on by, times GROUP_COUNT */
};

void cube_job_init(struct cube_job *job, struct cube_device *device,
                   struct hob_call *call, const struct cube_program *program);

/* ---- the next buffer ---- */

/* VIEW's elements, in any layout. Its offsets decide about INDEX too. */
void cube_job_view(struct cube_job *job, const struct hob_view *view);
/* COUNT elements of DTYPE one after the other. */
void cube_job_memory(struct cube_job *job, const void *data, uint32_t dtype,
                     int64_t count);
/* A buffer that this launch does without; its LOAD and STORE do not exist. */
static inline void cube_job_absent(struct cube_job *job)
{
    job->data[job->buffer_count++] = NULL;
}

/* ---- the next number, constant, symbol ---- */

static inline void cube_job_i64(struct cube_job *job, int64_t number)
{
    assert(job->number_count < CUBE_MAX_NUMBERS);
    memcpy(&job->numbers[job->number_count++], &number, sizeof(number));
}

static inline void cube_job_f64(struct cube_job *job, double number)
{
    assert(job->number_count < CUBE_MAX_NUMBERS);
    memcpy(&job->numbers[job->number_count++], &number, sizeof(number));
}

static inline void cube_job_i64s(struct cube_job *job, const int64_t *numbers,
                                 uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cube_job_i64(job, numbers[i]);
}

static inline void cube_job_constant(struct cube_job *job, int32_t constant)
{
    assert(job->constant_count < CUBE_MAX_CONSTANTS);
    job->variant.constants[job->constant_count++] = constant;
}

/* WORD is static text; NULL: the symbol is not defined. */
static inline void cube_job_symbol(struct cube_job *job, const char *word)
{
    assert(job->symbol_count < CUBE_MAX_SYMBOLS);
    job->variant.symbols[job->symbol_count++] = word;
}

/* Numbers that the kernel counts with, besides offsets, reach up to COUNT. */
static inline void cube_job_reach(struct cube_job *job, int64_t count)
{
    if (count > INT32_MAX - CUBE_OVER)
        job->variant.is_wide = 1;
}

/* The kernel takes EACH numbers a group and goes on by as many for each: say so
 * where they are more than 1 and GROUPS below are not of cube_groups(). */
static inline void cube_job_each(struct cube_job *job, uint32_t each)
{
    job->each = each;
}

/*
 * Launch GROUPS workgroups of job->variant.group_size, at most as many as the
 * device takes and CUBE_OVER allows; 0 groups are no work. Failures are put on
 * the call.
 */
hob_status cube_job_run(struct cube_job *job, int64_t groups);

/* The same of KERNEL, made of this job's program for these dtypes, for OP_NAME:
 * on failure *OUT_MESSAGE says why, if there is memory for it. */
hob_status cube_job_launch(struct cube_job *job,
                           const struct cube_kernel *kernel, int64_t groups,
                           const char *op_name, char **out_message);

/* A / B, rounded up where A is not negative. */
static inline int64_t cube_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/*
 * Groups for COUNT elements, PER_GROUP of them at a time: as many as the
 * device can have at work, or fewer. The kernel goes on in steps of
 * GROUP_COUNT.
 */
int64_t cube_groups(const struct cube_device *device, int64_t count,
                    int64_t per_group);

/* Bring a call's failure of the runtime to the host. MESSAGE may be NULL and
 * is given back. */
hob_status cube_fail(const struct cube_device *device, struct hob_call *call,
                     hob_status status, char *message);

/* The first and one past the last byte of VIEW's elements. */
struct cube_range cube_view_range(const struct hob_view *view);

#endif
