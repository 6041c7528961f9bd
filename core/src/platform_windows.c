/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_windows.c - the real system's table on Windows.
 *
 * Wide-character calls only; strings are UTF-8 on our side. "/" is taken
 * everywhere and becomes "\" before a library is opened, because the search
 * for its dependencies wants it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#ifdef _WIN32

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif

#include "os.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR
#define LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR 0x00000100
#endif
#ifndef LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
#define LOAD_LIBRARY_SEARCH_DEFAULT_DIRS 0x00001000
#endif

#if defined(_M_ARM64) || defined(__aarch64__)
#define HOST_TRIPLE "windows-aarch64"
#else
#define HOST_TRIPLE "windows-x86_64"
#endif

enum { PATH_UNITS = 32768 };

/* Seconds between 1601 and 1970, in Windows' units of 100 ns. */
static const uint64_t epoch_offset = UINT64_C(116444736000000000);

/* Return TEXT as UTF-16 from malloc(), "/" made "\" if IS_PATH. */
static wchar_t *to_wide(const char *text, bool is_path)
{
    int units =
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = units > 0 ? malloc((size_t)units * sizeof(*wide)) : NULL;
    wchar_t *p;

    if (!wide)
        return NULL;
    (void)MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, units);
    for (p = wide; is_path && *p; p++) {
        if (*p == L'/')
            *p = L'\\';
    }
    return wide;
}

/* Return WIDE as UTF-8 from malloc(), "\" made "/" if IS_PATH. */
static char *to_utf8(const wchar_t *wide, bool is_path)
{
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = bytes > 0 ? malloc((size_t)bytes) : NULL;
    char *p;

    if (!text)
        return NULL;
    (void)WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, bytes, NULL, NULL);
    for (p = text; is_path && *p; p++) {
        if (*p == '\\')
            *p = '/';
    }
    return text;
}

static int last_error(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
        return -ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
        return -EACCES;
    case ERROR_ALREADY_EXISTS:
    case ERROR_FILE_EXISTS:
        return -EEXIST;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
        return -ENOMEM;
    case ERROR_DISK_FULL:
        return -ENOSPC;
    case ERROR_DIRECTORY:
        return -ENOTDIR;
    default:
        return -EIO;
    }
}

static int windows_open_read(void *self, const char *path)
{
    wchar_t *wide = to_wide(path, true);
    int fd;

    (void)self;
    if (!wide)
        return -ENOMEM;
    fd = _wopen(wide, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    free(wide);
    return fd < 0 ? -errno : fd;
}

static int64_t windows_read(void *self, int fd, void *buffer, size_t size,
                            uint64_t offset)
{
    size_t done = 0;

    (void)self;
    if (_lseeki64(fd, (int64_t)offset, SEEK_SET) < 0)
        return -errno;
    while (done < size) {
        size_t piece = size - done < 1u << 30 ? size - done : 1u << 30;
        int n = _read(fd, (char *)buffer + done, (unsigned)piece);

        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

/* Owners and access lists are not looked at yet: files count as ours. */
static int handle_stat(HANDLE handle, struct hob_os_stat *out_stat)
{
    BY_HANDLE_FILE_INFORMATION info;

    memset(out_stat, 0, sizeof(*out_stat));
    if (GetFileType(handle) != FILE_TYPE_DISK) {
        out_stat->type = HOB_OS_OTHER;
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &info))
        return last_error();
    out_stat->device = info.dwVolumeSerialNumber;
    out_stat->inode = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    out_stat->size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    if (info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT)
        out_stat->type = HOB_OS_SYMLINK;
    else if (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
        out_stat->type = HOB_OS_DIRECTORY;
    else
        out_stat->type = HOB_OS_REGULAR;
    return 0;
}

static int windows_file_stat(void *self, int fd, struct hob_os_stat *out_stat)
{
    (void)self;
    return handle_stat((HANDLE)_get_osfhandle(fd), out_stat);
}

/* A handle that only asks; folders too. */
static HANDLE open_to_ask(const char *path, bool follow)
{
    wchar_t *wide = to_wide(path, true);
    DWORD flags = FILE_FLAG_BACKUP_SEMANTICS |
                  (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
    HANDLE handle;

    if (!wide)
        return INVALID_HANDLE_VALUE;
    handle = CreateFileW(wide, 0,
                         FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                         NULL, OPEN_EXISTING, flags, NULL);
    free(wide);
    return handle;
}

static int windows_path_stat(void *self, const char *path, bool follow,
                             struct hob_os_stat *out_stat)
{
    HANDLE handle = open_to_ask(path, follow);
    int code;

    (void)self;
    if (handle == INVALID_HANDLE_VALUE)
        return last_error();
    code = handle_stat(handle, out_stat);
    (void)CloseHandle(handle);
    return code;
}

static void windows_close(void *self, int fd)
{
    (void)self;
    (void)_close(fd);
}

struct dir {
    HANDLE find;
    WIN32_FIND_DATAW data;
    bool has_data;
    char *path; /* owned */
    char *name; /* owned: what was given last */
};

static void windows_close_dir(void *self, void *opaque)
{
    struct dir *dir = opaque;

    (void)self;
    if (dir->find != INVALID_HANDLE_VALUE)
        (void)FindClose(dir->find);
    free(dir->path);
    free(dir->name);
    free(dir);
}

static int windows_open_dir(void *self, const char *path, void **out_dir)
{
    struct dir *dir = calloc(1, sizeof(*dir));
    size_t size = strlen(path) + 3;
    char *pattern = malloc(size);
    wchar_t *wide = NULL;
    int code = 0;

    *out_dir = NULL;
    if (dir) {
        dir->find = INVALID_HANDLE_VALUE;
        dir->path = _strdup(path);
    }
    if (pattern) {
        memcpy(pattern, path, size - 3);
        memcpy(pattern + size - 3, "/*", 3);
        wide = to_wide(pattern, true);
    }
    if (dir && dir->path && wide) {
        dir->find = FindFirstFileW(wide, &dir->data);
        dir->has_data = dir->find != INVALID_HANDLE_VALUE;
        code = dir->has_data ? 0 : last_error();
    } else {
        code = -ENOMEM;
    }
    free(pattern);
    free(wide);
    if (code && dir)
        windows_close_dir(self, dir);
    else
        *out_dir = dir;
    return code;
}

static int windows_read_dir(void *self, void *opaque, const char **out_name)
{
    struct dir *dir = opaque;

    (void)self;
    *out_name = NULL;
    if (!dir->has_data)
        return 0;
    free(dir->name);
    dir->name = to_utf8(dir->data.cFileName, false);
    dir->has_data = FindNextFileW(dir->find, &dir->data) != 0;
    *out_name = dir->name;
    return dir->name ? 0 : -ENOMEM;
}

static int windows_dir_stat(void *self, void *opaque,
                            struct hob_os_stat *out_stat)
{
    const struct dir *dir = opaque;

    return windows_path_stat(self, dir->path, true, out_stat);
}

static int windows_real_path(void *self, const char *path, char **out_path)
{
    HANDLE handle = open_to_ask(path, true);
    wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
    DWORD length = 0;
    int code = 0;

    (void)self;
    *out_path = NULL;
    if (handle == INVALID_HANDLE_VALUE)
        code = last_error();
    else if (!wide)
        code = -ENOMEM;
    else
        length = GetFinalPathNameByHandleW(handle, wide, PATH_UNITS, 0);
    if (!code && (!length || length >= PATH_UNITS))
        code = -EIO;
    if (!code) {
        /* "\\?\C:\x" is C:\x for everyone else. */
        *out_path =
            to_utf8(wide + (wcsncmp(wide, L"\\\\?\\", 4) ? 0 : 4), true);
        code = *out_path ? 0 : -ENOMEM;
    }
    if (handle != INVALID_HANDLE_VALUE)
        (void)CloseHandle(handle);
    free(wide);
    return code;
}

static int windows_create(void *self, const char *path, enum hob_os_create how,
                          uint32_t mode)
{
    wchar_t *wide = to_wide(path, true);
    int flags = _O_WRONLY | _O_CREAT | _O_BINARY | _O_NOINHERIT;
    int fd;

    (void)self;
    (void)mode;
    if (!wide)
        return -ENOMEM;
    flags |= how == HOB_OS_CREATE_NEW ? _O_EXCL : _O_APPEND;
    fd = _wopen(wide, flags, _S_IREAD | _S_IWRITE);
    free(wide);
    return fd < 0 ? -errno : fd;
}

static int64_t windows_write(void *self, int fd, const void *buffer,
                             size_t size)
{
    size_t done = 0;

    (void)self;
    while (done < size) {
        size_t piece = size - done < 1u << 30 ? size - done : 1u << 30;
        int n = _write(fd, (const char *)buffer + done, (unsigned)piece);

        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return (int64_t)done;
}

static int windows_sync(void *self, int fd)
{
    (void)self;
    return _commit(fd) ? -errno : 0;
}

static int windows_lock(void *self, int fd)
{
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED whole;

    (void)self;
    memset(&whole, 0, sizeof(whole));
    return LockFileEx(handle, LOCKFILE_EXCLUSIVE_LOCK, 0, MAXDWORD, MAXDWORD,
                      &whole)
               ? 0
               : -EACCES;
}

static int windows_rename(void *self, const char *from, const char *to)
{
    wchar_t *wide_from = to_wide(from, true), *wide_to = to_wide(to, true);
    int code = -ENOMEM;

    (void)self;
    if (wide_from && wide_to)
        code = MoveFileExW(wide_from, wide_to,
                           MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)
                   ? 0
                   : last_error();
    free(wide_from);
    free(wide_to);
    return code;
}

static int windows_remove(void *self, const char *path)
{
    wchar_t *wide = to_wide(path, true);
    int code = -ENOMEM;

    (void)self;
    if (wide)
        code = DeleteFileW(wide) || RemoveDirectoryW(wide) ? 0 : last_error();
    free(wide);
    return code;
}

static int windows_make_dir(void *self, const char *path, uint32_t mode)
{
    wchar_t *wide = to_wide(path, true);
    int code = -ENOMEM;

    (void)self;
    (void)mode;
    if (wide)
        code = CreateDirectoryW(wide, NULL) ? 0 : last_error();
    free(wide);
    return code;
}

static char *windows_get_env(void *self, const char *name)
{
    wchar_t *wide = to_wide(name, false);
    wchar_t *value = malloc(PATH_UNITS * sizeof(*value));
    DWORD length = 0;
    char *text = NULL;

    (void)self;
    if (wide && value)
        length = GetEnvironmentVariableW(wide, value, PATH_UNITS);
    if (length > 0 && length < PATH_UNITS)
        text = to_utf8(value, false);
    free(wide);
    free(value);
    return text;
}

static char *windows_list_env(void *self, uint32_t index)
{
    wchar_t *block = GetEnvironmentStringsW();
    const wchar_t *p = block;
    char *text = NULL;

    (void)self;
    while (p && *p && index--)
        p += wcslen(p) + 1;
    if (p && *p)
        text = to_utf8(p, false);
    if (block)
        (void)FreeEnvironmentStringsW(block);
    return text;
}

static char *describe_error(DWORD error)
{
    wchar_t text[512] = L"";

    (void)FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM |
                             FORMAT_MESSAGE_IGNORE_INSERTS |
                             FORMAT_MESSAGE_MAX_WIDTH_MASK,
                         NULL, error, 0, text, 512, NULL);
    return to_utf8(text, false);
}

/* LOAD-1: the library's own folder and the system's, nothing else. */
static void *windows_dl_open(void *self, const char *path, char **out_message)
{
    wchar_t *wide = to_wide(path, true);
    bool is_absolute = strchr(path, '/') || strchr(path, '\\');
    DWORD flags = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS |
                  (is_absolute ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0);
    HMODULE module = wide ? LoadLibraryExW(wide, NULL, flags) : NULL;
    DWORD error = GetLastError();

    (void)self;
    free(wide);
    if (!module && out_message)
        *out_message = describe_error(error);
    return module;
}

static void *windows_dl_symbol(void *self, void *handle, const char *name)
{
    FARPROC function = GetProcAddress(handle, name);
    void *symbol = NULL;

    (void)self;
    memcpy(&symbol, &function, sizeof(symbol));
    return symbol;
}

static void windows_dl_close(void *self, void *handle)
{
    (void)self;
    (void)FreeLibrary(handle);
}

static int windows_dl_path(void *self, void *handle, char **out_path)
{
    wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
    DWORD length = wide ? GetModuleFileNameW(handle, wide, PATH_UNITS) : 0;
    char *path = NULL;
    int code = -ENOMEM;

    *out_path = NULL;
    if (length > 0 && length < PATH_UNITS)
        path = to_utf8(wide, true);
    if (path)
        code = windows_real_path(self, path, out_path);
    free(path);
    free(wide);
    return code;
}

static int windows_self_path(void *self, char **out_path)
{
    HMODULE module = NULL;

    *out_path = NULL;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCWSTR)(uintptr_t)hob__os, &module))
        return last_error();
    return windows_dl_path(self, module, out_path);
}

static int windows_program_path(void *self, char **out_path)
{
    return windows_dl_path(self, NULL, out_path);
}

static bool windows_has_symbol(void *self, const char *name)
{
    (void)self;
    return GetProcAddress(GetModuleHandleW(NULL), name) != NULL;
}

/* SEC-1: integrity high or above. */
static bool windows_is_elevated(void *self)
{
    HANDLE token = NULL;
    TOKEN_ELEVATION elevation = {0};
    DWORD size = 0;
    bool is_elevated = false;

    (void)self;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
        return false;
    if (GetTokenInformation(token, TokenElevation, &elevation,
                            sizeof(elevation), &size))
        is_elevated = elevation.TokenIsElevated != 0;
    (void)CloseHandle(token);
    return is_elevated;
}

/* There are no numbers for users; files count as owned by this one. */
static uint32_t windows_user(void *self)
{
    (void)self;
    return 1;
}

static int64_t windows_process(void *self)
{
    (void)self;
    return (int64_t)GetCurrentProcessId();
}

static uint64_t windows_thread(void *self)
{
    (void)self;
    return GetCurrentThreadId();
}

static uint64_t windows_now_ns(void *self)
{
    FILETIME time;

    (void)self;
    GetSystemTimeAsFileTime(&time);
    return (((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) -
            epoch_offset) *
           100;
}

/* There is no fork here, and a probe needs one. */
static int windows_run_child(void *self, hob_os_child_fn *run, void *context,
                             uint32_t timeout_ms, enum hob_os_end *out_end,
                             int *out_code, char **out_text)
{
    (void)self;
    (void)run;
    (void)context;
    (void)timeout_ms;
    (void)out_end;
    (void)out_code;
    *out_text = NULL;
    return -ENOSYS;
}

static int windows_has_cpu(void *self, const char *feature)
{
    static const struct {
        const char *name;
        DWORD number; /* PF_..., of newer SDKs than some have */
    } features[] = {{"sse2", 10}, {"sse4.1", 37},  {"sse4.2", 38}, {"avx", 39},
                    {"avx2", 40}, {"avx512f", 41}, {"neon", 19}};
    size_t i;

    (void)self;
    for (i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        if (!strcmp(features[i].name, feature))
            return IsProcessorFeaturePresent(features[i].number) != 0;
    }
    return -1;
}

const struct hob_os_ops *hob__os(void)
{
    static const struct hob_os_ops ops = {
        .open_read = windows_open_read,
        .read = windows_read,
        .file_stat = windows_file_stat,
        .path_stat = windows_path_stat,
        .close = windows_close,
        .open_dir = windows_open_dir,
        .read_dir = windows_read_dir,
        .dir_stat = windows_dir_stat,
        .close_dir = windows_close_dir,
        .real_path = windows_real_path,
        .create = windows_create,
        .write = windows_write,
        .sync = windows_sync,
        .lock = windows_lock,
        .rename = windows_rename,
        .remove = windows_remove,
        .make_dir = windows_make_dir,
        .get_env = windows_get_env,
        .list_env = windows_list_env,
        .dl_open = windows_dl_open,
        .dl_symbol = windows_dl_symbol,
        .dl_close = windows_dl_close,
        .dl_path = windows_dl_path,
        .self_path = windows_self_path,
        .program_path = windows_program_path,
        .has_symbol = windows_has_symbol,
        .is_elevated = windows_is_elevated,
        .user = windows_user,
        .process = windows_process,
        .thread = windows_thread,
        .now_ns = windows_now_ns,
        .run_child = windows_run_child,
        .has_cpu = windows_has_cpu,
        .triple = HOST_TRIPLE,
        .path_list_separator = ';',
    };

    return &ops;
}

#else
typedef int hob__platform_windows_unused;
#endif
