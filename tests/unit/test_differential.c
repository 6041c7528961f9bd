/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The same calls on flex and on the reference backend: random shapes, dtypes
 * and layouts (permuted, reversed, stepped and stretched views, empty and
 * single sizes), NaN and infinities among the numbers. Results must agree, and
 * so must failures.
 *
 * The arguments follow from the op's signature where it is elementwise or a
 * reduction; for the others a pattern says what each parameter is.
 */

/* HOB_TEST_ROUNDS is another number of rounds. */
enum { ROUNDS = 60, MOST = 4096, MAX_ARGS = 8 };

static struct op_fixture sides[OP_DEVICE_COUNT];

static void teardown(void)
{
    for (int side = 0; side < OP_DEVICE_COUNT; side++)
        if (sides[side].scope)
            op_fixture_close(&sides[side]);
}

/*
 * One letter a parameter: x the main tensor, y one of its shape, b one that
 * broadcasts with it, m a mask that broadcasts, l a list of tensors alike
 * along the dim; i indices for gather, j a list of them, v what the indices
 * address (value for scatter_add), w the same for select; s a scalar, d a
 * dim, k a number up to that dimension's size, n a small number, t true or
 * false, D a dtype to cast to, p the power of a norm, u an update of scatter,
 * - the default; c rows of coordinates in x's dimensions up to dim, z what they
 * address; P pairs to pad by, e how; S shifts along A as many dims; o a
 * diagonal. NULL: by signature.
 */
static const struct {
    const char *op;
    const char *pattern;
} patterns[] = {
    {"cast", "xD"},
    {"contiguous", "x"},
    {"cumsum", "xd"},
    {"cumprod", "xd"},
    {"cummax", "xd"},
    {"cummin", "xd"},
    {"scatter", "xivdu"},
    {"select_assign", "xjwdu"},
    {"gather_nd", "xc"},
    {"scatter_nd", "xczu"},
    {"argwhere", "x"},
    {"nonzero", "x"},
    {"median_dim_with_indices", "xd"},
    {"var", "xn"},
    {"var_dim", "xdn"},
    {"std", "xn"},
    {"std_dim", "xdn"},
    {"norm", "xp"},
    {"norm_dim", "xdp"},
    {"sort", "xdt"},
    {"argsort", "xdt"},
    {"softmax", "xd"},
    {"log_softmax", "xd"},
    {"topk", "xkd"},
    {"argtopk", "xkd"},
    {"gather", "xid"},
    {"scatter_add", "xivd"},
    {"select", "xjd"},
    {"select_add", "xjwd"},
    {"mask_select", "xm"},
    {"cat", "ld"},
    {"repeat_dim", "xdn"},
    {"pad", "xPes"},
    {"roll", "xSA"},
    {"triu", "xo"},
    {"tril", "xo"},
    {"layer_norm", "x"},
    {"matmul", "MN"},
    {"linear", "MN"},
    {"softmax_backward", "xyd"},
    {"log_softmax_backward", "xyd"},
    {"sort_with_indices", "xdt"},
    {"topk_with_indices", "xkd"},
    {"max_dim_with_indices", "xd"},
    {"min_dim_with_indices", "xd"},
};

/* ---- random arguments ---- */

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    double u = (op_random(state) + 1) / 2;
    int64_t n = low + (int64_t)(u * (double)(high - low + 1));

    return n > high ? high : n;
}

static double random_number(uint64_t *state, hob_dtype dtype)
{
    uint32_t bit = HOB_DTYPE_BIT(dtype);

    if (bit & HOB_MASK_BOOL)
        return (double)between(state, 0, 1);
    if (bit & HOB_MASK_UNSIGNED)
        return (double)between(state, 0, 6);
    if (bit & HOB_MASK_INT)
        return (double)between(state, -5, 5);
    switch (between(state, 0, 40)) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return -INFINITY;
    case 3:
        return 0;
    case 4:
        return (double)between(state, -3, 3);
    default:
        return 4 * op_random(state);
    }
}

/*
 * A tensor of SHAPE on SIDE as a view: made in another order of dimensions,
 * with gaps, reversed, or of size 1 and stretched, and brought back. LEAST and
 * MOST_VALUE bound the numbers if they are indices (LEAST <= MOST_VALUE).
 */
static hob_tensor *random_view(int side, uint64_t *state, hob_dtype dtype,
                               const int64_t *shape, uint32_t rank,
                               int64_t least, int64_t most)
{
    struct op_fixture *f = &sides[side];
    static double data[MOST];
    int64_t made[HOB_MAX_RANK], order[HOB_MAX_RANK], back[HOB_MAX_RANK];
    int64_t starts[HOB_MAX_RANK], ends[HOB_MAX_RANK], steps[HOB_MAX_RANK];
    int64_t count = 1;
    hob_tensor *t;

    for (uint32_t i = 0; i < rank; i++)
        order[i] = i;
    for (uint32_t i = rank; i > 1; i--) {
        uint32_t j = (uint32_t)between(state, 0, i - 1);
        int64_t held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = shape[order[i]], how = between(state, 0, 8);
        back[order[i]] = i;
        starts[i] = 0;
        steps[i] = 1;
        made[i] = size;
        if (how == 0 && size > 0)
            made[i] = 1; /* stretched at the end */
        else if (how <= 2 && size > 0) {
            made[i] = 2 * size;
            steps[i] = how == 1 ? 2 : -2;
        } else if (how == 3) {
            steps[i] = -1;
        }
        ends[i] = made[i];
        count *= made[i];
    }
    ck_assert_int_le(count, MOST);
    for (int64_t i = 0; i < count; i++)
        data[i] = least <= most ? (double)between(state, least, most)
                                : random_number(state, dtype);
    t = op_tensor(f, dtype, data, made, (int32_t)rank);
    t = hob_slice(f->scope, t, starts, rank, ends, rank, steps, rank);
    t = hob_permute(f->scope, t, back, rank);
    return hob_expand(f->scope, t, shape, rank);
}

/* What one call is about. */
struct plan {
    const struct hob__op_decl *op;
    const struct hob__signature *signature;
    char pattern[HOB_MAX_PARAMS + 1];
    hob_dtype dtype; /* of the tensors that share one */
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank;
    uint32_t axis;
    int64_t inner; /* of a product */
    int64_t picks; /* how many indices */
};

static const char *find_pattern(const char *op)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        if (strcmp(patterns[i].op, op) == 0)
            return patterns[i].pattern;
    return NULL;
}

/* A pattern for an elementwise op or a reduction; 0 for others. */
static int derive_pattern(struct plan *plan)
{
    const char *given = find_pattern(plan->op->name);
    int tensors = 0;

    if (given) {
        snprintf(plan->pattern, sizeof(plan->pattern), "%s", given);
        return 1;
    }
    if (plan->op->fuse != HOB__FUSE_ELEMENTWISE &&
        plan->op->fuse != HOB__FUSE_REDUCE)
        return 0;
    for (uint32_t i = 0; i < plan->signature->param_count; i++) {
        char *letter = &plan->pattern[i];
        switch (plan->signature->params[i].type) {
        case HOB__TYPE_TENSOR:
            *letter = tensors++ ? 'b' : 'x';
            break;
        case HOB__TYPE_SCALAR:
            *letter = 's';
            break;
        case HOB__TYPE_I64:
            *letter = 'd';
            break;
        case HOB__TYPE_DTYPE:
            *letter = '-';
            break;
        default:
            return 0;
        }
    }
    return tensors > 0;
}

/* The dtype that the tensors share: a random one of the first's kind that has
 * one. Bool parameters beside others stand apart. */
static hob_dtype pick_dtype(const struct hob__signature *signature,
                            uint64_t *state)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        uint32_t more = signature->params[i].mask;
        int tensor = signature->params[i].type == HOB__TYPE_TENSOR ||
                     signature->params[i].type == HOB__TYPE_TENSORS;
        if (tensor && (mask == 0 || mask == HOB_MASK_BOOL))
            mask = more;
    }
    for (;;) {
        int64_t dtype = between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL);
        if (mask & HOB_DTYPE_BIT(dtype))
            return (hob_dtype)dtype;
    }
}

/* The least of x's sizes up to dim: what every coordinate is below. */
static int64_t least_size(const struct plan *plan)
{
    int64_t least = plan->shape[0];

    for (uint32_t i = 1; i <= plan->axis; i++)
        least = plan->shape[i] < least ? plan->shape[i] : least;
    return least;
}

static void make_plan(struct plan *plan, uint64_t *state)
{
    plan->dtype = pick_dtype(plan->signature, state);
    plan->rank = (uint32_t)between(state, 1, 4);
    for (uint32_t i = 0; i < plan->rank; i++)
        plan->shape[i] = between(state, 0, 12) ? between(state, 1, 4) : 0;
    /* Sometimes longer than a vector register. */
    if (between(state, 0, 3) == 0 && plan->rank <= 2)
        plan->shape[plan->rank - 1] = between(state, 5, 40);
    plan->axis = (uint32_t)between(state, 0, plan->rank - 1);
    plan->inner = between(state, 0, 9);
    plan->picks = between(state, 0, 5);
}

/* COUNT numbers of LOW .. HIGH as argument INDEX, the same on each side. */
static hob_value random_list(uint64_t *state, uint32_t index, uint32_t count,
                             int64_t low, int64_t high)
{
    static int64_t lists[MAX_ARGS][2 * HOB_MAX_RANK];

    for (uint32_t i = 0; i < count; i++)
        lists[index][i] = between(state, low, high);
    return hob_value_i64s(lists[index], count);
}

/* Argument INDEX, called LETTER in the pattern, on SIDE. */
static hob_value make_argument(struct plan *plan, int side, uint64_t *state,
                               uint32_t index, hob_tensor **list)
{
    static const double powers[] = {0, 1, 2, 3, INFINITY, -INFINITY, -1};
    const struct hob__param *param = &plan->signature->params[index];
    hob_dtype dtype =
        param->mask == HOB_MASK_BOOL ? HOB_DTYPE_BOOL : plan->dtype;
    hob_dtype positions = between(state, 0, 1) ? HOB_DTYPE_I32 : HOB_DTYPE_I64;
    int64_t shape[HOB_MAX_RANK], size = plan->shape[plan->axis];
    uint32_t rank = plan->rank;

    memcpy(shape, plan->shape, sizeof(shape));
    switch (plan->pattern[index]) {
    case 'b':
    case 'm':
        for (uint32_t i = 0; i < rank; i++)
            if (between(state, 0, 3) == 0)
                shape[i] = 1;
        if (between(state, 0, 3) == 0) {
            rank--;
            memmove(shape, shape + 1, rank * sizeof(*shape));
        }
        break;
    case 'i':
    case 'v':
        shape[plan->axis] = size ? plan->picks : 0;
        if (plan->pattern[index] == 'v')
            break;
        return hob_value_tensor(random_view(side, state, positions, shape, rank,
                                            0, size ? size - 1 : 0));
    case 'j':
        shape[0] = size ? plan->picks : 0;
        return hob_value_tensor(random_view(side, state, positions, shape, 1, 0,
                                            size ? size - 1 : 0));
    case 'w':
        shape[plan->axis] = size ? plan->picks : 0;
        break;
    case 'c':
        shape[0] = least_size(plan) ? plan->picks : 0;
        shape[1] = plan->axis + 1;
        return hob_value_tensor(
            random_view(side, state, positions, shape, 2, 0,
                        shape[0] ? least_size(plan) - 1 : 0));
    case 'z':
        shape[plan->axis] = least_size(plan) ? plan->picks : 0;
        memmove(shape, shape + plan->axis,
                (rank - plan->axis) * sizeof(*shape));
        rank -= plan->axis;
        break;
    case 'l':
        for (int i = 0; i < 3; i++) {
            shape[plan->axis] = between(state, 0, 4);
            list[i] = random_view(side, state, dtype, shape, rank, 1, 0);
        }
        return hob_value_tensors(list, 3);
    case 'M':
        rank = 2 + (plan->rank > 2);
        shape[rank - 1] = plan->inner;
        break;
    case 'N':
        rank = 2;
        shape[1] = shape[0];
        shape[0] = plan->inner;
        break;
    case 's':
        if (param->flags & HOB__PARAM_OPTIONAL && between(state, 0, 2) == 0)
            return hob_none();
        return dtype == HOB_DTYPE_BOOL ? hob_bool((int)between(state, 0, 1))
                                       : hob_i64(between(state, 0, 4));
    case 'd':
        return hob_i64((int64_t)plan->axis -
                       (between(state, 0, 1) ? plan->rank : 0));
    case 'k':
        return hob_i64(between(state, 0, size));
    case 'n':
        return hob_i64(between(state, 0, 3));
    case 't':
        return hob_bool((int)between(state, 0, 1));
    case 'D':
        return hob_value_dtype(
            (uint32_t)between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL));
    case 'p':
        return hob_f64(powers[between(state, 0, 6)]);
    case 'u':
        return hob_value_enum(between(state, 0, 4));
    case 'P':
        return random_list(state, index, 2 * (uint32_t)between(state, 0, rank),
                           -1, 3);
    case 'e':
        return hob_value_enum(between(state, 0, 2));
    case 'S':
        return random_list(state, index, (uint32_t)plan->picks % (rank + 1), -9,
                           9);
    case 'A':
        return random_list(state, index, (uint32_t)plan->picks % (rank + 1),
                           -(int64_t)rank, (int64_t)rank - 1);
    case 'o':
        return hob_i64(between(state, -5, 5));
    case '-':
        return hob_none();
    default: /* x and y */
        break;
    }
    return hob_value_tensor(random_view(side, state, dtype, shape, rank, 1, 0));
}

/* Say that the next use of VALUE's tensor, row-major and nobody else's, is the
 * last: an op may write over it. */
static void give_away(int side, hob_value *value)
{
    hob_scope *scope = sides[side].scope;

    if (value->tag == HOB_TAG_TENSOR && value->u.tensor)
        *value = hob_value_tensor(
            hob_move(scope, hob_contiguous(scope, value->u.tensor)));
}

/* ---- comparing ---- */

/* Units in the last place, some dozens: sums of 40 numbers, functions. */
static double tolerance_of(uint32_t dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
        return 1e-12;
    case HOB_DTYPE_F32:
        return 2e-5;
    case HOB_DTYPE_F16:
        return 1e-2;
    case HOB_DTYPE_BF16:
        return 6e-2;
    default:
        return 0;
    }
}

static void check_equal(const char *what, int side, hob_tensor *reference,
                        hob_tensor *flex, double tolerance)
{
    static double expected[MOST * 4];
    int64_t count = hob_tensor_count(reference);

    ck_assert_int_le(count, MOST * 4);
    ck_assert_msg(hob_tensor_rank(reference) == hob_tensor_rank(flex) &&
                      memcmp(hob_tensor_shape(reference),
                             hob_tensor_shape(flex),
                             (size_t)hob_tensor_rank(flex) * 8) == 0,
                  "%s: shapes differ", what);
    op_read(&sides[0], reference, expected, count);
    op_check(&sides[side], what, flex, expected, count, tolerance);
}

static void check_round(struct plan *plan, uint32_t round)
{
    hob_tensor *out[OP_DEVICE_COUNT][HOB_MAX_RESULTS] = {{NULL}};
    hob_status status[OP_DEVICE_COUNT];
    uint64_t state =
                 1 + round * UINT64_C(7919) + plan->op->id * UINT64_C(1000003),
             shared;
    uint32_t count = 0;
    char what[96];

    for (int i = 0; i < 8; i++)
        (void)op_random(&state);
    make_plan(plan, &state);
    snprintf(what, sizeof(what), "%s, round %u, %s", plan->op->name, round,
             hob_dtype_name(plan->dtype));
    for (int side = 0; side < OP_DEVICE_COUNT; side++) {
        hob_value args[HOB_MAX_PARAMS];
        hob_tensor *list[3];
        uint32_t given = (uint32_t)strlen(plan->pattern);
        hob_error error = HOB_ERROR_INIT;
        shared = state;
        for (uint32_t i = 0; i < given; i++) {
            args[i] = make_argument(plan, side, &shared, i, list);
            if (round % 2)
                give_away(side, &args[i]);
        }
        ck_assert_msg(hob_scope_error(sides[side].scope, &error) == HOB_OK,
                      "%s: arguments: %s", what, error.message);
        (void)hob_call_op(sides[side].scope, plan->op->id, args, given,
                          out[side], HOB_MAX_RESULTS, &count);
        status[side] = op_failure(&sides[side], &error);
        hob_error_release(&error);
        ck_assert_msg(status[0] == status[side],
                      "%s: %s on the reference, %s on device %d", what,
                      hob_status_name(status[0]), hob_status_name(status[side]),
                      side);
    }
    for (uint32_t i = 0; !status[0] && i < count; i++) {
        double tolerance = tolerance_of(hob_tensor_dtype(out[1][i]));
        /* Wherever a half is computed with, the result has its errors. */
        if (tolerance > 0 && tolerance < tolerance_of(plan->dtype))
            tolerance = tolerance_of(plan->dtype);
        /* A row of equal numbers: the mean's last bit over sqrt(epsilon). */
        if (strcmp(plan->op->name, "layer_norm") == 0)
            tolerance *= 10;
        for (int side = 1; side < OP_DEVICE_COUNT; side++)
            check_equal(what, side, out[0][i], out[side][i], tolerance);
    }
}

static uint32_t rounds(void)
{
    const char *text = getenv("HOB_TEST_ROUNDS");

    return text ? (uint32_t)strtoul(text, NULL, 10) : ROUNDS;
}

START_TEST(test_differential_flex_agrees_with_the_reference)
{
    struct hob__signature signature;
    struct plan plan;
    const char *message;
    int column;

    memset(&plan, 0, sizeof(plan));
    plan.op = &hob__builtin_ops[_i];
    ck_assert_int_eq(
        hob__signature_parse(plan.op->signature, &signature, &column, &message),
        HOB_OK);
    plan.signature = &signature;
    op_fixture_open(&sides[1], 1);
    if (sides[1].device && derive_pattern(&plan)) {
        op_fixture_open(&sides[0], 0);
        op_fixture_open(&sides[2], 2);
        for (uint32_t round = 0; round < rounds(); round++) {
            /* What a round made goes before the next. */
            hob_scope *outer[OP_DEVICE_COUNT];
            for (int side = 0; side < OP_DEVICE_COUNT; side++) {
                outer[side] = sides[side].scope;
                sides[side].scope = hob_scope_child(outer[side]);
            }
            check_round(&plan, round);
            for (int side = 0; side < OP_DEVICE_COUNT; side++) {
                hob_scope_close(sides[side].scope);
                sides[side].scope = outer[side];
            }
        }
    }
    hob__signature_release(&signature);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("differential");
    TCase *tc = tcase_create("ops");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_differential_flex_agrees_with_the_reference, 0,
                        (int)hob__builtin_op_count);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
