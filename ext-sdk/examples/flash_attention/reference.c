/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - see reference.h. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double values_next(uint32_t *state)
{
    *state = *state * 1103515245 + 12345;
    return ((int)(*state >> 16 & 127) - 64) / 64.0;
}

/* Whether a mask of KIND hides J from I: a third, and all in every 7th row. */
static int mask_bit(enum mask_kind kind, int64_t b, int64_t i, int64_t j)
{
    if (kind == KEY_MASK)
        b = i = 0;
    if (kind == QUERY_MASK)
        return i % 3 == 1;
    if (kind != KEY_MASK && (i + b) % 7 == 3)
        return 1;
    return (b * 31 + i * 17 + j * j * 5 + j * 11) % 3 == 1;
}

int values_make(const struct problem *p, struct values *out)
{
    const int64_t shared = p->shared ? 1 : p->lead;
    uint32_t state = 12345;

    out->counts[Q] = p->lead * p->s_q * p->d;
    out->counts[K] = shared * p->s_k * p->d;
    out->counts[V] = shared * p->s_k * p->d_v;
    out->out_count = p->lead * p->s_q * p->d_v;
    out->mask = malloc((size_t)(p->lead * p->s_q * p->s_k) + 1);
    out->out = calloc((size_t)out->out_count + 1, sizeof(double));
    for (int a = 0; a < ARGUMENTS; a++)
        out->at[a] = malloc(((size_t)out->counts[a] + 1) * sizeof(double));
    if (!out->mask || !out->out || !out->at[Q] || !out->at[K] || !out->at[V])
        return 1;
    for (int a = 0; a < ARGUMENTS; a++)
        for (int64_t i = 0; i < out->counts[a]; i++)
            out->at[a][i] = values_next(&state);
    for (int64_t i = 0; i < p->lead * p->s_q * p->s_k; i++)
        out->mask[i] = (uint8_t)mask_bit(p->mask, i / p->s_k / p->s_q,
                                         i / p->s_k % p->s_q, i % p->s_k);
    return 0;
}

void values_free(struct values *values)
{
    for (int a = 0; a < ARGUMENTS; a++)
        free(values->at[a]);
    free(values->mask);
    free(values->out);
}

int is_hidden(const struct problem *p, const struct values *values, int64_t b,
              int64_t i, int64_t j)
{
    return (p->mask && values->mask[(b * p->s_q + i) * p->s_k + j]) ||
           (p->causal && j > i + p->s_k - p->s_q);
}

int is_dead(const struct problem *p, const struct values *values, int64_t b,
            int64_t i)
{
    for (int64_t j = 0; j < p->s_k; j++)
        if (!is_hidden(p, values, b, i, j))
            return 0;
    return 1;
}

/* One row of the result, for the query at Q; WEIGHTS has room for s_k. */
static void attend_row(const struct problem *p, struct values *values,
                       int64_t b, int64_t i, double *weights)
{
    const double *q = values->at[Q] + (b * p->s_q + i) * p->d;
    const int64_t shared = p->shared ? 0 : b;
    const double *k = values->at[K] + shared * p->s_k * p->d;
    const double *v = values->at[V] + shared * p->s_k * p->d_v;
    double *out = values->out + (b * p->s_q + i) * p->d_v;
    const double scale = p->scale != 0 ? p->scale
                         : p->d        ? 1 / sqrt((double)p->d)
                                       : 1;
    double max = -INFINITY, sum = 0;

    for (int64_t c = 0; c < p->d_v; c++)
        out[c] = 0;
    if (is_dead(p, values, b, i))
        return;
    for (int64_t j = 0; j < p->s_k; j++) {
        double score = 0;

        for (int64_t c = 0; c < p->d; c++)
            score += q[c] * k[j * p->d + c];
        weights[j] = is_hidden(p, values, b, i, j) ? -INFINITY : score * scale;
        if (weights[j] > max)
            max = weights[j];
    }
    for (int64_t j = 0; j < p->s_k; j++)
        sum += weights[j] = exp(weights[j] - max);
    for (int64_t j = 0; j < p->s_k; j++)
        for (int64_t c = 0; c < p->d_v; c++)
            out[c] += weights[j] / sum * v[j * p->d_v + c];
}

void attend(const struct problem *p, struct values *values)
{
    double *weights = malloc(((size_t)p->s_k + 1) * sizeof(*weights));

    for (int64_t i = 0; i < p->lead * p->s_q && weights; i++)
        attend_row(p, values, i / p->s_q, i % p->s_q, weights);
    free(weights);
}

double weighed(const struct problem *p, struct values *values,
               const double *weights)
{
    double sum = 0;

    attend(p, values);
    for (int64_t i = 0; i < values->out_count; i++)
        sum += weights[i] * values->out[i];
    return sum;
}

static void move(struct values *values, int argument, double *const *direction,
                 double step)
{
    for (int a = 0; a < ARGUMENTS; a++)
        for (int64_t i = 0; i < values->counts[a]; i++)
            if (argument == a || argument == ARGUMENTS)
                values->at[a][i] += step * direction[a][i];
}

double slope_along(const struct problem *p, struct values *values,
                   const double *weights, int argument,
                   double *const *direction, double step)
{
    double high, low;

    move(values, argument, direction, step);
    high = weighed(p, values, weights);
    move(values, argument, direction, -2 * step);
    low = weighed(p, values, weights);
    move(values, argument, direction, step);
    return (high - low) / (2 * step);
}
