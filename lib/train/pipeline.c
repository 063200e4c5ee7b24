/* SPDX-License-Identifier: MIT */
#include "train/pipeline.h"

#include "base/buffer.h"

const char *const dt_pipeline_schedules[] = {"1f1b", "afab", "interleaved", "model_parallel", NULL};

/* A list being made. */
struct making {
    const struct dt_pipeline *pipeline;
    int stage;
    int64_t batches;
    struct dt_action_list *list;
};

static void add(struct making *m, enum dt_action_kind kind, int run, int64_t batch)
{
    struct dt_action_list *l = m->list;
    DT_GROW(l->actions, l->count, l->capacity);
    l->actions[l->count++] = (struct dt_action){kind, run, batch};
}

static bool is_first(int run)
{
    return run == 0;
}

static bool is_last(const struct making *m, int run)
{
    return run == m->pipeline->stages * m->pipeline->chunks - 1;
}

static void forward(struct making *m, int chunk, int64_t batch)
{
    int run = chunk * m->pipeline->stages + m->stage;
    if (!is_first(run))
        add(m, DT_RECEIVE_INPUT, run, batch);
    add(m, DT_FORWARD, run, batch);
    if (!is_last(m, run))
        add(m, DT_SEND_OUTPUT, run, batch);
}

static void backward(struct making *m, int chunk, int64_t batch)
{
    int run = chunk * m->pipeline->stages + m->stage;
    if (!is_last(m, run))
        add(m, DT_RECEIVE_GRADIENT, run, batch);
    add(m, DT_BACKWARD, run, batch);
    if (!is_first(run))
        add(m, DT_SEND_GRADIENT, run, batch);
}

/* The chunks take turns: a group of as many micro-batches as there are stages passes one
 * chunk, then the next. The k-th pass forward of a stage: */
static void forward_turn(struct making *m, int64_t k)
{
    int stages = m->pipeline->stages, chunks = m->pipeline->chunks;
    int64_t turn = k % (stages * chunks), group = k / (stages * chunks);
    forward(m, (int)(turn / stages), group * stages + turn % stages);
}

/* Backward the last chunk comes first. */
static void backward_turn(struct making *m, int64_t k)
{
    int stages = m->pipeline->stages, chunks = m->pipeline->chunks;
    int64_t turn = k % (stages * chunks), group = k / (stages * chunks);
    backward(m, chunks - 1 - (int)(turn / stages), group * stages + turn % stages);
}

/* Passes forward of a stage before its first one backward. */
static int64_t warm_up(const struct making *m)
{
    const struct dt_pipeline *p = m->pipeline;
    int64_t passes = m->batches * p->chunks, behind = p->stages - 1 - m->stage, most = passes;
    if (p->schedule == DT_PIPELINE_MODEL_PARALLEL)
        most = 0;
    if (p->schedule == DT_PIPELINE_1F1B)
        most = behind;
    if (p->schedule == DT_PIPELINE_INTERLEAVED)
        most = 2 * behind + (int64_t)(p->chunks - 1) * p->stages;
    return most < passes ? most : passes;
}

void dt_pipeline_actions(const struct dt_pipeline *p, int stage, int64_t batches,
                         struct dt_action_list *list)
{
    struct making m = {p, stage, batches, list};
    int64_t passes = batches * p->chunks, ahead = warm_up(&m);
    list->count = 0;
    for (int64_t k = 0; k < ahead; k++)
        forward_turn(&m, k);
    for (int64_t k = ahead; k < passes; k++) {
        forward_turn(&m, k);
        backward_turn(&m, k - ahead);
    }
    for (int64_t k = passes - ahead; k < passes; k++)
        backward_turn(&m, k);
}

int dt_pipeline_check(const struct dt_pipeline *p, int64_t batches, struct dt_error *err)
{
    if (p->chunks > 1 && p->stages == 1)
        return dt_fail(err, DT_EINVALID, "several chunks of layers a stage need several stages");
    if (p->chunks > 1 && p->schedule != DT_PIPELINE_INTERLEAVED)
        return dt_fail(err, DT_EINVALID,
                       "several chunks of layers a stage need the schedule "
                       "'interleaved'");
    if (p->chunks > 1 && batches % p->stages != 0)
        return dt_fail(err, DT_EINVALID,
                       "an interleaved schedule passes micro-batches in groups of %d, one a "
                       "stage: %lld cannot be cut so",
                       p->stages, (long long)batches);
    return 0;
}

int64_t dt_pipeline_under_way(const struct dt_action_list *list, int run)
{
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct dt_action *a = &list->actions[i];
        if (a->run == run)
            now += (a->kind == DT_FORWARD) - (a->kind == DT_BACKWARD);
        most = now > most ? now : most;
    }
    return most;
}
