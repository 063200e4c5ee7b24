/* SPDX-License-Identifier: MIT */
/* What the sequential reader of token streams refuses, and the records that it takes from them. */
#include "scratch.h"

#include <string.h>

#include "base/buffer.h"
#include "io/lineage.h"
#include "shard/rows.h"
#include "shard/shard.h"

static struct dt_error err;
static const struct dt_shard_info plain = {
    .vocab_size = 300, .eot = 299, .tokenizer = 5, .provenance = "dt-test\n"};

/* The bytes of a stream of two documents. */
static void add_stream(struct dt_buffer *to, const struct dt_shard_info *info,
                       struct dt_lineage *lineage)
{
    static const uint32_t ids[] = {1, 2, 3, 299};
    struct dt_output out;
    struct dt_shard_writer *w;
    char *data;
    size_t size;
    struct dt_rows *rows = info->row ? dt_rows_new(info->row, info->padding_id, true) : NULL;
    assert_int_equal(dt_output_open(&out, "one.dts", &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, info, 0, &err), 0);
    for (uint64_t i = 0; i < 2; i++) {
        const struct dt_shard_document d = {i, 4, 8};
        assert_int_equal(
            rows ? dt_rows_add(rows, w, ids, &d, &err) : dt_shard_write(w, ids, &d, &err), 0);
    }
    if (rows)
        assert_int_equal(dt_rows_flush(rows, w, &err), 0);
    dt_rows_free(rows);
    assert_int_equal(dt_shard_writer_finish_with(w, lineage, &err), 0);
    dt_shard_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_file_read("one.dts", 1 << 20, &data, &size, &err), 0);
    dt_buffer_append(to, data, size);
    free(data);
}

/* Reads all of a file; the number of documents, or an error. */
static int read_all(const char *path, struct dt_lineage *lineage)
{
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    int count = 0, rc = dt_shard_reader_open_for(&r, path, lineage, &err);
    if (rc < 0)
        return rc;
    for (; (rc = dt_shard_read(r, &ids, &d, &err)) > 0; count++)
        assert_int_equal(ids.count, d.tokens);
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
    return rc < 0 ? rc : count;
}

static int read_bytes(const char *data, size_t size)
{
    write_bytes("all.dts", data, size);
    return read_all("all.dts", NULL);
}

static void streams_that_follow_are_of_one_kind(void **state)
{
    static const char tokenizer[] = "was made with another tokenizer than the stream before it";
    static const char layout[] = "has another layout than the stream before it";
    struct dt_shard_info masked = plain, rows = plain;
    (void)state;
    masked.masked = true;
    rows.row = 5;
    rows.masked = true;
    struct dt_shard_info others[6] = {plain, plain, plain, masked, rows, rows};
    others[0].vocab_size = 301;
    others[1].eot = 298;
    others[2].tokenizer = 6;
    others[5].padding_id = 7;
    const struct {
        struct dt_shard_info first, second;
        const char *message;
    } pairs[] = {{plain, plain, NULL},          {rows, rows, NULL},
                 {plain, others[0], tokenizer}, {plain, others[1], tokenizer},
                 {plain, others[2], tokenizer}, {plain, masked, layout},
                 {masked, rows, layout},        {rows, others[5], layout}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct dt_buffer both = DT_BUFFER_EMPTY;
        add_stream(&both, &pairs[i].first, NULL);
        add_stream(&both, &pairs[i].second, NULL);
        int rc = read_bytes(both.data, both.size);
        if (pairs[i].message ? rc >= 0 || strstr(err.text, pairs[i].message) == NULL : rc <= 0)
            fail_msg("pair %zu: %d '%s'", i, rc, rc < 0 ? err.text : "");
        dt_buffer_release(&both);
    }
}

static void other_files_are_named(void **state)
{
    static const struct {
        const char *data;
        size_t size;
        const char *message;
    } files[] = {
        {"", 0, "all.dts: is empty, not a .dts file"},
        {"\x50\x2a", 2, "all.dts: frame 0 at byte 0: unexpected end"},
        {"\x50\x2b", 2, "all.dts: is not a .dts file"},
        {"text", 4, "all.dts: is not a .dts file"},
        {"{\\rtf1 x}", 9, "all.dts: is not a .dts file"}, /* or text that begins so */
        {"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10, "all.dts: is "},
        {"----\1\0\0\0dtsH", 12, "all.dts: frame 0 at byte 0: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(read_bytes(files[i].data, files[i].size), DT_EFORMAT);
        if (strncmp(err.text, files[i].message, strlen(files[i].message)) != 0)
            fail_msg("file %zu: '%s'", i, err.text);
    }
    assert_true(read_all("absent.dts", NULL) < 0);
    dt_shard_reader_close(NULL);
}

static void streams_are_whole_and_in_order(void **state)
{
    struct dt_buffer one = DT_BUFFER_EMPTY, other = DT_BUFFER_EMPTY;
    (void)state;
    add_stream(&one, &plain, NULL);
    for (size_t n = 0; n < one.size; n++)
        assert_int_equal(read_bytes(one.data, n), DT_EFORMAT);
    uint32_t head;
    memcpy(&head, one.data + 4, sizeof head);
    dt_buffer_append(&other, one.data, head + 8); /* a header, and another */
    dt_buffer_append(&other, one.data, one.size);
    assert_int_equal(read_bytes(other.data, other.size), DT_EFORMAT);
    dt_buffer_clear(&other);
    dt_buffer_append(&other, one.data, one.size); /* no header after the end */
    dt_buffer_append(&other, one.data + head + 8, one.size - head - 8);
    assert_int_equal(read_bytes(other.data, other.size), DT_EFORMAT);
    assert_non_null(strstr(err.text, "is not a dt token stream or is damaged"));
    for (size_t n = 0; n < one.size; n++) { /* each byte counts */
        one.data[n] ^= 1;
        assert_int_equal(read_bytes(one.data, one.size), DT_EFORMAT);
        one.data[n] ^= 1;
    }
    dt_buffer_release(&one);
    dt_buffer_release(&other);
}

static void frames_are_read_whole(void **state)
{
    struct dt_buffer one = DT_BUFFER_EMPTY;
    struct dt_shard_reader *r;
    struct dt_ids ids = DT_IDS_EMPTY;
    (void)state;
    add_stream(&one, &plain, NULL);
    write_bytes("all.dts", one.data, one.size);
    assert_int_equal(dt_shard_reader_open(&r, "all.dts", &err), 0);
    assert_int_equal(dt_shard_read_frame(r, &ids, &err), 1);
    assert_int_equal(ids.count, 8);
    assert_int_equal(dt_shard_read_frame(r, &ids, &err), 0);
    dt_shard_reader_close(r);
    write_bytes("all.dts", one.data, one.size - 1);
    assert_int_equal(dt_shard_reader_open(&r, "all.dts", &err), 0);
    assert_int_equal(dt_shard_read_frame(r, &ids, &err), 1);
    assert_int_equal(dt_shard_read_frame(r, &ids, &err), DT_EFORMAT);
    dt_shard_reader_close(r);
    dt_ids_release(&ids);
    dt_buffer_release(&one);
}

/* Records of where the data come from, of a pipe in the stream. */
static void records_pass_through(void **state)
{
    struct dt_buffer one = DT_BUFFER_EMPTY;
    const int own = dup(0);
    (void)state;
    for (int with = 0; with < 2; with++)
        for (int pipe = 0; pipe < 2; pipe++) {
            struct dt_lineage *from = dt_lineage_new(), *to = dt_lineage_new();
            dt_buffer_clear(&one);
            add_stream(&one, &plain, with ? from : NULL);
            write_bytes("all.dts", one.data, one.size);
            if (pipe)
                assert_non_null(freopen("all.dts", "rb", stdin));
            assert_int_equal(read_all(pipe ? "-" : "all.dts", to), 2);
            dt_lineage_free(from);
            dt_lineage_free(to);
        }
    for (size_t n = 0; n < one.size; n++) { /* also with records each byte counts */
        one.data[n] ^= 1;
        assert_int_equal(read_bytes(one.data, one.size), DT_EFORMAT);
        one.data[n] ^= 1;
    }
    dup2(own, 0);
    close(own);
    dt_buffer_release(&one);
}

static void another_tokenizer_is_refused_by_its_fingerprint(void **state)
{
    (void)state;
    assert_int_equal(dt_shard_check_tokenizer(&plain, "one.dts", 5, "t.json", &err), 0);
    assert_int_equal(dt_shard_check_tokenizer(&plain, "one.dts", 0xab, "t.json", &err),
                     DT_EINVALID);
    assert_string_equal(err.text, "one.dts: was made with another tokenizer (0000000000000005, but "
                                  "'t.json' is 00000000000000ab): use the one that made it, or "
                                  "tokenize its text again");
    assert_int_equal(dt_shard_check_tokenizer(&plain, "one.dts", 6, NULL, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "but that of the input is 0000000000000006)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_follow_are_of_one_kind),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(streams_are_whole_and_in_order),
        cmocka_unit_test(frames_are_read_whole),
        cmocka_unit_test(records_pass_through),
        cmocka_unit_test(another_tokenizer_is_refused_by_its_fingerprint),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
