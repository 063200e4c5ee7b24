/* SPDX-License-Identifier: MIT */
/* Sums over rows, gradients of embeddings, and orthonormalization. */
#include "device/cuda/canonical/canonical.cuh"
#include "device/cuda/sort.h"

namespace
{
struct bias_backward {
    struct dt_cuda_view dbias, dy;
    int64_t rows;
    int parts;
    __device__ void operator()(int64_t, int64_t j) const
    {
        float sum = dt_cuda_sum_over_rows(
            rows, parts, [&](int64_t row, float s) { return s + dt_cuda_element(dy, row, j); });
        dt_cuda_set_element(dbias, 0, j, dt_cuda_element(dbias, 0, j) + sum);
    }
};

/* Rows of dy of the same token, or of the same position. */
struct embedding_backward {
    struct dt_cuda_view gradient, dy;
    int64_t rows;
    int parts;
    struct dt_cuda_sorted tokens; /* NULL: positions */
    int64_t vocabulary, length;

    /* Row number i of those with this key; rows past the last one. */
    __device__ int64_t row_of(int64_t first, int64_t i) const
    {
        if (tokens.keys == nullptr)
            return first + i * length < rows ? first + i * length : rows;
        bool same = first + i < rows && tokens.keys[first + i] == tokens.keys[first];
        return same ? tokens.places[first + i] : rows;
    }

    /* first: of the sorted tokens, or a position. */
    __device__ void operator()(int64_t first, int64_t j) const
    {
        int64_t key = tokens.keys ? tokens.keys[first] : first, i = 0;
        if (tokens.keys && (key >= vocabulary || (first > 0 && tokens.keys[first - 1] == key)))
            return;
        struct dt_cuda_tree of_parts = {};
        for (int part = 0; part < parts; part++) {
            int64_t end = dt_cuda_part_begin(rows, parts, part + 1), row = row_of(first, i);
            bool present = row < end;
            float sum = 0;
            for (; row < end; row = row_of(first, ++i))
                sum = sum + dt_cuda_element(dy, row, j);
            dt_cuda_push(&of_parts, sum, present);
        }
        float sum = dt_cuda_tree_sum(of_parts);
        dt_cuda_set_element(gradient, key, j, dt_cuda_element(gradient, key, j) + sum);
    }
};
} // namespace

void dt_cuda_canonical_bias_backward(struct dt_device *dev, struct dt_tensor *dbias,
                                     const struct dt_tensor *dy, int parts)
{
    assert(dbias->columns == dy->columns);
    dt_cuda_for_each(dev, 1, dy->columns,
                     bias_backward{dt_cuda_view_of(dbias), dt_cuda_view_of(dy), dy->rows,
                                   parts > 1 ? parts : 1});
}

void dt_cuda_canonical_embedding_backward(struct dt_device *dev, struct dt_tensor *dtokens,
                                          struct dt_tensor *dpositions, const struct dt_tensor *dy,
                                          const int32_t *ids, int64_t length, int parts)
{
    int64_t rows = dy->rows;
    void *room = rows > 0 ? dt_cuda_scratch(dev, dt_cuda_sort_bytes(rows)) : nullptr;
    if (room == nullptr)
        return;
    struct embedding_backward e = {dt_cuda_view_of(dtokens),
                                   dt_cuda_view_of(dy),
                                   rows,
                                   parts > 1 ? parts : 1,
                                   {},
                                   dtokens->rows,
                                   length};
    e.tokens = dt_cuda_sort(dev, ids, rows, dtokens->rows, room);
    dt_cuda_for_each(dev, rows, dy->columns, e);
    if (dpositions == nullptr)
        return;
    e.gradient = dt_cuda_view_of(dpositions);
    e.tokens = {};
    dt_cuda_for_each(dev, length < rows ? length : rows, dy->columns, e);
}

/* --- orthonormalization ----------------------------------------------------------------------- */
constexpr double rounding = 1e-30; /* squared norm below which a row is rounding error alone */

/* In 16 lanes, in fp64, where products are exact. */
static __device__ double dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t j = dt_cuda_lane(); j < n; j += dt_cuda_lanes)
        sum += (double)x[j] * (double)y[j];
    return dt_cuda_fold(sum, [](double a, double b) { return a + b; });
}

static __global__ void normalize(float *x, int64_t n)
{
    double squares = dot(x, x, n);
    float scale = squares > rounding ? (float)(1 / sqrt(squares)) : 0;
    for (int64_t j = dt_cuda_lane(); j < n; j += dt_cuda_lanes)
        x[j] *= scale;
}

/* Subtracts the projection onto a finished row from the rows after it. */
static __global__ void project(const float *unit, float *rest, int64_t stride, int64_t rows,
                               int64_t n)
{
    int64_t row = dt_cuda_row_of_lanes();
    if (row >= rows)
        return;
    float *own = rest + row * stride, part = (float)dot(unit, own, n);
    for (int64_t j = dt_cuda_lane(); j < n; j += dt_cuda_lanes)
        own[j] = DT_FMA(-part, unit[j], own[j]);
}

void dt_cuda_canonical_orthonormalize(struct dt_device *dev, struct dt_tensor *x)
{
    struct dt_cuda_stream *stream = dt_cuda_of(dev)->stream;
    assert(x->dtype == DT_DTYPE_F32 && x->rows <= x->columns);
    for (int64_t row = 0; row < x->rows; row++) {
        float *unit = static_cast<float *>(x->data) + row * x->stride;
        int64_t left = x->rows - row - 1;
        dt_cuda_launch(stream, dim3(1), dim3(dt_cuda_lanes), 0, normalize, unit, x->columns);
        dt_cuda_launch(stream, dt_cuda_row_grid(left), dt_cuda_row_block(), 0, project,
                       static_cast<const float *>(unit), unit + x->stride, x->stride, left,
                       x->columns);
    }
}
