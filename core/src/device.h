/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a device: an interned stack of layers over one base.
 *
 * Devices of one runtime are unique by their canonical name, so two stacks
 * are equal if their pointers are. Level 0 is the base; at[k] is the suffix
 * whose top is level k, and at[depth] is the device itself. Devices live as
 * long as their runtime; the count of references only serves HOB_ERR_BUSY.
 */
#ifndef HOB__DEVICE_H
#define HOB__DEVICE_H

#include "loader.h"

#include <hob/ext/plugin.h>
#include <hob/runtime.h>

#include <stdatomic.h>

struct hob__route; /* registry.h */

struct hob_device {
    atomic_uint refs;
    int32_t depth;
    hob_runtime *runtime;
    char *name;    /* canonical: "autodiff{checkpoint=balanced}(flex)" */
    char *options; /* JSON object, or NULL */
    hob_device *at[HOB_MAX_LEVELS + 1];
    const struct hob__plugin *plugin; /* of the top layer, or the base's */
    void *instance; /* what layer_open or device_open returned */
    const struct hob_decorator *decorator; /* NULL for a base */
    const struct hob_backend *backend;     /* of the base, at every depth */
    uint32_t ordinal;
    uint32_t unlisted;    /* enum hob__unlisted of a decorator */
    int32_t needs_state;  /* it has HOB_DECORATOR_NEEDS_STATE */
    int32_t has_again;    /* it or a layer below has the member again */
    const char *selector; /* "flex", "autodiff" */
    const char *family;   /* of a base, or NULL */
    /* How each op runs at this layer, filled on first use; by op number. */
    struct hob__route *_Atomic *routes;
    hob_device *next;      /* in the runtime's list */
    hob_device *next_lazy; /* likewise */
};

/*
 * A and B share one base and one is a suffix of the other: return the longer.
 * NULL otherwise.
 */
hob_device *hob__device_join(hob_device *a, hob_device *b);

/* End DEVICE's instance and free it; its suffixes stay. */
void hob__device_free(hob_device *device);

#endif
