/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as an expression and as a shape of "infer": refused with a place,
 * or made C in which the brackets match.
 */
#include "expression.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char signature[] =
    "(x: Float, k: i64, y: Any?, size: [i64], mode: enum(both, left), f: f64, "
    "n: i64?, b: bool, a.B.c: Float?, xs: [Num]) -> x";

static void check_c(const char *text)
{
    bool in_string = false;
    int depth = 0;

    for (; *text; text++) {
        if (in_string && *text == '\\' && text[1])
            text++;
        else if (*text == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (*text == '(') - (*text == ')');
        if (depth < 0)
            abort();
    }
    if (depth || in_string)
        abort();
}

static void use(const struct gen_names *names,
                const struct hob__json_value *value)
{
    struct hob__text out = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    enum gen_kind kind;
    char *text = NULL;

    if (!gen_expression(names, value, (enum gen_kind)0, NULL, &kind, &text,
                        &error))
        check_c(text);
    else if (!error.message)
        abort();
    free(text);
    hob_error_release(&error);
    if (!gen_shape_item(names, value, 0, &out, &error))
        check_c(out.data);
    hob_error_release(&error);
    hob__text_release(&out);
    if (!gen_shape_string(names, value, 0, &out, &error))
        check_c(out.data);
    hob_error_release(&error);
    hob__text_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hob__json_limits limits = {1u << 20, 16};
    struct gen_let let = {"q", GEN_INT};
    struct hob__text json = HOB__TEXT_INIT;
    struct gen_source source;
    struct gen_op op;
    struct gen_names names = {&op, &let, 1};
    const char *message;
    char *text = malloc(size + 1), path[] = "f";
    int column;

    memset(&source, 0, sizeof(source));
    memset(&op, 0, sizeof(op));
    op.source = &source;
    source.path = path;
    if (text) {
        memcpy(text, data, size);
        text[size] = '\0';
        hob__text_json(&json, text);
    }
    if (text &&
        !hob__signature_parse(signature, &op.signature, &column, &message) &&
        !hob__json_parse("f", json.data, json.length, &limits, &source.doc,
                         NULL, NULL))
        use(&names, hob__json_root(source.doc));
    hob__signature_release(&op.signature);
    hob__json_free(source.doc);
    hob__text_release(&json);
    free(text);
    return 0;
}
