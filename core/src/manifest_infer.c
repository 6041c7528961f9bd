/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_infer.c - an op's signature, and whether the infer function that
 * it names fits.
 *
 * The standard infer functions read arguments and write results by position:
 * they trust the signatures of the built-in ops that they were written for.
 * An extension's op may use one if its own signature begins like one of those.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest_read.h"
#include "schema.h"

#include <stdlib.h>
#include <string.h>

/* Does a call of HAVE give all that a function written for MODEL reads? */
static bool begins_like(const struct hob__signature *have,
                        const struct hob__signature *model)
{
    uint32_t i;

    if (have->result_count < model->result_count)
        return false;
    for (i = 0; i < model->result_count; i++)
        if (have->results[i].is_list != model->results[i].is_list)
            return false;
    for (i = 0; i < model->param_count; i++) {
        const struct hob__param *mine = &have->params[i];
        const struct hob__param *other = &model->params[i];

        if (other->flags & HOB__PARAM_HIDDEN)
            break;
        if (i >= have->param_count || mine->type != other->type)
            return false;
        if ((mine->flags & HOB__PARAM_OPTIONAL) &&
            !(other->flags & HOB__PARAM_OPTIONAL))
            return false;
    }
    return true;
}

/* Look for a built-in op that uses INFER and that HAVE begins like; *OUT_LIKE
 * is the signature of the last one looked at. */
static hob_status check_fit(const struct hob__signature *have,
                            hob_infer_fn infer, bool *out_fits,
                            const char **out_like)
{
    struct hob__signature model;
    const char *message;
    uint32_t i;
    int column;

    *out_fits = false;
    for (i = 0; i < hob__builtin_op_count && !*out_fits; i++) {
        const struct hob__op_decl *op = &hob__builtin_ops[i];
        hob_status st;

        if (op->infer != infer)
            continue;
        st = hob__signature_parse(op->signature, &model, &column, &message);
        if (st)
            return st;
        *out_fits = begins_like(have, &model);
        *out_like = op->signature;
        hob__signature_release(&model);
    }
    return HOB_OK;
}

static hob_status check_infer(struct hob__reader *reader,
                              const struct hob__json_value *object,
                              const struct hob__manifest_op *op,
                              const struct hob__signature *signature)
{
    const struct hob__json_value *value =
        hob__json_member(reader->doc, object, "infer");
    const char *like = "";
    hob_infer_fn infer;
    bool fits;

    if (!op->infer || !strcmp(op->infer, "function"))
        return HOB_OK;
    infer = hob__infer_find(op->infer);
    if (!infer)
        return hob__reader_fail(
            reader, value, HOB__REASON_MANIFEST_FIELD,
            "there is no standard infer function \"%s\"; SCHEMA.md lists them, "
            "and \"function\" is one of your own",
            op->infer);
    if (check_fit(signature, infer, &fits, &like))
        return hob__reader_no_memory(reader);
    if (!fits)
        return hob__reader_fail(
            reader, value, HOB__REASON_MANIFEST_FIELD,
            "the infer function \"%s\" does not fit %s: it needs what %s has",
            op->infer, op->signature, like);
    return HOB_OK;
}

/* The core writes to the last two parameters of a random op. */
static hob_status check_random(struct hob__reader *reader,
                               const struct hob__json_value *object,
                               const struct hob__manifest_op *op,
                               const struct hob__signature *signature)
{
    uint32_t count = signature->param_count;
    bool fits = count >= 2 && signature->result_count;

    if (!op->random)
        return HOB_OK;
    fits = fits && !strcmp(signature->params[count - 2].name, "_seed") &&
           signature->params[count - 2].type == HOB__TYPE_I64 &&
           !strcmp(signature->params[count - 1].name, "_offset") &&
           signature->params[count - 1].type == HOB__TYPE_I64;
    return fits ? HOB_OK
                : hob__reader_fail(
                      reader, hob__json_member(reader->doc, object, "random"),
                      HOB__REASON_MANIFEST_FIELD,
                      "a random op ends in (.., _seed: i64?, _offset: i64?)");
}

/* What the library's table says, if the signature has types. */
static hob_status lay_flat(struct hob__reader *reader,
                           struct hob__manifest_op *op,
                           const struct hob__signature *signature)
{
    bool typed = false;
    char *text;

    op->flat = op->signature;
    for (uint32_t i = 0; i < signature->item_count; i++)
        typed = typed || signature->items[i].def;
    for (uint32_t i = 0; i < signature->result_item_count; i++)
        typed = typed || signature->result_items[i].def;
    if (!typed)
        return HOB_OK;
    text = hob__signature_text(signature);
    op->flat = text ? hob__arena_strdup(reader->arena, text) : NULL;
    free(text);
    return op->flat ? HOB_OK : hob__reader_no_memory(reader);
}

hob_status hob__reader_signature(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op)
{
    struct hob__signature signature;
    const char *message = NULL;
    int column = 0;
    hob_status st = hob__signature_parse_with(
        op->signature, &reader->manifest->types, &signature, &column, &message);

    if (st == HOB_ERR_MEMORY)
        return hob__reader_no_memory(reader);
    if (st)
        return hob__reader_fail(
            reader, hob__json_member(reader->doc, object, "signature"),
            HOB__REASON_MANIFEST_FIELD, "\"%s\", column %d: %s", op->signature,
            column, message);
    st = check_random(reader, object, op, &signature);
    if (!st)
        st = check_infer(reader, object, op, &signature);
    if (!st)
        st = lay_flat(reader, op, &signature);
    hob__signature_release(&signature);
    return st;
}
