/* SPDX-License-Identifier: MIT */
/* Attention's kernels on the processor, against double precision and the cpu engine. */
#include "device/attention-case.h"

static struct dt_device *gpu; /* dev is the cpu */

static double tolerance_of(enum dt_dtype dtype)
{
    return dtype == DT_DTYPE_F32 ? 1e-5 : dtype == DT_DTYPE_BF16 ? 1e-2 : 2e-3;
}

/* max |got - want| against the largest |want|. */
static double difference(const struct dt_tensor *got, const double *want)
{
    double worst = 0, largest = 1e-2;
    for (int64_t i = 0; i < got->rows * got->columns; i++) {
        double x = at(got, i / got->columns, i % got->columns);
        double d = x == want[i] ? 0 : fabs(x - want[i]); /* infinities, too */
        if (!(d <= worst))                               /* NaN is the worst */
            worst = isnan(d) ? INFINITY : d;
        largest = fmax(largest, isinf(want[i]) ? 0 : fabs(want[i]));
    }
    return worst / largest;
}

static double *numbers_of(const struct dt_tensor *x)
{
    double *numbers = dt_alloc((size_t)(x->rows * x->columns), sizeof *numbers);
    for (int64_t i = 0; i < x->rows * x->columns; i++)
        numbers[i] = at(x, i / x->columns, i % x->columns);
    return numbers;
}

static void assert_close(const struct dt_tensor *got, const double *want, const char *what,
                         const char *against)
{
    double d = difference(got, want);
    if (!(d <= tolerance_of(got->dtype)))
        fail_msg("%s differs from %s by %g", what, against, d);
}

/* Results become NaN, so that what is not written shows. */
static void spoil(const struct dt_tensor *x)
{
    memset(x->data, 0xff, (size_t)(x->rows * x->stride) * dt_dtype_size(x->dtype));
}

static void finish(void)
{
    struct dt_error err;
    if (gpu->ops->synchronize(gpu, &err))
        fail_msg("%s", err.text);
}

static void run_gpu(struct attention *l)
{
    spoil(&l->y), spoil(&l->dqkv), spoil(&l->lse);
    run_attention(gpu, l);
    finish();
}

static void check(const struct shape *shape)
{
    struct attention l = make_attention(shape);
    double *want = dt_alloc((size_t)(l.qkv.rows * l.qkv.columns), sizeof *want);
    struct dt_tensor cpu[] = {copy_of(&l.y), copy_of(&l.lse), copy_of(&l.dqkv)};
    run_gpu(&l);
    attention_reference(&l, want);
    assert_close(&l.y, want, "y", "double precision");
    backward_reference(&l, want);
    assert_close(&l.dqkv, want, "dqkv", "double precision");
    free(want);

    struct attention c = l;
    c.y = cpu[0], c.lse = cpu[1], c.dqkv = cpu[2];
    c.dq = dt_tensor_columns(&c.dqkv, 0, l.dq.columns);
    c.dk = dt_tensor_columns(&c.dqkv, l.dq.columns, l.dk.columns);
    c.dv = dt_tensor_columns(&c.dqkv, l.dq.columns + l.dk.columns, l.dv.columns);
    run_attention(dev, &c);
    double *y = numbers_of(&c.y), *lse = numbers_of(&c.lse), *dqkv = numbers_of(&c.dqkv);
    assert_close(&l.y, y, "y", "the cpu engine");
    assert_close(&l.lse, lse, "lse", "the cpu engine");
    assert_close(&l.dqkv, dqkv, "dqkv", "the cpu engine");
    free(y), free(lse), free(dqkv);
    for (int i = 0; i < 3; i++)
        free(cpu[i].data);
    free_attention(&l);
}

/* Small, and enough to show most mistakes: tests/planted/kernels.bats. */
static void a_few_tiles_match_the_reference(void **unused)
{
    (void)unused;
    check(&(struct shape){1, 2, 1, 150, 64, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 1, 1, 68, 128, .rate = 0.2f, .dtype = DT_DTYPE_F16});
    check(&(struct shape){1, 2, 1, 70, 8, .rate = 0.2f});
}

/* By wgmma: enough tiles of keys that slots of the ring are filled again. */
static void a_ring_of_tiles_matches_the_reference(void **unused)
{
    (void)unused;
    check(&(struct shape){1, 2, 1, 400, 64, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 1, 1, 150, 128, .bidirectional = true, .dtype = DT_DTYPE_F16});
}

/* Heads of 64 and 128 channels, and those that are made as long by zeros. */
static void tensor_cores_match_the_reference(void **unused)
{
    (void)unused;
    check(&(struct shape){2, 2, 2, 150, 64, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 2, 2, 129, 64, .bidirectional = true, .dtype = DT_DTYPE_F16});
    check(&(struct shape){1, 2, 2, 131, 128, .dtype = DT_DTYPE_F16});
    check(&(struct shape){1, 1, 1, 193, 128, .bidirectional = true, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){3, 1, 1, 1, 64, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 2, 2, 65, 40, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 2, 2, 63, 80, .dtype = DT_DTYPE_F16});
}

static void heads_share_keys(void **unused)
{
    (void)unused;
    check(&(struct shape){2, 4, 2, 130, 64, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 3, 1, 70, 128, .bidirectional = true, .dtype = DT_DTYPE_F16});
    check(&(struct shape){2, 6, 2, 130, 8});
}

static void queries_see_their_spans_alone(void **unused)
{
    (void)unused;
    for (int bidirectional = 0; bidirectional < 2; bidirectional++)
        for (int spans = DOCUMENTS; spans <= PADDING; spans++) {
            check(&(struct shape){2, 2, 1, 150, 64, bidirectional, spans, 0, DT_DTYPE_BF16});
            check(&(struct shape){1, 1, 1, 141, 128, bidirectional, spans, 0, DT_DTYPE_F16});
            check(&(struct shape){2, 1, 1, 140, 8, bidirectional, spans, 0, DT_DTYPE_F32});
        }
}

/* Few tiles of keys of each query, and queries at the end of padding that see none. */
static void queries_see_their_windows_alone(void **unused)
{
    (void)unused;
    for (int dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
        enum dt_dtype type = (enum dt_dtype)dtype;
        check(&(struct shape){1, 2, 1, 210, 64, .dtype = type, .window = 70});
        check(&(struct shape){1, 1, 1, 150, 128, .dtype = type, .window = 1, .scale = 0.3f});
        check(&(struct shape){1, 1, 1, 150, 40, .rate = 0.2f, .dtype = type, .window = 66});
        check(&(struct shape){2, 1, 1, 200, 64, true, PADDING, 0, type, .window = 30});
        check(&(struct shape){1, 1, 1, 170, 128, true, DOCUMENTS, 0, type, .window = 200});
    }
}

/* By the general kernels, whatever the type. */
static void soft_caps_match_the_reference(void **unused)
{
    (void)unused;
    for (int dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
        enum dt_dtype type = (enum dt_dtype)dtype;
        check(&(struct shape){1, 2, 1, 130, 64, .dtype = type, .scale = 1, .softcap = 2});
        check(&(struct shape){1, 1, 1, 70, 256, .dtype = type, .scale = 1, .softcap = 3});
        check(&(struct shape){1, 2, 1, 150, 24, .rate = 0.1f, .dtype = type, .window = 40,
                              .softcap = 0.5f});
    }
}

static void dropped_weights_are_those_of_the_cpu(void **unused)
{
    (void)unused;
    check(&(struct shape){2, 2, 1, 132, 64, .rate = 0.1f, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 2, 1, 131, 64, .rate = 0.5f, .dtype = DT_DTYPE_F16, .first_head = 3});
    check(&(struct shape){1, 2, 2, 68, 128, true, DOCUMENTS, 0.25f, DT_DTYPE_BF16});
    check(&(struct shape){1, 1, 1, 70, 128, .rate = 0.1f, .dtype = DT_DTYPE_F16});
    check(&(struct shape){2, 3, 1, 100, 8, .rate = 0.3f, .first_head = 6});
    check(&(struct shape){1, 2, 1, 67, 16, true, PADDING, 0.1f});
}

/* fp32, and 16 bits whose rows do not begin at multiples of 16 bytes. */
static void any_head_matches_the_reference(void **unused)
{
    (void)unused;
    check(&(struct shape){2, 2, 2, 130, 64});
    check(&(struct shape){1, 3, 3, 65, 5});
    check(&(struct shape){1, 2, 1, 70, 128, .bidirectional = true});
    check(&(struct shape){1, 1, 1, 40, 200});
    check(&(struct shape){1, 1, 1, 33, 256, .rate = 0.2f});
    check(&(struct shape){1, 2, 2, 66, 33, .dtype = DT_DTYPE_BF16});
    check(&(struct shape){1, 1, 1, 34, 136, .dtype = DT_DTYPE_F16});
}

static void shapes_may_be_any(void **unused)
{
    (void)unused;
    for (int i = 0; i < 12; i++) {
        struct shape s = {1 + dt_rng_below(&rng, 2), 1 + dt_rng_below(&rng, 3), 1,
                          1 + dt_rng_below(&rng, 180), 1 + dt_rng_below(&rng, 16)};
        if (i % 3 > 0)
            s.size *= 8;
        s.bidirectional = dt_rng_below(&rng, 2), s.spans = (enum spans)dt_rng_below(&rng, 3);
        s.rate = dt_rng_below(&rng, 3) ? 0 : 0.2f;
        s.dtype = (enum dt_dtype)(i % 3);
        check(&s);
    }
}

static void shapes_of_tiles_may_be_any(void **unused)
{
    (void)unused;
    for (int i = 0; i < 8; i++) {
        int64_t kv_heads = 1 + dt_rng_below(&rng, 2);
        check(&(struct shape){1 + dt_rng_below(&rng, 2), kv_heads * (1 + dt_rng_below(&rng, 3)),
                              kv_heads, 1 + dt_rng_below(&rng, i < 4 ? 200 : 130), i % 2 ? 128 : 64,
                              dt_rng_below(&rng, 2), (enum spans)dt_rng_below(&rng, 3), 0,
                              i / 2 % 2 ? DT_DTYPE_F16 : DT_DTYPE_BF16,
                              .window = i % 3 ? 0 : 1 + dt_rng_below(&rng, 200)});
    }
}

/* Few queries after many keys, in a cache with room for more, which is not read. */
static void attention_reads_a_cache(void **unused)
{
    (void)unused;
    for (int64_t past = 0; past < 220; past += 73)
        for (int dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
            const int64_t room = 230, size = 64;
            struct attention l = {.q = random_matrix_of((enum dt_dtype)dtype, 6, 4 * size),
                                  .k = random_matrix_of((enum dt_dtype)dtype, 2 * room, 2 * size),
                                  .v = random_matrix_of((enum dt_dtype)dtype, 2 * room, 2 * size),
                                  .y = random_matrix_of((enum dt_dtype)dtype, 6, 4 * size),
                                  .lse = random_matrix(6, 4),
                                  .how = {.batch = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .queries = 3,
                                          .past = past,
                                          .key_stride = room}};
            double *want = dt_alloc((size_t)(l.y.rows * l.y.columns), sizeof *want);
            attention_reference(&l, want);
            for (int64_t b = 0; b < 2; b++) {
                struct dt_tensor k = dt_tensor_rows(&l.k, b * room + past + 3, room - past - 3);
                struct dt_tensor v = dt_tensor_rows(&l.v, b * room + past + 3, room - past - 3);
                spoil(&k), spoil(&v);
            }
            spoil(&l.y);
            gpu->ops->attention_forward(gpu, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
            finish();
            assert_close(&l.y, want, "y", "double precision");
            free(l.q.data), free(l.k.data), free(l.v.data), free(l.y.data), free(l.lse.data);
            free(want);
        }
}

/* tolerance: that of the operands, also of results in fp32. */
static void assert_same(const struct dt_tensor *got, const struct dt_tensor *want, double tolerance,
                        const char *what)
{
    double *numbers = numbers_of(want), d = difference(got, numbers);
    if (!(d <= tolerance))
        fail_msg("%s differs from the cpu engine by %g", what, d);
    free(numbers);
}

/* Attention of queries from past on to all keys of two sequences, with dk and dv in fp32. */
static void check_chunk(int64_t past, int64_t queries, int64_t keys, int64_t size,
                        bool bidirectional, float rate, enum dt_dtype dtype)
{
    struct attention l = {.q = random_matrix_of(dtype, 2 * queries, 4 * size),
                          .k = random_matrix_of(dtype, 2 * keys, 2 * size),
                          .v = random_matrix_of(dtype, 2 * keys, 2 * size),
                          .r = random_matrix_of(dtype, 2 * queries, 4 * size),
                          .how = {.batch = 2,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .queries = queries,
                                  .past = past,
                                  .key_stride = keys,
                                  .length = keys,
                                  .bidirectional = bidirectional,
                                  .dropout = {.rate = rate, .key = 5, .sample = 11}}};
    struct attention on[2]; /* the cpu, the GPU */
    for (int i = 0; i < 2; i++) {
        on[i] = l;
        on[i].y = random_matrix_of(dtype, 2 * queries, 4 * size), on[i].dq = copy_of(&on[i].y);
        on[i].lse = random_matrix(2 * queries, 4);
        on[i].dk = random_matrix(2 * keys, 2 * size), on[i].dv = random_matrix(2 * keys, 2 * size);
        spoil(&on[i].dq), spoil(&on[i].dk), spoil(&on[i].dv);
        run_attention(i ? gpu : dev, &on[i]);
    }
    finish();
    double tolerance = tolerance_of(dtype);
    assert_same(&on[1].y, &on[0].y, tolerance, "y");
    assert_same(&on[1].lse, &on[0].lse, tolerance, "lse");
    assert_same(&on[1].dq, &on[0].dq, tolerance, "dq");
    assert_same(&on[1].dk, &on[0].dk, tolerance, "dk");
    assert_same(&on[1].dv, &on[0].dv, tolerance, "dv");
    for (int i = 0; i < 2; i++) {
        free(on[i].y.data), free(on[i].lse.data), free(on[i].dq.data);
        free(on[i].dk.data), free(on[i].dv.data);
    }
    free(l.q.data), free(l.k.data), free(l.v.data), free(l.r.data);
}

/* As context parallelism calls the ops. */
static void chunks_of_queries_match_the_cpu(void **unused)
{
    (void)unused;
    check_chunk(70, 66, 200, 64, false, 0, DT_DTYPE_BF16);
    check_chunk(64, 66, 136, 128, true, 0, DT_DTYPE_F16);
    check_chunk(90, 20, 110, 64, false, 0.2f, DT_DTYPE_BF16);
    check_chunk(0, 20, 66, 128, false, 0, DT_DTYPE_BF16);
    check_chunk(50, 66, 116, 24, false, 0.2f, DT_DTYPE_F32);
}

/* Decoding: a query to each sequence, and parts of the keys in different blocks. */
static void a_single_query_reads_all_parts_of_the_keys(void **unused)
{
    (void)unused;
    check_chunk(299, 1, 300, 64, false, 0, DT_DTYPE_BF16);
    check_chunk(190, 1, 200, 128, false, 0, DT_DTYPE_F16);
    check_chunk(140, 1, 141, 96, true, 0, DT_DTYPE_BF16);
    check_chunk(130, 1, 131, 200, false, 0, DT_DTYPE_F32);
    check_chunk(66, 1, 70, 20, false, 0, DT_DTYPE_BF16);
    check_chunk(0, 1, 1, 64, false, 0, DT_DTYPE_F16);
    check_chunk(80, 1, 90, 64, false, 0.2f, DT_DTYPE_F16); /* with dropout: other kernels */
}

/* Tiles of keys outside of all spans are passed by, were they no numbers. */
static void keys_that_no_query_sees_are_not_read(void **unused)
{
    (void)unused;
    for (int dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
        struct attention l = make_attention(
            &(struct shape){1, 1, 1, 256, 64, true, DOCUMENTS, 0, (enum dt_dtype)dtype});
        for (int i = 0; i < 256; i++)
            l.begins[i] = i < 128 ? 0 : 128, l.ends[i] = i < 128 ? 128 : 256;
        struct dt_tensor hidden = dt_tensor_rows(&l.qkv, 128, 128);
        spoil(&hidden);
        run_gpu(&l);
        for (int64_t i = 0; i < 128; i++)
            for (int64_t j = 0; j < 192; j++)
                assert_true(isfinite(at(&l.dqkv, i, j)) && (j >= 64 || isfinite(at(&l.y, i, j))));
        assert_true(isnan(at(&l.y, 130, 0)));
        free_attention(&l);
    }
}

/* A query of an empty span: zeros, and nothing of it in any gradient. */
static void a_query_may_see_nothing(void **unused)
{
    (void)unused;
    for (int dtype = DT_DTYPE_F32; dtype <= DT_DTYPE_F16; dtype++) {
        struct attention l = make_attention(
            &(struct shape){1, 2, 1, 90, 64, false, DOCUMENTS, 0, (enum dt_dtype)dtype});
        l.begins[40] = l.ends[40] = 0;
        run_gpu(&l);
        for (int64_t i = 0; i < 90; i++)
            for (int64_t j = 0; j < l.dqkv.columns; j++)
                assert_true(isfinite(at(&l.dqkv, i, j)));
        for (int64_t j = 0; j < 128; j++)
            assert_true(at(&l.y, 40, j) == 0 && at(&l.dqkv, 40, j) == 0);
        free_attention(&l);
    }
}

/* Scores of thousands. */
static void scores_may_be_large(void **unused)
{
    (void)unused;
    struct attention l = make_attention(&(struct shape){1, 1, 1, 140, 64, .dtype = DT_DTYPE_BF16});
    struct dt_tensor scaled = random_matrix(l.qkv.rows, l.qkv.columns);
    for (int64_t i = 0; i < scaled.rows * scaled.columns; i++)
        ((float *)scaled.data)[i] *= i % 192 < 128 ? 60.0f : 1.0f;
    dev->ops->copy(dev, &l.qkv, &scaled);
    run_gpu(&l);
    for (int64_t i = 0; i < 140; i++)
        for (int64_t j = 0; j < 64; j++)
            assert_true(isfinite(at(&l.y, i, j)) && isfinite(at(&l.dq, i, j)));
    free(scaled.data);
    free_attention(&l);
}

static int open_both(void **unused)
{
    struct dt_error err;
    open_device(unused);
    if (dt_device_open(&gpu, "cuda-emulated", 1, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int open_for_mma(void **unused)
{
    unsetenv("DT_CUDA_WGMMA");
    return open_both(unused);
}

static int open_for_wgmma(void **unused)
{
    setenv("DT_CUDA_WGMMA", "1", 1);
    return open_both(unused);
}

static int close_both(void **unused)
{
    dt_device_close(gpu);
    return close_device(unused);
}

/* Whether the emulated GPU has wgmma. */
static bool has_wgmma(void)
{
    const char *words = getenv("CUDA_EMULATOR"), *sm = words ? strstr(words, "sm=") : NULL;
    return sm == NULL || strtol(sm + strlen("sm="), NULL, 10) == 90;
}

#define BY_MMA(test)                                                                               \
    {                                                                                              \
#test, test, open_for_mma, close_both, NULL                                                \
    }
#define BY_WGMMA(test)                                                                             \
    {                                                                                              \
#test "_by_wgmma", test, open_for_wgmma, close_both, NULL                                  \
    }

/* The argument, if there is one, names the test to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BY_MMA(a_few_tiles_match_the_reference),
        BY_MMA(tensor_cores_match_the_reference),
        BY_MMA(heads_share_keys),
        BY_MMA(queries_see_their_spans_alone),
        BY_MMA(queries_see_their_windows_alone),
        BY_MMA(soft_caps_match_the_reference),
        BY_MMA(dropped_weights_are_those_of_the_cpu),
        BY_MMA(any_head_matches_the_reference),
        BY_MMA(shapes_may_be_any),
        BY_MMA(attention_reads_a_cache),
        BY_MMA(chunks_of_queries_match_the_cpu),
        BY_MMA(a_single_query_reads_all_parts_of_the_keys),
        BY_MMA(keys_that_no_query_sees_are_not_read),
        BY_MMA(a_query_may_see_nothing),
        BY_MMA(scores_may_be_large),
        BY_WGMMA(a_ring_of_tiles_matches_the_reference),
        BY_WGMMA(tensor_cores_match_the_reference),
        BY_WGMMA(heads_share_keys),
        BY_WGMMA(queries_see_their_spans_alone),
        BY_WGMMA(queries_see_their_windows_alone),
        BY_WGMMA(soft_caps_match_the_reference),
        BY_WGMMA(shapes_of_tiles_may_be_any),
        BY_WGMMA(attention_reads_a_cache),
        BY_WGMMA(chunks_of_queries_match_the_cpu),
        BY_WGMMA(keys_that_no_query_sees_are_not_read),
        BY_WGMMA(a_query_may_see_nothing),
        BY_WGMMA(scores_may_be_large),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    size_t count = sizeof tests / sizeof *tests;
    while (!has_wgmma() && tests[count - 1].setup_func == open_for_wgmma)
        count--;
    return _cmocka_run_group_tests("attention", tests, count, NULL, NULL);
}
