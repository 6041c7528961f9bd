/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - the host's threads.
 *
 * A job is a range 0..COUNT-1 that is cut into pieces; the caller and the
 * workers claim pieces until none is left. Where the cuts are depends on
 * COUNT and GRAIN only, so what a kernel computes does not depend on the
 * number of threads. Several threads may submit jobs at once. A job submitted
 * from inside a piece runs inline, on that thread alone.
 *
 * Workers start with the first job that has more than one piece. They spin
 * for a while after each job, then sleep. Where there is a processor a thread,
 * they are kept off the one that the last submitter was on. As many submitters
 * at once as there are threads each run their own job alone. In a forked child,
 * where they do not exist, every job runs inline.
 */
#ifndef HOB__POOL_H
#define HOB__POOL_H

#include <hob/host.h>

struct hob__pool;

/*
 * Make a pool of THREADS threads, the caller of a job being one of them; 0
 * means one a processor that this process may use. Fails with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__pool_new(uint32_t threads,
                                        struct hob__pool **out_pool);

/* End the workers. No job may be running. Accepts NULL. */
void hob__pool_free(struct hob__pool *pool);

/*
 * Run FN over 0..COUNT-1 in pieces of at least GRAIN items, which begin at
 * multiples of GRAIN; return when all is done. WORKER, as FN sees it, is 0 for
 * the caller's thread and differs among the threads that run one job.
 */
void hob__pool_for(struct hob__pool *pool, int64_t count, int64_t grain,
                   hob_range_fn fn, void *context);

/* The threads that a job may use, the caller's included. */
uint32_t hob__pool_threads(const struct hob__pool *pool);

#endif
