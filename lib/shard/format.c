/* SPDX-License-Identifier: MIT */
#include "shard/format.h"

#include <stdbool.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/hash.h"

#define STORED_BLOCK ((size_t)128 << 10) /* zstd's largest block */

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

/* Begins a skippable frame of size bytes in all. */
static void put_head(struct dt_buffer *b, uint32_t magic, size_t size, const char *name)
{
    put32(b, magic);
    put32(b, (uint32_t)(size - DT_FRAME_HEAD));
    dt_buffer_append(b, name, 4);
}

/* Ends a frame that began at start. */
static void put_checksum(struct dt_buffer *b, size_t start)
{
    put64(b, dt_hash_xxh64(b->data + start, b->size - start));
}

void dt_put_header(struct dt_buffer *b, const struct dt_shard_info *info)
{
    const char *provenance = info->provenance ? info->provenance : "";
    size_t start = b->size, n = strlen(provenance);
    put_head(b, DT_HEADER_FRAME, DT_HEADER_HEAD + n + 8, "dtsH");
    put16(b, DT_FORMAT_VERSION);
    dt_buffer_add_char(b, (char)info->token_bytes);
    dt_buffer_add_char(b, DT_LAYOUT_LIST);
    put32(b, info->vocab_size);
    put32(b, info->eot);
    put64(b, info->tokenizer);
    put32(b, (uint32_t)n);
    dt_buffer_append(b, provenance, n);
    put_checksum(b, start);
}

void dt_put_index(struct dt_buffer *b, const struct dt_index *index, const void *records,
                  size_t size)
{
    size_t start = b->size;
    put_head(b, DT_INDEX_FRAME, DT_INDEX_HEAD + size + 8, "dtsI");
    put32(b, index->tokens);
    put32(b, index->data_size);
    put32(b, index->documents);
    put32(b, index->compressed);
    put64(b, index->first_token);
    put64(b, index->first_document);
    put64(b, index->document_start);
    put64(b, index->data_hash);
    dt_buffer_append(b, records, size);
    put_checksum(b, start);
}

void dt_put_footer(struct dt_buffer *b, const struct dt_footer *footer)
{
    size_t start = b->size;
    put_head(b, DT_FOOTER_FRAME, DT_FOOTER_SIZE, "dtsF");
    put64(b, footer->tokens);
    put64(b, footer->documents);
    put64(b, footer->text_bytes);
    put64(b, footer->frames);
    put64(b, footer->hash);
    put64(b, footer->seek_hash);
    put_checksum(b, start);
}

void dt_put_seek_table(struct dt_buffer *b, const struct dt_seek_entry *entries, size_t count)
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
void dt_put_stored(struct dt_buffer *b, const void *data, size_t size)
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
        return DT_HEADER_HEAD + DT_PROVENANCE_MAX + 8;
    case DT_INDEX_FRAME:
        return DT_INDEX_HEAD + sizeof(struct dt_shard_document) * DT_FRAME_DOCUMENTS + 8;
    case DT_FOOTER_FRAME:
        return DT_FOOTER_SIZE;
    case DT_SEEK_FRAME:
        return DT_FRAME_HEAD + (size_t)DT_SEEK_FRAMES * DT_SEEK_ENTRY + DT_SEEK_END;
    default:
        return 0;
    }
}

/* What all of our frames have alike; least is the size of the smallest. */
static int check_frame(const char *frame, size_t size, size_t least, uint32_t magic,
                       const char *name, struct dt_error *err)
{
    if (size < least || dt_get32(frame) != magic || memcmp(frame + DT_FRAME_HEAD, name, 4) != 0)
        return dt_fail(err, DT_EFORMAT, "is not a dt token stream or is damaged");
    if (dt_get32(frame + 4) != size - DT_FRAME_HEAD ||
        dt_get64(frame + size - 8) != dt_hash_xxh64(frame, size - 8))
        return dt_fail(err, DT_EFORMAT, "checksum does not match: the data is damaged");
    return 0;
}

int dt_get_header(const void *frame, size_t size, struct dt_shard_info *info, char **provenance,
                  struct dt_error *err)
{
    const char *p = frame;
    *provenance = NULL;
    DT_TRY(check_frame(p, size, DT_HEADER_HEAD + 8, DT_HEADER_FRAME, "dtsH", err));
    unsigned version = dt_get32(p + 12) & 0xffff, layout = (unsigned char)p[15];
    if (version != DT_FORMAT_VERSION)
        return dt_fail(err, DT_EFORMAT, "format version %u: this program reads version %d", version,
                       DT_FORMAT_VERSION);
    if (layout != DT_LAYOUT_LIST)
        return dt_fail(err, DT_EFORMAT, "layout %u: this program reads layout 0, list", layout);
    *info = (struct dt_shard_info){.token_bytes = (unsigned char)p[14],
                                   .vocab_size = dt_get32(p + 16),
                                   .eot = dt_get32(p + 20),
                                   .tokenizer = dt_get64(p + 24)};
    if (dt_get32(p + 32) != size - DT_HEADER_HEAD - 8 || info->vocab_size == 0 ||
        info->vocab_size > DT_VOCAB_MAX ||
        info->token_bytes != (info->vocab_size <= 65536 ? 2 : 4) ||
        (info->eot != UINT32_MAX && info->eot >= info->vocab_size))
        return dt_fail(err, DT_EFORMAT, "the header contradicts itself");
    *provenance = dt_strndup(p + DT_HEADER_HEAD, size - DT_HEADER_HEAD - 8);
    info->provenance = *provenance;
    return 0;
}

int dt_get_index(const void *frame, size_t size, struct dt_index *index, struct dt_error *err)
{
    const char *p = frame;
    DT_TRY(check_frame(p, size, DT_INDEX_HEAD + 8, DT_INDEX_FRAME, "dtsI", err));
    *index = (struct dt_index){.tokens = dt_get32(p + 12),
                               .data_size = dt_get32(p + 16),
                               .documents = dt_get32(p + 20),
                               .compressed = dt_get32(p + 24),
                               .first_token = dt_get64(p + 28),
                               .first_document = dt_get64(p + 36),
                               .document_start = dt_get64(p + 44),
                               .data_hash = dt_get64(p + 52)};
    if (index->tokens > DT_FRAME_TOKENS || index->documents > DT_FRAME_DOCUMENTS ||
        index->compressed > 1 || index->document_start > index->first_token ||
        index->data_size > ZSTD_COMPRESSBOUND((size_t)4 * DT_FRAME_TOKENS))
        return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    return 0;
}

int dt_get_footer(const void *frame, size_t size, struct dt_footer *footer, struct dt_error *err)
{
    const char *p = frame;
    DT_TRY(check_frame(p, size, DT_FOOTER_SIZE, DT_FOOTER_FRAME, "dtsF", err));
    *footer = (struct dt_footer){.tokens = dt_get64(p + 12),
                                 .documents = dt_get64(p + 20),
                                 .text_bytes = dt_get64(p + 28),
                                 .frames = dt_get64(p + 36),
                                 .hash = dt_get64(p + 44),
                                 .seek_hash = dt_get64(p + 52)};
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
    d->zstd = ZSTD_createDCtx();
    return d;
}

void dt_frame_decoder_free(struct dt_frame_decoder *d)
{
    if (d == NULL)
        return;
    ZSTD_freeDCtx(d->zstd);
    free(d->documents);
    free(d);
}

/* Decompresses what must fill size bytes. */
static int decompress(struct dt_frame_decoder *d, void *to, size_t size, const void *from, size_t n,
                      struct dt_error *err)
{
    size_t made = ZSTD_decompressDCtx(d->zstd, to, size, from, n);
    if (ZSTD_isError(made))
        return dt_fail(err, DT_EFORMAT, "zstd: %s", ZSTD_getErrorName(made));
    if (made != size)
        return dt_fail(err, DT_EFORMAT, "holds %zu bytes where %zu belong", made, size);
    return 0;
}

int dt_decode_documents(struct dt_frame_decoder *d, const void *frame, size_t size,
                        const struct dt_index *index, const struct dt_shard_document **documents,
                        struct dt_error *err)
{
    const char *records = (const char *)frame + DT_INDEX_HEAD;
    size_t n = size - DT_INDEX_HEAD - 8, plain = index->documents * sizeof *d->documents;
    if (index->documents > d->capacity) {
        d->capacity = index->documents;
        d->documents = dt_realloc(d->documents, d->capacity, sizeof *d->documents);
    }
    *documents = d->documents;
    if (index->compressed)
        DT_TRY(decompress(d, d->documents, plain, records, n, err));
    else if (n != plain)
        return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    else if (n > 0)
        memcpy(d->documents, records, n);
    uint64_t start = index->document_start, end = index->first_token + index->tokens;
    for (uint32_t i = 0; i < index->documents; i++) {
        uint64_t tokens = d->documents[i].tokens;
        if (tokens > end - start || start + tokens < index->first_token)
            return dt_fail(err, DT_EFORMAT, "document %llu does not end in its frame",
                           (unsigned long long)(index->first_document + i));
        start += tokens;
    }
    return 0;
}

static uint32_t get_id(const void *ids, size_t i, uint32_t token_bytes)
{
    return token_bytes == 4 ? ((const uint32_t *)ids)[i] : ((const uint16_t *)ids)[i];
}

int dt_decode_ids(struct dt_frame_decoder *d, const void *data, const struct dt_index *index,
                  const struct dt_shard_info *info, void *ids, struct dt_error *err)
{
    if (dt_hash_xxh64(data, index->data_size) != index->data_hash)
        return dt_fail(err, DT_EFORMAT, "checksum does not match: the data is damaged");
    size_t size = (size_t)index->tokens * info->token_bytes;
    DT_TRY(decompress(d, ids, size, data, index->data_size, err));
    uint64_t i = dt_find_id_above(ids, index->tokens, info->token_bytes, info->vocab_size - 1);
    if (i < index->tokens)
        return dt_fail(err, DT_EFORMAT, "holds id %u, but the vocabulary has %u",
                       get_id(ids, i, info->token_bytes), info->vocab_size);
    return 0;
}

void dt_content_init(struct dt_content *c)
{
    if (c->ids == NULL) {
        c->ids = XXH64_createState();
        c->records = XXH64_createState();
    }
    XXH64_reset(c->ids, 0);
    XXH64_reset(c->records, 0);
}

void dt_content_release(struct dt_content *c)
{
    XXH64_freeState(c->ids);
    XXH64_freeState(c->records);
    *c = (struct dt_content){0};
}

void dt_content_add(struct dt_content *c, const void *ids, size_t ids_size,
                    const struct dt_shard_document *documents, size_t count)
{
    if (ids_size > 0)
        XXH64_update(c->ids, ids, ids_size);
    if (count > 0)
        XXH64_update(c->records, documents, count * sizeof *documents);
}

uint64_t dt_join_hashes(uint64_t before, uint64_t next)
{
    uint64_t words[2] = {before, next};
    return dt_hash_xxh64(words, sizeof words);
}

uint64_t dt_content_hash(const struct dt_content *c)
{
    return dt_join_hashes(XXH64_digest(c->ids), XXH64_digest(c->records));
}

/* last - id wraps, and so has its top bit set, if id is above last; or id itself
 * has it. Loops of fixed length are those that GCC vectorizes at -O2. */
#define BLOCK 64

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

uint64_t dt_find_id_above(const void *ids, uint64_t count, uint32_t token_bytes, uint32_t last)
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

void dt_widen_ids(uint32_t *to, const void *from, size_t count, uint32_t token_bytes)
{
    const uint16_t *narrow = from;
    if (count == 0) /* and the pointers may be NULL */
        return;
    if (token_bytes == 4)
        memcpy(to, from, count * 4);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = narrow[i];
}
