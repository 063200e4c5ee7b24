/* SPDX-License-Identifier: MIT */
/* What a rule is set to for the language of a document: the sections of its rule file; and the
 * scores that rules compare. */
#ifndef DT_CLEAN_RULE_SETTING_H
#define DT_CLEAN_RULE_SETTING_H

#include "clean/rule.h"

/* meta.lang of the document: "" if it has none. Belongs to scratch. */
const char *dt_rule_language(const struct dt_document *document, struct dt_rule_scratch *scratch);
/* The rule's setting for a document of this language. */
double dt_rule_setting(const struct dt_rule *rule, const struct dt_document *document,
                       struct dt_rule_scratch *scratch);
/* The stop words for it; NULL: Gopher's. */
const struct dt_stop_words *dt_rule_stop_words(const struct dt_rule *rule,
                                               const struct dt_document *document,
                                               struct dt_rule_scratch *scratch);

#define DT_RULE_SCORE 32 /* bytes of its text */
/* A score of a classifier as meta and rules have it: at most 1, since fastText adds 0.00001 to each
 * probability, and the number of the shortest decimal text, which is written to text. */
double dt_rule_score(float score, char text[DT_RULE_SCORE]);

#endif
