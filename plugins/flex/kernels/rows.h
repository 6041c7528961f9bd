/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - kernels over whole rows: softmax, losses, norms, Adam.
 *
 * One table an instruction set and computing type (f32, f64); f16 and bf16
 * rows are converted first. Rows are contiguous; OUT may be an input. Sums
 * run in 64 lanes, so they are the same for every vector width.
 */
#ifndef FLEX_ROWS_H
#define FLEX_ROWS_H

#include <stdint.h>

/* What is constant in one step of Adam; see adam in rows_tmpl.h. */
struct flex_adam {
    double keep; /* 1 - lr * weight_decay */
    double rate; /* lr / (1 - beta1^step) */
    double beta1, beta2;
    double correction; /* 1 / sqrt(1 - beta2^step) */
    double epsilon;
    double least; /* a moment below this is taken for 0 */
};

/* Of a row: its mean is mean + rest; factor is 1 / sqrt(variance + epsilon). */
struct flex_moments {
    double mean; /* a number of the row's type */
    double rest;
    double factor;
};

struct flex_row_kernels {
    void (*softmax)(void *out, const void *x, int64_t n);
    void (*log_softmax)(void *out, const void *x, int64_t n);
    /* Y is the op's output, G its gradient. */
    void (*softmax_backward)(void *out, const void *y, const void *g,
                             int64_t n);
    void (*log_softmax_backward)(void *out, const void *y, const void *g,
                                 int64_t n);
    /* log(sum(exp(x))) - x[target]. */
    double (*cross_entropy)(const void *x, int64_t n, int64_t target);
    /* (softmax(x) - one_hot(target)) * scale. */
    void (*cross_entropy_backward)(void *out, const void *x, int64_t n,
                                   int64_t target, double scale);
    /* WEIGHT and BIAS may be NULL. */
    void (*layer_norm)(void *out, const void *x, const void *weight,
                       const void *bias, double epsilon, int64_t n);
    /* x / sqrt(mean(x^2) + epsilon) * weight, which may be NULL. */
    void (*rms_norm)(void *out, const void *x, const void *weight,
                     double epsilon, int64_t n);
    struct flex_moments (*moments)(const void *x, double epsilon, int64_t n);
    /* The gradient of layer_norm, or, if not IS_CENTRED, of rms_norm, into OUT,
     * which is no input; what the row adds to those of WEIGHT, which is there,
     * and bias is added to D_WEIGHT and D_BIAS. */
    void (*norm_backward)(void *out, double *d_weight, double *d_bias,
                          const void *x, const void *grad, const void *weight,
                          double epsilon, int is_centred, int64_t n);
    /* (x - mean) * scale + shift. */
    void (*affine)(void *out, const void *x, double mean, double scale,
                   double shift, int64_t n);
    void (*adam)(void *out_param, void *out_m, void *out_v, const void *param,
                 const void *grad, const void *m, const void *v, int64_t n,
                 const struct flex_adam *adam);
    /* param * keep - grad * rate. OUT may be one of the two. */
    void (*sgd)(void *out, const void *param, const void *grad, double keep,
                double rate, int64_t n);
    /* acc += x * factor (a scalar); for convolutions by rows. */
    void (*add_scaled)(void *acc, const void *x, double factor, int64_t n);
    /* acc += x. */
    void (*add)(void *acc, const void *x, int64_t n);
    /* acc = max(acc, x) where NaN wins. */
    void (*max)(void *acc, const void *x, int64_t n);
    /* sum of a * b. */
    double (*dot)(const void *a, const void *b, int64_t n);
};

enum { FLEX_ROW_F32, FLEX_ROW_F64, FLEX_ROW_COUNT_ };

extern const struct flex_row_kernels flex_row_kernels_base[FLEX_ROW_COUNT_];
extern const struct flex_row_kernels flex_row_kernels_v2[FLEX_ROW_COUNT_];
extern const struct flex_row_kernels flex_row_kernels_v3[FLEX_ROW_COUNT_];
extern const struct flex_row_kernels flex_row_kernels_v4[FLEX_ROW_COUNT_];

#endif
