/* SPDX-License-Identifier: MIT */
#include "bench/decode-bench.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "math/rng.h"
#include "model/decode.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bytes of weights read by a step: all but embedding tables that are not the head. */
static double weight_bytes(const struct dt_model *m)
{
    double elements = 0;
    for (int i = 0; i < m->table.count; i++) {
        enum dt_role role = m->table.params[i].role;
        bool head = role == DT_ROLE_TOKEN_EMBEDDING && m->config.tie_word_embeddings;
        if (head || (role != DT_ROLE_TOKEN_EMBEDDING && role != DT_ROLE_POSITION_EMBEDDING))
            elements += (double)m->table.params[i].count;
    }
    return elements * (double)dt_dtype_size(m->compute);
}

/* length: tokens in the cache, of which a layer with a window reads the last ones. */
static double cache_bytes(const struct dt_model *m, int sequences, double length)
{
    double read = 0;
    for (long layer = 0; layer < m->config.num_layers; layer++) {
        double window = (double)dt_model_window(&m->config, layer);
        read += window > 0 && window < length ? window : length;
    }
    return 2.0 * read * sequences * (double)dt_model_kv_width(&m->config) *
           (double)dt_dtype_size(m->compute);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return times[count / 2];
}

static double time_prefill(struct dt_decoder *d, const uint32_t *ids, int64_t count, float *logits,
                           double *times, int runs)
{
    for (int i = 0; i < runs; i++) {
        dt_decoder_reset(d, 0);
        double start = dt_clock_now();
        dt_decoder_feed(d, 0, ids, count, logits);
        times[i] = dt_clock_now() - start;
    }
    dt_decoder_reset(d, 0);
    return median(times, runs);
}

static int64_t prompt_of(const struct dt_model *m)
{
    int64_t half = (m->config.max_seq_len + 1) / 2;
    return half < DT_DECODE_PROMPT ? half : DT_DECODE_PROMPT;
}

int dt_decode_bench(struct dt_model *m, int sequences, int64_t past, int steps,
                    struct dt_decode_speed *speed, struct dt_error *err)
{
    struct dt_decoder *d;
    struct dt_rng rng;
    int64_t prompt = prompt_of(m), most = past + steps > prompt ? past + steps : prompt;
    DT_TRY(dt_decoder_new(&d, m, sequences, most, err));
    size_t room = (size_t)(most > sequences ? most : sequences);
    uint32_t *ids = dt_alloc(room, sizeof *ids);
    int64_t *slots = dt_alloc((size_t)sequences, sizeof *slots);
    float *logits = dt_alloc((size_t)(sequences * m->config.vocab_size), sizeof *logits);
    double *times = dt_alloc((size_t)steps, sizeof *times);
    dt_rng_init(&rng, 1);
    for (size_t i = 0; i < room; i++)
        ids[i] = dt_rng_below(&rng, (uint32_t)m->config.vocab_size);
    double prefill_s = time_prefill(d, ids, prompt, logits, times, steps < 3 ? steps : 3);
    for (int i = 0; i < sequences; i++) {
        slots[i] = i;
        dt_decoder_feed(d, i, ids, past, logits);
    }
    for (int i = 0; i < steps; i++) {
        double start = dt_clock_now();
        dt_decoder_step(d, slots, ids, sequences, logits);
        times[i] = dt_clock_now() - start;
    }
    *speed = (struct dt_decode_speed){
        .step_s = median(times, steps),
        .least_s = times[0],
        .prefill_s = prefill_s,
        .prompt = prompt,
        .bytes = weight_bytes(m) + cache_bytes(m, sequences, (double)past + 0.5 * (steps + 1))};
    free(ids), free(slots), free(logits), free(times);
    dt_decoder_free(d);
    return 0;
}
