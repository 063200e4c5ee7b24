/* SPDX-License-Identifier: MIT */
/* Norms of rows, and their backward passes. */
#include "device/matrix.h"

struct norm {
    struct dt_tensor x, weight, bias, r;
    float offset; /* of RMS norm's weights */
};

static void norm_reference(const struct norm *l, double *y)
{
    int64_t n = l->x.columns;
    for (int64_t i = 0; i < l->x.rows; i++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; j++)
            mean += at(&l->x, i, j) / (double)n;
        for (int64_t j = 0; j < n; j++)
            variance += pow(at(&l->x, i, j) - mean, 2) / (double)n;
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] = (at(&l->x, i, j) - mean) / sqrt(variance + 1e-5) * at(&l->weight, 0, j) +
                           at(&l->bias, 0, j);
    }
}

static double norm_loss(void *context)
{
    struct norm *l = context;
    int64_t count = l->x.rows * l->x.columns;
    double sum = 0, *y = dt_alloc((size_t)count, sizeof *y);
    norm_reference(l, y);
    for (int64_t i = 0; i < count; i++)
        sum += y[i] * ((float *)l->r.data)[i];
    free(y);
    return sum;
}

static void norm_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    const int64_t rows = 5, n = 37;
    struct norm l = {random_matrix(rows, n), random_matrix(1, n), random_matrix(1, n),
                     random_matrix(rows, n)};
    struct dt_tensor a = random_matrix(rows, n), b = random_matrix(rows, n);
    struct dt_tensor y = random_matrix(rows, n), stats = random_matrix(rows, 2);
    dev->ops->norm_forward(dev, &y, &stats, &l.x, &a, &b, &l.weight, &l.bias, 1e-5f);
    for (int64_t i = 0; i < rows * n; i++)
        assert_true(((float *)l.x.data)[i] == ((float *)a.data)[i] + ((float *)b.data)[i]);
    double *want = dt_alloc((size_t)(rows * n), sizeof *want);
    norm_reference(&l, want);
    assert_near(&y, want, 1e-6);
    struct dt_tensor dx = random_matrix(rows, n), dw = random_matrix(1, n),
                     db = random_matrix(1, n);
    dev->ops->zero(dev, &dx), dev->ops->zero(dev, &dw), dev->ops->zero(dev, &db);
    dev->ops->norm_backward(dev, &dx, &dw, &db, &l.r, &l.x, &l.weight, &stats, 1);
    assert_gradient(&dx, &l.x, norm_loss, &l);
    assert_gradient(&dw, &l.weight, norm_loss, &l);
    assert_gradient(&db, &l.bias, norm_loss, &l);
    struct dt_tensor twice = random_matrix(rows, n);
    memcpy(twice.data, dx.data, (size_t)(rows * n) * sizeof(float));
    dev->ops->norm_backward(dev, &twice, &dw, &db, &l.r, &l.x, &l.weight, &stats, 1);
    for (int64_t i = 0; i < rows * n; i++) /* it adds */
        want[i] = 2.0 * ((float *)dx.data)[i];
    assert_near(&twice, want, 1e-5);
    struct dt_tensor *all[] = {&l.x, &l.weight, &l.bias, &l.r, &a,  &b,
                               &y,   &stats,    &dx,     &dw,  &db, &twice};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
    free(want);
}

static double rms_norm_loss(void *context)
{
    struct norm *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->x.rows; i++) {
        double squares = 0;
        for (int64_t j = 0; j < l->x.columns; j++)
            squares += pow(at(&l->x, i, j), 2) / (double)l->x.columns;
        for (int64_t j = 0; j < l->x.columns; j++)
            sum += at(&l->x, i, j) / sqrt(squares + 1e-5) *
                   ((double)l->offset + at(&l->weight, 0, j)) * at(&l->r, i, j);
    }
    return sum;
}

/* The loss is linear in r: its derivative by r is the norm's output. */
static void check_rms_norm(float offset)
{
    const int64_t rows = 5, n = 37;
    struct norm l = {.x = random_matrix(rows, n),
                     .weight = random_matrix(1, n),
                     .r = random_matrix(rows, n),
                     .offset = offset};
    struct dt_tensor a = random_matrix(rows, n), b = random_matrix(rows, n);
    struct dt_tensor y = random_matrix(rows, n), rstd = random_matrix(rows, 1);
    dev->ops->rms_norm_forward(dev, &y, &rstd, &l.x, &a, &b, &l.weight, offset, 1e-5f);
    for (int64_t i = 0; i < rows * n; i++)
        assert_true(((float *)l.x.data)[i] == ((float *)a.data)[i] + ((float *)b.data)[i]);
    assert_gradient(&y, &l.r, rms_norm_loss, &l);
    struct dt_tensor dx = random_matrix(rows, n), dw = random_matrix(1, n);
    dev->ops->zero(dev, &dx), dev->ops->zero(dev, &dw);
    dev->ops->rms_norm_backward(dev, &dx, &dw, &l.r, &l.x, &l.weight, offset, &rstd, 1);
    assert_gradient(&dx, &l.x, rms_norm_loss, &l);
    assert_gradient(&dw, &l.weight, rms_norm_loss, &l);
    double *want = dt_alloc((size_t)(rows * n), sizeof *want);
    for (int64_t i = 0; i < rows * n; i++) /* it adds */
        want[i] = 2.0 * ((float *)dx.data)[i];
    dev->ops->rms_norm_backward(dev, &dx, &dw, &l.r, &l.x, &l.weight, offset, &rstd, 1);
    assert_near(&dx, want, 1e-5);
    struct dt_tensor *all[] = {&l.x, &l.weight, &l.r, &a, &b, &y, &rstd, &dx, &dw};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
    free(want);
}

static void rms_norm_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    check_rms_norm(0);
    check_rms_norm(1);
}

/* G groups in a row have the bits of G rows. */
static void rms_norm_normalizes_groups_separately(void **state)
{
    (void)state;
    enum { ROWS = 5, GROUPS = 3, N = 19 };
    struct dt_tensor x = random_matrix(ROWS, GROUPS * N), dy = random_matrix(ROWS, GROUPS * N);
    struct dt_tensor weight = random_matrix(1, N);
    struct dt_tensor y[2], rstd[2], dx[2], dw[2];
    for (int i = 0; i < 2; i++) { /* in groups, then as rows */
        int rows = i == 0 ? ROWS : ROWS * GROUPS, n = ROWS * GROUPS * N / rows;
        struct dt_tensor in = dt_matrix(x.data, rows, n), out = dt_matrix(dy.data, rows, n);
        y[i] = random_matrix(rows, n), rstd[i] = random_matrix(rows, n / N);
        dx[i] = random_matrix(rows, n), dw[i] = random_matrix(1, N);
        dev->ops->zero(dev, &dx[i]), dev->ops->zero(dev, &dw[i]);
        dev->ops->rms_norm_forward(dev, &y[i], &rstd[i], &in, &in, NULL, &weight, 0, 1e-5f);
        dev->ops->rms_norm_backward(dev, &dx[i], &dw[i], &out, &in, &weight, 0, &rstd[i], 1);
    }
    assert_memory_equal(y[0].data, y[1].data, ROWS * GROUPS * N * sizeof(float));
    assert_memory_equal(rstd[0].data, rstd[1].data, ROWS * GROUPS * sizeof(float));
    assert_memory_equal(dx[0].data, dx[1].data, ROWS * GROUPS * N * sizeof(float));
    double want[N]; /* of another order: dt-arithmetic(7) */
    for (int j = 0; j < N; j++)
        want[j] = at(&dw[1], 0, j);
    assert_near(&dw[0], want, 1e-6);
    for (int i = 0; i < 2; i++)
        free(y[i].data), free(rstd[i].data), free(dx[i].data), free(dw[i].data);
    free(x.data), free(dy.data), free(weight.data);
}

/* Stride 0: BERT's token types, added to every row. */
static void the_added_row_may_be_broadcast(void **state)
{
    (void)state;
    struct dt_tensor x = random_matrix(4, 19), add = random_matrix(1, 19), y = random_matrix(4, 19);
    struct dt_tensor sum = random_matrix(4, 19), stats = random_matrix(4, 2);
    struct dt_tensor weight = random_matrix(1, 19), bias = random_matrix(1, 19);
    add.rows = 4, add.stride = 0;
    dev->ops->norm_forward(dev, &y, &stats, &sum, &x, &add, &weight, &bias, 1e-5f);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 19; j++)
            assert_true(at(&sum, i, j) == at(&x, i, j) + ((float *)add.data)[j]);
    free(x.data), free(add.data), free(y.data), free(sum.data), free(stats.data);
    free(weight.data), free(bias.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(norm_and_its_backward_match_the_reference),
        ON_EACH_ISA(rms_norm_and_its_backward_match_the_reference),
        ON_EACH_ISA(rms_norm_normalizes_groups_separately),
        ON_EACH_ISA(the_added_row_may_be_broadcast),
    };
    return RUN_ON_EACH_ISA(tests);
}
