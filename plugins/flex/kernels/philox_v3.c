/* SPDX-License-Identifier: Apache-2.0 */
/* philox_v3.c - random words for x86-64-v3. */
#define PHILOX flex_philox_v3
#include "philox_isa.h"
