/* SPDX-License-Identifier: MIT */
/* xz over liblzma, as a plug-in. */
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "io/codec.h"

/* Of the dictionary, and some for the decoder itself. */
#define MOST_MEMORY (((uint64_t)1 << DT_CODEC_WINDOW_LOG) + ((uint64_t)1 << 20))

struct state {
    lzma_stream stream;
    bool in_frame;
    unsigned padding; /* zero bytes since the last stream */
};

static int open_xz(void **state, struct dt_error *err)
{
    struct state *s = *state = dt_alloc(1, sizeof *s);
    (void)err;
    s->stream = (lzma_stream)LZMA_STREAM_INIT;
    return 0;
}

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

/* Another stream may follow the last, after zero bytes, four or a multiple. One call passes over
 * them alone, so that the caller sees where the stream begins. */
static int begin_stream(struct state *s, struct dt_codec_data *d, struct dt_error *err)
{
    size_t before = d->in_at;
    for (; d->in_at < d->in_size && d->in[d->in_at] == 0; d->in_at++)
        s->padding = (s->padding + 1) % 4;
    if (s->padding > 0 && (d->in_at < d->in_size || d->ended))
        return refuse(LZMA_DATA_ERROR, err);
    if (d->in_at > before || d->in_at == d->in_size)
        return 0;
    s->in_frame = true;
    return lzma_stream_decoder(&s->stream, MOST_MEMORY, LZMA_TELL_UNSUPPORTED_CHECK) == LZMA_OK
               ? 0
               : dt_fail(err, DT_ENOMEM, "cannot start liblzma");
}

static int decode_xz(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    struct state *s = state;
    lzma_stream *stream = &s->stream;
    if (!s->in_frame)
        DT_TRY(begin_stream(s, d, err));
    d->in_frame = s->in_frame || s->padding > 0;
    if (!s->in_frame)
        return 0;
    stream->next_in = d->in + d->in_at;
    stream->avail_in = d->in_size - d->in_at;
    stream->next_out = d->out + d->out_at;
    stream->avail_out = d->out_size - d->out_at;
    lzma_ret rc = lzma_code(stream, LZMA_RUN);
    d->in_at = d->in_size - stream->avail_in;
    d->out_at = d->out_size - stream->avail_out;
    d->in_frame = s->in_frame = rc != LZMA_STREAM_END;
    return rc == LZMA_OK || rc == LZMA_STREAM_END || rc == LZMA_BUF_ERROR ? 0 : refuse(rc, err);
}

static void close_xz(void *state)
{
    struct state *s = state;
    lzma_end(&s->stream);
    free(s);
}

__attribute__((visibility("default")))
const struct dt_codec dt_codec = {DT_CODEC_ABI, "xz", "xz -dc", open_xz, decode_xz, close_xz};
