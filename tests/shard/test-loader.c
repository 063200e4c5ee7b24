/* SPDX-License-Identifier: MIT */
/* The same global batches for any number of ranks and workers; masks, boundaries of
 * documents, mixtures, and data sets of trillions of tokens. */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "hash/hash.h"
#include "math/rng.h"
#include "shard/loader.h"
#include "shard/sharder.h"

#define VOCAB  500
#define EOT    499
#define LENGTH 32
#define BATCH  24 /* every number of ranks has a part of it */
#define SEED   7

static char *in_scratch(const char *name)
{
    return dt_path_join(scratch, name);
}

static uint32_t padding_id = EOT; /* of rows */

/* Documents of up to 200 tokens, each ended by EOT; ids follow from the seed. */
static int write_shards(const char *name, uint64_t seed, int documents, uint32_t row,
                        enum dt_sharder_layout layout)
{
    struct dt_error err;
    struct dt_sharder *s;
    struct dt_shard_info info = {.vocab_size = VOCAB,
                                 .eot = EOT,
                                 .tokenizer = 5,
                                 .row = row,
                                 .padding_id = row ? padding_id : 0,
                                 .masked = row > 0,
                                 .provenance = "dt-test\n"};
    struct dt_sharder_options o = {
        .tokens_per_shard = 20000, .level = 1, .threads = 1, .layout = layout};
    char *path = in_scratch(name);
    int rc = dt_sharder_new(&s, path, &info, &o, &err);
    for (int i = 0; rc == 0 && i < documents; i++) {
        uint32_t ids[200];
        struct dt_random r = dt_random(seed, 1, (uint64_t)i);
        struct dt_shard_document d = {.hash = (uint64_t)i, .tokens = 1 + r.word[0] % 200};
        for (uint64_t k = 0; k < d.tokens; k++)
            ids[k] = dt_random(seed, (uint64_t)i, k).word[1] % EOT;
        ids[d.tokens - 1] = EOT;
        rc = dt_sharder_add(s, ids, &d, &err);
    }
    if (rc == 0)
        rc = dt_sharder_finish(s, &err);
    dt_sharder_free(s);
    free(path);
    return rc;
}

static int write_text(const char *name, const char *text)
{
    struct dt_error err;
    char *path = in_scratch(name);
    int rc = dt_file_write(path, text, strlen(text), &err);
    free(path);
    return rc;
}

static int make_data(void **state)
{
    if (make_scratch(state) < 0)
        return -1;
    return write_shards("list", 1, 700, 0, DT_SHARDER_LAYOUT_LIST) |
           write_shards("other", 2, 300, 0, DT_SHARDER_LAYOUT_LIST) |
           write_shards("padded", 3, 400, LENGTH + 1, DT_SHARDER_LAYOUT_PADDED) |
           write_shards("packed", 3, 400, LENGTH + 1, DT_SHARDER_LAYOUT_PACKED) |
           write_text("mix.json", "{\"version\": 1, \"mixture\": ["
                                  "{\"data\": \"list\", \"weight\": 3},"
                                  "{\"data\": \"other\", \"weight\": 1}]}");
}

static struct dt_dataset *open_data(const char *name)
{
    struct dt_error err = {0};
    struct dt_dataset *d;
    char *path = in_scratch(name);
    if (dt_dataset_open(&d, path, "train", &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return d;
}

static const struct dt_sample_order SHUFFLED = {.seed = SEED, .shuffle = true};
/* In blocks of 5 samples and windows of 4 blocks. */
static const struct dt_sample_order IN_BLOCKS = {
    .seed = SEED, .shuffle = true, .block = 5 * LENGTH + 1, .window = 4};
static bool in_blocks;

static struct dt_loader_options options_of(uint32_t rank, uint32_t ranks, int workers)
{
    return (struct dt_loader_options){.length = LENGTH,
                                      .batch = BATCH,
                                      .order = in_blocks ? IN_BLOCKS : SHUFFLED,
                                      .ranks = ranks,
                                      .rank = rank,
                                      .workers = workers};
}

/* Writes the hashes of one rank's samples to their places: hashes[0] is that of place
 * `zero`. */
static void collect(const char *name, const struct dt_loader_options *o, uint64_t batches,
                    uint64_t *hashes, uint64_t zero)
{
    struct dt_error err = {0};
    struct dt_dataset *d = open_data(name);
    struct dt_loader *l;
    struct dt_samples s;
    if (dt_loader_open(&l, d, o, &err) < 0)
        fail_msg("%s", err.text);
    uint32_t first_row = BATCH * o->rank / (o->ranks ? o->ranks : 1);
    for (uint64_t b = 0; b < batches; b++) {
        assert_int_equal(dt_loader_next(l, &s, &err), 0);
        assert_int_equal(s.position, o->first + b * BATCH);
        for (uint32_t row = 0; row < dt_loader_rows(l); row++)
            hashes[s.position - zero + first_row + row] =
                dt_hash(s.ids + (size_t)row * (LENGTH + 1), (LENGTH + 1) * sizeof *s.ids);
    }
    dt_loader_free(l);
    dt_dataset_close(d);
}

static uint64_t batches_of_epochs(const char *name, int epochs)
{
    struct dt_error err;
    struct dt_dataset *d = open_data(name);
    uint64_t samples;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    dt_dataset_close(d);
    return ((uint64_t)epochs * samples + BATCH - 1) / BATCH;
}

static void check_all_ways(const char *name)
{
    const uint32_t ranks[] = {1, 2, 3, 4, 8};
    const int workers[] = {0, 1, 4};
    uint64_t batches = batches_of_epochs(name, 3);
    size_t size = batches * BATCH * sizeof(uint64_t);
    uint64_t *expected = malloc(size), *got = malloc(size);
    struct dt_loader_options o = options_of(0, 1, 0);
    collect(name, &o, batches, expected, 0);
    for (int i = 0; i < 5; i++) {
        for (int w = 0; w < 3; w++) {
            memset(got, 0, size);
            for (uint32_t rank = 0; rank < ranks[i]; rank++) {
                o = options_of(rank, ranks[i], workers[w]);
                collect(name, &o, batches, got, 0);
            }
            assert_memory_equal(got, expected, size);
        }
    }
    free(expected);
    free(got);
}

static void samples_are_those_of_any_ranks_and_workers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        in_blocks = i;
        check_all_ways("list");
        check_all_ways("padded");
        check_all_ways("mix.json");
    }
    in_blocks = false;
}

/* Stops at every step of an epoch and goes on with other ranks and workers. */
static void check_resuming(void)
{
    const uint32_t ranks[] = {1, 2, 3, 4, 8};
    const int workers[] = {0, 1, 4};
    uint64_t batches = batches_of_epochs("list", 3), expected_count = batches + 4;
    uint64_t *expected = malloc(expected_count * BATCH * sizeof *expected);
    struct dt_loader_options o = options_of(0, 1, 0);
    collect("list", &o, expected_count, expected, 0);
    for (uint64_t step = 0; step < batches; step++) {
        uint64_t got[2 * BATCH] = {0}, first = step * BATCH;
        uint32_t n = ranks[step % 5];
        for (uint32_t rank = 0; rank < n; rank++) {
            o = options_of(rank, n, workers[step % 3]);
            o.first = first;
            collect("list", &o, 2, got, first);
        }
        assert_memory_equal(got, expected + first, sizeof got);
    }
    free(expected);
}

static void one_integer_resumes_with_other_ranks(void **state)
{
    (void)state;
    check_resuming();
    in_blocks = true;
    check_resuming();
    in_blocks = false;
}

static void every_epoch_of_a_rank_has_each_sample_once(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("list");
    uint64_t samples;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        char *seen = calloc(samples, 1);
        for (uint64_t i = 0; i < samples; i++)
            seen[dt_dataset_order(d, LENGTH, &SHUFFLED, epoch * samples + i)]++;
        for (uint64_t i = 0; i < samples; i++)
            assert_int_equal(seen[i], 1);
        free(seen);
    }
    dt_dataset_close(d);
}

static void every_epoch_in_blocks_has_each_sample_once(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("list");
    uint64_t samples;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    const uint64_t blocks[] = {1, LENGTH, 7 * LENGTH, 100 * LENGTH, UINT64_MAX};
    const uint64_t windows[] = {1, 2, 5, UINT64_MAX};
    char *seen = calloc(samples, 1);
    for (int i = 0; i < 5 * 4 * 3; i++) {
        const struct dt_sample_order order = {
            .seed = SEED, .shuffle = true, .block = blocks[i / 12], .window = windows[i / 3 % 4]};
        memset(seen, 0, samples);
        for (uint64_t k = 0; k < samples; k++)
            seen[dt_dataset_order(d, LENGTH, &order, (uint64_t)(i % 3) * samples + k)]++;
        for (uint64_t k = 0; k < samples; k++)
            assert_int_equal(seen[k], 1);
    }
    free(seen);
    dt_dataset_close(d);
}

/* The samples of a window are whole blocks of neighbours, in another order in each epoch. */
static void a_window_has_the_samples_of_its_blocks(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("list");
    uint64_t samples, changed = 0;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    char *seen = calloc(samples + 1, 1);
    for (uint64_t window = 0; window < samples / 20; window++) {
        uint64_t pieces = 0;
        memset(seen, 0, samples);
        for (uint64_t i = 20 * window; i < 20 * (window + 1); i++) {
            uint64_t k = dt_dataset_order(d, LENGTH, &IN_BLOCKS, i);
            seen[k] = 1;
            changed += k != dt_dataset_order(d, LENGTH, &IN_BLOCKS, samples + i);
        }
        for (uint64_t k = 0; k < samples; k++)
            pieces += seen[k] && !seen[(k + 1) % samples];
        assert_true(pieces >= 1 && pieces <= 4);
    }
    assert_true(changed > samples * 9 / 10);
    free(seen);
    dt_dataset_close(d);
}

/* The order of a run cannot change with the version: hashes of dt_dataset_order. */
static void orders_stay(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("list"), *mix = open_data("mix.json");
    uint64_t samples, hashes[3] = {0};
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    for (uint64_t i = 0; i < 3 * samples; i++) {
        const uint64_t k[3] = {dt_dataset_order(d, LENGTH, &SHUFFLED, i),
                               dt_dataset_order(d, LENGTH, &IN_BLOCKS, i),
                               dt_dataset_order(mix, LENGTH, &IN_BLOCKS, i)};
        for (int o = 0; o < 3; o++)
            hashes[o] = dt_hash_seeded(&k[o], sizeof k[o], hashes[o]);
    }
    assert_int_equal(hashes[0], 0x75706d0f8c4b2e02);
    assert_int_equal(hashes[1], 0xd6bca58917cf8107);
    assert_int_equal(hashes[2], 0x2fb5d165b5c73993);
    dt_dataset_close(d);
    dt_dataset_close(mix);
}

static void padding_is_no_target(void **state)
{
    (void)state;
    const char *const names[] = {"padded", "packed"};
    for (int i = 0; i < 2; i++) {
        struct dt_error err;
        struct dt_dataset *d = open_data(names[i]);
        struct dt_loader *l;
        struct dt_samples s;
        uint64_t targets = 0, told = 0, samples, rows = dt_dataset_info(d)->tokens / (LENGTH + 1);
        struct dt_loader_options o = options_of(0, 1, 1);
        o.batch = 1;
        assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
        assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
        assert_int_equal(samples, rows);
        for (uint64_t r = 0; r < rows; r++) {
            assert_int_equal(dt_loader_next(l, &s, &err), 0);
            told += s.targets;
            for (uint32_t t = 1; t <= LENGTH; t++)
                targets += !(s.ids[t] & DT_NO_LOSS);
        }
        assert_int_equal(targets, dt_dataset_info(d)->targets);
        assert_int_equal(told, targets);
        dt_loader_free(l);
        o.length = LENGTH + 1;
        assert_int_equal(dt_loader_open(&l, d, &o, &err), DT_EINVALID);
        assert_non_null(strstr(err.text, "has rows for sequences of 32 tokens, not of 33"));
        dt_dataset_close(d);
    }
}

/* Where the document, or the padding, that a place belongs to begins and ends in its row. */
static void check_spans(const uint32_t *ids, const int32_t *begins, const int32_t *ends, bool rows)
{
    const uint32_t padding = EOT | DT_NO_LOSS;
    for (int32_t t = 0; t < LENGTH; t++) {
        int32_t from = t, to = t + 1;
        while (from > 0 && (ids[from - 1] & ~DT_NO_LOSS) != EOT)
            from--;
        while (to < LENGTH && (ids[to - 1] & ~DT_NO_LOSS) != EOT)
            to++;
        if (rows && ids[t] == padding) {
            for (from = t; from > 0 && ids[from - 1] == padding;)
                from--;
            to = LENGTH;
        }
        assert_int_equal(begins[t], from);
        assert_int_equal(ends[t], to);
    }
}

static void attention_keeps_to_documents(void **state)
{
    (void)state;
    const char *const names[] = {"list", "padded", "packed"};
    for (int i = 0; i < 3; i++) {
        struct dt_error err;
        struct dt_dataset *d = open_data(names[i]);
        struct dt_loader_options o = options_of(0, 1, 1);
        struct dt_loader *l;
        struct dt_samples s;
        o.scope = DT_SCOPE_DOCUMENT;
        assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
        for (int b = 0; b < 20; b++) {
            assert_int_equal(dt_loader_next(l, &s, &err), 0);
            for (uint32_t row = 0; row < BATCH; row++)
                check_spans(s.ids + (size_t)row * (LENGTH + 1), s.begins + (size_t)row * LENGTH,
                            s.ends + (size_t)row * LENGTH, i > 0);
        }
        dt_loader_free(l);
        dt_dataset_close(d);
    }
}

static void a_mixture_has_its_weights_exactly(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("mix.json"), *first = open_data("list");
    uint64_t all, samples, of_first = 0;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &all, &err), 0);
    assert_int_equal(dt_dataset_samples(first, LENGTH, &samples, &err), 0);
    uint64_t *used = calloc(all, sizeof *used), far = (1ull << 40) * DT_MIXTURE_SLOTS;
    for (uint64_t i = 0; i < 2 * DT_MIXTURE_SLOTS; i++)
        used[dt_dataset_order(d, LENGTH, &SHUFFLED, i)]++;
    for (uint64_t k = 0; k < samples; k++)
        of_first += used[k];
    assert_int_equal(of_first, 2 * DT_MIXTURE_SLOTS * 3 / 4);
    for (uint64_t k = 0; k < all; k++) { /* each part is used evenly */
        uint64_t share =
            k < samples ? of_first / samples : (2 * DT_MIXTURE_SLOTS - of_first) / (all - samples);
        assert_true(used[k] == share || used[k] == share + 1);
    }
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(dt_dataset_order(d, LENGTH, &SHUFFLED, far + i) < all);
    free(used);
    dt_dataset_close(d);
    dt_dataset_close(first);
}

static void expect_refusal(const char *name, const char *text, const char *reason)
{
    struct dt_error err = {0};
    struct dt_dataset *d;
    assert_int_equal(write_text(name, text), 0);
    char *path = in_scratch(name);
    assert_true(dt_dataset_open(&d, path, "train", &err) < 0);
    if (strstr(err.text, reason) == NULL)
        fail_msg("'%s' instead of '%s'", err.text, reason);
    free(path);
}

#define MIXTURE(parts) "{\"version\": 1, \"mixture\": [" parts "]}"

static void mixtures_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    expect_refusal("m.json", MIXTURE(""), "m.json: 'mixture' is empty");
    expect_refusal("m.json",
                   MIXTURE("{\"data\": \"a\", \"weight\": 1e308},"
                           "{\"data\": \"b\", \"weight\": 1e308}"),
                   "m.json: the sum of the weights is too large");
    expect_refusal("m.json", "[]", "is not a JSON object");
    expect_refusal("m.json", "{\"version\": 2, \"mixture\": []}", "reads version 1");
    expect_refusal("m.json", MIXTURE("1"), "part 0 is not an object");
    expect_refusal("m.json", MIXTURE("{\"data\": \"list\", \"weigth\": 1}"),
                   "m.json: part 0: unknown member 'weigth'");
    expect_refusal("m.json", "{\"version\": 1, \"mixtures\": []}", "unknown member 'mixtures'");
    expect_refusal("m.json", MIXTURE("{\"data\": \"list\"}"), "weight");
    expect_refusal("m.json", MIXTURE("{\"data\": \"list\", \"weight\": 0}"), "must be above 0");
    expect_refusal("m.json", MIXTURE("{\"data\": \"none\", \"weight\": 1}"), "/none'");
    expect_refusal("m.json", MIXTURE("{\"data\": \"mix.json\", \"weight\": 1}"), "a mixture");
    expect_refusal("m.json",
                   MIXTURE("{\"data\": \"list\", \"weight\": 1},"
                           "{\"data\": \"padded\", \"weight\": 1}"),
                   "padded: has rows of another length");
    padding_id = 3;
    assert_int_equal(write_shards("threes", 3, 40, LENGTH + 1, DT_SHARDER_LAYOUT_PADDED), 0);
    padding_id = EOT;
    expect_refusal("m.json",
                   MIXTURE("{\"data\": \"padded\", \"weight\": 1},"
                           "{\"data\": \"threes\", \"weight\": 1}"),
                   "threes: its rows are padded with id 3, and those of the data before it");
    expect_refusal("m.json",
                   MIXTURE("{\"data\": \"list\", \"weight\": 1000000},"
                           "{\"data\": \"other\", \"weight\": 1}"),
                   "below 1/65536");
}

static void ranks_and_boundaries_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_data("list");
    struct dt_loader *l;
    struct dt_loader_options o = options_of(2, 2, 0);
    assert_int_equal(dt_loader_open(&l, d, &o, &err), DT_EINVALID);
    o = options_of(0, BATCH + 1, 0);
    assert_int_equal(dt_loader_open(&l, d, &o, &err), DT_EINVALID);
    assert_null(l);
    dt_dataset_close(d);
}

static void a_failure_reaches_the_user_with_any_workers(void **state)
{
    (void)state;
    for (int workers = 0; workers < 5; workers += 2) {
        struct dt_error err = {0};
        struct dt_dataset *d = open_data("other");
        struct dt_loader *l;
        struct dt_samples s;
        struct dt_loader_options o = options_of(0, 1, workers);
        int rc = 0, good = 0;
        o.order.shuffle = false;
        assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
        char *path = in_scratch("other/train-00001.dts"), *data;
        size_t size;
        assert_int_equal(dt_file_read(path, 1 << 30, &data, &size, &err), 0);
        FILE *f = fopen(path, "r+b"); /* in place, as a bad disk does */
        assert_non_null(f);
        for (size_t i = 1000; i + 1000 < size; i++) {
            fseek(f, (long)i, SEEK_SET);
            fputc(~data[i], f);
        }
        fclose(f);
        for (; good < 1000 && (rc = dt_loader_next(l, &s, &err)) == 0; good++)
            ;
        assert_int_equal(rc, DT_EFORMAT);
        assert_non_null(strstr(err.text, "train-00001.dts: frame "));
        assert_int_equal(dt_loader_next(l, &s, &err), DT_EFORMAT); /* and stays */
        dt_loader_free(l);
        dt_dataset_close(d);
        f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, size, f), size);
        fclose(f);
        free(data);
        free(path);
    }
}

#define HUGE_SHARDS 1000
#define HUGE_TOKENS 10000000000ull /* in each: 10^13 */

/* index.json of ten trillion tokens, and files of the sizes it says, with holes. */
static void write_huge(const char *name)
{
    struct dt_error err;
    struct dt_manifest m = {.info = {.vocab_size = 50257, .eot = 50256, .tokenizer = 5}};
    char *path = in_scratch(name), file[32];
    assert_int_equal(dt_file_make_directories(path, &err), 0);
    struct dt_manifest_split *split = dt_manifest_add_split(&m, "train");
    for (int i = 0; i < HUGE_SHARDS; i++) {
        snprintf(file, sizeof file, "train-%05d.dts", i);
        struct dt_manifest_shard *s = dt_manifest_add_shard(split, file);
        s->tokens = HUGE_TOKENS;
        s->documents = HUGE_TOKENS / 500;
        s->size = HUGE_TOKENS;
        char *full = dt_path_join(path, file);
        FILE *f = fopen(full, "w");
        assert_non_null(f);
        assert_int_equal(ftruncate(fileno(f), (off_t)s->size), 0);
        fclose(f);
        free(full);
    }
    assert_int_equal(dt_manifest_write(&m, path, &err), 0);
    dt_manifest_release(&m);
    free(path);
}

static void ten_trillion_tokens_open_in_a_second(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d;
    uint64_t samples, far;
    write_huge("huge");
    char *path = in_scratch("huge");
    clock_t start = clock(); /* other work does not count */
    int rc = dt_dataset_open(&d, path, "train", &err);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_true(seconds < 1);
    assert_true(dt_dataset_info(d)->tokens == HUGE_TOKENS * HUGE_SHARDS);
    assert_int_equal(dt_dataset_samples(d, 1024, &samples, &err), 0);
    assert_true(samples > 1ull << 32);
    /* Neighbours beyond 2^32 samples and 2^40 tokens, in epochs far on: no two are alike. */
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        far = epoch * samples + (1ull << 33);
        uint64_t sum = 0, last = UINT64_MAX, largest = 0;
        for (uint64_t i = 0; i < 4096; i++) {
            uint64_t k = dt_dataset_order(d, 1024, &SHUFFLED, far + i);
            assert_true(k < samples);
            assert_true(k != last);
            largest = k > largest ? k : largest;
            last = k;
            sum += k >> 12;
        }
        assert_true(largest * 1024 > 1ull << 40);
        double mean = (double)sum / 4096 * 4096 / (double)samples;
        assert_true(fabs(mean - 0.5) < 0.03);
    }
    assert_int_equal(
        dt_dataset_order(d, 1024, &(struct dt_sample_order){0}, 3 * samples + (1ull << 33)),
        1ull << 33);
    uint32_t ids[1025]; /* sparse files are not shards */
    assert_int_equal(dt_dataset_sample(d, 1024, samples / 2, ids, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "huge/train-00"));
    dt_dataset_close(d);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_any_ranks_and_workers),
        cmocka_unit_test(one_integer_resumes_with_other_ranks),
        cmocka_unit_test(every_epoch_of_a_rank_has_each_sample_once),
        cmocka_unit_test(every_epoch_in_blocks_has_each_sample_once),
        cmocka_unit_test(a_window_has_the_samples_of_its_blocks),
        cmocka_unit_test(orders_stay),
        cmocka_unit_test(padding_is_no_target),
        cmocka_unit_test(attention_keeps_to_documents),
        cmocka_unit_test(a_mixture_has_its_weights_exactly),
        cmocka_unit_test(mixtures_that_make_no_sense_are_refused),
        cmocka_unit_test(ranks_and_boundaries_that_make_no_sense_are_refused),
        cmocka_unit_test(a_failure_reaches_the_user_with_any_workers),
        cmocka_unit_test(ten_trillion_tokens_open_in_a_second),
    };
    return cmocka_run_group_tests(tests, make_data, remove_scratch);
}
