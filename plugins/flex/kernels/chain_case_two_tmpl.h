/* SPDX-License-Identifier: Apache-2.0 */
/* A link with an operand, of chain_list_tmpl.h, inside a switch: on one vector
 * V, or its first elements. */
case 2 * CODE(LINK): {
    const NAME(vector) y = NAME(load_some)(x + i, count);

    v = EXPR(v, y);
    break;
}
case 2 * CODE(LINK) + 1: {
    const NAME(vector) y = NAME(all)(x);

    v = EXPR(v, y);
    break;
}
#undef LINK
#undef EXPR
