/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - the inputs of cases, and what the ways in C share.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "ceilings.h"
#include "null_plugin.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int32_t bench_rank(const struct bench_input *input)
{
    int32_t rank = 0;

    while (rank < BENCH_RANK && input->shape[rank])
        rank++;
    return rank;
}

int64_t bench_count(const struct bench_input *input)
{
    int64_t count = 1;

    for (int32_t i = 0; i < bench_rank(input); i++)
        count *= input->shape[i];
    return count;
}

int bench_input_count(const struct bench_case *c)
{
    int count = 0;

    while (count < BENCH_INPUTS && c->in[count].shape[0])
        count++;
    return count;
}

size_t bench_size(hob_dtype dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
    case HOB_DTYPE_I64:
        return 8;
    case HOB_DTYPE_F32:
    case HOB_DTYPE_I32:
        return 4;
    case HOB_DTYPE_BF16:
    case HOB_DTYPE_F16:
        return 2;
    default:
        return 1;
    }
}

int bench_sets(const struct bench_case *c)
{
    const double cache = bench_cache_bytes(3);
    double bytes = 0;
    int sets = 1;

    if (c->flops > 0 || c->bytes < 0.75 * cache)
        return 1;
    for (int i = 0; i < bench_input_count(c); i++)
        bytes +=
            (double)bench_count(&c->in[i]) * (double)bench_size(c->in[i].dtype);
    while (bytes > 0 && sets < BENCH_SETS && sets * bytes < 2 * cache)
        sets++;
    return sets;
}

/* xorshift64*: G. Marsaglia, "Xorshift RNGs", 2003; S. Vigna, 2016. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Round to the nearest, ties to even; no NaN comes here. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void fill(struct bench_array *array, uint64_t seed)
{
    const struct bench_input *input = array->input;
    const int is_default = input->low == 0 && input->high == 0;
    const double low = is_default ? -1 : input->low;
    const double width = is_default ? 2 : input->high - low;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;

    for (int64_t i = 0; i < array->count; i++) {
        double part = (double)(next_random(&state) >> 11) * 0x1p-53;
        double value = low + width * part;

        switch (input->dtype) {
        case HOB_DTYPE_F64:
            ((double *)array->data)[i] = value;
            break;
        case HOB_DTYPE_F32:
            ((float *)array->data)[i] = (float)value;
            break;
        case HOB_DTYPE_BF16:
            ((uint16_t *)array->data)[i] = to_bf16((float)value);
            break;
        case HOB_DTYPE_I64:
            ((int64_t *)array->data)[i] = (int64_t)value;
            break;
        case HOB_DTYPE_I32:
            ((int32_t *)array->data)[i] = (int32_t)value;
            break;
        case HOB_DTYPE_U8:
            ((uint8_t *)array->data)[i] = (uint8_t)value;
            break;
        default: /* bool */
            ((uint8_t *)array->data)[i] = part < 0.5;
        }
    }
}

int bench_make_inputs(const struct bench_case *c, struct bench_array *out)
{
    const int count = bench_input_count(c);

    memset(out, 0, BENCH_INPUTS * sizeof(*out));
    for (int i = 0; i < count; i++) {
        size_t bytes;

        out[i].input = &c->in[i];
        out[i].count = bench_count(&c->in[i]);
        bytes = (size_t)out[i].count * bench_size(c->in[i].dtype);
        out[i].data = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (!out[i].data) {
            bench_free_inputs(out, count);
            return 0;
        }
        fill(&out[i], (uint64_t)i + 1);
    }
    if (c->fill)
        c->fill(c, out);
    return 1;
}

void bench_free_inputs(struct bench_array *arrays, int count)
{
    for (int i = 0; i < count; i++)
        free(arrays[i].data);
}

double bench_get(const struct bench_array *array, int64_t i)
{
    switch (array->input->dtype) {
    case HOB_DTYPE_F64:
        return ((const double *)array->data)[i];
    case HOB_DTYPE_F32:
        return (double)((const float *)array->data)[i];
    case HOB_DTYPE_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)array->data)[i] << 16;
        float value;

        memcpy(&value, &bits, sizeof(value));
        return (double)value;
    }
    case HOB_DTYPE_I64:
        return (double)((const int64_t *)array->data)[i];
    case HOB_DTYPE_I32:
        return ((const int32_t *)array->data)[i];
    default:
        return ((const uint8_t *)array->data)[i];
    }
}

hob_status bench_open(struct bench_job *job, const char *spec,
                      hob_runtime **out_runtime, hob_device **out_device)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_status st;

    options.policy = HOB_POLICY_REPORT;
    options.threads = (uint32_t)job->threads;
    options.static_plugins = null_plugins;
    options.static_plugin_count = 2;
    *out_device = NULL;
    st = hob_runtime_open(&options, out_runtime, &job->error);
    if (!st)
        st = hob_device_open(*out_runtime, spec, out_device, &job->error);
    return st;
}

hob_tensor *bench_call(hob_scope *scope, const char *name,
                       const hob_value *args, uint32_t count)
{
    struct hob_op_ref ref = {name, 0};
    const uint32_t op = hob_op_resolve(scope, &ref);

    if (op == UINT32_MAX)
        return hob_scope_host(scope)->scope_fail(
            scope, HOB_ERR_NOT_FOUND, "the op %s is not there", name);
    return hob_scope_host(scope)->call1(scope, op, args, count);
}
