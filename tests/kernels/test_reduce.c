/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions, argmax and scans, at every level, in every dtype, layout and
 * dimension, against plain loops in long double and 64-bit integers.
 */
#include "flex_case.h"
#include "hob_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;

static void setup(void)
{
    fake_host_init(&host, 2);
}

static int is_float(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
}

static const struct hob_entry *find(const char *op)
{
    const struct flex_entries *families[] = {
        &flex_reduce_entries, &flex_arg_entries, &flex_scan_entries};

    for (uint32_t i = 0; i < 3; i++) {
        const struct hob_entry *entry =
            fake_entry_find(families[i]->entries, families[i]->count, op);

        if (entry)
            return entry;
    }
    ck_abort_msg("there is no entry %s", op);
    return NULL;
}

/* ---- the reference ---- */

/* What a plain loop over elements finds. */
struct plain {
    long double sum, sum_abs, product, max, min;
    uint64_t int_sum, int_product;
    int64_t argmax, argmin, nans, n;
    int any, all;
};

static void plain_start(struct plain *plain)
{
    memset(plain, 0, sizeof(*plain));
    plain->product = 1;
    plain->int_product = 1;
    plain->all = 1;
    plain->argmax = plain->argmin = -1;
}

static void plain_take(struct plain *plain, uint32_t dtype, const void *p)
{
    long double x = flex_case_get(dtype, p);
    uint64_t bits = flex_case_get_int(dtype, p);

    plain->sum += x;
    plain->sum_abs += fabsl(x);
    plain->product *= x;
    plain->int_sum += bits;
    plain->int_product *= bits;
    plain->any |= x != 0;
    plain->all &= x != 0;
    if (x != x) {
        if (plain->nans++ == 0) {
            plain->argmax = plain->argmin = plain->n;
            plain->max = plain->min = x;
        }
    } else if (plain->nans == 0) {
        if (plain->n == 0 || x > plain->max) {
            plain->max = x;
            plain->argmax = plain->n;
        }
        if (plain->n == 0 || x < plain->min) {
            plain->min = x;
            plain->argmin = plain->n;
        }
    }
    plain->n++;
}

/* ---- one tensor, one op ---- */

struct one {
    struct flex_device *device;
    const char *op;
    const struct hob_view *x;
    int64_t dim; /* -1: whole */
    uint64_t seed;
    int layout;
};

static void check_number(const struct one *one, uint32_t dtype, const void *p,
                         long double wanted, long double slack,
                         uint64_t wanted_int, int64_t index)
{
    long double got = flex_case_get(dtype, p);
    int good;

    if (is_float(dtype))
        good = flex_case_ulps(dtype, got, wanted) <= 1 ||
               fabsl(got - wanted) <= slack;
    else
        good = flex_case_get_int(dtype, p) == wanted_int;
    if (!good)
        ck_abort_msg("%s %s %s dim %" PRId64 " layout %d seed %" PRIu64
                     " result %" PRId64 ": %.9Lg, not %.9Lg (%" PRIx64 ")",
                     one->device->kernels->name, one->op, hob_dtype_name(dtype),
                     one->dim, one->layout, one->seed, index, got, wanted,
                     wanted_int);
}

static uint64_t narrow(uint32_t dtype, uint64_t x)
{
    unsigned char element[8] = {0};

    flex_case_set_int(dtype, element, x);
    return flex_case_get_int(dtype, element);
}

static void check_result(const struct one *one, const struct fake_call *fake,
                         const struct plain *plain, int64_t index)
{
    uint32_t dtype = one->x->dtype;
    const void *p =
        (char *)fake->results[0].view.data +
        index * (int64_t)hob_dtype_size(fake->results[0].view.dtype);
    long double slack =
        plain->sum_abs * (dtype == HOB_DTYPE_F64 ? 0x1p-50L : 0x1p-48L);
    const char *op = one->op;
    int least = strstr(op, "min") != NULL;
    uint64_t extreme = 0;

    if (!is_float(dtype) && plain->n)
        extreme = plain->max == 0 && plain->min == 0
                      ? 0
                      : (uint64_t)(least ? (plain->min < 0
                                                ? (uint64_t)(int64_t)plain->min
                                                : (uint64_t)plain->min)
                                         : (plain->max < 0
                                                ? (uint64_t)(int64_t)plain->max
                                                : (uint64_t)plain->max));
    if (strncmp(op, "sum", 3) == 0) {
        check_number(one, dtype, p, plain->sum, slack,
                     narrow(dtype, plain->int_sum), index);
    } else if (strncmp(op, "mean", 4) == 0) {
        int negative = HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED &&
                       (int64_t)plain->int_sum < 0;
        uint64_t mean = negative ? 0 - (0 - plain->int_sum) / (uint64_t)plain->n
                                 : plain->int_sum / (uint64_t)plain->n;

        check_number(one, dtype, p, plain->sum / plain->n, slack / plain->n,
                     narrow(dtype, mean), index);
    } else if (strncmp(op, "prod", 4) == 0) {
        check_number(one, dtype, p, plain->product,
                     fabsl(plain->product) * plain->n * 0x1p-52L,
                     narrow(dtype, plain->int_product), index);
    } else if (strncmp(op, "any", 3) == 0) {
        if (*(const uint8_t *)p != plain->any)
            ck_abort_msg("%s %s", op, hob_dtype_name(dtype));
    } else if (strncmp(op, "all", 3) == 0) {
        if (*(const uint8_t *)p != plain->all)
            ck_abort_msg("%s %s", op, hob_dtype_name(dtype));
    } else if (strncmp(op, "arg", 3) == 0) {
        int64_t wanted = least ? plain->argmin : plain->argmax;

        if (((const int32_t *)fake->results[0].view.data)[index] != wanted)
            ck_abort_msg("%s %s %s dim %" PRId64 " layout %d seed %" PRIu64
                         " result %" PRId64 ": %d, not %" PRId64,
                         one->device->kernels->name, op, hob_dtype_name(dtype),
                         one->dim, one->layout, one->seed, index,
                         ((const int32_t *)fake->results[0].view.data)[index],
                         wanted);
    } else {
        check_number(one, dtype, p, least ? plain->min : plain->max, 0, extreme,
                     index);
        if (strstr(op, "indices") &&
            ((const int64_t *)fake->results[1].view.data)[index] !=
                (least ? plain->argmin : plain->argmax))
            ck_abort_msg("%s %s: wrong index", op, hob_dtype_name(dtype));
    }
}

/* All slices of X along DIM, or -1 for X as a whole, as plain loops find them;
 * the caller frees them. */
static struct plain *plain_of(const struct hob_view *x, int64_t dim)
{
    int64_t inner = 1, outer = 1, n = dim < 0 ? hob_view_count(x) : 1;
    struct plain *all;

    for (uint32_t i = 0; dim >= 0 && i < x->rank; i++) {
        outer *= i < dim ? x->shape[i] : 1;
        inner *= i > dim ? x->shape[i] : 1;
        n *= i == dim ? x->shape[i] : 1;
    }
    all = malloc((size_t)(outer * inner) * sizeof(*all));
    ck_assert_ptr_nonnull(all);
    for (int64_t i = 0; i < outer * inner; i++) {
        plain_start(&all[i]);
        for (int64_t k = 0; k < n; k++)
            plain_take(
                &all[i], x->dtype,
                flex_case_at(x, (i / inner * n + k) * inner + i % inner));
    }
    return all;
}

static void check_one(const struct one *one, const struct plain *plain)
{
    const struct hob_view *x = one->x;
    int truth = strncmp(one->op, "a", 1) == 0 && strncmp(one->op, "arg", 3);
    uint32_t dtype = truth                             ? HOB_DTYPE_BOOL
                     : strncmp(one->op, "arg", 3) == 0 ? HOB_DTYPE_I32
                                                       : x->dtype;
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank = one->dim < 0 ? 0 : x->rank;
    struct fake_call fake;
    hob_status status;

    memcpy(shape, x->shape, sizeof(shape));
    fake_call_init(&fake, &host, one->op);
    fake_call_view(&fake, x);
    if (one->dim >= 0) {
        shape[one->dim] = 1;
        fake_call_value(&fake,
                        hob_i64(one->dim - (one->seed & 1 ? x->rank : 0)));
    }
    fake_call_result(&fake, dtype, rank, shape);
    if (strstr(one->op, "indices"))
        fake_call_result(&fake, HOB_DTYPE_I64, rank, shape);
    status = fake_call_run(&fake, find(one->op), one->device);
    if (status != HOB_OK || !fake_tensor_intact(&fake.results[0]))
        ck_abort_msg("%s: status %d: %s", one->op, (int)status, host.message);
    for (int64_t i = 0; i < hob_view_count(&fake.results[0].view); i++)
        check_result(one, &fake, &plain[i], i);
    fake_call_release(&fake);
}

/* ---- all of them ---- */

static const char *const ops[] = {"sum",
                                  "sum_dim",
                                  "mean",
                                  "mean_dim",
                                  "prod",
                                  "prod_dim",
                                  "max",
                                  "max_dim",
                                  "min",
                                  "min_dim",
                                  "any",
                                  "any_dim",
                                  "all",
                                  "all_dim",
                                  "argmax",
                                  "argmin",
                                  "max_dim_with_indices",
                                  "min_dim_with_indices"};

static const struct shape_case {
    uint32_t rank;
    int64_t shape[4];
} shape_cases[] = {
    {0, {0}},       {1, {1}},          {1, {37}},      {1, {9001}},
    {2, {5, 67}},   {2, {300, 3}},     {2, {3, 1300}}, {3, {4, 140, 9}},
    {3, {7, 1, 5}}, {4, {3, 4, 5, 6}},
};

static void fill(const struct hob_view *view, uint64_t *state, int nans)
{
    for (int64_t i = 0; i < hob_view_count(view); i++) {
        uint64_t bits = flex_case_next(state);
        void *p = flex_case_at(view, i);

        if (!is_float(view->dtype))
            flex_case_set_int(view->dtype, p,
                              view->dtype == HOB_DTYPE_BOOL ? bits & 1
                              : bits >> 60 == 0             ? 0
                                                            : bits);
        else if (nans && bits >> 56 == 0)
            flex_case_set(view->dtype, p, NAN);
        else /* around 1, so that products stay in range; some ties */
            flex_case_set(view->dtype, p,
                          (bits >> 40 & 1 ? 1 : -1) *
                              (1 + (double)(bits & 255) / 4096));
    }
}

/* Whether OP takes no dimension. */
static int is_whole(const char *op)
{
    return strstr(op, "_dim") == NULL && strncmp(op, "arg", 3) != 0;
}

/* Every op that takes X's dtype, along DIM or, with -1, of X as a whole. */
static void check_ops(struct one *one, int64_t dim)
{
    struct plain *plain = plain_of(one->x, dim);

    one->dim = dim;
    for (uint32_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        int any_dtype =
            strncmp(ops[i], "any", 3) == 0 || strncmp(ops[i], "all", 3) == 0;

        one->op = ops[i];
        if (is_whole(one->op) == (dim < 0) &&
            (any_dtype || one->x->dtype != HOB_DTYPE_BOOL))
            check_one(one, plain);
    }
    free(plain);
}

static void check_layouts(struct one *one, uint32_t dtype,
                          const struct shape_case *shape_case)
{
    for (uint32_t l = 0; l < FLEX_LAYOUT_COUNT_; l++) {
        struct flex_case_tensor tensor;
        uint64_t state = one->seed = flex_case_seed();

        flex_case_tensor_init(&tensor, dtype, shape_case->rank,
                              shape_case->shape, (enum flex_layout)l);
        fill(&tensor.view, &state, l % 2 == 1);
        one->x = &tensor.view;
        one->layout = (int)l;
        for (int64_t dim = -1; dim < shape_case->rank; dim++)
            check_ops(one, dim);
        flex_case_tensor_release(&tensor);
    }
}

/* All ops of one dtype, so that the plain loop runs once for all of them. */
START_TEST(test_reduction_equals_plain_loop)
{
    struct one one = {.op = NULL};

    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        if (!flex_case_has(level))
            continue;
        one.device = flex_case_open(&host, level);
        for (uint32_t s = 0; s < sizeof(shape_cases) / sizeof(shape_cases[0]);
             s++)
            check_layouts(&one, (uint32_t)_i, &shape_cases[s]);
        flex_case_close(one.device);
    }
}
END_TEST

/* Slices of many short rows are gathered: more elements than a block has room
 * for a few times over. */
START_TEST(test_many_short_rows)
{
    static const struct shape_case many[] = {{3, {500, 7, 9}},
                                             {3, {600, 4, 9}}};
    static const uint32_t dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                      HOB_DTYPE_F16, HOB_DTYPE_I8};
    struct one one = {.op = NULL};

    one.device = flex_case_open(&host, FLEX_ISA_BASE);
    for (uint32_t i = 0; i < 8; i++) {
        struct flex_case_tensor tensor;
        uint64_t state = one.seed = flex_case_seed();

        flex_case_tensor_init(&tensor, dtypes[i / 2], 3, many[i % 2].shape,
                              FLEX_LAYOUT_DENSE);
        fill(&tensor.view, &state, 0);
        one.x = &tensor.view;
        one.layout = FLEX_LAYOUT_DENSE;
        check_ops(&one, 1);
        check_ops(&one, -1);
        flex_case_tensor_release(&tensor);
    }
    flex_case_close(one.device);
}
END_TEST

/* ---- scans ---- */

static const char *const scans[FLEX_SCAN_COUNT_] = {"cumsum", "cumprod",
                                                    "cummax", "cummin"};

/* What PLAIN says after so many elements of DTYPE: a number, or bits. */
static void check_scanned(const struct one *one, enum flex_scan scan,
                          uint32_t dtype, const void *p,
                          const struct plain *plain, int64_t k, int64_t at)
{
    const long double wanted[] = {plain->sum, plain->product, plain->max,
                                  plain->min};
    const long double slack[] = {plain->sum_abs * 0x1p-46L,
                                 fabsl(plain->product) * k * 0x1p-51L, 0, 0};
    uint64_t bits = 0;

    if (scan == FLEX_SCAN_SUM || scan == FLEX_SCAN_PROD)
        bits = scan == FLEX_SCAN_SUM ? plain->int_sum : plain->int_product;
    else if (!is_float(dtype))
        bits = wanted[scan] < 0 ? (uint64_t)(int64_t)wanted[scan]
                                : (uint64_t)wanted[scan];
    check_number(one, dtype, p, wanted[scan], slack[scan], narrow(dtype, bits),
                 at);
}

static void check_scan(struct flex_device *device, uint32_t dtype,
                       enum flex_scan scan, const struct shape_case *shape_case,
                       uint32_t dim, enum flex_layout layout)
{
    const char *op = scans[scan];
    uint64_t seed = flex_case_seed(), state = seed;
    struct flex_case_tensor tensor;
    struct fake_call fake;
    const struct hob_view *x = &tensor.view;
    int64_t n = shape_case->shape[dim], inner = 1;
    struct one one = {.device = device, .op = op, .dim = dim, .seed = seed};

    flex_case_tensor_init(&tensor, dtype, shape_case->rank, shape_case->shape,
                          layout);
    fill(x, &state, scan >= FLEX_SCAN_MAX);
    for (uint32_t i = dim + 1; i < x->rank; i++)
        inner *= x->shape[i];
    fake_call_init(&fake, &host, op);
    fake_call_view(&fake, x);
    fake_call_value(&fake, hob_i64(dim));
    fake_call_result(&fake, dtype, x->rank, x->shape);
    ck_assert_int_eq(fake_call_run(&fake, find(op), device), HOB_OK);
    ck_assert(fake_tensor_intact(&fake.results[0]));
    for (int64_t i = 0; i < hob_view_count(x) / n; i++) {
        struct plain plain;

        plain_start(&plain);
        for (int64_t k = 0; k < n; k++) {
            int64_t at = (i / inner * n + k) * inner + i % inner;
            const void *p = (char *)fake.results[0].view.data +
                            at * (int64_t)hob_dtype_size(dtype);

            plain_take(&plain, dtype, flex_case_at(x, at));
            check_scanned(&one, scan, dtype, p, &plain, k, at);
        }
    }
    fake_call_release(&fake);
    flex_case_tensor_release(&tensor);
}

START_TEST(test_scan_equals_plain_loop)
{
    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        struct flex_device *device;

        if (!flex_case_has(level))
            continue;
        device = flex_case_open(&host, level);
        for (uint32_t dtype = 1; dtype < HOB_DTYPE_BOOL; dtype++)
            for (uint32_t s = 1; s < sizeof(shape_cases) / sizeof(*shape_cases);
                 s++)
                for (uint32_t dim = 0; dim < shape_cases[s].rank; dim++)
                    for (uint32_t l = 0; l < FLEX_LAYOUT_COUNT_; l++) {
                        /* 0: results go past the caches. */
                        device->l3_bytes = (s + dim + l) & 1 ? 0 : 1 << 23;
                        check_scan(device, dtype, (enum flex_scan)_i,
                                   &shape_cases[s], dim, (enum flex_layout)l);
                    }
        flex_case_close(device);
    }
}
END_TEST

/* ---- particular promises ---- */

static double run_sum(const struct hob_view *x, const char *op, uint32_t dtype)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    struct fake_call fake;
    double result;

    fake_call_init(&fake, &host, op);
    fake_call_view(&fake, x);
    fake_call_result(&fake, dtype, 0, NULL);
    ck_assert_int_eq(fake_call_run(&fake, find(op), device), HOB_OK);
    result = (double)flex_case_get(dtype, fake.results[0].view.data);
    fake_call_release(&fake);
    flex_case_close(device);
    return result;
}

START_TEST(test_large_sum_is_accurate)
{
    int64_t shape = 10000000;
    struct fake_tensor x;
    uint64_t state = 1;
    long double wanted = 0;
    double got;

    fake_tensor_init(&x, HOB_DTYPE_F32, 1, &shape, 0);
    for (int64_t i = 0; i < shape; i++) {
        float value = (float)(flex_case_next(&state) >> 40) * 0x1p-24f;

        ((float *)x.view.data)[i] = value;
        wanted += value;
    }
    got = run_sum(&x.view, "sum", HOB_DTYPE_F32);
    ck_assert_double_le(flex_case_ulps(HOB_DTYPE_F32, got, wanted), 1);
    fake_tensor_release(&x);
}
END_TEST

START_TEST(test_half_sums_do_not_stall)
{
    int64_t shape = 70000;
    struct fake_tensor x;

    fake_tensor_init(&x, HOB_DTYPE_BF16, 1, &shape, 0);
    for (int64_t i = 0; i < shape; i++)
        flex_case_set(HOB_DTYPE_BF16, (uint16_t *)x.view.data + i, 1);
    ck_assert(fabs(run_sum(&x.view, "sum", HOB_DTYPE_BF16) - 70000) < 256);
    ck_assert(run_sum(&x.view, "mean", HOB_DTYPE_BF16) == 1);
    fake_tensor_release(&x);
    shape = 1024;
    fake_tensor_init(&x, HOB_DTYPE_F16, 1, &shape, 0);
    for (int64_t i = 0; i < shape; i++)
        flex_case_set(HOB_DTYPE_F16, (uint16_t *)x.view.data + i, (double)i);
    ck_assert(run_sum(&x.view, "mean", HOB_DTYPE_F16) == 511.5);
    fake_tensor_release(&x);
}
END_TEST

/* Pieces depend on sizes alone: the fake host runs them in another order. */
START_TEST(test_sum_does_not_depend_on_threads)
{
    int64_t shape = 1000003;
    struct fake_tensor x;
    uint64_t state = 7;
    double one, many;

    fake_tensor_init(&x, HOB_DTYPE_F64, 1, &shape, 0);
    for (int64_t i = 0; i < shape; i++)
        ((double *)x.view.data)[i] = (double)(int64_t)flex_case_next(&state);
    one = run_sum(&x.view, "sum", HOB_DTYPE_F64);
    fake_host_init(&host, 7);
    many = run_sum(&x.view, "sum", HOB_DTYPE_F64);
    ck_assert(memcmp(&one, &many, sizeof(one)) == 0);
    fake_tensor_release(&x);
}
END_TEST

static const struct empty {
    const char *op;
    uint32_t dtype;
    hob_status status;
    double value; /* of all results */
} empties[] = {
    {"sum_dim", HOB_DTYPE_F32, HOB_OK, 0},
    {"prod_dim", HOB_DTYPE_I32, HOB_OK, 1},
    {"mean_dim", HOB_DTYPE_F32, HOB_OK, NAN},
    {"mean_dim", HOB_DTYPE_I64, HOB_ERR_SHAPE, 0},
    {"max_dim", HOB_DTYPE_F32, HOB_ERR_SHAPE, 0},
    {"min_dim", HOB_DTYPE_U8, HOB_ERR_SHAPE, 0},
    {"argmax", HOB_DTYPE_F32, HOB_ERR_SHAPE, 0},
};

START_TEST(test_empty_dimension)
{
    const struct empty *empty = &empties[_i];
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    int64_t shape[2] = {3, 0}, kept[2] = {3, 1};
    struct fake_tensor x;
    struct fake_call fake;
    uint32_t dtype =
        strcmp(empty->op, "argmax") == 0 ? HOB_DTYPE_I32 : empty->dtype;

    fake_tensor_init(&x, empty->dtype, 2, shape, 0);
    fake_call_init(&fake, &host, empty->op);
    fake_call_view(&fake, &x.view);
    fake_call_value(&fake, hob_i64(1));
    fake_call_result(&fake, dtype, 2, kept);
    ck_assert_int_eq(fake_call_run(&fake, find(empty->op), device),
                     empty->status);
    if (empty->status)
        ck_assert_ptr_nonnull(strstr(host.message, "is empty"));
    else
        for (int i = 0; i < 3; i++)
            ck_assert(flex_case_ulps(
                          dtype,
                          flex_case_get(dtype,
                                        flex_case_at(&fake.results[0].view, i)),
                          empty->value) == 0);
    fake_call_release(&fake);
    /* Empty results of an empty dimension are fine. */
    fake_call_init(&fake, &host, empty->op);
    fake_call_view(&fake, &x.view);
    fake_call_value(&fake, hob_i64(0));
    kept[0] = 1;
    kept[1] = 0;
    fake_call_result(&fake, dtype, 2, kept);
    ck_assert_int_eq(fake_call_run(&fake, find(empty->op), device), HOB_OK);
    fake_call_release(&fake);
    fake_tensor_release(&x);
    flex_case_close(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flex reduce");
    TCase *cases = tcase_create("reduce");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, test_reduction_equals_plain_loop, 1,
                        HOB_DTYPE_BOOL + 1);
    tcase_add_test(cases, test_many_short_rows);
    tcase_add_loop_test(cases, test_scan_equals_plain_loop, 0,
                        FLEX_SCAN_COUNT_);
    tcase_add_test(cases, test_large_sum_is_accurate);
    tcase_add_test(cases, test_half_sums_do_not_stall);
    tcase_add_test(cases, test_sum_does_not_depend_on_threads);
    tcase_add_loop_test(cases, test_empty_dimension, 0,
                        (int)(sizeof(empties) / sizeof(empties[0])));
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
