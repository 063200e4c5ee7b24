/* SPDX-License-Identifier: MIT */
/* Files of format version 1, kept as they were when it was new: each later
 * version reads them, and version 1 is written so. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "shard/dataset.h"

#define STORED     "tests/shard/version-1.dts"
#define COMPRESSED "tests/shard/version-1-compressed.dts"

static const uint32_t hi[] = {72, 105, 255}, nothing[] = {255};

static void expect_info(const struct dt_shard_info *info)
{
    assert_int_equal(info->token_bytes, 2);
    assert_int_equal(info->vocab_size, 256);
    assert_int_equal(info->eot, 255);
    assert_int_equal(info->tokenizer, 0x0123456789abcdef);
    assert_string_equal(info->provenance, "dt-test 1\n");
    assert_int_equal(info->tokens, 4);
    assert_int_equal(info->documents, 2);
    assert_int_equal(info->text_bytes, 2);
}

static void expect_document(const struct dt_shard_document *d, const char *text, uint64_t tokens)
{
    assert_int_equal(d->hash, dt_hash(text, strlen(text)));
    assert_int_equal(d->bytes, strlen(text));
    assert_int_equal(d->tokens, tokens);
}

static void read_in_order(const char *path)
{
    struct dt_error err = {0};
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    assert_int_equal(dt_shard_reader_open(&r, path, &err), 0);
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 1);
    expect_document(&d, "Hi", 3);
    assert_memory_equal(ids.data, hi, sizeof hi);
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 1);
    expect_document(&d, "", 1);
    assert_memory_equal(ids.data, nothing, sizeof nothing);
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 0);
    expect_info(dt_shard_reader_info(r));
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
}

static void read_anywhere(const char *path)
{
    struct dt_error err = {0};
    struct dt_shard *s;
    struct dt_shard_document d;
    uint64_t first;
    uint32_t ids[2];
    assert_int_equal(dt_shard_open(&s, path, &err), 0);
    expect_info(dt_shard_get_info(s));
    assert_int_equal(dt_shard_get_document(s, 1, &first, &d, &err), 0);
    expect_document(&d, "", 1);
    assert_int_equal(first, 3);
    assert_int_equal(dt_shard_tokens(s, 1, 2, ids, &err), 0);
    assert_memory_equal(ids, hi + 1, sizeof ids);
    dt_shard_close(s);
}

static void version_1_is_read(void **state)
{
    (void)state;
    read_in_order(STORED);
    read_in_order(COMPRESSED);
    read_anywhere(STORED);
    read_anywhere(COMPRESSED);
}

static void version_1_is_written(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_output out;
    struct dt_shard_writer *w;
    char path[] = "/tmp/dt-test-golden-XXXXXX", *made, *golden;
    size_t n, m;
    const struct dt_shard_info info = {.vocab_size = 256,
                                       .eot = 255,
                                       .tokenizer = 0x0123456789abcdef,
                                       .provenance = "dt-test 1\n"};
    const struct dt_shard_document a = {dt_hash("Hi", 2), 3, 2}, b = {dt_hash("", 0), 1, 0};
    assert_true(mkstemp(path) >= 0);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 0, &err), 0);
    assert_int_equal(dt_shard_write(w, hi, &a, &err), 0);
    assert_int_equal(dt_shard_write(w, nothing, &b, &err), 0);
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &made, &n, &err), 0);
    assert_int_equal(dt_file_read(STORED, 1 << 20, &golden, &m, &err), 0);
    assert_int_equal(n, m);
    assert_memory_equal(made, golden, n);
    assert_int_equal(remove(path), 0);
    free(made);
    free(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1_is_read),
        cmocka_unit_test(version_1_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
