/* SPDX-License-Identifier: Apache-2.0 */
/* move_base.c - moves for any processor. */
#define TABLE flex_move_base
#include "move_isa.h"
