/* SPDX-License-Identifier: MIT */
#include "model/masking.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"

struct dt_masking {
    uint8_t *flags;
    uint32_t count, mask;
    uint32_t *ordinary; /* ids that are not special */
    uint32_t ordinary_count;
    uint64_t threshold; /* a word is a target if its 32 random bits are below */
    bool whole_words;
    uint64_t key;
};

static void list_ordinary(struct dt_masking *m)
{
    m->ordinary = dt_alloc(m->count, sizeof *m->ordinary);
    for (uint32_t id = 0; id < m->count; id++)
        if (!(m->flags[id] & DT_ID_SPECIAL) && id != m->mask)
            m->ordinary[m->ordinary_count++] = id;
}

int dt_masking_new(struct dt_masking **result, const struct dt_masking_options *o,
                   struct dt_error *err)
{
    *result = NULL;
    if (!(o->rate > 0 && o->rate < 1))
        return dt_fail(err, DT_EINVALID, "the rate of masking must be between 0 and 1, not %g",
                       o->rate);
    if (o->mask >= o->count)
        return dt_fail(err, DT_EINVALID, "the mask's id %u is beyond the %u of the vocabulary",
                       o->mask, o->count);
    struct dt_masking *m = dt_alloc(1, sizeof *m);
    m->flags = dt_alloc(o->count, 1);
    memcpy(m->flags, o->flags, o->count);
    m->count = o->count;
    m->mask = o->mask;
    m->threshold = (uint64_t)(o->rate * 0x1p32);
    m->whole_words = o->whole_words;
    m->key = dt_random_key(o->seed, 'M', 0);
    list_ordinary(m);
    if (m->ordinary_count == 0) {
        dt_masking_free(m);
        return dt_fail(err, DT_EINVALID,
                       "every token of the vocabulary is special: none can be masked");
    }
    *result = m;
    return 0;
}

void dt_masking_free(struct dt_masking *m)
{
    if (m == NULL)
        return;
    free(m->flags);
    free(m->ordinary);
    free(m);
}

/* Whether an id is never a target. */
static bool is_special(const struct dt_masking *m, uint32_t id)
{
    return id & DT_NOT_PREDICTED || id == m->mask || m->flags[id] & DT_ID_SPECIAL;
}

/* One sequence. */
struct sequence {
    const struct dt_masking *masking;
    uint64_t sample;
    const uint32_t *ids;
    int64_t length;
    int32_t *inputs, *targets;
};

/* The end of the word that begins at from. */
static int64_t end_of_word(const struct sequence *s, int64_t from)
{
    int64_t to = from + 1;
    if (!s->masking->whole_words || is_special(s->masking, s->ids[from]))
        return to;
    while (to < s->length && !is_special(s->masking, s->ids[to]) &&
           s->masking->flags[s->ids[to]] & DT_ID_CONTINUES)
        to++;
    return to;
}

static void mask_token(const struct sequence *s, int64_t place)
{
    const struct dt_masking *m = s->masking;
    struct dt_random random = dt_random(m->key, s->sample, (uint64_t)place);
    double fate = dt_rng_uniform_double((uint64_t)random.word[1] << 32);
    s->targets[place] = (int32_t)s->ids[place];
    if (fate < 0.8)
        s->inputs[place] = (int32_t)m->mask;
    else if (fate < 0.9)
        s->inputs[place] = (int32_t)m->ordinary[(uint64_t)random.word[2] * m->ordinary_count >> 32];
}

static void mask_word(const struct sequence *s, int64_t from, int64_t to)
{
    for (int64_t place = from; place < to; place++)
        mask_token(s, place);
}

static void mask_sequence(const struct sequence *s)
{
    const struct dt_masking *m = s->masking;
    int64_t nearest = -1; /* the word with the smallest random bits */
    uint32_t lowest = UINT32_MAX;
    for (int64_t from = 0, to; from < s->length; from = to) {
        to = end_of_word(s, from);
        if (is_special(m, s->ids[from]))
            continue;
        uint32_t draw = dt_random(m->key, s->sample, (uint64_t)from).word[0];
        if (draw < m->threshold)
            mask_word(s, from, to);
        if (nearest < 0 || draw < lowest) {
            nearest = from;
            lowest = draw;
        }
    }
    if (nearest >= 0 && lowest >= m->threshold)
        mask_word(s, nearest, end_of_word(s, nearest));
}

void dt_batch_mask(struct dt_batch *b, const struct dt_masking *m, const uint32_t *ids,
                   int64_t count, int64_t length, int64_t stride)
{
    assert(count * length <= b->capacity && length <= stride);
    b->count = count;
    b->length = length;
    for (int64_t i = 0; i < count; i++) {
        const struct sequence s = {m,      b->first_sample + (uint64_t)i, ids + i * stride,
                                   length, b->inputs + i * length,        b->targets + i * length};
        for (int64_t t = 0; t < length; t++) {
            uint32_t id = s.ids[t] & ~DT_NOT_PREDICTED;
            assert(id < m->count);
            s.inputs[t] = (int32_t)id;
            s.targets[t] = DT_NO_TARGET;
        }
        mask_sequence(&s);
    }
}
