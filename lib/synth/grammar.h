/* SPDX-License-Identifier: MIT */
/*
 * Stochastic grammars whose texts have an exactly known probability.
 *
 * A grammar is tables and rules. A rule has alternatives, one of which is
 * chosen by weight; a table has rows, one of which is drawn uniformly and
 * bound to a variable for the rest of the text. In an alternative stand
 *
 *     plain text          itself
 *     {rule}              the expansion of a rule
 *     {hero=people.name}  a row of table "people" that no variable holds yet,
 *                         bound to "hero"; the text is its column "name"
 *     {hero.he}           column "he" of the bound row; {hero.He} capitalised
 *     {hero}              the first column of the bound row
 *
 * and "3*" at its start gives it weight 3 (1 without). Rules do not recur, so
 * every text is finite. The first rule is the start.
 *
 * Probability of a text: the product of the probabilities of its choices. It
 * is exact only if no two derivations give the same text; dt_grammar_check
 * proves that, and dt_grammar_parse counts the derivations of a text.
 *
 *     DT_TRY(dt_grammar_new(&grammar, tables, rules, err));
 *     dt_rng_init(&rng, key);
 *     double logprob = dt_grammar_generate(grammar, &rng, &text);
 */
#ifndef DT_SYNTH_GRAMMAR_H
#define DT_SYNTH_GRAMMAR_H

#include "base/buffer.h"
#include "base/error.h"
#include "math/rng.h"

struct dt_grammar_table {
    const char *name;        /* NULL ends the list of tables */
    const char *columns;     /* "name/he/him" */
    const char *const *rows; /* "Lily/she/her", ended by NULL */
};

struct dt_grammar_rule {
    const char *name;                /* NULL ends the list of rules */
    const char *const *alternatives; /* ended by NULL */
};

struct dt_grammar;

/* *grammar is owned by the caller (dt_grammar_free); the tables and rules are
 * copied. DT_EINVALID names the rule that is wrong: an unknown symbol, a bad
 * weight, a rule that recurs, a variable that may be used before it is bound
 * or bound twice, a table with fewer rows than variables. */
int dt_grammar_new(struct dt_grammar **grammar, const struct dt_grammar_table *tables,
                   const struct dt_grammar_rule *rules, struct dt_error *err) DT_MUST_CHECK;
void dt_grammar_free(struct dt_grammar *grammar); /* NULL is fine */

/* Appends one text, drawn with rng; returns its natural log-probability. */
double dt_grammar_generate(const struct dt_grammar *grammar, struct dt_rng *rng,
                           struct dt_buffer *text);

/* The expected -logprob of a text in nats: the grammar's entropy, exact if the
 * grammar is unambiguous, an upper bound of it otherwise. */
double dt_grammar_entropy(const struct dt_grammar *grammar);

/* The number of derivations of a text, 0 if the grammar cannot write it, and
 * the natural log of their summed probabilities in *logprob. */
long dt_grammar_parse(const struct dt_grammar *grammar, const char *text, size_t size,
                      double *logprob);

/* Proves that the grammar is unambiguous: wherever a choice is made, what
 * follows under one alternative differs from what follows under another after
 * a common prefix, whatever is chosen later. DT_EINVALID names the rule where
 * the proof fails; the test is sufficient, not necessary. */
int dt_grammar_check(const struct dt_grammar *grammar, struct dt_error *err) DT_MUST_CHECK;

#endif
