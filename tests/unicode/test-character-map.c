/* SPDX-License-Identifier: MIT */
#include "character-map-of.h"

#include <stdlib.h>
#include <string.h>

#include "math/rng.h"
#include "unicode/character-map.h"

static void the_longest_and_the_shortest_rule_match(void **state)
{
    (void)state;
    char bytes[MAP_BYTES];
    struct dt_character_map *map;
    struct dt_character_map_text to;
    struct dt_error err;
    assert_int_equal(dt_character_map_new(&map, bytes, make_map(bytes), &err), 0);
    assert_int_equal(dt_character_map_longest(map, "ABC", 3, &to), 2);
    assert_int_equal(to.size, 2);
    assert_memory_equal(to.data, "\xc3\xa9", 2);
    assert_int_equal(dt_character_map_shortest(map, "ABC", 3, &to), 1);
    assert_string_equal(to.data, "a");
    assert_int_equal(dt_character_map_longest(map, "AB", 1, &to), 1);
    assert_int_equal(dt_character_map_longest(map, "BA", 2, &to), 1);
    assert_int_equal(to.size, 0);
    assert_int_equal(dt_character_map_longest(map, "CA", 2, &to), 0);
    assert_int_equal(dt_character_map_longest(map, "", 0, &to), 0);
    assert_true(dt_character_map_keeps(map, 'C') && !dt_character_map_keeps(map, 'A'));
    assert_false(dt_character_map_keeps(map, 0x80));
    assert_false(dt_character_map_has_space(map) || dt_character_map_joins_lines(map));
    dt_character_map_free(map);
}

static bool joins_lines(const char *bytes, size_t size)
{
    struct dt_character_map *map;
    struct dt_error err;
    assert_int_equal(dt_character_map_new(&map, bytes, size, &err), 0);
    bool joins = dt_character_map_joins_lines(map);
    dt_character_map_free(map);
    return joins;
}

static void lines_are_joined_where_no_other_rule_has_a_line_feed(void **state)
{
    (void)state;
    char bytes[MAP_BYTES], changed[sizeof bytes];
    size_t size = make_map(bytes);
    put_rule(bytes, '\n', 0);
    assert_true(joins_lines(bytes, size));
    memcpy(changed, bytes, size);
    put_rule(changed, '\n', 2); /* not a space */
    assert_false(joins_lines(changed, size));
    memcpy(changed, bytes, size);
    put_unit(changed, 0x240 ^ 'x', OFFSET(0x240 ^ 'x', 0x260) | HAS_VALUE | 'x'); /* LF x */
    put_unit(changed, 0x260, VALUE | 2);
    assert_false(joins_lines(changed, size));
    memcpy(changed, bytes, size);
    put_unit(changed, 0x280 ^ '\n', OFFSET(0x280 ^ '\n', 0x260) | HAS_VALUE | '\n'); /* A B LF */
    put_unit(changed, 0x260, VALUE | 0);
    assert_false(joins_lines(changed, size));
}

static void assert_refused(const char *bytes, size_t size, const char *why)
{
    struct dt_character_map *map;
    struct dt_error err;
    assert_int_equal(dt_character_map_new(&map, bytes, size, &err), DT_EFORMAT);
    assert_null(map);
    assert_non_null(strstr(err.text, why));
}

static void damaged_maps_are_refused(void **state)
{
    (void)state;
    char bytes[MAP_BYTES];
    size_t size = make_map(bytes);
    assert_refused(bytes, 0, "expected a trie");
    assert_refused(bytes, 3, "expected a trie");
    assert_refused(bytes, 4 + 4 * UNITS - 1, "expected a trie");
    assert_refused(bytes, 4 + 4 * UNITS, "not ended by 0");
    assert_refused(bytes, size - 1, "not ended by 0");
    put_unit(bytes, 0x200, VALUE | 8);
    assert_refused(bytes, size, "leads to byte 8");
    put_unit(bytes, 0x200, VALUE | 6);
    assert_refused(bytes, size, "leads to byte 6");
    make_map(bytes);
    put_unit(bytes, 0x280, 0);
    assert_refused(bytes, size, "has no value");
    put_unit(bytes, 0x200 ^ 'B', 0x7ffffc00 | HAS_VALUE | 'B');
    assert_refused(bytes, size, "has no value");
    make_map(bytes);
    bytes[size - 2] = 'x'; /* U+00E9 is cut off */
    assert_refused(bytes, size, "not UTF-8");
}

/* Whatever loads can be searched: AddressSanitizer watches. */
static void any_bytes_are_refused_or_searched(void **state)
{
    (void)state;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int n = 0; n < 3000; n++) {
        char *bytes = malloc(MAP_BYTES), text[8];
        struct dt_character_map *map;
        struct dt_character_map_text to;
        struct dt_error err;
        size_t size = make_map(bytes);
        for (int i = 0; i < 3; i++)
            bytes[4 * dt_rng_below(&rng, UNITS) + dt_rng_below(&rng, 4)] ^=
                (char)(1 << dt_rng_below(&rng, 8));
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)("AB\0C"[dt_rng_below(&rng, 4)]);
        if (dt_character_map_new(&map, bytes, size, &err) == 0)
            for (size_t i = 0; i < sizeof text; i++) {
                assert_true(dt_character_map_longest(map, text + i, sizeof text - i, &to) <= 8);
                dt_character_map_shortest(map, text + i, sizeof text - i, &to);
            }
        dt_character_map_free(map);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_and_the_shortest_rule_match),
        cmocka_unit_test(lines_are_joined_where_no_other_rule_has_a_line_feed),
        cmocka_unit_test(damaged_maps_are_refused),
        cmocka_unit_test(any_bytes_are_refused_or_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
