/* SPDX-License-Identifier: Apache-2.0 */
/* philox_v4.c - random words for x86-64-v4. */
#define PHILOX flex_philox_v4
#include "philox_isa.h"
