/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - the families of cases: a file of bench/cases/ a line.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases/cases.h"
#include "suite.h"

const struct bench_family *const bench_families[] = {
    &bench_matmul,      /* C1 to C5, C22 */
    &bench_elementwise, /* C6 to C10, C16 */
    &bench_reduce,      /* C11 to C14 */
    &bench_layout,      /* C15, C17 */
    &bench_conv,        /* C18, C19 */
    &bench_attention,   /* C20 */
    &bench_nms,         /* C21 */
    &bench_training,    /* C23, C24 */
    &bench_calls,       /* C25 */
    &bench_lazy,        /* C25, C28 */
    &bench_opening,     /* C26 */
    &bench_graphs,      /* C27, C28 */
    &bench_threads,     /* C29, C30 */
    NULL,
};

const struct bench_case *bench_case_at(size_t number)
{
    for (size_t i = 0; bench_families[i]; i++) {
        if (number < bench_families[i]->count)
            return &bench_families[i]->cases[number];
        number -= bench_families[i]->count;
    }
    return NULL;
}

size_t bench_case_number(const struct bench_case *c)
{
    size_t number = 0;

    while (bench_case_at(number) != c)
        number++;
    return number;
}
