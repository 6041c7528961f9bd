/* SPDX-License-Identifier: Apache-2.0 */
/* move_v4.c - moves for x86-64-v4. */
#define TABLE flex_move_v4
#include "move_isa.h"
