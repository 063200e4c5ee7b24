/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers: text to ids and back, from the files that others publish.
 *
 *     struct dt_tokenizer *t;
 *     struct dt_ids ids = DT_IDS_EMPTY;
 *     DT_TRY(dt_tokenizer_load(&t, "tokenizer.json", err));
 *     struct dt_encoder *e = dt_encoder_new(t);
 *     dt_encoder_encode(e, text, size, &ids);
 *
 * A tokenizer never changes after loading and may be shared by threads; each
 * thread encodes through an encoder of its own, which holds the caches.
 */
#ifndef DT_TOKEN_TOKENIZER_H
#define DT_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_tokenizer;
struct dt_encoder;

#define DT_NO_TOKEN   UINT32_MAX
#define DT_FRAME_MOST 8

/* Loads a file of one of the kinds that dt-tokenizer(5) describes, which its
 * name or, for JSON, its members tell, or the one that a directory holds. *t is
 * owned by the caller. */
int dt_tokenizer_load(struct dt_tokenizer **t, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
/* The same, and cuts text by the pattern of that name (dt_pattern_names),
 * whatever the file says; with NULL as the file says. */
int dt_tokenizer_load_with(struct dt_tokenizer **t, const char *path, const char *pattern,
                           struct dt_error *err) DT_MUST_CHECK;
void dt_tokenizer_free(struct dt_tokenizer *t); /* NULL is fine */

uint32_t dt_tokenizer_size(const struct dt_tokenizer *t); /* highest id + 1 */
/* The token that ends a document ("<|endoftext|>" or its like); DT_NO_TOKEN if none. */
uint32_t dt_tokenizer_eot(const struct dt_tokenizer *t);
/* Identifies the mapping from text to ids: equal for equal vocabularies, merges
 * and patterns, whatever file format they came from. */
uint64_t dt_tokenizer_fingerprint(const struct dt_tokenizer *t);
/* The id of a token given by its bytes, special ones included; DT_NO_TOKEN if none. */
uint32_t dt_tokenizer_find(const struct dt_tokenizer *t, const char *bytes, size_t size);
/* The bytes of a token; borrowed. *size is 0 for an id that has none. */
const char *dt_tokenizer_bytes(const struct dt_tokenizer *t, uint32_t id, size_t *size);
/* Whether text leads to the id only where special tokens are allowed: what marks
 * documents, fills or masks, such as "[MASK]". */
bool dt_tokenizer_is_special(const struct dt_tokenizer *t, uint32_t id);
/* Whether the token goes on with the word that the token before it began, as
 * masking of whole words needs it: in WordPiece one with "##", in byte-level BPE
 * one that begins with a letter, a number, a mark or half a character. A word's
 * first token without a blank before it is taken for one that goes on. */
bool dt_tokenizer_continues_word(const struct dt_tokenizer *t, uint32_t id);

/* Tokens to put before and behind the ids of a document. */
struct dt_frame {
    uint32_t before[DT_FRAME_MOST], after[DT_FRAME_MOST];
    size_t before_count, after_count;
};

enum dt_frame_policy {
    DT_FRAME_AUTO, /* TEMPLATE for WordPiece, EOT, where there is one, for others */
    DT_FRAME_NONE,
    DT_FRAME_EOT,
    DT_FRAME_BOS,
    DT_FRAME_BOS_EOT,
    DT_FRAME_TEMPLATE /* what the tokenizer's file says: "[CLS]" and "[SEP]" for BERT */
};
extern const char *const dt_frame_policies[]; /* their names, ended by NULL */

/* DT_EINVALID if the tokenizer has no such token. */
int dt_tokenizer_frame(const struct dt_tokenizer *t, enum dt_frame_policy policy,
                       struct dt_frame *frame, struct dt_error *err) DT_MUST_CHECK;

/* Bytes start .. end of a text. */
struct dt_span {
    uint64_t start, end;
};

/* A growing list; all-zero is a valid empty one; free with dt_spans_release. */
struct dt_spans {
    struct dt_span *data;
    size_t count, capacity;
};
void dt_spans_release(struct dt_spans *spans);

/* Encoders borrow their tokenizer. */
struct dt_encoder *dt_encoder_new(const struct dt_tokenizer *t);
void dt_encoder_free(struct dt_encoder *e); /* NULL is fine */
/* Treat text that spells a special token as that token (off by default). */
void dt_encoder_allow_special(struct dt_encoder *e, int allow);
/* From now on each id that dt_encoder_encode appends gets an element of spans, the bytes
 * of the text it comes from; NULL ends that. WordPiece drops text, so that its
 * spans may have gaps. spans is borrowed. */
void dt_encoder_keep_spans(struct dt_encoder *e, struct dt_spans *spans);
/* Appends the ids of text, any bytes. No EOT is added. Added tokens of the
 * tokenizer that are not special are always found. */
void dt_encoder_encode(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids);

/* Appends the bytes of the ids; special tokens appear as they are spelled, words
 * of WordPiece with a blank between.
 * DT_EFORMAT names the first id that is outside the vocabulary. */
int dt_tokenizer_decode(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                        struct dt_buffer *text, struct dt_error *err) DT_MUST_CHECK;

/* Writes the tokenizer as a tokenizer.json, atomically. DT_EINVALID for one whose
 * merges follow from ranks: a tokenizer.json cannot hold that. */
int dt_tokenizer_save(const struct dt_tokenizer *t, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
