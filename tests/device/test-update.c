/* SPDX-License-Identifier: MIT */
/* Updates of parameters other than AdamW: SGD, and weighted sums (averages of parameters). */
#include "device/matrix.h"

static void sgd_is_gradient_descent_with_momentum(void **state)
{
    (void)state;
    enum { N = 20011 };
    struct dt_tensor p = random_matrix(1, N), m = random_matrix(1, N), g = random_matrix(1, N);
    double *want_p = dt_alloc(N, sizeof *want_p), *want_m = dt_alloc(N, sizeof *want_m);
    for (int64_t i = 0; i < N; i++) {
        want_m[i] = 0.9 * at(&m, 0, i) + 0.5 * at(&g, 0, i);
        want_p[i] = at(&p, 0, i) * (1 - 0.01 * 0.1) - 0.01 * want_m[i];
    }
    float *const momentum[] = {m.data};
    dev->ops->update(dev, p.data, momentum, g.data, N,
                     &(struct dt_update){.rule = DT_UPDATE_RULE_SGD,
                                         .learning_rate = 0.01f,
                                         .momentum = 0.9f,
                                         .correction1 = 1,
                                         .correction2 = 1,
                                         .weight_decay = 0.1f,
                                         .gradient_scale = 0.5f});
    assert_near(&p, want_p, 1e-6);
    assert_near(&m, want_m, 1e-6);
    free(p.data), free(m.data), free(g.data), free(want_p), free(want_m);
}

static void lion_moves_by_the_sign_of_the_interpolated_momentum(void **state)
{
    (void)state;
    enum { N = 20011 };
    struct dt_tensor p = random_matrix(1, N), m = random_matrix(1, N), g = random_matrix(1, N);
    double *want_p = dt_alloc(N, sizeof *want_p), *want_m = dt_alloc(N, sizeof *want_m);
    ((float *)m.data)[0] = ((float *)g.data)[0] = 0;
    for (int64_t i = 0; i < N; i++) {
        double direction = 0.9 * at(&m, 0, i) + 0.1 * 0.5 * at(&g, 0, i);
        int sign = (direction > 0) - (direction < 0);
        want_m[i] = 0.99 * at(&m, 0, i) + 0.01 * 0.5 * at(&g, 0, i);
        want_p[i] = at(&p, 0, i) - 0.01 * (sign + 0.1 * at(&p, 0, i));
    }
    float *const momentum[] = {m.data};
    dev->ops->update(dev, p.data, momentum, g.data, N,
                     &(struct dt_update){.rule = DT_UPDATE_RULE_LION,
                                         .learning_rate = 0.01f,
                                         .beta1 = 0.9f,
                                         .beta2 = 0.99f,
                                         .weight_decay = 0.1f,
                                         .correction1 = 1,
                                         .correction2 = 1,
                                         .gradient_scale = 0.5f});
    assert_near(&p, want_p, 1e-6);
    assert_near(&m, want_m, 1e-6);
    free(p.data), free(m.data), free(g.data), free(want_p), free(want_m);
}

static void update_on(struct dt_device *d, const struct dt_update *how, const float *from[4],
                      float *to, int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float);
    float *there[4];
    for (int i = 0; i < 4; i++) {
        there[i] = d->ops->allocate(d, bytes);
        d->ops->upload(d, there[i], from[i], bytes);
    }
    d->ops->update(d, there[0], there + 1, there[3], n, how);
    struct dt_tensor y = dt_matrix(there[3], 1, n), x = dt_matrix(there[0], 1, n);
    d->ops->combine(d, &y, 0.999f, &x, 0.001f);
    for (int i = 0; i < 4; i++) {
        d->ops->download(d, to + i * n, there[i], bytes);
        d->ops->release(d, there[i], bytes);
    }
}

static void updates_have_the_bits_of_every_engine(void **state)
{
    enum { N = 20011 };
    struct dt_tensor x[4];
    const float *from[4];
    float *here = dt_alloc(4 * N, sizeof *here), *there = dt_alloc(4 * N, sizeof *there);
    struct dt_device *generic;
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_device_open(&generic, "cpu-generic", 1, &err), 0);
    for (int i = 0; i < 4; i++) {
        x[i] = random_matrix(1, N);
        from[i] = x[i].data;
    }
    for (int64_t j = 0; j < N; j++) /* second moments */
        ((float *)x[2].data)[j] *= ((float *)x[2].data)[j];
    for (int rule = DT_UPDATE_RULE_ADAMW; rule <= DT_UPDATE_RULE_LION; rule++) {
        const struct dt_update how = {.rule = (enum dt_update_rule)rule,
                                      .learning_rate = 3e-4f,
                                      .weight_decay = 0.1f,
                                      .gradient_scale = 0.37f,
                                      .beta1 = 0.9f,
                                      .beta2 = 0.95f,
                                      .epsilon = 1e-8f,
                                      .momentum = 0.9f,
                                      .correction1 = 0.271f,
                                      .correction2 = 0.142625f};
        update_on(dev, &how, from, here, N);
        update_on(generic, &how, from, there, N);
        assert_memory_equal(here, there, 4 * N * sizeof *here);
    }
    for (int i = 0; i < 4; i++)
        free(x[i].data);
    free(here), free(there);
    dt_device_close(generic);
}

static void check_combine(enum dt_dtype y_type, enum dt_dtype x_type, int64_t rows, int64_t n)
{
    struct dt_tensor y = random_matrix_of(y_type, rows, n), x = random_matrix_of(x_type, rows, n);
    double *want = dt_alloc((size_t)(rows * n), sizeof *want);
    for (int64_t i = 0; i < rows * n; i++)
        want[i] = 0.25 * at(&x, i / n, i % n) + 0.75 * at(&y, i / n, i % n);
    dev->ops->combine(dev, &y, 0.75f, &x, 0.25f);
    assert_near(&y, want, 1e-6);
    free(x.data), free(y.data), free(want);
}

static void combine_is_a_weighted_sum(void **state)
{
    (void)state;
    for (enum dt_dtype dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
        check_combine(dtype, dtype, 1, 20011);
        check_combine(dtype, DT_DTYPE_F32, 7, 33);
        check_combine(DT_DTYPE_F32, dtype, 7, 33);
    }
}

static void combine_with_factor_zero_does_not_read_y(void **state)
{
    (void)state;
    float y[2] = {NAN, INFINITY}, x[2] = {1, 2};
    struct dt_tensor to = dt_matrix(y, 1, 2), from = dt_matrix(x, 1, 2);
    dev->ops->combine(dev, &to, 0, &from, 3);
    assert_true(y[0] == 3 && y[1] == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(sgd_is_gradient_descent_with_momentum),
        ON_EACH_ISA(lion_moves_by_the_sign_of_the_interpolated_momentum),
        ON_EACH_ISA(updates_have_the_bits_of_every_engine),
        ON_EACH_ISA(combine_is_a_weighted_sum),
        ON_EACH_ISA(combine_with_factor_zero_does_not_read_y),
    };
    return RUN_ON_EACH_ISA(tests);
}
