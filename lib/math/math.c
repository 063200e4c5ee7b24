/* SPDX-License-Identifier: MIT */
#include "math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A number as the sum of two doubles, of which low is at most half a unit of high's last place. */
struct pair {
    double high, low;
};

/* ln 2 = LN2_HIGH + LN2_LOW and pi / 2 = HALF_PI_0 + HALF_PI_1 + HALF_PI_2: the first terms have so
 * few bits that their products below are exact. */
#define LN2_HIGH  0x1.62e42fefa2p-1
#define LN2_LOW   0x1.9ef35793c7673p-41
#define HALF_PI_0 0x1.921fb54p+0
#define HALF_PI_1 0x1.10b46118p-30
#define HALF_PI_2 0x1.313198a2e037p-61

static double horner(const double *coefficients, int count, double x)
{
    double sum = 0;
    while (count-- > 0)
        sum = sum * x + coefficients[count];
    return sum;
}

/* The nearest integer, of numbers below 2^51. */
static double nearest(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* --- exact operations (Dekker 1971, Knuth 1969) ----------------------------------------------- */

static struct pair add_exactly(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (struct pair){sum, (a - (sum - part)) + (b - part)};
}

static struct pair halves_of(double x)
{
    double big = 0x1.0000002p27 * x, high = big - (big - x);
    return (struct pair){high, x - high};
}

static struct pair multiply_exactly(double a, double b)
{
    struct pair x = halves_of(a), y = halves_of(b);
    double product = a * b;
    double low = ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low;
    return (struct pair){product, low};
}

/* --- exponential and logarithm ---------------------------------------------------------------- */

/* e^(x + low) = 2^k e^r with r from -ln 2 / 2 to ln 2 / 2. */
static double exp_of(double x, double low)
{
    static const double taylor[] = {1 / 2.0,        1 / 6.0,         1 / 24.0,
                                    1 / 120.0,      1 / 720.0,       1 / 5040.0,
                                    1 / 40320.0,    1 / 362880.0,    1 / 3628800.0,
                                    1 / 39916800.0, 1 / 479001600.0, 1 / 6227020800.0};
    if (isnan(x))
        return NAN;
    if (x > 710)
        return INFINITY;
    if (x < -746)
        return 0;
    double k = nearest(x * 0x1.71547652b82fep+0);
    double high = x - k * LN2_HIGH, rest = k * LN2_LOW - low, r = high - rest;
    rest = (high - r) - rest;
    double series = horner(taylor, sizeof taylor / sizeof *taylor, r);
    double power = 1 + (r + (r * r * series + rest * (1 + r)));
    int half = (int)k / 2;
    return power * dt_math_power_of_two(half) * dt_math_power_of_two((int)k - half);
}

double dt_math_exp(double x)
{
    return exp_of(x, 0);
}

/* x = 2^exponent m, where m is from sqrt(1/2) to sqrt(2). Returns m. x is positive and finite. */
static double split(double x, double *exponent)
{
    uint64_t bits;
    double m = x < 0x1p-1022 ? x * 0x1p54 : x;
    memcpy(&bits, &m, sizeof bits);
    int biased = (int)(bits >> 52);
    bits = (bits & 0xFFFFFFFFFFFFF) | (uint64_t)1023 << 52;
    memcpy(&m, &bits, sizeof m);
    bool above = m > 0x1.6a09e667f3bcdp+0;
    *exponent = biased - 1023 - (x < 0x1p-1022 ? 54 : 0) + above;
    return above ? m / 2 : m;
}

/* ln m = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ... with s = (m - 1) / (m + 1). */
static struct pair log_of(double x)
{
    static const double series[] = {2 / 3.0,  2 / 5.0,  2 / 7.0,  2 / 9.0,  2 / 11.0, 2 / 13.0,
                                    2 / 15.0, 2 / 17.0, 2 / 19.0, 2 / 21.0, 2 / 23.0};
    double exponent, f = split(x, &exponent) - 1;
    struct pair below = add_exactly(2, f);
    double s = f / below.high, z = s * s;
    struct pair back = multiply_exactly(s, below.high);
    double s_low = ((f - back.high) - back.low - s * below.low) / below.high;
    double tail = 2 * s_low + s * (z * horner(series, sizeof series / sizeof *series, z));
    struct pair sum = add_exactly(exponent * LN2_HIGH, 2 * s);
    return add_exactly(sum.high, sum.low + (exponent * LN2_LOW + tail));
}

double dt_math_log(double x)
{
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    return isinf(x) ? INFINITY : log_of(x).high;
}

double dt_math_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (isnan(y) || !(x >= 0))
        return NAN;
    if (x == 0 || isinf(x))
        return (x == 0) == (y < 0) ? INFINITY : 0;
    struct pair logarithm = log_of(x);
    if (fabs(y * logarithm.high) > 800)
        return exp_of(y * logarithm.high, 0);
    struct pair product = multiply_exactly(y, logarithm.high);
    return exp_of(product.high, product.low + y * logarithm.low);
}

/* --- sine and cosine -------------------------------------------------------------------------- */

/* x = n pi / 2 + r + low with r from -pi / 4 to pi / 4. Returns n modulo 4. */
static int reduce(double x, struct pair *r)
{
    double n = nearest(x * 0x1.45f306dc9c883p-1);
    struct pair high = add_exactly(x - n * HALF_PI_0, -(n * HALF_PI_1));
    *r = add_exactly(high.high, high.low - n * HALF_PI_2);
    return (int)((int64_t)n & 3);
}

static double sine_of(struct pair r)
{
    static const double taylor[] = {
        -1 / 6.0,        1 / 120.0,        -1 / 5040.0,          1 / 362880.0,
        -1 / 39916800.0, 1 / 6227020800.0, -1 / 1307674368000.0, 1 / 355687428096000.0};
    double z = r.high * r.high, series = horner(taylor, sizeof taylor / sizeof *taylor, z);
    return r.high + (r.high * z * series + r.low * (1 - 0.5 * z));
}

static double cosine_of(struct pair r)
{
    static const double taylor[] = {
        1 / 24.0,        -1 / 720.0,         1 / 40320.0,          -1 / 3628800.0,
        1 / 479001600.0, -1 / 87178291200.0, 1 / 20922789888000.0, -1 / 6402373705728000.0};
    double z = r.high * r.high, series = horner(taylor, sizeof taylor / sizeof *taylor, z);
    double most = 1 - 0.5 * z;
    return most + (((1 - most) - 0.5 * z) + (z * z * series - r.high * r.low));
}

/* The sine of x + quarters * pi / 2. */
static double sine_from(double x, int quarters)
{
    struct pair r;
    if (!(fabs(x) <= 0x1p23))
        return NAN;
    quarters += reduce(x, &r);
    double size = quarters & 1 ? cosine_of(r) : sine_of(r);
    return quarters & 2 ? -size : size;
}

double dt_math_sin(double x)
{
    return sine_from(x, 0);
}

double dt_math_cos(double x)
{
    return sine_from(x, 1);
}
