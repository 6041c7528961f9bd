/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os.h - everything that the loader asks of the operating system.
 *
 * Tests fake it: a table with its own SELF. Functions that can fail return a
 * negative errno value. Strings that a function gives away are from malloc()
 * and end with free(). All functions may be called from any thread.
 */
#ifndef HOB__OS_H
#define HOB__OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hob_os_type {
    HOB_OS_REGULAR,
    HOB_OS_DIRECTORY,
    HOB_OS_SYMLINK,
    HOB_OS_OTHER /* FIFO, device, socket */
};

struct hob_os_stat {
    uint64_t device; /* with INODE the identity of the file */
    uint64_t inode;
    uint64_t size;
    uint64_t mtime_ns;
    uint32_t owner;          /* user id; 0 is root */
    bool writable_by_others; /* by group or world, or an ACL that says so */
    bool sticky;
    enum hob_os_type type;
};

enum hob_os_create {
    HOB_OS_CREATE_NEW,   /* fails with -EEXIST */
    HOB_OS_CREATE_APPEND /* for log files */
};

/* How a child process ended. */
enum hob_os_end {
    HOB_OS_EXITED,    /* OUT_CODE is what RUN returned, 0..255 */
    HOB_OS_SIGNALLED, /* OUT_CODE is the signal */
    HOB_OS_TIMED_OUT  /* and was killed */
};

/* Runs in the child; what it writes to FD reaches the parent. */
typedef int hob_os_child_fn(void *context, int fd);

struct hob_os_ops {
    void *self;

    /* Files. open_read never waits: O_NONBLOCK|O_NOCTTY|O_CLOEXEC. */
    int (*open_read)(void *self, const char *path);
    /* Read at OFFSET; fewer bytes than SIZE only at the end of the file. */
    int64_t (*read)(void *self, int fd, void *buffer, size_t size,
                    uint64_t offset);
    int (*file_stat)(void *self, int fd, struct hob_os_stat *out_stat);
    int (*path_stat)(void *self, const char *path, bool follow,
                     struct hob_os_stat *out_stat);
    void (*close)(void *self, int fd);
    int (*open_dir)(void *self, const char *path, void **out_dir);
    /* *OUT_NAME is valid until the next call; NULL at the end. */
    int (*read_dir)(void *self, void *dir, const char **out_name);
    int (*dir_stat)(void *self, void *dir, struct hob_os_stat *out_stat);
    void (*close_dir)(void *self, void *dir);
    int (*real_path)(void *self, const char *path, char **out_path);

    /* Writing: installing and log files. create never waits. */
    int (*create)(void *self, const char *path, enum hob_os_create how,
                  uint32_t mode);
    int64_t (*write)(void *self, int fd, const void *buffer, size_t size);
    int (*sync)(void *self, int fd);
    /* Wait until this process alone has the file; closing gives it back. */
    int (*lock)(void *self, int fd);
    int (*rename)(void *self, const char *from, const char *to);
    int (*remove)(void *self, const char *path); /* a file or empty folder */
    int (*make_dir)(void *self, const char *path, uint32_t mode);

    /* Environment. The caller decides what an elevated process may read.
     * Copies, given away; NULL if unset or without memory. */
    char *(*get_env)(void *self, const char *name);
    /* The INDEX-th "NAME=value"; NULL past the last. Given away. */
    char *(*list_env)(void *self, uint32_t index);

    /* Libraries. On failure *OUT_MESSAGE, if not NULL, says why. */
    void *(*dl_open)(void *self, const char *path, char **out_message);
    void *(*dl_symbol)(void *self, void *handle, const char *name);
    void (*dl_close)(void *self, void *handle);
    /* The file from which HANDLE was mapped. */
    int (*dl_path)(void *self, void *handle, char **out_path);
    /* The file in which the core's own code lies. */
    int (*self_path)(void *self, char **out_path);
    /* The program's own file. */
    int (*program_path)(void *self, char **out_path);
    /* Whether this process has global symbol NAME, as in "__asan_init". */
    bool (*has_symbol)(void *self, const char *name);

    /* The process. */
    bool (*is_elevated)(void *self);
    uint32_t (*user)(void *self); /* the effective one */
    int64_t (*process)(void *self);
    uint64_t (*thread)(void *self); /* differs among live threads */
    uint64_t (*now_ns)(void *self); /* since the epoch */
    /*
     * Run RUN in a child process for at most TIMEOUT_MS; *OUT_TEXT is what it
     * wrote, a string from malloc(). 0 or a negative errno value.
     */
    int (*run_child)(void *self, hob_os_child_fn *run, void *context,
                     uint32_t timeout_ms, enum hob_os_end *out_end,
                     int *out_code, char **out_text);

    /* 1 yes, 0 no, -1 unknown name. Names as in "avx2", "avx512f", "neon". */
    int (*has_cpu)(void *self, const char *feature);

    const char *triple;       /* "linux-x86_64-gnu" */
    char path_list_separator; /* ':' or ';' */
};

/* Return the real system's table. */
const struct hob_os_ops *hob__os(void);

#endif
