/* SPDX-License-Identifier: MIT */
#include "experiment/matrix.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"

#define MOST_CELLS  100000
#define MOST_ROUNDS 1000000

#define DEFAULT_SEED   1
#define DEFAULT_WARMUP 1

static const char *const keys[] = {"command", "axes",  "repeats", "warmup",  "seed",
                                   "limit",   "shell", "metrics", "targets", "baseline",
                                   "values",  "notes", NULL};

/* NULL unless it is a text. */
static const char *text_or_null(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) ? dt_json_text(value) : NULL;
}

/* A list, or a string, which counts as a list of one. */
static size_t list_length(struct json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 1;
}

static const char *list_item(struct json_object *list, size_t i)
{
    if (json_object_is_type(list, json_type_array))
        list = json_object_array_get_idx(list, i);
    return text_or_null(list);
}

/* --- the design ----------------------------------------------------------------------------- */

static int check_keys(struct json_object *design, const char *subject, struct dt_error *err)
{
    if (!json_object_is_type(design, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: must be a mapping of keys to values", subject);
    json_object_object_foreach(design, key, value)
    {
        bool known = false;
        for (int i = 0; keys[i]; i++)
            known = known || strcmp(keys[i], key) == 0;
        const char *near = dt_program_did_you_mean(key, keys);
        if (!known && near)
            return dt_fail(err, DT_EFORMAT, "%s: unknown key '%s': did you mean '%s'?", subject,
                           key, near);
        if (!known)
            return dt_fail(err, DT_EFORMAT, "%s: unknown key '%s'", subject, key);
        if (value == NULL)
            return dt_fail(err, DT_EFORMAT, "%s: %s lacks a value", subject, key);
    }
    return 0;
}

static const char *text_of(struct json_object *design, const char *key)
{
    struct json_object *value;
    return json_object_object_get_ex(design, key, &value) ? text_or_null(value) : NULL;
}

/* Keys that have one value. */
static int check_texts(struct json_object *design, const char *subject, struct dt_error *err)
{
    static const char *const texts[] = {"repeats", "warmup", "seed", "limit", "shell", "metrics"};
    struct json_object *value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (json_object_object_get_ex(design, texts[i], &value) && text_or_null(value) == NULL)
            return dt_fail(err, DT_EFORMAT, "%s: %s must be a text, not %s", subject, texts[i],
                           dt_json_text(value));
    return 0;
}

static int whole(struct json_object *design, const char *key, long least, long most, long *value,
                 const char *subject, struct dt_error *err)
{
    const char *text = text_of(design, key);
    if (text && (dt_program_parse_int(text, value) < 0 || *value < least || *value > most))
        return dt_fail(err, DT_EINVALID, "%s: %s must be a whole number from %ld to %ld, not '%s'",
                       subject, key, least, most, text);
    return 0;
}

static int read_numbers(struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    const char *limit = text_of(m->design, "limit"), *shell = text_of(m->design, "shell");
    long seed = DEFAULT_SEED;
    m->repeats = 7;
    m->warmup = DEFAULT_WARMUP;
    DT_TRY(whole(m->design, "repeats", 1, MOST_ROUNDS, &m->repeats, subject, err));
    DT_TRY(whole(m->design, "warmup", 0, MOST_ROUNDS, &m->warmup, subject, err));
    DT_TRY(whole(m->design, "seed", 0, 1000000000, &seed, subject, err));
    m->seed = seed;
    if (limit && (dt_program_parse_real(limit, &m->limit) < 0 || m->limit < 0))
        return dt_fail(err, DT_EINVALID, "%s: limit must be seconds, not '%s'", subject, limit);
    if (shell && strcmp(shell, "true") != 0 && strcmp(shell, "false") != 0)
        return dt_fail(err, DT_EINVALID, "%s: shell must be true or false, not '%s'", subject,
                       shell);
    m->shell = shell && strcmp(shell, "true") == 0;
    return 0;
}

/* Placeholders other than axes. */
enum builtin { SEED, ROUND, CELL, BUILTINS };

static enum builtin builtin_of(const char *name, size_t size)
{
    static const char *const names[] = {"seed", "round", "cell"};
    for (int i = 0; i < BUILTINS; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
            return (enum builtin)i;
    return BUILTINS;
}

static size_t name_length(const char *text)
{
    size_t size = 0;
    if (isalpha((unsigned char)*text))
        while (isalnum((unsigned char)text[size]) || (text[size] && strchr("_.-", text[size])))
            size++;
    return size;
}

static bool names_axis(const char *text)
{
    size_t size = strlen(text);
    return size > 0 && name_length(text) == size && builtin_of(text, size) == BUILTINS;
}

static int read_axis(struct dt_axis *axis, const char *name, struct json_object *values,
                     const char *subject, struct dt_error *err)
{
    int count = (int)list_length(values);
    axis->name = dt_strdup(name);
    axis->values = dt_alloc((size_t)count + 1, sizeof *axis->values);
    if (!names_axis(name))
        return dt_fail(err, DT_EINVALID, "%s: '%s' is not a valid axis name", subject, name);
    for (int i = 0; i < count; i++) {
        const char *value = list_item(values, (size_t)i);
        if (value == NULL)
            return dt_fail(err, DT_EFORMAT, "%s: axis %s must be a list of values", subject, name);
        for (int k = 0; k < i; k++)
            if (strcmp(axis->values[k], value) == 0)
                return dt_fail(err, DT_EINVALID, "%s: axis %s lists '%s' twice", subject, name,
                               value);
        axis->values[axis->count++] = dt_strdup(value);
    }
    if (count == 0)
        return dt_fail(err, DT_EINVALID, "%s: axis %s needs at least one value", subject, name);
    return 0;
}

static int read_axes(struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    struct json_object *axes;
    m->cell_count = 1;
    if (!json_object_object_get_ex(m->design, "axes", &axes))
        return 0;
    if (!json_object_is_type(axes, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: axes must map names to lists of values", subject);
    m->axes = dt_alloc((size_t)json_object_object_length(axes) + 1, sizeof *m->axes);
    json_object_object_foreach(axes, name, values)
    {
        struct dt_axis *axis = &m->axes[m->axis_count++];
        DT_TRY(read_axis(axis, name, values, subject, err));
        if (m->cell_count > MOST_CELLS / axis->count)
            return dt_fail(err, DT_EINVALID, "%s: more than %d cells", subject, MOST_CELLS);
        m->cell_count *= axis->count;
    }
    return 0;
}

/* Appends a word; the list takes ownership. */
static void add_word(char ***words, int *count, char *word)
{
    *words = dt_realloc(*words, (size_t)*count + 2, sizeof **words);
    (*words)[(*count)++] = word;
    (*words)[*count] = NULL;
}

/* Splits a command or a value at white space. */
static void add_split(char ***words, int *count, const char *text)
{
    for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
        size_t size = strcspn(text, " \t\n");
        add_word(words, count, dt_strndup(text, size));
        text += size;
    }
}

static int read_command(struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    struct json_object *command;
    int count = 0;
    m->command = dt_alloc(1, sizeof *m->command);
    if (!json_object_object_get_ex(m->design, "command", &command))
        return dt_fail(err, DT_EINVALID, "%s: command is missing", subject);
    if (json_object_is_type(command, json_type_string)) {
        add_split(&m->command, &count, dt_json_text(command));
    } else {
        for (size_t i = 0; i < list_length(command); i++) {
            const char *word = list_item(command, i);
            if (word == NULL)
                return dt_fail(err, DT_EFORMAT, "%s: command must be a list of words", subject);
            add_word(&m->command, &count, dt_strdup(word));
        }
    }
    return count > 0 ? 0 : dt_fail(err, DT_EINVALID, "%s: the command is empty", subject);
}

static int axis_of(const struct dt_matrix *m, const char *name, size_t size)
{
    for (int a = 0; a < m->axis_count; a++)
        if (strlen(m->axes[a].name) == size && memcmp(m->axes[a].name, name, size) == 0)
            return a;
    return -1;
}

static int value_of(const struct dt_axis *axis, const char *value)
{
    for (int i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i], value) == 0)
            return i;
    return -1;
}

static int read_baseline(struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    struct json_object *baseline;
    m->baseline = dt_alloc((size_t)m->axis_count + 1, sizeof *m->baseline);
    for (int a = 0; a < m->axis_count; a++)
        m->baseline[a] = -1;
    m->has_baseline = json_object_object_get_ex(m->design, "baseline", &baseline);
    if (!m->has_baseline)
        return 0;
    if (!json_object_is_type(baseline, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: baseline must map axes to values", subject);
    json_object_object_foreach(baseline, name, value)
    {
        int a = axis_of(m, name, strlen(name));
        const char *text = text_or_null(value);
        if (a < 0)
            return dt_fail(err, DT_EINVALID, "%s: baseline: unknown axis '%s'", subject, name);
        m->baseline[a] = text ? value_of(&m->axes[a], text) : -1;
        if (m->baseline[a] < 0)
            return dt_fail(err, DT_EINVALID, "%s: baseline: axis %s does not have the value '%s'",
                           subject, name, text ? text : "");
    }
    return 0;
}

/* Targets map a member of the metrics to a level. */
static int check_targets(const struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    struct json_object *targets;
    double x;
    if (!json_object_object_get_ex(m->design, "targets", &targets))
        return 0;
    if (!json_object_is_type(targets, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: targets must map names to levels", subject);
    if (m->metrics == NULL)
        return dt_fail(err, DT_EINVALID, "%s: targets need metrics", subject);
    json_object_object_foreach(targets, name, level)
    {
        const char *text = text_or_null(level);
        if (text == NULL || dt_program_parse_real(text, &x) < 0)
            return dt_fail(err, DT_EINVALID, "%s: the target of %s must be a number, not '%s'",
                           subject, name, text ? text : "");
    }
    return 0;
}

static int check_values(const struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    struct json_object *values;
    if (!json_object_object_get_ex(m->design, "values", &values))
        return 0;
    bool good = json_object_is_type(values, json_type_array);
    for (size_t i = 0; good && i < list_length(values); i++)
        good = list_item(values, i) != NULL;
    return good ? 0 : dt_fail(err, DT_EFORMAT, "%s: values must be a list of names", subject);
}

/* --- placeholders ------------------------------------------------------------------------- */

/* Length of NAME if text begins with {NAME}, else 0. */
static size_t hole(const char *text)
{
    size_t size = text[0] == '{' ? name_length(text + 1) : 0;
    return size > 0 && text[1 + size] == '}' ? size : 0;
}

/* {{NAME}}, the escape of a literal {NAME}. */
static size_t escaped_hole(const char *text)
{
    size_t size = text[0] == '{' ? hole(text + 1) : 0;
    return size > 0 && text[size + 3] == '}' ? size : 0;
}

/* The axis of a word that is {NAME:words}, or -1. */
static int splitting_axis(const struct dt_matrix *m, const char *word)
{
    size_t size = strlen(word);
    if (size < 9 || word[0] != '{' || strcmp(word + size - 7, ":words}") != 0)
        return -1;
    return axis_of(m, word + 1, size - 8);
}

static int check_template(const struct dt_matrix *m, const char *text, bool *used,
                          const char *subject, struct dt_error *err)
{
    int a = splitting_axis(m, text);
    if (a >= 0) {
        used[a] = true;
        return 0;
    }
    for (; *text; text++) {
        size_t size = hole(text), escaped = escaped_hole(text);
        if (escaped > 0)
            text += escaped + 3;
        if (escaped > 0 || size == 0)
            continue;
        a = axis_of(m, text + 1, size);
        if (a < 0 && builtin_of(text + 1, size) == BUILTINS)
            return dt_fail(err, DT_EINVALID,
                           "%s: {%.*s} is not an axis (write {{%.*s}} for a literal brace)",
                           subject, (int)size, text + 1, (int)size, text + 1);
        if (a >= 0)
            used[a] = true;
        text += size + 1;
    }
    return 0;
}

static int check_templates(const struct dt_matrix *m, const char *subject, struct dt_error *err)
{
    bool *used = dt_alloc((size_t)m->axis_count + 1, sizeof *used);
    int rc = m->metrics ? check_template(m, m->metrics, used, subject, err) : 0;
    for (int i = 0; m->command[i] && rc == 0; i++)
        rc = check_template(m, m->command[i], used, subject, err);
    for (int a = 0; a < m->axis_count && rc == 0; a++)
        if (!used[a])
            rc = dt_fail(err, DT_EINVALID, "%s: the command does not use {%s}", subject,
                         m->axes[a].name);
    free(used);
    return rc;
}

static void add_quoted(struct dt_buffer *b, const char *text)
{
    dt_buffer_add_char(b, '\'');
    for (; *text; text++)
        if (*text == '\'')
            dt_buffer_add_string(b, "'\\''");
        else
            dt_buffer_add_char(b, *text);
    dt_buffer_add_char(b, '\'');
}

static void fill_hole(const struct dt_matrix *m, int cell, long round, const char *name,
                      size_t size, bool quote, struct dt_buffer *out)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int a = axis_of(m, name, size);
    enum builtin builtin = builtin_of(name, size);
    if (a >= 0)
        dt_buffer_add_string(&text, dt_matrix_text(m, cell, a));
    else if (builtin == SEED)
        dt_buffer_printf(&text, "%lld", (long long)(m->seed + (round > 0 ? round - 1 : 0)));
    else if (builtin == ROUND)
        dt_buffer_printf(&text, "%ld", round);
    else
        dt_matrix_name(m, cell, &text);
    const char *value = text.data ? text.data : "";
    if (quote && builtin != SEED && builtin != ROUND)
        add_quoted(out, value);
    else
        dt_buffer_add_string(out, value);
    dt_buffer_release(&text);
}

static void fill(const struct dt_matrix *m, int cell, long round, const char *text, bool quote,
                 struct dt_buffer *out)
{
    dt_buffer_add_string(out, "");
    for (; *text; text++) {
        size_t size = hole(text), escaped = escaped_hole(text);
        if (escaped > 0) {
            dt_buffer_append(out, text + 1, escaped + 2);
            text += escaped + 3;
        } else if (size > 0) {
            fill_hole(m, cell, round, text + 1, size, quote, out);
            text += size + 1;
        } else {
            dt_buffer_add_char(out, *text);
        }
    }
}

/* The words of a value, each quoted. */
static void add_quoted_words(struct dt_buffer *line, const char *value)
{
    char **words = dt_alloc(1, sizeof *words);
    int count = 0;
    add_split(&words, &count, value);
    for (int i = 0; i < count; i++) {
        dt_buffer_add_string(line, i > 0 ? " " : "");
        add_quoted(line, words[i]);
    }
    dt_matrix_free_words(words);
}

static char **shell_words(const struct dt_matrix *m, int cell, long round)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    char **words = dt_alloc(4, sizeof *words);
    for (int i = 0; m->command[i]; i++) {
        int a = splitting_axis(m, m->command[i]);
        dt_buffer_add_string(&line, i > 0 ? " " : "");
        if (a >= 0)
            add_quoted_words(&line, dt_matrix_text(m, cell, a));
        else
            fill(m, cell, round, m->command[i], true, &line);
    }
    words[0] = dt_strdup("sh");
    words[1] = dt_strdup("-c");
    words[2] = line.data;
    return words;
}

char **dt_matrix_words(const struct dt_matrix *m, int cell, long round)
{
    if (m->shell)
        return shell_words(m, cell, round);
    char **words = dt_alloc(1, sizeof *words);
    int count = 0;
    for (int i = 0; m->command[i]; i++) {
        int a = splitting_axis(m, m->command[i]);
        if (a >= 0) {
            add_split(&words, &count, dt_matrix_text(m, cell, a));
            continue;
        }
        struct dt_buffer word = DT_BUFFER_EMPTY;
        fill(m, cell, round, m->command[i], false, &word);
        add_word(&words, &count, word.data);
    }
    return words;
}

void dt_matrix_free_words(char **words)
{
    for (int i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

char *dt_matrix_metrics(const struct dt_matrix *m, int cell, long round)
{
    struct dt_buffer path = DT_BUFFER_EMPTY;
    if (m->metrics == NULL)
        return NULL;
    fill(m, cell, round, m->metrics, false, &path);
    return path.data;
}

/* --- cells -------------------------------------------------------------------------------- */

int dt_matrix_value(const struct dt_matrix *m, int cell, int axis)
{
    for (int a = m->axis_count - 1; a > axis; a--)
        cell /= m->axes[a].count;
    return cell % m->axes[axis].count;
}

const char *dt_matrix_text(const struct dt_matrix *m, int cell, int axis)
{
    return m->axes[axis].values[dt_matrix_value(m, cell, axis)];
}

int dt_matrix_baseline(const struct dt_matrix *m, int cell)
{
    int base = 0;
    if (!m->has_baseline)
        return -1;
    for (int a = 0; a < m->axis_count; a++) {
        int value = m->baseline[a] >= 0 ? m->baseline[a] : dt_matrix_value(m, cell, a);
        base = base * m->axes[a].count + value;
    }
    return base;
}

struct json_object *dt_matrix_cell(const struct dt_matrix *m, int cell)
{
    struct json_object *object = dt_json_new_object();
    for (int a = 0; a < m->axis_count; a++)
        dt_json_object_add(object, m->axes[a].name, dt_json_new_string(dt_matrix_text(m, cell, a)));
    return object;
}

int dt_matrix_find(const struct dt_matrix *m, struct json_object *cell)
{
    int index = 0;
    if (json_object_object_length(cell) != m->axis_count)
        return -1;
    for (int a = 0; a < m->axis_count; a++) {
        struct json_object *value;
        if (!json_object_object_get_ex(cell, m->axes[a].name, &value) || value == NULL)
            return -1;
        int i = value_of(&m->axes[a], dt_json_text(value));
        if (i < 0)
            return -1;
        index = index * m->axes[a].count + i;
    }
    return index;
}

void dt_matrix_name(const struct dt_matrix *m, int cell, struct dt_buffer *name)
{
    for (int a = 0; a < m->axis_count; a++) {
        size_t from = name->size;
        dt_buffer_printf(name, "%s%s=%s", a > 0 ? "," : "", m->axes[a].name,
                         dt_matrix_text(m, cell, a));
        for (size_t i = from; i < name->size; i++)
            if (name->data[i] == '/')
                name->data[i] = '_';
    }
}

/* --- init and release ------------------------------------------------------------- */

int dt_matrix_init(struct dt_matrix *m, struct json_object *design, const char *subject,
                   struct dt_error *err)
{
    *m = (struct dt_matrix){.design = design};
    int rc = check_keys(design, subject, err);
    if (rc == 0)
        rc = check_texts(design, subject, err);
    if (rc == 0)
        rc = read_numbers(m, subject, err);
    if (rc == 0)
        rc = read_axes(m, subject, err);
    if (rc == 0)
        rc = read_command(m, subject, err);
    if (rc == 0)
        rc = read_baseline(m, subject, err);
    if (rc == 0 && text_of(design, "metrics"))
        m->metrics = dt_strdup(text_of(design, "metrics"));
    if (rc == 0)
        rc = check_targets(m, subject, err);
    if (rc == 0)
        rc = check_values(m, subject, err);
    if (rc == 0)
        rc = check_templates(m, subject, err);
    if (rc < 0)
        dt_matrix_release(m);
    return rc;
}

void dt_matrix_release(struct dt_matrix *m)
{
    for (int a = 0; a < m->axis_count; a++) {
        for (int i = 0; i < m->axes[a].count; i++)
            free(m->axes[a].values[i]);
        free(m->axes[a].values);
        free(m->axes[a].name);
    }
    free(m->axes);
    dt_matrix_free_words(m->command);
    free(m->metrics);
    free(m->baseline);
    json_object_put(m->design);
    *m = (struct dt_matrix){NULL};
}

static bool equal(struct json_object *a, struct json_object *b, const char *key)
{
    struct json_object *x = NULL, *y = NULL;
    json_object_object_get_ex(a, key, &x);
    json_object_object_get_ex(b, key, &y);
    return json_object_equal(x, y);
}

/* Whether both have axes of the same names. */
static bool equal_axes(struct json_object *a, struct json_object *b)
{
    struct json_object *x = NULL, *y = NULL;
    json_object_object_get_ex(a, "axes", &x);
    json_object_object_get_ex(b, "axes", &y);
    if (x == NULL || y == NULL)
        return x == y;
    if (json_object_object_length(x) != json_object_object_length(y))
        return false;
    json_object_object_foreach(x, name, values)
    {
        (void)values;
        if (!json_object_object_get_ex(y, name, NULL))
            return false;
    }
    return true;
}

/* Of a number that may be left out. */
static bool equal_numbers(struct json_object *a, struct json_object *b, const char *key,
                          long otherwise)
{
    const char *x = text_of(a, key), *y = text_of(b, key);
    long m = otherwise, n = otherwise;
    return (x == NULL || dt_program_parse_int(x, &m) == 0) &&
           (y == NULL || dt_program_parse_int(y, &n) == 0) && m == n;
}

static bool equal_shell(struct json_object *a, struct json_object *b)
{
    const char *x = text_of(a, "shell"), *y = text_of(b, "shell");
    return strcmp(x ? x : "false", y ? y : "false") == 0;
}

static bool equal_member(struct json_object *a, struct json_object *b, const char *key)
{
    if (strcmp(key, "seed") == 0)
        return equal_numbers(a, b, key, DEFAULT_SEED);
    if (strcmp(key, "warmup") == 0)
        return equal_numbers(a, b, key, DEFAULT_WARMUP);
    return strcmp(key, "shell") == 0 ? equal_shell(a, b) : equal(a, b, key);
}

bool dt_matrix_continues(struct json_object *old_design, struct json_object *new_design,
                         const char **why)
{
    static const char *const same[] = {"command", "shell",   "seed", "warmup",
                                       "metrics", "targets", NULL};
    for (int i = 0; same[i]; i++)
        if (!equal_member(old_design, new_design, same[i])) {
            *why = same[i];
            return false;
        }
    *why = "axes";
    return equal_axes(old_design, new_design);
}
