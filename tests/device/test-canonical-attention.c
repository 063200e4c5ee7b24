/* SPDX-License-Identifier: MIT */
/* The bits of attention on the cpu engine: those of the definition in dt-arithmetic(7), written
 * here as loops over scalars, on every instruction set. */
#include <stdio.h>

#include "device/attention-case.h"
#include "device/functions.h"

/* The score of a pair of a query of a head and a key, and its derivative by the product. */
struct score {
    float value, slope;
};

/* A query of a head: where its channels begin, and those of its keys. */
struct query {
    int64_t b, h, t, row, column, first_key, shared, keys;
};

static int64_t whole_length(const struct dt_attention *how)
{
    return how->length > 0 ? how->length : how->past + how->queries;
}

static struct query query_of(const struct attention *l, int64_t b, int64_t h, int64_t t)
{
    const struct dt_attention *how = &l->how;
    int64_t size = l->q.columns / how->heads;
    return (struct query){b,
                          h,
                          t,
                          b * how->queries + t,
                          h * size,
                          b * how->key_stride,
                          h / (how->heads / how->kv_heads) * size,
                          how->bidirectional ? whole_length(how) : how->past + how->queries};
}

static float factor_of(const struct attention *l)
{
    float size = (float)(l->q.columns / l->how.heads);
    return l->how.scale != 0 ? l->how.scale : 1.0f / sqrtf(size);
}

static float dropout_factor(const struct dt_attention *how, const struct query *q, int64_t key)
{
    const struct dt_dropout *d = &how->dropout;
    uint64_t length = (uint64_t)whole_length(how);
    uint64_t row = (uint64_t)(how->first_head + q->h) * length + (uint64_t)(how->past + q->t);
    uint64_t e = row * length + (uint64_t)key;
    uint32_t word = dt_random(d->key, d->sample + (uint64_t)q->b, e / 4).word[e % 4];
    if (d->rate == 0)
        return 1;
    return (double)word >= (double)d->rate * 0x1p32 ? 1.0f / (1.0f - d->rate) : 0;
}

/* The score of a key; false: masked. */
static bool find_score(const struct attention *l, const struct query *q, int64_t key,
                       struct score *s)
{
    int64_t size = l->q.columns / l->how.heads;
    float cap = l->how.softcap;
    *s = (struct score){0, 1};
    if (!sees(&l->how, q->b, q->t, key))
        return false;
    for (int64_t j = 0; j < size; j++)
        s->value = fmaf(at(&l->q, q->row, q->column + j) * factor_of(l),
                        at(&l->k, q->first_key + key, q->shared + j), s->value);
    if (cap > 0) {
        float t = dt_device_tanh(s->value / cap);
        *s = (struct score){cap * t, fmaf(-t, t, 1)};
    }
    return true;
}

/* The online softmax over blocks of keys. */
struct state {
    float highest, total, sums[256];
};

static void add_block(struct state *s, const struct attention *l, const struct query *q,
                      int64_t first, int64_t block)
{
    int64_t size = l->q.columns / l->how.heads;
    float before = s->highest;
    struct score x;
    for (int64_t key = first; key < first + block && key < q->keys; key++)
        if (find_score(l, q, key, &x) && x.value > s->highest)
            s->highest = x.value;
    if (s->highest != before) {
        float factor = dt_device_exp(before - s->highest);
        s->total *= factor;
        for (int64_t j = 0; j < size; j++)
            s->sums[j] *= factor;
    }
    for (int64_t key = first; key < first + block && key < q->keys; key++) {
        if (!find_score(l, q, key, &x))
            continue;
        float weight = dt_device_exp(x.value - s->highest);
        s->total += weight;
        weight *= dropout_factor(&l->how, q, key);
        for (int64_t j = 0; j < size; j++)
            s->sums[j] = fmaf(weight, at(&l->v, q->first_key + key, q->shared + j), s->sums[j]);
    }
}

static void forward_query(const struct attention *l, const struct query *q, int64_t block, float *y,
                          float *lse)
{
    int64_t size = l->q.columns / l->how.heads;
    struct state s = {-INFINITY, 0, {0}};
    for (int64_t first = 0; first < q->keys; first += block)
        add_block(&s, l, q, first, block);
    for (int64_t j = 0; j < size; j++)
        y[j] = fmaf(s.sums[j], s.total == 0 ? 0 : 1.0f / s.total, 0.0f);
    *lse = s.highest + dt_device_log(s.total);
}

/* Sets y (fp32) and lse. block: keys of a block. */
static void forward_in_order(const struct attention *l, int64_t block, struct dt_tensor *y,
                             struct dt_tensor *lse)
{
    const struct dt_attention *how = &l->how;
    for (int64_t b = 0; b < how->batch; b++)
        for (int64_t h = 0; h < how->heads; h++)
            for (int64_t t = 0; t < how->queries; t++) {
                struct query q = query_of(l, b, h, t);
                forward_query(l, &q, block, (float *)y->data + q.row * y->columns + q.column,
                              (float *)lse->data + q.row * how->heads + h);
            }
}

/* Adds the pairs of a query to the gradients. */
static void backward_query(const struct attention *l, const struct query *q, struct dt_tensor *dq,
                           struct dt_tensor *dk, struct dt_tensor *dv)
{
    int64_t size = l->q.columns / l->how.heads;
    float *to = (float *)dq->data + q->row * dq->columns + q->column, delta = 0;
    struct score x;
    for (int64_t j = 0; j < size; j++)
        delta = fmaf(at(&l->r, q->row, q->column + j), at(&l->y, q->row, q->column + j), delta);
    for (int64_t key = 0; key < q->keys; key++) {
        if (!find_score(l, q, key, &x))
            continue;
        int64_t row = q->first_key + key;
        float *to_k = (float *)dk->data + row * dk->columns + q->shared;
        float *to_v = (float *)dv->data + row * dv->columns + q->shared;
        float weight = dt_device_exp(x.value - at(&l->lse, q->row, q->h)), product = 0;
        float factor = dropout_factor(&l->how, q, key);
        for (int64_t j = 0; j < size; j++)
            product =
                fmaf(at(&l->r, q->row, q->column + j), at(&l->v, row, q->shared + j), product);
        float gradient = weight * (product * factor - delta) * x.slope;
        for (int64_t j = 0; j < size; j++) {
            float scaled = at(&l->q, q->row, q->column + j) * factor_of(l);
            to[j] = fmaf(gradient, at(&l->k, row, q->shared + j), to[j]);
            to_k[j] = fmaf(gradient, scaled, to_k[j]);
            to_v[j] = fmaf(weight * factor, at(&l->r, q->row, q->column + j), to_v[j]);
        }
    }
    for (int64_t j = 0; j < size; j++)
        to[j] = fmaf(to[j], factor_of(l), 0.0f);
}

static void backward_in_order(const struct attention *l, struct dt_tensor *dq, struct dt_tensor *dk,
                              struct dt_tensor *dv)
{
    const struct dt_attention *how = &l->how;
    for (int64_t b = 0; b < how->batch; b++)
        for (int64_t h = 0; h < how->heads; h++)
            for (int64_t t = 0; t < how->queries; t++) {
                struct query q = query_of(l, b, h, t);
                backward_query(l, &q, dq, dk, dv);
            }
    for (int64_t i = 0; i < dk->rows * dk->columns; i++) {
        ((float *)dk->data)[i] += 0.0f;
        ((float *)dv->data)[i] += 0.0f;
    }
}

/* Compares with fp32 numbers, rounded to the type of got, and frees these. */
static void assert_bits(const char *name, const struct dt_tensor *got, struct dt_tensor *want)
{
    struct dt_tensor rounded = as_type(got->dtype, want);
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->columns; j++) {
            float g = at(got, i, j), w = at(&rounded, i, j);
            if (memcmp(&g, &w, sizeof g) != 0)
                fail_msg("%s: element %lld of row %lld is %a, not %a", name, (long long)j,
                         (long long)i, (double)g, (double)w);
        }
    free(want->data), free(rounded.data);
}

/* Runs both, and compares. */
static void check(struct dt_device *on, struct attention *l)
{
    struct dt_tensor y = new_matrix(DT_DTYPE_F32, l->y.rows, l->y.columns);
    struct dt_tensor lse = new_matrix(DT_DTYPE_F32, l->lse.rows, l->lse.columns);
    struct dt_tensor dq = new_matrix(DT_DTYPE_F32, l->dq.rows, l->dq.columns);
    struct dt_tensor dk = new_matrix(DT_DTYPE_F32, l->dk.rows, l->dk.columns);
    struct dt_tensor dv = new_matrix(DT_DTYPE_F32, l->dv.rows, l->dv.columns);
    run_attention(on, l);
    forward_in_order(l, 64, &y, &lse);
    assert_bits("y", &l->y, &y);
    assert_bits("lse", &l->lse, &lse);
    backward_in_order(l, &dq, &dk, &dv);
    assert_bits("dq", &l->dq, &dq);
    assert_bits("dk", &l->dk, &dk);
    assert_bits("dv", &l->dv, &dv);
}

static const struct shape shapes[] = {
    {2, 2, 2, 65, 16},
    {1, 4, 2, 150, 24},
    {1, 2, 1, 130, 64, .bidirectional = true},
    {1, 2, 1, 70, 80, .spans = DOCUMENTS},
    {1, 1, 1, 200, 16, .spans = DOCUMENTS},
    {2, 1, 1, 80, 128, .bidirectional = true, .spans = PADDING},
    {1, 3, 1, 133, 24, .rate = 0.3f, .first_head = 2},
    {1, 2, 1, 128, 16, true, DOCUMENTS, 0.1f},
    {1, 2, 2, 100, 64, .dtype = DT_DTYPE_BF16},
    {1, 2, 1, 66, 5, .dtype = DT_DTYPE_F16},
    {2, 4, 2, 9, 24}, /* few queries */
    {1, 2, 1, 200, 24, .window = 1},
    {1, 2, 2, 300, 16, .window = 70},
    {1, 2, 1, 260, 24, .window = 128, .scale = 0.3f, .softcap = 0.5f},
    {1, 1, 1, 130, 16, .spans = DOCUMENTS, .window = 20, .softcap = 2},
    {1, 2, 1, 210, 16, true, DOCUMENTS, 0.1f, .window = 31},
    {2, 1, 1, 200, 24, true, PADDING, .window = 64, .softcap = 1}, /* queries without keys */
    {2, 4, 2, 9, 24, .window = 4, .softcap = 0.5f},
    {1, 2, 2, 100, 64, .dtype = DT_DTYPE_BF16, .window = 40, .scale = 1, .softcap = 30},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* Fast arithmetic is that of the definition, except of bf16. */
static void attention_has_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        struct dt_device *fast = open_with(threads), *canonical = open_with(threads);
        dt_device_set_canonical(canonical);
        for (size_t i = 0; i < SHAPES; i++) {
            struct attention l = make_attention(&shapes[i]);
            check(shapes[i].dtype == DT_DTYPE_BF16 ? canonical : fast, &l);
            free_attention(&l);
        }
        dt_device_close(fast);
        dt_device_close(canonical);
    }
}

static void chunks_of_queries_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    struct dt_device *canonical = open_with(2);
    dt_device_set_canonical(canonical);
    for (size_t i = 0; i < SHAPES; i++) {
        struct attention l = make_attention(&shapes[i]);
        int64_t length = shapes[i].length, first = length / 3, count = length / 2;
        struct attention p = chunk_of(&l, count, first);
        p.dk = new_matrix(DT_DTYPE_F32, l.k.rows, l.k.columns);
        p.dv = new_matrix(DT_DTYPE_F32, l.k.rows, l.k.columns);
        if (shapes[i].batch == 1)
            check(shapes[i].dtype == DT_DTYPE_BF16 ? canonical : dev, &p);
        free(p.dk.data), free(p.dv.data);
        free_attention(&l);
    }
    dt_device_close(canonical);
}

/* A prompt and its continuation in a KV cache, cut at random: every piece has the bits of the whole
 * sequence; many queries and few ones are computed by different loops. */
static void pieces_of_a_prompt_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    static const struct shape cut[] = {
        {1, 4, 2, 180, 64},
        {1, 2, 2, 131, 24},
        {1, 3, 1, 150, 128},
        {1, 2, 1, 140, 64, .dtype = DT_DTYPE_BF16},
        {1, 4, 2, 210, 12, .dtype = DT_DTYPE_BF16, .window = 70},
        {1, 3, 1, 200, 80, .dtype = DT_DTYPE_BF16, .window = 9, .scale = 0.25f, .softcap = 0.5f},
        {1, 2, 1, 200, 24, .window = 9, .scale = 0.25f, .softcap = 0.5f},
        {1, 4, 2, 210, 16, .window = 70},
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        struct attention l = make_attention(&cut[i]);
        dev->ops->attention_forward(dev, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
        struct dt_tensor y = copy_of(&l.y), lse = copy_of(&l.lse);
        dev->ops->zero(dev, &l.y);
        for (int64_t from = 0, count; from < cut[i].length; from += count) {
            count = 1 + (int64_t)dt_rng_below(&rng, dt_rng_below(&rng, 2) ? 3 : 60);
            count = from + count < cut[i].length ? count : cut[i].length - from;
            struct attention p = chunk_of(&l, count, from);
            p.how.length = 0;
            dev->ops->attention_forward(dev, &p.y, &p.lse, &p.q, &p.k, &p.v, &p.how);
        }
        assert_same_bits(&l.y, &y);
        assert_same_bits(&l.lse, &lse);
        free(y.data), free(lse.data);
        free_attention(&l);
    }
}

/* The bits of a query do not depend on what other queries attend to. */
static void masks_of_other_queries_do_not_change_the_bits(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){1, 2, 1, 150, 24, .spans = DOCUMENTS});
    dev->ops->attention_forward(dev, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
    struct dt_tensor y = copy_of(&l.y);
    for (int t = 0; t < 150; t += 2)
        l.begins[t] = 0, l.ends[t] = 150;
    dev->ops->attention_forward(dev, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
    for (int64_t t = 1; t < 150; t += 2) {
        struct dt_tensor got = dt_tensor_rows(&l.y, t, 1), want = dt_tensor_rows(&y, t, 1);
        assert_same_bits(&got, &want);
    }
    free(y.data);
    free_attention(&l);
}

/* The comparison notices another order of the same sums. */
static void blocks_of_32_keys_have_other_bits(void **state)
{
    (void)state;
    struct attention l = make_attention(&(struct shape){1, 2, 1, 150, 24});
    struct dt_tensor y = new_matrix(DT_DTYPE_F32, l.y.rows, l.y.columns);
    struct dt_tensor lse = new_matrix(DT_DTYPE_F32, l.lse.rows, l.lse.columns);
    dev->ops->attention_forward(dev, &l.y, &l.lse, &l.q, &l.k, &l.v, &l.how);
    forward_in_order(&l, 32, &y, &lse);
    assert_memory_not_equal(l.y.data, y.data, (size_t)(y.rows * y.columns) * sizeof(float));
    free(y.data), free(lse.data);
    free_attention(&l);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(attention_has_the_bits_of_the_definition),
        ON_EACH_ISA(chunks_of_queries_have_the_bits_of_the_definition),
        ON_EACH_ISA(pieces_of_a_prompt_have_the_bits_of_the_whole),
        ON_EACH_ISA(masks_of_other_queries_do_not_change_the_bits),
        ON_EACH_ISA(blocks_of_32_keys_have_other_bits),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return RUN_ON_EACH_ISA(tests);
}
