/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the table of typed kernels, one a level of instruction set.
 *
 * A kernel works on contiguous elements. OUT may be one of the inputs where
 * the sizes of their elements are equal; no other overlap. f16 and bf16 have
 * no kernels of their own: rows are converted to f32 (load_f32, store_f32),
 * computed and rounded back.
 */
#ifndef FLEX_KERNELS_H
#define FLEX_KERNELS_H

#include <hob/types.h>

enum flex_isa {
    FLEX_ISA_BASE = 0, /* whatever the compiler assumes */
    FLEX_ISA_V2,       /* x86-64-v2: SSE4.2 */
    FLEX_ISA_V3,       /* x86-64-v3: AVX2, FMA */
    FLEX_ISA_V4,       /* x86-64-v4: AVX-512 F BW CD DQ VL */
    FLEX_ISA_COUNT_
};

/*
 * What the files of kernels define once for each instruction set, as NAME_base,
 * NAME_v2 and so on: that of ISA, which the processor has. Other processors
 * than x86-64 have the first alone; configure can leave out _v2 and _v4, and
 * then nobody asks for that level.
 */
#if defined(FLEX_WITHOUT_V2)
#define FLEX_V2(name) name##_base
#else
#define FLEX_V2(name) name##_v2
#endif
#if defined(FLEX_WITHOUT_V4)
#define FLEX_V4(name) name##_v3
#else
#define FLEX_V4(name) name##_v4
#endif
#if defined(__x86_64__)
#define FLEX_BY_ISA(isa, name)                                                 \
    ((isa) == FLEX_ISA_V4   ? FLEX_V4(name)                                    \
     : (isa) == FLEX_ISA_V3 ? name##_v3                                        \
     : (isa) == FLEX_ISA_V2 ? FLEX_V2(name)                                    \
                            : name##_base)
#else
#define FLEX_BY_ISA(isa, name) ((void)(isa), name##_base)
#endif

/* Elements that the drivers hand to a kernel at a time. */
enum { FLEX_BLOCK = 1024 };

/* Elementwise operations. X(name): FLEX_MAP_NAME. */
enum flex_map {
#define X(upper) FLEX_MAP_##upper,
#include "maps.def"
#undef X
    FLEX_MAP_COUNT_
};

/*
 * OUT[i] = f(A[i], B[i], C[i]) for N elements; operands that f lacks are
 * ignored. Returns the index of the first element that has no result (an
 * integer division by zero), else -1; OUT is then undefined.
 */
typedef int64_t (*flex_map_fn)(void *out, const void *a, const void *b,
                               const void *c, int64_t n);

/* Convert N elements. */
typedef void (*flex_cast_fn)(void *out, const void *in, int64_t n);

enum flex_fold {
    FLEX_FOLD_SUM,
    FLEX_FOLD_PROD,
    FLEX_FOLD_MAX,
    FLEX_FOLD_MIN,
    FLEX_FOLD_ANY,
    FLEX_FOLD_ALL,
    FLEX_FOLD_COUNT_
};

/*
 * Fold N elements into one accumulator: f64 for the sums and products of
 * floats, 64-bit integers (modulo 2^64) for those of integers, the element's
 * own dtype for max and min, a byte for any and all. The accumulator is
 * written, not read.
 */
typedef void (*flex_fold_fn)(void *out, const void *in, int64_t n);

/* ACC[i] = fold(ACC[i], IN[r * STRIDE + i]) for N accumulators, r in 0 .. ROWS
 * - 1 one after the other. */
typedef void (*flex_fold_rows_fn)(void *acc, const void *in, int64_t stride,
                                  int64_t rows, int64_t n);

/* Index of the first element that is NaN or, without one, equal to *BEST, the
 * maximum or minimum of IN; N if there is none. */
typedef int64_t (*flex_find_fn)(const void *in, const void *best, int64_t n);

/* BEST[i], INDEX[i] = IN[r * STRIDE + i], K + r where that wins over BEST[i],
 * r in 0 .. ROWS - 1 one after the other. */
typedef void (*flex_arg_rows_fn)(void *best, int32_t *index, const void *in,
                                 int64_t stride, int64_t rows, int32_t k,
                                 int64_t n);

enum flex_scan {
    FLEX_SCAN_SUM,
    FLEX_SCAN_PROD,
    FLEX_SCAN_MAX,
    FLEX_SCAN_MIN,
    FLEX_SCAN_COUNT_
};

/* OUT[i] = running sum (product, maximum, minimum) of IN; *ACC, of 64 bits as
 * the accumulator of a sum, carries over from call to call. The same for ROWS
 * rows of N elements, STRIDE apart on both sides, each with its own ACC. */
typedef void (*flex_scan_fn)(void *out, const void *in, void *acc,
                             int64_t stride, int64_t rows, int64_t n);

/* ACC[i] op= IN[i]; OUT[i] = ACC[i] in the element's dtype. */
typedef void (*flex_scan_rows_fn)(void *out, const void *in, void *acc,
                                  int64_t n);

struct flex_kernels {
    const char *name; /* "base", "v2", ... */
    uint32_t isa;
    flex_map_fn map[FLEX_MAP_COUNT_][HOB_DTYPE_COUNT_];
    flex_cast_fn cast[HOB_DTYPE_COUNT_][HOB_DTYPE_COUNT_]; /* to, from */
    /* f16 or bf16 (index by dtype) to and from f32; NULL for others. */
    flex_cast_fn load_f32[HOB_DTYPE_COUNT_];
    flex_cast_fn store_f32[HOB_DTYPE_COUNT_];
    flex_fold_fn fold[FLEX_FOLD_COUNT_][HOB_DTYPE_COUNT_];
    flex_fold_rows_fn fold_rows[FLEX_FOLD_COUNT_][HOB_DTYPE_COUNT_];
    flex_find_fn find[HOB_DTYPE_COUNT_];
    flex_arg_rows_fn arg_rows[2][HOB_DTYPE_COUNT_]; /* [0] max, [1] min */
    flex_scan_fn scan[FLEX_SCAN_COUNT_][HOB_DTYPE_COUNT_];
    flex_scan_rows_fn scan_rows[FLEX_SCAN_COUNT_][HOB_DTYPE_COUNT_];
};

/* One kernels_<isa>.c each; use flex_kernels_find. */
extern const struct flex_kernels flex_kernels_base;
extern const struct flex_kernels flex_kernels_v2;
extern const struct flex_kernels flex_kernels_v3;
extern const struct flex_kernels flex_kernels_v4;

/* The table of ISA, NULL if it is not built or this CPU lacks it. */
const struct flex_kernels *flex_kernels_find(uint32_t isa);
/* The strongest that this CPU has. */
const struct flex_kernels *flex_kernels_best(void);

#endif
