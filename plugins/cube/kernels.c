/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include "cache.h"
#include "fuse/fuse.h"

#include <hob/ext/message.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels by the hash of their variant, open addressing; NULL is free. Slots
 * are filled once and a table is never freed before its device is closed, so
 * they are read without the lock. */
struct table {
    struct table *smaller; /* the one before it, which may still be read */
    uint64_t slot_count;   /* a power of 2, more than there are kernels */
    struct cube_kernel *_Atomic slots[];
};

struct cube_kernels {
    struct cube_device *device; /* borrowed, outlives the kernels */
    struct table *_Atomic table;
    pthread_mutex_t lock; /* of what is written, and of what follows */
    uint64_t count;
    struct cube_described *described; /* a list */
    struct cube_cache *cache;         /* opened with the first compilation */
    int is_cache_open;
    atomic_int is_told; /* that there is no cache */
    struct cube_fusion *fusion;
};

/* ---- the table ---- */

_Static_assert(sizeof(struct cube_variant) % 16 == 0,
               "a variant is read in pairs of words of 64 bits");

/* Like FNV-1a, but by words and in two streams, which a processor multiplies at
 * the same time: each launch asks for this. */
static uint64_t hash_of(const struct cube_variant *variant)
{
    const unsigned char *from = (const unsigned char *)variant;
    const uint64_t prime = UINT64_C(1099511628211);
    uint64_t even = UINT64_C(14695981039346656037), odd = ~even;

    for (size_t i = 0; i < sizeof(*variant); i += 16) {
        uint64_t words[2];

        memcpy(words, from + i, sizeof(words));
        even = (even ^ words[0]) * prime;
        odd = (odd ^ words[1]) * prime;
    }
    /* The lower half of a product knows nothing of the upper bits. */
    even ^= odd << 32 | odd >> 32;
    return even ^ even >> 32;
}

/* The slot of VARIANT in TABLE, or the one that it would have; *OUT_KERNEL is
 * what it holds. */
static struct cube_kernel *_Atomic *
slot_of(struct table *table, const struct cube_variant *variant,
        const struct cube_kernel **out_kernel)
{
    uint64_t at = hash_of(variant);

    for (;; at++) {
        struct cube_kernel *_Atomic *slot =
            &table->slots[at & (table->slot_count - 1)];

        *out_kernel = atomic_load_explicit(slot, memory_order_acquire);
        if (!*out_kernel ||
            memcmp(&(*out_kernel)->variant, variant, sizeof(*variant)) == 0)
            return slot;
    }
}

static void put(struct table *table, struct cube_kernel *kernel)
{
    const struct cube_kernel *there;

    atomic_store_explicit(slot_of(table, &kernel->variant, &there), kernel,
                          memory_order_release);
}

/* A table with room for one more, or NULL without memory. */
static struct table *roomy_locked(struct cube_kernels *kernels)
{
    struct table *old = atomic_load(&kernels->table), *table;
    const uint64_t count = old ? 2 * old->slot_count : 64;

    if (old && 2 * (kernels->count + 1) <= old->slot_count)
        return old;
    table = calloc(1, sizeof(*table) + (size_t)count * sizeof(table->slots[0]));
    if (!table)
        return NULL;
    table->smaller = old;
    table->slot_count = count;
    for (uint64_t i = 0; old && i < old->slot_count; i++) {
        struct cube_kernel *kernel = atomic_load(&old->slots[i]);

        if (kernel)
            put(table, kernel);
    }
    atomic_store_explicit(&kernels->table, table, memory_order_release);
    return table;
}

static const struct cube_kernel *find(struct cube_kernels *kernels,
                                      const struct cube_variant *variant)
{
    struct table *table =
        atomic_load_explicit(&kernels->table, memory_order_acquire);
    const struct cube_kernel *kernel = NULL;

    if (table)
        (void)slot_of(table, variant, &kernel);
    return kernel;
}

void cube_kernel_close(struct cube_kernels *kernels, struct cube_kernel *kernel)
{
    if (!kernel)
        return;
    kernels->device->runtime->kernel_close(kernels->device, kernel->handle);
    free(kernel);
}

/* Put KERNEL in the table. If another thread was faster, its kernel is
 * returned and this one closed. */
static const struct cube_kernel *insert(struct cube_kernels *kernels,
                                        struct cube_kernel *kernel)
{
    const struct cube_kernel *there = NULL;
    struct table *table;

    pthread_mutex_lock(&kernels->lock);
    table = roomy_locked(kernels);
    if (table) {
        (void)slot_of(table, &kernel->variant, &there);
        if (!there) {
            put(table, kernel);
            kernels->count++;
        }
    }
    pthread_mutex_unlock(&kernels->lock);
    if (table && !there)
        return kernel;
    cube_kernel_close(kernels, kernel);
    return there;
}

/* ---- compiling ---- */

/* Say once why binaries are not kept. Where nobody asked for a folder this is
 * the machine's business. */
static void say_uncached(struct cube_kernels *kernels, int problem)
{
    const struct cube_device *device = kernels->device;

    if (atomic_exchange(&kernels->is_told, 1) || !device->host->log_write)
        return;
    device->host->log_write(
        device->host, device->cache_dir ? 3 : 1,
        "%s: compiled kernels are not kept, so each process compiles them: %s "
        "cannot be used: %s",
        device->name,
        device->cache_dir ? device->cache_dir : "the folder of caches",
        problem == EPERM ? "others may write to it" : strerror(problem));
}

struct cube_cache *cube_cache_of(const struct cube_device *device)
{
    return cube_cache_open(device->runtime->selector, device->cache_dir,
                           (uint64_t)device->cache_limit << 20);
}

static struct cube_cache *cache_of(struct cube_kernels *kernels)
{
    pthread_mutex_lock(&kernels->lock);
    if (!kernels->is_cache_open) {
        kernels->cache = cube_cache_of(kernels->device);
        if (!kernels->cache)
            say_uncached(kernels, errno);
        kernels->is_cache_open = 1;
    }
    pthread_mutex_unlock(&kernels->lock);
    return kernels->cache;
}

/* Open SOURCE's kernel with a binary from the disk; 0 if that did not work. */
static int open_cached(struct cube_kernels *kernels,
                       const struct cube_source *source,
                       const struct cube_cache_key *key, void **out_handle)
{
    struct cube_device *device = kernels->device;
    char *message = NULL;
    uint64_t bytes;
    void *binary = cube_cache_read(cache_of(kernels), key, &bytes);
    hob_status st;

    if (!binary)
        return 0;
    st = device->runtime->kernel_open(device, source, binary, bytes, out_handle,
                                      &message);
    free(binary);
    device->host->mem_free(device->host, message);
    return st == HOB_OK;
}

static hob_status open_source(struct cube_kernels *kernels,
                              const struct cube_source *source,
                              void **out_handle, int *out_is_cached,
                              char **out_message)
{
    struct cube_device *device = kernels->device;
    const struct cube_runtime *runtime = device->runtime;
    struct cube_cache_key key;
    void *binary = NULL;
    uint64_t bytes = 0;
    hob_status st;

    *out_is_cached = 0;
    if (source->is_binary)
        return runtime->kernel_open(device, source, source->text, source->bytes,
                                    out_handle, out_message);
    cube_cache_key_init(&key, runtime->identity(device), source->name,
                        source->text, source->bytes);
    *out_is_cached = open_cached(kernels, source, &key, out_handle);
    if (*out_is_cached)
        return HOB_OK;
    st = runtime->compile(device, source, &binary, &bytes, out_message);
    if (st)
        return st;
    if (!cube_cache_write(cache_of(kernels), &key, binary, bytes))
        say_uncached(kernels, errno);
    st = runtime->kernel_open(device, source, binary, bytes, out_handle,
                              out_message);
    device->host->mem_free(device->host, binary);
    return st;
}

/* What the device cannot do at all, in words that a user understands. */
static hob_status check_dtypes(const struct cube_device *device,
                               const struct cube_variant *variant,
                               char **out_message)
{
    uint32_t bad = HOB_DTYPE_NONE;

    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS; i++) {
        const uint32_t dtype = variant->dtypes[i];

        if ((dtype == HOB_DTYPE_F64 && !device->limits.has_f64) ||
            ((dtype == HOB_DTYPE_I64 || dtype == HOB_DTYPE_U64) &&
             !device->limits.has_i64))
            bad = dtype;
    }
    if (bad)
        return hob_say(device->host, out_message, HOB_ERR_DTYPE,
                       "%s: %s has no %s; cast the tensor",
                       variant->program->name, device->name,
                       hob_dtype_name(bad));
    if (variant->is_wide && !device->limits.has_i64)
        return hob_say(
            device->host, out_message, HOB_ERR_DTYPE,
            "%s: %s has no 64-bit integers, so a tensor may have fewer than "
            "2^31 elements only",
            variant->program->name, device->name);
    return HOB_OK;
}

hob_status cube_kernel_make(struct cube_kernels *kernels,
                            const struct cube_variant *variant,
                            struct cube_kernel **out_kernel, int *out_is_cached,
                            char **out_message)
{
    struct cube_device *device = kernels->device;
    const struct cube_target target = {
        device->runtime->language,     device->limits.subgroup_size,
        device->limits.param_bytes,    device->limits.keeps_nan,
        device->limits.rounds_f16,     device->limits.keeps_loops,
        device->limits.keeps_denormals};
    const struct cube_program *program = variant->program;
    struct cube_kernel *kernel = malloc(sizeof(*kernel));
    struct cube_source source = {
        .name = program->name,
        .group_size = variant->group_size,
        .is_binary = program->language == CUBE_ONLY_SPIRV,
        .waits = program->language == CUBE_PORTABLE,
        .is_tied = (program->flags & CUBE_TIED) != 0,
    };
    char *text = NULL;
    hob_status st = HOB_ERR_MEMORY;

    if (kernel) {
        kernel->variant = *variant;
        cube_layout_init(&kernel->layout, variant);
        source.param_bytes = kernel->layout.bytes > target.param_bytes
                                 ? 8
                                 : kernel->layout.bytes;
        source.bytes = program->text_bytes;
        if (!source.is_binary)
            text = cube_source_text(variant, &target, &source.bytes);
        source.text = source.is_binary ? program->text : text;
    }
    if (source.text)
        st = open_source(kernels, &source, &kernel->handle, out_is_cached,
                         out_message);
    free(text);
    if (st) {
        free(kernel);
        kernel = NULL;
    }
    *out_kernel = kernel;
    return st;
}

hob_status cube_kernels_get(struct cube_kernels *kernels,
                            const struct cube_variant *variant,
                            const struct cube_kernel **out_kernel,
                            char **out_message)
{
    struct cube_kernel *made;
    int is_cached;
    hob_status st;

    *out_kernel = find(kernels, variant);
    if (*out_kernel)
        return HOB_OK;
    st = check_dtypes(kernels->device, variant, out_message);
    if (!st)
        st = cube_kernel_make(kernels, variant, &made, &is_cached, out_message);
    if (st)
        return st;
    *out_kernel = insert(kernels, made);
    return *out_kernel ? HOB_OK : HOB_ERR_MEMORY;
}

/* ---- kernels of extensions ---- */

/* Whether DESCRIPTION still says what ONE was made of. */
static int is_same(const struct cube_described *one,
                   const struct hob_cube_kernel *description)
{
    const size_t size = description->struct_size < sizeof(*description)
                            ? description->struct_size
                            : sizeof(*description);

    return memcmp(&one->kernel, description, size) == 0;
}

const struct cube_described *
cube_kernels_describe(struct cube_kernels *kernels,
                      const struct hob_cube_kernel *description,
                      char reason[CUBE_REASON])
{
    struct cube_described *one;

    reason[0] = '\0';
    pthread_mutex_lock(&kernels->lock);
    for (one = kernels->described; one && one->key != description;)
        one = one->next;
    if (!one) {
        one = cube_describe(description, reason);
        if (one) {
            one->next = kernels->described;
            kernels->described = one;
        }
    } else if (!is_same(one, description)) {
        snprintf(reason, CUBE_REASON,
                 "the description is another one than before at the same "
                 "address: it must be constant");
        one = NULL;
    }
    pthread_mutex_unlock(&kernels->lock);
    return one;
}

/* ---- life cycle ---- */

struct cube_fusion *cube_kernels_fusion(struct cube_kernels *kernels)
{
    return kernels->fusion;
}

struct cube_kernels *cube_kernels_new(struct cube_device *device)
{
    struct cube_kernels *kernels = calloc(1, sizeof(*kernels));

    if (!kernels)
        return NULL;
    kernels->device = device;
    if (pthread_mutex_init(&kernels->lock, NULL) != 0) {
        free(kernels);
        return NULL;
    }
    kernels->fusion = cube_fusion_new(device);
    if (!kernels->fusion) {
        cube_kernels_free(kernels);
        return NULL;
    }
    return kernels;
}

/* Close what TABLE has, and free it with those before it. */
static void free_table(struct cube_kernels *kernels, struct table *table)
{
    for (uint64_t i = 0; table && i < table->slot_count; i++)
        cube_kernel_close(kernels, atomic_load(&table->slots[i]));
    while (table) {
        struct table *smaller = table->smaller;

        free(table);
        table = smaller;
    }
}

void cube_kernels_free(struct cube_kernels *kernels)
{
    if (!kernels)
        return;
    cube_fusion_free(kernels->fusion);
    free_table(kernels, atomic_load(&kernels->table));
    while (kernels->described) {
        struct cube_described *next = kernels->described->next;

        free(kernels->described);
        kernels->described = next;
    }
    cube_cache_close(kernels->cache);
    pthread_mutex_destroy(&kernels->lock);
    free(kernels);
}
