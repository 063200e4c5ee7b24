/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "document/stream.h"

#define DOCUMENTS 5

static struct dt_error err;

/* Writes count documents into a pipe; with an end record, unless the writer fails. */
static void write_stream(int count, bool fails, struct dt_buffer *stream)
{
    static const char *const texts[] = {"one\n", "", "\"three\"", "four \xc3\xa9", "five"};
    int ends[2];
    char path[32];
    struct dt_output out;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    struct dt_document_writer w = dt_document_writer_to(&out, DT_DOCUMENT_OUTPUT_JSONL);
    assert_true(w.marked);
    for (int i = 0; i < count; i++) {
        struct dt_document doc = DT_DOCUMENT_EMPTY;
        dt_buffer_printf(&doc.id, "id%d", i);
        dt_buffer_add_string(&doc.text, texts[i]);
        dt_buffer_add_string(&doc.meta, i % 2 ? "{\"m\": 1}" : "");
        assert_int_equal(dt_document_writer_add(&w, &doc, &line, &err), 0);
        dt_document_release(&doc);
    }
    if (!fails)
        assert_int_equal(dt_document_writer_end(&w, &err), 0);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(close(ends[1]), 0);
    dt_buffer_clear(stream);
    dt_buffer_reserve(stream, 4096);
    ssize_t size = read(ends[0], stream->data, 4096);
    assert_in_range(size, 0, 4095);
    stream->size = (size_t)size;
    stream->data[size] = '\0';
    assert_int_equal(close(ends[0]), 0);
    dt_buffer_release(&line);
}

/* Reads a file of these bytes: the number of documents, or an error. */
static int count_documents(const char *data, size_t size, bool partial)
{
    char *const paths[] = {"f"};
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_JSONL,
                                                 .partial = partial};
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    int rc, count = 0;
    assert_int_equal(dt_file_write("f", data, size, &err), 0);
    assert_int_equal(dt_documents_open(&docs, paths, 1, &options, &err), 0);
    while ((rc = dt_documents_next(docs, &doc, &err)) > 0) {
        assert_null(doc.meta.data && strstr(doc.meta.data, DT_STREAM_MEMBER) ? doc.meta.data
                                                                             : NULL);
        count++;
    }
    if (rc == 0 && partial && count < DOCUMENTS && count > 0)
        assert_non_null(dt_documents_losses(docs).first_partial);
    dt_document_release(&doc);
    dt_documents_close(docs);
    return rc < 0 ? rc : count;
}

static void a_stream_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct dt_buffer stream = DT_BUFFER_EMPTY;
    for (int count = 0; count <= DOCUMENTS; count++) {
        write_stream(count, false, &stream);
        assert_int_equal(count_documents(stream.data, stream.size, false), count);
    }
    write_stream(3, false, &stream);
    assert_string_equal(stream.data,
                        "{\"id\":\"id0\",\"text\":\"one\\n\",\"dt_stream\":\"begin\"}\n"
                        "{\"id\":\"id1\",\"text\":\"\",\"meta\":{\"m\": 1}}\n"
                        "{\"id\":\"id2\",\"text\":\"\\\"three\\\"\",\"dt_stream\":"
                        "{\"documents\":3,\"xxh3\":\"f24c1d853bdd4560\"}}\n");
    dt_buffer_release(&stream);
}

static void a_stream_that_is_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    struct dt_buffer stream = DT_BUFFER_EMPTY;
    write_stream(DOCUMENTS, false, &stream);
    for (size_t size = 1; size < stream.size - 1; size++)
        assert_int_equal(count_documents(stream.data, size, false), DT_EFORMAT);
    assert_int_equal(count_documents(stream.data, stream.size - 1, false), DOCUMENTS);
    size_t first = (size_t)(strchr(stream.data, '\n') - stream.data);
    for (size_t size = first; size < stream.size; size++)
        assert_in_range(count_documents(stream.data, size, true), 1, DOCUMENTS);
    dt_buffer_release(&stream);
}

static void a_writer_that_fails_leaves_a_stream_that_is_refused(void **state)
{
    (void)state;
    struct dt_buffer stream = DT_BUFFER_EMPTY;
    for (int count = 1; count <= DOCUMENTS; count++) {
        write_stream(count, true, &stream);
        assert_int_equal(count_documents(stream.data, stream.size, false), DT_EFORMAT);
    }
    dt_buffer_release(&stream);
}

/* The lines of a stream in another order: order[i] is the line at place i, -1 ends it. */
static int read_reordered(const struct dt_buffer *stream, const int *order)
{
    struct dt_buffer other = DT_BUFFER_EMPTY;
    for (int i = 0; order[i] >= 0; i++) {
        const char *line = stream->data;
        for (int k = 0; k < order[i]; k++)
            line = strchr(line, '\n') + 1;
        dt_buffer_append(&other, line, (size_t)(strchr(line, '\n') + 1 - line));
    }
    int rc = count_documents(other.data, other.size, false);
    dt_buffer_release(&other);
    return rc;
}

static void documents_that_are_lost_come_twice_or_change_places_are_noticed(void **state)
{
    (void)state;
    static const int orders[][8] = {
        {0, 1, 2, 4, -1},       {0, 4, -1},          {1, 2, 3, 4, -1},       {4, -1},
        {0, 1, 1, 2, 4, -1},    {0, 2, 1, 3, 4, -1}, {0, 1, 2, 3, 3, 4, -1}, {0, 0, 1, 2, 3, 4, -1},
        {0, 1, 2, 3, 4, 4, -1}, {0, 3, 2, 1, 4, -1},
    };
    struct dt_buffer stream = DT_BUFFER_EMPTY;
    write_stream(DOCUMENTS, false, &stream);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_int_equal(read_reordered(&stream, orders[i]), DT_EFORMAT);
    assert_int_equal(read_reordered(&stream, (const int[]){0, 1, 2, 3, 4, -1}), DOCUMENTS);
    dt_buffer_release(&stream);
}

static void what_is_no_mark_is_refused(void **state)
{
    (void)state;
    static const char *const values[] = {
        "1",
        "null",
        "\"end\"",
        "{}",
        "[]",
        "{\"documents\":1}",
        "{\"documents\":0,\"xxh3\":\"\"}",
        "{\"documents\":1,\"xxh3\":\"12\"}",
        "{\"documents\":\"1\",\"xxh3\":\"0123456789abcdef\"}",
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char line[128];
        int size = snprintf(line, sizeof line, "{\"text\":\"\",\"dt_stream\":%s}\n", values[i]);
        assert_int_equal(count_documents(line, (size_t)size, true), DT_EFORMAT);
        assert_non_null(strstr(err.text, "neither"));
    }
}

static void files_have_no_marks(void **state)
{
    (void)state;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, "plain", &err), 0);
    assert_false(dt_document_writer_to(&out, DT_DOCUMENT_OUTPUT_JSONL).marked);
    dt_output_abandon(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_read_as_it_was_written),
        cmocka_unit_test(a_stream_that_is_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_writer_that_fails_leaves_a_stream_that_is_refused),
        cmocka_unit_test(documents_that_are_lost_come_twice_or_change_places_are_noticed),
        cmocka_unit_test(what_is_no_mark_is_refused),
        cmocka_unit_test(files_have_no_marks),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
