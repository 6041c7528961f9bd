/* SPDX-License-Identifier: Apache-2.0 */
/* A link without an operand, of chain_list_tmpl.h, as a function. */
static void FUNCTION(LINK)(PARAMETERS)
{
    TAKE;
    v0 = EXPR(v0);
    v1 = EXPR(v1);
    v2 = EXPR(v2);
    v3 = EXPR(v3);
    v4 = EXPR(v4);
    v5 = EXPR(v5);
    v6 = EXPR(v6);
    v7 = EXPR(v7);
    GIVE;
    GO_ON;
}

#undef LINK
#undef EXPR
