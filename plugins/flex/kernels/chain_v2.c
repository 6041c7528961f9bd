/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_chain_v2
#include "chain_isa.h"
