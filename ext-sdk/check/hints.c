/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hints.c - "x-check": what an author tells the checker about an op.
 *
 *   "x-check": {"shapes": [{"x": [2, 3], "w": [3, 4], "xs": [[2], [2]]}],
 *               "values": {"x": [0.1, 2]},
 *               "attributes": {"dim": [0, -1], "mode": ["both"]},
 *               "tolerance": {"f32": 1e-4},
 *               "gradients": false}
 */
#include "check.h"

#include "json.h"
#include "type_defs.h"

#include <stdio.h>
#include <string.h>

struct reader {
    const struct hob__json_doc *doc;
    struct hob__signature signature;
    const struct hob__types *types;
    struct check_op *op;
    struct check_report *report;
};

typedef const struct hob__json_value json;

static void wrong(const struct reader *reader, json *value, const char *what)
{
    char text[400];
    uint32_t line, column;

    hob__json_place(reader->doc, value, &line, &column);
    (void)snprintf(text, sizeof(text), "line %u, column %u: %s", line, column,
                   what);
    check_add(reader->report, CHECK_X_CHECK, reader->op->name, "", "manifest",
              "", text);
}

/* The parameter called as the member VALUE; -1, with a finding, if none. */
static int find_param(const struct reader *reader, json *value)
{
    const char *key = hob__json_key(reader->doc, value);
    char text[200];

    for (uint32_t i = 0; i < reader->signature.param_count; i++)
        if (!strcmp(reader->signature.params[i].name, key))
            return (int)i;
    (void)snprintf(text, sizeof(text), "the op has no parameter \"%s\"", key);
    wrong(reader, value, text);
    return -1;
}

/* ---- shapes ---- */

static int read_shape(const struct reader *reader, json *value, uint8_t *rank,
                      int64_t *shape)
{
    *rank = 0;
    for (json *size = hob__json_first(reader->doc, value); size;
         size = hob__json_next(reader->doc, size)) {
        if (*rank == HOB_MAX_RANK ||
            hob__json_int(reader->doc, size, 0, 4096, &shape[*rank], NULL)) {
            wrong(reader, size, "a shape is at most 8 sizes of 0 to 4096");
            return 0;
        }
        ++*rank;
    }
    return 1;
}

static int is_array(json *value)
{
    return value->type == HOB__JSON_ARRAY;
}

static int read_example_arg(const struct reader *reader, json *value,
                            const struct hob__param *param,
                            struct check_arg *arg)
{
    json *item = hob__json_first(reader->doc, value);

    if (value->type == HOB__JSON_NULL)
        return 1;
    if (!is_array(value) || !check_is_tensor(param)) {
        wrong(reader, value, "give tensors an array of sizes, or null");
        return 0;
    }
    arg->present = 1;
    arg->count = 1;
    if (param->type == HOB__TYPE_TENSOR)
        return read_shape(reader, value, &arg->rank[0], arg->shape[0]);
    arg->count = 0;
    for (; item; item = hob__json_next(reader->doc, item)) {
        if (!is_array(item) || arg->count == CHECK_LIST_MAX) {
            wrong(reader, item, "give a list one to three arrays of sizes");
            return 0;
        }
        if (!read_shape(reader, item, &arg->rank[arg->count],
                        arg->shape[arg->count]))
            return 0;
        arg->count++;
    }
    return arg->count > 0;
}

static void read_shapes(struct reader *reader, json *value)
{
    struct check_hints *hints = &reader->op->hints;

    if (!is_array(value)) {
        wrong(reader, value, "\"shapes\" is an array of objects");
        return;
    }
    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one)) {
        struct check_plan *plan = &hints->shapes[hints->shape_count];
        int good = hints->shape_count < CHECK_SHAPES_MAX;

        if (!good) {
            wrong(reader, one, "at most 8 examples are read");
            return;
        }
        memset(plan, 0, sizeof(*plan));
        for (json *arg = hob__json_first(reader->doc, one); arg && good;
             arg = hob__json_next(reader->doc, arg)) {
            int param = find_param(reader, arg);

            good =
                param >= 0 &&
                read_example_arg(reader, arg, &reader->signature.params[param],
                                 &plan->args[param]);
        }
        hints->shape_count += (uint32_t)good;
    }
}

/* ---- ranges and attributes ---- */

static void read_range(struct reader *reader, json *value)
{
    int param = find_param(reader, value);
    json *low = hob__json_first(reader->doc, value);
    json *high = low ? hob__json_next(reader->doc, low) : NULL;
    struct check_hint *hint;

    if (param < 0)
        return;
    hint = &reader->op->hints.params[param];
    if (!is_array(value) || !high ||
        hob__json_double(reader->doc, low, &hint->low, NULL) ||
        hob__json_double(reader->doc, high, &hint->high, NULL) ||
        hint->low > hint->high) {
        wrong(reader, value, "a range of values is [LOW, HIGH]");
        return;
    }
    hint->has_range = 1;
}

static int read_enumerator(const struct hob__param *param, const char *name,
                           struct check_attr *attr)
{
    attr->tag = HOB_TAG_ENUM;
    for (uint32_t i = 0; i < param->enumerator_count; i++)
        if (!strcmp(param->enumerators[i], name)) {
            attr->i64 = i;
            return 1;
        }
    return 0;
}

static int read_dtype(const char *name, struct check_attr *attr)
{
    attr->tag = HOB_TAG_DTYPE;
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_COUNT_; d++)
        if (!strcmp(hob_dtype_name(d), name)) {
            attr->i64 = d;
            return 1;
        }
    return 0;
}

static int read_numbers(const struct reader *reader, json *value, uint32_t type,
                        struct check_attr *attr)
{
    attr->tag = type == HOB__TYPE_F64S ? HOB_TAG_F64S : HOB_TAG_I64S;
    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one)) {
        if (attr->count == HOB_MAX_RANK ||
            (attr->tag == HOB_TAG_F64S
                 ? hob__json_double(reader->doc, one, &attr->f64s[attr->count],
                                    NULL)
                 : hob__json_int(reader->doc, one, INT64_MIN, INT64_MAX,
                                 &attr->i64s[attr->count], NULL)))
            return 0;
        attr->count++;
    }
    return 1;
}

static int read_attribute(const struct reader *reader, json *value,
                          const struct hob__param *param,
                          struct check_attr *attr)
{
    const char *text = "";
    bool truth = false;
    int is_text = !hob__json_string(reader->doc, value, &text, NULL);

    switch (param->type) {
    case HOB__TYPE_I64:
        attr->tag = HOB_TAG_I64;
        return !hob__json_int(reader->doc, value, INT64_MIN, INT64_MAX,
                              &attr->i64, NULL);
    case HOB__TYPE_F64:
    case HOB__TYPE_SCALAR:
        attr->tag = HOB_TAG_F64;
        return !hob__json_double(reader->doc, value, &attr->f64, NULL);
    case HOB__TYPE_BOOL:
        attr->tag = HOB_TAG_BOOL;
        if (hob__json_bool(reader->doc, value, &truth, NULL))
            return 0;
        attr->i64 = truth;
        return 1;
    case HOB__TYPE_STR:
        attr->tag = HOB_TAG_STR;
        (void)snprintf(attr->str, sizeof(attr->str), "%s", text);
        return is_text && strlen(text) < sizeof(attr->str);
    case HOB__TYPE_DTYPE:
        return is_text && read_dtype(text, attr);
    case HOB__TYPE_ENUM:
        return is_text && read_enumerator(param, text, attr);
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
    case HOB__TYPE_F64S:
        return is_array(value) &&
               read_numbers(reader, value, param->type, attr);
    default:
        return 0;
    }
}

static void read_choices(struct reader *reader, json *value)
{
    int param = find_param(reader, value);
    struct check_hint *hint;

    if (param < 0)
        return;
    hint = &reader->op->hints.params[param];
    if (!is_array(value)) {
        wrong(reader, value, "give the attribute an array of values");
        return;
    }
    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one)) {
        if (hint->value_count == CHECK_VALUES_MAX ||
            !read_attribute(reader, one, &reader->signature.params[param],
                            &hint->values[hint->value_count])) {
            wrong(reader, one,
                  "not a value of this attribute, or more than eight");
            return;
        }
        hint->value_count++;
    }
}

static void read_tolerance(struct reader *reader, json *value)
{
    double *tolerance = reader->op->hints.tolerance;

    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one)) {
        const char *key = hob__json_key(reader->doc, one);
        struct check_attr dtype;

        memset(&dtype, 0, sizeof(dtype));
        if (!key || !read_dtype(key, &dtype) ||
            hob__json_double(reader->doc, one, &tolerance[dtype.i64], NULL) ||
            tolerance[dtype.i64] <= 0) {
            wrong(reader, one, "a tolerance is a dtype and a number above 0");
            return;
        }
    }
}

static void read_each(struct reader *reader, json *value,
                      void (*read)(struct reader *, json *))
{
    if (value->type != HOB__JSON_OBJECT) {
        wrong(reader, value, "this must be an object, by parameter");
        return;
    }
    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one))
        read(reader, one);
}

static void read_hints(struct reader *reader, json *value)
{
    if (value->type != HOB__JSON_OBJECT) {
        wrong(reader, value, "\"x-check\" is an object");
        return;
    }
    for (json *one = hob__json_first(reader->doc, value); one;
         one = hob__json_next(reader->doc, one)) {
        const char *key = hob__json_key(reader->doc, one);
        bool truth = true;

        if (!strcmp(key, "shapes"))
            read_shapes(reader, one);
        else if (!strcmp(key, "values"))
            read_each(reader, one, read_range);
        else if (!strcmp(key, "attributes"))
            read_each(reader, one, read_choices);
        else if (!strcmp(key, "tolerance"))
            read_tolerance(reader, one);
        else if (!strcmp(key, "gradients") &&
                 !hob__json_bool(reader->doc, one, &truth, NULL))
            reader->op->hints.no_gradients = !truth;
        else
            wrong(reader, one,
                  "the keys are shapes, values, attributes, tolerance, "
                  "gradients");
    }
}

/* The N-th element of LIST belongs to the N-th op from FIRST. */
static void read_list(struct reader *reader, struct check_target *target,
                      uint32_t first, json *list)
{
    const char *message;
    int column;

    for (json *one = list ? hob__json_first(reader->doc, list) : NULL;
         one && first < target->op_count;
         one = hob__json_next(reader->doc, one), first++) {
        json *hints = hob__json_member(reader->doc, one, "x-check");
        json *member = hob__json_member(reader->doc, one, "signature");
        const char *signature;

        reader->op = &target->ops[first];
        if (!hints || !member ||
            hob__json_string(reader->doc, member, &signature, NULL) ||
            hob__signature_parse_with(signature, reader->types,
                                      &reader->signature, &column, &message))
            continue;
        read_hints(reader, hints);
        hob__signature_release(&reader->signature);
    }
}

void check_hints_read(struct check_target *target, const char *text,
                      size_t size, struct check_report *report)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__json_doc *doc = NULL;
    struct hob__types types;
    struct reader reader;
    uint32_t own = 0;

    /* The manifest has been read before: this can only lack memory. */
    if (hob__json_parse(target->manifest, text, size, &limits, &doc, NULL,
                        NULL))
        return;
    memset(&reader, 0, sizeof(reader));
    memset(&types, 0, sizeof(types));
    if (hob__types_read(doc,
                        hob__json_member(doc, hob__json_root(doc), "types"),
                        &types, NULL))
        goto out;
    reader.doc = doc;
    reader.types = &types;
    reader.report = report;
    while (own < target->op_count && !target->ops[own].is_foreign)
        own++;
    read_list(&reader, target, 0,
              hob__json_member(doc, hob__json_root(doc), "ops"));
    read_list(&reader, target, own,
              hob__json_member(doc, hob__json_root(doc), "implements"));
out:
    hob__types_release(&types);
    hob__json_free(doc);
}
