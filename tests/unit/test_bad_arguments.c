/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Each op with arguments that are mostly wrong: ranks, sizes and dtypes that
 * do not fit, tags of other types, absent tensors, dims and positions out of
 * range, sizes near the ends of int64_t. A call may succeed; if it fails the
 * message names the op, and flex, fusion(flex), autodiff(flex) and the bodies
 * on the reference backend answer with the same code. Sanitizers see the rest.
 */

enum { ROUNDS = 150, DEVICES = OP_DEVICE_TRACKED + 1, MOST = 1024, ITEMS = 4 };

static struct op_fixture sides[DEVICES];

static void teardown(void)
{
    for (int side = 0; side < DEVICES; side++)
        if (sides[side].scope)
            op_fixture_close(&sides[side]);
}

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    double u = (op_random(state) + 1) / 2;
    int64_t n = low + (int64_t)(u * (double)(high - low + 1));

    return n > high ? high : n;
}

/* Sizes that can be allocated but should not be are not among them. */
static const int64_t wild_numbers[] = {
    -1,
    -2,
    -9,
    9,
    -(INT64_C(1) << 48) + 1,
    INT64_MIN,
    INT64_MIN + 1,
    INT64_MIN / 2,
    INT64_MAX,
    INT64_MAX - 1,
    INT64_MAX / 2,
    INT64_C(1) << 62,
    (INT64_C(1) << 48) + 1,
};

static int64_t wild_number(uint64_t *state)
{
    enum { COUNT = sizeof(wild_numbers) / sizeof(wild_numbers[0]) };

    return wild_numbers[between(state, 0, COUNT - 1)];
}

static double wild_f64(uint64_t *state)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY, -1,
                                     0,   1e30,     -1e30,     0.5};

    return numbers[between(state, 0, 7)];
}

/* What the arguments of one call have in common. */
struct plan {
    const struct hob__op_decl *op;
    const struct hob__signature *signature;
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank;
    hob_dtype dtype;
    uint32_t wild[2]; /* parameters that are far from right */
};

/* Where the arguments of one call are kept. */
struct storage {
    int64_t numbers[HOB_MAX_PARAMS][12];
    double floats[HOB_MAX_PARAMS][12];
    hob_tensor *tensors[HOB_MAX_PARAMS][ITEMS];
};

/* A tensor of the plan's shape, or if WILD of any. */
static hob_tensor *make_tensor(const struct plan *plan, int side,
                               uint64_t *state, uint32_t mask, int wild)
{
    static double data[MOST];
    struct op_fixture *f = &sides[side];
    int64_t shape[HOB_MAX_RANK], count = 1;
    uint32_t rank = plan->rank;
    hob_dtype dtype = plan->dtype;
    hob_tensor *x;
    int quantized = !(mask & HOB_MASK_ANY);

    memcpy(shape, plan->shape, sizeof(shape));
    if (quantized) /* made from floats below; wild ones stay what they are */
        dtype = HOB_DTYPE_F32;
    else if (!(mask & HOB_DTYPE_BIT(dtype)))
        do
            dtype = (hob_dtype)between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL);
        while (!(mask & HOB_DTYPE_BIT(dtype)));
    if (wild) {
        if (between(state, 0, 2) == 0)
            dtype = (hob_dtype)between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL);
        rank = (uint32_t)between(state, 0, 6);
        for (uint32_t i = 0; i < rank; i++)
            shape[i] = between(state, 0, 9) ? between(state, 1, 3) : 0;
    }
    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i];
    ck_assert_int_le(count, MOST);
    for (int64_t i = 0; i < count; i++)
        data[i] = between(state, 0, 30)  ? (double)between(state, 0, 3)
                  : between(state, 0, 1) ? -1
                                         : 7;
    x = op_tensor(f, dtype, data, shape, (int32_t)rank);
    /* No elements, but a size that no memory holds. */
    if (wild && count == 0 && rank < HOB_MAX_RANK && between(state, 0, 1)) {
        shape[rank] = INT64_C(1) << between(state, 42, 50);
        x = hob_expand(f->scope, hob_unsqueeze(f->scope, x, (int64_t)rank),
                       shape, rank + 1);
    } else if (quantized && !wild) {
        x = hob_quantize_dynamic(f->scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q8S,
                                 NULL, 0, HOB_DTYPE_NONE, 0,
                                 HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                                 HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
    }
    return x;
}

static hob_value make_list(const struct plan *plan, uint64_t *state,
                           int64_t *numbers, int wild)
{
    uint32_t count = (uint32_t)between(state, 0, wild ? 12 : plan->rank);

    for (uint32_t i = 0; i < count; i++)
        numbers[i] = wild && between(state, 0, 1) ? wild_number(state)
                                                  : between(state, 0, 3);
    return hob_value_i64s(numbers, count);
}

/* A value of parameter INDEX's type. */
static hob_value make_typed(const struct plan *plan, int side, uint64_t *state,
                            uint8_t type, uint32_t mask, int wild,
                            uint32_t index, struct storage *s)
{
    uint32_t count;

    switch (type) {
    case HOB__TYPE_TENSOR:
        return hob_value_tensor(make_tensor(plan, side, state, mask, wild));
    case HOB__TYPE_TENSORS:
        count = (uint32_t)between(state, !wild, ITEMS);
        for (uint32_t i = 0; i < count; i++)
            s->tensors[index][i] = make_tensor(plan, side, state, mask, wild);
        return hob_value_tensors(s->tensors[index], count);
    case HOB__TYPE_SCALAR:
        return between(state, 0, 1) ? hob_f64(wild_f64(state))
               : wild               ? hob_i64(wild_number(state))
                                    : hob_i64(between(state, 0, 3));
    case HOB__TYPE_F64:
        return hob_f64(wild ? wild_f64(state) : 0.5);
    case HOB__TYPE_I64:
        return hob_i64(wild ? wild_number(state) : between(state, 0, 3));
    case HOB__TYPE_BOOL:
        return hob_bool((int)between(state, 0, 1));
    case HOB__TYPE_STR:
        return hob_value_str(wild ? "" : "ij,jk->ik");
    case HOB__TYPE_DTYPE:
        return hob_value_dtype(
            (uint32_t)(wild ? between(state, 0, 255)
                            : between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL)));
    case HOB__TYPE_DEVICE:
        return hob_value_device(wild ? NULL : sides[side].device);
    case HOB__TYPE_F64S:
        count = (uint32_t)between(state, 0, 12);
        for (uint32_t i = 0; i < count; i++)
            s->floats[index][i] = wild_f64(state);
        return hob_value_f64s(s->floats[index], count);
    case HOB__TYPE_ENUM:
        return hob_value_enum(wild ? wild_number(state) : between(state, 0, 2));
    default:
        return make_list(plan, state, s->numbers[index], wild);
    }
}

static hob_value make_argument(const struct plan *plan, int side,
                               uint64_t *state, uint32_t index,
                               struct storage *s)
{
    const struct hob__param *param = &plan->signature->params[index];
    int wild = index == plan->wild[0] || index == plan->wild[1];
    uint8_t type = param->type;
    uint32_t mask = param->mask ? param->mask : HOB_MASK_NUM;

    if (!wild && param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT) &&
        between(state, 0, 1))
        return hob_none();
    if (wild && between(state, 0, 11) == 0)
        return hob_none();
    if (wild && between(state, 0, 11) == 0)
        type = (uint8_t)between(state, HOB__TYPE_TENSOR, HOB__TYPE_ENUM);
    return make_typed(plan, side, state, type, mask, wild, index, s);
}

static void make_plan(struct plan *plan, uint64_t *state)
{
    uint32_t count = plan->signature->param_count;

    plan->rank = (uint32_t)between(state, 0, 5);
    for (uint32_t i = 0; i < plan->rank; i++)
        plan->shape[i] = between(state, 0, 19) ? between(state, 1, 3) : 0;
    plan->dtype = (hob_dtype)between(state, HOB_DTYPE_F64, HOB_DTYPE_BOOL);
    if (between(state, 0, 1))
        plan->dtype = HOB_DTYPE_F32;
    for (int i = 0; i < 2; i++)
        plan->wild[i] = (uint32_t)between(state, 0, count);
}

/* The same call on SIDE; the message of a failure is in MESSAGE. */
static hob_status call(struct plan *plan, int side, uint64_t state,
                       char message[512])
{
    static struct storage storage;
    hob_scope *scope = sides[side].scope;
    hob_value args[HOB_MAX_PARAMS];
    hob_tensor *out[64];
    hob_error error = HOB_ERROR_INIT;
    uint32_t given = 0, count = 0;
    hob_status st;

    while (given < plan->signature->param_count &&
           !(plan->signature->params[given].flags & HOB__PARAM_HIDDEN)) {
        args[given] = make_argument(plan, side, &state, given, &storage);
        given++;
    }
    st = hob_scope_error(scope, &error);
    ck_assert_msg(st == HOB_OK, "%s: arguments: %s", plan->op->name,
                  error.message);
    st = hob_call_op(scope, plan->op->id, args, given, out, 64, &count);
    st = op_failure(&sides[side], &error);
    snprintf(message, 512, "%s", error.message ? error.message : "");
    hob_error_release(&error);
    return st;
}

static void check_round(struct plan *plan, uint32_t round)
{
    static char message[DEVICES][512];
    hob_status status[DEVICES];
    uint64_t state =
        1 + round * UINT64_C(7919) + plan->op->id * UINT64_C(1000003);

    for (int i = 0; i < 8; i++)
        (void)op_random(&state);
    make_plan(plan, &state);
    for (int side = 0; side < DEVICES; side++) {
        status[side] = call(plan, side, state, message[side]);
        ck_assert_msg(!status[side] ||
                          strstr(message[side], plan->op->name) != NULL,
                      "%s, round %u, device %d: \"%s\" names no op",
                      plan->op->name, round, side, message[side]);
        /* One way may need more memory than another. */
        ck_assert_msg(
            status[side] == status[0] || status[side] == HOB_ERR_MEMORY ||
                status[0] == HOB_ERR_MEMORY,
            "%s, round %u: %s (%s) and on device %d %s (%s)", plan->op->name,
            round, hob_status_name(status[0]), message[0], side,
            hob_status_name(status[side]), message[side]);
    }
}

START_TEST(test_bad_arguments_get_a_message_that_names_the_op)
{
    struct hob__signature signature;
    struct plan plan = {.op = &hob__builtin_ops[_i]};
    const char *message;
    int column;

    ck_assert_int_eq(
        hob__signature_parse(plan.op->signature, &signature, &column, &message),
        HOB_OK);
    plan.signature = &signature;
    for (int side = 0; side < DEVICES; side++)
        op_fixture_open(&sides[side], side);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        hob_scope *outer[DEVICES];
        for (int side = 0; side < DEVICES; side++) {
            outer[side] = sides[side].scope;
            sides[side].scope = hob_scope_child(outer[side]);
        }
        check_round(&plan, round);
        for (int side = 0; side < DEVICES; side++) {
            hob_scope_close(sides[side].scope);
            sides[side].scope = outer[side];
        }
    }
    hob__signature_release(&signature);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    suite = suite_create("bad_arguments");
    tc = tcase_create("ops");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_bad_arguments_get_a_message_that_names_the_op,
                        0, (int)hob__builtin_op_count);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
