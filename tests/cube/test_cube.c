/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cube.c - the portable half of the GPU backends without a GPU: cache,
 * kernels by variant, parameters, spaces, scalars, SPIR-V.
 */
#include "hob_check.h"
#include "fake_host.h"
#include "tmp_dir.h"

#include <cube/cache.h>
#include <cube/cube.h>
#include <cube/names.h>
#include <cube/spirv.h>
#include <hob/ext/message.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names of ops ---- */

START_TEST(test_cube_names)
{
    struct cube_names names;
    char name[CUBE_NAMES + 9], last[8];

    cube_names_clear(&names);
    ck_assert_str_eq(names.text, "");
    cube_names_add(&names, "add");
    ck_assert_str_eq(names.text, "add");
    cube_names_add(&names, "mul");
    ck_assert_str_eq(names.text, "add, mul");
    /* However many they are, the newest are there. */
    for (int i = 0; i < 200; i++) {
        snprintf(last, sizeof(last), "op%d", i);
        cube_names_add(&names, last);
        ck_assert_uint_eq(names.used, strlen(names.text));
        ck_assert_uint_lt(names.used, CUBE_NAMES);
        ck_assert_str_eq(names.text + names.used - strlen(last), last);
    }
    ck_assert_ptr_nonnull(strstr(names.text, "op180, op181, "));
    /* A name that is longer than the room is cut. */
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        cube_names_add(&names, name);
        ck_assert_uint_eq(names.used, strlen(names.text));
        ck_assert_ptr_nonnull(strstr(names.text, "xxxxxxxx"));
    }
    cube_names_clear(&names);
    ck_assert_str_eq(names.text, "");
}
END_TEST

/* ---- SHA-256 ---- */

/* The examples of FIPS 180-4's validation, and a length of each kind. */
static const struct {
    const char *text;
    uint32_t times;
    const char *digest;
} digests[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1,
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 1000000,
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

START_TEST(test_cube_sha256)
{
    uint8_t digest[CUBE_SHA256_BYTES];
    char hex[2 * CUBE_SHA256_BYTES + 1];
    struct cube_sha256 sha;

    cube_sha256_init(&sha);
    for (uint32_t i = 0; i < digests[_i].times; i++)
        cube_sha256_add(&sha, digests[_i].text, strlen(digests[_i].text));
    cube_sha256_end(&sha, digest);
    for (int i = 0; i < CUBE_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(hex, digests[_i].digest);
}
END_TEST

/* ---- the cache on disk ---- */

enum { PATH_BYTES = 512 };

static struct tmp_dir folder;

static void cache_setup(void)
{
    tmp_dir_make(&folder);
    setenv("XDG_CACHE_HOME", folder.path, 1);
}

/* Remove NAME in the folder; a link is only unlinked. */
static void remove_inner(const char *name)
{
    struct tmp_dir inner;

    snprintf(inner.path, sizeof(inner.path), "%.200s/%.20s", folder.path, name);
    if (unlink(inner.path) < 0)
        tmp_dir_remove(&inner);
}

static void cache_teardown(void)
{
    remove_inner("hob/test");
    remove_inner("hob");
    tmp_dir_remove(&folder);
}

static struct cube_cache_key key_of(const char *identity, const char *text)
{
    struct cube_cache_key key;

    cube_cache_key_init(&key, identity, "kernel", text, strlen(text));
    return key;
}

/* The path of KEY's file. */
static void path_of(const struct cube_cache_key *key, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/hob/test/", folder.path);

    for (int i = 0; i < CUBE_SHA256_BYTES; i++)
        n += snprintf(out + n, size - (size_t)n, "%02x", key->bytes[i]);
}

static void check_read(struct cube_cache *cache,
                       const struct cube_cache_key *key, const char *wanted)
{
    uint64_t bytes = 0;
    char *data = cube_cache_read(cache, key, &bytes);

    if (!wanted) {
        ck_assert_ptr_null(data);
        return;
    }
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(bytes, strlen(wanted));
    ck_assert_mem_eq(data, wanted, bytes);
    free(data);
}

START_TEST(test_cube_cache_keeps)
{
    struct cube_cache *cache = cube_cache_open("test", NULL, 0);
    const struct cube_cache_key key = key_of("compiler 1", "text");
    const struct cube_cache_key other = key_of("compiler 2", "text");
    struct stat info;
    char path[PATH_BYTES];

    ck_assert_ptr_nonnull(cache);
    check_read(cache, &key, NULL);
    cube_cache_write(cache, &key, "binary", 6);
    check_read(cache, &key, "binary");
    check_read(cache, &other, NULL);
    cube_cache_write(cache, &key, "newer", 5);
    check_read(cache, &key, "newer");
    cube_cache_close(cache);
    snprintf(path, sizeof(path), "%s/hob/test", folder.path);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
    /* Another process finds it. */
    cache = cube_cache_open("test", NULL, 0);
    check_read(cache, &key, "newer");
    cube_cache_close(cache);
    cube_cache_close(NULL);
}
END_TEST

/* Nothing that differs by a bit is the same. */
START_TEST(test_cube_cache_keys_differ)
{
    const struct cube_cache_key keys[] = {key_of("a", "bc"), key_of("ab", "c"),
                                          key_of("a", "bd"), key_of("b", "bc")};
    struct cube_cache_key named;

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            ck_assert_mem_ne(&keys[i], &keys[k], sizeof(keys[i]));
    cube_cache_key_init(&named, "a", "kerne", "bc", 2);
    ck_assert_mem_ne(&named, &keys[0], sizeof(named));
}
END_TEST

/* Change byte AT of a file, from the end if negative; or cut it there. */
static void spoil(const char *path, long at, int is_cut)
{
    FILE *file = fopen(path, "r+b");
    int c;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    if (is_cut) {
        ck_assert_int_eq(ftruncate(fileno(file), ftell(file)), 0);
    } else {
        c = fgetc(file);
        ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
        fputc(c ^ 0x10, file);
    }
    fclose(file);
}

static const struct {
    long at;
    int is_cut;
} spoils[] = {
    {0, 0},  {8, 0},  {12, 0}, {16, 0}, {24, 0}, {40, 0}, {60, 0}, {80, 0},
    {-1, 0}, {-6, 0}, {0, 1},  {10, 1}, {88, 1}, {-1, 1}, {-5, 1},
};

START_TEST(test_cube_cache_refuses_what_is_spoilt)
{
    struct cube_cache *cache = cube_cache_open("test", NULL, 0);
    const struct cube_cache_key key = key_of("compiler", "text");
    char path[PATH_BYTES];

    cube_cache_write(cache, &key, "binary", 6);
    path_of(&key, path, sizeof(path));
    spoil(path, spoils[_i].at, spoils[_i].is_cut);
    check_read(cache, &key, NULL);
    cube_cache_write(cache, &key, "binary", 6);
    check_read(cache, &key, "binary");
    cube_cache_close(cache);
}
END_TEST

/* A file under another key's name is not that key's. */
START_TEST(test_cube_cache_refuses_a_stranger)
{
    struct cube_cache *cache = cube_cache_open("test", NULL, 0);
    const struct cube_cache_key key = key_of("compiler", "text");
    const struct cube_cache_key other = key_of("compiler", "other");
    char from[PATH_BYTES], to[PATH_BYTES];

    cube_cache_write(cache, &key, "binary", 6);
    path_of(&key, from, sizeof(from));
    path_of(&other, to, sizeof(to));
    ck_assert_int_eq(rename(from, to), 0);
    check_read(cache, &other, NULL);
    cube_cache_close(cache);
}
END_TEST

START_TEST(test_cube_cache_works_without)
{
    const struct cube_cache_key key = key_of("compiler", "text");
    char path[PATH_BYTES];
    FILE *file;

    check_read(NULL, &key, NULL);
    cube_cache_write(NULL, &key, "binary", 6);
    /* A file is in the place of the folder. */
    snprintf(path, sizeof(path), "%s/hob", folder.path);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_ptr_null(cube_cache_open("test", NULL, 0));
    /* Others may write to it. */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(chmod(path, 0777), 0);
    ck_assert_ptr_null(cube_cache_open("test", NULL, 0));
    ck_assert_int_eq(chmod(path, 0700), 0);
    /* Somebody's link. */
    snprintf(path, sizeof(path), "%s/hob/test", folder.path);
    ck_assert_int_eq(symlink("/tmp", path), 0);
    ck_assert_ptr_null(cube_cache_open("test", NULL, 0));
    /* No variable leads anywhere. */
    setenv("XDG_CACHE_HOME", "relative", 1);
    unsetenv("HOME");
    ck_assert_ptr_null(cube_cache_open("test", NULL, 0));
}
END_TEST

/* Write a binary of 1000 bytes for TEXT. */
static void write_new(struct cube_cache *cache, const char *text)
{
    static const char binary[1000] = "binary";
    const struct cube_cache_key key = key_of("compiler", text);

    ck_assert(cube_cache_write(cache, &key, binary, sizeof(binary)));
}

/* The same as if it had been HOURS ago. */
static void write_old(struct cube_cache *cache, const char *text, int hours)
{
    const struct cube_cache_key key = key_of("compiler", text);
    struct timespec times[2] = {{time(NULL) - hours * 3600, 0}};
    char path[PATH_BYTES];

    times[1] = times[0];
    write_new(cache, text);
    path_of(&key, path, sizeof(path));
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int is_kept(struct cube_cache *cache, const char *text)
{
    const struct cube_cache_key key = key_of("compiler", text);
    uint64_t bytes;
    void *data = cube_cache_read(cache, &key, &bytes);

    free(data);
    return data != NULL;
}

/* Of files of some 1100 bytes each. */
START_TEST(test_cube_cache_has_a_limit)
{
    struct cube_cache *cache = cube_cache_open("test", NULL, 0);
    struct stat info;
    char path[PATH_BYTES], text[8];
    int kept = 0;

    write_old(cache, "a", 30);
    write_old(cache, "b", 20);
    write_old(cache, "c", 10);
    write_old(cache, "d", 5);
    ck_assert(is_kept(cache, "b")); /* it is used now */
    cube_cache_close(cache);
    snprintf(path, sizeof(path), "%s/hob/test/left.1", folder.path);
    ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, path,
                               (const struct timespec[2]){{0, 0}, {0, 0}}, 0),
                     0);
    /* Five files are too many; three are three quarters. */
    cache = cube_cache_open("test", NULL, 4800);
    write_new(cache, "e");
    ck_assert(!is_kept(cache, "a"));
    ck_assert(!is_kept(cache, "c"));
    ck_assert(is_kept(cache, "b"));
    ck_assert(is_kept(cache, "d"));
    ck_assert(is_kept(cache, "e"));
    ck_assert_int_ne(stat(path, &info), 0);
    /* It holds for as long as a process writes. */
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof(text), "n%d", i);
        write_new(cache, text);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof(text), "n%d", i);
        kept += is_kept(cache, text);
    }
    ck_assert_int_ge(kept, 1);
    ck_assert_int_le(kept, 4);
    cube_cache_close(cache);
}
END_TEST

START_TEST(test_cube_cache_says_what_it_cannot_write)
{
    const struct cube_cache_key key = key_of("compiler", "text");
    struct cube_cache *cache = cube_cache_open("test", NULL, 0);
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "rm -r %s/hob", folder.path);
    ck_assert_int_eq(system(path), 0);
    ck_assert(!cube_cache_write(cache, &key, "binary", 6));
    ck_assert_int_eq(errno, ENOENT);
    cube_cache_close(cache);
}
END_TEST

/* ---- kernels by variant, on a runtime that only counts ---- */

struct counting {
    struct cube_device device;
    struct fake_host host;
    pthread_mutex_t lock;
    int compiled, opened, closed;
    int refuses_binaries;
    hob_status compile_status;
    uint32_t groups; /* of the last launch */
};

static const char *count_identity(struct cube_device *device)
{
    (void)device;
    return "counting 1";
}

static hob_status count_compile(struct cube_device *device,
                                const struct cube_source *source,
                                void **out_binary, uint64_t *out_bytes,
                                char **out_message)
{
    struct counting *counting = (struct counting *)device;

    pthread_mutex_lock(&counting->lock);
    counting->compiled++;
    pthread_mutex_unlock(&counting->lock);
    if (counting->compile_status)
        return hob_say(device->host, out_message, counting->compile_status,
                       "line %d", 7);
    *out_bytes = source->bytes;
    *out_binary = device->host->mem_alloc(device->host, source->bytes);
    memcpy(*out_binary, source->text, source->bytes);
    return HOB_OK;
}

static hob_status count_open(struct cube_device *device,
                             const struct cube_source *source,
                             const void *binary, uint64_t bytes,
                             void **out_kernel, char **out_message)
{
    struct counting *counting = (struct counting *)device;

    if (counting->refuses_binaries) {
        counting->refuses_binaries--;
        return hob_say(device->host, out_message, HOB_ERR_DEVICE, "refused");
    }
    ck_assert_uint_eq(bytes, source->bytes);
    ck_assert_mem_eq(binary, source->text, bytes);
    pthread_mutex_lock(&counting->lock);
    counting->opened++;
    pthread_mutex_unlock(&counting->lock);
    *out_kernel = counting;
    return HOB_OK;
}

static void count_close(struct cube_device *device, void *kernel)
{
    struct counting *counting = (struct counting *)device;

    ck_assert_ptr_eq(kernel, counting);
    counting->closed++;
}

static hob_status count_launch(struct cube_device *device, void *kernel,
                               const struct cube_launch *launch,
                               char **out_message)
{
    (void)kernel;
    (void)out_message;
    ((struct counting *)device)->groups = launch->groups;
    return HOB_OK;
}

static const struct cube_runtime counting_runtime = {
    .selector = "test",
    .language = CUBE_GLSL,
    .identity = count_identity,
    .compile = count_compile,
    .kernel_open = count_open,
    .kernel_close = count_close,
    .launch = count_launch,
};

static const struct cube_program program = {
    .name = "example",
    .text = "KERNEL() { STORE(y, LOCAL_X, LOAD(x, LOCAL_X) * alpha); }\n",
    .buffers = {{"y", CUBE_WRITTEN}, {"x", 0}, {"z", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"sizes", CUBE_INDEX, CUBE_LENGTH(0)},
               {"alpha", CUBE_VALUE_OF(1), 0},
               {"flag", CUBE_U32, 0}},
    .shared = {{"tile", "VALUE_x", "RANK + 1"}},
    .constants = {"RANK"},
};

static struct counting counting;

static void counting_setup(void)
{
    cache_setup();
    memset(&counting, 0, sizeof(counting));
    fake_host_init(&counting.host, 1);
    pthread_mutex_init(&counting.lock, NULL);
    counting.device.runtime = &counting_runtime;
    counting.device.host = &counting.host.table;
    counting.device.name = "test:0";
    counting.device.limits.subgroup_size = 8;
    counting.device.limits.param_bytes = 128;
    counting.device.limits.has_f64 = 1;
    counting.device.limits.has_i64 = 1;
    counting.device.kernels = cube_kernels_new(&counting.device);
    ck_assert_ptr_nonnull(counting.device.kernels);
}

static void counting_teardown(void)
{
    cube_kernels_free(counting.device.kernels);
    cube_kernels_free(NULL);
    ck_assert_int_eq(counting.closed, counting.opened);
    ck_assert_uint_eq(counting.host.live_blocks, 0);
    cache_teardown();
}

static struct cube_variant variant_of(uint32_t dtype, int32_t rank)
{
    struct cube_variant variant;

    cube_variant_init(&variant, &program);
    variant.group_size = 64;
    variant.dtypes[0] = variant.dtypes[1] = (uint8_t)dtype;
    variant.constants[0] = rank;
    return variant;
}

static const struct cube_kernel *get(const struct cube_variant *variant)
{
    const struct cube_kernel *kernel;
    char *message = NULL;

    ck_assert_int_eq(
        cube_kernels_get(counting.device.kernels, variant, &kernel, &message),
        HOB_OK);
    ck_assert_ptr_null(message);
    ck_assert_mem_eq(&kernel->variant, variant, sizeof(*variant));
    return kernel;
}

START_TEST(test_cube_kernels_by_variant)
{
    const struct cube_kernel *seen[200];

    for (int i = 0; i < 200; i++) {
        const struct cube_variant variant =
            variant_of(i % 2 ? HOB_DTYPE_F32 : HOB_DTYPE_I64, i / 2);

        seen[i] = get(&variant);
    }
    ck_assert_int_eq(counting.compiled, 200);
    for (int i = 0; i < 200; i++) {
        const struct cube_variant variant =
            variant_of(i % 2 ? HOB_DTYPE_F32 : HOB_DTYPE_I64, i / 2);

        ck_assert_ptr_eq(get(&variant), seen[i]);
    }
    ck_assert_int_eq(counting.compiled, 200);
}
END_TEST

/* A second device compiles nothing, unless what is on disk is of no use. */
START_TEST(test_cube_kernels_from_disk)
{
    const struct cube_variant variant = variant_of(HOB_DTYPE_F16, 3);

    get(&variant);
    cube_kernels_free(counting.device.kernels);
    counting.device.kernels = cube_kernels_new(&counting.device);
    get(&variant);
    ck_assert_int_eq(counting.compiled, 1);
    cube_kernels_free(counting.device.kernels);
    counting.device.kernels = cube_kernels_new(&counting.device);
    counting.refuses_binaries = 1;
    get(&variant);
    ck_assert_int_eq(counting.compiled, 2);
}
END_TEST

START_TEST(test_cube_kernels_say_what_fails)
{
    struct cube_variant variant = variant_of(HOB_DTYPE_F32, 1);
    const struct cube_kernel *kernel;
    char *message = NULL;

    counting.compile_status = HOB_ERR_INTERNAL;
    ck_assert_int_eq(
        cube_kernels_get(counting.device.kernels, &variant, &kernel, &message),
        HOB_ERR_INTERNAL);
    ck_assert_str_eq(message, "line 7");
    counting.host.table.mem_free(&counting.host.table, message);
    /* It is tried again. */
    counting.compile_status = HOB_OK;
    get(&variant);

    counting.device.limits.has_f64 = 0;
    variant = variant_of(HOB_DTYPE_F64, 1);
    message = NULL;
    ck_assert_int_eq(
        cube_kernels_get(counting.device.kernels, &variant, &kernel, &message),
        HOB_ERR_DTYPE);
    ck_assert_str_eq(message, "example: test:0 has no f64; cast the tensor");
    counting.host.table.mem_free(&counting.host.table, message);
}
END_TEST

static void *get_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        const struct cube_variant variant = variant_of(HOB_DTYPE_F32, i % 20);

        get(&variant);
    }
    return NULL;
}

/* Threads get one kernel for one variant, whoever compiled it. */
START_TEST(test_cube_kernels_from_threads)
{
    pthread_t threads[4];
    const struct cube_kernel *kernels[20];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 20; i++) {
        const struct cube_variant variant = variant_of(HOB_DTYPE_F32, i);

        kernels[i] = get(&variant);
        for (int k = 0; k < i; k++)
            ck_assert_ptr_ne(kernels[i], kernels[k]);
    }
    ck_assert_int_ge(counting.opened, 20);
    ck_assert_int_eq(counting.closed, counting.opened - 20);
}
END_TEST

/* ---- parameters ---- */

START_TEST(test_cube_layout)
{
    struct cube_variant variant = variant_of(HOB_DTYPE_F32, 3);
    struct cube_layout layout;

    /* Two addresses; z is absent. 4-byte numbers follow without gaps. */
    cube_layout_init(&layout, &variant);
    ck_assert_uint_eq(layout.buffers[0], 0);
    ck_assert_uint_eq(layout.buffers[1], 8);
    ck_assert_uint_eq(layout.params[0], 16);
    ck_assert_uint_eq(layout.params[1], 20);
    ck_assert_uint_eq(layout.params[2], 32);
    ck_assert_uint_eq(layout.params[3], 36);
    ck_assert_uint_eq(layout.bytes, 40);
    /* Wide indices, and an f64 on its own boundary. */
    variant.is_wide = 1;
    variant.dtypes[1] = HOB_DTYPE_F64;
    variant.dtypes[2] = HOB_DTYPE_U8;
    variant.constants[0] = 0;
    cube_layout_init(&layout, &variant);
    ck_assert_uint_eq(layout.params[0], 24);
    ck_assert_uint_eq(layout.params[2], 32);
    ck_assert_uint_eq(layout.params[3], 40);
    ck_assert_uint_eq(layout.bytes, 48);
}
END_TEST

/* The text says where parameters are: along with the launch, or far. */
START_TEST(test_cube_source_text)
{
    const struct cube_variant variant = variant_of(HOB_DTYPE_BF16, 2);
    struct cube_target target = {CUBE_GLSL, 32, 128, 1, 0, 0, 0};
    uint64_t bytes;
    char *text = cube_source_text(&variant, &target, &bytes);

    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(bytes, strlen(text));
    ck_assert_int_eq(strncmp(text, "#version 460\n", 13), 0);
    ck_assert_ptr_nonnull(strstr(text, "#define SUBGROUP_SIZE 32\n"));
    ck_assert_ptr_nonnull(strstr(text, "#define CUBE_NEEDS_F64 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "shared VALUE_x tile[RANK + 1];"));
    ck_assert_ptr_null(strstr(text, "load_z"));
    ck_assert_ptr_null(strstr(text, "cube_push"));
    free(text);
    target.param_bytes = 16;
    text = cube_source_text(&variant, &target, &bytes);
    ck_assert_ptr_nonnull(strstr(text, "cube_push"));
    free(text);
    target.language = CUBE_CUDA;
    text = cube_source_text(&variant, &target, &bytes);
    ck_assert_ptr_null(strstr(text, "cube_push"));
    ck_assert_ptr_nonnull(strstr(text, "__shared__ VALUE_x tile"));
    ck_assert_ptr_nonnull(strstr(text, "__global__ void"));
    ck_assert_ptr_null(strstr(text, "0lf"));
    free(text);
}
END_TEST

/* Whether a kernel with these FLAGS keeps its loops for such a target. */
static int keeps_loops(uint32_t flags, uint32_t target_keeps_loops)
{
    const struct cube_target target = {CUBE_GLSL,          32, 128, 1, 0,
                                       target_keeps_loops, 0};
    struct cube_variant variant = variant_of(HOB_DTYPE_F32, 1);
    struct cube_program tiled = program;
    uint64_t bytes;
    char *text;
    int keeps;

    tiled.flags = flags;
    variant.program = &tiled;
    text = cube_source_text(&variant, &target, &bytes);
    ck_assert_ptr_nonnull(text);
    keeps = strstr(text, "#define CUBE_KEEPS_LOOPS 1\n") != NULL;
    free(text);
    return keeps;
}

START_TEST(test_cube_tiles_keep_loops)
{
    ck_assert_int_eq(keeps_loops(CUBE_TILES, 1), 1);
    ck_assert_int_eq(keeps_loops(CUBE_TILES, 0), 0);
    ck_assert_int_eq(keeps_loops(0, 1), 0);
}
END_TEST

/* ---- spaces ---- */

static struct hob_view view_of(uint32_t rank, const int64_t *shape,
                               const int64_t *strides)
{
    struct hob_view view = {.dtype = HOB_DTYPE_F32, .rank = (uint8_t)rank};

    for (uint32_t i = 0; i < rank; i++) {
        view.shape[i] = shape[i];
        view.strides[i] = strides[i];
    }
    return view;
}

START_TEST(test_cube_space_collapses)
{
    const int64_t shape[] = {2, 1, 3, 4, 5};
    const int64_t dense[] = {60, 7, 20, 5, 1};
    const int64_t gaps[] = {120, 9, 40, 10, 2};
    const int64_t row[] = {5}, one[] = {1};
    const struct hob_view out = view_of(5, shape, dense);
    const struct hob_view x = view_of(5, shape, gaps);
    const struct hob_view bias = view_of(1, row, one);
    const struct hob_view scalar = view_of(0, NULL, NULL);
    struct cube_space space;

    cube_space_init(&space, 5, shape);
    cube_space_add(&space, &out);
    cube_space_add(&space, &x);
    cube_space_add(&space, &scalar);
    cube_space_collapse(&space);
    ck_assert_uint_eq(space.rank, 1);
    ck_assert_int_eq(space.sizes[0], 120);
    ck_assert(cube_space_is_dense(&space, 0));
    ck_assert(!cube_space_is_dense(&space, 1));
    ck_assert_int_eq(space.strides[1][0], 2);
    ck_assert(cube_space_is_single(&space, 2));

    cube_space_init(&space, 5, shape);
    cube_space_add(&space, &out);
    cube_space_add(&space, &bias);
    cube_space_collapse(&space);
    ck_assert_uint_eq(space.rank, 2);
    ck_assert_int_eq(space.sizes[0], 24);
    ck_assert_int_eq(space.sizes[1], 5);
    ck_assert_int_eq(space.strides[1][0], 0);
    ck_assert_int_eq(space.strides[1][1], 1);
}
END_TEST

/* The bytes that a view may touch, whatever the signs of its strides. */
START_TEST(test_cube_view_range)
{
    float memory[100];
    const int64_t shape[] = {3, 4}, strides[] = {-20, 2};
    struct hob_view view = view_of(2, shape, strides);
    struct cube_range range;

    view.data = &memory[50];
    range = cube_view_range(&view);
    ck_assert_ptr_eq(range.data, &memory[10]);
    ck_assert_uint_eq(range.bytes, (50 + 6 - 10 + 1) * sizeof(float));
    view.shape[0] = 0;
    ck_assert_uint_eq(cube_view_range(&view).bytes, 0);
}
END_TEST

/* Quotients by magic numbers are the quotients, up to the last index. */
START_TEST(test_cube_quotients)
{
    static const int64_t sizes[] = {1,     2,     3,       5,       7,
                                    10,    127,   641,     4096,    65535,
                                    65537, 99991, 6700417, 1 << 30, INT32_MAX};
    const int64_t size = sizes[_i];
    struct cube_space space = {.rank = 1, .count = size};
    struct cube_job job;
    uint64_t magic, shift;

    space.sizes[0] = size;
    cube_job_init(&job, &counting.device, NULL, &program);
    cube_job_space(&job, &space);
    ck_assert_uint_eq(job.number_count, 3);
    magic = job.numbers[1];
    shift = job.numbers[2];
    for (int64_t k = 0; k < 3000; k++) {
        const int64_t tries[] = {k, INT32_MAX - k, k * size, k * size - 1,
                                 k * 715827};

        for (int t = 0; t < 5; t++) {
            const int64_t i = tries[t];
            uint64_t got;

            if (i < 0 || i > INT32_MAX)
                continue;
            got = (((uint64_t)i * magic >> 32) + (uint64_t)i) >> shift;
            ck_assert_msg((int64_t)got == i / size, "%lld / %lld: %llu",
                          (long long)i, (long long)size,
                          (unsigned long long)got);
        }
    }
}
END_TEST

/* Run OP of ENTRIES on X with the I64 attribute DIM, its result over it. */
static void run_over(const struct cube_entries *entries, const char *op,
                     const struct hob_view *x, int64_t dim)
{
    const struct hob_entry *entry = entries->entries;
    struct fake_call fake;

    while (strcmp(entry->op, op) != 0)
        entry++;
    fake_call_init(&fake, &counting.host, op);
    fake_call_view(&fake, x);
    fake_call_value(&fake, hob_i64(dim));
    fake_call_result_in_place(&fake, 0);
    ck_assert_int_eq(entry->execute(&counting.device, &fake.call), HOB_OK);
    fake_call_release(&fake);
}

/* What a kernel adds to where it is, when that is near the end, is an INDEX of
 * 32 bits still: with more than 2^30 rows all groups together would be too
 * many. */
START_TEST(test_cube_steps_stay_indices)
{
    enum { ROWS_OF_A_GROUP = 128 };
    const int64_t shape[] = {1200000000, 1}, strides[] = {1, 1};
    struct hob_view x = view_of(2, shape, strides);
    struct fake_call fake;
    struct cube_job job;

    counting.device.limits.groups = INT32_MAX;
    counting.device.limits.group_size = 1024;
    x.dtype = HOB_DTYPE_F32;
    x.data = &counting; /* nobody reads it */
    run_over(&cube_rows_entries, "softmax", &x, 1);
    ck_assert_uint_ge(counting.groups, 1000);
    ck_assert_uint_le(counting.groups, CUBE_OVER / ROWS_OF_A_GROUP);
    fake_call_init(&fake, &counting.host, "example");
    cube_job_init(&job, &counting.device, &fake.call, &program);
    cube_job_view(&job, &x);
    cube_job_view(&job, &x);
    cube_job_absent(&job);
    cube_job_constant(&job, 1);
    for (int i = 0; i < 4; i++)
        cube_job_i64(&job, 1);
    ck_assert_int_eq(cube_job_run(&job, INT32_MAX), HOB_OK);
    ck_assert_uint_eq(counting.groups, CUBE_OVER);
}
END_TEST

START_TEST(test_cube_index_widens)
{
    struct cube_job job;

    cube_job_init(&job, &counting.device, NULL, &program);
    cube_job_reach(&job, 1000000);
    ck_assert_uint_eq(job.variant.is_wide, 0);
    cube_job_reach(&job, INT64_C(1) << 31);
    ck_assert_uint_eq(job.variant.is_wide, 1);
}
END_TEST

/* A view's elements are what counts, of whatever size they are. */
START_TEST(test_cube_index_widens_by_view)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_U8, HOB_DTYPE_F16,
                                       HOB_DTYPE_F32, HOB_DTYPE_F64};
    int64_t count = INT32_MAX - (1 << 24);
    const int64_t stride = 1;
    struct hob_view view = view_of(1, &count, &stride);
    struct cube_job job;

    view.dtype = dtypes[_i];
    view.data = &count; /* nobody reads it */
    cube_job_init(&job, &counting.device, NULL, &program);
    cube_job_view(&job, &view);
    ck_assert_uint_eq(job.variant.is_wide, 0);
    view.shape[0]++;
    cube_job_init(&job, &counting.device, NULL, &program);
    cube_job_view(&job, &view);
    ck_assert_uint_eq(job.variant.is_wide, 1);
}
END_TEST

/* ---- scalars ---- */

START_TEST(test_cube_round)
{
    /* Halfway to the even one, above it, least numbers, and the ends. */
    ck_assert_double_eq(cube_round(1 + 0x1p-11, HOB_DTYPE_F16), 1);
    ck_assert_double_eq(cube_round(1 + 0x1.8p-10, HOB_DTYPE_F16), 1 + 0x1p-9);
    ck_assert_double_eq(cube_round(0x1.8p-25, HOB_DTYPE_F16), 0x1p-24);
    ck_assert_double_eq(cube_round(0x1p-25, HOB_DTYPE_F16), 0);
    ck_assert_double_eq(cube_round(65519, HOB_DTYPE_F16), 65504);
    ck_assert(isinf(cube_round(65520, HOB_DTYPE_F16)));
    ck_assert_double_eq(cube_round(1 + 0x1p-8, HOB_DTYPE_BF16), 1);
    ck_assert_double_eq(cube_round(0x1p-133, HOB_DTYPE_BF16), 0x1p-133);
    ck_assert_double_eq(cube_round(0.1, HOB_DTYPE_F32), (double)0.1f);
    ck_assert(isnan(cube_round(NAN, HOB_DTYPE_F16)));
    ck_assert(signbit(cube_round(-0.0, HOB_DTYPE_F16)));
}
END_TEST

START_TEST(test_cube_scalar_integers)
{
    hob_value value = hob_f64(300.7);

    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_I32), 300);
    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_U8), 44);
    value = hob_i64(-1);
    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_U16), 65535);
    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_I8), -1);
    value = hob_f64(NAN);
    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_I64), 0);
    value = hob_u64(UINT64_MAX);
    ck_assert_int_eq(cube_scalar_i64(&value, HOB_DTYPE_U64), -1);
}
END_TEST

static const struct {
    double number;
    uint32_t dtype;
    uint64_t bits;
} scalar_bits[] = {
    {1.5, HOB_DTYPE_F64, 0x3ff8000000000000},
    {-1.5, HOB_DTYPE_F32, 0xbfc00000},
    {1, HOB_DTYPE_F16, 0x3c00},
    {-65504, HOB_DTYPE_F16, 0xfbff},
    {0x1p-14, HOB_DTYPE_F16, 0x0400},
    {0x3p-24, HOB_DTYPE_F16, 0x0003},
    {-0.0, HOB_DTYPE_F16, 0x8000},
    {1e9, HOB_DTYPE_F16, 0x7c00},
    {NAN, HOB_DTYPE_F16, 0x7e00},
    {1 + 0x1.8p-7, HOB_DTYPE_BF16, 0x3f82},
    {-3.7, HOB_DTYPE_I8, 0xfd},
    {-3.7, HOB_DTYPE_I64, UINT64_MAX - 2},
    {0.5, HOB_DTYPE_BOOL, 1},
};

START_TEST(test_cube_scalar_bits)
{
    const hob_value value = hob_f64(scalar_bits[_i].number);

    ck_assert_uint_eq(cube_scalar_bits(&value, scalar_bits[_i].dtype),
                      scalar_bits[_i].bits);
}
END_TEST

/* ---- SPIR-V ---- */

/* A header, OpCapability, OpEntryPoint of %4, OpTypeVoid %1, OpFAdd to %9. */
static const uint32_t module[] = {
    0x07230203,     0x00010500, 0, 10,         0, /* header */
    2u << 16 | 17,  1,                            /* OpCapability Shader */
    5u << 16 | 15,  5,          4, 0x6e69616d, 0, /* OpEntryPoint "main" */
    2u << 16 | 19,  1,                            /* OpTypeVoid */
    5u << 16 | 129, 2,          9, 7,          8, /* OpFAdd */
};

START_TEST(test_cube_spirv_exact)
{
    const struct cube_float_controls none = {0, 0, 0},
                                     all = {16 | 32 | 64, 16 | 32, 16};
    static const uint32_t decoration[] = {3u << 16 | 71, 9, 42};
    const uint64_t count = sizeof(module) / sizeof(module[0]);
    uint32_t halves[sizeof(module) / sizeof(module[0]) + 3];
    uint64_t got;
    uint32_t *words = cube_spirv_exact(module, count, &none, &got);

    ck_assert_ptr_nonnull(words);
    ck_assert_uint_eq(got, count + 3);
    ck_assert_mem_eq(words, module, 12 * 4);
    ck_assert_mem_eq(words + 12, decoration, sizeof(decoration));
    ck_assert_mem_eq(words + 15, module + 12, (count - 12) * 4);
    free(words);
    words = cube_spirv_exact(module, count, &all, &got);
    ck_assert_uint_eq(got, count + 3 + 2 * 2 + 3 * 4);
    free(words);
    /* With a type of 16 bits what is asked of those, too: that of nearest even
     * has a capability of its own. */
    memcpy(halves, module, sizeof(module));
    memcpy(halves + count, (const uint32_t[]){3u << 16 | 22, 9, 16}, 3 * 4);
    words = cube_spirv_exact(halves, count + 3, &all, &got);
    ck_assert_uint_eq(got, count + 3 + 3 + 3 * 2 + 6 * 4);
    free(words);
    /* Not a module, and one that ends inside an instruction. */
    ck_assert_ptr_null(cube_spirv_exact(module + 1, count - 1, &none, &got));
    ck_assert_ptr_null(cube_spirv_exact(module, count - 1, &none, &got));
    ck_assert_ptr_null(cube_spirv_exact(module, 4, &none, &got));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cube");
    TCase *plain = tcase_create("plain");
    TCase *cache = tcase_create("cache");
    TCase *kernels = tcase_create("kernels");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(plain, test_cube_sha256, 0,
                        sizeof(digests) / sizeof(digests[0]));
    tcase_add_test(plain, test_cube_names);
    tcase_add_test(plain, test_cube_layout);
    tcase_add_test(plain, test_cube_source_text);
    tcase_add_test(plain, test_cube_tiles_keep_loops);
    tcase_add_test(plain, test_cube_space_collapses);
    tcase_add_test(plain, test_cube_view_range);
    tcase_add_loop_test(plain, test_cube_index_widens_by_view, 0, 4);
    tcase_add_loop_test(plain, test_cube_quotients, 0, 15);
    tcase_add_test(plain, test_cube_index_widens);
    tcase_add_test(plain, test_cube_round);
    tcase_add_test(plain, test_cube_scalar_integers);
    tcase_add_loop_test(plain, test_cube_scalar_bits, 0,
                        sizeof(scalar_bits) / sizeof(scalar_bits[0]));
    tcase_add_test(plain, test_cube_spirv_exact);
    suite_add_tcase(suite, plain);
    tcase_add_checked_fixture(cache, cache_setup, cache_teardown);
    tcase_add_test(cache, test_cube_cache_keeps);
    tcase_add_test(cache, test_cube_cache_keys_differ);
    tcase_add_loop_test(cache, test_cube_cache_refuses_what_is_spoilt, 0,
                        sizeof(spoils) / sizeof(spoils[0]));
    tcase_add_test(cache, test_cube_cache_refuses_a_stranger);
    tcase_add_test(cache, test_cube_cache_works_without);
    tcase_add_test(cache, test_cube_cache_has_a_limit);
    tcase_add_test(cache, test_cube_cache_says_what_it_cannot_write);
    suite_add_tcase(suite, cache);
    tcase_add_checked_fixture(kernels, counting_setup, counting_teardown);
    tcase_add_test(kernels, test_cube_steps_stay_indices);
    tcase_add_test(kernels, test_cube_kernels_by_variant);
    tcase_add_test(kernels, test_cube_kernels_from_disk);
    tcase_add_test(kernels, test_cube_kernels_say_what_fails);
    tcase_add_test(kernels, test_cube_kernels_from_threads);
    suite_add_tcase(suite, kernels);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
