/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include "error.h"
#include "runtime.h"
#include "signature_scan.h"

#include <stdlib.h>
#include <string.h>

/* The two roots, and arguments of every op of the pattern and of what takes its
 * place, those with defaults too. */
enum { MAX_NODES = 2 + (HOB_PATTERN_MAX_OPS + 1) * HOB_MAX_PARAMS };

/* A pattern and what it points at, in one block. */
struct block {
    struct hob_pattern pattern;
    struct hob_pattern_node nodes[];
};

struct name {
    char *text;
    uint8_t type; /* enum hob__type */
};

struct names {
    struct name names[HOB_PATTERN_MAX_NAMES];
    uint16_t count;
};

struct reader {
    struct hob__cursor cursor;
    const struct hob__registry *registry;
    struct hob_pattern_node *nodes;
    uint16_t node_count, op_count;
    int is_with; /* the text of what takes the place */
    struct names tensors, attributes;
    const char *unknown; /* an op that is not there */
};

static hob_status fail(struct reader *reader, size_t at, const char *message)
{
    return hob__scan_fail(&reader->cursor, at, message);
}

/* Let NODE be the name TEXT of NAMES, of TYPE; TEXT is taken. */
static hob_status use_name(struct reader *reader, struct names *names,
                           char *text, uint8_t type, size_t at,
                           struct hob_pattern_node *node)
{
    uint16_t i = 0;

    while (i < names->count && strcmp(names->names[i].text, text) != 0)
        i++;
    node->number = i;
    if (i < names->count) {
        free(text);
        return names->names[i].type == type
                   ? HOB_OK
                   : fail(reader, at,
                          "this name stands for another type elsewhere");
    }
    if (reader->is_with || i == HOB_PATTERN_MAX_NAMES) {
        free(text);
        return fail(reader, at,
                    reader->is_with ? "\"replace\" has no such name"
                                    : "too many names");
    }
    names->names[i].text = text;
    names->names[i].type = type;
    names->count++;
    return HOB_OK;
}

/* Why OP is none for patterns; NULL if it is. */
static const char *unfit(const struct hob__op *op)
{
    const struct hob__signature *signature = &op->signature;

    if (signature->result_count != 1 || signature->results[0].is_list ||
        signature->plain_count ||
        (signature->results[0].flags & HOB__PARAM_OPTIONAL))
        return "an op of a pattern has one tensor as its result";
    if (op->flags & (HOB__OP_DYNAMIC | HOB__OP_RANDOM))
        return "no pattern has an op that draws numbers, or whose result sizes "
               "depend on data";
    for (uint32_t i = 0; i < signature->param_count; i++)
        if (signature->params[i].type == HOB__TYPE_TENSORS ||
            signature->params[i].type == HOB__TYPE_DEVICE)
            return "no pattern has an op that takes a list of tensors or a "
                   "device";
    return NULL;
}

static hob_status read_op(struct reader *reader, char *name, size_t at,
                          uint16_t index);

static hob_status read_tensor(struct reader *reader, uint16_t index)
{
    struct hob__cursor *c = &reader->cursor;
    const size_t at = (hob__scan_peek(c), c->at);
    char *name = NULL;
    hob_status status =
        hob__scan_name(c, 0, &name, "a name or an op with arguments expected");

    if (status)
        return status;
    if (hob__scan_peek(c) == '(') {
        if (!reader->is_with)
            return read_op(reader, name, at, index);
        free(name);
        return fail(reader, at, "\"with\" is one op, of names and values");
    }
    reader->nodes[index].kind = HOB_PATTERN_TENSOR;
    return use_name(reader, &reader->tensors, name, HOB__TYPE_TENSOR, at,
                    &reader->nodes[index]);
}

static hob_status read_attribute(struct reader *reader,
                                 const struct hob__param *param, uint16_t index)
{
    struct hob__cursor *c = &reader->cursor;
    const size_t at = (hob__scan_peek(c), c->at);
    char *name = NULL;

    if (!hob__scan_accept(c, "$")) {
        reader->nodes[index].kind = HOB_PATTERN_VALUE;
        return hob__scan_value(c, param, &reader->nodes[index].value);
    }
    if (hob__scan_word(c, 0, &name, "a name expected after '$'"))
        return c->status;
    reader->nodes[index].kind = HOB_PATTERN_ATTRIBUTE;
    return use_name(reader, &reader->attributes, name, param->type, at,
                    &reader->nodes[index]);
}

/* An argument that is not written. */
static hob_status leave_out(struct reader *reader,
                            const struct hob__param *param, uint16_t index)
{
    struct hob_pattern_node *node = &reader->nodes[index];

    node->kind = HOB_PATTERN_VALUE;
    node->value = hob_none();
    if (param->flags & HOB__PARAM_DEFAULT) {
        hob_status status = HOB_OK;
        struct hob__cursor c = {.text = param->default_text};

        /* A copy of its own, as the others have. */
        status = hob__scan_value(&c, param, &node->value);
        return status ? fail(reader, reader->cursor.at,
                             "the default of an argument cannot be read")
                      : HOB_OK;
    }
    return param->flags & HOB__PARAM_OPTIONAL
               ? HOB_OK
               : fail(reader, reader->cursor.at, "an argument is missing");
}

static hob_status read_arguments(struct reader *reader,
                                 const struct hob__op *op, uint16_t first)
{
    const struct hob__signature *signature = &op->signature;
    hob_status status =
        hob__scan_expect(&reader->cursor, "(", "'(' expected after an op");
    int more = hob__scan_peek(&reader->cursor) != ')';

    for (uint16_t i = 0; i < signature->param_count && !status; i++) {
        const struct hob__param *param = &signature->params[i];
        const uint16_t index = (uint16_t)(first + i);

        if (!more) {
            status = leave_out(reader, param, index);
            continue;
        }
        status = param->type == HOB__TYPE_TENSOR
                     ? read_tensor(reader, index)
                     : read_attribute(reader, param, index);
        more = !status && hob__scan_accept(&reader->cursor, ",");
    }
    if (!status && more)
        status = fail(reader, reader->cursor.at,
                      "the op does not take so many arguments");
    return status ? status
                  : hob__scan_expect(&reader->cursor, ")",
                                     "',' or ')' expected after an argument");
}

/* NAME, which is taken, and its arguments as node INDEX. */
static hob_status read_op(struct reader *reader, char *name, size_t at,
                          uint16_t index)
{
    const struct hob__op *op = hob__registry_find(reader->registry, name);
    struct hob_pattern_node *node = &reader->nodes[index];

    if (!op) {
        reader->unknown = name; /* the caller frees it */
        return fail(reader, at, "there is no such op");
    }
    free(name);
    if (unfit(op))
        return fail(reader, at, unfit(op));
    if (reader->op_count == HOB_PATTERN_MAX_OPS)
        return fail(reader, at, "too many ops");
    reader->op_count++;
    node->kind = HOB_PATTERN_OP;
    node->op = op->id;
    node->first = reader->node_count;
    node->count = op->signature.param_count;
    reader->node_count = (uint16_t)(reader->node_count + node->count);
    return read_arguments(reader, op, node->first);
}

/* TEXT as a node, whose number is returned. */
static hob_status read_text(struct reader *reader, const char *text,
                            uint16_t *out_index)
{
    struct hob__cursor *c = &reader->cursor;
    char *name = NULL;
    size_t at;
    hob_status status;

    memset(c, 0, sizeof(*c));
    c->text = text;
    *out_index = reader->node_count++;
    reader->op_count = 0;
    hob__scan_peek(c);
    at = c->at;
    status = hob__scan_name(c, 0, &name, "an op expected");
    if (!status)
        status = read_op(reader, name, at, *out_index);
    if (!status && hob__scan_peek(c))
        status = fail(reader, c->at, "nothing more expected");
    return status;
}

/* ---- blocks ---- */

static void release_reader(struct reader *reader)
{
    for (uint16_t i = 0; i < reader->tensors.count; i++)
        free(reader->tensors.names[i].text);
    for (uint16_t i = 0; i < reader->attributes.count; i++)
        free(reader->attributes.names[i].text);
    free((void *)(uintptr_t)reader->unknown);
}

static hob_status read_both(struct reader *reader, struct block *block,
                            hob_error *error)
{
    struct hob_pattern *pattern = &block->pattern;
    const char *text = pattern->replace;
    uint16_t root = 0;
    hob_status status = read_text(reader, text, &root);

    pattern->op_count = reader->op_count;
    if (!status && pattern->op_count < 2)
        status = fail(reader, 0,
                      "a pattern has at least two ops: a kernel for one is "
                      "what \"implements\" is for");
    if (!status) {
        text = pattern->with_text;
        reader->is_with = 1;
        status = read_text(reader, text, &pattern->with);
    }
    pattern->node_count = reader->node_count;
    pattern->tensors = reader->tensors.count;
    pattern->attributes = reader->attributes.count;
    if (!status)
        return HOB_OK;
    if (reader->unknown)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "pattern \"%s\": there is no op %s", text,
                             reader->unknown);
    return hob_error_set(error, status, "pattern \"%s\", column %zu: %s", text,
                         reader->cursor.error_at + 1,
                         reader->cursor.message ? reader->cursor.message
                                                : "out of memory");
}

hob_status hob__pattern_read(const struct hob__registry *registry,
                             const char *replace, const char *with,
                             struct hob_pattern **out_pattern, hob_error *error)
{
    struct block *block =
        calloc(1, sizeof(*block) + MAX_NODES * sizeof(struct hob_pattern_node));
    struct reader reader = {.registry = registry};
    struct block *shorter;
    hob_status status;

    *out_pattern = NULL;
    if (!block)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a pattern");
    reader.nodes = block->nodes;
    block->pattern.replace = replace;
    block->pattern.with_text = with;
    status = read_both(&reader, block, error);
    release_reader(&reader);
    if (status) {
        hob__pattern_free(&block->pattern);
        return status;
    }
    shorter = realloc(block, sizeof(*block) +
                                 reader.node_count * sizeof(block->nodes[0]));
    if (shorter)
        block = shorter;
    block->pattern.struct_size = sizeof(block->pattern);
    block->pattern.node_size = sizeof(block->nodes[0]);
    block->pattern.nodes = block->nodes;
    *out_pattern = &block->pattern;
    return HOB_OK;
}

void hob__pattern_free(struct hob_pattern *pattern)
{
    struct block *block = (struct block *)(void *)pattern;

    for (uint32_t i = 0; block && i < pattern->node_count; i++)
        hob__value_release(&block->nodes[i].value);
    free(block);
}

/* ---- those of a runtime ---- */

static hob_status add(hob_runtime *runtime,
                      const struct hob__candidate *candidate,
                      const struct hob__manifest_pattern *manifest,
                      hob_error *error)
{
    struct hob__registry *registry = &runtime->registry;
    struct hob_pattern *pattern;
    hob_error why = HOB_ERROR_INIT;
    hob_status status = hob__pattern_read(registry, manifest->replace,
                                          manifest->with, &pattern, &why);
    uint32_t at = registry->pattern_count;

    if (status && status != HOB_ERR_MEMORY)
        hob__log_write(hob__loader_log(runtime->loader),
                       status == HOB_ERR_NOT_FOUND ? HOB__SEVERITY_DEBUG
                                                   : HOB__SEVERITY_ERROR,
                       "loader", "%s:%d:%d: %s: not used", candidate->path,
                       manifest->place.line, manifest->place.column,
                       hob__error_text(&why));
    hob_error_release(&why);
    if (status == HOB_ERR_MEMORY)
        return hob_error_set(error, status, "no memory for the patterns");
    if (status)
        return HOB_OK;
    pattern->plugin = candidate->manifest->id;
    /* One that has another inside is to be tried before that. */
    while (at && registry->patterns[at - 1]->op_count < pattern->op_count) {
        registry->patterns[at] = registry->patterns[at - 1];
        at--;
    }
    registry->patterns[at] = pattern;
    registry->pattern_count++;
    return HOB_OK;
}

hob_status hob__patterns_init(hob_runtime *runtime, hob_error *error)
{
    struct hob__registry *registry = &runtime->registry;
    const uint32_t candidates = hob__loader_count(runtime->loader);
    uint32_t count = 0;
    hob_status status = HOB_OK;

    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i < candidates && !status; i++) {
            const struct hob__candidate *candidate =
                hob__loader_get(runtime->loader, i);
            const struct hob__manifest *manifest = candidate->manifest;

            if (!manifest || !hob__candidate_usable(candidate))
                continue;
            count += manifest->pattern_count;
            for (uint32_t k = 0; fill && k < manifest->pattern_count && !status;
                 k++)
                status = add(runtime, candidate, &manifest->patterns[k], error);
        }
        if (fill || !count)
            break;
        registry->patterns = calloc(count, sizeof(struct hob_pattern *));
        if (!registry->patterns)
            return hob_error_set(error, HOB_ERR_MEMORY,
                                 "no memory for the patterns");
    }
    return status;
}

void hob__patterns_release(struct hob__registry *registry)
{
    for (uint32_t i = 0; i < registry->pattern_count; i++)
        hob__pattern_free(registry->patterns[i]);
    free(registry->patterns);
}

const struct hob_pattern *hob__pattern_get(const struct hob_host *host,
                                           uint32_t index)
{
    const struct hob__registry *registry = &host->runtime->registry;

    return index < registry->pattern_count ? registry->patterns[index] : NULL;
}
