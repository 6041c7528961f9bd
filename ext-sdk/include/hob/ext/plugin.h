/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/plugin.h - the plugin ABI: the uniform call and the tables.
 *
 * A plugin is a shared library with one exported function,
 * hob_plugin_entry(), and a manifest. The entry is cheap, may be called any
 * number of times and returns a constant table; it touches no device.
 *
 * Order of calls: entry; then, once a runtime, open; then device_open for
 * each device that the program asks for; then calls; then device_close and
 * close in the opposite order. Everything that takes a device may be called
 * from several threads at once, except that device_close is called last and
 * alone. Where two threads are the first to need an instance or a device, both
 * may open one: the second is closed again, unused. A plugin keeps no state of
 * its own outside the instances that it returned.
 *
 * Tables start with struct_size and grow at their end only. A NULL member
 * means "not supported" unless its comment says "required". Strings and
 * tables that a plugin returns live as long as the process.
 *
 * Elements of lists grow at their end too: the table that holds a list says
 * how large one element is in the header that the plugin was built with
 * (entry_size, op_size, impl_size). The ..._INIT_HEAD macros set all sizes.
 */
#ifndef HOB_EXT_PLUGIN_H
#define HOB_EXT_PLUGIN_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/* ---- the uniform call: fixed within an ABI major ---- */

enum hob_call_flags {
    HOB_CALL_DYNAMIC = 1 /* result sizes depend on data */
};

/*
 * One call on its way down the layers. At a backend, rets holds allocated
 * tensors (unless HOB_CALL_DYNAMIC) and the arguments are in its memory.
 *
 * Structs and enums lie flat: a struct argument is its fields, one after the
 * other; an enum one is an ENUM value, then the fields of all its variants,
 * those of the others absent. Results likewise: the tensors are in rets, what
 * is no tensor in plains, which inference sets and nobody changes.
 */
struct hob_call {
    const struct hob_host *host;
    uint32_t op;    /* number of the op in this runtime */
    uint32_t flags; /* enum hob_call_flags */
    hob_scope *scope;
    hob_device *device; /* the joined device of the call, whole stack */
    int32_t level;      /* the layer that has the call now; 0 is the base */
    uint16_t arg_count;
    uint16_t ret_count;
    hob_value *args;              /* arg_count, in the signature's order */
    hob_value *rets;              /* ret_count tensors */
    const struct hob_meta *metas; /* ret_count: the inferred results; dtype
                                     NONE where a result is absent */
    hob_value *plains;            /* plain_count results that are no tensors */
    uint16_t plain_count;
    uint16_t reserved[3];
    void *stream;                /* of the device; NULL on a CPU */
    void *workspace;             /* as prepare asked, 64-byte aligned */
    const void *prepared;        /* what prepare returned; only read */
    const char *op_name;         /* as in "demo.square", borrowed */
    struct hob_call_state *core; /* the core's own */
};

/* Argument INDEX as a view; NULL if it is absent. */
static inline struct hob_view *hob_arg_view(const struct hob_call *call,
                                            uint32_t index)
{
    return call->args[index].tag == HOB_TAG_TENSOR
               ? hob_tensor_view(call->args[index].u.tensor)
               : NULL;
}

/* Tensor ITEM of list argument INDEX as a view. */
static inline struct hob_view *hob_arg_item(const struct hob_call *call,
                                            uint32_t index, uint32_t item)
{
    return hob_tensor_view(call->args[index].u.tensors[item]);
}

/* Result INDEX as a view to write to; NULL if it is absent. */
static inline struct hob_view *hob_ret_view(const struct hob_call *call,
                                            uint32_t index)
{
    return hob_tensor_view(call->rets[index].u.tensor);
}

/* Whether argument INDEX is this kernel's alone, to be written to as it
 * likes: the caller has moved it, and the manifest declares it consumed. */
static inline int hob_arg_is_consumed(const struct hob_call *call,
                                      uint32_t index)
{
    return (call->args[index].flags & HOB_VALUE_MOVE) != 0;
}

/* ---- functions of an op ---- */

/*
 * Compute the results' metadata of CALL into OUT (call->ret_count entries).
 * The core has filled in each dtype that the signature gives; the function
 * writes rank and shape, and a dtype where it is another. It leaves the dtype
 * of a result that is absent HOB_DTYPE_NONE, and writes the payload of each
 * of call->plains, whose tags are set. It sees metadata only: elements must
 * not be read. What it says follows from the op, the device, the attributes and
 * the dtypes and shapes of the tensors alone: of a call that is like an earlier
 * one it may not be asked. Failures go through host->fail.
 *
 * An op whose results are a list is asked twice: with OUT NULL it says how
 * long the list is by setting call->ret_count, then it fills as many metas.
 */
typedef hob_status (*hob_infer_fn)(struct hob_call *call, struct hob_meta *out);

/*
 * Run the op as a composition of other ops in SCOPE, at whose level they are
 * dispatched. OUT receives call->ret_count tensors owned by SCOPE, NULL where
 * a result is absent.
 */
typedef hob_status (*hob_body_fn)(hob_scope *scope, const struct hob_call *call,
                                  hob_tensor **out);

/* ---- backends ---- */

enum hob_entry_flags {
    HOB_ENTRY_CONTIGUOUS = 1, /* wants its tensor arguments contiguous */
    HOB_ENTRY_IN_PLACE = 2,   /* a result may be the very same elements as an
                                 argument of the same dtype and shape */
    HOB_ENTRY_DYNAMIC = 4,    /* allocates its results with host->result */
    HOB_ENTRY_KEEP = 8        /* what prepare returns is kept, see there */
};

/*
 * What prepare answers, besides its status. With HOB_ENTRY_KEEP the core keeps
 * the answer and gives it to later calls on the device that are like this one:
 * equal dtypes, shapes, strides and attributes, so it may depend on those and
 * on nothing else. RELEASE is called once for a PREPARED that is not NULL,
 * when it is no longer kept or, without HOB_ENTRY_KEEP, after the call.
 */
struct hob_prepare {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t workspace_bytes;
    void *prepared;
    void (*release)(void *prepared); /* NULL: nothing to give back */
};

/*
 * One kernel: how this backend computes OP. SIGNATURE is the text that the
 * kernel was written for; the core compares it with the op's. DTYPES holds a
 * mask for each tensor parameter, in order; a list parameter has one mask for
 * all. Outside the masks, or where prepare answers HOB_ERR_UNSUPPORTED, the
 * core runs the op's body.
 */
struct hob_entry {
    const char *op;        /* required, as in "matmul" */
    const char *signature; /* required */
    const uint32_t *dtypes;
    uint32_t dtype_count;
    uint32_t flags; /* enum hob_entry_flags */
    /* NULL: no workspace. */
    hob_status (*prepare)(void *device, const struct hob_call *call,
                          struct hob_prepare *out);
    /* Required. DEVICE is what device_open returned; for an extension's
     * kernel, what its open returned. It must not answer HOB_ERR_UNSUPPORTED,
     * which is for prepare: a result may lie over an argument by now. */
    hob_status (*execute)(void *device, struct hob_call *call);
};

struct hob_device_info {
    char name[128];        /* of the hardware, for people */
    uint64_t memory_bytes; /* 0: unknown */
    uint64_t reserved[8];
};

struct hob_backend {
    uint32_t struct_size;
    uint32_t entry_count;
    const struct hob_entry *entries;
    uint32_t entry_size; /* bytes of one entry; required if there are any */
    uint32_t flags;      /* enum hob_backend_flags */

    /* How many devices there are. Required. */
    hob_status (*device_count)(void *instance, uint32_t *out_count);
    hob_status (*device_info)(void *instance, uint32_t ordinal,
                              struct hob_device_info *out);
    /* OPTIONS is a JSON object or NULL. Where there are no devices, or
     * device_info fails, it is called all the same, to say why in
     * *OUT_MESSAGE: ORDINAL need not be less than the count. Required. */
    hob_status (*device_open)(void *instance, uint32_t ordinal,
                              const char *options, void **out_device,
                              char **out_message);
    void (*device_close)(void *device); /* required */

    /* Memory of the device; HOB_ERR_MEMORY if there is none. Required. A
     * block is 64-byte aligned; its content is undefined. */
    hob_status (*alloc)(void *device, uint64_t bytes, void **out_data);
    void (*free)(void *device, void *data, uint64_t bytes); /* required */
    /* Copy from the host to this device, and wait. Required. */
    hob_status (*upload)(void *device, void *data, const void *host_data,
                         uint64_t bytes);
    /* The opposite, likewise. Required. */
    hob_status (*download)(void *device, void *host_data, const void *data,
                           uint64_t bytes);
    /* Wait for all work; NULL: work is done when execute returns. */
    hob_status (*sync)(void *device);
    const void *(*interface)(void *device, const char *name, uint32_t version);

    /* Say in OUT what alloc has given out and keeps; struct_size is set. The
     * sizes are as alloc was asked for them. NULL: no account is kept. */
    void (*memory_stats)(void *device, struct hob_memory_stats *out);
    /* Let peak_bytes be in_use_bytes. NULL: there is no peak. */
    void (*memory_reset_peak)(void *device);
    /* Give what is kept for reuse back to the system. NULL: none is kept. */
    void (*memory_trim)(void *device);

    /* Copy from FROM_DEVICE, the same device or another one of this plugin in
     * this runtime, after what was asked of either before and before what is
     * asked of either later. HOB_ERR_UNSUPPORTED for a pair of devices that
     * cannot, NULL where none can: copies go through the host then. */
    hob_status (*copy)(void *device, void *data, void *from_device,
                       const void *from_data, uint64_t bytes);
};

#define HOB_BACKEND_INIT_HEAD                                                  \
    .struct_size = sizeof(struct hob_backend),                                 \
    .entry_size = sizeof(struct hob_entry)

enum hob_backend_flags {
    HOB_BACKEND_HOST_MEMORY = 1 /* data are host pointers, read at any time */
};

struct hob_op_impl; /* below, with extensions */

/* ---- decorators ---- */

/* What a layer did with a call. */
enum hob_verdict {
    HOB_LAYER_DONE = 0,   /* handled: status and rets are set */
    HOB_LAYER_PASS = 1,   /* nothing to do: run it below, results as they are */
    HOB_LAYER_NO_RULE = 2 /* something to do, but no rule: the core runs the
                             body here, or follows the "unlisted" policy */
};

enum hob_decorator_flags {
    /* The layer has something to do only where a tensor of the call carries a
     * state word of its level. Other calls of built-in ops pass it by. */
    HOB_DECORATOR_NEEDS_STATE = 1
};

/*
 * A call that is like an earlier one, so that no more has to be said of it; see
 * again below.
 */
struct hob_again {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t kind;     /* as in struct hob_call_origin, and not 0 */
    uint64_t index;    /* likewise */
    const void *scope; /* likewise */
    /* The state words of its tensors, lists laid flat: none is NULL. Another
     * thread may fill a handle just now, so that its word has changed. */
    void *const *words;
    /* The handles of its results, which wait for the layer; they get their
     * words afterwards. */
    hob_tensor *const *rets;
    uint32_t word_count;
    uint32_t ret_count;
};

struct hob_decorator {
    uint32_t struct_size;
    uint32_t flags; /* enum hob_decorator_flags */
    /* BELOW is the device one level down, LEVEL this layer's. Required. */
    hob_status (*layer_open)(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message);
    void (*layer_close)(void *layer); /* required */
    /*
     * Look at CALL, whose level is this layer's. IMPL is an extension's
     * implementation for this layer's selector, or NULL. Required.
     */
    int32_t (*call)(void *layer, struct hob_call *call,
                    const struct hob_op_impl *impl, hob_status *out_status);
    /* Give a state word back: its handle dies. Not NULL if it sets any, unless
     * it has states_release. */
    void (*state_release)(void *layer, void *state);
    /* One more handle carries STATE; returns the word for it. */
    void *(*state_retain)(void *layer, void *state);
    const void *(*interface)(void *layer, const char *name, uint32_t version);
    /* Nonzero if there is a rule for the op with this number; for people who
     * ask. NULL: there are no rules. */
    int32_t (*has_rule)(void *instance, uint32_t op);
    /*
     * Compute what the COUNT handles TENSORS, which wait for this layer, wait
     * for, and host->fill() them; another thread may have done so meanwhile.
     * Called by who needs their elements: a read, an op below. It may answer
     * HOB_ERR_MEMORY and leave them as they are. NULL: nothing is ever put off;
     * otherwise state_retain may answer NULL for a handle that has been filled.
     */
    hob_status (*settle)(void *layer, hob_tensor *const *tensors,
                         uint32_t count);
    /* Compute all that was put off in the program's SCOPE, which is about to
     * go, and for which some handle waits; of all scopes if that is NULL. NULL:
     * it is computed when it is used. */
    hob_status (*flush)(void *layer, const void *scope);
    /* Give the COUNT state words STATES back, of handles that die together, as
     * those of a scope do. NULL: state_release, one by one. */
    void (*states_release)(void *layer, void *const *states, uint32_t count);
    /*
     * CALL is one more of a kind of which call() has put one off: nonzero if
     * it is put off as well; then the state words of its results are in
     * OUT_WORDS. 0: nothing has happened, and call() is asked. NULL: it always
     * is. It is not asked of ops that move an argument, draw random numbers or
     * are recorded into a capture.
     */
    int32_t (*again)(void *layer, const struct hob_again *call,
                     void **out_words);
};

/* ---- backward rules: autodiff's own and those of extensions ---- */

enum hob_backward_flags {
    HOB_BACKWARD_MEMORY_BOUND = 1 /* cheap to run again: may be recomputed
                                     instead of saved */
};

/*
 * What a backward function gets. Tensors of the op, in the order of the
 * signature, lists flattened, an absent optional one slot: INPUT_COUNT slots.
 * args is the call's argument array with its tensors taken out (their tags
 * stay), so attributes are read by position as in the call; plains are the
 * results that are no tensors.
 */
struct hob_grad_call {
    uint32_t struct_size;
    uint32_t reserved;
    const struct hob_host *host;
    const char *op_name;
    const hob_value *args;
    uint16_t arg_count;
    uint16_t input_count;
    uint16_t ret_count;
    uint16_t plain_count;
    const hob_value *plains;
    hob_tensor *const *inputs;          /* NULL where it was not saved */
    const struct hob_meta *input_metas; /* of all inputs; rank 0, dtype NONE
                                           where absent */
    hob_tensor *const *rets;            /* NULL where it was not saved */
    const struct hob_meta *ret_metas;
    hob_tensor *const *grads;  /* one a result; NULL means zero */
    const uint8_t *needs_grad; /* one an input */
    hob_tensor **out_grads;    /* one an input, NULL at first; leave NULL for
                                  zero. A gradient may have the broadcast shape:
                                  it is summed back to the input's. */
};

/* Where the tensors of parameter INDEX begin among CALL's inputs. */
static inline uint32_t hob_grad_slot(const struct hob_grad_call *call,
                                     uint32_t index)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < index; i++) {
        const hob_value *arg = &call->args[i];
        if (arg->tag == HOB_TAG_TENSOR)
            slot++;
        else if (arg->tag == HOB_TAG_TENSORS || arg->tag == HOB_TAG_ABSENT)
            slot += arg->count;
    }
    return slot;
}

struct hob_backward {
    uint32_t struct_size;
    uint32_t flags;     /* enum hob_backward_flags */
    uint32_t save_args; /* bit i: parameter i's tensors are needed */
    uint32_t save_rets; /* bit i: result i is needed */
    /* Bit i set in save_if[j]: parameter i is needed for the gradient of
     * parameter j only. NULL: save_args holds whenever anything is tracked. */
    const uint32_t *save_if;
    /* Run in SCOPE, one level below the layer that recorded the op.
     * Required. */
    hob_status (*backward)(hob_scope *scope, const struct hob_grad_call *call);
};

/* ---- extensions ---- */

/* An implementation of an op for one selector. Set what fits the selector. */
struct hob_op_impl {
    const char *selector;          /* required, as in "flex" or "autodiff" */
    const struct hob_entry *entry; /* a backend's or family's kernel */
    const struct hob_backward *backward; /* for "autodiff" */
    /* Any decorator: the whole call at that layer, in place of its rule. */
    hob_status (*layer)(void *instance, struct hob_call *call);
};

struct hob_extension_op {
    const char *name;      /* required, with namespace: "demo.square" */
    const char *signature; /* required; the manifest's, types laid flat */
    hob_infer_fn infer;    /* NULL: the manifest names a standard one */
    hob_body_fn body;      /* NULL: no default body */
    const struct hob_op_impl *impls;
    uint32_t impl_count;
    /* Bit i: a kernel may write over parameter i's tensor where it is the
     * caller's last use; see hob_arg_is_consumed(). */
    uint32_t consumes;
    /* Pairs result, parameter: the result may take the memory of a parameter
     * that was moved, if its kernel has HOB_ENTRY_IN_PLACE. */
    const uint8_t (*aliases)[2];
    uint32_t alias_count;
    uint32_t reserved;
};

struct hob_extension {
    uint32_t struct_size;
    uint32_t op_size;    /* bytes of one of ops and implements; required */
    uint32_t impl_size;  /* of one of an op's impls; required */
    uint32_t entry_size; /* of an impl's entry; required */
    uint32_t op_count;
    uint32_t implements_count;
    const struct hob_extension_op *ops; /* required if there are any */
    /* Kernels for ops declared elsewhere; the manifest lists them too. */
    const struct hob_extension_op *implements;
};

#define HOB_EXTENSION_INIT_HEAD                                                \
    .struct_size = sizeof(struct hob_extension),                               \
    .op_size = sizeof(struct hob_extension_op),                                \
    .impl_size = sizeof(struct hob_op_impl),                                   \
    .entry_size = sizeof(struct hob_entry)

/* ---- the plugin ---- */

/* "HOBPLUG1", little-endian. */
#define HOB_PLUGIN_MAGIC UINT64_C(0x3147554c50424f48)

/* hob_plugin.sanitizers: what the library was built with. */
enum { HOB_SANITIZER_ADDRESS = 1, HOB_SANITIZER_THREAD = 2 };

/* hob_plugin_part.flags: a core that does not know the part must refuse. */
enum { HOB_PART_MUST = 1 };

/*
 * What a plugin adds to its table beyond the members of this header: a list,
 * as experiments and vendors need it. A core takes the parts that it knows by
 * name, refuses the plugin for an unknown one with HOB_PART_MUST, and ignores
 * the rest. Each known part begins with this struct.
 */
struct hob_plugin_part {
    uint32_t struct_size;
    uint32_t flags;
    const char *name; /* required, as in "acme.profiler" */
    const struct hob_plugin_part *next;
};

struct hob_plugin {
    uint64_t magic;
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor_built;
    uint16_t abi_minor_required; /* the lowest minor that has all it uses */
    uint16_t reserved0;
    uint32_t sanitizers;
    const char *id;      /* equals the manifest's; required */
    const char *version; /* of the plugin; required */
    const char *build;   /* compiler, libc; for people */

    /* Make and end this plugin's instance in a runtime. NULL: none needed. */
    hob_status (*open)(const struct hob_host *host, const char *options,
                       void **out_instance, char **out_message);
    void (*close)(void *instance);
    /* Called in a forked child before anything else; NULL: this plugin does
     * not work in a forked child. */
    void (*after_fork_child)(void *instance);

    /* What the plugin is, as its manifest's kind. */
    const struct hob_backend *backend;
    const struct hob_decorator *decorator;
    const struct hob_extension *extension; /* one of the three is required */
    const struct hob_plugin_part *parts;
    const void *reserved1[5];
};

/*
 * Messages: an out_message is allocated with host->mem_alloc and freed by the
 * core with host->mem_free.
 */
typedef const struct hob_plugin *(*hob_plugin_entry_fn)(
    const struct hob_host *host);

/* The one symbol that a plugin exports. */
HOB_EXPORT const struct hob_plugin *
hob_plugin_entry(const struct hob_host *host);

#define HOB_PLUGIN_INIT_HEAD                                                   \
    .magic = HOB_PLUGIN_MAGIC, .struct_size = sizeof(struct hob_plugin),       \
    .abi_major = HOB_ABI_MAJOR, .abi_minor_built = HOB_ABI_MINOR,              \
    .abi_minor_required = HOB_ABI_MINOR, .sanitizers = HOB_BUILD_SANITIZERS,   \
    .build = HOB_BUILD_TEXT

#if defined(__SANITIZE_ADDRESS__)
#define HOB_BUILD_SANITIZERS HOB_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define HOB_BUILD_SANITIZERS HOB_SANITIZER_THREAD
#else
#define HOB_BUILD_SANITIZERS 0
#endif
#if defined(__VERSION__)
#define HOB_BUILD_TEXT __VERSION__
#else
#define HOB_BUILD_TEXT "unknown compiler"
#endif

HOB_END_DECLS

#endif
