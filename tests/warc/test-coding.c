/* SPDX-License-Identifier: MIT */
/* Content codings: what each body gives within a limit. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include "warc/coding.h"

#define TEXT "text text text"

static struct dt_buffer body;

static void expect(const char *coding, const struct dt_buffer *data, size_t most,
                   enum dt_warc_body outcome, const char *text)
{
    assert_int_equal(dt_coding_decode(coding, strlen(coding), data->data, data->size, most, &body),
                     outcome);
    if (strcmp(body.data, text) != 0)
        fail_msg("%s: '%s', not '%s'", coding, body.data, text);
}

/* windows: of zlib; 0: zstd. */
static void add_compressed(struct dt_buffer *b, int windows, const char *text)
{
    dt_buffer_reserve(b, b->size + 1000);
    if (windows == 0) {
        b->size += ZSTD_compress(b->data + b->size, 1000, text, strlen(text), 3);
        return;
    }
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text, .avail_in = (uInt)strlen(text)};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, windows, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (unsigned char *)b->data + b->size;
    z.avail_out = 1000;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->size += 1000 - z.avail_out;
    deflateEnd(&z);
}

/* What was stored decoded, with the limit that it just keeps or exceeds. */
static void plain_bodies_are_copied_within_the_limit(void **state)
{
    static const char *const codings[] = {"identity", "none", "UTF-8", "gzip", "deflate", "zstd"};
    static const char *const texts[] = {"", "x", "xyz", "<p>text", "\x1fx", "\x28\xb5xy"};
    (void)state;
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            if (strcmp(codings[i], "deflate") == 0 && k != 3)
                continue; /* a beginning of raw deflate */
            const struct dt_buffer data = {(char *)(uintptr_t)texts[k], strlen(texts[k]), 0};
            expect(codings[i], &data, strlen(texts[k]), DT_WARC_BODY_DECODED, texts[k]);
            if (k > 0)
                expect(codings[i], &data, strlen(texts[k]) - 1, DT_WARC_BODY_TOO_LONG, texts[k]);
        }
    expect("gzip", &(const struct dt_buffer){NULL, 0, 0}, 0, DT_WARC_BODY_DECODED, "");
}

static void unknown_codings_are_named(void **state)
{
    const struct dt_buffer data = {(char *)(uintptr_t) "x", 1, 0};
    (void)state;
    expect("compress", &data, 9, DT_WARC_BODY_UNKNOWN, "");
    expect("gzi", &data, 9, DT_WARC_BODY_UNKNOWN, "");
    expect("", &data, 9, DT_WARC_BODY_UNKNOWN, "");
}

/* Each coding whole, cut at every byte, one byte too long for the limit, and with each byte
 * changed. */
static void compressed_bodies_are_decoded_or_named(void **state)
{
    static const struct {
        const char *name;
        int windows;
        size_t head; /* cut before it, the body counts as plain */
    } codings[] = {{"gzip", 31, 2}, {"deflate", 15, 2}, {"deflate", -15, 1}, {"zstd", 0, 4}};
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        dt_buffer_clear(&data);
        add_compressed(&data, codings[i].windows, TEXT);
        const size_t size = data.size;
        expect(codings[i].name, &data, strlen(TEXT), DT_WARC_BODY_DECODED, TEXT);
        assert_int_equal(dt_coding_decode(codings[i].name, strlen(codings[i].name), data.data, size,
                                          strlen(TEXT) - 1, &body),
                         DT_WARC_BODY_TOO_LONG);
        for (data.size = codings[i].head; data.size < size - 1; data.size++)
            if (dt_coding_decode(codings[i].name, strlen(codings[i].name), data.data, data.size, 99,
                                 &body) != DT_WARC_BODY_CUT)
                fail_msg("%s, %zu of %zu bytes", codings[i].name, data.size, size);
    }
    dt_buffer_release(&data);
}

static void members_of_gzip_are_joined(void **state)
{
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    add_compressed(&data, 31, "one ");
    add_compressed(&data, 31, "two");
    expect("gzip", &data, 99, DT_WARC_BODY_DECODED, "one two");
    const size_t size = data.size;
    dt_buffer_append(&data, "\x1f\x8b\xff\0\0\0\0\0\0\0", 10);
    expect("gzip", &data, 99, DT_WARC_BODY_DAMAGED, "one two");
    for (int i = 0; i < 3; i++) { /* what follows is not a member */
        data.size = size;
        dt_buffer_append(&data,
                         i == 0   ? "\x1f\x8b"
                         : i == 1 ? "\x1fxx"
                                  : "\0\x8bx",
                         i == 0 ? 2 : 3);
        expect("gzip", &data, 99, DT_WARC_BODY_DECODED, "one two");
    }
    dt_buffer_release(&data);
}

static void frames_of_zstd_are_joined(void **state)
{
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    add_compressed(&data, 0, "one ");
    add_compressed(&data, 0, "two");
    expect("zstd", &data, 7, DT_WARC_BODY_DECODED, "one two");
    expect("zstd", &data, 6, DT_WARC_BODY_TOO_LONG, "one two");
    data.size--;
    expect("zstd", &data, 99, DT_WARC_BODY_CUT, "one tw");
    data.size++;
    dt_buffer_append(&data, "\x28\xb5\x2f", 3); /* what follows is not a frame */
    expect("zstd", &data, 99, DT_WARC_BODY_DECODED, "one two");
    dt_buffer_release(&data);
}

/* Of which zstd has the end before there is room for it. */
static void a_block_larger_than_the_room_is_decoded(void **state)
{
    enum { SIZE = 200000 };
    struct dt_buffer data = DT_BUFFER_EMPTY;
    char *text = dt_alloc(SIZE + 1, 1);
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)('a' + (i * i / 7) % 26);
    dt_buffer_reserve(&data, ZSTD_compressBound(SIZE));
    data.size = ZSTD_compress(data.data, ZSTD_compressBound(SIZE), text, SIZE, 1);
    for (size_t most = SIZE; most < 2 * SIZE; most += SIZE - 1)
        expect("zstd", &data, most, DT_WARC_BODY_DECODED, text);
    assert_int_equal(dt_coding_decode("zstd", 4, data.data, data.size, 70000, &body),
                     DT_WARC_BODY_TOO_LONG);
    dt_buffer_release(&data);
    free(text);
}

static void damaged_bodies_are_named(void **state)
{
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    add_compressed(&data, 31, TEXT);
    data.data[data.size - 8] ^= 1; /* of the checksum */
    expect("gzip", &data, 99, DT_WARC_BODY_DAMAGED, TEXT);
    dt_buffer_clear(&data);
    add_compressed(&data, 15, TEXT);
    data.data[data.size - 1] ^= 1;
    expect("deflate", &data, 99, DT_WARC_BODY_DAMAGED, TEXT);
    dt_buffer_clear(&data);
    add_compressed(&data, 0, TEXT);
    data.data[6] |= 6; /* a block of no known type */
    expect("zstd", &data, 99, DT_WARC_BODY_DAMAGED, "");
    dt_buffer_release(&data);
}

static int release(void **state)
{
    (void)state;
    dt_buffer_release(&body);
    return 0;
}

/* In more than one piece, and no more of them than the limit allows. */
static void long_bodies_are_decoded_up_to_the_limit(void **state)
{
    static const int windows[] = {31, 15, -15, 0};
    static const char *const names[] = {"gzip", "deflate", "deflate", "zstd"};
    static char text[500001];
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    memset(text, 'a', sizeof text - 1);
    for (int i = 0; i < 4; i++) {
        dt_buffer_clear(&data);
        add_compressed(&data, windows[i], text);
        expect(names[i], &data, sizeof text, DT_WARC_BODY_DECODED, text);
        assert_int_equal(
            dt_coding_decode(names[i], strlen(names[i]), data.data, data.size, 9, &body),
            DT_WARC_BODY_TOO_LONG);
        assert_true(body.size < 100);
    }
    /* raw deflate whose first byte could be zlib's */
    dt_buffer_clear(&data);
    dt_buffer_append(&data,
                     "\x08\1\0\xfe\xff"
                     "a\1\0\0\xff\xff",
                     11);
    expect("deflate", &data, 9, DT_WARC_BODY_DECODED, "a");
    dt_buffer_release(&data);
}

/* More than zlib takes at once: members of gzip, then zeros, which are not read. */
static void a_body_of_more_than_1_gib_is_decoded(void **state)
{
    const size_t size = ((size_t)1 << 30) + 4096;
    struct dt_buffer data = DT_BUFFER_EMPTY;
    (void)state;
    add_compressed(&data, 31, "one ");
    add_compressed(&data, 31, "two");
    char *large = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(large != MAP_FAILED);
    memcpy(large, data.data, data.size);
    expect("gzip", &(const struct dt_buffer){large, size, 0}, 99, DT_WARC_BODY_DECODED, "one two");
    munmap(large, size);
    dt_buffer_release(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_bodies_are_decoded_up_to_the_limit),
        cmocka_unit_test(plain_bodies_are_copied_within_the_limit),
        cmocka_unit_test(unknown_codings_are_named),
        cmocka_unit_test(compressed_bodies_are_decoded_or_named),
        cmocka_unit_test(members_of_gzip_are_joined),
        cmocka_unit_test(frames_of_zstd_are_joined),
        cmocka_unit_test(a_block_larger_than_the_room_is_decoded),
        cmocka_unit_test(damaged_bodies_are_named),
        cmocka_unit_test(a_body_of_more_than_1_gib_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
