/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "package.h"

#include "json.h"
#include "paths.h"
#include "sha256.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header of POSIX ustar (IEEE 1003.1, "pax interchange format"). */
enum {
    AT_NAME = 0,
    AT_MODE = 100,
    AT_OWNER = 108,
    AT_GROUP = 116,
    AT_SIZE = 124,
    AT_TIME = 136,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_MAGIC = 257,
    AT_DEVICE = 329, /* two numbers, of no use here */
    NAME_SIZE = 100,
    SIZE_DIGITS = 11,
    INDEX_MAX = 1 << 20,
    CHUNK = 1 << 16
};

/* What is being read. */
struct reading {
    struct hob__package *package;
    uint64_t size; /* of the whole file */
    uint64_t at;   /* what was read so far */
    hob_error *error;
};

const char *hob__package_path_fault(const char *path)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._+-/";
    const char *part = path;

    if (!*path)
        return "is empty";
    if (*path == '/')
        return "is absolute";
    if (strlen(path) > HOB__PACKAGE_PATH_MAX)
        return "is longer than 99 bytes";
    if (path[strspn(path, known)])
        return "has a character that is none of A-Z a-z 0-9 . _ + - /";
    for (;;) {
        size_t length = strcspn(part, "/");

        if (length == 2 && !strncmp(part, "..", 2))
            return "leads out of its folder by \"..\"";
        if (!length || (length == 1 && *part == '.'))
            return "has an empty part or \".\" in it";
        if (!part[length])
            return NULL;
        part += length + 1;
    }
}

void hob__package_header(const char *path, uint64_t size,
                         unsigned char out_header[HOB__PACKAGE_BLOCK])
{
    unsigned char *header = out_header;
    unsigned sum = 0;
    char number[16];

    memset(header, 0, HOB__PACKAGE_BLOCK);
    memcpy(header + AT_NAME, path, strlen(path));
    memcpy(header + AT_MODE, "0000644", 7);
    memcpy(header + AT_OWNER, "0000000", 7);
    memcpy(header + AT_GROUP, "0000000", 7);
    (void)snprintf(number, sizeof(number), "%011" PRIo64, size);
    memcpy(header + AT_SIZE, number, SIZE_DIGITS);
    memcpy(header + AT_TIME, "00000000000", SIZE_DIGITS);
    header[AT_TYPE] = '0';
    memcpy(header + AT_MAGIC,
           "ustar\0"
           "00",
           8);
    memcpy(header + AT_DEVICE,
           "0000000\0"
           "0000000",
           15);
    /* The sum is taken with blanks in its own place. */
    memset(header + AT_SUM, ' ', 8);
    for (unsigned i = 0; i < HOB__PACKAGE_BLOCK; i++)
        sum += header[i];
    (void)snprintf(number, sizeof(number), "%06o", sum);
    memcpy(header + AT_SUM, number, 7); /* with its NUL; the blank stays */
}

uint64_t hob__package_padding(uint64_t size)
{
    return (HOB__PACKAGE_BLOCK - size % HOB__PACKAGE_BLOCK) %
           HOB__PACKAGE_BLOCK;
}

char *hob__package_index(const struct hob__package *package)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_puts(&text, "{\n  \"hob_package\": 1,\n  \"id\": ");
    hob__text_json(&text, package->id);
    hob__text_puts(&text, ",\n  \"version\": ");
    hob__text_json(&text, package->version);
    hob__text_puts(&text, ",\n  \"platform\": ");
    hob__text_json(&text, package->platform);
    hob__text_puts(&text, ",\n  \"files\": [");
    for (uint32_t i = 0; i < package->count; i++) {
        const struct hob__package_file *file = &package->files[i];

        hob__text_puts(&text, i ? ",\n    {\"path\": " : "\n    {\"path\": ");
        hob__text_json(&text, file->path);
        hob__text_printf(
            &text, ", \"size\": %" PRIu64 ",\n     \"sha256\": ", file->size);
        hob__text_json(&text, file->sha256);
        hob__text_puts(&text, "}");
    }
    hob__text_puts(&text, "\n  ]\n}\n");
    return hob__text_take(&text);
}

/* ---- reading ---- */

static hob_status fail(const struct reading *reading, const char *format, ...)
    HOB_PRINTF(2, 3);

static hob_status fail(const struct reading *reading, const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT;
    va_list args;
    hob_status st;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    st = hob_error_set(reading->error, HOB_ERR_FORMAT, "%s: no package: %s",
                       reading->package->path, text.data ? text.data : "");
    hob__text_release(&text);
    return st;
}

static hob_status no_memory(const struct reading *reading)
{
    return hob_error_set(reading->error, HOB_ERR_MEMORY, "%s: out of memory",
                         reading->package->path);
}

/* Read the next SIZE bytes. WHAT is for the message if they are not there. */
static hob_status take(struct reading *reading, void *buffer, size_t size,
                       const char *what)
{
    const struct hob_os_ops *os = reading->package->os;
    int64_t n;

    if (size > reading->size - reading->at)
        return fail(reading, "it ends inside of %s", what);
    n = os->read(os->self, reading->package->fd, buffer, size, reading->at);
    if (n < 0)
        return hob__path_fail(reading->package->path, (int)n, reading->error);
    if ((uint64_t)n != size)
        return fail(reading, "it became shorter while it was read");
    reading->at += size;
    return HOB_OK;
}

static hob_status take_zeros(struct reading *reading, uint64_t size,
                             const char *what)
{
    unsigned char block[HOB__PACKAGE_END];
    hob_status st = take(reading, block, (size_t)size, what);

    for (uint64_t i = 0; i < size && !st; i++) {
        if (block[i])
            st = fail(reading, "something is hidden behind %s", what);
    }
    return st;
}

/* GOT is not the header that PATH should have: say in which way. */
static hob_status bad_header(const struct reading *reading, const char *path,
                             const unsigned char *got,
                             const unsigned char *wanted)
{
    char name[NAME_SIZE + 1];

    memcpy(name, got + AT_NAME, NAME_SIZE);
    name[NAME_SIZE] = '\0';
    for (char *p = name; *p; p++)
        *p = *p < ' ' || *p > '~' ? '?' : *p;
    if (strcmp(name, path) != 0)
        return fail(reading, "where %s should be stands \"%s\"", path, name);
    if (got[AT_TYPE] != '0')
        return fail(reading, "%s is no plain file but a link or the like",
                    path);
    if (memcmp(got + AT_SIZE, wanted + AT_SIZE, SIZE_DIGITS) != 0)
        return fail(reading, "%s has not the size that the index says", path);
    return fail(reading, "the header of %s is not as hob-sdk pack writes it",
                path);
}

static hob_status take_header(struct reading *reading, const char *path,
                              uint64_t size)
{
    unsigned char got[HOB__PACKAGE_BLOCK], wanted[HOB__PACKAGE_BLOCK];
    hob_status st = take(reading, got, sizeof(got), path);

    if (st)
        return st;
    hob__package_header(path, size, wanted);
    return memcmp(got, wanted, sizeof(got))
               ? bad_header(reading, path, got, wanted)
               : HOB_OK;
}

/* The size that the first header gives; take_header() compares the rest. */
static hob_status index_size(struct reading *reading, uint64_t *out_size)
{
    unsigned char header[HOB__PACKAGE_BLOCK];
    uint64_t size = 0;
    hob_status st = take(reading, header, sizeof(header), HOB__PACKAGE_INDEX);

    reading->at = 0;
    if (st)
        return st;
    if (memcmp(header, HOB__PACKAGE_INDEX, sizeof(HOB__PACKAGE_INDEX)) != 0)
        return fail(reading, "it does not begin with " HOB__PACKAGE_INDEX);
    for (int i = 0; i < SIZE_DIGITS; i++) {
        unsigned char digit = header[AT_SIZE + i];

        if (digit < '0' || digit > '7')
            return fail(reading, "the size of " HOB__PACKAGE_INDEX
                                 " is no octal number");
        size = size * 8 + (digit - '0');
    }
    if (size > INDEX_MAX)
        return fail(reading, HOB__PACKAGE_INDEX " has more than 1 MiB");
    *out_size = size;
    return HOB_OK;
}

/* ---- the index ---- */

static hob_status read_text(struct reading *reading,
                            const struct hob__json_doc *doc,
                            const struct hob__json_value *object,
                            const char *key, const char **out_text)
{
    const struct hob__json_value *value = hob__json_member(doc, object, key);
    const char *text = NULL;
    hob_status st;

    if (!value)
        return hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                              "\"%s\" is missing", key);
    st = hob__json_string(doc, value, &text, reading->error);
    if (st)
        return st;
    *out_text = hob__arena_strdup(&reading->package->arena, text);
    return *out_text ? HOB_OK : no_memory(reading);
}

static hob_status check_path(struct reading *reading,
                             const struct hob__json_doc *doc,
                             const struct hob__json_value *object,
                             const struct hob__package_file *file)
{
    const struct hob__package *package = reading->package;
    const char *fault = hob__package_path_fault(file->path);
    bool is_first = file == package->files;

    if (fault)
        return hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                              "the path \"%s\" %s", file->path, fault);
    if (is_first != !strcmp(file->path, HOB__PACKAGE_MANIFEST))
        return hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                              "the first file is " HOB__PACKAGE_MANIFEST
                              ", and no other is");
    if (!strcmp(file->path, HOB__PACKAGE_INDEX) ||
        (file > package->files + 1 && strcmp(file[-1].path, file->path) >= 0))
        return hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                              "\"%s\" is there twice, or out of order",
                              file->path);
    return HOB_OK;
}

static hob_status read_file(struct reading *reading,
                            const struct hob__json_doc *doc,
                            const struct hob__json_value *object,
                            struct hob__package_file *file)
{
    const struct hob__json_value *size = hob__json_member(doc, object, "size");
    const char *hash = NULL;
    hob_status st =
        hob__json_expect(doc, object, HOB__JSON_OBJECT, reading->error);

    if (!st)
        st = read_text(reading, doc, object, "path", &file->path);
    if (!st)
        st = read_text(reading, doc, object, "sha256", &hash);
    if (!st && (!size || object->count != 3))
        st = hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                            "path, size and sha256 expected, nothing else");
    if (!st)
        st = hob__json_uint(doc, size, HOB__PACKAGE_SIZE_MAX, &file->size,
                            reading->error);
    if (!st && (strlen(hash) != 64 || hash[strspn(hash, "0123456789abcdef")]))
        st = hob__json_fail(doc, object, reading->error, HOB_ERR_FORMAT,
                            "sha256 is 64 of 0-9 a-f");
    if (st)
        return st;
    memcpy(file->sha256, hash, sizeof(file->sha256));
    return check_path(reading, doc, object, file);
}

static hob_status read_files(struct reading *reading,
                             const struct hob__json_doc *doc,
                             const struct hob__json_value *root)
{
    struct hob__package *package = reading->package;
    const struct hob__json_value *list = hob__json_member(doc, root, "files");
    const struct hob__json_value *item;
    hob_status st;

    if (!list || list->type != HOB__JSON_ARRAY || !list->count ||
        list->count > HOB__PACKAGE_FILES_MAX || root->count != 5)
        return hob__json_fail(doc, root, reading->error, HOB_ERR_FORMAT,
                              "hob_package, id, version, platform and 1 to %d "
                              "files expected, nothing else",
                              HOB__PACKAGE_FILES_MAX);
    package->files =
        hob__arena_array(&package->arena, list->count, sizeof(*package->files));
    st = package->files ? HOB_OK : no_memory(reading);
    for (item = hob__json_first(doc, list); item && !st;
         item = hob__json_next(doc, item))
        st = read_file(reading, doc, item, &package->files[package->count++]);
    return st;
}

static hob_status read_index(struct reading *reading,
                             const struct hob__json_doc *doc)
{
    struct hob__package *package = reading->package;
    const struct hob__json_value *root = hob__json_root(doc), *format;
    uint64_t version = 0;
    hob_status st =
        hob__json_expect(doc, root, HOB__JSON_OBJECT, reading->error);

    if (st)
        return st;
    format = hob__json_member(doc, root, "hob_package");
    if (!format)
        return hob__json_fail(doc, root, reading->error, HOB_ERR_FORMAT,
                              "\"hob_package\" is missing");
    st = hob__json_uint(doc, format, UINT32_MAX, &version, reading->error);
    if (!st && version != 1)
        st = hob__json_fail(doc, format, reading->error, HOB_ERR_FORMAT,
                            "a package of format %" PRIu64 ", this Hob reads 1",
                            version);
    if (!st)
        st = read_text(reading, doc, root, "id", &package->id);
    if (!st)
        st = read_text(reading, doc, root, "version", &package->version);
    if (!st)
        st = read_text(reading, doc, root, "platform", &package->platform);
    return st ? st : read_files(reading, doc, root);
}

static hob_status take_index(struct reading *reading)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__json_doc *doc = NULL;
    char *text = NULL, *name;
    uint64_t size = 0;
    hob_status st = index_size(reading, &size);

    if (!st)
        st = take_header(reading, HOB__PACKAGE_INDEX, size);
    if (st)
        return st;
    name = hob__arena_printf(&reading->package->arena, "%s/%s",
                             reading->package->path, HOB__PACKAGE_INDEX);
    text = malloc((size_t)size + 1);
    st = text && name ? take(reading, text, (size_t)size, HOB__PACKAGE_INDEX)
                      : no_memory(reading);
    if (!st)
        st =
            take_zeros(reading, hob__package_padding(size), HOB__PACKAGE_INDEX);
    if (!st)
        st = hob__json_parse(name, text, (size_t)size, &limits, &doc, NULL,
                             reading->error);
    if (!st)
        st = read_index(reading, doc);
    hob__json_free(doc);
    free(text);
    return st;
}

/* ---- the files ---- */

static hob_status take_file(struct reading *reading,
                            struct hob__package_file *file,
                            unsigned char *chunk)
{
    struct hob__sha256 sha;
    uint64_t left = file->size;
    char hex[65];
    hob_status st = take_header(reading, file->path, file->size);

    file->offset = reading->at;
    hob__sha256_init(&sha);
    while (left && !st) {
        size_t n = left < CHUNK ? (size_t)left : CHUNK;

        st = take(reading, chunk, n, file->path);
        if (!st)
            hob__sha256_update(&sha, chunk, n);
        left -= n;
    }
    if (!st)
        st = take_zeros(reading, hob__package_padding(file->size), file->path);
    if (st)
        return st;
    hob__sha256_hex(&sha, hex);
    if (strcmp(hex, file->sha256) != 0)
        return fail(reading, "%s is damaged: its SHA-256 is %s, not %s",
                    file->path, hex, file->sha256);
    return HOB_OK;
}

static hob_status take_all(struct reading *reading)
{
    struct hob__package *package = reading->package;
    unsigned char *chunk = malloc(CHUNK);
    hob_status st = chunk ? take_index(reading) : no_memory(reading);

    for (uint32_t i = 0; i < package->count && !st; i++)
        st = take_file(reading, &package->files[i], chunk);
    free(chunk);
    if (!st)
        st = take_zeros(reading, HOB__PACKAGE_END, "its last file");
    if (!st && reading->at != reading->size)
        st = fail(reading, "%" PRIu64 " bytes follow its end",
                  reading->size - reading->at);
    return st;
}

bool hob__package_is(const struct hob_os_ops *os, const char *path)
{
    char name[sizeof(HOB__PACKAGE_INDEX)];
    size_t length = strlen(path), suffix = strlen(HOB__PACKAGE_SUFFIX);
    bool is_one;
    int fd;

    if (length > suffix && !strcmp(path + length - suffix, HOB__PACKAGE_SUFFIX))
        return true;
    fd = os->open_read(os->self, path);
    if (fd < 0)
        return false;
    is_one = os->read(os->self, fd, name, sizeof(name), 0) == sizeof(name) &&
             !memcmp(name, HOB__PACKAGE_INDEX, sizeof(name));
    os->close(os->self, fd);
    return is_one;
}

hob_status hob__package_open(const struct hob_os_ops *os, const char *path,
                             struct hob__package **out_package,
                             hob_error *error)
{
    struct hob__package *package = calloc(1, sizeof(*package));
    struct reading reading = {package, 0, 0, error};
    struct hob_os_stat stat = {0};
    hob_status st = HOB_OK;
    int code;

    *out_package = NULL;
    if (!package)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    package->os = os;
    package->path = path;
    package->fd = os->open_read(os->self, path);
    code = package->fd < 0 ? package->fd
                           : os->file_stat(os->self, package->fd, &stat);
    if (code)
        st = hob__path_fail(reading.package->path, code, reading.error);
    else if (stat.type != HOB_OS_REGULAR)
        st = fail(&reading, "not a regular file");
    package->path = hob__arena_strdup(&package->arena, path);
    reading.size = stat.size;
    if (!st)
        st = package->path ? take_all(&reading)
                           : hob_error_set(error, HOB_ERR_MEMORY,
                                           "%s: out of memory", path);
    if (st) {
        hob__package_close(package);
        return st;
    }
    *out_package = package;
    return HOB_OK;
}

void hob__package_close(struct hob__package *package)
{
    if (!package)
        return;
    if (package->fd >= 0)
        package->os->close(package->os->self, package->fd);
    hob__arena_release(&package->arena);
    free(package);
}

const struct hob__package_file *
hob__package_find(const struct hob__package *package, const char *path)
{
    for (uint32_t i = 0; i < package->count; i++) {
        if (!strcmp(package->files[i].path, path))
            return &package->files[i];
    }
    return NULL;
}

/* ---- one file as a file ---- */

static int64_t view_read(void *self, int fd, void *buffer, size_t size,
                         uint64_t offset)
{
    const struct hob__package_view *view = self;

    if (offset >= view->size)
        return 0;
    if (size > view->size - offset)
        size = (size_t)(view->size - offset);
    return view->outer->read(view->outer->self, fd, buffer, size,
                             view->offset + offset);
}

static bool view_has_symbol(void *self, const char *name)
{
    const struct hob__package_view *view = self;

    return view->outer->has_symbol(view->outer->self, name);
}

void hob__package_view(const struct hob__package *package,
                       const struct hob__package_file *file,
                       struct hob__package_view *out_view)
{
    memset(out_view, 0, sizeof(*out_view));
    out_view->outer = package->os;
    out_view->offset = file->offset;
    out_view->size = file->size;
    out_view->os.self = out_view;
    out_view->os.read = view_read;
    out_view->os.has_symbol = view_has_symbol;
    out_view->os.triple = package->os->triple;
}
