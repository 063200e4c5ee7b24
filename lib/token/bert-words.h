/* SPDX-License-Identifier: MIT */
/*
 * Text as the words that BERT sees (Devlin et al., "BERT: pre-training of deep
 * bidirectional transformers for language understanding", 2019): normalized,
 * cut at white space, and each punctuation mark a word of its own.
 *
 *     struct dt_bert_words w;
 *     dt_bert_words_init(&w, &rules, false);
 *     dt_bert_words_start(&w, text, size);
 *     while (dt_bert_words_next(&w))
 *         ... w.word, w.size bytes, w.characters of them
 *     dt_bert_words_release(&w);
 */
#ifndef DT_TOKEN_BERT_WORDS_H
#define DT_TOKEN_BERT_WORDS_H

#include "token/vocabulary.h"

#define DT_BERT_HEADROOM 2    /* bytes before a word that the caller may write to */
#define DT_BERT_LONGEST  8192 /* bytes; of a longer word only the characters are counted */

struct dt_bert_words {
    char *word;              /* the word found, normalized; 16 bytes may be read */
    size_t size, characters; /* of it */
    struct dt_span *origins; /* [size]: where in the text each byte of the word comes from; NULL
                                unless asked for */
    /* private */
    const struct dt_bert_rules *rules;
    const unsigned char *text, *at, *end;
    char *buffer;
    uint32_t parts[32]; /* characters that one became, to be taken from next_part on */
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

#endif
