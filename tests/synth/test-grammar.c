/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/grammar.h"

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const struct dt_grammar_table pets[] = {
    {"pets", "name/he", LIST("Rex/he", "Kit/she", "Bob/he")}, {NULL, NULL, NULL}};
static const struct dt_grammar_table no_tables[] = {{NULL, NULL, NULL}};

static const struct dt_grammar_rule walk[] = {
    {"start", LIST("3*{a=pets.name} ran.{more}", "1*So {a=pets.name} and {b=pets.name} sat.")},
    {"more", LIST(" {a.He} {verb} {b=pets.name}.", "2*", " {a.He} slept.")},
    {"verb", LIST("met", "saw")},
    {NULL, NULL}};

static struct dt_grammar *grammar_of(const struct dt_grammar_table *tables,
                                     const struct dt_grammar_rule *rules)
{
    struct dt_error err = {0};
    struct dt_grammar *g;
    if (dt_grammar_new(&g, tables, rules, &err) < 0)
        fail_msg("%s", err.text);
    return g;
}

static double logprob_of(const struct dt_grammar *g, const char *text, long derivations)
{
    double logprob = 0;
    assert_int_equal(dt_grammar_parse(g, text, strlen(text), &logprob), derivations);
    return logprob;
}

static void a_text_has_the_product_of_its_choices(void **state)
{
    (void)state;
    struct dt_grammar *g = grammar_of(pets, walk);
    assert_float_equal(logprob_of(g, "Kit ran.", 1), log(0.75 / 3 * 0.5), 1e-12);
    assert_float_equal(logprob_of(g, "Kit ran. She slept.", 1), log(0.75 / 3 / 4), 1e-12);
    assert_float_equal(logprob_of(g, "Rex ran. He saw Kit.", 1), log(0.75 / 3 / 4 / 2 / 2), 1e-12);
    assert_float_equal(logprob_of(g, "So Bob and Rex sat.", 1), log(0.25 / 3 / 2), 1e-12);
    dt_grammar_free(g);
}

static void what_the_grammar_cannot_write_has_no_derivation(void **state)
{
    (void)state;
    struct dt_grammar *g = grammar_of(pets, walk);
    const char *const wrong[] = {"",
                                 "Kit ran",
                                 "Kit ran. He slept.",
                                 "Rex ran. He saw Rex.",
                                 "So Bob and Bob sat.",
                                 "Kit ran. She slept. "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        logprob_of(g, wrong[i], 0);
    dt_grammar_free(g);
}

/* All texts of the small grammar: their probabilities sum to 1, and the
 * entropy is what its definition says. */
static void probabilities_sum_to_one_and_give_the_entropy(void **state)
{
    (void)state;
    struct dt_grammar *g = grammar_of(pets, walk);
    const char *const names[] = {"Rex", "Kit", "Bob"}, *const he[] = {"He", "She", "He"};
    char text[64];
    double sum = 0, entropy = 0;
    for (int a = 0; a < 3; a++)
        for (int b = -2; b < 3; b++)
            for (int form = 0; form < (b < 0 ? 1 : 3); form++) {
                if (a == b)
                    continue;
                if (b == -2)
                    snprintf(text, sizeof text, "%s ran.", names[a]);
                else if (b == -1)
                    snprintf(text, sizeof text, "%s ran. %s slept.", names[a], he[a]);
                else if (form == 0)
                    snprintf(text, sizeof text, "So %s and %s sat.", names[a], names[b]);
                else
                    snprintf(text, sizeof text, "%s ran. %s %s %s.", names[a], he[a],
                             form == 1 ? "met" : "saw", names[b]);
                double logprob = logprob_of(g, text, 1);
                sum += exp(logprob);
                entropy -= exp(logprob) * logprob;
            }
    assert_float_equal(sum, 1, 1e-12);
    assert_float_equal(dt_grammar_entropy(g), entropy, 1e-12);
    dt_grammar_free(g);
}

static void generated_texts_follow_their_probabilities(void **state)
{
    (void)state;
    struct dt_grammar *g = grammar_of(pets, walk);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    int slept = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        dt_buffer_clear(&text);
        double logprob = dt_grammar_generate(g, &rng, &text);
        assert_true(logprob == logprob_of(g, text.data, 1));
        slept += strcmp(text.data, "Kit ran. She slept.") == 0;
    }
    double p = 0.75 / 3 / 4;
    assert_true(fabs(slept - n * p) < 4 * sqrt(n * p));
    dt_buffer_release(&text);
    dt_grammar_free(g);
}

static void the_proof_accepts_a_grammar_that_parts(void **state)
{
    (void)state;
    struct dt_grammar *g = grammar_of(pets, walk);
    struct dt_error err;
    assert_int_equal(dt_grammar_check(g, &err), 0);
    dt_grammar_free(g);
}

static void the_proof_refuses_ambiguity(void **state)
{
    (void)state;
    const struct dt_grammar_rule same[] = {
        {"s", LIST("a{x}", "{y}b")}, {"x", LIST("b", "c")}, {"y", LIST("a", "c")}, {NULL, NULL}};
    const struct dt_grammar_rule empty[] = {
        {"s", LIST("a{x}{x}")}, {"x", LIST("", "b")}, {NULL, NULL}};
    const struct dt_grammar_table twins[] = {{"t", "n", LIST("ab", "a")}, {NULL, NULL, NULL}};
    const struct dt_grammar_rule rows[] = {
        {"s", LIST("{v=t.n}{x}")}, {"x", LIST("b", "bb")}, {NULL, NULL}};
    const struct dt_grammar_rule *const rules[] = {same, empty, rows};
    const char *const text[] = {"ab", "ab", "abb"};
    for (int i = 0; i < 3; i++) {
        struct dt_error err = {0};
        struct dt_grammar *g = grammar_of(i == 2 ? twins : no_tables, rules[i]);
        assert_int_equal(dt_grammar_check(g, &err), DT_EINVALID);
        assert_non_null(strstr(err.text, "may be confused"));
        logprob_of(g, text[i], 2);
        dt_grammar_free(g);
    }
}

static void wrong_grammars_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *start, *other, *message;
    } cases[] = {
        {"{nothing}", "x", "no rule or variable '{nothing}'"},
        {"{a=pets.name}{a.size}", "x", "no column for '{a.size}'"},
        {"{a=cars.name}", "x", "no table for '{a=cars.name}'"},
        {"{a}{a=pets.name}", "x", "used before it is bound"},
        {"{a=pets.name}{a=pets.name}", "x", "bound twice"},
        {"{a=pets.name}{b=pets.name}{c=pets.name}{d=pets.name}", "x", "has too few rows for 'd'"},
        {"{other}", "a{other}", "rule 'other' recurs"},
        {"{other", "x", "no '}'"},
        {"0*x", "x", "bad weight"},
        {"{other=pets.name}", "x", "variable 'other' has the name of a rule"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_grammar_rule rules[] = {
            {"start", LIST(cases[i].start)}, {"other", LIST(cases[i].other)}, {NULL, NULL}};
        struct dt_error err = {0};
        struct dt_grammar *g;
        assert_int_equal(dt_grammar_new(&g, pets, rules, &err), DT_EINVALID);
        assert_null(g);
        if (!strstr(err.text, cases[i].message))
            fail_msg("'%s' lacks '%s'", err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_product_of_its_choices),
        cmocka_unit_test(what_the_grammar_cannot_write_has_no_derivation),
        cmocka_unit_test(probabilities_sum_to_one_and_give_the_entropy),
        cmocka_unit_test(generated_texts_follow_their_probabilities),
        cmocka_unit_test(the_proof_accepts_a_grammar_that_parts),
        cmocka_unit_test(the_proof_refuses_ambiguity),
        cmocka_unit_test(wrong_grammars_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
