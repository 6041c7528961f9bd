/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of small integers are exact in every dtype, so results must equal
 * the naive sums, whatever the order: f32 within 2^24, f16 and bf16 after one
 * rounding.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include "flex/gemm.h"

#include <math.h>

/* [m, k] x [k, n] with leading dimensions. */
static const struct product {
    uint32_t lhs_rank, rhs_rank;
    int64_t lhs[5], rhs[5];
} products[] = {
    {2, 2, {1, 1}, {1, 1}},          {2, 2, {3, 5}, {5, 7}},
    {2, 2, {1, 33}, {33, 17}},       {2, 2, {5, 40}, {40, 700}},
    {2, 2, {8, 130}, {130, 66}},     {2, 2, {70, 41}, {41, 3}},
    {2, 2, {17, 1}, {1, 9}},         {2, 2, {15, 16}, {16, 33}},
    {2, 2, {29, 335}, {335, 40}}, /* deeper than one block */
    {2, 2, {64, 65}, {65, 67}},      {2, 2, {4, 0}, {0, 3}},
    {2, 2, {0, 4}, {4, 3}},          {2, 2, {20, 0}, {0, 30}},
    {3, 2, {3, 4, 5}, {5, 6}},       {3, 2, {3, 1, 5}, {5, 6}},
    {2, 3, {4, 5}, {2, 5, 6}},       {4, 4, {3, 1, 4, 5}, {1, 2, 5, 6}},
    {4, 3, {2, 3, 9, 8}, {3, 8, 9}}, {5, 2, {2, 2, 3, 10, 12}, {12, 11}},
    {3, 3, {0, 4, 5}, {1, 5, 6}},    {3, 3, {4, 12, 9}, {4, 9, 12}},
    {2, 2, {12, 20}, {20, 48}}, /* columns that fill one vector of a panel */
    {2, 2, {13, 9}, {9, 15}},        {2, 2, {9, 70}, {70, 90}},
    {2, 2, {90, 70}, {70, 11}},
};

enum { PRODUCTS = sizeof(products) / sizeof(products[0]) };

static void out_shape(const struct product *p, int64_t *shape,
                      uint32_t *out_rank)
{
    uint32_t rank = p->lhs_rank > p->rhs_rank ? p->lhs_rank : p->rhs_rank;

    for (uint32_t i = 0; i + 2 < rank; i++) {
        int64_t l = i + p->lhs_rank < rank ? 1 : p->lhs[i + p->lhs_rank - rank];
        int64_t r = i + p->rhs_rank < rank ? 1 : p->rhs[i + p->rhs_rank - rank];
        shape[i] = l == 1 ? r : l;
    }
    shape[rank - 2] = p->lhs[p->lhs_rank - 2];
    shape[rank - 1] = p->rhs[p->rhs_rank - 1];
    *out_rank = rank;
}

/* The offset in dense VIEW of the matrix for batch position AT of RANK. */
static int64_t matrix_offset(const struct hob_view *view, const int64_t *at,
                             uint32_t rank)
{
    int64_t offset = 0;

    for (uint32_t i = 0; i + 2 < view->rank; i++)
        offset = offset * view->shape[i] +
                 (view->shape[i] == 1 ? 0 : at[i + rank - view->rank]);
    return offset * view->shape[view->rank - 2] * view->shape[view->rank - 1];
}

static void check_product(struct lab *lab, const struct product *p,
                          uint32_t dtype, enum lab_layout lhs_layout,
                          enum lab_layout rhs_layout)
{
    struct lab_tensor lhs, rhs;
    struct fake_call call;
    const int64_t depth = p->lhs[p->lhs_rank - 1];
    const int64_t width = p->rhs[p->rhs_rank - 1];
    int64_t shape[HOB_MAX_RANK], at[HOB_MAX_RANK];
    double *l, *r;
    uint32_t rank;

    out_shape(p, shape, &rank);
    lab_tensor_init(lab, &lhs, dtype, p->lhs_rank, p->lhs, lhs_layout, -3, 3);
    lab_tensor_init(lab, &rhs, dtype, p->rhs_rank, p->rhs, rhs_layout, -3, 3);
    l = lab_dense(&lhs.view);
    r = lab_dense(&rhs.view);
    fake_call_init(&call, &lab->host, "matmul");
    fake_call_view(&call, &lhs.view);
    fake_call_view(&call, &rhs.view);
    fake_call_result(&call, dtype, rank, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_matmul_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&call.results[0].view); i++) {
        double wanted = 0, got = lab_get_at(&call.results[0].view, i);
        const double *row, *column;
        lab_position(rank, shape, i, at);
        row = l + matrix_offset(&lhs.view, at, rank) + at[rank - 2] * depth;
        column = r + matrix_offset(&rhs.view, at, rank) + at[rank - 1];
        for (int64_t k = 0; k < depth; k++)
            wanted += row[k] * column[k * width];
        wanted = lab_round(dtype, wanted);
        ck_assert_msg(got == wanted,
                      "%s, product %d, layouts %d %d, element %d: %g, not %g",
                      hob_dtype_name(dtype), (int)(p - products), lhs_layout,
                      rhs_layout, (int)i, got, wanted);
    }
    free(l);
    free(r);
    fake_call_release(&call);
    lab_tensor_release(&lhs);
    lab_tensor_release(&rhs);
}

START_TEST(test_matmul_equals_naive)
{
    const struct product *p = &products[_i];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_U8; dtype++)
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++)
                check_product(&lab, p, dtype, (enum lab_layout)l,
                              (enum lab_layout)((l * 5 + (int)dtype) %
                                                LAB_LAYOUT_COUNT_));
        lab_close(&lab);
    }
}
END_TEST

/* linear = matmul + bias, also with a bias that has gaps. */
START_TEST(test_linear_adds_bias)
{
    static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                      HOB_DTYPE_F16, HOB_DTYPE_BF16};
    const int64_t in = 37, out = 45;
    const int64_t shapes[][3] = {{37}, {1, 37}, {19, 37}, {3, 5, 37}};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (uint32_t rank = 0; rank < 4; rank++) {
                const uint32_t x_rank = rank == 0 ? 1 : rank == 3 ? 3 : 2;
                struct lab_tensor x, w, b;
                struct fake_call call;
                int64_t shape[3];

                memcpy(shape, shapes[rank], sizeof(shape));
                lab_tensor_init(&lab, &x, dtypes[d], x_rank, shape,
                                LAB_CONTIGUOUS, -2, 2);
                lab_tensor_init(&lab, &w, dtypes[d], 2, (int64_t[]){in, out},
                                LAB_TRANSPOSED, -2, 2);
                lab_tensor_init(&lab, &b, dtypes[d], 1, &out,
                                rank % 2 ? LAB_GAPS : LAB_CONTIGUOUS, -9, 9);
                shape[x_rank - 1] = out;
                fake_call_init(&call, &lab.host, "linear");
                fake_call_view(&call, &x.view);
                fake_call_view(&call, &w.view);
                fake_call_view(&call, &b.view);
                fake_call_result(&call, dtypes[d], x_rank, shape);
                ck_assert_int_eq(lab_run(&lab, &call, &flex_matmul_entries),
                                 HOB_OK);
                for (int64_t i = 0; i < hob_view_count(&call.results[0].view);
                     i++) {
                    double sum = lab_get_at(&b.view, i % out);
                    for (int64_t k = 0; k < in; k++)
                        sum += lab_get_at(&x.view, i / out * in + k) *
                               lab_get_at(&w.view, k * out + i % out);
                    ck_assert_double_eq(lab_get_at(&call.results[0].view, i),
                                        lab_round(dtypes[d], sum));
                }
                fake_call_release(&call);
                lab_tensor_release(&x);
                lab_tensor_release(&w);
                lab_tensor_release(&b);
            }
        lab_close(&lab);
    }
}
END_TEST

static void mark(void *context, void *block, int64_t first_row, int64_t rows,
                 int64_t first_column, int64_t columns, int64_t ldc)
{
    float *c = block;
    int64_t *seen = context;

    (void)first_row;
    (void)first_column;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * ldc + j] += 1000;
    *seen += rows * columns;
}

/* alpha, beta, bias, relu, then the epilogue, on every way. */
START_TEST(test_gemm_finishes_each_element_once)
{
    static const int64_t sizes[][3] = {
        {5, 90, 33},    {90, 5, 33}, {40, 70, 400}, {33, 45, 0},
        {300, 290, 60}, {1, 90, 33}, {90, 1, 33}}; /* the last has ldc 1 */
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        struct lab_tensor a, b, c, bias;
        int64_t seen = 0;
        float *before;
        struct flex_gemm gemm;

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        lab_tensor_init(&lab, &a, HOB_DTYPE_F32, 2, (int64_t[]){m, k},
                        LAB_CONTIGUOUS, -3, 3);
        lab_tensor_init(&lab, &b, HOB_DTYPE_F32, 2, (int64_t[]){k, n},
                        LAB_CONTIGUOUS, -3, 3);
        lab_tensor_init(&lab, &c, HOB_DTYPE_F32, 2, (int64_t[]){m, n},
                        LAB_CONTIGUOUS, -30, 30);
        lab_tensor_init(&lab, &bias, HOB_DTYPE_F32, 1, &n, LAB_CONTIGUOUS, -30,
                        30);
        before = malloc((size_t)(m * n) * sizeof(float));
        memcpy(before, c.view.data, (size_t)(m * n) * sizeof(float));
        gemm = (struct flex_gemm){.struct_size = sizeof(gemm),
                                  .dtype = HOB_DTYPE_F32,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .a = a.view.data,
                                  .a_row = k,
                                  .a_column = 1,
                                  .b = b.view.data,
                                  .b_row = n,
                                  .b_column = 1,
                                  .c = c.view.data,
                                  .ldc = n,
                                  .alpha = 2,
                                  .beta = 4,
                                  .bias = bias.view.data,
                                  .relu = 1,
                                  .epilogue = mark,
                                  .epilogue_context = &seen};
        ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
        ck_assert_int_eq(seen, m * n);
        for (int64_t i = 0; i < m * n; i++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += lab_get_at(&a.view, i / n * k + l) *
                       lab_get_at(&b.view, l * n + i % n);
            sum =
                2 * sum + 4 * (double)before[i] + lab_get_at(&bias.view, i % n);
            ck_assert_double_eq(lab_get_at(&c.view, i),
                                (sum > 0 ? sum : 0) + 1000);
        }
        free(before);
        lab_tensor_release(&a);
        lab_tensor_release(&b);
        lab_tensor_release(&c);
        lab_tensor_release(&bias);
        lab_close(&lab);
    }
}
END_TEST

/* Put a block where it belongs. */
struct copy {
    float *to;
    int64_t columns;
    int parts; /* blocks that do not have whole rows, one after the other */
};

static void copy_block(void *context, void *block, int64_t first_row,
                       int64_t rows, int64_t first_column, int64_t columns,
                       int64_t ldc)
{
    struct copy *copy = context;

    if (columns != copy->columns || ldc != columns)
        __atomic_fetch_add(&copy->parts, 1, __ATOMIC_RELAXED);
    for (int64_t i = 0; i < rows; i++)
        memcpy(copy->to + (first_row + i) * copy->columns + first_column,
               (const float *)block + i * ldc, (size_t)columns * sizeof(float));
}

/* Without memory for C the blocks are the same bits, on every way. */
START_TEST(test_gemm_without_c)
{
    static const int64_t sizes[][3] = {
        {5, 90, 33},   {784, 256, 2},  {40, 70, 400},
        {33, 45, 0},   {300, 290, 60}, {61, 1100, 90},
        {9, 20000, 3}, {1, 90, 33},    {700, 33, 1025}};
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        struct lab_tensor a, b;
        float *wanted = malloc((size_t)(m * n) * sizeof(float));
        struct copy copy = {.to = malloc((size_t)(m * n) * sizeof(float)),
                            .columns = n};
        struct flex_gemm gemm;

        ck_assert(wanted && copy.to);
        if (lab_open(&lab, 3, lab_isas[isa])) {
            lab_tensor_init(&lab, &a, HOB_DTYPE_F32, 2, (int64_t[]){k, m},
                            LAB_CONTIGUOUS, -3, 3);
            lab_tensor_init(&lab, &b, HOB_DTYPE_F32, 2, (int64_t[]){k, n},
                            LAB_CONTIGUOUS, -3, 3);
            gemm = (struct flex_gemm){.struct_size = sizeof(gemm),
                                      .dtype = HOB_DTYPE_F32,
                                      .m = m,
                                      .n = n,
                                      .k = k,
                                      .a = a.view.data,
                                      .a_row = 1,
                                      .a_column = m,
                                      .b = b.view.data,
                                      .b_row = n,
                                      .b_column = 1,
                                      .c = wanted,
                                      .ldc = n,
                                      .alpha = 1};
            ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
            gemm.c = NULL;
            ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_ERR_ARGUMENT);
            gemm.epilogue = copy_block;
            gemm.epilogue_context = &copy;
            gemm.reads[0] = wanted;
            gemm.reads[1] = copy.to;
            memset(copy.to, 0xff, (size_t)(m * n) * sizeof(float));
            ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
            ck_assert_mem_eq(copy.to, wanted, (size_t)(m * n) * sizeof(float));
            gemm.beta = 1;
            ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_ERR_ARGUMENT);
            lab_tensor_release(&a);
            lab_tensor_release(&b);
            lab_close(&lab);
        }
        free(wanted);
        free(copy.to);
    }
}
END_TEST

/* Where rows are not long, blocks are such as an epilogue goes over at once. */
START_TEST(test_gemm_hands_out_whole_rows)
{
    static const int64_t sizes[][3] = {
        {784, 256, 64}, {784, 256, 2}, {256, 128, 64}, {700, 200, 900}};
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];
    float *data = calloc((size_t)(m * k + k * n + 2 * m * n), sizeof(*data));

    ck_assert_ptr_nonnull(data);
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        struct copy copy = {.to = data + m * k + k * n, .columns = n};
        struct flex_gemm gemm = {.struct_size = sizeof(gemm),
                                 .dtype = HOB_DTYPE_F32,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a = data,
                                 .a_row = 1,
                                 .a_column = m,
                                 .b = data + m * k,
                                 .b_row = n,
                                 .b_column = 1,
                                 .c = copy.to + m * n,
                                 .ldc = n,
                                 .alpha = 1,
                                 .epilogue = copy_block,
                                 .epilogue_context = &copy};

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
        gemm.c = NULL;
        ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
        ck_assert_int_eq(copy.parts, 0);
        lab_close(&lab);
    }
    free(data);
}
END_TEST

/* A product too large to be read in place, by layout: packed in groups, in
 * blocks of the depth, or streamed past few rows; beside guard columns. */
static const struct large {
    int64_t m, n, k;
    int a_turned, b_turned; /* stored by columns */
} larges[] = {
    {1303, 19, 1030, 0, 0}, /* A packed by rows */
    {513, 33, 1031, 1, 0},  /* by columns */
    {20, 517, 1029, 0, 0},  /* B packed by rows */
    {20, 517, 129, 0, 1},   /* by columns */
    {5, 517, 1029, 0, 0},   /* few rows stream B */
    {16, 517, 1029, 1, 0},  {13, 517, 1029, 0, 1},
    {1, 517, 1029, 0, 1},   {517, 16, 1029, 0, 0}, /* few columns */
    {517, 3, 1029, 1, 0},
};

static double large_element(const struct large *large, const float *a,
                            const float *b, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < large->k; k++)
        sum +=
            (double)a[large->a_turned ? k * large->m + i : i * large->k + k] *
            (double)b[large->b_turned ? j * large->k + k : k * large->n + j];
    return sum;
}

START_TEST(test_gemm_of_large_operands)
{
    enum { GUARD = 3 };
    const struct large *large = &larges[_i];
    const int64_t m = large->m, n = large->n, k = large->k, ldc = n + GUARD;
    float *c = malloc((size_t)(m * ldc) * sizeof(float));
    double *wanted = malloc((size_t)(m * n) * sizeof(double));
    struct lab lab = {.seed = (uint64_t)_i};
    /* Exactly as large as they are, so that a sanitizer sees every miss. */
    float *a = malloc((size_t)(m * k) * sizeof(float));
    float *b = malloc((size_t)(k * n) * sizeof(float));

    for (int64_t i = 0; i < m * k; i++)
        a[i] = (float)lab_random(&lab, -3, 3);
    for (int64_t i = 0; i < k * n; i++)
        b[i] = (float)lab_random(&lab, -3, 3);
    for (int64_t i = 0; i < m * n; i++)
        wanted[i] = large_element(large, a, b, i / n, i % n);
    for (int isa = 0; lab_isas[isa]; isa++) {
        const struct flex_gemm gemm = {.struct_size = sizeof(gemm),
                                       .dtype = HOB_DTYPE_F32,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .a = a,
                                       .a_row = large->a_turned ? 1 : k,
                                       .a_column = large->a_turned ? m : 1,
                                       .b = b,
                                       .b_row = large->b_turned ? 1 : n,
                                       .b_column = large->b_turned ? k : 1,
                                       .c = c,
                                       .ldc = ldc,
                                       .alpha = 1};

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int64_t i = 0; i < m * ldc; i++)
            c[i] = NAN; /* beta is 0: C is not read */
        ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_OK);
        for (int64_t i = 0; i < m * ldc; i++) {
            const float got = c[i];
            if (i % ldc >= n)
                ck_assert(isnan(got));
            else
                ck_assert_msg((double)got == wanted[i / ldc * n + i % ldc],
                              "%s, large %d, element %d, %d: %g, not %g",
                              lab_isas[isa], _i, (int)(i / ldc), (int)(i % ldc),
                              (double)got, wanted[i / ldc * n + i % ldc]);
        }
        lab_close(&lab);
    }
    free(a);
    free(b);
    free(c);
    free(wanted);
}
END_TEST

/* Sums that round: the same bits on one thread and on three. */
START_TEST(test_gemm_does_not_depend_on_threads)
{
    static const int64_t sizes[][3] = {
        {150, 170, 1100}, {9, 1100, 600}, {1, 2000, 300}, {2000, 3, 300}};
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];
    float *results[2];
    struct lab lab = {.seed = 1};
    float *a = malloc((size_t)(m * k) * sizeof(float));
    float *b = malloc((size_t)(k * n) * sizeof(float));

    for (int64_t i = 0; i < m * k; i++)
        a[i] = (float)lab_random(&lab, -999, 999) / 7;
    for (int64_t i = 0; i < k * n; i++)
        b[i] = (float)lab_random(&lab, -999, 999) / 11;
    for (int t = 0; t < 2; t++) {
        results[t] = malloc((size_t)(m * n) * sizeof(float));
        ck_assert(lab_open(&lab, t ? 3 : 1, NULL));
        ck_assert_int_eq(flex_gemm(lab.device,
                                   &(struct flex_gemm){
                                       .struct_size = sizeof(struct flex_gemm),
                                       .dtype = HOB_DTYPE_F32,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .a = a,
                                       .a_row = k,
                                       .a_column = 1,
                                       .b = b,
                                       .b_row = n,
                                       .b_column = 1,
                                       .c = results[t],
                                       .ldc = n,
                                       .alpha = 1}),
                         HOB_OK);
        lab_close(&lab);
    }
    ck_assert_int_eq(
        memcmp(results[0], results[1], (size_t)(m * n) * sizeof(float)), 0);
    free(results[0]);
    free(results[1]);
    free(a);
    free(b);
}
END_TEST

/* The way of small products and that of large ones: the same bits, with every
 * layout, finish and kind of edge. */
START_TEST(test_gemm_small_is_blocked)
{
    static const int64_t sizes[][3] = {{8, 8, 8},    {16, 16, 16}, {5, 9, 3},
                                       {64, 64, 64}, {29, 61, 47}, {14, 48, 1},
                                       {33, 16, 90}, {90, 33, 70}};
    const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];
    float a[90 * 90], b[90 * 90], bias[90], results[2][90 * 90];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int i = 0; i < 90 * 90; i++) {
            a[i] = (float)lab_random(&lab, -999, 999) / 7;
            b[i] = (float)lab_random(&lab, -999, 999) / 11;
        }
        for (int i = 0; i < 90; i++)
            bias[i] = a[i] + b[i];
        for (unsigned way = 0; way < 64; way++) {
            const struct flex_gemm_kernels *kernels =
                &lab.device->blas->kernels[FLEX_GEMM_F32];
            struct flex_gemm gemm = {.struct_size = sizeof(gemm),
                                     .dtype = HOB_DTYPE_F32,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .a = a,
                                     .a_row = way & 1 ? 1 : k,
                                     .a_column = way & 1 ? m : 1,
                                     .b = b,
                                     .b_row = way & 2 ? 1 : n + 1,
                                     .b_column = way & 2 ? k : 1,
                                     .ldc = n + 2,
                                     .alpha = way & 4 ? 0.3 : 1,
                                     .beta = way & 8 ? 1 : 0,
                                     .bias = way & 16 ? bias : NULL,
                                     .relu = way & 32 ? 1 : 0};

            memcpy(results[0], a, sizeof(a)); /* what beta finds */
            memcpy(results[1], a, sizeof(a));
            gemm.c = results[0];
            ck_assert_int_eq(flex_gemm_blocked(lab.device, &gemm), HOB_OK);
            gemm.c = results[1];
            ck_assert(flex_gemm_is_small(&gemm, kernels));
            flex_gemm_small(&gemm, kernels);
            ck_assert_msg(memcmp(results[0], results[1], sizeof(a)) == 0,
                          "%s, way %u", lab_isas[isa], way);
        }
        lab_close(&lab);
    }
}
END_TEST

START_TEST(test_gemm_refuses_bad_descriptions)
{
    struct lab lab;
    float c[4] = {0};
    struct flex_gemm gemm = {.struct_size = sizeof(gemm),
                             .dtype = HOB_DTYPE_F32,
                             .m = 2,
                             .n = 2,
                             .c = c,
                             .ldc = 1};

    ck_assert(lab_open(&lab, 1, NULL));
    ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_ERR_ARGUMENT);
    gemm.ldc = 2;
    gemm.dtype = HOB_DTYPE_BOOL;
    ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_ERR_ARGUMENT);
    gemm.dtype = HOB_DTYPE_F32;
    gemm.k = -1;
    ck_assert_int_eq(flex_gemm(lab.device, &gemm), HOB_ERR_ARGUMENT);
    lab_close(&lab);
}
END_TEST

/* NaN and infinity reach the result even beside zeros. */
START_TEST(test_matmul_keeps_nan)
{
    struct lab lab;
    struct lab_tensor a, b;
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &a, HOB_DTYPE_F32, 2, (int64_t[]){20, 30},
                    LAB_CONTIGUOUS, 0, 0);
    lab_tensor_init(&lab, &b, HOB_DTYPE_F32, 2, (int64_t[]){30, 40},
                    LAB_CONTIGUOUS, 1, 1);
    lab_set_at(&a.view, 7 * 30 + 3, (double)NAN);
    lab_set_at(&b.view, 5 * 40 + 9, (double)INFINITY);
    fake_call_init(&call, &lab.host, "matmul");
    fake_call_view(&call, &a.view);
    fake_call_view(&call, &b.view);
    fake_call_result(&call, HOB_DTYPE_F32, 2, (int64_t[]){20, 40});
    ck_assert_int_eq(lab_run(&lab, &call, &flex_matmul_entries), HOB_OK);
    for (int64_t i = 0; i < 800; i++) {
        double got = lab_get_at(&call.results[0].view, i);
        int is_nan = i / 40 == 7 || i % 40 == 9; /* 0 * inf */
        ck_assert(is_nan ? isnan(got) : got == 0);
    }
    fake_call_release(&call);
    lab_tensor_release(&a);
    lab_tensor_release(&b);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("matmul");
    TCase *tc = tcase_create("matmul");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_matmul_equals_naive, 0, PRODUCTS);
    tcase_add_test(tc, test_linear_adds_bias);
    tcase_add_loop_test(tc, test_gemm_finishes_each_element_once, 0, 7);
    tcase_add_loop_test(tc, test_gemm_without_c, 0, 9);
    tcase_add_loop_test(tc, test_gemm_hands_out_whole_rows, 0, 4);
    tcase_add_loop_test(tc, test_gemm_of_large_operands, 0,
                        (int)(sizeof(larges) / sizeof(larges[0])));
    tcase_add_loop_test(tc, test_gemm_does_not_depend_on_threads, 0, 4);
    tcase_add_loop_test(tc, test_gemm_small_is_blocked, 0, 8);
    tcase_add_test(tc, test_gemm_refuses_bad_descriptions);
    tcase_add_test(tc, test_matmul_keeps_nan);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
