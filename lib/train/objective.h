/* SPDX-License-Identifier: MIT */
/* The training objective: next-token prediction, masked language modeling (BERT, DistilBERT),
 * classification of texts (data.labels), or another: preferences (train/preferences.h),
 * rewards (train/groups.h). */
#ifndef DT_TRAIN_OBJECTIVE_H
#define DT_TRAIN_OBJECTIVE_H

#include "model/batch.h"
#include "model/masking.h"
#include "settings/settings.h"

struct dt_objective {
    struct dt_masking *training, *validation; /* NULL: not masked language modeling */
    bool classifies, last;                    /* and dt_batch_classify's last */
    bool pairs;                               /* a row is two of length + 1 ids */
};

/* tokenizer: path of tokenizer.json, with the special tokens that are not masked; NULL: next-token
 * prediction. Release with dt_objective_release. */
int dt_objective_open(struct dt_objective *objective, const struct dt_settings *settings,
                      const char *tokenizer, struct dt_error *err) DT_MUST_CHECK;
void dt_objective_release(struct dt_objective *objective);

/* Sets inputs and targets of the batch, whose first_sample is set, from count rows of length + 1
 * ids. Masked models do not use the last id of a row: the next row begins with it. */
void dt_objective_fill(const struct dt_objective *objective, struct dt_batch *batch,
                       const uint32_t *ids, int64_t count, int64_t length);
/* For validation: a sample always has the same masked positions. */
void dt_objective_fill_validation(const struct dt_objective *objective, struct dt_batch *batch,
                                  const uint32_t *ids, int64_t count, int64_t length);

#endif
