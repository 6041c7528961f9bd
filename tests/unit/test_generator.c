/* SPDX-License-Identifier: Apache-2.0 */
/* What hob-sdk gen refuses, and where it says that the mistake is. */
#include "hob_check.h"

#include "gen.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hob-gen-XXXXXX";
static char path[64];

static void setup(void)
{
    (void)strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/a.json", folder);
}

static void teardown(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* The message must be "PATH:" and then all of EXPECTED, which may end early. */
static void check_message(const hob_error *error, const char *expected)
{
    size_t length = strlen(path);

    ck_assert_ptr_nonnull(error->message);
    ck_assert_msg(!strncmp(error->message, path, length) &&
                      error->message[length] == ':',
                  "\"%s\" does not begin with the file", error->message);
    ck_assert_msg(
        !strncmp(error->message + length + 1, expected, strlen(expected)),
        "\"%s\", not \"%s\"", error->message + length + 1, expected);
}

static hob_status read_schema(struct gen_schema *schema, bool is_extension,
                              hob_error *error)
{
    hob_status st;

    memset(schema, 0, sizeof(*schema));
    schema->is_extension = is_extension;
    st = is_extension ? gen_read_extension(schema, path, error)
                      : gen_read_builtin(schema, folder, error);
    return st ? st : gen_check(schema, error);
}

static void refuse(const char *text, bool is_extension, const char *expected)
{
    struct gen_schema schema;
    hob_error error = HOB_ERROR_INIT;

    write_text(text);
    ck_assert_int_eq(read_schema(&schema, is_extension, &error),
                     HOB_ERR_FORMAT);
    check_message(&error, expected);
    hob_error_release(&error);
    gen_schema_release(&schema);
}

/* ---- built-in ops ---- */

#define FAMILY(ops) "{\"family\": \"f\",\n\"ops\": [\n" ops "]}"
#define OP(name, id, sig, more)                                                \
    "{\"op\": \"" name "\", \"id\": " id ",\n \"signature\": \"" sig           \
    "\", \"fuse\": \"opaque\", \"infer\": \"same\", \"doc\": \"d\"" more "}"
#define X "(x: Num) -> x"
#define A OP("a", "1", X, "")

static const struct bad {
    const char *text;
    const char *expected; /* behind "PATH:" */
} bad_families[] = {
    {"", "1:1: "},
    {"[]", "1:1: object expected, found array"},
    {"{\"family\": \"f\", \"ops\": [],}", "1:27: "},
    {"{\"family\": \"f\", \"ops\": [], \"ops\": []}", "1:28: /ops: "},
    {"{\"ops\": []}", "1:1: field \"family\" is missing"},
    {"{\"family\": \"f\"}", "1:1: field \"ops\" is missing"},
    {"{\"family\": 3, \"ops\": []}",
     "1:12: /family: string expected, found number"},
    {"{\"family\": \"f\", \"opps\": []}",
     "1:25: /opps: unknown key \"opps\"; \"ops\" is meant?"},
    {FAMILY("1"), "3:1: /ops/0: object expected, found number"},
    {FAMILY("{}"), "3:1: /ops/0: field \"op\" is missing"},
    {FAMILY("{\"op\": \"\"}"), "3:8: /ops/0/op: \"op\" is empty"},
    {FAMILY("{\"op\": \"Add\"}"), "3:8: /ops/0/op: \"Add\" is no name"},
    {FAMILY("{\"op\": \"a.b\"}"), "3:8: /ops/0/op: \"a.b\" is no name"},
    {FAMILY("{\"op\": \"a\"}"), "3:1: /ops/0: field \"signature\" is missing"},
    {FAMILY("{\"op\": \"a\", \"signature\": \"" X "\"}"),
     "3:1: /ops/0: field \"infer\" is missing"},
    {FAMILY("{\"op\": \"a\", \"signature\": \"" X "\", \"infer\": \"same\"}"),
     "3:1: /ops/0: field \"fuse\" is missing"},
    {FAMILY("{\"op\": \"a\", \"signature\": \"" X
            "\", \"infer\": \"same\",\n\"fuse\": \"opaque\"}"),
     "3:1: /ops/0: field \"doc\" is missing"},
    {FAMILY("{\"op\": \"a\", \"signature\": \"" X
            "\", \"infer\": \"same\",\n\"fuse\": \"opaque\", \"doc\": \"d\"}"),
     "3:1: /ops/0: field \"id\" is missing"},
    {FAMILY("{\"op\": \"a\", \"signature\": \"" X
            "\", \"infer\": \"same\",\n\"fuse\": \"fast\"}"),
     "4:9: /ops/0/fuse: \"fast\" is no fusion rule"},
    {FAMILY(OP("a", "1", X, ", \"dok\": 1")),
     "4:86: /ops/0/dok: unknown key \"dok\"; \"doc\" is meant?"},
    {FAMILY(OP("a", "1", X, ", \"backends\": []")),
     "4:91: /ops/0/backends: unknown key"},
    {FAMILY(OP("a", "0", X, "")), "3:19: /ops/0/id: 0 is not in 1..65535"},
    {FAMILY(OP("a", "1.0", X, "")), "3:19: /ops/0/id: integer expected"},
    {FAMILY(OP("a", "2", X, "")),
     "3:19: /ops/0/id: id 2 leaves a gap: 1 is free"},
    {FAMILY(A ",\n" OP("b", "1", X, "")), "5:19: /ops/1/id: id 1 is \"a\"'s"},
    {FAMILY(A ",\n" OP("a", "2", X, "")),
     "5:8: /ops/1/op: op \"a\" is declared twice; first at "},
    {FAMILY(OP("a", "1", "(x: num) -> x", "")),
     "4:20: /ops/0/signature: no such type"},
    {FAMILY(OP("a", "1", "(x: Flaot) -> x", "")),
     "4:20: /ops/0/signature: no such type; \"Float\" is meant?"},
    {FAMILY(OP("a", "1", "(x: Num) -> z", "")),
     "4:28: /ops/0/signature: no parameter, dtype or kind"},
    {FAMILY(OP("a", "1", "(x: str\\u003f)", "")),
     "4:15: /ops/0/signature: character 10 of the string: '->'"},
    {FAMILY(OP("a", "1", "(x: Config) -> f32", "")),
     "4:20: /ops/0/signature: no such type: Float Int"},
    {FAMILY(OP("a", "1", "(out_0: Num) -> (f32, f32)", "")),
     "4:15: /ops/0/signature: parameter \"out_0\" and a result get one name"},
    {FAMILY(OP("a", "1", "(x: Num) -> (lse: x, _lse: f32)", "")),
     "4:15: /ops/0/signature: two results get one name in C, out_lse"},
    {FAMILY(OP("a", "1", "(x.y: Num) -> x.y", "")),
     "4:15: /ops/0/signature: \"x.y\" is a flat name"},
    {FAMILY(OP("a", "1", "(x: Num) -> (1: x, x)", "")),
     "4:15: /ops/0/signature: \"1\" is a flat name"},
    {FAMILY(OP("a", "1", "(x: [i64], x_count: i64) -> f32", "")),
     "4:15: /ops/0/signature: parameters \"x\" and \"x_count\" get one name"},
    {FAMILY(OP("a", "1", "(new: i64, new_: i64) -> f32", "")),
     "4:15: /ops/0/signature: parameters \"new\" and \"new_\" get one name"},
    {FAMILY(OP("a", "1", X, ", \"body\": 1")),
     "4:87: /ops/0/body: true or false expected, found number"},
    {FAMILY(OP("a", "1", X, ", \"uses\": [\"a\"]")),
     "4:87: /ops/0/uses: \"uses\" without a \"body\""},
    {FAMILY(OP("a", "1", X, ", \"body\": true, \"uses\": [1]")),
     "4:102: /ops/0/uses/0: string expected"},
    {FAMILY(OP("a", "1", X, ", \"body\": true, \"uses\": [\"b\"]")),
     "4:102: /ops/0/uses/0: there is no op \"b\""},
    {FAMILY(OP("a", "1", X, ", \"body\": true, \"uses\": [\"a\"]")),
     "4:101: /ops/0/uses: the bodies use each other in a circle: a -> a"},
    {FAMILY(OP("a", "1", X, ", \"body\": true, \"uses\": [\"b\"]") ",\n" OP(
         "b", "2", X,
         ", \"body\": true, \"uses\": [\"c\"]") ",\n" OP("c", "3", X,
                                                         ", "
                                                         "\"body"
                                                         "\": "
                                                         "true, "
                                                         "\"uses"
                                                         "\": "
                                                         "[\"b\"]")),
     "6:101: /ops/1/uses: the bodies use each other in a circle: b -> c -> b"},
    {FAMILY(OP("a", "1", X, ", \"aliases\": [[0]]")),
     "4:91: /ops/0/aliases/0: [result, parameter] expected"},
    {FAMILY(OP("a", "1", X, ", \"aliases\": [[1, 0]]")),
     "4:92: /ops/0/aliases/0/0: 1 is not in 0..0"},
    {FAMILY(OP("a", "1", "(n: i64) -> f32", ", \"aliases\": [[0, 0]]")),
     "4:97: /ops/0/aliases/0/1: parameter 0 is no tensor"},
    {FAMILY(OP("a", "1", X, ", \"random\": true")),
     "3:1: /ops/0: a random op ends in"},
    {FAMILY("{\"op\": \"a\", \"id\": 1, \"signature\": \"() -> f32\", "
            "\"infer\": \"same\", \"fuse\": \"view\"}"),
     "3:1: /ops/0: a view has one result"},
    {FAMILY(OP("a", "1", X, ", \"quantized\": \"always\"")),
     "4:92: /ops/0/quantized: \"always\" is no rule for quantized arguments"},
    {FAMILY("{\"op\": \"a\", \"id\": 1, \"signature\": \"" X "\", "
            "\"infer\": \"Same\", \"fuse\": \"view\"}"),
     "3:61: /ops/0/infer: \"Same\" is no name"},
};

START_TEST(test_generator_refuses_family)
{
    refuse(bad_families[_i].text, false, bad_families[_i].expected);
}
END_TEST

START_TEST(test_generator_sorts_by_number)
{
    struct gen_schema schema;
    hob_error error = HOB_ERROR_INIT;

    write_text(FAMILY(OP("z", "2", X, ", \"x-mine\": 1") ",\n" A));
    ck_assert_hob_ok(read_schema(&schema, false, &error));
    ck_assert_uint_eq(schema.op_count, 2);
    ck_assert_str_eq(schema.ops[0].name, "a");
    ck_assert_str_eq(schema.ops[1].c_name, "hob_z");
    ck_assert_str_eq(schema.ops[1].family, "f");
    gen_schema_release(&schema);
}
END_TEST

/* ---- extensions ---- */

#define HEAD                                                                   \
    "{\"manifest_version\": 1, \"id\": \"demo\", \"version\": \"1.0.0\",\n"    \
    "\"kind\": \"extension\", \"namespace\": \"demo\",\n"
#define EXT(ops) HEAD "\"ops\": [\n" ops "]}"
#define SQUARE(sig, backends, more)                                            \
    "{\"op\": \"square\", \"signature\": \"" sig "\", \"infer\": \"same\",\n"  \
    "\"doc\": \"d\", \"backends\": " backends ",\n" more "}"
#define IMPL(selector, impl)                                                   \
    EXT(SQUARE("(x: Float, n: Int) -> x", "[\"" selector "\"]",                \
               "\"implementations\": {\"" selector "\": " impl "}"))

static const struct bad bad_manifests[] = {
    {"{}", "1:1: field \"id\" is missing"},
    {"{\"id\": \"demo\", \"version\": \"1\", \"kind\": \"backend\"}",
     "1:40: /kind: \"extension\" expected, found \"backend\""},
    {"{\"id\": \"demo\", \"version\": \"1\", \"kind\": \"extension\",\n"
     "\"namespace\": \"hob\"}",
     "2:14: /namespace: \"hob\" is no namespace"},
    {HEAD "\"opz\": []}", "3:8: /opz: unknown key \"opz\"; \"ops\" is meant?"},
    {HEAD "\"name\": \"n\"}", "1:1: neither \"ops\" nor \"implements\""},
    {HEAD "\"types\": {\"Config\": {}}}",
     "3:21: /types/Config: a type is either"},
    {HEAD "\"instance\": 1}", "3:13: /instance: true or false expected"},
    {EXT(SQUARE(X, "[]", "\"id\": 1")), "6:7: /ops/0/id: unknown key"},
    {EXT(SQUARE(X, "[]", "\"body\": true")),
     "5:25: /ops/0/backends: the op lists no backend"},
    {EXT(SQUARE(X, "\"flex\"", "\"body\": true")),
     "5:25: /ops/0/backends: array expected, found string"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\"}"),
     "4:1: /ops/0: field \"backends\" is missing"},
    {EXT(SQUARE(X, "[\"flex\", \"record\"]", "\"body\": false")),
     "5:26: /ops/0/backends/0: \"square\" lists \"flex\", but has no body and "
     "no implementation for it"},
    {EXT(SQUARE(X, "[\"FLEX\"]", "\"body\": true")),
     "5:26: /ops/0/backends/0: \"FLEX\" is no selector"},
    {EXT(SQUARE(X, "[{\"when\": \"plugin:x\"}]", "\"body\": true")),
     "5:26: /ops/0/backends/0: field \"selector\" is missing"},
    {EXT(SQUARE(X, "[{\"selector\": \"cube\", \"when\": \"cuda\"}]",
                "\"body\": true")),
     "5:55: /ops/0/backends/0/when: \"cuda\" is no condition"},
    {EXT(SQUARE(X, "[\"flex\"]",
                "\"body\": true, \"implementations\": {\"cube\": "
                "{\"kernel\": true}}")),
     "6:43: /ops/0/implementations/cube: \"cube\" is implemented, but not "
     "listed"},
    {EXT(SQUARE("(x: Config) -> f32", "[\"flex\"]", "\"body\": true")),
     "4:36: /ops/0/signature: no such type"},
    {EXT(SQUARE(X, "[\"flex\", \"flex\"]", "\"body\": true")),
     "5:34: /ops/0/backends/1: \"flex\" is listed twice"},
    {EXT(SQUARE(X,
                "[\"flex\", {\"selector\": \"flex\", \"when\": "
                "\"plugin:a\"}]",
                "\"body\": true")),
     "5:34: /ops/0/backends/1: \"flex\" is listed twice"},
    {EXT(SQUARE(X, "[{\"selector\": \"cube\", \"when\": \"feature:cuda\"}]",
                "\"body\": true")),
     "5:55: /ops/0/backends/0/when: there is no feature \"cuda\": declare it, "
     "as in \"features\": {\"cuda\": false}"},
    {EXT(SQUARE(X, "[{\"selector\": \"cube\", \"when\": \"plugin:\"}]",
                "\"body\": true")),
     "5:55: /ops/0/backends/0/when: \"plugin:\" is no condition"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"uses\": [\"sqare\"]")),
     "6:24: /ops/0/uses/0: there is no built-in op \"sqare\"; \"square\" is "
     "meant?"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"fuse\": \"reduce\"")),
     "6:23: /ops/0/fuse: \"reduce\" is a promise about loops"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"fuse\": \"lazy\"")),
     "6:23: /ops/0/fuse: \"lazy\" is no fusion rule"},
    {EXT(SQUARE(X, "[\"flex\"]",
                "\"fuse\": \"inline\", \"implementations\": {\"flex\": "
                "{\"kernel\": true}}")),
     "6:9: /ops/0/fuse: \"inline\" fuses the body, and there is none"},
    {EXT(SQUARE(X, "[\"flex\", \"fusion\"]",
                "\"body\": true, \"fuse\": \"inline\",\n"
                "\"implementations\": {\"fusion\": {\"layer\": true}}")),
     "6:23: /ops/0/fuse: an op has one rule for fusion"},
    {EXT(SQUARE(X, "[\"flex\", \"fusion\"]",
                "\"body\": true,\n"
                "\"implementations\": {\"fusion\": {\"kernel\": true}}")),
     "7:31: /ops/0/implementations/fusion: fusion is a decorator"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X "\", \"doc\": \"d\",\n"
         "\"body\": true, \"backends\": [\"flex\"], \"dynamic\": true,\n"
         "\"fuse\": \"opaque\"}"),
     "6:9: /ops/0/fuse: \"opaque\" needs to know the sizes"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X "\", \"doc\": \"d\",\n"
         "\"body\": true, \"backends\": [\"flex\"]}"),
     "4:1: /ops/0: field \"infer\" is missing: sizes of results are known"},
    {EXT(SQUARE("(n: i64) -> f32", "[\"flex\", \"cube-cuda\"]",
                "\"body\": true")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, and nothing "
     "else says on which backend it runs: list exactly one"},
    {EXT(SQUARE("(n: i64) -> f32", "[\"*\"]", "\"body\": true")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, and nothing"},
    {EXT(SQUARE("(n: i64) -> f32", "[\"cube\"]", "\"body\": true")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, and nothing"},
    {EXT(SQUARE("(n: i64) -> f32", "[\"mine\"]",
                "\"implementations\": {\"mine\": {\"layer\": true}}")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, and nothing"},
    {EXT(SQUARE("(n: i64) -> f32", "[\"flex\", \"autodiff\"]",
                "\"body\": true")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, so autodiff "
     "has nothing to track"},
    {EXT(SQUARE("(d: device?) -> f32", "[\"*\"]", "\"body\": true")),
     "5:25: /ops/0/backends: \"square\" has no tensor parameter, and nothing"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"random\": true")),
     "4:1: /ops/0: a random op ends in"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"consumes\": [\"y\"]")),
     "6:28: /ops/0/consumes/0: there is no parameter \"y\""},
    {EXT(SQUARE("(x: Num, n: i64) -> x", "[\"flex\"]",
                "\"body\": true, \"consumes\": [1]")),
     "6:28: /ops/0/consumes/0: parameter 1 is no tensor"},
    {EXT(SQUARE("(x: Num, n: i64) -> x", "[\"flex\"]",
                "\"body\": true, \"consumes\": [\"n\"]")),
     "6:28: /ops/0/consumes/0: \"n\" is no tensor and has none"},
    {EXT(SQUARE(X, "[\"flex\"]",
                "\"body\": true, \"aliases\": [[\"y\", \"x\"]]")),
     "6:28: /ops/0/aliases/0/0: no result that is a tensor is called \"y\""},
    {EXT(SQUARE("(xs: [Num]) -> f32", "[\"flex\"]",
                "\"body\": true, \"aliases\": [[0, \"xs\"]]")),
     "6:31: /ops/0/aliases/0/1: \"xs\" is a list"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"capture\": 1")),
     "6:26: /ops/0/capture: true or false expected"},
    {EXT(SQUARE(X, "[\"flex\"]", "\"body\": true, \"quantized\": \"all\"")),
     "6:28: /ops/0/quantized: \"all\" is no rule for quantized arguments"},
    {EXT(SQUARE("(x: Float) -> x", "[\"flex\"]",
                "\"body\": true, \"quantized\": \"view\"")),
     "6:28: /ops/0/quantized: such an op runs on codes, which are i8: its "
     "first parameter must be a tensor that can be Int: Num or Any"},
    {EXT(SQUARE(X, "[\"flex\"]",
                "\"body\": true, \"uses\": [\"mul\", \"demo.cube\"]")),
     "6:31: /ops/0/uses/1: there is no op \"demo.cube\""},
    {EXT(SQUARE(X, "[\"flex\"]",
                "\"body\": true, \"uses\": [\"mul\", "
                "\"demo.square\"]")),
     "6:23: /ops/0/uses: the bodies use each other in a circle: demo.square "
     "-> demo.square"},
    {IMPL("flex", "{}"), "6:29: /ops/0/implementations/flex: \"kernel\": true"},
    {IMPL("flex", "true"),
     "6:29: /ops/0/implementations/flex: object expected"},
    {IMPL("flex", "{\"kernel\": true, \"speed\": 1}"),
     "6:55: /ops/0/implementations/flex/speed: unknown key"},
    {IMPL("flex", "{\"backward\": {}}"),
     "6:29: /ops/0/implementations/flex: a \"backward\" belongs to"},
    {IMPL("autodiff", "{\"kernel\": true}"),
     "6:33: /ops/0/implementations/autodiff: autodiff computes nothing"},
    {IMPL("autodiff", "{\"kernel\": true, \"backward\": {}}"),
     "6:33: /ops/0/implementations/autodiff: a selector is a backend"},
    {IMPL("autodiff", "{\"backward\": {}, \"prepare\": true}"),
     "6:33: /ops/0/implementations/autodiff: \"prepare\", \"contiguous\""},
    {IMPL("autodiff", "{\"backward\": {\"save\": [\"y\"]}}"),
     "6:56: /ops/0/implementations/autodiff/backward/save/0: there is no "
     "parameter \"y\""},
    {IMPL("autodiff", "{\"backward\": {\"save_for\": {\"x\": [1]}}}"),
     "6:66: /ops/0/implementations/autodiff/backward/save_for/x/0: string"},
    {IMPL("autodiff", "{\"backward\": {\"save_for\": {\"y\": []}}}"),
     "6:65: /ops/0/implementations/autodiff/backward/save_for/y: there is no "
     "parameter \"y\""},
    {IMPL("autodiff", "{\"backward\": {\"save\": [], \"save_for\": {}}}"),
     "6:71: /ops/0/implementations/autodiff/backward/save_for: either"},
    {IMPL("autodiff", "{\"backward\": {\"save_results\": [1]}}"),
     "6:64: /ops/0/implementations/autodiff/backward/save_results/0: 1 is not "
     "in 0..0"},
    {IMPL("flex", "{\"kernel\": true, \"dtypes\": []}"),
     "6:56: /ops/0/implementations/flex/dtypes: dtypes expected"},
    {IMPL("flex", "{\"kernel\": true, \"dtypes\": [\"f31\"]}"),
     "6:57: /ops/0/implementations/flex/dtypes/0: there is no dtype \"f31\""},
    {IMPL("flex", "{\"kernel\": true, \"dtypes\": [\"i32\"]}"),
     "6:56: /ops/0/implementations/flex/dtypes: none of them is a dtype of "
     "\"x: Float\""},
    {IMPL("flex", "{\"kernel\": true, \"dtypes\": [[\"f32\"]]}"),
     "6:56: /ops/0/implementations/flex/dtypes: dtypes expected, or one list "
     "of them for each of the 2 tensor parameters"},
    {IMPL("flex", "{\"kernel\": true, \"dtypes\": [[\"f32\"], [\"f32\"]]}"),
     "6:66: /ops/0/implementations/flex/dtypes/1: none of them is a dtype of "
     "\"n: Int\""},
    {IMPL("flex", "{\"kernel\": true, \"keep\": true}"),
     "6:54: /ops/0/implementations/flex/keep: \"keep\" keeps what "
     "\"prepare\" returns"},
    {HEAD "\"implements\": [\n{\"op\": \"ad\", \"selector\": \"flex\", "
          "\"signature\": \"" X "\", \"kernel\": true}]}",
     "4:8: /implements/0/op: there is no built-in op \"ad\"; \"add\" is "
     "meant?"},
    {HEAD "\"implements\": [\n{\"op\": \"add\", \"selector\": \"flex\"}]}",
     "4:1: /implements/0: field \"signature\" is missing"},
    {HEAD "\"implements\": [\n{\"op\": \"add\", \"selector\": \"a-b\", "
          "\"signature\": \"" X "\", \"kernel\": true},\n"
          "{\"op\": \"add\", \"selector\": \"a_b\", \"signature\": \"" X
          "\", \"kernel\": true}]}",
     "5:1: /implements/1: add for \"a_b\" and add for \"a-b\" get one name"},
    {EXT("{\"op\": \"open\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]}"),
     "4:1: /ops/0: demo.open gets the name demo_open in C, and the table of"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]},\n{\"op\": \"a_unpack\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]}"),
     "5:1: /ops/1: demo.a_unpack gets the name demo_a_unpack in C, and demo.a"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]},\n{\"op\": \"a_body\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]}"),
     "5:1: /ops/1: demo.a_body and a function of demo.a get one name in C, "
     "demo_a_body"},
};

/* ---- types ---- */

#define TYPED(types, sig)                                                      \
    HEAD "\"types\": {\n" types "},\n\"ops\": [\n" SQUARE(                     \
        sig, "[\"flex\", \"autodiff\"]", "\"body\": true") "]}"
#define BOXES "\"Boxes\": {\"struct\": {\"coords\": \"Float\", \"n\": \"i64\"}}"
#define WITH_BOXES(impls)                                                      \
    HEAD "\"types\": {" BOXES "},\n\"ops\": [\n" SQUARE(                       \
        "(b: Boxes) -> Boxes", "[\"flex\", \"autodiff\"]",                     \
        "\"body\": true, \"implementations\": {" impls "}") "]}"

static const struct bad bad_types[] = {
    {TYPED("\"E\": {\"enum\": {\"RowA\": null, \"Row_a\": null}}",
           "(e: E, x: Num) -> x"),
     "4:6: /types/E: variants \"RowA\" and \"Row_a\" get one name in C"},
    {TYPED("\"RowPair\": {\"struct\": {\"x\": \"Int\"}},\n"
           "\"Row_pair\": {\"struct\": {\"x\": \"Int\"}}",
           "(e: RowPair) -> f32"),
     "5:13: /types/Row_pair: Row_pair gets the name demo_row_pair in C, and "
     "RowPair too"},
    {TYPED("\"Square\": {\"enum\": {\"ArgE\": null}}",
           "(e: Square, x: Num) -> x"),
     "6:1: /ops/0: demo.square gets the name DEMO_SQUARE_ARG_E in C, and "
     "Square too"},
    {TYPED("\"S\": {\"struct\": {\"x\": \"[i64]\", \"x_count\": \"i64\"}}",
           "(s: S, x: Num) -> x"),
     "4:6: /types/S: fields \"x\" and \"x_count\" get one name"},
    {TYPED("\"S\": {\"struct\": {\"new\": \"Int\", \"new_\": \"i64\"}}",
           "(s: S, x: Num) -> x"),
     "4:6: /types/S: fields \"new\" and \"new_\" get one name"},
    {TYPED("\"E\": {\"enum\": {\"New\": \"Int\", \"New_\": \"Int\"}}",
           "(e: E, x: Num) -> x"),
     "4:6: /types/E: variants \"New\" and \"New_\" get one name"},
    {TYPED("\"E\": {\"enum\": {\"Row\": null}}",
           "(e: E, DEMO_E_ROW: Num) -> f32"),
     "6:31: /ops/0/signature: a parameter or result gets the name DEMO_E_ROW "
     "in C, and something of E too"},
    {TYPED(BOXES, "(b: Boxes?) -> f32"),
     "6:36: /ops/0/signature: an argument of an extension type is always"},
    {TYPED(BOXES, "(b: Boxes, c: Box) -> f32"),
     "6:46: /ops/0/signature: no such type"},
    {TYPED(BOXES, "(b: Boxes, b_n: i64) -> f32"),
     "6:31: /ops/0/signature: two parameters, results or fields get the name "
     "b_n in struct demo_square_call"},
    {TYPED(BOXES, "(x: Float, out_n: i64) -> Boxes"),
     "6:31: /ops/0/signature: two parameters, results or fields get the name "
     "out_n in struct demo_square_call"},
    {WITH_BOXES("\"autodiff\": {\"backward\": {\"save\": [\"b.n\"]}}"),
     "7:70: /ops/0/implementations/autodiff/backward/save/0: \"b.n\" is no "
     "tensor and has none"},
    {WITH_BOXES("\"autodiff\": {\"backward\": {\"save\": [\"b.coord\"]}}"),
     "7:70: /ops/0/implementations/autodiff/backward/save/0: there is no "
     "parameter \"b.coord\""},
    {WITH_BOXES("\"autodiff\": {\"backward\": {\"save_results\": [\"n\"]}}"),
     "7:78: /ops/0/implementations/autodiff/backward/save_results/0: no result "
     "that is a tensor is called \"n\""},
    {WITH_BOXES("\"flex\": {\"kernel\": true, \"dtypes\": [[\"f32\"], "
                "[\"i32\"]]}"),
     "7:70: /ops/0/implementations/flex/dtypes: dtypes expected, or one list "
     "of them for each of the 1 tensor parameters"},
};

START_TEST(test_generator_refuses_types)
{
    refuse(bad_types[_i].text, true, bad_types[_i].expected);
}
END_TEST

START_TEST(test_generator_knows_fields)
{
    struct gen_schema schema;
    hob_error error = HOB_ERROR_INIT;
    const struct gen_op *op;

    write_text(HEAD
               "\"types\": {" BOXES
               ", \"Pair\": {\"struct\": {\"l\": \"Boxes\", \"r\": "
               "\"Boxes\"}}},\n\"ops\": [\n" SQUARE(
                   "(p: Pair, x: Float) -> Pair", "[\"flex\", \"autodiff\"]",
                   "\"body\": true, \"consumes\": [\"p.r\"], \"aliases\": "
                   "[[\"r.coords\", \"p.l.coords\"]], \"implementations\": "
                   "{\"autodiff\": {\"backward\": {\"save_for\": {\"p\": "
                   "[\"p.r\", \"x\"]}, \"save_results\": [\"l\", 1]}}}") "]}");
    ck_assert_msg(!read_schema(&schema, true, &error), "%s", error.message);
    op = &schema.ops[0];
    ck_assert_str_eq(op->flat_text,
                     "(p.l.coords: Float, p.l.n: i64, p.r.coords: Float, "
                     "p.r.n: i64, x: Float) -> (l.coords: Float, r.coords: "
                     "Float, l.n: value(i64), r.n: value(i64))");
    ck_assert_uint_eq(op->consumes, 4);
    ck_assert_uint_eq(op->alias_count, 1);
    ck_assert_uint_eq(op->aliases[0].result, 1);
    ck_assert_uint_eq(op->aliases[0].param, 0);
    ck_assert_uint_eq(op->impls[0].save_args, 0x14);
    ck_assert_uint_eq(op->impls[0].save_for[0], 0x14);
    ck_assert_uint_eq(op->impls[0].save_for[1], 0);
    ck_assert_uint_eq(op->impls[0].save_for[2], 0x14);
    ck_assert_uint_eq(op->impls[0].save_rets, 3);
    gen_schema_release(&schema);
}
END_TEST

/* ---- infer ---- */

#define SIG                                                                    \
    "(x: Float, k: i64, y: Any?, size: [i64], mode: enum(both, left), f: "     \
    "f64, s: str, dt: dtype, n: i64?, b: bool)"
#define INFER_AS(result, json)                                                 \
    EXT("{\"op\": \"e\", \"signature\": \"" SIG " -> " result                  \
        "\", \"doc\": \"d\",\n\"body\": true, \"backends\": [\"flex\"], "      \
        "\"infer\":\n" json "}")
#define INFER(json) INFER_AS("x", json)
/* One size; it begins in column 12. */
#define SIZE(expression) INFER("{\"shape\": [\"" expression "\"]}")
#define AT(column) "6:" column ": /ops/0/infer/shape/0: "

static const struct bad bad_infers[] = {
    {INFER("[]"), "6:1: /ops/0/infer: string expected, found array"},
    {INFER("{}"), "6:1: /ops/0/infer: field \"shape\" is missing"},
    {INFER("{\"shapes\": []}"),
     "6:12: /ops/0/infer/shapes: unknown key \"shapes\"; \"shape\" is meant?"},
    {INFER("{\"shape\": 3}"),
     "6:11: /ops/0/infer/shape: a parameter, \"broadcast(a, b)\" or an array"},
    {INFER("{\"shape\": [-1]}"), "6:12: /ops/0/infer/shape/0: -1 is not in"},
    {INFER("{\"shape\": [1.5]}"), "6:12: /ops/0/infer/shape/0: integer"},
    {INFER("{\"shape\": [true]}"), "6:12: /ops/0/infer/shape/0: string"},
    {INFER("{\"shape\": [1, 1, 1, 1, 1, 1, 1, 1, 1]}"),
     "6:11: /ops/0/infer/shape: a tensor has at most 8 dimensions"},
    {INFER("{\"shape\": \"z\"}"),
     "6:12: /ops/0/infer/shape: there is no parameter and no \"let\" called z"},
    {INFER("{\"shape\": \"k\"}"), "6:12: /ops/0/infer/shape: k has no shape"},
    {INFER("{\"shape\": \"x[0]\"}"),
     "6:13: /ops/0/infer/shape: a shape of one dimension is an array of one"},
    {INFER("{\"shape\": \"3\"}"), "6:12: /ops/0/infer/shape: a parameter, b"},
    {INFER("{\"shape\": \"broadcast(x, k)\"}"),
     "6:25: /ops/0/infer/shape: k is no tensor"},
    {INFER("{\"shape\": \"broadcast(x\"}"),
     "6:23: /ops/0/infer/shape: ')' expected after the tensors"},
    {INFER("{\"shape\": \"broadcast()\"}"),
     "6:22: /ops/0/infer/shape: the name of a tensor parameter expected"},
    {SIZE(""), AT("13") "the expression ends too early"},
    {SIZE("x"), AT("13") "x is no number: x[0] is its first size"},
    {SIZE("s"), AT("13") "s is no number that shapes can depend on"},
    {SIZE("f"), AT("13") "an integer expected, this is an f64"},
    {SIZE("b"), AT("13") "an integer expected, this is true or false"},
    {SIZE("mode"), AT("13") "an integer expected, this is an enum"},
    {SIZE("true"), AT("13") "an integer expected, this is true or false"},
    {SIZE("siz[0]"),
     AT("13") "there is no parameter and no \"let\" called siz; "
              "size is meant?"},
    {SIZE("k +"), AT("16") "the expression ends too early"},
    {SIZE("k k"), AT("15") "nothing expected here"},
    {SIZE("k + true"), AT("17") "an integer expected, this is true"},
    {SIZE("true + k"), AT("13") "an integer expected, this is true"},
    {SIZE("k * f"), AT("17") "an integer expected, this is an f64"},
    {SIZE("-b"), AT("13") "an integer expected, this is true"},
    {SIZE("(k"), AT("15") "')' expected to close the bracket"},
    {SIZE("x[k]"), AT("15") "an integer expected; a slice stands alone"},
    {SIZE("x[0"), AT("16") "']' expected after the index"},
    {SIZE("x[]"), AT("15") "an integer expected"},
    {SIZE("k[0]"), AT("13") "k has no dimensions and no items"},
    {SIZE("x[99999999999999999999]"), AT("15") "this integer is out of range"},
    {SIZE("9223372036854775808"), AT("13") "this integer is out of range"},
    {SIZE("x[1:] + 1"), AT("19") "nothing expected here"},
    {SIZE("k[1:]"), AT("13") "k has no dimensions and no items"},
    {SIZE("1 + x[1:]"), AT("13") "the name of a parameter expected before a"},
    {SIZE("x[a:]"), AT("15") "':' expected in a slice"},
    {SIZE("rank(k)"), AT("18") "k is no tensor"},
    {SIZE("rank(3)"), AT("18") "the name of a parameter expected"},
    {SIZE("rank(x"), AT("19") "')' expected after the name"},
    {SIZE("len(x)"), AT("17") "x is no list"},
    {SIZE("has(x)"), AT("17") "x is always there"},
    {SIZE("has(n)"), AT("13") "an integer expected, this is true or false"},
    {SIZE("size(x)"), AT("13") "there is no function size: there are rank"},
    {SIZE("min(k)"), AT("18") "',' expected after the first number"},
    {SIZE("min(k, b)"), AT("20") "an integer expected, this is true"},
    {SIZE("min(k, 1, 2)"), AT("21") "')' expected after the second number"},
    {SIZE("if(k, 1, 2)"),
     AT("16") "true or false expected, this is an integer"},
    {SIZE("if(b, 1)"), AT("20") "',' expected after the first value"},
    {SIZE("if(b, 1, b)"), AT("22") "an integer here and true or false there"},
    {SIZE("k < 1"), AT("13") "an integer expected, this is true or false"},
    {SIZE("if(b < b, 1, 2)"), AT("18") "only numbers are smaller"},
    {SIZE("if(k == b, 1, 2)"), AT("21") "an integer here and true or false"},
    {SIZE("if(mode == right, 1, 2)"),
     AT("24") "there is no enumerator right: there are both left"},
    {SIZE("if(left == mode, 1, 2)"), AT("16") "there is no parameter and no"},
    {SIZE("if(not k, 1, 2)"), AT("20") "true or false expected, this is an i"},
    {SIZE("if(b and k, 1, 2)"),
     AT("22") "true or false expected, this is an i"},
    {SIZE("if(k or b, 1, 2)"), AT("16") "true or false expected, this is an i"},
    {SIZE("1.5"), AT("13") "an integer expected, this is an f64"},
    {SIZE("(1.5.2)"), AT("17") "')' expected to close the bracket"},
    {SIZE("1e"), AT("13") "this is no number, or it is out of range"},
    {SIZE("k # 1"), AT("15") "nothing expected here"},
    {INFER("{\"shape\": \"x\", \"let\": {\"k\": \"1\"}}"),
     "6:29: /ops/0/infer/let/k: \"k\" is a parameter: take another name"},
    {INFER("{\"shape\": \"x\", \"let\": {\"a.b\": \"1\"}}"),
     "6:31: /ops/0/infer/let/a.b: \"a.b\" is no name"},
    {INFER("{\"shape\": \"x\", \"let\": {\"not\": \"1\"}}"),
     "6:31: /ops/0/infer/let/not: \"not\" is no name"},
    {INFER("{\"shape\": \"x\", \"let\": {\"m\": \"m2\", \"m2\": \"1\"}}"),
     "6:30: /ops/0/infer/let/m: there is no parameter and no \"let\" called "
     "m2"},
    {INFER("{\"shape\": \"x\", \"let\": {\"m\": \"mode\"}}"),
     "6:30: /ops/0/infer/let/m: an enum cannot be kept: compare it"},
    {INFER("{\"shape\": \"x\", \"where\": [[\"b\"]]}"),
     "6:26: /ops/0/infer/where/0: [condition, what to say"},
    {INFER("{\"shape\": \"x\", \"where\": [[\"k\", \"m\"]]}"),
     "6:28: /ops/0/infer/where/0/0: true or false expected"},
    {INFER("{\"shape\": \"x\", \"where\": [[\"b\", 1]]}"),
     "6:32: /ops/0/infer/where/0/1: string expected"},
    {INFER("{\"shape\": \"x\", \"dtype\": \"f32\"}"),
     "6:25: /ops/0/infer/dtype: the signature gives the dtype, that of \"x\""},
    {INFER("{\"shape\": \"x\", \"dtype\": \"y\"}"),
     "6:25: /ops/0/infer/dtype: the signature gives the dtype"},
    {INFER_AS("Float", "{\"shape\": \"x\"}"),
     "6:1: /ops/0/infer: the signature says \"Float\" only: add \"dtype\""},
    {INFER_AS("Float", "{\"shape\": \"x\", \"dtype\": \"f31\"}"),
     "6:25: /ops/0/infer/dtype: \"f31\" is no tensor parameter"},
    {INFER_AS("Float", "{\"shape\": \"x\", \"dtype\": \"k\"}"),
     "6:25: /ops/0/infer/dtype: \"k\" is neither a tensor nor a dtype"},
    {INFER_AS("Float", "{\"shape\": \"x\", \"dtype\": \"i32\"}"),
     "6:25: /ops/0/infer/dtype: it need not be of the kind \"Float\""},
    {INFER_AS("Float", "{\"shape\": \"x\", \"dtype\": \"y\"}"),
     "6:25: /ops/0/infer/dtype: it need not be of the kind \"Float\""},
    {INFER_AS("f32", "{\"shape\": \"x\", \"dtype\": \"f64\"}"),
     "6:25: /ops/0/infer/dtype: the signature gives the dtype"},
    {INFER_AS("[x]", "{\"shape\": \"x\"}"),
     "6:1: /ops/0/infer: how long a list of results is"},
    {INFER_AS("(x, x)", "{\"shape\": \"x\"}"),
     "6:1: /ops/0/infer: there are several results"},
    {INFER_AS("(x, x)", "{\"results\": [{\"shape\": \"x\"}]}"),
     "6:13: /ops/0/infer/results: there are 2 results, and 1 are given"},
    {INFER_AS("(x, x)", "{\"results\": {\"0\": {\"shape\": \"x\"}}}"),
     "6:13: /ops/0/infer/results: result \"out_1\" is missing"},
    {INFER_AS("(a: x, x)", "{\"results\": {\"b\": {\"shape\": \"x\"}}}"),
     "6:19: /ops/0/infer/results/b: there is no result \"b\": there are a 1"},
    {SIZE("if(k = 0, 1, 2)"), AT("18") "\"==\" compares"},
    {SIZE("f + 1"), AT("13") "an integer expected, this is an f64: arithmetic "
                             "is for integers"},
    {SIZE("if(mode == up, 1, 2)"),
     AT("24") "there is no enumerator up: there are both left"},
    {INFER_AS("(x, value(f32))", "{\"shape\": \"x\"}"),
     "4:144: /ops/0/signature: a plain result is value(f64)"},
    {INFER_AS("(a: x, x)", "{\"results\": 1}"),
     "6:13: /ops/0/infer/results: object expected"},
    {INFER_AS("(a: x, x)", "{\"results\": [1, 2]}"),
     "6:14: /ops/0/infer/results/0: object expected"},
    {INFER("{\"shape\": \"x\", \"results\": {}}"),
     "6:1: /ops/0/infer: either \"results\", or"},
    {INFER("{\"shape\": \"x\", \"when\": \"b\"}"),
     "6:24: /ops/0/infer/when: the signature does not say '?'"},
    {INFER_AS("x?", "{\"shape\": \"x\"}"),
     "6:1: /ops/0/infer: this result is optional: say {\"when\": condition"},
    {INFER_AS("(x, value(i64))", "{\"results\": [{\"shape\": \"x\"}, \"f\"]}"),
     "6:31: /ops/0/infer/results/1: an integer expected, this is an f64"},
    {INFER_AS("(x, value(i64))", "{\"results\": [{\"shape\": \"x\"}, {}]}"),
     "6:30: /ops/0/infer/results/1: field \"value\" is missing"},
    {INFER_AS("(x, value(enum(p, q)))",
              "{\"results\": [{\"shape\": \"x\"}, \"mode\"]}"),
     "6:31: /ops/0/infer/results/1: this is another enum's"},
    {INFER_AS("(x, value(dtype))",
              "{\"results\": [{\"shape\": \"x\"}, \"k\"]}"),
     "6:30: /ops/0/infer/results/1: \"k\" is neither a tensor nor a dtype"},
};

START_TEST(test_generator_refuses_infer)
{
    refuse(bad_infers[_i].text, true, bad_infers[_i].expected);
}
END_TEST

/* Brackets and signs nest, but not without end. */
START_TEST(test_generator_bounds_expressions)
{
    static const char *const parts[] = {"(", "-", "if(b, ", "not "};
    char text[8192];

    for (int i = 0; i < 4; i++) {
        (void)strcpy(text, INFER("{\"shape\": [\""));
        text[strlen(text) - 3] = '\0'; /* "}]}" */
        for (int k = 0; k < 1000; k++)
            (void)strcat(text, parts[i]);
        (void)strcat(text, "1\"]}}]}");
        refuse(text, true, "6:");
    }
}
END_TEST

START_TEST(test_generator_refuses_manifest)
{
    refuse(bad_manifests[_i].text, true, bad_manifests[_i].expected);
}
END_TEST

START_TEST(test_generator_reads_implementations)
{
    struct gen_schema schema;
    hob_error error = HOB_ERROR_INIT;
    const struct gen_impl *impl;

    write_text(EXT(SQUARE("(x: Num, y: Float, n: Int) -> x",
                          "[\"flex\", \"autodiff\"]",
                          "\"implementations\": {\"flex\": {\"kernel\": true, "
                          "\"dtypes\": [\"f32\", \"i32\"]}, \"autodiff\": "
                          "{\"backward\": {\"save_for\": {\"x\": [\"y\"]}, "
                          "\"save_results\": [0], \"recompute\": true}}}")));
    ck_assert_hob_ok(read_schema(&schema, true, &error));
    ck_assert_str_eq(schema.ops[0].full_name, "demo.square");
    ck_assert_uint_eq(schema.ops[0].impl_count, 2);
    impl = &schema.ops[0].impls[0];
    ck_assert_uint_eq(impl->dtype_count, 3);
    ck_assert_uint_eq(impl->dtypes[0], HOB_DTYPE_BIT(HOB_DTYPE_F32) |
                                           HOB_DTYPE_BIT(HOB_DTYPE_I32));
    ck_assert_uint_eq(impl->dtypes[1], HOB_DTYPE_BIT(HOB_DTYPE_F32));
    ck_assert_uint_eq(impl->dtypes[2], HOB_MASK_INT);
    impl = &schema.ops[0].impls[1];
    ck_assert(impl->backward && impl->recompute && impl->has_save_for);
    ck_assert_uint_eq(impl->save_args, 2);
    ck_assert_uint_eq(impl->save_for[0], 2);
    ck_assert_uint_eq(impl->save_rets, 1);
    gen_schema_release(&schema);
}
END_TEST

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("generator");
    TCase *tc = tcase_create("generator");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_generator_refuses_family, 0,
                        COUNT_OF(bad_families));
    tcase_add_test(tc, test_generator_sorts_by_number);
    tcase_add_loop_test(tc, test_generator_refuses_manifest, 0,
                        COUNT_OF(bad_manifests));
    tcase_add_test(tc, test_generator_reads_implementations);
    tcase_add_loop_test(tc, test_generator_refuses_types, 0,
                        COUNT_OF(bad_types));
    tcase_add_test(tc, test_generator_knows_fields);
    tcase_add_loop_test(tc, test_generator_refuses_infer, 0,
                        COUNT_OF(bad_infers));
    tcase_add_test(tc, test_generator_bounds_expressions);
    return hob_check_main(suite);
}
