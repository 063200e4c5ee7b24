/* SPDX-License-Identifier: MIT */
/*
 * The sections of a rule file: settings for documents of some languages.
 *
 * Section 0 is the part of the file before the first header, for all languages that no other
 * section names. A setting that a section lacks is that of section 0. All-zero is valid: section 0
 * alone.
 */
#ifndef DT_CLEAN_RULE_LANGUAGES_H
#define DT_CLEAN_RULE_LANGUAGES_H

#include <stddef.h>

#include "clean/stop-words.h"
#include "language/script.h"

struct dt_rule_language {
    char *code; /* as in meta.lang; owned */
    size_t section;
};

struct dt_rule_section {
    int line;                         /* of its header */
    struct dt_stop_words *stop_words; /* owned; NULL: none are given */
};

struct dt_rule_languages {
    struct dt_rule_language *codes; /* sorted by dt_rule_languages_sort */
    size_t code_count, code_capacity;
    struct dt_rule_section *sections;
    size_t section_count, section_capacity;
    enum dt_segmentation segmentation; /* of the whole file */
};

/* Returns 0, or the line of the section that has the language already. */
int dt_rule_languages_add(struct dt_rule_languages *l, const char *code, size_t size,
                          size_t section);
/* Call after the last dt_rule_languages_add, before dt_rule_languages_find. */
void dt_rule_languages_sort(struct dt_rule_languages *l);
/* The section for documents of this language. */
size_t dt_rule_languages_find(const struct dt_rule_languages *l, const char *language);
/* The stop words of a section; NULL: Gopher's. */
const struct dt_stop_words *dt_rule_languages_stop_words(const struct dt_rule_languages *l,
                                                         size_t section);
void dt_rule_languages_release(struct dt_rule_languages *l);

#endif
