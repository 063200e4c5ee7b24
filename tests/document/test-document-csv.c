/* SPDX-License-Identifier: MIT */
#include "document/document-internal.h"
#include "listed.h"

#define CSV(field, data, expected)                                                                 \
    assert_reads(DT_DOCUMENT_FORMAT_CSV, field, data, sizeof data - 1, expected)
#define AUTO(data, expected)                                                                       \
    assert_reads(DT_DOCUMENT_FORMAT_AUTO, NULL, data, sizeof data - 1, expected)

static void assert_field_refused(const char *field, const char *data, const char *reason)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_CSV, .field = field};
    assert_int_equal(list(&options, data, strlen(data), &out, NULL), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, reason, strlen(reason)), 0);
    dt_buffer_release(&out);
}

static void a_row_is_a_document(void **state)
{
    (void)state;
    CSV(NULL, "text\na\nb\n", "f:1=a|f:2=b|");
    CSV(NULL, "id,text,n\r\nx,a,1\r\n,b,\r\n", "x=a{\"n\":\"1\"}|f:2=b{\"n\":\"\"}|");
    CSV(NULL, "\xef\xbb\xbf\n\ntext\na", "f:1=a|");
    CSV("body", "text,body,id\na,b,c", "c=b{\"text\":\"a\"}|");
    CSV("id", "text,id\na,b", "f:1=b{\"text\":\"a\"}|");
    CSV(NULL, "", "");
    CSV(NULL, "text\n", "");
    CSV(NULL, "text,n\n\n\r\na,1\n\n", "f:1=a{\"n\":\"1\"}|");
    CSV(NULL, ",text\n0,a\n", "f:1=a{\"column1\":\"0\"}|");
    CSV(NULL, "text,n\n,\n", "f:1={\"n\":\"\"}|");
}

static void quotes_hold_separators_quotes_and_line_ends(void **state)
{
    (void)state;
    CSV(NULL, "\"text\",\"n\"\n\"a,\"\"b\"\"\nc\r\n\nd\",\"\"\n",
        "f:1=a,\"b\"\nc\r\n\nd{\"n\":\"\"}|");
    CSV(NULL, "text\n\"\"\n\"\n\"\n\"\"\"\"\n\"\r\"", "f:1=|f:2=\n|f:3=\"|f:4=\r|");
    AUTO("text\tn\na\"b\"\t\"1\"\r\n", "f:1=a\"b\"{\"n\":\"1\"}|");
    CSV(NULL, "n,text\n1,\"a\nb\"", "f:1=a\nb{\"n\":\"1\"}|");
    CSV(NULL, "text\n\"a\nb,\"\"c\"\"\n\"\n\"x,\"\n", "f:1=a\nb,\"c\"\n|f:2=x,|");
    CSV(NULL, "text\na\0b\n", "f:1=a");
}

static void other_separators_are_found(void **state)
{
    (void)state;
    CSV(NULL, "text;n\na,b;1\n", "f:1=a,b{\"n\":\"1\"}|");
    AUTO("url\ttext\nu\t\"a\tb\"\n", "f:1=a\tb{\"url\":\"u\"}|");
    AUTO("id,text\n1,a\n", "1=a|");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    assert_field_refused(NULL, "id,body\n1,a\n",
                         "f: has no column 'text', but id, body; --field NAME");
    assert_field_refused("x", "text\na\n", "f: has no column 'x', but text; ");
    assert_field_refused(NULL, "text,a,a\n", "f: two columns of its header are named 'a'");
    assert_field_refused(NULL, "\"text\n", "f:1: the input ends inside a quoted value");
    assert_field_refused(NULL, "text,n\na,1\nb\n",
                         "f:3: expected 2 columns, as in the header, found 1");
    assert_field_refused(NULL, "text\n\"a\nb\"\n1,2\n", "f:4: expected 1 columns");
    assert_field_refused(NULL, "text\n\"a\"b\n", "f:2: a quotation mark is inside a value");
    assert_field_refused(NULL, "text,n\na \"b\" c,1\n", "f:2: a quotation mark is inside a value");
    assert_field_refused(NULL, "n,text\n1,\"stray\n2,b\n3,\"c\"\n",
                         "f:2: a quotation mark is inside");
    assert_field_refused(NULL, "n,text\n1,\"stray\n2,b\n3,\"\n",
                         "f:2: the quoted value ends in line 4");
    assert_field_refused(NULL, "text,n\n\"stray,1\nb,2\nc,\",3\n",
                         "f:2: the quoted value ends in line 4");
    assert_field_refused(NULL, "text\n\n\"a\nb\n", "f:3: the input ends inside a quoted value");
}

static void bad_rows_follow_the_policy(void **state)
{
    static const char data[] = "text,n\na,1\nb\n\"c\"d,2\ne,3\n0123456789,4\nf,5\n";
    struct dt_buffer out = DT_BUFFER_EMPTY, file = DT_BUFFER_EMPTY;
    struct dt_documents_losses losses;
    struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_CSV,
        .most = 9,
        .bad_lines = {.skip = true, .most = 3, .quarantine = "bad"}};
    char *text;
    size_t size;
    (void)state;
    assert_int_equal(list(&options, data, sizeof data - 1, &out, &losses), 0);
    assert_string_equal(out.data, "f:1=a{\"n\":\"1\"}|f:4=e{\"n\":\"3\"}|f:6=f{\"n\":\"5\"}|");
    assert_int_equal(losses.skipped, 3);
    assert_int_equal(dt_file_read("bad", 10000, &text, &size, &err), 0);
    assert_non_null(strstr(text, "}\n\"c\"d,2\n"));
    free(text);
    options.bad_lines.most = 2;
    assert_int_equal(list(&options, data, sizeof data - 1, &out, &losses), DT_EFORMAT);
    /* a row above four times the limit is passed over, to its end */
    options = (struct dt_documents_options){
        .format = DT_DOCUMENT_FORMAT_CSV, .most = 4, .bad_lines = {.skip = true, .most = 9}};
    dt_buffer_add_string(&file, "text\n\"aaaaaaaa\naaaaaaaaaaaaaaaaaaaaaa\n\nc\nd\"\nb\n");
    assert_int_equal(list(&options, file.data, file.size, &out, &losses), 0);
    assert_string_equal(out.data, "f:2=b|");
    dt_buffer_clear(&file);
    dt_buffer_add_string(&file, "text\na\n\"b\nc\n");
    assert_int_equal(list(&options, file.data, file.size, &out, &losses), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, "f:3: the input ends inside", 26), 0);
    dt_buffer_release(&file);
    dt_buffer_release(&out);
}

/* A name would end there, and "text\0" be "text". */
static void a_zero_byte_in_the_header_is_refused(void **state)
{
    static const char data[] = "text\0s,n\na,1\n";
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_CSV};
    (void)state;
    assert_int_equal(list(&options, data, sizeof data - 1, &out, NULL), DT_EFORMAT);
    assert_string_equal(err.text, "f: its header holds a zero byte");
    dt_buffer_release(&out);
}

static void a_header_of_too_many_columns_is_refused(void **state)
{
    struct dt_buffer file = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_CSV};
    (void)state;
    for (int i = 0; i < 1000000; i++)
        dt_buffer_add_char(&file, ',');
    assert_int_equal(list(&options, file.data, file.size, &out, NULL), DT_EFORMAT);
    assert_string_equal(err.text, "f: its header has more than 10000 columns");
    dt_buffer_release(&file);
    dt_buffer_release(&out);
}

static void a_record_needs_no_text(void **state)
{
    (void)state;
    CSV("", "a,id\n1,x\n2,\n", "x={\"a\":\"1\"}|f:2={\"a\":\"2\"}|");
    CSV("", "text\n1\n", "f:1=1|");
    CSV(NULL, "text,a,b\n1,2,3\n", "f:1=1{\"a\":\"2\",\"b\":\"3\"}|");
    assert_field_refused(NULL, ",\n1,2\n", "f: has no column 'text', but column1, column2");
    assert_field_refused(NULL, "te\"xt\n", "f:1: a quotation mark is inside a value");
    AUTO("n\ttext\n1\t\"a\nb\"\n", "f:1=a\nb{\"n\":\"1\"}|");
    assert_error(
        DT_DOCUMENT_FORMAT_TSV, NULL, "n\ttext\n1\t\"stray\n2\tb\n3\t\"\n",
        "f:2: the quoted value ends in line 4 with '\\x09\"', as if a value began there: remove "
        "the quotation mark that has no partner, or the tab");
}

/* With a limit of 4 bytes of a text, and 16 of a row. */
static void rows_above_the_limit_are_passed_over(void **state)
{
    static const char *const rows[] = {
        "aaaaaaaaaaaaaaaaaaaaaaaaaa",           "aaaaaaaaaaaaaaaaaaaaaaa\r",
        "a\"aaaaaaaaaaaaaaaaaaaaaaaaaa",        "\"aaaaaaaaaaaaaaaaaaaaaaaaa\"",
        "\"aaaaaaaaaaaa\naaaaaaaaaaaaa\"",      "\"aaaaaaaaaaaaaaaaa\naaa\naaaaa\"",
        "\"aaaaaaaaaaaaaaaaa\n\n\naaa\"",       "\"aaaaaaaaaaaaaaaaaaaaaa\"a\"aaaa",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaa\na\"b\"c", "a,\"bb\nccccccccccccccccccccccc,\"",
        "\"aaaaaaaaaaaa\naaaaaaaaaaaa,\"",      "aaaaaaaaaaaaaaaaaaaaaaaaaa,\"b\nc\""};
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_CSV, .most = 4, .bad_lines = {.skip = true, .most = 9}};
    struct dt_buffer out = DT_BUFFER_EMPTY, file = DT_BUFFER_EMPTY;
    struct dt_documents_losses losses;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int last = 0; last < 2; last++) {
            dt_buffer_clear(&file);
            dt_buffer_printf(&file, "text\n%s%s", rows[i], last ? "" : "\nb\n");
            if (list(&options, file.data, file.size, &out, &losses) < 0)
                fail_msg("%s: %s", rows[i], err.text);
            if (strstr(out.data, last ? "" : "=b|") == NULL)
                fail_msg("%s: %s", rows[i], out.data);
            assert_true(losses.skipped > 0);
        }
    for (int size = 12; size < 20; size++) { /* the limit is at a carriage return, or near */
        dt_buffer_clear(&file);
        dt_buffer_printf(&file, "text\n%.*s\r\rx\nb\n", size, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_int_equal(list(&options, file.data, file.size, &out, &losses), 0);
        assert_non_null(strstr(out.data, "=b|"));
    }
    dt_buffer_clear(&file);
    dt_buffer_add_string(&file, "text\n\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nbbb");
    assert_int_equal(list(&options, file.data, file.size, &out, &losses), DT_EFORMAT);
    assert_non_null(strstr(err.text, "the input ends inside a quoted value"));
    dt_buffer_clear(&file);
    dt_buffer_add_string(&file, "text,n,aaaaaaaaaaaaaaaaaaaaaaaaa\n1,2,3\n");
    assert_int_equal(list(&options, file.data, file.size, &out, &losses), DT_EFORMAT);
    assert_string_equal(err.text, "f: its header has more than 16 bytes");
    dt_buffer_release(&file);
    dt_buffer_release(&out);
}

static void files_that_break_off_are_refused(void **state)
{
    static const char data[] = "text,n\na,1\n\"b\nc\",2\n";
    struct dt_buffer out = DT_BUFFER_EMPTY;
    char *const paths[] = {"f.gz"};
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_CSV, .most = 1, .bad_lines = {.skip = true, .most = 9}};
    (void)state;
    assert_cuts_refused(DT_DOCUMENT_FORMAT_CSV, NULL, data, sizeof data - 1);
    assert_cuts_refused(DT_DOCUMENT_FORMAT_TSV, NULL, data, sizeof data - 1);
    static char row[4 << 20] = "text\n"; /* while a row is passed over */
    memset(row + 5, 'a', sizeof row - 5);
    write_cut_gzip("f.gz", row, sizeof row);
    assert_true(list_on(0, paths, 1, &options, &out, NULL) < 0);
    dt_buffer_release(&out);
}

static void readers_that_were_not_opened_may_be_closed(void **state)
{
    (void)state;
    dt_document_reader_csv.close(NULL);
    dt_document_reader_json.close(NULL);
    dt_document_reader_jsonl.close(NULL);
    dt_document_reader_parquet.close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_a_document),
        cmocka_unit_test(quotes_hold_separators_quotes_and_line_ends),
        cmocka_unit_test(other_separators_are_found),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(bad_rows_follow_the_policy),
        cmocka_unit_test(a_zero_byte_in_the_header_is_refused),
        cmocka_unit_test(a_header_of_too_many_columns_is_refused),
        cmocka_unit_test(a_record_needs_no_text),
        cmocka_unit_test(rows_above_the_limit_are_passed_over),
        cmocka_unit_test(readers_that_were_not_opened_may_be_closed),
        cmocka_unit_test(files_that_break_off_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
