/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector_tmpl.h - vectors of VECTOR_BYTES bytes of TYPE and of BITS, integers
 * of the same size. Included with these, NAME(x), LANES (elements in a vector)
 * and NARROW_LANES (in 16 bytes) defined.
 */

typedef TYPE NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
/* The same at any address. */
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef BITS NAME(bits_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));

enum { NAME(lanes) = LANES };

static inline NAME(vector) NAME(load)(const TYPE *p)
{
    return *(const NAME(vector_at) *)p;
}

static inline void NAME(store)(TYPE *p, NAME(vector) x)
{
    *(NAME(vector_at) *)p = x;
}

/* A vector of in[0], in[2] .. and nothing that lies behind the last. */
static inline NAME(vector) NAME(load_even)(const TYPE *in)
{
    const NAME(vector) a = NAME(load)(in), b = NAME(load)(in + LANES - 1);

#if LANES == 2
    return __builtin_shufflevector(a, b, 0, 3);
#elif LANES == 4
    return __builtin_shufflevector(a, b, 0, 2, 5, 7);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21,
                                   23, 25, 27, 29, 31);
#endif
}

/* The same with vectors of 16 bytes, for short rows. */
typedef TYPE NAME(narrow)
    __attribute__((vector_size(16), may_alias, aligned(1)));

enum { NAME(narrow_lanes) = NARROW_LANES };

static inline void NAME(narrow_even)(const TYPE *in, TYPE *out)
{
    const NAME(narrow) a = *(const NAME(narrow) *)in;
    const NAME(narrow) b = *(const NAME(narrow) *)(in + NAME(narrow_lanes) - 1);

#if NARROW_LANES == 2
    *(NAME(narrow) *)out = __builtin_shufflevector(a, b, 0, 3);
#else
    *(NAME(narrow) *)out = __builtin_shufflevector(a, b, 0, 2, 5, 7);
#endif
}
