/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null_plugin.h - a linked-in backend "null" and an extension for it, with
 * which the cost of a call is measured apart from its work.
 *
 * The built-in op add and the extension's op bench.add run the very same
 * kernel here, which adds one float.
 */
#ifndef BENCH_NULL_PLUGIN_H
#define BENCH_NULL_PLUGIN_H

#include <hob/hob.h>

/* For hob_runtime_options.static_plugins. */
extern const struct hob_static_plugin null_plugins[2];

/* As hob-sdk gen writes the wrapper of an extension's op. */
static inline hob_tensor *bench_add(hob_scope *scope, struct hob_op_ref *ref,
                                    hob_tensor *lhs, hob_tensor *rhs)
{
    hob_value args[2];

    args[0] = hob_value_tensor(lhs);
    args[1] = hob_value_tensor(rhs);
    return hob_scope_host(scope)->call1(scope, hob_op_resolve(scope, ref), args,
                                        2);
}

#endif
