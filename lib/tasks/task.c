/* SPDX-License-Identifier: MIT */
#include "tasks/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "tasks/literal.h"
#include "tasks/task-internal.h"
#include "json/yaml.h"

#define MOST_INCLUDES 10
#define MOST_TOKENS   256 /* of a generated text, as lm-evaluation-harness has it */

static int read_part(const struct dt_task *t, const char *key, struct json_object *value,
                     struct dt_task_part *part, struct dt_error *err)
{
    bool may_be_list = strcmp(key, "doc_to_choice") == 0 || strcmp(key, "doc_to_target") == 0;
    if (may_be_list && json_object_is_type(value, json_type_array)) {
        part->list = value;
        return 0;
    }
    DT_TRY(dt_task_text(t, key, value, &part->source, err));
    char *subject = dt_asprintf("%s: %s", t->path, key);
    int rc = dt_template_parse_as(&part->template, DT_TEMPLATE_TASK, part->source,
                                  strlen(part->source), subject, err);
    free(subject);
    return rc;
}

static int read_output(struct dt_task *t, const char *key, struct json_object *value,
                       struct dt_error *err)
{
    for (int i = 0; i < DT_TASK_OUTPUT_COUNT; i++)
        if (strcmp(dt_json_text(value), dt_task_outputs[i]) == 0) {
            t->output = (enum dt_task_output)i;
            return 0;
        }
    return dt_task_fail(t, key,
                        "must be multiple_choice, loglikelihood, loglikelihood_rolling or "
                        "generate_until",
                        err);
}

/* --- generation -------------------------------------------------------------------------------*/

static int read_until(struct dt_task *t, struct json_object *value, struct dt_error *err)
{
    bool list = json_object_is_type(value, json_type_array);
    t->until_count = list ? json_object_array_length(value) : 1;
    t->until = dt_alloc(t->until_count + 1, sizeof *t->until);
    for (size_t i = 0; i < t->until_count; i++) {
        DT_TRY(dt_task_text(t, "until", list ? json_object_array_get_idx(value, i) : value,
                            &t->until[i], err));
        if (*t->until[i] == 0)
            return dt_task_fail(t, "until", "a text is empty", err);
    }
    return 0;
}

static int read_generation(struct dt_task *t, const char *key, struct json_object *value,
                           struct dt_error *err)
{
    (void)key;
    if (!json_object_is_type(value, json_type_object))
        return dt_task_fail(t, "generation_kwargs", "must be a mapping", err);
    json_object_object_foreach(value, name, setting)
    {
        const char *text = dt_json_text(setting);
        if (strcmp(name, "until") == 0)
            DT_TRY(read_until(t, setting, err));
        else if (strcmp(name, "max_gen_toks") == 0)
            DT_TRY(dt_task_whole(t, name, setting, &t->max_tokens, err));
        else if (strcmp(name, "do_sample") == 0
                     ? strcasecmp(text, "false") != 0
                     : strcmp(name, "temperature") != 0 || strtod(text, NULL) != 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: generation_kwargs: %s: %s is not supported: dt-eval decodes "
                           "greedily (do_sample: false, temperature: 0)",
                           t->path, name, text);
    }
    return t->max_tokens > 0 ? 0 : dt_task_fail(t, "max_gen_toks", "must be above 0", err);
}

/* --- few-shot examples ------------------------------------------------------------------------*/

/* Samples are strings in YAML, and their numbers are read where the harness would read them. */
static int read_samples(struct dt_task *t, struct json_object *value, struct dt_error *err)
{
    if (!json_object_is_type(value, json_type_array))
        return dt_task_fail(t, "samples", "must be a list of mappings", err);
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_object))
            return dt_task_fail(t, "samples", "must be a list of mappings", err);
    t->shots.samples = value;
    return 0;
}

static int read_sampler(struct dt_task *t, struct json_object *value, struct dt_error *err)
{
    const char *name = dt_json_text(value);
    t->shots.first = strcmp(name, "first_n") == 0;
    return t->shots.first || strcmp(name, "default") == 0
               ? 0
               : dt_task_fail(t, "sampler", "must be default or first_n", err);
}

static int read_shots(struct dt_task *t, const char *key, struct json_object *value,
                      struct dt_error *err)
{
    struct dt_task_shots *s = &t->shots;
    if (!json_object_is_type(value, json_type_object))
        return dt_task_fail(t, key, "must be a mapping", err);
    json_object_object_foreach(value, name, v)
    {
        int rc;
        if (strcmp(name, "sampler") == 0)
            rc = read_sampler(t, v, err);
        else if (strcmp(name, "split") == 0)
            rc = dt_task_text(t, name, v, &s->split, err);
        else if (strcmp(name, "samples") == 0)
            rc = read_samples(t, v, err);
        else if (strcmp(name, "doc_to_text") == 0)
            rc = read_part(t, name, v, &s->text, err);
        else if (strcmp(name, "doc_to_target") == 0)
            rc = read_part(t, name, v, &s->target, err);
        else if (strcmp(name, "doc_to_choice") == 0)
            rc = read_part(t, name, v, &s->choice, err);
        else if (strcmp(name, "target_delimiter") == 0)
            rc = dt_task_text(t, name, v, &s->target_delimiter, err);
        else if (strcmp(name, "fewshot_delimiter") == 0)
            rc = dt_task_text(t, name, v, &s->delimiter, err);
        else
            rc = dt_fail(err, DT_EINVALID, "%s: fewshot_config: the key '%s' is not known", t->path,
                         name);
        DT_TRY(rc);
    }
    return 0;
}

/* --- the keys of a file -----------------------------------------------------------------------*/

static int read_repeats(struct dt_task *t, const char *key, struct json_object *value,
                        struct dt_error *err)
{
    return strcmp(dt_json_text(value), "1") == 0
               ? 0
               : dt_task_fail(t, key, "must be 1: greedy texts are equal", err);
}

/* data_files, of the file formats' loaders, as the harness passes them. */
static int read_dataset_kwargs(struct dt_task *t, const char *key, struct json_object *value,
                               struct dt_error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return *dt_json_text(value) ? dt_task_fail(t, key, "must be a mapping", err) : 0;
    json_object_object_foreach(value, name, v)
    {
        if (strcmp(name, "data_files") == 0)
            t->data_files = v;
        else if (strcmp(name, "trust_remote_code") != 0)
            return dt_fail(err, DT_EINVALID, "%s: dataset_kwargs: the key '%s' is not known",
                           t->path, name);
    }
    return 0;
}

enum key_kind { KEY_TEXT, KEY_PART, KEY_OTHER, KEY_IGNORED, KEY_REFUSED };

#define PYTHON "only Python can run it: express it as a template of doc_to_text, doc_to_target and "
#define TEXT(name, member)                                                                         \
    {                                                                                              \
        name, KEY_TEXT, offsetof(struct dt_task, member), NULL, NULL                               \
    }
#define PART(name, member)                                                                         \
    {                                                                                              \
        name, KEY_PART, offsetof(struct dt_task, member), NULL, NULL                               \
    }

static const struct key {
    const char *name;
    enum key_kind kind;
    size_t offset; /* of what it sets */
    int (*read)(struct dt_task *t, const char *key, struct json_object *value,
                struct dt_error *err);
    const char *advice; /* why it is refused */
} keys[] = {
    TEXT("dataset_path", dataset_path),
    TEXT("dataset_name", dataset_name),
    TEXT("training_split", training_split),
    TEXT("validation_split", validation_split),
    TEXT("test_split", test_split),
    TEXT("fewshot_split", shots.split),
    TEXT("target_delimiter", target_delimiter),
    TEXT("fewshot_delimiter", fewshot_delimiter),
    TEXT("group_by", group_by),
    PART("doc_to_text", text),
    PART("doc_to_target", target),
    PART("doc_to_choice", choice),
    PART("doc_to_size", size),
    PART("description", description),
    {"output_type", KEY_OTHER, 0, read_output, NULL},
    {"dataset_kwargs", KEY_OTHER, 0, read_dataset_kwargs, NULL},
    {"fewshot_config", KEY_OTHER, 0, read_shots, NULL},
    {"generation_kwargs", KEY_OTHER, 0, read_generation, NULL},
    {"metric_list", KEY_OTHER, 0, dt_task_read_metrics, NULL},
    {"filter_list", KEY_OTHER, 0, dt_task_read_filters, NULL},
    {"repeats", KEY_OTHER, 0, read_repeats, NULL},
    {"task", KEY_IGNORED, 0, NULL, NULL},
    {"num_fewshot", KEY_IGNORED, 0, NULL, NULL},
    {"include", KEY_IGNORED, 0, NULL, NULL},
    {"task_alias", KEY_IGNORED, 0, NULL, NULL},
    {"tag", KEY_IGNORED, 0, NULL, NULL},
    {"metadata", KEY_IGNORED, 0, NULL, NULL},
    {"should_decontaminate", KEY_IGNORED, 0, NULL, NULL},
    {"doc_to_decontamination_query", KEY_IGNORED, 0, NULL, NULL},
    {"process_docs", KEY_REFUSED, 0, NULL, PYTHON "doc_to_choice, or prepare the data before"},
    {"process_results", KEY_REFUSED, 0, NULL, PYTHON "filters and metrics"},
    {"custom_dataset", KEY_REFUSED, 0, NULL, "only Python can run it: give --data SPLIT=FILE"},
    {"use_prompt", KEY_REFUSED, 0, NULL, "write the prompt as doc_to_text"},
    {"gen_prefix", KEY_REFUSED, 0, NULL, "write it at the end of doc_to_text"},
    {"doc_to_image", KEY_REFUSED, 0, NULL, "dt's models read text only"},
    {"doc_to_audio", KEY_REFUSED, 0, NULL, "dt's models read text only"},
    {"group", KEY_REFUSED, 0, NULL, "name the tasks of the group"},
};

static int read_key(struct dt_task *t, const char *name, struct json_object *value,
                    struct dt_error *err)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct key *k = &keys[i];
        if (strcmp(name, k->name) != 0)
            continue;
        switch (k->kind) {
        case KEY_TEXT:
            return dt_task_text(t, name, value, (const char **)((char *)t + k->offset), err);
        case KEY_PART:
            return read_part(t, name, value, (struct dt_task_part *)((char *)t + k->offset), err);
        case KEY_OTHER:
            return k->read(t, name, value, err);
        case KEY_IGNORED:
            return 0;
        case KEY_REFUSED:
            return dt_fail(err, DT_EINVALID, "%s: %s is not supported: %s", t->path, name,
                           k->advice);
        }
    }
    return dt_fail(err, DT_EINVALID, "%s: the key '%s' is not known; dt-tasks(7) has a list",
                   t->path, name);
}

/* A split that is null is none. */
static void drop_empty(const char **text)
{
    if (*text && **text == 0)
        *text = NULL;
}

static void set_defaults(struct dt_task *t)
{
    drop_empty(&t->training_split);
    drop_empty(&t->validation_split);
    drop_empty(&t->test_split);
    drop_empty(&t->shots.split);
    drop_empty(&t->group_by);
    t->target_delimiter = t->target_delimiter ? t->target_delimiter : " ";
    t->fewshot_delimiter = t->fewshot_delimiter ? t->fewshot_delimiter : "\n\n";
    struct dt_task_shots *s = &t->shots;
    s->target_delimiter = s->target_delimiter ? s->target_delimiter : t->target_delimiter;
    s->delimiter = s->delimiter ? s->delimiter : t->fewshot_delimiter;
    if (t->until == NULL) {
        t->until = dt_alloc(2, sizeof *t->until);
        t->until[t->until_count++] = t->fewshot_delimiter;
    }
}

static int need(const struct dt_task *t, bool holds, const char *key, struct dt_error *err)
{
    return holds ? 0
                 : dt_fail(err, DT_EFORMAT, "%s: a task of the kind %s needs %s", t->path,
                           dt_task_outputs[t->output], key);
}

static int check(const struct dt_task *t, struct dt_error *err)
{
    bool choice = t->output == DT_TASK_OUTPUT_CHOICE;
    DT_TRY(need(t, t->target.source || t->target.list, "doc_to_target", err));
    DT_TRY(need(t, t->text.source || t->output == DT_TASK_OUTPUT_ROLLING, "doc_to_text", err));
    DT_TRY(need(t, !choice || (t->choice.source && *t->choice.source) || t->choice.list,
                "doc_to_choice", err));
    DT_TRY(need(t, t->test_split || t->validation_split, "test_split or validation_split", err));
    if (t->size.source && t->output != DT_TASK_OUTPUT_ROLLING)
        return dt_task_fail(t, "doc_to_size", "is of tasks of the kind loglikelihood_rolling", err);
    if (t->filter_count > 0 && t->output != DT_TASK_OUTPUT_GENERATE)
        return dt_task_fail(t, "filter_list", "is of tasks of the kind generate_until", err);
    if (t->num_fewshot < 0)
        return dt_task_fail(t, "num_fewshot", "must be 0 or more", err);
    if (t->num_fewshot > 0 && t->output == DT_TASK_OUTPUT_ROLLING)
        return dt_task_fail(t, "num_fewshot", "a whole text has no examples", err);
    return 0;
}

/* The members of the included file that this one lacks. */
static int include(struct json_object *file, const char *path, int depth, struct dt_error *err)
{
    struct json_object *name, *base;
    if (!json_object_is_type(file, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a mapping of keys", path);
    if (!json_object_object_get_ex(file, "include", &name))
        return 0;
    if (depth == MOST_INCLUDES)
        return dt_fail(err, DT_EFORMAT, "%s: more than %d files include one another", path,
                       MOST_INCLUDES);
    char *other = dt_asprintf("%.*s%s", (int)(dt_path_base(path) - path), path, dt_json_text(name));
    int rc = dt_yaml_read(other, &base, err);
    rc = rc < 0 ? rc : include(base, other, depth + 1, err);
    if (rc == 0) {
        json_object_object_foreach(base, key, value)
        {
            if (!json_object_object_get_ex(file, key, NULL))
                dt_json_object_add(file, key, json_object_get(value));
        }
    }
    json_object_put(base);
    free(other);
    return rc;
}

static int read_file(struct dt_task *t, struct dt_error *err)
{
    struct json_object *value = NULL;
    DT_TRY(dt_yaml_read(t->path, &t->file, err));
    DT_TRY(include(t->file, t->path, 0, err));
    if (json_object_object_get_ex(t->file, "task", &value)) {
        const char *name;
        DT_TRY(dt_task_text(t, "task", value, &name, err));
        free(t->name);
        t->name = dt_strdup(name);
    }
    t->output = DT_TASK_OUTPUT_GENERATE;
    if (json_object_object_get_ex(t->file, "output_type", &value))
        DT_TRY(read_output(t, "output_type", value, err));
    if (json_object_object_get_ex(t->file, "num_fewshot", &value) && *dt_json_text(value))
        DT_TRY(dt_task_whole(t, "num_fewshot", value, &t->num_fewshot, err));
    t->no_shots = value && *dt_json_text(value) && t->num_fewshot == 0; /* null: not given */
    json_object_object_foreach(t->file, key, member)
    {
        DT_TRY(read_key(t, key, member, err));
    }
    set_defaults(t);
    DT_TRY(dt_task_default_metrics(t, err));
    return check(t, err);
}

int dt_task_read(struct dt_task **task, const char *path, struct dt_error *err)
{
    struct dt_task *t = dt_alloc(1, sizeof *t);
    const char *base = dt_path_base(path);
    t->path = dt_strdup(path);
    t->name = dt_strndup(base, strcspn(base, "."));
    t->max_tokens = MOST_TOKENS;
    int rc = read_file(t, err);
    if (rc < 0) {
        dt_task_free(t);
        t = NULL;
    }
    *task = t;
    return rc;
}

void dt_task_free(struct dt_task *t)
{
    if (t == NULL)
        return;
    struct dt_task_part *const parts[] = {&t->text,         &t->target,      &t->choice,
                                          &t->description,  &t->size,        &t->shots.text,
                                          &t->shots.target, &t->shots.choice};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        dt_template_free(parts[i]->template);
    dt_task_free_metrics(t);
    dt_task_free_filters(t);
    free(t->until);
    json_object_put(t->file);
    free(t->path);
    free(t->name);
    free(t);
}

/* --- values of documents ----------------------------------------------------------------------*/

/* What the harness makes of a rendered text: an integer if it has digits only, a list if it is in
 * brackets and can be read as one. */
static struct json_object *value_of(const char *text, size_t size, int values)
{
    struct json_object *value = NULL;
    struct dt_error none;
    size_t digits = 0;
    while (digits < size && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    bool list = values & DT_TASK_VALUE_LIST && size >= 2 && text[0] == '[' && text[size - 1] == ']';
    bool number = values & DT_TASK_VALUE_NUMBER && size > 0 && digits == size && size < 19 &&
                  (*text != '0' || size == 1);
    if ((list || number) && dt_literal_parse(text, size, &value, &none) == 0)
        return value;
    return dt_json_new_string_len(text, size);
}

/* Prompts and answers are texts without a zero byte. */
static bool has_zero(struct json_object *value)
{
    bool zero = json_object_is_type(value, json_type_string) &&
                strlen(dt_json_text(value)) < (size_t)json_object_get_string_len(value);
    size_t count =
        json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
    for (size_t i = 0; !zero && i < count; i++)
        zero = has_zero(json_object_array_get_idx(value, i));
    return zero;
}

static int evaluate(const struct dt_task_part *part, struct json_object *document,
                    struct json_object *features, int values, struct json_object **value,
                    struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    *value = NULL;
    if (part->list) {
        *value = json_object_get(part->list);
        return 0;
    }
    if (json_object_object_get_ex(features, part->source, NULL)) {
        struct json_object *field;
        if (!json_object_object_get_ex(document, part->source, &field) || field == NULL)
            return dt_fail(err, DT_EFORMAT, "the field '%s' is missing, or null", part->source);
        *value = json_object_get(field);
        return 0;
    }
    int rc = dt_template_render(part->template, document, 0, &text, NULL, err);
    if (rc == 0)
        *value = value_of(text.size ? text.data : "", text.size, values);
    dt_buffer_release(&text);
    return rc;
}

int dt_task_evaluate(const struct dt_task_part *part, struct json_object *document,
                     struct json_object *features, int values, struct json_object **value,
                     struct dt_error *err)
{
    DT_TRY(evaluate(part, document, features, values, value, err));
    if (!has_zero(*value))
        return 0;
    json_object_put(*value);
    *value = NULL;
    return dt_fail(err, DT_EFORMAT, "a text has a zero byte");
}
