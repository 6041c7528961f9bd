/* SPDX-License-Identifier: Apache-2.0 */
#include "form.h"

/* What begins no key of a call. */
#define MARK (UINT64_C(1) << 63)

/* A form has a bit that no tag of a value has; see known.c. */
#define FORM (UINT64_C(1) << 16)
enum { NUMBER_AT = 17 };

uint64_t hob__form_of(struct hob__known *known, const struct hob_meta *meta)
{
    uint64_t words[3 + HOB_MAX_RANK];
    struct hob__known_maker maker = {
        .at = words, .end = words + sizeof(words) / sizeof(words[0])};
    struct hob__known_slot *slot;
    uint64_t form, number;

    hob__known_put(&maker, MARK | meta->dtype | (uint64_t)meta->rank << 8);
    hob__known_put(&maker, meta->scheme);
    for (uint32_t i = 0; i < meta->rank; i++)
        hob__known_put(&maker, (uint64_t)meta->shape[i]);
    for (uint32_t i = 0; i < 2; i++) {
        hob__known_reader at;
        uint64_t version;

        slot = hob__known_place(known, maker.hash, i);
        if (!hob__known_begins(slot, words, maker.at, &at, &version))
            continue;
        form = hob__known_read(&at);
        if (hob__known_is_still(slot, version))
            return form;
    }
    number = hob__known_number(known);
    form = number << NUMBER_AT | FORM;
    slot = hob__known_choose(known, maker.hash, number);
    *maker.at++ = form;
    hob__known_write(slot, words, (uint32_t)(maker.at - words));
    return form;
}

uint64_t hob__form_give(struct hob__known *known, hob_tensor *tensor)
{
    const struct hob_meta meta = hob__tensor_meta(tensor);
    const uint64_t form = hob__form_of(known, &meta);

    /* Another thread may give it one as well: either will do. */
    atomic_store_explicit(&tensor->form, form, memory_order_relaxed);
    return form;
}
