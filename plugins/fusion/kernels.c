/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - compiled programs, found by what they are made of.
 *
 * The key is the whole program: it says dtypes, kinds, steps and which values
 * are stored, and neither sizes nor scalars. Keys are compared in full. When
 * there are too many, one that has not been used for longest is given back.
 */
#include "fusion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = 256, MOST = 1024 };

struct fu_kernel {
    struct fu_kernel *next; /* in its list */
    void *compiled;         /* NULL: the backend declined */
    uint64_t hash;
    uint64_t used; /* when it was last got */
    uint32_t users;
    uint32_t key_words;
    char name[128];
    uint64_t key[];
};

struct fu_kernels {
    struct fu_layer *layer;
    pthread_mutex_t lock;
    uint64_t clock;
    atomic_uint_least64_t hits;
    uint64_t programs;
    uint32_t count;
    struct fu_kernel *lists[LISTS];
};

struct fu_kernels *fu_kernels_new(struct fu_layer *layer)
{
    struct fu_kernels *kernels = calloc(1, sizeof(*kernels));

    if (kernels) {
        kernels->layer = layer;
        pthread_mutex_init(&kernels->lock, NULL);
    }
    return kernels;
}

static void kernel_free(const struct fu_kernels *kernels,
                        struct fu_kernel *kernel)
{
    const struct fu_layer *layer = kernels->layer;

    if (kernel->compiled)
        layer->fused->release(layer->fused_instance, kernel->compiled);
    free(kernel);
}

void fu_kernels_free(struct fu_kernels *kernels)
{
    if (!kernels)
        return;
    for (uint32_t i = 0; i < LISTS; i++)
        while (kernels->lists[i]) {
            struct fu_kernel *kernel = kernels->lists[i];

            kernels->lists[i] = kernel->next;
            kernel_free(kernels, kernel);
        }
    pthread_mutex_destroy(&kernels->lock);
    free(kernels);
}

/* ---- keys ---- */

enum {
    MOST_WORDS = (8 + HOB_FUSED_MAX_INPUTS * sizeof(struct hob_fused_input) +
                  HOB_FUSED_MAX_STEPS * sizeof(struct hob_fused_step) +
                  HOB_FUSED_MAX_OUTPUTS + 7) /
                 8
};

struct key {
    uint64_t hash;
    uint32_t words;
    uint64_t data[MOST_WORDS];
};

static unsigned char *put(unsigned char *at, const void *data, size_t bytes)
{
    if (bytes)
        memcpy(at, data, bytes);
    return at + bytes;
}

static uint64_t hash_of(const uint64_t *words, uint32_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash ^ hash >> 32;
}

static void key_make(const struct hob_fused_program *program, struct key *out)
{
    const uint8_t head[8] = {program->rank,        program->row_rank,
                             program->input_count, program->output_count,
                             program->step_count,  program->scalar_count};
    unsigned char *const begin = (unsigned char *)out->data;
    unsigned char *at = put(begin, head, sizeof(head));

    at = put(at, program->inputs,
             program->input_count * sizeof(struct hob_fused_input));
    at = put(at, program->steps,
             program->step_count * sizeof(struct hob_fused_step));
    at = put(at, program->outputs, program->output_count);
    while ((at - begin) % 8) /* whole words */
        *at++ = 0;
    out->words = (uint32_t)(at - begin) / 8;
    out->hash = hash_of(out->data, out->words);
}

/* ---- the table ---- */

static struct fu_kernel *find_locked(struct fu_kernels *kernels,
                                     const struct key *key)
{
    struct fu_kernel *kernel = kernels->lists[key->hash % LISTS];

    while (kernel &&
           (kernel->hash != key->hash || kernel->key_words != key->words ||
            memcmp(kernel->key, key->data, key->words * 8) != 0))
        kernel = kernel->next;
    return kernel;
}

/* Take the one out that was not used for longest; NULL if all are in use. */
static struct fu_kernel *take_oldest_locked(struct fu_kernels *kernels)
{
    struct fu_kernel **oldest = NULL;
    struct fu_kernel *kernel;

    for (uint32_t i = 0; i < LISTS; i++)
        for (struct fu_kernel **at = &kernels->lists[i]; *at; at = &(*at)->next)
            if (!(*at)->users && (!oldest || (*at)->used < (*oldest)->used))
                oldest = at;
    if (!oldest)
        return NULL;
    kernel = *oldest;
    *oldest = kernel->next;
    kernels->count--;
    return kernel;
}

static void make_name(const struct hob_host *host,
                      const struct hob_fused_program *program, char *out,
                      size_t room)
{
    size_t used = 0;

    for (uint32_t i = 0; i < program->step_count; i++) {
        const char *name = host->op_name(host, program->steps[i].op);
        int size = snprintf(out + used, room - used, "%s%s", used ? "+" : "",
                            name ? name : "?");

        if (size < 0 || used + (size_t)size >= room)
            break;
        used += (size_t)size;
    }
}

static struct fu_kernel *kernel_new(const struct fu_layer *layer,
                                    const struct hob_fused_program *program,
                                    const struct key *key)
{
    struct fu_kernel *kernel = malloc(sizeof(*kernel) + key->words * 8);

    if (!kernel)
        return NULL;
    memset(kernel, 0, sizeof(*kernel));
    kernel->hash = key->hash;
    kernel->key_words = key->words;
    memcpy(kernel->key, key->data, key->words * 8);
    make_name(layer->host, program, kernel->name, sizeof(kernel->name));
    return kernel;
}

/* Compile what was not found; another thread may do the same meanwhile. */
static struct fu_kernel *make(struct fu_kernels *kernels,
                              const struct hob_fused_program *program,
                              const struct key *key)
{
    const struct fu_layer *layer = kernels->layer;
    const struct hob_host *host = layer->host;
    struct fu_kernel *kernel = kernel_new(layer, program, key);
    struct fu_kernel *other, *old = NULL;
    char *message = NULL;
    hob_status status;

    if (!kernel)
        return NULL;
    status = layer->fused->compile(layer->fused_instance, program,
                                   &kernel->compiled, &message);
    if (message)
        host->mem_free(host, message);
    if (status && status != HOB_ERR_UNSUPPORTED) {
        free(kernel);
        return NULL;
    }
    pthread_mutex_lock(&kernels->lock);
    other = find_locked(kernels, key);
    if (!other) {
        if (kernels->count == MOST)
            old = take_oldest_locked(kernels);
        kernel->next = kernels->lists[kernel->hash % LISTS];
        kernels->lists[kernel->hash % LISTS] = kernel;
        kernels->count++;
        kernels->programs++;
        other = kernel;
    } else {
        old = kernel;
    }
    other->users++;
    other->used = ++kernels->clock;
    pthread_mutex_unlock(&kernels->lock);
    if (old)
        kernel_free(kernels, old);
    return other;
}

void fu_kernel_again(struct fu_kernels *kernels)
{
    atomic_fetch_add_explicit(&kernels->hits, 1, memory_order_relaxed);
}

struct fu_kernel *fu_kernel_get(struct fu_kernels *kernels,
                                const struct hob_fused_program *program)
{
    struct key key;
    struct fu_kernel *found;

    key_make(program, &key);
    pthread_mutex_lock(&kernels->lock);
    found = find_locked(kernels, &key);
    if (found) {
        fu_kernel_again(kernels);
        found->users++;
        found->used = ++kernels->clock;
    }
    pthread_mutex_unlock(&kernels->lock);
    return found ? found : make(kernels, program, &key);
}

void fu_kernels_count(struct fu_kernels *kernels, uint64_t *out_programs,
                      uint64_t *out_hits)
{
    pthread_mutex_lock(&kernels->lock);
    *out_programs = kernels->programs;
    pthread_mutex_unlock(&kernels->lock);
    *out_hits = atomic_load_explicit(&kernels->hits, memory_order_relaxed);
}

void *fu_kernel_compiled(const struct fu_kernel *kernel)
{
    return kernel->compiled;
}

const char *fu_kernel_name(const struct fu_kernel *kernel)
{
    return kernel->name;
}

void fu_kernel_give(struct fu_kernels *kernels, struct fu_kernel *kernel)
{
    pthread_mutex_lock(&kernels->lock);
    kernel->users--;
    pthread_mutex_unlock(&kernels->lock);
}
