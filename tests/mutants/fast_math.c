/* SPDX-License-Identifier: Apache-2.0 */
/* What the start-up code of -ffast-math does. */
#include "mutant_table.h"

#include <xmmintrin.h>

static void __attribute__((constructor)) flush_denormals(void)
{
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
