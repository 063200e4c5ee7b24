/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers: text to ids and back, loaded from published files
 * (tokenizer-files/tokenizer-files.h).
 *
 *     struct dt_tokenizer *t;
 *     struct dt_ids ids = DT_IDS_EMPTY;
 *     DT_TRY(dt_tokenizer_load(&t, "tokenizer.json", err));
 *     struct dt_encoder *e = dt_encoder_new(t);
 *     dt_encoder_encode(e, text, size, &ids);
 *
 * A tokenizer is immutable after loading and may be shared by threads. Each thread needs a
 * separate encoder, which holds the caches.
 */
#ifndef DT_TOKEN_TOKENIZER_H
#define DT_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "steps/span.h"

struct dt_tokenizer;
struct dt_encoder;

#define DT_NO_TOKEN  UINT32_MAX
#define DT_FRAME_MAX 8

void dt_tokenizer_free(struct dt_tokenizer *t); /* NULL is fine */

uint32_t dt_tokenizer_size(const struct dt_tokenizer *t); /* highest id + 1 */
/* The end-of-text token (EOT): "<|endoftext|>", "</s>" or similar; DT_NO_TOKEN if absent. */
uint32_t dt_tokenizer_eot(const struct dt_tokenizer *t);
/* Identifies the mapping from text to ids: equal for equal vocabularies, merges and patterns,
 * independent of the file format. */
uint64_t dt_tokenizer_fingerprint(const struct dt_tokenizer *t);
/* The id of a token by its bytes, including special tokens; DT_NO_TOKEN if absent. */
uint32_t dt_tokenizer_find(const struct dt_tokenizer *t, const char *bytes, size_t size);
/* The token of masked language modelling, "[MASK]" or "<mask>"; DT_NO_TOKEN if absent. */
uint32_t dt_tokenizer_find_mask(const struct dt_tokenizer *t);
/* The bytes of a token; borrowed. *size is 0 if the id is unused. */
const char *dt_tokenizer_bytes(const struct dt_tokenizer *t, uint32_t id, size_t *size);
/* Whether the token is special, such as "[MASK]": text encodes to it only if the encoder
 * allows special tokens. */
bool dt_tokenizer_is_special(const struct dt_tokenizer *t, uint32_t id);
/* Whether the token continues the word of the token before it, for whole-word masking: in
 * WordPiece "##", in byte-level BPE a token that starts with a letter, a number, a mark or a
 * partial character. A word's first token without a leading space counts as continuing. */
bool dt_tokenizer_continues_word(const struct dt_tokenizer *t, uint32_t id);

/* Special tokens before and after the ids of a document. */
struct dt_frame {
    uint32_t before[DT_FRAME_MAX], after[DT_FRAME_MAX];
    size_t before_count, after_count;
};

enum dt_frame_policy {
    DT_FRAME_AUTO, /* WordPiece: TEMPLATE; others: EOT if defined */
    DT_FRAME_NONE,
    DT_FRAME_EOT,
    DT_FRAME_BOS,
    DT_FRAME_BOS_EOT,
    DT_FRAME_TEMPLATE /* the file's post-processor: "[CLS]" and "[SEP]" for BERT */
};
extern const char *const dt_frame_policies[]; /* names by enumerator, NULL-terminated */

/* DT_EINVALID if the tokenizer does not define the token. */
int dt_tokenizer_frame(const struct dt_tokenizer *t, enum dt_frame_policy policy,
                       struct dt_frame *frame, struct dt_error *err) DT_MUST_CHECK;

/* Writes count ids between those of the frame to `to`, cut to most ids in all, more than those of
 * the frame; returns their number. */
size_t dt_frame_fit(const struct dt_frame *frame, const uint32_t *ids, size_t count, size_t most,
                    uint32_t *to);

/* A growing list; all-zero is a valid empty one; free with dt_spans_release. */
struct dt_spans {
    struct dt_span *data;
    size_t count, capacity;
};
void dt_spans_release(struct dt_spans *spans);

/* Encoders borrow their tokenizer. */
struct dt_encoder *dt_encoder_new(const struct dt_tokenizer *t);
void dt_encoder_free(struct dt_encoder *e); /* NULL is fine */
/* Encode the text of a special token as that token (default: as ordinary text). */
void dt_encoder_allow_special(struct dt_encoder *e, int allow);
/* Makes dt_encoder_encode append to spans, for each id, its byte range in the text; NULL stops
 * it. WordPiece drops text, so its spans may have gaps. spans is borrowed. */
void dt_encoder_keep_spans(struct dt_encoder *e, struct dt_spans *spans);
/* Appends the ids of text, any bytes, without EOT. Added tokens that are not special always
 * match. */
void dt_encoder_encode(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids);

/* Appends the text of the ids, including special tokens; WordPiece words are separated by
 * spaces. DT_EFORMAT names the first id outside the vocabulary. */
int dt_tokenizer_decode(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
                        struct dt_buffer *text, struct dt_error *err) DT_MUST_CHECK;

/* Appends what a token adds to a text that goes on before and after it, for text that is shown
 * while it is generated. */
void dt_tokenizer_add_token_text(const struct dt_tokenizer *t, uint32_t id, struct dt_buffer *text);

#endif
