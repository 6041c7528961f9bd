/* SPDX-License-Identifier: Apache-2.0 */
/* philox_base.c - random words for any processor. */
#define PHILOX flex_philox_base
#include "philox_isa.h"
