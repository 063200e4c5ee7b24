/* SPDX-License-Identifier: MIT */
/* Cross-entropy and its gradient. */
#include "device/matrix.h"

struct classifier {
    struct dt_tensor x;
    int32_t targets[6];
    struct dt_cross_entropy how;
};

/* Element j of row i of the logits. */
static double logit_of(const struct classifier *l, int64_t i, int64_t j)
{
    double scale = l->how.map.scale == 0 ? 1 : l->how.map.scale, cap = l->how.map.softcap;
    double x = scale * at(&l->x, i, j);
    return cap == 0 ? x : cap * tanh(x / cap);
}

static double row_loss_reference(const struct classifier *l, int64_t i)
{
    double sum = 0, mean = 0, smoothing = l->how.label_smoothing;
    if (l->targets[i] < 0)
        return 0;
    for (int64_t j = 0; j < l->x.columns; j++) {
        sum += exp(logit_of(l, i, j));
        mean += logit_of(l, i, j) / (double)l->x.columns;
    }
    return log(sum) - (1 - smoothing) * logit_of(l, i, l->targets[i]) - smoothing * mean +
           l->how.z_loss * log(sum) * log(sum);
}

static double classifier_loss(void *context)
{
    struct classifier *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->x.rows; i++)
        sum += 0.25 * row_loss_reference(l, i);
    return sum;
}

/* None, scaled, with a softcap that is hardly and much seen, and both. */
static const struct dt_logit_map maps[] = {{0, 0}, {0.3f, 0}, {1, 5}, {0, 0.5f}, {3, 0.7f}};

static void check_cross_entropy(float label_smoothing, float z_loss, struct dt_logit_map map)
{
    struct classifier l = {random_matrix(6, 33),
                           {0, 32, 7, -1, 5, 5},
                           {.label_smoothing = label_smoothing, .z_loss = z_loss, .map = map}};
    struct dt_tensor gradient = random_matrix(6, 33);
    float losses[6], again[6];
    memcpy(gradient.data, l.x.data, 6 * 33 * sizeof(float));
    dev->ops->cross_entropy(dev, again, NULL, &gradient, l.targets, &l.how);
    assert_memory_equal(gradient.data, l.x.data, 6 * 33 * sizeof(float));
    l.how.scale = 0.25f;
    dev->ops->cross_entropy(dev, losses, NULL, &gradient, l.targets, &l.how);
    assert_memory_equal(losses, again, sizeof losses);
    for (int64_t i = 0; i < 6; i++)
        assert_true(fabs(losses[i] - row_loss_reference(&l, i)) < 3e-6);
    assert_gradient(&gradient, &l.x, classifier_loss, &l);
    free(l.x.data), free(gradient.data);
}

static void cross_entropy_and_its_gradient_match_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        check_cross_entropy(0, 0, maps[i]);
        check_cross_entropy(0.1f, 0, maps[i]);
        check_cross_entropy(0, 0.01f, maps[i]);
        check_cross_entropy(0.2f, 0.1f, maps[i]);
    }
}

static void a_hit_is_the_first_of_the_highest_logits(void **state)
{
    (void)state;
    float logits[5][4] = {{1, 3, 2, 3}, {1, 3, 2, 3}, {5, 3, 2, 3}, {5, 3, 2, 3}, {5, 3, 2, 3}};
    const float want[5] = {1, 0, 1, 0, 0};
    const int32_t targets[5] = {1, 3, 0, 1, -1};
    float losses[5], hits[5];
    struct dt_tensor x = dt_matrix(logits, 5, 4);
    for (int scale = 0; scale < 2; scale++) {
        memset(hits, 7, sizeof hits);
        dev->ops->cross_entropy(dev, losses, hits, &x, targets,
                                &(struct dt_cross_entropy){.scale = (float)scale});
        assert_memory_equal(hits, want, sizeof hits);
    }
    for (int64_t j = 0; j < 4; j++)
        assert_true(at(&x, 4, j) == 0); /* the gradient of a row without a target is 0 */
}

/* The losses of mapped logits are those of a map in the loss. */
static void map_logits_has_the_logits_of_the_loss(void **state)
{
    (void)state;
    const int32_t targets[6] = {0, 32, 7, 31, 5, 16};
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++)
        for (enum dt_dtype dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
            struct classifier l = {random_matrix_of(dtype, 6, 35), {0}, {.map = maps[m]}};
            struct dt_tensor wide = as_type(DT_DTYPE_F32, &l.x), logits = copy_of(&l.x);
            struct dt_tensor part = dt_tensor_columns(&logits, 1, 33);
            float losses[2][6], hits[2][6];
            double want[6 * 35];
            for (int64_t i = 0; i < 6 * 35; i++)
                want[i] = i % 35 == 0 || i % 35 == 34 ? at(&l.x, i / 35, i % 35)
                                                      : logit_of(&l, i / 35, i % 35);
            dev->ops->map_logits(dev, &part, &maps[m]);
            assert_near(&logits, want, 1e-6);
            dev->ops->cross_entropy(dev, losses[0], hits[0], &wide, targets, &l.how);
            dev->ops->map_logits(dev, &wide, &maps[m]);
            dev->ops->cross_entropy(dev, losses[1], hits[1], &wide, targets,
                                    &(struct dt_cross_entropy){0});
            assert_memory_equal(hits[0], hits[1], sizeof hits[0]);
            struct dt_tensor a = dt_matrix(losses[0], 1, 6), b = dt_matrix(losses[1], 1, 6);
            assert_same_bits(&a, &b);
            free(l.x.data), free(wide.data), free(logits.data);
        }
}

/* Softcaps make large logits equal: of these, the first is the highest. */
static void a_hit_is_of_the_mapped_logits(void **state)
{
    (void)state;
    float values[2][4] = {{1, 300, 400, 3}, {1, 300, 400, 3}}, losses[2], hits[2];
    const int32_t targets[2] = {1, 2};
    struct dt_tensor x = dt_matrix(values, 2, 4);
    dev->ops->cross_entropy(dev, losses, hits, &x, targets,
                            &(struct dt_cross_entropy){.map = {.softcap = 2}});
    assert_true(hits[0] == 1 && hits[1] == 0);
}

static void large_logits_stay_finite(void **state)
{
    (void)state;
    float logits[3] = {1000, -1000, 999}, loss;
    int32_t target = 2;
    struct dt_tensor row = dt_matrix(logits, 1, 3);
    dev->ops->cross_entropy(dev, &loss, NULL, &row, &target,
                            &(struct dt_cross_entropy){.scale = 1});
    assert_true(fabs(loss - (1 + log(1 + exp(-1)))) < 1e-5);
}

/* Of eight logits each is a part; all but the target are masked. */
static void masked_parts_have_no_gradient(void **state)
{
    (void)state;
    float logits[8] = {-100}, loss;
    int32_t target = 0;
    struct dt_tensor row = dt_matrix(logits, 1, 8);
    for (int i = 1; i < 8; i++)
        logits[i] = -INFINITY;
    dev->ops->cross_entropy(dev, &loss, NULL, &row, &target,
                            &(struct dt_cross_entropy){.scale = 1});
    assert_true(fabs(loss) < 1e-5);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(logits[i]) < 1e-5);
}

#define COLUMNS 33

/* The first column of part k of count uneven parts. */
static int64_t first_column(int64_t k, int64_t count)
{
    return k == 0 ? 0 : COLUMNS * k / count + (k < count);
}

/* Loss and gradient of logits whose columns are divided into count parts. */
static void vocabulary_parallel(struct dt_tensor *logits, const int32_t *targets, int64_t count,
                                const struct dt_cross_entropy *how, float *losses, float *hits)
{
    int64_t rows = logits->rows;
    struct dt_tensor sums = random_matrix(count * rows, DT_LOGIT_SUMS);
    int32_t shifted[8];
    for (int64_t pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < count; k++) {
            int64_t first = first_column(k, count), n = first_column(k + 1, count) - first;
            struct dt_tensor part = dt_tensor_columns(logits, first, n), own = copy_of(&part);
            struct dt_tensor place = dt_tensor_rows(&sums, k * rows, rows);
            const struct dt_logit_parts of_rank = {.width = n, .first = k, .count = 1};
            for (int64_t i = 0; i < rows; i++)
                shifted[i] = targets[i] - (int32_t)first;
            if (pass == 0)
                dev->ops->logit_sums(dev, &place, &own, shifted, &of_rank, &how->map);
            else
                dev->ops->cross_entropy_of_sums(dev, losses, hits, &own, &sums, shifted, &of_rank,
                                                how);
            dev->ops->copy(dev, &part, &own);
            free(own.data);
        }
    free(sums.data);
}

static void vocabulary_parallel_loss_matches_the_whole(void **state)
{
    (void)state;
    const int32_t targets[6] = {0, 32, 7, 31, 5, 16};
    const struct dt_cross_entropy hows[] = {{.scale = 0.25f},
                                            {0.25f, 0.2f, 0.1f, {0, 0}},
                                            {0, 0.1f, 0.01f, {0.5f, 0}},
                                            {0.25f, 0.2f, 0.1f, {2, 0.7f}}};
    for (enum dt_dtype dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++)
        for (size_t h = 0; h < sizeof hows / sizeof *hows; h++)
            for (int64_t count = 1; count <= 5; count++) {
                struct dt_tensor whole = random_matrix_of(dtype, 6, COLUMNS);
                struct dt_tensor parts = copy_of(&whole);
                float losses[2][6], hits[2][6];
                dev->ops->cross_entropy(dev, losses[0], hits[0], &whole, targets, &hows[h]);
                vocabulary_parallel(&parts, targets, count, &hows[h], losses[1], hits[1]);
                assert_memory_equal(hits[0], hits[1], sizeof hits[0]);
                for (int64_t i = 0; i < 6; i++)
                    assert_true(fabs(losses[0][i] - losses[1][i]) < 1e-6 * (1 + losses[0][i]));
                double *want = dt_alloc(6 * COLUMNS, sizeof *want);
                for (int64_t i = 0; i < 6 * COLUMNS; i++)
                    want[i] = at(&whole, i / COLUMNS, i % COLUMNS);
                assert_near(&parts, want, 1e-6);
                free(whole.data), free(parts.data), free(want);
            }
}

/* The highest logit is in two parts, twice in one of them, and far from 0. */
static void a_vocabulary_parallel_hit_is_the_first_of_all(void **state)
{
    (void)state;
    struct dt_tensor x = random_matrix(4, COLUMNS);
    const int32_t targets[4] = {3, 5, 30, 30};
    float losses[2][4], hits[4];
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < COLUMNS; j++)
            ((float *)x.data)[i * COLUMNS + j] += 5000;
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 3; j++) /* columns 3, 5 and 30 */
            ((float *)x.data)[i * COLUMNS + (j == 0 ? 3 : j == 1 ? 5 : 30)] = 6000;
    ((float *)x.data)[3 * COLUMNS + 30] = 6000;
    dev->ops->cross_entropy(dev, losses[0], hits, &x, targets, &(struct dt_cross_entropy){0});
    for (int64_t count = 1; count <= 3; count++) {
        vocabulary_parallel(&x, targets, count, &(struct dt_cross_entropy){0}, losses[1], hits);
        for (int64_t i = 0; i < 4; i++) {
            assert_true(hits[i] == (i == 0 || i == 3));
            assert_true(fabs(losses[0][i] - losses[1][i]) < 1e-6);
        }
    }
    free(x.data);
}

/* Losses of one row: whole; of count ranks; and of one rank with all parts. */
static void losses_of_row(const struct dt_tensor *row, int32_t target, int64_t count,
                          const struct dt_cross_entropy *how, float losses[3])
{
    const struct dt_logit_parts all = dt_logit_parts_of(COLUMNS, COLUMNS, 0, 1);
    struct dt_tensor sums = random_matrix(all.count, DT_LOGIT_SUMS), own = copy_of(row);
    dev->ops->cross_entropy(dev, &losses[0], NULL, &own, &target, how);
    dev->ops->copy(dev, &own, row);
    vocabulary_parallel(&own, &target, count, how, &losses[1], NULL);
    dev->ops->copy(dev, &own, row);
    dev->ops->logit_sums(dev, &sums, &own, &target, &all, &how->map);
    dev->ops->cross_entropy_of_sums(dev, &losses[2], NULL, &own, &sums, &target, &all, how);
    free(own.data), free(sums.data);
}

/* Of one column, of those that a thread or a lane reads at once, or of a whole part. */
static void nan_among_the_logits_makes_the_loss_nan(void **state)
{
    (void)state;
    for (enum dt_dtype dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++)
        for (int64_t first = 0; first < COLUMNS; first += 4)
            for (int64_t width = 1; width <= 16; width *= 2) {
                struct dt_tensor x = random_matrix(1, COLUMNS);
                float losses[3];
                for (int64_t j = first; j < first + width && j < COLUMNS; j++)
                    ((float *)x.data)[j] = NAN;
                struct dt_tensor row = as_type(dtype, &x);
                losses_of_row(&row, first > 20 ? 1 : 32, 3, &(struct dt_cross_entropy){.scale = 1},
                              losses);
                assert_true(isnan(losses[0]) && isnan(losses[1]) && isnan(losses[2]));
                free(x.data), free(row.data);
            }
}

/* The last of 8 parts of 33 columns is empty. */
static void empty_parts_add_nothing_to_the_loss(void **state)
{
    (void)state;
    const struct dt_cross_entropy how = {0.25f, 0.2f, 0.1f, {2, 0.7f}};
    struct dt_tensor row = random_matrix(1, COLUMNS);
    float losses[3];
    losses_of_row(&row, 30, 3, &how, losses);
    assert_true(fabs(losses[0] - losses[1]) < 1e-6 && fabs(losses[0] - losses[2]) < 1e-6);
    free(row.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(cross_entropy_and_its_gradient_match_the_reference),
        ON_EACH_ISA(a_hit_is_the_first_of_the_highest_logits),
        ON_EACH_ISA(map_logits_has_the_logits_of_the_loss),
        ON_EACH_ISA(a_hit_is_of_the_mapped_logits),
        ON_EACH_ISA(large_logits_stay_finite),
        ON_EACH_ISA(masked_parts_have_no_gradient),
        ON_EACH_ISA(vocabulary_parallel_loss_matches_the_whole),
        ON_EACH_ISA(a_vocabulary_parallel_hit_is_the_first_of_all),
        ON_EACH_ISA(nan_among_the_logits_makes_the_loss_nan),
        ON_EACH_ISA(empty_parts_add_nothing_to_the_loss),
    };
    return RUN_ON_EACH_ISA(tests);
}
