/* SPDX-License-Identifier: Apache-2.0 */
/* move_v2.c - moves for x86-64-v2. */
#define TABLE flex_move_v2
#include "move_isa.h"
