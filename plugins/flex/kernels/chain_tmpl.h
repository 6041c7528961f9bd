/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of TYPE, with BITS as in vector_tmpl.h, LANES elements in a vector,
 * ROOT(v) and STREAM(p, v) as the processor's own, if there are such.
 */
typedef TYPE NAME(vector)
    __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* A where MASK, else B. */
static inline NAME(vector) NAME(pick)(NAME(bits) mask, NAME(vector) a,
                                      NAME(vector) b)
{
    return (NAME(vector))(((NAME(bits))a & mask) | ((NAME(bits))b & ~mask));
}

/* 0 where MASK, else A. */
static inline NAME(vector) NAME(drop)(NAME(bits) mask, NAME(vector) a)
{
    return (NAME(vector))((NAME(bits))a & ~mask);
}

static inline NAME(vector) NAME(magnitude)(NAME(vector) a)
{
    const NAME(bits) sign = (NAME(bits))(-(NAME(vector)){0});

    return (NAME(vector))((NAME(bits))a & ~sign);
}

static inline NAME(vector) NAME(root)(NAME(vector) a)
{
#ifdef ROOT
    return (NAME(vector))ROOT(a);
#else
    for (int i = 0; i < LANES; i++)
        a[i] = SQRT(a[i]);
    return a;
#endif
}

static inline void NAME(past)(TYPE *p, NAME(vector) v)
{
#ifdef STREAM
    if (((uintptr_t)p & (VECTOR_BYTES - 1)) == 0) {
        STREAM((void *)p, v);
        return;
    }
#endif
    *(NAME(vector_at) *)p = v;
}

static inline NAME(vector) NAME(load_some)(const TYPE *p, size_t count)
{
    NAME(vector) v = {0};

    memcpy(&v, p, count * sizeof(*p));
    return v;
}

static inline void NAME(store_some)(TYPE *p, NAME(vector) v, size_t count)
{
    memcpy(p, &v, count * sizeof(*p));
}

#define VECTORS 8
#define LOAD(p) (*(const NAME(vector_at) *)(p))
#define STORE(p, v) (*(NAME(vector_at) *)(p) = (v))
#define PAST(p, v) NAME(past)(p, v)
#define TILE NAME(tile)
#include "chain_tile_tmpl.h"
#define VECTORS 1
#define LOAD(p) (*(const NAME(vector_at) *)(p))
#define STORE(p, v) (*(NAME(vector_at) *)(p) = (v))
#define PAST(p, v) NAME(past)(p, v)
#define TILE NAME(strip)
#include "chain_tile_tmpl.h"
#define VECTORS 1
#define LOAD(p) NAME(load_some)(p, rest)
#define STORE(p, v) NAME(store_some)(p, v, rest)
#define PAST(p, v) NAME(store_some)(p, v, rest)
#define TILE NAME(end)
#include "chain_tile_tmpl.h"

static void NAME(chain)(const struct flex_link *links, int64_t count,
                        void *const *at, int64_t n)
{
    int64_t i = 0;

    for (; i + 8 * LANES <= n; i += 8 * LANES)
        NAME(tile)(links, count, at, i, 0);
    for (; i + LANES <= n; i += LANES)
        NAME(strip)(links, count, at, i, 0);
    if (i < n)
        NAME(end)(links, count, at, i, (size_t)(n - i));
}

#undef TYPE
#undef BITS
#undef LANES
#undef NAME
#undef ROOT
#undef SQRT
#undef STREAM
