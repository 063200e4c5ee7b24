/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "document/document.h"
#include "document/reader.h"

static struct dt_error err;

static void write_bytes(const char *path, const char *data, size_t size)
{
    remove(path); /* a file system may sync a file that is truncated and rewritten */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* Appends "id=text{meta}|" for each document, to compare all at once. */
static int list_on(int threads, char *const *paths, int count,
                   const struct dt_documents_options *options, struct dt_buffer *out)
{
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_documents_options with_threads = *options;
    with_threads.threads = threads;
    int rc = dt_documents_open(&docs, paths, count, &with_threads, &err);
    dt_buffer_clear(out);
    dt_buffer_add_string(out, "");
    while (rc >= 0 && (rc = dt_documents_next(docs, &doc, &err)) > 0) {
        dt_buffer_append(out, doc.id.data, doc.id.size);
        dt_buffer_add_char(out, '=');
        dt_buffer_append(out, doc.text.data, doc.text.size);
        dt_buffer_append(out, doc.meta.data, doc.meta.size);
        dt_buffer_add_char(out, '|');
    }
    dt_document_release(&doc);
    dt_documents_close(docs);
    return rc;
}

/* The same with threads must give the same documents and the same error. */
static int list(char *const *paths, int count, const struct dt_documents_options *options,
                struct dt_buffer *out)
{
    struct dt_buffer alone = DT_BUFFER_EMPTY;
    int rc = list_on(0, paths, count, options, &alone);
    struct dt_error first = err;
    assert_int_equal(list_on(3, paths, count, options, out), rc);
    assert_int_equal(out->size, alone.size);
    assert_memory_equal(out->data, alone.data, alone.size);
    if (rc < 0)
        assert_string_equal(err.text, first.text);
    dt_buffer_release(&alone);
    return rc;
}

static void assert_documents(enum dt_document_format format, const char *data, size_t size,
                             const char *expected)
{
    char *const paths[] = {"f"};
    bool cuts = format == DT_DOCUMENT_FORMAT_SEPARATOR || format == DT_DOCUMENT_FORMAT_SPLIT;
    const struct dt_documents_options options = {.format = format,
                                                 .separator = cuts ? "<sep>" : NULL};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    write_bytes("f", data, size);
    assert_int_equal(list(paths, 1, &options, &out), 0);
    assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

#define DOCUMENTS(format, data, expected) assert_documents(format, data, sizeof data - 1, expected)
#define JSONL(data, expected)             DOCUMENTS(DT_DOCUMENT_FORMAT_JSONL, data "\n", expected)

static void assert_error(enum dt_document_format format, const char *separator, const char *data,
                         const char *reason)
{
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {.format = format, .separator = separator};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    write_bytes("f", data, strlen(data));
    assert_int_equal(list(paths, 1, &options, &out), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, reason, strlen(reason)), 0);
    dt_buffer_release(&out);
}

static void assert_refused(enum dt_document_format format, const char *data, const char *reason)
{
    assert_error(format, NULL, data, reason);
    assert_string_equal(err.text, reason);
}

static void a_text_is_the_file(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_TEXT, "", "");
    DOCUMENTS(DT_DOCUMENT_FORMAT_TEXT, "a\n\nb\r\n", "f:1=a\n\nb\r\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_TEXT, "{\"text\":1}", "f:1={\"text\":1}|");
}

static void a_line_is_a_document_and_may_be_empty(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "", "");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "\n", "f:1=|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "a\n\nb", "f:1=a|f:2=|f:3=b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "a\r\n\r\nb\rc\r", "f:1=a|f:2=|f:3=b\rc\r|");
}

static void a_nul_ends_a_document(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_NUL, "a\nb\0c\0\0", "f:1=a\nb|f:2=c|f:3=|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_NUL, "a\0b", "f:1=a|f:2=b|");
}

static void a_separator_line_ends_a_document(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a\nb\n<sep>\nc\n<sep>\n", "f:1=a\nb|f:2=c|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a\n<sep>\nb\n", "f:1=a|f:2=b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a\n<sep>\nb", "f:1=a|f:2=b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a\r\n<sep>\r\n\r\n<sep>\r\nb\r\nc\r",
              "f:1=a|f:2=b\r\nc\r|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a\n <sep>\n<sep>!\n\n<sep>\n",
              "f:1=a\n <sep>\n<sep>!\n|");
}

static void nothing_between_separators_is_no_document(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "", "");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "<sep>\n<sep>\n\n<sep>\na\n<sep>\n\n", "f:1=a|");
}

static void a_separator_inside_a_line_is_never_one_silent_document(void **state)
{
    (void)state;
    const char *tokens = "<|endoftext|>";
    assert_error(DT_DOCUMENT_FORMAT_AUTO, "<sep>", "a\nb<sep>c\n<sep>\nd",
                 "f:2: has the separator '<sep>' inside a line; --from split ends a document at "
                 "each, --from sep only at lines that equal it");
    assert_error(DT_DOCUMENT_FORMAT_SEPARATOR, "<sep>", "a<sep>b\nc<sep>d\n",
                 "f:1: has the separator '<sep>' inside a line; --from split ends a document");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SEPARATOR, "a<sep>\n<sep>\nb<sep>c\n", "f:1=a<sep>|f:2=b<sep>c|");
    assert_error(DT_DOCUMENT_FORMAT_AUTO, NULL, "a\n\nb <|endoftext|>c",
                 "f:3: has '<|endoftext|>', which");
    assert_error(DT_DOCUMENT_FORMAT_AUTO, NULL, "<|end_of_text|>",
                 "f:1: has '<|end_of_text|>', which");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "a<|endoftext|b<|end>", "f:1=a<|endoftext|b<|end>|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_TEXT, "a<|endoftext|>b", "f:1=a<|endoftext|>b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "a<|endoftext|>b", "f:1=a<|endoftext|>b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "{\"text\":\"a<|endoftext|>b\"}", "f:1=a<|endoftext|>b|");
    assert_error(DT_DOCUMENT_FORMAT_AUTO, tokens, "a<|endoftext|>b",
                 "f:1: has the separator '<|endoftext|>'");
}

static void split_ends_a_document_at_each_separator(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "", "");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "a<sep>b", "f:1=a|f:2=b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "a <sep> b<sep>", "f:1=a |f:2= b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "<sep><sep>\n\n<sep>\r\n<sep>a", "f:1=a|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "\na\n<sep>\n\nb\n\n<sep>c\n", "f:1=\na|f:2=\nb\n|f:3=c|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_SPLIT, "a><se<sep><sep >b", "f:1=a><se|f:2=<sep >b|");
}

/* Separators that are lines give the same documents in either way, whatever is between them. */
static void split_agrees_with_sep_on_lines(void **state)
{
    (void)state;
    static const char *const bits[] = {"a", "\n", "\r\n", "b c", "\n<sep>\n", "\r\n<sep>\r\n", "<"};
    char *const paths[] = {"f"};
    struct dt_buffer text = DT_BUFFER_EMPTY, lines = DT_BUFFER_EMPTY, split = DT_BUFFER_EMPTY;
    struct dt_rng random;
    dt_rng_init(&random, dt_random_key(1, 2, 3));
    for (int round = 0; round < 300; round++) {
        dt_buffer_clear(&text);
        dt_buffer_add_string(&text, "<sep>\n");
        for (uint32_t n = dt_rng_below(&random, 12); n > 0; n--)
            dt_buffer_add_string(&text, bits[dt_rng_below(&random, 7)]);
        write_bytes("f", text.data, text.size);
        struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_SEPARATOR,
                                               .separator = "<sep>"};
        assert_int_equal(list(paths, 1, &options, &lines), 0);
        options.format = DT_DOCUMENT_FORMAT_SPLIT;
        assert_int_equal(list(paths, 1, &options, &split), 0);
        assert_string_equal(lines.data, split.data);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&lines);
    dt_buffer_release(&split);
}

/* In every format: line ends and separators do not count, and the next byte is too much. */
static void a_document_has_its_most_bytes_and_no_more(void **state)
{
    (void)state;
    static const struct {
        enum dt_document_format format;
        const char *before, *after;
    } cases[] = {{DT_DOCUMENT_FORMAT_TEXT, "", ""},
                 {DT_DOCUMENT_FORMAT_LINES, "x\n", "\r\nx\n"},
                 {DT_DOCUMENT_FORMAT_LINES, "", ""},
                 {DT_DOCUMENT_FORMAT_SEPARATOR, "x\n<sep>\n", "\r\n<sep>\r\nx\n"},
                 {DT_DOCUMENT_FORMAT_SEPARATOR, "", "\r\n"},
                 {DT_DOCUMENT_FORMAT_SEPARATOR, "1234\n", ""},
                 {DT_DOCUMENT_FORMAT_SPLIT, "x<sep>\r\n", "\r\n<sep>x"},
                 {DT_DOCUMENT_FORMAT_SPLIT, "", "<sep><sep>x"},
                 {DT_DOCUMENT_FORMAT_JSONL, "{\"text\":\"", "\"}\n{\"text\":\"x\"}\n"}};
    char *const paths[] = {"f"};
    struct dt_buffer text = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool cuts = cases[i].format == DT_DOCUMENT_FORMAT_SEPARATOR ||
                    cases[i].format == DT_DOCUMENT_FORMAT_SPLIT;
        size_t size = strchr(cases[i].before, '4') ? 15 : 20;
        struct dt_documents_options options = {
            .format = cases[i].format, .separator = cuts ? "<sep>" : NULL, .most = 20};
        for (int more = 0; more < 2; more++) {
            dt_buffer_clear(&text);
            dt_buffer_printf(&text, "%s%.*s%s", cases[i].before, (int)size + more,
                             "abcdefghijklmnopqrstuvwxyz", cases[i].after);
            write_bytes("f", text.data, text.size);
            int rc = list(paths, 1, &options, &out);
            if (rc != (more ? DT_EFORMAT : 0))
                fail_msg("case %zu, %d more: %s", i, more, rc < 0 ? err.text : "taken");
            if (more)
                assert_non_null(
                    strstr(err.text, " has more than 20 bytes; --from (of dt-clean, too) can"));
        }
        options.most = 21;
        assert_int_equal(list(paths, 1, &options, &out), 0);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&out);
}

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
    assert_int_equal(list(paths, 1, &options, &out), 0);
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
    assert_int_equal(list(paths, 1, &options, &out), 0);
    assert_int_equal(out.size, 8);
    assert_memory_equal(out.data, "f:1=a\0b|", 8);
    dt_buffer_release(&out);
}

static void wrong_lines_are_named_by_their_place(void **state)
{
    (void)state;
    const enum dt_document_format jsonl = DT_DOCUMENT_FORMAT_JSONL;
    assert_refused(jsonl, "{\"text\":\"a\"}\n\n{\"text\":\"b\"\n", "f:3: byte 11: ends too early");
    assert_refused(jsonl, "{\"id\":\"a\"}\n", "f:1: no member \"text\"");
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
        if (list(paths, 1, &options, &out) != DT_EFORMAT)
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

static void auto_takes_damaged_json_for_json(void **state)
{
    (void)state;
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, "{\"text\":\"a\"", "f:1: byte 11: ends too early");
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, "{}\n", "f:1: no member \"text\"");
}

static void auto_looks_at_how_a_file_begins(void **state)
{
    (void)state;
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "{\"text\":\"a\"}\n", "f:1=a|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, " { \"text\":\"a\"}", "f:1=a|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "{ a }", "f:1={ a }|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "{", "f:1={|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "[1]\n", "f:1=[1]\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "7\n", "f:1=7\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "Once.\n", "f:1=Once.\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "", "");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\n \r\n\n{\"text\":\"a\"}\n\n{\"text\":\"b\"}",
              "f:1=a|f:2=b|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\xef\xbb\xbf\n{\"text\":\"a\"}", "f:1=a|");
}

static void auto_refuses_what_may_be_meant_otherwise(void **state)
{
    (void)state;
    assert_error(
        DT_DOCUMENT_FORMAT_JSONL, NULL, "{\n \"text\":\"a\"}",
        "f: is a JSON object over several lines, not plain text; --from json (of dt-clean, "
        "too) reads its values, --from text any bytes");
    assert_error(DT_DOCUMENT_FORMAT_JSONL, NULL, "[{\"text\":\"a\"}]",
                 "f: is a JSON array, not plain text");
    DOCUMENTS(DT_DOCUMENT_FORMAT_TEXT, "[{\"text\":\"a\"}]", "f:1=[{\"text\":\"a\"}]|");
    assert_error(DT_DOCUMENT_FORMAT_JSONL, NULL, "id,text\n1,a\n",
                 "f: is a CSV file, not plain text; --from csv (of dt-clean, too) reads its ");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "id,text\n1,a\n", "f:1=id,text|f:2=1,a|");
}

static void assert_suspect(const char *data, const char *name)
{
    char expected[100];
    snprintf(expected, sizeof expected, "f: is %s, not plain text; ", name);
    assert_error(DT_DOCUMENT_FORMAT_AUTO, NULL, data, expected);
    assert_error(DT_DOCUMENT_FORMAT_AUTO, "<sep>", data, expected);
}

static void auto_refuses_json_lines_after_another_line(void **state)
{
    (void)state;
    static const char *const first[] = {"starting job",
                                        "null",
                                        "//",
                                        "#",
                                        ",",
                                        "{x",
                                        "x{\"id\"",
                                        "\x1e",
                                        "\x1e{\"text\":\"a\"}",
                                        ",{\"text\":\"a\"}"};
    static const char name[] = "JSON Lines after a line that is not JSON";
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        dt_buffer_clear(&text);
        dt_buffer_add_string(&text, first[i]);
        dt_buffer_add_string(&text, "\r\n\n{\"id\":\"\",\"text\":\"b\"}\r\n");
        assert_suspect(text.data, name);
        DOCUMENTS(DT_DOCUMENT_FORMAT_NUL, "x\n{\"text\":\"b\"}\n", "f:1=x\n{\"text\":\"b\"}\n|");
    }
    dt_buffer_clear(&text); /* a head may hold no more than a part of one line */
    for (int i = 0; i < 1000; i++)
        dt_buffer_add_string(&text, "far on");
    dt_buffer_add_string(&text, "\n{\"text\":\"b\"}");
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, text.data,
                   "f: is JSON Lines after a line that is not JSON, not plain text; --from jsonl "
                   "--on-error skip passes over that line, --from text reads one document");
    dt_buffer_release(&text);
    assert_suspect("x\"text\":\"a\",\"dt_stream\":{\"documents\":1}}\n", name);
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "x\n {\"text\":\"b\"}\n", "f:1=x\n {\"text\":\"b\"}\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "x\n{\"a\":\"text\"}\n", "f:1=x\n{\"a\":\"text\"}\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "x\n{\"text\":1} y\nz", "f:1=x\n{\"text\":1} y\nz|");
}

static void auto_refuses_lines_of_strings_and_arrays(void **state)
{
    (void)state;
    assert_suspect("\"a\"\n\"b\\\"\"\r\n", "JSON strings, one a line");
    assert_suspect("\xef\xbb\xbf\"a\"", "JSON strings, one a line");
    assert_suspect("[1,\"a\"]\n[2]\n", "JSON arrays, one a line");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\"a\" b \"c\"\n", "f:1=\"a\" b \"c\"\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "\"a\"\nb\n", "f:1=\"a\"\nb\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_AUTO, "[1]\n[2] b\n", "f:1=[1]\n[2] b\n|");
    DOCUMENTS(DT_DOCUMENT_FORMAT_LINES, "\"a\"\n", "f:1=\"a\"|");
}

static void auto_refuses_a_zero_wherever_it_is(void **state)
{
    (void)state;
    char *const paths[] = {"f"};
    struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_AUTO};
    struct dt_buffer out = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY;
    for (int i = 0; i < 100000; i++)
        dt_buffer_add_string(&text, "word ");
    dt_buffer_append(&text, "\0end", 4);
    write_bytes("f", text.data, text.size);
    assert_int_equal(list(paths, 1, &options, &out), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, "f: has a NUL byte at byte 500000, as binary data", 48), 0);
    options.format = DT_DOCUMENT_FORMAT_TEXT;
    assert_int_equal(list(paths, 1, &options, &out), 0);
    assert_int_equal(out.size, text.size + 5);
    dt_buffer_release(&text);
    dt_buffer_release(&out);
}

static void a_name_tells_where_content_cannot(void **state)
{
    (void)state;
    static char *paths[1];
    const struct dt_documents_options any = {.format = DT_DOCUMENT_FORMAT_AUTO},
                                      lines = {.format = DT_DOCUMENT_FORMAT_LINES};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    static const struct {
        char *path;
        const char *reason;
    } cases[] = {
        {"x.jsonl", "x.jsonl:1: byte 0: '{' expected"},
        {"x.NDJSON", "x.NDJSON:1: byte 0: '{' expected"},
        {"x.csv",
         "x.csv: has no column 'text', but plain,  text; --field NAME (of dt-clean, too) "},
        {"x.tsv", "x.tsv: has no column 'text', but plain, text; "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        paths[0] = cases[i].path;
        write_bytes(paths[0], "plain, text\n", 12);
        assert_int_equal(list(paths, 1, &any, &out), DT_EFORMAT);
        assert_int_equal(strncmp(err.text, cases[i].reason, strlen(cases[i].reason)), 0);
        assert_int_equal(list(paths, 1, &lines, &out), 0);
    }
    dt_buffer_release(&out);
}

/* As much white space as is looked at: then the whole file is. */
static void json_far_behind_white_space_is_not_text(void **state)
{
    (void)state;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = 0; i < 5000; i++)
        dt_buffer_add_char(&text, '\n');
    dt_buffer_add_string(&text, "{\"text\":\"a\"}\n");
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, text.data,
                   "f: is JSON Lines after 5000 bytes of white space; remove them");
    assert_documents(DT_DOCUMENT_FORMAT_JSONL, text.data, text.size, "f:1=a|");
    dt_buffer_release(&text);
}

static void auto_knows_a_long_line(void **state)
{
    (void)state;
    struct dt_buffer line = DT_BUFFER_EMPTY, expected = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&line, "{\"text\":\"");
    dt_buffer_add_string(&expected, "f:1=");
    for (int i = 0; i < 10000; i++) {
        dt_buffer_add_string(&line, "word ");
        dt_buffer_add_string(&expected, "word ");
    }
    dt_buffer_add_string(&line, "\"}\n");
    dt_buffer_add_char(&expected, '|');
    assert_documents(DT_DOCUMENT_FORMAT_AUTO, line.data, line.size, expected.data);
    dt_buffer_release(&line);
    dt_buffer_release(&expected);
}

static void files_follow_each_other_and_number_anew(void **state)
{
    (void)state;
    char *const paths[] = {"d/a", "empty", "d/b"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_AUTO};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    assert_int_equal(dt_file_make_directories("d", &err), 0);
    write_bytes("d/a", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n", 26);
    write_bytes("empty", "", 0);
    write_bytes("d/b", "text", 4);
    assert_int_equal(list(paths, 3, &options, &out), 0);
    assert_string_equal(out.data, "a:1=1|a:2=2|b:1=text|");
    dt_buffer_release(&out);
}

static void what_cannot_be_read_is_said_before_the_work(void **state)
{
    (void)state;
    char *const paths[] = {"f", "absent"};
    struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_TEXT};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    write_bytes("f", "text", 4);
    assert_int_equal(list(paths, 2, &options, &out), DT_EIO);
    assert_int_equal(out.size, 0);
    options.format = DT_DOCUMENT_FORMAT_SEPARATOR;
    assert_int_equal(list(paths, 1, &options, &out), DT_EINVALID);
    options.separator = "two\nlines";
    assert_int_equal(list(paths, 1, &options, &out), DT_EINVALID);
    dt_buffer_release(&out);
}

static void the_position_counts_all_files(void **state)
{
    (void)state;
    char *const paths[] = {"a", "b"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_TEXT};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    uint64_t taken, total;
    write_bytes("a", "12345", 5);
    write_bytes("b", "123", 3);
    assert_int_equal(dt_documents_open(&docs, paths, 2, &options, &err), 0);
    dt_documents_position(docs, &taken, &total);
    assert_int_equal(taken, 0);
    assert_int_equal(total, 8);
    while (dt_documents_next(docs, &doc, &err) > 0)
        ;
    dt_documents_position(docs, &taken, &total);
    assert_int_equal(taken, 8);
    dt_document_release(&doc);
    dt_documents_close(docs);
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
        if (list(first, 1, &options, &before) < 0)
            continue;
        accepted++;
        rewrite("first", "second");
        assert_int_equal(list(second, 1, &options, &after), 0);
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

/* --- a format of another module ----------------------------------------------------------------*/

struct pairs {
    struct dt_input *in;
    struct dt_buffer line;
    uint64_t number;
};

static int open_pairs(void **state, const struct dt_document_source *source, struct dt_error *e)
{
    struct pairs *p = *state = dt_alloc(1, sizeof *p);
    (void)e;
    p->in = source->in;
    return 0;
}

/* ID=TEXT; a line without '=' is bad. */
static int next_pair(void *state, struct dt_document *doc, struct dt_document_record *record,
                     struct dt_error *e)
{
    struct pairs *p = state;
    bool found;
    DT_TRY(dt_input_read_until(p->in, '\n', &p->line, &found, e));
    if (!found && p->line.size == 0)
        return 0;
    record->line = ++p->number;
    record->as = &p->line;
    char *equal = memchr(p->line.data, '=', p->line.size);
    if (equal == NULL) {
        dt_fail(e, DT_EFORMAT, "no '='");
        return DT_DOCUMENT_BAD;
    }
    dt_buffer_append(&doc->id, p->line.data, (size_t)(equal - p->line.data));
    dt_buffer_add_string(&doc->text, equal + 1);
    return 1;
}

static void close_pairs(void *state)
{
    struct pairs *p = state;
    if (p)
        dt_buffer_release(&p->line);
    free(p);
}

/* --- blocks ----------------------------------------------------------------------------------- */

enum { LINES = 30000 };

static size_t length_of(int line)
{
    return line % 5000 == 77 ? 700000 : (size_t)line * 7919 % 200;
}

static bool is_bad(int line)
{
    return line % 3001 == 17;
}

static bool is_blank(int line)
{
    return line % 701 == 5;
}

/* Lines 1 .. LINES, of which the last has no line end. */
static void write_lines(const char *path)
{
    struct dt_buffer lines = DT_BUFFER_EMPTY;
    for (int i = 1; i <= LINES; i++) {
        if (is_blank(i)) {
            dt_buffer_add_string(&lines, " \t\r\n");
            continue;
        }
        dt_buffer_printf(&lines, "{\"id\": %d, \"text\": \"", i);
        for (size_t k = 0; k < length_of(i); k++)
            dt_buffer_add_char(&lines, (char)('a' + (k + (size_t)i) % 26));
        dt_buffer_printf(&lines, is_bad(i) ? "\n" : "\", \"n\": %d}%s", i, i < LINES ? "\n" : "");
    }
    write_bytes(path, lines.data, lines.size);
    dt_buffer_release(&lines);
}

static void assert_line(const struct dt_document *doc, int line)
{
    char id[16], meta[24];
    snprintf(id, sizeof id, "%d", line);
    snprintf(meta, sizeof meta, "{\"n\":%d}", line);
    assert_string_equal(doc->id.data, id);
    assert_string_equal(doc->meta.data, meta);
    assert_int_equal(doc->text.size, length_of(line));
    for (size_t k = 0; k < doc->text.size; k++)
        if (doc->text.data[k] != (char)('a' + (k + (size_t)line) % 26))
            fail();
}

/* Reads them past the bad ones, which the quarantine names. */
static void read_lines_on(int threads)
{
    char *const paths[] = {"lines"};
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_JSONL,
        .threads = threads,
        .bad_lines = {.skip = true, .most = UINT64_MAX, .quarantine = "bad"}};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    assert_int_equal(dt_documents_open(&docs, paths, 1, &options, &err), 0);
    for (int i = 1; i <= LINES; i++) {
        if (is_bad(i) || is_blank(i))
            continue;
        assert_int_equal(dt_documents_next(docs, &doc, &err), 1);
        assert_line(&doc, i);
    }
    assert_int_equal(dt_documents_next(docs, &doc, &err), 0);
    assert_string_equal(dt_documents_losses(docs).first_skipped,
                        "lines:17: byte 43: ends too early");
    dt_document_release(&doc);
    dt_documents_close(docs);
}

static void lines_of_many_blocks_come_in_order(void **state)
{
    char *alone, *data;
    size_t size, same;
    (void)state;
    write_lines("lines");
    read_lines_on(1);
    assert_int_equal(dt_file_read("bad", 1 << 24, &alone, &size, &err), 0);
    for (int threads = 2; threads <= 4; threads += 2) {
        read_lines_on(threads);
        assert_int_equal(dt_file_read("bad", 1 << 24, &data, &same, &err), 0);
        assert_int_equal(same, size);
        assert_memory_equal(data, alone, size);
        free(data);
    }
    free(alone);
}

/* A reader that stops early, while threads parse. */
static void a_reader_can_be_closed_before_the_end(void **state)
{
    char *const paths[] = {"lines"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_LINES, .threads = 4};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    (void)state;
    write_lines("lines");
    for (int count = 0; count < 3; count++) {
        assert_int_equal(dt_documents_open(&docs, paths, 1, &options, &err), 0);
        for (int i = 0; i < count; i++)
            assert_int_equal(dt_documents_next(docs, &doc, &err), 1);
        dt_documents_close(docs);
    }
    dt_document_release(&doc);
}

/* Records above the limit, one of which is longer than what is read at once. */
static void long_lines_are_skipped(void **state)
{
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_LINES,
        .most = 10,
        .bad_lines = {.skip = true, .most = UINT64_MAX, .quarantine = "bad"}};
    struct dt_buffer data = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    (void)state;
    dt_buffer_add_string(&data, "one\n0123456789\r\n0123456789a\n0123456789ab\n0123456789abcd\n");
    for (int i = 0; i < 1000000; i++)
        dt_buffer_add_char(&data, 'x');
    dt_buffer_add_string(&data, "\ntwo\n");
    write_bytes("f", data.data, data.size);
    assert_int_equal(list(paths, 1, &options, &out), 0);
    assert_string_equal(out.data, "f:1=one|f:2=0123456789|f:7=two|");
    dt_buffer_release(&data);
    dt_buffer_release(&out);
}

static const struct dt_document_reader pairs_reader = {
    .name = "pairs", .open = open_pairs, .next = next_pair, .close = close_pairs};

static int format_named(const char *name)
{
    for (int i = 0; dt_document_formats[i]; i++)
        if (strcmp(dt_document_formats[i], name) == 0)
            return i;
    return -1;
}

static void a_module_above_adds_a_format(void **state)
{
    char *const paths[] = {"f"};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    (void)state;
    assert_int_equal(format_named("pairs"), -1);
    assert_null(dt_document_reader_named("pairs"));
    dt_document_reader_register(&pairs_reader);
    dt_document_reader_register(&pairs_reader);
    int format = format_named("pairs");
    assert_true(format > 0);
    assert_null(dt_document_formats[format + 1]);
    struct dt_documents_options options = {.format = (enum dt_document_format)format, .most = 3};
    write_bytes("f", "a=b\n=c\nd\n", 9);
    assert_int_equal(list(paths, 1, &options, &out), DT_EFORMAT);
    assert_string_equal(err.text, "f:3: no '='");
    options.bad_lines = (struct dt_bad_line_policy){.skip = true, .most = 1};
    assert_int_equal(list(paths, 1, &options, &out), 0);
    assert_string_equal(out.data, "a=b|f:2=c|");
    write_bytes("f", "a=bcde\n", 7);
    assert_int_equal(list(paths, 1, &options, &out), DT_EFORMAT);
    assert_non_null(strstr(err.text, "f: document 1 has more than 3 bytes"));
    options.field = "x";
    assert_int_equal(list(paths, 1, &options, &out), DT_EFORMAT);
    assert_string_equal(err.text, "f: has no fields, so --field 'x' cannot be read");
    dt_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_above_adds_a_format),
        cmocka_unit_test(lines_of_many_blocks_come_in_order),
        cmocka_unit_test(a_reader_can_be_closed_before_the_end),
        cmocka_unit_test(long_lines_are_skipped),
        cmocka_unit_test(a_text_is_the_file),
        cmocka_unit_test(a_line_is_a_document_and_may_be_empty),
        cmocka_unit_test(a_nul_ends_a_document),
        cmocka_unit_test(a_separator_line_ends_a_document),
        cmocka_unit_test(nothing_between_separators_is_no_document),
        cmocka_unit_test(a_separator_inside_a_line_is_never_one_silent_document),
        cmocka_unit_test(split_ends_a_document_at_each_separator),
        cmocka_unit_test(split_agrees_with_sep_on_lines),
        cmocka_unit_test(a_document_has_its_most_bytes_and_no_more),
        cmocka_unit_test(json_gives_id_text_and_meta),
        cmocka_unit_test(meta_passes_byte_for_byte),
        cmocka_unit_test(other_members_go_into_meta),
        cmocka_unit_test(of_two_members_the_last_counts),
        cmocka_unit_test(another_member_may_hold_the_text),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(a_zero_in_the_text_is_kept),
        cmocka_unit_test(wrong_lines_are_named_by_their_place),
        cmocka_unit_test(every_kind_of_wrong_json_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(auto_takes_damaged_json_for_json),
        cmocka_unit_test(auto_looks_at_how_a_file_begins),
        cmocka_unit_test(auto_refuses_what_may_be_meant_otherwise),
        cmocka_unit_test(auto_refuses_json_lines_after_another_line),
        cmocka_unit_test(auto_refuses_lines_of_strings_and_arrays),
        cmocka_unit_test(auto_refuses_a_zero_wherever_it_is),
        cmocka_unit_test(a_name_tells_where_content_cannot),
        cmocka_unit_test(json_far_behind_white_space_is_not_text),
        cmocka_unit_test(auto_knows_a_long_line),
        cmocka_unit_test(files_follow_each_other_and_number_anew),
        cmocka_unit_test(what_cannot_be_read_is_said_before_the_work),
        cmocka_unit_test(the_position_counts_all_files),
        cmocka_unit_test(no_mutation_breaks_the_reader),
        cmocka_unit_test(documents_are_written_as_json),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
