/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/host.h - the host table: how everything outside the core calls it.
 *
 * Every scope begins with a pointer to this table. The inline functions of
 * hob/ops.h and of an extension's header call through it, so programs and
 * plugins use the same headers and a plugin links nothing of Hob.
 *
 * The table grows at its end only. Members without a remark may be called
 * from any thread, as long as a scope is used by one thread at a time.
 */
#ifndef HOB_HOST_H
#define HOB_HOST_H

#include <hob/types.h>
#include <hob/view.h>

HOB_BEGIN_DECLS

/* The ABI of this header. While the major is 0 the minor must match. */
enum { HOB_ABI_MAJOR = 0, HOB_ABI_MINOR = 2 };

struct hob_host;
struct hob_call;
struct hob_pattern;

/* What every scope begins with. */
struct hob_scope_head {
    const struct hob_host *host;
};

/* Memory for a child scope on the stack; see host->scope_enter. */
struct hob_scope_frame {
    uint64_t opaque[32];
};

/*
 * A cached reference to an op that has no fixed number, one a place of call.
 * CACHE holds the runtime's serial in its upper half and the op's number in
 * the lower; it is read and written whole.
 */
struct hob_op_ref {
    const char *name;
    uint64_t cache;
};

/* How a layer that delays or joins ops may treat one. */
enum hob_fuse {
    HOB_FUSE_OPAQUE = 0, /* as it is; its results are known from inference */
    HOB_FUSE_ELEMENTWISE = 1,
    HOB_FUSE_REDUCE = 2,
    HOB_FUSE_VIEW = 3,
    HOB_FUSE_INLINE = 4,  /* by its parts: its body may run at the layer */
    HOB_FUSE_UNLISTED = 5 /* an extension's, which does not list the layer */
};

/* Where a call comes from, see host->call_origin. */
struct hob_call_origin {
    uint32_t struct_size; /* set by who asks */
    uint32_t fuse;        /* enum hob_fuse: of the op at the call's layer */
    const void *scope;    /* the program's scope that it was made in; NULL
                             inside of host->scope_begin */
    uint64_t index;       /* of the call in its scope, for messages */
    /* Calls that have the same are alike: in their op, their device, their
     * attributes, and the dtypes and shapes of tensors and results. 0: nothing
     * is known of it. Not every call that is like another has its number. */
    uint64_t kind;
};

/* Run items FIRST..LAST-1 of a job; WORKER is 0..workers-1. */
typedef void (*hob_range_fn)(void *context, int64_t first, int64_t last,
                             uint32_t worker);

struct hob_host {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    const char *version; /* of Hob, as in "0.1.0" */

    /*
     * The outer boundary. Fill omitted trailing arguments, validate, infer,
     * join, route and run OP; return its only result, owned by SCOPE, or
     * SCOPE's error tensor. ARGS is the caller's and not kept.
     */
    hob_tensor *(*call1)(hob_scope *scope, uint32_t op, const hob_value *args,
                         uint32_t arg_count);
    /* The same for several results: OUT has room for OUT_CAPACITY of them. */
    hob_status (*calln)(hob_scope *scope, uint32_t op, const hob_value *args,
                        uint32_t arg_count, hob_tensor **out,
                        uint32_t out_capacity, uint32_t *out_count);
    /* The same for an op with results that are no tensors, which go to PLAINS.
     * A result that is absent is NULL in OUT. After a failure PLAINS hold
     * zeros. */
    hob_status (*callv)(hob_scope *scope, uint32_t op, const hob_value *args,
                        uint32_t arg_count, hob_tensor **out,
                        uint32_t out_capacity, uint32_t *out_count,
                        hob_value *plains, uint32_t plain_capacity);
    /* The number of the op that REF names, UINT32_MAX if nobody has it. */
    uint32_t (*op_id)(hob_scope *scope, struct hob_op_ref *ref);

    /* --- life cycle of tensors and scopes --- */

    /* Open a child of PARENT in FRAME, at PARENT's level or one below LEVEL
     * >= 0; close with scope_leave, which releases what it owns. */
    hob_scope *(*scope_enter)(hob_scope *parent, struct hob_scope_frame *frame,
                              int32_t level);
    void (*scope_leave)(hob_scope *scope);
    /* The status of SCOPE's first error. */
    hob_status (*scope_status)(const hob_scope *scope);
    /* Put an error on SCOPE, if it has none, and return its error tensor. */
    hob_tensor *(*scope_fail)(hob_scope *scope, hob_status status,
                              const char *format, ...)HOB_PRINTF(3, 4);
    /* Let OUTER own TENSOR too; returns TENSOR. */
    hob_tensor *(*keep)(hob_scope *outer, hob_tensor *tensor);
    /* Mark the next use of TENSOR in a call as its last; returns TENSOR. */
    hob_tensor *(*move)(hob_scope *scope, hob_tensor *tensor);
    void (*tensor_ref)(hob_tensor *tensor);
    void (*tensor_unref)(hob_tensor *tensor); /* accepts NULL */
    /* The device that TENSOR is on, borrowed; NULL for an error tensor. */
    hob_device *(*tensor_device)(const hob_tensor *tensor);
    /* Nonzero if TENSOR is an error tensor. */
    int32_t (*tensor_is_error)(const hob_tensor *tensor);

    /* --- for decorators --- */

    /*
     * A new handle on TENSOR's elements whose stack ends at LEVEL (0: the
     * base), with the state words of the levels up to LEVEL only. The caller
     * owns one reference; no scope owns it. NULL without memory.
     */
    hob_tensor *(*alias)(hob_tensor *tensor, int32_t level);
    /* The opposite: a handle on TENSOR's elements with the whole stack of
     * DEVICE, of which TENSOR's device is a suffix; new state words empty. */
    hob_tensor *(*lift)(hob_tensor *tensor, hob_device *device);
    /* The state word of LEVEL (1: the decorator next to the base). */
    void *(*state)(const hob_tensor *tensor, int32_t level);
    /* Set it; the old one is not released. Another thread that makes a handle
     * of TENSOR meanwhile sees the old word or the new one. */
    void (*set_state)(hob_tensor *tensor, int32_t level, void *state);
    /* Continue CALL one level below call->level, results into call->rets. */
    hob_status (*next)(struct hob_call *call);
    /* Run one step of the op's body at call->level: the ops of which it is
     * composed come back to this layer one by one. */
    hob_status (*body)(struct hob_call *call);

    /* --- for backends --- */

    /* Put a message on CALL and return STATUS. */
    hob_status (*fail)(struct hob_call *call, hob_status status,
                       const char *format, ...) HOB_PRINTF(3, 4);
    /* For ops whose result sizes depend on data: allocate result INDEX of
     * CALL as META says. */
    hob_status (*result)(struct hob_call *call, uint32_t index,
                         const struct hob_meta *meta);
    /* Run FN over 0..COUNT-1 in pieces of at least GRAIN on the host's
     * threads and this one; return when all is done. Pieces depend on COUNT
     * and GRAIN only. A nested call runs inline. */
    void (*parallel_for)(const struct hob_host *host, int64_t count,
                         int64_t grain, hob_range_fn fn, void *context);
    /* Threads that parallel_for may use, at least 1. */
    uint32_t (*thread_count)(const struct hob_host *host);

    /* --- services --- */

    /* Host memory, 64-byte aligned; NULL without memory. */
    void *(*mem_alloc)(const struct hob_host *host, uint64_t bytes);
    void (*mem_free)(const struct hob_host *host, void *memory);
    /* SEVERITY: 0 debug, 1 info, 2 warn, 3 error; HOB_LOG selects, else error
     * alone. The plugin is named if HOST is the one that its open was given. */
    void (*log_write)(const struct hob_host *host, int32_t severity,
                      const char *format, ...) HOB_PRINTF(3, 4);
    /* A named, versioned table that a layer of DEVICE offers; NULL if none
     * does. The topmost layer that has it answers. */
    const void *(*interface)(hob_device *device, const char *name,
                             uint32_t version, void **out_instance);
    /* What is truly one a process: the first caller's MAKE makes it. It is
     * never freed, outlives the runtime and so points to nothing of it, and is
     * there in a forked child too. NULL if MAKE gave that, in which case the
     * next caller's is asked again, or without memory. */
    void *(*process_shared)(const char *key, void *(*make)(void));

    hob_runtime *runtime; /* whose table this is */

    /* --- for decorators that look at what passes by --- */

    /*
     * Copy TENSOR's elements, row-major, to OUT_DATA of BYTES bytes. Waits.
     * On failure *OUT_MESSAGE, which the caller gives back with mem_free,
     * says why; it is NULL otherwise, and without memory.
     */
    hob_status (*read)(hob_tensor *tensor, void *out_data, uint64_t bytes,
                       char **out_message);
    /* The signature of the op with the number OP, as it was declared: it
     * names the arguments of a call. NULL if there is none. */
    const char *(*op_signature)(const struct hob_host *host, uint32_t op);

    /* --- for decorators that put work off: those with the member settle --- */

    /* struct_size of OUT is set: no more than that is written to. */
    void (*call_origin)(const struct hob_call *call,
                        struct hob_call_origin *out);
    /*
     * Let result INDEX of CALL be a handle with the inferred metadata that
     * waits for call->level: STATE is its state word there. HOB_ERR_MEMORY,
     * without a message.
     */
    hob_status (*defer)(struct hob_call *call, uint32_t index, void *state);
    /*
     * TENSOR waits for LEVEL: give it the elements of SOURCE, which is of one
     * level down and has its metadata, or SOURCE's failure. STATE is the state
     * word from then on; the old one is the caller's again, but must stay good
     * to read while the new one lives, because another thread may have it in
     * hand. One thread at a time. HOB_ERR_STATE if TENSOR does not wait.
     */
    hob_status (*fill)(hob_tensor *tensor, int32_t level, void *state,
                       hob_tensor *source);
    /* Open a scope in FRAME that is inside no other: for ops on DEVICE at
     * which nobody waits. What fails in it the runtime's policy is told. Close
     * it with scope_leave. */
    hob_scope *(*scope_begin)(hob_device *device,
                              struct hob_scope_frame *frame);
    /* Make a call of before again, as callv; to people it is call INDEX. */
    hob_status (*replay)(hob_scope *scope, uint64_t index, uint32_t op,
                         const hob_value *args, uint32_t arg_count,
                         hob_tensor **out, uint32_t out_capacity,
                         uint32_t *out_count, hob_value *plains,
                         uint32_t plain_capacity);
    /* As in "demo.square"; NULL if there is none with the number OP. */
    const char *(*op_name)(const struct hob_host *host, uint32_t op);
    /* A row-major tensor on DEVICE whose elements are the caller's to write:
     * in the memory of OVER where that is given, which has as many bytes.
     * The caller's reference; NULL without memory. */
    hob_tensor *(*tensor_new)(hob_device *device, const struct hob_meta *meta,
                              hob_tensor *over);
    /* Nonzero if the COUNT handles TENSORS, which are different and of which
     * the caller holds one reference each, are all that there is of their
     * common memory, and it may be written to. */
    int32_t (*is_last)(hob_tensor *const *tensors, uint32_t count);
    /* Nonzero if somebody holds TENSOR besides the scope that it was made in.
     * The caller keeps it from going meanwhile. */
    int32_t (*is_held)(const hob_tensor *tensor);
    /* Registered optimisation INDEX, of hob/ext/fusion.h; NULL beyond the
     * last. */
    const struct hob_pattern *(*pattern)(const struct hob_host *host,
                                         uint32_t index);
    /*
     * What the base of DEVICE would make of a call of OP, which has one result:
     * its metadata. Nothing is computed and nobody is told of a failure. ARGS
     * are all of its arguments as bound before; where there is a tensor, the
     * next of METAS says what it is like. HOB_ERR_UNSUPPORTED where the base
     * has no kernel for it.
     */
    hob_status (*foresee)(hob_device *device, uint32_t op,
                          const hob_value *args, uint32_t arg_count,
                          const struct hob_meta *metas, struct hob_meta *out);
    /* The scope around CLOSING, which is being closed, that alone holds TENSOR
     * from then on and was the last to get it; NULL if there is none, or none
     * that is inside another one and so ends with a step of the program. */
    const void *(*heir)(const void *closing, const hob_tensor *tensor);

    /* --- for decorators above such ones --- */

    /* Have computed what the COUNT handles TENSORS wait for, for the sake of
     * what it keeps in memory. What fails becomes an error tensor, as it would
     * later. */
    void (*eval)(hob_tensor *const *tensors, uint32_t count);

    /* --- for backends whose memory is not the host's --- */

    /* Nonzero if it is known, without reading it, that no element of argument
     * INDEX of CALL, a tensor of integers, is below *OUT_LOW or above
     * *OUT_HIGH: so indices may need no look for bad ones. */
    int32_t (*arg_range)(const struct hob_call *call, uint32_t index,
                         int64_t *out_low, int64_t *out_high);
};

/* The table of SCOPE. */
static inline const struct hob_host *hob_scope_host(const hob_scope *scope)
{
    return ((const struct hob_scope_head *)(const void *)scope)->host;
}

/* ---- inline functions over the table, for programs and plugins alike ---- */

/*
 * Say that the next use of TENSOR is its last: that op may write in place.
 * Afterwards the handle is a tombstone: using it again is an error that names
 * the call that took it. Returns TENSOR.
 */
static inline hob_tensor *hob_move(hob_scope *scope, hob_tensor *tensor)
{
    return hob_scope_host(scope)->move(scope, tensor);
}

/* Let OUTER own TENSOR too, so that it outlives the scope that made it. */
static inline hob_tensor *hob_keep(hob_scope *outer, hob_tensor *tensor)
{
    return hob_scope_host(outer)->keep(outer, tensor);
}

static inline hob_dtype hob_tensor_dtype(const hob_tensor *tensor)
{
    return (hob_dtype)((const struct hob_view *)(const void *)tensor)->dtype;
}

static inline int32_t hob_tensor_rank(const hob_tensor *tensor)
{
    return ((const struct hob_view *)(const void *)tensor)->rank;
}

/* The sizes of TENSOR's dimensions, hob_tensor_rank() of them, borrowed. */
static inline const int64_t *hob_tensor_shape(const hob_tensor *tensor)
{
    return ((const struct hob_view *)(const void *)tensor)->shape;
}

/* The number of elements; 1 for rank 0. */
static inline int64_t hob_tensor_count(const hob_tensor *tensor)
{
    return hob_view_count((const struct hob_view *)(const void *)tensor);
}

/* Resolve REF in SCOPE's runtime: one load and compare when cached. */
static inline uint32_t hob_op_resolve(hob_scope *scope, struct hob_op_ref *ref)
{
    return hob_scope_host(scope)->op_id(scope, ref);
}

HOB_END_DECLS

#endif
