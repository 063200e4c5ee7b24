/* SPDX-License-Identifier: MIT */
#include "model/sampling.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "math/math.h"

struct candidate {
    uint32_t id;
    float logit;
    double weight; /* dt_math_exp((logit - largest) / temperature) */
};

struct dt_sampler {
    struct dt_sampling how;
    uint32_t vocab_size;
    struct candidate *candidates;
};

struct dt_sampler *dt_sampler_new(const struct dt_sampling *how, uint32_t vocab_size)
{
    struct dt_sampler *s = dt_alloc(1, sizeof *s);
    s->how = *how;
    s->vocab_size = vocab_size;
    s->candidates = dt_alloc(vocab_size, sizeof *s->candidates);
    return s;
}

void dt_sampler_free(struct dt_sampler *s)
{
    if (s == NULL)
        return;
    free(s->candidates);
    free(s);
}

static uint32_t most_probable(const float *logits, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static int more_probable_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Keeps the first candidates whose probabilities sum to top_p. */
static uint32_t nucleus(const struct candidate *c, uint32_t count, double total, double top_p)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += c[i].weight;
        if (sum >= top_p * total)
            return i + 1;
    }
    return count;
}

static double total_weight(const struct candidate *c, uint32_t count)
{
    double total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += c[i].weight;
    return total;
}

static uint32_t draw(const struct candidate *c, uint32_t count, double uniform)
{
    double threshold = uniform * total_weight(c, count);
    for (uint32_t i = 0; i + 1 < count; i++) {
        threshold -= c[i].weight;
        if (threshold < 0)
            return c[i].id;
    }
    return c[count - 1].id;
}

/* Keeps the k first of the candidates, in any order: a heap whose root is the last
 * of those kept so far. */
static void sift_down(struct candidate *heap, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && more_probable_first(&heap[child], &heap[child + 1]) < 0)
            child++;
        if (more_probable_first(&heap[at], &heap[child]) >= 0)
            return;
        struct candidate swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void keep_first(struct candidate *c, uint32_t count, uint32_t k)
{
    for (uint32_t i = k / 2; i-- > 0;)
        sift_down(c, k, i);
    for (uint32_t i = k; i < count; i++)
        if (more_probable_first(&c[i], &c[0]) < 0) {
            c[0] = c[i];
            sift_down(c, k, 0);
        }
}

/* Keeps candidates of at least a weight, in order. */
static uint32_t keep_heavy(struct candidate *c, uint32_t count, double least)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (c[i].weight >= least)
            c[kept++] = c[i];
    return kept;
}

/* The candidates after top-k, min-p and top-p, the most probable first. */
static uint32_t select_candidates(const struct dt_sampling *how, struct candidate *c,
                                  uint32_t count)
{
    if (how->top_k > 0 && how->top_k < (long)count) {
        keep_first(c, count, (uint32_t)how->top_k);
        count = (uint32_t)how->top_k;
    }
    double total = total_weight(c, count);
    if (how->top_p < 1) /* lighter ones cannot sum to the rest */
        count = keep_heavy(c, count, (1 - how->top_p) * total / (2.0 * count));
    qsort(c, count, sizeof *c, more_probable_first);
    if (how->top_p < 1)
        count = nucleus(c, count, total, how->top_p);
    return keep_heavy(c, count, how->min_p);
}

uint32_t dt_sampler_choose(struct dt_sampler *s, const float *logits, double uniform)
{
    uint32_t best = most_probable(logits, s->vocab_size), count = s->vocab_size;
    struct candidate *c = s->candidates;
    if (s->how.temperature == 0)
        return best;
    for (uint32_t i = 0; i < count; i++)
        c[i] = (struct candidate){
            i, logits[i],
            dt_math_exp(((double)logits[i] - (double)logits[best]) / s->how.temperature)};
    bool all = (s->how.top_k == 0 || s->how.top_k >= (long)count) && s->how.top_p >= 1;
    if (!all || s->how.min_p > 0)
        count = select_candidates(&s->how, c, count);
    return draw(c, count, uniform);
}

void dt_sampling_penalize_repetition(float *logits, bool *seen, const uint32_t *ids, size_t count,
                                     double penalty)
{
    float factor = (float)penalty;
    for (size_t i = 0; i < count; i++) {
        if (!seen[ids[i]])
            logits[ids[i]] = logits[ids[i]] > 0 ? logits[ids[i]] / factor : logits[ids[i]] * factor;
        seen[ids[i]] = true;
    }
}
