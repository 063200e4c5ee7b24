/* SPDX-License-Identifier: MIT */
#include "language/label-counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "json/json-number.h"

struct count {
    uint64_t documents, given, right;
};

struct dt_label_counts {
    const struct dt_classifier *classifier;
    struct dt_classifier_scratch scratch;
    struct count all, *labels;
};

struct dt_label_counts *dt_label_counts_new(const struct dt_classifier *c)
{
    struct dt_label_counts *l = dt_alloc(1, sizeof *l);
    l->classifier = c;
    l->labels = dt_alloc(dt_classifier_labels(c), sizeof *l->labels);
    return l;
}

void dt_label_counts_free(struct dt_label_counts *l)
{
    if (l == NULL)
        return;
    dt_classifier_scratch_release(&l->scratch);
    free(l->labels);
    free(l);
}

int dt_label_counts_add(struct dt_label_counts *l, const char *label, const char *text, size_t size,
                        struct dt_error *err)
{
    size_t place = dt_classifier_find(l->classifier, label);
    if (place == dt_classifier_labels(l->classifier))
        return dt_fail(err, DT_EINVALID, "the model does not have the label '%s'", label);
    const float *scores = dt_classifier_score(l->classifier, text, size, &l->scratch);
    l->labels[place].documents++;
    l->all.documents++;
    if (scores == NULL) /* nothing that the model knows: no label */
        return 0;
    size_t best = dt_classifier_best(l->classifier, scores);
    l->labels[best].given++;
    l->labels[place].right += best == place;
    l->all.given++;
    l->all.right += best == place;
    return 0;
}

static double ratio(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : NAN;
}

static struct json_object *count_json(const struct count *c)
{
    struct json_object *json = dt_json_new_object();
    dt_json_object_add(json, "documents", dt_json_new_uint(c->documents));
    dt_json_object_add(json, "given", dt_json_new_uint(c->given));
    dt_json_object_add(json, "right", dt_json_new_uint(c->right));
    dt_json_object_add(json, "precision", dt_json_number(ratio(c->right, c->given)));
    dt_json_object_add(json, "recall", dt_json_number(ratio(c->right, c->documents)));
    return json;
}

struct json_object *dt_label_counts_json(const struct dt_label_counts *l)
{
    struct json_object *json = dt_json_new_object(), *labels = dt_json_new_object();
    for (size_t i = 0; i < dt_classifier_labels(l->classifier); i++)
        dt_json_object_add(labels, dt_classifier_label(l->classifier, i),
                           count_json(&l->labels[i]));
    dt_json_object_add(json, "documents", dt_json_new_uint(l->all.documents));
    dt_json_object_add(json, "accuracy", dt_json_number(ratio(l->all.right, l->all.documents)));
    dt_json_object_add(json, "labels", labels);
    return json;
}

/* "-" for a ratio to none. */
static void add_ratio(struct dt_buffer *text, double x)
{
    if (isnan(x))
        dt_buffer_printf(text, " %9s", "-");
    else
        dt_buffer_printf(text, " %9.4f", x);
}

static void add_line(struct dt_buffer *text, const char *name, const struct count *c)
{
    dt_buffer_printf(text, "%-20s %9" PRIu64 " %9" PRIu64, name, c->documents, c->given);
    add_ratio(text, ratio(c->right, c->given));
    add_ratio(text, ratio(c->right, c->documents));
    dt_buffer_add_string(text, "\n");
}

void dt_label_counts_table(const struct dt_label_counts *l, struct dt_buffer *text)
{
    dt_buffer_printf(text, "%-20s %9s %9s %9s %9s\n", "label", "documents", "given", "precision",
                     "recall");
    for (size_t i = 0; i < dt_classifier_labels(l->classifier); i++)
        add_line(text, dt_classifier_label(l->classifier, i), &l->labels[i]);
    add_line(text, "all", &l->all);
}
