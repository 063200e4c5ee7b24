/* SPDX-License-Identifier: MIT */
/*
 * BERT's basic tokenizer (Devlin et al., "BERT: pre-training of deep bidirectional
 * transformers for language understanding", 2019): text is normalized, split at white space,
 * and each punctuation mark is a separate word.
 *
 *     struct dt_bert_words w;
 *     dt_bert_words_init(&w, &rules, false);
 *     dt_bert_words_start(&w, text, size);
 *     while (dt_bert_words_next(&w))
 *         ... w.word, w.size bytes, w.characters of them
 *     dt_bert_words_release(&w);
 */
#ifndef DT_STEPS_BERT_WORDS_H
#define DT_STEPS_BERT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "steps/traced-text.h"
#include "json/json.h"

#define DT_BERT_HEADROOM 2    /* bytes before word that the caller may overwrite */
#define DT_BERT_MAX_WORD 8192 /* bytes; of a longer word the rest is only counted */

/* BERT's normalization. */
struct dt_bert_rules {
    bool clean;         /* drop control characters, map white space to spaces */
    bool isolate_cjk;   /* each CJK character is a word */
    bool strip_accents; /* NFD, then drop nonspacing marks */
    bool lower;
};

/* The rules of a BertNormalizer of tokenizer.json, or without one the usual. */
struct dt_bert_rules dt_bert_rules_read(struct json_object *component);

struct dt_bert_words {
    char *word;              /* the word, normalized; 16 bytes are readable */
    size_t size, characters; /* of it */
    struct dt_span *origins; /* [size]: source range in the text of each byte; NULL unless
                                keep_origins */
    /* private */
    const struct dt_bert_rules *rules;
    const unsigned char *text, *at, *end;
    char *buffer;
    uint32_t parts[32]; /* the normalized current character; next_part is the next */
    unsigned part_count, next_part;
    struct dt_span origin; /* of parts */
};

/* rules is borrowed. */
void dt_bert_words_init(struct dt_bert_words *w, const struct dt_bert_rules *rules,
                        bool keep_origins);
/* text is borrowed. */
void dt_bert_words_start(struct dt_bert_words *w, const char *text, size_t size);
/* Finds the next word; false at the end. */
bool dt_bert_words_next(struct dt_bert_words *w);
void dt_bert_words_release(struct dt_bert_words *w);

/* Appends the normalized form of `in`, not split, to out. */
void dt_bert_words_normalize(const struct dt_bert_rules *rules, const struct dt_traced_text *in,
                             struct dt_traced_text *out);

#endif
