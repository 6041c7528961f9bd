/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - a plan made into a call: dtypes, values, layouts, tensors.
 *
 * All values follow from the case's seed, so a case that is written down can
 * be made again.
 */
#include "check.h"

#include "host_data.h"
#include "scope.h"
#include "view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int check_is_tensor(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS;
}

/* ---- dtypes ---- */

/* The place of tensor parameter PARAM among the tensors. */
static uint32_t tensor_index(const struct hob__signature *signature,
                             uint32_t param)
{
    uint32_t index = 0;

    for (uint32_t i = 0; i < param; i++)
        index += (uint32_t)check_is_tensor(&signature->params[i]);
    return index;
}

/* The dtypes of PARAM that something here computes. */
static uint32_t served_mask(const struct check_lab *lab, uint32_t param)
{
    const struct hob__signature *signature = &lab->op->signature;
    const struct hob_entry *entry = lab->route.entry;
    uint32_t mask = signature->params[param].mask;
    uint32_t index = tensor_index(signature, param);

    if (!lab->route.body && entry && index < entry->dtype_count &&
        (mask & entry->dtypes[index]))
        mask &= entry->dtypes[index];
    return mask;
}

static uint32_t first_dtype(uint32_t mask)
{
    static const uint8_t order[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_I64,
                                    HOB_DTYPE_I32, HOB_DTYPE_BOOL};

    for (uint32_t i = 0; i < sizeof(order); i++)
        if (mask & HOB_DTYPE_BIT(order[i]))
            return order[i];
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_QUANT; d++)
        if (mask & HOB_DTYPE_BIT(d))
            return d;
    return HOB_DTYPE_QUANT;
}

void check_case_dtype(const struct check_lab *lab, struct check_case *one,
                      uint32_t param, uint32_t dtype)
{
    const struct hob__signature *signature = &lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++)
        if (check_is_tensor(&signature->params[i]) &&
            signature->params[i].mask == signature->params[param].mask)
            one->dtype[i] = (uint8_t)dtype;
}

void check_case_init(const struct check_lab *lab, struct check_case *one,
                     const struct check_plan *plan)
{
    const struct hob__signature *signature = &lab->op->signature;

    memset(one, 0, sizeof(*one));
    one->plan = plan;
    one->seed = lab->child->options->seed;
    one->bump_param = -1;
    for (uint32_t i = signature->param_count; i--;)
        if (check_is_tensor(&signature->params[i]))
            check_case_dtype(lab, one, i,
                             plan->dtype[i] ? plan->dtype[i]
                                            : first_dtype(served_mask(lab, i)));
}

/* ---- values ---- */

static double extreme(uint32_t dtype, uint8_t special, uint32_t which)
{
    static const double floats[] = {NAN,   INFINITY, -INFINITY, -0.0,
                                    1e-40, 3e38,     -65504,    0};
    /* As indices: just outside, so that fences tell what happens. */
    static const double near[] = {-1, 1000, 7, 0};
    static const double far[] = {-1, 1e300, -1e300, 2147483647.0};

    if (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype))
        return floats[which % (sizeof(floats) / sizeof(floats[0]))];
    return special == 1 ? near[which % 4] : far[which % 4];
}

static double ordinary(const struct check_lab *lab,
                       const struct check_case *one, uint32_t param,
                       uint64_t *state)
{
    const struct check_hint *hint = &lab->hints->params[param];
    uint32_t mask = lab->op->signature.params[param].mask;
    uint32_t dtype = one->dtype[param];
    double u = check_uniform(state);

    if (dtype == HOB_DTYPE_BOOL)
        return u < 0.5;
    if (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype)) {
        if (hint->has_range)
            return hint->low + u * (hint->high - hint->low);
        return one->plan->is_positive ? 0.25 + u : 2 * u - 1;
    }
    if (hint->has_range)
        return floor(hint->low + u * (hint->high - hint->low + 1));
    /* An Int beside other tensors is most often an index: 0 or 1. */
    if (mask == HOB_MASK_INT)
        return floor(2 * u);
    return HOB_MASK_SIGNED & HOB_DTYPE_BIT(dtype) ? floor(10 * u) - 4
                                                  : floor(10 * u);
}

void check_case_values(const struct check_lab *lab,
                       const struct check_case *one, uint32_t param,
                       uint32_t item, double *values, int64_t count)
{
    const struct check_arg *arg = &one->plan->args[param];
    uint64_t state = one->seed * 977 + param * 31 + item;
    int64_t period = count;
    unsigned char element[8];

    if (one->repeat[param] && arg->rank[item] && arg->shape[item][0] > 0)
        period = count / arg->shape[item][0];
    for (int64_t i = 0; i < count; i++) {
        double value =
            i < period ? ordinary(lab, one, param, &state) : values[i - period];

        /* Some elements only, so that the ordinary ones show damage. */
        if (one->special == 2 ||
            (one->special == 1 && check_random(&state) % 3 == 0))
            value = extreme(one->dtype[param], one->special,
                            (uint32_t)check_random(&state));
        check_encode(one->dtype[param], value, element);
        values[i] = check_decode(one->dtype[param], element);
        if ((int)param == one->bump_param && (int)item == one->bump_item &&
            i == one->bump_at)
            values[i] += one->bump;
    }
}

/* ---- layouts ---- */

/* Strides of LAYOUT for META; returns the elements of the memory, and in
 * *OUT_FIRST where the first one lies. */
static int64_t lay_out(uint8_t layout, const struct hob_meta *meta,
                       int64_t *strides, int64_t *out_first)
{
    int64_t size = 1, first = 0;
    int64_t factor = layout == CHECK_STEPPED ? 2 : 1;

    for (uint32_t k = 0; k < meta->rank; k++) {
        uint32_t d = layout == CHECK_PERMUTED ? k : meta->rank - 1 - k;

        if (layout == CHECK_EXPANDED && d == 0) {
            strides[d] = 0;
            continue;
        }
        strides[d] = size * factor;
        size *= meta->shape[d];
        if (layout == CHECK_FLIPPED) {
            first += (meta->shape[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
    }
    *out_first = layout == CHECK_STEPPED ? 1 : first;
    return size * factor;
}

/* The place of row-major element AT. */
static int64_t place_of(const struct hob_meta *meta, const int64_t *strides,
                        int64_t first, int64_t at)
{
    for (uint32_t d = meta->rank; d--;) {
        first += at % meta->shape[d] * strides[d];
        at /= meta->shape[d];
    }
    return first;
}

/* A handle on TENSOR's memory with META's shape and STRIDES from FIRST. */
static hob_tensor *view_on(hob_scope *scope, hob_tensor *tensor,
                           const struct hob_meta *meta, const int64_t *strides,
                           int64_t first)
{
    hob_tensor *view =
        hob__tensor_share(tensor, tensor->device, tensor->device->depth);

    if (!view)
        return NULL;
    view->view.rank = meta->rank;
    for (uint32_t d = 0; d < meta->rank; d++) {
        view->view.shape[d] = meta->shape[d];
        view->view.strides[d] = strides[d];
    }
    view->view.data =
        (char *)view->view.data + first * (int64_t)hob_dtype_size(meta->dtype);
    hob__view_set_flags(&view->view);
    return hob__scope_adopt(scope, view) ? NULL : view;
}

/* The bytes of VALUES as LAYOUT has them, SIZE elements. */
static unsigned char *spread(const struct hob_meta *meta, const double *values,
                             int64_t count, const int64_t *strides,
                             int64_t first, int64_t size)
{
    size_t width = hob_dtype_size(meta->dtype);
    unsigned char *bytes = calloc((size_t)size + 1, width);

    for (int64_t i = 0; bytes && i < count; i++)
        check_encode(meta->dtype, values[i],
                     bytes + (size_t)place_of(meta, strides, first, i) * width);
    return bytes;
}

static hob_tensor *make_tensor(const struct check_lab *lab, hob_scope *scope,
                               hob_device *device, const struct check_case *one,
                               uint32_t param, uint32_t item, hob_error *error)
{
    const struct check_arg *arg = &one->plan->args[param];
    uint8_t layout = one->layout[param];
    struct hob_meta meta = {.dtype = one->dtype[param],
                            .rank = arg->rank[item]};
    struct hob_meta flat = {.rank = 1};
    int64_t strides[HOB_MAX_RANK] = {0}, first, count = 1;
    hob_tensor *tensor = NULL;
    unsigned char *bytes = NULL;
    double *values;

    for (uint32_t d = 0; d < meta.rank; d++)
        count *= meta.shape[d] = arg->shape[item][d];
    if (one->as_f64 && (HOB_MASK_FLOAT & HOB_DTYPE_BIT(meta.dtype)))
        meta.dtype = HOB_DTYPE_F64;
    if (!count || !meta.rank)
        layout = CHECK_CONTIGUOUS;
    flat.dtype = meta.dtype;
    flat.shape[0] = lay_out(layout, &meta, strides, &first);
    values = calloc((size_t)count + 1, sizeof(*values));
    if (values) {
        check_case_values(lab, one, param, item, values, count);
        bytes = spread(&meta, values, count, strides, first, flat.shape[0]);
    }
    if (!bytes)
        (void)hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
    else if (!hob__elements_put(scope, device,
                                layout == CHECK_CONTIGUOUS ? &meta : &flat,
                                bytes, &tensor, error) &&
             layout != CHECK_CONTIGUOUS)
        tensor = view_on(scope, tensor, &meta, strides, first);
    free(bytes);
    free(values);
    return tensor;
}

static hob_value attribute(const struct check_attr *attr, hob_device *device)
{
    hob_value value = hob_value_make(attr->tag, 1);

    switch (attr->tag) {
    case HOB_TAG_STR:
        return hob_value_str(attr->str);
    case HOB_TAG_I64S:
        return hob_value_i64s(attr->i64s, attr->count);
    case HOB_TAG_F64S:
        return hob_value_f64s(attr->f64s, attr->count);
    case HOB_TAG_DEVICE:
        return hob_value_device(device);
    case HOB_TAG_F64:
        return hob_f64(attr->f64);
    case HOB_TAG_ABSENT:
        return hob_none();
    default:
        value.u.i64 = attr->i64;
        return value;
    }
}

hob_status check_args_make(const struct check_lab *lab, hob_scope *scope,
                           hob_device *device, const struct check_case *one,
                           struct check_args *args, hob_error *error)
{
    const struct hob__signature *signature = &lab->op->signature;

    memset(args, 0, sizeof(*args));
    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        const struct check_arg *arg = &one->plan->args[i];

        args->values[i] = hob_none();
        if (!arg->present || one->unmake == i + 1)
            continue;
        if (!check_is_tensor(param)) {
            args->values[i] = attribute(&arg->attr, device);
            continue;
        }
        for (uint32_t k = 0; k < arg->count; k++) {
            args->tensors[i][k] = make_tensor(
                lab, scope, one->moved == i + 1 ? one->elsewhere : device, one,
                i, k, error);
            if (!args->tensors[i][k])
                return HOB_ERR_MEMORY;
        }
        args->values[i] = param->type == HOB__TYPE_TENSORS
                              ? hob_value_tensors(args->tensors[i], arg->count)
                              : hob_value_tensor(args->tensors[i][0]);
    }
    return HOB_OK;
}

/* ---- in words ---- */

static void attr_text(struct hob__text *out, const struct hob__param *param,
                      const struct check_attr *attr)
{
    uint32_t i;

    switch (attr->tag) {
    case HOB_TAG_F64:
        hob__text_printf(out, "%.17g", attr->f64);
        break;
    case HOB_TAG_STR:
        hob__text_json(out, attr->str);
        break;
    case HOB_TAG_BOOL:
        hob__text_puts(out, attr->i64 ? "true" : "false");
        break;
    case HOB_TAG_DTYPE:
        hob__text_puts(out, hob_dtype_name((uint32_t)attr->i64));
        break;
    case HOB_TAG_DEVICE:
        hob__text_puts(out, "the device");
        break;
    case HOB_TAG_ENUM:
        hob__text_puts(out,
                       attr->i64 >= 0 && attr->i64 < param->enumerator_count
                           ? param->enumerators[attr->i64]
                           : "?");
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        for (i = 0; i < attr->count; i++)
            if (attr->tag == HOB_TAG_I64S)
                hob__text_printf(out, "%s%" PRId64, i ? "," : "[",
                                 attr->i64s[i]);
            else
                hob__text_printf(out, "%s%.17g", i ? "," : "[", attr->f64s[i]);
        hob__text_puts(out, attr->count ? "]" : "[]");
        break;
    default:
        hob__text_printf(out, "%" PRId64, attr->i64);
    }
}

static void tensor_text(struct hob__text *out, const struct check_case *one,
                        uint32_t param, uint32_t item)
{
    static const char *const layouts[CHECK_LAYOUT_COUNT_] = {
        "", " permuted", " stepped", " flipped", " expanded"};
    const struct check_arg *arg = &one->plan->args[param];
    struct hob_meta meta = {.dtype = one->dtype[param],
                            .rank = arg->rank[item]};
    char text[HOB__META_TEXT];

    memcpy(meta.shape, arg->shape[item], sizeof(meta.shape));
    hob__text_printf(out, "%s%s", hob__meta_text(&meta, text, sizeof(text)),
                     layouts[one->layout[param]]);
}

void check_case_text(const struct check_lab *lab, const struct check_case *one,
                     char *text, size_t size)
{
    static const char *const specials[] = {"", ", some elements extreme",
                                           ", all elements extreme"};
    const struct hob__signature *signature = &lab->op->signature;
    struct hob__text out = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        const struct check_arg *arg = &one->plan->args[i];

        if (!arg->present || one->unmake == i + 1)
            continue;
        hob__text_printf(&out, "%s%s=", out.length ? ", " : "", param->name);
        if (!check_is_tensor(param)) {
            attr_text(&out, param, &arg->attr);
            continue;
        }
        for (uint32_t k = 0; k < arg->count; k++) {
            hob__text_puts(&out, k ? " + " : "");
            tensor_text(&out, one, i, k);
        }
    }
    if (one->plan->is_positive)
        hob__text_puts(&out, ", floats positive");
    hob__text_puts(&out, specials[one->special]);
    hob__text_printf(&out, ", seed %" PRIu64, one->seed);
    (void)snprintf(text, size, "%s", out.data ? out.data : "");
    hob__text_release(&out);
}
