/* SPDX-License-Identifier: MIT */
/* Random access to shards: the seek table locates a frame, a cache holds it decoded. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash/hash.h"
#include "shard/format.h"
#include "shard/shard-internal.h"

#define DEFAULT_CACHE ((size_t)64 << 20) /* bytes, without a shared cache */

/* Frame k is data frame k with its index frame. */
struct dt_shard {
    int fd;
    char *path, *provenance;
    uint64_t size; /* of the file */
    struct dt_shard_info info;
    uint64_t frames;
    uint64_t *first_token; /* frames + 1 */
    uint64_t *offset;      /* of the index frame; frames + 1 */
    uint32_t *index_size;  /* bytes of the index frame; the data frame follows */
    struct dt_frame_cache *cache, *own_cache;
    dt_frame_slot *slots;
    struct dt_frame_decoder *decoder;
    struct dt_buffer bytes; /* scratch: bytes of the file */
    /* The documents of the last index read: */
    struct dt_index index;
    const struct dt_shard_document *documents; /* NULL: none */
    uint64_t *starts;                          /* of each of documents, in tokens */
    size_t starts_capacity;
};

static int read_at(struct dt_shard *s, uint64_t offset, size_t size, struct dt_error *err)
{
    dt_buffer_clear(&s->bytes);
    dt_buffer_reserve(&s->bytes, size);
    while (s->bytes.size < size) {
        ssize_t n = pread(s->fd, s->bytes.data + s->bytes.size, size - s->bytes.size,
                          (off_t)(offset + s->bytes.size));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dt_fail_errno(err, "cannot read");
        if (n == 0)
            return dt_fail(err, DT_EFORMAT, "unexpected end: the file is truncated");
        s->bytes.size += (size_t)n;
    }
    return 0;
}

/* Prefixes an error with file, frame of the file and offset, as the sequential reader does. */
static int at_index(const struct dt_shard *s, uint64_t k, struct dt_error *err)
{
    return dt_fail_context(err, "%s: frame %llu at byte %llu", s->path,
                           (unsigned long long)(1 + 2 * k), (unsigned long long)s->offset[k]);
}

static int at_data(const struct dt_shard *s, uint64_t k, struct dt_error *err)
{
    return dt_fail_context(err, "%s: frame %llu at byte %llu", s->path,
                           (unsigned long long)(2 + 2 * k),
                           (unsigned long long)(s->offset[k] + s->index_size[k]));
}

static int truncated(struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "does not end with a seek table: truncated, damaged or not a shard");
}

/* Fills the tables of frames from the entries of the seek table. */
static int use_table(struct dt_shard *s, const char *entries, uint64_t table_size,
                     struct dt_error *err)
{
    uint64_t n = s->frames, offset = dt_format_get32(entries), token = 0;
    uint64_t count = (table_size - DT_FRAME_HEAD - DT_SEEK_END) / DT_SEEK_ENTRY;
    s->first_token = dt_alloc((size_t)n + 1, sizeof *s->first_token);
    s->offset = dt_alloc((size_t)n + 1, sizeof *s->offset);
    s->index_size = dt_alloc((size_t)n + 1, sizeof *s->index_size);
    s->slots = dt_alloc((size_t)n + 1, sizeof *s->slots);
    for (uint64_t k = 0; k < n; k++) {
        const char *index = entries + (1 + 2 * k) * DT_SEEK_ENTRY, *data = index + DT_SEEK_ENTRY;
        uint32_t tokens = dt_format_get32(data + 4) / s->info.token_bytes;
        if (tokens > DT_FRAME_TOKENS || dt_format_get32(index) > dt_frame_limit(DT_INDEX_FRAME))
            return dt_fail(err, DT_EFORMAT, "the seek table contradicts itself");
        s->first_token[k] = token;
        s->offset[k] = offset;
        s->index_size[k] = dt_format_get32(index);
        offset += (uint64_t)dt_format_get32(index) + dt_format_get32(data);
        token += tokens;
    }
    s->first_token[n] = token;
    s->offset[n] = offset;
    if (count % 2 != 0) /* a lineage frame */
        offset += dt_format_get32(entries + (count - 2) * DT_SEEK_ENTRY);
    if (offset + DT_FOOTER_SIZE(s->info.masked) + table_size != s->size)
        return dt_fail(err, DT_EFORMAT,
                       "is not a single stream: convert concatenated streams with dt-shard");
    if (token != s->info.tokens)
        return dt_fail(err, DT_EFORMAT, "the totals do not agree with the seek table");
    return 0;
}

/* Reads and checks footer and seek table, into s->bytes. */
static int read_end(struct dt_shard *s, struct dt_footer *footer, uint64_t *table_size,
                    struct dt_error *err)
{
    size_t footer_size = DT_FOOTER_SIZE(s->info.masked);
    if (s->size < DT_HEADER_HEAD(s->info.masked) + footer_size + DT_FRAME_HEAD + DT_SEEK_END)
        return truncated(err);
    DT_TRY(read_at(s, s->size - DT_SEEK_END, DT_SEEK_END, err));
    uint64_t entries = dt_format_get32(s->bytes.data);
    *table_size = DT_FRAME_HEAD + entries * DT_SEEK_ENTRY + DT_SEEK_END;
    if (dt_format_get32(s->bytes.data + 5) != DT_SEEK_MAGIC || entries > DT_SEEK_FRAMES ||
        *table_size + footer_size > s->size)
        return truncated(err);
    DT_TRY(read_at(s, s->size - *table_size - footer_size, footer_size + *table_size, err));
    if (dt_format_get_footer(s->bytes.data, footer_size, s->info.masked, footer, err) < 0)
        return dt_fail_context(err, "footer at byte %llu",
                               (unsigned long long)(s->size - *table_size - footer_size));
    if (dt_hash_xxh64(s->bytes.data + footer_size, *table_size) != footer->seek_hash ||
        entries < 2 || footer->frames != (entries - 2) / 2)
        return dt_fail(err, DT_EFORMAT, "seek table at byte %llu: is damaged",
                       (unsigned long long)(s->size - *table_size));
    return 0;
}

static int read_header(struct dt_shard *s, struct dt_error *err)
{
    DT_TRY(read_at(s, 0, DT_FRAME_HEAD, err));
    size_t size = (size_t)DT_FRAME_HEAD + dt_format_get32(s->bytes.data + 4);
    if (dt_format_get32(s->bytes.data) != DT_HEADER_FRAME || size > dt_frame_limit(DT_HEADER_FRAME))
        return dt_fail(err, DT_EFORMAT,
                       "is not a dt shard or its header is damaged; dt-tokenize and "
                       "dt-shard make shards of text");
    DT_TRY(read_at(s, 0, size, err));
    if (dt_format_get_header(s->bytes.data, size, &s->info, &s->provenance, err) < 0)
        return dt_fail_context(err, "header at byte 0");
    return 0;
}

static int load(struct dt_shard *s, struct dt_error *err)
{
    struct dt_footer footer;
    uint64_t table_size = 0;
    DT_TRY(read_header(s, err));
    size_t header_size = s->bytes.size;
    DT_TRY(read_end(s, &footer, &table_size, err));
    s->info.tokens = footer.tokens;
    s->info.documents = footer.records - footer.padding_records;
    s->info.text_bytes = footer.text_bytes;
    s->info.padding = footer.padding;
    s->info.targets = footer.targets;
    s->info.hash = footer.hash;
    s->frames = footer.frames;
    const char *entries = s->bytes.data + DT_FOOTER_SIZE(s->info.masked) + DT_FRAME_HEAD;
    if (dt_format_get32(entries) != header_size)
        return dt_fail(err, DT_EFORMAT,
                       "is not a single stream: convert concatenated streams with dt-shard");
    return use_table(s, entries, table_size, err);
}

/* Bytes of the decoded ids of frame k. */
static size_t id_bytes(const struct dt_shard *s, uint64_t k)
{
    return (size_t)(s->first_token[k + 1] - s->first_token[k]) * s->info.token_bytes;
}

/* Bytes of the decoded ids and the mask after them. */
static size_t frame_bytes(const struct dt_shard *s, uint64_t k)
{
    size_t tokens = (size_t)(s->first_token[k + 1] - s->first_token[k]);
    return id_bytes(s, k) + (s->info.masked ? dt_format_mask_bytes(tokens) : 0);
}

/* Allocates the scratch memory for the largest frame, so that reading does not allocate. */
static void reserve_bytes(struct dt_shard *s)
{
    uint64_t largest = 0;
    for (uint64_t k = 0; k < s->frames; k++)
        if (s->offset[k + 1] - s->offset[k] > largest)
            largest = s->offset[k + 1] - s->offset[k];
    dt_buffer_reserve(&s->bytes, (size_t)largest);
}

static size_t largest_frame(const struct dt_shard *s)
{
    size_t largest = 1;
    for (uint64_t k = 0; k < s->frames; k++)
        largest = frame_bytes(s, k) > largest ? frame_bytes(s, k) : largest;
    return largest;
}

int dt_shard_open_shared(struct dt_shard **result, const char *path, struct dt_frame_cache **cache,
                         size_t budget, struct dt_error *err)
{
    struct stat st;
    *result = NULL;
    int fd = dt_file_open(path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0) {
        close(fd);
        return dt_fail_errno(err, "cannot open '%s'", path);
    }
    struct dt_shard *s = dt_alloc(1, sizeof *s);
    s->fd = fd;
    s->size = (uint64_t)st.st_size;
    s->path = dt_strdup(path);
    s->decoder = dt_frame_decoder_new();
    int rc = load(s, err);
    if (rc < 0) {
        dt_fail_context(err, "%s", path);
        dt_shard_close(s);
        return rc;
    }
    if (*cache == NULL)
        *cache = dt_frame_cache_new(budget, largest_frame(s));
    s->cache = *cache;
    reserve_bytes(s);
    *result = s;
    return 0;
}

int dt_shard_open(struct dt_shard **s, const char *path, struct dt_error *err)
{
    struct dt_frame_cache *cache = NULL;
    DT_TRY(dt_shard_open_shared(s, path, &cache, DEFAULT_CACHE, err));
    (*s)->own_cache = cache;
    return 0;
}

const struct dt_shard_info *dt_shard_get_info(const struct dt_shard *s)
{
    return &s->info;
}

size_t dt_shard_memory(const struct dt_shard *s)
{
    size_t entry = sizeof *s->first_token + sizeof *s->offset + sizeof *s->index_size;
    return (size_t)(s->frames + 1) * (entry + sizeof *s->slots);
}

uint64_t dt_shard_file_size(const struct dt_shard *s)
{
    return s->size;
}

/* Checks the index of frame k in s->bytes against the seek table. */
static int check_index(struct dt_shard *s, uint64_t k, struct dt_index *x, struct dt_error *err)
{
    DT_TRY(dt_format_get_index(s->bytes.data, s->index_size[k], s->info.masked, x, err));
    if (x->first_token != s->first_token[k] ||
        x->tokens != s->first_token[k + 1] - s->first_token[k] ||
        x->data_size != s->offset[k + 1] - s->offset[k] - s->index_size[k])
        return dt_fail(err, DT_EFORMAT, "the index does not agree with the seek table");
    return 0;
}

static int decode_frame(struct dt_shard *s, uint64_t k, char *ids, struct dt_error *err)
{
    struct dt_index x;
    int rc = read_at(s, s->offset[k], (size_t)(s->offset[k + 1] - s->offset[k]), err);
    rc = rc < 0 ? rc : check_index(s, k, &x, err);
    if (rc == 0 && s->info.masked)
        rc = dt_format_decode_mask(s->decoder, s->bytes.data, s->index_size[k], &x,
                                   (uint8_t *)ids + id_bytes(s, k), err);
    if (rc < 0)
        return at_index(s, k, err);
    rc = dt_format_decode_ids(s->decoder, s->bytes.data + s->index_size[k], &x, &s->info, ids, err);
    return rc < 0 ? at_data(s, k, err) : 0;
}

/* The ids of frame k, from the cache or the file. */
static int get_frame(struct dt_shard *s, uint64_t k, const char **ids, struct dt_error *err)
{
    if (s->slots[k] != 0) {
        *ids = dt_frame_cache_get(s->cache, s->slots[k]);
        return 0;
    }
    void *frame = dt_frame_cache_add(s->cache, &s->slots[k], frame_bytes(s, k));
    *ids = frame;
    int rc = decode_frame(s, k, frame, err);
    if (rc < 0)
        dt_frame_cache_drop(s->cache, &s->slots[k]);
    return rc;
}

/* The frame that holds a token of the shard, which has some. */
static uint64_t find_frame(const struct dt_shard *s, uint64_t token)
{
    uint64_t low = 0, high = s->frames, guess = 0;
    if (s->first_token[1] > 0)
        guess = token / s->first_token[1];
    if (guess < high && s->first_token[guess] <= token && token < s->first_token[guess + 1])
        return guess; /* frames of equal size */
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->first_token[middle] <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int get_tokens(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids, bool mark,
                      struct dt_error *err)
{
    if (first > s->info.tokens || count > s->info.tokens - first)
        return dt_fail(
            err, DT_EINVALID,
            "%s: tokens from %llu on, %llu of them, are out of range: the shard has %llu", s->path,
            (unsigned long long)first, (unsigned long long)count,
            (unsigned long long)s->info.tokens);
    for (uint64_t k = count > 0 ? find_frame(s, first) : 0; count > 0; k++) {
        const char *frame;
        uint64_t n = s->first_token[k + 1] - first;
        n = n < count ? n : count;
        DT_TRY(get_frame(s, k, &frame, err));
        size_t at = (size_t)(first - s->first_token[k]);
        dt_format_widen_ids(ids, frame + at * s->info.token_bytes, (size_t)n, s->info.token_bytes);
        if (mark)
            dt_format_mark_ids(ids, (size_t)n, (const uint8_t *)frame + id_bytes(s, k), at);
        ids += n;
        first += n;
        count -= n;
    }
    return 0;
}

int dt_shard_tokens(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                    struct dt_error *err)
{
    return get_tokens(s, first, count, ids, false, err);
}

int dt_shard_targets(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                     struct dt_error *err)
{
    return get_tokens(s, first, count, ids, s->info.masked, err);
}

/* Loads the documents that end in frame k. */
static int load_documents(struct dt_shard *s, uint64_t k, struct dt_error *err)
{
    s->documents = NULL;
    DT_TRY(read_at(s, s->offset[k], s->index_size[k], err));
    DT_TRY(check_index(s, k, &s->index, err));
    const struct dt_shard_document *documents;
    DT_TRY(dt_format_decode_documents(s->decoder, s->bytes.data, s->index_size[k], &s->index,
                                      &documents, err));
    if (s->index.documents > s->starts_capacity) {
        s->starts_capacity = s->index.documents;
        s->starts = dt_realloc(s->starts, s->starts_capacity, sizeof *s->starts);
    }
    uint64_t start = s->index.document_start;
    for (uint32_t i = 0; i < s->index.documents; i++) {
        s->starts[i] = start;
        start += documents[i].tokens;
    }
    s->documents = documents;
    return 0;
}

/* Binary search for the frame in which document i ends: the last with first_document <= i.
 * Reads only the fixed fields of index frames; load_documents checks the result. */
static int find_document(struct dt_shard *s, uint64_t i, uint64_t *frame, struct dt_error *err)
{
    uint64_t low = 0, high = s->frames;
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        DT_TRY(read_at(s, s->offset[middle], DT_INDEX_HEAD(false), err));
        if (dt_format_get64(s->bytes.data + 36) <= i)
            low = middle;
        else
            high = middle;
    }
    *frame = low;
    return 0;
}

static bool is_loaded(const struct dt_shard *s, uint64_t i)
{
    return s->documents && i >= s->index.first_document &&
           i - s->index.first_document < s->index.documents;
}

int dt_shard_get_document(struct dt_shard *s, uint64_t i, uint64_t *first,
                          struct dt_shard_document *document, struct dt_error *err)
{
    uint64_t k;
    if (s->info.row)
        return dt_fail(err, DT_EINVALID, "%s: documents in rows cannot be read by number", s->path);
    if (i >= s->info.documents)
        return dt_fail(
            err, DT_EMISSING,
            "%s: document %llu is out of range: there are %llu documents, counted from 0", s->path,
            (unsigned long long)i, (unsigned long long)s->info.documents);
    if (!is_loaded(s, i)) {
        if (find_document(s, i, &k, err) < 0)
            return dt_fail_context(err, "%s", s->path);
        if (load_documents(s, k, err) < 0)
            return at_index(s, k, err);
        if (!is_loaded(s, i)) {
            dt_fail(err, DT_EFORMAT, "document %llu is not where the indexes say",
                    (unsigned long long)i);
            return at_index(s, k, err);
        }
    }
    *first = s->starts[i - s->index.first_document];
    *document = s->documents[i - s->index.first_document];
    return 0;
}

void dt_shard_close(struct dt_shard *s)
{
    if (s == NULL)
        return;
    for (uint64_t k = 0; s->slots && k < s->frames; k++)
        dt_frame_cache_drop(s->cache, &s->slots[k]);
    dt_frame_cache_free(s->own_cache);
    dt_frame_decoder_free(s->decoder);
    dt_buffer_release(&s->bytes);
    close(s->fd);
    free(s->path);
    free(s->provenance);
    free(s->first_token);
    free(s->offset);
    free(s->index_size);
    free(s->slots);
    free(s->starts);
    free(s);
}
