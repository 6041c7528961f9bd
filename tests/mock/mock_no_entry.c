/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that is no plugin: it has no entry. */
#include <hob/common.h>

HOB_EXPORT int mock_something_else(void);

int mock_something_else(void)
{
    return 1;
}
