/* SPDX-License-Identifier: Apache-2.0 */
#include "spirv.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of the SPIR-V specification, version 1.6, section 3. */
enum {
    MAGIC = 0x07230203,
    HEADER_WORDS = 5,
    OP_SOURCE_FIRST = 2, /* OpSourceContinued */
    OP_SOURCE_LAST = 8,  /* OpLine; names are between */
    OP_EXTENSION = 10,
    OP_EXT_INST = 12,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_FIRST = 19, /* OpTypeVoid */
    OP_TYPE_FLOAT = 22,
    OP_TYPE_LAST = 39,
    OP_DECORATE = 71,
    OP_F_NEGATE = 127,
    OP_F_ADD = 129,
    OP_F_SUB = 131,
    OP_F_MUL = 133,
    OP_F_DIV = 136,
    OP_F_REM = 140,
    OP_F_MOD = 141,
    OP_VECTOR_TIMES_SCALAR = 142,
    OP_DOT = 148,
    OP_F_COMPARE_FIRST = 180, /* OpFOrdEqual */
    OP_F_COMPARE_LAST = 191,
    OP_TYPE_MATRIX = 4456, /* OpTypeCooperativeMatrixKHR */
    DECORATION_NO_CONTRACTION = 42,
    MODE_DENORM_PRESERVE = 4459,
    MODE_NAN_PRESERVE = 4461,
    MODE_NEAREST_EVEN = 4462, /* RoundingModeRTE */
    CAPABILITY_FLOAT16 = 9,
    CAPABILITY_DENORM_PRESERVE = 4464,
    CAPABILITY_NAN_PRESERVE = 4466,
    CAPABILITY_NEAREST_EVEN = 4467,
    CAPABILITY_BFLOAT16 = 5116,
    CAPABILITY_BFLOAT16_MATRIX = 5118,
    ENCODING_BFLOAT16 = 0,
    BOUND_WORD = 3 /* of the header */
};

/* What the elements of matrices may be, by CUBE_SPIRV_... */
enum { ELEMENT_KINDS = 3 };

struct words {
    uint32_t *data;
    uint64_t count;
};

static void add(struct words *out, uint32_t word)
{
    out->data[out->count++] = word;
}

static void add_op(struct words *out, uint32_t op, uint32_t count,
                   const uint32_t *operands)
{
    add(out, (count + 1) << 16 | op);
    for (uint32_t i = 0; i < count; i++)
        add(out, operands[i]);
}

static int is_float_op(uint32_t op)
{
    switch (op) {
    case OP_EXT_INST:
    case OP_F_NEGATE:
    case OP_F_ADD:
    case OP_F_SUB:
    case OP_F_MUL:
    case OP_F_DIV:
    case OP_F_REM:
    case OP_F_MOD:
    case OP_VECTOR_TIMES_SCALAR:
    case OP_DOT:
        return 1;
    default:
        return op >= OP_F_COMPARE_FIRST && op <= OP_F_COMPARE_LAST;
    }
}

/* Where the instruction at word AT ends; 0 if it is none. */
static uint64_t next_of(const uint32_t *words, uint64_t count, uint64_t at)
{
    const uint32_t length = words[at] >> 16;

    return length == 0 || length > count - at ? 0 : at + length;
}

/* The type of the elements of matrices. */
struct element {
    uint32_t is_used;
    uint32_t id; /* 0: the module does not declare it yet */
};

/* Sections of the module by their first word, and what is to be added. */
struct plan {
    uint64_t extensions; /* after the capabilities */
    uint64_t modes;      /* after the entry points */
    uint64_t types;      /* after the decorations */
    uint64_t float_ops;
    uint32_t entry; /* id of the entry point's function */
    struct element elements[ELEMENT_KINDS];
};

/* The kind of the float type that the instruction at WORDS declares, or
 * ELEMENT_KINDS. */
static uint32_t kind_of_type(const uint32_t *words)
{
    const uint32_t plain = 3; /* words, of one without an encoding */

    if (words[0] != (plain << 16 | OP_TYPE_FLOAT))
        return ELEMENT_KINDS;
    return words[2] == 16   ? CUBE_SPIRV_F16
           : words[2] == 32 ? CUBE_SPIRV_F32
                            : ELEMENT_KINDS;
}

static int plan_type(const uint32_t *words, struct plan *plan)
{
    const uint32_t op = words[0] & 0xffff;
    const uint32_t kind = kind_of_type(words);

    if (kind < ELEMENT_KINDS)
        plan->elements[kind].id = words[1];
    if (op != OP_TYPE_MATRIX)
        return 1;
    if (words[0] >> 16 < 3 || words[2] >= ELEMENT_KINDS)
        return 0;
    plan->elements[words[2]].is_used = 1;
    return 1;
}

static int plan_module(const uint32_t *words, uint64_t count, struct plan *plan)
{
    uint64_t at = HEADER_WORDS;

    memset(plan, 0, sizeof(*plan));
    if (count < HEADER_WORDS || words[0] != MAGIC)
        return 0;
    while (at < count) {
        const uint32_t op = words[at] & 0xffff;
        const uint64_t next = next_of(words, count, at);

        if (next == 0 || !plan_type(words + at, plan))
            return 0;
        if (op == OP_CAPABILITY)
            plan->extensions = next;
        if (op == OP_ENTRY_POINT && next - at >= 3)
            plan->entry = words[at + 2];
        if (op == OP_ENTRY_POINT || op == OP_EXECUTION_MODE)
            plan->modes = next;
        if (op >= OP_TYPE_FIRST && op <= OP_TYPE_LAST && plan->types == 0)
            plan->types = at;
        if (is_float_op(op) && next - at >= 3)
            plan->float_ops++;
        at = next;
    }
    return plan->extensions != 0 && plan->modes != 0 && plan->types != 0;
}

static void add_capability(struct words *out, uint32_t capability)
{
    add_op(out, OP_CAPABILITY, 1, &capability);
}

/* Whether the module computes with floats of WIDTH. Of f32 all do. */
static int has_width(const struct plan *plan, uint32_t width)
{
    return width != 16 || plan->elements[CUBE_SPIRV_F16].id != 0;
}

/* What is promised of each width, and what says so. */
struct promise {
    uint32_t mode, capability, width;
};

static const struct promise promises[] = {
    {MODE_DENORM_PRESERVE, CAPABILITY_DENORM_PRESERVE, 32},
    {MODE_DENORM_PRESERVE, CAPABILITY_DENORM_PRESERVE, 16},
    {MODE_NAN_PRESERVE, CAPABILITY_NAN_PRESERVE, 32},
    {MODE_NAN_PRESERVE, CAPABILITY_NAN_PRESERVE, 64},
    {MODE_NAN_PRESERVE, CAPABILITY_NAN_PRESERVE, 16},
    {MODE_NEAREST_EVEN, CAPABILITY_NEAREST_EVEN, 16},
};

enum { PROMISES = sizeof(promises) / sizeof(promises[0]) };

static int is_promised(const struct plan *plan, const struct promise *promise,
                       const struct cube_float_controls *controls)
{
    const uint32_t widths =
        promise->mode == MODE_DENORM_PRESERVE ? controls->denorm_preserve
        : promise->mode == MODE_NAN_PRESERVE  ? controls->nan_preserve
                                              : controls->nearest_even;

    return (widths & promise->width) && has_width(plan, promise->width);
}

static void add_capabilities(struct words *out, const struct plan *plan,
                             const struct cube_float_controls *controls)
{
    uint32_t last = 0;

    /* Those of one mode follow each other. */
    for (uint32_t i = 0; i < PROMISES; i++)
        if (promises[i].capability != last &&
            is_promised(plan, &promises[i], controls)) {
            last = promises[i].capability;
            add_capability(out, last);
        }
    if (plan->elements[CUBE_SPIRV_F16].is_used)
        add_capability(out, CAPABILITY_FLOAT16);
    if (plan->elements[CUBE_SPIRV_BF16].is_used) {
        add_capability(out, CAPABILITY_BFLOAT16);
        add_capability(out, CAPABILITY_BFLOAT16_MATRIX);
    }
}

/* Extensions that came with the types of matrices' elements. */
static void add_extensions(struct words *out, const struct plan *plan)
{
    static const char name[20] = "SPV_KHR_bfloat16";
    uint32_t words[sizeof(name) / 4];

    if (!plan->elements[CUBE_SPIRV_BF16].is_used)
        return;
    memcpy(words, name, sizeof(name));
    add_op(out, OP_EXTENSION, sizeof(name) / 4, words);
}

static void add_modes(struct words *out, const struct plan *plan,
                      const struct cube_float_controls *controls)
{
    for (uint32_t i = 0; i < PROMISES; i++) {
        const uint32_t operands[] = {plan->entry, promises[i].mode,
                                     promises[i].width};

        if (is_promised(plan, &promises[i], controls))
            add_op(out, OP_EXECUTION_MODE, 3, operands);
    }
}

static void add_decorations(struct words *out, const uint32_t *words,
                            uint64_t count)
{
    uint64_t next;

    for (uint64_t at = HEADER_WORDS; at < count; at = next) {
        next = next_of(words, count, at);
        if (is_float_op(words[at] & 0xffff) && next - at >= 3) {
            const uint32_t operands[] = {words[at + 2],
                                         DECORATION_NO_CONTRACTION};

            add_op(out, OP_DECORATE, 2, operands);
        }
    }
}

/* Types of elements come before those of matrices: what the module declares of
 * them is moved to the front. */
static void add_elements(struct words *out, struct plan *plan)
{
    static const uint32_t widths[ELEMENT_KINDS] = {
        [CUBE_SPIRV_F32] = 32, [CUBE_SPIRV_F16] = 16, [CUBE_SPIRV_BF16] = 16};

    for (uint32_t i = 0; i < ELEMENT_KINDS; i++) {
        struct element *element = &plan->elements[i];
        uint32_t operands[] = {0, widths[i], ENCODING_BFLOAT16};

        if (!element->is_used)
            continue;
        if (!element->id)
            element->id = out->data[BOUND_WORD]++;
        operands[0] = element->id;
        add_op(out, OP_TYPE_FLOAT, i == CUBE_SPIRV_BF16 ? 3 : 2, operands);
    }
}

static void add_words(struct words *out, const uint32_t *words, uint64_t first,
                      uint64_t last)
{
    memcpy(out->data + out->count, words + first,
           (size_t)(last - first) * sizeof(*words));
    out->count += last - first;
}

/* Names and decorations, without the names. */
static void add_decorated(struct words *out, const uint32_t *words,
                          uint64_t first, uint64_t last)
{
    uint64_t next;

    for (uint64_t at = first; at < last; at = next) {
        const uint32_t op = words[at] & 0xffff;

        next = next_of(words, last, at);
        if (op < OP_SOURCE_FIRST || op > OP_SOURCE_LAST)
            add_words(out, words, at, next);
    }
}

/* The rest of the module from its types on: those of matrices get their
 * elements' types. */
static void add_rest(struct words *out, const struct plan *plan,
                     const uint32_t *words, uint64_t count)
{
    uint64_t next;

    for (uint64_t at = plan->types; at < count; at = next) {
        const uint32_t kind = kind_of_type(words + at);

        next = next_of(words, count, at);
        if (kind < ELEMENT_KINDS && plan->elements[kind].is_used)
            continue;
        add_words(out, words, at, next);
        if ((words[at] & 0xffff) == OP_TYPE_MATRIX)
            out->data[out->count - (next - at) + 2] =
                plan->elements[words[at + 2]].id;
    }
}

uint32_t *cube_spirv_exact(const uint32_t *words, uint64_t word_count,
                           const struct cube_float_controls *controls,
                           uint64_t *out_word_count)
{
    /* Capabilities, an extension, modes, types. */
    enum { MORE_WORDS = (PROMISES + 3) * 2 + 6 + PROMISES * 4 + 3 * 4 };
    struct words out = {NULL, 0};
    struct plan plan;

    if (!plan_module(words, word_count, &plan))
        return NULL;
    out.data = malloc((size_t)(word_count + MORE_WORDS + 3 * plan.float_ops) *
                      sizeof(*out.data));
    if (!out.data)
        return NULL;
    add_words(&out, words, 0, HEADER_WORDS);
    add_capabilities(&out, &plan, controls);
    add_words(&out, words, HEADER_WORDS, plan.extensions);
    add_extensions(&out, &plan);
    add_words(&out, words, plan.extensions, plan.modes);
    add_modes(&out, &plan, controls);
    add_decorated(&out, words, plan.modes, plan.types);
    add_decorations(&out, words, word_count);
    add_elements(&out, &plan);
    add_rest(&out, &plan, words, word_count);
    *out_word_count = out.count;
    return out.data;
}
