/* SPDX-License-Identifier: MIT */
/* Products, biases and activations, compared with plain loops. */
#include "device/activation-reference.h"
#include "device/matrix.h"

/* op(x) in double precision, row by row. */
static double *doubles_of(const struct dt_tensor *x, bool transpose)
{
    double *y = dt_alloc((size_t)(x->rows * x->columns), sizeof *y);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++)
            y[transpose ? j * x->rows + i : i * x->columns + j] = at(x, i, j);
    return y;
}

static void matmul_reference(double *c, const struct dt_tensor *a, const struct dt_tensor *b,
                             const struct dt_matmul *how, int64_t m, int64_t n, int64_t k)
{
    double *x = doubles_of(a, how->transpose_a), *y = doubles_of(b, how->transpose_b);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = how->bias ? at(how->bias, 0, j) : 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += x[i * k + p] * y[p * n + j];
    }
    free(x), free(y);
}

/* sums_a or sums_b: adds the sum of the operand's rows, and does not change the product. */
static void check_sums(const struct dt_tensor *a, const struct dt_tensor *b, struct dt_tensor *c,
                       const struct dt_matmul *plain, bool of_a)
{
    const struct dt_tensor *x = of_a ? a : b;
    struct dt_tensor alone = new_matrix(c->dtype, c->rows, c->columns);
    struct dt_tensor before = new_matrix(c->dtype, c->rows, c->columns);
    struct dt_tensor sums = random_matrix_of(DT_DTYPE_F32, 1, x->columns);
    double *want = dt_alloc((size_t)x->columns, sizeof *want);
    struct dt_matmul how = *plain;
    for (int64_t j = 0; j < x->columns; j++)
        want[j] = at(&sums, 0, j);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++)
            want[j] += at(x, i, j);
    dev->ops->copy(dev, &before, c);
    dev->ops->matmul(dev, c, a, b, plain);
    dev->ops->copy(dev, &alone, c);
    dev->ops->copy(dev, c, &before);
    how.sums_a = of_a ? &sums : NULL;
    how.sums_b = of_a ? NULL : &sums;
    dev->ops->matmul(dev, c, a, b, &how);
    assert_same_bits(c, &alone);
    assert_near(&sums, want, 1e-6);
    free(alone.data), free(before.data), free(sums.data), free(want);
}

/* All options of a product, for one shape. */
static void check_matmul(enum dt_dtype type, enum dt_dtype to, bool ta, bool tb, int64_t m,
                         int64_t n, int64_t k)
{
    struct dt_tensor a = random_matrix_of(type, ta ? k : m, ta ? m : k);
    struct dt_tensor b = random_matrix_of(type, tb ? n : k, tb ? k : n);
    struct dt_tensor bias = random_matrix_of(type, 1, n), c = new_matrix(to, m, n);
    struct dt_tensor aux = new_matrix(to, m, n), before = random_matrix_of(to, m, n);
    struct dt_matmul how = {.transpose_a = ta, .transpose_b = tb, .bias = &bias};
    double *want = dt_alloc((size_t)(m * n), sizeof *want);
    matmul_reference(want, &a, &b, &how, m, n, k);
    dev->ops->matmul(dev, &c, &a, &b, &how);
    assert_near(&c, want, 1e-6);
    how.activation = m % 2 ? DT_ACTIVATION_GELU_TANH : DT_ACTIVATION_GELU_ERF;
    how.aux = &aux;
    dev->ops->matmul(dev, &c, &a, &b, &how);
    assert_near(&aux, want, 1e-6);
    for (int64_t i = 0; i < m * n; i++) /* of aux as stored, so that backward can recompute it */
        want[i] = activation_reference(how.activation, at(&aux, i / n, i % n));
    assert_near(&c, want, 1e-6);
    struct dt_tensor again = new_matrix(to, m, n);
    dev->ops->activation_forward(dev, &again, &aux, how.activation);
    assert_same_bits(&again, &c);
    how = (struct dt_matmul){.transpose_a = ta, .transpose_b = tb, .accumulate = true};
    dev->ops->copy(dev, &c, &before);
    matmul_reference(want, &a, &b, &how, m, n, k);
    for (int64_t i = 0; i < m * n; i++)
        want[i] += at(&before, i / n, i % n);
    dev->ops->matmul(dev, &c, &a, &b, &how);
    assert_near(&c, want, 1e-6);
    if (ta)
        check_sums(&a, &b, &c, &how, true);
    if (!tb)
        check_sums(&a, &b, &c, &how, false);
    free(a.data), free(b.data), free(bias.data), free(c.data), free(aux.data);
    free(before.data), free(again.data), free(want);
}

static void matmul_matches_the_reference(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 7, 5}, {3, 130, 17}, {70, 33, 64}, {130, 65, 100}};
    for (size_t s = 0; s < 4; s++)
        for (int variant = 0; variant < 4; variant++)
            for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++)
                for (int wide = 0; wide < 2; wide++)
                    check_matmul(type, wide ? DT_DTYPE_F32 : type, variant & 1, variant & 2,
                                 sizes[s][0], sizes[s][1], sizes[s][2]);
    if (getenv("DT_TEST_ENGINE") && getenv("DT_TEST_CANONICAL"))
        return; /* whose canonical products have no tiles */
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16;
         type++) /* several tiles in each dimension */
        check_matmul(type, type, false, type == DT_DTYPE_BF16, 273, 271, 300);
}

/* Even if the engine runs the product several times to choose the fastest algorithm. */
static void row_sums_of_a_product_are_added_once(void **state)
{
    (void)state;
    struct dt_tensor a = random_matrix(64, 16), b = random_matrix(64, 24);
    struct dt_tensor c = new_matrix(DT_DTYPE_F32, 16, 24), sums = new_matrix(DT_DTYPE_F32, 1, 16);
    const struct dt_matmul how = {.transpose_a = true, .sums_a = &sums};
    double want[16] = {0};
    for (int time = 0; time < 5; time++) {
        dev->ops->matmul(dev, &c, &a, &b, &how);
        for (int64_t i = 0; i < 64 * 16; i++)
            want[i % 16] += at(&a, i / 16, i % 16);
    }
    assert_near(&sums, want, 1e-6);
    free(a.data), free(b.data), free(c.data), free(sums.data);
}

static void matmul_supports_strides(void **state)
{
    (void)state;
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++)
        for (int variant = 0; variant < 4; variant++) {
            bool ta = variant & 1, tb = variant & 2;
            struct dt_tensor wide = random_matrix_of(type, 40, 131);
            struct dt_tensor out = new_matrix(type, 23, 77), c = dt_tensor_columns(&out, 9, 21);
            struct dt_tensor rows = dt_tensor_rows(&wide, 3, ta ? 33 : 23);
            struct dt_tensor a = dt_tensor_columns(&rows, 5, ta ? 23 : 33);
            rows = dt_tensor_rows(&wide, 1, tb ? 21 : 33);
            struct dt_tensor b = dt_tensor_columns(&rows, 60, tb ? 33 : 21);
            struct dt_matmul how = {.transpose_a = ta, .transpose_b = tb};
            double want[23 * 21];
            matmul_reference(want, &a, &b, &how, 23, 21, 33);
            dev->ops->matmul(dev, &c, &a, &b, &how);
            assert_near(&c, want, 1e-6);
            for (int64_t i = 0; i < 23; i++)
                assert_true(at(&out, i, 8) == 0 && at(&out, i, 30) == 0);
            b.stride = 0; /* broadcast */
            matmul_reference(want, &a, &b, &how, 23, 21, 33);
            dev->ops->matmul(dev, &c, &a, &b, &how);
            assert_near(&c, want, 1e-6);
            free(wide.data), free(out.data);
        }
}

static void check_bits(enum dt_dtype type, enum dt_dtype to, const int64_t size[3], int variant)
{
    int64_t m = size[0], n = size[1], k = size[2];
    struct dt_matmul how = {.transpose_a = variant & 1, .transpose_b = variant & 2};
    struct dt_tensor a = random_matrix_of(type, how.transpose_a ? k : m, how.transpose_a ? m : k);
    struct dt_tensor b = random_matrix_of(type, how.transpose_b ? n : k, how.transpose_b ? k : n);
    struct dt_tensor one = new_matrix(to, m, n), many = new_matrix(to, m, n);
    for (int threads = 1; threads <= 7; threads += 2) {
        struct dt_device *other = open_with(threads);
        other->ops->matmul(other, threads == 1 ? &one : &many, &a, &b, &how);
        if (threads > 1)
            assert_same_bits(&one, &many);
        dt_device_use_threads(other, 1);
        other->ops->matmul(other, &many, &a, &b, &how);
        assert_same_bits(&one, &many);
        dt_device_close(other);
    }
    free(a.data), free(b.data), free(one.data), free(many.data);
}

/* A library would split long sums of few outputs along K. */
static void products_have_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    if (getenv("DT_TEST_ENGINE"))
        skip(); /* only the cpu engine has threads */
    static const int64_t sizes[][3] = {
        {40, 48, 4096}, {48, 40, 2048}, {1, 300, 700}, {17, 16, 4096}};
    for (size_t s = 0; s < 4; s++)
        for (int variant = 0; variant < 4; variant++)
            for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++)
                check_bits(type, variant % 2 ? DT_DTYPE_F32 : type, sizes[s], variant);
}

struct mlp {
    enum dt_activation activation;
    struct dt_tensor x, w, bias, r;
};

static double mlp_loss(void *context)
{
    struct mlp *l = context;
    double sum = 0, *y = dt_alloc((size_t)(l->r.rows * l->r.columns), sizeof *y);
    matmul_reference(y, &l->x, &l->w, &(struct dt_matmul){.bias = &l->bias}, l->r.rows,
                     l->r.columns, l->x.columns);
    for (int64_t i = 0; i < l->r.rows * l->r.columns; i++)
        sum += activation_reference(l->activation, y[i]) * ((float *)l->r.data)[i];
    free(y);
    return sum;
}

/* y = activation(x w + b): dy -> gradients of x, w and b, by the ops that training uses. */
static void check_linear_backward(enum dt_activation activation)
{
    const int64_t m = 5, n = 7, k = 6;
    struct mlp l = {activation, random_matrix(m, k), random_matrix(k, n), random_matrix(1, n),
                    random_matrix(m, n)};
    struct dt_tensor y = random_matrix(m, n), pre = random_matrix(m, n), one = random_matrix(n, n);
    dev->ops->matmul(dev, &y, &l.x, &l.w,
                     &(struct dt_matmul){.bias = &l.bias, .activation = activation, .aux = &pre});
    /* The derivative is applied after a product, as in a block's backward: here with identity. */
    for (int64_t i = 0; i < n * n; i++)
        ((float *)one.data)[i] = i % (n + 1) == 0;
    struct dt_tensor dpre = random_matrix(m, n), dx = random_matrix(m, k);
    struct dt_tensor dw = random_matrix(k, n), db = random_matrix(1, n);
    dev->ops->zero(dev, &db);
    dev->ops->matmul(
        dev, &dpre, &l.r, &one,
        &(struct dt_matmul){.activation = activation, .derivative = true, .aux = &pre});
    dev->ops->matmul(dev, &dx, &dpre, &l.w, &(struct dt_matmul){.transpose_b = true});
    dev->ops->matmul(dev, &dw, &l.x, &dpre, &(struct dt_matmul){.transpose_a = true});
    dev->ops->bias_backward(dev, &db, &dpre, 1);
    assert_gradient(&dx, &l.x, mlp_loss, &l);
    assert_gradient(&dw, &l.w, mlp_loss, &l);
    assert_gradient(&db, &l.bias, mlp_loss, &l);
    struct dt_tensor *all[] = {&l.x, &l.w, &l.bias, &l.r, &y, &pre, &one, &dpre, &dx, &dw, &db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
}

static void linear_and_activation_backward_match_finite_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACTIVATIONS; i++)
        check_linear_backward(activations[i].activation);
}

/* Decoding depends on it: text does not depend on the other sequences of the batch. */
static void a_row_has_the_same_bits_whatever_the_other_rows(void **state)
{
    (void)state;
    for (int tb = 0; tb < 2; tb++) {
        int64_t k = 203, n = 331;
        struct dt_tensor a = random_matrix_of(DT_DTYPE_F32, 16, k),
                         bias = random_matrix_of(DT_DTYPE_F32, 1, n);
        struct dt_tensor b = random_matrix_of(DT_DTYPE_F32, tb ? n : k, tb ? k : n);
        struct dt_tensor one = new_matrix(DT_DTYPE_F32, 16, n),
                         aux = new_matrix(DT_DTYPE_F32, 16, n);
        const struct dt_matmul how = {
            .transpose_b = tb, .bias = &bias, .activation = DT_ACTIVATION_GELU_TANH, .aux = &aux};
        for (int64_t i = 0; i < 16; i++) {
            struct dt_tensor x = dt_tensor_rows(&a, i, 1), y = dt_tensor_rows(&one, i, 1);
            dev->ops->matmul(dev, &y, &x, &b, &how);
        }
        for (int64_t rows = 1; rows <= 16; rows++) {
            struct dt_tensor all = new_matrix(DT_DTYPE_F32, rows, n),
                             x = dt_tensor_rows(&a, 16 - rows, rows);
            struct dt_tensor want = dt_tensor_rows(&one, 16 - rows, rows);
            dev->ops->matmul(dev, &all, &x, &b, &how);
            assert_same_bits(&all, &want);
            free(all.data);
        }
        free(a.data), free(b.data), free(bias.data), free(one.data), free(aux.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(matmul_matches_the_reference),
        ON_EACH_ISA(row_sums_of_a_product_are_added_once),
        ON_EACH_ISA(matmul_supports_strides),
        ON_EACH_ISA(products_have_the_same_bits_on_any_number_of_threads),
        ON_EACH_ISA(a_row_has_the_same_bits_whatever_the_other_rows),
        ON_EACH_ISA(linear_and_activation_backward_match_finite_differences),
    };
    return RUN_ON_EACH_ISA(tests);
}
