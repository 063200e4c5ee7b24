/* SPDX-License-Identifier: MIT */
#include "eval/scored-model.h"
#include "tokenizer-files/tokenizer-files.h"

int dt_scored_model_open(struct dt_scored_model *s, struct dt_device *dev, struct dt_comm *ranks,
                         long context, const char *directory, struct dt_error *err)
{
    *s = (struct dt_scored_model){.directory = directory, .ranks = ranks};
    return dt_model_load_as(&s->model, dev, (struct dt_model_use){.context = context}, directory,
                            err);
}

int dt_scored_model_need_next_token(const struct dt_scored_model *s, struct dt_error *err)
{
    DT_TRY(dt_model_need_tokens(&s->model->config, s->directory, err));
    if (!dt_model_is_masked(&s->model->config))
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: a model of the family '%s' is a masked model, which gives no "
                   "probability of text",
                   s->directory, dt_family_names[s->model->config.family]);
}

int dt_scored_model_check_vocabulary(const struct dt_scored_model *s, uint32_t size,
                                     const char *what, struct dt_error *err)
{
    if (size <= (uint32_t)s->model->config.vocab_size)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model in %s only %ld", what, size,
                   s->directory, s->model->config.vocab_size);
}

int dt_scored_model_need_tokenizer(struct dt_scored_model *s, const char *path,
                                   struct dt_error *err)
{
    const char *from = path ? path : s->directory;
    DT_TRY(dt_tokenizer_load_for_model(&s->tokenizer, path, s->directory, err));
    DT_TRY(dt_scored_model_check_vocabulary(s, dt_tokenizer_size(s->tokenizer), from, err));
    if (path && (s->ranks == NULL || dt_comm_rank(s->ranks) == 0))
        dt_tokenizer_warn_of_other(s->tokenizer, path, s->directory);
    s->encoder = dt_encoder_new(s->tokenizer);
    return 0;
}

void dt_scored_model_release(struct dt_scored_model *s)
{
    dt_encoder_free(s->encoder);
    dt_tokenizer_free(s->tokenizer);
    dt_model_free(s->model);
    *s = (struct dt_scored_model){0};
}
