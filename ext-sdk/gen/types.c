/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.c - the structs and enums that an extension declares, in C.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* "RowPair" as "row_pair", "NMSBoxes" as "nms_boxes". */
static void snake(struct hob__text *out, const char *name)
{
    for (size_t i = 0; name[i]; i++) {
        char c = name[i];

        if (i && is_capital(c) &&
            (is_small(name[i - 1]) ||
             (is_capital(name[i - 1]) && is_small(name[i + 1]))))
            hob__text_puts(out, "_");
        if (is_capital(c))
            c = (char)(c - 'A' + 'a');
        hob__text_append(out, &c, 1);
    }
}

void gen_constant(struct hob__text *out, const char *flat_name)
{
    char part[2 * 64];

    while (*flat_name) {
        size_t length = strcspn(flat_name, ".");
        struct hob__text word = HOB__TEXT_INIT;
        char *text;

        (void)snprintf(part, sizeof(part), "%.*s", (int)length, flat_name);
        if (is_capital(part[0]))
            snake(&word, part);
        else
            hob__text_puts(&word, part);
        text = hob__text_take(&word);
        gen_upper(out, text ? text : "?");
        free(text);
        flat_name += length;
        if (*flat_name) {
            hob__text_puts(out, "_");
            flat_name++;
        }
    }
}

char *gen_member_name(const struct hob__variant *variant)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *word, *name = NULL;

    snake(&text, variant->name);
    word = hob__text_take(&text);
    if (word)
        name = gen_c_name(word);
    free(word);
    return name;
}

char *gen_type_name(const char *prefix, const struct hob__type_def *def)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_printf(&text, "%s_", prefix);
    snake(&text, def->name);
    return hob__text_take(&text);
}

char *gen_variant_enum(const char *prefix, const struct hob__type_def *def)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_printf(&text, "%s_", prefix);
    snake(&text, def->name);
    hob__text_puts(&text, "_variant");
    return hob__text_take(&text);
}

char *gen_field_enum(const char *prefix, const struct hob__type_def *def,
                     const struct hob__variant *variant,
                     const struct hob__param *field)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_printf(&text, "%s_", prefix);
    snake(&text, def->name);
    if (variant->name) {
        hob__text_puts(&text, "_");
        snake(&text, variant->name);
    }
    if (field->name)
        hob__text_printf(&text, "_%s", field->name);
    return hob__text_take(&text);
}

void gen_enum(struct hob__text *out, const char *name, const char *of,
              const struct hob__param *param)
{
    hob__text_printf(out, "/* %s. */\nenum %s {\n", of, name);
    if (gen_is_optional(param)) {
        hob__text_puts(out, "    ");
        gen_upper(out, name);
        hob__text_puts(out, "_ABSENT_ = -1,\n");
    }
    for (uint32_t k = 0; k < param->enumerator_count; k++) {
        hob__text_puts(out, "    ");
        gen_upper(out, name);
        hob__text_puts(out, "_");
        gen_upper(out, param->enumerators[k]);
        hob__text_printf(out, " = %" PRIu32 "%s\n", k,
                         k + 1 < param->enumerator_count ? "," : "");
    }
    hob__text_puts(out, "};\n\n");
}

void gen_enumerator(struct hob__text *out, const char *prefix,
                    const struct hob__type_def *def, uint32_t variant)
{
    char *name = gen_type_name(prefix, def);

    gen_upper(out, name ? name : "?");
    hob__text_puts(out, "_");
    gen_constant(out, def->variants[variant].name);
    free(name);
}

/* What the declarations of a type are for. */
struct style {
    const char *prefix;
    bool is_view;   /* tensors as views, structs laid flat */
    bool is_output; /* views to write to */
};

static void indent(struct hob__text *out, uint32_t depth)
{
    hob__text_printf(out, "%*s", (int)(4 * depth), "");
}

static void members(struct hob__text *out, const struct style *style,
                    const struct hob__type_def *def,
                    const struct hob__variant *variant, const char *base,
                    uint32_t depth);

/* The variant and the union of enum DEF. */
static void enum_members(struct hob__text *out, const struct style *style,
                         const struct hob__type_def *def, uint32_t depth);

/* One field of DEF, called NAME. */
static void member(struct hob__text *out, const struct style *style,
                   const struct hob__type_def *def,
                   const struct hob__variant *variant,
                   const struct hob__param *field, const char *name,
                   uint32_t depth)
{
    char *type;

    if (!field->def) {
        type = field->type == HOB__TYPE_ENUM
                   ? gen_field_enum(style->prefix, def, variant, field)
                   : NULL;
        gen_member(out, field, name, type, depth,
                   !style->is_view    ? GEN_PROGRAM
                   : style->is_output ? GEN_OUTPUT
                                      : GEN_INPUT);
        free(type);
    } else if (!style->is_view) {
        type = gen_type_name(style->prefix, field->def);
        indent(out, depth);
        hob__text_printf(out, "struct %s %s;\n", type ? type : "?", name);
        free(type);
    } else {
        gen_view_members(out, style->prefix, field->def, name, depth,
                         style->is_output);
    }
}

static void members(struct hob__text *out, const struct style *style,
                    const struct hob__type_def *def,
                    const struct hob__variant *variant, const char *base,
                    uint32_t depth)
{
    for (uint32_t i = 0; i < variant->field_count; i++) {
        struct hob__text text = HOB__TEXT_INIT;
        char *name = gen_c_name(variant->fields[i].name), *full;

        hob__text_printf(&text, "%s%s%s", base, *base ? "_" : "",
                         name ? name : "?");
        full = hob__text_take(&text);
        member(out, style, def, variant, &variant->fields[i], full ? full : "?",
               depth);
        free(full);
        free(name);
    }
}

static void variant_members(struct hob__text *out, const struct style *style,
                            const struct hob__type_def *def,
                            const struct hob__variant *variant, uint32_t depth)
{
    const struct hob__param *only = variant->fields;
    bool is_single = variant->field_count == 1 && !only->name;
    bool is_flat = is_single && !gen_has_count(only) &&
                   !(style->is_view && only->def && !only->def->is_enum);
    char *name = gen_member_name(variant);

    if (is_flat) {
        member(out, style, def, variant, only, name ? name : "?", depth);
    } else if (variant->field_count) {
        indent(out, depth);
        hob__text_puts(out, "struct {\n");
        if (is_single && only->def)
            members(out, style, only->def, only->def->variants, "", depth + 1);
        else if (is_single)
            member(out, style, def, variant, only, "items", depth + 1);
        else
            members(out, style, def, variant, "", depth + 1);
        indent(out, depth);
        hob__text_printf(out, "} %s;\n", name ? name : "?");
    }
    free(name);
}

static void enum_members(struct hob__text *out, const struct style *style,
                         const struct hob__type_def *def, uint32_t depth)
{
    char *name = gen_variant_enum(style->prefix, def);
    bool has_fields = false;

    for (uint32_t i = 0; i < def->variant_count; i++)
        has_fields = has_fields || def->variants[i].field_count;
    indent(out, depth);
    hob__text_printf(out, "enum %s variant;\n", name ? name : "?");
    free(name);
    if (!has_fields)
        return;
    indent(out, depth);
    hob__text_puts(out, "union {\n");
    for (uint32_t i = 0; i < def->variant_count; i++)
        variant_members(out, style, def, &def->variants[i], depth + 1);
    indent(out, depth);
    hob__text_puts(out, "} u;\n");
}

void gen_view_members(struct hob__text *out, const char *prefix,
                      const struct hob__type_def *def, const char *name,
                      uint32_t depth, bool is_output)
{
    const struct style style = {prefix, true, is_output};

    if (!def->is_enum) {
        members(out, &style, def, def->variants, name, depth);
        return;
    }
    indent(out, depth);
    hob__text_puts(out, "struct {\n");
    enum_members(out, &style, def, depth + 1);
    indent(out, depth);
    hob__text_printf(out, "} %s;\n", name);
}

static void variant_enum(struct hob__text *out, const char *prefix,
                         const struct hob__type_def *def)
{
    char *name = gen_variant_enum(prefix, def);

    hob__text_printf(out, "/* The variants of %s. */\nenum %s {\n", def->name,
                     name ? name : "?");
    for (uint32_t i = 0; i < def->variant_count; i++) {
        hob__text_puts(out, "    ");
        gen_enumerator(out, prefix, def, i);
        hob__text_printf(out, " = %" PRIu32 "%s\n", i,
                         i + 1 < def->variant_count ? "," : "");
    }
    hob__text_puts(out, "};\n\n");
    free(name);
}

static void field_enums(struct hob__text *out, const char *prefix,
                        const struct hob__type_def *def)
{
    for (uint32_t i = 0; i < def->variant_count; i++) {
        const struct hob__variant *variant = &def->variants[i];

        for (uint32_t k = 0; k < variant->field_count; k++) {
            const struct hob__param *field = &variant->fields[k];
            char *name;

            if (field->type != HOB__TYPE_ENUM)
                continue;
            name = gen_field_enum(prefix, def, variant, field);
            gen_enum(out, name ? name : "?", def->name, field);
            free(name);
        }
    }
}

void gen_types(struct hob__text *out, const struct gen_schema *schema)
{
    const struct style style = {schema->prefix, false, false};

    for (uint32_t i = 0; i < schema->types.count; i++) {
        const struct hob__type_def *def = schema->types.defs[i];
        char *name = gen_type_name(schema->prefix, def);

        field_enums(out, schema->prefix, def);
        if (def->is_enum)
            variant_enum(out, schema->prefix, def);
        gen_comment(out, def->doc ? def->doc : def->name, NULL);
        hob__text_printf(out, "struct %s {\n", name ? name : "?");
        if (def->is_enum)
            enum_members(out, &style, def, 1);
        else
            members(out, &style, def, def->variants, "", 1);
        hob__text_puts(out, "};\n\n");
        free(name);
    }
}
