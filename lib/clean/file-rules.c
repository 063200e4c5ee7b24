/* SPDX-License-Identifier: MIT */
#include "clean/file-rules.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "clean/rule-setting.h"
#include "clean/url-list.h"
#include "io/lineage.h"
#include "json/meta.h"

#define BLANKS " \t\r"
#define NAME   64 /* bytes of a rule's name */

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
    char name[NAME];
};

static bool apply_score(const struct dt_rule *rule, struct dt_document *document,
                        struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    const struct score_rule *own = rule->object;
    const float *scores = dt_classifier_score(own->classifier, document->text.data,
                                              document->text.size, &scratch->classifier);
    double limit = dt_rule_setting(rule, document, scratch);
    char text[DT_RULE_SCORE];
    finding->value = dt_rule_score(scores ? scores[own->label] : 0, text);
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

/* PREFIX and LABEL, in letters that need no quotes. */
static void name_rule(char name[NAME], const char *prefix, const char *label)
{
    size_t size = strlen(prefix);
    memcpy(name, prefix, size);
    for (; *label && size + 1 < NAME; label++)
        name[size++] = isalnum((unsigned char)*label) ? *label : '-';
    name[size] = '\0';
}

/* Splits "WORD ... min|max X" into count words before min or max, the limit, and which of both. */
static bool parse_limit(char *arguments, char **words, size_t count, bool *is_most, double *limit)
{
    char *rest = arguments, *word, *all[8] = {NULL};
    size_t n = 0;
    while ((word = strsep(&rest, BLANKS)) != NULL)
        if (*word && n++ < 8)
            all[n - 1] = word;
    if (n != count + 2 || dt_program_parse_real(all[count + 1], limit) < 0)
        return false;
    memcpy(words, all, count * sizeof *words);
    *is_most = strcmp(all[count], "max") == 0;
    return *is_most || strcmp(all[count], "min") == 0;
}

static int make_score(const struct dt_file_rules_context *context, char *arguments,
                      struct dt_rule *rule, struct dt_error *err)
{
    struct score_rule own = {0};
    char *words[2];
    double limit;
    if (!parse_limit(arguments, words, 2, &own.is_most, &limit))
        return dt_fail(err, DT_EFORMAT, "'fasttext: MODEL LABEL min|max SCORE' expected");
    DT_TRY(find_model(context, path_beside(context->path, words[0]), &own.classifier, err));
    own.label = dt_classifier_find(own.classifier, words[1]);
    if (own.label == dt_classifier_labels(own.classifier))
        return dt_fail(err, DT_EMISSING, "the model '%s' has no label '%s'; it has '%s'%s",
                       words[0], words[1], dt_classifier_label(own.classifier, 0),
                       own.label > 1 ? " and others" : "");
    name_rule(own.name, "fasttext-", dt_classifier_label(own.classifier, own.label));
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

/* --- numbers in meta -------------------------------------------------------------------------- */

struct meta_rule {
    bool is_most;
    char name[NAME];
    char member[]; /* of meta */
};

/* A document without the number is not kept: its value is -1. */
static bool apply_meta(const struct dt_rule *rule, struct dt_document *document,
                       struct dt_rule_scratch *scratch, struct dt_finding *finding)
{
    const struct meta_rule *own = rule->object;
    double value = dt_meta_get_number(&document->meta, own->member, NAN);
    double limit = dt_rule_setting(rule, document, scratch);
    finding->value = isnan(value) ? -1 : value;
    if (isnan(limit))
        return true;
    return own->is_most ? value <= limit : value >= limit;
}

static int make_meta(const struct dt_file_rules_context *context, char *arguments,
                     struct dt_rule *rule, struct dt_error *err)
{
    char *member;
    double limit;
    bool is_most;
    (void)context;
    if (!parse_limit(arguments, &member, 1, &is_most, &limit))
        return dt_fail(err, DT_EFORMAT, "'meta: NAME min|max NUMBER' expected");
    struct meta_rule *own = dt_alloc(1, sizeof *own + strlen(member) + 1);
    own->is_most = is_most;
    strcpy(own->member, member);
    name_rule(own->name, is_most ? "meta-max-" : "meta-min-", member);
    *rule = (struct dt_rule){.name = own->name,
                             .setting = limit,
                             .object = own,
                             .group = 1,
                             .owned = own,
                             .release = free,
                             .apply = apply_meta};
    return 0;
}

/* --- by name ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*make)(const struct dt_file_rules_context *context, char *arguments, struct dt_rule *rule,
                struct dt_error *err);
} kinds[] = {{"fasttext", make_score}, {"url-blocklist", make_urls}, {"meta", make_meta}};
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
