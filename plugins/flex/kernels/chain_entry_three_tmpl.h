/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_entry_two_tmpl.h, with two operands that are single. */
[2 * CODE(LINK) + 1] = SINGLE(LINK),
#undef LINK
#undef EXPR
