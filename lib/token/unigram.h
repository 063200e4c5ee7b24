/* SPDX-License-Identifier: MIT */
/*
 * Unigram segmentation (Kudo 2018): of all segmentations of a text into pieces, the one whose
 * scores, log probabilities, sum to the most. A character without a piece is the unknown piece,
 * with the lowest score minus 10.
 *
 * SentencePiece sums in float, `tokenizers` in double, which breaks near ties differently. Both go
 * from left to right and of equal sums keep the one found first, that of the longest last piece.
 * SentencePiece before 0.2.2 compared sums before rounding them and differs in some exact ties.
 *
 *     struct dt_unigram_work *w = dt_unigram_work_new(u);
 *     size_t count = dt_unigram_encode(u, w, text, size, ids, NULL);
 */
#ifndef DT_TOKEN_UNIGRAM_H
#define DT_TOKEN_UNIGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "steps/piece-trie.h"

struct dt_unigram {
    struct dt_piece_trie trie;
    double *scores; /* [size], by id */
    uint32_t size;
    double unknown_score;
    uint32_t unknown;   /* the id of unknown characters */
    uint32_t *byte_ids; /* [256]: unknown characters encode as bytes; NULL: they do not */
    bool fuse_unknown;  /* a run of unknown characters is one id */
    bool rounds_to_float;
    /* Filled by dt_unigram_build: */
    float *float_scores;       /* [size + 1], with rounds_to_float, also of the unknown piece */
    double largest;            /* absolute value of a score */
    double epsilon, sum_limit; /* of sums */
    bool cuts_at_marks; /* a segmentation always has a boundary before each U+2581 that does not
                           follow another */
};

/* What the score of the unknown piece is below the lowest. */
#define DT_UNIGRAM_UNKNOWN_PENALTY 10

struct dt_unigram_work;

/* Builds the trie of the pieces, distinct. The other fields are set by the caller before. */
void dt_unigram_build(struct dt_unigram *u, struct dt_trie_piece *pieces, size_t count);
void dt_unigram_free(struct dt_unigram *u); /* NULL is fine */

/* Appends to text all that determines the segmentation except the pieces, for fingerprints. */
void dt_unigram_describe(const struct dt_unigram *u, struct dt_buffer *text);

/* One for each thread: holds a cache of words and the state of the search. */
struct dt_unigram_work *dt_unigram_work_new(void);
void dt_unigram_work_free(struct dt_unigram_work *w); /* NULL is fine */

/* Whether text may be cut before each mark that follows another character. */
bool dt_unigram_cuts_words(const struct dt_unigram *u);
/* Begins a text, which dt_unigram_encode() may get in parts cut before marks. */
void dt_unigram_start(struct dt_unigram_work *w);

/* Writes the ids of text, of which a byte that is not UTF-8 is an unknown character, and to ends,
 * unless NULL, the offset in text where each ends; both have room for size elements. Returns the
 * number of ids. Time is linear in size times the longest match; memory is bounded by the longest
 * part without a boundary that all segmentations share. */
size_t dt_unigram_encode(const struct dt_unigram *u, struct dt_unigram_work *w, const char *text,
                         size_t size, uint32_t *ids, size_t *ends);

/* The limit of sums: after any text whose sum has a smaller absolute value the ids are those that
 * dt_unigram_encode() found last; negative if they are not known after any other text. */
float dt_unigram_limit(const struct dt_unigram_work *w);
/* The sum of the text so far, for parts whose ids are known, until it is given back:
 *
 *     struct dt_unigram_sum sum = dt_unigram_take_sum(u, w);
 *     while (dt_unigram_pass(&sum, ids, count, limit)) ...
 *     dt_unigram_give_sum(w, sum);
 */
struct dt_unigram_sum {
    const struct dt_unigram *unigram;
    float rounded; /* with rounds_to_float; else exact */
    double exact;
};

struct dt_unigram_sum dt_unigram_take_sum(const struct dt_unigram *u,
                                          const struct dt_unigram_work *w);
void dt_unigram_give_sum(struct dt_unigram_work *w, struct dt_unigram_sum sum);

#define DT_UNIGRAM_LEAST 3 /* ids that dt_unigram_pass() reads */

/* Goes on by ids of a part that was encoded with this limit after other text. Fewer than
 * DT_UNIGRAM_LEAST are padded by unigram->size, which has the score 0, so that few branches depend
 * on their number. False, and nothing changes, if they may differ after this text. */
static inline bool dt_unigram_pass(struct dt_unigram_sum *sum, const uint32_t *ids, size_t count,
                                   float limit)
{
    const struct dt_unigram *u = sum->unigram;
    if (u->float_scores) {
        if (!(__builtin_fabsf(sum->rounded) < limit))
            return false;
        sum->rounded += u->float_scores[ids[0]];
        sum->rounded += u->float_scores[ids[1]];
        sum->rounded += u->float_scores[ids[2]];
        for (size_t i = DT_UNIGRAM_LEAST; i < count; i++)
            sum->rounded += u->float_scores[ids[i]];
    } else {
        if (!(__builtin_fabs(sum->exact) < limit))
            return false;
        for (size_t i = 0; i < count; i++)
            sum->exact += ids[i] == u->unknown ? u->unknown_score : u->scores[ids[i]];
    }
    return true;
}

#endif
