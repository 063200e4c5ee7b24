/* SPDX-License-Identifier: MIT */
/* Files changed at random with all hashes put right again: nothing but the
 * checks of the contents stands between them and the reader's memory. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "math/rng.h"
#include "shard/reseal.h"
#include "shard/rows.h"

static const char path[] = "hostile.dts";

/* A small file of several frames: a long document, short and empty ones; as a list,
 * with a mask if row is 1, or in rows. */
static char *make_file(int level, uint32_t row, size_t *size)
{
    struct dt_error err;
    struct dt_output out;
    struct dt_shard_writer *w;
    char *data;
    static uint32_t ids[70000];
    const uint64_t lengths[] = {70000, 3, 0, 1, 60000, 9};
    const struct dt_shard_info info = {.vocab_size = 300,
                                       .eot = 299,
                                       .tokenizer = 5,
                                       .row = row > 1 ? row : 0,
                                       .masked = row > 0,
                                       .provenance = "dt-test\n"};
    struct dt_rows *rows = dt_rows_new(row, 0, true);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, level, &err), 0);
    for (uint64_t i = 0; i < 6; i++) {
        struct dt_shard_document d = {i, lengths[i], 2 * lengths[i]};
        if (row > 1)
            assert_int_equal(dt_rows_add(rows, w, ids, &d, &err), 0);
        else
            assert_int_equal(dt_shard_write(w, ids, &d, &err), 0);
    }
    assert_int_equal(dt_rows_flush(rows, w, &err), 0);
    dt_rows_free(rows);
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &data, size, &err), 0);
    return data;
}

static int read_in_order(void)
{
    struct dt_error err;
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc = dt_shard_reader_open(&r, path, &err);
    if (rc < 0)
        return rc;
    while ((rc = dt_shard_read(r, &ids, &d, &err)) > 0)
        assert_int_equal(ids.count, d.tokens);
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
    return rc;
}

static int read_anywhere(void)
{
    struct dt_error err;
    struct dt_shard *s;
    struct dt_shard_document d;
    static uint32_t ids[200000];
    uint64_t first;
    int rc = dt_shard_open(&s, path, &err);
    if (rc < 0)
        return rc;
    uint64_t tokens = dt_shard_get_info(s)->tokens;
    for (uint64_t i = 0; rc == 0 && i < 7; i++)
        if (dt_shard_get_document(s, i, &first, &d, &err) < 0)
            rc = err.code;
    for (uint64_t i = 0; i < tokens && i < 200000; i += 50000)
        if (dt_shard_targets(s, i, tokens - i < 20000 ? tokens - i : 20000, ids, &err) < 0)
            rc = err.code;
    dt_shard_close(s);
    return rc;
}

static void write_plain(const char *data, size_t size)
{
    FILE *f = fopen(path, "r+b"); /* in place: the size stays */
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void try_changes(int level, uint32_t row, int rounds)
{
    static const char edges[] = {0, 1, 2, 127, (char)128, (char)255};
    struct dt_rng rng;
    size_t size, starts[MOST_FRAMES] = {0};
    char *good = make_file(level, row, &size), *bad = malloc(size);
    size_t count = find_frames(good, size, starts);
    int accepted = 0;
    dt_rng_init(&rng, (uint64_t)level);
    for (int round = 0; round < rounds; round++) {
        memcpy(bad, good, size);
        for (uint32_t k = 1 + dt_rng_below(&rng, 3); k > 0; k--) {
            size_t frame = dt_rng_below(&rng, (uint32_t)count + 1);
            size_t n = starts[frame + 1] - starts[frame];
            size_t at = starts[frame] + dt_rng_below(&rng, (uint32_t)(n < 80 ? n : 80));
            bad[at] = edges[dt_rng_below(&rng, 6)];
        }
        seal(bad, starts, count);
        write_plain(bad, size);
        accepted += read_in_order() == 0;
        (void)read_anywhere();
    }
    assert_true(accepted < rounds / 2);
    free(good);
    free(bad);
}

static void changed_files_do_no_harm(void **state)
{
    (void)state;
    try_changes(0, 0, 100);
    try_changes(3, 0, 1500);
    try_changes(0, 1, 100);
    try_changes(3, 1, 1500);
    try_changes(0, 129, 100);
    try_changes(3, 129, 1500);
}

static void the_first_id_above_is_found(void **state)
{
    (void)state;
    uint32_t wide[150];
    uint16_t narrow[150];
    for (size_t count = 0; count <= 150; count += 50) {
        for (size_t at = 0; at <= count; at++) {
            for (size_t i = 0; i < count; i++)
                narrow[i] = (uint16_t)(wide[i] = i == at ? 300 : 299);
            assert_int_equal(dt_format_find_id_above(wide, count, 4, 299), at);
            assert_int_equal(dt_format_find_id_above(narrow, count, 2, 299), at);
            if (at < count) {
                wide[at] = 0x80000001;
                narrow[at] = 65535;
            }
            assert_int_equal(dt_format_find_id_above(wide, count, 4, 299), at);
            assert_int_equal(dt_format_find_id_above(wide, count, 4, 0x7fffffff), at);
            assert_int_equal(dt_format_find_id_above(narrow, count, 2, 299), at);
            assert_int_equal(dt_format_find_id_above(narrow, count, 2, 65535), count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_files_do_no_harm),
        cmocka_unit_test(the_first_id_above_is_found),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
