/* SPDX-License-Identifier: Apache-2.0 */
/* The same as chain_entry_two_tmpl.h, with X in full in any case. */
[2 * CODE(LINK)] = FUNCTION(LINK), [2 * CODE(LINK) + 1] = FUNCTION(LINK),
#undef LINK
#undef EXPR
