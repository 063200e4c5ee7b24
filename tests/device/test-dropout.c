/* SPDX-License-Identifier: MIT */
#include "device/matrix.h"

#include "device/cpu/random.h"

static const float rate = 0.25f;

static void vectorized_words_have_the_bits_of_dt_random(void **state)
{
    (void)state;
    uint64_t low[DT_CPU_LANES];
    uint32_t words[4][DT_CPU_LANES];
    for (int i = 0; i < DT_CPU_LANES; i++)
        low[i] = (uint64_t)i << (4 * i); /* past 2^32 too */
    dt_cpu_random(0x0123456789abcdef, 0xfedcba9876543210, low, words);
    for (int i = 0; i < DT_CPU_LANES; i++)
        for (int w = 0; w < 4; w++)
            assert_int_equal(words[w][i],
                             dt_random(0x0123456789abcdef, 0xfedcba9876543210, low[i]).word[w]);
}

/* Every element, by the definition in device.h. */
static void check_dropout(enum dt_dtype dtype, int64_t length, int64_t n)
{
    struct dt_dropout how = {.rate = rate, .key = 42, .sample = 7};
    struct dt_tensor wide = random_matrix_of(dtype, 3 * length, n + 5),
                     x = dt_tensor_columns(&wide, 2, n);
    struct dt_tensor before = copy_of(&wide), from = dt_tensor_columns(&before, 2, n);
    dev->ops->dropout(dev, &x, length, &how);
    for (int64_t i = 0; i < 3 * length; i++)
        for (int64_t j = 0; j < n; j++) {
            uint64_t e = (uint64_t)(i % length * n + j), index = 7 + (uint64_t)(i / length);
            bool keep = dt_random(42, index, e / 4).word[e % 4] >= rate * 0x1p32;
            double want = keep ? at(&from, i, j) / (1.0 - rate) : 0;
            assert_true(fabs(at(&x, i, j) - want) <= (rounding_of(dtype) + 1e-7) * fabs(want));
        }
    for (int64_t i = 0; i < 3 * length; i++) /* columns beside x do not change */
        assert_true(at(&wide, i, 1) == at(&before, i, 1) &&
                    at(&wide, i, n + 2) == at(&before, i, n + 2));
    free(wide.data), free(before.data);
}

static void dropout_matches_its_definition(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{6, 64}, {6, 100}, {3, 7}, {4, 1}, {2, 333}};
    for (enum dt_dtype dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_dropout(dtype, shapes[s][0], shapes[s][1]);
}

static void dropout_drops_at_its_rate(void **state)
{
    (void)state;
    static const float rates[] = {0.1f, 0.5f, 0.9f};
    const int64_t rows = 256, n = 1024;
    for (int i = 0; i < 3; i++) {
        struct dt_tensor x = random_matrix(rows, n);
        int64_t dropped = 0;
        dev->ops->dropout(dev, &x, 16, &(struct dt_dropout){.rate = rates[i], .key = 3});
        for (int64_t j = 0; j < rows * n; j++)
            dropped += ((float *)x.data)[j] == 0;
        double share = (double)dropped / (double)(rows * n);
        double deviation = sqrt(rates[i] * (1.0 - rates[i]) / (double)(rows * n));
        assert_true(fabs(share - rates[i]) < 4 * deviation);
        free(x.data);
    }
}

/* Sequences 4 .. 7 in one batch, then in two: the same elements are dropped. */
static void dropout_does_not_depend_on_the_index_in_the_batch(void **state)
{
    (void)state;
    const int64_t length = 5, n = 30;
    struct dt_tensor whole = random_matrix(4 * length, n), parts = copy_of(&whole);
    struct dt_dropout how = {.rate = rate, .key = 9, .sample = 4};
    dev->ops->dropout(dev, &whole, length, &how);
    for (int64_t half = 0; half < 2; half++) {
        struct dt_tensor part = dt_tensor_rows(&parts, half * 2 * length, 2 * length);
        how.sample = 4 + 2 * (uint64_t)half;
        dev->ops->dropout(dev, &part, length, &how);
    }
    assert_same_bits(&whole, &parts);
    free(whole.data), free(parts.data);
}

/* Any rows of a batch alone: the same elements are dropped. */
static void rows_of_a_batch_match_the_whole(void **state)
{
    (void)state;
    const int64_t length = 5, n = 30, cuts[] = {0, 7, 7, 8, 20};
    struct dt_tensor whole = random_matrix(4 * length, n), parts = copy_of(&whole);
    struct dt_dropout how = {.rate = rate, .key = 9, .sample = 4};
    dev->ops->dropout(dev, &whole, length, &how);
    for (int i = 0; i < 4; i++) {
        struct dt_tensor part = dt_tensor_rows(&parts, cuts[i], cuts[i + 1] - cuts[i]);
        how.first = cuts[i];
        dev->ops->dropout(dev, &part, length, &how);
    }
    assert_same_bits(&whole, &parts);
    free(whole.data), free(parts.data);
}

/* Tokens 2 and 3 of two sequences of 6. */
static void a_chunk_of_sequences_matches_the_whole(void **state)
{
    (void)state;
    const int64_t n = 30;
    struct dt_tensor whole = random_matrix(12, n), chunk = random_matrix(4, n);
    struct dt_dropout how = {.rate = rate, .key = 9, .sample = 4};
    for (int64_t b = 0; b < 2; b++) {
        struct dt_tensor to = dt_tensor_rows(&chunk, 2 * b, 2),
                         from = dt_tensor_rows(&whole, 6 * b + 2, 2);
        dev->ops->copy(dev, &to, &from);
    }
    dev->ops->dropout(dev, &whole, 6, &how);
    how.past = 2;
    dev->ops->dropout(dev, &chunk, 2, &how);
    wait_for(dev);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < n; j++)
            assert_true(at(&chunk, i, j) == at(&whole, i / 2 * 6 + 2 + i % 2, j));
    free(whole.data), free(chunk.data);
}

static void rate_zero_changes_nothing(void **state)
{
    (void)state;
    struct dt_tensor x = random_matrix(4, 9), before = copy_of(&x);
    dev->ops->dropout(dev, &x, 2, &(struct dt_dropout){.key = 1});
    assert_same_bits(&x, &before);
    free(x.data), free(before.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectorized_words_have_the_bits_of_dt_random),
        cmocka_unit_test(dropout_matches_its_definition),
        cmocka_unit_test(dropout_drops_at_its_rate),
        cmocka_unit_test(dropout_does_not_depend_on_the_index_in_the_batch),
        cmocka_unit_test(rows_of_a_batch_match_the_whole),
        cmocka_unit_test(a_chunk_of_sequences_matches_the_whole),
        cmocka_unit_test(rate_zero_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
