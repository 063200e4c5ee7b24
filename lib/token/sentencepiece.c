/* SPDX-License-Identifier: MIT */
#include "token/sentencepiece.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "token/tokenizer.h"
#include "unicode/utf8.h"

#define PIECE_LIMIT (1u << 22)

/* A field of a message and where its value goes. */
enum target_type { TARGET_BOOL, TARGET_NUMBER, TARGET_FLOAT, TARGET_BYTES };

struct target {
    uint32_t number;
    enum target_type type;
    const char *name;
    void *to;
};

static int set_target(const struct target *t, const struct dt_protobuf_field *f,
                      struct dt_error *err)
{
    static const enum dt_protobuf_type expected[] = {[TARGET_BOOL] = DT_PROTOBUF_VARINT,
                                                     [TARGET_NUMBER] = DT_PROTOBUF_VARINT,
                                                     [TARGET_FLOAT] = DT_PROTOBUF_FIXED32,
                                                     [TARGET_BYTES] = DT_PROTOBUF_BYTES};
    uint32_t bits = (uint32_t)f->value;
    if (f->type != expected[t->type])
        return dt_fail(err, DT_EFORMAT, "\"%s\" has wire type %d, not %d", t->name, (int)f->type,
                       (int)expected[t->type]);
    switch (t->type) {
    case TARGET_BOOL:
        *(bool *)t->to = f->value != 0;
        break;
    case TARGET_NUMBER:
        *(uint64_t *)t->to = f->value;
        break;
    case TARGET_FLOAT:
        memcpy(t->to, &bits, sizeof bits);
        break;
    case TARGET_BYTES:
        *(struct dt_protobuf *)t->to = f->bytes;
        break;
    }
    return 0;
}

/* Reads the fields of targets, ended by a NULL name, and skips the others. */
static int read_message(struct dt_protobuf message, const struct target *targets,
                        struct dt_error *err)
{
    struct dt_protobuf_field field;
    int rc;
    while ((rc = dt_protobuf_next(&message, &field, err)) > 0)
        for (const struct target *t = targets; t->name; t++)
            if (t->number == field.number)
                DT_TRY(set_target(t, &field, err));
    return rc;
}

static int add_piece(struct dt_sentencepiece *m, struct dt_protobuf message, struct dt_error *err)
{
    struct dt_sentencepiece_piece p = {.kind = DT_SENTENCEPIECE_NORMAL};
    const struct target targets[] = {{1, TARGET_BYTES, "piece", &p.text},
                                     {2, TARGET_FLOAT, "score", &p.score},
                                     {3, TARGET_NUMBER, "type", &p.kind},
                                     {0, 0, NULL, NULL}};
    if (m->count == PIECE_LIMIT)
        return dt_fail(err, DT_EFORMAT, "more than %u pieces", PIECE_LIMIT);
    if (read_message(message, targets, err) < 0)
        return dt_fail_context(err, "piece %u", m->count);
    if (p.text.size == 0 || memchr(p.text.data, 0, p.text.size) ||
        dt_utf8_valid_prefix(p.text.data, p.text.size) < p.text.size)
        return dt_fail(err, DT_EFORMAT, "piece %u is empty, holds a zero byte or is not UTF-8",
                       m->count);
    if (!isfinite(p.score))
        return dt_fail(err, DT_EFORMAT, "piece %u has no finite score", m->count);
    if (p.kind < DT_SENTENCEPIECE_NORMAL || p.kind > DT_SENTENCEPIECE_BYTE)
        return dt_fail(err, DT_EFORMAT, "piece %u has type %llu: known are 1 to 6", m->count,
                       (unsigned long long)p.kind);
    DT_GROW(m->pieces, m->count, m->capacity);
    m->pieces[m->count++] = p;
    return 0;
}

static int read_trainer(struct dt_sentencepiece *m, struct dt_protobuf message,
                        struct dt_error *err)
{
    const struct target targets[] = {
        {3, TARGET_NUMBER, "model_type", &m->type},
        {24, TARGET_BOOL, "treat_whitespace_as_suffix", &m->space_is_suffix},
        {35, TARGET_BOOL, "byte_fallback", &m->byte_fallback},
        {44, TARGET_BYTES, "unk_surface", &m->unknown_surface},
        {0, 0, NULL, NULL}};
    return read_message(message, targets, err) < 0 ? dt_fail_context(err, "trainer_spec") : 0;
}

static int read_normalizer(struct dt_sentencepiece *m, struct dt_protobuf message,
                           struct dt_error *err)
{
    const struct target targets[] = {
        {2, TARGET_BYTES, "precompiled_charsmap", &m->character_map},
        {3, TARGET_BOOL, "add_dummy_prefix", &m->add_dummy_prefix},
        {4, TARGET_BOOL, "remove_extra_whitespaces", &m->remove_extra_whitespaces},
        {5, TARGET_BOOL, "escape_whitespaces", &m->escape_whitespaces},
        {0, 0, NULL, NULL}};
    return read_message(message, targets, err) < 0 ? dt_fail_context(err, "normalizer_spec") : 0;
}

static int refuse_denormalizer(struct dt_protobuf message, struct dt_error *err)
{
    struct dt_protobuf map = {NULL, 0};
    const struct target targets[] = {{2, TARGET_BYTES, "precompiled_charsmap", &map},
                                     {0, 0, NULL, NULL}};
    DT_TRY(read_message(message, targets, err));
    if (map.size > 0)
        return dt_fail(err, DT_EFORMAT, "denormalizer_spec: a character map is not supported");
    return 0;
}

static int read_field(struct dt_sentencepiece *m, const struct dt_protobuf_field *f,
                      struct dt_error *err)
{
    if (f->number < 1 || f->number > 5)
        return 0;
    if (f->type != DT_PROTOBUF_BYTES)
        return dt_fail(err, DT_EFORMAT, "field %u is not a message: not a SentencePiece model",
                       f->number);
    switch (f->number) {
    case 1:
        return add_piece(m, f->bytes, err);
    case 2:
        return read_trainer(m, f->bytes, err);
    case 3:
        return read_normalizer(m, f->bytes, err);
    case 5:
        return refuse_denormalizer(f->bytes, err);
    }
    return 0; /* 4: SentencePiece's samples for its own tests */
}

static int byte_of(const struct dt_sentencepiece_piece *p)
{
    char spelled[8];
    for (int byte = 0; p->text.size == 6 && byte < 256; byte++) {
        snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
        if (memcmp(spelled, p->text.data, 6) == 0)
            return byte;
    }
    return -1;
}

static int check_piece(struct dt_sentencepiece *m, uint32_t id, struct dt_error *err)
{
    const struct dt_sentencepiece_piece *p = &m->pieces[id];
    if (p->kind == DT_SENTENCEPIECE_UNKNOWN) {
        if (m->unknown != DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT, "pieces %u and %u are both the unknown piece",
                           m->unknown, id);
        m->unknown = id;
    }
    if (p->kind != DT_SENTENCEPIECE_BYTE)
        return 0;
    int byte = byte_of(p);
    if (byte < 0 || !m->byte_fallback)
        return dt_fail(err, DT_EFORMAT, "piece %u is a byte %s", id,
                       byte < 0 ? "but is not spelled <0x00> to <0xFF>"
                                : "in a model without byte_fallback");
    m->bytes[byte] = id;
    return 0;
}

static int check_pieces(struct dt_sentencepiece *m, struct dt_error *err)
{
    memset(m->bytes, 0xff, sizeof m->bytes);
    for (uint32_t id = 0; id < m->count; id++)
        DT_TRY(check_piece(m, id, err));
    if (m->unknown == DT_NO_TOKEN)
        return dt_fail(err, DT_EFORMAT,
                       "no piece is the unknown piece: not a SentencePiece model, "
                       "or cut off");
    for (int byte = 0; m->byte_fallback && byte < 256; byte++)
        if (m->bytes[byte] == DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT, "byte_fallback without a piece <0x%02X>", byte);
    return 0;
}

int dt_sentencepiece_read(struct dt_sentencepiece *m, const char *data, size_t size,
                          struct dt_error *err)
{
    struct dt_protobuf message = {data, size};
    struct dt_protobuf_field field;
    int rc;
    *m = (struct dt_sentencepiece){.type = DT_SENTENCEPIECE_UNIGRAM,
                                   .unknown = DT_NO_TOKEN,
                                   .add_dummy_prefix = true,
                                   .remove_extra_whitespaces = true,
                                   .escape_whitespaces = true,
                                   .unknown_surface = {" \xe2\x81\x87 ", 5}};
    while ((rc = dt_protobuf_next(&message, &field, err)) > 0)
        if ((rc = read_field(m, &field, err)) < 0)
            break;
    if (rc == 0)
        rc = check_pieces(m, err);
    if (rc < 0)
        dt_sentencepiece_release(m);
    return rc;
}

void dt_sentencepiece_release(struct dt_sentencepiece *m)
{
    free(m->pieces);
    *m = (struct dt_sentencepiece){.pieces = NULL};
}
