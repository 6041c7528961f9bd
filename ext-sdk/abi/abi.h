/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - hob-abi: reads the structs of the ABI's headers and writes what
 * tests compare with compilers and with the past.
 *
 * The headers are the one list of what crosses between the core and plugins.
 * A file is cut into tokens (lex.c), its declarations are read into a list of
 * structs, enumerators and function types (read.c), which becomes C (write.c).
 * Only the plain part of C that the ABI allows is read: fixed-width numbers,
 * pointers, arrays of them, no padding. Whatever else stands there is an error
 * with its place. Sizes are those of 64-bit machines.
 */
#ifndef ABI_H
#define ABI_H

#include "arena.h"
#include "text.h"

#include <hob/status.h>

#include <stdint.h>

/* ---- lex.c ---- */

enum abi_token_kind { ABI_END, ABI_WORD, ABI_NUMBER, ABI_MARK };

/* One token; MARKs are one character, except "...". */
struct abi_token {
    enum abi_token_kind kind;
    const char *text; /* not NUL-terminated */
    uint32_t length;
    uint32_t line;
    uint32_t column;
    uint32_t since;     /* a comment before it says "Since M.N.": M << 16 | N */
    bool says_required; /* a comment before it on lines of its own does */
    bool ends_in_required; /* a comment that follows on its line does */
    bool after_directive;  /* a line with # stands before it */
};

struct abi_file {
    const char *path;
    const char *text;
    struct abi_token *tokens; /* the last one is an ABI_END */
    uint32_t token_count;
};

/* Cut FILE's text into tokens, in memory of ARENA. */
hob_status abi_lex(struct hob__arena *arena, struct abi_file *file,
                   hob_error *error);
/* "PATH:LINE:COLUMN: message". */
hob_status abi_fail(const struct abi_file *file, const struct abi_token *token,
                    hob_error *error, const char *format, ...) HOB_PRINTF(4, 5);

/* ---- read.c ---- */

struct abi_member {
    const char *name; /* "shape"; in a union "u.i64" */
    const char *type; /* "hob_status (*)(void *, uint32_t)" */
    uint32_t offset;
    uint32_t size;
    uint32_t since; /* 0: from the first version on */
    bool is_required;
    bool is_pointer;
};

struct abi_struct {
    const char *name;
    uint32_t first; /* of the list's members */
    uint32_t count;
    uint32_t size;
    uint32_t align;
    bool is_table; /* it says its own size */
};

/* An enumerator, or a type of functions. */
struct abi_constant {
    const char *name;
    int64_t value;
};
struct abi_function {
    const char *name;
    const char *type;
};

/* What a name stands for. */
enum abi_kind {
    ABI_VOID,
    ABI_CHAR,
    ABI_FIXED,   /* a number, or a struct that was read */
    ABI_ENUM,    /* in signatures only */
    ABI_POINTER, /* a type of functions */
    ABI_OPAQUE   /* behind a pointer only */
};
struct abi_name {
    const char *name; /* "hob_value", "struct hob_view" */
    enum abi_kind kind;
    uint32_t size;
    uint32_t align;
};

struct abi_list {
    struct hob__arena arena; /* all of the below */
    struct abi_struct *structs;
    uint32_t struct_count;
    struct abi_member *members;
    uint32_t member_count;
    struct abi_constant *constants;
    uint32_t constant_count;
    struct abi_function *functions;
    uint32_t function_count;
    const char **enums; /* their types' names */
    uint32_t enum_count;
    struct abi_name *names;
    uint32_t name_count;
};

/* Add what FILE declares to LIST. NAMES_ONLY: its structs are no part of the
 * ABI, its enumerators and the names of its types are. */
hob_status abi_read(struct abi_list *list, const struct abi_file *file,
                    bool names_only, hob_error *error);

/* ---- write.c ---- */

/* C for a test that includes HEADERS before. */
void abi_write(struct hob__text *out, const struct abi_list *list);

#endif
