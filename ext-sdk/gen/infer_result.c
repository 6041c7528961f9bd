/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_result.c - one result of "infer": its dtype, its shape, its value,
 * and when it is there.
 */
#include "infer_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const result_keys[] = {"shape", "dtype", "when"};
static const char *const plain_keys[] = {"value", "when"};

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
static hob_status read_dtype(struct gen_infer_state *state,
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
static void signature_dtype(struct gen_infer_state *state, uint32_t index)
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

static hob_status result_dtype(struct gen_infer_state *state, uint32_t index,
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

static hob_status read_shape(struct gen_infer_state *state, uint32_t index,
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
static hob_status open_when(struct gen_infer_state *state,
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

hob_status gen_infer_result(struct gen_infer_state *state, uint32_t index,
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
        st = gen_check_keys(source, value, result_keys,
                            GEN_COUNT_OF(result_keys), error);
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
static void set_plain(struct gen_infer_state *state, uint32_t index,
                      const char *member, const char *c)
{
    hob__text_printf(&state->out, "    call->plains[%" PRIu32 "].u.%s =\n",
                     index, member);
    gen_flow(&state->out, 8, c);
    hob__text_puts(&state->out, ";\n");
}

static hob_status plain_value(struct gen_infer_state *state, uint32_t index,
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
hob_status gen_infer_plain(struct gen_infer_state *state, uint32_t index,
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
        st = gen_check_keys(source, value, plain_keys, GEN_COUNT_OF(plain_keys),
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
