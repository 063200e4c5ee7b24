/* SPDX-License-Identifier: MIT */
/*
 * The .dts format, versions 1 and 2; dt-shard(5) specifies the bytes. Private to lib/shard.
 *
 *     +--------+---------+--------+---------+--------+-----+--------+------------+
 *     | header | index 0 | data 0 | index 1 | data 1 | ... | footer | seek table |
 *     +--------+---------+--------+---------+--------+-----+--------+------------+
 *       skip.    skip.     zstd     skip.     zstd           skip.    skip.
 *
 * A lineage frame (skippable) may be before the footer.
 *
 * Data frames are zstd frames of ids; all others are skippable frames. Header, index and
 * footer end with the XXH64 of all their bytes before. An index holds the XXH64 of its data
 * frame, the footer that of the seek table. So checksums cover every bit of a file.
 *
 * Version 2 adds a loss mask and optionally rows; it is written only if masked is set in
 * struct dt_shard_info.
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

#define DT_FORMAT_VERSION  2      /* the newest */
#define DT_FRAME_TOKENS    65536u /* maximum per data frame */
#define DT_FRAME_DOCUMENTS 65536u /* maximum per index frame */
#define DT_PROVENANCE_MAX  (16u << 20)
#define DT_VOCAB_MAX       (1u << 31)
#define DT_ROW_MAX         (1u << 24)

#define DT_HEADER_FRAME  0x184d2a50u
#define DT_INDEX_FRAME   0x184d2a51u
#define DT_FOOTER_FRAME  0x184d2a52u
#define DT_LINEAGE_FRAME 0x184d2a53u
#define DT_SEEK_FRAME    0x184d2a5eu
#define DT_SEEK_MAGIC    0x8f92eab1u
#define DT_SEEK_CHECKSUM 0x80 /* the seek table's flag: entries have checksums */
#define DT_SEEK_ENTRY    12u
#define DT_SEEK_END      9u /* u32 entries, u8 flags, u32 magic */
/* Low half of the XXH64 of no bytes: the seek table's checksum of a skippable frame. */
#define DT_EMPTY_CHECKSUM 0x51d8e999u
#define DT_SEEK_FRAMES    0x8000000u /* maximum of zstd's seekable format */

#define DT_FRAME_HEAD 8u /* u32 magic, u32 size of the rest */
/* Bytes of a header frame before the provenance, of an index frame before the
 * records, and of a footer frame with its checksum. */
#define DT_HEADER_HEAD(masked) ((masked) ? 48u : 36u)
#define DT_INDEX_HEAD(masked)  ((masked) ? 64u : 60u)
#define DT_FOOTER_SIZE(masked) ((masked) ? 92u : 68u)
#define DT_LINEAGE_HEAD        12u /* and as many bytes of text */

enum dt_shard_layout { DT_SHARD_LAYOUT_LIST = 0, DT_SHARD_LAYOUT_PADDED = 1 };
enum dt_format_flag { DT_FORMAT_RECORDS_COMPRESSED = 1, DT_FORMAT_MASK_COMPRESSED = 2 };

/* An index frame: describes the data frame after it and the documents that end in that frame.
 * Document first_document starts at token document_start, possibly in an earlier frame. */
struct dt_index {
    uint32_t tokens;    /* in the data frame */
    uint32_t data_size; /* bytes of the data frame */
    uint32_t documents;
    uint32_t compressed; /* enum dt_format_flag: records, mask are zstd frames */
    uint32_t mask_size;  /* bytes of the mask in this frame */
    bool masked;         /* the stream has a mask */
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
_Static_assert(sizeof(struct dt_seek_entry) == DT_SEEK_ENTRY,
               "entries are written in memory order");
_Static_assert(sizeof(struct dt_shard_document) == 24, "records are written in memory order");

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

/* Append one frame each. The limits above keep each frame below 4 GiB. */
void dt_format_put_header(struct dt_buffer *b, const struct dt_shard_info *info);
void dt_format_put_index(struct dt_buffer *b, const struct dt_index *index, const void *records,
                         size_t size, const void *mask);
void dt_format_put_lineage(struct dt_buffer *b, const void *text, size_t size);
void dt_format_put_footer(struct dt_buffer *b, const struct dt_footer *footer, bool masked);
void dt_format_put_seek_table(struct dt_buffer *b, const struct dt_seek_entry *entries,
                              size_t count);
/* Appends a zstd frame of raw (stored) blocks, for level 0. */
void dt_format_put_stored(struct dt_buffer *b, const void *data, size_t size);

/* Parse a complete frame of size bytes. The caller prefixes errors with file and offset.
 * *provenance is owned by the caller. */
int dt_format_get_header(const void *frame, size_t size, struct dt_shard_info *info,
                         char **provenance, struct dt_error *err) DT_MUST_CHECK;
int dt_format_get_index(const void *frame, size_t size, bool masked, struct dt_index *index,
                        struct dt_error *err) DT_MUST_CHECK;
int dt_format_get_footer(const void *frame, size_t size, bool masked, struct dt_footer *footer,
                         struct dt_error *err) DT_MUST_CHECK;

/* *records is owned by the caller (json_object_put). */
int dt_format_get_lineage(const void *frame, size_t size, struct json_object **records,
                          struct dt_error *err) DT_MUST_CHECK;

/* Maximum bytes of a skippable frame by its magic; 0 if unknown. */
size_t dt_frame_limit(uint32_t magic);

/* Decodes frames, reusing its buffers. */
struct dt_frame_decoder;
struct dt_frame_decoder *dt_frame_decoder_new(void);
void dt_frame_decoder_free(struct dt_frame_decoder *d);
/* The document records of an index frame parsed by dt_format_get_index; borrowed until the
 * next call. Checks them against index. */
int dt_format_decode_documents(struct dt_frame_decoder *d, const void *frame, size_t size,
                               const struct dt_index *index,
                               const struct dt_shard_document **documents,
                               struct dt_error *err) DT_MUST_CHECK;
/* Decodes a data frame: index->tokens ids of info->token_bytes each. Checks the hash and that
 * each id is below the vocabulary size. */
int dt_format_decode_ids(struct dt_frame_decoder *d, const void *data, const struct dt_index *index,
                         const struct dt_shard_info *info, void *ids,
                         struct dt_error *err) DT_MUST_CHECK;

/* Decodes the loss mask of an index frame: dt_format_mask_bytes(index->tokens) bytes. */
int dt_format_decode_mask(struct dt_frame_decoder *d, const void *frame, size_t size,
                          const struct dt_index *index, uint8_t *mask,
                          struct dt_error *err) DT_MUST_CHECK;

/* A loss mask has a bit per id, least significant first: 1 if the id carries loss. */
static inline size_t dt_format_mask_bytes(size_t tokens)
{
    return (tokens + 7) / 8;
}
/* Sets DT_NO_LOSS in the ids, unmarked before, whose mask bits, from bit first on, are 0. */
void dt_format_mark_ids(uint32_t *ids, size_t count, const uint8_t *mask, size_t first);
/* The number of 1 bits among the first count. */
uint64_t dt_format_count_targets(const uint8_t *mask, size_t count);

/* The content hash of a stream, independent of frames and compression:
 *     h = XXH64(XXH64(ids), XXH64(records)); masked: XXH64(h, XXH64(mask, a byte per id)) */
struct dt_content {
    XXH64_state_t *ids, *records, *mask;
    bool masked;
};

void dt_content_init(struct dt_content *c, bool masked); /* c is all-zero, or reused */
void dt_content_release(struct dt_content *c);
/* Adds `tokens` ids of ids_size bytes, count records, and the mask, NULL without one. */
void dt_content_add(struct dt_content *c, const void *ids, size_t ids_size,
                    const struct dt_shard_document *documents, size_t count, const uint8_t *mask,
                    size_t tokens);
uint64_t dt_content_hash(const struct dt_content *c);
/* Adds the counts of more to total. */
void dt_shard_info_add(struct dt_shard_info *total, const struct dt_shard_info *more);

/* The hash of concatenated streams or shards. */
uint64_t dt_format_join_hashes(uint64_t before, uint64_t next);

/* The index of the first of count ids of 2 or 4 bytes above last, which is below DT_VOCAB_MAX;
 * count if absent. */
uint64_t dt_format_find_id_above(const void *ids, uint64_t count, uint32_t token_bytes,
                                 uint32_t last);
/* Converts ids of 2 or 4 bytes to 4 bytes, at least one. */
void dt_format_widen_ids(uint32_t *to, const void *from, size_t count, uint32_t token_bytes);

#endif
