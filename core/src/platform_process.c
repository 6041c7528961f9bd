/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "platform_process.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FORK_MARK_ALIVE = 0x486f6221, FORK_MARK_BYTES = 4096 };

/* The first line of file PATH, without its end; false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found;

    if (!file)
        return false;
    found = fgets(line, (int)size, file) != NULL;
    (void)fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

/* How many processors QUOTA microseconds in each PERIOD are, rounded up. */
static uint32_t quota_cpus(int64_t quota, int64_t period)
{
    int64_t cpus;

    if (quota <= 0 || period <= 0)
        return UINT32_MAX;
    cpus = quota / period + (quota % period != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

/* The limit in cpu.max of the version 2 group at PATH ("" is the root). */
static uint32_t group_cpus(const char *path)
{
    char name[600];
    char line[128];
    int64_t quota = 0;
    int64_t period = 0;
    int length = snprintf(name, sizeof(name), "/sys/fs/cgroup%s/cpu.max", path);

    if (length < 0 || (size_t)length >= sizeof(name) ||
        !read_line(name, line, sizeof(line)) ||
        sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
        return UINT32_MAX; /* "max" does not parse: no limit */
    return quota_cpus(quota, period);
}

/* The lowest limit of this process's group and the groups above it. */
static uint32_t groups_cpus(void)
{
    char line[512] = "";
    char quota[64];
    char period[64];
    uint32_t lowest = group_cpus("");

    if (read_line("/proc/self/cgroup", line, sizeof(line)) &&
        strncmp(line, "0::/", 4) == 0) {
        char *path = line + 3;

        for (char *end = path + strlen(path); end > path;
             end = strrchr(path, '/')) {
            uint32_t cpus;

            *end = '\0';
            cpus = group_cpus(path);
            if (cpus < lowest)
                lowest = cpus;
        }
    } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota,
                         sizeof(quota)) &&
               read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period,
                         sizeof(period))) {
        return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
    }
    return lowest;
}

uint32_t hob__cpu_count(void)
{
    cpu_set_t set;
    long online;
    uint32_t count;
    uint32_t limit;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        count = (uint32_t)CPU_COUNT(&set);
    } else {
        /* More than CPU_SETSIZE processors. */
        online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online > 0 ? (uint32_t)online : 1;
    }
    limit = groups_cpus();
    if (count > limit)
        count = limit;
    return count ? count : 1;
}

uint32_t hob__cpu_current(void)
{
    int cpu = sched_getcpu();

    return cpu < 0 ? UINT32_MAX : (uint32_t)cpu;
}

void hob__cpus_init(struct hob__cpus *cpus)
{
    CPU_ZERO(&cpus->set);
    cpus->count = sched_getaffinity(0, sizeof(cpus->set), &cpus->set)
                      ? 0
                      : (uint32_t)CPU_COUNT(&cpus->set);
}

void hob__thread_keep_off(pthread_t thread, const struct hob__cpus *cpus,
                          uint32_t cpu)
{
    cpu_set_t set = cpus->set;

    if (cpu < CPU_SETSIZE)
        CPU_CLR(cpu, &set);
    if (CPU_COUNT(&set))
        (void)pthread_setaffinity_np(thread, sizeof(set), &set);
}

uint64_t hob__clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void hob__fork_mark_init(struct hob__fork_mark *mark)
{
    void *page = mmap(NULL, FORK_MARK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    mark->page = NULL;
    mark->process = (int64_t)getpid();
    if (page == MAP_FAILED)
        return;
    if (madvise(page, FORK_MARK_BYTES, MADV_WIPEONFORK)) {
        (void)munmap(page, FORK_MARK_BYTES);
        return;
    }
    mark->page = page;
    *mark->page = FORK_MARK_ALIVE;
}

void hob__fork_mark_release(struct hob__fork_mark *mark)
{
    if (mark->page)
        (void)munmap((void *)(uintptr_t)mark->page, FORK_MARK_BYTES);
    mark->page = NULL;
}

bool hob__fork_mark_is_child(const struct hob__fork_mark *mark)
{
    if (mark->page)
        return *mark->page != FORK_MARK_ALIVE;
    return mark->process != (int64_t)getpid();
}
