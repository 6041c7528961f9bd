/* SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void findings_init(struct findings *findings)
{
    findings->list = cJSON_CreateArray();
    findings->problem_count = 0;
}

void findings_release(struct findings *findings)
{
    cJSON_Delete(findings->list);
}

void findings_add(struct findings *findings, enum standing standing,
                  const char *about, const char *advice, const char *format,
                  ...)
{
    static const char *const standings[] = {"ok", "note", "problem"};
    cJSON *finding = cJSON_CreateObject();
    va_list args;
    char *found = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&found, &size);

    va_start(args, format);
    if (stream) {
        vfprintf(stream, format, args);
        fclose(stream);
    }
    va_end(args);
    cJSON_AddStringToObject(finding, "standing", standings[standing]);
    cJSON_AddStringToObject(finding, "about", about);
    cJSON_AddStringToObject(finding, "found", found ? found : "");
    if (advice && *advice)
        cJSON_AddStringToObject(finding, "do", advice);
    cJSON_AddItemToArray(findings->list, finding);
    findings->problem_count += standing == PROBLEM;
    free(found);
}

static const char *text_of(const cJSON *finding, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(finding, key));
}

/* TEXT, whose later lines begin at COLUMN. */
static void print_lines(const char *text, int column)
{
    for (const char *p = text; *p; p++)
        if (*p == '\n' && p[1])
            printf("\n%*s", column, "");
        else if (*p != '\n')
            putchar(*p);
    putchar('\n');
}

void findings_print(const struct findings *findings)
{
    enum { STANDING_WIDTH = 7, ABOUT_WIDTH_MAX = 24 };
    const cJSON *finding;
    int width = 0;
    int column;

    cJSON_ArrayForEach(finding, findings->list)
    {
        const cJSON *text;
        size_t size = strlen(text_of(finding, "about"));

        cJSON_ArrayForEach(text, finding) hob__text_plain(text->valuestring);

        if (size > (size_t)width && size <= ABOUT_WIDTH_MAX)
            width = (int)size;
    }
    column = STANDING_WIDTH + 2 + width + 2;
    cJSON_ArrayForEach(finding, findings->list)
    {
        const char *advice = text_of(finding, "do");

        printf("%-*s  %-*s  ", STANDING_WIDTH, text_of(finding, "standing"),
               width, text_of(finding, "about"));
        print_lines(text_of(finding, "found"), column);
        if (advice) {
            printf("%*sdo: ", column, "");
            print_lines(advice, column + 4);
        }
    }
    if (findings->problem_count)
        printf("%" PRIu32 " %s\n", findings->problem_count,
               findings->problem_count == 1 ? "problem" : "problems");
    else
        printf("no problems\n");
}
