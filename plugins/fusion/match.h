/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - registered optimisations: an op that takes the place of others.
 *
 * Which nodes of a window a pattern is for is found without the layer's lock,
 * since inference of an extension's op may open its library; what other threads
 * can change meanwhile, who wants the values inside, is asked under it. The
 * values inside have no other reader, so no way leads out of the pattern and
 * back but from its last op. One that is held by its scope alone stays pending
 * and can be computed as ever.
 */
#ifndef HOB_FUSION_MATCH_H
#define HOB_FUSION_MATCH_H

#include "plan.h"

/* Find patterns among those of WINDOW's nodes that are no member of one yet.
 * The nodes are claimed by this thread. What was given up is not found again,
 * but a smaller one in its place is. */
void fu_match_find(struct fu_window *window);

/* Give up those whose values inside somebody else wants. Nonzero if there were
 * such: then find again, and check. */
int fu_match_check_locked(struct fu_window *window);

/* ITEM, a member that was checked, is of no group but its match's. */
void fu_match_settle(struct fu_window *window, struct fu_item *item);

/* Tell who watches what was refused. */
void fu_match_tell(const struct fu_window *window);

/* Run the op that takes the place of group INDEX, as fu_group_run(). */
int fu_match_run(struct fu_window *window, uint32_t index);

#endif
