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

/* Find the patterns among WINDOW's nodes, which are claimed by this thread. */
void fu_match_find(struct fu_window *window);

/* Give up those whose values inside somebody else wants. Their members are
 * FU_OTHER, and of a group of their own. */
void fu_match_check_locked(struct fu_window *window);

/* Tell who watches what was refused. */
void fu_match_tell(const struct fu_window *window);

/* Run the op that takes the place of group INDEX, as fu_group_run(). */
int fu_match_run(struct fu_window *window, uint32_t index);

#endif
