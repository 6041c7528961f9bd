/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons and what every numeric type shares, for type T. */
#define R uint8_t
#define OP equal
#define EXPR a[i] == b[i]
#include "map_loop.h"
#define OP not_equal
#define EXPR a[i] != b[i]
#include "map_loop.h"
#define OP greater
#define EXPR a[i] > b[i]
#include "map_loop.h"
#define OP greater_equal
#define EXPR a[i] >= b[i]
#include "map_loop.h"
#define OP less
#define EXPR a[i] < b[i]
#include "map_loop.h"
#define OP less_equal
#define EXPR a[i] <= b[i]
#include "map_loop.h"
#undef R

#define R T
#define OP sign
#define EXPR (a[i] > 0) - NEGATIVE(a[i])
#include "map_loop.h"
/* NaN stays: both comparisons are false. The lower bound wins. */
#define OP clamp
#define EXPR                                                                   \
    (a[i] > c[i] ? c[i] : a[i]) < b[i] ? b[i] : (a[i] > c[i] ? c[i] : a[i])
#include "map_loop.h"
#undef R
