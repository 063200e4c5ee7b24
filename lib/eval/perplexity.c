/* SPDX-License-Identifier: MIT */
#include "eval/perplexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/pass.h"

struct dt_scorer {
    const struct dt_model *model;
    struct dt_workspace *work;
    struct dt_batch scored;
    uint32_t eot;
    int64_t batch, length; /* windows, and tokens predicted in the longest */
    uint32_t *windows;     /* batch x (length + 1): one token of context, then those predicted */
    uint32_t *packed;      /* the same at the width of the longest that waits */
    int64_t *counts;       /* tokens predicted in each window */
    float *losses;
    int64_t waiting;
    struct dt_score score;
};

int dt_scorer_new(struct dt_scorer **result, const struct dt_model *model, uint32_t eot,
                  int64_t batch, struct dt_error *err)
{
    struct dt_scorer *s = dt_alloc(1, sizeof *s);
    *result = NULL;
    s->model = model;
    s->eot = eot;
    s->batch = batch;
    s->length = model->config.max_seq_len;
    size_t size = (size_t)(batch * (s->length + 1));
    s->windows = dt_alloc(size, sizeof *s->windows);
    s->packed = dt_alloc(size, sizeof *s->packed);
    s->losses = dt_alloc(size, sizeof *s->losses);
    s->counts = dt_alloc((size_t)batch, sizeof *s->counts);
    dt_batch_init(&s->scored, batch, s->length);
    int rc = dt_workspace_new(&s->work, model, &(struct dt_workspace_shape){batch, s->length}, err);
    if (rc < 0) {
        dt_scorer_free(s);
        return rc;
    }
    *result = s;
    return 0;
}

void dt_scorer_free(struct dt_scorer *s)
{
    if (s == NULL)
        return;
    dt_workspace_free(s->work);
    dt_batch_release(&s->scored);
    free(s->windows);
    free(s->packed);
    free(s->counts);
    free(s->losses);
    free(s);
}

static void score_waiting(struct dt_scorer *s)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < s->waiting; i++)
        longest = s->counts[i] > longest ? s->counts[i] : longest;
    if (longest == 0)
        return;
    /* Shorter windows are filled up behind their end, where causal attention
     * does not look. */
    memset(s->packed, 0, (size_t)(s->waiting * (longest + 1)) * sizeof *s->packed);
    for (int64_t i = 0; i < s->waiting; i++)
        memcpy(s->packed + i * (longest + 1), s->windows + i * (s->length + 1),
               (size_t)(s->counts[i] + 1) * sizeof *s->packed);
    dt_batch_next_token(&s->scored, s->packed, s->waiting, longest);
    dt_model_score(s->model, s->work, &s->scored, s->losses, NULL);
    for (int64_t i = 0; i < s->waiting; i++)
        for (int64_t t = 0; t < s->counts[i]; t++)
            s->score.nats += (double)s->losses[i * longest + t];
    s->waiting = 0;
}

static void add_window(struct dt_scorer *s, uint32_t context, const uint32_t *ids, int64_t count)
{
    uint32_t *window = s->windows + s->waiting * (s->length + 1);
    window[0] = context;
    memcpy(window + 1, ids, (size_t)count * sizeof *ids);
    s->counts[s->waiting++] = count;
    s->score.tokens += (uint64_t)count;
    if (s->waiting == s->batch)
        score_waiting(s);
}

void dt_scorer_add(struct dt_scorer *s, const uint32_t *ids, size_t count)
{
    size_t from = s->eot == UINT32_MAX ? 1 : 0;
    s->score.documents++;
    while (from < count) {
        size_t left = count - from, most = (size_t)s->length;
        size_t some = left < most ? left : most;
        add_window(s, from > 0 ? ids[from - 1] : s->eot, ids + from, (int64_t)some);
        from += some;
    }
}

void dt_scorer_finish(struct dt_scorer *s, struct dt_score *score)
{
    score_waiting(s);
    *score = s->score;
}
