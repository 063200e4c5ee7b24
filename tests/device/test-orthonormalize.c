/* SPDX-License-Identifier: MIT */
/* orthonormalize, compared with double precision. */
#include "device/matrix.h"

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Gram-Schmidt, row by row. */
static double *reference(const struct dt_tensor *x)
{
    int64_t n = x->columns;
    double *want = dt_alloc((size_t)(x->rows * n), sizeof *want);
    for (int64_t r = 0; r < x->rows; r++) {
        double *own = want + r * n;
        for (int64_t i = 0; i < n; i++)
            own[i] = at(x, r, i);
        for (int64_t before = 0; before < r; before++) {
            double part = dot(want + before * n, own, n);
            for (int64_t i = 0; i < n; i++)
                own[i] -= part * want[before * n + i];
        }
        double length = sqrt(dot(own, own, n));
        for (int64_t i = 0; i < n; i++)
            own[i] /= length;
    }
    return want;
}

static void rows_become_orthonormal(void **state)
{
    (void)state;
    const int64_t shapes[][2] = {{1, 7}, {4, 5}, {7, 1111}, {20, 100}};
    for (int s = 0; s < 4; s++) {
        struct dt_tensor x = random_matrix(shapes[s][0], shapes[s][1]);
        double *want = reference(&x);
        dev->ops->orthonormalize(dev, &x);
        assert_near(&x, want, 1e-5);
        free(want), free(x.data);
    }
}

static void orthonormalize_supports_strides(void **state)
{
    (void)state;
    struct dt_tensor whole = random_matrix(3, 50), kept = copy_of(&whole);
    struct dt_tensor x = dt_tensor_columns(&whole, 3, 40);
    double *want = reference(&x);
    dev->ops->orthonormalize(dev, &x);
    assert_near(&x, want, 1e-5);
    for (int64_t r = 0; r < 3; r++)
        assert_true(at(&whole, r, 2) == at(&kept, r, 2) && at(&whole, r, 43) == at(&kept, r, 43));
    free(want), free(whole.data), free(kept.data);
}

/* Such rows do not change the others. */
static void linearly_dependent_rows_become_zero(void **state)
{
    (void)state;
    float x[] = {0, 2, 0, 0, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 4};
    const float want[] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct dt_tensor rows = dt_matrix(x, 4, 5);
    dev->ops->orthonormalize(dev, &rows);
    for (int i = 0; i < 20; i++)
        assert_true(x[i] == want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(rows_become_orthonormal),
        ON_EACH_ISA(orthonormalize_supports_strides),
        ON_EACH_ISA(linearly_dependent_rows_become_zero),
    };
    return RUN_ON_EACH_ISA(tests);
}
