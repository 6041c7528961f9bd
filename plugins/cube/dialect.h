/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dialect.h - kernels as descriptions, and their text for a compiler.
 *
 * A struct cube_program says what a .cube file takes: buffers, parameters,
 * shared arrays, constants. It is static const, one a kernel. A struct
 * cube_variant says for which dtypes, widths and constants it is compiled: the
 * key under which kernels.h keeps what was compiled. From both comes the text
 * in the language of a runtime: a prelude, the libraries that are asked for,
 * and the .cube file as it is. docs/CUBE.md describes the dialect.
 */
#ifndef CUBE_DIALECT_H
#define CUBE_DIALECT_H

#include "runtime.h"

enum {
    CUBE_MAX_BUFFERS = 24,
    CUBE_MAX_PARAMS = 32,
    CUBE_MAX_SHARED = 6,
    CUBE_MAX_CONSTANTS = 12,
    CUBE_MAX_SYMBOLS = 4,
    CUBE_MAX_LIBRARIES = 4,
    CUBE_MAX_WIDTH = 16,
    /* The most bytes of parameters: addresses of all buffers and room for
     * shapes and strides. */
    CUBE_MAX_PARAM_BYTES = 1024
};

enum cube_buffer_flags {
    CUBE_WRITTEN = 1, /* the kernel stores to it; it may load from it too */
    CUBE_ATOMIC = 2,  /* ATOMIC_ADD and its like, on i32, u32 and f32 */
    CUBE_PAIRS = 4    /* load_pairs_x() and store_pairs_x(), of 16 bits; with
                         a width of 8 load_words_x(), which is a uvec4 */
};

/* Types of parameters; CUBE_VALUE_OF(i) is the type in which buffer number i
 * is computed. */
enum cube_type {
    CUBE_I32,
    CUBE_U32,
    CUBE_I64,
    CUBE_U64,
    CUBE_F32,
    CUBE_F64,
    CUBE_INDEX, /* I32 or I64, as the variant says */
    CUBE_VALUE  /* + i */
};
#define CUBE_VALUE_OF(i) (CUBE_VALUE + (i))

/* A count of parameters: that which constant number i says; with 0 there is no
 * such parameter. */
#define CUBE_LENGTH(i) (UINT32_C(0x80000000) + (i))

enum cube_program_flags {
    CUBE_SUBGROUPS = 1, /* SUBGROUP_... and LANE */
    CUBE_MATHS = 2,     /* m_exp and so on, for the types that are in use */
    CUBE_GROUPS = 4,    /* group_sum and so on of type ACCUM, a symbol */
    CUBE_USES_I64 = 8,  /* besides where a buffer or parameter has the type */
    CUBE_USES_F64 = 16,
    CUBE_SPACES = 32,    /* unravel and OFFSET, see space.h */
    CUBE_FUNCTIONS = 64, /* map_add and its like, of the type of buffer a */
    CUBE_TIED = 128,     /* CUDA C for one architecture, as sm_90a is */
    CUBE_MATRICES = 256, /* MATRIX_A and so on, of elements of the constant
                            MATRIX_DTYPE; limits.matrices has it */
    CUBE_TILES = 512,    /* UNROLL lays out a tile: LOOP where the limits say
                            keeps_loops */
    CUBE_CLUSTERS = 1024, /* its constant CLUSTER says how many groups run
                             together, at most limits.cluster; a launch has a
                             multiple of it */
    CUBE_LISTS = 2048     /* find_item and LISTED, see kernels/list.cube */
};

/* What a program's text is. */
enum cube_program_language {
    CUBE_PORTABLE,  /* the dialect */
    CUBE_ONLY_GLSL, /* whole, but for the version and the constants */
    CUBE_ONLY_CUDA,
    CUBE_ONLY_SPIRV /* words */
};

struct cube_buffer {
    const char *name;
    uint32_t flags; /* enum cube_buffer_flags */
};

struct cube_param {
    const char *name;
    uint32_t type;  /* enum cube_type */
    uint32_t count; /* of an array; 0: a single number; or CUBE_LENGTH(i) */
};

/* Memory that a workgroup shares. */
struct cube_shared {
    const char *name;
    const char *type;   /* as in "float" or "VALUE_a" */
    const char *length; /* of the constants, as in "TILE * (TILE + 1)" */
};

/* Lists end at the first NULL name, or are full. */
struct cube_program {
    const char *name; /* a C identifier, for people too */
    const char *text; /* an embedded .cube file, texts.h */
    struct cube_buffer buffers[CUBE_MAX_BUFFERS];
    struct cube_param params[CUBE_MAX_PARAMS];
    struct cube_shared shared[CUBE_MAX_SHARED];
    const char *constants[CUBE_MAX_CONSTANTS]; /* names of numbers */
    const char *symbols[CUBE_MAX_SYMBOLS];     /* names of words */
    uint32_t flags;                            /* enum cube_program_flags */
    uint32_t language;                         /* enum cube_program_language */
    uint64_t text_bytes;                       /* of SPIR-V */
    /* Texts before a text of the runtime's own language. */
    const char *libraries[CUBE_MAX_LIBRARIES];
};

/*
 * One instance of a program. Compared byte by byte: made with
 * cube_variant_init(), which leaves no padding undefined.
 */
struct cube_variant {
    const struct cube_program *program;
    const char *symbols[CUBE_MAX_SYMBOLS]; /* static text */
    int32_t constants[CUBE_MAX_CONSTANTS];
    uint32_t group_size;
    uint8_t dtypes[CUBE_MAX_BUFFERS]; /* hob_dtype; NONE: it is not there */
    uint8_t widths[CUBE_MAX_BUFFERS]; /* elements of a vector; 1 at first */
    uint32_t is_wide;                 /* INDEX has 64 bits */
};

void cube_variant_init(struct cube_variant *variant,
                       const struct cube_program *program);

/* COUNT numbers of one type, one after the other. */
struct cube_number_run {
    uint16_t at; /* bytes from the beginning */
    uint16_t count;
    uint32_t type; /* enum cube_type */
};

/* Where a parameter lies in what the kernel is launched with. */
struct cube_layout {
    uint16_t buffers[CUBE_MAX_BUFFERS]; /* bytes from the beginning */
    uint16_t params[CUBE_MAX_PARAMS];
    uint32_t bytes;
    /* All numbers in order, as each launch packs them. */
    uint32_t run_count;
    struct cube_number_run runs[CUBE_MAX_PARAMS];
};

/* Lay VARIANT's parameters out: buffers in order, then the others. */
void cube_layout_init(struct cube_layout *layout,
                      const struct cube_variant *variant);
/* What CUBE_INDEX and CUBE_VALUE_OF() are in VARIANT; other types stay. */
enum cube_type cube_type_of(const struct cube_variant *variant, uint32_t type);
uint32_t cube_type_size(enum cube_type type);
/* As in "float". */
const char *cube_type_name(enum cube_type type);
/* The type in which elements of DTYPE are computed. */
enum cube_type cube_value_type(uint32_t dtype);
/* How many numbers PARAM has in VARIANT. */
uint32_t cube_param_count(const struct cube_variant *variant,
                          const struct cube_param *param);

/* What DEVICE's compiler and machine make of the text. */
struct cube_target {
    uint32_t language; /* enum cube_language */
    uint32_t subgroup_size;
    uint32_t param_bytes; /* more go through memory */
    uint32_t keeps_nan;   /* as in struct cube_limits, as are the next */
    uint32_t rounds_f16;
    uint32_t keeps_loops;
    uint32_t keeps_denormals;
};

/*
 * The whole text of VARIANT for TARGET; NULL without memory. The caller frees
 * it with free().
 */
char *cube_source_text(const struct cube_variant *variant,
                       const struct cube_target *target, uint64_t *out_bytes);

#endif
