/* SPDX-License-Identifier: Apache-2.0 */
#include "hazards.h"

static int collide(const struct cvk_span *a, const struct cvk_span *b)
{
    return (a->is_written || b->is_written) && a->begin < b->end &&
           b->begin < a->end;
}

static int collides(const struct cvk_hazards *hazards,
                    const struct cvk_span *span)
{
    for (uint32_t i = 0; i < hazards->count; i++)
        if (collide(&hazards->spans[i], span))
            return 1;
    return 0;
}

/* Reads of one tensor by one launch after the other are one span. */
static int is_known(const struct cvk_hazards *hazards,
                    const struct cvk_span *span)
{
    for (uint32_t i = 0; i < hazards->count; i++) {
        const struct cvk_span *known = &hazards->spans[i];

        if (known->is_written == span->is_written &&
            known->begin <= span->begin && span->end <= known->end)
            return 1;
    }
    return 0;
}

int cvk_hazards_add(struct cvk_hazards *hazards, const struct cvk_span *spans,
                    uint32_t count)
{
    int needs_barrier = 0;

    for (uint32_t i = 0; i < count && !needs_barrier; i++)
        needs_barrier = collides(hazards, &spans[i]);
    /* A full list is no reason to forget: the barrier makes it empty. */
    if (hazards->count + count > CVK_HAZARDS)
        needs_barrier = 1;
    if (needs_barrier)
        cvk_hazards_clear(hazards);
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].begin == spans[i].end || is_known(hazards, &spans[i]))
            continue;
        hazards->spans[hazards->count++] = spans[i];
    }
    return needs_barrier;
}

void cvk_hazards_clear(struct cvk_hazards *hazards)
{
    hazards->count = 0;
}
