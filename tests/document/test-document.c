/* SPDX-License-Identifier: MIT */
#include "listed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "document/document.h"
#include "document/reader.h"
#include "math/rng.h"

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
        assert_int_equal(list_files(paths, 1, &options, &lines, NULL), 0);
        options.format = DT_DOCUMENT_FORMAT_SPLIT;
        assert_int_equal(list_files(paths, 1, &options, &split, NULL), 0);
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
            int rc = list_files(paths, 1, &options, &out, NULL);
            if (rc != (more ? DT_EFORMAT : 0))
                fail_msg("case %zu, %d more: %s", i, more, rc < 0 ? err.text : "taken");
            if (more)
                assert_non_null(
                    strstr(err.text, " has more than 20 bytes; --from (of dt-clean, too) can"));
        }
        options.most = 21;
        assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&out);
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
    assert_int_equal(list_files(paths, 3, &options, &out, NULL), 0);
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
    assert_int_equal(list_files(paths, 2, &options, &out, NULL), DT_EIO);
    assert_int_equal(out.size, 0);
    options.format = DT_DOCUMENT_FORMAT_SEPARATOR;
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EINVALID);
    options.separator = "two\nlines";
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EINVALID);
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
                        "lines:17: byte 43: the JSON object ends too early");
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

/* While a pipe waits for more, with threads that could read ahead. */
static void documents_that_are_there_come_first(void **state)
{
    char path[32], *const paths[] = {path};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_LINES, .threads = 3};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int ends[2], there = 50000; /* documents; more bytes than a file is recognized by */
    (void)state;
    for (int i = 0; i < there; i++)
        dt_buffer_add_string(&text, "x\n");
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) >= (int)text.size);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(write(ends[1], text.data, text.size), text.size);
    assert_int_equal(dt_documents_open(&docs, paths, 1, &options, &err), 0);
    for (int i = 0; i < there; i++)
        assert_int_equal(dt_documents_next(docs, &doc, &err), 1);
    close(ends[1]);
    assert_int_equal(dt_documents_next(docs, &doc, &err), 0);
    close(ends[0]);
    dt_document_release(&doc);
    dt_buffer_release(&text);
    dt_documents_close(docs);
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
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
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
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EFORMAT);
    assert_string_equal(err.text, "f:3: no '='");
    options.bad_lines = (struct dt_bad_line_policy){.skip = true, .most = 1};
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), 0);
    assert_string_equal(out.data, "a=b|f:2=c|");
    write_bytes("f", "a=bcde\n", 7);
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EFORMAT);
    assert_non_null(strstr(err.text, "f: document 1 has more than 3 bytes"));
    options.field = "x";
    assert_int_equal(list_files(paths, 1, &options, &out, NULL), DT_EFORMAT);
    assert_string_equal(err.text, "f: has no fields, so --field 'x' cannot be read");
    dt_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_above_adds_a_format),
        cmocka_unit_test(lines_of_many_blocks_come_in_order),
        cmocka_unit_test(a_reader_can_be_closed_before_the_end),
        cmocka_unit_test(documents_that_are_there_come_first),
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
        cmocka_unit_test(files_follow_each_other_and_number_anew),
        cmocka_unit_test(what_cannot_be_read_is_said_before_the_work),
        cmocka_unit_test(the_position_counts_all_files),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
