/* SPDX-License-Identifier: MIT */
/* Attention of queries over keys. */
#include "device/matrix.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_and_its_backward_match_the_reference),
        cmocka_unit_test(heads_share_keys_and_values),
        cmocka_unit_test(attention_reads_a_cache),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
