/* SPDX-License-Identifier: MIT */
/* Matrix products by cuBLASLt, with its epilogues where it supports them; otherwise followed by
 * our kernels. */
#include <assert.h>

#include "device/cuda/epilogue.h"
#include "device/cuda/host/blas.h"

static void separately(struct dt_device *dev, const struct dt_cuda_product *p);

/* Activations that cuBLASLt has epilogues for. */
static const bool fused[] = {
#define FUSED(NAME, name, fused, value, derivative) [DT_ACTIVATION_##NAME] = fused,
    DT_ACTIVATION_LIST(FUSED)};

/* Whether a single epilogue of cuBLASLt could compute product, bias and activation. */
static bool may_be_one(const struct dt_cuda_product *p)
{
    bool sums = p->epilogue == DT_CUDA_SUMS_A || p->epilogue == DT_CUDA_SUMS_B;
    if (sums)
        return p->c.dtype == DT_DTYPE_F32;
    return !p->accumulate && (p->bias.data == NULL || p->bias.dtype == p->c.dtype) &&
           (p->aux.data == NULL || (p->aux.dtype == p->c.dtype && fused[p->activation])) &&
           !(p->bias.data && p->epilogue == DT_CUDA_ACTIVATE_BACKWARD);
}

static void multiply(struct dt_device *dev, const struct dt_cuda_product *p)
{
    if (p->epilogue == DT_CUDA_PLAIN || (may_be_one(p) && dt_cuda_blas_takes(dev, p, separately)))
        dt_cuda_blas_multiply(dev, p);
    else
        separately(dev, p);
}

/* c = the product, plus the bias, if there is one. */
static void multiply_and_add(struct dt_device *dev, const struct dt_cuda_product *p,
                             const struct dt_tensor *c)
{
    struct dt_cuda_product product = *p;
    product.c = *c;
    product.aux.data = NULL;
    product.epilogue = p->bias.data ? DT_CUDA_BIAS : DT_CUDA_PLAIN;
    multiply(dev, &product);
}

/* The product is stored in aux for the activation, unless it accumulates into C. */
static void activate(struct dt_device *dev, const struct dt_cuda_product *p)
{
    if (p->accumulate) {
        multiply_and_add(dev, p, &p->c);
        dt_cuda_bias_activation(dev, &p->c, &p->c, NULL, &p->aux, p->activation);
    } else {
        struct dt_tensor c = p->c;
        multiply_and_add(dev, p, &p->aux);
        dt_cuda_activation_forward(dev, &c, &p->aux, p->activation);
    }
}

/* Computes an epilogue by our kernels, after a plain product. */
static void separately(struct dt_device *dev, const struct dt_cuda_product *p)
{
    struct dt_cuda_product plain = *p;
    plain.epilogue = DT_CUDA_PLAIN;
    switch (p->epilogue) {
    case DT_CUDA_ACTIVATE:
    case DT_CUDA_ACTIVATE_BIAS:
        activate(dev, p);
        return;
    case DT_CUDA_ACTIVATE_BACKWARD:
        multiply_and_add(dev, p, &p->c);
        dt_cuda_activation_backward(dev, &plain.c, &p->aux, p->activation);
        return;
    case DT_CUDA_PLAIN:
    case DT_CUDA_BIAS:
    case DT_CUDA_SUMS_A:
    case DT_CUDA_SUMS_B:
        break;
    }
    dt_cuda_blas_multiply(dev, &plain);
    if (p->epilogue == DT_CUDA_BIAS)
        dt_cuda_bias_activation(dev, &p->c, &p->c, &p->bias, NULL, DT_ACTIVATION_NONE);
    if (p->epilogue == DT_CUDA_SUMS_A)
        dt_cuda_bias_backward(dev, &plain.bias, &p->a, 1);
    if (p->epilogue == DT_CUDA_SUMS_B)
        dt_cuda_bias_backward(dev, &plain.bias, &p->b, 1);
}

/* Copies a broadcast row (stride 0) to `room`, since cuBLASLt does not support stride 0. */
static struct dt_tensor dense(struct dt_device *dev, const struct dt_tensor *x, void *room)
{
    struct dt_tensor copy = dt_matrix_of(x->dtype, room, x->rows, x->columns);
    if (x->rows <= 1 || x->stride >= x->columns)
        return *x;
    dt_cuda_copy(dev, &copy, x);
    return copy;
}

static size_t dense_bytes(const struct dt_tensor *x)
{
    size_t bytes = (size_t)(x->rows * x->columns) * dt_dtype_size(x->dtype);
    return x->rows <= 1 || x->stride >= x->columns ? 0 : (bytes + 255) / 256 * 256;
}

static enum dt_cuda_epilogue epilogue_of(const struct dt_matmul *how)
{
    if (how->sums_a || how->sums_b)
        return how->sums_a ? DT_CUDA_SUMS_A : DT_CUDA_SUMS_B;
    if (how->activation == DT_ACTIVATION_NONE)
        return how->bias ? DT_CUDA_BIAS : DT_CUDA_PLAIN;
    if (how->derivative)
        return DT_CUDA_ACTIVATE_BACKWARD;
    return how->bias ? DT_CUDA_ACTIVATE_BIAS : DT_CUDA_ACTIVATE;
}

/* One pair of factors. */
static void multiply_pair(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                          const struct dt_tensor *b, const struct dt_matmul *how)
{
    int64_t depth = how->transpose_a ? a->rows : a->columns;
    const struct dt_tensor *sums = how->sums_a ? how->sums_a : how->sums_b;
    const struct dt_tensor *bias = sums ? sums : how->bias;
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_b ? b->columns : b->rows) == depth);
    assert(a->dtype == b->dtype && (c->dtype == a->dtype || c->dtype == DT_DTYPE_F32));
    assert(how->activation == DT_ACTIVATION_NONE || how->aux != NULL);
    assert(!how->sums_a || (how->transpose_a && !how->sums_b));
    assert(!how->sums_b || !how->transpose_b);
    assert(!sums || (!how->bias && !how->activation && dense_bytes(a) + dense_bytes(b) == 0));
    if (c->rows == 0 || c->columns == 0 || (depth == 0 && how->accumulate))
        return;
    size_t more = dense_bytes(a) + dense_bytes(b);
    char *room = more > 0 ? dt_cuda_scratch(dev, more) : NULL;
    if (more > 0 && room == NULL)
        return;
    struct dt_cuda_product product = {
        .c = *c,
        .a = dense(dev, a, room),
        .b = dense(dev, b, room ? room + dense_bytes(a) : NULL),
        .transpose_a = how->transpose_a,
        .transpose_b = how->transpose_b,
        .accumulate = how->accumulate,
        .replicated = how->replicated,
        .epilogue = epilogue_of(how),
        .activation = how->activation,
    };
    if (bias)
        product.bias = *bias;
    if (how->activation != DT_ACTIVATION_NONE)
        product.aux = dt_tensor_rows(how->aux, 0, c->rows);
    multiply(dev, &product);
}

void dt_cuda_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                    const struct dt_tensor *b, const struct dt_matmul *how)
{
    struct dt_matmul add = *how;
    assert(how->more_count == 0 || !(how->bias || how->activation || how->sums_a || how->sums_b));
    add.accumulate = true;
    multiply_pair(dev, c, a, b, how);
    for (int i = 0; i < how->more_count; i++)
        multiply_pair(dev, c, how->more[i].a, how->more[i].b, &add);
}
