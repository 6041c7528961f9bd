/* SPDX-License-Identifier: Apache-2.0 */
/* Types of an extension: read, refused, and laid flat in signatures. */
#include "type_defs.h"

#include "hob_check.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hob__json_doc *doc;
static struct hob__types types;

static void teardown(void)
{
    hob__types_release(&types);
    hob__json_free(doc);
    doc = NULL;
}

static hob_status read_types(const char *text, hob_error *error)
{
    static const struct hob__json_limits limits = {1u << 20, 16};
    hob_status st =
        hob__json_parse("t", text, strlen(text), &limits, &doc, NULL, error);

    ck_assert_msg(!st, "%s: %s", text, error->message);
    return hob__types_read(doc, hob__json_root(doc), &types, error);
}

static void must_read(const char *text)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_msg(!read_types(text, &error), "%s", error.message);
}

#define BOXES                                                                  \
    "\"Boxes\": {\"struct\": {\"coords\": \"Float\", \"valid\": \"Int\", "     \
    "\"count\": \"i64\"}}"
#define OPERAND                                                                \
    "\"Operand\": {\"enum\": {\"Dense\": \"Float\", \"Sparse\": {\"values\": " \
    "\"Float\", \"at\": \"Int?\", \"scale\": \"f64\"}, \"Empty\": null}}"
#define NEST                                                                   \
    "\"Nest\": {\"struct\": {\"boxes\": \"Boxes\", \"how\": \"enum(a, b)?\", " \
    "\"xs\": \"[Any]\"}},"                                                     \
    "\"Tree\": {\"enum\": {\"Leaf\": \"Boxes\", \"Node\": {\"op\": "           \
    "\"Operand\"}, \"Other\": \"Operand\"}}"

START_TEST(test_type_defs_reads)
{
    const struct hob__type_def *def;

    must_read("{" BOXES ", " OPERAND "}");
    ck_assert_uint_eq(types.count, 2);
    def = types.defs[0];
    ck_assert_str_eq(def->name, "Boxes");
    ck_assert(!def->is_enum);
    ck_assert_uint_eq(def->variant_count, 1);
    ck_assert_uint_eq(def->variants[0].field_count, 3);
    ck_assert_str_eq(def->variants[0].fields[2].name, "count");
    def = types.defs[1];
    ck_assert(def->is_enum);
    ck_assert_uint_eq(def->variant_count, 3);
    ck_assert_uint_eq(def->variants[0].field_count, 1);
    ck_assert_ptr_null(def->variants[0].fields[0].name);
    ck_assert_uint_eq(def->variants[2].field_count, 0);
}
END_TEST

static const struct {
    const char *text;
    const char *message; /* part of it */
} bad_types[] = {
    {"[]", "1:1: object expected, found array"},
    {"{\"boxes\": {}}", "1:11: /boxes: \"boxes\" is no name of a type"},
    {"{\"Float\": {}}", "/Float: Float is a kind of tensors"},
    {"{\"B\": {}}", "1:7: /B: a type is either"},
    {"{\"B\": 1}", "1:7: /B: object expected, found number"},
    {"{\"B\": {\"struct\": {\"x\": \"Int\"}, \"enum\": {\"A\": null}}}",
     "/B: a type is either"},
    {"{\"B\": {\"struct\": {}}}", "1:18: /B/struct: no fields"},
    {"{\"B\": {\"struct\": 1}}", "/B/struct: object expected"},
    {"{\"B\": {\"strukt\": {}}}", "1:18: /B/strukt: unknown key"},
    {"{\"B\": {\"struct\": {\"X\": \"Float\"}}}",
     "1:24: /B/struct/X: \"X\" is no name of a field"},
    {"{\"B\": {\"struct\": {\"x\": \"float\"}}}",
     "1:24: /B/struct/x: \"float\", column 1: no such type"},
    {"{\"B\": {\"struct\": {\"x\": \"Float = 1\"}}}",
     "/B/struct/x: \"Float = 1\", column 7: nothing expected"},
    {"{\"B\": {\"struct\": {\"x\": 1}}}", "/B/struct/x: string expected"},
    {"{\"B\": {\"struct\": {\"x\": \"device\"}}}",
     "a field cannot be a device"},
    {"{\"B\": {\"struct\": {\"x\": \"B\"}}}",
     "/B/struct/x: no type B is declared before"},
    {"{\"B\": {\"struct\": {\"x\": \"C\"}}, \"C\": {\"struct\": {\"y\": "
     "\"Int\"}}}",
     "/B/struct/x: no type C is declared before"},
    {"{" BOXES ", \"C\": {\"struct\": {\"x\": \"Boxes?\"}}}",
     "/C/struct/x: a field of type Boxes cannot be optional"},
    {"{" BOXES ", \"C\": {\"struct\": {\"x\": \"[Boxes]\"}}}",
     "column 2: only tensors, i64 and f64 come in lists"},
    {"{\"E\": {\"enum\": {}}}", "/E/enum: an enum has 1 to 255 variants"},
    {"{\"E\": {\"enum\": {\"a\": null}}}", "\"a\" is no name of a variant"},
    {"{\"E\": {\"enum\": {\"A\": {}}}}", "/E/enum/A: no fields: write null"},
    {"{\"E\": {\"enum\": {\"A\": 1}}}", "/E/enum/A: object expected"},
    {"{\"E\": {\"enum\": {\"A\": \"Nix\"}}}", "/E/enum/A: no type Nix"},
    {"{\"B\": {\"struct\": {\"x\": \"Int\"}, \"doc\": 1}}",
     "/B/doc: string expected"},
};

START_TEST(test_type_defs_refuses)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(read_types(bad_types[_i].text, &error), HOB_ERR_FORMAT);
    ck_assert_msg(strstr(error.message, bad_types[_i].message),
                  "\"%s\", not \"%s\"", error.message, bad_types[_i].message);
    hob_error_release(&error);
}
END_TEST

static const struct {
    const char *text;
    const char *flat;
} flat[] = {
    {"(boxes: Boxes, t: f64 = 0.5) -> Boxes",
     "(boxes.coords: Float, boxes.valid: Int, boxes.count: i64, t: f64 = 0.5) "
     "-> (coords: Float, valid: Int, count: value(i64))"},
    {"(x: Float) -> (Boxes, x, Boxes)",
     "(x: Float) -> (0.coords: Float, 0.valid: Int, x, 2.coords: Float, "
     "2.valid: Int, 0.count: value(i64), 2.count: value(i64))"},
    {"(x: Float) -> (a: Boxes)",
     "(x: Float) -> (a.coords: Float, a.valid: Int, a.count: value(i64))"},
    {"(operand: Operand, like: Float?) -> Float",
     "(operand: enum(Dense, Sparse, Empty), operand.Dense: Float?, "
     "operand.Sparse.values: Float?, operand.Sparse.at: Int?, "
     "operand.Sparse.scale: f64?, like: Float?) -> Float"},
    {"(x: Float) -> Operand",
     "(x: Float) -> (Dense: Float?, Sparse.values: Float?, Sparse.at: Int?, "
     "variant: value(enum(Dense, Sparse, Empty)), Sparse.scale: value(f64?))"},
    {"(n: Nest) -> n.boxes.coords",
     "(n.boxes.coords: Float, n.boxes.valid: Int, n.boxes.count: i64, n.how: "
     "enum(a, b)?, n.xs: [Any]) -> n.boxes.coords"},
    {"(t: Tree) -> f32",
     "(t: enum(Leaf, Node, Other), t.Leaf.coords: Float?, t.Leaf.valid: Int?, "
     "t.Leaf.count: i64?, t.Node.op: enum(Dense, Sparse, Empty)?, "
     "t.Node.op.Dense: Float?, t.Node.op.Sparse.values: Float?, "
     "t.Node.op.Sparse.at: Int?, t.Node.op.Sparse.scale: f64?, t.Other: "
     "enum(Dense, Sparse, Empty)?, t.Other.Dense: Float?, "
     "t.Other.Sparse.values: Float?, t.Other.Sparse.at: Int?, "
     "t.Other.Sparse.scale: f64?) -> f32"},
};

/* What a library's table holds is the same signature for the core. */
START_TEST(test_type_defs_lie_flat)
{
    struct hob__signature typed, again;
    const char *message;
    char *text;
    int column;

    must_read("{" BOXES ", " OPERAND ", " NEST "}");
    ck_assert_msg(!hob__signature_parse_with(flat[_i].text, &types, &typed,
                                             &column, &message),
                  "column %d: %s", column, message);
    text = hob__signature_text(&typed);
    ck_assert_str_eq(text, flat[_i].flat);
    ck_assert_msg(!hob__signature_parse(text, &again, &column, &message),
                  "column %d: %s", column, message);
    ck_assert(hob__signature_compatible(&typed, &again));
    ck_assert(hob__signature_compatible(&again, &typed));
    ck_assert_uint_eq(typed.tensor_count, again.tensor_count);
    hob__signature_release(&typed);
    hob__signature_release(&again);
    free(text);
}
END_TEST

START_TEST(test_type_defs_know_their_variant)
{
    struct hob__signature s;
    const char *message;
    int column;

    must_read("{" BOXES ", " OPERAND ", " NEST "}");
    ck_assert_msg(!hob__signature_parse_with("(t: Tree) -> Operand", &types, &s,
                                             &column, &message),
                  "column %d: %s", column, message);
    ck_assert_uint_eq(s.params[0].tag_param, HOB__NO_TAG);
    ck_assert_uint_eq(s.params[1].tag_param, 0); /* t.Leaf.coords */
    ck_assert_uint_eq(s.params[1].variant, 0);
    ck_assert(s.params[1].flags & HOB__PARAM_NEEDED);
    ck_assert_uint_eq(s.params[4].tag_param, 0); /* t.Node.op */
    ck_assert_uint_eq(s.params[4].variant, 1);
    ck_assert_uint_eq(s.params[6].tag_param, 4); /* t.Node.op.Sparse.values */
    ck_assert_uint_eq(s.params[6].variant, 1);
    ck_assert(!(s.params[7].flags & HOB__PARAM_NEEDED)); /* at: Int? */
    ck_assert_uint_eq(s.results[0].tag_plain, 0);
    ck_assert_uint_eq(s.results[1].variant, 1);
    ck_assert_uint_eq(s.plains[1].tag_param, 0);
    ck_assert_uint_eq(s.required_count, 1);
    hob__signature_release(&s);
}
END_TEST

static const struct {
    const char *text;
    int column;
    const char *message;
} bad_texts[] = {
    {"(b: Boxes?) -> f32", 5, "is always there"},
    {"(b: Boxes = 1) -> f32", 11, "has no default"},
    {"(_b: Boxes) -> f32", 6, "a hidden parameter cannot"},
    {"(_s: i64?, b: Boxes) -> f32", 15, "may follow a hidden"},
    {"(b: [Boxes]) -> f32", 6, "only tensors"},
    {"(b: Box) -> f32", 5, "no such type"},
    {"(b: Boxes, b: Float) -> f32", 12, "stands before"},
    {"(b: Float, b: Boxes) -> f32", 12, "stands before"},
    {"(b.coords: Float, b: Boxes) -> f32", 22, "two fields get one name"},
    {"() -> Nest", 7, "cannot be returned"},
    {"() -> (a: Boxes, a: Boxes)", 18, "stands before"},
    {"() -> _a: Boxes", 11, "hidden result is a tensor"},
    {"() -> [Boxes]", 8, "holds tensors"},
    {"() -> Boxes?", 12, "nothing expected"},
    {"(a: Boxes, b: Boxes, c: Boxes, d: Boxes, e: Boxes, f: Boxes, g: Boxes, "
     "h: Boxes, i: Boxes, j: Boxes, k: Boxes) -> f32",
     105, "more than 32 parameters"},
    {"() -> (Boxes, Boxes, Boxes, Boxes, Boxes, Boxes, Boxes, Boxes, Boxes)",
     64, "more than 16 results"},
};

START_TEST(test_type_defs_say_where_a_signature_is_wrong)
{
    struct hob__signature s;
    const char *message = NULL;
    int column = 0;

    must_read("{" BOXES ", " OPERAND ", " NEST "}");
    ck_assert_int_eq(hob__signature_parse_with(bad_texts[_i].text, &types, &s,
                                               &column, &message),
                     HOB_ERR_FORMAT);
    ck_assert_msg(message && strstr(message, bad_texts[_i].message),
                  "%s: \"%s\"", bad_texts[_i].text, message ? message : "-");
    ck_assert_msg(column == bad_texts[_i].column, "%s: column %d",
                  bad_texts[_i].text, column);
    ck_assert_uint_eq(s.param_count, 0);
}
END_TEST

/* The walk through types recurses; its depth has a bound. */
START_TEST(test_type_defs_bound_their_depth)
{
    char text[4096] = "{\"T0\": {\"struct\": {\"x\": \"Float\"}}";
    struct hob__signature s;
    const char *message;
    int column;

    for (int i = 1; i < 20; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       ", \"T%d\": {\"struct\": {\"x\": \"T%d\"}}", i, i - 1);
    (void)strcat(text, "}");
    must_read(text);
    ck_assert_msg(!hob__signature_parse_with("(t: T15) -> t.x.x.x.x.x.x.x.x."
                                             "x.x.x.x.x.x.x.x",
                                             &types, &s, &column, &message),
                  "column %d: %s", column, message);
    hob__signature_release(&s);
    ck_assert_int_eq(hob__signature_parse_with("(t: T16) -> f32", &types, &s,
                                               &column, &message),
                     HOB_ERR_FORMAT);
    ck_assert_str_eq(message, "types lie in types more than 16 deep");
}
END_TEST

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("type_defs");
    TCase *tc = tcase_create("type_defs");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, test_type_defs_reads);
    tcase_add_loop_test(tc, test_type_defs_refuses, 0, COUNT_OF(bad_types));
    tcase_add_loop_test(tc, test_type_defs_lie_flat, 0, COUNT_OF(flat));
    tcase_add_test(tc, test_type_defs_know_their_variant);
    tcase_add_loop_test(tc, test_type_defs_say_where_a_signature_is_wrong, 0,
                        COUNT_OF(bad_texts));
    tcase_add_test(tc, test_type_defs_bound_their_depth);
    return hob_check_main(suite);
}
