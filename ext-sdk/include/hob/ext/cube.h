/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/cube.h - kernels for GPUs: the interface "cube.compute", version 1,
 * of the backends of the cube family.
 *
 *     static const struct hob_cube_kernel scale = {
 *         HOB_CUBE_KERNEL_INIT_HEAD,
 *         .name = "scale",
 *         .code = scale_text,
 *         .buffers = {{"y", HOB_CUBE_WRITTEN}, {"x", 0}},
 *         .params = {{"count", HOB_CUBE_INDEX}, {"alpha", HOB_CUBE_F32}},
 *     };
 *
 * A kernel in the portable dialect (docs/CUBE.md) runs on the whole family:
 * its op's implementation has the selector "cube". One in GLSL, SPIR-V or CUDA
 * C runs on one runtime: "cube-vulkan" or "cube-cuda". It is compiled when it
 * is first launched on a device, and kept, in memory and on disk.
 *
 * - Work on a device is done in the order in which it is asked for. launch()
 *   does not wait for it; read() does.
 * - A view's data is a device address: it is passed on, never read.
 * - All functions may be called from several threads at once. Failures that
 *   have a CALL are put on it, naming op and kernel; otherwise the status says
 *   it all.
 * - The tables grow at their end only.
 */
#ifndef HOB_EXT_CUBE_H
#define HOB_EXT_CUBE_H

#include <hob/ext/plugin.h>

#include <stddef.h>
#include <string.h>

HOB_BEGIN_DECLS

#define HOB_CUBE_COMPUTE_NAME "cube.compute"
enum { HOB_CUBE_COMPUTE_VERSION = 1 };

/* ---- a kernel ---- */

enum {
    HOB_CUBE_MAX_BUFFERS = 12,
    HOB_CUBE_MAX_PARAMS = 32,
    HOB_CUBE_MAX_SHARED = 6,
    HOB_CUBE_MAX_CONSTANTS = 12
};

/* What the code of a kernel is. */
enum hob_cube_language {
    HOB_CUBE_PORTABLE = 0, /* the dialect, for every runtime */
    HOB_CUBE_GLSL = 1,     /* 4.60, a compute shader; Vulkan alone */
    HOB_CUBE_SPIRV = 2,    /* words, entry point "main"; Vulkan alone */
    HOB_CUBE_CUDA = 3      /* CUDA C, as NVRTC takes it; CUDA alone */
};

enum hob_cube_buffer_flags {
    HOB_CUBE_WRITTEN = 1, /* the kernel stores to it; it may load from it too */
    HOB_CUBE_ATOMIC = 2   /* ATOMIC_ADD and its like of the dialect */
};

struct hob_cube_buffer {
    const char *name;
    uint32_t flags; /* enum hob_cube_buffer_flags */
    uint32_t reserved;
};

/* Types of parameters. */
enum hob_cube_type {
    HOB_CUBE_I32 = 0,
    HOB_CUBE_U32 = 1,
    HOB_CUBE_I64 = 2,
    HOB_CUBE_U64 = 3,
    HOB_CUBE_F32 = 4,
    HOB_CUBE_F64 = 5,
    HOB_CUBE_INDEX = 6,  /* portable: I32, or I64 where offsets need it */
    HOB_CUBE_VALUE_0 = 7 /* portable: see HOB_CUBE_VALUE_OF */
};
/* The type in which buffer number i is computed. */
#define HOB_CUBE_VALUE_OF(i) (HOB_CUBE_VALUE_0 + (i))
/* A count of numbers: that which constant number i says; with 0 there is no
 * such parameter. */
#define HOB_CUBE_LENGTH(i) (UINT32_C(0x80000000) + (i))

struct hob_cube_param {
    const char *name;
    uint32_t type;  /* enum hob_cube_type */
    uint32_t count; /* of an array; 0: a single number; HOB_CUBE_LENGTH(i) */
};

/* Memory that a workgroup shares; in the dialect only. */
struct hob_cube_shared {
    const char *name;
    const char *type;   /* as in "float" or "VALUE_x" */
    const char *length; /* of constants, as in "TILE * (TILE + 1)" */
};

/* In the dialect only. */
enum hob_cube_kernel_flags {
    HOB_CUBE_SUBGROUPS = 1, /* SUBGROUP_... and LANE */
    HOB_CUBE_MATHS = 2,     /* m_exp and its like */
    HOB_CUBE_USES_I64 = 4,  /* besides where a buffer or parameter has it */
    HOB_CUBE_USES_F64 = 8
};

/*
 * Constant, and there as long as the process: devices know a kernel by its
 * address. Lists end at the first NULL name, or are full.
 *
 * In GLSL, SPIR-V and CUDA C the parameters are the buffers' addresses, then
 * the numbers, each aligned to its size: in GLSL a push_constant block of
 * layout std430 with buffer_reference types, in CUDA C the parameters of the
 * function NAME, which is extern "C". "#version 460" and #defines of
 * GROUP_SIZE, SUBGROUP_SIZE and the constants are put before the text.
 */
struct hob_cube_kernel {
    uint32_t struct_size;
    uint32_t language;   /* enum hob_cube_language */
    const char *name;    /* required: a C identifier, for messages too */
    const void *code;    /* required: text, or words of SPIR-V */
    uint64_t code_bytes; /* of SPIR-V; text ends with a NUL */
    struct hob_cube_buffer buffers[HOB_CUBE_MAX_BUFFERS];
    struct hob_cube_param params[HOB_CUBE_MAX_PARAMS];
    struct hob_cube_shared shared[HOB_CUBE_MAX_SHARED];
    const char *constants[HOB_CUBE_MAX_CONSTANTS]; /* names of numbers */
    /* The type of group_sum() and its like of the dialect, as in "float" or
     * "VALUE_x"; NULL: they are not used. */
    const char *accum;
    uint32_t flags; /* enum hob_cube_kernel_flags */
    uint32_t reserved;
};

#define HOB_CUBE_KERNEL_INIT_HEAD .struct_size = sizeof(struct hob_cube_kernel)

/* ---- a launch ---- */

/*
 * Everything in the order of the kernel's lists. A number is an I64, U64, BOOL
 * or ENUM, a F64, or for an array I64S or F64S; attributes of a call can be
 * passed on as they are. It must fit its parameter, but goes to one of type
 * HOB_CUBE_VALUE_OF as a scalar to a tensor: rounded, wrapped.
 */
struct hob_cube_launch {
    uint32_t struct_size;
    uint32_t group_size; /* invocations of a workgroup; 0: 256 */
    const struct hob_cube_kernel *kernel;
    /* Workgroups. None are no work; more than the device takes become as many
     * as it takes, so kernels go on in steps of GROUP_COUNT. */
    int64_t groups;
    /* NULL: this launch does without the buffer (in the dialect its words do
     * not exist then). */
    const struct hob_view *const *views;
    const hob_value *numbers;
    const int32_t *constants;
    const uint8_t *widths; /* of vectors, one a buffer; NULL: all 1 */
    uint32_t view_count;
    uint32_t number_count;
    uint32_t constant_count;
    uint32_t width_count;
    int64_t reach; /* INDEX can count so far, besides the views' offsets */
};

#define HOB_CUBE_LAUNCH_INIT_HEAD .struct_size = sizeof(struct hob_cube_launch)

/* ---- a product of matrices ---- */

/* What becomes of a product before it is stored. */
enum hob_cube_epilogue {
    HOB_CUBE_BIAS = 1, /* bias is added to each row */
    HOB_CUBE_RELU = 2,
    HOB_CUBE_GELU_TANH = 4, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))):
                               not the op gelu, which is exact; cuBLASLt is
                               within 1e-4 in f32 and 1e-8 in f64 */
    HOB_CUBE_SUM_B = 8, /* alone: bias is written, the sum of b's rows; with a
                           transposed and b a gradient, that of a bias */
    HOB_CUBE_KEEP = 16, /* with RELU or GELU_TANH: aux is written, which their
                           slopes are made of */
    HOB_CUBE_RELU_SLOPE = 32, /* the product times relu's slope, from aux: with
                                 a a gradient and b a weight transposed, the
                                 gradient of what relu was given below. At 0
                                 cuBLASLt has 1, the op relu_backward 0 */
    HOB_CUBE_GELU_TANH_SLOPE = 64,
    HOB_CUBE_SUM_C = 128 /* with a slope: bias is written, the sum of c's rows:
                            the gradient of the bias below */
};

/*
 * c [m, n] = a [m, k] b [k, n], with an epilogue, by the runtime's library of
 * products. All have one dtype. a and b are row-major or transposed, rows may
 * lie apart; c is row-major, and so is bias [n]. No size is 0. aux is what gelu
 * was given, [m, n] of that dtype, with rows a multiple of 8 elements apart; of
 * relu it is u8, in each row a bit for a column, the lowest first, with rows a
 * multiple of 16 bytes apart.
 */
struct hob_cube_gemm {
    uint32_t struct_size;
    uint32_t epilogue; /* enum hob_cube_epilogue, or'ed */
    const struct hob_view *a;
    const struct hob_view *b;
    const struct hob_view *c;
    const struct hob_view *bias; /* NULL without BIAS, SUM_B and SUM_C */
    const struct hob_view *aux;  /* NULL without KEEP and slopes */
};

#define HOB_CUBE_GEMM_INIT_HEAD .struct_size = sizeof(struct hob_cube_gemm)

/* ---- the interface ---- */

enum hob_cube_runtime { HOB_CUBE_ON_VULKAN = 0, HOB_CUBE_ON_CUDA = 1 };

struct hob_cube_limits {
    uint32_t struct_size;
    uint32_t runtime;       /* enum hob_cube_runtime */
    uint32_t group_size;    /* most invocations of a workgroup */
    uint32_t groups;        /* most workgroups of a launch */
    uint32_t shared_bytes;  /* of a workgroup */
    uint32_t subgroup_size; /* a power of 2 */
    uint32_t processors;    /* 0: unknown */
    uint32_t param_bytes;   /* of what is not in the dialect: the most */
    uint32_t has_f64;       /* 0 or 1 */
    uint32_t has_i64;
    uint64_t memory_bytes; /* of the device */
    const char *device;    /* as in "cube-vulkan:0" */
};

struct hob_cube_compute {
    uint32_t struct_size;
    uint32_t version;
    /*
     * Launch a kernel for CALL. HOB_ERR_ARGUMENT for what does not fit the
     * kernel, HOB_ERR_PLUGIN for one of the other runtime, HOB_ERR_DTYPE for
     * what the device cannot compute, HOB_ERR_INTERNAL for one that does not
     * compile: the message has the compiler's words.
     */
    hob_status (*launch)(void *instance, struct hob_call *call,
                         const struct hob_cube_launch *launch);
    /* Groups for COUNT elements, PER_GROUP of them at a time: as many as the
     * device can have at work, or fewer. */
    int64_t (*groups)(void *instance, int64_t count, int64_t per_group);
    /* struct_size of OUT is set by the caller. */
    void (*limits)(void *instance, struct hob_cube_limits *out);
    /* Memory of the device besides call->workspace. It may be given back as
     * soon as what uses it has been launched. */
    hob_status (*memory_take)(void *instance, uint64_t bytes, void **out_data);
    void (*memory_give)(void *instance, void *data, uint64_t bytes);
    /* Copy from the device, and wait. */
    hob_status (*read)(void *instance, void *host_data, const void *data,
                       uint64_t bytes);
    /*
     * Ask for GEMM, as launch() does for a kernel. HOB_ERR_UNSUPPORTED,
     * without a message, where the runtime has no library for it, or that no
     * kernel for these sizes: launch a kernel then. HOB_ERR_ARGUMENT for views
     * that do not fit together.
     */
    hob_status (*gemm)(void *instance, struct hob_call *call,
                       const struct hob_cube_gemm *gemm);
};

/* COMPUTE's gemm; HOB_ERR_UNSUPPORTED also where COMPUTE is too old for it. */
static inline hob_status hob_cube_gemm_run(
    const struct hob_cube_compute *compute, void *instance,
    struct hob_call *call, const struct hob_cube_gemm *gemm)
{
    return compute->struct_size >= offsetof(struct hob_cube_compute, gemm) +
                                       sizeof(compute->gemm) &&
                   compute->gemm
               ? compute->gemm(instance, call, gemm)
               : HOB_ERR_UNSUPPORTED;
}

/* The interface of CALL's device; NULL, and a message on CALL, where it is no
 * GPU or too old. */
static inline const struct hob_cube_compute *
hob_cube_find(struct hob_call *call, void **out_instance)
{
    const struct hob_cube_compute *compute =
        (const struct hob_cube_compute *)call->host->interface(
            call->device, HOB_CUBE_COMPUTE_NAME, HOB_CUBE_COMPUTE_VERSION,
            out_instance);

    if (!compute)
        /* In these brackets a macro of that name does no harm. */
        (void)(*call->host->fail)(
            call, HOB_ERR_PLUGIN,
            "%s: the device has no interface " HOB_CUBE_COMPUTE_NAME
            " version %d, so it takes no kernels for GPUs",
            call->op_name, HOB_CUBE_COMPUTE_VERSION);
    return compute;
}

/* COUNT elements of DTYPE at DATA as a view, as for call->workspace. */
static inline struct hob_view hob_cube_view(void *data, uint32_t dtype,
                                            int64_t count)
{
    struct hob_view view;

    memset(&view, 0, sizeof(view));
    view.data = data;
    view.dtype = (uint8_t)dtype;
    view.rank = 1;
    view.flags = HOB_VIEW_CONTIGUOUS | HOB_VIEW_INJECTIVE;
    view.shape[0] = count;
    view.strides[0] = 1;
    return view;
}

HOB_END_DECLS

#endif
