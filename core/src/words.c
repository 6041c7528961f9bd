/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <string.h>

void hob__words_put_tensor(struct hob__words *words, const hob_tensor *tensor)
{
    const struct hob_view *view = &tensor->view;

    if (words->has_places) {
        hob__words_put(words, view->storage ? view->storage->stamp : 0);
        hob__words_put(words, (uint64_t)(uintptr_t)view->data);
    }
    hob__words_put(words, view->dtype | (uint64_t)view->rank << 8 |
                              (uint64_t)(view->flags & HOB_VIEW_CONTIGUOUS)
                                  << 16 |
                              (uint64_t)view->scheme << 32);
    for (uint32_t i = 0; i < view->rank; i++) {
        hob__words_put(words, (uint64_t)view->shape[i]);
        hob__words_put(words, (uint64_t)view->strides[i]);
    }
}

static void put_value(struct hob__words *words, const hob_value *value)
{
    uint64_t word = 0;

    hob__words_put(words, value->tag | (uint64_t)value->count << 8);
    switch (value->tag) {
    case HOB_TAG_TENSOR:
        hob__words_put_tensor(words, value->u.tensor);
        break;
    case HOB_TAG_TENSORS:
        for (uint32_t i = 0; i < value->count; i++)
            hob__words_put_tensor(words, value->u.tensors[i]);
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        for (uint32_t i = 0; i < value->count; i++)
            hob__words_put(words, (uint64_t)value->u.i64s[i]);
        break;
    case HOB_TAG_STR:
        for (uint32_t i = 0; i < value->count; i += 8) {
            size_t rest = value->count - i;

            word = 0;
            memcpy(&word, value->u.str + i, rest < 8 ? rest : 8);
            hob__words_put(words, word);
        }
        break;
    case HOB_TAG_ABSENT:
        break;
    default:
        hob__words_put(words, value->u.u64); /* a double by its bits */
        break;
    }
}

void hob__words_put_call(struct hob__words *words, const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->arg_count; i++)
        put_value(words, &call->args[i]);
}
