/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what only the whole schema shows: numbers, names, cycles.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct gen_op *find_op(const struct gen_schema *schema,
                                    const char *name)
{
    for (uint32_t i = 0; i < schema->op_count; i++) {
        if (!strcmp(schema->ops[i].full_name, name))
            return &schema->ops[i];
    }
    return NULL;
}

static hob_status check_names(const struct gen_schema *schema, hob_error *error)
{
    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];
        const struct gen_op *first = find_op(schema, op->full_name);
        uint32_t line, column;

        if (first == op)
            continue;
        hob__json_place(first->source->doc, first->place, &line, &column);
        return gen_fail(
            op->source, hob__json_member(op->source->doc, op->place, "op"),
            error,
            "op \"%s\" is declared twice; first at %s:%" PRIu32 ":%" PRIu32,
            op->name, first->source->path, line, column);
    }
    return HOB_OK;
}

/* Numbers are part of the ABI: 1, 2, 3, ... without a gap. OPS are sorted. */
static hob_status check_ids(const struct gen_schema *schema, hob_error *error)
{
    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];
        const struct hob__json_value *place =
            hob__json_member(op->source->doc, op->place, "id");

        if (op->id == i + 1)
            continue;
        if (i && op->id == op[-1].id)
            return gen_fail(op->source, place, error,
                            "id %" PRIu32 " is \"%s\"'s; a new op takes the "
                            "next free number",
                            op->id, op[-1].name);
        return gen_fail(op->source, place, error,
                        "id %" PRIu32 " leaves a gap: %" PRIu32 " is free. "
                        "Numbers are never reused, so an op is never removed",
                        op->id, i + 1);
    }
    return HOB_OK;
}

/* The names of the built-in ops, for extensions: made from core/ops. */
static const char *const builtin_names[] = {
#include "builtin_names.inc"
};

/* In an extension a bare name is a built-in op, and one of another namespace
 * another extension's, which is not known here. */
static hob_status check_builtin(const struct gen_op *op,
                                const struct hob__json_value *item,
                                const char *name, hob_error *error)
{
    const size_t count = GEN_COUNT_OF(builtin_names);
    const char *meant;

    for (size_t i = 0; i < count; i++)
        if (!strcmp(builtin_names[i], name))
            return HOB_OK;
    meant = hob__nearest_name(name, builtin_names, count);
    return gen_fail(op->source, item, error,
                    "there is no built-in op \"%s\"%s%s%s; an extension's "
                    "has its namespace before it",
                    name, meant ? "; \"" : "", meant ? meant : "",
                    meant ? "\" is meant?" : "");
}

/* "implements" names an op of Hob or one of another extension. */
static hob_status check_implements(const struct gen_schema *schema,
                                   hob_error *error)
{
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < schema->implements_count && !st; i++) {
        const struct gen_op *op = &schema->implements[i];

        if (!strchr(op->name, '.'))
            st = check_builtin(
                op, hob__json_member(op->source->doc, op->place, "op"),
                op->name, error);
    }
    return st;
}

static hob_status check_use(const struct gen_schema *schema,
                            const struct gen_op *op,
                            const struct hob__json_value *item,
                            hob_error *error)
{
    const char *name = NULL;
    hob_status st = hob__json_string(op->source->doc, item, &name, error);
    size_t length;

    if (st || find_op(schema, name))
        return st;
    if (schema->is_extension && !strchr(name, '.'))
        return check_builtin(op, item, name, error);
    if (schema->is_extension) {
        length = strlen(schema->name_space);
        if (strncmp(name, schema->name_space, length) != 0 ||
            name[length] != '.')
            return HOB_OK;
    }
    return gen_fail(op->source, item, error, "there is no op \"%s\"", name);
}

/* One op on the way down the "uses", and the next of them to follow. */
struct step {
    const struct gen_op *op;
    const struct hob__json_value *next;
};

static hob_status fail_cycle(const struct step *path, uint32_t depth,
                             const struct gen_op *again, hob_error *error)
{
    struct hob__text names = HOB__TEXT_INIT;
    uint32_t from = 0;

    while (path[from].op != again)
        from++;
    for (uint32_t i = from; i < depth; i++)
        hob__text_printf(&names, "%s -> ", path[i].op->full_name);
    hob__text_puts(&names, again->full_name);
    (void)gen_fail(again->source, again->uses, error,
                   "the bodies use each other in a circle: %s",
                   names.data ? names.data : "?");
    hob__text_release(&names);
    return HOB_ERR_FORMAT;
}

/*
 * Follow the "uses" from START, depth first, without recursion. DONE holds a
 * byte an op: 1 on the path, 2 known to be free of circles.
 */
static hob_status follow(const struct gen_schema *schema,
                         const struct gen_op *start, struct step *path,
                         uint8_t *done, hob_error *error)
{
    uint32_t depth = 0;

    path[depth++] = (struct step){start, NULL};
    while (depth) {
        struct step *top = &path[depth - 1];
        const struct hob__json_doc *doc = top->op->source->doc;
        uint8_t *mark = &done[top->op - schema->ops];
        const struct gen_op *used;
        const char *name = NULL;

        if (*mark != 1) { /* just come here */
            *mark = 1;
            top->next =
                top->op->uses ? hob__json_first(doc, top->op->uses) : NULL;
        }
        if (!top->next) {
            *mark = 2;
            depth--;
            continue;
        }
        if (hob__json_string(doc, top->next, &name, NULL))
            name = NULL;
        top->next = hob__json_next(doc, top->next);
        used = name ? find_op(schema, name) : NULL;
        if (used && done[used - schema->ops] == 1)
            return fail_cycle(path, depth, used, error);
        if (used && !done[used - schema->ops])
            path[depth++] = (struct step){used, NULL};
    }
    return HOB_OK;
}

static hob_status check_uses(const struct gen_schema *schema, hob_error *error)
{
    struct step *path = calloc(schema->op_count + 1, sizeof(*path));
    uint8_t *done = calloc(schema->op_count + 1, 1);
    hob_status st = path && done ? HOB_OK : gen_no_memory(error);

    for (uint32_t i = 0; i < schema->op_count && !st; i++) {
        const struct gen_op *op = &schema->ops[i];
        const struct hob__json_value *item =
            op->uses ? hob__json_first(op->source->doc, op->uses) : NULL;

        for (; item && !st; item = hob__json_next(op->source->doc, item))
            st = check_use(schema, op, item, error);
    }
    for (uint32_t i = 0; i < schema->op_count && !st; i++) {
        if (!done[i])
            st = follow(schema, &schema->ops[i], path, done, error);
    }
    free(path);
    free(done);
    return st;
}

/* ---- the names that an extension's author must define ---- */

/* "demo_square" + "flex": '-' and '.' become '_' in both. */
static int same_impl(const struct gen_op *a, const char *selector_a,
                     const struct gen_op *b, const char *selector_b)
{
    char *x = gen_c_word(selector_a), *y = gen_c_word(selector_b);
    int same = x && y && !strcmp(a->c_name, b->c_name) && !strcmp(x, y);

    free(x);
    free(y);
    return same;
}

/* The op INDEX of the schema: its own first, then those it implements. */
static const struct gen_op *op_at(const struct gen_schema *schema,
                                  uint32_t index)
{
    return index < schema->op_count
               ? &schema->ops[index]
               : &schema->implements[index - schema->op_count];
}

static hob_status check_impl_names(const struct gen_schema *schema,
                                   hob_error *error)
{
    uint32_t count = schema->op_count + schema->implements_count;

    for (uint32_t i = 0; i < count; i++) {
        const struct gen_op *op = op_at(schema, i);

        for (uint32_t k = 0; k < op->impl_count; k++) {
            for (uint32_t j = 0; j <= i; j++) {
                const struct gen_op *other = op_at(schema, j);
                uint32_t end = j == i ? k : other->impl_count;

                for (uint32_t m = 0; m < end; m++) {
                    if (same_impl(op, op->impls[k].selector, other,
                                  other->impls[m].selector))
                        return gen_fail(
                            op->source, op->impls[k].place, error,
                            "%s for \"%s\" and %s for \"%s\" get one name "
                            "in C",
                            op->full_name, op->impls[k].selector,
                            other->full_name, other->impls[m].selector);
                }
            }
        }
    }
    return HOB_OK;
}

/* A wrapper may be called like what belongs to another op: square_flex. */
static hob_status check_wrapper_names(const struct gen_schema *schema,
                                      hob_error *error)
{
    static const char *const tails[] = {"_body", "_infer", "_backward"};

    for (uint32_t i = 0; i < schema->op_count; i++) {
        const struct gen_op *op = &schema->ops[i];

        for (uint32_t j = 0; j < schema->op_count; j++) {
            const struct gen_op *other = &schema->ops[j];
            size_t length = strlen(other->c_name);
            bool clash = false;

            if (i == j || strncmp(op->c_name, other->c_name, length) != 0)
                continue;
            for (size_t k = 0; k < GEN_COUNT_OF(tails); k++)
                clash = clash || !strcmp(op->c_name + length, tails[k]);
            for (uint32_t k = 0; k < other->impl_count; k++) {
                char *word = gen_c_word(other->impls[k].selector);

                clash = clash || (word && op->c_name[length] == '_' &&
                                  !strcmp(op->c_name + length + 1, word));
                free(word);
            }
            if (clash)
                return gen_fail(op->source, op->place, error,
                                "%s and a function of %s get one name in C, "
                                "%s; rename the op",
                                op->full_name, other->full_name, op->c_name);
        }
    }
    return HOB_OK;
}

hob_status gen_check(const struct gen_schema *schema, hob_error *error)
{
    hob_status st = check_names(schema, error);

    if (!st && !schema->is_extension)
        st = check_ids(schema, error);
    if (!st)
        st = check_uses(schema, error);
    if (!st)
        st = check_implements(schema, error);
    if (!st)
        st = check_impl_names(schema, error);
    if (!st && schema->is_extension)
        st = check_wrapper_names(schema, error);
    if (!st && schema->is_extension)
        st = gen_check_names(schema, error);
    return st;
}
