/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - what a capture is inside.
 *
 * State and inputs of recordings have slots: memory whose address recordings
 * have in them. Before a replay the inputs are copied to theirs; afterwards
 * the results are copied from the recording's memory. New state is written to
 * its slot by the recording itself.
 */
#ifndef HOB__CAPTURE_H
#define HOB__CAPTURE_H

#include "recording.h"

#include <hob/capture.h>

#include <hob/ext/capture.h>

/* A tensor as it is known from step to step. */
struct hob__operand {
    hob_device *device; /* the stack that it is on; borrowed from the runtime */
    struct hob_meta meta;
    uint64_t bytes;
    hob_tensor *slot; /* on the base; NULL: none yet */
    hob_tensor *last; /* an input whose elements the slot has; or NULL */
    void *data;       /* a result in the recording's memory */
    uint32_t refs;    /* to the slot's handle, before a recording */
};

/* Inputs that are alike, and what was recorded for them. */
/* Room for the reason why a checked step was not replayed. */
enum { HOB__CAPTURE_REASON = 256 };

struct hob__kind {
    struct hob__kind *next; /* not used since this one was */
    int32_t level;          /* of the scope */
    uint32_t input_count;
    uint32_t out_count;
    uint32_t has_run;
    struct hob__operand *inputs;
    struct hob__operand *outs;
    void *graph;                     /* the backend's; NULL: not recorded yet */
    struct hob__recording recording; /* and what it holds */
    uint32_t misses;   /* checked: runs in a row that were not as recorded */
    uint32_t gives_up; /* checked: it is run as it is from now on */
    char reason[HOB__CAPTURE_REASON]; /* why it gives up */
};

struct hob_capture {
    hob_runtime *runtime;
    hob_device *device; /* one reference */
    /* NULL: a checked one, whose base has none. Its slots are no memory of
     * its own then, but the latest state itself. */
    const struct hob_capture_interface *interface;
    hob_step_fn fn;
    void *context;
    struct hob__operand *state;
    uint32_t state_count;
    struct hob__kind *kinds; /* the latest used one first */
    uint32_t is_running;
    uint32_t is_checked;
    char reason[HOB__CAPTURE_REASON]; /* "": the latest run was a replay */
};

/* ---- capture_kinds.c ---- */

HOB_MUST_CHECK hob_status hob__operand_init(struct hob__operand *operand,
                                            const hob_tensor *tensor,
                                            hob_device *device);
/* Whether TENSOR has OPERAND's dtype and shape. */
int hob__operand_is_like(const struct hob__operand *operand,
                         const hob_tensor *tensor);
/* Copy on the device. */
HOB_MUST_CHECK hob_status hob__capture_copy(const hob_capture *capture,
                                            void *to, const void *from,
                                            uint64_t bytes);
/* Copy TENSOR's elements to OPERAND's slot, unless they lie there. */
HOB_MUST_CHECK hob_status hob__capture_put(const hob_capture *capture,
                                           const struct hob__operand *operand,
                                           hob_tensor *tensor,
                                           hob_error *error);
/* A new tensor on DEVICE, as OPERAND is, with the elements at DATA. */
HOB_MUST_CHECK hob_status hob__capture_take(const hob_capture *capture,
                                            hob_device *device,
                                            const struct hob__operand *operand,
                                            const void *data,
                                            hob_tensor **out_tensor,
                                            hob_error *error);

/* The kind of INPUTS, first in the list from now on; NULL without memory. */
struct hob__kind *hob__kind_find(hob_capture *capture, const hob_scope *scope,
                                 hob_tensor *const *inputs,
                                 uint32_t input_count, uint32_t out_count);
void hob__kind_drop_recording(const hob_capture *capture,
                              struct hob__kind *kind);
void hob__kind_free(const hob_capture *capture, struct hob__kind *kind);
/* Give up what was not used for longest, if there are too many. */
void hob__kind_drop_oldest(hob_capture *capture);

/* ---- capture_step.c ---- */

/* Call the function as it is. OUT gets references. */
HOB_MUST_CHECK hob_status
hob__capture_call(hob_capture *capture, hob_scope *scope,
                  hob_tensor *const *inputs, uint32_t input_count,
                  hob_tensor **out, uint32_t out_count, hob_error *error);
/* Record the function for KIND, whose inputs have slots: set its graph and its
 * results. */
HOB_MUST_CHECK hob_status hob__capture_record(hob_capture *capture,
                                              struct hob__kind *kind,
                                              hob_scope *scope,
                                              hob_error *error);
/*
 * Call the function for KIND, which has a graph, without anything being run;
 * HOB_OK if it asks for what was recorded. Else ERROR says what was not.
 */
HOB_MUST_CHECK hob_status hob__capture_follow(hob_capture *capture,
                                              struct hob__kind *kind,
                                              hob_scope *scope,
                                              hob_error *error);

#endif
