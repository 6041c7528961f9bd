/* SPDX-License-Identifier: Apache-2.0 */
#include "again.h"

#include "lazy.h"
#include "process.h"
#include "runtime.h"

/* What has more tensors is not put off this way. */
enum { MOST_WORDS = 32 };

/* The state word of TENSOR at LEVEL; NULL also if it waits for a higher one. */
static inline void *word_of(const hob_tensor *tensor, int32_t level)
{
    return hob__tensor_lazy(tensor) > level ? NULL
                                            : hob__tensor_state(tensor, level);
}

/* Put the state words of LEVEL of all tensors among ARGS into OUT: whether all
 * are there. *OUT_COUNT is how many. */
static inline int find_words(const hob_value *args, uint32_t arg_count,
                             int32_t level, void **out, uint32_t *out_count)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < arg_count; i++) {
        if (args[i].tag == HOB_TAG_TENSOR) {
            if (count == MOST_WORDS)
                return 0;
            out[count] = word_of(args[i].u.tensor, level);
            if (!out[count++])
                return 0;
        } else if (args[i].tag == HOB_TAG_TENSORS) {
            if (args[i].count > MOST_WORDS - count)
                return 0;
            for (uint32_t k = 0; k < args[i].count; k++) {
                out[count] = word_of(args[i].u.tensors[k], level);
                if (!out[count++])
                    return 0;
            }
        }
    }
    *out_count = count;
    return 1;
}

/* Whether some tensor among ARGS has a state word of LEVEL. */
static int has_word(const hob_value *args, uint32_t arg_count, int32_t level)
{
    for (uint32_t i = 0; i < arg_count; i++) {
        const int is_list = args[i].tag == HOB_TAG_TENSORS;
        hob_tensor *const *tensors =
            is_list ? args[i].u.tensors : &args[i].u.tensor;
        const uint32_t count =
            is_list ? args[i].count : args[i].tag == HOB_TAG_TENSOR;

        for (uint32_t k = 0; k < count; k++)
            if (hob__tensor_state(tensors[k], level))
                return 1;
    }
    return 0;
}

/* The first level from LEVEL down whose layer may have something to do for the
 * call; 0 is the base. */
static int32_t busy_level(const struct hob__op *op, const hob_value *args,
                          uint32_t arg_count,
                          const struct hob__known_call *known, int32_t level)
{
    while (level > 0 && known->device->at[level]->needs_state &&
           !op->is_extension &&
           (!(known->levels >> (level - 1) & 1) ||
            !has_word(args, arg_count, level)))
        level--;
    return level;
}

/* The level that would be asked for the call if its layer can put it off so;
 * else 0. */
static inline int32_t asked_level(const hob_scope *scope,
                                  const struct hob__op *op,
                                  const hob_value *args, uint32_t arg_count,
                                  const struct hob__known_call *known)
{
    hob_device *const *at = known->device->at;
    int32_t level = known->device->depth;

    if (level > scope->level)
        level = scope->level;
    if (at[level]->needs_state)
        level = busy_level(op, args, arg_count, known, level);
    return level > 0 && at[level]->decorator->again ? level : 0;
}

/* Whether nothing but the layers has a say in what becomes of the call, and
 * SCOPE has room for what it gives. */
static inline int is_plain(const hob_scope *scope, const struct hob__op *op,
                           const struct hob__known_call *known)
{
    hob_runtime *runtime = scope->runtime;

    return known->is_bound && !known->last_use &&
           !(op->flags & HOB__OP_RANDOM) &&
           scope->owned_capacity - scope->owned_count >=
               op->signature.result_count &&
           scope->depth < HOB__CALL_DEPTH &&
           !atomic_load_explicit(&runtime->recorder, memory_order_relaxed) &&
           hob__process_forks() ==
               atomic_load_explicit(&runtime->forks, memory_order_relaxed);
}

static void drop(hob_tensor **tensors, uint32_t count)
{
    while (count)
        hob__tensor_unref(tensors[--count]);
}

/* A handle in OUT for each result, without a state word; 0 without memory, or
 * if one is absent. */
static inline int make_handles(hob_device *device, int32_t level,
                               const struct hob__results *results,
                               uint32_t count, hob_tensor **out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] =
            results->metas[i].dtype == HOB_DTYPE_NONE
                ? NULL
                : hob__tensor_waiting(device, &results->metas[i], level, NULL);
        if (!out[i]) {
            drop(out, i);
            return 0;
        }
        hob__tensor_set_form(out[i], results->expected[i].form);
    }
    return 1;
}

int hob__again(hob_scope *scope, const struct hob__op *op,
               const hob_value *args, uint32_t arg_count,
               const struct hob__known_call *known,
               const struct hob__results *results, hob_tensor **out)
{
    const int32_t level = asked_level(scope, op, args, arg_count, known);
    const uint32_t count = op->signature.result_count;
    void *words[MOST_WORDS], *ret_words[HOB_MAX_RESULTS];
    hob_tensor *rets[HOB_MAX_RESULTS];
    struct hob_again again;
    const hob_device *layer;

    if (!level || !is_plain(scope, op, known) ||
        !find_words(args, arg_count, level, words, &again.word_count) ||
        !make_handles(known->device, level, results, count, rets))
        return 0;
    again.struct_size = sizeof(again);
    again.reserved = 0;
    again.kind = known->kind;
    again.index = scope->calls + 1;
    again.scope = hob__scope_of_program(scope);
    again.words = words;
    again.rets = rets;
    again.ret_count = count;
    layer = known->device->at[level];
    if (!layer->decorator->again(layer->instance, &again, ret_words)) {
        drop(rets, count);
        return 0;
    }
    scope->calls++;
    for (uint32_t i = 0; i < count; i++) {
        rets[i]->state[level - 1] = ret_words[i];
        hob__scope_put(scope, rets[i]);
        out[i] = rets[i];
    }
    return 1;
}
