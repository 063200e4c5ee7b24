/* SPDX-License-Identifier: MIT */
#include "optim/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "optim/learning-rate.h"

#define ALIGNMENT 16 /* elements, as in the table */

/* Embeddings and the head, before and behind the blocks, are no hidden matrices. */
static enum dt_optimizer_kind rule_of(const struct dt_table *t, const struct dt_param *p,
                                      enum dt_optimizer_kind wanted)
{
    bool hidden = p->rank == 2 && p->layer >= 0 && p->layer < t->layers;
    return wanted == DT_OPTIMIZER_KIND_MUON && !hidden ? DT_OPTIMIZER_KIND_ADAMW : wanted;
}

/* Queries, keys and values in one matrix are three to Muon. */
static int matrices_of(const struct dt_param *p)
{
    return p->role == DT_ROLE_QKV_WEIGHT ? 3 : 1;
}

/* Matrix i of those that a tensor holds side by side. */
static struct dt_tensor matrix_of(const struct dt_param *p, float *data, int i)
{
    struct dt_tensor whole = dt_matrix(data, p->shape[0], p->shape[1]);
    int64_t rows = whole.rows / matrices_of(p), columns = whole.columns / matrices_of(p);
    return p->transposed ? dt_tensor_rows(&whole, i * rows, rows)
                         : dt_tensor_columns(&whole, i * columns, columns);
}

static int64_t aligned(int64_t count)
{
    return (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* What is kept of a tensor; from, at and second are the next free places. */
static struct dt_segment segment_of(const struct dt_table *t, int i, const struct dt_range *kept)
{
    const struct dt_param *p = &t->params[i];
    int64_t first = p->offset, end = p->offset + p->count;
    if (kept) {
        const struct dt_range *run = &kept[p->bucket];
        first = run->first > first ? run->first : first;
        end = run->end < end ? run->end : end;
    }
    return (struct dt_segment){
        .param = i, .first = first - p->offset, .count = end - first, .second = -1};
}

static void add_segment(struct dt_optimizer *o, struct dt_segment s, const struct dt_range *kept)
{
    const struct dt_param *p = &o->table->params[s.param];
    assert(s.rule != DT_OPTIMIZER_KIND_MUON || s.count == p->full[0] * p->full[1]);
    int64_t begin = kept ? kept[p->bucket].first : o->table->buckets[p->bucket];
    s.from = p->offset + s.first - begin;
    s.at = o->first_elements;
    o->first_elements += aligned(s.count);
    if (s.rule == DT_OPTIMIZER_KIND_ADAMW) {
        s.second = o->second_elements;
        o->second_elements += aligned(s.count);
    } else if (s.rule == DT_OPTIMIZER_KIND_MUON) {
        struct dt_tensor matrix = matrix_of(p, NULL, 0);
        dt_muon_count(&o->muon, matrix.rows, matrix.columns);
    }
    o->segments[o->count++] = s;
}

void dt_optimizer_init(struct dt_optimizer *o, const struct dt_table *t,
                       const struct dt_range *kept, const struct dt_settings *settings)
{
    *o = (struct dt_optimizer){.table = t,
                               .wanted = (enum dt_optimizer_kind)settings->training.optimizer};
    o->segments = dt_alloc((size_t)t->count, sizeof *o->segments);
    for (int i = 0; i < t->count; i++) {
        struct dt_segment s = segment_of(t, i, kept);
        s.rule = rule_of(t, &t->params[i], o->wanted);
        if (s.count > 0)
            add_segment(o, s, kept);
    }
}

void dt_optimizer_release(struct dt_optimizer *o)
{
    free(o->segments);
    *o = (struct dt_optimizer){0};
}

size_t dt_optimizer_first_bytes(const struct dt_optimizer *o)
{
    return (size_t)o->first_elements * sizeof(float);
}

size_t dt_optimizer_second_bytes(const struct dt_optimizer *o)
{
    return (size_t)o->second_elements * sizeof(float);
}

void dt_optimizer_layout_moments(struct dt_optimizer *o, struct dt_arena *arena)
{
    o->first = dt_arena_take(arena, dt_optimizer_first_bytes(o));
    o->second = dt_arena_take(arena, dt_optimizer_second_bytes(o));
}

void dt_optimizer_layout_scratch(struct dt_optimizer *o, struct dt_arena *arena)
{
    if (o->muon.elements > 0)
        dt_muon_layout(&o->muon, arena);
}

/* What one step does with every tensor. */
struct step {
    struct dt_adamw adamw;
    struct dt_sgd sgd;
    struct dt_muon muon;
};

static struct step step_of(const struct dt_settings *s, long step, double gradient_scale)
{
    double t = (double)step + 1;
    float rate = (float)dt_learning_rate(s, step), scale = (float)gradient_scale;
    float momentum = (float)s->training.momentum;
    return (struct step){
        .adamw = {.learning_rate = rate,
                  .beta1 = (float)s->training.beta1,
                  .beta2 = (float)s->training.beta2,
                  .epsilon = (float)s->training.epsilon,
                  .correction1 = (float)(1 - pow(s->training.beta1, t)),
                  .correction2 = (float)(1 - pow(s->training.beta2, t)),
                  .gradient_scale = scale},
        .sgd = {.learning_rate = rate, .momentum = momentum, .gradient_scale = scale},
        .muon = {.learning_rate = rate, .momentum = momentum, .gradient_scale = scale},
    };
}

static void update_matrices(struct dt_optimizer *o, struct dt_device *dev,
                            const struct dt_segment *s, float *parameters, float *gradients,
                            const struct dt_muon *how)
{
    const struct dt_param *p = &o->table->params[s->param];
    for (int i = 0; i < matrices_of(p); i++) {
        struct dt_tensor matrix = matrix_of(p, parameters, i);
        struct dt_tensor momentum = matrix_of(p, o->first + s->at, i);
        struct dt_tensor gradient = matrix_of(p, gradients, i);
        dt_muon_update(dev, &o->muon, &matrix, &momentum, &gradient, how);
    }
}

void dt_optimizer_update(struct dt_optimizer *o, struct dt_device *dev, float *const *parameters,
                         float *const *gradients, const struct dt_settings *settings, long step,
                         double gradient_scale)
{
    struct step how = step_of(settings, step, gradient_scale);
    for (int i = 0; i < o->count; i++) {
        const struct dt_segment *s = &o->segments[i];
        const struct dt_param *p = &o->table->params[s->param];
        float decay = p->decay ? (float)settings->training.weight_decay : 0;
        float *values = parameters[p->bucket] + s->from, *gradient = gradients[p->bucket] + s->from;
        how.adamw.weight_decay = how.sgd.weight_decay = how.muon.weight_decay = decay;
        if (s->rule == DT_OPTIMIZER_KIND_ADAMW)
            dev->ops->adamw(dev, values, o->first + s->at, o->second + s->second, gradient,
                            s->count, &how.adamw);
        else if (s->rule == DT_OPTIMIZER_KIND_SGD)
            dev->ops->sgd(dev, values, o->first + s->at, gradient, s->count, &how.sgd);
        else
            update_matrices(o, dev, s, values, gradient, &how.muon);
    }
}

static struct dt_named_tensor named(const struct dt_param *p, const char *suffix)
{
    struct dt_named_tensor tensor = {.rank = p->rank, .shape = {p->shape[0], p->shape[1]}};
    snprintf(tensor.name, sizeof tensor.name, "%s%s", p->name, suffix);
    return tensor;
}

struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_table *t,
                                                   enum dt_optimizer_kind wanted, int **seconds,
                                                   int *count)
{
    struct dt_named_tensor *list = dt_alloc(2 * (size_t)t->count, sizeof *list);
    *seconds = dt_alloc((size_t)t->count, sizeof **seconds);
    *count = t->count;
    for (int i = 0; i < t->count; i++) {
        bool both = rule_of(t, &t->params[i], wanted) == DT_OPTIMIZER_KIND_ADAMW;
        list[i] = named(&t->params[i], both ? ".first_moment" : ".momentum");
        (*seconds)[i] = both ? *count : -1;
        if (both)
            list[(*count)++] = named(&t->params[i], ".second_moment");
    }
    return list;
}
