/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - which ops there are. How they run is in route.c.
 */
#include "registry.h"

#include "error.h"
#include "pattern.h"
#include "runtime.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static uint32_t *find_slot(const struct hob__registry *registry,
                           const char *name)
{
    uint32_t mask = registry->by_name_size - 1;
    uint32_t at = (uint32_t)hash_name(name) & mask;

    while (registry->by_name[at] &&
           strcmp(registry->ops[registry->by_name[at]].name, name))
        at = (at + 1) & mask;
    return &registry->by_name[at];
}

const struct hob__op *hob__registry_find(const struct hob__registry *registry,
                                         const char *name)
{
    uint32_t id = *find_slot(registry, name);

    return id ? &registry->ops[id] : NULL;
}

const char *hob__registry_nearest(const struct hob__registry *registry,
                                  const char *name)
{
    const char **names = calloc(registry->op_count, sizeof(*names));
    const char *nearest = NULL;

    if (!names)
        return NULL;
    for (uint32_t id = 1; id < registry->op_count; id++)
        names[id - 1] = registry->ops[id].name;
    nearest = hob__nearest_name(name, names, registry->op_count - 1);
    free(names);
    return nearest;
}

/* ---- filling ---- */

static int is_tensor(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS;
}

/* What the boundary would else work out in every call. */
static void derive(struct hob__op *op)
{
    const struct hob__signature *signature = &op->signature;
    int has_scalar = 0;

    op->scalar_like = HOB__NO_PARTNER;
    op->is_knowable = !(op->flags & HOB__OP_DYNAMIC) &&
                      !signature->plain_count && !signature->results[0].is_list;
    for (uint32_t i = 0; i < signature->param_count; i++) {
        op->partner[i] = HOB__NO_PARTNER;
        has_scalar |= signature->params[i].type == HOB__TYPE_SCALAR;
        op->has_variants |= signature->params[i].tag_param != HOB__NO_TAG;
        if (!is_tensor(&signature->params[i]))
            continue;
        for (uint32_t k = i; k--;)
            if (is_tensor(&signature->params[k]) &&
                signature->params[k].mask == signature->params[i].mask)
                op->partner[i] = (uint8_t)k;
    }
    for (uint32_t i = signature->param_count; has_scalar && i--;)
        if (is_tensor(&signature->params[i]))
            op->scalar_like = (uint8_t)i;
    for (uint32_t i = 0; has_scalar && op->scalar_like == HOB__NO_PARTNER &&
                         i < signature->param_count;
         i++)
        if (signature->params[i].type == HOB__TYPE_DTYPE)
            op->scalar_like = (uint8_t)i;
}

/* Parse OP's signature and enter its name. */
static hob_status enter(struct hob__registry *registry, struct hob__op *op,
                        const struct hob__types *types, hob_error *error)
{
    const char *message = NULL;
    int column = 0;

    if (hob__signature_parse_with(op->decl->signature, types, &op->signature,
                                  &column, &message))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "op %s: signature \"%s\", column %d: %s", op->name,
                             op->decl->signature, column, message);
    derive(op);
    *find_slot(registry, op->name) = op->id;
    return HOB_OK;
}

static hob_status add_builtins(struct hob__registry *registry, hob_error *error)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < hob__builtin_op_count && !status; i++) {
        const struct hob__op_decl *decl = &hob__builtin_ops[i];
        struct hob__op *op = &registry->ops[decl->id];

        op->name = decl->name;
        op->id = decl->id;
        op->fuse = decl->fuse;
        op->flags = decl->flags;
        op->flat = decl->signature;
        op->decl = decl;
        status = enter(registry, op, NULL, error);
    }
    return status;
}

static uint8_t fuse_of(const char *name)
{
    static const char *const names[] = {"opaque", "elementwise", "reduce",
                                        "view", "inline"};

    for (uint8_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i], name))
            return i;
    return HOB__FUSE_OPAQUE;
}

static hob_status add_extension_op(struct hob__registry *registry,
                                   const struct hob__candidate *candidate,
                                   const struct hob__manifest_op *manifest,
                                   uint32_t id, hob_error *error)
{
    struct hob__op *op = &registry->ops[id];

    op->own.name = manifest->full_name;
    op->own.family = candidate->manifest->id;
    op->own.id = id;
    op->own.fuse = fuse_of(manifest->fuse);
    op->own.flags = (uint8_t)((manifest->dynamic ? HOB__OP_DYNAMIC : 0) |
                              (manifest->random ? HOB__OP_RANDOM : 0));
    op->own.quantized = manifest->quantized;
    op->own.signature = manifest->signature;
    op->own.doc = manifest->doc ? manifest->doc : "";
    op->own.infer = manifest->infer ? hob__infer_find(manifest->infer) : NULL;
    op->name = op->own.name;
    op->id = id;
    op->fuse = op->own.fuse;
    op->flags = op->own.flags;
    op->is_extension = 1;
    op->decl = &op->own;
    op->candidate = candidate;
    op->manifest = manifest;
    op->flat = manifest->flat;
    return enter(registry, op, &candidate->manifest->types, error);
}

/* One broken or repeated op refuses its whole extension: half of one would
 * surprise more than none. Ids already given to it stay unused. */
static uint32_t add_extension(hob_runtime *runtime,
                              const struct hob__candidate *candidate,
                              uint32_t next)
{
    struct hob__registry *registry = &runtime->registry;
    const struct hob__manifest *manifest = candidate->manifest;
    hob_error why = HOB_ERROR_INIT;

    for (uint32_t i = 0; i < manifest->op_count; i++) {
        const struct hob__op *other =
            hob__registry_find(registry, manifest->ops[i].full_name);

        if (other) {
            hob_error_set(&why, HOB_ERR_PLUGIN, "%s: op %s is declared by %s",
                          candidate->path, other->name, other->decl->family);
            hob__loader_refuse(runtime->loader, candidate, HOB__STATE_REFUSED,
                               HOB__REASON_OP_TAKEN, hob__error_text(&why));
            goto out;
        }
    }
    for (uint32_t i = 0; i < manifest->op_count; i++)
        if (add_extension_op(registry, candidate, &manifest->ops[i], next++,
                             &why)) {
            hob__loader_refuse(runtime->loader, candidate, HOB__STATE_REFUSED,
                               HOB__REASON_SIGNATURE, hob__error_text(&why));
            break;
        }
out:
    hob_error_release(&why);
    return next;
}

static int has_ops(const struct hob__candidate *candidate)
{
    return hob__candidate_usable(candidate) && candidate->manifest &&
           candidate->manifest->kind == HOB__KIND_EXTENSION;
}

hob_status hob__registry_init(hob_runtime *runtime, hob_error *error)
{
    struct hob__registry *registry = &runtime->registry;
    uint32_t candidates = hob__loader_count(runtime->loader);
    uint32_t next = hob__builtin_op_count + 1;
    uint32_t count = next;
    hob_status status;

    pthread_mutex_init(&registry->lock, NULL);
    registry->no_memory.status = HOB_ERR_MEMORY;
    registry->no_memory.message =
        (char *)(uintptr_t) "no memory to look up the op";
    for (uint32_t i = 0; i < candidates; i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);

        if (has_ops(candidate))
            count += candidate->manifest->op_count;
    }
    registry->by_name_size = 64;
    while (registry->by_name_size < count * 2)
        registry->by_name_size *= 2;
    registry->ops = calloc(count, sizeof(*registry->ops));
    registry->by_name =
        calloc(registry->by_name_size, sizeof(*registry->by_name));
    if (!registry->ops || !registry->by_name)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for the ops");
    registry->op_count = count;
    status = add_builtins(registry, error);
    for (uint32_t i = 0; i < candidates && !status; i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);

        if (has_ops(candidate))
            next = add_extension(runtime, candidate, next);
    }
    /* What a refused extension would have had is never handed out. */
    registry->op_count = status ? registry->op_count : next;
    return status ? status : hob__patterns_init(runtime, error);
}

void hob__registry_release(struct hob__registry *registry)
{
    while (registry->routes) {
        struct hob__route *route = registry->routes;

        registry->routes = route->next;
        hob__prepared_clear(&route->kept);
        free(route->message);
        free(route);
    }
    hob__patterns_release(registry);
    for (uint32_t id = 0; registry->ops && id < registry->op_count; id++)
        if (registry->ops[id].decl)
            hob__signature_release(&registry->ops[id].signature);
    free(registry->ops);
    free(registry->by_name);
    pthread_mutex_destroy(&registry->lock);
}
