/* SPDX-License-Identifier: MIT */
/*
 * What the head of a page says about it, and its links to licences.
 *
 *     dt_page_facts_take(&facts, "meta", attributes);
 */
#ifndef DT_EXTRACT_PAGE_FACTS_H
#define DT_EXTRACT_PAGE_FACTS_H

#include <stdbool.h>

#include "base/buffer.h"

/* Empty where the page does not say it. Raw bytes of the page, in UTF-8. */
struct dt_page_facts {
    struct dt_buffer title;     /* of og:title, else of the element */
    struct dt_buffer date;      /* of publication, as the page writes it */
    struct dt_buffer language;  /* of <html lang> or a meta element */
    struct dt_buffer licence;   /* address: rel=license, or of Creative Commons */
    struct dt_buffer robots;    /* directives of the meta elements, separated by ", " */
    struct dt_buffer canonical; /* address that the page states */
    bool has_title;             /* title is of og:title */
    bool has_licence;           /* licence is of rel=license */
};

void dt_page_facts_clear(struct dt_page_facts *facts);
void dt_page_facts_release(struct dt_page_facts *facts);
/* Takes note of an element: html, meta, link, a, time. */
void dt_page_facts_take(struct dt_page_facts *facts, const char *name,
                        const char *const *attributes);

#endif
