/* SPDX-License-Identifier: MIT */
/* Rows of documents, and documents in random order. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "math/rng.h"
#include "shard/rows.h"
#include "shard/shuffle.h"

#define DOCUMENTS 3000
#define VOCAB     1000
#define PADDING   3

static const char path[] = "rows.dts";
static uint64_t lengths[DOCUMENTS];

/* Document i holds i % 900 and then ids that follow from its length; half are short. */
static void fill(uint32_t *ids, uint64_t i)
{
    for (uint64_t k = 0; k < lengths[i]; k++)
        ids[k] = (uint32_t)((i + 7 * k) % 900);
}

static void set_lengths(uint64_t most)
{
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        lengths[i] = dt_random(9, i, 0).word[0] % (i % 2 ? most : most / 10 + 1);
}

static struct dt_shard_info write_rows(uint32_t row, bool pack)
{
    struct dt_error err;
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info totals;
    struct dt_shard_info info = {
        .vocab_size = VOCAB, .eot = 0, .row = row, .padding_id = PADDING, .masked = true};
    struct dt_rows *rows = dt_rows_new(row, PADDING, pack);
    uint32_t *ids = malloc(sizeof *ids * 10000);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 1, &err), 0);
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        struct dt_shard_document d = {i, lengths[i], 3 * lengths[i]};
        fill(ids, i);
        assert_int_equal(dt_rows_add(rows, w, ids, &d, &err), 0);
        assert_true(dt_rows_open(rows) <= (uint64_t)DT_OPEN_ROWS * row);
    }
    assert_int_equal(dt_rows_flush(rows, w, &err), 0);
    assert_int_equal(dt_rows_open(rows), 0);
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_totals(w, &totals);
    dt_shard_writer_free(w);
    dt_rows_free(rows);
    free(ids);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    return totals;
}

/* Every document is there with all its ids, cut only where it is longer than a row. */
static void expect_documents(uint32_t row)
{
    struct dt_error err;
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids piece = DT_IDS_EMPTY;
    uint64_t *seen = calloc(DOCUMENTS, sizeof *seen), *bytes = calloc(DOCUMENTS, sizeof *bytes);
    uint32_t *ids = malloc(sizeof *ids * 10000);
    assert_int_equal(dt_shard_reader_open(&r, path, &err), 0);
    while (dt_shard_read(r, &piece, &d, &err) > 0) {
        assert_true(d.hash < DOCUMENTS);
        fill(ids, d.hash);
        assert_true(seen[d.hash] + d.tokens <= lengths[d.hash]);
        assert_memory_equal(piece.data, ids + seen[d.hash], d.tokens * 4);
        if (lengths[d.hash] <= row)
            assert_int_equal(d.tokens, lengths[d.hash]);
        seen[d.hash] += d.tokens;
        bytes[d.hash] += d.bytes;
    }
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        assert_int_equal(seen[i], lengths[i]);
        assert_int_equal(bytes[i], 3 * lengths[i]);
    }
    dt_shard_reader_close(r);
    dt_ids_release(&piece);
    free(ids);
    free(seen);
    free(bytes);
}

/* What is a target in each row: all ids but its first and the padding. */
static void expect_mask(const struct dt_shard_info *totals)
{
    struct dt_error err;
    struct dt_shard *s;
    uint32_t row = totals->row, *ids = malloc(sizeof *ids * row);
    uint64_t padding = 0, targets = 0, rows = totals->tokens / row;
    assert_int_equal(totals->tokens % row, 0);
    assert_int_equal(dt_shard_open(&s, path, &err), 0);
    for (uint64_t i = 0; i < rows; i++) {
        assert_int_equal(dt_shard_targets(s, i * row, row, ids, &err), 0);
        assert_true(ids[0] & DT_NO_LOSS);
        uint32_t n = row;
        while (n > 0 && ids[n - 1] == (PADDING | DT_NO_LOSS))
            n--;
        for (uint32_t k = 1; k < n; k++)
            assert_false(ids[k] & DT_NO_LOSS);
        padding += row - n;
        targets += n - 1;
    }
    assert_int_equal(padding, totals->padding);
    assert_int_equal(targets, totals->targets);
    dt_shard_close(s);
    free(ids);
}

static void rows_hold_every_document_and_target(void **state)
{
    (void)state;
    const uint32_t rows[] = {2, 3, 65, 129, 4000};
    for (size_t i = 0; i < 5; i++) {
        set_lengths(i < 2 ? 60 : 600);
        for (int pack = 0; pack < 2; pack++) {
            struct dt_shard_info totals = write_rows(rows[i], pack);
            expect_documents(rows[i]);
            expect_mask(&totals);
        }
    }
}

static void best_fit_leaves_little_padding(void **state)
{
    (void)state;
    set_lengths(600);
    struct dt_shard_info alone = write_rows(513, false), packed = write_rows(513, true);
    assert_true(alone.padding > alone.tokens / 2);
    assert_true(packed.padding < packed.tokens / 50);
}

static void rows_needed_are_those_written(void **state)
{
    (void)state;
    for (uint32_t row = 2; row < 9; row++) {
        uint64_t needed = 0;
        set_lengths(40);
        for (uint64_t i = 0; i < DOCUMENTS; i++)
            needed += lengths[i] ? dt_rows_needed(row, lengths[i]) : 0;
        assert_int_equal(write_rows(row, false).tokens, needed);
    }
}

/* The documents in the order of a shuffler, by their numbers. */
static void shuffle(uint64_t seed, size_t memory, uint64_t *order)
{
    struct dt_error err;
    struct dt_shuffler *s;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    uint32_t *expected = malloc(sizeof *expected * 10000);
    assert_int_equal(dt_shuffler_new(&s, ".", seed, memory, &err), 0);
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        d = (struct dt_shard_document){i, lengths[i], 2 * i};
        fill(expected, i);
        assert_int_equal(dt_shuffler_add(s, expected, &d, &err), 0);
    }
    for (uint64_t n = 0; n < DOCUMENTS; n++) {
        assert_int_equal(dt_shuffler_next(s, &ids, &d, &err), 1);
        order[n] = d.hash;
        fill(expected, d.hash);
        assert_int_equal(d.bytes, 2 * d.hash);
        assert_int_equal(ids.count, lengths[d.hash]);
        assert_memory_equal(ids.data, expected, ids.count * 4);
    }
    assert_int_equal(dt_shuffler_next(s, &ids, &d, &err), 0);
    dt_shuffler_free(s);
    dt_ids_release(&ids);
    free(expected);
}

static void shuffling_moves_every_document_whatever_the_memory(void **state)
{
    (void)state;
    static uint64_t whole[DOCUMENTS], small[DOCUMENTS], tiny[DOCUMENTS], other[DOCUMENTS];
    uint64_t sum = 0, stayed = 0;
    set_lengths(300);
    shuffle(1, 1 << 30, whole);
    shuffle(1, 1 << 16, small);
    shuffle(1, 1000, tiny); /* more files than are merged at a time */
    shuffle(2, 1 << 30, other);
    assert_memory_equal(whole, small, sizeof whole);
    assert_memory_equal(whole, tiny, sizeof whole);
    assert_memory_not_equal(whole, other, sizeof whole);
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        sum += whole[i];
        stayed += whole[i] == i;
    }
    assert_int_equal(sum, (uint64_t)DOCUMENTS * (DOCUMENTS - 1) / 2);
    assert_true(stayed < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_every_document_and_target),
        cmocka_unit_test(best_fit_leaves_little_padding),
        cmocka_unit_test(rows_needed_are_those_written),
        cmocka_unit_test(shuffling_moves_every_document_whatever_the_memory),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
