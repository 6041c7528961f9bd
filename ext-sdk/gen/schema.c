/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - reading ops, one by one.
 */
#include "gen.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const gen_fuse_names[GEN_FUSE_COUNT] = {"opaque", "elementwise",
                                                    "reduce", "view", "inline"};

const char *const gen_quantized_names[GEN_QUANTIZED_COUNT] = {
    "propagate", "keep", "view", "never"};

static const char *const builtin_keys[] = {
    "op",       "id",      "signature", "infer",   "fuse", "body",
    "uses",     "dynamic", "random",    "aliases", "doc",  "deterministic",
    "quantized"};

static const char *const extension_keys[] = {
    "op",       "signature", "infer",         "fuse",     "body",
    "uses",     "dynamic",   "random",        "aliases",  "consumes",
    "capture",  "doc",       "deterministic", "backends", "implementations",
    "quantized"};

static const char *const family_keys[] = {"family", "ops"};

bool gen_is_lower_name(const char *name)
{
    if (*name < 'a' || *name > 'z')
        return false;
    while ((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') ||
           *name == '_')
        name++;
    return !*name;
}

/* Whether "LIST_count" of a list among the parameters is NAME. */
static bool is_count_of(const struct gen_op *op, uint32_t item,
                        const char *name)
{
    const struct hob__item *list = &op->signature.items[item];
    size_t length = strlen(op->item_names[item]);

    return !list->def && gen_has_count(&op->signature.params[list->first]) &&
           !strncmp(op->item_names[item], name, length) &&
           !strcmp(name + length, "_count");
}

static hob_status check_arg_names(const struct gen_op *op,
                                  const struct hob__json_value *value,
                                  hob_error *error)
{
    const struct hob__signature *signature = &op->signature;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        const char *name = op->item_names[i];

        for (uint32_t k = 0; k < signature->item_count; k++) {
            if (i != k && (is_count_of(op, i, op->item_names[k]) ||
                           !strcmp(name, op->item_names[k])))
                return gen_fail(op->source, value, error,
                                "parameters \"%s\" and \"%s\" get one name in "
                                "C; rename one of them",
                                signature->items[i].name,
                                signature->items[k].name);
        }
        for (uint32_t k = 0; k < signature->result_item_count; k++) {
            if (!strcmp(name, op->out_names[k]) ||
                is_count_of(op, i, op->out_names[k]))
                return gen_fail(op->source, value, error,
                                "parameter \"%s\" and a result get one name "
                                "in C, %s; rename one of them",
                                signature->items[i].name, op->out_names[k]);
        }
    }
    for (uint32_t i = 0; i < signature->result_item_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (!strcmp(op->out_names[i], op->out_names[k]))
                return gen_fail(op->source, value, error,
                                "two results get one name in C, %s; rename "
                                "one of them",
                                op->out_names[i]);
        }
    }
    return HOB_OK;
}

/* Names with dots are those of flat signatures, which "implements" holds. */
static hob_status check_no_dots(const struct gen_op *op,
                                const struct hob__json_value *value,
                                hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const char *bad = NULL;

    for (uint32_t i = 0; i < signature->item_count; i++)
        if (strchr(signature->items[i].name, '.'))
            bad = signature->items[i].name;
    for (uint32_t i = 0; i < signature->result_item_count; i++) {
        const char *name = signature->result_items[i].name;

        if (name && (strchr(name, '.') || (name[0] >= '0' && name[0] <= '9')))
            bad = name;
    }
    return bad ? gen_fail(op->source, value, error,
                          "\"%s\" is a flat name, as fields of structs have "
                          "in \"implements\": declare a type instead",
                          bad)
               : HOB_OK;
}

/* What the tables carry: flat where types are used, else as written. */
static hob_status make_flat(struct gen_op *op, hob_error *error)
{
    bool has_types = false;

    for (uint32_t i = 0; i < op->signature.item_count; i++)
        has_types = has_types || op->signature.items[i].def;
    for (uint32_t i = 0; i < op->signature.result_item_count; i++)
        has_types = has_types || op->signature.result_items[i].def;
    op->flat_text = has_types ? hob__signature_text(&op->signature)
                              : strdup(op->signature_text);
    return op->flat_text ? HOB_OK : gen_no_memory(error);
}

hob_status gen_read_signature(const struct gen_schema *schema,
                              struct gen_op *op, bool is_own, hob_error *error)
{
    const struct hob__json_value *value =
        hob__json_member(op->source->doc, op->place, "signature");
    const char *message;
    int column;
    hob_status st = hob__signature_parse_with(
        op->signature_text, &schema->types, &op->signature, &column, &message);

    if (st == HOB_ERR_MEMORY)
        return gen_no_memory(error);
    if (st)
        return gen_fail_inside(op->source, value, column, error, message);
    op->prefix = schema->prefix;
    st = is_own ? check_no_dots(op, value, error) : HOB_OK;
    if (!st)
        st = gen_place(op, error);
    if (!st)
        st = check_arg_names(op, value, error);
    return st ? st : make_flat(op, error);
}

static hob_status read_fuse(struct gen_op *op, bool required, hob_error *error)
{
    const char *name = "opaque";
    hob_status st =
        gen_get_string(op->source, op->place, "fuse", required, &name, error);

    if (st)
        return st;
    if (!required && (!strcmp(name, "elementwise") || !strcmp(name, "reduce") ||
                      !strcmp(name, "view")))
        return gen_fail(
            op->source, hob__json_member(op->source->doc, op->place, "fuse"),
            error,
            "\"%s\" is a promise about loops that fusion knows of "
            "built-in ops only; an extension's op is \"opaque\", or "
            "\"inline\": its body is fused",
            name);
    while (op->fuse < GEN_FUSE_COUNT &&
           strcmp(gen_fuse_names[op->fuse], name) != 0)
        op->fuse++;
    if (op->fuse < GEN_FUSE_COUNT)
        return HOB_OK;
    return gen_fail(op->source,
                    hob__json_member(op->source->doc, op->place, "fuse"), error,
                    "\"%s\" is no fusion rule; there are opaque, elementwise, "
                    "reduce, view and inline",
                    name);
}

static hob_status read_quantized(struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *value;
    const char *name = gen_quantized_names[0];
    hob_status st =
        gen_get_string(op->source, op->place, "quantized", false, &name, error);

    if (st)
        return st;
    while (op->quantized < GEN_QUANTIZED_COUNT &&
           strcmp(gen_quantized_names[op->quantized], name) != 0)
        op->quantized++;
    value = hob__json_member(op->source->doc, op->place, "quantized");
    if (op->quantized == GEN_QUANTIZED_VIEW &&
        (!op->signature.param_count ||
         op->signature.params[0].type != HOB__TYPE_TENSOR ||
         !(op->signature.params[0].mask & HOB_DTYPE_BIT(HOB_DTYPE_I8))))
        return gen_fail(op->source, value, error,
                        "such an op runs on codes, which are i8: its first "
                        "parameter must be a tensor that can be Int: Num or "
                        "Any");
    if (op->quantized < GEN_QUANTIZED_COUNT)
        return HOB_OK;
    return gen_fail(op->source, value, error,
                    "\"%s\" is no rule for quantized arguments; there are "
                    "propagate, keep, view and never",
                    name);
}

static hob_status read_uses(struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *item;
    const char *name;
    hob_status st = gen_get_member(op->source, op->place, "uses",
                                   HOB__JSON_ARRAY, false, &op->uses, error);

    if (st || !op->uses)
        return st;
    if (!op->body)
        return gen_fail(op->source, op->uses, error,
                        "\"uses\" without a \"body\"");
    for (item = hob__json_first(op->source->doc, op->uses); item && !st;
         item = hob__json_next(op->source->doc, item))
        st = hob__json_string(op->source->doc, item, &name, error);
    return st;
}

/* A random op ends in the seed and offset that the core fills in. */
static hob_status check_random(const struct gen_op *op, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    uint32_t count = signature->param_count;

    for (uint32_t i = 0; i < 2 && op->random; i++) {
        static const char *const names[] = {"_seed", "_offset"};
        const struct hob__param *param =
            count >= 2 ? &signature->params[count - 2 + i] : NULL;

        if (!param || strcmp(param->name, names[i]) != 0 ||
            param->type != HOB__TYPE_I64)
            return gen_fail(op->source, op->place, error,
                            "a random op ends in (.., _seed: i64?, _offset: "
                            "i64?)");
    }
    return HOB_OK;
}

/* The core completes views as strides over their first argument. */
static hob_status check_view(const struct gen_op *op, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;

    if (op->fuse != GEN_FUSE_VIEW ||
        (signature->param_count && signature->result_count == 1 &&
         signature->params[0].type == HOB__TYPE_TENSOR &&
         !signature->params[0].flags && !signature->results[0].is_list))
        return HOB_OK;
    return gen_fail(op->source, op->place, error,
                    "a view has one result, over its first argument");
}

static hob_status read_infer(struct gen_schema *schema, struct gen_op *op,
                             hob_error *error)
{
    const struct hob__json_value *value =
        hob__json_member(op->source->doc, op->place, "infer");
    hob_status st;

    if (schema->is_extension && value && value->type == HOB__JSON_OBJECT) {
        op->infer_object = value;
        return gen_read_infer_object(op, error);
    }
    if (!value && !op->dynamic)
        return gen_fail(op->source, op->place, error,
                        "field \"infer\" is missing%s",
                        schema->is_extension
                            ? ": sizes of results are known before the call, "
                              "unless \"dynamic\" is true"
                            : "");
    st = gen_get_string(op->source, op->place, "infer", false, &op->infer,
                        error);
    if (st || !op->infer)
        return st;
    if (!gen_is_lower_name(op->infer))
        return gen_fail(op->source, value, error,
                        "\"%s\" is no name: use a-z 0-9 _%s", op->infer,
                        schema->is_extension ? ", or an object with \"shape\""
                                             : "");
    op->infer_function = schema->is_extension && !strcmp(op->infer, "function");
    return HOB_OK;
}

static hob_status read_name(struct gen_schema *schema, struct gen_op *op,
                            hob_error *error)
{
    struct hob__text full = HOB__TEXT_INIT, c_name = HOB__TEXT_INIT;
    hob_status st =
        gen_get_string(op->source, op->place, "op", true, &op->name, error);

    if (st)
        return st;
    if (!gen_is_lower_name(op->name) || strlen(op->name) > 63)
        return gen_fail(op->source,
                        hob__json_member(op->source->doc, op->place, "op"),
                        error,
                        "\"%s\" is no name of an op: a letter, then a-z 0-9 _, "
                        "at most 63",
                        op->name);
    if (schema->is_extension)
        hob__text_printf(&full, "%s.", schema->name_space);
    hob__text_puts(&full, op->name);
    hob__text_printf(&c_name, "%s_%s",
                     schema->is_extension ? schema->prefix : "hob", op->name);
    op->full_name = hob__text_take(&full);
    op->c_name = hob__text_take(&c_name);
    return op->full_name && op->c_name ? HOB_OK : gen_no_memory(error);
}

hob_status gen_read_op(struct gen_schema *schema,
                       const struct gen_source *source,
                       const struct hob__json_value *object, struct gen_op *op,
                       hob_error *error)
{
    bool is_extension = schema->is_extension, ignored;
    hob_status st = gen_check_keys(source, object,
                                   is_extension ? extension_keys : builtin_keys,
                                   is_extension ? GEN_COUNT_OF(extension_keys)
                                                : GEN_COUNT_OF(builtin_keys),
                                   error);

    op->source = source;
    op->place = object;
    if (!st)
        st = read_name(schema, op, error);
    if (!st)
        st = gen_get_string(source, object, "signature", true,
                            &op->signature_text, error);
    if (!st)
        st = gen_read_signature(schema, op, true, error);
    if (!st)
        st = gen_get_bool(source, object, "dynamic", &op->dynamic, error);
    if (!st)
        st = gen_get_bool(source, object, "random", &op->random, error);
    if (!st)
        st = gen_get_bool(source, object, "body", &op->body, error);
    if (!st)
        st = gen_get_bool(source, object, "deterministic", &ignored, error);
    if (!st)
        st = gen_get_bool(source, object, "capture", &ignored, error);
    if (!st)
        st = read_infer(schema, op, error);
    if (!st)
        st = read_fuse(op, !is_extension, error);
    if (!st)
        st = read_quantized(op, error);
    if (!st)
        st = gen_read_memory(op, error);
    if (!st)
        st = read_uses(op, error);
    if (!st)
        st = check_random(op, error);
    if (!st)
        st = check_view(op, error);
    if (!st)
        st = gen_get_string(source, object, "doc", true, &op->doc, error);
    return st;
}

struct gen_op *gen_add_op(struct gen_op **ops, uint32_t *count)
{
    struct gen_op *grown = realloc(*ops, (*count + 1) * sizeof(*grown));

    if (!grown)
        return NULL;
    *ops = grown;
    memset(&grown[*count], 0, sizeof(*grown));
    return &grown[(*count)++];
}

static hob_status read_family(struct gen_schema *schema, const char *path,
                              hob_error *error)
{
    const struct hob__json_value *root, *list = NULL, *item;
    const char *family = NULL;
    struct gen_source *source = NULL;
    hob_status st = gen_source_open(schema, path, &source, error);

    if (st)
        return st;
    root = hob__json_root(source->doc);
    st = gen_check_keys(source, root, family_keys, GEN_COUNT_OF(family_keys),
                        error);
    if (!st)
        st = gen_get_string(source, root, "family", true, &family, error);
    if (!st)
        st = gen_get_member(source, root, "ops", HOB__JSON_ARRAY, true, &list,
                            error);
    for (item = st ? NULL : hob__json_first(source->doc, list); item && !st;
         item = hob__json_next(source->doc, item)) {
        const struct hob__json_value *number = NULL;
        struct gen_op *op = gen_add_op(&schema->ops, &schema->op_count);
        int64_t id = 0;

        if (!op)
            return gen_no_memory(error);
        op->family = family;
        st = gen_read_op(schema, source, item, op, error);
        if (!st)
            st = gen_get_member(source, item, "id", HOB__JSON_NUMBER, true,
                                &number, error);
        if (!st)
            st = hob__json_int(source->doc, number, 1, UINT16_MAX, &id, error);
        op->id = (uint32_t)id;
    }
    return st;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_ids(const void *a, const void *b)
{
    const struct gen_op *x = a, *y = b;

    /* Equal numbers are an error later on; the same one each time. */
    if (x->id == y->id)
        return strcmp(x->name, y->name);
    return x->id < y->id ? -1 : 1;
}

/* The paths of DIR's *.json, sorted; the caller frees each and the list. */
static hob_status list_families(const char *dir, char ***out_paths,
                                size_t *out_count, hob_error *error)
{
    hob_status st = HOB_OK;
    struct dirent *entry;
    DIR *stream = opendir(dir);

    if (!stream)
        return hob_error_set(error, HOB_ERR_IO, "%s: %s", dir, strerror(errno));
    while ((entry = readdir(stream))) {
        size_t length = strlen(entry->d_name);
        struct hob__text path = HOB__TEXT_INIT;
        char **grown;

        if (entry->d_name[0] == '.' || length < 6 ||
            strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        grown = realloc(*out_paths, (*out_count + 1) * sizeof(*grown));
        if (grown) {
            *out_paths = grown;
            hob__text_printf(&path, "%s/%s", dir, entry->d_name);
            grown[*out_count] = hob__text_take(&path);
        }
        if (!grown || !grown[*out_count]) {
            st = gen_no_memory(error);
            break;
        }
        ++*out_count;
    }
    (void)closedir(stream);
    if (!st && !*out_count)
        st =
            hob_error_set(error, HOB_ERR_NOT_FOUND, "%s: no *.json in it", dir);
    return st;
}

hob_status gen_read_builtin(struct gen_schema *schema, const char *dir,
                            hob_error *error)
{
    char **paths = NULL;
    size_t count = 0;
    hob_status st = list_families(dir, &paths, &count, error);

    if (!st)
        qsort(paths, count, sizeof(*paths), compare_paths);
    for (size_t i = 0; i < count; i++) {
        if (!st)
            st = read_family(schema, paths[i], error);
        free(paths[i]);
    }
    free(paths);
    if (!st && schema->op_count)
        qsort(schema->ops, schema->op_count, sizeof(*schema->ops), compare_ids);
    return st;
}

static void release_ops(struct gen_op *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hob__signature_release(&ops[i].signature);
        gen_place_release(&ops[i]);
        free(ops[i].flat_text);
        free(ops[i].infer_code);
        free(ops[i].impls);
        free(ops[i].full_name);
        free(ops[i].c_name);
    }
    free(ops);
}

void gen_schema_release(struct gen_schema *schema)
{
    release_ops(schema->ops, schema->op_count);
    release_ops(schema->implements, schema->implements_count);
    for (uint32_t i = 0; i < schema->source_count; i++) {
        hob__json_free(schema->sources[i]->doc);
        free(schema->sources[i]->path);
        free(schema->sources[i]);
    }
    free(schema->sources);
    hob__types_release(&schema->types);
    free(schema->prefix);
    memset(schema, 0, sizeof(*schema));
}
