/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the .dts format, versions 1 and 2; dt-shard(5) describes them. Private
 * to lib/shard.
 *
 *     header, {index, data} ..., footer, seek table
 *
 * Data frames are plain zstd frames; the others are skippable ones. Each of
 * ours ends with the XXH64 of all its bytes before, the frame's own head
 * included; the index before a data frame holds the XXH64 of that frame, and
 * the footer that of the seek table. So every bit of a file is covered.
 *
 * Version 2 is version 1 with a loss mask, and perhaps rows: what the header says
 * in struct dt_shard_info's masked decides between them. What needs no mask is
 * written as version 1.
 */
#ifndef DT_SHARD_FORMAT_H
#define DT_SHARD_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "base/error.h"
#include "shard/shard.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are written as they lie");

#define DT_FORMAT_VERSION  2      /* the newest */
#define DT_FRAME_TOKENS    65536u /* at most, in one data frame */
#define DT_FRAME_DOCUMENTS 65536u /* at most, in one index */
#define DT_PROVENANCE_MAX  (16u << 20)
#define DT_VOCAB_MAX       (1u << 31)
#define DT_ROW_MAX         (1u << 24)

#define DT_HEADER_FRAME  0x184d2a50u
#define DT_INDEX_FRAME   0x184d2a51u
#define DT_FOOTER_FRAME  0x184d2a52u
#define DT_SEEK_FRAME    0x184d2a5eu
#define DT_SEEK_MAGIC    0x8f92eab1u
#define DT_SEEK_CHECKSUM 0x80 /* the seek table's flag: entries have checksums */
#define DT_SEEK_ENTRY    12u
#define DT_SEEK_END      9u /* u32 entries, u8 flags, u32 magic */
/* Low half of the XXH64 of no bytes: what the seek table says of a skippable frame. */
#define DT_EMPTY_CHECKSUM 0x51d8e999u
#define DT_SEEK_FRAMES    0x8000000u /* that zstd's seekable format allows */

#define DT_FRAME_HEAD 8u /* u32 frame magic, u32 size of what follows */
/* Bytes of a header frame before the provenance, of an index frame before the
 * records, and of a footer frame with its checksum. */
#define DT_HEADER_HEAD(masked) ((masked) ? 48u : 36u)
#define DT_INDEX_HEAD(masked)  ((masked) ? 64u : 60u)
#define DT_FOOTER_SIZE(masked) ((masked) ? 92u : 68u)

enum dt_shard_layout { DT_SHARD_LAYOUT_LIST = 0, DT_SHARD_LAYOUT_PADDED = 1 };
enum dt_format_flag { DT_FORMAT_RECORDS_COMPRESSED = 1, DT_FORMAT_MASK_COMPRESSED = 2 };

/* What an index frame says of the data frame behind it and of the documents
 * that end in it; document number first_document begins at token
 * document_start, which may lie frames before. */
struct dt_index {
    uint32_t tokens;    /* in the data frame */
    uint32_t data_size; /* bytes of the data frame */
    uint32_t documents;
    uint32_t
        compressed; /* DT_FORMAT_RECORDS_COMPRESSED, DT_FORMAT_MASK_COMPRESSED: is a zstd frame */
    uint32_t mask_size; /* bytes of the mask in this frame */
    bool masked;        /* the stream has a mask */
    uint64_t first_token, first_document, document_start;
    uint64_t data_hash; /* XXH64 of the data frame's bytes */
};

struct dt_footer {
    uint64_t tokens, records, text_bytes;       /* records: of documents and of padding */
    uint64_t frames;                            /* data frames */
    uint64_t hash;                              /* of ids, records and mask: dt_content_hash */
    uint64_t seek_hash;                         /* XXH64 of the seek table's frame */
    uint64_t padding, padding_records, targets; /* ids, records, ids */
};

struct dt_seek_entry {
    uint32_t size, decompressed_size, checksum;
};
_Static_assert(sizeof(struct dt_seek_entry) == DT_SEEK_ENTRY, "entries are written as they lie");
_Static_assert(sizeof(struct dt_shard_document) == 24, "records are written as they lie");

static inline uint32_t dt_format_get32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t dt_format_get64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Appending one frame each. Each frame is below 4 GiB by the limits above. */
void dt_format_put_header(struct dt_buffer *b, const struct dt_shard_info *info);
void dt_format_put_index(struct dt_buffer *b, const struct dt_index *index, const void *records,
                         size_t size, const void *mask);
void dt_format_put_footer(struct dt_buffer *b, const struct dt_footer *footer, bool masked);
void dt_format_put_seek_table(struct dt_buffer *b, const struct dt_seek_entry *entries,
                              size_t count);
/* A zstd frame of stored blocks: what a compressor at level 0 would write. */
void dt_format_put_stored(struct dt_buffer *b, const void *data, size_t size);

/* Parsing a whole frame of size bytes. The error says what is wrong, and the
 * caller puts the file and place before it. *provenance of the header is
 * owned by the caller. */
int dt_format_get_header(const void *frame, size_t size, struct dt_shard_info *info,
                         char **provenance, struct dt_error *err) DT_MUST_CHECK;
int dt_format_get_index(const void *frame, size_t size, bool masked, struct dt_index *index,
                        struct dt_error *err) DT_MUST_CHECK;
int dt_format_get_footer(const void *frame, size_t size, bool masked, struct dt_footer *footer,
                         struct dt_error *err) DT_MUST_CHECK;

/* The bytes that a frame of ours may have at most, by its magic; 0 for others. */
size_t dt_frame_limit(uint32_t magic);

/* Decoding, with buffers that are kept from frame to frame. */
struct dt_frame_decoder;
struct dt_frame_decoder *dt_frame_decoder_new(void);
void dt_frame_decoder_free(struct dt_frame_decoder *d); /* NULL is fine */
/* The documents of an index frame that dt_format_get_index accepted; borrowed until
 * the next call. Checks that they begin and end where index says. */
int dt_format_decode_documents(struct dt_frame_decoder *d, const void *frame, size_t size,
                               const struct dt_index *index,
                               const struct dt_shard_document **documents,
                               struct dt_error *err) DT_MUST_CHECK;
/* The ids of a data frame into ids, index->tokens of info->token_bytes each.
 * Checks the hash, and that each is below the vocabulary size. */
int dt_format_decode_ids(struct dt_frame_decoder *d, const void *data, const struct dt_index *index,
                         const struct dt_shard_info *info, void *ids,
                         struct dt_error *err) DT_MUST_CHECK;

/* The mask of an index frame, dt_format_mask_bytes(index->tokens) of it. */
int dt_format_decode_mask(struct dt_frame_decoder *d, const void *frame, size_t size,
                          const struct dt_index *index, uint8_t *mask,
                          struct dt_error *err) DT_MUST_CHECK;

/* A mask has a bit for each id, the lowest of a byte first: 1 where it carries loss. */
static inline size_t dt_format_mask_bytes(size_t tokens)
{
    return (tokens + 7) / 8;
}
/* Sets DT_NO_LOSS in those of ids, which have it nowhere, whose bits, from first on, are 0. */
void dt_format_mark_ids(uint32_t *ids, size_t count, const uint8_t *mask, size_t first);
/* Bits that are 1 among the first count. */
uint64_t dt_format_count_targets(const uint8_t *mask, size_t count);

/* The hash of what a stream holds, whatever its frames and their compression:
 * XXH64 of the XXH64 of all ids and the XXH64 of all records; with a mask, XXH64
 * of that and the XXH64 of the mask with a byte, 0 or 1, for each id. */
struct dt_content {
    XXH64_state_t *ids, *records, *mask;
    bool masked;
};

void dt_content_init(struct dt_content *c, bool masked); /* of all-zero memory, or to begin again */
void dt_content_release(struct dt_content *c);
/* tokens ids of the bytes in ids_size, and their mask if there is one. */
void dt_content_add(struct dt_content *c, const void *ids, size_t ids_size,
                    const struct dt_shard_document *documents, size_t count, const uint8_t *mask,
                    size_t tokens);
uint64_t dt_content_hash(const struct dt_content *c);
/* Adds the counts of one to those of the other. */
void dt_shard_info_add(struct dt_shard_info *total, const struct dt_shard_info *more);

/* The hash of several streams or shards one behind the other. */
uint64_t dt_format_join_hashes(uint64_t before, uint64_t next);

/* The place of the first of count ids of 2 or 4 bytes that is above last, which
 * is below DT_VOCAB_MAX; count if there is none. */
uint64_t dt_format_find_id_above(const void *ids, uint64_t count, uint32_t token_bytes,
                                 uint32_t last);
/* Ids of 2 or 4 bytes as ids of 4. */
void dt_format_widen_ids(uint32_t *to, const void *from, size_t count, uint32_t token_bytes);

#endif
