/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "math/rng.h"
#include "pretokenize/byte-level.h"
#include "token/piece-encoder.h"

#define PIECE  4 /* bytes, each of which is a token */
#define PIECES 700000u
#define ROUNDS 6000

static struct dt_tokenizer *byte_tokenizer(void)
{
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("gpt2"));
    struct dt_error err;
    unsigned char order[256];
    dt_byte_level_order(order);
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(dt_tokenizer_add(t, i, (char *)&order[i], 1, &err), 0);
    assert_int_equal(dt_tokenizer_finish(t, &err), 0);
    return t;
}

static void fill(struct dt_rng *rng, unsigned char *text, size_t ends[DT_PIECE_BATCH])
{
    for (size_t i = 0; i < DT_PIECE_BATCH; i++) {
        uint32_t number = (uint32_t)dt_rng_below(rng, PIECES);
        for (size_t k = 0; k < PIECE; k++, number /= 64)
            text[i * PIECE + k] = (unsigned char)('0' + number % 64);
        ends[i] = (i + 1) * PIECE;
    }
}

/* More short pieces than the caches hold, so that a batch finds some among the longer ones while it
 * adds others there, which moves them, and in the end the caches are emptied. */
static void ids_stay_right_while_the_caches_grow_and_are_emptied(void **state)
{
    struct dt_tokenizer *t = byte_tokenizer();
    struct dt_model_work work;
    struct dt_piece_encoder p;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_rng rng;
    unsigned char text[DT_PIECE_BATCH * PIECE];
    size_t ends[DT_PIECE_BATCH];
    (void)state;
    dt_rng_init(&rng, 1);
    dt_model_work_init(&work, t);
    dt_piece_encoder_init(&p, t, &work);
    for (int round = 0; round < ROUNDS; round++) {
        fill(&rng, text, ends);
        ids.count = 0;
        dt_piece_encoder_encode(&p, text, sizeof text, ends, DT_PIECE_BATCH, &ids);
        assert_int_equal(ids.count, sizeof text);
        for (size_t i = 0; i < sizeof text; i++)
            assert_int_equal(ids.data[i], t->byte_ids[text[i]]);
    }
    dt_ids_release(&ids);
    dt_piece_encoder_release(&p);
    dt_model_work_release(&work);
    dt_tokenizer_free(t);
}

#define MANY 3000
#define LONG (DT_PIECE_CACHE_LONGEST + 1)

/* Pieces of many batches: of one byte, which are tokens, short and longer ones, often the same, and
 * a few that are not remembered. */
static size_t fill_many(struct dt_rng *rng, unsigned char *text, size_t ends[MANY])
{
    size_t at = 0;
    for (size_t i = 0; i < MANY; i++) {
        size_t size = i % 700 == 650 ? LONG : 1 + dt_rng_below(rng, 20);
        memset(text + at, (int)('a' + dt_rng_below(rng, 20)), size);
        ends[i] = at += size;
    }
    return at;
}

static void many_batches_have_the_ids_of_their_pieces(void **state)
{
    static unsigned char text[MANY * 20 + MANY / 700 * LONG];
    static size_t ends[MANY];
    struct dt_tokenizer *t = byte_tokenizer();
    struct dt_model_work work;
    struct dt_piece_encoder p;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 1);
    dt_model_work_init(&work, t);
    dt_piece_encoder_init(&p, t, &work);
    for (int round = 0; round < 3; round++) {
        size_t size = fill_many(&rng, text, ends);
        ids.count = 0;
        dt_piece_encoder_encode(&p, text, size, ends, MANY, &ids);
        assert_int_equal(ids.count, size);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(ids.data[i], t->byte_ids[text[i]]);
    }
    dt_ids_release(&ids);
    dt_piece_encoder_release(&p);
    dt_model_work_release(&work);
    dt_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_stay_right_while_the_caches_grow_and_are_emptied),
        cmocka_unit_test(many_batches_have_the_ids_of_their_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
