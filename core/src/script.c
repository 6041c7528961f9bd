/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include "dispatch.h"
#include "words.h"

#include <stdlib.h>

hob_status hob__script_begin(struct hob__script *script,
                             enum hob__script_use use)
{
    script->use = use;
    script->depth = 0;
    script->at = 0;
    script->calls = 0;
    script->differs = 0;
    if (use == HOB__SCRIPT_WRITE)
        script->count = 0;
    script->stand_ins = malloc(sizeof(*script->stand_ins));
    if (!script->stand_ins)
        return HOB_ERR_MEMORY;
    atomic_init(script->stand_ins, 1);
    return HOB_OK;
}

/* One of those that count is gone. */
static void drop_stand_in(void *context)
{
    atomic_uint *stand_ins = context;

    if (atomic_fetch_sub(stand_ins, 1) == 1)
        free(stand_ins);
}

uint32_t hob__script_end(struct hob__script *script)
{
    uint32_t left = 0;

    script->use = HOB__SCRIPT_UNUSED;
    if (script->stand_ins) {
        left = atomic_load(script->stand_ins) - 1;
        drop_stand_in(script->stand_ins);
    }
    script->stand_ins = NULL;
    return left;
}

void hob__script_release(struct hob__script *script)
{
    free(script->words);
    script->words = NULL;
    script->count = script->room = 0;
}

/* ---- words ---- */

static void put_head(struct hob__words *words, const struct hob_call *call)
{
    hob__words_put(words, call->op);
    hob__words_put(words, (uint64_t)(uintptr_t)call->device);
    hob__words_put_call(words, call);
}

/* Room for COUNT more words; where they begin. */
static uint64_t *reserve(struct hob__script *script, size_t count)
{
    size_t room = script->room ? script->room : 1024;
    uint64_t *words;

    while (room < script->count + count)
        room *= 2;
    if (room != script->room) {
        words = realloc(script->words, room * sizeof(*words));
        if (!words)
            return NULL;
        script->words = words;
        script->room = room;
    }
    return script->words + script->count;
}

hob_status hob__script_write(struct hob__script *script, struct hob_call *call,
                             int is_refused)
{
    const uint32_t ret_count = is_refused ? 0 : call->ret_count;
    struct hob__words words = {.has_places = 1};
    uint64_t *to;

    put_head(&words, call);
    to = reserve(script, words.count + 1 + ret_count);
    if (!to)
        return hob__call_fail(call, HOB_ERR_MEMORY, "no memory to record it");
    words = (struct hob__words){.to = to, .has_places = 1};
    put_head(&words, call);
    hob__words_put(&words, (uint64_t)is_refused);
    script->calls++;
    for (uint32_t i = 0; i < ret_count; i++) {
        const hob_tensor *tensor = call->rets[i].u.tensor;

        hob__words_put(&words,
                       tensor ? (uint64_t)(uintptr_t)tensor->view.data : 0);
        if (tensor && tensor->view.storage)
            tensor->view.storage->stamp = script->calls;
    }
    script->count += words.count;
    return HOB_OK;
}

/* What follows in the script, to be compared with. */
static struct hob__words next(const struct hob__script *script)
{
    return (struct hob__words){.like = script->words + script->at,
                               .room = script->count - script->at,
                               .has_places = 1};
}

/* Result INDEX of CALL, whose elements will be at DATA. */
static hob_status stand_in(const struct hob__script *script,
                           struct hob_call *call, uint32_t index, void *data)
{
    const struct hob_meta *meta = &call->metas[index];
    hob_tensor *tensor = hob__tensor_blank(call->device, meta);
    uint64_t bytes;

    if (!tensor)
        return HOB_ERR_MEMORY;
    call->rets[index].u.tensor = tensor;
    if (hob__meta_bytes(meta, &bytes) || !bytes)
        return HOB_OK;
    atomic_fetch_add(script->stand_ins, 1);
    hob__tensor_wrap(tensor, data, bytes, HOB__STORAGE_RECORDED, drop_stand_in,
                     script->stand_ins);
    tensor->view.storage->stamp = script->calls;
    return HOB_OK;
}

hob_status hob__script_follow(struct hob__script *script, struct hob_call *call)
{
    struct hob__words words = next(script);
    const uint64_t *data;
    hob_status status = HOB_OK;

    put_head(&words, call);
    if (words.differ || words.count >= words.room)
        script->differs = 1;
    if (script->differs)
        return hob__call_fail(call, HOB_ERR_STATE,
                              "it is not what was recorded");
    script->calls++;
    data = words.like + words.count + 1;
    script->at += words.count + 1;
    if (data[-1])
        return HOB_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < call->ret_count && !status; i++)
        if (hob__is_due(call, i))
            status = stand_in(script, call, i, (void *)(uintptr_t)data[i]);
    script->at += call->ret_count;
    if (status) {
        hob__drop_rets(call);
        script->differs = 1;
        return hob__call_fail(call, status, "no memory for a tensor handle");
    }
    return HOB_OK;
}

static void put_made(struct hob__words *words, hob_tensor *const *made,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hob__words_put(words, (uint64_t)(uintptr_t)made[i]->device);
        hob__words_put_tensor(words, made[i]);
    }
}

hob_status hob__script_made(struct hob__script *script, hob_tensor *const *made,
                            uint32_t count)
{
    struct hob__words words = {.has_places = 1};
    uint64_t *to;

    if (script->use == HOB__SCRIPT_FOLLOW) {
        words = next(script);
        put_made(&words, made, count);
        script->differs |= words.differ || words.count != words.room;
        return HOB_OK;
    }
    put_made(&words, made, count);
    to = reserve(script, words.count);
    if (!to)
        return HOB_ERR_MEMORY;
    words = (struct hob__words){.to = to, .has_places = 1};
    put_made(&words, made, count);
    script->count += words.count;
    return HOB_OK;
}
