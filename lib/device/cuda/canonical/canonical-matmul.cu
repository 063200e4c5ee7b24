/* SPDX-License-Identifier: MIT */
/* Products: a thread computes an element of C. */
#include "device/cuda/canonical/canonical.cuh"

constexpr int most_pairs = 8;
constexpr int most_part_ends = 64;
constexpr int64_t most_terms = 256; /* of a chunk */

namespace
{
struct factors {
    struct dt_cuda_view a, b;
    int64_t depth;
};

struct product {
    struct dt_cuda_view c, bias, aux; /* bias, aux: data may be NULL */
    struct factors pairs[most_pairs];
    int64_t part_ends[most_part_ends];
    int pair_count, parts, activation;
    bool transpose_a, transpose_b, accumulate, derivative, has_part_ends;

    __device__ float term(const struct factors &f, int64_t i, int64_t j, int64_t k, float sum) const
    {
        float a = transpose_a ? dt_cuda_element(f.a, k, i) : dt_cuda_element(f.a, i, k);
        float b = transpose_b ? dt_cuda_element(f.b, j, k) : dt_cuda_element(f.b, k, j);
        return DT_FMA(a, b, sum);
    }

    __device__ int64_t part_begin(const struct factors &f, int part) const
    {
        if (has_part_ends)
            return part == 0 ? 0 : part_ends[part - 1];
        return dt_cuda_part_begin(f.depth, parts, part);
    }

    /* Adds the chunks of a part as leaves. Returns whether there is one with a term. */
    __device__ bool add_chunks(struct dt_cuda_tree *leaves, const struct factors &f, int64_t i,
                               int64_t j, int part) const
    {
        int64_t begin = part_begin(f, part), end = part_begin(f, part + 1), n = end - begin;
        int64_t chunks = 1;
        while ((n + chunks - 1) / chunks > most_terms)
            chunks *= 2;
        int64_t length = (n + chunks - 1) / chunks;
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            int64_t k = begin + chunk * length, chunk_end = k + length < end ? k + length : end;
            bool present = k < chunk_end;
            float sum = 0;
            for (; k < chunk_end; k++)
                sum = term(f, i, j, k, sum);
            dt_cuda_push(leaves, sum, present);
        }
        return n > 0;
    }

    __device__ float sum(int64_t i, int64_t j) const
    {
        struct dt_cuda_tree of_parts = {};
        for (int part = 0; part < parts; part++) {
            struct dt_cuda_tree leaves = {};
            bool present = false;
            for (int pair = 0; pair < pair_count; pair++)
                present |= add_chunks(&leaves, pairs[pair], i, j, part);
            dt_cuda_push(&of_parts, dt_cuda_tree_sum(leaves), present);
        }
        return dt_cuda_tree_sum(of_parts);
    }

    __device__ void operator()(int64_t i, int64_t j) const
    {
        float x = sum(i, j);
        if (accumulate)
            x = dt_cuda_element(c, i, j) + x;
        if (bias.data)
            x = x + dt_cuda_element(bias, 0, j);
        if (activation != DT_ACTIVATION_NONE && derivative) {
            x = x * dt_cuda_slope(activation, dt_cuda_element(aux, i, j));
        } else if (activation != DT_ACTIVATION_NONE) {
            dt_cuda_set_element(aux, i, j, x);
            x = dt_cuda_activate(activation, dt_cuda_element(aux, i, j));
        }
        dt_cuda_set_element(c, i, j, x);
    }
};
} // namespace

static struct factors factors_of(const struct dt_tensor *c, const struct dt_tensor *a,
                                 const struct dt_tensor *b, const struct dt_matmul *how)
{
    int64_t depth = how->transpose_a ? a->rows : a->columns;
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_b ? b->columns : b->rows) == depth);
    assert(a->dtype == b->dtype && (c->dtype == a->dtype || c->dtype == DT_DTYPE_F32));
    (void)c;
    return {dt_cuda_view_of(a), dt_cuda_view_of(b), depth};
}

void dt_cuda_canonical_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                              const struct dt_tensor *b, const struct dt_matmul *how)
{
    struct product p = {};
    assert(how->more_count < most_pairs);
    assert(how->part_ends == nullptr || how->parts <= most_part_ends);
    assert(how->activation == DT_ACTIVATION_NONE || how->aux != nullptr);
    p.c = dt_cuda_view_of(c);
    if (how->bias)
        p.bias = dt_cuda_view_of(how->bias);
    if (how->activation != DT_ACTIVATION_NONE)
        p.aux = dt_cuda_view_of(how->aux);
    p.pairs[0] = factors_of(c, a, b, how);
    for (int i = 0; i < how->more_count; i++)
        p.pairs[i + 1] = factors_of(c, how->more[i].a, how->more[i].b, how);
    p.pair_count = 1 + how->more_count;
    p.parts = how->parts > 1 ? how->parts : 1;
    p.has_part_ends = how->part_ends != nullptr;
    for (int i = 0; p.has_part_ends && i < p.parts; i++)
        p.part_ends[i] = how->part_ends[i];
    p.activation = how->activation;
    p.transpose_a = how->transpose_a;
    p.transpose_b = how->transpose_b;
    p.accumulate = how->accumulate;
    p.derivative = how->derivative;
    if (how->sums_a)
        dt_cuda_canonical_bias_backward(dev, how->sums_a, a, how->parts);
    if (how->sums_b)
        dt_cuda_canonical_bias_backward(dev, how->sums_b, b, how->parts);
    dt_cuda_for_each(dev, c->rows, c->columns, p);
}
