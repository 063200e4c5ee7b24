/* SPDX-License-Identifier: MIT */
/* Ops of the cuda engine in emulation beside the cpu engine's, on shapes that fill several
 * warps, blocks and chunks, and end in the middle of one. */
#include "device/matrix.h"

static struct dt_device *cpu;

static int open_both(void **state)
{
    struct dt_error err;
    setenv("CUDA_EMULATOR", "eager", 0);
    setenv("DT_TEST_ENGINE", "cuda-emulated", 1);
    return open_device(state) < 0 ? -1 : dt_device_open(&cpu, "cpu", 1, &err);
}

static int close_both(void **state)
{
    dt_device_close(cpu);
    return close_device(state);
}

/* Of both engines, from the same numbers. */
struct twins {
    struct dt_tensor here, there;
};

static struct twins twins_of(enum dt_dtype type, int64_t rows, int64_t columns)
{
    struct twins t = {.here = random_matrix_of(type, rows, columns)};
    t.there = new_matrix(type, rows, columns);
    cpu->ops->copy(cpu, &t.there, &t.here);
    return t;
}

/* The cpu's 16-bit results are one rounding from double precision; so are these. */
static void compare(struct twins *t)
{
    int64_t n = t->there.rows * t->there.columns;
    double *want = dt_alloc((size_t)n, sizeof *want);
    for (int64_t i = 0; i < n; i++)
        want[i] = at(&t->there, i / t->there.columns, i % t->there.columns);
    assert_near(&t->here, want, 1e-5);
    free(want), free(t->here.data), free(t->there.data);
}

/* Calls op(engine, tensors of that engine) for both. */
typedef void op_of(struct dt_device *on, struct dt_tensor *t, const void *more);

static void on_both(op_of *op, struct twins *t, int count, const void *more)
{
    struct dt_tensor here[8], there[8];
    for (int i = 0; i < count; i++)
        here[i] = t[i].here, there[i] = t[i].there;
    op(dev, here, more);
    op(cpu, there, more);
    for (int i = 0; i < count; i++)
        compare(&t[i]);
}

static void norm(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more; /* y, stats, sum, x, add, weight, bias */
    on->ops->norm_forward(on, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], 1e-5f);
}

static void norm_backward(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more; /* dsum, dweight, dbias, dy, sum, weight, stats */
    on->ops->norm_backward(on, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], 1);
}

static void rms_norm(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more; /* y, rstd, sum, x, weight; dsum, dweight */
    on->ops->rms_norm_forward(on, &t[0], &t[1], &t[2], &t[3], NULL, &t[4], 1, 1e-5f);
    on->ops->rms_norm_backward(on, &t[5], &t[6], &t[3], &t[2], &t[4], 1, &t[1], 1);
}

static void norms_of_several_warps_and_chunks(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{19, 300}, {3, 1301}, {9, 4101}};
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_BF16; type++)
        for (int s = 0; s < 3; s++) {
            int64_t rows = shapes[s][0], n = shapes[s][1];
            struct twins f[] = {twins_of(type, rows, n), twins_of(DT_DTYPE_F32, rows, 2),
                                twins_of(type, rows, n), twins_of(type, rows, n),
                                twins_of(type, rows, n), twins_of(type, 1, n),
                                twins_of(type, 1, n)};
            on_both(norm, f, 7, NULL);
            struct twins b[] = {twins_of(type, rows, n),        twins_of(DT_DTYPE_F32, 1, n),
                                twins_of(DT_DTYPE_F32, 1, n),   twins_of(type, rows, n),
                                twins_of(type, rows, n),        twins_of(type, 1, n),
                                twins_of(DT_DTYPE_F32, rows, 2)};
            on_both(norm_backward, b, 7, NULL);
            struct twins r[] = {twins_of(type, rows, 2 * n), twins_of(DT_DTYPE_F32, rows, 2),
                                twins_of(type, rows, 2 * n), twins_of(type, rows, 2 * n),
                                twins_of(type, 1, n),        twins_of(type, rows, 2 * n),
                                twins_of(DT_DTYPE_F32, 1, n)};
            on_both(rms_norm, r, 7, NULL);
        }
}

static void bias_backward(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more;
    on->ops->bias_backward(on, &t[0], &t[1], 1);
}

static void sums_over_rows_of_several_chunks(void **state)
{
    (void)state;
    struct twins t[] = {twins_of(DT_DTYPE_F32, 1, 301), twins_of(DT_DTYPE_F32, 301, 301)};
    on_both(bias_backward, t, 2, NULL);
}

static void embedding_backward(struct dt_device *on, struct dt_tensor *t, const void *ids)
{
    on->ops->embedding_backward(on, &t[0], &t[1], &t[2], ids, 100, 1);
}

static void embedding_of_tokens_in_several_chunks(void **state)
{
    (void)state;
    enum { ROWS = 1300, TOKENS = 700 };
    static int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) /* some often, some once, some of other ranks */
        ids[i] = i % 3 ? (int32_t)dt_rng_below(&rng, TOKENS + 9) - 4 : (int32_t)(i % 5) * 170;
    struct twins t[] = {twins_of(DT_DTYPE_F32, TOKENS, 37), twins_of(DT_DTYPE_F32, 100, 37),
                        twins_of(DT_DTYPE_F32, ROWS, 37)};
    on_both(embedding_backward, t, 3, ids);
}

static void cross_entropy(struct dt_device *on, struct dt_tensor *t, const void *targets)
{
    on->ops->cross_entropy(on, t[1].data, t[2].data, &t[0], targets,
                           &(struct dt_cross_entropy){1, 0.1f, 0.01f, {0.9f, 50}});
}

static void losses_of_rising_logits(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    for (int n = 6001; n <= 6004; n += 3) { /* of the second, rows are aligned, and kept */
        const int32_t targets[ROWS] = {0, -1, n - 1};
        struct twins t[] = {twins_of(DT_DTYPE_F32, ROWS, n), twins_of(DT_DTYPE_F32, 1, ROWS),
                            twins_of(DT_DTYPE_F32, 1, ROWS)};
        for (int i = 0; i < ROWS * n; i++)
            ((float *)t[0].here.data)[i] += 0.004f * (float)(i % n);
        cpu->ops->copy(cpu, &t[0].there, &t[0].here);
        on_both(cross_entropy, t, 3, targets);
    }
}

/* A part of a wider matrix, whose rows begin at multiples of 16 bytes: the rest stays. */
static void combine_part(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more;
    struct dt_tensor to = dt_tensor_columns(&t[0], 0, 33), from = dt_tensor_columns(&t[1], 8, 33);
    on->ops->combine(on, &to, 0.5f, &from, 2);
    on->ops->activation_forward(on, &to, &from, DT_ACTIVATION_GELU_ERF);
    on->ops->dropout(on, &to, 5, &(struct dt_dropout){.rate = 0.3f, .key = 5});
}

static void what_lies_beside_a_part_stays(void **state)
{
    (void)state;
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++) {
        struct twins t[] = {twins_of(type, 11, 48), twins_of(type, 11, 48)};
        on_both(combine_part, t, 2, NULL);
    }
}

static void add_biases(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more;
    for (int first = 0; first < 3; first++) {
        struct dt_tensor bias = dt_tensor_columns(&t[3], first, 40),
                         rows = dt_tensor_rows(&t[0], 5 * first, 5);
        on->ops->matmul(on, &rows, &t[1], &t[2], &(struct dt_matmul){.bias = &bias});
    }
}

/* One product, three times: the library may read no more of a bias at once than is aligned. */
static void biases_that_lie_anywhere(void **state)
{
    (void)state;
    for (enum dt_dtype type = DT_DTYPE_F32; type <= DT_DTYPE_F16; type++) {
        struct twins t[] = {twins_of(type, 15, 40), twins_of(type, 5, 24), twins_of(type, 24, 40),
                            twins_of(type, 1, 42)};
        on_both(add_biases, t, 4, NULL);
    }
}

/* Places as floats, which count so far exactly. */
static void take_largest(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    int64_t n = t[0].columns, k = t[1].columns;
    int32_t *places = dt_alloc((size_t)k, sizeof *places);
    (void)more; /* x, values, places */
    on->ops->take_largest(on, t[0].data, n, k, places, t[1].data);
    for (int64_t i = 0; i < k; i++)
        ((float *)t[2].data)[i] = (float)places[i];
    free(places);
}

/* Of many equal ones, that lie in several chunks; and of different ones. */
static void the_largest_of_several_chunks(void **state)
{
    (void)state;
    enum { N = 9001 };
    const int64_t wanted[] = {90, 5000, 8999};
    for (int i = 0; i < 6; i++) {
        int64_t k = wanted[i / 2];
        struct twins t[] = {twins_of(DT_DTYPE_F32, 1, N), twins_of(DT_DTYPE_F32, 1, k),
                            twins_of(DT_DTYPE_F32, 1, k)};
        for (int at = 0; at < N && i % 2; at++)
            ((float *)t[0].here.data)[at] = roundf(2 * ((float *)t[0].here.data)[at]);
        cpu->ops->copy(cpu, &t[0].there, &t[0].here);
        on_both(take_largest, t, 3, NULL);
    }
}

static void orthonormalize(struct dt_device *on, struct dt_tensor *t, const void *more)
{
    (void)more;
    on->ops->orthonormalize(on, &t[0]);
}

static void rows_longer_than_a_block(void **state)
{
    (void)state;
    struct twins t[] = {twins_of(DT_DTYPE_F32, 5, 1301)};
    on_both(orthonormalize, t, 1, NULL);
}

/* The argument, if there is one, names the test to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_of_several_warps_and_chunks),
        cmocka_unit_test(sums_over_rows_of_several_chunks),
        cmocka_unit_test(embedding_of_tokens_in_several_chunks),
        cmocka_unit_test(losses_of_rising_logits),
        cmocka_unit_test(what_lies_beside_a_part_stays),
        cmocka_unit_test(biases_that_lie_anywhere),
        cmocka_unit_test(the_largest_of_several_chunks),
        cmocka_unit_test(rows_longer_than_a_block),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_both, close_both);
}
