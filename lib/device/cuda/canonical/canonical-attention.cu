/* SPDX-License-Identifier: MIT */
/* Attention: a thread computes a query of a head, or the gradients of a key and its value. */
#include <float.h>
#include <math.h>

#include "device/cuda/canonical/canonical.cuh"
#include "device/cuda/random.cuh"

constexpr int most_channels = DT_CUDA_HEAD_CHANNELS;
constexpr int key_block = 64; /* keys of a step of the online softmax */

namespace
{
struct attention {
    struct dt_cuda_view q, k, v, y, lse, dy, dq, dk, dv;
    struct dt_attention how;
    struct dt_attention_band band;
    float *deltas; /* of each query and head: the chain over channels of dy y */
    int64_t size, keys, length;
    uint32_t threshold;
    float scale, kept;
};

/* A query of a head. */
struct query {
    int64_t sequence, head, t, row, column; /* column: its first */
    int64_t key_row, key_column;            /* of key 0 */
    int64_t begin, end;                     /* of the keys that it attends to */
};
} // namespace

static __device__ struct query query_of(const struct attention &a, int64_t row, int64_t head)
{
    const struct dt_attention &how = a.how;
    struct query q = {row / how.queries, head, row % how.queries, row, head * a.size};
    q.key_row = q.sequence * how.key_stride;
    q.key_column = head / (how.heads / how.kv_heads) * a.size;
    q.begin = how.past + q.t - a.band.before;
    q.end = how.past + q.t + a.band.after + 1;
    q.begin = q.begin > 0 ? q.begin : 0;
    q.end = q.end < a.keys ? q.end : a.keys;
    if (how.begins && how.begins[row] > q.begin)
        q.begin = how.begins[row];
    if (how.ends && how.ends[row] < q.end)
        q.end = how.ends[row];
    return q;
}

namespace
{
/* slope: the derivative of the soft cap. */
struct score {
    float value, slope;
};
} // namespace

static __device__ struct score score_of(const struct attention &a, const struct query &q,
                                        int64_t key)
{
    float cap = a.how.softcap;
    float sum = 0;
    for (int64_t d = 0; d < a.size; d++)
        sum = DT_FMA(dt_cuda_element(a.q, q.row, q.column + d) * a.scale,
                     dt_cuda_element(a.k, q.key_row + key, q.key_column + d), sum);
    if (cap == 0)
        return {sum, 1};
    float x = dt_device_tanh(sum / cap);
    return {cap * x, DT_FMA(-x, x, 1.0f)};
}

static __device__ float dropout_factor(const struct attention &a, const struct query &q,
                                       int64_t key)
{
    const struct dt_dropout &drop = a.how.dropout;
    if (drop.rate == 0)
        return 1;
    uint64_t line = (uint64_t)((a.how.first_head + q.head) * a.length + a.how.past + q.t);
    uint64_t element = line * (uint64_t)a.length + (uint64_t)key;
    uint4 words = dt_cuda_random(drop.key, drop.sample + (uint64_t)q.sequence, element / 4);
    return dt_cuda_word(words, (int)(element % 4)) >= a.threshold ? a.kept : 0;
}

/* --- forward ---------------------------------------------------------------------------------- */
namespace
{
/* The online softmax of a query. */
struct state {
    float highest, total, sums[most_channels];
};

struct forward : attention {
    __device__ void add_block(struct state *s, const struct query &of, int64_t from,
                              int64_t end) const
    {
        float scores[key_block], highest = s->highest;
        for (int64_t key = from; key < end; key++) {
            float x = scores[key - from] = score_of(*this, of, key).value;
            highest = x > highest ? x : highest;
        }
        if (highest != s->highest) {
            float factor = dt_device_exp(s->highest - highest);
            s->total *= factor;
            for (int64_t d = 0; d < size; d++)
                s->sums[d] *= factor;
            s->highest = highest;
        }
        for (int64_t key = from; key < end; key++) {
            float weight = dt_device_exp(scores[key - from] - highest);
            s->total += weight;
            weight *= dropout_factor(*this, of, key);
            for (int64_t d = 0; d < size; d++)
                s->sums[d] = DT_FMA(weight, dt_cuda_element(v, of.key_row + key, of.key_column + d),
                                    s->sums[d]);
        }
    }

    __device__ void operator()(int64_t head, int64_t row) const
    {
        struct query of = query_of(*this, row, head);
        struct state s;
        s.highest = -FLT_MAX;
        s.total = 0;
        for (int64_t d = 0; d < size; d++)
            s.sums[d] = 0;
        for (int64_t key = of.begin; key < of.end;) {
            int64_t end = (key / key_block + 1) * key_block;
            end = end < of.end ? end : of.end;
            add_block(&s, of, key, end);
            key = end;
        }
        float factor = of.begin < of.end ? 1.0f / s.total : 0;
        for (int64_t d = 0; d < size; d++)
            dt_cuda_set_element(y, row, of.column + d, DT_FMA(s.sums[d], factor, 0.0f));
        dt_cuda_set_element(lse, row, head, s.highest + dt_device_log(s.total));
    }
};
} // namespace

/* --- backward --------------------------------------------------------------------------------- */
namespace
{
/* A query and a key: gradients of the score; the weight after dropout. */
struct pair {
    float gradient, weight;
};

struct queries_backward : attention {
    __device__ void operator()(int64_t head, int64_t row) const;
};

struct keys_backward : attention {
    __device__ void operator()(int64_t shared, int64_t row) const;
};
} // namespace

static __device__ struct pair pair_of(const struct attention &a, const struct query &q, int64_t key,
                                      float delta)
{
    struct score s = score_of(a, q, key);
    float weight = dt_device_exp(s.value - dt_cuda_element(a.lse, q.row, q.head));
    float factor = dropout_factor(a, q, key), product = 0;
    for (int64_t d = 0; d < a.size; d++)
        product = DT_FMA(dt_cuda_element(a.dy, q.row, q.column + d),
                         dt_cuda_element(a.v, q.key_row + key, q.key_column + d), product);
    return {weight * (product * factor - delta) * s.slope, weight * factor};
}

/* Also sets deltas. */
__device__ void queries_backward::operator()(int64_t head, int64_t row) const
{
    struct query of = query_of(*this, row, head);
    float sums[most_channels], delta = 0;
    for (int64_t d = 0; d < size; d++) {
        delta = DT_FMA(dt_cuda_element(dy, row, of.column + d),
                       dt_cuda_element(y, row, of.column + d), delta);
        sums[d] = 0;
    }
    for (int64_t key = of.begin; key < of.end; key++) {
        struct pair p = pair_of(*this, of, key, delta);
        for (int64_t d = 0; d < size; d++)
            sums[d] = DT_FMA(p.gradient, dt_cuda_element(k, of.key_row + key, of.key_column + d),
                             sums[d]);
    }
    for (int64_t d = 0; d < size; d++)
        dt_cuda_set_element(dq, row, of.column + d, DT_FMA(sums[d], scale, 0.0f));
    deltas[row * how.heads + head] = delta;
}

/* row: of k and v. */
__device__ void keys_backward::operator()(int64_t shared, int64_t row) const
{
    int64_t group = how.heads / how.kv_heads, sequence = row / how.key_stride;
    int64_t key = row % how.key_stride;
    float dk_sums[most_channels], dv_sums[most_channels];
    for (int64_t d = 0; d < size; d++)
        dk_sums[d] = dv_sums[d] = 0;
    for (int64_t head = shared * group; head < (shared + 1) * group; head++)
        for (int64_t t = 0; t < how.queries; t++) {
            struct query of = query_of(*this, sequence * how.queries + t, head);
            if (key < of.begin || key >= of.end)
                continue;
            struct pair p = pair_of(*this, of, key, deltas[of.row * how.heads + head]);
            for (int64_t d = 0; d < size; d++) {
                float scaled = dt_cuda_element(q, of.row, of.column + d) * scale;
                dk_sums[d] = DT_FMA(p.gradient, scaled, dk_sums[d]);
                dv_sums[d] =
                    DT_FMA(p.weight, dt_cuda_element(dy, of.row, of.column + d), dv_sums[d]);
            }
        }
    for (int64_t d = 0; d < size; d++) {
        dt_cuda_set_element(dk, row, shared * size + d, dk_sums[d] + 0.0f);
        dt_cuda_set_element(dv, row, shared * size + d, dv_sums[d] + 0.0f);
    }
}

/* --- ops -------------------------------------------------------------------------------------- */
static struct attention attention_of(const struct dt_tensor *q, const struct dt_tensor *k,
                                     const struct dt_tensor *v, const struct dt_tensor *y,
                                     const struct dt_tensor *lse, const struct dt_attention *how)
{
    struct attention a = {};
    assert(q->columns % how->heads == 0 && q->rows == how->batch * how->queries);
    assert(how->heads % how->kv_heads == 0 && q->columns / how->heads <= most_channels);
    a.q = dt_cuda_view_of(q);
    a.k = dt_cuda_view_of(k);
    a.v = dt_cuda_view_of(v);
    a.y = dt_cuda_view_of(y);
    a.lse = dt_cuda_view_of(lse);
    a.how = *how;
    a.size = q->columns / how->heads;
    a.length = how->length > 0 ? how->length : how->past + how->queries;
    a.keys = how->bidirectional ? a.length : how->past + how->queries;
    a.threshold = dt_cuda_dropout_threshold(&how->dropout);
    a.scale = dt_attention_scale(how, a.size);
    a.band = dt_attention_band_of(how);
    a.kept = 1.0f / (1.0f - how->dropout.rate);
    return a;
}

void dt_cuda_canonical_attention_forward(struct dt_device *dev, struct dt_tensor *y,
                                         struct dt_tensor *lse, const struct dt_tensor *q,
                                         const struct dt_tensor *k, const struct dt_tensor *v,
                                         const struct dt_attention *how)
{
    dt_cuda_for_each(dev, how->heads, q->rows, forward{attention_of(q, k, v, y, lse, how)});
}

void dt_cuda_canonical_attention_backward(struct dt_device *dev, struct dt_tensor *dq,
                                          struct dt_tensor *dk, struct dt_tensor *dv,
                                          const struct dt_tensor *dy, const struct dt_tensor *y,
                                          const struct dt_tensor *lse, const struct dt_tensor *q,
                                          const struct dt_tensor *k, const struct dt_tensor *v,
                                          const struct dt_attention *how)
{
    struct attention a = attention_of(q, k, v, y, lse, how);
    assert(how->key_stride >= how->past + how->queries);
    a.dy = dt_cuda_view_of(dy);
    a.dq = dt_cuda_view_of(dq);
    a.dk = dt_cuda_view_of(dk);
    a.dv = dt_cuda_view_of(dv);
    a.deltas =
        static_cast<float *>(dt_cuda_scratch(dev, (size_t)(q->rows * how->heads) * sizeof(float)));
    if (a.deltas == nullptr)
        return;
    dt_cuda_for_each(dev, how->heads, q->rows, queries_backward{a});
    dt_cuda_for_each(dev, how->kv_heads, how->batch * how->key_stride, keys_backward{a});
}
