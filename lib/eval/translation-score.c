/* SPDX-License-Identifier: MIT */
#include "eval/translation-score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/confidence.h"
#include "hash/hash.h"
#include "math/rng.h"

#define BLEU_ORDER  4
#define CHAR_ORDER  6
#define WORD_ORDER  2
#define MOST_ORDERS (CHAR_ORDER + WORD_ORDER)
#define BETA        2

const char *const dt_translation_metric_names[] = {"BLEU", "chrF2", "chrF2++", NULL};

/* --- n-grams ----------------------------------------------------------------------------------*/

/* A multiset of n-grams by their hashes, sorted. */
struct grams {
    uint64_t *hashes;
    size_t count;
};

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All n-grams of items of size bytes each. */
static struct grams grams_of(const void *items, size_t count, size_t size, size_t n)
{
    struct grams g = {NULL, count >= n ? count - n + 1 : 0};
    g.hashes = dt_alloc(g.count + 1, sizeof *g.hashes);
    for (size_t i = 0; i < g.count; i++)
        g.hashes[i] = dt_hash((const char *)items + i * size, n * size);
    if (g.count > 1)
        qsort(g.hashes, g.count, sizeof *g.hashes, compare_hashes);
    return g;
}

/* Multiplicity of the n-gram at index *at; advances *at past it. */
static size_t run_length(const struct grams *g, size_t *at)
{
    size_t from = *at;
    while (*at < g->count && g->hashes[*at] == g->hashes[from])
        ++*at;
    return *at - from;
}

static size_t count_of(const struct grams *g, uint64_t hash)
{
    size_t low = 0, high = g->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (g->hashes[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->count && g->hashes[low] == hash ? run_length(g, &low) : 0;
}

/* Matches of g, clipped to each n-gram's largest count in any one reference. */
static size_t matches(const struct grams *g, const struct grams *sets, int set_count, int stride)
{
    size_t sum = 0;
    for (size_t at = 0; at < g->count;) {
        uint64_t hash = g->hashes[at];
        size_t here = run_length(g, &at), most = 0;
        for (int i = 0; i < set_count; i++) {
            size_t there = count_of(&sets[i * stride], hash);
            most = there > most ? there : most;
        }
        sum += here < most ? here : most;
    }
    return sum;
}

static void release_grams(struct grams *g, int count)
{
    for (int i = 0; i < count; i++)
        free(g[i].hashes);
}

/* --- words ------------------------------------------------------------------------------------*/

struct word_list {
    uint64_t *hashes;
    size_t count, capacity;
};

static void add_word(struct word_list *list, const uint32_t *points, size_t count)
{
    if (count == 0)
        return;
    DT_GROW(list->hashes, list->count, list->capacity);
    list->hashes[list->count++] = dt_hash(points, count * sizeof *points);
}

static bool is_ascii_punctuation(uint32_t c)
{
    return c > ' ' && c < 0x7f && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", (int)c);
}

/* chrF++ splits one punctuation mark off a word: its last character, else its first. */
static void add_stripped(struct word_list *list, const uint32_t *points, size_t count)
{
    size_t cut = 0;
    if (count > 1 && is_ascii_punctuation(points[count - 1]))
        cut = count - 1;
    else if (count > 1 && is_ascii_punctuation(points[0]))
        cut = 1;
    add_word(list, points, cut);
    add_word(list, points + cut, count - cut);
}

typedef void add_function(struct word_list *, const uint32_t *, size_t);

static struct word_list list_words(const struct dt_ids *text, add_function *add)
{
    struct word_list list = {0};
    size_t from = 0;
    for (size_t i = 0; i <= text->count; i++)
        if (i == text->count || dt_translation_words_is_space(text->data[i])) {
            if (i > from)
                add(&list, text->data + from, i - from);
            from = i + 1;
        }
    return list;
}

/* --- BLEU -------------------------------------------------------------------------------------*/

static size_t bleu_grams(enum dt_translation_words_kind kind, const struct dt_ids *sentence,
                         struct grams grams[BLEU_ORDER])
{
    struct dt_ids text = DT_IDS_EMPTY;
    dt_translation_words(kind, sentence, &text);
    struct word_list words = list_words(&text, add_word);
    for (size_t n = 1; n <= BLEU_ORDER; n++)
        grams[n - 1] = grams_of(words.hashes, words.count, sizeof *words.hashes, n);
    free(words.hashes);
    dt_ids_release(&text);
    return words.count;
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

static void bleu_counts(enum dt_translation_words_kind kind, const struct dt_ids *hypothesis,
                        const struct dt_ids *references, int count, double *of)
{
    struct grams own[BLEU_ORDER];
    struct grams *theirs = dt_alloc((size_t)(count * BLEU_ORDER), sizeof *theirs);
    size_t words = bleu_grams(kind, hypothesis, own), nearest = 0;
    for (int r = 0; r < count; r++) {
        size_t length = bleu_grams(kind, &references[r], theirs + r * BLEU_ORDER);
        size_t here = distance(length, words), best = distance(nearest, words);
        if (r == 0 || here < best || (here == best && length < nearest))
            nearest = length;
    }
    of[0] = (double)words;
    of[1] = (double)nearest;
    for (int n = 0; n < BLEU_ORDER; n++) {
        of[2 + n] = (double)matches(&own[n], theirs + n, count, BLEU_ORDER);
        of[2 + BLEU_ORDER + n] = (double)own[n].count;
    }
    release_grams(own, BLEU_ORDER);
    release_grams(theirs, count * BLEU_ORDER);
    free(theirs);
}

/* Exponential smoothing: zero precisions count as 1/2, 1/4, ... of a match. */
static struct dt_translation_result bleu_score(const double *of)
{
    const double *correct = of + 2, *total = of + 2 + BLEU_ORDER;
    struct dt_translation_result r = {.brevity_penalty = 1};
    double logs = 0, smooth = 1;
    if (of[0] < of[1])
        r.brevity_penalty = of[0] > 0 ? exp(1 - of[1] / of[0]) : 0;
    if (correct[0] + correct[1] + correct[2] + correct[3] == 0)
        return r;
    for (int n = 0; n < BLEU_ORDER && total[n] > 0; n++) {
        if (correct[n] == 0)
            smooth *= 2;
        r.precisions[n] = 100 * (correct[n] > 0 ? correct[n] : 1 / smooth) / total[n];
    }
    for (int n = 0; n < BLEU_ORDER; n++)
        logs += log(r.precisions[n]);
    r.score = r.brevity_penalty * exp(logs / BLEU_ORDER);
    return r;
}

/* --- chrF -------------------------------------------------------------------------------------*/

static int orders_of(enum dt_translation_metric_kind kind)
{
    return kind == DT_TRANSLATION_METRIC_CHRF ? CHAR_ORDER : CHAR_ORDER + WORD_ORDER;
}

static void chrf_grams(const struct dt_ids *sentence, int orders, struct grams grams[MOST_ORDERS])
{
    struct dt_ids characters = DT_IDS_EMPTY;
    struct word_list words = list_words(sentence, add_stripped);
    for (size_t i = 0; i < sentence->count; i++)
        if (!dt_translation_words_is_space(sentence->data[i]))
            dt_ids_add(&characters, sentence->data[i]);
    for (int i = 0; i < orders; i++)
        grams[i] = i < CHAR_ORDER ? grams_of(characters.data, characters.count,
                                             sizeof *characters.data, (size_t)i + 1)
                                  : grams_of(words.hashes, words.count, sizeof *words.hashes,
                                             (size_t)(i - CHAR_ORDER) + 1);
    dt_ids_release(&characters);
    free(words.hashes);
}

/* F-score of mean precision and mean recall over the orders that both sides have. */
static double chrf_score(const double *of, int orders)
{
    double precision = 0, recall = 0, effective = 0;
    for (int i = 0; i < orders; i++) {
        const double *n = of + 3 * i;
        if (n[0] == 0 || n[1] == 0)
            continue;
        precision += n[2] / n[0];
        recall += n[2] / n[1];
        effective++;
    }
    if (precision + recall == 0)
        return 0;
    precision /= effective;
    recall /= effective;
    return 100 * (1 + BETA * BETA) * precision * recall / (BETA * BETA * precision + recall);
}

/* Of several references, the one with the best segment score is used. */
static void chrf_counts(int orders, const struct dt_ids *hypothesis,
                        const struct dt_ids *references, int count, double *of)
{
    struct grams own[MOST_ORDERS], theirs[MOST_ORDERS];
    double best = -1;
    chrf_grams(hypothesis, orders, own);
    for (int r = 0; r < count; r++) {
        double here[DT_SEGMENT_COUNTS] = {0};
        chrf_grams(&references[r], orders, theirs);
        for (int i = 0; i < orders; i++) {
            here[3 * i] = theirs[i].count ? (double)own[i].count : 0;
            here[3 * i + 1] = (double)theirs[i].count;
            here[3 * i + 2] = (double)matches(&own[i], &theirs[i], 1, 1);
        }
        release_grams(theirs, orders);
        double score = chrf_score(here, orders);
        if (score > best)
            memcpy(of, here, sizeof here);
        best = score > best ? score : best;
    }
    release_grams(own, orders);
}

/* --- any metric -------------------------------------------------------------------------------*/

void dt_translation_score_counts(const struct dt_translation_metric *metric,
                                 const struct dt_ids *hypothesis, const struct dt_ids *references,
                                 int reference_count, struct dt_segment_counts *counts)
{
    *counts = (struct dt_segment_counts){{0}};
    if (metric->kind == DT_TRANSLATION_METRIC_BLEU)
        bleu_counts(metric->words, hypothesis, references, reference_count, counts->of);
    else
        chrf_counts(orders_of(metric->kind), hypothesis, references, reference_count, counts->of);
}

void dt_segment_counts_add(struct dt_segment_counts *sum, const struct dt_segment_counts *more)
{
    for (int i = 0; i < DT_SEGMENT_COUNTS; i++)
        sum->of[i] += more->of[i];
}

struct dt_translation_result dt_translation_score(const struct dt_translation_metric *metric,
                                                  const struct dt_segment_counts *sum)
{
    if (metric->kind == DT_TRANSLATION_METRIC_BLEU)
        return bleu_score(sum->of);
    return (struct dt_translation_result){.score = chrf_score(sum->of, orders_of(metric->kind))};
}

void dt_translation_score_signature(const struct dt_translation_metric *metric, int reference_count,
                                    struct dt_buffer *text)
{
    dt_buffer_printf(text, "nrefs:%d|case:mixed|", reference_count);
    if (metric->kind == DT_TRANSLATION_METRIC_BLEU)
        dt_buffer_printf(text, "eff:no|tok:%s|smooth:exp",
                         dt_translation_words_names[metric->words]);
    else
        dt_buffer_printf(text, "eff:yes|nc:%d|nw:%d|space:no", CHAR_ORDER,
                         orders_of(metric->kind) - CHAR_ORDER);
    dt_buffer_add_string(text, "|version:2.6.0");
}

/* --- resampling -------------------------------------------------------------------------------*/

static double resampled(const struct dt_translation_metric *metric,
                        const struct dt_segment_counts *counts, const uint32_t *sample,
                        size_t segments)
{
    struct dt_segment_counts sum = {{0}};
    for (size_t i = 0; i < segments; i++)
        dt_segment_counts_add(&sum, &counts[sample[i]]);
    return dt_translation_score(metric, &sum).score;
}

static double whole(const struct dt_translation_metric *metric,
                    const struct dt_segment_counts *counts, size_t segments)
{
    struct dt_segment_counts sum = {{0}};
    for (size_t i = 0; i < segments; i++)
        dt_segment_counts_add(&sum, &counts[i]);
    return dt_translation_score(metric, &sum).score;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct dt_paired_bootstrap dt_paired_bootstrap(const struct dt_translation_metric *metric,
                                               const struct dt_segment_counts *first,
                                               const struct dt_segment_counts *second,
                                               size_t segments, long resamples, uint64_t seed)
{
    struct dt_paired_bootstrap result = {.p = 1};
    uint32_t *sample = dt_alloc(segments, sizeof *sample);
    double *scores = dt_alloc((size_t)resamples, sizeof *scores);
    double *differences = dt_alloc((size_t)resamples, sizeof *differences);
    double real =
        first ? fabs(whole(metric, second, segments) - whole(metric, first, segments)) : 0;
    for (long n = 0; n < resamples; n++) {
        struct dt_rng rng;
        dt_rng_init(&rng, dt_random_key(seed, 'B', (uint64_t)n));
        for (size_t i = 0; i < segments; i++)
            sample[i] = dt_rng_below(&rng, (uint32_t)segments);
        scores[n] = resampled(metric, second, sample, segments);
        if (first)
            differences[n] = fabs(scores[n] - resampled(metric, first, sample, segments));
    }
    if (first) {
        double mean = dt_confidence_mean(differences, (size_t)resamples);
        long beyond = 0;
        for (long n = 0; n < resamples; n++)
            beyond += differences[n] - mean >= real; /* identical systems: always */
        result.p =
            fmax((double)(beyond + 1) / (double)(resamples + 1), dt_confidence_least_p(segments));
    }
    result.mean = dt_confidence_mean(scores, (size_t)resamples);
    qsort(scores, (size_t)resamples, sizeof *scores, compare_reals);
    result.interval = (scores[resamples - resamples / 40 - 1] - scores[resamples / 40]) / 2;
    free(sample);
    free(scores);
    free(differences);
    return result;
}
