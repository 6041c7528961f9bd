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

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const manifest_keys[] = {"manifest_version",
                                            "id",
                                            "version",
                                            "kind",
                                            "abi",
                                            "library",
                                            "variants",
                                            "namespace",
                                            "ops",
                                            "types",
                                            "features",
                                            "implements",
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

static const char *const impl_keys[] = {"kernel",   "prepare", "contiguous",
                                        "in_place", "dtypes",  "layer",
                                        "backward"};

static const char *const implements_keys[] = {
    "op",         "selector", "signature", "kernel", "prepare",
    "contiguous", "in_place", "dtypes",    "layer",  "backward"};

static const char *const backward_keys[] = {"save", "save_results", "save_for",
                                            "recompute"};

static const char *const selector_keys[] = {"selector", "when"};

static const struct hob__json_value *first_of(const struct gen_op *op,
                                              const struct hob__json_value *v)
{
    return v ? hob__json_first(op->source->doc, v) : NULL;
}

/* ---- dtypes of a kernel ---- */

static hob_status read_dtype(const struct gen_op *op,
                             const struct hob__json_value *item, uint32_t *mask,
                             hob_error *error)
{
    const char *name = NULL;
    hob_status st = hob__json_string(op->source->doc, item, &name, error);

    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_ && !st; i++) {
        if (!strcmp(hob_dtype_name(i), name)) {
            *mask |= HOB_DTYPE_BIT(i);
            return HOB_OK;
        }
    }
    return st ? st
              : gen_fail(op->source, item, error, "there is no dtype \"%s\"",
                         name);
}

/* The names in LIST, which must be of the kind of tensor parameter TENSOR. */
static hob_status read_mask(const struct gen_op *op, uint32_t tensor,
                            const struct hob__json_value *list, uint32_t *mask,
                            hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const struct hob__json_value *item;
    uint32_t param = 0, given = 0;
    hob_status st =
        hob__json_expect(op->source->doc, list, HOB__JSON_ARRAY, error);

    for (; param < signature->param_count; param++) {
        if (signature->params[param].mask && tensor-- == 0)
            break;
    }
    for (item = st ? NULL : first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item))
        st = read_dtype(op, item, &given, error);
    if (!st && !(given & signature->params[param].mask))
        st = gen_fail(
            op->source, list, error, "none of them is a dtype of \"%s: %s\"",
            signature->params[param].name, signature->params[param].kind);
    *mask = given & signature->params[param].mask;
    return st;
}

static bool is_apart(uint32_t mask)
{
    return mask == HOB_MASK_INT || mask == HOB_MASK_BOOL;
}

/*
 * ["f32", "f64"]: what the tensors that share the first one's dtype may be; or
 * a list a tensor parameter, [["f32"], ["i32", "i64"]].
 */
static hob_status read_dtypes(const struct gen_op *op,
                              const struct hob__json_value *object,
                              struct gen_impl *impl, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    const struct hob__json_value *list = NULL, *item;
    bool nested;
    hob_status st = gen_get_member(op->source, object, "dtypes",
                                   HOB__JSON_ARRAY, false, &list, error);

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        if (param->mask)
            impl->dtypes[impl->dtype_count++] = param->mask;
    }
    if (st || !list)
        return st;
    item = first_of(op, list);
    nested = item && item->type == HOB__JSON_ARRAY;
    if (!item || !impl->dtype_count ||
        (nested && list->count != impl->dtype_count))
        return gen_fail(op->source, list, error,
                        "dtypes expected, or one list of them for each of the "
                        "%" PRIu32 " tensor parameters",
                        impl->dtype_count);
    if (nested) {
        for (uint32_t i = 0; i < impl->dtype_count && !st; i++) {
            st = read_mask(op, i, item, &impl->dtypes[i], error);
            item = hob__json_next(op->source->doc, item);
        }
        return st;
    }
    /* Tensors share the first one's dtype, but for explicit Int and Bool. */
    for (uint32_t i = impl->dtype_count; i-- > 0 && !st;) {
        if (impl->dtypes[i] == impl->dtypes[0] ||
            (!is_apart(impl->dtypes[i]) && !is_apart(impl->dtypes[0])))
            st = read_mask(op, i, list, &impl->dtypes[i], error);
    }
    return st;
}

/* ---- backward ---- */

static int find_param(const struct gen_op *op, const char *name)
{
    for (int i = 0; i < op->signature.param_count; i++) {
        if (!strcmp(op->signature.params[i].name, name))
            return i;
    }
    return -1;
}

/* A tensor parameter by name; attributes are always there. */
static hob_status check_tensor(const struct gen_op *op,
                               const struct hob__json_value *place,
                               const char *name, int *out_index,
                               hob_error *error)
{
    *out_index = find_param(op, name);
    if (*out_index >= 0 && op->signature.params[*out_index].mask)
        return HOB_OK;
    return gen_fail(op->source, place, error,
                    *out_index < 0
                        ? "there is no parameter \"%s\""
                        : "\"%s\" is no tensor; it need not be saved",
                    name);
}

static hob_status read_params(const struct gen_op *op,
                              const struct hob__json_value *list,
                              uint32_t *mask, hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st =
        hob__json_expect(op->source->doc, list, HOB__JSON_ARRAY, error);

    for (item = st ? NULL : first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;
        int index = 0;

        st = hob__json_string(op->source->doc, item, &name, error);
        if (!st)
            st = check_tensor(op, item, name, &index, error);
        if (!st)
            *mask |= UINT32_C(1) << index;
    }
    return st;
}

/* {"lhs": ["rhs"]}: for the gradient of lhs, rhs is needed. */
static hob_status read_save_for(const struct gen_op *op,
                                const struct hob__json_value *map,
                                struct gen_impl *impl, hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st = HOB_OK;

    impl->has_save_for = true;
    for (member = first_of(op, map); member && !st;
         member = hob__json_next(op->source->doc, member)) {
        int index = 0;

        st = check_tensor(op, member, hob__json_key(op->source->doc, member),
                          &index, error);
        if (!st)
            st = read_params(op, member, &impl->save_for[index], error);
        if (!st)
            impl->save_args |= impl->save_for[index];
    }
    return st;
}

static hob_status read_results(const struct gen_op *op,
                               const struct hob__json_value *list,
                               struct gen_impl *impl, hob_error *error)
{
    const struct hob__json_value *item;
    hob_status st = HOB_OK;

    for (item = first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        int64_t index = 0;

        st = hob__json_int(op->source->doc, item, 0,
                           op->signature.result_count - 1, &index, error);
        if (!st)
            impl->save_rets |= UINT32_C(1) << index;
    }
    return st;
}

static hob_status read_backward(const struct gen_op *op,
                                const struct hob__json_value *object,
                                struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    const struct hob__json_value *value = NULL, *save = NULL, *save_for = NULL,
                                 *results = NULL;
    hob_status st = gen_get_member(source, object, "backward", HOB__JSON_OBJECT,
                                   false, &value, error);

    if (st || !value)
        return st;
    impl->backward = true;
    st = gen_check_keys(source, value, backward_keys, COUNT_OF(backward_keys),
                        error);
    if (!st)
        st = gen_get_member(source, value, "save", HOB__JSON_ARRAY, false,
                            &save, error);
    if (!st)
        st = gen_get_member(source, value, "save_for", HOB__JSON_OBJECT, false,
                            &save_for, error);
    if (!st)
        st = gen_get_member(source, value, "save_results", HOB__JSON_ARRAY,
                            false, &results, error);
    if (!st)
        st = gen_get_bool(source, value, "recompute", &impl->recompute, error);
    if (!st && save && save_for)
        st = gen_fail(source, save_for, error,
                      "either \"save\" or \"save_for\", not both");
    if (!st && save)
        st = read_params(op, save, &impl->save_args, error);
    if (!st && save_for)
        st = read_save_for(op, save_for, impl, error);
    if (!st && results)
        st = read_results(op, results, impl, error);
    return st;
}

/* ---- implementations ---- */

static hob_status check_impl(const struct gen_op *op,
                             const struct hob__json_value *object,
                             const struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    bool is_autodiff = !strcmp(impl->selector, "autodiff");

    if (!impl->kernel && !impl->backward && !impl->layer)
        return gen_fail(source, object, error,
                        "\"kernel\": true, \"backward\": {..} or \"layer\": "
                        "true expected: what is there for \"%s\"?",
                        impl->selector);
    if (impl->kernel && (impl->backward || impl->layer))
        return gen_fail(source, object, error,
                        "a selector is a backend, with a kernel, or a "
                        "decorator, with a backward or a layer; not both");
    if (impl->kernel && is_autodiff)
        return gen_fail(source, object, error,
                        "autodiff computes nothing: give it a \"backward\"");
    if (impl->backward && !is_autodiff)
        return gen_fail(source, object, error,
                        "a \"backward\" belongs to \"autodiff\"");
    if (!impl->kernel && (impl->prepare || impl->contiguous || impl->in_place))
        return gen_fail(source, object, error,
                        "\"prepare\", \"contiguous\" and \"in_place\" are "
                        "about a kernel");
    return HOB_OK;
}

static hob_status read_impl(const struct gen_op *op,
                            const struct hob__json_value *object,
                            struct gen_impl *impl, hob_error *error)
{
    const struct gen_source *source = op->source;
    hob_status st =
        gen_get_bool(source, object, "kernel", &impl->kernel, error);

    impl->place = object;
    if (!st)
        st = gen_get_bool(source, object, "prepare", &impl->prepare, error);
    if (!st)
        st = gen_get_bool(source, object, "contiguous", &impl->contiguous,
                          error);
    if (!st)
        st = gen_get_bool(source, object, "in_place", &impl->in_place, error);
    if (!st)
        st = gen_get_bool(source, object, "layer", &impl->layer, error);
    if (!st)
        st = read_backward(op, object, impl, error);
    if (!st)
        st = check_impl(op, object, impl, error);
    if (!st && impl->kernel)
        st = read_dtypes(op, object, impl, error);
    return st;
}

static hob_status check_selector(const struct gen_source *source,
                                 const struct hob__json_value *place,
                                 const char *name, hob_error *error)
{
    const char *p = name;

    if (!strcmp(name, "*"))
        return HOB_OK;
    while ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '-' ||
           *p == '_' || *p == '.')
        p++;
    return *name && !*p ? HOB_OK
                        : gen_fail(source, place, error,
                                   "\"%s\" is no selector: a backend, a "
                                   "family, a decorator or \"*\"",
                                   name);
}

/* An element of "backends": a name, or {"selector", "when"}. */
static hob_status read_selector(const struct gen_op *op,
                                const struct hob__json_value *item,
                                const char **out_name, hob_error *error)
{
    const struct gen_source *source = op->source;
    const char *when = NULL;
    hob_status st;

    if (item->type == HOB__JSON_STRING) {
        st = hob__json_string(source->doc, item, out_name, error);
        return st ? st : check_selector(source, item, *out_name, error);
    }
    st = gen_check_keys(source, item, selector_keys, COUNT_OF(selector_keys),
                        error);
    if (!st)
        st = gen_get_string(source, item, "selector", true, out_name, error);
    if (!st)
        st = check_selector(source, item, *out_name, error);
    if (!st)
        st = gen_get_string(source, item, "when", false, &when, error);
    if (!st && when && strncmp(when, "feature:", 8) != 0 &&
        strncmp(when, "plugin:", 7) != 0)
        st = gen_fail(
            source, hob__json_member(source->doc, item, "when"), error,
            "\"%s\" is no condition: write feature:NAME or plugin:ID", when);
    return st;
}

static bool has_impl(const struct gen_op *op, const char *selector)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        if (!strcmp(op->impls[i].selector, selector))
            return true;
    }
    return false;
}

/*
 * MAN-5: what is listed must be served, by an implementation or the body. A
 * decorator that is listed alone follows the body too.
 */
static hob_status check_backends(const struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *list = NULL, *item;
    hob_status st = gen_get_member(op->source, op->place, "backends",
                                   HOB__JSON_ARRAY, true, &list, error);

    if (!st && !list->count)
        st = gen_fail(op->source, list, error,
                      "the op lists no backend: it can run nowhere");
    for (item = st ? NULL : first_of(op, list); item && !st;
         item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;

        st = read_selector(op, item, &name, error);
        if (!st && !op->body && !has_impl(op, name))
            st = gen_fail(op->source, item, error,
                          "\"%s\" lists \"%s\", but has no body and no "
                          "implementation for it",
                          op->name, name);
    }
    return st;
}

static hob_status check_listed(const struct gen_op *op,
                               const struct gen_impl *impl, hob_error *error)
{
    const struct hob__json_value *item =
        first_of(op, hob__json_member(op->source->doc, op->place, "backends"));

    for (; item; item = hob__json_next(op->source->doc, item)) {
        const char *name = NULL;

        if (read_selector(op, item, &name, error))
            return HOB_ERR_FORMAT;
        if (!strcmp(name, impl->selector))
            return HOB_OK;
    }
    return gen_fail(op->source, impl->place, error,
                    "\"%s\" is implemented, but not listed in \"backends\"",
                    impl->selector);
}

static hob_status read_impls(struct gen_op *op, hob_error *error)
{
    const struct hob__json_value *map = NULL, *member;
    hob_status st = gen_get_member(op->source, op->place, "implementations",
                                   HOB__JSON_OBJECT, false, &map, error);

    if (st || !map || !map->count)
        return st;
    op->impls = calloc(map->count, sizeof(*op->impls));
    if (!op->impls)
        return gen_no_memory(error);
    for (member = first_of(op, map); member && !st;
         member = hob__json_next(op->source->doc, member)) {
        struct gen_impl *impl = &op->impls[op->impl_count++];

        impl->selector = hob__json_key(op->source->doc, member);
        st = check_selector(op->source, member, impl->selector, error);
        if (!st)
            st = gen_check_keys(op->source, member, impl_keys,
                                COUNT_OF(impl_keys), error);
        if (!st)
            st = read_impl(op, member, impl, error);
    }
    return st;
}

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
            st = read_impls(op, error);
        if (!st)
            st = check_backends(op, error);
        for (uint32_t i = 0; i < op->impl_count && !st; i++)
            st = check_listed(op, &op->impls[i], error);
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
                        COUNT_OF(implements_keys), error);
    if (!st)
        st = gen_get_string(source, object, "op", true, &op->name, error);
    if (!st)
        st = name_implements(schema, op, error);
    if (!st)
        st = gen_get_string(source, object, "selector", true,
                            &op->impls->selector, error);
    if (!st)
        st = check_selector(source, object, op->impls->selector, error);
    if (!st)
        st = gen_get_string(source, object, "signature", true,
                            &op->signature_text, error);
    if (!st)
        st = gen_read_signature(schema, op, error);
    return st ? st : read_impl(op, object, op->impls, error);
}

static hob_status read_head(struct gen_schema *schema,
                            const struct gen_source *source,
                            const struct hob__json_value *root,
                            hob_error *error)
{
    const char *kind = NULL;
    hob_status st = gen_check_keys(source, root, manifest_keys,
                                   COUNT_OF(manifest_keys), error);

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
