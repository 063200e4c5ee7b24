/* SPDX-License-Identifier: MIT */
#include "vocab/learn-unigram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "token/tokenizer.h"
#include "unicode/utf8.h"
#include "vocab/unigram-seeds.h"

#define LONGEST_WORD 128 /* bytes */
#define SEEDS        1000000
#define SHRINK       0.75 /* of the pieces that a round keeps */
#define SURPLUS      1.1  /* EM ends at this multiple of the size */
#define ROUNDS       2    /* of EM before each pruning */
#define LEAST_COUNT  0.5  /* pieces with a lower expectation are dropped */

/* Probabilities of long words underflow. All segmentations of a word have the same bytes, so each
 * piece is multiplied by exp(BYTE_BONUS) for each of its bytes. */
#define BYTE_BONUS 3.0

struct trainer {
    const struct dt_word_table *words;
    struct dt_trie_piece *pieces; /* by id */
    double *scores, *scaled;      /* scaled: exp(score + BYTE_BONUS * bytes) */
    uint32_t count;
    struct dt_piece_trie trie;
    double *expected; /* [count]: of the E-step, and counts of best segmentations */
    double unknown_score;
    double likelihood;
};

/* A node of a word's lattice. */
struct node {
    double forward, backward; /* scaled */
    double best;              /* sum of scores */
    uint32_t start, id;       /* of the best last piece */
};

static void release(struct trainer *t)
{
    dt_piece_trie_release(&t->trie);
    free(t->pieces);
    free(t->scores);
    free(t->scaled);
    free(t->expected);
}

/* Replaces the pieces. Takes ownership. */
static void set_pieces(struct trainer *t, struct dt_trie_piece *pieces, double *scores,
                       uint32_t count)
{
    const struct dt_word_table *words = t->words;
    struct dt_trie_piece *sorted = dt_alloc(count, sizeof *sorted);
    double least = 0;
    release(t);
    *t = (struct trainer){.words = words, .pieces = pieces, .scores = scores, .count = count};
    t->scaled = dt_alloc(count, sizeof *t->scaled);
    t->expected = dt_alloc(count, sizeof *t->expected);
    for (uint32_t i = 0; i < count; i++) {
        pieces[i].id = i;
        least = scores[i] < least ? scores[i] : least;
        t->scaled[i] = dt_math_exp(scores[i] + BYTE_BONUS * pieces[i].size);
    }
    t->unknown_score = least - 10;
    if (count > 0)
        memcpy(sorted, pieces, count * sizeof *sorted);
    dt_piece_trie_build(&t->trie, sorted, count);
    free(sorted);
}

/* --- lattices --------------------------------------------------------------------------------- */

typedef void edge_visitor(const struct trainer *t, struct node *nodes, size_t from, size_t to,
                          uint32_t id, void *context);

/* Visits the pieces that begin at offset `from`; id DT_NO_TOKEN: an unknown character. */
static void visit_edges(const struct trainer *t, struct node *nodes, const char *word, size_t size,
                        size_t from, edge_visitor *visit, void *context)
{
    size_t length = dt_utf8_length(word[from]);
    uint32_t node = DT_PIECE_TRIE_ROOT, id;
    bool known = false;
    for (size_t i = from;
         i < size && dt_piece_trie_follow(&t->trie, &node, (unsigned char)word[i], &id); i++) {
        if (id == DT_NO_TOKEN)
            continue;
        visit(t, nodes, from, i + 1, id, context);
        known = known || i + 1 == from + length;
    }
    if (!known)
        visit(t, nodes, from, from + length, DT_NO_TOKEN, context);
}

static double scaled_of(const struct trainer *t, uint32_t id, size_t bytes)
{
    return id == DT_NO_TOKEN ? dt_math_exp(t->unknown_score + BYTE_BONUS * (double)bytes)
                             : t->scaled[id];
}

static void go_forward(const struct trainer *t, struct node *nodes, size_t from, size_t to,
                       uint32_t id, void *context)
{
    (void)context;
    nodes[to].forward += nodes[from].forward * scaled_of(t, id, to - from);
}

static void go_backward(const struct trainer *t, struct node *nodes, size_t from, size_t to,
                        uint32_t id, void *context)
{
    (void)context;
    nodes[from].backward += nodes[to].backward * scaled_of(t, id, to - from);
}

static void expect(const struct trainer *t, struct node *nodes, size_t from, size_t to, uint32_t id,
                   void *context)
{
    const double *weight = context;
    if (id != DT_NO_TOKEN)
        t->expected[id] += *weight * nodes[from].forward * t->scaled[id] * nodes[to].backward;
}

/* Adds the expected pieces of a word that occurs count times. Returns the logarithm of its
 * probability; 0 if that underflows. */
static double expect_word(const struct trainer *t, const char *word, size_t size, double count)
{
    struct node nodes[LONGEST_WORD + 1];
    memset(nodes, 0, (size + 1) * sizeof *nodes);
    nodes[0].forward = nodes[size].backward = 1;
    for (size_t at = 0; at < size; at += dt_utf8_length(word[at]))
        visit_edges(t, nodes, word, size, at, go_forward, NULL);
    double all = nodes[size].forward, weight = count / all;
    if (!(all > 1e-280 && all < 1e280))
        return 0;
    for (size_t at = size; at-- > 0;)
        if ((word[at] & 0xc0) != 0x80)
            visit_edges(t, nodes, word, size, at, go_backward, NULL);
    for (size_t at = 0; at < size; at += dt_utf8_length(word[at]))
        visit_edges(t, nodes, word, size, at, expect, &weight);
    return dt_math_log(all) - BYTE_BONUS * (double)size;
}

/* context: bytes of the word, to leave out the piece that is the whole word; NULL: none. */
static void find_best(const struct trainer *t, struct node *nodes, size_t from, size_t to,
                      uint32_t id, void *context)
{
    const size_t *whole = context;
    double sum = nodes[from].best + (id == DT_NO_TOKEN ? t->unknown_score : t->scores[id]);
    if ((whole && from == 0 && to == *whole) || !(sum > nodes[to].best))
        return;
    nodes[to].best = sum;
    nodes[to].start = (uint32_t)from;
    nodes[to].id = id;
}

static void segment(const struct trainer *t, struct node *nodes, const char *word, size_t size,
                    bool not_whole)
{
    for (size_t i = 0; i <= size; i++)
        nodes[i] = (struct node){.best = i ? -INFINITY : 0, .id = DT_NO_TOKEN};
    for (size_t at = 0; at < size; at += dt_utf8_length(word[at]))
        visit_edges(t, nodes, word, size, at, find_best, not_whole ? &size : NULL);
}

/* --- EM --------------------------------------------------------------------------------------- */

static const char *word_at(const struct trainer *t, uint32_t i)
{
    return t->words->bytes.data + t->words->words[i].start;
}

static bool counts(const struct dt_word_table *words, uint32_t i)
{
    return words->words[i].length <= LONGEST_WORD;
}

static void run_e_step(struct trainer *t)
{
    double sum = 0, all = 0;
    memset(t->expected, 0, t->count * sizeof *t->expected);
    for (uint32_t i = 0; i < t->words->count; i++) {
        const struct dt_counted_word *w = &t->words->words[i];
        if (!counts(t->words, i))
            continue;
        sum += (double)w->count * expect_word(t, word_at(t, i), w->length, (double)w->count);
        all += (double)w->count;
    }
    t->likelihood = sum / all;
}

/* The derivative of the logarithm of the gamma function, for x > 0. */
static double digamma(double x)
{
    double result = 0;
    for (; x < 7; x++)
        result -= 1 / x;
    x -= 0.5;
    double square = 1 / (x * x);
    return result + dt_math_log(x) +
           square * (1.0 / 24 -
                     square * (7.0 / 960 - square * (31.0 / 8064 - square * (127.0 / 30720))));
}

/* Re-estimates the scores; digamma instead of the logarithm favours frequent pieces (Liang and
 * Klein 2007). */
static void run_m_step(struct trainer *t)
{
    struct dt_trie_piece *pieces = dt_alloc(t->count, sizeof *pieces);
    double *scores = dt_alloc(t->count, sizeof *scores), sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->expected[i] < LEAST_COUNT)
            continue;
        pieces[count] = t->pieces[i];
        scores[count++] = t->expected[i];
        sum += t->expected[i];
    }
    double all = digamma(sum);
    for (uint32_t i = 0; i < count; i++)
        scores[i] = digamma(scores[i]) - all;
    set_pieces(t, pieces, scores, count);
}

/* --- pruning ---------------------------------------------------------------------------------- */

struct candidate {
    double loss;
    uint32_t id;
};

static int higher_loss_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->loss != y->loss ? (x->loss < y->loss) - (x->loss > y->loss)
                              : (x->id > y->id) - (x->id < y->id);
}

/* Counts the pieces of the best segmentations into t->expected; returns their sum. */
static double count_best(struct trainer *t)
{
    struct node nodes[LONGEST_WORD + 1];
    double sum = 0;
    memset(t->expected, 0, t->count * sizeof *t->expected);
    for (uint32_t i = 0; i < t->words->count; i++) {
        const struct dt_counted_word *w = &t->words->words[i];
        if (!counts(t->words, i))
            continue;
        segment(t, nodes, word_at(t, i), w->length, false);
        for (size_t end = w->length; end > 0; end = nodes[end].start)
            if (nodes[end].id != DT_NO_TOKEN) {
                t->expected[nodes[end].id] += (double)w->count;
                sum += (double)w->count;
            }
    }
    return sum;
}

/* The loss of likelihood without the piece, whose occurrences then become its second best
 * segmentation; INFINITY: there is none, -INFINITY: the piece is not used. */
static double loss_of(const struct trainer *t, uint32_t id, double sum)
{
    struct node nodes[LONGEST_WORD + 1];
    const struct dt_trie_piece *p = &t->pieces[id];
    double own = t->expected[id], other = 0;
    unsigned parts = 0;
    if (p->size == dt_utf8_length(*p->bytes))
        return own > 0 ? INFINITY : -INFINITY;
    segment(t, nodes, p->bytes, p->size, true);
    if (own == 0 || nodes[p->size].best > t->scores[id])
        return -INFINITY;
    for (size_t end = p->size; end > 0; end = nodes[end].start, parts++) {
        if (nodes[end].id == DT_NO_TOKEN)
            return INFINITY;
        other += dt_math_log(t->expected[nodes[end].id] + own);
    }
    other -= parts * dt_math_log(sum + own * (parts - 1));
    return own / sum * (dt_math_log(own) - dt_math_log(sum) - other);
}

static void prune(struct trainer *t, uint32_t least)
{
    double sum = count_best(t);
    struct candidate *all = dt_alloc(t->count, sizeof *all);
    uint32_t count = 0, kept = (uint32_t)(SHRINK * t->count);
    for (uint32_t id = 0; id < t->count; id++) {
        double loss = loss_of(t, id, sum);
        if (loss > -INFINITY)
            all[count++] = (struct candidate){loss, id};
    }
    qsort(all, count, sizeof *all, higher_loss_first);
    kept = kept < least ? least : kept;
    kept = kept < count ? kept : count;
    struct dt_trie_piece *pieces = dt_alloc(kept, sizeof *pieces);
    double *scores = dt_alloc(kept, sizeof *scores);
    for (uint32_t i = 0; i < kept; i++) {
        pieces[i] = t->pieces[all[i].id];
        scores[i] = t->scores[all[i].id];
    }
    free(all);
    set_pieces(t, pieces, scores, kept);
}

/* --- the result ------------------------------------------------------------------------------- */

struct ranked {
    double score;
    struct dt_trie_piece piece;
};

static int higher_score_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return (x->score < y->score) - (x->score > y->score);
    uint32_t m = x->piece.size, n = y->piece.size;
    int order = memcmp(x->piece.bytes, y->piece.bytes, m < n ? m : n);
    return order ? order : (m > n) - (m < n);
}

/* The score of a character that EM has dropped: below all others, more frequent ones first. */
#define DROPPED_STEP 0.0001

static uint32_t find_piece(const struct trainer *t, const struct dt_trie_piece *p)
{
    uint32_t node = DT_PIECE_TRIE_ROOT, id = DT_NO_TOKEN;
    for (uint32_t i = 0; i < p->size; i++)
        if (!dt_piece_trie_follow(&t->trie, &node, (unsigned char)p->bytes[i], &id))
            return DT_NO_TOKEN;
    return id;
}

/* All characters, then the other pieces of the highest scores. */
static void choose(const struct trainer *t, const struct dt_unigram_seeds *seeds, uint32_t size,
                   struct dt_learned *learned)
{
    struct ranked *all = dt_alloc((size_t)t->count + seeds->characters, sizeof *all);
    bool *taken = dt_alloc(t->count + 1, sizeof *taken);
    double dropped = t->unknown_score + 10;
    uint32_t count = 0;
    for (uint32_t i = 0; i < seeds->characters; i++) {
        uint32_t id = find_piece(t, &seeds->pieces[i]);
        dropped -= id == DT_NO_TOKEN ? DROPPED_STEP : 0;
        all[count++] =
            (struct ranked){id == DT_NO_TOKEN ? dropped : t->scores[id], seeds->pieces[i]};
        taken[id == DT_NO_TOKEN ? t->count : id] = true;
    }
    uint32_t characters = count;
    for (uint32_t id = 0; id < t->count; id++)
        if (!taken[id])
            all[count++] = (struct ranked){t->scores[id], t->pieces[id]};
    qsort(all + characters, count - characters, sizeof *all, higher_score_first);
    learned->count = count < size ? count : size;
    qsort(all, learned->count, sizeof *all, higher_score_first);
    learned->pieces = dt_alloc(learned->count, sizeof *learned->pieces);
    learned->scores = dt_alloc(learned->count, sizeof *learned->scores);
    for (uint32_t i = 0; i < learned->count; i++) {
        learned->pieces[i] = all[i].piece;
        learned->pieces[i].id = i;
        learned->scores[i] = all[i].score;
    }
    free(all);
    free(taken);
}

static void train(struct trainer *t, uint32_t size)
{
    uint32_t enough = (uint32_t)(SURPLUS * size);
    for (;;) {
        for (int round = 0; round < ROUNDS; round++) {
            run_e_step(t);
            run_m_step(t);
        }
        uint32_t before = t->count;
        if (before <= enough)
            break;
        prune(t, enough);
        if (t->count == before)
            break;
    }
    run_e_step(t);
}

static int by_bytes(const void *a, const void *b, void *context)
{
    const struct dt_counted_word *x = a, *y = b;
    const struct dt_word_table *words = context;
    uint32_t least = x->length < y->length ? x->length : y->length;
    int order = memcmp(words->bytes.data + x->start, words->bytes.data + y->start, least);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* The same words by their bytes: sums of probabilities depend on the order. */
static struct dt_word_table sort_words(const struct dt_word_table *words)
{
    struct dt_word_table sorted = *words;
    sorted.words = dt_alloc(words->count, sizeof *sorted.words);
    if (words->count > 0)
        memcpy(sorted.words, words->words, words->count * sizeof *sorted.words);
    qsort_r(sorted.words, sorted.count, sizeof *sorted.words, by_bytes, &sorted);
    return sorted;
}

/* The characters of the seeds, and those of `others` that are not among them. */
static uint32_t count_characters(const struct dt_unigram_seeds *seeds, const char *others)
{
    bool found[256] = {false};
    uint32_t count = seeds->characters;
    for (size_t i = 0; i < seeds->count; i++)
        if (seeds->pieces[i].size == 1)
            found[(unsigned char)*seeds->pieces[i].bytes] = true;
    for (; *others; others++)
        count += !found[(unsigned char)*others];
    return count;
}

int dt_learn_unigram(struct dt_learned *learned, const struct dt_word_table *words, uint32_t size,
                     uint32_t alphabet, const char *others, struct dt_error *err)
{
    struct dt_word_table sorted = sort_words(words);
    struct trainer t = {.words = &sorted};
    struct dt_unigram_seeds seeds;
    *learned = (struct dt_learned){.pieces = NULL};
    dt_unigram_seeds_find(&seeds, &sorted, LONGEST_WORD, alphabet, SEEDS);
    learned->characters = count_characters(&seeds, others);
    int rc = 0;
    if (seeds.characters == 0)
        rc = dt_fail(err, DT_EFORMAT, "the input contains no text");
    else if (learned->characters > size)
        rc = dt_fail(err, DT_EINVALID, "%u pieces are fewer than the %u characters", size,
                     learned->characters);
    if (rc == 0) {
        struct dt_trie_piece *pieces = dt_alloc(seeds.count, sizeof *pieces);
        double *scores = dt_alloc(seeds.count, sizeof *scores);
        memcpy(pieces, seeds.pieces, seeds.count * sizeof *pieces);
        memcpy(scores, seeds.scores, seeds.count * sizeof *scores);
        set_pieces(&t, pieces, scores, seeds.count);
        train(&t, size);
        choose(&t, &seeds, size, learned);
        learned->likelihood = t.likelihood;
    }
    dt_unigram_seeds_release(&seeds);
    release(&t);
    free(sorted.words);
    return rc;
}

void dt_learned_release(struct dt_learned *learned)
{
    free(learned->pieces);
    free(learned->scores);
    *learned = (struct dt_learned){.pieces = NULL};
}
