/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda_parts.h - what the files of the fake CUDA share: how a function
 * fails, and work, which a stream does at once or, while it is captured, writes
 * down.
 */
#ifndef FAKE_CUDA_PARTS_H
#define FAKE_CUDA_PARTS_H

#include "fake_cuda.h"

struct CUctx_st {
    int device;
};

struct CUstream_st {
    int device;
    struct CUgraph_st *written; /* what is captured; NULL: nothing is */
};

enum {
    FAKE_INVALID_OPTION = 5,       /* of NVRTC */
    FAKE_CAPTURE_UNSUPPORTED = 900 /* CUDA_ERROR_..., as the driver says */
};

extern _Thread_local struct CUctx_st *fake_current;

/* What NAME is to answer instead of doing its work; 0: nothing. */
int fake_fault(const char *name);

#define FAULT(name)                                                            \
    do {                                                                       \
        const int result_ = fake_fault(name);                                  \
        if (result_)                                                           \
            return result_;                                                    \
    } while (0)

/* A call in the current context: it must be there, and not be lost. */
#define IN_CONTEXT(name)                                                       \
    do {                                                                       \
        if (!fake_current)                                                     \
            return 201; /* CUDA_ERROR_INVALID_CONTEXT */                       \
        if (fake_cuda.lost[fake_current->device])                              \
            return fake_cuda.lost[fake_current->device];                       \
        FAULT(name);                                                           \
    } while (0)

/* ---- cuBLASLt ---- */

/* A description of a product, a layout or a preference. */
struct fake_blas_object {
    int turned[2];
    int epilogue; /* as the library numbers them; 0: none */
    void *bias, *aux;
    int64_t aux_stride; /* elements, of relu bits */
    int type, count;
    int64_t rows, columns, stride, batch;
};

/* d = a b, column-major. */
struct fake_product {
    struct fake_blas_object desc, left, right, to;
    const void *a, *b;
    void *d;
};

void fake_multiply(const struct fake_product *product);
ccu_any_fn fake_cublas_find(const char *name);

/* ---- work ---- */

enum fake_kind { FAKE_ADD, FAKE_COPY, FAKE_PRODUCT };

struct fake_work {
    enum fake_kind kind;
    int crashes;
    struct fake_params params; /* of the kernel */
    void *to;
    const void *from;
    size_t bytes;
    struct fake_product product;
};

/* Ask STREAM for WORK. */
int fake_do(struct CUstream_st *stream, const struct fake_work *work);
int fake_copy(void *to, const void *from, size_t bytes,
              struct CUstream_st *stream);

int fake_stream_begin_capture(struct CUstream_st *stream, int mode);
int fake_stream_end_capture(struct CUstream_st *stream,
                            struct CUgraph_st **graph);
int fake_graph_instantiate(struct CUgraphExec_st **exec,
                           struct CUgraph_st *graph, unsigned long long flags);
int fake_graph_destroy(struct CUgraph_st *graph);
int fake_graph_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
int fake_graph_exec_destroy(struct CUgraphExec_st *exec);

#endif
