/* SPDX-License-Identifier: Apache-2.0 */
/* Each file in tests/manifests breaks one rule; the message says which. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest.h"
#include "paths.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bad_manifest {
    const char *name;
    enum hob__reason reason;
    const char *message;
} bad_manifests[] = {
    {"top_level_array", HOB__REASON_MANIFEST_FIELD,
     "object expected, found array"},
    {"comment", HOB__REASON_JSON_SYNTAX, "key in double quotes expected"},
    {"trailing_comma", HOB__REASON_JSON_SYNTAX, ":1:15: key in double quotes"},
    {"trailing_text", HOB__REASON_JSON_SYNTAX, "text after the value"},
    {"duplicate_key", HOB__REASON_JSON_DUPLICATE_KEY,
     "/id: this key stands twice"},
    {"bad_utf8", HOB__REASON_JSON_ENCODING, "invalid UTF-8"},
    {"too_deep", HOB__REASON_JSON_DEPTH, "nested too deeply"},
    {"no_version_of_format", HOB__REASON_MANIFEST_FIELD,
     "\"manifest_version\" is missing"},
    {"newer_format", HOB__REASON_MANIFEST_VERSION,
     "manifest_version 2, this Hob reads 1"},
    {"format_not_integer", HOB__REASON_MANIFEST_FIELD,
     "/manifest_version: integer expected, found 1.5"},
    {"no_id", HOB__REASON_MANIFEST_FIELD, "\"id\" is missing"},
    {"id_upper_case", HOB__REASON_MANIFEST_FIELD, "\"Mock\" is no id"},
    {"id_too_short", HOB__REASON_MANIFEST_FIELD, "\"m\" is no id"},
    {"no_version", HOB__REASON_MANIFEST_FIELD, "\"version\" is missing"},
    {"bad_version", HOB__REASON_MANIFEST_FIELD,
     "\"1.0\" is no semantic version"},
    {"no_kind", HOB__REASON_MANIFEST_FIELD, "\"kind\" is missing"},
    {"bad_kind", HOB__REASON_MANIFEST_FIELD,
     "backend, decorator or extension expected, found \"driver\""},
    {"no_abi", HOB__REASON_MANIFEST_FIELD,
     "\"abi\" is missing: add \"abi\": {\"major\": 0, "
     "\"required_minor\": "},
    {"abi_not_object", HOB__REASON_MANIFEST_FIELD,
     "/abi: object expected, found string"},
    {"abi_no_minor", HOB__REASON_MANIFEST_FIELD,
     "\"required_minor\" is missing"},
    {"abi_negative", HOB__REASON_MANIFEST_FIELD, "-1 is not in 0..65535"},
    {"abi_minors_swapped", HOB__REASON_MANIFEST_FIELD,
     "required_minor 2 is above built_minor 0"},
    {"no_library", HOB__REASON_MANIFEST_FIELD, "\"library\" is missing"},
    {"library_number", HOB__REASON_MANIFEST_FIELD,
     "path or object by platform expected"},
    {"library_empty", HOB__REASON_BAD_PATH, "the path is empty"},
    {"library_dot", HOB__REASON_BAD_PATH, "names a folder"},
    {"library_slash", HOB__REASON_BAD_PATH, "ends with a slash"},
    {"library_no_drive", HOB__REASON_BAD_PATH, "rooted but names no drive"},
    {"library_system_path", HOB__REASON_BAD_PATH,
     "system: takes the bare name"},
    {"library_nul", HOB__REASON_JSON_SYNTAX, "\\u0000 is not allowed"},
    {"variants_empty", HOB__REASON_MANIFEST_FIELD,
     "array of variants is empty"},
    {"variant_no_path", HOB__REASON_MANIFEST_FIELD,
     "/library/linux/0: \"path\" is missing"},
    {"sha256_short", HOB__REASON_MANIFEST_FIELD,
     "64 lower-case hexadecimal digits expected"},
    {"no_backend", HOB__REASON_MANIFEST_FIELD, "\"backend\" is missing"},
    {"no_selector", HOB__REASON_MANIFEST_FIELD,
     "/backend: \"selector\" is missing"},
    {"bad_selector", HOB__REASON_MANIFEST_FIELD, "\"a b\" is no selector"},
    {"needs_not_array", HOB__REASON_MANIFEST_FIELD,
     "/backend/needs: array expected, found string"},
    {"priority_too_high", HOB__REASON_MANIFEST_FIELD,
     "1001 is not in -1000..1000"},
    {"requires_unknown", HOB__REASON_REQUIRES_UNKNOWN,
     "unknown requirement \"moon\""},
    {"requires_bad_range", HOB__REASON_MANIFEST_FIELD,
     "\"~>1\" is no range of versions"},
    {"no_decorator", HOB__REASON_MANIFEST_FIELD, "\"decorator\" is missing"},
    {"no_unlisted", HOB__REASON_MANIFEST_FIELD, "\"unlisted\" is missing"},
    {"bad_unlisted", HOB__REASON_MANIFEST_FIELD,
     "pass, barrier or refuse expected, found \"ignore\""},
    {"ops_no_namespace", HOB__REASON_MANIFEST_FIELD,
     "ops need a \"namespace\""},
    {"bad_namespace", HOB__REASON_MANIFEST_FIELD, "\"De-mo\" is no namespace"},
    {"op_no_name", HOB__REASON_MANIFEST_FIELD, "/ops/0: \"op\" is missing"},
    {"op_bad_name", HOB__REASON_MANIFEST_FIELD, "\"a.b\" is no name of an op"},
    {"op_no_signature", HOB__REASON_MANIFEST_FIELD,
     "/ops/0: \"signature\" is missing"},
    {"op_no_backends", HOB__REASON_MANIFEST_FIELD,
     "/ops/0: \"backends\" is missing"},
    {"op_empty_backends", HOB__REASON_MANIFEST_FIELD,
     "the op lists no backend"},
    {"op_bad_backend", HOB__REASON_MANIFEST_FIELD, "\"a b\" is no selector"},
    {"op_bad_condition", HOB__REASON_MANIFEST_FIELD,
     "\"moon\" is no condition"},
    {"op_unknown_feature", HOB__REASON_MANIFEST_FIELD,
     "feature \"cuda\" is not declared"},
    {"op_bad_fuse", HOB__REASON_MANIFEST_FIELD, "\"glue\" is no fusion rule"},
    {"op_bad_quantized", HOB__REASON_MANIFEST_FIELD,
     "\"always\" is no rule for quantized arguments"},
    {"op_bad_infer", HOB__REASON_MANIFEST_FIELD,
     "16:16: /ops/0/infer: there is no standard infer function \"nonsense\""},
    {"op_bad_signature", HOB__REASON_MANIFEST_FIELD,
     "15:20: /ops/0/signature: \"(x: Float, x: Int) -> x\", column 12"},
    {"op_infer_misfit", HOB__REASON_MANIFEST_FIELD,
     "\"slice\" does not fit (x: Float) -> x: it needs what (x: Any, starts"},
    {"op_twice", HOB__REASON_MANIFEST_FIELD, "op \"square\" is declared twice"},
    {"feature_not_bool", HOB__REASON_MANIFEST_FIELD,
     "/features/cuda: true or false expected"},
    {"implements_no_selector", HOB__REASON_MANIFEST_FIELD,
     "/implements/0: \"selector\" is missing"},
    {"empty_string", HOB__REASON_MANIFEST_FIELD,
     "/vendor: the string is empty"},
};

static char *read_file(const char *name, size_t *out_size)
{
    const char *source = getenv("HOB_TEST_SRCDIR");
    struct hob_os_stat stat;
    enum hob__reason reason;
    char path[4096], *data = NULL;

    (void)snprintf(path, sizeof(path), "%s/manifests/%s.json",
                   source ? source : ".", name);
    ck_assert_msg(!hob__file_read(hob__os(), path, 1 << 20, &data, out_size,
                                  &stat, &reason, NULL),
                  "%s", path);
    return data;
}

START_TEST(test_manifest_refuses)
{
    const struct bad_manifest *bad = &bad_manifests[_i];
    struct hob__manifest *manifest = (void *)1;
    enum hob__reason reason = HOB__REASON_OK;
    hob_error error = HOB_ERROR_INIT;
    size_t size = 0;
    char *data = read_file(bad->name, &size);

    ck_assert_int_eq(hob__manifest_parse(bad->name, data, size, false,
                                         &manifest, &reason, &error),
                     HOB_ERR_FORMAT);
    ck_assert_ptr_null(manifest);
    ck_assert_msg(strstr(error.message, bad->message), "%s: got \"%s\"",
                  bad->name, error.message);
    ck_assert_msg(!strncmp(error.message, bad->name, strlen(bad->name)) &&
                      error.message[strlen(bad->name)] == ':',
                  "no place in \"%s\"", error.message);
    ck_assert_msg(reason == bad->reason, "%s: got %s", bad->name,
                  hob__reason_name(reason));
    hob_error_release(&error);
    free(data);
}
END_TEST

static struct hob__manifest *parse(const char *text, bool is_static)
{
    struct hob__manifest *manifest = NULL;
    enum hob__reason reason;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_msg(!hob__manifest_parse("m", text, strlen(text), is_static,
                                       &manifest, &reason, &error),
                  "%s", error.message);
    return manifest;
}

START_TEST(test_manifest_reads_a_backend)
{
    struct hob__manifest *m = parse(
        "{\"manifest_version\":1,\"id\":\"cube-cuda\",\"version\":\"1.2.3-rc."
        "1\","
        "\"kind\":\"backend\",\"abi\":{\"major\":1,\"required_minor\":2,"
        "\"built_minor\":5},\"library\":{\"linux-x86_64\":["
        "{\"path\":\"a.so\",\"cpu\":[\"avx512f\"]},{\"path\":\"b.so\"}],"
        "\"windows-x86_64\":\"c.dll\"},\"backend\":{\"selector\":\"cube-cuda\","
        "\"family\":\"cube\",\"runtime\":\"cuda\",\"needs\":[\"libcuda.so.1\"],"
        "\"priority\":100},\"requires\":{\"plugins\":{\"flex\":\">=1.0\"},"
        "\"interfaces\":{\"flex.compute\":1}},\"future\":1,\"x-own\":2}",
        false);

    ck_assert_str_eq(m->id, "cube-cuda");
    ck_assert_uint_eq(m->semver.minor, 2);
    ck_assert_int_eq(m->kind, HOB__KIND_BACKEND);
    ck_assert_uint_eq(m->abi.built_minor, 5);
    ck_assert_uint_eq(m->target_count, 2);
    ck_assert_uint_eq(m->targets[0].variant_count, 2);
    ck_assert_str_eq(m->targets[0].variants[0].cpu.items[0], "avx512f");
    ck_assert_str_eq(m->targets[1].variants[0].path, "c.dll");
    ck_assert_str_eq(hob__manifest_selector_name(m), "cube-cuda");
    ck_assert_str_eq(m->backend.family, "cube");
    ck_assert_str_eq(m->backend.needs.items[0], "libcuda.so.1");
    ck_assert_int_eq(m->backend.priority, 100);
    ck_assert_str_eq(m->needs.plugins[0].range, ">=1.0");
    ck_assert_uint_eq(m->needs.interfaces[0].version, 1);
    ck_assert_uint_eq(m->notes.count, 1);
    ck_assert_ptr_nonnull(strstr(m->notes.items[0], "\"future\""));
    hob__manifest_free(m);
    hob__manifest_free(NULL);
}
END_TEST

START_TEST(test_manifest_reads_an_extension)
{
    struct hob__manifest *m = parse(
        "\xef\xbb\xbf{\"manifest_version\":1,\"id\":\"demo\",\"version\":\"0.1."
        "0\","
        "\"kind\":\"extension\",\"abi\":{\"major\":0,\"required_minor\":2},"
        "\"namespace\":\"demo\",\"features\":{\"cuda\":true},"
        "\"types\":{\"Box\":{\"struct\":{\"at\":\"Float\"}}},"
        "\"ops\":[{\"op\":\"square\",\"signature\":\"(x: Float) -> x\","
        "\"infer\":\"same\",\"body\":true,\"fuse\":\"elementwise\",\"doc\":"
        "\"d\","
        "\"backends\":[\"autodiff\",\"*\",{\"selector\":\"cube\","
        "\"when\":\"feature:cuda\"},{\"selector\":\"cube-cuda\","
        "\"when\":\"plugin:cube-cuda\"}]}],"
        "\"implements\":[{\"op\":\"other.op\",\"selector\":\"flex\"}]}",
        true);
    const struct hob__manifest_op *op = hob__manifest_find_op(m, "demo.square");

    ck_assert_ptr_nonnull(op);
    ck_assert_ptr_eq(op, hob__manifest_find_op(m, "square"));
    ck_assert_ptr_null(hob__manifest_find_op(m, "cube"));
    ck_assert(op->has_body && op->deterministic && !op->dynamic);
    ck_assert_str_eq(op->infer, "same");
    ck_assert_uint_eq(op->selector_count, 4);
    ck_assert_int_eq(op->selectors[0].when, HOB__WHEN_ALWAYS);
    ck_assert_int_eq(op->selectors[2].when, HOB__WHEN_FEATURE);
    ck_assert_str_eq(op->selectors[2].when_name, "cuda");
    ck_assert_int_eq(op->selectors[3].when, HOB__WHEN_PLUGIN);
    ck_assert_uint_eq(m->types.count, 1);
    ck_assert_str_eq(m->types.defs[0]->name, "Box");
    ck_assert_str_eq(m->types.defs[0]->variants[0].fields[0].name, "at");
    ck_assert(m->features[0].enabled);
    ck_assert_str_eq(m->implements[0].op, "other.op");
    ck_assert_ptr_null(hob__manifest_selector_name(m));
    hob__manifest_free(m);
}
END_TEST

START_TEST(test_manifest_reads_a_decorator)
{
    struct hob__manifest *m = parse(
        "{\"manifest_version\":1,\"id\":\"autodiff\",\"version\":\"0.1.0\","
        "\"kind\":\"decorator\",\"abi\":{\"major\":0,\"required_minor\":2},"
        "\"library\":\"autodiff.so\",\"unlisted\":\"refuse\",\"decorator\":{"
        "\"selector\":\"autodiff\",\"options\":{\"checkpoint\":[\"none\","
        "\"balanced\"],\"level\":{\"default\":\"2\",\"doc\":\"d\"}}}}",
        false);

    ck_assert_int_eq(m->decorator.unlisted, HOB__UNLISTED_REFUSE);
    ck_assert_uint_eq(m->decorator.option_count, 2);
    ck_assert_str_eq(m->decorator.options[0].initial, "none");
    ck_assert_str_eq(m->decorator.options[0].values.items[1], "balanced");
    ck_assert_str_eq(m->decorator.options[1].initial, "2");
    ck_assert_ptr_null(m->targets[0].triple);
    hob__manifest_free(m);
}
END_TEST

/* Case 9: an unescaped backslash in a big manifest is an error, no crash. */
START_TEST(test_manifest_big_and_broken)
{
    size_t size = 1000000, i;
    char *text = malloc(size);
    struct hob__manifest *manifest;
    enum hob__reason reason;

    ck_assert_ptr_nonnull(text);
    memset(text, '\\', size);
    text[0] = '"';
    text[1] = 'C';
    for (i = 2; i < size; i += 2)
        text[i] = 'q';
    ck_assert_int_eq(
        hob__manifest_parse("m", text, size, false, &manifest, &reason, NULL),
        HOB_ERR_FORMAT);
    memset(text, '[', size);
    ck_assert_int_eq(
        hob__manifest_parse("m", text, size, false, &manifest, &reason, NULL),
        HOB_ERR_FORMAT);
    ck_assert_int_eq(reason, HOB__REASON_JSON_DEPTH);
    free(text);
}
END_TEST

static const struct range {
    const char *version;
    const char *range;
    bool inside;
} ranges[] = {
    {"1.2.3", ">=1.2 <2", true},
    {"2.0.0", ">=1.2 <2", false},
    {"1.2.3", "1.2.3", true},
    {"1.2.3", "=1.2.4", false},
    {"1.0.0-alpha", "<1.0.0", true},
    {"1.0.0", ">1.0.0-rc.1", true},
    {"0.1.0", "*", true},
    {"1.0.0-alpha.2", ">1.0.0-alpha.1", true},
    {"1.0.0-alpha.beta", ">1.0.0-alpha.9", true},
};

START_TEST(test_manifest_semver_ranges)
{
    struct hob__semver version;
    bool valid = false;

    ck_assert(hob__semver_parse(ranges[_i].version, &version));
    ck_assert_msg(hob__semver_in_range(&version, ranges[_i].range, &valid) ==
                      ranges[_i].inside,
                  "%s in %s", ranges[_i].version, ranges[_i].range);
    ck_assert(valid);
}
END_TEST

START_TEST(test_manifest_semver_refuses)
{
    static const char *const bad[] = {
        "",         "1",      "1.2",    "01.2.3", "1.2.3-",
        "1.2.3-01", "1.2.3+", "1.2.3 ", "v1.2.3", "4294967296.0.0"};
    struct hob__semver version;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!hob__semver_parse(bad[i], &version), "%s", bad[i]);
    ck_assert(hob__semver_parse("1.2.3-a.1+b.01", &version));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tc = tcase_create("manifest");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, test_manifest_refuses, 0,
                        sizeof(bad_manifests) / sizeof(bad_manifests[0]));
    tcase_add_test(tc, test_manifest_reads_a_backend);
    tcase_add_test(tc, test_manifest_reads_an_extension);
    tcase_add_test(tc, test_manifest_reads_a_decorator);
    tcase_add_test(tc, test_manifest_big_and_broken);
    tcase_add_loop_test(tc, test_manifest_semver_ranges, 0,
                        sizeof(ranges) / sizeof(ranges[0]));
    tcase_add_test(tc, test_manifest_semver_refuses);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
