/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generator makes of types.json, run: wrappers, glue, unpackers and
 * infer functions, over a host that is written here. It is C and C++.
 */
#include "types_glue.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- a host that notes what it is asked ---- */

struct fake_scope {
    struct hob_scope_head head;
    char message[256];
};

/* A tensor is what begins with a view. */
static struct hob_view tensors[16], error_view;
static hob_value seen[HOB_MAX_PARAMS];
static uint32_t seen_count;
static int is_missing, must_fail, failed;
static hob_value next_plains[HOB_MAX_RESULTS];
static char call_message[256];

static hob_tensor *tensor(int i)
{
    return (hob_tensor *)(void *)&tensors[i];
}

static hob_tensor *error_tensor(void)
{
    return (hob_tensor *)(void *)&error_view;
}

static void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    printf("FAIL: line %d: %s\n", line, what);
    failed = 1;
}

#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)

static hob_tensor *fake_fail(hob_scope *scope, hob_status status,
                             const char *format, ...)
{
    struct fake_scope *fake = (struct fake_scope *)(void *)scope;
    va_list args;

    (void)status;
    va_start(args, format);
    (void)vsnprintf(fake->message, sizeof(fake->message), format, args);
    va_end(args);
    return error_tensor();
}

static hob_status fake_call_fail(struct hob_call *call, hob_status status,
                                 const char *format, ...)
{
    va_list args;

    (void)call;
    va_start(args, format);
    (void)vsnprintf(call_message, sizeof(call_message), format, args);
    va_end(args);
    return status;
}

static uint32_t fake_op_id(hob_scope *scope, struct hob_op_ref *ref)
{
    (void)scope;
    (void)ref;
    return is_missing ? UINT32_MAX : 7;
}

static void note(const hob_value *args, uint32_t count)
{
    seen_count = count;
    for (uint32_t i = 0; i < count; i++)
        seen[i] = args[i];
}

static hob_tensor *fake_call1(hob_scope *scope, uint32_t op,
                              const hob_value *args, uint32_t count)
{
    (void)scope;
    (void)op;
    note(args, count);
    return tensor(9);
}

static hob_status fake_callv(hob_scope *scope, uint32_t op,
                             const hob_value *args, uint32_t count,
                             hob_tensor **out, uint32_t capacity,
                             uint32_t *out_count, hob_value *plains,
                             uint32_t plain_capacity)
{
    (void)scope;
    (void)op;
    note(args, count);
    *out_count = capacity;
    for (uint32_t i = 0; i < capacity; i++)
        out[i] = must_fail ? error_tensor() : tensor((int)(10 + i));
    for (uint32_t i = 0; i < plain_capacity; i++)
        plains[i] = must_fail ? hob_none() : next_plains[i];
    return must_fail ? HOB_ERR_SHAPE : HOB_OK;
}

static hob_status fake_calln(hob_scope *scope, uint32_t op,
                             const hob_value *args, uint32_t count,
                             hob_tensor **out, uint32_t capacity,
                             uint32_t *out_count)
{
    return fake_callv(scope, op, args, count, out, capacity, out_count, NULL,
                      0);
}

static int32_t fake_is_error(const hob_tensor *t)
{
    return (const void *)t == (const void *)&error_view;
}

static hob_status fake_status(const hob_scope *scope)
{
    (void)scope;
    return HOB_ERR_SHAPE;
}

static struct hob_host host;
static struct fake_scope fake;

static hob_scope *start(void)
{
    host.call1 = fake_call1;
    host.calln = fake_calln;
    host.callv = fake_callv;
    host.op_id = fake_op_id;
    host.scope_fail = fake_fail;
    host.scope_status = fake_status;
    host.tensor_is_error = fake_is_error;
    host.fail = fake_call_fail;
    fake.head.host = &host;
    fake.message[0] = '\0';
    call_message[0] = '\0';
    seen_count = 0;
    return (hob_scope *)(void *)&fake;
}

static void shape(int i, uint8_t dtype, uint8_t rank, int64_t a, int64_t b,
                  int64_t c)
{
    tensors[i].dtype = dtype;
    tensors[i].rank = rank;
    tensors[i].shape[0] = a;
    tensors[i].shape[1] = b;
    tensors[i].shape[2] = c;
}

/* ---- what an author writes ---- */

static int change_plain, body_variant;

hob_status t_pass_body(hob_scope *scope, const struct t_boxes *boxes,
                       const struct t_operand *operand, double t,
                       struct t_boxes *out)
{
    (void)scope;
    CHECK(t == 0.25);
    CHECK(out->count == boxes->count + 1);
    body_variant = (int)operand->variant;
    if (operand->variant == T_OPERAND_SPARSE) {
        CHECK(operand->u.sparse.values == tensor(2));
        CHECK(!operand->u.sparse.at);
        CHECK(operand->u.sparse.scale == 3);
        CHECK(operand->u.sparse.sizes_count == 2);
        CHECK(operand->u.sparse.sizes[1] == 6);
    }
    if (operand->variant == T_OPERAND_NESTED)
        CHECK(operand->u.nested.mode.variant == T_MODE_SLOW &&
              operand->u.nested.mode.u.slow.steps == 5);
    out->coords = boxes->coords;
    out->count += change_plain;
    return HOB_OK;
}

hob_status t_choose_body(hob_scope *scope, hob_tensor *x,
                         enum t_choose_which which, struct t_out *out)
{
    (void)scope;
    CHECK(which == T_CHOOSE_WHICH_ABSENT_ || which == T_CHOOSE_WHICH_B);
    if (out->variant == T_OUT_GOOD)
        out->u.good = x;
    if (out->variant == T_OUT_PAIR)
        out->u.pair.a = x;
    if (change_plain)
        out->variant = T_OUT_BAD;
    return HOB_OK;
}

hob_status t_many_body(hob_scope *scope, hob_tensor *x, int64_t k,
                       hob_tensor *y, hob_tensor **out_first,
                       hob_tensor **out_1, hob_scalar *out_2, int *out_ok,
                       hob_dtype *out_dt, enum t_many_how *out_how,
                       hob_tensor **out_lse)
{
    (void)scope;
    (void)k;
    CHECK(*out_ok == 1 && *out_dt == HOB_DTYPE_F32);
    CHECK(*out_how == T_MANY_HOW_DOWN && out_2->tag == HOB_TAG_ABSENT);
    *out_first = *out_lse = x;
    *out_1 = y;
    return HOB_OK;
}

hob_status t_hidden_body(hob_scope *scope, hob_tensor *x, hob_tensor **out_0,
                         hob_tensor **out_lse)
{
    (void)scope;
    *out_0 = *out_lse = x;
    return HOB_OK;
}

hob_status t_lists_infer(struct hob_call *call, struct hob_meta *out)
{
    (void)call;
    (void)out;
    return HOB_OK;
}

hob_status t_pass_flex(void *device, struct hob_call *call)
{
    (void)device;
    (void)call;
    return HOB_OK;
}

hob_status t_sizes_flex(void *device, struct hob_call *call)
{
    return t_pass_flex(device, call);
}

hob_status t_wide_flex(void *device, struct hob_call *call)
{
    return t_pass_flex(device, call);
}

hob_status t_lists_flex(void *device, struct hob_call *call)
{
    return t_pass_flex(device, call);
}

hob_status t_pass_backward(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    (void)call;
    return HOB_OK;
}

hob_status t_lists_backward(hob_scope *scope, const struct hob_grad_call *call)
{
    return t_pass_backward(scope, call);
}

/* ---- wrappers ---- */

static void test_wrapper(void)
{
    hob_scope *scope = start();
    static const int64_t sizes[2] = {5, 6};
    struct t_boxes boxes, out;
    struct t_operand operand;

    memset(&operand, 0, sizeof(operand));
    boxes.coords = tensor(1);
    boxes.count = 4;
    operand.variant = T_OPERAND_SPARSE;
    operand.u.sparse.values = tensor(2);
    operand.u.sparse.scale = 3;
    operand.u.sparse.sizes = sizes;
    operand.u.sparse.sizes_count = 2;
    next_plains[0] = hob_i64(5);
    CHECK(t_pass(scope, &boxes, &operand, 0.25, &out) == HOB_OK);
    CHECK(out.coords == tensor(10) && out.count == 5);
    CHECK(seen_count == 15);
    CHECK(seen[T_PASS_ARG_BOXES_COORDS].u.tensor == tensor(1));
    CHECK(seen[T_PASS_ARG_BOXES_COUNT].u.i64 == 4);
    CHECK(seen[T_PASS_ARG_OPERAND].tag == HOB_TAG_ENUM);
    CHECK(seen[T_PASS_ARG_OPERAND].u.i64 == 1);
    CHECK(seen[T_PASS_ARG_OPERAND_DENSE].tag == HOB_TAG_ABSENT);
    CHECK(seen[T_PASS_ARG_OPERAND_SPARSE_VALUES].u.tensor == tensor(2));
    CHECK(seen[T_PASS_ARG_OPERAND_SPARSE_AT].tag == HOB_TAG_ABSENT);
    CHECK(seen[T_PASS_ARG_OPERAND_SPARSE_SCALE].u.f64 == 3);
    CHECK(seen[T_PASS_ARG_OPERAND_SPARSE_SIZES].count == 2);
    for (int i = T_PASS_ARG_OPERAND_PARTS; i < T_PASS_ARG_T; i++)
        CHECK(seen[i].tag == HOB_TAG_ABSENT);
    CHECK(seen[T_PASS_ARG_T].u.f64 == 0.25);
    /* The same struct may be argument and result. */
    CHECK(t_pass(scope, &boxes, &operand, 0.25, &boxes) == HOB_OK);
    CHECK(boxes.coords == tensor(10) && boxes.count == 5);

    memset(&operand, 0, sizeof(operand));
    operand.variant = T_OPERAND_NESTED;
    operand.u.nested.mode.variant = T_MODE_SLOW;
    operand.u.nested.mode.u.slow.steps = 8;
    operand.u.nested.x = tensor(3);
    CHECK(t_pass(scope, &boxes, &operand, 0, &out) == HOB_OK);
    CHECK(seen[T_PASS_ARG_OPERAND_NESTED_MODE].u.i64 == T_MODE_SLOW);
    CHECK(seen[T_PASS_ARG_OPERAND_NESTED_MODE_SLOW_STEPS].u.i64 == 8);
    CHECK(seen[T_PASS_ARG_OPERAND_NESTED_X].u.tensor == tensor(3));
    operand.u.nested.mode.variant = T_MODE_FAST;
    CHECK(t_pass(scope, &boxes, &operand, 0, &out) == HOB_OK);
    CHECK(seen[T_PASS_ARG_OPERAND_NESTED_MODE_SLOW_STEPS].tag ==
          HOB_TAG_ABSENT);
}

static void test_failures(void)
{
    hob_scope *scope = start();
    struct t_boxes boxes, out;
    struct t_operand operand;
    struct t_out chosen;

    memset(&operand, 0, sizeof(operand));
    memset(&boxes, 0, sizeof(boxes));
    out.count = 77;
    CHECK(t_pass(scope, NULL, &operand, 0, &out) == HOB_ERR_ARGUMENT);
    CHECK(out.coords == error_tensor() && out.count == 0);
    CHECK(strstr(fake.message, "t.pass: boxes is NULL") != NULL);
    CHECK(t_pass(scope, &boxes, NULL, 0, &out) == HOB_ERR_ARGUMENT);
    CHECK(strstr(fake.message, "t.pass: operand is NULL") != NULL);
    CHECK(seen_count == 0);
    must_fail = 1;
    out.count = 77;
    CHECK(t_pass(scope, &boxes, &operand, 0, &out) == HOB_ERR_SHAPE);
    CHECK(out.coords == error_tensor() && out.count == 0);
    chosen.variant = T_OUT_BAD;
    CHECK(t_choose(scope, tensor(1), T_CHOOSE_WHICH_ABSENT_, &chosen) ==
          HOB_ERR_SHAPE);
    CHECK(chosen.variant == T_OUT_GOOD && chosen.u.good == error_tensor());
    CHECK(t_hidden(scope, tensor(1)) == error_tensor());
    must_fail = 0;
    is_missing = 1;
    CHECK(t_pass(scope, &boxes, &operand, 0, &out) == HOB_ERR_NOT_FOUND);
    CHECK(strstr(fake.message, "install the extension t.types") != NULL);
    CHECK(out.coords == error_tensor());
    CHECK(t_hidden(scope, tensor(1)) == error_tensor());
    CHECK(t_wide(scope, tensor(1), tensor(2), NULL) == error_tensor());
    is_missing = 0;
}

static void test_results(void)
{
    hob_scope *scope = start();
    struct t_out chosen;
    hob_tensor *first, *second;
    hob_scalar scalar;
    enum t_many_how how;
    hob_dtype dt;
    int ok;

    next_plains[0] = hob_value_enum(T_OUT_PAIR);
    next_plains[1] = hob_i64(42);
    CHECK(t_choose(scope, tensor(1), T_CHOOSE_WHICH_B, &chosen) == HOB_OK);
    CHECK(seen[T_CHOOSE_ARG_WHICH].u.i64 == 1);
    CHECK(chosen.variant == T_OUT_PAIR && chosen.u.pair.n == 42);
    CHECK(chosen.u.pair.a == tensor(11));
    CHECK(t_choose(scope, tensor(1), T_CHOOSE_WHICH_ABSENT_, &chosen) ==
          HOB_OK);
    CHECK(seen[T_CHOOSE_ARG_WHICH].tag == HOB_TAG_ABSENT);

    next_plains[0] = hob_f64(1.5);
    next_plains[1] = hob_bool(1);
    next_plains[2] = hob_value_dtype(HOB_DTYPE_I64);
    next_plains[3] = hob_value_enum(T_MANY_HOW_DOWN);
    CHECK(t_many(scope, tensor(1), 3, NULL, &first, &second, &scalar, &ok, &dt,
                 &how) == HOB_OK);
    CHECK(first == tensor(10) && second == tensor(11));
    CHECK(scalar.u.f64 == 1.5 && ok == 1 && dt == HOB_DTYPE_I64);
    CHECK(how == T_MANY_HOW_DOWN);
    CHECK(t_hidden(scope, tensor(1)) == tensor(10));
    CHECK(seen_count == 1);
    CHECK(t_wide(scope, tensor(1), tensor(2), NULL) == tensor(9));
}

/* ---- the glue ---- */

static struct hob_call make_call(hob_value *args, hob_value *plains)
{
    struct hob_call call;

    memset(&call, 0, sizeof(call));
    call.host = &host;
    call.args = args;
    call.plains = plains;
    call.op_name = "t.op";
    return call;
}

static void test_bodies(void)
{
    hob_scope *scope = start();
    static const int64_t sizes[2] = {5, 6};
    hob_value args[HOB_MAX_PARAMS], plains[HOB_MAX_RESULTS];
    struct hob_call call = make_call(args, plains);
    hob_tensor *rets[3];

    for (int i = 0; i < HOB_MAX_PARAMS; i++)
        args[i] = hob_none();
    args[T_PASS_ARG_BOXES_COORDS] = hob_value_tensor(tensor(1));
    args[T_PASS_ARG_BOXES_COUNT] = hob_i64(4);
    args[T_PASS_ARG_OPERAND] = hob_value_enum(T_OPERAND_SPARSE);
    args[T_PASS_ARG_OPERAND_SPARSE_VALUES] = hob_value_tensor(tensor(2));
    args[T_PASS_ARG_OPERAND_SPARSE_SCALE] = hob_f64(3);
    args[T_PASS_ARG_OPERAND_SPARSE_SIZES] = hob_value_i64s(sizes, 2);
    args[T_PASS_ARG_T] = hob_f64(0.25);
    plains[0] = hob_i64(5);
    CHECK(t_pass_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(body_variant == T_OPERAND_SPARSE && rets[0] == tensor(1));
    change_plain = 1;
    CHECK(t_pass_body_glue(scope, &call, rets) == HOB_ERR_INTERNAL);
    CHECK(!strcmp(fake.message, "t.op: its body changed the result count from "
                                "5 to 6; infer alone sets it"));
    change_plain = 0;
    args[T_PASS_ARG_OPERAND] = hob_value_enum(T_OPERAND_NESTED);
    args[T_PASS_ARG_OPERAND_NESTED_MODE] = hob_value_enum(T_MODE_SLOW);
    args[T_PASS_ARG_OPERAND_NESTED_MODE_SLOW_STEPS] = hob_i64(5);
    CHECK(t_pass_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(body_variant == T_OPERAND_NESTED);

    args[0] = hob_value_tensor(tensor(1));
    args[1] = hob_value_enum(1);
    plains[0] = hob_value_enum(T_OUT_PAIR);
    plains[1] = hob_i64(9);
    CHECK(t_choose_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(!rets[0] && rets[1] == tensor(1));
    plains[0] = hob_value_enum(T_OUT_GOOD);
    args[1] = hob_none();
    CHECK(t_choose_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(rets[0] == tensor(1) && !rets[1]);
    change_plain = 1;
    CHECK(t_choose_body_glue(scope, &call, rets) == HOB_ERR_INTERNAL);
    change_plain = 0;

    args[1] = hob_i64(-2);
    args[2] = hob_none();
    plains[0] = hob_none();
    plains[1] = hob_bool(1);
    plains[2] = hob_value_dtype(HOB_DTYPE_F32);
    plains[3] = hob_value_enum(T_MANY_HOW_DOWN);
    CHECK(t_many_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(rets[0] == tensor(1) && !rets[1] && rets[2] == tensor(1));
    CHECK(t_hidden_body_glue(scope, &call, rets) == HOB_OK);
    CHECK(rets[1] == tensor(1));
}

static void test_unpack(void)
{
    static const int64_t sizes[2] = {5, 6};
    hob_value args[HOB_MAX_PARAMS], plains[1], rets[1];
    struct hob_call call = make_call(args, plains);
    struct t_pass_call c;

    (void)start();
    for (int i = 0; i < HOB_MAX_PARAMS; i++)
        args[i] = hob_none();
    call.rets = rets;
    call.ret_count = 1;
    rets[0] = hob_value_tensor(tensor(9));
    plains[0] = hob_i64(5);
    args[T_PASS_ARG_BOXES_COORDS] = hob_value_tensor(tensor(1));
    args[T_PASS_ARG_BOXES_COUNT] = hob_i64(4);
    args[T_PASS_ARG_OPERAND] = hob_value_enum(T_OPERAND_SPARSE);
    args[T_PASS_ARG_OPERAND_SPARSE_VALUES] = hob_value_tensor(tensor(2));
    args[T_PASS_ARG_OPERAND_SPARSE_SIZES] = hob_value_i64s(sizes, 2);
    t_pass_unpack(&call, &c);
    CHECK(c.boxes_coords == &tensors[1] && c.boxes_count == 4);
    CHECK(c.operand.variant == T_OPERAND_SPARSE);
    CHECK(c.operand.u.sparse.values == &tensors[2]);
    CHECK(!c.operand.u.sparse.at && c.operand.u.sparse.sizes_count == 2);
    CHECK(c.out_coords == &tensors[9] && c.out_count == 5);
    args[T_PASS_ARG_OPERAND] = hob_value_enum(T_OPERAND_BOXED);
    args[T_PASS_ARG_OPERAND_BOXED_COORDS] = hob_value_tensor(tensor(3));
    args[T_PASS_ARG_OPERAND_BOXED_COUNT] = hob_i64(6);
    t_pass_unpack(&call, &c);
    CHECK(c.operand.u.boxed.coords == &tensors[3]);
    CHECK(c.operand.u.boxed.count == 6);
}

static void test_slots(void)
{
    hob_value args[5];
    struct hob_grad_call call;

    memset(&call, 0, sizeof(call));
    call.args = args;
    for (int i = 0; i < 5; i++)
        args[i] = hob_value_make(HOB_TAG_TENSOR, 1);
    args[0] = hob_value_make(HOB_TAG_ABSENT, 1);
    args[1] = hob_value_make(HOB_TAG_TENSORS, 3);
    args[3] = hob_value_enum(0);
    CHECK(T_LISTS_IN_A == 0 && T_LISTS_IN_XS == 1);
    CHECK(t_lists_in_b(&call) == 4 && t_lists_in_c(&call) == 5);
    CHECK(T_PASS_IN_BOXES_COORDS == 0 && T_PASS_IN_OPERAND_SPARSE_AT == 3);
    CHECK(t_pass_gradient.save_args == 0x1 + (1 << 3) + (1 << 4) + (1 << 5) +
                                           (1 << 8) + (1 << 9) + (1 << 13));
}

/* ---- infer ---- */

static hob_status infer_sizes(int64_t k, int64_t l, hob_value n, int64_t m,
                              struct hob_meta *out)
{
    static const int64_t sizes[2] = {5, 6};
    hob_value args[8];
    struct hob_call call = make_call(args, NULL);

    (void)start();
    args[0] = hob_value_tensor(tensor(0));
    args[1] = hob_value_tensor(tensor(1));
    args[2] = hob_none();
    args[3] = hob_i64(k);
    args[4] = hob_i64(l);
    args[5] = hob_value_i64s(sizes, 2);
    args[6] = n;
    args[7] = hob_value_enum(m);
    memset(out, 0xff, sizeof(*out));
    return t_sizes_infer_glue(&call, out);
}

static void test_sizes(void)
{
    struct hob_meta out;

    shape(0, HOB_DTYPE_F32, 2, 2, 3, 0);
    shape(1, HOB_DTYPE_F32, 3, 7, 7, 7);
    CHECK(infer_sizes(7, 2, hob_i64(4), 0, &out) == HOB_OK);
    CHECK(out.rank == 5 && out.shape[0] == 3 && out.shape[1] == 5 &&
          out.shape[2] == 6);
    CHECK(out.shape[3] == 3 && out.shape[4] == 4);
    CHECK(infer_sizes(7, 2, hob_none(), 1, &out) == HOB_OK);
    CHECK(out.shape[4] == 2 * 3 - 6);
    /* -7 / 2 is -4, -7 % 2 is 1; 7 / -2 is -4, 7 % -2 is -1. */
    CHECK(infer_sizes(-7, 2, hob_i64(4), 0, &out) == HOB_OK);
    CHECK(out.shape[3] == 0);
    CHECK(infer_sizes(7, -2, hob_i64(4), 0, &out) == HOB_OK);
    CHECK(out.shape[3] == 1);
    CHECK(infer_sizes(7, -2, hob_i64(4), 1, &out) == HOB_ERR_SHAPE);
    CHECK(!strcmp(call_message, "give l > 0 for q"));
    CHECK(infer_sizes(7, 0, hob_i64(4), 0, &out) == HOB_ERR_SHAPE);
    CHECK(!strcmp(call_message, "7 / 0 is out of range"));
    CHECK(infer_sizes(INT64_MIN, -1, hob_i64(4), 0, &out) == HOB_ERR_SHAPE);
    CHECK(infer_sizes(7, 2, hob_i64(-4), 0, &out) == HOB_ERR_SHAPE);
    CHECK(!strcmp(call_message,
                  "if(has(n), n, len(s) * rank(y) - count(x)) is -4, no size "
                  "of a dimension"));
    shape(0, HOB_DTYPE_F32, 0, 0, 0, 0);
    CHECK(infer_sizes(7, 2, hob_i64(4), 0, &out) == HOB_ERR_SHAPE);
    CHECK(!strcmp(call_message, "x[1:0] is asked for, but x has 0 dimensions"));
    shape(0, HOB_DTYPE_F32, 8, 1, 1, 1);
    CHECK(infer_sizes(7, 2, hob_i64(4), 0, &out) == HOB_ERR_SHAPE);
    CHECK(strstr(call_message, "more than 8 dimensions") != NULL);
}

static void test_broadcast(void)
{
    hob_value args[3];
    struct hob_call call = make_call(args, NULL);
    struct hob_meta out;

    (void)start();
    shape(0, HOB_DTYPE_F32, 2, 1, 3, 0);
    shape(1, HOB_DTYPE_F32, 3, 4, 5, 1);
    shape(2, HOB_DTYPE_F32, 1, 0, 0, 0);
    args[0] = hob_value_tensor(tensor(0));
    args[1] = hob_value_tensor(tensor(1));
    args[2] = hob_none();
    CHECK(t_wide_infer_glue(&call, &out) == HOB_OK);
    CHECK(out.rank == 3 && out.shape[0] == 4 && out.shape[1] == 5 &&
          out.shape[2] == 3);
    args[2] = hob_value_tensor(tensor(2));
    CHECK(t_wide_infer_glue(&call, &out) == HOB_ERR_SHAPE);
    CHECK(
        !strcmp(call_message, "z does not broadcast: 3 and 0 in dimension -1"));
    shape(0, HOB_DTYPE_F32, 2, 1, 1, 0);
    CHECK(t_wide_infer_glue(&call, &out) == HOB_OK);
    CHECK(out.shape[2] == 0);
}

static void test_typed_infer(void)
{
    hob_value args[HOB_MAX_PARAMS], plains[4];
    struct hob_call call = make_call(args, plains);
    struct hob_meta out[3];

    (void)start();
    memset(out, 0, sizeof(out));
    args[T_PASS_ARG_BOXES_COORDS] = hob_value_tensor(tensor(0));
    args[T_PASS_ARG_BOXES_COUNT] = hob_i64(4);
    shape(0, HOB_DTYPE_F64, 2, 2, 3, 0);
    plains[0] = hob_i64(0);
    CHECK(t_pass_infer_glue(&call, out) == HOB_OK);
    CHECK(plains[0].u.i64 == 5 && out[0].dtype == HOB_DTYPE_F64);
    args[T_PASS_ARG_BOXES_COUNT] = hob_i64(INT64_MAX);
    CHECK(t_pass_infer_glue(&call, out) == HOB_ERR_SHAPE);
    CHECK(!strcmp(call_message, "9223372036854775807 + 1 is out of range"));

    args[0] = hob_value_tensor(tensor(0));
    args[1] = hob_none();
    plains[0] = hob_value_enum(0);
    plains[1] = hob_i64(0);
    memset(out, 0, sizeof(out));
    CHECK(t_choose_infer_glue(&call, out) == HOB_OK);
    CHECK(plains[0].u.i64 == T_OUT_PAIR && plains[1].u.i64 == 3);
    CHECK(out[0].dtype == HOB_DTYPE_NONE && out[1].dtype == HOB_DTYPE_F64);
    CHECK(out[1].rank == 1 && out[1].shape[0] == 2);
    shape(0, HOB_DTYPE_F64, 3, 2, 3, 4);
    memset(out, 0, sizeof(out));
    CHECK(t_choose_infer_glue(&call, out) == HOB_OK);
    CHECK(plains[0].u.i64 == T_OUT_BAD && out[1].dtype == HOB_DTYPE_NONE);

    args[1] = hob_i64(0);
    args[2] = hob_none();
    plains[0] = hob_f64(0);
    memset(out, 0, sizeof(out));
    CHECK(t_many_infer_glue(&call, out) == HOB_OK);
    CHECK(plains[0].tag == HOB_TAG_ABSENT && plains[1].u.i64 == 1);
    CHECK(plains[2].u.i64 == HOB_DTYPE_F64 && plains[3].u.i64 == 0);
    CHECK(out[1].dtype == HOB_DTYPE_NONE && out[2].rank == 2);
    args[1] = hob_i64(1);
    args[2] = hob_value_tensor(tensor(1));
    plains[0] = hob_f64(0);
    CHECK(t_many_infer_glue(&call, out) == HOB_OK);
    CHECK(plains[0].tag == HOB_TAG_F64 && plains[0].u.f64 == 1.5);
    CHECK(out[1].dtype == HOB_DTYPE_F64 && out[1].rank == 3);
}

/* Every edge of the checked arithmetic, against 128 bits. */
static void test_arithmetic(void)
{
#if defined(__SIZEOF_INT128__)
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    2,
                                    -2,
                                    7,
                                    -7,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 1,
                                    INT64_MIN + 1,
                                    3037000500,
                                    -3037000500};
    const int count = (int)(sizeof(edges) / sizeof(edges[0]));
    hob_value args[1];
    struct hob_call call = make_call(args, NULL);

    (void)start();
    for (int i = 0; i < count * count; i++) {
        int64_t a = edges[i / count], b = edges[i % count];
        __extension__ typedef __int128 wide;
        wide exact[3] = {(wide)a + b, (wide)a - b, (wide)a * b};

        for (int op = 0; op < 3; op++) {
            struct hob_infer in = {&call, HOB_OK};
            int64_t got = op == 0   ? hob_infer_add(&in, a, b)
                          : op == 1 ? hob_infer_sub(&in, a, b)
                                    : hob_infer_mul(&in, a, b);
            int fits = exact[op] >= INT64_MIN && exact[op] <= INT64_MAX;

            CHECK(fits ? !in.status && got == (int64_t)exact[op]
                       : in.status == HOB_ERR_SHAPE);
        }
        if (b && !(a == INT64_MIN && b == -1)) {
            struct hob_infer in = {&call, HOB_OK};
            int64_t q = hob_infer_div(&in, a, b), r = hob_infer_mod(&in, a, b);
            int64_t up = hob_infer_ceil_div(&in, a, b);

            CHECK(!in.status && (wide)q * b + r == a);
            CHECK(r == 0 || (r < 0) == (b < 0));
            CHECK(up == q + (r != 0));
        }
    }
#endif
}

int main(void)
{
    test_wrapper();
    test_failures();
    test_results();
    test_bodies();
    test_unpack();
    test_slots();
    test_sizes();
    test_broadcast();
    test_typed_infer();
    test_arithmetic();
    CHECK(hob_plugin_entry(&host)->extension->op_count == 7);
    return failed;
}
