/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc.c - connectionist temporal classification and its gradient: Graves et
 * al., ICML 2006. The states are the labels with blanks between and around
 * them; a sample's are walked from step to step, one sample a thread.
 */
#include "../kernels/ctc.h"
#include "../wide.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* States before the first, which NOW[i - 2] reads. */
enum { BEFORE = 2 };

struct ctc {
    struct flex_device *device;
    const struct flex_ctc_kernels *kernels;
    const char *log_probs;  /* [steps, batch, classes], of SIZE bytes each */
    const char *grad;       /* [batch]; NULL for the loss */
    char *out;              /* [batch], or that of log_probs */
    const int64_t *targets; /* [batch, length] */
    const int64_t *input_lengths, *target_lengths;
    int64_t steps, batch, classes, length, states, blank;
    uint32_t size;
    int32_t failed;
};

/* A sample at work. */
struct sample {
    int64_t index;
    int64_t steps; /* of its own, 1 at least */
    int64_t last;  /* state of its last blank */
    int64_t row;   /* elements from one step's alpha to the next */
    double *alpha; /* all steps of the gradient, two in turn for a loss */
    double *skip;  /* 0 where two states before may be left, else NOTHING */
    double *g;     /* of alpha */
    double *shares;
    char *emit;
    int64_t *labels;
};

static const struct flex_ctc_kernels *
ctc_kernels(const struct flex_device *device, uint32_t dtype)
{
    const struct flex_ctc_kernels *table =
        FLEX_BY_ISA(device->isa, flex_ctc_kernels);

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_CTC_F64 : FLEX_CTC_F32];
}

static uint64_t scratch_bytes(const struct ctc *ctc)
{
    const int64_t rows = ctc->grad ? ctc->steps : 2;

    return (uint64_t)((ctc->states + BEFORE) * (rows + 7)) * 8;
}

/* Lay the parts of SAMPLE over MEMORY and fill in what does not change. */
static void lay_out(const struct ctc *ctc, char *memory, struct sample *s)
{
    const int64_t row = ctc->states + BEFORE;
    const int64_t rows = ctc->grad ? ctc->steps : 2;
    double *numbers = (double *)(void *)memory;

    s->row = row;
    s->alpha = numbers + BEFORE;
    s->skip = numbers + rows * row;
    s->g = s->skip + row;
    s->shares = s->g + row;
    s->labels = (int64_t *)(void *)(s->shares + 3 * row);
    s->emit = (char *)(s->labels + row);
    for (int64_t i = 0; i < rows; i++)
        s->alpha[i * row - 1] = s->alpha[i * row - 2] = FLEX_CTC_NOTHING;
}

static void begin(const struct ctc *ctc, struct sample *s, int64_t index)
{
    const int64_t *targets = ctc->targets + index * ctc->length;
    const int64_t steps = ctc->input_lengths[index];

    s->index = index;
    s->steps = steps < 1 ? 1 : steps > ctc->steps ? ctc->steps : steps;
    s->last = 2 * ctc->target_lengths[index];
    for (int64_t i = 0; i < ctc->states; i++) {
        s->labels[i] = i % 2 ? targets[i / 2] : ctc->blank;
        s->skip[i] = i > 2 && s->labels[i] != ctc->blank &&
                             s->labels[i] != s->labels[i - 2]
                         ? 0
                         : FLEX_CTC_NOTHING;
    }
}

/* The logarithms of the states' labels at step T. */
static void emit(const struct ctc *ctc, struct sample *s, int64_t t)
{
    const char *row =
        ctc->log_probs + (t * ctc->batch + s->index) * ctc->classes * ctc->size;

    if (ctc->size == 8)
        for (int64_t i = 0; i < ctc->states; i++) {
            double p = ((const double *)(const void *)row)[s->labels[i]];

            ((double *)(void *)s->emit)[i] =
                p < FLEX_CTC_NOTHING ? FLEX_CTC_NOTHING : p;
        }
    else
        for (int64_t i = 0; i < ctc->states; i++) {
            float p = ((const float *)(const void *)row)[s->labels[i]];

            ((float *)(void *)s->emit)[i] =
                p < (float)FLEX_CTC_NOTHING ? (float)FLEX_CTC_NOTHING : p;
        }
}

static double *alpha_at(const struct ctc *ctc, const struct sample *s,
                        int64_t t)
{
    return s->alpha + (ctc->grad ? t : t % 2) * s->row;
}

/* All steps forwards; returns the last one's states. */
static const double *walk(const struct ctc *ctc, struct sample *s)
{
    double *alpha = alpha_at(ctc, s, 0);

    emit(ctc, s, 0);
    for (int64_t i = 0; i < ctc->states; i++)
        alpha[i] = i > 1            ? FLEX_CTC_NOTHING
                   : ctc->size == 8 ? ((double *)(void *)s->emit)[i]
                                    : (double)((float *)(void *)s->emit)[i];
    for (int64_t t = 1; t < s->steps; t++) {
        emit(ctc, s, t);
        ctc->kernels->step(alpha_at(ctc, s, t), alpha, s->skip, s->emit,
                           ctc->states);
        alpha = alpha_at(ctc, s, t);
    }
    return alpha;
}

/* The loss; the parts in it of the last label and the blank behind it. */
static double loss_of(const struct sample *s, const double *alpha,
                      double parts[2])
{
    const double blank = alpha[s->last];
    const double label = s->last ? alpha[s->last - 1] : FLEX_CTC_NOTHING;
    const double most = blank > label ? blank : label;
    const double sum = exp(blank - most) + (s->last ? exp(label - most) : 0);
    const double total = most + log(sum);

    parts[0] = s->last ? exp(label - total) : 0;
    parts[1] = exp(blank - total);
    return -total > -FLEX_CTC_NOTHING / 2 ? (double)INFINITY : -total;
}

/* Take the gradient of the states at step T as that of their labels. */
static void put(const struct ctc *ctc, const struct sample *s, int64_t t)
{
    char *row =
        ctc->out + (t * ctc->batch + s->index) * ctc->classes * ctc->size;
    double blank = 0;

    for (int64_t i = 0; i < ctc->states; i += 2)
        blank += s->g[i];
    if (ctc->size == 8) {
        double *out = (double *)(void *)row;

        out[ctc->blank] += blank;
        for (int64_t i = 1; i < ctc->states; i += 2)
            out[s->labels[i]] += s->g[i];
    } else {
        float *out = (float *)(void *)row;

        out[ctc->blank] += (float)blank;
        for (int64_t i = 1; i < ctc->states; i += 2)
            out[s->labels[i]] += (float)s->g[i];
    }
}

static void walk_back(const struct ctc *ctc, struct sample *s, double grad,
                      const double parts[2])
{
    memset(s->g, 0, (size_t)ctc->states * sizeof(*s->g));
    if (s->last)
        s->g[s->last - 1] = -grad * parts[0];
    s->g[s->last] = -grad * parts[1];
    for (int64_t t = s->steps - 1; t > 0; t--) {
        put(ctc, s, t);
        ctc->kernels->back(s->g, alpha_at(ctc, s, t - 1), s->skip, s->shares,
                           ctc->states);
    }
    for (int64_t i = 2; i < ctc->states; i++) /* none begins there */
        s->g[i] = 0;
    put(ctc, s, 0);
}

static double load(const struct ctc *ctc, const char *numbers, int64_t index)
{
    return ctc->size == 8
               ? ((const double *)(const void *)numbers)[index]
               : (double)((const float *)(const void *)numbers)[index];
}

static void ctc_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct ctc *ctc = context;
    char *memory = flex_scratch_take(ctc->device, scratch_bytes(ctc));
    struct sample s;

    (void)worker;
    if (!memory) {
        __atomic_store_n(&ctc->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    lay_out(ctc, memory, &s);
    for (int64_t i = first; i < last; i++) {
        double parts[2], loss;

        begin(ctc, &s, i);
        loss = loss_of(&s, walk(ctc, &s), parts);
        if (ctc->grad) {
            if (loss != (double)INFINITY) /* constant there */
                walk_back(ctc, &s, load(ctc, ctc->grad, i), parts);
        } else if (ctc->size == 8) {
            ((double *)(void *)ctc->out)[i] = loss;
        } else {
            ((float *)(void *)ctc->out)[i] = (float)loss;
        }
    }
    flex_scratch_give(ctc->device, memory, scratch_bytes(ctc));
}

/* The lists of CALL: targets and both lengths. */
struct ctc_lists {
    int64_t *numbers[3];
    uint64_t bytes[3];
};

static hob_status take_lists(struct hob_call *call, struct flex_device *device,
                             struct ctc_lists *out)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct hob_view *view = hob_arg_view(call, 1 + i);
        const int64_t count = hob_view_count(view);
        struct flex_loop loop;
        char *raw;

        out->bytes[i] = (uint64_t)count * 16 + FLEX_ALIGN;
        out->numbers[i] = flex_scratch_take(device, out->bytes[i]);
        if (!out->numbers[i])
            return call->host->fail(call, HOB_ERR_MEMORY,
                                    "%s: no memory for %" PRId64 " numbers",
                                    call->op_name, count);
        if (!count)
            continue;
        raw = (char *)(out->numbers[i] + count);
        flex_loop_init(&loop, view);
        flex_loop_gather(&loop, 0, count, raw);
        device->kernels->cast[HOB_DTYPE_I64][view->dtype](out->numbers[i], raw,
                                                          count);
    }
    return HOB_OK;
}

/* Lengths of the inputs need no check: begin() cuts them. */
static hob_status check_lists(struct hob_call *call, const struct ctc *ctc)
{
    for (int64_t i = 0; i < ctc->batch * ctc->length; i++)
        if (ctc->targets[i] < 0 || ctc->targets[i] >= ctc->classes)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: targets[%" PRId64 ", %" PRId64 "] is %" PRId64
                "; it must be one of the classes 0..%" PRId64
                ", behind the sample's length too",
                call->op_name, i / ctc->length, i % ctc->length,
                ctc->targets[i], ctc->classes - 1);
    for (int64_t i = 0; i < ctc->batch; i++) {
        if (ctc->input_lengths[i] < 0 || ctc->input_lengths[i] > ctc->steps)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: input_lengths[%" PRId64 "] is %" PRId64
                ", not 0 to the %" PRId64 " steps of log_probs",
                call->op_name, i, ctc->input_lengths[i], ctc->steps);
        if (ctc->target_lengths[i] < 0 || ctc->target_lengths[i] > ctc->length)
            return call->host->fail(
                call, HOB_ERR_RANGE,
                "%s: target_lengths[%" PRId64 "] is %" PRId64
                "; targets has room for 0..%" PRId64,
                call->op_name, i, ctc->target_lengths[i], ctc->length);
    }
    return HOB_OK;
}

/* Loss or (GRAD_ARG is its argument) gradient, the blank's number in
 * BLANK_ARG. */
static hob_status run(struct flex_device *device, struct hob_call *call,
                      uint32_t grad_arg, uint32_t blank_arg)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct ctc ctc = {.device = device,
                      .kernels = ctc_kernels(device, x->dtype),
                      .steps = x->shape[0],
                      .batch = x->shape[1],
                      .classes = x->shape[2],
                      .length = hob_arg_view(call, 1)->shape[1],
                      .blank = flex_arg_i64(call, blank_arg),
                      .size = x->dtype == HOB_DTYPE_F64 ? 8 : 4};
    struct flex_wide log_probs = {0}, grad = {0}, result = {0};
    struct ctc_lists lists = {{NULL, NULL, NULL}, {0, 0, 0}};
    hob_status st;

    ctc.states = 2 * ctc.length + 1;
    st = take_lists(call, device, &lists);
    if (st)
        goto out;
    ctc.targets = lists.numbers[0];
    ctc.input_lengths = lists.numbers[1];
    ctc.target_lengths = lists.numbers[2];
    st = check_lists(call, &ctc);
    if (st)
        goto out;
    st = flex_wide_read(device, x, &log_probs);
    if (!st && grad_arg)
        st = flex_wide_read(device, hob_arg_view(call, grad_arg), &grad);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        ctc.log_probs = log_probs.data;
        ctc.grad = grad_arg ? grad.data : NULL;
        ctc.out = result.data;
        if (grad_arg)
            memset(ctc.out, 0, (size_t)(hob_view_count(out) * ctc.size));
        flex_parallel(device, ctc.batch,
                      FLEX_GRAIN_DEAR / (ctc.steps * ctc.states + 1) + 1,
                      ctc_range, &ctc);
        flex_wide_finish(device, out, &result);
    }
    if (st || ctc.failed)
        st = call->host->fail(call, HOB_ERR_MEMORY,
                              "%s: no memory for %" PRId64 " steps",
                              call->op_name, ctc.steps);
out:
    flex_wide_release(device, &log_probs);
    flex_wide_release(device, &grad);
    flex_wide_release(device, &result);
    for (uint32_t i = 0; i < 3; i++)
        flex_scratch_give(device, lists.numbers[i], lists.bytes[i]);
    return st;
}

static hob_status ctc_loss(void *device, struct hob_call *call)
{
    return run(device, call, 0, 4);
}

static hob_status ctc_loss_backward(void *device, struct hob_call *call)
{
    return run(device, call, 4, 5);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT, HOB_MASK_INT,
                                 HOB_MASK_INT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "ctc_loss",
        .signature = "(log_probs: Float, targets: Int, input_lengths: Int, "
                     "target_lengths: Int, blank: i64 = 0) -> log_probs",
        .dtypes = masks,
        .dtype_count = 4,
        .execute = ctc_loss,
    },
    {
        .op = "ctc_loss_backward",
        .signature =
            "(log_probs: Float, targets: Int, input_lengths: Int, "
            "target_lengths: Int, grad: Float, blank: i64 = 0) -> log_probs",
        .dtypes = masks,
        .dtype_count = 5,
        .execute = ctc_loss_backward,
    },
};

const struct flex_entries flex_ctc_entries = {entries, sizeof(entries) /
                                                           sizeof(entries[0])};
