/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension_check.c - does an extension keep what its manifest promises?
 * (MAN-5, NEG-4)
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_internal.h"

#include <string.h>

static const struct hob_extension_op *
find_op(const struct hob_extension_op *ops, uint32_t count, const char *name)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    }
    return NULL;
}

static const struct hob_op_impl *find_impl(const struct hob_extension_op *op,
                                           const char *selector)
{
    uint32_t i;

    for (i = 0; op && i < op->impl_count; i++) {
        if (!strcmp(op->impls[i].selector, selector))
            return &op->impls[i];
    }
    return NULL;
}

/* An entry of the table that holds nothing is a forgotten function. */
static bool has_impl(const struct hob_extension_op *op, const char *selector)
{
    const struct hob_op_impl *impl = find_impl(op, selector);

    return impl && (impl->entry || impl->backward || impl->layer);
}

/* Blanks do not count: the generator writes its own. */
static bool same_signature(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ')
            a++;
        while (*b == ' ')
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

/* Refuse the plugin because of OP: "... op demo.square: WHAT". */
static hob_status refuse(const struct hob__plugin *plugin, const char *op,
                         const char *what, const char *selector,
                         enum hob__reason reason, enum hob__reason *out_reason,
                         hob_error *error)
{
    *out_reason = reason;
    return hob_error_set(error, HOB_ERR_PLUGIN, "%s: op %s: %s%s", plugin->path,
                         op, what, selector);
}

/* The manifest's fusion rule serves fusion: an opaque op is put off as it is,
 * its results being known before it runs. */
static int has_rule(const struct hob__manifest_op *declared,
                    const char *selector)
{
    return !strcmp(selector, "fusion") && !declared->dynamic &&
           (!declared->fuse || !strcmp(declared->fuse, "opaque"));
}

bool hob__extension_serves(const struct hob__manifest_op *declared,
                           const struct hob_extension_op *op,
                           const char *selector)
{
    return op->body || has_impl(op, selector) || has_rule(declared, selector);
}

static hob_status check_selectors(const struct hob__loader *loader,
                                  const struct hob__plugin *plugin,
                                  const struct hob__manifest_op *declared,
                                  const struct hob_extension_op *op,
                                  enum hob__reason *out_reason,
                                  hob_error *error)
{
    uint32_t i;

    for (i = 0; i < declared->selector_count; i++) {
        const struct hob__manifest_selector *one = &declared->selectors[i];

        if (!hob__extension_serves(declared, op, one->name) &&
            hob__loader_condition(loader, plugin->candidate, one))
            return refuse(plugin, declared->full_name,
                          "no body and no implementation for ", one->name,
                          HOB__REASON_NO_IMPLEMENTATION, out_reason, error);
    }
    return HOB_OK;
}

static hob_status check_op(const struct hob__loader *loader,
                           const struct hob__plugin *plugin,
                           const struct hob__manifest_op *declared,
                           enum hob__reason *out_reason, hob_error *error)
{
    const struct hob_extension *table = &plugin->extension;
    const struct hob_extension_op *op =
        find_op(table->ops, table->op_count, declared->full_name);

    if (!op)
        return refuse(plugin, declared->full_name,
                      "it is in the manifest but not in the table", "",
                      HOB__REASON_NO_IMPLEMENTATION, out_reason, error);
    if (!same_signature(op->signature, declared->flat))
        return refuse(plugin, declared->full_name,
                      "its signature differs from the manifest's: ",
                      op->signature, HOB__REASON_SIGNATURE, out_reason, error);
    if (declared->has_body && !op->body)
        return refuse(plugin, declared->full_name,
                      "the manifest says that it has a body", "",
                      HOB__REASON_NO_IMPLEMENTATION, out_reason, error);
    return check_selectors(loader, plugin, declared, op, out_reason, error);
}

hob_status hob__extension_check(const struct hob__loader *loader,
                                const struct hob__plugin *plugin,
                                enum hob__reason *out_reason, hob_error *error)
{
    const struct hob__manifest *manifest = plugin->manifest;
    const struct hob_extension *table = &plugin->extension;
    uint32_t i;
    hob_status st = HOB_OK;

    for (i = 0; i < manifest->op_count && !st; i++)
        st = check_op(loader, plugin, &manifest->ops[i], out_reason, error);
    for (i = 0; i < manifest->implements_count && !st; i++) {
        const struct hob__manifest_implements *one = &manifest->implements[i];

        if (!has_impl(
                find_op(table->implements, table->implements_count, one->op),
                one->selector))
            st = refuse(plugin, one->op, "\"implements\" is not kept for ",
                        one->selector, HOB__REASON_NO_IMPLEMENTATION,
                        out_reason, error);
    }
    /* An op that the manifest does not have cannot be found: say so. */
    for (i = 0; i < table->op_count && !st; i++) {
        if (!hob__manifest_find_op(manifest, table->ops[i].name))
            st = refuse(plugin, table->ops[i].name,
                        "it is in the table but not in the manifest", "",
                        HOB__REASON_NO_IMPLEMENTATION, out_reason, error);
    }
    return st;
}
