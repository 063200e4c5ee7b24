/* SPDX-License-Identifier: MIT */
/* Ops on rows: embeddings, rotary embedding, gates and sums. */
#include "device/activation-reference.h"
#include "device/matrix.h"

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
    dev->ops->embedding_backward(dev, &dtokens, &dpositions, &y, ids, length, 1);
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

static void embedding_without_positions_matches_the_reference(void **state)
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
    dev->ops->embedding_backward(dev, &dtokens, NULL, &y, ids, 2, 1);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 19; j++)
            want[ids[i] * 19 + j] += at(&y, i, j);
    assert_near(&dtokens, want, 1e-6);
    free(tokens.data), free(y.data), free(dtokens.data);
}

static void embeddings_are_read_from_panels(void **state)
{
    (void)state;
    const int32_t ids[6] = {0, 63, 64, 129, 130, 7};
    if (dev->ops->store_panels == NULL)
        skip();
    for (int type = DT_DTYPE_F32; type <= DT_DTYPE_BF16; type++) {
        struct dt_tensor tokens = random_matrix_of((enum dt_dtype)type, 131, 19);
        struct dt_tensor want = random_matrix(6, 19), got = random_matrix(6, 19);
        dev->ops->embedding_forward(dev, &want, ids, &tokens, NULL, 6, 0);
        assert_true(dev->ops->store_panels(dev, &tokens, false));
        dev->ops->embedding_forward(dev, &got, ids, &tokens, NULL, 6, 0);
        assert_same_bits(&got, &want);
        free(tokens.data), free(want.data), free(got.data);
    }
    struct dt_tensor half = random_matrix_of(DT_DTYPE_F16, 70, 5), before = copy_of(&half);
    assert_false(dev->ops->store_panels(dev, &half, false)); /* no product of it reads panels */
    assert_memory_equal(half.data, before.data, 70 * 5 * 2);
    free(half.data), free(before.data);
}

/* Three vocabulary shards: embeddings sum to the whole, and each shard gets its gradient. */
static void vocabulary_shards_sum_to_the_whole_embedding(void **state)
{
    (void)state;
    const int64_t n = 19, cuts[] = {0, 2, 3, 7};
    const int32_t ids[6] = {6, 0, 2, 1, 2, 4};
    struct dt_tensor tokens = random_matrix(7, n), positions = random_matrix(3, n);
    struct dt_tensor whole = random_matrix(6, n), part = random_matrix(6, n), sum = copy_of(&part);
    struct dt_tensor gradient = random_matrix(7, n), parts = copy_of(&gradient);
    dev->ops->embedding_forward(dev, &whole, ids, &tokens, &positions, 3, 0);
    dev->ops->embedding_backward(dev, &gradient, NULL, &whole, ids, 3, 1);
    for (int k = 0; k < 3; k++) {
        int32_t shifted[6];
        for (int i = 0; i < 6; i++)
            shifted[i] = ids[i] - (int32_t)cuts[k];
        struct dt_tensor own = dt_tensor_rows(&tokens, cuts[k], cuts[k + 1] - cuts[k]);
        struct dt_tensor down = dt_tensor_rows(&parts, cuts[k], cuts[k + 1] - cuts[k]);
        dev->ops->embedding_forward(dev, &part, shifted, &own, k == 1 ? &positions : NULL, 3, 0);
        dev->ops->combine(dev, &sum, k > 0, &part, 1);
        dev->ops->embedding_backward(dev, &down, NULL, &whole, shifted, 3, 1);
    }
    assert_same_bits(&sum, &whole);
    assert_same_bits(&parts, &gradient);
    free(tokens.data), free(positions.data), free(whole.data), free(part.data), free(sum.data);
    free(gradient.data), free(parts.data);
}

static void rows_are_gathered_and_scattered(void **state)
{
    (void)state;
    const int32_t indices[3] = {4, 0, 3};
    struct dt_tensor x = random_matrix(5, 21), y = random_matrix(3, 19), z = random_matrix(5, 19);
    struct dt_tensor columns = dt_tensor_columns(&x, 1, 19), kept = copy_of(&z);
    dev->ops->gather(dev, &y, &columns, indices);
    dev->ops->scatter(dev, &z, &y, indices);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 19; j++) {
            assert_true(at(&y, i, j) == at(&columns, indices[i], j));
            assert_true(at(&z, indices[i], j) == at(&columns, indices[i], j));
        }
    for (int64_t i = 1; i < 3; i++)
        assert_memory_equal((float *)z.data + i * 19, (float *)kept.data + i * 19, 19 * 4);
    free(x.data), free(y.data), free(z.data), free(kept.data);
}

/* The inverse restores x. It is also the gradient, because rotations are orthogonal. The first
 * channels of each head are rotated: all of them, or four of six. */
static void check_rope(int half)
{
    enum { LENGTH = 3, PAST = 4, SIZE = 6, HEADS = 2, ROWS = 6 };
    const int rotated = 2 * half;
    struct dt_tensor table = random_matrix(PAST + LENGTH, rotated);
    struct dt_tensor qkv = random_matrix(ROWS, 3 * HEADS * SIZE);
    struct dt_tensor x = dt_tensor_columns(&qkv, HEADS * SIZE, HEADS * SIZE);
    double before[ROWS * HEADS * SIZE], want[ROWS * HEADS * SIZE];
    for (int t = 0; t < PAST + LENGTH; t++)
        for (int j = 0; j < half; j++) {
            ((float *)table.data)[t * rotated + j] = (float)cos(t * pow(10, -j));
            ((float *)table.data)[t * rotated + half + j] = (float)sin(t * pow(10, -j));
        }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < HEADS * SIZE; c++) {
            int j = c % SIZE % half, first = c / SIZE * SIZE + j;
            double angle = (PAST + r % LENGTH) * pow(10, -j);
            double a = at(&x, r, first), b = at(&x, r, first + half);
            before[r * HEADS * SIZE + c] = want[r * HEADS * SIZE + c] = at(&x, r, c);
            if (c % SIZE < rotated)
                want[r * HEADS * SIZE + c] =
                    c == first ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
        }
    dev->ops->rope(dev, &x, &table, SIZE, LENGTH, PAST, false);
    assert_near(&x, want, 1e-6);
    dev->ops->rope(dev, &x, &table, SIZE, LENGTH, PAST, true);
    assert_near(&x, before, 1e-6);
    free(table.data), free(qkv.data);
}

static void rope_and_its_inverse_match_the_reference(void **state)
{
    (void)state;
    check_rope(3);
    check_rope(2);
}

struct gated {
    struct dt_tensor gate, up, r;
    enum dt_activation activation;
};

static double gated_loss(void *context)
{
    struct gated *l = context;
    double sum = 0;
    for (int64_t i = 0; i < l->r.rows; i++)
        for (int64_t j = 0; j < l->r.columns; j++)
            sum += activation_reference(l->activation, at(&l->gate, i, j)) * at(&l->up, i, j) *
                   at(&l->r, i, j);
    return sum;
}

static void check_gated(enum dt_activation activation)
{
    struct gated l = {random_matrix(4, 33), random_matrix(4, 33), random_matrix(4, 33), activation};
    struct dt_tensor y = random_matrix(4, 33), dgate = random_matrix(4, 33);
    struct dt_tensor dup = random_matrix(4, 33);
    for (int i = 0; i < 33; i++)
        ((float *)l.gate.data)[i] *= 10;
    ((float *)l.gate.data)[40] = -200; /* exp overflows */
    dev->ops->gated_forward(dev, &y, &l.gate, &l.up, activation);
    assert_gradient(&y, &l.r, gated_loss, &l);
    memcpy(dup.data, l.r.data, 4 * 33 * sizeof(float));
    dev->ops->gated_backward(dev, &dgate, &dup, &l.gate, &l.up, activation);
    assert_gradient(&dgate, &l.gate, gated_loss, &l);
    assert_gradient(&dup, &l.up, gated_loss, &l);
    free(l.gate.data), free(l.up.data), free(l.r.data), free(y.data), free(dgate.data);
    free(dup.data);
}

static void gates_and_their_backward_match_the_reference(void **state)
{
    (void)state;
    for (size_t a = 0; a < ACTIVATIONS; a++) {
        print_message("%s\n", activations[a].name);
        check_gated(activations[a].activation);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(embedding_and_its_backward_match_the_reference),
        ON_EACH_ISA(embedding_without_positions_matches_the_reference),
        ON_EACH_ISA(embeddings_are_read_from_panels),
        ON_EACH_ISA(vocabulary_shards_sum_to_the_whole_embedding),
        ON_EACH_ISA(rows_are_gathered_and_scattered),
        ON_EACH_ISA(rope_and_its_inverse_match_the_reference),
        ON_EACH_ISA(gates_and_their_backward_match_the_reference),
    };
    return RUN_ON_EACH_ISA(tests);
}
