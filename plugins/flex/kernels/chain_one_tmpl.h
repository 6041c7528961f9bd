/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_link_tmpl.h for a link without an operand: EXPR(a). */
case 2 * LINK:
#pragma GCC unroll 8
    for (int j = 0; j < VECTORS; j++)
        v[j] = EXPR(v[j]);
    break;
#undef LINK
#undef EXPR
