/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the functions of CUDA, found at run time.
 *
 * Prototypes are our own, from the documentation of CUDA's driver API and of
 * NVRTC, so that nothing of CUDA is needed to build. Libraries are opened when
 * first needed and never closed. What is missing is said in words.
 */
#ifndef CCU_DRIVER_H
#define CCU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* Room for a reason in words. */
enum { CCU_REASON = 512 };

typedef uint64_t ccu_address; /* CUdeviceptr */

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUlib_st;
struct CUmod_st;
struct CUfunc_st;
struct CUmemPoolHandle_st;
struct _nvrtcProgram;

/* CUresult: those that are told apart. */
enum {
    CCU_OK = 0,
    CCU_OUT_OF_MEMORY = 2,
    CCU_NO_DEVICE = 100,
    CCU_ECC = 214,
    CCU_ILLEGAL_ADDRESS = 700,
    CCU_LAUNCH_TIMEOUT = 702,
    CCU_ASSERT = 710,
    CCU_STACK_ERROR = 714,
    CCU_LAUNCH_FAILED = 719,
    CCU_CONTAINED = 721,
    CCU_UNKNOWN = 999
};

/* CUdevice_attribute, CUmemPool_attribute, flags. */
enum {
    CCU_MAX_THREADS_PER_BLOCK = 1,
    CCU_MAX_GRID_DIM_X = 5,
    CCU_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CCU_WARP_SIZE = 10,
    CCU_MULTIPROCESSOR_COUNT = 16,
    CCU_COMPUTE_MODE = 20,
    CCU_CAPABILITY_MAJOR = 75,
    CCU_CAPABILITY_MINOR = 76,
    CCU_MAX_SHARED_MEMORY_OPTIN = 97,
    CCU_MEMORY_POOLS_SUPPORTED = 115,

    CCU_FUNCTION_SHARED = 8, /* CUfunction_attribute: the most at a launch */

    CCU_POOL_RELEASE_THRESHOLD = 4,
    CCU_POOL_RESERVED_CURRENT = 5,

    CCU_LOCATION_DEVICE = 1,
    CCU_ACCESS_READ_WRITE = 3,

    CCU_COMPUTE_MODE_PROHIBITED = 2,
    CCU_STREAM_NON_BLOCKING = 1,
    CCU_CAPTURE_RELAXED = 2, /* CUstreamCaptureMode */
    CCU_PROGRAMMATIC_SERIALIZATION = 6, /* CUlaunchAttributeID */
    CCU_EVENT_DISABLE_TIMING = 2
};

/* CUmemPoolProps: pinned memory of one device. */
struct ccu_pool_properties {
    int allocation_type; /* 1: pinned */
    int handle_types;    /* 0: not shared with other processes */
    int location_type;   /* 1: a device */
    int location_id;
    void *security;
    size_t bytes_most; /* 0: as the driver likes */
    unsigned short usage;
    unsigned char reserved[54];
};

/* CUtensorMap: a tensor as copies of its boxes see it. */
struct ccu_tensor_map {
    _Alignas(64) uint64_t words[16];
};

/* CUmemAccessDesc: who may use a pool's memory. */
struct ccu_access {
    int location_type;
    int location_id;
    int flags;
};

/* CUlaunchAttribute, CUlaunchConfig. */
struct ccu_launch_attribute {
    int id;
    int padding;
    union {
        int number;
        uint64_t words[8];
    } value;
};

struct ccu_launch_config {
    unsigned int groups[3];
    unsigned int size[3];
    unsigned int shared_bytes;
    struct CUstream_st *stream;
    const struct ccu_launch_attribute *attributes;
    unsigned int attribute_count;
};

struct ccu_driver {
#define CCU_DRIVER(member, name, parameters) int(*member) parameters;
#define CCU_LATER CCU_DRIVER
#include "symbols.def"
};

struct ccu_nvrtc {
#define CCU_NVRTC(member, name, parameters) int(*member) parameters;
#include "symbols.def"
};

/* Find the function NAME; NULL: there is none. What tests replace. */
typedef void (*ccu_any_fn)(void);
typedef ccu_any_fn (*ccu_find_fn)(const char *name);

/*
 * Fill in OUT from libcuda.so.1, or through FIND where that is not NULL.
 * Returns 0 and says why in REASON where something is missing.
 */
int ccu_driver_open(struct ccu_driver *out, ccu_find_fn find,
                    char reason[CCU_REASON]);
struct ccu_cublas;

/* The same from libcublasLt. */
int ccu_cublas_open(struct ccu_cublas *out, ccu_find_fn find,
                    const char *folder, char reason[CCU_REASON]);
/* The same from libnvrtc. FOLDER is searched first; "": only where the system
 * and an installed toolkit have it. */
int ccu_nvrtc_open(struct ccu_nvrtc *out, ccu_find_fn find, const char *folder,
                   char reason[CCU_REASON]);

/* As in "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was ..." */
void ccu_result_text(const struct ccu_driver *driver, int result, char *out,
                     size_t size);

#endif
