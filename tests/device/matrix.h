/* SPDX-License-Identifier: MIT */
/* For the tests of ops: a device of two threads, random matrices, and their
 * comparison with a reference in double precision. */
#ifndef DT_TEST_DEVICE_MATRIX_H
#define DT_TEST_DEVICE_MATRIX_H

#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/rng.h"
#include "device/device.h"

static struct dt_device *dev;
static struct dt_rng rng;

static inline struct dt_device *open_with(int threads)
{
    struct dt_device *opened;
    struct dt_error err;
    const char *name = getenv("DT_TEST_ENGINE");
    if (dt_device_open(&opened, name ? name : "cpu", threads, &err))
        fail_msg("%s", err.text);
    return opened;
}

static inline int open_device(void **state)
{
    (void)state;
    dt_rng_init(&rng, 1);
    dev = open_with(2);
    return 0;
}

static inline int close_device(void **state)
{
    (void)state;
    dt_device_close(dev);
    return 0;
}

/* Of numbers between -1 and 1. */
static inline struct dt_tensor random_matrix(int64_t rows, int64_t columns)
{
    float *x = dt_alloc((size_t)(rows * columns), sizeof *x);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)(2 * dt_rng_double(&rng) - 1);
    return dt_matrix(x, rows, columns);
}

static inline struct dt_tensor copy_of(const struct dt_tensor *x)
{
    struct dt_tensor copy = random_matrix(x->rows, x->columns);
    for (int64_t i = 0; i < x->rows; i++)
        memcpy((float *)copy.data + i * copy.stride, (float *)x->data + i * x->stride,
               (size_t)x->columns * sizeof(float));
    return copy;
}

static inline float at(const struct dt_tensor *x, int64_t row, int64_t column)
{
    return ((float *)x->data)[row * x->stride + column];
}

static inline void assert_same_bits(const struct dt_tensor *a, const struct dt_tensor *b)
{
    for (int64_t i = 0; i < a->rows; i++)
        assert_memory_equal((float *)a->data + i * a->stride, (float *)b->data + i * b->stride,
                            (size_t)a->columns * sizeof(float));
}

/* max |got - want| against the largest |want|. */
static inline void assert_near(const struct dt_tensor *got, const double *want, double tolerance)
{
    double worst = 0, largest = 1e-2;
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->columns; j++) {
            double w = want[i * got->columns + j], difference = fabs(at(got, i, j) - w);
            worst = difference <= worst ? worst : difference; /* NaN counts as worse */
            largest = fmax(largest, fabs(w));
        }
    if (!(worst <= tolerance * largest))
        fail_msg("differs by %g of %g", worst, largest);
}

/* A loss sum(y * r) of a reference y = f(tensors), differentiated by each
 * element of x in turn; compared with the gradient an op gave. */
typedef double reference_loss(void *context);

static inline void assert_gradient(const struct dt_tensor *gradient, const struct dt_tensor *x,
                                   reference_loss *loss, void *context)
{
    double *want = dt_alloc((size_t)(x->rows * x->columns), sizeof *want);
    const float step = 1.0f / 256;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            float *value = (float *)x->data + i * x->stride + j, kept = *value;
            *value = kept + step;
            double up = loss(context), high = *value;
            *value = kept - step;
            want[i * x->columns + j] = (up - loss(context)) / (high - *value);
            *value = kept;
        }
    assert_near(gradient, want, 2e-4);
    free(want);
}

#endif
