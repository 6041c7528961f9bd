/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - C expressions: a value made of a parameter, a parameter taken out
 * of a value, and when one that belongs to a variant is there.
 */
#include "gen.h"

#include <inttypes.h>
#include <string.h>

void gen_value(struct hob__text *out, const struct hob__param *param,
               const char *path)
{
    static const char *const makers[] = {
        [HOB__TYPE_TENSOR] = "hob_value_tensor",
        [HOB__TYPE_TENSORS] = "hob_value_tensors",
        [HOB__TYPE_F64] = "hob_f64",
        [HOB__TYPE_I64] = "hob_i64",
        [HOB__TYPE_BOOL] = "hob_bool",
        [HOB__TYPE_STR] = "hob_value_str",
        [HOB__TYPE_SHAPE] = "hob_value_i64s",
        [HOB__TYPE_I64S] = "hob_value_i64s",
        [HOB__TYPE_F64S] = "hob_value_f64s",
        [HOB__TYPE_DEVICE] = "hob_value_device"};

    /* An absent list is NULL, an absent enumerator -1. */
    if (gen_is_optional(param) && gen_has_count(param))
        hob__text_printf(out, "!%s ? hob_none() : ", path);
    else if (gen_is_optional(param) && param->type == HOB__TYPE_ENUM)
        hob__text_printf(out, "(int)%s < 0 ? hob_none() : ", path);
    if (gen_is_tagged(param))
        hob__text_puts(out, path);
    else if (param->type == HOB__TYPE_DTYPE)
        hob__text_printf(out, "hob_value_dtype((uint32_t)%s)", path);
    else if (param->type == HOB__TYPE_ENUM)
        hob__text_printf(out, "hob_value_enum((int64_t)%s)", path);
    else if (gen_has_count(param))
        hob__text_printf(out, "%s(%s, %s_count)", makers[param->type], path,
                         path);
    else
        hob__text_printf(out, "%s(%s)", makers[param->type], path);
}

void gen_payload(struct hob__text *out, const struct hob__param *param,
                 const char *enum_name, const char *source)
{
    static const char *const payloads[] = {
        [HOB__TYPE_TENSOR] = ".u.tensor", [HOB__TYPE_TENSORS] = ".u.tensors",
        [HOB__TYPE_SCALAR] = "",          [HOB__TYPE_F64] = ".u.f64",
        [HOB__TYPE_I64] = ".u.i64",       [HOB__TYPE_BOOL] = ".u.i64 != 0",
        [HOB__TYPE_STR] = ".u.str",       [HOB__TYPE_DTYPE] = ".u.i64",
        [HOB__TYPE_SHAPE] = ".u.i64s",    [HOB__TYPE_I64S] = ".u.i64s",
        [HOB__TYPE_F64S] = ".u.f64s",     [HOB__TYPE_DEVICE] = ".u.device"};
    uint8_t type = gen_is_tagged(param) ? HOB__TYPE_SCALAR : param->type;

    if (type != HOB__TYPE_ENUM) {
        hob__text_printf(out, "%s%s%s",
                         type == HOB__TYPE_DTYPE ? "(hob_dtype)" : "", source,
                         payloads[type]);
        return;
    }
    hob__text_printf(out, "(enum %s)", enum_name ? enum_name : "?");
    if (gen_is_optional(param))
        hob__text_printf(out, "(%s.tag ? %s.u.i64 : -1)", source, source);
    else
        hob__text_printf(out, "%s.u.i64", source);
}

/* ---- what of a variant is there ---- */

bool gen_param_condition(struct hob__text *out, const struct gen_op *op,
                         uint32_t index, const char *arrow)
{
    const struct hob__param *param = &op->signature.params[index];
    const struct gen_place *tag;

    if (param->tag_param == HOB__NO_TAG)
        return false;
    if (gen_param_condition(out, op, param->tag_param, arrow))
        hob__text_puts(out, " && ");
    tag = &op->params[param->tag_param];
    gen_path(out, op->item_names[tag->item], arrow, tag);
    hob__text_puts(out, " == ");
    gen_enumerator(out, op->prefix, tag->def, param->variant);
    return true;
}

bool gen_result_condition(struct hob__text *out, const struct gen_op *op,
                          uint8_t tag, uint8_t variant, const char *arrow)
{
    const struct hob__param *plain;
    const struct gen_place *place;

    if (tag == HOB__NO_TAG)
        return false;
    plain = &op->signature.plains[tag];
    place = &op->plains[tag];
    if (gen_result_condition(out, op, plain->tag_param, plain->variant, arrow))
        hob__text_puts(out, " && ");
    gen_path(out, op->out_names[place->item], arrow, place);
    hob__text_puts(out, " == ");
    gen_enumerator(out, op->prefix, place->def, variant);
    return true;
}
