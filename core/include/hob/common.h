/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/common.h - what every Hob header needs: attributes and C++ guards.
 */
#ifndef HOB_COMMON_H
#define HOB_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HOB_BEGIN_DECLS extern "C" {
#define HOB_END_DECLS }
#else
#define HOB_BEGIN_DECLS
#define HOB_END_DECLS
#endif

/* Exported by libhob, or, in a plugin, the one exported entry. */
#if defined(_WIN32)
#define HOB_EXPORT __declspec(dllexport)
#else
#define HOB_EXPORT __attribute__((visibility("default")))
#endif
#define HOB_API HOB_EXPORT

#if defined(__GNUC__) || defined(__clang__)
#define HOB_MUST_CHECK __attribute__((warn_unused_result))
#define HOB_PRINTF(text, first)                                                \
    __attribute__((__format__(__printf__, text, first)))
#else
#define HOB_MUST_CHECK
#define HOB_PRINTF(text, first)
#endif

#endif
