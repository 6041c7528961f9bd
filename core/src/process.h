/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - the little that belongs to the process and not to a runtime.
 *
 * Everything else hangs from a runtime. What is here is guarded by one lock
 * and never freed, because libraries that use it are never unloaded.
 */
#ifndef HOB__PROCESS_H
#define HOB__PROCESS_H

#include <stdint.h>

/*
 * Return what the first caller's MAKE made for KEY; NULL where it made
 * nothing, in which case the next caller tries again. MAKE runs under a lock
 * of its key alone, so two keys never wait for each other.
 */
void *hob__process_shared(const char *key, void *(*make)(void));

/* How often this process's line of ancestors forked since the first call:
 * one load, so that every op can ask whether it runs in a child (LOAD-5). */
uint32_t hob__process_forks(void);

/* What a word is while a thread of this process has locked it: 16 bits, never
 * 0. Another such value is left from before a fork, by a thread that is no
 * more, so who finds it may take the lock. */
uint32_t hob__process_mark(void);

/* Begin to count forks; any number of times, from any thread. */
void hob__process_watch_forks(void);

/* A number that no other runtime of this process has or had; never 0. */
uint32_t hob__process_serial(void);

#endif
