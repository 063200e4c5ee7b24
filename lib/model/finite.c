/* SPDX-License-Identifier: MIT */
#include "model/finite.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef uint32_t lanes __attribute__((vector_size(16)));
#define LANES 4
#define SIGN  0x80000000u

/* Bits of the smallest magnitude that rounds to infinity in a type, to nearest even; those
 * of all larger magnitudes, infinity and NaN are larger. */
static const uint32_t limits[] = {[DT_DTYPE_F32] = 0x7f800000,
                                  [DT_DTYPE_BF16] = 0x7f7f8000,
                                  [DT_DTYPE_F16] = 0x477ff000 /* 65520 */};

static const char *const names[] = {
    [DT_DTYPE_F32] = "fp32", [DT_DTYPE_BF16] = "bf16", [DT_DTYPE_F16] = "fp16"};

static lanes load(const float *x)
{
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Without a branch or a comparison, so that it keeps up with the copying: the sum has the
 * highest bit if the magnitude is limit or more. n: a multiple of 4 LANES. */
static bool all_finite(const float *x, int64_t n, uint32_t limit)
{
    const uint32_t rest = SIGN - limit;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = 0; i < n; i += 4 * LANES) {
        a |= (load(x + i) & ~SIGN) + rest;
        b |= (load(x + i + LANES) & ~SIGN) + rest;
        c |= (load(x + i + 2 * LANES) & ~SIGN) + rest;
        d |= (load(x + i + 3 * LANES) & ~SIGN) + rest;
    }
    a |= b | c | d;
    return ((a[0] | a[1] | a[2] | a[3]) & SIGN) == 0;
}

int64_t dt_finite_first_bad(const float *x, int64_t n, enum dt_dtype type)
{
    int64_t i = 0;
    while (n - i >= DT_FINITE_BLOCK && all_finite(x + i, DT_FINITE_BLOCK, limits[type]))
        i += DT_FINITE_BLOCK;
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        if ((bits & ~SIGN) >= limits[type])
            return i;
    }
    return n;
}

const char *dt_finite_name(double x)
{
    return isnan(x) ? "NaN" : x > 0 ? "Inf" : "-Inf";
}

int dt_finite_check_weights(const float *x, int64_t n, enum dt_dtype type, const char *path,
                            const char *tensor, int64_t first, struct dt_error *err)
{
    int64_t i = dt_finite_first_bad(x, n, type);
    if (i == n)
        return 0;
    const char *others = type == DT_DTYPE_F16 ? "bf16 or " : "";
    if (isfinite(x[i]))
        return dt_fail(err, DT_EFORMAT,
                       "%s: tensor '%s': element %" PRId64 " is %g, which overflows %s: compute in "
                       "%sfp32, or export with --type %sf32",
                       path, tensor, first + i, (double)x[i], names[type], others, others);
    return dt_fail(err, DT_EFORMAT,
                   "%s: tensor '%s': element %" PRId64 " is %s, and weights must be finite", path,
                   tensor, first + i, dt_finite_name((double)x[i]));
}
