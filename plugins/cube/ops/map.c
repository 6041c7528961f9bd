/* SPDX-License-Identifier: Apache-2.0 */
#include "cube.h"

const struct cube_entries cube_map_entries = {NULL, 0};
