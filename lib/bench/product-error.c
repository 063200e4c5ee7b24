/* SPDX-License-Identifier: MIT */
#include "bench/product-error.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/plugin.h"
#include "device/arena.h"
#include "math/rng.h"

#define SIDE 256

struct operands {
    int64_t k;
    struct dt_arena arena;
    struct dt_tensor wide_a, wide_b, a, b, c; /* the first two are fp32 */
    float *host_a, *host_b, *host_c;
};

static void lay_out(struct operands *o, enum dt_dtype type)
{
    o->wide_a = dt_arena_matrix(&o->arena, SIDE, o->k);
    o->wide_b = dt_arena_matrix(&o->arena, o->k, SIDE);
    o->a = dt_arena_matrix_of(&o->arena, type, SIDE, o->k);
    o->b = dt_arena_matrix_of(&o->arena, type, o->k, SIDE);
    o->c = dt_arena_matrix(&o->arena, SIDE, SIDE);
}

/* Random numbers become x, rounded to its type, and host, as rounded. */
static void fill(struct dt_device *dev, struct dt_tensor *x, struct dt_tensor *wide, float *host,
                 uint64_t key)
{
    size_t count = (size_t)(x->rows * x->columns);
    struct dt_rng rng;
    dt_rng_init(&rng, key);
    for (size_t i = 0; i < count; i++)
        host[i] = (float)(2 * dt_rng_double(&rng) - 1);
    dev->ops->upload(dev, wide->data, host, count * sizeof *host);
    dev->ops->copy(dev, x, wide);
    dev->ops->copy(dev, wide, x);
    dev->ops->download(dev, host, wide->data, count * sizeof *host);
}

static double error_of(const struct operands *o)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < SIDE; i++) {
        double sums[SIDE] = {0};
        for (int64_t k = 0; k < o->k; k++)
            for (int64_t j = 0; j < SIDE; j++)
                sums[j] += (double)o->host_a[i * o->k + k] * (double)o->host_b[k * SIDE + j];
        for (int64_t j = 0; j < SIDE; j++) {
            double difference = (double)o->host_c[i * SIDE + j] - sums[j];
            error += difference * difference;
            norm += sums[j] * sums[j];
        }
    }
    return sqrt(error / norm);
}

/* dnnl_sgemm, whose matrices are stored by rows. */
typedef int sgemm_function(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                           const float *, int64_t, float, float *, int64_t);

/* Sets host_c; false without oneDNN. */
static bool multiply_by_library(struct operands *o)
{
    static const char *const names[] = {"libdnnl.so.2", "libdnnl.so.3"};
    sgemm_function *sgemm = NULL;
    for (int i = 0; i < 2 && sgemm == NULL; i++)
        *(void **)&sgemm = dt_plugin_symbol(names[i], "dnnl_sgemm");
    return sgemm && sgemm('N', 'N', SIDE, SIDE, o->k, 1, o->host_a, o->k, o->host_b, SIDE, 0,
                          o->host_c, SIDE) == 0;
}

/* library: sgemm's error; NAN if the type is another, or the library is absent. */
static int measure(struct dt_device *dev, enum dt_dtype type, int64_t k, double *engine,
                   double *library, struct dt_error *err)
{
    struct operands o = {.k = k, .arena = {0}};
    size_t count = (size_t)(SIDE * k);
    lay_out(&o, type);
    DT_TRY(dt_arena_allocate(&o.arena, dev, err));
    lay_out(&o, type);
    o.host_a = dt_alloc(count, sizeof *o.host_a);
    o.host_b = dt_alloc(count, sizeof *o.host_b);
    o.host_c = dt_alloc((size_t)SIDE * SIDE, sizeof *o.host_c);
    fill(dev, &o.a, &o.wide_a, o.host_a, 1);
    fill(dev, &o.b, &o.wide_b, o.host_b, 2);
    dev->ops->matmul(dev, &o.c, &o.a, &o.b, &(struct dt_matmul){.accumulate = false});
    int rc = dev->ops->synchronize(dev, err);
    dev->ops->download(dev, o.host_c, o.c.data, (size_t)SIDE * SIDE * sizeof *o.host_c);
    *engine = error_of(&o);
    *library = type == DT_DTYPE_F32 && multiply_by_library(&o) ? error_of(&o) : NAN;
    free(o.host_a), free(o.host_b), free(o.host_c);
    dt_arena_release(&o.arena, dev);
    return rc;
}

int dt_product_error_measure(struct dt_device *dev,
                             struct dt_product_error errors[DT_PRODUCT_ERRORS],
                             struct dt_error *err)
{
    static const int64_t lengths[] = {256, 1024, 4096};
    for (int i = 0; i < DT_PRODUCT_ERRORS; i++) {
        struct dt_product_error *e = &errors[i];
        double library;
        e->type = i < DT_PRODUCT_ERRORS / 2 ? DT_DTYPE_F32 : DT_DTYPE_BF16;
        e->k = lengths[i % (DT_PRODUCT_ERRORS / 2)];
        DT_TRY(measure(dev, e->type, e->k, &e->fast, &library, err));
        e->fast = e->type == DT_DTYPE_F32 ? library : e->fast;
    }
    dt_device_set_canonical(dev);
    for (int i = 0; i < DT_PRODUCT_ERRORS; i++) {
        double library;
        DT_TRY(measure(dev, errors[i].type, errors[i].k, &errors[i].canonical, &library, err));
    }
    return 0;
}
