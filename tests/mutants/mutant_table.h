/* SPDX-License-Identifier: Apache-2.0 */
/* mutant_table.h - the tables of a mutant; see mutant.h. */
#ifndef HOB_TEST_MUTANT_TABLE_H
#define HOB_TEST_MUTANT_TABLE_H

#include "mutant.h"

#ifndef MUTANT_EXECUTE
#define MUTANT_EXECUTE mutant_execute
#endif
#ifndef MUTANT_BODY
#define MUTANT_BODY mutant_body
#endif
#ifndef MUTANT_INFER
#define MUTANT_INFER mutant_infer
#endif
#ifndef MUTANT_BACKWARD
#define MUTANT_BACKWARD mutant_backward
#endif
#ifndef MUTANT_SIGNATURE
#define MUTANT_SIGNATURE "(x: Float) -> x"
#endif
#ifndef MUTANT_FLAGS
#define MUTANT_FLAGS 0
#endif
#ifndef MUTANT_IMPLS
#define MUTANT_IMPLS 2
#endif
#ifndef MUTANT_BACKWARD_SIZE
#define MUTANT_BACKWARD_SIZE sizeof(struct hob_backward)
#endif
#ifndef MUTANT_PREPARE
#define MUTANT_PREPARE NULL
#endif
#ifndef MUTANT_LAYER
#define MUTANT_LAYER NULL
#endif

static const uint32_t dtypes[] = {
    HOB_DTYPE_BIT(HOB_DTYPE_F32) | HOB_DTYPE_BIT(HOB_DTYPE_F64), HOB_MASK_INT};

static const struct hob_entry entry = {.op = "m.twice",
                                       .signature = MUTANT_SIGNATURE,
                                       .dtypes = dtypes,
                                       .dtype_count = 2,
                                       .flags = MUTANT_FLAGS,
                                       .prepare = MUTANT_PREPARE,
                                       .execute = MUTANT_EXECUTE};

static const struct hob_backward backward = {
    .struct_size = MUTANT_BACKWARD_SIZE, .backward = MUTANT_BACKWARD};

static const struct hob_op_impl impls[] = {
    {.selector = "flex", .entry = &entry},
    {.selector = "autodiff", .backward = &backward, .layer = MUTANT_LAYER}};

static const struct hob_extension_op ops[] = {{.name = "m.twice",
                                               .signature = MUTANT_SIGNATURE,
                                               .infer = MUTANT_INFER,
                                               .body = MUTANT_BODY,
                                               .impls = impls,
                                               .impl_count = MUTANT_IMPLS}};

static const struct hob_extension extension = {HOB_EXTENSION_INIT_HEAD,
                                               .op_count = 1, .ops = ops};

static const struct hob_plugin table = {HOB_PLUGIN_INIT_HEAD, .id = "mutant",
                                        .version = "1.0.0",
                                        .extension = &extension};

#ifndef MUTANT_ENTRY
const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
#endif

#endif
