/* SPDX-License-Identifier: MIT */
#include "optim/muon.h"

#include <math.h>

#define STEPS   5
#define EPSILON 1e-7 /* lower bound of the norm that a matrix is divided by */

/* Coefficients of x, x^3 and x^5 (Jordan 2024), with the steepest slope at 0. */
static const float quintic[3] = {3.4445f, -4.7750f, 2.0315f};

void dt_muon_count(struct dt_muon_scratch *s, int64_t rows, int64_t columns)
{
    int64_t side = rows < columns ? rows : columns;
    s->elements = rows * columns > s->elements ? rows * columns : s->elements;
    s->side = side > s->side ? side : s->side;
}

void dt_muon_layout(struct dt_muon_scratch *s, struct dt_arena *arena)
{
    s->matrix = dt_arena_matrix(arena, 1, s->elements).data;
    s->next = dt_arena_matrix(arena, 1, s->elements).data;
    s->gram = dt_arena_matrix(arena, s->side, s->side).data;
    s->polynomial = dt_arena_matrix(arena, s->side, s->side).data;
}

static void swap(struct dt_muon_scratch *s)
{
    float *matrix = s->matrix;
    s->matrix = s->next;
    s->next = matrix;
}

/* Divides the matrix by its Frobenius norm, so that no singular value is above 1. */
static void normalize(struct dt_device *dev, struct dt_muon_scratch *s, int64_t rows,
                      int64_t columns)
{
    double norm = sqrt(dev->ops->sum_squares(dev, s->matrix, rows * columns));
    struct dt_tensor x = dt_matrix(s->matrix, rows, columns), y = dt_matrix(s->next, rows, columns);
    dev->ops->combine(dev, &y, 0, &x, (float)(1 / fmax(norm, EPSILON)));
    swap(s);
}

/* One step: X = a X + (b G + c G^2) X with G = X X', or X = a X + X (b G + c G^2) with
 * G = X' X if that is smaller. */
static void newton_schulz(struct dt_device *dev, struct dt_muon_scratch *s, int64_t rows,
                          int64_t columns)
{
    const struct dt_ops *ops = dev->ops;
    bool wide = rows <= columns;
    int64_t side = wide ? rows : columns;
    struct dt_tensor x = dt_matrix(s->matrix, rows, columns), y = dt_matrix(s->next, rows, columns);
    struct dt_tensor gram = dt_matrix(s->gram, side, side);
    struct dt_tensor sum = dt_matrix(s->polynomial, side, side);
    const struct dt_matmul square = {.transpose_a = !wide, .transpose_b = wide, .replicated = true};
    const struct dt_matmul plain = {.replicated = true};
    ops->matmul(dev, &gram, &x, &x, &square);
    ops->matmul(dev, &sum, &gram, &gram, &plain);
    ops->combine(dev, &sum, quintic[2], &gram, quintic[1]);
    ops->matmul(dev, &y, wide ? &sum : &x, wide ? &x : &sum, &plain);
    ops->combine(dev, &y, 1, &x, quintic[0]);
    swap(s);
}

struct dt_tensor dt_muon_orthogonalize(struct dt_device *dev, struct dt_muon_scratch *s,
                                       int64_t rows, int64_t columns)
{
    normalize(dev, s, rows, columns);
    for (int i = 0; i < STEPS; i++)
        newton_schulz(dev, s, rows, columns);
    return dt_matrix(s->matrix, rows, columns);
}

void dt_muon_update(struct dt_device *dev, struct dt_muon_scratch *s, struct dt_tensor *parameters,
                    struct dt_tensor *momentum, const struct dt_tensor *gradient,
                    const struct dt_update *how)
{
    const struct dt_ops *ops = dev->ops;
    int64_t rows = parameters->rows, columns = parameters->columns;
    struct dt_tensor x = dt_matrix(s->matrix, rows, columns);
    float fresh = (1 - how->momentum) * how->gradient_scale;
    float size = 0.2f * sqrtf((float)(rows > columns ? rows : columns));
    ops->combine(dev, momentum, how->momentum, gradient, fresh);
    ops->combine(dev, &x, 0, momentum, how->momentum);
    ops->combine(dev, &x, 1, gradient, fresh);
    x = dt_muon_orthogonalize(dev, s, rows, columns);
    ops->combine(dev, parameters, 1 - how->learning_rate * how->weight_decay, &x,
                 -how->learning_rate * size);
}
