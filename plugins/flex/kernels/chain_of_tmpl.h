/* SPDX-License-Identifier: Apache-2.0 */
/* A link with two operands, of chain_list_tmpl.h, as a function: X is a
 * vector's worth for each vector, the second one element for all. */
static void FUNCTION(LINK)(PARAMETERS)
{
    const TYPE *x = (const TYPE *)links->x + i;
    const NAME(vector) y = NAME(all)((const TYPE *)links->second);

    TAKE;
    v0 = EXPR(v0, NAME(load)(x), y);
    v1 = EXPR(v1, NAME(load)(x + LANES), y);
    v2 = EXPR(v2, NAME(load)(x + 2 * LANES), y);
    v3 = EXPR(v3, NAME(load)(x + 3 * LANES), y);
    v4 = EXPR(v4, NAME(load)(x + 4 * LANES), y);
    v5 = EXPR(v5, NAME(load)(x + 5 * LANES), y);
    v6 = EXPR(v6, NAME(load)(x + 6 * LANES), y);
    v7 = EXPR(v7, NAME(load)(x + 7 * LANES), y);
    GIVE;
    GO_ON;
}

#undef LINK
#undef EXPR
