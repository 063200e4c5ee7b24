/* SPDX-License-Identifier: MIT */
#include "json/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

#define YAML_LIMIT ((size_t)1 << 22)
#define MOST_DEPTH 64
#define STANDARD   "tag:yaml.org,2002:" /* begins the standard tags */

struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    const char *path;
};

static int fail_at(const struct reader *r, yaml_mark_t mark, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s:%zu:%zu: %s", r->path, mark.line + 1, mark.column + 1,
                   what);
}

static int next(struct reader *r, struct dt_error *err)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    if (r->parser.error == YAML_MEMORY_ERROR)
        dt_out_of_memory();
    const char *problem = r->parser.problem ? r->parser.problem : "is not YAML";
    memset(&r->event, 0, sizeof r->event);
    return fail_at(r, r->parser.problem_mark, problem, err);
}

/* A text that C can hold: a zero byte would cut it silently. */
static int check_text(const struct reader *r, struct dt_error *err)
{
    if (strlen((const char *)r->event.data.scalar.value) == r->event.data.scalar.length)
        return 0;
    return fail_at(r, r->event.start_mark, "a text holds a zero byte", err);
}

/* Another tag than the standard one of this kind would change what the value means: "!function" is
 * a function of Python. */
static int check_tag(const struct reader *r, const unsigned char *given, const char *kind,
                     struct dt_error *err)
{
    const char *tag = (const char *)given;
    const size_t standard = strlen(STANDARD);
    char what[128];
    if (tag == NULL || (strncmp(tag, STANDARD, standard) == 0 && strcmp(tag + standard, kind) == 0))
        return 0;
    snprintf(what, sizeof what, "the tag %.80s is not supported: write a plain value", tag);
    return fail_at(r, r->event.start_mark, what, err);
}

static int read_value(struct reader *r, int depth, struct json_object **value,
                      struct dt_error *err);

static int read_sequence(struct reader *r, int depth, struct json_object *array,
                         struct dt_error *err)
{
    for (;;) {
        struct json_object *item;
        DT_TRY(next(r, err));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        DT_TRY(read_value(r, depth, &item, err));
        dt_json_array_add(array, item);
    }
}

static int read_mapping(struct reader *r, int depth, struct json_object *object,
                        struct dt_error *err)
{
    for (;;) {
        struct json_object *item = NULL;
        char key[256];
        DT_TRY(next(r, err));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        if (r->event.type != YAML_SCALAR_EVENT || r->event.data.scalar.length >= sizeof key)
            return fail_at(r, r->event.start_mark, "a key must be a short text", err);
        DT_TRY(check_text(r, err));
        DT_TRY(check_tag(r, r->event.data.scalar.tag, "str", err));
        snprintf(key, sizeof key, "%s", (const char *)r->event.data.scalar.value);
        if (json_object_object_get_ex(object, key, NULL))
            return fail_at(r, r->event.start_mark, "this key was given before", err);
        DT_TRY(next(r, err));
        DT_TRY(read_value(r, depth, &item, err));
        dt_json_object_add(object, key, item);
    }
}

static struct json_object *scalar_of(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && (strcmp(text, "null") == 0 || strcmp(text, "~") == 0))
        text = "";
    return dt_json_new_string(text);
}

/* The value that begins with the current event. */
static int read_value(struct reader *r, int depth, struct json_object **value, struct dt_error *err)
{
    int rc = 0;
    *value = NULL;
    if (depth > MOST_DEPTH)
        return fail_at(r, r->event.start_mark, "is nested too deeply", err);
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        DT_TRY(check_text(r, err));
        DT_TRY(check_tag(r, r->event.data.scalar.tag, "str", err));
        *value = scalar_of(&r->event);
        return 0;
    case YAML_SEQUENCE_START_EVENT:
        DT_TRY(check_tag(r, r->event.data.sequence_start.tag, "seq", err));
        *value = dt_json_new_array();
        rc = read_sequence(r, depth + 1, *value, err);
        break;
    case YAML_MAPPING_START_EVENT:
        DT_TRY(check_tag(r, r->event.data.mapping_start.tag, "map", err));
        *value = dt_json_new_object();
        rc = read_mapping(r, depth + 1, *value, err);
        break;
    default:
        return fail_at(r, r->event.start_mark, "aliases are not taken", err);
    }
    if (rc < 0) {
        json_object_put(*value);
        *value = NULL;
    }
    return rc;
}

static int read_stream(struct reader *r, struct json_object **value, struct dt_error *err)
{
    DT_TRY(next(r, err)); /* the stream begins */
    DT_TRY(next(r, err));
    if (r->event.type != YAML_DOCUMENT_START_EVENT)
        return dt_fail(err, DT_EFORMAT, "%s: is empty", r->path);
    DT_TRY(next(r, err));
    DT_TRY(read_value(r, 0, value, err));
    DT_TRY(next(r, err)); /* the document ends */
    DT_TRY(next(r, err));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fail_at(r, r->event.start_mark, "a second document", err);
    return 0;
}

int dt_yaml_read(const char *path, struct json_object **value, struct dt_error *err)
{
    struct reader r = {.path = path};
    char *text;
    size_t size;
    *value = NULL;
    DT_TRY(dt_file_read(path, YAML_LIMIT, &text, &size, err));
    if (!yaml_parser_initialize(&r.parser))
        dt_out_of_memory();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
    int rc = read_stream(&r, value, err);
    if (rc < 0) {
        json_object_put(*value);
        *value = NULL;
    }
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    free(text);
    return rc;
}
