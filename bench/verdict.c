/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "verdict.h"

#include "suite.h"

#include <string.h>

/* No target if nothing is WANTED. */
static void add(struct verdict *v, const char *what, enum verdict_unit unit,
                double wanted, double got, int is_known)
{
    struct verdict_target *target = &v->targets[v->target_count];

    if (wanted == 0)
        return;
    target->what = what;
    target->unit = unit;
    target->wanted = wanted;
    target->got = got;
    target->is_known = is_known;
    target->is_met =
        is_known && (unit == VERDICT_RATIO ? got >= wanted : got <= wanted);
    v->target_count++;
}

/* The fastest of ROW's peers whose names begin with WHO, or *BEST. */
static void find_best(const struct measure_row *row, const char *who,
                      const struct measure_way **best, int *threads)
{
    for (int i = 1; row && i < row->way_count; i++) {
        const struct measure_way *way = &row->ways[i];

        /* Hob in another way is no peer, unless a target names it. */
        if (way->state || way->median_ns <= 0 || way->is_base ||
            (!*who && strncmp(way->who, "hob", 3) == 0) ||
            strncmp(way->who, who, strlen(who)) != 0 ||
            (*best && (*best)->median_ns <= way->median_ns))
            continue;
        *best = way;
        *threads = row->threads;
    }
}

void verdict_of(const struct bench_ceilings *ceilings,
                const struct measure_row *row, struct verdict *out)
{
    const struct bench_target *target = &row->c->target;
    const double own = row->ways[0].median_ns;

    memset(out, 0, sizeof(*out));
    find_best(row, "", &out->peer, &out->peer_threads);
    find_best(row->one, "", &out->peer, &out->peer_threads);
    for (int i = 1; i < row->way_count; i++)
        if (row->ways[i].is_base && row->ways[i].median_ns > 0)
            out->base = &row->ways[i];
    out->limit_ns = bench_limit_ns(ceilings, row->c, row->threads, &out->limit);
    if (own <= 0)
        return;
    out->of_peer = out->peer ? out->peer->median_ns / own : 0;
    out->of_limit = out->limit_ns / own;
    add(out, "of the best peer's speed", VERDICT_RATIO, target->peer,
        out->of_peer, out->peer != NULL);
    for (int i = 0; i < BENCH_PEERS && target->of[i].who; i++) {
        const struct measure_way *peer = NULL;
        int threads;

        find_best(row, target->of[i].who, &peer, &threads);
        find_best(row->one, target->of[i].who, &peer, &threads);
        add(out, "of the speed of", VERDICT_RATIO, target->of[i].ratio,
            peer ? peer->median_ns / own : 0, peer != NULL);
        out->targets[out->target_count - 1].who = target->of[i].who;
    }
    add(out, "of the limit", VERDICT_RATIO, target->limit, out->of_limit,
        out->limit_ns > 0);
    add(out, "", VERDICT_NS, target->ns, own, 1);
    add(out, "above the base", VERDICT_NS, target->above_base_ns,
        out->base ? own - out->base->median_ns : 0, out->base != NULL);
    add(out, "of the base's speed", VERDICT_RATIO, target->base,
        out->base ? out->base->median_ns / own : 0, out->base != NULL);
    add(out, "of memory", VERDICT_BYTES, target->peak_bytes,
        (double)row->ways[0].peak_bytes, row->ways[0].peak_bytes >= 0);
}

const char *verdict_word(const struct measure_row *row,
                         const struct verdict *verdict)
{
    static const char *const states[] = {"not timed", "not there", "WRONG",
                                         "FAILED"};
    int is_known = 0;

    if (row->ways[0].state || row->ways[0].median_ns <= 0)
        return states[row->ways[0].state];
    for (int i = 0; i < verdict->target_count; i++) {
        if (verdict->targets[i].is_known && !verdict->targets[i].is_met)
            return "missed";
        is_known |= verdict->targets[i].is_known;
    }
    return is_known ? "met" : verdict->target_count ? "no peer" : "no target";
}
