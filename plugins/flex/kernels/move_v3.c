/* SPDX-License-Identifier: Apache-2.0 */
/* move_v3.c - moves for x86-64-v3. */
#define TABLE flex_move_v3
#include "move_isa.h"
