/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepared.h - what kernels prepared, kept for the next call of the kind.
 *
 * An entry with HOB_ENTRY_KEEP has its prepare run once for each combination
 * of dtypes, shapes, strides and attributes; the answers hang on the route of
 * the op at its device, a few dozen at most, the least recent going first.
 */
#ifndef HOB__PREPARED_H
#define HOB__PREPARED_H

#include <hob/ext/plugin.h>

#include <pthread.h>

struct hob__prepared; /* opaque */

struct hob__prepared_list {
    struct hob__prepared *first; /* the most recent */
    uint32_t count;
};

/*
 * A plan for CALL that was kept, held until hob__prepared_give(); NULL if
 * there is none. LOCK protects LIST.
 */
struct hob__prepared *hob__prepared_find(struct hob__prepared_list *list,
                                         pthread_mutex_t *lock,
                                         const struct hob_call *call);

/*
 * Keep PLAN, which was just made for CALL, and hold it. Without memory it is
 * not kept: NULL, and PLAN is still the caller's. If another thread was
 * faster its plan is returned and PLAN released.
 */
struct hob__prepared *hob__prepared_keep(struct hob__prepared_list *list,
                                         pthread_mutex_t *lock,
                                         const struct hob_call *call,
                                         const struct hob_prepare *plan);

const struct hob_prepare *hob__prepared_plan(const struct hob__prepared *kept);
void hob__prepared_give(struct hob__prepared *kept);

/* Release all of LIST; nobody uses it any more. */
void hob__prepared_clear(struct hob__prepared_list *list);

#endif
