/* SPDX-License-Identifier: Apache-2.0 */
/* A link with an operand, of chain_list_tmpl.h, in the table of functions. */
[2 * CODE(LINK)] = FUNCTION(LINK), [2 * CODE(LINK) + 1] = SINGLE(LINK),
#undef LINK
#undef EXPR
