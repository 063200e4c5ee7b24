/* SPDX-License-Identifier: MIT */
#include "formats/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "document/document.h"
#include "settings/model-config.h"
#include "json/json.h"

static char *key_of(long i)
{
    return dt_asprintf("%ld", i);
}

/* id2label: {"0": NAME, "1": NAME, ...}; its length is the model's count. */
static int read_names(struct dt_labels *l, struct json_object *config, const char *path,
                      struct dt_error *err)
{
    struct json_object *object = json_object_object_get(config, "id2label");
    int rc = 0;
    if (object == NULL)
        return 0;
    l->names = dt_alloc((size_t)l->count, sizeof *l->names);
    for (long i = 0; rc == 0 && i < l->count; i++) {
        char *key = key_of(i);
        struct json_object *name = json_object_object_get(object, key);
        if (json_object_is_type(name, json_type_string))
            l->names[i] = dt_strdup(dt_json_text(name));
        else
            rc = dt_fail(err, DT_EFORMAT, "%s: id2label has no name of label %s", path, key);
        free(key);
    }
    return rc;
}

int dt_labels_read(struct dt_labels *l, const char *directory, long count, struct dt_error *err)
{
    struct json_object *config;
    *l = (struct dt_labels){.count = count, .pad_id = -1};
    if (count == 0)
        return 0;
    char *path = dt_path_join(directory, DT_CONFIG_FILE);
    int rc = dt_json_read(path, &config, err);
    if (rc == 0) {
        struct json_object *pad = json_object_object_get(config, "pad_token_id");
        if (json_object_is_type(pad, json_type_int))
            l->pad_id = json_object_get_int64(pad);
        rc = read_names(l, config, path, err);
        json_object_put(config);
    }
    free(path);
    return rc;
}

int dt_labels_of_names(struct dt_labels *l, const char *names, struct dt_error *err)
{
    *l = (struct dt_labels){.pad_id = -1};
    for (const char *at = names; *at; at++)
        l->count += at == names || *at == ',';
    l->names = l->count > 0 ? dt_alloc((size_t)l->count, sizeof *l->names) : NULL;
    for (long i = 0; i < l->count; i++) {
        size_t size = strcspn(names, ",");
        l->names[i] = dt_strndup(names, size);
        names += size + 1;
        if (size == 0 || l->names[i][0] == ' ' || dt_labels_find(l, l->names[i]) < i)
            return dt_fail(err, DT_EINVALID,
                           "data.labels: '%s' is empty, begins with a blank, or is there twice",
                           l->names[i]);
    }
    return 0;
}

void dt_labels_release(struct dt_labels *l)
{
    for (long i = 0; l->names && i < l->count; i++)
        free(l->names[i]);
    free(l->names);
    *l = (struct dt_labels){0};
}

long dt_labels_find(const struct dt_labels *l, const char *name)
{
    for (long i = 0; l->names && i < l->count; i++)
        if (strcmp(l->names[i], name) == 0)
            return i;
    return -1;
}

void dt_labels_add(const struct dt_labels *l, struct json_object *config)
{
    if (l->count == 0)
        return;
    struct json_object *names = dt_json_new_object(), *ids = dt_json_new_object();
    for (long i = 0; l->names && i < l->count; i++) {
        char *key = key_of(i);
        dt_json_object_add(names, key, dt_json_new_string(l->names[i]));
        dt_json_object_add(ids, l->names[i], dt_json_new_int(i));
        free(key);
    }
    if (l->names) {
        dt_json_object_add(config, "id2label", json_object_get(names));
        dt_json_object_add(config, "label2id", json_object_get(ids));
    }
    if (l->pad_id >= 0)
        dt_json_object_add(config, "pad_token_id", dt_json_new_int(l->pad_id));
    json_object_put(names);
    json_object_put(ids);
}

int dt_labels_read_document(const struct dt_labels *l, const struct dt_document *doc,
                            const char *path, int32_t *label, struct dt_error *err)
{
    struct json_object *meta = NULL;
    const char *id = doc->id.data;
    long found = -1;
    if (doc->meta.size > 0)
        DT_TRY(dt_json_parse(doc->meta.data, doc->meta.size, id, &meta, err));
    struct json_object *given = json_object_object_get(meta, "label");
    if (json_object_is_type(given, json_type_int))
        found = (long)json_object_get_int64(given);
    else if (json_object_is_type(given, json_type_string))
        found = dt_labels_find(l, dt_json_text(given));
    int rc = 0;
    if (given == NULL)
        rc = dt_fail(err, DT_EFORMAT, "%s: document '%s' has no \"label\"", path, id);
    else if (found < 0 || found >= l->count)
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: document '%s': label '%s' is neither a number below %ld, the model's "
                     "labels, nor a name in its id2label",
                     path, id, dt_json_text(given), l->count);
    *label = (int32_t)found;
    json_object_put(meta);
    return rc;
}
