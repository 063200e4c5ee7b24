/* SPDX-License-Identifier: MIT */
/*
 * The representation of a tokenizer, private to lib/token.
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
#include "steps/bert-words.h"
#include "steps/steps.h"
#include "token/pairs.h"
#include "token/tokenizer.h"

#define DT_NO_RANK          UINT32_MAX
#define DT_VOCABULARY_BYTES (1u << 30) /* of all tokens together */

/* The encoding algorithm. The BPE models differ: a list may lack a merge, or rank two merges
 * with the same result differently. Code that depends on the model switches over all
 * enumerators, so a new one does not compile unnoticed. */
enum dt_token_model {
    DT_TOKEN_BPE_MERGES, /* a list of merges; rank: index in the list */
    DT_TOKEN_BPE_RANKS,  /* tiktoken, SentencePiece: two tokens merge if their concatenation is a
                            token; rank: the id of that token, or another order */
    DT_TOKEN_WORD_PIECE, /* BERT: greedy longest match from the left */
    DT_TOKEN_WORD_LEVEL, /* a piece is a token, or the unknown token */
    DT_TOKEN_UNIGRAM     /* the most probable segmentation (token/unigram.h) */
};

/* A merge of two adjacent tokens; its index in the list is its rank. */
struct dt_merge {
    uint32_t left, right, result;
};

/* The bytes of a token, at bytes.data[start]; length 0: the id is unused. */
struct dt_token_extent {
    uint32_t start, length;
};

/* A token that is matched in the text before pre-tokenization. */
struct dt_added_token {
    uint32_t id;
    bool special;                 /* matches only if special tokens are allowed */
    bool normalized;              /* matched in the normalized text */
    bool single_word;             /* not next to a word character */
    bool strip_left, strip_right; /* includes adjacent white space */
    bool apart;                   /* not in the model's vocabulary */
    struct dt_token_extent match; /* what is matched: set by the reader, or found by
                                     dt_tokenizer_finish: the token, or its normalized form */
};

/* Bits of traits[id]. */
enum dt_token_trait { DT_TOKEN_SPECIAL = 1, DT_TOKEN_CONTINUES = 2, DT_TOKEN_APART = 4 };

/* How a piece becomes the first symbols of BPE; all-zero: bytes, each of which has a token. */
struct dt_bpe_rules {
    bool byte_fallback; /* a character without a token becomes the tokens <0x00> .. of its bytes */
    bool fuse_unknown;  /* adjacent characters without a token become one unknown token */
    char *prefix;       /* before all characters but the first of a piece; NULL: none */
    char *suffix;       /* after the last, as CLIP's "</w>"; NULL: none */
};

struct dt_tokenizer {
    enum dt_token_model model;
    /* How text becomes pieces: by the steps of normalizer and splitter, or without has_steps by a
     * compiled pattern and nfc, or by bert, where the model is DT_TOKEN_WORD_PIECE. */
    bool has_steps;
    const struct dt_pattern *pattern;
    struct dt_steps normalizer, splitter;
    bool has_words; /* text may be cut into words first: token/words.h */
    bool traces;    /* origins of text are kept, for the steps */
    struct dt_word_cuts words;
    struct dt_steps decoder; /* none: the bytes of the tokens, or with bert its words */
    bool byte_level;         /* tokens are bytes, in JSON in the byte-level alphabet; else text */
    struct dt_bpe_rules rules;
    bool ignore_merges; /* a piece that is a token encodes to that token */
    bool nfc;           /* normalize text to NFC */
    struct dt_bert_rules bert;
    uint32_t unknown;        /* the token of what has none; DT_NO_TOKEN: such text is dropped */
    uint32_t max_word_chars; /* DT_TOKEN_WORD_PIECE */
    struct dt_buffer bytes;
    struct dt_token_extent *tokens;
    uint8_t *traits;         /* [size], filled by dt_tokenizer_finish */
    uint32_t size, capacity; /* highest id + 1 */
    uint32_t longest;        /* bytes of the longest token */
    uint32_t *index; /* hash table of ids by bytes, with bits of their hash above; DT_NO_TOKEN:
                        empty */
    uint32_t index_size, indexed;
    struct dt_merge *merges;
    uint32_t merge_count, merge_capacity;
    uint32_t *ranks; /* [id], of DT_TOKEN_BPE_RANKS: that of the token, or DT_NO_RANK if no merge
                        makes it or takes it; NULL: the ids */
    uint32_t first_tied;   /* ranks from this on are equal: the leftmost pair merges first */
    uint32_t *results;     /* [rank]: id of the merged token */
    uint32_t first_result; /* of rank 0, if the ids follow each other; DT_NO_TOKEN: they do not */
    struct dt_pairs pairs;
    uint32_t *byte_pairs;   /* [first byte << 8 | second]: rank of the pair */
    uint32_t byte_ids[256]; /* with byte_fallback of the tokens <0x00> .., or DT_NO_TOKEN */
    bool lacks_bytes;       /* byte_level has no tokens for bytes of token/replaced-bytes.h */
    bool drops_bytes;       /* byte_level has none for others, which are unknown characters */
    uint32_t *char_ids;     /* [65536], of characters, unless byte_level; or DT_NO_TOKEN */
    struct dt_whole_tokens *whole; /* token/whole-tokens.h; NULL: none */
    struct dt_bpe_cuts *cuts;      /* where a text may be cut before its merges; NULL: nowhere */
    struct dt_unigram *unigram;    /* DT_TOKEN_UNIGRAM; owned */
    struct dt_added_token *added;
    uint32_t added_count, added_capacity;
    uint32_t bos, eot;
    struct dt_ids before, after; /* special tokens of the file's template */
    uint64_t fingerprint;
};

/* model is DT_TOKEN_BPE_MERGES, with byte_level; set another before dt_tokenizer_finish. */
struct dt_tokenizer *dt_tokenizer_new(const struct dt_pattern *pattern);
/* DT_EFORMAT if the id is used or out of range, or if size is 0. If several ids have the same
 * bytes, dt_tokenizer_find returns the first added. */
int dt_tokenizer_add(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                     struct dt_error *err) DT_MUST_CHECK;
/* The same for a token whose bytes no other id may have. */
int dt_tokenizer_add_distinct(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                              struct dt_error *err) DT_MUST_CHECK;
/* The same for a token that text cannot encode to: dt_tokenizer_find does not return it. */
int dt_tokenizer_add_unreachable(struct dt_tokenizer *t, uint64_t id, const char *bytes,
                                 size_t size, struct dt_error *err) DT_MUST_CHECK;
/* Marks an existing token as an added token. */
void dt_tokenizer_mark_added(struct dt_tokenizer *t, struct dt_added_token token);
/* The next merge in rank order. The ids must exist. */
void dt_tokenizer_add_merge(struct dt_tokenizer *t, struct dt_merge merge);
/* Checks that each byte has a token and that merges are distinct; builds the tables for
 * encoding. With DT_TOKEN_BPE_RANKS ids, except those of added tokens, are in rank order. */
int dt_tokenizer_finish(struct dt_tokenizer *t, struct dt_error *err) DT_MUST_CHECK;
/* As dt_tokenizer_find, of the tokens to which the model encodes: not of added tokens apart from
 * its vocabulary. After dt_tokenizer_finish has found traits. */
uint32_t dt_vocabulary_find(const struct dt_tokenizer *t, const char *bytes, size_t size);
/* The fingerprint with the tables of a Unicode version. */
uint64_t dt_tokenizer_compute_fingerprint(const struct dt_tokenizer *t, const char *unicode);

static inline bool dt_vocabulary_is_word_piece(const struct dt_tokenizer *t)
{
    switch (t->model) {
    case DT_TOKEN_BPE_MERGES:
    case DT_TOKEN_BPE_RANKS:
    case DT_TOKEN_WORD_LEVEL:
    case DT_TOKEN_UNIGRAM:
        return false;
    case DT_TOKEN_WORD_PIECE:
        return true;
    }
    return false;
}

/* Whether BERT's rules make the words, without steps. */
static inline bool dt_vocabulary_is_bert(const struct dt_tokenizer *t)
{
    return dt_vocabulary_is_word_piece(t) && !t->has_steps;
}

/* The token that a merge makes. In most vocabularies it is computed, without waiting for memory. */
static inline uint32_t dt_vocabulary_result(const struct dt_tokenizer *t, uint32_t rank)
{
    return t->first_result != DT_NO_TOKEN ? t->first_result + rank : t->results[rank];
}

/* Whether the first symbols of BPE are all bytes, each of which has a token. */
static inline bool dt_vocabulary_is_plain_bytes(const struct dt_tokenizer *t)
{
    return t->byte_level && !t->drops_bytes && t->rules.prefix == NULL && t->rules.suffix == NULL;
}

#endif
