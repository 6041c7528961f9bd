/* SPDX-License-Identifier: Apache-2.0 */
/* philox_v2.c - random words for x86-64-v2. */
#define PHILOX flex_philox_v2
#include "philox_isa.h"
