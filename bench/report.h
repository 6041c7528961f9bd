/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - results as tables for people and as JSON for machines.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "ceilings.h"
#include "measure.h"

#include <stddef.h>

struct bench_report {
    const struct bench_ceilings *ceilings;
    const struct measure_row *rows;
    size_t row_count;
    const struct measure_options *options;
    const char *command;
    const char *commit;
};

/* Print a row as one line while the suite runs. */
void report_row(const struct bench_ceilings *ceilings,
                const struct measure_row *row);

/* Write everything to PATH: Markdown, or JSON. 0 on failure. */
int report_markdown(const struct bench_report *report, const char *path);
int report_json(const struct bench_report *report, const char *path);

#endif
