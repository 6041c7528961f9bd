/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - segments of a program that are run again (hob_checkpoint).
 *
 * The core's part: which layer takes a segment, and a run of it: in a scope
 * of its own, with the random numbers of the first run, its results checked.
 * What is recorded and when a segment runs again is the layer's business.
 */
#include <hob/autodiff.h>
#include <hob/tensor.h>

#include "error.h"
#include "lazy.h"
#include "runtime.h"
#include "scope.h"

#include <hob/ext/autodiff.h>

#include <inttypes.h>
#include <stdlib.h>

struct segment {
    struct hob_segment base; /* first */
    hob_segment_fn run;
    void *context;
    void (*release)(void *context); /* may be NULL */
    hob_device *device;             /* that the inputs' are joined in */
    int32_t level;                  /* of the layer that has it, 0: none */
    int has_run;
    struct hob__draws draws; /* of the first run */
};

static const struct hob_autodiff_interface *interface_of(hob_device *layer)
{
    return layer->decorator->interface ? layer->decorator->interface(
                                             layer->instance,
                                             HOB_AUTODIFF_INTERFACE,
                                             HOB_AUTODIFF_INTERFACE_VERSION)
                                       : NULL;
}

/* Whether gradients flow to TENSOR, which no layer above LEVEL has put off. */
static int is_tracked(const hob_tensor *tensor, int32_t level)
{
    hob_device *layer = tensor->device->at[level];
    const struct hob_autodiff_interface *interface = interface_of(layer);

    return interface && interface->is_tracked(layer->instance, tensor);
}

static hob_status fail(hob_scope *scope, hob_status status, const char *text)
{
    hob__scope_fail(scope, status, "%s", text);
    return status;
}

/* Only once it is computed down to LEVEL is TENSOR's state there known, and
 * whether it failed. */
static hob_status settle(hob_scope *scope, hob_tensor *tensor, int32_t level)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status = hob__tensor_settle(tensor, level, &why);

    if (status)
        hob__scope_fail(scope, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    if (status || !(tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED)))
        return status;
    (void)hob__scope_pass(scope, tensor);
    return scope->failure ? scope->failure->status : HOB_ERR_MEMORY;
}

/* ---- a run ---- */

/* The generator of a run; the caller's own reference. NULL without memory. */
static struct hob__generator *generator_for(struct segment *segment,
                                            const hob_scope *outer)
{
    if (segment->has_run)
        return hob__generator_again(&segment->draws);
    if (segment->level)
        return hob__generator_noting(outer->generator, &segment->draws);
    hob__generator_ref(outer->generator);
    return outer->generator;
}

/* To the first run all that is tracked is hidden, so a result that is tracked
 * has come by it in another way than by the inputs. */
static hob_status check_hidden(const struct segment *segment, hob_scope *scope,
                               const hob_tensor *made, uint32_t index)
{
    if (!segment->level || segment->has_run)
        return HOB_OK;
    for (int32_t k = segment->level; k <= made->device->depth; k++)
        if (is_tracked(made, k)) {
            hob__scope_fail(scope, HOB_ERR_ARGUMENT,
                            "result %" PRIu32 " depends on a tracked tensor "
                            "that is not among the inputs: pass it as one, or "
                            "use hob_detach() on it",
                            index);
            return HOB_ERR_ARGUMENT;
        }
    return HOB_OK;
}

/* Let OUTER own MADE, result INDEX, on the segment's device. */
static hob_status take_result(const struct segment *segment, hob_scope *scope,
                              hob_scope *outer, hob_tensor *made,
                              uint32_t index, hob_tensor **out)
{
    hob_device *device = segment->device;
    hob_status status;

    if (!made) {
        hob__scope_fail(scope, HOB_ERR_ARGUMENT,
                        "the segment made no result %" PRIu32, index);
        return HOB_ERR_ARGUMENT;
    }
    /* What is recorded is what the layer sees of it. */
    status = settle(scope, made,
                    segment->level ? segment->level : made->device->depth);
    if (status)
        return status;
    if (device && hob__device_join(device, made->device) != device) {
        hob__scope_fail(scope, HOB_ERR_DEVICE,
                        "result %" PRIu32 " is on %s, the inputs are on %s",
                        index, made->device->name, device->name);
        return HOB_ERR_DEVICE;
    }
    status = check_hidden(segment, scope, made, index);
    if (status)
        return status;
    if (device && made->device != device)
        made = hob__tensor_share(made, device, made->device->depth);
    else
        hob__tensor_ref(made);
    if (!made || hob__scope_adopt(outer, made))
        return fail(scope, HOB_ERR_MEMORY, "no memory for a result");
    *out = made;
    return HOB_OK;
}

/* Call the program's function in SCOPE and let OUTER have what it made. */
static hob_status call(const struct segment *segment, hob_scope *scope,
                       hob_scope *outer, hob_tensor *const *inputs,
                       uint32_t input_count, hob_tensor **out)
{
    const uint32_t out_count = segment->base.out_count;
    hob_tensor **made = calloc(out_count + 1u, sizeof(hob_tensor *));
    hob_status status;

    if (!made)
        return fail(scope, HOB_ERR_MEMORY, "no memory for a list of results");
    status = segment->run(scope, segment->context, inputs, input_count, made,
                          out_count);
    if (scope->failure)
        status = scope->failure->status;
    else if (status)
        fail(scope, status, "the segment failed without a message");
    for (uint32_t i = 0; i < out_count && !status; i++)
        status = take_result(segment, scope, outer, made[i], i, &out[i]);
    free(made);
    return status;
}

static hob_status check_draws(struct segment *segment, hob_scope *scope,
                              struct hob__generator *generator)
{
    if (segment->draws.has_no_memory)
        return fail(scope, HOB_ERR_MEMORY,
                    "no memory to note which random numbers were drawn");
    if (segment->has_run && !hob__generator_is_same(generator))
        return fail(scope, HOB_ERR_ARGUMENT,
                    "the segment drew other random numbers than the first "
                    "time: it must do the same each time");
    if (!segment->has_run && segment->level)
        segment->has_run = 1;
    return HOB_OK;
}

static hob_status run(struct hob_segment *base, hob_scope *outer,
                      hob_tensor *const *inputs, uint32_t input_count,
                      hob_tensor **out)
{
    struct segment *segment = (struct segment *)base;
    struct hob__generator *generator = generator_for(segment, outer);
    struct hob_scope_frame frame;
    hob_scope *scope;
    hob_status status;

    for (uint32_t i = 0; i < base->out_count; i++)
        out[i] = NULL;
    if (!generator)
        return fail(outer, HOB_ERR_MEMORY, "no memory for a generator");
    scope = hob__scope_enter(outer, &frame, -1);
    scope->generator = generator;
    /* Held, so that a move of an input takes nothing from the caller. */
    for (uint32_t i = 0; i < input_count; i++)
        hob__tensor_ref(inputs[i]);
    status = call(segment, scope, outer, inputs, input_count, out);
    if (!status)
        status = check_draws(segment, scope, generator);
    while (scope->child) /* that the program has left open */
        hob_scope_close(scope->child);
    hob__scope_leave(scope);
    for (uint32_t i = 0; i < input_count; i++)
        hob__tensor_unref(inputs[i]);
    hob__generator_unref(generator);
    return status;
}

static void release(struct hob_segment *base)
{
    struct segment *segment = (struct segment *)base;

    if (segment->release)
        segment->release(segment->context);
    hob__draws_release(&segment->draws);
    free(segment);
}

/* ---- who takes it ---- */

/* Join the devices of INPUTS, all of which are alive. */
static hob_status join(hob_scope *scope, hob_tensor *const *inputs,
                       uint32_t input_count, hob_device **out_device)
{
    *out_device = NULL;
    for (uint32_t i = 0; i < input_count; i++) {
        const hob_tensor *input = inputs[i];
        hob_device *joined = *out_device
                                 ? hob__device_join(*out_device, input->device)
                                 : input->device;

        if (!joined) {
            hob__scope_fail(scope, HOB_ERR_DEVICE,
                            "input %" PRIu32 " is on %s and one before it on "
                            "%s: bring one over with hob_to_device()",
                            i, input->device->name, (*out_device)->name);
            return HOB_ERR_DEVICE;
        }
        *out_device = joined;
    }
    return HOB_OK;
}

static int can_checkpoint(const struct hob_autodiff_interface *interface)
{
    const size_t size = offsetof(struct hob_autodiff_interface, checkpoint) +
                        sizeof(void (*)(void));

    return interface->struct_size >= size && interface->checkpoint;
}

/* Whether an input is tracked at LEVEL, where DEVICE has an autodiff. */
static hob_status find_tracked(hob_scope *scope, int32_t level,
                               hob_tensor *const *inputs, uint32_t input_count,
                               int *out_is_tracked)
{
    hob_status status = HOB_OK;

    *out_is_tracked = 0;
    for (uint32_t i = 0; i < input_count && !status; i++) {
        if (level > inputs[i]->device->depth)
            continue;
        status = settle(scope, inputs[i], level);
        if (!status && is_tracked(inputs[i], level))
            *out_is_tracked = 1;
    }
    return status;
}

/* The topmost level that SCOPE's ops pass and that tracks an input, if it can
 * do without recording: 0 if there is none. */
static hob_status find_level(hob_scope *scope, const hob_device *device,
                             hob_tensor *const *inputs, uint32_t input_count,
                             int32_t *out_level)
{
    int32_t k = device ? device->depth : 0;
    hob_status status = HOB_OK;

    *out_level = 0;
    for (k = k < scope->level ? k : scope->level; k > 0 && !status; k--) {
        const struct hob_autodiff_interface *interface =
            interface_of(device->at[k]);
        int tracked = 0;

        if (interface)
            status = find_tracked(scope, k, inputs, input_count, &tracked);
        if (!tracked || status)
            continue;
        *out_level = can_checkpoint(interface) ? k : 0;
        break;
    }
    return status;
}

/* The call in SCOPE, which is inside one of the program's. Takes SEGMENT. */
static hob_status checkpoint(hob_scope *scope, struct segment *segment,
                             hob_tensor *const *inputs, uint32_t input_count,
                             hob_tensor **out)
{
    hob_device *layer;
    hob_status status = join(scope, inputs, input_count, &segment->device);

    if (!status)
        status = find_level(scope, segment->device, inputs, input_count,
                            &segment->level);
    if (status) {
        release(&segment->base);
        return status;
    }
    if (!segment->level) {
        status = run(&segment->base, scope, inputs, input_count, out);
        release(&segment->base);
        return status;
    }
    layer = segment->device->at[segment->level];
    return interface_of(layer)->checkpoint(
        layer->instance, scope, &segment->base, inputs, input_count, out);
}

/* An input that cannot be used: the error tensor for it; NULL if there is
 * none. */
static hob_tensor *find_dead(hob_scope *scope, hob_tensor *const *inputs,
                             uint32_t input_count)
{
    for (uint32_t i = 0; i < input_count; i++)
        if (inputs[i]->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
            return hob__scope_pass(scope, inputs[i]);
    return NULL;
}

/* What INNER failed with, on SCOPE; INNER may have had no memory to say. */
static hob_tensor *fail_with(hob_scope *scope, const hob_scope *inner,
                             hob_status status)
{
    const struct hob__failure *why = inner->failure;

    if (why && why->op)
        return hob__scope_fail(scope, status,
                               "checkpoint: in the segment, %s: %s", why->op,
                               why->message);
    return hob__scope_fail(scope, status, "checkpoint: %s",
                           why ? why->message : hob_status_name(status));
}

hob_status hob_checkpoint(hob_scope *scope, hob_segment_fn fn, void *context,
                          void (*release_context)(void *context),
                          hob_tensor *const *inputs, uint32_t input_count,
                          hob_tensor **out, uint32_t out_count)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    struct hob_scope_frame frame;
    hob_scope *inner = hob__scope_enter(scope, &frame, -1);
    hob_tensor *failed = find_dead(scope, inputs, input_count);
    hob_status status = HOB_ERR_MEMORY;

    for (uint32_t i = 0; i < out_count; i++)
        out[i] = NULL;
    if (segment && !failed) {
        segment->base.struct_size = sizeof(segment->base);
        segment->base.out_count = out_count;
        segment->base.run = run;
        segment->base.release = release;
        segment->run = fn;
        segment->context = context;
        segment->release = release_context;
        status = checkpoint(inner, segment, inputs, input_count, out);
    } else {
        if (failed)
            status = hob_tensor_status(failed, NULL);
        free(segment);
        if (release_context)
            release_context(context);
    }
    if (status && !failed)
        failed = fail_with(scope, inner, status);
    for (uint32_t i = 0; i < out_count && !status; i++)
        if (hob_keep(scope, out[i]) != out[i]) {
            failed = hob__scope_failure(scope, NULL);
            status = HOB_ERR_MEMORY;
        }
    for (uint32_t i = 0; i < out_count && failed; i++)
        out[i] = failed;
    hob__scope_leave(inner);
    return status;
}
