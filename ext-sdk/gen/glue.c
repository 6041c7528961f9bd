/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glue.c - the header that an extension's C file includes: prototypes of what
 * the author writes, and the tables that hang it into the plugin.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void prototype(struct hob__text *out, const char *name,
                      const char *first, const char *second, const char *third)
{
    struct hob__text head = HOB__TEXT_INIT;
    char *items[3] = {strdup(first), strdup(second),
                      third ? strdup(third) : NULL};
    char *text;

    hob__text_printf(&head, "hob_status %s(", name ? name : "?");
    text = hob__text_take(&head);
    gen_wrapped(out, text ? text : "?", items, third ? 3 : 2, ");\n");
    free(text);
    for (uint32_t i = 0; i < 3; i++)
        free(items[i]);
}

static void impl_prototypes(struct hob__text *out, const struct gen_op *op,
                            const struct gen_impl *impl)
{
    char *name;

    if (impl->prepare) {
        name = gen_impl_name(op, impl, "_prepare");
        prototype(out, name, "void *device", "const struct hob_call *call",
                  "struct hob_prepare *out");
        free(name);
    }
    if (impl->kernel) {
        name = gen_impl_name(op, impl, "");
        prototype(out, name, "void *device", "struct hob_call *call", NULL);
        free(name);
    }
    if (impl->layer) {
        name = gen_impl_name(op, impl, "_layer");
        prototype(out, name, "void *instance", "struct hob_call *call", NULL);
        free(name);
    }
    if (impl->backward) {
        struct hob__text text = HOB__TEXT_INIT;

        hob__text_printf(&text, "%s_backward", op->c_name);
        name = hob__text_take(&text);
        prototype(out, name, "hob_scope *scope",
                  "const struct hob_grad_call *call", NULL);
        free(name);
    }
}

/* What "instance" asks for: kernels get what open returns as DEVICE. */
static void instance_prototypes(struct hob__text *out, const char *prefix)
{
    struct hob__text head = HOB__TEXT_INIT;
    char host[] = "const struct hob_host *host",
         options[] = "const char *options";
    char instance[] = "void **out_instance", message[] = "char **out_message";
    char *items[] = {host, options, instance, message}, *text;

    hob__text_puts(out, "\n/* The instance of a runtime: what kernels and "
                        "layers get first. */\n");
    hob__text_printf(&head, "hob_status %s_open(", prefix);
    text = hob__text_take(&head);
    gen_wrapped(out, text ? text : "?", items, 4, ");\n");
    free(text);
    hob__text_printf(out, "void %s_close(void *instance);\n", prefix);
}

/* Hidden: they are shared by the files of one library, not exported. */
static void prototypes(struct hob__text *out, const struct gen_schema *schema)
{
    hob__text_puts(out, "/* ---- what the author writes ---- */\n\n"
                        "HOB_BEGIN_DECLS\n\n"
                        "#if defined(__GNUC__) && !defined(_WIN32)\n"
                        "#pragma GCC visibility push(hidden)\n"
                        "#endif\n");
    if (schema->instance)
        instance_prototypes(out, schema->prefix);
    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];
        struct hob__text text = HOB__TEXT_INIT;
        char *name;

        hob__text_puts(out, "\n");
        gen_comment(out, op->full_name, op->signature_text);
        if (op->body) {
            hob__text_printf(&text, "%s_body", op->c_name);
            name = hob__text_take(&text);
            gen_prototype(out, op, GEN_BODY, "", name ? name : "?", ");\n");
            free(name);
        }
        if (op->infer_function) {
            hob__text_printf(&text, "%s_infer", op->c_name);
            name = hob__text_take(&text);
            prototype(out, name, "struct hob_call *call",
                      "struct hob_meta *out", NULL);
            free(name);
        }
        for (uint32_t k = 0; k < op->impl_count; k++)
            impl_prototypes(out, op, &op->impls[k]);
    }
    for (uint32_t i = 0; i < schema->implements_count; i++) {
        const struct gen_op *op = &schema->implements[i];

        hob__text_puts(out, "\n");
        gen_comment(out, op->full_name, op->signature_text);
        impl_prototypes(out, op, op->impls);
    }
    hob__text_puts(out, "\n#if defined(__GNUC__) && !defined(_WIN32)\n"
                        "#pragma GCC visibility pop\n"
                        "#endif\n\n"
                        "HOB_END_DECLS\n\n");
}

/* ---- tables ---- */

static void masks(struct hob__text *out, const char *name, const char *tail,
                  const uint32_t *values, uint32_t count)
{
    hob__text_printf(out, "static const uint32_t %s%s[] = {", name, tail);
    for (uint32_t i = 0; i < count; i++)
        hob__text_printf(out, "%s0x%" PRIx32, i ? ", " : "", values[i]);
    hob__text_puts(out, "};\n");
}

static void entry(struct hob__text *out, const struct gen_op *op,
                  const struct gen_impl *impl, const char *name)
{
    const char *flags[4];
    uint32_t count = 0;

    if (impl->dtype_count)
        masks(out, name, "_dtypes", impl->dtypes, impl->dtype_count);
    if (impl->contiguous)
        flags[count++] = "HOB_ENTRY_CONTIGUOUS";
    if (impl->in_place)
        flags[count++] = "HOB_ENTRY_IN_PLACE";
    if (op->dynamic)
        flags[count++] = "HOB_ENTRY_DYNAMIC";
    if (impl->keep)
        flags[count++] = "HOB_ENTRY_KEEP";
    hob__text_printf(out, "static const struct hob_entry %s_entry = {\n", name);
    hob__text_printf(out,
                     "    .op = \"%s\",\n    .signature = ", op->full_name);
    gen_c_string(out, op->flat_text);
    hob__text_puts(out, ",\n");
    if (impl->dtype_count)
        hob__text_printf(out,
                         "    .dtypes = %s_dtypes,\n"
                         "    .dtype_count = %" PRIu32 ",\n",
                         name, impl->dtype_count);
    for (uint32_t i = 0; i < count; i++)
        hob__text_printf(out, "%s%s%s", i ? " | " : "    .flags = ", flags[i],
                         i + 1 == count ? ",\n" : "");
    if (impl->prepare)
        hob__text_printf(out, "    .prepare = %s_prepare,\n", name);
    hob__text_printf(out, "    .execute = %s,\n};\n\n", name);
}

static void backward(struct hob__text *out, const struct gen_op *op,
                     const struct gen_impl *impl)
{
    if (impl->has_save_for)
        masks(out, op->c_name, "_save_if", impl->save_for,
              op->signature.param_count);
    hob__text_printf(out,
                     "static const struct hob_backward %s_gradient = {\n"
                     "    .struct_size = sizeof(struct hob_backward),\n",
                     op->c_name);
    if (impl->recompute)
        hob__text_puts(out, "    .flags = HOB_BACKWARD_MEMORY_BOUND,\n");
    if (impl->save_args)
        hob__text_printf(out, "    .save_args = 0x%" PRIx32 ",\n",
                         impl->save_args);
    if (impl->save_rets)
        hob__text_printf(out, "    .save_rets = 0x%" PRIx32 ",\n",
                         impl->save_rets);
    if (impl->has_save_for)
        hob__text_printf(out, "    .save_if = %s_save_if,\n", op->c_name);
    hob__text_printf(out, "    .backward = %s_backward,\n};\n\n", op->c_name);
}

static void impl_tables(struct hob__text *out, const struct gen_op *op,
                        const char *tail)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        char *name = gen_impl_name(op, &op->impls[i], "");

        if (op->impls[i].kernel)
            entry(out, op, &op->impls[i], name ? name : "?");
        if (op->impls[i].backward)
            backward(out, op, &op->impls[i]);
        free(name);
    }
    if (!op->impl_count)
        return;
    hob__text_printf(out, "static const struct hob_op_impl %s_impls%s[] = {\n",
                     op->c_name, tail);
    for (uint32_t i = 0; i < op->impl_count; i++) {
        const struct gen_impl *impl = &op->impls[i];
        char *name = gen_impl_name(op, impl, "");

        hob__text_printf(out, "    {.selector = \"%s\"", impl->selector);
        if (impl->kernel)
            hob__text_printf(out, ",\n     .entry = &%s_entry", name);
        if (impl->backward)
            hob__text_printf(out, ",\n     .backward = &%s_gradient",
                             op->c_name);
        if (impl->layer)
            hob__text_printf(out, ",\n     .layer = %s_layer", name);
        hob__text_puts(out, "},\n");
        free(name);
    }
    hob__text_puts(out, "};\n\n");
}

static void op_row(struct hob__text *out, const struct gen_op *op,
                   const char *tail)
{
    hob__text_printf(out,
                     "    {.name = \"%s\",\n     .signature = ", op->full_name);
    gen_c_string(out, op->flat_text);
    if (op->infer_function || op->infer_object)
        hob__text_printf(out, ",\n     .infer = %s_infer%s", op->c_name,
                         op->infer_object ? "_glue" : "");
    if (op->body)
        hob__text_printf(out, ",\n     .body = %s_body_glue", op->c_name);
    if (op->impl_count)
        hob__text_printf(out,
                         ",\n     .impls = %s_impls%s,\n"
                         "     .impl_count = %" PRIu32,
                         op->c_name, tail, op->impl_count);
    if (op->consumes)
        hob__text_printf(out, ",\n     .consumes = 0x%" PRIx32, op->consumes);
    if (op->alias_count)
        hob__text_printf(out,
                         ",\n     .aliases = %s_aliases,\n"
                         "     .alias_count = %u",
                         op->c_name, op->alias_count);
    hob__text_puts(out, "},\n");
}

/* One op may be implemented for several selectors: number the tables. */
static void table_tail(char *buffer, size_t size, uint32_t index)
{
    (void)snprintf(buffer, size, "_elsewhere_%" PRIu32, index);
}

static void op_tables(struct hob__text *out, const struct gen_schema *schema)
{
    char tail[32];

    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];

        impl_tables(out, op, "");
        if (!op->alias_count)
            continue;
        hob__text_printf(out,
                         "static const uint8_t %s_aliases[][2] = ", op->c_name);
        gen_aliases(out, op);
        hob__text_puts(out, ";\n\n");
    }
    for (uint32_t i = 0; i < schema->implements_count; i++) {
        table_tail(tail, sizeof(tail), i);
        impl_tables(out, &schema->implements[i], tail);
    }
    if (schema->op_count) {
        hob__text_printf(out,
                         "static const struct hob_extension_op %s_ops[] = {\n",
                         schema->prefix);
        for (uint32_t i = 0; i < schema->op_count; i++)
            op_row(out, &schema->ops[i], "");
        hob__text_puts(out, "};\n\n");
    }
    if (schema->implements_count) {
        hob__text_printf(
            out, "static const struct hob_extension_op %s_implements[] = {\n",
            schema->prefix);
        for (uint32_t i = 0; i < schema->implements_count; i++) {
            table_tail(tail, sizeof(tail), i);
            op_row(out, &schema->implements[i], tail);
        }
        hob__text_puts(out, "};\n\n");
    }
}

static void plugin(struct hob__text *out, const struct gen_schema *schema)
{
    const char *prefix = schema->prefix;

    hob__text_printf(out,
                     "static const struct hob_extension %s_extension = {\n"
                     "    HOB_EXTENSION_INIT_HEAD,\n",
                     prefix);
    /* In the order of the members: C++ wants it so. */
    if (schema->op_count)
        hob__text_printf(out, "    .op_count = %" PRIu32 ",\n",
                         schema->op_count);
    if (schema->implements_count)
        hob__text_printf(out, "    .implements_count = %" PRIu32 ",\n",
                         schema->implements_count);
    if (schema->op_count)
        hob__text_printf(out, "    .ops = %s_ops,\n", prefix);
    if (schema->implements_count)
        hob__text_printf(out, "    .implements = %s_implements,\n", prefix);
    hob__text_printf(out,
                     "};\n\n"
                     "static const struct hob_plugin %s_plugin = {\n"
                     "    .magic = HOB_PLUGIN_MAGIC,\n"
                     "    .struct_size = sizeof(struct hob_plugin),\n"
                     "    .abi_major = HOB_ABI_MAJOR,\n"
                     "    .abi_minor_built = HOB_ABI_MINOR,\n"
                     "    .abi_minor_required = HOB_ABI_MINOR,\n"
                     "    .sanitizers = HOB_BUILD_SANITIZERS,\n"
                     "    .id = ",
                     prefix);
    gen_c_string(out, schema->id);
    hob__text_puts(out, ",\n    .version = ");
    gen_c_string(out, schema->version);
    hob__text_puts(out, ",\n    .build = HOB_BUILD_TEXT");
    if (schema->instance)
        hob__text_printf(out, ",\n    .open = %s_open,\n    .close = %s_close",
                         prefix, prefix);
    hob__text_printf(
        out,
        ",\n    .extension = &%s_extension,\n"
        "};\n\n"
        "const struct hob_plugin *hob_plugin_entry(const struct hob_host "
        "*host)\n"
        "{\n"
        "    (void)host;\n"
        "    return &%s_plugin;\n"
        "}\n\n",
        prefix, prefix);
}

static bool has_kernel(const struct gen_op *op)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        if (op->impls[i].kernel)
            return true;
    }
    return false;
}

/* How calls are read. Several kernels for one op of others share it. */
static void readers(struct hob__text *out, const struct gen_schema *schema)
{
    hob__text_puts(out, "/* ---- how a call is read ---- */\n\n");
    for (uint32_t i = 0; i < schema->op_count; i++) {
        gen_indices(out, &schema->ops[i]);
        if (has_kernel(&schema->ops[i]))
            gen_unpack(out, &schema->ops[i]);
    }
    for (uint32_t i = 0; i < schema->implements_count; i++) {
        const struct gen_op *op = &schema->implements[i];
        uint32_t first = 0;

        while (strcmp(schema->implements[first].c_name, op->c_name) != 0)
            first++;
        if (first == i) {
            gen_indices(out, op);
            gen_unpack(out, op);
        }
    }
}

static void infers(struct hob__text *out, const struct gen_schema *schema)
{
    for (uint32_t i = 0; i < schema->op_count; i++)
        if (schema->ops[i].infer_object)
            gen_infer_glue(out, &schema->ops[i]);
}

static bool has_infers(const struct gen_schema *schema)
{
    for (uint32_t i = 0; i < schema->op_count; i++)
        if (schema->ops[i].infer_object)
            return true;
    return false;
}

static void bodies(struct hob__text *out, const struct gen_schema *schema)
{
    gen_body_helpers(out, schema->ops, schema->op_count, "static");
    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];
        struct hob__text text = HOB__TEXT_INIT;
        char *glue, *body;

        if (!op->body)
            continue;
        hob__text_printf(&text, "%s_body_glue", op->c_name);
        glue = hob__text_take(&text);
        hob__text_printf(&text, "%s_body", op->c_name);
        body = hob__text_take(&text);
        gen_body_glue(out, op, "static", glue ? glue : "?", body ? body : "?");
        free(glue);
        free(body);
    }
}

/* Designated initializers, in order, are C11; C++17 has them as extension. */
static const char quiet_begin[] =
    "#if defined(__cplusplus) && defined(__GNUC__)\n"
    "#pragma GCC diagnostic push\n"
    "#pragma GCC diagnostic ignored \"-Wpedantic\"\n"
    "#pragma GCC diagnostic ignored \"-Wmissing-field-initializers\"\n"
    "#if defined(__clang__)\n"
    "#pragma GCC diagnostic ignored \"-Wc++20-designator\"\n"
    "#elif __GNUC__ >= 12\n"
    "#pragma GCC diagnostic ignored \"-Wc++20-extensions\"\n"
    "#endif\n"
    "#endif\n\n";
static const char quiet_end[] =
    "#if defined(__cplusplus) && defined(__GNUC__)\n"
    "#pragma GCC diagnostic pop\n"
    "#endif\n\n";

void gen_glue(struct hob__text *out, const struct gen_schema *schema,
              const char *header)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *upper;

    gen_upper(&text, schema->prefix);
    upper = hob__text_take(&text);
    hob__text_printf(
        out,
        "/*\n"
        " * The glue of the extension %s.\n"
        " * Generated by hob-sdk from its manifest; do not edit.\n"
        " *\n"
        " * One C file of the extension includes it and gets the plugin's "
        "tables.\n"
        " * Other files define %s_PROTOTYPES_ONLY before.\n"
        " */\n"
        "#ifndef %s_GLUE_H\n"
        "#define %s_GLUE_H\n"
        "\n",
        schema->id, upper ? upper : "?", upper ? upper : "?",
        upper ? upper : "?");
    if (header)
        hob__text_printf(out, "#include \"%s\"\n\n", header);
    if (has_infers(schema))
        hob__text_puts(out, "#include <hob/ext/infer.h>\n");
    hob__text_puts(out, "#include <hob/ext/plugin.h>\n#include <hob/ops.h>\n\n"
                        "#include <stddef.h>\n"
                        "#include <string.h>\n\n");
    if (!header) {
        gen_types(out, schema);
        for (uint32_t i = 0; i < schema->op_count; i++)
            gen_enums(out, &schema->ops[i]);
    }
    readers(out, schema);
    prototypes(out, schema);
    hob__text_printf(out, "#ifndef %s_PROTOTYPES_ONLY\n\n",
                     upper ? upper : "?");
    infers(out, schema);
    bodies(out, schema);
    hob__text_puts(out, quiet_begin);
    op_tables(out, schema);
    plugin(out, schema);
    hob__text_puts(out, quiet_end);
    hob__text_puts(out, "#endif\n\n#endif\n");
    free(upper);
}
