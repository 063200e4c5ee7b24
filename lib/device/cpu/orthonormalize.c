/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>

#include "device/cpu/cpu.h"

#define ROUNDING 1e-30 /* squared norm below which a row is rounding error alone */

#define WIDE (DT_CPU_VECTOR / 2) /* doubles of a register */

typedef double wide __attribute__((vector_size(8 * WIDE)));

static inline wide widen(const float *x)
{
#if defined(__AVX512F__) /* GCC 12 converts halves */
    return (wide)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#else
    typedef float narrow __attribute__((vector_size(4 * WIDE)));
    narrow v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, wide);
#endif
}

/* In 16 lanes, as sums inside a row of dt-arithmetic(7), but in fp64, where products are exact. */
static double dot(const float *x, const float *y, int64_t n)
{
    wide sums[DT_CPU_LANES / WIDE] = {0};
    double lanes[DT_CPU_LANES];
    int64_t j = 0;
    for (; j + DT_CPU_LANES <= n; j += DT_CPU_LANES)
        DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANES / WIDE; i++)
        sums[i] += widen(x + j + i * WIDE) * widen(y + j + i * WIDE);
    memcpy(lanes, sums, sizeof lanes);
    for (int i = 0; j + i < n; i++)
        lanes[i] += (double)x[j + i] * (double)y[j + i];
    for (int half = DT_CPU_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* x -= part * y */
static void subtract_scaled(float *restrict x, float part, const float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = DT_FMA(-part, y[i], x[i]);
}

static void normalize(float *x, int64_t n)
{
    double squares = dot(x, x, n);
    float scale = squares > ROUNDING ? (float)(1 / sqrt(squares)) : 0;
    for (int64_t i = 0; i < n; i++)
        x[i] *= scale;
}

/* Modified Gram-Schmidt: subtracts each finished row's projection from all later rows. */
void dt_cpu_orthonormalize(struct dt_device *dev, struct dt_tensor *x)
{
    int64_t n = x->columns;
    assert(x->dtype == DT_DTYPE_F32 && x->rows <= n);
    for (int64_t row = 0; row < x->rows; row++) {
        float *unit = dt_cpu_row(x, row);
        normalize(unit, n);
        bool large = (x->rows - row) * n > DT_CPU_SMALL_WORK;
#pragma omp parallel for num_threads(dev->threads) schedule(static) if (large)
        for (int64_t next = row + 1; next < x->rows; next++) {
            float *own = dt_cpu_row(x, next);
            subtract_scaled(own, (float)dot(unit, own, n), unit, n);
        }
    }
}
