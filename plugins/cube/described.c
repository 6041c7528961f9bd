/* SPDX-License-Identifier: Apache-2.0 */
#include "described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)HOB_CUBE_MAX_BUFFERS <= (int)CUBE_MAX_BUFFERS &&
                   (int)HOB_CUBE_MAX_PARAMS == (int)CUBE_MAX_PARAMS &&
                   (int)HOB_CUBE_MAX_SHARED == (int)CUBE_MAX_SHARED &&
                   (int)HOB_CUBE_MAX_CONSTANTS == (int)CUBE_MAX_CONSTANTS,
               "lists are copied one to one");
_Static_assert((int)HOB_CUBE_I32 == (int)CUBE_I32 &&
                   (int)HOB_CUBE_F64 == (int)CUBE_F64 &&
                   (int)HOB_CUBE_INDEX == (int)CUBE_INDEX &&
                   (int)HOB_CUBE_VALUE_0 == (int)CUBE_VALUE,
               "types are copied as they are");
_Static_assert((int)HOB_CUBE_WRITTEN == (int)CUBE_WRITTEN &&
                   (int)HOB_CUBE_ATOMIC == (int)CUBE_ATOMIC,
               "flags too");

#define IS_LENGTH(count) (((count)&HOB_CUBE_LENGTH(0)) != 0)

static int is_word(const char *name)
{
    if (*name >= '0' && *name <= '9')
        return 0;
    for (const char *p = name; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9') || *p == '_'))
            return 0;
    return *name != '\0';
}

/* ---- lists: to PROGRAM, counted; 0 and REASON where one is bad ---- */

static int refuse(char reason[CUBE_REASON], const char *what, const char *name)
{
    snprintf(reason, CUBE_REASON, "%s \"%s\"", what, name);
    return 0;
}

static int take_buffers(struct cube_described *made, char reason[CUBE_REASON])
{
    const struct hob_cube_buffer *from = made->kernel.buffers;
    uint32_t i;

    for (i = 0; i < HOB_CUBE_MAX_BUFFERS && from[i].name; i++) {
        if (!is_word(from[i].name))
            return refuse(reason, "a buffer has no C name:", from[i].name);
        if (from[i].flags & ~(uint32_t)(CUBE_WRITTEN | CUBE_ATOMIC))
            return refuse(reason, "unknown flags of buffer", from[i].name);
        made->program.buffers[i].name = from[i].name;
        made->program.buffers[i].flags = from[i].flags;
    }
    made->buffer_count = i;
    return 1;
}

/* What only the dialect's prelude makes of a parameter. */
static int is_portable_param(const struct hob_cube_param *param,
                             uint32_t language)
{
    return param->type >= HOB_CUBE_INDEX || IS_LENGTH(param->count) ||
           (param->count && language == HOB_CUBE_CUDA);
}

static int take_params(struct cube_described *made, char reason[CUBE_REASON])
{
    const struct hob_cube_param *from = made->kernel.params;
    uint32_t i;

    for (i = 0; i < CUBE_MAX_PARAMS && from[i].name; i++) {
        if (!is_word(from[i].name))
            return refuse(reason, "a parameter has no C name:", from[i].name);
        if (from[i].type >= HOB_CUBE_VALUE_OF(made->buffer_count))
            return refuse(reason, "unknown type of parameter", from[i].name);
        if (IS_LENGTH(from[i].count)
                ? from[i].count - HOB_CUBE_LENGTH(0) >= made->constant_count
                : from[i].count > CUBE_MAX_PARAM_BYTES)
            return refuse(reason, "no such length for parameter", from[i].name);
        if (made->program.language &&
            is_portable_param(&from[i], made->kernel.language))
            return refuse(reason,
                          "the type or length is the portable dialect's alone, "
                          "of parameter",
                          from[i].name);
        made->program.params[i].name = from[i].name;
        made->program.params[i].type = from[i].type;
        made->program.params[i].count = from[i].count;
    }
    made->param_count = i;
    return 1;
}

static int take_constants(struct cube_described *made, char reason[CUBE_REASON])
{
    const char *const *from = made->kernel.constants;
    uint32_t i;

    for (i = 0; i < CUBE_MAX_CONSTANTS && from[i]; i++) {
        if (!is_word(from[i]))
            return refuse(reason, "a constant has no C name:", from[i]);
        made->program.constants[i] = from[i];
    }
    made->constant_count = i;
    return 1;
}

static int take_shared(struct cube_described *made, char reason[CUBE_REASON])
{
    const struct hob_cube_shared *from = made->kernel.shared;

    for (uint32_t i = 0; i < CUBE_MAX_SHARED && from[i].name; i++) {
        if (!is_word(from[i].name))
            return refuse(reason,
                          "a shared array has no C name:", from[i].name);
        if (!from[i].type || !from[i].length)
            return refuse(reason, "no type or length of shared array",
                          from[i].name);
        made->program.shared[i].name = from[i].name;
        made->program.shared[i].type = from[i].type;
        made->program.shared[i].length = from[i].length;
    }
    return 1;
}

/* ---- the rest ---- */

static int take_flags(struct cube_described *made, char reason[CUBE_REASON])
{
    static const struct {
        uint32_t from, to;
    } flags[] = {{HOB_CUBE_SUBGROUPS, CUBE_SUBGROUPS},
                 {HOB_CUBE_MATHS, CUBE_MATHS},
                 {HOB_CUBE_USES_I64, CUBE_USES_I64},
                 {HOB_CUBE_USES_F64, CUBE_USES_F64}};
    struct cube_program *program = &made->program;
    uint32_t rest = made->kernel.flags;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (rest & flags[i].from)
            program->flags |= flags[i].to;
        rest &= ~flags[i].from;
    }
    if (rest) {
        snprintf(reason, CUBE_REASON, "unknown flags %#x", rest);
        return 0;
    }
    if (made->kernel.accum) {
        program->flags |= CUBE_GROUPS;
        program->symbols[0] = "ACCUM";
    }
    if (program->language && (program->flags || program->shared[0].name)) {
        snprintf(reason, CUBE_REASON,
                 "flags, shared arrays and accum belong to the portable "
                 "dialect");
        return 0;
    }
    return 1;
}

static int take_code(struct cube_described *made, char reason[CUBE_REASON])
{
    static const uint8_t languages[] = {[HOB_CUBE_PORTABLE] = CUBE_PORTABLE,
                                        [HOB_CUBE_GLSL] = CUBE_ONLY_GLSL,
                                        [HOB_CUBE_SPIRV] = CUBE_ONLY_SPIRV,
                                        [HOB_CUBE_CUDA] = CUBE_ONLY_CUDA};
    static const uint32_t magic = 0x07230203;
    const struct hob_cube_kernel *kernel = &made->kernel;

    if (!kernel->name || !is_word(kernel->name))
        snprintf(reason, CUBE_REASON, "its name is no C identifier");
    else if (kernel->language > HOB_CUBE_CUDA)
        snprintf(reason, CUBE_REASON, "unknown language %u", kernel->language);
    else if (!kernel->code)
        snprintf(reason, CUBE_REASON, "there is no code");
    else if (kernel->language == HOB_CUBE_SPIRV &&
             (kernel->code_bytes < 20 || kernel->code_bytes % 4 ||
              memcmp(kernel->code, &magic, sizeof(magic)) != 0))
        snprintf(reason, CUBE_REASON, "the code is no SPIR-V");
    else if (kernel->language == HOB_CUBE_SPIRV && kernel->constants[0])
        snprintf(reason, CUBE_REASON,
                 "SPIR-V is compiled already: it takes no constants");
    else {
        made->program.text = kernel->code;
        made->program.text_bytes = kernel->code_bytes;
        made->program.language = languages[kernel->language];
        return 1;
    }
    return 0;
}

struct cube_described *cube_describe(const struct hob_cube_kernel *description,
                                     char reason[CUBE_REASON])
{
    const uint32_t size = description->struct_size < sizeof(*description)
                              ? description->struct_size
                              : (uint32_t)sizeof(*description);
    struct cube_described *made = calloc(1, sizeof(*made));

    reason[0] = '\0';
    if (!made)
        return NULL;
    memcpy(&made->kernel, description, size);
    made->key = description;
    made->program.name = made->kernel.name;
    if (take_code(made, reason) && take_buffers(made, reason) &&
        take_constants(made, reason) && take_params(made, reason) &&
        take_shared(made, reason) && take_flags(made, reason))
        return made;
    free(made);
    return NULL;
}
