/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "warc/response.h"
#include "warc/warc.h"

#define LIMIT ((size_t)1 << 20)

static enum dt_warc_body decode(const char *block, size_t size, size_t limit,
                                struct dt_buffer *body)
{
    struct dt_warc_response r;
    assert_true(dt_warc_response_parse(block, size, &r));
    return dt_warc_response_decode(&r, limit, body);
}

static void assert_decodes(const char *block, enum dt_warc_body outcome, const char *expected)
{
    struct dt_buffer body = DT_BUFFER_EMPTY;
    assert_int_equal(decode(block, strlen(block), LIMIT, &body), outcome);
    assert_string_equal(body.data ? body.data : "", expected);
    dt_buffer_release(&body);
}

static void status_and_headers_are_parsed(void **state)
{
    static const char block[] = "HTTP/1.1  404 Not Found\r\nA: b\r\n\r\nbody";
    struct dt_warc_response r;
    size_t size;
    (void)state;
    assert_true(dt_warc_response_parse(block, sizeof block - 1, &r));
    assert_int_equal(r.status, 404);
    assert_memory_equal(dt_warc_field(r.headers, r.headers_size, "a", &size), "b", 1);
    assert_int_equal(r.body_size, 4);
    assert_true(dt_warc_response_parse("HTTP/2 200\n\n", 12, &r));
    assert_int_equal(r.status, 200);
    assert_false(dt_warc_response_parse("HTTP/1.1 200 OK\r\nA: b\r\n", 23, &r));
    assert_false(dt_warc_response_parse("GET / HTTP/1.1\r\n\r\n", 18, &r));
    assert_false(dt_warc_response_parse("HTTP/1.1 20\r\n\r\n", 15, &r));
    assert_false(dt_warc_response_parse(NULL, 0, &r));
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void chunks_are_joined(void **state)
{
    (void)state;
    assert_decodes(CHUNKED "2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: z\r\n\r\n",
                   DT_WARC_BODY_DECODED, "ab0123456789");
    assert_decodes(CHUNKED "2\nab\n1\nc\n0\n\n", DT_WARC_BODY_DECODED, "abc");
    assert_decodes(CHUNKED "5\r\nab", DT_WARC_BODY_CUT, "ab");
    assert_decodes(CHUNKED "2\r\nab\r\n", DT_WARC_BODY_CUT, "ab");
    assert_decodes(CHUNKED "2\r\nab\r\n1f", DT_WARC_BODY_CUT, "ab");
    assert_decodes(CHUNKED "2\r\nab\r\n0\r", DT_WARC_BODY_CUT, "ab");
    assert_decodes(CHUNKED "2\r\nabXX\r\n", DT_WARC_BODY_DAMAGED, "ab");
    assert_decodes(CHUNKED "2\r\nabXX", DT_WARC_BODY_DAMAGED, "ab");
    assert_decodes(CHUNKED "2\r\nab\r\n1x\r\n", DT_WARC_BODY_DAMAGED, "ab");
    assert_decodes(CHUNKED "ffffffff\r\nab", DT_WARC_BODY_CUT, "ab");
}

static void transfer_codings_besides_chunks_are_undone(void **state)
{
    (void)state;
    assert_decodes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, Chunked\r\n\r\n"
                   "2\r\nab\r\n0\r\n\r\n",
                   DT_WARC_BODY_DECODED, "ab");
    assert_decodes("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
                   "2\r\nab\r\n0\r\n\r\n",
                   DT_WARC_BODY_DECODED, "ab"); /* stored without gzip */
    assert_decodes("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
                   "4\r\n\x1f\x8bzz\r\n0\r\n\r\n",
                   DT_WARC_BODY_DAMAGED, "");
    assert_decodes("HTTP/1.1 200 OK\r\nTransfer-Encoding: compress, chunked\r\n\r\n"
                   "2\r\nab\r\n0\r\n\r\n",
                   DT_WARC_BODY_UNKNOWN, "");
}

static void a_body_stored_without_its_codings_is_taken(void **state)
{
    (void)state;
    assert_decodes(CHUNKED "<p>text", DT_WARC_BODY_DECODED, "<p>text");
    assert_decodes("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n<p>text", DT_WARC_BODY_DECODED,
                   "<p>text");
    assert_decodes("HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n<p>text",
                   DT_WARC_BODY_DECODED, "<p>text");
    assert_decodes("HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n<p>text", DT_WARC_BODY_DECODED,
                   "<p>text");
    assert_decodes("HTTP/1.1 200 OK\r\nContent-Encoding: exotic\r\n\r\n<p>text",
                   DT_WARC_BODY_UNKNOWN, "");
}

/* A response with the coding's bytes of text, in a buffer that the caller releases. */
static struct dt_buffer encoded(const char *coding, int windows, const char *text, size_t size)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_printf(&b, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n", coding);
    dt_buffer_reserve(&b, b.size + size + 1000);
    size_t room = b.capacity - b.size;
    if (windows == 0) {
        b.size += ZSTD_compress(b.data + b.size, room, text, size, 3);
        return b;
    }
    z_stream z = {.next_in = (unsigned char *)text, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, windows, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (unsigned char *)b.data + b.size;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b.size += room - z.avail_out;
    deflateEnd(&z);
    return b;
}

static const struct {
    const char *name;
    int windows; /* of zlib; 0: zstd */
} codings[] = {{"gzip", 31}, {"X-GZip", 31}, {"deflate", 15}, {"deflate", -15}, {"zstd", 0}};

static void each_coding_is_decoded_and_bounded(void **state)
{
    (void)state;
    size_t size = 300000;
    char *text = dt_alloc(size + 1, 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i * i / 1000 % 26);
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        struct dt_buffer b = encoded(codings[i].name, codings[i].windows, text, size);
        struct dt_buffer body = DT_BUFFER_EMPTY;
        assert_int_equal(decode(b.data, b.size, LIMIT, &body), DT_WARC_BODY_DECODED);
        assert_int_equal(body.size, size);
        assert_memory_equal(body.data, text, size);
        assert_int_equal(decode(b.data, b.size, size - 1, &body), DT_WARC_BODY_TOO_LONG);
        assert_int_equal(decode(b.data, b.size, size, &body), DT_WARC_BODY_DECODED);
        assert_int_equal(decode(b.data, b.size - b.size / 3, LIMIT, &body), DT_WARC_BODY_CUT);
        assert_memory_equal(body.data ? body.data : "", text, body.size);
        dt_buffer_release(&body);
        dt_buffer_release(&b);
    }
    free(text);
}

static void codings_are_undone_from_the_last(void **state)
{
    (void)state;
    struct dt_buffer inner = encoded("", 31, "text", 4), body = DT_BUFFER_EMPTY;
    const char *gzip = strstr(inner.data, "\r\n\r\n") + 4;
    struct dt_buffer outer =
        encoded("gzip, zstd", 0, gzip, (size_t)(inner.data + inner.size - gzip));
    assert_int_equal(decode(outer.data, outer.size, LIMIT, &body), DT_WARC_BODY_DECODED);
    assert_string_equal(body.data, "text");
    dt_buffer_release(&body);
    dt_buffer_release(&inner);
    dt_buffer_release(&outer);
}

static void damaged_data_is_named(void **state)
{
    (void)state;
    struct dt_buffer b = encoded("gzip", 31, "text that is compressed", 23);
    struct dt_buffer body = DT_BUFFER_EMPTY;
    b.data[b.size - 12] ^= 0x55;
    assert_int_equal(decode(b.data, b.size, LIMIT, &body), DT_WARC_BODY_DAMAGED);
    dt_buffer_release(&body);
    dt_buffer_release(&b);
}

/* By the plug-in, if it was built. */
static void br_is_decoded(void **state)
{
    static const char br[] = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n"
                             "\x1b\x34\x00\xf8\x8d\x94\x6e\xde\x48\x0d\xc2\x13\x06\xa7\x59"
                             "\x7c\xca\xce\xa4\x20\x9a\xf4\x93\x03\x38\x33\x50\xee\xf7\x43"
                             "\xdc\x01\x19";
    static const char text[] = "<p>text of a page, text of a page, text of a page</p>";
    struct dt_buffer body = DT_BUFFER_EMPTY;
    (void)state;
    enum dt_warc_body rc = decode(br, sizeof br - 1, LIMIT, &body);
    if (rc == DT_WARC_BODY_NO_BROTLI)
        skip();
    assert_int_equal(rc, DT_WARC_BODY_DECODED);
    assert_string_equal(body.data, text);
    assert_int_equal(decode(br, sizeof br - 1, sizeof text - 2, &body), DT_WARC_BODY_TOO_LONG);
    assert_int_equal(decode(br, sizeof br - 6, LIMIT, &body), DT_WARC_BODY_CUT);
    dt_buffer_release(&body);
    assert_decodes("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n<p>text", DT_WARC_BODY_DECODED,
                   "<p>text");
}

static void what_is_no_status_is_no_response(void **state)
{
    static const char *const lines[] = {
        "HTTP/1.1\n\n",       "HTTP/1.1   \n\n",  "HTTP/1.1 2x0\n\n",
        "HTTP/1.1 x00\n\n",   "HTTP/1.1 20x\n\n", "HTTP\n\n",
        "HTTP/1.1 200\nA: b", "HTTP/1.1 200\n\r", "HTTP/1.1 2:0\n\n"};
    struct dt_warc_response r;
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (dt_warc_response_parse(lines[i], strlen(lines[i]), &r))
            fail_msg("%s", lines[i]);
    assert_true(dt_warc_response_parse("HTTP/1.1 200\nA\n\rb\n\n", 20, &r));
    assert_int_equal(r.headers_size, 5);
}

static void sizes_of_chunks_are_read_or_left(void **state)
{
    static const char *const stored[] = {"123456789\r\nab", "zab", "1xy\n", "1", "", "F"};
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
        char *block = dt_asprintf(CHUNKED "%s", stored[i]);
        assert_decodes(block, DT_WARC_BODY_DECODED, stored[i]);
        free(block);
    }
    assert_decodes(CHUNKED "2 \r\nab\r\n0\r\n\r\n", DT_WARC_BODY_DECODED, "ab");
    assert_decodes(CHUNKED "2\r\nab\r\n/\r\n", DT_WARC_BODY_DAMAGED, "ab");
}

static void lists_of_codings_are_split(void **state)
{
    static const char zero[] = "HTTP/1.1 200 OK\nContent-Encoding: \0, \0x\n\nab";
    struct dt_buffer body = DT_BUFFER_EMPTY;
    (void)state;
    assert_decodes("HTTP/1.1 200 OK\nContent-Encoding: ,identity,,\n\nab", DT_WARC_BODY_DECODED,
                   "ab");
    assert_decodes("HTTP/1.1 200 OK\nContent-Encoding: identity\nA: b\nContent-Encoding: x\n\nab",
                   DT_WARC_BODY_UNKNOWN, ""); /* in two lines */
    assert_decodes("HTTP/1.1 200 OK\nTransfer-Encoding: gzip\nTransfer-Encoding: chunked\n\n"
                   "2\nab\n0\n\n",
                   DT_WARC_BODY_DECODED, "ab");
    assert_decodes("HTTP/1.1 200 OK\nTransfer-Encoding: identity\n\nab", DT_WARC_BODY_DECODED,
                   "ab");
    assert_decodes("HTTP/1.1 200 OK\nContent-Encoding: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\n\nab",
                   DT_WARC_BODY_UNKNOWN, "ab");
    assert_int_equal(decode(zero, sizeof zero - 1, LIMIT, &body), DT_WARC_BODY_UNKNOWN);
    assert_int_equal(decode("HTTP/1.1 200\n\nabc", 17, 2, &body), DT_WARC_BODY_TOO_LONG);
    assert_int_equal(decode("HTTP/1.1 200\n\nab", 16, 2, &body), DT_WARC_BODY_DECODED);
    dt_buffer_release(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_status_is_no_response),
        cmocka_unit_test(sizes_of_chunks_are_read_or_left),
        cmocka_unit_test(lists_of_codings_are_split),
        cmocka_unit_test(status_and_headers_are_parsed),
        cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(transfer_codings_besides_chunks_are_undone),
        cmocka_unit_test(a_body_stored_without_its_codings_is_taken),
        cmocka_unit_test(each_coding_is_decoded_and_bounded),
        cmocka_unit_test(codings_are_undone_from_the_last),
        cmocka_unit_test(damaged_data_is_named),
        cmocka_unit_test(br_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
