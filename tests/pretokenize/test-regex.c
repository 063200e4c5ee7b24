/* SPDX-License-Identifier: MIT */
/* Regular expressions against Oniguruma: tests/pretokenize/regexes.jsonl was made by
 * tests/oracles/regex_oracle.py 3 400. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "pretokenize/regex.h"
#include "json/json.h"

/* The next match that is not empty, as `tokenizers` iterates over them. */
static bool next_match(const struct dt_regex *r, const char *text, size_t size, size_t *from,
                       size_t *start, size_t *end)
{
    while (*from <= size && dt_regex_find(r, text, size, *from, start, end)) {
        *from = *end;
        if (*start < *end)
            return true;
        do
            ++*from;
        while (*from < size && (text[*from] & 0xc0) == 0x80);
    }
    return false;
}

/* Whether the expression is known; fails if a match differs. */
static bool check_vector(struct json_object *vector)
{
    const char *regex = dt_json_text(json_object_object_get(vector, "regex"));
    struct json_object *text = json_object_object_get(vector, "text");
    struct json_object *matches = json_object_object_get(vector, "matches");
    const char *bytes = dt_json_text(text);
    size_t size = (size_t)json_object_get_string_len(text), from = 0, start, end;
    struct dt_regex *r;
    struct dt_error err;
    if (dt_regex_new(&r, regex, "test", &err) < 0) {
        assert_null(r);
        return false;
    }
    for (size_t i = 0; i < json_object_array_length(matches); i++) {
        struct json_object *match = json_object_array_get_idx(matches, i);
        bool found = next_match(r, bytes, size, &from, &start, &end);
        if (!found || start != (size_t)json_object_get_int(json_object_array_get_idx(match, 0)) ||
            end != (size_t)json_object_get_int(json_object_array_get_idx(match, 1)))
            fail_msg("%s in %s: match %zu differs", regex, bytes, i);
    }
    assert_false(next_match(r, bytes, size, &from, &start, &end));
    dt_regex_free(r);
    return true;
}

static void matches_are_those_of_oniguruma(void **state)
{
    (void)state;
    char *text;
    size_t size;
    int known = 0, all = 0;
    struct dt_error err;
    assert_int_equal(dt_file_read("tests/pretokenize/regexes.jsonl", 1 << 20, &text, &size, &err),
                     0);
    for (char *line = text, *end; line < text + size; line = end + 1) {
        struct json_object *vector;
        end = strchr(line, '\n');
        assert_int_equal(dt_json_parse(line, (size_t)(end - line), "vector", &vector, &err), 0);
        known += check_vector(vector);
        all++;
        json_object_put(vector);
    }
    assert_int_equal(all, 400);
    assert_true(known > 370); /* the others are refused */
    free(text);
}

static void what_is_not_known_is_refused_by_name(void **state)
{
    static const char *const refused[][2] = {
        {"(a)\\1", "an escape that is not supported"},
        {"a\\Kb", "an escape that is not supported"},
        {"\\p{Klingon}", "a property that is not known"},
        {"[[:alpha:]]", "a POSIX class"},
        {"(?x)a", "a group or option that is not supported"},
        {"(?<name>a)", "a group or option that is not supported"},
        {"(a*)*", "an unlimited quantifier of what may be empty"},
        {"a**", "a quantifier of a quantifier"},
        {"+a", "a quantifier of nothing"},
        {"(?<=a+)b", "a look-back of unlimited length"},
        {"(?i)\xc3\xa9", "a character beyond ASCII that ignores case"},
        {"(?i)ss", "a pair of characters that is the case folding of one"},
        {"(?i)[^\\p{L}]", "a class with characters beyond ASCII"},
        {"a{1000,2000}", "a wrong or too large interval"},
        {"(a", "a missing )"},
        {"a)", "a ) without ("},
        {"[a", "a missing ]"},
        {"[b-a]", "a wrong range"},
        {"\xff", "invalid UTF-8"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((a))", "a group or class too deep"},
        {"(?:(?:a{999}){999}){999}", "too many parts"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct dt_regex *r;
        struct dt_error err = {.text = ""};
        assert_int_equal(dt_regex_new(&r, refused[i][0], "FILE", &err), DT_EFORMAT);
        if (strncmp(err.text, "FILE: ", 6) != 0 || strstr(err.text, refused[i][1]) == NULL)
            assert_string_equal(err.text, refused[i][1]);
    }
}

/* Without memory of failed states these take 2^3000 steps. */
static void time_is_not_exponential(void **state)
{
    static const char *const hard[] = {"(?:a|a)+b", "(?:a+){1,9}b", "(?:a?){30}a{30}b",
                                       "(?=(?:a|aa)+c)a"};
    char text[3001];
    (void)state;
    memset(text, 'a', 3000);
    text[3000] = '\0';
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        struct dt_regex *r;
        struct dt_error err;
        size_t start, end;
        assert_int_equal(dt_regex_new(&r, hard[i], "FILE", &err), 0);
        assert_false(dt_regex_find(r, text, 400, 0, &start, &end));
        dt_regex_free(r);
    }
}

static void an_invalid_byte_is_an_unassigned_character(void **state)
{
    struct dt_regex *r;
    struct dt_error err;
    size_t start, end;
    (void)state;
    assert_int_equal(dt_regex_new(&r, "[^\\s\\p{L}\\p{N}]+", "FILE", &err), 0);
    assert_true(dt_regex_find(r, "a\xff\xc3 b", 5, 0, &start, &end));
    assert_int_equal(start, 1);
    assert_int_equal(end, 3);
    dt_regex_free(r);
}

/* As Oniguruma has it: U+00BD is a word character outside of brackets only. */
static void fractions_are_words_outside_of_classes(void **state)
{
    static const char *const expressions[] = {"\\w",      "[\\w]",     "[^\\W]",
                                              "[a[\\w]]", "\\p{Word}", "[\\p{Word}]"};
    (void)state;
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        struct dt_regex *r;
        struct dt_error err;
        size_t start, end;
        assert_int_equal(dt_regex_new(&r, expressions[i], "FILE", &err), 0);
        assert_int_equal(dt_regex_find(r, "\xc2\xbd", 2, 0, &start, &end), i % 4 == 0);
        dt_regex_free(r);
    }
}

/* Expressions, whether words may be matched separately, and whether each space starts a match. */
static const struct {
    const char *expression;
    bool separable, takes_spaces;
} at_words[] = {
    {"\\s+(?!\\S)|\\s+", true, true},
    {"'s| ?\\p{L}+| ?[^\\s\\p{L}]+|\\s+(?!\\S)|\\s+", true, true},
    {"[^\\s\\p{L}]+[\\r\\n]*| ?\\p{L}+", true, false},
    {"\\p{N}{1,3}", true, false},
    {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+", true, false},
    {"(?>[a-z]+)\\s*", false, false},
    {"a b", false, false},
    {"[^x]+", false, false},
    {"(?:a| )+", false, false},
    {"(?:ab| c)+", false, false},
    {"\\p{L}+(?=\\s)", false, false},
    {"\\s+\\z", false, false},
    {"(?<=a) ", false, false},
    {"\\bx", false, false},
    {"x*", false, false},
    {"x(?! )", false, false},
};

static void what_may_be_matched_by_words_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof at_words / sizeof *at_words; i++) {
        struct dt_regex *r;
        struct dt_error err;
        assert_int_equal(dt_regex_new(&r, at_words[i].expression, "test", &err), 0);
        struct dt_regex_words words = dt_regex_describe_words(r);
        if (words.separable != at_words[i].separable ||
            (words.separable && words.takes_spaces != at_words[i].takes_spaces))
            fail_msg("%s: %d %d", at_words[i].expression, words.separable, words.takes_spaces);
        dt_regex_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_those_of_oniguruma),
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
        cmocka_unit_test(time_is_not_exponential),
        cmocka_unit_test(an_invalid_byte_is_an_unassigned_character),
        cmocka_unit_test(fractions_are_words_outside_of_classes),
        cmocka_unit_test(what_may_be_matched_by_words_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
