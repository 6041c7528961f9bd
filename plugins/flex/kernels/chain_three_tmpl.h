/* SPDX-License-Identifier: Apache-2.0 */
/* A link with two operands, of chain_list_tmpl.h, as a function; both are one
 * element for all. */
static void SINGLE(LINK)(PARAMETERS)
{
    const NAME(vector) x = NAME(all)((const TYPE *)links->x);
    const NAME(vector) y = NAME(all)((const TYPE *)links->second);

    TAKE;
    v0 = EXPR(v0, x, y);
    v1 = EXPR(v1, x, y);
    v2 = EXPR(v2, x, y);
    v3 = EXPR(v3, x, y);
    v4 = EXPR(v4, x, y);
    v5 = EXPR(v5, x, y);
    v6 = EXPR(v6, x, y);
    v7 = EXPR(v7, x, y);
    GIVE;
    GO_ON;
}

#undef LINK
#undef EXPR
