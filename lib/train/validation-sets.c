/* SPDX-License-Identifier: MIT */
/* The validation sets of data.validation, "NAME=DATA,NAME=DATA". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "train/training-internal.h"

/* Names become parts of the names of metrics. */
static bool is_name(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    return size > 0;
}

static bool is_taken(const struct dt_training *t, const char *name, size_t size)
{
    for (int i = 0; i < t->set_count; i++)
        if (strlen(t->sets[i].name) == size && strncmp(t->sets[i].name, name, size) == 0)
            return true;
    return false;
}

/* Its tokenizer is that of the training data, and it has a sample. */
static int check(const struct dt_training *t, const struct dt_dataset *data, const char *path,
                 struct dt_error *err)
{
    uint64_t samples;
    if (dt_dataset_info(data)->tokenizer != dt_dataset_info(t->train)->tokenizer)
        return dt_fail(err, DT_EINVALID,
                       "%s: was made with another tokenizer than the training data", path);
    return dt_dataset_samples(data, (uint32_t)t->settings.training.sequence_length, &samples, err);
}

static int add(struct dt_training *t, const char *item, struct dt_error *err)
{
    const char *path = strchr(item, '=');
    if (path == NULL || !is_name(item, (size_t)(path - item)) || path[1] == '\0')
        return dt_fail(err, DT_EINVALID,
                       "%s: data.validation is NAME=DATA,NAME=DATA,..., with names of letters, "
                       "digits, _ and -, not '%s'",
                       t->options.settings_path, t->settings.data.validation);
    if (is_taken(t, item, (size_t)(path - item)))
        return dt_fail(err, DT_EINVALID, "%s: data.validation has two sets '%.*s'",
                       t->options.settings_path, (int)(path - item), item);
    DT_GROW(t->sets, t->set_count, t->set_capacity);
    struct dt_validation_set *set = &t->sets[t->set_count++];
    *set = (struct dt_validation_set){.name = dt_strndup(item, (size_t)(path - item))};
    path++;
    int rc = dt_dataset_open(&set->data, path, t->settings.data.val_split, err);
    rc = rc < 0 ? rc : check(t, set->data, path, err);
    return rc < 0 ? dt_fail_context(err, "data.validation: %s", set->name) : 0;
}

int dt_validation_sets_open(struct dt_training *t, struct dt_error *err)
{
    char *copy = dt_strdup(t->settings.data.validation), *rest = *copy ? copy : NULL;
    int rc = 0;
    for (char *item; rc == 0 && (item = strsep(&rest, ",")) != NULL;)
        rc = add(t, item, err);
    free(copy);
    return rc;
}

int dt_training_add_validation(const char *sets, struct dt_lineage *lineage, struct dt_error *err)
{
    char *copy = dt_strdup(sets), *rest = *copy ? copy : NULL;
    int rc = 0;
    for (char *item; rc == 0 && (item = strsep(&rest, ",")) != NULL;) {
        const char *path = strchr(item, '=');
        rc = path ? dt_dataset_add_inputs(path + 1, lineage, err) : 0;
    }
    free(copy);
    return rc;
}

void dt_validation_sets_release(struct dt_training *t)
{
    for (int i = 0; i < t->set_count; i++) {
        free(t->sets[i].name);
        dt_dataset_close(t->sets[i].data);
    }
    free(t->sets);
}

bool dt_training_find_set(const struct dt_training *t, int i, struct dt_training_set *set)
{
    if (i >= t->set_count)
        return false;
    *set = (struct dt_training_set){t->sets[i].name, t->sets[i].loss, t->sets[i].accuracy};
    return true;
}

bool dt_training_scores_accuracy(const struct dt_training *t)
{
    return t->objective.validation || t->settings.training.eval_accuracy;
}
