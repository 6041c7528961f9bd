/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_host.h - just enough host to call a backend's entries directly.
 *
 * A struct fake_host holds a table whose memory, parallel_for, fail and
 * result work; the other members are NULL. A struct fake_call is one call
 * with its values, views and result memory. Nothing here needs the core.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include <hob/ext/plugin.h>

struct fake_host {
    struct hob_host table; /* first: a pointer to it is one to the whole */
    uint32_t workers;      /* parallel_for runs pieces in turn, the last
                              first if this is above 1, as workers 0.. */
    char message[512];     /* of the last fail */
    uint64_t live_blocks;  /* mem_alloc less mem_free */
};

void fake_host_init(struct fake_host *host, uint32_t workers);

enum { FAKE_GUARD_BYTES = 64 };

/* A tensor: its view is what handles are cast to. */
struct fake_tensor {
    struct hob_view view;
    char *block; /* guard, elements, guard; owned; NULL if borrowed */
    uint64_t bytes;
};

struct fake_call {
    struct hob_call call;
    struct fake_host *host;
    hob_value args[HOB_MAX_PARAMS];
    hob_value rets[HOB_MAX_RESULTS];
    struct hob_meta metas[HOB_MAX_RESULTS];
    struct fake_tensor arg_tensors[HOB_MAX_PARAMS];
    struct fake_tensor results[HOB_MAX_RESULTS];
};

/* A row-major tensor with guard bytes around it, its elements undefined, its
 * data OFFSET bytes off a 64-byte boundary (for misaligned tests). */
void fake_tensor_init(struct fake_tensor *tensor, uint32_t dtype, uint32_t rank,
                      const int64_t *shape, uint32_t offset);
void fake_tensor_release(struct fake_tensor *tensor);
/* Nonzero if no guard byte has changed. */
int fake_tensor_intact(const struct fake_tensor *tensor);
/* Set the flags of VIEW from its shape and strides. */
void fake_view_flags(struct hob_view *view);

/* Begin a call of OP_NAME. */
void fake_call_init(struct fake_call *fake, struct fake_host *host,
                    const char *op_name);
/* Append an argument. VIEW is copied; its elements are borrowed. */
void fake_call_view(struct fake_call *fake, const struct hob_view *view);
void fake_call_value(struct fake_call *fake, hob_value value);
/* Append a result, allocated as fake_tensor_init does. */
void fake_call_result(struct fake_call *fake, uint32_t dtype, uint32_t rank,
                      const int64_t *shape);
/* Append a result that shares argument INDEX's elements, to run in place. */
void fake_call_result_in_place(struct fake_call *fake, uint32_t index);
/* Append a result that the kernel allocates with host->result. */
void fake_call_result_dynamic(struct fake_call *fake);
/* Prepare (workspace too) and execute ENTRY on DEVICE. */
hob_status fake_call_run(struct fake_call *fake, const struct hob_entry *entry,
                         void *device);
/* Frees the results; checks nothing. */
void fake_call_release(struct fake_call *fake);

/* The entry of OP among COUNT entries, NULL if there is none. */
const struct hob_entry *fake_entry_find(const struct hob_entry *entries,
                                        uint32_t count, const char *op);

#endif
