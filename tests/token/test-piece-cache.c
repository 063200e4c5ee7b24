/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "token/piece-cache.h"

/* Piece number i, of 1 .. 40 bytes, with up to 5 ids. */
static size_t make_piece(unsigned i, unsigned char piece[64])
{
    int digits = snprintf((char *)piece, 64, "%u", i);
    size_t size = (size_t)digits + i % 31;
    memset(piece + digits, 'x', size - (size_t)digits);
    return size;
}

static void add(struct dt_piece_cache *cache, unsigned i)
{
    unsigned char piece[64];
    size_t size = make_piece(i, piece);
    uint32_t ids[5] = {i, i + 1, i + 2, i + 3, i + 4};
    dt_piece_cache_add(cache, piece, size, dt_piece_cache_hash(piece, size), ids, i % 6);
}

/* Whether it is in the cache, which then has its ids. */
static bool has(const struct dt_piece_cache *cache, unsigned i)
{
    unsigned char piece[64];
    size_t size = make_piece(i, piece), count;
    const uint32_t *ids =
        dt_piece_cache_find(cache, piece, size, dt_piece_cache_hash(piece, size), &count);
    if (ids == NULL)
        return false;
    assert_int_equal(count, i % 6);
    for (size_t k = 0; k < count; k++)
        assert_int_equal(ids[k], i + k);
    return true;
}

static void pieces_are_found_with_their_ids(void **state)
{
    (void)state;
    struct dt_piece_cache cache = {.slots = NULL};
    assert_false(has(&cache, 1));
    for (unsigned i = 0; i < 30000; i++) {
        assert_false(has(&cache, i));
        add(&cache, i);
    }
    for (unsigned i = 0; i < 30000; i++)
        assert_true(has(&cache, i));
    dt_piece_cache_release(&cache);
    assert_false(has(&cache, 1));
}

/* Equal hashes of different pieces. */
static void only_the_piece_itself_is_found(void **state)
{
    (void)state;
    struct dt_piece_cache cache = {.slots = NULL};
    const unsigned char a[] = "same", b[] = "lame";
    const uint32_t one = 1, two = 2;
    size_t count;
    dt_piece_cache_add(&cache, a, 4, ~(uint64_t)0, &one, 1);
    assert_null(dt_piece_cache_find(&cache, b, 4, ~(uint64_t)0, &count));
    dt_piece_cache_add(&cache, b, 4, ~(uint64_t)0, &two, 1);
    assert_int_equal(*dt_piece_cache_find(&cache, a, 4, ~(uint64_t)0, &count), 1);
    assert_int_equal(*dt_piece_cache_find(&cache, b, 4, ~(uint64_t)0, &count), 2);
    assert_null(dt_piece_cache_find(&cache, a, 3, ~(uint64_t)0, &count));
    dt_piece_cache_release(&cache);
}

static void a_full_cache_starts_empty(void **state)
{
    (void)state;
    struct dt_piece_cache cache = {.slots = NULL};
    unsigned i = 0;
    while (cache.count == i)
        add(&cache, i++);
    assert_int_equal(cache.count, 1);
    assert_true(i > 100000);
    assert_true(has(&cache, i - 1));
    assert_false(has(&cache, 0));
    assert_true(cache.room * sizeof *cache.store <= 2 * DT_PIECE_CACHE_BYTES);
    dt_piece_cache_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_found_with_their_ids),
        cmocka_unit_test(only_the_piece_itself_is_found),
        cmocka_unit_test(a_full_cache_starts_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
