/* SPDX-License-Identifier: MIT */
#include "extract/hints.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "extract/name-table.h"

/* Words of classes and ids. A name that has a subject and a part, as "article-body" has, is of the
 * main text. */
enum { SUBJECT = 1, PART = 2, BOILER = 4, COMMENT = 8, HIDDEN = 16, CONTENT = 32 };

static const struct dt_name_entry words[] = {{"article", SUBJECT},
                                             {"articles", SUBJECT},
                                             {"entry", SUBJECT},
                                             {"post", SUBJECT},
                                             {"story", SUBJECT},
                                             {"blog", SUBJECT},
                                             {"blogpost", SUBJECT},
                                             {"news", SUBJECT},
                                             {"body", PART},
                                             {"content", PART},
                                             {"contents", PART},
                                             {"text", PART},
                                             {"copy", PART},
                                             {"articlebody", CONTENT},
                                             {"articletext", CONTENT},
                                             {"articlecontent", CONTENT},
                                             {"storybody", CONTENT},
                                             {"storytext", CONTENT},
                                             {"storycontent", CONTENT},
                                             {"postbody", CONTENT},
                                             {"posttext", CONTENT},
                                             {"postcontent", CONTENT},
                                             {"entrycontent", CONTENT},
                                             {"entrybody", CONTENT},
                                             {"entrytext", CONTENT},
                                             {"bodytext", CONTENT},
                                             {"fulltext", CONTENT},
                                             {"maintext", CONTENT},
                                             /* ways around */
                                             {"nav", BOILER},
                                             {"navs", BOILER},
                                             {"navbar", BOILER},
                                             {"navbox", BOILER},
                                             {"navigation", BOILER},
                                             {"navigator", BOILER},
                                             {"subnav", BOILER},
                                             {"topnav", BOILER},
                                             {"menu", BOILER},
                                             {"menus", BOILER},
                                             {"menubar", BOILER},
                                             {"submenu", BOILER},
                                             {"breadcrumb", BOILER},
                                             {"breadcrumbs", BOILER},
                                             {"crumb", BOILER},
                                             {"crumbs", BOILER},
                                             {"pagination", BOILER},
                                             {"paginator", BOILER},
                                             {"pager", BOILER},
                                             {"paging", BOILER},
                                             {"pagenav", BOILER},
                                             {"toc", BOILER},
                                             {"tabs", BOILER},
                                             {"search", BOILER},
                                             {"searchbox", BOILER},
                                             {"sitemap", BOILER},
                                             {"skiplink", BOILER},
                                             {"skip", BOILER},
                                             {"jump", BOILER},
                                             {"prevnext", BOILER},
                                             {"toolbar", BOILER},
                                             {"topbar", BOILER},
                                             {"dropdown", BOILER},
                                             {"carousel", BOILER},
                                             {"slider", BOILER},
                                             {"slideshow", BOILER},
                                             {"gallery", BOILER},
                                             {"headerlink", BOILER},
                                             {"editsection", BOILER},
                                             {"hatnote", BOILER},
                                             /* frames of a page */
                                             {"footer", BOILER},
                                             {"foot", BOILER},
                                             {"masthead", BOILER},
                                             {"sidebar", BOILER},
                                             {"sidebars", BOILER},
                                             {"sidemenu", BOILER},
                                             {"sidenav", BOILER},
                                             {"rail", BOILER},
                                             {"widget", BOILER},
                                             {"widgets", BOILER},
                                             {"banner", BOILER},
                                             {"colophon", BOILER},
                                             {"copyright", BOILER},
                                             {"legal", BOILER},
                                             {"disclaimer", BOILER},
                                             {"infobox", BOILER},
                                             /* other texts */
                                             {"related", BOILER},
                                             {"relatedposts", BOILER},
                                             {"recommended", BOILER},
                                             {"recommendation", BOILER},
                                             {"recirc", BOILER},
                                             {"teaser", BOILER},
                                             {"teasers", BOILER},
                                             {"trending", BOILER},
                                             {"popular", BOILER},
                                             {"mostread", BOILER},
                                             {"readmore", BOILER},
                                             {"outbrain", BOILER},
                                             {"taboola", BOILER},
                                             {"zergnet", BOILER},
                                             {"seealso", BOILER},
                                             /* asking the reader */
                                             {"share", BOILER},
                                             {"shares", BOILER},
                                             {"sharing", BOILER},
                                             {"sharebar", BOILER},
                                             {"sharedaddy", BOILER},
                                             {"addthis", BOILER},
                                             {"addtoany", BOILER},
                                             {"social", BOILER},
                                             {"socials", BOILER},
                                             {"facebook", BOILER},
                                             {"whatsapp", BOILER},
                                             {"follow", BOILER},
                                             {"newsletter", BOILER},
                                             {"newsletters", BOILER},
                                             {"subscribe", BOILER},
                                             {"subscription", BOILER},
                                             {"signup", BOILER},
                                             {"signin", BOILER},
                                             {"login", BOILER},
                                             {"register", BOILER},
                                             {"cart", BOILER},
                                             {"donate", BOILER},
                                             {"donation", BOILER},

                                             {"cookie", BOILER},
                                             {"cookies", BOILER},
                                             {"cookiebar", BOILER},
                                             {"consent", BOILER},
                                             {"gdpr", BOILER},
                                             {"popup", BOILER},
                                             {"modal", BOILER},
                                             {"overlay", BOILER},
                                             {"lightbox", BOILER},
                                             {"tooltip", BOILER},
                                             {"rating", BOILER},
                                             {"ratings", BOILER},
                                             {"vote", BOILER},
                                             {"votes", BOILER},
                                             {"poll", BOILER},
                                             {"cta", BOILER},
                                             {"callout", BOILER},
                                             {"optin", BOILER},
                                             /* advertisements */
                                             {"ad", BOILER},
                                             {"ads", BOILER},
                                             {"adv", BOILER},
                                             {"advert", BOILER},
                                             {"adverts", BOILER},
                                             {"advertisement", BOILER},
                                             {"advertising", BOILER},
                                             {"adsense", BOILER},
                                             {"adslot", BOILER},
                                             {"adbox", BOILER},
                                             {"dfp", BOILER},
                                             {"promo", BOILER},
                                             {"promos", BOILER},
                                             {"promotion", BOILER},
                                             {"promoted", BOILER},
                                             {"sponsor", BOILER},
                                             {"sponsors", BOILER},
                                             {"sponsored", BOILER},
                                             /* lines about the text */
                                             {"byline", BOILER},
                                             {"author", BOILER},
                                             {"authors", BOILER},
                                             {"authorbox", BOILER},
                                             {"bio", BOILER},
                                             {"meta", BOILER},
                                             {"metadata", BOILER},
                                             {"postmeta", BOILER},
                                             {"dateline", BOILER},
                                             {"timestamp", BOILER},
                                             {"tags", BOILER},
                                             {"tag", BOILER},
                                             {"taglist", BOILER},
                                             {"tagcloud", BOILER},
                                             {"keywords", BOILER},
                                             {"credit", BOILER},
                                             {"credits", BOILER},
                                             {"caption", BOILER},
                                             {"print", BOILER},
                                             {"printfriendly", BOILER},
                                             {"reference", BOILER},
                                             {"noprint", BOILER},
                                             /* readers */
                                             {"comment", COMMENT},
                                             {"comments", COMMENT},
                                             {"commentlist", COMMENT},
                                             {"commentarea", COMMENT},
                                             {"disqus", COMMENT},
                                             {"respond", COMMENT},
                                             {"reply", COMMENT},
                                             {"replies", COMMENT},
                                             {"livefyre", COMMENT},
                                             /* not shown */
                                             {"hidden", HIDDEN},
                                             {"hide", HIDDEN},
                                             {"invisible", HIDDEN},
                                             {"visuallyhidden", HIDDEN},
                                             {"sr", HIDDEN},
                                             {NULL, 0}};

static const struct dt_name_entry roles[] = {
    {"main", DT_HINT_BODY},      {"article", DT_HINT_BODY},       {"navigation", DT_HINT_BOILER},
    {"banner", DT_HINT_BOILER},  {"contentinfo", DT_HINT_BOILER}, {"complementary", DT_HINT_BOILER},
    {"search", DT_HINT_BOILER},  {"dialog", DT_HINT_BOILER},      {"alertdialog", DT_HINT_BOILER},
    {"menu", DT_HINT_BOILER},    {"menubar", DT_HINT_BOILER},     {"toolbar", DT_HINT_BOILER},
    {"tablist", DT_HINT_BOILER}, {"tooltip", DT_HINT_BOILER},     {NULL, 0}};

static struct dt_name_table word_table, role_table;

static void fill_tables(void)
{
    dt_name_table_fill(&word_table, words);
    dt_name_table_fill(&role_table, roles);
}

/* The end of the word at p: at a change from a lower to an upper case letter, or at a byte that is
 * no letter. The word is copied in lower case; a longer one is cut. */
static const char *take_word(const char *p, char word[DT_NAME_TABLE_WORD + 1], size_t *size)
{
    bool lower = false;
    for (*size = 0;; p++) {
        bool upper = *p >= 'A' && *p <= 'Z';
        if ((!upper && !(*p >= 'a' && *p <= 'z')) || (upper && lower))
            return p;
        lower = !upper;
        if (*size <= DT_NAME_TABLE_WORD)
            word[(*size)++] = (char)(*p | 32);
    }
}

/* The hints of one name, all of whose words are in `found`. */
static unsigned hints_of_name(unsigned found)
{
    unsigned hints = 0;
    if (found & COMMENT)
        hints |= DT_HINT_COMMENT;
    if (found & BOILER)
        hints |= DT_HINT_BOILER;
    if (found & HIDDEN)
        hints |= DT_HINT_HIDDEN;
    bool content = found & CONTENT || (found & (SUBJECT | PART)) == (SUBJECT | PART);
    return hints == 0 && content ? DT_HINT_CONTENT : hints;
}

/* The hints of names separated by white space. */
static unsigned hints_of_names(const char *p)
{
    unsigned hints = 0, found = 0;
    char word[DT_NAME_TABLE_WORD + 1];
    size_t size;
    while (*p) {
        if (strchr(" \t\n\r\f", *p)) {
            hints |= hints_of_name(found);
            found = 0;
        }
        const char *end = take_word(p, word, &size);
        if (size > 1)
            found |= dt_name_table_find(&word_table, word, size);
        p = end > p ? end : p + 1;
    }
    return hints | hints_of_name(found);
}

/* Whether a style hides the element: the property and its value, with white space between. */
static bool hides(const char *style)
{
    static const char *const pairs[][2] = {{"display", "none"}, {"visibility", "hidden"}};
    for (int i = 0; i < 2; i++)
        for (const char *p = style; (p = strcasestr(p, pairs[i][0])) != NULL;) {
            p += strlen(pairs[i][0]);
            p += strspn(p, " \t:");
            if (strncasecmp(p, pairs[i][1], strlen(pairs[i][1])) == 0)
                return true;
        }
    return false;
}

static unsigned hints_of_attribute(const char *name, const char *value)
{
    if (strcmp(name, "class") == 0 || strcmp(name, "id") == 0)
        return hints_of_names(value);
    if (strcmp(name, "role") == 0)
        return dt_name_table_find(&role_table, value, strlen(value));
    if (strcmp(name, "itemprop") == 0)
        return strcasecmp(value, "articleBody") == 0 ? DT_HINT_CONTENT
               : strcasecmp(value, "comment") == 0   ? DT_HINT_COMMENT
                                                     : 0;
    if (strcmp(name, "style") == 0)
        return hides(value) ? DT_HINT_HIDDEN : 0;
    if (strcmp(name, "aria-hidden") == 0)
        return strcasecmp(value, "true") == 0 ? DT_HINT_HIDDEN : 0;
    return 0;
}

unsigned dt_hints_of(const char *const *attributes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned hints = 0;
    pthread_once(&once, fill_tables);
    for (; *attributes; attributes += 2)
        hints |= strcmp(attributes[0], "hidden") == 0
                     ? (unsigned)DT_HINT_HIDDEN
                     : hints_of_attribute(attributes[0], attributes[1] ? attributes[1] : "");
    return hints;
}
