/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_posix.c - the real system's table on Linux and its kin.
 *
 * The one getenv() of the tree stands here.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#ifndef _WIN32

#include "os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <link.h>
#include <sys/auxv.h>
#endif

#if defined(__x86_64__)
#define HOST_ARCH "x86_64"
#elif defined(__aarch64__)
#define HOST_ARCH "aarch64"
#elif defined(__riscv)
#define HOST_ARCH "riscv64"
#else
#define HOST_ARCH "unknown"
#endif

#if defined(__APPLE__)
#define HOST_TRIPLE "macos-" HOST_ARCH
#elif defined(__GLIBC__)
#define HOST_TRIPLE "linux-" HOST_ARCH "-gnu"
#else
#define HOST_TRIPLE "linux-" HOST_ARCH "-musl"
#endif

extern char **environ;

static void fill_stat(const struct stat *st, struct hob_os_stat *out_stat)
{
    memset(out_stat, 0, sizeof(*out_stat));
    out_stat->device = (uint64_t)st->st_dev;
    out_stat->inode = (uint64_t)st->st_ino;
    out_stat->size = (uint64_t)st->st_size;
    out_stat->mtime_ns = (uint64_t)st->st_mtime * UINT64_C(1000000000);
    out_stat->owner = (uint32_t)st->st_uid;
    out_stat->writable_by_others = (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    out_stat->sticky = (st->st_mode & S_ISVTX) != 0;
    if (S_ISREG(st->st_mode))
        out_stat->type = HOB_OS_REGULAR;
    else if (S_ISDIR(st->st_mode))
        out_stat->type = HOB_OS_DIRECTORY;
    else if (S_ISLNK(st->st_mode))
        out_stat->type = HOB_OS_SYMLINK;
    else
        out_stat->type = HOB_OS_OTHER;
}

static int posix_open_read(void *self, const char *path)
{
    int fd;

    (void)self;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static int64_t posix_read(void *self, int fd, void *buffer, size_t size,
                          uint64_t offset)
{
    size_t done = 0;

    (void)self;
    while (done < size) {
        ssize_t n = pread(fd, (char *)buffer + done, size - done,
                          (off_t)(offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

static int posix_file_stat(void *self, int fd, struct hob_os_stat *out_stat)
{
    struct stat st;

    (void)self;
    if (fstat(fd, &st))
        return -errno;
    fill_stat(&st, out_stat);
    return 0;
}

static int posix_path_stat(void *self, const char *path, bool follow,
                           struct hob_os_stat *out_stat)
{
    struct stat st;

    (void)self;
    if (follow ? stat(path, &st) : lstat(path, &st))
        return -errno;
    fill_stat(&st, out_stat);
    return 0;
}

static void posix_close(void *self, int fd)
{
    (void)self;
    (void)close(fd);
}

static int posix_open_dir(void *self, const char *path, void **out_dir)
{
    (void)self;
    *out_dir = opendir(path);
    return *out_dir ? 0 : -errno;
}

static int posix_read_dir(void *self, void *dir, const char **out_name)
{
    struct dirent *entry;

    (void)self;
    errno = 0;
    entry = readdir(dir);
    *out_name = entry ? entry->d_name : NULL;
    return entry ? 0 : -errno;
}

static int posix_dir_stat(void *self, void *dir, struct hob_os_stat *out_stat)
{
    return posix_file_stat(self, dirfd(dir), out_stat);
}

static void posix_close_dir(void *self, void *dir)
{
    (void)self;
    (void)closedir(dir);
}

static int posix_real_path(void *self, const char *path, char **out_path)
{
    (void)self;
    *out_path = realpath(path, NULL);
    return *out_path ? 0 : -errno;
}

static int posix_create(void *self, const char *path, enum hob_os_create how,
                        uint32_t mode)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
    int fd;

    (void)self;
    flags |= how == HOB_OS_CREATE_NEW ? O_EXCL : O_APPEND;
    /* A FIFO that nobody reads is refused, not waited for. */
    do
        fd = open(path, flags | O_NONBLOCK, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -errno;
    (void)fcntl(fd, F_SETFL, flags & O_APPEND);
    return fd;
}

static int64_t posix_write(void *self, int fd, const void *buffer, size_t size)
{
    size_t done = 0;

    (void)self;
    while (done < size) {
        ssize_t n = write(fd, (const char *)buffer + done, size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return (int64_t)done;
}

static int posix_sync(void *self, int fd)
{
    (void)self;
    return fsync(fd) ? -errno : 0;
}

static int posix_lock(void *self, int fd)
{
    int code;

    (void)self;
    do
        code = flock(fd, LOCK_EX);
    while (code && errno == EINTR);
    return code ? -errno : 0;
}

static int posix_rename(void *self, const char *from, const char *to)
{
    (void)self;
    return rename(from, to) ? -errno : 0;
}

static int posix_remove(void *self, const char *path)
{
    (void)self;
    return remove(path) ? -errno : 0;
}

static int posix_make_dir(void *self, const char *path, uint32_t mode)
{
    (void)self;
    return mkdir(path, (mode_t)mode) ? -errno : 0;
}

static char *posix_get_env(void *self, const char *name)
{
    const char *value = getenv(name);

    (void)self;
    return value ? strdup(value) : NULL;
}

static char *posix_list_env(void *self, uint32_t index)
{
    uint32_t i;

    (void)self;
    for (i = 0; environ && environ[i]; i++) {
        if (i == index)
            return strdup(environ[i]);
    }
    return NULL;
}

static void *posix_dl_open(void *self, const char *path, char **out_message)
{
    void *handle;
    const char *message;

    (void)self;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle && out_message) {
        message = dlerror();
        *out_message = strdup(message ? message : "dlopen failed");
    }
    return handle;
}

static void *posix_dl_symbol(void *self, void *handle, const char *name)
{
    (void)self;
    return dlsym(handle, name);
}

static void posix_dl_close(void *self, void *handle)
{
    (void)self;
    (void)dlclose(handle);
}

static int posix_program_path(void *self, char **out_path)
{
#if defined(__linux__)
    return posix_real_path(self, "/proc/self/exe", out_path);
#else
    (void)self;
    *out_path = NULL;
    return -ENOSYS;
#endif
}

static int posix_dl_path(void *self, void *handle, char **out_path)
{
#if defined(__linux__)
    struct link_map *map = NULL;

    *out_path = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
        return -EINVAL;
    /* The program's own entry has the empty name. */
    if (!map->l_name || !*map->l_name)
        return posix_program_path(self, out_path);
    return posix_real_path(self, map->l_name, out_path);
#else
    (void)self;
    (void)handle;
    *out_path = NULL;
    return -ENOSYS;
#endif
}

static int posix_self_path(void *self, char **out_path)
{
    Dl_info info;

    *out_path = NULL;
    if (!dladdr((void *)(uintptr_t)hob__os, &info) || !info.dli_fname)
        return -ENOENT;
    /* A program's name may be relative to a folder that is no longer ours. */
    if (info.dli_fname[0] != '/')
        return posix_program_path(self, out_path);
    return posix_real_path(self, info.dli_fname, out_path);
}

static bool posix_has_symbol(void *self, const char *name)
{
    (void)self;
    return dlsym(RTLD_DEFAULT, name) != NULL;
}

static bool posix_is_elevated(void *self)
{
    (void)self;
#if defined(__linux__)
    if (getauxval(AT_SECURE))
        return true;
#endif
    return geteuid() != getuid() || getegid() != getgid();
}

static uint32_t posix_user(void *self)
{
    (void)self;
    return (uint32_t)geteuid();
}

static int64_t posix_process(void *self)
{
    (void)self;
    return (int64_t)getpid();
}

static uint64_t posix_thread(void *self)
{
    (void)self;
    return (uint64_t)(uintptr_t)pthread_self();
}

static uint64_t posix_now_ns(void *self)
{
    struct timespec now;

    (void)self;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return 0;
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

enum { CHILD_TEXT_MAX = 1 << 16 };

static int64_t monotonic_ms(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Collect what the child writes until it closes FD; false: time is up. */
static bool collect(int fd, int64_t end_ms, char *text, size_t *length)
{
    for (;;) {
        struct pollfd poll_fd = {fd, POLLIN, 0};
        int64_t left = end_ms - monotonic_ms();
        char rest[256];
        bool has_room = *length < CHILD_TEXT_MAX;
        ssize_t n;

        if (left <= 0)
            return false;
        if (poll(&poll_fd, 1, (int)left) <= 0)
            continue;
        n = read(fd, has_room ? text + *length : rest,
                 has_room ? CHILD_TEXT_MAX - *length : sizeof(rest));
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0 && has_room)
            *length += (size_t)n;
    }
}

/* Wait for CHILD, which has until END_MS; then it is killed. */
static void reap(pid_t child, int64_t end_ms, enum hob_os_end *out_end,
                 int *out_code)
{
    const struct timespec pause = {0, 2000000};
    bool is_late = false;
    int status = 0;
    pid_t done;

    while ((done = waitpid(child, &status, is_late ? 0 : WNOHANG)) != child) {
        if (done < 0 && errno != EINTR)
            break;
        if (!is_late && monotonic_ms() >= end_ms) {
            is_late = true;
            (void)kill(child, SIGKILL);
        }
        if (!is_late)
            (void)nanosleep(&pause, NULL);
    }
    *out_end = is_late               ? HOB_OS_TIMED_OUT
               : WIFSIGNALED(status) ? HOB_OS_SIGNALLED
                                     : HOB_OS_EXITED;
    *out_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static int posix_run_child(void *self, hob_os_child_fn *run, void *context,
                           uint32_t timeout_ms, enum hob_os_end *out_end,
                           int *out_code, char **out_text)
{
    char *text = calloc(1, CHILD_TEXT_MAX + 1);
    int64_t end_ms = monotonic_ms() + timeout_ms;
    size_t length = 0;
    int ends[2];
    pid_t child;

    (void)self;
    *out_text = NULL;
    if (!text || pipe(ends)) {
        int code = text ? -errno : -ENOMEM;

        free(text);
        return code;
    }
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        free(text);
        /* No handlers of exit: they are the parent's. */
        _exit(run(context, ends[1]));
    }
    (void)close(ends[1]);
    if (child < 0) {
        int code = -errno;

        (void)close(ends[0]);
        free(text);
        return code;
    }
    if (!collect(ends[0], end_ms, text, &length))
        end_ms = 0;
    (void)close(ends[0]);
    reap(child, end_ms, out_end, out_code);
    *out_text = text;
    return 0;
}

#if defined(__x86_64__)
/* The builtin takes literals only. */
static int posix_has_cpu(void *self, const char *feature)
{
    (void)self;
    __builtin_cpu_init();
#define CPU_FEATURE(name)                                                      \
    if (!strcmp(feature, name))                                                \
        return __builtin_cpu_supports(name) != 0;
    CPU_FEATURE("sse2")
    CPU_FEATURE("sse4.1")
    CPU_FEATURE("sse4.2")
    CPU_FEATURE("popcnt")
    CPU_FEATURE("avx")
    CPU_FEATURE("avx2")
    CPU_FEATURE("fma")
    CPU_FEATURE("bmi")
    CPU_FEATURE("bmi2")
    CPU_FEATURE("avx512f")
    CPU_FEATURE("avx512bw")
    CPU_FEATURE("avx512cd")
    CPU_FEATURE("avx512dq")
    CPU_FEATURE("avx512vl")
    CPU_FEATURE("avx512vnni")
    CPU_FEATURE("avx512bf16")
#undef CPU_FEATURE
    return -1;
}
#elif defined(__aarch64__) && defined(__linux__)
/* Bits of AT_HWCAP and AT_HWCAP2, as the kernel's ABI fixes them. */
static int posix_has_cpu(void *self, const char *feature)
{
    static const struct {
        const char *name;
        int second;
        int bit;
    } bits[] = {{"neon", 0, 1}, {"fp16", 0, 10}, {"dotprod", 0, 20},
                {"sve", 0, 22}, {"sve2", 1, 1},  {"i8mm", 1, 13},
                {"bf16", 1, 14}};
    size_t i;

    (void)self;
    for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        if (!strcmp(feature, bits[i].name))
            return (getauxval(bits[i].second ? AT_HWCAP2 : AT_HWCAP) >>
                    bits[i].bit) &
                   1;
    }
    return -1;
}
#else
static int posix_has_cpu(void *self, const char *feature)
{
    (void)self;
    (void)feature;
    return -1;
}
#endif

const struct hob_os_ops *hob__os(void)
{
    static const struct hob_os_ops ops = {
        .open_read = posix_open_read,
        .read = posix_read,
        .file_stat = posix_file_stat,
        .path_stat = posix_path_stat,
        .close = posix_close,
        .open_dir = posix_open_dir,
        .read_dir = posix_read_dir,
        .dir_stat = posix_dir_stat,
        .close_dir = posix_close_dir,
        .real_path = posix_real_path,
        .create = posix_create,
        .write = posix_write,
        .sync = posix_sync,
        .lock = posix_lock,
        .rename = posix_rename,
        .remove = posix_remove,
        .make_dir = posix_make_dir,
        .get_env = posix_get_env,
        .list_env = posix_list_env,
        .dl_open = posix_dl_open,
        .dl_symbol = posix_dl_symbol,
        .dl_close = posix_dl_close,
        .dl_path = posix_dl_path,
        .self_path = posix_self_path,
        .program_path = posix_program_path,
        .has_symbol = posix_has_symbol,
        .is_elevated = posix_is_elevated,
        .user = posix_user,
        .process = posix_process,
        .thread = posix_thread,
        .now_ns = posix_now_ns,
        .run_child = posix_run_child,
        .has_cpu = posix_has_cpu,
        .triple = HOST_TRIPLE,
        .path_list_separator = ':',
    };

    return &ops;
}

#else
typedef int hob__platform_posix_unused;
#endif
