/* SPDX-License-Identifier: MIT */
#include "steps/step-parameters.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "steps/step.h"
#include "unicode/utf8.h"

static int read_prepend(struct dt_metaspace *m, struct json_object *component, const char *path,
                        struct dt_error *err)
{
    static const char *const names[] = {"always", "never", "first"};
    const char *name;
    if (json_object_object_get(component, "prepend_scheme") == NULL)
        return 0;
    DT_TRY(dt_json_get_string(component, "prepend_scheme", path, &name, err));
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return m->prepend = (enum dt_metaspace_prepend)i, 0;
    return dt_fail(err, DT_EFORMAT, "%s: \"prepend_scheme\": \"%s\" is not always, never or first",
                   path, name);
}

int dt_metaspace_read(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct dt_metaspace *m = *data = dt_alloc(1, sizeof *m);
    const char *replacement;
    DT_TRY(dt_json_get_string(component, "replacement", path, &replacement, err));
    if (*replacement == '\0' || strlen(replacement) != dt_utf8_length(*replacement))
        return dt_fail(err, DT_EFORMAT, "%s: \"replacement\" is not one character", path);
    strcpy(m->replacement, replacement);
    DT_TRY(read_prepend(m, component, path, err));
    if (!dt_step_flag(component, "add_prefix_space", true)) /* of older files */
        m->prepend = DT_METASPACE_NEVER;
    m->split = dt_step_flag(component, "split", true);
    return 0;
}

int dt_replacement_read(void **data, struct json_object *component, const char *path,
                        struct dt_error *err)
{
    struct dt_replacement *r = *data = dt_alloc(1, sizeof *r);
    const char *content;
    DT_TRY(dt_text_pattern_read(&r->pattern, component, path, err));
    DT_TRY(dt_json_get_string(component, "content", path, &content, err));
    r->content = dt_strdup(content);
    return 0;
}

void dt_replacement_release(void *data)
{
    struct dt_replacement *r = data;
    if (r == NULL)
        return;
    dt_text_pattern_free(r->pattern);
    free(r->content);
    free(r);
}
