/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hash/hash.h"
#include "math/rng.h"
#include "pretokenize/byte-level.h"
#include "token/batch-encoder.h"
#include "token/bpe.h"

/* A tokenizer over all bytes whose merges, of a few letters, are random: many
 * pairs compete, and some tokens are made in two ways. */
static struct dt_tokenizer *random_tokenizer(uint64_t seed)
{
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("gpt2"));
    struct dt_error err;
    struct dt_rng rng;
    unsigned char order[256];
    dt_rng_init(&rng, seed);
    dt_byte_level_order(order);
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(dt_tokenizer_add(t, i, (char *)&order[i], 1, &err), 0);
    uint32_t letters[200], count = 4;
    for (uint32_t i = 0; i < count; i++)
        letters[i] = dt_tokenizer_find(t, "abcd" + i, 1);
    while (count < 120) {
        struct dt_merge merge = {letters[dt_rng_below(&rng, count)],
                                 letters[dt_rng_below(&rng, count)], 0};
        struct dt_buffer bytes = DT_BUFFER_EMPTY;
        bool known = false;
        for (uint32_t i = 0; i < t->merge_count; i++)
            known |= t->merges[i].left == merge.left && t->merges[i].right == merge.right;
        assert_int_equal(
            dt_tokenizer_decode(t, (uint32_t[]){merge.left, merge.right}, 2, &bytes, &err), 0);
        merge.result = dt_tokenizer_find(t, bytes.data, bytes.size);
        if (!known && merge.result == DT_NO_TOKEN) {
            merge.result = t->size;
            letters[count++] = t->size;
            assert_int_equal(dt_tokenizer_add(t, t->size, bytes.data, bytes.size, &err), 0);
        }
        if (!known)
            dt_tokenizer_add_merge(t, merge);
        dt_buffer_release(&bytes);
    }
    assert_int_equal(dt_tokenizer_finish(t, &err), 0);
    return t;
}

/* Byte-pair encoding as its definition says, looking through the list of merges. */
static size_t encode_by_definition(const struct dt_tokenizer *t, const unsigned char *piece,
                                   size_t size, uint32_t *ids)
{
    for (size_t i = 0; i < size; i++)
        ids[i] = dt_tokenizer_find(t, (const char *)piece + i, 1);
    for (uint32_t rank = 0; rank < t->merge_count;) {
        const struct dt_merge *m = &t->merges[rank];
        size_t i = 0;
        while (i + 1 < size && (ids[i] != m->left || ids[i + 1] != m->right))
            i++;
        if (i + 1 >= size) {
            rank++;
            continue;
        }
        ids[i] = m->result;
        memmove(ids + i + 1, ids + i + 2, (size - i - 2) * sizeof *ids);
        size--;
        rank = 0; /* what was made may merge earlier */
    }
    return size;
}

static void merges_happen_in_the_order_of_the_definition(void **state)
{
    (void)state;
    struct dt_rng rng;
    struct dt_bpe_work work = {NULL, NULL, 0};
    dt_rng_init(&rng, 17);
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct dt_tokenizer *t = random_tokenizer(seed);
        for (int round = 0; round < 100; round++) {
            unsigned char piece[200];
            uint32_t expected[200], ids[200];
            size_t size = 1 + dt_rng_below(&rng, round % 2 ? 200 : 48);
            uint32_t letters = 1 + dt_rng_below(&rng, 5);
            for (size_t i = 0; i < size; i++)
                piece[i] = (unsigned char)('a' + dt_rng_below(&rng, letters));
            size_t count = encode_by_definition(t, piece, size, expected);
            assert_int_equal(dt_bpe_encode(t, &work, piece, size, ids, NULL), count);
            assert_memory_equal(ids, expected, count * sizeof *ids);
        }
        dt_tokenizer_free(t);
    }
    dt_bpe_work_release(&work);
}

/* A tokenizer of ranks whose tokens, of a few letters, are random and in any order: many have no
 * parts that are tokens, or only ones of higher ranks. */
static struct dt_tokenizer *random_ranks(uint64_t seed)
{
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("gpt2"));
    struct dt_error err;
    struct dt_rng rng;
    t->model = DT_TOKEN_BPE_RANKS;
    dt_rng_init(&rng, seed);
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(dt_tokenizer_add(t, i, &(char){(char)i}, 1, &err), 0);
    while (t->size < 400) {
        char token[6];
        size_t size = 2 + dt_rng_below(&rng, sizeof token - 1);
        for (size_t i = 0; i < size; i++)
            token[i] = (char)('a' + dt_rng_below(&rng, 3));
        if (dt_tokenizer_find(t, token, size) == DT_NO_TOKEN)
            assert_int_equal(dt_tokenizer_add(t, t->size, token, size, &err), 0);
    }
    assert_int_equal(dt_tokenizer_finish(t, &err), 0);
    return t;
}

/* Merges the two tokens whose bytes together are the token of the lowest rank, the first of them,
 * until there are none. */
static size_t encode_by_ranks(const struct dt_tokenizer *t, const char *piece, size_t size,
                              uint32_t *ids)
{
    size_t ends[64], count = size;
    for (size_t i = 0; i < size; i++)
        ends[i] = i + 1;
    for (;;) {
        uint32_t least = DT_NO_TOKEN;
        size_t at = 0;
        for (size_t i = 0, from = 0; i + 1 < count; from = ends[i++]) {
            uint32_t id = dt_tokenizer_find(t, piece + from, ends[i + 1] - from);
            at = id < least ? i : at;
            least = id < least ? id : least;
        }
        if (least == DT_NO_TOKEN)
            break;
        memmove(ends + at, ends + at + 1, (--count - at) * sizeof *ends);
    }
    for (size_t i = 0, from = 0; i < count; from = ends[i++])
        ids[i] = dt_tokenizer_find(t, piece + from, ends[i] - from);
    return count;
}

static void ranks_in_any_order_merge_as_defined(void **state)
{
    (void)state;
    struct dt_rng rng;
    struct dt_bpe_work work = {NULL, NULL, 0};
    dt_rng_init(&rng, 29);
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct dt_tokenizer *t = random_ranks(seed);
        for (int round = 0; round < 300; round++) {
            char piece[64];
            uint32_t expected[64], ids[64];
            size_t size = 1 + dt_rng_below(&rng, sizeof piece);
            for (size_t i = 0; i < size; i++)
                piece[i] = (char)('a' + dt_rng_below(&rng, 3));
            size_t count = encode_by_ranks(t, piece, size, expected);
            assert_int_equal(dt_bpe_encode(t, &work, (const unsigned char *)piece, size, ids, NULL),
                             count);
            assert_memory_equal(ids, expected, count * sizeof *ids);
        }
        dt_tokenizer_free(t);
    }
    dt_bpe_work_release(&work);
}

static void pieces_merge_together_as_alone(void **state)
{
    (void)state;
    enum { COUNT = 40, MOST = 80 };
    struct dt_tokenizer *t = random_tokenizer(5);
    struct dt_bpe_work work = {NULL, NULL, 0};
    struct dt_bpe_piece pieces[COUNT];
    unsigned char text[COUNT][MOST];
    uint32_t ids[COUNT][MOST], expected[MOST];
    struct dt_rng rng;
    dt_rng_init(&rng, 31);
    for (int i = 0; i < COUNT; i++) {
        size_t size = 1 + dt_rng_below(&rng, MOST);
        for (size_t k = 0; k < size; k++)
            text[i][k] = (unsigned char)('a' + dt_rng_below(&rng, 4));
        pieces[i] = (struct dt_bpe_piece){text[i], size, ids[i], 0};
    }
    dt_bpe_encode_pieces(t, &work, pieces, COUNT);
    for (int i = 0; i < COUNT; i++) {
        size_t count = encode_by_definition(t, text[i], pieces[i].size, expected);
        assert_int_equal(pieces[i].count, count);
        assert_memory_equal(ids[i], expected, count * sizeof *expected);
    }
    dt_bpe_work_release(&work);
    dt_tokenizer_free(t);
}

static void pairs_are_found_in_full_groups_too(void **state)
{
    (void)state;
    enum { SIDE = 300 };
    struct dt_pairs pairs;
    dt_pairs_init(&pairs);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        dt_pairs_add(&pairs, i / SIDE, i % SIDE, i);
    size_t full = 0;
    for (size_t i = 0; i < (size_t)1 << pairs.bits; i++)
        full += pairs.groups[i].slots[DT_PAIR_GROUP - 1] != UINT64_MAX;
    assert_true(full > 0);
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        assert_int_equal(dt_pairs_rank(&pairs, i / SIDE, i % SIDE), i);
        assert_int_equal(dt_pairs_rank(&pairs, SIDE + i / SIDE, i % SIDE), DT_NO_PAIR);
        assert_int_equal(dt_pairs_rank(&pairs, i / SIDE, DT_NO_TOKEN), DT_NO_PAIR);
    }
    dt_pairs_release(&pairs);
}

/* More words than the table of short pieces starts with. */
static void ids_stay_when_the_table_of_short_pieces_grows(void **state)
{
    (void)state;
    struct dt_tokenizer *t = random_tokenizer(3);
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    for (uint32_t i = 0; i < 100000; i++) {
        char word[10];
        uint32_t expected[10];
        for (size_t k = 0; k < sizeof word; k++)
            word[k] = (char)('a' + (i % 50000 >> 2 * k & 3));
        size_t count = encode_by_definition(t, (unsigned char *)word, sizeof word, expected);
        ids.count = 0;
        dt_encoder_encode(e, word, sizeof word, &ids);
        assert_int_equal(ids.count, count);
        assert_memory_equal(ids.data, expected, count * sizeof *expected);
    }
    dt_ids_release(&ids);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
}

/* Not all tokens are what the merges make of their bytes. */
static void the_bytes_of_tokens_are_encoded_by_merges(void **state)
{
    (void)state;
    size_t others = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct dt_tokenizer *t = random_tokenizer(seed);
        struct dt_encoder *e = dt_encoder_new(t);
        for (uint32_t id = 0; id < t->size; id++) {
            uint32_t expected[64];
            struct dt_ids ids = DT_IDS_EMPTY;
            size_t size;
            const char *bytes = dt_tokenizer_bytes(t, id, &size);
            if (size > 64)
                continue;
            size_t count = encode_by_definition(t, (const unsigned char *)bytes, size, expected);
            dt_encoder_encode(e, bytes, size, &ids);
            assert_int_equal(ids.count, count);
            assert_memory_equal(ids.data, expected, count * sizeof *expected);
            others += count > 1 && size <= 15;
            dt_ids_release(&ids);
        }
        dt_encoder_free(e);
        dt_tokenizer_free(t);
    }
    assert_true(others > 0);
}

/* The cache gives what the merges give: the same words again and again. */
static void remembered_pieces_have_the_ids_of_new_ones(void **state)
{
    (void)state;
    struct dt_tokenizer *t = random_tokenizer(3);
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_rng rng;
    dt_rng_init(&rng, 23);
    for (int round = 0; round < 3000; round++) {
        char word[24];
        uint32_t expected[24];
        size_t size = 1 + dt_rng_below(&rng, round % 3 ? 4 : sizeof word);
        for (size_t i = 0; i < size; i++)
            word[i] = (char)('a' + dt_rng_below(&rng, 4));
        size_t count = encode_by_definition(t, (unsigned char *)word, size, expected);
        ids.count = 0;
        dt_encoder_encode(e, word, size, &ids);
        assert_int_equal(ids.count, count);
        assert_memory_equal(ids.data, expected, count * sizeof *expected);
    }
    dt_ids_release(&ids);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
}

static void endless_pieces_take_no_square_of_their_length(void **state)
{
    (void)state;
    struct dt_tokenizer *t = random_tokenizer(3);
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_buffer back = DT_BUFFER_EMPTY;
    struct dt_error err;
    size_t size = DT_BPE_MAX_PIECE + 12345; /* so that it is encoded in two parts */
    char *text = dt_alloc(size, 1);
    struct dt_rng rng;
    dt_rng_init(&rng, 1);
    for (uint32_t letters = 1; letters <= 4; letters += 3) {
        for (size_t i = 0; i < size; i++)
            text[i] = (char)('a' + dt_rng_below(&rng, letters));
        clock_t start = clock(); /* other work does not count */
        ids.count = 0;
        dt_encoder_encode(e, text, size, &ids);
        assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
        dt_buffer_clear(&back);
        assert_int_equal(dt_tokenizer_decode(t, ids.data, ids.count, &back, &err), 0);
        assert_int_equal(back.size, size);
        assert_memory_equal(back.data, text, size);
    }
    free(text);
    dt_buffer_release(&back);
    dt_ids_release(&ids);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
}

/* What dt_batch_encoder delivers, and what it should. */
struct expected {
    struct dt_buffer *texts;
    struct dt_encoder *encoder;
    uint32_t eot;
    size_t received, stop_at;
};

static int receive(const struct dt_encoded *document, void *context, struct dt_error *err)
{
    struct expected *x = context;
    const struct dt_buffer *text = &x->texts[x->received++];
    struct dt_ids ids = DT_IDS_EMPTY;
    dt_encoder_encode(x->encoder, text->data, text->size, &ids);
    if (x->eot != DT_NO_TOKEN)
        dt_ids_add(&ids, x->eot);
    assert_int_equal(document->count, ids.count);
    assert_memory_equal(document->ids, ids.data, ids.count * sizeof *ids.data);
    assert_int_equal(document->bytes, text->size);
    assert_int_equal(document->hash, dt_hash(text->data, text->size));
    dt_ids_release(&ids);
    return x->received == x->stop_at ? dt_fail(err, DT_EIO, "enough") : 0;
}

/* Documents of all sizes, some far larger than what one thread takes at a time. */
static void make_texts(struct dt_buffer *texts, size_t count)
{
    struct dt_rng rng;
    dt_rng_init(&rng, 29);
    for (size_t i = 0; i < count; i++) {
        dt_buffer_add_string(&texts[i], "");
        uint32_t words = dt_rng_below(&rng, i % 16 == 5 ? 400000 : 400);
        for (uint32_t k = 0; k < words; k++) {
            dt_buffer_add_char(&texts[i], (char)('a' + dt_rng_below(&rng, 4)));
            dt_buffer_add_char(&texts[i], "abc \n"[dt_rng_below(&rng, 5)]);
        }
    }
}

static void documents_come_back_in_order_whole_and_once(void **state)
{
    (void)state;
    enum { COUNT = 48 };
    struct dt_buffer texts[COUNT] = {DT_BUFFER_EMPTY};
    struct dt_tokenizer *t = random_tokenizer(4);
    struct dt_error err;
    make_texts(texts, COUNT);
    assert_int_equal(dt_tokenizer_add(t, t->size, "</s>", 4, &err), 0);
    t->eot = t->size - 1;
    for (int threads = 1; threads <= 4; threads++) {
        bool eot = threads % 2 == 0;
        struct dt_threads *pool = dt_threads_new(threads);
        struct dt_batch_encoder_options options = {
            .threads = pool, .frame = {.after = {t->eot}, .after_count = eot}};
        struct expected x = {texts, dt_encoder_new(t), eot ? t->eot : DT_NO_TOKEN, 0, 0};
        struct dt_batch_encoder *b = dt_batch_encoder_new(t, &options, receive, &x);
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(dt_batch_encoder_add(b, texts[i].data, texts[i].size, &err), 0);
        assert_int_equal(dt_batch_encoder_finish(b, &err), 0);
        assert_int_equal(x.received, COUNT);
        dt_batch_encoder_free(b);
        dt_threads_free(pool);
        dt_encoder_free(x.encoder);
    }
    for (size_t i = 0; i < COUNT; i++)
        dt_buffer_release(&texts[i]);
    dt_tokenizer_free(t);
}

static void an_error_of_the_receiver_ends_the_work(void **state)
{
    (void)state;
    enum { COUNT = 48 };
    struct dt_buffer texts[COUNT] = {DT_BUFFER_EMPTY};
    struct dt_tokenizer *t = random_tokenizer(4);
    struct dt_error err;
    make_texts(texts, COUNT);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct dt_threads *pool = dt_threads_new(threads);
        struct dt_batch_encoder_options options = {.threads = pool};
        struct expected x = {texts, dt_encoder_new(t), DT_NO_TOKEN, 0, 3};
        struct dt_batch_encoder *b = dt_batch_encoder_new(t, &options, receive, &x);
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < COUNT; i++)
            rc = dt_batch_encoder_add(b, texts[i].data, texts[i].size, &err);
        if (rc == 0)
            rc = dt_batch_encoder_finish(b, &err);
        assert_int_equal(rc, DT_EIO);
        assert_string_equal(err.text, "enough");
        assert_int_equal(x.received, 3);
        dt_batch_encoder_free(b);
        dt_threads_free(pool);
        dt_encoder_free(x.encoder);
    }
    for (size_t i = 0; i < COUNT; i++)
        dt_buffer_release(&texts[i]);
    dt_tokenizer_free(t);
}

/* As in GPT-NeoX's vocabulary. */
static void bytes_that_utf8_never_has_need_no_token(void **state)
{
    (void)state;
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("gpt2"));
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_spans spans = {NULL, 0, 0};
    struct dt_error err;
    static const uint32_t expected[] = {'a', 0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd, 'b'};
    static const struct dt_span places[] = {{0, 1}, {1, 2}, {1, 2}, {1, 2},
                                            {2, 3}, {2, 3}, {2, 3}, {3, 4}};
    for (unsigned c = 0; c < 0xf5; c++)
        if (c != 0xc0 && c != 0xc1)
            assert_int_equal(
                dt_tokenizer_add(t, c, (char *)&(unsigned char){(unsigned char)c}, 1, &err), 0);
    assert_int_equal(dt_tokenizer_finish(t, &err), 0);
    struct dt_encoder *e = dt_encoder_new(t);
    dt_encoder_keep_spans(e, &spans);
    dt_encoder_encode(e,
                      "a\xc0\xff"
                      "b",
                      4, &ids);
    assert_int_equal(ids.count, 8);
    assert_memory_equal(ids.data, expected, sizeof expected);
    assert_memory_equal(spans.data, places, sizeof places);
    dt_encoder_free(e);
    dt_spans_release(&spans);
    dt_ids_release(&ids);
    dt_tokenizer_free(t);
}

/* The error of a tokenizer of ranks that has a token of that id; NULL: it is ready. */
static const char *error_with_id(uint64_t id, struct dt_error *err)
{
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("gpt2"));
    t->model = DT_TOKEN_BPE_RANKS;
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(dt_tokenizer_add(t, i, &(char){(char)i}, 1, err), 0);
    assert_int_equal(dt_tokenizer_add(t, id, "ab", 2, err), 0);
    int rc = dt_tokenizer_finish(t, err);
    dt_tokenizer_free(t);
    return rc < 0 ? err->text : NULL;
}

static void ids_that_pairs_cannot_have_are_refused(void **state)
{
    struct dt_error err;
    (void)state;
    assert_null(error_with_id(2097150, &err));
    assert_string_equal(error_with_id(2097151, &err),
                        "2097152 tokens; merges take at most 2097151");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_that_pairs_cannot_have_are_refused),
        cmocka_unit_test(merges_happen_in_the_order_of_the_definition),
        cmocka_unit_test(ranks_in_any_order_merge_as_defined),
        cmocka_unit_test(pieces_merge_together_as_alone),
        cmocka_unit_test(pairs_are_found_in_full_groups_too),
        cmocka_unit_test(ids_stay_when_the_table_of_short_pieces_grows),
        cmocka_unit_test(the_bytes_of_tokens_are_encoded_by_merges),
        cmocka_unit_test(remembered_pieces_have_the_ids_of_new_ones),
        cmocka_unit_test(endless_pieces_take_no_square_of_their_length),
        cmocka_unit_test(documents_come_back_in_order_whole_and_once),
        cmocka_unit_test(an_error_of_the_receiver_ends_the_work),
        cmocka_unit_test(bytes_that_utf8_never_has_need_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
