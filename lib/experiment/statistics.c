/* SPDX-License-Identifier: MIT */
#include "experiment/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define MOST_EXACT 100

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double quantile(const double *sorted, size_t count, double part)
{
    double place = part * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct dt_summary dt_summary_of(double *values, size_t count)
{
    if (count == 0)
        return (struct dt_summary){0, NAN, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values, compare_doubles);
    return (struct dt_summary){.count = count,
                               .median = quantile(values, count, 0.5),
                               .low = quantile(values, count, 0.25),
                               .high = quantile(values, count, 0.75),
                               .least = values[0],
                               .most = values[count - 1]};
}

double dt_summary_spread(const struct dt_summary *s)
{
    return s->median != 0 ? fabs((s->high - s->low) / 2 / s->median) : 0;
}

struct ranked {
    double value;
    size_t twice; /* mid-rank (mean rank of ties), times 2 */
    bool second;  /* of the second group; of a difference above 0 */
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Assigns mid-ranks from 1. Returns the sum of t^3 - t over ties. */
static double rank(struct ranked *items, size_t count)
{
    double ties = 0;
    qsort(items, count, sizeof *items, compare_ranked);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && items[end].value == items[i].value; end++)
            ;
        double t = (double)(end - i);
        ties += t * t * t - t;
        for (size_t j = i; j < end; j++)
            items[j].twice = i + 1 + end;
    }
    return ties;
}

/* Two-sided p: the fraction of the distribution at least as far from its center as the observed
 * sum. */
static double two_sided(const double *ways, size_t most, double middle, size_t seen)
{
    double all = 0, far = 0, distance = fabs((double)seen - middle);
    for (size_t s = 0; s <= most; s++) {
        all += ways[s];
        if (fabs((double)s - middle) >= distance - 1e-9)
            far += ways[s];
    }
    return far / all;
}

static double normal_two_sided(double distance, double variance)
{
    return variance > 0 ? erfc(fmax(distance, 0) / sqrt(2 * variance)) : 1;
}

/* Number of subsets of size chosen with each sum of doubled ranks. */
static double exact_rank_sum(const struct ranked *items, size_t count, size_t chosen, size_t seen)
{
    size_t most = count * (count + 1), width = most + 1;
    double *ways = dt_alloc((chosen + 1) * width, sizeof *ways);
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i < chosen ? i + 1 : chosen; k > 0; k--)
            for (size_t s = most; s >= items[i].twice; s--)
                ways[k * width + s] += ways[(k - 1) * width + s - items[i].twice];
    double middle = (double)chosen * (double)(count + 1);
    double p = two_sided(ways + chosen * width, most, middle, seen);
    free(ways);
    return p;
}

double dt_statistics_rank_sum_test(const double *a, size_t a_count, const double *b, size_t b_count)
{
    size_t count = a_count + b_count, seen = 0;
    if (a_count == 0 || b_count == 0)
        return 1;
    struct ranked *items = dt_alloc(count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct ranked){i < a_count ? a[i] : b[i - a_count], 0, i >= a_count};
    double ties = rank(items, count), p, n = (double)a_count, m = (double)b_count, all = n + m;
    for (size_t i = 0; i < count; i++)
        seen += items[i].second ? items[i].twice : 0;
    if (count <= MOST_EXACT)
        p = exact_rank_sum(items, count, b_count, seen);
    else
        p = normal_two_sided(fabs((double)seen / 2 - m * (all + 1) / 2) - 0.5,
                             n * m / 12 * (all + 1 - ties / (all * (all - 1))));
    free(items);
    return p;
}

static double exact_signed_rank(const struct ranked *items, size_t count, size_t seen)
{
    size_t most = count * (count + 1);
    double *ways = dt_alloc(most + 1, sizeof *ways);
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t s = most; s >= items[i].twice; s--)
            ways[s] += ways[s - items[i].twice];
    double p = two_sided(ways, most, (double)most / 2, seen);
    free(ways);
    return p;
}

/* Ranks the differences that are not 0; returns their number. */
static size_t rank_pairs(const double *a, const double *b, size_t count, struct ranked *items,
                         size_t *twice_above, double *ties)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i])
            items[used++] = (struct ranked){fabs(b[i] - a[i]), 0, b[i] > a[i]};
    *ties = rank(items, used);
    *twice_above = 0;
    for (size_t i = 0; i < used; i++)
        *twice_above += items[i].second ? items[i].twice : 0;
    return used;
}

double dt_statistics_signed_rank_test(const double *a, const double *b, size_t count)
{
    struct ranked *items = dt_alloc(count + 1, sizeof *items);
    size_t seen;
    double ties, p = 1;
    size_t used = rank_pairs(a, b, count, items, &seen, &ties);
    double n = (double)used;
    if (used > MOST_EXACT)
        p = normal_two_sided(fabs((double)seen / 2 - n * (n + 1) / 4) - 0.5,
                             n * (n + 1) * (2 * n + 1) / 24 - ties / 48);
    else if (used > 0)
        p = exact_signed_rank(items, used, seen);
    free(items);
    return p;
}

double dt_statistics_signed_rank_sum(const double *a, const double *b, size_t count)
{
    struct ranked *items = dt_alloc(count + 1, sizeof *items);
    size_t seen;
    double ties, n = (double)rank_pairs(a, b, count, items, &seen, &ties);
    free(items);
    return (double)seen - n * (n + 1) / 2;
}

double dt_statistics_signed_rank_least(size_t count)
{
    return fmin(1, ldexp(2, -(int)(count < MOST_EXACT ? count : MOST_EXACT)));
}

size_t dt_statistics_least_pairs(double chance)
{
    size_t pairs = 1;
    while (dt_statistics_signed_rank_least(pairs) >= chance)
        pairs++;
    return pairs;
}

double dt_statistics_shift_ratio(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double *quotients = dt_alloc(a_count * b_count + 1, sizeof *quotients);
    bool positive = true;
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++) {
            positive = positive && a[i] > 0 && b[j] > 0;
            quotients[i * b_count + j] = b[j] / a[i];
        }
    double ratio = positive ? dt_summary_of(quotients, a_count * b_count).median : NAN;
    free(quotients);
    return ratio;
}

double dt_statistics_superiority(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double above = 0;
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = 0; j < b_count; j++)
            above += b[j] > a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
    return above / ((double)a_count * (double)b_count);
}

double dt_statistics_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double deviation(const double *values, size_t count)
{
    double mean = dt_statistics_mean(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)(count - 1));
}

/* Quantile 0.975 of Student's t. */
static double student(size_t freedom)
{
    static const double few[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                 2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                 2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639};
    const double z = 1.959964, v = (double)freedom;
    if (freedom <= sizeof few / sizeof *few)
        return few[freedom - 1];
    return z + (z * z * z + z) / (4 * v) + /* Abramowitz and Stegun 26.7.5 */
           (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / (96 * v * v);
}

double dt_statistics_margin(const double *values, size_t count)
{
    return count < 2 ? NAN : student(count - 1) * deviation(values, count) / sqrt((double)count);
}

/* The normal deviation that is exceeded, on either side, with this probability. */
static double quantile_of_chance(double chance)
{
    double low = 0, high = 40;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(erfc(middle / sqrt(2)) > chance ? &low : &high) = middle;
    }
    return low;
}

/* Whether all pairs must have one sign for a p below chance, and have it too rarely. */
static bool rarely_agree(double pairs, double effect, double chance)
{
    double agree = 1;
    for (double i = 0; i < pairs; i++)
        agree *= erfc(-fabs(effect) / sqrt(2)) / 2;
    return 2 * dt_statistics_signed_rank_least((size_t)pairs) >= chance && agree < 0.8;
}

double dt_statistics_needed(const double *differences, size_t count, double chance)
{
    const double power = 0.841621, efficiency = 0.954930; /* 3 / pi */
    const double z = quantile_of_chance(chance);
    double mean = dt_statistics_mean(differences, count);
    if (count < 2 || !(fabs(mean) > 0))
        return 0;
    double effect = mean / deviation(differences, count);
    double pairs = (z + power) * (z + power) / (effect * effect) + z * z / 2;
    pairs = fmax(ceil(pairs / efficiency), (double)dt_statistics_least_pairs(chance));
    pairs = fmax(pairs, (double)count + 1);
    while (pairs < MOST_EXACT && rarely_agree(pairs, effect, chance))
        pairs++;
    return pairs;
}

void dt_statistics_adjust_holm(double *p, size_t count)
{
    struct ranked *items = dt_alloc(count + 1, sizeof *items);
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct ranked){p[i], .twice = i}; /* its index */
    qsort(items, count, sizeof *items, compare_ranked);
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fmin(1, items[i].value * (double)(count - i)));
        p[items[i].twice] = largest;
    }
    free(items);
}
