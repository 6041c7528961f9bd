/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph alone, under a host whose tensors are nothing but counts.
 */
#include "autodiff/graph.h"
#include "autodiff/map.h"

#include "hob_check.h"

#include <stdatomic.h>

enum { CHAIN = 1000000 };

/* A tensor as the graph sees it, and how often it was given back. */
struct mock {
    struct hob_view view; /* first, as in any tensor */
    int unrefs;
};

static void unref(hob_tensor *tensor)
{
    if (tensor)
        ((struct mock *)(void *)tensor)->unrefs++;
}

static const struct hob_host host = {.struct_size = sizeof(host),
                                     .tensor_unref = unref};

static struct ad_pool pool;

static void setup(void)
{
    ad_pool_init(&pool);
}

static void teardown(void)
{
    ad_pool_release(&pool);
}

static hob_tensor *handle(struct mock *mock)
{
    return (hob_tensor *)(void *)mock;
}

/* A node of one f32 input and one result, its edge at PARENT. */
static struct ad_node *make_node(struct mock *input, struct ad_node *parent)
{
    hob_value args[3] = {hob_value_tensor(handle(input)), hob_i64(7),
                         hob_value_i64s((const int64_t[]){4, 5}, 2)};
    struct hob_meta meta = {.dtype = HOB_DTYPE_F32, .rank = 2, .shape = {2, 3}};
    struct hob_call call = {.host = &host,
                            .op = 3,
                            .op_name = "test",
                            .arg_count = 3,
                            .ret_count = 1,
                            .args = args,
                            .metas = &meta};
    struct ad_node *node = ad_node_new(&pool, &call);

    ck_assert_ptr_nonnull(node);
    if (parent) {
        ad_node_ref(parent);
        node->inputs[0].edge = &parent->slots[0];
        node->order = parent->order + 1;
    }
    atomic_store(&node->handles, 1);
    return node;
}

static struct mock make_mock(void)
{
    struct mock mock;

    memset(&mock, 0, sizeof(mock));
    mock.view.dtype = HOB_DTYPE_F32;
    mock.view.rank = 1;
    mock.view.shape[0] = 6;
    return mock;
}

START_TEST(test_graph_node_keeps_attributes_and_metadata)
{
    struct mock input = make_mock();
    struct ad_node *node = make_node(&input, NULL);
    const int64_t *cursor = node->metas;
    struct hob_meta meta;

    ck_assert_uint_eq(node->input_count, 1);
    ck_assert_ptr_null(node->args[0].u.tensor);
    ck_assert_int_eq(node->args[1].u.i64, 7);
    ck_assert_uint_eq(node->args[2].count, 2);
    ck_assert_int_eq(node->args[2].u.i64s[1], 5);
    ad_node_meta_next(&cursor, &meta);
    ck_assert_int_eq(meta.dtype, HOB_DTYPE_F32);
    ck_assert_int_eq(meta.rank, 1);
    ck_assert_int_eq(meta.shape[0], 6);
    ck_assert_ptr_eq(cursor, node->ret_metas);
    ad_node_meta_next(&cursor, &meta);
    ck_assert_int_eq(meta.rank, 2);
    ck_assert_int_eq(meta.shape[1], 3);
    ad_node_release_handle(&host, node);
}
END_TEST

START_TEST(test_graph_frees_a_long_chain_without_recursion)
{
    struct mock input = make_mock();
    struct ad_node *last = ad_leaf_new(&pool);

    ck_assert_ptr_nonnull(last);
    for (int i = 0; i < CHAIN; i++) {
        struct ad_node *node = make_node(&input, last);

        node->inputs[0].saved = handle(&input);
        ad_node_release_handle(&host, last);
        last = node;
    }
    ck_assert_uint_eq(last->order, CHAIN);
    ck_assert_int_eq(input.unrefs, 0);
    ad_node_release_handle(&host, last);
    ck_assert_int_eq(input.unrefs, CHAIN);
}
END_TEST

START_TEST(test_graph_consumes_once)
{
    struct mock input = make_mock();
    struct ad_node *leaf = ad_leaf_new(&pool);
    struct ad_node *node = make_node(&input, leaf);

    node->inputs[0].saved = handle(&input);
    ck_assert_int_eq(ad_node_claim(node, 0), 0); /* a reader */
    ck_assert_int_eq(ad_node_claim(node, 1), 0); /* and a consumer */
    ck_assert_int_ne(ad_node_claim(node, 0), 0); /* too late */
    ad_node_unclaim(&host, node);
    ck_assert_int_eq(input.unrefs, 0); /* the reader is not through */
    ad_node_unclaim(&host, node);
    ck_assert_int_eq(input.unrefs, 1);
    ck_assert_ptr_null(node->inputs[0].edge);
    ck_assert_uint_eq(atomic_load(&leaf->refs), 1);
    ad_node_release_handle(&host, node);
    ad_node_release_handle(&host, leaf);
    ck_assert_int_eq(input.unrefs, 1);
}
END_TEST

/* a <- b, both replayable; nobody comes to need b, so neither keeps what it
 * would be replayed from. */
START_TEST(test_graph_drops_sources_that_nobody_needs)
{
    struct mock input = make_mock();
    struct ad_node *a = make_node(&input, NULL);
    struct ad_node *b = make_node(&input, a);

    a->flags |= AD_NODE_REPLAYS;
    a->inputs[0].flags = AD_INPUT_SOURCE;
    a->inputs[0].saved = handle(&input);
    b->flags |= AD_NODE_REPLAYS;
    b->inputs[0].flags = AD_INPUT_SOURCE;
    ad_input_set_replay(&b->inputs[0]);
    ad_node_release_handle(&host, a);
    ck_assert_int_eq(input.unrefs, 0); /* b could still be needed */
    ad_node_ref(b);
    ad_node_release_handle(&host, b);
    ck_assert_int_eq(input.unrefs, 1);
    ck_assert_ptr_nonnull(b->inputs[0].edge); /* the graph stays */
    ad_node_unref(&host, b);
    ck_assert_int_eq(input.unrefs, 1);
}
END_TEST

START_TEST(test_graph_keeps_sources_that_a_child_needs)
{
    struct mock input = make_mock();
    struct ad_node *a = make_node(&input, NULL);
    struct ad_node *b = make_node(&input, a);

    a->flags |= AD_NODE_REPLAYS;
    a->inputs[0].flags = AD_INPUT_SOURCE;
    a->inputs[0].saved = handle(&input);
    b->inputs[0].flags = AD_INPUT_NEEDED;
    ad_input_set_replay(&b->inputs[0]);
    ad_node_release_handle(&host, a);
    ck_assert_int_eq(input.unrefs, 0);
    ad_node_release_handle(&host, b);
    ck_assert_int_eq(input.unrefs, 1);
}
END_TEST

START_TEST(test_map_holds_what_was_put_and_not_taken)
{
    static char keys[5000];
    struct ad_map map = {NULL, 0, 0};

    ck_assert_ptr_null(ad_map_get(&map, keys));
    ck_assert_ptr_null(ad_map_take(&map, keys));
    for (size_t i = 0; i < sizeof(keys); i++)
        ck_assert_int_eq(ad_map_put(&map, &keys[i], &keys[i]), 0);
    for (size_t i = 0; i < sizeof(keys); i += 3)
        ck_assert_ptr_eq(ad_map_take(&map, &keys[i]), &keys[i]);
    for (size_t i = 0; i < sizeof(keys); i++)
        ck_assert_ptr_eq(ad_map_get(&map, &keys[i]), i % 3 ? &keys[i] : NULL);
    ck_assert_uint_eq(map.count, sizeof(keys) - (sizeof(keys) + 2) / 3);
    ad_map_release(&map);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("autodiff_graph");
    TCase *tc = tcase_create("graph");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_graph_node_keeps_attributes_and_metadata);
    tcase_add_test(tc, test_graph_frees_a_long_chain_without_recursion);
    tcase_add_test(tc, test_graph_consumes_once);
    tcase_add_test(tc, test_graph_drops_sources_that_nobody_needs);
    tcase_add_test(tc, test_graph_keeps_sources_that_a_child_needs);
    tcase_add_test(tc, test_map_holds_what_was_put_and_not_taken);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
