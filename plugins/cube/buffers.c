/* SPDX-License-Identifier: Apache-2.0 */
#include "buffers.h"

#include <stdio.h>

enum kind { KIND_FLOAT = 1, KIND_INT, KIND_UINT, KIND_BOOL };

/*
 * How an element is stored and what a kernel makes of it. In the texts, %s is
 * what is stored (DECODE) or a value (ENCODE); WORD_... are for elements of
 * less than 8 bytes as the low bits of a uint.
 */
static const struct storage {
    const char *name; /* DTYPE_... */
    const char *at;   /* the type in memory */
    const char *value;
    const char *decode, *encode;
    const char *word_decode, *word_encode;
    enum kind kind;
    const char *pair; /* two values as one word, where that has a name */
} storages[HOB_DTYPE_COUNT_] = {
    [HOB_DTYPE_F64] = {"F64", "cube_f64", "double", "%s", "%s", NULL, NULL,
                       KIND_FLOAT},
    [HOB_DTYPE_F32] = {"F32", "cube_f32", "float", "%s", "%s",
                       "f32_of_bits(%s)", "bits_of_f32(%s)", KIND_FLOAT},
    [HOB_DTYPE_F16] = {"F16", "cube_u16", "float", "f32_of_f16(uint(%s))",
                       "CUBE_TO_U16(f16_of_f32(%s))", "f32_of_f16(%s)",
                       "f16_of_f32(%s)", KIND_FLOAT, "f16_pair"},
    [HOB_DTYPE_BF16] = {"BF16", "cube_u16", "float", "f32_of_bf16(uint(%s))",
                        "CUBE_TO_U16(bf16_of_f32(%s))", "f32_of_bf16(%s)",
                        "bf16_of_f32(%s)", KIND_FLOAT, "bf16_pair"},
    [HOB_DTYPE_I64] = {"I64", "cube_i64", "i64", "%s", "%s", NULL, NULL,
                       KIND_INT},
    [HOB_DTYPE_I32] = {"I32", "cube_i32", "int", "%s", "%s", "int(%s)",
                       "uint(%s)", KIND_INT},
    [HOB_DTYPE_I16] = {"I16", "cube_i16", "int", "int(%s)", "CUBE_TO_I16(%s)",
                       "(int((%s) << 16) >> 16)", "(uint(%s) & 0xffffu)",
                       KIND_INT},
    [HOB_DTYPE_I8] = {"I8", "cube_i8", "int", "int(%s)", "CUBE_TO_I8(%s)",
                      "(int((%s) << 24) >> 24)", "(uint(%s) & 0xffu)",
                      KIND_INT},
    [HOB_DTYPE_U64] = {"U64", "cube_u64", "u64", "%s", "%s", NULL, NULL,
                       KIND_UINT},
    [HOB_DTYPE_U32] = {"U32", "cube_u32", "uint", "%s", "%s", "%s", "%s",
                       KIND_UINT},
    [HOB_DTYPE_U16] = {"U16", "cube_u16", "uint", "uint(%s)", "CUBE_TO_U16(%s)",
                       "%s", "((%s) & 0xffffu)", KIND_UINT},
    [HOB_DTYPE_U8] = {"U8", "cube_u8", "uint", "uint(%s)", "CUBE_TO_U8(%s)",
                      "%s", "((%s) & 0xffu)", KIND_UINT},
    [HOB_DTYPE_BOOL] = {"BOOL", "cube_u8", "uint", "uint(%s)", "CUBE_TO_U8(%s)",
                        "%s", "((%s) & 0xffu)", KIND_BOOL},
};

/* The longest expression for one element. */
enum { EXPRESSION = 256 };

/* TEMPLATE with WHAT in the place of each %s. */
static void fill(char out[EXPRESSION], const char *template, const char *what)
{
    size_t n = 0;

    for (const char *at = template; *at && n < EXPRESSION - 1; at++) {
        if (at[0] != '%' || at[1] != 's') {
            out[n++] = *at;
            continue;
        }
        for (const char *w = what; *w && n < EXPRESSION - 1; w++)
            out[n++] = *w;
        at++;
    }
    out[n] = 0;
}

void cube_dtype_names(struct cube_text *text)
{
    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_; i++)
        if (storages[i].name)
            cube_text_addf(text, "#define DTYPE_%s %u\n", storages[i].name, i);
    cube_text_addf(text,
                   "#define KIND_FLOAT %d\n#define KIND_INT %d\n"
                   "#define KIND_UINT %d\n#define KIND_BOOL %d\n",
                   KIND_FLOAT, KIND_INT, KIND_UINT, KIND_BOOL);
    cube_text_add(text,
                  "#define LOAD(b, i) load_##b(i)\n"
                  "#define STORE(b, i, v) store_##b(i, v)\n"
                  "#define LOAD_VECTOR(b, i, v) load_vector_##b(i, v)\n"
                  "#define STORE_VECTOR(b, i, v) store_vector_##b(i, v)\n"
                  "#define VALUE(b) VALUE_##b\n"
                  "#define WIDTH(b) WIDTH_##b\n"
                  "#define ROUND(b, v) round_##b(v)\n"
                  "#define ATOMIC_ADD(b, i, v) atomic_add_##b(i, v)\n"
                  "#define ATOMIC_MIN(b, i, v) atomic_min_##b(i, v)\n"
                  "#define ATOMIC_MAX(b, i, v) atomic_max_##b(i, v)\n"
                  "#define ATOMIC_OR(b, i, v) atomic_or_##b(i, v)\n"
                  "#define ATOMIC_EXCHANGE(b, i, v) atomic_exchange_##b(i, v)\n"
                  "#define ATOMIC_CAS(b, i, e, v) atomic_cas_##b(i, e, v)\n"
                  "#define SHARED_ATOMIC_ADD(at, v) CUBE_ATOMIC_ADD(at, v)\n"
                  "#define SHARED_ATOMIC_MIN(at, v) CUBE_ATOMIC_MIN(at, v)\n"
                  "#define SHARED_ATOMIC_MAX(at, v) CUBE_ATOMIC_MAX(at, v)\n"
                  "#define SHARED_ATOMIC_OR(at, v) CUBE_ATOMIC_OR(at, v)\n");
}

void cube_buffer_names(struct cube_text *text,
                       const struct cube_variant *variant, uint32_t index)
{
    const char *name = variant->program->buffers[index].name;
    const uint32_t dtype = variant->dtypes[index];
    const struct storage *storage = &storages[dtype];

    cube_text_addf(text,
                   "#define VALUE_%s %s\n#define DTYPE_%s DTYPE_%s\n"
                   "#define KIND_%s %d\n#define BITS_%s %u\n"
                   "#define WIDTH_%s %u\n",
                   name, storage->value, name, storage->name, name,
                   storage->kind, name, hob_dtype_size(dtype) * 8, name,
                   variant->widths[index]);
}

/* ---- single elements ---- */

static void add_single(struct cube_text *text, const char *name,
                       const struct storage *storage, uint32_t size)
{
    char at[EXPRESSION], value[EXPRESSION], stored[EXPRESSION];

    snprintf(at, sizeof(at), "AT(%s, %u, %s, i)", storage->at, size, name);
    fill(value, storage->decode, at);
    fill(stored, storage->encode, "v");
    cube_text_addf(text,
                   "FN %s load_%s(INDEX i) { return %s; }\n"
                   "FN void store_%s(INDEX i, %s v) { %s = %s; }\n",
                   storage->value, name, value, name, storage->value, at,
                   stored);
    fill(stored, storage->word_encode ? storage->word_encode : "%s", "v");
    fill(value, storage->word_decode ? storage->word_decode : "%s", stored);
    cube_text_addf(text, "FN %s round_%s(%s v) { return %s; }\n",
                   storage->value, name, storage->value, value);
}

void cube_round_function(struct cube_text *text, uint32_t dtype)
{
    const struct storage *storage = &storages[dtype];
    char value[EXPRESSION], stored[EXPRESSION];

    fill(stored, storage->word_encode ? storage->word_encode : "%s", "v");
    fill(value, storage->word_decode ? storage->word_decode : "%s", stored);
    cube_text_addf(text, "FN %s round_to_%s(%s v) { return %s; }\n",
                   storage->value, hob_dtype_name(dtype), storage->value,
                   value);
}

/* ---- vectors ---- */

/* What is moved at once. */
struct chunk {
    uint32_t bytes;
    const char *at, *value;
};

static struct chunk chunk_of(uint32_t bytes)
{
    static const struct chunk chunks[] = {{16, "cube_u32x4", "uvec4"},
                                          {8, "cube_u32x2", "uvec2"},
                                          {4, "cube_u32", "uint"},
                                          {2, "cube_u16", "uint"}};
    uint32_t i = 0;

    while (i < 3 && chunks[i].bytes > bytes)
        i++;
    return chunks[i];
}

static uint32_t log2_of(uint32_t power)
{
    uint32_t log2 = 0;

    while (power >> (log2 + 1))
        log2++;
    return log2;
}

/* Word INDEX of chunk number C. */
static void word_name(char out[EXPRESSION], const struct chunk *chunk,
                      uint32_t c, uint32_t index)
{
    if (chunk->bytes <= 4)
        snprintf(out, EXPRESSION, "w%u", c);
    else
        snprintf(out, EXPRESSION, "w%u.%c", c, "xyzw"[index]);
}

/* The element at OFFSET bytes of chunk C as a value. */
static void element_of(char out[EXPRESSION], const struct storage *storage,
                       const struct chunk *chunk, uint32_t c, uint32_t offset,
                       uint32_t size)
{
    char word[EXPRESSION], next[EXPRESSION], bits[2 * EXPRESSION];

    word_name(word, chunk, c, offset / 4);
    if (size == 8) {
        word_name(next, chunk, c, offset / 4 + 1);
        snprintf(out, EXPRESSION, "%s(%.32s, %.32s)%s",
                 storage->kind == KIND_FLOAT ? "f64_of_words"
                 : storage->kind == KIND_INT ? "i64(u64_of_words"
                                             : "u64_of_words",
                 word, next, storage->kind == KIND_INT ? ")" : "");
        return;
    }
    if (size == 4)
        fill(out, storage->word_decode, word);
    else {
        snprintf(bits, sizeof(bits), "((%.32s >> %u) & 0x%xu)", word,
                 offset % 4 * 8, size == 2 ? 0xffffu : 0xffu);
        fill(out, storage->word_decode, bits);
    }
}

static void add_vector_load(struct cube_text *text, const char *name,
                            const struct storage *storage, uint32_t size,
                            uint32_t width)
{
    const struct chunk chunk = chunk_of(size * width);
    const uint32_t per_chunk = chunk.bytes / size;
    char value[EXPRESSION];

    cube_text_addf(text,
                   "FN void load_vector_%s(INDEX i, OUT_ARRAY(%s, v, %u))\n{\n",
                   name, storage->value, width);
    for (uint32_t c = 0; c < width / per_chunk; c++) {
        cube_text_addf(text,
                       "    %s w%u = %s(AT(%s, %u, %s, (i >> %u) + %u));\n",
                       chunk.value, c, chunk.bytes == 2 ? "uint" : "", chunk.at,
                       chunk.bytes, name, log2_of(per_chunk), c);
        for (uint32_t k = 0; k < per_chunk; k++) {
            element_of(value, storage, &chunk, c, k * size, size);
            cube_text_addf(text, "    v[%u] = %s;\n", c * per_chunk + k, value);
        }
    }
    cube_text_add(text, "}\n");
}

/* Add the bits of word INDEX of a chunk whose first element is v[FIRST]. */
static void add_word(struct cube_text *text, const struct storage *storage,
                     uint32_t first, uint32_t index, uint32_t size,
                     uint32_t bytes)
{
    char value[32], bits[EXPRESSION];

    if (size == 8) {
        const char *part = storage->kind == KIND_FLOAT
                               ? (index % 2 ? "high_of_f64(" : "low_of_f64(")
                               : (index % 2 ? "high_of(u64" : "low_of(u64");

        cube_text_addf(
            text, "%s%sv[%u]%s", part, storage->kind == KIND_FLOAT ? "" : "(",
            first + index / 2, storage->kind == KIND_FLOAT ? ")" : "))");
        return;
    }
    if (storage->pair && bytes >= 4) {
        cube_text_addf(text, "%s(v[%u], v[%u])", storage->pair,
                       first + index * 2, first + index * 2 + 1);
        return;
    }
    for (uint32_t k = 0; k * size < (bytes < 4 ? bytes : 4); k++) {
        snprintf(value, sizeof(value), "v[%u]", first + index * 4 / size + k);
        fill(bits, storage->word_encode, value);
        cube_text_addf(text, k ? " | (%s << %u)" : "%s", bits, k * size * 8);
    }
}

static void add_vector_store(struct cube_text *text, const char *name,
                             const struct storage *storage, uint32_t size,
                             uint32_t width)
{
    const struct chunk chunk = chunk_of(size * width);
    const uint32_t per_chunk = chunk.bytes / size;

    cube_text_addf(text,
                   "FN void store_vector_%s(INDEX i, IN_ARRAY(%s, v, %u))\n{\n",
                   name, storage->value, width);
    for (uint32_t c = 0; c < width / per_chunk; c++) {
        cube_text_addf(text, "    AT(%s, %u, %s, (i >> %u) + %u) = %s(",
                       chunk.at, chunk.bytes, name, log2_of(per_chunk), c,
                       chunk.bytes == 2 ? "CUBE_TO_U16" : chunk.value);
        for (uint32_t word = 0; word * 4 < chunk.bytes; word++) {
            cube_text_add(text, word ? ", " : "");
            add_word(text, storage, c * per_chunk, word, size, chunk.bytes);
        }
        cube_text_add(text, ");\n");
    }
    cube_text_add(text, "}\n");
}

static void add_vector_single(struct cube_text *text, const char *name,
                              const struct storage *storage)
{
    cube_text_addf(text,
                   "FN void load_vector_%s(INDEX i, OUT_ARRAY(%s, v, 1))\n"
                   "{\n    v[0] = load_%s(i);\n}\n"
                   "FN void store_vector_%s(INDEX i, IN_ARRAY(%s, v, 1))\n"
                   "{\n    store_%s(i, v[0]);\n}\n",
                   name, storage->value, name, name, storage->value, name);
}

/* Elements of 16 bits as they lie, two in a word. */
static void add_vector_pairs(struct cube_text *text, const char *name,
                             uint32_t width)
{
    const struct chunk chunk = chunk_of(2 * width);
    const uint32_t words = chunk.bytes / 4, count = 2 * width / chunk.bytes;
    char word[EXPRESSION];

    cube_text_addf(text,
                   "FN void load_pairs_%s(INDEX i, OUT_ARRAY(uint, v, %u))\n"
                   "{\n",
                   name, width / 2);
    for (uint32_t c = 0; c < count; c++) {
        cube_text_addf(text, "    %s w%u = AT(%s, %u, %s, (i >> %u) + %u);\n",
                       chunk.value, c, chunk.at, chunk.bytes, name,
                       log2_of(chunk.bytes / 2), c);
        for (uint32_t k = 0; k < words; k++) {
            word_name(word, &chunk, c, k);
            cube_text_addf(text, "    v[%u] = %s;\n", c * words + k, word);
        }
    }
    if (count == 1 && words == 4)
        cube_text_addf(text,
                       "}\nFN uvec4 load_words_%s(INDEX i)\n{\n"
                       "    return AT(cube_u32x4, 16, %s, i >> 3);\n",
                       name, name);
    cube_text_addf(text,
                   "}\nFN void store_pairs_%s(INDEX i, IN_ARRAY(uint, v, %u))\n"
                   "{\n",
                   name, width / 2);
    for (uint32_t c = 0; c < count; c++) {
        cube_text_addf(text, "    AT(%s, %u, %s, (i >> %u) + %u) = %s(",
                       chunk.at, chunk.bytes, name, log2_of(chunk.bytes / 2), c,
                       chunk.value);
        for (uint32_t k = 0; k < words; k++)
            cube_text_addf(text, "%sv[%u]", k ? ", " : "", c * words + k);
        cube_text_add(text, ");\n");
    }
    cube_text_add(text, "}\n");
}

/* ---- atomics ---- */

/* A float's sum goes by compare and exchange of its bits. */
static void add_atomic_f32(struct cube_text *text, const char *name)
{
    cube_text_addf(text,
                   "FN void atomic_add_%s(INDEX i, float v)\n{\n"
                   "    uint seen = AT(cube_u32, 4, %s, i);\n"
                   "    uint before;\n\n    do {\n        before = seen;\n"
                   "        seen = CUBE_ATOMIC_CAS(AT(cube_u32, 4, %s, i), "
                   "before, bits_of_f32(f32_of_bits(before) + v));\n"
                   "    } while (seen != before);\n}\n",
                   name, name, name);
}

static void add_atomics(struct cube_text *text, const char *name,
                        const struct storage *storage, uint32_t dtype)
{
    static const struct {
        const char *name, *macro;
    } atomics[] = {{"add", "ADD"},
                   {"min", "MIN"},
                   {"max", "MAX"},
                   {"exchange", "EXCHANGE"},
                   {"or", "OR"}};

    if (dtype == HOB_DTYPE_F32)
        add_atomic_f32(text, name);
    if (dtype != HOB_DTYPE_I32 && dtype != HOB_DTYPE_U32)
        return;
    for (uint32_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++)
        cube_text_addf(text,
                       "FN %s atomic_%s_%s(INDEX i, %s v) { return "
                       "CUBE_ATOMIC_%s(AT(%s, 4, %s, i), v); }\n",
                       storage->value, atomics[i].name, name, storage->value,
                       atomics[i].macro, storage->at, name);
    cube_text_addf(text,
                   "FN %s atomic_cas_%s(INDEX i, %s expected, %s v) { return "
                   "CUBE_ATOMIC_CAS(AT(%s, 4, %s, i), expected, v); }\n",
                   storage->value, name, storage->value, storage->value,
                   storage->at, name);
}

void cube_buffer_functions(struct cube_text *text,
                           const struct cube_variant *variant, uint32_t index)
{
    const struct cube_buffer *buffer = &variant->program->buffers[index];
    const uint32_t dtype = variant->dtypes[index];
    const uint32_t width = variant->widths[index];
    const uint32_t size = hob_dtype_size(dtype);

    add_single(text, buffer->name, &storages[dtype], size);
    if (width == 1)
        add_vector_single(text, buffer->name, &storages[dtype]);
    else {
        add_vector_load(text, buffer->name, &storages[dtype], size, width);
        add_vector_store(text, buffer->name, &storages[dtype], size, width);
        if ((buffer->flags & CUBE_PAIRS) && size == 2)
            add_vector_pairs(text, buffer->name, width);
    }
    if (buffer->flags & CUBE_ATOMIC)
        add_atomics(text, buffer->name, &storages[dtype], dtype);
}
