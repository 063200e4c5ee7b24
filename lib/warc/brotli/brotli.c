/* SPDX-License-Identifier: MIT */
/* The content coding br over libbrotlidec, as a plug-in. */
#include <brotli/decode.h>

#include "warc/coding.h"

#define STEP ((size_t)1 << 16)

/* br has no magic number: data that cannot be decoded from its first byte is copied. */
static enum dt_warc_body stored_decoded(const char *data, size_t size, size_t most,
                                        struct dt_buffer *out)
{
    dt_buffer_append(out, data, size);
    return size > most ? DT_WARC_BODY_TOO_LONG : DT_WARC_BODY_DECODED;
}

static enum dt_warc_body decode(const char *data, size_t size, size_t most, struct dt_buffer *out)
{
    BrotliDecoderState *state = dt_checked(BrotliDecoderCreateInstance(NULL, NULL, NULL));
    const uint8_t *next = (const uint8_t *)data;
    BrotliDecoderResult rc = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    while (rc == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT && out->size <= most) {
        size_t room = out->size < STEP ? STEP : out->size;
        room = room > most + 1 - out->size ? most + 1 - out->size : room;
        dt_buffer_reserve(out, out->size + room + 1);
        uint8_t *to = (uint8_t *)out->data + out->size;
        size_t left = room;
        rc = BrotliDecoderDecompressStream(state, &size, &next, &left, &to, NULL);
        out->size += room - left;
    }
    BrotliDecoderDestroyInstance(state);
    if (out->size > most)
        return DT_WARC_BODY_TOO_LONG;
    if (rc == BROTLI_DECODER_RESULT_SUCCESS)
        return DT_WARC_BODY_DECODED;
    if (rc == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT)
        return DT_WARC_BODY_CUT;
    if (out->size == 0)
        return stored_decoded(data, (size_t)((const char *)next - data) + size, most, out);
    return DT_WARC_BODY_DAMAGED;
}

__attribute__((visibility("default"))) extern const struct dt_brotli dt_brotli;
const struct dt_brotli dt_brotli = {DT_BROTLI_ABI, decode};
