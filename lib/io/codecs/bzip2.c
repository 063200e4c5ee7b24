/* SPDX-License-Identifier: MIT */
/* bzip2 over libbz2, as a plug-in. */
#include <bzlib.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "io/codec.h"

struct state {
    bz_stream stream;
    bool in_frame;
};

static int open_bzip2(void **state, struct dt_error *err)
{
    (void)err;
    *state = dt_alloc(1, sizeof(struct state));
    return 0;
}

static int decode_bzip2(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    struct state *s = state;
    if (!s->in_frame) { /* another stream may follow the last */
        s->stream = (bz_stream){0};
        if (BZ2_bzDecompressInit(&s->stream, 0, 0) != BZ_OK)
            return dt_fail(err, DT_ENOMEM, "cannot start libbz2");
        s->in_frame = true;
    }
    s->stream.next_in = (char *)(uintptr_t)d->in + d->in_at;
    s->stream.avail_in = (unsigned)(d->in_size - d->in_at);
    s->stream.next_out = (char *)d->out + d->out_at;
    s->stream.avail_out = (unsigned)(d->out_size - d->out_at);
    int rc = BZ2_bzDecompress(&s->stream);
    d->in_at = d->in_size - s->stream.avail_in;
    d->out_at = d->out_size - s->stream.avail_out;
    d->in_frame = rc != BZ_STREAM_END;
    if (rc == BZ_STREAM_END) {
        BZ2_bzDecompressEnd(&s->stream);
        s->in_frame = false;
    }
    if (rc == BZ_MEM_ERROR)
        return dt_fail(err, DT_ENOMEM, "out of memory in libbz2");
    return rc == BZ_OK || rc == BZ_STREAM_END
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s",
                         rc == BZ_DATA_ERROR_MAGIC ? "what follows is not bzip2 data"
                                                   : "bzip2 data is damaged");
}

static void close_bzip2(void *state)
{
    struct state *s = state;
    if (s->in_frame)
        BZ2_bzDecompressEnd(&s->stream);
    free(s);
}

__attribute__((visibility("default"))) const struct dt_codec dt_codec = {
    DT_CODEC_ABI, "bzip2", "bzip2 -dc", open_bzip2, decode_bzip2, close_bzip2, NULL, NULL};
