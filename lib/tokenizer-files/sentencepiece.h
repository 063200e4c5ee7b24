/* SPDX-License-Identifier: MIT */
/*
 * SentencePiece's tokenizer.model as its protobuf holds it (sentencepiece_model.proto), checked;
 * private to lib/tokenizer-files.
 *
 *     struct dt_sentencepiece m;
 *     DT_TRY(dt_sentencepiece_read(&m, data, size, err));
 *     ... m.pieces[id]
 *     dt_sentencepiece_release(&m);
 */
#ifndef DT_TOKENIZER_FILES_SENTENCEPIECE_H
#define DT_TOKENIZER_FILES_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum dt_sentencepiece_type {
    DT_SENTENCEPIECE_UNIGRAM = 1,
    DT_SENTENCEPIECE_BPE = 2,
    DT_SENTENCEPIECE_WORD = 3,
    DT_SENTENCEPIECE_CHAR = 4
};

enum dt_sentencepiece_kind {
    DT_SENTENCEPIECE_NORMAL = 1,
    DT_SENTENCEPIECE_UNKNOWN = 2,
    DT_SENTENCEPIECE_CONTROL = 3,
    DT_SENTENCEPIECE_USER_DEFINED = 4,
    DT_SENTENCEPIECE_UNUSED = 5,
    DT_SENTENCEPIECE_BYTE = 6
};

/* A string; borrowed from the file's bytes. */
struct dt_sentencepiece_text {
    const char *data;
    size_t size;
};

struct dt_sentencepiece_piece {
    struct dt_sentencepiece_text text; /* UTF-8, not empty; without 0 unless it is unused */
    float score;                       /* finite */
    uint64_t kind;                     /* enum dt_sentencepiece_kind */
};

struct dt_sentencepiece {
    struct dt_sentencepiece_piece *pieces; /* [count], by id */
    uint32_t count, capacity;
    uint32_t unknown;      /* id */
    uint32_t bytes[256];   /* ids, with byte_fallback */
    uint64_t type;         /* enum dt_sentencepiece_type */
    bool byte_fallback;    /* unknown characters are pieces "<0x00>" .. "<0xFF>" */
    bool space_is_suffix;  /* treat_whitespace_as_suffix */
    bool add_dummy_prefix; /* a space before the text */
    bool remove_extra_whitespaces;
    bool escape_whitespaces; /* write the mark for a space */
    struct dt_sentencepiece_text unknown_surface, character_map;
};

/* data is borrowed. DT_EFORMAT for what SentencePiece itself refuses, for a denormalizer, and for a
 * piece that is not UTF-8. After a failure nothing needs a release. */
int dt_sentencepiece_read(struct dt_sentencepiece *m, const char *data, size_t size,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_sentencepiece_release(struct dt_sentencepiece *m);

#endif
