/* SPDX-License-Identifier: MIT */
#include "train/objective.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

static uint8_t *list_flags(const struct dt_tokenizer *t)
{
    uint32_t count = dt_tokenizer_size(t);
    uint8_t *flags = dt_alloc(count, sizeof *flags);
    for (uint32_t id = 0; id < count; id++)
        flags[id] = (uint8_t)((dt_tokenizer_is_special(t, id) ? DT_ID_SPECIAL : 0) |
                              (dt_tokenizer_continues_word(t, id) ? DT_ID_CONTINUES : 0));
    return flags;
}

static int open_masking(struct dt_objective *o, const struct dt_settings *s,
                        const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    uint8_t *flags = list_flags(t);
    struct dt_masking_options options = {
        .flags = flags,
        .count = dt_tokenizer_size(t),
        .mask = dt_tokenizer_find_mask(t),
        .rate = s->data.mask_rate,
        .whole_words = s->data.mask_whole_words,
        .seed = (uint64_t)s->training.seed,
    };
    int rc = 0;
    if (options.mask == DT_NO_TOKEN)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: no token [MASK], <mask> or <|mask|>, which masked models need", path);
    rc = rc < 0 ? rc : dt_masking_new(&o->training, &options, err);
    options.seed = 0;
    rc = rc < 0 ? rc : dt_masking_new(&o->validation, &options, err);
    free(flags);
    return rc;
}

int dt_objective_open(struct dt_objective *o, const struct dt_settings *s, const char *path,
                      struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    bool masked = dt_model_is_masked(&s->model);
    *o = (struct dt_objective){.classifies = s->model.num_labels > 0,
                               .last = !masked,
                               .pairs = s->training.objective == DT_TRAINING_OBJECTIVE_DPO};
    if (!masked || o->classifies)
        return 0;
    if (path == NULL)
        return dt_fail(err, DT_EINVALID, "a model of the family '%s' needs the data's tokenizer",
                       dt_family_names[s->model.family]);
    DT_TRY(dt_tokenizer_load(&tokenizer, path, err));
    int rc = open_masking(o, s, tokenizer, path, err);
    dt_tokenizer_free(tokenizer);
    return rc;
}

void dt_objective_release(struct dt_objective *o)
{
    dt_masking_free(o->training);
    dt_masking_free(o->validation);
    *o = (struct dt_objective){0};
}

static void fill(const struct dt_objective *o, const struct dt_masking *masking,
                 struct dt_batch *batch, const uint32_t *ids, int64_t count, int64_t length)
{
    if (o->pairs)
        dt_batch_next_token(batch, ids, 2 * count, length);
    else if (o->classifies)
        dt_batch_classify(batch, ids, count, length, o->last);
    else if (masking)
        dt_batch_mask(batch, masking, ids, count, length, length + 1);
    else
        dt_batch_next_token(batch, ids, count, length);
}

void dt_objective_fill(const struct dt_objective *o, struct dt_batch *batch, const uint32_t *ids,
                       int64_t count, int64_t length)
{
    fill(o, o->training, batch, ids, count, length);
}

void dt_objective_fill_validation(const struct dt_objective *o, struct dt_batch *batch,
                                  const uint32_t *ids, int64_t count, int64_t length)
{
    fill(o, o->validation, batch, ids, count, length);
}
