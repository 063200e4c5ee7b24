/* SPDX-License-Identifier: MIT */
#include "clean/rule-setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/meta.h"

const char *dt_rule_language(const struct dt_document *document, struct dt_rule_scratch *scratch)
{
    if (!scratch->language_known)
        dt_meta_get_string(&document->meta, "lang", &scratch->language);
    scratch->language_known = true;
    return scratch->language.data;
}

/* The section of the rule's file for the document. */
static size_t section_of(const struct dt_rule *rule, const struct dt_document *document,
                         struct dt_rule_scratch *scratch)
{
    if (scratch->languages != rule->languages)
        scratch->section =
            dt_rule_languages_find(rule->languages, dt_rule_language(document, scratch));
    scratch->languages = rule->languages;
    return scratch->section;
}

double dt_rule_setting(const struct dt_rule *rule, const struct dt_document *document,
                       struct dt_rule_scratch *scratch)
{
    return rule->settings ? rule->settings[section_of(rule, document, scratch)] : rule->setting;
}

const struct dt_stop_words *dt_rule_stop_words(const struct dt_rule *rule,
                                               const struct dt_document *document,
                                               struct dt_rule_scratch *scratch)
{
    if (rule->languages == NULL)
        return NULL;
    return dt_rule_languages_stop_words(rule->languages, section_of(rule, document, scratch));
}

double dt_rule_score(float score, char text[DT_RULE_SCORE])
{
    score = fminf(score, 1);
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, DT_RULE_SCORE, "%.*g", digits, (double)score);
        if (strtof(text, NULL) == score)
            break;
    }
    return strtod(text, NULL);
}
