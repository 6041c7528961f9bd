/*
 * @OP@.@SUFFIX@ - the functions that @OP@.json promises.
 *
 * build/@OP@_glue.h, made of the manifest, begins with their prototypes. A
 * function that is promised but not written is an error of the linker.
 */
#include "@OP@_glue.h"
@if CUBE

#include <hob/ext/cube.h>

#include <string.h>
@end

/*
 * The body says what the op is, in terms of other ops. It runs on every
 * backend that the manifest lists and has no kernel, and autodiff
 * differentiates it.
 */
hob_tensor *@NAMESPACE@_@OP@_body(
    hob_scope *scope, hob_tensor *x, double factor)
{
    return hob_mul_scalar(scope, hob_mul(scope, x, x), hob_f64(factor));
}
@if TYPES

/* A struct of tensors is returned through OUT; NULL cannot come in. */
hob_status @NAMESPACE@_@OP@_split_body(
    hob_scope *scope, hob_tensor *x, const struct @NAMESPACE@_limit *limit,
    struct @NAMESPACE@_pair *out)
{
    switch (limit->variant) {
    case @UPPER_NAMESPACE@_LIMIT_NONE:
        out->low = x;
        break;
    case @UPPER_NAMESPACE@_LIMIT_VALUE:
        out->low =
            hob_clamp(scope, x, hob_none(), hob_f64(limit->u.value));
        break;
    case @UPPER_NAMESPACE@_LIMIT_EACH:
        out->low = hob_minimum(scope, x, limit->u.each);
        break;
    }
    out->high = hob_sub(scope, x, out->low);
    return hob_scope_host(scope)->scope_status(scope);
}
@end
@if KERNEL

@if CXX
template <typename T>
static void compute(const struct @NAMESPACE@_@OP@_call *call, int64_t first,
                    int64_t last)
{
    const T *x = static_cast<const T *>(call->x->data);
    T *y = static_cast<T *>(call->out->data);

    for (int64_t i = first; i < last; i++)
        y[i] = x[i] * x[i] * static_cast<T>(call->factor);
}

/* One piece of the work, on one of the host's threads. */
static void run(void *context, int64_t first, int64_t last, uint32_t worker)
{
    const struct @NAMESPACE@_@OP@_call *call =
        static_cast<const struct @NAMESPACE@_@OP@_call *>(context);

    (void)worker;
    if (call->x->dtype == HOB_DTYPE_F32)
        compute<float>(call, first, last);
    else
        compute<double>(call, first, last);
}
@else
static void compute_f32(const struct @NAMESPACE@_@OP@_call *call, int64_t first,
                        int64_t last)
{
    const float *x = call->x->data, factor = (float)call->factor;
    float *y = call->out->data;

    for (int64_t i = first; i < last; i++)
        y[i] = x[i] * x[i] * factor;
}

static void compute_f64(const struct @NAMESPACE@_@OP@_call *call, int64_t first,
                        int64_t last)
{
    const double *x = call->x->data;
    double *y = call->out->data;

    for (int64_t i = first; i < last; i++)
        y[i] = x[i] * x[i] * call->factor;
}

/* One piece of the work, on one of the host's threads. */
static void run(void *context, int64_t first, int64_t last, uint32_t worker)
{
    const struct @NAMESPACE@_@OP@_call *call = context;

    (void)worker;
    if (call->x->dtype == HOB_DTYPE_F32)
        compute_f32(call, first, last);
    else
        compute_f64(call, first, last);
}
@end

/*
 * The kernel for flex. The manifest asks for contiguous arguments of dtype
 * f32 or f64; of any other the body is run. The results are allocated, with
 * the shapes that "infer" gave. Pieces depend on the size only, so a result
 * does not depend on the number of threads.
 */
hob_status @NAMESPACE@_@OP@_flex(void *device, struct hob_call *call)
{
    struct @NAMESPACE@_@OP@_call own;

    (void)device;
    @NAMESPACE@_@OP@_unpack(call, &own);
    call->host->parallel_for(call->host, hob_view_count(own.x), 16384, run,
                             &own);
    return HOB_OK;
}
@end
@if CUBE

/* @OP@.cube as a string; the Makefile makes it. */
static const char @OP@_text[] =
#include "@OP@.cube.inc"
    ;

@if CXX
/* What @OP@.cube takes. Constant, and there as long as the process. */
static const struct hob_cube_kernel @OP@_kernel = {
    sizeof(struct hob_cube_kernel),
    HOB_CUBE_PORTABLE,
    "@NAMESPACE@_@OP@",
    @OP@_text,
    0,
    {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    {{"count", HOB_CUBE_INDEX, 0}, {"factor", HOB_CUBE_VALUE_OF(1), 0}},
    {},
    {},
    nullptr,
    0,
    0,
};
@else
/* What @OP@.cube takes. Constant, and there as long as the process. */
static const struct hob_cube_kernel @OP@_kernel = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "@NAMESPACE@_@OP@",
    .code = @OP@_text,
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0}, {"x", 0, 0}},
    .params = {{"count", HOB_CUBE_INDEX, 0},
               {"factor", HOB_CUBE_VALUE_OF(1), 0}},
};
@end

/*
 * The kernel for GPUs: @OP@.cube, launched over the elements. Everything goes
 * in the order of the lists above.
 */
hob_status @NAMESPACE@_@OP@_cube(void *device, struct hob_call *call)
{
    const struct hob_view *const views[] = {hob_ret_view(call, 0),
                                            hob_arg_view(call, 0)};
    const int64_t count = hob_view_count(views[1]);
    const hob_value numbers[] = {
        hob_i64(count), call->args[@UPPER_NAMESPACE@_@UPPER_OP@_ARG_FACTOR]};
    void *instance;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    struct hob_cube_launch launch;

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    memset(&launch, 0, sizeof(launch));
    launch.struct_size = sizeof(launch);
    launch.kernel = &@OP@_kernel;
    launch.views = views;
    launch.view_count = 2;
    launch.numbers = numbers;
    launch.number_count = 2;
    launch.groups = cube->groups(instance, count, 256);
    return cube->launch(instance, call, &launch);
}
@end
@if BACKWARD

/*
 * d(factor x^2)/dx = 2 factor x. The ops called here run one level below
 * autodiff; x is there because the manifest says "save". A gradient that is
 * NULL is zero.
 */
hob_status @NAMESPACE@_@OP@_backward(
    hob_scope *scope, const struct hob_grad_call *call)
{
    enum { X = @UPPER_NAMESPACE@_@UPPER_OP@_IN_X };
    double factor = call->args[@UPPER_NAMESPACE@_@UPPER_OP@_ARG_FACTOR].u.f64;

    if (call->grads[0] && call->needs_grad[X])
        call->out_grads[X] =
            hob_mul_scalar(scope, hob_mul(scope, call->grads[0],
                                          call->inputs[X]),
                           hob_f64(2 * factor));
    return hob_scope_host(scope)->scope_status(scope);
}
@end
