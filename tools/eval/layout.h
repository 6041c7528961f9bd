/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - how the inputs of a program lie in memory.
 *
 * An op must not care; so a program that passes can be run with each of them.
 */
#ifndef TOOLS_EVAL_LAYOUT_H
#define TOOLS_EVAL_LAYOUT_H

#include <cjson/cJSON.h>
#include <hob/hob.h>

enum layout {
    LAYOUT_CONTIGUOUS,
    LAYOUT_REVERSED,   /* every stride is negative */
    LAYOUT_TRANSPOSED, /* the first dimension is the innermost */
    LAYOUT_GAPS,       /* every second element; others between them */
    LAYOUT_OFFSET,     /* contiguous, one element after the aligned place */
    LAYOUT_COUNT_
};

/* What messages and --help say of them. */
#define LAYOUT_NAMES "contiguous, reversed, transposed, gaps or offset"

/* The layout called NAME, or LAYOUT_COUNT_. */
enum layout layout_from_name(const char *name);

/* Read the member "layout" of JSON, or leave *LAYOUT as it is. Fails with
 * HOB_ERR_FORMAT. */
HOB_MUST_CHECK hob_status layout_read(const cJSON *json, enum layout *layout,
                                      hob_error *error);

/* A view of X's elements in its shape, laid out as LAYOUT, owned by SCOPE.
 * Errors are those of SCOPE. */
hob_tensor *layout_apply(hob_scope *scope, hob_tensor *x, enum layout layout);

#endif
