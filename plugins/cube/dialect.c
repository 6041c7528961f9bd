/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect.h"

#include "buffers.h"
#include "text.h"
#include "texts.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    uint32_t size;
    const char *name; /* in the dialect */
} types[] = {
    [CUBE_I32] = {4, "int"},   [CUBE_U32] = {4, "uint"},
    [CUBE_I64] = {8, "i64"},   [CUBE_U64] = {8, "u64"},
    [CUBE_F32] = {4, "float"}, [CUBE_F64] = {8, "double"},
};

/* ---- parameters ---- */

static uint32_t round_up(uint32_t value, uint32_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

void cube_variant_init(struct cube_variant *variant,
                       const struct cube_program *program)
{
    memset(variant, 0, sizeof(*variant));
    variant->program = program;
    memset(variant->widths, 1, sizeof(variant->widths));
}

enum cube_type cube_value_type(uint32_t dtype)
{
    static const uint8_t values[HOB_DTYPE_COUNT_] = {
        [HOB_DTYPE_F64] = CUBE_F64,  [HOB_DTYPE_F32] = CUBE_F32,
        [HOB_DTYPE_F16] = CUBE_F32,  [HOB_DTYPE_BF16] = CUBE_F32,
        [HOB_DTYPE_I64] = CUBE_I64,  [HOB_DTYPE_I32] = CUBE_I32,
        [HOB_DTYPE_I16] = CUBE_I32,  [HOB_DTYPE_I8] = CUBE_I32,
        [HOB_DTYPE_U64] = CUBE_U64,  [HOB_DTYPE_U32] = CUBE_U32,
        [HOB_DTYPE_U16] = CUBE_U32,  [HOB_DTYPE_U8] = CUBE_U32,
        [HOB_DTYPE_BOOL] = CUBE_U32,
    };

    return values[dtype];
}

enum cube_type cube_type_of(const struct cube_variant *variant, uint32_t type)
{
    if (type >= CUBE_VALUE)
        return cube_value_type(variant->dtypes[type - CUBE_VALUE]);
    if (type == CUBE_INDEX)
        return variant->is_wide ? CUBE_I64 : CUBE_I32;
    return type;
}

uint32_t cube_type_size(enum cube_type type)
{
    return types[type].size;
}

const char *cube_type_name(enum cube_type type)
{
    return types[type].name;
}

uint32_t cube_param_count(const struct cube_variant *variant,
                          const struct cube_param *param)
{
    if (param->count & CUBE_LENGTH(0))
        return (uint32_t)variant->constants[param->count & 0xff];
    return param->count ? param->count : 1;
}

/* Whether VARIANT has buffer INDEX. */
static int has_buffer(const struct cube_variant *variant, uint32_t index)
{
    return variant->dtypes[index] != HOB_DTYPE_NONE;
}

/* COUNT more numbers at AT, joined to those before where they are alike. */
static void add_run(struct cube_layout *layout, uint32_t at,
                    enum cube_type type, uint32_t count)
{
    struct cube_number_run *last = &layout->runs[layout->run_count];

    if (layout->run_count && last[-1].type == (uint32_t)type &&
        last[-1].at + last[-1].count * cube_type_size(type) == at) {
        last[-1].count = (uint16_t)(last[-1].count + count);
        return;
    }
    *last = (struct cube_number_run){(uint16_t)at, (uint16_t)count, type};
    layout->run_count++;
}

void cube_layout_init(struct cube_layout *layout,
                      const struct cube_variant *variant)
{
    const struct cube_program *program = variant->program;
    uint32_t at = 0;

    memset(layout, 0, sizeof(*layout));
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name;
         i++) {
        layout->buffers[i] = (uint16_t)at;
        at += has_buffer(variant, i) || program->language ? 8 : 0;
    }
    for (uint32_t i = 0; i < CUBE_MAX_PARAMS && program->params[i].name; i++) {
        const struct cube_param *param = &program->params[i];
        const enum cube_type type = cube_type_of(variant, param->type);
        const uint32_t size = cube_type_size(type);
        const uint32_t count = cube_param_count(variant, param);

        at = count ? round_up(at, size) : at;
        layout->params[i] = (uint16_t)at;
        if (count)
            add_run(layout, at, type, count);
        at += size * count;
    }
    layout->bytes = round_up(at, program->language ? 4 : 8);
}

static void add_params(struct cube_text *text, const struct cube_target *target,
                       const struct cube_variant *variant)
{
    const struct cube_program *program = variant->program;
    const int is_glsl = target->language == CUBE_GLSL;
    struct cube_layout layout;
    int is_far;

    cube_layout_init(&layout, variant);
    is_far = is_glsl && layout.bytes > target->param_bytes;
    if (!is_glsl)
        cube_text_add(text, "struct cube_params_of {\n");
    else if (is_far)
        cube_text_add(text, "layout(buffer_reference, std430, "
                            "buffer_reference_align = 16) readonly buffer "
                            "cube_params_of {\n");
    else
        cube_text_add(text, "layout(push_constant, std430) uniform "
                            "cube_params_of {\n");
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name; i++)
        if (has_buffer(variant, i))
            cube_text_addf(text, "    %s at_%s;\n",
                           is_glsl ? "cube_u32" : "void *",
                           program->buffers[i].name);
    for (uint32_t i = 0; i < CUBE_MAX_PARAMS && program->params[i].name; i++) {
        const struct cube_param *param = &program->params[i];

        const uint32_t count = cube_param_count(variant, param);

        if (count == 0)
            continue;
        cube_text_addf(text, "    %s p_%s",
                       types[cube_type_of(variant, param->type)].name,
                       param->name);
        if (param->count)
            cube_text_addf(text, "[%u]", count);
        cube_text_add(text, ";\n");
    }
    cube_text_add(text, is_glsl && !is_far ? "} cube_params;\n" : "};\n");
    if (is_far)
        cube_text_add(text,
                      "layout(push_constant, std430) uniform cube_push {\n"
                      "    cube_params_of cube_params;\n};\n");
}

/* Members have other names than the macros: glslang expands a name again that
 * came out of ##. */
static void add_param_names(struct cube_text *text,
                            const struct cube_program *program)
{
    for (uint32_t i = 0; i < CUBE_MAX_PARAMS && program->params[i].name; i++)
        cube_text_addf(text, "#define %s cube_params.p_%s\n",
                       program->params[i].name, program->params[i].name);
}

/* ---- what the program needs ---- */

static int has_symbol(const struct cube_variant *variant, const char *word)
{
    for (uint32_t i = 0; i < CUBE_MAX_SYMBOLS; i++)
        if (variant->symbols[i] && strcmp(variant->symbols[i], word) == 0)
            return 1;
    return 0;
}

static int needs(const struct cube_variant *variant, uint32_t flag,
                 uint32_t dtype_a, uint32_t dtype_b, uint32_t type_a,
                 uint32_t type_b)
{
    const struct cube_program *program = variant->program;

    if (program->flags & flag)
        return 1;
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name; i++)
        if (variant->dtypes[i] == dtype_a || variant->dtypes[i] == dtype_b)
            return 1;
    for (uint32_t i = 0; i < CUBE_MAX_PARAMS && program->params[i].name; i++)
        if (cube_param_count(variant, &program->params[i]) &&
            (program->params[i].type == type_a ||
             program->params[i].type == type_b))
            return 1;
    return 0;
}

static int needs_f64(const struct cube_variant *variant)
{
    return has_symbol(variant, "double") ||
           needs(variant, CUBE_USES_F64, HOB_DTYPE_F64, HOB_DTYPE_F64, CUBE_F64,
                 CUBE_F64);
}

/* maths64.cube computes in both. */
static int needs_maths64(const struct cube_variant *variant)
{
    return (variant->program->flags & CUBE_MATHS) && needs_f64(variant);
}

static int needs_i64(const struct cube_variant *variant)
{
    return variant->is_wide || needs_maths64(variant) ||
           has_symbol(variant, "i64") || has_symbol(variant, "u64") ||
           needs(variant, CUBE_USES_I64, HOB_DTYPE_I64, HOB_DTYPE_U64, CUBE_I64,
                 CUBE_U64);
}

/* Groups of a cluster; 1: there are none. */
static int32_t cluster_of(const struct cube_variant *variant)
{
    const struct cube_program *program = variant->program;

    for (uint32_t i = 0; i < CUBE_MAX_CONSTANTS && program->constants[i]; i++)
        if ((program->flags & CUBE_CLUSTERS) &&
            strcmp(program->constants[i], "CLUSTER") == 0)
            return variant->constants[i];
    return 1;
}

/* Whether VARIANT has elements of f16 and TARGET rounds to them by itself. */
static int rounds_f16(const struct cube_target *target,
                      const struct cube_variant *variant)
{
    for (uint32_t i = 0; target->rounds_f16 && i < CUBE_MAX_BUFFERS; i++)
        if (variant->dtypes[i] == HOB_DTYPE_F16)
            return 1;
    return 0;
}

static void add_needs(struct cube_text *text, const struct cube_target *target,
                      const struct cube_variant *variant)
{
    cube_text_addf(
        text,
        "#define CUBE_NEEDS_I64 %d\n#define CUBE_NEEDS_F64 %d\n"
        "#define CUBE_NEEDS_SUBGROUPS %d\n#define CUBE_WIDE %d\n"
        "#define CUBE_NEEDS_MATRICES %d\n#define CUBE_NEEDS_CLUSTERS %d\n"
        "#define CUBE_CUDA %d\n#define CUBE_KEEPS_NAN %d\n"
        "#define CUBE_ROUNDS_F16 %d\n#define CUBE_KEEPS_DENORMALS %d\n"
        "#define CUBE_KEEPS_LOOPS %d\n"
        "#define GROUP_SIZE %u\n#define SUBGROUP_SIZE %u\n",
        needs_i64(variant), needs_f64(variant),
        (variant->program->flags & (CUBE_SUBGROUPS | CUBE_GROUPS)) != 0,
        variant->is_wide != 0, (variant->program->flags & CUBE_MATRICES) != 0,
        cluster_of(variant) > 1,
        target->language == CUBE_CUDA, target->keeps_nan != 0,
        rounds_f16(target, variant), target->keeps_denormals != 0,
        target->keeps_loops && (variant->program->flags & CUBE_TILES),
        variant->group_size, target->subgroup_size);
}

/* Numbers and words that the program names. */
static void add_constants(struct cube_text *text,
                          const struct cube_variant *variant)
{
    const struct cube_program *program = variant->program;

    for (uint32_t i = 0; i < CUBE_MAX_CONSTANTS && program->constants[i]; i++)
        cube_text_addf(text, "#define %s (%d)\n", program->constants[i],
                       variant->constants[i]);
    for (uint32_t i = 0; i < CUBE_MAX_SYMBOLS && program->symbols[i]; i++)
        if (variant->symbols[i])
            cube_text_addf(text, "#define %s %s\n", program->symbols[i],
                           variant->symbols[i]);
}

static void add_shared(struct cube_text *text, const struct cube_target *target,
                       const struct cube_program *program)
{
    for (uint32_t i = 0; i < CUBE_MAX_SHARED && program->shared[i].name; i++)
        cube_text_addf(text, "%s %s %s[%s];\n",
                       target->language == CUBE_GLSL ? "shared" : "__shared__",
                       program->shared[i].type, program->shared[i].name,
                       program->shared[i].length);
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* Add a .cube file. GLSL's f64 literals end in lf, which C does not know. */
static void add_file(struct cube_text *text, const struct cube_target *target,
                     const char *file)
{
    uint64_t first = text->bytes;
    char *to;

    cube_text_add(text, file);
    if (target->language == CUBE_GLSL || text->is_bad)
        return;
    to = text->data + first;
    for (const char *from = to; *from; from++) {
        if (from[0] == 'l' && from[1] == 'f' && from > text->data + first &&
            strchr("0123456789.", from[-1]) && !is_word(from[2])) {
            from++;
            continue;
        }
        *to++ = *from;
    }
    *to = 0;
    text->bytes = (uint64_t)(to - text->data);
}

static void add_libraries(struct cube_text *text,
                          const struct cube_target *target,
                          const struct cube_variant *variant)
{
    add_file(text, target,
             target->language == CUBE_GLSL ? cube_text_prelude_glsl
                                           : cube_text_prelude_cuda);
    add_file(text, target, cube_text_bits);
    if (variant->program->flags & CUBE_MATHS) {
        add_file(text, target, cube_text_maths);
        add_file(text, target, cube_text_circular);
        add_file(text, target, cube_text_special);
        if (needs_maths64(variant)) {
            add_file(text, target, cube_text_maths64);
            add_file(text, target, cube_text_circular64);
            add_file(text, target, cube_text_special64);
        }
        cube_text_add(text, "#define CUBE_HAS_MATHS 1\n");
    }
}

/* A text of the runtime's own language says all but numbers. */
static void add_own_text(struct cube_text *text,
                         const struct cube_target *target,
                         const struct cube_variant *variant)
{
    if (target->language == CUBE_GLSL)
        cube_text_add(text, "#version 460\n");
    cube_text_addf(text, "#define GROUP_SIZE %u\n#define SUBGROUP_SIZE %u\n",
                   variant->group_size, target->subgroup_size);
    add_constants(text, variant);
    for (int i = 0; i < CUBE_MAX_LIBRARIES && variant->program->libraries[i];
         i++)
        cube_text_add(text, variant->program->libraries[i]);
    cube_text_add(text, "#line 1\n");
    cube_text_add(text, variant->program->text);
}

static void add_portable_text(struct cube_text *text,
                              const struct cube_target *target,
                              const struct cube_variant *variant)
{
    const struct cube_program *program = variant->program;
    const int is_glsl = target->language == CUBE_GLSL;

    if (is_glsl)
        cube_text_add(text, "#version 460\n");
    add_needs(text, target, variant);
    add_libraries(text, target, variant);
    cube_dtype_names(text);
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name; i++)
        if (has_buffer(variant, i))
            cube_buffer_names(text, variant, i);
    add_constants(text, variant);
    add_shared(text, target, program);
    if (program->flags & CUBE_MATRICES)
        add_file(text, target, cube_text_matrix);
    if (program->flags & CUBE_GROUPS) {
        cube_text_addf(text,
                       "%s ACCUM group_scratch[GROUP_SIZE / SUBGROUP_SIZE];\n",
                       is_glsl ? "shared" : "__shared__");
        add_file(text, target, cube_text_group);
    }
    add_params(text, target, variant);
    if (!is_glsl)
        cube_text_add(text,
                      "struct cube_kernel {\ncube_params_of cube_params;\n");
    for (uint32_t i = 0; i < CUBE_MAX_BUFFERS && program->buffers[i].name; i++)
        if (has_buffer(variant, i))
            cube_buffer_functions(text, variant, i);
    add_param_names(text, program);
    if (program->flags & CUBE_SPACES)
        add_file(text, target, cube_text_space);
    if (program->flags & CUBE_LISTS)
        add_file(text, target, cube_text_list);
    if (program->flags & CUBE_FUNCTIONS) {
        cube_text_add(text, "#define T VALUE(a)\n#define KIND_T KIND_a\n"
                            "#define BITS_T BITS_a\n");
        add_file(text, target, cube_text_functions);
    }
    cube_text_add(text, "#line 1\n");
    add_file(text, target, program->text);
    if (!is_glsl)
        cube_text_addf(text,
                       "};\nextern \"C\" __global__ void %s"
                       "__launch_bounds__(GROUP_SIZE) %s(\n"
                       "    const __grid_constant__ cube_kernel kernel)\n{\n"
                       "    cube_wait_for_last();\n"
                       "    const_cast<cube_kernel &>(kernel).cube_main();\n"
                       "}\n",
                       cluster_of(variant) > 1
                           ? "__cluster_dims__(CLUSTER, 1, 1) "
                           : "",
                       program->name);
}

char *cube_source_text(const struct cube_variant *variant,
                       const struct cube_target *target, uint64_t *out_bytes)
{
    struct cube_text text = {0};

    if (variant->program->language)
        add_own_text(&text, target, variant);
    else
        add_portable_text(&text, target, variant);
    if (text.is_bad) {
        free(text.data);
        return NULL;
    }
    *out_bytes = text.bytes;
    return text.data;
}
