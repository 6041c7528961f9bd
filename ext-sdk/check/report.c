/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - findings, collected.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static const struct check_code_info codes[] = {
#define CHECK_CODE(code, meaning, hint) {#code, meaning, hint},
#include "codes.def"
#undef CHECK_CODE
};

const struct check_code_info *check_code_info(enum check_code code)
{
    return &codes[code];
}

/* Room for one more in *ITEMS; NULL without memory. */
static void *grow(struct check_report *report, void **items, uint32_t *count,
                  uint32_t *capacity, size_t size)
{
    uint32_t wanted = *capacity ? *capacity * 2 : 16;
    void *more;

    if (*count == *capacity) {
        more = realloc(*items, wanted * size);
        if (!more) {
            report->failed = true;
            return NULL;
        }
        *items = more;
        *capacity = wanted;
    }
    return (char *)*items + (*count)++ * size;
}

static char *copy(struct check_report *report, const char *text)
{
    char *made = strdup(text);

    report->failed |= !made;
    return made;
}

static int is_same(const struct check_finding *finding, enum check_code code,
                   const char *op, const char *device)
{
    return finding->code == code && finding->op && finding->device &&
           !strcmp(finding->op, op) && !strcmp(finding->device, device);
}

void check_add(struct check_report *report, enum check_code code,
               const char *op, const char *device, const char *check,
               const char *sample, const char *message)
{
    struct check_finding *finding;
    void *items = report->findings;

    if (code >= CHECK_CODE_COUNT_)
        return;
    for (uint32_t i = 0; i < report->count; i++)
        if (is_same(&report->findings[i], code, op, device)) {
            report->findings[i].more++;
            return;
        }
    finding = grow(report, &items, &report->count, &report->capacity,
                   sizeof(*finding));
    report->findings = items;
    if (!finding)
        return;
    finding->code = code;
    finding->op = copy(report, op);
    finding->device = copy(report, device);
    finding->check = copy(report, check);
    finding->sample = copy(report, sample);
    finding->message = copy(report, message);
    finding->program = NULL;
    finding->more = 0;
    finding->is_effect = 0;
}

void check_add_program(struct check_report *report, const char *program)
{
    struct check_finding *last =
        report->count ? &report->findings[report->count - 1] : NULL;

    if (last && !last->program && !last->more && *program)
        last->program = copy(report, program);
}

void check_add_case(struct check_report *report, const char *text)
{
    void *items = report->cases;
    char **one = grow(report, &items, &report->case_count,
                      &report->case_capacity, sizeof(*one));

    report->cases = items;
    if (one)
        *one = copy(report, text);
}

void check_add_line(struct check_report *report, const char *op,
                    const char *device, const char *check, uint64_t runs,
                    uint32_t findings)
{
    void *items = report->lines;
    struct check_line *line = grow(report, &items, &report->line_count,
                                   &report->line_capacity, sizeof(*line));

    report->lines = items;
    if (!line)
        return;
    line->op = copy(report, op);
    line->device = copy(report, device);
    line->check = copy(report, check);
    line->runs = runs;
    line->findings = findings;
}

void check_add_note(struct check_report *report, const char *text)
{
    void *items = report->notes;
    char **note;

    for (uint32_t i = 0; i < report->note_count; i++)
        if (report->notes[i] && !strcmp(report->notes[i], text))
            return;
    note = grow(report, &items, &report->note_count, &report->note_capacity,
                sizeof(*note));
    report->notes = items;
    if (note)
        *note = copy(report, text);
}

static void release_finding(struct check_finding *finding)
{
    free(finding->op);
    free(finding->device);
    free(finding->check);
    free(finding->sample);
    free(finding->message);
    free(finding->program);
}

/* What a fault brings with it: EFFECT says nothing while CAUSE is there. */
static const struct {
    uint8_t cause, effect;
} follows[] = {
    {CHECK_NOT_DETERMINISTIC, CHECK_DISAGREES},
    {CHECK_NOT_DETERMINISTIC, CHECK_LAYERS},
    {CHECK_NOT_DETERMINISTIC, CHECK_LAYOUT},
    {CHECK_NOT_DETERMINISTIC, CHECK_GARBAGE},
    {CHECK_NOT_DETERMINISTIC, CHECK_THREADS},
    {CHECK_NOT_DETERMINISTIC, CHECK_IN_PLACE},
    {CHECK_NOT_DETERMINISTIC, CHECK_ALLOC_FAILURE},
    {CHECK_NOT_DETERMINISTIC, CHECK_GRADIENT},
    {CHECK_GARBAGE, CHECK_DISAGREES},
    {CHECK_GARBAGE, CHECK_LAYERS},
    {CHECK_GARBAGE, CHECK_LAYOUT},
    {CHECK_GARBAGE, CHECK_THREADS},
    {CHECK_GARBAGE, CHECK_IN_PLACE},
    {CHECK_GARBAGE, CHECK_ALLOC_FAILURE},
    {CHECK_GARBAGE, CHECK_GRADIENT},
    {CHECK_OUT_OF_BOUNDS, CHECK_CRASH},
    {CHECK_FAILS, CHECK_LAYERS},
    {CHECK_FAILS, CHECK_GRADIENT},
    {CHECK_DISAGREES, CHECK_LAYERS},
    {CHECK_DISAGREES, CHECK_GRADIENT},
    {CHECK_ARGUMENT_WRITTEN, CHECK_GRADIENT},
    {CHECK_ARGUMENT_WRITTEN, CHECK_IN_PLACE},
    /* Reading a strided argument as if it were contiguous. */
    {CHECK_LAYOUT, CHECK_OUT_OF_BOUNDS},
    {CHECK_LAYOUT, CHECK_CRASH},
    {CHECK_LAYOUT, CHECK_GARBAGE},
};

static const struct check_finding *find_code(const struct check_report *report,
                                             uint8_t code, const char *op,
                                             const char *device)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (is_same(&report->findings[i], (enum check_code)code, op, device))
            return &report->findings[i];
    return NULL;
}

void check_report_settle(struct check_report *report)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < report->count; i++) {
        struct check_finding *one = &report->findings[i];

        for (size_t k = 0; k < sizeof(follows) / sizeof(follows[0]); k++)
            one->is_effect |=
                one->op && one->device && one->code == follows[k].effect &&
                find_code(report, follows[k].cause, one->op, one->device) !=
                    NULL;
    }
    for (uint32_t i = 0; i < report->count; i++) {
        if (report->findings[i].is_effect)
            release_finding(&report->findings[i]);
        else
            report->findings[kept++] = report->findings[i];
    }
    report->hidden = report->count - kept;
    report->count = kept;
}

void check_report_release(struct check_report *report)
{
    for (uint32_t i = 0; i < report->count; i++)
        release_finding(&report->findings[i]);
    for (uint32_t i = 0; i < report->line_count; i++) {
        free(report->lines[i].op);
        free(report->lines[i].device);
        free(report->lines[i].check);
    }
    for (uint32_t i = 0; i < report->note_count; i++)
        free(report->notes[i]);
    free(report->findings);
    free(report->lines);
    for (uint32_t i = 0; i < report->case_count; i++)
        free(report->cases[i]);
    free(report->notes);
    free(report->cases);
    memset(report, 0, sizeof(*report));
}
