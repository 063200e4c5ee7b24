/* SPDX-License-Identifier: MIT */
/* libdt.so.0 as other programs use it: ids, tokens and batches are those of the modules; errors
 * are lines; calls of threads and of a child process. */
#include "scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

#include "api/dt.h"
#include "base/buffer.h"
#include "base/path.h"
#include "math/rng.h"
#include "shard/loader.h"
#include "shard/sharder.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

#define EOT    499
#define LENGTH 32
#define BATCH  8
#define TEXTS  400

static char error[DT_API_ERROR_TEXT];
static char *texts[TEXTS];
static size_t sizes[TEXTS];

static const char tokenizer_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":260,"
    "\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":true}],\"normalizer\":null,\"pre_tokenizer\":{\"type\":"
    "\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
    "\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
    "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"vocab\":{";

/* The letter that stands for a byte in byte-level BPE, as UTF-8. */
static void add_letter(struct dt_buffer *json, unsigned byte)
{
    static unsigned others;
    others = byte == 0 ? 0 : others;
    bool shown = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    unsigned letter = shown ? byte : 256 + others++;
    if (letter == '"' || letter == '\\')
        dt_buffer_add_char(json, '\\');
    if (letter >= 128)
        dt_buffer_add_char(json, (char)(0xC0 | letter >> 6));
    dt_buffer_add_char(json, (char)(letter < 128 ? letter : 0x80 | (letter & 0x3F)));
}

static int write_tokenizer(void)
{
    struct dt_error err;
    struct dt_buffer json = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&json, tokenizer_json);
    for (unsigned byte = 0; byte < 256; byte++) {
        dt_buffer_add_string(&json, "\"");
        add_letter(&json, byte);
        dt_buffer_printf(&json, "\":%u,", byte);
    }
    dt_buffer_add_string(&json, "\"th\":256,\"the\":257,\"ab\":258,\"an\":259},\"merges\":[\"t h\","
                                "\"th e\",\"a b\",\"a n\"]}}");
    int rc = dt_file_write("tokenizer.json", json.data, json.size, &err);
    dt_buffer_release(&json);
    return rc;
}

static int write_shards(void)
{
    struct dt_error err;
    struct dt_sharder *s;
    const struct dt_shard_info info = {
        .vocab_size = EOT + 1, .eot = EOT, .tokenizer = 5, .provenance = "dt-test\n"};
    const struct dt_sharder_options o = {.tokens_per_shard = 20000, .level = 1, .threads = 1};
    int rc = dt_sharder_new(&s, "shards", &info, &o, &err);
    for (int i = 0; rc == 0 && i < 500; i++) {
        uint32_t ids[200];
        struct dt_random r = dt_random(3, 1, (uint64_t)i);
        struct dt_shard_document d = {.hash = (uint64_t)i, .tokens = 1 + r.word[0] % 200};
        for (uint64_t k = 0; k < d.tokens; k++)
            ids[k] = dt_random(3, (uint64_t)i, k).word[1] % EOT;
        ids[d.tokens - 1] = EOT;
        rc = dt_sharder_add(s, ids, &d, &err);
    }
    rc = rc == 0 ? dt_sharder_finish(s, &err) : rc;
    dt_sharder_free(s);
    return rc;
}

/* Texts of up to 3 KB, some of which hold a NUL, a special token or nothing. */
static void make_texts(void)
{
    static const char *const words[] = {"the",  " the",         " than", "ab",
                                        "\n\n", " caf\xC3\xA9", "1",     "<|endoftext|>"};
    for (int i = 0; i < TEXTS; i++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        for (int k = i % 7 == 0 ? 900 : 0; k < i + 500; k++)
            dt_buffer_add_string(&text, words[dt_random(9, (uint64_t)i, (uint64_t)k).word[0] % 8]);
        dt_buffer_append(&text, "\0x", i % 5 == 0 ? 2 : 0);
        texts[i] = text.data;
        sizes[i] = text.size;
    }
}

static int make_files(void **state)
{
    make_texts();
    return enter_scratch(state) < 0 || write_tokenizer() < 0 || write_shards() < 0 ? -1 : 0;
}

static int remove_files(void **state)
{
    for (int i = 0; i < TEXTS; i++)
        free(texts[i]);
    return leave_scratch(state);
}

static struct dt_api_tokenizer *open_tokenizer(void)
{
    struct dt_api_tokenizer *t;
    if (dt_api_tokenizer_open(&t, "tokenizer.json", NULL, error) < 0)
        fail_msg("%s", error);
    return t;
}

/* --- tokenizers ------------------------------------------------------------------------------- */

static void encode(struct dt_api_tokenizer *t, const char *frame, unsigned flags, int threads,
                   struct dt_api_encoding *e)
{
    if (dt_api_tokenizer_encode(t, (const char *const *)texts, sizes, TEXTS, frame, flags, threads,
                                e, error) < 0)
        fail_msg("%s", error);
}

static void ids_are_those_of_the_encoder_in_a_batch_on_threads(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_tokenizer *own;
    struct dt_api_tokenizer *t = open_tokenizer();
    assert_int_equal(dt_tokenizer_load(&own, "tokenizer.json", &err), 0);
    for (unsigned special = 0; special < 2; special++) {
        for (int threads = 1; threads < 4; threads++) {
            struct dt_encoder *encoder = dt_encoder_new(own);
            struct dt_api_encoding e;
            dt_encoder_allow_special(encoder, (int)special);
            encode(t, "none", special ? DT_API_ENCODE_SPECIAL : 0, threads, &e);
            assert_null(e.spans);
            for (uint64_t i = 0, from = 0; i < TEXTS; from = e.ends[i++]) {
                struct dt_ids ids = DT_IDS_EMPTY;
                dt_encoder_encode(encoder, texts[i], sizes[i], &ids);
                assert_int_equal(e.ends[i] - from, ids.count);
                assert_memory_equal(e.ids + from, ids.data, ids.count * sizeof *ids.data);
                dt_ids_release(&ids);
            }
            dt_api_encoding_release(&e);
            dt_encoder_free(encoder);
        }
    }
    dt_tokenizer_free(own);
    dt_api_tokenizer_close(t);
}

static void spans_and_frame_are_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    struct dt_api_tokenizer *t = open_tokenizer();
    struct dt_api_encoding one, two;
    encode(t, "eot", DT_API_ENCODE_SPANS, 1, &one);
    encode(t, "eot", DT_API_ENCODE_SPANS, 2, &two);
    uint64_t from = 0;
    for (uint64_t i = 0; i < TEXTS; from = one.ends[i++]) {
        uint64_t last = one.ends[i] - 1, at = 0;
        assert_int_equal(two.ends[i], one.ends[i]);
        assert_int_equal(one.ids[last], dt_api_tokenizer_end(t));
        assert_int_equal(one.spans[2 * last] | one.spans[2 * last + 1], 0);
        for (uint64_t k = from; k < last; at = one.spans[2 * k++ + 1])
            assert_int_equal(one.spans[2 * k], at);
        assert_int_equal(at, sizes[i]);
    }
    assert_memory_equal(one.ids, two.ids, from * sizeof *one.ids);
    assert_memory_equal(one.spans, two.spans, from * 2 * sizeof *one.spans);
    dt_api_encoding_release(&one);
    dt_api_encoding_release(&two);
    dt_api_tokenizer_close(t);
}

static void no_text_has_no_ids(void **state)
{
    (void)state;
    struct dt_api_tokenizer *t = open_tokenizer();
    struct dt_api_encoding e;
    const char *empty = "";
    size_t size = 0;
    assert_int_equal(dt_api_tokenizer_encode(t, NULL, NULL, 0, "none", 0, 2, &e, error), 0);
    dt_api_encoding_release(&e);
    assert_int_equal(dt_api_tokenizer_encode(t, &empty, &size, 1, "none", 0, 2, &e, error), 0);
    assert_int_equal(e.ends[0], 0);
    dt_api_encoding_release(&e);
    dt_api_tokenizer_close(t);
}

static void ids_decode_to_the_text_and_tokens_have_ids(void **state)
{
    (void)state;
    struct dt_api_tokenizer *t = open_tokenizer();
    struct dt_api_encoding e;
    char *text;
    size_t size;
    encode(t, "none", 0, 1, &e);
    for (uint64_t i = 0, from = 0; i < TEXTS; from = e.ends[i++]) {
        assert_int_equal(
            dt_api_tokenizer_decode(t, e.ids + from, e.ends[i] - from, &text, &size, error), 0);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(text, texts[i] ? texts[i] : "", size);
        dt_api_free(text);
    }
    dt_api_encoding_release(&e);
    uint32_t end = dt_api_tokenizer_find(t, "<|endoftext|>", 13);
    assert_int_equal(end, dt_api_tokenizer_end(t));
    assert_int_equal(dt_api_tokenizer_size(t), 261);
    assert_int_equal(dt_api_tokenizer_is_special(t, end), 1);
    assert_int_equal(dt_api_tokenizer_is_special(t, 257) + dt_api_tokenizer_is_special(t, 9999), 0);
    assert_memory_equal(dt_api_tokenizer_token(t, 257, &size), "the", size);
    assert_int_equal(size, 3);
    dt_api_tokenizer_token(t, 9999, &size);
    assert_int_equal(size, 0);
    dt_api_tokenizer_close(t);
}

static void errors_are_the_lines_of_the_programs(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_tokenizer *own;
    struct dt_api_tokenizer *t;
    struct dt_api_encoding e;
    const uint32_t id = 99999;
    char *text;
    size_t size;
    assert_int_equal(dt_api_tokenizer_open(&t, "none.json", NULL, error),
                     dt_tokenizer_load(&own, "none.json", &err));
    assert_string_equal(error, err.text);
    assert_null(t);
    t = open_tokenizer();
    assert_int_equal(dt_api_tokenizer_decode(t, &id, 1, &text, &size, error), DT_API_EFORMAT);
    assert_non_null(strstr(error, "99999"));
    assert_null(text);
    assert_int_equal(dt_api_tokenizer_encode(t, NULL, NULL, 0, "both", 0, 1, &e, error),
                     DT_API_EINVALID);
    assert_string_equal(error, "frame 'both': auto, none, eot, bos, bos-eot or template expected");
    assert_int_equal(dt_api_tokenizer_encode(t, NULL, NULL, 0, "none", 8, 1, &e, error),
                     DT_API_EINVALID);
    dt_api_tokenizer_close(t);
}

static void *encode_often(void *t)
{
    for (int i = 0; i < 20; i++) {
        struct dt_api_encoding e;
        encode(t, "none", 0, 1 + i % 2, &e);
        dt_api_encoding_release(&e);
    }
    return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct dt_api_tokenizer *t = open_tokenizer();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, t), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    dt_api_tokenizer_close(t);
}

/* --- data sets and loaders -------------------------------------------------------------------- */

static struct dt_api_dataset *open_shards(void)
{
    struct dt_api_dataset *d;
    if (dt_api_dataset_open(&d, "shards", "train", error) < 0)
        fail_msg("%s", error);
    return d;
}

static struct dt_api_loader_options options_of(uint32_t rank, uint32_t ranks, int32_t workers)
{
    return (struct dt_api_loader_options){.size = sizeof(struct dt_api_loader_options),
                                          .seed = 7,
                                          .length = LENGTH,
                                          .batch = BATCH,
                                          .ranks = ranks,
                                          .rank = rank,
                                          .shuffle = 1,
                                          .shuffle_block = 500,
                                          .shuffle_window = 3,
                                          .workers = workers,
                                          .scope = DT_API_SCOPE_DOCUMENT};
}

static struct dt_api_loader *open_loader(const struct dt_api_loader_options *o)
{
    struct dt_api_loader *l;
    struct dt_api_dataset *d = open_shards();
    if (dt_api_loader_open(&l, d, o, error) < 0)
        fail_msg("%s", error);
    dt_api_dataset_close(d);
    return l;
}

static void free_batch(struct dt_api_batch *b)
{
    dt_api_free(b->ids);
    dt_api_free(b->begins);
    dt_api_free(b->ends);
}

static void documents_are_ranges_of_tokens(void **state)
{
    (void)state;
    struct dt_api_dataset *d = open_shards();
    struct dt_api_dataset_info info;
    uint64_t at = 0, first, count, samples;
    uint32_t ids[200];
    dt_api_dataset_describe(d, &info, sizeof info);
    assert_int_equal(info.documents, 500);
    assert_int_equal(info.end, EOT);
    for (uint64_t i = 0; i < info.documents; i++, at += count) {
        assert_int_equal(dt_api_dataset_document(d, i, &first, &count, error), 0);
        assert_int_equal(first, at);
        assert_int_equal(dt_api_dataset_read(d, first, count, ids, error), 0);
        assert_int_equal(ids[count - 1], EOT);
        assert_int_equal(count < 2 || ids[0] == dt_random(3, i, 0).word[1] % EOT, 1);
    }
    assert_int_equal(at, info.tokens);
    assert_int_equal(dt_api_dataset_samples(d, LENGTH, &samples, error), 0);
    assert_int_equal(samples, (info.tokens - 1) / LENGTH);
    assert_int_equal(dt_api_dataset_samples(d, 0, &samples, error), DT_API_EINVALID);
    assert_non_null(strstr(error, ": a sample has at least one token"));
    dt_api_dataset_close(d);
}

/* Batches of the module, which dt-train reads, and of two ranks here. */
static void batches_are_those_of_the_loader_for_any_rank(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *own_data;
    struct dt_loader *own;
    struct dt_samples samples;
    const struct dt_loader_options o = {
        .length = LENGTH,
        .batch = BATCH,
        .order = {.seed = 7, .shuffle = true, .block = 500, .window = 3},
        .scope = DT_SCOPE_DOCUMENT};
    assert_int_equal(dt_dataset_open(&own_data, "shards", "train", &err), 0);
    assert_int_equal(dt_loader_open(&own, own_data, &o, &err), 0);
    struct dt_api_loader_options halves[2] = {options_of(0, 2, 1), options_of(1, 2, 0)};
    struct dt_api_loader *ranks[2] = {open_loader(&halves[0]), open_loader(&halves[1])};
    size_t row = LENGTH * sizeof(int32_t);
    for (uint64_t n = 0; n < 500; n++) {
        assert_int_equal(dt_loader_next(own, &samples, &err), 0);
        uint64_t targets = 0;
        for (size_t rank = 0; rank < 2; rank++) {
            struct dt_api_batch b;
            assert_int_equal(dt_api_loader_next(ranks[rank], &b, error), 0);
            assert_int_equal(b.position, n * BATCH);
            assert_int_equal(b.rows * 2, BATCH);
            size_t from = rank * b.rows;
            assert_memory_equal(b.ids, samples.ids + from * (LENGTH + 1), b.rows * (row + 4));
            assert_memory_equal(b.begins, samples.begins + from * LENGTH, b.rows * row);
            assert_memory_equal(b.ends, samples.ends + from * LENGTH, b.rows * row);
            targets += b.targets;
            free_batch(&b);
        }
        assert_int_equal(targets, samples.targets);
    }
    dt_api_loader_close(ranks[0]);
    dt_api_loader_close(ranks[1]);
    dt_loader_free(own);
    dt_dataset_close(own_data);
}

static void a_batch_outlives_its_loader_and_one_resumes_after_it(void **state)
{
    (void)state;
    struct dt_api_loader_options o = options_of(0, 1, 2);
    struct dt_api_loader *l = open_loader(&o);
    struct dt_api_batch kept[6], again;
    for (int i = 0; i < 6; i++)
        assert_int_equal(dt_api_loader_next(l, &kept[i], error), 0);
    dt_api_loader_close(l);
    o.first = kept[2].position + BATCH;
    l = open_loader(&o);
    for (int i = 3; i < 6; i++) {
        assert_int_equal(dt_api_loader_next(l, &again, error), 0);
        assert_int_equal(again.position, kept[i].position);
        assert_memory_equal(again.ids, kept[i].ids, 4 * BATCH * (LENGTH + 1));
        free_batch(&again);
    }
    dt_api_loader_close(l);
    for (int i = 0; i < 6; i++)
        free_batch(&kept[i]);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    struct dt_api_dataset *d = open_shards();
    struct dt_api_loader *l;
    struct dt_api_loader_options o = options_of(2, 2, 0);
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), DT_API_EINVALID);
    assert_null(l);
    o = options_of(0, 1, -1);
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), DT_API_EINVALID);
    o = options_of(0, 1, 0);
    o.scope = 3;
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), DT_API_EINVALID);
    o = options_of(0, 1, 0);
    o.batch = o.length = UINT32_MAX - 1;
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), DT_API_ENOMEM);
    assert_non_null(strstr(error, "MB are left"));
    o.size = 4096;
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), DT_API_EINVALID);
    dt_api_dataset_close(d);
}

/* A caller of an older version has fewer members. */
static void options_that_are_cut_have_defaults(void **state)
{
    (void)state;
    struct dt_api_dataset *d = open_shards();
    struct dt_api_loader *l;
    struct dt_api_loader_options o = options_of(0, 1, 0);
    o.size = offsetof(struct dt_api_loader_options, ranks);
    o.ranks = 99;
    assert_int_equal(dt_api_loader_open(&l, d, &o, error), 0);
    dt_api_loader_close(l);
    dt_api_dataset_close(d);
}

static void a_child_encodes_and_is_refused_a_loader_of_its_parent(void **state)
{
    (void)state;
    struct dt_api_loader_options o = options_of(0, 1, 1);
    struct dt_api_loader *l = open_loader(&o);
    struct dt_api_tokenizer *t = open_tokenizer();
    struct dt_api_encoding e;
    struct dt_api_batch b;
    encode(t, "none", 0, 2, &e); /* whose threads the child does not have */
    pid_t child = fork();
    if (child == 0) {
        struct dt_api_encoding same;
        alarm(60);
        encode(t, "none", 0, 2, &same);
        bool equal = memcmp(same.ends, e.ends, TEXTS * sizeof *e.ends) == 0;
        bool refused = dt_api_loader_next(l, &b, error) == DT_API_EINVALID;
        dt_api_loader_close(l);
        const char *end = equal && refused ? "true" : "false"; /* valgrind looks at _exit() */
        execlp(end, end, (char *)NULL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    dt_api_encoding_release(&e);
    dt_api_tokenizer_close(t);
    dt_api_loader_close(l);
}

struct endless {
    struct dt_api_dataset *dataset;
    atomic_bool ends;
};

static void *read_all_tokens(void *argument)
{
    struct endless *e = argument;
    struct dt_api_dataset_info info;
    char text[DT_API_ERROR_TEXT];
    dt_api_dataset_describe(e->dataset, &info, sizeof info);
    uint32_t *ids = dt_alloc(info.tokens, sizeof *ids);
    while (!e->ends)
        assert_int_equal(dt_api_dataset_read(e->dataset, 0, info.tokens, ids, text), 0);
    free(ids);
    return NULL;
}

static void a_child_reads_a_dataset_that_a_thread_of_its_parent_reads(void **state)
{
    (void)state;
    struct endless e = {.dataset = open_shards()};
    pthread_t reader;
    uint32_t ids[9], same[9];
    assert_int_equal(dt_api_dataset_read(e.dataset, 5, 9, ids, error), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_all_tokens, &e), 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            bool equal = dt_api_dataset_read(e.dataset, 5, 9, same, error) == 0 &&
                         memcmp(same, ids, sizeof ids) == 0;
            const char *end = equal ? "true" : "false";
            execlp(end, end, (char *)NULL);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    e.ends = true;
    pthread_join(reader, NULL);
    dt_api_dataset_close(e.dataset);
}

/* --- cleaning --------------------------------------------------------------------------------- */

static struct dt_api_cleaner *open_cleaner(struct dt_api_cleaner_options o)
{
    struct dt_api_cleaner *c;
    o.size = sizeof o;
    if (dt_api_cleaner_open(&c, &o, error) < 0)
        fail_msg("%s", error);
    return c;
}

static void a_document_is_repaired_and_kept_or_dropped_with_its_rule(void **state)
{
    (void)state;
    struct dt_api_cleaned d;
    struct dt_api_cleaner *c = open_cleaner((struct dt_api_cleaner_options){
        .rule_text = "gopher-words-min: 3\n", .space = "trim", .mask = "email"});
    const char *text = "  caf\xC3\xA9 \xFF of a.b@example.org \r\n";
    assert_int_equal(dt_api_cleaner_apply(c, text, strlen(text), "u", "{\"a\":1}", &d, error), 0);
    assert_null(d.rule);
    assert_string_equal(d.text, "caf\xC3\xA9 \xEF\xBF\xBD of |||EMAIL_ADDRESS|||");
    assert_string_equal(d.meta, "{\"a\":1}");
    dt_api_cleaned_release(&d);
    assert_int_equal(dt_api_cleaner_apply(c, "two words", 9, NULL, NULL, &d, error), 0);
    assert_string_equal(d.rule, "gopher-words-min");
    assert_true(d.value == 2);
    dt_api_cleaned_release(&d);
    assert_int_equal(dt_api_cleaner_apply(c, "x", 1, "\xFF", NULL, &d, error), DT_API_EINVALID);
    static const char *const wrong[] = {"[1]", "5", "{", "}", "{\"a\":1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(dt_api_cleaner_apply(c, "x", 1, "u", wrong[i], &d, error),
                         DT_API_EINVALID);
        assert_string_equal(error, "meta of a document is not a JSON object");
    }
    dt_api_cleaner_close(c);
}

static void rules_and_models_of_the_installation_are_found(void **state)
{
    (void)state;
    struct dt_api_cleaned d;
    const char *rules[] = {"gopher", "c4"};
    const char *text = "This is the first sentence of a text in English, and this is the next.";
    struct dt_api_cleaner *c = open_cleaner(
        (struct dt_api_cleaner_options){.rules = rules, .rule_count = 2, .identifier = ""});
    assert_int_equal(dt_api_cleaner_apply(c, text, strlen(text), NULL, NULL, &d, error), 0);
    assert_non_null(strstr(d.meta, "\"lang\":\"en\""));
    assert_non_null(d.rule);
    dt_api_cleaned_release(&d);
    dt_api_cleaner_close(c);
}

static void members_are_added_to_meta_with_blanks_around_and_in_it(void **state)
{
    (void)state;
    struct dt_api_cleaned d;
    struct dt_api_cleaner *c = open_cleaner((struct dt_api_cleaner_options){.identifier = ""});
    static const char *const cases[][2] = {
        {NULL, "{\"lang\""},     {" \n", "{\"lang\""},
        {"{} ", "{\"lang\""},    {"\t{\"a\":1}\r\n", "{\"a\":1,\"lang\""},
        {"{\n}", "{\n\"lang\""}, {"{\"a\":1\n}", "{\"a\":1\n,\"lang\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dt_api_cleaner_apply(c, "the cat", 7, "u", cases[i][0], &d, error), 0);
        assert_memory_equal(d.meta, cases[i][1], strlen(cases[i][1]));
        assert_int_equal(strlen(d.meta), d.meta_size);
        dt_api_cleaned_release(&d);
    }
    dt_api_cleaner_close(c);
}

static void unknown_rules_and_choices_are_refused(void **state)
{
    (void)state;
    struct dt_api_cleaner *c;
    struct dt_api_cleaner_options o = {.size = sizeof o, .rule_text = "\nno-such: 1\n"};
    assert_int_equal(dt_api_cleaner_open(&c, &o, error), DT_API_EFORMAT);
    assert_string_equal(error, "rules:2: unknown rule 'no-such'");
    assert_null(c);
    o = (struct dt_api_cleaner_options){.size = sizeof o, .normalize = "nfx"};
    assert_int_equal(dt_api_cleaner_open(&c, &o, error), DT_API_EINVALID);
    assert_string_equal(error, "normalize 'nfx': none of none nfc nfkc");
    o = (struct dt_api_cleaner_options){.size = sizeof o, .mask = "email,age"};
    assert_int_equal(dt_api_cleaner_open(&c, &o, error), DT_API_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_encoder_in_a_batch_on_threads),
        cmocka_unit_test(spans_and_frame_are_the_same_on_any_number_of_threads),
        cmocka_unit_test(no_text_has_no_ids),
        cmocka_unit_test(ids_decode_to_the_text_and_tokens_have_ids),
        cmocka_unit_test(errors_are_the_lines_of_the_programs),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(documents_are_ranges_of_tokens),
        cmocka_unit_test(batches_are_those_of_the_loader_for_any_rank),
        cmocka_unit_test(a_batch_outlives_its_loader_and_one_resumes_after_it),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(options_that_are_cut_have_defaults),
        cmocka_unit_test(a_child_encodes_and_is_refused_a_loader_of_its_parent),
        cmocka_unit_test(a_child_reads_a_dataset_that_a_thread_of_its_parent_reads),
        cmocka_unit_test(a_document_is_repaired_and_kept_or_dropped_with_its_rule),
        cmocka_unit_test(rules_and_models_of_the_installation_are_found),
        cmocka_unit_test(members_are_added_to_meta_with_blanks_around_and_in_it),
        cmocka_unit_test(unknown_rules_and_choices_are_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
