/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

/* The levels are built for x86-64 only; elsewhere the compiler's baseline is
 * all there is. */
#if defined(__x86_64__) && !defined(FLEX_BASE_ONLY)
#define FLEX_LEVELS 1
#else
#define FLEX_LEVELS 0
#endif

static int cpu_has(uint32_t isa)
{
#if FLEX_LEVELS
    __builtin_cpu_init();
    switch (isa) {
    case FLEX_ISA_V4:
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && cpu_has(FLEX_ISA_V3);
    case FLEX_ISA_V3:
        return __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2") &&
               __builtin_cpu_supports("fma") && cpu_has(FLEX_ISA_V2);
    case FLEX_ISA_V2:
        return __builtin_cpu_supports("sse4.2") &&
               __builtin_cpu_supports("popcnt");
    default:
        break;
    }
#endif
    return isa == FLEX_ISA_BASE;
}

const struct flex_kernels *flex_kernels_find(uint32_t isa)
{
    static const struct flex_kernels *const tables[FLEX_ISA_COUNT_] = {
        [FLEX_ISA_BASE] = &flex_kernels_base,
#if FLEX_LEVELS
#if !defined(FLEX_WITHOUT_V2)
        [FLEX_ISA_V2] = &flex_kernels_v2,
#endif
        [FLEX_ISA_V3] = &flex_kernels_v3,
#if !defined(FLEX_WITHOUT_V4)
        [FLEX_ISA_V4] = &flex_kernels_v4,
#endif
#endif
    };

    return isa < FLEX_ISA_COUNT_ && cpu_has(isa) ? tables[isa] : NULL;
}

const struct flex_kernels *flex_kernels_best(void)
{
    for (uint32_t isa = FLEX_ISA_COUNT_; isa-- > 0;) {
        const struct flex_kernels *kernels = flex_kernels_find(isa);

        if (kernels)
            return kernels;
    }
    return &flex_kernels_base;
}
