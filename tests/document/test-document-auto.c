/* SPDX-License-Identifier: MIT */
/* The format that the beginning of a file, or its name, tells. */
#include "listed.h"

static void auto_takes_damaged_json_for_json(void **state)
{
    (void)state;
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, "{\"text\":\"a\"",
                   "f:1: byte 11: the JSON object ends too early");
    assert_refused(DT_DOCUMENT_FORMAT_AUTO, "{}\n",
                   "f:1: no member \"text\"; --field of dt-clean, dt-dedup and dt-extract names "
                   "the one with the text");
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
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, "f: has a NUL byte at byte 500000, as binary data", 48), 0);
    options.format = DT_DOCUMENT_FORMAT_TEXT;
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
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
        assert_int_equal(list_files(paths, 1, &any, &out, NULL), DT_EFORMAT);
        assert_int_equal(strncmp(err.text, cases[i].reason, strlen(cases[i].reason)), 0);
        assert_int_equal(list_files(paths, 1, &lines, &out, NULL), 0);
    }
    dt_buffer_release(&out);
}

/* As much white space as is looked at: then the whole file is. */
static void json_after_much_white_space_is_not_text(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_takes_damaged_json_for_json),
        cmocka_unit_test(auto_looks_at_how_a_file_begins),
        cmocka_unit_test(auto_refuses_what_may_be_meant_otherwise),
        cmocka_unit_test(auto_refuses_json_lines_after_another_line),
        cmocka_unit_test(auto_refuses_lines_of_strings_and_arrays),
        cmocka_unit_test(auto_refuses_a_zero_wherever_it_is),
        cmocka_unit_test(a_name_tells_where_content_cannot),
        cmocka_unit_test(json_after_much_white_space_is_not_text),
        cmocka_unit_test(auto_knows_a_long_line),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
