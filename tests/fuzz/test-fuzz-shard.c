/* SPDX-License-Identifier: MIT */
/*
 * Shards of every version and layout, changed at random: bits, bytes, pieces moved,
 * cut off or doubled, with the hashes wrong or made right again. They are read in
 * order, anywhere, and by a loader, none of which may crash.
 *
 *     FUZZ_ROUNDS=100000 FUZZ_SEED=1 build/tests/fuzz/test-fuzz-shard
 *
 * FUZZ_ROUNDS is 3000 without it, and FUZZ_SEED 1.
 */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "math/rng.h"
#include "shard/loader.h"
#include "shard/reseal.h"
#include "shard/rows.h"

static const char *const goldens[] = {
    "tests/shard/version-1.dts",        "tests/shard/version-1-compressed.dts",
    "tests/shard/version-1-wide.dts",   "tests/shard/version-2-masked.dts",
    "tests/shard/version-2-padded.dts", "tests/shard/version-2-padded-wide.dts"};
#define GOLDENS (sizeof goldens / sizeof *goldens)
#define FILES   (GOLDENS + 2)

struct file {
    char *data;
    size_t size, starts[MOST_FRAMES], frames;
};

static char *path;
static struct file files[FILES];

/* Compressed frames, as a list with a mask or in rows. */
static void write_large(uint32_t row)
{
    struct dt_error err;
    struct dt_output out;
    struct dt_shard_writer *w;
    uint32_t ids[3000];
    const struct dt_shard_info info = {
        .vocab_size = 400, .eot = 399, .tokenizer = 5, .row = row, .masked = true};
    struct dt_rows *rows = dt_rows_new(row ? row : 2, 0, true);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 3, &err), 0);
    for (uint64_t i = 0; i < 30; i++) {
        struct dt_shard_document d = {i, 1 + 97 * i, i};
        for (uint64_t k = 0; k < d.tokens; k++)
            ids[k] = (uint32_t)(k * i % 399) | (k % 5 == i % 5 ? DT_NO_LOSS : 0);
        assert_int_equal(
            row ? dt_rows_add(rows, w, ids, &d, &err) : dt_shard_write(w, ids, &d, &err), 0);
    }
    if (row)
        assert_int_equal(dt_rows_flush(rows, w, &err), 0);
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    dt_rows_free(rows);
    assert_int_equal(dt_output_commit(&out, &err), 0);
}

static int read_files(void **state)
{
    struct dt_error err;
    if (make_scratch(state) < 0)
        return -1;
    path = dt_path_join(scratch, "x.dts");
    for (size_t i = 0; i < FILES; i++) {
        if (i >= GOLDENS)
            write_large(i == GOLDENS ? 0 : 65);
        if (dt_file_read(i < GOLDENS ? goldens[i] : path, 1 << 20, &files[i].data, &files[i].size,
                         &err) < 0)
            return -1;
        files[i].frames = find_frames(files[i].data, files[i].size, files[i].starts);
    }
    return 0;
}

static int free_files(void **state)
{
    for (size_t i = 0; i < FILES; i++)
        free(files[i].data);
    free(path);
    return remove_scratch(state);
}

/* --- changes ---------------------------------------------------------------------------------- */

static uint32_t below(struct dt_rng *rng, size_t n)
{
    return dt_rng_below(rng, (uint32_t)n);
}

/* A place in the file, more often in the heads of frames. */
static size_t some_place(struct dt_rng *rng, const struct file *f)
{
    if (below(rng, 3) == 0)
        return below(rng, f->size);
    size_t frame = below(rng, f->frames + 1), n = f->starts[frame + 1] - f->starts[frame];
    return f->starts[frame] + below(rng, n < 92 ? n : 92);
}

static void change_bytes(struct dt_rng *rng, const struct file *f, char *data)
{
    static const char edges[] = {0, 1, 2, 3, 127, (char)128, (char)254, (char)255};
    for (uint32_t k = 1 + below(rng, 4); k > 0; k--) {
        size_t at = some_place(rng, f);
        if (below(rng, 2))
            data[at] = (char)(data[at] ^ 1 << below(rng, 8));
        else
            data[at] = edges[below(rng, sizeof edges)];
    }
}

/* Two frames, or two pieces, change places. */
static void swap_pieces(struct dt_rng *rng, const struct file *f, char *data)
{
    size_t a = f->starts[below(rng, f->frames)], b = f->starts[below(rng, f->frames)];
    size_t n = 1 + below(rng, 300);
    for (size_t i = 0; i < n && a + i < f->size && b + i < f->size; i++) {
        char c = data[a + i];
        data[a + i] = data[b + i];
        data[b + i] = c;
    }
}

/* Changes a copy of f; returns its size. */
static size_t change(struct dt_rng *rng, const struct file *f, char *data)
{
    memcpy(data, f->data, f->size);
    switch (below(rng, 8)) {
    case 0: /* cut */
        return below(rng, f->size);
    case 1: /* bytes after the end, or the file twice */
        memcpy(data + f->size, f->data, f->size);
        return f->size + below(rng, f->size + 1);
    case 2:
        swap_pieces(rng, f, data);
        return f->size;
    default:
        change_bytes(rng, f, data);
        if (below(rng, 4))
            seal(data, f->starts, f->frames);
        return f->size;
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_in_order(void)
{
    struct dt_error err = {0};
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc = dt_shard_reader_open(&r, path, &err);
    if (rc == 0) {
        dt_shard_reader_mark(r);
        while ((rc = dt_shard_read(r, &ids, &d, &err)) > 0)
            assert_int_equal(ids.count, d.tokens);
        dt_shard_reader_close(r);
    }
    dt_ids_release(&ids);
    assert_true(rc == 0 || err.text[0] != '\0');
    return rc == 0;
}

static void read_anywhere(struct dt_rng *rng)
{
    struct dt_error err;
    struct dt_dataset *d;
    struct dt_shard_document document;
    struct dt_loader *l;
    struct dt_samples s;
    uint64_t first;
    if (dt_dataset_open(&d, path, "", &err) < 0)
        return;
    const struct dt_shard_info *info = dt_dataset_info(d);
    if (dt_dataset_document(d, dt_rng_u64(rng) % (info->documents + 2), &first, &document, &err) <
        0)
        (void)err;
    struct dt_loader_options o = {.length = info->row ? info->row - 1 : 1 + below(rng, 70),
                                  .batch = 2,
                                  .order = {.shuffle = true,
                                            .block = below(rng, 2) ? 1 + below(rng, 300) : 0,
                                            .window = 1 + below(rng, 3)},
                                  .scope =
                                      info->eot != UINT32_MAX ? DT_SCOPE_DOCUMENT : DT_SCOPE_ROW};
    if (o.length < 1 << 16 && dt_loader_open(&l, d, &o, &err) == 0) {
        for (int i = 0; i < 3 && dt_loader_next(l, &s, &err) == 0; i++)
            for (uint32_t k = 0; k < 2 * (o.length + 1); k++)
                assert_true((s.ids[k] & ~DT_NO_LOSS) < info->vocab_size);
        dt_loader_free(l);
    }
    dt_dataset_close(d);
}

static long number_from(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void changed_files_do_no_harm(void **state)
{
    (void)state;
    static char data[1 << 20];
    struct dt_rng rng;
    long rounds = number_from("FUZZ_ROUNDS", 3000), whole = 0;
    dt_rng_init(&rng, (uint64_t)number_from("FUZZ_SEED", 1));
    for (long i = 0; i < rounds; i++) {
        const struct file *f = &files[i % (long)FILES];
        size_t size = change(&rng, f, data);
        FILE *to = fopen(path, "r+b"); /* in place is faster */
        assert_non_null(to);
        assert_int_equal(fwrite(data, 1, size, to), size);
        assert_int_equal(fclose(to), 0);
        assert_int_equal(truncate(path, (off_t)size), 0);
        whole += read_in_order();
        read_anywhere(&rng);
    }
    assert_true(whole < rounds / 2); /* a change may do nothing, or be sealed and make sense */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_files_do_no_harm)};
    return cmocka_run_group_tests(tests, read_files, free_files);
}
