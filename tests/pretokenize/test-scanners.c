/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "io/input.h"
#include "math/rng.h"
#include "pretokenize/character.h"
#include "pretokenize/pattern.h"
#include "pretokenize/scan-scalar.h"
#include "pretokenize/scanners.h"
#include "json/json.h"

/* Made by: tests/oracles/split_oracle.py 1 20 */
#define GOLDEN "tests/token/golden/splits.jsonl"

#define MOST_PIECES 4096

/* The ends of all pieces of text by one scanner, capacity of them at a time. */
static size_t split_all(dt_split_function *scan, const char *text, size_t size, size_t capacity,
                        size_t *all)
{
    const unsigned char *start = (const unsigned char *)text, *end = start + size, *p = start;
    size_t count = 0, ends[MOST_PIECES];
    while (p < end) {
        size_t n = scan(p, end, ends, capacity), from = 0;
        assert_in_range(n, 1, capacity);
        for (size_t i = 0; i < n; from = ends[i++]) {
            assert_true(ends[i] > from);
            assert_true(count < MOST_PIECES);
            all[count++] = (size_t)(p - start) + ends[i];
        }
        p += from;
    }
    return count;
}

/* The pieces of text with a '|' between, capacity of them at a time. */
static char *split(const char *text, size_t size, size_t capacity)
{
    const struct dt_pattern *pattern = dt_pattern_find("gpt2");
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    struct dt_buffer all = DT_BUFFER_EMPTY;
    size_t ends[512];
    dt_buffer_add_string(&all, "");
    while (p < end) {
        size_t n = pattern->split(p, end, ends, capacity), from = 0;
        assert_in_range(n, 1, capacity);
        for (size_t i = 0; i < n; from = ends[i++]) {
            assert_true(ends[i] > from);
            if (all.size > 0)
                dt_buffer_add_char(&all, '|');
            dt_buffer_append(&all, p + from, ends[i] - from);
        }
        p += from;
    }
    return all.data;
}

static const struct {
    const char *text, *pieces;
} gpt2_splits[] = {
    {"", ""},
    {"The ferryman sang.", "The| ferryman| sang|."},
    {"  two  blanks   and\ttabs\n\n\nlines \n end  ",
     " | two| | blanks|  | and|\t|tabs|\n\n|\n|lines| \n| end|  "},
    {"I'll we've they're he'd don't I'm it's",
     "I|'ll| we|'ve| they|'re| he|'d| don|'t| I|'m| it|'s"},
    {" 's 'S '\u017f ''s 'l 'v 'r '", " '|s| '|S| '|\u017f| ''|s| '|l| '|v| '|r| '"},
    {"'ll'lls'", "'ll|'ll|s|'"},
    {"1987 12345678901234567890 \u00bd \u2163 \u0967\u0968\u0969 \u0663",
     "1987| 12345678901234567890| \u00bd| \u2163| \u0967\u0968\u0969| \u0663"},
    {"F\u00e4hrmann l'\u00e9t\u00e9", "F\u00e4hrmann| l|'|\u00e9t\u00e9"},
    {"\u8239\u592b\u542c\u7740\u6b4c\uff0c\u6cb3", "\u8239\u592b\u542c\u7740\u6b4c|\uff0c|\u6cb3"},
    {"\ud55c\uad6d \u1112\u1161\u11ab", "\ud55c\uad6d| \u1112\u1161\u11ab"},
    {"e\u0301 n\u0303\u0323 \u0301a", "e|\u0301| n|\u0303\u0323| \u0301|a"},
    {"\U0001f468\u200d\U0001f469 \U0001f44d\U0001f3fd",
     "\U0001f468\u200d\U0001f469| \U0001f44d\U0001f3fd"},
    {"\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d", "\u05e9\u05dc\u05d5\u05dd| \u0645\u0631\u062d"},
    {"a\u00a0b\u3000\u3000c\u2028\u2028", "a|\u00a0|b|\u3000|\u3000|c|\u2028\u2028"},
    {"d\xc2\x85"
     "e\u200bf\ufeffg\x1ch",
     "d|\xc2\x85|e|\u200b|f|\ufeff|g|\x1c|h"},
    {"x\r\ny\r\n\r\n z", "x|\r|\n|y|\r\n\r\n| z"},
    {"\x01\x7f nul", "\x01\x7f| nul"},
    {" ", " "},
    {"   ", "   "},
    {"x = 0;   /* y */", "x| =| 0|;|  | /*| y| */"},
    {"\U00010348\U0002da93 \U0001d7d8", "\U00010348\U0002da93| \U0001d7d8"},
    /* invalid UTF-8 bytes are symbols: alone, cut off, overlong, a surrogate */
    {"ab\xff\xfe cd", "ab|\xff\xfe| cd"},
    {"\xe8\x88", "\xe8\x88"},
    {"a\xc0\xaf\xed\xa0\x80z \xf4\x90\x80\x80", "a|\xc0\xaf\xed\xa0\x80|z| \xf4\x90\x80\x80"},
    {"\xc3\xa9\xc3", "\xc3\xa9|\xc3"},
};

static void gpt2_splits_as_its_pattern_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof gpt2_splits / sizeof *gpt2_splits; i++) {
        const char *text = gpt2_splits[i].text;
        for (size_t capacity = DT_SPLIT_MIN_CAPACITY; capacity <= 512; capacity *= 2) {
            char *pieces = split(text, strlen(text), capacity);
            assert_string_equal(pieces, gpt2_splits[i].pieces);
            free(pieces);
        }
    }
}

static void a_nul_byte_is_a_symbol(void **state)
{
    (void)state;
    struct dt_buffer all = DT_BUFFER_EMPTY;
    char *pieces = split("a\0\0b", 4, 64);
    dt_buffer_append(&all, pieces, 6);
    assert_memory_equal(all.data, "a|\0\0|b", 6);
    free(pieces);
    dt_buffer_release(&all);
}

/* Text made of what patterns look at, valid or not. */
static void add_random_text(struct dt_rng *rng, struct dt_buffer *text)
{
    static const char *const parts[] = {" ",       "\n",         "a",
                                        "Zq",      "'s",         "'",
                                        "\xff",    "1",          "  ",
                                        "\u3000",  ",",          "\u00e9",
                                        "\t",      "\xe8",       "e\n",
                                        "b ",      "\r",         "\u0301",
                                        "the",     "\U0001f525", "'",
                                        "'ll",     "/",          "/\n",
                                        "\u4e2d",  "A",          "'\u017f",
                                        "12345",   "\u00a0",     "\u0661",
                                        "\u00c9a", ".",          "word and word "};
    size_t count = sizeof parts / sizeof *parts;
    for (uint32_t n = dt_rng_below(rng, 40); n > 0; n--)
        dt_buffer_add_string(text, parts[dt_rng_below(rng, (uint32_t)count)]);
}

static void a_safe_cut_changes_nothing(void **state)
{
    (void)state;
    struct dt_rng rng;
    int cuts = 0;
    dt_rng_init(&rng, 11);
    for (int round = 0; round < 3000; round++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        dt_buffer_add_char(&text, 'x');
        add_random_text(&rng, &text);
        size_t cut = dt_pattern_safe_cut(text.data, text.size, dt_rng_below(&rng, 20));
        char *whole = split(text.data, text.size, 64);
        if (cut < text.size) {
            char *head = split(text.data, cut, 64);
            char *tail = split(text.data + cut, text.size - cut, 64);
            char *both = dt_asprintf("%s|%s", head, tail);
            assert_string_equal(both, whole);
            cuts++;
            free(head);
            free(tail);
            free(both);
        }
        free(whole);
        dt_buffer_release(&text);
    }
    assert_true(cuts > 500);
}

static void a_safe_cut_is_sought_from_least_on(void **state)
{
    (void)state;
    assert_int_equal(dt_pattern_safe_cut("ab cd ef", 8, 0), 2);
    assert_int_equal(dt_pattern_safe_cut("ab cd ef", 8, 2), 2);
    assert_int_equal(dt_pattern_safe_cut("ab cd\nef", 8, 3), 5);
    assert_int_equal(dt_pattern_safe_cut("ab, 1 ef", 8, 2), 8);
    assert_int_equal(dt_pattern_safe_cut("", 0, 0), 0);
}

static void characters_are_decoded_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        uint32_t code;
        unsigned length;
    } cases[] = {{"A", 'A', 1},
                 {"\x7f", 0x7f, 1},
                 {"\xc2\x80", 0x80, 2},
                 {"\xdf\xbf", 0x7ff, 2},
                 {"\xe0\xa0\x80", 0x800, 3},
                 {"\xed\x9f\xbf", 0xd7ff, 3},
                 {"\xf0\x90\x80\x80", 0x10000, 4},
                 {"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
                 {"\x80", DT_CHAR_INVALID, 1},
                 {"\xc1\xbf", DT_CHAR_INVALID, 1},
                 {"\xe0\x9f\xbf", DT_CHAR_INVALID, 1},
                 {"\xed\xa0\x80", DT_CHAR_INVALID, 1},
                 {"\xf0\x8f\xbf\xbf", DT_CHAR_INVALID, 1},
                 {"\xf4\x90\x80\x80", DT_CHAR_INVALID, 1},
                 {"\xf8\x88\x80\x80\x80", DT_CHAR_INVALID, 1},
                 {"\xe2\x82", DT_CHAR_INVALID, 1},
                 {"\xe2(\xa1", DT_CHAR_INVALID, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned char *p = (const unsigned char *)cases[i].bytes;
        uint32_t code;
        assert_int_equal(dt_character(p, p + strlen(cases[i].bytes), &code), cases[i].length);
        assert_int_equal(code, cases[i].code);
    }
}

/* The scanner sets that this processor has. */
static int usable_sets(const struct dt_scanner_set *sets[3])
{
    int count = 0;
    dt_pattern_find("gpt2");
    sets[count++] = &dt_scanners_generic;
#ifdef __x86_64__
    assert_non_null(dt_scanners_avx2.split[0]); /* compiled for their instruction sets */
    assert_non_null(dt_scanners_avx512.split[0]);
    if (__builtin_cpu_supports("avx2"))
        sets[count++] = &dt_scanners_avx2;
    if (__builtin_cpu_supports("avx512bw"))
        sets[count++] = &dt_scanners_avx512;
#endif
    return count;
}

static int number_of_pattern(const char *name)
{
    int number = 0;
    while (strcmp(dt_pattern_names[number], name) != 0)
        number++;
    return number;
}

static void check_golden_line(struct json_object *line)
{
    const struct dt_scanner_set *sets[3];
    size_t ends[MOST_PIECES];
    const char *name = dt_json_text(json_object_object_get(line, "pattern"));
    struct json_object *text = json_object_object_get(line, "text");
    struct json_object *expected = json_object_object_get(line, "ends");
    for (int i = usable_sets(sets); i-- > 0;) {
        size_t n = split_all(sets[i]->split[number_of_pattern(name)], dt_json_text(text),
                             (size_t)json_object_get_string_len(text), DT_SPLIT_MIN_CAPACITY, ends);
        assert_int_equal(n, json_object_array_length(expected));
        for (size_t k = 0; k < n; k++)
            assert_int_equal(ends[k],
                             json_object_get_int64(json_object_array_get_idx(expected, k)));
    }
}

static void pieces_are_those_of_the_regular_expressions(void **state)
{
    (void)state;
    struct dt_input *in;
    struct dt_error err;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found;
    int lines = 0;
    assert_int_equal(dt_input_open(&in, GOLDEN, &err), 0);
    while (dt_input_read_until(in, '\n', &line, &found, &err) == 0 && found) {
        struct json_object *value;
        assert_int_equal(dt_json_parse(line.data, line.size, GOLDEN, &value, &err), 0);
        check_golden_line(value);
        json_object_put(value);
        lines++;
    }
    assert_true(lines > 300);
    dt_buffer_release(&line);
    dt_input_close(in);
}

static const struct style styles[DT_SCANNER_COUNT] = {
    [DT_SCANNER_LLAMA3] = {.digits = 3},
    [DT_SCANNER_CL100K] = {.digits = 3, .white_space_at_end = true},
    [DT_SCANNER_QWEN] = {.digits = 1},
    [DT_SCANNER_QWEN35] = {.digits = 1, .marks_are_letters = true},
    [DT_SCANNER_O200K] = {.digits = 3, .cased_words = true, .contractions = true},
    [DT_SCANNER_TEKKEN] = {.digits = 1, .cased_words = true},
};

/* Windows against the scanners that go character by character. */
static void windows_cut_as_single_steps_do(void **state)
{
    (void)state;
    const struct dt_scanner_set *sets[3];
    int count = usable_sets(sets);
    struct dt_rng rng;
    size_t ends[MOST_PIECES];
    dt_rng_init(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        dt_buffer_add_char(&text, 'x');
        for (int i = 0; i < 6; i++)
            add_random_text(&rng, &text);
        for (int s = 0; s < DT_SCANNER_COUNT; s++)
            for (int i = 0; i < count; i++) {
                size_t n = split_all(sets[i]->split[s], text.data, text.size, 100, ends);
                const unsigned char *p = (const unsigned char *)text.data, *end = p + text.size;
                for (size_t k = 0; k < n; k++) {
                    p = s == DT_SCANNER_GPT2 ? gpt2_end(p, end) : style_end(p, end, styles[s]);
                    assert_int_equal(p - (const unsigned char *)text.data, ends[k]);
                }
            }
        dt_buffer_release(&text);
    }
}

static void unknown_patterns_are_not_found(void **state)
{
    (void)state;
    assert_null(dt_pattern_find("gpt3"));
    assert_null(dt_pattern_find_regex("\\w+"));
    for (int i = 0; dt_pattern_names[i]; i++) {
        const struct dt_pattern *pattern = dt_pattern_find(dt_pattern_names[i]);
        assert_string_equal(pattern->name, dt_pattern_names[i]);
        assert_ptr_equal(dt_pattern_find_regex(pattern->regex), pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_splits_as_its_pattern_says),
        cmocka_unit_test(a_nul_byte_is_a_symbol),
        cmocka_unit_test(a_safe_cut_changes_nothing),
        cmocka_unit_test(a_safe_cut_is_sought_from_least_on),
        cmocka_unit_test(pieces_are_those_of_the_regular_expressions),
        cmocka_unit_test(windows_cut_as_single_steps_do),
        cmocka_unit_test(characters_are_decoded_strictly),
        cmocka_unit_test(unknown_patterns_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
