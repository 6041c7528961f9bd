/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_backend.h - two linked-in backends with memory and nothing else, so
 * that tests of the core need no plugin file.
 *
 * "plain" computes in host memory. "apart" hides that its memory is the
 * host's, as a GPU would: the core must upload and download. Both copy
 * strided tensors, as every backend must, and no op more.
 */
#ifndef PLAIN_BACKEND_H
#define PLAIN_BACKEND_H

#include <hob/ext/plugin.h>
#include <hob/hob.h>

/* For hob_runtime_options.static_plugins: two of them. */
extern const struct hob_static_plugin plain_backends[2];

/* Open a runtime with the plain backends only, with the report policy. */
HOB_MUST_CHECK hob_status plain_runtime_open(hob_runtime **out_runtime,
                                             hob_error *error);

#endif
