/* SPDX-License-Identifier: Apache-2.0 */
#include "uses.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Uses while they are gathered. */
struct gathering {
    struct uses *uses;
    size_t capacity;
    int failed; /* no memory */
};

static void add(struct gathering *to, const char *name, int last)
{
    struct uses *uses = to->uses;

    if (uses->count == to->capacity) {
        size_t capacity = to->capacity * 2 + 64;
        struct use *grown = realloc(uses->items, capacity * sizeof(*grown));

        if (!grown) {
            to->failed = 1;
            return;
        }
        uses->items = grown;
        to->capacity = capacity;
    }
    uses->items[uses->count++] = (struct use){name, last};
}

/* JSON is a name, or a list of such. */
static void add_names(struct gathering *to, const cJSON *json, int last)
{
    const cJSON *item;

    if (cJSON_IsString(json))
        add(to, json->valuestring, last);
    else
        cJSON_ArrayForEach(item, json) add_names(to, item, last);
}

/* The member KEY of each object in LIST names a value. */
static void add_members(struct gathering *to, const cJSON *list,
                        const char *key)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
        add_names(to, cJSON_GetObjectItemCaseSensitive(item, key), INT_MAX);
}

static int by_name(const void *a, const void *b)
{
    const struct use *left = a;
    const struct use *right = b;

    return strcmp(left->name, right->name);
}

/* Leave one use of each name, the last. */
static void merge(struct uses *uses)
{
    size_t kept = 0;

    if (uses->count)
        qsort(uses->items, uses->count, sizeof(*uses->items), by_name);
    for (size_t i = 0; i < uses->count; i++) {
        struct use *last = kept ? &uses->items[kept - 1] : NULL;

        if (!last || strcmp(last->name, uses->items[i].name) != 0)
            uses->items[kept++] = uses->items[i];
        else if (last->last < uses->items[i].last)
            last->last = uses->items[i].last;
    }
    uses->count = kept;
}

hob_status uses_make(const struct program *program, struct uses *out_uses,
                     hob_error *error)
{
    struct gathering to = {out_uses, 0, 0};
    const cJSON *results = NULL;
    const cJSON *item;
    int number = 0;

    memset(out_uses, 0, sizeof(*out_uses));
    cJSON_ArrayForEach(item, program->steps)
    {
        number++;
        if (!cJSON_IsArray(item))
            continue;
        add_names(&to, cJSON_GetArrayItem(item, 2), number);
        results = cJSON_GetArrayItem(item, 0);
    }
    add_names(&to, results, INT_MAX); /* shown if there are no outputs */
    add_members(&to, program->outputs, "value");
    add_members(&to, program->outputs, "equal_to");
    add_members(&to, program->grads, "of");
    if (program->backward) {
        add(&to, program->backward, INT_MAX);
        add_members(&to, program->inputs, "name");
        add_members(&to, program->steps, "name");
    }
    merge(out_uses);
    return to.failed ? hob_error_set(error, HOB_ERR_MEMORY,
                                     "no memory for the uses of values")
                     : HOB_OK;
}

void uses_release(struct uses *uses)
{
    free(uses->items);
    memset(uses, 0, sizeof(*uses));
}

int uses_last(const struct uses *uses, const char *name)
{
    const struct use key = {name, 0};
    const struct use *found = uses->count
                                  ? bsearch(&key, uses->items, uses->count,
                                            sizeof(*uses->items), by_name)
                                  : NULL;

    return found ? found->last : 0;
}
