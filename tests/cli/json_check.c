/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_check.c - is standard input JSON, and what stands at a place in it?
 *
 * usage: json_check [/KEY/INDEX...]; prints the value there, texts without
 * quotes. Exit code 1: no JSON, 2: nothing there.
 */
#include <cjson/cJSON.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(FILE *stream)
{
    size_t capacity = 1 << 16;
    size_t size = 0;
    char *text = malloc(capacity);
    size_t count;

    while (text &&
           (count = fread(text + size, 1, capacity - size - 1, stream)) > 0) {
        size += count;
        if (capacity - size < 2)
            text = realloc(text, capacity *= 2);
    }
    if (text)
        text[size] = '\0';
    return text;
}

static const cJSON *walk(const cJSON *json, char *path)
{
    for (char *key = strtok(path, "/"); key && json; key = strtok(NULL, "/"))
        json = cJSON_IsArray(json) && isdigit((unsigned char)*key)
                   ? cJSON_GetArrayItem(json, atoi(key))
                   : cJSON_GetObjectItemCaseSensitive(json, key);
    return json;
}

int main(int argc, char **argv)
{
    char *text = read_all(stdin);
    cJSON *json = text ? cJSON_ParseWithOpts(text, NULL, 1) : NULL;
    const cJSON *found = json && argc > 1 ? walk(json, argv[1]) : json;
    char *printed =
        cJSON_IsString(found) ? NULL : cJSON_PrintUnformatted(found);
    int code = !json ? 1 : !found ? 2 : 0;

    if (!code)
        puts(printed ? printed : found->valuestring);
    cJSON_free(printed);
    cJSON_Delete(json);
    free(text);
    return code;
}
