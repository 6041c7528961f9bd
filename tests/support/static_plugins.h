/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static_plugins.h - small plugins that are linked into tests of the core.
 *
 *   calc    a backend with kernels for add (f32 only), full and contiguous
 *   other   the same under another name
 *   flat    a backend whose contiguous wants contiguous arguments
 *   idle    a decorator that passes everything on; option "mode"
 *   greedy  a decorator that always has something to do and never a rule
 *   sloppy  a decorator that says it has added, and did not; for other ops it
 *           leaves a message and then goes on
 *   broken  a backend whose table has the wrong magic
 *   hollow  an extension whose op lists calc and has nothing for it
 *   ext     an extension: t.only_other (kernel for other alone), t.double
 *           (a body, for calc and greedy), t.make (no tensor, two backends),
 *           t.astray (a body whose result is on another device)
 */
#ifndef TESTS_STATIC_PLUGINS_H
#define TESTS_STATIC_PLUGINS_H

#include <hob/hob.h>

/* All of the above, for hob_runtime_options.static_plugins. */
extern const struct hob_static_plugin test_static_plugins[];
extern const uint32_t test_static_plugin_count;

/* Blocks of memory that calc and other have handed out and not got back. */
int64_t test_live_blocks(void);

/* Times that a calc kernel was called since the start. */
int64_t test_kernel_calls(void);

#endif
