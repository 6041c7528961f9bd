/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State words: which calls reach a layer that needs them, and that words of
 * one level stay out of another's way.
 *
 *   picky  needs a state word; it refuses each call that it gets
 *   giver  gives the first argument a word of the level below it, then goes on:
 *          by itself for add, by passing for the others
 */
#include "../support/hob_check.h"
#include "../support/static_plugins.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <stdlib.h>

enum { PLUGINS = 3 };

static hob_error error = HOB_ERROR_INIT;
static hob_runtime *runtime;
static hob_scope *scope;
static char word; /* what state words point to */

/* ---- the layers ---- */

static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    (void)instance;
    (void)below;
    (void)level;
    (void)options;
    (void)out_message;
    *out_layer = malloc(1);
    return *out_layer ? HOB_OK : HOB_ERR_MEMORY;
}

static void layer_close(void *layer)
{
    free(layer);
}

static int32_t picky_call(void *layer, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    (void)layer;
    (void)impl;
    /* In brackets: check has a macro of that name. */
    *out_status = (call->host->fail)(call, HOB_ERR_STATE, "picky was asked");
    return HOB_LAYER_DONE;
}

static int32_t giver_call(void *layer, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    (void)layer;
    (void)impl;
    call->host->set_state(call->args[0].u.tensor, call->level - 1, &word);
    if (call->op != HOB_OP_ADD)
        return HOB_LAYER_PASS;
    *out_status = call->host->next(call);
    return HOB_LAYER_DONE;
}

static const struct hob_decorator picky_decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .flags = HOB_DECORATOR_NEEDS_STATE,
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = picky_call};
static const struct hob_decorator giver_decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = giver_call};
static const struct hob_plugin picky = {HOB_PLUGIN_INIT_HEAD, .id = "picky",
                                        .version = "1.0.0",
                                        .decorator = &picky_decorator};
static const struct hob_plugin giver = {HOB_PLUGIN_INIT_HEAD, .id = "giver",
                                        .version = "1.0.0",
                                        .decorator = &giver_decorator};

static const struct hob_plugin *picky_entry(const struct hob_host *host)
{
    (void)host;
    return &picky;
}

static const struct hob_plugin *giver_entry(const struct hob_host *host)
{
    (void)host;
    return &giver;
}

#define DECORATOR(id)                                                          \
    "{\"manifest_version\":1,\"id\":\"" id "\",\"version\":\"1.0.0\","         \
    "\"kind\":\"decorator\",\"unlisted\":\"refuse\","                          \
    "\"abi\":{\"major\":0,\"required_minor\":2,\"built_minor\":2},"            \
    "\"decorator\":{\"selector\":\"" id "\"}}"

/* ---- the runtime ---- */

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    struct hob_static_plugin plugins[PLUGINS] = {
        test_static_plugins[0], /* calc */
        {DECORATOR("picky"), picky_entry},
        {DECORATOR("giver"), giver_entry}};

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = plugins;
    options.static_plugin_count = PLUGINS;
    options.threads = 1;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(test_live_blocks(), 0);
    hob_error_release(&error);
}

static hob_tensor *vector(const char *spec)
{
    const float data[] = {1, 2};
    const int64_t shape[] = {2};
    hob_device *device = NULL;

    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    hob_device_unref(device); /* lives as long as the runtime */
    return hob_from_f32(scope, device, data, shape, 1);
}

static void assert_sum(hob_tensor *sum)
{
    float data[2] = {0, 0};

    ck_assert_hob_ok(hob_read(sum, data, sizeof(data), &error));
    ck_assert_float_eq(data[0], 2);
    ck_assert_float_eq(data[1], 4);
}

static void assert_asked(hob_tensor *result)
{
    ck_assert_hob_fails(hob_tensor_status(result, &error), HOB_ERR_STATE,
                        "picky was asked");
    hob_scope_clear_error(scope);
}

/* ---- tests ---- */

START_TEST(test_layer_that_needs_state_is_not_asked_without)
{
    hob_tensor *x = vector("picky(calc)");

    assert_sum(hob_add(scope, x, x));
    /* A tensor of a shorter stack has none either, nor has a call without
     * tensors. */
    assert_sum(hob_add(scope, vector("calc"), x));
    assert_sum(hob_add(scope, x, vector("calc")));
    ck_assert_hob_ok(
        hob_tensor_status(hob_full(scope, NULL, 0, hob_f64(2),
                                   hob_tensor_device(x), HOB_DTYPE_F32),
                          &error));
}
END_TEST

START_TEST(test_layer_that_needs_state_is_asked_where_there_is_some)
{
    hob_tensor *x = vector("picky(calc)");
    hob_tensor *y = vector("picky(calc)");

    hob_scope_host(scope)->set_state(y, 1, &word);
    assert_asked(hob_add(scope, x, y));
    assert_asked(hob_add(scope, y, vector("calc")));
    assert_asked(hob_cat(scope, (hob_tensor *[]){x, y}, 2, 0));
    /* Handles made from it carry the word as well. */
    assert_asked(hob_add(scope, x, hob_reshape(scope, y, (int64_t[]){2}, 1)));
}
END_TEST

START_TEST(test_layer_that_needs_state_is_asked_for_words_of_its_level)
{
    hob_tensor *x = vector("picky(giver(calc))");
    const struct hob_host *host = hob_scope_host(scope);

    ck_assert_ptr_null(host->state(x, 1));
    host->set_state(x, 1, &word);
    ck_assert_ptr_null(host->state(x, 2));
    ck_assert_ptr_eq(host->state(x, 1), &word);
    host->set_state(x, 2, &word);
    assert_asked(hob_neg(scope, x));
}
END_TEST

START_TEST(test_layer_that_needs_state_sees_what_a_layer_above_put_in)
{
    hob_tensor *x = vector("giver(picky(calc))");
    hob_tensor *y = vector("giver(picky(calc))");

    ck_assert_ptr_null(hob_scope_host(scope)->state(x, 1));
    assert_asked(hob_add(scope, x, x)); /* by host->next */
    assert_asked(hob_sub(scope, y, y)); /* by passing */
}
END_TEST

START_TEST(test_state_may_be_taken_away_again)
{
    hob_tensor *x = vector("picky(calc)");
    const struct hob_host *host = hob_scope_host(scope);
    hob_tensor *alias;

    host->set_state(x, 1, &word);
    alias = host->alias(x, 0);
    ck_assert_ptr_nonnull(alias);
    ck_assert_ptr_null(host->state(alias, 1));
    assert_sum(hob_add(scope, alias, alias));
    host->tensor_unref(alias);
    host->set_state(x, 1, NULL);
    ck_assert_ptr_null(host->state(x, 1));
    ck_assert_ptr_null(host->state(
        hob_reshape(scope, vector("picky(calc)"), (int64_t[]){2}, 1), 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_state");
    TCase *tc = tcase_create("layer_state");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_layer_that_needs_state_is_not_asked_without);
    tcase_add_test(tc,
                   test_layer_that_needs_state_is_asked_where_there_is_some);
    tcase_add_test(tc,
                   test_layer_that_needs_state_is_asked_for_words_of_its_level);
    tcase_add_test(tc,
                   test_layer_that_needs_state_sees_what_a_layer_above_put_in);
    tcase_add_test(tc, test_state_may_be_taken_away_again);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
