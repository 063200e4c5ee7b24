/* SPDX-License-Identifier: MIT */
#include "listed.h"

#define READS(field, data, expected)                                                               \
    assert_reads(DT_DOCUMENT_FORMAT_AUTO, field, data, sizeof data - 1, expected)

static void assert_field_refused(const char *field, const char *data, const char *reason)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_JSON, .field = field, .bad_lines = {.skip = true, .most = 9}};
    assert_int_equal(list(&options, data, strlen(data), &out, NULL), DT_EFORMAT);
    assert_string_equal(err.text, reason);
    dt_buffer_release(&out);
}

static void elements_of_arrays_are_documents(void **state)
{
    (void)state;
    READS(NULL, "[{\"text\":\"a\"},{\"id\":7,\"text\":\"b\",\"n\":1}]", "f:1=a|7=b{\"n\":1}|");
    READS(NULL,
          "\xef\xbb\xbf\n[\n  {\n    \"text\": \"a \\\" ] b\",\n    \"m\": [1, 2.50,\n {}, []]\n  "
          "}\n]\n",
          "f:1=a \" ] b{\"m\":[1,2.50,{},[]]}|");
    assert_reads(DT_DOCUMENT_FORMAT_JSON, NULL, "[]\n[\n]\n", 7, "");
    READS(NULL, "{\n\"text\":\"a\"}{\"text\":\"b\"}\n[{\"text\":\"c\"}]", "f:1=a|f:2=b|f:3=c|");
    READS(NULL, "[\"a\\n\", \"\\u00e9\",{\"text\":\"c\"}]", "f:1=a\n|f:2=\xc3\xa9|f:3=c|");
    READS("a.b", "[ {\"a\":{\"b\":\"x\",\"c\":1}}]", "f:1=x{\"a\":{\"c\":1}}|");
}

static void a_list_in_an_object_is_named_by_the_field(void **state)
{
    static const char file[] =
        "{\n\"v\": {\"rows\": [1, \"]\"]}, \"x\": {\"y\": 0, \"rows\": [\n"
        "{\"t\": {\"u\": \"a\"}}, {\"t\":\n{\"u\":\"b\"}}], \"z\": [{}]}, \"end\": {}}\n";
    (void)state;
    READS("x.rows[].t.u", file, "f:1=a{\"t\":{}}|f:2=b{\"t\":{}}|");
    READS("x.y[].t", "{\n\"\\u0078\":{\"\\/\":0,\"\\u0079\":[{\"t\":\"a\"}]}}", "f:1=a|");
    READS("r[].t", "{\n\"r\1\":1,\"r\":[{\"t\":\"a\"}]}", "f:1=a|");
    READS("r[].t", "{\n\"r\":[]}\n{\"r\":[{\"t\":\"a\"}]}", "f:1=a|");
    assert_field_refused("x.none[].t", file,
                         "f: has no list 'x.none', which --field x.none[].t names");
    assert_field_refused("x.y[].t", file, "f: has no list 'x.y', which --field x.y[].t names");
    assert_field_refused("x[].t", file, "f: has no list 'x', which --field x[].t names");
    assert_field_refused("r[].t", "{\"r\":[]",
                         "f: ends inside the value of JSON that begins in line 1: the "
                         "file was cut, or a quotation mark or a bracket is missing");
}

/* No part of JSON, so that it closes no bracket. */
static void a_zero_byte_is_an_error(void **state)
{
    static const char data[] = "{\"x\":[1\0,\"r\":[{\"t\":\"a\"}]}";
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSON,
                                                 .field = "r[].t"};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    (void)state;
    assert_int_equal(list(&options, data, sizeof data - 1, &out, NULL), DT_EFORMAT);
    dt_buffer_release(&out);
}

/* Of what is wrong between elements the rest of the file cannot be found. */
static void errors_between_elements_end_the_file(void **state)
{
    static const char cut[] = ": the file was cut, or a quotation mark or a bracket is missing";
    char expected[200];
    (void)state;
    assert_field_refused(NULL, "[{\"text\":\"a\"}\n{}]", "f:2: ',' or ']' expected");
    assert_field_refused(NULL, "[{\"text\":\"a\"},\n]",
                         "f:2: a bracket closes one of the other kind, or none");
    assert_field_refused(NULL, "[{\"text\":\"a\"]",
                         "f:1: a bracket closes one of the other kind, or none");
    assert_field_refused(NULL, "[{\"text\":\"a\"}]\n\nx", "f:3: a JSON array or object expected");
    snprintf(expected, sizeof expected, "f: ends inside the value of JSON that begins in line 2%s",
             cut);
    assert_field_refused(NULL, "\n[{\"text\":\"a\"},\n", expected);
    assert_field_refused(NULL, "[\n{\"text\":\"a}\n]", expected);
    assert_field_refused(NULL, "[\n{\1\2", expected);
    assert_field_refused(NULL, "[\n{\"text\":\"a\\\"}]", expected);
}

static void bad_elements_follow_the_policy(void **state)
{
    static const char data[] =
        "[{\"text\":\"a\"},\n{\"text\":t rue},\n\n{\"text\":\"b\nc\",\"x\":[\n1 ]},5,[],"
        "{\"x\":1},,\n\"s\",{\"text\":\"0123456789\"},{\"text\":\"0\",\"long\":\"0123456789"
        "012345678901234567890123456789\"},\n{\"text\":\"d\"}]";
    struct dt_buffer out = DT_BUFFER_EMPTY;
    struct dt_documents_losses losses;
    const struct dt_documents_options options = {
        .most = 9, .field = "text", .bad_lines = {.skip = true, .most = 99, .quarantine = "bad"}};
    char *text;
    size_t size;
    (void)state;
    assert_int_equal(list(&options, data, sizeof data - 1, &out, &losses), 0);
    assert_string_equal(out.data, "f:1=a|f:11=d|");
    assert_int_equal(losses.skipped, 9);
    assert_int_equal(dt_file_read("bad", 10000, &text, &size, &err), 0);
    assert_non_null(
        strstr(text, "\"line\":2,\"reason\":\"byte 8: value expected\"}\n{\"text\":t rue}\n"));
    assert_non_null(strstr(text,
                           "\"line\":4,\"reason\":\"byte 10: control character in a string\"}\n"
                           "{\"text\":\"b c\",\"x\":[1]}\n"));
    free(text);
    dt_buffer_release(&out);
}

/* Wherever the reader's pieces end. */
static void elements_may_lie_anywhere(void **state)
{
    struct dt_buffer file = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY, expected = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSON};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        dt_buffer_printf(&file, "%c \n{\"text\" :\"%.*s\\\\\\\"\", \"n\": [%d ]}", i ? ',' : '[',
                         i % 37, "0123456789012345678901234567890123456", i);
        dt_buffer_printf(&expected, "f:%d=%.*s\\\"{\"n\":[%d]}|", i + 1, i % 37,
                         "0123456789012345678901234567890123456", i);
    }
    dt_buffer_add_char(&file, ']');
    assert_int_equal(list(&options, file.data, file.size, &out, NULL), 0);
    assert_string_equal(out.data, expected.data);
    dt_buffer_release(&file);
    dt_buffer_release(&out);
    dt_buffer_release(&expected);
}

#define CUT(line)                                                                                  \
    "f: ends inside the value of JSON that begins in line " line                                   \
    ": the file was cut, or a quotation mark or a bracket is missing"

static void a_list_is_looked_for_in_objects_only(void **state)
{
    static const char none[] = "f: has no list 'r', which --field r[].t names";
    struct dt_buffer deep = DT_BUFFER_EMPTY, field = DT_BUFFER_EMPTY;
    (void)state;
    assert_field_refused("r[].t", "{\"r\" 1}", "f:1: ':' expected");
    assert_field_refused("r[].t", "{\"r\"", CUT("1"));
    assert_field_refused("r[].t", "{1:2}", none);
    assert_field_refused("r[].t", "{}", none);
    assert_field_refused("r[].t", "{", CUT("1"));
    assert_field_refused("r[].t", "{\"a\":1", CUT("1"));
    assert_field_refused("r[].t", "{\"a\":1]", none);
    assert_field_refused("r[].t", "{\"a\":[}",
                         "f:1: a bracket closes one of the other kind, or none");
    assert_field_refused("r[].t", "{\"r\":1}", none);
    assert_field_refused("r[].t", "{\"r", CUT("1"));
    assert_field_refused("r.s[].t", "{\"r\":5}",
                         "f: has no list 'r.s', which --field r.s[].t names");
    static const char spaced[] = "{\t\"s\"\r:\"x\" , \"r\":[ {\"t\":\"a\"}\t,\r\n{\"t\":\"b\"}] }";
    assert_reads(DT_DOCUMENT_FORMAT_JSON, "r[].t", spaced, sizeof spaced - 1, "f:1=a|f:2=b|");
    for (int i = 0; i < 2000; i++) {
        dt_buffer_add_string(&field, i ? ".a" : "a");
        dt_buffer_add_string(&deep, "{\"a\":");
    }
    dt_buffer_add_string(&field, "[].t");
    assert_field_refused(field.data, deep.data, "f:1: nesting too deep");
    dt_buffer_clear(&deep);
    for (int i = 0; i < 2000; i++)
        dt_buffer_add_char(&deep, '[');
    assert_field_refused("text", deep.data, "f:1: nesting too deep");
    dt_buffer_release(&deep);
    dt_buffer_release(&field);
}

static void values_are_checked_where_they_are_read(void **state)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSON};
    static const char bad[] = "[\"a\\x\"]";
    (void)state;
    assert_field_refused(NULL, "[{\"text\":\"a\"}", CUT("1"));
    assert_int_equal(list(&options, bad, sizeof bad - 1, &out, NULL), DT_EFORMAT);
    assert_int_equal(strncmp(err.text, "f:1: ", 5), 0);
    READS(NULL, "[ {\t\"text\" :\r\"a\" , \"n\" : 1 } ]", "f:1=a{\"n\":1}|");
    dt_buffer_release(&out);
}

static void files_that_break_off_are_refused(void **state)
{
    static const char list_of[] =
        "{\"a\":[1,{}],\"r\" : [ {\"t\" : \"a\\n\", \"n\":12} , {\"t\":\"b\"} ] , \"z\":1 } ";
    static const char plain[] = " [ {\"text\" : \"a\\n\", \"n\":12} , \"s\" ] ";
    (void)state;
    assert_cuts_refused(DT_DOCUMENT_FORMAT_JSON, "r[].t", list_of, sizeof list_of - 1);
    static const char inner[] = "{\"r\":{\"s\":[{\"t\":\"a\"}]}}";
    assert_cuts_refused(DT_DOCUMENT_FORMAT_JSON, "r.s[].t", inner, sizeof inner - 1);
    assert_cuts_refused(DT_DOCUMENT_FORMAT_JSON, NULL, plain, sizeof plain - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_arrays_are_documents),
        cmocka_unit_test(a_list_in_an_object_is_named_by_the_field),
        cmocka_unit_test(a_zero_byte_is_an_error),
        cmocka_unit_test(errors_between_elements_end_the_file),
        cmocka_unit_test(bad_elements_follow_the_policy),
        cmocka_unit_test(elements_may_lie_anywhere),
        cmocka_unit_test(a_list_is_looked_for_in_objects_only),
        cmocka_unit_test(values_are_checked_where_they_are_read),
        cmocka_unit_test(files_that_break_off_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
