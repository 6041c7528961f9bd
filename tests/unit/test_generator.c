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
    {FAMILY(OP("a", "1", "(x: Num) -> z", "")),
     "4:28: /ops/0/signature: no parameter, dtype or kind"},
    {FAMILY(OP("a", "1", "(x: Str\\u003f)", "")),
     "4:15: /ops/0/signature: character 10 of the string: '->'"},
    {FAMILY(OP("a", "1", "(x: Config) -> f32", "")),
     "4:15: /ops/0/signature: parameter \"x\": struct and enum types such as "
     "Config are not supported yet"},
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
     "3:10: /types: struct and enum types are not supported yet"},
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
     "4:31: /ops/0/signature: parameter \"x\": struct and enum types"},
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
    {HEAD "\"implements\": [\n{\"op\": \"add\", \"selector\": \"flex\"}]}",
     "4:1: /implements/0: field \"signature\" is missing"},
    {HEAD "\"implements\": [\n{\"op\": \"add\", \"selector\": \"a-b\", "
          "\"signature\": \"" X "\", \"kernel\": true},\n"
          "{\"op\": \"add\", \"selector\": \"a_b\", \"signature\": \"" X
          "\", \"kernel\": true}]}",
     "5:1: /implements/1: add for \"a_b\" and add for \"a-b\" get one name"},
    {EXT("{\"op\": \"a\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]},\n{\"op\": \"a_body\", \"signature\": \"" X
         "\", \"infer\": \"same\", \"doc\": \"d\", \"body\": true, "
         "\"backends\": [\"*\"]}"),
     "5:1: /ops/1: demo.a_body and a function of demo.a get one name in C, "
     "demo_a_body"},
};

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
    return hob_check_main(suite);
}
