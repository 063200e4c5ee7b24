/* SPDX-License-Identifier: MIT */
/* Masked language modeling: selection, replacement and reproducibility. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/context-parallel.h"
#include "model/masking.h"

enum { IDS = 100, MASK = 3, FIRST = 4, ROWS = 400, LENGTH = 50 };

static uint8_t flags[IDS];
static uint32_t ids[ROWS * (LENGTH + 1)];
static struct dt_error err;

/* Ids 0 .. 3 are special; of the others, odd ones continue a word. */
static int make_text(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 1);
    for (int i = 0; i < FIRST; i++)
        flags[i] = DT_ID_SPECIAL;
    for (int i = FIRST + 1; i < IDS; i += 2)
        flags[i] = DT_ID_CONTINUES;
    for (int i = 0; i < ROWS * (LENGTH + 1); i++)
        ids[i] = dt_rng_below(&rng, IDS);
    return 0;
}

static struct dt_masking *new_masking(double rate, bool whole_words, uint64_t seed)
{
    struct dt_masking *m;
    const struct dt_masking_options o = {flags, IDS, MASK, rate, whole_words, seed};
    assert_int_equal(dt_masking_new(&m, &o, &err), 0);
    return m;
}

/* All rows, in batches of rows rows. */
static void mask_all(const struct dt_masking *m, struct dt_batch *all, int64_t rows,
                     uint64_t first_sample)
{
    struct dt_batch some;
    dt_batch_init(all, ROWS, LENGTH);
    dt_batch_init(&some, rows, LENGTH);
    for (int64_t from = 0; from < ROWS; from += rows) {
        some.first_sample = first_sample + (uint64_t)from;
        dt_batch_mask(&some, m, ids + from * (LENGTH + 1), rows, LENGTH, LENGTH + 1);
        assert_int_equal(some.count, rows);
        assert_int_equal(some.length, LENGTH);
        size_t bytes = (size_t)(rows * LENGTH) * sizeof *some.inputs;
        memcpy(all->inputs + from * LENGTH, some.inputs, bytes);
        memcpy(all->targets + from * LENGTH, some.targets, bytes);
    }
    all->count = ROWS;
    all->length = LENGTH;
    dt_batch_release(&some);
}

static uint32_t id_at(int i)
{
    return ids[i / LENGTH * (LENGTH + 1) + i % LENGTH];
}

static bool same(const struct dt_batch *a, const struct dt_batch *b)
{
    size_t bytes = ROWS * LENGTH * sizeof *a->inputs;
    return memcmp(a->inputs, b->inputs, bytes) == 0 && memcmp(a->targets, b->targets, bytes) == 0;
}

/* count is within four standard deviations of a share of n. */
static void assert_share(double count, double n, double share)
{
    if (fabs(count - n * share) > 4 * sqrt(n * share * (1 - share)))
        fail_msg("%g of %g instead of %g", count, n, n * share);
}

static void check_shares(const struct dt_batch *b, double rate)
{
    double eligible = 0, chosen = 0, masked = 0, other = 0;
    for (int i = 0; i < ROWS * LENGTH; i++) {
        uint32_t id = id_at(i);
        eligible += id >= FIRST;
        if (b->targets[i] == DT_NO_TARGET) {
            assert_int_equal(b->inputs[i], id);
            continue;
        }
        assert_int_equal(b->targets[i], id);
        assert_true(id >= FIRST); /* special ones are never chosen */
        chosen++;
        masked += b->inputs[i] == MASK;
        other += b->inputs[i] != MASK && b->inputs[i] != (int32_t)id;
        assert_true(b->inputs[i] == MASK || b->inputs[i] >= FIRST); /* nor replace tokens */
    }
    assert_share(chosen, eligible, rate);
    assert_share(masked, chosen, 0.8);
    assert_share(other, chosen, 0.1 * (IDS - FIRST - 1) / (IDS - FIRST)); /* or itself */
}

static void tokens_are_masked_and_replaced_at_their_rates(void **state)
{
    (void)state;
    struct dt_masking *m = new_masking(0.15, false, 1), *half = new_masking(0.5, false, 1);
    struct dt_batch b;
    mask_all(m, &b, 8, 0);
    check_shares(&b, 0.15);
    dt_batch_release(&b);
    mask_all(half, &b, 8, 0);
    check_shares(&b, 0.5);
    dt_batch_release(&b);
    dt_masking_free(m);
    dt_masking_free(half);
}

static void masking_depends_only_on_seed_and_sample(void **state)
{
    (void)state;
    struct dt_masking *m = new_masking(0.15, false, 1), *other = new_masking(0.15, false, 2);
    struct dt_batch eights, ones, later, reseeded;
    mask_all(m, &eights, 8, 5);
    mask_all(m, &ones, 1, 5);
    mask_all(m, &later, 8, 6);
    mask_all(other, &reseeded, 8, 5);
    assert_true(same(&eights, &ones));
    assert_false(same(&eights, &later));
    assert_false(same(&eights, &reseeded));
    dt_batch_release(&eights), dt_batch_release(&ones);
    dt_batch_release(&later), dt_batch_release(&reseeded);
    dt_masking_free(m), dt_masking_free(other);
}

static void whole_words_are_masked(void **state)
{
    (void)state;
    struct dt_masking *m = new_masking(0.15, true, 1);
    struct dt_batch b;
    int joined = 0;
    mask_all(m, &b, 8, 0);
    for (int i = 0; i < ROWS * LENGTH; i++) {
        bool goes_on = i % LENGTH > 0 && flags[id_at(i)] & DT_ID_CONTINUES && id_at(i - 1) >= FIRST;
        if (!goes_on)
            continue;
        assert_int_equal(b.targets[i] >= 0, b.targets[i - 1] >= 0);
        joined += b.targets[i] >= 0;
    }
    assert_true(joined > 500);
    double chosen = (double)dt_context_parallel_targets(&DT_MODEL_PART_WHOLE,
                                                        &b); /* whole words: larger variance */
    assert_true(fabs(chosen / (ROWS * LENGTH * (1 - FIRST / (double)IDS)) - 0.15) < 0.015);
    dt_batch_release(&b);
    dt_masking_free(m);
}

static void short_sequences_have_a_target(void **state)
{
    (void)state;
    struct dt_masking *m = new_masking(0.01, false, 1);
    const uint32_t rows[5][2] = {
        {50, 0}, {0, 51}, {0, 1}, {50, 51 | DT_NOT_PREDICTED}, {0, 51 | DT_NOT_PREDICTED}};
    const int64_t targets[5] = {1, 1, 0, 1, 0};
    struct dt_batch b;
    dt_batch_init(&b, 1, 2);
    for (int i = 0; i < 5; i++)
        for (b.first_sample = 0; b.first_sample < 20; b.first_sample++) {
            dt_batch_mask(&b, m, rows[i], 1, 2, 2);
            assert_int_equal(dt_context_parallel_targets(&DT_MODEL_PART_WHOLE, &b), targets[i]);
            if (i > 2)
                assert_int_equal(b.inputs[1], 51);
        }
    dt_batch_release(&b);
    dt_masking_free(m);
}

static void invalid_options_are_refused(void **state)
{
    (void)state;
    const uint8_t special[2] = {DT_ID_SPECIAL, 0};
    const struct dt_masking_options wrong[] = {
        {flags, IDS, MASK, 0, false, 1},   {flags, IDS, MASK, 1, false, 1},
        {flags, IDS, MASK, NAN, false, 1}, {flags, IDS, IDS, 0.15, false, 1},
        {special, 2, 1, 0.15, false, 1},
    };
    static const char *const reasons[] = {"rate", "rate", "rate", "beyond", "can be masked"};
    struct dt_masking *m;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(dt_masking_new(&m, &wrong[i], &err), DT_EINVALID);
        assert_null(m);
        assert_non_null(strstr(err.text, reasons[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_masked_and_replaced_at_their_rates),
        cmocka_unit_test(masking_depends_only_on_seed_and_sample),
        cmocka_unit_test(whole_words_are_masked),
        cmocka_unit_test(short_sequences_have_a_target),
        cmocka_unit_test(invalid_options_are_refused),
    };
    return cmocka_run_group_tests(tests, make_text, NULL);
}
