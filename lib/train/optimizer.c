/* SPDX-License-Identifier: MIT */
#include "train/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "train/schedule.h"

#define ALIGNMENT 16 /* elements, as in the table */

const char *const dt_optimizers[] = {"adamw", "sgd", "muon", NULL};

/* Embeddings and the head, before and behind the blocks, are no hidden matrices. */
static enum dt_rule rule_of(const struct dt_table *t, const struct dt_param *p, enum dt_rule wanted)
{
    bool hidden = p->rank == 2 && p->layer >= 0 && p->layer < t->layers;
    return wanted == DT_RULE_MUON && !hidden ? DT_RULE_ADAMW : wanted;
}

/* Queries, keys and values in one matrix are three to Muon. */
static int matrices_of(const struct dt_param *p)
{
    return p->role == DT_QKV_WEIGHT ? 3 : 1;
}

/* Matrix i of those that a tensor holds side by side, as a view into a flat arena. */
static struct dt_tensor matrix_of(const struct dt_param *p, float *base, int i)
{
    struct dt_tensor whole = dt_matrix(base ? base + p->offset : NULL, p->shape[0], p->shape[1]);
    int64_t rows = whole.rows / matrices_of(p), columns = whole.columns / matrices_of(p);
    return p->transposed ? dt_rows(&whole, i * rows, rows)
                         : dt_columns(&whole, i * columns, columns);
}

void dt_optimizer_init(struct dt_optimizer *o, const struct dt_table *t,
                       const struct dt_settings *settings)
{
    *o = (struct dt_optimizer){.table = t};
    o->parts = dt_alloc((size_t)t->count, sizeof *o->parts);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        o->parts[i].rule = rule_of(t, p, (enum dt_rule)settings->training.optimizer);
        o->parts[i].second = -1;
        if (o->parts[i].rule == DT_RULE_ADAMW) {
            o->parts[i].second = o->second_elements;
            o->second_elements += (p->count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        } else if (o->parts[i].rule == DT_RULE_MUON) {
            struct dt_tensor matrix = matrix_of(p, NULL, 0);
            dt_muon_count(&o->muon, matrix.rows, matrix.columns);
        }
    }
}

void dt_optimizer_release(struct dt_optimizer *o)
{
    free(o->parts);
    *o = (struct dt_optimizer){0};
}

size_t dt_optimizer_first_bytes(const struct dt_optimizer *o)
{
    return (size_t)o->table->elements * sizeof(float);
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

static void update_matrices(struct dt_optimizer *o, struct dt_device *dev, const struct dt_param *p,
                            float *parameters, float *gradients, const struct dt_muon *how)
{
    for (int i = 0; i < matrices_of(p); i++) {
        struct dt_tensor matrix = matrix_of(p, parameters, i);
        struct dt_tensor momentum = matrix_of(p, o->first, i);
        struct dt_tensor gradient = matrix_of(p, gradients, i);
        dt_muon_update(dev, &o->muon, &matrix, &momentum, &gradient, how);
    }
}

void dt_optimizer_update(struct dt_optimizer *o, struct dt_device *dev, float *parameters,
                         float *gradients, const struct dt_settings *settings, long step,
                         double gradient_scale)
{
    struct step how = step_of(settings, step, gradient_scale);
    for (int i = 0; i < o->table->count; i++) {
        const struct dt_param *p = &o->table->params[i];
        const struct dt_optimizer_part *part = &o->parts[i];
        float decay = p->decay ? (float)settings->training.weight_decay : 0;
        how.adamw.weight_decay = how.sgd.weight_decay = how.muon.weight_decay = decay;
        if (part->rule == DT_RULE_ADAMW)
            dev->ops->adamw(dev, parameters + p->offset, o->first + p->offset,
                            o->second + part->second, gradients + p->offset, p->count, &how.adamw);
        else if (part->rule == DT_RULE_SGD)
            dev->ops->sgd(dev, parameters + p->offset, o->first + p->offset, gradients + p->offset,
                          p->count, &how.sgd);
        else
            update_matrices(o, dev, p, parameters, gradients, &how.muon);
    }
}

float *dt_optimizer_second_moments(const struct dt_optimizer *o, float *moments)
{
    return moments + (o->second - o->first); /* as on the device */
}

static struct dt_named_tensor named(const struct dt_param *p, const char *suffix, float *data)
{
    struct dt_named_tensor tensor = {
        .rank = p->rank, .shape = {p->shape[0], p->shape[1]}, .data = data};
    snprintf(tensor.name, sizeof tensor.name, "%s%s", p->name, suffix);
    return tensor;
}

struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_optimizer *o, float *first,
                                                   float *second, int *count)
{
    const struct dt_table *t = o->table;
    struct dt_named_tensor *list = dt_alloc(2 * (size_t)t->count, sizeof *list);
    int n = 0;
    for (int i = 0; i < t->count; i++) {
        const char *suffix = o->parts[i].second < 0 ? ".momentum" : ".first_moment";
        list[n++] = named(&t->params[i], suffix, first + t->params[i].offset);
    }
    for (int i = 0; i < t->count; i++)
        if (o->parts[i].second >= 0)
            list[n++] = named(&t->params[i], ".second_moment", second + o->parts[i].second);
    *count = n;
    return list;
}
