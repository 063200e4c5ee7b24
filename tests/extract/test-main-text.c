/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extract/page.h"

/* A paragraph that needs no neighbours to be text. */
#define TEXT                                                                                       \
    "This sentence is long enough to be the main text of a page, and it has a second part. It is " \
    "followed by another sentence, so that it is not taken for a menu."

static const struct dt_html_parser *parser;

static int load(void **state)
{
    struct dt_error err;
    (void)state;
    int rc = dt_html_parser_load(&parser, &err);
    if (rc == 0 || rc == DT_EMISSING) /* dt was built without libxml2 */
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

/* The document of a page; text and meta belong to the caller. */
static struct dt_document extract_as(const char *html, size_t size,
                                     const struct dt_page_options *how,
                                     enum dt_page_outcome outcome)
{
    if (parser == NULL)
        skip();
    struct dt_page_options options = *how;
    struct dt_page_scratch scratch = {0};
    struct dt_document d = DT_DOCUMENT_EMPTY;
    options.parser = parser;
    options.most = DT_DOCUMENT_BYTES;
    dt_buffer_append(&d.text, html, size);
    assert_int_equal(dt_page_extract(&options, &d, &scratch), outcome);
    dt_page_scratch_release(&scratch);
    return d;
}

static void assert_extracts(const struct dt_page_options *how, const char *html,
                            const char *expected)
{
    struct dt_document d = extract_as(html, strlen(html), how, DT_PAGE_KEPT);
    assert_string_equal(d.text.data, expected);
    dt_document_release(&d);
}

static const struct dt_page_options main_text = {0}, all_text = {.all = true},
                                    with_links = {.links = true};

static void boilerplate_is_dropped(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><nav><ul><li><a href=/>Home</a><li><a href=/b>Sport</a></ul></nav>"
                    "<div id=cookie-banner><p>" TEXT " cookies</p></div>"
                    "<article><h1>Title</h1><p class=byline>By A. Writer</p><p>" TEXT
                    "</p><div class='share-buttons'>Share this</div><p>Second: " TEXT
                    "</p></article><section class=comments><p>I agree. " TEXT
                    "</p></section><aside><p>Aside. " TEXT "</p></aside><footer><p>Footer. " TEXT
                    "</p></footer></body>",
                    "Title\n" TEXT "\nSecond: " TEXT);
}

static void structure_is_kept(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<main><h2>Steps</h2><p>" TEXT "</p><ol><li>First one<li><p>Second</p></ol>"
                    "<pre>\nint  x;\n\tif (x)\n</pre><table><tr><th>Name<th>Size<tr><td>a"
                    "<td><b>1</b> kg</table><h3>Empty</h3><h2>Next</h2><p>2. " TEXT "</p></main>",
                    "Steps\n" TEXT "\n- First one\n- Second\nint  x;\n\tif (x)\nName | Size\n"
                    "a | 1 kg\nNext\n2. " TEXT);
}

static void line_ends_of_preformatted_text_are_those_of_browsers(void **state)
{
    (void)state;
    assert_extracts(&all_text, "<pre>\r\nint  x;\r\n\r\ty;\rz\r</pre>b", "int  x;\n\n\ty;\nz\nb");
    assert_extracts(&all_text, "<pre>\r\r\na</pre>", "\na");
    assert_extracts(&all_text, "a<pre>\r</pre>b<pre>\r\n</pre>c", "a\nb\nc");
}

/* Where no name says what holds the text, sentences beside its paragraphs belong to it; others do
 * not, nor do links. */
static void short_paragraphs_begin_and_end_a_text(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<div><div><p>It began.</p><p>" TEXT "</p><p>2. " TEXT "</p><p>It ended.</p>"
                    "<p>Share</p><p><a href=/>Read more.</a></p></div><div><p>Elsewhere.</p></div>",
                    "It began.\n" TEXT "\n2. " TEXT "\nIt ended.");
}

static void white_space_and_references_are_those_of_browsers(void **state)
{
    (void)state;
    assert_extracts(&all_text,
                    "<p>  a\n b&nbsp;&nbsp;c<b> d</b><i>e</i> &#150; &lt;x&gt; &eacute; <br> f </p>"
                    "<div>g<div>h</div>i</div><p>j<br><br>k",
                    "a b c de – <x> é\nf\ng\nh\ni\nj\nk");
}

static void what_is_not_shown_is_left_out(void **state)
{
    (void)state;
    assert_extracts(&all_text,
                    "<p>a<script>if (1 < 2) x('</p>');</SCRIPT ><script "
                    "src=x/>y</script><script/>'</script><style>p{}</style><!-- c --> b"
                    "<span hidden>c</span><select><option>d</select><template>e</template>"
                    "<noscript>f</noscript><p style='color:red; display : none'>g</p><p>h",
                    "a' b\nh");
}

/* Their ids are their words. */
static void ids_of_headings_and_sections_are_not_names_of_parts(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<article><h1 id=comments>Comments</h1><p>" TEXT
                    "</p><h2 id=hidden-menus>Hidden menus</h2><p>B. " TEXT
                    "</p><h2 class=comments>Your opinion</h2><p>C. " TEXT "</article>",
                    "Comments\n" TEXT "\nHidden menus\nB. " TEXT "\nC. " TEXT);
    assert_extracts(&main_text,
                    "<article><p>" TEXT
                    "</p><section id=editing-and-navigation><h2>Menus</h2><p>B. " TEXT
                    "</p></section><section id=menus class=level2><p>C. " TEXT
                    "</p></section><div class='section level2' id=search><p>D. " TEXT
                    "</p></div><section class=area id=comments><p>E. " TEXT
                    "</p></section><div class=sections id=menu><p>F. " TEXT "</p></div></article>",
                    TEXT "\nMenus\nB. " TEXT "\nC. " TEXT "\nD. " TEXT);
    assert_extracts(&all_text, "<h2 id=hidden>Hidden</h2><h3><a id=hidden href=#h>Too</a></h3>",
                    "Hidden\nToo");
}

static void repetitions_are_left_out(void **state)
{
    (void)state;
    assert_extracts(&main_text, "<article><p>" TEXT "<p>Again: " TEXT "<p>" TEXT "</article>",
                    TEXT "\nAgain: " TEXT);
}

static void links_are_kept_if_wanted(void **state)
{
    (void)state;
    assert_extracts(&with_links,
                    "<article><p>" TEXT " <a href='/a?b=1&amp;c'>More <b>here</b></a> "
                    "<a href=/p><img></a>end</article>",
                    TEXT " [More here](/a?b=1&c) end");
    /* around blocks, each has the address */
    assert_extracts(&with_links,
                    "<article><p>" TEXT
                    "</p><li><a href=/q><div>one</div> <div>two</div></a> three "
                    "<p>B. " TEXT "</article>",
                    TEXT "\n- [one](/q)\n[two](/q)\nthree\nB. " TEXT);
    assert_extracts(&with_links, "<article><p>" TEXT " <a href=/a>b<br></a> c<p>B. " TEXT,
                    TEXT " [b](/a)\nc\nB. " TEXT);
}

/* Names against elements that have most of the text are wrong. */
static void a_page_inside_of_a_sidebar_is_found(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><div class='with-sidebar menu'><div class=x><p>" TEXT "</p><p>B. " TEXT
                    "</p></div></div>",
                    TEXT "\nB. " TEXT);
}

static void without_names_the_densest_element_is_taken(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><table><tr><td><a href=1>One</a> <a href=2>Two</a><td><div><p>" TEXT
                    "</p><p>B. " TEXT "</p><p>C. " TEXT "</p></div><td>News today</table>"
                    "<div>Imprint of the site</div>",
                    TEXT "\nB. " TEXT "\nC. " TEXT);
}

static void names_of_syntax_and_of_columns_are_no_hints(void **state)
{
    (void)state;
    assert_extracts(
        &main_text,
        "<article><p>" TEXT "</p><pre><code class=hljs><span class=hljs-meta>#include "
        "&lt;a.h&gt;</span>\n<span class='token comment'>/* why */</span> int x;\n<div "
        "class='line comment'>// end</div></code></pre><p>Call <code class='js comments'>"
        "/**/</code> now. " TEXT "</p><table><tr><th>Code<th>Use<tr><td>1<td>free<br>"
        "<span class=code-comment>on request</span></table><p>2. " TEXT
        " <span class=comment-count>3 comments</span></p></article>",
        TEXT "\n#include <a.h>\n/* why */ int x;\n// end\nCall /**/ now. " TEXT
             "\nCode | Use\n1 | free on request\n2. " TEXT);
}

static void one_paragraph_has_its_heading_and_what_is_beside_it(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><div id=head><a href=/>Home</a></div><div><h1>Zone</h1><p>" TEXT
                    "</p><p>Write to <a href=/m>us</a>, "
                    "please.</p><table><tr><th>Name<th>Use<tr><td>e164<td>mapping of "
                    "numbers<tr><td>uri<td>resolving of identifiers</table></div></body>",
                    "Zone\n" TEXT "\nWrite to us, please.\nName | Use\ne164 | mapping of numbers\n"
                    "uri | resolving of identifiers");
}

static void items_may_begin_with_paragraphs(void **state)
{
    (void)state;
    assert_extracts(
        &main_text,
        "<body><div><a href=/>Home</a></div><div><p>" TEXT "</p><pre>import x</pre><h2>Use"
        "</h2><ol><li><p>Make an account on <a href=/p>PyPI</a></p><li><p>Install the tools"
        "<br><code>pip install wheel twine</code></p></ol><h2>More</h2><p>These pages say "
        "more.</p><p>June 2020</p></div></body>",
        TEXT "\nimport x\nUse\n- Make an account on PyPI\n- Install the tools\n"
             "pip install wheel twine\nMore\nThese pages say more.");
}

static void questions_in_any_element_are_text_between_answers(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><div><a href=/>Home</a></div><div><div><div>What is it?</div><div>" TEXT
                    "</div></div><div><div>Who may use it?</div><div>2. " TEXT "</div></div><div>"
                    "Share</div><div>3. " TEXT "</div></div></body>",
                    "What is it?\n" TEXT "\nWho may use it?\n2. " TEXT "\n3. " TEXT);
}

static void a_line_that_leads_to_the_text_is_kept(void **state)
{
    (void)state;
    assert_extracts(
        &main_text,
        "<body><div><a href=/>Home</a></div><div><h1>Facts</h1><div>3 minutes</div><p>Here "
        "are some facts:</p><ul><li>One: " TEXT "<li>Two: " TEXT "</ul></div></body>",
        "Facts\nHere are some facts:\n- One: " TEXT "\n- Two: " TEXT);
}

static void lines_without_width_are_empty(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<article><p>" TEXT "<br>\u200d<br>2. " TEXT "</p><p>\u200b</p><p>&#xFEFF;</p>"
                    "<p>3. " TEXT "<br>\u200dTerms, and na\u200cme.</p></article>",
                    TEXT "\n2. " TEXT "\n3. " TEXT "\nTerms, and na\u200cme.");
}

static void a_page_of_headings_has_their_sentences(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><h1>" TEXT "</h1><h2>Over 250 pages of 15 years.</h2><h2>3. " TEXT
                    "</h2>"
                    "<h3>Featured</h3><h3><a href=/a>A paper of others. And more.</a></h3></body>",
                    TEXT "\nOver 250 pages of 15 years.\n3. " TEXT);
    struct dt_document d = extract_as("<h1>Not found.</h1>", 19, &main_text, DT_PAGE_NO_TEXT);
    dt_document_release(&d);
}

static void sentences_may_have_links_in_up_to_half_of_them(void **state)
{
    (void)state;
    assert_extracts(
        &main_text,
        "<body><div><a href=/>Home</a></div><div><p>" TEXT "</p><p>Before, I was a student "
        "at the <a href=/w>University of Washington</a>, advised by <a href=/h>A. Hope</a>."
        "</p><p>Posts, <a href=/f>follow me on Fediverse</a></p><p>2. " TEXT "</p><p>Work "
        "with us: <a href=/o>open positions</a>.</p></div></body>",
        TEXT "\nBefore, I was a student at the University of Washington, advised by "
             "A. Hope.\n2. " TEXT);
}

static void texts_of_one_page_have_their_titles(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><h1><a href=/>A blog</a></h1><div><div><header><h2><a href=/1>First</a>"
                    "</h2></header><div class=entry-content><p>1. " TEXT "</p></div></div><div><h2>"
                    "<a href=/2>Second</a></h2><div class=entry-content><p>2. " TEXT "</p><h3><a "
                    "href=/m>More</a></h3></div></div><div><h2>Archive</h2></div></div></body>",
                    "First\n1. " TEXT "\nSecond\n2. " TEXT);
}

static void headings_may_be_links(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<article><p>" TEXT "</p><h2><a href=/n>News</a></h2><p>2. " TEXT "</p><h2><a "
                    "href=/o>Other pages</a></h2><h2><a href=/t>Talks</a></h2><p>3. " TEXT
                    "</p><h2><a href=/l>Last</a></h2></article>",
                    TEXT "\nNews\n2. " TEXT "\nTalks\n3. " TEXT);
}

static void rows_and_items_stay_together_without_names(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<body><p>" TEXT "</p><p>Second: " TEXT
                    "</p><table><tr><th>Year<th>Who<th>Where"
                    "<tr><td>1850<td><a href=/a>A. Newton</a><td><a href=/y>Yale</a>"
                    "<tr><td>1933<td>J. Sutherland Frame, a mathematician<td>Harvard University"
                    "<tr><td>1988<td>G. Flachs<td>New Mexico State University</table></body>",
                    TEXT "\nSecond: " TEXT "\nYear | Who | Where\n1850 | A. Newton | Yale\n"
                         "1933 | J. Sutherland Frame, a mathematician | Harvard University\n"
                         "1988 | G. Flachs | New Mexico State University");
    assert_extracts(&main_text,
                    "<body><p>" TEXT "</p><ul><li>May: the <a href=/s>site was saved</a>"
                    "<li>June: we could not read it at all then<li><a href=/j>July</a></ul>"
                    "<p>Second: " TEXT "</p></body>",
                    TEXT "\n- May: the site was saved\n- June: we could not read it at all then\n"
                         "- July\nSecond: " TEXT);
}

/* Prints rows of a name, a link, and a sentence. */
static void add_rows(struct dt_buffer *b, int count, bool html)
{
    static const char *const formats[] = {
        "\nDocument %d of the series of all | Reviewed by experts, and first come, first served.",
        "<tr><td><a href=/%d>Document %d of the series of all</a><td>Reviewed by experts, and "
        "first "
        "come, first served."};
    for (int i = 0; i < count; i++)
        dt_buffer_printf(b, formats[html], i, i);
}

static void a_long_table_has_the_text_before_it(void **state)
{
    struct dt_buffer html = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY;
    (void)state;
    dt_buffer_add_string(&html,
                         "<body><div><a href=/>Home</a></div><div><h1>Registries</h1><p>" TEXT
                         "</p><div><center><a href=#a>A</a> <a href=#b>B</a></center><table>");
    dt_buffer_add_string(&text, "Registries\n" TEXT);
    add_rows(&html, 60, true);
    add_rows(&text, 60, false);
    dt_buffer_add_string(&html, "</table></div></div></body>");
    assert_extracts(&main_text, html.data, text.data);
    dt_buffer_release(&html);
    dt_buffer_release(&text);
    assert_extracts(&main_text,
                    "<body><div><a href=/>Home</a></div><div><h1>Facts</h1><ul><li>One: " TEXT
                    "<li>Two: " TEXT "</ul></div></body>",
                    "Facts\n- One: " TEXT "\n- Two: " TEXT);
}

static void rows_may_have_many_links(void **state)
{
    (void)state;
    assert_extracts(&main_text,
                    "<article><p>" TEXT "</p><table><tr><th>Size<th>File<tr><td>177 bytes<td>"
                    "<a href=/v>host-vertices.paths.gz</a><tr><td>216 bytes<td><a href=/e>"
                    "host-edges.paths.gz</a></table><p>2. " TEXT "</p></article>",
                    TEXT "\nSize | File\n177 bytes | host-vertices.paths.gz\n"
                         "216 bytes | host-edges.paths.gz\n2. " TEXT);
}

static void facts_are_in_meta(void **state)
{
    static const char page[] =
        "<html lang=de-AT><head><title> A\r\n\t&amp; B </title><meta name=robots content=noindex>"
        "<meta name=robots content=noai><meta property=article:published_time content=2024-01-02>"
        "<link rel=canonical href=/y><link rel=canonical "
        "href=http://x/y></head><body><article><p>" TEXT
        "</p><a href='https://creativecommons.org/licenses/by/4.0/'>CC</a></article>";
    struct dt_document d;
    (void)state;
    d = extract_as(page, sizeof page - 1, &main_text, DT_PAGE_KEPT);
    assert_string_equal(d.meta.data,
                        "{\"title\":\"A & B\",\"published\":\"2024-01-02\",\"lang_hint\":\"de-AT\","
                        "\"url\":\"http://x/y\","
                        "\"license\":\"https://creativecommons.org/licenses/by/4.0/\","
                        "\"robots\":\"noindex, noai\",\"charset\":\"UTF-8\"}");
    dt_document_release(&d);
}

static void a_meta_element_may_have_a_name_and_a_property(void **state)
{
    static const char page[] = "<title>Site: A</title><meta name=title property=og:title content=A>"
                               "<meta name=x itemprop=datePublished content=2024>"
                               "<meta property=og:title><meta name=date content=' '><p>" TEXT;
    static const char empty[] =
        "<title>B</title><meta property=og:title content=' '>"
        "<meta name=date content=''><meta name=pubdate content=2025><p>" TEXT;
    struct dt_document d;
    (void)state;
    d = extract_as(page, sizeof page - 1, &all_text, DT_PAGE_KEPT);
    assert_string_equal(d.meta.data,
                        "{\"title\":\"A\",\"published\":\"2024\",\"charset\":\"UTF-8\"}");
    dt_document_release(&d);
    d = extract_as(empty, sizeof empty - 1, &all_text, DT_PAGE_KEPT);
    assert_string_equal(d.meta.data,
                        "{\"title\":\"B\",\"published\":\"2025\",\"charset\":\"UTF-8\"}");
    dt_document_release(&d);
}

static void tags_in_a_title_or_a_form_are_text(void **state)
{
    static const char page[] =
        "<TITLE lang=en>Use <b> & &lt;i> in <u>HTML</u></Title ><article><p>" TEXT
        "<textarea></article><p>a</textarea><p>B. " TEXT "</article><title>none";
    struct dt_document d;
    (void)state;
    d = extract_as(page, sizeof page - 1, &all_text, DT_PAGE_KEPT);
    assert_string_equal(d.meta.data,
                        "{\"title\":\"Use <b> & <i> in <u>HTML</u>\",\"charset\":\"UTF-8\"}");
    assert_string_equal(d.text.data, TEXT "\nB. " TEXT);
    dt_document_release(&d);
}

static void odd_markup_is_taken_as_browsers_do(void **state)
{
    static const char *const pages[][2] = {
        {"<p>a<![if !supportLists]>b<![endif]>c", "abc"},
        {"<!DOCTYPE html><p>a<!x>b<![CDATA[ c ]]>d<?xml x=\"y\" ?>e</>f</ x>g<!DOCTYPE a>h",
         "abdefgh"},
        {"<p>1 <2 and 2> 1 <= 3", "1 <2 and 2> 1 <= 3"},
        {"<p>a<!b", "a"},
        {"<p>a</br>b</br/>c</BR >d</bra>e", "a\nb\nc\nde"},
        {"<div>a</p>b</P >c</p</div>", "a\nb\nc"},
        {"<h2 class=x>a</h3 >b<h1>c</H1>d</h4>e</h2>f", "a\nb\nc\ndef"},
        {"<h2>a<h3>b</h2>c<h3>d<h10>e</h10>f</h3>g", "a\nb\nc\ndef\ng"},
        {"a<script><!--\nwrite('<script src=x></script>');\n//--></script>b", "ab"},
        {"a<script><!-- <scripts> </script>b<script><!--><script></script>c", "abc"},
        {"a<script>'</scripts>' <!-- <script> --></script>b<style></styles></style>c", "abc"},
        {"<p>a\fb&#12;c&#xC;d <b>e</b>\f<i>f</i><p\fclass=x>g", "a b c d e f\ng"},
        {"<ul><li>a</p>b<li><p>c</p></ul>", "- a\nb\n- c"},
        {"<div>a <b>b</b></p><i>c</i></div>", "a b\nc"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_extracts(&all_text, pages[i][0], pages[i][1]);
}

/* A part, repeated to this size. */
static struct dt_buffer repeat(const char *start, const char *part, size_t size)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, start);
    while (b.size < size)
        dt_buffer_add_string(&b, part);
    return b;
}

/* Pages that take parsers minutes end in seconds, as text or as dropped. */
static void hostile_pages_are_bounded(void **state)
{
    static const struct {
        const char *start, *part;
        enum dt_page_outcome outcome;
    } pages[] = {
        {"", "<div>", DT_PAGE_NESTING},
        {"x", "<b>", DT_PAGE_NESTING},
        {"<table>", "<tr><td><table>", DT_PAGE_NESTING},
        {"<p>x", "</i></b></div>", DT_PAGE_KEPT},
        {"x", "<!--", DT_PAGE_KEPT},
        {"x", "&amp", DT_PAGE_KEPT},
        {"x", "<", DT_PAGE_KEPT},
        {"x <a ", "\" =", DT_PAGE_KEPT},
        {"x<p", " x='", DT_PAGE_KEPT},
        {"x<script>", "</scrip", DT_PAGE_KEPT},
        {"x", "</p ", DT_PAGE_KEPT},
        {"x", "</p>", DT_PAGE_KEPT},
        {"x", "</", DT_PAGE_KEPT},
        {"x", "<!", DT_PAGE_KEPT},
        {"x", "<title>", DT_PAGE_NESTING},
        {"x", "<textarea>", DT_PAGE_NESTING},
        {"x", "<br>y", DT_PAGE_KEPT},
        {"x", "<td>y", DT_PAGE_KEPT},
        {"<ul><li>x", "<li>y", DT_PAGE_KEPT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct dt_buffer page = repeat(pages[i].start, pages[i].part, 1000000);
        clock_t start = clock();
        struct dt_document d = extract_as(page.data, page.size, &all_text, pages[i].outcome);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > 5)
            fail_msg("'%s' took %.1f s", pages[i].part, seconds);
        dt_document_release(&d);
        dt_buffer_release(&page);
    }
}

static void a_tag_of_very_many_attributes_is_read(void **state)
{
    static const char *const names[] = {"a%d='>'", "class%d=\"b\"", "id=%d", "ID='%d'"};
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct dt_buffer page = DT_BUFFER_EMPTY;
        clock_t start = clock();
        dt_buffer_add_string(&page, "<p>x<a title=\">\" ");
        for (int i = 0; i < 100000; i++) {
            dt_buffer_printf(&page, names[n], i);
            dt_buffer_add_char(&page, ' ');
        }
        dt_buffer_add_string(&page, "hidden>y</a>z");
        struct dt_document d = extract_as(page.data, page.size, &all_text, DT_PAGE_KEPT);
        assert_string_equal(d.text.data, "xz");
        assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
        dt_document_release(&d);
        dt_buffer_release(&page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boilerplate_is_dropped),
        cmocka_unit_test(structure_is_kept),
        cmocka_unit_test(line_ends_of_preformatted_text_are_those_of_browsers),
        cmocka_unit_test(short_paragraphs_begin_and_end_a_text),
        cmocka_unit_test(white_space_and_references_are_those_of_browsers),
        cmocka_unit_test(what_is_not_shown_is_left_out),
        cmocka_unit_test(ids_of_headings_and_sections_are_not_names_of_parts),
        cmocka_unit_test(repetitions_are_left_out),
        cmocka_unit_test(links_are_kept_if_wanted),
        cmocka_unit_test(a_page_inside_of_a_sidebar_is_found),
        cmocka_unit_test(without_names_the_densest_element_is_taken),
        cmocka_unit_test(names_of_syntax_and_of_columns_are_no_hints),
        cmocka_unit_test(one_paragraph_has_its_heading_and_what_is_beside_it),
        cmocka_unit_test(items_may_begin_with_paragraphs),
        cmocka_unit_test(questions_in_any_element_are_text_between_answers),
        cmocka_unit_test(a_line_that_leads_to_the_text_is_kept),
        cmocka_unit_test(lines_without_width_are_empty),
        cmocka_unit_test(a_page_of_headings_has_their_sentences),
        cmocka_unit_test(sentences_may_have_links_in_up_to_half_of_them),
        cmocka_unit_test(texts_of_one_page_have_their_titles),
        cmocka_unit_test(headings_may_be_links),
        cmocka_unit_test(rows_and_items_stay_together_without_names),
        cmocka_unit_test(a_long_table_has_the_text_before_it),
        cmocka_unit_test(rows_may_have_many_links),
        cmocka_unit_test(facts_are_in_meta),
        cmocka_unit_test(a_meta_element_may_have_a_name_and_a_property),
        cmocka_unit_test(tags_in_a_title_or_a_form_are_text),
        cmocka_unit_test(odd_markup_is_taken_as_browsers_do),
        cmocka_unit_test(hostile_pages_are_bounded),
        cmocka_unit_test(a_tag_of_very_many_attributes_is_read),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
