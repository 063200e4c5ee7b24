/* SPDX-License-Identifier: MIT */
/* What a run learns to predict: the next token, or of masked models (BERT,
 * DistilBERT) the masked ones. */
#ifndef DT_TRAIN_OBJECTIVE_H
#define DT_TRAIN_OBJECTIVE_H

#include "model/batch.h"
#include "model/masking.h"
#include "settings/settings.h"

struct dt_objective {
    struct dt_masking *training, *validation; /* NULL: the next token */
};

/* tokenizer: the path of the file that tells masking which tokens are special; a model
 * that predicts the next token needs none (NULL). Release with dt_objective_release. */
int dt_objective_open(struct dt_objective *objective, const struct dt_settings *settings,
                      const char *tokenizer, struct dt_error *err) DT_MUST_CHECK;
void dt_objective_release(struct dt_objective *objective);

/* Fills the batch, whose first_sample is set, from count rows of length + 1 ids. Of
 * masked models' rows the last id is not used: the next row begins with it. */
void dt_objective_fill(const struct dt_objective *objective, struct dt_batch *batch,
                       const uint32_t *ids, int64_t count, int64_t length);
/* The same for validation, where the same sample is masked in the same places each time. */
void dt_objective_fill_validation(const struct dt_objective *objective, struct dt_batch *batch,
                                  const uint32_t *ids, int64_t count, int64_t length);

#endif
