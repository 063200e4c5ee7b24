/* SPDX-License-Identifier: MIT */
#include "json/config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/program.h"

#define CONFIG_LIMIT ((size_t)1 << 20)
#define MAX_SETTINGS 256
#define MAX_SECTIONS 32

static int bad_value(const struct dt_setting *s, const char *text, const char *place,
                     const char *wanted, struct dt_error *err)
{
    return dt_fail(err, DT_EINVALID, "%s%s must be %s, not '%s'", place, s->name, wanted, text);
}

static int check_range(const struct dt_setting *s, double x, const char *text, const char *place,
                       struct dt_error *err)
{
    char wanted[80];
    if ((s->min == 0 && s->max == 0) || (x >= s->min && x <= s->max))
        return 0;
    snprintf(wanted, sizeof wanted, "from %.15g to %.15g", s->min, s->max);
    return bad_value(s, text, place, wanted, err);
}

static int set_choice(const struct dt_setting *s, int *value, const char *text, const char *place,
                      struct dt_error *err)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&all, "one of");
    for (int i = 0; s->choices[i]; i++) {
        if (strcmp(s->choices[i], text) == 0) {
            *value = i;
            dt_buffer_release(&all);
            return 0;
        }
        dt_buffer_printf(&all, "%s %s", i ? "," : "", s->choices[i]);
    }
    int rc = bad_value(s, text, place, all.data, err);
    dt_buffer_release(&all);
    if (s->advice) {
        const struct dt_error refused = *err;
        rc = dt_fail(err, rc, "%s: %s", refused.text, s->advice);
    }
    return rc;
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

/* Whether text ends with a unit, also one in the singular; *length becomes that of the rest,
 * without white space at its end. */
static bool ends_with(const char *text, const char *unit, size_t *length)
{
    const size_t bytes = strlen(text), plural = strlen(unit);
    for (size_t n = plural; n + 1 >= plural; n--) {
        if (bytes <= n || strncmp(text + bytes - n, unit, n) != 0)
            continue;
        *length = bytes - n;
        while (*length > 0 && text[*length - 1] == ' ')
            --*length;
        return true;
    }
    return false;
}

static int set_amount(const struct dt_setting *s, struct dt_config_amount *amount, const char *text,
                      const char *place, struct dt_error *err)
{
    size_t length = strlen(text);
    long whole;
    int unit = 0;
    while (s->choices[unit] && !ends_with(text, s->choices[unit], &length))
        unit++;
    amount->unit = s->choices[unit] ? unit : 0;
    char *number = dt_strndup(text, length);
    int rc = dt_program_parse_int(number, &whole);
    amount->count = (double)whole;
    if (rc < 0)
        rc = dt_program_parse_real(number, &amount->count);
    free(number);
    if (rc == 0)
        return check_range(s, amount->count, text, place, err);
    struct dt_buffer wanted = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&wanted, "a number, or one followed by");
    for (int i = 0; s->choices[i]; i++)
        dt_buffer_printf(&wanted, "%s %s", i ? "," : "", s->choices[i]);
    rc = bad_value(s, text, place, wanted.data, err);
    dt_buffer_release(&wanted);
    return rc;
}

/* place is "" or "FILE:LINE:COLUMN: ". */
static int set(const struct dt_setting *s, void *object, const char *text, const char *place,
               struct dt_error *err)
{
    void *field = (char *)object + s->offset;
    switch (s->kind) {
    case DT_SETTING_INT:
        if (dt_program_parse_int(text, field) < 0)
            return bad_value(s, text, place, "a whole number", err);
        return check_range(s, (double)*(long *)field, text, place, err);
    case DT_SETTING_REAL:
        if (dt_program_parse_real(text, field) < 0)
            return bad_value(s, text, place, "a number", err);
        return check_range(s, *(double *)field, text, place, err);
    case DT_SETTING_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return bad_value(s, text, place, "true or false", err);
        *(bool *)field = *text == 't';
        return 0;
    case DT_SETTING_CHOICE:
        return set_choice(s, field, text, place, err);
    case DT_SETTING_STRING:
        if (strlen(text) >= DT_SETTING_STRING_SIZE)
            return bad_value(s, text, place, "shorter", err);
        if (!is_plain(text)) /* text that YAML might read back as another type */
            return bad_value(s, text, place, "written in ASCII, without control characters", err);
        strcpy(field, text);
        return 0;
    case DT_SETTING_AMOUNT:
        return set_amount(s, field, text, place, err);
    case DT_SETTING_FIXED:
        if (strcmp(text, s->initial) == 0)
            return 0;
        return dt_fail(err, DT_EINVALID, "%s%s can only be %s: %s", place, s->name, s->initial,
                       s->advice);
    case DT_SETTING_ALIAS:
        break; /* its setting was set */
    }
    return 0;
}

/* Aliases and fixed settings hold no value. */
static bool is_printed(const struct dt_setting *s)
{
    return s->kind != DT_SETTING_ALIAS && s->kind != DT_SETTING_FIXED;
}

void dt_config_defaults(const struct dt_setting *schema, void *object)
{
    struct dt_error err;
    size_t end = 0;
    for (const struct dt_setting *s = schema; s->name; s++)
        end = is_printed(s) && s->offset > end ? s->offset : end;
    memset(object, 0, end);
    for (const struct dt_setting *s = schema; s->name; s++) {
        int rc = is_printed(s) && s->initial ? set(s, object, s->initial, "", &err) : 0;
        assert(rc == 0);
        (void)rc;
    }
}

/* Whether key abbreviates name by the first letters of its words: lr for learning_rate. */
static bool is_short_for(const char *key, const char *name)
{
    for (; *key && *name == *key; key++) {
        name = strchr(name, '_');
        if (name == NULL)
            return key[1] == '\0';
        name++;
    }
    return false;
}

/* The setting for a name of other programs, or NULL. */
static const char *find_other(const struct dt_setting *schema, const char *name, const char *key)
{
    while (schema->name)
        schema++;
    for (const char *const *other = schema->elsewhere; other && *other; other += 2)
        if (strcmp(other[0], name) == 0 || strcmp(other[0], key) == 0)
            return other[1];
    return NULL;
}

/* The only setting of the section whose key begins so, or NULL. */
static const char *find_begun(const struct dt_setting *schema, const char *name)
{
    const char *found = NULL, *dot = strchr(name, '.');
    for (const struct dt_setting *s = schema; dot && strlen(dot) > 3 && s->name; s++)
        if (strncmp(s->name, name, strlen(name)) == 0) {
            if (found)
                return NULL;
            found = s->name;
        }
    return found;
}

/* The setting with this name in other programs, one of the section that the key abbreviates, one
 * with this key in another section, or NULL. A name without a section is looked for in all. */
static const char *find_by_key(const struct dt_setting *schema, const char *name)
{
    const char *dot = strchr(name, '.'), *key = dot ? dot + 1 : name;
    if (*key == '\0')
        return NULL;
    const char *other = find_other(schema, name, key);
    if (other)
        return other;
    for (const struct dt_setting *s = schema; s->name; s++)
        if (strncmp(s->name, name, (size_t)(key - name)) == 0 &&
            is_short_for(key, strchr(s->name, '.') + 1))
            return s->name;
    for (const struct dt_setting *s = schema; s->name; s++)
        if (strcmp(strchr(s->name, '.') + 1, key) == 0)
            return s->name;
    return find_begun(schema, name);
}

static bool is_section(const struct dt_setting *schema, const char *name)
{
    size_t n = strlen(name);
    for (; schema->name; schema++)
        if (strncmp(schema->name, name, n) == 0 && schema->name[n] == '.')
            return true;
    return false;
}

/* The distinct sections of a schema, ended by NULL, whose memory is text. */
static void list_sections(const struct dt_setting *schema, struct dt_buffer *text,
                          const char *names[MAX_SECTIONS + 1])
{
    size_t starts[MAX_SECTIONS];
    int count = 0;
    for (const struct dt_setting *s = schema; s->name; s++) {
        int n = (int)strcspn(s->name, ".");
        const char *last = count ? text->data + starts[count - 1] : "";
        if (strncmp(last, s->name, (size_t)n) == 0 && last[n] == '\0')
            continue;
        assert(count < MAX_SECTIONS);
        starts[count++] = text->size;
        dt_buffer_append(text, s->name, (size_t)n);
        dt_buffer_add_char(text, '\0');
    }
    for (int i = 0; i < count; i++)
        names[i] = text->data + starts[i];
    names[count] = NULL;
}

static int unknown_section(const struct dt_setting *schema, const char *name, const char *place,
                           struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, all = DT_BUFFER_EMPTY;
    const char *names[MAX_SECTIONS + 1];
    list_sections(schema, &text, names);
    const char *near = dt_program_did_you_mean(name, names);
    if (near == NULL && strchr(name, '.') == NULL) /* a key without its section */
        near = find_by_key(schema, name);
    for (int i = 0; names[i]; i++)
        dt_buffer_printf(&all, "%s%s", i ? ", " : "", names[i]);
    int rc = near ? dt_fail(err, DT_EINVALID, "%sunknown section '%s': did you mean '%s'?", place,
                            name, near)
                  : dt_fail(err, DT_EINVALID, "%sunknown section '%s': the sections are %s", place,
                            name, all.data);
    dt_buffer_release(&text);
    dt_buffer_release(&all);
    return rc;
}

/* A misspelled key of a section; of none, a misspelled whole name. */
static const char *find_near(const struct dt_setting *schema, const char *name, bool in_section)
{
    const char *names[MAX_SETTINGS + 1] = {NULL};
    size_t start = in_section ? strcspn(name, ".") + 1 : 0;
    for (int count = 0; schema->name; schema++) {
        if (strncmp(schema->name, name, start) != 0)
            continue;
        assert(count < MAX_SETTINGS);
        names[count++] = schema->name + start;
    }
    const char *near = dt_program_did_you_mean(name + start, names);
    return near ? near - start : NULL;
}

static int unknown(const struct dt_setting *schema, const char *name, const char *place,
                   struct dt_error *err)
{
    char *section = dt_strndup(name, strcspn(name, "."));
    bool has_dot = strchr(name, '.') != NULL, in_section = has_dot && is_section(schema, section);
    const char *near = find_by_key(schema, name);
    if (near == NULL)
        near = find_near(schema, name, in_section);
    int rc;
    if (near)
        rc = dt_fail(err, DT_EINVALID, "%sunknown key '%s': did you mean '%s'?", place, name, near);
    else if (has_dot && !in_section)
        rc = unknown_section(schema, section, place, err);
    else
        rc = dt_fail(err, DT_EINVALID, "%sunknown key '%s'%s", place, name,
                     has_dot ? "" : ": a key is SECTION.NAME");
    free(section);
    return rc;
}

static const struct dt_setting *find(const struct dt_setting *schema, const char *name)
{
    for (; schema->name; schema++)
        if (strcmp(schema->name, name) == 0)
            return schema;
    return NULL;
}

/* Resolves an alias: its setting and the value of its word there. */
static const struct dt_setting *resolve(const struct dt_setting *schema, const struct dt_setting *s,
                                        const char **text)
{
    if (s == NULL || s->kind != DT_SETTING_ALIAS)
        return s;
    for (const char *const *word = s->words; word && *word; word += 2)
        if (strcmp(word[0], *text) == 0) {
            *text = word[1];
            break;
        }
    return find(schema, s->initial);
}

int dt_config_override(const struct dt_setting *schema, void *object, const char *assignment,
                       const char *source, struct dt_error *err)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL)
        return dt_fail(err, DT_EINVALID, "%s takes section.key=value, not '%s'", source,
                       assignment);
    char *name = dt_strndup(assignment, (size_t)(equals - assignment));
    char *place = dt_asprintf("%s: ", source);
    const char *text = equals + 1;
    const struct dt_setting *s = resolve(schema, find(schema, name), &text);
    int rc = s ? set(s, object, text, place, err) : unknown(schema, name, place, err);
    free(place);
    free(name);
    return rc;
}

const struct dt_setting *dt_config_assigned(const struct dt_setting *schema, const char *assignment)
{
    const char *ignored = "";
    char *name = dt_strndup(assignment, strcspn(assignment, "="));
    const struct dt_setting *s = resolve(schema, find(schema, name), &ignored);
    free(name);
    return s;
}

/* The walk over a file's events: sections hold keys, keys hold scalars. */
struct walk {
    const struct dt_setting *schema;
    void *object;
    const char *path, *text;
    yaml_parser_t parser;
    yaml_event_t event;
    bool given[MAX_SETTINGS]; /* by that name */
    bool set[MAX_SETTINGS];   /* by whatever name */
    struct dt_buffer place;
};

static const char *place_of(struct walk *w, yaml_mark_t mark)
{
    dt_buffer_clear(&w->place);
    dt_buffer_printf(&w->place, "%s:%zu:%zu: ", w->path, mark.line + 1, mark.column + 1);
    return w->place.data;
}

/* For bytes that are not text libyaml gives an offset instead of a line. */
static yaml_mark_t problem_mark(const struct walk *w)
{
    yaml_mark_t mark = {0, 0, 0};
    if (w->parser.error != YAML_READER_ERROR)
        return w->parser.problem_mark;
    for (; mark.index < w->parser.problem_offset; mark.index++) {
        bool ends_line = w->text[mark.index] == '\n';
        mark.line += ends_line;
        mark.column = ends_line ? 0 : mark.column + 1;
    }
    return mark;
}

static int next(struct walk *w, struct dt_error *err)
{
    yaml_event_delete(&w->event);
    if (yaml_parser_parse(&w->parser, &w->event))
        return 0;
    if (w->parser.error == YAML_MEMORY_ERROR)
        dt_out_of_memory();
    return dt_fail(err, DT_EFORMAT, "%s%s", place_of(w, problem_mark(w)),
                   w->parser.problem ? w->parser.problem : "is not YAML");
}

/* Anchors and tags would be ignored silently. */
static bool is_decorated(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT)
        return e->data.scalar.anchor || e->data.scalar.tag;
    return e->type == YAML_MAPPING_START_EVENT &&
           (e->data.mapping_start.anchor || e->data.mapping_start.tag);
}

static int expect(struct walk *w, yaml_event_type_t type, const char *what, struct dt_error *err)
{
    if (w->event.type == type && is_decorated(&w->event))
        what = "anchors and tags are not read";
    else if (w->event.type == type)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s%s", place_of(w, w->event.start_mark), what);
}

static int expect_text(struct walk *w, const char *what, struct dt_error *err)
{
    DT_TRY(expect(w, YAML_SCALAR_EVENT, what, err));
    if (strlen((const char *)w->event.data.scalar.value) == w->event.data.scalar.length)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%sa text holds a zero byte", place_of(w, w->event.start_mark));
}

void dt_config_print_value(const struct dt_setting *s, const void *object, struct dt_buffer *b)
{
    const void *field = (const char *)object + s->offset;
    switch (s->kind) {
    case DT_SETTING_INT:
        dt_buffer_printf(b, "%ld", *(const long *)field);
        break;
    case DT_SETTING_REAL:
        dt_buffer_add_real(b, *(const double *)field);
        break;
    case DT_SETTING_BOOL:
        dt_buffer_add_string(b, *(const bool *)field ? "true" : "false");
        break;
    case DT_SETTING_CHOICE:
        dt_buffer_add_string(b, s->choices[*(const int *)field]);
        break;
    case DT_SETTING_STRING:
        dt_buffer_add_char(b, '\'');
        for (const char *c = field; *c; c++)
            dt_buffer_printf(b, "%s%c", *c == '\'' ? "'" : "", *c);
        dt_buffer_add_char(b, '\'');
        break;
    case DT_SETTING_AMOUNT:
        dt_buffer_add_real(b, ((const struct dt_config_amount *)field)->count);
        if (((const struct dt_config_amount *)field)->unit > 0)
            dt_buffer_printf(b, " %s", s->choices[((const struct dt_config_amount *)field)->unit]);
        break;
    case DT_SETTING_ALIAS:
    case DT_SETTING_FIXED:
        break;
    }
}

/* A setting given under two names must have the same value. */
static int set_once(struct walk *w, const struct dt_setting *s, const char *name, const char *text,
                    struct dt_error *err)
{
    const char *place = place_of(w, w->event.start_mark);
    struct dt_buffer before = DT_BUFFER_EMPTY, after = DT_BUFFER_EMPTY;
    bool *given = &w->set[s - w->schema];
    dt_config_print_value(s, w->object, &before);
    int rc = set(s, w->object, text, place, err);
    dt_config_print_value(s, w->object, &after);
    if (rc == 0 && *given && s->kind != DT_SETTING_FIXED && strcmp(before.data, after.data) != 0)
        rc = dt_fail(err, DT_EINVALID, "%s%s is %s, but was given as %s before", place, name,
                     after.data, before.data);
    *given = true;
    dt_buffer_release(&before);
    dt_buffer_release(&after);
    return rc;
}

static int read_value(struct walk *w, const char *name, yaml_mark_t mark, struct dt_error *err)
{
    const char *text = "";
    const struct dt_setting *named = find(w->schema, name);
    const struct dt_setting *s = resolve(w->schema, named, &text);
    if (s == NULL)
        return unknown(w->schema, name, place_of(w, mark), err);
    if (w->given[named - w->schema])
        return dt_fail(err, DT_EINVALID, "%skey '%s' is given twice", place_of(w, mark), name);
    w->given[named - w->schema] = true;
    DT_TRY(next(w, err));
    DT_TRY(expect_text(w, "a single value is needed here", err));
    text = (const char *)w->event.data.scalar.value;
    resolve(w->schema, named, &text);
    bool quoted = w->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const char *place = place_of(w, w->event.start_mark);
    if (quoted && s->kind != DT_SETTING_STRING && s->kind != DT_SETTING_CHOICE &&
        s->kind != DT_SETTING_FIXED && s->kind != DT_SETTING_AMOUNT)
        return bad_value(s, text, place, "written without quotes", err);
    return set_once(w, s, name, text, err);
}

static int read_section(struct walk *w, const char *section, struct dt_error *err)
{
    DT_TRY(next(w, err));
    if (w->event.type == YAML_SCALAR_EVENT && w->event.data.scalar.length == 0 &&
        !is_decorated(&w->event))
        return 0; /* "section:" with nothing in it */
    DT_TRY(expect(w, YAML_MAPPING_START_EVENT, "a section holds 'key: value' lines", err));
    for (;;) {
        DT_TRY(next(w, err));
        if (w->event.type == YAML_MAPPING_END_EVENT)
            return 0;
        DT_TRY(expect_text(w, "a key is needed here", err));
        char *name = dt_asprintf("%s.%s", section, (const char *)w->event.data.scalar.value);
        int rc = read_value(w, name, w->event.start_mark, err);
        free(name);
        DT_TRY(rc);
    }
}

static int read_document(struct walk *w, struct dt_error *err)
{
    char sections_seen[1024] = "";
    DT_TRY(next(w, err)); /* stream start */
    DT_TRY(next(w, err));
    if (w->event.type == YAML_STREAM_END_EVENT)
        return 0;
    DT_TRY(next(w, err));
    DT_TRY(expect(w, YAML_MAPPING_START_EVENT, "'section:' lines are needed here", err));
    for (;;) {
        DT_TRY(next(w, err));
        if (w->event.type == YAML_MAPPING_END_EVENT)
            break;
        DT_TRY(expect_text(w, "a section name is needed here", err));
        yaml_mark_t mark = w->event.start_mark;
        char section[64];
        snprintf(section, sizeof section, "%s", (const char *)w->event.data.scalar.value);
        if (!is_section(w->schema, section))
            return unknown_section(w->schema, section, place_of(w, mark), err);
        char marked[70];
        snprintf(marked, sizeof marked, " %s ", section);
        if (strstr(sections_seen, marked))
            return dt_fail(err, DT_EINVALID, "%ssection '%s' is given twice", place_of(w, mark),
                           section);
        strncat(sections_seen, marked, sizeof sections_seen - strlen(sections_seen) - 1);
        DT_TRY(read_section(w, section, err));
    }
    DT_TRY(next(w, err)); /* document end */
    DT_TRY(next(w, err));
    return expect(w, YAML_STREAM_END_EVENT, "a second document is not read", err);
}

int dt_config_read(const struct dt_setting *schema, void *object, const char *path,
                   struct dt_error *err)
{
    char *text;
    size_t size;
    struct walk w = {.schema = schema, .object = object, .path = path};
    DT_TRY(dt_file_read(path, CONFIG_LIMIT, &text, &size, err));
    if (size >= 4 && memcmp(text, "GGUF", 4) == 0) {
        free(text);
        return dt_fail(
            err, DT_EFORMAT,
            "%s: is a GGUF file, a model, and not settings in YAML (dt-config(5)): give a "
            "model's sizes as settings",
            path);
    }
    w.text = text;
    if (!yaml_parser_initialize(&w.parser))
        dt_out_of_memory();
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)text, size);
    int rc = read_document(&w, err);
    yaml_event_delete(&w.event);
    yaml_parser_delete(&w.parser);
    dt_buffer_release(&w.place);
    free(text);
    return rc;
}

void dt_config_print(const struct dt_setting *schema, const void *object, struct dt_buffer *b)
{
    size_t section = 0;
    const char *last = "";
    for (const struct dt_setting *s = schema; s->name; s++) {
        size_t n = strcspn(s->name, ".");
        if (!is_printed(s))
            continue;
        if (n != section || strncmp(last, s->name, n) != 0)
            dt_buffer_printf(b, "%.*s:\n", (int)n, s->name);
        section = n;
        last = s->name;
        dt_buffer_printf(b, "  %s: ", s->name + n + 1);
        dt_config_print_value(s, object, b);
        dt_buffer_add_char(b, '\n');
    }
}

const struct dt_setting *dt_config_difference(const struct dt_setting *schema, const void *a,
                                              const void *b)
{
    const struct dt_setting *different = NULL;
    struct dt_buffer x = DT_BUFFER_EMPTY, y = DT_BUFFER_EMPTY;
    for (const struct dt_setting *s = schema; s->name && different == NULL; s++) {
        if (!is_printed(s))
            continue;
        dt_buffer_clear(&x);
        dt_buffer_clear(&y);
        dt_config_print_value(s, a, &x);
        dt_config_print_value(s, b, &y);
        if (strcmp(x.data, y.data) != 0)
            different = s;
    }
    dt_buffer_release(&x);
    dt_buffer_release(&y);
    return different;
}

void dt_config_add_words(const struct dt_setting *schema, struct dt_buffer *words)
{
    static const char *const truths[] = {"true", "false", NULL}, *const any[] = {"", NULL};
    for (const struct dt_setting *s = schema; s->name; s++) {
        const char *const *values = s->kind == DT_SETTING_CHOICE ? s->choices
                                    : s->kind == DT_SETTING_BOOL ? truths
                                                                 : any;
        for (; s->kind < DT_SETTING_ALIAS && *values; values++)
            dt_buffer_printf(words, "%s%s=%s", words->size > 0 ? " " : "", s->name, *values);
    }
}
