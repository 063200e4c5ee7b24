/* SPDX-License-Identifier: MIT */
#include "extract/page-facts.h"

#include <string.h>
#include <strings.h>

#define MOST_VALUE ((size_t)4096) /* bytes that are kept of a value */

void dt_page_facts_clear(struct dt_page_facts *f)
{
    dt_buffer_clear(&f->title);
    dt_buffer_clear(&f->date);
    dt_buffer_clear(&f->language);
    dt_buffer_clear(&f->licence);
    dt_buffer_clear(&f->robots);
    dt_buffer_clear(&f->canonical);
    f->has_title = f->has_licence = false;
}

void dt_page_facts_release(struct dt_page_facts *f)
{
    dt_buffer_release(&f->title);
    dt_buffer_release(&f->date);
    dt_buffer_release(&f->language);
    dt_buffer_release(&f->licence);
    dt_buffer_release(&f->robots);
    dt_buffer_release(&f->canonical);
}

static const char *value_of(const char *const *attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(*attributes, name) == 0)
            return attributes[1];
    return NULL;
}

static void set(struct dt_buffer *b, const char *value)
{
    size_t size = strlen(value);
    dt_buffer_clear(b);
    dt_buffer_append(b, value, size < MOST_VALUE ? size : MOST_VALUE);
}

static void set_first(struct dt_buffer *b, const char *value)
{
    if (b->size == 0 && value)
        set(b, value);
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcasecmp(word, *list) == 0)
            return true;
    return false;
}

static void take_named(struct dt_page_facts *f, const char *name, const char *content)
{
    static const char *const dates[] = {"article:published_time",
                                        "og:published_time",
                                        "datePublished",
                                        "date",
                                        "dc.date",
                                        "dc.date.issued",
                                        "dcterms.created",
                                        "dcterms.date",
                                        "pubdate",
                                        "publishdate",
                                        "parsely-pub-date",
                                        "sailthru.date",
                                        "citation_publication_date",
                                        NULL};
    static const char *const robots[] = {"robots", "googlebot", "ccbot", "gptbot", NULL};
    if (is_one_of(name, dates))
        set_first(&f->date, content);
    if (strcasecmp(name, "og:title") == 0 && !f->has_title) {
        set(&f->title, content);
        f->has_title = true;
    }
    if (is_one_of(name, robots) && f->robots.size < MOST_VALUE) {
        dt_buffer_add_string(&f->robots, f->robots.size > 0 ? ", " : "");
        dt_buffer_add_string(&f->robots, content);
    }
}

/* An element may have a name and a property. */
static void take_meta(struct dt_page_facts *f, const char *const *attributes)
{
    static const char *const names[] = {"name", "property", "itemprop"};
    const char *content = value_of(attributes, "content");
    const char *equivalent = value_of(attributes, "http-equiv");
    if (content == NULL || content[strspn(content, " \t\n\f\r")] == '\0')
        return;
    if (equivalent && strcasecmp(equivalent, "content-language") == 0)
        set_first(&f->language, content);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = value_of(attributes, names[i]);
        if (name)
            take_named(f, name, content);
    }
}

/* Whether rel, a list of words, has this one. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p; p += strcspn(p, " \t\n"), p += strspn(p, " \t\n"))
        if (strcspn(p, " \t\n") == n && strncasecmp(p, word, n) == 0)
            return true;
    return false;
}

static bool is_creative_commons(const char *address)
{
    const char *host = strstr(address, "://");
    if (host == NULL)
        return false;
    host += strncasecmp(host + 3, "www.", 4) == 0 ? 7 : 3;
    return strncasecmp(host, "creativecommons.org/licenses/", 29) == 0 ||
           strncasecmp(host, "creativecommons.org/publicdomain/", 33) == 0;
}

static void take_link(struct dt_page_facts *f, const char *const *attributes, bool in_head)
{
    const char *rel = value_of(attributes, "rel"), *address = value_of(attributes, "href");
    if (address == NULL)
        return;
    if (!f->has_licence && rel && has_word(rel, "license")) {
        set(&f->licence, address);
        f->has_licence = true;
    } else if (is_creative_commons(address)) {
        set_first(&f->licence, address);
    }
    if (in_head && rel && has_word(rel, "canonical") && strstr(address, "://")) /* not relative */
        set_first(&f->canonical, address);
}

void dt_page_facts_take(struct dt_page_facts *f, const char *name, const char *const *attributes)
{
    if (strchr("amlht", name[0]) == NULL)
        return;
    if (name[0] == 'a' && name[1] == '\0')
        take_link(f, attributes, false);
    else if (strcmp(name, "meta") == 0)
        take_meta(f, attributes);
    else if (strcmp(name, "link") == 0)
        take_link(f, attributes, true);
    else if (strcmp(name, "html") == 0)
        set_first(&f->language, value_of(attributes, "lang"));
    else if (strcmp(name, "time") == 0)
        set_first(&f->date, value_of(attributes, "datetime"));
}
