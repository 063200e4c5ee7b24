/* SPDX-License-Identifier: MIT */
/* JSON Lines: members, escapes, and what is refused. */
#include "listed.h"

#include "document/document-internal.h"
#include "math/rng.h"

static void json_gives_id_text_and_meta(void **state)
{
    (void)state;
    JSONL("{\"id\":\"x\",\"text\":\"a\",\"meta\":{\"n\":1}}", "x=a{\"n\":1}|");
    JSONL("{\"text\":\"a\"}\n\n \t\n{\"text\":\"b\",\"id\":null}", "f:1=a|f:2=b|");
    JSONL("{\"text\":\"a\",\"id\":\"\"}\n{\"id\":12,\"text\":\"\"}", "f:1=a|12=|");
    JSONL("\xef\xbb\xbf{\"text\":\"a\"}", "f:1=a|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\xef\xbb\xbf{\"text\":\"a\"}", "f:1=a|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\xef\xbb\xbf{a", "f:1=\xef\xbb\xbf{a|");
    JSONL(" { \"text\" : \"a\" , \"meta\" : {} } \r", "f:1=a{}|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_JSONL, "{\"text\":\"no line feed\"}", "f:1=no line feed|");
}

/* dt-synth's log-probability must not be rounded on its way. */
static void meta_passes_byte_for_byte(void **state)
{
    (void)state;
    JSONL(
        "{\"meta\":{ \"logprob\": -123.45678901234567890123,\"big\":123456789012345678901234567890,"
        "\"e\":1E+2, \"s\":\"\\u00e9\\/\" ,\"a\":[true,false,null,[{}]]},\"text\":\"a\"}",
        "f:1=a{ \"logprob\": -123.45678901234567890123,\"big\":123456789012345678901234567890,"
        "\"e\":1E+2, \"s\":\"\\u00e9\\/\" ,\"a\":[true,false,null,[{}]]}|");
}

static void other_members_go_into_meta(void **state)
{
    (void)state;
    JSONL("{\"url\":\"u\",\"text\":\"a\",\"n\": 1.50,\"z\":null}",
          "f:1=a{\"url\":\"u\",\"n\":1.50,\"z\":null}|");
    JSONL("{\"text\":\"a\",\"meta\":{\"m\":1},\"url\":\"u\"}", "f:1=a{\"m\":1,\"url\":\"u\"}|");
    JSONL("{\"url\":\"u\",\"text\":\"a\",\"meta\":{ } }", "f:1=a{ \"url\":\"u\"}|");
    JSONL("{\"text\":\"a\",\"meta\":null,\"url\":null}", "f:1=a{\"url\":null}|");
    JSONL("{\"text\":\"a\",\"meta\":\"words\"}", "f:1=a{\"meta\":\"words\"}|");
}

static void of_two_members_the_last_counts(void **state)
{
    (void)state;
    JSONL(
        "{\"id\":\"x\",\"text\":\"a\",\"meta\":{\"m\":1},\"text\":\"b\",\"id\":\"y\",\"meta\":{}}",
        "y=b{}|");
}

static void another_member_may_hold_the_text(void **state)
{
    (void)state;
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL,
                                                 .field = "content"};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const char line[] = "{\"text\":\"other\",\"content\":\"a\"}\n";
    write_bytes("f", line, sizeof line - 1);
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
    assert_string_equal(out.data, "f:1=a{\"text\":\"other\"}|");
    dt_buffer_release(&out);
}

static void escapes_are_resolved(void **state)
{
    (void)state;
    JSONL("{\"text\":\"\\\"\\\\\\/\\n\\t.\"}", "f:1=\"\\/\n\t.|");
    JSONL("{\"text\":\"\\b\\f\\r\"}", "f:1=\b\f\r|");
    JSONL("{\"text\":\"\\u0041\\u00E9\\u20ac\\ud83d\\uDE00\"}",
          "f:1=A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80|");
    JSONL("{\"text\":\"\\ud83d.\\ude00.\\ud83d\\u0041\"}",
          "f:1=\xef\xbf\xbd.\xef\xbf\xbd.\xef\xbf\xbd"
          "A|");
    JSONL("{\"te\\u0078t\":\"a\",\"\\u0069d\":\"x\"}", "x=a|");
}

static void a_zero_in_the_text_is_kept(void **state)
{
    (void)state;
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL};
    const char line[] = "{\"text\":\"a\\u0000b\"}\n";
    struct dt_buffer out = DT_BUFFER_EMPTY;
    write_bytes("f", line, sizeof line - 1);
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
    assert_int_equal(out.size, 8);
    assert_memory_equal(out.data, "f:1=a\0b|", 8);
    dt_buffer_release(&out);
}

static void wrong_lines_are_named_by_their_place(void **state)
{
    (void)state;
    const enum dt_document_format jsonl = DT_DOCUMENT_FORMAT_JSONL;
    assert_refused(jsonl, "{\"text\":\"a\"}\n\n{\"text\":\"b\"\n",
                   "f:3: byte 11: the JSON object ends too early");
    assert_refused(jsonl, "{\"id\":\"a\"}\n",
                   "f:1: no member \"text\"; --field of dt-clean, dt-dedup and dt-extract names "
                   "the one with the text");
    assert_refused(jsonl, "{\"text\":7}\n", "f:1: member \"text\" is not a string");
    assert_refused(jsonl, "[1]\n", "f:1: byte 0: '{' expected");
    assert_refused(jsonl, "{\"text\":\"a\"} x\n", "f:1: byte 13: text after the object");
    assert_refused(jsonl, "plain\n", "f:1: byte 0: '{' expected");
}

static void every_kind_of_wrong_json_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{",
        "{}{}",
        "\"text\"",
        "{text:\"a\"}",
        "{'text':'a'}",
        "{\"text\":\"a}",
        "{\"text\":\"a\",}",
        "{\"text\":\"a\" \"b\":1}",
        "{\"text\" \"a\"}",
        "{\"text\":\"\\x\"}",
        "{\"text\":\"\\u12\"}",
        "{\"text\":\"\\u12g4\"}",
        "{\"text\":\"a\tb\"}",
        "{\"text\":\"a\",/**/\"n\":1}",
        "{\"text\":\"a\",\"n\":}",
        "{\"text\":\"a\",\"n\":.5}",
        "{\"text\":\"a\",\"n\":+5}",
        "{\"text\":\"a\",\"n\":5.}",
        "{\"text\":\"a\",\"n\":01}",
        "{\"text\":\"a\",\"n\":-01}",
        "{\"text\":\"a\",\"n\":-}",
        "{\"text\":\"a\",\"n\":1e}",
        "{\"text\":\"a\",\"n\":1e+}",
        "{\"text\":\"a\",\"n\":NaN}",
        "{\"text\":\"a\",\"n\":-Infinity}",
        "{\"text\":\"a\",\"n\":TRUE}",
        "{\"text\":\"a\",\"n\":tru}",
        "{\"text\":\"a\",\"n\":nullx}",
        "{\"text\":\"a\",\"n\":[}",
        "{\"text\":\"a\",\"n\":[1,]}",
        "{\"text\":\"a\",\"n\":[1 2]}",
        "{\"text\":\"a\",\"n\":{\"m\"}}",
        "{\"text\":\"a\",\"n\":{\"m\":1,}}",
    };
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_bytes("f", wrong[i], strlen(wrong[i]));
        if (list_files(paths, 1, &options, &out, NULL) != DT_EFORMAT)
            fail_msg("accepted: %s", wrong[i]);
    }
    dt_buffer_release(&out);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&line, "{\"text\":\"a\",\"meta\":");
    for (int i = 0; i < 1000000; i++)
        dt_buffer_add_string(&line, "{\"m\":");
    assert_refused(DT_DOCUMENT_FORMAT_JSONL, line.data, "f:1: byte 175: nesting too deep");
    dt_buffer_release(&line);
}

static size_t mutate(char *line, size_t size, struct dt_rng *rng)
{
    static const char bytes[] = "{}[]\",:\\u0189aeE+-.tfn \t\r\xc3\xff";
    size_t at = dt_rng_below(rng, (uint32_t)size);
    char byte = bytes[dt_rng_below(rng, sizeof bytes)]; /* the final 0 too */
    switch (dt_rng_below(rng, 4)) {
    case 0:
        line[at] = byte;
        return size;
    case 1:
        line[at] = (char)(line[at] ^ 1 << dt_rng_below(rng, 8));
        return size;
    case 2:
        memmove(line + at, line + at + 1, size - at - 1);
        return size - 1;
    default:
        memmove(line + at + 1, line + at, size - at);
        line[at] = byte;
        return size + 1;
    }
}

/* Reads the documents of one file and writes them to the other. */
static void rewrite(const char *from, const char *to)
{
    char *const paths[] = {(char *)(uintptr_t)from};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_buffer json = DT_BUFFER_EMPTY;
    assert_int_equal(dt_documents_open(&docs, paths, 1, &options, &err), 0);
    while (dt_documents_next(docs, &doc, &err) > 0)
        dt_document_to_json(&doc, &json);
    write_bytes(to, json.data ? json.data : "", json.size);
    dt_documents_close(docs);
    dt_document_release(&doc);
    dt_buffer_release(&json);
}

/* What the reader takes from a damaged line must come back the same from the
 * line that is written for it. */
static void no_mutation_breaks_the_reader(void **state)
{
    (void)state;
    static const char seed[] =
        "{\"id\":\"a\\u00e9\",\"text\":\"b\\n\\\"\\ud83d\\ude00 \xc3\xa9\","
        "\"meta\":{\"x\":[1,-2.5e3,true,null],\"y\":{\"z\":\"\\\\\"}},\"w\":0}";
    char *const first[] = {"first"}, *const second[] = {"second"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL};
    struct dt_buffer before = DT_BUFFER_EMPTY, after = DT_BUFFER_EMPTY;
    struct dt_rng rng;
    int accepted = 0;
    dt_rng_init(&rng, 17);
    for (int trial = 0; trial < 8000; trial++) {
        char line[sizeof seed + 3];
        size_t size = sizeof seed - 1;
        memcpy(line, seed, size);
        for (uint32_t n = dt_rng_below(&rng, 4); n > 0; n--)
            size = mutate(line, size, &rng);
        write_bytes("first", line, size);
        if (list_files(first, 1, &options, &before, NULL) < 0)
            continue;
        accepted++;
        rewrite("first", "second");
        assert_int_equal(list_files(second, 1, &options, &after, NULL), 0);
        assert_int_equal(after.size, before.size);
        assert_memory_equal(after.data, before.data, before.size);
    }
    assert_in_range(accepted, 2000, 6000);
    dt_buffer_release(&before);
    dt_buffer_release(&after);
}

static void documents_are_written_as_json(void **state)
{
    (void)state;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    dt_document_to_json(&doc, &line);
    assert_string_equal(line.data, "{\"id\":\"\",\"text\":\"\"}\n");
    dt_buffer_add_string(&doc.id, "a\"b");
    dt_buffer_append(&doc.text, "1\n\\\t\x01\0\x7f\xc3\xa9", 9);
    dt_buffer_add_string(&doc.meta, "{\"m\":1}");
    dt_buffer_clear(&line);
    dt_document_to_json(&doc, &line);
    assert_string_equal(line.data,
                        "{\"id\":\"a\\\"b\",\"text\":\"1\\n\\\\\\t\\u0001\\u0000\\u007f\xc3\xa9\","
                        "\"meta\":{\"m\":1}}\n");
    dt_document_release(&doc);
    dt_buffer_release(&line);
}

#define FIELD(field, data, expected)                                                               \
    assert_reads(DT_DOCUMENT_FORMAT_JSONL, field, data "\n", sizeof data, expected)

static void a_text_may_be_inside_of_objects(void **state)
{
    struct dt_buffer deep = DT_BUFFER_EMPTY, field = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL, .field = "a.b"};
    static const char *const wrong[] = {"{\"a\":{}}",
                                        "{\"a\":1}",
                                        "{\"a\":{1:2}}",
                                        "{\"a\":{\"b\":x}}",
                                        "{\"a\":{\"b\":\"x\"",
                                        "{\"a\":{\"b\":\"x\"]}",
                                        "{\"a\":{\"c\":{\"d\":1}}}",
                                        "{\"a\":{\"b\":1}}"};
    (void)state;
    FIELD("a.b", "{\"a\":{\"b\":\"x\",\"c\":{},\"d\":1}}", "f:1=x{\"a\":{\"c\":{},\"d\":1}}|");
    FIELD("a.b.c", "{\"a\":{\"b\":{\"c\":\"x\"},\"e\":1}}", "f:1=x{\"a\":{\"b\":{},\"e\":1}}|");
    FIELD("a.b.c", "{\"a\":{\"b\":1,\"b\":{\"c\":\"x\"}}}", "f:1=x{\"a\":{\"b\":1,\"b\":{}}}|");
    FIELD("a.b", "{\"\\u0061\":1,\"a\":{\"\\u0062\":\"x\",\"\\u0063\":1}}",
          "f:1=x{\"\\u0061\":1,\"a\":{\"\\u0063\":1}}|");
    FIELD("a.b", "{\"\\u0061\":{\"b\":\"x\"}}", "f:1=x{\"\\u0061\":{}}|");
    FIELD("a.b", "{\"a\\u0000\":{\"b\":1},\"a.b\":\"x\"}", "f:1=x{\"a\\u0000\":{\"b\":1}}|");
    FIELD("a.b", "{\"a.b\":\"x\",\"a\":{\"b\":\"y\"}}", "f:1=y{\"a\":{}}|");
    FIELD(NULL, "{\"tex\\u0074\":\"x\",\"te\\u0074s\":1,\"\\u0074\":2}",
          "f:1=x{\"te\\u0074s\":1,\"\\u0074\":2}|");
    FIELD("a.", "{\"a\":{\"\":1},\"a.\":\"x\"}", "f:1=x{\"a\":{\"\":1}}|");
    FIELD(NULL, "{\"text\":\"x\",\"id\":null}", "f:1=x|");
    FIELD("", "{\"n\":1,\"id\":\"i\"}", "i={\"n\":1}|");
    FIELD("", "{\"n\":1,\"text\":\"x\"}", "f:1=x{\"n\":1}|");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(list(&options, wrong[i], strlen(wrong[i]), &out, NULL), DT_EFORMAT);
    for (int i = 0; i < 2000; i++) {
        dt_buffer_add_string(&field, i ? ".a" : "a");
        dt_buffer_add_string(&deep, "{\"a\":");
    }
    options.field = field.data;
    assert_int_equal(list(&options, deep.data, deep.size, &out, NULL), DT_EFORMAT);
    assert_non_null(strstr(err.text, "nesting too deep"));
    dt_buffer_release(&deep);
    dt_buffer_release(&field);
    dt_buffer_release(&out);
}

static void files_that_break_off_are_refused(void **state)
{
    static const char data[] = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_JSONL, .most = 4, .bad_lines = {.skip = true, .most = 9}};
    struct dt_buffer out = DT_BUFFER_EMPTY, file = DT_BUFFER_EMPTY;
    struct dt_documents_losses losses;
    (void)state;
    assert_cuts_refused(DT_DOCUMENT_FORMAT_JSONL, NULL, data, sizeof data - 1);
    /* too long, and no JSON */
    dt_buffer_printf(&file, "x%0100d\n{\"text\":%0100d\n{\"text\":\"b\"}\n", 1, 1);
    assert_int_equal(list(&options, file.data, file.size, &out, &losses), 0);
    assert_string_equal(out.data, "f:3=b|");
    assert_int_equal(losses.skipped, 2);
    dt_buffer_release(&file);
    dt_buffer_release(&out);
}

/* Of a row with NaN, which is parsed in a copy, too. */
static void an_end_record_is_in_the_line(void **state)
{
    static const char row[] = "{\"text\":\"a\",\"x\":NaN,\"" DT_STREAM_MEMBER
                              "\":{\"documents\":1,\"xxh3\":\"0123456789abcdef\"}}\n";
    struct dt_document_source source = {.most = 1000, .has_nan = true};
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_document_record record = {0};
    void *reader;
    (void)state;
    write_bytes("f", row, sizeof row - 1);
    source.threads = dt_threads_new(1);
    assert_int_equal(dt_input_open_raw(&source.in, "f", &err), 0);
    assert_int_equal(dt_document_reader_jsonl.open(&reader, &source, &err), 0);
    assert_int_equal(dt_document_reader_jsonl.next(reader, &doc, &record, &err), 1);
    assert_int_equal(record.mark.kind, DT_STREAM_MARK_END);
    assert_ptr_equal(record.mark.json, strstr(record.as->data, "{\"documents"));
    dt_document_reader_jsonl.close(reader);
    dt_document_release(&doc);
    dt_input_close(source.in);
    dt_threads_free(source.threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_gives_id_text_and_meta),
        cmocka_unit_test(a_text_may_be_inside_of_objects),
        cmocka_unit_test(files_that_break_off_are_refused),
        cmocka_unit_test(an_end_record_is_in_the_line),
        cmocka_unit_test(meta_passes_byte_for_byte),
        cmocka_unit_test(other_members_go_into_meta),
        cmocka_unit_test(of_two_members_the_last_counts),
        cmocka_unit_test(another_member_may_hold_the_text),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(a_zero_in_the_text_is_kept),
        cmocka_unit_test(wrong_lines_are_named_by_their_place),
        cmocka_unit_test(every_kind_of_wrong_json_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(no_mutation_breaks_the_reader),
        cmocka_unit_test(documents_are_written_as_json),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
