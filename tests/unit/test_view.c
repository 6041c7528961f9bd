/* SPDX-License-Identifier: Apache-2.0 */
#include "infer.h"
#include "schema.h"
#include "view.h"

#include "fake_host.h"
#include "hob_check.h"

#include <stdio.h>
#include <string.h>

/*
 * A random view over a random view, many times: each element of the result is
 * looked up through the strides and compared with the one that the op's
 * definition names in the input, found by its index there. The element is its
 * own address's number in the buffer, so a wrong place shows.
 */

enum { BUFFER = 4096, ROUNDS = 4000 };

static int32_t buffer[BUFFER];

/* Numbers that are the same on every machine (xorshift64*). */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(next_random(state) % (uint64_t)(high - low + 1));
}

/* A view into the middle of the buffer: any order of dimensions, gaps,
 * negative and zero strides, sizes 0 and 1. */
static void random_view(uint64_t *state, struct hob_view *view)
{
    int64_t stride = 1;
    uint32_t order[HOB_MAX_RANK];

    memset(view, 0, sizeof(*view));
    view->dtype = HOB_DTYPE_I32;
    view->rank = (uint8_t)between(state, 0, 4);
    view->data = buffer + BUFFER / 2;
    for (uint32_t i = 0; i < view->rank; i++)
        order[i] = i;
    for (uint32_t i = view->rank; i > 1; i--) {
        uint32_t j = (uint32_t)between(state, 0, 2)
                         ? i - 1
                         : (uint32_t)between(state, 0, i - 1);
        uint32_t held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
    for (uint32_t i = view->rank; i-- > 0;) {
        uint32_t axis = order[i];
        view->shape[axis] = between(state, 0, 9) ? between(state, 1, 4) : 0;
        if (between(state, 0, 7) == 0)
            stride++;
        view->strides[axis] = stride;
        if (between(state, 0, 7) == 0)
            view->strides[axis] = 0;
        else if (between(state, 0, 7) == 0)
            view->strides[axis] = -stride;
        stride *= view->shape[axis] ? view->shape[axis] : 1;
    }
    hob__view_set_flags(view);
}

/* The element of VIEW at INDEX, which lies in the buffer. */
static int32_t element(const struct hob_view *view, const int64_t *index)
{
    const int32_t *at = view->data;

    for (uint32_t i = 0; i < view->rank; i++)
        at += index[i] * view->strides[i];
    ck_assert(at >= buffer && at < buffer + BUFFER);
    return *at;
}

/* Turn position FLAT in row-major order into INDEX. */
static void unravel(const struct hob_view *view, int64_t flat, int64_t *index)
{
    for (uint32_t i = view->rank; i-- > 0;) {
        index[i] = flat % view->shape[i];
        flat /= view->shape[i];
    }
}

static int64_t ravel(const struct hob_view *view, const int64_t *index)
{
    int64_t flat = 0;

    for (uint32_t i = 0; i < view->rank; i++)
        flat = flat * view->shape[i] + index[i];
    return flat;
}

/* The flags, from all pairs of indices. */
static void check_flags(const struct hob_view *view)
{
    static uint8_t seen[BUFFER];
    int64_t count = hob_view_count(view);
    int contiguous = 1, injective = 1;
    int64_t index[HOB_MAX_RANK];

    memset(seen, 0, sizeof(seen));
    for (int64_t i = 0; i < count; i++) {
        int32_t found;
        unravel(view, i, index);
        found = element(view, index);
        contiguous &= found == *(const int32_t *)view->data + i;
        injective &= !seen[found];
        seen[found] = 1;
    }
    ck_assert_int_eq((view->flags & HOB_VIEW_CONTIGUOUS) != 0, contiguous);
    /* May be missing, never be wrong. */
    if (view->flags & HOB_VIEW_INJECTIVE)
        ck_assert_int_eq(injective, 1);
    if (contiguous) {
        int64_t stride = 1;
        ck_assert(view->flags & HOB_VIEW_INJECTIVE);
        for (uint32_t i = view->rank; i-- > 0;) {
            ck_assert_int_eq(view->strides[i], stride);
            stride *= view->shape[i] ? view->shape[i] : 1;
        }
    }
}

/* One kind of view: make arguments, and say where an element comes from. */
struct kind {
    const char *op;
    void (*arguments)(uint64_t *state, const struct hob_view *in,
                      struct fake_call *fake, int64_t (*lists)[HOB_MAX_RANK]);
    void (*source)(const struct hob_view *in, const struct hob_view *out,
                   const struct fake_call *fake, const int64_t *index,
                   int64_t *in_index);
};

static int64_t signed_dim(uint64_t *state, int64_t dim, int64_t rank)
{
    return between(state, 0, 1) ? dim : dim - rank;
}

static int64_t whole_dim(int64_t dim, int64_t rank)
{
    return dim < 0 ? dim + rank : dim;
}

static void reshape_arguments(uint64_t *state, const struct hob_view *in,
                              struct fake_call *fake,
                              int64_t (*lists)[HOB_MAX_RANK])
{
    int64_t left = hob_view_count(in);
    uint32_t rank = 0;

    while (rank < 5) {
        int64_t size = between(state, 1, 4);
        if (left % size == 0 && (left || size == 1)) {
            lists[0][rank++] = size;
            left /= size;
        }
        if (left <= 1 && between(state, 0, 1))
            break;
    }
    lists[0][rank++] = left;
    fake_call_value(fake, hob_value_i64s(lists[0], rank));
}

static void reshape_source(const struct hob_view *in,
                           const struct hob_view *out,
                           const struct fake_call *fake, const int64_t *index,
                           int64_t *in_index)
{
    (void)fake;
    unravel(in, ravel(out, index), in_index);
}

static void permute_arguments(uint64_t *state, const struct hob_view *in,
                              struct fake_call *fake,
                              int64_t (*lists)[HOB_MAX_RANK])
{
    for (uint32_t i = 0; i < in->rank; i++)
        lists[0][i] = i;
    for (uint32_t i = in->rank; i > 1; i--) {
        uint32_t j = (uint32_t)between(state, 0, i - 1);
        int64_t held = lists[0][i - 1];
        lists[0][i - 1] = lists[0][j];
        lists[0][j] = held;
    }
    for (uint32_t i = 0; i < in->rank; i++)
        lists[0][i] = signed_dim(state, lists[0][i], in->rank);
    fake_call_value(fake, hob_value_i64s(lists[0], in->rank));
}

static void permute_source(const struct hob_view *in,
                           const struct hob_view *out,
                           const struct fake_call *fake, const int64_t *index,
                           int64_t *in_index)
{
    (void)out;
    for (uint32_t i = 0; i < in->rank; i++)
        in_index[whole_dim(fake->args[1].u.i64s[i], in->rank)] = index[i];
}

static void swap_arguments(uint64_t *state, const struct hob_view *in,
                           struct fake_call *fake,
                           int64_t (*lists)[HOB_MAX_RANK])
{
    (void)lists;
    for (int i = 0; i < 2; i++)
        fake_call_value(
            fake, hob_i64(signed_dim(state, between(state, 0, in->rank - 1),
                                     in->rank)));
}

static void swap_source(const struct hob_view *in, const struct hob_view *out,
                        const struct fake_call *fake, const int64_t *index,
                        int64_t *in_index)
{
    int64_t a = whole_dim(fake->args[1].u.i64, in->rank);
    int64_t b = whole_dim(fake->args[2].u.i64, in->rank);

    (void)out;
    memcpy(in_index, index, in->rank * sizeof(*index));
    in_index[a] = index[b];
    in_index[b] = index[a];
}

static void slice_arguments(uint64_t *state, const struct hob_view *in,
                            struct fake_call *fake,
                            int64_t (*lists)[HOB_MAX_RANK])
{
    uint32_t count = (uint32_t)between(state, 0, in->rank);

    for (uint32_t i = 0; i < count; i++) {
        lists[0][i] = between(state, -5, 5);
        lists[1][i] = between(state, 0, 3) ? between(state, -1, 9) : -2;
        lists[2][i] = between(state, 0, 1) ? between(state, 1, 3)
                                           : between(state, -3, -1);
    }
    for (int i = 0; i < 3; i++)
        fake_call_value(fake, hob_value_i64s(lists[i], count));
}

static void slice_source(const struct hob_view *in, const struct hob_view *out,
                         const struct fake_call *fake, const int64_t *index,
                         int64_t *in_index)
{
    (void)out;
    memcpy(in_index, index, in->rank * sizeof(*index));
    for (uint32_t i = 0; i < fake->args[1].count; i++) {
        int64_t low = whole_dim(fake->args[1].u.i64s[i], in->shape[i]);
        int64_t high = whole_dim(fake->args[2].u.i64s[i], in->shape[i]);
        int64_t step = fake->args[3].u.i64s[i];
        low = low < 0 ? 0 : low;
        high = high > in->shape[i] ? in->shape[i] : high;
        in_index[i] = (step > 0 ? low : high - 1) + index[i] * step;
    }
}

static void expand_arguments(uint64_t *state, const struct hob_view *in,
                             struct fake_call *fake,
                             int64_t (*lists)[HOB_MAX_RANK])
{
    uint32_t lead = (uint32_t)between(state, 0, 2);

    for (uint32_t i = 0; i < lead; i++)
        lists[0][i] = between(state, 0, 3);
    for (uint32_t i = 0; i < in->rank; i++) {
        lists[0][lead + i] =
            in->shape[i] == 1 ? between(state, 0, 3) : in->shape[i];
        if (between(state, 0, 3) == 0)
            lists[0][lead + i] = -1;
    }
    fake_call_value(fake, hob_value_i64s(lists[0], lead + in->rank));
}

static void expand_source(const struct hob_view *in, const struct hob_view *out,
                          const struct fake_call *fake, const int64_t *index,
                          int64_t *in_index)
{
    (void)fake;
    for (uint32_t i = 0; i < in->rank; i++)
        in_index[i] = in->shape[i] == 1 ? 0 : index[out->rank - in->rank + i];
}

static void flip_arguments(uint64_t *state, const struct hob_view *in,
                           struct fake_call *fake,
                           int64_t (*lists)[HOB_MAX_RANK])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < in->rank; i++)
        if (between(state, 0, 1))
            lists[0][count++] = signed_dim(state, i, in->rank);
    fake_call_value(fake, hob_value_i64s(lists[0], count));
}

static void flip_source(const struct hob_view *in, const struct hob_view *out,
                        const struct fake_call *fake, const int64_t *index,
                        int64_t *in_index)
{
    (void)out;
    memcpy(in_index, index, in->rank * sizeof(*index));
    for (uint32_t i = 0; i < fake->args[1].count; i++) {
        int64_t axis = whole_dim(fake->args[1].u.i64s[i], in->rank);
        in_index[axis] = in->shape[axis] - 1 - index[axis];
    }
}

static void squeeze_arguments(uint64_t *state, const struct hob_view *in,
                              struct fake_call *fake,
                              int64_t (*lists)[HOB_MAX_RANK])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < in->rank; i++)
        if (in->shape[i] == 1 && between(state, 0, 1))
            lists[0][count++] = signed_dim(state, i, in->rank);
    fake_call_value(fake, hob_value_i64s(lists[0], count));
}

/* Squeezing and unsqueezing keep the row-major order, as reshape does. */
static void unsqueeze_arguments(uint64_t *state, const struct hob_view *in,
                                struct fake_call *fake,
                                int64_t (*lists)[HOB_MAX_RANK])
{
    (void)lists;
    fake_call_value(fake, hob_i64(between(state, -in->rank - 1, in->rank)));
}

static void unfold_arguments(uint64_t *state, const struct hob_view *in,
                             struct fake_call *fake,
                             int64_t (*lists)[HOB_MAX_RANK])
{
    (void)lists;
    fake_call_value(
        fake,
        hob_i64(signed_dim(state, between(state, 0, in->rank - 1), in->rank)));
    fake_call_value(fake, hob_i64(between(state, 1, 4)));
    fake_call_value(fake, hob_i64(between(state, 1, 3)));
}

static void unfold_source(const struct hob_view *in, const struct hob_view *out,
                          const struct fake_call *fake, const int64_t *index,
                          int64_t *in_index)
{
    int64_t axis = whole_dim(fake->args[1].u.i64, in->rank);

    memcpy(in_index, index, in->rank * sizeof(*index));
    in_index[axis] = index[axis] * fake->args[3].u.i64 + index[out->rank - 1];
}

static const struct kind kinds[] = {
    {"reshape", reshape_arguments, reshape_source},
    {"permute", permute_arguments, permute_source},
    {"swap_dims", swap_arguments, swap_source},
    {"slice", slice_arguments, slice_source},
    {"expand", expand_arguments, expand_source},
    {"flip", flip_arguments, flip_source},
    {"squeeze", squeeze_arguments, reshape_source},
    {"unsqueeze", unsqueeze_arguments, reshape_source},
    {"unfold", unfold_arguments, unfold_source},
};

static const struct hob__op_decl *find_op(const char *name)
{
    for (uint32_t i = 0; i < hob__builtin_op_count; i++)
        if (strcmp(hob__builtin_ops[i].name, name) == 0)
            return &hob__builtin_ops[i];
    return NULL;
}

/*
 * Whether some strides express the reshape of IN to OUT's shape: solved from
 * the elements themselves. The stride of a dimension follows from its second
 * element; then all must agree.
 */
static int expressible(const struct hob_view *in, const struct hob_view *out)
{
    int64_t count = hob_view_count(out), index[HOB_MAX_RANK];
    int64_t in_index[HOB_MAX_RANK] = {0}, strides[HOB_MAX_RANK] = {0};
    int64_t step = 1;
    int32_t first;

    if (count == 0)
        return 1;
    unravel(in, 0, in_index);
    first = element(in, in_index);
    for (uint32_t i = out->rank; i-- > 0; step *= out->shape[i]) {
        if (out->shape[i] < 2)
            continue;
        unravel(in, step, in_index);
        strides[i] = element(in, in_index) - first;
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t expected = first;
        unravel(out, n, index);
        for (uint32_t i = 0; i < out->rank; i++)
            expected += index[i] * strides[i];
        unravel(in, n, in_index);
        if (element(in, in_index) != expected)
            return 0;
    }
    return 1;
}

static void check_view(const struct kind *kind, uint64_t *state)
{
    const struct hob__op_decl *op = find_op(kind->op);
    struct hob_view in, out;
    struct fake_host host;
    struct fake_call fake;
    struct hob_meta meta;
    int64_t lists[3][HOB_MAX_RANK], index[HOB_MAX_RANK];
    int64_t in_index[HOB_MAX_RANK];
    hob_status st;

    do
        random_view(state, &in);
    while (in.rank == 0 && kind->source != reshape_source);
    memset(&meta, 0, sizeof(meta));
    memset(&out, 0, sizeof(out));
    fake_host_init(&host, 1);
    fake_call_init(&fake, &host, kind->op);
    fake_call_value(&fake, hob_value_tensor((hob_tensor *)(void *)&in));
    kind->arguments(state, &in, &fake, lists);
    fake.call.ret_count = 1;
    meta.dtype = out.dtype = in.dtype;
    st = op->infer(&fake.call, &meta);
    ck_assert_msg(st == HOB_OK, "%s", host.message);
    out.rank = meta.rank;
    memcpy(out.shape, meta.shape, sizeof(out.shape));
    st = op->view(&fake.call, &in, &out);
    if (st == HOB_ERR_UNSUPPORTED) {
        ck_assert_str_eq(kind->op, "reshape");
        ck_assert_int_eq(expressible(&in, &out), 0);
        return;
    }
    ck_assert_int_eq(st, HOB_OK);
    check_flags(&out);
    for (int64_t n = 0; n < hob_view_count(&out); n++) {
        unravel(&out, n, index);
        kind->source(&in, &out, &fake, index, in_index);
        ck_assert_int_eq(element(&out, index), element(&in, in_index));
    }
}

START_TEST(test_view_reads_the_elements_that_the_op_names)
{
    uint64_t state = 88172645463325252u + (uint64_t)_i;

    for (int32_t i = 0; i < BUFFER; i++)
        buffer[i] = i;
    for (int round = 0; round < ROUNDS; round++)
        check_view(&kinds[_i], &state);
}
END_TEST

START_TEST(test_view_flags_of_random_views)
{
    uint64_t state = 362436069;
    struct hob_view view;

    for (int32_t i = 0; i < BUFFER; i++)
        buffer[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        random_view(&state, &view);
        check_flags(&view);
    }
}
END_TEST

START_TEST(test_view_keeps_read_only_and_a_null_address)
{
    struct hob_view in, out;
    struct fake_host host;
    struct fake_call fake;
    int64_t axes[] = {0};

    memset(&in, 0, sizeof(in));
    memset(&out, 0, sizeof(out));
    in.dtype = out.dtype = HOB_DTYPE_F64;
    in.rank = out.rank = 2;
    in.shape[0] = out.shape[0] = 3; /* and no columns */
    in.flags = HOB_VIEW_READ_ONLY;
    hob__view_set_flags(&in);
    fake_host_init(&host, 1);
    fake_call_init(&fake, &host, "flip");
    fake_call_value(&fake, hob_value_tensor((hob_tensor *)(void *)&in));
    fake_call_value(&fake, hob_value_i64s(axes, 1));
    ck_assert_int_eq(hob__view_flip(&fake.call, &in, &out), HOB_OK);
    ck_assert_ptr_null(out.data);
    ck_assert_uint_eq(out.flags, HOB_VIEW_READ_ONLY | HOB_VIEW_CONTIGUOUS |
                                     HOB_VIEW_INJECTIVE);
}
END_TEST

/* Beside a size of 0 the others may be so large that no product holds them. */
START_TEST(test_view_of_nothing_may_have_any_sizes)
{
    struct hob_view view;

    memset(&view, 0, sizeof(view));
    view.dtype = HOB_DTYPE_F32;
    view.rank = 3;
    view.shape[1] = view.shape[2] = INT64_C(1) << 62;
    hob__view_set_flags(&view);
    ck_assert_uint_eq(view.flags, HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("view");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, test_view_reads_the_elements_that_the_op_names, 0,
                        (int)(sizeof(kinds) / sizeof(kinds[0])));
    tcase_add_test(tc, test_view_flags_of_random_views);
    tcase_add_test(tc, test_view_keeps_read_only_and_a_null_address);
    tcase_add_test(tc, test_view_of_nothing_may_have_any_sizes);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
