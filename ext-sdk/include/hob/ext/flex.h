/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/flex.h - what the CPU backend offers to extensions: the interface
 * "flex.compute", version 1.
 *
 *   void *instance;
 *   const struct flex_compute *flex = host->interface(
 *       device, FLEX_COMPUTE_NAME, FLEX_COMPUTE_VERSION, &instance);
 *
 * All functions may be called from several threads at once, also inside a
 * host->parallel_for: they then run on the calling thread alone. The table
 * grows at its end only.
 */
#ifndef HOB_EXT_FLEX_H
#define HOB_EXT_FLEX_H

#include <hob/types.h>

HOB_BEGIN_DECLS

#define FLEX_COMPUTE_NAME "flex.compute"
enum { FLEX_COMPUTE_VERSION = 1 };

enum { FLEX_EPILOGUE_READS = 4 };

/*
 * A block of c is final and still in cache. BLOCK points at its first
 * element, which is (FIRST_ROW, FIRST_COLUMN) of c; its ROWS rows lie LDC
 * elements apart and hold COLUMNS elements each. Every element of c is in
 * exactly one block; blocks come in any order, from several threads.
 */
typedef void (*flex_epilogue_fn)(void *context, void *block, int64_t first_row,
                                 int64_t rows, int64_t first_column,
                                 int64_t columns, int64_t ldc);

/*
 * c (m x n) = alpha * a (m x k) * b (k x n) + beta * c, of one dtype: f32 or
 * f64. Element (i, j) of a lies at a[i * a_row + j * a_column], strides in
 * elements and of any sign; one of the two should be 1 to be fast. c is
 * row-major with ldc >= n. k = 0 gives beta * c. Then bias is added to each
 * row, then relu applied, then the epilogue called.
 *
 * Where there is an epilogue and beta is 0, c may be NULL: nobody wants it, and
 * each block lies in memory of the product's own until its epilogue returns.
 * What the epilogue reads besides may be named in reads, up to a NULL: arrays
 * of m x n elements, row-major without gaps, of which the product may fetch what
 * a block will need while it is made. Nothing else follows from it.
 */
struct flex_gemm {
    uint32_t struct_size;
    uint32_t dtype; /* HOB_DTYPE_F32 or HOB_DTYPE_F64 */
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row, b_column;
    void *c;
    int64_t ldc;
    double alpha;
    double beta;
    const void *bias; /* n contiguous elements; NULL: none */
    uint32_t relu;    /* nonzero: max(x, 0), NaN stays NaN */
    uint32_t reserved;
    flex_epilogue_fn epilogue; /* NULL: none */
    void *epilogue_context;    /* borrowed for the call */
    const void *reads[FLEX_EPILOGUE_READS];
};

struct flex_compute {
    uint32_t struct_size;
    uint32_t version;
    /* HOB_ERR_ARGUMENT for a bad description, HOB_ERR_MEMORY without scratch;
     * c is then undefined. */
    hob_status (*gemm)(void *instance, const struct flex_gemm *gemm);
    /* Scratch memory from the device's caching allocator, 64-byte aligned;
     * NULL without memory. Give it back with the same size. */
    void *(*scratch_take)(void *instance, uint64_t bytes);
    void (*scratch_give)(void *instance, void *memory, uint64_t bytes);
    /* "base", "v2", "v3" or "v4": the kernels in use. */
    const char *(*isa)(void *instance);
};

HOB_END_DECLS

#endif
