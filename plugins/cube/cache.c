/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What a file begins with. Raise the version with each change of the form, or
 * of what a binary means to those who use it. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t data_bytes;
    uint8_t key[CUBE_SHA256_BYTES];
    uint8_t checksum[CUBE_SHA256_BYTES]; /* of the data */
};

enum {
    VERSION = 1,
    NAME_BYTES = 2 * CUBE_SHA256_BYTES + 1,
    HOUR = 3600,
    /* A folder is looked through when a process begins to write, and again
     * when it has written such a part of what it may have. */
    PARTS = 16
};

static const char magic[8] = "HOBCUBE";

struct cube_cache {
    int folder;
    atomic_uint serial; /* of files that are being written */
    uint64_t limit_bytes;
    _Atomic uint64_t left_bytes; /* to write before the next look */
};

/* ---- the folder ---- */

/* Open NAME below the folder PARENT, and make it if need be; -1 if it is not
 * ours alone. PARENT is closed. */
static int folder_step(int parent, const char *name, int is_own)
{
    struct stat info;
    int folder;

    if (parent < 0)
        return -1;
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST) {
        close(parent);
        return -1;
    }
    folder =
        openat(parent, name,
               O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_own ? O_NOFOLLOW : 0));
    close(parent);
    if (folder < 0)
        return -1;
    if (is_own && (fstat(folder, &info) < 0 || info.st_uid != geteuid() ||
                   (info.st_mode & 022))) {
        close(folder);
        errno = EPERM;
        return -1;
    }
    return folder;
}

static int open_root(const char *path)
{
    if (path && path[0] == '/')
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    errno = ENOENT;
    return -1;
}

/* $XDG_CACHE_HOME, which may be yet to be made in a folder that is there. */
static int open_base(void)
{
    const char *path = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");

    if (path && path[0] == '/') {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -1;
        return open_root(path);
    }
    return folder_step(open_root(home), ".cache", 0);
}

struct cube_cache *cube_cache_open(const char *selector, const char *above,
                                   uint64_t limit_bytes)
{
    struct cube_cache *cache;
    int folder = above ? open_root(above) : folder_step(open_base(), "hob", 1);

    folder = folder_step(folder, selector, 1);
    if (folder < 0)
        return NULL;
    cache = malloc(sizeof(*cache));
    if (!cache) {
        close(folder);
        return NULL;
    }
    cache->folder = folder;
    atomic_init(&cache->serial, 0);
    cache->limit_bytes = limit_bytes;
    atomic_init(&cache->left_bytes, 0);
    return cache;
}

void cube_cache_close(struct cube_cache *cache)
{
    if (!cache)
        return;
    close(cache->folder);
    free(cache);
}

/* ---- keys ---- */

void cube_cache_key_init(struct cube_cache_key *key, const char *identity,
                         const char *name, const char *text,
                         uint64_t text_bytes)
{
    struct cube_sha256 sha;
    const uint32_t version = VERSION;

    cube_sha256_init(&sha);
    cube_sha256_add(&sha, &version, sizeof(version));
    /* With their NULs, so that the parts cannot run into one another. */
    cube_sha256_add(&sha, identity, strlen(identity) + 1);
    cube_sha256_add(&sha, name, strlen(name) + 1);
    cube_sha256_add(&sha, text, text_bytes);
    cube_sha256_end(&sha, key->bytes);
}

static void key_name(const struct cube_cache_key *key, char name[NAME_BYTES])
{
    for (int i = 0; i < CUBE_SHA256_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
}

static void checksum_of(const void *data, uint64_t bytes,
                        uint8_t out[CUBE_SHA256_BYTES])
{
    struct cube_sha256 sha;

    cube_sha256_init(&sha);
    cube_sha256_add(&sha, data, bytes);
    cube_sha256_end(&sha, out);
}

/* ---- files ---- */

static int read_all(int file, void *data, uint64_t bytes)
{
    char *to = data;

    while (bytes > 0) {
        ssize_t n = read(file, to, (size_t)bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        to += n;
        bytes -= (uint64_t)n;
    }
    return 1;
}

static int write_all(int file, const void *data, uint64_t bytes)
{
    const char *from = data;

    while (bytes > 0) {
        ssize_t n = write(file, from, (size_t)bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        from += n;
        bytes -= (uint64_t)n;
    }
    return 1;
}

/* Let FILE's time be that of this use. */
static void note_use(int file)
{
    struct stat info;

    if (fstat(file, &info) == 0 && info.st_mtime + HOUR < time(NULL))
        (void)!futimens(file, NULL);
}

/* The data of FILE if all of it is as KEY's file should be. */
static void *read_checked(int file, const struct cube_cache_key *key,
                          uint64_t *out_bytes)
{
    struct header header;
    struct stat info;
    uint8_t checksum[CUBE_SHA256_BYTES];
    void *data;

    if (fstat(file, &info) < 0 || !S_ISREG(info.st_mode) ||
        info.st_size <= (off_t)sizeof(header) ||
        !read_all(file, &header, sizeof(header)) ||
        memcmp(header.magic, magic, sizeof(magic)) != 0 ||
        header.version != VERSION || header.header_bytes != sizeof(header) ||
        header.data_bytes != (uint64_t)info.st_size - sizeof(header) ||
        memcmp(header.key, key->bytes, sizeof(header.key)) != 0)
        return NULL;
    data = malloc((size_t)header.data_bytes);
    if (!data)
        return NULL;
    if (!read_all(file, data, header.data_bytes)) {
        free(data);
        return NULL;
    }
    checksum_of(data, header.data_bytes, checksum);
    if (memcmp(checksum, header.checksum, sizeof(checksum)) != 0) {
        free(data);
        return NULL;
    }
    *out_bytes = header.data_bytes;
    return data;
}

void *cube_cache_read(struct cube_cache *cache,
                      const struct cube_cache_key *key, uint64_t *out_bytes)
{
    char name[NAME_BYTES];
    void *data;
    int file;

    if (!cache)
        return NULL;
    key_name(key, name);
    file = openat(cache->folder, name,
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return NULL;
    data = read_checked(file, key, out_bytes);
    if (data)
        note_use(file);
    close(file);
    return data;
}

/* ---- the limit ---- */

struct file {
    char name[NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

struct files {
    struct file *all;
    size_t count, room;
    uint64_t bytes;
};

static int is_older(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->used;
    const struct timespec *y = &((const struct file *)b)->used;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void add_file(struct files *files, const char *name,
                     const struct stat *info)
{
    struct file *file;

    if (files->count == files->room) {
        const size_t room = files->room ? 2 * files->room : 64;
        struct file *all = realloc(files->all, room * sizeof(*all));

        if (!all)
            return;
        files->all = all;
        files->room = room;
    }
    file = &files->all[files->count++];
    memcpy(file->name, name, NAME_BYTES);
    file->bytes = (uint64_t)info->st_size;
    file->used = info->st_mtim;
    files->bytes += file->bytes;
}

/* What there is of whole files. What was left aside by a process that ended
 * while it wrote goes. */
static void list_files(int folder, DIR *list, struct files *out)
{
    const time_t now = time(NULL);
    struct dirent *entry;
    struct stat info;

    while ((entry = readdir(list))) {
        if (fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (strlen(entry->d_name) == NAME_BYTES - 1)
            add_file(out, entry->d_name, &info);
        else if (info.st_mtime + HOUR < now)
            unlinkat(folder, entry->d_name, 0);
    }
}

static void shrink(struct cube_cache *cache)
{
    struct files files = {0};
    DIR *list = NULL;
    const int folder =
        openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder >= 0)
        list = fdopendir(folder);
    if (!list) {
        if (folder >= 0)
            close(folder);
        return;
    }
    list_files(folder, list, &files);
    if (files.bytes > cache->limit_bytes) {
        qsort(files.all, files.count, sizeof(files.all[0]), is_older);
        for (size_t i = 0;
             i < files.count && files.bytes > cache->limit_bytes / 4 * 3; i++) {
            unlinkat(folder, files.all[i].name, 0);
            files.bytes -= files.all[i].bytes;
        }
    }
    closedir(list);
    free(files.all);
}

/* BYTES more were written. */
static void keep_limit(struct cube_cache *cache, uint64_t bytes)
{
    uint64_t left = atomic_load(&cache->left_bytes), next;

    if (!cache->limit_bytes)
        return;
    do
        next = left > bytes ? left - bytes : cache->limit_bytes / PARTS;
    while (!atomic_compare_exchange_weak(&cache->left_bytes, &left, next));
    if (left <= bytes)
        shrink(cache);
}

/* ---- writing ---- */

int cube_cache_write(struct cube_cache *cache, const struct cube_cache_key *key,
                     const void *data, uint64_t bytes)
{
    struct header header = {.version = VERSION,
                            .header_bytes = sizeof(header),
                            .data_bytes = bytes};
    char name[NAME_BYTES], aside[NAME_BYTES + 40];
    int file, good;

    if (!cache || bytes == 0)
        return 1;
    memcpy(header.magic, magic, sizeof(magic));
    memcpy(header.key, key->bytes, sizeof(header.key));
    checksum_of(data, bytes, header.checksum);
    key_name(key, name);
    snprintf(aside, sizeof(aside), "%s.%ld.%p.%u", name, (long)getpid(),
             (void *)cache, atomic_fetch_add(&cache->serial, 1));
    file = openat(cache->folder, aside,
                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return 0;
    good = write_all(file, &header, sizeof(header)) &&
           write_all(file, data, bytes);
    good = close(file) == 0 && good;
    if (!good || renameat(cache->folder, aside, cache->folder, name) < 0) {
        const int problem = errno;

        unlinkat(cache->folder, aside, 0);
        errno = problem;
        return 0;
    }
    keep_limit(cache, sizeof(header) + bytes);
    return 1;
}
