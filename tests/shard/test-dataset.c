/* SPDX-License-Identifier: MIT */
/* Shards read anywhere, data sets, the order of samples, and the loader. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "math/rng.h"
#include "shard/loader.h"
#include "shard/manifest.h"

#define VOCAB  50257
#define LENGTH 64

static uint32_t *all;    /* every token of the split, in order */
static uint64_t *starts; /* of every document */
static struct dt_shard_document *documents;
static uint64_t tokens, count;

/* Writes shard number n of documents with the given lengths, and lists it. */
static int write_shard(struct dt_manifest_split *split, int n, const uint64_t *lengths,
                       size_t shard_count, int level)
{
    struct dt_error err;
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard_info info = {.vocab_size = VOCAB, .eot = VOCAB - 1, .tokenizer = 7}, totals;
    char name[32];
    snprintf(name, sizeof name, "train-%05d.dts", n);
    char *path = dt_path_join(scratch, name);
    if (dt_output_open(&out, path, &err) < 0 ||
        dt_shard_writer_new(&w, &out, &info, level, &err) < 0)
        return -1;
    for (size_t i = 0; i < shard_count; i++, count++) {
        documents[count] = (struct dt_shard_document){count * 17, lengths[i], 2 * lengths[i]};
        starts[count] = tokens;
        for (uint64_t k = 0; k < lengths[i]; k++)
            all[tokens + k] = dt_random(1, 0, tokens + k).word[0] % VOCAB;
        if (dt_shard_write(w, all + tokens, &documents[count], &err) < 0)
            return -1;
        tokens += lengths[i];
    }
    if (dt_shard_writer_finish(w, &err) < 0)
        return -1;
    dt_shard_writer_totals(w, &totals);
    struct dt_manifest_shard *s = dt_manifest_add_shard(split, name);
    s->tokens = totals.tokens;
    s->documents = totals.documents;
    s->text_bytes = totals.text_bytes;
    s->hash = totals.hash;
    s->size = out.written;
    dt_shard_writer_free(w);
    free(path);
    return dt_output_commit(&out, &err);
}

/* Three shards: short documents, long ones over several frames, a few tokens. */
static int make_shards(void **state)
{
    static uint64_t lengths[3000], longer[] = {0, 150000, 1, 65536, 70000, 0};
    const uint64_t shortest[] = {3, 0, 2};
    struct dt_error err;
    struct dt_manifest m = {.info = {.vocab_size = VOCAB, .eot = VOCAB - 1, .tokenizer = 7}};
    if (make_scratch(state) < 0)
        return -1;
    all = malloc(4 * 1000000);
    starts = malloc(8 * 4000);
    documents = malloc(sizeof *documents * 4000);
    for (size_t i = 0; i < 3000; i++)
        lengths[i] = i % 97;
    struct dt_manifest_split *split = dt_manifest_add_split(&m, "train");
    int rc = write_shard(split, 0, lengths, 3000, 3) | write_shard(split, 1, longer, 6, 1) |
             write_shard(split, 2, shortest, 3, 0) | dt_manifest_write(&m, scratch, &err);
    dt_manifest_release(&m);
    return rc;
}

static int remove_shards(void **state)
{
    free(all);
    free(starts);
    free(documents);
    return remove_scratch(state);
}

static struct dt_dataset *open_train(void)
{
    struct dt_error err = {0};
    struct dt_dataset *d;
    if (dt_dataset_open(&d, scratch, "train", &err) < 0)
        fail_msg("%s", err.text);
    return d;
}

static void totals_are_those_of_all_shards(void **state)
{
    (void)state;
    struct dt_dataset *d = open_train();
    const struct dt_shard_info *info = dt_dataset_info(d);
    assert_int_equal(info->tokens, tokens);
    assert_int_equal(info->documents, count);
    assert_int_equal(info->text_bytes, 2 * tokens);
    assert_int_equal(info->vocab_size, VOCAB);
    assert_int_equal(info->tokenizer, 7);
    dt_dataset_close(d);
}

static void any_range_of_tokens_is_found(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d = open_train();
    struct dt_rng rng;
    uint32_t *ids = malloc(tokens * 4);
    dt_rng_init(&rng, 5);
    assert_int_equal(dt_dataset_tokens(d, 0, tokens, ids, &err), 0);
    assert_memory_equal(ids, all, tokens * 4);
    for (int i = 0; i < 2000; i++) {
        uint64_t first = dt_rng_below(&rng, (uint32_t)tokens);
        uint64_t n = 1 + dt_rng_below(&rng, 2000);
        n = n < tokens - first ? n : tokens - first;
        assert_int_equal(dt_dataset_tokens(d, first, n, ids, &err), 0);
        assert_memory_equal(ids, all + first, n * 4);
    }
    assert_int_equal(dt_dataset_tokens(d, tokens, 0, ids, &err), 0);
    assert_int_equal(dt_dataset_tokens(d, tokens, 1, ids, &err), DT_EINVALID);
    assert_int_equal(dt_dataset_tokens(d, 1, UINT64_MAX, ids, &err), DT_EINVALID);
    free(ids);
    dt_dataset_close(d);
}

static void any_document_is_found(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d = open_train();
    struct dt_shard_document document;
    uint64_t first;
    for (uint64_t k = 0; k < 2 * count; k++) { /* in order, then not */
        uint64_t i = k < count ? k : dt_rng_permute(3, count, k - count);
        assert_int_equal(dt_dataset_document(d, i, &first, &document, &err), 0);
        assert_int_equal(first, starts[i]);
        assert_memory_equal(&document, &documents[i], sizeof document);
    }
    assert_int_equal(dt_dataset_document(d, count, &first, &document, &err), DT_EMISSING);
    dt_dataset_close(d);
}

static void one_shard_is_a_data_set(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d;
    uint32_t ids[100];
    char *path = dt_path_join(scratch, "train-00000.dts");
    assert_int_equal(dt_dataset_open(&d, path, "val", &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "belongs to split 'train', but split 'val' was requested"));
    assert_int_equal(dt_dataset_open(&d, path, "train", &err), 0);
    assert_int_equal(dt_dataset_info(d)->documents, 3000);
    assert_int_equal(dt_dataset_tokens(d, 1000, 100, ids, &err), 0);
    assert_memory_equal(ids, all + 1000, sizeof ids);
    dt_dataset_close(d);
    free(path);
}

static void absent_splits_are_named(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d;
    assert_int_equal(dt_dataset_open(&d, scratch, "val", &err), DT_EMISSING);
    assert_non_null(strstr(err.text, "split 'val' does not exist; choose one of: train"));
    assert_int_equal(dt_dataset_open(&d, "/dev", "val", &err), DT_EMISSING);
    assert_null(d);
}

static void each_epoch_holds_each_sample_once(void **state)
{
    (void)state;
    const uint64_t samples = 1009;
    int different = 0;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        char *seen = calloc(samples, 1);
        for (uint64_t i = 0; i < samples; i++) {
            uint64_t sample = dt_dataset_sample_at(42, samples, epoch * samples + i);
            assert_true(sample < samples);
            assert_false(seen[sample]);
            seen[sample] = 1;
            different += sample != dt_dataset_sample_at(42, samples, i);
        }
        free(seen);
    }
    assert_true(different > 1900);
    uint64_t many = (1ull << 40) + 7, place = many * 5 + (1ull << 33);
    assert_true(dt_dataset_sample_at(42, many, place) < many);
    assert_int_not_equal(dt_dataset_sample_at(42, many, place),
                         dt_dataset_sample_at(43, many, place));
}

/* A loader's first batches are those of the order. */
static void check_batches(const struct dt_loader_options *o, uint64_t batches)
{
    struct dt_error err = {0};
    struct dt_dataset *d = open_train();
    struct dt_loader *l;
    struct dt_samples got;
    uint64_t samples = (tokens - 1) / LENGTH;
    assert_int_equal(dt_loader_open(&l, d, o, &err), 0);
    for (uint64_t b = 0; b < batches; b++) {
        assert_int_equal(dt_loader_next(l, &got, &err), 0);
        for (uint32_t row = 0; row < o->batch; row++) {
            uint64_t place = o->first + b * o->batch + row;
            uint64_t k = o->order.shuffle ? dt_dataset_sample_at(o->order.seed, samples, place)
                                          : place % samples;
            assert_memory_equal(got.ids + row * (LENGTH + 1), all + k * LENGTH, 4 * (LENGTH + 1));
        }
    }
    dt_loader_free(l);
    dt_dataset_close(d);
}

static void the_loader_follows_the_order(void **state)
{
    (void)state;
    struct dt_loader_options o = {.length = LENGTH, .batch = 7, .order.seed = 9, .workers = 1};
    uint64_t epoch = (tokens - 1) / LENGTH / 7;
    check_batches(&o, epoch + 10);
    o.order.shuffle = true;
    check_batches(&o, epoch + 10);
}

static void one_integer_resumes_the_loader(void **state)
{
    (void)state;
    struct dt_loader_options o = {
        .length = LENGTH, .batch = 3, .order = {.seed = 9, .shuffle = true}, .workers = 1};
    for (o.first = 1; o.first < 20000; o.first = 3 * o.first + 5)
        check_batches(&o, 5);
}

static void the_loader_refuses_what_is_too_short(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_loader *l;
    struct dt_dataset *d;
    struct dt_loader_options o = {.length = 5, .batch = 1};
    uint64_t samples;
    char *path = dt_path_join(scratch, "train-00002.dts"); /* 5 tokens */
    assert_int_equal(dt_dataset_open(&d, path, "train", &err), 0);
    assert_int_equal(dt_loader_open(&l, d, &o, &err), DT_EINVALID);
    o.length = 4;
    assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
    assert_int_equal(dt_dataset_samples(d, 4, &samples, &err), 0);
    assert_int_equal(samples, 1);
    dt_loader_free(l);
    dt_dataset_close(d);
    free(path);
}

static int read_none(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    (void)state, (void)k, (void)ids;
    return dt_fail(err, DT_EINVALID, "there is none");
}

static void a_source_of_other_samples_is_named(void **state)
{
    (void)state;
    struct dt_error err = {0};
    uint64_t samples;
    const struct dt_sample_source source = {.length = 4, .samples = 1, .read = read_none};
    struct dt_dataset *d = dt_dataset_from_source(&source);
    assert_int_equal(dt_dataset_samples(d, 4, &samples, &err), 0);
    assert_int_equal(dt_dataset_samples(d, 8, &samples, &err), DT_EINVALID);
    assert_string_equal(err.text, "the text was opened for sequences of 4 tokens, not of 8");
    dt_dataset_close(d);
}

static int write_mixture(const char *path, const char *other, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_printf(
        &text,
        "{\"version\": 1, \"mixture\": [{\"data\": \"%s/train-00000.dts\", \"weight\": 3},"
        " {\"data\": \"%s\", \"weight\": 1}]}",
        scratch, other);
    int rc = dt_file_write(path, text.data, text.size, err);
    dt_buffer_release(&text);
    return rc;
}

/* The first shard in three stages, alone, in a mixture and alone again, goes on where it was. */
static void stages_continue_their_data(void **state)
{
    (void)state;
    enum { SEQUENCE = 4, FIRST = 50, SECOND = 100 };
    struct dt_error err = {0};
    struct dt_dataset *d, *alone, *copy;
    const struct dt_sample_order order = {.seed = 5, .shuffle = true};
    char *path = dt_path_join(scratch, "train-00000.dts"),
         *mixture = dt_path_join(scratch, "m.json");
    char *other = dt_path_join(scratch, "train-00001.dts"), *list;
    assert_int_equal(write_mixture(mixture, other, &err), 0);
    list =
        dt_asprintf("%s:%d,%s:%d,%s", path, SEQUENCE * FIRST - 1, mixture, SEQUENCE * SECOND, path);
    assert_int_equal(dt_dataset_open(&alone, path, "train", &err), 0);
    assert_int_equal(dt_dataset_open_stages(&d, list, "train", SEQUENCE, &err), 0);
    assert_int_equal(dt_dataset_clone(&copy, d, &err), 0);
    uint64_t samples, next = 0;
    assert_int_equal(dt_dataset_samples(alone, SEQUENCE, &samples, &err), 0);
    for (uint64_t i = 0; i < FIRST + SECOND + 70; i++) {
        uint32_t ids[SEQUENCE + 1], expected[SEQUENCE + 1];
        uint64_t k = dt_dataset_order(d, SEQUENCE, &order, i);
        assert_int_equal(k, dt_dataset_order(copy, SEQUENCE, &order, i));
        assert_int_equal(dt_dataset_sample(d, SEQUENCE, k, ids, &err), 0);
        uint64_t own = dt_dataset_order(alone, SEQUENCE, &order, next);
        assert_int_equal(dt_dataset_sample(alone, SEQUENCE, own, expected, &err), 0);
        bool same = memcmp(ids, expected, sizeof ids) == 0;
        assert_true(same || (i >= FIRST && i < FIRST + SECOND));
        next += same;
    }
    assert_int_equal(next, FIRST + SECOND * 3 / 4 + 70);
    assert_true(dt_dataset_weights(d) != 0);
    dt_dataset_close(copy);
    dt_dataset_close(d);
    dt_dataset_close(alone);
    free(list);
    free(mixture);
    free(other);
    free(path);
}

/* Changes one byte of a shard, runs check, and mends it. */
static void with_damage(const char *name, long offset, void (*check)(void))
{
    char *path = dt_path_join(scratch, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET);
    int c = fgetc(f);
    fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET);
    fputc(c ^ 4, f);
    fflush(f);
    check();
    fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET);
    fputc(c, f);
    fclose(f);
    free(path);
}

static void opening_fails(void)
{
    struct dt_error err = {0};
    struct dt_dataset *d;
    assert_int_equal(dt_dataset_open(&d, scratch, "train", &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "train-00001.dts"));
}

static void loading_fails(void)
{
    struct dt_error err = {0};
    struct dt_dataset *d = open_train();
    struct dt_loader *l;
    struct dt_samples samples;
    struct dt_loader_options o = {
        .length = LENGTH, .batch = 64, .order.shuffle = true, .workers = 1};
    int rc = 0;
    assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
    for (int i = 0; i < 10000 && rc == 0; i++)
        rc = dt_loader_next(l, &samples, &err);
    assert_int_equal(rc, DT_EFORMAT);
    assert_non_null(strstr(err.text, "train-00001.dts: frame 2 at byte"));
    dt_loader_free(l);
    dt_dataset_close(d);
}

static void damage_is_found_where_it_is_read(void **state)
{
    (void)state;
    with_damage("train-00001.dts", 20, opening_fails);   /* header */
    with_damage("train-00001.dts", -3, opening_fails);   /* seek table */
    with_damage("train-00001.dts", -30, opening_fails);  /* seek table */
    with_damage("train-00001.dts", 3000, loading_fails); /* data */
    dt_dataset_close(open_train());
}

static void another_shard_in_its_place_is_found(void **state)
{
    (void)state;
    struct dt_error err = {0};
    char *a = dt_path_join(scratch, "train-00000.dts");
    char *b = dt_path_join(scratch, "train-00001.dts");
    char *aside = dt_path_join(scratch, "aside");
    char *data;
    size_t size;
    assert_int_equal(rename(b, aside), 0);
    assert_int_equal(dt_file_read(a, 1 << 30, &data, &size, &err), 0);
    assert_int_equal(dt_file_write(b, data, size, &err), 0);
    opening_fails();
    assert_int_equal(rename(aside, b), 0);
    free(data);
    free(a);
    free(b);
    free(aside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_those_of_all_shards),
        cmocka_unit_test(any_range_of_tokens_is_found),
        cmocka_unit_test(any_document_is_found),
        cmocka_unit_test(one_shard_is_a_data_set),
        cmocka_unit_test(absent_splits_are_named),
        cmocka_unit_test(each_epoch_holds_each_sample_once),
        cmocka_unit_test(the_loader_follows_the_order),
        cmocka_unit_test(one_integer_resumes_the_loader),
        cmocka_unit_test(the_loader_refuses_what_is_too_short),
        cmocka_unit_test(a_source_of_other_samples_is_named),
        cmocka_unit_test(stages_continue_their_data),
        cmocka_unit_test(damage_is_found_where_it_is_read),
        cmocka_unit_test(another_shard_in_its_place_is_found),
    };
    return cmocka_run_group_tests(tests, make_shards, remove_shards);
}
