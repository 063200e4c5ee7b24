/* SPDX-License-Identifier: MIT */
/* architectures in config.json: a model of tokens, or a classifier of texts and its labels. */
#include <string.h>

#include "base/buffer.h"
#include "settings/config-json-internal.h"

#define DEFAULT_LABELS 2 /* transformers', where the file gives no number */

/* What precedes "For" or "LMHead" in the name of the model of tokens: "Llama". */
static size_t stem_of(const char *architecture)
{
    const char *end = strstr(architecture, "For");
    end = end ? end : strstr(architecture, "LMHead");
    return (size_t)(end - architecture);
}

/* Files of a base model lack its head, or have it under the usual names. */
static bool is_base(const char *name, const char *architecture)
{
    static const char *const ends[] = {"Model", "TextModel", "ForPreTraining"};
    size_t stem = stem_of(architecture);
    for (int i = 0; i < 3; i++)
        if (strncmp(name, architecture, stem) == 0 && strcmp(name + stem, ends[i]) == 0)
            return true;
    return false;
}

static int refuse(struct dt_config_reader *r, const char *given, struct dt_error *err)
{
    const char *classifier = r->family->classifier;
    return dt_fail(err, DT_EFORMAT, "%s: architectures is %s, but dt computes %s%s%s with %s",
                   r->path, given, r->family->architecture, classifier ? " or " : "",
                   classifier ? classifier : "", dt_family_names[r->config->family]);
}

/* The number of labels, as transformers finds it. */
static int read_count(struct dt_config_reader *r, struct dt_error *err)
{
    struct json_object *names;
    int64_t count = DEFAULT_LABELS, members;
    bool counted = dt_config_reader_has_value(r, "num_labels");
    if (counted)
        DT_TRY(dt_json_get_int(r->object, "num_labels", r->path, &count, err));
    if (dt_config_reader_has_value(r, "id2label")) {
        DT_TRY(dt_json_get(r->object, "id2label", json_type_object, r->path, &names, err));
        members = json_object_object_length(names);
        if (counted && members != count)
            return dt_fail(err, DT_EFORMAT, "%s: id2label has %lld labels, but num_labels is %lld",
                           r->path, (long long)members, (long long)count);
        count = members;
    }
    if (count < 2 || count > 1 << 20)
        return dt_fail(err, DT_EFORMAT,
                       "%s: num_labels is %lld: dt reads classifiers of 2 labels or more, not "
                       "regressions",
                       r->path, (long long)count);
    r->config->num_labels = (long)count;
    return 0;
}

/* Members of classifiers that dt supports with one value only. */
static int check_text_member(struct dt_config_reader *r, const char *name, const char *value,
                             struct dt_error *err)
{
    const char *given;
    if (!dt_config_reader_has_value(r, name))
        return 0;
    DT_TRY(dt_json_get_string(r->object, name, r->path, &given, err));
    return strcmp(given, value) == 0
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: %s is '%s', but must be '%s', dt knows no other",
                         r->path, name, given, value);
}

int dt_config_architecture_read(struct dt_config_reader *r, struct dt_error *err)
{
    struct json_object *list;
    if (!dt_config_reader_has_value(r, "architectures"))
        return 0;
    DT_TRY(dt_json_get(r->object, "architectures", json_type_array, r->path, &list, err));
    if (json_object_array_length(list) == 0)
        return 0;
    struct json_object *first = json_object_array_get_idx(list, 0);
    bool alone =
        json_object_array_length(list) == 1 && json_object_is_type(first, json_type_string);
    const char *name = alone ? dt_json_text(first) : "not one name";
    if (strcmp(name, r->family->architecture) == 0 || is_base(name, r->family->architecture))
        return 0;
    if (r->family->classifier == NULL || strcmp(name, r->family->classifier) != 0)
        return refuse(r, name, err);
    DT_TRY(check_text_member(r, "problem_type", "single_label_classification", err));
    DT_TRY(check_text_member(r, "classifier_pooling", "cls", err));
    return read_count(r, err);
}

void dt_config_architecture_add(struct json_object *object, const struct dt_model_config *c)
{
    const struct dt_family_json *family = dt_family_of(c)->json;
    struct json_object *list = dt_json_new_array(), *names = dt_json_new_object();
    struct json_object *ids = dt_json_new_object();
    for (long i = 0; i < c->num_labels; i++) {
        char *id = dt_asprintf("%ld", i), *name = dt_asprintf("LABEL_%ld", i);
        dt_json_object_add(names, id, dt_json_new_string(name));
        dt_json_object_add(ids, name, dt_json_new_int(i));
        free(id);
        free(name);
    }
    dt_json_array_add(
        list, dt_json_new_string(c->num_labels > 0 ? family->classifier : family->architecture));
    dt_json_object_add(object, "architectures", list);
    if (c->num_labels > 0) {
        dt_json_object_add(object, "id2label", json_object_get(names));
        dt_json_object_add(object, "label2id", json_object_get(ids));
    }
    json_object_put(names);
    json_object_put(ids);
}
