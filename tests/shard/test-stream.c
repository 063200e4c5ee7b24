/* SPDX-License-Identifier: MIT */
/* The stream writer and the sequential reader. */
#include "scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "hash/hash.h"
#include "math/rng.h"
#include "shard/shard.h"

static char *path, *other;

static int set_up(void **state)
{
    int rc = make_scratch(state);
    path = dt_path_join(scratch, "a.dts");
    other = dt_path_join(scratch, "b.dts");
    return rc;
}

static int tear_down(void **state)
{
    free(path);
    free(other);
    return remove_scratch(state);
}

static struct dt_shard_info info_of(uint32_t vocab_size)
{
    return (struct dt_shard_info){.vocab_size = vocab_size,
                                  .eot = vocab_size - 1,
                                  .tokenizer = 0x0123456789abcdef,
                                  .provenance = "dt-test 1\n"};
}

/* Document i of count tokens: its ids follow from i alone. */
static void fill_ids(uint32_t *ids, uint64_t i, uint64_t count, uint32_t vocab_size)
{
    struct dt_rng rng;
    dt_rng_init(&rng, i);
    for (uint64_t k = 0; k < count; k++)
        ids[k] = dt_rng_below(&rng, vocab_size);
}

static struct dt_shard_document document_of(uint64_t i, uint64_t tokens)
{
    return (struct dt_shard_document){.hash = dt_random_key(i, 1, 2), tokens, 3 * tokens + i};
}

/* Writes documents of the given lengths. */
static void write_file(const char *file, const uint64_t *lengths, size_t count, uint32_t vocab_size,
                       int level, int threads)
{
    struct dt_error err = {0};
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info info = info_of(vocab_size);
    assert_int_equal(dt_output_open(&out, file, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, level, &err), 0);
    struct dt_threads *pool = dt_threads_new(threads);
    if (threads > 1)
        dt_shard_writer_use_threads(w, pool);
    for (size_t i = 0; i < count; i++) {
        uint32_t *ids = malloc(lengths[i] * 4 + 4);
        struct dt_shard_document d = document_of(i, lengths[i]);
        fill_ids(ids, i, lengths[i], vocab_size);
        assert_int_equal(dt_shard_write(w, ids, &d, &err), 0);
        free(ids);
    }
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    dt_threads_free(pool);
    assert_int_equal(dt_output_commit(&out, &err), 0);
}

static void expect_documents(struct dt_shard_reader *r, const uint64_t *lengths, size_t count,
                             uint32_t vocab_size)
{
    struct dt_error err = {0};
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document d;
    for (size_t i = 0; i < count; i++) {
        struct dt_shard_document want = document_of(i, lengths[i]);
        uint32_t *expected = malloc(lengths[i] * 4 + 4);
        fill_ids(expected, i, lengths[i], vocab_size);
        assert_int_equal(dt_shard_read(r, &ids, &d, &err), 1);
        assert_memory_equal(&d, &want, sizeof d);
        assert_int_equal(ids.count, lengths[i]);
        if (ids.count)
            assert_memory_equal(ids.data, expected, ids.count * 4);
        free(expected);
    }
    dt_ids_release(&ids);
}

static void expect_end(struct dt_shard_reader *r)
{
    struct dt_error err = {0};
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document d;
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 0);
    assert_int_equal(dt_shard_read(r, &ids, &d, &err), 0); /* and stays at the end */
    dt_ids_release(&ids);
}

static const uint64_t awkward[] = {3, 0, 1, 1, 65536 - 5, 0, 1, 200000, 0, 65536, 7, 0};
#define AWKWARD (sizeof awkward / sizeof *awkward)

static void check_round_trip(const uint64_t *lengths, size_t count, uint32_t vocab_size, int level)
{
    struct dt_error err = {0};
    struct dt_shard_reader *r;
    uint64_t tokens = 0, bytes = 0;
    write_file(path, lengths, count, vocab_size, level, 1);
    assert_int_equal(dt_shard_reader_open(&r, path, &err), 0);
    expect_documents(r, lengths, count, vocab_size);
    expect_end(r);
    for (size_t i = 0; i < count; i++) {
        tokens += lengths[i];
        bytes += document_of(i, lengths[i]).bytes;
    }
    const struct dt_shard_info *info = dt_shard_reader_info(r);
    assert_int_equal(info->tokens, tokens);
    assert_int_equal(info->documents, count);
    assert_int_equal(info->text_bytes, bytes);
    assert_int_equal(info->vocab_size, vocab_size);
    assert_int_equal(info->eot, vocab_size - 1);
    assert_int_equal(info->tokenizer, 0x0123456789abcdef);
    assert_int_equal(info->token_bytes, vocab_size <= 65536 ? 2 : 4);
    assert_string_equal(info->provenance, "dt-test 1\n");
    dt_shard_reader_close(r);
}

static void documents_come_back_as_they_went_in(void **state)
{
    (void)state;
    const uint32_t sizes[] = {2, 256, 65536, 65537, 128000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int level = 0; level <= 3; level += 3)
            check_round_trip(awkward, AWKWARD, sizes[k], level);
}

static void many_empty_documents_span_frames(void **state)
{
    (void)state;
    const size_t count = 150000;
    uint64_t *lengths = calloc(count, sizeof *lengths);
    check_round_trip(lengths, count, 256, 0);
    check_round_trip(lengths, count, 256, 3);
    for (size_t i = 0; i < count; i++)
        lengths[i] = 1;
    check_round_trip(lengths, count, 256, 3);
    free(lengths);
}

static void no_documents_are_a_whole_stream(void **state)
{
    (void)state;
    check_round_trip(NULL, 0, 256, 0);
}

static void read_whole(const char *file, char **data, size_t *size)
{
    struct dt_error err;
    assert_int_equal(dt_file_read(file, SIZE_MAX / 2, data, size, &err), 0);
}

static void write_plain(const char *file, const char *data, size_t size)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void threads_do_not_change_the_bytes(void **state)
{
    (void)state;
    char *a, *b;
    size_t n, m;
    write_file(path, awkward, AWKWARD, 50257, 3, 1);
    write_file(other, awkward, AWKWARD, 50257, 3, 3);
    read_whole(path, &a, &n);
    read_whole(other, &b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

#define WORKERS 3

/* Nanoseconds on a processor of each thread but the first. */
static int read_times_of_threads(double times[WORKERS])
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char name[300];
        if (entry->d_name[0] == '.' || atol(entry->d_name) == (long)getpid())
            continue;
        snprintf(name, sizeof name, "/proc/self/task/%s/schedstat", entry->d_name);
        FILE *file = fopen(name, "r");
        if (file == NULL)
            break;
        assert_true(count < WORKERS);
        assert_int_equal(fscanf(file, "%lf", &times[count++]), 1);
        fclose(file);
    }
    closedir(tasks);
    return count;
}

/* More than what starting takes. Whose turn it is the scheduler says: in the end everyone's. */
static bool all_have_worked(int *count)
{
    double times[WORKERS];
    *count = read_times_of_threads(times);
    bool all = *count == WORKERS;
    for (int i = 0; i < *count; i++)
        all = all && times[i] > 2e7;
    return all;
}

static void level_3_is_compressed_on_all_threads(void **state)
{
    (void)state;
    enum { TOKENS = 1 << 20, MOST_DOCUMENTS = 200 };
    struct dt_error err = {0};
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info info = info_of(2000);
    uint32_t *ids = malloc(TOKENS * sizeof *ids);
    bool worked = false;
    int count = 0;
    fill_ids(ids, 1, TOKENS, 2000);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 3, &err), 0);
    struct dt_threads *pool = dt_threads_new(WORKERS);
    dt_shard_writer_use_threads(w, pool);
    for (uint64_t i = 0; i < MOST_DOCUMENTS && !worked; i++) {
        struct dt_shard_document d = document_of(i, TOKENS);
        assert_int_equal(dt_shard_write(w, ids, &d, &err), 0);
        worked = all_have_worked(&count);
    }
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    dt_threads_free(pool);
    dt_output_abandon(&out);
    free(ids);
    if (count == 0)
        skip(); /* the system does not say */
    assert_int_equal(count, WORKERS);
    assert_true(worked);
}

static void joined_streams_read_as_one(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_shard_reader *r;
    char *a, *joined;
    size_t n;
    write_file(path, awkward, AWKWARD, 50257, 1, 1);
    read_whole(path, &a, &n);
    joined = malloc(2 * n);
    memcpy(joined, a, n);
    memcpy(joined + n, a, n);
    write_plain(other, joined, 2 * n);
    assert_int_equal(dt_shard_reader_open(&r, other, &err), 0);
    expect_documents(r, awkward, AWKWARD, 50257);
    expect_documents(r, awkward, AWKWARD, 50257);
    expect_end(r);
    assert_int_equal(dt_shard_reader_info(r)->documents, 2 * AWKWARD);
    dt_shard_reader_close(r);
    free(a);
    free(joined);
}

/* Reads a file to its end; the code of the first failure, or 0. */
static int read_to_end(const char *file, struct dt_error *err)
{
    struct dt_shard_reader *r;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document d;
    int rc = dt_shard_reader_open(&r, file, err);
    if (rc < 0)
        return rc;
    while ((rc = dt_shard_read(r, &ids, &d, err)) > 0)
        ;
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
    return rc;
}

static void streams_of_two_tokenizers_do_not_join(void **state)
{
    (void)state;
    struct dt_error err = {0};
    const uint64_t one = 5;
    char *a, *b;
    size_t n, m;
    write_file(path, &one, 1, 256, 0, 1);
    write_file(other, &one, 1, 257, 0, 1);
    read_whole(path, &a, &n);
    read_whole(other, &b, &m);
    a = realloc(a, n + m);
    memcpy(a + n, b, m);
    write_plain(path, a, n + m);
    assert_int_equal(read_to_end(path, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "another tokenizer"));
    free(a);
    free(b);
}

static void ids_outside_the_vocabulary_are_refused(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info info = info_of(256);
    const uint32_t ids[2] = {255, 256};
    struct dt_shard_document d = {1, 2, 2};
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 0, &err), 0);
    assert_int_equal(dt_shard_write(w, ids, &d, &err), DT_EINVALID);
    assert_string_equal(err.text, "document 0 contains id 256, outside the vocabulary of 256");
    dt_shard_writer_free(w);
    dt_output_abandon(&out);
}

/* A mask, and rows, of ids of 2 and 4 bytes. */
static const char *const goldens[] = {
    "tests/shard/version-1-wide.dts", "tests/shard/version-2-masked.dts",
    "tests/shard/version-2-padded.dts", "tests/shard/version-2-padded-wide.dts"};

static void copy_golden(const char *golden)
{
    char *data;
    size_t n;
    read_whole(golden, &data, &n);
    write_plain(path, data, n);
    free(data);
}

/* Changes the file in place: rewriting it costs the disk far more. */
static void flip_bit(FILE *f, size_t byte, int bit, const char *data)
{
    assert_int_equal(fseek(f, (long)byte, SEEK_SET), 0);
    assert_true(fputc((unsigned char)data[byte] ^ (bit < 8 ? 1 << bit : 0), f) >= 0);
    assert_int_equal(fflush(f), 0);
}

/* Each bit of the file at path. */
static void one_flipped_bit_is_detected(const char *name)
{
    struct dt_error err = {0};
    char *data;
    size_t n;
    read_whole(path, &data, &n);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            flip_bit(f, i, bit, data);
            if (read_to_end(path, &err) != DT_EFORMAT)
                fail_msg("%s: bit %d of byte %zu of %zu went unseen", name, bit, i, n);
            assert_non_null(strstr(err.text, path));
            assert_non_null(strstr(err.text, n > 0 ? ": frame " : ": is empty"));
        }
        flip_bit(f, i, 8, data); /* as it was */
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(read_to_end(path, &err), 0);
    free(data);
}

static void every_flipped_bit_is_detected(void **state)
{
    (void)state;
    const uint64_t lengths[] = {20, 0, 300, 1};
    for (int level = 0; level <= 3; level += 3) {
        write_file(path, lengths, 4, 256, level, 1);
        one_flipped_bit_is_detected("a list");
    }
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        copy_golden(goldens[i]);
        one_flipped_bit_is_detected(goldens[i]);
    }
}

/* Each cut of the file at path. */
static void one_cut_is_detected(const char *name)
{
    struct dt_error err = {0};
    char *data;
    size_t n;
    read_whole(path, &data, &n);
    while (n-- > 0) {
        assert_int_equal(truncate(path, (off_t)n), 0);
        if (read_to_end(path, &err) != DT_EFORMAT)
            fail_msg("%s: a cut at byte %zu went unseen", name, n);
        assert_non_null(strstr(err.text, n > 0 ? ": frame " : ": is empty"));
    }
    free(data);
}

static void every_cut_is_detected(void **state)
{
    (void)state;
    const uint64_t lengths[] = {20, 0, 300, 1};
    write_file(path, lengths, 4, 256, 3, 1);
    one_cut_is_detected("a list");
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        copy_golden(goldens[i]);
        one_cut_is_detected(goldens[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_come_back_as_they_went_in),
        cmocka_unit_test(many_empty_documents_span_frames),
        cmocka_unit_test(no_documents_are_a_whole_stream),
        cmocka_unit_test(threads_do_not_change_the_bytes),
        cmocka_unit_test(level_3_is_compressed_on_all_threads),
        cmocka_unit_test(joined_streams_read_as_one),
        cmocka_unit_test(streams_of_two_tokenizers_do_not_join),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(every_flipped_bit_is_detected),
        cmocka_unit_test(every_cut_is_detected),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
