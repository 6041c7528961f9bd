/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - run a program on a device.
 */
#ifndef TOOLS_EVAL_RUN_H
#define TOOLS_EVAL_RUN_H

#include "names.h"
#include "program.h"
#include "uses.h"

#include <hob/hob.h>

/* A named value of a running program. */
struct binding {
    char *name;         /* owned */
    hob_tensor *tensor; /* a reference */
};

struct run {
    const struct program *program; /* borrowed */
    hob_scope *scope;              /* a step runs in one inside it */
    hob_device *device;
    struct binding *bindings;
    uint32_t count;
    struct uses uses; /* bindings go after their last */
    hob_grads *grads; /* after a backward, else NULL */
};

/*
 * Run PROGRAM on DEVICE. NAMES translates foreign op names; it may be NULL.
 *
 * The caller ends *OUT_RUN with run_release(), on failure too. Fails with
 * HOB_ERR_NOT_FOUND, and *OUT_MISSING naming the op, if the runtime or NAMES
 * does not know an op; otherwise as the op that failed.
 */
HOB_MUST_CHECK hob_status run_program(const struct program *program,
                                      hob_device *device,
                                      const struct names *names,
                                      struct run *out_run, char **out_missing,
                                      hob_error *error);
void run_release(struct run *run);

/*
 * The parts of run_program(), for who takes a program step by step. ITEM is
 * one of the program's steps, which may be an input; NUMBER, from 1, is for
 * messages. *OUT_MISSING must be NULL at first.
 */
HOB_MUST_CHECK hob_status run_open(const struct program *program,
                                   hob_device *device, struct run *out_run,
                                   hob_error *error);
/* Make the inputs that the program begins with, before any step. */
HOB_MUST_CHECK hob_status run_inputs(struct run *run, hob_error *error);
HOB_MUST_CHECK hob_status run_item(struct run *run, const cJSON *item,
                                   int number, const struct names *names,
                                   char **out_missing, hob_error *error);
/* ITEM is done: let go what no later step uses. */
void run_forget(struct run *run, const cJSON *item, int number);
/* Let NAME stand for TENSOR, of which RUN takes a reference. */
HOB_MUST_CHECK hob_status run_bind(struct run *run, const char *name,
                                   hob_tensor *tensor, hob_error *error);

/* The value called NAME, or NULL. */
hob_tensor *run_find(const struct run *run, const char *name);
/* Whether NAME is a result that its op left out: an optional one, or a field
 * of a variant that was not chosen. */
int run_is_absent(const struct run *run, const char *name);

#endif
