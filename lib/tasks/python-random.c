/* SPDX-License-Identifier: MIT */
#include "tasks/python-random.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

enum { STATE = DT_PYTHON_RANDOM_STATE, SHIFT = 397 };

static void seed_by_number(struct dt_python_random *r, uint32_t seed)
{
    r->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++)
        r->state[i] = 1812433253u * (r->state[i - 1] ^ (r->state[i - 1] >> 30)) + i;
    r->used = STATE;
}

/* init_by_array(), with the words of the seed, of which there is at least one. */
void dt_python_random_seed(struct dt_python_random *r, uint64_t seed)
{
    uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, *s = r->state;
    uint32_t count = words[1] ? 2 : 1, i = 1, j = 0;
    seed_by_number(r, 19650218u);
    for (int k = 0; k < STATE; k++) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + words[j] + j;
        j = (j + 1) % count;
        if (++i == STATE) {
            s[0] = s[STATE - 1];
            i = 1;
        }
    }
    for (int k = 1; k < STATE; k++) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == STATE) {
            s[0] = s[STATE - 1];
            i = 1;
        }
    }
    s[0] = 0x80000000u;
}

static void renew(uint32_t *s)
{
    for (int i = 0; i < STATE; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % STATE] & 0x7fffffffu);
        s[i] = s[(i + SHIFT) % STATE] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
}

static uint32_t next(struct dt_python_random *r)
{
    if (r->used == STATE) {
        renew(r->state);
        r->used = 0;
    }
    uint32_t y = r->state[r->used++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double dt_python_random_real(struct dt_python_random *r)
{
    uint32_t a = next(r) >> 5, b = next(r) >> 6;
    return ((double)a * 67108864.0 + (double)b) * (1.0 / 9007199254740992.0);
}

/* Uniform in 0 .. n-1, n above 0: as many random bits as n has, until they are below n. */
static size_t below(struct dt_python_random *r, size_t n)
{
    int bits = 64 - __builtin_clzll((unsigned long long)n);
    for (;;) {
        uint64_t value = bits <= 32 ? next(r) >> (32 - bits) : next(r);
        if (bits > 32)
            value |= (uint64_t)(next(r) >> (64 - bits)) << 32;
        if (value < n)
            return (size_t)value;
    }
}

/* Above this size CPython remembers what was chosen; below it takes numbers out of a pool:
 * 21, and above 5 the power of 4 that 3 k needs. */
static size_t pool_size(size_t k)
{
    size_t power = 1;
    while (power < 3 * k)
        power *= 4;
    return k > 5 ? 21 + power : 21;
}

void dt_python_random_sample(struct dt_python_random *r, size_t n, size_t k, size_t *chosen)
{
    if (n > pool_size(k)) {
        for (size_t i = 0; i < k; i++) {
            bool again = true;
            while (again) {
                chosen[i] = below(r, n);
                again = false;
                for (size_t j = 0; j < i; j++)
                    again = again || chosen[j] == chosen[i];
            }
        }
        return;
    }
    size_t *pool = dt_alloc(n + 1, sizeof *pool);
    for (size_t i = 0; i < n; i++)
        pool[i] = i;
    for (size_t i = 0; i < k; i++) {
        size_t j = below(r, n - i);
        chosen[i] = pool[j];
        pool[j] = pool[n - i - 1];
    }
    free(pool);
}

void dt_python_random_choices(struct dt_python_random *r, size_t n, size_t *chosen)
{
    for (size_t i = 0; i < n; i++)
        chosen[i] = (size_t)(dt_python_random_real(r) * (double)n);
}
