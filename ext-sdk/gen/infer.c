/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - "infer" of an op as an object of expressions: read, checked and
 * made the statements of an infer function.
 */
#include "expression.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_LETS = 32 };

static const char *const infer_keys[] = {"shape", "dtype", "when",
                                         "let",   "where", "results"};
static const char *const result_keys[] = {"shape", "dtype", "when"};
static const char *const plain_keys[] = {"value", "when"};

/* What is being read, and the C that comes of it. */
struct state {
    struct gen_op *op;
    struct gen_names names;
    struct gen_let lets[MAX_LETS];
    struct hob__text out;
    bool done_rets[HOB_MAX_RESULTS];
    bool done_plains[HOB_MAX_RESULTS];
};

/* ---- let and where ---- */

static bool is_let_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return length && length <= 63 && !name[length] &&
           !(name[0] >= '0' && name[0] <= '9');
}

static bool is_word(const char *name)
{
    static const char *const words[] = {"and", "or", "not", "true", "false"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strcmp(words[i], name))
            return true;
    return false;
}

static hob_status read_let(struct state *state,
                           const struct hob__json_value *member,
                           hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const char *name = hob__json_key(source->doc, member);
    enum gen_kind kind = GEN_INT;
    char *text = NULL;
    hob_status st;

    if (!is_let_name(name) || is_word(name))
        return gen_fail(source, member, error,
                        "\"%s\" is no name: a letter, then letters, digits "
                        "and '_'",
                        name);
    if (gen_find_param(state->op, name) >= 0)
        return gen_fail(source, member, error,
                        "\"%s\" is a parameter: take another name", name);
    if (state->names.let_count == MAX_LETS)
        return gen_fail(source, member, error, "more than %d names in \"let\"",
                        MAX_LETS);
    st = gen_expression(&state->names, member, (enum gen_kind)0, NULL, &kind,
                        &text, error);
    if (st)
        return st;
    hob__text_printf(&state->out, "    const %s let_%s =\n",
                     kind == GEN_INT   ? "int64_t"
                     : kind == GEN_F64 ? "double"
                                       : "int",
                     name);
    gen_flow(&state->out, 8, text);
    hob__text_printf(&state->out, ";\n    (void)let_%s;\n", name);
    free(text);
    /* Known from here on. */
    state->lets[state->names.let_count].name = name;
    state->lets[state->names.let_count++].kind = kind;
    return HOB_OK;
}

static hob_status read_lets(struct state *state,
                            const struct hob__json_value *object,
                            hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *map = NULL, *member;
    hob_status st = gen_get_member(source, object, "let", HOB__JSON_OBJECT,
                                   false, &map, error);

    for (member = st || !map ? NULL : hob__json_first(source->doc, map);
         member && !st; member = hob__json_next(source->doc, member))
        st = read_let(state, member, error);
    return st;
}

/* ["condition", "what must hold, in words"] */
static hob_status read_where(struct state *state,
                             const struct hob__json_value *pair,
                             hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *item;
    const char *message = NULL;
    enum gen_kind kind;
    char *text = NULL;
    hob_status st = hob__json_expect(source->doc, pair, HOB__JSON_ARRAY, error);

    if (!st && pair->count != 2)
        st = gen_fail(source, pair, error,
                      "[condition, what to say if it does not hold] expected");
    if (st)
        return st;
    item = hob__json_first(source->doc, pair);
    st = gen_expression(&state->names, item, GEN_BOOL, NULL, &kind, &text,
                        error);
    if (!st)
        st = hob__json_string(source->doc, hob__json_next(source->doc, item),
                              &message, error);
    if (!st) {
        hob__text_puts(&state->out, "    hob_infer_where(&in,\n");
        gen_flow(&state->out, 20, text);
        hob__text_printf(&state->out, ",\n%20s", "");
        gen_c_string(&state->out, message);
        hob__text_puts(&state->out, ");\n");
    }
    free(text);
    return st;
}

static hob_status read_wheres(struct state *state,
                              const struct hob__json_value *object,
                              hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *list = NULL, *item;
    hob_status st = gen_get_member(source, object, "where", HOB__JSON_ARRAY,
                                   false, &list, error);

    for (item = st || !list ? NULL : hob__json_first(source->doc, list);
         item && !st; item = hob__json_next(source->doc, item))
        st = read_where(state, item, error);
    return st;
}

/* ---- dtypes ---- */

static uint32_t find_dtype(const char *name)
{
    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_; i++)
        if (!strcmp(hob_dtype_name(i), name))
            return i;
    return HOB_DTYPE_NONE;
}

/* The dtypes that KIND, as in "Float", stands for; 0 if it is none. */
static uint32_t kind_mask(const char *kind)
{
    struct hob__param param;
    const char *message;
    uint32_t mask;
    int column;

    if (hob__signature_parse_type(kind, &param, &column, &message))
        return 0;
    mask = param.type == HOB__TYPE_TENSOR ? param.mask : 0;
    hob__param_release(&param);
    return mask;
}

/* The C of a dtype: that of a tensor or dtype parameter, or a name. *OUT_MASK
 * is what it may be, *OUT_PARAM which parameter, -1 if none. */
static hob_status read_dtype(struct state *state,
                             const struct hob__json_value *value,
                             struct hob__text *out, uint32_t *out_mask,
                             int *out_param, hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__param *param;
    const char *name = NULL;
    uint32_t dtype;
    hob_status st = hob__json_string(source->doc, value, &name, error);

    if (st)
        return st;
    *out_param = gen_find_param(state->op, name);
    dtype = find_dtype(name);
    *out_mask = HOB_DTYPE_BIT(dtype);
    if (*out_param < 0 && !dtype)
        return gen_fail(source, value, error,
                        "\"%s\" is no tensor parameter, no dtype parameter "
                        "and no dtype such as f32",
                        name);
    if (*out_param < 0) {
        hob__text_printf(out, "HOB_DTYPE_");
        gen_upper(out, name);
        return HOB_OK;
    }
    param = &state->op->signature.params[*out_param];
    if (!param->mask && param->type != HOB__TYPE_DTYPE)
        return gen_fail(source, value, error,
                        "\"%s\" is neither a tensor nor a dtype", name);
    *out_mask = param->mask ? param->mask : HOB_MASK_ANY;
    hob__text_printf(out, "hob_infer_dtype(&in, %d, \"%s\")", *out_param, name);
    return HOB_OK;
}

/* The dtype that the signature gives result INDEX, where it must be set here:
 * the core sets that of a result that is always there. */
static void signature_dtype(struct state *state, uint32_t index)
{
    const struct hob__result *result = &state->op->signature.results[index];

    if (!(result->flags & HOB__PARAM_OPTIONAL))
        return;
    hob__text_printf(&state->out, "    out[%" PRIu32 "].dtype = ", index);
    if (result->source == HOB__RESULT_DTYPE) {
        hob__text_puts(&state->out, "HOB_DTYPE_");
        gen_upper(&state->out, hob_dtype_name(result->dtype));
    } else {
        hob__text_printf(&state->out, "hob_infer_dtype(&in, %u, \"%s\")",
                         result->param,
                         state->op->signature.params[result->param].name);
    }
    hob__text_puts(&state->out, ";\n");
}

static hob_status result_dtype(struct state *state, uint32_t index,
                               const struct hob__json_value *object,
                               hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__result *result = &state->op->signature.results[index];
    const struct hob__json_value *value =
        hob__json_member(source->doc, object, "dtype");
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t mask = 0, allowed;
    int param = -1;
    char *c;
    hob_status st;

    if (!value && result->source == HOB__RESULT_INFERRED)
        return gen_fail(source, object, error,
                        "the signature says \"%s\" only: add \"dtype\", a "
                        "tensor parameter or a dtype",
                        result->text);
    if (!value) {
        signature_dtype(state, index);
        return HOB_OK;
    }
    st = read_dtype(state, value, &text, &mask, &param, error);
    c = hob__text_take(&text);
    allowed = result->source == HOB__RESULT_INFERRED ? kind_mask(result->text)
              : result->source == HOB__RESULT_DTYPE
                  ? HOB_DTYPE_BIT(result->dtype)
              : param == result->param ? mask
                                       : 0;
    if (!st && (mask & ~allowed) &&
        (param < 0 || state->op->signature.params[param].mask || !allowed))
        st = gen_fail(source, value, error,
                      result->source == HOB__RESULT_INFERRED
                          ? "it need not be of the kind \"%s\" that the "
                            "signature says"
                          : "the signature gives the dtype, that of \"%s\": "
                            "leave \"dtype\" out",
                      result->text);
    if (!st)
        hob__text_printf(&state->out, "    out[%" PRIu32 "].dtype = %s;\n",
                         index, c ? c : "?");
    free(c);
    return st;
}

/* ---- results ---- */

static hob_status read_shape(struct state *state, uint32_t index,
                             const struct hob__json_value *value,
                             hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *item;
    hob_status st = HOB_OK;

    hob__text_printf(&state->out, "    out[%" PRIu32 "].rank = 0;\n", index);
    if (value->type == HOB__JSON_STRING)
        return gen_shape_string(&state->names, value, index, &state->out,
                                error);
    if (value->type != HOB__JSON_ARRAY)
        return gen_fail(source, value, error,
                        "a parameter, \"broadcast(a, b)\" or an array of "
                        "sizes expected, found %s",
                        hob__json_type_name(value->type));
    if (value->count > HOB_MAX_RANK)
        return gen_fail(source, value, error,
                        "a tensor has at most %d dimensions",
                        (int)HOB_MAX_RANK);
    for (item = hob__json_first(source->doc, value); item && !st;
         item = hob__json_next(source->doc, item))
        st = gen_shape_item(&state->names, item, index, &state->out, error);
    return st;
}

/* Close the "if" whose block begins at FROM of OUT; the lines move in. */
static void close_when(struct hob__text *out, size_t from)
{
    char *block = out->failed ? NULL : strdup(out->data + from);

    out->failed = out->failed || !block;
    out->length = out->failed ? out->length : from;
    for (char *line = block; line && *line;) {
        size_t length = strcspn(line, "\n");

        hob__text_puts(out, "    ");
        hob__text_append(out, line, length);
        hob__text_puts(out, "\n");
        line += length + (line[length] == '\n');
    }
    free(block);
    hob__text_puts(out, "    }");
}

/*
 * "when", and that the result's variant is the chosen one: an "if" around what
 * follows. *OUT_FROM is where its block begins, 0 if there is none.
 */
static hob_status open_when(struct state *state,
                            const struct hob__json_value *object, uint8_t flags,
                            uint8_t tag, uint8_t variant, size_t *out_from,
                            hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *when =
        object->type == HOB__JSON_OBJECT
            ? hob__json_member(source->doc, object, "when")
            : NULL;
    bool may_miss =
        (flags & HOB__PARAM_OPTIONAL) && !(flags & HOB__PARAM_NEEDED);
    enum gen_kind kind;
    char *text = NULL;
    hob_status st = HOB_OK;

    *out_from = 0;
    if (when && !may_miss)
        return gen_fail(source, when, error,
                        "the signature does not say '?': this result is "
                        "always there");
    if (!when && may_miss)
        return gen_fail(source, object, error,
                        "this result is optional: say {\"when\": condition, "
                        "..} when it is there");
    if (when)
        st = gen_expression(&state->names, when, GEN_BOOL, NULL, &kind, &text,
                            error);
    if (st || (!when && tag == HOB__NO_TAG))
        return st;
    hob__text_puts(&state->out, "    if (");
    if (tag != HOB__NO_TAG)
        hob__text_printf(&state->out, "call->plains[%u].u.i64 == %u%s", tag,
                         variant, when ? " &&\n" : "");
    if (when && tag == HOB__NO_TAG && strlen(text) < 60)
        hob__text_puts(&state->out, text);
    else if (when)
        gen_flow(&state->out, 8, text);
    hob__text_puts(&state->out, ") {\n");
    free(text);
    *out_from = state->out.length;
    return HOB_OK;
}

static hob_status read_result(struct state *state, uint32_t index,
                              const struct hob__json_value *value,
                              hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__result *result = &state->op->signature.results[index];
    const struct hob__json_value *shape;
    bool is_whole = value == state->op->infer_object;
    size_t from = 0;
    hob_status st =
        hob__json_expect(source->doc, value, HOB__JSON_OBJECT, error);

    state->done_rets[index] = true;
    if (!st && !is_whole)
        st = gen_check_keys(source, value, result_keys, COUNT_OF(result_keys),
                            error);
    if (st)
        return st;
    shape = hob__json_member(source->doc, value, "shape");
    if (!shape)
        return gen_fail(source, value, error, "field \"shape\" is missing");
    st = open_when(state, value, result->flags, result->tag_plain,
                   result->variant, &from, error);
    if (!st)
        st = read_shape(state, index, shape, error);
    if (!st)
        st = result_dtype(state, index, value, error);
    if (!st && from) {
        close_when(&state->out, from);
        hob__text_puts(&state->out, "\n");
    }
    return st;
}

/* "    call->plains[INDEX].u.MEMBER = C;" */
static void set_plain(struct state *state, uint32_t index, const char *member,
                      const char *c)
{
    hob__text_printf(&state->out, "    call->plains[%" PRIu32 "].u.%s =\n",
                     index, member);
    gen_flow(&state->out, 8, c);
    hob__text_puts(&state->out, ";\n");
}

static hob_status plain_value(struct state *state, uint32_t index,
                              const struct hob__json_value *value,
                              hob_error *error)
{
    static const enum gen_kind kinds[] = {[HOB__TYPE_F64] = GEN_F64,
                                          [HOB__TYPE_I64] = GEN_INT,
                                          [HOB__TYPE_BOOL] = GEN_BOOL,
                                          [HOB__TYPE_ENUM] = GEN_ENUM};
    const struct hob__param *plain = &state->op->signature.plains[index];
    struct hob__text text = HOB__TEXT_INIT;
    enum gen_kind kind;
    uint32_t mask;
    char *c = NULL;
    int param;
    hob_status st;

    if (plain->type == HOB__TYPE_DTYPE) {
        st = read_dtype(state, value, &text, &mask, &param, error);
        c = hob__text_take(&text);
    } else {
        /* A whole number in JSON needs no quotes. */
        if (value->type == HOB__JSON_NUMBER && plain->type == HOB__TYPE_I64) {
            int64_t number = 0;

            st = hob__json_int(state->op->source->doc, value, INT64_MIN + 1,
                               INT64_MAX, &number, error);
            hob__text_printf(&text, "INT64_C(%" PRId64 ")", number);
            c = hob__text_take(&text);
        } else {
            st = gen_expression(&state->names, value, kinds[plain->type], plain,
                                &kind, &c, error);
        }
    }
    if (!st && c)
        set_plain(state, index, plain->type == HOB__TYPE_F64 ? "f64" : "i64",
                  c);
    free(c);
    return st;
}

/* An expression, or {"value": expression, "when": condition}. */
static hob_status read_plain(struct state *state, uint32_t index,
                             const struct hob__json_value *value,
                             hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__param *plain = &state->op->signature.plains[index];
    const struct hob__json_value *inner = value;
    size_t from = 0;
    hob_status st = HOB_OK;

    state->done_plains[index] = true;
    if (value->type == HOB__JSON_OBJECT) {
        st = gen_check_keys(source, value, plain_keys, COUNT_OF(plain_keys),
                            error);
        inner = hob__json_member(source->doc, value, "value");
        if (!st && !inner)
            st = gen_fail(source, value, error, "field \"value\" is missing");
    }
    if (!st)
        st = open_when(state, value, plain->flags, plain->tag_param,
                       plain->variant, &from, error);
    if (!st)
        st = plain_value(state, index, inner, error);
    if (!st && from)
        close_when(&state->out, from);
    /* A plain result that is not there has no tag. */
    if (!st && from && gen_is_optional(plain))
        hob__text_printf(&state->out,
                         " else {\n        call->plains[%" PRIu32
                         "] = hob_none();\n    }\n",
                         index);
    else if (!st && from)
        hob__text_puts(&state->out, "\n");
    return st;
}

/* ---- which result a member is for ---- */

static int find_ret(const struct gen_op *op, const char *name)
{
    for (int i = 0; i < op->signature.result_count; i++)
        if (op->signature.results[i].name &&
            !strcmp(op->signature.results[i].name, name))
            return i;
    return -1;
}

static int find_plain(const struct gen_op *op, const char *name)
{
    for (int i = 0; i < op->signature.plain_count; i++)
        if (op->signature.plains[i].name &&
            !strcmp(op->signature.plains[i].name, name))
            return i;
    return -1;
}

/* A result without a name goes by its number in the signature. */
static const struct hob__item *numbered(const struct gen_op *op,
                                        const char *name)
{
    char number[16];

    for (uint32_t i = 0; i < op->signature.result_item_count; i++) {
        const struct hob__item *item = &op->signature.result_items[i];

        (void)snprintf(number, sizeof(number), "%" PRIu32, i);
        if (!item->name && !item->def && !strcmp(number, name))
            return item;
    }
    return NULL;
}

/* Enums first: what is in a variant depends on which one it is. */
static bool is_tag(const struct gen_op *op, int plain)
{
    return plain >= 0 && op->plains[plain].def;
}

static hob_status read_member(struct state *state,
                              const struct hob__json_value *member,
                              hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const char *name = hob__json_key(source->doc, member);
    const struct hob__item *item = numbered(state->op, name);
    int ret = find_ret(state->op, name);
    int plain = find_plain(state->op, name);

    if (item && item->is_plain)
        plain = item->first_plain;
    else if (item)
        ret = item->first;
    if (ret < 0 && plain < 0)
        return gen_fail(source, member, error,
                        "there is no result \"%s\"; fields are named flat, as "
                        "in \"boxes.coords\"",
                        name);
    if (is_tag(state->op, plain)) /* was read before */
        return HOB_OK;
    return ret >= 0 ? read_result(state, (uint32_t)ret, member, error)
                    : read_plain(state, (uint32_t)plain, member, error);
}

static hob_status read_named(struct state *state,
                             const struct hob__json_value *map,
                             hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *member;
    hob_status st = HOB_OK;

    for (int i = 0; i < state->op->signature.plain_count && !st; i++) {
        const char *name = state->op->signature.plains[i].name;

        member = is_tag(state->op, i) && name
                     ? hob__json_member(source->doc, map, name)
                     : NULL;
        if (member)
            st = read_plain(state, (uint32_t)i, member, error);
    }
    for (member = st ? NULL : hob__json_first(source->doc, map); member && !st;
         member = hob__json_next(source->doc, member))
        st = read_member(state, member, error);
    return st;
}

/* In the order of the signature, fields of structs one after the other; what
 * types hold is taken as hob__signature_text() writes it. */
static hob_status read_listed(struct state *state,
                              const struct hob__json_value *list,
                              hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__signature *signature = &state->op->signature;
    const struct hob__json_value *item = hob__json_first(source->doc, list);
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < signature->result_item_count; i++)
        if (signature->result_items[i].def)
            return gen_fail(source, list, error,
                            "results with types are given by name: "
                            "{\"coords\": {..}}");
    if (list->count != signature->result_item_count)
        return gen_fail(source, list, error,
                        "there are %u results, and %" PRIu32 " are given",
                        signature->result_item_count, list->count);
    for (uint32_t i = 0; item && !st; i++) {
        const struct hob__item *result = &signature->result_items[i];

        st = result->is_plain
                 ? read_plain(state, result->first_plain, item, error)
                 : read_result(state, result->first, item, error);
        item = hob__json_next(source->doc, item);
    }
    return st;
}

static hob_status check_all_done(const struct state *state,
                                 const struct hob__json_value *value,
                                 hob_error *error)
{
    const struct hob__signature *signature = &state->op->signature;

    for (uint32_t i = 0; i < signature->result_count; i++)
        if (!state->done_rets[i])
            return gen_fail(
                state->op->source, value, error, "result \"%s\" is missing",
                signature->results[i].name
                    ? signature->results[i].name
                    : state->op->out_names[state->op->rets[i].item]);
    for (uint32_t i = 0; i < signature->plain_count; i++)
        if (!state->done_plains[i])
            return gen_fail(
                state->op->source, value, error, "result \"%s\" is missing",
                signature->plains[i].name
                    ? signature->plains[i].name
                    : state->op->out_names[state->op->plains[i].item]);
    return HOB_OK;
}

static hob_status read_results(struct state *state,
                               const struct hob__json_value *object,
                               hob_error *error)
{
    const struct gen_source *source = state->op->source;
    const struct hob__json_value *results =
        hob__json_member(source->doc, object, "results");
    hob_status st;

    if (results && (hob__json_member(source->doc, object, "shape") ||
                    hob__json_member(source->doc, object, "dtype") ||
                    hob__json_member(source->doc, object, "when")))
        return gen_fail(source, object, error,
                        "either \"results\", or \"shape\" and \"dtype\" of "
                        "the only one");
    if (!results) {
        if (state->op->signature.result_count != 1 ||
            state->op->signature.plain_count)
            return gen_fail(source, object, error,
                            "there are several results: say \"results\": "
                            "{name: {\"shape\": .., \"dtype\": ..}}");
        return read_result(state, 0, object, error);
    }
    if (results->type == HOB__JSON_ARRAY) {
        st = read_listed(state, results, error);
    } else {
        st = hob__json_expect(source->doc, results, HOB__JSON_OBJECT, error);
        if (!st)
            st = read_named(state, results, error);
    }
    return st ? st : check_all_done(state, results, error);
}

hob_status gen_read_infer_object(struct gen_op *op, hob_error *error)
{
    const struct gen_source *source = op->source;
    const struct hob__json_value *object = op->infer_object;
    struct state state;
    hob_status st;

    memset(&state, 0, sizeof(state));
    state.op = op;
    state.names.op = op;
    state.names.lets = state.lets;
    if (gen_returns_list(op))
        return gen_fail(source, object, error,
                        "how long a list of results is, expressions cannot "
                        "say: write \"function\"");
    st =
        gen_check_keys(source, object, infer_keys, COUNT_OF(infer_keys), error);
    if (!st)
        st = read_lets(&state, object, error);
    if (!st)
        st = read_wheres(&state, object, error);
    if (!st)
        st = read_results(&state, object, error);
    op->infer_code = hob__text_take(&state.out);
    if (!st && !op->infer_code)
        st = gen_no_memory(error);
    return st;
}

void gen_infer_glue(struct hob__text *out, const struct gen_op *op)
{
    struct hob__text head = HOB__TEXT_INIT;
    char call[] = "struct hob_call *call";
    char meta[] = "struct hob_meta *out";
    char *items[] = {call, meta}, *text;

    hob__text_printf(&head, "static hob_status %s_infer_glue(", op->c_name);
    text = hob__text_take(&head);
    gen_wrapped(out, text ? text : "?", items, 2, ")\n{\n");
    free(text);
    hob__text_printf(out,
                     "    struct hob_infer in = {call, HOB_OK};\n%s%s"
                     "    return in.status;\n}\n\n",
                     op->signature.result_count ? "" : "    (void)out;\n",
                     op->infer_code ? op->infer_code : "");
}
