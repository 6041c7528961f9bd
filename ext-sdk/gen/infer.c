/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - "infer" of an op as an object of expressions: read, checked and
 * made the statements of an infer function.
 */
#include "infer_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const infer_keys[] = {"shape", "dtype", "when",
                                         "let",   "where", "results"};

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

    for (size_t i = 0; i < GEN_COUNT_OF(words); i++)
        if (!strcmp(words[i], name))
            return true;
    return false;
}

static hob_status read_let(struct gen_infer_state *state,
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
    if (state->names.let_count == GEN_MAX_LETS)
        return gen_fail(source, member, error, "more than %d names in \"let\"",
                        GEN_MAX_LETS);
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

static hob_status read_lets(struct gen_infer_state *state,
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
static hob_status read_where(struct gen_infer_state *state,
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

static hob_status read_wheres(struct gen_infer_state *state,
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

/* No result is called NAME: say which there are. */
static hob_status fail_member(const struct gen_infer_state *state,
                              const struct hob__json_value *member,
                              const char *name, hob_error *error)
{
    const struct hob__signature *signature = &state->op->signature;
    struct hob__text known = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < signature->result_count; i++)
        if (signature->results[i].name)
            hob__text_printf(&known, " %s", signature->results[i].name);
    for (uint32_t i = 0; i < signature->plain_count; i++)
        if (signature->plains[i].name)
            hob__text_printf(&known, " %s", signature->plains[i].name);
    for (uint32_t i = 0; i < signature->result_item_count; i++)
        if (!signature->result_items[i].name && !signature->result_items[i].def)
            hob__text_printf(&known, " %" PRIu32, i);
    (void)gen_fail(state->op->source, member, error,
                   "there is no result \"%s\": there are%s", name,
                   known.data ? known.data : " none");
    hob__text_release(&known);
    return HOB_ERR_FORMAT;
}

static hob_status read_member(struct gen_infer_state *state,
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
        return fail_member(state, member, name, error);
    if (is_tag(state->op, plain)) /* was read before */
        return HOB_OK;
    return ret >= 0 ? gen_infer_result(state, (uint32_t)ret, member, error)
                    : gen_infer_plain(state, (uint32_t)plain, member, error);
}

static hob_status read_named(struct gen_infer_state *state,
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
            st = gen_infer_plain(state, (uint32_t)i, member, error);
    }
    for (member = st ? NULL : hob__json_first(source->doc, map); member && !st;
         member = hob__json_next(source->doc, member))
        st = read_member(state, member, error);
    return st;
}

/* In the order of the signature, fields of structs one after the other; what
 * types hold is taken as hob__signature_text() writes it. */
static hob_status read_listed(struct gen_infer_state *state,
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
                 ? gen_infer_plain(state, result->first_plain, item, error)
                 : gen_infer_result(state, result->first, item, error);
        item = hob__json_next(source->doc, item);
    }
    return st;
}

static hob_status check_all_done(const struct gen_infer_state *state,
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

static hob_status read_results(struct gen_infer_state *state,
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
        return gen_infer_result(state, 0, object, error);
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
    struct gen_infer_state state;
    hob_status st;

    memset(&state, 0, sizeof(state));
    state.op = op;
    state.names.op = op;
    state.names.lets = state.lets;
    if (gen_returns_list(op))
        return gen_fail(source, object, error,
                        "how long a list of results is, expressions cannot "
                        "say: write \"function\"");
    st = gen_check_keys(source, object, infer_keys, GEN_COUNT_OF(infer_keys),
                        error);
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
