/* SPDX-License-Identifier: MIT */
/* An op on 16-bit tensors is the fp32 op on the same numbers, rounded. Other files test the fp32
 * ops. */
#include "device/matrix.h"

enum { ROWS = 71, LENGTH = 10, N = 37 };

static const enum dt_dtype halves[] = {DT_DTYPE_BF16, DT_DTYPE_F16};

/* The same numbers in 16 bits and in fp32. */
struct pair {
    struct dt_tensor half, wide;
};

static struct pair random_pair(enum dt_dtype type, int64_t rows, int64_t columns)
{
    struct pair x = {.half = random_matrix_of(type, rows, columns)};
    x.wide = as_type(DT_DTYPE_F32, &x.half);
    return x;
}

static void free_pair(struct pair *x)
{
    free(x->half.data), free(x->wide.data);
}

static void assert_close(const struct dt_tensor *got, const struct dt_tensor *want)
{
    double *values = dt_alloc((size_t)(want->rows * want->columns), sizeof *values);
    for (int64_t i = 0; i < want->rows * want->columns; i++)
        values[i] = at(want, i / want->columns, i % want->columns);
    assert_near(got, values, 1e-6);
    free(values);
}

static void check_pair(struct pair *x)
{
    assert_close(&x->half, &x->wide);
    free_pair(x);
}

static void activations_and_biases(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct pair x = random_pair(halves[t], ROWS, N), y = random_pair(halves[t], ROWS, N);
        struct dt_tensor sum = random_matrix(1, N), wide_sum = copy_of(&sum);
        dev->ops->bias_backward(dev, &sum, &x.half, 1);
        dev->ops->bias_backward(dev, &wide_sum, &x.wide, 1);
        assert_same_bits(&sum, &wide_sum);
        dev->ops->activation_forward(dev, &y.half, &x.half, DT_ACTIVATION_GELU_ERF);
        dev->ops->activation_forward(dev, &y.wide, &x.wide, DT_ACTIVATION_GELU_ERF);
        assert_close(&y.half, &y.wide);
        dev->ops->copy(dev, &y.wide, &y.half);
        dev->ops->activation_backward(dev, &y.half, &x.half, DT_ACTIVATION_GELU_TANH);
        dev->ops->activation_backward(dev, &y.wide, &x.wide, DT_ACTIVATION_GELU_TANH);
        check_pair(&y);
        free_pair(&x), free(sum.data), free(wide_sum.data);
    }
}

static void embeddings(void **state)
{
    (void)state;
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * i % 7;
    for (int t = 0; t < 2; t++)
        for (int with_positions = 0; with_positions < 2; with_positions++) {
            struct pair tokens = random_pair(halves[t], 7, N);
            struct pair positions = random_pair(halves[t], LENGTH + 2, N);
            struct pair y = random_pair(halves[t], ROWS, N);
            struct dt_tensor dtokens[2], dpositions[2];
            for (int wide = 0; wide < 2; wide++) {
                struct dt_tensor *of = with_positions ? &dpositions[wide] : NULL;
                struct dt_tensor *from = wide ? &positions.wide : &positions.half;
                dev->ops->embedding_forward(dev, wide ? &y.wide : &y.half, ids,
                                            wide ? &tokens.wide : &tokens.half,
                                            with_positions ? from : NULL, LENGTH, 2);
                dtokens[wide] = new_matrix(DT_DTYPE_F32, 7, N);
                dpositions[wide] = new_matrix(DT_DTYPE_F32, LENGTH, N);
                struct dt_tensor dy = as_type(wide ? DT_DTYPE_F32 : halves[t], &y.half);
                dev->ops->embedding_backward(dev, &dtokens[wide], of, &dy, ids, LENGTH, 1);
                free(dy.data);
            }
            assert_same_bits(&dtokens[0], &dtokens[1]);
            assert_same_bits(&dpositions[0], &dpositions[1]);
            check_pair(&y);
            free_pair(&tokens), free_pair(&positions);
            for (int wide = 0; wide < 2; wide++)
                free(dtokens[wide].data), free(dpositions[wide].data);
        }
}

/* The norm is of the sum as stored, after rounding, so that backward can recompute it. */
static void check_norm(enum dt_dtype type, bool rms)
{
    struct pair x = random_pair(type, ROWS, N), add = random_pair(type, ROWS, N);
    struct pair weight = random_pair(type, 1, N), bias = random_pair(type, 1, N);
    struct pair y = random_pair(type, ROWS, N), sum = random_pair(type, ROWS, N);
    struct pair dy = random_pair(type, ROWS, N), dsum = random_pair(type, ROWS, N);
    struct dt_tensor stats = new_matrix(DT_DTYPE_F32, ROWS, rms ? 1 : 2),
                     wide_stats = copy_of(&stats);
    struct dt_tensor dw = random_matrix(1, N), db = random_matrix(1, N);
    struct dt_tensor wide_dw = copy_of(&dw), wide_db = copy_of(&db);
    const struct dt_ops *ops = dev->ops;
    if (rms)
        ops->rms_norm_forward(dev, &y.half, &stats, &sum.half, &x.half, &add.half, &weight.half, 1,
                              1e-5f);
    else
        ops->norm_forward(dev, &y.half, &stats, &sum.half, &x.half, &add.half, &weight.half,
                          &bias.half, 1e-5f);
    for (int64_t i = 0; i < ROWS * N; i++) /* x becomes x + add */
        ((float *)x.wide.data)[i] += ((float *)add.wide.data)[i];
    assert_close(&sum.half, &x.wide);
    ops->copy(dev, &sum.wide, &sum.half);
    if (rms) {
        ops->rms_norm_forward(dev, &y.wide, &wide_stats, &sum.wide, &sum.wide, NULL, &weight.wide,
                              1, 1e-5f);
        ops->rms_norm_backward(dev, &dsum.half, &dw, &dy.half, &sum.half, &weight.half, 1, &stats,
                               1);
        ops->rms_norm_backward(dev, &dsum.wide, &wide_dw, &dy.wide, &sum.wide, &weight.wide, 1,
                               &stats, 1);
    } else {
        ops->norm_forward(dev, &y.wide, &wide_stats, &sum.wide, &sum.wide, NULL, &weight.wide,
                          &bias.wide, 1e-5f);
        ops->norm_backward(dev, &dsum.half, &dw, &db, &dy.half, &sum.half, &weight.half, &stats, 1);
        ops->norm_backward(dev, &dsum.wide, &wide_dw, &wide_db, &dy.wide, &sum.wide, &weight.wide,
                           &stats, 1);
    }
    assert_same_bits(&stats, &wide_stats);
    assert_same_bits(&dw, &wide_dw), assert_same_bits(&db, &wide_db);
    check_pair(&y), check_pair(&dsum);
    free_pair(&x), free_pair(&add), free_pair(&weight), free_pair(&bias), free_pair(&sum);
    free_pair(&dy), free(stats.data), free(wide_stats.data), free(dw.data), free(db.data);
    free(wide_dw.data), free(wide_db.data);
}

static void norms(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        check_norm(halves[t], false);
        check_norm(halves[t], true);
    }
}

static void rotations_and_gates(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct pair x = random_pair(halves[t], ROWS, 3 * 12),
                    table = random_pair(halves[t], 20, 12);
        dev->ops->rope(dev, &x.half, &table.half, 12, LENGTH, 10, true);
        dev->ops->rope(dev, &x.wide, &table.half, 12, LENGTH, 10, true); /* of mixed types */
        check_pair(&x), free_pair(&table);
        struct pair gate = random_pair(halves[t], ROWS, N), up = random_pair(halves[t], ROWS, N);
        struct pair y = random_pair(halves[t], ROWS, N), dgate = random_pair(halves[t], ROWS, N);
        dev->ops->gated_forward(dev, &y.half, &gate.half, &up.half, DT_ACTIVATION_SILU);
        dev->ops->gated_forward(dev, &y.wide, &gate.wide, &up.wide, DT_ACTIVATION_SILU);
        assert_close(&y.half, &y.wide);
        dev->ops->copy(dev, &y.wide, &y.half);
        dev->ops->gated_backward(dev, &dgate.half, &y.half, &gate.half, &up.half,
                                 DT_ACTIVATION_SILU);
        dev->ops->gated_backward(dev, &dgate.wide, &y.wide, &gate.wide, &up.wide,
                                 DT_ACTIVATION_SILU);
        check_pair(&dgate), check_pair(&y), free_pair(&gate), free_pair(&up);
    }
}

static void losses(void **state)
{
    (void)state;
    int32_t targets[ROWS];
    float loss[2][ROWS], hits[2][ROWS];
    struct dt_cross_entropy how = {.label_smoothing = 0.1f, .z_loss = 0.01f};
    for (int i = 0; i < ROWS; i++)
        targets[i] = i % N - 1;
    for (int t = 0; t < 4; t++) { /* of each type, without and with a map */
        how.map = (struct dt_logit_map){0, t < 2 ? 0 : 0.7f};
        struct pair logits = random_pair(halves[t % 2], ROWS, N);
        struct dt_tensor before = copy_of(&logits.half);
        for (how.scale = 0; how.scale <= 2; how.scale += 2) {
            dev->ops->cross_entropy(dev, loss[0], hits[0], &logits.half, targets, &how);
            if (how.scale == 0)
                assert_same_bits(&logits.half, &before);
            dev->ops->cross_entropy(dev, loss[1], hits[1], &logits.wide, targets, &how);
            struct dt_tensor of_half = dt_matrix(loss[0], 1, ROWS);
            struct dt_tensor of_wide = dt_matrix(loss[1], 1, ROWS);
            assert_same_bits(&of_half, &of_wide);
            assert_memory_equal(hits[0], hits[1], sizeof hits[0]);
        }
        check_pair(&logits), free(before.data);
    }
}

/* Results of all ops that sum over rows. */
struct results {
    struct dt_tensor y, dx, dw, db, half_dw, logits, dtokens;
    float losses[ROWS];
};

static struct results compute(struct dt_device *on, enum dt_dtype type)
{
    enum { GROUPS = 4, WIDTH = 4 * N };
    struct dt_tensor x, weight, bias, stats = new_matrix(DT_DTYPE_F32, ROWS, 2);
    struct dt_tensor rstd = new_matrix(DT_DTYPE_F32, ROWS, GROUPS);
    int32_t ids[ROWS];
    dt_rng_init(&rng, 7);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * i % 5;
    x = random_matrix_of(type, ROWS, WIDTH);
    weight = random_matrix_of(type, 1, WIDTH), bias = random_matrix_of(type, 1, WIDTH);
    struct results r = {.y = random_matrix_of(type, ROWS, WIDTH),
                        .dx = random_matrix_of(type, ROWS, WIDTH),
                        .dw = random_matrix(1, WIDTH),
                        .db = random_matrix(1, WIDTH),
                        .half_dw = random_matrix(1, N),
                        .logits = random_matrix_of(type, ROWS, WIDTH),
                        .dtokens = random_matrix(5, WIDTH)};
    struct dt_tensor group = dt_tensor_columns(&weight, 0, N);
    const struct dt_ops *ops = on->ops;
    ops->norm_forward(on, &r.y, &stats, &x, &x, NULL, &weight, &bias, 1e-5f);
    ops->norm_backward(on, &r.dx, &r.dw, &r.db, &r.y, &x, &weight, &stats, 1);
    ops->rms_norm_forward(on, &r.y, &rstd, &x, &x, NULL, &group, 0, 1e-5f);
    ops->rms_norm_backward(on, &r.dx, &r.half_dw, &r.y, &x, &group, 0, &rstd, 1);
    ops->bias_backward(on, &r.db, &r.dx, 1);
    ops->gated_backward(on, &r.dx, &r.y, &x, &x, DT_ACTIVATION_SILU);
    ops->embedding_backward(on, &r.dtokens, NULL, &r.y, ids, LENGTH, 1);
    ops->cross_entropy(on, r.losses, NULL, &r.logits, ids, &(struct dt_cross_entropy){.scale = 1});
    free(x.data), free(weight.data), free(bias.data), free(stats.data), free(rstd.data);
    return r;
}

static void free_results(struct results *r)
{
    free(r->y.data), free(r->dx.data), free(r->dw.data), free(r->db.data), free(r->half_dw.data);
    free(r->logits.data), free(r->dtokens.data);
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++) {
        struct results want = compute(dev, type);
        for (int threads = 1; threads <= 7; threads += 3) {
            struct dt_device *other = open_with(threads);
            struct results got = compute(other, type);
            dt_device_close(other);
            assert_same_bits(&got.y, &want.y), assert_same_bits(&got.dx, &want.dx);
            assert_same_bits(&got.dw, &want.dw), assert_same_bits(&got.db, &want.db);
            assert_same_bits(&got.half_dw, &want.half_dw);
            assert_same_bits(&got.logits, &want.logits);
            assert_same_bits(&got.dtokens, &want.dtokens);
            assert_memory_equal(got.losses, want.losses, sizeof got.losses);
            free_results(&got);
        }
        free_results(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(activations_and_biases),
        ON_EACH_ISA(embeddings),
        ON_EACH_ISA(norms),
        ON_EACH_ISA(rotations_and_gates),
        ON_EACH_ISA(losses),
        ON_EACH_ISA(bits_do_not_depend_on_the_number_of_threads),
    };
    return RUN_ON_EACH_ISA(tests);
}
