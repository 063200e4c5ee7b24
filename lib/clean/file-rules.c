/* SPDX-License-Identifier: MIT */
#include "clean/file-rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "clean/meta.h"
#include "clean/rule-setting.h"
#include "clean/url-list.h"
#include "io/lineage.h"

#define BLANKS " \t\r"

void dt_file_models_release(struct dt_file_models *models)
{
    for (size_t i = 0; i < models->count; i++) {
        free(models->items[i].path);
        dt_classifier_free(models->items[i].classifier);
    }
    free(models->items);
    *models = (struct dt_file_models){0};
}

/* The path of a file that the rule file names; owned by the caller. */
static char *path_beside(const char *rule_file, const char *name)
{
    const char *slash = strrchr(rule_file, '/');
    if (*name == '/' || slash == NULL)
        return dt_strdup(name);
    return dt_asprintf("%.*s/%s", (int)(slash - rule_file), rule_file, name);
}

/* --- scores of a classifier ------------------------------------------------------------------- */

struct score_rule {
    const struct dt_classifier *classifier;
    size_t label;
    bool is_most; /* the limit is the highest score, not the lowest */
    char name[64];
};

static bool apply_score(const struct dt_rule *rule, struct dt_document *document,
                        struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    const struct score_rule *own = rule->object;
    const float *scores = dt_classifier_score(own->classifier, document->text.data,
                                              document->text.size, &scratch->classifier);
    double limit = dt_rule_setting(rule, document, scratch);
    finding->value = scores ? (double)scores[own->label] : 0;
    return own->is_most ? !(finding->value > limit) : !(finding->value < limit);
}

/* The model at path, which is freed or kept. */
static int find_model(const struct dt_file_rules_context *context, char *path,
                      const struct dt_classifier **found, struct dt_error *err)
{
    struct dt_file_models *models = context->models;
    for (size_t i = 0; i < models->count; i++) {
        if (strcmp(models->items[i].path, path) == 0) {
            *found = models->items[i].classifier;
            free(path);
            return 0;
        }
    }
    DT_GROW(models->items, models->count, models->capacity);
    struct dt_file_model *model = &models->items[models->count];
    int rc = dt_classifier_read(&model->classifier, path, err);
    if (rc < 0) {
        free(path);
        return rc;
    }
    model->path = path;
    models->count++;
    *found = model->classifier;
    return dt_lineage_add_path(context->lineage, path, err);
}

/* "fasttext-LABEL", in letters that need no quotes. */
static void name_score(struct score_rule *own, const char *label)
{
    size_t size = strlen("fasttext-");
    memcpy(own->name, "fasttext-", size);
    for (; *label && size + 1 < sizeof own->name; label++)
        own->name[size++] = isalnum((unsigned char)*label) ? *label : '-';
    own->name[size] = '\0';
}

static int make_score(const struct dt_file_rules_context *context, char *arguments,
                      struct dt_rule *rule, struct dt_error *err)
{
    char *rest = arguments, *words[4] = {NULL}, *word;
    size_t count = 0;
    double limit;
    while ((word = strsep(&rest, BLANKS)) != NULL)
        if (*word && count++ < 4)
            words[count - 1] = word;
    if (count != 4 || (strcmp(words[2], "min") != 0 && strcmp(words[2], "max") != 0) ||
        dt_program_parse_real(words[3], &limit) < 0)
        return dt_fail(err, DT_EFORMAT, "'fasttext: MODEL LABEL min|max SCORE' expected");
    struct score_rule own = {.is_most = strcmp(words[2], "max") == 0};
    DT_TRY(find_model(context, path_beside(context->path, words[0]), &own.classifier, err));
    own.label = dt_classifier_find(own.classifier, words[1]);
    if (own.label == dt_classifier_labels(own.classifier))
        return dt_fail(err, DT_EMISSING, "the model '%s' has no label '%s'; it has '%s'%s",
                       words[0], words[1], dt_classifier_label(own.classifier, 0),
                       own.label > 1 ? " and others" : "");
    name_score(&own, dt_classifier_label(own.classifier, own.label));
    struct score_rule *kept = dt_alloc(1, sizeof *kept);
    *kept = own;
    *rule = (struct dt_rule){.name = kept->name,
                             .setting = limit,
                             .object = kept,
                             .group = 1,
                             .owned = kept,
                             .release = free,
                             .apply = apply_score};
    return 0;
}

/* --- lists of URLs ---------------------------------------------------------------------------- */

static bool apply_urls(const struct dt_rule *rule, struct dt_document *document,
                       struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    dt_meta_get_string(&document->meta, "url", &scratch->text);
    finding->value = dt_url_list_has(rule->object, scratch->text.data, scratch->text.size);
    return !(finding->value > dt_rule_setting(rule, document, scratch));
}

static void free_urls(void *list)
{
    dt_url_list_free(list);
}

static int make_urls(const struct dt_file_rules_context *context, char *arguments,
                     struct dt_rule *rule, struct dt_error *err)
{
    struct dt_url_list *list = NULL;
    char *path = path_beside(context->path, arguments);
    int rc = dt_url_list_read(&list, path, err);
    if (rc == 0)
        rc = dt_lineage_add_path(context->lineage, path, err);
    free(path);
    if (rc < 0) {
        dt_url_list_free(list);
        return rc;
    }
    *rule = (struct dt_rule){.name = "url-blocklist",
                             .object = list,
                             .group = 1,
                             .owned = list,
                             .release = free_urls,
                             .apply = apply_urls};
    return 0;
}

/* --- by name ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*make)(const struct dt_file_rules_context *context, char *arguments, struct dt_rule *rule,
                struct dt_error *err);
} kinds[] = {{"fasttext", make_score}, {"url-blocklist", make_urls}};
#define KINDS (sizeof kinds / sizeof *kinds)

bool dt_file_rules_has(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return true;
    return false;
}

int dt_file_rules_make(const struct dt_file_rules_context *context, const char *name,
                       char *arguments, struct dt_rule *rule, struct dt_error *err)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].make(context, arguments, rule, err);
    return dt_fail(err, DT_EMISSING, "no rule '%s' reads a file", name);
}
