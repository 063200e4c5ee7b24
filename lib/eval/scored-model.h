/* SPDX-License-Identifier: MIT */
/* A model under evaluation, with its tokenizer. */
#ifndef DT_EVAL_SCORED_MODEL_H
#define DT_EVAL_SCORED_MODEL_H

#include "comm/comm.h"
#include "formats/model-directory.h"
#include "token/tokenizer.h"

struct dt_scored_model {
    const char *directory; /* borrowed */
    struct dt_comm *ranks; /* that score it together, borrowed; NULL: only this process */
    struct dt_model *model;
    struct dt_tokenizer *tokenizer; /* NULL until dt_scored_model_need_tokenizer */
    struct dt_encoder *encoder;
};

/* Loads the model. context: in tokens; 0: as the model says. Release with dt_scored_model_release,
 * also after a failure. */
int dt_scored_model_open(struct dt_scored_model *subject, struct dt_device *dev,
                         struct dt_comm *ranks, long context, const char *directory,
                         struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID for a masked model, or a classifier, which give no probability of whole texts. */
int dt_scored_model_need_next_token(const struct dt_scored_model *subject,
                                    struct dt_error *err) DT_MUST_CHECK;
/* Loads the tokenizer at path; NULL: the one in the model's directory. */
int dt_scored_model_need_tokenizer(struct dt_scored_model *subject, const char *path,
                                   struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if size, the vocabulary of what, exceeds the model's. */
int dt_scored_model_check_vocabulary(const struct dt_scored_model *subject, uint32_t size,
                                     const char *what, struct dt_error *err) DT_MUST_CHECK;
void dt_scored_model_release(struct dt_scored_model *subject);

#endif
