/* SPDX-License-Identifier: MIT */
/* Products: the library's, with its epilogues where it has them; otherwise kernels of
 * our own follow. */
#include <assert.h>

#include "device/cuda/blas.h"
#include "device/cuda/epilogue.h"

/* A product as it is asked for. */
struct request {
    struct dt_tensor *c;
    const struct dt_tensor *a, *b;
    const struct dt_matmul *how;
};

static struct dt_cuda_product product_of(const struct request *r, const struct dt_tensor *c,
                                         enum dt_cuda_epilogue epilogue)
{
    struct dt_cuda_product product = {
        .c = *c,
        .a = *r->a,
        .b = *r->b,
        .transpose_a = r->how->transpose_a,
        .transpose_b = r->how->transpose_b,
        .accumulate = r->how->accumulate,
        .epilogue = epilogue,
    };
    if (r->how->bias)
        product.bias = *r->how->bias;
    if (r->how->aux)
        product.aux = *r->how->aux;
    return product;
}

struct plain_and_bias {
    const struct request *request;
    const struct dt_tensor *c;
};

static void add_after(struct dt_device *dev, void *context)
{
    const struct plain_and_bias *p = context;
    const struct dt_cuda_product plain = product_of(p->request, p->c, DT_CUDA_PLAIN);
    dt_cuda_blas_multiply(dev, &plain);
    dt_cuda_bias_activation(dev, p->c, p->c, p->request->how->bias, NULL, DT_ACT_NONE);
}

/* c = the product + bias. */
static void multiply_and_add(struct dt_device *dev, const struct request *r,
                             const struct dt_tensor *c)
{
    struct plain_and_bias separately = {r, c};
    const struct dt_tensor *bias = r->how->bias;
    const struct dt_cuda_product product = product_of(r, c, bias ? DT_CUDA_BIAS : DT_CUDA_PLAIN);
    if (bias == NULL || (bias->dtype == c->dtype && !r->how->accumulate &&
                         dt_cuda_blas_takes(dev, &product, add_after, &separately)))
        dt_cuda_blas_multiply(dev, &product);
    else
        add_after(dev, &separately);
}

/* The activation by a kernel of ours. aux takes what it is applied to at once, unless that
 * is added to C. */
static void activate_after(struct dt_device *dev, void *context)
{
    const struct request *r = context;
    const struct dt_matmul *how = r->how;
    if (how->derivative) {
        multiply_and_add(dev, r, r->c);
        dt_cuda_activation_backward(dev, r->c, how->aux, how->activation);
    } else if (how->accumulate) {
        multiply_and_add(dev, r, r->c);
        dt_cuda_bias_activation(dev, r->c, r->c, NULL, how->aux, how->activation);
    } else {
        multiply_and_add(dev, r, how->aux);
        dt_cuda_activation_forward(dev, r->c, how->aux, how->activation);
    }
}

/* Whether the library may have an epilogue for all of it. */
static bool may_be_one(const struct request *r)
{
    const struct dt_matmul *how = r->how;
    return how->activation == DT_ACT_GELU_TANH && !how->accumulate &&
           how->aux->dtype == r->c->dtype &&
           (how->bias == NULL || (!how->derivative && how->bias->dtype == r->c->dtype));
}

static void multiply_and_activate(struct dt_device *dev, struct request *r)
{
    const struct dt_cuda_product product = product_of(r, r->c,
                                                      r->how->derivative ? DT_CUDA_GELU_SLOPE
                                                      : r->how->bias     ? DT_CUDA_GELU_BIAS
                                                                         : DT_CUDA_GELU);
    if (may_be_one(r) && dt_cuda_blas_takes(dev, &product, activate_after, r))
        dt_cuda_blas_multiply(dev, &product);
    else
        activate_after(dev, r);
}

/* A row that stands for many becomes many, in room: the library has no such matrices. */
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

void dt_cuda_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                    const struct dt_tensor *b, const struct dt_matmul *how)
{
    int64_t depth = how->transpose_a ? a->rows : a->columns;
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_b ? b->columns : b->rows) == depth);
    assert(a->dtype == b->dtype && (c->dtype == a->dtype || c->dtype == DT_F32));
    assert(how->activation == DT_ACT_NONE || how->aux != NULL);
    if (c->rows == 0 || c->columns == 0 || (depth == 0 && how->accumulate))
        return;
    size_t more = dense_bytes(a) + dense_bytes(b);
    char *room = more > 0 ? dt_cuda_scratch(dev, more) : NULL;
    if (more > 0 && room == NULL)
        return;
    struct dt_tensor left = dense(dev, a, room);
    struct dt_tensor right = dense(dev, b, room ? room + dense_bytes(a) : NULL);
    struct request request = {c, &left, &right, how};
    if (how->activation == DT_ACT_NONE) {
        multiply_and_add(dev, &request, c);
        return;
    }
    struct dt_tensor aux = dt_rows(how->aux, 0, c->rows);
    struct dt_matmul of_rows = *how;
    of_rows.aux = &aux;
    request.how = &of_rows;
    multiply_and_activate(dev, &request);
}
