/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glslang_library.c - hob-glslang.so: GLSL to SPIR-V, through glslang's own C
 * interface.
 */
#include "glslang_table.h"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>

#include <stdlib.h>
#include <string.h>

extern const struct cvk_glslang hob_glslang_table;

static int begin(void)
{
    return glslang_initialize_process();
}

/* Where the language leaves it open, values are computed as they are written:
 * what is stored and computed again must be the same. */
static const glslang_messages_t rules =
    GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT;

static char *copy_text(const char *text)
{
    return text && *text ? strdup(text) : NULL;
}

static void generate(glslang_program_t *program,
                     struct cvk_glslang_result *result)
{
    glslang_spv_options_t options = {
        /* The driver has its own. That of glslang, which is for stripping
         * names too, may be older than the extensions that modules use. */
        .disable_optimizer = true,
    };
    const char *messages;
    size_t words;

    glslang_program_SPIRV_generate_with_options(program, GLSLANG_STAGE_COMPUTE,
                                                &options);
    messages = glslang_program_SPIRV_get_messages(program);
    words = glslang_program_SPIRV_get_size(program);
    if (messages && *messages)
        result->messages = copy_text(messages);
    if (!words)
        return;
    result->words = malloc(words * sizeof(*result->words));
    if (!result->words)
        return;
    glslang_program_SPIRV_get(program, result->words);
    result->bytes = words * sizeof(*result->words);
}

static void link_shader(glslang_shader_t *shader,
                        struct cvk_glslang_result *result)
{
    glslang_program_t *program = glslang_program_create();

    if (!program)
        return;
    glslang_program_add_shader(program, shader);
    if (glslang_program_link(program, rules))
        generate(program, result);
    else
        result->messages = copy_text(glslang_program_get_info_log(program));
    glslang_program_delete(program);
}

static int compile(const char *text, struct cvk_glslang_result *result)
{
    glslang_input_t input = {
        .language = GLSLANG_SOURCE_GLSL,
        .stage = GLSLANG_STAGE_COMPUTE,
        .client = GLSLANG_CLIENT_VULKAN,
        .client_version = GLSLANG_TARGET_VULKAN_1_2,
        .target_language = GLSLANG_TARGET_SPV,
        .target_language_version = GLSLANG_TARGET_SPV_1_5,
        .code = text,
        .default_version = 460,
        .default_profile = GLSLANG_NO_PROFILE,
        .messages = rules,
        .resource = glslang_default_resource(),
    };
    glslang_shader_t *shader = glslang_shader_create(&input);

    memset(result, 0, sizeof(*result));
    if (!shader)
        return 0;
    if (glslang_shader_preprocess(shader, &input) &&
        glslang_shader_parse(shader, &input))
        link_shader(shader, result);
    else
        result->messages = copy_text(glslang_shader_get_info_log(shader));
    glslang_shader_delete(shader);
    return result->words != NULL;
}

static void release(struct cvk_glslang_result *result)
{
    free(result->words);
    free(result->messages);
    memset(result, 0, sizeof(*result));
}

__attribute__((visibility("default")))
const struct cvk_glslang hob_glslang_table = {
    .struct_size = sizeof(struct cvk_glslang),
    .version = CVK_GLSLANG_VERSION,
    .begin = begin,
    .compile = compile,
    .release = release,
};
