/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "scratch.h"
#include "warc/warc.h"

#define LIMIT ((size_t)1 << 20)

/* Appends a record with this block. */
static void add_record(struct dt_buffer *b, const char *type, const char *more, const char *block)
{
    dt_buffer_printf(b, "WARC/1.1\r\nWARC-Type: %s\r\n%sContent-Length: %zu\r\n\r\n%s\r\n\r\n",
                     type, more, strlen(block), block);
}

static char *write_warc(const void *data, size_t size)
{
    char *path = dt_asprintf("%s/file", scratch);
    write_bytes(path, data, size);
    return path;
}

/* Reads all records of the bytes, as a line: "response:block " or "!reason ". */
static struct dt_buffer read_all(const void *data, size_t size, size_t limit)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    struct dt_warc_record r = {0};
    struct dt_input *in;
    struct dt_error err;
    char *path = write_warc(data, size);
    int rc;
    assert_return_code(dt_input_open_bytes(&in, path, &err), 0);
    struct dt_warc *warc = dt_warc_open(in, limit);
    dt_buffer_append(&all, "", 0);
    while ((rc = dt_warc_next(warc, &r, &err)) == 1 || rc == DT_EFORMAT) {
        if (rc == 1)
            dt_buffer_printf(&all, "%s:%.20s ", dt_warc_type_names[r.type],
                             r.block.data ? r.block.data : "");
        else
            dt_buffer_printf(&all, "!%s ", err.text);
    }
    assert_int_equal(rc, 0);
    dt_warc_close(warc);
    dt_input_close(in);
    dt_warc_record_release(&r);
    free(path);
    return all;
}

static void assert_reads(const struct dt_buffer *bytes, const char *expected)
{
    struct dt_buffer all = read_all(bytes->data, bytes->size, LIMIT);
    assert_string_equal(all.data, expected);
    dt_buffer_release(&all);
}

static void records_of_each_type_are_read(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    add_record(&b, "warcinfo", "", "software: x");
    add_record(&b, "response", "WARC-Target-URI: http://a/\r\n", "HTTP");
    add_record(&b, "Conversion", "", "text");
    add_record(&b, "resource", "", "");
    add_record(&b, "novel", "", "new");
    assert_reads(&b, "warcinfo: response:HTTP conversion:text resource: other: ");
    dt_buffer_release(&b);
}

static void missing_carriage_returns_and_lines_are_accepted(void **state)
{
    static const char text[] = "WARC/1.0\nwarc-type:response\ncontent-length:  2 \n\nab\n"
                               "WARC/1.0\nWARC-Type: response\nContent-Length: 1\n\nc";
    (void)state;
    struct dt_buffer b = {(char *)text, sizeof text - 1, 0};
    assert_reads(&b, "response:ab response:c ");
}

static void drafts_of_the_same_grammar_are_read(void **state)
{
    static const char text[] =
        "WARC/0.18\r\nWARC-Type: response\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"
        "WARC/0.17\r\nContent-Length: x\r\n\r\nWARC/0.9 1 response\r\n"
        "WARC/0.17\r\nWARC-Type: response\r\nContent-Length: 1\r\n\r\nc\r\n\r\n";
    static const char earlier[] =
        "WARC/0.9 9 response http://a/ 20060101000000 <a:b> text/dns\r\n\r\n";
    (void)state;
    struct dt_buffer b = {(char *)text, sizeof text - 1, 0};
    assert_reads(&b,
                 "response:ab !record at byte 59: its Content-Length is not a number response:c ");
    struct dt_buffer old = {(char *)earlier, sizeof earlier - 1, 0};
    assert_reads(&old, "!record at byte 0: expected the version line WARC/1.0 or WARC/1.1 ");
}

static void a_length_that_is_wrong_loses_one_record(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    add_record(&b, "response", "", "one");
    size_t at = b.size;
    dt_buffer_add_string(
        &b, "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 40\r\n\r\ntwo\r\n\r\n");
    add_record(&b, "response", "", "three");
    add_record(&b, "response", "", "four");
    char *expected = dt_asprintf("response:one !record at byte %zu: its Content-Length does not "
                                 "lead to the next record response:three response:four ",
                                 at);
    assert_reads(&b, expected);
    free(expected);
    dt_buffer_release(&b);
}

static void each_damage_is_named(void **state)
{
    static const char *const damaged[][2] = {
        {"XARC/1.0\r\n\r\n", "expected the version line WARC/1.0 or WARC/1.1"},
        {"WAR", "expected the version line WARC/1.0 or WARC/1.1"},
        {"WARC/1.0\r\nContent-Length: 9\r\n\rA: b\r\n", "its header ends too early"},
        {"WARC/1.0\r\nWARC-Type: response\r\n\r\n", "has no Content-Length"},
        {"WARC/1.0\r\nContent-Length: -1\r\n\r\n", "its Content-Length is not a number"},
        {"WARC/1.0\r\nContent-Length: \r\n\r\n", "its Content-Length is empty"},
        {"WARC/1.0\r\nContent-Length: 99999999999999999999\r\n\r\n",
         "its block has 99999999999999999999 bytes, the limit is 1048576 (--max-document)"},
        {"WARC/1.0\r\nContent-Length: 9\r\n\r\nshort", "its block ends too early"},
        {"WARC/1.0\r\nContent-Length: 9\r\n", "its header ends too early"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct dt_buffer b = DT_BUFFER_EMPTY;
        dt_buffer_add_string(&b, damaged[i][0]);
        char *expected = dt_asprintf("!record at byte 0: %s ", damaged[i][1]);
        assert_reads(&b, expected);
        free(expected);
        dt_buffer_release(&b);
    }
}

static void a_header_has_a_limit(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, "WARC/1.0\r\n");
    for (int i = 0; i < 7000; i++)
        dt_buffer_add_string(&b, "X-Y: 1234\r\n");
    dt_buffer_add_string(&b, "Content-Length: 0\r\n\r\n\r\n\r\n");
    add_record(&b, "response", "", "next");
    assert_reads(&b, "!record at byte 0: its header has more than 65536 bytes response:next ");
    dt_buffer_release(&b);
}

static void damage_has_the_bytes_up_to_the_next_record(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct dt_warc_record r = {0};
    struct dt_input *in;
    struct dt_error err;
    dt_buffer_add_string(&b, "WARC/1.0\r\nContent-Length: x\r\n\r\nlost\r\n\r\n");
    add_record(&b, "response", "", "next");
    char *path = write_warc(b.data, b.size);
    assert_return_code(dt_input_open_bytes(&in, path, &err), 0);
    struct dt_warc *warc = dt_warc_open(in, LIMIT);
    assert_int_equal(dt_warc_next(warc, &r, &err), DT_EFORMAT);
    assert_string_equal(r.block.data, "WARC/1.0\r\nContent-Length: x\r\n\r\nlost\r\n\r\n");
    assert_int_equal(r.number, 1);
    assert_int_equal(dt_warc_next(warc, &r, &err), 1);
    assert_int_equal(r.number, 2);
    assert_int_equal(r.offset, 39);
    dt_warc_close(warc);
    dt_input_close(in);
    dt_warc_record_release(&r);
    free(path);
    dt_buffer_release(&b);
}

/* Appends bytes as a member of gzip. */
static void add_member(struct dt_buffer *out, const struct dt_buffer *bytes)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    dt_buffer_reserve(out, out->size + bytes->size + 100);
    z.next_in = (unsigned char *)bytes->data;
    z.avail_in = (uInt)bytes->size;
    z.next_out = (unsigned char *)out->data + out->size;
    z.avail_out = (uInt)(out->capacity - out->size);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size = (size_t)((char *)z.next_out - out->data);
    deflateEnd(&z);
}

static void a_damaged_member_of_gzip_loses_its_records(void **state)
{
    (void)state;
    struct dt_buffer gzip = DT_BUFFER_EMPTY, b = DT_BUFFER_EMPTY;
    add_record(&b, "response", "", "one");
    add_member(&gzip, &b);
    size_t second = gzip.size;
    add_member(&gzip, &b);
    add_member(&gzip, &b);
    gzip.data[second + 30] ^= 0x55;
    struct dt_buffer all = read_all(gzip.data, gzip.size, LIMIT);
    assert_non_null(strstr(all.data, "near byte "));
    assert_memory_equal(all.data, "response:one !", 14);
    assert_string_equal(all.data + all.size - 13, "response:one ");
    dt_buffer_release(&all);
    all = read_all(gzip.data, second + 20, LIMIT); /* cut inside the second */
    assert_non_null(strstr(all.data, "response:one !"));
    assert_non_null(strstr(all.data, "ends too early"));
    dt_buffer_release(&all);
    dt_buffer_release(&gzip);
    dt_buffer_release(&b);
}

/* Pages that do not compress, so that members are longer than the buffers of an input. */
static void add_noise(struct dt_buffer *b, uint32_t seed, size_t size)
{
    struct dt_buffer block = DT_BUFFER_EMPTY;
    while (block.size < size) {
        seed = seed * 1664525 + 1013904223;
        dt_buffer_add_char(&block, (char)('0' + (seed >> 24) % 75));
    }
    add_record(b, "response", "", block.data);
    dt_buffer_release(&block);
}

/* The decompressor takes the next member for the rest of one that is cut. */
static void a_member_that_is_cut_loses_only_its_records(void **state)
{
    static const char *const blocks[] = {NULL, "one", NULL, NULL, "two"};
    const size_t sizes[] = {200, 300000};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct dt_buffer gzip = DT_BUFFER_EMPTY, b = DT_BUFFER_EMPTY;
        for (uint32_t k = 0; k < 5; k++) {
            size_t start = gzip.size;
            dt_buffer_clear(&b);
            if (blocks[k])
                add_record(&b, "response", "", blocks[k]);
            else
                add_noise(&b, k, sizes[i]);
            add_member(&gzip, &b);
            if (blocks[k] == NULL)
                gzip.size -= (gzip.size - start) / 2;
        }
        struct dt_buffer all = read_all(gzip.data, gzip.size, LIMIT);
        assert_int_equal(all.data[0], '!');
        assert_non_null(strstr(all.data, " response:one !"));
        assert_string_equal(all.data + all.size - 14, " response:two ");
        dt_buffer_release(&all);
        dt_buffer_release(&gzip);
        dt_buffer_release(&b);
    }
}

static void digests_are_compared(void **state)
{
    static const char *const right[] = {"sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
                                        "sha1:a9993e364706816aba3e25717850c26c9cd0d89d", "md5:0"};
    (void)state;
    struct dt_error err;
    for (int i = 0; i < 4; i++) {
        struct dt_warc_record r = {.type = DT_WARC_TYPE_RESPONSE};
        dt_buffer_printf(&r.fields, "WARC-Block-Digest: %s\r\n",
                         i < 3 ? right[i] : "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE6");
        dt_buffer_add_string(&r.block, "abc");
        assert_int_equal(dt_warc_check_digest(&r, &err), i < 3 ? 0 : DT_EFORMAT);
        dt_warc_record_release(&r);
    }
}

static void fields_are_found_without_case(void **state)
{
    static const char lines[] =
        "Content-Type-Options: x\r\nContent-type :y\r\nCONTENT-TYPE: \ta b \r\n"
        "Content-Type: second\r\nEmpty:\r\n";
    size_t size;
    (void)state;
    const char *value = dt_warc_field(lines, sizeof lines - 1, "Content-Type", &size);
    assert_int_equal(size, 3);
    assert_memory_equal(value, "a b", 3);
    assert_non_null(dt_warc_field(lines, sizeof lines - 1, "empty", &size));
    assert_int_equal(size, 0);
    assert_null(dt_warc_field(lines, sizeof lines - 1, "Absent", &size));
    static const char zeros[] = "A:\0b\nB: c\0\nD:\nC: \t d";
    assert_memory_equal(dt_warc_field(zeros, sizeof zeros - 1, "A", &size), "\0b", 2);
    assert_int_equal(size, 2);
    assert_memory_equal(dt_warc_field(zeros, sizeof zeros - 1, "B", &size), "c\0", 2);
    assert_int_equal(size, 2);
    assert_non_null(dt_warc_field(zeros, sizeof zeros - 1, "D", &size));
    assert_int_equal(size, 0);
    assert_memory_equal(dt_warc_field(zeros, sizeof zeros - 1, "C", &size), "d", 1);
    assert_int_equal(size, 1);
}

static void fields_of_a_name_are_a_list(void **state)
{
    static const char lines[] = "A: b\r\nC: d\na:\nA: e";
    struct dt_buffer list = DT_BUFFER_EMPTY;
    (void)state;
    assert_int_equal(dt_warc_field_list(lines, sizeof lines - 1, "C", &list), 1);
    assert_int_equal(dt_warc_field_list(lines, sizeof lines - 1, "B", &list), 0);
    assert_string_equal(list.data, "d");
    dt_buffer_clear(&list);
    assert_int_equal(dt_warc_field_list(lines, sizeof lines - 1, "A", &list), 3);
    assert_string_equal(list.data, "b, , e");
    dt_buffer_release(&list);
}

static void other_digests_are_not_compared(void **state)
{
    static const struct {
        enum dt_warc_type type;
        const char *fields;
        bool refused;
    } cases[] = {
        {DT_WARC_TYPE_OTHER, "WARC-Block-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE6\n", false},
        {DT_WARC_TYPE_RESOURCE, "A: b\n", false},
        {DT_WARC_TYPE_RESOURCE, "WARC-Block-Digest: sha\n", false},
        {DT_WARC_TYPE_RESOURCE, "WARC-Block-Digest: sha1:short\n", true},
        {DT_WARC_TYPE_RESOURCE,
         "WARC-Block-Digest: sha1:b9993e364706816aba3e25717850c26c9cd0d89d\n", true},
    };
    struct dt_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_warc_record r = {.type = cases[i].type};
        dt_buffer_add_string(&r.fields, cases[i].fields);
        dt_buffer_add_string(&r.block, "abc");
        assert_int_equal(dt_warc_check_digest(&r, &err), cases[i].refused ? DT_EFORMAT : 0);
        dt_warc_record_release(&r);
    }
    dt_warc_close(NULL);
}

static void line_ends_are_few_or_many(void **state)
{
    static const char zero[] = "WARC/1.0\r\nContent-Length: 2\r\nA:\r b\r\n\r\nab\r\n\0";
    struct dt_buffer b = DT_BUFFER_EMPTY;
    (void)state;
    dt_buffer_add_string(&b, "\n\n\n\n\r\n\r\n\r\n");
    add_record(&b, "response", "", "one");
    assert_reads(&b, "response:one ");
    dt_buffer_release(&b);
    struct dt_buffer all = read_all(zero, sizeof zero - 1, LIMIT);
    assert_string_equal(all.data,
                        "!record at byte 0: its Content-Length does not lead to the next record ");
    dt_buffer_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_digests_are_not_compared),
        cmocka_unit_test(line_ends_are_few_or_many),
        cmocka_unit_test(records_of_each_type_are_read),
        cmocka_unit_test(missing_carriage_returns_and_lines_are_accepted),
        cmocka_unit_test(drafts_of_the_same_grammar_are_read),
        cmocka_unit_test(a_length_that_is_wrong_loses_one_record),
        cmocka_unit_test(each_damage_is_named),
        cmocka_unit_test(a_header_has_a_limit),
        cmocka_unit_test(damage_has_the_bytes_up_to_the_next_record),
        cmocka_unit_test(a_damaged_member_of_gzip_loses_its_records),
        cmocka_unit_test(a_member_that_is_cut_loses_only_its_records),
        cmocka_unit_test(digests_are_compared),
        cmocka_unit_test(fields_are_found_without_case),
        cmocka_unit_test(fields_of_a_name_are_a_list),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
