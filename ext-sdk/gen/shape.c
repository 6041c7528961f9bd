/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - the shapes of "infer": whole ones, sizes and slices.
 */
#include "cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "x[1:]", "x[:-1]", "x[:]": whether it is one; then it is taken. */
static bool slice(struct gen_cursor *c, uint32_t result, struct hob__text *out)
{
    char name[GEN_NAME_BYTES + 1];
    const struct hob__param *param;
    int64_t first = 0, last = INT64_MAX;
    size_t at = (gen_scan_peek(c), c->at);
    int index;

    if (!strchr(c->text, ':'))
        return false;
    if (!gen_scan_name(c, name)) {
        gen_scan_fail(c, at, "the name of a parameter expected before a slice");
        return true;
    }
    param = gen_scan_param(c, at, name, &index);
    if (param && !gen_has_sizes(param))
        gen_scan_fail(c, at, "%s has no dimensions and no items", name);
    gen_scan_expect(c, "[", "before a slice");
    (void)gen_scan_index(c, &first);
    gen_scan_expect(c, ":", "in a slice, which is a shape's item alone");
    (void)gen_scan_index(c, &last);
    gen_scan_expect(c, "]", "after a slice");
    hob__text_printf(out,
                     "    hob_infer_splice(&in, &out[%" PRIu32
                     "], %d, \"%s\", %" PRId64 ", ",
                     result, index, name, first);
    if (last == INT64_MAX)
        hob__text_puts(out, "INT64_MAX);\n");
    else
        hob__text_printf(out, "%" PRId64 ");\n", last);
    return true;
}

hob_status gen_shape_item(const struct gen_names *names,
                          const struct hob__json_value *value, uint32_t result,
                          struct hob__text *out, hob_error *error)
{
    const struct hob__json_doc *doc = names->op->source->doc;
    enum gen_kind kind;
    struct gen_cursor c;
    char *text = NULL;
    int64_t size = 0;
    hob_status st;

    if (value->type == HOB__JSON_NUMBER) {
        st = hob__json_int(doc, value, 0, INT64_MAX, &size, error);
        hob__text_printf(out,
                         "    hob_infer_push(&in, &out[%" PRIu32 "], \"%" PRId64
                         "\", INT64_C(%" PRId64 "));\n",
                         result, size, size);
        return st;
    }
    st = gen_scan_start(&c, names, value, error);
    if (st)
        return st;
    if (slice(&c, result, out))
        return gen_scan_finish(&c, value, error);
    st = gen_expression(names, value, GEN_INT, NULL, &kind, &text, error);
    if (st)
        return st;
    hob__text_printf(out, "    hob_infer_push(&in, &out[%" PRIu32 "], ",
                     result);
    gen_c_string(out, c.text);
    hob__text_puts(out, ",\n");
    gen_flow(out, 19, text);
    hob__text_puts(out, ");\n");
    free(text);
    return HOB_OK;
}

/* The tensors in broadcast(..), one after the other. */
static void broadcast(struct gen_cursor *c, uint32_t result,
                      struct hob__text *out)
{
    char name[GEN_NAME_BYTES + 1];
    int index;

    do {
        size_t at = (gen_scan_peek(c), c->at);
        const struct hob__param *param = NULL;

        if (gen_scan_name(c, name))
            param = gen_scan_param(c, at, name, &index);
        else
            gen_scan_fail(c, at, "the name of a tensor parameter expected");
        if (param && param->type != HOB__TYPE_TENSOR)
            gen_scan_fail(c, at, "%s is no tensor", name);
        if (!c->failed)
            hob__text_printf(out,
                             "    hob_infer_broadcast(&in, &out[%" PRIu32
                             "], %d, \"%s\");\n",
                             result, index, name);
    } while (!c->failed && gen_scan_accept(c, ","));
    gen_scan_expect(c, ")", "after the tensors");
}

hob_status gen_shape_string(const struct gen_names *names,
                            const struct hob__json_value *value,
                            uint32_t result, struct hob__text *out,
                            hob_error *error)
{
    char name[GEN_NAME_BYTES + 1];
    const struct hob__param *param;
    struct gen_cursor c;
    size_t at;
    int index;
    hob_status st = gen_scan_start(&c, names, value, error);

    if (st)
        return st;
    at = (gen_scan_peek(&c), c.at);
    if (!gen_scan_name(&c, name)) {
        gen_scan_fail(
            &c, at,
            "a parameter, broadcast(a, b) or an array of sizes expected");
    } else if (!strcmp(name, "broadcast") && gen_scan_accept(&c, "(")) {
        broadcast(&c, result, out);
    } else {
        param = gen_scan_param(&c, at, name, &index);
        if (param && !gen_has_sizes(param))
            gen_scan_fail(&c, at, "%s has no shape: write an array of sizes",
                          name);
        if (!c.failed && gen_scan_peek(&c))
            gen_scan_fail(&c, c.at,
                          "a shape of one dimension is an array of one");
        hob__text_printf(out,
                         "    hob_infer_splice(&in, &out[%" PRIu32
                         "], %d, \"%s\", 0, INT64_MAX);\n",
                         result, index, name);
    }
    return gen_scan_finish(&c, value, error);
}
