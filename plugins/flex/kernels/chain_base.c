/* SPDX-License-Identifier: Apache-2.0 */
#define TABLE flex_chain_base
#include "chain_isa.h"
