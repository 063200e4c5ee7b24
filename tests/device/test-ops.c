/* SPDX-License-Identifier: MIT */
/* Every op of the cpu engine against a plain double-precision reference, and
 * every backward pass against finite differences of that reference. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/rng.h"
#include "device/device.h"

static struct dt_device *dev;
static struct dt_rng rng;

static int open_device(void **state)
{
    (void)state;
    struct dt_error err;
    const char *name = getenv("DT_TEST_ENGINE");
    dt_rng_init(&rng, 1);
    if (dt_device_open(&dev, name ? name : "cpu", 2, &err) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int close_device(void **state)
{
    (void)state;
    dt_device_close(dev);
    return 0;
}

static struct dt_tensor random_matrix(int64_t rows, int64_t columns)
{
    float *x = dt_alloc((size_t)(rows * columns), sizeof *x);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)(2 * dt_rng_double(&rng) - 1);
    return dt_matrix(x, rows, columns);
}

static float at(const struct dt_tensor *x, int64_t row, int64_t column)
{
    return ((float *)x->data)[row * x->stride + column];
}

/* max |got - want| against the largest |want|. */
static void assert_near(const struct dt_tensor *got, const double *want, double tolerance)
{
    double worst = 0, largest = 1e-2;
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->columns; j++) {
            double w = want[i * got->columns + j], difference = fabs(at(got, i, j) - w);
            worst = difference <= worst ? worst : difference; /* NaN counts as worse */
            largest = fmax(largest, fabs(w));
        }
    if (!(worst <= tolerance * largest))
        fail_msg("differs by %g of %g", worst, largest);
}

/* A loss sum(y * r) of a reference y = f(tensors), differentiated by each
 * element of x in turn; compared with the gradient an op gave. */
typedef double reference_loss(void *context);

static void assert_gradient(const struct dt_tensor *gradient, const struct dt_tensor *x,
                            reference_loss *loss, void *context)
{
    double *want = dt_alloc((size_t)(x->rows * x->columns), sizeof *want);
    const float step = 1.0f / 256;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            float *value = (float *)x->data + i * x->stride + j, kept = *value;
            *value = kept + step;
            double up = loss(context), high = *value;
            *value = kept - step;
            want[i * x->columns + j] = (up - loss(context)) / (high - *value);
            *value = kept;
        }
    assert_near(gradient, want, 2e-4);
    free(want);
}

static double gelu_reference(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static void matmul_reference(double *c, const struct dt_tensor *a, const struct dt_tensor *b,
                             const struct dt_matmul *how, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = how->bias ? at(how->bias, 0, j) : 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)(how->transpose_a ? at(a, p, i) : at(a, i, p)) *
                       (how->transpose_b ? at(b, j, p) : at(b, p, j));
            c[i * n + j] = sum;
        }
}

static void matmul_matches_the_reference(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 7, 5}, {3, 130, 17}, {70, 33, 64}, {129, 65, 100}};
    for (size_t s = 0; s < 4; s++)
        for (int variant = 0; variant < 4; variant++) {
            int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            bool ta = variant & 1, tb = variant & 2;
            struct dt_tensor a = ta ? random_matrix(k, m) : random_matrix(m, k);
            struct dt_tensor b = tb ? random_matrix(n, k) : random_matrix(k, n);
            struct dt_tensor bias = random_matrix(1, n), c = random_matrix(m, n);
            struct dt_tensor aux = random_matrix(m, n);
            struct dt_matmul how = {.transpose_a = ta, .transpose_b = tb, .bias = &bias};
            double *want = dt_alloc((size_t)(m * n), sizeof *want);
            matmul_reference(want, &a, &b, &how, m, n, k);
            dev->ops->matmul(dev, &c, &a, &b, &how);
            assert_near(&c, want, 1e-6);
            how.activation = DT_ACT_GELU_TANH;
            how.aux = &aux;
            dev->ops->matmul(dev, &c, &a, &b, &how);
            assert_near(&aux, want, 1e-6);
            for (int64_t i = 0; i < m * n; i++)
                want[i] = gelu_reference(want[i]);
            assert_near(&c, want, 1e-6);
            how = (struct dt_matmul){.transpose_a = ta, .transpose_b = tb, .accumulate = true};
            struct dt_tensor before = random_matrix(m, n);
            memcpy(c.data, before.data, (size_t)(m * n) * sizeof(float));
            matmul_reference(want, &a, &b, &how, m, n, k);
            for (int64_t i = 0; i < m * n; i++)
                want[i] += ((float *)before.data)[i];
            dev->ops->matmul(dev, &c, &a, &b, &how);
            assert_near(&c, want, 1e-6);
            free(a.data), free(b.data), free(bias.data), free(c.data), free(aux.data);
            free(before.data), free(want);
        }
}

/* Long sums over few outputs are what a library would cut along K. */
static void products_have_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{384, 128, 4096}, {128, 512, 2048}, {1, 300, 700}};
    for (size_t s = 0; s < 3; s++)
        for (int variant = 0; variant < 4; variant++) {
            int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            struct dt_matmul how = {.transpose_a = variant & 1, .transpose_b = variant & 2};
            struct dt_tensor a = how.transpose_a ? random_matrix(k, m) : random_matrix(m, k);
            struct dt_tensor b = how.transpose_b ? random_matrix(n, k) : random_matrix(k, n);
            struct dt_tensor one = random_matrix(m, n), many = random_matrix(m, n);
            for (int threads = 1; threads <= 7; threads += 2) {
                struct dt_device *other;
                struct dt_error err;
                assert_int_equal(dt_device_open(&other, "cpu", threads, &err), 0);
                other->ops->matmul(other, threads == 1 ? &one : &many, &a, &b, &how);
                dt_device_close(other);
                if (threads > 1)
                    assert_memory_equal(one.data, many.data, (size_t)(m * n) * sizeof(float));
            }
            free(a.data), free(b.data), free(one.data), free(many.data);
        }
}

struct mlp {
    struct dt_tensor x, w, bias, r;
};

static double mlp_loss(void *context)
{
    struct mlp *l = context;
    double sum = 0, *y = dt_alloc((size_t)(l->r.rows * l->r.columns), sizeof *y);
    matmul_reference(y, &l->x, &l->w, &(struct dt_matmul){.bias = &l->bias}, l->r.rows,
                     l->r.columns, l->x.columns);
    for (int64_t i = 0; i < l->r.rows * l->r.columns; i++)
        sum += gelu_reference(y[i]) * ((float *)l->r.data)[i];
    free(y);
    return sum;
}

/* y = gelu(x w + b): dy -> gradients of x, w and b, by the ops that training uses. */
static void linear_and_gelu_backward_match_finite_differences(void **state)
{
    (void)state;
    const int64_t m = 5, n = 7, k = 6;
    struct mlp l = {random_matrix(m, k), random_matrix(k, n), random_matrix(1, n),
                    random_matrix(m, n)};
    struct dt_tensor y = random_matrix(m, n), pre = random_matrix(m, n), one = random_matrix(n, n);
    dev->ops->matmul(
        dev, &y, &l.x, &l.w,
        &(struct dt_matmul){.bias = &l.bias, .activation = DT_ACT_GELU_TANH, .aux = &pre});
    /* The derivative is applied behind a product, as in a block's backward: here by identity. */
    for (int64_t i = 0; i < n * n; i++)
        ((float *)one.data)[i] = i % (n + 1) == 0;
    struct dt_tensor dpre = random_matrix(m, n), dx = random_matrix(m, k);
    struct dt_tensor dw = random_matrix(k, n), db = random_matrix(1, n);
    dev->ops->zero(dev, &db);
    dev->ops->matmul(
        dev, &dpre, &l.r, &one,
        &(struct dt_matmul){.activation = DT_ACT_GELU_TANH, .derivative = true, .aux = &pre});
    dev->ops->matmul(dev, &dx, &dpre, &l.w, &(struct dt_matmul){.transpose_b = true});
    dev->ops->matmul(dev, &dw, &l.x, &dpre, &(struct dt_matmul){.transpose_a = true});
    dev->ops->bias_backward(dev, &db, &dpre);
    assert_gradient(&dx, &l.x, mlp_loss, &l);
    assert_gradient(&dw, &l.w, mlp_loss, &l);
    assert_gradient(&db, &l.bias, mlp_loss, &l);
    struct dt_tensor *all[] = {&l.x, &l.w, &l.bias, &l.r, &y, &pre, &one, &dpre, &dx, &dw, &db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
}

struct norm {
    struct dt_tensor x, weight, bias, r;
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
    dev->ops->norm_backward(dev, &dx, &dw, &db, &l.r, &l.x, &l.weight, &stats);
    assert_gradient(&dx, &l.x, norm_loss, &l);
    assert_gradient(&dw, &l.weight, norm_loss, &l);
    assert_gradient(&db, &l.bias, norm_loss, &l);
    struct dt_tensor twice = random_matrix(rows, n);
    memcpy(twice.data, dx.data, (size_t)(rows * n) * sizeof(float));
    dev->ops->norm_backward(dev, &twice, &dw, &db, &l.r, &l.x, &l.weight, &stats);
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
            sum += at(&l->x, i, j) / sqrt(squares + 1e-5) * at(&l->weight, 0, j) * at(&l->r, i, j);
    }
    return sum;
}

/* The loss is linear in r: its derivative by r is the norm's output. */
static void rms_norm_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    const int64_t rows = 5, n = 37;
    struct norm l = {
        .x = random_matrix(rows, n), .weight = random_matrix(1, n), .r = random_matrix(rows, n)};
    struct dt_tensor a = random_matrix(rows, n), b = random_matrix(rows, n);
    struct dt_tensor y = random_matrix(rows, n), rstd = random_matrix(rows, 1);
    dev->ops->rms_norm_forward(dev, &y, &rstd, &l.x, &a, &b, &l.weight, 1e-5f);
    for (int64_t i = 0; i < rows * n; i++)
        assert_true(((float *)l.x.data)[i] == ((float *)a.data)[i] + ((float *)b.data)[i]);
    assert_gradient(&y, &l.r, rms_norm_loss, &l);
    struct dt_tensor dx = random_matrix(rows, n), dw = random_matrix(1, n);
    dev->ops->zero(dev, &dx), dev->ops->zero(dev, &dw);
    dev->ops->rms_norm_backward(dev, &dx, &dw, &l.r, &l.x, &l.weight, &rstd);
    assert_gradient(&dx, &l.x, rms_norm_loss, &l);
    assert_gradient(&dw, &l.weight, rms_norm_loss, &l);
    double *want = dt_alloc((size_t)(rows * n), sizeof *want);
    for (int64_t i = 0; i < rows * n; i++) /* it adds */
        want[i] = 2.0 * ((float *)dx.data)[i];
    dev->ops->rms_norm_backward(dev, &dx, &dw, &l.r, &l.x, &l.weight, &rstd);
    assert_near(&dx, want, 1e-5);
    struct dt_tensor *all[] = {&l.x, &l.weight, &l.r, &a, &b, &y, &rstd, &dx, &dw};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
    free(want);
}

/* Turned back, x is what it was; as a rotation keeps lengths and angles, the
 * way back is the gradient's as well. */
static void rope_and_its_inverse_match_the_reference(void **state)
{
    (void)state;
    enum { LENGTH = 3, PAST = 4, SIZE = 6, HALF = 3, HEADS = 2, ROWS = 6 };
    struct dt_tensor turns = random_matrix(PAST + LENGTH, SIZE);
    struct dt_tensor qkv = random_matrix(ROWS, 3 * HEADS * SIZE);
    struct dt_tensor x = dt_columns(&qkv, HEADS * SIZE, HEADS * SIZE);
    double before[ROWS * HEADS * SIZE], want[ROWS * HEADS * SIZE];
    for (int t = 0; t < PAST + LENGTH; t++)
        for (int j = 0; j < HALF; j++) {
            ((float *)turns.data)[t * SIZE + j] = (float)cos(t * pow(10, -j));
            ((float *)turns.data)[t * SIZE + HALF + j] = (float)sin(t * pow(10, -j));
        }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < HEADS * SIZE; c++) {
            int j = c % SIZE % HALF, first = c / SIZE * SIZE + j;
            double angle = (PAST + r % LENGTH) * pow(10, -j);
            double a = at(&x, r, first), b = at(&x, r, first + HALF);
            before[r * HEADS * SIZE + c] = at(&x, r, c);
            want[r * HEADS * SIZE + c] =
                c == first ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
        }
    dev->ops->rope(dev, &x, &turns, LENGTH, PAST, false);
    assert_near(&x, want, 1e-6);
    dev->ops->rope(dev, &x, &turns, LENGTH, PAST, true);
    assert_near(&x, before, 1e-6);
    free(turns.data), free(qkv.data);
}

struct gated {
    struct dt_tensor gate, up, r;
};

static double gated_loss(void *context)
{
    struct gated *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->r.rows; i++)
        for (int64_t j = 0; j < l->r.columns; j++)
            sum += at(&l->gate, i, j) / (1 + exp(-at(&l->gate, i, j))) * at(&l->up, i, j) *
                   at(&l->r, i, j);
    return sum;
}

static void swiglu_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    struct gated l = {random_matrix(4, 33), random_matrix(4, 33), random_matrix(4, 33)};
    struct dt_tensor y = random_matrix(4, 33), dgate = random_matrix(4, 33);
    struct dt_tensor dup = random_matrix(4, 33);
    for (int i = 0; i < 33; i++)
        ((float *)l.gate.data)[i] *= 10;
    ((float *)l.gate.data)[40] = -200; /* beyond what exp can hold */
    dev->ops->swiglu_forward(dev, &y, &l.gate, &l.up);
    assert_gradient(&y, &l.r, gated_loss, &l);
    memcpy(dup.data, l.r.data, 4 * 33 * sizeof(float));
    dev->ops->swiglu_backward(dev, &dgate, &dup, &l.gate, &l.up);
    assert_gradient(&dgate, &l.gate, gated_loss, &l);
    assert_gradient(&dup, &l.up, gated_loss, &l);
    free(l.gate.data), free(l.up.data), free(l.r.data), free(y.data), free(dgate.data);
    free(dup.data);
}

struct attention {
    struct dt_tensor q, k, v, r;
    struct dt_attention how;
};

static void attention_reference(const struct attention *l, double *y)
{
    int64_t size = l->q.columns / l->how.heads, width = l->q.columns;
    double *w = dt_alloc((size_t)(l->how.past + l->how.queries), sizeof *w);
    for (int64_t b = 0; b < l->how.batch; b++)
        for (int64_t h = 0; h < l->how.heads; h++)
            for (int64_t t = 0; t < l->how.queries; t++) {
                int64_t seen = l->how.past + t + 1, row = b * l->how.queries + t;
                int64_t shared = h / (l->how.heads / l->how.kv_heads) * size;
                double sum = 0;
                for (int64_t s = 0; s < seen; s++) {
                    double dot = 0;
                    for (int64_t j = 0; j < size; j++)
                        dot += (double)at(&l->q, row, h * size + j) *
                               at(&l->k, b * l->how.key_stride + s, shared + j);
                    sum += w[s] = exp(dot / sqrt((double)size));
                }
                for (int64_t j = 0; j < size; j++) {
                    double out = 0;
                    for (int64_t s = 0; s < seen; s++)
                        out += w[s] / sum * at(&l->v, b * l->how.key_stride + s, shared + j);
                    y[row * width + h * size + j] = out;
                }
            }
    free(w);
}

static double attention_loss(void *context)
{
    struct attention *l = context;
    int64_t count = l->q.rows * l->q.columns;
    double sum = 0, *y = dt_alloc((size_t)count, sizeof *y);
    attention_reference(l, y);
    for (int64_t i = 0; i < count; i++)
        sum += y[i] * ((float *)l->r.data)[i];
    free(y);
    return sum;
}

static void check_attention(int64_t batch, int64_t heads, int64_t kv_heads, int64_t length,
                            int64_t size, bool gradients)
{
    int64_t rows = batch * length, width = heads * size, keys = kv_heads * size;
    struct dt_tensor qkv = random_matrix(rows, width + 2 * keys);
    struct dt_tensor dqkv = random_matrix(rows, width + 2 * keys);
    struct attention l = {dt_columns(&qkv, 0, width),
                          dt_columns(&qkv, width, keys),
                          dt_columns(&qkv, width + keys, keys),
                          random_matrix(rows, width),
                          {.batch = batch,
                           .heads = heads,
                           .kv_heads = kv_heads,
                           .queries = length,
                           .key_stride = length}};
    struct dt_tensor y = random_matrix(rows, width), lse = random_matrix(rows, heads);
    double *want = dt_alloc((size_t)(rows * width), sizeof *want);
    attention_reference(&l, want);
    dev->ops->attention_forward(dev, &y, &lse, &l.q, &l.k, &l.v, &l.how);
    assert_near(&y, want, 1e-6);
    struct dt_tensor dq = dt_columns(&dqkv, 0, width), dk = dt_columns(&dqkv, width, keys);
    struct dt_tensor dv = dt_columns(&dqkv, width + keys, keys);
    if (gradients) {
        dev->ops->attention_backward(dev, &dq, &dk, &dv, &l.r, &y, &lse, &l.q, &l.k, &l.v, &l.how);
        assert_gradient(&dq, &l.q, attention_loss, &l);
        assert_gradient(&dk, &l.k, attention_loss, &l);
        assert_gradient(&dv, &l.v, attention_loss, &l);
    }
    free(qkv.data), free(dqkv.data), free(l.r.data), free(y.data), free(lse.data), free(want);
}

static void attention_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    check_attention(2, 2, 2, 5, 4, true);
    check_attention(1, 3, 3, 1, 8, true);
    check_attention(1, 1, 1, 70, 2, true);    /* crosses a block of queries */
    check_attention(3, 2, 2, 130, 16, false); /* ends inside a third block */
}

static void heads_share_keys_and_values(void **state)
{
    (void)state;
    check_attention(2, 4, 2, 5, 4, true);
    check_attention(1, 3, 1, 6, 2, true);
    check_attention(1, 2, 1, 70, 2, true);
    check_attention(2, 6, 2, 130, 8, false);
}

static void attention_reads_a_cache(void **state)
{
    (void)state;
    const int64_t past = 9, room = 20, width = 16, keys = 8;
    struct attention l = {
        random_matrix(6, width),
        random_matrix(2 * room, keys),
        random_matrix(2 * room, keys),
        random_matrix(6, width),
        {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 3, .past = past, .key_stride = room}};
    struct dt_tensor y = random_matrix(6, width), lse = random_matrix(6, 4);
    double *want = dt_alloc((size_t)(6 * width), sizeof *want);
    attention_reference(&l, want);
    dev->ops->attention_forward(dev, &y, &lse, &l.q, &l.k, &l.v, &l.how);
    assert_near(&y, want, 1e-6);
    free(l.q.data), free(l.k.data), free(l.v.data), free(l.r.data), free(y.data), free(lse.data);
    free(want);
}

struct classifier {
    struct dt_tensor logits;
    int32_t targets[6];
};

static double row_loss_reference(const struct classifier *l, int64_t i)
{
    double sum = 0;
    if (l->targets[i] < 0)
        return 0;
    for (int64_t j = 0; j < l->logits.columns; j++)
        sum += exp(at(&l->logits, i, j));
    return log(sum) - at(&l->logits, i, l->targets[i]);
}

static double classifier_loss(void *context)
{
    struct classifier *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->logits.rows; i++)
        sum += 0.25 * row_loss_reference(l, i);
    return sum;
}

static void cross_entropy_and_its_gradient_match_the_reference(void **state)
{
    (void)state;
    struct classifier l = {random_matrix(6, 33), {0, 32, 7, -1, 5, 5}};
    struct dt_tensor gradient = random_matrix(6, 33);
    float losses[6], again[6];
    memcpy(gradient.data, l.logits.data, 6 * 33 * sizeof(float));
    dev->ops->cross_entropy(dev, again, NULL, &gradient, l.targets, &(struct dt_cross_entropy){0});
    assert_memory_equal(gradient.data, l.logits.data, 6 * 33 * sizeof(float));
    dev->ops->cross_entropy(dev, losses, NULL, &gradient, l.targets,
                            &(struct dt_cross_entropy){.scale = 0.25f});
    assert_memory_equal(losses, again, sizeof losses);
    for (int64_t i = 0; i < 6; i++)
        assert_true(fabs(losses[i] - row_loss_reference(&l, i)) < 2e-6);
    assert_gradient(&gradient, &l.logits, classifier_loss, &l);
    free(l.logits.data), free(gradient.data);
}

static void cross_entropy_survives_large_logits(void **state)
{
    (void)state;
    float logits[3] = {1000, -1000, 999}, loss;
    int32_t target = 2;
    struct dt_tensor row = dt_matrix(logits, 1, 3);
    dev->ops->cross_entropy(dev, &loss, NULL, &row, &target,
                            &(struct dt_cross_entropy){.scale = 1});
    assert_true(fabs(loss - (1 + log(1 + exp(-1)))) < 1e-5);
}

static void embedding_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    const int64_t length = 3, n = 19;
    int32_t ids[6] = {4, 0, 4, 1, 4, 2};
    struct dt_tensor tokens = random_matrix(5, n), positions = random_matrix(8, n);
    struct dt_tensor y = random_matrix(6, n), dtokens = random_matrix(5, n);
    struct dt_tensor dpositions = random_matrix(8, n);
    double *want = dt_alloc((size_t)(8 * n), sizeof *want);
    dev->ops->embedding_forward(dev, &y, ids, &tokens, &positions, length, 5);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < n; j++)
            want[i * n + j] = (double)at(&tokens, ids[i], j) + at(&positions, 5 + i % length, j);
    assert_near(&y, want, 1e-6);
    dev->ops->zero(dev, &dtokens), dev->ops->zero(dev, &dpositions);
    dev->ops->embedding_backward(dev, &dtokens, &dpositions, &y, ids, length);
    memset(want, 0, (size_t)(8 * n) * sizeof *want);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < n; j++)
            want[ids[i] * n + j] += at(&y, i, j);
    assert_near(&dtokens, want, 1e-6);
    memset(want, 0, (size_t)(8 * n) * sizeof *want);
    for (int64_t i = 0; i < 6; i++)
        for (int64_t j = 0; j < n; j++)
            want[i % length * n + j] += at(&y, i, j);
    assert_near(&dpositions, want, 1e-6);
    free(tokens.data), free(positions.data), free(y.data), free(dtokens.data);
    free(dpositions.data), free(want);
}

static void embedding_does_without_positions(void **state)
{
    (void)state;
    const int32_t ids[4] = {2, 0, 2, 1};
    struct dt_tensor tokens = random_matrix(3, 19), y = random_matrix(4, 19);
    struct dt_tensor dtokens = random_matrix(3, 19);
    double want[3 * 19] = {0};
    dev->ops->embedding_forward(dev, &y, ids, &tokens, NULL, 2, 0);
    for (int64_t i = 0; i < 4; i++)
        assert_memory_equal((float *)y.data + i * 19, (float *)tokens.data + ids[i] * 19,
                            19 * sizeof(float));
    dev->ops->zero(dev, &dtokens);
    dev->ops->embedding_backward(dev, &dtokens, NULL, &y, ids, 2);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 19; j++)
            want[ids[i] * 19 + j] += at(&y, i, j);
    assert_near(&dtokens, want, 1e-6);
    free(tokens.data), free(y.data), free(dtokens.data);
}

static void adamw_matches_the_paper(void **state)
{
    (void)state;
    enum { N = 20011 };
    struct dt_tensor p = random_matrix(1, N), m = random_matrix(1, N), v = random_matrix(1, N);
    struct dt_tensor g = random_matrix(1, N);
    double *want = dt_alloc(N, sizeof *want);
    for (int64_t i = 0; i < N; i++) {
        ((float *)v.data)[i] = fabsf(at(&v, 0, i));
        double gradient = 0.5 * at(&g, 0, i);
        double mean = 0.9 * at(&m, 0, i) + 0.1 * gradient;
        double square = 0.99 * at(&v, 0, i) + 0.01 * gradient * gradient;
        double m_hat = mean / (1 - pow(0.9, 3)), v_hat = square / (1 - pow(0.99, 3));
        want[i] = at(&p, 0, i) - 0.01 * (m_hat / (sqrt(v_hat) + 1e-8) + 0.1 * at(&p, 0, i));
    }
    dev->ops->adamw(dev, p.data, m.data, v.data, g.data, N,
                    &(struct dt_adamw){.learning_rate = 0.01f,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.99f,
                                       .epsilon = 1e-8f,
                                       .weight_decay = 0.1f,
                                       .correction1 = (float)(1 - pow(0.9, 3)),
                                       .correction2 = (float)(1 - pow(0.99, 3)),
                                       .gradient_scale = 0.5f});
    assert_near(&p, want, 1e-6);
    free(p.data), free(m.data), free(v.data), free(g.data), free(want);
}

static void sums_match_the_reference(void **state)
{
    (void)state;
    enum { N = 100003 };
    struct dt_tensor x = random_matrix(1, N);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < N; i++) {
        sum += at(&x, 0, i);
        squares += (double)at(&x, 0, i) * at(&x, 0, i);
    }
    assert_true(fabs(dev->ops->sum(dev, x.data, N) - sum) < 1e-8);
    assert_true(fabs(dev->ops->sum_squares(dev, x.data, N) - squares) < 1e-8);
    free(x.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_matches_the_reference),
        cmocka_unit_test(products_have_the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(linear_and_gelu_backward_match_finite_differences),
        cmocka_unit_test(norm_and_its_backward_match_the_reference),
        cmocka_unit_test(rms_norm_and_its_backward_match_the_reference),
        cmocka_unit_test(rope_and_its_inverse_match_the_reference),
        cmocka_unit_test(swiglu_and_its_backward_match_the_reference),
        cmocka_unit_test(attention_and_its_backward_match_the_reference),
        cmocka_unit_test(heads_share_keys_and_values),
        cmocka_unit_test(attention_reads_a_cache),
        cmocka_unit_test(cross_entropy_and_its_gradient_match_the_reference),
        cmocka_unit_test(cross_entropy_survives_large_logits),
        cmocka_unit_test(embedding_and_its_backward_match_the_reference),
        cmocka_unit_test(embedding_does_without_positions),
        cmocka_unit_test(adamw_matches_the_paper),
        cmocka_unit_test(sums_match_the_reference),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
