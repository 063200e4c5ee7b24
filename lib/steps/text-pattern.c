/* SPDX-License-Identifier: MIT */
#include "steps/text-pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "unicode/utf8.h"

struct dt_text_pattern {
    char *literal; /* NULL: regex */
    size_t size;
    struct dt_regex *regex;
};

int dt_text_pattern_new(struct dt_text_pattern **p, const char *regex, const char *path,
                        struct dt_error *err)
{
    *p = dt_alloc(1, sizeof **p);
    return dt_regex_new(&(*p)->regex, regex, path, err);
}

int dt_text_pattern_read(struct dt_text_pattern **p, struct json_object *component,
                         const char *path, struct dt_error *err)
{
    struct json_object *pattern;
    const char *text;
    DT_TRY(dt_json_get(component, "pattern", json_type_object, path, &pattern, err));
    if (json_object_object_get(pattern, "Regex")) {
        DT_TRY(dt_json_get_string(pattern, "Regex", path, &text, err));
        return dt_text_pattern_new(p, text, path, err);
    }
    DT_TRY(dt_json_get_string(pattern, "String", path, &text, err));
    if (*text == '\0') /* matches between all characters, as its expression */
        return dt_text_pattern_new(p, text, path, err);
    *p = dt_alloc(1, sizeof **p);
    (*p)->literal = dt_strdup(text);
    (*p)->size = strlen(text);
    return 0;
}

void dt_text_pattern_free(struct dt_text_pattern *p)
{
    if (p == NULL)
        return;
    free(p->literal);
    dt_regex_free(p->regex);
    free(p);
}

static bool find_literal(const struct dt_text_pattern *p, const char *text, size_t size,
                         struct dt_text_match *m)
{
    const char *at =
        m->end == size ? NULL : memmem(text + m->end, size - m->end, p->literal, p->size);
    if (at == NULL)
        return false;
    *m = (struct dt_text_match){(size_t)(at - text), (size_t)(at - text) + p->size, true};
    return true;
}

static bool find_regex(const struct dt_text_pattern *p, const char *text, size_t size,
                       struct dt_text_match *m)
{
    uint32_t code;
    for (size_t from = m->end, start, end, length; from <= size; from += length ? length : 1) {
        if (!dt_regex_find(p->regex, text, size, from, &start, &end))
            return false;
        if (start < end || !m->found || end != m->end) {
            *m = (struct dt_text_match){start, end, true};
            return true;
        }
        length = from < size ? dt_utf8_next(text + from, size - from, &code) : 1;
    }
    return false;
}

bool dt_text_pattern_next(const struct dt_text_pattern *p, const char *text, size_t size,
                          struct dt_text_match *m)
{
    return size > 0 && (p->literal ? find_literal(p, text, size, m) : find_regex(p, text, size, m));
}

bool dt_text_pattern_is(const struct dt_text_pattern *p, const char *literal)
{
    return p->literal && strcmp(p->literal, literal) == 0;
}

struct dt_regex_words dt_text_pattern_describe_words(const struct dt_text_pattern *p)
{
    if (p->literal == NULL)
        return dt_regex_describe_words(p->regex);
    struct dt_regex_words words = {.takes_spaces = dt_text_pattern_is(p, " ")};
    words.separable = words.takes_spaces || strchr(p->literal, ' ') == NULL;
    for (size_t i = 0; i < p->size; i++)
        if ((p->literal[i] & 0x80) == 0)
            words.takes[(unsigned char)p->literal[i]] = true;
    return words;
}
