/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the attributes of ops that lay windows over planes. Index 0 is the
 * height, 1 the width.
 */
#ifndef CUBE_WINDOW_H
#define CUBE_WINDOW_H

#include "runtime.h"

/* List argument INDEX, one or two numbers; FALLBACK for an empty one. */
static inline void cube_window_pair(const struct hob_call *call, uint32_t index,
                                    const int64_t fallback[2], int64_t out[2])
{
    const hob_value *list = &call->args[index];
    const uint32_t count = list->tag == HOB_TAG_I64S ? list->count : 0;

    out[0] = count ? list->u.i64s[0] : fallback[0];
    out[1] = count ? list->u.i64s[count - 1] : fallback[1];
}

#endif
