/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util.h - what the inference functions share: texts of shapes, dimensions
 * counted from the end, broadcasting, checked sizes.
 *
 * Every function that can fail puts its message on the call and names the op,
 * the argument and the values.
 */
#ifndef HOB__INFER_UTIL_H
#define HOB__INFER_UTIL_H

#include <hob/ext/plugin.h>

/*
 * A shape as people read it. Returned by value, so that it can stand in the
 * argument list of a message: hob__view_text(x).text.
 */
struct hob__text_shape {
    char text[200]; /* eight numbers of 20 digits, commas, "bf16[]" */
};

/* Return "f32[2,3]". */
struct hob__text_shape hob__view_text(const struct hob_view *view);
/* Return "f32[2,3]". */
struct hob__text_shape hob__infer_meta_text(const struct hob_meta *meta);
/* Return "[2,3]"; of more than eight numbers the first eight and "...". */
struct hob__text_shape hob__list_text(const int64_t *numbers, uint32_t count);

/* Multiply sizes that are not negative; 0 on overflow, else 1. */
int hob__dim_mul(int64_t a, int64_t b, int64_t *out);
/* Add, either sign; 0 on overflow, else 1. */
int hob__dim_add(int64_t a, int64_t b, int64_t *out);

/* Shorthands for the attributes of a call; the core has checked the tags. */
int64_t hob__attr_i64(const struct hob_call *call, uint32_t index);
const int64_t *hob__attr_list(const struct hob_call *call, uint32_t index,
                              uint32_t *out_count);

/* Make META's rank and shape those of VIEW. */
void hob__meta_copy_shape(struct hob_meta *meta, const struct hob_view *view);

/* Whether two views have the same rank and sizes. */
int hob__same_shape(const struct hob_view *a, const struct hob_view *b);

/*
 * Check a shape in META: rank, sizes, a dtype with elements, and that neither
 * the bytes nor any stride overflow. Sizes of 0 count as 1 there, so that
 * strides of empty tensors are representable too.
 */
HOB_MUST_CHECK hob_status hob__infer_check(struct hob_call *call,
                                           const struct hob_meta *meta);

/*
 * Turn DIM, which may be negative, into an index below VIEW's rank plus EXTRA
 * (1 where a new dimension is placed). NAME is the parameter's.
 */
HOB_MUST_CHECK hob_status hob__infer_axis(struct hob_call *call,
                                          const char *name, int64_t dim,
                                          const struct hob_view *view,
                                          uint32_t extra, uint32_t *out_axis);

/* The same without a call and its message; 0 if DIM is out of range. */
int hob__axis(int64_t dim, uint32_t rank, uint32_t *out_axis);

/*
 * The order of RANK dimensions after those FROM have come TO; the others keep
 * theirs. OUT_ORDER[i] is the dimension that comes to i. 0 if a list names a
 * dimension that is not there, or one twice.
 */
int hob__move_order(uint32_t rank, const int64_t *from, const int64_t *to,
                    uint32_t count, int64_t *out_order);

/* Fail unless argument INDEX, called NAME, has RANK dimensions. */
HOB_MUST_CHECK hob_status hob__infer_rank(struct hob_call *call, uint32_t index,
                                          const char *name, uint32_t rank,
                                          const char *layout);

/* Fail unless VIEW, called NAME, has exactly META's shape, that of WHAT. */
HOB_MUST_CHECK hob_status hob__infer_equal(struct hob_call *call,
                                           const char *name,
                                           const struct hob_view *view,
                                           const char *what,
                                           const struct hob_meta *meta);

/*
 * Fail unless the dtype attribute of the call, if it has one, is i32 or i64
 * and holds every index below LIMIT.
 */
HOB_MUST_CHECK hob_status hob__infer_index_dtype(struct hob_call *call,
                                                 int64_t limit);

/* Broadcast SIZES, aligned at the end, into META; 0 if they do not fit, and
 * then *OUT_AXIS is the dimension of META where. */
int hob__broadcast(struct hob_meta *meta, const int64_t *sizes, uint32_t rank,
                   uint32_t *out_axis);

/* Slice rules over argument 0, with the lists starts, ends and steps at
 * FIRST_LIST and behind it, into OUT's rank and shape. */
HOB_MUST_CHECK hob_status hob__infer_slice_at(struct hob_call *call,
                                              uint32_t first_list,
                                              struct hob_meta *out);

#endif
