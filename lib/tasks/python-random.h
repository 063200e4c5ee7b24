/* SPDX-License-Identifier: MIT */
/*
 * The random numbers of Python's random.Random(seed): the same few-shot examples and resamples as
 * those of programs in Python. Source: Matsumoto and Nishimura, "Mersenne Twister", 1998
 * (MT19937), and the documentation of CPython's module random.
 *
 *     struct dt_python_random r;
 *     dt_python_random_seed(&r, 1234);
 *     dt_python_random_sample(&r, documents, 5, chosen);
 */
#ifndef DT_TASKS_PYTHON_RANDOM_H
#define DT_TASKS_PYTHON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define DT_PYTHON_RANDOM_STATE 624

struct dt_python_random {
    uint32_t state[DT_PYTHON_RANDOM_STATE];
    int used; /* words of state already used */
};

void dt_python_random_seed(struct dt_python_random *r, uint64_t seed);
/* random(): [0, 1) with 53 bits. */
double dt_python_random_real(struct dt_python_random *r);
/* sample(range(n), k): k <= n different numbers. */
void dt_python_random_sample(struct dt_python_random *r, size_t n, size_t k, size_t *chosen);
/* choices(range(n), k=n): n numbers, with replacement. */
void dt_python_random_choices(struct dt_python_random *r, size_t n, size_t *chosen);

#endif
