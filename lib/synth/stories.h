/* SPDX-License-Identifier: MIT */
/*
 * Short children's stories from an unambiguous grammar: text with a known
 * entropy, for tests and demonstrations of language models. Document i under a
 * seed is a pure function of both.
 */
#ifndef DT_SYNTH_STORIES_H
#define DT_SYNTH_STORIES_H

#include "document/document.h"
#include "synth/grammar.h"

/* The grammar of the stories; *grammar is owned by the caller. */
int dt_stories_new(struct dt_grammar **grammar, struct dt_error *err) DT_MUST_CHECK;

/* Replaces doc by story number index under seed: id "SEED-INDEX", and
 * meta.logprob the natural logarithm of the text's probability, which is also
 * returned. */
double dt_stories_write(const struct dt_grammar *grammar, uint64_t seed, uint64_t index,
                        struct dt_document *doc);

#endif
