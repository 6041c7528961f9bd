/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - registered optimisations: from the texts of manifests to the
 * tables of hob/ext/fusion.h.
 *
 *     relu(add(matmul(x, w), b))  ->  nn.linear_relu(x, w, b)
 *
 * A text is an op with its arguments: for a tensor another op or a name; for an
 * attribute a value, written as the default of a signature is, or a name with
 * '$' before it. Trailing arguments that are left out have their defaults, and
 * match nothing else. Ops are those of one tensor as a result that computes the
 * same each time from tensors and attributes.
 */
#ifndef HOB__PATTERN_H
#define HOB__PATTERN_H

#include "registry.h"

#include <hob/ext/fusion.h>

/*
 * Read REPLACE and WITH for the ops of REGISTRY. On failure *OUT_PATTERN is
 * NULL and ERROR says where and what; HOB_ERR_NOT_FOUND: an op is of an
 * extension that is not there. Free it with hob__pattern_free().
 */
HOB_MUST_CHECK hob_status hob__pattern_read(
    const struct hob__registry *registry, const char *replace, const char *with,
    struct hob_pattern **out_pattern, hob_error *error);
void hob__pattern_free(struct hob_pattern *pattern); /* accepts NULL */

/* All those of RUNTIME's manifests, the largest first. What cannot be read is
 * told in the log and left out. */
HOB_MUST_CHECK hob_status hob__patterns_init(hob_runtime *runtime,
                                             hob_error *error);
void hob__patterns_release(struct hob__registry *registry);

/* For the host table. */
const struct hob_pattern *hob__pattern_get(const struct hob_host *host,
                                           uint32_t index);

#endif
