/* SPDX-License-Identifier: Apache-2.0 */
#define TWIN 1
#include "mock_twin.h"
