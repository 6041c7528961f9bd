/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_chain_v3
#include "chain_isa.h"
