/* SPDX-License-Identifier: Apache-2.0 */
#define TWIN 2
#include "mock_twin.h"
