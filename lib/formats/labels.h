/* SPDX-License-Identifier: MIT */
/* The labels of a classifier of texts, as its config.json gives them. */
#ifndef DT_FORMATS_LABELS_H
#define DT_FORMATS_LABELS_H

#include <stdint.h>

#include "base/error.h"

struct dt_document;
struct json_object;

struct dt_labels {
    long count;
    char **names;   /* id2label's; NULL: the file has none */
    int64_t pad_id; /* pad_token_id: the text ends before it (Llama); -1: none */
};

/* path: of a model's directory; count: its num_labels, or 0 of a model of tokens, which has no
 * labels. Release with dt_labels_release, also after a failure. */
int dt_labels_read(struct dt_labels *labels, const char *path, long count,
                   struct dt_error *err) DT_MUST_CHECK;
/* The labels of names, separated by commas; empty: none. DT_EINVALID: a name is empty, begins with
 * a blank, or is there twice. Release them, also after a failure. */
int dt_labels_of_names(struct dt_labels *labels, const char *names,
                       struct dt_error *err) DT_MUST_CHECK;
void dt_labels_release(struct dt_labels *labels);
/* The label of a name, or -1. */
long dt_labels_find(const struct dt_labels *labels, const char *name);
/* The label of a document: its member "label", a number from 0 or a name. path begins errors. */
int dt_labels_read_document(const struct dt_labels *labels, const struct dt_document *document,
                            const char *path, int32_t *label, struct dt_error *err) DT_MUST_CHECK;
/* Sets id2label, label2id and pad_token_id of a config.json. */
void dt_labels_add(const struct dt_labels *labels, struct json_object *config);

#endif
