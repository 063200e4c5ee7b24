/* SPDX-License-Identifier: MIT */
/* Cross-entropy: a row has a block, and each of its parts (device/split-logits.h) 16 threads. */
#include "device/cuda/canonical/canonical.cuh"
#include "device/logit-map.h"

namespace
{
/* A row of DT_LOGIT_SUMS. */
struct sums {
    float columns, highest, sum, below, target, is_first;
};
static_assert(sizeof(struct sums) == DT_LOGIT_SUMS * sizeof(float), "as rows of a tensor");

/* Elements of a row of x, as logits. */
struct logits {
    struct dt_cuda_view x;
    int64_t row;
    struct dt_logit_map map;
    __device__ float operator[](int64_t j) const
    {
        return dt_logit_map_value(map, dt_cuda_element(x, row, j));
    }
};

struct map_each {
    struct dt_cuda_view x;
    struct dt_logit_map map;
    __device__ void operator()(int64_t i, int64_t j) const
    {
        dt_cuda_set_element(x, i, j, dt_logit_map_value(map, dt_cuda_element(x, i, j)));
    }
};

struct loss {
    float *losses, *hits; /* hits may be NULL */
    struct dt_cuda_view x;
    const int32_t *targets;
    struct dt_logit_parts parts; /* of this rank */
    struct dt_cross_entropy how;
};

/* Columns of a part: a thread has first + lane, first + lane + 16, ... below end. */
struct range {
    int64_t first, end;
};
} // namespace

static __device__ struct range part_of(const struct dt_logit_parts &parts, int64_t part, int64_t n)
{
    int64_t from = part * parts.width, to = from + parts.width;
    return {from < n ? from : n, to < n ? to : n};
}

/* What powers of a part are relative to. */
static __device__ float zero_of(float highest)
{
    return highest == -INFINITY ? 0 : highest;
}

static __device__ float higher(float a, float b)
{
    return b > a ? b : a;
}

static __device__ struct sums sums_of_part(const struct logits &logits, struct range of,
                                           int64_t target)
{
    float highest = -INFINITY, before = 0, at_target = -INFINITY;
    for (int64_t j = of.first + dt_cuda_lane(); j < of.end; j += dt_cuda_lanes)
        highest = higher(highest, logits[j]);
    highest = dt_cuda_fold(highest, higher);
    for (int64_t j = of.first + dt_cuda_lane(); j < of.end; j += dt_cuda_lanes) {
        float logit = logits[j];
        before = j < target && logit == highest ? 1.0f : before;
        at_target = j == target ? logit : at_target;
    }
    before = dt_cuda_fold(before, higher);
    at_target = dt_cuda_fold(at_target, higher);
    float zero = zero_of(highest);
    float sum = dt_cuda_lane_sum(of.end - of.first, [&](int64_t j, float s) {
        return s + dt_device_exp(logits[of.first + j] - zero);
    });
    float below = dt_cuda_lane_sum(
        of.end - of.first, [&](int64_t j, float s) { return s + (zero - logits[of.first + j]); });
    bool inside = target >= of.first && target < of.end;
    float is_first = inside && at_target == highest && before == 0 ? 1.0f : 0.0f;
    return {(float)(of.end - of.first), highest, sum, below, at_target, is_first};
}

/* All parts, step floats apart, in the order of their columns. */
static __device__ struct sums combine(const float *parts, int64_t step, int64_t count)
{
    struct sums all = {0, -INFINITY, 0, 0, -INFINITY, 0};
    struct dt_cuda_tree sum = {}, below = {};
    for (int64_t p = 0; p < count; p++) {
        const struct sums &part = *reinterpret_cast<const struct sums *>(parts + p * step);
        if (part.highest > all.highest) {
            all.highest = part.highest;
            all.is_first = part.is_first;
        }
        all.target = higher(all.target, part.target);
        all.columns += part.columns;
    }
    for (int64_t p = 0; p < count; p++) {
        const struct sums &part = *reinterpret_cast<const struct sums *>(parts + p * step);
        float distance = all.highest - zero_of(part.highest);
        dt_cuda_push(&sum, part.sum * dt_device_exp(part.highest - all.highest));
        dt_cuda_push(&below, DT_FMA(part.columns, distance, part.below));
    }
    all.sum = dt_cuda_tree_sum(sum);
    all.below = dt_cuda_tree_sum(below);
    return all;
}

static __device__ float loss_of(const struct sums &s, const struct dt_cross_entropy &how)
{
    float log = dt_device_log(s.sum), log_sum = log + s.highest;
    float below = (1.0f - how.label_smoothing) * (s.highest - s.target);
    if (how.label_smoothing != 0)
        below = DT_FMA(how.label_smoothing, s.below / s.columns, below);
    return DT_FMA(how.z_loss * log_sum, log_sum, log + below);
}

/* The gradient of a part of x. highest: of its logits. */
static __device__ void set_gradient(const struct loss &l, int64_t row, struct range of,
                                    float highest, const struct sums &all, int64_t target)
{
    const struct logits logits = {l.x, row, l.how.map};
    float zero = zero_of(highest), log_sum = dt_device_log(all.sum) + all.highest;
    float factor = l.how.scale * DT_FMA(2.0f * l.how.z_loss, log_sum, 1.0f) / all.sum;
    float spread = l.how.scale * l.how.label_smoothing / all.columns;
    float of_part = factor * dt_device_exp(highest - all.highest);
    for (int64_t j = of.first + dt_cuda_lane(); j < of.end; j += dt_cuda_lanes) {
        float logit = logits[j], power = dt_device_exp(logit - zero);
        float dx = DT_FMA(power, of_part, -spread);
        if (j == target)
            dx = dx - l.how.scale * (1.0f - l.how.label_smoothing);
        if (!dt_logit_map_is_identity(l.how.map))
            dx = dx * dt_logit_map_slope(l.how.map, logit);
        dt_cuda_set_element(l.x, row, j, dx);
    }
}

static __device__ void store_loss(const struct loss &l, int64_t row, float loss, float hit)
{
    if (threadIdx.x > 0)
        return;
    l.losses[row] = loss;
    if (l.hits)
        l.hits[row] = hit;
}

static __global__ void whole_rows(struct loss l)
{
    DT_SHARED(float, stats, DT_LOGIT_PARTS *DT_LOGIT_SUMS);
    int64_t row = blockIdx.x, target = l.targets[row], part = threadIdx.x / dt_cuda_lanes;
    struct range of = part_of(l.parts, part, l.x.columns);
    if (target < 0) {
        store_loss(l, row, 0, 0);
        for (int64_t j = of.first + dt_cuda_lane(); l.how.scale != 0 && j < of.end;
             j += dt_cuda_lanes)
            dt_cuda_set_element(l.x, row, j, 0);
        return;
    }
    struct sums own = sums_of_part({l.x, row, l.how.map}, of, target);
    if (dt_cuda_lane() == 0)
        reinterpret_cast<struct sums *>(stats)[part] = own;
    __syncthreads();
    struct sums all = combine(stats, DT_LOGIT_SUMS, l.parts.count);
    store_loss(l, row, loss_of(all, l.how), all.is_first);
    if (l.how.scale != 0)
        set_gradient(l, row, of, own.highest, all, target);
}

static __global__ void sums_of_rows(struct dt_cuda_view sums, struct dt_cuda_view x,
                                    const int32_t *targets, struct dt_logit_parts parts,
                                    struct dt_logit_map map)
{
    int64_t row = blockIdx.x, rows = gridDim.x, part = threadIdx.x / dt_cuda_lanes;
    struct sums own = sums_of_part({x, row, map}, part_of(parts, part, x.columns), targets[row]);
    float *to = static_cast<float *>(sums.data) + (part * rows + row) * sums.stride;
    if (dt_cuda_lane() == 0)
        *reinterpret_cast<struct sums *>(to) = own;
}

static __global__ void rows_of_sums(struct loss l, struct dt_cuda_view sums, int64_t count)
{
    int64_t row = blockIdx.x, part = threadIdx.x / dt_cuda_lanes, step = gridDim.x * sums.stride;
    const float *of_row = static_cast<const float *>(sums.data) + row * sums.stride;
    const struct sums *own =
        reinterpret_cast<const struct sums *>(of_row + (l.parts.first + part) * step);
    struct sums all = combine(of_row, step, count);
    store_loss(l, row, loss_of(all, l.how), all.is_first);
    if (l.how.scale != 0)
        set_gradient(l, row, part_of(l.parts, part, l.x.columns), own->highest, all,
                     l.targets[row]);
}

static dim3 threads_of(const struct dt_logit_parts *parts)
{
    return dim3((unsigned)(parts->count * dt_cuda_lanes));
}

void dt_cuda_canonical_map_logits(struct dt_device *dev, struct dt_tensor *x,
                                  const struct dt_logit_map *map)
{
    dt_cuda_for_each(dev, x->rows, x->columns, map_each{dt_cuda_view_of(x), *map});
}

void dt_cuda_canonical_cross_entropy(struct dt_device *dev, float *losses, float *hits,
                                     struct dt_tensor *x, const int32_t *targets,
                                     const struct dt_cross_entropy *how)
{
    const struct dt_logit_parts parts = dt_logit_parts_of(x->columns, x->columns, 0, 1);
    const struct loss l = {losses, hits, dt_cuda_view_of(x), targets, parts, *how};
    dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)x->rows), threads_of(&parts), 0,
                   whole_rows, l);
}

void dt_cuda_canonical_logit_sums(struct dt_device *dev, struct dt_tensor *sums,
                                  const struct dt_tensor *x, const int32_t *targets,
                                  const struct dt_logit_parts *parts,
                                  const struct dt_logit_map *map)
{
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == parts->count * x->rows);
    assert(parts->count <= DT_LOGIT_PARTS && x->columns <= parts->count * parts->width);
    dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)x->rows), threads_of(parts), 0,
                   sums_of_rows, dt_cuda_view_of(sums), dt_cuda_view_of(x), targets, *parts, *map);
}

void dt_cuda_canonical_cross_entropy_of_sums(struct dt_device *dev, float *losses, float *hits,
                                             struct dt_tensor *x, const struct dt_tensor *sums,
                                             const int32_t *targets,
                                             const struct dt_logit_parts *parts,
                                             const struct dt_cross_entropy *how)
{
    int64_t count = x->rows > 0 ? sums->rows / x->rows : 0;
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == count * x->rows);
    assert(parts->first + parts->count <= count);
    const struct loss l = {losses, hits, dt_cuda_view_of(x), targets, *parts, *how};
    dt_cuda_launch(dt_cuda_of(dev)->stream, dim3((unsigned)x->rows), threads_of(parts), 0,
                   rows_of_sums, l, dt_cuda_view_of(sums), count);
}
