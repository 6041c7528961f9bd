/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of all links and their table, MODE(links), with the moves of
 * TAKE and GIVE. Included by chain_tmpl.h once for each kind of moves.
 */
#define THREE "chain_three_tmpl.h"
#define OF "chain_of_tmpl.h"
#define TWO "chain_two_tmpl.h"
#define ONE "chain_one_tmpl.h"
#include "chain_list_tmpl.h"

static const NAME(link_fn) MODE(links)[2 * FLEX_LINK_COUNT_] = {
#define THREE "chain_entry_three_tmpl.h"
#define OF "chain_entry_of_tmpl.h"
#define TWO "chain_entry_two_tmpl.h"
#define ONE "chain_entry_one_tmpl.h"
#include "chain_list_tmpl.h"
};

#undef MODE
#undef TAKE
#undef GIVE
