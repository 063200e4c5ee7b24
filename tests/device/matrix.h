/* SPDX-License-Identifier: MIT */
/* For the tests of ops: a device of two threads, random matrices, and their
 * comparison with a reference in double precision. */
#ifndef DT_TEST_DEVICE_MATRIX_H
#define DT_TEST_DEVICE_MATRIX_H

#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/device.h"
#include "math/rng.h"

static struct dt_device *dev;
static struct dt_rng rng;

/* zero and copy of a GPU's runtime are asynchronous, even with blocking kernel launches, and these
 * tests read operands at once: so wait for both. */
static struct dt_ops waiting;

static inline void wait_for(struct dt_device *d)
{
    struct dt_error err;
    if (d->ops->synchronize(d, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void zero_and_wait(struct dt_device *d, struct dt_tensor *x)
{
    d->engine->ops->zero(d, x);
    wait_for(d);
}

static inline void copy_and_wait(struct dt_device *d, struct dt_tensor *to,
                                 const struct dt_tensor *from)
{
    d->engine->ops->copy(d, to, from);
    wait_for(d);
}

/* Whether results must have the bits of dt-arithmetic(7): of the cpu engine, and of another one
 * with $DT_TEST_CANONICAL set. */
static inline bool has_defined_bits(void)
{
    return getenv("DT_TEST_ENGINE") == NULL || getenv("DT_TEST_CANONICAL") != NULL;
}

/* Opens the engine $DT_TEST_ENGINE; without it, the engine of dev, or the best one if dev is not
 * open yet. */
static inline struct dt_device *open_with(int threads)
{
    struct dt_device *opened;
    struct dt_error err;
    const char *asked = getenv("DT_TEST_ENGINE");
    char *name = asked ? dt_strdup(asked)
                 : dev ? dt_asprintf("cpu-%s", dev->isa)
                       : dt_strdup("cpu");
    if (dt_device_open(&opened, name, threads, &err))
        fail_msg("%s", err.text);
    free(name);
    if (getenv("DT_TEST_CANONICAL"))
        dt_device_set_canonical(opened);
    if (opened->engine->own_memory) {
        waiting = *opened->ops;
        waiting.zero = zero_and_wait;
        waiting.copy = copy_and_wait;
        opened->ops = &waiting;
    }
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
    dev = NULL;
    return 0;
}

/* Opens the engine of an instruction set, or the best one if the machine does not support it. */
static inline int open_isa(const char *name)
{
    struct dt_error err;
    bool supported = true;
#if defined(__x86_64__)
    supported = strcmp(name, "cpu-avx512") != 0 || __builtin_cpu_supports("avx512vl");
    supported = supported && (strcmp(name, "cpu-avx2") != 0 || __builtin_cpu_supports("avx2"));
#endif
    dt_rng_init(&rng, 1);
    if (getenv("DT_TEST_ENGINE") && (dev = open_with(2)) != NULL)
        return 0;
    if (supported && dt_device_open(&dev, name, 2, &err) == 0)
        return 0;
    return dt_device_open(&dev, "cpu", 2, &err);
}

static inline int open_generic(void **state)
{
    (void)state;
    return open_isa("cpu-generic");
}

static inline int open_avx2(void **state)
{
    (void)state;
    return open_isa("cpu-avx2");
}

static inline int open_avx512(void **state)
{
    (void)state;
    return open_isa("cpu-avx512");
}

/* $DT_TEST_ENGINE is opened for each instruction set: its tests run once. */
static inline void skip_repetitions(void)
{
    if (getenv("DT_TEST_ENGINE"))
        cmocka_set_skip_filter("* (avx*)");
}

/* clang-format off */
/* Entries of a list of tests. */
#define ON_EACH_ISA(test) \
    {#test " (generic)", test, open_generic, close_device, NULL}, \
    {#test " (avx2)", test, open_avx2, close_device, NULL}, \
    {#test " (avx512)", test, open_avx512, close_device, NULL}
#define RUN_ON_EACH_ISA(tests) (skip_repetitions(), cmocka_run_group_tests(tests, NULL, NULL))
/* clang-format on */

/* Memory for a matrix; free(x.data). */
static inline struct dt_tensor new_matrix(enum dt_dtype dtype, int64_t rows, int64_t columns)
{
    void *data = dt_alloc((size_t)(rows * columns), dt_dtype_size(dtype));
    return dt_matrix_of(dtype, data, rows, columns);
}

/* Random numbers between -1 and 1. */
static inline struct dt_tensor random_matrix(int64_t rows, int64_t columns)
{
    struct dt_tensor x = new_matrix(DT_DTYPE_F32, rows, columns);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)x.data)[i] = (float)(2 * dt_rng_double(&rng) - 1);
    return x;
}

/* The same as another element type, rounded. */
static inline struct dt_tensor as_type(enum dt_dtype dtype, const struct dt_tensor *x)
{
    struct dt_tensor copy = new_matrix(dtype, x->rows, x->columns);
    dev->ops->copy(dev, &copy, x);
    return copy;
}

static inline struct dt_tensor random_matrix_of(enum dt_dtype dtype, int64_t rows, int64_t columns)
{
    struct dt_tensor x = random_matrix(rows, columns), result = as_type(dtype, &x);
    free(x.data);
    return result;
}

static inline struct dt_tensor copy_of(const struct dt_tensor *x)
{
    return as_type(x->dtype, x);
}

static inline float float_of(enum dt_dtype dtype, uint16_t half)
{
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023, bits = (uint32_t)half << 16;
    float x;
    if (dtype == DT_DTYPE_F16)
        bits = (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    memcpy(&x, &bits, sizeof x);
    if (dtype == DT_DTYPE_BF16)
        return x;
    if (exponent == 0)
        x = (float)fraction * 0x1p-24f;
    return half >> 15 ? -x : x;
}

static inline float at(const struct dt_tensor *x, int64_t row, int64_t column)
{
    int64_t place = row * x->stride + column;
    return x->dtype == DT_DTYPE_F32 ? ((float *)x->data)[place]
                                    : float_of(x->dtype, ((uint16_t *)x->data)[place]);
}

/* The relative rounding error of an element type. */
static inline double rounding_of(enum dt_dtype dtype)
{
    return dtype == DT_DTYPE_F32 ? 0 : dtype == DT_DTYPE_BF16 ? 0x1p-8 : 0x1p-11;
}

/* max |got - want| relative to the largest |want|. Results of 16-bit types may differ by their
 * rounding, or by twice that in engines that round between a product and its epilogue. */
static inline void assert_near(const struct dt_tensor *got, const double *want, double tolerance)
{
    double worst = 0, largest = 1e-2;
    tolerance += (has_defined_bits() ? 1 : 2) * rounding_of(got->dtype);
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->columns; j++) {
            double w = want[i * got->columns + j], difference = fabs(at(got, i, j) - w);
            if (!(difference <= worst)) /* NaN is the worst */
                worst = isnan(difference) ? INFINITY : difference;
            largest = fmax(largest, fabs(w));
        }
    if (!(worst <= tolerance * largest))
        fail_msg("differs by %g of %g", worst, largest);
}

/* The cpu engine's order of sums is fixed. Other engines, whose order depends on the type, must
 * agree within rounding. */
static inline void assert_same_bits(const struct dt_tensor *a, const struct dt_tensor *b)
{
    size_t size = dt_dtype_size(a->dtype);
    if (!has_defined_bits()) {
        double *want = dt_alloc((size_t)(b->rows * b->columns), sizeof *want);
        for (int64_t i = 0; i < b->rows * b->columns; i++)
            want[i] = at(b, i / b->columns, i % b->columns);
        assert_near(a, want, 2e-6 + rounding_of(a->dtype));
        free(want);
        return;
    }
    for (int64_t i = 0; i < a->rows; i++)
        assert_memory_equal((char *)a->data + (size_t)(i * a->stride) * size,
                            (char *)b->data + (size_t)(i * b->stride) * size,
                            (size_t)a->columns * size);
}

/* Finite differences of a loss sum(y * r) of a reference y = f(tensors) by each element of x,
 * compared with an op's gradient. */
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
