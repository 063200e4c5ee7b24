/* SPDX-License-Identifier: MIT */
#include "warc/coding.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/plugin.h"

#define STEP       ((size_t)1 << 16)
#define MOST_STEP  ((size_t)1 << 30) /* of zlib's uInt */
#define WINDOW_LOG 27                /* of zstd's window, as for files: io/input.c */

/* Room for STEP to MOST_STEP more bytes of output, but never more than one above the limit. */
static size_t make_room(struct dt_buffer *out, size_t most)
{
    size_t room = out->size < STEP ? STEP : out->size < MOST_STEP ? out->size : MOST_STEP;
    room = room > most + 1 - out->size ? most + 1 - out->size : room;
    dt_buffer_reserve(out, out->size + room + 1);
    return room;
}

/* windows: of inflateInit2: gzip and zlib, or raw deflate. */
static enum dt_warc_body inflate_all(const char *data, size_t size, int windows, size_t most,
                                     struct dt_buffer *out)
{
    z_stream z = {.next_in = (unsigned char *)data};
    const unsigned char *end = z.next_in + size;
    int rc = Z_OK;
    if (inflateInit2(&z, windows) != Z_OK)
        dt_out_of_memory();
    while (rc == Z_OK && out->size <= most) {
        size_t room = make_room(out, most);
        z.next_out = (unsigned char *)out->data + out->size;
        z.avail_out = (uInt)room;
        size_t left = (size_t)(end - z.next_in);
        z.avail_in = (uInt)(left < MOST_STEP ? left : MOST_STEP);
        rc = inflate(&z, Z_NO_FLUSH);
        out->size += room - z.avail_out;
        if (rc == Z_STREAM_END && end - z.next_in > 2 && z.next_in[0] == 0x1f &&
            z.next_in[1] == 0x8b)
            rc = inflateReset(&z); /* another member */
    }
    inflateEnd(&z);
    if (rc == Z_MEM_ERROR)
        dt_out_of_memory();
    if (out->size > most)
        return DT_WARC_BODY_TOO_LONG;
    return rc == Z_STREAM_END  ? DT_WARC_BODY_DECODED
           : rc == Z_BUF_ERROR ? DT_WARC_BODY_CUT
                               : DT_WARC_BODY_DAMAGED;
}

static enum dt_warc_body decode_gzip(const char *data, size_t size, size_t most,
                                     struct dt_buffer *out)
{
    if (size < 2 || memcmp(data, "\x1f\x8b", 2) != 0) {
        dt_buffer_append(out, data, size);
        return size > most ? DT_WARC_BODY_TOO_LONG : DT_WARC_BODY_DECODED;
    }
    return inflate_all(data, size, 15 + 16, most, out);
}

/* zlib's format, or raw deflate, which some servers send; what is neither was stored decoded. */
static enum dt_warc_body decode_deflate(const char *data, size_t size, size_t most,
                                        struct dt_buffer *out)
{
    const unsigned char *head = (const unsigned char *)data;
    bool zlib = size >= 2 && (head[0] & 15) == 8 && (head[0] << 8 | head[1]) % 31 == 0;
    enum dt_warc_body rc = inflate_all(data, size, zlib ? 15 : -15, most, out);
    if (rc != DT_WARC_BODY_DAMAGED || zlib)
        return rc;
    dt_buffer_clear(out);
    dt_buffer_append(out, data, size);
    return size > most ? DT_WARC_BODY_TOO_LONG : DT_WARC_BODY_DECODED;
}

static bool begins_frame(const char *data, size_t size)
{
    return size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
}

static enum dt_warc_body decode_zstd(const char *data, size_t size, size_t most,
                                     struct dt_buffer *out)
{
    if (!begins_frame(data, size)) {
        dt_buffer_append(out, data, size);
        return size > most ? DT_WARC_BODY_TOO_LONG : DT_WARC_BODY_DECODED;
    }
    ZSTD_DStream *stream = dt_checked(ZSTD_createDStream());
    ZSTD_inBuffer in = {data, size, 0};
    size_t rc = 1;
    bool stuck = false;
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG);
    while ((rc != 0 || begins_frame(data + in.pos, size - in.pos)) && !ZSTD_isError(rc) && !stuck &&
           out->size <= most) {
        size_t room = make_room(out, most), before = in.pos;
        ZSTD_outBuffer to = {out->data + out->size, room, 0};
        rc = ZSTD_decompressStream(stream, &to, &in);
        out->size += ZSTD_isError(rc) ? 0 : to.pos;
        stuck = !ZSTD_isError(rc) && in.pos == before && to.pos == 0;
    }
    ZSTD_freeDStream(stream);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation)
        dt_out_of_memory();
    if (out->size > most)
        return DT_WARC_BODY_TOO_LONG;
    return rc == 0 ? DT_WARC_BODY_DECODED : stuck ? DT_WARC_BODY_CUT : DT_WARC_BODY_DAMAGED;
}

static enum dt_warc_body copy(const char *data, size_t size, size_t most, struct dt_buffer *out)
{
    dt_buffer_append(out, data, size);
    return size > most ? DT_WARC_BODY_TOO_LONG : DT_WARC_BODY_DECODED;
}

/* --- br, by a plug-in that is looked for once ------------------------------------------------- */

static const struct dt_brotli *brotli;

static void load_brotli(void)
{
    DT_PLUGIN(kind, brotli, "decoder", DT_BROTLI_ABI, "");
    struct dt_error ignored;
    if (dt_plugin_load(&kind, "brotli", (const void **)&brotli, &ignored) < 0)
        brotli = NULL;
}

static enum dt_warc_body decode_br(const char *data, size_t size, size_t most,
                                   struct dt_buffer *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_brotli);
    if (brotli == NULL)
        return DT_WARC_BODY_NO_BROTLI;
    return brotli->decode(data, size, most, out);
}

/* --- all -------------------------------------------------------------------------------------- */

typedef enum dt_warc_body decoder(const char *data, size_t size, size_t most,
                                  struct dt_buffer *out);

static const struct {
    const char *name;
    decoder *decode;
} codings[] = {
    {"gzip", decode_gzip}, {"x-gzip", decode_gzip}, {"br", decode_br}, {"deflate", decode_deflate},
    {"zstd", decode_zstd}, {"identity", copy},      {"none", copy},    {"utf-8", copy}};

enum dt_warc_body dt_coding_decode(const char *name, size_t name_size, const char *data,
                                   size_t size, size_t most, struct dt_buffer *out)
{
    dt_buffer_clear(out);
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if (strlen(codings[i].name) == name_size &&
            strncasecmp(codings[i].name, name, name_size) == 0) {
            enum dt_warc_body rc = codings[i].decode(data ? data : "", size, most, out);
            dt_buffer_append(out, "", 0); /* ends with 0 */
            return rc;
        }
    return DT_WARC_BODY_UNKNOWN;
}
