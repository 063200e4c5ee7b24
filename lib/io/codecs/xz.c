/* SPDX-License-Identifier: MIT */
/* xz over liblzma, as a plug-in. */
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "io/codec.h"

/* Of the dictionary, and some for the decoder itself. */
#define MOST_MEMORY (((uint64_t)1 << DT_CODEC_WINDOW_LOG) + ((uint64_t)1 << 20))

static int open_xz(void **state, struct dt_error *err)
{
    lzma_stream *s = *state = dt_alloc(1, sizeof *s);
    *s = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(s, MOST_MEMORY, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK)
        return dt_fail(err, DT_ENOMEM, "cannot start liblzma");
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

static int decode_xz(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    lzma_stream *s = state;
    s->next_in = d->in + d->in_at;
    s->avail_in = d->in_size - d->in_at;
    s->next_out = d->out + d->out_at;
    s->avail_out = d->out_size - d->out_at;
    lzma_ret rc = lzma_code(s, d->ended ? LZMA_FINISH : LZMA_RUN);
    d->in_at = d->in_size - s->avail_in;
    d->out_at = d->out_size - s->avail_out;
    d->in_frame = rc != LZMA_STREAM_END;
    return rc == LZMA_OK || rc == LZMA_STREAM_END || rc == LZMA_BUF_ERROR ? 0 : refuse(rc, err);
}

static void close_xz(void *state)
{
    lzma_end(state);
    free(state);
}

__attribute__((visibility("default")))
const struct dt_codec dt_codec = {DT_CODEC_ABI, "xz", "xz -dc", open_xz, decode_xz, close_xz};
