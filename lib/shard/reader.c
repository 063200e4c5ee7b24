/* SPDX-License-Identifier: MIT */
/* The sequential reader: checks every byte. */
#include <stdbool.h>
#include <stdlib.h>

#include "hash/hash.h"
#include "io/input.h"
#include "shard/format.h"

struct dt_shard_reader {
    struct dt_input *in;
    struct dt_shard_info info; /* totals of complete streams */
    char *provenance;
    struct dt_frame_decoder *decoder;
    struct dt_buffer frame, data, ids; /* current frame: index, data, decoded ids */
    struct dt_buffer mask;             /* current frame */
    bool mark;
    struct dt_index index;
    const struct dt_shard_document *documents;
    uint32_t document; /* index of the next record */
    uint64_t document_start;
    uint32_t position; /* of the next token in the frame */
    uint64_t streams;  /* complete ones */
    bool in_stream;    /* between a header and its footer */
    /* Of the current stream, to check its footer: */
    struct dt_footer seen;
    struct dt_content content;
    struct dt_seek_entry *seek;
    size_t entries, capacity;
    uint64_t offset;              /* of the current frame in the input */
    uint64_t next;                /* offset of the next frame */
    struct dt_lineage *lineage;   /* gets the input at its end; borrowed, or NULL */
    struct dt_sha256 hash;        /* of the input, with lineage */
    struct json_object *upstream; /* records of the current stream, or NULL */
    bool has_records;             /* some stream had records */
    char *path;
};

/* Prefixes an error with file, frame and offset. */
static int at_frame(struct dt_shard_reader *r, struct dt_error *err)
{
    return dt_fail_context(err, "%s: frame %zu at byte %llu", dt_input_name(r->in), r->entries,
                           (unsigned long long)r->offset);
}

static int truncated(struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "unexpected end: the stream is truncated");
}

static int not_a_stream(struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "is not a dt token stream or is damaged");
}

/* Names the type of a file that is not a .dts file. */
static int check_beginning(struct dt_shard_reader *r, struct dt_error *err)
{
    const char *ahead, *name = dt_input_name(r->in);
    size_t size;
    DT_TRY(dt_input_peek(r->in, &ahead, &size, err));
    if (size == 0)
        return dt_fail(err, DT_EFORMAT, "%s: is empty, not a .dts file", name);
    bool cut = size < 4 && memcmp(ahead, "\x50\x2a\x4d", size) == 0;
    bool magic = size >= 4 && dt_format_get32(ahead) == DT_HEADER_FRAME;
    bool named = size >= 12 && memcmp(ahead + DT_FRAME_HEAD, "dtsH", 4) == 0;
    if (cut || magic || named)
        return 0;
    const struct dt_file_type *what = dt_file_type_recognize(ahead, size);
    if (what && what->kind != DT_FILE_AMBIGUOUS)
        return dt_fail(err, DT_EFORMAT, "%s: is %s, not a .dts file", name, what->name);
    return dt_fail(err, DT_EFORMAT, "%s: is not a .dts file", name);
}

/* Takes size bytes into b, 1 MiB at a time: a damaged size costs at most the memory of
 * the input. */
static int read_bytes(struct dt_shard_reader *r, struct dt_buffer *b, size_t size,
                      struct dt_error *err)
{
    const size_t piece = (size_t)1 << 20;
    while (size > 0) {
        size_t n = size < piece ? size : piece, got = 0;
        dt_buffer_reserve(b, b->size + n);
        DT_TRY(dt_input_read(r->in, b->data + b->size, n, &got, err));
        if (got == 0)
            return truncated(err);
        b->size += got;
        r->next += got;
        size -= got;
    }
    return 0;
}

/* Takes a skippable frame into r->frame. *magic is 0 at the end of the input. */
static int read_frame(struct dt_shard_reader *r, uint32_t *magic, struct dt_error *err)
{
    const char *ahead;
    size_t size;
    *magic = 0;
    r->offset = r->next;
    dt_buffer_clear(&r->frame);
    DT_TRY(dt_input_peek(r->in, &ahead, &size, err));
    if (size == 0)
        return 0;
    DT_TRY(read_bytes(r, &r->frame, DT_FRAME_HEAD, err));
    *magic = dt_format_get32(r->frame.data);
    size = (size_t)DT_FRAME_HEAD + dt_format_get32(r->frame.data + 4);
    if (size <= DT_FRAME_HEAD || size > dt_frame_limit(*magic))
        return not_a_stream(err);
    return read_bytes(r, &r->frame, size - DT_FRAME_HEAD, err);
}

static void add_entry(struct dt_shard_reader *r, size_t size, size_t plain, uint32_t checksum)
{
    DT_GROW(r->seek, r->entries, r->capacity);
    r->seek[r->entries++] = (struct dt_seek_entry){(uint32_t)size, (uint32_t)plain, checksum};
}

/* Parses the header in r->frame, of the first or a concatenated stream. */
static int begin_stream(struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_shard_info info;
    char *provenance;
    bool first = r->provenance == NULL;
    r->in_stream = true;
    r->entries = 0;
    json_object_put(r->upstream);
    r->upstream = NULL;
    r->seen = (struct dt_footer){0};
    r->document_start = 0;
    DT_TRY(dt_format_get_header(r->frame.data, r->frame.size, &info, &provenance, err));
    dt_content_init(&r->content, info.masked);
    add_entry(r, r->frame.size, 0, DT_EMPTY_CHECKSUM);
    if (first) {
        r->info = info;
        r->provenance = provenance;
        return 0;
    }
    free(provenance);
    if (info.vocab_size != r->info.vocab_size || info.eot != r->info.eot ||
        info.tokenizer != r->info.tokenizer)
        return dt_fail(err, DT_EFORMAT,
                       "was made with another tokenizer than the stream before it");
    if (info.row != r->info.row || info.masked != r->info.masked ||
        info.padding_id != r->info.padding_id)
        return dt_fail(err, DT_EFORMAT, "has another layout than the stream before it");
    return 0;
}

/* Opens the input and reads the header. */
static int open_input(struct dt_shard_reader *r, struct dt_error *err)
{
    uint32_t magic;
    DT_TRY(dt_input_open_hashed(&r->in, r->path, DT_INPUT_RAW, r->lineage ? &r->hash : NULL, err));
    DT_TRY(check_beginning(r, err));
    int rc = read_frame(r, &magic, err);
    rc = rc < 0 ? rc : begin_stream(r, err);
    return rc < 0 ? at_frame(r, err) : 0;
}

int dt_shard_reader_open(struct dt_shard_reader **r, const char *path, struct dt_error *err)
{
    return dt_shard_reader_open_for(r, path, NULL, err);
}

int dt_shard_reader_open_for(struct dt_shard_reader **result, const char *path,
                             struct dt_lineage *lineage, struct dt_error *err)
{
    *result = NULL;
    struct dt_shard_reader *r = dt_alloc(1, sizeof *r);
    r->decoder = dt_frame_decoder_new();
    r->lineage = lineage;
    r->path = dt_strdup(path);
    int rc = open_input(r, err);
    if (rc < 0) {
        dt_shard_reader_close(r);
        return rc;
    }
    *result = r;
    return 0;
}

const struct dt_shard_info *dt_shard_reader_info(const struct dt_shard_reader *r)
{
    return &r->info;
}

/* Decodes the index in r->frame and the data frame after it. */
static int begin_frame(struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_index *x = &r->index;
    DT_TRY(dt_format_get_index(r->frame.data, r->frame.size, r->info.masked, x, err));
    if (x->first_token != r->seen.tokens || x->first_document != r->seen.records ||
        x->document_start != r->document_start)
        return dt_fail(err, DT_EFORMAT, "is not the successor of the frame before it");
    DT_TRY(dt_format_decode_documents(r->decoder, r->frame.data, r->frame.size, x, &r->documents,
                                      err));
    if (r->info.masked) {
        dt_buffer_reserve(&r->mask, dt_format_mask_bytes(x->tokens) + 1);
        DT_TRY(dt_format_decode_mask(r->decoder, r->frame.data, r->frame.size, x,
                                     (uint8_t *)r->mask.data, err));
    }
    add_entry(r, r->frame.size, 0, DT_EMPTY_CHECKSUM);
    r->offset = r->next;
    dt_buffer_clear(&r->data);
    DT_TRY(read_bytes(r, &r->data, x->data_size, err));
    size_t size = (size_t)x->tokens * r->info.token_bytes;
    dt_buffer_reserve(&r->ids, size);
    DT_TRY(dt_format_decode_ids(r->decoder, r->data.data, x, &r->info, r->ids.data, err));
    add_entry(r, x->data_size, size, (uint32_t)dt_hash_xxh64(r->ids.data, size));
    const uint8_t *mask = (const uint8_t *)r->mask.data;
    dt_content_add(&r->content, r->ids.data, size, r->documents, x->documents, mask, x->tokens);
    r->seen.frames++;
    r->seen.tokens += x->tokens;
    r->seen.records += x->documents;
    r->seen.targets += r->info.masked ? dt_format_count_targets(mask, x->tokens) : x->tokens;
    for (uint32_t i = 0; i < x->documents; i++) {
        const struct dt_shard_document *d = &r->documents[i];
        uint64_t kinds = r->info.masked ? d->tokens & DT_KINDS : 0;
        r->seen.text_bytes += d->bytes;
        r->document_start += d->tokens - kinds;
        r->seen.padding += kinds & DT_PADDING ? d->tokens - kinds : 0;
        r->seen.padding_records += kinds & DT_PADDING ? 1 : 0;
        if (kinds && (r->info.row == 0 || kinds == DT_KINDS || d->tokens == DT_CONTINUES))
            return dt_fail(err, DT_EFORMAT, "the index contradicts itself");
    }
    r->document = 0;
    r->position = 0;
    return 0;
}

/* Checks the footer in r->frame and the seek table after it against the data. */
static int end_stream(struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_footer f;
    struct dt_buffer table = DT_BUFFER_EMPTY;
    uint32_t magic;
    DT_TRY(dt_format_get_footer(r->frame.data, r->frame.size, r->info.masked, &f, err));
    add_entry(r, r->frame.size, 0, DT_EMPTY_CHECKSUM);
    r->seen.seek_hash = f.seek_hash;
    r->seen.hash = dt_content_hash(&r->content);
    if (memcmp(&f, &r->seen, sizeof f) != 0 || r->document_start != f.tokens ||
        (r->info.row && f.tokens % r->info.row != 0))
        return dt_fail(err, DT_EFORMAT, "the totals do not agree with the data");
    DT_TRY(read_frame(r, &magic, err));
    dt_format_put_seek_table(&table, r->seek, r->entries);
    bool differ = r->frame.size != table.size ||
                  memcmp(r->frame.data, table.data, table.size) != 0 ||
                  dt_hash_xxh64(table.data, table.size) != f.seek_hash;
    dt_buffer_release(&table);
    if (magic == 0)
        return truncated(err);
    if (differ)
        return dt_fail(err, DT_EFORMAT, "the seek table does not agree with the data");
    r->info.tokens += f.tokens;
    r->info.documents += f.records - f.padding_records;
    r->info.text_bytes += f.text_bytes;
    r->info.padding += f.padding;
    r->info.targets += f.targets;
    if (r->lineage && r->upstream && strcmp(r->path, "-") == 0) {
        dt_lineage_add_input(r->lineage, r->path, 0, "", r->upstream);
        r->has_records = true;
    }
    r->info.hash = r->streams++ == 0 ? f.hash : dt_format_join_hashes(r->info.hash, f.hash);
    r->in_stream = false;
    return 0;
}

/* Takes the records in r->frame. */
static int take_lineage(struct dt_shard_reader *r, struct dt_error *err)
{
    add_entry(r, r->frame.size, 0, DT_EMPTY_CHECKSUM);
    return dt_format_get_lineage(r->frame.data, r->frame.size, &r->upstream, err);
}

/* At the end: a stream from a pipe is identified by its records, any other input by its hash. */
static int record_input(struct dt_shard_reader *r, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    struct dt_lineage *l = r->lineage;
    r->lineage = NULL; /* once */
    if (l == NULL || r->has_records)
        return 0;
    if (r->upstream == NULL && strcmp(r->path, "-") != 0)
        return dt_lineage_add_read(l, r->path, &r->hash, err);
    uint64_t bytes = r->hash.bytes;
    dt_lineage_add_input(l, r->path, bytes, dt_sha256_finish(&r->hash, hex), r->upstream);
    return 0;
}

/* 1 after the next data frame; 0 at the end of the input. */
static int next_frame(struct dt_shard_reader *r, struct dt_error *err)
{
    uint32_t magic;
    for (;;) {
        DT_TRY(read_frame(r, &magic, err));
        if (magic == 0)
            return r->in_stream ? truncated(err) : record_input(r, err);
        if (r->in_stream && magic == DT_LINEAGE_FRAME && r->upstream == NULL) {
            DT_TRY(take_lineage(r, err));
            continue;
        }
        if (r->in_stream && magic == DT_INDEX_FRAME && r->upstream == NULL) {
            DT_TRY(begin_frame(r, err));
            return 1;
        }
        if (r->in_stream && magic == DT_FOOTER_FRAME)
            DT_TRY(end_stream(r, err));
        else if (!r->in_stream && magic == DT_HEADER_FRAME)
            DT_TRY(begin_stream(r, err));
        else
            return not_a_stream(err);
    }
}

/* Appends the next count ids of the frame. */
static void move_ids(struct dt_shard_reader *r, struct dt_ids *ids, size_t count)
{
    size_t width = r->info.token_bytes;
    if (count == 0) /* the buffers may be unallocated */
        return;
    dt_ids_reserve(ids, ids->count + count);
    dt_format_widen_ids(ids->data + ids->count, r->ids.data + r->position * width, count,
                        r->info.token_bytes);
    if (r->mark && r->info.masked)
        dt_format_mark_ids(ids->data + ids->count, count, (const uint8_t *)r->mask.data,
                           r->position);
    ids->count += count;
    r->position += (uint32_t)count;
}

void dt_shard_reader_mark(struct dt_shard_reader *r)
{
    r->mark = true;
}

/* The next record, of a document or of padding; as dt_shard_read. */
static int read_record(struct dt_shard_reader *r, struct dt_ids *ids,
                       struct dt_shard_document *document, struct dt_error *err)
{
    ids->count = 0;
    while (r->document == r->index.documents) {
        move_ids(r, ids, r->index.tokens - r->position);
        r->index = (struct dt_index){0};
        r->document = r->position = 0;
        int rc = next_frame(r, err);
        if (rc < 0)
            return at_frame(r, err);
        if (rc == 0)
            return 0;
    }
    *document = r->documents[r->document++];
    uint64_t kinds = r->info.row ? DT_KINDS : 0;
    move_ids(r, ids, (size_t)(document->tokens & ~kinds) - ids->count);
    return 1;
}

int dt_shard_read(struct dt_shard_reader *r, struct dt_ids *ids, struct dt_shard_document *document,
                  struct dt_error *err)
{
    int rc;
    do
        rc = read_record(r, ids, document, err);
    while (rc > 0 && r->info.row && document->tokens & DT_PADDING);
    if (rc > 0 && r->info.row && document->tokens & DT_CONTINUES) {
        document->tokens -= DT_CONTINUES + 1;
        memmove(ids->data, ids->data + 1, --ids->count * sizeof *ids->data);
    }
    return rc;
}

int dt_shard_read_frame(struct dt_shard_reader *r, struct dt_ids *ids, struct dt_error *err)
{
    ids->count = 0;
    r->position = 0;
    int rc = next_frame(r, err);
    if (rc < 0)
        return at_frame(r, err);
    if (rc > 0)
        move_ids(r, ids, r->index.tokens);
    return rc;
}

void dt_shard_reader_close(struct dt_shard_reader *r)
{
    if (r == NULL)
        return;
    dt_input_close(r->in);
    dt_frame_decoder_free(r->decoder);
    dt_content_release(&r->content);
    dt_buffer_release(&r->frame);
    dt_buffer_release(&r->data);
    dt_buffer_release(&r->ids);
    dt_buffer_release(&r->mask);
    json_object_put(r->upstream);
    free(r->path);
    free(r->provenance);
    free(r->seek);
    free(r);
}
