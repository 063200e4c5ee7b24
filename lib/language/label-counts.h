/* SPDX-License-Identifier: MIT */
/*
 * How often a classifier gives texts their label.
 *
 *     struct dt_label_counts *counts = dt_label_counts_new(classifier);
 *     DT_TRY(dt_label_counts_add(counts, "good", text, size, err));        for each text
 *     dt_label_counts_table(counts, &buffer);
 *     dt_label_counts_free(counts);
 */
#ifndef DT_LANGUAGE_LABEL_COUNTS_H
#define DT_LANGUAGE_LABEL_COUNTS_H

#include "base/buffer.h"
#include "language/classifier.h"
#include "json/json.h"

struct dt_label_counts;

struct dt_label_counts *dt_label_counts_new(const struct dt_classifier *c); /* c is borrowed */
/* DT_EINVALID if the model does not have the label. */
int dt_label_counts_add(struct dt_label_counts *l, const char *label, const char *text, size_t size,
                        struct dt_error *err) DT_MUST_CHECK;
/* {"documents":2,"accuracy":0.5,"labels":{"good":{"documents":1,"given":2,"right":1,
 * "precision":0.5,"recall":1}, ...}}; owned by the caller. A ratio to none is null. */
struct json_object *dt_label_counts_json(const struct dt_label_counts *l);
/* Appends the same for a person. */
void dt_label_counts_table(const struct dt_label_counts *l, struct dt_buffer *text);
void dt_label_counts_free(struct dt_label_counts *l); /* NULL is fine */

#endif
