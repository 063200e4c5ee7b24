/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "dedup/substrings.h"
#include "math/rng.h"

#define LENGTH 8
#define TEXTS  12
#define MOST   120

static struct dt_error err;

/* Whether the LENGTH bytes at `at` of text t occur before, by comparing with every place. */
static bool occurs_before(char (*texts)[MOST + 1], size_t t, size_t at)
{
    for (size_t k = 0; k <= t; k++) {
        size_t size = strlen(texts[k]);
        for (size_t i = 0; i + LENGTH <= size && (k < t || i < at); i++)
            if (memcmp(texts[k] + i, texts[t] + at, LENGTH) == 0)
                return true;
    }
    return false;
}

static void assert_spans(const struct dt_substrings *s, char (*texts)[MOST + 1], size_t t)
{
    bool expected[MOST] = {false}, found[MOST] = {false};
    size_t size = strlen(texts[t]), at = 0;
    struct dt_substrings_span span;
    for (size_t i = 0; i + LENGTH <= size; i++)
        if (occurs_before(texts, t, i))
            memset(expected + i, true, LENGTH);
    while (dt_substrings_next(s, t, &at, &span))
        memset(found + span.from, true, span.to - span.from);
    assert_memory_equal(found, expected, size);
}

static void spans_are_those_of_comparing_every_place(void **state)
{
    struct dt_rng rng;
    (void)state;
    dt_rng_init(&rng, 5);
    for (int trial = 0; trial < 60; trial++) {
        static char texts[TEXTS][MOST + 1];
        struct dt_substrings *s = dt_substrings_new(LENGTH);
        for (size_t t = 0; t < TEXTS; t++) {
            size_t size = dt_rng_below(&rng, MOST);
            for (size_t i = 0; i < size; i++)
                texts[t][i] = (char)('a' + dt_rng_below(&rng, 2 + (uint32_t)trial / 20));
            texts[t][size] = '\0';
            dt_substrings_add(s, texts[t], size);
        }
        if (dt_substrings_find(s, &err) == DT_EMISSING) {
            dt_substrings_free(s);
            print_message("%s\n", err.text);
            skip();
        }
        for (size_t t = 0; t < TEXTS; t++)
            assert_spans(s, texts, t);
        dt_substrings_free(s);
    }
}

/* Of characters of 3 bytes, spans that begin or end inside one are shortened. */
static void spans_have_whole_characters(void **state)
{
    static const char *const texts[] = {"\u4e00\u4e8c\u4e09\u56db\u4e94",
                                        "x\u5e00\u4e8c\u4e09\u56db\u4e9c"};
    struct dt_substrings *s = dt_substrings_new(LENGTH);
    struct dt_substrings_span span;
    size_t at = 0, size;
    (void)state;
    for (size_t i = 0; i < 2; i++)
        dt_substrings_add(s, texts[i], strlen(texts[i]));
    if (dt_substrings_find(s, &err) < 0) {
        dt_substrings_free(s);
        skip();
    }
    assert_false(dt_substrings_next(s, 0, &at, &span));
    assert_true(dt_substrings_next(s, 1, &at, &span));
    assert_int_equal(span.from, 4);
    assert_int_equal(span.to, 13);
    assert_false(dt_substrings_next(s, 1, &at, &span));
    assert_string_equal(dt_substrings_text(s, 1, &size) + 13, "\u4e9c\xff");
    dt_substrings_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_those_of_comparing_every_place),
        cmocka_unit_test(spans_have_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
