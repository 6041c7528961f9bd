/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_case_two_tmpl.h, with X in full in any case and another
 * operand that is single. */
case 2 * CODE(LINK):
case 2 * CODE(LINK) + 1: {
    const NAME(vector) y = NAME(load_some)(x + i, count);
    const NAME(vector) z = NAME(all)((const TYPE *)at[links[k].second]);

    v = EXPR(v, y, z);
    break;
}
#undef LINK
#undef EXPR
