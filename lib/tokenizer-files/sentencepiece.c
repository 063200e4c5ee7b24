/* SPDX-License-Identifier: MIT */
#include "tokenizer-files/sentencepiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "encoding/protobuf.h"
#include "steps/sentencepiece-pieces.h"
#include "token/tokenizer.h"
#include "unicode/utf8.h"

#define PIECE_LIMIT (1u << 22)

/* A field of a message and where its value goes. */
enum target_type { TARGET_BOOL, TARGET_NUMBER, TARGET_FLOAT, TARGET_BYTES };

struct target {
    int number;
    enum target_type type;
    const char *name;
    void *to;
};

static int set_target(const struct target *t, const struct dt_pb_reader *f, struct dt_error *err)
{
    static const enum dt_protobuf_type expected[] = {[TARGET_BOOL] = DT_PROTOBUF_VARINT,
                                                     [TARGET_NUMBER] = DT_PROTOBUF_VARINT,
                                                     [TARGET_FLOAT] = DT_PROTOBUF_FIXED32,
                                                     [TARGET_BYTES] = DT_PROTOBUF_BYTES};
    uint32_t bits = (uint32_t)f->number;
    if (f->type != expected[t->type])
        return dt_fail(err, DT_EFORMAT, "\"%s\" has wire type %d, not %d", t->name, (int)f->type,
                       (int)expected[t->type]);
    switch (t->type) {
    case TARGET_BOOL:
        *(bool *)t->to = f->number != 0;
        break;
    case TARGET_NUMBER:
        *(uint64_t *)t->to = f->number;
        break;
    case TARGET_FLOAT:
        memcpy(t->to, &bits, sizeof bits);
        break;
    case TARGET_BYTES:
        *(struct dt_sentencepiece_text *)t->to =
            (struct dt_sentencepiece_text){(const char *)f->bytes, (size_t)f->number};
        break;
    }
    return 0;
}

/* Reads the fields of targets, ended by a NULL name, and skips the others. */
static int read_message(const struct dt_pb_reader *field, const struct target *targets,
                        struct dt_error *err)
{
    struct dt_pb_reader r = {.data = field->bytes, .size = (size_t)field->number};
    while (dt_protobuf_next(&r))
        for (const struct target *t = targets; t->name; t++)
            if (t->number == r.field)
                DT_TRY(set_target(t, &r, err));
    return r.damaged ? dt_fail(err, DT_EFORMAT, "damaged, or not a SentencePiece model") : 0;
}

static int add_piece(struct dt_sentencepiece *m, const struct dt_pb_reader *message,
                     struct dt_error *err)
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
    bool zero = p.text.size > 0 && memchr(p.text.data, 0, p.text.size);
    if (p.text.size == 0 || (zero && p.kind != DT_SENTENCEPIECE_UNUSED) ||
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

static int read_trainer(struct dt_sentencepiece *m, const struct dt_pb_reader *message,
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

static int read_normalizer(struct dt_sentencepiece *m, const struct dt_pb_reader *message,
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

static int refuse_denormalizer(const struct dt_pb_reader *message, struct dt_error *err)
{
    struct dt_sentencepiece_text map = {NULL, 0};
    const struct target targets[] = {{2, TARGET_BYTES, "precompiled_charsmap", &map},
                                     {0, 0, NULL, NULL}};
    if (read_message(message, targets, err) < 0)
        return dt_fail_context(err, "denormalizer_spec");
    if (map.size > 0)
        return dt_fail(err, DT_EFORMAT, "denormalizer_spec: a character map is not supported");
    return 0;
}

static int read_field(struct dt_sentencepiece *m, const struct dt_pb_reader *f,
                      struct dt_error *err)
{
    if (f->field < 1 || f->field > 5)
        return 0;
    if (f->type != DT_PROTOBUF_BYTES)
        return dt_fail(err, DT_EFORMAT, "field %d is not a message: not a SentencePiece model",
                       f->field);
    switch (f->field) {
    case 1:
        return add_piece(m, f, err);
    case 2:
        return read_trainer(m, f, err);
    case 3:
        return read_normalizer(m, f, err);
    case 5:
        return refuse_denormalizer(f, err);
    }
    return 0; /* 4: SentencePiece's samples for its own tests */
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
    int byte = dt_sentencepiece_byte(p->text.data, p->text.size);
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
    struct dt_pb_reader r = {.data = (const unsigned char *)data, .size = size};
    int rc = 0;
    *m = (struct dt_sentencepiece){.type = DT_SENTENCEPIECE_UNIGRAM,
                                   .unknown = DT_NO_TOKEN,
                                   .add_dummy_prefix = true,
                                   .remove_extra_whitespaces = true,
                                   .escape_whitespaces = true,
                                   .unknown_surface = {" \xe2\x81\x87 ", 5}};
    while (rc == 0 && dt_protobuf_next(&r))
        rc = read_field(m, &r, err);
    if (rc == 0 && r.damaged)
        rc = dt_fail(err, DT_EFORMAT, "damaged or cut off, or not a SentencePiece model");
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
