/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_entry_two_tmpl.h, without an operand. */
[2 * CODE(LINK)] = FUNCTION(LINK),
#undef LINK
#undef EXPR
