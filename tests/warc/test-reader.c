/* SPDX-License-Identifier: MIT */
/* WARC and WET files as documents. */
#include "scratch.h"

#include <string.h>

#include "warc/reader.h"

#define RECORD(type, more, length, block)                                                          \
    "WARC/1.0\r\nWARC-Type: " type "\r\n" more "Content-Length: " length "\r\n\r\n" block "\r\n\r" \
    "\n"
#define TEXT(more) RECORD("conversion", more, "4", "text")
#define BAD                                                                                        \
    RECORD("conversion", "WARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n", "4",      \
           "text")

/* What a reader makes of a file: "ID{META}TEXT|", "!bad|" or at the end "!ERROR". */
static struct dt_buffer list(const struct dt_document_reader *reader, const char *data)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    struct dt_document_source source = {.most = 1000};
    struct dt_document_record record = {0};
    struct dt_error err = {.text = ""};
    void *state = NULL;
    int rc;
    write_bytes("f.warc", data, strlen(data));
    assert_int_equal(dt_input_open_bytes(&source.in, "f.warc", &err), 0);
    assert_int_equal(reader->open(&state, &source, &err), 0);
    do {
        struct dt_document doc = {.id = DT_BUFFER_EMPTY};
        rc = reader->next(state, &doc, &record, &err);
        if (rc == 1)
            dt_buffer_printf(&all, "%.*s%.*s%.*s|", (int)doc.id.size, doc.id.data,
                             (int)doc.meta.size, doc.meta.data, (int)doc.text.size, doc.text.data);
        else if (rc != 0)
            dt_buffer_printf(&all, "%s|", rc == DT_DOCUMENT_BAD ? "!bad" : err.text);
        dt_document_release(&doc);
    } while (rc == 1 || rc == DT_DOCUMENT_BAD);
    reader->close(state);
    dt_input_close(source.in);
    dt_buffer_add_string(&all, "");
    return all;
}

static void expect(const struct dt_document_reader *reader, const char *data, const char *expected)
{
    struct dt_buffer all = list(reader, data);
    assert_string_equal(all.data, expected);
    dt_buffer_release(&all);
}

static void texts_have_their_addresses(void **state)
{
    const struct dt_document_reader *texts = &dt_warc_reader_texts;
    (void)state;
    expect(texts, "", "");
    expect(texts, TEXT(""), "{}text|");
    expect(texts, TEXT("WARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a/\r\n"),
           "urn:uuid:1{\"url\":\"http://a/\"}text|");
    expect(texts, TEXT("WARC-Target-URI: <http://a/>\r\n"), "{\"url\":\"http://a/\"}text|");
    expect(texts, TEXT("WARC-Target-URI: <\r\n") TEXT("WARC-Target-URI: <a\r\n"),
           "{\"url\":\"<\"}text|{\"url\":\"<a\"}text|");
    expect(texts, TEXT("WARC-Record-ID: <\r\nWARC-Date: 2020\r\nWARC-Truncated: \"\xff\r\n"),
           "<{\"date\":\"2020\",\"truncated\":\"\\\"\xef\xbf\xbd\"}text|");
    expect(texts, TEXT("WARC-Record-ID: <ab\r\n") TEXT("WARC-Record-ID: ab>\r\n"),
           "<ab{}text|ab>{}text|");
    expect(texts, TEXT("WARC-Identified-Content-Language: \r\n"), "{\"lang_hint\":\"\"}text|");
    expect(texts, RECORD("warcinfo", "", "1", "x") TEXT(""), "{}text|");
    expect(texts, BAD TEXT(""), "!bad|{}text|");
}

/* What has to be extracted before is not taken for text. */
static void pages_are_not_texts(void **state)
{
    static const char *const types[] = {RECORD("response", "", "1", "x"),
                                        RECORD("resource", "", "1", "x")};
    (void)state;
    for (int i = 0; i < 2; i++)
        expect(&dt_warc_reader_texts, types[i],
               "f.warc: has web pages, not texts; extract them: dt-extract f.warc | ...|");
}

static void all_records_have_their_fields(void **state)
{
    (void)state;
    expect(&dt_warc_reader_records, RECORD("response", "WARC-Record-ID: <a>\r\n", "1", "x") BAD,
           "aresponse\nWARC-Type: response\r\nWARC-Record-ID: <a>\r\nContent-Length: "
           "1\r\n\r\nx|!bad|");
    dt_warc_reader_records.close(NULL);
    dt_warc_reader_texts.close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_their_addresses),
        cmocka_unit_test(pages_are_not_texts),
        cmocka_unit_test(all_records_have_their_fields),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
