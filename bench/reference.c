/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "reference.h"

#include "suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKED_LEAST = 2000 };
/* Flops that it may take, element by element. */
static const double reference_flops = 1e9;

/* Some elements, spread over all, if all would take too long. */
static int64_t checked_count(const struct bench_case *c)
{
    const double each = c->flops / (double)c->out_count + 1;
    double count = reference_flops / each;

    if (count < CHECKED_LEAST)
        count = CHECKED_LEAST;
    return count < (double)c->out_count ? (int64_t)count : c->out_count;
}

int reference_make(const struct bench_case *c, const struct bench_array *in,
                   struct reference *out)
{
    int64_t compared = 0;

    memset(out, 0, sizeof(*out));
    out->count = c->all ? c->out_count : c->at ? checked_count(c) : 0;
    out->values = calloc((size_t)out->count + 1, sizeof(*out->values));
    if (out->count < c->out_count)
        out->indices = calloc((size_t)out->count + 1, sizeof(*out->indices));
    if (!out->values || (out->count < c->out_count && !out->indices))
        return 0;
    if (c->all)
        c->all(c, in, out->values);
    for (int64_t k = 0; !c->all && k < out->count; k++) {
        int64_t i = k;

        if (out->indices) {
            /* The golden ratio's multiples; and the first and the last. */
            double part = fmod((double)k * 0.6180339887498949, 1);

            i = k == 0   ? 0
                : k == 1 ? c->out_count - 1
                         : (int64_t)(part * (double)c->out_count);
            out->indices[k] = i;
        }
        out->values[k] = c->at(c, in, i);
    }
    for (int64_t k = 0; k < out->count; k++)
        if (!isnan(out->values[k])) {
            out->scale += fabs(out->values[k]);
            compared++;
        }
    out->scale /= compared > 0 ? (double)compared : 1;
    return 1;
}

void reference_free(struct reference *reference)
{
    free(reference->indices);
    free(reference->values);
}

/* How far GOT is from WANT, 0 if that is not to be compared. */
static double distance(const struct reference *wanted, double got, double want)
{
    if (got == want || isnan(want))
        return 0;
    return fabs(got - want) / (fabs(want) + wanted->scale);
}

enum measure_state reference_compare(const struct bench_case *c,
                                     const struct reference *wanted,
                                     const char *path, double *out_error,
                                     char *message, size_t size)
{
    const double tolerance = c->is_exact        ? 0
                             : c->tolerance > 0 ? c->tolerance
                                                : 1e-5;
    const size_t count = (size_t)c->out_count;
    double *got = calloc(count + 1, sizeof(*got));
    FILE *file = fopen(path, "r");
    enum measure_state state = MEASURE_OK;

    *out_error = 0;
    if (!got || !file || fread(got, sizeof(*got), count, file) != count) {
        (void)snprintf(message, size, "the result cannot be read");
        state = MEASURE_ERROR;
    }
    for (int64_t k = 0; !state && k < wanted->count; k++) {
        const int64_t i = wanted->indices ? wanted->indices[k] : k;
        const double error = distance(wanted, got[i], wanted->values[k]);

        if (error > *out_error)
            *out_error = error;
        if (error <= tolerance)
            continue;
        (void)snprintf(message, size, "element %" PRId64 " is %.9g, not %.9g",
                       i, got[i], wanted->values[k]);
        state = MEASURE_WRONG;
    }
    if (file)
        (void)fclose(file);
    free(got);
    return state;
}
