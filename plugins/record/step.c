/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - one call as one line: ["v3", "add", ["v1", "x2"], {}].
 *
 * docs/EVAL.md is the reference of the form. The signature of the op tells
 * which argument is a tensor and what the others are called.
 */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- signatures ---- */

/* A parameter of a signature, as text. */
struct param {
    const char *name;
    size_t name_size;
    const char *type; /* what follows the colon */
};

/* Read the parameter at *AT, which begins behind "(" or ",", and go to the
 * next. The core has parsed the signature before, so it is sound. */
static struct param next_param(const char **at)
{
    const char *p = *at + strspn(*at, " ,(");
    struct param param = {p, strcspn(p, ": "), NULL};
    int depth = 0;

    p += strcspn(p, ":");
    param.type = p + 1 + strspn(p + 1, " ");
    for (; *p && (depth || (*p != ',' && *p != ')')); p++) {
        if (*p == '(' || *p == '[')
            depth++;
        else if (*p == ')' || *p == ']')
            depth--;
        else if (*p == '"') /* the default of a text */
            for (p++; *p && *p != '"'; p++)
                if (*p == '\\' && p[1])
                    p++;
    }
    *at = p;
    return param;
}

/* Word INDEX of the type "enum(a, b)". */
static void put_word(FILE *out, const char *type, int64_t index)
{
    type += strcspn(type, "(") + 1;
    for (; index; index--)
        type += strcspn(type, ",") + 1;
    type += strspn(type, " ");
    rec_put_string(out, type, strcspn(type, ",) "));
}

/* Whether a parameter is a tensor or a list of them: its kind is a word with
 * a capital letter. Where it is absent nothing else tells. */
static int is_tensor(const struct param *param)
{
    const char *type = param->type + (param->type[0] == '[');

    return type[0] >= 'A' && type[0] <= 'Z';
}

/* ---- values ---- */

/* The bytes of the UTF-8 sequence at the beginning of TEXT (RFC 3629); 0 if
 * there is none. */
static size_t utf8_size(const unsigned char *text, size_t size)
{
    size_t want = text[0] < 0x80                      ? 1
                  : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                  : (text[0] & 0xf0) == 0xe0          ? 3
                  : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                      : 0;

    if (!want || want > size)
        return 0;
    for (size_t i = 1; i < want; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* Not the shortest form, a surrogate, above U+10FFFF. */
    if ((text[0] == 0xe0 && text[1] < 0xa0) ||
        (text[0] == 0xed && text[1] >= 0xa0) ||
        (text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xf4 && text[1] >= 0x90))
        return 0;
    return want;
}

void rec_put_string(FILE *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + size;

    fputc('"', out);
    while (at < end) {
        size_t whole = utf8_size(at, (size_t)(end - at));

        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else if (whole)
            fwrite(at, 1, whole, out);
        else /* JSON cannot hold it */
            fputs("\\ufffd", out);
        at += whole ? whole : 1;
    }
    fputc('"', out);
}

/* A double reads back as it is. As a SCALAR it also stays a float: 2 would
 * come back as an integer, "2.0" does not. */
static void put_f64(FILE *out, double number, int is_scalar)
{
    char text[40];

    if (number != number) {
        fputs("\"nan\"", out);
        return;
    }
    if (number - number != 0) {
        fputs(number < 0 ? "\"-inf\"" : "\"inf\"", out);
        return;
    }
    snprintf(text, sizeof(text), "%.17g", number);
    for (char *at = text; *at; at++)
        if (*at == ',') /* the program's locale */
            *at = '.';
    if (strpbrk(text, ".e"))
        fprintf(out, is_scalar ? "\"%s\"" : "%s", text);
    else
        fprintf(out, is_scalar ? "\"%s.0\"" : "%s", text);
}

/* Beyond 2^53 a reader may hold numbers as doubles: texts do not change. */
static void put_i64(FILE *out, int64_t number)
{
    const int64_t limit = INT64_C(1) << 53;

    fprintf(out,
            number > limit || number < -limit ? "\"%" PRId64 "\"" : "%" PRId64,
            number);
}

/* The value of an attribute. */
static void put_attribute(FILE *out, const hob_value *value,
                          const struct param *param)
{
    switch (value->tag) {
    case HOB_TAG_I64:
        put_i64(out, value->u.i64);
        break;
    case HOB_TAG_U64:
        fprintf(out, "\"%" PRIu64 "\"", value->u.u64);
        break;
    case HOB_TAG_F64:
        put_f64(out, value->u.f64, !strncmp(param->type, "scalar", 6));
        break;
    case HOB_TAG_BOOL:
        fputs(value->u.i64 ? "true" : "false", out);
        break;
    case HOB_TAG_STR:
        rec_put_string(out, value->u.str, value->count);
        break;
    case HOB_TAG_DTYPE:
        fprintf(out, "\"%s\"", hob_dtype_name((uint32_t)value->u.i64));
        break;
    case HOB_TAG_ENUM:
        put_word(out, param->type, value->u.i64);
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        fputc('[', out);
        for (uint32_t i = 0; i < value->count; i++) {
            fputs(i ? ", " : "", out);
            if (value->tag == HOB_TAG_I64S)
                put_i64(out, value->u.i64s[i]);
            else
                put_f64(out, value->u.f64s[i], 0);
        }
        fputc(']', out);
        break;
    default: /* the core lets no other tag through */
        fputs("null", out);
    }
}

/* ---- tensors ---- */

/*
 * Whether TENSOR, an argument of CALL, has a state word of LAYER: its device
 * may be a part of the call's stack that ends below. Then the word is not
 * this layer's to set.
 */
static int has_level(const struct rec_layer *layer, const struct hob_call *call,
                     const hob_tensor *tensor)
{
    const struct hob_host *host = layer->host;
    hob_device *device = host->tensor_device(tensor);
    void *instance = NULL;

    return device == call->device ||
           (host->interface(device, REC_INTERFACE, 1, &instance) &&
            instance == layer);
}

static struct rec_value *value_new(char kind, uint64_t number)
{
    struct rec_value *value = calloc(1, sizeof(*value));

    if (value) {
        atomic_init(&value->refs, 1);
        value->kind = kind;
        value->number = number;
    }
    return value;
}

/*
 * Write the name of TENSOR, an argument. What no step made is an input; its
 * handle gets a state word, so that it is looked into once.
 */
static void put_argument(struct rec_layer *layer, FILE *out,
                         const struct hob_call *call, hob_tensor *tensor)
{
    struct rec_value *value = layer->host->state(tensor, layer->level);
    uint64_t number;

    if (value) {
        fprintf(out, "\"%c%" PRIu64 "\"", value->kind, value->number);
        value->is_used = 1;
        /* Before the call runs, or nothing could be written in place. */
        layer->host->tensor_unref(value->kept);
        value->kept = NULL;
        return;
    }
    number = rec_input_locked(layer, tensor);
    fprintf(out, "\"x%" PRIu64 "\"", number);
    if (!number || !has_level(layer, call, tensor))
        return;
    value = value_new('x', number);
    if (value)
        layer->host->set_state(tensor, layer->level, value);
}

static void put_arguments(struct rec_layer *layer, FILE *out,
                          const struct hob_call *call, const char *signature)
{
    const char *separator = "";

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];
        struct param param = next_param(&signature);

        if (!is_tensor(&param))
            continue;
        fputs(separator, out);
        separator = ", ";
        if (arg->tag == HOB_TAG_TENSOR) {
            put_argument(layer, out, call, arg->u.tensor);
        } else if (arg->tag == HOB_TAG_TENSORS) {
            fputc('[', out);
            for (uint32_t k = 0; k < arg->count; k++) {
                fputs(k ? ", " : "", out);
                put_argument(layer, out, call, arg->u.tensors[k]);
            }
            fputc(']', out);
        } else {
            fputs("null", out);
        }
    }
}

static void put_attributes(FILE *out, const struct hob_call *call,
                           const char *signature)
{
    const char *separator = "";

    for (uint32_t i = 0; i < call->arg_count; i++) {
        struct param param = next_param(&signature);

        /* A replay runs on a device of its own. */
        if (is_tensor(&param) || call->args[i].tag == HOB_TAG_ABSENT ||
            call->args[i].tag == HOB_TAG_DEVICE)
            continue;
        fputs(separator, out);
        separator = ", ";
        rec_put_string(out, param.name, param.name_size);
        fputs(": ", out);
        put_attribute(out, &call->args[i], &param);
    }
}

/* Make the values of CALL's results and write their names. */
static int put_results(struct rec_layer *layer, FILE *out,
                       const struct hob_call *call, struct rec_step *step)
{
    step->values = calloc(call->ret_count + 1u, sizeof(*step->values));
    if (!step->values)
        return 0;
    step->count = call->ret_count;
    if (call->ret_count != 1)
        fputc('[', out);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        step->values[i] = value_new('v', ++layer->value_count);
        if (!step->values[i])
            return 0;
        fprintf(out, "%s\"v%" PRIu64 "\"", i ? ", " : "", layer->value_count);
    }
    if (call->ret_count != 1)
        fputc(']', out);
    return 1;
}

/* ---- the call ---- */

static void step_free(struct rec_step *step)
{
    free(step->text);
    for (uint32_t i = 0; i < step->count; i++)
        free(step->values[i]);
    free(step->values);
    memset(step, 0, sizeof(*step));
}

/* The line of CALL, without the closing bracket, to STEP. 0 without memory. */
static int make_text(struct rec_layer *layer, const struct hob_call *call,
                     struct rec_step *step)
{
    const char *signature = layer->host->op_signature(layer->host, call->op);
    size_t size = 0;
    FILE *out = open_memstream(&step->text, &size);
    int ok;

    if (!out)
        return 0;
    fputc('[', out);
    ok = put_results(layer, out, call, step);
    fputs(", ", out);
    rec_put_string(out, call->op_name, strlen(call->op_name));
    fputs(", [", out);
    put_arguments(layer, out, call, signature);
    fputs("], {", out);
    put_attributes(out, call, signature);
    fputc('}', out);
    return !fclose(out) && ok;
}

/* Write the line of STEP, with NOTE before the closing bracket: only tried, or
 * to stay. */
static void put_line(struct rec_layer *layer, const struct rec_step *step,
                     const char *note, int is_tried)
{
    size_t size = strlen(step->text) + strlen(note) + 2;
    char *line = malloc(size);
    int failed = ENOMEM;

    if (line) {
        snprintf(line, size, "%s%s]", step->text, note);
        failed = is_tried ? rec_journal_try(&layer->journal, line)
                          : rec_journal_put(&layer->journal, line);
    }
    free(line);
    if (failed)
        rec_stop_journal_locked(layer, failed);
}

int rec_step_begin_locked(struct rec_layer *layer, const struct hob_call *call,
                          struct rec_step *step)
{
    memset(step, 0, sizeof(*step));
    if (!make_text(layer, call, step))
        rec_stop_locked(layer, "no memory to write a call down");
    if (!rec_is_off(layer))
        put_line(layer, step, "", 1);
    if (!rec_is_off(layer))
        return 1;
    step_free(step);
    return 0;
}

/* Let TENSOR, a result, carry VALUE. A body may have handed an argument
 * through: then it carries that one's value, which this one replaces. */
static void name_result(struct rec_layer *layer, hob_tensor *tensor,
                        struct rec_value *value)
{
    const struct hob_host *host = layer->host;
    struct rec_value *old = host->state(tensor, layer->level);

    value->meta = rec_meta_of(tensor);
    if (layer->with_outputs) {
        value->kept = host->alias(tensor, layer->level - 1);
        if (!value->kept)
            rec_stop_locked(layer, "no memory for a handle");
    }
    host->set_state(tensor, layer->level, value);
    if (old && atomic_fetch_sub(&old->refs, 1) == 1)
        free(old); /* an argument: it was used, and nothing of it is kept */
}

void rec_step_end_locked(struct rec_layer *layer, const struct hob_call *call,
                         struct rec_step *step, hob_status status,
                         uint64_t time_ns)
{
    char note[48] = "";

    if (layer->with_times)
        snprintf(note, sizeof(note), ", {\"ns\": %" PRIu64 "}", time_ns);
    /* Another thread's call may stand in its place meanwhile: again. */
    if (!rec_is_off(layer))
        put_line(layer, step, note, status != HOB_OK);
    for (uint32_t i = 0; !status && i < step->count && i < call->ret_count;
         i++) {
        if (rec_is_off(layer) || call->rets[i].tag != HOB_TAG_TENSOR ||
            !call->rets[i].u.tensor)
            continue;
        name_result(layer, call->rets[i].u.tensor, step->values[i]);
        step->values[i] = NULL; /* the handle has it now */
    }
    step_free(step);
}

static void put_output_locked(struct rec_layer *layer,
                              const struct rec_value *value)
{
    struct rec_output output = {value->number, value->meta, 0};
    uint64_t capacity = layer->output_capacity * 2 + 16;
    struct rec_output *grown;
    char name[24];

    if (layer->output_count == layer->output_capacity) {
        grown = realloc(layer->outputs, capacity * sizeof(*grown));
        if (!grown) {
            rec_stop_locked(layer, "no memory for an output");
            return;
        }
        layer->outputs = grown;
        layer->output_capacity = capacity;
    }
    if (value->kept) {
        snprintf(name, sizeof(name), "v%" PRIu64, value->number);
        rec_array_save_locked(layer, name, value->kept);
        output.has_file = 1;
    }
    if (!rec_is_off(layer))
        layer->outputs[layer->output_count++] = output;
}

void rec_value_end(struct rec_layer *layer, struct rec_value *value)
{
    if (value->kind == 'v' && !value->is_used && !rec_is_off(layer)) {
        pthread_mutex_lock(&layer->lock);
        put_output_locked(layer, value);
        pthread_mutex_unlock(&layer->lock);
    }
    layer->host->tensor_unref(value->kept);
    free(value);
}

static int by_number(const void *a, const void *b)
{
    const struct rec_output *left = a;
    const struct rec_output *right = b;

    return (left->number > right->number) - (left->number < right->number);
}

char *rec_outputs_text(struct rec_layer *layer)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (layer->output_count)
        qsort(layer->outputs, layer->output_count, sizeof(*layer->outputs),
              by_number);
    for (uint64_t i = 0; i < layer->output_count; i++) {
        const struct rec_output *output = &layer->outputs[i];
        char name[24];

        snprintf(name, sizeof(name), "v%" PRIu64, output->number);
        fprintf(out, "%s\n{\"value\": \"%s\"", i ? "," : "", name);
        rec_array_describe(layer, out, name, &output->meta, output->has_file);
    }
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}
