/* SPDX-License-Identifier: MIT */
/*
 * What the attributes of an element tell about its text: names of classes and ids that many sites
 * have in common, roles of WAI-ARIA, properties of schema.org.
 *
 *     struct dt_hints hints = dt_hints_of(attributes);
 */
#ifndef DT_EXTRACT_HINTS_H
#define DT_EXTRACT_HINTS_H

enum dt_hint {
    DT_HINT_CONTENT = 1, /* article-body, entry-content: the main text and nothing else */
    DT_HINT_BODY = 2,    /* role main or article */
    DT_HINT_BOILER = 4,  /* navigation, advertisements, shares */
    DT_HINT_COMMENT = 8, /* comments of readers */
    DT_HINT_HIDDEN = 16
};

/* A set of enum dt_hint. attributes: names and values in turn, ended by NULL. */
unsigned dt_hints_of(const char *const *attributes);

#endif
