/* SPDX-License-Identifier: MIT */
/* gzip over ISA-L, as a plug-in that takes the place of zlib, which needs more than twice the time.
 */
#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "io/codec.h"

struct state {
    struct inflate_state stream;
    bool in_frame;
};

static int open_gzip(void **state, struct dt_error *err)
{
    struct state *s = *state = dt_alloc(1, sizeof *s);
    (void)err;
    isal_inflate_init(&s->stream);
    s->stream.crc_flag = ISAL_GZIP;
    return 0;
}

/* In the words of zlib. */
static const char *reason(int rc)
{
    switch (rc) {
    case ISAL_INVALID_WRAPPER:
        return "incorrect header check";
    case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check";
    case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
    default:
        return "gzip data is damaged";
    }
}

static int decode_gzip(void *state, struct dt_codec_data *d, struct dt_error *err)
{
    struct state *s = state;
    if (!s->in_frame) { /* another member may follow the last */
        isal_inflate_reset(&s->stream);
        s->in_frame = true;
    }
    s->stream.next_in = (uint8_t *)(uintptr_t)d->in + d->in_at;
    const uint32_t given = (uint32_t)(d->in_size - d->in_at);
    s->stream.avail_in = given;
    s->stream.next_out = d->out + d->out_at;
    s->stream.avail_out = (uint32_t)(d->out_size - d->out_at);
    int rc = isal_inflate(&s->stream);
    if (s->stream.avail_in > given) { /* ISA-L 2.30 counts below 0 after some damaged headers */
        d->in_at = d->in_size;
        return dt_fail(err, DT_EFORMAT, "%s", reason(ISAL_INVALID_BLOCK));
    }
    d->in_at = d->in_size - s->stream.avail_in;
    d->out_at = d->out_size - s->stream.avail_out;
    d->in_frame = s->in_frame = s->stream.block_state != ISAL_BLOCK_FINISH;
    return rc == ISAL_DECOMP_OK || rc == ISAL_END_INPUT || rc == ISAL_OUT_OVERFLOW
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s", reason(rc));
}

static void close_gzip(void *state)
{
    free(state);
}

__attribute__((visibility("default"))) const struct dt_codec dt_codec = {
    DT_CODEC_ABI, "gzip", "gzip -dc", open_gzip, decode_gzip, close_gzip, NULL, NULL};
