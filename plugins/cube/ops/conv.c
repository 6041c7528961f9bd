/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.c - conv2d and its gradients as products whose right side is read from
 * where it lies (conv.cube). Other convolutions come here through their bodies.
 *
 *                   m              n                   k
 *   forward         out channels   image, place        in channels, taps
 *   x_backward      in channels    image, place        out channels, taps
 *   weight_backward out channels   in channels, taps   image, place
 *
 * The gradient of x is one product for each remainder of its places modulo the
 * stride: those of one remainder meet the same taps. Of few channels conv_few.c
 * has it. Sums that are too long for the number of tiles are split and their
 * parts added in order, as in matmul.c.
 */
#include "../conv_phase.h"
#include "../cube.h"
#include "../lowest.h"
#include "../splits.h"
#include "../texts.h"
#include "conv_few.h"
#include "conv_windows.h"

enum {
    TILE_K = 16, /* at most */
    /* Sums of so few channels fill no tile. */
    FEW_CHANNELS = 4,
    /* The longest sum of one invocation alone. */
    SHORT_SUM = 1024,
    /* From so many on a library's matmul makes up for writing windows out. */
    MANY_ROWS = 256,
    /* Places in a plane are counted in 32 bits, sums of three such. */
    MOST_PLACES = 1 << 28
};

/* Elements of windows that are written out: 16 MiB of f32, since less is not
 * worth more launches, to 1 GiB. */
#define WINDOWS_LEAST (INT64_C(1) << 22)
#define WINDOWS_MOST (INT64_C(1) << 28)

#define PRODUCT_PARAMS                                                         \
    {"m_size", CUBE_INDEX, 0}, {"n_size", CUBE_INDEX, 0},                      \
        {"k_size", CUBE_INDEX, 0}, {"n_sizes", CUBE_INDEX, 3},                 \
        {"k_sizes", CUBE_INDEX, 3}, {"n_to_b", CUBE_INDEX, 3},                 \
        {"n_to_out", CUBE_INDEX, 3}, {"k_to_a", CUBE_INDEX, 3},                \
        {"k_to_b", CUBE_INDEX, 3}, {"n_to_y", CUBE_I32, 0},                    \
        {"n_to_x", CUBE_I32, 0}, {"k_to_y", CUBE_I32, 0},                      \
        {"k_to_x", CUBE_I32, 0}, {"y_first", CUBE_I32, 0},                     \
        {"x_first", CUBE_I32, 0}, {"height", CUBE_I32, 0},                     \
        {"width", CUBE_I32, 0}, {"a_first", CUBE_INDEX, 0},                    \
        {"a_row", CUBE_INDEX, 0}, {"a_group", CUBE_INDEX, 0},                  \
        {"b_first", CUBE_INDEX, 0}, {"b_group", CUBE_INDEX, 0},                \
        {"out_first", CUBE_INDEX, 0}, {"out_row", CUBE_INDEX, 0},              \
        {"out_group", CUBE_INDEX, 0}, {"bias_first", CUBE_INDEX, 0},           \
        {"bias_step", CUBE_INDEX, 0},                                          \
    {                                                                          \
        "items", CUBE_INDEX, 0                                                 \
    }
#define PRODUCT_BUFFERS {"out", CUBE_WRITTEN}, {"a", 0}, {"b", 0}, {"bias", 0}

static const struct cube_program tiles_program = {
    .name = "conv",
    .text = cube_text_conv,
    .buffers = {PRODUCT_BUFFERS},
    .params = {PRODUCT_PARAMS,
               {"tiling", CUBE_INDEX, 4}},
    .shared = {{"tile_a", "QUAD", "2 * TILE_K * TILE_M / 4"},
               {"tile_b", "QUAD", "2 * TILE_K * TILE_N / 4"},
               {"n_offset", "INDEX", "2 * TILE_N"},
               {"n_place", "int", "2 * TILE_N"},
               {"k_offset", "INDEX", "4 * TILE_K"},
               {"k_place", "int", "4 * TILE_K"}},
    .constants = {"TILE_M", "TILE_N", "TILE_K", "THREAD", "B_ALONG_K",
                  "HAS_BIAS"},
    .symbols = {"ACCUM", "QUAD"},
    .flags = CUBE_TILES,
};

static const struct cube_program direct_program = {
    .name = "conv_direct",
    .text = cube_text_conv_direct,
    .buffers = {PRODUCT_BUFFERS},
    .params = {PRODUCT_PARAMS},
    .constants = {"IS_LONG", "HAS_BIAS"},
    .symbols = {"ACCUM"},
    .flags = CUBE_GROUPS,
};

/* As conv.cube has them; offsets of a and b count from their lowest element. */
struct product {
    const struct hob_view *a, *b;
    const struct hob_view *bias; /* NULL: there is none */
    void *out;
    uint32_t out_dtype;
    int b_along_k;
    int64_t groups, m, n, k;
    int64_t n_sizes[3], k_sizes[3];
    int64_t n_to_b[3], n_to_out[3], k_to_a[3], k_to_b[3];
    int64_t n_to_place[2], k_to_place[2], first[2], plane[2];
    int64_t a_first, a_row, a_group, b_first, b_group;
    int64_t out_first, out_row, out_group, out_split;
    int64_t splits, split_k;
};

static int is_double(const struct product *product)
{
    return product->a->dtype == HOB_DTYPE_F64;
}

/* ---- launches ---- */

static void add_buffers(struct cube_job *job, const struct product *product)
{
    cube_job_memory(job, product->out, product->out_dtype,
                    hob_view_count(hob_ret_view(job->call, 0)) *
                        product->splits);
    cube_job_lowest(job, product->a);
    cube_job_lowest(job, product->b);
    if (product->bias)
        cube_job_lowest(job, product->bias);
    else
        cube_job_absent(job);
}

static void add_params(struct cube_job *job, const struct product *product,
                       int64_t items)
{
    const struct hob_view *bias = product->bias;

    cube_job_i64(job, product->m);
    cube_job_i64(job, product->n);
    cube_job_i64(job, product->k);
    cube_job_i64s(job, product->n_sizes, 3);
    cube_job_i64s(job, product->k_sizes, 3);
    cube_job_i64s(job, product->n_to_b, 3);
    cube_job_i64s(job, product->n_to_out, 3);
    cube_job_i64s(job, product->k_to_a, 3);
    cube_job_i64s(job, product->k_to_b, 3);
    cube_job_i64s(job, product->n_to_place, 2);
    cube_job_i64s(job, product->k_to_place, 2);
    cube_job_i64s(job, product->first, 2);
    cube_job_i64s(job, product->plane, 2);
    cube_job_i64(job, product->a_first);
    cube_job_i64(job, product->a_row);
    cube_job_i64(job, product->a_group);
    cube_job_i64(job, product->b_first);
    cube_job_i64(job, product->b_group);
    cube_job_i64(job, product->out_first);
    cube_job_i64(job, product->out_row);
    cube_job_i64(job, product->out_group);
    cube_job_i64(job, bias ? cube_lowest(bias, NULL) : 0);
    cube_job_i64(job, bias ? bias->strides[0] : 0);
    cube_job_i64(job, items);
    cube_job_reach(job, items);
    cube_job_reach(job, product->n + 1024);
    cube_job_reach(job, product->k + product->split_k + 4 * TILE_K);
}

struct tiling {
    int32_t m, n, k, thread;
};

static int64_t tiles_of(const struct product *product, struct tiling tiling)
{
    return cube_divide_up(product->m, tiling.m) *
           cube_divide_up(product->n, tiling.n) * product->groups;
}

/* The largest tiles that are mostly full and enough for the device. */
static struct tiling tiling_of(const struct cube_device *device,
                               const struct product *product)
{
    static const struct tiling tilings[] = {{128, 128, 16, 8},
                                            {64, 128, 16, 8},
                                            {64, 64, 16, 4},
                                            {32, 64, 16, 4},
                                            {32, 32, 16, 4}};
    const int64_t size = is_double(product) ? 8 : 4;
    struct tiling tiling;
    uint32_t i = 0;

    for (; i < 4; i++) {
        int64_t bytes;

        tiling = tilings[i];
        bytes = 2 * TILE_K * (tiling.m + tiling.n) * size + 24 * tiling.n +
                48 * TILE_K;

        if (bytes <= device->limits.shared_bytes && product->m > tiling.m / 2 &&
            product->n > tiling.n / 2 &&
            tiles_of(product, tiling) >= cube_processors(device))
            break;
    }
    tiling = tilings[i];
    /* What a group of 128 invocations brings at a time takes registers that
     * another group would have; one of 256 leaves no room for another. */
    if (i == 1 && !product->b_along_k)
        tiling.k = 8;
    return tiling;
}

static hob_status run_tiles(struct cube_device *device, struct hob_call *call,
                            const struct product *product,
                            struct tiling tiling)
{
    const int64_t tiles_m = cube_divide_up(product->m, tiling.m);
    const int64_t tiles_n = cube_divide_up(product->n, tiling.n);
    const int64_t items = tiles_m * tiles_n * product->splits * product->groups;
    struct cube_job job;

    cube_job_init(&job, device, call, &tiles_program);
    job.variant.group_size =
        (uint32_t)(tiling.m / tiling.thread * (tiling.n / tiling.thread));
    add_buffers(&job, product);
    cube_job_constant(&job, tiling.m);
    cube_job_constant(&job, tiling.n);
    cube_job_constant(&job, tiling.k);
    cube_job_constant(&job, tiling.thread);
    cube_job_constant(&job, product->b_along_k);
    cube_job_constant(&job, product->bias != NULL);
    cube_job_symbol(&job, is_double(product) ? "double" : "float");
    cube_job_symbol(&job, is_double(product) ? "dvec4" : "vec4");
    add_params(&job, product, items);
    cube_job_i64(&job, tiles_m);
    cube_job_i64(&job, product->splits);
    cube_job_i64(&job, product->split_k);
    cube_job_i64(&job, product->out_split);
    return cube_job_run(&job, items);
}

static hob_status run_direct(struct cube_device *device, struct hob_call *call,
                             const struct product *product)
{
    const int is_long = product->k > SHORT_SUM;
    const int64_t items = product->m * product->n * product->groups;
    struct cube_job job;

    cube_job_init(&job, device, call, &direct_program);
    add_buffers(&job, product);
    cube_job_constant(&job, is_long);
    cube_job_constant(&job, product->bias != NULL);
    cube_job_symbol(&job, is_double(product) ? "double" : "float");
    add_params(&job, product, items);
    return cube_job_run(
        &job, is_long ? items : cube_groups(device, items, CUBE_GROUP_SIZE));
}

/* ---- a product ---- */

static hob_status run_splits(struct cube_device *device, struct hob_call *call,
                             struct product *product, struct tiling tiling)
{
    struct cube_parts parts;
    hob_status st;

    product->out_dtype = is_double(product) ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    st = cube_parts_take(&parts, device, call, hob_ret_view(call, 0),
                         product->out_dtype, product->splits);
    if (st)
        return st;
    product->out = parts.data;
    product->out_split = parts.count;
    return cube_parts_add(&parts, device, call,
                          run_tiles(device, call, product, tiling));
}

/* Run PRODUCT, which is all of result 0 unless IS_PART. */
static hob_status run(struct cube_device *device, struct hob_call *call,
                      struct product *product, int is_part)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct tiling tiling;

    product->out = out->data;
    product->out_dtype = out->dtype;
    product->splits = 1;
    product->k =
        product->k_sizes[0] * product->k_sizes[1] * product->k_sizes[2];
    product->n =
        product->n_sizes[0] * product->n_sizes[1] * product->n_sizes[2];
    product->split_k = product->k;
    if (product->m <= FEW_CHANNELS &&
        (product->k <= SHORT_SUM || product->n <= SHORT_SUM / 8))
        return run_direct(device, call, product);
    tiling = tiling_of(device, product);
    if (!is_part)
        cube_split(device, tiles_of(product, tiling), product->k, TILE_K,
                   &product->splits, &product->split_k);
    return product->splits > 1 ? run_splits(device, call, product, tiling)
                               : run_tiles(device, call, product, tiling);
}

/* ---- the ops ---- */

static void set(int64_t out[3], int64_t a, int64_t b, int64_t c)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
}

static hob_status conv2d(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t *size = out->shape, *xs = x->strides, *ws = weight->strides;
    const int64_t plane = size[2] * size[3];
    struct product p = {.a = weight, .b = x, .bias = hob_arg_view(call, 2)};
    struct cube_conv g;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    cube_conv_init(&g, call);
    st = cube_conv_windows(device, call, &g);
    if (st != HOB_ERR_UNSUPPORTED)
        return st;
    p.groups = g.groups;
    p.m = weight->shape[0] / g.groups;
    set(p.k_sizes, weight->shape[1], weight->shape[2], weight->shape[3]);
    set(p.n_sizes, size[0], size[2], size[3]);
    set(p.k_to_a, ws[1], ws[2], ws[3]);
    set(p.k_to_b, xs[1], g.dilation[0] * xs[2], g.dilation[1] * xs[3]);
    set(p.n_to_b, xs[0], g.step[0] * xs[2], g.step[1] * xs[3]);
    set(p.n_to_out, size[1] * plane, size[3], 1);
    p.a_first = cube_lowest(weight, NULL);
    p.a_row = ws[0];
    p.a_group = p.m * ws[0];
    p.b_first = cube_lowest(x, NULL);
    p.b_group = weight->shape[1] * xs[1];
    p.out_row = plane;
    p.out_group = p.m * plane;
    for (uint32_t i = 0; i < 2; i++) {
        p.n_to_place[i] = g.step[i];
        p.k_to_place[i] = g.dilation[i];
        p.first[i] = -g.padding[i];
        p.plane[i] = x->shape[2 + i];
        p.b_first -= g.padding[i] * xs[2 + i];
    }
    return run(device, call, &p, 0);
}

static hob_status conv2d_weight_backward(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grad = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t *size = out->shape, *xs = x->strides, *gs = grad->strides;
    const int64_t taps = size[2] * size[3];
    struct product p = {.a = grad, .b = x, .b_along_k = 1};
    struct cube_conv g;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    cube_conv_init(&g, call);
    st = cube_conv_windows_weight(device, call, &g);
    if (st != HOB_ERR_UNSUPPORTED)
        return st;
    p.groups = g.groups;
    p.m = size[0] / g.groups;
    set(p.k_sizes, grad->shape[0], grad->shape[2], grad->shape[3]);
    set(p.n_sizes, size[1], size[2], size[3]);
    set(p.k_to_a, gs[0], gs[2], gs[3]);
    set(p.k_to_b, xs[0], g.step[0] * xs[2], g.step[1] * xs[3]);
    set(p.n_to_b, xs[1], g.dilation[0] * xs[2], g.dilation[1] * xs[3]);
    set(p.n_to_out, taps, size[3], 1);
    p.a_first = cube_lowest(grad, NULL);
    p.a_row = gs[1];
    p.a_group = p.m * gs[1];
    p.b_first = cube_lowest(x, NULL);
    p.b_group = size[1] * xs[1];
    p.out_row = size[1] * taps;
    p.out_group = p.m * p.out_row;
    for (uint32_t i = 0; i < 2; i++) {
        p.n_to_place[i] = g.dilation[i];
        p.k_to_place[i] = g.step[i];
        p.first[i] = -g.padding[i];
        p.plane[i] = x->shape[2 + i];
        p.b_first -= g.padding[i] * xs[2 + i];
    }
    return run(device, call, &p, 0);
}

/* The places whose remainders are REST. */
static hob_status run_phase(struct cube_device *device, struct hob_call *call,
                            const struct cube_conv *g, const int64_t rest[2])
{
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *grad = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t *size = out->shape, *gs = grad->strides;
    const int64_t *ws = weight->strides;
    const int64_t plane = size[2] * size[3];
    const int64_t channels = weight->shape[0] / g->groups;
    struct product p = {.a = weight, .b = grad, .groups = g->groups};
    struct cube_conv_phase phase[2];

    p.m = weight->shape[1];
    p.k_sizes[0] = channels;
    p.n_sizes[0] = size[0];
    set(p.k_to_a, ws[0], 0, 0);
    set(p.k_to_b, gs[1], 0, 0);
    set(p.n_to_b, gs[0], gs[2], gs[3]);
    set(p.n_to_out, size[1] * plane, g->step[0] * size[3], g->step[1]);
    p.a_first = cube_lowest(weight, NULL);
    p.a_row = ws[1];
    p.a_group = channels * ws[0];
    p.b_first = cube_lowest(grad, NULL);
    p.b_group = channels * gs[1];
    p.out_first = rest[0] * size[3] + rest[1];
    p.out_row = plane;
    p.out_group = p.m * plane;
    for (uint32_t i = 0; i < 2; i++) {
        phase[i] = cube_conv_phase_of(g, i, rest[i], size[2 + i],
                                      weight->shape[2 + i]);
        p.k_sizes[1 + i] = phase[i].count ? phase[i].count : 1;
        p.n_sizes[1 + i] = phase[i].places;
        p.k_to_a[1 + i] = phase[i].step * ws[2 + i];
        p.k_to_b[1 + i] = phase[i].pace * gs[2 + i];
        p.n_to_place[i] = 1;
        p.k_to_place[i] = phase[i].pace;
        p.first[i] = phase[i].start;
        p.plane[i] = grad->shape[2 + i];
        p.a_first += phase[i].first * ws[2 + i];
        p.b_first += phase[i].start * gs[2 + i];
    }
    if (!phase[0].count || !phase[1].count)
        p.k_sizes[0] = 0; /* they meet nothing: zeros */
    return run(device, call, &p, g->step[0] > 1 || g->step[1] > 1);
}

static hob_status conv2d_x_backward(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct cube_conv g;
    hob_status st = HOB_OK;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    cube_conv_init(&g, call);
    st = cube_conv_few(device, call, &g);
    if (st == HOB_ERR_UNSUPPORTED)
        st = cube_conv_windows_x(device, call, &g);
    if (st != HOB_ERR_UNSUPPORTED)
        return st;
    st = HOB_OK;
    for (int64_t y = 0; y < g.step[0] && y < out->shape[2] && !st; y++)
        for (int64_t x = 0; x < g.step[1] && x < out->shape[3] && !st; x++) {
            const int64_t rest[2] = {y, x};

            st = run_phase(device, call, &g, rest);
        }
    return st;
}

/* The elements of all windows as a body writes them out; WINDOWS_MOST + 1 if
 * they are more than that. */
static int64_t windows_of(const int64_t *weight, const int64_t *x,
                          const int64_t *out)
{
    const int64_t sizes[] = {x[1],   weight[2], weight[3],
                             out[0], out[2],    out[3]};
    int64_t count = 1;

    for (uint32_t i = 0; i < 6; i++) {
        if (sizes[i] && count > WINDOWS_MOST / sizes[i])
            return WINDOWS_MOST + 1;
        count *= sizes[i];
    }
    return count;
}

/*
 * Whether matmul, which is a library's in CUDA, is so much faster that the body
 * is: for halves, which have units of their own, and for long sums or many rows
 * where the windows do not take too much memory. Not where channels are so few
 * that there is no matrix to speak of.
 */
static int is_for_matmul(const struct cube_device *device, uint32_t dtype,
                         const int64_t *weight, int64_t windows)
{
    return device->runtime->language == CUBE_CUDA && weight[1] > FEW_CHANNELS &&
           (hob_dtype_size(dtype) == 2 ||
            (windows >= WINDOWS_LEAST && windows <= WINDOWS_MOST));
}

/* Planes are countable in 32 bits with all that is around them. */
static hob_status prepare(const struct hob_call *call, const int64_t *x,
                          const int64_t *weight)
{
    struct cube_conv g;

    cube_conv_init(&g, call);
    for (uint32_t i = 0; i < 2; i++) {
        if (x[2 + i] >= MOST_PLACES || g.padding[i] >= MOST_PLACES ||
            g.dilation[i] >= MOST_PLACES || weight[2 + i] >= MOST_PLACES ||
            g.dilation[i] * weight[2 + i] >= MOST_PLACES ||
            g.step[i] >= MOST_PLACES)
            return HOB_ERR_UNSUPPORTED;
    }
    return HOB_OK;
}

static hob_status prepare_conv(void *device, const struct hob_call *call,
                               struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t *weight = hob_arg_view(call, 1)->shape;
    const int64_t windows =
        weight[0] < MANY_ROWS
            ? WINDOWS_MOST + 1
            : windows_of(weight, x->shape, call->metas[0].shape);

    (void)out;
    return is_for_matmul(device, x->dtype, weight, windows)
               ? HOB_ERR_UNSUPPORTED
               : prepare(call, x->shape, weight);
}

static hob_status prepare_x(void *device, const struct hob_call *call,
                            struct hob_prepare *out)
{
    const struct hob_view *weight = hob_arg_view(call, 1);

    (void)out;
    return is_for_matmul(device, weight->dtype, weight->shape, WINDOWS_MOST + 1)
               ? HOB_ERR_UNSUPPORTED
               : prepare(call, call->args[0].u.i64s, weight->shape);
}

static hob_status prepare_weight(void *device, const struct hob_call *call,
                                 struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t *weight = call->args[1].u.i64s;
    const int64_t windows =
        windows_of(weight, x->shape, hob_arg_view(call, 2)->shape);

    (void)out;
    return is_for_matmul(device, x->dtype, weight, windows)
               ? HOB_ERR_UNSUPPORTED
               : prepare(call, x->shape, weight);
}

/* ---- entries ---- */

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

#define ATTRIBUTES                                                             \
    "stride: [i64], padding: [i64], dilation: [i64], groups: i64 = 1"

static const struct hob_entry entries[] = {
    {
        .op = "conv2d",
        .signature = "(x: Float, weight: Float, bias: Float?, " ATTRIBUTES
                     ") -> x",
        .dtypes = masks,
        .dtype_count = 3,
        .prepare = prepare_conv,
        .execute = conv2d,
    },
    {
        .op = "conv2d_x_backward",
        .signature = "(x_shape: shape, weight: Float, grad: Float, " ATTRIBUTES
                     ") -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .prepare = prepare_x,
        .execute = conv2d_x_backward,
    },
    {
        .op = "conv2d_weight_backward",
        .signature = "(x: Float, weight_shape: shape, grad: Float, " ATTRIBUTES
                     ") -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .prepare = prepare_weight,
        .execute = conv2d_weight_backward,
    },
};
#undef ATTRIBUTES

const struct cube_entries cube_conv_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
