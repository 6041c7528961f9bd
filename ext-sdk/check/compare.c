/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - what came of two calls, side by side.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

int check_same_metas(const struct check_outcome *a,
                     const struct check_outcome *b, int is_strict, char *why,
                     size_t size)
{
    char first[HOB__META_TEXT], second[HOB__META_TEXT];

    for (uint32_t i = 0; i < a->count; i++) {
        struct hob_meta have = a->metas[i], want = b->metas[i];

        /* The other side may have been computed in f64. */
        if (!is_strict && (HOB_MASK_FLOAT & HOB_DTYPE_BIT(want.dtype)) &&
            (HOB_MASK_FLOAT & HOB_DTYPE_BIT(have.dtype)))
            want.dtype = have.dtype;
        if (a->present[i] != b->present[i]) {
            (void)snprintf(why, size, "result %u is %s, not %s", i,
                           a->present[i] ? "there" : "absent",
                           b->present[i] ? "there" : "absent");
            return 0;
        }
        if (!a->present[i])
            continue;
        if (have.dtype == want.dtype && have.rank == want.rank &&
            !memcmp(have.shape, want.shape, have.rank * sizeof(int64_t)))
            continue;
        (void)snprintf(why, size, "result %u is %s, not %s", i,
                       hob__meta_text(&have, first, sizeof(first)),
                       hob__meta_text(&b->metas[i], second, sizeof(second)));
        return 0;
    }
    return 1;
}

/* Both failed in the same way, or both came to something: go on comparing. */
static int same_status(const struct check_outcome *a,
                       const struct check_outcome *b, char *why, size_t size)
{
    if (a->status == b->status && a->count == b->count)
        return 1;
    if (a->status)
        (void)snprintf(why, size, "it fails with %s: %s",
                       hob_status_name(a->status), a->message);
    else
        (void)snprintf(why, size, "it succeeds, else it fails with %s: %s",
                       hob_status_name(b->status), b->message);
    return 0;
}

/* Results that are no tensors: the same values, NaN being NaN. */
static int same_plains(const struct check_outcome *a,
                       const struct check_outcome *b, char *why, size_t size)
{
    for (uint32_t i = 0; i < a->plain_count && i < b->plain_count; i++) {
        const hob_value *x = &a->plains[i], *y = &b->plains[i];

        if (x->tag == y->tag &&
            (x->tag == HOB_TAG_ABSENT || x->u.u64 == y->u.u64))
            continue;
        (void)snprintf(why, size, "plain result %u is %lld, not %lld", i,
                       (long long)x->u.i64, (long long)y->u.i64);
        return 0;
    }
    return 1;
}

static int is_nan(double value)
{
    return value != value;
}

int check_same(const struct check_outcome *a, const struct check_outcome *b,
               char *why, size_t size)
{
    if (!same_status(a, b, why, size) ||
        !check_same_metas(a, b, 1, why, size) || !same_plains(a, b, why, size))
        return 0;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t dtype = a->metas[i].dtype, width = hob_dtype_size(dtype);

        for (uint64_t at = 0; a->data[i] && at < a->bytes[i]; at += width) {
            const char *x = (const char *)a->data[i] + at;
            const char *y = (const char *)b->data[i] + at;

            if (!memcmp(x, y, width) || (is_nan(check_decode(dtype, x)) &&
                                         is_nan(check_decode(dtype, y))))
                continue;
            (void)snprintf(why, size,
                           "element %llu of result %u is %.9g, "
                           "not %.9g",
                           (unsigned long long)(at / width), i,
                           check_decode(dtype, x), check_decode(dtype, y));
            return 0;
        }
    }
    return 1;
}

double check_tolerance(const struct check_lab *lab, uint32_t dtype)
{
    /* Sizes are small, so sums are short: some tens of roundings. A body in
     * a narrow dtype rounds after each of its ops. */
    static const double defaults[HOB_DTYPE_COUNT_] = {[HOB_DTYPE_F64] = 1e-10,
                                                      [HOB_DTYPE_F32] = 2e-5,
                                                      [HOB_DTYPE_F16] = 1e-2,
                                                      [HOB_DTYPE_BF16] = 8e-2};

    return lab->hints->tolerance[dtype] > 0 ? lab->hints->tolerance[dtype]
                                            : defaults[dtype];
}

static double magnitude(const struct check_outcome *outcome, uint32_t index)
{
    uint32_t dtype = outcome->metas[index].dtype;
    uint32_t width = hob_dtype_size(dtype);
    double most = 1;

    for (uint64_t at = 0; outcome->data[index] && at < outcome->bytes[index];
         at += width) {
        double value =
            check_decode(dtype, (const char *)outcome->data[index] + at);
        double size = value < 0 ? -value : value;

        if (size > most && size < 1e300)
            most = size;
    }
    return most;
}

static int near_result(const struct check_lab *lab,
                       const struct check_outcome *got,
                       const struct check_outcome *wanted, uint32_t index,
                       char *why, size_t size)
{
    uint32_t dtype = got->metas[index].dtype;
    uint32_t other = wanted->metas[index].dtype;
    uint32_t width = hob_dtype_size(dtype), other_width = hob_dtype_size(other);
    double tolerance = check_tolerance(lab, dtype) * magnitude(wanted, index);
    uint64_t count = got->data[index] ? got->bytes[index] / width : 0;

    for (uint64_t i = 0; i < count; i++) {
        double x =
            check_decode(dtype, (const char *)got->data[index] + i * width);
        double y = check_decode(other, (const char *)wanted->data[index] +
                                           i * other_width);
        double distance = x > y ? x - y : y - x;

        if (x == y || (is_nan(x) && is_nan(y)) || distance <= tolerance)
            continue;
        (void)snprintf(why, size,
                       "element %llu of result %u is %.9g, not %.9g "
                       "(tolerance %.2g)",
                       (unsigned long long)i, index, x, y, tolerance);
        return 0;
    }
    return 1;
}

int check_near(const struct check_lab *lab, const struct check_outcome *got,
               const struct check_outcome *wanted, char *why, size_t size)
{
    if (!same_status(got, wanted, why, size) ||
        !check_same_metas(got, wanted, 0, why, size) ||
        !same_plains(got, wanted, why, size))
        return 0;
    for (uint32_t i = 0; i < got->count; i++)
        if (!near_result(lab, got, wanted, i, why, size))
            return 0;
    return 1;
}

/* ---- failures ---- */

int check_is_refusal(hob_status status)
{
    return status == HOB_ERR_ARGUMENT || status == HOB_ERR_SHAPE ||
           status == HOB_ERR_DTYPE || status == HOB_ERR_RANGE ||
           status == HOB_ERR_UNSUPPORTED;
}

void check_failure(struct check_lab *lab, const struct check_outcome *outcome,
                   const char *where)
{
    /* How the core fills in for a plugin that said nothing (base.c,
     * boundary.c, dispatch.c). */
    static const char *const silent[] = {
        "failed without a message", "failed with HOB_", "failed with ?",
        "cannot be prepared: HOB_", "cannot be prepared: ?"};
    const char *text = outcome->message;

    if (!outcome->status)
        return;
    for (uint32_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        if (strstr(text, silent[i])) {
            check_found(lab->child, CHECK_NO_MESSAGE, "%s: %s", where, text);
            return;
        }
    if (strstr(text, "inferred was"))
        check_found(lab->child, CHECK_METADATA, "%s: %s", where, text);
    else if (!check_is_refusal(outcome->status))
        check_found(lab->child, CHECK_FAILS, "%s: %s: %s", where,
                    hob_status_name(outcome->status), text);
}
