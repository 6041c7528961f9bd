/* SPDX-License-Identifier: Apache-2.0 */
#include "infer.h"
#include "schema.h"

#include "infer/slice.h"
#include "infer/util.h"
#include "infer/window.h"

#include "fake_host.h"
#include "hob_check.h"

#include <stdio.h>
#include <string.h>

/*
 * A row calls OP's infer function. Arguments are words in the signature's
 * order: "f32[2,3]" a tensor, "{f32[1] f32[2]}" a list of them, "_" nothing,
 * "(1,2)" a list or shape, "7" an i64, "=0.5" an f64, "true", ":i64" a dtype.
 * Trailing ones may be omitted if they have defaults. RESULT is the metadata,
 * or a part of the message.
 */
struct row {
    const char *op;
    const char *args;
    const char *result;
    hob_status status;
};

static const struct row rows[] = {
    /* elementwise */
    {"add", "f32[2,3] f32[2,3]", "f32[2,3]", HOB_OK},
    {"add", "f32[] f32[2,3]", "f32[2,3]", HOB_OK},
    {"add", "f32[3] f32[2,1]", "f32[2,3]", HOB_OK},
    {"add", "f32[1] f32[0]", "f32[0]", HOB_OK},
    {"add", "f32[2,3] f32[2,4]",
     "add: shapes do not broadcast: f32[2,3] and f32[2,4]", HOB_ERR_SHAPE},
    {"add", "f32[0] f32[2]", "do not broadcast", HOB_ERR_SHAPE},
    {"add", "u8[4611686018427387904,1] u8[1,4]", "more than 2^63 bytes",
     HOB_ERR_SHAPE},
    {"equal", "i32[2] i32[2,1]", "bool[2,2]", HOB_OK},
    {"where", "bool[2,1] f32[3] f32[]", "f32[2,3]", HOB_OK},
    {"where", "bool[2,1] f32[3] f32[4]", "argument 3", HOB_ERR_SHAPE},
    {"mask_fill", "f32[3] bool[2,3] 1", "f32[2,3]", HOB_OK},
    {"cast", "u8[2,3] :f64", "f64[2,3]", HOB_OK},
    {"cast", "u8[2] :quant", "quant", HOB_ERR_DTYPE},
    {"exp", "f16[]", "f16[]", HOB_OK},
    {"softmax", "f32[2,3] -1", "f32[2,3]", HOB_OK},
    {"softmax", "f32[2,3] 2",
     "softmax: dim 2 is out of range for f32[2,3]: it must be in -2..1",
     HOB_ERR_RANGE},
    {"cumsum", "f32[] 0", "f32[] has no dimensions", HOB_ERR_RANGE},
    {"softmax_backward", "f32[2,3] f32[2,3] 0", "f32[2,3]", HOB_OK},
    {"softmax_backward", "f32[2,3] f32[3] 0", "grad is f32[3]", HOB_ERR_SHAPE},
    {"argsort", "f32[2,3] 1 false :i64", "i64[2,3]", HOB_OK},
    {"argsort", "f32[2,3] 1 false :f32", "indices are i32 or i64",
     HOB_ERR_DTYPE},
    {"argsort", "u8[4294967296] 0", "pass index_dtype i64", HOB_ERR_RANGE},
    /* creation */
    {"full", "(2,0) =1.5 _ :f32", "f32[2,0]", HOB_OK},
    {"full", "() 255 _ :u8", "u8[]", HOB_OK},
    {"full", "() 256 _ :u8", "full: value 256 does not fit u8", HOB_ERR_RANGE},
    {"full", "() -129 _ :i8", "-129", HOB_ERR_RANGE},
    {"full", "() -128 _ :i8", "i8[]", HOB_OK},
    {"full", "() =0.5 _ :i64", "0.5 does not fit i64", HOB_ERR_RANGE},
    {"full", "() =9.3e18 _ :i64", "does not fit", HOB_ERR_RANGE},
    {"full", "() =9.3e18 _ :u64", "u64[]", HOB_OK},
    {"full", "() =1.9e19 _ :u64", "does not fit", HOB_ERR_RANGE},
    {"full", "() 2 _ :bool", "does not fit bool", HOB_ERR_RANGE},
    {"zeros", "(-1) _ :f32", "negative", HOB_ERR_SHAPE},
    {"zeros", "(1,1,1,1,1,1,1,1,1) _ :f32", "9 dimensions", HOB_ERR_SHAPE},
    {"zeros", "(4611686018427387904,0,2) _ :f32", "2^63", HOB_ERR_SHAPE},
    {"arange", "2 7 2 _ :i32", "i32[3]", HOB_OK},
    {"arange", "7 2 -2 _ :i32", "i32[3]", HOB_OK},
    {"arange", "7 2 1 _ :i32", "i32[0]", HOB_OK},
    {"arange", "0 5 0 _ :i32", "step is 0", HOB_ERR_RANGE},
    {"arange", "0 256 1 _ :u8", "u8[256]", HOB_OK},
    {"arange", "0 257 1 _ :u8", "does not fit u8, which holds 0 to 255",
     HOB_ERR_RANGE},
    {"arange", "3 0 -1 _ :u8", "u8[3]", HOB_OK},
    {"arange", "3 -1 -2 _ :bool", "dtype is bool", HOB_ERR_DTYPE},
    {"arange", "-9223372036854775807 9223372036854775807 1 _ :u8", "2^63",
     HOB_ERR_SHAPE},
    {"random_uniform", "(3) =0 =1 _ :bool", "must be a float", HOB_ERR_DTYPE},
    {"random_uniform", "(3) =1 =0 _ :f32", "low is 1", HOB_ERR_RANGE},
    {"random_normal", "(3) =1 =-1 _ :f32", "std is -1", HOB_ERR_RANGE},
    {"random_bernoulli", "(3) =1.5 _ :f32", "probability", HOB_ERR_RANGE},
    {"random_bernoulli", "(3) =1", "bool[3]", HOB_OK},
    /* reductions */
    {"sum", "f32[2,3]", "f32[]", HOB_OK},
    {"sum", "i32[0]", "i32[]", HOB_OK},
    {"mean", "f32[0]", "f32[]", HOB_OK},
    {"mean", "i32[0]", "no result without elements", HOB_ERR_SHAPE},
    {"max", "f32[0]", "max: x is f32[0]", HOB_ERR_SHAPE},
    {"sum_dim", "f32[2,3] -2", "f32[1,3]", HOB_OK},
    {"any_dim", "f32[2,3] 1", "bool[2,1]", HOB_OK},
    {"max_dim", "f32[3,0] 1", "f32[3,0]", HOB_ERR_SHAPE},
    {"max_dim", "f32[3,0] 0", "f32[1,0]", HOB_OK},
    {"max_dim", "f32[0,0] 0", "f32[1,0]", HOB_OK},
    {"mean_dim", "i32[3,0] 1", "i32[3,0]", HOB_ERR_SHAPE},
    {"mean_dim", "f32[3,0] 1", "f32[3,1]", HOB_OK},
    {"argmax", "f32[2,3] 1", "i32[2,1]", HOB_OK},
    {"argmax", "f32[2,3] -3", "-2..1", HOB_ERR_RANGE},
    {"max_dim_with_indices", "f32[2,3] 0 :i64", "f32[1,3] i64[1,3]", HOB_OK},
    {"topk", "f32[2,3] 2 1", "f32[2,2]", HOB_OK},
    {"topk", "f32[2,3] 0 1", "f32[2,0]", HOB_OK},
    {"topk", "f32[2,3] 3 0", "k must be in 0..2", HOB_ERR_RANGE},
    {"topk_with_indices", "f32[2,3] 1 0", "f32[1,3] i32[1,3]", HOB_OK},
    /* views */
    {"reshape", "f32[4,3] (2,-1)", "f32[2,6]", HOB_OK},
    {"reshape", "f32[4,3] (0,3)", "f32[4,3]", HOB_OK},
    {"reshape", "f32[2,6] (0,2,-1)", "f32[2,2,3]", HOB_OK},
    {"reshape", "f32[4,3] (0,2,-1)", "does not hold", HOB_ERR_SHAPE},
    {"reshape", "f32[0,3] (0,4)", "f32[0,4]", HOB_OK},
    {"reshape", "f32[0,3] (0,-1)", "does not hold", HOB_ERR_SHAPE},
    {"reshape", "f32[0,3] (2,-1)", "f32[2,0]", HOB_OK},
    {"reshape", "f32[3] (-2,-1)", "not negative", HOB_ERR_SHAPE},
    {"reshape", "f32[4] (-1,-1)", "one -1", HOB_ERR_SHAPE},
    {"reshape", "f32[1,1] ()", "f32[]", HOB_OK},
    {"reshape", "f32[] (1,1)", "f32[1,1]", HOB_OK},
    {"reshape", "f32[2] (4294967296,4294967296)", "does not hold",
     HOB_ERR_SHAPE},
    {"permute", "f32[2,3,4] (2,0,1)", "f32[4,2,3]", HOB_OK},
    {"permute", "f32[2,3,4] (-1,0,1)", "f32[4,2,3]", HOB_OK},
    {"permute", "f32[2,3,4] (0,0,1)", "names dimension 0 twice",
     HOB_ERR_ARGUMENT},
    {"permute", "f32[2,3,4] (0,1)", "needs 3", HOB_ERR_ARGUMENT},
    {"swap_dims", "f32[2,3,4] 0 -1", "f32[4,3,2]", HOB_OK},
    {"swap_dims", "f32[2,3,4] 0 3", "dim2 3", HOB_ERR_RANGE},
    {"slice", "f32[10] (2) (8) (-2)", "f32[3]", HOB_OK},
    {"slice", "f32[3,4] (0) (9) ()", "f32[3,4]", HOB_OK},
    {"slice", "f32[3,4] (-9,-3) (9,-1) (1,1)", "f32[3,2]", HOB_OK},
    {"slice", "f32[3,4] (2) (1) ()", "f32[0,4]", HOB_OK},
    {"slice", "f32[3] (0) (3) (0)", "must not be 0", HOB_ERR_RANGE},
    {"slice", "f32[3] (0) (3) (-9223372036854775808)", "f32[1]", HOB_OK},
    {"slice", "f32[3] (0,0) (3,3) ()", "at most 1", HOB_ERR_ARGUMENT},
    {"slice", "f32[3] (0) () ()", "as many of each", HOB_ERR_ARGUMENT},
    {"slice", "f32[3] (-9223372036854775808) (9223372036854775807) ()",
     "f32[3]", HOB_OK},
    {"expand", "f32[3,1] (2,-1,4)", "f32[2,3,4]", HOB_OK},
    {"expand", "f32[] (2,0)", "f32[2,0]", HOB_OK},
    {"expand", "f32[3] (2,2)", "does not broadcast to [2,2]", HOB_ERR_SHAPE},
    {"expand", "f32[3] (-1,3)", "entry 0 is -1", HOB_ERR_SHAPE},
    {"expand", "f32[2,3] (3)", "fewer dimensions", HOB_ERR_SHAPE},
    {"expand", "f32[1] (4611686018427387904)", "2^63", HOB_ERR_SHAPE},
    {"flip", "f32[2,3] (0,-1)", "f32[2,3]", HOB_OK},
    {"flip", "f32[2,3] (1,-1)", "twice", HOB_ERR_ARGUMENT},
    {"squeeze", "f32[1,2,1] ()", "f32[2]", HOB_OK},
    {"squeeze", "f32[1,2,1] (-1)", "f32[1,2]", HOB_OK},
    {"squeeze", "f32[1,2,1] (1)", "has size 2", HOB_ERR_SHAPE},
    {"unsqueeze", "f32[2,3] 2", "f32[2,3,1]", HOB_OK},
    {"unsqueeze", "f32[2,3] -3", "f32[1,2,3]", HOB_OK},
    {"unsqueeze", "f32[] -1", "f32[1]", HOB_OK},
    {"unsqueeze", "f32[2,3] 3", "-3..2", HOB_ERR_RANGE},
    {"unsqueeze", "f32[1,1,1,1,1,1,1,1] 0", "9 dimensions", HOB_ERR_SHAPE},
    {"unfold", "f32[2,7] 1 3 2", "f32[2,3,3]", HOB_OK},
    {"unfold", "f32[2,7] 0 3 2", "f32[0,7,3]", HOB_OK},
    {"unfold", "f32[7] 0 0 1", "size is 0", HOB_ERR_RANGE},
    /* joining */
    {"cat", "{f32[2,3] f32[2,0] f32[2,1]} 1", "f32[2,4]", HOB_OK},
    {"cat", "{} 0", "tensors is empty", HOB_ERR_ARGUMENT},
    {"cat", "{f32[2,3] f32[3,3]} 1", "tensors[1] is f32[3,3]", HOB_ERR_SHAPE},
    {"cat", "{f32[] f32[]} 0", "no dimensions", HOB_ERR_RANGE},
    {"cat", "{u8[9223372036854775807] u8[9223372036854775807]} 0",
     "u8[9223372036854775807]", HOB_OK},
    {"stack", "{f32[2,3] f32[2,3]} -1", "f32[2,3,2]", HOB_OK},
    {"stack", "{f32[2,3] f32[2,4]} 0", "must be equal", HOB_ERR_SHAPE},
    {"repeat_dim", "f32[2,3] 1 2", "f32[2,6]", HOB_OK},
    {"repeat_dim", "f32[2,3] 1 -2", "times is -2", HOB_ERR_RANGE},
    {"slice_assign", "f32[5] f32[2] (1) (4) (2)", "f32[5]", HOB_OK},
    {"slice_assign", "f32[5] f32[3] (1) (4) (2)",
     "value is f32[3]; it must have the shape of the slice, [2]",
     HOB_ERR_SHAPE},
    /* indexing */
    {"gather", "f32[3,4] i32[2,9] 1", "f32[2,9]", HOB_OK},
    {"gather", "f32[3,4] i32[4,4] 1", "must not be larger", HOB_ERR_SHAPE},
    {"gather", "f32[3,4] i64[3] 1", "same rank", HOB_ERR_SHAPE},
    {"scatter_add", "f32[3] i32[5] f32[5] 0", "f32[3]", HOB_OK},
    {"scatter_add", "f32[3] i32[3] f32[2] 0", "value is f32[2]", HOB_ERR_SHAPE},
    {"select", "f32[3,4] i32[0] -1", "f32[3,0]", HOB_OK},
    {"select", "f32[3,4] i32[2,2] 0", "indices is i32[2,2]", HOB_ERR_SHAPE},
    {"select_add", "f32[3,4] i32[2] f32[2,4] 0", "f32[3,4]", HOB_OK},
    {"select_add", "f32[3,4] i32[2] f32[3,4] 0", "[2,4]", HOB_ERR_SHAPE},
    {"mask_select", "f32[2,3] bool[3]", "f32[6]", HOB_OK},
    {"mask_select", "f32[3] bool[2]", "does not broadcast", HOB_ERR_SHAPE},
    {"mask_select", "f32[3] bool[2,3]", "does not broadcast", HOB_ERR_SHAPE},
    {"embedding", "f32[10,4] i32[2,3]", "f32[2,3,4]", HOB_OK},
    {"embedding", "f32[10] i32[2]", "[count, width]", HOB_ERR_SHAPE},
    {"embedding_backward", "f32[10,4] i32[2] f32[2,4]", "f32[10,4]", HOB_OK},
    {"embedding_backward", "f32[10,4] i32[2] f32[2,3]", "grad is f32[2,3]",
     HOB_ERR_SHAPE},
    /* products */
    {"matmul", "f32[2,3] f32[3,4]", "f32[2,4]", HOB_OK},
    {"matmul", "f32[5,1,2,3] f32[6,3,4]", "f32[5,6,2,4]", HOB_OK},
    {"matmul", "f32[2,0] f32[0,4]", "f32[2,4]", HOB_OK},
    {"matmul", "f32[2,3] f32[4,5]",
     "matmul: inner sizes differ: lhs is f32[2,3], rhs is f32[4,5]; lhs's "
     "last must equal rhs's second last",
     HOB_ERR_SHAPE},
    {"matmul", "f32[3] f32[3,4]", "unsqueeze a vector", HOB_ERR_SHAPE},
    {"matmul", "f32[2,1,1] f32[3,1,1]", "leading dimensions", HOB_ERR_SHAPE},
    {"linear", "f32[5,2,3] f32[3,4] f32[4]", "f32[5,2,4]", HOB_OK},
    {"linear", "f32[3] f32[3,4] _", "f32[4]", HOB_OK},
    {"linear", "f32[2,3] f32[4,3] _", "weight is [in, out]", HOB_ERR_SHAPE},
    {"linear", "f32[2,3] f32[3,4] f32[3]", "it must be [4]", HOB_ERR_SHAPE},
    /* losses, norms, steps */
    {"cross_entropy", "f32[4,10] i64[4]", "f32[]", HOB_OK},
    {"cross_entropy", "f32[4,10] i64[3]", "targets must be [4]", HOB_ERR_SHAPE},
    {"cross_entropy", "f32[4,0] i64[4]", "no classes", HOB_ERR_SHAPE},
    {"cross_entropy_backward", "f32[4,10] i64[4] f32[]", "f32[4,10]", HOB_OK},
    {"layer_norm", "f32[4,10] f32[10] _", "f32[4,10]", HOB_OK},
    {"layer_norm", "f32[4,10] f32[4] _", "weight must be [10]", HOB_ERR_SHAPE},
    {"batch_norm", "f32[4,3,5] _ _ f32[3] f32[3]", "f32[4,3,5]", HOB_OK},
    {"batch_norm_backward", "f32[4,3,5] f32[3] f32[3] f32[4,3,5]",
     "f32[4,3,5] f32[3] f32[3]", HOB_OK},
    {"batch_norm_backward", "f32[4,3] f32[3] f32[4] f32[4,3]",
     "scale must be [3]", HOB_ERR_SHAPE},
    {"batch_norm", "f32[4,3,5] _ _ f32[3] f32[5]", "variance must be [3]",
     HOB_ERR_SHAPE},
    {"sgd_step", "f32[2] f32[2] =1e-3", "f32[2]", HOB_OK},
    {"sgd_step", "f32[2] f32[1] =1e-3", "grad is f32[1]", HOB_ERR_SHAPE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =1e-3", "f32[2] f32[2] f32[2]",
     HOB_OK},
    {"adam_step", "f32[2] f32[3] f32[2] f32[2] 1 =1e-3", "grad is f32[3]",
     HOB_ERR_SHAPE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =1e-3 =1", "beta1 is 1;",
     HOB_ERR_RANGE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =1e-3 =0 =-0.5",
     "beta2 is -0.5;", HOB_ERR_RANGE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =1e-3 =0 =nan",
     "beta2 is nan;", HOB_ERR_RANGE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 0 =1e-3", "counts from 1",
     HOB_ERR_RANGE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 0 =0 =0.9 =0.99 =1e-8 =0 f64[2]",
     "f32[2] f32[2] f32[2]", HOB_OK},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =0 =0.9 =0.99 =1e-8 =0 f16[2]",
     "now is f16;", HOB_ERR_DTYPE},
    {"adam_step", "f32[2] f32[2] f32[2] f32[2] 1 =0 =0.9 =0.99 =1e-8 =0 f32[3]",
     "must be [step, lr]", HOB_ERR_SHAPE},
    /* windows */
    {"conv2d", "f32[2,4,7,8] f32[6,2,3,3] f32[6] (2) (1) (1,2) 2",
     "f32[2,6,4,3]", HOB_OK},
    {"conv2d", "f32[2,4,7,8] f32[6,4,3,3] _ () () () 1", "f32[2,6,5,6]",
     HOB_OK},
    {"conv2d", "f32[2,4,7,8] f32[6,4,3,3] _ (0,1) () () 1",
     "stride is [0,1]; each must be in 1..", HOB_ERR_RANGE},
    {"conv2d", "f32[2,4,7,8] f32[6,4,3,3] _ () (-1) () 1", "padding is [-1,-1]",
     HOB_ERR_RANGE},
    {"conv2d", "f32[2,4,7,8] f32[6,4,3,3] _ (1,1,1) () () 1", "3 numbers",
     HOB_ERR_ARGUMENT},
    {"conv2d", "f32[2,4,7,8] f32[6,3,3,3] _ () () () 1", "groups is 1",
     HOB_ERR_SHAPE},
    {"conv2d", "f32[2,4,7,8] f32[5,2,3,3] _ () () () 2", "multiple of groups",
     HOB_ERR_SHAPE},
    {"conv2d", "f32[2,4,7,8] f32[6,4,3,3] _ () () () 0", "groups is 0",
     HOB_ERR_RANGE},
    {"conv2d", "f32[2,4,7,8] f32[6,4,0,3] _ () () () 1", "window is empty",
     HOB_ERR_SHAPE},
    {"conv2d", "f32[2,4,2,8] f32[6,4,3,3] _ () () () 1", "does not fit",
     HOB_ERR_SHAPE},
    {"conv2d", "f32[4,7,8] f32[6,4,3,3] _ () () () 1", "[n, c, h, w]",
     HOB_ERR_SHAPE},
    {"conv2d_x_backward", "(2,4,7,8) f32[6,2,3,3] f32[2,6,4,3] (2) (1) (1,2) 2",
     "f32[2,4,7,8]", HOB_OK},
    {"conv2d_x_backward", "(2,4,7,8) f32[6,2,3,3] f32[2,6,4,4] (2) (1) (1,2) 2",
     "conv2d's result", HOB_ERR_SHAPE},
    {"conv2d_weight_backward",
     "f32[2,4,7,8] (6,2,3,3) f32[2,6,4,3] (2) (1) (1,2) 2", "f32[6,2,3,3]",
     HOB_OK},
    {"conv2d_weight_backward",
     "f32[2,4,7,8] (6,2,3) f32[2,6,4,3] (2) (1) (1,2) 2", "4 sizes",
     HOB_ERR_SHAPE},
    {"max_pool2d", "f32[1,1,6,6] (3) (2) () () false", "f32[1,1,2,2]", HOB_OK},
    {"max_pool2d", "f32[1,1,6,6] (3) (2) () () true", "f32[1,1,3,3]", HOB_OK},
    {"max_pool2d", "f32[1,1,6,5] (2) () () () false", "f32[1,1,3,2]", HOB_OK},
    /* Plain rounding up would give 3: the last window only has padding. */
    {"max_pool2d", "f32[1,1,3,3] (2) (2) (1) () true", "f32[1,1,2,2]", HOB_OK},
    {"max_pool2d", "f32[1,1,6,6] () () () () false", "kernel_size is [0,0]",
     HOB_ERR_RANGE},
    {"max_pool2d", "f32[1,1,6,6] (2) (1) (2) () false", "must be smaller",
     HOB_ERR_RANGE},
    {"max_pool2d", "f32[1,1,2,6] (2,1) (1) (2,0) (4,1) false",
     "steps over all of the height 2", HOB_ERR_SHAPE},
    {"max_pool2d", "f32[1,1,6,1] (1,2) (1) (0,2) (1,4) false",
     "steps over all of the width 1", HOB_ERR_SHAPE},
    {"max_pool2d", "f32[1,1,1,1] (2) (1) (3) (3) false",
     "steps over all of the height 1", HOB_ERR_SHAPE},
    {"max_pool2d", "f32[1,1,0,6] (2) (1) (1) () false", "no elements",
     HOB_ERR_SHAPE},
    {"max_pool2d_with_indices", "f32[1,1,5,5] (4,2) (1,2) (2,1) () false :i64",
     "f32[1,1,6,3] i64[1,1,6,3]", HOB_OK},
    {"max_pool2d_backward", "(1,2,5,5) f32[1,2,3,3] i32[1,2,3,3]",
     "f32[1,2,5,5]", HOB_OK},
    {"max_pool2d_backward", "(1,2,5,5) f32[1,2,3,3] i32[1,2,3,2]", "one shape",
     HOB_ERR_SHAPE},
    {"max_pool2d_x_backward", "f32[1,2,5,5] f32[1,2,2,2] (2) () () () false",
     "f32[1,2,5,5]", HOB_OK},
    {"max_pool2d_x_backward", "f32[1,2,5,5] f32[1,2,3,2] (2) () () () false",
     "max_pool2d's result", HOB_ERR_SHAPE},
    {"avg_pool2d", "f32[1,1,6,6] (3) (2) (1) true true", "f32[1,1,4,4]",
     HOB_OK},
    {"avg_pool2d_backward", "(1,1,6,6) f32[1,1,4,4] (3) (2) (1) true true",
     "f32[1,1,6,6]", HOB_OK},
    {"avg_pool2d_backward", "(1,1,6,6) f32[1,1,3,4] (3) (2) (1) true true",
     "avg_pool2d's result", HOB_ERR_SHAPE},
};

enum { MAX_WORDS = 16, MAX_ITEMS = 4 };

/* What a row's words point to. */
struct words {
    struct hob_view views[MAX_WORDS];
    hob_tensor *items[MAX_ITEMS];
    int64_t numbers[MAX_WORDS][MAX_WORDS];
    uint32_t view_count;
};

static uint32_t dtype_of(const char *name, size_t length)
{
    for (uint32_t d = 1; d < HOB_DTYPE_COUNT_; d++)
        if (strlen(hob_dtype_name(d)) == length &&
            memcmp(hob_dtype_name(d), name, length) == 0)
            return d;
    ck_abort_msg("no dtype: %s", name);
    return 0;
}

/* Read "1,2" up to a closing mark; returns what follows it. */
static const char *read_numbers(const char *text, int64_t *out,
                                uint32_t *out_count)
{
    *out_count = 0;
    while (*text != ']' && *text != ')') {
        char *end;
        out[(*out_count)++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return text + 1;
}

static const char *read_tensor(struct words *words, const char *text,
                               hob_tensor **out)
{
    struct hob_view *view = &words->views[words->view_count++];
    size_t length = strcspn(text, "[");
    uint32_t rank;
    int64_t numbers[MAX_WORDS] = {0};

    memset(view, 0, sizeof(*view));
    view->dtype = (uint8_t)dtype_of(text, length);
    text = read_numbers(text + length + 1, numbers, &rank);
    memcpy(view->shape, numbers, sizeof(view->shape));
    view->rank = (uint8_t)rank;
    *out = (hob_tensor *)(void *)view;
    return text;
}

/* Read one word into VALUE; returns what follows it. */
static const char *read_word(struct words *words, uint32_t index,
                             const char *text, hob_value *value)
{
    hob_tensor *tensor;
    uint32_t count = 0;
    char *end;

    switch (*text) {
    case '_':
        *value = hob_none();
        return text + 1;
    case '(':
        text = read_numbers(text + 1, words->numbers[index], &count);
        *value = hob_value_i64s(words->numbers[index], count);
        return text;
    case '{':
        for (text++; *text != '}'; text += *text == ' ')
            text = read_tensor(words, text, &words->items[count++]);
        *value = hob_value_tensors(words->items, count);
        return text + 1;
    case '=':
        *value = hob_f64(strtod(text + 1, &end));
        return end;
    case ':':
        count = (uint32_t)strcspn(text, " ");
        *value = hob_value_dtype(dtype_of(text + 1, count - 1));
        return text + count;
    default:
        break;
    }
    if (strncmp(text, "true", 4) == 0 || strncmp(text, "false", 5) == 0) {
        *value = hob_bool(*text == 't');
        return text + strcspn(text, " ");
    }
    if (*text == '-' || (*text >= '0' && *text <= '9')) {
        *value = hob_i64(strtoll(text, &end, 10));
        return end;
    }
    text = read_tensor(words, text, &tensor);
    *value = hob_value_tensor(tensor);
    return text;
}

static const struct hob__op_decl *find_op(const char *name)
{
    for (uint32_t i = 0; i < hob__builtin_op_count; i++)
        if (strcmp(hob__builtin_ops[i].name, name) == 0)
            return &hob__builtin_ops[i];
    ck_abort_msg("no op: %s", name);
    return NULL;
}

/* The results' dtypes as the core fills them in. */
static void fill_dtypes(const struct hob__signature *signature,
                        const hob_value *args, struct hob_meta *metas)
{
    for (uint32_t i = 0; i < signature->result_count; i++) {
        const struct hob__result *result = &signature->results[i];
        const hob_value *arg = &args[result->param];
        if (result->source == HOB__RESULT_DTYPE)
            metas[i].dtype = result->dtype;
        else if (result->source == HOB__RESULT_ATTRIBUTE)
            metas[i].dtype = (uint8_t)arg->u.i64;
        else if (arg->tag == HOB_TAG_TENSOR)
            metas[i].dtype = hob_tensor_view(arg->u.tensor)->dtype;
        else if (arg->count)
            metas[i].dtype = hob_tensor_view(arg->u.tensors[0])->dtype;
    }
}

static void check_row(const struct row *row)
{
    const struct hob__op_decl *op = find_op(row->op);
    struct hob__signature signature;
    struct fake_host host;
    struct fake_call fake;
    struct words words;
    struct hob_meta metas[HOB_MAX_RESULTS];
    const char *text = row->args, *message;
    char got[512] = "";
    hob_status st;
    int column;

    memset(&words, 0, sizeof(words));
    memset(metas, 0, sizeof(metas));
    fake_host_init(&host, 1);
    fake_call_init(&fake, &host, row->op);
    ck_assert_int_eq(
        hob__signature_parse(op->signature, &signature, &column, &message),
        HOB_OK);
    while (*text) {
        hob_value value;
        text = read_word(&words, fake.call.arg_count, text, &value);
        fake_call_value(&fake, value);
        text += *text == ' ';
    }
    for (uint32_t i = fake.call.arg_count; i < signature.param_count; i++)
        fake_call_value(&fake, signature.params[i].flags & HOB__PARAM_DEFAULT
                                   ? signature.params[i].value
                                   : hob_none());
    fake.call.ret_count = signature.result_count;
    fill_dtypes(&signature, fake.args, metas);
    st = op->infer(&fake.call, metas);
    ck_assert_msg(st == row->status, "%s %s: %s: %s", row->op, row->args,
                  hob_status_name(st), host.message);
    if (st)
        snprintf(got, sizeof(got), "%s", host.message);
    for (uint32_t i = 0; !st && i < signature.result_count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s",
                 i ? " " : "", hob__infer_meta_text(&metas[i]).text);
    ck_assert_msg(
        st ? strstr(got, row->result) != NULL : strcmp(got, row->result) == 0,
        "%s %s: \"%s\", not \"%s\"", row->op, row->args, got, row->result);
    /* Whatever failed, the message begins with the op. */
    if (st)
        ck_assert_msg(strncmp(got, row->op, strlen(row->op)) == 0, "%s", got);
    hob__signature_release(&signature);
}

START_TEST(test_infer_gives_shapes_and_messages)
{
    check_row(&rows[_i]);
}
END_TEST

START_TEST(test_infer_find_knows_every_name_and_no_other)
{
    ck_assert_ptr_eq((void *)(uintptr_t)hob__infer_find("matmul"),
                     (void *)(uintptr_t)hob__infer_matmul);
    ck_assert_ptr_null((void *)(uintptr_t)hob__infer_find("matmu"));
    ck_assert_ptr_null((void *)(uintptr_t)hob__infer_find(""));
}
END_TEST

/* Against the positions that the rules name, listed one by one. */
START_TEST(test_infer_range_agrees_with_enumeration)
{
    for (int64_t size = 0; size < 6; size++)
        for (int64_t start = -8; start < 8; start++)
            for (int64_t end = -8; end < 8; end++)
                for (int64_t step = -3; step < 4; step++) {
                    int64_t low = start < 0 ? start + size : start;
                    int64_t high = end < 0 ? end + size : end, count = 0;
                    struct hob__range range;
                    if (step == 0)
                        continue;
                    range = hob__range_resolve(start, end, step, size);
                    for (int64_t at = step > 0 ? low : high - 1;
                         step > 0 ? at < high : at >= low;) {
                        /* Positions outside do not count; those at a step
                         * from the clamped end do. */
                        if (at < 0 && step > 0) {
                            at = 0;
                            continue;
                        }
                        if (at >= size && step < 0) {
                            at = size - 1;
                            continue;
                        }
                        if (at < 0 || at >= size)
                            break;
                        ck_assert_int_eq(range.first + count * range.step, at);
                        count++;
                        at += step;
                    }
                    ck_assert_int_eq(range.count, count);
                }
}
END_TEST

/* Every window that holds an element, and no other, is counted. */
START_TEST(test_infer_window_count_agrees_with_enumeration)
{
    for (int64_t in = 1; in < 7; in++)
        for (int64_t size = 1; size < 4; size++)
            for (int64_t stride = 1; stride < 4; stride++)
                for (int64_t dilation = 1; dilation < 3; dilation++)
                    for (int64_t pad = 0; pad <= dilation * (size - 1); pad++) {
                        struct hob__window w = {
                            {size, 1}, {stride, 1}, {pad, 0}, {dilation, 1}};
                        int64_t reach = dilation * (size - 1) + 1;
                        int64_t whole = 0, begun = 0;
                        for (int64_t at = -pad; at + reach <= in + pad;
                             at += stride)
                            whole++;
                        begun = whole;
                        /* With ceil one more, if it begins over elements or
                         * the left padding and there is rest to cover. */
                        if (whole * stride - pad < in &&
                            in + 2 * pad - reach > (whole - 1) * stride)
                            begun++;
                        ck_assert_int_eq(hob__window_count(&w, 0, in, 0),
                                         whole);
                        ck_assert_int_eq(
                            hob__window_count(&w, 0, in, 1),
                            in + 2 * pad - reach + stride - 1 < 0 ? 0 : begun);
                    }
}
END_TEST

START_TEST(test_infer_texts_hold_the_longest_shape)
{
    struct hob_meta meta = {HOB_DTYPE_BF16, 8, 0, 0, {0}};
    int64_t many[9] = {0};

    for (int i = 0; i < 8; i++)
        meta.shape[i] = INT64_MIN;
    ck_assert_uint_eq(strlen(hob__infer_meta_text(&meta).text), 6 + 8 * 20 + 7);
    ck_assert_str_eq(hob__list_text(many, 9).text, "[0,0,0,0,0,0,0,0,...]");
    ck_assert_str_eq(hob__list_text(many, 0).text, "[]");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer");
    TCase *tc = tcase_create("rows");

    tcase_add_loop_test(tc, test_infer_gives_shapes_and_messages, 0,
                        (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    tc = tcase_create("rules");
    tcase_add_test(tc, test_infer_find_knows_every_name_and_no_other);
    tcase_add_test(tc, test_infer_range_agrees_with_enumeration);
    tcase_add_test(tc, test_infer_window_count_agrees_with_enumeration);
    tcase_add_test(tc, test_infer_texts_hold_the_longest_shape);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
