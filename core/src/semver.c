/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "semver.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_identifier(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-';
}

/* Read a number without leading zeros at *TEXT and step over it. */
static bool read_number(const char **text, uint32_t *out_number)
{
    const char *p = *text;
    uint64_t number = 0;

    if (!is_digit(*p) || (*p == '0' && is_digit(p[1])))
        return false;
    for (; is_digit(*p); p++) {
        number = number * 10 + (uint64_t)(*p - '0');
        if (number > UINT32_MAX)
            return false;
    }
    *text = p;
    *out_number = (uint32_t)number;
    return true;
}

/* Step over dot-separated identifiers; numeric ones without leading zeros. */
static bool skip_identifiers(const char **text, bool strict)
{
    const char *p = *text;

    for (;;) {
        const char *start = p;
        bool numeric = true;

        for (; is_identifier(*p); p++)
            numeric = numeric && is_digit(*p);
        if (p == start || (strict && numeric && p - start > 1 && *start == '0'))
            return false;
        if (*p != '.')
            break;
        p++;
    }
    *text = p;
    return true;
}

static bool parse_tail(const char **text, struct hob__semver *version)
{
    if (**text == '-') {
        version->prerelease = ++*text;
        if (!skip_identifiers(text, true))
            return false;
        version->prerelease_length = (uint32_t)(*text - version->prerelease);
    }
    if (**text == '+') {
        ++*text;
        return skip_identifiers(text, false);
    }
    return true;
}

bool hob__semver_parse(const char *text, struct hob__semver *out_version)
{
    struct hob__semver version = {0};

    memset(out_version, 0, sizeof(*out_version));
    if (!read_number(&text, &version.major) || *text++ != '.' ||
        !read_number(&text, &version.minor) || *text++ != '.' ||
        !read_number(&text, &version.patch) || !parse_tail(&text, &version) ||
        *text)
        return false;
    *out_version = version;
    return true;
}

static int compare_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Compare one identifier; numeric ones are below the others (semver 11.4). */
static int compare_identifier(const char *a, size_t a_length, const char *b,
                              size_t b_length)
{
    bool a_numeric = true, b_numeric = true;
    size_t i, shorter = a_length < b_length ? a_length : b_length;
    int order;

    for (i = 0; i < a_length; i++)
        a_numeric = a_numeric && is_digit(a[i]);
    for (i = 0; i < b_length; i++)
        b_numeric = b_numeric && is_digit(b[i]);
    if (a_numeric != b_numeric)
        return a_numeric ? -1 : 1;
    if (a_numeric && a_length != b_length)
        return a_length < b_length ? -1 : 1;
    order = memcmp(a, b, shorter);
    return order ? order : compare_number(a_length, b_length);
}

static size_t identifier_length(const char *text, size_t length)
{
    const char *dot = memchr(text, '.', length);

    return dot ? (size_t)(dot - text) : length;
}

static int compare_prerelease(const struct hob__semver *a,
                              const struct hob__semver *b)
{
    const char *p = a->prerelease, *q = b->prerelease;
    size_t p_left = a->prerelease_length, q_left = b->prerelease_length;

    /* A version without one is the later one. */
    if (!p || !q)
        return (p == NULL) - (q == NULL);
    for (;;) {
        size_t n = identifier_length(p, p_left);
        size_t m = identifier_length(q, q_left);
        int order = compare_identifier(p, n, q, m);

        if (order || n == p_left || m == q_left)
            return order ? order : compare_number(p_left - n, q_left - m);
        p += n + 1;
        p_left -= n + 1;
        q += m + 1;
        q_left -= m + 1;
    }
}

int hob__semver_compare(const struct hob__semver *a,
                        const struct hob__semver *b)
{
    int order = compare_number(a->major, b->major);

    if (!order)
        order = compare_number(a->minor, b->minor);
    if (!order)
        order = compare_number(a->patch, b->patch);
    return order ? order : compare_prerelease(a, b);
}

/* Read "1", "1.2" or "1.2.3-x" at *TEXT. */
static bool read_partial(const char **text, struct hob__semver *version)
{
    memset(version, 0, sizeof(*version));
    if (!read_number(text, &version->major))
        return false;
    if (**text == '.') {
        ++*text;
        if (!read_number(text, &version->minor))
            return false;
    }
    if (**text == '.') {
        ++*text;
        if (!read_number(text, &version->patch) || !parse_tail(text, version))
            return false;
    }
    return true;
}

static bool holds(int order, char operation, bool or_equal)
{
    if (operation == '>')
        return or_equal ? order >= 0 : order > 0;
    if (operation == '<')
        return or_equal ? order <= 0 : order < 0;
    return order == 0;
}

bool hob__semver_in_range(const struct hob__semver *version, const char *range,
                          bool *out_valid)
{
    bool inside = true;

    *out_valid = true;
    if (!strcmp(range, "*"))
        return true;
    *out_valid = false;
    do {
        struct hob__semver bound;
        char operation = '=';
        bool or_equal = false;

        while (*range == ' ')
            range++;
        if (*range == '<' || *range == '>' || *range == '=') {
            operation = *range++;
            or_equal = operation != '=' && *range == '=';
            range += or_equal;
        }
        if (!read_partial(&range, &bound) || (*range && *range != ' '))
            return false;
        inside = inside && holds(hob__semver_compare(version, &bound),
                                 operation, or_equal);
        while (*range == ' ')
            range++;
    } while (*range);
    *out_valid = true;
    return inside;
}
