/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what a GPU runtime does for the kernels of plugins/cube, and
 * what they know of it.
 *
 * Work on a device is done in the order in which it is asked for; nothing but
 * wait() and download() waits for it. A tensor's data is a device address, so
 * plain additions of bytes make addresses of elements.
 *
 * Messages (out_message) are made with host->mem_alloc, as in
 * hob/ext/plugin.h.
 */
#ifndef CUBE_RUNTIME_H
#define CUBE_RUNTIME_H

#include <hob/ext/cube.h>
#include <hob/ext/plugin.h>

#include <stdatomic.h>

struct cube_kernels; /* compiled kernels in memory, kernels.h */
struct cube_device;

/* What a runtime compiles. */
enum cube_language { CUBE_GLSL, CUBE_CUDA };

/* MiB of compiled kernels on disk where nobody says how many. */
enum { CUBE_CACHE_LIMIT = 1024 };

struct cube_limits {
    uint64_t memory_bytes;     /* of the device */
    uint64_t alloc_bytes;      /* the largest block */
    uint32_t group_size;       /* most invocations of a workgroup */
    uint32_t groups;           /* most workgroups along x; y and z are 1 */
    uint32_t shared_bytes;     /* of a workgroup */
    uint32_t subgroup_size;    /* a power of two; of every subgroup */
    uint32_t processors;       /* multiprocessors; 0 unknown */
    uint32_t param_bytes;      /* parameters that go along with a launch; more
                                  go through memory, which the prelude does */
    uint32_t has_f64, has_i64; /* 0 or 1: as dtypes of elements */
    uint32_t has_f16;          /* arithmetic; storage there is always */
    uint32_t matrices;         /* dtypes, HOB_DTYPE_BIT, of which subgroups
                                  multiply matrices, CUBE_MATRICES */
    uint32_t cluster;          /* most workgroups that read each other's
                                  shared arrays, CUBE_CLUSTERS; 0: none do */
    uint32_t keeps_nan;        /* compilers do not assume that no f32 is NaN */
    uint32_t keeps_denormals;  /* of f32, in every operation */
    uint32_t rounds_f16;   /* 0 or 1: it rounds f32 to f16 by itself, to nearest
                              even; CUDA's prelude knows */
    uint32_t sums_to_bf16; /* 0 or 1: programs round to bf16 by sums */
    uint32_t keeps_loops;  /* 0 or 1: a processor, which gains little by tiles
                              laid out straight, and whose compiler takes
                              several times as long over them */
};

/* One kernel as text in the runtime's own language. */
struct cube_source {
    const char *name; /* for people and as the entry's name: a C identifier */
    const char *text; /* whole: prelude, libraries, kernel */
    uint64_t bytes;   /* of text */
    uint32_t group_size;
    uint32_t param_bytes;
    uint32_t is_binary; /* text is what compile would make: not compiled */
    uint32_t waits;     /* CUDA: it waits for the kernel before it by itself, as
                           all of the dialect do on sm_90 */
    uint32_t is_tied;   /* CUDA: to this architecture alone, as sm_90a is */
};

/* Elements that a launch reads or writes: memory between two addresses. */
struct cube_range {
    const void *data;
    uint64_t bytes;
    uint32_t is_written;
    uint32_t reserved;
};

struct cube_launch {
    const char *op_name; /* whose work it is, for messages */
    uint32_t groups;     /* along x, at least 1 and at most limits.groups */
    uint32_t range_count;
    const struct cube_range *ranges; /* all that is touched */
    const void *params;              /* copied before launch returns */
    uint32_t param_bytes;
    /* CUDA: the function has this many parameters of its own, which begin
     * here in params; 0: it takes all of them as one. */
    uint32_t place_count;
    const uint16_t *places;
    uint32_t shared_bytes; /* CUDA: besides the kernel's shared arrays; more
                              than limits.shared_bytes if it is tied */
    uint32_t reserved;
};

struct cube_runtime {
    const char *selector; /* as in "cube-vulkan" */
    uint32_t language;    /* enum cube_language */
    /* What makes compiled code unfit for another machine: compiler, its
     * version, architecture, driver. Part of the key of the cache on disk. */
    const char *(*identity)(struct cube_device *device);

    /* SOURCE to a binary (SPIR-V, cubin) that the cache may keep. Nothing is
     * contracted and NaN is NaN: NVRTC gets --fmad=false, SPIR-V goes through
     * cube_spirv_exact() (spirv.h). The binary is given back with
     * host->mem_free. Any thread. */
    hob_status (*compile)(struct cube_device *device,
                          const struct cube_source *source, void **out_binary,
                          uint64_t *out_bytes, char **out_message);
    /* A binary to what launch takes. */
    hob_status (*kernel_open)(struct cube_device *device,
                              const struct cube_source *source,
                              const void *binary, uint64_t bytes,
                              void **out_kernel, char **out_message);
    void (*kernel_close)(struct cube_device *device, void *kernel);
    hob_status (*launch)(struct cube_device *device, void *kernel,
                         const struct cube_launch *launch, char **out_message);

    /* As in struct hob_backend, and the very same functions. */
    hob_status (*alloc)(void *device, uint64_t bytes, void **out_data);
    /* Work that was asked for before may still use DATA: it is given out
     * again to later work alone, or once that work is done. */
    void (*free)(void *device, void *data, uint64_t bytes);
    /* Before later work and after earlier work; HOST_DATA is read before it
     * returns. */
    hob_status (*upload)(void *device, void *data, const void *host_data,
                         uint64_t bytes);
    hob_status (*download)(void *device, void *host_data, const void *data,
                           uint64_t bytes);
    /* CUBE_FLAG_BYTES of memory that the host reaches too, at *OUT_HOST, for
     * flags (flag.h), all CUBE_FLAG_NONE at first: the same each time, made on
     * first need. */
    hob_status (*flags)(struct cube_device *device, uint32_t **out_host,
                        void **out_data);
    /* For earlier work; the host then sees what it wrote to flags. */
    hob_status (*wait)(struct cube_device *device);

    /* As in struct hob_cube_compute; what is asked for has been checked. NULL:
     * there is no library. */
    hob_status (*gemm)(struct cube_device *device, const char *name,
                       const struct hob_cube_gemm *gemm, char **out_message);
    /* cube_matmul of ops/matmul.h. NULL: by the kernels. */
    hob_status (*matmul)(struct cube_device *device, struct hob_call *call,
                         const struct hob_view *lhs, const struct hob_view *rhs,
                         const struct hob_view *out);

    /* Where the calling thread records (hob/ext/capture.h) no flag (flag.h)
     * can be read: *OUT_DATA is one that is looked at after each replay, for
     * OP_NAME's sake; NULL if it does not record. NULL: this runtime never
     * does. */
    hob_status (*flag_later)(struct cube_device *device, const char *op_name,
                             void **out_data);
};

/* The first member of a runtime's own device. */
struct cube_device {
    const struct cube_runtime *runtime;
    const struct hob_host *host;
    struct cube_kernels *kernels; /* cube_kernels_new() at opening */
    struct cube_limits limits;
    const char *name;      /* as in "cube-vulkan:0", for messages */
    const char *cache_dir; /* of compiled kernels; NULL: the usual place */
    uint32_t cache_limit;  /* of all of them, in MiB; 0: none */
    uint32_t reserved;
    _Atomic uint64_t flags_taken; /* a bit for each flag (flag.h) */
};

#endif
