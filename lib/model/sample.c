/* SPDX-License-Identifier: MIT */
#include "model/sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"

struct candidate {
    uint32_t id;
    float logit;
    double weight; /* exp((logit - largest) / temperature) */
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

/* The first candidates whose weights reach the share top_p of all of them. */
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

uint32_t dt_sampler_choose(struct dt_sampler *s, const float *logits, double uniform)
{
    uint32_t best = most_probable(logits, s->vocab_size), count = s->vocab_size;
    struct candidate *c = s->candidates;
    if (s->how.temperature == 0)
        return best;
    for (uint32_t i = 0; i < count; i++)
        c[i] = (struct candidate){
            i, logits[i], exp(((double)logits[i] - (double)logits[best]) / s->how.temperature)};
    bool all = (s->how.top_k == 0 || s->how.top_k >= (long)count) && s->how.top_p >= 1;
    if (!all) {
        qsort(c, count, sizeof *c, more_probable_first);
        if (s->how.top_k > 0 && s->how.top_k < (long)count)
            count = (uint32_t)s->how.top_k;
        count = nucleus(c, count, total_weight(c, count), s->how.top_p);
    }
    return draw(c, count, uniform);
}
