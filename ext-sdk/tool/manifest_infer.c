/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_infer.c - the core's parser of manifests, without built-in ops.
 *
 * The core's own file of this name asks the table of built-in ops whether an
 * infer function fits. That table is made by this program, so it cannot be
 * part of it. Here the generator checks signatures, before the manifest is
 * parsed; whether an infer function fits, "hob install" and the loader say.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest_read.h"

hob_status hob__reader_signature(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op)
{
    (void)reader;
    (void)object;
    (void)op;
    return HOB_OK;
}
