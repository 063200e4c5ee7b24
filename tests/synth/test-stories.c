/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"
#include "synth/stories.h"

static struct dt_grammar *stories(void)
{
    struct dt_error err;
    struct dt_grammar *g;
    if (dt_stories_new(&g, &err) < 0)
        fail_msg("%s", err.text);
    return g;
}

static void the_story_grammar_is_proved_unambiguous(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_grammar *g = stories();
    if (dt_grammar_check(g, &err) < 0)
        fail_msg("%s", err.text);
    dt_grammar_free(g);
}

/* Parsing tries every derivation: one is found, and it is the one drawn. */
static void each_story_reads_back_to_its_only_derivation(void **state)
{
    (void)state;
    struct dt_grammar *g = stories();
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    for (uint64_t i = 0; i < 20000; i++) {
        double parsed = 0, logprob = dt_stories_write(g, 11, i, &doc);
        assert_int_equal(dt_grammar_parse(g, doc.text.data, doc.text.size, &parsed), 1);
        assert_true(parsed == logprob);
    }
    dt_document_release(&doc);
    dt_grammar_free(g);
}

static void the_mean_logprob_is_the_entropy(void **state)
{
    (void)state;
    struct dt_grammar *g = stories();
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    const int n = 50000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double x = -dt_stories_write(g, 12, (uint64_t)i, &doc);
        sum += x;
        squares += x * x;
    }
    double mean = sum / n, deviation = sqrt(squares / n - mean * mean);
    assert_true(fabs(mean - dt_grammar_entropy(g)) < 4 * deviation / sqrt(n));
    dt_document_release(&doc);
    dt_grammar_free(g);
}

static const char *const names[] = {"Lily", "Mia", "Rosie", "Emma", "Daisy", "Molly",
                                    "Ben",  "Tom", "Max",   "Sam",  "Jack",  "Tim"};
enum { NAMES = sizeof names / sizeof *names };

/* The place in names of the name that comes first in the text. */
static int first_name(const char *text)
{
    int first = -1;
    const char *at = NULL;
    for (int k = 0; k < NAMES; k++) {
        const char *found = strstr(text, names[k]);
        if (found && (!at || found < at)) {
            at = found;
            first = k;
        }
    }
    return first;
}

/* Chi-square over the heroes: uniform by the grammar. 31.26 is the 0.999
 * quantile at 11 degrees of freedom. */
static void choices_follow_their_weights(void **state)
{
    (void)state;
    struct dt_grammar *g = stories();
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    int count[NAMES] = {0}, n = 30000;
    for (int i = 0; i < n; i++) {
        dt_stories_write(g, 13, (uint64_t)i, &doc);
        int hero = first_name(doc.text.data);
        assert_in_range(hero, 0, NAMES - 1);
        count[hero]++;
    }
    double chi_square = 0, expected = (double)n / NAMES;
    for (int k = 0; k < NAMES; k++)
        chi_square += (count[k] - expected) * (count[k] - expected) / expected;
    assert_true(chi_square < 31.26);
    dt_document_release(&doc);
    dt_grammar_free(g);
}

static int words(const char *text)
{
    int count = 0;
    for (const char *p = text; *p; p++)
        count += *p != ' ' && *p != '\n' && (p == text || p[-1] == ' ' || p[-1] == '\n');
    return count;
}

/* "a owl", "an fox", two spaces, an unfinished sentence. */
static void stories_are_well_formed(void **state)
{
    (void)state;
    struct dt_grammar *g = stories();
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    int total = 0, n = 10000;
    for (int i = 0; i < n; i++) {
        dt_stories_write(g, 14, (uint64_t)i, &doc);
        const char *text = doc.text.data;
        for (const char *p = text; (p = strstr(p, " a")) != NULL; p++) {
            assert_false(p[2] == ' ' && strchr("aeio", p[3]));
            assert_false(p[2] == 'n' && p[3] == ' ' && !strchr("aeiou", p[4]));
        }
        assert_null(strstr(text, "  "));
        assert_null(strpbrk(text, "{}*"));
        assert_non_null(strchr(".!", text[doc.text.size - 1]));
        assert_in_range(words(text), 60, 220);
        total += words(text);
    }
    assert_in_range(total / n, 80, 160);
    dt_document_release(&doc);
    dt_grammar_free(g);
}

static void a_story_depends_on_its_seed_and_index_alone(void **state)
{
    (void)state;
    struct dt_grammar *g = stories();
    struct dt_document a = DT_DOCUMENT_EMPTY, b = DT_DOCUMENT_EMPTY;
    dt_stories_write(g, 1, 7, &a);
    dt_stories_write(g, 2, 7, &b);
    assert_string_not_equal(a.text.data, b.text.data);
    dt_stories_write(g, 1, 8, &b);
    assert_string_not_equal(a.text.data, b.text.data);
    dt_stories_write(g, 1, 7, &b);
    assert_string_equal(a.text.data, b.text.data);
    assert_string_equal(b.id.data, "1-7");
    dt_document_release(&a);
    dt_document_release(&b);
    dt_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_story_grammar_is_proved_unambiguous),
        cmocka_unit_test(each_story_reads_back_to_its_only_derivation),
        cmocka_unit_test(the_mean_logprob_is_the_entropy),
        cmocka_unit_test(choices_follow_their_weights),
        cmocka_unit_test(stories_are_well_formed),
        cmocka_unit_test(a_story_depends_on_its_seed_and_index_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
