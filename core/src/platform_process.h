/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_process.h - the processors of this process, and whether it is a
 * fork of the one that it was.
 */
#ifndef HOB__PLATFORM_PROCESS_H
#define HOB__PLATFORM_PROCESS_H

#include <hob/common.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Return how many processors this process may use at once, at least 1: those
 * of its affinity mask, and no more than its control group's quota pays for.
 */
uint32_t hob__cpu_count(void);

/* The processor that this thread is on; UINT32_MAX where nobody knows. */
uint32_t hob__cpu_current(void);

/* Processors of which threads may be kept off one. */
struct hob__cpus {
    cpu_set_t set; /* those of the thread that asked */
    uint32_t count;
};

/* Learn which this thread may use; none (COUNT 0) where nobody knows. */
void hob__cpus_init(struct hob__cpus *cpus);

/* Let THREAD run on any of CPUS but CPU. Best effort: a hint to the system. */
void hob__thread_keep_off(pthread_t thread, const struct hob__cpus *cpus,
                          uint32_t cpu);

/* Tell the processor that this is a spin loop. */
static inline void hob__cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Nanoseconds of a clock that only goes forward. */
uint64_t hob__clock_ns(void);

/*
 * A mark that a forked child finds wiped. Asking costs one load where the
 * kernel can wipe pages (Linux 4.14), else a getpid().
 */
struct hob__fork_mark {
    volatile uint32_t *page; /* NULL: compare PROCESS instead */
    int64_t process;
};

void hob__fork_mark_init(struct hob__fork_mark *mark);
void hob__fork_mark_release(struct hob__fork_mark *mark);

/* Say whether this process is a child of the one that made MARK. */
bool hob__fork_mark_is_child(const struct hob__fork_mark *mark);

#endif
