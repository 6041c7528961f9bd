/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - sort, topk and their positions along one dimension.
 *
 * Each element becomes an unsigned key whose order is the wanted one: NaN
 * above everything, -0 equal to +0, keys inverted for descending order. Keys
 * of up to 32 bits share a word with their position, so that any sort of the
 * words is stable; longer ones carry it beside them. Values are picked from
 * the row by position, which keeps signs of zero and payloads of NaN.
 */
#include "flex.h"

#include "convert.h"

#include <inttypes.h>
#include <string.h>

struct pair {
    uint64_t key;
    uint64_t position;
};

enum {
    /* Rows up to this length are sorted by insertion. */
    INSERTION_MOST = 32,
    RADIX_BITS = 11,
    RADIX_SIZE = 1 << RADIX_BITS,
    /* A heap finds the first k of n if k is few; else, up to a half of n, those
     * of the digits that come first are sorted alone. */
    HEAP_MOST = 128,
    HEAP_RATIO = 8,
    /* For up to so many the heap is told beforehand what cannot get in. */
    BOUND_MOST = 16,
    STRIPES = 64
};

struct sort {
    struct flex_device *device;
    struct flex_loop outer; /* a row's first element */
    int64_t n, stride;
    struct hob_view *values, *indices; /* results, may be NULL */
    int64_t taken;                     /* results a row: n, or k */
    int64_t out_stride;                /* between them */
    int64_t inner; /* results between two rows: out_stride */
    uint32_t dtype;
    int descending;
    int wide;       /* 64-bit keys: struct pair */
    uint64_t bytes; /* scratch of one thread */
    int32_t failed;
};

/* ---- keys ---- */

static inline uint32_t key_f32(uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;

    return magnitude > 0x7f800000u ? UINT32_MAX
           : magnitude == 0        ? 0x80000000u
                                   : key;
}

static uint64_t key_f64(uint64_t bits)
{
    const uint64_t magnitude = bits & INT64_MAX;

    if (magnitude > UINT64_C(0x7ff0000000000000))
        return UINT64_MAX;
    if (magnitude == 0)
        return UINT64_C(1) << 63;
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The key of element I of contiguous IN, ascending. */
static uint64_t key_at(const void *in, int64_t i, uint32_t dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
        return key_f64(((const uint64_t *)in)[i]);
    case HOB_DTYPE_F32:
        return key_f32(((const uint32_t *)in)[i]);
    case HOB_DTYPE_F16: /* exact in f32 */
        return key_f32(
            flex_bits_of_f32(flex_f32_of_f16(((const uint16_t *)in)[i])));
    case HOB_DTYPE_BF16:
        return key_f32((uint32_t)((const uint16_t *)in)[i] << 16);
    case HOB_DTYPE_I64:
        return ((const uint64_t *)in)[i] ^ UINT64_C(1) << 63;
    case HOB_DTYPE_I32:
        return ((const uint32_t *)in)[i] ^ 0x80000000u;
    case HOB_DTYPE_I16:
        return ((const uint16_t *)in)[i] ^ 0x8000u;
    case HOB_DTYPE_I8:
        return ((const uint8_t *)in)[i] ^ 0x80u;
    case HOB_DTYPE_U64:
        return ((const uint64_t *)in)[i];
    case HOB_DTYPE_U32:
        return ((const uint32_t *)in)[i];
    case HOB_DTYPE_U16:
        return ((const uint16_t *)in)[i];
    default:
        return ((const uint8_t *)in)[i];
    }
}

/* KEYS of N elements of contiguous IN, of up to 32 bits, in the order wanted:
 * those of floats, most often sorted, as vectors. */
static void row_keys(const void *in, int64_t n, uint32_t dtype, int descending,
                     uint32_t *keys)
{
    const uint32_t flip = descending ? UINT32_MAX : 0;

    if (dtype == HOB_DTYPE_F32) {
        const uint32_t *x = in;

#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            keys[i] = key_f32(x[i]) ^ flip;
    } else {
        for (int64_t i = 0; i < n; i++)
            keys[i] = (uint32_t)key_at(in, i, dtype) ^ flip;
    }
}

/* ---- sorting words: the key in the upper half, the position below ---- */

static void insertion_words(uint64_t *words, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        uint64_t word = words[i];
        int64_t j = i;
        for (; j > 0 && words[j - 1] > word; j--)
            words[j] = words[j - 1];
        words[j] = word;
    }
}

/* Sort by the upper 32 bits, least significant digit first; digits that are
 * the same everywhere are skipped. Returns WORDS or SPARE. */
static uint64_t *radix_words(uint64_t *words, uint64_t *spare, int64_t n)
{
    for (uint32_t shift = 32; shift < 64; shift += RADIX_BITS) {
        int64_t counts[RADIX_SIZE] = {0};
        int64_t at = 0;
        uint64_t *swap;

        for (int64_t i = 0; i < n; i++)
            counts[words[i] >> shift & (RADIX_SIZE - 1)]++;
        if (counts[words[0] >> shift & (RADIX_SIZE - 1)] == n)
            continue;
        for (int d = 0; d < RADIX_SIZE; d++) {
            int64_t count = counts[d];
            counts[d] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++)
            spare[counts[words[i] >> shift & (RADIX_SIZE - 1)]++] = words[i];
        swap = words;
        words = spare;
        spare = swap;
    }
    return words;
}

/* Put the word at AT in its place in a heap whose greatest is on top. */
static void sift_down(uint64_t *heap, int64_t at, int64_t count)
{
    const uint64_t word = heap[at];

    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= word)
            break;
        heap[at] = heap[child];
    }
    heap[at] = word;
}

/*
 * A key of N that at least K do not exceed: every STRIPES-th key makes a
 * stripe, and the least of K stripes are K keys. Most of the time little else
 * is below it.
 */
static uint32_t bound_of(const uint32_t *keys, int64_t n, int64_t k)
{
    uint32_t least[STRIPES];
    uint32_t first[BOUND_MOST + 1];
    int64_t count = 0;

    memcpy(least, keys, sizeof(least));
    for (int64_t i = STRIPES; i + STRIPES <= n; i += STRIPES)
#pragma omp simd
        for (int64_t j = 0; j < STRIPES; j++)
            least[j] = keys[i + j] < least[j] ? keys[i + j] : least[j];
    for (int64_t i = 0; i < STRIPES; i++) {
        int64_t at = count;

        if (count == k && least[i] >= first[k - 1])
            continue;
        for (; at > 0 && first[at - 1] > least[i]; at--)
            first[at] = first[at - 1];
        first[at] = least[i];
        count += count < k;
    }
    return first[k - 1];
}

/* The K first of N KEYS, sorted, as words. Few keys get into the heap once it
 * is full, so whole pieces are looked at first. */
static void least_words(const uint32_t *keys, int64_t n, int64_t k,
                        uint64_t *words)
{
    enum { PIECE = 16 };
    const uint32_t bound =
        k <= BOUND_MOST && n >= 4 * STRIPES ? bound_of(keys, n, k) : UINT32_MAX;

    for (int64_t i = 0; i < k; i++)
        words[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
    for (int64_t i = k / 2; i-- > 0;)
        sift_down(words, i, k);
    for (int64_t i = k; i < n; i += PIECE) {
        const int64_t end = n - i < PIECE ? n : i + PIECE;
        const uint32_t top = (uint32_t)(words[0] >> 32);
        const uint32_t limit = top <= bound ? top : bound + 1;
        uint32_t any = 0;

#pragma omp simd reduction(| : any)
        for (int64_t j = i; j < end; j++)
            any |= keys[j] < limit;
        for (int64_t j = i; any && j < end; j++) {
            const uint64_t word = (uint64_t)keys[j] << 32 | (uint64_t)j;

            if (keys[j] >= limit || word >= words[0])
                continue;
            words[0] = word;
            sift_down(words, 0, k);
        }
    }
    for (int64_t i = k; i-- > 1;) {
        uint64_t top = words[0];
        words[0] = words[i];
        words[i] = top;
        sift_down(words, 0, i);
    }
}

/* Words of the keys whose upper digit is among those of the K first; returns
 * how many, at least K. */
static int64_t select_words(const uint32_t *keys, int64_t n, int64_t k,
                            uint64_t *words)
{
    const uint32_t shift = 32 - RADIX_BITS;
    uint32_t counts[RADIX_SIZE] = {0};
    uint32_t digit = 0;
    int64_t below = 0, count = 0;

    for (int64_t i = 0; i < n; i++)
        counts[keys[i] >> shift]++;
    while ((below += counts[digit]) < k)
        digit++;
    for (int64_t i = 0; i < n; i++) {
        words[count] = (uint64_t)keys[i] << 32 | (uint64_t)i;
        count += keys[i] >> shift <= digit;
    }
    return count;
}

/* ---- sorting pairs ---- */

static void insertion_pairs(struct pair *pairs, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        struct pair pair = pairs[i];
        int64_t j = i;
        for (; j > 0 && pairs[j - 1].key > pair.key; j--)
            pairs[j] = pairs[j - 1];
        pairs[j] = pair;
    }
}

static struct pair *radix_pairs(struct pair *pairs, struct pair *spare,
                                int64_t n)
{
    for (uint32_t shift = 0; shift < 64; shift += RADIX_BITS) {
        int64_t counts[RADIX_SIZE] = {0};
        int64_t at = 0;
        struct pair *swap;

        for (int64_t i = 0; i < n; i++)
            counts[pairs[i].key >> shift & (RADIX_SIZE - 1)]++;
        if (counts[pairs[0].key >> shift & (RADIX_SIZE - 1)] == n)
            continue;
        for (int d = 0; d < RADIX_SIZE; d++) {
            int64_t count = counts[d];
            counts[d] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++)
            spare[counts[pairs[i].key >> shift & (RADIX_SIZE - 1)]++] =
                pairs[i];
        swap = pairs;
        pairs = spare;
        spare = swap;
    }
    return pairs;
}

/* ---- rows ---- */

/* Positions of the wanted elements of contiguous ROW, in order, into the
 * front of SCRATCH (as i64), whose layout is two arrays of words or pairs;
 * behind two of words there is one of keys. */
static int64_t *order_words(const struct sort *sort, const void *row,
                            uint64_t *words)
{
    const int64_t n = sort->n;
    uint32_t *keys = (uint32_t *)(void *)(words + 2 * n);
    uint64_t *sorted = words;
    int64_t *positions = (int64_t *)(void *)words;

    row_keys(row, n, sort->dtype, sort->descending, keys);
    if (n > INSERTION_MOST && sort->taken <= HEAP_MOST &&
        sort->taken <= n / HEAP_RATIO) {
        least_words(keys, n, sort->taken, words);
    } else if (n > INSERTION_MOST && sort->taken <= n / 2) {
        sorted = radix_words(words, words + n,
                             select_words(keys, n, sort->taken, words));
    } else {
        for (int64_t i = 0; i < n; i++)
            words[i] = (uint64_t)keys[i] << 32 | (uint64_t)i;
        if (n <= INSERTION_MOST)
            insertion_words(words, n);
        else
            sorted = radix_words(words, words + n, n);
    }
    for (int64_t i = 0; i < sort->taken; i++)
        positions[i] = (int64_t)(sorted[i] & UINT32_MAX);
    return positions;
}

static int64_t *order_pairs(const struct sort *sort, const void *row,
                            struct pair *pairs)
{
    const int64_t n = sort->n;
    struct pair *sorted = pairs;
    int64_t *positions = (int64_t *)(void *)pairs;

    for (int64_t i = 0; i < n; i++) {
        uint64_t key = key_at(row, i, sort->dtype);
        pairs[i].key = sort->descending ? ~key : key;
        pairs[i].position = (uint64_t)i;
    }
    if (n <= INSERTION_MOST)
        insertion_pairs(pairs, n);
    else
        sorted = radix_pairs(pairs, pairs + n, n);
    for (int64_t i = 0; i < sort->taken; i++)
        positions[i] = (int64_t)sorted[i].position;
    return positions;
}

/* Store POSITIONS of row INDEX as the index result. */
static void store_indices(const struct sort *sort, int64_t first,
                          const int64_t *positions)
{
    const struct hob_view *out = sort->indices;
    const uint32_t size = hob_dtype_size(out->dtype);
    const flex_cast_fn cast =
        sort->device->kernels->cast[out->dtype][HOB_DTYPE_I64];
    char block[FLEX_BLOCK * 8];

    for (int64_t i = 0; i < sort->taken; i += FLEX_BLOCK) {
        int64_t n = sort->taken - i < FLEX_BLOCK ? sort->taken - i : FLEX_BLOCK;
        const void *from = positions + i;
        if (out->dtype != HOB_DTYPE_I64 && out->dtype != HOB_DTYPE_U64) {
            cast(block, from, n);
            from = block;
        }
        flex_copy_strided((char *)out->data +
                              (first + i * sort->out_stride) * (int64_t)size,
                          sort->out_stride, from, 1, n, size);
    }
}

static void sort_row(const struct sort *sort, int64_t row, char *scratch)
{
    const uint32_t size = sort->outer.size;
    const char *in =
        sort->outer.data + flex_loop_offset(&sort->outer, row) * (int64_t)size;
    const int64_t first =
        row / sort->inner * sort->taken * sort->inner + row % sort->inner;
    char *copy = scratch;
    int64_t *positions;

    /* Always a copy: the result may be the same memory. */
    flex_copy_strided(copy, 1, in, sort->stride, sort->n, size);
    scratch += ((uint64_t)sort->n * size + 63) / 64 * 64;
    positions = sort->wide
                    ? order_pairs(sort, copy, (struct pair *)(void *)scratch)
                    : order_words(sort, copy, (uint64_t *)(void *)scratch);
    if (sort->indices)
        store_indices(sort, first, positions);
    if (!sort->values)
        return;
    for (int64_t i = 0; i < sort->taken; i++) {
        char *out = (char *)sort->values->data +
                    (first + i * sort->out_stride) * (int64_t)size;
        const char *from = copy + positions[i] * (int64_t)size;
        switch (size) {
        case 1:
            *out = *from;
            break;
        case 2:
            memcpy(out, from, 2);
            break;
        case 4:
            memcpy(out, from, 4);
            break;
        default:
            memcpy(out, from, 8);
            break;
        }
    }
}

static void sort_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct sort *sort = context;
    _Alignas(FLEX_ALIGN) char stack[2048];
    char *scratch = stack;

    (void)worker;
    if (sort->bytes > sizeof(stack)) {
        scratch = flex_scratch_take(sort->device, sort->bytes);
        if (!scratch) {
            __atomic_store_n(&sort->failed, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    for (int64_t i = first; i < last; i++)
        sort_row(sort, i, scratch);
    if (scratch != stack)
        flex_scratch_give(sort->device, scratch, sort->bytes);
}

/* Sort x along DIM; take the first TAKEN of each row. */
static hob_status run(struct hob_call *call, struct flex_device *device,
                      int64_t dim_given, int descending,
                      struct hob_view *values, struct hob_view *indices)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = values ? values : indices;
    const uint32_t dim = flex_dim(dim_given, x->rank);
    struct sort sort = {.device = device,
                        .values = values,
                        .indices = indices,
                        .dtype = x->dtype,
                        .descending = descending,
                        .n = x->rank ? x->shape[dim] : 1,
                        .stride = x->rank ? x->strides[dim] : 1,
                        .taken = out->rank ? out->shape[dim] : 1,
                        .inner = 1};

    for (uint32_t i = dim + 1; i < out->rank; i++)
        sort.inner *= out->shape[i];
    sort.out_stride = sort.inner;
    if (hob_view_count(out) == 0)
        return HOB_OK;
    if (x->rank)
        flex_loop_without(&sort.outer, x, dim);
    else
        flex_loop_init(&sort.outer, x);
    sort.wide = hob_dtype_size(x->dtype) == 8 || sort.n > UINT32_MAX;
    sort.bytes = (uint64_t)sort.n * (sort.wide ? 40 : 24) + 2 * FLEX_ALIGN;
    flex_parallel(device, sort.outer.count, 1 + FLEX_GRAIN_DEAR / sort.n,
                  sort_range, &sort);
    if (sort.failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory to sort rows of %" PRId64,
                                call->op_name, sort.n);
    return HOB_OK;
}

static hob_status sort_values(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 1), flex_arg_i64(call, 2) != 0,
               hob_ret_view(call, 0), NULL);
}

static hob_status argsort(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 1), flex_arg_i64(call, 2) != 0,
               NULL, hob_ret_view(call, 0));
}

static hob_status sort_with_indices(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 1), flex_arg_i64(call, 2) != 0,
               hob_ret_view(call, 0), hob_ret_view(call, 1));
}

static hob_status topk(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 2), 1, hob_ret_view(call, 0),
               NULL);
}

static hob_status argtopk(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 2), 1, NULL,
               hob_ret_view(call, 0));
}

static hob_status topk_with_indices(void *device, struct hob_call *call)
{
    return run(call, device, flex_arg_i64(call, 2), 1, hob_ret_view(call, 0),
               hob_ret_view(call, 1));
}

static const uint32_t masks[] = {HOB_MASK_NUM};

static const struct hob_entry entries[] = {
    {
        .op = "sort",
        .signature = "(x: Num, dim: i64, descending: bool = false) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = sort_values,
    },
    {
        .op = "argsort",
        .signature = "(x: Num, dim: i64, descending: bool = false, "
                     "index_dtype: dtype = i32) -> index_dtype",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = argsort,
    },
    {
        .op = "sort_with_indices",
        .signature = "(x: Num, dim: i64, descending: bool = false, "
                     "index_dtype: dtype = i32) -> (x, index_dtype)",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = sort_with_indices,
    },
    {
        .op = "topk",
        .signature = "(x: Num, k: i64, dim: i64) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = topk,
    },
    {
        .op = "argtopk",
        .signature = "(x: Num, k: i64, dim: i64, index_dtype: dtype = i32) "
                     "-> index_dtype",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = argtopk,
    },
    {
        .op = "topk_with_indices",
        .signature = "(x: Num, k: i64, dim: i64, index_dtype: dtype = i32) "
                     "-> (x, index_dtype)",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = topk_with_indices,
    },
};

const struct flex_entries flex_sort_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};
