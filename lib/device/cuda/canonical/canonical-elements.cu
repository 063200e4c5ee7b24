/* SPDX-License-Identifier: MIT */
/* Ops on elements: activations, gates, rotary embedding. */
#include "device/cuda/canonical/canonical.cuh"

namespace
{
struct activate {
    struct dt_cuda_view y, x;
    int activation;
    __device__ void operator()(int64_t i, int64_t j) const
    {
        dt_cuda_set_element(y, i, j, dt_cuda_activate(activation, dt_cuda_element(x, i, j)));
    }
};

struct activate_backward {
    struct dt_cuda_view dx, x;
    int activation;
    __device__ void operator()(int64_t i, int64_t j) const
    {
        float slope = dt_cuda_slope(activation, dt_cuda_element(x, i, j));
        dt_cuda_set_element(dx, i, j, dt_cuda_element(dx, i, j) * slope);
    }
};

struct gated {
    struct dt_cuda_view y, gate, up;
    int activation;
    __device__ void operator()(int64_t i, int64_t j) const
    {
        float g = dt_cuda_activate(activation, dt_cuda_element(gate, i, j));
        dt_cuda_set_element(y, i, j, g * dt_cuda_element(up, i, j));
    }
};

struct gated_backward {
    struct dt_cuda_view dgate, dy, gate, up;
    int activation;
    __device__ void operator()(int64_t i, int64_t j) const
    {
        float g = dt_cuda_element(gate, i, j), d = dt_cuda_element(dy, i, j);
        float u = dt_cuda_element(up, i, j);
        dt_cuda_set_element(dgate, i, j, d * u * dt_cuda_slope(activation, g));
        dt_cuda_set_element(dy, i, j, d * dt_cuda_activate(activation, g));
    }
};

/* A pair of channels: columns j and j + half of a head, where pair is counted over all heads. */
struct rope {
    struct dt_cuda_view x, table;
    int64_t head_dim, length, past;
    float direction;
    __device__ void operator()(int64_t row, int64_t pair) const
    {
        int64_t half = table.columns / 2, j = pair % half, angles = past + row % length;
        int64_t first = pair / half * head_dim + j, second = first + half;
        float a = dt_cuda_element(x, row, first), b = dt_cuda_element(x, row, second);
        float cosine = dt_cuda_element(table, angles, j);
        float sine = direction * dt_cuda_element(table, angles, half + j);
        dt_cuda_set_element(x, row, first, DT_FMA(a, cosine, -(b * sine)));
        dt_cuda_set_element(x, row, second, DT_FMA(b, cosine, a * sine));
    }
};
} // namespace

void dt_cuda_canonical_activation_forward(struct dt_device *dev, struct dt_tensor *y,
                                          const struct dt_tensor *x, enum dt_activation activation)
{
    assert(x->rows == y->rows && x->columns == y->columns);
    dt_cuda_for_each(dev, y->rows, y->columns,
                     activate{dt_cuda_view_of(y), dt_cuda_view_of(x), activation});
}

void dt_cuda_canonical_activation_backward(struct dt_device *dev, struct dt_tensor *dx,
                                           const struct dt_tensor *x, enum dt_activation activation)
{
    assert(x->rows == dx->rows && x->columns == dx->columns);
    dt_cuda_for_each(dev, dx->rows, dx->columns,
                     activate_backward{dt_cuda_view_of(dx), dt_cuda_view_of(x), activation});
}

void dt_cuda_canonical_gated_forward(struct dt_device *dev, struct dt_tensor *y,
                                     const struct dt_tensor *gate, const struct dt_tensor *up,
                                     enum dt_activation activation)
{
    assert(gate->columns == y->columns && up->columns == y->columns);
    dt_cuda_for_each(
        dev, y->rows, y->columns,
        gated{dt_cuda_view_of(y), dt_cuda_view_of(gate), dt_cuda_view_of(up), activation});
}

void dt_cuda_canonical_gated_backward(struct dt_device *dev, struct dt_tensor *dgate,
                                      struct dt_tensor *dy, const struct dt_tensor *gate,
                                      const struct dt_tensor *up, enum dt_activation activation)
{
    assert(gate->columns == dy->columns && up->columns == dy->columns);
    dt_cuda_for_each(dev, dy->rows, dy->columns,
                     gated_backward{dt_cuda_view_of(dgate), dt_cuda_view_of(dy),
                                    dt_cuda_view_of(gate), dt_cuda_view_of(up), activation});
}

void dt_cuda_canonical_rope(struct dt_device *dev, struct dt_tensor *x,
                            const struct dt_tensor *table, int64_t head_dim, int64_t length,
                            int64_t past, bool inverse)
{
    int64_t size = table->columns, heads = x->columns / head_dim;
    assert(size % 2 == 0 && size <= head_dim && x->columns % head_dim == 0 &&
           past + length <= table->rows);
    dt_cuda_for_each(dev, x->rows, heads * (size / 2),
                     rope{dt_cuda_view_of(x), dt_cuda_view_of(table), head_dim, length, past,
                          inverse ? -1.0f : 1.0f});
}
