/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One link of two operands, inside the switch of chain_tile_tmpl.h: LINK is its
 * name, EXPR(a, x) the vector that it makes of the accumulator and X.
 */
case 2 * LINK:
#pragma GCC unroll 8
    for (int j = 0; j < VECTORS; j++) {
        const NAME(vector) y = LOAD(x + j * LANES);

        v[j] = EXPR(v[j], y);
    }
    break;
case 2 * LINK + 1: {
    const NAME(vector) y = (NAME(vector)){0} + *x;

#pragma GCC unroll 8
    for (int j = 0; j < VECTORS; j++)
        v[j] = EXPR(v[j], y);
    break;
}
#undef LINK
#undef EXPR
