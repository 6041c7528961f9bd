/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmp_dir.h - a folder for one test, gone after it.
 */
#ifndef HOB_TMP_DIR_H
#define HOB_TMP_DIR_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tmp_dir {
    char path[256];
    char file[512]; /* of the latest tmp_path() */
};

static inline void tmp_dir_make(struct tmp_dir *dir)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(dir->path, sizeof(dir->path), "%s/hob-test-XXXXXX",
                   base && strlen(base) < 200 ? base : "/tmp");
    if (!mkdtemp(dir->path))
        dir->path[0] = '\0';
}

/* The path of NAME in DIR, valid until the next call. */
static inline const char *tmp_path(struct tmp_dir *dir, const char *name)
{
    (void)snprintf(dir->file, sizeof(dir->file), "%s/%s", dir->path, name);
    return dir->file;
}

/* How many files there are in DIR. */
static inline int tmp_dir_count(struct tmp_dir *dir)
{
    DIR *open = opendir(dir->path);
    int count = 0;

    while (open && readdir(open))
        count++;
    if (open)
        (void)closedir(open);
    return count - 2; /* . and .. */
}

/* Remove DIR and the files in it; it has no folders. */
static inline void tmp_dir_remove(struct tmp_dir *dir)
{
    DIR *open;
    struct dirent *entry;

    (void)chmod(dir->path, 0700);
    open = opendir(dir->path);
    while (open && (entry = readdir(open)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlink(tmp_path(dir, entry->d_name));
    if (open)
        (void)closedir(open);
    (void)rmdir(dir->path);
}

/* Write a file; 0 if that worked. */
static inline int tmp_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    int bad;

    if (!file)
        return 1;
    bad = fwrite(data, 1, size, file) != size;
    return (fclose(file) != 0) | bad;
}

#endif
