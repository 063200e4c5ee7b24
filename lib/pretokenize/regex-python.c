/* SPDX-License-Identifier: MIT */
/* Expressions of Python's module re: all matches of a text, and replacing them. */
#include <string.h>

#include "pretokenize/regex-internal.h"

size_t dt_regex_group_count(const struct dt_regex *r)
{
    return r->groups;
}

bool dt_regex_next(const struct dt_regex *r, const char *text, size_t size,
                   struct dt_regex_match *m)
{
    if (m->at > size || !dt_regex_search(r, text, size, m->at, m->advance, m->slots))
        return false;
    m->at = m->slots[1];
    m->advance = m->slots[0] == m->slots[1];
    return true;
}

/* Appends a group; it is empty if it is not in the match. */
static void add_group(const char *text, const struct dt_regex_match *m, size_t group,
                      struct dt_buffer *out)
{
    size_t start = m->slots[2 * group], end = m->slots[2 * group + 1];
    if (end != SIZE_MAX)
        dt_buffer_append(out, text + start, end - start);
}

/* The number of \\1, \\12 or \\g<1>, of which *at is after the backslash; SIZE_MAX if it is none.
 */
static size_t read_reference(const char **at)
{
    const char *p = *at;
    size_t group = 0;
    bool named = strncmp(p, "g<", 2) == 0;
    p += named ? 2 : 0;
    const char *digits = p;
    for (; *p >= '0' && *p <= '9' && p - digits < 2; p++)
        group = 10 * group + (size_t)(*p - '0');
    if (p == digits || (!named && *digits == '0') || (named && *p != '>'))
        return SIZE_MAX;
    *at = p + named;
    return group;
}

static int add_replacement(const struct dt_regex *r, const char *replacement, const char *text,
                           const struct dt_regex_match *m, struct dt_buffer *out,
                           struct dt_error *err)
{
    static const char letters[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
    for (const char *p = replacement; *p;) {
        if (*p != '\\') {
            dt_buffer_add_char(out, *p++);
            continue;
        }
        p++;
        const char *known = *p ? strchr(letters, *p) : NULL;
        size_t group = known ? 0 : read_reference(&p);
        if (!known && group > r->groups)
            return dt_fail(err, DT_EFORMAT,
                           "the replacement %s has an escape that is not known, or a group that "
                           "the expression lacks",
                           replacement);
        if (known)
            dt_buffer_add_char(out, values[*p++ ? known - letters : 0]);
        else
            add_group(text, m, group, out);
    }
    return 0;
}

int dt_regex_substitute(const struct dt_regex *r, const char *replacement, const char *text,
                        size_t size, struct dt_buffer *out, struct dt_error *err)
{
    struct dt_regex_match m = {.at = 0};
    size_t told = 0;
    while (dt_regex_next(r, text, size, &m)) {
        dt_buffer_append(out, text + told, m.slots[0] - told);
        DT_TRY(add_replacement(r, replacement, text, &m, out, err));
        told = m.slots[1];
    }
    dt_buffer_append(out, text + told, size - told);
    return 0;
}
