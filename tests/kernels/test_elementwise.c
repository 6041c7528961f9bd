/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every elementwise entry, at every level that this CPU has, in every dtype
 * and layout, against references in long double and 64-bit integers.
 */
#include "elementwise_reference.h"
#include "flex_case.h"
#include "hob_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;

static void setup(void)
{
    fake_host_init(&host, 2);
}

/* ---- arguments ---- */

static const double float_values[] = {
    0.0,        -0.0,      1.0,    -1.0,     2.0,       -2.0,  0.5,
    -0.5,       1.5,       -1.5,   2.5,      3.5,       -2.5,  1e-3,
    -1e-3,      1e-7,      0.999,  -0.999,   3.0,       -3.0,  7.25,
    -7.25,      10.0,      -10.0,  88.0,     -88.0,     100.0, -100.0,
    104.0,      -104.0,    1e4,    -1e4,     65504.0,   1e30,  -1e30,
    1e-38,      1e-41,     5e-8,   INFINITY, -INFINITY, NAN,   0.70710678,
    3.14159265, 1.5707963, 6.1e-5, 0.6,      -0.6};

enum { FLOAT_VALUES = sizeof(float_values) / sizeof(float_values[0]) };

/* A value for argument ARGUMENT of dtype DTYPE: often a special one. */
static void put_random(uint32_t dtype, void *p, uint64_t *state)
{
    uint64_t bits = flex_case_next(state);
    uint64_t choice = bits >> 40;

    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) {
        double x = choice % 3 == 0 ? float_values[choice / 3 % FLOAT_VALUES]
                   : choice % 3 == 1
                       ? ((double)(bits & 0xffffff) / 0x800000 - 1) * 12
                       : ldexp((double)(bits & 0xffffff) / 0x800000 - 1,
                               (int)(choice / 3 % 60) - 30);

        flex_case_set(dtype, p, x);
    } else if (dtype == HOB_DTYPE_BOOL) {
        flex_case_set_int(dtype, p, bits & 1);
    } else {
        /* Small, the ends of the range, any. */
        uint64_t x = choice % 4 == 0 ? (bits & 7) - 3
                     : choice % 4 == 1
                         ? UINT64_C(1) << (hob_dtype_size(dtype) * 8 - 1)
                     : choice % 4 == 2
                         ? (UINT64_C(1) << (hob_dtype_size(dtype) * 8 - 1)) - 1
                         : bits;

        flex_case_set_int(dtype, p, x);
    }
}

static void fill(const struct hob_view *view, uint64_t *state, int no_zeros)
{
    for (int64_t i = 0; i < hob_view_count(view); i++) {
        void *p = flex_case_at(view, i);

        put_random(view->dtype, p, state);
        if (no_zeros && flex_case_get_int(view->dtype, p) == 0)
            flex_case_set_int(view->dtype, p, 1);
    }
}

/* ---- one case ---- */

struct one {
    const struct hob_entry *entry;
    const struct reference *reference;
    struct flex_device *device;
    uint32_t dtype;
    uint64_t seed;
    enum flex_layout layout;
    uint32_t rank;
    int64_t shape[4];
    int broadcast; /* bit i: argument i has size 1 in its last dimension */
    /* 1 + erf(x / sqrt 2) loses digits where x is negative. */
    int is_gelu;
    int is_sigmoid_backward; /* the output of a sigmoid is from 0 to 1 */
};

/* The scalar argument of ONE, as a value of its dtype. */
static hob_value scalar_for(const struct one *one, uint64_t *state,
                            uint64_t *out_bits)
{
    unsigned char element[8] = {0};

    put_random(one->dtype, element, state);
    *out_bits = flex_case_get_int(one->dtype, element);
    if (HOB_DTYPE_BIT(one->dtype) & HOB_MASK_FLOAT)
        return hob_f64((double)flex_case_get(one->dtype, element));
    if (*out_bits == 0 && (one->reference->no_zeros & 2))
        *out_bits = 1;
    if (HOB_DTYPE_BIT(one->dtype) & HOB_MASK_SIGNED)
        return hob_i64((int64_t)*out_bits);
    if (one->dtype == HOB_DTYPE_BOOL)
        return hob_bool((int)*out_bits);
    return hob_u64(*out_bits);
}

static long double unit_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 0x1p-52L
           : dtype == HOB_DTYPE_F32 ? 0x1p-23L
           : dtype == HOB_DTYPE_F16 ? 0x1p-10L
                                    : 0x1p-7L;
}

static void check_element(const struct one *one, const struct fake_call *fake,
                          int64_t index, const long double *numbers,
                          const uint64_t *bits)
{
    const struct hob_view *out = &fake->results[0].view;
    const void *p = flex_case_at(out, index);

    if (out->dtype != HOB_DTYPE_BOOL &&
        (HOB_DTYPE_BIT(one->dtype) & HOB_MASK_FLOAT)) {
        long double wanted = reference_float(one->reference, numbers);
        long double got = flex_case_get(out->dtype, p);
        int tiny = fabsl(wanted) < 0x1p-1000L; /* f64: nearly subnormal */
        double ulps = flex_case_ulps(out->dtype, got, wanted);
        double allowed = out->dtype == HOB_DTYPE_F32   ? one->reference->ulps
                         : out->dtype == HOB_DTYPE_F64 ? (tiny           ? 64
                                                          : one->is_gelu ? 8
                                                                         : 4)
                                                       : 1;

        if (one->is_sigmoid_backward && !(fabsl(numbers[0]) <= 1))
            return;

        /* A sum that cancels: its error is that of the summands, up to 1.13
         * times the gradient. */
        if (one->reference->ulps < 0 && !isfinite(numbers[1]))
            allowed = HUGE_VAL; /* infinity times what underflows */
        else if (one->reference->ulps < 0)
            allowed =
                isnormal(numbers[1]) && isfinite(wanted)
                    ? 8 + 8 * flex_case_ulps(out->dtype, wanted,
                                             wanted + numbers[1] *
                                                          unit_of(out->dtype))
                    : 8;

        if (!(ulps <= allowed))
            ck_abort_msg(
                "%s %s %s layout %d seed %" PRIu64 " element %" PRId64
                ": (%.9Lg, %.9Lg, %.9Lg) gives %.9Lg, not %.9Lg: %g ulp",
                one->device->kernels->name, one->entry->op,
                hob_dtype_name(one->dtype), (int)one->layout, one->seed, index,
                numbers[0], numbers[1], numbers[2], got, wanted, ulps);
    } else {
        uint64_t wanted =
            reference_int(one->reference, one->dtype, numbers, bits);
        uint64_t got = flex_case_get_int(out->dtype, p);

        if (got != wanted)
            ck_abort_msg("%s %s %s layout %d seed %" PRIu64 " element %" PRId64
                         ": (%" PRIx64 ", %" PRIx64 ") gives %" PRIx64
                         ", not %" PRIx64,
                         one->device->kernels->name, one->entry->op,
                         hob_dtype_name(one->dtype), (int)one->layout,
                         one->seed, index, bits[0], bits[1], got, wanted);
    }
}

static void check_one(const struct one *one)
{
    const struct reference *reference = one->reference;
    struct flex_case_tensor tensors[3];
    struct fake_call fake;
    uint64_t state = one->seed;
    uint64_t scalar_bits[3] = {0};
    uint32_t tensor_count = 0;
    int to_bool = strstr(one->entry->signature, "-> Bool") != NULL;
    hob_status status;

    fake_call_init(&fake, &host, one->entry->op);
    for (uint32_t i = 0; i < reference->arity; i++) {
        char kind = reference->kinds[i];
        int64_t shape[4];

        if (kind == 's') {
            fake_call_value(&fake, scalar_for(one, &state, &scalar_bits[i]));
            continue;
        }
        memcpy(shape, one->shape, sizeof(shape));
        if (one->broadcast >> i & 1 && one->rank)
            shape[one->rank - 1] = 1;
        flex_case_tensor_init(&tensors[tensor_count],
                              kind == 'b' ? HOB_DTYPE_BOOL : one->dtype,
                              one->rank, shape, one->layout);
        fill(&tensors[tensor_count].view, &state,
             (reference->no_zeros >> i & 1) &&
                 !(HOB_DTYPE_BIT(one->dtype) & HOB_MASK_FLOAT));
        fake_call_view(&fake, &tensors[tensor_count].view);
        tensor_count++;
    }
    fake_call_result(&fake, to_bool ? HOB_DTYPE_BOOL : one->dtype, one->rank,
                     one->shape);
    status = fake_call_run(&fake, one->entry, one->device);
    ck_assert_msg(status == HOB_OK, "%s %s: %s", one->entry->op,
                  hob_dtype_name(one->dtype), host.message);
    ck_assert_msg(fake_tensor_intact(&fake.results[0]),
                  "%s wrote beyond its result", one->entry->op);
    for (int64_t i = 0; i < hob_view_count(&fake.results[0].view); i++) {
        long double numbers[3] = {0};
        uint64_t bits[3] = {0};
        uint32_t tensor = 0;

        for (uint32_t a = 0; a < reference->arity; a++) {
            int64_t at = i;

            if (reference->kinds[a] == 's') {
                unsigned char element[8] = {0};

                flex_case_set_int(one->dtype, element, scalar_bits[a]);
                bits[a] = scalar_bits[a];
                numbers[a] = flex_case_get(one->dtype, element);
                continue;
            }
            if (one->broadcast >> a & 1 && one->rank)
                at = i / one->shape[one->rank - 1];
            bits[a] =
                flex_case_get_int(tensors[tensor].view.dtype,
                                  flex_case_at(&tensors[tensor].view, at));
            numbers[a] = flex_case_get(tensors[tensor].view.dtype,
                                       flex_case_at(&tensors[tensor].view, at));
            tensor++;
        }
        check_element(one, &fake, i, numbers, bits);
    }
    while (tensor_count > 0)
        flex_case_tensor_release(&tensors[--tensor_count]);
    fake_call_release(&fake);
}

/* ---- all cases of an entry ---- */

static const struct shape_case {
    uint32_t rank;
    int64_t shape[4];
    int broadcast;
} shape_cases[] = {
    {0, {0}, 0},          {1, {1}, 0},       {1, {37}, 0},
    {1, {0}, 0},          {2, {5, 67}, 0},   {2, {3, 1100}, 0},
    {2, {5, 67}, 1},      {2, {5, 67}, 2},   {2, {3, 1100}, 2},
    {3, {2, 3, 17}, 0},   {3, {4, 1, 5}, 1}, {2, {0, 3}, 0},
    {4, {2, 3, 4, 5}, 2},
};

static void check_entry(const struct hob_entry *entry,
                        struct flex_device *device)
{
    const struct reference *reference = reference_find(entry->op);
    struct one one;

    ck_assert_msg(reference != NULL, "%s has no reference", entry->op);
    memset(&one, 0, sizeof(one));
    one.entry = entry;
    one.reference = reference;
    one.device = device;
    one.is_gelu = !strcmp(entry->op, "gelu");
    one.is_sigmoid_backward = !strcmp(entry->op, "sigmoid_backward");
    for (uint32_t dtype = 1; dtype < HOB_DTYPE_QUANT; dtype++) {
        if (!(reference->mask & HOB_DTYPE_BIT(dtype)))
            continue;
        one.dtype = dtype;
        for (uint32_t s = 0; s < sizeof(shape_cases) / sizeof(shape_cases[0]);
             s++) {
            /* Only several tensors broadcast. */
            if (shape_cases[s].broadcast && !strchr(reference->kinds + 1, 'x'))
                continue;
            one.rank = shape_cases[s].rank;
            memcpy(one.shape, shape_cases[s].shape, sizeof(one.shape));
            one.broadcast = shape_cases[s].broadcast;
            for (uint32_t l = 0; l < FLEX_LAYOUT_COUNT_; l++) {
                one.layout = (enum flex_layout)l;
                one.seed = flex_case_seed();
                check_one(&one);
            }
        }
    }
}

START_TEST(test_elementwise_equals_reference)
{
    const struct hob_entry *entry = &flex_elementwise_entries.entries[_i];

    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        struct flex_device *device;

        if (!flex_case_has(level))
            continue;
        device = flex_case_open(&host, level);
        if (level & 1)
            device->l3_bytes = 0; /* results go past the caches */
        check_entry(entry, device);
        flex_case_close(device);
        ck_assert_uint_eq(host.live_blocks, 0);
    }
}
END_TEST

/* ---- in place, errors, exactness ---- */

START_TEST(test_add_runs_in_place)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    const struct hob_entry *entry =
        fake_entry_find(flex_elementwise_entries.entries,
                        flex_elementwise_entries.count, "add");
    struct fake_call fake;
    struct hob_view view = {.dtype = HOB_DTYPE_F32, .rank = 1};
    float a[3000], b[3000];

    for (int i = 0; i < 3000; i++) {
        a[i] = (float)i;
        b[i] = 0.5f;
    }
    view.shape[0] = 3000;
    view.strides[0] = 1;
    fake_call_init(&fake, &host, "add");
    view.data = a;
    fake_call_view(&fake, &view);
    view.data = b;
    fake_call_view(&fake, &view);
    fake_call_result_in_place(&fake, 0);
    ck_assert_int_eq(fake_call_run(&fake, entry, device), HOB_OK);
    for (int i = 0; i < 3000; i++)
        if (a[i] != (float)i + 0.5f)
            ck_abort_msg("element %d", i);
    fake_call_release(&fake);
    flex_case_close(device);
}
END_TEST

START_TEST(test_div_names_the_zero)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    const struct hob_entry *entry =
        fake_entry_find(flex_elementwise_entries.entries,
                        flex_elementwise_entries.count, "div");
    int64_t shape = 300000;
    struct fake_tensor a, b;
    struct fake_call fake;

    fake_tensor_init(&a, HOB_DTYPE_I32, 1, &shape, 0);
    fake_tensor_init(&b, HOB_DTYPE_I32, 1, &shape, 0);
    for (int64_t i = 0; i < shape; i++) {
        ((int32_t *)a.view.data)[i] = 7;
        /* Two zeros in two pieces: the first one is named. */
        ((int32_t *)b.view.data)[i] = i != 12345 && i != 290000;
    }
    fake_call_init(&fake, &host, "div");
    fake_call_view(&fake, &a.view);
    fake_call_view(&fake, &b.view);
    fake_call_result(&fake, HOB_DTYPE_I32, 1, &shape);
    ck_assert_int_eq(fake_call_run(&fake, entry, device), HOB_ERR_RANGE);
    ck_assert_ptr_nonnull(
        strstr(host.message, "div: division by zero at element 12345"));
    fake_call_release(&fake);
    fake_tensor_release(&a);
    fake_tensor_release(&b);
    flex_case_close(device);
}
END_TEST

START_TEST(test_clamp_accepts_absent_bounds)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    const struct hob_entry *entry =
        fake_entry_find(flex_elementwise_entries.entries,
                        flex_elementwise_entries.count, "clamp");
    int8_t in[4] = {-128, -1, 1, 127};
    struct hob_view view = {.data = in, .dtype = HOB_DTYPE_I8, .rank = 1};
    struct fake_call fake;

    view.shape[0] = 4;
    view.strides[0] = 1;
    for (int which = 0; which < 3; which++) {
        const int8_t *out;

        fake_call_init(&fake, &host, "clamp");
        fake_call_view(&fake, &view);
        fake_call_value(&fake, which == 0 ? hob_i64(0) : hob_none());
        fake_call_value(&fake, which == 1 ? hob_i64(0) : hob_none());
        fake_call_result(&fake, HOB_DTYPE_I8, 1, view.shape);
        ck_assert_int_eq(fake_call_run(&fake, entry, device), HOB_OK);
        out = fake.results[0].view.data;
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(out[i], which == 0   ? (in[i] < 0 ? 0 : in[i])
                                     : which == 1 ? (in[i] > 0 ? 0 : in[i])
                                                  : in[i]);
        fake_call_release(&fake);
    }
    flex_case_close(device);
}
END_TEST

/* f16 and bf16: every value survives a round trip, and rounding is to even. */
START_TEST(test_half_conversions_are_exact)
{
    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        const struct flex_kernels *kernels = flex_kernels_find(level);

        for (uint32_t d = HOB_DTYPE_F16; kernels && d <= HOB_DTYPE_BF16; d++) {
            for (uint32_t bits = 0; bits < 65536; bits++) {
                uint16_t half = (uint16_t)bits, back = 0;
                float single;

                kernels->load_f32[d](&single, &half, 1);
                kernels->store_f32[d](&back, &single, 1);
                if (back != half &&
                    !(single != single && (back & 0x7fff) > 0x7c00))
                    ck_abort_msg("%s %s %04x comes back as %04x", kernels->name,
                                 hob_dtype_name(d), bits, back);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flex elementwise");
    TCase *cases = tcase_create("entries");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, test_elementwise_equals_reference, 0,
                        (int)flex_elementwise_entries.count);
    tcase_add_test(cases, test_add_runs_in_place);
    tcase_add_test(cases, test_div_names_the_zero);
    tcase_add_test(cases, test_clamp_accepts_absent_bounds);
    tcase_add_test(cases, test_half_conversions_are_exact);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
