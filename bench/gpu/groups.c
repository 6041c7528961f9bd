/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.c - groups with a softmax, a norm, a view or sums of columns in them,
 * on a device as it is and under fusion: groups DEVICE [CASE...].
 *
 * Results are compared at first. Bytes are those that have to be read and
 * written if nothing in between is, so TB/s is to be seen beside that of neg,
 * which does nothing else.
 */
#include "timing.h"

#include <hob/ext/fusion.h>

#include <stdio.h>
#include <string.h>

enum { INPUTS = 4, RESULTS = 2 };

struct shape {
    int64_t rows, columns;
};

static const struct shape shapes[] = {
    {16384, 1024}, {16384, 4096}, {4096, 16384}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* Two matrices and two vectors, on the device that ops are asked of. */
struct work {
    const struct group *group;
    hob_tensor *in[INPUTS];
    hob_tensor **keep; /* where results go; NULL: nowhere */
};

struct group {
    const char *name;
    void (*ops)(hob_scope *scope, hob_tensor *const *in, hob_tensor **out);
    int streams; /* matrices that have to be read and written */
    int results;
};

/* ---- groups ---- */

static void one(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[0] = hob_neg(scope, in[0]);
}

static void residual(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[1] = hob_add(scope, in[0], in[1]);
    out[0] = hob_layer_norm(scope, out[1], in[2], in[3], 1e-5);
}

static void norm_gelu(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    hob_tensor *y = hob_layer_norm(scope, in[0], in[2], in[3], 1e-5);

    out[0] = hob_gelu(scope, hob_move(scope, y));
}

static void rms_gate(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    hob_tensor *y = hob_rms_norm(scope, in[0], in[2], 1e-5);

    out[0] = hob_mul(scope, hob_move(scope, y), hob_silu(scope, in[1]));
}

static void masked(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[0] = hob_softmax(
        scope,
        hob_add(scope, hob_mul_scalar(scope, in[0], hob_f64(0.125)), in[1]),
        -1);
}

static void turned(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    hob_tensor *y = hob_swap_dims(scope, hob_relu(scope, in[0]), 0, 1);

    out[0] =
        hob_add(scope, hob_move(scope, y), hob_swap_dims(scope, in[1], 0, 1));
}

/* The gradients of a relu and of the bias before it. */
static void bias(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[0] = hob_relu_backward(scope, in[0], in[1]);
    out[1] = hob_sum_dim(scope, out[0], 0);
}

static void columns(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[0] = hob_sum_dim(scope, hob_mul(scope, in[0], in[1]), 0);
}

/* Of images, as many as there are rows: what a norm of batches needs. */
static void channels(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    const int64_t *sizes = hob_tensor_shape(in[0]);
    const int64_t shape[] = {sizes[0], 64, sizes[1] / 64}, dims[] = {0, 2};
    hob_tensor *x = hob_reshape(scope, in[0], shape, 3);
    hob_tensor *y = hob_reshape(scope, in[1], shape, 3);

    out[0] = hob_sum_dims(scope, hob_mul(scope, x, y), dims, 2);
    out[1] = hob_sum_dims(scope, y, dims, 2);
}

/* X as images of 64 channels of 32 x 32, and VECTOR as one number of each. */
static hob_tensor *images(hob_scope *scope, hob_tensor *x)
{
    const int64_t shape[] = {hob_tensor_count(x) >> 16, 64, 32, 32};

    return hob_reshape(scope, x, shape, 4);
}

static hob_tensor *channels_of(hob_scope *scope, hob_tensor *vector)
{
    const int64_t first = 0, last = 64;

    return hob_slice(scope, vector, &first, 1, &last, 1, NULL, 0);
}

/* The end of a residual block. */
static void group_norm(hob_scope *scope, hob_tensor *const *in,
                       hob_tensor **out)
{
    hob_tensor *y = hob_group_norm(scope, images(scope, in[0]), 8,
                                   channels_of(scope, in[2]),
                                   channels_of(scope, in[3]), 1e-5);

    y = hob_add(scope, hob_move(scope, y), images(scope, in[1]));
    out[0] = hob_relu(scope, hob_move(scope, y));
}

static void instance_norm(hob_scope *scope, hob_tensor *const *in,
                          hob_tensor **out)
{
    hob_tensor *y = hob_group_norm(scope, images(scope, in[0]), 64,
                                   channels_of(scope, in[2]),
                                   channels_of(scope, in[3]), 1e-5);

    out[0] = hob_relu(scope, hob_move(scope, y));
}

/* What a projection gives, as heads. */
static void heads(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    const int64_t *sizes = hob_tensor_shape(in[0]);
    const int64_t shape[] = {sizes[0], 16, sizes[1] / 16}, order[] = {1, 0, 2};
    hob_tensor *y = hob_reshape(scope, hob_add(scope, in[0], in[2]), shape, 3);

    out[0] =
        hob_mul_scalar(scope, hob_permute(scope, y, order, 3), hob_f64(0.125));
}

/* And back. */
static void merge(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    const int64_t *sizes = hob_tensor_shape(in[0]);
    const int64_t shape[] = {16, sizes[0], sizes[1] / 16}, order[] = {1, 0, 2};
    hob_tensor *y = hob_neg(scope, hob_reshape(scope, in[0], shape, 3));

    y = hob_reshape(scope, hob_permute(scope, y, order, 3), sizes, 2);
    out[0] = hob_add(scope, y, in[1]);
}

static void range(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    const int64_t *sizes = hob_tensor_shape(in[0]);
    const int64_t first[] = {0, 0}, last[] = {sizes[0], sizes[1] / 2};
    hob_tensor *y = hob_mul(scope, in[0], in[1]);

    y = hob_slice(scope, y, first, 2, last, 2, NULL, 0);
    out[0] = hob_neg(scope, hob_move(scope, y));
}

/* Columns less their mean: each element is read twice. */
static void centred(hob_scope *scope, hob_tensor *const *in, hob_tensor **out)
{
    out[0] = hob_sub(scope, in[0], hob_mean_dim(scope, in[0], 0));
}

static const struct group groups[] = {
    {"neg", one, 2, 1},
    {"residual add, layer norm", residual, 4, 2},
    {"layer norm, gelu", norm_gelu, 2, 1},
    {"rms norm times silu", rms_gate, 3, 1},
    {"scale, add, softmax", masked, 3, 1},
    {"relu, turn, add", turned, 3, 1},
    {"relu's gradient, bias", bias, 3, 2},
    {"mul, sum of columns", columns, 2, 1},
    {"sums of channels", channels, 2, 2},
    {"columns less their mean", centred, 3, 1},
    {"group norm, add, relu", group_norm, 3, 1},
    {"instance norm, relu", instance_norm, 2, 1},
    {"bias, heads, scale", heads, 2, 1},
    {"neg, heads joined, add", merge, 3, 1},
    {"mul, half, neg", range, 2, 1},
};
enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

/* ---- runs ---- */

static hob_status run(hob_scope *scope, void *context)
{
    const struct work *work = context;
    hob_tensor *out[RESULTS];

    work->group->ops(scope, work->in, out);
    for (int i = 0; i < work->group->results && work->keep; i++)
        work->keep[i] = out[i];
    return hob_eval(out, (uint32_t)work->group->results, NULL);
}

static void make_inputs(struct work *work, hob_scope *scope, hob_device *device,
                        struct shape shape, hob_dtype dtype)
{
    const int64_t sizes[] = {shape.rows, shape.columns};

    for (int i = 0; i < INPUTS; i++)
        work->in[i] = hob_random_uniform(scope, i < 2 ? sizes : sizes + 1,
                                         i < 2 ? 2 : 1, -1, 1, device, dtype);
}

/* How far DEVICES are from each other on a few rows; negative: no results. */
static double difference(hob_scope *root, hob_device *const *devices,
                         struct work *work, struct shape shape, hob_dtype dtype)
{
    hob_tensor *results[2][RESULTS] = {{NULL}}, *pair[2];
    hob_scope *scope = hob_scope_child(root);
    double off = 0;

    shape.rows = 64; /* an image of some cases */
    for (int i = 0; i < 2; i++) {
        hob_seed(root, 7);
        make_inputs(work, scope, devices[i], shape, dtype);
        work->keep = results[i];
        if (run(scope, work))
            off = -1;
    }
    work->keep = NULL;
    for (int i = 0; i < work->group->results && off >= 0; i++) {
        double one_off;

        pair[0] = results[1][i];
        pair[1] = results[0][i];
        one_off = timing_difference(pair);
        if (one_off < 0 || one_off > off)
            off = one_off;
    }
    hob_scope_close(scope);
    return off;
}

/* Nonzero if it failed. */
static int measure(hob_scope *root, hob_device *const *devices,
                   const struct group *group, struct shape shape,
                   hob_dtype dtype)
{
    const double bytes = (double)group->streams * (double)shape.rows *
                         (double)shape.columns * hob_dtype_size(dtype);
    struct work work = {.group = group};
    const double off = difference(root, devices, &work, shape, dtype);
    double seconds[2];

    for (int i = 0; i < 2; i++) {
        hob_scope *scope = hob_scope_child(root);

        make_inputs(&work, scope, devices[i], shape, dtype);
        (void)!hob_eval(work.in, INPUTS, NULL);
        seconds[i] = timing_of(scope, devices[i], run, &work, NULL);
        if (off < 0 || seconds[i] < 0) {
            hob_error error = HOB_ERROR_INIT;

            if (!run(scope, &work) && !hob_scope_error(scope, &error))
                (void)!hob_device_sync(devices[i], &error);
            printf("%-26s %-5s %5d x %5d  failed on %s: %s\n", group->name,
                   hob_dtype_name(dtype), (int)shape.rows, (int)shape.columns,
                   hob_device_name(devices[i]),
                   error.message ? error.message : "it cannot be compared");
            hob_scope_close(scope);
            return 1;
        }
        hob_scope_close(scope);
    }
    printf("%-26s %-5s %5d x %5d  %9.3f ms %6.3f TB/s one by one, %9.3f ms "
           "%6.3f TB/s fused, off by %.1e\n",
           group->name, hob_dtype_name(dtype), (int)shape.rows,
           (int)shape.columns, 1e3 * seconds[0], 1e-12 * bytes / seconds[0],
           1e3 * seconds[1], 1e-12 * bytes / seconds[1], off);
    fflush(stdout);
    return 0;
}

/* Kernels are there when they are to run, not a while later. */
static void wait_for_compilers(hob_scope *scope, hob_device *device)
{
    void *instance = NULL;
    const struct hob_fused_compute *fused = hob_scope_host(scope)->interface(
        device, HOB_FUSED_COMPUTE, HOB_FUSED_COMPUTE_VERSION, &instance);

    if (fused && fused->set_waits)
        fused->set_waits(instance, 1);
}

static int measure_all(hob_scope *root, hob_device *const devices[2], int argc,
                       char **argv)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_BF16};
    int failed = 0;

    wait_for_compilers(root, devices[1]);
    for (int g = 0; g < GROUPS; g++)
        for (int d = 0; d < 2; d++)
            for (int s = 0; s < SHAPES; s++)
                if (timing_is_asked_for(groups[g].name, argc, argv))
                    failed |= measure(root, devices, &groups[g], shapes[s],
                                      dtypes[d]);
    return failed;
}

int main(int argc, char **argv)
{
    return timing_with_fusion("groups DEVICE [PART-OF-A-CASE'S-NAME...]", "%s",
                              argc, argv, measure_all);
}
