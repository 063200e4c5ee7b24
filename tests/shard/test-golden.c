/* SPDX-License-Identifier: MIT */
/* Files of each version of the format, kept as they were when it was new: later
 * versions read them, and what needs no more is written so. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "hash/hash.h"
#include "shard/dataset.h"
#include "shard/rows.h"

#define NONE DT_NO_LOSS

struct golden {
    const char *file;
    bool stored; /* no compressor had a hand in it, so it is written to the byte */
    uint32_t vocab_size, row;
    bool masked;
    struct {
        const char *text; /* the hash and bytes of each document */
        uint32_t count, ids[6];
    } documents[3];
    /* As dt_shard_read gives them, and the ids as they lie. */
    struct {
        uint32_t count, ids[9];
    } read[4], plain;
    uint64_t padding, targets;
};

static const struct golden goldens[] = {
    {"tests/shard/version-1.dts",
     true,
     256,
     0,
     false,
     {{"Hi", 3, {72, 105, 255}}, {"", 1, {255}}},
     {{3, {72, 105, 255}}, {1, {255}}},
     {4, {72, 105, 255, 255}},
     0,
     4},
    {"tests/shard/version-1-compressed.dts",
     false,
     256,
     0,
     false,
     {{"Hi", 3, {72, 105, 255}}, {"", 1, {255}}},
     {{3, {72, 105, 255}}, {1, {255}}},
     {4, {72, 105, 255, 255}},
     0,
     4},
    {"tests/shard/version-1-wide.dts",
     true,
     70000,
     0,
     false,
     {{"Hi", 3, {72, 69999, 255}}, {"", 1, {255}}},
     {{3, {72, 69999, 255}}, {1, {255}}},
     {4, {72, 69999, 255, 255}},
     0,
     4},
    {"tests/shard/version-2-masked.dts",
     true,
     256,
     0,
     true,
     {{"Hi", 3, {72 | NONE, 105, 255}}, {"", 1, {255 | NONE}}},
     {{3, {72 | NONE, 105, 255}}, {1, {255 | NONE}}},
     {4, {72, 105, 255, 255}},
     0,
     2},
    {"tests/shard/version-2-padded.dts",
     true,
     256,
     3,
     true,
     {{"Hey", 4, {72, 101, 121, 255}}, {"", 1, {255}}},
     {{3, {72 | NONE, 101, 121}}, {1, {255}}, {1, {255 | NONE}}},
     {9, {72, 101, 121, 121, 255, 7, 255, 7, 7}},
     3,
     3},
    {"tests/shard/version-2-padded-wide.dts",
     true,
     70000,
     3,
     true,
     {{"Hi", 3, {72, 69999 | NONE, 255}}, {"", 1, {255}}},
     {{3, {72 | NONE, 69999 | NONE, 255}}, {1, {255 | NONE}}},
     {6, {72, 69999, 255, 255, 7, 7}},
     2,
     1},
};
#define GOLDENS (sizeof goldens / sizeof *goldens)

static struct dt_shard_info info_of(const struct golden *g)
{
    return (struct dt_shard_info){.vocab_size = g->vocab_size,
                                  .eot = 255,
                                  .tokenizer = 0x0123456789abcdef,
                                  .row = g->row,
                                  .padding_id = g->row ? 7 : 0,
                                  .masked = g->masked,
                                  .provenance = "dt-test 1\n"};
}

static void expect_info(const struct golden *g, const struct dt_shard_info *info)
{
    struct dt_shard_info want = info_of(g);
    assert_int_equal(info->token_bytes, g->vocab_size > 65536 ? 4 : 2);
    assert_int_equal(info->vocab_size, want.vocab_size);
    assert_int_equal(info->eot, want.eot);
    assert_int_equal(info->tokenizer, want.tokenizer);
    assert_int_equal(info->row, want.row);
    assert_int_equal(info->padding_id, want.padding_id);
    assert_int_equal(info->masked, want.masked);
    assert_string_equal(info->provenance, want.provenance);
    assert_int_equal(info->padding, g->padding);
    assert_int_equal(info->targets, g->targets);
}

static void read_in_order(const struct golden *g)
{
    struct dt_error err = {0};
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    uint64_t bytes = 0;
    assert_int_equal(dt_shard_reader_open(&r, g->file, &err), 0);
    dt_shard_reader_mark(r);
    for (int i = 0; i < 4 && g->read[i].count > 0; i++) {
        assert_int_equal(dt_shard_read(r, &ids, &d, &err), 1);
        assert_int_equal(d.tokens, g->read[i].count);
        assert_int_equal(ids.count, g->read[i].count);
        assert_memory_equal(ids.data, g->read[i].ids, ids.count * 4);
        bytes += d.bytes;
    }
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 0);
    expect_info(g, dt_shard_reader_info(r));
    assert_int_equal(bytes, strlen(g->documents[0].text));
    assert_int_equal(dt_shard_reader_info(r)->text_bytes, bytes);
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
}

static void read_anywhere(const struct golden *g)
{
    struct dt_error err = {0};
    struct dt_shard *s;
    struct dt_shard_document d;
    uint64_t first;
    uint32_t ids[9];
    assert_int_equal(dt_shard_open(&s, g->file, &err), 0);
    expect_info(g, dt_shard_get_info(s));
    if (g->row) {
        assert_int_equal(dt_shard_get_document(s, 0, &first, &d, &err), DT_EINVALID);
    } else {
        assert_int_equal(dt_shard_get_document(s, 0, &first, &d, &err), 0);
        assert_int_equal(d.hash, dt_hash(g->documents[0].text, strlen(g->documents[0].text)));
        assert_int_equal(dt_shard_get_document(s, 1, &first, &d, &err), 0);
        assert_int_equal(first, g->documents[0].count);
    }
    for (uint32_t i = 0; i < g->plain.count; i++) {
        assert_int_equal(dt_shard_tokens(s, i, 1, ids, &err), 0);
        assert_int_equal(ids[0], g->plain.ids[i]);
    }
    uint64_t tokens = dt_shard_get_info(s)->tokens, targets = 0;
    assert_int_equal(dt_shard_targets(s, 0, tokens, ids, &err), 0);
    for (uint64_t i = 0; i < tokens; i++)
        targets += !(ids[i] & DT_NO_LOSS);
    assert_int_equal(targets, g->targets);
    dt_shard_close(s);
}

static void every_version_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDENS; i++) {
        read_in_order(&goldens[i]);
        read_anywhere(&goldens[i]);
    }
}

static void write_golden(const struct golden *g, const char *path)
{
    struct dt_error err = {0};
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info info = info_of(g);
    struct dt_rows *rows = g->row ? dt_rows_new(g->row, 7, false) : NULL;
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, g->stored ? 0 : 3, &err), 0);
    for (int i = 0; i < 3 && g->documents[i].text; i++) {
        size_t n = strlen(g->documents[i].text);
        struct dt_shard_document d = {dt_hash(g->documents[i].text, n), g->documents[i].count, n};
        if (rows)
            assert_int_equal(dt_rows_add(rows, w, g->documents[i].ids, &d, &err), 0);
        else
            assert_int_equal(dt_shard_write(w, g->documents[i].ids, &d, &err), 0);
    }
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    dt_rows_free(rows);
    assert_int_equal(dt_output_commit(&out, &err), 0);
}

static void every_version_is_written(void **state)
{
    (void)state;
    struct dt_error err = {0};
    char *path = dt_path_join(scratch, "made.dts"), *made, *golden;
    size_t n, m;
    for (size_t i = 0; i < GOLDENS; i++) {
        if (!goldens[i].stored)
            continue;
        write_golden(&goldens[i], path);
        assert_int_equal(dt_file_read(path, 1 << 20, &made, &n, &err), 0);
        assert_int_equal(dt_file_read(goldens[i].file, 1 << 20, &golden, &m, &err), 0);
        assert_int_equal(n, m);
        assert_memory_equal(made, golden, n);
        free(made);
        free(golden);
    }
    free(path);
}

/* test-golden DIRECTORY: rewrites the files there, for a new version. */
int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < GOLDENS; i++) {
        char *path = dt_path_join(argv[1], dt_path_base(goldens[i].file));
        write_golden(&goldens[i], path);
        free(path);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_read),
        cmocka_unit_test_setup_teardown(every_version_is_written, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
