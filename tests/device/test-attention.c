/* SPDX-License-Identifier: MIT */
/* Attention and its gradients. */
#include "device/attention-case.h"

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

/* Engines that need not have defined bits may round bf16's attention weights for their products. */
static double rounding_of_weights(enum dt_dtype dtype)
{
    return dtype == DT_DTYPE_BF16 ? rounding_of(dtype) : 0;
}

static void check_attention(const struct shape *shape)
{
    struct attention l = make_attention(shape);
    double *want = dt_alloc((size_t)(l.qkv.rows * l.qkv.columns), sizeof *want);
    run_attention(dev, &l);
    attention_reference(&l, want);
    assert_near(&l.y, want, 1e-6 + rounding_of_weights(shape->dtype));
    backward_reference(&l, want);
    assert_near(&l.dqkv, want, 3e-6 + 2 * rounding_of(shape->dtype)); /* y is rounded too */
    free(want);
    free_attention(&l);
}

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {2, 2, 2, 5, 4},
        {1, 3, 3, 1, 8},
        {2, 4, 2, 5, 4, .bidirectional = true},
        {1, 3, 1, 12, 2, .spans = DOCUMENTS, .rate = 0.3f},
        {1, 1, 1, 70, 2}, /* crosses a block of queries */
        {1, 2, 1, 67, 2, .bidirectional = true, .spans = PADDING, .rate = 0.1f},
        {1, 2, 1, 12, 4, .window = 3, .scale = 0.8f, .softcap = 0.7f},
        {1, 1, 1, 70, 2, .bidirectional = true, .window = 4, .scale = 1, .softcap = 1.5f},
        {1, 2, 2, 68, 2, .spans = DOCUMENTS, .rate = 0.2f, .window = 5, .softcap = 0.4f},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct attention l = make_attention(&shapes[i]);
        run_attention(dev, &l);
        assert_gradient(&l.dq, &l.q, attention_loss, &l);
        assert_gradient(&l.dk, &l.k, attention_loss, &l);
        assert_gradient(&l.dv, &l.v, attention_loss, &l);
        free_attention(&l);
    }
}

static void attention_and_its_backward_match_the_reference(void **state)
{
    (void)state;
    check_attention(&(struct shape){3, 2, 2, 130, 16}); /* ends inside a third block */
    check_attention(&(struct shape){2, 6, 2, 130, 8});  /* heads share keys */
    check_attention(&(struct shape){1, 2, 1, 64, 64});
    check_attention(&(struct shape){2, 2, 1, 63, 80});
    check_attention(&(struct shape){1, 3, 3, 257, 5});
    check_attention(&(struct shape){2, 4, 4, 129, 33, .bidirectional = true});
}

static void queries_attend_only_to_their_spans(void **state)
{
    (void)state;
    for (int bidirectional = 0; bidirectional < 2; bidirectional++)
        for (int spans = DOCUMENTS; spans <= PADDING; spans++) {
            check_attention(&(struct shape){3, 2, 1, 200, 8, bidirectional, spans, 0});
            check_attention(&(struct shape){1, 1, 1, 31, 16, bidirectional, spans, 0});
        }
}

static void windows_scales_and_soft_caps_match_the_reference(void **state)
{
    (void)state;
    check_attention(&(struct shape){2, 2, 1, 200, 8, .window = 1});
    check_attention(&(struct shape){1, 2, 2, 300, 16, .window = 65});
    check_attention(&(struct shape){1, 2, 2, 130, 16, .window = 1000});
    check_attention(&(struct shape){1, 4, 2, 257, 24, .window = 64, .scale = 0.3f});
    check_attention(&(struct shape){1, 2, 1, 150, 8, true, DOCUMENTS, 0.1f, .window = 30});
    check_attention(&(struct shape){2, 1, 1, 140, 72, .scale = 1, .softcap = 2});
    check_attention(&(struct shape){1, 2, 1, 90, 200, .scale = 0.5f, .softcap = 3});
    for (enum dt_dtype dtype = DT_DTYPE_BF16; dtype <= DT_DTYPE_F16; dtype++) {
        check_attention(&(struct shape){2, 2, 1, 140, 64, .dtype = dtype, .window = 40});
        check_attention(
            &(struct shape){1, 2, 1, 140, 64, .dtype = dtype, .window = 70, .softcap = 0.5f});
    }
}

/* Of sequences much longer than the window: blocks of keys outside it, and for gradients of keys
 * blocks of queries, may hold NaN. */
static void blocks_outside_the_window_are_not_read(void **state)
{
    (void)state;
    const int64_t lengths[] = {300, 8}; /* of the queries; few ones are computed by another loop */
    for (int bidirectional = 0; bidirectional < 2; bidirectional++)
        for (int i = 0; i < 2; i++) {
            struct attention l = make_attention(
                &(struct shape){1, 1, 1, 900, 8, .bidirectional = bidirectional, .window = 130});
            struct attention p = chunk_of(&l, lengths[i], 400);
            for (int64_t row = 0; row < 900; row++)
                for (int64_t j = 8; j < 24 && (row < 192 || row >= 832); j++)
                    ((float *)l.qkv.data)[row * 24 + j] = NAN;
            run_attention(dev, &p);
            for (int64_t t = 0; t < lengths[i]; t++)
                for (int64_t j = 0; j < 8; j++)
                    assert_true(isfinite(at(&p.y, t, j)) && isfinite(at(&p.dq, t, j)));
            for (int64_t key = 0; key < 900; key++)
                assert_true(isfinite(at(&l.dk, key, 0)) && isfinite(at(&l.dv, key, 0)));
            free_attention(&l);
        }
    struct attention l = make_attention(&(struct shape){1, 1, 1, 900, 8, .window = 130});
    for (int64_t row = 0; row < 900; row++)
        for (int64_t j = 0; j < 8 && (row < 256 || row >= 640); j++)
            ((float *)l.q.data)[row * 24 + j] = NAN;
    run_attention(dev, &l);
    for (int64_t key = 256; key < 448; key++)
        assert_true(isfinite(at(&l.dk, key, 0)) && isfinite(at(&l.dv, key, 0)));
    assert_true(isnan(at(&l.dk, 200, 0)) && isnan(at(&l.dk, 600, 0)));
    free_attention(&l);
}

/* A window at the end of a padded sequence has no keys. */
static void queries_without_keys_are_zero(void **state)
{
    (void)state;
    struct attention l =
        make_attention(&(struct shape){2, 1, 1, 200, 8, true, PADDING, .window = 20});
    run_attention(dev, &l);
    for (int64_t j = 0; j < 8; j++) {
        assert_true(at(&l.y, 199, j) != 0 && at(&l.dq, 199, j) != 0);
        assert_true(at(&l.y, 309, j) != 0 && at(&l.y, 310, j) == 0 && at(&l.dq, 310, j) == 0);
        assert_true(at(&l.dk, 299, j) != 0 && at(&l.dk, 300, j) == 0);
    }
    assert_true(isinf(at(&l.lse, 310, 0)) && at(&l.lse, 310, 0) < 0);
    free_attention(&l);
}

/* Masked keys may hold NaN. */
static void masked_keys_are_not_read(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){1, 2, 2, 300, 8, .bidirectional = true});
    for (int i = 0; i < 300; i++)
        l.begins[i] = i < 128 ? 0 : 128, l.ends[i] = i < 128 ? 128 : 300;
    l.how.begins = l.begins, l.how.ends = l.ends;
    for (int64_t i = 128; i < 300; i++)
        for (int64_t j = 0; j < 48; j++)
            ((float *)l.qkv.data)[i * 48 + j] = NAN;
    run_attention(dev, &l);
    for (int64_t i = 0; i < 128; i++)
        for (int64_t j = 0; j < 48; j++) {
            assert_true(j >= 16 || isfinite(at(&l.y, i, j)));
            assert_true(isfinite(at(&l.dqkv, i, j)));
        }
    assert_true(isnan(at(&l.y, 130, 0)) != 0);
    free_attention(&l);
}

static void attention_reads_a_kv_cache(void **state)
{
    (void)state;
    const int64_t capacity = 150, width = 16, keys = 8;
    for (int64_t past = 0; past < 140; past += 69) {
        struct attention l = {.q = random_matrix(6, width),
                              .k = random_matrix(2 * capacity, keys),
                              .v = random_matrix(2 * capacity, keys),
                              .y = random_matrix(6, width),
                              .lse = random_matrix(6, 4),
                              .how = {.batch = 2,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .queries = 3,
                                      .past = past,
                                      .key_stride = capacity}};
        double *want = dt_alloc((size_t)(6 * width), sizeof *want);
        attention_reference(&l, want);
        dev->ops->attention_forward(dev, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
        assert_near(&l.y, want, 1e-6);
        free(l.q.data), free(l.k.data), free(l.v.data), free(l.y.data), free(l.lse.data);
        free(want);
    }
}

/* Scores of thousands: the log-sum-exp is then the largest score, nearly. */
static void large_scores_stay_finite(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){1, 1, 1, 140, 8});
    for (int64_t i = 0; i < l.qkv.rows * l.qkv.columns; i++)
        ((float *)l.qkv.data)[i] *= i % 24 < 16 ? 60.0f : 1.0f;
    run_attention(dev, &l);
    for (int64_t t = 0; t < 140; t++) {
        double most = -INFINITY;
        for (int64_t s = 0; s <= t; s++) {
            double dot = 0;
            for (int64_t j = 0; j < 8; j++)
                dot += (double)at(&l.q, t, j) * at(&l.k, s, j);
            most = fmax(most, dot / sqrt(8));
        }
        assert_true(at(&l.lse, t, 0) > most - 0.01 && at(&l.lse, t, 0) < most + 1);
        for (int64_t j = 0; j < 8; j++)
            assert_true(isfinite(at(&l.y, t, j)) && isfinite(at(&l.dq, t, j)));
    }
    free_attention(&l);
}

/* Of one key the weight is 1, whatever its score; all of a sequence, and few queries. */
static void the_lowest_scores_have_weights(void **state)
{
    (void)state;
    if (!has_defined_bits())
        skip(); /* their exponentials are those of scores times log2(e), with another rounding */
    for (int64_t length = 1; length <= 20; length += 19) {
        struct attention l = make_attention(&(struct shape){1, 1, 1, length, 1, .window = 1});
        for (int64_t t = 0; t < length; t++) {
            ((float *)l.q.data)[t * l.q.stride] = -2e16f;
            ((float *)l.k.data)[t * l.k.stride] = 1e16f;
        }
        run_attention(dev, &l);
        for (int64_t t = 0; t < length; t++) {
            assert_true(at(&l.y, t, 0) == at(&l.v, t, 0));
            assert_true(at(&l.lse, t, 0) == -2e16f * 1e16f && at(&l.dq, t, 0) == 0);
        }
        free_attention(&l);
    }
}

/* Products of numbers that are too large for fp32 are minus infinity: that of all keys, NaN as in a
 * softmax of them; of a block of keys before others, nothing. Of all of a sequence, and of its last
 * query. */
static void scores_of_minus_infinity_are_not_missing_keys(void **state)
{
    (void)state;
    enum { LENGTH = 70 };
    for (int64_t infinite = 64; infinite <= LENGTH; infinite += 6)
        for (int64_t queries = 1; queries <= LENGTH; queries += LENGTH - 1) {
            struct attention l = make_attention(&(struct shape){1, 1, 1, LENGTH, 1});
            for (int64_t t = 0; t < LENGTH; t++) {
                ((float *)l.q.data)[t * l.q.stride] = -1e25f;
                ((float *)l.k.data)[t * l.k.stride] = t < infinite ? 1e25f : (float)t;
            }
            struct attention p = chunk_of(&l, queries, LENGTH - queries);
            run_attention(dev, &p);
            float y = at(&p.y, queries - 1, 0);
            assert_true(infinite == LENGTH ? isnan(y) : y == at(&l.v, infinite, 0));
            assert_true(infinite < LENGTH || isnan(at(&p.dq, queries - 1, 0)));
            assert_true(queries == 1 || isnan(at(&p.y, 0, 0)));
            free_attention(&l);
        }
}

static void attention_dropout_matches_the_reference(void **state)
{
    (void)state;
    check_attention(&(struct shape){2, 2, 2, 128, 8, .rate = 0.1f});
    check_attention(&(struct shape){2, 4, 2, 131, 8, .rate = 0.5f});
    check_attention(&(struct shape){1, 2, 1, 70, 8, true, DOCUMENTS, 0.25f});
}

static void sixteen_bit_tensors_match_the_reference(void **state)
{
    (void)state;
    for (enum dt_dtype dtype = DT_DTYPE_BF16; dtype <= DT_DTYPE_F16; dtype++) {
        check_attention(&(struct shape){2, 4, 2, 129, 16, .dtype = dtype});
        check_attention(&(struct shape){1, 2, 2, 66, 7, true, PADDING, 0.1f, dtype});
        check_attention(&(struct shape){1, 2, 1, 75, 72, .softcap = 2, .dtype = dtype});
        check_attention(&(struct shape){1, 1, 1, 133, 48, .window = 37, .dtype = dtype});
        check_attention(&(struct shape){1, 4, 2, 129, 32, .rate = 0.2f, .dtype = dtype});
        check_attention(&(struct shape){1, 2, 1, 190, 64, true, DOCUMENTS, 0.1f, dtype});
        check_attention(&(struct shape){2, 1, 1, 104, 96, .spans = DOCUMENTS, .dtype = dtype});
        check_attention(&(struct shape){1, 1, 1, 84, 128, .softcap = 2, .dtype = dtype});
    }
}

/* The last queries of a sequence, alone: as blocks, and by the loop for few of them. */
static void bits_of_bf16_depend_on_the_keys_alone(void **state)
{
    (void)state;
    if (getenv("DT_TEST_ENGINE"))
        skip(); /* GPUs compute few queries in another order */
    for (int64_t size = 16; size <= 128; size += 16)
        for (int64_t window = 0; window <= 90; window += 90) {
            struct attention l = make_attention(
                &(struct shape){1, 4, 2, 213, size, .window = window, .dtype = DT_DTYPE_BF16});
            struct dt_tensor y = copy_of(&l.y), lse = copy_of(&l.lse);
            run_attention(dev, &l);
            dev->ops->copy(dev, &y, &l.y);
            dev->ops->copy(dev, &lse, &l.lse);
            for (int64_t queries = 1; queries < 150; queries = queries * 2 + 3) {
                struct attention p = chunk_of(&l, queries, 213 - queries);
                struct dt_tensor want = dt_tensor_rows(&y, 213 - queries, queries);
                struct dt_tensor sums = dt_tensor_rows(&lse, 213 - queries, queries);
                run_attention(dev, &p);
                assert_same_bits(&want, &p.y);
                assert_same_bits(&sums, &p.lse);
            }
            free(y.data), free(lse.data);
            free_attention(&l);
        }
}

/* A batch of 3 has the bits of the same sequences one by one. */
static void dropout_does_not_depend_on_the_index_in_the_batch(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){3, 2, 2, 66, 8, .rate = 0.2f});
    struct attention one = l;
    run_attention(dev, &l);
    one.y = random_matrix(l.y.rows, l.y.columns);
    one.lse = random_matrix(l.lse.rows, l.lse.columns);
    one.how.batch = 1;
    for (int64_t b = 0; b < 3; b++) {
        struct dt_tensor y = dt_tensor_rows(&one.y, b * 66, 66),
                         lse = dt_tensor_rows(&one.lse, b * 66, 66);
        struct dt_tensor q = dt_tensor_rows(&l.q, b * 66, 66), k = dt_tensor_rows(&l.k, b * 66, 66);
        struct dt_tensor v = dt_tensor_rows(&l.v, b * 66, 66);
        one.how.dropout.sample = 11 + (uint64_t)b;
        dev->ops->attention_forward(dev, &y, &lse, &q, &k, &v, &one.how);
    }
    assert_same_bits(&l.y, &one.y);
    free(one.y.data), free(one.lse.data);
    free_attention(&l);
}

/* Heads 2 and 3 of four (GQA, two per key head), computed alone as by a tensor-parallel rank. */
static void tensor_parallel_heads_match_all_heads(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){2, 4, 2, 66, 8, .rate = 0.2f});
    struct dt_tensor y = random_matrix(l.y.rows, 16), lse = random_matrix(l.y.rows, 2);
    struct dt_tensor q = dt_tensor_columns(&l.q, 16, 16), k = dt_tensor_columns(&l.k, 8, 8);
    struct dt_tensor v = dt_tensor_columns(&l.v, 8, 8), want = dt_tensor_columns(&l.y, 16, 16);
    struct dt_attention how = l.how;
    run_attention(dev, &l);
    how.heads = 2, how.kv_heads = 1, how.first_head = 2;
    dev->ops->attention_forward(dev, &y, &lse, &q, &k, &v, &how);
    assert_same_bits(&want, &y);
    free(y.data), free(lse.data);
    free_attention(&l);
}

/* Gradients of keys and values are in fp32, and are added. dqkv becomes fp32. */
static void run_in_chunks(struct attention *l, int64_t tokens)
{
    int64_t length = l->how.queries, width = l->dq.columns, keys = l->dk.columns;
    struct dt_tensor each = random_matrix(length, 2 * keys), sum = random_matrix(length, 2 * keys);
    struct dt_tensor all = random_matrix(length, width + 2 * keys);
    struct dt_tensor dq = dt_tensor_columns(&all, 0, width),
                     dkeys = dt_tensor_columns(&all, width, 2 * keys);
    dev->ops->zero(dev, &sum);
    for (int64_t query = 0; query < length; query += tokens) {
        struct attention p = chunk_of(l, tokens, query);
        p.dk = dt_tensor_columns(&each, 0, keys), p.dv = dt_tensor_columns(&each, keys, keys);
        run_attention(dev, &p);
        dev->ops->combine(dev, &sum, 1, &each, 1);
    }
    dev->ops->copy(dev, &dq, &l->dq);
    dev->ops->copy(dev, &dkeys, &sum);
    free(l->dqkv.data), free(each.data), free(sum.data);
    l->dqkv = all;
}

static void chunks_of_queries_match_the_reference(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1, 2, 1, 8, 4},
        {1, 4, 2, 24, 8, .rate = 0.3f},
        {1, 3, 3, 150, 5, .bidirectional = true, .rate = 0.1f},
        {1, 2, 2, 144, 8, .spans = DOCUMENTS, .rate = 0.1f},
        {1, 2, 1, 140, 8, .bidirectional = true, .spans = PADDING},
        {1, 6, 2, 138, 16, .bidirectional = true, .spans = DOCUMENTS},
        {1, 2, 1, 140, 64, .spans = DOCUMENTS, .rate = 0.1f, .dtype = DT_DTYPE_BF16},
        {1, 1, 1, 138, 72, .rate = 0.2f, .dtype = DT_DTYPE_F16},
    };
    int64_t most = getenv("DT_TEST_ENGINE") ? 3 : 6; /* emulated GPUs are slow */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int64_t chunks = 1; chunks <= most; chunks++) {
            struct attention l = make_attention(&shapes[i]);
            double *want = dt_alloc((size_t)(l.qkv.rows * l.qkv.columns), sizeof *want);
            if (shapes[i].length % chunks == 0) {
                run_in_chunks(&l, shapes[i].length / chunks);
                attention_reference(&l, want);
                assert_near(&l.y, want, 1e-6 + rounding_of_weights(l.q.dtype));
                backward_reference(&l, want);
                assert_near(&l.dqkv, want, 3e-6 + 2 * rounding_of(l.q.dtype));
            }
            free(want);
            free_attention(&l);
        }
}

/* Few heads and many threads use separate loops in backward. */
static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1, 4, 2, 300, 16, .rate = 0.1f},
        {2, 3, 3, 129, 40, .bidirectional = true},
        {1, 2, 1, 250, 8, .spans = DOCUMENTS},
        {1, 2, 1, 130, 24, .dtype = DT_DTYPE_BF16},
        {1, 2, 1, 190, 64, .spans = DOCUMENTS, .rate = 0.1f, .dtype = DT_DTYPE_BF16},
        {1, 2, 1, 300, 24, .window = 100, .softcap = 1},
        {1, 2, 1, 300, 24, .bidirectional = true, .window = 90},
    };
    const int most = getenv("DT_TEST_ENGINE") ? 3 : 9; /* emulated GPUs are slow */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct attention l = make_attention(&shapes[i]);
        struct dt_tensor y = {0}, gradients = {0};
        for (int threads = 1; threads <= most; threads += 2) {
            struct dt_device *on = open_with(threads);
            run_attention(on, &l);
            dt_device_close(on);
            if (threads == 1) {
                y = copy_of(&l.y), gradients = copy_of(&l.dqkv);
                continue;
            }
            assert_same_bits(&l.y, &y);
            assert_same_bits(&l.dqkv, &gradients);
        }
        free(y.data), free(gradients.data);
        free_attention(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(attention_and_its_backward_match_the_reference),
        cmocka_unit_test(queries_attend_only_to_their_spans),
        cmocka_unit_test(windows_scales_and_soft_caps_match_the_reference),
        cmocka_unit_test(blocks_outside_the_window_are_not_read),
        cmocka_unit_test(queries_without_keys_are_zero),
        cmocka_unit_test(masked_keys_are_not_read),
        cmocka_unit_test(attention_reads_a_kv_cache),
        cmocka_unit_test(large_scores_stay_finite),
        cmocka_unit_test(the_lowest_scores_have_weights),
        cmocka_unit_test(scores_of_minus_infinity_are_not_missing_keys),
        cmocka_unit_test(attention_dropout_matches_the_reference),
        cmocka_unit_test(sixteen_bit_tensors_match_the_reference),
        cmocka_unit_test(bits_of_bf16_depend_on_the_keys_alone),
        cmocka_unit_test(tensor_parallel_heads_match_all_heads),
        cmocka_unit_test(chunks_of_queries_match_the_reference),
        cmocka_unit_test(dropout_does_not_depend_on_the_index_in_the_batch),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
