/* SPDX-License-Identifier: MIT */
/* xz over liblzma, as a plug-in. Streams are decoded block by block, so that each is a frame: a
 * stream is its header, blocks, their index and a footer (the .xz file format, version 1.1.0). */
#include <errno.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "io/codec.h"

/* Of the dictionary, and some for the decoder itself. */
#define MOST_MEMORY (((uint64_t)1 << DT_CODEC_WINDOW_LOG) + ((uint64_t)1 << 20))
#define READ_SIZE   ((size_t)1 << 16)

enum step { STREAM_PADDING, STREAM_HEADER, AFTER_BLOCK, BLOCK_HEADER, BLOCK, INDEX, STREAM_FOOTER };

struct state {
    enum step step;
    unsigned padding; /* zero bytes since the last stream */
    lzma_stream stream;
    lzma_stream_flags flags; /* of the stream's header */
    lzma_block block;
    uint8_t head[LZMA_BLOCK_HEADER_SIZE_MAX]; /* of a header or footer that has begun */
    size_t have;                              /* bytes of it */
    lzma_index_hash *hash; /* of the blocks, for the index; NULL: the first were not decoded */
    lzma_index *index;     /* of a stream without a hash */
};

static int refuse(lzma_ret rc, struct dt_error *err)
{
    if (rc == LZMA_MEM_ERROR)
        return dt_fail(err, DT_ENOMEM, "out of memory in liblzma");
    return dt_fail(err, DT_EFORMAT, "%s",
                   rc == LZMA_MEMLIMIT_ERROR
                       ? "needs a dictionary of more than 128 MiB; pipe it: xz -dc FILE"
                   : rc == LZMA_FORMAT_ERROR      ? "what follows is not xz data"
                   : rc == LZMA_UNSUPPORTED_CHECK ? "its checksum is of a kind that liblzma does "
                                                    "not know"
                   : rc == LZMA_OPTIONS_ERROR     ? "has options that liblzma does not know"
                                                  : "xz data is damaged");
}

static int check(lzma_ret rc, struct dt_error *err)
{
    return rc == LZMA_OK ? 0 : refuse(rc, err);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Another stream may follow the last, after zero bytes, four or a multiple. One call passes over
 * them alone, so that the caller sees where the stream begins. */
static int pass_padding(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    size_t before = d->in_at;
    for (; d->in_at < d->in_size && d->in[d->in_at] == 0; d->in_at++)
        s->padding = (s->padding + 1) % 4;
    if (s->padding > 0 && (d->in_at < d->in_size || d->ended))
        return refuse(LZMA_DATA_ERROR, err);
    if (d->in_at == before && d->in_at < d->in_size)
        s->step = STREAM_HEADER;
    return 0;
}

/* Whether all of the next `size` bytes are in s->head. */
static bool gather(struct state *s, struct dt_codec_data *d, size_t size)
{
    size_t left = d->in_size - d->in_at, n = size - s->have < left ? size - s->have : left;
    memcpy(s->head + s->have, d->in + d->in_at, n);
    s->have += n;
    d->in_at += n;
    if (s->have < size)
        return false;
    s->have = 0;
    return true;
}

static int begin_stream(struct state *s, struct dt_error *err)
{
    DT_TRY(check(lzma_stream_header_decode(&s->flags, s->head), err));
    if (!lzma_check_is_supported(s->flags.check))
        return refuse(LZMA_UNSUPPORTED_CHECK, err);
    s->hash = lzma_index_hash_init(s->hash, NULL);
    s->step = BLOCK_HEADER;
    return s->hash ? 0 : refuse(LZMA_MEM_ERROR, err);
}

static int begin_block(struct state *s, struct dt_error *err)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    s->block = (lzma_block){.version = 1,
                            .header_size = lzma_block_header_size_decode(s->head[0]),
                            .check = s->flags.check,
                            .filters = filters};
    DT_TRY(check(lzma_block_header_decode(&s->block, NULL, s->head), err));
    lzma_ret rc = lzma_raw_decoder_memusage(filters) > MOST_MEMORY
                      ? LZMA_MEMLIMIT_ERROR
                      : lzma_block_decoder(&s->stream, &s->block);
    lzma_filters_free(filters, NULL);
    s->block.filters = NULL;
    s->step = BLOCK;
    return check(rc, err);
}

static int begin_index(struct state *s, struct dt_error *err)
{
    s->step = INDEX;
    return s->hash ? 0 : check(lzma_index_decoder(&s->stream, &s->index, MOST_MEMORY), err);
}

/* A block, or the index that begins with a zero byte. */
static int read_block_header(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    uint8_t first = s->have ? s->head[0] : d->in[d->in_at];
    if (first == 0)
        return begin_index(s, err);
    return gather(s, d, lzma_block_header_size_decode(first)) ? begin_block(s, err) : 0;
}

static lzma_ret run(struct state *s, struct dt_codec_data *d)
{
    lzma_stream *stream = &s->stream;
    stream->next_in = d->in + d->in_at;
    stream->avail_in = d->in_size - d->in_at;
    stream->next_out = d->out + d->out_at;
    stream->avail_out = d->out_size - d->out_at;
    lzma_ret rc = lzma_code(stream, LZMA_RUN);
    d->in_at = d->in_size - stream->avail_in;
    d->out_at = d->out_size - stream->avail_out;
    return rc == LZMA_BUF_ERROR ? LZMA_OK : rc;
}

static int decode_block(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    lzma_ret rc = run(s, d);
    if (rc != LZMA_STREAM_END)
        return check(rc, err);
    s->step = AFTER_BLOCK;
    return s->hash ? check(lzma_index_hash_append(s->hash, lzma_block_unpadded_size(&s->block),
                                                  s->block.uncompressed_size),
                           err)
                   : 0;
}

static int decode_index(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    lzma_ret rc =
        s->hash ? lzma_index_hash_decode(s->hash, d->in, &d->in_at, d->in_size) : run(s, d);
    if (rc != LZMA_STREAM_END)
        return rc == LZMA_BUF_ERROR ? 0 : check(rc, err);
    s->step = STREAM_FOOTER;
    return 0;
}

static int end_stream(struct state *s, struct dt_error *err)
{
    lzma_stream_flags footer;
    uint64_t size = s->hash ? lzma_index_hash_size(s->hash) : lzma_index_size(s->index);
    DT_TRY(check(lzma_stream_footer_decode(&footer, s->head), err));
    DT_TRY(check(lzma_stream_flags_compare(&s->flags, &footer), err));
    if (footer.backward_size != size)
        return refuse(LZMA_DATA_ERROR, err);
    lzma_index_end(s->index, NULL);
    s->index = NULL;
    s->step = STREAM_PADDING;
    return 0;
}

static int take_step(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    switch (s->step) {
    case STREAM_PADDING:
        DT_TRY(pass_padding(s, d, err));
        if (s->step == STREAM_PADDING)
            return 0;
        /* fall through */
    case STREAM_HEADER:
        return gather(s, d, LZMA_STREAM_HEADER_SIZE) ? begin_stream(s, err) : 0;
    case AFTER_BLOCK:
    case BLOCK_HEADER:
        return read_block_header(s, d, err);
    case BLOCK:
        return decode_block(s, d, err);
    case INDEX:
        return decode_index(s, d, err);
    default:
        return gather(s, d, LZMA_STREAM_HEADER_SIZE) ? end_stream(s, err) : 0;
    }
}

/* Between two blocks one call takes nothing, so that the caller sees where the second begins. */
static int decode_xz(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    struct state *s = state;
    int rc = 0;
    d->in_frame = true;
    if (s->step == AFTER_BLOCK && d->in_at < d->in_size && d->in[d->in_at] != 0) {
        s->step = BLOCK_HEADER;
        d->in_frame = false;
    } else if (d->in_at < d->in_size || s->step == BLOCK || s->step == STREAM_PADDING) {
        rc = take_step(s, d, err);
    }
    if (s->step == STREAM_PADDING)
        d->in_frame = s->padding > 0;
    return rc;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int open_xz(void **state, struct dt_error *err)
{
    struct state *s = *state = dt_alloc(1, sizeof *s);
    (void)err;
    s->stream = (lzma_stream)LZMA_STREAM_INIT;
    return 0;
}

static void close_xz(void *state)
{
    struct state *s = state;
    lzma_end(&s->stream);
    lzma_index_hash_end(s->hash, NULL);
    lzma_index_end(s->index, NULL);
    free(s);
}

static int open_block(void **state, const struct dt_codec_block *block, struct dt_error *err)
{
    DT_TRY(open_xz(state, err));
    struct state *s = *state;
    if (!block->begins_stream)
        s->step = BLOCK_HEADER;
    s->flags =
        (lzma_stream_flags){.backward_size = LZMA_VLI_UNKNOWN, .check = (lzma_check)block->check};
    return 0;
}

/* The indexes of all streams of a file. */
static int read_indexes(int fd, lzma_index **index, struct dt_error *err)
{
    struct stat st;
    lzma_stream stream = LZMA_STREAM_INIT;
    if (fstat(fd, &st) < 0)
        return dt_fail_errno(err, "cannot read xz data");
    uint8_t *data = dt_alloc(READ_SIZE, 1);
    off_t at = 0;
    lzma_ret rc = lzma_file_info_decoder(&stream, index, MOST_MEMORY, (uint64_t)st.st_size);
    for (ssize_t n = 1; n > 0 && (rc == LZMA_OK || rc == LZMA_SEEK_NEEDED);) {
        if (rc == LZMA_SEEK_NEEDED) {
            at = (off_t)stream.seek_pos;
            stream.avail_in = 0;
        }
        if (stream.avail_in == 0) {
            do {
                n = pread(fd, data, READ_SIZE, at);
            } while (n < 0 && errno == EINTR);
            stream.next_in = data;
            stream.avail_in = n > 0 ? (size_t)n : 0;
            at += n > 0 ? n : 0;
        }
        rc = lzma_code(&stream, LZMA_RUN);
    }
    lzma_end(&stream);
    free(data);
    return rc == LZMA_STREAM_END ? 0 : refuse(rc == LZMA_MEM_ERROR ? rc : LZMA_DATA_ERROR, err);
}

static int find_block(int fd, uint64_t first, uint64_t end, bool streams,
                      struct dt_codec_block *block, struct dt_error *err)
{
    lzma_index *index = NULL;
    lzma_index_iter i;
    *block = (struct dt_codec_block){.at = end};
    DT_TRY(read_indexes(fd, &index, err));
    lzma_index_iter_init(&i, index);
    while (block->at == end && !lzma_index_iter_next(&i, LZMA_INDEX_ITER_NONEMPTY_BLOCK)) {
        bool begins = i.block.number_in_stream == 1;
        uint64_t at = begins ? i.stream.compressed_offset : i.block.compressed_file_offset;
        if (at >= end)
            break;
        if (at >= first && (begins || !streams))
            *block = (struct dt_codec_block){
                .at = at, .begins_stream = begins, .check = (int)i.stream.flags->check};
    }
    lzma_index_end(index, NULL);
    return 0;
}

__attribute__((visibility("default"))) const struct dt_codec dt_codec = {
    DT_CODEC_ABI, "xz", "xz -dc", open_xz, decode_xz, close_xz, find_block, open_block};
