/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autodiff_cases_composed.h - the functions of autodiff_cases.h for ops that
 * are differentiated through their bodies.
 */
#ifndef AUTODIFF_CASES_COMPOSED_H
#define AUTODIFF_CASES_COMPOSED_H

#include <hob/hob.h>

static const int64_t one_1[1] = {1}, two_1[1] = {2};

/* The sum of COUNT tensors' squares, each times its place. */
static hob_tensor *weigh_parts(hob_scope *s, hob_tensor *const *parts,
                               uint32_t count)
{
    hob_tensor *total = NULL;

    for (uint32_t i = 0; i < count; i++) {
        hob_tensor *sum = hob_sum(s, hob_square(s, parts[i]));

        sum = hob_mul_scalar(s, sum, hob_i64((int64_t)i + 1));
        total = total ? hob_add(s, total, sum) : sum;
    }
    return total;
}

static hob_tensor *f_meshgrid(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[2];
    uint32_t count = 0;

    (void)hob_meshgrid(s, in, 2, HOB_MESHGRID_INDEXING_XY, 0, parts, 2, &count);
    return weigh_parts(s, parts, count);
}

static hob_tensor *f_meshgrid_stack(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(
        s, hob_meshgrid_stack(s, in, 2, HOB_MESHGRID_STACK_AT_FIRST));
}

static hob_tensor *f_max_pool1d(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_max_pool1d(s, in[0], 3, hob_i64(2), 1, 1, 0));
}

static hob_tensor *f_max_pool1d_with_indices(hob_scope *s,
                                             hob_tensor *const *in)
{
    hob_tensor *y = NULL, *indices = NULL;

    (void)hob_max_pool1d_with_indices(s, in[0], 2, hob_none(), 0, 2, 1,
                                      HOB_DTYPE_NONE, &y, &indices);
    return hob_square(s, y);
}

static hob_tensor *f_avg_pool1d(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_avg_pool1d(s, in[0], 3, hob_i64(2), 1, 0, 1));
}

static hob_tensor *f_repeat(hob_scope *s, hob_tensor *const *in)
{
    const int64_t times[3] = {2, 1, 3};

    return hob_square(s, hob_repeat(s, in[0], times, 3));
}

static hob_tensor *f_roll(hob_scope *s, hob_tensor *const *in)
{
    const int64_t shifts[2] = {1, -2}, dims[2] = {0, 1};

    return hob_roll(s, in[0], shifts, 2, dims, 2);
}

static hob_tensor *f_move_dims(hob_scope *s, hob_tensor *const *in)
{
    const int64_t from[1] = {0}, to[1] = {-1};

    return hob_move_dims(s, in[0], from, 1, to, 1);
}

static hob_tensor *f_pad(hob_scope *s, hob_tensor *const *in)
{
    const int64_t padding[4] = {1, -1, 2, 0};

    return hob_pad(s, in[0], padding, 4, HOB_PAD_MODE_CONSTANT, hob_f64(1));
}

static hob_tensor *f_pad_reflect(hob_scope *s, hob_tensor *const *in)
{
    const int64_t padding[4] = {2, 1, 1, 0};

    return hob_pad(s, in[0], padding, 4, HOB_PAD_MODE_REFLECT, hob_i64(0));
}

static hob_tensor *f_pad_edge(hob_scope *s, hob_tensor *const *in)
{
    const int64_t padding[4] = {2, 1, 1, 0};

    return hob_pad(s, in[0], padding, 4, HOB_PAD_MODE_EDGE, hob_i64(0));
}

static hob_tensor *f_diagonal(hob_scope *s, hob_tensor *const *in)
{
    return hob_diagonal(s, in[0], -1);
}

static hob_tensor *f_triu(hob_scope *s, hob_tensor *const *in)
{
    return hob_triu(s, in[0], 1);
}

static hob_tensor *f_tril(hob_scope *s, hob_tensor *const *in)
{
    return hob_tril(s, in[0], 0);
}

static hob_tensor *f_cross(hob_scope *s, hob_tensor *const *in)
{
    return hob_cross(s, in[0], in[1], -1);
}

static hob_tensor *f_cov(hob_scope *s, hob_tensor *const *in)
{
    return hob_cov(s, in[0], 1, 1);
}

static hob_tensor *f_sum_dims(hob_scope *s, hob_tensor *const *in)
{
    const int64_t dims[2] = {0, -1};

    return hob_square(s, hob_sum_dims(s, in[0], dims, 2));
}

static hob_tensor *f_mean_dims(hob_scope *s, hob_tensor *const *in)
{
    const int64_t dims[2] = {1, 2};

    return hob_square(s, hob_mean_dims(s, in[0], dims, 2));
}

static hob_tensor *f_max_dims(hob_scope *s, hob_tensor *const *in)
{
    const int64_t dims[2] = {0, 2};

    return hob_square(s, hob_max_dims(s, in[0], dims, 2));
}

static hob_tensor *f_min_dims(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_min_dims(s, in[0], one_1, 1));
}

static hob_tensor *f_conv1d(hob_scope *s, hob_tensor *const *in)
{
    return hob_conv1d(s, in[0], in[1], in[2], two_1, 1, one_1, 1, NULL, 0, 2);
}

static hob_tensor *f_conv3d(hob_scope *s, hob_tensor *const *in)
{
    return hob_conv3d(s, in[0], in[1], in[2], two_1, 1, one_1, 1, NULL, 0, 1);
}

/* Groups, and a depth whose last slice no window reaches. */
static hob_tensor *f_conv3d_groups(hob_scope *s, hob_tensor *const *in)
{
    static const int64_t stride[3] = {2, 1, 2}, padding[3] = {1, 0, 1};
    static const int64_t dilation[3] = {2, 1, 1};

    return hob_square(s, hob_conv3d(s, in[0], in[1], NULL, stride, 3, padding,
                                    3, dilation, 3, 2));
}

static hob_tensor *f_conv_transpose1d(hob_scope *s, hob_tensor *const *in)
{
    return hob_conv_transpose1d(s, in[0], in[1], in[2], two_1, 1, one_1, 1,
                                one_1, 1, NULL, 0, 1);
}

static hob_tensor *f_conv_transpose2d(hob_scope *s, hob_tensor *const *in)
{
    return hob_conv_transpose2d(s, in[0], in[1], in[2], one_1, 1, one_1, 1,
                                one_1, 1, two_1, 1, 2);
}

static hob_tensor *f_conv_transpose3d(hob_scope *s, hob_tensor *const *in)
{
    return hob_conv_transpose3d(s, in[0], in[1], NULL, two_1, 1, NULL, 0, one_1,
                                1, NULL, 0, 1);
}

static hob_tensor *f_deform_conv2d(hob_scope *s, hob_tensor *const *in)
{
    return hob_deform_conv2d(s, in[0], in[1], in[2], in[3], in[4], NULL, 0,
                             NULL, 0, NULL, 0, 1, 1);
}

static hob_tensor *f_deform_conv2d_backward(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *d[4] = {NULL}, *sum = NULL;

    (void)hob_deform_conv2d_backward(s, in[0], in[1], in[2], in[3], in[4], NULL,
                                     0, NULL, 0, NULL, 0, 1, 1, &d[0], &d[1],
                                     &d[2], &d[3]);
    for (int i = 0; i < 4; i++) {
        hob_tensor *part = hob_sum(s, hob_square(s, d[i]));

        sum = sum ? hob_add(s, sum, part) : part;
    }
    return sum;
}

static hob_tensor *f_adaptive_avg_pool(hob_scope *s, hob_tensor *const *in)
{
    const int64_t size[2] = {2, 3};

    return hob_square(s, hob_adaptive_avg_pool(s, in[0], size, 2));
}

static hob_tensor *f_adaptive_avg_pool_backward(hob_scope *s,
                                                hob_tensor *const *in)
{
    const int64_t size[2] = {5, 2};

    return hob_square(s, hob_adaptive_avg_pool_backward(s, in[0], size, 2));
}

static hob_tensor *f_im2col(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(
        s, hob_im2col(s, in[0], two_1, 1, one_1, 1, one_1, 1, NULL, 0));
}

static hob_tensor *f_col2im(hob_scope *s, hob_tensor *const *in)
{
    const int64_t size[2] = {3, 4};

    return hob_square(
        s, hob_col2im(s, in[0], size, 2, two_1, 1, one_1, 1, NULL, 0, NULL, 0));
}

static hob_tensor *resized(hob_scope *s, hob_tensor *x,
                           enum hob_interpolate_mode mode, int corners)
{
    const int64_t size[2] = {5, 3};

    return hob_square(s, hob_interpolate(s, x, size, 2, mode, corners));
}

static hob_tensor *f_interpolate(hob_scope *s, hob_tensor *const *in)
{
    return resized(s, in[0], HOB_INTERPOLATE_MODE_NEAREST, 1);
}

static hob_tensor *f_interpolate_bilinear(hob_scope *s, hob_tensor *const *in)
{
    return resized(s, in[0], HOB_INTERPOLATE_MODE_BILINEAR, 0);
}

static hob_tensor *f_interpolate_bicubic(hob_scope *s, hob_tensor *const *in)
{
    return resized(s, in[0], HOB_INTERPOLATE_MODE_BICUBIC, 1);
}

static hob_tensor *f_interpolate_lanczos3(hob_scope *s, hob_tensor *const *in)
{
    return resized(s, in[0], HOB_INTERPOLATE_MODE_LANCZOS3, 0);
}

static hob_tensor *f_interpolate_backward(hob_scope *s, hob_tensor *const *in)
{
    const int64_t size[2] = {2, 4};

    return hob_square(
        s, hob_interpolate_backward(s, in[0], size, 2,
                                    HOB_INTERPOLATE_BACKWARD_MODE_BICUBIC, 0));
}

/* Places within one cell of the plane: no kink is near. */
static hob_tensor *f_grid_sample(hob_scope *s, hob_tensor *const *in)
{
    return hob_grid_sample(s, in[0], in[1], HOB_GRID_SAMPLE_MODE_BILINEAR,
                           HOB_GRID_SAMPLE_PADDING_ZEROS, 1);
}

/* Outside of the plane, where it is mirrored. */
static hob_tensor *f_grid_sample_reflection(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(
        s, hob_grid_sample(s, in[0], in[1], HOB_GRID_SAMPLE_MODE_BILINEAR,
                           HOB_GRID_SAMPLE_PADDING_REFLECTION, 0));
}

static hob_tensor *f_grid_sample_backward(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *d_x = NULL, *d_grid = NULL;

    (void)hob_grid_sample_backward(
        s, in[0], in[1], in[2], HOB_GRID_SAMPLE_BACKWARD_MODE_BILINEAR,
        HOB_GRID_SAMPLE_BACKWARD_PADDING_ZEROS, 1, &d_x, &d_grid);
    return hob_add(s, hob_sum(s, hob_square(s, d_x)),
                   hob_sum(s, hob_square(s, d_grid)));
}

static hob_tensor *f_affine_grid(hob_scope *s, hob_tensor *const *in)
{
    const int64_t size[4] = {2, 1, 2, 3};

    return hob_square(s, hob_affine_grid(s, in[0], size, 4, 0));
}

static hob_tensor *f_attention(hob_scope *s, hob_tensor *const *in)
{
    return hob_attention(s, in[0], in[1], in[2], NULL, NULL, hob_none(),
                         hob_f64(2), 1);
}

/* The first query sees no key at all. */
static hob_tensor *f_attention_bias(hob_scope *s, hob_tensor *const *in)
{
    return hob_attention(s, in[0], in[1], in[2], NULL, in[3], hob_f64(0.5),
                         hob_none(), 1);
}

static hob_tensor *f_ctc_loss(hob_scope *s, hob_tensor *const *in)
{
    static const int64_t targets[4] = {1, 2, 2, 2}, inputs[2] = {4, 3};
    static const int64_t lengths[2] = {2, 1}, shape[2] = {2, 2}, batch[1] = {2};
    hob_device *device = hob_tensor_device(in[0]);

    return hob_ctc_loss(s, hob_log_softmax(s, in[0], -1),
                        hob_from_i64(s, device, targets, shape, 2),
                        hob_from_i64(s, device, inputs, batch, 1),
                        hob_from_i64(s, device, lengths, batch, 1), 0);
}

static hob_tensor *f_ctc_loss_backward(hob_scope *s, hob_tensor *const *in)
{
    static const int64_t targets[4] = {1, 2, 2, 2}, inputs[2] = {4, 3};
    static const int64_t lengths[2] = {2, 1}, shape[2] = {2, 2}, batch[1] = {2};
    hob_device *device = hob_tensor_device(in[0]);

    return hob_ctc_loss_backward(s, hob_log_softmax(s, in[0], -1),
                                 hob_from_i64(s, device, targets, shape, 2),
                                 hob_from_i64(s, device, inputs, batch, 1),
                                 hob_from_i64(s, device, lengths, batch, 1),
                                 in[1], 0);
}

static hob_tensor *f_softplus(hob_scope *s, hob_tensor *const *in)
{
    return hob_softplus(s, in[0], 2);
}

static hob_tensor *f_leaky_relu(hob_scope *s, hob_tensor *const *in)
{
    return hob_leaky_relu(s, in[0], 0.1);
}

static hob_tensor *f_elu(hob_scope *s, hob_tensor *const *in)
{
    return hob_elu(s, in[0], 1.5);
}

static hob_tensor *f_celu(hob_scope *s, hob_tensor *const *in)
{
    return hob_celu(s, in[0], 1.5);
}

static hob_tensor *f_hard_sigmoid(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_hard_sigmoid(s, in[0], 0.2, 0.5));
}

/* Of all kinds, each times another number. */
static hob_tensor *f_activation_backward(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *sum = NULL;

    for (int kind = 0; kind <= HOB_ACTIVATION_BACKWARD_KIND_HARD_SWISH;
         kind++) {
        hob_tensor *part = hob_activation_backward(
            s, in[0], in[1], (enum hob_activation_backward_kind)kind, 0.7);

        part = hob_mul_scalar(s, part, hob_f64(1 + kind));
        sum = sum ? hob_add(s, sum, part) : part;
    }
    return sum;
}

static hob_tensor *f_glu(hob_scope *s, hob_tensor *const *in)
{
    return hob_glu(s, in[0], -1);
}

static hob_tensor *f_softmin(hob_scope *s, hob_tensor *const *in)
{
    return hob_softmin(s, in[0], 1);
}

static hob_tensor *f_quiet_softmax(hob_scope *s, hob_tensor *const *in)
{
    return hob_quiet_softmax(s, in[0], 0);
}

static hob_tensor *f_group_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_group_norm(s, in[0], 2, in[1], in[2], 1e-3);
}

static hob_tensor *f_rms_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_rms_norm(s, in[0], in[1], 1e-3);
}

static hob_tensor *f_cosine_similarity(hob_scope *s, hob_tensor *const *in)
{
    return hob_cosine_similarity(s, in[0], in[1], -1, 1e-8);
}

static hob_tensor *f_rfft(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[2] = {NULL, NULL};

    (void)hob_rfft(s, in[0], 0, hob_i64(6), &parts[0], &parts[1]);
    return weigh_parts(s, parts, 2);
}

/* Cut, an odd length, and the imaginary parts alone. */
static hob_tensor *f_rfft_cut(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[2] = {NULL, NULL};

    (void)hob_rfft(s, in[0], -1, hob_i64(3), &parts[0], &parts[1]);
    return hob_square(s, parts[1]);
}

static hob_tensor *f_irfft_even(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_irfft(s, in[0], in[1], 0, hob_i64(6)));
}

static hob_tensor *f_irfft(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_irfft(s, in[0], in[1], -1, hob_i64(5)));
}

#endif
