/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - run a program on a device.
 */
#ifndef TOOLS_EVAL_RUN_H
#define TOOLS_EVAL_RUN_H

#include "names.h"
#include "program.h"

#include <hob/hob.h>

/* A named value of a running program. */
struct binding {
    char *name; /* owned */
    hob_tensor *tensor;
};

struct run {
    hob_scope *scope; /* owns all tensors */
    hob_device *device;
    struct binding *bindings;
    uint32_t count;
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

/* The value called NAME, or NULL. */
hob_tensor *run_find(const struct run *run, const char *name);

#endif
