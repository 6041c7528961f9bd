/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of TYPE, with BITS as in vector_tmpl.h, LANES elements in a vector,
 * ROOT(v) and STREAM(p, v) as the processor's own, if there are such.
 *
 * A link is a function whose parameters are the eight vectors of a tile, which
 * are passed in registers, and whose last act is to call the next link: that is
 * a jump. So a link costs little more than its eight instructions. Elements
 * beyond the last tile go one vector at a time through a switch.
 */
typedef TYPE NAME(vector)
    __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));

struct NAME(link);

#define PARAMETERS                                                             \
    const struct NAME(link) * links, int64_t i, NAME(vector) v0,               \
        NAME(vector) v1, NAME(vector) v2, NAME(vector) v3, NAME(vector) v4,    \
        NAME(vector) v5, NAME(vector) v6, NAME(vector) v7
#define GO_ON links[1].run(links + 1, i, v0, v1, v2, v3, v4, v5, v6, v7)

typedef void (*NAME(link_fn))(PARAMETERS);

/* A link with its operand. */
struct NAME(link) {
    NAME(link_fn) run;
    char *x, *second, *from, *to;
    /* Of the end: the first link, and where the last tile begins. */
    const struct NAME(link) *first;
    int64_t last;
};

/* ---- vectors ---- */

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

static inline NAME(vector) NAME(relu)(NAME(vector) a)
{
    return NAME(drop)(a <= 0, a);
}

static inline NAME(vector) NAME(sum)(NAME(vector) a, NAME(vector) b)
{
    return a + b;
}

static inline NAME(vector) NAME(product)(NAME(vector) a, NAME(vector) b)
{
    return a * b;
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

static inline NAME(vector) NAME(load)(const TYPE *p)
{
    return *(const NAME(vector_at) *)p;
}

/* *P in all places: less 0, which leaves -0 as it is, unlike a sum. */
static inline NAME(vector) NAME(all)(const TYPE *p)
{
    return *p - (NAME(vector)){0};
}

static inline void NAME(store)(TYPE *p, NAME(vector) v)
{
    *(NAME(vector_at) *)p = v;
}

/* P is on a boundary. */
static inline void NAME(past)(TYPE *p, NAME(vector) v)
{
#ifdef STREAM
    STREAM((void *)p, v);
#else
    NAME(store)(p, v);
#endif
}

static inline NAME(vector) NAME(load_some)(const TYPE *p, int64_t count)
{
    NAME(vector) v = {0};

    if (count == LANES)
        return NAME(load)(p);
    memcpy(&v, p, (size_t)count * sizeof(*p));
    return v;
}

static inline void NAME(store_some)(TYPE *p, NAME(vector) v, int64_t count)
{
    if (count == LANES)
        NAME(store)(p, v);
    else
        memcpy(p, &v, (size_t)count * sizeof(*p));
}

/* ---- links ---- */

#define NOTHING (void)0
#define LOAD_ALL                                                               \
    const TYPE *from = (const TYPE *)links->from + i;                          \
    v0 = NAME(load)(from), v1 = NAME(load)(from + LANES),                      \
    v2 = NAME(load)(from + 2 * LANES), v3 = NAME(load)(from + 3 * LANES),      \
    v4 = NAME(load)(from + 4 * LANES), v5 = NAME(load)(from + 5 * LANES),      \
    v6 = NAME(load)(from + 6 * LANES), v7 = NAME(load)(from + 7 * LANES)
#define STORE_ALL(to)                                                          \
    NAME(store)(to, v0), NAME(store)(to + LANES, v1),                          \
        NAME(store)(to + 2 * LANES, v2), NAME(store)(to + 3 * LANES, v3),      \
        NAME(store)(to + 4 * LANES, v4), NAME(store)(to + 5 * LANES, v5),      \
        NAME(store)(to + 6 * LANES, v6), NAME(store)(to + 7 * LANES, v7)

#define MODE(name) NAME(plain_##name)
#define TAKE NOTHING
#define GIVE NOTHING
#include "chain_links_tmpl.h"
#define MODE(name) NAME(takes_##name)
#define TAKE LOAD_ALL
#define GIVE NOTHING
#include "chain_links_tmpl.h"
#define MODE(name) NAME(gives_##name)
#define TAKE NOTHING
#define GIVE STORE_ALL(((TYPE *)links->to + i))
#include "chain_links_tmpl.h"
#define MODE(name) NAME(moves_##name)
#define TAKE LOAD_ALL
#define GIVE STORE_ALL(((TYPE *)links->to + i))
#include "chain_links_tmpl.h"

static void NAME(link_store)(PARAMETERS)
{
    STORE_ALL(((TYPE *)links->x + i));
    GO_ON;
}

static void NAME(link_past)(PARAMETERS)
{
    TYPE *x = (TYPE *)links->x + i;

    NAME(past)(x, v0);
    NAME(past)(x + LANES, v1);
    NAME(past)(x + 2 * LANES, v2);
    NAME(past)(x + 3 * LANES, v3);
    NAME(past)(x + 4 * LANES, v4);
    NAME(past)(x + 5 * LANES, v5);
    NAME(past)(x + 6 * LANES, v6);
    NAME(past)(x + 7 * LANES, v7);
    GO_ON;
}

/* The end of a chain: go on with the next tile. A compiler
 * that does not make jumps of last calls has the caller go on. */
static void NAME(link_end)(PARAMETERS)
{
#ifdef __OPTIMIZE__
    const struct NAME(link) *first = links->first;

    i += 8 * LANES;
    if (i <= links->last)
        first->run(first, i, v0, v1, v2, v3, v4, v5, v6, v7);
#else
    (void)links;
    (void)i;
    (void)v0;
    (void)v1;
    (void)v2;
    (void)v3;
    (void)v4;
    (void)v5;
    (void)v6;
    (void)v7;
#endif
}

/* The function of LINK with its operand at X. */
static NAME(link_fn) NAME(find)(const struct flex_link *link, const char *x)
{
    static const NAME(link_fn) *const tables[FLEX_LINK_MOVES] = {
        NAME(plain_links), NAME(takes_links), NAME(gives_links),
        NAME(moves_links)};

    if (link->link == FLEX_LINK_PAST &&
        ((uintptr_t)x & (VECTOR_BYTES - 1)) == 0)
        return NAME(link_past);
    if (link->link == FLEX_LINK_PAST || link->link == FLEX_LINK_STORE)
        return NAME(link_store);
    return tables[link->moves][2 * link->link + link->is_single];
}

/* ---- chains ---- */

/* LINKS on COUNT elements from I on, a vector or less. */
static void NAME(some)(const struct flex_link *links, int64_t link_count,
                       void *const *at, int64_t i, int64_t count)
{
    NAME(vector) v = {0};

    for (int64_t k = 0; k < link_count; k++) {
        TYPE *x = at[links[k].value];

        if (links[k].moves & FLEX_LINK_TAKES)
            v = NAME(load_some)((const TYPE *)at[links[k].from] + i, count);
        switch (2 * links[k].link + links[k].is_single) {
        case 2 * FLEX_LINK_STORE:
        case 2 * FLEX_LINK_PAST:
            NAME(store_some)(x + i, v, count);
            break;
#define THREE "chain_case_three_tmpl.h"
#define OF "chain_case_of_tmpl.h"
#define TWO "chain_case_two_tmpl.h"
#define ONE "chain_case_one_tmpl.h"
#include "chain_list_tmpl.h"
        default:
            break;
        }
        if (links[k].moves & FLEX_LINK_GIVES)
            NAME(store_some)((TYPE *)at[links[k].to] + i, v, count);
    }
}

static void NAME(chain)(const struct flex_link *links, int64_t count,
                        void *const *at, int64_t n)
{
    const NAME(vector) none = {0};
    struct NAME(link) bound[FLEX_CHAIN_MOST + 1];
    int64_t i = 0;

    for (int64_t k = 0; k < count; k++) {
        bound[k].x = at[links[k].value];
        bound[k].second = at[links[k].second];
        bound[k].from = at[links[k].from];
        bound[k].to = at[links[k].to];
        bound[k].run = NAME(find)(&links[k], bound[k].x);
    }
    bound[count].run = NAME(link_end);
    bound[count].first = bound;
    bound[count].last = n - 8 * LANES;
    while (i + 8 * LANES <= n) {
        bound[0].run(bound, i, none, none, none, none, none, none, none, none);
#ifdef __OPTIMIZE__
        i = n - n % (8 * LANES);
#else
        i += 8 * LANES;
#endif
    }
    for (; i < n; i += LANES)
        NAME(some)(links, count, at, i, n - i < LANES ? n - i : LANES);
}

#undef NOTHING
#undef LOAD_ALL
#undef STORE_ALL
#undef PARAMETERS
#undef GO_ON
#undef TYPE
#undef BITS
#undef LANES
#undef NAME
#undef ROOT
#undef SQRT
#undef STREAM
