/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glslang_table.h - what hob-glslang.so offers to the plugin.
 *
 * glslang is C++ with static constructors, so it lives in a library of its own
 * that is opened for the first kernel that is on no disk. Both are built and
 * installed together: the version only finds out mixed installations.
 */
#ifndef CVK_GLSLANG_TABLE_H
#define CVK_GLSLANG_TABLE_H

#include <stdint.h>

enum { CVK_GLSLANG_VERSION = 1 };

#define CVK_GLSLANG_SYMBOL "hob_glslang_table"

struct cvk_glslang_result {
    uint32_t *words; /* NULL if there are errors */
    uint64_t bytes;
    char *messages; /* NULL: none, or no memory for them */
};

struct cvk_glslang {
    uint32_t struct_size;
    uint32_t version;
    /* Call once before compile; 0 on failure. */
    int (*begin)(void);
    /* TEXT, GLSL of a compute shader, to SPIR-V 1.5 for Vulkan 1.2. Any
     * thread. Returns 0 where RESULT->words are NULL. */
    int (*compile)(const char *text, struct cvk_glslang_result *result);
    void (*release)(struct cvk_glslang_result *result);
};

#endif
