/* SPDX-License-Identifier: MIT */
/*
 * The inside of a tokenizer, for the files of lib/token: how one is built, and
 * what encoding reads.
 *
 *     struct dt_tokenizer *t = dt_tokenizer_new(pattern);
 *     DT_TRY(dt_tokenizer_add(t, id, bytes, size, err));           for each token
 *     dt_tokenizer_add_merge(t, merge);                            by rank
 *     DT_TRY(dt_tokenizer_finish(t, err));
 */
#ifndef DT_TOKEN_VOCABULARY_H
#define DT_TOKEN_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "pretokenize/pattern.h"
#include "token/tokenizer.h"

#define DT_NO_RANK UINT32_MAX

/* How the ids of a piece are found. The first two are not the same function: a
 * list may leave out a merge, or rank two that make one token apart. */
enum dt_token_model {
    DT_TOKEN_BPE_MERGES, /* a list of merges; the rank of a pair is its place there */
    DT_TOKEN_BPE_RANKS,  /* tiktoken: any two tokens merge whose bytes together are a token, and the
                      place of that token is the rank */
    DT_TOKEN_WORD_PIECE  /* BERT: the longest token that fits, from the left */
};

/* Two neighbouring tokens that become one; its place in the list is its rank. */
struct dt_merge {
    uint32_t left, right, result;
};

/* A slot of the hash table from pairs to ranks. */
struct dt_merge_slot {
    uint32_t left, right, rank; /* DT_NO_RANK: empty */
};

/* A token that is looked for in the text itself, before pre-tokenization. */
struct dt_added_token {
    uint32_t id;
    bool special;                 /* only where the user allows special tokens in text */
    bool normalized;              /* looked for in the normalized text, not in the text */
    bool single_word;             /* not where a letter or its like stands before or behind it */
    bool strip_left, strip_right; /* takes the white space there with it */
};

/* A token's bytes lie at bytes.data[start]; length 0 means that the id has no
 * token. */
struct dt_token_place {
    uint32_t start, length;
};

/* What is asked of single ids; bits of traits[id]. */
enum dt_token_trait { DT_TOKEN_SPECIAL = 1, DT_TOKEN_CONTINUES = 2 };

/* What BERT does to text before it is cut into words. */
struct dt_bert_rules {
    bool clean;         /* drop control characters, make all white space blanks */
    bool isolate_cjk;   /* a Chinese character is a word */
    bool strip_accents; /* decompose, and drop marks that take no space */
    bool lower;
};

struct dt_tokenizer {
    enum dt_token_model model;
    const struct dt_pattern *pattern; /* NULL for DT_TOKEN_WORD_PIECE */
    bool whole_pieces; /* a piece that is a token is that token, whatever merges make of it */
    bool nfc;          /* text is brought into Normalization Form C */
    struct dt_bert_rules bert;
    uint32_t unknown, longest_word; /* DT_TOKEN_WORD_PIECE: id, and characters */
    struct dt_buffer bytes;
    struct dt_token_place *tokens;
    uint8_t *traits;         /* [size], filled by dt_tokenizer_finish */
    uint32_t size, capacity; /* highest id + 1 */
    uint32_t longest;        /* bytes of the longest token */
    uint32_t *index;         /* hash table from bytes to ids, DT_NO_TOKEN: empty */
    uint32_t index_size, indexed;
    struct dt_merge *merges;
    uint32_t merge_count, merge_capacity;
    uint32_t *results; /* [rank]: the token that a pair of this rank makes */
    struct dt_merge_slot *slots;
    unsigned slot_bits;
    uint32_t *byte_pairs; /* [65536]: rank of the pair of two bytes' tokens */
    uint32_t byte_ids[256];
    struct dt_added_token *added;
    uint32_t added_count, added_capacity;
    uint32_t bos, eot;
    struct dt_ids before, after; /* what the file's template puts around a text */
    uint64_t fingerprint;
};

/* Of DT_TOKEN_BPE_MERGES; change the model before dt_tokenizer_finish. */
struct dt_tokenizer *dt_tokenizer_new(const struct dt_pattern *pattern);
/* DT_EFORMAT if the id is taken or out of range, or if size is 0. Where several
 * ids have the same bytes, dt_tokenizer_find gives the first added. */
int dt_tokenizer_add(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                     struct dt_error *err) DT_MUST_CHECK;
/* Declares a token already added to be one that is looked for in the text. */
void dt_tokenizer_mark_added(struct dt_tokenizer *t, struct dt_added_token token);
/* The next merge in rank order. The ids must exist. */
void dt_tokenizer_add_merge(struct dt_tokenizer *t, struct dt_merge merge);
/* Checks that each byte has a token and that no merge stands twice, and makes
 * the tables that encoding needs. With DT_TOKEN_BPE_RANKS the merges follow from the
 * tokens: their ids, but for those of added tokens, are in rank order. */
int dt_tokenizer_finish(struct dt_tokenizer *t, struct dt_error *err) DT_MUST_CHECK;
/* What the fingerprint is by tables of that version of Unicode. */
uint64_t dt_tokenizer_compute_fingerprint(const struct dt_tokenizer *t, const char *unicode);

static inline uint32_t dt_vocabulary_pair_hash(uint32_t left, uint32_t right, unsigned bits)
{
    uint64_t key = (uint64_t)left << 32 | right;
    return (uint32_t)((key * 0x9e3779b97f4a7c15u ^ (uint64_t)right << 40) * 0xd6e8feb86659fd93u >>
                      (64 - bits));
}

/* The rank of a pair, DT_NO_RANK if it never merges. */
static inline uint32_t dt_vocabulary_pair_rank(const struct dt_tokenizer *t, uint32_t left,
                                               uint32_t right)
{
    uint32_t mask = (1u << t->slot_bits) - 1;
    for (uint32_t i = dt_vocabulary_pair_hash(left, right, t->slot_bits);; i = (i + 1) & mask) {
        const struct dt_merge_slot *s = &t->slots[i];
        if ((s->left == left && s->right == right) || s->rank == DT_NO_RANK)
            return s->rank;
    }
}

#endif
