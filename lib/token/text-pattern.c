/* SPDX-License-Identifier: MIT */
#include "token/text-pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

struct dt_text_pattern {
    char *literal;
    size_t size;
};

int dt_text_pattern_read(struct dt_text_pattern **p, struct json_object *component,
                         const char *path, struct dt_error *err)
{
    struct json_object *pattern, *text;
    DT_TRY(dt_json_get(component, "pattern", json_type_object, path, &pattern, err));
    if (!json_object_object_get_ex(pattern, "String", &text))
        return dt_fail(err, DT_EFORMAT, "%s: the pattern %s is not known", path,
                       dt_json_text(pattern));
    DT_TRY(dt_json_get(pattern, "String", json_type_string, path, &text, err));
    *p = dt_alloc(1, sizeof **p);
    (*p)->literal = dt_strdup(dt_json_text(text));
    (*p)->size = strlen((*p)->literal);
    return 0;
}

void dt_text_pattern_free(struct dt_text_pattern *p)
{
    if (p)
        free(p->literal);
    free(p);
}

static bool find_literal(const struct dt_text_pattern *p, const char *text, size_t size,
                         struct dt_text_match *m)
{
    const char *at = p->size == 0 || m->end == size
                         ? NULL
                         : memmem(text + m->end, size - m->end, p->literal, p->size);
    if (at == NULL)
        return false;
    *m = (struct dt_text_match){(size_t)(at - text), (size_t)(at - text) + p->size, true};
    return true;
}

bool dt_text_pattern_next(const struct dt_text_pattern *p, const char *text, size_t size,
                          struct dt_text_match *m)
{
    return find_literal(p, text, size, m);
}
