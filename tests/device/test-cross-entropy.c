/* SPDX-License-Identifier: MIT */
/* The loss and its gradient. */
#include "device/matrix.h"

struct classifier {
    struct dt_tensor logits;
    int32_t targets[6];
    struct dt_cross_entropy how;
};

static double row_loss_reference(const struct classifier *l, int64_t i)
{
    double sum = 0, mean = 0, smoothing = l->how.label_smoothing;
    if (l->targets[i] < 0)
        return 0;
    for (int64_t j = 0; j < l->logits.columns; j++) {
        sum += exp(at(&l->logits, i, j));
        mean += at(&l->logits, i, j) / (double)l->logits.columns;
    }
    return log(sum) - (1 - smoothing) * at(&l->logits, i, l->targets[i]) - smoothing * mean +
           l->how.z_loss * log(sum) * log(sum);
}

static double classifier_loss(void *context)
{
    struct classifier *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->logits.rows; i++)
        sum += 0.25 * row_loss_reference(l, i);
    return sum;
}

static void check_cross_entropy(float label_smoothing, float z_loss)
{
    struct classifier l = {random_matrix(6, 33),
                           {0, 32, 7, -1, 5, 5},
                           {.label_smoothing = label_smoothing, .z_loss = z_loss}};
    struct dt_tensor gradient = random_matrix(6, 33);
    float losses[6], again[6];
    memcpy(gradient.data, l.logits.data, 6 * 33 * sizeof(float));
    dev->ops->cross_entropy(dev, again, NULL, &gradient, l.targets, &l.how);
    assert_memory_equal(gradient.data, l.logits.data, 6 * 33 * sizeof(float));
    l.how.scale = 0.25f;
    dev->ops->cross_entropy(dev, losses, NULL, &gradient, l.targets, &l.how);
    assert_memory_equal(losses, again, sizeof losses);
    for (int64_t i = 0; i < 6; i++)
        assert_true(fabs(losses[i] - row_loss_reference(&l, i)) < 3e-6);
    assert_gradient(&gradient, &l.logits, classifier_loss, &l);
    free(l.logits.data), free(gradient.data);
}

static void cross_entropy_and_its_gradient_match_the_reference(void **state)
{
    (void)state;
    check_cross_entropy(0, 0);
    check_cross_entropy(0.1f, 0);
    check_cross_entropy(0, 0.01f);
    check_cross_entropy(0.2f, 0.1f);
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
        assert_true(at(&x, 4, j) == 0); /* a row without a target has no gradient */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(cross_entropy_and_its_gradient_match_the_reference),
        ON_EACH_ISA(a_hit_is_the_first_of_the_highest_logits),
        ON_EACH_ISA(cross_entropy_survives_large_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
