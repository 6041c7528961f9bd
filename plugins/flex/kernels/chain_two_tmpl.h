/* SPDX-License-Identifier: Apache-2.0 */
/* A link with an operand, of chain_list_tmpl.h, as two functions: X is a
 * vector's worth for each vector, or one element for all. */
static void FUNCTION(LINK)(PARAMETERS)
{
    const TYPE *x = (const TYPE *)links->x + i;

    TAKE;
    v0 = EXPR(v0, NAME(load)(x));
    v1 = EXPR(v1, NAME(load)(x + LANES));
    v2 = EXPR(v2, NAME(load)(x + 2 * LANES));
    v3 = EXPR(v3, NAME(load)(x + 3 * LANES));
    v4 = EXPR(v4, NAME(load)(x + 4 * LANES));
    v5 = EXPR(v5, NAME(load)(x + 5 * LANES));
    v6 = EXPR(v6, NAME(load)(x + 6 * LANES));
    v7 = EXPR(v7, NAME(load)(x + 7 * LANES));
    GIVE;
    GO_ON;
}

static void SINGLE(LINK)(PARAMETERS)
{
    const NAME(vector) y = NAME(all)((const TYPE *)links->x);

    TAKE;
    v0 = EXPR(v0, y);
    v1 = EXPR(v1, y);
    v2 = EXPR(v2, y);
    v3 = EXPR(v3, y);
    v4 = EXPR(v4, y);
    v5 = EXPR(v5, y);
    v6 = EXPR(v6, y);
    v7 = EXPR(v7, y);
    GIVE;
    GO_ON;
}

#undef LINK
#undef EXPR
