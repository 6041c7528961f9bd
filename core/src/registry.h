/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h - the ops of a runtime, and how each runs on each layer.
 *
 * The ops are known when the runtime is opened: built-ins by their fixed
 * numbers, then those of all usable extension manifests, in the loader's
 * order. Their libraries open when a call first needs them.
 *
 * A route says how one op runs at one layer; it is worked out once, kept by
 * the device and read without a lock.
 */
#ifndef HOB__REGISTRY_H
#define HOB__REGISTRY_H

#include "device.h"
#include "loader.h"
#include "prepared.h"
#include "range.h"
#include "schema.h"

#include <pthread.h>

/* A tensor parameter without a partner of its kind before it. */
enum { HOB__NO_PARTNER = 0xff };

struct hob__op {
    const char *name;
    uint32_t id;
    uint8_t fuse;
    uint8_t flags; /* enum hob__op_flags */
    uint8_t is_extension;
    uint8_t scalar_like;  /* parameter whose dtype scalars take */
    uint8_t has_variants; /* some parameters are fields of an enum's variant */
    uint8_t is_knowable;  /* see known.h: how many results there are, and what
                             they are like, depends on no elements */
    /* The earlier tensor parameter of the same kind, whose dtype this one
     * must have. */
    uint8_t partner[HOB_MAX_PARAMS];
    const char *flat; /* the signature's text, without type names */
    struct hob__signature signature;
    const struct hob__op_decl *decl; /* a built-in's; else &own */
    struct hob__op_decl own;
    const struct hob__candidate *candidate;  /* the declarer, or NULL */
    const struct hob__manifest_op *manifest; /* what it declared, or NULL */
    const struct hob_extension_op *_Atomic table; /* once its library is open */
};

/* How an op runs at one layer. */
struct hob__route {
    /* base: the kernel, or NULL for the body */
    const struct hob_entry *entry;
    void *entry_instance; /* passed to prepare and execute */
    uint16_t params;      /* that the kernel knows; the others are trailing */
    uint32_t consumes;    /* bit i: the kernel may write over parameter i */
    uint32_t alias_count; /* of the extension that the kernel is from */
    const uint8_t (*aliases)[2];
    struct hob__prepared_list kept; /* with HOB_ENTRY_KEEP */
    hob__range_fn range; /* of its results; NULL: nothing is said */
    /* decorator: an extension's implementation for it, or NULL */
    const struct hob_op_impl *impl;
    uint32_t fuse;     /* enum hob_fuse */
    hob_body_fn body;  /* allowed at this layer; NULL if not */
    hob_status status; /* not HOB_OK: every call fails with message */
    char *message;
    struct hob__route *next; /* all routes of the registry, for freeing */
};

struct hob__registry {
    struct hob__op *ops; /* by number; 0 is unused */
    uint32_t op_count;   /* one past the highest number */
    uint32_t *by_name;   /* open addressing over names */
    uint32_t by_name_size;
    pthread_mutex_t lock; /* routes, and what they keep */
    struct hob__route *routes;
    struct hob_pattern **patterns; /* registered optimisations, resolved */
    uint32_t pattern_count;
    struct hob__route no_memory; /* what a device without memory for a route
                                    answers */
};

/* Fill RUNTIME's registry from the built-in table and the manifests. */
HOB_MUST_CHECK hob_status hob__registry_init(hob_runtime *runtime,
                                             hob_error *error);
void hob__registry_release(struct hob__registry *registry);

/* The op called NAME, or NULL. */
const struct hob__op *hob__registry_find(const struct hob__registry *registry,
                                         const char *name);

/* The name nearest to NAME, for "did you mean"; NULL if none is near. */
const char *hob__registry_nearest(const struct hob__registry *registry,
                                  const char *name);

/* Work out what hob__route_get() tells, and keep it. */
struct hob__route *hob__route_find(hob_device *device,
                                   const struct hob__op *op);

/*
 * How OP runs at the top layer of DEVICE. Never NULL: a failure is a route
 * with a status. Loads what it needs on first use.
 */
static inline struct hob__route *hob__route_get(hob_device *device,
                                                const struct hob__op *op)
{
    struct hob__route *known =
        atomic_load_explicit(&device->routes[op->id], memory_order_acquire);

    return known ? known : hob__route_find(device, op);
}

/* Let OP run at the top layer of DEVICE as ROUTE says, which outlives it: what
 * is known of earlier calls is forgotten. */
void hob__route_put(hob_device *device, const struct hob__op *op,
                    struct hob__route *route);

/* Open the library of extension op OP and find its table. */
HOB_MUST_CHECK hob_status hob__op_load(hob_runtime *runtime,
                                       const struct hob__op *op,
                                       hob_error *error);

/* The one called NAME among COUNT of TABLES; NULL if there is none. */
const struct hob_extension_op *
hob__find_table(const struct hob_extension_op *tables, uint32_t count,
                const char *name);

/* Whether an entry of PLUGIN for SIGNATURE serves OP; if not, log it.
 * *OUT_PARAMS is how many of OP's parameters it knows. */
int hob__op_fits(const hob_runtime *runtime, const struct hob__op *op,
                 const char *plugin, const char *signature,
                 uint16_t *out_params);

#endif
