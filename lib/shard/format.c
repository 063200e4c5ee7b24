/* SPDX-License-Identifier: MIT */
#include "shard/format.h"

#include <stdlib.h>
#include <zstd.h>

#include "hash/hash.h"

#define STORED_BLOCK ((size_t)128 << 10) /* zstd's largest block */
#define HAS_MASK     1u                  /* the only flag of a version 2 header */

static void put16(struct dt_buffer *b, uint16_t v)
{
    dt_buffer_append(b, &v, sizeof v);
}

static void put32(struct dt_buffer *b, uint32_t v)
{
    dt_buffer_append(b, &v, sizeof v);
}

static void put64(struct dt_buffer *b, uint64_t v)
{
    dt_buffer_append(b, &v, sizeof v);
}

/* Starts a skippable frame of size bytes in total. */
static void put_head(struct dt_buffer *b, uint32_t magic, size_t size, const char *name)
{
    put32(b, magic);
    put32(b, (uint32_t)(size - DT_FRAME_HEAD));
    dt_buffer_append(b, name, 4);
}

/* Ends the frame that starts at offset start. */
static void put_checksum(struct dt_buffer *b, size_t start)
{
    put64(b, dt_hash_xxh64(b->data + start, b->size - start));
}

void dt_format_put_header(struct dt_buffer *b, const struct dt_shard_info *info)
{
    const char *provenance = info->provenance ? info->provenance : "";
    size_t start = b->size, n = strlen(provenance);
    put_head(b, DT_HEADER_FRAME, DT_HEADER_HEAD(info->masked) + n + 8, "dtsH");
    put16(b, info->masked ? 2 : 1);
    dt_buffer_add_char(b, (char)info->token_bytes);
    dt_buffer_add_char(b, info->row ? DT_SHARD_LAYOUT_PADDED : DT_SHARD_LAYOUT_LIST);
    put32(b, info->vocab_size);
    put32(b, info->eot);
    put64(b, info->tokenizer);
    put32(b, (uint32_t)n);
    if (info->masked) {
        put32(b, HAS_MASK);
        put32(b, info->row);
        put32(b, info->padding_id);
    }
    dt_buffer_append(b, provenance, n);
    put_checksum(b, start);
}

void dt_format_put_index(struct dt_buffer *b, const struct dt_index *index, const void *records,
                         size_t size, const void *mask)
{
    size_t start = b->size, mask_size = index->masked ? index->mask_size : 0;
    put_head(b, DT_INDEX_FRAME, DT_INDEX_HEAD(index->masked) + size + mask_size + 8, "dtsI");
    put32(b, index->tokens);
    put32(b, index->data_size);
    put32(b, index->documents);
    put32(b, index->compressed);
    put64(b, index->first_token);
    put64(b, index->first_document);
    put64(b, index->document_start);
    put64(b, index->data_hash);
    if (index->masked)
        put32(b, index->mask_size);
    dt_buffer_append(b, records, size);
    if (mask_size > 0)
        dt_buffer_append(b, mask, mask_size);
    put_checksum(b, start);
}

void dt_format_put_lineage(struct dt_buffer *b, const void *text, size_t size)
{
    size_t start = b->size;
    put_head(b, DT_LINEAGE_FRAME, DT_LINEAGE_HEAD + size + 8, "dtsL");
    dt_buffer_append(b, text, size);
    put_checksum(b, start);
}

void dt_format_put_footer(struct dt_buffer *b, const struct dt_footer *footer, bool masked)
{
    size_t start = b->size;
    put_head(b, DT_FOOTER_FRAME, DT_FOOTER_SIZE(masked), "dtsF");
    put64(b, footer->tokens);
    put64(b, footer->records);
    put64(b, footer->text_bytes);
    put64(b, footer->frames);
    put64(b, footer->hash);
    put64(b, footer->seek_hash);
    if (masked) {
        put64(b, footer->padding);
        put64(b, footer->padding_records);
        put64(b, footer->targets);
    }
    put_checksum(b, start);
}

void dt_format_put_seek_table(struct dt_buffer *b, const struct dt_seek_entry *entries,
                              size_t count)
{
    put32(b, DT_SEEK_FRAME);
    put32(b, (uint32_t)(count * DT_SEEK_ENTRY + DT_SEEK_END));
    dt_buffer_append(b, entries, count * DT_SEEK_ENTRY);
    put32(b, (uint32_t)count);
    dt_buffer_add_char(b, (char)DT_SEEK_CHECKSUM);
    put32(b, DT_SEEK_MAGIC);
}

/* RFC 8878: a single-segment frame with its content size in 4 bytes and a
 * checksum, in raw blocks. */
void dt_format_put_stored(struct dt_buffer *b, const void *data, size_t size)
{
    const char *from = data;
    put32(b, ZSTD_MAGICNUMBER);
    dt_buffer_add_char(b, (char)0xa4);
    put32(b, (uint32_t)size);
    size_t left = size;
    do {
        size_t n = left < STORED_BLOCK ? left : STORED_BLOCK;
        left -= n;
        uint32_t head = (uint32_t)n << 3 | (left == 0);
        dt_buffer_append(b, &head, 3);
        dt_buffer_append(b, from, n);
        from += n;
    } while (left > 0);
    put32(b, (uint32_t)dt_hash_xxh64(data, size));
}

size_t dt_frame_limit(uint32_t magic)
{
    switch (magic) {
    case DT_HEADER_FRAME:
        return DT_HEADER_HEAD(true) + DT_PROVENANCE_MAX + 8;
    case DT_INDEX_FRAME:
        return DT_INDEX_HEAD(true) + sizeof(struct dt_shard_document) * DT_FRAME_DOCUMENTS +
               dt_format_mask_bytes(DT_FRAME_TOKENS) + 8;
    case DT_LINEAGE_FRAME:
        return DT_LINEAGE_HEAD + DT_PROVENANCE_MAX + 8;
    case DT_FOOTER_FRAME:
        return DT_FOOTER_SIZE(true);
    case DT_SEEK_FRAME:
        return DT_FRAME_HEAD + (size_t)DT_SEEK_FRAMES * DT_SEEK_ENTRY + DT_SEEK_END;
    default:
        return 0;
    }
}

/* Checks magic, name, size and checksum of a frame; least: minimum size. */
static int check_frame(const char *frame, size_t size, size_t least, uint32_t magic,
                       const char *name, struct dt_error *err)
{
    if (size < least || dt_format_get32(frame) != magic ||
        memcmp(frame + DT_FRAME_HEAD, name, 4) != 0)
        return dt_fail(err, DT_EFORMAT, "is not a dt token stream or is damaged");
    if (dt_format_get32(frame + 4) != size - DT_FRAME_HEAD ||
        dt_format_get64(frame + size - 8) != dt_hash_xxh64(frame, size - 8))
        return dt_fail(err, DT_EFORMAT, "checksum does not match: the data is damaged");
    return 0;
}

/* Parses the fields that version 2 adds to the header. */
static int get_layout(const char *p, uint32_t layout, struct dt_shard_info *info,
                      struct dt_error *err)
{
    info->masked = true;
    info->row = dt_format_get32(p + 40);
    info->padding_id = dt_format_get32(p + 44);
    if (dt_format_get32(p + 36) != HAS_MASK)
        return dt_fail(err, DT_EFORMAT, "unknown flags %u: a newer dt may read them",
                       dt_format_get32(p + 36));
    if (layout == DT_SHARD_LAYOUT_LIST
            ? info->row != 0 || info->padding_id != 0
            : info->row < 2 || info->row > DT_ROW_MAX || info->padding_id >= info->vocab_size)
        return dt_fail(err, DT_EFORMAT, "the header contradicts itself");
    return 0;
}

int dt_format_get_header(const void *frame, size_t size, struct dt_shard_info *info,
                         char **provenance, struct dt_error *err)
{
    const char *p = frame;
    *provenance = NULL;
    DT_TRY(check_frame(p, size, DT_HEADER_HEAD(false) + 8, DT_HEADER_FRAME, "dtsH", err));
    unsigned version = dt_format_get32(p + 12) & 0xffff, layout = (unsigned char)p[15];
    if (version < 1 || version > DT_FORMAT_VERSION)
        return dt_fail(err, DT_EFORMAT, "format version %u: this program reads versions 1 to %d",
                       version, DT_FORMAT_VERSION);
    if (layout > (version == 1 ? DT_SHARD_LAYOUT_LIST : DT_SHARD_LAYOUT_PADDED))
        return dt_fail(err, DT_EFORMAT, "unknown layout %u: a newer dt may read it", layout);
    bool masked = version == 2;
    size_t head = DT_HEADER_HEAD(masked);
    *info = (struct dt_shard_info){.token_bytes = (unsigned char)p[14],
                                   .vocab_size = dt_format_get32(p + 16),
                                   .eot = dt_format_get32(p + 20),
                                   .tokenizer = dt_format_get64(p + 24)};
    if (size < head + 8 || dt_format_get32(p + 32) != size - head - 8 || info->vocab_size == 0 ||
        info->vocab_size > DT_VOCAB_MAX ||
        info->token_bytes != (info->vocab_size <= 65536 ? 2 : 4) ||
        (info->eot != UINT32_MAX && info->eot >= info->vocab_size))
        return dt_fail(err, DT_EFORMAT, "the header contradicts itself");
    if (masked)
        DT_TRY(get_layout(p, layout, info, err));
    *provenance = dt_strndup(p + head, size - head - 8);
    info->provenance = *provenance;
    return 0;
}

int dt_format_get_lineage(const void *frame, size_t size, struct json_object **records,
                          struct dt_error *err)
{
    const char *p = frame;
    *records = NULL;
    DT_TRY(check_frame(p, size, DT_LINEAGE_HEAD + 8, DT_LINEAGE_FRAME, "dtsL", err));
    DT_TRY(dt_json_parse(p + DT_LINEAGE_HEAD, size - DT_LINEAGE_HEAD - 8, "the lineage", records,
                         err));
    int rc = dt_lineage_check(*records, "the token stream", err);
    if (rc < 0) {
        json_object_put(*records);
        *records = NULL;
    }
    return rc;
}

int dt_format_get_index(const void *frame, size_t size, bool masked, struct dt_index *index,
                        struct dt_error *err)
{
    const char *p = frame;
    DT_TRY(check_frame(p, size, DT_INDEX_HEAD(masked) + 8, DT_INDEX_FRAME, "dtsI", err));
    *index = (struct dt_index){.tokens = dt_format_get32(p + 12),
                               .data_size = dt_format_get32(p + 16),
                               .documents = dt_format_get32(p + 20),
                               .compressed = dt_format_get32(p + 24),
                               .mask_size = masked ? dt_format_get32(p + 60) : 0,
                               .masked = masked,
                               .first_token = dt_format_get64(p + 28),
                               .first_document = dt_format_get64(p + 36),
                               .document_start = dt_format_get64(p + 44),
                               .data_hash = dt_format_get64(p + 52)};
    if (index->tokens > DT_FRAME_TOKENS || index->documents > DT_FRAME_DOCUMENTS ||
        index->compressed > (masked ? 3 : 1) || index->document_start > index->first_token ||
        index->mask_size > size - DT_INDEX_HEAD(masked) - 8 ||
        index->data_size > ZSTD_COMPRESSBOUND((size_t)4 * DT_FRAME_TOKENS))
        return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    return 0;
}

int dt_format_get_footer(const void *frame, size_t size, bool masked, struct dt_footer *footer,
                         struct dt_error *err)
{
    const char *p = frame;
    if (size != DT_FOOTER_SIZE(masked))
        return dt_fail(err, DT_EFORMAT, "is not a dt token stream or is damaged");
    DT_TRY(check_frame(p, size, DT_FOOTER_SIZE(masked), DT_FOOTER_FRAME, "dtsF", err));
    *footer = (struct dt_footer){.tokens = dt_format_get64(p + 12),
                                 .records = dt_format_get64(p + 20),
                                 .text_bytes = dt_format_get64(p + 28),
                                 .frames = dt_format_get64(p + 36),
                                 .hash = dt_format_get64(p + 44),
                                 .seek_hash = dt_format_get64(p + 52),
                                 .targets = dt_format_get64(p + 12)};
    if (!masked)
        return 0;
    footer->padding = dt_format_get64(p + 60);
    footer->padding_records = dt_format_get64(p + 68);
    footer->targets = dt_format_get64(p + 76);
    if (footer->padding > footer->tokens || footer->padding_records > footer->records ||
        footer->targets > footer->tokens)
        return dt_fail(err, DT_EFORMAT, "the footer contradicts itself");
    return 0;
}

struct dt_frame_decoder {
    ZSTD_DCtx *zstd;
    struct dt_shard_document *documents;
    size_t capacity;
};

struct dt_frame_decoder *dt_frame_decoder_new(void)
{
    struct dt_frame_decoder *d = dt_alloc(1, sizeof *d);
    d->zstd = dt_checked(ZSTD_createDCtx());
    return d;
}

void dt_frame_decoder_free(struct dt_frame_decoder *d)
{
    ZSTD_freeDCtx(d->zstd);
    free(d->documents);
    free(d);
}

/* Decompresses n bytes into exactly size bytes. */
static int decompress(struct dt_frame_decoder *d, void *to, size_t size, const void *from, size_t n,
                      struct dt_error *err)
{
    size_t made = ZSTD_decompressDCtx(d->zstd, to, size, from, n);
    if (ZSTD_isError(made))
        return dt_fail(err, DT_EFORMAT, "zstd: %s", ZSTD_getErrorName(made));
    if (made != size)
        return dt_fail(err, DT_EFORMAT, "decompresses to %zu bytes instead of %zu", made, size);
    return 0;
}

int dt_format_decode_documents(struct dt_frame_decoder *d, const void *frame, size_t size,
                               const struct dt_index *index,
                               const struct dt_shard_document **documents, struct dt_error *err)
{
    size_t head = DT_INDEX_HEAD(index->masked);
    const char *records = (const char *)frame + head;
    size_t n = size - head - index->mask_size - 8;
    size_t plain = index->documents * sizeof *d->documents;
    if (index->documents > d->capacity) {
        d->capacity = index->documents;
        d->documents = dt_realloc(d->documents, d->capacity, sizeof *d->documents);
    }
    *documents = d->documents;
    if (index->compressed & DT_FORMAT_RECORDS_COMPRESSED)
        DT_TRY(decompress(d, d->documents, plain, records, n, err));
    else if (n != plain)
        return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    else if (n > 0)
        memcpy(d->documents, records, n);
    uint64_t start = index->document_start, end = index->first_token + index->tokens;
    uint64_t kinds = index->masked ? DT_KINDS : 0;
    for (uint32_t i = 0; i < index->documents; i++) {
        uint64_t tokens = d->documents[i].tokens & ~kinds;
        if (tokens > end - start || start + tokens < index->first_token)
            return dt_fail(err, DT_EFORMAT, "document %llu does not end in its frame",
                           (unsigned long long)(index->first_document + i));
        start += tokens;
    }
    return 0;
}

int dt_format_decode_mask(struct dt_frame_decoder *d, const void *frame, size_t size,
                          const struct dt_index *index, uint8_t *mask, struct dt_error *err)
{
    const char *from = (const char *)frame + size - 8 - index->mask_size;
    size_t plain = dt_format_mask_bytes(index->tokens);
    if (index->compressed & DT_FORMAT_MASK_COMPRESSED)
        return decompress(d, mask, plain, from, index->mask_size, err);
    if (index->mask_size != plain)
        return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    if (plain > 0)
        memcpy(mask, from, plain);
    return 0;
}

/* GCC vectorizes loops of fixed length at -O2. */
#define BLOCK 64

static void mark_all(uint32_t *ids)
{
    for (unsigned k = 0; k < BLOCK; k++)
        ids[k] |= DT_NO_LOSS;
}

/* Marks the ids whose bit is 0. Usually few bits are 0, or few are 1. */
static void mark_block(uint32_t *ids, uint64_t bits)
{
    bool few = __builtin_popcountll(bits) < BLOCK / 2;
    if (few)
        mark_all(ids);
    for (uint64_t rest = few ? bits : ~bits; rest != 0; rest &= rest - 1)
        ids[__builtin_ctzll(rest)] ^= DT_NO_LOSS;
}

/* The bits of BLOCK ids from `shift` bits after p. */
static uint64_t get_bits(const uint8_t *p, unsigned shift)
{
    uint64_t bits = dt_format_get64(p);
    return shift ? bits >> shift | (uint64_t)p[8] << (BLOCK - shift) : bits;
}

void dt_format_mark_ids(uint32_t *ids, size_t count, const uint8_t *mask, size_t first)
{
    size_t i = 0;
    const uint8_t *p = mask + first / 8;
    for (; i + BLOCK <= count; i += BLOCK, p += BLOCK / 8) {
        uint64_t bits = get_bits(p, first % 8);
        if (bits != UINT64_MAX)
            mark_block(ids + i, bits);
    }
    for (; i < count; i++)
        ids[i] |= (mask[(first + i) / 8] >> ((first + i) % 8) & 1) ? 0 : DT_NO_LOSS;
}

uint64_t dt_format_count_targets(const uint8_t *mask, size_t count)
{
    uint64_t targets = 0;
    for (size_t i = 0; i < count; i++)
        targets += mask[i / 8] >> (i % 8) & 1;
    return targets;
}

static uint32_t get_id(const void *ids, size_t i, uint32_t token_bytes)
{
    return token_bytes == 4 ? ((const uint32_t *)ids)[i] : ((const uint16_t *)ids)[i];
}

int dt_format_decode_ids(struct dt_frame_decoder *d, const void *data, const struct dt_index *index,
                         const struct dt_shard_info *info, void *ids, struct dt_error *err)
{
    if (dt_hash_xxh64(data, index->data_size) != index->data_hash)
        return dt_fail(err, DT_EFORMAT, "checksum does not match: the data is damaged");
    size_t size = (size_t)index->tokens * info->token_bytes;
    DT_TRY(decompress(d, ids, size, data, index->data_size, err));
    uint64_t i =
        dt_format_find_id_above(ids, index->tokens, info->token_bytes, info->vocab_size - 1);
    if (i < index->tokens)
        return dt_fail(err, DT_EFORMAT, "contains id %u, outside the vocabulary of %u",
                       get_id(ids, i, info->token_bytes), info->vocab_size);
    return 0;
}

void dt_content_init(struct dt_content *c, bool masked)
{
    if (c->ids == NULL) {
        c->ids = dt_checked(XXH64_createState());
        c->records = dt_checked(XXH64_createState());
        c->mask = dt_checked(XXH64_createState());
    }
    c->masked = masked;
    XXH64_reset(c->ids, 0);
    XXH64_reset(c->records, 0);
    XXH64_reset(c->mask, 0);
}

void dt_content_release(struct dt_content *c)
{
    XXH64_freeState(c->ids);
    XXH64_freeState(c->records);
    XXH64_freeState(c->mask);
    *c = (struct dt_content){0};
}

/* Hashes a byte per id: a frame may end within a byte of mask bits. */
static void add_mask(struct dt_content *c, const uint8_t *mask, size_t tokens)
{
    uint8_t bytes[512];
    for (size_t i = 0; i < tokens;) {
        size_t n = 0;
        for (; n < sizeof bytes && i < tokens; i++)
            bytes[n++] = mask[i / 8] >> (i % 8) & 1;
        XXH64_update(c->mask, bytes, n);
    }
}

void dt_content_add(struct dt_content *c, const void *ids, size_t ids_size,
                    const struct dt_shard_document *documents, size_t count, const uint8_t *mask,
                    size_t tokens)
{
    if (ids_size > 0)
        XXH64_update(c->ids, ids, ids_size);
    if (count > 0)
        XXH64_update(c->records, documents, count * sizeof *documents);
    if (c->masked)
        add_mask(c, mask, tokens);
}

void dt_shard_info_add(struct dt_shard_info *total, const struct dt_shard_info *more)
{
    total->tokens += more->tokens;
    total->documents += more->documents;
    total->text_bytes += more->text_bytes;
    total->padding += more->padding;
    total->targets += more->targets;
}

uint64_t dt_format_join_hashes(uint64_t before, uint64_t next)
{
    uint64_t words[2] = {before, next};
    return dt_hash_xxh64(words, sizeof words);
}

uint64_t dt_content_hash(const struct dt_content *c)
{
    uint64_t hash = dt_format_join_hashes(XXH64_digest(c->ids), XXH64_digest(c->records));
    return c->masked ? dt_format_join_hashes(hash, XXH64_digest(c->mask)) : hash;
}

/* If id is above last, last - id wraps and has its top bit set, or id itself has it. */
static bool wide_block_above(const uint32_t *ids, uint32_t last)
{
    uint32_t bits = 0;
    for (size_t k = 0; k < BLOCK; k++)
        bits |= (last - ids[k]) | ids[k];
    return bits >> 31;
}

static bool narrow_block_above(const uint16_t *ids, uint32_t last)
{
    uint32_t bits = 0;
    for (size_t k = 0; k < BLOCK; k++)
        bits |= last - ids[k];
    return bits >> 31;
}

uint64_t dt_format_find_id_above(const void *ids, uint64_t count, uint32_t token_bytes,
                                 uint32_t last)
{
    const uint16_t *narrow = ids;
    const uint32_t *wide = ids;
    uint64_t i = 0;
    while (i + BLOCK <= count && !(token_bytes == 4 ? wide_block_above(wide + i, last)
                                                    : narrow_block_above(narrow + i, last)))
        i += BLOCK;
    while (i < count && get_id(ids, i, token_bytes) <= last)
        i++;
    return i;
}

static void widen_block(uint32_t *to, const uint16_t *from)
{
    for (size_t k = 0; k < BLOCK; k++)
        to[k] = from[k];
}

void dt_format_widen_ids(uint32_t *to, const void *from, size_t count, uint32_t token_bytes)
{
    const uint16_t *narrow = from;
    size_t i = 0;
    if (token_bytes == 4) {
        memcpy(to, from, count * 4);
        return;
    }
    for (; i + BLOCK <= count; i += BLOCK)
        widen_block(to + i, narrow + i);
    for (; i < count; i++)
        to[i] = narrow[i];
}

int dt_shard_check_tokenizer(const struct dt_shard_info *info, const char *path,
                             uint64_t fingerprint, const char *tokenizer, struct dt_error *err)
{
    char made[DT_HASH_HEX], given[DT_HASH_HEX];
    if (info->tokenizer == fingerprint)
        return 0;
    const char *quote = tokenizer ? "'" : "";
    return dt_fail(err, DT_EINVALID,
                   "%s: was made with another tokenizer (%s, but %s%s%s is %s): use the one that "
                   "made it, or tokenize its text again",
                   path, dt_hash_hex(info->tokenizer, made), quote,
                   tokenizer ? tokenizer : "that of the input", quote,
                   dt_hash_hex(fingerprint, given));
}
