/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector_tmpl.h - vectors of VECTOR_BYTES bytes of TYPE and of BITS, integers
 * of the same size. Included with these and NAME(x) defined.
 */

typedef TYPE NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
/* The same at any address. */
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef BITS NAME(bits_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));

enum { NAME(lanes) = VECTOR_BYTES / sizeof(TYPE) };

static inline NAME(vector) NAME(load)(const TYPE *p)
{
    return *(const NAME(vector_at) *)p;
}

static inline void NAME(store)(TYPE *p, NAME(vector) x)
{
    *(NAME(vector_at) *)p = x;
}
