/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - bodies of the ops that read planes at any place, and of their
 * gradients: grid_sample, deform_conv2d; and of affine_grid.
 */
#include "bodies.h"
#include "util.h"

static hob_tensor *count_up(hob_scope *scope, hob_tensor *x, int64_t count)
{
    return hob_arange(scope, 0, count, 1,
                      hob_scope_host(scope)->tensor_device(x), HOB_DTYPE_I64);
}

static hob_tensor *clamped(hob_scope *scope, hob_tensor *x, int64_t most)
{
    return hob_clamp(scope, x, hob_i64(0), hob_i64(most));
}

/* ---- reading at any place of a plane ---- */

/* Planes that are read at places which are numbers of elements from the
 * first one's middle. */
struct plane {
    hob_tensor *x; /* [b, c, h * w] */
    int64_t b, c, h, w;
};

/* A whole place: which element of a plane it is, and whether it is one. */
struct spot {
    hob_tensor *at;     /* i64 [b, c, m] */
    hob_tensor *inside; /* [b, 1, m] */
};

static hob_tensor *in_range(hob_scope *scope, hob_tensor *p, int64_t size)
{
    return hob_logical_and(scope,
                           hob_greater_equal_scalar(scope, p, hob_f64(0)),
                           hob_less_scalar(scope, p, hob_f64((double)size)));
}

/* Of whole places (Y, COLUMN) [b, m], floats. What is outside, or no number,
 * is somewhere. */
static struct spot find_spot(hob_scope *scope, const struct plane *plane,
                             hob_tensor *y, hob_tensor *column, int64_t m)
{
    const int64_t line[3] = {plane->b, 1, m};
    const int64_t shape[3] = {plane->b, plane->c, m};
    hob_tensor *inside = hob_logical_and(scope, in_range(scope, y, plane->h),
                                         in_range(scope, column, plane->w));
    hob_tensor *row =
        clamped(scope, hob_cast(scope, y, HOB_DTYPE_I64), plane->h - 1);
    hob_tensor *at = hob_add(
        scope, hob_mul_scalar(scope, row, hob_i64(plane->w)),
        clamped(scope, hob_cast(scope, column, HOB_DTYPE_I64), plane->w - 1));

    return (struct spot){
        hob_expand(scope, hob_reshape(scope, at, line, 3), shape, 3),
        hob_reshape(scope, inside, line, 3)};
}

/* VALUE where SPOT is an element, 0 elsewhere. */
static hob_tensor *only_inside(hob_scope *scope, const struct spot *spot,
                               hob_tensor *value)
{
    return hob_where(scope, spot->inside, value,
                     hob__part_constant(scope, value, hob_f64(0)));
}

static hob_tensor *read_spot(hob_scope *scope, const struct plane *plane,
                             const struct spot *spot)
{
    return only_inside(scope, spot, hob_gather(scope, plane->x, spot->at, 2));
}

/* The four elements around a place: bit 1 of a corner's number is the lower
 * row, bit 0 the right column. */
struct corners {
    hob_tensor *at[2];   /* [b, m] of the first: row, column */
    hob_tensor *part[2]; /* how far behind it the place is */
};

static struct corners find_corners(hob_scope *scope, hob_tensor *y,
                                   hob_tensor *column)
{
    struct corners corners = {{hob_floor(scope, y), hob_floor(scope, column)},
                              {NULL, NULL}};

    corners.part[0] = hob_sub(scope, y, corners.at[0]);
    corners.part[1] = hob_sub(scope, column, corners.at[1]);
    return corners;
}

/* Where corner I is, and its weights by row and by column. */
static struct spot corner(hob_scope *scope, const struct plane *plane,
                          const struct corners *corners, int i, int64_t m,
                          hob_tensor *weights[2])
{
    hob_tensor *at[2];

    for (int k = 0; k < 2; k++) {
        int next = k ? i & 1 : i >> 1;

        at[k] = next ? hob_add_scalar(scope, corners->at[k], hob_f64(1))
                     : corners->at[k];
        weights[k] = next
                         ? corners->part[k]
                         : hob_rsub_scalar(scope, corners->part[k], hob_f64(1));
    }
    return find_spot(scope, plane, at[0], at[1], m);
}

/* X between the elements: [b, c, m] at Y and COLUMN [b, m]. */
static hob_tensor *bilinear(hob_scope *scope, const struct plane *plane,
                            hob_tensor *y, hob_tensor *column, int64_t m)
{
    const int64_t line[3] = {plane->b, 1, m};
    struct corners corners = find_corners(scope, y, column);
    hob_tensor *sum = NULL;

    for (int i = 0; i < 4; i++) {
        hob_tensor *weights[2], *part;
        struct spot spot = corner(scope, plane, &corners, i, m, weights);

        part =
            hob_mul(scope, read_spot(scope, plane, &spot),
                    hob_reshape(scope, hob_mul(scope, weights[0], weights[1]),
                                line, 3));
        sum = sum ? hob_add(scope, hob_move(scope, sum), part) : part;
    }
    return sum;
}

/* GRAD [b, c, m] added to what SPOT is in SUM [b, c, h * w]. */
static hob_tensor *put_spot(hob_scope *scope, const struct spot *spot,
                            hob_tensor *sum, hob_tensor *grad)
{
    return hob_scatter_add(scope, hob_move(scope, sum), spot->at,
                           only_inside(scope, spot, grad), 2);
}

/*
 * Gradients of bilinear() from GRAD [b, c, m]: of the planes [b, c, h * w],
 * and by the places [b, m], row and column.
 */
static void bilinear_backward(hob_scope *scope, const struct plane *plane,
                              hob_tensor *y, hob_tensor *column,
                              hob_tensor *grad, int64_t m, hob_tensor **out_x,
                              hob_tensor *out_places[2])
{
    const int64_t flat[3] = {plane->b, plane->c, plane->h * plane->w};
    const int64_t line[3] = {plane->b, 1, m}, places[2] = {plane->b, m};
    struct corners corners = find_corners(scope, y, column);

    *out_x = hob__part_full(scope, plane->x, flat, 3, hob_f64(0));
    out_places[0] = out_places[1] = NULL;
    for (int i = 0; i < 4; i++) {
        hob_tensor *weights[2], *both, *share;
        struct spot spot = corner(scope, plane, &corners, i, m, weights);

        both =
            hob_reshape(scope, hob_mul(scope, weights[0], weights[1]), line, 3);
        *out_x = put_spot(scope, &spot, *out_x, hob_mul(scope, grad, both));
        share = hob_reshape(
            scope,
            hob_sum_dim(
                scope, hob_mul(scope, grad, read_spot(scope, plane, &spot)), 1),
            places, 2);
        for (int k = 0; k < 2; k++) {
            int next = k ? i & 1 : i >> 1;
            hob_tensor *part =
                hob_mul_scalar(scope, hob_mul(scope, share, weights[1 - k]),
                               hob_f64(next ? 1 : -1));

            out_places[k] =
                out_places[k]
                    ? hob_add(scope, hob_move(scope, out_places[k]), part)
                    : part;
        }
    }
}

/* ---- grid_sample ---- */

/* P mirrored at LOW and HIGH until it lies between them; *SLOPE becomes its
 * derivative. */
static hob_tensor *reflect(hob_scope *scope, hob_tensor *p, double low,
                           double high, hob_tensor **slope)
{
    double span = high - low;
    hob_tensor *from, *away, *turns, *rest, *even, *sign;

    if (span <= 0) {
        *slope = hob__part_constant(scope, p, hob_f64(0));
        return hob_mul_scalar(scope, p, hob_f64(0));
    }
    from = hob_add_scalar(scope, p, hob_f64(-low));
    away = hob_abs(scope, from);
    turns = hob_floor(scope, hob_div_scalar(scope, away, hob_f64(span)));
    rest = hob_sub(scope, away, hob_mul_scalar(scope, turns, hob_f64(span)));
    even = hob_equal_scalar(
        scope, hob_remainder_scalar(scope, turns, hob_f64(2)), hob_f64(0));
    sign = hob_where(scope, hob_less_scalar(scope, from, hob_f64(0)),
                     hob__part_constant(scope, p, hob_f64(-1)),
                     hob__part_constant(scope, p, hob_f64(1)));
    *slope =
        hob_where(scope, even, sign, hob_mul_scalar(scope, sign, hob_f64(-1)));
    return hob_add_scalar(
        scope,
        hob_where(scope, even, rest,
                  hob_rsub_scalar(scope, rest, hob_f64(span))),
        hob_f64(low));
}

/* -1 .. 1 over a dimension of SIZE as a place in it, and how that changes with
 * the number. */
static hob_tensor *place_in(hob_scope *scope, hob_tensor *grid, int64_t part,
                            int64_t m, int64_t size,
                            enum hob_grid_sample_padding padding,
                            int align_corners, hob_tensor **out_slope)
{
    const int64_t b = hob_tensor_shape(grid)[0], flat[2] = {b, m};
    const int64_t starts[4] = {0, 0, 0, part};
    const int64_t ends[4] = {INT64_MAX, INT64_MAX, INT64_MAX, part + 1};
    double last = (double)size - 1;
    double scale = align_corners ? last / 2 : (double)size / 2;
    hob_tensor *slope = hob__part_constant(scope, grid, hob_f64(1));
    hob_tensor *p = hob_reshape(
        scope, hob_slice(scope, grid, starts, 4, ends, 4, NULL, 0), flat, 2);

    p = hob_add_scalar(scope, hob_mul_scalar(scope, p, hob_f64(scale)),
                       hob_f64(last / 2));
    if (padding == HOB_GRID_SAMPLE_PADDING_REFLECTION)
        p = align_corners ? reflect(scope, p, 0, last, &slope)
                          : reflect(scope, p, -0.5, last + 0.5, &slope);
    if (padding != HOB_GRID_SAMPLE_PADDING_ZEROS) {
        slope =
            hob_where(scope,
                      hob_logical_and(
                          scope, hob_greater_equal_scalar(scope, p, hob_f64(0)),
                          hob_less_equal_scalar(scope, p, hob_f64(last))),
                      slope, hob__part_constant(scope, grid, hob_f64(0)));
        p = hob_clamp(scope, p, hob_f64(0), hob_f64(last));
    }
    *out_slope = hob_mul_scalar(scope, slope, hob_f64(scale));
    return p;
}

hob_tensor *hob__body_grid_sample(hob_scope *scope, hob_tensor *x,
                                  hob_tensor *grid,
                                  enum hob_grid_sample_mode mode,
                                  enum hob_grid_sample_padding padding,
                                  int align_corners)
{
    const int64_t *in = hob_tensor_shape(x), *out = hob_tensor_shape(grid);
    const int64_t flat[3] = {in[0], in[1], in[2] * in[3]};
    const int64_t shape[4] = {in[0], in[1], out[1], out[2]};
    int64_t m = out[1] * out[2];
    hob_dtype dtype = hob_tensor_dtype(x);
    struct plane plane = {NULL, in[0], in[1], in[2], in[3]};
    hob_tensor *wide = hob__part_up(scope, grid), *column, *row, *y, *slope;

    plane.x = hob_reshape(scope, hob__part_up(scope, x), flat, 3);
    column = place_in(scope, wide, 0, m, in[3], padding, align_corners, &slope);
    row = place_in(scope, wide, 1, m, in[2], padding, align_corners, &slope);
    if (mode == HOB_GRID_SAMPLE_MODE_NEAREST) {
        struct spot spot = find_spot(scope, &plane, hob_round(scope, row),
                                     hob_round(scope, column), m);

        y = read_spot(scope, &plane, &spot);
    } else {
        y = bilinear(scope, &plane, row, column, m);
    }
    return hob__part_down(scope, hob_reshape(scope, y, shape, 4), dtype);
}

hob_status hob__body_grid_sample_backward(
    hob_scope *scope, hob_tensor *x, hob_tensor *grid, hob_tensor *grad,
    enum hob_grid_sample_backward_mode mode,
    enum hob_grid_sample_backward_padding given, int align_corners,
    hob_tensor **out_d_x, hob_tensor **out_d_grid)
{
    enum hob_grid_sample_padding padding = (enum hob_grid_sample_padding)given;
    const int64_t *in = hob_tensor_shape(x), *out = hob_tensor_shape(grid);
    const int64_t flat[3] = {in[0], in[1], in[2] * in[3]};
    int64_t m = out[1] * out[2];
    const int64_t read[3] = {in[0], in[1], m};
    hob_dtype dtype = hob_tensor_dtype(x);
    struct plane plane = {NULL, in[0], in[1], in[2], in[3]};
    hob_tensor *wide = hob__part_up(scope, grid), *at[2], *slopes[2];
    hob_tensor *places[2], *d_x, *d_grid;

    plane.x = hob_reshape(scope, hob__part_up(scope, x), flat, 3);
    grad = hob_reshape(scope, hob__part_up(scope, grad), read, 3);
    for (int i = 0; i < 2; i++) /* row, column */
        at[i] = place_in(scope, wide, 1 - i, m, in[2 + i], padding,
                         align_corners, &slopes[i]);
    if (mode == HOB_GRID_SAMPLE_BACKWARD_MODE_NEAREST) {
        struct spot spot = find_spot(scope, &plane, hob_round(scope, at[0]),
                                     hob_round(scope, at[1]), m);

        d_x =
            put_spot(scope, &spot,
                     hob__part_full(scope, plane.x, flat, 3, hob_f64(0)), grad);
        d_grid = hob__part_full(scope, wide, out, 4, hob_f64(0));
    } else {
        bilinear_backward(scope, &plane, at[0], at[1], grad, m, &d_x, places);
        for (int i = 0; i < 2; i++)
            places[i] = hob_mul(scope, places[i], slopes[i]);
        d_grid = places[0];
        places[0] = places[1]; /* x stands before y */
        places[1] = d_grid;
        d_grid = hob_reshape(scope, hob_stack(scope, places, 2, 2), out, 4);
    }
    *out_d_x = hob__part_down(scope, hob_reshape(scope, d_x, in, 4), dtype);
    *out_d_grid = hob__part_down(scope, d_grid, dtype);
    return hob_scope_host(scope)->scope_status(scope);
}

/* -1 .. 1 over COUNT places; their middles where corners are not aligned. */
static hob_tensor *spread(hob_scope *scope, hob_tensor *x, int64_t count,
                          int align_corners)
{
    hob_tensor *i =
        hob_cast(scope, count_up(scope, x, count), hob_tensor_dtype(x));
    double steps = (double)(align_corners ? count - 1 : count);

    if (count < 2)
        return hob_mul_scalar(scope, i, hob_f64(0));
    return hob_add_scalar(scope, hob_mul_scalar(scope, i, hob_f64(2 / steps)),
                          hob_f64(align_corners ? -1 : 1 / steps - 1));
}

/* Each place (x, y, 1) of the result times the transposed matrix. */
hob_tensor *hob__body_affine_grid(hob_scope *scope, hob_tensor *theta,
                                  const int64_t *size, uint32_t size_count,
                                  int align_corners)
{
    int64_t h = size[2], w = size[3];
    const int64_t plane[2] = {h, w}, rows[2] = {h, 1};
    const int64_t flat[2] = {h * w, 3}, shape[4] = {size[0], h, w, 2};
    hob_dtype dtype = hob_tensor_dtype(theta);
    hob_tensor *wide = hob__part_up(scope, theta), *parts[3];

    (void)size_count; /* four, the infer function says */
    parts[0] =
        hob_expand(scope, spread(scope, wide, w, align_corners), plane, 2);
    parts[1] = hob_expand(
        scope,
        hob_reshape(scope, spread(scope, wide, h, align_corners), rows, 2),
        plane, 2);
    parts[2] = hob__part_full(scope, wide, plane, 2, hob_f64(1));
    return hob__part_down(
        scope,
        hob_reshape(scope,
                    hob_matmul(scope,
                               hob_reshape(scope, hob_stack(scope, parts, 3, 2),
                                           flat, 2),
                               hob_swap_dims(scope, wide, 1, 2)),
                    shape, 4),
        dtype);
}

/* ---- deformable convolution: Zhu et al., arXiv:1811.11168 ---- */

/* Where tap and window meet along one dimension, before offsets:
 * [taps, windows], AXIS 0 the height. */
static hob_tensor *meeting(hob_scope *scope, hob_tensor *x, int axis,
                           const int64_t *kernel, const int64_t *out,
                           int64_t stride, int64_t padding, int64_t dilation)
{
    const int64_t whole[4] = {kernel[0], kernel[1], out[0], out[1]};
    const int64_t flat[2] = {kernel[0] * kernel[1], out[0] * out[1]};
    int64_t tap[4] = {1, 1, 1, 1}, window[4] = {1, 1, 1, 1};
    hob_tensor *a = hob_mul_scalar(scope, count_up(scope, x, kernel[axis]),
                                   hob_i64(dilation));
    hob_tensor *b = hob_add_scalar(
        scope,
        hob_mul_scalar(scope, count_up(scope, x, out[axis]), hob_i64(stride)),
        hob_i64(-padding));

    tap[axis] = kernel[axis];
    window[2 + axis] = out[axis];
    a = hob_add(scope, hob_reshape(scope, a, tap, 4),
                hob_reshape(scope, b, window, 4));
    return hob_reshape(
        scope,
        hob_expand(scope, hob_cast(scope, a, hob_tensor_dtype(x)), whole, 4),
        flat, 2);
}

/* The sizes of a deformable convolution and what its taps read. */
struct deform {
    int64_t og, taps, windows;
    int64_t line[3];    /* of a mask: [n og, 1, taps windows] */
    int64_t read[3];    /* [n og, c / og, taps windows] */
    int64_t columns[4]; /* the same as [n, groups, c / groups taps, windows] */
    int64_t kernel[4];  /* of a weight that is multiplied with them */
    int64_t result[4];  /* [n, groups, out / groups, windows] */
    struct plane plane;
    hob_tensor *at[2]; /* [n og, taps windows]: row, column */
    hob_tensor *mask;  /* NULL: none */
};

static int64_t number(const int64_t *list, uint32_t count, uint32_t i,
                      int64_t fallback)
{
    return count ? list[count == 1 ? 0 : i] : fallback;
}

static void deform_sizes(struct deform *d, const int64_t *in, const int64_t *w,
                         const int64_t *out, int64_t groups, int64_t og)
{
    const int64_t taps = w[2] * w[3], windows = out[0] * out[1];

    *d = (struct deform){
        .og = og,
        .taps = taps,
        .windows = windows,
        .line = {in[0] * og, 1, taps * windows},
        .read = {in[0] * og, in[1] / og, taps * windows},
        .columns = {in[0], groups, in[1] / groups * taps, windows},
        .kernel = {1, groups, w[0] / groups, w[1] * taps},
        .result = {in[0], groups, w[0] / groups, windows},
        .plane = {NULL, in[0] * og, in[1] / og, in[2], in[3]}};
}

/* Fill in places, planes and mask; the lists are stride, padding and
 * dilation. */
static void deform_find(hob_scope *scope, struct deform *d, hob_tensor *x,
                        hob_tensor *offset, hob_tensor *mask,
                        const int64_t *kernel, const int64_t *const lists[3],
                        const uint32_t counts[3])
{
    const int64_t *in = hob_tensor_shape(x);
    const int64_t *out = hob_tensor_shape(offset) + 2;
    const int64_t flat[3] = {in[0] * d->og, in[1] / d->og, in[2] * in[3]};
    const int64_t split[5] = {in[0] * d->og, d->taps, 2, d->windows, 1};
    const int64_t shifts[3] = {in[0] * d->og, d->taps, d->windows};
    const int64_t places[2] = {in[0] * d->og, d->taps * d->windows};
    hob_tensor *moved =
        hob_reshape(scope, hob__part_up(scope, offset), split, 5);

    d->plane.x = hob_reshape(scope, hob__part_up(scope, x), flat, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t starts[3] = {0, 0, i};
        const int64_t ends[3] = {INT64_MAX, INT64_MAX, i + INT64_C(1)};
        hob_tensor *shift = hob_reshape(
            scope, hob_slice(scope, moved, starts, 3, ends, 3, NULL, 0), shifts,
            3);

        shift = hob_add(scope, shift,
                        meeting(scope, moved, (int)i, kernel, out,
                                number(lists[0], counts[0], i, 1),
                                number(lists[1], counts[1], i, 0),
                                number(lists[2], counts[2], i, 1)));
        d->at[i] = hob_reshape(scope, shift, places, 2);
    }
    d->mask =
        mask ? hob_reshape(scope, hob__part_up(scope, mask), d->line, 3) : NULL;
}

hob_tensor *
hob__body_deform_conv2d(hob_scope *scope, hob_tensor *x, hob_tensor *offset,
                        hob_tensor *weight, hob_tensor *mask, hob_tensor *bias,
                        const int64_t *stride, uint32_t stride_count,
                        const int64_t *padding, uint32_t padding_count,
                        const int64_t *dilation, uint32_t dilation_count,
                        int64_t weight_groups, int64_t offset_groups)
{
    const int64_t *const lists[3] = {stride, padding, dilation};
    const uint32_t counts[3] = {stride_count, padding_count, dilation_count};
    const int64_t *w = hob_tensor_shape(weight);
    const int64_t *out = hob_tensor_shape(offset) + 2;
    const int64_t shape[4] = {hob_tensor_shape(x)[0], w[0], out[0], out[1]};
    struct deform d;
    hob_tensor *y;

    deform_sizes(&d, hob_tensor_shape(x), w, out, weight_groups, offset_groups);
    deform_find(scope, &d, x, offset, mask, w + 2, lists, counts);
    y = bilinear(scope, &d.plane, d.at[0], d.at[1], d.taps * d.windows);
    if (mask)
        y = hob_mul(scope, y, d.mask);
    y = hob_matmul(scope,
                   hob_reshape(scope, hob__part_up(scope, weight), d.kernel, 4),
                   hob_reshape(scope, y, d.columns, 4));
    y = hob_reshape(scope, y, shape, 4);
    if (bias) {
        const int64_t channels[4] = {1, w[0], 1, 1};

        y = hob_add(scope, y,
                    hob_reshape(scope, hob__part_up(scope, bias), channels, 4));
    }
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

hob_status hob__body_deform_conv2d_backward(
    hob_scope *scope, hob_tensor *x, hob_tensor *offset, hob_tensor *weight,
    hob_tensor *mask, hob_tensor *grad, const int64_t *stride,
    uint32_t stride_count, const int64_t *padding, uint32_t padding_count,
    const int64_t *dilation, uint32_t dilation_count, int64_t weight_groups,
    int64_t offset_groups, hob_tensor **out_d_x, hob_tensor **out_d_offset,
    hob_tensor **out_d_weight, hob_tensor **out_d_mask)
{
    const int64_t *const lists[3] = {stride, padding, dilation};
    const uint32_t counts[3] = {stride_count, padding_count, dilation_count};
    const int64_t *w = hob_tensor_shape(weight);
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *kernel, *read, *masked, *back, *d_x, *places[2];
    struct deform d;

    deform_sizes(&d, hob_tensor_shape(x), w, hob_tensor_shape(offset) + 2,
                 weight_groups, offset_groups);
    deform_find(scope, &d, x, offset, mask, w + 2, lists, counts);
    kernel = hob_reshape(scope, hob__part_up(scope, weight), d.kernel, 4);
    grad = hob_reshape(scope, hob__part_up(scope, grad), d.result, 4);
    read = bilinear(scope, &d.plane, d.at[0], d.at[1], d.taps * d.windows);
    masked = mask ? hob_mul(scope, read, d.mask) : read;
    *out_d_weight = hob_sum_dim(
        scope,
        hob_matmul(scope, grad,
                   hob_swap_dims(
                       scope, hob_reshape(scope, masked, d.columns, 4), 2, 3)),
        0);
    back = hob_matmul(scope, hob_swap_dims(scope, kernel, 2, 3), grad);
    back = hob_reshape(scope, back, d.read, 3);
    *out_d_mask = NULL;
    if (mask) {
        *out_d_mask = hob_sum_dim(scope, hob_mul(scope, back, read), 1);
        back = hob_mul(scope, back, d.mask);
    }
    bilinear_backward(scope, &d.plane, d.at[0], d.at[1], back,
                      d.taps * d.windows, &d_x, places);
    for (int i = 0; i < 2; i++) {
        const int64_t split[3] = {d.line[0], d.taps, d.windows};

        places[i] = hob_reshape(scope, places[i], split, 3);
    }
    *out_d_x = hob__part_down(
        scope, hob_reshape(scope, d_x, hob_tensor_shape(x), 4), dtype);
    *out_d_offset =
        hob__part_down(scope,
                       hob_reshape(scope, hob_stack(scope, places, 2, 2),
                                   hob_tensor_shape(offset), 4),
                       dtype);
    *out_d_weight =
        hob__part_down(scope, hob_reshape(scope, *out_d_weight, w, 4), dtype);
    if (mask)
        *out_d_mask = hob__part_down(
            scope, hob_reshape(scope, *out_d_mask, hob_tensor_shape(mask), 4),
            dtype);
    return hob_scope_host(scope)->scope_status(scope);
}
