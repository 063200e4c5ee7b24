/* SPDX-License-Identifier: MIT */
/* Attention of random numbers, and its reference in double precision. */
#ifndef DT_TEST_DEVICE_ATTENTION_CASE_H
#define DT_TEST_DEVICE_ATTENTION_CASE_H

#include "device/matrix.h"

enum spans { ALL, DOCUMENTS, PADDING };

struct shape {
    int64_t batch, heads, kv_heads, length, size;
    bool bidirectional;
    enum spans spans;
    float rate; /* of dropout */
    enum dt_dtype dtype;
    int64_t first_head;
    int64_t window;
    float scale, softcap;
};

struct attention {
    struct dt_tensor qkv, q, k, v, r;
    struct dt_tensor dqkv, dq, dk, dv, y, lse;
    int32_t *begins, *ends;
    struct dt_attention how;
};

/* Documents of 9, 10, ... tokens; or sequences with padding at the end. */
static inline void set_spans(struct attention *l, enum spans spans)
{
    int64_t length = l->how.queries, begin = 0, end = 0;
    for (int64_t r = 0; r < l->how.batch * length; r++) {
        int64_t b = r / length, t = r % length;
        if (t == 0)
            begin = 0, end = spans == PADDING ? (length + b) / (b + 1) : 9;
        if (t == end && spans == DOCUMENTS)
            begin = end, end += 9 + r % 50;
        l->begins[r] = (int32_t)begin;
        l->ends[r] = (int32_t)(end < length ? end : length);
    }
    l->how.begins = l->begins, l->how.ends = l->ends;
}

static inline struct attention make_attention(const struct shape *s)
{
    int64_t rows = s->batch * s->length, width = s->heads * s->size, keys = s->kv_heads * s->size;
    struct attention l = {.qkv = random_matrix_of(s->dtype, rows, width + 2 * keys),
                          .dqkv = random_matrix_of(s->dtype, rows, width + 2 * keys),
                          .r = random_matrix_of(s->dtype, rows, width),
                          .y = random_matrix_of(s->dtype, rows, width),
                          .lse = random_matrix(rows, s->heads),
                          .begins = dt_alloc((size_t)rows, sizeof *l.begins),
                          .ends = dt_alloc((size_t)rows, sizeof *l.ends),
                          .how = {.batch = s->batch,
                                  .heads = s->heads,
                                  .first_head = s->first_head,
                                  .kv_heads = s->kv_heads,
                                  .queries = s->length,
                                  .key_stride = s->length,
                                  .bidirectional = s->bidirectional,
                                  .window = s->window,
                                  .scale = s->scale,
                                  .softcap = s->softcap,
                                  .dropout = {.rate = s->rate, .key = 5, .sample = 11}}};
    l.q = dt_tensor_columns(&l.qkv, 0, width), l.dq = dt_tensor_columns(&l.dqkv, 0, width);
    l.k = dt_tensor_columns(&l.qkv, width, keys), l.dk = dt_tensor_columns(&l.dqkv, width, keys);
    l.v = dt_tensor_columns(&l.qkv, width + keys, keys),
    l.dv = dt_tensor_columns(&l.dqkv, width + keys, keys);
    if (s->spans != ALL)
        set_spans(&l, s->spans);
    return l;
}

static inline void free_attention(struct attention *l)
{
    free(l->qkv.data), free(l->dqkv.data), free(l->r.data), free(l->y.data), free(l->lse.data);
    free(l->begins), free(l->ends);
}

static inline bool sees(const struct dt_attention *how, int64_t b, int64_t t, int64_t key)
{
    int64_t row = b * how->queries + t, distance = how->past + t - key;
    int64_t most = how->bidirectional ? how->window / 2 : how->window - 1;
    return (how->bidirectional || distance >= 0) &&
           (how->window == 0 || (distance <= most && distance >= -most)) &&
           (how->begins == NULL || (key >= how->begins[row] && key < how->ends[row]));
}

static inline double drop_factor(const struct dt_attention *how, int64_t b, int64_t h, int64_t t,
                                 int64_t key)
{
    const struct dt_dropout *d = &how->dropout;
    if (d->rate == 0)
        return 1;
    uint64_t e = (uint64_t)(((how->first_head + h) * how->queries + t) * how->queries + key);
    uint32_t word = dt_random(d->key, d->sample + (uint64_t)b, e / 4).word[e % 4];
    return (double)word >= (double)d->rate * 0x1p32 ? 1 / (1 - (double)d->rate) : 0;
}

static inline double scale_of(const struct attention *l)
{
    double size = (double)(l->q.columns / l->how.heads);
    return l->how.scale != 0 ? (double)l->how.scale : 1 / sqrt(size);
}

/* A query's attention weights before dropout, 0 for masked keys. slopes, unless NULL: the
 * derivatives of the scores with the soft cap. */
static inline void weigh(const struct attention *l, int64_t b, int64_t h, int64_t t, double *w,
                         double *slopes)
{
    const struct dt_attention *how = &l->how;
    int64_t size = l->q.columns / how->heads, keys = how->past + how->queries;
    int64_t shared = h / (how->heads / how->kv_heads) * size;
    double sum = 0, cap = (double)how->softcap;
    for (int64_t s = 0; s < keys; s++) {
        double dot = 0;
        w[s] = 0;
        if (!sees(how, b, t, s))
            continue;
        for (int64_t j = 0; j < size; j++)
            dot += (double)at(&l->q, b * how->queries + t, h * size + j) *
                   at(&l->k, b * how->key_stride + s, shared + j);
        dot *= scale_of(l);
        if (slopes)
            slopes[s] = cap > 0 ? 1 - tanh(dot / cap) * tanh(dot / cap) : 1;
        if (cap > 0)
            dot = cap * tanh(dot / cap);
        sum += w[s] = exp(dot);
    }
    for (int64_t s = 0; s < keys && sum > 0; s++)
        w[s] /= sum;
}

/* The operands in fp32, in which the loops of the references read them faster. */
static inline struct attention widened(const struct attention *narrow)
{
    struct attention l = *narrow;
    struct dt_tensor *operands[] = {&l.q, &l.k, &l.v, &l.r};
    for (int i = 0; i < 4 && narrow->q.dtype != DT_DTYPE_F32; i++)
        if (operands[i]->data)
            *operands[i] = as_type(DT_DTYPE_F32, operands[i]);
    return l;
}

static inline void free_widened(struct attention *l, const struct attention *narrow)
{
    if (narrow->q.dtype != DT_DTYPE_F32)
        free(l->q.data), free(l->k.data), free(l->v.data), free(l->r.data);
}

static inline void attention_reference(const struct attention *given, double *y)
{
    struct attention wide = widened(given), *l = &wide;
    const struct dt_attention *how = &l->how;
    int64_t size = l->q.columns / how->heads, width = l->q.columns;
    int64_t keys = how->past + how->queries;
    double *w = dt_alloc((size_t)keys, sizeof *w);
    memset(y, 0, (size_t)(l->q.rows * width) * sizeof *y);
    for (int64_t i = 0; i < how->batch * how->heads * how->queries; i++) {
        int64_t t = i % how->queries, h = i / how->queries % how->heads;
        int64_t b = i / how->queries / how->heads;
        int64_t shared = h / (how->heads / how->kv_heads) * size;
        weigh(l, b, h, t, w, NULL);
        for (int64_t s = 0; s < keys; s++) {
            double weight = w[s] > 0 ? w[s] * drop_factor(how, b, h, t, s) : 0;
            if (weight == 0)
                continue;
            for (int64_t j = 0; j < size; j++)
                y[(b * how->queries + t) * width + h * size + j] +=
                    weight * at(&l->v, b * how->key_stride + s, shared + j);
        }
    }
    free(w);
    free_widened(l, given);
}

/* Adds the gradients of query t of head h, and of the keys and values that it attends to. */
static inline void query_backward(const struct attention *l, int64_t b, int64_t h, int64_t t,
                                  double *w, double *dw, double *slopes, double *dqkv)
{
    const struct dt_attention *how = &l->how;
    int64_t size = l->q.columns / how->heads, wide = l->qkv.columns, row = b * how->queries;
    int64_t shared = h / (how->heads / how->kv_heads) * size, width = l->q.columns;
    double delta = 0;
    weigh(l, b, h, t, w, slopes);
    for (int64_t s = 0; s < how->queries; s++) {
        dw[s] = 0;
        if (w[s] == 0)
            continue;
        double factor = drop_factor(how, b, h, t, s);
        for (int64_t j = 0; j < size; j++) {
            double r = at(&l->r, row + t, h * size + j);
            dw[s] += factor * r * at(&l->v, row + s, shared + j);
            dqkv[(row + s) * wide + width + l->k.columns + shared + j] += w[s] * factor * r;
        }
        delta += w[s] * dw[s];
    }
    for (int64_t s = 0; s < how->queries; s++)
        for (int64_t j = 0; j < size && w[s] != 0; j++) {
            double ds = scale_of(l) * w[s] * (dw[s] - delta) * slopes[s];
            dqkv[(row + t) * wide + h * size + j] += ds * at(&l->k, row + s, shared + j);
            dqkv[(row + s) * wide + width + shared + j] += ds * at(&l->q, row + t, h * size + j);
        }
}

static inline void backward_reference(const struct attention *given, double *dqkv)
{
    struct attention wide = widened(given), *l = &wide;
    const struct dt_attention *how = &l->how;
    double *w = dt_alloc((size_t)how->queries, sizeof *w);
    double *dw = dt_alloc((size_t)how->queries, sizeof *dw);
    double *slopes = dt_alloc((size_t)how->queries, sizeof *slopes);
    memset(dqkv, 0, (size_t)(l->qkv.rows * l->qkv.columns) * sizeof *dqkv);
    for (int64_t i = 0; i < how->batch * how->heads * how->queries; i++)
        query_backward(l, i / how->queries / how->heads, i / how->queries % how->heads,
                       i % how->queries, w, dw, slopes, dqkv);
    free(w), free(dw), free(slopes);
    free_widened(l, given);
}

/* Attention of a chunk of tokens queries, to all keys of their sequence; of a batch of 1. */
static inline struct attention chunk_of(const struct attention *l, int64_t tokens, int64_t query)
{
    struct attention p = *l;
    p.q = dt_tensor_rows(&l->q, query, tokens), p.dq = dt_tensor_rows(&l->dq, query, tokens);
    p.y = dt_tensor_rows(&l->y, query, tokens), p.lse = dt_tensor_rows(&l->lse, query, tokens);
    p.r = dt_tensor_rows(&l->r, query, tokens);
    p.how.length = l->how.queries;
    p.how.queries = tokens;
    p.how.past = query;
    p.how.begins = l->how.begins ? l->how.begins + query : NULL;
    p.how.ends = l->how.ends ? l->how.ends + query : NULL;
    return p;
}

static inline void run_attention(struct dt_device *on, struct attention *l)
{
    on->ops->attention_forward(on, &l->y, &l->lse, &l->q, &l->k, &l->v, &l->how);
    on->ops->attention_backward(on, &l->dq, &l->dk, &l->dv, &l->r, &l->y, &l->lse, &l->q, &l->k,
                                &l->v, &l->how);
}

#endif
