/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc.c - bodies of connectionist temporal classification and its gradient:
 * Graves et al., ICML 2006, section 4.1, in logarithms.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

/* Stands for the logarithm of 0: sums and gradients of it stay numbers. */
static const double nothing = -1e30;

/* X [n, l] moved by COUNT to the right, NOTHING coming in. */
static hob_tensor *shifted(hob_scope *scope, hob_tensor *x, int64_t count)
{
    const int64_t padding[2] = {count, -count};

    return hob_pad(scope, x, padding, 2, HOB_PAD_MODE_CONSTANT,
                   hob_f64(nothing));
}

static hob_tensor *log_add(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    hob_tensor *most = hob_maximum(scope, a, b);
    hob_tensor *least = hob_minimum(scope, a, b);

    return hob_add(
        scope, most,
        hob_log1p(scope, hob_exp(scope, hob_sub(scope, least, most))));
}

/* The labels with blanks between and around them: [n, 2 s + 1]. */
static hob_tensor *with_blanks(hob_scope *scope, hob_tensor *targets,
                               int64_t blank)
{
    int64_t n = hob_tensor_shape(targets)[0], s = hob_tensor_shape(targets)[1];
    const int64_t flat[2] = {n, 2 * s}, last[2] = {n, 1};
    hob_tensor *pair[2] = {
        hob_add_scalar(scope, hob_mul_scalar(scope, targets, hob_i64(0)),
                       hob_i64(blank)),
        targets};
    hob_tensor *both[2];

    both[0] = hob_reshape(scope, hob_stack(scope, pair, 2, 2), flat, 2);
    both[1] = hob__part_full(scope, targets, last, 2, hob_i64(blank));
    return hob_cat(scope, both, 2, 1);
}

/* Where ALPHA [n, l] may be entered from two places before: at a label that
 * differs from the one before it. */
static hob_tensor *may_skip(hob_scope *scope, hob_tensor *labels, int64_t blank)
{
    const int64_t padding[2] = {2, -2};
    hob_tensor *before = hob_pad(scope, labels, padding, 2,
                                 HOB_PAD_MODE_CONSTANT, hob_i64(blank));

    return hob_logical_and(scope,
                           hob_not_equal_scalar(scope, labels, hob_i64(blank)),
                           hob_not_equal(scope, labels, before));
}

/* What both the loss and its gradient walk over. L is 2 s + 1. */
struct ctc {
    int64_t steps, n, length;
    hob_tensor *labels; /* i64 [n, l] */
    hob_tensor *skip;   /* [n, l]: see may_skip() */
    hob_tensor *emit;   /* [steps, n, l]: the logarithms of their labels */
    hob_tensor *start;  /* [l]: where an alignment may begin */
    hob_tensor *inputs; /* their lengths */
    hob_tensor *last;   /* i64 [n, 1]: the blank behind the last label */
};

static struct ctc ctc_begin(hob_scope *scope, hob_tensor *log_probs,
                            hob_tensor *targets, hob_tensor *input_lengths,
                            hob_tensor *target_lengths, int64_t blank)
{
    const int64_t *sizes = hob_tensor_shape(log_probs);
    struct ctc c = {.steps = sizes[0],
                    .n = sizes[1],
                    .length = 2 * hob_tensor_shape(targets)[1] + 1,
                    .inputs = input_lengths};
    const int64_t all[3] = {c.steps, c.n, c.length}, column[2] = {c.n, 1};
    hob_device *device = hob_scope_host(scope)->tensor_device(log_probs);

    c.labels =
        with_blanks(scope, hob_cast(scope, targets, HOB_DTYPE_I64), blank);
    c.skip = may_skip(scope, c.labels, blank);
    c.emit = hob_gather(
        scope, hob__part_up(scope, log_probs),
        hob_expand(scope, hob_unsqueeze(scope, c.labels, 0), all, 3), 2);
    c.emit = hob_clamp(scope, c.emit, hob_f64(nothing), hob_none());
    c.start = hob_less_scalar(
        scope, hob_arange(scope, 0, c.length, 1, device, HOB_DTYPE_I64),
        hob_i64(2));
    c.last = hob_reshape(
        scope,
        hob_mul_scalar(scope, hob_cast(scope, target_lengths, HOB_DTYPE_I64),
                       hob_i64(2)),
        column, 2);
    return c;
}

/* X where CONDITION, else VALUE. */
static hob_tensor *unless(hob_scope *scope, hob_tensor *condition,
                          hob_tensor *x, double value)
{
    return hob_where(scope, condition, x,
                     hob__part_constant(scope, x, hob_f64(value)));
}

/* [n, l] of step T. */
static hob_tensor *emitted(hob_scope *scope, const struct ctc *c, int64_t t)
{
    const int64_t end = t + 1, first = 0;

    return hob_squeeze(
        scope, hob_slice(scope, c->emit, &t, 1, &end, 1, NULL, 0), &first, 1);
}

/* Which samples have a step T: [n, 1]. */
static hob_tensor *alive(hob_scope *scope, const struct ctc *c, int64_t t)
{
    const int64_t column[2] = {c->n, 1};

    return hob_reshape(scope, hob_greater_scalar(scope, c->inputs, hob_i64(t)),
                       column, 2);
}

/* Where ALPHA may come from: itself, one and two places before. */
static hob_tensor *sources(hob_scope *scope, const struct ctc *c,
                           hob_tensor *alpha, hob_tensor *parts[3])
{
    parts[0] = alpha;
    parts[1] = shifted(scope, alpha, 1);
    parts[2] = unless(scope, c->skip, shifted(scope, alpha, 2), nothing);
    return log_add(scope, log_add(scope, parts[0], parts[1]), parts[2]);
}

static hob_tensor *first_alpha(hob_scope *scope, const struct ctc *c)
{
    return unless(scope, c->start, emitted(scope, c, 0), nothing);
}

static hob_tensor *next_alpha(hob_scope *scope, const struct ctc *c,
                              hob_tensor *alpha, int64_t t)
{
    hob_tensor *parts[3];
    hob_tensor *next = sources(scope, c, alpha, parts);

    return hob_where(scope, alive(scope, c, t),
                     hob_add(scope, next, emitted(scope, c, t)), alpha);
}

/* [n, 1]: the logarithm of all alignments, and in PARTS of those that end with
 * the blank and with the label before it, whose place LABEL is. */
static hob_tensor *sum_up(hob_scope *scope, const struct ctc *c,
                          hob_tensor *alpha, hob_tensor *parts[2],
                          hob_tensor **label)
{
    *label = hob_clamp(scope, hob_add_scalar(scope, c->last, hob_i64(-1)),
                       hob_i64(0), hob_none());
    parts[0] = hob_gather(scope, alpha, c->last, 1);
    parts[1] = unless(scope, hob_greater_scalar(scope, c->last, hob_i64(0)),
                      hob_gather(scope, alpha, *label, 1), nothing);
    return log_add(scope, parts[0], parts[1]);
}

hob_tensor *hob__body_ctc_loss(hob_scope *scope, hob_tensor *log_probs,
                               hob_tensor *targets, hob_tensor *input_lengths,
                               hob_tensor *target_lengths, int64_t blank)
{
    struct ctc c = ctc_begin(scope, log_probs, targets, input_lengths,
                             target_lengths, blank);
    hob_tensor *alpha = first_alpha(scope, &c), *loss, *parts[2], *label;

    for (int64_t t = 1; t < c.steps; t++)
        alpha = next_alpha(scope, &c, alpha, t);
    loss = sum_up(scope, &c, alpha, parts, &label);
    loss = hob_neg(scope, hob_reshape(scope, loss, &c.n, 1));
    loss =
        hob_where(scope, hob_greater_scalar(scope, loss, hob_f64(-nothing / 2)),
                  hob__part_constant(scope, loss, hob_f64(INFINITY)), loss);
    return hob__part_down(scope, loss, hob_tensor_dtype(log_probs));
}

/* ---- the gradient: alpha's is led back step by step ---- */

/* The gradient of the last alpha: grad times what each end has in the sum. */
static hob_tensor *last_gradient(hob_scope *scope, const struct ctc *c,
                                 hob_tensor *alpha, hob_tensor *grad)
{
    const int64_t column[2] = {c->n, 1}, all[2] = {c->n, c->length};
    hob_tensor *parts[2], *label,
        *g = hob__part_full(scope, alpha, all, 2, hob_f64(0));
    hob_tensor *sum = sum_up(scope, c, alpha, parts, &label);
    hob_tensor *none = hob_less_scalar(scope, sum, hob_f64(nothing / 2));

    grad = hob_neg(scope,
                   hob_reshape(scope, hob__part_up(scope, grad), column, 2));
    /* Where none fits, the loss is infinite: constant. */
    grad = hob_where(scope, none, hob__part_constant(scope, grad, hob_f64(0)),
                     grad);
    for (int i = 0; i < 2; i++) {
        hob_tensor *share =
            hob_mul(scope, grad, hob_exp(scope, hob_sub(scope, parts[i], sum)));

        if (i) /* without a label both parts are one place */
            share =
                unless(scope, hob_greater_scalar(scope, c->last, hob_i64(0)),
                       share, 0);
        g = hob_scatter_add(scope, g, i ? label : c->last, share, 1);
    }
    return g;
}

/* That of the alpha before: G in shares of where each sum came from. */
static hob_tensor *lead_back(hob_scope *scope, const struct ctc *c,
                             hob_tensor *before, hob_tensor *g)
{
    hob_tensor *parts[3], *back = NULL;
    hob_tensor *sum = sources(scope, c, before, parts);

    for (int64_t i = 0; i < 3; i++) {
        const int64_t padding[2] = {-i, i};
        hob_tensor *share =
            hob_mul(scope, g, hob_exp(scope, hob_sub(scope, parts[i], sum)));

        if (i)
            share = hob_pad(scope, share, padding, 2, HOB_PAD_MODE_CONSTANT,
                            hob_f64(0));
        back = back ? hob_add(scope, back, share) : share;
    }
    return back;
}

/* ALPHAS has room for one a step; GRADS, which the result is made of, too. */
static hob_tensor *walk_back(hob_scope *scope, const struct ctc *c,
                             hob_tensor *grad, hob_tensor **alphas,
                             hob_tensor **grads)
{
    hob_tensor *g;

    alphas[0] = first_alpha(scope, c);
    for (int64_t t = 1; t < c->steps; t++)
        alphas[t] = next_alpha(scope, c, alphas[t - 1], t);
    g = last_gradient(scope, c, alphas[c->steps - 1], grad);
    for (int64_t t = c->steps - 1; t > 0; t--) {
        hob_tensor *lives = alive(scope, c, t);

        grads[t] = unless(scope, lives, g, 0);
        g = hob_where(scope, lives, lead_back(scope, c, alphas[t - 1], g), g);
    }
    grads[0] = unless(scope, c->start, g, 0);
    return hob_stack(scope, grads, (uint32_t)c->steps, 0);
}

hob_tensor *hob__body_ctc_loss_backward(hob_scope *scope, hob_tensor *log_probs,
                                        hob_tensor *targets,
                                        hob_tensor *input_lengths,
                                        hob_tensor *target_lengths,
                                        hob_tensor *grad, int64_t blank)
{
    const struct hob_host *host = hob_scope_host(scope);
    struct ctc c = ctc_begin(scope, log_probs, targets, input_lengths,
                             target_lengths, blank);
    const int64_t all[3] = {c.steps, c.n, c.length};
    hob_tensor **list, *y;

    list = host->mem_alloc(host, (uint64_t)c.steps * 2 * sizeof(*list));
    if (!list)
        return host->scope_fail(scope, HOB_ERR_MEMORY,
                                "ctc_loss_backward: no memory for a list of "
                                "tensors");
    y = walk_back(scope, &c, grad, list, list + c.steps);
    host->mem_free(host, list);
    y = hob_scatter_add(
        scope,
        hob__part_full(scope, y, hob_tensor_shape(log_probs), 3, hob_f64(0)),
        hob_expand(scope, hob_unsqueeze(scope, c.labels, 0), all, 3), y, 2);
    return hob__part_down(scope, y, hob_tensor_dtype(log_probs));
}
