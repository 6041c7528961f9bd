/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension.c - reading what an extension's manifest says of its ops.
 *
 * The manifest as a whole is the loader's to judge; what the generator needs
 * it checks as strictly as the loader does, and more: unknown keys are errors
 * here, since the author is the one who reads the message.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const manifest_keys[] = {"manifest_version",
                                            "id",
                                            "version",
                                            "kind",
                                            "abi",
                                            "library",
                                            "namespace",
                                            "ops",
                                            "types",
                                            "instance",
                                            "features",
                                            "implements",
                                            "patterns",
                                            "requires",
                                            "conflicts",
                                            "priority",
                                            "capabilities",
                                            "runtime_files",
                                            "env",
                                            "sha256",
                                            "name",
                                            "vendor",
                                            "license",
                                            "url",
                                            "description"};

static const char *const implements_keys[] = {
    "op",       "selector", "signature", "kernel",   "prepare", "contiguous",
    "in_place", "dtypes",   "layer",     "backward", "keep"};

static hob_status read_ops(struct gen_schema *schema,
                           const struct gen_source *source,
                           const struct hob__json_value *list, hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st = HOB_OK;

    for (item = hob__json_first(source->doc, list); item && !st;
         item = hob__json_next(source->doc, item)) {
        struct gen_op *op = gen_add_op(&schema->ops, &schema->op_count);

        if (!op)
            return gen_no_memory(error);
        st = gen_read_op(schema, source, item, op, error);
        if (!st)
            st = gen_read_impls(op, error);
        if (!st)
            st = gen_check_backends(op, error);
    }
    return st;
}

/* ---- "implements": kernels for ops declared elsewhere ---- */

static hob_status name_implements(const struct gen_schema *schema,
                                  struct gen_op *op, hob_error *error)
{
    struct hob__text c_name = HOB__TEXT_INIT;
    char *word = gen_c_word(op->name);

    hob__text_printf(&c_name, "%s_%s", schema->prefix, word ? word : "");
    free(word);
    op->c_name = hob__text_take(&c_name);
    op->full_name = strdup(op->name);
    return word && op->c_name && op->full_name ? HOB_OK : gen_no_memory(error);
}

static hob_status read_implements(struct gen_schema *schema,
                                  const struct gen_source *source,
                                  const struct hob__json_value *object,
                                  hob_error *error)
{
    struct gen_op *op =
        gen_add_op(&schema->implements, &schema->implements_count);
    hob_status st;

    if (!op)
        return gen_no_memory(error);
    op->source = source;
    op->place = object;
    op->impls = calloc(1, sizeof(*op->impls));
    if (!op->impls)
        return gen_no_memory(error);
    op->impl_count = 1;
    st = gen_check_keys(source, object, implements_keys,
                        GEN_COUNT_OF(implements_keys), error);
    if (!st)
        st = gen_get_string(source, object, "op", true, &op->name, error);
    if (!st)
        st = name_implements(schema, op, error);
    if (!st)
        st = gen_get_string(source, object, "selector", true,
                            &op->impls->selector, error);
    if (!st)
        st = gen_check_selector(source, object, op->impls->selector, error);
    if (!st)
        st = gen_get_string(source, object, "signature", true,
                            &op->signature_text, error);
    if (!st)
        st = gen_read_signature(schema, op, false, error);
    return st ? st : gen_read_impl(op, object, op->impls, error);
}

static hob_status read_head(struct gen_schema *schema,
                            const struct gen_source *source,
                            const struct hob__json_value *root,
                            hob_error *error)
{
    const char *kind = NULL;
    hob_status st = gen_check_keys(source, root, manifest_keys,
                                   GEN_COUNT_OF(manifest_keys), error);

    if (!st)
        st = gen_get_string(source, root, "id", true, &schema->id, error);
    if (!st)
        st = gen_get_string(source, root, "version", true, &schema->version,
                            error);
    if (!st)
        st = gen_get_string(source, root, "kind", true, &kind, error);
    if (!st && strcmp(kind, "extension") != 0)
        st = gen_fail(source, hob__json_member(source->doc, root, "kind"),
                      error, "\"extension\" expected, found \"%s\"", kind);
    if (!st)
        st = gen_get_string(source, root, "namespace", true,
                            &schema->name_space, error);
    if (!st && (!gen_is_lower_name(schema->name_space) ||
                !strcmp(schema->name_space, "hob")))
        st = gen_fail(source, hob__json_member(source->doc, root, "namespace"),
                      error,
                      "\"%s\" is no namespace: a letter, then a-z 0-9 _, and "
                      "not \"hob\"",
                      schema->name_space);
    if (!st)
        st = gen_get_bool(source, root, "instance", &schema->instance, error);
    if (st)
        return st;
    schema->prefix = gen_c_word(schema->name_space);
    return schema->prefix ? HOB_OK : gen_no_memory(error);
}

hob_status gen_read_extension(struct gen_schema *schema, const char *path,
                              hob_error *error)
{
    const struct hob__json_value *root, *ops = NULL, *implements = NULL, *item;
    struct gen_source *source = NULL;
    hob_status st = gen_source_open(schema, path, &source, error);

    if (st)
        return st;
    root = hob__json_root(source->doc);
    st = read_head(schema, source, root, error);
    if (!st)
        st = hob__types_read(source->doc,
                             hob__json_member(source->doc, root, "types"),
                             &schema->types, error);
    if (!st)
        st = gen_get_member(source, root, "ops", HOB__JSON_ARRAY, false, &ops,
                            error);
    if (!st)
        st = gen_get_member(source, root, "implements", HOB__JSON_ARRAY, false,
                            &implements, error);
    if (!st && !ops && !implements)
        st = gen_fail(source, root, error,
                      "neither \"ops\" nor \"implements\": nothing to do");
    if (!st && ops)
        st = read_ops(schema, source, ops, error);
    for (item = st || !implements ? NULL
                                  : hob__json_first(source->doc, implements);
         item && !st; item = hob__json_next(source->doc, item))
        st = read_implements(schema, source, item, error);
    return st;
}
