/* SPDX-License-Identifier: MIT */
/* Layer norm and RMS norm: a row, or a group of its columns, has 16 threads. */
#include "device/cuda/canonical/canonical.cuh"

namespace
{
/* add, bias: data may be NULL. n: columns of a group; a layer norm has one group. */
struct forward {
    struct dt_cuda_view y, stats, sum, x, add, weight, bias;
    int64_t rows, groups, n;
    float epsilon, weight_offset; /* the latter of RMS norm */
};

/* The factor of column j: offset + weight. */
__device__ float factor_of(const struct dt_cuda_view &weight, float offset, int64_t j)
{
    float w = dt_cuda_element(weight, 0, j);
    return offset == 0 ? w : offset + w;
}

struct backward {
    struct dt_cuda_view dsum, dweight, dbias, dy, sum, weight, stats;
    int64_t rows, groups, n;
    int parts;
    float weight_offset; /* of RMS norm */

    __device__ float layer_xhat(int64_t i, int64_t j) const
    {
        float mean = dt_cuda_element(stats, i, 0), rstd = dt_cuda_element(stats, i, 1);
        return (dt_cuda_element(sum, i, j) - mean) * rstd;
    }

    __device__ float rms_xhat(int64_t i, int64_t j) const
    {
        return dt_cuda_element(sum, i, j) * dt_cuda_element(stats, i, j / n);
    }

    /* dy times the factor. */
    __device__ float gradient(int64_t i, int64_t j) const
    {
        return dt_cuda_element(dy, i, j) * factor_of(weight, weight_offset, j % n);
    }

    __device__ void add_to_dsum(int64_t i, int64_t j, float rstd, float difference) const
    {
        float dx = dt_cuda_element(dsum, i, j);
        dt_cuda_set_element(dsum, i, j, DT_FMA(rstd, difference, dx));
    }
};

/* Gradients of weights: a thread per column. */
struct layer_weights : backward {
    __device__ void operator()(int64_t, int64_t j) const
    {
        float of_weight = dt_cuda_sum_over_rows(rows, parts, [&](int64_t i, float s) {
            return DT_FMA(dt_cuda_element(dy, i, j), layer_xhat(i, j), s);
        });
        float of_bias = dt_cuda_sum_over_rows(
            rows, parts, [&](int64_t i, float s) { return s + dt_cuda_element(dy, i, j); });
        dt_cuda_set_element(dweight, 0, j, dt_cuda_element(dweight, 0, j) + of_weight);
        dt_cuda_set_element(dbias, 0, j, dt_cuda_element(dbias, 0, j) + of_bias);
    }
};

struct rms_weights : backward {
    __device__ void operator()(int64_t, int64_t j) const
    {
        struct dt_cuda_tree of_groups = {};
        for (int64_t at = j; at < n * groups; at += n)
            dt_cuda_push(&of_groups, dt_cuda_sum_over_rows(rows, parts, [&](int64_t i, float s) {
                return DT_FMA(dt_cuda_element(dy, i, at), rms_xhat(i, at), s);
            }));
        float old = dt_cuda_element(dweight, 0, j);
        dt_cuda_set_element(dweight, 0, j, old + dt_cuda_tree_sum(of_groups));
    }
};
} // namespace

/* sum = x + add, or x, in columns first .. first + n - 1. */
static __device__ void store_sum(const struct forward &f, int64_t i, int64_t first)
{
    for (int64_t j = first + dt_cuda_lane(); j < first + f.n; j += dt_cuda_lanes) {
        float x = dt_cuda_element(f.x, i, j);
        dt_cuda_set_element(f.sum, i, j, f.add.data ? x + dt_cuda_element(f.add, i, j) : x);
    }
}

static __global__ void layer_forward(struct forward f)
{
    int64_t i = dt_cuda_row_of_lanes();
    if (i >= f.rows)
        return;
    store_sum(f, i, 0);
    float mean = dt_cuda_lane_sum(
                     f.n, [&](int64_t j, float s) { return s + dt_cuda_element(f.sum, i, j); }) /
                 (float)f.n;
    float squares = dt_cuda_lane_sum(f.n, [&](int64_t j, float s) {
        float difference = dt_cuda_element(f.sum, i, j) - mean;
        return DT_FMA(difference, difference, s);
    });
    float rstd = 1.0f / sqrtf(squares / (float)f.n + f.epsilon);
    for (int64_t j = dt_cuda_lane(); j < f.n; j += dt_cuda_lanes)
        dt_cuda_set_element(f.y, i, j,
                            DT_FMA((dt_cuda_element(f.sum, i, j) - mean) * rstd,
                                   dt_cuda_element(f.weight, 0, j), dt_cuda_element(f.bias, 0, j)));
    if (dt_cuda_lane() == 0) {
        dt_cuda_set_element(f.stats, i, 0, mean);
        dt_cuda_set_element(f.stats, i, 1, rstd);
    }
}

static __global__ void rms_forward(struct forward f)
{
    int64_t i = dt_cuda_row_of_lanes() / f.groups, group = dt_cuda_row_of_lanes() % f.groups;
    int64_t first = group * f.n;
    if (i >= f.rows)
        return;
    store_sum(f, i, first);
    float squares = dt_cuda_lane_sum(f.n, [&](int64_t j, float s) {
        float x = dt_cuda_element(f.sum, i, first + j);
        return DT_FMA(x, x, s);
    });
    float rstd = 1.0f / sqrtf(squares / (float)f.n + f.epsilon);
    for (int64_t j = dt_cuda_lane(); j < f.n; j += dt_cuda_lanes)
        dt_cuda_set_element(f.y, i, first + j,
                            dt_cuda_element(f.sum, i, first + j) * rstd *
                                factor_of(f.weight, f.weight_offset, j));
    if (dt_cuda_lane() == 0)
        dt_cuda_set_element(f.stats, i, group, rstd);
}

static __global__ void layer_backward(struct backward b)
{
    int64_t i = dt_cuda_row_of_lanes();
    if (i >= b.rows)
        return;
    float mean = dt_cuda_lane_sum(b.n, [&](int64_t j, float s) { return s + b.gradient(i, j); }) /
                 (float)b.n;
    float along = dt_cuda_lane_sum(b.n,
                                   [&](int64_t j, float s) {
                                       return DT_FMA(b.gradient(i, j), b.layer_xhat(i, j), s);
                                   }) /
                  (float)b.n;
    for (int64_t j = dt_cuda_lane(); j < b.n; j += dt_cuda_lanes)
        b.add_to_dsum(i, j, dt_cuda_element(b.stats, i, 1),
                      DT_FMA(-b.layer_xhat(i, j), along, b.gradient(i, j) - mean));
}

static __global__ void rms_backward(struct backward b)
{
    int64_t i = dt_cuda_row_of_lanes() / b.groups, group = dt_cuda_row_of_lanes() % b.groups;
    int64_t first = group * b.n;
    if (i >= b.rows)
        return;
    float rstd = dt_cuda_element(b.stats, i, group);
    float along = dt_cuda_lane_sum(b.n,
                                   [&](int64_t j, float s) {
                                       return DT_FMA(b.gradient(i, first + j),
                                                     dt_cuda_element(b.sum, i, first + j), s);
                                   }) *
                  rstd / (float)b.n;
    for (int64_t j = first + dt_cuda_lane(); j < first + b.n; j += dt_cuda_lanes)
        b.add_to_dsum(i, j, rstd, DT_FMA(-b.rms_xhat(i, j), along, b.gradient(i, j)));
}

void dt_cuda_canonical_norm_forward(struct dt_device *dev, struct dt_tensor *y,
                                    struct dt_tensor *stats, struct dt_tensor *sum,
                                    const struct dt_tensor *x, const struct dt_tensor *add,
                                    const struct dt_tensor *weight, const struct dt_tensor *bias,
                                    float epsilon)
{
    struct forward f = {dt_cuda_view_of(y),
                        dt_cuda_view_of(stats),
                        dt_cuda_view_of(sum),
                        dt_cuda_view_of(x),
                        {},
                        dt_cuda_view_of(weight),
                        dt_cuda_view_of(bias),
                        x->rows,
                        1,
                        x->columns,
                        epsilon,
                        0};
    assert(y->columns == f.n && sum->columns == f.n && stats->columns == 2);
    if (add)
        f.add = dt_cuda_view_of(add);
    dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_row_grid(f.rows), dt_cuda_row_block(), 0,
                   layer_forward, f);
}

void dt_cuda_canonical_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                                     struct dt_tensor *dweight, struct dt_tensor *dbias,
                                     const struct dt_tensor *dy, const struct dt_tensor *sum,
                                     const struct dt_tensor *weight, const struct dt_tensor *stats,
                                     int parts)
{
    struct backward b = {dt_cuda_view_of(dsum),
                         dt_cuda_view_of(dweight),
                         dt_cuda_view_of(dbias),
                         dt_cuda_view_of(dy),
                         dt_cuda_view_of(sum),
                         dt_cuda_view_of(weight),
                         dt_cuda_view_of(stats),
                         dy->rows,
                         1,
                         dy->columns,
                         parts > 1 ? parts : 1,
                         0};
    assert(dsum->columns == b.n && sum->columns == b.n && dweight->columns == b.n);
    dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_row_grid(b.rows), dt_cuda_row_block(), 0,
                   layer_backward, b);
    dt_cuda_for_each(dev, 1, b.n, layer_weights{b});
}

void dt_cuda_canonical_rms_norm_forward(struct dt_device *dev, struct dt_tensor *y,
                                        struct dt_tensor *rstd, struct dt_tensor *sum,
                                        const struct dt_tensor *x, const struct dt_tensor *add,
                                        const struct dt_tensor *weight, float weight_offset,
                                        float epsilon)
{
    struct forward f = {dt_cuda_view_of(y),
                        dt_cuda_view_of(rstd),
                        dt_cuda_view_of(sum),
                        dt_cuda_view_of(x),
                        {},
                        dt_cuda_view_of(weight),
                        {},
                        x->rows,
                        rstd->columns,
                        weight->columns,
                        epsilon,
                        weight_offset};
    assert(f.groups * f.n == x->columns);
    assert(y->columns == x->columns && sum->columns == x->columns);
    if (add)
        f.add = dt_cuda_view_of(add);
    dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_row_grid(f.rows * f.groups),
                   dt_cuda_row_block(), 0, rms_forward, f);
}

void dt_cuda_canonical_rms_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                                         struct dt_tensor *dweight, const struct dt_tensor *dy,
                                         const struct dt_tensor *sum,
                                         const struct dt_tensor *weight, float weight_offset,
                                         const struct dt_tensor *rstd, int parts)
{
    struct backward b = {dt_cuda_view_of(dsum),
                         dt_cuda_view_of(dweight),
                         {},
                         dt_cuda_view_of(dy),
                         dt_cuda_view_of(sum),
                         dt_cuda_view_of(weight),
                         dt_cuda_view_of(rstd),
                         dy->rows,
                         rstd->columns,
                         weight->columns,
                         parts > 1 ? parts : 1,
                         weight_offset};
    assert(dy->columns == b.n * b.groups && dweight->columns == b.n);
    assert(dsum->columns == dy->columns && sum->columns == dy->columns);
    dt_cuda_launch(dt_cuda_of(dev)->stream, dt_cuda_row_grid(b.rows * b.groups),
                   dt_cuda_row_block(), 0, rms_backward, b);
    dt_cuda_for_each(dev, 1, b.n, rms_weights{b});
}
