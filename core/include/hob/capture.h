/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/capture.h - steps that are recorded once and then replayed.
 *
 * A program that asks a GPU for the same work again and again, as in training,
 * can hand it over as a step: a function that computes new state and results
 * from state and inputs. A capture calls the function twice for each kind of
 * inputs: it runs once, it is recorded once, and from then on the recording
 * is replayed, without a call on the host for each op. (One that checks calls
 * it in every run: see hob_capture_open_checked().)
 *
 * - The state are tensors that each step takes from the one before, such as
 *   weights. It belongs to the capture. Inputs and results are ordinary
 * tensors.
 * - Inputs of other dtypes, shapes or devices, and a scope of another level
 *   (hob_no_grad), are another kind, with a recording of its own. A step is
 *   recorded at most HOB_CAPTURE_KINDS times; the least recently used goes.
 * - All else is as it was when the step was recorded: numbers given to ops (a
 *   learning rate), branches taken, tensors that the function took from
 *   elsewhere, which live until the recording goes. What changes from step to
 *   step must be state or an input; see hob_capture_forget().
 * - A recording keeps the memory that the step worked in, and the inputs of its
 *   latest replay: one that comes again is not copied again.
 * - What a step cannot do is said with the name of the op: read elements or
 *   wait, copy from the host, draw random numbers, make results whose sizes
 *   depend on data, work on another device, leave tensors behind, call ops that
 *   say they cannot be captured.
 * - Elements that are checked, such as indices, are checked in a replay too,
 *   but the failure is found by whoever waits next: hob_read(),
 *   hob_device_sync().
 *
 * A capture is used by one thread at a time; other threads may use its device
 * meanwhile. Where the base offers no interface "capture", hob_capture_open()
 * fails: the function can then be called as it is.
 */
#ifndef HOB_CAPTURE_H
#define HOB_CAPTURE_H

#include <hob/host.h>

HOB_BEGIN_DECLS

typedef struct hob_capture hob_capture;

enum { HOB_CAPTURE_KINDS = 16 };

/* What a step is given, and where it puts what it made. */
struct hob_step {
    uint32_t struct_size;
    uint32_t state_count;
    uint32_t input_count;
    uint32_t out_count;
    hob_tensor *const *state;  /* as the step before left it */
    hob_tensor *const *inputs; /* what hob_capture_run() was given */
    /* To be filled in: STATE_COUNT tensors with the dtypes and shapes of
     * state, and OUT_COUNT results. They belong to the step's scope or a scope
     * in it. Only their elements count: a history is dropped. */
    hob_tensor **new_state;
    hob_tensor **out;
};

/*
 * Compute STEP's new state and results in SCOPE. A failure is a status other
 * than HOB_OK, or the error of an op in SCOPE. The last use of a tensor of
 * state may be said by hob_move(): a recording then works in place.
 */
typedef hob_status (*hob_step_fn)(hob_scope *scope, void *context,
                                  struct hob_step *step);

/*
 * Make a capture of FN on DEVICE, whose state begins as copies of STATE.
 *
 * On success the caller ends *OUT_CAPTURE with hob_capture_close(). CONTEXT
 * must stay valid until then. Fails with HOB_ERR_UNSUPPORTED where the base of
 * DEVICE cannot capture, HOB_ERR_DEVICE if a tensor is on another base.
 */
HOB_API HOB_MUST_CHECK hob_status hob_capture_open(
    hob_device *device, hob_step_fn fn, void *context, hob_tensor *const *state,
    uint32_t state_count, hob_capture **out_capture, hob_error *error);

/*
 * The same of a step that checks itself, so that nothing has to be promised of
 * it: FN is called in every run, as it would be without a capture. Where it
 * asks the device for exactly what was recorded (each op, number and tensor)
 * the recording is replayed, which costs the host a call a kernel and no
 * launch. Else, and wherever a step cannot be recorded, it is run as it is:
 * results are the same. After three recordings in a row of which nothing could
 * be replayed, or an op that refuses, a kind of inputs is recorded no more.
 *
 * FN may be called twice in a run and must come to the same, so it counts
 * nothing itself; what it reads it reads from inputs. Numbers that change in
 * each step are to be inputs: see hob_adam_step().
 *
 * It works on every device. Where steps cannot be recorded, or a layer such as
 * fusion has its own groups, FN is just called.
 */
HOB_API HOB_MUST_CHECK hob_status hob_capture_open_checked(
    hob_device *device, hob_step_fn fn, void *context, hob_tensor *const *state,
    uint32_t state_count, hob_capture **out_capture, hob_error *error);

/* Why the latest run of a checked capture was no replay, with the op's name
 * where one was refused or not as recorded; NULL if it was one, and of a capture
 * that does not check. The text is CAPTURE's, until the next run. */
HOB_API const char *hob_capture_reason(const hob_capture *capture);

/*
 * Make one step with INPUTS. OUT_COUNT results, on the devices that the step
 * made them on, go to OUT and belong to SCOPE. Returns once the work is asked
 * for, as ops do.
 *
 * On failure OUT holds NULL and the state is what it was. Fails with
 * HOB_ERR_UNSUPPORTED if the step cannot be captured; each later call with such
 * inputs says so again.
 */
HOB_API HOB_MUST_CHECK hob_status
hob_capture_run(hob_scope *scope, hob_capture *capture,
                hob_tensor *const *inputs, uint32_t input_count,
                hob_tensor **out, uint32_t out_count, hob_error *error);

/* A copy of tensor INDEX of the state as it is now, owned by SCOPE; SCOPE's
 * error tensor on failure. */
HOB_API hob_tensor *hob_capture_state(hob_scope *scope, hob_capture *capture,
                                      uint32_t index);

/* Drop the recordings: the function is called anew, as at the start. For
 * when something that was recorded, a learning rate perhaps, has changed. */
HOB_API void hob_capture_forget(hob_capture *capture);

HOB_API void hob_capture_close(hob_capture *capture); /* accepts NULL */

HOB_END_DECLS

#endif
