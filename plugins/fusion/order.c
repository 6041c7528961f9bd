/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - the order in which groups run.
 */
#include "groups.h"

#include <string.h>

static uint32_t size_of(const uint64_t *set)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < FU_WORDS; i++)
        size += (uint32_t)__builtin_popcountll(set[i]);
    return size;
}

static void emit(struct fu_window *window, uint64_t *done, uint32_t group)
{
    window->order[window->order_count++] = (uint16_t)group;
    fu_set_add(done, group);
}

/* What GROUP depends on comes before it: of that, who depends on another
 * reaches more. */
static void emit_needed(struct fu_window *window, uint64_t *done,
                        uint32_t group)
{
    for (;;) {
        uint32_t least = FU_WINDOW, next = 0;

        for (uint32_t i = 0; i < window->group_count; i++) {
            const struct fu_group *needed = &window->groups[i];

            if (needed->is_gone || fu_set_has(done, i) ||
                !fu_set_has(window->groups[group].reach, i) ||
                size_of(needed->reach) >= least)
                continue;
            least = size_of(needed->reach);
            next = i;
        }
        if (least == FU_WINDOW)
            return;
        emit(window, done, next);
    }
}

static int is_ready(const struct fu_window *window, const uint64_t *done,
                    uint32_t group)
{
    const uint64_t *reach = window->groups[group].reach;

    for (uint32_t i = 0; i < FU_WORDS; i++)
        if (reach[i] & ~done[i])
            return 0;
    return 1;
}

/* GROUP, unless it has run, and what it depends on. */
static void emit_all(struct fu_window *window, uint64_t *done, uint32_t group)
{
    if (fu_set_has(done, group))
        return;
    if (!is_ready(window, done, group))
        emit_needed(window, done, group);
    emit(window, done, group);
}

/* As far as their members allow, groups run where their last one was recorded:
 * a program's own order is good to caches and memory. Some run earlier, see
 * early.c, and some together, see list.c. */
void fu_put_in_order(struct fu_window *window)
{
    uint64_t done[FU_WORDS] = {0};
    uint16_t places[FU_WINDOW], first[FU_WINDOW], next[FU_WINDOW];

    memset(first, 0xff, sizeof(first));
    fu_choose_places(window, places);
    fu_place_lists(window, places);
    window->order_count = 0;
    for (uint32_t i = window->group_count; i-- > 0;) {
        if (window->groups[i].is_gone) {
            fu_set_add(done, i);
            continue;
        }
        next[i] = first[places[i]];
        first[places[i]] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < window->count; i++) {
        /* The one whose place was recorded comes first. */
        for (uint32_t k = first[i]; k < FU_WINDOW; k = next[k])
            if (window->groups[k].last == i)
                emit_all(window, done, k);
        for (uint32_t k = first[i]; k < FU_WINDOW; k = next[k])
            emit_all(window, done, k);
    }
    fu_mark_lists(window);
}
