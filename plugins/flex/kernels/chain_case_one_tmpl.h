/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_case_two_tmpl.h, without an operand. */
case 2 * CODE(LINK):
    v = EXPR(v);
    break;
#undef LINK
#undef EXPR
