/* SPDX-License-Identifier: Apache-2.0 */
/* No fault: it lists fusion for a feature that is off, and needs nothing for
 * it, since an opaque op is put off as it is. */
#define MUTANT_BODY NULL
#define MUTANT_IMPLS 1
#include "mutant_table.h"
