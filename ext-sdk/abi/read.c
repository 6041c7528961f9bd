/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - the declarations of a header.
 *
 * Recursion follows brackets in the headers, which are ours; NESTING_MAX stops
 * it anyway.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_SIZE = 8, NESTING_MAX = 8 };

struct reader {
    struct abi_list *list;
    const struct abi_file *file;
    const struct abi_token *at;
    hob_error *error;
    bool names_only;
};

/* What a declarator says of its name. */
struct declarator {
    const struct abi_token *name; /* NULL: it has none */
    bool is_pointer;              /* what the name stands for, elements too */
    bool is_function;             /* a pointer to one */
    uint64_t count;               /* elements; 1 if it is no array */
    bool is_array;
};

/* Types that differ between machines or compilers, and what to write. */
static const struct banned {
    const char *name;
    const char *instead;
} bans[] = {
    {"_Atomic", "a plain number and a function that changes it"},
    {"_Bool", "uint32_t or a bit of flags"},
    {"bool", "uint32_t or a bit of flags"},
    {"int", "int32_t"},
    {"intptr_t", "int64_t or a pointer"},
    {"long", "int64_t or int32_t"},
    {"ptrdiff_t", "int64_t"},
    {"short", "int16_t"},
    {"signed", "int8_t, int16_t, int32_t or int64_t"},
    {"size_t", "uint64_t"},
    {"ssize_t", "int64_t"},
    {"time_t", "int64_t nanoseconds"},
    {"uintptr_t", "uint64_t or a pointer"},
    {"unsigned", "uint8_t, uint16_t, uint32_t or uint64_t"},
    {"volatile", "a plain number"},
    {"wchar_t", "char, in UTF-8"},
};

static const struct abi_name basic[] = {
    {"void", ABI_VOID, 0, 1},     {"char", ABI_CHAR, 1, 1},
    {"int8_t", ABI_FIXED, 1, 1},  {"uint8_t", ABI_FIXED, 1, 1},
    {"int16_t", ABI_FIXED, 2, 2}, {"uint16_t", ABI_FIXED, 2, 2},
    {"int32_t", ABI_FIXED, 4, 4}, {"uint32_t", ABI_FIXED, 4, 4},
    {"int64_t", ABI_FIXED, 8, 8}, {"uint64_t", ABI_FIXED, 8, 8},
    {"float", ABI_FIXED, 4, 4},   {"double", ABI_FIXED, 8, 8},
};

static bool is(const struct abi_token *token, const char *text)
{
    return token->length == strlen(text) &&
           !memcmp(token->text, text, token->length);
}

static bool take(struct reader *reader, const char *text)
{
    if (!is(reader->at, text))
        return false;
    reader->at++;
    return true;
}

static hob_status fail(const struct reader *reader,
                       const struct abi_token *token, const char *what)
{
    if (token->kind == ABI_END)
        return abi_fail(reader->file, token, reader->error,
                        "%s, not the end of the file", what);
    return abi_fail(reader->file, token, reader->error, "%s, not \"%.*s\"",
                    what, (int)token->length, token->text);
}

static hob_status no_memory(const struct reader *reader)
{
    return hob_error_set(reader->error, HOB_ERR_MEMORY, "%s: out of memory",
                         reader->file->path);
}

static hob_status expect(struct reader *reader, const char *text)
{
    char what[40];

    if (take(reader, text))
        return HOB_OK;
    (void)snprintf(what, sizeof(what), "expected \"%s\"", text);
    return fail(reader, reader->at, what);
}

/* One more element at the end of the list that the pointer at LIST holds,
 * which grows by doubling. */
static void *append(struct reader *reader, void *list, uint32_t *count,
                    size_t size)
{
    char *items, *grown;

    memcpy(&items, list, sizeof(items));
    if ((*count & (*count - 1)) == 0) {
        grown = hob__arena_array(&reader->list->arena,
                                 *count ? 2 * (size_t)*count : 1, size);
        if (!grown)
            return NULL;
        if (*count)
            memcpy(grown, items, *count * size);
        items = grown;
        memcpy(list, &items, sizeof(items));
    }
    return items + (*count)++ * size;
}

static char *word(struct reader *reader, const struct abi_token *token)
{
    return hob__arena_strndup(&reader->list->arena, token->text, token->length);
}

/* ---- names ---- */

static const struct abi_name *find_name(const struct reader *reader,
                                        const char *name)
{
    for (size_t i = 0; i < sizeof(basic) / sizeof(basic[0]); i++)
        if (!strcmp(basic[i].name, name))
            return &basic[i];
    for (uint32_t i = reader->list->name_count; i-- > 0;)
        if (!strcmp(reader->list->names[i].name, name))
            return &reader->list->names[i];
    return NULL;
}

/* NAME stands for KIND from here on. */
static hob_status add_name(struct reader *reader, const char *name,
                           enum abi_kind kind, uint32_t size, uint32_t align)
{
    struct abi_name *added =
        name ? append(reader, &reader->list->names, &reader->list->name_count,
                      sizeof(*added))
             : NULL;

    if (!added)
        return no_memory(reader);
    *added = (struct abi_name){name, kind, size, align};
    return HOB_OK;
}

static char *tag_name(struct reader *reader, const struct abi_token *token)
{
    return hob__arena_printf(&reader->list->arena, "struct %.*s",
                             (int)token->length, token->text);
}

/* A number, or an enumerator that was read. */
static hob_status read_number(struct reader *reader, int64_t *out_value)
{
    const bool negative = take(reader, "-");
    const struct abi_token *token = reader->at++;
    const struct abi_list *list = reader->list;
    char *stop;

    if (token->kind == ABI_NUMBER) {
        *out_value = strtoll(token->text, &stop, 0);
        if (stop != token->text + token->length)
            return fail(reader, token, "expected a plain number");
        *out_value = negative ? -*out_value : *out_value;
        return HOB_OK;
    }
    for (uint32_t i = 0; i < list->constant_count && !negative; i++) {
        if (!is(token, list->constants[i].name))
            continue;
        *out_value = list->constants[i].value;
        return HOB_OK;
    }
    return fail(reader, token, "expected a number or a known enumerator");
}

/* ---- types ---- */

/* "const struct hob_call" and the like, into TEXT too. */
static hob_status read_base(struct reader *reader, struct hob__text *text,
                            const struct abi_name **out_base)
{
    bool is_const = take(reader, "const");
    const struct abi_token *token = reader->at;
    char *name;

    if (token->kind != ABI_WORD)
        return fail(reader, token, "expected a type");
    for (size_t i = 0; i < sizeof(bans) / sizeof(bans[0]); i++) {
        if (is(token, bans[i].name))
            return abi_fail(reader->file, token, reader->error,
                            "%s is not the same on every machine: write %s",
                            bans[i].name, bans[i].instead);
    }
    if (is(token, "enum"))
        return abi_fail(reader->file, token, reader->error,
                        "the size of an enum is the compiler's: write "
                        "uint32_t and name the enum in the comment");
    if (is(token, "union"))
        return abi_fail(reader->file, token, reader->error,
                        "a union stands without a name inside a struct only");
    reader->at++;
    if (is(token, "struct")) {
        token = reader->at++;
        if (token->kind != ABI_WORD)
            return fail(reader, token, "expected the name of a struct");
        name = tag_name(reader, token);
    } else {
        name = word(reader, token);
    }
    if (!name)
        return no_memory(reader);
    is_const |= take(reader, "const");
    *out_base = find_name(reader, name);
    if (!*out_base && !strncmp(name, "struct ", 7)) {
        hob_status st = add_name(reader, name, ABI_OPAQUE, 0, 1);

        if (st)
            return st;
        *out_base = find_name(reader, name);
    }
    if (!*out_base)
        return abi_fail(reader->file, token, reader->error,
                        "the type %s is not known here", name);
    hob__text_printf(text, "%s%s ", is_const ? "const " : "", name);
    return HOB_OK;
}

static hob_status read_params(struct reader *reader, struct hob__text *text,
                              int nesting);

static hob_status read_array(struct reader *reader, struct hob__text *text,
                             struct declarator *out)
{
    const struct abi_token *token = reader->at;
    int64_t count = 0;
    hob_status st;

    if (is(token, "]"))
        return abi_fail(reader->file, token, reader->error,
                        "an array without a size cannot be followed by "
                        "later members: use a pointer and a count");
    st = read_number(reader, &count);
    if (!st)
        st = expect(reader, "]");
    if (st)
        return st;
    if (count < 1 || count > UINT16_MAX || out->count > UINT16_MAX)
        return abi_fail(reader->file, token, reader->error,
                        "expected a size from 1 to 65535");
    hob__text_printf(text, "[%d]", (int)count);
    out->count *= (uint64_t)count;
    out->is_array = true;
    return HOB_OK;
}

/* What stands around a name; the name itself is left out of TEXT. */
static hob_status read_declarator(struct reader *reader, struct hob__text *text,
                                  int nesting, struct declarator *out)
{
    struct declarator inner;
    bool is_nested = false;
    hob_status st = HOB_OK;

    *out = (struct declarator){NULL, false, false, 1, false};
    if (nesting > NESTING_MAX)
        return fail(reader, reader->at, "too many brackets");
    while (take(reader, "*")) {
        out->is_pointer = true;
        hob__text_puts(text, take(reader, "const") ? "*const " : "*");
    }
    if (is(reader->at, "(") && is(reader->at + 1, "*")) {
        reader->at++;
        hob__text_puts(text, "(");
        st = read_declarator(reader, text, nesting + 1, &inner);
        if (!st)
            st = expect(reader, ")");
        if (st)
            return st;
        hob__text_puts(text, ")");
        is_nested = true;
        *out = inner;
    } else if (reader->at->kind == ABI_WORD) {
        out->name = reader->at++;
    }
    if (is(reader->at, "(")) {
        if (!is_nested)
            return fail(reader, reader->at,
                        "a member is a number or a pointer: expected (*NAME)");
        out->is_function = true;
        return read_params(reader, text, nesting);
    }
    while (!st && take(reader, "[")) {
        struct declarator behind = {NULL, false, false, 1, false};

        st = read_array(reader, text, is_nested ? &behind : out);
    }
    return st;
}

/* "(TYPE, TYPE, ...)" without names; a value is a number or an enum. */
static hob_status read_params(struct reader *reader, struct hob__text *text,
                              int nesting)
{
    hob_status st = expect(reader, "(");

    hob__text_puts(text, "(");
    while (!st) {
        const struct abi_token *token = reader->at;
        const struct abi_name *base = NULL;
        struct declarator declarator;

        if (take(reader, "...")) {
            hob__text_puts(text, "...");
        } else {
            st = read_base(reader, text, &base);
            if (!st)
                st = read_declarator(reader, text, nesting + 1, &declarator);
            if (st)
                return st;
            /* No blank behind a type that stands alone. */
            if (text->data && text->length &&
                text->data[text->length - 1] == ' ')
                text->data[--text->length] = '\0';
            if (declarator.is_array && !declarator.is_pointer)
                return fail(reader, token, "an array is a pointer here");
            if (!declarator.is_pointer &&
                (base->kind == ABI_OPAQUE || base->kind == ABI_CHAR ||
                 (base->kind == ABI_VOID &&
                  !(is(reader->at, ")") && is(token - 1, "(")))))
                return abi_fail(reader->file, token, reader->error,
                                "%s cannot be a parameter", base->name);
        }
        if (!take(reader, ","))
            break;
        hob__text_puts(text, ", ");
    }
    hob__text_puts(text, ")");
    return st ? st : expect(reader, ")");
}

/* Attributes are no part of a type. */
static hob_status skip_attributes(struct reader *reader)
{
    hob_status st = HOB_OK;

    while (!st && take(reader, "HOB_PRINTF")) {
        st = expect(reader, "(");
        while (!st && !take(reader, ")")) {
            if (reader->at->kind == ABI_END)
                st = expect(reader, ")");
            else
                reader->at++;
        }
    }
    return st;
}

/* ---- members ---- */

static hob_status size_of(struct reader *reader, const struct abi_token *token,
                          const struct abi_name *base,
                          const struct declarator *declarator,
                          uint32_t *out_size, uint32_t *out_align)
{
    const char *why = NULL;

    if (declarator->is_pointer || base->kind == ABI_POINTER) {
        *out_size = POINTER_SIZE * (uint32_t)declarator->count;
        *out_align = POINTER_SIZE;
        return HOB_OK;
    }
    if (base->kind == ABI_ENUM)
        why = "the size of an enum is the compiler's: write uint32_t and name "
              "the enum in the comment";
    else if (base->kind == ABI_CHAR && !declarator->is_array)
        why = "the sign of a char is the compiler's: write int8_t or uint8_t";
    else if (base->kind == ABI_OPAQUE || base->kind == ABI_VOID)
        why = "its size is not known here: use a pointer";
    if (why)
        return abi_fail(reader->file, token, reader->error, "%s: %s",
                        base->name, why);
    if (base->size * declarator->count > UINT16_MAX)
        return abi_fail(reader->file, token, reader->error,
                        "more than 65535 bytes");
    *out_size = base->size * (uint32_t)declarator->count;
    *out_align = base->align;
    return HOB_OK;
}

/* The place of a member that ends WHAT so far, which has no holes. */
static hob_status place(struct reader *reader, const struct abi_token *token,
                        struct abi_struct *what, uint32_t align,
                        uint32_t *out_offset)
{
    if (align > what->align)
        what->align = align;
    *out_offset = what->size;
    if (what->size % align == 0)
        return HOB_OK;
    return abi_fail(reader->file, token, reader->error,
                    "%u bytes of padding before this member: put a reserved "
                    "one there",
                    align - what->size % align);
}

/* One of the names behind a type, as in "int64_t m, n". */
static hob_status read_member(struct reader *reader, struct abi_struct *what,
                              const struct abi_name *base,
                              const char *base_text, const char *prefix,
                              bool is_union, struct abi_member **out_member)
{
    struct abi_list *list = reader->list;
    struct hob__text text = HOB__TEXT_INIT;
    const struct abi_token *token = reader->at;
    struct declarator declarator;
    struct abi_member *member;
    uint32_t size = 0, align = 1, offset = 0;
    hob_status st;

    hob__text_puts(&text, base_text);
    st = read_declarator(reader, &text, 0, &declarator);
    if (!st && !declarator.name)
        st = fail(reader, token, "expected the name of a member");
    if (!st && is(reader->at, ":"))
        st = abi_fail(reader->file, reader->at, reader->error,
                      "the place of a bit-field is the compiler's: use bits "
                      "of a uint32_t");
    if (!st)
        st = skip_attributes(reader);
    if (!st)
        st = size_of(reader, token, base, &declarator, &size, &align);
    if (!st && !is_union)
        st = place(reader, token, what, align, &offset);
    if (st)
        goto out;
    member =
        append(reader, &list->members, &list->member_count, sizeof(*member));
    if (!member || text.failed || !text.data) {
        st = no_memory(reader);
        goto out;
    }
    while (text.length && text.data[text.length - 1] == ' ')
        text.data[--text.length] = '\0';
    memset(member, 0, sizeof(*member));
    member->name =
        hob__arena_printf(&list->arena, "%s%.*s", prefix,
                          (int)declarator.name->length, declarator.name->text);
    member->type = hob__arena_strdup(&list->arena, text.data);
    member->offset = is_union ? what->size : offset;
    member->size = size;
    member->is_pointer = (declarator.is_pointer || base->kind == ABI_POINTER) &&
                         !declarator.is_array;
    if (!member->name || !member->type)
        st = no_memory(reader);
    if (!is_union)
        what->size = offset + size;
    if (is_union && align > what->align)
        what->align = align;
    what->count++;
    *out_member = member;
out:
    hob__text_release(&text);
    return st;
}

/* "TYPE NAME, NAME;" */
static hob_status read_line(struct reader *reader, struct abi_struct *what,
                            const char *prefix, bool is_union)
{
    const struct abi_token *first = reader->at;
    struct abi_list *list = reader->list;
    const uint32_t before = list->member_count;
    struct hob__text text = HOB__TEXT_INIT;
    const struct abi_name *base = NULL;
    struct abi_member *member = NULL;
    bool required = first->says_required;
    hob_status st = read_base(reader, &text, &base);

    while (!st) {
        st = read_member(reader, what, base, text.data ? text.data : "", prefix,
                         is_union, &member);
        if (!take(reader, ","))
            break;
    }
    if (!st)
        st = expect(reader, ";");
    for (const struct abi_token *token = first; !st && token < reader->at;
         token++) {
        if (token != first && token->after_directive)
            st = fail(reader, token, "a # line inside a struct");
        required |= token->ends_in_required;
    }
    for (uint32_t i = before; !st && i < list->member_count; i++)
        list->members[i].is_required = required;
    hob__text_release(&text);
    return st;
}

/* "union { ... } NAME;" in WHAT. */
static hob_status read_union(struct reader *reader, struct abi_struct *what)
{
    const struct abi_token *start = reader->at;
    const struct abi_token *name;
    struct abi_list *list = reader->list;
    struct abi_struct inner = {NULL, list->member_count, 0, 0, 1, false};
    const char *prefix;
    uint32_t size = 0, offset = 0;
    hob_status st = HOB_OK;

    reader->at += 2;
    while (!st && !take(reader, "}"))
        st = read_line(reader, &inner, "", true);
    name = reader->at++;
    if (!st && name->kind != ABI_WORD)
        st = fail(reader, name, "expected the name of the union");
    if (!st)
        st = expect(reader, ";");
    if (!st)
        st = place(reader, start, what, inner.align, &offset);
    for (uint32_t i = inner.first; !st && i < list->member_count; i++) {
        struct abi_member *member = &list->members[i];

        prefix = member->name;
        member->name = hob__arena_printf(&list->arena, "%.*s.%s",
                                         (int)name->length, name->text, prefix);
        member->offset = offset;
        if (member->size > size)
            size = member->size;
        if (!member->name)
            st = no_memory(reader);
    }
    what->size = offset + (size + inner.align - 1) / inner.align * inner.align;
    what->count += inner.count;
    return st;
}

/* Where is the size that a table says, if it says one? */
static hob_status check_table(struct reader *reader,
                              const struct abi_token *name,
                              struct abi_struct *what)
{
    const struct abi_list *list = reader->list;

    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        const struct abi_member *member = &list->members[i];
        const uint32_t index = i - what->first;

        if (strcmp(member->name, "struct_size") != 0)
            continue;
        if (strcmp(member->type, "uint32_t") != 0 || index > 1 ||
            (index == 1 && strcmp(list->members[what->first].name, "magic")))
            return abi_fail(reader->file, name, reader->error,
                            "struct_size is a uint32_t and comes first, or "
                            "behind \"magic\"");
        what->is_table = true;
    }
    return HOB_OK;
}

/* "{ members }" of struct NAME. */
static hob_status read_struct(struct reader *reader,
                              const struct abi_token *name)
{
    struct abi_list *list = reader->list;
    struct abi_struct what = {NULL, list->member_count, 0, 0, 1, false};
    struct abi_struct *added;
    uint32_t since = 0;
    hob_status st = expect(reader, "{");

    while (!st && !is(reader->at, "}")) {
        const uint32_t first = list->member_count;

        if (reader->at->after_directive)
            return fail(reader, reader->at, "a # line inside a struct");
        if (reader->at->since) {
            if (reader->at->since < since)
                return fail(reader, reader->at,
                            "expected members in the order of \"Since\"");
            since = reader->at->since;
        }
        if (is(reader->at, "union") && is(reader->at + 1, "{"))
            st = read_union(reader, &what);
        else
            st = read_line(reader, &what, "", false);
        for (uint32_t i = first; !st && i < list->member_count; i++)
            list->members[i].since = since;
    }
    if (!st && !what.count)
        st = fail(reader, reader->at, "expected a member");
    if (!st && what.size % what.align)
        st = abi_fail(reader->file, reader->at, reader->error,
                      "%u bytes of padding at the end: add a reserved member",
                      what.align - what.size % what.align);
    if (!st)
        st = check_table(reader, name, &what);
    if (st)
        return st;
    reader->at++;
    what.name = word(reader, name);
    added = append(reader, &list->structs, &list->struct_count, sizeof(*added));
    if (!added || !what.name)
        return no_memory(reader);
    *added = what;
    return add_name(reader, tag_name(reader, name), ABI_FIXED, what.size,
                    what.align);
}

/* ---- declarations ---- */

/* "{ NAME = VALUE, ... }" */
static hob_status read_enumerators(struct reader *reader)
{
    struct abi_list *list = reader->list;
    int64_t value = -1;
    hob_status st = expect(reader, "{");

    while (!st && !is(reader->at, "}")) {
        const struct abi_token *name = reader->at++;
        struct abi_constant *added;

        if (name->kind != ABI_WORD)
            return fail(reader, name, "expected an enumerator");
        value++;
        if (take(reader, "="))
            st = read_number(reader, &value);
        added = append(reader, &list->constants, &list->constant_count,
                       sizeof(*added));
        if (!added)
            return no_memory(reader);
        added->name = word(reader, name);
        added->value = value;
        if (!added->name)
            return no_memory(reader);
        if (!st && !take(reader, ","))
            break;
    }
    return st ? st : expect(reader, "}");
}

/* To the end of a declaration; with a body, to the end of that. */
static hob_status skip(struct reader *reader)
{
    int depth = 0;

    for (; reader->at->kind != ABI_END; reader->at++) {
        if (is(reader->at, "{") || is(reader->at, "("))
            depth++;
        if (is(reader->at, ")"))
            depth--;
        if (is(reader->at, "}") && --depth == 0 && !is(reader->at + 1, ";")) {
            reader->at++;
            return HOB_OK;
        }
        if (is(reader->at, ";") && depth == 0) {
            reader->at++;
            return HOB_OK;
        }
    }
    return fail(reader, reader->at, "expected the end of a declaration");
}

/* "struct NAME;", "struct NAME {..};" and both after typedef. */
static hob_status read_tagged(struct reader *reader, bool is_typedef)
{
    const struct abi_token *name = ++reader->at;
    const struct abi_name *known;
    char *tag;
    hob_status st = HOB_OK;

    if (name->kind != ABI_WORD)
        return fail(reader, name, "expected the name of a struct");
    reader->at++;
    tag = tag_name(reader, name);
    if (!tag)
        return no_memory(reader);
    if (is(reader->at, "{") && !reader->names_only) {
        st = read_struct(reader, name);
    } else {
        if (!find_name(reader, tag))
            st = add_name(reader, tag, ABI_OPAQUE, 0, 1);
        while (!st && is(reader->at, "{")) {
            while (reader->at->kind != ABI_END && !is(reader->at, "}"))
                reader->at++;
            st = expect(reader, "}");
        }
    }
    known = find_name(reader, tag);
    if (!st && is_typedef && reader->at->kind == ABI_WORD)
        st = add_name(reader, word(reader, reader->at++), known->kind,
                      known->size, known->align);
    return st ? st : expect(reader, ";");
}

static hob_status read_enum(struct reader *reader, bool is_typedef)
{
    struct abi_list *list = reader->list;
    const char *name = NULL;
    const char **added;
    hob_status st;

    reader->at++;
    if (reader->at->kind == ABI_WORD)
        reader->at++;
    st = read_enumerators(reader);
    if (!st && is_typedef && reader->at->kind == ABI_WORD) {
        name = word(reader, reader->at++);
        added = append(reader, &list->enums, &list->enum_count, sizeof(*added));
        if (!added || !name)
            return no_memory(reader);
        *added = name;
        st = add_name(reader, name, ABI_ENUM, 4, 4);
    }
    return st ? st : expect(reader, ";");
}

/* "TYPE NAME;" or "RESULT (*NAME)(PARAMS);" */
static hob_status read_alias(struct reader *reader)
{
    struct abi_list *list = reader->list;
    struct hob__text text = HOB__TEXT_INIT;
    const struct abi_token *start = reader->at;
    const struct abi_name *base = NULL;
    struct abi_function *added;
    struct declarator declarator;
    const char *name, *type = NULL;
    hob_status st = read_base(reader, &text, &base);

    if (!st)
        st = read_declarator(reader, &text, 0, &declarator);
    if (!st && (!declarator.name || declarator.is_array ||
                (declarator.is_pointer && !declarator.is_function)))
        st = fail(reader, start,
                  "expected another name of a type, or a type of functions");
    if (st)
        goto out;
    name = word(reader, declarator.name);
    if (declarator.is_function) {
        type = hob__arena_strdup(&list->arena, text.data ? text.data : "");
        added = append(reader, &list->functions, &list->function_count,
                       sizeof(*added));
        if (!added || !type || !name) {
            st = no_memory(reader);
            goto out;
        }
        *added = (struct abi_function){name, type};
        st = add_name(reader, name, ABI_POINTER, POINTER_SIZE, POINTER_SIZE);
    } else {
        st = add_name(reader, name, base->kind, base->size, base->align);
    }
    if (!st)
        st = expect(reader, ";");
out:
    hob__text_release(&text);
    return st;
}

static hob_status read_declaration(struct reader *reader)
{
    const bool is_typedef = take(reader, "typedef");

    if (is(reader->at, "struct"))
        return read_tagged(reader, is_typedef);
    if (is(reader->at, "enum"))
        return read_enum(reader, is_typedef);
    if (is_typedef)
        return read_alias(reader);
    if (is(reader->at, "static") || is(reader->at, "HOB_API") ||
        is(reader->at, "HOB_EXPORT"))
        return skip(reader);
    return fail(reader, reader->at,
                "expected a struct, an enum, a typedef or a function");
}

hob_status abi_read(struct abi_list *list, const struct abi_file *file,
                    bool names_only, hob_error *error)
{
    struct reader reader = {list, file, file->tokens, error, names_only};
    hob_status st = HOB_OK;

    while (!st && reader.at->kind != ABI_END) {
        if (!take(&reader, "HOB_BEGIN_DECLS") &&
            !take(&reader, "HOB_END_DECLS"))
            st = read_declaration(&reader);
    }
    return st;
}
