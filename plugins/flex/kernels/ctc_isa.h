/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctc_isa.h - the kernels of ctc.h for one instruction set. Included by
 * ctc_base.c, ctc_v2.c, ctc_v3.c and ctc_v4.c with TABLE defined.
 */
#include "ctc.h"

#include "math_f32.h"
#include "math_f64.h"

#define TYPE float
#define NAME(x) f32_##x
#define EXP(x) exp_f32(x)
#define LOG(x) log_f32(x)
#include "ctc_tmpl.h"
#undef TYPE
#undef NAME
#undef EXP
#undef LOG

#define TYPE double
#define NAME(x) f64_##x
#define EXP(x) exp_f64(x)
#define LOG(x) log_f64(x)
#include "ctc_tmpl.h"
#undef TYPE
#undef NAME
#undef EXP
#undef LOG

const struct flex_ctc_kernels TABLE[FLEX_CTC_COUNT_] = {
    [FLEX_CTC_F32] = {.step = f32_step, .back = f32_back},
    [FLEX_CTC_F64] = {.step = f64_step, .back = f64_back},
};
