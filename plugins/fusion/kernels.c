/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - compiled programs, found by what they are made of.
 *
 * The key is the whole program: it says dtypes, kinds, steps and which values
 * are stored, and neither sizes nor scalars. Keys are compared in full. When
 * there are too many, one that has not been used for longest is given back.
 */
#include "fusion.h"

#include <stdlib.h>
#include <string.h>

enum { LISTS = 256, MOST = 1024 };

struct fu_kernel {
    struct fu_kernel *next; /* in its list */
    void *compiled;         /* NULL: the backend declined */
    uint64_t hash;
    uint64_t used; /* when it was last got */
    uint32_t users;
    uint32_t key_bytes;
    unsigned char key[];
};

struct fu_kernels {
    struct fu_layer *layer;
    pthread_mutex_t lock;
    uint64_t clock;
    uint64_t hits;
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

static size_t key_size(const struct hob_fused_program *program)
{
    return 8 + program->input_count * sizeof(struct hob_fused_input) +
           program->step_count * sizeof(struct hob_fused_step) +
           program->output_count;
}

static unsigned char *put(unsigned char *at, const void *data, size_t bytes)
{
    if (bytes)
        memcpy(at, data, bytes);
    return at + bytes;
}

static void key_write(const struct hob_fused_program *program,
                      unsigned char *at)
{
    const uint8_t head[8] = {program->rank,        program->row_rank,
                             program->input_count, program->output_count,
                             program->step_count,  program->scalar_count};

    at = put(at, head, sizeof(head));
    at = put(at, program->inputs,
             program->input_count * sizeof(struct hob_fused_input));
    at = put(at, program->steps,
             program->step_count * sizeof(struct hob_fused_step));
    (void)put(at, program->outputs, program->output_count);
}

static uint64_t hash_of(const unsigned char *key, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* ---- the table ---- */

static struct fu_kernel *find_locked(struct fu_kernels *kernels,
                                     const struct fu_kernel *like)
{
    struct fu_kernel *kernel = kernels->lists[like->hash % LISTS];

    while (kernel && (kernel->hash != like->hash ||
                      kernel->key_bytes != like->key_bytes ||
                      memcmp(kernel->key, like->key, like->key_bytes) != 0))
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

static struct fu_kernel *kernel_new(const struct hob_fused_program *program)
{
    size_t bytes = key_size(program);
    struct fu_kernel *kernel = malloc(sizeof(*kernel) + bytes);

    if (!kernel)
        return NULL;
    memset(kernel, 0, sizeof(*kernel));
    kernel->key_bytes = (uint32_t)bytes;
    key_write(program, kernel->key);
    kernel->hash = hash_of(kernel->key, bytes);
    return kernel;
}

/* Compile what was not found; another thread may do the same meanwhile. */
static struct fu_kernel *make(struct fu_kernels *kernels,
                              const struct hob_fused_program *program,
                              struct fu_kernel *kernel)
{
    const struct fu_layer *layer = kernels->layer;
    const struct hob_host *host = layer->host;
    struct fu_kernel *other, *old = NULL;
    char *message = NULL;
    hob_status status = layer->fused->compile(layer->fused_instance, program,
                                              &kernel->compiled, &message);

    if (message)
        host->mem_free(host, message);
    if (status && status != HOB_ERR_UNSUPPORTED) {
        free(kernel);
        return NULL;
    }
    pthread_mutex_lock(&kernels->lock);
    other = find_locked(kernels, kernel);
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

struct fu_kernel *fu_kernel_get(struct fu_kernels *kernels,
                                const struct hob_fused_program *program)
{
    struct fu_kernel *like = kernel_new(program);
    struct fu_kernel *found;

    if (!like)
        return NULL;
    pthread_mutex_lock(&kernels->lock);
    found = find_locked(kernels, like);
    if (found) {
        kernels->hits++;
        found->users++;
        found->used = ++kernels->clock;
    }
    pthread_mutex_unlock(&kernels->lock);
    if (found) {
        free(like);
        return found;
    }
    return make(kernels, program, like);
}

void fu_kernels_count(struct fu_kernels *kernels, uint64_t *out_programs,
                      uint64_t *out_hits)
{
    pthread_mutex_lock(&kernels->lock);
    *out_programs = kernels->programs;
    *out_hits = kernels->hits;
    pthread_mutex_unlock(&kernels->lock);
}

void *fu_kernel_compiled(const struct fu_kernel *kernel)
{
    return kernel->compiled;
}

void fu_kernel_give(struct fu_kernels *kernels, struct fu_kernel *kernel)
{
    pthread_mutex_lock(&kernels->lock);
    kernel->users--;
    pthread_mutex_unlock(&kernels->lock);
}
